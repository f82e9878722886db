# pool: hidden to one vector.  (A real model's: pipe/minilm.t.)
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

x='{"hidden":[[1,-2,0.5],[4,-8,0],[-1,-3,4]]}'
pools() {
    want "pool -j $1" "pool -j $1 | jq -c .embedding" "${3-$x}" 0 "$2"
}
pools '' '[1.3333334,-4.3333335,1.5]'
pools --mean '[1.3333334,-4.3333335,1.5]'
pools --cls '[1,-2,0.5]'
pools --last '[-1,-3,4]'
pools --max '[4,-2,4]'
pools '--max --max' '[4,-2,4]'
pools '--last --normalize' '[-0.6,-0.8]' '{"hidden":[[1,1],[-3,-4]]}'
pools '--normalize' '[0,0]' '{"hidden":[[1,-1],[-1,1]]}'
pools --mean '[7]' '{"hidden":[[7]]}'
json 'hidden goes, the rest rides along' 'pool -j' \
    '{"seq":"a","ids":[5],"tag":1.50,"layer":6,"text":"x","hidden":[[1,2]]}' \
    '.[0] | keys == ["embedding","ids","layer","seq","tag","text"]'
json '--keep hidden' 'pool -j --keep hidden' "$x" '.[0].hidden | length == 3'
is 'a number keeps its text' \
    "$(echo '{"a":1.50,"hidden":[[1]]}' | pool -j)" '{"a":1.50,"embedding":[1]}'
check 'binary out, F32 [C]' "echo '$x' | pool | tensor | grep -qx \
    'embedding F32 \[3\]'"
check 'an array from a .npy file is hidden' \
    "echo '$x' | tensor -s hidden -o npy | pool -j | jq -e '.embedding[2] == 1.5'"

# --- Parts of a sequence.
printf '%s\n' '{"seq":1,"more":true,"hidden":[[1,5]]}' \
    '{"seq":2,"more":true,"hidden":[[10,0],[20,0]]}' \
    '{"seq":1,"pos":1,"more":true,"hidden":[]}' \
    '{"seq":1,"pos":1,"more":true,"hidden":[[2,1],[3,0]]}' \
    '{"seq":3,"hidden":[[8,8]]}' '{"seq":1,"pos":3,"hidden":[[6,2]],"n":"last"}' \
    '{"seq":2,"pos":2,"hidden":[[30,3]]}' >parts
want 'parts are pooled together, where the last one stands' \
    'pool -j parts | jq -c "[.seq,.embedding,.n]"' '' 0 '[3,[8,8],null]
[1,[3,2],"last"]
[2,[20,1],null]'
want '--cls is of the first part' 'pool -j --cls parts | jq -c .embedding' '' \
    0 '[8,8]
[1,5]
[10,0]'
want '--last of the last, --max of all' \
    'pool -j --last parts | jq -c .embedding
    pool -j --max parts | jq -c .embedding' '' 0 '[8,8]
