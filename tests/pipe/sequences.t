# Sequences in attend: rewinding, beginning anew, fork, marks, and what goes
# first when the memory for keys and values is short.
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

# 60 ids: over three pages of 16 positions.
tensor -s data:0:60 -o json "$GOLDEN/ppl_ids.npy" | jq -c .data >ids
A=$(cat ids)
# rec SEQ FROM TO [FIELDS]: ids [FROM, TO) of them
rec() {
    jq -nc "{seq: \"$1\", pos: $2, ids: ${A}[$2:$3]} + {${4-}}"
}
# hidden SEQ [FIRST-BYTE]: rows of that sequence in `out`
hidden() {
    python3 "$PY" rows hidden "\"$1\""
}
# row N [FILE]: bytes from row N on
row() {
    tail -c +$((1 + $1 * 640)) ${2-}
}

rec a 0 60 | embed | attend >out
hidden a <out >whole
is 'the whole run has 60 rows of 160' "$(wc -c <whole)" $((60 * 640))

# --- Continuing and rewinding, at every boundary of a page and off it.
for n in 1 15 16 17 31 32 33 47 48 59; do
    row $n whole >want
    { rec a 0 $n; rec a $n 60; } | embed | attend | hidden a >got
    same "continued at $n" got whole
    # It holds 60; back to n, and on from there.
    { rec a 0 60; rec a $n 60; } | embed | attend | hidden a | row 60 >got
    same "rewound from 60 to $n" got want
    # Other ids from n on are gone after rewinding.
    { rec a 0 $n; jq -nc "{seq: \"a\", pos: $n, ids: ${A}[0:23]}"
      rec a $n 60; } | embed | attend | hidden a | row $((n + 23)) >got
    same "rewound over another continuation at $n" got want
done
# What was dropped is not there any more.
{ rec a 0 60; rec a 20 30; rec a 40 50; } | embed >in
want 'rewinding drops what lies behind: a gap is an error' \
    'attend in >/dev/null' '' 1 '' \
    'attend: in:3: seq "a": *holds 30 positions, record starts at 40'

# --- Position 0 begins anew.
{ jq -nc "{seq: \"a\", ids: ${A}[30:50]}"; rec a 0 60; } | embed | attend \
    | hidden a | row 20 >got
same 'pos 0 begins the sequence anew' got whole
{ jq -nc "{seq: \"a\", ids: ${A}[30:50]}"; rec a 0 60 | jq -c 'del(.pos)'; } \
    | embed | attend | hidden a | row 20 >got
same 'no pos is pos 0' got whole
rec a 0 60 | jq -c 'del(.seq)' | embed | attend >out
python3 "$PY" rows hidden <out >got
same 'no seq is a sequence too' got whole
rec a 0 60 | jq -c 'del(.seq)' >anon
{ jq -c '.ids |= .[:7]' anon; jq -c '.ids |= .[7:] | .pos = 7' anon; } \
    | embed | attend | python3 "$PY" rows hidden >got
same 'the anonymous sequence goes on' got whole
# 1 and "1" differ; so do 1 and none.
{ rec 1 0 20; rec 1 0 30 | jq -c '.seq = 1'; rec 1 20 60; } \
    | embed | attend | hidden 1 >got
same 'seq 1 and seq "1" are two' got whole
want 'seq 1 does not continue "1"' 'embed | attend >/dev/null' \
    "$(rec 1 0 5; rec 1 5 6 | jq -c '.seq = 1')" 1 '' \
    'attend: <stdin>:2: seq 1: *holds 0 positions, record starts at 5'
{ rec x 0 20 | jq -c '.seq = "\u0000a"'
  rec x 0 9 | jq -c '.seq = "\u0000"'
  rec x 20 60 | jq -c '.seq = "\u0000a"'; } | embed | attend \
    | python3 "$PY" rows hidden '"\u0000a"' >got
same 'a seq may hold U+0000' got whole
# The same string in other words.
{ rec a 0 20; rec a 20 60 | sed 's/"a"/"\\u0061"/'; } | embed | attend \
    | hidden a >got
