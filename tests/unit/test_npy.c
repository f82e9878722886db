/*
 * .npy files.  What numpy makes of np.save is kept as bytes (numpy 1.24:
 * np.save(f, np.arange(6, dtype='<i2').reshape(2, 3)) and the like).
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pipeformer/record.h>

/* A file of this version and header, and data. */
static void
make(struct pf_buf *b, int version, const char *header, const void *data,
    size_t n)
{
    size_t len = strlen(header);

    pf_buf_clear(b);
    pf_buf_add(b, "\x93NUMPY", 6);
    pf_buf_addc(b, (char)version);
    pf_buf_addc(b, 0);
    for (int i = 0; i < (version == 1 ? 2 : 4); i++)
        pf_buf_addc(b, (char)(len >> 8 * i & 0xff));
    pf_buf_adds(b, header);
    pf_buf_add(b, data, n);
}

static enum pf_status
read_bytes(struct pf_record *rec, const char *bytes, size_t len,
    struct pf_err *err)
{
    struct pf_in in = PF_IN_INIT;
    struct pf_reader r = PF_READER_INIT;
    enum pf_status st;
    int fd[2];

    assert_int_equal(pipe(fd), 0);
    assert_int_equal(write(fd[1], bytes, len), len);
    close(fd[1]);
    in.fd = fd[0];
    r.in = &in;
    r.main_name = "hidden";
    st = pf_reader_next(&r, rec, NULL, err);
    if (!st) {
        struct pf_record none = PF_RECORD_INIT;

        assert_int_equal(pf_reader_next(&r, &none, NULL, NULL), PF_END);
        pf_record_fini(&none);
    }
    pf_reader_fini(&r);
    pf_in_fini(&in);
    return st;
}

static void
check_read(int version, const char *header, const char *data, size_t n,
    const char *want)
{
    struct pf_record rec = PF_RECORD_INIT;
    struct pf_buf b = PF_BUF_INIT;
    struct pf_err err;

    make(&b, version, header, data, n);
    if (read_bytes(&rec, b.data, b.len, &err))
        fail_msg("%s: %s", header, err.msg);
    assert_int_equal(rec.n_tensors, 1);
    assert_int_equal(rec.n_fields, 0);
    pf_buf_clear(&b);
    pf_record_print(&b, &rec, NULL);
    pf_buf_addc(&b, '\0');
    assert_string_equal(b.data, want);
    pf_buf_fini(&b);
    pf_record_fini(&rec);
}

static const char shorts[] = "\0\0\1\0\2\0\3\0\4\0\5\0";

static void
test_numpy(void **ctx)
{
    (void)ctx;
    /* np.save(f, np.arange(6, dtype='<i2').reshape(2, 3)) */
    check_read(1, "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }"
        "                                                          \n",
        shorts, 12, "{\"hidden\":[[0,1,2],[3,4,5]]}\n");
    /* The same by columns: what numpy shows as [[0, 2, 4], [1, 3, 5]]. */
    check_read(1, "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }"
        "                                                           \n",
        shorts, 12, "{\"hidden\":[[0,2,4],[1,3,5]]}\n");
    check_read(1, "{'descr': '<i2', 'fortran_order': True, 'shape': (6,), }\n",
        shorts, 12, "{\"hidden\":[0,1,2,3,4,5]}\n");
    check_read(1, "{'descr': '<i2', 'fortran_order': True, "
        "'shape': (1, 3, 2), }\n", shorts, 12,
        "{\"hidden\":[[[0,3],[1,4],[2,5]]]}\n");
    check_read(1, "{'descr': '<i2', 'fortran_order': False, 'shape': (), }\n",
        "\x07\0", 2, "{\"hidden\":7}\n");
    check_read(1, "{'descr': '<f4', 'fortran_order': False, "
        "'shape': (0,), }\n", "", 0, "{\"hidden\":[]}\n");
    check_read(1, "{'descr': '<f4', 'fortran_order': True, "
        "'shape': (2, 0), }\n", "", 0, "{\"hidden\":[[],[]]}\n");
    /* Versions 2 and 3 have four bytes of length. */
    check_read(2, "{'descr': '<i2', 'fortran_order': False, 'shape': (1,), }\n",
        "\x07\0", 2, "{\"hidden\":[7]}\n");
    check_read(3, "{'descr': '<i2', 'fortran_order': False, 'shape': (1,), }\n",
        "\x07\0", 2, "{\"hidden\":[7]}\n");
    /* Other spellings of the same dictionary. */
    check_read(1, "{\"shape\":(1,),\"fortran_order\":False,\"descr\":\"<i2\"}",
        "\x07\0", 2, "{\"hidden\":[7]}\n");
    check_read(1, " { 'shape' : ( 1 , ) , 'fortran_order' : False ,\n"
        "'descr' : '<i2' } \n", "\x07\0", 2, "{\"hidden\":[7]}\n");
    check_read(1, "{'descr': '<i2', 'fortran_order': False, "
        "'shape': (1,1,1,1,1,1,1,1)}", "\x07\0", 2,
        "{\"hidden\":[[[[[[[[7]]]]]]]]}\n");
}

