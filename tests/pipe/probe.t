# Taps, patches and ablation in whole pipes: what is tapped equals golden values
# and adds up to the residual stream; it has the same bits however the text is
# cut; a run that gets its own activations back changes no bit, and one that
# gets another's does what that one did.
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

WEIGHTS='--atol 1e-5 --rtol 0'
POINTS='resid_pre ln1.normalized attn.q attn.k attn.v attn.attn_scores
    attn.pattern attn.z attn.result attn_out resid_mid ln2.normalized mlp.pre
    mlp.post mlp_out resid_post'
export POINTS

# --- Golden values.
for p in p1 p2 p3; do
    g=$GOLDEN/$p
    embed "$g"_ids.npy >$p.embd
    attend --tap 'blocks.*.resid_p*,blocks.*.attn.pattern' $p.embd >taps
    close_to "$p: resid_pre of block 0 is the embedding" \
        'tensor -s blocks.0.resid_pre -o safetensors taps' "$g"_embd.npy
    for l in 0 1 2 3 4 5; do
        tensor -s data:$l -o npy "$g"_resid_post.npy >post.npy
        close_to "$p: resid_post of block $l" \
            "tensor -s blocks.$l.resid_post -o safetensors taps" post.npy
        tensor -s data:$l -o npy "$g"_attn.npy >attn.npy
        close_to "$p: pattern of block $l" \
            "tensor -s blocks.$l.attn.pattern -o safetensors taps" attn.npy \
            "$WEIGHTS"
    done
done
model=$SHARED/models/gpt-nano-sort
if [ -d "$model" ]; then
    for p in b0 b1 b2; do
        r=$model/ref/$p
        embed -m "$model" "$r"_ids.npy | attend -m "$model" \
            --tap 'blocks.*.resid_post' --tap 'blocks.*.pattern' >taps
        for l in 0 1 2; do
            tensor -s data:$((l + 1)) -o npy "$r"_hidden_states.npy >post.npy
            close_to "gpt-nano-sort, $p: resid_post of block $l" \
                "tensor -s blocks.$l.resid_post -o safetensors taps" post.npy
            tensor -s data:$l -o npy "$r"_attentions.npy >attn.npy
            close_to "gpt-nano-sort, $p: pattern of block $l" \
                "tensor -s blocks.$l.attn.pattern -o safetensors taps" \
                attn.npy "$WEIGHTS"
        done
    done
else
    skip 'gpt-nano-sort' "no $model (set PIPEFORMER_SHARED)"
fi

# --- All of it, by an independent reader: shapes, sums, softmax.
attend -a --tap 'blocks.*' p3.embd >all
cat >whole.py <<'END'
import math
import os
from stream import *
L, H, D, C, F = 6, 4, 40, 160, 640
(fields, t), = read(open("all", "rb"))
(_, w), = read(open(os.environ["FAIRY"] + "/model.safetensors", "rb"))
w = {name.replace("transformer.", ""): x for name, x in w.items()}
T = t["hidden"].shape[0]
assert fields["heads"] == list(range(H)), fields
shapes = {"attn.q": [T, H, D], "attn.k": [T, H, D], "attn.v": [T, H, D],
          "attn.z": [T, H, D], "attn.attn_scores": [H, T, T],
          "attn.pattern": [H, T, T], "attn.result": [T, H, C],
          "mlp.pre": [T, F], "mlp.post": [T, F]}
names = os.environ["POINTS"].split()
assert len(names) == 16
for l in range(L):
    for name in names:
        x = t["blocks.%d.%s" % (l, name)]
        assert x.dtype == "F32" and x.shape == shapes.get(name, [T, C]), name
assert len([n for n in t if n.startswith("blocks.")]) == L * len(names)


def f(l, name):
    return floats(t["blocks.%d.%s" % (l, name)])


def add(x, y):
    return [a + b for a, b in zip(x, y)]


def near(x, y, what, tol=1e-4):
    bad = close(x, y, tol, tol)
    assert not bad, (what, bad)


