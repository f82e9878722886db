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
json 'the mark of a sequence without a name is not the end of the input' \
    'sample -n 2' '{"logits":[1,0]}
{"seq":1,"logits":[1,0]}
{"pos":1,"done":"length"}
{"seq":1,"pos":1,"ids":[0],"logits":[1,0]}
{"done":"input"}
{"seq":1,"pos":2,"done":"length"}
{"seq":2,"logits":[1,0]}' 'map(.seq) == [null, 1, 1]'
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
json '--top: log-probabilities also where probabilities are 0' \
    'sample --top 3 --logit-bias 2:1000' '{"logits":[0,-150,-300]}' \
    '.[0] | (.top | map(.logprob)) == [0, -150, -300] and .logprob == -300'
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

# --- The other steps; their numbers are checked by tests/pipe/sampling.t.
probs '--min-p 0.6' "$L" '[[3, 0.571429], [2, 0.428571]]'
probs '--typical 0.2' "$L" '[[2, 1]]'
probs '--top-n-sigma 0.1' "$L" '[[3, 1]]'
probs '--epsilon 0.25' "$L" '[[3, 0.571429], [2, 0.428571]]'
probs '--eta 0.25' "$L" '[[3, 0.444444], [2, 0.333333], [1, 0.222222]]'
probs '--dynatemp 0.5:0.5' "$L" '[[3, 0.533333], [2, 0.3], [1, 0.133333],
    [0, 0.033333]]'
probs '--logit-bias 3:-inf' "$L" '[[2, 0.5], [1, 0.333333], [0, 0.166667]]'
probs '--logit-bias 0:1.3862944' "$L" '[[0, 0.307692], [3, 0.307692],
    [2, 0.230769], [1, 0.153846]]'
probs '--min-keep 3 --top-k 1' "$L" '[[3, 0.444444], [2, 0.333333],
    [1, 0.222222]]'
probs '--xtc 1:0.25 --draw 0,0.5' "$L" '[[2, 0.5], [1, 0.333333],
    [0, 0.166667]]'
probs '--xtc 0.4:0.25 --draw 0,0.5' "$L" '[[3, 0.4], [2, 0.3], [1, 0.2],
    [0, 0.1]]'
probs '--top-k 3 --mirostat 2:0.85' "$L" '[[3, 0.571429], [2, 0.428571]]'
# Canberra, Sydney, Melbourne, banana
probs '' '[8.2,5.1,4.7,-2.3]' '[[0, 0.929995], [1, 0.041896],
    [2, 0.028083], [3, 0.000026]]'
json '-v prints every step as it was written' \
    'sample -v -k 3 --xtc 0.5:0.1 --preset llama.cpp --mirostat 2:4 2>&1 |
        grep chain | jq -R .' '' '.[0] | endswith("chain: top-k 3, xtc " +
    "0.5:0.1, top-k 40, top-p 0.95, min-p 0.05, temp 0.8, mirostat 2:4, draw")'
for o in '--min-p 2' '--typical -1' '--top-n-sigma -1' '--epsilon 1' \
    '--eta x' '--xtc 0.5' '--xtc 2:0.1' '--dynatemp 2:1' '--dynatemp 1' \
    '--repeat-penalty 0' '--frequency-penalty x' '--presence-penalty inf' \
    '--logit-bias 5' '--logit-bias x:1' '--logit-bias 1:nan' '--dry -1' \
    '--dry 1:0.5' '--mirostat 3' '--preset x' "--preset ''" \
    '--repeat-last-n -2' '--min-keep -1' "--stop ''" "--dry-breaker ''" \
    '--dry-breaker ids:x' '--draw 0.5,1' '--draw 0.5,' '--draw ,0.5'; do
    want "$o" "sample $o" '' 2 - "sample: ${o%% *}*"
done
want 'nothing follows --mirostat' 'sample --mirostat 2 --top-k 4' '' 2 - \
    'sample: --top-k: *--mirostat*'
want 'an id that is none' 'sample --logit-bias 4:1 >/dev/null' \
    '{"logits":[1,2]}' 1 '' 'sample: <stdin>:1: logit-bias: id 4*2 logits*'
want 'all are banned' 'sample --logit-bias 0:-inf >/dev/null' \
    '{"logits":[1]}' 1 '' 'sample: <stdin>:1: logit-bias: no candidate*'
