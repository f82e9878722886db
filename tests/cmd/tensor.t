# tensor: a look at records, and other forms of them.
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

r='{"seq":"a","hidden":[[1,2,3],[4,5,6]],"ids":[7,8]}'

# --- Listing.
want 'a line a record' tensor "$r
{\"x\":1}
{\"q\":[[[1]]],\"mask\":[true]}" 0 'hidden F32 [2,3]	ids I32 [2]

q F32 [1,1,1]	mask BOOL [1]'
json '-j' 'tensor -j' "$r
{}" '.[0] == {"record": 1, "seq": "a", "tensors": [
    {"name": "hidden", "dtype": "F32", "shape": [2, 3]},
    {"name": "ids", "dtype": "I32", "shape": [2]}]}
    and .[1] == {"record": 2, "tensors": []}'
want 'every rectangular array of numbers or booleans is a tensor' tensor \
    '{"a":[1,2],"b":[[true],[false]],"c":["x"],"d":[[1],[2,3]],"e":{"f":[1]},"g":7,"h":[[],[]]}' \
    0 'a F32 [2]	b BOOL [2,1]	h F32 [2,0]'
want 'a scalar of .npy' "python3 -c '
h = \"{\\\"descr\\\": \\\"<f4\\\", \\\"fortran_order\\\": False, \\\"shape\\\": (), }\\n\"
import sys, struct
sys.stdout.buffer.write(b\"\\x93NUMPY\\1\\0\" + struct.pack(\"<H\", len(h))
    + h.encode() + struct.pack(\"<f\", 7))' >s.npy; tensor s.npy
    tensor -o json s.npy" '' 0 'data F32 []
{"data":7}'

# --- Converting.
want '-o json' 'tensor -o json' "$r" 0 "$r"
check '-o safetensors' "printf '%s\n' '$r' | tensor -o safetensors \
    | python3 -c 'import sys
from stream import *
(f, t), = read(sys.stdin.buffer)
assert f == {\"seq\": \"a\"} and floats(t[\"ids\"]) == (7, 8)
assert t[\"hidden\"].shape == [2, 3]'"
check '-o npy' "printf '%s\n' '$r' | tensor -o npy -s hidden >h.npy
    python3 -c 'from stream import *
t = npy(\"h.npy\")
assert t.shape == [2, 3] and floats(t) == (1, 2, 3, 4, 5, 6)'"
check '-o npy: records one after the other' \
    "printf '%s\n' '$r' '$r' | tensor -o npy -s hidden >two; \
        cat h.npy h.npy | cmp - two"
want '-o npy of two tensors' 'tensor -o npy' "$r" 1 - \
    'tensor: <stdin>:1: *2 tensors*-s*'
want '-o of something else' 'tensor -o yaml' "$r" 2 - 'tensor: -o: *yaml*'
want 'two actions' 'tensor -o json --summary' "$r" 2 - '*only one*'
want 'numbers beyond float32 stay whole' 'tensor -o json' \
    '{"big":[16777217,9007199254740993],"hidden":[16777217]}' 0 \
    '{"big":[16777217,9007199254740993],"hidden":[16777216]}'

# --- Selecting.
# s SLICE EXPECTED: of hidden [2,3]
s() {
    want "-s hidden:$1" "tensor -o json -s 'hidden:$1' | jq -c .hidden" "$r" \
        0 "$2"
}
s '' '[[1,2,3],[4,5,6]]'
s : '[[1,2,3],[4,5,6]]'
s 0 '[1,2,3]'
s 1 '[4,5,6]'
s -1 '[4,5,6]'
s 0,0 1
s -1,-1 6
s 0:1 '[[1,2,3]]'
s :,0 '[1,4]'
s :,-1: '[[3],[6]]'
s :,:2 '[[1,2],[4,5]]'
s :,::2 '[[1,3],[4,6]]'
s ::-1 '[[4,5,6],[1,2,3]]'
s :,::-1 '[[3,2,1],[6,5,4]]'
s :,2:0:-1 '[[3,2],[6,5]]'
s :,1:99 '[[2,3],[5,6]]'
s 5: '[]'
s :,9: '[[],[]]'
s :,-99:1 '[[1],[4]]'
s :,99::-2 '[[3,1],[6,4]]'
s 1:0 '[]'
s ::99 '[[1,2,3]]'
s ::-99 '[[4,5,6]]'
for bad in 2 -3 0,3 x 0,0,0 ::0 :, 0x1 --1 0:1:1:1 '0 ' , \
    99999999999999999999 -99999999999999999999 ::9223372036854775807 \
    9223372036854775807 -9223372036854775808; do
    want "-s hidden:'$bad'" "tensor -o json -s 'hidden:$bad'" "$r" 1 - \
        'tensor: <stdin>:1: *hidden*'
done
json 'several -s, in that order' \
    'tensor -o json -s ids:1: -s hidden:0 | jq -c keys_unsorted' "$r" \
    '.[0] == ["seq", "ids", "hidden"]'
want 'the same twice' 'tensor -o json -s ids -s ids' "$r" 1 - \
    'tensor: <stdin>:1: *ids*twice*'
want 'one that is not there' 'tensor -o json -s nothing' "$r" 1 - \
    'tensor: <stdin>:1: *no tensor nothing*'
want 'names with dots' 'tensor -o json -s blocks.0.attn.q:0' \
    '{"blocks.0.attn.q":[[1],[2]]}' 0 '{"blocks.0.attn.q":[1]}'
want '--drop a tensor and a field' 'tensor -o json --drop ids --drop seq' \
    "$r" 0 '{"hidden":[[1,2,3],[4,5,6]]}'
want '--drop what is not there' 'tensor -o json --drop nothing' "$r" 0 "$r"
want '-s and --drop' 'tensor -s hidden:0' "$r" 0 'hidden F32 [3]'

# --- Summary.
json '--summary' 'tensor --summary' \
    '{"seq":3,"hidden":[[1,-2],[3,null]],"ids":[4]}' '
    .[0].record == 1 and .[0].seq == 3 and .[0].name == "hidden"
    and .[0].shape == [2, 2] and .[0].min == -2 and .[0].max == 3
    and (.[0].mean - 2 / 3 | fabs) < 1e-9 and .[0].nan == 1
    and (.[0].std - 2.0548046676563256 | fabs) < 1e-9
    and (.[0].norm - (14 | sqrt) | fabs) < 1e-9
    and .[1] == {"record": 1, "seq": 3, "name": "ids", "dtype": "I32",
        "shape": [1], "min": 4, "max": 4, "mean": 4, "std": 0, "norm": 4,
        "nan": 0}'
json '--summary of nothing and of NaN' 'tensor --summary' \
    '{"hidden":[]}
{"hidden":[null]}' '.[0].min == null and .[0].norm == 0 and .[0].nan == 0
    and .[1].max == null and .[1].nan == 1'
json '--summary with an infinity' 'tensor --summary | jq -c .max' \
    '{"hidden":[1,1e999]}' '.[0] > 1e308'

# --- Comparing: 0 same, 1 different, 2 trouble.
echo "$r" >a
# diff NAME RECORD OPTIONS STATUS OUTPUT
diff_() {
    want "--diff: $1" "tensor --diff a $3" "$2" "$4" "$5"
}
diff_ 'the same' "$r" '' 0 ''
diff_ 'fields do not count' "${r%\}},\"x\":1}" '' 0 ''
diff_ 'a number' '{"hidden":[[1,2,3],[4,5,7]],"ids":[7,8]}' '' 1 \
    '<stdin>:1: hidden: 1 of 6 elements differ, most at element 5: 7, there 6'
diff_ 'within --atol' '{"hidden":[[1,2,3],[4,5,7]],"ids":[7,8]}' '--atol 1' \
    0 ''
diff_ 'not within --atol' '{"hidden":[[1,2,3],[4,5,7]],"ids":[7,8]}' \
    '--atol 0.99' 1 -
diff_ 'within --rtol' '{"hidden":[[1,2,3],[4,5,7]],"ids":[7,8]}' \
    '--rtol 0.17' 0 ''
diff_ 'not within --rtol' '{"hidden":[[1,2,3],[4,5,7]],"ids":[7,8]}' \
    '--rtol 0.16' 1 -
diff_ 'both together' '{"hidden":[[1,2,3],[4,5,7]],"ids":[7,8]}' \
    '--atol 0.5 --rtol 0.1' 0 ''
diff_ 'ids' '{"hidden":[[1,2,3],[4,5,6]],"ids":[7,9]}' '' 1 -
diff_ 'a shape' '{"hidden":[1,2,3,4,5,6],"ids":[7,8]}' '' 1 -
diff_ 'one that is missing' '{"hidden":[[1,2,3],[4,5,6]]}' '' 1 -
diff_ 'one that is too many' "${r%\}},\"q\":[1]}" '' 1 -
diff_ 'NaN is NaN only' '{"hidden":[[1,2,3],[4,5,null]],"ids":[7,8]}' \
    '--atol 9e9' 1 -
diff_ 'a record too many' "$r
$r" '' 1 -
diff_ 'a record too few' '' '' 1 -
diff_ '-q' '{"hidden":[[1,2,3],[4,5,7]],"ids":[7,8]}' -q 1 ''
diff_ 'one tensor' '{"hidden":[[1,2,3],[4,5,6]],"ids":[9]}' '-s hidden' 0 ''
diff_ 'a slice' '{"hidden":[[1,2,3],[0,0,0]],"ids":[9]}' '-s hidden:0' 0 ''
want '--diff: NaN equals NaN' "echo '{\"q\":[null,1e999]}' >b
    tensor --diff b" '{"q":[null,1e999]}' 0 ''
want '--diff: infinities of either sign differ' "echo '{\"q\":[1e999]}' >b
    tensor --atol 9e99 --rtol 1 --diff b >/dev/null" '{"q":[-1e999]}' 1 ''
want '--diff: an infinity and a number differ, whatever is allowed' \
    "echo '{\"q\":[1e999]}' >b
    tensor --atol 1 --rtol 1 --diff b >/dev/null" '{"q":[1]}' 1 ''
want '--diff: a .npy file has no names' 'tensor --diff h.npy -s hidden' "$r" \
    0 ''
want '--diff: trouble: no file' 'tensor --diff /no/file' "$r" 2 - \
    'tensor: /no/file: *'
want '--diff: trouble: no operand file' 'tensor --diff a /no/file' '' 2 - \
    'tensor: /no/file: *'
want '--diff: trouble: bad there' 'echo what >b; tensor --diff b' "$r" 2 - \
    'tensor: *b*'
want '--diff: trouble: bad here' 'tensor --diff a' 'what' 2 - \
    'tensor: <stdin>:1: *'
want '--diff: trouble: an error record' 'tensor --diff a' \
    '{"error":"x"}' 2 -
want '--diff: a wrong option' 'tensor --diff a --atol -1' '' 2 - \
    'tensor: --atol*'
want '--atol without --diff' 'tensor --atol 1' "$r" 2 - 'tensor: *--diff*'
want '--diff is strict: the least bit' "printf '{\"hidden\":[1.0000001]}' >b
    tensor --diff b >/dev/null" '{"hidden":[1]}' 1 ''

# --- --cosine: rows of a matrix, or the vectors of all records.
want '--cosine of a matrix: its rows' 'tensor --cosine q' \
    '{"a":1.50,"q":[[3,4],[4,3],[-6,-8],[0,0]],"ids":[1]}' 0 \
    '{"a":1.50,"ids":[1],"cosine":[[1,0.96,-1,null],[0.96,1,-0.96,null],'\
'[-1,-0.96,1,null],[null,null,null,null]]}'
want '--cosine of matrices: each by itself' \
    'tensor --cosine q | jq -c .cosine' \
    '{"q":[[1,0],[0,2]]}
{"q":[[5]]}
{"q":[]}' 0 '[[1,0],[0,1]]
[[1]]
[]'
want '--cosine: a vector among matrices' 'tensor --cosine x' '{"x":[[1,2]]}
{"x":[1,2]}' 1 - \
    'tensor: <stdin>:2: x: has the shape [[]2], those before were matrices'
want '--cosine of vectors: each with those of all records' \
    'tensor --cosine embedding' '{"seq":"x","embedding":[3,4],"l":"one"}
{"seq":"y","embedding":[4,3],"ids":[5]}
{"seq":"x","pos":3,"done":"eos"}
{"embedding":[-4,-3]}' 0 '{"seq":"x","l":"one","cosine":[1,0.96,-0.96]}
{"seq":"y","ids":[5],"cosine":[0.96,1,-1]}
{"seq":"x","pos":3,"done":"eos"}
{"cosine":[-0.96,-1,1]}'
echo '{"x":[1,0]}' >one
echo '{"x":[1,1]}' >two
want '  also of several files' 'tensor --cosine x one two one | jq -c .cosine' \
    '' 0 '[1,0.70710677,1]
[0.70710677,1,0.70710677]
[1,0.70710677,1]'
want '--cosine after -s' 'tensor -s x::,0 --cosine x' \
    '{"x":[[1,9],[2,9]]}
{"x":[[2,9],[-1,9]]}' 0 '{"cosine":[1,0]}
{"cosine":[0,1]}'
want '--cosine: --keep' 'tensor --keep x --cosine x one' '' 0 \
    '{"x":[1,0],"cosine":[1]}'
want '--cosine of integers' 'tensor --cosine ids' '{"ids":[3,4]}' 0 \
    '{"cosine":[1]}'
want '--cosine: vectors of different length' 'tensor --cosine x' \
    '{"x":[1,2]}
{"x":[1,2,3]}' 1 - 'tensor: <stdin>:2: x: 3 numbers, those before have 2'
is '  nothing but the error is written' "$(jq -c keys out)" '["error"]'
want '  with --keep-going, the others are' \
    'tensor --keep-going --cosine x | jq -c .cosine' '{"x":[1,2]}
{"x":[1,2,3]}
{"x":[2,4]}' 0 - 'tensor: <stdin>:2: *'
is '  in their places' "$(cat out)" '[1,1]
null
[1,1]'
printf '%s\n' '{"error":"p"}' '{"a":[1,2]}' '{"error":"q"}' '{"a":[2,4]}' \
    '{"seq":7,"a":[1,2,3]}' '{"b":1}' 'x' '{"done":"input"}' '{"a":[2,-1]}' >errors
want '--cosine: error records keep their place' \
    'tensor --cosine a --keep-going errors no errors |
        jq -c "[.cosine, .error != null, .seq]"' '' 0 \
    '[null,true,null]
[[1,1,0,1,1,0],false,null]
[null,true,null]
[[1,1,0,1,1,0],false,null]
[null,true,7]
[null,true,null]
[null,true,null]
[null,false,null]
[[0,0,1,0,0,1],false,null]
[null,true,null]
[null,true,null]
[[1,1,0,1,1,0],false,null]
[null,true,null]
[[1,1,0,1,1,0],false,null]
[null,true,7]
[null,true,null]
[null,true,null]
[null,false,null]
[[0,0,1,0,0,1],false,null]' '*errors:5: a: 3 numbers*no: cannot open*errors:7: *'
want '  and end the run without' 'tensor --cosine a' '{"a":[1,2]}
{"error":"q"}
{"a":[1,3]}' 1 '{"error":"q"}'
want '--cosine: a matrix among vectors' 'tensor --cosine x' '{"x":[1,2]}
{"x":[[1,2]]}' 1 - \
    'tensor: <stdin>:2: x: has the shape [[]1, 2], those before were vectors'
want '--cosine: more axes' 'tensor --cosine x' '{"x":[[[1,2]]]}' 1 - \
    'tensor: <stdin>:1: x: has the shape *, not [[]C] or [[]T, C]; -s takes*'
want '--cosine: not there' 'tensor --cosine y one' '' 1 - \
    'tensor: one:1: y: the record has no such tensor'
want '--cosine of F8' "python3 -c '
from stream import *
sys.stdout.buffer.write(document({\"x\": Tensor(\"F8_E5M2\", [2], b\"\0\x3c\")}))
' | tensor --cosine x" '' 0 '{"cosine":[1]}'
cat >f8.py <<'END'
# Records of all F8 numbers, or a check of what they read as.
import json
import math
import struct
import sys
from stream import *

def value(v, bits, bias):
    exp, man = (v & 0x7f) >> bits, v & (1 << bits) - 1
    x = math.ldexp((exp > 0) + man / 2 ** bits, max(exp, 1) - bias)
    if bits == 3 and v & 0x7f == 0x7f or bits == 2 and exp == 31 and man:
        x = math.nan
    elif bits == 2 and exp == 31:
        x = math.inf
    return -x if v & 0x80 else x

if sys.argv[1] == "make":
    every = bytes(range(256))
    sys.stdout.buffer.write(document({"a": Tensor("F8_E4M3", [256], every),
                                      "b": Tensor("F8_E5M2", [256], every)}))
else:
    got = json.loads(input())
    for name, bits, bias in ("a", 3, 7), ("b", 2, 15):
        assert len(got[name]) == 256
        for v, y in enumerate(got[name]):
            x = value(v, bits, bias)
            if y is not None: # the shortest that reads as this float32
                y, = struct.unpack("f", struct.pack("f", y))
            assert y is None if math.isnan(x) else x == y, (name, v, x, y)
END
python3 f8.py make >f8
check 'F8: -o json has all values' 'tensor -o json f8 | python3 f8.py check'
json 'F8: --summary' 'tensor -j --summary f8' '' '.[0].max == 448 and
    .[0].nan == 2 and .[1].nan == 6'
want '--cosine with -o' 'tensor -o json --cosine x' '' 2 - \
    'tensor: only one of *--cosine*'
json '--cosine: the sentences of the page' "printf '%s\n' \
    'Once there was a king' 'Once there was a queen' 'They were all dead' |
    tok-encode | embed | attend | tensor -s hidden:-1 --cosine hidden" '' \
    'map(.cosine) | .[0][1] > 0.8 and .[0][2] < 0.4 and . == transpose
        and all(length == 3)'

# --- One word in three sentences, layer by layer (pipeformer(7)).
mini=$SHARED/models/all-MiniLM-L6-v2
if [ -d "$mini" ]; then
    printf '%s\n' 'a green apple fell from the tree' \
        'apple the company sells a new phone' \
        'new york is called the big apple' | tok-encode -m "$mini" |
        embed -m "$mini" >apples
    json 'the apple: in the end the company is further off than the city' '
        for l in 0 1 2 3 4 5; do
            attend -m "'"$mini"'" -j -l 0-$l apples |
                jq -c ".hidden = .hidden[[3, 1, 7][.seq]]" |
                tensor --cosine hidden | jq -sc "map(.cosine)"
        done' '' 'length == 6 and all(. == transpose)
            and .[5][0][1] < .[0][0][1] - 0.1
            and .[5][0][1] < .[5][0][2] - 0.1
            and (.[5][0][1] - 0.59 | fabs) < 0.01
            and (.[5][0][2] - 0.81 | fabs) < 0.01'
    # And as the page has it, word for word but for where the model lies.
    sed -n '/^export PIPEFORMER_MODEL/,/^\.Ed/p' \
        "$PF_SOURCE/man/pipeformer.7" | sed -e '1d;$d' -e 's/\\e/\\/g' >apple.sh
    check 'the page has the apple' '[ $(wc -l <apple.sh) -ge 6 ]'
    want 'the apple of the page' \
        "PIPEFORMER_MODEL='$mini' sh apple.sh | sed -n '16p'" '' 0 \
        '[100,59,81]'
else
    skip 'the apple' "no $mini"
fi
want 'a slice in brackets' 'tensor -s "q[0]"' '{"q":[[1]]}' 1 - \
    'tensor: <stdin>:1: the record has no tensor q\[0\] (a slice is *'
finish
