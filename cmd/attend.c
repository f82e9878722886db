/* attend: the residual stream through the model's blocks. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#include <pipeformer/forward.h>
#include <pipeformer/maps.h>
#include <pipeformer/model.h>

struct attend {
    struct pf_model *model;
    struct pf_runner *runner;
    struct pf_kv_cache *cache;
    const char *layers_arg, *heads_arg;
    size_t *layers, n_layers; /* what -l asks for, else all */
    size_t *heads, n_heads;   /* whose weights are wanted */
    bool attn;
    size_t kv_mem;
    /* What `check` found out about the records of the batch, in order. */
    struct job {
        size_t T, pos, from; /* from: index of the first layer to run */
        float *hidden; /* in the record's memory: changed in place */
        struct pf_kv *kv;
    } *jobs;
    size_t n_jobs, cap_jobs;
    struct pf_buf key, fork;
};

enum { HEADS = CLI_LONG, KV_MEM };

static const struct cli_option options[] = {
    { "layers", 'l', "LIST", "run these blocks only, 0-5,8 (0-based)" },
    { "attn", 'a', NULL, "add the attention weights, attn [L,H,T,S]" },
    { "heads", HEADS, "LIST", "with -a: of these heads only" },
    { "kv-mem", KV_MEM, "SIZE", "memory for keys and values of live "
        "sequences (1G)" },
    { NULL, 0, NULL, NULL },
};

static void
option(void *ctx, int key, const char *arg)
{
    struct attend *a = ctx;

    switch (key) {
    case 'l': a->layers_arg = arg; break;
    case 'a': a->attn = true; break;
    case HEADS: a->heads_arg = arg; break;
    case KV_MEM: a->kv_mem = cli_size("--kv-mem", arg); break;
    }
}

static const struct cli_command command = {
    .name = "attend",
    .synopsis = "[-aj] [-l LIST] [-m MODEL] [--heads LIST] [--kv-mem SIZE] "
        "[file ...]",
    .summary = "Takes the residual stream through the model's blocks, "
        "attention and MLP:\nhidden -> hidden.",
    .options = options,
    .option = option,
    .model = true,
};

/* Where a record that has passed `layer` blocks goes on. */
static enum pf_status
first_layer(const struct attend *a, const struct pf_record *rec, size_t *from,
    struct pf_err *err)
{
    int64_t layer;
    enum pf_status st = pf_record_i64(rec, "layer", 0, &layer, err);

    *from = 0;
    if (st || a->layers_arg)
        return st;
    if (layer < 0 || layer > (int64_t)a->model->config.layers)
        return pf_fail(err, PF_ERANGE, "layer: %lld, but the model has %zu "
            "blocks", (long long)layer, a->model->config.layers);
    if (layer == (int64_t)a->model->config.layers)
        return pf_fail(err, PF_ESTATE, "hidden has passed all %zu blocks "
            "already (-l names blocks to run again)",
            a->model->config.layers);
    *from = (size_t)layer;
    return PF_OK;
}

static enum pf_status
check(void *ctx, struct cli_item *item, struct pf_err *err)
{
    struct attend *a = ctx;
    struct pf_record *rec = &item->rec;
    bool fork = pf_record_has(rec, "fork");
    const float *hidden;
    enum pf_status st;
    struct job j = { 0 };
    struct pf_err why;

    pf_buf_clear(&a->key);
    pf_buf_clear(&a->fork);
    if ((st = cli_check_model(rec, a->model, err))
        || (st = cli_hidden(rec, a->model->config.width, &hidden, &j.T, err))
        || (st = pf_record_pos(rec, &j.pos, err))
        || (st = pf_record_seq(rec, "seq", &a->key, err))
        || (st = pf_record_seq(rec, "fork", &a->fork, err))
        || (st = first_layer(a, rec, &j.from, err))
        || (a->attn && (st = pf_maps_check(rec, a->heads, a->n_heads, j.T,
            j.pos + j.T, err))))
        return st;
    j.hidden = (float *)hidden;
    if (!pf_grow(&a->jobs, &a->cap_jobs, a->n_jobs + 1, sizeof *a->jobs))
        return pf_fail_mem(err);
    st = pf_kv_begin(a->cache, &j.kv, a->key.data ? a->key.data : "",
        a->key.len, fork ? a->fork.data : NULL, a->fork.len, j.pos, j.T,
        j.from, &why);
    if (st && st != PF_AGAIN) {
        const struct pf_field *seq = pf_record_field(rec, "seq");

        return seq ? pf_fail(err, st, "seq %.*s: %.300s",
            (int)(seq->len < 60 ? seq->len : 60), seq->text, why.msg)
            : pf_fail(err, st, "%s", why.msg);
    }
    if (a->attn)
        item->bytes = sizeof(float) * a->n_layers * a->n_heads * j.T
            * (j.pos + j.T);
    if (!st)
        a->jobs[a->n_jobs++] = j;
    return st;
}

