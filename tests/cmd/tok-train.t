# tok-train: text to a vocabulary.
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

# --- Merges on standard output.
want 'the merges of a text' 'tok-train --alphabet seen' \
    'abab abab baba ab ba abba baab' 0 '#version: 0.2
a b
b a
Ġ ab
Ġ ba
b ab
Ġ bab
ab ab
Ġab ab
Ġab ba
Ġba ab
Ġbab a'
want 'nothing in, no merges out' tok-train '' 0 '#version: 0.2'
want '-n counts the bytes' 'tok-train -n 257' 'abab' 0 '#version: 0.2
a b'
want '-n 256: no merges' 'tok-train -n 256' abab 0 '#version: 0.2'
want '-n 3 --alphabet seen' 'tok-train -n 3 --alphabet seen' 'abab' 0 \
    '#version: 0.2
a b'
want '--min-frequency' 'tok-train --min-frequency 2' 'abab' 0 '#version: 0.2
a b'
want '--min-frequency 0 is 1' 'tok-train --min-frequency 0' 'ab' 0 \
    '#version: 0.2
a b'
want 'equal counts: the smaller ids' tok-train 'cd
ac
ab' 0 '#version: 0.2
a b
a c
c d'
want 'a piece ends with its line' 'tok-train --pattern cl100k' '!

!' 0 '#version: 0.2
! Ċ'
want 'files one after the other, - among them' \
    "printf 'ab' >f; printf 'cd' >g; tok-train f - g" 'cd
ab' 0 '#version: 0.2
a b
c d'

# --- Patterns.
want '--pattern gpt2' "tok-train --pattern gpt2 | grep -c '1 2'" 1234 0 1
want '--pattern qwen2: a digit a piece' 'tok-train --pattern qwen2' 1234 0 \
    '#version: 0.2'
want '--pattern cl100k: three digits' 'tok-train --pattern cl100k' 1234 0 \
    '#version: 0.2
1 2
12 3'
want '--pattern o200k: words begin with a capital' \
    "tok-train --pattern o200k" 'aBaBaB' 0 '#version: 0.2
B a'
want '--pattern REGEX, and what is between its matches' \
    "tok-train --pattern '[a-z]+'" 'ab--ab' 0 '#version: 0.2
a b
- -'
want '--pattern that does not compile' "tok-train --pattern '('" x 2 - \
    'tok-train: --pattern: *usage*'
want "--pattern ''" "tok-train --pattern ''" x 2 - 'tok-train: --pattern*'
want '--pattern that matches nothing: a line is a piece' \
    "tok-train --pattern 'q+' -n 258" 'a b' 0 '#version: 0.2
a Ġ
aĠ b'

# --- Counts.
want '--counts' 'tok-train --counts -n 260' '5	low
2	lower
6	newest
3	widest' 0 '#version: 0.2
e s
es t
l o
lo w'
want '--counts of uniq -c' 'sort | uniq -c | tok-train --counts -n 257' 'ab
cd
cd
' 0 '#version: 0.2
c d'
want '--counts: a piece is not cut' 'tok-train --counts' '2	a b' 0 \
    '#version: 0.2
a Ġ
aĠ b'
want '--counts: a line without one' 'tok-train --counts' '5	ab
ab
' 1 '' 'tok-train: <stdin>:2: *count*'
want '--counts: a number alone' 'tok-train --counts' '5' 1 '' \
    'tok-train: <stdin>:1: *'
want '--counts: a number too large' 'tok-train --counts' \
    '99999999999999999999	ab' 1 '' 'tok-train: <stdin>:1: *'
want '--counts --keep-going' 'tok-train --counts --keep-going' 'ab
5	cd' 1 '#version: 0.2
c d' 'tok-train: <stdin>:1: *'
want '--keep-going: other files' 'tok-train --keep-going /no/file -' 'ab' 1 \
    '#version: 0.2
a b' 'tok-train: /no/file: *'

# --- Mistakes.
for n in 0 -1 x 1.5 '' 99999999; do
    want "-n '$n'" "tok-train -n '$n'" a 2 - 'tok-train: --vocab-size: *'
done
want '-n 255' 'tok-train -n 255' a 2 - 'tok-train: --vocab-size: *256*'
want '--alphabet none' 'tok-train --alphabet none' a 2 - '*--alphabet*'
want '--min-frequency -1' 'tok-train --min-frequency -1' a 2 - '*frequency*'
want "--special ''" "tok-train --special ''" a 2 - '*--special*'
want '--special a,,b' 'tok-train --special a,,b' a 2 - '*--special*'
want "-o ''" "tok-train -o ''" a 2 - '*-o*'
want 'no room for special tokens' 'tok-train -n 257 --special "<a>,<b>"' a 1 \
    '' 'tok-train: *257*'
want 'a special token that reads as other bytes' \
    'tok-train --special é' a 1 '' 'tok-train: *é*'

