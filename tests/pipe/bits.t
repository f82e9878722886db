# The same bits for any number of threads, any batching, prompts computed at
# once or token by token, any cut of the input, any kernel (DESIGN.md 4).
# Everything here is held against one run: the whole prompt, alone, one thread.
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

# A long prompt (over the blocks of 16 and 64 positions of the cache, into the
# 256 of the model), two short ones, and what cuts them into pieces.
cat >make.py <<'END'
import json
import os
import random
from stream import *
ids = list(floats(npy(os.environ["GOLDEN"] + "/ppl_ids.npy")))
random.seed(7)
prompts = {"long": ids[:251], "mid": ids[300:366], "short": ids[400:405],
           "one": ids[500:501]}
others = {"o%d" % i: ids[600 + 31 * i:][:random.randint(1, 40)]
          for i in range(31)}


def write(name, records):
    with open(name, "w") as f:
        for r in records:
            f.write(json.dumps(r) + "\n")


def pieces(seq, sizes):
    """The prompt of `seq` as records of these sizes; the last is the rest."""
    all, at = prompts[seq], 0
    for size in sizes:
        if at == len(all):
            return
        r = {"seq": seq, "pos": at, "ids": all[at:at + size]}
        at += len(r["ids"])
        if at < len(all):
            r["more"] = True
        yield r


def without(records, name):
    return [{k: v for k, v in r.items() if k != name} for r in records]


uneven = [1, 2, 3, 5, 8, 13, 15, 16, 17, 31, 33, 63, 65, 999]
for seq, all in prompts.items():
    write("whole." + seq, [{"seq": seq, "ids": all}])
    write("tokens." + seq, without(pieces(seq, [1] * 999), "more"))
    write("uneven." + seq, pieces(seq, uneven))
    write("odd." + seq, pieces(seq, [random.randint(1, 50)
                                     for i in range(300)]))
    rest = [{"seq": s, "ids": p} for s, p in others.items()]
    rest.insert(17, {"seq": seq, "ids": all})
    write("batch." + seq, rest)
    # Within a stream of others: a token of each in turn.
    turns = {s: [{"seq": s, "pos": i, "ids": [x]} for i, x in enumerate(p)]
             for s, p in {**dict(list(others.items())[:5]), seq: all}.items()}
    mixed = []
    while any(turns.values()):
        s = random.choice([s for s in turns if turns[s]])
        mixed.append(turns[s].pop(0))
    write("mixed." + seq, mixed)
    # The same sequence twice: what it held before makes no difference.
    write("again." + seq, [{"seq": seq, "ids": others["o1"]},
                           {"seq": seq, "ids": all}])
END
check 'the prompts' 'python3 make.py' 

# rows WHAT SEQ: hidden after all blocks and logits, as bare bytes
rows() {
    pipe "embed $1" "attend $3 ${4-}" "tee hid" "unembed -A $3" \
        "cat >log"
    all_zero "no stage fails: embed $1 | attend $3 ${4-} | unembed -A"
    python3 "$PY" rows hidden "\"$2\"" <hid >"$5.hidden"
    python3 "$PY" rows logits "\"$2\"" <log >"$5.logits"
}

for seq in long mid short one; do
    rows whole.$seq $seq '--threads 1' '' want.$seq
    # bits NAME INPUT OPTIONS
    bits() {
        rows "$2" $seq "$3" "${4-}" got
        same "$seq: hidden, $1" got.hidden want.$seq.hidden
        same "$seq: logits, $1" got.logits want.$seq.logits
    }
    bits '2 threads' whole.$seq '--threads 2'
    bits '7 threads' whole.$seq '--threads 7'
    bits 'with -a' whole.$seq '--threads 2' -a
    bits 'token by token' tokens.$seq '--threads 1'
    bits 'token by token, 2 threads' tokens.$seq '--threads 2'
    bits 'uneven pieces with more' uneven.$seq '--threads 2'
    bits 'other pieces' odd.$seq '--threads 1'
    bits 'in a batch with 31 others' batch.$seq '--threads 1'
    bits 'in a batch with 31 others, 2 threads' batch.$seq '--threads 2'
    bits 'interleaved with others, a token at a time' mixed.$seq '--threads 2'
    for kernel in portable avx2 avx2-zen avx512 avx512-zen; do
        PIPEFORMER_KERNEL=$kernel
        export PIPEFORMER_KERNEL
        have=$(attend -v </dev/null 2>&1 | sed -n 's/.* \([a-z0-9-]*\) kernels.*/\1/p')
        if [ "$have" != $kernel ]; then
            skip "$seq: kernel $kernel" "this processor has $have"
        else
            bits "kernel $kernel" whole.$seq '--threads 1'
            bits "kernel $kernel, token by token" tokens.$seq '--threads 2'
        fi
        unset PIPEFORMER_KERNEL
    done
    # A sequence begun anew keeps nothing of the old one.
    embed again.$seq | attend | tail -c $(($(wc -c <want.$seq.hidden))) >got
    same "$seq: hidden, begun anew after another text" got want.$seq.hidden
    # The last row alone, and the logits of a whole batch of last rows.
    V=$((4096 * 4))
    tail -c $V want.$seq.logits >want.last
    embed whole.$seq | attend | unembed | python3 "$PY" rows logits >got
    same "$seq: logits, of the last position alone" got want.last
    embed batch.$seq | attend | unembed \
        | python3 "$PY" rows logits "\"$seq\"" >got
    same "$seq: logits, of the last positions of a batch" got want.last
    embed uneven.$seq | attend | unembed \
        | python3 "$PY" rows logits "\"$seq\"" >got
    same "$seq: logits, none but the last with more" got want.last
    embed tokens.$seq | attend | unembed \
        | python3 "$PY" rows logits "\"$seq\"" | tail -c $V >got
    same "$seq: logits, of the last of single tokens" got want.last
