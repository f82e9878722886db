# score: how likely the tokens of a text are.
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

V=$PF_SOURCE/tests/golden

# --- The vectors; what is allowed is in the comparison.
cat >check.py <<'END'
import json, math, sys
def near(a, b, atol, rtol):
    a, b = (x if isinstance(x, list) else [x] for x in (a, b))
    return len(a) == len(b) and all(
        x == y or abs(x - y) <= atol + rtol * abs(y) for x, y in zip(a, b))
for got, want in zip(open(sys.argv[1]), open(sys.argv[2])):
    got, want = json.loads(got), json.loads(want)
    for key, atol, rtol in (("name", 0, 0), ("ids", 0, 0), ("ranks", 0, 0),
                            ("n", 0, 0), ("logprobs", 1e-5, 1e-5),
                            ("nll", 1e-5, 1e-5), ("bits", 1e-5, 1e-5),
                            ("bits_per_token", 1e-5, 1e-5),
                            ("perplexity", 0, 1e-4)):
        ok = got[key] == want[key] or key != "name" \
            and near(got[key], want[key], atol, rtol)
        print("ok" if ok else "not ok", want["name"], key,
              "" if ok else "%r, expected %r" % (got[key], want[key]))
    assert "logits" not in got
END
python3 -c '
import json, sys
for line in open(sys.argv[1]):
    d = json.loads(line)
    print(json.dumps({k: d[k] for k in ("name", "logits", "ids")})
          .replace("-Infinity", "-1e999").replace("Infinity", "1e999"))
' "$V/score.ndjson" >cases
for form in json safetensors; do
    tensor -o $form cases >in
    run 'score in'
    is "vectors ($form): status" "$status $(cat err)" '0 '
    check "vectors ($form): all there" \
        "[ \$(wc -l <out) -eq \$(wc -l <'$V/score.ndjson') ]"
    python3 check.py out "$V/score.ndjson" >seen 2>&1
    check "vectors ($form): within what is allowed" \
        '[ $(wc -l <seen) -ge 90 ] && ! grep -v "^ok " seen'
done

# --- The errors: status 1, a message that names the record, nothing scored.
i=0
while read -r line; do
    i=$((i + 1))
    { head -n 1 cases; printf '%s\n' "$line"; } >bad
    run 'score bad'
    is "errors: $(printf '%s\n' "$line" | jq -r .why): status" "$status" 1
    check '  the message names the record' 'grep -q "^score: bad:2: ." err'
    is '  what came before is there, then an error record' \
        "$(jq -c 'has("error")' out)" 'false
true'
done <"$V/score_errors.ndjson"
is 'errors: all were read' "$i" "$(grep -c . "$V/score_errors.ndjson")"

# --- Fields.
two='{"seq":"s","label":[1,2],"logits":[[1,2,3],[3,2,1]],"ids":[0,2]}'
want 'fields: what it is, and what rides along' 'score | jq -c keys_unsorted' \
    "$two" 0 '["seq","label","logprobs","ranks","n","nll","perplexity",'\
'"bits","bits_per_token","ids"]'
json '--keep logits' 'score --keep logits' "$two" \
    '.[0].logits == [[1,2,3],[3,2,1]] and .[0].ranks == [0]'
want 'a record with one row and several ids' 'score' \
    '{"logits":[[1,2]],"ids":[0,1]}' 1 - \
    'score: <stdin>:1: logits: 1 row for 2 ids; unembed -A gives one for each'
want 'a record without ids' 'score' '{"logits":[[1,2]]}' 1 - \
    'score: <stdin>:1: the record has no ids*'
want 'a record without logits' 'score' '{"ids":[0,1]}' 1 - \
    'score: <stdin>:1: the record has no logits (unembed -A gives them)'
want 'an empty text' 'score | jq -c "[.n,.nll,.perplexity]"' \
    '{"logits":[],"ids":[]}' 0 '[0,0,null]'

# --- Sequences go on.
cat >steps <<'END'
{"seq":0,"logits":[[2,1,0],[0,2,1]],"ids":[0,0]}
{"seq":1,"logits":[[1,0,2]],"ids":[1]}
{"seq":0,"pos":2,"logits":[[1,0,2]],"ids":[2]}
{"seq":1,"pos":1,"logits":[[1,0,2]],"ids":[2]}
{"seq":0,"pos":3,"logits":[[1,0,2],[0,1,2]],"ids":[1,0]}
{"seq":0,"pos":5,"done":"stop"}
END
run 'score steps'
is 'sequences: ranks' "$(jq -c .ranks out)" '[0]
[]
[1]
[0]
[2,1]
null'
is 'a mark is passed on' "$(tail -n 1 out)" '{"seq":0,"pos":5,"done":"stop"}'
want 'a mark ends its sequence' \
    'cat steps - | score | tail -n 1 | jq -r .error' \
    '{"seq":0,"pos":5,"logits":[[1,2,3]],"ids":[0]}' 0 \
    'score: <stdin>:7: seq 0: record starts at 5 and nothing is known of '\
'what comes before; its first id cannot be scored' '*'

# --- The bundled model, token ids to nll: windows of 256, as the golden file.
tensor -s data -o json "$GOLDEN/ppl_ids.npy" | jq -c '.data as $d
    | range(0; 2000; 256) | {seq: ., ids: $d[.:. + 256]}' >windows
