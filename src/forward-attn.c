/*
 * Attention of a model's layer, and what a probe sees of it.
 *
 * Keys and values go into the KV cache, then tasks of (sequence, head, query
 * rows) run on the threads; the scores are never held.  The key and value of a
 * single row go there with the task of their head, which reads them next; if no
 * sequence has more rows, tasks begin with the product that these come from.
 *
 * A probe that wants scores or the pattern gets them head by head, some rows
 * at a time, computed beside that; and only rows that it changes are put
 * together again from what it left, so that looking alone changes no bit.
 */
#include "forward-private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { QUERY_TASK = 48 }; /* query rows of one task */

/* --- Without a probe --- */

/* All sequences of a batch, for the threads. */
struct crowd {
    const struct pf_layer_attention *a;
    size_t n;
};

/* The sequence that the task is of, and which of its own tasks it is. */
static const struct pf_layer_attention *
find(const struct crowd *c, size_t *task, bool store)
{
    size_t lo = 0, hi = c->n;

    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;

        if ((store ? c->a[mid].first_store : c->a[mid].first_task) <= *task)
            lo = mid;
        else
            hi = mid;
    }
    *task -= store ? c->a[lo].first_store : c->a[lo].first_task;
    return &c->a[lo];
}

/* One head's keys and values of rows t .. end - 1. */
static void
store(const struct pf_layer_attention *a, size_t head, size_t t, size_t end)
{
    size_t C = a->r->m->config.width, D = a->r->m->config.head_dim;
    const float *q = a->qkv + head * D;

    for (; t < end; t++)
        pf_kv_store_head(a->cache, a->kv, a->slot, a->pos + t, head, D,
            q + t * 3 * C + C, q + t * 3 * C + 2 * C);
}

/* Head by head: what is stored to of one stays in the first level cache. */
static void
store_task(void *ctx, size_t i)
{
    const struct pf_layer_attention *a = find(ctx, &i, true);
    size_t t = i * PF_ROW_TASK, end = pf_least(t + PF_ROW_TASK, a->T);

    for (size_t h = 0; h < a->r->m->config.heads; h++)
        store(a, h, t, end);
}

/* Some query rows of one head, for the kernels. */
struct rows {
    size_t head, t, n;
    const float *q;
    struct pf_kv_head kv;
    size_t seen, step; /* keys of the first row, more of each further one */
};

static size_t
tiles(const struct pf_layer_attention *a)
{
    return pf_blocks_of(a->T, QUERY_TASK);
}

static struct rows
rows_of(const struct pf_layer_attention *a, size_t task)
{
    const struct pf_config *c = &a->r->m->config;
    size_t head = task / tiles(a), t = task % tiles(a) * QUERY_TASK;

    return (struct rows){
        .head = head,
        .t = t,
        .n = pf_least(QUERY_TASK, a->T - t),
        .q = a->qkv + t * 3 * c->width + head * c->head_dim,
        .kv = pf_kv_head(a->cache, a->kv, a->slot, head, c->head_dim),
        .seen = c->encoder ? a->S : a->pos + t + 1,
        .step = !c->encoder,
    };
}

static void
attend(const struct pf_layer_attention *a, size_t task)
{
    const struct rows r = rows_of(a, task);
    size_t C = a->r->m->config.width, D = a->r->m->config.head_dim;

    if (a->T == 1)
        store(a, r.head, 0, 1);
    a->r->kern->attn(a->out + r.t * C + r.head * D, C, r.q, 3 * C, &r.kv, r.n,
        D, D, r.seen, r.step, a->scale);
    for (size_t h = 0; a->maps && h < a->n_heads; h++)
        if (a->heads[h] == r.head)
            a->r->kern->attn_weights(a->maps + (h * a->T + r.t) * a->S, a->S,
                r.q, 3 * C, &r.kv, r.n, D, a->S, r.seen, r.step, a->scale);
}

static void
attention_task(void *ctx, size_t i)
{
    const struct pf_layer_attention *a = find(ctx, &i, false);

    attend(a, i);
}

/* --- Single rows of sequences, from the product on --- */

/*
 * A task is of some heads: their queries, keys and values, and attention with
 * what is still near.  Between the two, no thread waits for another.
 */
struct step {
    const struct pf_layer_attention *a;
    size_t n;
    const struct pf_linear *qkv;
    float *y;
    const float *x;
    size_t heads; /* of one task */
};

static void
step_task(void *ctx, size_t i)
{
    const struct step *s = ctx;
    const struct pf_runner *r = s->a->r;
    size_t C = r->m->config.width, D = r->m->config.head_dim;
    size_t from = i * s->heads;
    size_t to = pf_least(from + s->heads, r->m->config.heads);

    for (size_t column = 0; column < 3 * C; column += C)
        pf_run_columns(r, s->qkv, s->y, 3 * C, s->x, s->n, column + from * D,
            column + to * D);
    for (size_t k = 0; k < s->n; k++)
        for (size_t h = from; h < to; h++)
            attend(&s->a[k], h);
}

