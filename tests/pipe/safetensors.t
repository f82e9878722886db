# The stream: what an independent reader makes of it, and that nothing is lost
# between the encodings.
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

# --- A stream of one record is a .safetensors file.
cat >reads.py <<'END'
import struct
import sys
from stream import *
# As the safetensors format has it, by hand, for one record: no stream.py.
b = open("one", "rb").read()
n, = struct.unpack("<Q", b[:8])
assert n % 8 == 0 and b[8:9] == b"{"
h = json.loads(b[8:8 + n])
assert h["__metadata__"].keys() == {"pipeformer"}, h["__metadata__"]
meta = json.loads(h["__metadata__"]["pipeformer"])
assert meta["seq"] == 0 and len(meta["model"]) >= 8, meta
e = h["hidden"]
a, z = e["data_offsets"]
assert e["dtype"] == "F32" and e["shape"] == [4, 160] and z - a == 4 * 640
hidden = b[8 + n + a:8 + n + z]
assert len(b) == 8 + n + max(h[k]["data_offsets"][1] for k in ("hidden",
                                                               "ids"))
want = floats(npy(os.environ["GOLDEN"] + "/p1_embd.npy"))
bad = close(struct.unpack("<640f", hidden), want, 1e-4, 1e-4)
assert not bad, bad
i, j = h["ids"]["data_offsets"]
assert struct.unpack("<4i", b[8 + n + i:8 + n + j]) == (2412, 643, 258, 529)
# And by the strict reader: three of them, back to back.
records = list(read(open("three", "rb")))
assert [f["seq"] for f, t in records] == [0, 1, 2]
assert [t["hidden"].shape for f, t in records] == [[4, 160], [2, 160],
                                                   [1, 160]]
assert records[0][1]["hidden"].data == hidden
END
echo 'Once upon a time' | tok-encode | embed >one
printf '%s\n' 'Once upon a time' 'The fox' a | tok-encode | embed >three
check 'one record is a file that any reader opens; three follow each other' \
    'python3 reads.py'
check 'records back to back are read as records' \
    'attend three | unembed | python3 -c "
