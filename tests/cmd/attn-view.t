# attn-view: attention, and other matrices, as pictures.
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

gold=$PF_SOURCE/tests/golden/attn-view
unset NO_COLOR COLORTERM COLUMNS
TERM=xterm-256color
export TERM

# --- Input: tokens that are narrow, wide, combined; two layers of two heads.
cat >make.py <<'END'
import json, random
tokens = ["[CLS]", " the", "\u6f22\u5b57", "e\u0301t\u00e9", "\U0001f34f",
          "[SEP]"]
def full(l, h, n):
    r = random.Random(10 * l + h)
    rows = [[r.random() ** 3 for _ in range(n)] for _ in range(n)]
    return [[round(x / sum(row), 4) for x in row] for row in rows]
def causal(l, h, n):
    return [[0 if j > i else round((1 + (i * 7 + j * (h + 3)) % 5)
             / (5 * (i + 1)), 4) for j in range(n)] for i in range(n)]
def write(name, f, tokens):
    open(name, "w").write(json.dumps({"seq": "a", "tokens": tokens,
        "attn": [[f(l, h, len(tokens)) for h in range(2)] for l in (3, 7)],
        "layers": [3, 7], "heads": [0, 1]}) + "\n")
write("small", full, tokens)
write("forty", causal, [" w%d" % i for i in range(40)])
write("large", causal, ["w%d" % i for i in range(150)])
END
python3 make.py

# --- The terminal, at 80 columns, in all three modes: as the golden files, and
# with the right colour for each number.
for f in small forty large; do
    for mode in never 256 truecolor; do
        attn-view --width 80 --color $mode $f >$f.$mode
        same "$f, --color $mode" "$gold/$f.$mode" $f.$mode
    done
    attn-view $f >plain
    same "$f, not on a terminal: 80 columns without colours" plain $f.never
done
cat >term.py <<'END'
import json, sys
from pictures import *
name, mode, cell, half = sys.argv[1], sys.argv[2], int(sys.argv[3]), \
    int(sys.argv[4])