# --- Files.
text=$(cat "$PF_SOURCE/README.md" "$PF_SOURCE"/man/*.1)
want '-o DIR: silent' "tok-train -n 600 --special '<|endoftext|>,<pad>' -o m" \
    "$text" 0 ''
is '  four files' "$(ls m | tr '\n' ' ')" \
    'merges.txt tokenizer.json tokenizer_config.json vocab.json '
check '  vocab.json: ids without holes, special ones first' "jq -e '
    ([.[]] | sort) == [range(600)] and .[\"<|endoftext|>\"] == 0
    and .[\"<pad>\"] == 1 and .[\"!\"] == 2 and .[\"Ġ\"] == 222' m/vocab.json"
check '  merges.txt: a merge an id, of tokens' "
    [ \"\$(head -n 1 m/merges.txt)\" = '#version: 0.2' ] &&
    sed 1d m/merges.txt | jq -R . | jq -es --slurpfile v m/vocab.json '
        length == 600 - 258 and (to_entries | all((.value | split(\" \")) as
        \$m | \$v[0][\$m | add] == .key + 258
        and \$v[0][\$m[0]] < .key + 258 and \$v[0][\$m[1]] < .key + 258))'"
check '  tokenizer.json has the same' "jq -e --slurpfile v m/vocab.json '
    .model.vocab == \$v[0] and .model.type == \"BPE\"
    and .pre_tokenizer.type == \"ByteLevel\" and .decoder.type == \"ByteLevel\"
    and (.added_tokens | map([.id, .content, .special]))
        == [[0, \"<|endoftext|>\", true], [1, \"<pad>\", true]]
    and (.model.merges | length) == 342' m/tokenizer.json &&
    jq -r '.model.merges[]' m/tokenizer.json >list &&
    sed 1d m/merges.txt | cmp - list"
check '  tokenizer_config.json' "jq -e '
    .added_tokens_decoder[\"1\"].content == \"<pad>\"
    and .eos_token == \"<|endoftext|>\"
    and .tokenizer_class == \"GPT2Tokenizer\"' m/tokenizer_config.json"
check '  without -o, the same merges' "printf '%s' \"\$(cat stdin)\" |
    tok-train -n 600 --special '<|endoftext|>,<pad>' | cmp - m/merges.txt"

printf '%s\n' "$text" >text
pipe 'cat text' 'tok-encode -m ./m' 'tok-decode -m ./m' >got
all_zero 'what it learnt encodes the text'
same '  and decodes to it' got text
check '  in fewer tokens than bytes' \
    '[ $(tok-encode -m ./m -c --total text) -lt $(($(wc -c <text) / 2)) ]'
json '  special tokens are recognised' 'tok-encode -m ./m --special all' \
    'a<|endoftext|><pad>' '.[0].ids[-2:] == [0, 1]'
printf 'x\377\200\nzero \000 byte\n' >bytes
pipe 'cat bytes' 'tok-encode -m ./m' 'tok-decode -m ./m' >got
all_zero 'any byte can be encoded'
same '  and comes back' got bytes

cp -R m before
want 'written over, if all is well' 'tok-train -n 300 -o m f' '' 0 ''
check '  it is another one' '! cmp -s m/vocab.json before/vocab.json'
want 'a failure' 'tok-train -n 300 -o before /no/file' '' 1 '' '*/no/file*'
check '  leaves what is there' 'cmp before/vocab.json before/vocab.json &&
    [ $(jq length before/vocab.json) = 600 ] && [ $(ls before | wc -l) = 4 ]'
want 'a failure leaves no directory' 'tok-train -o none /no/file' '' 1 '' '*'
check '  there is none' '[ ! -e none ]'
want '-o below what is not there' 'tok-train -o no/dir f' '' 1 '' \
    'tok-train: no/dir: *'
want '-o of a file' 'tok-train -o f f' '' 1 '' 'tok-train: f: *directory*'
mkdir full full/vocab.json
want 'a file that cannot get its name' 'tok-train -n 300 -o full f' '' 1 '' \
    'tok-train: full: *'
check '  no other files are left' '[ -z "$(ls full/*.tmp 2>/dev/null)" ]'
want 'with a pattern of its own' \
    "tok-train -n 300 --pattern '[a-z]+' -o r text" '' 0 ''
check '  it is in tokenizer.json' "jq -e '
    .pre_tokenizer.pretokenizers[0].pattern.Regex == \"[a-z]+\"
    and .pre_tokenizer.pretokenizers[1].use_regex == false' r/tokenizer.json"

# --- The same for any number of threads, and any kind of input.
[ $slow = 1 ] && copies=1 || copies=8
i=0
while [ $i -lt $copies ]; do
    sed "s/a/$i/" text
    i=$((i + 1))
done >many
tok-train -n 1000 --threads 1 many >one
for t in 2 3 7; do
    tok-train -n 1000 --threads $t many >got
    same "--threads $t" got one
done
cat many | tok-train -n 1000 >got
same 'from a pipe' got one
{ sed 100q many; sleep 0.1; sed 1,100d many; } | tok-train -n 1000 >got
same 'from a slow pipe' got one

# --- Messages.
want '-v tells what it does' 'tok-train -v -n 300 text' '' 0 - \
    '*pieces*300 of 300 tokens*'
want '-q is silent' 'tok-train -q -v -n 300 text' '' 0 -
want '--stats' 'tok-train --stats -n 257' 'ab ab
ab
' 0 - 'tok-train: 2 records, 5 tokens, 9 bytes in, * out, * s'
finish
