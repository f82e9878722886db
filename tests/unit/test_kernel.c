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

/*
 * Every table against the portable one, bit by bit; the portable one against
 * double precision; and each against itself under other cuts of the same
 * work.  Inputs are allocated to the exact byte, so that a sanitizer or
 * valgrind sees a read past the end; outputs start as NaN.
 */

static uint64_t state;

/* Each test has the same numbers, whatever tables the tests before it met. */
static int
seed(void **ctx)
{
    (void)ctx;
    state = 1;
    return 0;
}

static uint32_t
random32(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}

static float
uniform(void)
{
    return (float)(int32_t)random32() * 0x1p-31f;
}

static float
as_float(uint32_t bits)
{
    float f;

    memcpy(&f, &bits, sizeof f);
    return f;
}

enum kind { PLAIN, WILD };

/* WILD: zeros of both signs, denormals, magnitudes from 2^-140 to 2^20. */
static float
number(enum kind kind)
{
    uint32_t r = random32();

    if (kind == PLAIN)
        return uniform();
    switch (r % 8) {
    case 0: return r & 8 ? -0.0f : 0.0f;
    case 1: return as_float((r & 0x80000000) | (r >> 9 & 0x7fffff));
    case 2: return r & 8 ? 1.0f : -1.0f;
    default: return ldexpf(uniform(), (int)(r >> 8) % 160 - 140);
    }
}

static void *
room(size_t n, size_t size)
{
    void *p = malloc(n * size + (n == 0));

    assert_non_null(p);
    return p;
}

static float *
numbers(size_t n, enum kind kind)
{
    float *p = room(n, sizeof *p);

    for (size_t i = 0; i < n; i++)
        p[i] = number(kind);
    return p;
}

static float *
nans(size_t n)
{
    float *p = room(n, sizeof *p);

    for (size_t i = 0; i < n; i++)
        p[i] = NAN;
    return p;
}

static void *
weights(size_t n, enum pf_dtype type, enum kind kind)
{
    uint16_t *p;

    if (type == PF_F32)
        return numbers(n, kind);
    p = room(n, sizeof *p);
    for (size_t i = 0; i < n; i++) {
        uint32_t r = random32();

        if (type == PF_F16) /* any finite number, denormals and zeros too */
            p[i] = (uint16_t)(kind == WILD && r % 4 == 0
                ? r >> 16 & 0x83ff : (r >> 16 & 0xbbff) % 0xbc00);
        else
            p[i] = (uint16_t)(kind == WILD && r % 4 == 0
                ? r >> 16 & 0x807f : (r >> 16 & 0xbfff) % 0xbf80);
    }
    return p;
}

/* Equal bits, or both NaN. */
static void
same(const float *a, const float *b, size_t n, const char *what)
{
    if (memcmp(a, b, n * sizeof *a) == 0)
        return;
    for (size_t i = 0; i < n; i++)
        if (memcmp(a + i, b + i, sizeof *a) && !(isnan(a[i]) && isnan(b[i])))
            fail_msg("%s: element %zu is %a, not %a", what, i,
                (double)a[i], (double)b[i]);
}

#define EACH_TABLE(t) \
    for (size_t i_ = 0; (t = pf_kernels_list(i_)); i_++) \
        if (t != &pf_kernels_portable)

/* --- Choice. */

static void
test_choice(void **ctx)
{
    const struct pf_kernels *t;
    size_t n = 0;

    (void)ctx;
    unsetenv("PIPEFORMER_KERNEL");
    assert_ptr_equal(pf_kernels_best(), pf_kernels_list(0));
    setenv("PIPEFORMER_KERNEL", "no such", 1);
    assert_ptr_equal(pf_kernels_best(), pf_kernels_list(0));
    for (; (t = pf_kernels_list(n)); n++) {
        setenv("PIPEFORMER_KERNEL", t->name, 1);
        assert_ptr_equal(pf_kernels_best(), t);
    }
    unsetenv("PIPEFORMER_KERNEL");
    assert_in_range(n, 1, 5);
    assert_ptr_equal(pf_kernels_list(n - 1), &pf_kernels_portable);
}

/* --- Products. */

typedef void matmul(float *y, size_t ldy, const float *x, size_t ldx,
    const void *w, enum pf_dtype type, const float *bias, size_t M, size_t K,
    size_t N, size_t n0, size_t n1);

static matmul *
product(const struct pf_kernels *t, bool nt)
{
    return nt ? t->matmul_nt : t->matmul_nn;
}

static const enum pf_dtype types[] = { PF_F32, PF_F16, PF_BF16 };

/*
 * One shape: all of M rows and N columns by portable; then each table, for
 * each M of `rows` (ends with 0) from some row on and a range of columns,
 * into an array of NaN with one column more, which must stay.
 */
