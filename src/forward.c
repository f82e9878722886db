/*
 * GPT-2's blocks, layer by layer over all rows that were given: one matrix
 * product serves every sequence, attention goes by sequence and head.  Work is
 * cut into tasks for the threads along columns, rows, heads, never along a
 * sum.
 */
#include <pipeformer/forward.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/kernel.h>
#include <pipeformer/pool.h>

struct pf_runner {
    const struct pf_model *m;
    const struct pf_kernels *kern;
    struct pf_pool *pool;
    float *scratch;
    size_t cap; /* floats */
};

enum {
    ROWS = 256,         /* rows of the MLP's inner width held at a time */
    ROW_TASK = 16,      /* rows of one task */
    QUERY_TASK = 48,    /* query rows of one task of attention */
    COLUMN_TASK = 96,   /* columns of one task at least */
};

/* Below this many multiplications a second thread costs more than it saves. */
#define WORTH_A_THREAD ((size_t)1 << 19)

enum pf_status
pf_runner_new(struct pf_runner **out, const struct pf_model *model,
    size_t threads, struct pf_err *err)
{
    struct pf_runner *r = calloc(1, sizeof *r);
    enum pf_status st;

    *out = NULL;
    if (!r)
        return pf_fail_mem(err);
    r->m = model;
    r->kern = pf_kernels_best();
    st = pf_pool_new(&r->pool, threads, err);
    if (st) {
        free(r);
        return st;
    }
    *out = r;
    return PF_OK;
}

void
pf_runner_free(struct pf_runner *r)
{
    if (!r)
        return;
    pf_pool_free(r->pool);
    free(r->scratch);
    free(r);
}

const char *
pf_runner_kernels(const struct pf_runner *r)
{
    return r->kern->name;
}

/* Scratch for `rows` rows of `width` floats; what it held is lost. */
static enum pf_status
scratch(struct pf_runner *r, size_t rows, size_t width, struct pf_err *err)
{
    size_t n, bytes;

    if (!pf_mul(rows, width, &n) || !pf_mul(n, sizeof(float), &bytes)
        || bytes > SIZE_MAX / 2)
        return pf_fail_mem(err);
    if (n <= r->cap)
        return PF_OK;
    free(r->scratch);
    r->cap = 0;
    r->scratch = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!r->scratch)
        return pf_fail_mem(err);
    r->cap = n;
    return PF_OK;
}

/* Runs tasks on the threads if `work` is worth it, else here. */
static void
run(struct pf_runner *r, void (*task)(void *, size_t), void *ctx, size_t n,
    size_t work)
{
    if (work >= WORTH_A_THREAD && n > 1)
        pf_pool_run(r->pool, task, ctx, n);
    else
        for (size_t i = 0; i < n; i++)
            task(ctx, i);
}

static size_t
blocks_of(size_t n, size_t size)
{
    return (n + size - 1) / size;
}

static size_t
least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* --- Linear layers: y = x W + b --- */

struct product {
    const struct pf_kernels *kern;
    const struct pf_linear *lin;
    float *y;
    const float *x;
    size_t M, columns; /* columns of one task */
};

static void
product_task(void *ctx, size_t i)
{
    const struct product *p = ctx;
    const struct pf_linear *l = p->lin;
    size_t n0 = i * p->columns, n1 = least(n0 + p->columns, l->out);

    (l->out_in ? p->kern->matmul_nt : p->kern->matmul_nn)(p->y, l->out, p->x,
        l->in, l->w, l->type, l->bias, p->M, l->in, l->out, n0, n1);
}

/* y is [M, out], x [M, in]. */
static void
linear(struct pf_runner *r, const struct pf_linear *lin, float *y,
    const float *x, size_t M)
{
    struct product p = { r->kern, lin, y, x, M, lin->out };
    size_t threads = pf_pool_threads(r->pool), work = M * lin->in * lin->out;

    if (threads > 1 && work >= WORTH_A_THREAD) {
        p.columns = blocks_of(lin->out, 4 * threads);
        if (p.columns < COLUMN_TASK)
            p.columns = COLUMN_TASK;
        p.columns = blocks_of(p.columns, 48) * 48;
    }
    run(r, product_task, &p, blocks_of(lin->out, p.columns), work);
}

/* --- Things done row by row --- */

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
    size_t end = least((i + 1) * ROW_TASK, w->M);

    for (size_t m = i * ROW_TASK; m < end; m++)
        w->r->kern->layernorm(w->y + m * w->width, w->x + m * w->width,
            w->norm->gain, w->norm->bias, w->width, w->r->m->config.eps);
}

