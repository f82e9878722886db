# Continuing prompts: `generate`, and the loop of plain pipes of DESIGN.md.
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

jq -c 'to_entries[] | {seq: "p\(.key + 1)", text: .value.text}' \
    "$GOLDEN/prompts.json" >texts
jq -c 'to_entries[] | {seq: "p\(.key + 1)", ids: .value.greedy_ids}' \
    "$GOLDEN/prompts.json" >golden
jq -r '.[].greedy_text' "$GOLDEN/prompts.json" >golden.text
tok-encode -r --special all texts >prompts

# tokens: records of a token each as a record a sequence, by seq
cat >tokens.jq <<'END'
group_by(.seq) | .[] | sort_by(.pos)
    | {seq: .[0].seq, ids: (map(.ids) | add)}
END
tokens() {
    jq -cs -f tokens.jq
}

# --- The next token.
want 'the pipe of the README gives the next token' \
    'tok-encode | embed | attend | unembed | sample | tok-decode' \
    'Once upon a time' 0 ','

# --- Greedy continuations.
for form in '' --whole '--parallel 1' '--parallel 2 --threads 1'; do
    pipe "generate -n 40 $form prompts" 'tee raw' 'jq -cs -f tokens.jq' >got
    all_zero "generate -n 40 $form ends with 0"
    same "generate -n 40 $form: the golden ids" got golden
done
generate -n 40 --whole prompts | tok-decode >got
same 'generate: the golden text' got golden.text
generate -n 40 --whole --echo prompts | tok-decode >got
jq -r '.[] | .text + .greedy_text' "$GOLDEN/prompts.json" >want
same 'generate --echo --whole: with the prompt before it' got want
generate -n 40 --echo prompts | tok-decode >got.texts
check 'generate --echo, a token a record: the same texts' \
    'sort want >a; sort got.texts >b; cmp a b'
json 'generate: a record a token, numbered, the last with done' \
    "grep p2 prompts | generate -n 5" '' \
    'length == 5 and ([.[].pos] == [15, 16, 17, 18, 19])
        and all(.[]; (.ids | length) == 1 and .seq == "p2")
        and ([.[].done] == [null, null, null, null, "length"])'
json 'generate --whole: pos, ids, done' "generate --whole -n 5 prompts" '' \
    '([.[].seq] == ["p1", "p2", "p3"]) and ([.[].pos] == [4, 15, 23])
        and all(.[]; (.ids | length) == 5 and .done == "length")'
json 'generate --whole --echo: no pos, the prompt first' \
    "generate --whole --echo -n 5 prompts" '' \
    '([.[] | .pos // 0] == [0, 0, 0]) and ([.[].ids | length] == [9, 20, 28])'

# --- The loop of plain pipes.
# loop N TEXTS: sets $statuses; text in got, records in raw
loop() {
    rm -f loop
    mkfifo loop
    pipe "tok-encode ${3-} --end $2" 'cat - loop' embed attend unembed \
        "sample -n $1" 'tee loop' 'tee raw' tok-decode >got
}
loop 40 texts '-r --special all'
all_zero 'the FIFO loop ends by itself, 0 at every stage'
jq -cs -f tokens.jq raw >ids
same 'the FIFO loop: the golden ids' ids golden
sort got >a
sort golden.text >b
same 'the FIFO loop: the golden texts, whole each' a b

# How they end, with any number of prompts.
many=300 huge=20000 texts=100000
[ $slow = 0 ] || { many=60 huge=1000 texts=3000; }
yes 'Once upon a time there was' | head -n $many \
    | awk '{ print $0, NR }' >lines.$many
