/*
 * Attention over arrays, by the kernels of the models' blocks: a query goes
 * through blocks of keys and carries a running maximum and sum (online
 * softmax, Milakov and Gimelshein 2018), so the scores of a few rows and one
 * block are all that is ever held.
 *
 * The kernels want keys by groups of 16, [D][16], so k is copied into that
 * form first, each head once however many queries use it.  v lies as they
 * want it.  Then a task is some query rows of one head.
 */
#include <pipeformer/attention.h>

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/buf.h>
#include <pipeformer/kernel.h>

enum {
    QUERY_TASK = 48, /* query rows of one task */
    GROUP_TASK = 64, /* groups of keys that one task packs */
    SCAN = 4096,     /* numbers looked at together */
};

/* Below this many multiplications a second thread costs more than it saves. */
#define WORTH_A_THREAD 5e5

static size_t
least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t
blocks_of(size_t n, size_t size)
{
    return n / size + (n % size != 0);
}

/* --- Shapes --- */

/* Axis `back` from the end, 1 where there is none. */
static size_t
axis(const struct pf_tensor *t, unsigned back)
{
    return back <= t->ndim ? t->shape[t->ndim - back] : 1;
}

static enum pf_status
clash(const char *a_name, const struct pf_tensor *a, const char *b_name,
    const struct pf_tensor *b, const char *what, struct pf_err *err)
{
    char as[128], bs[128];

    return pf_fail(err, PF_ESHAPE, "%s has the shape %s, %s %s: %s", a_name,
        pf_shape_format(as, sizeof as, a->shape, a->ndim), b_name,
        pf_shape_format(bs, sizeof bs, b->shape, b->ndim), what);
}

static enum pf_status
check_one(const char *name, const struct pf_tensor *t, const char *axes,
    struct pf_err *err)
{
    char shape[128];

    if (t->dtype != PF_F32)
        return pf_fail(err, PF_EFORMAT, "%s: is of type %s, not F32", name,
            pf_dtype_name(t->dtype));
    if (t->ndim < 2 || t->ndim > 4)
        return pf_fail(err, PF_ESHAPE, "%s: has the shape %s, not %s with 2 "
            "to 4 dimensions", name,
            pf_shape_format(shape, sizeof shape, t->shape, t->ndim), axes);
    return PF_OK;
}

/* *size becomes what axes of *size and n broadcast to; false if they clash. */
static bool
broadcast(size_t *size, size_t n)
{
    if (*size == 1)
        *size = n;
    return n == 1 || n == *size;
}

static enum pf_status
leading_axes(struct pf_attention *a, struct pf_err *err)
{
    const struct pf_tensor *q = a->q, *k = a->k, *v = a->v;
    size_t kv;

    a->ndim = q->ndim;
    if (k->ndim > a->ndim)
        a->ndim = k->ndim;
    if (v->ndim > a->ndim)
        a->ndim = v->ndim;
    a->batch = axis(q, 4);
    if (!broadcast(&a->batch, axis(k, 4)))
        return clash("q", q, "k", k, "leading axes that do not go together",
            err);
    if (!broadcast(&a->batch, axis(v, 4)))
        return axis(q, 4) == a->batch
            ? clash("q", q, "v", v, "leading axes that do not go together",
                err)
            : clash("k", k, "v", v, "leading axes that do not go together",
                err);
    kv = axis(k, 3);
    if (!broadcast(&kv, axis(v, 3)))
        return clash("k", k, "v", v, "heads that do not go together", err);
    a->heads = axis(q, 3) == 1 ? kv : axis(q, 3);
    if (a->heads && (kv == 0 || a->heads % kv))
        return clash("q", q, axis(k, 3) == kv ? "k" : "v",
            axis(k, 3) == kv ? k : v,
            "q's heads are no multiple of the others", err);
    if (a->heads == 0 && kv > 1)
        return clash("q", q, "k", k, "heads that do not go together", err);
    return PF_OK;
}

static enum pf_status
check_mask(const struct pf_attention *a, struct pf_err *err)
{
    const struct pf_tensor *m = a->mask;
    size_t shape[4];
    unsigned ndim = pf_attention_shape(a, a->S, shape);
    char is[128], wants[128];

    if (m->dtype != PF_BOOL && m->dtype != PF_F32)
        return pf_fail(err, PF_EFORMAT, "mask: is of type %s, neither BOOL "
            "nor of floats", pf_dtype_name(m->dtype));
    for (unsigned back = 1; back <= m->ndim; back++)
        if (back > ndim || (axis(m, back) != 1
                && axis(m, back) != shape[ndim - back]))
            return pf_fail(err, PF_ESHAPE, "mask has the shape %s, which does "
                "not broadcast to the scores' %s",
                pf_shape_format(is, sizeof is, m->shape, m->ndim),
                pf_shape_format(wants, sizeof wants, shape, ndim));
    return PF_OK;
}

