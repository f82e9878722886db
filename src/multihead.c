/*
 * Each head's queries, keys and values are computed into an array of their
 * own, [H, T, D], as attention.h wants them: a head is a range of columns of
 * the product.  Tasks for the threads are rows of one head.
 */
#include <pipeformer/multihead.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/kernel.h>

enum {
    ROW_TASK = 128,   /* rows of one task */
    COLUMN_TASK = 96, /* columns of one task of the last product */
};

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

/* Below this many multiplications a second thread costs more than it saves. */
#define WORTH_A_THREAD 5e5

/* --- Finding the matrices --- */

static enum pf_status
find(struct pf_matrix *m, struct pf_record *rec, const char *weight,
    const char *bias, struct pf_err *err)
{
    const struct pf_tensor *t;
    char shape[128];
    enum pf_status st = pf_record_f32(rec, weight, &t, &m->w, err);

    if (st || !t)
        return st;
    if (t->ndim != 2 || t->shape[0] == 0 || t->shape[1] == 0)
        return pf_fail(err, PF_ESHAPE, "%s: has the shape %s, not [in, out]",
            weight, pf_shape_format(shape, sizeof shape, t->shape, t->ndim));
    m->in = t->shape[0];
    m->out = t->shape[1];
    st = pf_record_f32(rec, bias, &t, &m->bias, err);
    if (!st && t && (t->ndim != 1 || t->shape[0] != m->out))
        return pf_fail(err, PF_ESHAPE, "%s: has the shape %s; %s makes it "
            "[%zu]", bias,
            pf_shape_format(shape, sizeof shape, t->shape, t->ndim), weight,
            m->out);
    return st;
}

enum pf_status
pf_multihead_init(struct pf_multihead *m, struct pf_record *rec, size_t heads,
    struct pf_err *err)
{
    enum pf_status st;

    *m = (struct pf_multihead){ .heads = heads };
    if ((st = find(&m->q, rec, "wq", "bq", err))
        || (st = find(&m->k, rec, "wk", "bk", err))
        || (st = find(&m->v, rec, "wv", "bv", err))
        || (st = find(&m->o, rec, "wo", "bo", err)))
        return st;
    if (!m->q.w || !m->k.w || !m->v.w)
        return pf_fail(err, PF_ESHAPE, "no %s (wq, wk and wv are needed, wo "
            "may be there)", !m->q.w ? "wq" : !m->k.w ? "wk" : "wv");
    if (heads == 0 || m->q.out % heads)
        return pf_fail(err, PF_ESHAPE, "wq: [%zu, %zu] has no %zu heads side "
            "by side", m->q.in, m->q.out, heads);
    m->D = m->q.out / heads;
    m->kv_heads = m->k.out / m->D;
    if (m->k.out % m->D || heads % m->kv_heads)
        return pf_fail(err, PF_ESHAPE, "wk: [%zu, %zu] has no heads of %zu "
            "that %zu heads of wq can share", m->k.in, m->k.out, m->D, heads);
    if (m->v.in != m->k.in || m->v.out % m->kv_heads)
        return pf_fail(err, PF_ESHAPE, "wv: [%zu, %zu] does not go with wk "
            "[%zu, %zu], %zu heads", m->v.in, m->v.out, m->k.in, m->k.out,
            m->kv_heads);
    m->Dv = m->v.out / m->kv_heads;
    if (!pf_mul(heads, m->Dv, &m->out))
        return pf_fail_mem(err);
    if (m->o.w && m->o.in != m->out)
        return pf_fail(err, PF_ESHAPE, "wo: [%zu, %zu] does not take the %zu "
            "heads of %zu that wv makes", m->o.in, m->o.out, heads, m->Dv);
    if (m->o.w)
        m->out = m->o.out;
    return PF_OK;
}

/* --- Products --- */

/* y = x w + bias, for some columns at a time. */
struct product {
    const struct pf_kernels *kern;
    const struct pf_matrix *m;
    const float *x;
    float *y;
    size_t M;       /* rows */
    size_t columns; /* of one task */
    bool heads;     /* the columns of a task are an array of their own */
};

