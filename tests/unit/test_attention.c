/*
 * Attention on arrays: the golden cases (made with numpy in float64, some with
 * PyTorch), a plain one in double over random shapes, masks and groups, the
 * same bits for any number of threads and any kernels, and what is refused.
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

#include <pipeformer/attention.h>
#include <pipeformer/kernel.h>
#include <pipeformer/record.h>

static uint64_t seed = 1;

static uint32_t
next_random(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 32);
}

static float
uniform(void)
{
    return (float)(int32_t)next_random() * 0x1p-31f;
}

static size_t
count(const size_t *shape, unsigned ndim)
{
    size_t n = 1;

    for (unsigned i = 0; i < ndim; i++)
        n *= shape[i];
    return n;
}

/* A tensor of random numbers, its memory of exactly that size. */
static struct pf_tensor
tensor_new(unsigned ndim, const size_t *shape, enum pf_dtype type)
{
    struct pf_tensor t = { .name = "x", .dtype = type, .ndim = ndim };
    size_t n = count(shape, ndim);
    char *data = malloc(n * pf_dtype_size(type) + (n == 0));

    assert_non_null(data);
    memcpy(t.shape, shape, ndim * sizeof *shape);
    for (size_t i = 0; i < n; i++) {
        float f = uniform() * 3;

        if (type == PF_BOOL)
            data[i] = (char)(next_random() % 3 == 0);
        else
            memcpy(data + i * sizeof f, &f, sizeof f);
    }
    t.data = data;
    return t;
}

static float
at(const struct pf_tensor *t, size_t i)
{
    return ((const float *)t->data)[i];
}

static float *
nans(size_t n)
{
    float *p = malloc(n * sizeof *p + 1);

    assert_non_null(p);
    for (size_t i = 0; i < n; i++)
        p[i] = NAN;
    return p;
}

/* --- The plain one --- */

struct result {
    float *context, *weights, *scores;
    size_t n_context, n_weights;
};

static size_t
axis(const struct pf_tensor *t, unsigned back)
{
    return back <= t->ndim ? t->shape[t->ndim - back] : 1;
}

/* Element (b, h, i, j) of an operand that broadcasts to H heads. */
static size_t
element(const struct pf_tensor *t, size_t H, size_t b, size_t h, size_t i,
    size_t j)
{
    size_t heads = axis(t, 3);

    b = axis(t, 4) == 1 ? 0 : b;
    h = h * heads / H;
    i = axis(t, 2) == 1 ? 0 : i;
    j = axis(t, 1) == 1 ? 0 : j;
    return ((b * heads + h) * axis(t, 2) + i) * axis(t, 1) + j;
}

static void
close_to(float is, double ref, const char *what)
{
    if (!(fabs((double)is - ref) <= 1e-5 + 1e-5 * fabs(ref))
        && !(isinf(ref) && (double)is == ref))
        fail_msg("%s: %.9g, not %.9g", what, (double)is, ref);
}

static void
check_plain(const struct pf_attention *a, const struct result *r)
{
    double *s = malloc(a->S * sizeof *s);
    size_t row = 0;

    assert_non_null(s);
    for (size_t b = 0; b < a->batch; b++) {
        for (size_t h = 0; h < a->heads; h++) {
            for (size_t t = 0; t < a->T; t++, row++) {
                double max = -INFINITY, sum = 0;

                for (size_t j = 0; j < a->S; j++) {
                    bool sees = a->causal == PF_CAUSAL_NONE
                        || (a->causal == PF_CAUSAL_UPPER_LEFT ? j <= t
                            : j + a->T <= t + a->S);

                    s[j] = 0;
                    for (size_t d = 0; d < a->D; d++)
                        s[j] += (double)at(a->q, element(a->q, a->heads, b, h,
                            t, d))
                            * (double)at(a->k, element(a->k, a->heads, b, h,
                            j, d));
                    s[j] *= (double)a->scale;
                    if (a->mask) {
                        size_t m = element(a->mask, a->heads, b, h, t, j);

                        if (a->mask->dtype == PF_F32)
                            s[j] += (double)at(a->mask, m);
                        else
                            sees = ((const char *)a->mask->data)[m];
                    }
                    if (!sees)
                        s[j] = -INFINITY;
                    close_to(r->scores[row * a->S + j], s[j], "score");
                    max = s[j] > max ? s[j] : max;
                }
                for (size_t j = 0; j < a->S; j++)
                    sum += s[j] = max == -INFINITY ? 0 : exp(s[j] - max);
                for (size_t j = 0; j < a->S; j++) {
                    s[j] /= sum > 0 ? sum : 1;
                    close_to(r->weights[row * a->S + j], s[j], "weight");
                    if (sum == 0)
                        assert_true(r->weights[row * a->S + j] == 0);
                }
                for (size_t d = 0; d < a->Dv; d++) {
                    double c = 0;

                    for (size_t j = 0; j < a->S; j++)
                        c += s[j] * (double)at(a->v,
                            element(a->v, a->heads, b, h, j, d));
                    close_to(r->context[row * a->Dv + d], c, "context");
                    if (sum == 0)
                        assert_true(r->context[row * a->Dv + d] == 0);
                }
            }
        }
    }
    free(s);
}

