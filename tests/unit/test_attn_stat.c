#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/attn-stat.h>

static void
near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-6))
        fail_msg("%.9g is not %.9g", a, b);
}

static struct pf_attn_stat *
make(size_t L, size_t H, bool rollout)
{
    struct pf_attn_stat *a;

    assert_int_equal(pf_attn_stat_new(&a, L, H, rollout, NULL), PF_OK);
    return a;
}

/* Tokens x y x x; every sum can be read off. */
static const uint32_t xyxx[] = { 7, 8, 7, 7 };
static const float map4[] = {
    1, 0, 0, 0,
    .25f, .75f, 0, 0,
    .5f, .25f, .25f, 0,
    .125f, .5f, .25f, .125f,
};

static void
test_by_hand(void **ctx)
{
    const float *maps[] = { map4 };
    struct pf_attn_stat *a = make(1, 1, false);
    struct pf_head_stat s;

    (void)ctx;
    assert_int_equal(pf_attn_stat_add(a, maps, 4, 4, xyxx, NULL), PF_OK);
    pf_attn_stat_head(a, 0, 0, &s);
    near(s.entropy, (0 + (.25 * log(4) - .75 * log(.75)) + 1.5 * log(2)
        + (.25 * log(8) + .5 * log(2) + .25 * log(4))) / 4);
    near(s.first, (1 + .25 + .5 + .125) / 4);
    near(s.self, (1 + .75 + .25 + .125) / 4);
    near(s.previous, (.25 + .25 + .25) / 4);
    /* Row 2 has its token at 0, row 3 at 0 and 2. */
    near(s.duplicate, (.5 + .125 + .25) / 4);
    near(s.induction, (.25 + .5 + .125) / 4);
    assert_int_equal(pf_attn_stat_rows(a), 4);
    assert_int_equal(pf_attn_stat_repeats(a), 2);
    assert_memory_equal(pf_attn_stat_ids(a), xyxx, sizeof xyxx);
    pf_attn_stat_free(a);
}

/* Row by row the sums are the same, to the last bit. */
static void
test_grows(void **ctx)
{
    struct pf_attn_stat *a = make(1, 1, true), *b = make(1, 1, true);
    const float *maps[] = { map4 };
    struct pf_head_stat s, t;

    (void)ctx;
    assert_int_equal(pf_attn_stat_add(a, maps, 4, 4, xyxx, NULL), PF_OK);
    for (size_t i = 0; i < 4; i++) {
        maps[0] = map4 + 4 * i;
        assert_int_equal(pf_attn_stat_add(b, maps, 1, i + 1, xyxx + i, NULL),
            PF_OK);
        assert_int_equal(pf_attn_stat_add(b, maps, 0, i + 1, xyxx, NULL),
            PF_OK);
    }
    pf_attn_stat_head(a, 0, 0, &s);
    pf_attn_stat_head(b, 0, 0, &t);
    assert_memory_equal(&s, &t, sizeof s);
    for (size_t i = 0; i < 4; i++)
        assert_memory_equal(pf_attn_stat_rollout(a, i),
            pf_attn_stat_rollout(b, i), 4 * sizeof(float));
    assert_int_equal(pf_attn_stat_repeats(b), 2);
    /* It has four positions: a fifth row has five columns. */
    assert_int_equal(pf_attn_stat_add(b, maps, 1, 4, xyxx, NULL), PF_ESHAPE);
    pf_attn_stat_free(a);
    pf_attn_stat_free(b);
}