d = json.load(open(name))
text = open("%s.%s" % (name, mode), encoding="utf-8").read()
lines = screen(text)
assert max(map(len, lines)) <= 80
hi = max(x for l in d["attn"] for h in l for r in h for x in r)
n, maps = len(d["tokens"]), 0
for y, s in enumerate(text.split("\n")):
    # A map is under its name.
    for m in re.finditer(r"layer (\d+), head (\d+)|\b(\d)\.(\d)\b", s):
        if re.search("[^a-z0-9., ]", s):
            continue
        l, h = [int(v) for v in m.groups() if v]
        A = d["attn"][d["layers"].index(l)][d["heads"].index(h)]
        x0, y0 = m.start(), y + 1
        while len(lines[y0]) <= x0 or lines[y0][x0][1:] == (None, None):
            y0 += 1
        for i in range(n):
            for j in range(n):
                want = viridis(A[i][j] / hi)
                c = lines[y0 + (i // 2 if half else i)][x0 + cell * j]
                got = c[1] if half and i % 2 == 0 else c[2]
                assert got and near(got, want,
                    6 if mode == "truecolor" else 48), (l, h, i, j, got, want)
        maps += 1
assert maps == 4, maps
END
for mode in 256 truecolor; do
    check "small, $mode: each cell has the colour of its number" \
        "python3 term.py small $mode 2 0"
    check "forty, $mode: half blocks, too" "python3 term.py forty $mode 1 1"
done
cat >plain.py <<'END'
import json
from pictures import *
for name in ("small", "forty", "large"):
    text = open(name + ".never", encoding="utf-8").read()
    assert "\x1b" not in text
    assert max(map(len, screen(text))) <= 80
d = json.load(open("small"))
lines = screen(open("small.never", encoding="utf-8").read())
hi = max(x for l in d["attn"] for h in l for r in h for x in r)
first = next(i for i, s in enumerate(lines)
             if i and "".join(c[0] for c in s).startswith("[CLS] "))
for i, row in enumerate(d["attn"][0][0]):
    line = lines[first + i] + [(" ", None, None)] * 80
    for j, x in enumerate(row):
        want = " .:-=+*#%@"[int(x / hi * 9 + 0.5)]
        got = [c[0] for c in line[6 + 2 * j:][:2]]
        assert got == [want] * 2, (i, j, got, want)
END
check 'without colours: letters by the number; wide ones keep their columns' \
    'python3 plain.py'
is 'large: what a cell stands for is said' \
    "$(grep -c 'a cell is the greatest of 3 x 3' large.256)" 1

# When there are colours: script(1) has a terminal.
if command -v script >/dev/null; then
    tty() {
        script -qec "stty cols 70; $1" /dev/null </dev/null 2>&1 |
            tr -d '\r' >out
    }
    escapes() { tr -dc '\033' <out | wc -c | tr -d ' '; }
    tty 'COLORTERM=truecolor attn-view small'
    check 'a terminal with COLORTERM: 24 bits' 'grep -q "48;2;" out'
    tty 'attn-view small'
    check 'a terminal of 256 colours' 'grep -q "48;5;" out'
    tty 'NO_COLOR= attn-view small'
    check 'NO_COLOR that is empty does not count' 'grep -q "48;5;" out'
    tty 'TERM=dumb NO_COLOR=1 attn-view --color always small'
    check '--color always' 'grep -q "48;5;" out'
    for o in 'NO_COLOR=1 COLORTERM=truecolor attn-view small' \
        'TERM=dumb attn-view small' 'TERM=vt100 attn-view small' \
        'TERM=vt100 attn-view --color auto small' \
        'attn-view --color never small'; do
        tty "$o"
        is "no colours: $o" "$(escapes) $(grep -c '3\.0 ' out)" '0 1'
    done
    tty 'attn-view forty'
    attn-view --color 256 --width 70 forty >wanted
    same 'as wide as the terminal' out wanted
else
    skip 'terminals' 'no script(1)'
fi
COLUMNS=50 attn-view forty >a
attn-view --width 50 forty >b
same 'COLUMNS' a b
for w in 40 41 47 53 60 100 300; do
    for f in small forty large; do
        attn-view --width $w --color 256 $f >w.out
        check "$f: --width $w is kept to" "python3 -c 'from pictures import *
lines = screen(open(\"w.out\", encoding=\"utf-8\").read())
assert max(map(len, lines)) <= $w, max(map(len, lines))'"
    done
done

# --- What is written over and beside a map.
bar=' .:-=+*#%@'
bar="$(echo "$bar" | sed 's/./&&/g')"
want 'numbers for what has no tokens' attn-view '{"attn":[[1,0],[0.5,0.5]]}' \
    0 "attn
  0 1
0 @@
1 ++++

0 $bar 1"
want 'ids' attn-view '{"ids":[17,4],"attn":[[1,0],[0.5,0.5]]}' 0 "17 4
   1
   7 4
17 @@
 4 ++++

0 $bar 1"
want 'ids of -e' 'attn-view -e gpt2 --heads 1' \
    '{"ids":[40,588],"heads":[0,1],"attn":[[[[1,0],[0.5,0.5]],[[1,0],[0,1]]]],'\
'"layers":[0]}' 0 "I like
      layer 0, head 1
        ·
        l
        i
        k
      I e
    I @@
·like   @@

0 $bar 1"
printf '%s\n' 'Once upon' | tok-encode | embed | attend -a >once
is 'ids of the model that is at hand' \
    "$(attn-view -o links -l 0 --heads 0 --top 1 once |
        jq -r '.query_token' | tr '\n' '|')" 'Once| upon|'
is '  not of another one' \
    "$(PIPEFORMER_MODEL=gpt2 attn-view -o links -l 0 --heads 0 --top 1 once |
        jq -r '.query_token' | tr '\n' '|')" '2412|643|'
echo '{"seq":"other","ids":[2412,643],"attn":[[1,0],[0,1]]}' >other
is '  not of a record that does not say where it comes from' \
    "$(attn-view -o links --top 1 once other | tail -n 2 |
        jq -r '.query_token' | tr '\n' '|')" '2412|643|'
want 'an empty one, one of a blank' attn-view \
    '{"tokens":["","\u00a0"],"key_tokens":["a","b"],"attn":[[1,0],[0,1]]}' 0 \
    "<U+00A0>
         a b
       ∅ @@
<U+00A0>   @@

0 $bar 1"
want 'keys of another text have names of their own' attn-view \
    '{"tokens":["x","y"],"key_tokens":["un","deux","trois"],'\
'"attn":[[1,0,0],[0,0.5,0.5]]}' 0 "x y
      t
    d r
    e o
  u u i
  n x s
x @@
y   ++++

0 $bar 1"
want 'keys without names are numbers' attn-view \
    '{"tokens":["x","y"],"memory":[[1],[2]],"attn":[[1,0],[0,1]]}' 0 "x y
  0 1
x @@
y   @@

0 $bar 1"
want 'long names have a legend' attn-view \
    '{"tokens":["x"],"key_tokens":["a very long token","b"],'\
'"attn":[[1,0]]}' 0 "x
0 a very long token  1 b
  0 1
x @@

0 $bar 1"
want '--title, --range' 'attn-view --title "a <b>" --range -1:1' \
    '{"attn":[[1,0]]}' 0 "a <b>
  0 1
0 @@++

-1 $bar 1"
want 'the title is the text' 'attn-view | head -n 1' \
    '{"text":"A text.\nMore","attn":[[1]]}' 0 'A text.\nMore'

# --- Fields.
want '--field of two axes' 'attn-view --field hidden' \
    '{"tokens":["x","y"],"hidden":[[-1,0,1],[1e999,-1e999,0]]}' 0 "x y
  0 1 2
x   ++@@
y @@  ++

-1 $bar 1"
want '  of one' 'attn-view --field p' '{"tokens":["x","y"],"p":[0,4]}' 0 "x y
  x y
0   @@

0 $bar 4"
want '  a matrix of similarities, of whole numbers' 'attn-view --field sim' \
    '{"tokens":["x","y"],"sim":[[9,0],[0,9]]}' 0 "x y
  x y
x @@
y   @@

0 $bar 9"
is '  all the same' "$(echo '{"x":[[2,2]]}' | attn-view --field x |
    sed -n 3p)" '0 ++++'
