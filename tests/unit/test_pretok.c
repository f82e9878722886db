/*
 * Cutting by pattern: scanner and PCRE2 alike, gaps, beginnings of texts, and
 * patterns that go wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pipeformer/utf8.h>

#include "../../src/pretok.h"

enum { N_WAYS = 3, BIG = 1 << 20 };

/* GPT-2's pattern by scanner, in machine code and interpreted. */
static const unsigned ways[N_WAYS] = { 0, PF_PRETOK_PCRE2, PF_PRETOK_NO_JIT };
static struct pf_pretok *pre[N_WAYS];
static struct pf_splitter *split[N_WAYS];

static int
setup(void **state)
{
    (void)state;
    for (int i = 0; i < N_WAYS; i++)
        if (pf_pretok_new(&pre[i], pf_pretok_named("gpt2"), ways[i], NULL)
            || pf_splitter_new(&split[i], pre[i], NULL))
            return -1;
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    for (int i = 0; i < N_WAYS; i++) {
        pf_splitter_free(split[i]);
        pf_pretok_free(pre[i]);
    }
    return 0;
}

/* A splitter of its own; its pretok in *p. */
static struct pf_splitter *
make(struct pf_pretok **p, const char *pattern, unsigned flags)
{
    struct pf_splitter *s;

    assert_int_equal(pf_pretok_new(p, pattern, flags, NULL), PF_OK);
    assert_int_equal(pf_splitter_new(&s, *p, NULL), PF_OK);
    return s;
}

static void
drop(struct pf_pretok *p, struct pf_splitter *s)
{
    pf_splitter_free(s);
    pf_pretok_free(p);
}

/* The pieces are the texts of `want`, which ends in NULL; one at a time and
 * in batches of any size. */
static void
expect_begin(struct pf_splitter *s, const char *text, bool last,
    const char *const *want)
{
    size_t ends[4], len, n, at, k;
    const char *piece;

    pf_splitter_begin(s, text, strlen(text), last);
    for (k = 0; want[k]; k++) {
        assert_int_equal(pf_splitter_next(s, &piece, &len, NULL), PF_OK);
        if (len != strlen(want[k]) || memcmp(piece, want[k], len) != 0)
            fail_msg("piece \"%.*s\" of \"%s\" should be \"%s\"", (int)len,
                piece, text, want[k]);
    }
    assert_int_equal(pf_splitter_next(s, &piece, &len, NULL), PF_END);
    assert_int_equal(pf_splitter_next(s, &piece, &len, NULL), PF_END);
    for (size_t max = 1; max <= 4; max++) {
        pf_splitter_begin(s, text, strlen(text), last);
        at = k = 0;
        do {
            assert_int_equal(pf_splitter_cut(s, ends, max, &n, NULL), PF_OK);
            assert_true(n <= max);
            for (size_t i = 0; i < n; at = ends[i++], k++) {
                assert_non_null(want[k]);
                assert_int_equal(ends[i] - at, strlen(want[k]));
            }
        } while (n);
        assert_null(want[k]);
    }
}

static void
expect(struct pf_splitter *s, const char *text, const char *const *want)
{
    expect_begin(s, text, true, want);
}

static void
test_by_hand(void **state)
{
    static const struct {
        const char *text, *pieces[12];
    } cases[] = {
        { "", { NULL } },
        { "Once upon a time", { "Once", " upon", " a", " time" } },
        { "I'll we've 'Tis it'S", { "I", "'ll", " we", "'ve", " '", "Tis",
            " it", "'", "S" } },
        { "a  b   ", { "a", " ", " b", "   " } },
        { "a\n\n b", { "a", "\n\n", " b" } },
        { "x=42!!  \n", { "x", "=", "42", "!!", "  \n" } },
        { "caf\xc3\xa9\xc2\xa0\xe2\x82\xac" "5", { "caf\xc3\xa9", "\xc2\xa0",
            "\xe2\x82\xac", "5" } },
        /* U+0085 is a space, U+1C89 a letter since Unicode 16 */
        { "\xc2\x85 \xe1\xb2\x89" "a", { "\xc2\x85", " \xe1\xb2\x89" "a" } },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int way = 0; way < N_WAYS; way++)
            expect(split[way], cases[i].text, cases[i].pieces);
}

