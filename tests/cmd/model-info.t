# model-info: what a model is.  (What is refused: pipe/load.t.)
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

run model-info
is 'model-info' "$status" 0
for line in 'model_type gpt2' 'hidden_size 160' 'layers 6' 'heads 4' \
    'head_size 40' 'intermediate_size 640' 'positions 256' 'vocab_size 4096' \
    'activation gelu_new' 'tied_head true' 'eos 4095' 'attention causal' \
    'parameters 2552320' 'bytes 5104640' 'bytes_F16 5104640' \
    'layer_norm_epsilon 1e-5'; do
    if tr -s ' ' <out | grep -qx "$line"; then
        ok "a line: $line"
    else
        not_ok "a line: $line" <out
    fi
done
json '-j: the same as JSON' 'model-info -j' '' '.[0]
    | .model_type == "gpt2" and .hidden_size == 160 and .layers == 6
        and .heads == 4 and .positions == 256 and .vocab_size == 4096
        and .eos == [4095] and .tied_head == true
        and .layer_norm_epsilon == 1e-5 and (.path | endswith("/fairy"))'
json 'the parameters are counted' 'model-info -j' '' '.[0]
    | .parameters == (4096 * 160 + 256 * 160 + 2 * 160
        + 6 * (4 * 160 + 160 * 480 + 480 + 160 * 160 + 160
            + 2 * 160 * 640 + 640 + 160))'
json 'where it was found' 'model-info -j -m "$FAIRY/"' '' \
    ".[0].path | startswith(\"$FAIRY\")"
json 'its fingerprint is the one in records' \
    'model-info -j; echo "{\"ids\":[1]}" | embed -j' '' \
    '.[0].model == .[1].model'
json '--tensors' 'model-info -j --tensors' '' '.[0].tensors
    | length == 76 and all(.dtype == "F16")
        and any(.name | endswith("h.5.mlp.c_proj.weight"))
        and (map(select(.name | endswith("wte.weight")))[0].shape
            == [4096, 160])'
check '--tensors as a table' \
    'model-info --tensors | grep -q "h.0.attn.c_attn.weight *F16 *\[160,"'
want '--check: sound' 'model-info --check | sed "s/.*: //"' '' 0 sound
want '--check -q' 'model-info --check -q' '' 0 ''
want '--check: no such model is trouble' 'model-info --check -m /no/where' \
    '' 2 - 'model-info: model /no/where*'
