#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include <pipeformer/cosine.h>

#define ADD(r, ...) \
    pf_rows_add(r, (const float[]){ __VA_ARGS__ }, \
        sizeof (float[]){ __VA_ARGS__ } / sizeof(float), NULL)

static void
test_by_hand(void **ctx)
{
    struct pf_rows r = PF_ROWS_INIT;
    float out[5];

    (void)ctx;
    assert_int_equal(ADD(&r, 3, 4), PF_OK);
    assert_int_equal(ADD(&r, -6, -8), PF_OK);
    assert_int_equal(ADD(&r, 4, -3), PF_OK);
    assert_int_equal(ADD(&r, 1, 0), PF_OK);
    assert_int_equal(ADD(&r, 0, 0), PF_OK);
    assert_int_equal(ADD(&r, 1, 0, 0), PF_ESHAPE);
    assert_int_equal(r.n, 5);
    pf_rows_cosines(&r, 0, out);
    assert_true(out[0] == 1 && out[1] == -1 && out[2] == 0);
    assert_true(out[3] == .6f);
    assert_true(isnan(out[4])); /* no direction */
    pf_rows_cosines(&r, 3, out);
    assert_true(out[0] == .6f && out[1] == -.6f && out[2] == .8f);
    pf_rows_cosines(&r, 4, out);
    for (int j = 0; j < 5; j++)
        assert_true(isnan(out[j]));
    pf_rows_clear(&r);
    assert_int_equal(ADD(&r, 1, 0, 0), PF_OK); /* of any length again */
    pf_rows_cosines(&r, 0, out);
    assert_true(out[0] == 1);
    pf_rows_fini(&r);
}

/* All lengths across the eights; huge and tiny numbers. */
static void
test_lengths(void **ctx)
{
    float a[40], b[40], out[2];
    struct pf_rows r = PF_ROWS_INIT;

    (void)ctx;
    for (size_t C = 1; C <= 40; C++) {
        double ab = 0, aa = 0, bb = 0;

        for (size_t i = 0; i < C; i++) {
            a[i] = (float)(i % 7) - 2.5f;
            b[i] = (float)(i * i % 11) - 3.5f;
            ab += (double)a[i] * (double)b[i];
            aa += (double)a[i] * (double)a[i];
            bb += (double)b[i] * (double)b[i];
        }
        for (size_t i = 0; i < C; i++) {
            a[i] *= 0x1p100f;
            b[i] *= 0x1p-100f;
        }
        pf_rows_clear(&r);
        assert_int_equal(pf_rows_add(&r, a, C, NULL), PF_OK);
        assert_int_equal(pf_rows_add(&r, b, C, NULL), PF_OK);
        pf_rows_cosines(&r, 0, out);
        assert_true(out[0] == 1);
        assert_true(fabs((double)out[1] - ab / sqrt(aa * bb)) <= 1e-7);
        pf_rows_cosines(&r, 1, &out[0]);
        assert_true(out[1] == 1);
    }
    pf_rows_fini(&r);
}

static void
test_empty(void **ctx)
{
    struct pf_rows r = PF_ROWS_INIT;
    float out[2] = { 0 };

    (void)ctx;
    assert_int_equal(pf_rows_add(&r, out, 0, NULL), PF_OK);
    assert_int_equal(pf_rows_add(&r, out, 0, NULL), PF_OK);
    pf_rows_cosines(&r, 1, out);
    assert_true(isnan(out[0]) && isnan(out[1]));
    pf_rows_fini(&r);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