static struct result
result_new(const struct pf_attention *a)
{
    struct result r = { .n_context = a->batch * a->heads * a->T * a->Dv,
        .n_weights = a->batch * a->heads * a->T * a->S };

    r.context = nans(r.n_context);
    r.weights = nans(r.n_weights);
    r.scores = nans(r.n_weights);
    return r;
}

static void
result_free(struct result *r)
{
    free(r->context);
    free(r->weights);
    free(r->scores);
}

static void
same_bits(const struct result *a, const struct result *b)
{
    assert_memory_equal(a->context, b->context, a->n_context * sizeof(float));
    assert_memory_equal(a->weights, b->weights, a->n_weights * sizeof(float));
    assert_memory_equal(a->scores, b->scores, a->n_weights * sizeof(float));
}

static struct pf_pool *
pool_of(size_t threads)
{
    struct pf_pool *pool;

    assert_int_equal(pf_pool_new(&pool, threads, NULL), PF_OK);
    return pool;
}

/* Right, and the same bits with threads, with every kernel, without extras. */
static void
check_run(const struct pf_attention *a, size_t threads)
{
    struct pf_pool *one = pool_of(1), *many = pool_of(threads);
    struct result ref = result_new(a), r;
    const struct pf_kernels *t;
    struct pf_err err;

    if (pf_attention_run(a, one, ref.context, ref.weights, ref.scores, &err))
        fail_msg("%s", err.msg);
    check_plain(a, &ref);
    for (size_t i = 0; (t = pf_kernels_list(i)); i++) {
        setenv("PIPEFORMER_KERNEL", t->name, 1);
        r = result_new(a);
        assert_int_equal(pf_attention_run(a, many, r.context, r.weights,
            r.scores, NULL), PF_OK);
        same_bits(&ref, &r);
        result_free(&r);
    }
    unsetenv("PIPEFORMER_KERNEL");
    r = result_new(a);
    assert_int_equal(pf_attention_run(a, many, r.context, NULL, NULL, NULL),
        PF_OK);
    assert_memory_equal(ref.context, r.context,
        ref.n_context * sizeof(float));
    result_free(&r);
    result_free(&ref);
    pf_pool_free(one);
    pf_pool_free(many);
}

/* --- Random shapes --- */

/* The last `ndim` of four axes; those before are 1. */
static struct pf_tensor
operand(unsigned ndim, size_t b, size_t h, size_t rows, size_t columns,
    enum pf_dtype type)
{
    const size_t all[4] = { b, h, rows, columns };

    assert_in_range(ndim, 2, 4);
    return tensor_new(ndim, ndim == 2 ? all + 2 : ndim == 3 ? all + 1 : all,
        type);
}

static unsigned
dims_for(size_t b, size_t h)
{
    unsigned least = b > 1 ? 4 : h > 1 ? 3 : 2;

    return least + next_random() % (5 - least);
}

enum { NO_MASK, BOOLEANS, NUMBERS };