import sys
from stream import *
r = list(read(sys.stdin.buffer))
assert [f[\"seq\"] for f, t in r] == [0, 1, 2]
assert all(t[\"logits\"].shape == [1, 4096] for f, t in r)
assert not any(\"hidden\" in t for f, t in r)"'
json 'embed -j | jq' 'echo "The fox" | tok-encode | embed -j | jq -c .' '' \
    '.[0] | (.hidden | length) == (.ids | length)
        and (.hidden[0] | length) == 160'

# --- Written by others: no padding, any order, unaligned, keys we know not.
cat >write.py <<'END'
import sys
from stream import *
h = npy(os.environ["GOLDEN"] + "/p1_embd.npy")
out = open("odd", "wb")
out.write(document({"x": Tensor("U8", [3], b"abc"), "hidden": h},
                   {"seq": "plain"}, pad=1))
# Space in the JSON, metadata last, no data of ours for readers to stumble on.
text = json.dumps({"hidden": {"data_offsets": [0, len(h.data)],
                              "shape": h.shape, "dtype": "F32"},
                   "__metadata__": {"format": "pt", "title": "h\u00e4\"\\\n"}},
                  indent=3).encode()
out.write(struct.pack("<Q", len(text)) + text + h.data)
out.write(document({"hidden": Tensor("F64", h.shape, struct.pack(
    "<640d", *floats(h)))}, {"seq": "wide"}))
END
python3 write.py
attend -j odd >got
attend -j one | jq -c '.hidden' >want
is 'unaligned, of another writer, F64: the same numbers' \
    "$(jq -c .hidden got | cmp - want 2>&1; jq -c .hidden got | sort -u \
        | wc -l)" "$(jq -c .hidden got | cmp - want 2>&1; echo 1)"
json 'metadata that is not ours rides along as fields' 'cat got' '' \
    '.[1].format == "pt" and .[1].title == "h\u00e4\"\\\n"'
json 'a tensor that is not ours rides along' 'cat got' '' \
    '.[0].x == [97, 98, 99]'

# --- .npy in and out.
for f in p1_embd p2_attn p3_ids p1_resid_post; do
    check "$f.npy comes back as it was" "tensor -o npy '$GOLDEN/$f.npy' >got
        python3 -c 'from stream import *
a, b = npy(\"got\"), npy(\"$GOLDEN/$f.npy\")
assert a == b'"
done
if python3 -c 'import numpy' 2>/dev/null; then
    check 'numpy reads what tensor -o npy writes' \
        "tensor -s hidden -o npy one >h.npy; python3 -c 'import numpy, os
a = numpy.load(\"h.npy\")
b = numpy.load(os.environ[\"GOLDEN\"] + \"/p1_embd.npy\")
assert a.dtype == b.dtype and a.shape == b.shape
assert abs(a - b).max() < 1e-4'"
else
    skip 'numpy reads what tensor -o npy writes' 'no numpy'
fi
check 'what tensor -o npy writes, read by its rules' \
    "tensor -s hidden -o npy one >h.npy; python3 -c 'from stream import *
a, b = npy(\"h.npy\"), npy(os.environ[\"GOLDEN\"] + \"/p1_embd.npy\")
assert a.dtype == b.dtype and a.shape == b.shape
assert not close(floats(a), floats(b), 1e-4, 1e-4)'"
cat >fortran.py <<'END'
import struct
h = ("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }")
h += " " * (-(len(h) + 11) % 64) + "\n"
open("f.npy", "wb").write(b"\x93NUMPY\1\0" + struct.pack("<H", len(h))
                          + h.encode() + struct.pack("<6f", 0, 3, 1, 4, 2, 5))
h = ("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }\n")
open("big.npy", "wb").write(b"\x93NUMPY\1\0" + struct.pack("<H", len(h))
                            + h.encode() + b"\0\0\0\0")
END
python3 fortran.py
want 'column-major .npy is turned' 'tensor -o json f.npy' '' 0 \
    '{"data":[[0,1,2],[3,4,5]]}'
want 'big-endian .npy is refused' 'tensor -o json big.npy' '' 1 - \
    'tensor: big.npy:1: *>f4*'

# --- Nothing is lost between the encodings.
# lossless NAME RECORD: NDJSON -> binary -> NDJSON, by two filters
lossless() {
    want "$1" 'tensor -o safetensors | tensor -o json' "$2" 0 "$2"
}
lossless 'numbers' '{"hidden":[[0,1,-1.5,0.1,3.4028235e38,1e-45]]}'
lossless 'minus zero, NaN, infinities' '{"hidden":[[-0,0,null,1e999,-1e999]]}'
want '1.797e308 of jq reads as infinite' \
    'tensor -o safetensors | tensor -o json' \
    '{"hidden":[1.7976931348623157e308,-1.7976931348623157e+308,1e39]}' 0 \
    '{"hidden":[1e999,-1e999,1e999]}'
want 'other spellings of numbers' 'tensor -o safetensors | tensor -o json' \
    '{"hidden":[1.0,10e-1,100E-2,0.000,-0.0,-0e5,1e+2,0.1e1]}' 0 \
    '{"hidden":[1,1,1,0,-0,-0,100,1]}'
lossless 'empty tensors' '{"x":7,"hidden":[],"logits":[[],[]]}'
lossless 'ids' '{"ids":[0,1,2147483647,-2147483648]}'
lossless 'offsets' '{"offsets":[[0,9007199254740993],[1,2]]}'
lossless 'booleans' '{"mask":[[true,false],[false,true]]}'
lossless 'eight dimensions' '{"q":[[[[[[[[1,2]]]]]]]]}'
# Fields keep their text, whatever it is.
fields='{"x": 1.50, "y": {"a":[1, 2],"b":{ } }, "z":-0.0, "big":123456789012345678901234567890, "e":1E+2, "s":"\u0041\/\ud83e\udd8a", "é":"\u00e9", "n":null, "t":true, "l":["a", [ ] ], "":"", "a\"b":1}'
json 'unknown fields: an own line first' 'tensor -o json' "$fields" \
    '.[0].x == 1.5'
for f in '1.50' '{"a":[1, 2],"b":{ } }' '-0.0' \
    123456789012345678901234567890 '1E+2' '"\u0041\/\ud83e\udd8a"' \
    '"é":"\u00e9"' '["a", [ ] ]' '"":""' '"a\"b":1'; do
    printf '%s\n' "$fields" | jq -c . >/dev/null || echo 'bad test'
    run 'tensor -o safetensors | tensor -o safetensors | tensor -o json' \
        "$fields"
    case $(cat out) in
    *"$f"*) ok "a field keeps its text: $f" ;;
    *) not_ok "a field keeps its text: $f" <out ;;
    esac
done
want 'their order too' \
    'tensor -o safetensors | tensor -o json | jq -c "keys_unsorted | .[:4]"' \
    "$fields" 0 '["x","y","z","big"]'
want 'fields ride through the whole pipe, text and all' \
    'embed | attend | unembed | sample | grep -o "\"x\": *1\\.50"' \
    '{"ids":[1],"x": 1.50}' 0 '"x":1.50'
want 'and through generate --whole' \
    'generate --whole -n 1 | grep -o "{\"a\":\\[1, 2\\]}"' \
    '{"ids":[1],"y": {"a":[1, 2]}}' 0 '{"a":[1, 2]}'
want 'seq 1 and "1", long integers' 'embed | unembed | sample | jq -c .seq' \
    '{"ids":[1],"seq":1}
{"ids":[1],"seq":"1"}' 0 '1
"1"'
want 'a record with no tensors is legal' 'tensor -o safetensors | tensor -o json' \
    '{}
{"a":1}' 0 '{}
{"a":1}'

# --- Every float32 goes through decimal unharmed: a sample of all, and edges.
cat >every.py <<'END'
import random
from stream import *
random.seed(1)
bits = [random.getrandbits(32) for i in range(60000)]
for e in range(256):
    for m in 0, 1, 2, 0x3fffff, 0x400000, 0x7ffffe, 0x7fffff:
        bits += [e << 23 | m, 1 << 31 | e << 23 | m]
bits = [b for b in bits if (b >> 23 & 255) < 255 or not b & 0x7fffff]
open("every", "wb").write(document({"hidden": Tensor("F32", [len(bits)],
    struct.pack("<%dI" % len(bits), *bits))}))
END
python3 every.py
tensor -o json every >every.json
tensor -o safetensors every.json | tensor -o npy >a
tensor -o npy every >b
same 'F32 through NDJSON and back: the same bits' a b
cat >shortest.py <<'END'
from stream import *
import math
v = floats(next(read(open("every", "rb")))[1]["hidden"])
t = open("every.json").read().split("[")[1].split("]")[0].split(",")
assert len(t) == len(v)
pack = lambda x: struct.pack("<f", x)
def digits(s):
    return len(s.lstrip("-").split("e")[0].replace(".", "").strip("0"))
for x, s in zip(v, t):
    y = float(s)
    assert pack(y) == pack(x) if abs(y) < 3.5e38 else math.isinf(x), (x, s)
    if math.isinf(x) or x == 0:
        continue
    n = digits(s)
    assert n <= 9, (x, s)
    # No decimal with fewer digits reads back the same.
    if n > 1:
        try:
            short = float("%.*e" % (n - 2, x))
            assert pack(short) != pack(x), (x, s, short)
        except OverflowError:
            pass
END
check 'the shortest decimal, read back by another program' \
    'python3 shortest.py'
cat >alltypes.py <<'END'
from stream import *
t = {}
for d, v in {"F16": [0, 1.5, -65504, 6e-8], "BF16": None, "F64": [0.1, 1e300],
             "I8": [-128, 127], "U8": [0, 255], "I16": [-32768, 32767],
             "U16": [65535, 0], "U32": [4294967295], "I64": [-1 << 63],
             "U64": [(1 << 64) - 1], "BOOL": [True, False]}.items():
    t[d.lower()] = Tensor(d, [len(v)], struct.pack("<%d%s" % (
        len(v), CODE[d]), *v)) if v else Tensor(d, [2], b"\x80\x3f\xc0\xff")
open("types", "wb").write(document(t, {"seq": 1}, pad=1))
END
python3 alltypes.py
check 'every type stays what it is from binary to binary' \
    "tensor -o safetensors types >got; python3 -c 'from stream import *
(f, a), = read(open(\"got\", \"rb\"))
assert f == {\"seq\": 1}
n, = struct.unpack(\"<Q\", open(\"types\", \"rb\").read(8))
b = open(\"types\", \"rb\").read()[8:]
h = json.loads(b[:n]); h.pop(\"__metadata__\")
for k, e in h.items():
    x, y = e[\"data_offsets\"]
    assert a[k] == (e[\"dtype\"], e[\"shape\"], b[n + x:n + y]), k'"
want 'and what they read as' 'tensor -o json types' '' 0 \
    '{"seq":1,"f16":[0,1.5,-65504,5.9604645e-8],"bf16":[1,null],"f64":[0.1,1e+300],"i8":[-128,127],"u8":[0,255],"i16":[-32768,32767],"u16":[65535,0],"u32":[4294967295],"i64":[-9223372036854775808],"u64":[18446744073709551615],"bool":[true,false]}'

# --- Mixed streams.
echo '{"seq":"j","ids":[5]}' | embed -j >j
{ cat one; cat j; printf '\n\r\n\n'; cat "$GOLDEN/p1_embd.npy" j one \
    "$GOLDEN/p1_embd.npy"; cat three; } >mixed
json 'encodings joined with cat' 'attend mixed | unembed -j | jq -c .seq' '' \
    '. == [0, "j", null, "j", 0, null, 0, 1, 2]'
json 'the same as files' 'attend one j "$GOLDEN"/p1_embd.npy j one \
    "$GOLDEN"/p1_embd.npy three | unembed -j | jq -c .seq' '' \
    '. == [0, "j", null, "j", 0, null, 0, 1, 2]'
json 'the numbers of records count all of them' \
    'cat mixed | { tensor -j; }' '' '[.[].record] == [range(1; 10)]'
want 'a last line without its newline' 'embed -j | jq -c .ids' \
    '{"ids":[1]}
{"ids":[2]}' 0 '[1]
[2]'
check 'lines with CR LF' \
    "printf '{\"ids\":[1]}\\r\\n{\"ids\":[2]}\\r\\n' | embed | tensor"
check 'leading white space' "printf '  {\"ids\":[1]} \\t\\n' | embed | tensor"

# --- What was not asked for is written as little as possible.
check 'binary is not written to a terminal' "script -qec true /dev/null \
        </dev/null >/dev/null 2>&1 || exit 0; script -qec 'embed $T/j; echo status \$?' /dev/null \
        </dev/null | tr -d '\\r' >tty; grep -q -e '-j' tty \
    && grep -q 'status 2' tty"
check 'NDJSON is' "script -qec true /dev/null </dev/null >/dev/null 2>&1 \
    || exit 0; echo '{\"ids\":[1]}' >$T/i; script -qec 'embed -j $T/i; \
    echo status \$?' /dev/null </dev/null | grep -q 'status 0'"
finish
