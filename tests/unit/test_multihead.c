/*
 * Attention over rows by bare matrices against a plain one in double: heads,
 * shared key heads, memory, biases, masks; and matrices that do not fit.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/kernel.h>
#include <pipeformer/multihead.h>

static uint64_t seed = 1;

static float
uniform(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(seed >> 32) * 0x1p-31f;
}

static const float *
add(struct pf_record *rec, const char *name, size_t rows, size_t columns)
{
    struct pf_tensor *t = pf_record_put(rec, name, PF_F32,
        rows ? 2 : 1, rows ? (size_t[]){ rows, columns }
        : (size_t[]){ columns }, NULL);

    assert_non_null(t);
    for (size_t i = 0; i < (rows ? rows : 1) * columns; i++)
        ((float *)t->data)[i] = uniform() / 2;
    return t->data;
}

static double *
zeros(size_t n)
{
    double *p = calloc(n, sizeof *p);

    assert_non_null(p);
    return p;
}

static double *
times(const double *x, const struct pf_matrix *m, size_t rows)
{
    double *y = zeros(rows * m->out);

    for (size_t t = 0; t < rows; t++)
        for (size_t n = 0; n < m->out; n++) {
            y[t * m->out + n] = m->bias ? (double)m->bias[n] : 0;
            for (size_t i = 0; i < m->in; i++)
                y[t * m->out + n] += x[t * m->in + i]
                    * (double)m->w[i * m->out + n];
        }
    return y;
}

static double *
widen(const float *x, size_t n)
{
    double *y = zeros(n);

    for (size_t i = 0; i < n; i++)
        y[i] = (double)x[i];
    return y;
}

/* The plain one; causal is upper-left or none. */
static double *
plain(const struct pf_multihead *m, const float *x, size_t T,
    const float *memory, size_t S, bool causal, double *weights)
{
    double *x64 = widen(x, T * m->q.in), *y64 = widen(memory, S * m->k.in);
    double *q = times(x64, &m->q, T), *k = times(y64, &m->k, S);
    double *v = times(y64, &m->v, S), *z = zeros(T * m->heads * m->Dv), *out;

    for (size_t h = 0; h < m->heads; h++) {
        size_t kh = h / (m->heads / m->kv_heads);

        for (size_t t = 0; t < T; t++) {
            double *w = weights + (h * T + t) * S, sum = 0;
            size_t seen = causal && t + 1 < S ? t + 1 : S;

            for (size_t j = 0; j < seen; j++) {
                double s = 0;

                for (size_t d = 0; d < m->D; d++)
                    s += q[t * m->q.out + h * m->D + d]
                        * k[j * m->k.out + kh * m->D + d];
                sum += w[j] = exp(s / sqrt((double)m->D));
            }
            for (size_t j = 0; j < seen; j++) {
                w[j] /= sum;
                for (size_t d = 0; d < m->Dv; d++)
                    z[(t * m->heads + h) * m->Dv + d] += w[j]
                        * v[j * m->v.out + kh * m->Dv + d];
            }
        }
    }
    out = m->o.w ? times(z, &m->o, T) : z;
    if (m->o.w)
        free(z);
    free(x64);
    free(y64);
    free(q);
    free(k);
    free(v);
    return out;
}

static void
close_all(const float *is, const double *want, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)is[i] - want[i]) <= 1e-5 + 1e-5 * fabs(want[i])))
            fail_msg("%s %zu: %.9g, not %.9g", what, i, (double)is[i],
                want[i]);
}