static void
check_shape(size_t B, size_t Hq, size_t Hkv, size_t T, size_t S, size_t D,
    size_t Dv, int masked, enum pf_causal causal, double scale)
{
    size_t qb = next_random() % 2 ? B : 1, kb = next_random() % 2 ? B : 1;
    size_t vb = next_random() % 3 ? B : 1;
    size_t vh = next_random() % 4 ? Hkv : 1;
    size_t mb = next_random() % 2 ? B : 1, mh = next_random() % 2 ? Hq : 1;
    size_t mt = next_random() % 3 ? T : 1, ms = next_random() % 4 ? S : 1;
    struct pf_tensor q = operand(dims_for(qb, Hq), qb, Hq, T, D, PF_F32);
    struct pf_tensor k = operand(dims_for(kb, Hkv), kb, Hkv, S, D, PF_F32);
    struct pf_tensor v = operand(dims_for(vb, vh), vb, vh, S, Dv, PF_F32);
    struct pf_tensor m;
    struct pf_attention a;
    size_t shape[4], n = Hkv > Hq ? Hkv : Hq;
    unsigned ndim, most = q.ndim > k.ndim ? q.ndim : k.ndim;
    struct pf_err err;

    most = v.ndim > most ? v.ndim : most;
    mb = qb > 1 || kb > 1 || vb > 1 ? mb : 1;
    mh = mh > 1 ? n : 1;
    ndim = dims_for(mb, mh);
    m = operand(ndim > most ? most : ndim, mb, mh, mt, ms,
        masked == BOOLEANS ? PF_BOOL : PF_F32);
    for (size_t i = 0; masked == NUMBERS && i < pf_tensor_count(&m); i++)
        if (next_random() % 4 == 0)
            ((float *)m.data)[i] = -INFINITY;
    if (pf_attention_plan(&a, &q, &k, &v, masked ? &m : NULL, causal, scale,
            &err))
        fail_msg("%s", err.msg);
    assert_int_equal(a.heads, n);
    assert_int_equal(pf_attention_shape(&a, S, shape), most);
    assert_int_equal(shape[most - 1], S);
    assert_int_equal(shape[most - 2], T);
    check_run(&a, 1 + next_random() % 4);
    free((void *)q.data);
    free((void *)k.data);
    free((void *)v.data);
    free((void *)m.data);
}

static void
test_shapes(void **ctx)
{
    static const size_t heads[][2] = { { 1, 1 }, { 2, 2 }, { 4, 2 }, { 6, 2 },
        { 3, 1 }, { 1, 3 } };

    (void)ctx;
    for (size_t i = 0; i < 150; i++) {
        const size_t *h = heads[next_random() % 6];
        int masked = (int)(next_random() % 3);

        check_shape(1 + next_random() % 3, h[0], h[1], 1 + next_random() % 20,
            1 + next_random() % 40, 1 + next_random() % 20,
            1 + next_random() % 20, masked,
            masked ? PF_CAUSAL_NONE : (enum pf_causal)(next_random() % 3),
            i % 3 ? NAN : (double)uniform());
    }
    /* More than a task, a block, a thread. */
    for (int masked = 0; masked < 3; masked++)
        check_shape(1, 4, 2, 120, 190, 32, 24, masked, PF_CAUSAL_NONE, NAN);
    check_shape(1, 2, 2, 120, 120, 32, 32, NO_MASK, PF_CAUSAL_UPPER_LEFT, NAN);
    check_shape(1, 2, 1, 60, 200, 16, 16, NO_MASK, PF_CAUSAL_LOWER_RIGHT, NAN);
    check_shape(2, 1, 1, 200, 60, 16, 16, NO_MASK, PF_CAUSAL_UPPER_LEFT, NAN);
    check_shape(1, 1, 1, 200, 60, 16, 16, NO_MASK, PF_CAUSAL_LOWER_RIGHT, NAN);
    check_shape(1, 1, 1, 3, 1100, 130, 70, NUMBERS, PF_CAUSAL_NONE, NAN);
}