static void
layernorm(struct pf_runner *r, float *y, const float *x, size_t M,
    const struct pf_norm *norm)
{
    struct row_work w = { r, y, x, M, r->m->config.width, norm };

    run(r, norm_task, &w, blocks_of(M, ROW_TASK), M * w.width * 4);
}

static void
act_task(void *ctx, size_t i)
{
    const struct row_work *w = ctx;
    size_t from = i * ROW_TASK * w->width;
    size_t n = least((i + 1) * ROW_TASK, w->M) * w->width - from;
    float *x = w->y + from;

    switch (w->r->m->config.act) {
    case PF_GELU_TANH:
        w->r->kern->gelu_tanh(x, n);
        break;
    case PF_GELU:
        for (size_t k = 0; k < n; k++)
            x[k] = 0.5f * x[k] * (1 + erff(x[k] * 0.70710678f));
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

static void
activate(struct pf_runner *r, float *x, size_t M, size_t width)
{
    struct row_work w = { r, x, NULL, M, width, NULL };

    run(r, act_task, &w, blocks_of(M, ROW_TASK), M * width * 16);
}

/* --- Attention --- */

/* One layer's attention over all sequences; tasks are (head, query rows). */
struct attention {
    struct pf_runner *r;
    const struct pf_kv_cache *cache;
    const struct pf_rows *rows; /* the sequence at hand */
    const float *qkv;           /* its rows, [T, 3C] */
    float *out;                 /* [T, C] */
    size_t slot;
    float scale;
    float *maps; /* [n_heads, T, S] or NULL */
    const size_t *heads;
    size_t n_heads, tiles;
};

static void
store_task(void *ctx, size_t i)
{
    const struct attention *a = ctx;
    size_t C = a->r->m->config.width;
    size_t end = least((i + 1) * ROW_TASK, a->rows->T);

    for (size_t t = i * ROW_TASK; t < end; t++)
        pf_kv_store(a->cache, a->rows->kv, a->slot, a->rows->pos + t,
            a->r->m->config.heads, a->qkv + t * 3 * C + C,
            a->qkv + t * 3 * C + 2 * C);
}

static void
attention_task(void *ctx, size_t i)
{
    const struct attention *a = ctx;
    const struct pf_config *c = &a->r->m->config;
    size_t C = c->width, D = c->head_dim, head = i / a->tiles;
    size_t t = i % a->tiles * QUERY_TASK;
    size_t T = least(QUERY_TASK, a->rows->T - t), S;
    struct pf_kv_head kv = pf_kv_head(a->cache, a->rows->kv, a->slot, head,
        D);
    const float *q = a->qkv + t * 3 * C + head * D;

    a->r->kern->attn(a->out + t * C + head * D, C, q, 3 * C, &kv, T, D, D,
        a->rows->pos + t + 1, 1, a->scale);
    if (!a->maps)
        return;
    S = a->rows->pos + a->rows->T;
    for (size_t h = 0; h < a->n_heads; h++)
        if (a->heads[h] == head)
            a->r->kern->attn_weights(
                a->maps + (h * a->rows->T + t) * S, S, q, 3 * C, &kv, T, D, S,
                a->rows->pos + t + 1, 1, a->scale);
}

static void
attend(struct attention *a)
{
    const struct pf_config *c = &a->r->m->config;
    size_t T = a->rows->T, S = a->rows->pos + T;

    run(a->r, store_task, a, blocks_of(T, ROW_TASK), T * c->width * 4);
    a->tiles = blocks_of(T, QUERY_TASK);
    run(a->r, attention_task, a, c->heads * a->tiles, 2 * T * S * c->width);
}

enum pf_status
pf_blocks(struct pf_runner *r, struct pf_kv_cache *cache,
    struct pf_rows *rows, size_t n, const size_t *layers, size_t n_layers,
    const size_t *heads, size_t n_heads, struct pf_err *err)
{
    const struct pf_config *c = &r->m->config;
    size_t C = c->width, F = c->inner, M = 0, wide, floats;
    float *x, *q, *norm, *ctx, *inner;
    enum pf_status st;

    for (size_t i = 0; i < n; i++)
        M += rows[i].T;
    if (M == 0)
        return PF_OK;
    /* x and ctx [M, C], qkv [M, 3C], norm [ROWS, C]; the MLP's inner rows,
     * ROWS of them at a time, lie where qkv did. */
    if (!pf_mul(M, 6 * C, &floats) || floats > SIZE_MAX / 16)
        return pf_fail_mem(err);
    wide = F * least(M, ROWS);
    if (wide < 3 * C * M)
        wide = 3 * C * M;
    st = scratch(r, 1, 2 * C * M + wide + C * least(M, ROWS), err);
    if (st)
        return st;
    x = r->scratch;
    ctx = x + M * C;
    q = inner = ctx + M * C;
    norm = q + wide;
    M = 0;
    for (size_t i = 0; i < n; i++) {
        memcpy(x + M * C, rows[i].x, rows[i].T * C * sizeof *x);
        M += rows[i].T;
    }
    for (size_t l = 0; l < n_layers; l++) {
        const struct pf_block *b = &r->m->blocks[layers[l]];
        struct attention a = { .r = r, .cache = cache, .qkv = q, .out = ctx,
            .scale = c->scale_attn ? 1 / sqrtf((float)c->head_dim) : 1,
            .heads = heads, .n_heads = n_heads };

        if (c->scale_by_layer)
            a.scale /= (float)(layers[l] + 1);
        for (size_t m = 0; m < M; m += ROWS) {
            size_t k = least(ROWS, M - m);

            layernorm(r, norm, x + m * C, k, &b->ln1);
            linear(r, &b->qkv, q + m * 3 * C, norm, k);
        }
        for (size_t i = 0; i < n; i++) {
            a.rows = &rows[i];
            a.slot = rows[i].first_slot + l;
            a.maps = rows[i].attn ? rows[i].attn
                + l * n_heads * rows[i].T * (rows[i].pos + rows[i].T) : NULL;
            attend(&a);
            a.qkv += rows[i].T * 3 * C;
            a.out += rows[i].T * C;
        }
        for (size_t m = 0; m < M; m += ROWS) {
            size_t k = least(ROWS, M - m);

            linear(r, &b->proj, norm, ctx + m * C, k);
            r->kern->add(x + m * C, norm, k * C);
            layernorm(r, norm, x + m * C, k, &b->ln2);
            linear(r, &b->fc, inner, norm, k);
            activate(r, inner, k, F);
            linear(r, &b->fc_proj, norm, inner, k);
            r->kern->add(x + m * C, norm, k * C);
        }
    }
    for (size_t i = 0; i < n; i++) {
        memcpy(rows[i].x, x, rows[i].T * C * sizeof *x);
        x += rows[i].T * C;
    }
    return PF_OK;
}

enum pf_status
pf_embed(const struct pf_model *m, float *out, const uint32_t *ids, size_t T,
    size_t pos, bool positions, struct pf_err *err)
{
    const struct pf_config *c = &m->config;
    size_t C = c->width, size = pf_dtype_size(m->wte_type);
    size_t pos_size = pf_dtype_size(m->wpe_type);
    float add[256];

    if (positions && T && (pos > c->positions || T > c->positions - pos))
        return pf_fail(err, PF_ERANGE, "position %zu is beyond the model's "
            "window of %zu", pos + T - 1, c->positions);
    for (size_t t = 0; t < T; t++, out += C) {
        if (ids[t] >= c->vocab)
            return pf_fail(err, PF_ERANGE, "ids: %u at %zu, but the model's "
                "vocabulary is %zu", ids[t], t, c->vocab);
        pf_to_f32(out, (const char *)m->wte + ids[t] * C * size, m->wte_type,
            C);
        if (!positions)
            continue;
        for (size_t i = 0; i < C; i += 256) {
            size_t n = least(256, C - i);

            pf_to_f32(add, (const char *)m->wpe + ((pos + t) * C + i)
                * pos_size, m->wpe_type, n);
            for (size_t k = 0; k < n; k++)
                out[i + k] += add[k];
        }
    }
    return PF_OK;
}

enum pf_status
pf_unembed(struct pf_runner *r, float *logits, const float *const *x,
    size_t M, bool norm, struct pf_err *err)
{
    size_t C = r->m->config.width;
    enum pf_status st = scratch(r, M, C, err);

    if (st)
        return st;
    for (size_t m = 0; m < M; m++)
        memcpy(r->scratch + m * C, x[m], C * sizeof *r->scratch);
    if (norm)
        layernorm(r, r->scratch, r->scratch, M, &r->m->ln_f);
    linear(r, &r->m->head, logits, r->scratch, M);
    return PF_OK;
}

size_t
pf_first_nonfinite(const float *x, size_t n)
{
    size_t i = 0;

    for (; i < n; i++)
        if (!isfinite(x[i]))
            break;
    return i;
}
