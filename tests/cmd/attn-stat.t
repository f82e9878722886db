# attn-stat: what the heads of a model look at.
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

# --- By hand: tokens x y x x, one head.
one='{"ids":[7,8,7,7],"attn":[[[[1,0,0,0],[0.25,0.75,0,0],[0.5,0.25,0.25,0],'\
'[0.125,0.5,0.25,0.125]]]],"layers":[3],"heads":[5]}'
json 'by hand' attn-stat "$one" 'length == 1 and (.[0]
    | .layer == 3 and .head == 5 and .T == 4 and .repeats == 2
        and .first == 0.46875 and .self == 0.53125 and .previous == 0.1875
        and .duplicate == 0.21875 and .induction == 0.21875
        and (.entropy - 0.703766 | fabs) < 1e-5)'
tagged=$(printf '%s' "$one" |
    sed 's/^{/{"seq":"s","pos":0,"tag":1.50,"layer":6,/')
want 'the fields' 'attn-stat | jq -c keys_unsorted' "$tagged" \
    0 '["seq","tag","layer","head","T","entropy","first","self","previous",'\
'"duplicate","induction","repeats"]'
want 'what rides along' 'attn-stat | cut -d , -f 1-2' "$tagged" \
    0 '{"seq":"s","tag":1.50'
json 'without ids: what tokens would tell is null' \
    'jq -c "del(.ids)" | attn-stat' "$one" '.[0] | .duplicate == null
        and .induction == null and .previous == 0.1875
        and has("repeats") and .repeats == null'

# --- Bare attention: two to four axes, no layers.
json 'bare [T, S]' attn-stat '{"attn":[[1,0],[0.5,0.5]]}' '.[0]
    | .layer == null and .head == null and .first == 0.75 and .T == 2'
json 'bare [H, T, S]' attn-stat '{"attn":[[[1,0],[0,1]],[[1,0],[1,0]]]}' \
    'map([.layer, .head, .self]) == [[null, 0, 1], [null, 1, 0.5]]'
json 'bare [L, H, T, S]' attn-stat '{"attn":[[[[1]]],[[[1]]]]}' \
    'map([.layer, .head]) == [[0, 0], [1, 0]]'
json 'bare: keys from elsewhere' attn-stat '{"attn":[[0.5,0.5,0]]}' '.[0]
    | .first == 0.5 and (.entropy - (2 | log) | fabs) < 1e-6
        and .self == null and .previous == null and .induction == null'

# --- Errors name the record and the shapes.
bad() {
    want "$1" "attn-stat $4" "$2" 1 - "attn-stat: <stdin>:1: $3"
}
bad 'no attn' '{"ids":[1]}' 'the record has no attn (attend -a gives it)' ''
bad 'one axis' '{"attn":[1]}' 'attn: has the shape [[]1], not *T, S]' ''
bad 'three axes with layers' '{"attn":[[[1]]],"layers":[0]}' \
    'attn: has the shape [[]1, 1, 1], not [[]L, H, T, S]' ''
bad 'other layers' '{"attn":[[[[1]]]],"layers":[0,1],"heads":[0]}' \
    'layers: does not say which 1 ones attn holds' ''
bad 'heads that are none' '{"attn":[[[[1]]]],"layers":[0],"heads":[-1]}' \
    'heads: does not say *' ''
bad 'other ids' '{"attn":[[[[1]]]],"ids":[1,2]}' \
    'ids: 2 of them for the 1 rows of attn' ''
bad 'a negative weight' '{"attn":[[1,0],[1.5,-0.5]]}' \
    'attn: -0.5 is no weight, in map 0, row 1, column 1' ''
bad 'NaN' '{"attn":[[1,0],[null,0]]}' 'attn: *nan is no weight*' ''
bad 'a layer that is not there' "$one" 'attn: holds no layer 2' '-l 2'
bad 'a head that is not there' "$one" 'attn: holds no head 0' '--heads 0'
bad 'no rollout of keys from elsewhere' '{"attn":[[0.5,0.5,0]]}' \
    'attn: has 3 columns; with its 1 rows the sequence has 1 positions' \
    --rollout
bad 'it goes on from nothing' \
    '{"seq":"a","pos":3,"attn":[[0.25,0.25,0.25,0.25]]}' \
    'seq "a": maps of 0 positions are there, record starts at 3' ''
want '-l that is no list' 'attn-stat -l x' '' 2 - 'attn-stat: *'

# --- The golden maps, against sums written out in Python.
cat >stat.py <<'END'
import json, math, sys
from stream import npy, floats, close
golden, prompt, got, roll = sys.argv[1:5]
t = npy("%s/%s_attn.npy" % (golden, prompt))
ids = floats(npy("%s/%s_ids.npy" % (golden, prompt)))
L, H, T, S = t.shape
v = floats(t)
A = [[[[v[((l * H + h) * T + i) * S + j] for j in range(S)] for i in range(T)]
      for h in range(H)] for l in range(L)]
def pattern(a, p):
    return sum(a[i][j] for i in range(T) for j in range(S) if p(i, j)) \
        / sum(map(sum, a))
