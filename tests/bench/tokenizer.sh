#!/bin/sh
# How fast text becomes ids, beside other tokenizers, on three corpora made of
# Debian packages: English prose, C source, and fifteen languages in turn, more
# than 10 MB each, a text a line.
#
#   PATH=build/release/bin:$PATH sh tests/bench/tokenizer.sh [DIR]
#
# DIR (else $PF_BENCH_DIR) keeps the packages, the corpora and the others.  The
# whole of our commands is timed, from start to end; the others, npm packages,
# are timed inside their process, from lines in memory to ids in memory.  That
# each gives the same ids is looked at first.  All is in MB of text a second,
# the best of ROUNDS (3), in which ours and theirs take turns.
#
#   native  tiktoken-rs-node-linux-x64-gnu, what the ratio is taken against
#   wasm    tiktoken (in its place where there is no native one)
#   hf      @anush008/tokenizers (HuggingFace's)
#   ours    tok-encode to NDJSON, one thread; its ratio; its ratio of CPU time
#   two     the same ratio with two threads, and as a multiple of one thread
#   count   -c             raw    --raw u32
#   decode  tok-decode from the NDJSON; from --raw u32
#
# Status 1 if ids differ, or a figure is below the aim: 20 times native on
# English and C, 8 on mixed languages, 1.7 times that with two threads, which
# are 1.7 times as fast as one; count and raw above NDJSON, decode above
# encode.  ENCODINGS and CORPORA choose less.
set -u
LC_ALL=C
export LC_ALL
here=$(cd "$(dirname "$0")" && pwd) || exit 1
dir=${1:-${PF_BENCH_DIR:-${TMPDIR:-/tmp}/pipeformer-bench}}
rounds=${ROUNDS:-3}
encodings=${ENCODINGS:-gpt2 cl100k_base o200k_base}
corpora=${CORPORA:-english code mixed}

die() {
    echo "tokenizer.sh: $*" >&2
    exit 1
}
for tool in tok-encode tok-decode node npm python3; do
    command -v $tool >/dev/null || die "$tool is not in PATH"
done
# PATH may name the commands from here, and here is about to change.
PATH=$(cd "$(dirname "$(command -v tok-encode)")" && pwd):$PATH
mkdir -p "$dir" && cd "$dir" || exit 1
dir=$(pwd)
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
trap 'exit 1' HUP INT TERM

# ---- The corpora

packages='anarchism debian-handbook debian-reference-en fortunes
installation-guide-amd64 glibc-source openafs-modules-dkms
libreoffice-help-el libreoffice-help-hi libreoffice-help-ko
libreoffice-l10n-ar libreoffice-l10n-bn libreoffice-l10n-he
libreoffice-l10n-hi libreoffice-l10n-ta libreoffice-l10n-th'

make_corpora() {
    rm -rf unpacked
    mkdir -p debs unpacked || return 1
    for p in $packages; do
        ls debs/"$p"_*.deb >/dev/null 2>&1 \
            || (cd debs && apt-get -qq download "$p" 2>"$T/err") \
            || { cat "$T/err" >&2; die "no $p (apt-get update helps?)"; }
        for deb in debs/"$p"_*.deb; do
            dpkg-deb -x "$deb" "unpacked/$p" || return 1
            dpkg-deb -f "$deb" Package Version | awk '{ printf "%s ", $2 }'
        done
    done >"$T/versions"
    mkdir unpacked/glibc \
        && tar -xJf unpacked/glibc-source/usr/src/glibc/glibc-*.tar.xz \
            -C unpacked/glibc --strip-components=1 \
        && node "$here/tokenizer.mjs" corpus "$dir" \
        && mv "$T/versions" versions
}

[ -s versions ] || make_corpora || die 'the corpora could not be made'
rm -rf unpacked
echo '# packages:'
tr ' ' '\n' <versions | paste -d ' ' - - - - | sed 's/^/#   /'
for c in $corpora; do
    [ "$(wc -c <"$c.txt")" -ge 10000000 ] || die "$c.txt is below 10 MB"
    wc -lc "$c.txt" | awk '{ print "# " $3 ": " $1 " lines, " $2 " bytes" }'
done

# ---- The others

[ -f package.json ] || echo '{"private":true}' >package.json
for p in tiktoken tiktoken-rs-node-linux-x64-gnu @anush008/tokenizers; do
    [ -d "node_modules/$p" ] \
        || npm install --no-audit --no-fund "$p" >"$T/npm" 2>&1 \
        || echo "# $p cannot be installed: left out"
    [ -d "node_modules/$p" ] \
        && sed -n 's/.*"version": *"\([^"]*\)".*/\1/p' \
            "node_modules/$p/package.json" | sed "s|^|# $p |; 1q"