static enum pf_status
mark(void *ctx, const struct pf_record *rec, struct pf_err *err)
{
    struct attend *a = ctx;
    enum pf_status st;

    if (!pf_record_field(rec, "seq"))
        return PF_OK;
    pf_buf_clear(&a->key);
    st = pf_record_seq(rec, "seq", &a->key, err);
    return st ? st : pf_kv_end(a->cache, a->key.data, a->key.len, err);
}

static enum pf_status
run_batch(struct attend *a, struct cli_item **items, struct pf_rows *rows,
    size_t n, size_t *at, struct pf_err *err)
{
    size_t from = 0, to;
    enum pf_status st = PF_OK;

    for (size_t i = 0; i < n; i++) {
        struct job *j = &a->jobs[i];
        struct pf_record *rec = &items[i]->rec;
        const size_t *layers = a->layers + j->from;
        size_t n_layers = a->n_layers - j->from;

        *at = i;
        rows[i] = (struct pf_rows){ j->hidden, j->T, j->pos, j->kv, j->from,
            NULL };
        if (a->attn)
            st = pf_maps_add(rec, layers, n_layers, a->heads, a->n_heads,
                j->T, j->pos + j->T, &rows[i].attn, err);
        if (!st)
            st = pf_record_set_i64(rec, "layer",
                (int64_t)layers[n_layers - 1] + 1, err);
        if (st)
            return st;
    }
    /* Records that start at the same layer go together. */
    for (; !st && from < n; from = to) {
        size_t first = a->jobs[from].from;

        for (to = from + 1; to < n && a->jobs[to].from == first; to++)
            ;
        *at = from;
        st = pf_blocks(a->runner, a->cache, rows + from, to - from,
            a->layers + first, a->n_layers - first, a->heads, a->n_heads, err);
    }
    return st;
}

static enum pf_status
step(void *ctx, struct cli_item **items, size_t n, size_t *at,
    struct pf_err *err)
{
    struct attend *a = ctx;
    struct pf_rows *rows = calloc(n, sizeof *rows);
    enum pf_status st = rows ? run_batch(a, items, rows, n, at, err)
        : pf_fail_mem(err);

    free(rows);
    a->n_jobs = 0;
    pf_kv_idle(a->cache);
    return st;
}

static size_t *
list(const char *name, const char *arg, size_t limit, size_t *n)
{
    size_t *all;

    if (arg)
        return cli_list(name, arg, limit, n);
    all = malloc(limit * sizeof *all);
    if (!all)
        cli_die("out of memory");
    for (*n = 0; *n < limit; ++*n)
        all[*n] = *n;
    return all;
}

int
main(int argc, char **argv)
{
    struct attend a = { .kv_mem = KV_MEM_DEFAULT };
    struct cli_filter filter = {
        .ctx = &a,
        .main_input = "hidden",
        .format = PF_BINARY,
        .pass_marks = true,
        .check = check,
        .mark = mark,
        .step = step,
    };
    const struct pf_config *c;
    struct pf_err err;
    int status;

    cli_options(argc, argv, &command, &a);
    if (a.heads_arg && !a.attn)
        cli_usage("--heads says whose weights -a adds; give -a too");
    a.model = cli_model();
    c = &a.model->config;
    a.layers = list("-l", a.layers_arg, c->layers, &a.n_layers);
    a.heads = list("--heads", a.heads_arg, c->heads, &a.n_heads);
    a.runner = cli_runner(a.model);
    if (pf_kv_cache_new(&a.cache, a.n_layers, c->width, a.kv_mem, &err))
        cli_die("%s", err.msg);
    cli_note("%zu of %zu blocks, %s kernels, %zu threads", a.n_layers,
        c->layers, pf_runner_kernels(a.runner), cli.threads);
    status = cli_run(&filter);
    pf_kv_cache_free(a.cache);
    pf_runner_free(a.runner);
    pf_model_free(a.model);
    pf_buf_fini(&a.key);
    pf_buf_fini(&a.fork);
    free(a.jobs);
    free(a.layers);
    free(a.heads);
    return status;
}
