# model-info: what a model is.  (What is refused: pipe/load.t.)
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

run model-info
is 'model-info' "$status" 0
for line in 'model_type gpt2' 'hidden_size 160' 'layers 6' 'heads 4' \
    'head_size 40' 'intermediate_size 640' 'positions 256' 'vocab_size 4096' \
    'activation gelu_new' 'tied_head true' 'eos 4095' \
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
    - 'model-info: m: tensor * is not finite at element *'
want 'an operand' 'model-info fairy' '' 2 - 'model-info: *-m*'
finish
