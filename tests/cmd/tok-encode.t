# tok-encode: text to ids.
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

# --- Lines.
want 'a text a line' tok-encode 'Once upon a time
The fox
' 0 '{"seq":0,"ids":[2412,643,258,529]}
{"seq":1,"ids":[333,1698]}'
json 'without a last newline it is a text all the same' tok-encode \
    'Once upon a time' '. == [{"seq": 0, "ids": [2412, 643, 258, 529]}]'
json 'an empty line is an empty text' tok-encode '

a
' 'length == 3 and .[0] == {"seq": 0, "ids": []} and .[2].seq == 2'
json 'CR is a byte of the text' "printf 'a\\r\\n' | tok-encode" '' \
    '.[0].ids | length == 2'
json 'files one after the other; seq counts on' \
    "printf 'a\\nb' >f; printf 'c\\n' >g; tok-encode f - g" 'x
y
' '[.[].seq] == [0, 1, 2, 3, 4]'

# --- What a text is.
json '-s: a file is one text' 'tok-encode -s' 'a
b
' 'length == 1 and (.[0].ids | length) == 4'
json '-s: two files are two' "tok-encode -s f g" '' 'length == 2'
json '-s: nothing is no text' 'tok-encode -s' '' '. == []'
json '-0: a NUL ends a text' "printf 'a\\nb\\0c\\0' | tok-encode -0" '' \
    'length == 2 and (.[0].ids | length) == 3'
json '-0: the last needs none' "printf 'a\\0\\0b' | tok-encode -0" '' \
    'length == 3 and .[1].ids == []'
json '-r: from records, other fields ride along' 'tok-encode -r' \
    '{"seq":"x","text":"The fox","tag":1.50}
{"text":"a"}' '.[0].ids == [333, 1698] and .[0].seq == "x"
    and .[0].tag == 1.5 and (.[0] | has("text") | not) and .[1].seq == 1'
json '-r --keep text' 'tok-encode -r --keep text' '{"text":"The fox"}' \
    '.[0].text == "The fox" and .[0].ids == [333, 1698]'
# What belongs to former ids does not outlive them.
former='"ids":[1,2,3],"tokens":["a","b","c"],"segments":[0,0,0],"layer":2,
"offsets":[[0,1],[1,2],[2,3]],"hidden":[[1],[2],[3]],"attn":[[[[1]]]],
"layers":[0],"heads":[0],"logits":[[1,2]],"blocks.0.resid_post":[[1],[2],[3]],
"cut":7,"overlap":1'
former=$(printf '{"text":"The fox",%s,"tag":1.50}' "$former" | tr -d '\n')
want '-r: what belongs to former ids goes with them' 'tok-encode -r' \
    "$former" 0 '{"tag":1.50,"seq":0,"ids":[333,1698]}'
want '  of binary records, too' 'tensor -o safetensors | tok-encode -r' \
    "$former" 0 '{"tag":1.50,"seq":0,"ids":[333,1698]}'
json '  what is asked for is of the new ones' 'tok-encode -r -to -n 1' \
    "$former" '.[0] | .tokens == ["The"] and .offsets == [[0, 3]]
        and .cut == 1 and (has("hidden") or has("overlap") | not)'
json '  and --keep' 'tok-encode -r --keep hidden --keep layer' \
    "$former" '.[0] | .layer == 2 and (.hidden | length) == 3
        and (has("attn") | not)'
want '  marks are as they were' 'tok-encode -r' \
    '{"seq":7,"pos":3,"done":"eos","ids":[1],"segments":[0]}' 0 \
    '{"seq":7,"pos":3,"done":"eos","ids":[1],"segments":[0]}'
json '-r: any text that JSON can hold' 'tok-encode -r' \
    '{"text":"a\u0000\n\ud83e\udd8a"}' '.[0].ids | length > 3'
want '-r: text_pair is not for this tokenizer' 'tok-encode -r' \
    '{"text":"a","text_pair":"b"}' 1 - 'tok-encode: <stdin>:1: *text_pair*'
want '-s and -0' 'tok-encode -s -0' a 2 - '*only one of*'
want '-r and -s' 'tok-encode -r -s' a 2 - '*only one of*'

# --- What comes out.
want '-c: a number a text' 'tok-encode -c' 'Once upon a time

The fox
' 0 '4
0
2'
want '-c --total' 'tok-encode -c --total' 'Once upon a time
The fox
' 0 6
want '-c --total of nothing' 'tok-encode -c --total' '' 0 0
want '-r -c' 'tok-encode -r -c' '{"text":"The fox"}' 0 2
want '--total alone' 'tok-encode --total' a 2 - '*--total*-c*'
want '--raw u16' 'tok-encode --raw u16 | od -An -v -tu2 | tr -s " "' \
    'Once upon a time' 0 ' 2412 643 258 529'
want '--raw u32' 'tok-encode --raw u32 | od -An -v -tu4 | tr -s " "' \
    'Once upon a time' 0 ' 2412 643 258 529'
want '--raw u16 --eot' \
    'tok-encode --raw u16 --eot | od -An -v -tu2 | tr -s " "' 'The fox