/* Scores to 1e4 and far beyond what exp can take. */
static void
test_large_scores(void **ctx)
{
    struct pf_tensor q = operand(2, 1, 1, 9, 4, PF_F32);
    struct pf_tensor k = operand(2, 1, 1, 70, 4, PF_F32);
    struct pf_tensor v = operand(2, 1, 1, 70, 3, PF_F32);
    struct pf_pool *pool = pool_of(1);
    struct pf_attention a;

    (void)ctx;
    for (int times = 0; times < 6; times++) {
        struct result r;

        for (size_t i = 0; i < 9 * 4; i++)
            ((float *)q.data)[i] *= 1000;
        assert_int_equal(pf_attention_plan(&a, &q, &k, &v, NULL,
            PF_CAUSAL_NONE, NAN, NULL), PF_OK);
        r = result_new(&a);
        assert_int_equal(pf_attention_run(&a, pool, r.context, r.weights,
            r.scores, NULL), PF_OK);
        for (size_t t = 0; t < 9; t++) {
            double sum = 0;

            for (size_t j = 0; j < 70; j++)
                sum += (double)r.weights[t * 70 + j];
            assert_true(fabs(sum - 1) < 1e-5);
            for (size_t d = 0; d < 3; d++)
                assert_true(fabsf(r.context[t * 3 + d]) <= 3.001f);
        }
        result_free(&r);
    }
    free((void *)q.data);
    free((void *)k.data);
    free((void *)v.data);
    pf_pool_free(pool);
}

/* --- Golden cases --- */

struct cases {
    struct pf_in in;
    struct pf_reader reader;
    struct pf_record rec;
};

static void
cases_open(struct cases *c, const char *file)
{
    char path[1000];

    snprintf(path, sizeof path, "%s/%s", PF_TEST_GOLDEN, file);
    *c = (struct cases){ .reader = PF_READER_INIT, .rec = PF_RECORD_INIT };
    assert_int_equal(pf_in_open(&c->in, path, NULL), PF_OK);
    c->reader.in = &c->in;
    c->reader.all_tensors = true;
}

static void
cases_close(struct cases *c)
{
    pf_record_fini(&c->rec);
    pf_reader_fini(&c->reader);
    pf_in_fini(&c->in);
}

static enum pf_causal
causal_of(const struct pf_record *rec)
{
    const char *s = pf_record_field(rec, "causal")->text;

    return strncmp(s, "\"u", 2) == 0 ? PF_CAUSAL_UPPER_LEFT
        : strncmp(s, "\"l", 2) == 0 ? PF_CAUSAL_LOWER_RIGHT : PF_CAUSAL_NONE;
}

static void
close_all(const float *is, const struct pf_tensor *want, double atol,
    const struct pf_record *rec)
{
    for (size_t i = 0; i < pf_tensor_count(want); i++)
        if (!(fabs((double)is[i] - (double)at(want, i)) <= atol + 1e-5
            * fabs((double)at(want, i))))
            fail_msg("%s: %s, element %zu: %.9g, not %.9g",
                pf_record_field(rec, "name")->text, want->name, i,
                (double)is[i], (double)at(want, i));
}

static void
test_golden(void **ctx)
{
    struct pf_pool *pool = pool_of(2);
    struct cases c;
    size_t n = 0;

    (void)ctx;
    cases_open(&c, "attention.ndjson");
    for (; pf_reader_next(&c.reader, &c.rec, NULL, NULL) == PF_OK; n++) {
        const struct pf_field *scale = pf_record_field(&c.rec, "scale");
        const struct pf_tensor *context, *attn;
        struct pf_attention a;
        struct result r;
        struct pf_err err;

        if (pf_attention_plan(&a, pf_record_tensor(&c.rec, "q"),
                pf_record_tensor(&c.rec, "k"), pf_record_tensor(&c.rec, "v"),
                pf_record_tensor(&c.rec, "mask"), causal_of(&c.rec),
                strcmp(scale->text, "null") == 0 ? NAN
                : strtod(scale->text, NULL), &err))
            fail_msg("%s: %s", pf_record_field(&c.rec, "name")->text,
                err.msg);
        context = pf_record_tensor(&c.rec, "context");
        attn = pf_record_tensor(&c.rec, "attn");
        r = result_new(&a);
        assert_int_equal(r.n_context, pf_tensor_count(context));
        assert_int_equal(r.n_weights, pf_tensor_count(attn));
        assert_int_equal(a.ndim, context->ndim);
        assert_int_equal(pf_attention_run(&a, pool, r.context, r.weights,
            r.scores, NULL), PF_OK);
        close_all(r.context, context, 1e-5, &c.rec);
        close_all(r.weights, attn, 1e-5, &c.rec);
        check_run(&a, 2);
        result_free(&r);
    }
    assert_int_equal(n, 48);
    cases_close(&c);
    pf_pool_free(pool);
}

