#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <pipeformer/buf.h>

static void
test_append(void **ctx)
{
    struct pf_buf b = PF_BUF_INIT;
    struct pf_err err;
    char *room;

    (void)ctx;
    pf_buf_add(&b, "abc\0def", 7);
    pf_buf_adds(&b, "gh");
    pf_buf_addc(&b, '!');
    pf_buf_add(&b, NULL, 0);
    pf_buf_printf(&b, "%d-%s", 42, "x");
    assert_int_equal(b.len, 14);
    assert_memory_equal(b.data, "abc\0defgh!42-x", 14);
    assert_int_equal(pf_buf_check(&b, &err), PF_OK);
    room = pf_buf_room(&b, 1000);
    assert_non_null(room);
    assert_ptr_equal(room, b.data + 14);
    assert_int_equal(b.len, 14);
    memset(room, 'z', 1000);
    assert_memory_equal(b.data, "abc\0defgh!42-x", 14);
    pf_buf_clear(&b);
    assert_int_equal(b.len, 0);
    assert_non_null(b.data);
    pf_buf_fini(&b);
    assert_null(b.data);
    pf_buf_fini(&b);
    assert_non_null(pf_buf_room(&b, 0));
    pf_buf_fini(&b);
}

static void
test_append_many(void **ctx)
{
    struct pf_buf b = PF_BUF_INIT;

    (void)ctx;
    for (int i = 0; i < 100000; i++)
        pf_buf_addc(&b, (char)(i % 251));
    assert_int_equal(b.len, 100000);
    for (int i = 0; i < 100000; i++)
        assert_true(b.data[i] == (char)(i % 251));
    pf_buf_clear(&b);
    for (int i = 0; i < 3000; i++) /* lengths across every growth */
        pf_buf_printf(&b, "%0*d", i % 200 + 1, 7);
    assert_int_equal(b.len, 15 * 200 * 201 / 2);
    for (size_t i = 0, at = 0; i < 3000; i++) {
        at += i % 200 + 1;
        assert_true(b.data[at - 1] == '7');
    }
    pf_buf_fini(&b);
}

/* No memory: as before, and `failed` until it is cleared. */
static void
test_failed(void **ctx)
{
    struct pf_buf b = PF_BUF_INIT;
    struct pf_err err = { PF_OK, "" };

    (void)ctx;
    pf_buf_adds(&b, "abc");
    assert_null(pf_buf_room(&b, SIZE_MAX));
    assert_null(pf_buf_room(&b, SIZE_MAX - 2));
    assert_true(b.failed);
    assert_int_equal(b.len, 3);
    assert_memory_equal(b.data, "abc", 3);
    assert_int_equal(pf_buf_check(&b, &err), PF_ENOMEM);
    assert_int_equal(err.status, PF_ENOMEM);
    pf_buf_adds(&b, "d");
    assert_int_equal(pf_buf_check(&b, &err), PF_ENOMEM);
    pf_buf_clear(&b);
    assert_int_equal(pf_buf_check(&b, NULL), PF_OK);
#ifndef __SANITIZE_ADDRESS__ /* which ends a program that asks for so much */
    pf_buf_adds(&b, "abc");
    assert_null(pf_buf_room(&b, (size_t)1 << 60));
    assert_int_equal(pf_buf_check(&b, &err), PF_ENOMEM);
    assert_memory_equal(b.data, "abc", 3);
#endif
    pf_buf_fini(&b);
}

