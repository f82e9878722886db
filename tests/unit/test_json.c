/*
 * JSON.  Numbers are held against the C library, which reads (strtof, strtod)
 * and prints ("%.*e") with correct rounding.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/json.h>

static uint64_t
next_random(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    return *s ^= *s << 17;
}

static uint32_t
bits_of(float v)
{
    uint32_t u;

    memcpy(&u, &v, sizeof u);
    return u;
}

static float
float_of(uint32_t u)
{
    float v;

    memcpy(&v, &u, sizeof v);
    return v;
}

/* --- Printing --- */

static void
check_print(float v, const char *want)
{
    char s[PF_F32_MAX + 1];

    s[pf_f32_print(s, v)] = '\0';
    assert_string_equal(s, want);
}

static void
test_print_table(void **ctx)
{
    (void)ctx;
    check_print(0.0f, "0");
    check_print(-0.0f, "-0");
    check_print(1.0f, "1");
    check_print(-1.5f, "-1.5");
    check_print(0.1f, "0.1");
    check_print(0.3f, "0.3");
    check_print(1.0f / 3, "0.33333334");
    check_print(2.0f / 3, "0.6666667");
    check_print(100.0f, "100");
    check_print(123456.0f, "123456");
    check_print(16777216.0f, "16777216");
    check_print(3.4028235e38f, "3.4028235e38");
    check_print(1.17549435e-38f, "1.1754944e-38");
    check_print(1e-45f, "1e-45");
    check_print(3e-45f, "3e-45");
    check_print(1e10f, "1e10");
    check_print(NAN, "null");
    check_print(-NAN, "null");
    check_print(INFINITY, "1e999");
    check_print(-INFINITY, "-1e999");
    /* Halfway between two of eight digits: the even one, as printf does. */
    check_print(1048576.25f, "1048576.2");
    check_print(1048576.75f, "1048576.8");
}

/* Digits and power of ten of what was printed: d.ddd * 10^e, no zeros. */
static size_t
digits_of(const char *s, size_t len, char digits[32], int *exp10)
{
    size_t n = 0, end;
    int point = -1, e = 0;

    for (size_t i = 0; i < len; i++) {
        if (s[i] == 'e') {
            e = atoi(s + i + 1);
            break;
        }
        if (s[i] == '.')
            point = (int)n;
        else if (s[i] != '-')
            digits[n++] = s[i];
    }
    if (point < 0)
        point = (int)n;
    for (end = 0; end < n && digits[end] == '0'; end++)
        ;
    memmove(digits, digits + end, n - end);
    n -= end;
    point -= (int)end;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    digits[n] = '\0';
    *exp10 = point - 1 + e;
    return n;
}

/* Reads back, is valid JSON of no more digits than needed, and the closest. */
static void
check_shortest(float v)
{
    char s[PF_F32_MAX + 8], ours[32], theirs[32], c[64];
    struct pf_json j;
    int e, their_e;
    size_t len, n, k;
    float back;

    memset(s, '#', sizeof s);
    len = pf_f32_print(s, v);
    assert_true(len > 0 && len <= PF_F32_MAX);
    j = pf_json_at(s, len);
    assert_int_equal(pf_json_f32(&j, &back, NULL), PF_OK);
    assert_int_equal(pf_json_end(&j, NULL), PF_OK);
    assert_int_equal(bits_of(back), bits_of(v));
    s[len] = '\0';
    assert_int_equal(bits_of(strtof(s, NULL)), bits_of(v));
    if (v == 0)
        return;
    n = digits_of(s, len, ours, &e);
    assert_in_range(n, 1, 9);
    for (int p = 0; p + 1 < (int)n; p++) {
        snprintf(c, sizeof c, "%.*e", p, (double)v);
        assert_true(strtof(c, NULL) != v);
    }
    snprintf(c, sizeof c, "%.*e", (int)n - 1, (double)v);
    if (strtof(c, NULL) == v) {
        k = digits_of(c, strlen(c), theirs, &their_e);
        assert_int_equal(k, n);
        assert_string_equal(ours, theirs);
        assert_int_equal(e, their_e);
    }
}