static void
test_types(void **ctx)
{
    static const struct {
        const char *descr, *data, *want;
        size_t n;
    } t[] = {
        { "|b1", "\1", "true", 1 }, { "|u1", "\xff", "255", 1 },
        { "|i1", "\xff", "-1", 1 }, { "<i2", "\xfe\xff", "-2", 2 },
        { "<u2", "\xfe\xff", "65534", 2 }, { "<f2", "\0\x3e", "1.5", 2 },
        { "<i4", "\xfe\xff\xff\xff", "-2", 4 },
        { "<u4", "\xfe\xff\xff\xff", "4294967294", 4 },
        { "<f4", "\0\0\xc0\x3f", "1.5", 4 },
        { "<f8", "\0\0\0\0\0\0\xf8\x3f", "1.5", 8 },
        { "<i8", "\xfe\xff\xff\xff\xff\xff\xff\xff", "-2", 8 },
        { "<u8", "\xff\xff\xff\xff\xff\xff\xff\xff",
            "18446744073709551615", 8 },
    };
    char header[128], want[128];

    (void)ctx;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        sprintf(header, "{'descr': '%s', 'fortran_order': False, "
            "'shape': (1,), }\n", t[i].descr);
        sprintf(want, "{\"hidden\":[%s]}\n", t[i].want);
        check_read(1, header, t[i].data, t[i].n, want);
    }
}

#define REST ", 'fortran_order': False, 'shape': (1,), }"

static void
test_bad(void **ctx)
{
    static const struct {
        const char *header, *word;
    } bad[] = {
        { "", "" }, { "x", "" }, { "{", "" }, { "{}", "lacks" },
        { "[1]", "dictionary" },
        { "{'descr': '<f4', 'fortran_order': False}", "lacks" },
        { "{'descr': '<f4', 'shape': (1,)}", "lacks" },
        { "{'fortran_order': False, 'shape': (1,)}", "lacks" },
        { "{'descr': '>f4'" REST, ">f4" }, { "{'descr': '<f16'" REST, "<f16" },
        { "{'descr': '<c8'" REST, "<c8" }, { "{'descr': '|O'" REST, "|O" },
        { "{'descr': '<U5'" REST, "<U5" },
        { "{'descr': [('a', '<f4')]" REST, "structured" },
        { "{'descr': '<f4" REST, "" }, { "{'descr' '<f4'" REST, "" },
        { "{descr: '<f4'" REST, "" },
        { "{'descr': '<f4', 'x': 1" REST, "key" },
        { "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", "True" },
        { "{'descr': '<f4', 'fortran_order': Fals, 'shape': (1,)}", "True" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': 1}", "tuple" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': [1]}", "tuple" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
            "shape" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1.0,)}", "" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}", "shape" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,,1)}",
            "shape" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1", "" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)", "" },
        { "{'descr': '<f4', 'fortran_order': False, "
            "'shape': (1,1,1,1,1,1,1,1,1)}", "dimensions" },
        { "{'descr': '<f4', 'fortran_order': False, "
            "'shape': (99999999999999999999,)}", "shape" },
        { "{'descr': '<f4', 'fortran_order': False, "
            "'shape': (4294967296, 4294967296)}", "" },
        { "{'descr': '<f4', 'fortran_order': False, "
            "'shape': (4611686018427387904,)}", "" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1 1)}", "" },
        { "{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}", "" },
        { "{'descr': '<f4', 'shape': (1,), 'shape': (1,), "
            "'fortran_order': False}", "" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", "" },
    };
    struct pf_record rec = PF_RECORD_INIT;
    struct pf_buf b = PF_BUF_INIT;
    struct pf_err err;
    size_t wrong = 0;

    (void)ctx;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        enum pf_status st;

        make(&b, 1, bad[i].header, "\0\0\0\0\0\0\0\0\0\0\0\0", 4);
        err.msg[0] = '\0';
        st = read_bytes(&rec, b.data, b.len, &err);
        if ((st != PF_EFORMAT && st != PF_ESHAPE)
            || !strstr(err.msg, bad[i].word)) {
            print_error("%s: status %d, %s\n", bad[i].header, st, err.msg);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
    for (int version = 0; version < 256; version++) {
        if (version >= 1 && version <= 3)
            continue;
        make(&b, version, "{'descr': '<f4'" REST, "\0\0\0\0", 4);
        assert_int_equal(read_bytes(&rec, b.data, b.len, &err), PF_EFORMAT);
        assert_non_null(strstr(err.msg, "version"));
    }
    /* A header of 4 GB that is not there. */
    assert_int_equal(read_bytes(&rec, "\x93NUMPY\2\0\xff\xff\xff\xff{}", 14,
        &err), PF_EFORMAT);
    /* Cut short anywhere. */
    make(&b, 1, "{'descr': '<f4'" REST, "\0\0\0\0", 4);
    for (size_t cut = 1; cut < b.len; cut++)
        assert_int_equal(read_bytes(&rec, b.data, cut, &err), PF_EFORMAT);
    assert_int_equal(read_bytes(&rec, b.data, b.len, &err), PF_OK);
    pf_buf_fini(&b);
    pf_record_fini(&rec);
}

