#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include <pipeformer/json.h>
#include <pipeformer/safetensors.h>

static void
test_len(void **ctx)
{
    struct pf_err err;
    size_t len;

    (void)ctx;
    assert_int_equal(pf_safetensors_len("\2\0\0\0\0\0\0\0", &len, NULL),
        PF_OK);
    assert_int_equal(len, 2);
    assert_int_equal(pf_safetensors_len("\x48\x0a\1\0\0\0\0\0", &len, NULL),
        PF_OK);
    assert_int_equal(len, 0x10a48);
    /* 100,000,000 is 0x5f5e100. */
    assert_int_equal(pf_safetensors_len("\0\xe1\xf5\5\0\0\0\0", &len, NULL),
        PF_OK);
    assert_int_equal(len, 100000000);
    assert_int_equal(pf_safetensors_len("\1\xe1\xf5\5\0\0\0\0", &len, &err),
        PF_EFORMAT);
    assert_int_equal(err.status, PF_EFORMAT);
    assert_int_equal(pf_safetensors_len("\2\0\0\0\1\0\0\0", &len, NULL),
        PF_EFORMAT);
    assert_int_equal(pf_safetensors_len("\2\0\0\0\0\0\0\x80", &len, NULL),
        PF_EFORMAT);
    assert_int_equal(pf_safetensors_len("\xff\xff\xff\xff\xff\xff\xff\xff",
        &len, NULL), PF_EFORMAT);
    assert_int_equal(pf_safetensors_len("\0\0\0\0\0\0\0\0", &len, NULL),
        PF_EFORMAT);
    assert_int_equal(pf_safetensors_len("\1\0\0\0\0\0\0\0", &len, NULL),
        PF_EFORMAT);
}

static void
test_parse(void **ctx)
{
    static const char header[] = " {\"b.w\":{\"shape\":[2,3],\"dtype\":\"F32\","
        "\"data_offsets\":[2,26]}, \"__metadata__\":{\"format\":\"pt\","
        "\"a\\u0000\":\"x\\ny\"},\"a\":{\"dtype\":\"BOOL\",\"data_offsets\":"
        "[0,2],\"shape\":[2]},\"none\":{\"dtype\":\"I64\",\"shape\":[0,3],"
        "\"data_offsets\":[26,26]},\"one\":{\"dtype\":\"BF16\",\"shape\":[],"
        "\"data_offsets\":[26,28]}}   ";
    struct pf_arena mem = PF_ARENA_INIT;
    struct pf_safetensors st;

    (void)ctx;
    assert_int_equal(pf_safetensors_parse(&st, &mem, header,
        sizeof header - 1, NULL), PF_OK);
    assert_int_equal(st.n, 4);
    assert_int_equal(st.data_len, 28);
    assert_string_equal(st.tensors[0].name, "b.w");
    assert_int_equal(st.tensors[0].dtype, PF_F32);
    assert_int_equal(st.tensors[0].ndim, 2);
    assert_int_equal(st.tensors[0].shape[0], 2);
    assert_int_equal(st.tensors[0].shape[1], 3);
    assert_int_equal(st.offsets[0], 2);
    assert_string_equal(st.tensors[1].name, "a");
    assert_int_equal(st.offsets[1], 0);
    assert_int_equal(st.offsets[2], 26);
    assert_int_equal(pf_tensor_count(&st.tensors[2]), 0);
    assert_string_equal(st.tensors[3].name, "one");
    assert_int_equal(st.tensors[3].ndim, 0);
    assert_int_equal(st.offsets[3], 26);
    assert_int_equal(st.n_meta, 2);
    assert_string_equal(st.meta[0].key, "format");
    assert_string_equal(st.meta[0].value, "pt");
    assert_int_equal(st.meta[1].key_len, 2);
    assert_memory_equal(st.meta[1].key, "a\0", 3);
    assert_int_equal(st.meta[1].value_len, 3);
    assert_string_equal(st.meta[1].value, "x\ny");
    assert_int_equal(pf_safetensors_parse(&st, &mem, "{}", 2, NULL), PF_OK);
    assert_true(st.n == 0 && st.n_meta == 0 && st.data_len == 0);
    pf_arena_fini(&mem);
}

#define T(name, dtype, shape, from, to) \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape \
    ",\"data_offsets\":[" from "," to "]}"

