#!/bin/sh
# The main job: one token through the pipe, then a story as it is made.
say() { printf '\n\033[1m$ %s\033[0m\n' "$1"; }

pipe="printf '%s\\n' 'Once upon a time' | tok-encode | embed | attend | unembed | sample | tok-decode"
say "$pipe"
sh -c "$pipe" || exit 1

pipe="printf '%s\\n' 'Once upon a time' | tok-encode | generate --echo -n 220 --temp 0.8 --top-k 40 --seed 3 | tok-decode"
say "$pipe"
sh -c "$pipe"
