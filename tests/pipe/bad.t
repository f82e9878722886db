# Bad input: each gets a message with its place, an error record, status 1; and
# the filters behind the one that failed pass it on, silently, with 1.
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

# bad NAME FILTER INPUT PATTERN: INPUT is a file, or a record where it begins
# with {; PATTERN is what has to be said behind "FILTER: "
bad() {
    case $3 in
    /*) cat "$3" >bad.in ;;
    *) printf '%s\n' "$3" >bad.in ;;
    esac
    case $2 in
    tensor*) filter="$2 -o json" ;;
    tok-decode*) filter="$2 -r" ;;
    *) filter="$2 -j" ;;
    esac
    timeout 60 sh -c "$filter" <bad.in >bad.out 2>bad.err
    bad_status=$?
    said=$(cat bad.err) name=${2%% *} wrong=
    [ $bad_status = 1 ] || wrong="status $bad_status, expected 1"
    case $said in "$name: <stdin>:"$4) ;; *) wrong="$wrong; message" ;; esac
    tail -n 1 bad.out | jq -e --arg m "$said" '.error == $m' >/dev/null 2>&1 \
        || wrong="$wrong; error record"
    if [ -z "$wrong" ]; then ok "$2: $1"; return; fi
    {
        echo " wrong: $wrong"
        echo " input: $(head -c 300 bad.in | tr -d '\0')"
        echo "expected message: $name: <stdin>:$4"
        echo "     got message: $said"
        echo "       last line: $(tail -n 1 bad.out)"
    } >why
    not_ok "$2: $1" <why
}

# --- NDJSON.
for f in embed attend unembed sample tok-decode tensor 'tok-encode -r'; do
    bad 'no JSON' "$f" 'once upon a time' '1: *'
    bad 'an array' "$f" '[1,2]' '1: *'
    bad 'a number' "$f" '17' '1: *'
    bad 'cut off' "$f" '{"ids":[1,2' '1: *'
    bad 'cut off in a string' "$f" '{"seq":"a' '1: *'
    bad 'two records on a line' "$f" '{"ids":[1]}{"ids":[2]}' '1: *'
    bad 'junk behind the record' "$f" '{"ids":[1]} x' '1: *'
    bad 'a comma too many' "$f" '{"ids":[1],}' '1: *'
    bad 'a name without quotes' "$f" '{ids:[1]}' '1: *'
    bad 'single quotes' "$f" "{'ids':[1]}" '1: *'
    bad 'NaN by name' "$f" '{"x":NaN}' '1: *'
    bad 'a number with a leading zero' "$f" '{"x":01}' '1: *'
    bad 'a number with a plus' "$f" '{"x":+1}' '1: *'
    bad 'a number without digits behind the point' "$f" '{"x":1.}' '1: *'
    bad 'a hexadecimal number' "$f" '{"x":0x10}' '1: *'
    bad 'a comment' "$f" '{"x":1 /* y */}' '1: *'
    bad 'a field twice' "$f" '{"x":1,"x":2}' '1: *"x"*twice*'
    bad 'a tensor twice' "$f" '{"ids":[1],"ids":[2]}' '1: *"ids"*twice*'
    bad 'a field twice, spelled differently' "$f" \
        '{"x":1,"\u0078":2}' '1: *"x"*twice*'
    bad 'a bare control character' "$f" "$(printf '{"x":"a\001b"}')" '1: *'
    bad 'a bad escape' "$f" '{"x":"\x41"}' '1: *escape*'
    bad 'invalid UTF-8' "$f" "$(printf '{"x":"\377"}')" '1: *UTF-8*'
    bad 'overlong UTF-8' "$f" "$(printf '{"x":"\300\200"}')" '1: *UTF-8*'
    bad 'a surrogate in UTF-8' "$f" "$(printf '{"x":"\355\240\200"}')" \
        '1: *UTF-8*'
    bad 'half a UTF-8 character at the end' "$f" \
        "$(printf '{"x":"\303"}')" '1: *UTF-8*'
    bad 'the second record' "$f" '{"error0":1
