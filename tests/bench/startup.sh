#!/bin/sh
# How long each filter takes to start and end, on empty input and the bundled
# model, beside /bin/true.  The aim is below 10 ms each; generate, which starts
# a shell and four of the others, is shown but not judged.
#
#   PATH=build/release/bin:$PATH sh tests/bench/startup.sh [RUNS]
#
# Uses hyperfine where it is there, else a loop.  Prints a table.
set -u
runs=${1:-100}
filters='tok-encode tok-decode embed attend unembed sample generate tensor
model-info'
command -v attend >/dev/null || { echo 'the commands are not in PATH' >&2
    exit 1; }
json=$(mktemp) || exit 1
trap 'rm -f "$json"' EXIT

# ms COMMAND: its mean in milliseconds
ms() {
    if command -v hyperfine >/dev/null; then
        hyperfine -N -w 5 -r "$runs" --export-json "$json" \
            "$1" >/dev/null 2>&1 || return 1
        sed -n 's/.*"mean": *\([0-9.e-]*\),.*/\1/p' "$json" | head -n 1 \
            | awk '{ printf "%.2f", 1000 * $1 }'
        return
    fi
    start=$(date +%s%N)
    i=0
    while [ $i -lt "$runs" ]; do
        $1 </dev/null >/dev/null 2>&1
        i=$((i + 1))
    done
    echo $(($(date +%s%N) - start)) "$runs" \
        | awk '{ printf "%.2f", $1 / $2 / 1e6 }'
}

printf '%-12s %8s\n' command ms
status=0
for f in /bin/true $filters; do
    t=$(ms $f) || { echo "$f failed" >&2; exit 1; }
    slow=$(echo "$t" | awk '$1 >= 10 { print "  over 10 ms" }')
    case $f in
    generate) slow='  (and the four that it starts)' ;;
    esac
    case $slow in *over*) status=1 ;; esac
    printf '%-12s %8s%s\n' "${f##*/}" "$t" "$slow"
done
exit $status