The fox
' 0 ' 333 1698 4095 333 1698 4095'
want '--raw u8' 'tok-encode --raw u8' a 2 - '*u8*'
want '--eot alone' 'tok-encode --eot' a 2 - '*--eot*--raw*'
want '-c and --raw' 'tok-encode -c --raw u16' a 2 - '*only one of*'
want '-c and -t' 'tok-encode -c -t' a 2 - '*only one of*'
json '-t -o: tokens and where they lie' 'tok-encode -t -o' \
    'Once upon a time' '.[0].tokens == ["Once", " upon", " a", " time"]
        and .[0].offsets == [[0, 4], [4, 9], [9, 11], [11, 16]]'
json '-t -o: a token that is no character' 'tok-encode -to' '🦊é' \
    '(.[0].tokens | all(test("^(<0x[0-9A-F]{2}>)+$|^é$")))
        and .[0].offsets[-1][1] == 6 and .[0].offsets[0][0] == 0
        and ([.[0].offsets[][0]][1:] == [.[0].offsets[][1]][:-1])'
json '-n: the first ids, and how many were cut' 'tok-encode -n 3' \
    'Once upon a time
a
' '.[0].ids == [2412, 643, 258] and .[0].cut == 1
    and .[1].cut == 0'
json '-n 0' 'tok-encode -n 0' 'a' '.[0].ids == [] and .[0].cut == 1'
for n in -1 x 1.5 ''; do
    want "-n '$n'" "tok-encode -n '$n'" a 2 - '*--max*'
done
want '--end closes with a mark' 'tok-encode --end' 'The fox' 0 \
    '{"seq":0,"ids":[333,1698]}
{"done":"input"}'
want '--end of nothing' 'tok-encode --end' '' 0 '{"done":"input"}'
want '--end -r' 'tok-encode --end -r' '{"text":"The fox"}' 0 \
    '{"seq":0,"ids":[333,1698]}
{"done":"input"}'
want '--end, after a failure: no mark' \
    'tok-encode --end /no/file | jq -c "has(\"done\")"' '' 0 false \
    'tok-encode: /no/file: *'

# --- Special tokens are text, unless asked for.
eot='<|endoftext|>'
json 'by default text is text' tok-encode "a${eot}b" \
    '.[0].ids | index(4095) == null and length > 3'
for special in all "'$eot'" "'$eot,$eot'"; do
    json "--special $special" "tok-encode --special $special" "a${eot}b" \
        '.[0].ids | length == 3 and .[1] == 4095'
done
json '--special none' 'tok-encode --special none' "a${eot}b" \
    '.[0].ids | index(4095) == null'
want '--special of a name that is none' "tok-encode --special '<|x|>'" a 2 \
    - 'tok-encode: *<|x|>*'