' '1: *'
done
# Deep nesting: neither crash nor crawl.
python3 -c 'print("{\"x\":" + "[" * 1000000 + "]" * 1000000 + "}")' >deep
python3 -c 'print("{\"x\":" + "{\"a\":" * 500000 + "1" + "}" * 500000 + "}")' \
    >deeper
python3 -c 'print("{\"hidden\":" + "[" * 100000 + "]" * 100000 + "}")' >deepest
for f in embed tensor sample 'tok-encode -r'; do
    bad 'a million levels of arrays' "$f" "$T/deep" '1: *deep*'
    bad 'half a million levels of objects' "$f" "$T/deeper" '1: *deep*'
    bad 'a tensor of 100000 dimensions' "$f" "$T/deepest" \
        '1: *hidden*8 dimensions*'
done

# --- Fields of a wrong kind.
# (unembed looks at neither: they ride along.)
for f in embed attend sample tok-decode; do
    case $f in
    embed | tok-decode) has='"ids":[1]' ;;
    attend)
        has="\"hidden\":$(echo '{"ids":[1]}' | embed -j | jq -c .hidden)" ;;
    sample) has='"logits":[[1,2]]' ;;
    esac
    bad 'seq a list' $f "{$has,\"seq\":[1]}" '1: *seq*'
    bad 'seq an object' $f "{$has,\"seq\":{}}" '1: *seq*'
    bad 'seq null' $f "{$has,\"seq\":null}" '1: *seq*'
    bad 'seq true' $f "{$has,\"seq\":true}" '1: *seq*'
    bad 'seq a fraction' $f "{$has,\"seq\":1.5}" '1: *seq*'
    bad 'seq 1e3' $f "{$has,\"seq\":1e3}" '1: *seq*'
    bad 'seq half a surrogate pair' $f "{$has,\"seq\":\"\\ud800\"}" '1: *seq*'
    bad 'seq the other half' $f "{$has,\"seq\":\"\\udc00\\ud800\"}" '1: *seq*'
    bad 'pos negative' $f "{$has,\"pos\":-1}" '1: *pos*-1*'
    bad 'pos a string' $f "{$has,\"pos\":\"1\"}" '1: *pos*'
    bad 'pos a fraction' $f "{$has,\"pos\":0.5}" '1: *pos*'
    bad 'pos huge' $f "{$has,\"pos\":99999999999999999999}" '1: *pos*'
    bad 'pos beyond' $f "{$has,\"pos\":9223372036854775807}" '1: *pos*'
    bad 'pos null' $f "{$has,\"pos\":null}" '1: *pos*'
    bad 'pos a list' $f "{$has,\"pos\":[0]}" '1: *pos*'
    case $f in embed | attend) continue ;; esac
    bad 'more a number' $f "{$has,\"more\":1}" '1: *more*'
    bad 'more a string' $f "{$has,\"more\":\"true\"}" '1: *more*'
done

# --- ids.
for f in embed tok-decode; do
    bad 'no ids' $f '{"seq":1}' '1: *no ids*'
    bad 'ids a number' $f '{"ids":1}' '1: *ids*'
    bad 'ids a string' $f '{"ids":"1"}' '1: *ids*'
    bad 'ids null' $f '{"ids":null}' '1: *ids*'
    bad 'ids an object' $f '{"ids":{"a":1}}' '1: *ids*'
    bad 'ids of two dimensions' $f '{"ids":[[1,2]]}' '1: *ids*'
    bad 'ids of strings' $f '{"ids":["1"]}' '1: *ids*'
    bad 'ids with a null' $f '{"ids":[1,null]}' '1: *ids*'
    bad 'ids with a fraction' $f '{"ids":[1.5]}' '1: *ids*1.5*'
    bad 'ids with a boolean' $f '{"ids":[1,true]}' '1: *ids*'
    bad 'ids of booleans' $f '{"ids":[true]}' '1: *ids*'
    bad 'ids ragged' $f '{"ids":[1,[2]]}' '1: *ids*'
    bad 'an id below 0' $f '{"ids":[5,-1]}' '1: *ids*-1*'
    bad 'an id at the end of the vocabulary' $f '{"ids":[5,4096]}' \
        '1: *4096*'
    bad 'an id of 2^31' $f '{"ids":[2147483648]}' '1: *ids*2147483648*'
    bad 'an id of 2^32' $f '{"ids":[4294967296]}' '1: *ids*4294967296*'
    bad 'an id of 2^64' $f '{"ids":[18446744073709551616]}' '1: *ids*'
    bad 'an id of 2^64 + 1' $f '{"ids":[18446744073709551617]}' '1: *ids*'
