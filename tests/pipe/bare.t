# Attention without a model: the golden cases (tests/golden: numpy in float64,
# some PyTorch), averaging and look-up, what is refused, projection by bare
# matrices, and that memory does not grow with T times S.
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

# No model is opened anywhere here.
PIPEFORMER_MODEL=/no/where
export PIPEFORMER_MODEL

# results FILE: "NAME<TAB>WHY" a line, WHY empty where all is well
results() {
    while IFS='	' read -r name why; do
        if [ -z "$why" ]; then ok "$name"; continue; fi
        printf '%s\n' "$why" >why
        not_ok "$name" <why
    done <"$1"
}

cat >bare.py <<'END'
"""What the tests of this file share."""
import json
import math
import os
import re
import subprocess
from stream import *

GOLDEN = os.environ["PF_SOURCE"] + "/tests/golden/"


def cases(name):
    with open(GOLDEN + name) as f:
        return [json.loads(line) for line in f]


def dumps(record):
    return json.dumps(record).replace("Infinity", "1e999").encode() + b"\n"


def run(command, records, **env):
    if not isinstance(records, bytes):
        records = dumps(records)
    return subprocess.run(command, input=records, capture_output=True,
                          env={**os.environ, **env})


def first(command, records, **env):
    """The only record that comes out, tensors as lists of numbers."""
    p = run(command, records, **env)
    if p.returncode or p.stderr:
        raise AssertionError("status %d: %s" % (p.returncode, p.stderr))
    import io
    (fields, tensors), = read(io.BytesIO(p.stdout))
    return fields, tensors


def test(name, f, *args):
    try:
        f(*args)
        print(name)
    except Exception as e:
        print("%s\t%s: %s" % (name, type(e).__name__, str(e)[:300].replace(
            "\n", " ")))


def equal(tensor, want, what, atol=1e-5):
    assert list(tensor.shape) == shape_of(want), (what, tensor.shape)
    why = close(floats(tensor), flat(want), atol, 1e-5)
    assert not why, "%s: %s" % (what, why)


def binary(record):
    """The same record as a safetensors document."""
    tensors, fields = {}, {}
    for name, v in record.items():
        if name not in ("q", "k", "v", "mask", "hidden", "memory"):
            fields[name] = v
        elif isinstance(flat(v)[0], bool):
            tensors[name] = Tensor("BOOL", shape_of(v), bytes(flat(v)))
        else:
            tensors[name] = f32(shape_of(v), flat(v))
    return document(tensors, fields)


def options(case):
    o = [] if case["causal"] == "none" else ["--causal=" + case["causal"]]
    if case["scale"] is not None:
        o += ["--scale", str(case["scale"])]
    return o


def arrays(case):
    return {k: v for k, v in case.items() if k in ("q", "k", "v", "mask")}
END

# --- Golden attention.
cat >golden.py <<'END'
from bare import *


def attention(case):
    record = {"seq": case["name"], "tag": [1, 2], **arrays(case)}
    command = ["attend", "-a", "--threads", "1"] + options(case)
    fields, t = first(command + ["-j"], record)
    assert fields == {"seq": case["name"], "tag": [1, 2]}, fields
    assert set(t) == {"context", "attn"}, set(t)
    equal(t["context"], case["context"], "context")
    equal(t["attn"], case["attn"], "attn")
    alone = first(["attend"] + options(case), record)[1]
    assert set(alone) == {"context"}
    ways = [alone, first(command, binary(record))[1],
            first(command + ["--threads", "3"], binary(record))[1]]
    ways += [first(command, record, PIPEFORMER_KERNEL=k)[1]
             for k in ("portable", "avx2", "avx512")]
    for way in ways:
        assert way["context"] == t["context"], "other bits"
        assert way.get("attn", t["attn"]) == t["attn"], "other bits of attn"
    for i in range(0, len(t["attn"].data), 4 * t["attn"].shape[-1]):
        row = floats(Tensor("F32", t["attn"].shape[-1:],
                            t["attn"].data[i:i + 4 * t["attn"].shape[-1]]))
        assert sum(row) == 0 or abs(sum(row) - 1) < 1e-5, row


