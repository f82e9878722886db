# attn-view -o html: the page, in a browser (html.py), and what can be seen
# without one.
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

# page NAME [OPTION ...]: NAME.html of NAME.rec
page() {
    page_name=$1
    shift
    check "page: $page_name" \
        "attn-view -o html $* $page_name.rec >$page_name.html"
}

printf '%s\n' 'Once upon a time there was a little girl' | tok-encode -t |
    embed --keep tokens | attend -a --keep tokens >fairy.rec
page fairy

cat >evil.json <<'END'
{"tokens": ["</script><img src=x onerror=alert(1)>", "]]>", "<!--",
"&lt;script&gt;", "\u2028'\" LONG", "<script>alert(2)</script>"], "attn":
[[[[1, 0, 0, 0, 0, 0], [0.25, 0.75, 0, 0, 0, 0], [0.1, 0.2, 0.7, 0, 0, 0],
[0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 1]]]]}
END
long=$(printf '%200s' '' | tr ' ' w)
jq -c . evil.json | sed "s/LONG/$long/" >evil.rec
page evil --title "'</title><script>alert(3)</script>&amp;'"

# --- Segments of a pair, queries of other keys, a matrix of anything
printf '{"attn":[[%s,%s]],"tokens":%s,"segments":[0,0,0,1,1,1]}\n' \
    '[[0.5,0.1,0.1,0.1,0.1,0.1],[0.02,0.18,0.2,0.2,0.2,0.2],
    [0,0,1,0,0,0],[0.3,0,0,0.3,0.4,0],[0,0.25,0,0.25,0.5,0],
    [0.1,0.1,0.1,0.1,0.1,0.5]]' \
    '[[1,0,0,0,0,0],[0,1,0,0,0,0],[0,0,1,0,0,0],[0,0,0,1,0,0],
    [0,0,0,0,1,0],[0,0,0,0,0.01,0.99]]' \
    '["[CLS]","a","[SEP]","b","c","[SEP]"]' | tr -d '\n' >pair.rec
page pair
cat >cross.json <<'END'
{"q": [[[1, 0], [0, 2], [-1, 1]], [[3, 0], [0, 0.5], [0.1, 1]]],
"k": [[[1, 1], [0, 1], [2, -1], [0, 0], [-1, 3]],
[[0, 1], [0.5, 1], [-2, 1], [0, 0], [1, 3]]],
"v": [[[1], [2], [3], [4], [5]], [[1], [2], [3], [4], [5]]]}
END
jq -c . cross.json | attend -a >cross.rec
page cross
echo '{"m":[[1,2,3],[0.1,1e999,-1.2345679e-05],[-1e999,16777216,3.4028235e+38],
[0,1.1754944e-38,-7]]}' | tr -d '\n' | tensor -o safetensors >matrix.rec
page matrix --field m

# --- As large as a page gets without effort: 12 x 12 heads
python3 - <<'END'
import random, struct
import stream
random.seed(6)
def maps(n):
    v = []
    for h in range(144):
        for t in range(n):
            r = [random.random() ** (4 + h % 12) for _ in range(n)]
            r[t - h % 4] += h % 5
            v += [x / sum(r) for x in r]
    return stream.document({"attn": stream.f32([12, 12, n, n], v)})
open("large.rec", "wb").write(maps(128))
open("usual.rec", "wb").write(maps(30))
END
page large
page usual
size=$(wc -c <usual.html)
check "12 x 12 heads, 30 tokens: $size bytes" "[ $size -lt 460000 ]"

# --- Without a browser
check 'ASCII, but for what a record has' '! grep -q "[^ -~]" large.html'
check 'nothing of the network' '! grep -Eq "(src|href)=|https?:" fairy.html'
check 'one policy, by hashes' \
    "grep -q \"style-src 'sha256-\" fairy.html &&
        grep -q \"script-src 'sha256-\" fairy.html &&
        ! grep -q unsafe fairy.html"
check 'no markup of the record' \
    '! grep -q -e "<img" -e "alert(.)</script>" -e "<!--" evil.html'
check 'the same bytes again' 'attn-view -o html fairy.rec | cmp - fairy.html'
python3 - <<'END'
import stream
n = 4097
open("huge.rec", "wb").write(stream.document(
    {"m": stream.Tensor("F32", [n, n], bytes(4 * n * n))}))
END
want 'too large' 'attn-view -o html --field m huge.rec' '' 1 - \
    'attn-view: huge.rec:1: m: 1 x 1 maps of 4097 x 4097 are more than*tensor -s'

# --- In a browser
python3 "$PF_SOURCE/tests/pipe/html.py" "$T" >checks 2>notes
status=$?
if [ $status = 77 ]; then
    skip 'in a browser' 'no chromium'
    finish
fi
grep '^#' notes
is 'the checks ran' "$status" 0
while read -r line; do
    case $line in
    'ok '*) ok "browser: ${line#ok }" ;;
    *)
        printf '%s\n' "$line" >why
        line=${line%%	*}
        not_ok "browser: ${line#not ok }" <why
        ;;
    esac
done <checks

finish
