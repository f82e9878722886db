# attend: hidden through the model's blocks.  (Its numbers: pipe/golden.t; bits:
# pipe/bits.t; sequences and memory: pipe/sequences.t.)
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

echo '{"seq":"a","ids":[464,5,9]}' | embed >in
json 'hidden -> hidden, with layer' 'attend -j in' '' '.[0]
    | (.hidden | length) == 3 and (.hidden[0] | length) == 160
        and .layer == 6 and .seq == "a" and .ids == [464, 5, 9]
        and (has("attn") | not)'
check 'as -j or binary: the same numbers' \
    'attend -j in | tensor -s hidden -o npy >a
    attend in | tensor -s hidden -o npy >b; cmp a b'

# --- Layers.
for list in 0 0-5 0-2,3 1 3-4 5; do
    last=${list##*[-,]}
    json "-l $list: layer is $((last + 1))" "attend -j -l $list in" '' \
        ".[0].layer == $((last + 1))"
done
check '-l 0,1,2,3,4,5 is all' \
    'attend in >a; attend -l 0,1,2,3,4,5 in >b; cmp a b'
check '-l 0-1,2-3,4-5 is all' \
    'attend in >a; attend -l 0-1,2-3,4-5 in >b; cmp a b'
check 'in the order written' \
    'attend -l 1,0 in >a; attend -l 0 in >x; attend -l 1 in \
        | attend -l 0 | tensor -s hidden -o npy >b; \
        tensor -s hidden -o npy a | cmp - b'
check 'without -l it goes on where hidden is' \
    'attend -l 0-3 in | attend >a; attend in >b; cmp a b'
check '-l runs a block again, if asked' \
    'attend in | attend -l 5 >a; tensor -j a'
want 'not without -l' 'attend in | attend >/dev/null' '' 1 '' \
    'attend: <stdin>:1: *all 6 blocks*'
for list in 6 0-6 99; do
    want "-l $list: there is no such block" "attend -l $list in >out2" '' \
        '[12]' '' 'attend: *-l: *' >why2 || :
    tap_skip=
done
finish
