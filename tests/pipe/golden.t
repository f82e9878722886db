# The bundled model against golden values computed in float64 (see
# tests/golden/fairy/README.md): hidden states after every layer, attention
# weights of every head, logits; 1e-4 absolute + 1e-4 relative, weights 1e-5.
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

WEIGHTS='--atol 1e-5 --rtol 0'

# --- The ids of the prompts.
jq -c '.[] | {text}' "$GOLDEN/prompts.json" >texts
jq -c '.[].ids' "$GOLDEN/prompts.json" >ids.want
run "tok-encode -r --special all texts | jq -c .ids"
is 'tok-encode -r: the ids of all prompts' "$(cat out)" "$(cat ids.want)"

for p in p1 p2 p3; do
    g=$GOLDEN/$p
    embed "$g"_ids.npy >$p.embd
    embed -j "$g"_ids.npy >$p.embd.json
    close_to "$p: embeddings" "tensor -s hidden -o safetensors $p.embd" \
        "$g"_embd.npy
    for l in 0 1 2 3 4 5; do
        tensor -s data:$l -o npy "$g"_resid_post.npy >$p.post.$l.npy
        close_to "$p: hidden after block $l" \
            "attend -l 0-$l $p.embd | tensor -s hidden -o safetensors" \
            "$p.post.$l.npy"
        close_to "$p: hidden after block $l, through NDJSON" \
            "attend -j -l 0-$l $p.embd.json | tensor -s hidden -o json" \
            "$p.post.$l.npy"
    done

    # --- All blocks: weights, hidden, logits.
    attend -a $p.embd >$p.all
    attend -a -j $p.embd.json >$p.all.json
    for form in all all.json; do
        close_to "$p: attention weights of every head ($form)" \
            "tensor -s attn -o safetensors $p.$form" "$g"_attn.npy "$WEIGHTS"
        close_to "$p: hidden, with -a ($form)" \
            "tensor -s hidden -o safetensors $p.$form" $p.post.5.npy
        close_to "$p: logits ($form)" \
            "unembed -A $p.$form | tensor -s logits -o safetensors" \
            "$g"_logits.npy
    done
    tensor -s data:-1: -o npy "$g"_logits.npy >$p.last.npy
    close_to "$p: logits of the last position only" \
        "attend $p.embd | unembed | tensor -s logits -o safetensors" \
        $p.last.npy
    close_to "$p: logits through NDJSON all the way" \
        "embed -j '$g'_ids.npy | attend -j | unembed -A -j \
            | tensor -s logits -o json" "$g"_logits.npy

    # --- Split over two and over six processes; attn is appended.
    attend -a -l 0-2 $p.embd | attend -a -l 3-5 >$p.split
    close_to "$p: attention weights, attend split in two" \
        "tensor -s attn -o safetensors $p.split" "$g"_attn.npy "$WEIGHTS"
    same "$p: attend split in two gives the same bytes" $p.split $p.all
    attend -a -j -l 0-2 $p.embd.json | attend -a -j -l 3-5 >$p.split.json
    same "$p: the same through NDJSON" $p.split.json $p.all.json
    attend -a -l 0 $p.embd | attend -a -l 1 | attend -a -l 2 \
        | attend -a -l 3 | attend -a -l 4 | attend -a -l 5 >$p.six
    same "$p: attend split in six gives the same bytes" $p.six $p.all
    attend -l 0-2 $p.embd | attend >$p.rest
    attend $p.embd >$p.plain
    same "$p: without -l, attend goes on where hidden is" $p.rest $p.plain

    # --- Weights of some heads and layers.
    tensor -s data:1:3,2:4 -o npy "$g"_attn.npy >$p.some.npy
    close_to "$p: weights of layers 1 and 2, heads 2 and 3" \
        "attend -l 0 $p.embd | attend -a -l 1,2 --heads 2-3 \
            | tensor -s attn -o safetensors" $p.some.npy "$WEIGHTS"
    json "$p: layers and heads name what attn holds" \
        "attend -l 0 $p.embd | attend -j -a -l 1,2 --heads 2-3" '' \
        '.[0] | .layers == [1, 2] and .heads == [2, 3] and .layer == 3'
    json "$p: of all, split" "tensor --drop hidden -o json $p.split" '' \
        '.[0] | .layers == [0,1,2,3,4,5] and .heads == [0,1,2,3]
            and .layer == 6'
done

# --- The same once more by an independent reader, so that all of the above
# does not rest on `tensor --diff`.
cat >check.py <<'END'
import os
from stream import *
golden = os.environ["GOLDEN"]
for p in "p1", "p2", "p3":
    def want(name):
        return npy("%s/%s_%s.npy" % (golden, p, name))
    for form in "all", "all.json":
        (fields, t), = read(open("%s.%s" % (p, form), "rb"))
        T = want("ids").shape[0]
        assert t["hidden"].shape == [T, 160], t["hidden"].shape
        assert t["attn"].shape == [6, 4, T, T], t["attn"].shape
        assert fields["layer"] == 6
        post = floats(want("resid_post"))
        bad = close(floats(t["hidden"]), post[-T * 160:], 1e-4, 1e-4) \
            or close(floats(t["attn"]), floats(want("attn")), 1e-5, 0)
        assert not bad, (p, form, bad)
        rows = floats(t["attn"])
        for i in range(0, len(rows), T):
            assert abs(sum(rows[i:i + T]) - 1) < 1e-5
            q = i // T % T
            assert not any(rows[i + q + 1:i + T]), "a key of the future"
END
check 'the same by an independent reader' 'python3 check.py'
finish
