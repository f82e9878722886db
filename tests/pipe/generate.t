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
    '{"seq":"a","ids":[4096]}' 1 - '*embed: *4096*'
check 'its error record comes out' \
    'tail -n 1 out | jq -e ".error | contains(\"4096\")"'
want 'an id that the model does not have, among others, --keep-going' \
    'generate --keep-going --whole -n 2 | jq -c "[.seq, (.ids | length)]"' \
    '{"seq":"a","ids":[1]}
{"seq":"b","ids":[4096]}
{"seq":"c","ids":[3]}' 0 '["a",2]
["b",0]
["c",2]' 'embed: <stdin>:2: *4096*'
want 'its status is 1' 'generate --keep-going --whole -n 2 >/dev/null' \
    '{"seq":"b","ids":[4096]}
{"seq":"c","ids":[3]}' 1 '' 'embed: <stdin>:1: *4096*'
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
# bounded WHAT: at most 8 MiB more than a fifth takes
bounded() {
    eval "few=\$${1}_$(($2 / 5)) all=\$${1}_$2"
    check "$1: memory is bounded ($few and $all KiB)" \
        "[ $all -lt $((few + 8192)) ]"
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
