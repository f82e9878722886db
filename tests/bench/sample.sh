#!/bin/sh
# What choosing a token costs, by sampler and size of the vocabulary, in
# process; then 32 sequences through one generate against 32 runs of one.
#
#   ninja bench && PATH=build/release/bin:$PATH sh tests/bench/sample.sh
#
# Status 1 if a sampler takes more than a millisecond for 200,000 logits such
# as a language model gives.
set -u
command -v bench_sample >/dev/null || { echo 'bench_sample is not in PATH' \
    '(the target bench builds it)' >&2; exit 1; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
bench_sample "${1:-101}" | tee "$T/table"

# An end id that does not come.
o="--whole -n 64 --logit-bias 4095:-inf --temp 0.8 --top-k 40 --seed 1"
seq 32 | sed 's/.*/There were & of them, and/' | tok-encode >"$T/prompts"
ms() {
    start=$(date +%s%N)
    "$@" >"$T/out" || exit 1
    echo $((($(date +%s%N) - start) / 1000000))
}
single() {
    while read -r line; do
        printf '%s\n' "$line" | generate $o
    done <"$T/prompts"
}
together=$(ms generate $o "$T/prompts")
one=$(ms single)
echo "32 sequences of 64 tokens: $together ms in one generate, $one ms in 32"
awk '/^[a-z-]+:/ && $6 > 1000 { bad = 1 } END { exit bad }' "$T/table"
