#!/bin/sh
# The main job: one token through the pipe, then a story as it is made.
bold= plain=
if [ -t 1 ]; then
    bold=$(printf '\033[1m') plain=$(printf '\033[0m')
fi
say() { printf '\n%s$ %s%s\n' "$bold" "$1" "$plain"; }

pipe="printf '%s\\n' 'Once upon a time' | tok-encode | embed | attend | unembed | sample | tok-decode"
say "$pipe"
sh -c "$pipe" || exit 1

pipe="printf '%s\\n' 'Once upon a time' | tok-encode | generate --echo -n 220 --temp 0.8 --top-k 40 --seed 3 | tok-decode"
say "$pipe"
sh -c "$pipe"