static void
test_golden_mixing(void **ctx)
{
    struct cases c;
    size_t n = 0;

    (void)ctx;
    cases_open(&c, "mixing.ndjson");
    while (pf_reader_next(&c.reader, &c.rec, NULL, NULL) == PF_OK) {
        const struct pf_tensor *x = pf_record_tensor(&c.rec, "x");
        const struct pf_field *atol = pf_record_field(&c.rec, "atol");
        double tol = atol ? strtod(atol->text, NULL) : 1e-5;
        float *out, *w;

        if (!x)
            continue;
        n++;
        out = nans(pf_tensor_count(x));
        w = nans(x->shape[0] * x->shape[0]);
        pf_running_mean(out, x->data, 1, x->shape[0], x->shape[1]);
        pf_running_mean_weights(w, 1, x->shape[0]);
        close_all(out, pf_record_tensor(&c.rec, "expected"), tol, &c.rec);
        close_all(w, pf_record_tensor(&c.rec, "weights"), tol, &c.rec);
        free(out);
        free(w);
    }
    assert_int_equal(n, 8);
    cases_close(&c);
}

static void
test_running_mean(void **ctx)
{
    const size_t shape[3] = { 3, 50, 150 };
    struct pf_tensor x = tensor_new(3, shape, PF_F32);
    float *out = nans(3 * 50 * 150), *w = nans(2 * 4 * 4);
    size_t i = 0;

    (void)ctx;
    pf_running_mean(out, x.data, 3, 50, 150);
    for (size_t n = 0; n < 3; n++) {
        for (size_t t = 0; t < 50; t++) {
            for (size_t d = 0; d < 150; d++, i++) {
                double sum = 0;

                for (size_t s = 0; s <= t; s++)
                    sum += (double)at(&x, (n * 50 + s) * 150 + d);
                assert_true(out[i] == (float)(sum / (double)(t + 1)));
            }
        }
    }
    /* In place. */
    pf_running_mean((float *)x.data, x.data, 3, 50, 150);
    assert_memory_equal(x.data, out, 3 * 50 * 150 * sizeof *out);
    pf_running_mean_weights(w, 2, 4);
    for (i = 0; i < 32; i++)
        assert_true(w[i] == (i % 4 <= i / 4 % 4
            ? 1 / (float)(i / 4 % 4 + 1) : 0));
    pf_running_mean(out, x.data, 3, 0, 150);
    free((void *)x.data);
    free(out);
    free(w);
}

/* --- What is refused --- */

static struct pf_tensor
shaped(enum pf_dtype type, unsigned ndim, size_t a, size_t b, size_t c,
    size_t d)
{
    const size_t all[4] = { a, b, c, d };
    struct pf_tensor t = { .name = "x", .dtype = type, .ndim = ndim };

    memcpy(t.shape, all + 4 - ndim, ndim * sizeof *all);
    return t;
}