done

# --- hidden.
row=$(echo '{"ids":[1]}' | embed -j | jq -c '.hidden[0]')
for f in attend unembed; do
    bad 'no hidden' $f '{"ids":[1]}' '1: *no hidden*'
    bad 'hidden a string' $f '{"hidden":"x"}' '1: *hidden*'
    bad 'hidden of one dimension' $f "{\"hidden\":$row}" '1: *hidden*160*'
    bad 'hidden of three' $f "{\"hidden\":[[$row]]}" '1: *hidden*1,*1,*160*'
    bad 'rows too short' $f '{"hidden":[[1,2,3]]}' '1: *hidden*1,*3*160*'
    bad 'ragged rows' $f "{\"hidden\":[$row,[1]]}" '1: *hidden*160*1*'
    bad 'a row missing its depth' $f "{\"hidden\":[$row,1]}" '1: *hidden*'
    bad 'NaN' $f \
        "$(echo "{\"hidden\":[$row]}" | jq -c '.hidden[0][7] = null')" \
        '1: *hidden*NaN*0*7*'
    bad 'an infinity' $f "{\"hidden\":[$row,$(echo "$row" \
        | sed 's/[^,]*]$/1e999]/')]}" '1: *hidden*infinity*1*159*'
    bad 'minus infinity' $f "{\"hidden\":[$(echo "$row" \
        | sed 's/[^,]*]$/-1.797e308]/')]}" '1: *hidden*infinity*0*159*'
    bad 'booleans' $f '{"hidden":[[true,false]]}' '1: *hidden*'
    bad 'of another model' $f "{\"hidden\":[$row],\"model\":\"0123\"}" \
        '1: *model 0123*'
    bad 'model a number' $f "{\"hidden\":[$row],\"model\":1}" '1: *model*'
done
bad 'no rows at all' unembed '{"hidden":[]}' '1: *no rows*'
bad 'a prefix that is missing' attend "{\"seq\":\"x\",\"pos\":5,
\"hidden\":[$row]}" '1: *' # two lines: cut
bad 'a prefix that is missing' attend \
    "{\"seq\":\"x\",\"pos\":5,\"hidden\":[$row]}" \
    '1: seq "x": *holds 0 positions, record starts at 5*'
bad 'layer a string' attend "{\"hidden\":[$row],\"layer\":\"1\"}" '1: *layer*'
bad 'layer negative' attend "{\"hidden\":[$row],\"layer\":-1}" '1: *layer*-1*'
bad 'layer beyond' attend "{\"hidden\":[$row],\"layer\":7}" '1: *layer*7*'
bad 'all blocks passed already' attend "{\"hidden\":[$row],\"layer\":6}" \
    '1: *all 6 blocks*'
bad 'attn of another shape' 'attend -a -l 1' \
    "{\"hidden\":[$row],\"attn\":[[[[1,2]]]],\"layers\":[0]}" '1: *attn*'
bad 'attn, and layers no list' 'attend -a -l 1' \
    "{\"hidden\":[$row],\"attn\":[[[[1]],[[1]],[[1]],[[1]]]],\"layers\":7}" \
    '1: *layers*'
bad 'attn, and layers none' 'attend -a -l 1' \
    "{\"hidden\":[$row],\"attn\":[[[[1]],[[1]],[[1]],[[1]]]]}" '1: *layers*'