same '"\u0061" continues "a"' got whole

# --- Fork.
for n in 0 1 15 16 17 40 59 60; do
    row $n whole >want
    { rec a 0 60; [ $n = 60 ] || rec b $n 60 'fork: "a"'; } >in
    if [ $n = 60 ]; then
        jq -nc "{seq: \"b\", pos: 60, fork: \"a\", ids: [1, 2, 3]}" >>in
        { jq -c '{seq: "w", ids: .}' ids
          echo '{"seq":"w","pos":60,"ids":[1,2,3]}'; } \
            | embed | attend | hidden w | row 60 >want
    fi
    embed in | attend | hidden b >got
    same "fork at $n" got want
    # The one it forks goes on as if nothing had happened, and the other way
    # round: neither writes into what both share.
    { rec a 0 30; jq -nc "{seq: \"b\", fork: \"a\",
        pos: ([30, $n] | min), ids: ${A}[5:15]}"; rec a 30 60; } \
        | embed | attend | hidden a >got
    same "forked at $n or 30, it goes on unharmed" got whole
    { rec a 0 30; jq -nc "{seq: \"b\", fork: \"a\",
        pos: ([30, $n] | min), ids: ${A}[([30, $n] | min):]}"
      jq -nc "{seq: \"a\", ids: ${A}[11:44]}"; } >in
    embed in | attend | hidden b >got
    row $((n < 30 ? n : 30)) whole >want
    same "forked at $n or 30, the other begun anew" got want
done
{ rec a 0 30; rec b 30 40 'fork: "a"'; rec c 40 50 'fork: "b"'
  rec a 30 60; echo '{"seq":"a","pos":60,"done":"stop"}'
  echo '{"seq":"b","pos":40,"done":"stop"}'; rec c 50 60; } \
    | embed | attend | hidden c >got
row 40 whole >want
same 'a fork of a fork outlives both' got want
{ rec a 0 30; rec a 20 60 'fork: "a"'; } | embed | attend | hidden a \
    | row 30 >got
row 20 whole >want
same 'a fork of itself is rewinding' got want
{ rec a 0 30; jq -nc "{seq: \"b\", ids: ${A}[7:50]}"
  rec b 20 60 'fork: "a"'; } | embed | attend | hidden b | row 43 >got
same 'a fork replaces what the sequence held' got want
want 'fork of a sequence that is not there' 'embed | attend >/dev/null' \
    "$(rec b 5 9 'fork: "nobody"')" 1 '' \
    'attend: <stdin>:1: seq "b": *forks*holds 0 positions*starts at 5'
want 'fork beyond what is held' 'embed | attend >/dev/null' \
    "$(rec a 0 4; rec b 5 9 'fork: "a"')" 1 '' \
    'attend: <stdin>:2: seq "b": *forks*holds 4 positions*starts at 5'
want 'fork of a wrong kind' 'embed | attend >/dev/null' \
    "$(rec a 0 4; rec b 4 9 'fork: [1]')" 1 '' 'attend: <stdin>:2: *fork*'

# --- Marks.
mark='{"seq":"a","pos":10,"done":"eos","x":[1, 2.50]}'
want 'a mark frees the sequence' 'embed | attend >/dev/null' \
    "$(rec a 0 10; echo "$mark"; rec a 10 12)" 1 '' \
    'attend: <stdin>:3: seq "a": *holds 0 positions, record starts at 10'
want 'a mark is passed on by embed, attend, unembed' \
    'embed -j | attend -j | unembed -j' "$mark" 0 "$mark"
want 'a mark of an unknown sequence is harmless' \
    'embed -j | attend -j | unembed -j | sample | jq -c .ids' \
    "$mark$(echo; rec b 0 3)" 0 "$(rec b 0 3 | embed | attend | unembed \
        | sample | jq -c .ids)"
want 'a mark with ids: nothing is computed for it' \
    'embed -j | attend -j | unembed -j' \
    '{"seq":"a","pos":10,"done":"length","ids":[7]}' 0 \
    '{"seq":"a","pos":10,"done":"length","ids":[7]}'
