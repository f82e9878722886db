#!/bin/sh
# Learning 32,000 tokens from 100 MB of text: at most a minute, within 2 GB.
#
#   PATH=build/release/bin:$PATH sh tests/bench/train.sh [FILE]
#
# Without FILE the text is what this system has of documentation, manuals,
# headers and scripts, in that order, up to 100 MB, each line once.  Prints
# seconds, the processors' seconds and the peak of memory with 1 and 2 threads;
# the results must be equal.  Status 1 if one is not, or takes more than 60 s
# or 2 GB.
set -u
command -v tok-train >/dev/null || { echo 'the commands are not in PATH' >&2
    exit 1; }
command -v python3 >/dev/null || { echo 'python3 measures it' >&2; exit 1; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
SIZE=100000000

text=${1-}
if [ -z "$text" ]; then
    text=$T/text
    {
        find /usr/share/doc -type f ! -name '*.gz' ! -name '*.png' \
            -exec cat {} +
        find /usr/share/man /usr/share/doc -type f -name '*.gz' \
            -exec gzip -cdq {} +
        find /usr/include /usr/share /usr/lib -type f \( -name '*.h' \
            -o -name '*.pm' -o -name '*.pod' -o -name '*.py' -o -name '*.md' \
            -o -name '*.txt' -o -name '*.html' \) ! -path '/usr/share/doc/*' \
            -exec cat {} +
    } 2>"$T/err" | awk '!seen[$0]++' | head -c $SIZE >"$text"
fi
bytes=$(wc -c <"$text")
echo "$bytes bytes of text"
[ "$bytes" -ge $SIZE ] || echo "(the system has no more than that)"

cat >"$T/measure.py" <<'END'
import resource
import subprocess
import sys
import time
start = time.monotonic()
status = subprocess.call(sys.argv[1:])
seconds = time.monotonic() - start
use = resource.getrusage(resource.RUSAGE_CHILDREN)
print("%6.2f s %6.2f s %7.0f MB" % (seconds, use.ru_utime + use.ru_stime,
                                    use.ru_maxrss / 1024))
sys.exit(status != 0 or seconds > 60 or use.ru_maxrss > 2 << 20)
END
failed=0
echo 'pattern  threads    real  processor   memory'
for pattern in gpt2 cl100k o200k; do
    for threads in 1 2; do
        printf '%-8s %7d ' $pattern $threads
        python3 "$T/measure.py" tok-train -q -n 32000 --threads $threads \
            --pattern $pattern -o "$T/$pattern.$threads" "$text" || failed=1
    done
    cmp "$T/$pattern.1/tokenizer.json" "$T/$pattern.2/tokenizer.json" \
        || failed=1
done
exit $failed
