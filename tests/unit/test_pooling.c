#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include <pipeformer/pooling.h>

static const float rows[4][3] = {
    { 1, -2, 0.5f }, { 4, -8, 0 }, { -1, -3, 7 }, { 2, -1, -0.5f },
};

static void
check(enum pf_pool_how how, const float want[3])
{
    /* Each way to cut four rows in three, empty parts too. */
    for (size_t a = 0; a <= 4; a++) {
        for (size_t b = a; b <= 4; b++) {
            struct pf_pooling p = { .how = how };
            float got[3];

            assert_int_equal(pf_pooling_add(&p, rows[0], a, 3, NULL), PF_OK);
            assert_int_equal(pf_pooling_add(&p, rows[a % 4], b - a, 3, NULL),
                PF_OK);
            assert_int_equal(pf_pooling_add(&p, rows[b % 4], 4 - b, 3, NULL),
                PF_OK);
            assert_int_equal(p.rows, 4);
            assert_int_equal(p.width, 3);
            pf_pooling_get(&p, got);
            assert_memory_equal(got, want, sizeof got);
            pf_pooling_fini(&p);
        }
    }
}

static void
test_ways(void **ctx)
{
    (void)ctx;
    check(PF_POOL_MEAN, (float[]){ 1.5f, -3.5f, 1.75f });
    check(PF_POOL_FIRST, (float[]){ 1, -2, 0.5f });
    check(PF_POOL_LAST, (float[]){ 2, -1, -0.5f });
    check(PF_POOL_MAX, (float[]){ 4, -1, 7 });
}

static void
test_width(void **ctx)
{
    struct pf_pooling p = { .how = PF_POOL_MEAN };
    struct pf_err err;

    (void)ctx;
    assert_int_equal(pf_pooling_add(&p, NULL, 0, 0, NULL), PF_OK);
    assert_int_equal(p.rows, 0);
    assert_int_equal(pf_pooling_add(&p, rows[0], 2, 3, NULL), PF_OK);
    assert_int_equal(pf_pooling_add(&p, rows[0], 3, 2, &err), PF_ESHAPE);
    assert_non_null(strstr(err.msg, "3"));
    pf_pooling_fini(&p);
    pf_pooling_fini(&p);
    /* Rows of no numbers are rows. */
    assert_int_equal(pf_pooling_add(&p, rows[0], 2, 0, NULL), PF_OK);
    assert_int_equal(p.rows, 2);
    pf_pooling_fini(&p);
}

static void
test_normalize(void **ctx)
{
    float x[3] = { 3, 0, -4 }, zero[2] = { 0, -0.0f };
    float big[2] = { 3e38f, 3e38f }, small[2] = { 1e-40f, 0 };

    (void)ctx;
    pf_normalize_length(x, 3);
    assert_true(x[0] == 0.6f && x[1] == 0 && x[2] == -0.8f);
    pf_normalize_length(zero, 2);
    assert_true(zero[0] == 0 && zero[1] == 0);
    pf_normalize_length(big, 2);
    assert_true(fabsf(big[0] - 0.70710678f) < 1e-6f && big[0] == big[1]);
    pf_normalize_length(small, 2);
    assert_true(small[0] == 1 && small[1] == 0);
    pf_normalize_length(NULL, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ways),
        cmocka_unit_test(test_width),
        cmocka_unit_test(test_normalize),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