for l in '[1,null]' '[1,1e999]' '[-1e999,-1e999]' '[]' '[[]]' '[[1],[2]]' \
    '[[[1]]]' '3' '"x"'; do
    want "logits $l" 'sample >/dev/null' "{\"seq\":1,\"logits\":$l}" 1 '' \
        'sample: <stdin>:1: logits: *'
done

# --- What came before.
P='sample --presence-penalty 5 -g'
json 'penalties look at the ids of the record' "$P" \
    '{"ids":[0],"logits":[3,2,1]}' '.[0].ids == [1]'
json 'and at those of the records before' "$P" \
    '{"seq":1,"ids":[0,9],"more":true}
{"seq":2,"ids":[1],"more":true}
{"seq":1,"pos":2,"ids":[7],"logits":[3,2,1,0,0,0,0,0,0,0]}
{"seq":2,"pos":1,"ids":[7],"logits":[3,2,1,0,0,0,0,0,0,0]}' \
    'map(.ids) == [[1], [0]]'
json 'what stands behind pos is forgotten' "$P" \
    '{"ids":[1,0],"more":true}
{"pos":1,"ids":[2],"logits":[3,2,1]}
{"pos":0,"ids":[2],"logits":[3,9,1]}' 'map(.ids) == [[0], [1]]'
json '--repeat-last-n' "$P --repeat-last-n 1" \
    '{"ids":[0,1],"logits":[3,2,1]}' '.[0].ids == [0]'
json '--repeat-last-n 0: ids are not needed' "$P --repeat-last-n 0" \
    '{"pos":5,"logits":[3,2,1]}' '.[0].ids == [0]'
json 'a penalty of 0 needs none either' 'sample --presence-penalty 0 -g' \
    '{"pos":5,"logits":[3,2,1]}' '.[0].ids == [0]'
want 'ids that have not come' "$P >/dev/null" \
    '{"seq":"a","ids":[1],"more":true}
{"seq":"a","pos":2,"ids":[0],"logits":[3,2,1]}' 1 '' \
    'sample: <stdin>:2: seq "a": 1 ids have come, record starts at 2;*'
want 'no ids' "$P >/dev/null" '{"logits":[3,2,1]}' 1 '' \
    'sample: <stdin>:1: the record has no ids*'
want 'an id beyond the logits' "$P >/dev/null" '{"ids":[3],"logits":[3,2,1]}' \
    1 '' 'sample: <stdin>:1: ids: 3 came before*3 logits*'
json 'fork: the first pos ids of another' "$P" \
    '{"seq":1,"ids":[0,1],"more":true}
{"seq":2,"pos":1,"fork":1,"ids":[2],"logits":[3,2,1]}
{"seq":3,"pos":2,"fork":1,"ids":[2],"logits":[3,2,1]}
{"seq":1,"pos":2,"ids":[2],"logits":[3,2,1]}' \
    'map(.ids) == [[1], [0], [0]]'
json 'fork of itself: it goes back' "$P" \
    '{"seq":1,"ids":[0,1],"more":true}
{"seq":1,"pos":1,"fork":1,"ids":[2],"logits":[3,2,1]}' '.[0].ids == [1]'
want 'fork of one that is not there' "$P >/dev/null" \
    '{"seq":2,"pos":1,"fork":"x","ids":[2],"logits":[3,2,1]}' 1 '' \
    'sample: <stdin>:1: fork "x": 0 ids*'
json 'fork without penalties needs nothing' 'sample -n 1' \
    '{"seq":2,"pos":1,"fork":"x","ids":[2],"logits":[3,2,1]}' \
    '.[0].done == "length" and (.[0] | has("fork") | not)'
json '--dry with breakers by id' \
    'sample --dry 9 --dry-breaker ids:5 -g' \
    '{"seq":1,"ids":[1,2,3,1,2],"logits":[0,0,0,5,4,0]}
{"seq":2,"ids":[1,2,3,5,1,2],"logits":[0,0,0,5,4,0]}
{"seq":3,"ids":[1,2,3,1,5,2],"logits":[0,0,0,5,4,0]}' \
    'map(.ids) == [[4], [4], [3]]'
# 11 is a comma, 13 a full stop.
json '--dry-breaker as text: tokens that hold it' \
    "sample --dry 9:1.75:1 --dry-breaker ',' -g" \
    "$(jq -nc '[range(4096) | 0] | .[13] = 5 | .[14] = 4 |
        {seq: 1, ids: [12, 13, 12], logits: .},
        {seq: 2, ids: [12, 13, 12, 11], logits: .}')" \
    'map(.ids) == [[14], [13]]'