static void
test_refused(void **ctx)
{
    static const struct {
        struct { unsigned ndim; size_t s[4]; } q, k, v, mask;
        enum pf_causal causal;
        const char *says; /* NULL: it is right */
    } cases[] = {
        { { 2, { 1, 1, 2, 3 } }, { 2, { 1, 1, 4, 3 } }, { 2, { 1, 1, 4, 5 } },
            { 0, { 0 } }, 0, NULL },
        { { 2, { 1, 1, 1, 3 } }, { 2, { 1, 1, 3, 2 } }, { 2, { 1, 1, 3, 2 } },
            { 0, { 0 } }, 0, "q has the shape [1, 3], k [3, 2]: " },
        { { 2, { 1, 1, 2, 2 } }, { 2, { 1, 1, 3, 2 } }, { 2, { 1, 1, 2, 2 } },
            { 0, { 0 } }, 0, "k has the shape [3, 2], v [2, 2]: " },
        { { 2, { 1, 1, 2, 2 } }, { 2, { 1, 1, 3, 2 } }, { 2, { 1, 1, 3, 2 } },
            { 2, { 1, 1, 2, 2 } }, 0,
            "mask has the shape [2, 2], which does not broadcast to the "
            "scores' [2, 3]" },
        { { 2, { 1, 1, 2, 2 } }, { 2, { 1, 1, 3, 2 } }, { 2, { 1, 1, 3, 2 } },
            { 3, { 1, 1, 2, 3 } }, 0, "mask has the shape [1, 2, 3], " },
        { { 2, { 1, 1, 2, 2 } }, { 2, { 1, 1, 3, 2 } }, { 2, { 1, 1, 3, 2 } },
            { 2, { 1, 1, 2, 3 } }, 1, "the record has a mask, and --causal" },
        { { 2, { 1, 1, 2, 2 } }, { 2, { 1, 1, 0, 2 } }, { 2, { 1, 1, 0, 2 } },
            { 0, { 0 } }, 0, "q has the shape [2, 2], k [0, 2]: there are no" },
        { { 2, { 1, 1, 1, 0 } }, { 2, { 1, 1, 1, 0 } }, { 2, { 1, 1, 1, 1 } },
            { 0, { 0 } }, 0, "q has the shape [1, 0], k [1, 0]: D is 0" },
        { { 2, { 1, 1, 1, 1 } }, { 2, { 1, 1, 1, 1 } }, { 2, { 1, 1, 1, 0 } },
            { 0, { 0 } }, 0, "k has the shape [1, 1], v [1, 0]: Dv is 0" },
        { { 1, { 1, 1, 1, 2 } }, { 2, { 1, 1, 3, 2 } }, { 2, { 1, 1, 3, 2 } },
            { 0, { 0 } }, 0, "q: has the shape [2], not [..., T, D]" },
        { { 2, { 1, 1, 2, 2 } }, { 0, { 1, 1, 3, 2 } }, { 2, { 1, 1, 3, 2 } },
            { 0, { 0 } }, 0, "k: has the shape [], not [..., S, D]" },
        { { 4, { 2, 1, 2, 2 } }, { 4, { 3, 1, 3, 2 } }, { 2, { 1, 1, 3, 2 } },
            { 0, { 0 } }, 0, "q has the shape [2, 1, 2, 2], k [3, 1, 3, 2]: " },
        { { 4, { 2, 1, 2, 2 } }, { 4, { 1, 1, 3, 2 } }, { 4, { 3, 1, 3, 2 } },
            { 0, { 0 } }, 0, "q has the shape [2, 1, 2, 2], v [3, 1, 3, 2]: " },
        { { 4, { 1, 1, 2, 2 } }, { 4, { 2, 1, 3, 2 } }, { 4, { 3, 1, 3, 2 } },
            { 0, { 0 } }, 0, "k has the shape [2, 1, 3, 2], v [3, 1, 3, 2]: " },
        { { 3, { 1, 3, 2, 2 } }, { 3, { 1, 2, 3, 2 } }, { 3, { 1, 2, 3, 2 } },
            { 0, { 0 } }, 0, "q has the shape [3, 2, 2], k [2, 3, 2]: " },
        { { 3, { 1, 3, 2, 2 } }, { 2, { 1, 1, 3, 2 } }, { 3, { 1, 2, 3, 2 } },
            { 0, { 0 } }, 0, "q has the shape [3, 2, 2], v [2, 3, 2]: " },
        { { 3, { 1, 4, 2, 2 } }, { 3, { 1, 4, 3, 2 } }, { 3, { 1, 2, 3, 2 } },
            { 0, { 0 } }, 0, "k has the shape [4, 3, 2], v [2, 3, 2]: " },
        { { 3, { 1, 2, 2, 2 } }, { 3, { 1, 4, 3, 2 } }, { 3, { 1, 4, 3, 2 } },
            { 0, { 0 } }, 0, "q has the shape [2, 2, 2], k [4, 3, 2]: " },
        { { 3, { 1, 2, 2, 2 } }, { 3, { 1, 0, 3, 2 } }, { 3, { 1, 0, 3, 2 } },
            { 0, { 0 } }, 0, "q has the shape [2, 2, 2], k [0, 3, 2]: " },
        { { 3, { 1, 0, 2, 2 } }, { 3, { 1, 2, 3, 2 } }, { 3, { 1, 2, 3, 2 } },
            { 0, { 0 } }, 0, "q has the shape [0, 2, 2], k [2, 3, 2]: " },
        { { 3, { 1, 0, 2, 2 } }, { 3, { 1, 1, 3, 2 } }, { 3, { 1, 0, 3, 2 } },
            { 0, { 0 } }, 0, NULL },
        { { 3, { 1, 4, 2, 2 } }, { 3, { 1, 2, 3, 2 } }, { 3, { 1, 2, 3, 2 } },
            { 3, { 1, 2, 2, 3 } }, 0,
            "mask has the shape [2, 2, 3], which does not broadcast to the "
            "scores' [4, 2, 3]" },
    };

    (void)ctx;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
#define T(x, type) shaped(type, cases[i].x.ndim, cases[i].x.s[0], \
    cases[i].x.s[1], cases[i].x.s[2], cases[i].x.s[3])
        struct pf_tensor q = T(q, PF_F32), k = T(k, PF_F32), v = T(v, PF_F32);
        struct pf_tensor mask = T(mask, PF_BOOL);
        struct pf_attention a;
        struct pf_err err = { 0 };
        enum pf_status st = pf_attention_plan(&a, &q, &k, &v,
            cases[i].mask.ndim ? &mask : NULL, cases[i].causal, NAN, &err);

        if (!cases[i].says != !st || (st && strncmp(err.msg, cases[i].says,
                strlen(cases[i].says)) != 0))
            fail_msg("case %zu: %s", i, st ? err.msg : "is taken");
        assert_int_equal(err.status, st);
    }
}

