# tok-decode: ids to text, as they come.
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

once='{"seq":0,"ids":[2412,643,258,529]}'
fox='{"seq":1,"ids":[333,1698]}'

# --- Forms of output.
want 'a text a line' tok-decode "$once
$fox" 0 'Once upon a time
The fox'
want 'nothing behind the text: -s' 'tok-decode -s; echo .' "$once
$fox" 0 'Once upon a timeThe fox.'
want 'a NUL behind it: -0' 'tok-decode -0 | tr "\0" "|"' "$once
$fox" 0 'Once upon a time|The fox|'
want 'records: -r' 'tok-decode -r' "$once
{\"seq\":1,\"ids\":[333,1698],\"tag\":1.50}" 0 \
    '{"seq":0,"text":"Once upon a time"}
{"seq":1,"tag":1.50,"text":"The fox"}'
json '-r --keep ids' 'tok-decode -r --keep ids' "$fox" \
    '.[0].ids == [333, 1698] and .[0].text == "The fox"'
want 'a token a line: -t' 'tok-decode -t' "$once" 0 '2412	Once
643	 upon
258	 a
529	 time'
want '-t: TAB, LF, backslash are escaped' 'tok-decode -t | cut -f 2' \
    "$(printf 'a\tb\\c' | tok-encode)" 0 'a
\t
b
\\
c'
want '-t: a newline' 'printf "\n" | tok-encode -s | tok-decode -t | cut -f 2' \
    '' 0 '\n'
check '-t: bytes that are no characters' \
    'printf "\360\237\246\212" | tok-encode | tok-decode -t | cut -f 2 \
        | grep -q "^<0xF0>"'
want '-t and -r' 'tok-decode -t -r' '' 2 - '*only one of*'
want '--raw and -r' 'tok-decode --raw u16 -r' '' 2 - '*--raw*'
want 'binary, and I64' 'tensor -o safetensors | tok-decode' "$fox" 0 'The fox'
check '.npy' "[ \"\$(tok-decode '$GOLDEN/p1_ids.npy')\" = 'Once upon a time' ]"

# --- Special tokens.
eot='{"ids":[333,4095,1698]}'
want 'special tokens are text' tok-decode "$eot" 0 'The<|endoftext|> fox'
want '--skip-special' 'tok-decode --skip-special' "$eot" 0 'The fox'
want 'done by eos: the last id is left out' tok-decode \
    '{"seq":0,"ids":[333,1698,4095],"done":"eos"}' 0 'The fox'
want 'done by length: it is not' tok-decode \
    '{"seq":0,"ids":[333,1698],"done":"length"}' 0 'The fox'
want 'done by eos, and no ids' tok-decode \
    '{"seq":0,"ids":[],"done":"eos"}' 0 ''
want 'marks are no text' tok-decode '{"done":"input"}
{"seq":0,"pos":7,"done":"stop"}' 0 ''

# --- Flat ids.
want '--raw u16' 'printf "\115\001\242\006" | tok-decode --raw u16' '' 0 \
    'The fox'
want '--raw u32' 'printf "\115\001\0\0\242\006\0\0" | tok-decode --raw u32' \
    '' 0 'The fox'
want '--raw, cut off' 'printf "\115\001\242" | tok-decode --raw u16' '' 1 - \
    'tok-decode: <stdin>: *inside an id*'
want '--raw, an id that is none' 'printf "\377\377" | tok-decode --raw u16' \
    '' 1 - 'tok-decode: <stdin>: *65535*'
want '--raw u24' 'tok-decode --raw u24' '' 2 - '*u24*'
want '--raw of nothing' 'tok-decode -s --raw u16' '' 0 ''

# --- Records of one sequence go on; a character may lie in several.
tok() {
    printf '%s' "$1" | tok-encode | jq -c '.ids'
}
split() { # each id as a record of its own, of sequence $2
    tok "$1" | jq -c "to_entries[] | {seq: \"$2\", pos: .key, ids: [.value]}"
}
want 'token by token: one text' tok-decode "$(split 'The fox 🦊 é' a)" 0 \
    'The fox 🦊 é'
want 'with more' tok-decode '{"seq":0,"ids":[333],"more":true}
{"seq":0,"pos":1,"ids":[1698]}' 0 'The fox'
want 'the prompt, then its continuation' tok-decode \
    '{"seq":0,"ids":[333]}
{"seq":0,"pos":1,"ids":[1698],"done":"length"}' 0 'The fox'
want 'pos 0 begins another text' tok-decode '{"seq":0,"ids":[333]}
{"seq":0,"ids":[1698]}' 0 'The
 fox'
want 'no seq' tok-decode '{"ids":[333]}
{"pos":1,"ids":[1698]}' 0 'The fox'
# Two at once: the first is live, the second comes whole when it is done.  (At
# pos 0, more says that they go on; without it a text is whole as it is.)
split 'One, two 🦊.' a | jq -c 'if .pos == 0 then .more = true else . end' >a
split 'Three, four é.' b | jq -c 'if .pos == 0 then .more = true else . end' \
    >b
paste -d '\n' a b | grep . >both
want 'two that alternate do not mix' 'tok-decode both' '' 0 'One, two 🦊.
Three, four é.'
want 'the second ends first' 'tok-decode' '{"seq":"a","pos":1,"ids":[333]}
{"seq":"b","pos":1,"ids":[64]}
{"seq":"b","pos":2,"ids":[65],"done":"stop"}
{"seq":"a","pos":2,"ids":[1698],"done":"stop"}' 0 'The fox
ab'
json '-r: the text of each record, whole characters only' \
    'tok-decode -r both' '' 'group_by(.seq)
        | map(map(.text) | add) == ["One, two 🦊.", "Three, four é."]'
# Streaming: what is whole comes at once, half a character does not.
cat >stream.sh <<'END'
mkfifo fifo
tok-decode -s <fifo >live &
exec 4>fifo
wait_for() {
    i=0
    until [ "$(cat live)" = "$1" ] || [ $i -gt 100 ]; do
        sleep 0.05
        i=$((i + 1))
    done
    cat live
    echo
}
i=0
while read -r line; do
    i=$((i + 1))
    echo "$line" >&4
    sleep 0.1
    cat live | python3 -c 'import sys; sys.stdin.buffer.read().decode("utf-8")' \
        || echo "half a character after record $i"
done <a
wait_for 'One, two 🦊.'
exec 4>&-
wait
END
want 'bytes come as they are whole, no half characters' 'sh stream.sh' '' 0 \
    'One, two 🦊.'
check 'an unfinished character comes at the end as it is' \
    "printf 'a\\360\\237' >x; tok-encode x | tok-decode -s | cmp - x"
want '-r: bytes that are no UTF-8 are U+FFFD' \
    'printf "a\377b" | tok-encode | tok-decode -r | jq -c .text' '' 0 '"a�b"'

# --- Bytes that wait (held): shown when the text goes on otherwise or ends
# otherwise, no part of it when done is "stop".
held='{"seq":"a","pos":4,"ids":[333],"held":2}
{"seq":"a","pos":5,"ids":[1698]}
{"seq":"a","pos":6,"ids":[11],"held":1}'
want 'held, and then it goes on' tok-decode "$held" 0 'The fox,'
want 'held, and then a stop' tok-decode "$held
{\"seq\":\"a\",\"pos\":7,\"ids\":[275],\"held\":4,\"done\":\"stop\"}" 0 'The fox'
want 'held, and then the end of the window' 'tok-decode -s; echo .' "$held
{\"seq\":\"a\",\"pos\":7,\"ids\":[275],\"held\":4,\"done\":\"length\"}" 0 \
    'The fox, he.'
want 'held, -0' 'tok-decode -0 | tr "\\0" "|"' "$held
{\"seq\":\"a\",\"pos\":7,\"ids\":[],\"held\":1,\"done\":\"stop\"}
{\"seq\":\"b\",\"pos\":7,\"ids\":[333]}" 0 'The fox|The|'
want 'held, several sequences' tok-decode "{\"seq\":\"z\",\"pos\":2,\"ids\":[333]}
$held
{\"seq\":\"a\",\"pos\":7,\"ids\":[275],\"held\":4,\"done\":\"stop\"}" 0 'The
The fox'
want 'held, -r: the texts put together are the text' \
    'tok-decode -r | jq -c "[.text, .held]"' "$held
{\"seq\":\"a\",\"pos\":7,\"ids\":[275],\"held\":4,\"done\":\"stop\"}" 0 '["T",null]
["he fox",null]
["",null]
["",null]'
want '-r: what may be the whole text is taken for it, but with more' \
    'tok-decode -r | jq -c .text' '{"seq":1,"ids":[34,2626,127]}
{"seq":1,"pos":3,"ids":[102]}
{"seq":2,"ids":[34,2626,127],"more":true}
{"seq":2,"pos":3,"ids":[102]}' 0 '"Caf�"
"�"
"Caf"
"é"'
# Behind the last record nothing stands that is none.
want '-r: half a character at the end of the input does not come' \
    'tok-decode -r; echo .' '{"seq":"a","pos":1,"ids":[127]}
{"seq":"b","pos":1,"ids":[2626,127]}' 0 '{"seq":"a","pos":1,"text":""}
{"seq":"b","pos":1,"text":"af"}
.'
want '  nor do bytes that are held' 'tok-decode -r; echo .' \
    '{"pos":4,"ids":[333],"held":2}' 0 '{"pos":4,"text":"T"}
.'
want '  nor any of them behind an error record' 'tok-decode -r; echo .' \
    '{"pos":4,"ids":[333,127],"held":2}
{"error":"there"}' 0 '{"pos":4,"text":"Th"}
{"error":"there"}
.'
want 'held in a record of all, -r' 'tok-decode -r' \
    '{"seq":1,"ids":[333,1698],"held":4,"done":"stop"}
{"seq":2,"ids":[333,1698],"held":4,"done":"length"}
{"seq":3,"ids":[333,1698],"held":4}' 0 \
    '{"seq":1,"done":"stop","text":"The"}
{"seq":2,"done":"length","text":"The fox"}
{"seq":3,"text":"The fox"}'
want 'held, -t: all tokens' 'tok-decode -t | cut -f 1' "$held
{\"seq\":\"a\",\"pos\":7,\"ids\":[275],\"held\":4,\"done\":\"stop\"}" 0 '333
1698
11
275'
want 'done by eos, -t: the id that ended the text, too' \
    'tok-decode -t; tok-decode -t --skip-special <twice' \
    "$(echo '{"ids":[333,4095],"done":"eos"}' | tee twice)" 0 \
    '333	The
4095	<|endoftext|>
333	The'
want 'held counts special tokens, shown or not' \
    'tok-decode --skip-special' \
    '{"seq":1,"ids":[333,4095],"held":13,"more":true}
{"seq":1,"pos":2,"ids":[11],"held":14,"done":"stop"}' 0 The
want 'more held than there is' tok-decode \
    '{"seq":1,"ids":[333],"held":999,"done":"stop"}' 0 ''
want 'held that is no number' tok-decode '{"seq":1,"ids":[333],"held":"x"}' 1 \
    '' 'tok-decode: <stdin>:1: held: *'
want 'held below 0' tok-decode '{"seq":1,"ids":[333],"held":-1}' 1 '' \
    'tok-decode: <stdin>:1: held: *-1*'

# --- Mistakes.
want 'an id that is none' tok-decode '{"ids":[4096]}' 1 '' \
    'tok-decode: <stdin>:1: *4096*'
want 'what came before it is written' tok-decode "$fox
{\"ids\":[4096]}" 1 'The fox' 'tok-decode: <stdin>:2: *4096*'
want 'no ids' tok-decode '{"seq":1}' 1 '' 'tok-decode: <stdin>:1: *no ids*'
want '--keep-going' 'tok-decode --keep-going' "$once
{\"seq\":9,\"ids\":[-1]}
$fox" 1 'Once upon a time
The fox' 'tok-decode: <stdin>:2: *'

# --- Encodings by name, and from files.
while read -r name ids; do
    want "-e $name" "tok-decode -e $name" "{\"ids\":$ids}" 0 'Hello 2024  world'
    want "-m $name" "tok-decode -m $name" "{\"ids\":$ids}" 0 'Hello 2024  world'
done <<END
gpt2 [15496,48609,220,995]
r50k_base [15496,48609,220,995]
p50k_base [15496,48609,220,995]
p50k_edit [15496,48609,220,995]
cl100k_base [9906,220,2366,19,220,1917]
o200k_base [13225,220,1323,19,220,2375]
o200k_harmony [13225,220,1323,19,220,2375]
END
want '-e list' 'tok-decode -e list | head -n 1' '' 0 'gpt2	50257	<|endoftext|>'
want '-e and -m' 'tok-decode -e gpt2 -m gpt2' '' 2 - '*only one of -e and -m*'
want '-e of a name that is none' 'tok-decode -e gpt3' '' 2 - '*gpt3*-e list*'
want '-e of a path that is none' 'tok-decode -e ./gpt3' '' 1 '' '*./gpt3*'
printf 'YQ== 0\nYg== 1\nYWI= 2\n' >ab.tiktoken
echo '{"<|x|>": 7}' >special.json
ab="tok-decode -e ab.tiktoken --pattern gpt2 --special-tokens special.json"
want '-e FILE.tiktoken' "$ab" '{"ids":[2,7,1,0]}' 0 'ab<|x|>ba'
want '  --skip-special' "$ab --skip-special" '{"ids":[2,7,1,0]}' 0 abba
want '  a pattern that is none' "$ab --pattern '('" '{"ids":[2]}' 2 '' \
    'tok-decode: --pattern: *usage*'
want '  an id in a hole' "$ab" '{"ids":[2,5]}' 1 '' 'tok-decode: <stdin>:1: *5*'
want 'ids in holes, and behind the last' 'for id in 100256 100261 100277; do
    echo "{\"ids\":[$id]}" | tok-decode -e cl100k_base; done' '' 1 '' \
    '*100256*100261*100277*'
want 'two names of an id: the first' 'tok-decode -e o200k_harmony' \
    '{"ids":[200018,200000,201087]}' 0 \
    '<|endofprompt|><|reserved_200000|><|reserved_201087|>'
for name in p50k_base cl100k_base o200k_base; do
    want "$name: --skip-special" "tok-encode -e $name --special all \
        | tok-decode -e $name --skip-special" '<|endoftext|>a<|endoftext|> b' \
        0 'a b'
done
want '-t: the tokens of GPT-2' 'tok-encode -e gpt2 | tok-decode -e gpt2 -t' \
    'I am going to do some' 0 '40	I
716	 am
1016	 going
284	 to
466	 do
617	 some'
# More ids than are worked on at once, of all kinds of bytes.
python3 -c '
import random
random.seed(8)
open("bytes", "wb").write(random.randbytes(50000))
open("chars", "wb").write("".join(chr(random.choice((
    random.randint(0, 0x7f), random.randint(0x80, 0xd7ff),
    random.randint(0x10000, 0x10ffff)))) for _ in range(30000)).encode())'
for name in gpt2 p50k_edit cl100k_base o200k_harmony; do
    for text in bytes chars; do
        for out in '' '--raw u32'; do
            tok-encode -e $name -s $out $text \
                | tok-decode -e $name -s $out >got
            same "$name $out: $text come back" got $text
        done
    done
done

# --- NUL, nothing, or a newline behind a text; files; nothing at all.
printf '\100\0\0\0' >a.raw
printf '\101\0\0\0' >b.raw
want '--raw: a file is a text' 'tok-decode -e gpt2 --raw u32 a.raw b.raw' '' \
    0 'a
b'
want '--raw -s' 'tok-decode -e gpt2 --raw u32 -s a.raw b.raw; echo .' '' 0 ab.
want '--raw -0' 'tok-decode -e gpt2 --raw u32 -0 a.raw - b.raw <a.raw \
    | tr "\\0" "|"' '' 0 'a|a|b|'
want '--raw -t' 'tok-decode -e gpt2 --raw u32 -t a.raw b.raw' '' 0 '64	a
65	b'
want '--raw: no such file' 'tok-decode -e gpt2 --raw u32 -s a.raw no b.raw' \
    '' 1 a 'tok-decode: no: *'
want '  --keep-going' \
    'tok-decode -e gpt2 --raw u32 -s --keep-going a.raw no b.raw' '' 1 ab \
    'tok-decode: no: *'
want '--raw u16: the last id cut off, those before it are written' \
    'printf "\100\0\101\0\102" | tok-decode -e gpt2 --raw u16 -s' '' 1 ab \
    'tok-decode: <stdin>: *inside an id*'
want '--raw u32: a large id' \
    'printf "\377\377\377\377" | tok-decode -e gpt2 --raw u32' '' 1 - \
    'tok-decode: <stdin>: *4294967295*'
for how in '' -s -0 -r -t '--raw u16 -s' '--raw u32 -t'; do
    want "nothing in, nothing out: $how" "tok-decode -e gpt2 $how" '' 0 ''
done
want 'empty texts' 'tok-decode -e gpt2 -0 | tr "\\0" "|"' '{"ids":[]}
{"ids":[64]}
{"ids":[]}' 0 '|a||'
check 'a full disk' '! tok-encode -e gpt2 -s bytes \
    | tok-decode -e gpt2 -s >/dev/full'
check 'ids a byte at a time' "tok-encode -s --raw u16 -e gpt2 chars \
    | head -c 3000 | python3 '$PY' drip 1 | tok-decode -s --raw u16 -e gpt2 >g1
    tok-encode -s --raw u16 -e gpt2 chars | head -c 3000 \
    | tok-decode -s --raw u16 -e gpt2 >g2; cmp g1 g2"

# --- BERT.
bert='tok-decode -e bert-base-uncased'
hello='{"ids":[101,7592,1010,2088,999,14477,20961,102]}'
want 'BERT: words, and what is glued on' "$bert --skip-special" "$hello" 0 \
    'hello, world! unaffa'
want 'BERT: with its special tokens' "$bert" "$hello" 0 \
    '[CLS] hello, world! unaffa [SEP]'
want 'BERT: -t' "$bert -t | tail -n 3" "$hello" 0 '14477	una
20961	##ffa
102	[SEP]'
json 'BERT: -r' "$bert -r --skip-special" "$hello" \
    '.[0].text == "hello, world! unaffa"'
want 'BERT: a text in several records' "$bert --skip-special" \
    '{"seq":1,"ids":[101,14477],"more":true}
{"seq":1,"pos":2,"ids":[20961,1010],"more":true}
{"seq":1,"pos":4,"ids":[2088,102],"done":"length"}' 0 'unaffa, world'
finish