# --- Bytes of any kind come back.
cat >bytes.py <<'END'
import random
import sys
random.seed(3)
kind, n = sys.argv[1], int(sys.argv[2])
sys.stdout.buffer.write(
    b"a" * n if kind == "a" else b" " * n if kind == "spaces" else
    bytes(range(256)) * (n // 256) if kind == "all" else
    random.getrandbits(8 * n).to_bytes(n, "little"))
END
[ $slow = 1 ] && size=65536 seconds=60 || size=1000000 seconds=5
for kind in a spaces random all; do
    python3 bytes.py $kind $size >text
    start=$(date +%s)
    pipe 'cat text' 'tok-encode -s' 'tee ids' 'tok-decode -s' >got
    took=$(($(date +%s) - start))
    all_zero "$size bytes, $kind: no stage fails"
    same '  the same bytes come back' got text
    # About a second; loosely, for machines that are busy.
    check "  in less than $seconds s ($took)" "[ $took -lt $seconds ]"
    tok-encode -s --raw u16 text | tok-decode --raw u16 -s >got
    same '  and through --raw' got text
    tok-encode -0 text | tok-decode -0 >got
    [ "$(tail -c 1 text | od -An -tx1)" = ' 00' ] || printf '\0' >>text
    same '  and as texts with NUL' got text
    python3 bytes.py $kind 9999 >text
    tok-encode text | tok-decode >got
    [ "$(tail -c 1 text | od -An -tx1)" = ' 0a' ] || echo >>text
    same '  and as lines' got text
done

# --- Other vocabularies.
want 'a model without a tokenizer' 'mkdir m; cp "$FAIRY"/config.json m
    tok-encode -m m' a 1 - 'tok-encode: *vocab.json*'
want 'a vocabulary cut off' 'head -c 1000 "$FAIRY"/vocab.json >m/vocab.json
    cp "$FAIRY"/merges.txt m; tok-encode -m m' a 1 - 'tok-encode: *vocab.json*'
gpt2=$(find "$SHARED/vocab" "$SHARED/models" -name merges.txt \
    -path '*gpt2*' ! -path '*tiny*' 2>/dev/null | head -n 1)
if [ -z "$gpt2" ]; then
    skip "GPT-2's own vocabulary" "none in $SHARED"
else
    json "GPT-2's own vocabulary" "tok-encode -m '${gpt2%/*}'" \
        'I am going to do some model architecting by Googling, Pissu' \
        '.[0].ids == [40,716,1016,284,466,617,2746,7068,278,416,1514,519,1359,11,350,747,84]'
fi

# --- Encodings by name.
want '-e list: names and sizes' 'tok-encode -e list | cut -f 1,2' '' 0 \
    'gpt2	50257
r50k_base	50257
p50k_base	50281
p50k_edit	50284
cl100k_base	100277
o200k_base	200019
o200k_harmony	201088
bert-base-uncased	30522'
want '  and special tokens' \
    'tok-encode -e list | cut -f 3 | sed -n "4p;6p;8p"' '' 0 \
    '<|endoftext|> <|fim_prefix|> <|fim_middle|> <|fim_suffix|>
<|endoftext|> <|endofprompt|>
[PAD] [UNK] [CLS] [SEP] [MASK]'
want '-e list on a full disk' 'tok-encode -e list >/dev/full' '' 1 '' \
    'tok-encode: *'
# The ids of tiktoken and of HuggingFace tokenizers.
while read -r name ids; do
    want "-e $name" "tok-encode -e $name | jq -c .ids" 'Hello 2024  world' \
        0 "$ids"
    want "-m $name: it needs no model" "tok-encode -m $name | jq -c .ids" \
        'Hello 2024  world' 0 "$ids"
done <<END
gpt2 [15496,48609,220,995]
r50k_base [15496,48609,220,995]
p50k_base [15496,48609,220,995]
p50k_edit [15496,48609,220,995]
cl100k_base [9906,220,2366,19,220,1917]
o200k_base [13225,220,1323,19,220,2375]
o200k_harmony [13225,220,1323,19,220,2375]
bert-base-uncased [101,7592,16798,2549,2088,102]
END
want 'PIPEFORMER_MODEL names one' \
    'PIPEFORMER_MODEL=gpt2 tok-encode | jq -c .ids' Hello 0 '[15496]'
want '  and -e goes before it' \
    'PIPEFORMER_MODEL=fairy tok-encode -e gpt2 | jq -c .ids' Hello 0 '[15496]'
want '-e and -m' 'tok-encode -e gpt2 -m gpt2' a 2 - '*only one of -e and -m*'
want '-e of a name that is none' 'tok-encode -e gpt3' a 2 - '*gpt3*-e list*'
want "-e ''" "tok-encode -e ''" a 2 - 'tok-encode: *'
want '-e of a path that is none' 'tok-encode -e ./gpt3' a 1 - \
    'tok-encode: *./gpt3*'
mkdir gpt2 only
want '-e NAME where a folder has that name' \
    'tok-encode -e gpt2 | jq -c .ids' Hello 0 '[15496]'
rmdir gpt2

# --- Encodings from files.
vocab=$PF_SOURCE/vocab
want '-e of a directory' "tok-encode -e '$vocab/gpt2' | jq -c .ids" Hello 0 \
    '[15496]'
cp "$vocab/bert-base-uncased/vocab.txt" lower.txt
want '-e of a vocab.txt' 'tok-encode -e lower.txt | jq -c .ids' Hello 0 \
    '[101,7592,102]'
want '-e of a file of another kind' 'tok-encode -e "$FAIRY"/merges.txt' a 1 \
    - 'tok-encode: *merges.txt*'
want '-e of one file of two' "tok-encode -e '$vocab/gpt2/vocab.json'" a 1 - \
    'tok-encode: *vocab.json*'
ranks=$vocab/cl100k_base.tiktoken
for pattern in cl100k '[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|[\s\S]'; do
    want "-e FILE.tiktoken --pattern $pattern" \
        "tok-encode -e '$ranks' --pattern '$pattern' | jq -c .ids" \
        'Hello 2024 world' 0 '[9906,220,2366,19,1917]'
done
want '  without --pattern' "tok-encode -e '$ranks'" a 2 - '*--pattern*gpt2*'
for pattern in '(a' gpt3; do
    want "  a pattern that is none: $pattern" \
        "tok-encode -e '$ranks' --pattern '$pattern'" a 2 - \
        'tok-encode: --pattern: *pattern*usage*'
done
want '  a pattern that matches too little loses nothing' \
    "tok-encode -e '$ranks' --pattern '[a-z]+' \
        | tok-decode -e '$ranks' --pattern cl100k" 'Hello, World  2024!' 0 \
    'Hello, World  2024!'
want '  a pattern that takes for ever' \
    "tok-encode -e '$ranks' --pattern '(a+)+b|[\\s\\S]'" \
    aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 1 - \
    'tok-encode: <stdin>:1: *limit*'
want '--pattern with a name' 'tok-encode -e gpt2 --pattern gpt2' a 2 - \
    '*--pattern*FILE.tiktoken*'
want '--pattern with a model' 'tok-encode --pattern gpt2' a 2 - '*--pattern*'
want 'no such .tiktoken' 'tok-encode -e no.tiktoken --pattern gpt2' a 1 - \
    'tok-encode: *no.tiktoken*'
printf 'YQ== 0\nYg= 1\n' >bad.tiktoken
want 'a .tiktoken that is broken' \
    'tok-encode -e bad.tiktoken --pattern gpt2' a 1 - \
    'tok-encode: bad.tiktoken: line 2 *'
printf 'YQ== 0\nYg== 1\nYWI= 2\n' >ab.tiktoken
want 'a byte that has no token' \
    'tok-encode -e ab.tiktoken --pattern gpt2 --keep-going -c' 'abab
abc
b' 1 '2
1' 'tok-encode: <stdin>:2: *0x63*'
echo '{"<|x|>": 7, "a,b": 9}' >special.json
want '--special-tokens' "tok-encode -e ab.tiktoken --pattern gpt2 -t \
    --special-tokens special.json --special all" 'ab<|x|>ba,b' 0 \
    '{"seq":0,"tokens":["ab","<|x|>","b","a,b"],"ids":[2,7,1,9]}'
want '  and --special NAME' "tok-encode -e ab.tiktoken --pattern gpt2 -c \
    --special-tokens special.json --special '<|x|>'" 'ab<|x|>ab' 0 3
for bad in '{"<|x|>": "a"}' '[1]' '{"": 7}' '{"<|x|>": -1}' \
    '{"<|x|>": 1048576}' '{"<|x|>": 0}' '{"<|x|>": 7' ''; do
    printf '%s' "$bad" >bad.json
    want "--special-tokens: $bad" "tok-encode -e ab.tiktoken --pattern gpt2 \
        --special-tokens bad.json" a 1 - 'tok-encode: *'
done
want '--special-tokens without such a file' \
    'tok-encode -e gpt2 --special-tokens special.json' a 2 - \
    '*--special-tokens*'
want 'no such --special-tokens' "tok-encode -e ab.tiktoken --pattern gpt2 \
    --special-tokens no.json" a 1 - 'tok-encode: *no.json*'

# --- Do they fit?
want '--fits: all do' 'tok-encode -e gpt2 -n 3 --fits' 'a b c

a' 0 ''
want '--fits: one does not' 'tok-encode -e gpt2 -n 2 --fits' 'a
a b c
a' 1 ''
want '--fits: what is around counts' \
    'tok-encode -e bert-base-uncased -n 4 --fits' 'a b' 0 ''
want '  one more' 'tok-encode -e bert-base-uncased -n 4 --fits' 'a b c' 1 ''
want '  without it' \
    'tok-encode -e bert-base-uncased --no-add-special -n 3 --fits' 'a b c' 0 ''
want '--fits: trouble is 2' 'tok-encode -e gpt2 -n 2 --fits /no/file' '' 2 '' \
    'tok-encode: /no/file: *'
want '--fits -r' 'tok-encode -e gpt2 -n 2 --fits -r' '{"text":"a b"}
{"text":"a b c"}' 1 ''
want '--fits -r: trouble' 'tok-encode -e gpt2 -n 2 --fits -r' '{"txt":"a"}' \
    2 '' 'tok-encode: <stdin>:1: *no text*'
want '--fits -r: pairs' 'tok-encode -e bert-base-uncased -n 6 --fits -r' \
    '{"text":"a b","text_pair":"c"}' 0 ''
want '--fits: nothing fits' 'tok-encode -e gpt2 -n 0 --fits' '' 0 ''
want '--fits without -n' 'tok-encode -e gpt2 --fits' a 2 - '*--fits*-n*'
want '--fits and -c' 'tok-encode -e gpt2 --fits -n 3 -c' a 2 - '*only one of*'
want '--fits ends when it knows' \
    'yes a b c d | tok-encode -e gpt2 -n 3 --fits' '' 1 ''
want '  also within a text' \
    'yes a b c d | tok-encode -e gpt2 -n 300 --fits -s' '' 1 ''

# --- Pieces.
want '--chunk' 'tok-encode -e gpt2 --chunk 3' 'a b c d e f g
' 0 '{"seq":"0.0","overlap":0,"ids":[64,275,269]}
{"seq":"0.1","overlap":0,"ids":[288,304,277]}
{"seq":"0.2","overlap":0,"ids":[308]}'
want '--chunk N:OVERLAP' 'tok-encode -e gpt2 --chunk 3:2' 'a b c d e
' 0 '{"seq":"0.0","overlap":0,"ids":[64,275,269]}
{"seq":"0.1","overlap":2,"ids":[275,269,288]}
{"seq":"0.2","overlap":2,"ids":[269,288,304]}'
want '--chunk: as long as the text, or empty' 'tok-encode -e gpt2 --chunk 3' \
    'a b c

' 0 '{"seq":"0.0","overlap":0,"ids":[64,275,269]}
{"seq":"1.0","overlap":0,"ids":[]}'
json '--chunk: each piece has what is around a text' \
    'tok-encode -e bert-base-uncased --chunk 4:1 -to' 'a b c' \
    'map(.tokens) == [["[CLS]", "a", "b", "[SEP]"],
            ["[CLS]", "b", "c", "[SEP]"]]
        and .[1].offsets == [[0, 0], [2, 3], [4, 5], [0, 0]]
        and .[1].overlap == 1'