static void
test_refused_types(void **ctx)
{
    struct pf_tensor q = shaped(PF_F32, 2, 1, 1, 2, 2);
    struct pf_tensor bad = shaped(PF_BOOL, 2, 1, 1, 2, 2);
    struct pf_tensor mask = shaped(PF_I32, 2, 1, 1, 2, 2);
    struct pf_attention a;

    (void)ctx;
    assert_int_equal(pf_attention_plan(&a, &bad, &q, &q, NULL, 0, NAN, NULL),
        PF_EFORMAT);
    assert_int_equal(pf_attention_plan(&a, &q, &bad, &q, NULL, 0, NAN, NULL),
        PF_EFORMAT);
    assert_int_equal(pf_attention_plan(&a, &q, &q, &bad, NULL, 0, NAN, NULL),
        PF_EFORMAT);
    assert_int_equal(pf_attention_plan(&a, &q, &q, &q, &mask, 0, NAN, NULL),
        PF_EFORMAT);
}

/* Each of q, k, v, mask with one such number in it, far behind. */
static void
test_refused_values(void **ctx)
{
    static const char *const names[] = { "q", "k", "v", "mask" };
    struct pf_pool *pool = pool_of(1);
    struct pf_tensor t[4];
    struct pf_attention a;
    float *out = nans(2 * 300 * 40);
    char says[64];

    (void)ctx;
    for (int i = 0; i < 4; i++)
        t[i] = operand(3, 1, 2, 300, i == 3 ? 300 : 40, PF_F32);
    assert_int_equal(pf_attention_plan(&a, t, t + 1, t + 2, t + 3, 0, NAN,
        NULL), PF_OK);
    assert_int_equal(pf_attention_run(&a, pool, out, NULL, NULL, NULL), PF_OK);
    for (int i = 0; i < 4; i++) {
        size_t columns = i == 3 ? 300 : 40;
        float *x = (float *)t[i].data + (300 + 271) * columns + 5, was = *x;

        for (int kind = 0; kind < 3; kind++) {
            struct pf_err err;
            enum pf_status st;

            *x = kind == 0 ? NAN : kind == 1 ? INFINITY : -INFINITY;
            st = pf_attention_run(&a, pool, out, NULL, NULL, &err);
            if (i == 3 && kind == 2) {
                assert_int_equal(st, PF_OK);
                continue;
            }
            assert_int_equal(st, PF_ERANGE);
            snprintf(says, sizeof says, "%s: %s at [1, 271, 5]", names[i],
                kind ? "an infinity" : "NaN");
            assert_string_equal(err.msg, says);
        }
        *x = was;
    }
    for (int i = 0; i < 4; i++)
        free((void *)t[i].data);
    free(out);
    pf_pool_free(pool);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_large_scores),
        cmocka_unit_test(test_golden_mixing),
        cmocka_unit_test(test_running_mean),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_refused_types),
        cmocka_unit_test(test_refused_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