static void
check_product(bool nt, enum pf_dtype type, enum kind kind, size_t M, size_t K,
    size_t N, const size_t *rows, bool cuts)
{
    const struct pf_kernels *t;
    float *x = numbers(M * K, kind), *bias = numbers(N, kind);
    void *w = weights(K * N, type, kind);
    float *ref = nans(M * N), *y = room(M * (N + 1), sizeof *y);
    bool with_bias = random32() % 2;
    char what[120];

    product(&pf_kernels_portable, nt)(ref, N, x, K, w, type,
        with_bias ? bias : NULL, M, K, N, 0, N);
    EACH_TABLE(t) {
        for (const size_t *m = rows; *m; m++) {
            size_t at = M > *m ? random32() % (M - *m + 1) : 0;
            size_t n0 = cuts ? random32() % (N + 1) : 0;
            size_t n1 = cuts ? n0 + random32() % (N - n0 + 1) : N;

            for (size_t i = 0; i < M * (N + 1); i++)
                y[i] = NAN;
            product(t, nt)(y + at * (N + 1), N + 1, x + at * K, K, w, type,
                with_bias ? bias : NULL, *m, K, N, n0, n1);
            snprintf(what, sizeof what, "%s %s %s M=%zu of %zu K=%zu N=%zu "
                "%zu..%zu", t->name, nt ? "nt" : "nn", pf_dtype_name(type),
                *m, M, K, N, n0, n1);
            for (size_t i = 0; i < M; i++) {
                bool mine = i >= at && i < at + *m;

                if (mine)
                    same(y + i * (N + 1) + n0, ref + i * N + n0, n1 - n0,
                        what);
                for (size_t n = 0; n <= N; n++)
                    if ((!mine || n < n0 || n >= n1)
                        && !isnan(y[i * (N + 1) + n]))
                        fail_msg("%s: wrote to %zu, %zu", what, i, n);
            }
        }
    }
    free(x);
    free(bias);
    free(w);
    free(ref);
    free(y);
}

static void
test_product_rows(void **ctx)
{
    size_t rows[21] = { 0 };

    (void)ctx;
    for (size_t m = 0; m < 18; m++)
        rows[m] = m + 1;
    rows[18] = 31;
    rows[19] = 50;
    for (int nt = 0; nt < 2; nt++) {
        for (size_t i = 0; i < 3; i++) {
            check_product(nt, types[i], PLAIN, 50, 37, 71, rows, false);
            check_product(nt, types[i], WILD, 50, 23, 52, rows, true);
            check_product(nt, types[i], PLAIN, 50, 160, 64, rows, true);
            /* Rows of x at the same place of pages. */
            check_product(nt, types[i], PLAIN, 50, 512, 70, rows, true);
            check_product(nt, types[i], PLAIN, 50, 1024, 33, rows + 8, false);
        }
    }
}

static void
test_product_depth(void **ctx)
{
    static const size_t rows[] = { 1, 3, 4, 7, 9, 0 };

    (void)ctx;
    for (int nt = 0; nt < 2; nt++) {
        for (size_t i = 0; i < 3; i++) {
            for (size_t K = 0; K <= 40; K++)
                check_product(nt, types[i], K % 2 ? WILD : PLAIN, 9, K,
                    29 + K % 7, rows, K % 3 == 0);
            check_product(nt, types[i], PLAIN, 9, 1000, 53, rows, false);
            check_product(nt, types[i], PLAIN, 9, 1030, 19, rows, true);
        }
        check_product(nt, PF_BF16, PLAIN, 9, 9000, 6, rows, false);
    }
}

static void
test_product_width(void **ctx)
{
    static const size_t rows[] = { 1, 2, 5, 9, 0 }, one[] = { 1, 0 };

    (void)ctx;
    for (int nt = 0; nt < 2; nt++) {
        for (size_t i = 0; i < 3; i++)
            for (size_t N = 1; N <= 70; N++)
                check_product(nt, types[i], N % 2 ? PLAIN : WILD, 9,
                    9 + N % 9, N, rows, N % 4 == 0);
        /* Panels of every width that a single row has, aligned or not. */
        for (size_t i = 0; i < 3; i++)
            for (size_t N = 71; N <= 480; N += 13)
                check_product(nt, types[i], N % 2 ? PLAIN : WILD, 2,
                    5 + N % 19, N, one, N % 3 == 0);
        check_product(nt, PF_F32, PLAIN, 9, 17, 2100, rows, true);
        check_product(nt, PF_F16, PLAIN, 9, 17, 1050, rows, false);
    }
}

/* Rows so many that w is copied, several times in either direction; and where
 * its rows are too long for that, or empty. */
static void
test_product_many(void **ctx)
{
    static const size_t rows[] = { 49, 65, 161, 0 };

    (void)ctx;
    for (int nt = 0; nt < 2; nt++)
        for (size_t i = 0; i < 3; i++) {
            check_product(nt, types[i], PLAIN, 170, 1100, 230, rows, i > 0);
            check_product(nt, types[i], PLAIN, 170, 12300, 9, rows, false);
            check_product(nt, types[i], PLAIN, 170, 0, 20, rows, true);
        }
}

/* Infinities and NaN go where the arithmetic sends them, and nowhere else. */
static void
test_product_nonfinite(void **ctx)
{
    enum { M = 11, K = 21, N = 35 };
    const struct pf_kernels *t;

    (void)ctx;
    for (int nt = 0; nt < 2; nt++) {
        float *x = numbers(M * K, PLAIN), *w = numbers(K * N, PLAIN);
        float *ref = nans(M * N), *y = nans(M * N);

        x[3 * K + 20] = INFINITY;
        x[7 * K + 2] = NAN;
        w[N + 3] = -INFINITY;
        product(&pf_kernels_portable, nt)(ref, N, x, K, w, PF_F32, NULL, M, K,
            N, 0, N);
        EACH_TABLE(t) {
            product(t, nt)(y, N, x, K, w, PF_F32, NULL, M, K, N, 0, N);
            same(y, ref, M * N, t->name);
        }
        free(x);
        free(w);
        free(ref);
        free(y);
    }
}