static void
test_print_shortest(void **ctx)
{
    static const uint32_t edges[] = { 0, 1, 2, 3, 0x3fffff, 0x400000,
        0x400001, 0x7ffffd, 0x7ffffe, 0x7fffff };
    uint64_t seed = 1;

    (void)ctx;
    for (uint32_t exp = 0; exp < 255; exp++)
        for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
            for (uint32_t sign = 0; sign < 2; sign++)
                check_shortest(float_of(sign << 31 | exp << 23 | edges[i]));
    for (int i = 0; i < 60000; i++) {
        uint32_t u = (uint32_t)(next_random(&seed) >> 32);

        if ((u >> 23 & 0xff) != 255)
            check_shortest(float_of(u));
    }
    for (int i = 0; i < 5000; i++) { /* subnormals */
        check_shortest(float_of((uint32_t)(next_random(&seed) >> 41)));
        check_shortest(float_of((uint32_t)i));
    }
    for (int i = 0; i < 20000; i++) { /* where decimals are halfway */
        int k = (int)(next_random(&seed) >> 32) & 0x1f;

        check_shortest(ldexpf((float)(next_random(&seed) >> 40 | 1), -k));
    }
    for (int i = 1; i < 2000; i++) {
        check_shortest((float)i);
        check_shortest((float)i / 1000);
        check_shortest((float)i * 1e6f);
    }
}

static void
test_print_others(void **ctx)
{
    static const struct {
        int64_t v;
        const char *s;
    } ints[] = {
        { 0, "0" }, { 7, "7" }, { -7, "-7" }, { 10, "10" },
        { INT64_MAX, "9223372036854775807" },
        { INT64_MIN, "-9223372036854775808" },
    };
    static const struct {
        double v;
        const char *s;
    } doubles[] = {
        { 0.1, "0.1" }, { 1, "1" }, { -2.5, "-2.5" }, { NAN, "null" },
        { INFINITY, "1e999" }, { -INFINITY, "-1e999" },
        { 1.0 / 3, "0.3333333333333333" }, { 1e300, "1e+300" },
        { 0.1 + 0.2, "0.30000000000000004" },
    };
    struct pf_buf b = PF_BUF_INIT;
    char s[20];

    (void)ctx;
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++) {
        size_t n = pf_i64_print(s, ints[i].v);

        assert_int_equal(n, strlen(ints[i].s));
        assert_memory_equal(s, ints[i].s, n);
        pf_buf_clear(&b);
        pf_json_add_i64(&b, ints[i].v);
        assert_int_equal(b.len, n);
        assert_memory_equal(b.data, ints[i].s, n);
    }
    for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++) {
        pf_buf_clear(&b);
        pf_json_add_f64(&b, doubles[i].v);
        pf_buf_addc(&b, '\0');
        assert_string_equal(b.data, doubles[i].s);
    }
    pf_buf_clear(&b);
    pf_json_add_f32(&b, 0.1f);
    pf_json_add_f32(&b, -INFINITY);
    pf_buf_addc(&b, '\0');
    assert_string_equal(b.data, "0.1-1e999");
    pf_buf_fini(&b);
}

/* --- Reading numbers --- */

/* Both readers against the C library's. */
static void
check_number(const char *s)
{
    struct pf_json j = pf_json_at(s, strlen(s));
    double d;
    float f;

    assert_int_equal(pf_json_f32(&j, &f, NULL), PF_OK);
    assert_int_equal(pf_json_end(&j, NULL), PF_OK);
    if (bits_of(f) != bits_of(strtof(s, NULL)))
        fail_msg("%s is %a, not %a", s, (double)f, (double)strtof(s, NULL));
    j = pf_json_at(s, strlen(s));
    assert_int_equal(pf_json_f64(&j, &d, NULL), PF_OK);
    if (d != strtod(s, NULL) || signbit(d) != signbit(strtod(s, NULL)))
        fail_msg("%s is %a, not %a", s, d, strtod(s, NULL));
}

static void
test_numbers(void **ctx)
{
    static const char *const numbers[] = {
        "0", "-0", "0.0", "-0.0e5", "0e999", "0e-999", "0.000e+12", "1", "-1",
        "1e0", "1E+2", "1e-2", "1.5e3", "123456789", "0.1", "0.3",
        "1e22", "1e23", "1e-22", "1e-23", "9007199254740993",
        "9007199254740992.5", "18446744073709551615", "18446744073709551616",
        "9999999999999999999", "99999999999999999999", "1000000000000000000",
        "1000000000000000000000000000001", "0.30000000000000000000000001",
        "3.4028234663852886e38", "3.4028235e38", "3.4028236e38",
        "3.40282356e38", "3.4028235677973366e38", "3.4028235677973365e38",
        "3.4028235677973367e38", "1e38", "1e39", "-1e39", "1e308", "1e309",
        "1.797e308", "1e999", "-1e999", "1e99999999999999999999999",
        "1e-99999999999999999999999", "1e-45", "7e-46", "7.1e-46",
        "1.401298464324817e-45", "0.7006492321624085e-45",
        "0.70064923216240853546186479164495806564013097093825788587853e-45",
        "0.70064923216240853546186479164495806564013097093825788587854e-45",
        "1.1754943508222875e-38", "1.1754942807573643e-38",
        "1.1754942807573642e-38", "1.17549432e-38", "5e-324", "2e-324",
        "2.4703282292062327e-324", "2.4703282292062328e-324",
        "2.2250738585072011e-308", "16777217", "16777216.9999999",
        "16777217.0000001", "33554433", "33554434", "33554435",
        "8589973504", "8589973503.9999999",
    };

    (void)ctx;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        check_number(numbers[i]);
}