want '--dry-breaker as text, and no vocabulary' \
    "mkdir -p none; cp '$FAIRY/config.json' none
    sample -m ./none --dry 1 --dry-breaker x >/dev/null" '' 1 '' \
    'sample: --dry-breaker needs*'

# --- Mirostat's state.
json 'mu: written, read, 2 tau at first' \
    'sample --mirostat 2:1:0.5 --draw 0' '{"logits":[0,0,0,0]}
{"logits":[0,0,0,0],"mu":1.25}
{"logits":[0],"mu":1.25}' 'map(.mu) == [1.5, 1.75, 1.75]'
for mu in '"x"' null 1e999 '[1]' '{}'; do
    want "mu $mu" 'sample --mirostat 2 >/dev/null' \
        "{\"logits\":[1],\"mu\":$mu}" 1 '' 'sample: <stdin>:1: mu: *'
done
json 'without mirostat it rides along' sample '{"logits":[1],"mu":"x"}' \
    '.[0].mu == "x"'

# --- allow
A='{"logits":[3,2,1,-1e999],"allow":'
json 'allow: with --keep' 'sample --keep allow' "$A[1]}" \
    '.[0].ids == [1] and .[0].allow == [1]'
json 'allow: only these' sample "$A[2,1,2]}" \
    '.[0].ids == [1] and (.[0] | has("allow") | not)
        and (.[0].logprob - -1.4076 | fabs) < 1e-3'
json 'before every step' 'sample --top-k 1 --probs' "$A[2,1]}" \
    '.[0].probs == [[1, 1]] and (.[0] | has("allow") | not)'
for allow in '[]' '[3]' '[4]' '[-1]' '[1.5]' '["a"]' '5' 'null' '{}' \
    '[[1]]'; do
    want "allow $allow" 'sample >/dev/null' "$A$allow}" 1 '' \
        'sample: <stdin>:1: allow: *'
done
json 'allow in a binary record' 'tensor -o safetensors | sample' "$A[2]}" \
    '.[0].ids == [2]'

# --- Stop texts.  257 is "he", 11 a comma.
# text TEXT: a token a record, whose text they are; the logits single it out
text() {
    printf '%s' "$1" | tok-encode -s | jq -c '.ids | to_entries[]
        | {seq: 1, pos: .key, ids: [7], id: .value}' |
        jq -c '.id as $id | {seq, pos, ids,
            logits: [range(4096) | if . == $id then 1 else 0 end]}'
}
# stop OPTIONS TEXT EXPECTED: held, and done, of each record
stop() {
    text "$2" >texts
    json "$1 on '$2'" "sample $1 texts" '' "map([.held, .done]) == $3"
}
is 'the tokens of the tests below' \
    "$(printf 'the fox, and' | tok-encode -st | jq -c .tokens)" \
    '["the"," fox",","," and"]'
stop '--stop ,' 'the fox, and' '[[null, null], [null, null], [1, "stop"],
    [null, null]]'
stop '--stop "ox, a"' 'the fox, and' '[[null, null], [2, null], [3, null],
    [7, "stop"]]'
stop '--stop "x, the"' 'the fox, and' '[[null, null], [1, null], [2, null],
    [null, null]]'
stop '--stop zzz --stop he' 'the fox, and' '[[2, "stop"], [null, null],
    [null, null], [null, null]]'
json 'not in the prompt, and anew when a sequence begins anew' \
    "sample --stop 'he the'" "$(text 'he the' | jq -c '.pos = 0')" \
    'map([.held, .done]) == [[2, null], [2, null]]'
json 'each sequence has its own' \
    "sample --stop 'he the'" "$(text 'he the' | jq -c '., (.seq = 2)')" \
    'map([.held, .done]) == [[2, null], [2, null], [6, "stop"], [6, "stop"]]'
json 'an end id comes first, a length last' \
    "sample --stop he --eos 257 -n 1" \
    "$(text 'he'; text 'the' | jq -c '.seq = 2')" \
    'map(.done) == ["eos", "stop"]'
json 'held does not go round' 'sample' '{"logits":[1],"held":3}' \
    '.[0] | has("held") | not'
want '--stop without a vocabulary' 'sample -m ./none --stop x >/dev/null' '' \
    1 '' 'sample: --stop needs *'