def refused(case):
    record = json.dumps({"seq": 7, **arrays(case)}).encode() + b"\n"
    p = run(["attend", "-j"] + options(case), record)
    if case["causal"] not in ("none", "upper-left", "lower-right") \
            or isinstance(case["scale"], str):
        assert p.returncode == 2, p
        return
    assert p.returncode == 1, p
    assert p.stderr.startswith(b"attend: <stdin>:1: "), p.stderr
    assert p.stderr.count(b"\n") == 1, p.stderr
    error = json.loads(p.stdout)["error"]
    assert p.stderr == error.encode() + b"\n"
    # Shapes that clash are named.
    for name in ("q", "k", "v", "mask"):
        if re.search(r"\b%s has" % name, case["why"]):
            assert str(shape_of(case[name])) in error, (name, error)


for case in cases("attention.ndjson"):
    test("golden: " + case["name"], attention, case)
for case in cases("attention_errors.ndjson"):
    test("%s, %s: refused" % (case["name"], case["why"]), refused, case)
END
python3 golden.py >res
is 'all golden cases of attention ran' "$(wc -l <res)" 67
results res

# --- Golden averaging and look-up.
cat >mixing.py <<'END'
import tempfile
from bare import *


def npy_bytes(rows):
    head = ("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }"
            % tuple(shape_of(rows)))
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() \
        + f32(shape_of(rows), flat(rows)).data


def table(form, rows):
    path = "table." + form
    with open(path, "wb") as f:
        if form == "npy":
            f.write(npy_bytes(rows))
        elif form == "json":
            f.write(dumps({"about": "x", "E": rows}))
        else:
            f.write(document({"E": f32(shape_of(rows), flat(rows))}))
    return path


def lookup(case):
    for form in ("npy", "json", "safetensors"):
        for record in ({"seq": 1, "ids": case["ids"]},
                       {"pos": 500, "ids": case["ids"]}):
            fields, t = first(["embed", "-w", table(form, case["table"])],
                              record)
            assert "model" not in fields
            equal(t["hidden"], case["expected"], "hidden", 0)


def mix(case):
    atol = case.get("atol", 1e-5)
    x = case["x"]
    for name, out in (("hidden", "hidden"), ("v", "context")):
        fields, t = first(["attend", "--uniform", "-a"], {name: x, "tag": 1})
        assert fields == {"tag": 1} and set(t) == {out, "attn"}, (fields, t)
        equal(t[out], case["expected"], out, atol)
        equal(t["attn"], case["weights"], "attn", atol)
        again = first(["attend", "--uniform"], binary({name: [[x], [x]]}))[1]
        equal(again[out], [[case["expected"]]] * 2, out, atol)
    if "table" in case:
        both = "embed -w %s | attend --uniform" % table("npy", case["table"])
        fields, t = first(["sh", "-c", both], {"ids": case["ids"]})
        equal(t["hidden"], case["expected"], "look-up and mean", atol)


def refused(case):
    if case["op"] == "lookup":
        with open("bad.json", "wb") as f:
            f.write(dumps({"E": case["table"]}))
        p = run(["embed", "-j", "-w", "bad.json"], {"ids": case["ids"]})
        place = b"embed: bad.json: " if "table" in case["why"] \
            else b"embed: <stdin>:1: "
    else:
        p = run(["attend", "-j", "--uniform"], {"hidden": case["x"]})
        place = b"attend: <stdin>:1: "
    assert p.returncode == 1, p
    assert p.stderr.startswith(place), p.stderr
    assert p.stderr.count(b"\n") == 1, p.stderr
    assert json.loads(p.stdout)["error"].encode() == p.stderr[:-1]


for case in cases("mixing.ndjson"):
    test("golden: %s: %s" % (case["op"], case["name"]),
         lookup if case["op"] == "lookup" else mix, case)
for case in cases("mixing_errors.ndjson"):
    test("mixing, %s: %s: refused" % (case["name"], case["why"]), refused,
         case)