for count in 0 1 3 $many; do
    head -n $count lines.$many >lines
    tok-encode lines >ids
    for n in 1 40; do
        loop $n lines
        all_zero "the FIFO loop ends: $count prompts, -n $n"
        is "  and so many tokens are drawn" "$(jq -c 'select(.ids)' raw \
            | wc -l)" $((count * n))
        is "  and so many texts" "$(jq -c 'select(.done) | .seq' raw \
            | sort -u | wc -l)" $count
        jq -cs -f tokens.jq raw >by.loop
        pipe 'cat ids' "generate -n $n" 'tee raw' tok-decode >got
        all_zero "generate ends: $count prompts, -n $n"
        jq -cs -f tokens.jq raw >by.generate
        check '  with the same ids' 'cmp by.loop by.generate'
        pipe 'cat ids' "generate --whole -n $n" 'tee raw' tok-decode >text
        all_zero "generate --whole ends: $count prompts, -n $n"
        is '  in the order of the prompts' "$(jq .seq raw)" \
            "$(jq .seq ids)"
        jq -cs -f tokens.jq raw >by.whole
        check '  with the same ids' 'cmp by.generate by.whole'
        check '  and the same texts' \
            "sort got >a; sort text >b; cmp a b"
    done
done
loop 3 /dev/null
all_zero 'an empty file: the FIFO loop ends at once'

# A record that fails in the loop: its error comes out, once, and the loop ends.
printf '%s\n' '{"seq":"a","ids":[5]}' '{"seq":"b","ids":[4096]}' \
    '{"seq":"c","ids":[6]}' '{"done":"input"}' >bad
for k in '' --keep-going; do
    rm -f loop
    mkfifo loop
    LIMIT=60 pipe 'cat bad' 'cat - loop' "embed $k" "attend $k" \
        "unembed $k" "sample -n 3 $k" 'tee loop' 'tee raw' \
        "tok-decode $k" >got
    is "the FIFO loop, a bad record, ${k:-without --keep-going}: it ends" \
        "$(echo "$statuses" | sed 's/141/0/g')" '0 0 1 1 1 1 0 0 1'
    is '  with one error record' "$(grep -c '"error"' raw)" 1
    is '  and one message' "$(echo "$messages" | grep -c .)" 1
    [ -z "$k" ] || is '  the others go on' \
        "$(jq -c 'select(.ids) | .seq' raw | sort | uniq -c | tr -s ' \n' ' ')" \
        ' 3 "a" 3 "c" '
done

# --- An end of text ends a sequence early.
eos='{"seq":"a","ids":[2412,643,258,529]}'
json '--eos' 'generate --eos 307,9' "$eos" \
    '([.[].ids[0]] == [11, 275, 307]) and .[2].done == "eos"'
json '--eos --whole: the id that ended it is in ids' \
    'generate --whole --eos 307' "$eos" \
    '.[0].ids == [11, 275, 307] and .[0].done == "eos" and .[0].pos == 4'
want 'tok-decode leaves it out' 'generate --eos 307 | tok-decode' "$eos" 0 \
    ', he'
want 'tok-decode leaves it out of whole ones' \
    'generate --whole --eos 307 | tok-decode' "$eos" 0 ', he'
want 'and of those with the prompt' \
    'generate --whole --echo --eos 307 | tok-decode' "$eos" 0 \
    'Once upon a time, he'
json 'without -n the window of 256 ends it' \
    'generate --whole --eos 4095 --threads 2' "$eos" \
    '.[0] | .done == "length" and (.ids | length) == 253'

# --- Names, labels, odd prompts.
json 'seq of any kind, and labels, come back' \
    'generate --whole -n 1' \
    '{"seq":1,"ids":[5],"mine":"one","n":1.50}
{"seq":"1","ids":[5],"mine":"two"}
{"ids":[5],"mine":"none"}
{"seq":"","ids":[5],"mine":"empty"}' \
    '([.[].mine] == ["one", "two", "none", "empty"])
        and ([.[].seq] == [1, "1", null, ""])'
want 'a number keeps its text' \
    'generate --whole -n 1 | grep -o "1\\.50"' \
    '{"seq":1,"ids":[5],"n":1.50}' 0 1.50
json 'ids from a .npy file' "generate -n 40 --whole '$GOLDEN/p1_ids.npy'" '' \
    ".[0].ids == $(sed -n 1p golden | jq -c .ids)"
json 'several files, one of them -' \
    "grep p2 prompts >two; generate -n 2 --whole '$GOLDEN/p1_ids.npy' - two" \
    '{"seq":"x","ids":[7]}' '[.[].pos] == [4, 1, 15]'