/* On, just below and just above what is halfway between two floats. */
static void
test_midpoints(void **ctx)
{
    char s[256];
    uint64_t seed = 2;

    (void)ctx;
    for (int i = 0; i < 8000; i++) {
        uint32_t u = (uint32_t)(next_random(&seed) >> 33);
        double mid;

        if (i % 4 == 0)
            u &= 0x7fffff; /* subnormal */
        else if (i % 4 == 1)
            u = (u & 0x3ffffff) + (0x7f000000 >> 1); /* near 1: short */
        if (u >= 0x7f7fffff)
            continue;
        mid = ((double)float_of(u) + (double)float_of(u + 1)) / 2;
        snprintf(s, sizeof s, "%.150e", mid); /* exact: all digits */
        check_number(s);
        strchr(s, 'e')[-1] = '1';
        check_number(s);
        snprintf(s, sizeof s, "%.150e", nextafter(mid, 0));
        check_number(s);
        for (int p = 5; p < 25; p += 3) {
            snprintf(s, sizeof s, "%.*e", p, mid);
            check_number(s);
        }
        snprintf(s, sizeof s, "%.25f", mid);
        if (strlen(s) < 60)
            check_number(s);
    }
}

static void
test_long_numbers(void **ctx)
{
    uint64_t seed = 3;

    (void)ctx;
    for (int i = 0; i < 500; i++) {
        char s[440];
        size_t n = 1 + (size_t)(next_random(&seed) >> 32) % 400, at = 0;
        size_t point = (size_t)(next_random(&seed) >> 32) % (n + 1);

        if (i % 2)
            s[at++] = '-';
        if (point == 0)
            s[at++] = '0';
        for (size_t k = 0; k < n; k++) {
            if (k == point)
                s[at++] = '.';
            s[at++] = (char)('0' + (next_random(&seed) >> 32) % 10);
            if (k == 0 && s[at - 1] == '0')
                s[at - 1] = '3';
        }
        if (i % 3)
            at += (size_t)sprintf(s + at, "e%d", (int)(next_random(&seed) >> 32)
                    % 500);
        s[at] = '\0';
        check_number(s);
    }
}

static void
test_null_and_junk(void **ctx)
{
    static const char *const bad[] = { "", "-", "+1", ".5", "1.", "1.e5",
        "1e", "1e+", "-a", "nul", "NaN", "Infinity", "-Infinity", "true",
        "\"1\"", "[1]", "{}" };
    static const char *const trailing[] = { "01", "1 2", "0x10", "1.5.5",
        "nulll", "1e5e5", "-01" };
    static const float want[] = { 1, 12, 123, 1234 };
    struct pf_json j;
    double d;
    float f;

    (void)ctx;
    j = pf_json_at(" null ", 6);
    assert_int_equal(pf_json_f32(&j, &f, NULL), PF_OK);
    assert_true(isnan(f));
    assert_int_equal(pf_json_end(&j, NULL), PF_OK);
    j = pf_json_at("null", 4);
    assert_int_equal(pf_json_f64(&j, &d, NULL), PF_OK);
    assert_true(isnan(d));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        j = pf_json_at(bad[i], strlen(bad[i]));
        assert_int_equal(pf_json_f32(&j, &f, NULL), PF_EFORMAT);
        j = pf_json_at(bad[i], strlen(bad[i]));
        assert_int_equal(pf_json_f64(&j, &d, NULL), PF_EFORMAT);
    }
    for (size_t i = 0; i < sizeof trailing / sizeof *trailing; i++) {
        j = pf_json_at(trailing[i], strlen(trailing[i]));
        assert_int_equal(pf_json_f32(&j, &f, NULL), PF_OK);
        assert_int_equal(pf_json_end(&j, NULL), PF_EFORMAT);
    }
    /* A number ends where the text does: no byte behind it is looked at. */
    for (size_t n = 1; n <= 4; n++) {
        char *s = malloc(n);

        assert_non_null(s);
        memcpy(s, "1234", n);
        j = pf_json_at(s, n);
        assert_int_equal(pf_json_f32(&j, &f, NULL), PF_OK);
        assert_true(f == want[n - 1]);
        free(s);
    }
}

