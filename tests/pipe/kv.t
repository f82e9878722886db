# The KV cache's options: as F16, with the same bits for any cut, number of
# threads and kernels; and as a file that another process goes on from.
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

# 120 ids: over a block of 64 positions.
tensor -s data:0:120 -o json "$GOLDEN/ppl_ids.npy" | jq -c .data >ids
A=$(cat ids)
# rec SEQ FROM TO [FIELDS]: ids [FROM, TO) of them; SEQ is JSON
rec() {
    jq -nc "{seq: $1, pos: $2, ids: ${A}[$2:$3]} + {${4-}}"
}
# hidden SEQ: rows of that sequence
hidden() {
    python3 "$PY" rows hidden "$1"
}
# row N: bytes from row N on
row() {
    tail -c +$((1 + $1 * 640))
}

# --- F16: the same bits however it is cut and computed.
rec '"a"' 0 120 | embed >whole
attend --kv-type f16 whole | hidden '"a"' >want16
attend whole | hidden '"a"' >want
is 'f16 is something else than f32' "$(cmp -s want want16; echo $?)" 1
attend --kv-type f32 whole | hidden '"a"' >got
same '--kv-type f32 is the default' got want
for n in 1 7 16 50; do
    at=0
    while [ $at -lt 120 ]; do
        to=$((at + n < 120 ? at + n : 120))
        rec '"a"' $at $to
        at=$to
    done | embed >cut.$n
    for threads in 1 2; do
        attend --kv-type f16 --threads $threads cut.$n | hidden '"a"' >got
        same "f16: $n rows a record, $threads threads" got want16
    done
done
for kernel in portable avx2 avx512; do
    PIPEFORMER_KERNEL=$kernel attend whole >/dev/null 2>&1 || {
        skip "f16: $kernel" 'not on this processor'; continue; }
    for in in whole cut.7 cut.1; do
        PIPEFORMER_KERNEL=$kernel attend --kv-type f16 $in | hidden '"a"' >got
        same "f16: $kernel, $in" got want16
    done
done
{ rec '"b"' 0 11; rec '"a"' 0 30; rec '"b"' 11 20; rec '"c"' 0 3
  rec '"a"' 30 120; } | embed | attend --kv-type f16 | hidden '"a"' >got
same 'f16: among others' got want16
{ rec '"x"' 0 71; rec '"a"' 71 120 'fork: "x"'; } | embed |
    attend --kv-type f16 | hidden '"a"' >got
row 71 <want16 >want.71
same 'f16: a fork' got want.71
attend --kv-type f16 -a --tap 'blocks.*' whole | hidden '"a"' >got
same 'f16: looking changes no bit' got want16

# --- F16: the numbers, by the rules.
attend --kv-type f16 --tap 'blocks.*.attn.*' --kv-save f16.st whole >taps
cat >numbers.py <<'END'
import math
import struct
from stream import *


def half(x):
    return struct.unpack("e", struct.pack("e", x))[0]


with open("taps", "rb") as f:
    (_, tap), = read(f)
with open("f16.st", "rb") as f:
    (_, kv), = read(f)
T, H, D = 120, 4, 40
for l in range(6):
    at = {n: floats(tap["blocks.%d.attn.%s" % (l, n)])
          for n in ("q", "k", "v", "attn_scores", "pattern", "z")}
    held = {}
    for n in "kv":
        t = kv["blocks.%d.attn.%s" % (l, n)]
        assert t.dtype == "F16" and tuple(t.shape) == (T, H, D)
        held[n] = floats(t)
        assert list(held[n]) == [half(x) for x in at[n]], (l, n)
    for h in range(H):
        for t in (0, 1, 40, 63, 64, 119):
            row = (h * T + t) * T
            p = at["pattern"][row:row + T]
            s = [sum(at["q"][(t * H + h) * D + d]
                     * held["k"][(j * H + h) * D + d] for d in range(D))
                 / math.sqrt(D) for j in range(t + 1)]
            e = [math.exp(x - max(s)) for x in s]
            for j in range(t + 1):
                assert abs(s[j] - at["attn_scores"][row + j]) < 1e-4
                assert abs(e[j] / sum(e) - p[j]) < 1e-5
            for d in range(D):
                z = sum(p[j] * held["v"][(j * H + h) * D + d]
                        for j in range(t + 1))
                assert abs(z - at["z"][(t * H + h) * D + d]) < 1e-5
END
check 'f16: rounded to nearest, and scores, pattern and z follow' \
    'python3 numbers.py'
# A pattern that is put in is weighed with the values as they are held.
check 'f16: its own scores and patterns put back' \
    'attend --kv-type f16 --patch taps whole | tensor -s hidden -o npy >a
    tensor -s hidden -o npy taps | cmp - a'