/* What lies about itself, with a word of what is said of it. */
static const struct {
    const char *header, *word;
} bad[] = {
    { "", "" }, { "[]", "" }, { "1", "" }, { "{", "" }, { "{}{}", "" },
    { "{}\1", "" }, { "{\"a\":1}", "" }, { "{\"a\":{}}", "lacks" },
    { "{" T("a", "F32", "[1]", "0", "4") ",}", "" },
    { "{" T("a", "F32", "[1]", "0", "4"), "" },
    { "{" T("a", "F32", "[1]", "0", "4") "} x", "" },
    /* types */
    { "{" T("a", "f32", "[1]", "0", "4") "}", "f32" },
    { "{" T("a", "", "[1]", "0", "4") "}", "dtype" },
    { "{" T("a", "F33", "[1]", "0", "4") "}", "F33" },
    { "{\"a\":{\"dtype\":7,\"shape\":[],\"data_offsets\":[0,4]}}", "" },
    /* shapes */
    { "{" T("a", "F32", "[-1]", "0", "4") "}", "shape" },
    { "{" T("a", "F32", "[1.0]", "0", "4") "}", "" },
    { "{" T("a", "F32", "[1e0]", "0", "4") "}", "" },
    { "{" T("a", "F32", "[null]", "0", "4") "}", "" },
    { "{" T("a", "F32", "[[1]]", "0", "4") "}", "" },
    { "{" T("a", "F32", "1", "0", "4") "}", "" },
    { "{" T("a", "F32", "[1,1,1,1,1,1,1,1,1]", "0", "4") "}", "shape" },
    { "{" T("a", "F32", "[9223372036854775808]", "0", "4") "}", "" },
    { "{" T("a", "U8", "[4294967296,4294967296]", "0", "0") "}", "" },
    { "{" T("a", "F32", "[4611686018427387904]", "0", "0") "}", "" },
    { "{" T("a", "F32", "[2147483648,2147483648]", "0", "0") "}", "" },
    { "{" T("a", "F32", "[0,16777217]", "0", "0") "}", "" },
    /* lengths */
    { "{" T("a", "F32", "[1]", "0", "3") "}", "a" },
    { "{" T("a", "F32", "[1]", "0", "5") "}", "a" },
    { "{" T("a", "F32", "[2]", "0", "4") "}", "a" },
    { "{" T("a", "F32", "[0]", "0", "4") "}", "a" },
    { "{" T("a", "F32", "[]", "0", "0") "}", "a" },
    { "{" T("a", "F32", "[1]", "4", "0") "}", "a" },
    { "{" T("a", "F32", "[1]", "-4", "0") "}", "data_offsets" },
    { "{" T("a", "F32", "[1]", "0", "4.0") "}", "" },
    { "{" T("a", "U8", "[1]", "9223372036854775807",
        "9223372036854775808") "}", "" },
    { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", "two" },
    { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,1]}}",
        "data_offsets" },
    { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":1}}", "" },
    /* places */
    { "{" T("a", "F32", "[1]", "4", "8") "}", "begins" },
    { "{" T("a", "F32", "[1]", "0", "4") "," T("b", "F32", "[1]", "5", "9")
        "}", "\"b\"" },
    { "{" T("a", "F32", "[1]", "0", "4") "," T("b", "F32", "[1]", "3", "7")
        "}", "\"b\"" },
    { "{" T("a", "F32", "[1]", "0", "4") "," T("b", "F32", "[1]", "0", "4")
        "}", "" },
    { "{" T("a", "F32", "[2]", "0", "8") "," T("b", "F32", "[1]", "4", "8")
        "}", "\"b\"" },
    { "{" T("a", "F32", "[2]", "0", "8") "," T("b", "F32", "[0]", "4", "4")
        "}", "" },
    { "{" T("a", "F32", "[0]", "4", "4") "}", "begins" },
    /* names and keys */
    { "{" T("a", "F32", "[1]", "0", "4") "," T("a", "F32", "[1]", "4", "8")
        "}", "twice" },
    { "{" T("a", "F32", "[1]", "0", "4") ","
        T("\\u0061", "F32", "[1]", "4", "8") "}", "twice" },
    { "{" T("a\\u0000", "F32", "[1]", "0", "4") "}", "U+0000" },
    { "{" T("\\ud800", "F32", "[1]", "0", "4") "}", "" },
    { "{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],"
        "\"data_offsets\":[0,1]}}", "twice" },
    { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"shape\":[1],"
        "\"data_offsets\":[0,1]}}", "twice" },
    { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],"
        "\"data_offsets\":[0,1]}}", "twice" },
    { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],"
        "\"x\":0}}", "\"x\"" },
    { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", "lacks" },
    { "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", "lacks" },
    { "{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}", "lacks" },
    { "{\"\":{\"\":1}}", "unknown key" },
    { "{\"__metadata__\":{},\"__metadata__\":{}}", "twice" },
    { "{\"__metadata__\":{\"a\":1}}", "" },
    { "{\"__metadata__\":{\"a\":null}}", "" },
    { "{\"__metadata__\":[]}", "" },
    { "{\"__metadata__\":\"a\"}", "" },
};

