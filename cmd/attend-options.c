/* attend's options: what a model is asked for, and what bare attention. */
#include "attend-options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/forward.h>

enum {
    HEADS = CLI_LONG, TAP, PATCH, ZERO, PART, KV_MEM, KV_TYPE, KV_SAVE,
    KV_LOAD, CAUSAL, NO_CAUSAL, SCALE, UNIFORM, N_HEAD,
};

static const struct cli_option options[] = {
    { "layers", 'l', "LIST", "run these blocks only, 0-5,8 (0-based)" },
    { "attn", 'a', NULL, "add the attention weights, attn [L,H,T,S]" },
    { "heads", HEADS, "LIST", "with -a and --tap: of these heads only" },
    { "tap", TAP, "NAME,...", "add activations: blocks.*.resid_post; bare: "
        "attn_scores" },
    { "patch", PATCH, "FILE", "replace activations by those of its records" },
    { "zero", ZERO, "NAME[:HEAD]", "set activations to zero" },
    { "part", PART, "attn|mlp", "run this half of each block only" },
    { "kv-mem", KV_MEM, "SIZE", "memory for keys and values of live "
        "sequences (1G)" },
    { "kv-type", KV_TYPE, "f32|f16", "hold them as these (f32)" },
    { "kv-save", KV_SAVE, "FILE", "write them, a record a sequence" },
    { "kv-load", KV_LOAD, "FILE", "have the sequences of that file" },
    { "causal", CAUSAL, "[=upper-left|lower-right]", "bare: no row sees the "
        "keys behind it" },
    { "no-causal", NO_CAUSAL, NULL, "bare: each row sees all keys (default)" },
    { "scale", SCALE, "X", "bare: what scores are multiplied by (1/sqrt(D))" },
    { "uniform", UNIFORM, NULL, "bare: the mean of the rows so far" },
    { "weights", 'w', "FILE", "bare: wq, wk, wv and wo, if there, project "
        "hidden" },
    { "n-head", N_HEAD, "N", "with -w: the number of heads (1)" },
    { NULL, 0, NULL, NULL },
};

/* Names as they are here: TransformerLens's without hook_. */
static void
add_names(struct pf_buf *b, const char *names, size_t len)
{
    const char *end = names + len;
    bool first = true; /* of a part of the name */

    if (b->len)
        pf_buf_addc(b, ',');
    while (names < end) {
        if (first && end - names > 5 && memcmp(names, "hook_", 5) == 0)
            names += 5;
        first = *names == '.' || *names == ',';
        pf_buf_addc(b, *names++);
    }
}

/* --tap: the one that bare attention has, and those of a model. */
static void
add_taps(struct attend *a, const char *list)
{
    for (;;) {
        size_t len = strcspn(list, ",");

        if (len == 0)
            cli_usage("--tap: an empty name");
        if (len == 11 && memcmp(list, "attn_scores", len) == 0) {
            a->bare.scores = true;
            a->bare_by = "--tap attn_scores";
        } else {
            add_names(&a->model.taps, list, len);
            a->model_by = "--tap with other names than attn_scores";
        }
        if (!list[len])
            return;
        list += len + 1;
    }
}

static void
add_patch(struct attend_model *m, const char *file)
{
    m->patches = realloc(m->patches, (m->n_patches + 1) * sizeof *m->patches);
    if (!m->patches)
        cli_die("out of memory");
    m->patches[m->n_patches++] = file;
}

static void
kv_option(struct attend *a, int key, const char *arg)
{
    struct attend_kv *kv = &a->model.kv;

    switch (key) {
    case KV_TYPE:
        if (strcmp(arg, "f32") != 0 && strcmp(arg, "f16") != 0)
            cli_usage("--kv-type: '%s' is neither f32 nor f16", arg);
        kv->f16 = strcmp(arg, "f16") == 0;
        a->model_by = kv->by = "--kv-type";
        break;
    case KV_SAVE:
        if (!*arg || strcmp(arg, "-") == 0)
            cli_usage("--kv-save: '%s' is no file; standard output carries "
                "the records", arg);
        if (kv->save)
            cli_usage("--kv-save: one file, not %s and %s", kv->save, arg);
        kv->save = arg;
        a->model_by = kv->by = "--kv-save";
        break;
    case KV_LOAD:
        attend_kv_add(kv, arg);
        a->model_by = kv->by = "--kv-load";
        break;
    }
}