# --- Saving: the tensors and numbers of the taps.
{ rec 7 0 20; rec '"a\u00e9\"b"' 0 9; rec 7 20 33; rec '"7"' 0 2
  jq -nc "{ids: ${A}[0:5]}"; } | embed >some
check '--kv-save' 'attend --kv-save saved some >through'
json 'a record a sequence, in the order of use' 'tensor -o json saved' '' '
    map({seq, pos, T: (.["blocks.5.attn.v"] | length)})
    == [{seq: "a\u00e9\"b", pos: 0, T: 9}, {seq: 7, pos: 0, T: 33},
        {seq: "7", pos: 0, T: 2}, {seq: null, pos: 0, T: 5}]'
json 'with the model and all layers' 'tensor -o json saved' '' 'all(.[];
    (.model | length) == 16 and (with_entries(select(.key
        | startswith("blocks."))) | length) == 12)'
check 'the records go through as without' 'attend some | cmp - through'
check 'a file of one sequence' 'attend --kv-save one whole >/dev/null'
attend --tap 'blocks.*.attn.k,blocks.*.attn.v' whole >taps
check 'its numbers are those of the taps' \
    'tensor --drop hidden --drop ids -o safetensors taps >t
    tensor --diff t one'
ls *.part 2>/dev/null >parts
is 'nothing else is left' "$(cat parts)" ''
# Sequences that end are written then, and not again.
{ rec '"a"' 0 5; rec '"b"' 0 6; echo '{"seq":"a","pos":5,"done":"eos"}'
  rec '"c"' 0 7; rec '"b"' 6 8; echo '{"done":"input"}'; } | embed >ends
json 'a mark writes its sequence' \
    'attend --kv-save e ends >/dev/null; tensor -o json e' '' \
    'map([.seq, (.["blocks.0.attn.k"] | length)])
        == [["a", 5], ["c", 7], ["b", 8]]'
json 'no sequences: an empty file' \
    'attend --kv-save e </dev/null; tensor -o json e' '' '. == []'

# --- Loading: as if there had been no break.
for n in 1 15 16 17 64 100; do
    rec '"a"' 0 $n | embed | attend --kv-save s >/dev/null
    rec '"a"' $n 120 | embed >rest
    row $n <want >want.rest
    attend --kv-load s rest | hidden '"a"' >got
    same "goes on at $n" got want.rest
    attend --kv-load one rest | hidden '"a"' >got
    same "goes back to $n" got want.rest
    attend --kv-load taps rest | hidden '"a"' >got
    same "goes on at $n, from taps" got want.rest
    rec '"a"' 0 $n | embed | attend --kv-type f16 --kv-save s >/dev/null
    row $n <want16 >want.rest
    attend --kv-type f16 --kv-load s rest | hidden '"a"' >got
    same "f16: goes on at $n" got want.rest
    attend --kv-type f16 --kv-load one rest >/dev/null
done
rec '"b"' 100 120 'fork: "a"' | embed >fork
rec '"c"' 100 120 'fork: "a"' | embed >>fork
row 100 <want >want.rest
attend --kv-load one fork >out
for seq in b c; do
    hidden "\"$seq\"" <out >got
    same "forked: $seq" got want.rest
done
rec '"a"' 100 120 | embed >rest
check 'NDJSON loads too' 'tensor -o json one >one.json
    attend --kv-load one.json rest >a; attend --kv-load one rest | cmp - a'
check 'saved as f16, loaded as f32 and saved again: the same numbers' \
    'attend --kv-load f16.st --kv-save again </dev/null
    tensor --diff f16.st again 2>diff; grep -q "F16.*F32" diff ||
        tensor --diff f16.st again
    attend --kv-type f16 --kv-load again --kv-save twice </dev/null
    cmp f16.st twice'
check 'two files, and what is loaded is saved' \
    'attend --kv-load saved --kv-load one --kv-save both </dev/null
    cat saved one | cmp - both'
check 'a file may replace itself' \
    'cp one self; attend --kv-load self --kv-save self </dev/null
    cmp one self'
json 'a second time under a name: the last one' \
    'cat s saved one | attend --kv-load - --kv-save e /dev/null
    tensor -o json e' '' '[.[] | select(.seq == "a")
        | .["blocks.0.attn.k"] | length] == [120]'
# Fewer positions, all tensors alike.
cut=$(for l in 0 1 2 3 4 5; do
    for x in k v; do printf ' -s blocks.%d.attn.%s:0:30' $l $x; done; done)
rec '"a"' 30 120 | embed >rest
row 30 <want >want.rest
tensor $cut -o safetensors one >trim
attend --kv-load trim rest | hidden '"a"' >got
same 'trimmed to 30' got want.rest
rec '"a"' 31 120 | embed >rest31
want 'and no more are there' 'attend --kv-load trim rest31 >/dev/null' '' 1 '' \
    'attend: rest31:1: seq "a": *holds 30 positions, record starts at 31*'
