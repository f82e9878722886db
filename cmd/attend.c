/*
 * attend: the residual stream through the blocks of a model, or bare
 * attention.
 */
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/forward.h>

#include "attend-bare.h"
#include "attend-model.h"

/*
 * Options that only a model has a use for, and those that only bare attention
 * has, exclude each other.  With neither, each record tells by what it has;
 * then the model is opened for the first that wants it.
 */
struct attend {
    struct attend_model model;
    struct attend_bare bare;
    const char *model_by, *bare_by; /* such an option, as it was written */
};

enum {
    HEADS = CLI_LONG, TAP, PATCH, ZERO, PART, KV_MEM, CAUSAL, NO_CAUSAL,
    SCALE, UNIFORM, N_HEAD,
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
            if (a->model.taps.len)
                pf_buf_addc(&a->model.taps, ',');
            pf_buf_add(&a->model.taps, list, len);
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
        if (m->zeros.len)
            pf_buf_addc(&m->zeros, ',');
        pf_buf_adds(&m->zeros, arg);
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

static bool
is_bare(const struct attend *a, const struct pf_record *rec)
{
    return a->bare_by
        || (!a->model_by && attend_bare_takes(&a->bare, rec));
}

static enum pf_status
check(void *ctx, struct cli_item *item, struct pf_err *err)
{
    struct attend *a = ctx;
    enum pf_status st;

    if (is_bare(a, &item->rec))
        return attend_bare_check(&a->bare, item, err);
    st = attend_model_open(&a->model, err);
    if (!st && !pf_record_has(&item->rec, "hidden"))
        st = pf_fail(err, PF_ESHAPE, "the record has no hidden (embed gives "
            "it), nor q, k and v (bare attention)");
    return st ? st : attend_model_check(&a->model, item, err);
}

static enum pf_status
mark(void *ctx, const struct pf_record *rec, struct pf_err *err)
{
    struct attend *a = ctx;

    return attend_model_mark(&a->model, rec, err);
}

static enum pf_status
step(void *ctx, struct cli_item **items, size_t n, size_t *at,
    struct pf_err *err)
{
    struct attend *a = ctx;
    enum pf_status st = PF_OK;
    size_t k, done;

    for (size_t i = 0; i < n && !st; i = k) {
        *at = i;
        k = i + 1;
        if (is_bare(a, &items[i]->rec)) {
            st = attend_bare_one(&a->bare, items[i], err);
            continue;
        }
        while (k < n && !is_bare(a, &items[k]->rec))
            k++;
        done = 0;
        st = attend_model_step(&a->model, items + i, k - i, &done, err);
        *at = i + done;
    }
    return st;
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
    for (size_t i = 0; i < m->n_patches; i++)
        for (size_t k = 0; k < cli.n_files; k++)
            if (strcmp(m->patches[i], "-") == 0
                && strcmp(cli.files[k], "-") == 0)
                cli_usage("--patch -: standard input is what it patches");
    if (m->taps.len)
        pf_buf_addc(&m->taps, '\0');
    if (m->zeros.len)
        pf_buf_addc(&m->zeros, '\0');
    if (m->taps.failed || m->zeros.failed)
        cli_die("out of memory");
}

int
main(int argc, char **argv)
{
    struct attend a = {
        .model = { .kv_mem = KV_MEM_DEFAULT, .parts = PF_PART_BOTH },
        .bare = { .scale = NAN },
    };
    struct cli_filter filter = {
        .ctx = &a,
        .main_input = "hidden",
        .format = PF_BINARY,
        .pass_marks = true,
        .check = check,
        .mark = mark,
        .step = step,
    };
    struct pf_err err;
    int status;

    cli_options(argc, argv, &command, &a);
    check_options(&a);
    if (!a.model_by)
        attend_bare_start(&a.bare);
    else if (attend_model_open(&a.model, &err))
        cli_die("%s", err.msg);
    status = cli_run(&filter);
    if (!status)
        attend_model_end(&a.model);
    attend_model_free(&a.model);
    attend_bare_free(&a.bare);
    return status;
}