bad 'attn, and layers too few' 'attend -a -l 1' \
    "{\"hidden\":[$row],\"attn\":[[[[1]],[[1]],[[1]],[[1]]]],\"layers\":[]}" \
    '1: *layers*'

# --- logits.
bad 'no logits' sample '{"ids":[1]}' '1: *no logits*'
bad 'logits of two rows' sample '{"logits":[[1],[2]]}' '1: *logits*2 rows*'
bad 'logits of three dimensions' sample '{"logits":[[[1]]]}' '1: *logits*'
bad 'logits of no numbers' sample '{"logits":[[]]}' '1: *'
bad 'logits of no rows' sample '{"logits":[]}' '1: *'
bad 'NaN' sample '{"logits":[1,null]}' '1: *NaN*'
bad '+infinity' sample '{"logits":[1,1e999]}' '1: *inf*'
bad 'all -infinity' sample '{"logits":[-1e999,-1e999]}' '1: *inf*'
bad 'NaN, drawn at random' 'sample --temp 1' '{"logits":[1,null]}' '1: *NaN*'
bad 'logits a string' sample '{"logits":"1"}' '1: *logits*'

# --- text.
bad 'no text' 'tok-encode -r' '{"seq":1}' '1: *text*'
bad 'text a number' 'tok-encode -r' '{"text":1}' '1: *text*'
bad 'text null' 'tok-encode -r' '{"text":null}' '1: *text*'
bad 'half a surrogate pair' 'tok-encode -r' '{"text":"a\ud800b"}' \
    '1: *surrogate*'

# --- Binary: safetensors documents that lie.
cat >binary.py <<'END'
import sys
from stream import *
row = floats(npy(os.environ["GOLDEN"] + "/p1_embd.npy"))[:160]
good = document({"hidden": f32([1, 160], row)}, {"seq": "a"})


def raw(name, header, data=b"", length=None):
    if not isinstance(header, bytes):
        header = (header if isinstance(header, str)
                  else json.dumps(header)).encode()
    open("b." + name, "wb").write(struct.pack(
        "<Q", len(header) if length is None else length) + header + data)


def entry(dtype="F32", shape=(1, 160), offsets=(0, 640), **more):
    return {"dtype": dtype, "shape": list(shape),
            "data_offsets": list(offsets), **more}


data = b"\0" * 640
for n in 5, 8, 9, 20, len(good) - 641, len(good) - 640, len(good) - 1:
    open("b.cut-at-%d" % n, "wb").write(good[:n])
raw("header-of-1", b"{")
raw("header-of-0", b"\0" * 8, length=0)
raw("header-of-101-MB", "{}", length=101_000_000)
raw("header-of-2^63", "{}", length=1 << 63)
raw("header-of-2^64-1", "{}", length=(1 << 64) - 1)
raw("header-beyond-the-end", "{}", length=50_000_000)
raw("no-json", "hello, w")
raw("an-array", "[1,2,3] ")
raw("json-cut-off", '{"hidden":{"dtype":"F32"')
raw("junk-behind", json.dumps({"hidden": entry()}) + " x", data)
raw("no-dtype", {"hidden": {"shape": [0], "data_offsets": [0, 0]}})
raw("no-shape", {"hidden": {"dtype": "F32", "data_offsets": [0, 0]}})
raw("no-offsets", {"hidden": {"dtype": "F32", "shape": [0]}})
raw("unknown-key", {"hidden": entry(color="red")}, data)
raw("unknown-dtype", {"hidden": entry("F31")}, data)
raw("dtype-a-number", {"hidden": entry(32)}, data)
raw("shape-too-large", {"hidden": entry(shape=(2, 160))}, data)
raw("shape-too-small", {"hidden": entry(shape=(1, 80))}, data)
raw("shape-negative", {"hidden": entry(shape=(-1, -160))}, data)
raw("shape-a-fraction", {"hidden": entry(shape=(1, 160.5))}, data)
raw("shape-of-9", {"hidden": entry(shape=[1] * 8 + [160])}, data)
raw("shape-overflows", {"hidden": entry(shape=(1 << 62, 16, 160))}, data)
raw("shape-overflows-to-0", {"hidden": entry(shape=(1 << 32, 1 << 32),
                                             offsets=(0, 0))})