static void
test_pure_heads(void **ctx)
{
    enum { T = 60, PERIOD = 3 };
    static float first[T][T], self[T][T], previous[T][T], induction[T][T],
        even[T][T];
    const float *maps[] = { &first[0][0], &self[0][0], &previous[0][0],
        &induction[0][0], &even[0][0] };
    struct pf_attn_stat *a = make(1, 5, false);
    struct pf_head_stat s;
    uint32_t ids[T];
    double mean = 0;

    (void)ctx;
    for (size_t t = 0; t < T; t++) {
        ids[t] = t % PERIOD;
        first[t][0] = self[t][t] = previous[t][t ? t - 1 : 0] = 1;
        induction[t][t < PERIOD ? 0 : t - PERIOD + 1] = 1;
        for (size_t j = 0; j <= t; j++)
            even[t][j] = 1 / (float)(t + 1);
        mean += log((double)t + 1) / T;
    }
    assert_int_equal(pf_attn_stat_add(a, maps, T, T, ids, NULL), PF_OK);
    pf_attn_stat_head(a, 0, 0, &s);
    near(s.first, 1);
    near(s.entropy, 0);
    near(s.self, 1. / T);
    pf_attn_stat_head(a, 0, 1, &s);
    near(s.self, 1);
    near(s.duplicate, 0);
    near(s.induction, 0);
    pf_attn_stat_head(a, 0, 2, &s);
    near(s.previous, (T - 1.) / T);
    pf_attn_stat_head(a, 0, 3, &s);
    near(s.induction, (double)(T - PERIOD) / T);
    near(s.duplicate, 0);
    pf_attn_stat_head(a, 0, 4, &s);
    near(s.entropy, mean);
    assert_int_equal(pf_attn_stat_repeats(a), T - PERIOD);
    pf_attn_stat_free(a);
}

/* Rows that do not sum to 1, or to nothing. */
static void
test_masses(void **ctx)
{
    const float m[] = { 0, 0, 3, 1 };
    const float *maps[] = { m };
    struct pf_attn_stat *a = make(1, 1, false);
    struct pf_head_stat s;

    (void)ctx;
    pf_attn_stat_head(a, 0, 0, &s);
    assert_true(isnan(s.entropy) && isnan(s.first) && isnan(s.induction));
    assert_int_equal(pf_attn_stat_add(a, maps, 2, 2, NULL, NULL), PF_OK);
    pf_attn_stat_head(a, 0, 0, &s);
    near(s.entropy, log(4) - .75 * log(3));
    near(s.first, .75);
    near(s.self, .25);
    near(s.previous, .75);
    assert_true(isnan(s.duplicate) && isnan(s.induction));
    assert_null(pf_attn_stat_ids(a));
    pf_attn_stat_free(a);
}

/* Keys from elsewhere: columns are no positions. */
static void
test_elsewhere(void **ctx)
{
    const float m[] = { .5f, .5f, 0, 1, 0, 0 };
    const float *maps[] = { m };
    struct pf_attn_stat *a = make(1, 1, false), *r = make(1, 1, true);
    struct pf_head_stat s;
    struct pf_err err;

    (void)ctx;
    assert_int_equal(pf_attn_stat_add(a, maps, 2, 3, xyxx, NULL), PF_OK);
    pf_attn_stat_head(a, 0, 0, &s);
    near(s.entropy, log(2) / 2);
    near(s.first, .75);
    assert_true(isnan(s.self) && isnan(s.previous) && isnan(s.duplicate));
    assert_int_equal(pf_attn_stat_add(a, maps, 1, 3, xyxx, &err), PF_ESHAPE);
    assert_int_equal(pf_attn_stat_add(r, maps, 2, 3, xyxx, &err), PF_ESHAPE);
    assert_non_null(strstr(err.msg, "has 3 columns"));
    pf_attn_stat_free(a);
    pf_attn_stat_free(r);
}

static void
test_bad_weights(void **ctx)
{
    const float bad[] = { NAN, INFINITY, -INFINITY, -.5f };
    float good[] = { 1, 0, .5f, .5f }, m[] = { 1, 0, .5f, .5f };
    const float *maps[] = { good, m };
    struct pf_err err;

    (void)ctx;
    for (size_t i = 0; i < 4; i++) {
        struct pf_attn_stat *a = make(2, 1, false);

        m[3] = bad[i];
        assert_int_equal(pf_attn_stat_add(a, maps, 2, 2, xyxx, &err),
            PF_ERANGE);
        assert_non_null(strstr(err.msg, "in map 1, row 1, column 1"));
        pf_attn_stat_free(a);
    }
}