same = lambda i, j: 0 <= j < i and ids[i] == ids[j]
lines = [json.loads(s) for s in open(got)]
assert len(lines) == L * H, len(lines)
for k, d in enumerate(lines):
    a = A[k // H][k % H]
    want = [k // H, k % H, T,
            sum(-x * math.log(x) for r in a for x in r if x) / T,
            pattern(a, lambda i, j: j == 0), pattern(a, lambda i, j: j == i),
            pattern(a, lambda i, j: j == i - 1), pattern(a, same),
            pattern(a, lambda i, j: same(i, j - 1))]
    have = [d[n] for n in ("layer", "head", "T", "entropy", "first", "self",
                           "previous", "duplicate", "induction")]
    assert close(have, want, 1e-5, 1e-4) is None, (have, want)
R = [[float(i == j) for j in range(T)] for i in range(T)]
for l in range(L):
    B = [[(sum(A[l][h][i][j] for h in range(H)) / H + (i == j)) / 2
          for j in range(T)] for i in range(T)]
    B = [[x / sum(r) for x in r] for r in B]
    R = [[sum(B[i][k] * R[k][j] for k in range(T)) for j in range(T)]
         for i in range(T)]
d, = [json.loads(s) for s in open(roll)]
assert d["ids"] == list(ids) and d["layers"] == list(range(L))
for a, b in zip(d["rollout"], R):
    assert close(a, b, 1e-5, 1e-4) is None, (a, b)
END
for p in p1 p2 p3; do
    embed "$GOLDEN/${p}_ids.npy" | attend -a >$p.attn
    attn-stat $p.attn >$p.stat
    attn-stat --rollout $p.attn >$p.roll
    check "fairy, $p: all 24 heads and the rollout" \
        "python3 stat.py '$GOLDEN' $p $p.stat $p.roll"
done
is '-l and --heads take some' \
    "$(attn-stat -l 5,1 --heads 2 p2.attn | jq -c '[.layer, .head]')" \
    '[5,2]
[1,2]'
is '  their numbers are the same' "$(attn-stat -l 5 --heads 2 p2.attn)" \
    "$(jq -c 'select(.layer == 5 and .head == 2)' p2.stat)"
check 'maps of some heads only' 'embed "$GOLDEN/p2_ids.npy" |
    attend -a --heads 2 -l 0-5 | attn-stat -l 5 | jq .induction >a
    attn-stat -l 5 --heads 2 p2.attn | jq .induction >b; cmp a b'

# --- Sequences that grow are gathered; the numbers are the same.
tensor -s data -o json "$GOLDEN/p3_ids.npy" | jq -c '.data as $d
    | {seq: "a", ids: $d[:7]},
      (range(7; 23) | {seq: "a", pos: ., ids: $d[.:. + 1]})' >grow
embed grow | attend -a >grow.attn
is 'token by token: 17 records' "$(tensor grow.attn | wc -l | tr -d ' ')" 17
attn-stat grow.attn | jq -c 'del(.seq)' >grow.stat
jq -c . p3.stat >p3.stat.jq
same '  the same lines as of the whole' grow.stat p3.stat.jq
attn-stat --rollout grow.attn | jq -c .rollout >grow.roll
is '  the same rollout, within 1e-6' "$(jq -n \
    --slurpfile a grow.roll --slurpfile b p3.roll \
    '[$a[0], $b[0].rollout] | transpose | all(transpose
        | all(.[0] - .[1] | fabs < 1e-6))')" true

# Two at a time; one is done, one begins anew, one lasts until the end.
cat >mixed <<'END'
{"seq":1,"attn":[[1]],"x":"first"}
{"seq":2,"attn":[[1]]}
{"seq":1,"pos":1,"attn":[[0.5,0.5]]}
{"seq":3,"done":"eos","attn":[[1]]}
{"seq":2,"pos":1,"done":"eos"}
{"seq":1,"attn":[[1]],"x":"again"}
{"seq":1,"pos":1,"attn":[[0,1]]}
{"seq":1,"pos":2,"attn":[[0,0,1]]}
{"done":"input"}
END
is 'sequences: written when they are over' \
    "$(attn-stat mixed | jq -c '[.seq, .T, .first, .x]')" '[3,1,1,null]
[2,1,1,null]
[1,2,0.75,"first"]
[1,3,0.33333334,"again"]'
want 'other heads than before' attn-stat '{"attn":[[[[1]]]],"heads":[0]}
{"pos":1,"attn":[[[[0,1]]]],"heads":[1]}' 1 - \
    'attn-stat: <stdin>:2: attn: is of other layers or heads*'
want 'more columns than positions' attn-stat '{"attn":[[1]]}
{"pos":1,"attn":[[0,1,0]]}' 1 - \
    'attn-stat: <stdin>:2: attn: has 3 columns; with its 1 rows the sequence '\
'has 2 positions'

# --- Memory does not grow with the number of sequences, nor their length.
python3 - >many <<'END'
for i in range(3000):
    print('{"seq":%d,"done":"eos","attn":[[[[1]]]]}' % i)