static void
test_bad(void **ctx)
{
    (void)ctx;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct pf_arena mem = PF_ARENA_INIT;
        struct pf_err err = { PF_OK, "" };
        struct pf_safetensors st;
        size_t n = strlen(bad[i].header);
        char *copy = malloc(n + 1); /* nothing lies behind it */
        enum pf_status status;

        assert_non_null(copy);
        memcpy(copy, bad[i].header, n);
        status = pf_safetensors_parse(&st, &mem, copy, n, &err);
        if (status != PF_EFORMAT && status != PF_ESHAPE
            && status != PF_ERANGE)
            fail_msg("%zu: %s: status %d", i, bad[i].header, status);
        assert_int_equal(err.status, status);
        assert_true(err.msg[0]);
        if (!strstr(err.msg, bad[i].word))
            fail_msg("%s: %s", bad[i].header, err.msg);
        free(copy);
        pf_arena_fini(&mem);
    }
}

/* Names of any kind are told apart, by the thousand. */
static void
test_many(void **ctx)
{
    struct pf_buf b = PF_BUF_INIT;
    struct pf_arena mem = PF_ARENA_INIT;
    struct pf_safetensors st;

    (void)ctx;
    pf_buf_addc(&b, '{');
    for (int i = 3000; i-- > 0;)
        pf_buf_printf(&b, "\"t%d\":{\"dtype\":\"U8\",\"shape\":[%d],"
            "\"data_offsets\":[%d,%d]}%s", i, i % 2, i / 2, i / 2 + i % 2,
            i ? "," : "}");
    assert_int_equal(pf_safetensors_parse(&st, &mem, b.data, b.len, NULL),
        PF_OK);
    assert_int_equal(st.n, 3000);
    assert_int_equal(st.data_len, 1500);
    assert_string_equal(st.tensors[0].name, "t2999");
    pf_arena_fini(&mem);
    pf_buf_fini(&b);
}

/* Widest first, padded to eight bytes, and read back. */
static void
test_header(void **ctx)
{
    const struct pf_tensor t[] = {
        { "u8", PF_U8, 1, { 3 }, NULL },
        { "f32", PF_F32, 2, { 2, 1 }, NULL },
        { "i64", PF_I64, 1, { 1 }, NULL },
        { "f16", PF_F16, 0, { 0 }, NULL },
        { "\"\\\xc3\xa9", PF_F64, 2, { 0, 4 }, NULL },
        { "i32", PF_I32, 1, { 1 }, NULL },
    };
    static const size_t want[] = { 2, 4, 1, 5, 3, 0 };
    static const size_t offsets[] = { 0, 8, 8, 16, 20, 22 };
    struct pf_buf b = PF_BUF_INIT;
    struct pf_arena mem = PF_ARENA_INIT;
    struct pf_safetensors st;
    size_t order[6], len;

    (void)ctx;
    for (size_t n = 0; n <= 6; n++) {
        for (size_t meta = 0; meta < 40; meta++) {
            char text[64] = "{\"a\":\"", *s = text + 6;

            for (size_t k = 0; k < meta; k++)
                *s++ = k % 5 ? 'x' : '\n';
            strcpy(s, "\"}");
            pf_buf_clear(&b);
            pf_buf_adds(&b, "before: ");
            assert_int_equal(pf_safetensors_header(&b, t, n, text,
                meta ? strlen(text) : 0, order, NULL), PF_OK);
            assert_memory_equal(b.data, "before: ", 8);
            assert_int_equal(b.len % 8, 0);
            assert_int_equal(pf_safetensors_len(b.data + 8, &len, NULL),
                PF_OK);
            assert_int_equal(len, b.len - 16);
            assert_int_equal(b.data[16], '{');
            assert_int_equal(pf_safetensors_parse(&st, &mem, b.data + 16,
                len, NULL), PF_OK);
            assert_int_equal(st.n, n);
            assert_int_equal(st.n_meta, meta != 0);
            if (meta) {
                assert_string_equal(st.meta[0].key, "pipeformer");
                assert_string_equal(st.meta[0].value, text);
            }
            if (n < 6)
                continue;
            assert_int_equal(st.data_len, 25);
            for (size_t i = 0; i < 6; i++) {
                assert_int_equal(order[i], want[i]);
                assert_string_equal(st.tensors[i].name, t[want[i]].name);
                assert_int_equal(st.tensors[i].dtype, t[want[i]].dtype);
                assert_int_equal(st.tensors[i].ndim, t[want[i]].ndim);
                assert_int_equal(st.offsets[i], offsets[i]);
            }
        }
        pf_arena_reset(&mem);
    }
    /* All of it, byte by byte. */
    pf_buf_clear(&b);
    pf_safetensors_header(&b, t + 5, 1, "{}", 2, order, NULL);
    assert_int_equal(b.len, 104);
    assert_memory_equal(b.data, "\x60\0\0\0\0\0\0\0{\"__metadata__\":{"
        "\"pipeformer\":\"{}\"},\"i32\":{\"dtype\":\"I32\",\"shape\":[1],"
        "\"data_offsets\":[0,4]}}     ", 104);
    pf_arena_fini(&mem);
    pf_buf_fini(&b);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_len),
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_header),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