static void
test_names(void **state)
{
    static const struct {
        const char *pattern;
        unsigned flags;
        enum pf_scan scan;
    } cases[] = {
        { NULL, 0, PF_SCAN_GPT2 },
        { NULL, PF_PRETOK_LAX, PF_SCAN_GPT2 },
        { NULL, PF_PRETOK_PCRE2, PF_SCAN_NONE },
        { NULL, PF_PRETOK_NO_JIT, PF_SCAN_NONE },
        { "\\p{L}+|\\s+", 0, PF_SCAN_NONE },
        { "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++"
            "|\\p{N}{1,3}+| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++$"
            "|\\s*[\\r\\n]|\\s+(?!\\S)|\\s", PF_PRETOK_TIKTOKEN,
            PF_SCAN_CL100K },
        { "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++"
            "|\\p{N}{1,3}+| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++$"
            "|\\s*[\\r\\n]|\\s+(?!\\S)|\\s", PF_PRETOK_LAX, PF_SCAN_NONE },
    };
    static const char *const old[] = { "a", "\n", "  ", NULL };
    static const char *const new[] = { "a", "\n  ", NULL };
    struct pf_splitter *s;
    struct pf_pretok *p;
    struct pf_err err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        s = make(&p, cases[i].pattern ? cases[i].pattern
            : pf_pretok_named("gpt2"), cases[i].flags);
        assert_int_equal(pf_pretok_scan(p), cases[i].scan);
        if (i >= 5)
            expect(s, "a\n  ", i == 5 ? old : new);
        drop(p, s);
    }
    /* Not exact, and $ is not for every library. */
    assert_int_equal(pf_pretok_new(&p, cases[5].pattern, 0, &err), PF_EMODEL);
    assert_null(p);
    assert_null(pf_pretok_named("gpt3"));
}

static void
expect_same(struct pf_splitter *a, struct pf_splitter *b, const char *text,
    size_t len)
{
    const char *p, *q, *at = text;
    size_t n = 0, m = 0;
    enum pf_status st;

    pf_splitter_begin(a, text, len, true);
    pf_splitter_begin(b, text, len, true);
    do {
        st = pf_splitter_next(a, &p, &n, NULL);
        assert_int_equal(pf_splitter_next(b, &q, &m, NULL), st);
        if (!st) {
            assert_ptr_equal(p, at);
            assert_ptr_equal(q, at);
            assert_int_equal(n, m);
            assert_true(n > 0);
            at += n;
        }
    } while (!st);
    assert_int_equal(st, PF_END);
    assert_ptr_equal(at, text + len);
}

static uint64_t seed = 1;

static size_t
random_text(char *text, size_t chars)
{
    static const uint32_t below[] = { 0x80, 0x80, 0x250, 0x3000, 0x20000 };
    size_t len = 0;
    uint32_t c;

    for (size_t k = 0; k < chars; k++) {
        seed = seed * 6364136223846793005 + 1442695040888963407;
        c = (uint32_t)(seed >> 40) % below[(seed >> 33) % 5];
        len += pf_utf8_encode(text + len, c >= 0xd800 && c < 0xe000 ? ' ' : c);
    }
    return len;
}

static void
test_random_texts(void **state)
{
    char text[400];
    size_t len;

    (void)state;
    for (int i = 0; i < 2000; i++) {
        len = random_text(text, 90);
        expect_same(split[0], split[1], text, len);
        if (i % 10 == 0) /* slow */
            expect_same(split[0], split[2], text, len);
    }
}

/* One piece of 1 MB, whatever it is of. */
static void
test_long_pieces(void **state)
{
    static const char *const units[] = { "a", " ", "\n", "1", "!",
        "\xe7\x9a\x84", "\xf0\x9f\x98\x80", "\xe3\x80\x80", "'" };
    char *text = malloc(BIG + 8);
    size_t len, n;
    const char *piece;

    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        for (len = 0; len < BIG; len += strlen(units[i]))
            memcpy(text + len, units[i], strlen(units[i]));
        for (int way = 0; way < N_WAYS; way++) {
            pf_splitter_begin(split[way], text, len, true);
            assert_int_equal(pf_splitter_next(split[way], &piece, &n, NULL),
                PF_OK);
            assert_int_equal(n, len);
        }
        text[len] = 'x';
        expect_same(split[1], split[2], text, len + 1);
    }
    free(text);
}

/* A pattern of another kind: what it leaves out are pieces too. */
static void
test_gaps(void **state)
{
    static const char *const gaps[] = { "--", "a", ", ", "bc", "!", NULL };
    static const char *const none[] = { "-- !", NULL };
    static const char *const behind[] = { "ab", "-", "-b", NULL };
    static const unsigned flags[] = { PF_PRETOK_LAX,
        PF_PRETOK_LAX | PF_PRETOK_NO_JIT };
    struct pf_pretok *p;
    struct pf_splitter *s;
    struct pf_err err;

    (void)state;
    for (int i = 0; i < 2; i++) {
        s = make(&p, "[a-z]*", flags[i]);
        expect(s, "--a, bc!", gaps);
        expect(s, "-- !", none);
        drop(p, s);
        s = make(&p, "(?<=-)-\\w", flags[i]);
        expect(s, "ab--b", (const char *const[]){ "ab-", "-b", NULL });
        drop(p, s);
        s = make(&p, "\\w+|(?<=-).+|.", flags[i]);
        expect(s, "ab--b", behind);
        drop(p, s);
        /* What \K leaves out is a gap. */
        s = make(&p, "a|.\\K.", flags[i]);
        expect(s, "xya", (const char *const[]){ "x", "y", "a", NULL });
        drop(p, s);
    }
    assert_int_equal(pf_pretok_new(&p, "[a-z]*", 0, &err), PF_EMODEL);
    assert_null(p);
    assert_non_null(strstr(err.msg, "can match no character"));
    assert_int_equal(pf_pretok_new(&p, "a(b", 0, &err), PF_EFORMAT);
    assert_null(p);
    assert_non_null(strstr(err.msg, "does not compile: missing closing"));
    assert_int_equal(pf_pretok_new(&p, "\\w", 0, &err), PF_EMODEL);
    assert_null(p);
}