attn = floats(t["attn"])
stream = floats(t["blocks.0.resid_pre"])
for l in range(L):
    pattern, scores = f(l, "attn.pattern"), f(l, "attn.attn_scores")
    assert attn[l * H * T * T:][:H * T * T] == pattern, "attn is the pattern"
    for i in range(0, H * T * T, T):
        row, s, seen = pattern[i:i + T], scores[i:i + T], i // T % T + 1
        assert abs(sum(row) - 1) < 1e-5, "a row sums to 1"
        assert all(x == -math.inf for x in s[seen:]) and not any(row[seen:])
        e = [math.exp(x - max(s)) for x in s]
        near(row, [x / sum(e) for x in e], "softmax", 1e-5)
    # The weighted mean of v is z.
    v, z = f(l, "attn.v"), f(l, "attn.z")
    for h in range(H):
        for q in range(T):
            row = pattern[(h * T + q) * T:][:T]
            for d in range(0, D, 7):
                mean = sum(p * v[(k * H + h) * D + d]
                           for k, p in enumerate(row))
                assert abs(mean - z[(q * H + h) * D + d]) < 1e-4
    bias = floats(w["h.%d.attn.c_proj.bias" % l])
    result, out = f(l, "attn.result"), f(l, "attn_out")
    heads = [sum(result[(q * H + h) * C + c] for h in range(H)) + bias[c]
             for q in range(T) for c in range(C)]
    near(heads, out, "the heads' results and the bias are attn_out")
    near(add(f(l, "resid_pre"), out), f(l, "resid_mid"), "resid_mid")
    near(add(f(l, "resid_mid"), f(l, "mlp_out")), f(l, "resid_post"), "post")
    near([x / (1 + math.exp(-2 * 0.7978845608028654
                            * (x + 0.044715 * x ** 3)))
          for x in f(l, "mlp.pre")], f(l, "mlp.post"), "gelu")
    if l:
        assert f(l, "resid_pre") == f(l - 1, "resid_post")
    stream = add(add(stream, heads), f(l, "mlp_out"))
assert f(L - 1, "resid_post") == floats(t["hidden"])
near(stream, floats(t["hidden"]), "embedding + heads + biases + MLPs", 2e-4)
END
check 'shapes; softmax; everything adds up to the residual stream' \
    'python3 whole.py'

# --- The lens of the last block is the logits, of any other what that has.
attend p3.embd | unembed -A | tensor -s logits -o npy >logits
tensor -s blocks.5.resid_post -o npy all | tensor -o npy >lens.npy
unembed -A lens.npy | tensor -s logits -o npy >lens
same 'the lens of the last block gives the logits' lens logits
attend -l 0-2 p3.embd | unembed -A | tensor -s logits -o npy >logits
tensor -s blocks.2.resid_post -o npy all >lens.npy
unembed -A lens.npy | tensor -s logits -o npy >lens
same 'the lens of block 2 is attend -l 0-2 | unembed' lens logits

# --- Looking changes nothing, whoever looks along.
attend p3.embd >plain
tensor -s hidden -o npy plain >plain.npy
tensor -s hidden -o npy all >all.npy
same 'taps and maps change no bit' all.npy plain.npy
attend --threads 1 -a --tap 'blocks.*' p3.embd >one
same 'one thread: the same bytes' one all
tensor -s ids -o json p3.embd | jq -c '{seq: "p3", ids}' >alone.json
printf '%s\n' '{"seq":"x","ids":[464,5,9]}' '{"seq":"y","ids":[7]}' |
    cat - alone.json | embed | attend -a --tap 'blocks.*' |
    tensor -o json | jq -c 'select(.seq == "p3")' >beside
embed alone.json | attend -j -a --tap 'blocks.*' | jq -c . >alone
same 'beside other records: the same numbers' beside alone

# --- Which heads, which layers.
attend --tap 'blocks.2.*' --heads 3,1 p3.embd >some
for name in attn.q attn.z attn.result; do
    check "--heads 3,1: $name" "
        tensor -s blocks.2.$name:,3 -o npy all >a
        tensor -s blocks.2.$name:,0 -o npy some | cmp - a &&
        tensor -s blocks.2.$name:,1 -o npy all >a
        tensor -s blocks.2.$name:,1 -o npy some | cmp - a"