END
python3 "$PY" rss rss1 attn-stat many >/dev/null
for i in 1 2 3 4 5 6 7 8; do cat many; done >more
python3 "$PY" rss rss2 attn-stat more >/dev/null
if [ $slow = 1 ]; then
    skip 'memory: 3000 and 24000 sequences take about the same' \
        'freed memory is kept by the sanitizer'
else
    check 'memory: 3000 and 24000 sequences take about the same' \
        '[ $(cat rss2) -lt $(($(cat rss1) + 4000)) ]'
fi

# --- A model made by hand (Elhage et al. 2021; Olsson et al. 2022).  The
# residual stream has a place for each token, for each position, and for the
# token before.  Head 0.0 looks at the position before and copies its token
# into that place; head 1.0 looks for positions whose token before is this
# token, and adds what stands there to the tokens.  All rows are sums of as
# many ones, so the layer norm can be undone by its gain and bias.
mkdir ind
cat >make.py <<'END'
import json, math
from stream import document, f32
V, P = 8, 200
C = V + P + V
def norm(n):            # undoes the norm of rows with n ones
    mean = n / C
    return f32([C], [math.sqrt(n / C - mean * mean)] * C), f32([C], [mean] * C)
def matrix(rows, cols, ones):
    m = [0.0] * (rows * cols)
    for i, j, x in ones:
        m[i * cols + j] = x
    return f32([rows, cols], m)
sharp = 40 * math.sqrt(C)
tok, pos, before = 0, V, V + P   # where they begin
q, k, v = 0, C, 2 * C
t = {"wte.weight": matrix(V, C, [(i, tok + i, 1) for i in range(V)]),
     "wpe.weight": matrix(P, C, [(i, pos + i, 1) for i in range(P)])}
qkv = [[(pos + i, q + i - 1, sharp) for i in range(1, P)]
       + [(pos + i, k + i, 1) for i in range(P)]
       + [(tok + i, v + i, 1) for i in range(V)],
       [(tok + i, q + i, sharp) for i in range(V)]
       + [(before + i, k + i, 1) for i in range(V)]
       + [(tok + i, v + i, 1) for i in range(V)]]
out = [[(i, before + i, 1) for i in range(V)],
       [(i, tok + i, 5) for i in range(V)]]
for l in range(2):
    h = "h.%d." % l
    t[h + "ln_1.weight"], t[h + "ln_1.bias"] = norm(2 + l)
    t[h + "attn.c_attn.weight"] = matrix(C, 3 * C, qkv[l])
    t[h + "attn.c_attn.bias"] = f32([3 * C], [0.0] * 3 * C)
    t[h + "attn.c_proj.weight"] = matrix(C, C, out[l])
    t[h + "attn.c_proj.bias"] = f32([C], [0.0] * C)
    t[h + "ln_2.weight"], t[h + "ln_2.bias"] = norm(3)
    t[h + "mlp.c_fc.weight"] = matrix(C, 1, [])
    t[h + "mlp.c_fc.bias"] = f32([1], [0.0])
    t[h + "mlp.c_proj.weight"] = matrix(1, C, [])
    t[h + "mlp.c_proj.bias"] = f32([C], [0.0] * C)
t["ln_f.weight"], t["ln_f.bias"] = f32([C], [1.0] * C), f32([C], [0.0] * C)
open("ind/model.safetensors", "wb").write(document(t))
json.dump({"model_type": "gpt2", "vocab_size": V, "n_positions": P,
           "n_embd": C, "n_layer": 2, "n_head": 1, "n_inner": 1,
           "layer_norm_epsilon": 0, "eos_token_id": None},
          open("ind/config.json", "w"))
END
python3 make.py
# A first token that does not come again, then 5 2 7 5 2 7 ...
jq -nc '{ids: ([0] + [range(199) | [5, 2, 7][. % 3]])}' >loop
embed -m ind loop | attend -m ind -a | attn-stat >ind.stat
json 'made by hand: a previous-token head, an induction head' \
    'cat ind.stat' '' 'length == 2
        and (.[0] | .layer == 0 and .previous > 0.99 and .induction < 0.01)
        and (.[1] | .layer == 1 and .induction > 0.97 and .previous < 0.05
            and .duplicate < 0.02 and .repeats == 196)'
json '  on the rows with an earlier equal token it is all of the mass' \
    'cat ind.stat' '' '.[1] | .induction * .T / .repeats | . - 1 | fabs < 1e-5'
run 'jq -c "{ids: .ids[:50]}" loop | embed -m ind | attend -m ind |
    unembed -m ind | sample -m ind -g | jq -c .ids'
is '  and so it knows how the text goes on' "$(cat out)" '[2]'
# Tokens in no order, each run twice: the second time it is all induction.
jq -nc '{ids: [0,1,5,2,7,3,6,4,1,5,2,7,3,6,4]}' >twice
json '  a text without order, twice' 'embed -m ind twice | attend -m ind -a |
    attn-stat -l 1' '' '.[0] | .repeats == 7
        and (.induction * .T / .repeats - 1 | fabs < 1e-5)'
finish