/* Sums start from +0, and every product of these is -0. */
static void
test_product_zeros(void **ctx)
{
    const struct pf_kernels *t;
    float x[40 * 48], w[48 * 50], y[40 * 50];

    (void)ctx;
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = -0.0f;
    for (size_t i = 0; i < sizeof w / sizeof *w; i++)
        w[i] = 1;
    for (size_t i = 0; (t = pf_kernels_list(i)); i++) {
        for (size_t M = 1; M <= 40; M += M < 9 ? 1 : 31) {
            for (size_t K = 0; K <= 48; K += 12) {
                for (int nt = 0; nt < 2; nt++) {
                    memset(y, 0xff, sizeof y);
                    product(t, nt)(y, 50, x, K, w, PF_F32, NULL, M, K, 50, 0,
                        50);
                    for (size_t j = 0; j < M * 50; j++)
                        assert_true(y[j] == 0 && !signbit(y[j]));
                }
            }
        }
    }
}

static void
test_product_value(void **ctx)
{
    enum { M = 3, K = 50, N = 7 };
    const struct pf_kernels *t;

    (void)ctx;
    for (size_t i = 0; (t = pf_kernels_list(i)); i++) {
        for (int nt = 0; nt < 2; nt++) {
            float *x = numbers(M * K, PLAIN), *w = numbers(K * N, PLAIN);
            float *bias = numbers(N, PLAIN), *y = nans(M * N);

            product(t, nt)(y, N, x, K, w, PF_F32, bias, M, K, N, 0, N);
            for (size_t m = 0; m < M; m++) {
                for (size_t n = 0; n < N; n++) {
                    double sum = (double)bias[n];

                    for (size_t k = 0; k < K; k++)
                        sum += (double)x[m * K + k]
                            * (double)w[nt ? n * K + k : k * N + n];
                    assert_true(fabs((double)y[m * N + n] - sum) < 2e-6);
                }
            }
            free(x);
            free(w);
            free(bias);
            free(y);
        }
    }
}

/* --- Rows and elements. */

static void
check_layernorm(size_t n, enum kind kind)
{
    const struct pf_kernels *t;
    float *x = numbers(n, kind), *gain = numbers(n, kind);
    float *bias = numbers(n, kind), *ref = nans(n), *y = nans(n + 1);
    char what[64];

    pf_kernels_portable.layernorm(ref, x, gain, bias, n, 1e-5f);
    EACH_TABLE(t) {
        snprintf(what, sizeof what, "%s layernorm %zu", t->name, n);
        t->layernorm(y, x, gain, bias, n, 1e-5f);
        same(y, ref, n, what);
        assert_true(isnan(y[n]));
        memcpy(y, x, n * sizeof *y);
        t->layernorm(y, y, gain, bias, n, 1e-5f);
        same(y, ref, n, what);
    }
    if (kind == PLAIN) {
        double mean = 0, var = 0;

        for (size_t i = 0; i < n; i++)
            mean += (double)x[i] / (double)n;
        for (size_t i = 0; i < n; i++)
            var += ((double)x[i] - mean) * ((double)x[i] - mean) / (double)n;
        for (size_t i = 0; i < n; i++)
            assert_true(fabs(((double)x[i] - mean) / sqrt(var + (double)1e-5f)
                * (double)gain[i] + (double)bias[i] - (double)ref[i]) < 3e-6
                + (n < 4) * 1e-4);
    }
    free(x);
    free(gain);
    free(bias);
    free(ref);
    free(y);
}

static void
test_layernorm(void **ctx)
{
    (void)ctx;
    for (size_t n = 1; n <= 70; n++) {
        check_layernorm(n, PLAIN);
        check_layernorm(n, WILD);
    }
    check_layernorm(160, PLAIN);
    check_layernorm(768, PLAIN);
    check_layernorm(768, WILD);
}

static void
test_exp2(void **ctx)
{
    static const float at[] = { -100, 128, 0, 127.5f, -99.5f, 0.5f, -0.5f,
        1.5f, -1.5f, 1, -1, 64 };
    enum { N = 60000 };
    const struct pf_kernels *t;
    float *x = room(N, sizeof *x), *ref = nans(N), *y = nans(N + 1);
    double worst = 0;
    size_t n = 0;

    (void)ctx;
    x[n++] = NAN;
    x[n++] = -NAN;
    x[n++] = INFINITY;
    x[n++] = -INFINITY;
    x[n++] = -0.0f;
    x[n++] = 3e38f;
    x[n++] = -3e38f;
    x[n++] = 0x1p-140f;
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        float up = at[i], down = at[i];

        x[n++] = at[i];
        for (int j = 0; j < 20; j++) {
            x[n++] = up = nextafterf(up, INFINITY);
            x[n++] = down = nextafterf(down, -INFINITY);
        }
    }
    for (; n < N; n++)
        x[n] = n % 3 ? uniform() * 130 : number(WILD);

    pf_kernels_portable.exp2(ref, x, N);
    assert_true(isnan(ref[0]) && isnan(ref[1]));
    assert_true(isinf(ref[2]) && ref[3] == 0 && ref[4] == 1);
    for (size_t i = 0; i < N; i++) {
        double e;

        if (isnan(x[i]))
            continue;
        if (x[i] < -100) {
            assert_true(ref[i] == 0 && !signbit(ref[i]));
        } else if (x[i] >= 128) {
            assert_true(isinf(ref[i]) && ref[i] > 0);
        } else {
            e = fabs((double)ref[i] / exp2((double)x[i]) - 1);
            worst = e > worst ? e : worst;
            if (rintf(x[i]) == x[i])
                assert_true(ref[i] == ldexpf(1, (int)x[i]));
        }
    }
    assert_true(worst < 2.5e-7);
    EACH_TABLE(t) {
        t->exp2(y, x, N);
        same(y, ref, N, t->name);
        for (n = 0; n < 40; n++) {
            for (size_t i = 0; i <= n; i++)
                y[i] = i < n ? x[i] : NAN;
            t->exp2(y, y, n);
            same(y, ref, n, t->name);
            assert_true(isnan(y[n]));
        }
    }
    free(x);
    free(ref);
    free(y);
}

