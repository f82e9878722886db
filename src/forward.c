/*
 * A model's blocks, layer by layer over all rows that were given: one matrix
 * product serves every sequence, attention goes by sequence and head.  A block
 * of GPT-2 normalizes what goes into attention and MLP, one of BERT what came
 * out and was added.
 */
#include "forward-private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    if (!st && model->config.encoder)
        st = pf_kv_cache_new(&r->own, 1, model->config.width, SIZE_MAX, err);
    if (st) {
        pf_runner_free(r);
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
    pf_kv_cache_free(r->own);
    free(r->scratch);
    free(r);
}

const char *
pf_runner_kernels(const struct pf_runner *r)
{
    return r->kern->name;
}

void
pf_sight_show(const struct pf_sight *s, enum pf_point point, size_t m, size_t k,
    float *data, size_t width, size_t stride)
{
    size_t start = 0;

    if (!pf_sight_wants(s, point))
        return;
    for (size_t i = 0; i < s->n; start += s->rows[i++].T) {
        size_t from = m > start ? m : start;
        size_t to = pf_least(m + k, start + s->rows[i].T);

        if (from < to)
            s->probe->at(s->probe->ctx, i, s->layer, point, 0, from - start,
                to - from, data + (from - m) * stride, width, stride);
    }
}

/* --- One layer --- */

/* All rows, and room for what becomes of them in a layer. */
struct work {
    struct pf_runner *r;
    const struct pf_block *block;
    const struct pf_sight *see;
    size_t M;
    float *x, *z;        /* [M, C] */
    float *qkv, *inner;  /* [M, 3C]; [PF_ROWS, F]: the same memory */
    float *norm;         /* [PF_ROWS, C] */
    struct pf_layer_attention *attention; /* room for each sequence */
};

/* Rows m .. m + k - 1 as they go into attention. */
static const float *
attention_input(const struct work *w, size_t m, size_t k)
{
    const struct pf_config *c = &w->r->m->config;
    float *x = w->x + m * c->width;

    if (c->encoder)
        return x;
    pf_run_norm(w->r, w->norm, x, k, &w->block->ln1);
    pf_sight_show(w->see, PF_LN1, m, k, w->norm, c->width, c->width);
    return w->norm;
}

/* Rows m .. m + k - 1 up to query, key and value. */
static void
project(const struct work *w, size_t m, size_t k)
{
    const float *in = attention_input(w, m, k);
    size_t C = w->r->m->config.width, column = 0;

    for (size_t i = 0; i < 3 && w->block->qkv[i].w; i++) {
        pf_run_linear(w->r, &w->block->qkv[i], w->qkv + m * 3 * C + column,
            3 * C, in, k, false);
        column += w->block->qkv[i].out;
    }
}

/* Rows m .. m + k - 1: what attention gave, added. */
static enum pf_status
add_attention(const struct work *w, size_t m, size_t k, struct pf_err *err)
{
    const struct pf_config *c = &w->r->m->config;
    size_t C = c->width;
    float *x = w->x + m * C, *z = w->z + m * C, *out = w->norm;
    enum pf_status st;

    pf_run_linear(w->r, &w->block->proj, out, C, z, k, false);
    st = pf_sight_result(w->r, w->see, &w->block->proj, m, k, z, out, err);
    if (st)
        return st;
    pf_sight_show(w->see, PF_ATTN_OUT, m, k, out, C, C);
    w->r->kern->add(x, out, k * C);
    pf_sight_show(w->see, PF_RESID_MID, m, k, x, C, C);
    if (c->encoder) {
        pf_run_norm(w->r, x, x, k, &w->block->ln1);
        pf_sight_show(w->see, PF_LN1, m, k, x, C, C);
    }
    return PF_OK;
}

