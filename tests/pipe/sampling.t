# Sampling: the vectors, and the same text whatever is beside it.
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

run "python3 '$PF_SOURCE/tests/sampling.py'"
grep '^not ok' -A 1 out >why
cat err >>why
if [ "$status" = 0 ]; then
    ok "$(grep -c '^ok' out) vectors through sample"
else
    not_ok 'vectors through sample' <why
fi

# --- For every sampler: threads, sequences in flight, whole and in two parts.
printf '%s\n' 'Once upon a time' 'The king said' 'There was a' \
    'And the wolf, and the wolf, and' 'A girl' 'He' |
    tok-encode | jq -c '.seq |= "s\(.)"' >prompts
# ids FILE: a line a sequence, by seq: all its ids
ids() {
    jq -sc 'sort_by(.seq) | .[] | [.seq, .ids]' "$1"
}
embed prompts | attend >hidden
rows=$(jq -s 'map(.ids | length) | add' prompts)
while read -r options; do
    o="--seed 11 --eos 4095 $options"
    check "generate $options" "generate --whole --echo -n 14 $o prompts >all"
    ids all >want
    check '  every sequence has its tokens' \
        "jq -es 'length == 6 and all(.ids | length >= 15)' all"
    for how in '--threads 1' '--threads 2' '--parallel 1' '--parallel 3'; do
        generate --whole --echo -n 14 $how $o prompts >other 2>err || : >other
        ids other >got
        same "  $how: the same" want got
    done
    # What a run has written, prompt and all, is a prompt; mu goes along.
    generate --whole --echo -n 5 $o prompts |
        jq -c '{seq, ids} + if .mu then {mu} else {} end' >half
    generate --whole --echo -n 9 $o half >other 2>err || : >other
    ids other >got
    same '  cut in the middle and resumed: the same' want got
    # One process a token, each knowing nothing of the one before.
    jq -c 'select(.seq == "s0")' prompts >one
    for i in 1 2 3; do
        embed one | attend | unembed | sample $o >next || break
        jq -sc '.[0] + {ids: (.[0].ids + .[1].ids)}
            + if .[1].mu then {mu: .[1].mu} else {} end' one next >more
        mv more one
    done
    unembed -A <hidden >z
    for kernel in portable avx2; do
        PIPEFORMER_KERNEL=$kernel sample --rows --probs --top 9 --trail $o \
            <z >other 2>err || : >other
        sample --rows --probs --top 9 --trail $o <z >got
        is '  a record for each row' "$(grep -c '"top"' got)" "$rows"
        same "  the same bits with kernels $kernel" got other
    done
    is '  nor does a process have to remember anything' \
        "$(jq -c '.ids[-3:]' one)" \
        "$(jq -c 'select(.seq == "s0") | .ids[-14:-11]' all)"
done <<'END'
--temp 1
--temp 0.7 --top-k 40
--top-p 0.9
--min-p 0.05 --temp 1.5
--dynatemp 0.5:1.5
--typical 0.9
--top-n-sigma 1
--epsilon 0.002
--eta 0.002
--xtc 0.5:0.1 --temp 1
--repeat-penalty 1.5
--frequency-penalty 0.8 --repeat-last-n 8
--presence-penalty 1
--logit-bias 11:-inf
--dry 2:1.75:1
--mirostat 1:4
--temp 0.9 --mirostat 2:4:0.3
--preset llama.cpp
--preset hf
--dry 1 --repeat-penalty 1.1 -g
END

# --- They do what they are for (4095 ends a text).
check 'penalties: fewer ids come again' \
    'o="--whole -n 60 --seed 3 --logit-bias 4095:-inf"
    generate $o --temp 1 prompts >a
    generate $o --presence-penalty 5 --temp 1 prompts >b
    distinct="map(.ids | unique | length) | add"
    [ "$(jq -s "$distinct" b)" -gt "$(($(jq -s "$distinct" a) + 40))" ]'
check '--dry: no run of four comes again' \
    'generate --whole -n 60 --logit-bias 4095:-inf --dry 100:1:3 \
        --dry-breaker ids: -g prompts >b
    jq -es "all([.ids as \$i | range(\$i | length - 3)
        | \$i[.:. + 4] | tostring] | length == 57
            and length == (unique | length))" b'
check 'mirostat: the surprise comes near what was asked for' \
    'generate -n 100 --logit-bias 4095:-inf --seed 2 --mirostat 2:3:0.2 \
        prompts >b
    jq -es "map(.mu) | (add / length) | . > 2 and . < 9" b'

# --- A stop text is not printed, wherever tokens part it.
printf 'Once upon a time' | tok-encode -s >once
generate -n 30 --logit-bias 4095:-inf -g once | tok-decode >whole
for from in 5 17 40; do
    stop=$(cut -c $from-$((from + 5)) whole | head -n 1)
    generate -n 30 --logit-bias 4095:-inf -g --stop "$stop" once |
        tok-decode >part
    is "--stop '$stop'" "$(cat part)" \
        "$(python3 -c 'import sys
print(open("whole").read().split(sys.argv[1])[0])' "$stop")"
done

# --- A constraint is a filter in front of embed: digits and spaces only.
python3 -c '
import json, os
vocab = json.load(open(os.environ["FAIRY"] + "/vocab.json"))
print(json.dumps([i for t, i in vocab.items()
                  if set(t) <= set("0123456789\u0120")]))' >digits
cat >digits.sh <<'END'
jq -c --unbuffered --slurpfile allow digits '. + {allow: $allow[0]}'
END
seq 100 | sed 's/.*/The number &/' | tok-encode >hundred
check 'allow: digits and spaces, 100 of 100' \
    "generate --whole hundred -- 'sh digits.sh | embed | attend | unembed \
        | sample --temp 1 -n 8' >out
    jq -es 'length == 100 and all(.ids | length == 8)' out || exit
    tok-decode out | tee text | tr -d '0-9 \n' | wc -c | grep -qx 0 || exit
    tr -d ' \n' <text | wc -c | grep -vqx 0"
finish