want 'done at pos 0 is no mark' \
    'embed -j | attend -j | unembed -j | jq -c "[.seq, (.logits | length)]"' \
    '{"seq":"a","done":"eos","ids":[7]}' 0 '["a",1]'
want 'done without seq is a mark' 'embed -j | attend -j | unembed -j' \
    '{"done":"input"}' 0 '{"done":"input"}'
{ rec a 0 30; rec b 0 30; echo "$mark"; rec b 30 60; } | embed | attend \
    | hidden b >got
same 'a mark of one leaves the others alone' got whole

# --- Memory.  A page of fairy's keys and values: 16 positions x 6 layers x 2
# x 160 x 4 bytes = 122880, and a little.
{ rec a 0 60; rec b 0 60; rec a 30 60; } >in
check 'two of 60 positions fit in 1M' \
    'embed in | attend --kv-mem 1M >/dev/null'
{ rec a 0 60; rec b 0 60; rec c 0 60; rec a 30 60; } | embed >in
pipe 'cat in' 'attend --kv-mem 1100K' 'jq -Rrc "fromjson? | .error // empty"' \
    >got
is 'three do not: the least recently used went' "$statuses" '0 1 0'
case $messages in
'attend: <stdin>:4: seq "a": '*'holds 0 positions, record starts at 30'*--kv-mem*)
    ok 'the message says so' ;;
*) echo "$messages" >why; not_ok 'the message says so' <why ;;
esac
{ rec a 0 60; rec b 0 60; rec a 59 60; rec c 0 60; rec a 30 60; } | embed >in
check 'what was used last stays' 'attend --kv-mem 1100K in >/dev/null'
{ rec a 0 60; rec b 0 60; rec a 59 60; rec c 0 60; rec b 30 60; } | embed >in
want 'and the other went' 'attend --kv-mem 1100K in >/dev/null' '' 1 '' \
    'attend: in:5: seq "b": *holds 0 positions*'
want 'one that does not fit at all' 'embed | attend --kv-mem 300K >/dev/null' \
    "$(rec a 0 60)" 1 '' 'attend: <stdin>:1: seq "a": *--kv-mem*'
want 'no memory at all' 'embed | attend --kv-mem 0 >/dev/null' \
    "$(rec a 0 1)" 1 '' 'attend: <stdin>:1: seq "a": *--kv-mem*'
# Many at once, in little memory: batches shrink, the bits stay.
{ for s in b c d e f g h i j k l; do rec $s 0 37; done; rec a 0 60; } \
    | embed >in
attend --kv-mem 500K in | hidden a >got
same 'twelve at once in the memory of one' got whole
attend --kv-mem 500K in >got
attend in >want
same 'and all of them with the same bytes' got want
# Freed by marks: any number, one after the other.
for i in 1 2 3 4 5 6 7 8 9; do
    rec $i 0 60
    echo "{\"seq\":\"$i\",\"pos\":60,\"done\":\"eos\"}"
done >in
{ rec a 0 60; cat in; rec a 30 60; } | embed >in2
check 'marks free: one that goes on survives nine that came and went' \
    'attend --kv-mem 1100K in2 >/dev/null'
{ rec a 0 16; rec b 16 17 'fork: "a"'; rec c 16 17 'fork: "a"'
  rec d 16 17 'fork: "a"'; rec a 16 17; } | embed >in
check 'forks share pages: five with one page in common fit in 5' \
    'attend --kv-mem 616K in >/dev/null'

# --- The window.
jq -nc "{seq: \"a\", ids: [range(256)]}" >in
check 'the window of 256 can be filled' 'embed in | attend >/dev/null'
want 'not more than filled' 'embed >/dev/null' \
    "$(jq -nc '{ids: [range(257)]}')" 1 '' 'embed: <stdin>:1: *25[67]*'
want 'not beyond by pos' 'embed >/dev/null' '{"pos":256,"ids":[1]}' 1 '' \
    'embed: <stdin>:1: *256*'
finish