# A dump in pieces: each goes on from the one before.
attend --tap 'blocks.*.attn.k,blocks.*.attn.v' cut.50 >pieces
row 100 <want >want.rest
rec '"a"' 100 120 | embed >rest
attend --kv-load pieces rest | hidden '"a"' >got
same 'taps in pieces' got want.rest
echo '{"seq":"a","pos":120,"done":"eos"}' >>pieces
attend --kv-load pieces rest | hidden '"a"' >got
same 'and marks are passed over' got want.rest

# --- A model in halves: each has its own.
attend -l 0-2 --kv-save lo whole | attend --kv-save hi >/dev/null
json 'the first half' 'tensor -o json lo' '' '.[0]
    | has("blocks.2.attn.k") and (has("blocks.3.attn.k") | not)'
json 'the second half' 'tensor -o json hi' '' '.[0]
    | has("blocks.3.attn.k") and (has("blocks.2.attn.k") | not)'
attend -l 0-2 --kv-load lo rest | attend --kv-load hi | hidden '"a"' >got
same 'both go on' got want.rest
attend -l 0-2 --kv-load one rest | attend -l 3-5 --kv-load one |
    hidden '"a"' >got
same 'from the whole' got want.rest
want 'a half is no whole' 'attend --kv-load hi rest >/dev/null' '' 1 '' \
    'attend: rest:1: seq "a": *another layer'
want 'nor the first one' 'attend --kv-load lo rest >/dev/null' '' 1 '' \
    'attend: --kv-load: lo:1: the record has no blocks.3.attn.k'
attend -l 3,1 --kv-save odd whole >out
attend -l 3,1 --kv-load odd rest | hidden '"a"' >got
hidden '"a"' <out | row 100 >want.odd
same 'blocks in any order' got want.odd
attend --part attn -l 0 --kv-save half whole | hidden '"a"' | row 100 >want.odd
attend --part attn -l 0 --kv-load half rest | hidden '"a"' >got
same 'half a block' got want.odd

# --- What does not load.
bad() {
    want "$1" "attend --kv-load bad rest >/dev/null" '' 1 '' \
        "attend: --kv-load: bad:1: $2"
}
jq -c 'del(.["blocks.2.attn.v"])' one.json >bad
bad 'a tensor is missing' '*blocks.2.attn.v'
jq -c '.["blocks.2.attn.v"] |= .[1:]' one.json >bad
bad 'another T' 'blocks.2.attn.v: has the shape \[119, 4, 40\]*120*'
jq -c '.["blocks.0.attn.k"] |= map(.[1:])' one.json >bad
bad 'other heads' 'blocks.0.attn.k: *shape \[120, 3, 40\]*\[T, 4, 40\]'
jq -c '.["blocks.5.attn.k"] |= map(add)' one.json >bad
bad 'two axes' 'blocks.5.attn.k: *shape \[120, 160\]*'
jq -c '.["blocks.3.attn.k"][7][1][2] = null' one.json >bad
bad 'NaN' 'blocks.3.attn.k: an infinity or NaN in row 7'
jq -c '.model = "0000000000000000"' one.json >bad
bad 'another model' '*model 0000000000000000*'
jq -c '.pos = 3' one.json >bad
bad 'a piece without the one before' '*holds 0 positions*starts at 3'
jq -c '.seq = [1]' one.json >bad
bad 'no name' 'seq: *'
echo '{"error":"embed: x"}' >bad
bad 'an error record' '*error*'
cp rest bad
bad 'a record of something else' 'the record has no blocks.0.attn.k'
attend --heads 3,2,1,0 --tap 'blocks.*.attn.k,blocks.*.attn.v' whole >bad
bad 'heads in another order' 'heads: *'
{ head -c 5000 one; } >bad
bad 'cut short' '*'
{ cat one; jq -c '.["blocks.0.attn.v"] |= .[1:]' one.json; } >bad
want 'in the second record' 'attend --kv-load bad rest >/dev/null' '' 1 '' \
    'attend: --kv-load: bad:2: *'
want 'no such file' 'attend --kv-load none rest >/dev/null' '' 1 '' \
    'attend: --kv-load: none: *'

# --- Memory: half of it, and what has to go is told of.
page=$((6 * 160 * 2 * 16 * 4 + 64)) half=$((6 * 160 * 2 * 16 * 2 + 64))
rec '"a"' 0 32 | embed >two
rec '"a"' 0 33 | embed >three
check 'two pages of f32' "attend --kv-mem $((2 * page)) two"
want 'and not three' "attend --kv-mem $((2 * page)) three >/dev/null" '' 1 '' \
    '*--kv-mem*'
check 'two pages of f16 in half of that' \
    "attend --kv-type f16 --kv-mem $((2 * half)) two"
