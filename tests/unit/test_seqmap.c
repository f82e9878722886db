#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/seqmap.h>

/* Test vectors of FNV-1a's authors. */
static void
test_hash(void **ctx)
{
    (void)ctx;
    assert_true(pf_hash(PF_HASH_INIT, "", 0) == UINT64_C(0xcbf29ce484222325));
    assert_true(pf_hash(PF_HASH_INIT, "a", 1) == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(pf_hash(PF_HASH_INIT, "foobar", 6)
        == UINT64_C(0x85944171f73967e8));
    assert_true(pf_hash(pf_hash(PF_HASH_INIT, "foo", 3), "bar", 3)
        == UINT64_C(0x85944171f73967e8));
    assert_true(pf_hash(PF_HASH_INIT, "\xff\0", 2)
        == ((PF_HASH_INIT ^ 0xff) * UINT64_C(0x100000001b3))
            * UINT64_C(0x100000001b3));
}

static void
test_keys(void **ctx)
{
    struct pf_seqmap m = PF_SEQMAP_INIT;
    int a, b, c, d;
    char key[] = "i1";

    (void)ctx;
    assert_null(pf_seqmap_get(&m, "x", 1));
    assert_null(pf_seqmap_take(&m, "x", 1));
    assert_null(pf_seqmap_each(&m, &(size_t){ 0 }));
    assert_int_equal(pf_seqmap_put(&m, NULL, 0, &a, NULL), PF_OK);
    assert_int_equal(pf_seqmap_put(&m, key, 2, &b, NULL), PF_OK);
    assert_int_equal(pf_seqmap_put(&m, "i1\0", 3, &c, NULL), PF_OK);
    assert_int_equal(pf_seqmap_put(&m, "i1\0x", 4, &d, NULL), PF_OK);
    key[1] = '2'; /* the key was copied */
    assert_ptr_equal(pf_seqmap_get(&m, "", 0), &a);
    assert_ptr_equal(pf_seqmap_get(&m, "i1", 2), &b);
    assert_ptr_equal(pf_seqmap_get(&m, "i1\0", 3), &c);
    assert_ptr_equal(pf_seqmap_get(&m, "i1\0x", 4), &d);
    assert_null(pf_seqmap_get(&m, "i2", 2));
    assert_null(pf_seqmap_get(&m, "i", 1));
    assert_int_equal(m.n, 4);
    assert_int_equal(pf_seqmap_put(&m, "i1", 2, &d, NULL), PF_OK);
    assert_ptr_equal(pf_seqmap_get(&m, "i1", 2), &d);
    assert_int_equal(m.n, 4);
    assert_ptr_equal(pf_seqmap_take(&m, "", 0), &a);
    assert_null(pf_seqmap_take(&m, "", 0));
    assert_int_equal(m.n, 3);
    pf_seqmap_fini(&m, NULL);
    assert_null(pf_seqmap_get(&m, "i1", 2));
}

/* Against a plain table, through growth, collisions and removals. */
static void
test_against_table(void **ctx)
{
    enum { KEYS = 700 };
    struct pf_seqmap m = PF_SEQMAP_INIT;
    static int values[KEYS];
    static bool there[KEYS], seen[KEYS];
    uint32_t r = 1;
    size_t n = 0, i, count;
    int *v;
    char key[16];

    (void)ctx;
    for (int step = 0; step < 60000; step++) {
        int k, len;

        r = r * 1664525 + 1013904223;
        k = (int)((r >> 8) % KEYS);
        if (step / 10000 % 2) /* few keys: the map empties again */
            k %= 20;
        len = sprintf(key, "%d", k);
        if (r >> 30 < (step / 20000 ? 2 : 3)) {
            assert_int_equal(pf_seqmap_put(&m, key, (size_t)len, &values[k],
                NULL), PF_OK);
            n += !there[k];
            there[k] = true;
        } else {
            assert_ptr_equal(pf_seqmap_take(&m, key, (size_t)len),
                there[k] ? &values[k] : NULL);
            n -= there[k];
            there[k] = false;
        }
        assert_int_equal(m.n, n);
        if (step % 500)
            continue;
        for (k = 0; k < KEYS; k++) {
            len = sprintf(key, "%d", k);
            assert_ptr_equal(pf_seqmap_get(&m, key, (size_t)len),
                there[k] ? &values[k] : NULL);
        }
        memset(seen, 0, sizeof seen);
        for (i = 0, count = 0; (v = pf_seqmap_each(&m, &i)); count++) {
            assert_true(there[v - values] && !seen[v - values]);
            seen[v - values] = true;
        }
        assert_int_equal(count, n);
    }
    for (int k = 0; k < KEYS; k++)
        pf_seqmap_take(&m, key, (size_t)sprintf(key, "%d", k));
    assert_int_equal(m.n, 0);
    assert_null(pf_seqmap_each(&m, &(size_t){ 0 }));
    pf_seqmap_fini(&m, NULL);
}

static void
test_free_values(void **ctx)
{
    struct pf_seqmap m = PF_SEQMAP_INIT;

    (void)ctx;
    for (char c = 'a'; c <= 'z'; c++)
        assert_int_equal(pf_seqmap_put(&m, &c, 1, malloc(10), NULL), PF_OK);
    free(pf_seqmap_take(&m, "q", 1));
    pf_seqmap_fini(&m, free); /* leaks are the sanitizer's to find */
    assert_int_equal(m.n, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hash),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_against_table),
        cmocka_unit_test(test_free_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
