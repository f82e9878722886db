#!/bin/sh
# What the KV cache is for: 200 tokens take about 10 times what 20 take, not
# 100 times.
#
#   PATH=build/release/bin:$PATH sh tests/bench/kv.sh [MODEL]
#
# Prints the time of one sequence of 20 and of 200 tokens, start-up taken off
# (the time of one token), and the ratio.  Status 1 if that is above 20.
#
# With a model, what --kv-type f16 is for: the time of a token at the end of its
# window, in its blocks alone, with one thread and two, and the memory that is
# held.  Keys and values come from --kv-load, the time of one token is taken
# off.  (forward.py leaves a model of GPT-2's shapes in TMPDIR.)
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
}' || exit

[ $# -gt 0 ] || exit 0
python3 - "$T" "$1" <<'END' || exit
import json
import os
import subprocess
import sys
import time

T, model = sys.argv[1:]
with open(model + "/config.json") as f:
    window = json.load(f)["n_positions"]
N = 33
S = window - N


def embed(name, records):
    text = "".join(json.dumps(r) + "\n" for r in records)
    with open(T + "/" + name, "wb") as f:
        subprocess.run(["embed", "-m", model], input=text.encode(), stdout=f,
                       check=True)


def attend(*args):
    start = time.monotonic()
    subprocess.run(["attend", "-m", model, *args], cwd=T, check=True,
                   stdout=subprocess.DEVNULL)
    return time.monotonic() - start


embed("prompt", [{"ids": [i * 7 % 1000 for i in range(S)]}])
step = [{"pos": S + i, "ids": [i]} for i in range(N)]
embed("one", step[:1])
embed("many", step)
print("%8s %8s %11s %8s" % ("kv-type", "threads", "ms a token", "MB held"))
for threads in "12":
    best = {}
    for turn in range(7):
        for kind in "f32", "f16":
            args = "--kv-type", kind, "--threads", threads
            if turn == 0:
                attend(*args, "--kv-save", kind, "prompt")
            for n in "one", "many":
                took = attend(*args, "--kv-load", kind, n)
                best[kind, n] = min(best.get((kind, n), took), took)
    for kind in "f32", "f16":
        ms = (best[kind, "many"] - best[kind, "one"]) / (N - 1) * 1000
        print("%8s %8s %11.2f %8.1f" % (
            kind, threads, ms, os.path.getsize(T + "/" + kind) / 1e6))
END