END
python3 mixing.py >res
is 'all golden cases of averaging ran' "$(wc -l <res)" 19
results res

# --- By hand.
json 'the sum of the weights is 1, and scores are what softmax takes' \
    'attend -a --tap attn_scores -j' \
    '{"q":[[1,0],[0,2]],"k":[[1,0],[0,1],[1,1]],"v":[[1],[2],[3]]}' \
    '.[0] | (.attn_scores | map(map(. * 1000 | round)))
        == [[707, 0, 707], [0, 1414, 1414]]
    and (.attn | all(add - 1 | fabs < 1e-6))
    and (.attn[0][0] == .attn[0][2]) and (.context | length == 2)'
want 'masked scores are -inf' \
    'attend --tap attn_scores -j | jq -c .attn_scores' \
    '{"q":[[1,0]],"k":[[1,0],[0,1]],"v":[[1],[2]],"mask":[true,false]}' 0 \
    '[[0.70710677,-1.7976931348623157e+308]]'
want 'scores of a causal one' \
    'attend --causal --scale 1 --tap attn_scores -j | sed "s/.*attn_s/s/"' \
    '{"q":[[1],[2]],"k":[[1],[3]],"v":[[1],[2]]}' 0 \
    'scores":[[1,-1e999],[2,6]]}'
want 'scores of 1e4 and more stay finite' 'attend -a -j' \
    '{"q":[[100,0],[-1e8,1e8]],"k":[[100,1],[-100,1]],"v":[[1],[2]]}' 0 \
    '{"context":[[1],[2]],"attn":[[1,0],[0,1]]}'
want 'a row that may attend to nothing is zero' 'attend -a -j' \
    '{"q":[[1],[1]],"k":[[1],[1]],"v":[[4],[8]],"mask":[[false],[true]]}' 0 \
    '{"context":[[0],[6]],"attn":[[0,0],[0.5,0.5]]}'
want 'a mask of numbers adds; least numbers are no infinities' \
    'attend -a -j' \
    '{"q":[[0]],"k":[[1],[1]],"v":[[4],[8]],"mask":[-3.4e38,-3.4e38]}
{"q":[[0]],"k":[[1],[1]],"v":[[4],[8]],"mask":[-1e999,-1e999]}
{"q":[[0]],"k":[[1],[1]],"v":[[4],[8]],"mask":[0,-3.4028235e38]}' 0 \
    '{"context":[[6]],"attn":[[0.5,0.5]]}
{"context":[[0]],"attn":[[0,0]]}
{"context":[[4]],"attn":[[1,0]]}'
want 'the mask and a causal one' 'attend --causal -j 2>&1 >/dev/null' \
    '{"q":[[1]],"k":[[1]],"v":[[1]]}
{"q":[[1]],"k":[[1]],"v":[[1]],"mask":[true]}' 1 \
    'attend: <stdin>:2: the record has a mask, and --causal is another; put both into the mask'
want 'shapes that clash are named, and the record' \
    'attend -j 2>&1 >/dev/null' \
    '{"q":[[1,2,3]],"k":[[1,2],[3,4]],"v":[[1],[2]]}' 1 \
    'attend: <stdin>:1: q has the shape [1, 3], k [2, 2]: their last axes, D, differ'
want 'head counts that do not divide' 'attend -j 2>&1 >/dev/null' \
    '{"q":[[[1]],[[1]],[[1]]],"k":[[[1]],[[1]]],"v":[[[1]],[[1]]]}' 1 \
    'attend: <stdin>:1: q has the shape [3, 1, 1], k [2, 1, 1]: q'"'"'s heads are no multiple of the others'
want 'NaN is refused, and where it is' 'attend -j 2>&1 >/dev/null' \
    '{"q":[[1,null]],"k":[[1,2]],"v":[[1]]}' 1 \
    'attend: <stdin>:1: q: NaN at [0, 1]'