done
for name in attn.pattern attn.attn_scores; do
    check "--heads 3,1: $name" "
        tensor -s blocks.2.$name:3 -o npy all >a
        tensor -s blocks.2.$name:0 -o npy some | cmp - a &&
        tensor -s blocks.2.$name:1 -o npy all >a
        tensor -s blocks.2.$name:1 -o npy some | cmp - a"
done
json '--heads 3,1: heads says so, and rows without heads are whole' \
    'tensor -o json some' '' '.[0] | .heads == [3, 1]
        and (.["blocks.2.attn.q"][0] | length) == 2
        and (.["blocks.2.mlp_out"][0] | length) == 160
        and ([keys[] | select(startswith("blocks."))] | length) == 16'
attend -l 0-2 --tap 'blocks.*' p3.embd | attend -a --tap 'blocks.*' |
    tensor --drop attn -o safetensors >split
tensor --drop attn -o safetensors all >whole
check 'two processes tap their own layers into one record' \
    'tensor --diff whole split'
want 'but not of other heads' \
    "attend -l 0 --heads 1 --tap blocks.0.attn.q p1.embd |
        attend -l 1 --tap blocks.1.attn.q >/dev/null" '' 1 '' \
    'attend: <stdin>:1: heads: blocks.0.attn.q is of other heads *'
want 'neither maps' \
    "attend -l 0 --heads 1 --tap blocks.0.attn.q p1.embd |
        attend -l 1 -a >/dev/null" '' 1 '' \
    'attend: <stdin>:1: heads: blocks.0.attn.q is of other heads *'
check 'without values a head there is no heads' \
    'attend --tap blocks.0.mlp_out p1.embd | tensor -o json |
        jq -e "has(\"heads\") | not"'

# --- Cut in any way: the same bits; a map has a column for each position.
cat >cut.py <<'END'
import json
import os
import random
from stream import *
random.seed(3)
ids = list(floats(npy(os.environ["GOLDEN"] + "/p3_ids.npy")))
for name, most in ("tokens", 1), ("pieces", 9):
    with open(name, "w") as f:
        at = 0
        while at < len(ids):
            n = random.randint(1, most)
            print(json.dumps({"seq": "a", "pos": at, "ids": ids[at:at + n]}),
                  file=f)
            at += n
END
python3 cut.py
cat >same.py <<'END'
import sys
from stream import *
(_, whole), = read(open(sys.argv[1], "rb"))
n = 0
for fields, part in read(open(sys.argv[2], "rb")):
    pos, T = fields.get("pos", 0), part["hidden"].shape[0]
    assert set(part) == set(whole), set(part) ^ set(whole)
    for name, x in part.items():
        if name == "ids":
            continue
        w = whole[name]
        if name == "attn" or name.endswith(("pattern", "attn_scores")):
            S = w.shape[-1]
            assert x.shape[-2:] == [T, pos + T], (name, x.shape)
            for k in range(count(x.shape[:-2])):
                for t in range(T):
                    a = 4 * (k * S + pos + t) * S
                    b = 4 * (k * T + t) * (pos + T)
                    seen = 4 * (pos + t + 1)
                    assert w.data[a:a + seen] == x.data[b:b + seen], name
                    n += 1
        else:
            assert x.shape[0] == T and x.shape[1:] == w.shape[1:], name
            size = len(w.data) // w.shape[0]
            assert w.data[pos * size:(pos + T) * size] == x.data, name
            n += T
assert n > 1000, n
END
for how in tokens pieces; do
    embed $how | attend -a --tap 'blocks.*' >taps.$how
    check "$how: every tap has the bits of the whole" \
        "python3 same.py all taps.$how"
done

# --- While generating: a map grows one row a token.
run "tok-encode | generate --whole -- 'embed | attend \
    --tap blocks.5.attn.pattern --heads 2 | tee maps | unembed | sample -n 6' \
    | tok-decode" 'Once upon a time'