/* Two layers of two heads: B1 B0 worked out by hand. */
static void
test_rollout(void **ctx)
{
    const float a0[] = { 1, 0, 1, 0 }, a1[] = { 1, 0, 0, 1 };
    const float *maps[] = { a0, a1, a0, a0 };
    const float b0[] = { 1, 0, .25f, .75f };
    const float want[] = { 1, 0, .5f + .125f, .375f };
    struct pf_attn_stat *a = make(2, 2, true), *one = make(1, 2, true);

    (void)ctx;
    assert_int_equal(pf_attn_stat_add(a, maps, 2, 2, NULL, NULL), PF_OK);
    assert_int_equal(pf_attn_stat_add(one, maps, 2, 2, NULL, NULL), PF_OK);
    for (size_t t = 0; t < 2; t++)
        for (size_t j = 0; j < 2; j++) {
            near((double)pf_attn_stat_rollout(one, t)[j],
                (double)b0[2 * t + j]);
            near((double)pf_attn_stat_rollout(a, t)[j],
                (double)want[2 * t + j]);
        }
    pf_attn_stat_free(a);
    pf_attn_stat_free(one);
}

static double
random01(uint64_t *r)
{
    *r = *r * 6364136223846793005u + 1442695040888963407u;
    return (double)(*r >> 40) / (1 << 24);
}

/* Random causal maps, cut into blocks: against sums in double, written out. */
static void
test_rollout_grows(void **ctx)
{
    enum { L = 3, H = 2, T = 37 };
    static float maps[L * H][T][T], part[L * H][T * T];
    static double r[T][T], next[T][T];
    const float *at[L * H];
    struct pf_attn_stat *a = make(L, H, true);
    uint64_t seed = 5;
    size_t n;

    (void)ctx;
    for (size_t i = 0; i < L * H; i++)
        for (size_t t = 0; t < T; t++) {
            double sum = 0;

            for (size_t j = 0; j <= t; j++)
                sum += maps[i][t][j] = (float)random01(&seed);
            for (size_t j = 0; j <= t; j++)
                maps[i][t][j] /= (float)sum;
        }
    for (size_t from = 0; from < T; from += n) {
        n = 1 + from % 4;
        n = from + n > T ? T - from : n;
        for (size_t i = 0; i < L * H; i++) {
            for (size_t t = 0; t < n; t++)
                memcpy(part[i] + t * (from + n), maps[i][from + t],
                    (from + n) * sizeof(float));
            at[i] = part[i];
        }
        assert_int_equal(pf_attn_stat_add(a, at, n, from + n, NULL, NULL),
            PF_OK);
    }
    for (size_t t = 0; t < T; t++)
        r[t][t] = 1;
    for (size_t l = 0; l < L; l++) {
        memset(next, 0, sizeof next);
        for (size_t t = 0; t < T; t++)
            for (size_t k = 0; k <= t; k++) {
                double b = (t == k) / 2.;

                for (size_t h = 0; h < H; h++)
                    b += (double)maps[l * H + h][t][k] / H / 2;
                for (size_t j = 0; j <= k; j++)
                    next[t][j] += b * r[k][j];
            }
        memcpy(r, next, sizeof r);
    }
    for (size_t t = 0; t < T; t++)
        for (size_t j = 0; j < T; j++)
            near((double)pf_attn_stat_rollout(a, t)[j], r[t][j]);
    assert_true(pf_attn_stat_bytes(a) > L * T * T * sizeof(float));
    pf_attn_stat_free(a);
}

static void
test_empty(void **ctx)
{
    struct pf_attn_stat *a = make(2, 2, true), *none = make(0, 3, false);
    const float *maps[4] = { map4, map4, map4, map4 };

    (void)ctx;
    assert_int_equal(pf_attn_stat_add(a, maps, 0, 0, NULL, NULL), PF_OK);
    assert_int_equal(pf_attn_stat_rows(a), 0);
    assert_int_equal(pf_attn_stat_add(none, NULL, 3, 3, xyxx, NULL), PF_OK);
    assert_int_equal(pf_attn_stat_rows(none), 3);
    pf_attn_stat_free(a);
    pf_attn_stat_free(none);
    pf_attn_stat_free(NULL);
    assert_int_equal(pf_attn_stat_new(&a, SIZE_MAX / 2, 3, false, NULL),
        PF_ENOMEM);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_grows),
        cmocka_unit_test(test_pure_heads),
        cmocka_unit_test(test_masses),
        cmocka_unit_test(test_elsewhere),
        cmocka_unit_test(test_bad_weights),
        cmocka_unit_test(test_rollout),
        cmocka_unit_test(test_rollout_grows),
        cmocka_unit_test(test_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