bool
pf_can_step(const struct pf_runner *r, size_t n, size_t M,
    const struct pf_linear *qkv)
{
    const struct pf_config *c = &r->m->config;

    return n == M && M <= PF_ROWS && !c->encoder
        && pf_run_shared(r, M * qkv->in * qkv->out)
        && c->heads % pf_pool_threads(r->pool) == 0;
}

void
pf_run_step(struct pf_layer_attention *a, size_t n,
    const struct pf_linear *qkv, float *y, const float *x)
{
    struct pf_runner *r = a->r;
    const struct pf_config *c = &r->m->config;
    struct step s = { a, n, qkv, y, x, pf_run_heads(r, qkv, n) };

    for (size_t i = 0; i < n; i++)
        a[i].S = a[i].pos + 1;
    pf_pool_run(r->pool, step_task, &s, pf_blocks_of(c->heads, s.heads));
}

/* --- Scores and pattern --- */

/* s[n, S]: scaled, and -inf where a query does not see a key. */
static void
scores(const struct pf_layer_attention *a, const struct rows *r, float *s)
{
    size_t C = a->r->m->config.width, D = a->r->m->config.head_dim;

    for (size_t j = 0; j < a->S; j += PF_KV_GROUP)
        a->r->kern->matmul_nn(s + j, a->S, r->q, 3 * C,
            (const char *)r->kv.k[j / PF_KV_GROUP] + r->kv.k_off
                * pf_dtype_size(r->kv.type), r->kv.type, NULL, r->n, D,
            PF_KV_GROUP, 0, pf_least(PF_KV_GROUP, a->S - j));
    for (size_t t = 0; t < r->n; t++)
        for (size_t j = 0; j < a->S; j++)
            s[t * a->S + j] = j < r->seen + t * r->step
                ? s[t * a->S + j] * a->scale : -INFINITY;
}

/* Zeros for a row of -inf alone. */
static void
softmax(const struct pf_kernels *kern, float *p, const float *s, size_t n)
{
    float max = -INFINITY;
    double sum = 0;

    for (size_t j = 0; j < n; j++)
        max = s[j] > max ? s[j] : max;
    for (size_t j = 0; j < n; j++)
        p[j] = max == -INFINITY && !isnan(s[j]) ? -INFINITY
            : (s[j] - max) * 1.44269504f;
    kern->exp2(p, p, n);
    for (size_t j = 0; j < n; j++)
        sum += (double)p[j];
    for (size_t j = 0; sum != 0 && j < n; j++)
        p[j] = (float)((double)p[j] / sum);
}

/* z of one row: the values weighted by p, in the order of the keys. */
static void
weigh(const struct pf_layer_attention *a, const struct rows *r, float *z,
    const float *p)
{
    size_t D = a->r->m->config.head_dim;

    for (size_t d = 0; d < D; d++)
        z[d] = 0;
    for (size_t j = 0; j < a->S; j++) {
        const void *v = r->kv.v[j / PF_KV_GROUP];
        size_t at = r->kv.v_off + j % PF_KV_GROUP * D;

        for (size_t d = 0; p[j] != 0 && d < D; d++)
            z[d] += p[j] * (r->kv.type == PF_F16
                ? pf_f16_to_f32(((const uint16_t *)v)[at + d])
                : ((const float *)v)[at + d]);
    }
}

/* Which of n rows of `width` floats differ in a bit. */
static void
find_changed(bool *changed, const float *was, const float *is, size_t n,
    size_t width)
{
    for (size_t t = 0; t < n; t++)
        changed[t] |= memcmp(was + t * width, is + t * width,
            width * sizeof *was) != 0;
}

/* One task's scores and pattern; s and p are [QUERY_TASK, S]. */
static void
show_pattern(const struct pf_layer_attention *a, size_t task, float *s,
    float *p)
{
    const struct pf_sight *see = a->sight;
    const struct pf_probe *probe = see->probe;
    const struct rows r = rows_of(a, task);
    size_t C = a->r->m->config.width, D = a->r->m->config.head_dim, S = a->S;
    bool changed[QUERY_TASK] = { false }, any = false;

    if (pf_sight_wants(see, PF_SCORES)) {
        scores(a, &r, s);
        memcpy(p, s, r.n * S * sizeof *s);
        any = probe->at(probe->ctx, a->sequence, see->layer, PF_SCORES,
            r.head, r.t, r.n, s, S, S);
        if (any)
            find_changed(changed, p, s, r.n, S);
    }
    if (!any && !pf_sight_wants(see, PF_PATTERN))
        return;
    a->r->kern->attn_weights(p, S, r.q, 3 * C, &r.kv, r.n, D, S, r.seen,
        r.step, a->scale);
    for (size_t t = 0; t < r.n; t++)
        if (changed[t])
            softmax(a->r->kern, p + t * S, s + t * S, S);
    if (pf_sight_wants(see, PF_PATTERN)) {
        memcpy(s, p, r.n * S * sizeof *s);
        if (probe->at(probe->ctx, a->sequence, see->layer, PF_PATTERN, r.head,
                r.t, r.n, p, S, S))
            find_changed(changed, s, p, r.n, S);
    }
    for (size_t t = 0; t < r.n; t++) {
        if (!changed[t])
            continue;
        weigh(a, &r, a->out + (r.t + t) * C + r.head * D, p + t * S);
        for (size_t h = 0; a->maps && h < a->n_heads; h++)
            if (a->heads[h] == r.head)
                memcpy(a->maps + (h * a->T + r.t + t) * S, p + t * S,
                    S * sizeof *p);
    }
}