is 'generating with taps: the same text' "$status$(cat out)" \
    '0, he was so tired that'
json 'a row a token, of all positions so far' 'tensor -o json maps' '
' 'map(select(has("hidden")) | .["blocks.5.attn.pattern"])
    | length == 6
    and map([length, (.[0] | length), (.[0][0] | length)]) == [[1, 4, 4],
        [1, 1, 5], [1, 1, 6], [1, 1, 7], [1, 1, 8], [1, 1, 9]]
    and all(.[][0][]; add - 1 | fabs < 1e-5)'

# --- A run's own activations change no bit.
attend -a p3.embd >plain.a
check 'all points put back: the same bytes' \
    'attend -a --patch all p3.embd | cmp - plain.a'
check 'tapped again: the same bytes' \
    "attend -a --patch all --tap 'blocks.*' p3.embd | cmp - all"
embed tokens | attend >tokens.out
for point in $POINTS; do
    attend --tap "blocks.*.$point" p3.embd >dump
    attend --tap "blocks.*.$point" -j p3.embd >dump.json
    check "$point put back: the same bytes" \
        "attend -a --patch dump p3.embd | cmp - plain.a &&
        attend -a --patch dump.json p3.embd | cmp - plain.a"
    check '  token by token' \
        'embed tokens | attend --patch dump | cmp - tokens.out'
done
embed tokens | attend -a >tokens.a
check 'from token by token to token by token' \
    'embed tokens | attend -a --patch taps.tokens | cmp - tokens.a'
check 'from pieces to token by token' \
    'embed tokens | attend -a --patch taps.pieces | cmp - tokens.a'
check 'from token by token to the whole' \
    "tensor -o json taps.tokens | jq -c 'del(.seq)' >dump
    attend -a --patch dump p3.embd | cmp - plain.a"

# --- Another run's activations.
printf '%s\n' 'The king said to his son' 'The fox said to his son' |
    tok-encode | embed >two
tensor -o json two | sed -n 1p | tensor -o safetensors >king
tensor -o json two | sed -n 2p | tensor -o safetensors >fox
attend king | tensor -s hidden -o npy >king.npy
attend fox | tensor -s hidden -o npy >fox.npy
check 'the two differ' '! cmp -s king.npy fox.npy'
attend --tap 'blocks.*.resid_pre' king >dump
tensor -s blocks.3.resid_pre -o safetensors dump >patch
check 'the residual stream of the king makes the fox a king' \
    'attend --patch patch fox | tensor -s hidden -o npy | tail -c 640 >a
    tail -c 640 king.npy | cmp - a'
# The texts differ where the animals stand: that position is enough.
tensor -o json dump | jq -c '{positions: [1],
    "blocks.0.resid_pre": [."blocks.0.resid_pre"[1]]}' >patch
check 'so does the one position where they differ' \
    'attend --patch patch fox | tensor -s hidden -o npy | cmp - king.npy'
check '  in a run of single tokens, too' "
    tensor -o json fox | jq -c '.ids as \$i | range(\$i | length)
        | {seq: \"a\", pos: ., ids: [\$i[.]]}' | embed |
        attend --patch patch | python3 '$PY' rows hidden >a
    tensor -s hidden -o safetensors king | attend |
        python3 '$PY' rows hidden >b; cmp a b"
attend fox | unembed | tensor -s logits -o safetensors >fox.logits
for n in 0 1 5; do
    tensor -o json dump | jq -c --argjson n $n '{positions: [$n],
        "blocks.3.resid_pre": [."blocks.3.resid_pre"[$n]]}' >patch
    run 'attend --patch patch fox | unembed |
        tensor -s logits --diff fox.logits'
    # Position 0 is the same word in both, with nothing before it.
    case $n in 0) differs=0 ;; *) differs=1 ;; esac
    is "position $n of block 3: whether the logits differ" "$status" $differs
done

