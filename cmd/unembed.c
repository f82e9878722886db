/* unembed: the residual stream to scores over the vocabulary. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#include <pipeformer/forward.h>
#include <pipeformer/model.h>

struct unembed {
    struct pf_model *model;
    struct pf_runner *runner;
    bool all, no_norm;
    struct pf_memory logits; /* of a batch */
};

enum { NO_NORM = CLI_LONG };

/* More than this is given back to the system before the next batch. */
#define KEEP_MAX ((size_t)1 << 25)

static const struct cli_option options[] = {
    { "all", 'A', NULL, "logits of every row, not of the last only" },
    { "no-norm", NO_NORM, NULL, "leave out the layer norm of the head" },
    { NULL, 0, NULL, NULL },
};

static void
option(void *ctx, int key, const char *arg)
{
    struct unembed *u = ctx;

    (void)arg;
    switch (key) {
    case 'A': u->all = true; break;
    case NO_NORM: u->no_norm = true; break;
    }
}

static const struct cli_command command = {
    .name = "unembed",
    .synopsis = "[-Aj] [-m MODEL] [--no-norm] [file ...]",
    .summary = "Final norm and output head: hidden -> logits, a score for "
        "each token.\nAfter any block it is the logit lens; of BERT, what "
        "masked words are.",
    .options = options,
    .option = option,
    .model = true,
};

/*
 * Whose rows are wanted: all, the last, or none where the record says that
 * more of the sequence follows.
 */
static enum pf_status
wanted(const struct unembed *u, struct pf_record *rec, const float **hidden,
    size_t *first, size_t *n, struct pf_err *err)
{
    size_t T;
    bool more;
    enum pf_status st = cli_check_model(rec, u->model, err);

    if (!st)
        st = cli_hidden(rec, u->model->config.width, hidden, &T, err);
    if (!st)
        st = pf_record_bool(rec, "more", &more, err);
    if (st)
        return st;
    *n = u->all ? T : more ? 0 : 1;
    if (*n > T)
        return pf_fail(err, PF_ESHAPE, "hidden: has no rows, so there is no "
            "last one to score (the text was empty)");
    *first = T - *n;
    return PF_OK;
}

static enum pf_status
check(void *ctx, struct cli_item *item, struct pf_err *err)
{
    const struct unembed *u = ctx;
    const float *hidden;
    size_t first, n = 0;
    enum pf_status st = wanted(u, &item->rec, &hidden, &first, &n, err);

    item->bytes = n * u->model->config.vocab * sizeof(float);
    return st;
}

/* Memory for the logits of a batch, which is written before the next one. */
static float *
room_for_logits(struct unembed *u, size_t bytes)
{
    if (!u->logits.data || u->logits.cap < bytes
        || u->logits.cap > KEEP_MAX) {
        pf_memory_fini(&u->logits);
        u->logits.data = pf_memory_new(bytes);
        u->logits.cap = u->logits.data ? bytes : 0;
    }
    return (float *)(void *)u->logits.data;
}

static enum pf_status
step(void *ctx, struct cli_item **items, size_t n, size_t *at,
    struct pf_err *err)
{
    struct unembed *u = ctx;
    size_t C = u->model->config.width, V = u->model->config.vocab, M = 0;
    size_t first, k, bytes;
    const float **rows = NULL, *hidden;
    float *logits;
    enum pf_status st = PF_OK;

    for (size_t i = 0; i < n; i++) {
        wanted(u, &items[i]->rec, &hidden, &first, &k, NULL);
        M += k;
    }
    if (pf_mul(M, V * sizeof *logits, &bytes))
        rows = malloc((M + 1) * sizeof *rows);
    logits = rows ? room_for_logits(u, bytes) : NULL;
    if (!logits)
        st = pf_fail_mem(err);
    M = 0;
    for (size_t i = 0; !st && i < n; i++) {
        struct pf_record *rec = &items[i]->rec;
        bool more = false;

        *at = i;
        wanted(u, rec, &hidden, &first, &k, NULL);
        pf_record_bool(rec, "more", &more, NULL);
        for (size_t t = 0; t < k; t++)
            rows[M + t] = hidden + (first + t) * C;
        if ((u->all || !more) && !pf_record_put(rec, "logits", PF_F32, 2,
                (size_t[]){ k, V }, logits + M * V))
            st = pf_fail_mem(err);
        cli_drop(rec, "hidden");
        M += k;
    }
    if (!st)
        st = pf_unembed(u->runner, logits, rows, M, !u->no_norm, err);
    free(rows);
    return st;
}

int
main(int argc, char **argv)
{
    struct unembed u = { 0 };
    struct cli_filter filter = {
        .ctx = &u,
        .main_input = "hidden",
        .format = PF_BINARY,
        .pass_marks = true,
        .check = check,
        .step = step,
    };
    int status;

    cli_options(argc, argv, &command, &u);
    u.model = cli_model();
    if (!u.model->head.w)
        cli_die("%s: the model has no output head; its files hold an encoder "
            "alone (pool makes one vector of its rows)", cli.model);
    u.runner = cli_runner(u.model);
    status = cli_run(&filter);
    pf_memory_fini(&u.logits);
    pf_runner_free(u.runner);
    pf_model_free(u.model);
    return status;
}