json '  heads inside: q is [T,H,D]' \
    'attn-view -o links --field blocks.2.attn.q --top 9 --heads 1' \
    '{"blocks.2.attn.q":[[[1,2],[3,4]],[[5,6],[7,8]]]}' \
    'map([.layer, .head, .query, .key, .weight]) ==
        [[2,1,0,1,4],[2,1,0,0,3],[2,1,1,1,8],[2,1,1,0,7]]'
json '  pattern is [H,T,S]' \
    'attn-view -o links --field blocks.2.attn.pattern --top 1 --heads 1' \
    '{"blocks.2.attn.pattern":[[[1,0],[1,0]],[[0,1],[0.5,0.5]]]}' \
    'map([.layer, .head, .query, .key, .weight]) ==
        [[2,1,0,1,1],[2,1,1,0,0.5]]'
names=blocks.1.attn.q,blocks.1.attn.pattern,blocks.1.mlp.post
check '  activations of fairy' "embed '$GOLDEN/p1_ids.npy' |
    attend --tap $names >taps
    for f in hidden $(echo $names | tr , ' '); do
        attn-view --field \$f taps >out && [ -s out ] || exit 1
        attn-view --field \$f -o svg taps >out && [ -s out ] || exit 1
    done"

# --- Links.
one='{"seq":5,"tokens":["a","b\n"],"layers":[2],"heads":[1],'\
'"attn":[[[[1,0],[0.25,0.75]]]]}'
run 'attn-view -o links' "$one"
is 'links' "$(cat out)" \
'{"seq":5,"layer":2,"head":1,"query":0,"key":0,"weight":1,"query_token":"a",'\
'"key_token":"a"}
{"seq":5,"layer":2,"head":1,"query":1,"key":1,"weight":0.75,"query_token":'\
'"b\n","key_token":"b\n"}
{"seq":5,"layer":2,"head":1,"query":1,"key":0,"weight":0.25,"query_token":'\
'"b\n","key_token":"a"}'
is '--top' "$(attn-view -o links --top 1 stdin | jq -c .weight)" '1
0.75'
is '--min' "$(attn-view -o links --min 0.75 stdin | jq -c .weight)" '1
0.75'
want 'of bare maps; of equal weights, the first key comes first' \
    'attn-view -o links --min 0.5' '{"attn":[[0.5,0.5]]}' 0 \
'{"query":0,"key":0,"weight":0.5}
{"query":0,"key":1,"weight":0.5}'
is 'without --top and --min, three' "$(attn-view -o links -l 3 --heads 0 small |
    jq -sc 'group_by(.query) | map(length) | unique')" '[3]'
