#!/bin/sh
# What the KV cache is for: 200 tokens take about 10 times what 20 take, not
# 100 times.
#
#   PATH=build/release/bin:$PATH sh tests/bench/kv.sh
#
# Prints the time of one sequence of 20 and of 200 tokens, start-up taken off
# (the time of one token), and the ratio.  Status 1 if that is above 20.
set -u
command -v generate >/dev/null || { echo 'the commands are not in PATH' >&2
    exit 1; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
# An end id that never comes, so that no sequence ends early.
printf '%s\n' '{"ids":[2412,643,258,529]}' >"$T/prompt"

# The least of 5 runs, in milliseconds.
ms() {
    for i in 1 2 3 4 5; do
        start=$(date +%s%N)
        generate --whole --eos 4095 -n "$1" --threads 1 "$T/prompt" \
            >"$T/out" || exit 1
        echo $((($(date +%s%N) - start) / 1000))
    done | sort -n | head -n 1 | awk '{ print $1 / 1000 }'
}
one=$(ms 1) few=$(ms 20) many=$(ms 200)
echo "$one $few $many" | awk '{
    few = $2 - $1; many = $3 - $1; ratio = few > 0 ? many / few : 0
    printf "%8s %8s %8s %8s\n", "n=1", "n=20", "n=200", "ratio"
    printf "%5.1f ms %5.1f ms %5.1f ms %8.1f\n", $1, $2, $3, ratio
    exit ratio > 20
}'
