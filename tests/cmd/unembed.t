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

# --- BERT's head for masked words.
python3 "$PF_SOURCE/tests/small_bert.py" bare pooler
want 'no head' 'unembed -m ./bare' '{"hidden":[[0,0,0,0,0,0,0,0]]}' 1 - \
    'unembed: ./bare: *no output head*'
cat >masked.py <<'END'
from stream import *
from small_bert import *
import math
import subprocess
import sys

words, norm = sys.argv[1:-1], sys.argv[-1] == "norm"
distil = "distil" in words
main_dir = "distil" if distil else "masked"
sys.argv[1:] = [main_dir] + words
main()
w = {n: t[1] for n, t in weights(words).items()}
head = "vocab_" if distil else "cls.predictions.transform."
dense = head + ("transform" if distil else "dense")
name = head + ("layer_norm" if distil else "LayerNorm")
bias = w["vocab_projector.bias" if distil else "cls.predictions.bias"]
table = w[("distilbert" if distil else "bert")
          + ".embeddings.word_embeddings.weight"]
x = numbers(C, 77)
out = subprocess.run(["unembed", "-j", "-m", "./" + main_dir]
    + ([] if norm else ["--no-norm"]),
    input=json.dumps({"hidden": [x]}).encode(),
    stdout=subprocess.PIPE, check=True).stdout
got, = json.loads(out)["logits"]
h = [w[dense + ".bias"][o] + sum(x[i] * w[dense + ".weight"][o * C + i]
     for i in range(C)) for o in range(C)]
h = [v * 0.5 * (1 + math.erf(v / math.sqrt(2))) for v in h]
if norm:
    mean = sum(h) / C
    var = sum((v - mean) ** 2 for v in h) / C
    h = [(v - mean) / math.sqrt(var + 1e-12) * w[name + ".weight"][i]
         + w[name + ".bias"][i] for i, v in enumerate(h)]
assert len(got) == V
for v in range(V):
    y = bias[v] + sum(h[i] * table[v * C + i] for i in range(C))
    assert abs(y - got[v]) < 1e-5, (v, y, got[v])
END
for words in head 'distil head'; do
    for norm in norm bare; do
        check "$words, $norm" "rm -rf masked distil; python3 masked.py $words $norm"
    done
done
finish
