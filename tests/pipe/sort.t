# gpt-nano-sort (shared/models, not in the repository): a GPT-2 with an untied
# head that sorts six letters.  All 729 inputs in one `generate --whole`, and
# its hidden states, weights and logits against float64 references.
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

model=$SHARED/models/gpt-nano-sort
if [ ! -d "$model" ]; then
    echo "1..0 # SKIP no $model (set PIPEFORMER_SHARED)"
    exit 77
fi
PIPEFORMER_MODEL=$model
export PIPEFORMER_MODEL

# --- All inputs.
cat >make.py <<'END'
import itertools
import json
for i, ids in enumerate(itertools.product(range(3), repeat=6)):
    # A window of 11 positions: the sixth drawn token fills the last.
    print(json.dumps({"seq": "%d%d%d%d%d%d" % ids, "n": i, "ids": ids}))
END
python3 make.py >prompts
is 'there are 729 inputs' "$(wc -l <prompts)" 729
sorted='length == 729
    and all(.[]; .ids == (.seq | explode | map(. - 48) | sort))
    and ([.[].n] == [range(729)]) and all(.[]; .done == "length")
    and all(.[]; .pos == 6)'
for options in '' '--parallel 1' '--parallel 1000 --threads 2'; do
    json "generate --whole -n 6 $options sorts them all" \
        "generate --whole -n 6 $options prompts" '' "$sorted"
done
# The window ends it without -n: 11 positions were read when the sixth comes.
json 'without -n the window of 11 ends it' 'generate --whole prompts' '' \
    "$sorted"
json '--echo has the input before it' \
    'head -n 500 prompts | generate --whole --echo -n 6' '' \
    'length == 500 and all(.[]; (.ids[:6] | sort) == .ids[6:]
        and (.ids[:6] | map(. + 48) | implode) == .seq)'

# --- A loop of plain pipes does the same.
mkfifo loop
pipe "jq -c 'del(.n)' prompts; echo '{\"done\":\"input\"}'" 'cat - loop' \
    embed attend unembed 'sample -n 6' 'tee loop' \
    "jq -cs 'group_by(.seq) | map({seq: .[0].seq, ids: map(.ids[0])}) | .[]'" \
    >got
all_zero 'the FIFO loop ends by itself, 0 at every stage'
jq -c '{seq, ids: (.ids | sort)}' prompts >want
same 'the FIFO loop sorts them all' got want

# --- References: [L+1, T, C] (the embedding first), [L, H, T, S], [T, V].
for p in b0 b1 b2; do
    r=$model/ref/$p
    embed "$r"_ids.npy >embd
    for l in 0 1 2 3; do
        tensor -s data:$l -o npy "$r"_hidden_states.npy >post.$l.npy
    done
    close_to "$p: embedding" 'tensor -s hidden -o safetensors embd' post.0.npy
    close_to "$p: after block 0" \
        'attend -l 0 embd | tensor -s hidden -o safetensors' post.1.npy
    close_to "$p: after blocks 0-1" \
        'attend -l 0-1 embd | tensor -s hidden -o safetensors' post.2.npy
    attend -a embd >all
    close_to "$p: after all blocks" \
        'tensor -s hidden -o safetensors all' post.3.npy
    close_to "$p: attention weights" 'tensor -s attn -o safetensors all' \
        "$r"_attentions.npy '--atol 1e-5'
    close_to "$p: logits" \
        'unembed -A all | tensor -s logits -o safetensors' "$r"_logits.npy
done
finish
