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
finish