json 'a prompt in several records with more' \
    'generate --whole -n 40' \
    '{"seq":"p1","ids":[2412,643],"more":true}
{"seq":"p1","pos":2,"ids":[258],"more":true}
{"seq":"p1","pos":3,"ids":[529]}' ".[0] == .[-1]
    and .[0].ids == $(sed -n 1p golden | jq -c .ids)"
json 'with others in between, --echo' \
    'generate --whole --echo -n 2' \
    '{"seq":"p1","ids":[2412,643],"more":true}
{"seq":"q","ids":[7,8]}
{"seq":"p1","pos":2,"ids":[258,529]}' \
    '([.[].seq] == ["p1", "q"])
        and .[0].ids == [2412, 643, 258, 529, 11, 275]
        and .[1].ids[:2] == [7, 8]'
jq -nc '{seq: "long", ids: [range(256)]}' >long
json 'a prompt that fills the window: one token comes' 'generate -n 5 long' \
    '' 'length == 1 and .[0].pos == 256 and .[0].done == "length"'
jq -nc '{seq: "long", ids: [range(257)]}' >long
want 'a prompt longer than the window: refused' 'generate -n 5 long' '' 1 - \
    'generate: *257 ids*window is 256*'
want 'an id that the model does not have' 'generate -n 2 --whole' \
    '{"seq":"a","ids":[333,563]}
{"seq":"b","ids":[333,99999]}
{"seq":"c","ids":[333]}' 1 - 'generate: <stdin>:2: ids: 99999 at 1, *4096'
check '  those before it are finished' \
    'jq -es "map([.seq, .done]) == [[\"a\", \"length\"], [\"b\", null]]" out'
json 'a longer one than the pieces that generate makes of it' \
    "jq -c '{seq: 1, ids: [range(250)]}' /dev/null; \
        jq -nc '{seq: 1, ids: [range(250)]}' | generate --whole -n 3" '' \
    "(.[0].ids | length) == 3 and .[0].pos == 250"

# --- What is refused.
want 'a seq that is live twice' 'generate -n 40' \
    '{"seq":"a","ids":[5]}
{"seq":"a","ids":[6]}' 1 - \
    'generate: <stdin>:2: seq "a" is still being generated*'
check 'the error record says it' \
    'tail -n 1 out | jq -e "(.error | contains(\"<stdin>:2\")) and .seq == \"a\""'
want 'no seq, twice' 'generate -n 40' '{"ids":[5]}
{"ids":[6]}' 1 - 'generate: <stdin>:2: *still being generated*'
json 'the same seq again once it is done' \
    "{ r='{\"seq\":\"a\",\"ids\":[5]}'; echo \"\$r\"; sleep 1; echo \"\$r\"; } \
        | generate --whole -n 2" '' 'length == 2 and .[0] == .[1]'
want 'with --keep-going the others go on' \
    'generate -n 2 --whole --keep-going | jq -c "[.seq, (.error == null)]"' \
    '{"seq":"a","ids":[5]}
{"seq":"a","ids":[6]}
{"seq":"b","ids":[5]}' 0 '["a",true]
["a",false]
["b",true]' 'generate: <stdin>:2: *'
want 'no ids' 'generate -n 2' '{"seq":"a","ids":[]}' 1 - \
    'generate: <stdin>:1: *no ids*'
want 'no field ids' 'generate -n 2' '{"seq":"a"}' 1 - \
    'generate: <stdin>:1: *ids*'
want 'an id that the model does not have' 'generate -n 2' \
    '{"seq":"a","ids":[4096]}' 1 - 'generate: <stdin>:1: *4096'
check 'its error record comes out' \
    'tail -n 1 out | jq -e ".error | contains(\"4096\")"'
