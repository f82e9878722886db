/*
 * Merging against the plain form of the rule: look at all pairs, join the
 * leftmost of the lowest rank, begin again.  Over random tables of merges,
 * whose ranks need not follow what they are made of, at lengths around those
 * that take a level more of the tree, with vector instructions and without.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../src/bpe.h"

static uint64_t seed = 1;

static uint32_t
draw(uint32_t n)
{
    seed = seed * 6364136223846793005 + 1442695040888963407;
    return (uint32_t)(seed >> 33) % n;
}

static size_t
plain(const struct pf_bpe *b, uint32_t *ids, size_t n)
{
    uint32_t rank, least, to, id = 0;
    size_t at = 0;

    for (;;) {
        least = PF_BPE_NONE;
        for (size_t i = 0; i + 1 < n; i++) {
            rank = pf_bpe_find(b, ids[i], ids[i + 1], &to);
            if (rank < least) {
                least = rank;
                at = i;
                id = to;
            }
        }
        if (least == PF_BPE_NONE)
            return n;
        ids[at] = id;
        memmove(ids + at + 1, ids + at + 2, (n - at - 2) * sizeof *ids);
        n--;
    }
}

/* As a vocabulary gives it: a result is named after its two parts. */
static struct pf_bpe *
random_merges(uint32_t letters, uint32_t merges)
{
    struct pf_bpe *b;
    uint32_t left, right, to;

    assert_int_equal(pf_bpe_new(&b, draw(100), NULL), PF_OK);
    for (uint32_t i = 0; i < merges; i++) {
        left = draw(letters + i);
        right = draw(letters + i);
        if (pf_bpe_find(b, left, right, &to) == PF_BPE_NONE)
            assert_int_equal(pf_bpe_add(b, left, right, draw(2) ? i
                : 1000 + draw(1000) * 1000 + i, letters + i, NULL), PF_OK);
    }
    return b;
}

static void
test_random(void **state)
{
    struct pf_bpe_work work = PF_BPE_WORK_INIT;
    uint32_t *ids, *want;
    size_t n, n_want, len;

    (void)state;
    for (int t = 0; t < 1500; t++) {
        uint32_t letters = 1 + draw(4);
        struct pf_bpe *b = random_merges(letters, 1 + draw(60));

        for (int k = 0; k < 20; k++) {
            pf_bpe_use_vectors(b, k % 2);
            len = k < 10 ? 1 + draw(20) : k < 18 ? 240 + draw(40) : 600;
            ids = malloc(len * sizeof *ids);
            want = malloc(len * sizeof *want);
            assert_true(ids && want);
            for (size_t i = 0; i < len; i++)
                ids[i] = want[i] = draw(letters);
            n = len;
            n_want = plain(b, want, len);
            assert_int_equal(pf_bpe_merge(b, &work, ids, &n, NULL), PF_OK);
            assert_int_equal(n, n_want);
            assert_memory_equal(ids, want, n * sizeof *ids);
            free(ids);
            free(want);
        }
        pf_bpe_free(b);
    }
    pf_bpe_work_fini(&work);
}

/* Many pieces at once, of every length that goes side by side and some more,
 * are each what it is alone; whether a result follows from its rank or not. */
