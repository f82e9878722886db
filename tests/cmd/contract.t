# What all commands promise alike (DESIGN.md 4).  The arguments are the names
# of all commands; a command that is not described below fails the test.
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

[ $# -gt 0 ] || set -- tok-encode tok-decode tok-train embed attend unembed \
    sample generate pool score tensor attn-stat attn-view model-info

# --- Input for each: good.NAME.json and good.NAME.bin hold three records (two
# of generate's would come out in any order: it writes them --whole).
printf '%s\n' '{"seq":"a","ids":[464,5]}' '{"seq":"b","ids":[7]}' \
    '{"seq":"c","ids":[9,8,7]}' >ids
printf '%s\n' '{"text":"The fox."}' '{"text":"A"}' '{"text":""}' \
    >good.tok-encode.json
cp ids good.tok-decode.json
cp ids good.embed.json
cp ids good.generate.json
cp ids good.tensor.json
embed -j ids >good.attend.json
attend -j good.attend.json >good.unembed.json
unembed -j good.unembed.json >good.sample.json
unembed -A -j good.unembed.json >good.score.json
cp good.unembed.json good.pool.json
attend -aj good.attend.json | jq -c '. + {done: "length"}' >good.attn-stat.json
cp good.attn-stat.json good.attn-view.json
for name in tok-decode embed generate tensor attend unembed sample score \
    attn-stat attn-view pool; do
    tensor -o safetensors good.$name.json >good.$name.bin
done

# describe NAME: how it is run on records ($run), what it writes ($writes:
# records, text, none where it reads nothing, a vocabulary where it reads text)
describe() {
    case $1 in
    tok-encode) run='tok-encode -r' writes=records ;;
    tok-decode) run=tok-decode writes=text ;;
    embed | attend | unembed | pool) run=$1 writes=records ;;
    sample) run=sample writes=records ;;
    generate) run='generate -n 2 --whole' writes=records ;;
    score) run=score writes=records ;;
    attn-stat) run='attn-stat -l 0 --heads 0' writes=records ;;
    attn-view) run='attn-view -l 0 --heads 0' writes=text ;;
    tensor) run='tensor -o json' writes=records ;;
    tok-train) run=tok-train writes=vocabulary ;;
    model-info) run=model-info writes=none ;;
    *) run= writes= ;;
    esac
}

# flawed NAME STATUS PATTERN: after `run`: that status, that message, nothing
# more than one line of it
said() {
    message=$(cat err) flaw=
    [ "$status" = "$2" ] || flaw="status $status, expected $2"
    case $message in $3) ;; *) flaw="$flaw message" ;; esac
    if [ -z "$flaw" ]; then ok "$1"; return; fi
    printf 'wrong: %s\nexpected message: %s\n     got message: %s\n' \
        "$flaw" "$3" "$message" >why
    not_ok "$1" <why
}

