# What is installed works by itself: the pipe on the installed model, the
# manual pages, and the library for a C program that pkg-config helps.
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

prefix=$(pwd -P)/prefix
if ! cmake --install "$PF_BUILD" --prefix "$prefix" >install.log 2>&1; then
    not_ok 'cmake --install' <install.log
    finish
fi
ok 'cmake --install'
built=$PATH
PATH=$prefix/bin:$PATH

# --- The commands, on the model beside them
is 'model-info: the installed model' \
    "$(cd "$(model-info -j | jq -r .path)" && pwd -P)" \
    "$prefix/share/pipeformer/vocab/fairy"
check 'model-info --check' 'model-info --check'
is 'the pipe' "$(printf '%s\n' 'Once upon a time' | tok-encode | embed |
    attend | unembed | sample | tok-decode)" ,
is 'the vocabulary of GPT-2' \
    "$(printf 'hello world' | tok-encode -m gpt2 | jq -c .ids)" '[31373,995]'
# generate runs the filters that lie beside it, wherever PATH leads.
is 'generate' "$(printf '%s\n' 'Once upon a time' |
    tok-encode | PATH=${built#*:} "$prefix/bin/generate" -n 3 | tok-decode)" \
    ', he was'

# --- The pages
for bin in "$prefix"/bin/*; do
    name=${bin##*/}
    check "its page: $name" "cmp '$prefix/share/man/man1/$name.1' \
        '$PF_SOURCE/man/$name.1'"
done
for page in pipeformer.5 pipeformer-models.5 pipeformer.7 \
    pipeformer-cookbook.7; do
    check "the page: $page" \
        "test -s '$prefix/share/man/man${page##*.}/$page'"
done

# --- The library.  The sanitizers that it was compiled with are needed for
# what links it, too.
cached() { sed -n "s/^$1:[A-Z]*=//p" "$PF_BUILD/CMakeCache.txt"; }
CC=$(cached CMAKE_C_COMPILER)
sanitize=$(cached PF_SANITIZE)
CFLAGS="$(cached CMAKE_C_FLAGS)${sanitize:+ -fsanitize=$sanitize}"
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name pipeformer.pc)")
export PKG_CONFIG_PATH
is 'pkg-config: the version' "$(pkg-config --modversion pipeformer)" \
    "$(model-info --version | sed 's/.* //')"
cat >program.c <<'END'
#include <stdio.h>
#include <pipeformer/json.h>

int
main(void)
{
    char s[PF_F32_MAX];

    printf("%.*s\n", (int)pf_f32_print(s, 0.1f), s);
    return 0;
}
END
check 'a C program compiles' "$CC -std=c11 -Wall -Wextra -Werror $CFLAGS \
    program.c \$(pkg-config --cflags --libs --static pipeformer) -o program"
is 'and runs' "$(./program)" 0.1
for header in "$prefix"/include/pipeformer/*.h; do
    name=pipeformer/${header##*/}
    echo "#include <$name>" >header.c
    check "$name needs nothing before it" "$CC -std=c11 -Wall -Wextra -Werror \
        -fsyntax-only header.c \$(pkg-config --cflags pipeformer)"
done

finish
