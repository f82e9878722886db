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
finish