static void
test_integers(void **ctx)
{
    static const struct {
        const char *s;
        enum pf_status st;
        int64_t v;
    } t[] = {
        { "0", PF_OK, 0 }, { "-0", PF_OK, 0 }, { "42", PF_OK, 42 },
        { " -7 ", PF_OK, -7 },
        { "9223372036854775807", PF_OK, INT64_MAX },
        { "-9223372036854775808", PF_OK, INT64_MIN },
        { "9223372036854775808", PF_ERANGE, 0 },
        { "-9223372036854775809", PF_ERANGE, 0 },
        { "18446744073709551616", PF_ERANGE, 0 },
        { "9999999999999999999", PF_ERANGE, 0 },
        { "10000000000000000000", PF_ERANGE, 0 },
        { "100000000000000000000000000000000", PF_ERANGE, 0 },
        { "1.0", PF_EFORMAT, 0 }, { "1e2", PF_EFORMAT, 0 },
        { "1E0", PF_EFORMAT, 0 }, { "0.5", PF_EFORMAT, 0 },
        { "null", PF_EFORMAT, 0 }, { "\"1\"", PF_EFORMAT, 0 },
        { "", PF_EFORMAT, 0 }, { "-", PF_EFORMAT, 0 },
        { "01", PF_EFORMAT, 0 }, { "1 1", PF_EFORMAT, 0 },
        { "1,", PF_EFORMAT, 0 }, { "[1]", PF_EFORMAT, 0 },
    };

    (void)ctx;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        int64_t v = 0;
        struct pf_err err = { PF_OK, "" };

        assert_int_equal(pf_json_text_i64(t[i].s, strlen(t[i].s), &v, &err),
            t[i].st);
        if (t[i].st == PF_OK)
            assert_true(v == t[i].v);
        else
            assert_true(err.status == t[i].st && err.msg[0]);
    }
}

/* --- Strings --- */

static enum pf_status
decode(struct pf_buf *b, const char *s, size_t n)
{
    enum pf_status st;

    pf_buf_clear(b);
    st = pf_json_text_string(s, n, b, NULL);
    pf_buf_addc(b, '\0');
    b->len--;
    return st;
}

static void
test_strings(void **ctx)
{
    static const struct {
        const char *s, *want;
    } good[] = {
        { "\"\"", "" }, { "\"abc\"", "abc" }, { " \"a b\" ", "a b" },
        { "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t" },
        { "\"\\u0041\\u00e9\\u20AC\"", "A\xc3\xa9\xe2\x82\xac" },
        { "\"\\uD83D\\ude00!\"", "\xf0\x9f\x98\x80!" },
        { "\"\\ud800\\udc00\"", "\xf0\x90\x80\x80" },
        { "\"\\uDBFF\\uDFFF\"", "\xf4\x8f\xbf\xbf" },
        { "\"\\ud7ff\\ue000\\uffff\"", "\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf" },
        { "\"\xc3\xa9\x7f\"", "\xc3\xa9\x7f" },
        { "\"\xf4\x8f\xbf\xbf\"", "\xf4\x8f\xbf\xbf" },
    };
    static const char *const bad[] = {
        "", "\"", "\"abc", "abc", "'a'", "\"\\\"", "\"\\", "\"\\u12\"",
        "\"\\u123", "\"\\u12g4\"", "\"\\x41\"", "\"\\a\"", "\"\\U0041\"",
        "\"\\ud800\"", "\"\\udc00\"", "\"\\ud800x\"", "\"\\ud800\\n\"",
        "\"\\ud800\\ud800\"", "\"\\udc00\\ud800\"", "\"\\ud800\\u0041\"",
        "\"\\ud83d\\ude\"", "\"a\nb\"", "\"a\tb\"", "\"a\x1f\"", "\"\x01\"",
        "\"\x80\"", "\"\xc0\x80\"", "\"\xc3\"", "\"\xc3(\"", "\"\xe2\x82\"",
        "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xff\"", "\"\xfe\"",
        "\"a\" b", "\"a\"\"b\"", "\"\\ \"",
    };
    struct pf_buf b = PF_BUF_INIT;

    (void)ctx;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(decode(&b, good[i].s, strlen(good[i].s)), PF_OK);
        assert_string_equal(b.data, good[i].want);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (decode(&b, bad[i], strlen(bad[i])) != PF_EFORMAT)
            fail_msg("case %zu: %s", i, bad[i]);
    /* NUL: as an escape a byte of the string, bare a control character. */
    assert_int_equal(decode(&b, "\"a\\u0000b\"", 10), PF_OK);
    assert_int_equal(b.len, 3);
    assert_memory_equal(b.data, "a\0b", 3);
    assert_int_equal(decode(&b, "\"a\0b\"", 5), PF_EFORMAT);
    assert_int_equal(decode(&b, "\"a\\\0\"", 5), PF_EFORMAT);
    /* What is there already stays in front. */
    pf_buf_clear(&b);
    pf_buf_adds(&b, "key:");
    assert_int_equal(pf_json_text_string("\"x\"", 3, &b, NULL), PF_OK);
    assert_int_equal(b.len, 5);
    assert_memory_equal(b.data, "key:x", 5);
    pf_buf_fini(&b);
}