done

# --- Attention weights: a query's row is the same whatever is beside it.
cat >weights.py <<'END'
import sys
from stream import *
# [L,H,T,S] of records one after the other as rows by query, S cut to what
# causality leaves.
rows = {}
for path in sys.argv[1:]:
    at, out = 0, {}
    for fields, t in read(open(path, "rb")):
        if fields["seq"] != "mid":
            continue
        a = t["attn"]
        L, H, T, S = a.shape
        assert S == fields.get("pos", 0) + T, (a.shape, fields.get("pos"))
        for i in range(L * H * T):
            lh, q = divmod(i, T)
            row = a.data[4 * S * i:4 * S * (i + 1)]
            n = 4 * (S - T + q + 1)
            assert not any(row[n:]), "a key of the future"
            out[lh, S - T + q] = row[:n]
    rows[path] = out
first = rows[sys.argv[1]]
for path, out in rows.items():
    assert len(out) == len(first), (path, len(out), len(first))
    assert out == first, path
END
for form in whole tokens uneven batch mixed; do
    embed $form.mid | attend -a --threads 2 >a.$form
done
check 'attention weights, in all these ways' \
    'python3 weights.py a.whole a.tokens a.uneven a.batch a.mixed'

# --- Input cut anywhere: the same bytes come out.
embed batch.mid >in.bin
embed -j uneven.mid >in.json
cat in.bin in.json >in.both
for form in bin json both; do
    attend in.$form >want
    # Single bytes of a megabyte take long: a head of it is enough there.
    for size in 7 61 4095; do
        pipe "python3 '$PY' drip $size <in.$form" attend 'cat >got'
        all_zero "reads of at most $size bytes, $form: no stage fails"
        same "reads of at most $size bytes, $form" got want
    done
done
embed whole.short >in.bin
attend in.bin >want
dd bs=1 <in.bin 2>/dev/null | attend >got
same 'single bytes, binary' got want
embed -j whole.short >in.json
attend in.json >want
dd bs=1 <in.json 2>/dev/null | attend >got
same 'single bytes, NDJSON' got want
printf 'Es war einmal \360\237\246\212\nein K\303\266nig\n\n' >text
tok-encode text >want
dd bs=1 <text 2>/dev/null | tok-encode >got
same 'single bytes, text' got want
dd bs=1 <want 2>/dev/null | tok-decode >got
same 'single bytes, ids' got text
dd bs=1 if="$GOLDEN/p1_embd.npy" 2>/dev/null | tensor -o npy >got
same 'single bytes, .npy' got "$GOLDEN/p1_embd.npy"

# --- Random tokens depend on (seed, seq, pos) alone.
jq -c '{seq, ids}' batch.mid >prompts
opts='--temp 1 --seed 11 -n 12 --whole'
generate $opts --threads 1 --parallel 1 prompts >want
is 'generate: there is a record a prompt' "$(wc -l <want)" 32
for other in '--threads 2 --parallel 32' '--threads 1 --parallel 5'; do
    generate $opts $other prompts >got
    same "generate --temp 1 --seed 11 $other" got want
done
generate --temp 1 --seed 11 -n 12 prompts >stream
check 'generate, token by token: the same ids' \
    "jq -es 'group_by(.seq) | map({seq: .[0].seq, ids: map(.ids[0])})' \
        stream >a && jq -es 'sort_by(.seq) | map({seq, ids})' want >b \
    && cmp a b"
jq -c 'select(.seq == "mid")' want >a
jq -c 'select(.seq == "mid")' prompts | generate $opts >b
same 'generate: alone as among others' b a
generate --temp 1 --seed 12 -n 12 --whole prompts >got
check 'another seed gives other ids' '! cmp -s got want'
finish
