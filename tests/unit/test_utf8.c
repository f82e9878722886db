/*
 * UTF-8 against a plain reading of RFC 3629: decode by the shape of the bytes,
 * then ask whether encoding the code point gives the same bytes back.  All
 * sequences of 1 to 3 bytes, and those of 4 whose bytes lie at an edge.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <pipeformer/utf8.h>

/* Length of the valid character at the beginning of n bytes, 0 for none. */
static size_t
plain(const unsigned char *p, size_t n, uint32_t *c)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t len = p[0] < 0x80 ? 1 : p[0] >> 5 == 6 ? 2 : p[0] >> 4 == 14 ? 3
        : p[0] >> 3 == 30 ? 4 : 0;

    if (!len || len > n)
        return 0;
    *c = len == 1 ? p[0] : p[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if (p[i] >> 6 != 2)
            return 0;
        *c = *c << 6 | (p[i] & 0x3fu);
    }
    if (*c < least[len] || *c > 0x10ffff || (*c >= 0xd800 && *c < 0xe000))
        return 0;
    return len;
}

static bool
can_go_on(const unsigned char *p, size_t n, size_t from)
{
    static const unsigned char edges[] = { 0x80, 0x8f, 0x90, 0x9f, 0xa0,
        0xbf };
    unsigned char q[4] = { 0 };
    uint32_t c;

    memcpy(q, p + from, n - from);
    if (n - from == 4)
        return false;
    for (int i = 0; i < 216; i++) {
        q[n - from] = edges[i % 6];
        if (n - from < 3)
            q[n - from + 1] = edges[i / 6 % 6];
        if (n - from < 2)
            q[n - from + 2] = edges[i / 36];
        if (plain(q, 4, &c) > n - from)
            return true;
    }
    return false;
}

/* The start of what could become a character, 0 where there is none. */
static size_t
plain_pending(const unsigned char *p, size_t n)
{
    for (size_t from = n > 3 ? n - 3 : 0; from < n; from++)
        if (can_go_on(p, n, from))
            return n - from;
    return 0;
}

static void
check(const unsigned char *p, size_t n)
{
    uint32_t c = 0;
    size_t want = plain(p, n, &c), len, span = 0;
    char s[4];

    if (pf_utf8_char((const char *)p, n) != want)
        fail_msg("%02x %02x %02x, %zu bytes", p[0], p[1], p[2], n);
    if (want) {
        assert_int_equal(pf_utf8_decode((const char *)p, &len), c);
        assert_int_equal(len, want);
        assert_int_equal(pf_utf8_encode(s, c), want);
        assert_memory_equal(s, p, want);
    }
    while (span < n && (len = plain(p + span, n - span, &c)))
        span += len;
    assert_int_equal(pf_utf8_span((const char *)p, n), span);
}

static void
test_short(void **state)
{
    unsigned char p[4] = { 0 };

    (void)state;
    assert_int_equal(pf_utf8_char("", 0), 0);
    assert_int_equal(pf_utf8_span("", 0), 0);
    assert_int_equal(pf_utf8_pending("", 0), 0);
    for (uint32_t i = 0; i < 1 << 24; i++) {
        p[0] = (unsigned char)(i >> 16);
        p[1] = (unsigned char)(i >> 8);
        p[2] = (unsigned char)i;
        if (p[1] == 0 && p[2] == 0)
            check(p, 1);
        if (p[2] == 0)
            check(p, 2);
        check(p, 3);
    }
}

static void
test_long(void **state)
{
    static const unsigned char at[] = { 0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90,
        0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed,
        0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xf7, 0xf8, 0xff };
    enum { N = sizeof at };
    unsigned char p[4];

    (void)state;
    for (size_t i = 0; i < (size_t)N * N * N * N; i++) {
        p[0] = at[i % N];
        p[1] = at[i / N % N];
        p[2] = at[i / N / N % N];
        p[3] = at[i / N / N / N];
        check(p, 4);
        for (size_t n = 1; n <= 4; n++)
            if (pf_utf8_pending((const char *)p, n) != plain_pending(p, n))
                fail_msg("%02x %02x %02x %02x, %zu bytes: %zu pending", p[0],
                    p[1], p[2], p[3], n, pf_utf8_pending((const char *)p, n));
    }
}