static void
mlp(const struct work *w, size_t m, size_t k)
{
    const struct pf_config *c = &w->r->m->config;
    size_t C = c->width, F = c->inner;
    float *x = w->x + m * C, *in = x, *out = w->norm;
    bool pre = pf_sight_wants(w->see, PF_MLP_PRE);

    if (!c->encoder) {
        in = w->norm;
        pf_run_norm(w->r, in, x, k, &w->block->ln2);
        pf_sight_show(w->see, PF_LN2, m, k, in, C, C);
    }
    pf_run_linear(w->r, &w->block->fc, w->inner, F, in, k, !pre);
    if (pre) {
        pf_sight_show(w->see, PF_MLP_PRE, m, k, w->inner, F, F);
        pf_run_act(w->r, w->inner, k, F);
    }
    pf_sight_show(w->see, PF_MLP_POST, m, k, w->inner, F, F);
    pf_run_linear(w->r, &w->block->fc_proj, out, C, w->inner, k, false);
    pf_sight_show(w->see, PF_MLP_OUT, m, k, out, C, C);
    w->r->kern->add(x, out, k * C);
    pf_sight_show(w->see, PF_RESID_POST, m, k, x, C, C);
    if (c->encoder) {
        pf_run_norm(w->r, x, x, k, &w->block->ln2);
        pf_sight_show(w->see, PF_LN2, m, k, x, C, C);
    }
}

/* --- All of them --- */

/* What pf_blocks was given. */
struct call {
    struct pf_kv_cache *cache;
    const struct pf_rows *rows;
    size_t n;
    const size_t *layers;
    size_t n_layers;
    const size_t *heads;
    size_t n_heads;
    unsigned parts;
    const struct pf_probe *probe;
};

/* An encoder's keys and values: of this layer and batch only. */
static enum pf_status
own_cache(const struct work *w, struct pf_layer_attention *a,
    struct pf_err *err)
{
    struct pf_kv *own = NULL;
    enum pf_status st = pf_kv_begin(w->r->own, &own,
        (const char *)&a->sequence, sizeof a->sequence, NULL, 0, 0, a->T, 0,
        err);

    a->cache = w->r->own;
    a->kv = own;
    a->slot = 0;
    return st;
}

/* What attention is given in the l-th of the layers: *count sequences. */
static enum pf_status
gather(const struct call *call, const struct work *w, size_t l, size_t *count,
    struct pf_err *err)
{
    const struct pf_config *c = &w->r->m->config;
    float scale = c->scale_attn ? 1 / sqrtf((float)c->head_dim) : 1;
    size_t n = 0, row = 0;
    enum pf_status st = PF_OK;

    if (c->scale_by_layer)
        scale /= (float)(w->see->layer + 1);
    for (size_t i = 0; !st && i < call->n; row += call->rows[i++].T) {
        const struct pf_rows *rows = &call->rows[i];
        struct pf_layer_attention *a = &w->attention[n];

        if (!rows->T)
            continue;
        *a = (struct pf_layer_attention){ .r = w->r, .cache = call->cache,
            .kv = rows->kv, .slot = rows->first_slot + l, .pos = rows->pos,
            .T = rows->T, .qkv = w->qkv + row * 3 * c->width,
            .out = w->z + row * c->width, .scale = scale,
            .heads = call->heads, .n_heads = call->n_heads, .sight = w->see,
            .sequence = i };
        if (rows->attn)
            a->maps = rows->attn + l * a->n_heads * a->T * (a->pos + a->T);
        if (c->encoder)
            st = own_cache(w, a, err);
        n++;
    }
    *count = n;
    return st;
}

/* From x to z; the l-th of the layers. */
static enum pf_status
attend(const struct call *call, const struct work *w, size_t l,
    struct pf_err *err)
{
    const struct pf_linear *qkv = w->block->qkv;
    size_t C = w->r->m->config.width, n;
    enum pf_status st = gather(call, w, l, &n, err);

    if (!st && !w->see->want && pf_can_step(w->r, n, w->M, qkv)) {
        pf_run_step(w->attention, n, qkv, w->qkv, attention_input(w, 0, n));
        return PF_OK;
    }
    for (size_t m = 0; !st && m < w->M; m += PF_ROWS)
        project(w, m, pf_least(PF_ROWS, w->M - m));
    for (int i = 0; !st && i < 3; i++)
        pf_sight_show(w->see, (enum pf_point)(PF_Q + i), 0, w->M,
            w->qkv + (size_t)i * C, C, 3 * C);
    if (!st)
        st = pf_run_attention(w->attention, n, err);
    if (w->r->own)
        pf_kv_idle(w->r->own);
    return st;
}

