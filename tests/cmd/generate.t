# generate: its options.  (What it generates, how it ends, pipes of one's own:
# pipe/generate.t.)
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

p='{"seq":"a","ids":[2412,643,258,529]}'
json 'a record a token' 'generate -n 3' "$p" \
    'map(.ids) == [[11], [275], [307]] and map(.pos) == [4, 5, 6]
        and map(.done) == [null, null, "length"] and all(.seq == "a")'
json '--whole' 'generate -n 3 --whole' "$p" 'length == 1
    and .[0].ids == [11, 275, 307] and .[0].pos == 4
    and .[0].done == "length"'
json '--echo: the prompt, then the tokens' 'generate -n 2 --echo' "$p" \
    '.[0].ids == [2412, 643, 258, 529] and .[0].more == true
        and .[1].ids == [11] and .[2].ids == [275]'
json '--echo --whole' 'generate -n 2 --echo --whole' "$p" \
    '.[0].ids == [2412, 643, 258, 529, 11, 275] and (.[0] | has("pos") | not)'
json '--top rides along' 'generate -n 1 --top 2' "$p" \
    '.[0].top | length == 2 and .[0].id == 11 and .[0].text == ","'
json 'a seed: twice the same' \
    'cat >p; generate -n 9 -t 1 -s 3 p; generate -n 9 -t 1 -s 3 p' "$p" \
    'length == 18 and (map(.ids) | .[:9] == .[9:])'
json 'a seed drawn is the same for all tokens' 'generate -n 9 -t 1' "$p" \
    'map(.seed) | unique | length == 1'
json 'options of sample keep their order' \
    'generate -n 4 -t 0.7 -k 5 -p 0.9 -s 1 --whole' "$p" \
    '.[0].ids | length == 4'
want '-x: in the order written' \
    'generate -x --threads 3 -p 0.9 -t 0.7 -n 4 --eos 1,2 | sed "s/.*| //"' \
    '' 0 'sample -m fairy --top-p 0.9 --temp 0.7 --max-tokens 4 --eos 1,2'
want '-x runs nothing' 'generate -x -m "/no where" --threads 1 >/dev/null' \
    "$p" 0 ''
want '-x with a pipe of one'"'"'s own' "generate -x -- 'a | b'" '' 0 'a | b'
json '-m' 'generate -m "$FAIRY" -n 1' "$p" '.[0].ids == [11]'
json 'PIPEFORMER_MODEL' 'PIPEFORMER_MODEL=$FAIRY generate -n 1' "$p" \
    '.[0].ids == [11]'
json '--parallel 1' \
    'generate -n 2 --parallel 1' '{"seq":1,"ids":[5]}
{"seq":2,"ids":[6]}' 'map(.seq) == [1, 1, 2, 2]'
json '--samples' 'generate --samples 2 -n 2 --temp 1 --seed 1 --whole' "$p" \
    'map(.seq) == ["a.0", "a.1"] and .[0].ids != .[1].ids
        and all(.[]; .pos == 4 and .done == "length")'
want 'options of sample are handed on as they are' \
    "generate -x --threads 1 --stop \"it's\" --logit-bias 11:-inf --min-p 0.1 \
        --preset hf | sed 's/.*| //'" '' 0 \
    "sample -m fairy --stop 'it'\\''s' --logit-bias 11:-inf --min-p 0.1 --preset hf"
want 'a model that is not there: said once' 'generate -m nope 2>&1 >/dev/null' \
    "$p" 1 'generate: model nope: no such directory, no such name under vocab/, not in the local HuggingFace cache'
want 'a vocabulary is no model' 'generate -m gpt2' "$p" 1 - \
    'generate: gpt2 is a vocabulary only*'
want 'nor in -x' 'generate -x -m gpt2' "$p" 1 - \
    'generate: gpt2 is a vocabulary only*'
for o in --probs --rows; do
    want "$o: nothing would be drawn" "generate $o" "$p" 2 - \
        "generate: *$o*usage*"
done
for o in '--samples 0' '--samples x' '--parallel 0' '--parallel x' '--parallel -1' "--parallel ''" \
    '-n 0' '-n x' '-t x' '--top-p 2' '--seed -1' '--eos x' '--draw 1'; do
    want "$o" "generate $o" "$p" 2 - 'generate: --*usage*'
done
check 'the commands of its own build, whatever PATH says' \
    'g=$(command -v generate); mkdir bin; printf "#!/bin/sh\nexit 9\n" \
        >bin/embed; chmod +x bin/embed
    echo "{\"ids\":[5]}" | PATH=$PWD/bin:$PATH "$g" -n 1'
want 'nothing in, nothing out' 'generate' '' 0 ''
run 'generate -n 3 --stats' "$p"
case $(cat err) in
'generate: 1 records, 3 tokens, '*) ok '--stats counts tokens' ;;
*) not_ok '--stats counts tokens' <err ;;
esac

# --- An encoder does not generate.
python3 "$PF_SOURCE/tests/small_bert.py" bert head
want 'an encoder' 'generate -m ./bert' '{"ids":[3]}' 1 - \
    'generate: ./bert is an encoder (bert), which does not continue texts'
finish
