/*
 * The layers that work row by row: linear ones, norms, activations.  Work is
 * cut into tasks for the threads along columns or rows, never along a sum.
 */
#include "forward-private.h"

#include <math.h>
#include <stdlib.h>

enum {
    COLUMN_TASK = 192, /* columns of one task at least: of less, a row is too
                          short to be read fast */
    FEW = 32,          /* rows that wait for the weights */
    TASK_BYTES = 8 << 20, /* of weights of [out, in]: one task more a thread */
};

/* Below this many multiplications a second thread costs more than it saves. */
#define WORTH_A_THREAD ((size_t)1 << 17)

enum pf_status
pf_run_scratch(struct pf_runner *r, size_t rows, size_t width,
    struct pf_err *err)
{
    size_t n, bytes;

    if (!pf_mul(rows, width, &n) || !pf_mul(n, sizeof(float), &bytes)
        || bytes > SIZE_MAX / 2)
        return pf_fail_mem(err);
    if (n <= r->cap)
        return PF_OK;
    free(r->scratch);
    r->cap = 0;
    r->scratch = pf_memory_new(bytes);
    if (!r->scratch)
        return pf_fail_mem(err);
    r->cap = n;
    return PF_OK;
}

bool
pf_run_shared(const struct pf_runner *r, size_t work)
{
    return work >= WORTH_A_THREAD && pf_pool_threads(r->pool) > 1;
}

void
pf_run_tasks(struct pf_runner *r, void (*task)(void *, size_t), void *ctx,
    size_t n, size_t work)
{
    if (pf_run_shared(r, work))
        pf_pool_run(r->pool, task, ctx, n);
    else
        for (size_t i = 0; i < n; i++)
            task(ctx, i);
}

/* The model's activation of n floats, in place. */
static void
activate(const struct pf_runner *r, float *x, size_t n)
{
    switch (r->m->config.act) {
    case PF_GELU_TANH:
        r->kern->gelu_tanh(x, n);
        break;
    case PF_GELU:
        r->kern->gelu(x, n);
        break;
    case PF_RELU:
        for (size_t k = 0; k < n; k++)
            x[k] = x[k] > 0 ? x[k] : 0;
        break;
    case PF_SILU:
        for (size_t k = 0; k < n; k++)
            x[k] = x[k] / (1 + expf(-x[k]));
        break;
    case PF_QUICK_GELU:
        for (size_t k = 0; k < n; k++)
            x[k] = x[k] / (1 + expf(-1.702f * x[k]));
    }
}

void
pf_run_columns(const struct pf_runner *r, const struct pf_linear *l, float *y,
    size_t ldy, const float *x, size_t M, size_t n0, size_t n1)
{
    (l->out_in ? r->kern->matmul_nt : r->kern->matmul_nn)(y, ldy, x, l->in,
        l->w, l->type, l->bias, M, l->in, l->out, n0, n1);
}

struct product {
    const struct pf_runner *r;
    const struct pf_linear *lin;
    float *y;
    size_t ldy;
    const float *x;
    size_t M, columns; /* columns of one task */
    bool act;
};

static void
product_task(void *ctx, size_t i)
{
    const struct product *p = ctx;
    size_t n0 = i * p->columns, n1 = pf_least(n0 + p->columns, p->lin->out);

    pf_run_columns(p->r, p->lin, p->y, p->ldy, p->x, p->M, n0, n1);
    for (size_t m = 0; p->act && m < p->M; m++)
        activate(p->r, p->y + m * p->ldy + n0, n1 - n0);
}

/*
 * How many: many even out what threads find to do, and when they come; few let
 * a row of weights of [in, out] be read in long runs.
 */
static size_t
tasks(const struct pf_runner *r, const struct pf_linear *lin, size_t M)
{
    size_t n = M > 1 ? 2 : 1;

    if (lin->out_in && M <= FEW)
        n = 4 + lin->in * lin->out * pf_dtype_size(lin->type) / TASK_BYTES;
    else if (M > FEW || pf_pool_sleeps(r->pool))
        n = 4;
    return n * pf_pool_threads(r->pool);
}

size_t
pf_run_heads(const struct pf_runner *r, const struct pf_linear *qkv, size_t M)
{
    const struct pf_config *c = &r->m->config;
    size_t n = pf_blocks_of(c->heads, tasks(r, qkv, M));
    size_t least = pf_blocks_of(COLUMN_TASK, c->head_dim);

    n = n < least ? least : n;
    return pf_least(n, pf_blocks_of(c->heads, pf_pool_threads(r->pool)));
}

void
pf_run_linear(struct pf_runner *r, const struct pf_linear *lin, float *y,
    size_t ldy, const float *x, size_t M, bool act)
{
    struct product p = { r, lin, y, ldy, x, M, lin->out, act };
    size_t work = M * lin->in * lin->out;

    if (pf_run_shared(r, work)) {
        p.columns = pf_blocks_of(lin->out, tasks(r, lin, M));
        if (p.columns < COLUMN_TASK)
            p.columns = COLUMN_TASK;
        p.columns = pf_blocks_of(p.columns, 48) * 48;
    }
    pf_run_tasks(r, product_task, &p, pf_blocks_of(lin->out, p.columns),
        work);
}

struct row_work {
    struct pf_runner *r;
    float *y;
    const float *x;
    size_t M, width;
    const struct pf_norm *norm;
};

static void
norm_task(void *ctx, size_t i)
{
    const struct row_work *w = ctx;
    size_t end = pf_least((i + 1) * PF_ROW_TASK, w->M);

    for (size_t m = i * PF_ROW_TASK; m < end; m++)
        w->r->kern->layernorm(w->y + m * w->width, w->x + m * w->width,
            w->norm->gain, w->norm->bias, w->width, w->r->m->config.eps);
}

void
pf_run_norm(struct pf_runner *r, float *y, const float *x, size_t M,
    const struct pf_norm *norm)
{
    struct row_work w = { r, y, x, M, r->m->config.width, norm };

    pf_run_tasks(r, norm_task, &w, pf_blocks_of(M, PF_ROW_TASK),
        M * w.width * 4);
}

static void
act_task(void *ctx, size_t i)
{
    const struct row_work *w = ctx;
    size_t from = i * PF_ROW_TASK, rows = pf_least(PF_ROW_TASK, w->M - from);

    activate(w->r, w->y + from * w->width, rows * w->width);
}

void
pf_run_act(struct pf_runner *r, float *x, size_t M, size_t width)
{
    struct row_work w = { r, x, NULL, M, width, NULL };

    pf_run_tasks(r, act_task, &w, pf_blocks_of(M, PF_ROW_TASK),
        M * width * 16);
}