static unsigned
wanted(const struct pf_probe *probe, size_t layer)
{
    unsigned want = 0;

    for (int i = 0; probe && i < PF_N_POINTS; i++)
        want |= (unsigned)probe->wants(probe->ctx, layer, (enum pf_point)i)
            << i;
    return want;
}

/* The l-th of the layers that were asked for. */
static enum pf_status
layer(const struct call *call, struct work *w, size_t l, struct pf_err *err)
{
    size_t C = w->r->m->config.width, number = call->layers[l];
    const struct pf_sight see = { call->probe, call->rows, call->n, number,
        wanted(call->probe, number) };
    enum pf_status st = PF_OK;

    w->see = &see;
    w->block = &w->r->m->blocks[number];
    pf_sight_show(&see, PF_RESID_PRE, 0, w->M, w->x, C, C);
    if (call->parts & PF_PART_ATTN) {
        st = attend(call, w, l, err);
        if (st)
            return st;
        pf_sight_show(&see, PF_Z, 0, w->M, w->z, C, C);
    }
    for (size_t m = 0; !st && m < w->M; m += PF_ROWS) {
        size_t k = pf_least(PF_ROWS, w->M - m);

        if (call->parts & PF_PART_ATTN)
            st = add_attention(w, m, k, err);
        if (!st && call->parts & PF_PART_MLP)
            mlp(w, m, k);
    }
    return st;
}

enum pf_status
pf_blocks(struct pf_runner *r, struct pf_kv_cache *cache,
    struct pf_rows *rows, size_t n, const size_t *layers, size_t n_layers,
    const size_t *heads, size_t n_heads, unsigned parts,
    const struct pf_probe *probe, struct pf_err *err)
{
    const struct pf_config *c = &r->m->config;
    const struct call call = { cache, rows, n, layers, n_layers, heads,
        n_heads, parts, probe };
    struct work w = { .r = r };
    size_t C = c->width, wide, floats;
    enum pf_status st = PF_OK;
    float *x;

    for (size_t i = 0; i < n; i++) {
        if (c->encoder && rows[i].pos)
            return pf_fail(err, PF_ESTATE, "an encoder takes a sequence at "
                "once, from position 0 on");
        w.M += rows[i].T;
    }
    if (w.M == 0)
        return PF_OK;
    if (!pf_mul(w.M, 6 * C, &floats) || floats > SIZE_MAX / 16)
        return pf_fail_mem(err);
    wide = c->inner * pf_least(w.M, PF_ROWS);
    if (wide < 3 * C * w.M)
        wide = 3 * C * w.M;
    st = pf_run_scratch(r, 1, 2 * C * w.M + wide + C * pf_least(w.M, PF_ROWS),
        err);
    if (st)
        return st;
    w.attention = calloc(n, sizeof *w.attention);
    if (!w.attention)
        return pf_fail_mem(err);
    w.x = x = r->scratch;
    w.z = w.x + w.M * C;
    w.qkv = w.inner = w.z + w.M * C;
    w.norm = w.qkv + wide;
    for (size_t i = 0; i < n; x += rows[i++].T * C)
        if (rows[i].T)
            memcpy(x, rows[i].x, rows[i].T * C * sizeof *x);
    for (size_t l = 0; !st && l < n_layers; l++)
        st = layer(&call, &w, l, err);
    x = w.x;
    for (size_t i = 0; !st && i < n; x += rows[i++].T * C)
        if (rows[i].T)
            memcpy(rows[i].x, x, rows[i].T * C * sizeof *x);
    for (size_t i = 0; r->own && i < n; i++)
        pf_kv_end(r->own, (const char *)&i, sizeof i, NULL);
    free(w.attention);
    return st;
}