static void
test_err(void **ctx)
{
    struct pf_err err;
    char longer[1000];

    (void)ctx;
    assert_int_equal(pf_fail(NULL, PF_EIO, "%d", 1), PF_EIO);
    assert_int_equal(pf_fail(&err, PF_ERANGE, "id %d of %s", 7, "x"),
        PF_ERANGE);
    assert_int_equal(err.status, PF_ERANGE);
    assert_string_equal(err.msg, "id 7 of x");
    memset(longer, 'a', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    pf_fail(&err, PF_EIO, "%s", longer);
    assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
}

static void
test_arena(void **ctx)
{
    struct pf_arena a = PF_ARENA_INIT;
    unsigned char *p[400];
    char *copy;

    (void)ctx;
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < 400; i++) {
            p[i] = pf_arena_alloc(&a, i * 3);
            assert_non_null(p[i]);
            assert_int_equal((uintptr_t)p[i] % 64, 0);
            memset(p[i], (int)(i % 256), i * 3);
        }
        for (size_t i = 0; i < 400; i++)
            for (size_t k = 0; k < i * 3; k++)
                assert_true(p[i][k] == i % 256);
        pf_arena_reset(&a);
    }
    copy = pf_arena_copy(&a, "ab\0c", 4);
    assert_memory_equal(copy, "ab\0c", 5);
    copy = pf_arena_copy(&a, NULL, 0);
    assert_string_equal(copy, "");
    assert_null(pf_arena_alloc(&a, SIZE_MAX));
    assert_null(pf_arena_alloc(&a, SIZE_MAX - 63));
    assert_null(pf_arena_alloc(&a, SIZE_MAX / 2));
    pf_arena_fini(&a);
    assert_null(a.head);
    pf_arena_reset(&a);
    assert_non_null(pf_arena_alloc(&a, 0));
    pf_arena_fini(&a);
}

/* Equal records allocate nothing; a large one is given back. */
static void
test_arena_reset(void **ctx)
{
    struct pf_arena a = PF_ARENA_INIT;
    struct pf_arena_block *block;
    void *first;

    (void)ctx;
    for (int i = 0; i < 10; i++)
        assert_non_null(pf_arena_alloc(&a, 10000));
    pf_arena_reset(&a);
    block = a.head;
    first = pf_arena_alloc(&a, 10000);
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 3; i++)
            pf_arena_alloc(&a, 10000);
        assert_ptr_equal(a.head, block);
        pf_arena_reset(&a);
        assert_ptr_equal(pf_arena_alloc(&a, 10000), first);
    }
    assert_non_null(pf_arena_alloc(&a, (size_t)8 << 20));
    pf_arena_reset(&a);
    assert_true(a.total <= (size_t)1 << 20);
    pf_arena_fini(&a);
}

static void
test_grow(void **ctx)
{
    int *v = NULL;
    size_t cap = 0;
    int *old;

    (void)ctx;
    for (size_t n = 1; n < 5000; n++) {
        assert_true(pf_grow(&v, &cap, n, sizeof *v));
        assert_true(cap >= n);
        v[n - 1] = (int)n;
    }
    for (size_t n = 1; n < 5000; n++)
        assert_int_equal(v[n - 1], n);
    old = v;
    assert_true(pf_grow(&v, &cap, cap, sizeof *v));
    assert_ptr_equal(v, old);
    assert_false(pf_grow(&v, &cap, SIZE_MAX / 2, sizeof *v));
    assert_false(pf_grow(&v, &cap, SIZE_MAX, 1));
    assert_ptr_equal(v, old);
    free(v);
}

/* A file over one large page and its end. */
static void
test_map_file(void **ctx)
{
    const size_t n = ((size_t)2 << 20) + 5;
    FILE *f = tmpfile();
    char *p;

    (void)ctx;
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)n - 3, SEEK_SET), 0);
    assert_int_equal(fputs("end", f) < 0, 0);
    assert_int_equal(fflush(f), 0);
    p = pf_map_file(fileno(f), n);
    assert_non_null(p);
    assert_int_equal(p[0], 0);
    assert_memory_equal(p + n - 3, "end", 3);
    munmap(p, n);
    assert_null(pf_map_file(fileno(f), 0));
    assert_int_equal(errno, EINVAL);
    fclose(f);
    assert_null(pf_map_file(-1, 1));
    assert_int_equal(errno, EBADF);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append),
        cmocka_unit_test(test_append_many),
        cmocka_unit_test(test_failed),
        cmocka_unit_test(test_err),
        cmocka_unit_test(test_arena),
        cmocka_unit_test(test_arena_reset),
        cmocka_unit_test(test_grow),
        cmocka_unit_test(test_map_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
