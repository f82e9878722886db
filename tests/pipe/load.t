# Models: the forms in which GPT-2's weights come, and what is wrong with those
# that are refused.  All variants are made here from the bundled model.
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

cat >make.py <<'END'
import json
import os
import shutil
import struct
from stream import *
src = os.environ["FAIRY"]
config = json.load(open(src + "/config.json"))
raw = open(src + "/model.safetensors", "rb").read()
n, = struct.unpack("<Q", raw[:8])
header = json.loads(raw[8:8 + n])
header.pop("__metadata__", None)
weights = {}
for name, e in header.items():
    a, b = e["data_offsets"]
    weights[name] = Tensor(e["dtype"], e["shape"], raw[8 + n + a:8 + n + b])
bare = {k[len("transformer."):] if k.startswith("transformer.") else k: v
        for k, v in weights.items()}
bare.pop("lm_head.weight", None)


def wide(t):
    v = floats(t)
    return Tensor("F32", t.shape, struct.pack("<%df" % len(v), *v))


def half(t, keep):
    """BF16 by cutting bits off; `keep`: as F32 of the same values."""
    v = struct.unpack("<%dI" % (len(t.data) // 4), t.data)
    if keep:
        return Tensor("F32", t.shape, struct.pack(
            "<%dI" % len(v), *(x & 0xffff0000 for x in v)))
    return Tensor("BF16", t.shape, struct.pack(
        "<%dH" % len(v), *(x >> 16 for x in v)))


def model(name, tensors, shards=1, pad=8, **changes):
    os.mkdir(name)
    c = {**config, **changes}
    json.dump({k: v for k, v in c.items() if v != "absent"},
              open(name + "/config.json", "w"))
    for f in "vocab.json", "merges.txt", "tokenizer_config.json":
        os.symlink(src + "/" + f, name + "/" + f)
    if shards == 1:
        open(name + "/model.safetensors", "wb").write(
            document(tensors, pad=pad))
        return
    index, names = {}, sorted(tensors)
    for i in range(shards):
        f = "model-%05d-of-%05d.safetensors" % (i + 1, shards)
        part = {k: tensors[k] for k in names[i::shards]}
        open(name + "/" + f, "wb").write(document(part))
        index.update({k: f for k in part})
    json.dump({"metadata": {"total_size": 1}, "weight_map": index},
              open(name + "/model.safetensors.index.json", "w"))


f32 = {k: wide(v) for k, v in bare.items()}
with_prefix = {"transformer." + k: v for k, v in bare.items()}
head = {"lm_head.weight": bare["wte.weight"]}
model("f16", bare)
model("f32", f32)
model("bf16", {k: half(v, False) for k, v in f32.items()})
model("bf16as32", {k: half(v, True) for k, v in f32.items()})
model("prefix", with_prefix)
model("head", {**with_prefix, **head}, tie_word_embeddings=False)
model("bare-head", {**bare, **head}, tie_word_embeddings=False)
model("tied-head", {**with_prefix, **head})
model("sharded", with_prefix, shards=3)
model("inner", bare, n_inner=640)
model("odd", {"a": Tensor("U8", [3], b"abc"), **bare}, pad=1)
model("extra", {**bare, **{"h.%d.attn.bias" % i: Tensor(
    "BOOL", [1, 1, 4, 4], b"\1" * 16) for i in range(6)}})
model("defaults", bare, activation_function="absent", layer_norm_epsilon=
      "absent", tie_word_embeddings="absent", n_inner="absent",
      n_ctx="absent")
# A head of its own that is not the embedding: twice as large.
v = floats(bare["wte.weight"])
double = Tensor("F16", bare["wte.weight"].shape,
                struct.pack("<%de" % len(v), *(2 * x for x in v)))
model("double", {**bare, "lm_head.weight": double}, tie_word_embeddings=False)

# What is refused.
def without(name):
    return {k: v for k, v in bare.items() if k != name}


model("no-tensor", without("h.3.mlp.c_fc.bias"))
model("no-wte", without("wte.weight"))
model("no-head", with_prefix, tie_word_embeddings=False)
model("shape", {**bare, "h.2.attn.c_proj.weight": Tensor(
    "F16", [160, 80], b"\0" * 160 * 80 * 2)})
model("turned", {**bare, "h.2.mlp.c_fc.weight": Tensor(
    "F16", [640, 160], bare["h.2.mlp.c_fc.weight"].data)})
model("dtype", {**bare, "h.1.ln_1.bias": Tensor("I32", [160], b"\0" * 640)})
model("arch", bare, model_type="llama")
model("no-arch", bare, model_type="absent")
model("act", bare, activation_function="mish")
model("heads", bare, n_head=7)
model("no-heads", bare, n_head=0)
model("half-head", bare, n_head=1.5)
model("string", bare, n_embd="160")
model("layers", bare, n_layer=7)
model("huge", bare, n_layer=1e15)
model("cross", bare, add_cross_attention=True)
model("wrong-inner", bare, n_inner=512)
model("nan", {**bare, "h.5.ln_2.bias": Tensor("F16", [160], b"\xff" * 320)})
model("no-weights", bare)
os.remove("no-weights/model.safetensors")
model("no-config", bare)
os.remove("no-config/config.json")
model("cut", bare)
whole = open("cut/model.safetensors", "rb").read()
open("cut/model.safetensors", "wb").write(whole[:-1])
model("long", bare)
open("long/model.safetensors", "ab").write(b"\0")
model("cut-header", bare)
open("cut-header/model.safetensors", "wb").write(whole[:100])
model("lying-header", bare)
open("lying-header/model.safetensors", "wb").write(
    struct.pack("<Q", 1 << 60) + whole[8:])
model("empty", bare)
open("empty/model.safetensors", "wb").close()
model("text", bare)
open("text/model.safetensors", "w").write("version https://git-lfs.github\n")
model("bad-config", bare)
open("bad-config/config.json", "w").write('{"model_type": "gpt2",')
model("twice-config", bare)
open("twice-config/config.json", "w").write(
    json.dumps(config)[:-1] + ', "n_head": 4}')
model("no-shard", bare, shards=2)
os.remove("no-shard/model-00002-of-00002.safetensors")
model("up", bare, shards=2)
open("up/model.safetensors.index.json", "w").write(
    '{"weight_map": {"wte.weight": "../f16/model.safetensors"}}')
END
check 'the models are made' 'python3 make.py'

tok-encode <<'END' >ids
Once upon a time there was a king
The fox
END
# rows MODEL: hidden and logits as bare bytes
rows() {
    embed -m $1 ids | attend -m $1 >hid && unembed -m $1 -A hid >log \
        && { python3 "$PY" rows hidden <hid; python3 "$PY" rows logits <log; }
}
rows fairy >want
for model in f16 f32 prefix head bare-head tied-head sharded inner odd \
    extra defaults; do
    rows $model >got
    same "$model: the same bits as the bundled model" got want
    check "$model: model-info --check" "model-info --check -m $model"
done
rows bf16as32 >want.bf16
rows bf16 >got
same 'bf16: the same bits as F32 of the same values' got want.bf16
check 'which are others than those of F16' '! cmp -s want.bf16 want'
embed -m double ids | attend -m double | unembed -j -m double \
    | jq -c '[.logits[0][:50][] / 2]' >got
embed ids | attend | unembed -j | jq -c '.logits[0][:50]' >want
check 'double: lm_head is used, and it is its own' \
    'jq -es ".[0] as \$a | .[2] as \$b | [range(50)]
        | all(. as \$i | (\$a[\$i] - \$b[\$i]) | fabs < 1e-5)" got want'
json 'model-info: a head of its own' 'model-info -j -m double' '' \
    '.[0] | .tied_head == false and .layers == 6 and .heads == 4'
check 'a model directory with a slash at its end' \
    'embed -m f16/ ids | attend -m ./f16 >/dev/null'
check 'PIPEFORMER_MODEL' \
    'PIPEFORMER_MODEL=./f32 embed ids | attend -m f32 >/dev/null'

# --- Refused, with what is wrong named; each filter that opens the weights.
# no MODEL PATTERN
no() {
    for f in embed attend unembed; do
        want "$1: $f names it" "$f -j -m $1 ids 2>err2; s=\$?; cat err2 >&2
            exit \$s" '' 1 - "$f: *$2*"
        check '  and an error record comes out' \
            "tail -n 1 out | jq -e '.error | startswith(\"$f: \")'"
    done
    want "$1: model-info --check" "model-info --check -m $1" '' 1 - "*$2*"
}
no no-tensor 'h.3.mlp.c_fc.bias is missing'
no no-wte 'wte.weight is missing'
no no-head 'lm_head.weight is missing'
no shape 'h.2.attn.c_proj.weight*160,*80*160,*160'
no turned 'h.2.mlp.c_fc.weight*640,*160*160,*640'
no dtype 'h.1.ln_1.bias*I32'
no arch '"llama" is not supported'
no no-arch 'model_type'
no act '"mish" is not supported'
no heads 'n_embd 160*n_head 7'
no no-heads n_head
no half-head n_head
no string n_embd
no layers 'h.6.ln_1.weight is missing'
no huge n_layer
no cross add_cross_attention
no wrong-inner 'mlp.c_fc.weight*160,*640*160,*512'
no no-weights model.safetensors
no no-config config.json
no cut model.safetensors
no long model.safetensors
no cut-header model.safetensors
no lying-header model.safetensors
no empty model.safetensors
no text model.safetensors
no bad-config config.json
no twice-config '"n_head"*twice'
no no-shard 'model-00002-of-00002'
no up index.json
want 'nan: model-info --check finds it' 'model-info --check -m nan' '' 1 - \
    '*h.5.ln_2.bias*'
want 'nan: attend does not pass it on as numbers' \
    'embed -m nan ids | attend -m nan | unembed -m nan | sample -m nan \
        >/dev/null' '' 1 '' '*NaN*'
want 'no such model: 2 from --check' 'model-info --check -m /nowhere' '' 2 \
    - '*/nowhere*'
want 'no such model' 'embed -m nobody/nothing ids >/dev/null' '' 1 '' \
    'embed: *nobody/nothing*'
want 'an empty name' 'embed -m "" ids >/dev/null' '' 1 '' 'embed: *empty*'
want 'a .gguf file is told apart' ': >x.gguf; embed -m x.gguf ids >/dev/null' \
    '' 1 '' 'embed: *GGUF*'

# --- Another model's hidden.
embed -m fairy ids >hid
want "another model's hidden: attend" 'attend -m f32 hid | tail -c 1 >last' \
    '' 0 '' 'attend: hid:1: *model*'
want "another model's hidden: status" 'attend -m f32 hid >/dev/null' \
    '' 1 '' 'attend: hid:1: *model*-m*'
want "another model's hidden: unembed" 'unembed -j -m f32 hid' \
    '' 1 - 'unembed: hid:1: *model*-m*'
check '  and an error record' 'tail -n 1 out | jq -e .error'
want 'hidden without model is taken: it may be made by hand' \
    'embed -j ids | jq -c "del(.model)" | attend | unembed | tail -c 1 \
        | wc -c' '' 0 1

# --- The hub cache.
mkdir -p hub/models--me--story/refs hub/models--me--story/snapshots
printf abc123 >hub/models--me--story/refs/main
cp -r f16 hub/models--me--story/snapshots/abc123
check 'org/name in $HF_HUB_CACHE' \
    "HF_HUB_CACHE=$T/hub model-info -m me/story | grep -q abc123"
mkdir home
mv hub home
check 'org/name in $HF_HOME/hub' \
    "HF_HOME=$T/home model-info -m me/story | grep -q abc123"
mkdir -p h2/.cache
mv home h2/.cache/huggingface
check 'org/name in ~/.cache/huggingface/hub' \
    "HOME=$T/h2 model-info -m me/story | grep -q abc123"

# --- A model as HuggingFace writes it, random.
tiny=$SHARED/models/tiny-gpt2-random
if [ ! -d "$tiny" ]; then
    skip 'tiny-gpt2-random' "no $tiny"
else
    check 'tiny-gpt2-random: model-info --check' "model-info --check -m $tiny"
    json 'tiny-gpt2-random: its configuration' "model-info -j -m $tiny" '' \
        '.[0] | .layers == 1 and .heads == 1 and .hidden_size == 2
            and .vocab_size == 21 and .eos == [20]'
    json 'tiny-gpt2-random: runs' \
        "generate --whole -n 7 -m $tiny" '{"ids":[3,4,5]}' \
        '(.[0].ids | length) as $n | $n == 7
            or ($n < 7 and .[0].ids[-1] == 20)'
    json 'tiny-gpt2-random: logits' \
        "embed -m $tiny | attend -m $tiny | unembed -j -m $tiny" \
        '{"ids":[3,4,5]}' '(.[0].logits | length) == 1
            and (.[0].logits[0] | length) == 21'
fi
finish