static void
test_masses(void **ctx)
{
    enum { N = 5000 };
    const struct pf_kernels *t;
    float *x = room(N, sizeof *x), *ref = nans(N), *y = nans(N + 1);
    double sum, parts[8];

    (void)ctx;
    for (size_t i = 0; i < N; i++)
        x[i] = uniform() * 40 - 45; /* some become 0 */
    for (size_t n = 0; n <= N; n = n < 200 ? n + 1 : n * 5) {
        sum = pf_kernels_portable.masses(ref, x, n, -5, 1.25f);
        memset(parts, 0, sizeof parts);
        for (size_t i = 0; i < n; i++)
            parts[i % 8] += (double)ref[i];
        for (size_t i = 1; i < 8; i++)
            parts[0] += parts[i];
        assert_true(sum == parts[0]);
        EACH_TABLE(t) {
            y[n] = NAN;
            assert_true(t->masses(y, x, n, -5, 1.25f) == sum);
            same(y, ref, n, t->name);
            assert_true(isnan(y[n]));
            memcpy(y, x, n * sizeof *y);
            assert_true(t->masses(y, y, n, -5, 1.25f) == sum);
            same(y, ref, n, t->name);
        }
    }
    free(x);
    free(ref);
    free(y);
}

static void
check_largest(const struct pf_kernels *t, float *x, size_t n, bool finite)
{
    enum { MOST = 1000 };
    float y[MOST], most[MOST], all = x[0];

    memset(y, 0xff, sizeof y);
    memset(most, 0xff, sizeof most);
    assert_int_equal(t->largest(y, most, x, n), finite);
    for (size_t i = 0; i < n; i++)
        assert_true((isnan(x[i]) && isnan(y[i]))
            || (x[i] == y[i] && (x[i] != 0 || !signbit(y[i]))));
    assert_true(isnan(y[n]));
    for (size_t i = 0; finite && i < n; i++) {
        all = i % PF_LARGEST_OF == 0 || x[i] > all ? x[i] : all;
        if (i % PF_LARGEST_OF == PF_LARGEST_OF - 1 || i == n - 1)
            assert_true(most[i / PF_LARGEST_OF] == all);
    }
    assert_true(isnan(most[(n + PF_LARGEST_OF - 1) / PF_LARGEST_OF]));
}

static void
test_largest(void **ctx)
{
    static const float odd[] = { INFINITY, -INFINITY, NAN, -NAN };
    enum { N = 300 };
    const struct pf_kernels *t;
    float *x = room(N, sizeof *x);

    (void)ctx;
    for (size_t n = 1; n <= N; n++) {
        for (size_t i = 0; i < n; i++)
            x[i] = number(n % 2 ? PLAIN : WILD);
        x[(size_t)(fabsf(uniform()) * (float)(n - 1))] = -0.0f;
        EACH_TABLE(t)
            check_largest(t, x, n, true);
    }
    for (size_t i = 0; i < N; i++)
        x[i] = number(PLAIN);
    for (size_t at = 0; at < N; at++) {
        float was = x[at];

        for (size_t k = 0; k < sizeof odd / sizeof *odd; k++) {
            x[at] = odd[k];
            EACH_TABLE(t)
                check_largest(t, x, N, false);
        }
        x[at] = was;
    }
    free(x);
}

static void
test_gelu_tanh(void **ctx)
{
    enum { N = 20000 };
    const struct pf_kernels *t;
    float *x = room(N, sizeof *x), *ref = room(N, sizeof *ref);
    float *y = room(N, sizeof *y);

    (void)ctx;
    for (size_t i = 0; i < N; i++)
        x[i] = i % 4 ? uniform() * 12 : number(WILD);
    x[0] = NAN;
    x[1] = INFINITY;
    x[2] = -0.0f;
    x[3] = 3e38f;
    x[4] = -3e38f;
    x[5] = 1e15f;
    x[6] = -1e15f;
    memcpy(ref, x, N * sizeof *x);
    pf_kernels_portable.gelu_tanh(ref, N);
    assert_true(isnan(ref[0]) && ref[1] == INFINITY);
    for (size_t i = 7; i < N; i++) {
        double v = (double)x[i], u = 0.7978845608028654
            * (v + 0.044715 * v * v * v);

        assert_true(fabs((double)ref[i] - 0.5 * v * (1 + tanh(u)))
            <= 1e-6 * fabs(v) + 1e-44);
    }
    EACH_TABLE(t) {
        memcpy(y, x, N * sizeof *x);
        t->gelu_tanh(y, N);
        same(y, ref, N, t->name);
        for (size_t n = 0; n < 40; n++) {
            memcpy(y, x, N * sizeof *x);
            t->gelu_tanh(y, n);
            same(y, ref, n, t->name);
            same(y + n, x + n, N - n, t->name);
        }
    }
    free(x);
    free(ref);
    free(y);
}