static void
check_quoted(const char *s, size_t n, const char *want)
{
    struct pf_buf b = PF_BUF_INIT, back = PF_BUF_INIT;

    pf_json_add_string(&b, s, n);
    assert_int_equal(pf_buf_check(&b, NULL), PF_OK);
    if (want) {
        assert_int_equal(b.len, strlen(want));
        assert_memory_equal(b.data, want, b.len);
    }
    assert_int_equal(pf_json_text_string(b.data, b.len, &back, NULL), PF_OK);
    assert_int_equal(back.len, n);
    if (n)
        assert_memory_equal(back.data, s, n);
    pf_buf_fini(&b);
    pf_buf_fini(&back);
}

/* What is no UTF-8, and what is written for it. */
static void
check_repaired(const char *s, const char *want)
{
    struct pf_buf b = PF_BUF_INIT;

    pf_json_add_string(&b, s, strlen(s));
    pf_buf_addc(&b, '\0');
    assert_string_equal(b.data, want);
    pf_buf_fini(&b);
}

#define U "\xef\xbf\xbd"

static void
test_quoting(void **ctx)
{
    (void)ctx;
    check_repaired("\xff", "\"" U "\"");
    check_repaired("a\xc3(\n\xe2\x82", "\"a" U "(\\n" U "\"");
    check_repaired("\xed\xa0\x80\xc3\xa9", "\"" U U U "\xc3\xa9\"");
    check_repaired("\xf0\x9f\x98\"\x80", "\"" U "\\\"" U "\"");
    check_quoted("", 0, "\"\"");
    check_quoted("abc", 3, "\"abc\"");
    check_quoted("\"\\/", 3, "\"\\\"\\\\/\"");
    check_quoted("\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\"");
    check_quoted("a\0b", 3, "\"a\\u0000b\"");
    check_quoted("\x01\x1f", 2, "\"\\u0001\\u001f\"");
    check_quoted("\xc3\xa9\xf0\x9f\x98\x80", 6,
        "\"\xc3\xa9\xf0\x9f\x98\x80\"");
    for (int c = 0; c < 128; c++)
        check_quoted((char[]){ 'x', (char)c, 'y' }, 3, NULL);
}

/* --- Whole values --- */

static enum pf_status
value(const char *s, size_t n, const char **raw, size_t *len)
{
    struct pf_json j = pf_json_at(s, n);
    enum pf_status st = pf_json_value(&j, raw, len, NULL);

    return st ? st : pf_json_end(&j, NULL);
}