json '--chunk -r: the seq of a record, and its other fields' \
    'tok-encode -e gpt2 -r --chunk 2' '{"seq":"x y","text":"a b c","k":1.50}
{"seq":-7,"text":"a b c"}
{"text":"a b c"}
{"seq":"","text":"a"}' 'map(.seq) == ["x y.0", "x y.1", "-7.0", "-7.1", "2.0",
        "2.1", ".0"] and .[1].k == 1.5 and (.[1] | has("text") | not)'
want '--chunk -r: no pairs' 'tok-encode -e bert-base-uncased -r --chunk 9' \
    '{"text":"a","text_pair":"b"}' 1 - 'tok-encode: <stdin>:1: *text_pair*'
want '--chunk -r: seq of another kind' 'tok-encode -e gpt2 -r --chunk 9' \
    '{"text":"a","seq":[1]}' 1 - 'tok-encode: <stdin>:1: seq: *'
# Cut where a character ends, as long as one has room; nothing is lost.
cat >pieces.py <<'END'
import json
import sys
text, n, overlap = sys.argv[1].encode(), int(sys.argv[2]), int(sys.argv[3])
end = 0
for line in sys.stdin:
    r = json.loads(line)
    spans = r["offsets"]
    assert 1 <= len(r["ids"]) <= n, r
    for at in spans[0][0], spans[-1][1]:
        text[:at].decode(), text[at:].decode()
    assert spans[0][0] <= end < spans[-1][1], (r, end)
    assert all(a[1] == b[0] for a, b in zip(spans, spans[1:])), r
    # What lies before the end of the last piece is the overlap.
    assert sum(a[0] < end for a in spans) == r["overlap"], (r, end)
    end = spans[-1][1]
