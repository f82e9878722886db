# sample: logits to an id.
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

# --- Greedy.
want 'greedy: the best' 'sample | jq -c .ids' '{"logits":[[1,3,2]]}' 0 '[1]'
want 'the lowest id among equals' 'sample | jq -c .ids' \
    '{"logits":[1,3,2,3]}' 0 '[1]'
want '-0 and 0 are equal' 'sample | jq -c .ids' '{"logits":[-0.0,0]}' 0 '[0]'
json 'the record: seq, pos, ids, raw log-probability' sample \
    '{"seq":"a","pos":4,"ids":[5,6],"logits":[0,0],"tag":1.50,"tokens":["x"],"layer":6,"model":"m"}' \
    '.[0] | .seq == "a" and .pos == 6 and .ids == [0] and .tag == 1.5
        and (.logprob - (0.5 | log) | fabs) < 1e-6 and .model == "m"
        and (has("tokens") or has("layer") or has("logits")
            or has("done") | not)'
json 'without ids, one position' sample '{"logits":[0,1]}' '.[0].pos == 1'
want 'a step with -g is greedy all the same' \
    'sample -g --temp 5 | jq -c .ids' '{"logits":[1,3,2]}' 0 '[1]'
want '--temp 0 is greedy' 'sample --temp 0 | jq -c .ids' \
    '{"logits":[1,3,2,3]}' 0 '[1]'

# --- Steps, in the order written; --probs shows what they leave.
# probs OPTIONS LOGITS EXPECTED
probs() {
    json "$1 on $2" "sample --probs $1" "{\"logits\":$2}" "
        (.[0].probs | map(.[0])) == ($3 | map(.[0]))
        and ([.[0].probs, $3] | transpose
            | all((.[0][1] - .[1][1]) | fabs < 1e-5))
        and (.[0] | has(\"ids\") | not)"
}
# ln 1..4: probabilities 0.1 0.2 0.3 0.4
L='[0,0.6931472,1.0986123,1.3862944]'
probs '' "$L" '[[3, 0.4], [2, 0.3], [1, 0.2], [0, 0.1]]'
probs '--top-k 2' "$L" '[[3, 0.571429], [2, 0.428571]]'
probs '--top-k 1' "$L" '[[3, 1]]'
probs '--top-k 0' "$L" '[[3, 0.4], [2, 0.3], [1, 0.2], [0, 0.1]]'
probs '--top-k 99' "$L" '[[3, 0.4], [2, 0.3], [1, 0.2], [0, 0.1]]'
probs '--top-k 2' '[7,7,7]' '[[0, 0.5], [1, 0.5]]'
probs '--top-p 0.5' "$L" '[[3, 0.571429], [2, 0.428571]]'
probs '--top-p 0.39' "$L" '[[3, 1]]'
probs '--top-p 0' "$L" '[[3, 1]]'
probs '--top-p 1' "$L" '[[3, 0.4], [2, 0.3], [1, 0.2], [0, 0.1]]'
probs '--top-p 0.5' '[7,7,7,7]' '[[0, 0.5], [1, 0.5]]'
probs '--temp 0.5' "$L" '[[3, 0.533333], [2, 0.3], [1, 0.133333],
    [0, 0.033333]]'
probs '--temp 0' "$L" '[[3, 1]]'
probs '--temp 0.5 --top-p 0.6' "$L" '[[3, 0.64], [2, 0.36]]'
probs '--top-p 0.6 --temp 0.5' "$L" '[[3, 0.64], [2, 0.36]]'
probs '--top-p 0.5 --temp 2' "$L" '[[3, 0.535898], [2, 0.464102]]'
probs '--temp 2 --top-p 0.5' "$L" '[[3, 0.396194], [2, 0.343114],
    [1, 0.260692]] | map(select(.[0] > 1)) | (map(.[1]) | add) as $s
    | map([.[0], .[1] / $s])'
probs '-k 3 -k 2' "$L" '[[3, 0.571429], [2, 0.428571]]'
probs '' '[-1e999,0,-1e999,0]' '[[1, 0.5], [3, 0.5]]'
probs '' '[1000,-1000,1000]' '[[0, 0.5], [2, 0.5], [1, 0]]'

# --- Draws: the first id, in rank order, where the sum is beyond u.
draw() {
    want "--draw $1 of $3" "sample --temp 1 --draw $1 $2 | jq -c .ids" \
        "{\"logits\":$3}" 0 "[$4]"
}
draw 0 '' "$L" 3
draw 0.39 '' "$L" 3
draw 0.41 '' "$L" 2
draw 0.69 '' "$L" 2
draw 0.71 '' "$L" 1
draw 0.91 '' "$L" 0
draw 0.9999999 '' "$L" 0
draw 0.9999999 '--top-k 2' "$L" 2
draw 0.5 '' '[-1e999,5,-1e999]' 1
draw 0.75 '' '[7,7]' 1
for u in 1 -0.1 2 x nan 0x1p-1 ''; do
    want "--draw '$u'" "sample --draw '$u'" '' 2 - 'sample: --draw*'
done

# --- Seeds.
recs() {
    jq -nc 'range(400) | {seq: (. % 20), pos: (. / 20 | floor),
        ids: [1], logits: [[0, 0, 0, 0, 0, 0, 0, 0]]}'
}
recs >in
sample --temp 1 --seed 5 in >a
sample --temp 1 --seed 5 in >b
same 'the same seed: the same ids' a b
check 'another seed: others' \
    'sample --temp 1 --seed 6 in >b; jq -c .ids a >x; jq -c .ids b >y
    ! cmp -s x y'
check 'the order of the records does not matter: (seed, seq, pos) does' \
    'tac in | sample --temp 1 --seed 5 | tac | cmp - a'
