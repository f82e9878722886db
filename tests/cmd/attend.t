# attend: hidden through the model's blocks.  (Its numbers: pipe/golden.t; bits:
# pipe/bits.t; sequences and memory: pipe/sequences.t.)
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

echo '{"seq":"a","ids":[464,5,9]}' | embed >in
json 'hidden -> hidden, with layer' 'attend -j in' '' '.[0]
    | (.hidden | length) == 3 and (.hidden[0] | length) == 160
        and .layer == 6 and .seq == "a" and .ids == [464, 5, 9]
        and (has("attn") | not)'
check 'as -j or binary: the same numbers' \
    'attend -j in | tensor -s hidden -o npy >a
    attend in | tensor -s hidden -o npy >b; cmp a b'

# --- Layers.
for list in 0 0-5 0-2,3 1 3-4 5; do
    last=${list##*[-,]}
    json "-l $list: layer is $((last + 1))" "attend -j -l $list in" '' \
        ".[0].layer == $((last + 1))"
done
check '-l 0,1,2,3,4,5 is all' \
    'attend in >a; attend -l 0,1,2,3,4,5 in >b; cmp a b'
check '-l 0-1,2-3,4-5 is all' \
    'attend in >a; attend -l 0-1,2-3,4-5 in >b; cmp a b'
check 'in the order written' \
    'attend -l 1,0 in >a; attend -l 0 in >x; attend -l 1 in \
        | attend -l 0 | tensor -s hidden -o npy >b; \
        tensor -s hidden -o npy a | cmp - b'
check 'without -l it goes on where hidden is' \
    'attend -l 0-3 in | attend >a; attend in >b; cmp a b'
check '-l runs a block again, if asked' \
    'attend in | attend -l 5 >a; tensor -j a'
want 'not without -l' 'attend in | attend >/dev/null' '' 1 '' \
    'attend: <stdin>:1: *all 6 blocks*'
for list in 6 0-6 99; do
    want "-l $list: the model has 6 blocks" "attend -l $list in" '' 2 - \
        'attend: -l: *last is 5*'
done
for list in x "''" 3-1 0- -1 0,,1 ,0 0, 0x1 '" 1"' 1.5 99999999999999999999; do
    want "-l $list: no list" "attend -l $list in" '' 2 - 'attend: -l: *list*'
done
want '-l 0,0: twice' 'attend -l 0,0 in' '' 2 - 'attend: -l: 0 stands twice*'

# --- Attention weights.
json '-a: attn [L,H,T,S], layers, heads' 'attend -j -a in' '' '.[0]
    | (.attn | length) == 6 and (.attn[0] | length) == 4
        and (.attn[5][3] | length) == 3 and (.attn[5][3][0] | length) == 3
        and .layers == [range(6)] and .heads == [range(4)]'
json 'weights of a row add up to 1, and none looks ahead' 'attend -j -a in' \
    '' '[.[0].attn[][]] | all(.[]; (map(add - 1 | fabs) | max) < 1e-5
        and .[0][1] == 0 and .[0][2] == 0 and .[1][2] == 0)'
json 'S counts what came before' \
    "{ cat in; echo '{\"seq\":\"a\",\"pos\":3,\"ids\":[7,8]}' | embed; } \
        | attend -j -a" '' '.[1].attn[0][0] | length == 2
        and all(length == 5)'
json '--heads' 'attend -j -a --heads 3,0 -l 2 in' '' '.[0]
    | .heads == [3, 0] and .layers == [2] and (.attn[0] | length) == 2'
check '--heads in the order written: the same weights' \
    "attend -a -l 2 in | tensor -s attn:0,3 -o npy >a
    attend -a -l 2 --heads 3,0 in | tensor -s attn:0,0 -o npy >b; cmp a b"
json 'a second attend appends' 'attend -a -l 0-3 in | attend -j -a' '' \
    '.[0].layers == [range(6)] and (.[0].attn | length) == 6'
want 'but not of other heads' \
    'attend -a -l 0 --heads 1 in | attend -a -l 1 >/dev/null' '' 1 '' \
    'attend: <stdin>:1: attn: *'
want '--heads without -a' 'attend --heads 1 in' '' 2 - 'attend: *-a*'
want '--heads with taps that have none' \
    'attend --heads 1 --tap blocks.0.mlp_out in' '' 2 - 'attend: --heads *'