want 'no such model' 'model-info -m nobody' '' 1 - 'model-info: model nobody*'
mkdir m
cp "$FAIRY"/* m
truncate -s -1 m/model.safetensors
want '--check: a file cut off is not sound' 'model-info --check -m m' '' 1 \
    - 'model-info: m/model.safetensors: *'
cp "$FAIRY"/model.safetensors m
python3 - <<'END'
import struct
b = bytearray(open("m/model.safetensors", "rb").read())
b[-2:] = struct.pack("<e", float("inf"))
open("m/model.safetensors", "wb").write(b)
END
want '--check: an infinity among the weights' 'model-info --check -m m' '' 1 \
    - 'model-info: m: tensor * is not finite at element *, inf'

# --- --check names what is wrong: the tensor, the file, the byte.
cat >break.py <<'END'
from stream import *
src = os.environ["FAIRY"] + "/"
config = json.load(open(src + "config.json"))
raw = open(src + "model.safetensors", "rb").read()
n, = struct.unpack("<Q", raw[:8])
header = json.loads(raw[8:8 + n])
data = raw[8 + n:]
weights = {k: Tensor(e["dtype"], e["shape"], data[slice(*e["data_offsets"])])
           for k, e in header.items() if k != "__metadata__"}
last = max((e["data_offsets"][1], k) for k, e in header.items()
           if k != "__metadata__")[1]
def model(name, body, **changes):
    os.mkdir(name)
    json.dump({**config, **changes}, open(name + "/config.json", "w"))
    for f in "vocab.json", "merges.txt":
        os.symlink(src + f, name + "/" + f)
    if body:
        open(name + "/model.safetensors", "wb").write(body)
def raw_header(h, more=b""):
    text = h if isinstance(h, bytes) else json.dumps(h).encode()
    return struct.pack("<Q", len(text)) + text + data + more
print(last)
model("cut", raw[:-1])
model("long", raw + b"x")
# Two tensors whose data lie on each other, and a gap.
a, b = sorted((e["data_offsets"], k) for k, e in header.items()
              if k != "__metadata__")[:2]
size = a[0][1] - a[0][0]
lap = json.loads(json.dumps(header))
lap[b[1]]["data_offsets"] = [a[0][1] - 2, b[0][1] - 2]
model("overlap", raw_header(lap))
print(b[1])
lap[b[1]]["data_offsets"] = [a[0][1] + 2, b[0][1] + 2]
model("gap", raw_header(lap))
lap[b[1]]["data_offsets"] = [a[0][1], b[0][1] - 2]
model("short", raw_header(lap))
text = json.dumps(header).encode()
at = text.index(b'"dtype"')
model("json", raw_header(text[:at] + b"x" + text[at:]))
print(at)
twice = text[:-1] + b', "' + b[1].encode() + b'": ' + \
    json.dumps(header[b[1]]).encode() + b"}"
model("twice", raw_header(twice))
name = "transformer." if any(k[:6] == "transf" for k in weights) else ""
nan = bytearray(weights[name + "h.4.ln_1.weight"].data)
nan[14:16] = b"\x00\x7e"
model("nan", document({**weights, name + "h.4.ln_1.weight": Tensor(
    "F16", [160], bytes(nan))}))
model("shape", document({**weights, name + "h.4.ln_1.weight": Tensor(
    "F16", [2, 80], bytes(160 * 2))}))
model("block", document(weights), n_layer=5)
model("small", document({**weights, name + "wte.weight": Tensor(
    "F16", [4000, 160], bytes(4000 * 320))}), vocab_size=4000)
model("index", None)
half = sorted(weights)[:30]
parts = {"a.safetensors": {k: weights[k] for k in half}, "b.safetensors":
         {k: v for k, v in weights.items() if k not in half}}
for f, part in parts.items():
    open("index/" + f, "wb").write(document(part))
where = {k: f for f, part in parts.items() for k in part}
def index(to, w):
    if to != "index":
        shutil.copytree("index", to, symlinks=True)
    json.dump({"weight_map": w},
              open(to + "/model.safetensors.index.json", "w"))
import shutil
index("index", where)
index("swapped", {**where, half[0]: "b.safetensors"})
index("unlisted", {k: f for k, f in where.items() if k != half[0]})
index("missing", {**where, "nobody": "a.safetensors"})
print(half[0])
# Masks as old files hold them, and the tied head once more: no parameters.
model("masks", document({**weights, **{name + "h.%d.attn.bias" % i: f32(
    [1, 1, 4, 4], [1] * 16) for i in range(6)}, **{
    name + "h.0.attn.masked_bias": f32([], [-1e4]),
    "lm_head.weight": weights[name + "wte.weight"]}}))
END
python3 break.py >names
{ read -r last; read -r second; read -r byte; read -r first; } <names
# bad MODEL PATTERN
bad() {
    want "--check: $1: 1, named" "model-info --check -m $1" '' 1 '' \
        "model-info: $2"
}
bad cut "cut/model.safetensors: *they end before the end of tensor $last"
bad long 'long/model.safetensors: * the rest is of no tensor'
bad overlap "overlap/model.safetensors: *\"$second\" begins at *where * is next"
bad gap "gap/model.safetensors: *\"$second\" begins at *where * is next"
bad short "short/model.safetensors: *\"$second\" is F16 *"
bad twice "twice/model.safetensors: *\"$second\" stands twice"
bad json "json/model.safetensors: *(byte $byte of the header)"
bad nan 'nan: tensor *h.4.ln_1.weight is not finite at element 7, *nan'
bad shape 'shape: tensor *h.4.ln_1.weight has the shape *2, 80*makes it *160*'
bad block 'block: tensor *h.5.* is of a block that config.json does not have*'
bad small 'small: the tokenizer has 4096 ids, the model knows 4000'
bad swapped "swapped/*index.json: tensor $first is in a.safetensors"
bad unlisted \
    "unlisted/*index.json: tensor $first of a.safetensors is not listed"
bad missing 'missing/*index.json: tensor nobody is in no file'
want '--check: an index that is right' 'model-info --check -q -m index' '' 0 ''
json 'masks and a tied head are not counted' 'model-info -j -m masks' '' \
    '.[0] | .parameters == 2552320 and .bytes > 5104640
        and .bytes_F16 + .bytes_F32 == .bytes'

# --- An encoder.
mini=$SHARED/models/all-MiniLM-L6-v2
if [ -d "$mini" ]; then
    json 'a BERT' "model-info -j -m '$mini'" '' '.[0]
        | .model_type == "bert" and .hidden_size == 384 and .layers == 6
            and .heads == 12 and .head_size == 32 and .positions == 512
            and .intermediate_size == 1536 and .vocab_size == 30522
            and .segments == 2 and .attention == "both ways"
            and .tied_head == null and .pooler == true and .eos == []
            and .parameters == 22713216 and .activation == "gelu"'
    want '--tensors: long names stay in their column' "model-info --tensors \
        -m '$mini' | sed -n '/ F16  *\[/s/ F16 .*//p' | awk '{ print length }' |
        sort -u | wc -l | tr -d ' '" '' 0 1
    want 'a BERT: --check' "model-info -q --check -m '$mini'" '' 0 ''
else
    skip 'a BERT' "no $mini"
fi
want 'an operand' 'model-info fairy' '' 2 - 'model-info: *-m*'
finish