want 'an id that the model does not have, among others, --keep-going' \
    'generate --keep-going --whole -n 2 | jq -c "[.seq, (.ids | length)]"' \
    '{"seq":"a","ids":[1]}
{"seq":"b","ids":[4096]}
{"seq":"c","ids":[3]}' 0 '["a",2]
["b",0]
["c",2]' 'generate: <stdin>:2: *4096'
want 'its status is 1' 'generate --keep-going --whole -n 2 >/dev/null' \
    '{"seq":"b","ids":[4096]}
{"seq":"c","ids":[3]}' 1 '' 'generate: <stdin>:1: *4096'
want 'negative ids' 'generate -n 2' '{"seq":"a","ids":[-1]}' 1 - \
    'generate: <stdin>:1: *-1*'
want 'a prompt that begins in the middle' 'generate -n 2' \
    '{"seq":"a","pos":3,"ids":[1]}' 1 - 'generate: <stdin>:1: *position*3*'
want 'more, and then the end' 'generate -n 2' \
    '{"seq":"a","ids":[1],"more":true}' 1 - 'generate: *more*'
want 'a prompt cut off' 'generate -n 2' '{"seq":"a","ids":[1' 1 - \
    'generate: <stdin>:1: *'
want 'an error record ends it with 1, silently' 'generate -n 2' \
    '{"error":"tok-encode: x"}' 1 '{"error":"tok-encode: x"}'
want 'and has its place with --whole --keep-going' \
    'generate --whole --keep-going -n 1 | jq -c "[.seq, .error]"' \
    '{"seq":"a","ids":[1]}
{"seq":"b","error":"x: y"}
{"seq":"c","ids":[1]}' 0 '["a",null]
["b","x: y"]
["c",null]'
want 'a mark is no prompt' 'generate -n 2' '{"done":"input"}' 0 ''

# --- Several continuations of a prompt: what each would be under its name.
jq -c '.seq as $s | range(5) as $k | .seq = "\($s).\($k)"' prompts >named
for o in '' '--repeat-penalty 1.5 --dry 0.8 --temp 1 --stop the --seed 7'; do
    generate -n 30 $o named | jq -cs -f tokens.jq >want
    for form in '' --whole '--parallel 1' '--parallel 4 --threads 1' \
        '--parallel 7 --whole --echo'; do
        pipe "generate --samples 5 -n 30 $o $form prompts" 'tee raw' \
            'jq -cs -f tokens.jq' >got
        all_zero "--samples 5 $o $form ends with 0"
        case $form in
        *echo*) generate --whole --echo -n 30 $o named >echoed
            jq -c '[.seq, .ids]' echoed >a
            jq -c '[.seq, .ids]' raw >b
            same "  what the prompts give under five names each" b a ;;
        *) same "  what the prompts give under five names each" got want ;;
        esac
    done
done
is '--samples --whole: in order' "$(jq -r .seq raw | paste -s -d ' ')" \
    "$(jq -r .seq named | paste -s -d ' ')"
# Rows that are computed: of a prompt once all but the last id, of each
# continuation that one and the first token, which is fed back.
check '--samples: the prompt is computed once' \
    'generate --samples 6 prompts -- "embed -j | tee embedded |
        attend | unembed | sample -n 2" >out
    jq -s "map(.hidden // [] | length) | add" embedded >rows
    [ $(cat rows) = $(jq -s "map(.ids | length - 1) | add + 6 * 3 * 2" \
        prompts) ]'
json '--samples: a prompt of one id' 'generate --samples 3 --whole -n 4 -t 1 -s 1' \
    '{"seq":"a","ids":[5]}' \
    'map(.seq) == ["a.0", "a.1", "a.2"] and all(.[]; .ids | length == 4)
        and (map(.ids) | unique | length == 3) and all(.[]; .pos == 1)'
json '  without a name' 'generate --samples 2 --whole -n 1' '{"ids":[5,6]}' \
    'map(.seq) == ["0.0", "0.1"]'
json '  with labels' 'generate --samples 2 --whole -n 1' \
    '{"seq":1,"x":[1,{"y":2}],"ids":[5,6],"tokens":["a","b"]}' \
    'map(.x) == [[1, {"y": 2}], [1, {"y": 2}]]'