enum pf_status
pf_attention_plan(struct pf_attention *a, const struct pf_tensor *q,
    const struct pf_tensor *k, const struct pf_tensor *v,
    const struct pf_tensor *mask, enum pf_causal causal, double scale,
    struct pf_err *err)
{
    enum pf_status st;

    *a = (struct pf_attention){ .q = q, .k = k, .v = v, .mask = mask,
        .causal = causal };
    if ((st = check_one("q", q, "[..., T, D]", err))
        || (st = check_one("k", k, "[..., S, D]", err))
        || (st = check_one("v", v, "[..., S, Dv]", err)))
        return st;
    a->T = axis(q, 2);
    a->D = axis(q, 1);
    a->S = axis(k, 2);
    a->Dv = axis(v, 1);
    if (axis(k, 1) != a->D)
        return clash("q", q, "k", k, "their last axes, D, differ", err);
    if (axis(v, 2) != a->S)
        return clash("k", k, "v", v, "their keys, S, differ in number", err);
    if (a->D == 0 || a->S == 0)
        return clash("q", q, "k", k, a->S ? "D is 0" : "there are no keys",
            err);
    if (a->Dv == 0)
        return clash("k", k, "v", v, "Dv is 0", err);
    if ((st = leading_axes(a, err)))
        return st;
    if (mask && causal)
        return pf_fail(err, PF_EFORMAT, "the record has a mask, and --causal "
            "is another; put both into the mask");
    a->scale = (float)(isnan(scale) ? 1 / sqrt((double)a->D) : scale);
    return mask ? check_mask(a, err) : PF_OK;
}

unsigned
pf_attention_shape(const struct pf_attention *a, size_t last, size_t shape[4])
{
    const size_t all[4] = { a->batch, a->heads, a->T, last };

    memcpy(shape, all + 4 - a->ndim, a->ndim * sizeof *shape);
    return a->ndim;
}

/* --- Values --- */

/* Among the n <= SCAN numbers at p. */
static bool
all_finite(const float *p, size_t n)
{
    uint32_t bits, some = 0;

    for (size_t i = 0; i < n; i++) {
        memcpy(&bits, p + i, sizeof bits);
        /* An exponent of all ones carries into the sign. */
        some |= (bits & 0x7fffffff) + 0x00800000;
    }
    return some >> 31 == 0;
}

static bool
all_below_infinity(const float *p, size_t n)
{
    unsigned some = 0;

    for (size_t i = 0; i < n; i++)
        some |= !(p[i] < INFINITY);
    return some == 0;
}

static enum pf_status
check_values(const char *name, const struct pf_tensor *t,
    bool (*good)(const float *p, size_t n), struct pf_err *err)
{
    const float *p = t->data;
    size_t n = pf_tensor_count(t), i = 0, index[PF_MAX_DIMS];
    char place[128];

    while (i < n && good(p + i, least(n - i, SCAN)))
        i += least(n - i, SCAN);
    if (i == n)
        return PF_OK;
    while (good(p + i, 1))
        i++;
    n = i;
    for (unsigned d = t->ndim; d-- > 0; n /= t->shape[d])
        index[d] = n % t->shape[d];
    return pf_fail(err, PF_ERANGE, "%s: %s at %s", name,
        isnan(p[i]) ? "NaN" : "an infinity",
        pf_shape_format(place, sizeof place, index, t->ndim));
}

/* --- The work --- */

struct work {
    const struct pf_attention *a;
    const struct pf_kernels *kern;
    struct pf_kv_head kv; /* of the first head */
    float *packed;        /* k: [heads of k][groups][D][16] */
    size_t groups;        /* of a head */
    size_t tiles;         /* tasks of a head */
    float *context, *weights, *scores;
};

static void
run(struct pf_pool *pool, void (*task)(void *, size_t), struct work *w,
    size_t n, double cost)
{
    if (cost >= WORTH_A_THREAD)
        pf_pool_run(pool, task, w, n);
    else
        for (size_t i = 0; i < n; i++)
            task(w, i);
}