static void
model_option(struct attend *a, int key, const char *arg)
{
    struct attend_model *m = &a->model;

    switch (key) {
    case 'l':
        m->layers_list = arg;
        a->model_by = "-l";
        break;
    case HEADS:
        m->heads_list = arg;
        a->model_by = "--heads";
        break;
    case PATCH:
        add_patch(m, arg);
        a->model_by = "--patch";
        break;
    case ZERO:
        if (!*arg)
            cli_usage("--zero: an empty name");
        add_names(&m->zeros, arg, strlen(arg));
        a->model_by = "--zero";
        break;
    case PART:
        if (strcmp(arg, "attn") != 0 && strcmp(arg, "mlp") != 0)
            cli_usage("--part: '%s' is neither attn nor mlp", arg);
        m->parts = arg[0] == 'a' ? PF_PART_ATTN : PF_PART_MLP;
        a->model_by = "--part";
        break;
    case KV_MEM:
        m->kv_mem = cli_size("--kv-mem", arg);
        a->model_by = "--kv-mem";
        break;
    default:
        kv_option(a, key, arg);
    }
}

static void
option(void *ctx, int key, const char *arg)
{
    struct attend *a = ctx;
    struct attend_bare *b = &a->bare;

    switch (key) {
    case 'a':
        a->model.attn = b->attn = true;
        break;
    case TAP:
        add_taps(a, arg);
        break;
    case CAUSAL:
        b->causal = arg ? arg : "upper-left";
        if (strcmp(b->causal, "upper-left") != 0
            && strcmp(b->causal, "lower-right") != 0)
            cli_usage("--causal: '%s' is neither upper-left nor lower-right",
                b->causal);
        a->bare_by = "--causal";
        break;
    case NO_CAUSAL:
        b->no_causal = true;
        a->bare_by = "--no-causal";
        break;
    case SCALE:
        b->scale = cli_num("--scale", arg, -1e30, 1e30);
        a->bare_by = "--scale";
        break;
    case UNIFORM:
        b->uniform = true;
        a->bare_by = "--uniform";
        break;
    case 'w':
        b->weights = arg;
        a->bare_by = "-w";
        break;
    case N_HEAD:
        b->n_head = (size_t)cli_int("--n-head", arg, 1, 1 << 20);
        a->bare_by = "--n-head";
        break;
    default:
        model_option(a, key, arg);
    }
}

static const struct cli_command command = {
    .name = "attend",
    .synopsis = "[-aj] [-l LIST] [-m MODEL] [--heads LIST] [--tap NAME,...] "
        "[...] [file ...]",
    .summary = "Takes the residual stream through the model's blocks, "
        "attention and MLP:\nhidden -> hidden; or, without a model, q, k, v "
        "-> context.",
    .options = options,
    .option = option,
    .model = true,
};

/* Files of an option are not standard input if that is an operand. */
static void
check_stdin(const char *option, const char **files, size_t n, const char *why)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < cli.n_files; k++)
            if (strcmp(files[i], "-") == 0 && strcmp(cli.files[k], "-") == 0)
                cli_usage("%s -: standard input is %s", option, why);
}

/* Options that do not go together; lists get their ends. */
static void
check_options(struct attend *a)
{
    struct attend_model *m = &a->model;

    if (cli.model_given)
        a->model_by = "-m";
    if (a->model_by && a->bare_by)
        cli_usage("%s is for bare attention, %s for the blocks of a model",
            a->bare_by, a->model_by);
    if (m->attn && !(m->parts & PF_PART_ATTN))
        cli_usage("-a: with --part mlp there is no attention");
    if (m->kv.by && !(m->parts & PF_PART_ATTN))
        cli_usage("%s: with --part mlp there are no keys and values",
            m->kv.by);
    check_stdin("--patch", m->patches, m->n_patches, "what it patches");
    check_stdin("--kv-load", m->kv.loads, m->kv.n_loads,
        "what goes on from it");
    if (m->taps.len)
        pf_buf_addc(&m->taps, '\0');
    if (m->zeros.len)
        pf_buf_addc(&m->zeros, '\0');
    if (m->taps.failed || m->zeros.failed)
        cli_die("out of memory");
}

void
attend_options(struct attend *a, int argc, char **argv)
{
    *a = (struct attend){
        .model = { .kv_mem = KV_MEM_DEFAULT, .parts = PF_PART_BOTH },
        .bare = { .scale = NAN },
    };
    cli_options(argc, argv, &command, a);
    check_options(a);
}
