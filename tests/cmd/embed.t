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
finish