static void
test_gelu(void **ctx)
{
    enum { N = 20000 };
    const struct pf_kernels *t;
    float *x = room(N, sizeof *x), *ref = room(N, sizeof *ref);
    float *y = room(N, sizeof *y);

    (void)ctx;
    for (size_t i = 0; i < N; i++)
        x[i] = i % 4 ? uniform() * 14 : number(WILD);
    x[0] = NAN;
    x[1] = -0.0f;
    x[2] = 3.4e38f;
    x[3] = -3.4e38f;
    x[4] = 1e-40f;
    x[5] = -1e19f;
    x[6] = 4.375f;
    memcpy(ref, x, N * sizeof *x);
    pf_kernels_portable.gelu(ref, N);
    assert_true(isnan(ref[0]));
    for (size_t i = 1; i < N; i++) {
        double v = (double)x[i], want = v * 0.5 * erfc(-v / sqrt(2));

        /* Within 5e-7 of what it is, but far down the tail. */
        if (!(fabs((double)ref[i] - want) <= 5e-7 * fabs(want) + 3e-45
                || (v < -3 && fabs((double)ref[i] - want)
                    <= 1e-7 * fabs(want) * v * v)
                || (v < -11 && ref[i] <= 0 && ref[i] > -1e-25f)))
            fail_msg("gelu(%.9g) is %.9g, not %.9g", v, (double)ref[i], want);
    }
    EACH_TABLE(t) {
        memcpy(y, x, N * sizeof *x);
        t->gelu(y, N);
        same(y, ref, N, t->name);
        for (size_t n = 0; n < 40; n++) {
            memcpy(y, x, N * sizeof *x);
            t->gelu(y, n);
            same(y, ref, n, t->name);
            same(y + n, x + n, N - n, t->name);
        }
    }
    free(x);
    free(ref);
    free(y);
}

static void
test_add(void **ctx)
{
    const struct pf_kernels *t;

    (void)ctx;
    for (size_t n = 0; n < 70; n++) {
        float *x = numbers(n, WILD), *a = numbers(n + 1, WILD);
        float *ref = room(n + 1, sizeof *ref), *y = room(n + 1, sizeof *y);

        memcpy(ref, a, (n + 1) * sizeof *a);
        pf_kernels_portable.add(ref, x, n);
        for (size_t i = 0; i < n; i++)
            assert_true(ref[i] == a[i] + x[i]);
        EACH_TABLE(t) {
            memcpy(y, a, (n + 1) * sizeof *a);
            t->add(y, x, n);
            same(y, ref, n + 1, t->name);
        }
        free(x);
        free(a);
        free(ref);
        free(y);
    }
}

/* Every half number, at any place of a vector; NaN is some NaN. */
static void
test_widen(void **ctx)
{
    static const enum pf_dtype halves[] = { PF_F16, PF_BF16 };
    enum { ALL = 1 << 16 };
    uint16_t *half = room(ALL, sizeof *half);
    float *y = room(ALL + 1, sizeof *y), *ref = room(ALL, sizeof *ref);
    const struct pf_kernels *t;

    (void)ctx;
    for (size_t i = 0; i < ALL; i++)
        half[i] = (uint16_t)i;
    for (size_t k = 0; k < 2; k++) {
        pf_kernels_portable.widen(ref, half, halves[k], ALL);
        for (size_t i = 0; i < ALL; i++)
            assert_true(isnan(ref[i]) || ref[i] == (halves[k] == PF_F16
                ? pf_f16_to_f32(half[i]) : pf_bf16_to_f32(half[i])));
        EACH_TABLE(t) {
            for (size_t n = 0, from = 0; from < ALL; from += n) {
                n = n % 69 + 1 < ALL - from ? n % 69 + 1 : ALL - from;
                y[n] = 7;
                t->widen(y, half + from, halves[k], n);
                assert_true(y[n] == 7);
                for (size_t i = 0; i < n; i++)
                    assert_true(isnan(ref[from + i]) ? isnan(y[i])
                        : memcmp(&y[i], &ref[from + i], sizeof *y) == 0);
            }
            t->widen(y, ref, PF_F32, ALL);
            same(y, ref, ALL, t->name);
        }
    }
    free(half);
    free(y);
    free(ref);
}

/* --- Attention. */

/*
 * Queries and a cache of S positions; keys and values from `filled` on are
 * NaN.  The head lies at an offset in each group, and each group is an array
 * of its own that ends where the head does.  With `f16`, keys and values are
 * numbers that F16 has, and the cache can hold them as such: attention_narrow.
 */
struct attention {
    size_t T, S, D, Dv;
    float *q, *k, *v; /* [T][D], [S][D], [S][Dv] */
    struct pf_kv_head kv;
    void **kg, **vg;
};

enum { K_OFF = 5, V_OFF = 3 };

/* One of magnitude below 1, of any exponent. */
static uint16_t
half(void)
{
    uint32_t r = random32();

    return (uint16_t)((r & 0x8000) | (r >> 16 & 0x3ff)
        | (r & 1 ? 14 : 8 + (r >> 1) % 7 - (r >> 4) % 9) << 10);
}

static struct attention
attention_new(size_t T, size_t S, size_t D, size_t Dv, float spread,
    bool f16)
{
    struct attention a = { .T = T, .S = S, .D = D, .Dv = Dv };
    size_t groups = (S + PF_KV_GROUP - 1) / PF_KV_GROUP;

    a.q = numbers(T * D, PLAIN);
    a.k = numbers(S * D, PLAIN);
    a.v = numbers(S * Dv, PLAIN);
    for (size_t i = 0; i < T * D; i++)
        a.q[i] *= spread;
    for (size_t i = 0; f16 && i < S * D; i++)
        a.k[i] = pf_f16_to_f32(half());
    for (size_t i = 0; f16 && i < S * Dv; i++)
        a.v[i] = pf_f16_to_f32(half());
    a.kg = room(groups, sizeof *a.kg);
    a.vg = room(groups, sizeof *a.vg);
    for (size_t g = 0; g < groups; g++) {
        a.kg[g] = nans(K_OFF + PF_KV_GROUP * D);
        a.vg[g] = nans(V_OFF + PF_KV_GROUP * Dv);
    }
    for (size_t j = 0; j < S; j++) {
        size_t g = j / PF_KV_GROUP, i = j % PF_KV_GROUP;

        for (size_t d = 0; d < D; d++)
            ((float *)a.kg[g])[K_OFF + d * PF_KV_GROUP + i] = a.k[j * D + d];
        for (size_t d = 0; d < Dv; d++)
            ((float *)a.vg[g])[V_OFF + i * Dv + d] = a.v[j * Dv + d];
    }
    a.kv.k = (const void *const *)a.kg;
    a.kv.v = (const void *const *)a.vg;
    a.kv.type = PF_F32;
    a.kv.k_off = K_OFF;
    a.kv.v_off = V_OFF;
    return a;
}

