#!/bin/sh
# Bare attention, 12 heads of 64, beside PyTorch's (Debian: python3-torch),
# which holds the whole score matrix.
#
#   PATH=build/release/bin:$PATH sh tests/bench/attention.sh [THREADS]
#
# Prints for each T the least of some runs in milliseconds: the whole command
# (start, reading, computing, writing), the same with --causal, the function
# alone, which bench_attention calls (ninja bench), that with causal, and
# PyTorch's function alone; how many times as long that one takes as the command
# and as the function; the largest difference between the two results; and at
# the end the peak memory of T = 16384 beside the size of its input.
set -u
threads=${1-$(nproc)}
here=$(dirname "$0")
command -v attend >/dev/null || { echo 'attend is not in PATH' >&2; exit 1; }
for python in ${PYTHON-python3 /usr/bin/python3}; do
    $python -c 'import torch, numpy' 2>/dev/null && break
    python=
done
[ "$python" ] || { echo 'no Python with torch and numpy' >&2; exit 1; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT

# least TIMES COMMAND: milliseconds
least() {
    i=0
    while [ $i -lt "$1" ]; do
        start=$(date +%s%N)
        sh -c "$2" || exit 1
        echo $((($(date +%s%N) - start) / 1000))
        i=$((i + 1))
    done | sort -n | head -n 1 | awk '{ printf "%.1f\n", $1 / 1000 }'
}

printf '%6s %9s %9s %9s %9s %9s %14s %10s   (%s threads)\n' \
    T command causal function causal PyTorch 'times' difference "$threads"
for case in '512 20' '2048 7' '8192 3'; do
    set -- $case
    $python "$here/attention.py" make "$1" 12 64 "$T/in"
    all=$(least "$2" "attend --threads $threads '$T/in' >'$T/out'")
    causal=$(least "$2" "attend --causal --threads $threads '$T/in' >/dev/null")
    f=$(bench_attention "$1" "$threads" "$2")
    fc=$(bench_attention "$1" "$threads" "$2" causal)
    # With the kernels that OpenBLAS is told to use here, with its own choice,
    # and with some that it may not know to be the best for a newer processor.
    torch=$(for own in '' '-u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE' \
        OPENBLAS_CORETYPE=SkylakeX OPENBLAS_CORETYPE=Haswell; do
        env $own OMP_NUM_THREADS=$threads \
            $python "$here/attention.py" torch "$T/in" "$2" <"$T/out"
    done | sort -n | head -n 1)
    set -- "$1" ${torch:-0 -}
    awk -v t="$1" -v a="$all" -v c="$causal" -v f="${f:-0}" -v fc="${fc:-0}" \
        -v p="$2" -v d="$3" 'BEGIN {
        printf "%6d %9.1f %9.1f %9.1f %9.1f %9.1f %6.1fx %6.1fx %10s\n", t, a,
            c, f, fc, p, p / a, (f > 0 ? p / f : 0), d }'
done
$python "$here/attention.py" make 16384 12 64 "$T/in"
start=$(date +%s%N)
$python "$here/../stream.py" rss "$T/rss" attend --threads "$threads" \
    "$T/in" >/dev/null
ms=$((($(date +%s%N) - start) / 1000000))
awk -v ms=$ms -v kib="$(cat "$T/rss")" -v bytes="$(wc -c <"$T/in")" 'BEGIN {
    printf "T = 16384: %d ms, input %.1f MB, peak memory %.1f MB: %.2f times\n",
        ms, bytes / 1e6, kib * 1024 / 1e6, kib * 1024 / bytes }'