assert end == len(text), end
END
sample='日本語の文🦊🦊 é한국어🦊 naïve ＡＢ中文🦊.'
for chunk in 3:0 3:1 4:0 4:2 5:3 7:5 16:1 400:0; do
    for name in gpt2 cl100k_base o200k_base; do
        run "tok-encode -e $name --chunk $chunk -o" "$sample"
        check "$name --chunk $chunk: at characters, nothing lost" \
            "python3 pieces.py '$sample' ${chunk%:*} ${chunk#*:} <out"
    done
done
for chunk in 0 -1 x '' : 3: :3 3:x 3:-1 3:3 3:4 2:0:1; do
    want "--chunk '$chunk'" "tok-encode -e gpt2 --chunk '$chunk'" a 2 - \
        'tok-encode: --chunk*'
done
for chunk in 1 2 3:1 4:2; do
    want "--chunk $chunk with two ids around" \
        "tok-encode -e bert-base-uncased --chunk $chunk" a 2 - \
        'tok-encode: --chunk*'
done
want '--chunk and -n' 'tok-encode -e gpt2 --chunk 3 -n 3' a 2 - '*only one of*'
want '--chunk and -c' 'tok-encode -e gpt2 --chunk 3 -c' a 2 - '*only one of*'

# --- In color.  A token has the color of its place; [0m ends it.
want '--color' "tok-encode -e gpt2 --color | tr '\\033' '@'" 'a b
' 0 '@[38;5;16;48;5;153ma@[0m@[38;5;16;48;5;223m b@[0m'
cat >color.py <<'END'
import re
import sys
text = sys.stdin.buffer.read().decode("utf-8")
color = False
for part in re.findall("\033\\[38;5;16;48;5;[0-9]+m|\033\\[0m|[^\033]+|\033",
                       text):
    if part[0] == "\033":
        assert len(part) > 1, "an escape of the text's own"
        assert part == "\033[0m" or not color, "a color within one"
        color = part != "\033[0m"
        continue
    for c in part:
        assert c in "\n\t" or not (ord(c) < 32 or 127 <= ord(c) < 160), \
            ascii(c)
        assert not 0x202a <= ord(c) <= 0x202e and \
            not 0x2066 <= ord(c) <= 0x2069, ascii(c)
        assert c != "\n" or not color, "a newline within a color"
assert not color and text.endswith("\n")
END
python3 -c '
import sys
text = "".join(map(chr, range(1, 0x300))) + "\u202e\u2066\u2028 x\x9b31m \x92"
sys.stdout.buffer.write(text.encode() + b"\xff\x9b\0")' >signs
for name in gpt2 cl100k_base o200k_base bert-base-uncased fairy; do
    for how in '' -s -0 '-s --special all'; do
        check "$name --color $how: what might harm a terminal is spelled out" \
            "tok-encode -m $name --color $how signs | python3 color.py"
    done
done
want '--color and -t' 'tok-encode --color -t' a 2 - '*only one of*'

# --- BERT.
bert='tok-encode -e bert-base-uncased'
json 'a pair' "$bert -r -to" '{"text":"a b","text_pair":"c"}' \
    '.[0].tokens == ["[CLS]", "a", "b", "[SEP]", "c", "[SEP]"]
        and .[0].segments == [0, 0, 0, 0, 1, 1]
        and .[0].offsets == [[0,0], [0,1], [2,3], [0,0], [0,1], [0,0]]
        and (.[0] | has("text_pair") | not)'
json 'a pair, --keep' "$bert -r --keep text_pair" \
    '{"text":"a b","text_pair":"c"}' '.[0].text_pair == "c"'
json 'an empty pair' "$bert -r" '{"text":"","text_pair":""}' \
    '.[0].ids == [101, 102, 102] and .[0].segments == [0, 0, 1]'
json 'a pair, and then one of its texts' \
    "$bert -r -to --keep text | $bert -r" \
    '{"text":"who came","text_pair":"the wolf"}' \
    '.[0] == { seq: 0, ids: [101, 2040, 2234, 102] }'
json 'a pair without what is around' "$bert -r --no-add-special" \
    '{"text":"a","text_pair":"b"}' \
    '.[0].ids == [1037, 1038] and .[0].segments == [0, 1]'
# By HuggingFace's rule longest_first: the longer text is cut to the shorter,
# then both; of an odd rest the second has one more, or the longer.
while read -r n left right; do
    left=$(echo "$left" | tr _ ' ') right=$(echo "$right" | tr _ ' ')
    want "a pair of 5 and 2, -n $n" "$bert -r -n $n -t | jq -c '[.cut,
        (.tokens | join(\" \"))]'" \
        '{"text":"a b c d e","text_pair":"x y"}' 0 \
        "[$((10 - n)),\"[CLS] ${left:+$left }[SEP] ${right:+$right }[SEP]\"]"
    want "  the other way around" "$bert -r -n $n -t | jq -c '[.cut,
        (.tokens | join(\" \"))]'" \
        '{"text_pair":"a b c d e","text":"x y"}' 0 \
        "[$((10 - n)),\"[CLS] ${right:+$right }[SEP] ${left:+$left }[SEP]\"]"
done <<END
10 a_b_c_d_e x_y
9 a_b_c_d x_y
8 a_b_c x_y
7 a_b x_y
6 a_b x
5 a x
4 a
3
END
want 'text_pair of another kind' "$bert -r" '{"text":"a","text_pair":7}' 1 - \
    'tok-encode: <stdin>:1: text_pair: *'
for n in 2 3 4; do
    json "-n $n keeps [SEP]" "$bert -n $n" 'a b c d' ".[0].ids[0] == 101
        and .[0].ids[-1] == 102 and (.[0].ids | length) == $n
        and .[0].cut == $((6 - n))"
    want "  also with -c" "$bert -n $n -c" 'a b c d' 0 $n
    want "  and --raw" "$bert -n $n --raw u16 | od -An -v -tu2 | tr -s ' '" \
        'a b c d' 0 \
        " 101$(echo ' 1037 1038' | cut -d ' ' -f "1-$((n - 1))") 102"
done
json '-n 1, -n 0: not even that' "$bert -n 1; $bert -n 0 f" a \
    '.[0].ids == [101] and .[0].cut == 2 and .[1].ids == []'
json 'offsets: accents, CJK, punctuation, what is unknown' "$bert -to" \
    'Déjà 東京! zz☃ x' '.[0].tokens == ["[CLS]", "de", "##ja", "東", "京",
        "!", "[UNK]", "x", "[SEP]"] and .[0].offsets == [[0,0], [0,3], [3,6],
        [7,10], [10,13], [13,14], [15,20], [21,22], [0,0]]'
json 'offsets: characters that go belong to nobody' \
    "printf 'a\\303\\251\\314\\201 \\302\\255b\\000c' | $bert -s -to" '' \
    '.[0].tokens == ["[CLS]", "ae", "bc", "[SEP]"]
        and .[0].offsets[1][0] == 0 and .[0].offsets[1][1] >= 3
        and .[0].offsets[2] == [8, 11]'
want 'tokens, as a list' "$bert | tok-decode -e bert-base-uncased -t \
    | cut -f 2 | tr '\\n' ' '" 'I like Green Apples' 0 \
    '[CLS] i like green apples [SEP] '
want 'there is no <|endoftext|>' "$bert --raw u16 --eot" a 2 - '*--eot*'

# --- Special tokens.
want '--special NAME,NAME --raw' "tok-encode -e cl100k_base --raw u32 \
    --special '<|endoftext|>,<|fim_middle|>' | od -An -v -tu4 | xargs" \
    'a<|endoftext|><|fim_prefix|><|fim_middle|>' 0 \
    '64 100257 27 91 69 318 14301 91 29 100259'
want '--eot' "tok-encode -e o200k_base --raw u32 --eot -0 | od -An -v -tu4 \
    | tr -s ' '" 'a' 0 ' 64 199999'
want '--raw u16: too many ids' 'tok-encode -e cl100k_base --raw u16' a 2 - \
    '*100277*u32*'
want "--special ''" "tok-encode -e gpt2 --special ''" a 2 - '*--special*'
json '--special [MASK]' "$bert --special '[MASK]' -t" 'a [MASK] [SEP]' \
    '.[0].tokens == ["[CLS]", "a", "[MASK]", "[", "sep", "]", "[SEP]"]'
json 'a name does not bring another of the same id' \
    "tok-encode -e o200k_harmony --special '<|endofprompt|>'" \
    '<|endofprompt|><|reserved_200018|>' \
    '.[0].ids | .[0] == 200018 and (.[1:] | index(200018)) == null'

# --- Tokenizers of characters: Llama's.
tiny=$SHARED/models/stories260K
if [ ! -e "$tiny/tokenizer.json" ]; then
    skip 'a tokenizer.json of Llama' "no $tiny"
else
    json 'Llama: offsets' "tok-encode -e '$tiny' -to" 'Once upon  a é🦊' \
        '.[0].tokens[:3] == ["<s>", "▁Once", "▁upon"]
            and .[0].offsets[:3] == [[0,0], [0,4], [4,9]]
            and .[0].offsets[-1] == [15,19] and .[0].offsets[-4] == [15,19]'
    json 'Llama: <s> before each piece, cut at characters' \
        "tok-encode -e '$tiny' --chunk 6 -t" 'Once 🦊🦊 upon' \
        'all(.tokens[0] == "<s>") and all(.tokens[1] | test("<0x[9A]") | not)'
    want 'Llama: there and back' \
        "tok-encode -e '$tiny' --no-add-special | tok-decode -e '$tiny'" \
        ' Once  upon 🦊	é' 0 ' Once  upon 🦊	é'
    json 'Llama: --special' "tok-encode -e '$tiny' -t --special '</s>'" \
        'a<s></s>' '.[0].tokens | .[-1] == "</s>" and .[2] != "<s>"'
    json 'Llama: -n cuts at the end' "tok-encode -e '$tiny' -n 3" \
        'Once upon a time' '.[0].ids == [1, 403, 407] and .[0].cut == 2'
fi

# --- Records of all kinds, with marks and mistakes in between.
cat >mixed <<'END'
{"text":"a"}
{"seq":"q","pos":3,"done":"eos"}
{"text":5}
{"text":"b","seq":1}
{"text":"c","text_pair":"d"}
{"error":"up: something"}
{"text":"e","text_pair":7}
not json
{"text":"f","k":[1,2]}
{"notext":1}
{"done":"input"}
{"text":"h"}
END
# Enough of them that several threads have a share.
python3 - <<'END'
import json
lines = open("mixed").read()
with open("many", "w") as f:
    for i in range(40):
        f.write(lines + json.dumps({"text": "the cat %d " % i * 3000}) + "\n")
END
for options in '' '-c' '--raw u32' '-t' '--chunk 500:9' '--end' '-c --total'; do
    run "tok-encode -e gpt2 -r --keep-going --threads 1 $options many"
    mv out want; mv err want.err; was=$status
    for threads in 2 5; do
        run "tok-encode -e gpt2 -r --keep-going --threads $threads $options \
            many"
        is "mixed records $options, --threads $threads: the same output" \
            "$status $(cksum <out) $(cksum <err)" \
            "1 $(cksum <want) $(cksum <want.err)"
    done
done
# Lines for many shares of several threads, some of which fail: Z is no token.
python3 - <<'END'
import base64
with open("letters.tiktoken", "w") as f:
    for i, c in enumerate(b"abcdefghijklmnopqrstuvwxyz \n"):
        f.write("%s %d\n" % (base64.b64encode(bytes([c])).decode(), i))
with open("lines", "w") as f:
    for i in range(90000):
        f.write("the cat %s sat%s\n" % (chr(97 + i % 26) * (i % 31),
            " Z" if i % 23003 == 23000 else ""))
END
for options in '' '--keep-going' '--keep-going -c' '-c' '--keep-going -t' \
    '--keep-going -c --total' '--keep-going --raw u16' '--fits -n 40' \
    '--fits -n 43 --keep-going'; do
    run "tok-encode -e letters.tiktoken --pattern gpt2 --threads 1 $options \
        lines lines"
    mv out want; mv err want.err; was=$status
    for threads in 2 5; do
        run "tok-encode -e letters.tiktoken --pattern gpt2 --threads $threads \
            $options lines lines"
        is "lines that fail $options, --threads $threads: the same output" \
            "$status $(cksum <out) $(cksum <err)" \
            "$was $(cksum <want) $(cksum <want.err)"
    done
done
# Lines of all sizes: what is read at once has many, one, or the middle of one.
python3 - <<'END'
import random
r = random.Random(7)
with open("sizes", "w") as f:
    for i in range(160):
        n = int(2 ** r.uniform(0, 18.5))
        f.write("".join(r.choice(("cat ", "dogs ", "a ")) for k in range(n // 4))
                + ("Z" if i % 61 == 60 else "") + "\n" * (1 + i % 2))
    f.write("no end")
END
for options in '' '--keep-going' '--keep-going --raw u16'; do
    run "tok-encode -e letters.tiktoken --pattern gpt2 --threads 1 $options \
        <sizes"
    mv out want; mv err want.err; was=$status
    for threads in 2 3; do
        for from in 'cat sizes' 'dd bs=9999 if=sizes status=none'; do
            run "$from | tok-encode -e letters.tiktoken --pattern gpt2 \
                --threads $threads $options"
            is "lines of all sizes $options, $from, --threads $threads" \
                "$status $(cksum <out) $(cksum <err)" \
                "$was $(cksum <want) $(cksum <want.err)"
        done
    done
done
# What was made is not kept back until there is more: else no one goes on.
mkfifo go
run '{ seq 200000; read -r x <go; seq 3; } \
    | timeout 20 tok-encode -e gpt2 --threads 2 -c \
    | { head -n 200000 | wc -l; echo >go; wc -l; }'
is 'all is written before more is waited for' "$status $(tr -d ' ' <out)" \
    '0 200000
3'
# Whichever thread writes, no one reading is told by the signal.
run 'seq 300000 >many; for i in 1 2 3 4 5 6 7 8 9; do
    { tok-encode -e gpt2 --threads 4 many; echo $? >>was; } | head -n $i$i$i$i
    done >/dev/null; sort -u was'
is 'a reader that goes' "$status $(cat out)$(cat err)" '0 141'
want 'what becomes of each' 'tok-encode -e gpt2 -r --keep-going mixed \
    2>/dev/null' '' 1 '{"seq":0,"ids":[64]}
{"seq":"q","pos":3,"done":"eos"}
{"error":"tok-encode: mixed:3: text: JSON has '"'5'"' where a string should be"}
{"seq":1,"ids":[65]}
{"error":"tok-encode: mixed:5: text_pair: this tokenizer encodes single texts"}
{"error":"up: something"}
{"error":"tok-encode: mixed:7: text_pair: JSON has '"'7'"' where a string should be"}
{"error":"tok-encode: mixed:8: a record is a JSON object on one line, or safetensors; this is neither"}
{"seq":5,"k":[1,2],"ids":[69]}
{"error":"tok-encode: mixed:10: the record has no text"}
{"done":"input"}
{"seq":7,"ids":[71]}'
want 'without --keep-going the first ends it' 'tok-encode -e gpt2 -r -c mixed' \
    '' 1 1 'tok-encode: mixed:3: *'
want '  and an error record, silently' 'tok-encode -e gpt2 -r' \
    '{"text":"a"}
{"error":"up: x"}
{"text":"b"}' 1 '{"seq":0,"ids":[64]}
{"error":"up: x"}'
# A text that fails after a mebibyte of it was worked on, or at once.
python3 - <<'END'
import base64
tokens = [bytes([b]) for b in range(256)] + [b" a", b"aa", b"ab"]
for name, missing in ("all", None), ("noz", b"z"):
    with open(name + ".tiktoken", "wb") as f:
        for i, t in enumerate(tokens):
            if t != missing:
                f.write(base64.b64encode(t) + b" %d\n" % i)
long = b" a" * 900000
with open("bad", "wb") as f:
    f.write(long + b"z" + long + b"\n" + long + b"\n a\n")
END
for out in -c '--raw u32'; do
    noz="tok-encode -e noz.tiktoken --pattern gpt2 --keep-going $out"
    want "$out: a long text that fails leaves nothing" \
        "$noz bad | if [ '$out' = -c ]; then cat; else wc -c; fi" '' 0 \
        "$(case $out in -c) printf '900000\n1' ;; *) echo 3600004 ;; esac)" \
        'tok-encode: bad:1: *0x7a*'
    check "  however it comes" "$noz bad >want 2>err; [ \$? = 1 ]
        python3 '$PY' drip 9999 <bad | $noz >got 2>err
        cmp want got && grep -q '<stdin>:1:.*0x7a' err"
done

# --- Input without end, in memory that follows the longest piece.
if [ $slow = 1 ]; then
    skip 'endless input' 'the sanitizer needs all memory'
else
    mib=40
    # endless NAME COUNT TEXT OPTIONS: TEXT again and again
    endless() {
        want "$1" "ulimit -v 160000; python3 -c '
import os
try:
    s = (b\"\"\"$3\"\"\" * 10000)
    for i in range($mib * (1 << 20) // len(s)):
        os.write(1, s)
except BrokenPipeError: pass' | tok-encode --threads 1 $4" '' 0 "$2"
    }
    # ids TEXT N: N ids for each TEXT
    ids() {
        printf %s $(($2 * ($mib * 1048576 / ($1 * 10000)) * 10000))
    }
    endless 'words, gpt2 -c' "$(ids 4 2)" ' a b' '-e gpt2 -c'
    endless 'Chinese, cl100k_base -c' "$(ids 6 2)" '\xe4\xb8\xad\xe3\x80\x82' \
        '-e cl100k_base -c'
    endless '  with special tokens' "$(ids 6 2)" '\xe4\xb8\xad\xe3\x80\x82' \
        '-e cl100k_base -c --special all'
    endless 'digits, o200k_base --raw' "$(($(ids 3 1) * 4))" 123 \
        '-e o200k_base --raw u32 | wc -c'
    endless 'words, bert-base-uncased -c' "$(($(ids 4 2) + 2))" ' a b' \
        '-e bert-base-uncased -s -c'
    endless 'Chinese, bert-base-uncased -c' "$(($(ids 6 2) + 2))" \
        '\xe4\xb8\xad\xe3\x80\x82' '-e bert-base-uncased -s -c'
    endless 'a pattern of PCRE2, -c' "$(ids 3 2)" 'aba' \
        '-e all.tiktoken --pattern "ab|[ab]" -c'
    endless 'bytes that are no UTF-8, gpt2 -c' "$(ids 3 3)" 'a\xff\x80' \
        '-e gpt2 -s -c'
    endless '-n: the rest is read, not kept' 5 ' a b' '-e gpt2 -n 5 -c'
    want 'lines without end' 'ulimit -v 160000; yes "a b c" | head -c 40M \
        | tok-encode -e gpt2 | tail -n 1 | cut -d , -f 2' '' 0 \
        '"ids":[64'
fi
finish