want 'and not three' \
    "attend --kv-type f16 --kv-mem $((2 * half)) three >/dev/null" '' 1 '' \
    '*--kv-mem*'
{ rec '"a"' 0 16; rec '"b"' 0 16; rec '"c"' 0 20; } | embed >abc
want 'sequences that were dropped' \
    "attend --kv-mem $((3 * page)) --kv-save e abc >/dev/null" '' 0 '' \
    'attend: --kv-save: 1 sequence had been dropped*'
json 'are not in the file' 'tensor -o json e' '' 'map(.seq) == ["b", "c"]'
attend --kv-save e abc >/dev/null
check 'what fits loads' "attend --kv-mem $((4 * page)) --kv-load e </dev/null"
want 'what does not is an error' \
    "attend --kv-mem $((3 * page)) --kv-load e </dev/null >/dev/null" '' 1 '' \
    'attend: --kv-load: e:3: *--kv-mem'
want 'nor one that is too long' \
    "attend --kv-mem $page --kv-load one </dev/null >/dev/null" '' 1 '' \
    'attend: --kv-load: one:1: *--kv-mem'

# --- A run that fails leaves what was there.
echo old >keep
echo '{"seq":"z","pos":9,"ids":[1]}' | embed >gap
for i in 1 2 3 4 5 6; do cat whole; done >long
for i in 1 2 3; do cat long; done >longer && mv longer long
want 'a bad record' 'cat whole gap | attend --kv-save keep >/dev/null' '' 1 '' \
    '*holds 0 positions*keep was not written*'
is 'the file is as it was' "$(cat keep; ls keep.part 2>/dev/null)" old
run 'cat whole gap rest | attend --keep-going --kv-save kept >/dev/null'
is '--keep-going: status 1' $status 1
check 'and the file is there' 'attend --kv-save all whole >/dev/null
    tensor -o json kept | jq -es "map(.seq) == [\"a\"]"'
echo '{"error":"embed: no"}' >broken
run 'cat whole broken | attend --kv-save keep >/dev/null'
is 'an error record: status 1' $status 1
is 'and the file is as it was' "$(cat keep; ls keep.part 2>/dev/null)" old
run 'trap "" XFSZ; ulimit -f 64; attend --kv-save keep whole | cat >/dev/null'
case $(cat err) in
*'--kv-save: keep.part: '*) ok 'a full disk is told of' ;;
*) not_ok 'a full disk is told of' <err ;;
esac
is 'and the file is as it was then' "$(cat keep; ls keep.part 2>/dev/null)" old
# The output fails: at its end, and in its midst.
for input in whole long; do
    for output in /dev/full '&-'; do
        want "$input: output to $output" \
            "attend --kv-save keep $input >$output" '' 1 '' \
            'attend: <stdout>: cannot write: *keep was not written*'
        is "$input: the file is as it was" \
            "$(cat keep; ls keep.part 2>/dev/null)" old
    done
done
# Records that are written as they come, and nothing at the end.
run "{ cat whole; sleep 1; } | attend --kv-save keep >&-"
is 'closed output is no part' "$status $(cat keep; ls keep.part 2>&-)" '1 old'
want 'two files' 'attend --kv-save keep --kv-save b whole' '' 2 - \
    'attend: --kv-save: one file, not keep and b*'
is 'are none' "$(cat keep; ls b keep.part b.part 2>/dev/null)" old
want 'no directory' 'attend --kv-save no/file whole >/dev/null' '' 1 '' \
    'attend: --kv-save: no/file.part: cannot open: *'
mkdir dir
want 'a directory' 'attend --kv-save dir whole >/dev/null' '' 1 '' \
    'attend: --kv-save: dir: *no ordinary file'
ln -s keep link
want 'a link' 'attend --kv-save link whole >/dev/null' '' 1 '' \
    'attend: --kv-save: link: *no ordinary file'

# --- An encoder has none.
check 'a small BERT' "python3 '$PF_SOURCE/tests/small_bert.py' bert"
for option in '--kv-type f16' '--kv-type f32' '--kv-save x' '--kv-load one'; do
    want "an encoder: $option" "attend -m bert $option </dev/null >/dev/null" \
        '' 2 - "attend: ${option%% *}: *encoder*"
done

# --- In the loop of generate.
echo '{"seq":"g","ids":[2412,643,258,529]}' >prompt
generate -n 6 --whole --eos 4095 prompt >want.ids
generate --whole prompt -- 'embed | attend --kv-save g | unembed |
    sample -n 6 --eos 4095' >got.ids
same 'generate: the same tokens' got.ids want.ids
json 'generate: and what it went through' 'tensor -o json g' '' \
    'map([.seq, (.["blocks.0.attn.k"] | length)]) == [["g", 9]]'

finish
