/* The vectors are golden/convert.ndjson, made with numpy and PyTorch. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include <pipeformer/io.h>
#include <pipeformer/tensor.h>

static uint32_t
bits_of(float v)
{
    uint32_t u;

    memcpy(&u, &v, sizeof u);
    return u;
}

static void
test_dtypes(void **ctx)
{
    static const struct {
        const char *name;
        size_t size;
    } types[] = { { "BOOL", 1 }, { "U8", 1 }, { "I8", 1 }, { "F8_E5M2", 1 },
        { "F8_E4M3", 1 }, { "I16", 2 }, { "U16", 2 }, { "F16", 2 },
        { "BF16", 2 }, { "I32", 4 }, { "U32", 4 }, { "F32", 4 },
        { "F64", 8 }, { "I64", 8 }, { "U64", 8 } };
    enum pf_dtype t;

    (void)ctx;
    assert_int_equal(sizeof types / sizeof *types, PF_N_DTYPES);
    for (size_t i = 0; i < PF_N_DTYPES; i++) {
        assert_true(pf_dtype_find(types[i].name, strlen(types[i].name), &t));
        assert_string_equal(pf_dtype_name(t), types[i].name);
        assert_int_equal(pf_dtype_size(t), types[i].size);
    }
    assert_false(pf_dtype_find("f32", 3, &t));
    assert_false(pf_dtype_find("F3", 2, &t));
    assert_false(pf_dtype_find("F322", 4, &t));
    assert_false(pf_dtype_find("", 0, &t));
    assert_true(pf_dtype_find("F32x", 3, &t));
}

static void
test_mul(void **ctx)
{
    size_t p = 0, half = (size_t)1 << 32;

    (void)ctx;
    assert_true(pf_mul(0, SIZE_MAX, &p) && p == 0);
    assert_true(pf_mul(SIZE_MAX, 0, &p) && p == 0);
    assert_true(pf_mul(1, SIZE_MAX, &p) && p == SIZE_MAX);
    assert_true(pf_mul(SIZE_MAX, 1, &p) && p == SIZE_MAX);
    assert_true(pf_mul(half, half - 1, &p) && p == half * (half - 1));
    assert_false(pf_mul(half, half, &p));
    assert_false(pf_mul(2, SIZE_MAX / 2 + 1, &p));
    assert_true(pf_mul(2, SIZE_MAX / 2, &p) && p == SIZE_MAX - 1);
}

static void
test_shape_size(void **ctx)
{
    const size_t big = (size_t)1 << 40;
    struct pf_err err;
    size_t n, bytes;

    (void)ctx;
    assert_int_equal(pf_shape_size(NULL, 0, PF_F32, &n, &bytes, NULL), PF_OK);
    assert_true(n == 1 && bytes == 4);
    assert_int_equal(pf_shape_size((size_t[]){ 2, 3, 4 }, 3, PF_F64, &n,
        &bytes, NULL), PF_OK);
    assert_true(n == 24 && bytes == 192);
    assert_int_equal(pf_shape_size((size_t[]){ 5 }, 1, PF_I16, NULL, NULL,
        NULL), PF_OK);
    assert_int_equal(pf_shape_size((size_t[]){ 5, 0, 7 }, 3, PF_F32, &n,
        &bytes, NULL), PF_OK);
    assert_true(n == 0 && bytes == 0);
    assert_int_equal(pf_shape_size((size_t[]){ big, big }, 2, PF_U8, &n,
        &bytes, &err), PF_ESHAPE);
    assert_int_equal(err.status, PF_ESHAPE);
    /* Half of a size_t is the bound: elements may fit and bytes not. */
    assert_int_equal(pf_shape_size((size_t[]){ SIZE_MAX / 2 }, 1, PF_U8, &n,
        &bytes, NULL), PF_OK);
    assert_int_equal(pf_shape_size((size_t[]){ SIZE_MAX / 2 + 1 }, 1, PF_U8,
        &n, &bytes, NULL), PF_ESHAPE);
    assert_int_equal(pf_shape_size((size_t[]){ SIZE_MAX / 8 }, 1, PF_F32, &n,
        &bytes, NULL), PF_OK);
    assert_int_equal(pf_shape_size((size_t[]){ SIZE_MAX / 8 + 1 }, 1, PF_F32,
        &n, &bytes, NULL), PF_ESHAPE);
    assert_int_equal(pf_shape_size((size_t[]){ SIZE_MAX }, 1, PF_U8, &n,
        &bytes, NULL), PF_ESHAPE);
    /* Empty arrays claim no more than 2^24 for their other axes. */
    assert_int_equal(pf_shape_size((size_t[]){ 0, 1 << 24 }, 2, PF_F32, &n,
        &bytes, NULL), PF_OK);
    assert_int_equal(pf_shape_size((size_t[]){ (1 << 24) + 1, 0 }, 2, PF_F32,
        &n, &bytes, NULL), PF_ESHAPE);
    assert_int_equal(pf_shape_size((size_t[]){ big, 0, big }, 3, PF_F32, &n,
        &bytes, NULL), PF_ESHAPE);
}