check 'nor what goes before' \
    'tail -n 7 in | sample --temp 1 --seed 5 >x; tail -n 7 a | cmp - x'
json 'all ids come, about evenly' 'cat a' '' 'map(.ids[0]) | group_by(.)
    | length == 8 and all(length > 25 and length < 80)'
json 'the seed is in the record' 'sample --temp 1 in' '' \
    '(map(.seed) | unique | length) == 1 and .[0].seed >= 0
        and .[0].seed < 9007199254740992'
check 'with that seed, it repeats' \
    'sample --temp 1 in >x; s=$(head -n 1 x | jq .seed)
    sample --temp 1 --seed $s in | cmp - x'
json 'greedy: no seed' 'sample in' '' 'all(has("seed") | not)'
for seed in -1 x 1.5 9007199254740993 ''; do
    want "--seed '$seed'" "sample --seed '$seed'" '' 2 - 'sample: --seed*'
done
check '--seed 9007199254740992 and 0' \
    'sample -t 1 --seed 9007199254740992 in && sample -t 1 --seed 0 in'

# --- Ends.
json '-n: length' 'sample -n 2' '{"seq":1,"logits":[1,0]}
{"seq":1,"pos":1,"ids":[0],"logits":[1,0]}
{"seq":2,"logits":[1,0]}' 'map(.done) == [null, "length", null]'
json '-n counts anew when a sequence begins anew' 'sample -n 2' \
    '{"seq":1,"logits":[1,0]}
{"seq":1,"logits":[1,0]}' 'map(.done) == [null, null]'
json '-n counts drawn ids, not the prompt' 'sample -n 1' \
    '{"seq":1,"ids":[1,2,3],"logits":[1,0]}' '.[0].done == "length"'
json '--eos' 'sample --eos 3,1' '{"logits":[1,9]}
{"seq":2,"logits":[9,1]}' 'map(.done) == ["eos", null]'
json '--eos before -n' 'sample -n 1 --eos 1' '{"logits":[1,9]}' \
    '.[0].done == "eos"'
eos=$(jq -nc '{logits: [[range(4096)]]}')
json "the model's end id, with its vocabulary" sample "$eos" \
    '.[0].ids == [4095] and .[0].done == "eos"'
json 'not with another vocabulary' sample \
    "$(jq -nc '{logits: [[range(4097)]] }')" '.[0].done == null'
json 'nor when another is given' 'sample --eos 7' "$eos" '.[0].done == null'
json 'the window of the model' sample \
    "$(jq -nc '{pos: 255, ids: [1], logits: [[range(4096; 0; -1)]]}')" \
    '.[0].pos == 256 and .[0].done == "length"'
for list in x 1,,2 -1 '' 1, 4294967296; do
    want "--eos '$list'" "sample --eos '$list'" '' 2 - 'sample: --eos*'
done
for n in 0 -1 x ''; do
    want "-n '$n'" "sample -n '$n'" '' 2 - 'sample: --max-tokens*'
done
want 'more: nothing is drawn' sample \
    '{"seq":1,"more":true}
{"seq":1,"ids":[1],"more":true,"logits":[1,2]}' 0 ''
want 'a mark is swallowed' sample '{"seq":1,"pos":3,"done":"eos"}' 0 ''
want 'the mark of the input: the end, though more could come' \
    "{ echo '{\"done\":\"input\"}'; sleep 3; } \
        | { timeout 2 sample; echo \$?; }" '' 0 0
json 'not before those that are live have come back done' \
    "sample -n 2" '{"seq":1,"logits":[1,0]}
{"done":"input"}
{"seq":1,"pos":1,"ids":[0],"logits":[1,0]}
{"seq":1,"pos":2,"ids":[0],"done":"length"}
{"seq":1,"pos":1,"ids":[0],"logits":[1,0]}' 'length == 2'
want 'what comes behind the end is not read' 'sample -n 1 | wc -l' \
    '{"done":"input"}
{"seq":1,"logits":[1,0]}' 0 0

# --- Looking in.
json '--top' 'sample --top 2' "{\"logits\":$L}" '.[0].top
    | length == 2 and .[0].id == 3 and .[1].id == 2
        and (.[0].logprob - (0.4 | log) | fabs) < 1e-5'
json '--top: raw log-probabilities, and what the chain makes of them' \
    'sample --top 3 --top-k 1' "{\"logits\":$L}" '.[0].top
    | map(.p) == [1, 0, 0]
        and (.[2].logprob - (0.2 | log) | fabs) < 1e-5'
json '--top: texts, with the vocabulary of the model' 'sample --top 1' \
    "$(jq -nc '[range(4096) | 0] | .[1698] = 9 | {logits: .}')" \
    '.[0].top[0].text == " fox"'
json '--top more than there are' 'sample --top 99' "{\"logits\":$L}" \
    '.[0].top | length == 4'
run 'sample -v --temp 0.5 --top-k 3 --top-p 0.9'
case $(cat err) in
*'temp 0.5'*'top-k 3'*'top-p 0.9'*draw*) ok '-v prints the chain' ;;
*) not_ok '-v prints the chain' <err ;;
esac

# --- Numbers are parsed strictly.
for o in '--temp -1' '--temp x' '--temp nan' '--temp inf' "--temp ''" \
    '--temp 1x' '--top-k -1' '--top-k 1.5' '--top-k x' '--top-p -0.1' \
    '--top-p 1.1' '--top-p x' '--top 0' '--top x'; do
    want "$o" "sample $o" '' 2 - "sample: ${o%% *}*"
done
# The pipe without unembed: a message that helps.
want 'hidden instead of logits' \
    'echo "{\"ids\":[1]}" | embed | attend | sample >/dev/null' '' 1 '' \
    'sample: <stdin>:1: *logits*unembed*'
finish