is '  those that are in the record' "$(attn-view -o links --min 0 small |
    jq -sc 'map([.layer, .head, .query, .key, .weight]) | sort')" \
    "$(jq -c '. as $r | [range(2) as $l | range(2) as $h | range(6) as $t
        | range(6) as $s | [$r.layers[$l], $r.heads[$h], $t, $s,
            $r.attn[$l][$h][$t][$s]] | select(.[4] > 0)] | sort' small)"
want 'an error leaves a record' 'attn-view -o links | jq .error' '{"ids":[1]}' \
    0 '"attn-view: <stdin>:1: the record has no attn (attend -a gives it)"' '*'

# --- Words.
json 'words of WordPiece' 'attn-view -o links --words --min 0.01' \
    '{"tokens":["[CLS]","hip","##po","!"],"attn":[[0.5,0.25,0.25,0],'\
'[0.25,0.5,0.25,0],[0.75,0,0,0.25],[0,0,0,1]]}' \
    'map([.query, .key, .weight, .query_token, .key_token]) == [
        [0,0,0.5,"[CLS]","[CLS]"], [0,1,0.5,"[CLS]","hippo"],
        [1,0,0.5,"hippo","[CLS]"], [1,1,0.375,"hippo","hippo"],
        [1,2,0.125,"hippo","!"], [2,2,1,"!","!"]]'
json 'words of bytes' 'attn-view -o links --words --min 0' \
    '{"tokens":["Two"," Hipp","os"],"attn":[[1,0,0],[0.5,0.5,0],[0,0.5,0.5]]}' \
    'map([.query, .key, .weight, .key_token]) == [[0,0,1,"Two"],
        [1,1,0.75,"Hippos"], [1,0,0.25,"Two"]]'
want 'no words of what are no weights' 'attn-view --words --field x' \
    '{"x":[[1]]}' 1 '' 'attn-view: <stdin>:1: x: --words is for attention *'
want '  which is no matter to the next sequence' \
    'attn-view --keep-going --words | sed -n 4p' '{"seq":1,"attn":[[2]]}
{"seq":2,"tokens":["a"," b"],"attn":[[1,0],[0.5,0.5]]}' 0 'b ++++' \
    'attn-view: <stdin>:1: attn: --words is for *'

# --- Sequences that grow are gathered into one map.
tensor -s data -o json "$GOLDEN/p3_ids.npy" | jq -c '.data as $d
    | {seq: "a", ids: $d[:7]},
      (range(7; 23) | {seq: "a", pos: ., ids: $d[.:. + 1]})' >grow
embed grow | attend -a >grow.attn
tensor -s data -o json "$GOLDEN/p3_ids.npy" | jq -c '{seq: "a", ids: .data}' |
    embed | attend -a >whole.attn
for o in term svg links html; do
    attn-view -o $o whole.attn >a
    attn-view -o $o grow.attn >b
    same "token by token: the same $o" a b
done
want 'two sequences, one after the other' attn-view \
    '{"seq":1,"attn":[[1]]}
{"seq":2,"attn":[[1]]}' 0 "attn
  0
0 @@

0 $bar 1

attn
  0
0 @@

0 $bar 1"
two='{"seq":1,"attn":[[1]]}
{"seq":"b","attn":[[1]]}'
for o in svg html; do
    want "$o: of two sequences" "attn-view -o $o" "$two" 1 '' \
        'attn-view: <stdin>:2: a second sequence begins,*--seq NAME'
done
for s in 1 b; do
    want "--seq $s" "attn-view -o svg --seq $s" "$two" 0 -
done
same_seq='{"seq":1,"attn":[[1]]}
{"seq":"1","attn":[[1]]}'
want '--seq, 1 and "1"' "attn-view -o svg --seq '\"1\"'" "$same_seq" 0 -
want '--seq that is not there' 'attn-view --seq c' "$two" 1 '' \
    'attn-view: no record is of the sequence c'

# --- SVG: well-formed, and of the right colours.
if command -v xmllint >/dev/null; then
    valid() { xmllint --noout "$1" >why 2>&1; }