want '--heads 4' 'attend -a --heads 4 in' '' 2 - 'attend: --heads: *last is 3*'

# --- A model, or none: by the options, else by the record.  (Taps and patches:
# pipe/probe.t.)
qkv='{"q":[[1,0]],"k":[[1,0],[0,1]],"v":[[1],[2]]}'
check 'q, k, v need no model' \
    "echo '$qkv' | PIPEFORMER_MODEL=/no/where attend -j |
        jq -e '.context | length == 1'"
want 'hidden does' "PIPEFORMER_MODEL=/no/where attend in >/dev/null" '' 1 '' \
    'attend: in:1: model /no/where*'
want 'the records before it come through' \
    "{ echo '$qkv'; tensor -o json in; } |
        PIPEFORMER_MODEL=/no/where attend -j --keep-going |
        jq -c '[has(\"context\"), has(\"error\")]'" \
    '' 0 '[true,false]
[false,true]' 'attend: <stdin>:2: model /no/where*'
json 'both in one stream, in order' \
    "{ echo '$qkv'; tensor -o json in; echo '$qkv'; tensor -o json in; } |
        attend -j" '' 'map(has("context")) == [true, false, true, false]
        and .[1].layer == 6 and .[1].hidden == .[3].hidden
        and .[0].context == .[2].context'
want 'a bad one among them' \
    "{ echo '$qkv'; tensor -o json in; echo '{\"q\":[[1]],\"k\":[[1,2]],\"v\":[[1]]}'
        tensor -o json in; echo '$qkv'; } | attend -j --keep-going |
        jq -c '[has(\"context\"), has(\"error\"), .layer]'" '' 0 \
    '[true,false,null]
[false,false,6]
[false,true,null]
[false,false,6]
[true,false,null]' 'attend: <stdin>:3: *'

# --- Many records, which go in halves where there are processors to spare.
seq 70 | jq -c '{seq: ., ids: [. % 9 + 1, 5]}' | embed >many
check 'the same by one thread and by many' \
    'attend --threads 1 many >a; attend --threads 64 many >b; cmp a b
    tensor -j a | wc -l | grep -qx 70'
want 'bad ones in both halves' \
    "seq 50 | jq -c '{q: [[1]], v: [[.]],
            k: (if . % 20 == 7 then [[1, 2]] else [[.]] end)}' |
        attend -j --threads 1 --keep-going |
        jq 'if has(\"error\") then \"error\" else .context[0][0] end'" '' 0 \
    "$(seq 50 | sed '/^[024]*7$/s/.*/"error"/')" 'attend: <stdin>:7: *
attend: <stdin>:27: *
attend: <stdin>:47: *'

for option in '-m /no/where' '-m /no/where -l 0'; do
    want "$option: at once" "attend $option </dev/null" '' 1 - \
        'attend: model /no/where*'
done
for option in '-l 0' '--heads 0 -a' '--kv-mem 1G' '--part attn' \
    '--zero blocks.0.mlp_out' '--tap blocks.0.mlp_out' '--patch none'; do
    want "$option is for a model" \
        "PIPEFORMER_MODEL=/no/where attend $option </dev/null" '' 1 - \
        'attend: model /no/where*'
    want "$option with --scale 2" "attend $option --scale 2" '' 2 - \
        'attend: --scale is for bare attention, * for the blocks of a model*'
done
for option in --causal --causal=lower-right --no-causal '--scale 2' \
    --uniform '--tap attn_scores'; do
    want "$option with -m" "attend $option -m fairy" '' 2 - \
        'attend: *is for bare attention, -m for the blocks of a model*'
done
want '--tap attn_scores beside others' \
    'attend --tap attn_scores,blocks.0.mlp_out in' '' 2 - \
    'attend: *attn_scores*'
want '--causal=x' 'attend --causal=x' '' 2 - 'attend: --causal: *'
want '--no-causal=x' 'attend --no-causal=x' '' 2 - 'attend: *--no-causal*'
want '--scale x' 'attend --scale x' '' 2 - 'attend: --scale: *'
want '--part all' 'attend --part all in' '' 2 - \
    'attend: --part: *attn*mlp*'
want '--part mlp -a' 'attend --part mlp -a in' '' 2 - 'attend: -a: *'
want '--n-head 0' 'attend --n-head 0' '' 2 - 'attend: --n-head: *'