static void
test_tensor_size(void **ctx)
{
    struct pf_tensor t = { "x", PF_I32, 3, { 2, 3, 5 }, NULL };

    (void)ctx;
    assert_int_equal(pf_tensor_count(&t), 30);
    assert_int_equal(pf_tensor_bytes(&t), 120);
    t.ndim = 0;
    assert_int_equal(pf_tensor_count(&t), 1);
    t.ndim = 2;
    t.shape[1] = 0;
    assert_int_equal(pf_tensor_bytes(&t), 0);
}

static void
test_shape_format(void **ctx)
{
    const size_t shape[] = { 3, 160, 0, SIZE_MAX, SIZE_MAX, 1, 2, 3 };
    char s[200];

    (void)ctx;
    assert_string_equal(pf_shape_format(s, sizeof s, shape, 2), "[3, 160]");
    assert_string_equal(pf_shape_format(s, sizeof s, shape, 0), "[]");
    assert_string_equal(pf_shape_format(s, sizeof s, shape, 1), "[3]");
    assert_string_equal(pf_shape_format(s, sizeof s, shape, 8), "[3, 160, 0, "
        "18446744073709551615, 18446744073709551615, 1, 2, 3]");
    for (size_t size = 1; size < 40; size++) { /* cut, with its NUL */
        memset(s, '#', sizeof s);
        pf_shape_format(s, size, shape, 4);
        assert_true(strlen(s) < size);
        assert_true(s[size] == '#');
    }
}

/* Every F16 and BF16 against its definition: sign, 2^(e - bias), fraction. */
static void
test_halves(void **ctx)
{
    (void)ctx;
    for (uint32_t b = 0; b < 0x10000; b++) {
        int e = b >> 10 & 31, m = b & 1023;
        double want = e == 31 ? m ? NAN : INFINITY
            : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
        float v = pf_f16_to_f32((uint16_t)b);

        if (isnan(want))
            assert_true(isnan(v));
        else
            assert_int_equal(bits_of(v),
                bits_of((float)want) | (b >> 15) << 31);
        v = pf_bf16_to_f32((uint16_t)b);
        assert_true(isnan(v) ? (b & 0x7f80) == 0x7f80 && b & 0x7f
            : bits_of(v) == b << 16);
    }
}

