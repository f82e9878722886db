/*
 * numpy's basic slices.  The table is of numpy itself; every start, stop and
 * step of short axes is held against the rule in numpy's reference ("Basic
 * slicing and indexing").
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/slice.h>

/* Slices arange(n).reshape(shape): prints what comes out, with its shape. */
static enum pf_status
slice(char *s, unsigned ndim, const size_t *shape, const char *text,
    struct pf_err *err)
{
    struct pf_record rec = PF_RECORD_INIT;
    struct pf_buf b = PF_BUF_INIT;
    struct pf_tensor *t = pf_record_put(&rec, "x", PF_I16, ndim, shape, NULL);
    enum pf_status st;
    int16_t *v;

    assert_non_null(t);
    v = (int16_t *)t->data;
    for (size_t i = 0; i < pf_tensor_count(t); i++)
        v[i] = (int16_t)i;
    st = pf_slice(&rec, t, text, err);
    pf_shape_format(s, 40, t->shape, t->ndim);
    pf_tensor_print(&b, t);
    pf_buf_addc(&b, '\0');
    assert_true(b.len < 400);
    strcat(s, " ");
    strcat(s, b.data);
    pf_buf_fini(&b);
    pf_record_fini(&rec);
    return st;
}

static void
test_table(void **ctx)
{
    static const struct {
        unsigned ndim;
        size_t shape[3];
        const char *text, *want;
    } t[] = {
        { 1, { 5 }, "", "[5] [0,1,2,3,4]" },
        { 1, { 5 }, ":", "[5] [0,1,2,3,4]" },
        { 1, { 5 }, "::", "[5] [0,1,2,3,4]" },
        { 1, { 5 }, "2", "[] 2" }, { 1, { 5 }, "-1", "[] 4" },
        { 1, { 5 }, "-5", "[] 0" }, { 1, { 5 }, "0:2", "[2] [0,1]" },
        { 1, { 5 }, "1:-1", "[3] [1,2,3]" }, { 1, { 5 }, "-2:", "[2] [3,4]" },
        { 1, { 5 }, ":2", "[2] [0,1]" }, { 1, { 5 }, ":100", "[5] [0,1,2,3,4]" },
        { 1, { 5 }, "-100:2", "[2] [0,1]" }, { 1, { 5 }, "3:2", "[0] []" },
        { 1, { 5 }, "100:", "[0] []" }, { 1, { 5 }, "::2", "[3] [0,2,4]" },
        { 1, { 5 }, "1::2", "[2] [1,3]" }, { 1, { 5 }, "::100", "[1] [0]" },
        { 1, { 5 }, "::-1", "[5] [4,3,2,1,0]" },
        { 1, { 5 }, "3::-2", "[2] [3,1]" }, { 1, { 5 }, ":1:-1", "[3] [4,3,2]" },
        { 1, { 5 }, "100:-100:-2", "[3] [4,2,0]" },
        { 1, { 5 }, "0:-1:-1", "[0] []" }, { 1, { 5 }, "0::-1", "[1] [0]" },
        { 1, { 0 }, ":", "[0] []" }, { 1, { 0 }, "::-1", "[0] []" },
        { 1, { 0 }, "0:5", "[0] []" },
        { 2, { 2, 3 }, "1", "[3] [3,4,5]" },
        { 2, { 2, 3 }, "-1,0", "[] 3" },
        { 2, { 2, 3 }, ":,1", "[2] [1,4]" },
        { 2, { 2, 3 }, "0:1,1:", "[1, 2] [[1,2]]" },
        { 2, { 2, 3 }, "::-1,::-1", "[2, 3] [[5,4,3],[2,1,0]]" },
        { 2, { 2, 3 }, ":,3:", "[2, 0] [[],[]]" },
        { 3, { 2, 2, 2 }, "1,:,0", "[2] [4,6]" },
        { 3, { 2, 2, 2 }, ":,1", "[2, 2] [[2,3],[6,7]]" },
        { 3, { 2, 2, 2 }, "1,1,1", "[] 7" },
        { 0, { 0 }, "", "[] 0" },
    };
    char s[500];

    (void)ctx;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct pf_err err = { PF_OK, "" };

        if (slice(s, t[i].ndim, t[i].shape, t[i].text, &err))
            fail_msg("%s: %s", t[i].text, err.msg);
        assert_string_equal(s, t[i].want);
    }
}