/* GROUP_TASK groups of one head of k; keys that are missing are zero. */
static void
pack_task(void *ctx, size_t i)
{
    const struct work *w = ctx;
    size_t D = w->a->D, S = w->a->S;
    size_t tasks = blocks_of(w->groups, GROUP_TASK), head = i / tasks;
    size_t g = i % tasks * GROUP_TASK, end = least(g + GROUP_TASK, w->groups);
    const float *k = (const float *)w->a->k->data + head * S * D;
    float *to = w->packed + (head * w->groups + g) * D * PF_KV_GROUP;

    for (; g < end; g++) {
        size_t j0 = g * PF_KV_GROUP, n = least(S - j0, PF_KV_GROUP);

        for (size_t d = 0; d < D; d++, to += PF_KV_GROUP)
            for (size_t j = 0; j < PF_KV_GROUP; j++)
                to[j] = j < n ? k[(j0 + j) * D + d] : 0;
    }
}

/* Which [rows, columns] of an operand the head h of batch b uses. */
static size_t
matrix(const struct pf_attention *a, const struct pf_tensor *t, size_t b,
    size_t h)
{
    size_t heads = axis(t, 3);

    return (axis(t, 4) == 1 ? 0 : b) * heads + h / (a->heads / heads);
}

/* The part of the mask for rows from t on of a head. */
static struct pf_attn_mask
mask_of(const struct pf_attention *a, size_t b, size_t h, size_t t)
{
    const struct pf_tensor *m = a->mask;
    size_t T = axis(m, 2), S = axis(m, 1);
    struct pf_attn_mask mask = { .type = m->dtype, .row = T == 1 ? 0 : S,
        .column = S > 1 };
    size_t head = axis(m, 3) == 1 ? 0 : h;
    size_t at = ((axis(m, 4) == 1 ? 0 : b) * axis(m, 3) + head) * T * S
        + t * mask.row;

    mask.data = (const char *)m->data + at * pf_dtype_size(m->dtype);
    return mask;
}

/* How many keys row t sees. */
static size_t
seen_of(const struct pf_attention *a, size_t t)
{
    size_t n = a->causal == PF_CAUSAL_NONE ? a->S : t + 1;

    if (a->causal == PF_CAUSAL_LOWER_RIGHT)
        n = n + a->S > a->T ? n + a->S - a->T : 0;
    return least(n, a->S);
}

/* The scores of n rows from t on, scaled and masked: [n, S]. */
static void
scores(const struct work *w, float *out, const float *q, const float *k,
    size_t b, size_t h, size_t t, size_t n)
{
    const struct pf_attention *a = w->a;
    struct pf_attn_mask mask = { 0 };

    w->kern->matmul_nt(out, a->S, q, a->D, k, PF_F32, NULL, n, a->D, a->S, 0,
        a->S);
    if (a->mask)
        mask = mask_of(a, b, h, t);
    for (size_t i = 0; i < n; i++, out += a->S) {
        for (size_t j = 0; j < a->S; j++)
            out[j] *= a->scale;
        for (size_t j = seen_of(a, t + i); j < a->S; j++)
            out[j] = -INFINITY;
        for (size_t j = 0; mask.data && j < a->S; j++) {
            size_t at = i * mask.row + j * mask.column;

            if (mask.type == PF_F32)
                out[j] += ((const float *)mask.data)[at];
            else if (!((const unsigned char *)mask.data)[at])
                out[j] = -INFINITY;
        }
    }
}

/* n rows of a head from t on, without a mask. */
static void
unmasked(const struct work *w, float *context, float *weights, const float *q,
    const struct pf_kv_head *kv, size_t t, size_t n)
{
    const struct pf_attention *a = w->a;
    size_t D = a->D, Dv = a->Dv, S = a->S, m, seen, step;

    for (; n; n -= m, t += m) {
        seen = seen_of(a, t);
        step = a->causal != PF_CAUSAL_NONE && seen < S;
        if (seen == 0) {
            m = least(n, a->T - S - t);
            memset(context, 0, m * Dv * sizeof *context);
            if (weights)
                memset(weights, 0, m * S * sizeof *weights);
        } else {
            m = step ? least(n, S - seen + 1) : n;
            w->kern->attn(context, Dv, q, D, kv, m, D, Dv, seen, step,
                a->scale);
            if (weights)
                w->kern->attn_weights(weights, S, q, D, kv, m, D, S, seen,
                    step, a->scale);
        }
        context += m * Dv;
        q += m * D;
        weights = weights ? weights + m * S : NULL;
    }
}