/* Every F8, likewise; and the numbers that the OCP's table 1 names. */
static void
test_eighths(void **ctx)
{
    static const struct {
        uint8_t e4m3, e5m2;
        float is_e4m3, is_e5m2;
    } named[] = { /* the largest, the least normal, and of subnormals both */
        { 0x7e, 0x7b, 448, 57344 },
        { 0x08, 0x04, 0x1p-6f, 0x1p-14f },
        { 0x07, 0x03, 0.875f * 0x1p-6f, 0.75f * 0x1p-14f },
        { 0x01, 0x01, 0x1p-9f, 0x1p-16f },
    };

    (void)ctx;
    for (unsigned b = 0; b < 256; b++) {
        uint32_t sign = b >> 7 << 31;
        int e = b >> 3 & 15, m = b & 7;
        float v = pf_f8_e4m3_to_f32((uint8_t)b);

        if ((b & 0x7f) == 0x7f)
            assert_true(isnan(v));
        else
            assert_int_equal(bits_of(v), sign
                | bits_of((float)(e ? ldexp(8 + m, e - 10) : ldexp(m, -9))));
        e = b >> 2 & 31;
        m = b & 3;
        v = pf_f8_e5m2_to_f32((uint8_t)b);
        if (e == 31 && m)
            assert_true(isnan(v));
        else if (e == 31)
            assert_true(v == (sign ? -INFINITY : INFINITY));
        else
            assert_int_equal(bits_of(v), sign
                | bits_of((float)(e ? ldexp(4 + m, e - 17) : ldexp(m, -16))));
    }
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        assert_true(pf_f8_e4m3_to_f32(named[i].e4m3) == named[i].is_e4m3);
        assert_true(pf_f8_e5m2_to_f32(named[i].e5m2) == named[i].is_e5m2);
    }
}

static void
test_golden(void **ctx)
{
    char *text, *line, *next;
    size_t len, cases = 0;

    (void)ctx;
    assert_int_equal(pf_read_file(PF_TEST_GOLDEN "/convert.ndjson", 1 << 24,
        &text, &len, NULL), PF_OK);
    for (line = text; *line; line = next) {
        cJSON *c, *bits, *f32;
        enum pf_dtype type;
        int n;

        next = strchr(line, '\n');
        assert_non_null(next);
        *next++ = '\0';
        c = cJSON_Parse(line);
        assert_non_null(c);
        if (strcmp(cJSON_GetObjectItemCaseSensitive(c, "op")->valuestring,
            "widen") != 0) {
            cJSON_Delete(c);
            continue;
        }
        type = strcmp(cJSON_GetObjectItemCaseSensitive(c,
            "from")->valuestring, "f16") == 0 ? PF_F16 : PF_BF16;
        bits = cJSON_GetObjectItemCaseSensitive(c, "bits");
        f32 = cJSON_GetObjectItemCaseSensitive(c, "f32");
        n = cJSON_GetArraySize(bits);
        assert_int_equal(n, cJSON_GetArraySize(f32));
        bits = bits->child;
        f32 = f32->child;
        for (; bits; bits = bits->next, f32 = f32->next) {
            uint16_t b = (uint16_t)bits->valueint;
            char askew[3];
            float v;

            memcpy(askew + 1, &b, 2);
            assert_true(pf_to_f32(&v, askew + 1, type, 1));
            if (cJSON_IsNull(f32))
                assert_true(isnan(v));
            else
                assert_int_equal(bits_of(v),
                    bits_of((float)f32->valuedouble));
        }
        cases++;
        cJSON_Delete(c);
    }
    assert_int_equal(cases, 4);
    free(text);
}