else
    valid() { python3 -c 'import sys, xml.dom.minidom as m
m.parse(sys.argv[1])' "$1" >why 2>&1; }
fi
# svg NAME ARGUMENT ...: x.svg
svg() {
    what=$1
    shift
    if attn-view -o svg "$@" >x.svg 2>why && valid x.svg; then
        ok "svg: $what"
    else
        not_ok "svg: $what" <why
    fi
}
cat >svg.py <<'END'
import json, xml.etree.ElementTree as ET
from pictures import *
A = json.load(open("small"))["attn"][0][1]
root = ET.parse("one.svg").getroot()
ns = "{http://www.w3.org/2000/svg}"
g = next(e for e in root.iter(ns + "g") if "scale" in e.get("transform", ""))
x, y, cw, ch = map(float, re.findall("[0-9.]+", g.get("transform")))
w, h, px = png("one.png")
hi = max(v for r in A for v in r)
for i in range(6):
    for j in range(6):
        got = px[int(y + (i + 0.5) * ch)][int(x + (j + 0.5) * cw)]
        assert near(got, viridis(A[i][j] / hi)), (i, j, got)
assert px[1][1] == (255, 255, 255)
texts = [e.text for e in root.iter(ns + "text")]
for t in ["\u00b7the", "\u6f22\u5b57", "[CLS]", "query", "key"]:
    assert t in texts, (t, texts)
assert root.find(ns + "title").text.startswith("[CLS]")
END
svg 'one head' -l 3 --heads 1 small
cp x.svg one.svg
if command -v rsvg-convert >/dev/null; then
    check '  cells have the colours of their numbers' \
        'rsvg-convert one.svg -o one.png && python3 svg.py'
else
    skip '  cells have the colours of their numbers' 'no rsvg-convert'
fi
svg '--annotate' -l 3 --heads 1 --annotate small
is '  the numbers' "$(grep -o '>[01]\.[0-9][0-9]<' x.svg | tr -d '<>' |
    tr '\n' ' ')" "$(python3 -c 'import json
print("".join("%.2f " % x for r in json.load(open("small"))["attn"][0][1]
    for x in r))')"
svg '--lines' -l 3 --heads 1 --lines --min 0.2 small
is '  those of at least --min' "$(grep -c '<line ' x.svg)" \
    "$(jq '[.attn[0][1][][] | select(. >= 0.2)] | length' small)"
svg 'all maps' large
is '  are there' "$(grep -c '<g><title>layer' x.svg)" 4
svg 'one map of 150 tokens' -l 3 --heads 0 large
svg 'words' --words -l 3 --heads 0 forty
svg 'a field' --field hidden whole.attn

# --- Hostile texts stay texts.
cat >bad.py <<'END'
import json
t = ["</script><img onerror=x>", "]]>", "<!--", "&amp;\"'",
     "\u0000\u0001\x7f", "\u001b[31m\n\r\t", "\u202e\ufeff\uffff\u2028",
     "\u0301\u0302", "", "-->" * 400, "\U000e0001\u0085"]
n = len(t)
print(json.dumps({"seq": "<b>&", "text": "</title><script>alert(1)</script>",
    "tokens": t, "attn": [[1 / n] * n] * n}))
END
python3 bad.py >hostile
hostile() {
    svg "hostile tokens $*" "$@" hostile
    is '  no markup of theirs' "$(grep -ciE '<(script|img|!--)' x.svg)" 0
}
hostile
hostile --annotate
hostile --lines
hostile --title '</text>&'
printf '%s\n' '{"<b>\u0001&":[[1,2]]}' >name
svg 'a hostile name of a field' --title x --field "$(printf '<b>\1&')" name
attn-view --color 256 hostile >out
cat >obey.py <<'END'
from pictures import *
s = open("out", encoding="utf-8").read()
screen(s)
for c in re.sub("\x1b\\[[0-9;]*m", "", s).replace("\n", ""):
    assert ord(c) >= 32 and ucd.category(c) not in ("Cc", "Zl", "Cn"), c
    assert c not in "\u202e\ufeff", hex(ord(c))
END
check '  on a terminal: nothing that it would obey' 'python3 obey.py'
json '  as links: as they came' 'attn-view -o links --top 1 hostile' '' \
    '(.[0].query_token == "</script><img onerror=x>") and length == 11'
python3 - <<'END'
import json
def write(name, T, S, weight):
    open(name, "w").write(json.dumps({"tokens": ["t%d" % i for i in range(T)],
        "attn": [[weight] * S] * T}) + "\n")
write("tall", 10000, 2, 0.5)
write("wide", 2000, 2000, 0.0005)
write("toomany", 1500, 3000, 0.0003)
END
check '10,000 tokens' '[ $(attn-view tall | wc -l) -gt 10000 ]'
check '2000 by 2000 fit a screen' '[ $(attn-view wide | wc -l) -lt 90 ]'
svg '2000 by 2000' wide
want 'too many cells are refused' 'attn-view -o svg toomany' '' 1 '' \
    'attn-view: toomany:1: attn: 1 x 1500 x 3000 cells are too many*'

# --- Records that make no sense are refused, with the place.
bad() {
    want "$1" "attn-view $4" "$2" 1 '' "attn-view: <stdin>:1: $3"
}
bad 'no attn' '{"ids":[1]}' 'the record has no attn (attend -a gives it)' ''
bad 'one axis' '{"attn":[1]}' 'attn: has the shape [[]1], not *T, S]' ''
bad 'NaN' '{"attn":[[[[1,0],[null,0]]]],"layers":[4],"heads":[2]}' \
    'attn: is NaN at layer 4, head 2, row 1, column 0' ''
bad 'tokens of other number' '{"attn":[[1]],"tokens":["a","b"]}' \
    'tokens: 2 of them for the 1 rows' ''
bad 'tokens that are none' '{"attn":[[1]],"tokens":[1]}' \
    'tokens: is no list of strings' ''
bad 'key_tokens of other number' '{"attn":[[1]],"key_tokens":["a","b"]}' \
    'key_tokens: 2 of them for the 1 columns' ''
bad 'segments of other number' \
    '{"attn":[[1]],"tokens":["a"],"segments":[0,1]}' 'segments: 2 of them*' ''
bad 'other ids' '{"attn":[[1]],"ids":[1,2]}' \
    'ids: 2 of them for the 1 rows of attn' ''
bad 'layers of other number' \
    '{"attn":[[[[1]]]],"layers":[0,1],"heads":[0]}' 'layers: does not say*' ''
bad 'a layer that is not there' \
    '{"attn":[[[[1]]]],"layers":[0],"heads":[0]}' 'attn: holds no layer 2' \
    '-l 2'
bad 'no such field' '{"attn":[[1]]}' 'the record has no x' '--field x'
bad 'a field of text' '{"x":"1"}' 'x: is no array of numbers' '--field x'
bad 'a field of five axes' '{"x":[[[[[1]]]]]}' \
    'x: has the shape * one to four axes' '--field x'
bad 'it goes on from nothing' '{"seq":"a","pos":3,"attn":[[1,0,0,0]]}' \
    'seq "a": maps of 0 positions are there, record starts at 3' ''
want 'columns that do not grow with rows' attn-view '{"attn":[[1,0],[0,1]]}
{"pos":2,"attn":[[1,0,0,0]]}' 1 '' \
    'attn-view: <stdin>:2: attn: has 4 columns, and 2 before*'
want '--annotate of several' 'attn-view -o svg --annotate small' '' 1 '' \
    'attn-view: small:1: *--annotate is for one map*'
want '--lines of several' 'attn-view -o svg --lines small' '' 1 '' \
    'attn-view: small:1: *--lines is for one map*'
want 'no rows' 'attn-view --field x' '{"x":[]}' 0 'x
x: no numbers'
want '  as a picture' 'attn-view -o svg --field x' '{"x":[]}' 1 '' \
    'attn-view: *x: has no numbers to draw'

# --- Mistakes.
for o in '-o png' '--range 1' '--range 2:1' '--range a:b' '--width 39' \
    '--width x' '--color blue' '-l x' '--heads 3-1' '--top 0' '--annotate' \
    '--lines' '--min 1' '-o links --annotate' '-o svg --width 80' \
    '-o svg --top 1' '-o svg --annotate --lines' '-o svg --color 256' \
    '-e gpt2 -m fairy' '-o links --min x'; do
    want "$o: a mistake" "attn-view $o" '' 2 - 'attn-view: *usage: *'
done
want '--title that is no UTF-8' 'attn-view --title "$(printf "\\377")"' '' \
    2 '' 'attn-view: *usage: *'

# --- The seed sentence on a BERT.
model=$SHARED/models/all-MiniLM-L6-v2
if [ -d "$model" ]; then
    PIPEFORMER_MODEL=$model
    export PIPEFORMER_MODEL
    echo 'I like Green Apples' | tok-encode | embed | attend -a >apples
    attn-view -l 0 --heads 0 apples >out
    same 'apples: layer 0, head 0' "$gold/apples" out
    svg 'all 72 heads' apples
    is '  are there' "$(grep -c '<g><title>layer' x.svg)" 72
    svg 'lines of one' -l 0 --heads 0 --lines apples
else
    skip 'apples' "no $model (set PIPEFORMER_SHARED)"
fi
finish