for name; do
    describe "$name"
    if [ -z "$run" ]; then
        echo 'teach it to tests/cmd/contract.t' >why
        not_ok "$name is known here" <why
        continue
    fi

    # --- Help, version, mistakes on the command line.
    for option in --help -h; do
        run "$name $option"
        said "$name $option: 0, silent on standard error" 0 ''
        check "  usage on standard output, less than a screen" \
            "grep -q '^usage: $name ' out && [ \$(wc -l <out) -lt 40 ]"
        check '  lines of at most 90 columns' \
            '[ "$(wc -L <out 2>/dev/null || echo 0)" -le 90 ]'
    done
    for option in --version -V; do
        want "$name $option" "$name $option | cut -d ' ' -f 1,2" '' 0 \
            "$name (pipeformer)"
    done
    run "$name --help >/dev/full"
    said "$name --help on a full disk: 1" 1 "$name: *"
    run "$name --version >/dev/full"
    said "$name --version on a full disk: 1" 1 '*'
    for option in --no-such-option -@ '--threads 0' '--threads 2x' \
        '--threads -1' "--threads ''" '--threads 1e1' '--threads " 2"' \
        '--threads +2' '--threads 99999999999999999999' --threads \
        '--help=x' '--keep-going=1' --keep; do
        run "$name $option" "$(cat ids)"
        said "$name $option: 2, usage on standard error" 2 \
            "$name: *usage: $name *"
        # Nothing on standard output but, into a pipe, an error record.
        check '  nothing on standard output' '[ ! -s out ]'
    done
    run "PIPEFORMER_THREADS=x $name" "$(cat ids)"
    said "$name: PIPEFORMER_THREADS=x: 2" 2 "$name: *PIPEFORMER_THREADS*"
    case $name in
    tensor | tok-train | score | attn-stat | attn-view | pool) ;; # no model
    *)
        run "PIPEFORMER_MODEL=/no/where $name" "$(cat ids)"
        case $name in
        generate) said "$name: no such model: 1" 1 '*/no/where*' ;;
        *) said "$name: no such model: 1" 1 "$name: *model /no/where*" ;;
        esac
        ;;
    esac

    if [ $writes = none ]; then
        # It reads no records: the rest is this.
        run "$name >/dev/full"
        said "$name on a full disk: 1" 1 "$name: <stdout>: *No space*"
        run "$name operand"
        said "$name: an operand is a mistake" 2 "$name: *usage*"
        run "{ $name; echo \$? >&3; } 3>st | true"
        said "$name: a closed output is silent" 0 ''
        run "$name -m /no/where -q"
        said "$name -q is silent" 1 ''
        run "$name --stats" ''
        said "$name --stats: 0" 0 "$name: *records*bytes*"
        continue
    fi

    if [ $writes = vocabulary ]; then
        # It reads text, and all of it before it writes anything.
        run "$name >/dev/full"
        said "$name on a full disk: 1" 1 "$name: <stdout>: *No space*"
        run "$name /no/file"
        said "$name: a missing file: 1, named" 1 \
            "$name: /no/file: *No such file*"
        check '  and nothing is written' '[ ! -s out ]'
        run "$name ."
        said "$name: a directory" 1 "$name: .: *directory*"
        run "$name -q /no/file"
        said "$name -q: silent, status 1" 1 ''
        run "$name --stats -j --keep nothing --threads 2" 'x'
        said "$name --stats" 0 "$name: 1 records, * tokens, 1 bytes in, *"
        run "{ $name; echo \$? >&3; } 3>st | true"
        said "$name: a closed output is silent" 0 ''
        continue
    fi

    # --- Files.
    run "$run /no/file"
    said "$run: a missing file: 1, named" 1 "$name: /no/file: *No such file*"
    [ $writes = text ] || check '  an error record too' \
        "tail -n 1 out >last; tensor -o json last | jq -e '.error
            | startswith(\"$name: /no/file: \")'"
    run "$run ."
    said "$run: a directory" 1 "$name: .*: *directory*"
    run "$run - <good.$name.json"
    cp out from.stdin
    said "$run -: standard input" 0 ''
    run "$run good.$name.json"
    same "$run FILE: the same" out from.stdin
    run "$run --keep-going good.$name.json /no/file"
    said "$run --keep-going FILE /no/file: 1" 1 "$name: /no/file: *"
    check '  the file before it is there' \
        "[ \$(wc -c <out) -ge \$(wc -c <from.stdin) ]"
    run "$run -q /no/file"
    said "$run -q: silent, status 1" 1 ''

    # --- Empty in, empty out.
    run "$run" ''
    said "$run: empty input: 0" 0 ''
    check '  empty output' '[ ! -s out ]'
    run "$run /dev/null /dev/null"
    said "$run /dev/null /dev/null: 0" 0 ''

    # --- Full disks, closed pipes.
    run "$run good.$name.json >/dev/full"
    said "$run >/dev/full: 1" 1 "$name: <stdout>: *No space left*"
    # More than fits any buffer, so that it shows while writing.
    for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
        sed "s/\"seq\":\"\\(.\\)\"/\"seq\":\"\\1$i\"/" good.$name.json
    done >many
    run "cat many many many | $run >/dev/full"
    said "$run >/dev/full, much: 1" 1 "$name: <stdout>: *No space left*"
    for sink in true 'head -c 1'; do
        run "{ cat many; sleep 0.2; cat many; } 2>/dev/null | $run \
            | $sink >/dev/null"
        said "$run | $sink: silent" 0 ''
    done
    run "$run good.$name.json >&-"
    said "$run >&-: 1" 1 "$name: <stdout>: *"
    run "$run <&-"
    said "$run <&-: 1" 1 "$name: <stdin>:1: cannot read: *"

    # --- A record cut short.
    head -c -9 good.$name.json >cut.json
    run "$run cut.json"
    said "$run: NDJSON cut short: 1, file and record named" 1 \
        "$name: cut.json:3: *"
    if [ $writes != text ]; then
        check '  an error record names them too' \
            "tensor -o json out | tail -n 1 | jq -e '.error
                | startswith(\"$name: cut.json:3: \")'"
    fi
    if [ -f good.$name.bin ]; then
        head -c -3 good.$name.bin >cut.bin
        run "$run cut.bin"
        said "$run: binary cut short: 1, file and record named" 1 \
            "$name: cut.bin:3: *"
        run "$run" '' # and the whole is read
        run "$run good.$name.bin"
        same "$run: binary input gives the same" out from.stdin
    fi

    # --- Error records.
    error='{"seq":"b","error":"other: x:7: \"y\"","extra":1.50}'
    run "$run" "$error"
    said "$run: an error record: 1, silence" 1 ''
    if [ $writes = text ]; then
        check '  and nothing as text' '[ ! -s out ]'
    elif [ $name = sample ]; then
        # It may mark it as done, so that it does not go round a loop for ever.
        is '  it is passed on, its sequence is over' \
            "$(tensor -o json out | sed 's/,"done":"error"}$/}/')" "$error"
    else
        is '  it is passed on as it came' "$(tensor -o json out)" "$error"
    fi
    { sed -n 1p good.$name.json; echo "$error"; sed -n 3p good.$name.json; } \
        >errors
    run "$run errors"
    said "$run: among others: 1, silence" 1 ''
    run "$run --keep-going errors"
    said "$run --keep-going: 1, silence" 1 ''
    { sed -n 1p good.$name.json; echo '{"seq":"b","x":'
      sed -n 3p good.$name.json; } >bad
    run "$run --keep-going bad"
    said "$run --keep-going: a bad record: 1, a message" 1 "$name: bad:2: *"
    if [ $writes != text ]; then
        is '  an error record in its place' \
            "$(tensor --keep-going -o json out | jq -c 'has("error")')" 'false
true
false'
    fi
    run "$run -q --keep-going bad"
    said "$run -q: silent, status 1" 1 ''
    run "$run bad"
    said "$run: without, it ends there" 1 "$name: bad:2: *"
    case $name in
    tok-decode | attn-view) ;;
    generate) # what was under way is not written
        is '  with the error record last' \
            "$(tail -n 1 out | jq -c 'has("error")')" true
        ;;
    *)
        is '  with the error record last' \
            "$(tensor -o json out | jq -c 'has("error")')" 'false