/* The bits of a float that F16 has, of magnitude below 2; or NaN's. */
static uint16_t
as_half(float f)
{
    uint16_t h;

    if (isnan(f))
        return 0x7e00;
    h = fabsf(f) < 0x1p-14f ? (uint16_t)(fabsf(f) * 0x1p24f)
        : (uint16_t)((ilogbf(f) + 14) * 1024
            + (int)(fabsf(f) * ldexpf(1024, -ilogbf(f))));
    return signbit(f) ? h | 0x8000 : h;
}

/* The same numbers in an array of exactly their size. */
static void
narrow(void **group, size_t n)
{
    uint16_t *h = room(n, sizeof *h);

    for (size_t i = 0; i < n; i++)
        h[i] = as_half(((float *)*group)[i]);
    free(*group);
    *group = h;
}

static void
attention_narrow(struct attention *a)
{
    for (size_t g = 0; g < (a->S + PF_KV_GROUP - 1) / PF_KV_GROUP; g++) {
        narrow(&a->kg[g], K_OFF + PF_KV_GROUP * a->D);
        narrow(&a->vg[g], V_OFF + PF_KV_GROUP * a->Dv);
    }
    a->kv.type = PF_F16;
}

static void
attention_free(struct attention *a)
{
    for (size_t g = 0; g < (a->S + PF_KV_GROUP - 1) / PF_KV_GROUP; g++) {
        free(a->kg[g]);
        free(a->vg[g]);
    }
    free(a->kg);
    free(a->vg);
    free(a->q);
    free(a->k);
    free(a->v);
}

/* The rows in pieces: `cut` at a time, or odd pieces if it is 0. */
static void
attention_run(const struct attention *a, const struct pf_kernels *t,
    float *out, float *w, size_t cut, size_t seen, size_t step, float scale)
{
    for (size_t i = 0, n; i < a->T; i += n) {
        n = cut ? cut : 1 + i * 7 % 11;
        n = n < a->T - i ? n : a->T - i;
        t->attn(out + i * (a->Dv + 1), a->Dv + 1, a->q + i * a->D, a->D,
            &a->kv, n, a->D, a->Dv, seen + i * step, step, scale);
        t->attn_weights(w + i * (a->S + 1), a->S + 1, a->q + i * a->D, a->D,
            &a->kv, n, a->D, a->S, seen + i * step, step, scale);
    }
}

static void
check_reference(const struct attention *a, const float *out, const float *w,
    size_t seen, size_t step, float scale)
{
    double *s = room(a->S, sizeof *s);

    for (size_t t = 0; t < a->T; t++) {
        size_t n = seen + t * step;
        double max = -INFINITY, sum = 0, all = 0;

        for (size_t j = 0; j < n; j++) {
            s[j] = 0;
            for (size_t d = 0; d < a->D; d++)
                s[j] += (double)a->q[t * a->D + d]
                    * (double)a->k[j * a->D + d];
            s[j] *= (double)scale;
            max = s[j] > max ? s[j] : max;
        }
        for (size_t j = 0; j < n; j++)
            sum += s[j] = exp(s[j] - max);
        for (size_t j = 0; j < a->S; j++) {
            double is = (double)w[t * (a->S + 1) + j];

            assert_true(fabs(is - (j < n ? s[j] / sum : 0)) < 1e-5);
            all += is;
        }
        assert_true(fabs(all - 1) < 1e-5);
        for (size_t d = 0; d < a->Dv; d++) {
            double is = (double)out[t * (a->Dv + 1) + d], ref = 0, mix = 0;

            for (size_t j = 0; j < n; j++) {
                ref += s[j] / sum * (double)a->v[j * a->Dv + d];
                mix += (double)w[t * (a->S + 1) + j]
                    * (double)a->v[j * a->Dv + d];
            }
            assert_true(fabs(is - ref) < 1e-5);
            assert_true(fabs(is - mix) < 1e-5);
        }
    }
    free(s);
}

