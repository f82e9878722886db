# all-MiniLM-L6-v2 (shared/models, not in the repository), a BERT that makes
# sentence embeddings: from text to vector, and every layer and attention map
# on the way, against float64 references.
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

model=$SHARED/models/all-MiniLM-L6-v2
if [ ! -d "$model" ]; then
    echo "1..0 # SKIP no $model (set PIPEFORMER_SHARED)"
    exit 77
fi
PIPEFORMER_MODEL=$model
ref=$model/ref
export PIPEFORMER_MODEL ref

# --- Text to ids, layer by layer.
jq -r '.[].text' "$ref/manifest.json" >texts
tok-encode texts >ids
is 'ids' "$(jq -c .ids ids)" "$(jq -c '.[].ids' "$ref/manifest.json")"
for s in 0 1; do
    sed -n "$((s + 1))p" ids | embed >embd
    for l in 0 1 2 3 4 5 6; do
        tensor -s "data:$l" -o npy "$ref/s${s}_hidden_states.npy" >want.$l.npy
    done
    close_to "$s: embedding" 'tensor -s hidden -o safetensors embd' \
        want.0.npy '--atol 1e-4'
    for l in 1 2 3 4 5 6; do
        close_to "$s: after $l blocks" \
            "attend -l 0-$((l - 1)) embd | tensor -s hidden -o safetensors" \
            want.$l.npy '--atol 1e-4'
    done
    attend -a embd >all
    close_to "$s: all 72 maps" 'tensor -s attn -o safetensors all' \
        "$ref/s${s}_attentions.npy" '--atol 1e-5'
    close_to "$s: last hidden state" 'tensor -s hidden -o safetensors all' \
        "$ref/s${s}_last_hidden_state.npy" '--atol 1e-4'
    close_to "$s: pooler" \
        'pool --pooler all | tensor -s embedding -o safetensors' \
        "$ref/s${s}_pooler.npy" '--atol 1e-4'
    json "$s: rows of every map sum to 1" 'tensor -s attn -o json all' '' \
        '.[0].attn | [.. | select(type == "array" and (.[0] | type) ==
            "number") | add] | all(. - 1 | fabs < 1e-5)'
    check "$s: block by block, the same bytes" 'cp embd x
        for l in 0 1 2 3 4 5; do
            attend -a -l $l x >y && mv y x || exit 1
        done; cmp x all'
done

# --- Text to vectors.
vectors='tok-encode texts | embed | attend | pool --normalize'
check 'sentence embeddings' "$vectors"' -j | jq -c .embedding | jq -cs . >got
    tensor -o json "$ref/sentence_embeddings.npy" | jq -c .data >want
    jq -es "([.[][] | length] | unique) == [384] and (.[0] | length) == 3
        and ([.[0], .[1] | flatten] | transpose | map(.[0] - .[1] | fabs)
            | max) < 1e-4" got want'
check 'of length 1' "$vectors"' -j | jq -es "length == 3 and
    all(.[]; (.embedding | map(. * .) | add - 1 | fabs) < 1e-5)"'
want 'the first two are as close as they should be' "$vectors -j |
    jq -s '[.[0].embedding, .[1].embedding] | transpose
        | map(.[0] * .[1]) | add * 10000 | round'" '' 0 6659
check 'the same bytes one by one, on any number of threads' "$vectors"' >a
    while IFS= read -r line; do
        printf "%s\n" "$line" | tok-encode | embed --threads 1 \
            | attend --threads 1 | pool --normalize
    done <texts | tensor -o json | jq -c .embedding >b
    tensor -o json a | jq -c .embedding >c
    cmp b c'

# --- What an encoder does not do.
head -n 1 ids | embed >embd
want 'it has no head' 'attend embd | unembed' '' 1 - 'unembed: *no output head*'
want 'it does not generate' 'generate ids' '' 1 - 'generate: *is an encoder*'
for field in '"pos":3' '"more":true' '"fork":1,"pos":1'; do
    want "attend refuses $field" "head -n 1 ids | jq -c '. + {$field}' | embed \
        | attend" '' 1 - 'attend: <stdin>:1: *encoder*'
done
want 'its window is 512' 'embed' "{\"ids\":[$(seq -s, 513)]}" 1 - \
    'embed: *position 512 is beyond*'
finish
