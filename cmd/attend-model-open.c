/* A model is opened with its patches and its keys and values, and closed. */
#include "attend-model.h"

#include <stdlib.h>
#include <string.h>

#include <pipeformer/forward.h>
#include <pipeformer/model.h>
#include <pipeformer/probe.h>

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

void
attend_read_all(const char *option, const char *file,
    const struct pf_model *model, attend_take *take, void *ctx)
{
    const char *name = cli_file_name(file);
    struct pf_reader r = PF_READER_INIT;
    struct pf_record rec = PF_RECORD_INIT;
    unsigned long long number = 0;
    enum pf_status st;
    struct pf_err err;
    struct pf_in in;

    if (pf_in_open(&in, file, &err))
        cli_die("%s: %s: %s", option, name, err.msg);
    r.in = &in;
    for (;;) {
        st = pf_reader_next(&r, &rec, NULL, &err);
        if (st == PF_END)
            break;
        number++;
        if (st || cli_check_model(&rec, model, &err) || take(ctx, &rec, &err))
            cli_die("%s: %s:%llu: %s", option, name, number, err.msg);
    }
    pf_record_fini(&rec);
    pf_reader_fini(&r);
    pf_in_fini(&in);
}

static enum pf_status
patch(void *ctx, struct pf_record *rec, struct pf_err *err)
{
    return pf_hooks_patch(ctx, rec, err);
}

static void
load_patch(struct attend_model *m, const char *file)
{
    struct pf_err err;

    attend_read_all("--patch", file, m->model, patch, m->hooks);
    if (pf_hooks_patch_end(m->hooks, &err))
        cli_die("--patch: %s: %s", cli_file_name(file), err.msg);
}

static void
make_hooks(struct attend_model *m)
{
    struct pf_err err;

    if (pf_hooks_new(&m->hooks, &m->model->config, m->layers, m->n_layers,
            m->heads, m->n_heads, m->parts, &err))
        cli_die("%s", err.msg);
    if (m->taps.len && pf_hooks_tap(m->hooks, m->taps.data, &err))
        cli_usage("--tap: %s", err.msg);
    if (m->zeros.len && pf_hooks_zero(m->hooks, m->zeros.data, &err))
        cli_usage("--zero: %s", err.msg);
    if (m->heads_list && !m->attn && !pf_hooks_tap_heads(m->hooks))
        cli_usage("--heads says which heads -a or --tap shows; give -a, or "
            "--tap something that is there for each head");
    for (size_t i = 0; i < m->n_patches; i++)
        load_patch(m, m->patches[i]);
}

/* The KV cache, and what the files about it bring. */
static void
make_cache(struct attend_model *m)
{
    const struct pf_config *c = &m->model->config;
    const struct pf_kv_plan plan = { m->layers, m->n_layers, c->heads };
    struct pf_err err;

    if (c->encoder && m->kv.by)
        cli_usage("%s: %s is an encoder, which keeps no keys and values",
            m->kv.by, cli.model);
    if (c->encoder || !(m->parts & PF_PART_ATTN))
        return;
    if (pf_kv_cache_new(&m->cache, m->n_layers, c->width, m->kv_mem, &err))
        cli_die("%s", err.msg);
    attend_kv_open(&m->kv, m->cache, &plan, m->model);
}

enum pf_status
attend_model_open(struct attend_model *m, struct pf_err *err)
{
    const struct pf_config *c;
    enum pf_status st;

    if (m->model)
        return PF_OK;
    st = cli_open_model(&m->model, err);
    if (st)
        return st;
    c = &m->model->config;
    m->layers = list("-l", m->layers_list, c->layers, &m->n_layers);
    m->heads = list("--heads", m->heads_list, c->heads, &m->n_heads);
    m->runner = cli_runner(m->model);
    make_hooks(m);
    make_cache(m);
    cli_note("%zu of %zu blocks, %s kernels, %zu threads", m->n_layers,
        c->layers, pf_runner_kernels(m->runner), cli.threads);
    return PF_OK;
}

enum pf_status
attend_model_close(struct attend_model *m, struct pf_err *err)
{
    return m->cache ? attend_kv_close(&m->kv, err) : PF_OK;
}

int
attend_model_end(struct attend_model *m, int status)
{
    size_t n = m->hooks && !status ? pf_hooks_unused(m->hooks) : 0;

    if (!attend_kv_commit(&m->kv))
        status = 1;
    if (n)
        cli_warn("--patch: %zu record%s met no row: no record has that seq, or "
            "no row that position", n, n == 1 ? "" : "s");
    return status;
}

void
attend_model_free(struct attend_model *m)
{
    pf_hooks_free(m->hooks);
    attend_kv_free(&m->kv);
    if (m->cache)
        pf_kv_cache_free(m->cache);
    pf_runner_free(m->runner);
    if (m->model)
        pf_model_free(m->model);
    pf_buf_fini(&m->taps);
    pf_buf_fini(&m->zeros);
    pf_buf_fini(&m->key);
    pf_buf_fini(&m->fork);
    free(m->patches);
    free(m->jobs);
    free(m->layers);
    free(m->heads);
}
