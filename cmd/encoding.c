#include "encoding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <pipeformer/buf.h>
#include <pipeformer/tokenizer.h>

#include "cli.h"

bool
encoding_option(struct encoding *e, int key, const char *arg)
{
    switch (key) {
    case 'e': e->name = arg; return true;
    case ENCODING_PATTERN: e->pattern = arg; return true;
    case ENCODING_SPECIAL: e->special = arg; return true;
    }
    return false;
}

/* NAME, TAB, size, TAB, special tokens. */
static _Noreturn void
list(void)
{
    const struct pf_encoding *e;

    for (size_t i = 0; (e = pf_encoding_at(i)); i++)
        printf("%s\t%zu\t%s\n", e->name, e->size, e->special);
    cli_printed();
}

static bool
is_known(const char *name)
{
    const struct pf_encoding *e;

    for (size_t i = 0; (e = pf_encoding_at(i)); i++)
        if (strcmp(e->name, name) == 0)
            return true;
    return false;
}

/* What is wrong with the pattern is wrong with the command line. */
static void
check_pattern(const char *pattern)
{
    struct pf_err err;

    if (!pf_tokenizer_check_pattern(pattern, &err))
        return;
    if (err.status == PF_ENOMEM)
        cli_die("%s", err.msg);
    cli_usage("--pattern: %s", err.msg);
}

static bool
is_ranks(const char *path)
{
    size_t n = strlen(path);

    return n > 9 && strcmp(path + n - 9, ".tiktoken") == 0;
}

struct pf_tokenizer *
encoding_open(const struct encoding *e, bool encodes)
{
    const char *name = e->name ? e->name : cli.model;
    struct pf_tokenizer *tok;
    struct stat s;
    enum pf_status st;
    struct pf_buf dir;
    struct pf_err err;

    if (e->name && strcmp(e->name, "list") == 0)
        list();
    if (e->name && cli.model_given)
        cli_usage("only one of -e and -m");
    if ((e->pattern || e->special) && !(e->name && is_ranks(e->name)))
        cli_usage("--pattern and --special-tokens go with -e FILE.tiktoken");
    if (e->name && is_ranks(e->name)) {
        if (!e->pattern && encodes)
            cli_usage("-e %s: the file does not say how text is cut; give "
                "--pattern gpt2, cl100k, qwen2, o200k, or a regular "
                "expression", e->name);
        if (e->pattern)
            check_pattern(e->pattern);
        st = pf_tokenizer_open_ranks(&tok, e->name, e->pattern ? e->pattern
            : "gpt2", e->special, &err);
    } else if (is_known(name) && (e->name || stat(name, &s) != 0)) {
        st = pf_tokenizer_named(&tok, name, &err);
    } else if (e->name && !strchr(name, '/') && stat(name, &s) != 0) {
        cli_usage("-e %s: no such encoding, and no such file; -e list has the "
            "names", name);
    } else if (e->name) {
        st = pf_tokenizer_open(&tok, name, &err);
    } else {
        dir = cli_model_dir();
        st = pf_tokenizer_open(&tok, dir.data, &err);
        pf_buf_fini(&dir);
    }
    if (st)
        cli_die("%s", err.msg);
    return tok;
}