/* Three elements of each type, at an odd address. */
static void
test_conversions(void **ctx)
{
#define BYTES(...) (const char *)&__VA_ARGS__, sizeof(__VA_ARGS__)
    const struct {
        enum pf_dtype type;
        const char *src;
        size_t bytes;
        bool f, i;
        double want[3];
        int64_t ints[3];
    } t[] = {
        { PF_BOOL, BYTES((uint8_t[]){ 0, 1, 7 }), true, true,
            { 0, 1, 1 }, { 0, 1, 1 } },
        { PF_U8, BYTES((uint8_t[]){ 0, 128, 255 }), true, true,
            { 0, 128, 255 }, { 0, 128, 255 } },
        { PF_I8, BYTES((int8_t[]){ 0, -128, 127 }), true, true,
            { 0, -128, 127 }, { 0, -128, 127 } },
        { PF_I16, BYTES((int16_t[]){ 1, INT16_MIN, INT16_MAX }), true, true,
            { 1, INT16_MIN, INT16_MAX }, { 1, INT16_MIN, INT16_MAX } },
        { PF_U16, BYTES((uint16_t[]){ 1, 0x8000, 0xffff }), true, true,
            { 1, 0x8000, 0xffff }, { 1, 0x8000, 0xffff } },
        { PF_I32, BYTES((int32_t[]){ 1, INT32_MIN, 16777217 }), true, true,
            { 1, INT32_MIN, 16777217 }, { 1, INT32_MIN, 16777217 } },
        { PF_U32, BYTES((uint32_t[]){ 1, 1u << 31, UINT32_MAX }), true, true,
            { 1, 2147483648.0, UINT32_MAX },
            { 1, INT64_C(2147483648), UINT32_MAX } },
        { PF_I64, BYTES((int64_t[]){ -1, INT64_MIN, INT64_MAX }), true, true,
            { -1, -0x1p63, 0x1p63 }, { -1, INT64_MIN, INT64_MAX } },
        { PF_U64, BYTES((uint64_t[]){ 1, INT64_MAX, 1 << 24 }), true, true,
            { 1, 0x1p63, 16777216 }, { 1, INT64_MAX, 1 << 24 } },
        { PF_F16, BYTES((uint16_t[]){ 0x3c00, 0xc000, 0x0001 }), true, false,
            { 1, -2, 0x1p-24 }, { 0 } },
        { PF_BF16, BYTES((uint16_t[]){ 0x3f80, 0xc000, 0x0001 }), true, false,
            { 1, -2, 0x1p-133 }, { 0 } },
        { PF_F32, BYTES((float[]){ 1.5f, -0.1f, 1e-45f }), true, false,
            { 1.5, (double)-0.1f, 0x1p-149 }, { 0 } },
        { PF_F64, BYTES((double[]){ 0.1, -1e300, 16777217 }), true, false,
            { 0.1, -1e300, 16777217 }, { 0 } },
        { PF_F8_E4M3, BYTES((uint8_t[]){ 0x38, 0xc0, 0x7e }), true, false,
            { 1, -2, 448 }, { 0 } },
        { PF_F8_E5M2, BYTES((uint8_t[]){ 0x3c, 0xc0, 0x7b }), true, false,
            { 1, -2, 57344 }, { 0 } },
    };
    const int64_t between = INT64_C(0x4000004000000001);
    char at[32];
    float once;

    (void)ctx;
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        float f[4] = { 99, 99, 99, 99 };
        double d[4] = { 99, 99, 99, 99 };
        int64_t i[4] = { 99, 99, 99, 99 };

        assert_int_equal(t[k].bytes, 3 * pf_dtype_size(t[k].type));
        memcpy(at + 1, t[k].src, t[k].bytes);
        assert_int_equal(pf_to_f32(f, at + 1, t[k].type, 3), t[k].f);
        assert_int_equal(pf_to_f64(d, at + 1, t[k].type, 3), t[k].f);
        assert_int_equal(pf_to_i64(i, at + 1, t[k].type, 3), t[k].i);
        for (int n = 0; n < 3; n++) {
            if (t[k].f)
                assert_true(d[n] == t[k].want[n]);
            if (t[k].f) /* rounded once: these doubles are exact */
                assert_true(f[n] == (float)t[k].want[n]);
            if (t[k].i)
                assert_true(i[n] == t[k].ints[n]);
        }
        assert_true(f[3] == 99 && d[3] == 99 && i[3] == 99);
        if (t[k].f) {
            assert_true(pf_to_f32(NULL, NULL, t[k].type, 0));
            assert_true(pf_to_f64(NULL, NULL, t[k].type, 0));
        }
    }
    /* From 64 bits to float once, not by way of double. */
    pf_to_f32(&once, &between, PF_I64, 1);
    assert_true(once == 0x1.000002p62f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dtypes),
        cmocka_unit_test(test_mul),
        cmocka_unit_test(test_shape_size),
        cmocka_unit_test(test_tensor_size),
        cmocka_unit_test(test_shape_format),
        cmocka_unit_test(test_halves),
        cmocka_unit_test(test_eighths),
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_conversions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