raw("shape-overflows-to-fit", {"hidden": entry(
    shape=(1 << 62, 1 << 62, 640), offsets=(0, 640))}, data)
raw("shape-0-times-huge", {"hidden": entry(
    shape=(0, 1 << 62, 1 << 62), offsets=(0, 0))})
raw("shape-2^64", '{"hidden":{"dtype":"F32","shape":[18446744073709551617],'
    '"data_offsets":[0,4]}}', data[:4])
raw("huge-and-absent", {"hidden": entry(shape=(1 << 40, 160),
                                        offsets=(0, 640 << 40))}, data)
raw("offsets-backwards", {"hidden": entry(offsets=(640, 0))}, data)
raw("offsets-beyond", {"hidden": entry(offsets=(640, 1280))}, data)
raw("offsets-negative", {"hidden": entry(offsets=(-640, 0))}, data)
raw("offsets-three", {"hidden": entry(offsets=(0, 640, 640))}, data)
raw("offsets-one", {"hidden": entry(offsets=(0,))}, data)
raw("overlap", {"hidden": entry(), "x": entry("U8", (640,), (0, 640))}, data)
raw("overlap-a-little", {"hidden": entry(),
                         "x": entry("U8", (640,), (639, 1279))}, data * 2)
raw("gap", {"hidden": entry(), "x": entry("U8", (1,), (641, 642))},
    data + b"ab")
raw("gap-in-front", {"hidden": entry(offsets=(1, 641))}, b"x" + data)
one = json.dumps(entry())
raw("name-twice", '{"hidden":%s,"hidden":%s}' % (one, one), data)
raw("name-twice-empty", '{"x":%s,"x":%s,"hidden":%s}' % (
    (json.dumps(entry(shape=(0,), offsets=(0, 0))),) * 2 + (one,)), data)
raw("key-twice", '{"hidden":{"dtype":"F32","dtype":"F32","shape":[1,160],'
    '"data_offsets":[0,640]}}', data)
raw("metadata-twice", '{"__metadata__":{},"__metadata__":{},"hidden":%s}'
    % one, data)
raw("metadata-a-list", '{"__metadata__":[],"hidden":%s}' % one, data)
raw("metadata-a-number", '{"__metadata__":{"a":1},"hidden":%s}' % one, data)
raw("field-and-tensor", {"__metadata__": {"pipeformer": '{"hidden":1}'},
                         "hidden": entry()}, data)
raw("field-twice", {"__metadata__": {"pipeformer": '{"a":1,"a":2}'},
                    "hidden": entry()}, data)
raw("field-in-both", {"__metadata__": {"pipeformer": '{"a":1}', "a": "2"},
                      "hidden": entry()}, data)
raw("our-metadata-no-json", {"__metadata__": {"pipeformer": "hello"},
                             "hidden": entry()}, data)
raw("our-metadata-a-list", {"__metadata__": {"pipeformer": "[]"},
                            "hidden": entry()}, data)
raw("our-metadata-more", {"__metadata__": {"pipeformer": "{} {}"},
                          "hidden": entry()}, data)
raw("name-with-nul", {"hidden": entry(), "a\0b": entry(
    "U8", (0,), (640, 640))}, data)
raw("not-utf-8", b'{"\xff":%s}' % one.encode(), data)
raw("deep", '{"__metadata__":' + "[" * 100000 + "]" * 100000 + "}")
raw("wrong-dims", {"hidden": entry(shape=(160,))}, data)
raw("wrong-width", {"hidden": entry(shape=(2, 80))}, data)
raw("ints", {"hidden": entry("I32")}, data)
raw("nan", {"hidden": entry()}, struct.pack("<f", float("nan")) * 160)
raw("inf-f64", {"hidden": entry("F64", (1, 160), (0, 1280))},
    struct.pack("<d", 1e308) * 160)
