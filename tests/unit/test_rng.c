/*
 * The known answers are those of Random123 1.14 (kat_vectors, philox4x32 10).
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/rng.h>

static void
test_known_answers(void **ctx)
{
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } t[] = {
        { { 0 }, { 0 },
            { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
            { 0xffffffff, 0xffffffff },
            { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
            { 0xa4093822, 0x299f31d0 },
            { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };
    uint32_t out[4];

    (void)ctx;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        pf_philox(out, t[i].counter, t[i].key);
        assert_memory_equal(out, t[i].want, sizeof out);
    }
}

/* pf_uniform is those words: which ones, and how many bits of them. */
static void
test_uniform_words(void **ctx)
{
    (void)ctx;
    for (uint64_t k = 0; k < 200; k++) {
        uint64_t seed = k * UINT64_C(0x9e3779b97f4a7c15);
        uint64_t seq = k * UINT64_C(0xbf58476d1ce4e5b9) + 1;
        uint64_t pos = k * UINT64_C(0x94d049bb133111eb) + 2;
        const uint32_t counter[4] = { (uint32_t)pos, (uint32_t)(pos >> 32),
            (uint32_t)seq, (uint32_t)(seq >> 32) };
        const uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
        uint32_t w[4];

        pf_philox(w, counter, key);
        for (unsigned i = 0; i < 2; i++) {
            uint64_t bits = ((uint64_t)w[2 * i] << 32 | w[2 * i + 1]) >> 11;
            double u = pf_uniform(seed, seq, pos, i);

            assert_true(u == (double)bits / 0x1p53);
            assert_true(u >= 0 && u < 1);
        }
    }
    /* The first answer above: 0x6627e8d5e169c58d >> 11, and the second. */
    assert_true(pf_uniform(0, 0, 0, 0) == 0xcc4fd1abc2d38p-53);
    assert_true(pf_uniform(0, 0, 0, 1) == 0x178af58993601bp-53);
}

/* 100,000 draws that differ in one argument: mean, variance, ten bins. */
static void
check_uniform(int which)
{
    enum { N = 100000 };
    double sum = 0, squares = 0, pairs = 0, last = 0.5, chi = 0;
    int bins[10] = { 0 };

    for (uint64_t k = 0; k < N; k++) {
        double u = which == 0 ? pf_uniform(k, 5, 7, 0)
            : which == 1 ? pf_uniform(42, k, 7, 0)
            : which == 2 ? pf_uniform(42, 5, k, 0)
            : which == 3 ? pf_uniform(42, 5, k, 1)
            : which == 4 ? pf_uniform(42, k << 32, 7, 0)
            : pf_uniform(k << 32, 5, 7, 1);

        sum += u;
        squares += (u - 0.5) * (u - 0.5);
        pairs += (u - 0.5) * (last - 0.5);
        last = u;
        bins[(int)(u * 10)]++;
    }
    /* Five standard deviations: of the mean 1 / sqrt(12 N), ... */
    assert_true(fabs(sum / N - 0.5) < 5 / sqrt(12.0 * N));
    assert_true(fabs(squares / N - 1 / 12.0) < 5 / sqrt(180.0 * N));
    assert_true(fabs(pairs / N) < 5 / (12 * sqrt((double)N)));
    for (int i = 0; i < 10; i++)
        chi += (bins[i] - N / 10.0) * (bins[i] - N / 10.0) / (N / 10.0);
    assert_true(chi < 33.7); /* 9 degrees of freedom, p = 1e-4 */
}

static void
test_uniformity(void **ctx)
{
    (void)ctx;
    for (int which = 0; which < 6; which++)
        check_uniform(which);
}

/* A draw is a function of its arguments: whatever was drawn before. */
static void
test_order(void **ctx)
{
    enum { N = 100 };
    double forth[N];

    (void)ctx;
    for (uint64_t k = 0; k < N; k++)
        forth[k] = pf_uniform(1, k / 10, k % 10, 0);
    for (uint64_t k = N; k-- > 0;) {
        pf_uniform(2, k, k, 1);
        assert_true(pf_uniform(1, k / 10, k % 10, 0) == forth[k]);
        for (uint64_t j = 0; j < k; j++)
            assert_true(forth[j] != forth[k]);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_uniform_words),
        cmocka_unit_test(test_uniformity),
        cmocka_unit_test(test_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
