#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include <pipeformer/compare.h>

static struct pf_tensor
floats(const float *v, size_t n)
{
    return (struct pf_tensor){ "x", PF_F32, 1, { n }, v };
}

static void
test_summary(void **ctx)
{
    const float v[] = { 3, -1, NAN, 4, 2, NAN };
    const uint8_t bytes[] = { 0, 255 };
    const int64_t large[] = { INT64_MIN, INT64_MIN };
    struct pf_tensor t = floats(v, 6);
    struct pf_summary s;

    (void)ctx;
    assert_int_equal(pf_summarise(&t, &s, NULL), PF_OK);
    assert_true(s.min == -1 && s.max == 4 && s.mean == 2 && s.nan == 2);
    assert_true(fabs(s.std - sqrt(3.5)) < 1e-15); /* 1 + 9 + 4 + 0 over 4 */
    assert_true(fabs(s.norm - sqrt(30)) < 1e-15);
    t.shape[0] = 1;
    assert_int_equal(pf_summarise(&t, &s, NULL), PF_OK);
    assert_true(s.min == 3 && s.max == 3 && s.mean == 3 && s.std == 0
        && s.norm == 3 && s.nan == 0);
    t = floats(v + 2, 1); /* nothing but NaN */
    assert_int_equal(pf_summarise(&t, &s, NULL), PF_OK);
    assert_true(isnan(s.min) && isnan(s.max) && isnan(s.mean)
        && isnan(s.std) && s.nan == 1);
    t = floats(v, 0);
    assert_int_equal(pf_summarise(&t, &s, NULL), PF_OK);
    assert_true(isnan(s.min) && isnan(s.max) && isnan(s.mean)
        && isnan(s.std) && s.nan == 0);
    t = (struct pf_tensor){ "x", PF_U8, 2, { 1, 2 }, bytes };
    assert_int_equal(pf_summarise(&t, &s, NULL), PF_OK);
    assert_true(s.min == 0 && s.max == 255 && s.mean == 127.5
        && s.std == 127.5 && s.norm == 255);
    t = (struct pf_tensor){ "x", PF_I64, 1, { 2 }, large };
    assert_int_equal(pf_summarise(&t, &s, NULL), PF_OK);
    assert_true(s.min == -0x1p63 && s.mean == -0x1p63 && s.std == 0);
    t = (struct pf_tensor){ "x", PF_F8_E5M2, 1, { 3 }, "\x38\x3c\x7e" };
    assert_int_equal(pf_summarise(&t, &s, NULL), PF_OK);
    assert_true(s.min == 0.5 && s.max == 1 && s.nan == 1);
    t = floats((float[]){ INFINITY, 1 }, 2);
    assert_int_equal(pf_summarise(&t, &s, NULL), PF_OK);
    assert_true(s.max == INFINITY && s.min == 1 && s.mean == INFINITY);
}

/* A large offset does not eat the deviation: two passes, in double. */
static void
test_summary_offset(void **ctx)
{
    static float v[1000];
    struct pf_tensor t = floats(v, 1000);
    struct pf_summary s;

    (void)ctx;
    for (int i = 0; i < 1000; i++)
        v[i] = 16777216.0f + (float)(i % 2 * 2);
    assert_int_equal(pf_summarise(&t, &s, NULL), PF_OK);
    assert_true(s.mean == 16777217 && s.std == 1);
}

static size_t
differences(const float *x, const float *y, size_t n, double atol,
    double rtol, struct pf_difference *d)
{
    struct pf_tensor a = floats(x, n), b = floats(y, n);

    assert_int_equal(pf_compare(&a, &b, atol, rtol, d, NULL), PF_OK);
    return d->n;
}

static void
test_compare(void **ctx)
{
    const float x[] = { 1, 2, 3, 4 }, y[] = { 1, 2.5f, 1, 4 };
    struct pf_difference d;

    (void)ctx;
    assert_int_equal(differences(x, x, 4, 0, 0, &d), 0);
    assert_int_equal(differences(x, y, 0, 0, 0, &d), 0);
    assert_int_equal(differences(x, y, 4, 0, 0, &d), 2);
    assert_true(d.at == 2 && d.x == 3 && d.y == 1);
    assert_int_equal(differences(x, y, 4, 0.5, 0, &d), 1);
    assert_int_equal(differences(x, y, 4, 0.49, 0, &d), 2);
    assert_int_equal(differences(x, y, 4, 2, 0, &d), 0);
    /* Relative to the second. */
    assert_int_equal(differences(x, y, 4, 0, 2, &d), 0);
    assert_int_equal(differences(y, x, 4, 0, 0.7, &d), 0);
    assert_int_equal(differences(x, y, 4, 0, 0.7, &d), 1);
    assert_int_equal(differences(x, y, 4, 1, 1, &d), 0);
}

static void
test_compare_special(void **ctx)
{
    const float v[] = { NAN, INFINITY, -INFINITY, 0, 1 };
    const float zeros[] = { 0, -0.0f };
    const float a[] = { 1, NAN, 5, NAN }, b[] = { 9, 1, 7, 2 };
    struct pf_difference d;

    (void)ctx;
    /* Each against each: the same only as itself, whatever is allowed. */
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 5; j++) {
            bool finite = isfinite(v[i]) && isfinite(v[j]);

            assert_int_equal(differences(&v[i], &v[j], 1, 0, 0, &d), i != j);
            if (differences(&v[i], &v[j], 1, 10, 0.5, &d)
                != (i != j && !finite))
                fail_msg("%g against %g", (double)v[i], (double)v[j]);
        }
    assert_int_equal(differences(zeros, zeros + 1, 1, 0, 0, &d), 0);
    /* NaN is further than any distance; the first of them is named. */
    assert_int_equal(differences(a, b, 4, 0, 0, &d), 4);
    assert_int_equal(d.at, 1);
    assert_true(isnan(d.x) && d.y == 1);
}

static void
test_compare_kinds(void **ctx)
{
    const float f[] = { 1, 2, 3, 4, 5, 6 };
    const double g[] = { 1, 2, 3, 4, 5, 6.5 };
    struct pf_tensor a = { "a", PF_F32, 2, { 2, 3 }, f };
    struct pf_tensor b = { "b", PF_F64, 2, { 2, 3 }, g };
    struct pf_difference d;
    struct pf_err err;

    (void)ctx;
    assert_int_equal(pf_compare(&a, &b, 0, 0, &d, NULL), PF_OK);
    assert_true(d.n == 1 && d.at == 5 && d.x == 6 && d.y == 6.5);
    b.shape[0] = 3;
    b.shape[1] = 2;
    assert_int_equal(pf_compare(&a, &b, 0, 0, &d, &err), PF_ESHAPE);
    assert_non_null(strstr(err.msg, "[2, 3]"));
    assert_non_null(strstr(err.msg, "[3, 2]"));
    b.ndim = 1;
    b.shape[0] = 6;
    assert_int_equal(pf_compare(&a, &b, 0, 0, &d, &err), PF_ESHAPE);
    a.dtype = b.dtype = PF_F8_E5M2;
    b = a;
    assert_int_equal(pf_compare(&a, &b, 0, 0, &d, &err), PF_OK);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_summary),
        cmocka_unit_test(test_summary_offset),
        cmocka_unit_test(test_compare),
        cmocka_unit_test(test_compare_special),
        cmocka_unit_test(test_compare_kinds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