static void
test_values(void **ctx)
{
    /* What comes back is the text itself, without the space around it. */
    static const char *const good[] = {
        "1", "-0.0", "1.50", "1e999", "123456789012345678901234567890",
        "\"a\\u0041\"", "\"\\ud800\"", "true", "false", "null", "[]", "{}",
        "[1, 2 ,3]", "{\"a\":1,\"a\":2}", "{ \"a\" : [ ] , \"b\":{}}",
        "[[],[[]],{\"\":[{}]}]", "[ ]", "{\t}", "[1\n,\r2]",
        "[{\"a\":1},[2,3],{},[[]],{\"b\":[1]},[{}]]",
        "{\"a\":[1,{\"b\":[true,null]}],\"c\":\"d\"}", "[\"]\",\"}\"]",
    };
    static const char *const bad[] = {
        "", " ", "[", "]", "{", "}", "[1", "[1,", "[1,]", "[,1]", "[1,,2]",
        "[1 2]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{,}", "{a:1}",
        "{'a':1}", "{1:2}", "{\"a\" 1}", "{\"a\":1 \"b\":2}", "[1}", "{\"a\":1]",
        "[{]", "tru", "True", "nul", "nulL", "undefined", "1 2", "[] []",
        "// c\n1", "[1/**/]", "01", "1.", "\"", "\"a\nb\"", "\"\xff\"",
        "[\"\x01\"]", "\xef\xbb\xbf""1", "\v1", "{\"a\":1}}", "--1", "[\"\\q\"]",
        "[1]\f",
    };
    const char *raw;
    size_t len;
    char padded[128];

    (void)ctx;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        size_t n = strlen(good[i]);

        snprintf(padded, sizeof padded, " \n\t%s\r ", good[i]);
        if (value(padded, n + 5, &raw, &len))
            fail_msg("%s", good[i]);
        assert_ptr_equal(raw, padded + 3);
        assert_int_equal(len, n);
        /* Cut anywhere, it is no value (or a shorter number). */
        for (size_t cut = 0; cut < n; cut++)
            if (good[i][0] == '[' || good[i][0] == '{' || good[i][0] == '"')
                assert_int_equal(value(good[i], cut, &raw, &len), PF_EFORMAT);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (value(bad[i], strlen(bad[i]), &raw, &len) != PF_EFORMAT)
            fail_msg("case %zu: %s", i, bad[i]);
    assert_int_equal(value("1\0", 2, &raw, &len), PF_EFORMAT);
    assert_int_equal(value("[1,\0]", 5, &raw, &len), PF_EFORMAT);
}

static void
test_depth(void **ctx)
{
    enum { MOST = PF_JSON_DEPTH };
    static char s[16 * MOST + 64];
    const char *raw;
    size_t len, n;

    (void)ctx;
    for (size_t depth = MOST - 1; depth <= MOST + 1; depth++) {
        enum pf_status want = depth <= MOST ? PF_OK : PF_EFORMAT;

        memset(s, '[', depth);
        memset(s + depth, ']', depth);
        assert_int_equal(value(s, 2 * depth, &raw, &len), want);
        /* Objects and arrays in turn: the kind of each level is kept. */
        n = 0;
        for (size_t i = 0; i < depth; i++)
            n += (size_t)sprintf(s + n, i % 3 ? "{\"a\":" : "[");
        s[n++] = '1';
        for (size_t i = depth; i-- > 0;)
            s[n++] = i % 3 ? '}' : ']';
        assert_int_equal(value(s, n, &raw, &len), want);
        s[n - 1] = '}';
        assert_int_equal(value(s, n, &raw, &len), PF_EFORMAT);
    }
    memset(s, '[', sizeof s); /* a bomb */
    assert_int_equal(value(s, sizeof s, &raw, &len), PF_EFORMAT);
    /* Wide is not deep. */
    n = 1;
    s[0] = '[';
    while (n < sizeof s - 8)
        n += (size_t)sprintf(s + n, "[],");
    n += (size_t)sprintf(s + n, "[]]");
    assert_int_equal(value(s, n, &raw, &len), PF_OK);
}

static void
test_walk(void **ctx)
{
    static const char text[] = " { \"a\" : 1 , \"b\":[2, 3], \"c\":{} } ";
    struct pf_json j = pf_json_at(text, sizeof text - 1);
    struct pf_buf key = PF_BUF_INIT;
    bool first = true, inner = true;
    enum pf_status st;
    const char *raw;
    size_t len, members = 0, items = 0;
    int64_t v, sum = 0;

    (void)ctx;
    assert_int_equal(pf_json_peek(&j), '{');
    assert_int_equal(pf_json_open(&j, '[', NULL), PF_EFORMAT);
    assert_int_equal(pf_json_open(&j, '{', NULL), PF_OK);
    while ((st = pf_json_next(&j, '}', &first, NULL)) == PF_OK) {
        pf_buf_clear(&key);
        assert_int_equal(pf_json_key(&j, &key, NULL), PF_OK);
        assert_int_equal(key.len, 1);
        assert_int_equal(key.data[0], 'a' + (int)members);
        if (members == 1) {
            assert_int_equal(pf_json_open(&j, '[', NULL), PF_OK);
            while ((st = pf_json_next(&j, ']', &inner, NULL)) == PF_OK) {
                assert_int_equal(pf_json_i64(&j, &v, NULL), PF_OK);
                sum += v;
                items++;
            }
            assert_int_equal(st, PF_END);
        } else {
            assert_int_equal(pf_json_value(&j, &raw, &len, NULL), PF_OK);
        }
        members++;
    }
    assert_int_equal(st, PF_END);
    assert_int_equal(members, 3);
    assert_int_equal(items, 2);
    assert_int_equal(sum, 5);
    assert_int_equal(pf_json_end(&j, NULL), PF_OK);
    assert_int_equal(pf_json_peek(&j), 0);
    assert_false(pf_json_take(&j, '\0'));
    pf_buf_fini(&key);

    /* Trailing commas, missing ones, and no key. */
    static const char *const bad[] = { "[1,]", "[1 2]", "[1", "[,]" };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        j = pf_json_at(bad[i], strlen(bad[i]));
        first = true;
        assert_int_equal(pf_json_open(&j, '[', NULL), PF_OK);
        while ((st = pf_json_next(&j, ']', &first, NULL)) == PF_OK)
            if ((st = pf_json_i64(&j, &v, NULL)))
                break;
        assert_int_equal(st, PF_EFORMAT);
    }
    j = pf_json_at("\"a\" 1", 5);
    assert_int_equal(pf_json_key(&j, &key, NULL), PF_EFORMAT);
    pf_buf_fini(&key);
}