want '--keep-going' 'attend -j --keep-going 2>/dev/null' \
    '{"seq":1,"q":[[1]],"k":[[1]]}
{"seq":2,"q":[[1]],"k":[[1]],"v":[[5]]}' 1 \
    '{"seq":1,"error":"attend: <stdin>:1: the record has no v (q, k and v make bare attention)"}
{"seq":2,"context":[[5]]}'
want '--keep' 'attend -j --keep k --keep mask' \
    '{"q":[[1]],"k":[[1]],"v":[[5]],"mask":[true],"x":1}' 0 \
    '{"x":1,"k":[[1]],"mask":[true],"context":[[5]]}'
want 'no queries' 'attend -a -j' \
    '{"q":[[],[]],"k":[[1]],"v":[[1]]}' 1 - 'attend: <stdin>:1: *'
want 'F16 and F64, and numbers that lie askew' \
    "python3 -c 'import sys
from stream import *
sys.stdout.buffer.write(document({
    \"mask\": Tensor(\"BOOL\", [1], b\"\\1\"),
    \"q\": Tensor(\"F16\", [1, 1], struct.pack(\"<e\", 2)),
    \"k\": Tensor(\"F64\", [1, 1], struct.pack(\"<d\", 3)),
    \"v\": Tensor(\"F32\", [1, 1], struct.pack(\"<f\", 5))}))' \
        | attend -j --scale 1 --tap attn_scores" '' 0 \
    '{"context":[[5]],"attn_scores":[[6]]}'
want 'integers are refused' \
    "python3 -c 'import sys
from stream import *
t = Tensor(\"I32\", [1, 1], struct.pack(\"<i\", 2))
sys.stdout.buffer.write(document({\"q\": t, \"k\": t, \"v\": t}))' \
        | attend -j" '' 1 - 'attend: <stdin>:1: q: is of type I32, not of *'
want 'layers and heads of a former attn go' 'attend -a -j' \
    '{"q":[[1]],"k":[[1]],"v":[[5]],"attn":[[[[1]]]],"layers":[3],"heads":[2]}' \
    0 '{"context":[[5]],"attn":[[1]]}'
want 'a mark goes through' 'attend --uniform -j' '{"done":"input"}' 0 \
    '{"done":"input"}'
want '--uniform: v goes before hidden' 'attend --uniform -j' \
    '{"v":[[2],[4]],"hidden":[[1]]}' 0 '{"hidden":[[1]],"context":[[2],[3]]}'
want '--uniform: no rows' 'attend --uniform -a -j' '{"hidden":[]}' 0 \
    '{"hidden":[],"attn":[]}'

# --- Mistakes on the command line.
for options in '--n-head 2' '--uniform --causal' '--uniform --scale 1' \
    '--uniform -w x' '--causal --no-causal' '--causal=left' '--scale x' \
    '-w x -m y' '--uniform --tap attn_scores' '--n-head 0'; do
    want "attend $options" "attend -j $options </dev/null | cat >/dev/null
        attend -j $options >/dev/null" '' 2 '' 'attend: *usage: attend *'
done

# --- Projection: against one in Python, and against the bundled model's own.
cat >project.py <<'END'
import random
from bare import *

random.seed(5)


def matrix(rows, columns):
    return [[random.uniform(-1, 1) for _ in range(columns)]
            for _ in range(rows)]


def times(x, w, b):
    return [[sum(r[i] * w[i][n] for i in range(len(w))) + b[n]
             for n in range(len(w[0]))] for r in x]


def attention(x, y, m, heads, kv, d, dv, causal):
    zero = [0] * 99
    q = times(x, m["wq"], m.get("bq", zero))
    k = times(y, m["wk"], m.get("bk", zero))
    v = times(y, m["wv"], m.get("bv", zero))
    z = [[] for _ in x]
    attn = []
    for h in range(heads):
        g = h // (heads // kv)
        attn.append([])
        for t, row in enumerate(q):
            w = [math.exp(sum(a * b for a, b in zip(
                row[h * d:h * d + d], r[g * d:g * d + d])) / math.sqrt(d))
                if not causal or j <= t else 0 for j, r in enumerate(k)]
            w = [e / sum(w) for e in w]
            attn[-1].append(w)
            z[t] += [sum(e * r[g * dv + i] for e, r in zip(w, v))
                     for i in range(dv)]
    return (times(z, m["wo"], m.get("bo", zero)) if "wo" in m else z), attn


def check(T, S, C, Cm, heads, kv, d, dv, out, bias, causal):
    m = {"wq": matrix(C, heads * d), "wk": matrix(Cm, kv * d),
         "wv": matrix(Cm, kv * dv)}
    if out:
        m["wo"] = matrix(heads * dv, out)
    if bias:
        for name in [n for n in m]:
            m["b" + name[1]] = matrix(1, len(m[name][0]))[0]
    with open("w.json", "wb") as f:
        f.write(dumps(m))
    with open("w.safetensors", "wb") as f:
        f.write(document({n: f32(shape_of(a), flat(a))
                          for n, a in m.items()}))
    record = {"hidden": matrix(T, C), "tag": 1}
    if S:
        record["memory"] = matrix(S, Cm)
    z, attn = attention(record["hidden"], record.get(
        "memory", record["hidden"]), m, heads, kv, d, dv, causal)
    name = "hidden" if out else "context"
    for file in ("w.json", "w.safetensors"):
        command = ["attend", "-a", "-w", file, "--n-head", str(heads)]
        fields, t = first(command + causal * ["--causal"], record)
        assert fields == {"tag": 1}
        assert set(t) == {name, "attn"} | ({"memory"} if S else set()), set(t)
        equal(t[name], z, name)
        equal(t["attn"], attn, "attn")


test("-w: one head", check, 4, 0, 3, 3, 1, 1, 2, 2, 0, False, False)
test("-w: causal, out, biases", check, 5, 0, 6, 6, 2, 2, 3, 3, 6, True, True)
test("-w: shared key heads", check, 5, 0, 6, 6, 4, 2, 2, 3, 5, True, False)
test("-w: memory", check, 3, 7, 4, 5, 2, 2, 3, 4, 4, True, False)
test("-w: memory, causal", check, 3, 7, 4, 5, 2, 1, 3, 4, 0, True, True)
END
python3 project.py >res
is 'all projections ran' "$(wc -l <res)" 5
results res

want '-w: hidden of another width' 'attend -w w.json --n-head 2 -j' \
    '{"hidden":[[1,2,3]]}' 1 - \
    'attend: <stdin>:1: hidden: has the shape ?1, 3?; wq of -w makes it ?T, 4?'
want '-w: memory is needed' 'attend -w w.json --n-head 2 -j' \
    '{"hidden":[[1,2,3,4]]}' 1 - \
    'attend: <stdin>:1: wq takes rows of 4, wk of 5, and the record has no memory'
want '-w: no rows of memory' 'attend -w w.json --n-head 2 -j' \
    '{"hidden":[[1,2,3,4]],"memory":[]}' 1 - \
    'attend: <stdin>:1: memory: has no rows'
want '-w: no hidden' 'attend -w w.json --n-head 2 -j' '{"ids":[1]}' 1 - \
    'attend: <stdin>:1: the record has no hidden*'
want '-w: a mask is used, and goes' \
    'attend -w w.json --n-head 2 -a -j | jq -c "keys, .attn"' \
    '{"hidden":[[1,2,3,4]],"memory":[[1,1,1,1,1],[2,2,2,2,2]],"mask":[true,false]}' \
    0 '["attn","context","memory"]
[[[1,0]],[[1,0]]]'
want '-w: no rows' 'attend -w w.json --n-head 2 -j' \
    '{"hidden":[],"memory":[[1,1,1,1,1]]}' 0 \
    '{"memory":[[1,1,1,1,1]],"context":[]}'
want '-w: heads that do not divide' 'attend -w w.json --n-head 5 -j' '' 1 - \
    'attend: w.json: wq: ?4, 6? has no 5 heads side by side'
echo '{"wq":[[1]],"wk":[[1]]}' >bad.json
want '-w: a matrix is missing' 'attend -w bad.json -j' '' 1 - \
    'attend: bad.json: no wv (*'
printf '{"wq":[[1]]}\n{"wk":[[1]]}\n' >two.json
want '-w: two records' 'attend -w two.json -j' '' 1 - \
    'attend: two.json: the file holds more than one record'
want '-w: an empty file' 'attend -w /dev/null -j' '' 1 - \
    'attend: /dev/null: the file is empty'
want '-w: no file' 'attend -w /no/file -j' '' 1 - \
    'attend: /no/file: cannot open: *'

# The model's own first block, as matrices in a file.
cat >block.py <<'END'
import os
from stream import *
with open(os.environ["FAIRY"] + "/model.safetensors", "rb") as f:
    t = read_document(f, b"")[1]
h = [n for n in t if n.endswith("h.0.attn.c_attn.weight")][0][:-len(
    "c_attn.weight")]


def numbers(name):
    x = t[h + name]
    return struct.unpack("<%de" % count(x.shape), x.data), x.shape


w, (C, wide) = numbers("c_attn.weight")
b, _ = numbers("c_attn.bias")
out = {}
for i, n in enumerate("qkv"):
    out["w" + n] = f32([C, C], [x for r in range(C)
                                for x in w[r * wide + i * C:][:C]])
    out["b" + n] = f32([C], b[i * C:][:C])
for n, name in (("wo", "c_proj.weight"), ("bo", "c_proj.bias")):
    x, shape = numbers(name)
    out[n] = f32(shape, x)
with open("block", "wb") as f:
    f.write(document(out))
END
python3 block.py
heads=$(jq -r .n_head "$FAIRY/config.json")
jq -c '.[1] | {ids}' "$GOLDEN/prompts.json" >ids
embed -m "$FAIRY" ids >x
attend -m "$FAIRY" -l 0 -a --tap blocks.0.ln1.normalized,blocks.0.attn_out \
    x >y
tensor -s blocks.0.ln1.normalized -o npy y >normed.npy
tensor -s blocks.0.attn_out -o npy y >want.npy
tensor -s attn:0 -o npy y >want.attn.npy
attend -w block --n-head "$heads" --causal -a normed.npy >got
close_to 'the first block of a model by -w: its output' \
    'tensor -s hidden -o npy got' want.npy '--atol 1e-5 --rtol 1e-5'
close_to '  its weights' 'tensor -s attn -o npy got' want.attn.npy \
    '--atol 1e-6 --rtol 1e-5'

# --- Memory: within 3 times the input's size, however long the sequence.
if [ $slow = 1 ]; then
    skip 'memory' 'sanitizers need more'
else
    python3 -c 'import os
from stream import *
T, H, D = 4096, 6, 64
x = struct.unpack("<%dh" % (H * T * D), os.urandom(2 * H * T * D))
x = Tensor("F32", [H, T, D], struct.pack("<%df" % len(x),
                                         *(v * 2 ** -15 for v in x)))
with open("long", "wb") as f:
    f.write(document({"q": x, "k": x, "v": x}))
with open("short", "wb") as f:
    f.write(document({n: f32([1, 1], [1]) for n in "qkv"}))'
    python3 "$PY" rss few attend --threads 2 short >/dev/null
    python3 "$PY" rss rss attend --threads 2 long >out
    check 'memory: within 3 times the input, and it is not the scores' \
        "test $(($(cat rss) - $(cat few))) -lt \
            $(($(wc -c <long) * 3 / 1024))"
    attend --threads 1 long >want
    same 'a long one: the same bits for one thread as for two' out want
    # glibc would hold on to freed blocks of these sizes, up to some amount.
    MALLOC_MMAP_THRESHOLD_=4194304
    export MALLOC_MMAP_THRESHOLD_
    cat long long long >many
    python3 "$PY" rss rss3 attend --threads 2 many >out
    cat want want want >want3
    same 'several long ones: each as alone' out want3
    python3 "$PY" rss rss9 attend --threads 2 many many many >out
    check 'memory: no more for nine records than for three' \
        "test $(cat rss9) -lt $(($(cat rss3) * 5 / 4))"
fi
finish