static void
test_pieces(void **state)
{
    enum { MANY = 100, LEN = 140 };
    static char bytes[MANY][LEN];
    static uint32_t ids[MANY][LEN], want[LEN];
    struct pf_bpe_work work = PF_BPE_WORK_INIT;
    struct pf_bpe_piece pieces[MANY];
    uint32_t byte[256];
    struct pf_bpe *b;
    size_t n, n_want, most;

    (void)state;
    for (uint32_t i = 0; i < 256; i++)
        byte[i] = i;
    for (int t = 0; t < 600; t++) {
        if (t % 2) {
            b = random_merges(256, 2000);
        } else {
            assert_int_equal(pf_bpe_new(&b, 0, NULL), PF_OK);
            for (uint32_t i = 0; i < 60; i++)
                pf_bpe_add(b, i < 4 ? 'a' + draw(4) : 256 + draw(i),
                    i < 4 || draw(2) ? 'a' + draw(4) : 256 + draw(i), i,
                    256 + i, NULL);
        }
        assert_int_equal(pf_bpe_set_bytes(b, byte, NULL), PF_OK);
        n = draw(MANY);
        most = t % 3 ? 24 : LEN;
        for (size_t i = 0; i < n; i++) {
            pieces[i] = (struct pf_bpe_piece){ .bytes = bytes[i],
                .ids = ids[i], .len = 1 + draw((uint32_t)most) };
            for (size_t k = 0; k < pieces[i].len; k++)
                bytes[i][k] = (char)(t % 2 ? draw(256) : 'a' + draw(4));
            if (draw(10) == 0) { /* one that is done */
                pieces[i].n = 1;
                ids[i][0] = 77;
            }
        }
        pf_bpe_use_vectors(b, t % 5 > 0);
        assert_int_equal(pf_bpe_merge_pieces(b, &work, pieces, n, NULL),
            PF_OK);
        pf_bpe_use_vectors(b, false);
        for (size_t i = 0; i < n; i++) {
            if (pieces[i].n == 1 && ids[i][0] == 77)
                continue;
            n_want = pieces[i].len;
            assert_int_equal(pf_bpe_merge_bytes(b, &work, bytes[i], want,
                &n_want, NULL), PF_OK);
            assert_int_equal(pieces[i].n, n_want);
            assert_memory_equal(ids[i], want, n_want * sizeof *want);
        }
        pf_bpe_free(b);
    }
    pf_bpe_work_fini(&work);
}

/*
 * Around the length up to which no tree is used, and at those where the tree
 * gets another level; from symbols and from bytes, with vector instructions
 * and without.  The plain form is too slow for the longest: there the tree is
 * held against itself.
 */
static void
expect_merge(struct pf_bpe *b, struct pf_bpe_work *work, const char *bytes,
    size_t len, const uint32_t *want, size_t n_want)
{
    uint32_t *ids = malloc((len + 1) * sizeof *ids);
    size_t n;

    assert_non_null(ids);
    for (int k = 0; k < 4; k++) {
        pf_bpe_use_vectors(b, k % 2);
        n = len;
        if (k < 2) {
            for (size_t i = 0; i < len; i++)
                ids[i] = (unsigned char)bytes[i];
            assert_int_equal(pf_bpe_merge(b, work, ids, &n, NULL), PF_OK);
        } else {
            assert_int_equal(pf_bpe_merge_bytes(b, work, bytes, ids, &n,
                NULL), PF_OK);
        }
        if (n != n_want || (n && memcmp(ids, want, n * sizeof *ids) != 0))
            fail_msg("length %zu, form %d: other symbols", len, k);
    }
    free(ids);
}

static void
test_lengths(void **state)
{
    static const size_t lens[] = { 0, 1, 2, 3, 15, 16, 17, 31, 32, 33, 63, 64,
        65, 126, 127, 128, 129, 130, 143, 144, 145, 255, 256, 257, 271, 272,
        273, 1000 };
    static const size_t more[] = { 4095, 4096, 4097, 4352, 65535, 65536,
        65537, 70000 };
    struct pf_bpe_work work = PF_BPE_WORK_INIT;
    uint32_t byte[256], *want;
    char *bytes = malloc(70000);

    (void)state;
    assert_non_null(bytes);
    for (uint32_t i = 0; i < 256; i++)
        byte[i] = i;
    for (uint32_t letters = 1; letters <= 256; letters *= 4) {
        struct pf_bpe *b = random_merges(letters, 1 + draw(60 * letters));

        assert_int_equal(pf_bpe_set_bytes(b, byte, NULL), PF_OK);
        for (int t = 0; t < 2; t++) {
            for (size_t i = 0; i < 70000; i++)
                bytes[i] = (char)(t ? draw(letters) : i / 7 % letters);
            for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
                size_t n = lens[i];

                want = malloc((n + 1) * sizeof *want);
                assert_non_null(want);
                for (size_t k = 0; k < n; k++)
                    want[k] = (unsigned char)bytes[k];
                n = plain(b, want, n);
                expect_merge(b, &work, bytes, lens[i], want, n);
                free(want);
            }
            for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
                size_t n = more[i];

                want = malloc(n * sizeof *want);
                assert_non_null(want);
                pf_bpe_use_vectors(b, false);
                assert_int_equal(pf_bpe_merge_bytes(b, &work, bytes, want, &n,
                    NULL), PF_OK);
                expect_merge(b, &work, bytes, more[i], want, n);
                free(want);
            }
        }
        pf_bpe_free(b);
    }
    free(bytes);
    pf_bpe_work_fini(&work);
}