raw("no-tensors", {"__metadata__": {"pipeformer": "{}"}})
raw("after-a-good-one", b"", b"")
open("b.after-a-good-one", "wb").write(good + good[:-3])
END
python3 binary.py
for b in b.*; do
    record=1
    case $b in
    b.after-a-good-one) record=2 ;;
    esac
    for f in attend unembed; do
        bad "${b#b.}" $f "$T/$b" "$record: *"
    done
    case $b in
    # What is only no hidden of this model's.
    b.wrong-* | b.ints | b.nan | b.inf-f64 | b.no-tensors) continue ;;
    # Bytes of a shape with a 0 in it: it is for attend to refuse.
    b.shape-0-times-huge) continue ;;
    esac
    bad "${b#b.}" tensor "$T/$b" "$record: *"
done

# --- .npy files that lie.
cat >npy.py <<'END'
import struct
good = open(__import__("os").environ["GOLDEN"] + "/p1_embd.npy", "rb").read()


def raw(name, header, data=b"\0" * 640, version=b"\1\0", length=None):
    h = header.encode() if isinstance(header, str) else header
    open("n." + name, "wb").write(b"\x93NUMPY" + version + struct.pack(
        "<H", len(h) if length is None else length) + h + data)


def d(descr="'<f4'", order="False", shape="(1, 160)", more=""):
    return "{'descr': %s, 'fortran_order': %s, 'shape': %s, %s}\n" % (
        descr, order, shape, more)


for n in 6, 7, 9, 30, 128, len(good) - 1:
    open("n.cut-at-%d" % n, "wb").write(good[:n])
raw("no-dictionary", "hello")
raw("no-shape", "{'descr': '<f4', 'fortran_order': False}")
raw("version-9", d(), version=b"\x09\0")
raw("big-endian", d("'>f4'"))
raw("objects", d("'|O'"))
raw("structured", d("[('a', '<f4')]"))
raw("complex", d("'<c8'"))
raw("shape-a-number", d(shape="160"))
raw("shape-negative", d(shape="(-1, 160)"))
raw("shape-overflows", d(shape="(4611686018427387904, 4611686018427387904)"))
raw("shape-2^64", d(shape="(18446744073709551617, 160)"))
raw("shape-huge", d(shape="(1099511627776, 160)"))
raw("shape-of-9", d(shape="(1, 1, 1, 1, 1, 1, 1, 1, 160)"))
raw("order-maybe", d(order="Maybe"))
raw("no-end", d()[:-3])
raw("unknown-key", d(more="'x': 1"))
raw("cut-off-header", d(), length=60000)
END
python3 npy.py
for b in n.*; do
    bad "${b#n.}" attend "$T/$b" '1: *'
    bad "${b#n.}" tensor "$T/$b" '1: *'
done

# --- A bad record among good ones.
good=$(echo '{"seq":"g","ids":[1]}')
for f in 'embed -j' 'tok-decode -r'; do
    printf '%s\n' "$good" '{"seq":"b","ids":[-1]}' "$good" >in
    run "$f in"
    is "$f: a bad record ends it with 1" $status 1
    is '  the good one before it comes out, then the error' \
        "$(jq -c '[.seq, has("error")]' out)" '["g",false]
["b",true]'
    run "$f --keep-going in"
    is "$f --keep-going: 1" $status 1
    is '  the error has its place' "$(jq -c '[.seq, has("error")]' out)" \
        '["g",false]
["b",true]
["g",false]'
done
printf '%s\n' "$good" 'what' '{"seq":"c","ids":[7]}' >in
run 'embed -j --keep-going in | attend -j --keep-going \
    | unembed -j --keep-going | sample --keep-going | jq -c .seq,.error'
is 'a line that is no record, --keep-going through the whole pipe' \
    "$(sed 's/in:2: .*"/in:2: ..."/' out)" '"g"
null
null
"embed: in:2: ..."
"c"
null'
{ echo '{"ids":[1]}' | embed; cat b.unknown-dtype; \
    echo '{"ids":[1]}' | embed; } >in
run 'attend -j --keep-going in'
is 'bytes of which the end is not known: --keep-going cannot' \
    "$(jq -c 'has("error")' out)" 'false