json '  in pieces' 'generate --samples 2 --whole -n 40' \
    '{"seq":"p1","ids":[2412,643],"more":true}
{"seq":"q","ids":[7]}
{"seq":"p1","pos":2,"ids":[258,529]}' 'map(.seq) == ["p1.0", "p1.1", "q.0", "q.1"]
    and .[0].ids == .[1].ids and .[0].ids == '"$(sed -n 1p golden | jq -c .ids)"
json '  that fills the window' \
    'jq -nc "{ids: [range(256)]}" | generate --samples 3 --whole' '' \
    'length == 3 and all(.[]; (.ids | length) == 1 and .done == "length")'
json '  --echo: the prompt before each' 'generate --samples 2 --echo -n 2' \
    '{"seq":"a","ids":[5,6]}' 'map(select(.more)) | map([.seq, .ids]) ==
        [["a.0", [5, 6]], ["a.1", [5, 6]]]'
json '  the name of one that is done may come again' \
    "{ r='{\"seq\":\"a\",\"ids\":[5,6]}'; echo \"\$r\"; sleep 1; echo \"\$r\"; } \
        | generate --samples 3 --whole -n 2" '' 'length == 6 and .[:3] == .[3:]'
want '  that of one that is not may not' 'generate --samples 2 -n 40' \
    '{"seq":"a","ids":[5,6]}
{"seq":"a","ids":[6]}' 1 - 'generate: <stdin>:2: seq "a" is still being*'
want '  nor that of a continuation' 'generate --samples 2 -n 40' \
    '{"seq":7,"ids":[5,6]}
{"seq":"7.1","ids":[6]}' 1 - 'generate: <stdin>:2: seq "7.1" is still being*'
want '  nor one of which a continuation would have it' \
    'generate --samples 2 --whole --keep-going -n 9 | jq -c "[.seq, (.error == null)]"' \
    '{"seq":"7.1","ids":[5,6]}
{"seq":7,"ids":[6]}
{"seq":8,"ids":[6]}' 0 '["7.1.0",true]
["7.1.1",true]
[7,false]
["8.0",true]
["8.1",true]' 'generate: <stdin>:2: seq "7.1" is still being*'
# In a pipe of one's own generate does not know the model's ids.
OWN='embed --keep-going | attend --keep-going | unembed --keep-going |
    sample --keep-going -n 2'