true'
        ;;
    esac

    # --- Marks go through, or end here; nothing is said about them.
    run "$run" '{"seq":"zz","pos":3,"done":"stop"}'
    case $name in
    tensor | tok-encode | embed | attend | unembed | score | pool)
        is "$run: a mark is passed on" "$(tensor -o json out)" \
            '{"seq":"zz","pos":3,"done":"stop"}'
        ;;
    esac
    said "$run: a mark is no error" 0 ''

    # --- Statistics, and that all options of all commands are taken.
    run "$run --stats good.$name.json"
    said "$run --stats" 0 "*$name: 3 records, * tokens, * bytes in, * out, * s"
    same '  with the same output' out from.stdin
    run "$run --threads 1 -j good.$name.json"
    said "$run --threads 1 -j" 0 ''
    run "$run --keep nothing good.$name.json"
    said "$run --keep NAME" 0 ''
    run "PIPEFORMER_THREADS=1 LC_ALL=C.UTF-8 $run good.$name.json"
    same "$run: the same in another locale" out from.stdin

    # --- Interactive: what a record gives comes before the next is there.
    head -n 1 good.$name.json >first
    rm -f fifo
    mkfifo fifo
    run "timeout 20 $run <fifo >live & exec 4>fifo; cat first >&4
        i=0; until [ -s live ] || [ \$i -gt 100 ]; do
            sleep 0.05; i=\$((i + 1)); done
        test -s live; echo \$?; exec 4>&-; wait"
    is "$run: a record comes out before the next one is there" "$(cat out)" 0
done

# --- Text in, for the one command that reads it.
run 'tok-encode /no/file'
said 'tok-encode, text: a missing file' 1 'tok-encode: /no/file: *'
run 'tok-encode -e list >/dev/full' ''
said 'tok-encode -e list >/dev/full: 1' 1 'tok-encode: <stdout>: *No space left*'
run 'tok-encode >/dev/full' 'x'
said 'tok-encode, text: a full disk' 1 'tok-encode: <stdout>: *'
run 'tok-encode -c >/dev/full' 'x'
said 'tok-encode -c: a full disk' 1 'tok-encode: <stdout>: *'
run 'tok-encode --raw u16 >/dev/full' 'x'
said 'tok-encode --raw: a full disk' 1 'tok-encode: <stdout>: *'
run 'tok-encode' ''
check 'tok-encode, text: empty in, empty out' '[ ! -s out ]'
run 'tok-encode .'
said 'tok-encode, text: a directory' 1 'tok-encode: .*: *directory*'
run 'tensor >/dev/full' "$(cat ids)"
said 'tensor, as a list: a full disk' 1 'tensor: <stdout>: *'
run 'tensor --summary >/dev/full' "$(cat ids)"
said 'tensor --summary: a full disk' 1 'tensor: <stdout>: *'
run 'tensor --cosine ids >/dev/full' "$(head -n 1 ids)"
said 'tensor --cosine: a full disk' 1 'tensor: <stdout>: *'
run 'score --ppl >/dev/full' ''
said 'score --ppl: a full disk' 1 'score: <stdout>: *'
run 'tensor -s ids -o npy >/dev/full' "$(cat ids)"
said 'tensor -o npy: a full disk' 1 'tensor: <stdout>: *'
run 'tok-decode -r >/dev/full' "$(cat ids)"
said 'tok-decode -r: a full disk' 1 'tok-decode: <stdout>: *'
run 'tok-decode --raw u16 >/dev/full' 'xxyy'
said 'tok-decode --raw: a full disk' 1 'tok-decode: *'
run 'generate -n 3 >/dev/full' "$(cat ids)"
said 'generate, a token a record: a full disk' 1 'generate: <stdout>: *'
finish