static void
test_bad(void **ctx)
{
    static const struct {
        const char *text;
        enum pf_status st;
    } bad[] = {
        { "2", PF_ERANGE }, { "-3", PF_ERANGE }, { "0,3", PF_ERANGE },
        { "9223372036854775807", PF_EFORMAT }, { "0,0,0", PF_ESHAPE },
        { ":,:,:", PF_ESHAPE }, { "x", PF_EFORMAT }, { "1.5", PF_EFORMAT },
        { "1:2:3:4", PF_EFORMAT }, { "::0", PF_EFORMAT },
        { "0:1:0", PF_EFORMAT }, { ",", PF_EFORMAT }, { "0,", PF_EFORMAT },
        { ",0", PF_EFORMAT }, { "0 ", PF_EFORMAT }, { " 0", PF_EFORMAT },
        { "+1", PF_EFORMAT }, { "--1", PF_EFORMAT }, { "-", PF_EFORMAT },
        { ":-", PF_EFORMAT }, { "::-", PF_EFORMAT }, { "0x1", PF_EFORMAT },
        { "[0]", PF_EFORMAT }, { "...", PF_EFORMAT }, { "0;1", PF_EFORMAT },
    };
    char s[500];

    (void)ctx;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct pf_err err = { PF_OK, "" };
        enum pf_status st = slice(s, 2, (size_t[]){ 2, 3 }, bad[i].text,
            &err);

        if (st != bad[i].st)
            fail_msg("%s: status %d, %s", bad[i].text, st, err.msg);
        assert_true(err.msg[0]);
        /* The tensor is as it was. */
        assert_string_equal(s, "[2, 3] [[0,1,2],[3,4,5]]");
    }
}

/* numpy: n = i given, wrapped once if negative, clipped; then i, i + k, ...
 * while before j. */
static void
test_rule(void **ctx)
{
    enum { NONE = 99 };
    char text[64], want[500], s[500];

    (void)ctx;
    for (int size = 0; size <= 5; size++)
        for (int i = -7; i <= 8; i++)
            for (int j = -7; j <= 8; j++)
                for (int k = -3; k <= 3; k++) {
                    int from = i == 8 ? NONE : i, to = j == 8 ? NONE : j;
                    int list[8], n = 0, low = k < 0 ? -1 : 0;
                    int high = k < 0 ? size - 1 : size;
                    char *at = text;
                    size_t len;

                    if (k == 0)
                        continue;
                    if (from != NONE)
                        at += sprintf(at, "%d", from);
                    *at++ = ':';
                    if (to != NONE)
                        at += sprintf(at, "%d", to);
                    sprintf(at, ":%d", k);
                    if (from == NONE)
                        from = k < 0 ? high : low;
                    else if (from < 0)
                        from += size;
                    if (to == NONE)
                        to = k < 0 ? low : high;
                    else if (to < 0)
                        to += size;
                    from = from < low ? low : from > high ? high : from;
                    to = to < low ? low : to > high ? high : to;
                    for (; k < 0 ? from > to : from < to; from += k)
                        list[n++] = from;
                    len = (size_t)sprintf(want, "[%d] [", n);
                    for (int m = 0; m < n; m++)
                        len += (size_t)sprintf(want + len, m ? ",%d" : "%d",
                            list[m]);
                    sprintf(want + len, "]");
                    assert_int_equal(slice(s, 1, &(size_t){ (size_t)size },
                        text, NULL), PF_OK);
                    if (strcmp(s, want) != 0)
                        fail_msg("%s of %d: %s, not %s", text, size, s, want);
                }
}

/* Any element size, at any address. */
static void
test_types(void **ctx)
{
    struct pf_record rec = PF_RECORD_INIT;
    char data[65];

    (void)ctx;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)i;
    for (int type = 0; type < PF_N_DTYPES; type++) {
        size_t size = pf_dtype_size((enum pf_dtype)type);
        struct pf_tensor *t = pf_record_put(&rec, "x", (enum pf_dtype)type, 1,
            (size_t[]){ 8 }, data + 1);

        assert_int_equal(pf_slice(&rec, t, "1:4:2", NULL), PF_OK);
        assert_int_equal(t->shape[0], 2);
        assert_int_equal(t->dtype, type);
        assert_memory_equal(t->data, data + 1 + size, size);
        assert_memory_equal((const char *)t->data + size, data + 1 + 3 * size,
            size);
    }
    pf_record_fini(&rec);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_rule),
        cmocka_unit_test(test_types),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