done
if [ ! -d node_modules/tiktoken-rs-node-linux-x64-gnu ]; then
    [ -d node_modules/tiktoken ] || die 'no tiktoken to compare with'
    echo '# the ratio is taken against wasm: there is no native one'
fi
# One thread, as for us.
RAYON_NUM_THREADS=1
export RAYON_NUM_THREADS
unset PIPEFORMER_MODEL PIPEFORMER_THREADS

# ---- Equal ids, and back

for c in $corpora; do
    awk -v n="$(($(wc -l <"$c.txt") / 1000))" 'NR % n == 0' "$c.txt" \
        | head -n 1000 >"$T/sample"
    for e in $encodings; do
        tok-encode -e "$e" "$T/sample" >"$T/ids" || die "$e: no ids"
        node "$here/tokenizer.mjs" check "$dir" "$e" "$T/sample" <"$T/ids" \
            >"$T/check" || { cat "$T/check"; die "$c: ids differ"; }
        sed "s/\$/ ($c)/" "$T/check"
        tok-encode -e "$e" "$c.txt" | tok-decode -e "$e" \
            | cmp - "$c.txt" || die "$c: $e does not decode to the text"
    done
done

# ---- Time

# run NAME COMMAND ...: NAME, wall and CPU seconds; output is thrown away
run() {
    python3 -c '
import os, sys, time
null = [(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]
start = time.monotonic()
pid = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ, file_actions=null)
_, status, used = os.wait4(pid, 0)
wall = time.monotonic() - start
print(sys.argv[1], wall, used.ru_utime + used.ru_stime)
sys.exit(status != 0)' "$@" >>"$T/times" || die "$2 failed"
}

printf '\n%-8s %-11s %6s %6s %6s  %6s %6s %6s %6s %5s  %6s %6s  %6s %6s\n' \
    MB/s '' native wasm hf ours ratio cpu two x count raw decode raw
status=0
for c in $corpora; do
    for e in $encodings; do
        tok-encode -e "$e" "$c.txt" >"$T/ids" || exit 1
        tok-encode -e "$e" --raw u32 "$c.txt" >"$T/raw" || exit 1
        : >"$T/times"
        round=0
        while [ $round -lt "$rounds" ]; do
            round=$((round + 1))
            run ours tok-encode -e "$e" --threads 1 "$c.txt"
            run two tok-encode -e "$e" --threads 2 "$c.txt"
            run count tok-encode -e "$e" --threads 1 -c "$c.txt"
            run raw tok-encode -e "$e" --threads 1 --raw u32 "$c.txt"
            run decode tok-decode -e "$e" --threads 1 "$T/ids"
            run unraw tok-decode -e "$e" --threads 1 --raw u32 "$T/raw"
            node "$here/tokenizer.mjs" time "$dir" "$e" "$c.txt" \
                >>"$T/times" 2>"$T/err" || { cat "$T/err" >&2; exit 1; }
        done
        awk -v corpus="$c" -v enc="$e" -v size="$(wc -c <"$c.txt")" '
        !($1 in wall) || $2 < wall[$1] { wall[$1] = $2 }
        !($1 in cpu) || $3 < cpu[$1] { cpu[$1] = $3 }
        function rate(name) {
            return name in wall ? sprintf("%.1f", size / wall[name] / 1e6) \
                : "-"
        }
        function aim(met, what) {
            if (!met) {
                missed = missed "\n  not reached: " what
            }
        }
        END {
            ref = "native" in wall ? "native" : "wasm"
            ratio = wall[ref] / wall["ours"]
            two = wall[ref] / wall["two"]
            printf "%-8s %-11s %6s %6s %6s  %6s %6.1f %6.1f %6.1f %5.2f  " \
                "%6s %6s  %6s %6s", corpus, enc, rate("native"), \
                rate("wasm"), rate("hf"), rate("ours"), ratio, \
                cpu[ref] / cpu["ours"], two, two / ratio, rate("count"), rate("raw"), \
                rate("decode"), rate("unraw")
            want = corpus == "mixed" ? 8 : 20
            aim(ratio >= want, want " times " ref)
            aim(two / ratio >= 1.7, "1.7 from two threads")
            aim(two >= 1.7 * want, 1.7 * want " times with two threads")
            aim(wall["count"] < wall["ours"], "count above NDJSON")
            aim(wall["raw"] < wall["ours"], "raw above NDJSON")
            aim(wall["decode"] < wall["ours"], "decode above encode")
            print missed
            exit missed != ""
        }' "$T/times" || status=1
    done
done
exit $status