static void
check_attention_of(bool f16, size_t T, size_t S, size_t D, size_t Dv,
    size_t seen, size_t step, float spread)
{
    struct attention a = attention_new(T, S, D, Dv, spread, f16);
    const size_t cuts[] = { T, 1, 0, 6, 48 };
    const struct pf_kernels *t;
    size_t n_out = T * (Dv + 1), n_w = T * (S + 1);
    float scale = (float)(1 / sqrt((double)D));
    float *ref = nans(n_out), *wref = nans(n_w), *out, *w;
    char what[120];

    attention_run(&a, &pf_kernels_portable, ref, wref, T, seen, step, scale);
    check_reference(&a, ref, wref, seen, step, scale);

    /* What the last row does not see may hold anything. */
    for (size_t j = seen + (T - 1) * step; j < S; j++) {
        size_t g = j / PF_KV_GROUP, i = j % PF_KV_GROUP;

        for (size_t d = 0; d < D; d++)
            ((float *)a.kg[g])[K_OFF + d * PF_KV_GROUP + i] = NAN;
        for (size_t d = 0; d < Dv; d++)
            ((float *)a.vg[g])[V_OFF + i * Dv + d] = NAN;
    }
    if (f16)
        attention_narrow(&a);
    for (size_t i = 0; (t = pf_kernels_list(i)); i++) {
        for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++) {
            if (t == &pf_kernels_portable && c != 1 + (size_t)f16)
                continue;
            out = nans(n_out);
            w = nans(n_w);
            attention_run(&a, t, out, w, cuts[c], seen, step, scale);
            snprintf(what, sizeof what, "%s attn f16=%d T=%zu S=%zu D=%zu "
                "Dv=%zu seen=%zu step=%zu cut=%zu", t->name, f16, T, S, D, Dv,
                seen, step, cuts[c]);
            same(out, ref, n_out, what);
            same(w, wref, n_w, what);
            free(out);
            free(w);
        }
    }
    free(ref);
    free(wref);
    attention_free(&a);
}

/* A cache of F16 gives the bits that one of F32 with the same numbers does. */
static void
check_attention(size_t T, size_t S, size_t D, size_t Dv, size_t seen,
    size_t step, float spread)
{
    check_attention_of(false, T, S, D, Dv, seen, step, spread);
    check_attention_of(true, T, S, D, Dv, seen, step, spread);
}

static void
test_attention_widths(void **ctx)
{
    static const size_t widths[] = { 1, 2, 16, 40, 48, 64, 65, 128 };

    (void)ctx;
    for (size_t i = 0; i < 8; i++) {
        check_attention(13, 80, widths[i], widths[i], 60, 1, 2);
        check_attention(7, 30, widths[i], widths[(i + 3) % 8], 20, 0, 2);
    }
    check_attention(8, 70, 300, 200, 60, 1, 1);
}

static void
test_attention_lengths(void **ctx)
{
    static const size_t borders[] = { 15, 16, 17, 31, 47, 63, 64, 65, 79, 127,
        128, 129, 191, 192, 193 };

    (void)ctx;
    for (size_t i = 0; i < sizeof borders / sizeof *borders; i++) {
        check_attention(1, borders[i], 16, 16, borders[i], 1, 3);
        check_attention(9, borders[i] + 9, 8, 20, borders[i] - 5, 1, 3);
        check_attention(3, borders[i] + 2, 4, 4, borders[i], 0, 3);
    }
    check_attention(150, 150, 16, 16, 1, 1, 3);
    check_attention(55, 260, 40, 40, 200, 1, 3);
    check_attention(1, 1, 4, 4, 1, 1, 1);
}

/* Scores that spread over hundreds of powers of two, and denormal ones. */
static void
test_attention_spread(void **ctx)
{
    (void)ctx;
    check_attention(30, 160, 16, 16, 131, 1, 150);
    check_attention(30, 160, 16, 16, 131, 1, 1e-38f);
    check_attention(30, 160, 16, 16, 131, 1, 0);
}

/* --- Attention with a mask. */

enum mask_kind { ALL, SOME, NONE, CAUSAL, ROWS, KEYS, ADD, ADD_SOME, LEAST,
    N_MASKS };

/* A mask of exactly the entries that the kernels may read. */
static struct pf_attn_mask
mask_new(enum mask_kind kind, size_t T, size_t S)
{
    struct pf_attn_mask m = { .type = kind < ADD ? PF_BOOL : PF_F32,
        .row = kind == KEYS ? 0 : kind == ROWS ? 1 : S,
        .column = kind != ROWS };
    size_t rows = m.row ? T : 1, columns = m.column ? S : 1;
    unsigned char *may = room(rows * columns, 1);
    float *add = room(rows * columns, sizeof *add);

    for (size_t t = 0; t < rows; t++) {
        for (size_t j = 0; j < columns; j++) {
            size_t i = t * columns + j;
            unsigned r = random32() % 8;

            may[i] = kind == ALL ? 1 : kind == NONE ? 0
                : kind == CAUSAL ? j <= t : r < 3 ? (unsigned char)(r + r / 2)
                : 0;
            /* Whole blocks of keys that no row may attend to. */
            if (kind == SOME && (j / 64 % 2 || t % 5 == 0))
                may[i] = 0;
            add[i] = kind == LEAST ? -3.4028234663852886e38f
                : kind == ADD || r ? uniform() * 5 : -INFINITY;
            if (kind == ADD_SOME && t % 4 == 1)
                add[i] = -INFINITY;
        }
    }
    m.data = m.type == PF_BOOL ? (void *)may : (void *)add;
    free(m.type == PF_BOOL ? (void *)add : (void *)may);
    return m;
}

static double
mask_bias(const struct pf_attn_mask *m, size_t t, size_t j)
{
    size_t i = t * m->row + j * m->column;

    if (m->type == PF_BOOL)
        return ((const unsigned char *)m->data)[i] ? 0 : (double)-INFINITY;
    return (double)((const float *)m->data)[i];
}

static void
masked_run(const struct attention *a, const struct pf_kernels *t,
    const struct pf_attn_mask *mask, float *out, float *w, size_t cut,
    float scale)
{
    for (size_t i = 0, n; i < a->T; i += n) {
        struct pf_attn_mask m = *mask;

        n = cut ? cut : 1 + i * 7 % 11;
        n = n < a->T - i ? n : a->T - i;
        m.data = (const char *)m.data
            + i * m.row * pf_dtype_size(m.type);
        t->attn_masked(out + i * (a->Dv + 1), a->Dv + 1, a->q + i * a->D,
            a->D, &a->kv, &m, n, a->D, a->Dv, a->S, scale);
        t->attn_masked_weights(w + i * (a->S + 1), a->S + 1, a->q + i * a->D,
            a->D, &a->kv, &m, n, a->D, a->S, scale);
    }
}