/* Ids, against printf: all counts of digits, and what stands in the buffer. */
static void
expect_ids(const uint32_t *ids, size_t n)
{
    struct pf_buf b = PF_BUF_INIT;
    char number[16];
    size_t at = 1;

    pf_buf_addc(&b, '[');
    pf_json_add_ids(&b, ids, n);
    assert_false(b.failed);
    for (size_t i = 0; i < n; i++) {
        int len = snprintf(number, sizeof number, "%s%lu", i ? "," : "",
            (unsigned long)ids[i]);

        assert_true(at + (size_t)len <= b.len);
        if (memcmp(b.data + at, number, (size_t)len) != 0)
            fail_msg("%lu became %.12s", (unsigned long)ids[i], b.data + at);
        at += (size_t)len;
    }
    assert_int_equal(at, b.len);
    pf_buf_fini(&b);
}

static void
test_ids(void **ctx)
{
    static const uint32_t edges[] = { 0, 1, 9, 10, 11, 99, 100, 101, 109, 110,
        999, 1000, 1001, 9999, 10000, 10001, 10099, 10100, 50256, 99999,
        100000, 199999, 999999, 1000000, 9999999, 10000000, 99990000,
        99999999, 100000000, 100000001, 999999999, 1000000000, 2147483647,
        2147483648u, 4294967294u, UINT32_MAX };
    enum { N = 1 << 16 };
    uint32_t *ids = malloc(N * sizeof *ids);
    uint64_t seed = 5;

    (void)ctx;
    assert_non_null(ids);
    expect_ids(NULL, 0);
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        expect_ids(&edges[i], 1);
        expect_ids(edges, i + 1);
    }
    /* All up to 2^18, then any below 10^8, then any at all. */
    for (uint32_t i = 0; i < 1 << 18; i += N) {
        for (uint32_t k = 0; k < N; k++)
            ids[k] = i + k;
        expect_ids(ids, N);
    }
    for (int round = 0; round < 8; round++) {
        for (size_t k = 0; k < N; k++) {
            ids[k] = (uint32_t)next_random(&seed);
            ids[k] = round < 4 ? ids[k] % 100000000 : ids[k] >> seed % 32;
        }
        expect_ids(ids, N);
    }
    free(ids);
}

