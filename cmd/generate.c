/* generate: the pipe as a loop, until every sequence is done. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#include <pipeformer/kernel.h>
#include <pipeformer/model.h>

#include "loop.h"
#include "sampling.h"

struct generate {
    struct loop_options loop;
    bool print;
    struct sampling opt;  /* checked here, then handed on: */
    struct pf_buf sample; /* the options of sample, as they were written */
};

enum { WHOLE = CLI_LONG, ECHO, PARALLEL, SAMPLES };

static const struct cli_option options[] = {
    { "whole", WHOLE, NULL, "write a record a sequence, in input order" },
    { "echo", ECHO, NULL, "write the prompt too" },
    { "parallel", PARALLEL, "N", "sequences at a time (32)" },
    { "samples", SAMPLES, "N", "continuations of each prompt, seq SEQ.0 ..." },
    { "print", 'x', NULL, "print the pipe instead of running it" },
    SAMPLING_OPTIONS,
    { NULL, 0, NULL, NULL },
};

/* Appends a word so that the shell reads it as it is. */
static void
add_quoted(struct pf_buf *b, const char *word)
{
    size_t plain = strspn(word, "abcdefghijklmnopqrstuvwxyz"
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,:+=@%");

    pf_buf_addc(b, ' ');
    if (plain && !word[plain]) {
        pf_buf_adds(b, word);
        return;
    }
    pf_buf_addc(b, '\'');
    for (; *word; word++) {
        if (*word == '\'')
            pf_buf_adds(b, "'\\'");
        pf_buf_addc(b, *word);
    }
    pf_buf_addc(b, '\'');
}

static void
option(void *ctx, int key, const char *arg)
{
    struct generate *g = ctx;

    switch (key) {
    case WHOLE: g->loop.whole = true; return;
    case ECHO: g->loop.echo = true; return;
    case PARALLEL:
        g->loop.parallel = (size_t)cli_int("--parallel", arg, 1, 1 << 20);
        return;
    case SAMPLES:
        g->loop.samples = (size_t)cli_int("--samples", arg, 1, 1 << 20);
        return;
    case 'x': g->print = true; return;
    }
    sampling_option(&g->opt, key, arg);
    for (const struct cli_option *o = options; o->name; o++) {
        if (o->key != key)
            continue;
        pf_buf_printf(&g->sample, " --%s", o->name);
        if (arg)
            add_quoted(&g->sample, arg);
    }
}

static const struct cli_command command = {
    .name = "generate",
    .synopsis = "[-x] [-n N] [--whole] [--echo] [--parallel N] "
        "[--samples N]\n       [options of sample] [-m MODEL] [file ...] "
        "[-- PIPE]",
    .summary = "Continues prompts: runs embed | attend | unembed | sample as "
        "a loop, ids -> ids.\nPIPE is a shell command to run instead.",
    .options = options,
    .option = option,
    .model = true,
};

/*
 * Keys and values of all sequences that may be in the pipe, each at the end of
 * its window, in MiB; 0 where attend's own limit is enough.
 */
static size_t
kv_mem(const struct pf_config *c, size_t parallel)
{
    size_t bytes, pages = c->positions / PF_KV_GROUP + 1;

    if (!pf_mul(2 * sizeof(float) * c->layers, c->width, &bytes)
        || !pf_mul(bytes, PF_KV_GROUP, &bytes)
        || !pf_mul(bytes + 64, pages, &bytes) /* and its head */
        || !pf_mul(bytes, parallel, &bytes))
        bytes = SIZE_MAX;
    return bytes <= KV_MEM_DEFAULT ? 0 : bytes / 1024 / 1024 + 1;
}

/* Asks the model for its window; says for all filters that it is none. */
static size_t
ask_model(struct generate *g)
{
    struct pf_buf dir = PF_BUF_INIT;
    struct pf_config c;
    size_t kv = 0;
    struct pf_err err;
    enum pf_status st = pf_model_find(&dir, cli.model, &err);

    if (!st && cli_is_vocabulary(dir.data))
        cli_die("%s is a vocabulary only, which continues no texts: -m takes "
            "a model with weights (%s has none)", cli.model, dir.data);
    if (!st)
        st = pf_config_open(&c, dir.data, &err);
    if (st && !g->print)
        cli_die("%s", err.msg);
    if (!st) {
        if (c.encoder)
            cli_die("%s is an encoder (%s), which does not continue texts",
                cli.model, c.type);
        g->loop.window = c.positions;
        g->loop.vocab = c.vocab;
        /* A prompt that is continued several times is one more. */
        kv = kv_mem(&c, g->loop.parallel + (g->loop.samples > 0));
    }
    pf_buf_fini(&dir);
    return kv;
}

/* The four filters, with the options that concern each. */
static void
build_pipe(struct pf_buf *b, struct generate *g)
{
    static const char *const filters[] = { "embed", "attend", "unembed",
        "sample" };

    size_t kv = ask_model(g);

    for (size_t i = 0; i < 4; i++) {
        pf_buf_printf(b, "%s%s -m", i ? " | " : "", filters[i]);
        add_quoted(b, cli.model);
        if (i == 1 || i == 2)
            pf_buf_printf(b, " --threads %zu", cli.threads);
        if (i == 1 && kv)
            pf_buf_printf(b, " --kv-mem %zuM", kv);
        for (size_t k = 0; k < cli.n_keep; k++) {
            pf_buf_adds(b, " --keep");
            add_quoted(b, cli.keep[k]);
        }
        if (cli.keep_going)
            pf_buf_adds(b, " --keep-going");
        if (cli.quiet)
            pf_buf_adds(b, " -q");
        if (cli.verbose)
            pf_buf_adds(b, " -v");
    }
    pf_buf_add(b, g->sample.data, g->sample.len);
    pf_buf_addc(b, '\0');
    if (b->failed || g->sample.failed)
        cli_die("out of memory");
}

int
main(int argc, char **argv)
{
    struct generate g = { .opt = SAMPLING_INIT, .loop.parallel = 32 };
    struct pf_buf pipe = PF_BUF_INIT;
    const char *own = NULL;
    struct pf_err err;
    int status = 0;

    /* What stands behind -- is the pipe, not an operand. */
    for (int i = 1; i < argc && !own; i++) {
        if (strcmp(argv[i], "--") != 0)
            continue;
        own = i + 1 < argc ? argv[i + 1] : "";
        status = argc - i - 2;
        argc = i;
        argv[i] = NULL;
    }
    cli_options(argc, argv, &command, &g);
    if (own && (!*own || status))
        cli_usage("one argument, the pipe, belongs behind --");
    if (own && g.sample.len)
        cli_usage("options of sample go into the pipe behind --");
    if (own)
        pf_buf_add(&pipe, own, strlen(own) + 1);
    else
        build_pipe(&pipe, &g);
    g.loop.pipe = pipe.data;
    if (g.print) {
        cli_begin(PF_NDJSON, true);
        pipe.data[pipe.len - 1] = '\n';
        if (pf_out_write(&cli_out, pipe.data, pipe.len, &err))
            cli_die_writing(&err);
        status = cli_finish();
    } else {
        status = loop_run(&g.loop);
    }
    pf_buf_fini(&pipe);
    pf_buf_fini(&g.sample);
    sampling_fini(&g.opt);
    return status;
}
