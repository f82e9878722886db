# unembed: hidden to logits.  (Its numbers: pipe/golden.t.)
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

echo '{"seq":"a","ids":[464,5,9],"tag":1.50}' | embed | attend >in
json 'logits [1, V] of the last position' 'unembed -j in' '' '.[0]
    | (.logits | length) == 1 and (.logits[0] | length) == 4096
        and .seq == "a" and .ids == [464, 5, 9] and (has("hidden") | not)'
json '-A: of every position' 'unembed -A -j in' '' '.[0]
    | (.logits | length) == 3'
check 'the last of -A is the one without' \
    'unembed -A in | tensor -s logits:-1 -o npy >a
    unembed in | tensor -s logits:0 -o npy >b; cmp a b'
json '--keep hidden' 'unembed -j --keep hidden in' '' \
    '(.[0].hidden | length) == 3'
json 'fields ride along' 'unembed -j in | grep 1.50' '' '.[0].tag == 1.5'
# The head is tied: without the norm, logits are hidden . wte.
echo '{"ids":[777]}' | embed --no-pos >row
json '--no-norm: an embedding is most like itself' \
    'unembed -j --no-norm row | jq -c .logits[0]' '' \
    '.[0] | .[777] as $x | all(. <= $x)'
check '--no-norm: logits are hidden times the table' "python3 -c '
from stream import *
import subprocess
b = open(os.environ[\"FAIRY\"] + \"/model.safetensors\", \"rb\").read()
n, = struct.unpack(\"<Q\", b[:8])
h = json.loads(b[8:8 + n])
a = 8 + n + h[[k for k in h if k.endswith(\"wte.weight\")][0]][\"data_offsets\"][0]
(f, t), = read(open(\"row\", \"rb\"))
x = floats(t[\"hidden\"])
got = json.loads(subprocess.run([\"unembed\", \"-j\", \"--no-norm\", \"row\"],
    capture_output=True).stdout)[\"logits\"][0]
for i in 0, 1, 776, 777, 4095:
    w = struct.unpack(\"<160e\", b[a + 320 * i:a + 320 * (i + 1)])
    y = sum(p * q for p, q in zip(x, w))
    assert abs(y - got[i]) < 1e-4 + 1e-4 * abs(y), (i, y, got[i])'"
check 'without, it is another' \
    'unembed row >a; unembed --no-norm row >b; ! cmp -s a b'
json 'after any block: the logit lens' \
    'echo "{\"ids\":[464,5]}" | embed | attend -l 0-2 | unembed -j' '' \
    '(.[0].logits[0] | length) == 4096 and .[0].layer == 3'
json 'more: no logits yet' "jq -n '{seq: 1, ids: [5], more: true}' -c \
    | embed | attend | unembed -j" '' \
    '(.[0] | has("logits") | not) and .[0].more == true'
json 'more, -A: all the same' "jq -n '{seq: 1, ids: [5], more: true}' -c \
    | embed | attend | unembed -j -A" '' '(.[0].logits | length) == 1'
json 'no rows, -A: no logits' 'unembed -j -A' '{"hidden":[]}' \
    '.[0].logits == []'
want 'no rows' 'unembed -j' '{"hidden":[]}' 1 - 'unembed: <stdin>:1: *'
finish