static void
check_masked_reference(const struct attention *a,
    const struct pf_attn_mask *mask, const float *out, const float *w,
    float scale)
{
    double *s = room(a->S, sizeof *s);

    for (size_t t = 0; t < a->T; t++) {
        double max = -INFINITY, sum = 0;

        for (size_t j = 0; j < a->S; j++) {
            s[j] = 0;
            for (size_t d = 0; d < a->D; d++)
                s[j] += (double)a->q[t * a->D + d]
                    * (double)a->k[j * a->D + d];
            s[j] = s[j] * (double)scale + mask_bias(mask, t, j);
            if (mask_bias(mask, t, j) < -1e38 && !isinf(s[j]))
                s[j] = -1e38; /* the score is lost beside that */
            max = s[j] > max ? s[j] : max;
        }
        for (size_t j = 0; j < a->S; j++)
            sum += s[j] = isinf(s[j]) ? 0 : exp(s[j] - max);
        for (size_t j = 0; j < a->S; j++) {
            s[j] /= sum > 0 ? sum : 1;
            assert_true(fabs((double)w[t * (a->S + 1) + j] - s[j]) < 1e-5);
            if (sum == 0)
                assert_true(w[t * (a->S + 1) + j] == 0);
        }
        for (size_t d = 0; d < a->Dv; d++) {
            double is = (double)out[t * (a->Dv + 1) + d], ref = 0;

            for (size_t j = 0; j < a->S; j++)
                ref += s[j] * (double)a->v[j * a->Dv + d];
            assert_true(fabs(is - ref) < 1e-5);
            if (sum == 0)
                assert_true(is == 0);
        }
    }
    free(s);
}

static void
check_masked(enum mask_kind kind, size_t T, size_t S, size_t D, size_t Dv)
{
    bool f16 = S % 3 == 1;
    struct attention a = attention_new(T, S, D, Dv, 3, f16);
    struct pf_attn_mask mask = mask_new(kind, T, S);
    const size_t cuts[] = { T, 1, 0, 48 };
    const struct pf_kernels *t;
    size_t n_out = T * (Dv + 1), n_w = T * (S + 1);
    float scale = (float)(1 / sqrt((double)D));
    float *ref = nans(n_out), *wref = nans(n_w), *out, *w;
    char what[120];

    masked_run(&a, &pf_kernels_portable, &mask, ref, wref, T, scale);
    check_masked_reference(&a, &mask, ref, wref, scale);
    if (f16)
        attention_narrow(&a);
    for (size_t i = 0; (t = pf_kernels_list(i)); i++) {
        for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++) {
            out = nans(n_out);
            w = nans(n_w);
            masked_run(&a, t, &mask, out, w, cuts[c], scale);
            snprintf(what, sizeof what, "%s attn_masked %d T=%zu S=%zu D=%zu "
                "Dv=%zu cut=%zu", t->name, (int)kind, T, S, D, Dv, cuts[c]);
            same(out, ref, n_out, what);
            same(w, wref, n_w, what);
            free(out);
            free(w);
        }
    }
    /* What may be attended to gives what is seen. */
    if (kind == ALL || (kind == CAUSAL && S >= T)) {
        out = nans(n_out);
        w = nans(n_w);
        attention_run(&a, &pf_kernels_portable, out, w, T,
            kind == ALL ? S : 1, kind == CAUSAL, scale);
        same(out, ref, n_out, "a mask as seen");
        same(w, wref, n_w, "a mask as seen, weights");
        free(out);
        free(w);
    }
    free(ref);
    free(wref);
    free((void *)mask.data);
    attention_free(&a);
}

static void
test_attention_masked(void **ctx)
{
    static const size_t lengths[] = { 1, 15, 16, 17, 63, 64, 65, 130, 200 };

    (void)ctx;
    for (int kind = 0; kind < N_MASKS; kind++) {
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            check_masked((enum mask_kind)kind, 1 + i * 5 % 13, lengths[i], 8,
                12);
        check_masked((enum mask_kind)kind, 53, 150, 33, 40);
        check_masked((enum mask_kind)kind, 7, 70, 130, 20);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_choice, seed),
        cmocka_unit_test_setup(test_product_rows, seed),
        cmocka_unit_test_setup(test_product_depth, seed),
        cmocka_unit_test_setup(test_product_width, seed),
        cmocka_unit_test_setup(test_product_many, seed),
        cmocka_unit_test_setup(test_product_nonfinite, seed),
        cmocka_unit_test_setup(test_product_zeros, seed),
        cmocka_unit_test_setup(test_product_value, seed),
        cmocka_unit_test_setup(test_layernorm, seed),
        cmocka_unit_test_setup(test_exp2, seed),
        cmocka_unit_test_setup(test_masses, seed),
        cmocka_unit_test_setup(test_largest, seed),
        cmocka_unit_test_setup(test_gelu_tanh, seed),
        cmocka_unit_test_setup(test_gelu, seed),
        cmocka_unit_test_setup(test_add, seed),
        cmocka_unit_test_setup(test_widen, seed),
        cmocka_unit_test_setup(test_attention_widths, seed),
        cmocka_unit_test_setup(test_attention_lengths, seed),
        cmocka_unit_test_setup(test_attention_spread, seed),
        cmocka_unit_test_setup(test_attention_masked, seed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
