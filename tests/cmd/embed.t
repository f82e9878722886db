# embed: ids to rows of the residual stream.
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

json 'ids -> hidden [T, C], with the model' 'embed -j' \
    '{"seq":"a","ids":[464,5]}' '.[0] | .seq == "a" and .ids == [464, 5]
        and (.hidden | length) == 2 and all(.hidden[]; length == 160)
        and (.model | test("^[0-9a-f]{8,}$"))'
check 'as -j or binary: the same numbers' \
    "echo '{\"ids\":[464,5]}' >in; embed -j in | tensor -o npy -s hidden >a
    embed in | tensor -s hidden -o npy >b; cmp a b"
# Row t is wte[id] + wpe[pos + t]: without pos, the rows of an id are one.
json '--no-pos: the same row for the same id' 'embed -j --no-pos' \
    '{"ids":[7,8,7]}' '.[0].hidden | .[0] == .[2] and .[0] != .[1]'
json 'positions tell them apart' 'embed -j' '{"ids":[7,8,7]}' \
    '.[0].hidden | .[0] != .[2]'
json 'pos: rows get positions n, n+1, ...' 'embed -j' \
    '{"ids":[5,6,7,8]}
{"pos":2,"ids":[7,8]}' '.[1].hidden == .[0].hidden[2:]'
json 'differences of positions do not depend on the id' 'embed -j' \
    '{"ids":[5,5]}
{"ids":[9,9]}' 'map(.hidden) | map([.[0], .[1]] | transpose | map(.[0] - .[1]))
    | transpose | all((.[0] - .[1]) | fabs < 1e-5)'