static void
check(size_t C, size_t Cm, size_t heads, size_t kv, size_t D, size_t Dv,
    size_t Co, bool bias, size_t T, size_t S, bool causal)
{
    struct pf_record rec = PF_RECORD_INIT;
    struct pf_multihead m;
    struct pf_pool *pool;
    struct pf_err err;
    const float *x = add(&rec, "x", T, C);
    const float *memory = S ? add(&rec, "y", S, Cm) : x;
    float *out, *w, *first, *first_w;
    double *want, *want_w;
    const struct pf_kernels *k;

    add(&rec, "wq", C, heads * D);
    add(&rec, "wk", Cm, kv * D);
    add(&rec, "wv", Cm, kv * Dv);
    if (Co)
        add(&rec, "wo", heads * Dv, Co);
    if (bias) {
        add(&rec, "bq", 0, heads * D);
        add(&rec, "bk", 0, kv * D);
        add(&rec, "bv", 0, kv * Dv);
        add(&rec, "bo", 0, Co);
    }
    S = S ? S : T;
    if (pf_multihead_init(&m, &rec, heads, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(m.kv_heads, kv);
    assert_int_equal(m.D, D);
    assert_int_equal(m.Dv, Dv);
    assert_int_equal(m.out, Co ? Co : heads * Dv);
    want_w = zeros(heads * T * S);
    want = plain(&m, x, T, memory, S, causal, want_w);
    first = calloc(T * m.out, sizeof *out);
    first_w = calloc(heads * T * S, sizeof *w);
    out = calloc(T * m.out, sizeof *out);
    w = calloc(heads * T * S, sizeof *w);
    assert_true(first && first_w && out && w);
    for (size_t threads = 1; threads < 4; threads += 2) {
        assert_int_equal(pf_pool_new(&pool, threads, NULL), PF_OK);
        for (size_t i = 0; (k = pf_kernels_list(i)); i++) {
            setenv("PIPEFORMER_KERNEL", k->name, 1);
            if (pf_multihead_run(&m, pool, out, x, T, memory, S, NULL,
                    causal ? PF_CAUSAL_UPPER_LEFT : PF_CAUSAL_NONE, NAN, w,
                    NULL, &err))
                fail_msg("%s", err.msg);
            if (threads == 1 && i == 0) {
                memcpy(first, out, T * m.out * sizeof *out);
                memcpy(first_w, w, heads * T * S * sizeof *w);
            }
            assert_memory_equal(out, first, T * m.out * sizeof *out);
            assert_memory_equal(w, first_w, heads * T * S * sizeof *w);
        }
        pf_pool_free(pool);
    }
    unsetenv("PIPEFORMER_KERNEL");
    close_all(out, want, T * m.out, "out");
    close_all(w, want_w, heads * T * S, "weight");
    free(first);
    free(first_w);
    free(out);
    free(w);
    free(want);
    free(want_w);
    pf_record_fini(&rec);
}

static void
test_against_plain(void **ctx)
{
    (void)ctx;
    check(6, 6, 1, 1, 4, 3, 0, false, 5, 0, true);
    check(8, 8, 4, 4, 2, 2, 8, true, 7, 0, false);
    check(8, 8, 4, 2, 2, 5, 3, true, 7, 0, true);
    check(5, 9, 3, 1, 4, 4, 5, true, 3, 11, false);
    check(1, 1, 1, 1, 1, 1, 1, false, 1, 1, true);
    check(48, 48, 6, 3, 16, 16, 100, true, 200, 0, true);
    check(48, 32, 2, 2, 40, 24, 0, false, 150, 300, false);
}

/* The mask is that of each head's scores. */
static void
test_mask(void **ctx)
{
    struct pf_record rec = PF_RECORD_INIT;
    struct pf_multihead m;
    struct pf_pool *pool;
    const float *x = add(&rec, "x", 4, 6);
    const uint8_t may[4][4] = { { 1 }, { 1, 1 }, { 1, 1, 1 },
        { 1, 1, 1, 1 } };
    struct pf_tensor mask = { .name = "mask", .dtype = PF_BOOL, .ndim = 2,
        .shape = { 4, 4 }, .data = may };
    float a[4 * 6], b[4 * 6], scores[2 * 4 * 4];
    struct pf_err err;

    (void)ctx;
    add(&rec, "wq", 6, 6);
    add(&rec, "wk", 6, 6);
    add(&rec, "wv", 6, 6);
    assert_int_equal(pf_multihead_init(&m, &rec, 2, NULL), PF_OK);
    assert_int_equal(pf_pool_new(&pool, 1, NULL), PF_OK);
    assert_int_equal(pf_multihead_run(&m, pool, a, x, 4, x, 4, &mask,
        PF_CAUSAL_NONE, NAN, NULL, scores, NULL), PF_OK);
    assert_int_equal(pf_multihead_run(&m, pool, b, x, 4, x, 4, NULL,
        PF_CAUSAL_UPPER_LEFT, NAN, NULL, NULL, NULL), PF_OK);
    assert_memory_equal(a, b, sizeof a);
    for (size_t i = 0; i < 32; i++)
        assert_true(!isinf(scores[i]) == (i % 4 <= i / 4 % 4));
    mask.shape[1] = 3;
    assert_int_equal(pf_multihead_run(&m, pool, a, x, 4, x, 4, &mask,
        PF_CAUSAL_NONE, NAN, NULL, NULL, &err), PF_ESHAPE);
    assert_string_equal(err.msg, "mask has the shape [4, 3], which does not "
        "broadcast to the scores' [2, 4, 4]");
    pf_pool_free(pool);
    pf_record_fini(&rec);
}

static void
test_refused(void **ctx)
{
    static const struct {
        size_t heads, q[2], k[2], v[2], o[2], bq, bo;
        const char *says;
    } cases[] = {
        { 2, { 4, 6 }, { 4, 6 }, { 4, 6 }, { 6, 4 }, 6, 4, NULL },
        { 2, { 0 }, { 4, 6 }, { 4, 6 }, { 0 }, 0, 0, "no wq (" },
        { 2, { 4, 6 }, { 0 }, { 4, 6 }, { 0 }, 0, 0, "no wk (" },
        { 2, { 4, 6 }, { 4, 6 }, { 0 }, { 0 }, 0, 0, "no wv (" },
        { 4, { 4, 6 }, { 4, 6 }, { 4, 6 }, { 0 }, 0, 0,
            "wq: [4, 6] has no 4 heads" },
        { 2, { 4, 6 }, { 4, 5 }, { 4, 6 }, { 0 }, 0, 0, "wk: [4, 5] " },
        { 2, { 4, 6 }, { 4, 9 }, { 4, 9 }, { 0 }, 0, 0, "wk: [4, 9] " },
        { 2, { 4, 6 }, { 4, 12 }, { 4, 12 }, { 0 }, 0, 0, "wk: [4, 12] " },
        { 2, { 4, 6 }, { 4, 2 }, { 4, 6 }, { 0 }, 0, 0, "wk: [4, 2] " },
        { 2, { 4, 6 }, { 5, 6 }, { 4, 6 }, { 0 }, 0, 0, "wv: [4, 6] does not "
            "go with wk [5, 6], 2 heads" },
        { 2, { 4, 6 }, { 4, 6 }, { 4, 5 }, { 0 }, 0, 0, "wv: [4, 5] " },
        { 2, { 4, 6 }, { 4, 6 }, { 4, 6 }, { 5, 4 }, 0, 0, "wo: [5, 4] does "
            "not take the 2 heads of 3" },
        { 2, { 4, 6 }, { 4, 6 }, { 4, 6 }, { 0 }, 5, 0, "bq: has the shape "
            "[5]; wq makes it [6]" },
        { 2, { 4, 6 }, { 4, 6 }, { 4, 6 }, { 6, 4 }, 0, 6, "bo: has the shape "
            "[6]; wo makes it [4]" },
        { 0, { 4, 6 }, { 4, 6 }, { 4, 6 }, { 0 }, 0, 0, "wq: " },
    };

    (void)ctx;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pf_record rec = PF_RECORD_INIT;
        struct pf_multihead m;
        struct pf_err err;
        enum pf_status st;

        if (cases[i].q[0])
            add(&rec, "wq", cases[i].q[0], cases[i].q[1]);
        if (cases[i].k[0])
            add(&rec, "wk", cases[i].k[0], cases[i].k[1]);
        if (cases[i].v[0])
            add(&rec, "wv", cases[i].v[0], cases[i].v[1]);
        if (cases[i].o[0])
            add(&rec, "wo", cases[i].o[0], cases[i].o[1]);
        if (cases[i].bq)
            add(&rec, "bq", 0, cases[i].bq);
        if (cases[i].bo)
            add(&rec, "bo", 0, cases[i].bo);
        st = pf_multihead_init(&m, &rec, cases[i].heads, &err);
        if (!cases[i].says != !st || (st && strncmp(err.msg, cases[i].says,
                strlen(cases[i].says)) != 0))
            fail_msg("case %zu: %s", i, st ? err.msg : "is taken");
        pf_record_fini(&rec);
    }
}

static void
test_refused_shapes(void **ctx)
{
    struct pf_record rec = PF_RECORD_INIT;
    struct pf_multihead m;
    struct pf_err err;

    (void)ctx;
    add(&rec, "wk", 2, 2);
    add(&rec, "wv", 2, 2);
    add(&rec, "wq", 0, 4);
    assert_int_equal(pf_multihead_init(&m, &rec, 1, &err), PF_ESHAPE);
    assert_string_equal(err.msg, "wq: has the shape [4], not [in, out]");
    assert_non_null(pf_record_put(&rec, "wq", PF_I32, 2,
        (size_t[]){ 2, 2 }, NULL));
    assert_int_equal(pf_multihead_init(&m, &rec, 1, &err), PF_EFORMAT);
    assert_non_null(pf_record_put(&rec, "wq", PF_F32, 2,
        (size_t[]){ 2, 0 }, NULL));
    assert_int_equal(pf_multihead_init(&m, &rec, 1, &err), PF_ESHAPE);
    assert_non_null(pf_record_put(&rec, "wq", PF_F32, 2,
        (size_t[]){ 0, 2 }, NULL));
    assert_int_equal(pf_multihead_init(&m, &rec, 1, &err), PF_ESHAPE);
    pf_record_fini(&rec);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_plain),
        cmocka_unit_test(test_mask),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_refused_shapes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