/* Shows one sequence's scores and pattern, if the probe wants them. */
static enum pf_status
show(const struct pf_layer_attention *a, struct pf_err *err)
{
    size_t floats;
    float *s;

    if (!pf_sight_wants(a->sight, PF_SCORES)
        && !pf_sight_wants(a->sight, PF_PATTERN))
        return PF_OK;
    s = pf_mul(a->S, 2 * QUERY_TASK * sizeof *s, &floats) ? malloc(floats)
        : NULL;
    if (!s)
        return pf_fail_mem(err);
    for (size_t i = 0; i < a->r->m->config.heads * tiles(a); i++)
        show_pattern(a, i, s, s + QUERY_TASK * a->S);
    free(s);
    return PF_OK;
}

enum pf_status
pf_run_attention(struct pf_layer_attention *a, size_t n, struct pf_err *err)
{
    struct crowd crowd = { a, n };
    size_t stores = 0, tasks = 0, stored = 0, work = 0;
    enum pf_status st = PF_OK;

    for (size_t i = 0; i < n; i++) {
        const struct pf_config *c = &a[i].r->m->config;

        a[i].S = a[i].pos + a[i].T;
        a[i].first_store = stores;
        a[i].first_task = tasks;
        stores += a[i].T == 1 ? 0 : pf_blocks_of(a[i].T, PF_ROW_TASK);
        tasks += c->heads * tiles(&a[i]);
        stored += a[i].T * c->width * 4;
        work += 2 * a[i].T * a[i].S * c->width;
    }
    if (n == 0)
        return PF_OK;
    pf_run_tasks(a->r, store_task, &crowd, stores, stored);
    pf_run_tasks(a->r, attention_task, &crowd, tasks, work);
    for (size_t i = 0; i < n && !st; i++)
        st = show(&a[i], err);
    return st;
}

/* --- What each head adds --- */

/*
 * The k rows of one sequence, n a time: a row of z becomes one a head, with
 * the others' part zero, so that one product gives each head's share.
 */
static void
show_heads(struct pf_runner *r, const struct pf_sight *s,
    const struct pf_linear *proj, size_t sequence, size_t first, size_t k,
    const float *z, float *out, float *apart, float *result)
{
    const struct pf_config *c = &r->m->config;
    size_t C = c->width, H = c->heads, D = c->head_dim;
    struct pf_linear bare = *proj;

    bare.bias = NULL;
    memset(apart, 0, H * C * sizeof *apart);
    for (size_t t = 0; t < k; t++, z += C, out += C) {
        bool changed = false;

        for (size_t h = 0; h < H; h++)
            memcpy(apart + h * C + h * D, z + h * D, D * sizeof *z);
        pf_run_linear(r, &bare, result, C, apart, H, false);
        memcpy(result + H * C, result, H * C * sizeof *result);
        if (s->probe->at(s->probe->ctx, sequence, s->layer, PF_RESULT, 0,
                first + t, 1, result, H * C, H * C))
            find_changed(&changed, result + H * C, result, 1, H * C);
        if (!changed)
            continue;
        memcpy(out, result, C * sizeof *out);
        for (size_t h = 1; h < H; h++)
            r->kern->add(out, result + h * C, C);
        if (proj->bias)
            r->kern->add(out, proj->bias, C);
    }
}

enum pf_status
pf_sight_result(struct pf_runner *r, const struct pf_sight *s,
    const struct pf_linear *proj, size_t m, size_t k, const float *z,
    float *out, struct pf_err *err)
{
    const struct pf_config *c = &r->m->config;
    size_t H = c->heads, C = c->width, start = 0, floats;
    float *apart;

    if (!pf_sight_wants(s, PF_RESULT))
        return PF_OK;
    apart = pf_mul(H, 3 * C * sizeof *apart, &floats) ? malloc(floats) : NULL;
    if (!apart)
        return pf_fail_mem(err);
    for (size_t i = 0; i < s->n; start += s->rows[i++].T) {
        size_t from = m > start ? m : start;
        size_t to = pf_least(m + k, start + s->rows[i].T);

        if (from < to)
            show_heads(r, s, proj, i, from - start, to - from,
                z + (from - m) * C, out + (from - m) * C, apart,
                apart + H * C);
    }
    free(apart);
    return PF_OK;
}