check 'the table is the model'"'"'s' "python3 -c '
from stream import *
import subprocess
b = open(os.environ[\"FAIRY\"] + \"/model.safetensors\", \"rb\").read()
n, = struct.unpack(\"<Q\", b[:8])
h = json.loads(b[8:8 + n])
k = [k for k in h if k.endswith(\"wte.weight\")][0]
t = h[k]
a = 8 + n + t[\"data_offsets\"][0]
row = struct.unpack(\"<160e\", b[a + 320 * 777:a + 320 * 778])
out = subprocess.run([\"embed\", \"-j\", \"--no-pos\"], input=b\"{\\\"ids\\\":[777]}\",
                     capture_output=True).stdout
assert tuple(json.loads(out)[\"hidden\"][0]) == tuple(
    struct.unpack(\"<f\", struct.pack(\"<f\", x))[0] for x in row) or not close(
    json.loads(out)[\"hidden\"][0], row, 1e-8, 1e-7)'"
want 'it keeps ids and segments, drops other fields of positions' \
    'embed -j | jq -c "keys_unsorted - [\"model\"] | sort"' \
    '{"seq":1,"ids":[5],"segments":[0],"tokens":["x"],"offsets":[[0,1]],"blocks.0.attn.q":[[[1]]],"tag":1,"layer":3,"text":"x"}' \
    0 '["hidden","ids","segments","seq","tag","text"]'
json '--keep' 'embed -j --keep tokens --keep offsets' \
    '{"ids":[5],"tokens":["x"],"offsets":[[0,1]]}' \
    '.[0].tokens == ["x"] and .[0].offsets == [[0, 1]]'
json 'no ids: no rows' 'embed -j' '{"ids":[]}' '.[0].hidden == []'
json 'I64 and U16 ids' \
    "python3 -c 'import sys
from stream import *
sys.stdout.buffer.write(
    document({\"ids\": Tensor(\"I64\", [1], struct.pack(\"<q\", 5))})
    + document({\"ids\": Tensor(\"U16\", [1], struct.pack(\"<H\", 5))}))' \
        | embed -j" '' 'length == 2 and .[0].hidden == .[1].hidden'
json '.npy ids' "embed -j '$GOLDEN/p1_ids.npy'" '' \
    '(.[0].hidden | length) == 4'
json 'an error has the seq of its record' \
    'embed -j 2>/dev/null; true' '{"seq":"x","ids":[4096]}' \
    '.[0].seq == "x" and (.[0].error
        | startswith("embed: <stdin>:1: ") and contains("4096"))'
want 'the window' 'embed -j >/dev/null' '{"pos":255,"ids":[1]}' 0 ''
want 'beyond the window' 'embed -j >/dev/null' '{"pos":255,"ids":[1,2]}' 1 \
    '' 'embed: <stdin>:1: *256*'

# --- Any table.
echo '{"note":"x","bias":[7],"E":[[0,1],[2,3],[4,5]]}' >table
want '-w: rows of a table, no model, no positions' \
    'PIPEFORMER_MODEL=/no/where embed -j -w table' \
    '{"seq":1,"pos":900,"ids":[2,0,2],"model":"old","layer":3,"tokens":["a","b","c"]}
{"ids":[]}' 0 '{"seq":1,"pos":900,"ids":[2,0,2],"hidden":[[4,5],[0,1],[4,5]]}
{"ids":[],"hidden":[]}'
want '-w: a mark goes through' 'embed -j -w table' '{"done":"input"}' 0 \
    '{"done":"input"}'
want '-w: an id past the table' 'embed -j -w table' '{"ids":[0,3]}' 1 \
    '{"error":"embed: <stdin>:1: ids: 3 at 1, but the table has 3 rows"}' \
    'embed: <stdin>:1: ids: 3 at 1, but the table has 3 rows'
want '-w: an id below 0' 'embed -w table' '{"ids":[-1]}' 1 - \
    'embed: <stdin>:1: ids: -1 at 0 *'
want '-w: no ids' 'embed -w table' '{"x":1}' 1 - \
    'embed: <stdin>:1: the record has no ids*'
echo '{"a":[[1]],"b":[[2],[3]],"c":[4]}' >several
want '--tensor: one of several' 'embed -j -w several --tensor b' \
    '{"ids":[1]}' 0 '{"ids":[1],"hidden":[[3]]}'
want '-w: several matrices' 'embed -j -w several' '{"ids":[1]}' 1 - \
    'embed: several: holds several matrices, a and b among them; --tensor *'
want '--tensor: one that is not there' 'embed -w several --tensor x' '' 1 - \
    'embed: several: no tensor x'
want '--tensor: no matrix' 'embed -w several --tensor c' '' 1 - \
    'embed: several: c has the shape ?1?, not ?V, C?'
echo '{"a":[1,2],"b":[[1],[2,3]]}' >none
want '-w: no matrix' 'embed -w none' '' 1 - \
    'embed: none: holds no matrix ?V, C?'
echo '{"a":[[],[]]}' >empty
want '-w: a matrix without columns' 'embed -w empty' '' 1 - \
    'embed: empty: a has the shape ?2, 0?, not ?V, C?'
want '-w: no file' 'embed -w /no/file' '' 1 - \
    'embed: /no/file: cannot open: *'
want '-w: a directory' 'embed -w .' '' 1 - 'embed: .: *directory*'
want '-w: an empty file' 'embed -w /dev/null' '' 1 - \
    'embed: /dev/null: the file is empty'
cat table table >two
want '-w: two records' 'embed -w two' '' 1 - \
    'embed: two: the file holds more than one record'
printf '{"a":[[1]]}\nx' >bad
want '-w: a record and no record' 'embed -w bad' '' 1 - 'embed: bad: *'
for options in '-w table -m x' '-w table --no-pos' '--tensor E'; do
    want "embed $options" "embed $options" '' 2 - 'embed: *usage: embed *'
done
python3 -c 'from stream import *
for name, t in (("f16", Tensor("F16", [2, 1], struct.pack("<2e", 1, 2))),
                ("i64", Tensor("I64", [2, 1], struct.pack("<2q", 1, 2))),
                ("f8", Tensor("F8_E4M3", [2, 1], b"\x38\x40"))):
    with open(name, "wb") as f:
        f.write(document({"askew": Tensor("U8", [1], b"x"), "E": t}))'
for type in f16 i64 f8; do
    want "-w: a table of $type" "embed -j -w $type" '{"ids":[1]}' 0 \
        '{"ids":[1],"hidden":[[2]]}'
done
check '-w: the table of a model gives what the model gives' \
    "echo '{\"ids\":[777,5]}' >in; embed --no-pos in >a
    name=\$(tensor -j '$FAIRY/model.safetensors' |
        jq -r '.tensors[].name | select(endswith(\"wte.weight\"))')
    embed -w '$FAIRY/model.safetensors' --tensor \"\$name\" in >b
    tensor -s hidden -o npy a >a.npy; tensor -s hidden -o npy b >b.npy
    cmp a.npy b.npy"

# --- BERT: positions, token types, norm.
python3 "$PF_SOURCE/tests/small_bert.py" bert
python3 "$PF_SOURCE/tests/small_bert.py" distil distil
cat >bert.py <<'END'
from stream import *
from small_bert import *
import math
import subprocess
import sys

words, options = sys.argv[2].split(), sys.argv[4:]
record = json.loads(sys.argv[3])
ids, pos = record["ids"], record.get("pos", 0)
segments = record.get("segments", [0] * len(ids))
prefix = "distilbert" if words else "bert"
w = {n[len(prefix) + 12:]: t[1] for n, t in weights(words).items()
     if n.startswith(prefix + ".embeddings.")}
out = subprocess.run(["embed", "-j", "-m", sys.argv[1]] + options,
    input=sys.argv[3].encode(), stdout=subprocess.PIPE, check=True).stdout
got = json.loads(out)["hidden"]
assert len(got) == len(ids)
for t, id in enumerate(ids):
    x = [w["word_embeddings.weight"][id * C + i]
         + ("--no-pos" not in options)
         * w["position_embeddings.weight"][(pos + t) * C + i]
         + (0 if words else
            w["token_type_embeddings.weight"][segments[t] * C + i])
         for i in range(C)]
    mean = sum(x) / C
    var = sum((v - mean) ** 2 for v in x) / C
    for i in range(C):
        y = (x[i] - mean) / math.sqrt(var + 1e-12) \
            * w["LayerNorm.weight"][i] + w["LayerNorm.bias"][i]
        assert abs(y - got[t][i]) < 2e-6, (t, i, y, got[t][i])
END
check 'BERT' "python3 bert.py ./bert '' '{\"ids\":[3,17,4]}'"
check 'BERT, segments' \
    "python3 bert.py ./bert '' '{\"ids\":[3,17,4],\"segments\":[0,1,1]}'"
check 'BERT, a position' \
    "python3 bert.py ./bert '' '{\"ids\":[3,17,4],\"pos\":9}'"
check 'BERT, --no-pos' \
    "python3 bert.py ./bert '' '{\"ids\":[3,17,4]}' --no-pos"
check 'DistilBERT looks at no segments' "python3 bert.py ./distil distil \
    '{\"ids\":[3,17,4],\"segments\":[0,1,1]}'"
want 'segments stay' 'embed -j -m ./bert | jq -c .segments' \
    '{"ids":[3,17],"segments":[0,1]}' 0 '[0,1]'
want 'too few segments' 'embed -m ./bert' '{"ids":[3,17],"segments":[0]}' 1 - \
    'embed: <stdin>:1: segments: 1 of them, but 2 ids'
want 'a segment that is none' 'embed -m ./bert' \
    '{"ids":[3,17],"segments":[0,2]}' 1 - 'embed: <stdin>:1: segments: 2 at 1*'
want 'segments that are no integers' 'embed -m ./bert' \
    '{"ids":[3],"segments":["x"]}' 1 - 'embed: <stdin>:1: segments*'
want 'GPT-2 looks at none' 'embed -j | jq ".hidden | length"' \
    '{"ids":[3],"segments":[7]}' 0 1
want 'a vocabulary is no model' 'embed -m gpt2' '{"ids":[3]}' 1 - \
    'embed: gpt2 is a vocabulary only: *'
want 'past the window: what helps' 'embed -j' '{"pos":255,"ids":[1,2]}' 1 - \
    'embed: <stdin>:1: position 256 is beyond * (tok-encode --max or --chunk *'
finish
