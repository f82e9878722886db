# The manual pages: what mandoc thinks of them, that they name the options that
# the commands have, and that every example runs and prints what it says.
#
# An example is a line that begins with "$ " in a literal display: in the
# section EXAMPLES, in pages of section 7 anywhere, in README.md in a fenced
# block.  The command goes on while its lines end in \ or |, and to the end of
# its here-document.  What follows, up to the next one or the end of the
# display, is all that it prints, messages included; nothing there: not looked
# at.  A line "..." stands for any lines.  The status must be 0.  The examples
# of a page run in order, in one new directory.
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

man=$PF_SOURCE/man

# --- mandoc
if command -v mandoc >/dev/null; then
    for page in "$man"/*.[1-9]; do
        lint=$(mandoc -Tlint -Wwarning "$page" 2>&1)
        is "mandoc: ${page##*/}" "$lint" ''
    done
else
    skip mandoc 'no mandoc'
fi

# --- A page a command, sections in order, the options of --help
cat >sections <<'END'
NAME
SYNOPSIS
DESCRIPTION
OPTIONS
FORMAT
EXIT STATUS
EXAMPLES
SEE ALSO
STANDARDS
CAVEATS
END
for source in "$PF_SOURCE"/cmd/*.c; do
    name=${source##*/}
    name=${name%.c}
    grep -q '^main(' "$source" || continue
    page=$man/$name.1
    if [ ! -s "$page" ]; then
        echo "$page is not there" >why
        not_ok "$name: its page" <why
        continue
    fi
    sed -n 's/^\.Sh //p' "$page" >got
    is "$name: sections" "$(cat got)" "$(cat sections)"
    # A line of help has one option first, or names several side by side.
    "$name" --help | sed -e '/^usage/,/^$/d' \
        -e '/; -/!s/^  \(-.,\|   \) --\([a-z-]*\).*/--\2/' |
        grep -o -e '--[a-z-]*' |
        sort >want
    sed -n '/^\.Sh OPTIONS/,/^\.Sh FORMAT/p' "$page" | grep '^\.' |
        grep -o 'Fl -[a-z][a-z-]*' | sed 's/Fl -/--/' | sort -u >got
    is "$name: options" "$(diff want got)" ''
done

# --- Examples
cat >extract.awk <<'END'
# Writes NNN.cmd and NNN.want; `kind` is 1 for pages where only EXAMPLES
# count, 7 for those where all of them do, "md" for Markdown.
function plain(s,    r, c)
{
    if (kind == "md")
        return s
    if (s ~ /^[.']/)
        bad("a macro in a display: " s)
    r = ""
    while ((i = index(s, "\\"))) {
        r = r substr(s, 1, i - 1)
        c = substr(s, i + 1, 1)
        s = substr(s, i + 2)
        if (c == "e")
            r = r "\\"
        else if (c == "-")
            r = r "-"
        else if (c != "&")
            bad("an escape \\" c " in a display")
    }
    return r s
}
function bad(what)
{
    print FILENAME ":" FNR ": " what >"bad"
}
function line(s)
{
    if (state == "doc") {
        print s >cmd
        if (s == delimiter)
            state = "want"
        return
    }
    if (state != "more" && substr(s, 1, 2) == "$ ") {
        cmd = sprintf("%03d.cmd", ++k)
        want = sprintf("%03d.want", k)
        s = substr(s, 3)
        state = "more"
    }
    if (state == "more") {
        print s >cmd
        if (match(s, /<<'[A-Z]+'/)) {
            delimiter = substr(s, RSTART + 3, RLENGTH - 4)
            state = "doc"
        } else if (s !~ /[\\|]$/)
            state = "want"
    } else if (state == "want")
        print s >want
}
kind == "md" && /^```/ { inside = !inside; state = ""; next }
kind != "md" && /^\.Sh / { section = $2 }
kind != "md" && /^\.Bd -literal/ {
    inside = kind == 7 || section == "EXAMPLES"
    state = ""
    next
}
kind != "md" && /^\.Ed/ { inside = 0 }
inside { line(plain($0)) }
END

numpy=yes
python3 -c 'import numpy' 2>/dev/null || numpy=

# matches GOT WANT: files; "..." in WANT stands for any lines
matches() {
    grep -qx '\.\.\.' "$2" || { cmp -s "$1" "$2"; return; }
    awk -v want="$2" '
        BEGIN { while ((getline s <want) > 0) w[++n] = s }
        { g[NR] = $0 }
        function m(i, j)
        {
            for (; j <= n; j++) {
                if (w[j] == "...") {
                    for (; i <= NR + 1; i++)
                        if (m(i, j + 1))
                            return 1
                    return 0
                }
                if (i > NR || g[i++] != w[j])
                    return 0
            }
            return i > NR
        }
        END { exit !m(1, 1) }' "$1"
}

# examples FILE KIND
examples() {
    page=${1##*/}
    mkdir "$T/$page" "$T/$page.run"
    cd "$T/$page" || exit 1
    awk -v kind="$2" -f "$T/extract.awk" "$1"
    if [ -e bad ]; then not_ok "$page: examples" <bad; fi
    for cmd in *.cmd; do
        [ -e "$cmd" ] || break
        i=${cmd%.cmd}
        what="$page $i: $(head -n 1 "$cmd" | tr '#\\' ' /')"
        if [ -z "$numpy" ] && grep -q numpy "$cmd"; then
            skip "$what" 'no numpy'
            continue
        fi
        (
            cd "../$page.run" || exit 1
            unset PYTHONPATH
            timeout 60 sh "../$page/$cmd" </dev/null
        ) >"$i.got" 2>&1
        status=$?
        if [ $status = 0 ] &&
            { [ ! -e "$i.want" ] || matches "$i.got" "$i.want"; }; then
            ok "$what"
            continue
        fi
        {
            echo "status $status of:"
            cat "$cmd"
            [ ! -e "$i.want" ] || diff "$i.want" "$i.got"
        } >why
        not_ok "$what" <why
    done
    cd "$T" || exit 1
}

for page in "$man"/*.[1-6]; do examples "$page" 1; done
for page in "$man"/*.7; do examples "$page" 7; done
examples "$PF_SOURCE/README.md" md

# --- What continuous integration runs is what the README says
test_command=$(grep 'cmake --workflow --preset test' "$PF_SOURCE/README.md")
is '.ci/run: the command of the README' \
    "$(grep -cxF -e "$test_command" "$PF_SOURCE/.ci/run")" 1

finish