# Each of several sequences gets its own.
attend --tap 'blocks.2.resid_pre' two >dump
tensor -o json two | jq -c '.seq = 1 - .seq' >swapped
check 'by seq: each gets what the other had' \
    "attend -j --patch dump swapped | jq -c '.hidden[-1]' >a
    attend -j two | jq -c '.hidden[-1]' | tac | cmp - a"
check '  and a sequence that is not there is left alone' \
    "tensor -o json fox | jq -c '.seq = \"other\"' >other
    attend -j --patch dump other | jq -c .hidden >a
    attend -j fox | jq -c .hidden | cmp - a"
check '--patch twice: both are in force' \
    "attend --tap blocks.4.resid_pre king |
        tensor -s blocks.4.resid_pre -o safetensors >k4
    attend --tap blocks.4.mlp_out --zero blocks.4.mlp_out king |
        tensor -s blocks.4.mlp_out -o safetensors >z4
    attend --zero blocks.4.mlp_out king | tensor -s hidden:-1 -o npy >a
    attend --patch z4 --patch k4 fox | tensor -s hidden:-1 -o npy | cmp - a"

# --- Zeros.
attend -l 0-2,4-5 p3.embd | tensor -s hidden -o npy >without
check 'a block that adds nothing is a block left out' \
    "attend --zero blocks.3.attn_out,blocks.3.mlp_out p3.embd |
        tensor -s hidden -o npy | cmp - without"
check '  in two --zero the same' \
    "attend --zero blocks.3.attn_out --zero blocks.3.mlp_out p3.embd |
        tensor -s hidden -o npy | cmp - without"
check 'a head without z is a head without result, about' "
    attend --zero blocks.2.attn.z:1 p3.embd >a
    attend --zero blocks.2.attn.result:1 p3.embd | tensor --diff a --atol 1e-4"
want '  and something else than the model' \
    'attend --zero blocks.2.attn.z:1 p3.embd |
        tensor --diff plain --atol 1e-2' '' 1 -
json 'zero scores: the mean of all before' \
    "attend --zero blocks.1.attn.attn_scores:2 -a -l 1 -j p1.embd" '' \
    '.[0].attn[0][2] as $a | all(range(4); . as $t
        | all(range(4); $a[$t][.]
            - (if . > $t then 0 else 1 / ($t + 1) end) | fabs < 1e-6))'
json 'a zero is tapped as such' "attend --zero 'blocks.*.mlp.post' \
    --tap blocks.2.mlp.post -j p1.embd" '' \
    'all(.[0]["blocks.2.mlp.post"][][]; . == 0)'
check 'zeros token by token: the same bits' \
    "attend --zero 'blocks.?.attn.v:0' p3.embd | python3 '$PY' rows hidden >a
    embed tokens | attend --zero 'blocks.?.attn.v:0' |
        python3 '$PY' rows hidden | cmp - a"

# --- Halves.
for l in 0 5; do
    check "block $l in halves: the same bytes as whole" \
        "attend -l $l p3.embd >a
        attend -l $l --part attn p3.embd | attend -l $l --part mlp | cmp - a"
done
check 'without -l the MLP goes on where attention ended' \
    'attend -l 0-4 p3.embd | attend --part attn | attend --part mlp |
        cmp - plain'
json 'a block of which only attention has run is not passed' \
    'attend -j --part attn -l 3 p1.embd' '' '.[0].layer == 3'
json '  with its MLP it is' \
    'attend --part attn -l 3 p1.embd | attend -j --part mlp -l 3' '' \
    '.[0].layer == 4'
check 'the halves are what is tapped' "
    attend -l 2 --tap blocks.2.resid_mid p3.embd |
        tensor -s blocks.2.resid_mid -o npy >a
    attend -l 2 --part attn p3.embd | tensor -s hidden -o npy | cmp - a"
echo '{"seq":"q","pos":7,"ids":[5]}' | embed >late
check '--part mlp needs no positions before' 'attend --part mlp -l 0 late'
want '--part attn does' 'attend --part attn -l 0 late >/dev/null' '' 1 '' \
    'attend: late:1: seq "q": *'