[6,2]
[30,3]
[8,8]
[6,5]
[30,3]'
check 'the same bits as in one' "python3 -c '
import json
import random
random.seed(5)
x = [[random.uniform(-9, 9) for _ in range(7)] for _ in range(400)]
print(json.dumps({\"hidden\": x}), file=open(\"whole\", \"w\"))
with open(\"cut\", \"w\") as f:
    at = 0
    while at < 400:
        n = random.randrange(1, 60)
        r = {\"hidden\": x[at:at + n], \"pos\": at}
        at += n
        if at < 400:
            r[\"more\"] = True
        print(json.dumps(r), file=f)'
    for how in mean cls last max; do
        pool --\$how --normalize whole | tensor -s embedding -o npy >a
        pool --\$how --normalize cut | tensor -s embedding -o npy >b
        cmp a b || exit 1
    done"
want 'a sequence that starts anew' 'pool -j | jq -c .embedding' \
    '{"seq":1,"more":true,"hidden":[[1]]}
{"seq":1,"hidden":[[3]]}' 0 '[3]'
want 'marks go through' 'pool -j' '{"seq":1,"more":true,"hidden":[[1]]}
{"seq":2,"pos":1,"done":"stop"}
{"seq":1,"pos":1,"hidden":[[3]]}
{"seq":1,"pos":2,"done":"stop"}
{"done":"input"}' 0 '{"seq":2,"pos":1,"done":"stop"}
{"seq":1,"pos":1,"embedding":[2]}
{"seq":1,"pos":2,"done":"stop"}
{"done":"input"}'
printf '%s\n' '{"seq":1,"more":true,"hidden":[[1]]}' \
    '{"seq":1,"pos":1,"done":"stop"}' '{"seq":2,"hidden":[[5]]}' >ends
want 'a mark within the parts of a sequence' 'pool -j ends | jq -c keys' '' 0 \
    '["error","seq"]' 'pool: ends:2: seq 1: ends within its parts: *`more`'
want 'and with --keep-going' 'pool -j --keep-going ends' '' 1 - \
    'pool: ends:2: seq 1: ends within its parts: *`more`'
is 'an error record in its place' \
    "$(jq -c '[.seq, has("error"), .embedding]' out)" '[1,true,null]
[2,false,[5]]'
want 'a record of a sequence whose rows are not there' 'pool' \
    '{"seq":1,"pos":3,"hidden":[[1]]}' 1 - \
    'pool: <stdin>:1: *position 3*0 rows are held*'
want 'a gap' 'pool' '{"seq":1,"more":true,"hidden":[[1]]}
{"seq":1,"pos":2,"hidden":[[1]]}' 1 - 'pool: <stdin>:2: *position 2*1 rows*'
want 'parts of other widths' 'pool' '{"more":true,"hidden":[[1]]}
{"pos":1,"hidden":[[1,2]]}' 1 - 'pool: <stdin>:2: *'
want 'the input ends within a sequence' 'pool -j' \
    '{"seq":1,"more":true,"hidden":[[1]]}' 1 - \
    'pool: <stdin>:1: seq 1: the input ends within 1 sequence: *`more`'
printf '%s\n' '{"seq":2,"hidden":[[1]]}' '{"seq":"b","more":true,"hidden":[[1]]}' \
    '{"seq":"a","more":true,"hidden":[[1]]}' \
    '{"seq":"b","pos":1,"more":true,"hidden":[[1]]}' >ends
want 'within two' 'pool -j ends ends' '' 1 - \
    'pool: ends:3: seq "a": the input ends within 2 sequences: *`more`'
is 'an error record with the first' "$(jq -c .seq out | tail -n 1)" '"a"'
want 'one without a name' 'pool -j' '{"more":true,"hidden":[[1]]}' 1 - \
    'pool: <stdin>:1: the input ends within 1 sequence: *`more`'
want 'after other errors, with --keep-going' 'pool -j --keep-going' \
    '{"more":true,"hidden":[[1]]}
{"seq":2,"hidden":5}' 1 - 'pool: <stdin>:2: hidden*
pool: <stdin>:1: the input ends within 1 *'
want 'nothing more is said after an error' 'pool -j' \
    '{"seq":1,"more":true,"hidden":[[1]]}
{"seq":2,"hidden":5}' 1 - 'pool: <stdin>:2: hidden*'
check 'one message' '[ "$(wc -l <err)" = 1 ]'

# --- What is wrong.
for bad in '{"hidden":[]}' '{"ids":[1]}' '{"hidden":[1,2]}' \
    '{"hidden":[[[1]]]}' '{"hidden":[[1,null]]}' '{"hidden":[[1e999]]}' \
    '{"hidden":"x"}' '{"more":1,"hidden":[[1]]}'; do
    want "$bad" pool "$bad" 1 - 'pool: <stdin>:1: *'
done
want '--keep-going' 'pool -j --keep-going | jq -c "has(\"embedding\")"' \
    '{"seq":1,"hidden":[]}
{"seq":2,"hidden":[[1]]}' 0 'false
true' 'pool: <stdin>:1: hidden: has no rows*'
for two in '--mean --cls' '--last --max' '--pooler --mean'; do
    want "$two" "pool $two" "$x" 2 - 'pool: *exclude*'
done

# --- With a model: the fingerprint is compared; --pooler needs one.
want 'another model' 'embed | attend | pool -m fairy -j | jq -c ".embedding
    | length"' '{"ids":[464,5]}' 0 160
want 'a record of another model' 'pool -m fairy' \
    '{"model":"0000000000000000","hidden":[[1]]}' 1 - 'pool: *comes from model*'
want 'without -m it does not matter' 'pool -j | jq -c .embedding' \
    '{"model":"0000000000000000","hidden":[[1]]}' 0 '[1]'
want 'no pooler' 'pool --pooler' "$x" 1 - 'pool: fairy: *no pooler*'
python3 "$PF_SOURCE/tests/small_bert.py" bert pooler
check '--pooler: tanh of a layer of the first row' "python3 -c '
from stream import *
from small_bert import *
import math
import subprocess
ids = [3, 17, 4]
stages = [[\"embed\"], [\"attend\"], [\"pool\", \"--pooler\"]]
data = json.dumps({\"ids\": ids}).encode()
outs = []
for s in stages:
    data = subprocess.run(s + [\"-m\", \"./bert\", \"-j\"], input=data,
        stdout=subprocess.PIPE, check=True).stdout
    outs.append(json.loads(data))
x = outs[1][\"hidden\"][0]
w = weights([\"pooler\"])
m, b = w[\"bert.pooler.dense.weight\"][1], w[\"bert.pooler.dense.bias\"][1]
for i in range(C):
    y = math.tanh(b[i] + sum(x[k] * m[i * C + k] for k in range(C)))
    assert abs(y - outs[2][\"embedding\"][i]) < 1e-6, (i, y)'"
finish