/* Writes a tensor; the file's bytes. */
static enum pf_status
write_bytes(struct pf_buf *b, const struct pf_tensor *t, struct pf_err *err)
{
    struct pf_out out = PF_OUT_INIT;
    char path[] = "/tmp/pf-npy-XXXXXX", *data;
    enum pf_status st;
    size_t len;

    out.fd = mkstemp(path);
    assert_true(out.fd >= 0);
    st = pf_npy_write(&out, t, err);
    assert_int_equal(pf_out_flush(&out, NULL), PF_OK);
    close(out.fd);
    assert_int_equal(pf_read_file(path, 1 << 20, &data, &len, NULL), PF_OK);
    pf_buf_clear(b);
    pf_buf_add(b, data, len);
    free(data);
    unlink(path);
    pf_out_fini(&out);
    return st;
}

static void
test_write(void **ctx)
{
    static const struct {
        unsigned ndim;
        size_t shape[PF_MAX_DIMS];
        const char *text;
    } shapes[] = {
        { 0, { 0 }, "'shape': (), }" }, { 1, { 3 }, "'shape': (3,), }" },
        { 2, { 2, 1 }, "'shape': (2, 1), }" },
        { 1, { 0 }, "'shape': (0,), }" },
        { 8, { 1, 1, 1, 1, 1, 1, 1, 2 },
            "'shape': (1, 1, 1, 1, 1, 1, 1, 2), }" },
    };
    struct pf_record rec = PF_RECORD_INIT;
    struct pf_buf b = PF_BUF_INIT;
    struct pf_err err;
    char data[64];
    size_t header;

    (void)ctx;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 7);
    for (int type = 0; type < PF_N_DTYPES; type++) {
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            struct pf_tensor t = { "x", (enum pf_dtype)type, shapes[i].ndim,
                { 0 }, data + type };
            const struct pf_tensor *back;

            memcpy(t.shape, shapes[i].shape, sizeof t.shape);
            if (type == PF_BF16 || type == PF_F8_E4M3
                || type == PF_F8_E5M2) {
                assert_int_equal(write_bytes(&b, &t, &err), PF_EFORMAT);
                assert_non_null(strstr(err.msg, pf_dtype_name(t.dtype)));
                assert_int_equal(b.len, 0);
                continue;
            }
            assert_int_equal(write_bytes(&b, &t, NULL), PF_OK);
            assert_memory_equal(b.data, "\x93NUMPY\1\0", 8);
            header = (unsigned char)b.data[8]
                | (size_t)(unsigned char)b.data[9] << 8;
            assert_int_equal((10 + header) % 64, 0);
            assert_int_equal(b.data[10 + header - 1], '\n');
            assert_int_equal(b.len, 10 + header + pf_tensor_bytes(&t));
            b.data[10 + header - 1] = '\0';
            assert_non_null(strstr(b.data + 10, shapes[i].text));
            b.data[10 + header - 1] = '\n';
            assert_int_equal(read_bytes(&rec, b.data, b.len, NULL), PF_OK);
            back = pf_record_tensor(&rec, "hidden");
            assert_non_null(back);
            assert_int_equal(back->dtype, type);
            assert_int_equal(back->ndim, t.ndim);
            assert_memory_equal(back->shape, t.shape,
                t.ndim * sizeof *t.shape);
            if (pf_tensor_bytes(&t))
                assert_memory_equal(back->data, t.data, pf_tensor_bytes(&t));
        }
    }
    /* All of it, as numpy 1.24 writes it. */
    write_bytes(&b, &(struct pf_tensor){ "x", PF_I16, 2, { 2, 3 }, shorts },
        NULL);
    assert_int_equal(b.len, 128 + 12);
    assert_memory_equal(b.data, "\x93NUMPY\1\0\x76\0{'descr': '<i2', "
        "'fortran_order': False, 'shape': (2, 3), }"
        "                                                          \n"
        "\0\0\1\0\2\0\3\0\4\0\5\0", 128 + 12);
    pf_buf_fini(&b);
    pf_record_fini(&rec);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numpy),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_write),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