true'
{ echo '{"ids":[1]}' | embed; cat b.field-twice b.wrong-width b.nan; \
    echo '{"ids":[1]}' | embed; } >in
run 'attend -j --keep-going in'
is 'but where it is, it does' "$(jq -c 'has("error")' out)" 'false
true
true
true
false'

# --- A stage that fails in the middle makes the last one exit with 1, with
# one message in all.
one='{"seq":"a","ids":[5]}'
fails() {
    name=$1 want=$2
    shift 2
    pipe "printf '%s\\n' '$one'" "$@" >out
    # One that wrote to a stage that had ended was ended by SIGPIPE: all right.
    if [ "$(echo "$statuses" | sed 's/141/0/g')" = "$want" ] \
        && [ "$(printf '%s\n' "$messages" | wc -l)" = 1 ] \
        && [ -n "$messages" ]; then
        ok "$name"
        return
    fi
    printf 'statuses: %s, expected %s\nmessages: %s\n' "$statuses" "$want" \
        "$messages" >why
    not_ok "$name" <why
}
fails 'embed has no such model' '0 1 1 1 1 1' \
    'embed -m /nowhere' attend unembed sample tok-decode
fails 'attend has no such model' '0 0 1 1 1 1' \
    embed 'attend -m /nowhere' unembed sample tok-decode
fails 'unembed has no such model' '0 0 0 1 1 1' \
    embed attend 'unembed -m /nowhere' sample tok-decode
fails 'sample has no such model' '0 0 0 0 1 1' \
    embed attend unembed 'sample -m /nowhere' tok-decode
fails 'through NDJSON' '0 0 1 1 1 1' \
    'embed -j' 'attend -j -m /nowhere' 'unembed -j' sample tok-decode
fails 'tensor in the middle' '0 0 1 1 1 1 1' \
    embed 'tensor -s nothing -o safetensors' attend unembed sample tok-decode
fails 'tok-decode -r, -t, -s too' '0 1 1 1 1' \
    'embed -m /nowhere' unembed sample 'tok-decode -t'
fails 'generate too' '0 1 1 1' \
    "sed 's/5/4096/' | embed | tensor -o json --drop hidden | head -n 1; exit 1" \
    'generate -n 2' tok-decode
fails 'a record that is bad for attend' '0 0 0 1 1 1 1' \
    embed "tensor -o json | jq -c '.pos = 3'" attend unembed sample tok-decode
one=
fails 'with no record at all' '0 1 1 1 1 1' \
    'embed -m /nowhere' attend unembed sample tok-decode
one='{"seq":"a","ids":[5]}'
# A wrong command line in the middle: 2 there, 1 behind it.
pipe "echo '$one'" embed 'attend --nonsense' unembed sample tok-decode >out
is 'a wrong option in the middle: 2 there, 1 behind it' \
    "$(echo "$statuses" | sed 's/141/0/g')" \
    '0 0 2 1 1 1'
want 'make sees that it failed' \
    'embed | attend -l 99 | unembed | sample | tok-decode >/dev/null' \
    "$one" 1 '' 'attend: *99*'

# --- Harmless things that look bad.
want 'empty lines' 'embed -j | jq -c .ids' '

{"ids":[1]}

' 0 '[1]'
want 'no ids at all is no text' 'tok-decode' '{"seq":"a","ids":[]}' 0 ''
want 'no rows through embed and attend' 'embed | attend -j | jq -c .hidden' \
    '{"ids":[]}' 0 '[]'
want 'logits with some -infinity' 'sample | jq -c .ids' \
    '{"logits":[-1e999,0,-1e999]}' 0 '[1]'
want 'unknown fields of any kind' 'embed -j | jq -c .x' \
    '{"ids":[1],"x":{"y":[1,[2,"3"],null]}}' 0 '{"y":[1,[2,"3"],null]}'
want 'an unknown field with half a surrogate pair rides along' \
    'embed -j | grep -c "ud800"' '{"ids":[1],"x":"\ud800"}' 0 1
finish