/* Pieces that are certain: by hand, and those of the beginning of any text
 * are those of the text. */
static void
test_beginnings(void **state)
{
    static const char *const patterns[] = { "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+"
        "| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+", "[a-z]{2,3}",
        "[a-z]+(?=[0-9])|\\s+$|x(?!y)", "(?<=[a-z])\\S|\\s*\\n" };
    size_t ends[512], want[512], len, n, m, given;
    struct pf_splitter *s;
    struct pf_pretok *p;
    char text[400];

    (void)state;
    s = make(&p, "[a-z]{1,3}", 0);
    expect_begin(s, "-abcdef", false,
        (const char *const[]){ "-", "abc", "def", NULL });
    expect_begin(s, "-abcde", false,
        (const char *const[]){ "-", "abc", NULL });
    expect_begin(s, "abc--", false, (const char *const[]){ "abc", NULL });
    expect_begin(s, "--", false, (const char *const[]){ NULL });
    expect_begin(s, "", false, (const char *const[]){ NULL });
    drop(p, s);

    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        for (int jit = 0; jit < 2; jit++) {
            s = make(&p, patterns[i], PF_PRETOK_LAX | PF_PRETOK_PCRE2
                | (jit ? 0 : PF_PRETOK_NO_JIT));
            given = 0;
            for (int round = 0; round < 30; round++) {
                len = random_text(text, 90);
                for (size_t k = 0; k < len; k++) /* more of a kind */
                    if ((unsigned char)text[k] < 0x80)
                        text[k] = "ab c1\n-x"[text[k] % 8];
                pf_splitter_begin(s, text, len, true);
                assert_int_equal(pf_splitter_cut(s, want, 512, &m, NULL),
                    PF_OK);
                for (size_t cut = 0; cut <= len; cut++) {
                    if (pf_utf8_span(text, cut) != cut)
                        continue;
                    pf_splitter_begin(s, text, cut, false);
                    assert_int_equal(pf_splitter_cut(s, ends, 512, &n, NULL),
                        PF_OK);
                    assert_true(n <= m);
                    assert_memory_equal(ends, want, n * sizeof *ends);
                    given += n;
                }
            }
            assert_true(given > 1000);
            drop(p, s);
        }
    }
}

/* No pattern hangs or overflows a stack. */
static void
test_bad_patterns(void **state)
{
    static const char *const slow[] = { "(?:a+)+b|x", "(?:a|a)+b", "(a*)*b",
        "(?:a?){30}a{30}b", "(?:(a)|b|\\1)+c" };
    char *text = malloc(BIG);
    struct pf_pretok *p;
    struct pf_splitter *s;
    struct pf_err err;
    const char *piece;
    enum pf_status st;
    size_t n;

    (void)state;
    assert_non_null(text);
    memset(text, 'a', BIG);
    for (size_t i = 0; i < sizeof slow / sizeof *slow; i++) {
        s = make(&p, slow[i], PF_PRETOK_LAX | PF_PRETOK_NO_JIT);
        memcpy(text + 40, "xb", 2); /* PCRE2 looks for a b first */
        pf_splitter_begin(s, text, 43, true);
        do
            st = pf_splitter_next(s, &piece, &n, &err);
        while (!st);
        memset(text + 40, 'a', 2);
        if (st == PF_ERANGE)
            assert_non_null(strstr(err.msg,
                "cannot be cut into pieces: match limit"));
        else
            assert_int_equal(st, PF_END);
        if (i == 0)
            assert_int_equal(st, PF_ERANGE);
        drop(p, s);
    }

    /* Needs a stack that grows with the text. */
    s = make(&p, "(?:(?:a|b)(?:a|c))+?$", PF_PRETOK_LAX);
    pf_splitter_begin(s, text, BIG, true);
    assert_int_equal(pf_splitter_next(s, &piece, &n, &err), PF_OK);
    assert_int_equal(n, BIG);
    drop(p, s);

    /* And one that PCRE2 can not have. */
    s = make(&p, "(?:(a)|(b)|(c)|(d))+$", PF_PRETOK_LAX | PF_PRETOK_NO_JIT);
    pf_splitter_begin(s, text, BIG, true);
    st = pf_splitter_next(s, &piece, &n, &err);
    if (st) {
        assert_int_equal(st, PF_ERANGE);
        assert_non_null(strstr(err.msg, "limit"));
    }
    drop(p, s);
    free(text);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_random_texts),
        cmocka_unit_test(test_long_pieces),
        cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_beginnings),
        cmocka_unit_test(test_bad_patterns),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