static void
product_task(void *ctx, size_t i)
{
    const struct product *p = ctx;
    size_t blocks = blocks_of(p->M, ROW_TASK);
    size_t n0 = i / blocks * p->columns, m0 = i % blocks * ROW_TASK;
    size_t n1 = least(n0 + p->columns, p->m->out);
    size_t ldy = p->heads ? p->columns : p->m->out;
    /* A head's first column is n0 of the matrix and 0 of its array. */
    float *y = p->y + m0 * ldy + (p->heads ? n0 * p->M - n0 : 0);

    p->kern->matmul_nn(y, ldy, p->x + m0 * p->m->in, p->m->in, p->m->w,
        PF_F32, p->m->bias, least(ROW_TASK, p->M - m0), p->m->in, p->m->out,
        n0, n1);
}

static void
product(struct pf_pool *pool, const struct pf_matrix *m, float *y,
    const float *x, size_t M, size_t columns, bool heads)
{
    struct product p = { pf_kernels_best(), m, x, y, M, columns, heads };
    size_t n = blocks_of(M, ROW_TASK) * blocks_of(m->out, columns);

    if ((double)M * (double)m->in * (double)m->out >= WORTH_A_THREAD)
        pf_pool_run(pool, product_task, &p, n);
    else
        for (size_t i = 0; i < n; i++)
            product_task(&p, i);
}

/* [H, T, D] to [T, H*D] */
static void
join(float *out, const float *x, size_t H, size_t T, size_t D)
{
    for (size_t h = 0; h < H; h++)
        for (size_t t = 0; t < T; t++, x += D)
            memcpy(out + (t * H + h) * D, x, D * sizeof *x);
}

/* --- All of it --- */

/* What is between the rows and the result; all in one piece of memory. */
struct between {
    float *q, *k, *v, *context, *joined;
};

static enum pf_status
between_new(struct between *b, const struct pf_multihead *m, size_t T,
    size_t S, struct pf_err *err)
{
    const size_t n[5][2] = { { T, m->q.out }, { S, m->k.out },
        { S, m->v.out }, { T, m->heads * m->Dv },
        { m->o.w ? T : 0, m->heads * m->Dv } };
    float **at[5] = { &b->q, &b->k, &b->v, &b->context, &b->joined };
    size_t sizes[5], sum = 0;

    for (int i = 0; i < 5; i++) {
        if (!pf_mul(n[i][0], n[i][1], &sizes[i])
            || sizes[i] > SIZE_MAX / 64)
            return pf_fail_mem(err);
        sum += sizes[i];
    }
    b->q = malloc(sum * sizeof *b->q + 1);
    if (!b->q)
        return pf_fail_mem(err);
    for (int i = 1; i < 5; i++)
        *at[i] = *at[i - 1] + sizes[i - 1];
    return PF_OK;
}

enum pf_status
pf_multihead_run(const struct pf_multihead *m, struct pf_pool *pool,
    float *out, const float *x, size_t T, const float *memory, size_t S,
    const struct pf_tensor *mask, enum pf_causal causal, double scale,
    float *weights, float *scores, struct pf_err *err)
{
    struct pf_tensor q = { .name = "q", .dtype = PF_F32, .ndim = 3,
        .shape = { m->heads, T, m->D } };
    struct pf_tensor k = { .name = "k", .dtype = PF_F32, .ndim = 3,
        .shape = { m->kv_heads, S, m->D } };
    struct pf_tensor v = { .name = "v", .dtype = PF_F32, .ndim = 3,
        .shape = { m->kv_heads, S, m->Dv } };
    struct pf_attention a;
    struct between b;
    enum pf_status st = pf_attention_plan(&a, &q, &k, &v, mask, causal, scale,
        err);

    if (!st)
        st = between_new(&b, m, T, S, err);
    if (st)
        return st;
    product(pool, &m->q, b.q, x, T, m->D, true);
    product(pool, &m->k, b.k, memory, S, m->D, true);
    product(pool, &m->v, b.v, memory, S, m->Dv, true);
    q.data = b.q;
    k.data = b.k;
    v.data = b.v;
    st = pf_attention_run(&a, pool, b.context, weights, scores, err);
    if (!st)
        join(m->o.w ? b.joined : out, b.context, m->heads, T, m->Dv);
    if (!st && m->o.w)
        product(pool, &m->o, out, b.joined, T, COLUMN_TASK, false);
    free(b.q);
    return st;
}