/* Every character there is, and only those. */
static void
test_all(void **state)
{
    char s[4], text[8];
    size_t n, len;

    (void)state;
    for (uint32_t c = 0; c <= 0x10ffff; c++) {
        if (c >= 0xd800 && c < 0xe000)
            continue;
        n = pf_utf8_encode(s, c);
        assert_int_equal(n, 1 + (c > 0x7f) + (c > 0x7ff) + (c > 0xffff));
        assert_int_equal(pf_utf8_char(s, n), n);
        assert_int_equal(pf_utf8_decode(s, &len), c);
        assert_int_equal(len, n);
        for (size_t cut = 1; cut < n; cut++) {
            assert_int_equal(pf_utf8_char(s, cut), 0);
            assert_int_equal(pf_utf8_pending(s, cut), cut);
        }
        assert_int_equal(pf_utf8_pending(s, n), 0);
        memcpy(text, "\x80" "a", 2);
        memcpy(text + 2, s, n);
        assert_int_equal(pf_utf8_before(text, text + 2 + n), c);
        assert_int_equal(pf_utf8_before(text, text + 2), 'a');
        assert_int_equal(pf_utf8_before(text, text + 1), 0);
        assert_int_equal(pf_utf8_before(text, text), 0);
        for (size_t cut = 1; cut < n; cut++)
            assert_int_equal(pf_utf8_before(text, text + 2 + cut), 0);
    }
}

/* The step of eight bytes, with a stranger at each place. */
static void
test_span(void **state)
{
    char s[40];

    (void)state;
    for (size_t len = 0; len <= sizeof s; len++) {
        memset(s, 'a', sizeof s);
        assert_int_equal(pf_utf8_span(s, len), len);
        for (size_t i = 0; i < len; i++) {
            s[i] = (char)0xff;
            assert_int_equal(pf_utf8_span(s, len), i);
            s[i] = (char)0xc3;
            if (i + 1 < len)
                s[i + 1] = (char)0xa9;
            assert_int_equal(pf_utf8_span(s, len), i + 1 < len ? len : i);
            s[i] = 'a';
            if (i + 1 < len)
                s[i + 1] = 'a';
        }
    }
}

/* What one character after the other says. */
static size_t
plain_span(const unsigned char *p, size_t n)
{
    size_t i = 0, len;
    uint32_t c;

    while (i < n && (len = plain(p + i, n - i, &c)))
        i += len;
    return i;
}

/* Every fault of two or three bytes, at every place of what is told many
 * bytes at a time, in texts of every kind of character. */
static void
test_wide_span(void **state)
{
    static const char *const fill[] = { "a", "\xc3\xa9", "\xe4\xb8\xad",
        "\xf0\x9f\x98\x80" };
    static const unsigned char edges[] = { 0x00, 0x61, 0x7f, 0x80, 0x8f, 0x90,
        0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed,
        0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff };
    enum { N = 140, EDGES = sizeof edges };
    unsigned char text[N + 8];

    (void)state;
    for (size_t f = 0; f < 4; f++) {
        size_t len = strlen(fill[f]);

        for (size_t i = 0; i < N; i += len)
            memcpy(text + i, fill[f], len);
        for (size_t n = 60; n <= N; n++)
            assert_int_equal(pf_utf8_span((char *)text, n),
                plain_span(text, n));
        for (size_t at = 0; at + 4 <= N; at++) {
            unsigned char old[4];

            memcpy(old, text + at, 4);
            for (size_t k = 0; k < EDGES * EDGES * EDGES; k++) {
                text[at] = edges[k % EDGES];
                text[at + 1] = edges[k / EDGES % EDGES];
                text[at + 2] = edges[k / EDGES / EDGES];
                if (pf_utf8_span((char *)text, N) != plain_span(text, N))
                    fail_msg("%02x %02x %02x at %zu in text %zu", text[at],
                        text[at + 1], text[at + 2], at, f);
            }
            memcpy(text + at, old, 4);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_span),
        cmocka_unit_test(test_wide_span),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
