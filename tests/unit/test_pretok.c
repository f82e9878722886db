/*
 * The pieces of GPT-2's pattern: by hand, against the pattern as OpenAI wrote
 * it, and the classes against what is known of them.
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

#include "../../src/pretok-ranges.h"
#include "../../src/pretok.h"

/* encoder.py's, with the same ranges; all its quantifiers may backtrack. */
static const char original[] = "'s|'t|'re|'ve|'m|'ll|'d"
    "| ?[" PF_RANGES_LETTER "]+| ?[" PF_RANGES_NUMBER "]+"
    "| ?[^" PF_RANGES_SPACE PF_RANGES_LETTER PF_RANGES_NUMBER "]+"
    "|[" PF_RANGES_SPACE "]+(?![^" PF_RANGES_SPACE "])|[" PF_RANGES_SPACE "]+";

/* And as it stands there, whatever \p{L} is to this PCRE2. */
static const char verbatim[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+"
    "| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

enum { N_WAYS = 3 };

/* This pattern in machine code and interpreted, and the original. */
static struct pf_pretok *pre[N_WAYS];
static struct pf_splitter *split[N_WAYS];

static int
setup(void **state)
{
    (void)state;
    if (pf_pretok_new(&pre[0], pf_pretok_gpt2(), true, NULL)
        || pf_pretok_new(&pre[1], pf_pretok_gpt2(), false, NULL)
        || pf_pretok_new(&pre[2], original, true, NULL))
        return -1;
    for (int i = 0; i < N_WAYS; i++)
        if (pf_splitter_new(&split[i], pre[i], NULL))
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

/* The pieces are the texts of `want`, which ends in NULL. */
static void
expect(struct pf_splitter *s, const char *text, const char *const *want)
{
    const char *piece;
    size_t len;

    pf_splitter_begin(s, text, strlen(text));
    for (; *want; want++) {
        assert_int_equal(pf_splitter_next(s, &piece, &len, NULL), PF_OK);
        if (len != strlen(*want) || memcmp(piece, *want, len) != 0)
            fail_msg("piece \"%.*s\" of \"%s\" should be \"%s\"", (int)len,
                piece, text, *want);
    }
    assert_int_equal(pf_splitter_next(s, &piece, &len, NULL), PF_END);
    assert_int_equal(pf_splitter_next(s, &piece, &len, NULL), PF_END);
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
        { "a \n\tb", { "a", " \n", "\t", "b" } },
        { "x=42!!  \n", { "x", "=", "42", "!!", "  \n" } },
        { " 3rd ", { " 3", "rd", " " } },
        { "caf\xc3\xa9\xc2\xa0\xe2\x82\xac" "5", { "caf\xc3\xa9", "\xc2\xa0",
            "\xe2\x82\xac", "5" } },
        /* a combining mark is no letter; U+180E and U+200B are no space */
        { "e\xcc\x81 \xe1\xa0\x8e\xe2\x80\x8b", { "e", "\xcc\x81",
            " \xe1\xa0\x8e\xe2\x80\x8b" } },
        /* U+0085 is a space, U+1C89 a letter since Unicode 16 */
        { "\xc2\x85 \xe1\xb2\x89" "a", { "\xc2\x85", " \xe1\xb2\x89" "a" } },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int way = 0; way < N_WAYS; way++)
            expect(split[way], cases[i].text, cases[i].pieces);
}

static void
expect_same(struct pf_splitter *a, struct pf_splitter *b, const char *text,
    size_t len)
{
    const char *p, *q, *at = text;
    size_t n = 0, m = 0;
    enum pf_status st;

    pf_splitter_begin(a, text, len);
    pf_splitter_begin(b, text, len);
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

/* All texts of up to 6 of these characters. */
static void
test_short_texts(void **state)
{
    static const char *const parts[] = { " ", "\n", "a", "'", "s", "1", "!",
        "\xc2\xa0" };
    enum { N = sizeof parts / sizeof *parts };
    size_t count = 1, len;
    char text[32];

    (void)state;
    for (int n = 0; n <= 6; n++, count *= N) {
        for (size_t i = 0; i < count; i++) {
            len = 0;
            for (size_t k = 0, v = i; k < (size_t)n; k++, v /= N) {
                memcpy(text + len, parts[v % N], strlen(parts[v % N]));
                len += strlen(parts[v % N]);
            }
            expect_same(split[0], split[2], text, len);
            if (n < 5)
                expect_same(split[0], split[1], text, len);
        }
    }
}

static void
test_random_texts(void **state)
{
    static const uint32_t below[] = { 0x80, 0x250, 0x3000, 0xd800, 0x20000 };
    uint64_t r = 1;
    char text[400];
    size_t len;

    (void)state;
    for (int i = 0; i < 5000; i++) {
        len = 0;
        for (int k = 0; k < 90; k++) {
            r = r * 6364136223846793005 + 1442695040888963407;
            uint32_t c = (uint32_t)(r >> 40) % below[(r >> 33) % 5];

            len += pf_utf8_encode(text + len, c >= 0xd800 && c < 0xe000 ? ' '
                : c);
        }
        expect_same(split[0], split[2], text, len);
        if (i % 10 == 0) /* slow */
            expect_same(split[0], split[1], text, len);
    }
}

/* Whether two characters make one piece. */
static bool
one_piece(struct pf_splitter *s, const char *text, size_t len)
{
    const char *piece;
    size_t n;

    pf_splitter_begin(s, text, len);
    assert_int_equal(pf_splitter_next(s, &piece, &n, NULL), PF_OK);
    return n == len;
}

/* As many letters, numbers and spaces as Unicode 16 has. */
static void
test_classes(void **state)
{
    size_t letters = 0, numbers = 0, spaces = 0, others = 0, len;
    struct pf_pretok *p;
    struct pf_splitter *s;
    char text[8];

    (void)state;
    assert_int_equal(pf_pretok_new(&p, verbatim, true, NULL), PF_OK);
    assert_int_equal(pf_splitter_new(&s, p, NULL), PF_OK);
    for (uint32_t c = 0; c <= 0x10ffff; c++) {
        bool letter, number, space;

        if (c >= 0xd800 && c < 0xe000)
            continue;
        len = 1 + pf_utf8_encode(text + 1, c);
        text[0] = 'a';
        letter = one_piece(split[0], text, len);
        if (one_piece(s, text, len) && !letter)
            fail_msg("U+%04X is a letter to this PCRE2", (unsigned)c);
        text[0] = '1';
        number = one_piece(split[0], text, len);
        if (one_piece(s, text, len) && !number)
            fail_msg("U+%04X is a number to this PCRE2", (unsigned)c);
        text[0] = '\n';
        space = one_piece(split[0], text, len);
        text[0] = '!';
        letters += letter;
        numbers += number;
        spaces += space;
        others += one_piece(split[0], text, len);
    }
    assert_int_equal(letters, 141028);
    assert_int_equal(numbers, 1911);
    assert_int_equal(spaces, 25);
    assert_int_equal(others, 0x110000 - 0x800 - 141028 - 1911 - 25);
    pf_splitter_free(s);
    pf_pretok_free(p);
}

/* One piece of 1 MB, whatever it is of. */
static void
test_long_pieces(void **state)
{
    static const char *const units[] = { "a", " ", "\n", "1", "!",
        "\xe7\x9a\x84", "\xf0\x9f\x98\x80", "\xe3\x80\x80", "'" };
    enum { SIZE = 1 << 20 };
    char *text = malloc(SIZE + 8);
    size_t len, n;
    const char *piece;

    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        for (len = 0; len < SIZE; len += strlen(units[i]))
            memcpy(text + len, units[i], strlen(units[i]));
        for (int way = 0; way < N_WAYS; way++) {
            pf_splitter_begin(split[way], text, len);
            assert_int_equal(pf_splitter_next(split[way], &piece, &n, NULL),
                PF_OK);
            assert_int_equal(n, len);
        }
        text[len] = 'x';
        expect_same(split[0], split[1], text, len + 1);
    }
    free(text);
}

/* A pattern of another kind: what it leaves out are pieces too. */
static void
test_other_patterns(void **state)
{
    static const char *const gaps[] = { "--", "a", ", ", "bc", "!", NULL };
    static const char *const none[] = { "-- !", NULL };
    struct pf_pretok *p;
    struct pf_splitter *s;
    struct pf_err err;
    const char *piece;
    char *text;
    size_t n;

    (void)state;
    for (int jit = 0; jit < 2; jit++) {
        assert_int_equal(pf_pretok_new(&p, "[a-z]*", jit, NULL), PF_OK);
        assert_int_equal(pf_splitter_new(&s, p, NULL), PF_OK);
        expect(s, "--a, bc!", gaps);
        expect(s, "-- !", none);
        pf_splitter_free(s);
        pf_pretok_free(p);
    }
    assert_int_equal(pf_pretok_new(&p, "a(b", true, &err), PF_EFORMAT);
    assert_null(p);
    assert_non_null(strstr(err.msg, "does not compile: missing closing"));

    /* Needs a stack that grows with the text, and in the end too large a
     * one: the interpreter's limit is on its heap. */
    text = malloc(1 << 20);
    assert_non_null(text);
    memset(text, 'a', 1 << 20);
    assert_int_equal(pf_pretok_new(&p, "(?:(?:a|b)(?:a|c))+?$", true, NULL),
        PF_OK);
    assert_int_equal(pf_splitter_new(&s, p, NULL), PF_OK);
    pf_splitter_begin(s, text, 1 << 20);
    assert_int_equal(pf_splitter_next(s, &piece, &n, &err), PF_OK);
    assert_int_equal(n, 1 << 20);
    pf_splitter_free(s);
    pf_pretok_free(p);

    assert_int_equal(pf_pretok_new(&p, "(?:a+)+b|x", false, NULL), PF_OK);
    assert_int_equal(pf_splitter_new(&s, p, NULL), PF_OK);
    memcpy(text + 40, "xb", 2);
    pf_splitter_begin(s, text, 42);
    assert_int_equal(pf_splitter_next(s, &piece, &n, &err), PF_ERANGE);
    assert_non_null(strstr(err.msg, "cannot be cut into pieces: match limit"));
    pf_splitter_free(s);
    pf_pretok_free(p);
    free(text);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_short_texts),
        cmocka_unit_test(test_random_texts),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_long_pieces),
        cmocka_unit_test(test_other_patterns),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