embed windows | attend | unembed -A >logits
tensor -s data -o json "$GOLDEN/ppl_nll.npy" | jq -c '.data as $d
    | range(0; 2000; 256) | {nll: $d[. + 1:. + 256]}' >nll.want
score logits | jq -c '{nll: (.logprobs | map(-.))}' >nll.got
close_to 'fairy: -log p of 1992 tokens' 'tensor -o json nll.got' nll.want
json 'fairy: perplexity 25.7282' 'score --ppl logits' '' \
    'length == 1 and .[0].n == 1992
        and (.[0].perplexity - 25.7281709 | fabs) < 0.0003
        and (.[0].nll - 6469.19238 | fabs) < 0.01
        and (.[0].bits_per_token - .[0].nll / 1992 / (2 | log) | fabs) < 1e-6'
pipe "tok-encode -s '$GOLDEN/ppl_text.txt' --chunk 256" embed attend \
    'unembed -A' 'score --ppl >out'
all_zero 'fairy: from text: every stage'
is 'fairy: from text, the same' "$(cat out)" "$(score --ppl logits)"

# --- One text in one record, in records, token by token: the same bytes.
jq -c '{seq: 0, ids: .ids}' windows | head -n 1 >whole
jq -c '.ids as $i | [[0,100],[100,101],[101,180],[180,256]][]
    | {seq: 0, pos: .[0], ids: $i[.[0]:.[1]]}' whole >parts
jq -c '.ids as $i | range(256) | {seq: 0, pos: ., ids: [$i[.]]}' whole >tokens
for how in whole parts tokens; do
    embed $how | attend | unembed -A | score >$how.out
    jq -cs '{logprobs: map(.logprobs) | add, ranks: map(.ranks) | add}' \
        $how.out >$how.all
    score_ppl=$(embed $how | attend | unembed -A | score --ppl | jq .n)
    is "$how: 255 are scored" "$score_ppl" 255
done
same 'in four records: the same numbers' parts.all whole.all
same 'token by token: the same numbers' tokens.all whole.all
# There, the last row of each record is all rows.
check 'token by token, unembed without -A is enough' \
    'embed tokens | attend | unembed | score | cmp - tokens.out'

# --- Overlap: each id is scored once, with what its piece shows before it.
head -n 7 "$GOLDEN/ppl_text.txt" >some
all=$(tok-encode -s some | jq '.ids | length')
check 'a text of some hundred ids' "[ $all -gt 200 ]"
for n in 0 1 2 20 39; do
    tok-encode -s some --chunk 40:$n >pieces
    embed pieces | attend | unembed -A | score >scored
    k=$(wc -l <pieces)
    [ $n = 0 ] && missing=$k || missing=1
    is "--chunk 40:$n: $k pieces, every id once but $missing" \
        "$(jq -s 'map(.n) | add' scored)" $((all - missing))
    is "  pieces say how much they share" \
        "$(jq -s 'map((.ids | length) - .overlap) | add' scored)" "$all"
done
# The first new id of a piece is scored by the last shared row.
tok-encode -s "$GOLDEN/ppl_text.txt" --chunk 200:100 | sed -n 2p >piece
embed piece | attend | unembed -A >piece.logits
score piece.logits >shared
jq -c 'del(.overlap)' piece | embed | attend | unembed -A | score >alone
is 'the shared rows are left out, the rest is the same' \
    "$(jq -c '[.logprobs[0:], .ranks]' shared)" \
    "$(jq -c '.n as $n | [.logprobs[99:], .ranks[99:]]' alone)"
json 'more context, lower perplexity' '
    for c in 64:0 64:32 256:128; do
        tok-encode -s "$GOLDEN/ppl_text.txt" --chunk $c | embed | attend |
            unembed -A | score --ppl
    done' '' 'map(.perplexity) | .[0] > .[1] and .[1] > .[2]'

# --- --ppl: one line; errors.
want '--ppl of nothing' 'score --ppl' '' 0 \
    '{"n":0,"nll":0,"perplexity":null,"bits":0,"bits_per_token":null}'
want '--ppl: marks do not count' 'score --ppl | jq -c .n' \
    '{"done":"input"}' 0 0
run "{ cat cases; echo '{}'; } | score --ppl"
is '--ppl: a bad record: 1, an error record, no sum' \
    "$status $(tail -n 1 out | jq -r '.error[:14]')" '1 score: <stdin>'
run "{ head -n 2 cases; echo '{}'; sed -n 2p cases; } | score --ppl \
    --keep-going"
is '--ppl --keep-going: the sum of the others, status 1' \
    "$status $(tail -n 1 out | jq .n)" '1 10'

# --- Memory does not grow with the text.
jq -c '.ids as $i | range(200) | {seq: ., ids: $i[:5]}' whole |
    embed | attend | unembed -A >many
cat many many many many many many many many >more
python3 "$PY" rss rss2 score --ppl more >/dev/null
python3 "$PY" rss rss1 score --ppl many >/dev/null
if [ $slow = 1 ]; then
    skip 'memory: 200 and 1600 records take about the same' \
        'freed memory is kept by the sanitizer'
else
    check 'memory: 200 and 1600 records take about the same' \
        '[ $(cat rss2) -lt $(($(cat rss1) + 20000)) ]'
fi
want '--ppl writes no record to keep a field in' \
    'score --ppl --keep logits' '{"logits":[[1,2]],"ids":[0]}' 2 - \
    'score: --keep: *'
finish