/* The ranks at the upper end, where a place is packed beside them. */
static void
test_large_ranks(void **state)
{
    struct pf_bpe_work work = PF_BPE_WORK_INIT;
    struct pf_bpe *b;
    uint32_t ids[300];
    size_t n;

    (void)state;
    assert_int_equal(pf_bpe_new(&b, 0, NULL), PF_OK);
    assert_int_equal(pf_bpe_add(b, 0, 0, PF_BPE_RANK_MAX, 1, NULL), PF_OK);
    assert_int_equal(pf_bpe_add(b, 1, 1, PF_BPE_RANK_MAX - 1, 2, NULL),
        PF_OK);
    assert_int_equal(pf_bpe_add(b, 2, 2, 0, 3, NULL), PF_OK);
    for (size_t len = 2; len <= 300; len++) {
        for (int k = 0; k < 2; k++) {
            pf_bpe_use_vectors(b, k);
            memset(ids, 0, sizeof ids);
            n = len;
            assert_int_equal(pf_bpe_merge(b, &work, ids, &n, NULL), PF_OK);
            assert_int_equal(n, len / 8 + len % 8 / 4 + len % 4 / 2 + len % 2);
            assert_int_equal(ids[0], len >= 8 ? 3 : len >= 4 ? 2 : 1);
        }
    }
    pf_bpe_free(b);
    pf_bpe_work_fini(&work);
}

/* a*2 -> A, A*2 -> B, ...: 2^k letters are one symbol, whatever the length. */
static void
test_doubling(void **state)
{
    enum { N = 1 << 20 };
    struct pf_bpe_work work = PF_BPE_WORK_INIT;
    uint32_t *ids = malloc(N * sizeof *ids);
    struct pf_bpe *b;
    size_t n;

    (void)state;
    assert_non_null(ids);
    assert_int_equal(pf_bpe_new(&b, 0, NULL), PF_OK);
    for (uint32_t i = 0; i < 20; i++)
        assert_int_equal(pf_bpe_add(b, i, i, i, i + 1, NULL), PF_OK);
    for (size_t len = 0; len <= N; len = len < 200 ? len + 1 : len * 3 + 1) {
        memset(ids, 0, len * sizeof *ids);
        n = len;
        assert_int_equal(pf_bpe_merge(b, &work, ids, &n, NULL), PF_OK);
        for (uint32_t bit = 20, k = 0; bit-- > 0;) {
            if (len >> bit & 1) {
                assert_true(k < n);
                assert_int_equal(ids[k++], bit);
            }
        }
        assert_int_equal(n, (size_t)__builtin_popcountll(len));
    }
    memset(ids, 0, N * sizeof *ids);
    n = N;
    assert_int_equal(pf_bpe_merge(b, &work, ids, &n, NULL), PF_OK);
    assert_int_equal(n, 1);
    assert_int_equal(ids[0], 20);
    pf_bpe_free(b);
    pf_bpe_work_fini(&work);
    free(ids);
}

static void
test_table(void **state)
{
    struct pf_bpe *b;
    struct pf_err err;
    uint32_t to;

    (void)state;
    assert_int_equal(pf_bpe_new(&b, 0, NULL), PF_OK);
    for (uint32_t i = 0; i < 5000; i++)
        assert_int_equal(pf_bpe_add(b, i * 7, i * i % 4099, i, i + 9, NULL),
            PF_OK);
    for (uint32_t i = 0; i < 5000; i++) {
        assert_int_equal(pf_bpe_find(b, i * 7, i * i % 4099, &to), i);
        assert_int_equal(to, i + 9);
        assert_int_equal(pf_bpe_find(b, i * 7 + 1, i * i % 4099, &to),
            PF_BPE_NONE);
    }
    assert_int_equal(pf_bpe_add(b, 7, 1, 60000, 3, NULL), PF_OK);
    assert_int_equal(pf_bpe_find(b, 7, 1, &to), 60000);
    assert_int_equal(to, 3);
    assert_int_equal(pf_bpe_add(b, 0, 1, 1 << 24, 3, &err), PF_ERANGE);
    pf_bpe_free(b);
    pf_bpe_free(NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_large_ranks),
        cmocka_unit_test(test_doubling),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