want '--stop with other logits' 'sample --stop x >/dev/null' \
    '{"logits":[1,2]}' 1 '' 'sample: <stdin>:1: logits: 2 of them*--stop*'

# --- Looking in further.
json '--trail: which step dropped it' \
    'sample --temp 1 --top-k 3 --top-p 0.5 --draw 0 --trail' \
    "{\"logits\":$L}" '.[0].trail == [[1, "top-p 0.5"], [0, "top-k 3"]]
        and (.[0] | has("top") | not)'
json '--trail with --top: of those' \
    'sample --top-k 3 --top-p 0.5 --draw 0 --trail --top 3' \
    "{\"logits\":$L}" '.[0].trail == [[1, "top-p 0.5"]]'
json '--trail: allow and bans' \
    'sample --trail --logit-bias 2:-inf --probs' \
    "{\"logits\":$L,\"allow\":[3,2]}" \
    '.[0].trail == [[2, "logit-bias 2:-inf"], [1, "allow"], [0, "allow"]]'
json '--trail: nothing dropped' 'sample --trail' "{\"logits\":$L}" \
    '.[0].trail == []'
json '--xtc: its seed is in the record, also of --probs' \
    'sample --xtc 0.5:0.1 --probs' "{\"logits\":$L}" '.[0].seed >= 0'

# --- Rows.
R='{"seq":"a","pos":4,"ids":[7,8,9],"logits":[[1,0],[0,1],[3,4]],"x":1}'
json '--rows: a record each' 'sample --rows' "$R" 'map([.seq, .pos, .ids, .x])
    == [["a", 5, [0], 1], ["a", 6, [1], 1], ["a", 7, [1], 1]]'
json '--rows of the last positions' 'sample --rows --probs' \
    '{"pos":4,"ids":[7,8,9],"logits":[[1,1],[0,1]]}' \
    'map(.pos) == [6, 7] and (.[0].probs | length) == 2'
json '--rows without ids' 'sample --rows' '{"logits":[[1,0],[0,1]]}' \
    'map(.pos) == [1, 2]'
json '--rows: draws are those of one row at a time' \
    "sample --rows --temp 1 --seed 3; echo '{\"seq\":\"a\",\"pos\":6,
        \"ids\":[9],\"logits\":[3,4]}' | tr -d '\n' |
        { cat; echo; } | sample --temp 1 --seed 3" "$R" \
    '.[2].ids == .[3].ids and .[2].pos == .[3].pos'
json '--rows: penalties look at the ids up to each' \
    'sample --rows --presence-penalty 5 -g' \
    '{"ids":[0,1],"logits":[[3,2,1],[3,2,1]]}' 'map(.ids) == [[1], [2]]'
json '--rows: nothing ends, nothing is counted' 'sample --rows -n 1 --eos 0' \
    "$R" 'all(has("done") | not)'
json '--rows: records in their order, marks, more' 'sample --rows' \
    '{"seq":1,"ids":[1,1],"more":true,"logits":[[1,2],[2,1]]}
{"seq":2,"logits":[1,2]}
{"seq":1,"pos":2,"done":"eos"}
{"seq":3,"logits":[]}
{"seq":4,"logits":[2,1]}' 'map([.seq, .pos, .ids[0]])
    == [[1, 1, 1], [1, 2, 0], [2, 1, 1], [4, 1, 0]]'
want '--rows: more rows than ids' 'sample --rows >/dev/null' \
    '{"ids":[1],"logits":[[1,2],[3,4]]}' 1 '' \
    'sample: <stdin>:1: logits: has 2 rows*1 ids*'
want '--rows: one that is bad' 'sample --rows | jq -c .pos' \
    '{"logits":[[1,2],[3,null]]}' 0 '1
null' 'sample: <stdin>:1: logits: NaN*'

# --- The model whose end id and window hold.
want 'a record of another model' 'sample >/dev/null' \
    "$(jq -nc '{model: "x", logits: [range(4096)]}')" 1 '' \
    'sample: <stdin>:1: *model x*-m*'
json 'of another, where nothing of it is used' sample \
    '{"model":"x","logits":[1]}' '.[0].model == "x"'
want 'of the same' "sample | jq -c .done" \
    "$(echo '{"ids":[0]}' | embed -j | jq -c '{model,
        logits: [range(4096)]}')" 0 '"eos"'
finish