# --- An encoder: all rows see all, and norms come last.
model=$SHARED/models/all-MiniLM-L6-v2
if [ -d "$model" ]; then
    PIPEFORMER_MODEL=$model
    export PIPEFORMER_MODEL
    embed "$model/ref/s0_ids.npy" >x
    attend -a x >plain.b
    attend -a --tap 'blocks.*' x >all.b
    for l in 0 3 5; do
        tensor -s data:$l -o npy "$model/ref/s0_attentions.npy" >attn.npy
        close_to "an encoder: pattern of block $l" \
            "tensor -s blocks.$l.attn.pattern -o safetensors all.b" attn.npy \
            "$WEIGHTS"
        tensor -s data:$((l + 1)) -o npy "$model/ref/s0_hidden_states.npy" \
            >post.npy
        close_to "  ln2.normalized is what comes out of block $l" \
            "tensor -s blocks.$l.ln2.normalized -o safetensors all.b" post.npy
    done
    check '  looking changes no bit' \
        'for n in hidden attn; do
            tensor -s $n -o npy plain.b >a
            tensor -s $n -o npy all.b | cmp - a || exit 1; done'
    check '  all points put back: the same bytes' \
        'attend -a --patch all.b x | cmp - plain.b'
    for point in $POINTS; do
        attend --tap "blocks.*.$point" x >dump
        check "  $point put back: the same bytes" \
            'attend -a --patch dump x | cmp - plain.b'
    done
    check '  in halves: the same bytes as whole' \
        'attend -l 2 x >a
        attend -l 2 --part attn x | attend -l 2 --part mlp | cmp - a'
    echo '{"ids":[101,102]}' | embed >short
    want '  a map of another text' \
        'attend --patch all.b short >/dev/null' '' 1 '' \
        'attend: short:1: the patch has maps of the shape \[H, 8, 8\]; these rows make them \[H, 2, 2\]'
    want '  a text from the middle' \
        "echo '{\"ids\":[5],\"pos\":1}' | embed | attend >/dev/null" '' 1 '' \
        'attend: <stdin>:1: pos: 1, but an encoder takes a text whole*'
    unset PIPEFORMER_MODEL
else
    skip 'an encoder' "no $model (set PIPEFORMER_SHARED)"
fi

# --- Mistakes.
want 'a name that is none' 'attend --tap blocks.6.attn.q p1.embd' '' 2 - \
    "attend: --tap: nothing is called 'blocks.6.attn.q'; blocks.N, for N = 0 to 5, has resid_pre, *, resid_post*"
want 'a layer that does not run' 'attend -l 0,2 --tap blocks.1.attn.q p1.embd' \
    '' 2 - 'attend: --tap: *N = 0, 2, has*'
want 'a half that does not run' \
    'attend --part attn --tap blocks.1.mlp.pre p1.embd' '' 2 - \
    'attend: --tap: nothing*'
want '--zero: no such head' 'attend --zero blocks.1.attn.z:4 p1.embd' '' 2 - \
    'attend: --zero: *heads are 0 to 3*'
want '--patch: no such file' 'attend --patch none p1.embd >/dev/null' '' 1 '' \
    'attend: --patch: none: *No such file*'
want '--patch: no activations' 'attend --patch p1.embd p1.embd >/dev/null' '' \
    1 '' 'attend: --patch: p1.embd: no record has activations*'
printf '%s\n' '{"x":1}' '{"blocks.0.resid_pre":[[1,2]]}' >bad
want '--patch: another shape' 'attend --patch bad p1.embd >/dev/null' '' 1 '' \
    'attend: --patch: bad:2: blocks.0.resid_pre: has the shape \[1, 2\]; the model makes it \[T, 160\]'
printf '%s\n' '{"blocks.0.resid_pre":[[1,2]' >bad
want '--patch: cut short' 'attend --patch bad p1.embd >/dev/null' '' 1 '' \
    'attend: --patch: bad:1: *'
want '--patch - beside records from standard input' 'attend --patch -' '' 2 - \
    'attend: --patch -: *'
check '--patch - beside files' \
    'cat all | attend -a --patch - p3.embd | cmp - plain.a'
finish
