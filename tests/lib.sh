# What the shell tests share: TAP, and pipes whose every stage is looked at.
# A test file begins with
#
#   . "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"
#
# and ends with `finish`.  It runs in a directory of its own, $T, which is
# removed at the end; the commands come first in PATH.

set -u
PF_SOURCE=$(cd "${PF_SOURCE:-$(dirname "$0")/../..}" && pwd) || exit 1
if [ -z "${PF_BUILD:-}" ]; then
    PF_BUILD=$(dirname "$(dirname "$(command -v attend || echo /x/x)")")
fi
SHARED=${PIPEFORMER_SHARED:-$PF_SOURCE/../shared}
GOLDEN=$PF_SOURCE/tests/golden/fairy
FAIRY=$PF_SOURCE/vocab/fairy
# An independent reader and writer of streams, in Python: see there.
PY=$PF_SOURCE/tests/stream.py
PYTHONPATH=$PF_SOURCE/tests
PYTHONDONTWRITEBYTECODE=1
LC_ALL=C
export PF_SOURCE PF_BUILD SHARED GOLDEN FAIRY PY PYTHONPATH
export PYTHONDONTWRITEBYTECODE LC_ALL
unset PIPEFORMER_MODEL PIPEFORMER_THREADS PIPEFORMER_KERNEL HF_HOME \
    HF_HUB_CACHE
# Sanitizers slow all down by ten or more: counts are scaled there.
case $PF_BUILD in *asan*|*fuzz*|*ubsan*) slow=1 ;; *) slow=0 ;; esac
# A stage that hangs is ended after so many seconds, with status 124.
LIMIT=${LIMIT:-600}

tap_n=0 tap_failed=0
T=$(mktemp -d "${TMPDIR:-/tmp}/pipeformer.XXXXXX") || exit 1
trap 'rm -rf "$T"' EXIT
trap 'exit 1' HUP INT TERM
cd "$T" || exit 1

for tool in jq python3 timeout; do
    command -v $tool >/dev/null || { echo "1..0 # SKIP no $tool"; exit 77; }
done
command -v attend >/dev/null \
    || { echo 'Bail out! the commands are not in PATH'; exit 1; }

# ok NAME
ok() {
    tap_n=$((tap_n + 1))
    echo "ok $tap_n - $1"
}

# not_ok NAME <FILE: with what there is to say about it.  (Not behind a pipe:
# that would be another shell, and the count would be lost.)
not_ok() {
    tap_n=$((tap_n + 1)) tap_failed=$((tap_failed + 1))
    echo "not ok $tap_n - $1"
    cut -c 1-400 | head -n 30 | sed 's/^/# /'
}

# skip NAME WHY
skip() {
    tap_n=$((tap_n + 1))
    echo "ok $tap_n - $1 # SKIP $2"
}

# is NAME GOT EXPECTED
is() {
    if [ "$2" = "$3" ]; then ok "$1"; return 0; fi
    printf 'expected: %s\n     got: %s\n' "$3" "$2" >why
    not_ok "$1" <why
    return 1
}

# same NAME FILE FILE: the same bytes, and there are some
same() {
    if cmp "$2" "$3" >why 2>&1 && [ -s "$2" ]; then ok "$1"; return 0; fi
    [ -s "$2" ] || echo "$2 is empty" >>why
    not_ok "$1" <why
    return 1
}

# check NAME COMMAND: a shell command that has to end with 0
check() {
    if timeout "$LIMIT" sh -c "$2" >check.out 2>&1 </dev/null; then
        ok "$1"
        return 0
    fi
    { echo "status $? of: $2"; cat check.out; } >why
    not_ok "$1" <why
    return 1
}

# run COMMAND [INPUT]: a shell command; leaves $status, files out and err
run() {
    printf '%s' "${2-}" >stdin
    timeout "$LIMIT" sh -c "$1" <stdin >out 2>err
    status=$?
}

# want NAME COMMAND INPUT STATUS OUTPUT [MESSAGE]
# Runs a command on that input.  OUTPUT is what it prints (last newlines do not
# count); it is left to the caller with `-`.  MESSAGE is a shell pattern for
# standard error, by default for silence.
want() {
    run "$2" "$3"
    got=$(cat out) said=$(cat err) bad=
    [ "$status" = "$4" ] || bad="status $status, expected $4"
    [ "$5" = - ] || [ "$got" = "$5" ] || bad="$bad${bad:+; }output"
    case $said in ${6-}) ;; *) bad="$bad${bad:+; }message" ;; esac
    if [ -z "$bad" ]; then ok "$1"; return 0; fi
    {
        printf ' command: %s\n   input: %s\n   wrong: %s\n' "$2" "$3" "$bad"
        printf 'expected: %s\n     got: %s\n' "$5" "$got"
        printf 'expected message: %s\n     got message: %s\n' "${6-}" "$said"
    } >why
    not_ok "$1" <why
    return 1
}

# json NAME COMMAND INPUT FILTER: the records that the command prints, as one
# array, pass a jq filter; status 0 and silence.
json() {
    run "$2" "$3"
    if [ "$status" = 0 ] && [ ! -s err ] \
        && jq -es "$4" out >jq.out 2>jq.err; then
        ok "$1"
        return 0
    fi
    {
        printf ' command: %s\n   input: %s\n  status: %s\n' "$2" "$3" "$status"
        printf '  filter: %s\n     got: %s\n' "$4" "$(cut -c 1-300 out)"
        cat err jq.err 2>/dev/null
    } >why
    not_ok "$1" <why
    return 1
}

# pipe STAGE ...: shell commands in a pipe, standard input for the first and
# output of the last.  Each stage's status is in $statuses, its messages in
# err.1, err.2, ...
pipe() {
    pipe_line= pipe_i=0
    for stage in "$@"; do
        pipe_i=$((pipe_i + 1))
        printf '%s\n' "$stage" >"stage.$pipe_i"
        pipe_line="$pipe_line${pipe_line:+ | }{
            timeout $LIMIT sh stage.$pipe_i; echo \$? >st.$pipe_i; } \
            2>err.$pipe_i"
    done
    eval "$pipe_line"
    statuses= messages= pipe_k=0
    while [ $pipe_k -lt $pipe_i ]; do
        pipe_k=$((pipe_k + 1))
        statuses="$statuses${statuses:+ }$(cat st.$pipe_k)"
        messages=$messages$(cat err.$pipe_k)
    done
}

# all_zero NAME: after `pipe`, every stage ended with 0 and said nothing
all_zero() {
    case $statuses in
    *[!0\ ]*) ;;
    *) if [ -z "$messages" ]; then ok "$1"; return 0; fi ;;
    esac
    printf 'statuses: %s\nmessages: %s\n' "$statuses" "$messages" >why
    not_ok "$1" <why
    return 1
}

# close_to NAME COMMAND FILE [TOLERANCE]: what the command writes equals the
# records of FILE, within 1e-4 absolute + 1e-4 relative
close_to() {
    tol=${4-'--atol 1e-4 --rtol 1e-4'}
    check "$1" "$2 >close.st && tensor --diff '$3' $tol close.st"
}

finish() {
    echo "1..$tap_n"
    [ $tap_failed = 0 ] || echo "# $tap_failed of $tap_n failed"
    [ $tap_failed = 0 ]
    exit
}
