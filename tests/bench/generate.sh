#!/bin/sh
# What the loop is for: 32 sequences through one generate, which computes them
# together, against 32 runs of one; and 32 continuations of one prompt, which
# is computed once, against 32 prompts.
#
#   PATH=build/release/bin:$PATH sh tests/bench/generate.sh [THREADS] [MODEL]
#
# The least of three runs, in milliseconds, start-up of the commands included.
set -u
threads=${1:-1} model=${2:-fairy}
command -v generate >/dev/null || { echo 'the commands are not in PATH' >&2
    exit 1; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
cd "$T" || exit 1

g="generate -m $model --whole --threads $threads --temp 1 --seed 1"
g="$g --eos 2000000" # one that never comes
# An id of the vocabulary is all that a prompt has to be.
prompts() { # how many, of how many ids
    awk -v n="$1" -v len="$2" 'BEGIN { for (i = 0; i < n; i++) {
        printf "{\"seq\":%d,\"ids\":[", i
        for (k = 1; k <= len; k++)
            printf "%d%s", k * 37 % 4000, k < len ? "," : "]}\n" } }'
}
prompts 32 8 >short
split -l 1 short one.
prompts 32 192 >long
head -n 1 long >first

# ms COMMAND
ms() {
    for i in 1 2 3; do
        start=$(date +%s%N)
        eval "$1" >out || exit 1
        echo $((($(date +%s%N) - start) / 1000))
    done | sort -n | head -n 1
}
row() { # WHAT TOKENS MICROSECONDS
    echo "$2 $3" | awk -v what="$1" '{
        printf "%-44s %9.1f ms %9.0f tokens/s\n", what, $2 / 1000,
            $1 / $2 * 1e6 }'
}
n=64 all=$((32 * 64))
row "32 sequences of $n tokens, one generate" $all "$(ms "$g -n $n short")"
row '  the same with --parallel 1' $all "$(ms "$g -n $n --parallel 1 short")"
row '  32 runs of one' $all \
    "$(ms "for f in one.*; do $g -n $n \$f || exit 1; done")"
n=8 all=$((32 * 8))
row "a prompt of 192 ids, $n tokens more" $n "$(ms "$g -n $n first")"
row '  32 times: --samples 32' $all "$(ms "$g -n $n --samples 32 first")"
row '  32 times: as 32 prompts' $all "$(ms "$g -n $n long")"