export OWN
want '  an id that the model does not have: all of them fail' \
    'generate --samples 3 --parallel 2 --keep-going --whole -- "$OWN" \
        | jq -c "[.seq, (.error // empty | sub(\"[0-9]+:\"; \"\"))]"' \
    '{"seq":"a","ids":[1,2]}
{"seq":"b","ids":[4096,3]}
{"seq":"c","ids":[3,4]}' 0 '["a.0"]
["a.1"]
["a.2"]
["b.0","embed: <stdin>: ids: 4096 at 0, but the model'"'"'s vocabulary is 4096"]
["b.1","embed: <stdin>: ids: 4096 at 0, but the model'"'"'s vocabulary is 4096"]
["b.2","embed: <stdin>: ids: 4096 at 0, but the model'"'"'s vocabulary is 4096"]
["c.0"]
["c.1"]
["c.2"]' '*4096*'
want '  or the first ends it' 'generate --samples 3 -n 2 | tail -n 1 \
    | jq -c "[.seq, (.error != null)]"' '{"seq":"b","ids":[4096,3]}' 0 \
    '["b",true]' '*4096*'
want '  an id at its end' 'generate --samples 2 --keep-going -- "$OWN" \
    | jq -c "[.seq, (.error != null)]"' '{"seq":"b","ids":[3,4096]}' 0 \
    '["b.0",true]
["b.1",true]' '*4096*'
want '  a prompt in parts that is no good, --whole' \
    'generate --samples 3 --keep-going --whole -n 2 | jq -c "[.seq, (.error == null)]"' \
    '{"seq":"a","ids":[1],"more":true}
{"seq":"b","ids":[2,3]}
{"seq":"a","pos":7,"ids":[1]}' 0 '["a",false]
["b.0",true]
["b.1",true]
["b.2",true]' 'generate: <stdin>:3: *position 7*'
# Memory: 60 continuations of a long prompt, 3 at a time, in what 4 need.
check '--samples: those that wait do not lose their prompt' \
    'jq -nc "{ids: [range(200)]}" | generate --samples 60 --parallel 3 --whole \
        -- "embed | attend --kv-mem 8M | unembed | sample -n 40 --temp 1 -s 1" \
        | jq -c .ids | sort -u | wc -l >n
    [ $(cat n) = 60 ]'

# --- The pipe of one's own.
want '-x prints a pipe' 'generate -x --threads 2 -n 3 --temp 0.5 --top-k 4' \
    '' 0 'embed -m fairy | attend -m fairy --threads 2 | unembed -m fairy --threads 2 | sample -m fairy --max-tokens 3 --temp 0.5 --top-k 4'
check 'that runs' \
    'generate -n 40 --whole prompts >a
    generate --whole prompts -- "$(generate -x -n 40)" >b; cmp a b'
mkdir 'a model'
ln -s "$FAIRY"/* 'a model'
check 'a model with a space in its name' \
    'generate -m "a model" -n 3 --whole prompts >a
    generate -n 3 --whole prompts >b; cmp a b
    generate -x -m "a model" | grep -F "'"'a model'"'"'
own='embed | attend | unembed | sample -n 40'
pipe 'cat prompts' "generate -- '$own'" 'jq -cs -f tokens.jq' >got
all_zero 'generate -- PIPE ends with 0'
same 'generate -- PIPE: the golden ids' got golden
pipe 'cat prompts' "generate --whole -- 'embed -j | jq -c --unbuffered . \
    | attend -j | unembed | sample -n 40'" 'jq -c "{seq, ids}"' >got
all_zero 'with jq in it'
same 'with jq in it: the golden ids' got golden
for begin in 'PIPEFORMER_THREADS=1 embed | attend' ' embed|attend' \
    '{ embed | attend; }' 'if true; then embed; fi | attend'; do
    pipe 'cat prompts' "generate -- '$begin | unembed | sample -n 40'" \
        'jq -cs -f tokens.jq' >got
    all_zero "a pipe that begins with $begin"
    same '  the golden ids' got golden
done
want 'a pipe whose status is turned round' "generate -- '! $own' | wc -l" \
    '{"ids":[1]}' 0 41 'generate: *status 1*'
cat >filter.py <<'END'
import json
import sys
# A filter in another language: never the comma (11).
for line in sys.stdin:
    r = json.loads(line)
    if "logits" in r:
        r["logits"][-1][11] = -1e30
    print(json.dumps(r), flush=True)
END
json 'with a Python filter that edits the logits' \
    "generate -n 4 2>/dev/null; generate --whole prompts -- 'embed | attend \
        | unembed -j | python3 filter.py | sample -n 20'" '' \
    'length == 3 and all(.[]; (.ids | length) == 20
        and (.ids | index(11)) == null)'
want 'options of sample with a pipe of one'"'"'s own' \
    "generate -n 3 -- '$own' >/dev/null" '' 2 '' 'generate: *usage*'
want 'no pipe behind --' 'generate --' '' 2 - 'generate: *usage*'
want 'two words behind --' 'generate -- a b' '' 2 - 'generate: *usage*'
want 'a pipe that is not there' "generate -- nosuchcommand" \
    '{"ids":[1]}' 1 - '*not found*generate: *127*'
check 'its error record' 'tail -n 1 out | jq -e .error'
want 'a pipe that ends too early' "generate -- true" '{"ids":[1]}' 1 - \
    'generate: *'
want 'a pipe that ends too early, no prompts' "generate -- true" '' 0 ''
want 'a pipe that fails without prompts' "generate -- false" '' 1 - \
    'generate: *status 1*'
want 'a pipe that gives nonsense' "generate -- 'sed -u \"s/.*/what/\"'" \
    '{"ids":[1]}' 1 - 'generate: *from the pipe*'
want 'a pipe that gives what nobody asked for' \
    "generate -- 'echo \"{\\\"seq\\\":9,\\\"ids\\\":[1]}\"'" '{"ids":[1]}' 1 \
    - 'generate: *not given*'
want 'a stage of it that fails' \
    "timeout 20 generate -- 'embed | attend | unembed | sh -c \"head -c 9 >/dev/null; \
        exit 3\" | sample -n 2'" '{"ids":[1]}' 1 - 'generate: *'
cat >killed.sh <<'END'
# generate, with its attend killed in the middle: the status of generate
yes '{"ids":[5]}' | head -n 300 \
    | jq -c --slurp 'to_entries[] | .value + {seq: .key}' >in
timeout 20 generate -q -- "embed | sh -c 'echo \$\$ >pid; exec attend' \
    | unembed | sample -n 200" <in >tokens 2>/dev/null &
until [ -s tokens ]; do sleep 0.1; done
kill -9 "$(cat pid)"
wait $!
echo $?
tail -n 1 tokens | jq -e 'has("error")'
END
want 'a stage of it that is killed' 'sh killed.sh 2>/dev/null' '' 0 '1
true'
want 'a model that is not there' 'generate -m /nowhere -n 1' '{"ids":[1]}' 1 \
    - '*/nowhere*'
want 'a closed output' 'generate -n 40 prompts | head -n 1 | wc -l' '' 0 1

# --- A constraint is a filter in the pipe, which says at each step what may
# be drawn: here digits and spaces.
jq -nc '{ids: [range(4096)]}' | tok-decode -t |
    awk -F '\t' '$2 ~ /^[ 0-9]+$/ { print $1 }' >digits
cat >digits.py <<'END'
import json
import sys
allow = [int(line) for line in open("digits")]
for line in sys.stdin:
    print(json.dumps(json.loads(line) | {"allow": allow}), flush=True)
END
runs=100
[ $slow = 0 ] || runs=10
check "allow, from Python: $runs of $runs are digits and spaces" \
    "generate --whole --samples $runs prompts -- 'python3 digits.py | embed |
        attend | unembed | sample -n 20 --temp 1.5' | tok-decode >got
    [ \$(grep -cx '[ 0-9]\{20,\}' got) = \$((3 * $runs)) ]"
head -n 1 prompts >one
check "allow, from jq: $runs runs of $runs" \
    "for s in \$(seq $runs); do
        generate one -- \"jq -c --unbuffered --slurpfile d digits '.allow = \\\$d' |
            embed | attend | unembed | sample -n 20 --temp 1.5 --seed \$s\" |
            tok-decode
    done >got
    [ \$(grep -cx '[ 0-9]\{20,\}' got) = $runs ]
    [ \$(sort -u got | wc -l) = $runs ]"

# --- A text that ends a sequence, and is not shown.
stop="generate -n 40 --stop 'so tired' one"
want '--stop' "$stop | tok-decode" '' 0 ', he was '
want '--stop --whole' "$stop --whole | tok-decode" '' 0 ', he was '
want '--stop --whole --echo' "$stop --whole --echo | tok-decode -r | jq -r .text" '' 0 \
    'Once upon a time, he was '
want '--stop that is begun and does not come' \
    "generate -n 9 --stop ' he was so fast' --whole one | tok-decode
    generate -n 9 --stop ' he was so fast' one | tok-decode" '' 0 \
    ', he was so tired that he could not
, he was so tired that he could not'
want '--stop that is begun, and then the limit' \
    "generate -n 4 --stop ' was so tired' one | tok-decode
    generate -n 4 --stop ' was so tired' --whole one | tok-decode" '' 0 \
    ', he was so
, he was so'
json '  held is in the record' \
    "generate -n 4 --stop ' was so tired' --whole one" '' \
    '.[0].held == 7 and .[0].done == "length"'

# --- The same ids for any number of threads and of sequences in flight.
jq -nc 'range(40) | {seq: ., ids: [range(1 + . * 7 % 60) | . * 61 % 4000]}' \
    >forty
generate -n 30 --temp 0.9 --top-k 50 --seed 4 --whole --threads 1 \
    --parallel 1 forty >alone
for form in '--threads 2 --parallel 1' '--threads 1 --parallel 32' \
    '--threads 2 --parallel 32' '--threads 2 --parallel 7'; do
    check "the same bits with $form" "generate -n 30 --temp 0.9 --top-k 50 \
        --seed 4 --whole $form forty | cmp - alone"
done
drawn='--temp 0.9 --top-k 50 --seed 4 --eos 99999 --whole --echo'
check 'the same ids, cut after 11 tokens and gone on' \
    "generate -n 11 $drawn forty | generate -n 19 $drawn |
        jq -c '[.seq, .ids]' >a
    generate -n 30 $drawn forty | jq -c '[.seq, .ids]' | cmp - a"

# --- Memory is bounded by what is live, not by what came: a fifth of the
# prompts against all of them, each stage's peak.
for count in $((huge / 5)) $huge; do
    yes '{"ids":[2412,643]}' | head -n $count \
        | jq -c --slurp 'to_entries[] | .value + {seq: .key}' >ids
    rm -f rss.*
    pipe "python3 '$PY' rss rss.generate generate --whole ids -- \
        'embed | python3 \"$PY\" rss rss.attend attend | unembed \
        | python3 \"$PY\" rss rss.sample sample -n 2'" \
        "jq -c '[.seq, .ids]'" >got
    all_zero "$count prompts through generate --whole -n 2 end"
    is '  a record each' "$(wc -l <got)" $count
    is '  in their order' "$(tail -n 1 got | jq '.[0]')" $((count - 1))
    is '  with the same ids each' \
        "$(jq -c '.[1]' got | sort -u | wc -l)" 1
    for stage in generate attend sample; do
        eval "${stage}_$count=$(cat rss.$stage)"
        echo "# peak of $stage at $count: $(cat rss.$stage) KiB"
    done
done
# bounded WHAT: at most 16 MiB more than a fifth takes
bounded() {
    eval "few=\$${1}_$(($2 / 5)) all=\$${1}_$2"
    check "$1: memory is bounded ($few and $all KiB)" \
        "[ $all -lt $((few + 16384)) ]"
}
[ $slow = 1 ] || for stage in generate attend sample; do
    bounded $stage $huge
done

# Texts through embed | attend that nobody ends: the cache has a limit.
for count in $((texts / 5)) $texts; do
    pipe "yes 'The fox.' | head -n $count" \
        "python3 '$PY' rss rss.encode tok-encode" \
        "python3 '$PY' rss rss.embed embed" \
        "python3 '$PY' rss rss.attend attend --kv-mem 16M" 'tail -c 1 >last'
    is "$count texts through tok-encode | embed | attend" "$statuses" \
        '0 0 0 0 0'
    for stage in encode embed attend; do
        eval "${stage}_$count=$(cat rss.$stage)"
        echo "# peak of $stage at $count: $(cat rss.$stage) KiB"
    done
done
[ $slow = 1 ] || for stage in encode embed attend; do
    bounded $stage $texts
done
# Marked as done they go at once, and the default limit is never reached.
check 'texts that are ended free their memory' \
    "yes '{\"seq\":1,\"ids\":[464,5]}' | head -n $((texts / 5)) \
        | awk '{ sub(\"1\", NR); print
            print \"{\\\"seq\\\":\" NR \",\\\"pos\\\":2,\\\"done\\\":\\\"x\\\"}\" }' \
        | embed | python3 '$PY' rss rss attend --kv-mem 1M | tail -c 1"

# What a run has written, prompt and all, is a prompt: nothing of its end stays.
check 'a run goes on where another ended' \
    "echo '{\"seq\":1,\"ids\":[2412,643,258,529]}' >p
    generate -n 10 p | tok-decode >want
    generate --whole --echo -n 6 p | generate --echo -n 4 | tok-decode >got
    [ \"\$(cat got)\" = \"Once upon a time\$(cat want)\" ]"
want 'a prompt whose done is no string' 'generate' '{"ids":[1],"done":5}' 1 - \
    'generate: <stdin>:1: done: is no string'
finish