/* The fast readers of ids: what they take, and where they leave off. */
static void
test_take_ids(void **state)
{
    static const struct {
        const char *text, *rest; /* behind what pf_json_take_ids takes */
        size_t n;
        bool list; /* whether it is one for pf_json_take_list */
        size_t all;
    } cases[] = {
        { "]}", "]}", 0, true, 0 },
        { "7]}", "7]}", 0, true, 1 },
        { "0,12,123,1234,12345,123456,1234567,8]......", "8]......", 7, true,
            8 },
        { "1,2,3]", "1,2,3]", 0, true, 3 }, /* less than 9 bytes are there */
        { "11,22,33,44,55]", "44,55]", 3, true, 5 },
        { "1,12345678,3]......", "12345678,3]......", 1, false, 0 },
        { "1,02,3]........", "02,3]........", 1, false, 0 },
        { "1, 2,3]........", "1, 2,3]........", 0, false, 0 },
        { "1,-2,3]........", "1,-2,3]........", 0, false, 0 },
        { "1,2.5,3].......", "2.5,3].......", 1, false, 0 },
        { "1,2e3,3].......", "2e3,3].......", 1, false, 0 },
        { "1,,3]..........", "1,,3]..........", 0, false, 0 },
        { "1,2,3", "1,2,3", 0, false, 0 },
        { "1,2,", "1,2,", 0, false, 0 },
        { "", "", 0, false, 0 },
    };
    struct pf_buf b = PF_BUF_INIT;
    struct pf_json j;
    char *text;
    size_t len;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        /* In memory that ends where the text does. */
        len = strlen(cases[i].text);
        text = malloc(len + 1);
        assert_non_null(text);
        memcpy(text, cases[i].text, len);
        j = (struct pf_json){ text, text + len };
        pf_buf_clear(&b);
        assert_int_equal(pf_json_take_ids(&j, &b), cases[i].n);
        assert_int_equal(b.len, cases[i].n * sizeof(int64_t));
        assert_int_equal(j.end - j.p, strlen(cases[i].rest));
        j.p = text;
        pf_buf_clear(&b);
        assert_true(pf_json_take_list(&j, &b) == cases[i].list);
        if (cases[i].list) {
            assert_int_equal(b.len, cases[i].all * sizeof(uint32_t));
            assert_int_equal(j.p[-1], ']');
        }
        free(text);
    }
    for (uint32_t v = 0; v < 10000000; v += v < 20000 ? 1 : 997) {
        char line[64];
        uint32_t one;
        int n = snprintf(line, sizeof line, "%u,%u]", v, v);

        j = pf_json_at(line, (size_t)n);
        pf_buf_clear(&b);
        assert_true(pf_json_take_list(&j, &b));
        assert_int_equal(b.len, 8);
        for (int k = 0; k < 2; k++) {
            memcpy(&one, b.data + 4 * k, 4);
            assert_int_equal(one, v);
        }
    }
    pf_buf_fini(&b);
}

/* A list as it is written down: numbers of 1 to 7 digits, no zero in front. */
static bool
plain_list(const char *p, const char *end, size_t *n, uint32_t *sum)
{
    const char *from;
    uint32_t v;

    *n = *sum = 0;
    if (p < end && *p == ']')
        return true;
    for (;; p++) {
        for (from = p, v = 0; p < end && *p >= '0' && *p <= '9'; p++)
            v = v * 10 + (uint32_t)(*p - '0');
        if (p == from || p - from > 7 || (*from == '0' && p - from > 1)
            || p == end || (*p != ',' && *p != ']'))
            return false;
        *sum = *sum * 31 + v;
        ++*n;
        if (*p == ']')
            return true;
    }
}

/* Lists of every length, whole and with a byte that is wrong. */
static void
test_take_list(void **state)
{
    static const char odd[] = "0123456789,]-. \xff" "a\x80/:";
    struct pf_buf b = PF_BUF_INIT, out = PF_BUF_INIT;
    struct pf_json j;
    uint32_t sum, want, id;
    size_t n, len;
    char *text;
    bool ok;

    (void)state;
    srand(7);
    for (int i = 0; i < 60000; i++) {
        pf_buf_clear(&b);
        for (int k = i % 97; k >= 0; k--)
            pf_buf_printf(&b, "%d%c", rand() % (rand() % 2 ? 100 : 9999999),
                k ? ',' : ']');
        for (int k = rand() % 20; k > 0; k--)
            pf_buf_addc(&b, odd[rand() % ((int)sizeof odd - 1)]);
        if (rand() % 2)
            b.data[(size_t)rand() % b.len]
                = odd[rand() % ((int)sizeof odd - 1)];
        /* In memory that begins and ends where the text does. */
        len = b.len;
        text = malloc(len);
        assert_non_null(text);
        memcpy(text, b.data, len);
        ok = plain_list(text, text + len, &n, &want);
        j = (struct pf_json){ text, text + len };
        pf_buf_clear(&out);
        assert_true(pf_json_take_list(&j, &out) == ok);
        sum = 0;
        for (size_t k = 0; ok && k < out.len / sizeof id; k++) {
            memcpy(&id, out.data + k * sizeof id, sizeof id);
            sum = sum * 31 + id;
        }
        assert_true(!ok || (out.len == n * sizeof id && sum == want
            && j.p[-1] == ']'));
        free(text);
    }
    pf_buf_fini(&b);
    pf_buf_fini(&out);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_take_ids),
        cmocka_unit_test(test_take_list),
        cmocka_unit_test(test_print_table),
        cmocka_unit_test(test_print_shortest),
        cmocka_unit_test(test_print_others),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_midpoints),
        cmocka_unit_test(test_long_numbers),
        cmocka_unit_test(test_null_and_junk),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_quoting),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_walk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