static void
rows_task(void *ctx, size_t i)
{
    const struct work *w = ctx;
    const struct pf_attention *a = w->a;
    size_t bh = i / w->tiles, t = i % w->tiles * QUERY_TASK;
    size_t n = least(QUERY_TASK, a->T - t);
    size_t b = bh / a->heads, h = bh % a->heads;
    size_t km = matrix(a, a->k, b, h), vm = matrix(a, a->v, b, h);
    const float *q = (const float *)a->q->data
        + (matrix(a, a->q, b, h) * a->T + t) * a->D;
    float *context = w->context + (bh * a->T + t) * a->Dv;
    float *weights = w->weights ? w->weights + (bh * a->T + t) * a->S : NULL;
    struct pf_kv_head kv = w->kv;

    kv.k_off = km * w->groups * a->D * PF_KV_GROUP;
    kv.v_off = vm * a->S * a->Dv;
    if (w->scores)
        scores(w, w->scores + (bh * a->T + t) * a->S, q,
            (const float *)a->k->data + km * a->S * a->D, b, h, t, n);
    if (a->mask) {
        struct pf_attn_mask mask = mask_of(a, b, h, t);

        w->kern->attn_masked(context, a->Dv, q, a->D, &kv, &mask, n, a->D,
            a->Dv, a->S, a->scale);
        if (weights)
            w->kern->attn_masked_weights(weights, a->S, q, a->D, &kv, &mask,
                n, a->D, a->S, a->scale);
    } else {
        unmasked(w, context, weights, q, &kv, t, n);
    }
}

/* k in groups, and where the groups of the first head begin. */
static enum pf_status
pack(struct work *w, const void ***groups, struct pf_pool *pool,
    struct pf_err *err)
{
    const struct pf_attention *a = w->a;
    size_t heads = axis(a->k, 4) * axis(a->k, 3), floats;

    w->groups = blocks_of(a->S, PF_KV_GROUP);
    if (!pf_mul(w->groups * PF_KV_GROUP, a->D, &floats)
        || !pf_mul(floats, heads, &floats) || floats > SIZE_MAX / 8
        || w->groups > SIZE_MAX / 4 / sizeof **groups)
        return pf_fail_mem(err);
    *groups = malloc(2 * w->groups * sizeof **groups);
    w->packed = pf_memory_new(floats * sizeof *w->packed);
    if (!*groups || !w->packed)
        return pf_fail_mem(err);
    for (size_t g = 0; g < w->groups; g++) {
        (*groups)[g] = w->packed + g * a->D * PF_KV_GROUP;
        (*groups)[w->groups + g] = (const float *)a->v->data
            + g * PF_KV_GROUP * a->Dv;
    }
    w->kv = (struct pf_kv_head){ *groups, *groups + w->groups, 0, 0,
        PF_F32 };
    run(pool, pack_task, w, heads * blocks_of(w->groups, GROUP_TASK),
        4.0 * (double)floats);
    return PF_OK;
}

enum pf_status
pf_attention_run(const struct pf_attention *a, struct pf_pool *pool,
    float *context, float *weights, float *scores_out, struct pf_err *err)
{
    struct work w = { .a = a, .kern = pf_kernels_best(), .context = context,
        .weights = weights, .scores = scores_out };
    const void **groups = NULL;
    size_t n;
    enum pf_status st;

    if ((st = check_values("q", a->q, all_finite, err))
        || (st = check_values("k", a->k, all_finite, err))
        || (st = check_values("v", a->v, all_finite, err)))
        return st;
    if (a->mask && a->mask->dtype == PF_F32
        && (st = check_values("mask", a->mask, all_below_infinity, err)))
        return st;
    n = a->batch * a->heads;
    if (n == 0 || a->T == 0)
        return PF_OK;
    st = pack(&w, &groups, pool, err);
    if (!st) {
        w.tiles = blocks_of(a->T, QUERY_TASK);
        run(pool, rows_task, &w, n * w.tiles, (double)n * (double)a->T
            * (double)a->S * (double)(a->D + a->Dv));
    }
    free(groups);
    free(w.packed);
    return st;
}

/* --- Averaging --- */

void
pf_running_mean(float *out, const float *x, size_t n, size_t T, size_t C)
{
    double sums[64];

    for (size_t i = 0; i < n; i++, x += T * C, out += T * C) {
        for (size_t c = 0, m; c < C; c += m) {
            m = least(C - c, sizeof sums / sizeof *sums);
            memset(sums, 0, sizeof sums);
            for (size_t t = 0; t < T; t++) {
                for (size_t j = 0; j < m; j++) {
                    sums[j] += (double)x[t * C + c + j];
                    out[t * C + c + j] = (float)(sums[j] / (double)(t + 1));
                }
            }
        }
    }
}

void
pf_running_mean_weights(float *w, size_t n, size_t T)
{
    for (size_t i = 0; i < n * T; i++)
        for (size_t t = i % T, j = 0; j < T; j++)
            *w++ = j <= t ? 1 / (float)(t + 1) : 0;
}
