#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>

#include <pipeformer/colormap.h>

/* The ends and the quarters, as matplotlib documents them. */
static void
test_viridis(void **state)
{
    (void)state;
    assert_int_equal(pf_viridis(0), 0x440154);
    assert_int_equal(pf_viridis(64 / 255.0), 0x3b528b);
    assert_int_equal(pf_viridis(0.5), 0x21918c);
    assert_int_equal(pf_viridis(1), 0xfde725);
    assert_int_equal(pf_viridis(-1), 0x440154);
    assert_int_equal(pf_viridis(-INFINITY), 0x440154);
    assert_int_equal(pf_viridis(INFINITY), 0xfde725);
    assert_int_equal(pf_viridis(NAN), 0x440154);
}

/* It becomes lighter, but for the rounding of its colours. */
static void
test_lighter(void **state)
{
    (void)state;
    for (int i = 1; i < 256; i++)
        assert_true(pf_luminance(pf_viridis(i / 255.0)) + 0.001
            > pf_luminance(pf_viridis((i - 1) / 255.0)));
    assert_float_equal(pf_luminance(0), 0, 1e-9);
    assert_float_equal(pf_luminance(0xffffff), 1, 1e-9);
    assert_float_equal(pf_luminance(0x00ff00), 0.7152, 1e-9);
}

static void
test_scale(void **state)
{
    (void)state;
    assert_float_equal(pf_scale(1, 0, 4), 0.25, 0);
    assert_float_equal(pf_scale(-1, 0, 4), 0, 0);
    assert_float_equal(pf_scale(5, 0, 4), 1, 0);
    assert_float_equal(pf_scale(-INFINITY, -4, 4), 0, 0);
    assert_float_equal(pf_scale(INFINITY, -4, 4), 1, 0);
    assert_float_equal(pf_scale(0, -1.7e308, 1.7e308), 0.5, 0);
    assert_float_equal(pf_scale(3, 3, 3), 0.5, 0);
    assert_float_equal(pf_scale(2, 3, 3), 0, 0);
}

/* Levels of xterm's table; none nearer among all 240. */
static uint32_t
of_256(unsigned i)
{
    unsigned c = i - 16, level[3] = { c / 36, c / 6 % 6, c % 6 };
    uint32_t rgb = 0;

    if (i >= 232)
        return (8 + 10 * (i - 232)) * 0x10101;
    for (int k = 0; k < 3; k++)
        rgb = rgb << 8 | (level[k] ? 55 + 40 * level[k] : 0);
    return rgb;
}

static int
far(uint32_t a, uint32_t b)
{
    int sum = 0;

    for (int s = 0; s < 24; s += 8) {
        int d = (int)(a >> s & 255) - (int)(b >> s & 255);

        sum += d * d;
    }
    return sum;
}

static void
test_256(void **state)
{
    uint32_t rgb = 1;

    (void)state;
    for (unsigned i = 16; i < 256; i++)
        assert_int_equal(of_256(pf_color_256(of_256(i))), of_256(i));
    for (int i = 0; i < 20000; i++) {
        int best = 1 << 20, got;

        rgb = (rgb * 1103515245 + 12345) & 0xffffff;
        got = far(of_256(pf_color_256(rgb)), rgb);
        for (unsigned k = 16; k < 256; k++)
            best = far(of_256(k), rgb) < best ? far(of_256(k), rgb) : best;
        assert_true(got <= best);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_viridis),
        cmocka_unit_test(test_lighter),
        cmocka_unit_test(test_scale),
        cmocka_unit_test(test_256),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