# --- Names as TransformerLens writes them, and what is suggested.
for names in blocks.0.hook_resid_post:blocks.0.resid_post \
    'blocks.*.attn.hook_?:blocks.*.attn.?' \
    blocks.0.ln1.hook_normalized,blocks.1.hook_mlp_out:\
blocks.0.ln1.normalized,blocks.1.mlp_out; do
    check "--tap '${names%:*}' is '${names#*:}'" \
        "attend --tap '${names%:*}' in >a; attend --tap '${names#*:}' in |
            cmp - a; attend in | cmp -s - a; [ \$? = 1 ]"
done
check '--zero blocks.0.attn.hook_z:1' \
    'attend --zero blocks.0.attn.hook_z:1 in >a
    attend --zero blocks.0.attn.z:1 in | cmp - a'
want '--tap hook_: no name' 'attend --tap hook_ in' '' 2 - \
    "attend: --tap: nothing is called 'hook_'*"
for name in resid_post hook_resid_post; do
    want "--tap $name" "attend --tap $name in" '' 2 - \
        "attend: --tap: *'resid_post'*blocks.0.resid_post*blocks.\*.resid_post*"
done
want '--tap pattern' 'attend -l 2 --tap pattern in' '' 2 - \
    "attend: --tap: *blocks.2.attn.pattern*"
want '--tap pattern without attention' \
    'attend --part mlp --tap pattern in' '' 2 - \
    "attend: --tap: nothing is called 'pattern'; blocks.N*"
for list in blocks.0.attn.z:0,1 blocks.0.attn.z:0-1; do
    want "--zero $list" "attend --zero $list in" '' 2 - \
        'attend: --zero: *several * NAME:0,NAME:1*'
done

# --- Kernels that are not there.
want 'PIPEFORMER_KERNEL' 'PIPEFORMER_KERNEL=sse9 attend in' '' 2 - \
    "attend: PIPEFORMER_KERNEL: *'sse9'*"
want 'PIPEFORMER_KERNEL, bare' \
    "echo '$qkv' | PIPEFORMER_KERNEL=sse9 attend -j" '' 2 - \
    "attend: PIPEFORMER_KERNEL: *'sse9'*"

# --- The KV cache.  (What it does: pipe/kv.t.)
for type in '' F16 bf16 16; do
    want "--kv-type '$type'" "attend --kv-type '$type' in" '' 2 - \
        'attend: --kv-type: *neither f32 nor f16*'
done
for file in - "''"; do
    want "--kv-save $file" "attend --kv-save $file in" '' 2 - \
        'attend: --kv-save: *no file*'
done
want '--kv-load - beside standard input' 'attend --kv-load -' '' 2 - \
    'attend: --kv-load -: *'
for option in '--kv-type f16' '--kv-type f32' '--kv-save x' '--kv-load in'; do
    want "--part mlp $option" "attend --part mlp $option in" '' 2 - \
        "attend: ${option% *}: *--part mlp*"
    want "bare: $option" "echo '$qkv' | attend --scale 1 $option" '' 2 - \
        "attend: *bare*${option% *}*"
done

# --- Memory.
for size in 1Q -1 1.5M x "''" ' 1' 1KK 99999999999G \
    99999999999999999999999; do
    want "--kv-mem '$size'" "attend --kv-mem '$size' in" '' 2 - \
        'attend: --kv-mem: *'
done
for size in 1048576 1024K 1M 1G 1T; do
    check "--kv-mem $size" "attend --kv-mem $size in >/dev/null"
done
run 'attend -v in >/dev/null'
case $status$(cat err) in
0*kernels*threads*) ok '-v says which kernels and threads' ;;
*) not_ok '-v says which kernels and threads' <err ;;
esac
json 'hidden from .npy' \
    "tensor -s hidden -o npy in | attend -j" '' '.[0].layer == 6'
json 'hidden of F16 is taken' "python3 -c '
import sys
from stream import *
sys.stdout.buffer.write(document({\"hidden\": Tensor(\"F16\", [1, 160],
    struct.pack(\"<160e\", *[0.5] * 160))})
    + document({\"hidden\": f32([1, 160], [0.5] * 160)}))' | attend -j" '' \
    '.[0].hidden == .[1].hidden'
finish
