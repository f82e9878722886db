# SIGINT and SIGTERM: what was made comes out; and what a terminal shows.
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

printf '%s\n' 'Once upon a time' 'The king said' 'In the wood' |
    tok-encode >ids
# All of it, to the end of the window.
loop="embed | sh -c 'echo \$\$ >pid; exec attend' | unembed |
    sample --temp 1 --seed 3 --eos 99999"
generate --whole --echo ids -- "$loop" >all

# The same, slowly after a while, so that a signal comes before it is over.
cat >slow.sh <<'END'
i=0
while read -r line; do
    i=$((i + 1))
    echo "$line"
    [ $i -lt 100 ] || { echo >there; sleep 0.05; }
done
END
printf '%s | sh slow.sh' "$loop" >slow

# kill.py SIGNAL FILE COMMAND: a shell command, which gets the signal when FILE
# is not empty, and with SIGNAL+ once more with all that it started.  (Not with
# &: that ignores SIGINT.)
cat >kill.py <<'END'
import os
import signal
import subprocess
import sys
import time

sig, file, command = sys.argv[1:]
twice = sig.endswith("+")
sig = getattr(signal, "SIG" + sig.rstrip("+"))
p = subprocess.Popen(["sh", "-c", "exec " + command], start_new_session=twice)
while p.poll() is None and not (os.path.exists(file) and os.stat(file).st_size):
    time.sleep(0.01)
p.send_signal(sig)
if twice:
    os.killpg(p.pid, sig)
print("status", p.wait())
END

# Of each sequence: where it begins, its ids.
cat >texts.jq <<'END'
group_by(.seq) | map({seq: .[0].seq, pos: (.[0].pos // 0),
    ids: (map(.ids) | add)})
END
# Is what $made has of each a beginning of what it has in all?
cat >begins.jq <<'END'
[., $made[0]] | transpose | length == 3 and all(.[];
    .[1].pos as $p | (.[1].ids | length) as $n | $n > 20
    and .[0].seq == .[1].seq and .[0].ids[$p:$p + $n] == .[1].ids)
END
for sig in 'INT 130' 'TERM 143'; do
    for form in '' --echo --whole '--whole --echo'; do
        rm -f there
        want "SIG${sig% *}, generate $form: its status, and no message" \
            "python3 kill.py ${sig% *} there \
                'generate $form ids -- \"\$(cat slow)\" >made'" '' 0 \
            "status ${sig#* }"
        check '  the pipe has ended, too' '! kill -0 "$(cat pid)"'
        case $form in
        *whole*) is '  a record each, none done' \
            "$(jq -c '[.seq, .done, .held]' made | paste -s -d ' ' -)" \
            '[0,null,null] [1,null,null] [2,null,null]' ;;
        esac
        check '  the beginning of all' 'jq -cs -f texts.jq made >some
            jq -es --slurpfile made some -f begins.jq all'
    done
    # With the prompt it is a prompt, and goes on to the same end.
    generate --whole --echo made -- "$loop" >resumed
    same '  and what was interrupted goes on to the same end' all resumed
done
printf '{"seq":9,"ids":[5]' >half
rm -f there
want 'SIGINT where nothing was made, and a prompt is not whole' \
    "mkfifo fifo; (cat half; sleep 2) >fifo & \
        python3 kill.py INT there 'generate --whole \
            -- \"sh -c \\\"echo >there; exec embed\\\" | sample\" <fifo'" '' 0 \
    'status 130'
rm -f there
want 'a signal that comes twice' \
    "python3 kill.py TERM+ there 'generate --whole ids -- \"\$(cat slow)\" >made'" \
    '' 0 'status 143'
is '  a record each' "$(wc -l <made)" 3
# As above, but for SIGCONT, which timeout sends, too: where that comes while a
# sanitizer has stopped the process to look for leaks, that one waits for ever.
want 'timeout, whose signal comes twice' \
    "ASAN_OPTIONS=\${ASAN_OPTIONS:-}:detect_leaks=0 timeout --preserve-status 3 \
        generate --whole ids -- \"\$(cat slow)\" >made" \
    '' 143 ''
is '  a record each' "$(wc -l <made)" 3
want 'a signal that was ignored from the start stays so' \
    "(trap '' INT; python3 kill.py INT ids 'generate -n 3 --whole ids' |
        tail -n 1)" '' 0 'status 0'

# --- Ctrl-C in a terminal, which goes to all of the pipe.
terminal="python3 $PF_SOURCE/tests/terminal.py"
e=$(printf '\033')
plain() { # what was shown, without what the terminal adds
    tr -d '\r' <out | sed -e 's/\^C//g' -e "s/${e}7.*${e}8//g" \
        -e "s/$e\[K//g"
}
tok-decode all >text
for form in '' --whole '--parallel 2' '--samples 2' '--whole --echo'; do
    rm -f there
    run "$terminal -k there 'generate $form ids -- \"\$(cat slow)\" |
        tok-decode'"
    is "Ctrl-C, generate $form | tok-decode: no message, no process left" \
        "$(cat err)" 'left: 0'
    is '  its status' "$status" 130
    plain >shown
    check '  what was made is shown' '[ $(wc -c <shown) -gt 200 ]'
done
# The last one: all three, each as it begins.
check '  all three texts' 'for i in 1 2 3; do
    grep -q "^$(printf "Once upon a time\nThe king said\nIn the wood" |
        sed -n ${i}p)" shown || exit 1; done'
rm -f there
run "$terminal -k there 'echo >there; exec tok-decode'"
is 'Ctrl-C, tok-decode at a terminal: it ends' "$status" 130
rm -f there
run "$terminal -k there -n 2 'echo >there
    (trap \"\" INT; sleep 9) | tok-decode'"
is 'Ctrl-C twice, tok-decode behind one that does not end' "$status" 130

# --- Progress: on a terminal, if the output is somewhere else.
run "$terminal 'generate -n 200 --whole ids >made'"
case $(cat out) in
*"generate: "*" done, "*" live, "*" tokens, "*" tokens/s"*"$e[K")
    ok 'progress, and it is erased at the end' ;;
*) not_ok 'progress, and it is erased at the end' <out ;;
esac
is '  on one line' "$(wc -l <out)" 0
for c in 'generate -n 9 ids' 'generate -q -n 200 --whole ids >made' \
    'TERM=dumb generate -n 9 --whole ids >made' \
    'generate -n 9 --whole ids >made 2>messages'; do
    run "$terminal '$c'"
    check "no progress: $c" '! grep live out'
done
for form in '' --whole; do
    generate -n 60 $form ids | tok-decode >text
    run "$terminal 'generate -n 60 $form ids | tok-decode'"
    plain >got
    same "progress and texts on one terminal do not mix, $form" got text
done
finish
