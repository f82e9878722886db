/*
 * The scanners: pieces by hand, and against the patterns themselves in PCRE2;
 * the same without vector instructions; the classes against their ranges.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pipeformer/utf8.h>

#include "../../src/cpu.h"
#include "../../src/pretok.h"
#include "../../src/scan.h"

size_t plain_scan(enum pf_scan kind, const char *text, size_t len, bool last,
    size_t *ends, size_t max);
size_t plain_scan_texts(enum pf_scan kind, const char *block, size_t len,
    char delimiter, size_t *ends, size_t max);
unsigned plain_class_run(uint32_t c, uint32_t *next);

/* The same source once more. */
#define PF_SCAN_PLAIN
#define pf_scan(...) plain_scan(__VA_ARGS__)
#define pf_scan_texts(...) plain_scan_texts(__VA_ARGS__)
#define pf_class_run(...) plain_class_run(__VA_ARGS__)
#include "../../src/scan.c"
#undef pf_scan
#undef pf_scan_texts
#undef pf_class_run

enum { N_KINDS = 4, MAX_PIECES = 1 << 16 };

static const char *const names[N_KINDS] = { "gpt2", "cl100k", "qwen2",
    "o200k" };
static const enum pf_scan kinds[N_KINDS] = { PF_SCAN_GPT2, PF_SCAN_CL100K,
    PF_SCAN_QWEN2, PF_SCAN_O200K };

static struct pf_pretok *pre[N_KINDS];
static struct pf_splitter *oracle[N_KINDS];
static size_t ends[MAX_PIECES], want[MAX_PIECES];

static int
setup(void **state)
{
    (void)state;
    for (int k = 0; k < N_KINDS; k++)
        if (pf_pretok_new(&pre[k], pf_pretok_named(names[k]), PF_PRETOK_PCRE2,
                NULL) || pf_splitter_new(&oracle[k], pre[k], NULL))
            return -1;
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    for (int k = 0; k < N_KINDS; k++) {
        pf_splitter_free(oracle[k]);
        pf_pretok_free(pre[k]);
    }
    return 0;
}

static void
show(const char *who, const char *text, const size_t *cuts, size_t n)
{
    print_error("%s:", who);
    for (size_t i = 0, at = 0; i < n && i < 40; at = cuts[i++])
        print_error(" [%.*s]", (int)(cuts[i] - at), text + at);
    print_error("\n");
}

/* The forms that take many bytes at once, if the processor has them. */
static scan_wide *
wide_form(int i)
{
#if defined(__x86_64__)
    if (i == 0 && pf_cpu() >= PF_CPU_AVX2)
        return pf_scan_avx2;
    if (i == 1 && pf_cpu() >= PF_CPU_AVX512)
        return pf_scan_avx512;
#endif
    (void)i;
    return NULL;
}

enum { N_WIDE = 2 };

/* Scanner, its forms, scanner without vectors and PCRE2 agree. */
static void
check(const char *text, size_t len)
{
    const struct scan_block block = { (bytes)text, len, -1, true };
    size_t n, m;

    for (int k = 0; k < N_KINDS; k++) {
        n = pf_scan(kinds[k], text, len, true, ends, MAX_PIECES);
        assert_true(n < MAX_PIECES);
        pf_splitter_begin(oracle[k], text, len, true);
        assert_int_equal(pf_splitter_cut(oracle[k], want, MAX_PIECES, &m,
            NULL), PF_OK);
        if (n != m || memcmp(ends, want, n * sizeof *ends) != 0) {
            show("scanner", text, ends, n);
            show("pattern", text, want, m);
            fail_msg("%s: %.*s", names[k], (int)len, text);
        }
        for (int i = 0; i < N_WIDE; i++) {
            if (!wide_form(i))
                continue;
            m = cut(kinds[k], &block, wide_form(i), want, MAX_PIECES);
            if (n != m || memcmp(ends, want, n * sizeof *ends) != 0) {
                show("scanner", text, ends, n);
                show(i ? "avx512" : "avx2", text, want, m);
                fail_msg("%s: %.*s", names[k], (int)len, text);
            }
        }
        m = plain_scan(kinds[k], text, len, true, want, MAX_PIECES);
        if (n != m || memcmp(ends, want, n * sizeof *ends) != 0) {
            show("vectors", text, ends, n);
            show("plain", text, want, m);
            fail_msg("%s: %.*s", names[k], (int)len, text);
        }
    }
}

static void
test_by_hand(void **state)
{
    /* Pieces of each kind, parted by |. */
    static const char *const cases[][1 + N_KINDS] = {
        { "Once upon", "Once| upon", "Once| upon", "Once| upon",
            "Once| upon" },
        { "I'll we'VE'Tis it'S", "I|'ll| we|'|VE|'|Tis| it|'|S",
            "I|'ll| we|'VE|'T|is| it|'S", "I|'ll| we|'VE|'T|is| it|'S",
            "I'll| we'VE|'Tis| it'S" },
        /* U+017F is an s where case is ignored. */
        { "a'\xc5\xbf'\xc5\xbf" "b", "a|'|\xc5\xbf|'|\xc5\xbf" "b",
            "a|'\xc5\xbf|'\xc5\xbf|b", "a|'\xc5\xbf|'\xc5\xbf|b",
            "a'\xc5\xbf|'\xc5\xbf" "b" },
        { "a  b   ", "a| | b|   ", "a| | b|   ", "a| | b|   ",
            "a| | b|   " },
        { "a \n\n  b\t\tc", "a| \n\n | b|\t|\t|c", "a| \n\n| | b|\t|\tc",
            "a| \n\n| | b|\t|\tc", "a| \n\n| | b|\t|\tc" },
        { "\n  ", "\n  ", "\n|  ", "\n|  ", "\n|  " },
        { "12345 678", "12345| 678", "123|45| |678", "1|2|3|4|5| |6|7|8",
            "123|45| |678" },
        { "(a) !!b;\n/x", "(|a|)| !!|b|;|\n|/|x", "(a|)| !!|b|;\n|/x",
            "(a|)| !!|b|;\n|/x", "(a|)| !!|b|;\n/|x" },
        { "aBcDEf GHi JK", "aBcDEf| GHi| JK", "aBcDEf| GHi| JK",
            "aBcDEf| GHi| JK", "a|Bc|DEf| GHi| JK" },
        /* U+4E2D is of no case: up to the last of them in capitals. */
        { "\xe4\xb8\xad" "AB \xe4\xb8\xad" "ABc",
            "\xe4\xb8\xad" "AB| \xe4\xb8\xad" "ABc",
            "\xe4\xb8\xad" "AB| \xe4\xb8\xad" "ABc",
            "\xe4\xb8\xad" "AB| \xe4\xb8\xad" "ABc",
            "\xe4\xb8\xad|AB| \xe4\xb8\xad" "ABc" },
        /* A mark, U+0301: no letter but in o200k; before capitals no prefix. */
        { "e\xcc\x81x \xcc\x81" "AB", "e|\xcc\x81|x| \xcc\x81|AB",
            "e|\xcc\x81x| \xcc\x81|AB", "e|\xcc\x81x| \xcc\x81|AB",
            "e\xcc\x81x| \xcc\x81|AB" },
        /* White space of two bytes is given back whole. */
        { "\xc2\xa0\xc2\xa0 \xc2\xa0" "a", "\xc2\xa0\xc2\xa0 |\xc2\xa0|a",
            "\xc2\xa0\xc2\xa0 |\xc2\xa0" "a", "\xc2\xa0\xc2\xa0 |\xc2\xa0" "a",
            "\xc2\xa0\xc2\xa0 |\xc2\xa0" "a" },
        /* U+180E and U+200B are no space, U+1C89 is a letter. */
        { "x \xe1\xa0\x8e\xe2\x80\x8b\xe1\xb2\x89",
            "x| \xe1\xa0\x8e\xe2\x80\x8b|\xe1\xb2\x89",
            "x| \xe1\xa0\x8e\xe2\x80\x8b|\xe1\xb2\x89",
            "x| \xe1\xa0\x8e\xe2\x80\x8b|\xe1\xb2\x89",
            "x| \xe1\xa0\x8e\xe2\x80\x8b|\xe1\xb2\x89" },
    };
    char text[100];
    size_t n, at, len;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int k = 0; k < N_KINDS; k++) {
            len = strlen(cases[i][0]);
            n = pf_scan(kinds[k], cases[i][0], len, true, ends, MAX_PIECES);
            at = len = 0;
            for (size_t j = 0; j < n; at = ends[j++])
                len += (size_t)sprintf(text + len, "%s%.*s", j ? "|" : "",
                    (int)(ends[j] - at), cases[i][0] + at);
            assert_string_equal(text, cases[i][1 + k]);
        }
        check(cases[i][0], strlen(cases[i][0]));
    }
    assert_int_equal(pf_scan(PF_SCAN_GPT2, "", 0, true, ends, 9), 0);
    assert_int_equal(pf_scan(PF_SCAN_GPT2, "a b c", 5, true, ends, 2), 2);
    assert_int_equal(pf_scan(PF_SCAN_GPT2, "a b c", 5, true, ends, 0), 0);
}

/* All texts of up to n of these characters. */
static void
check_all(const char *const *parts, size_t n_parts, int n)
{
    size_t count = 1, len;
    char *text, *exact;

    text = malloc(4 * (size_t)n + 1);
    assert_non_null(text);
    for (int i = 0; i <= n; i++, count *= n_parts) {
        for (size_t v = 0; v < count; v++) {
            len = 0;
            for (size_t k = 0, w = v; k < (size_t)i; k++, w /= n_parts) {
                memcpy(text + len, parts[w % n_parts],
                    strlen(parts[w % n_parts]));
                len += strlen(parts[w % n_parts]);
            }
            exact = text + 4 * n + 1 - len; /* at the end of the memory */
            memmove(exact, text, len);
            check(exact, len);
        }
    }
    free(text);
}

static const char *const parts[] = {
    " ", "\n", "a", "'", "A", "!", "\xcc\x81" /* a mark */,
    "\xe4\xb8\xad" /* of no case */, "s", "/", "1", "\xc2\xa0" /* a space */,
    "\r", "\t", "l", "\xc5\xbf" /* a long s */, "\xc3\xa9", "\xc3\x89",
    "\xc7\x85" /* titlecase */, "\xca\xb0" /* a modifier */,
    "\xd9\xa3" /* a digit */, "\xe2\x82\xac", "\xf0\x9f\x98\x80",
    "\xf0\x9d\x90\x80" /* a capital of 4 bytes */,
};
enum { N_PARTS = sizeof parts / sizeof *parts };

static void
test_short_texts(void **state)
{
    const char *deep = getenv("PF_TEST_DEEP");

    (void)state;
    check_all(parts, N_PARTS, deep ? 5 : 3);
    check_all(parts, 12, 4);
    check_all(parts, 8, deep ? 7 : 5);
}

static uint64_t seed = 1;

static uint32_t
draw(uint32_t below)
{
    seed = seed * 6364136223846793005 + 1442695040888963407;
    return (uint32_t)(seed >> 33) % below;
}

/* Characters of all kinds, some of them in runs about as long as vectors. */
static size_t
random_text(char *text, size_t size)
{
    static const uint32_t below[] = { 0x80, 0x250, 0x3000, 0xd800, 0x20000 };
    size_t len = 0, times;
    char s[4];
    size_t n;
    uint32_t c;

    while (len + 4 * 40 < size) {
        times = draw(6) ? 1 : 1 + draw(40);
        c = draw(below[draw(5)]);
        c = c >= 0xd800 && c < 0xe000 ? ' ' : c;
        n = pf_utf8_encode(s, c);
        if (draw(2)) {
            c = draw(N_PARTS);
            n = strlen(parts[c]);
            memcpy(s, parts[c], n);
        }
        for (; times; times--, len += n)
            memcpy(text + len, s, n);
    }
    return len;
}

static void
test_random_texts(void **state)
{
    char text[600], *copy;
    size_t len;

    (void)state;
    for (int i = 0; i < 4000; i++) {
        len = random_text(text, 170 + draw(sizeof text - 170));
        copy = malloc(len + 1); /* of its size, for a sanitizer */
        assert_non_null(copy);
        memcpy(copy, text, len);
        check(copy, len);
        free(copy);
    }
}

/* Texts in a block are cut as each is by itself, in every form; few ends at a
 * time give the same. */
static void
test_blocks(void **state)
{
    static const char delimiters[] = "\n\0\r\t\1";
    static char text[1200];
    struct scan_block block = { (bytes)text, 0, 0, true };
    size_t len, n, m, end, got;
    scan_wide *wide;

    (void)state;
    for (int i = 0; i < 2000; i++) {
        len = random_text(text, 170 + draw(sizeof text - 170));
        for (size_t k = 0; k < len / (1 + draw(60)); k++) {
            n = draw((uint32_t)len);
            if (!(text[n] & 0x80))
                text[n] = delimiters[i % 5];
        }
        block.len = len;
        block.delimiter = delimiters[i % 5];
        for (int k = 0; k < N_KINDS; k++) {
            m = 0;
            for (size_t at = 0; at < len; at = end + 1) {
                const char *next = memchr(text + at, block.delimiter,
                    len - at);

                end = next ? (size_t)(next - text) : len;
                n = plain_scan(kinds[k], text + at, end - at, true, want + m,
                    MAX_PIECES - m);
                for (; n--; m++)
                    want[m] += at;
                if (next)
                    want[m++] = end + 1;
            }
            for (int f = 0; f < 2 + N_WIDE; f++) {
                wide = f < N_WIDE ? wide_form(f) : NULL;
                n = f <= N_WIDE ? cut(kinds[k], &block, wide, ends, MAX_PIECES)
                    : 0;
                while (f > N_WIDE && (n ? ends[n - 1] : 0) < len) {
                    end = n ? ends[n - 1] : 0;
                    got = pf_scan_texts(kinds[k], text + end, len - end,
                        delimiters[i % 5], ends + n, 1 + draw(150));
                    assert_true(got > 0);
                    for (; got--; n++)
                        ends[n] += end;
                }
                assert_int_equal(n, m);
                assert_memory_equal(ends, want, n * sizeof *ends);
            }
        }
    }
}

/* Pieces of the beginning of a text are those of the text. */
static void
test_beginnings(void **state)
{
    static char text[600];
    size_t len, n = 0, m, given = 0, all = 0;

    (void)state;
    for (int i = 0; i < 1500; i++) {
        len = random_text(text, 170 + draw(sizeof text - 170));
        for (int k = 0; k < N_KINDS; k++) {
            m = pf_scan(kinds[k], text, len, true, want, MAX_PIECES);
            for (size_t cut = 0; cut <= len; cut++) {
                if (pf_utf8_span(text, cut) != cut)
                    continue;
                n = pf_scan(kinds[k], text, cut, false, ends, MAX_PIECES);
                assert_true(n <= m);
                assert_memory_equal(ends, want, n * sizeof *ends);
            }
            given += n ? ends[n - 1] : 0;
            all += len;
        }
    }
    /* And they are most of it: the runs at the end may be long. */
    assert_true(given > all / 2);
}

/* Every letter, number, mark and space, and some of the others, in company. */
static void
test_every_character(void **state)
{
    static const char *const form[] = { "%s", " %s", "a%s", "A%sA", "%sa",
        "1%s", "!%s", "\n%s", "%s's", "%s%s " };
    char one[5] = "", *text = malloc(1 << 20);
    size_t len = 0;
    uint32_t next;

    (void)state;
    assert_non_null(text);
    for (uint32_t c = 1; c <= 0x10ffff; c++) {
        if (c >= 0xd800 && c < 0xe000)
            continue;
        if (c > 0x3000 && c % 61 && pf_class_run(c - 1, &next)
                == pf_class_run(c, &next))
            continue;
        one[pf_utf8_encode(one, c)] = '\0';
        for (size_t i = 0; i < sizeof form / sizeof *form; i++)
            for (const char *f = form[i]; *f; f++) {
                if (*f == '%') {
                    memcpy(text + len, one, strlen(one));
                    len += strlen(one);
                    f++;
                } else {
                    text[len++] = *f;
                }
            }
        if (len > 8000) {
            check(text, len);
            len = 0;
        }
    }
    check(text, len);
    free(text);
}

/* One piece of a megabyte, whatever it is of; a character behind it. */
static void
test_long_runs(void **state)
{
    enum { SIZE = 1 << 20 };
    char *text = malloc(SIZE + 8);
    size_t len, n, last;

    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < N_PARTS; i++) {
        n = strlen(parts[i]);
        for (len = 0; len < SIZE; len += n)
            memcpy(text + len, parts[i], n);
        for (int k = 0; k < N_KINDS; k++) {
            last = len;
            if (k > 0 && (*parts[i] == '1' || *parts[i] == '\xd9'))
                last = n * (kinds[k] == PF_SCAN_QWEN2 ? 1 : 3);
            assert_true(pf_scan(kinds[k], text, len, true, ends, 1));
            assert_int_equal(ends[0], last);
        }
        for (size_t j = 0; j < N_PARTS; j++) {
            for (len = 0; len < 500; len += n)
                memcpy(text + len, parts[i], n);
            memcpy(text + len, parts[j], strlen(parts[j]));
            check(text, len + strlen(parts[j]));
        }
    }
    free(text);
}

/* The table is what its ranges say. */
static void
test_classes(void **state)
{
    static const struct {
        const char *name;
        unsigned mask, value;
    } sets[] = {
        { "L", PF_CLASS_LETTER, PF_CLASS_LETTER },
        { "N", PF_CLASS_NUMBER, PF_CLASS_NUMBER },
        { "S", PF_CLASS_SPACE, PF_CLASS_SPACE },
        { "Lu", 63, PF_CLASS_LETTER | PF_CLASS_UPPER },
        { "Ll", 63, PF_CLASS_LETTER | PF_CLASS_LOWER },
        { "Lt", 63, PF_CLASS_LETTER | PF_CLASS_UPPER | PF_CLASS_SPECIAL },
        { "Lo", 63, PF_CLASS_LETTER | PF_CLASS_UPPER | PF_CLASS_LOWER },
        { "Lm", 63, PF_CLASS_LETTER | PF_CLASS_UPPER | PF_CLASS_LOWER
            | PF_CLASS_SPECIAL },
        { "M", 63, PF_CLASS_UPPER | PF_CLASS_LOWER },
    };
    enum { SIZE = 1 << 16 };
    FILE *f = fopen(PF_TEST_GOLDEN "/tokenizer/unicode_ranges.txt", "r");
    char *line = malloc(SIZE), *p;
    unsigned char *in = malloc(0x110000);
    unsigned long lo, hi;
    uint32_t next, c;
    size_t seen = 0;
    unsigned bits;

    (void)state;
    assert_non_null(f);
    assert_non_null(line);
    assert_non_null(in);
    while (fgets(line, SIZE, f)) {
        for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
            p = line + strlen(sets[i].name);
            if (strncmp(line, sets[i].name, strlen(sets[i].name)) != 0
                || *p != '\t')
                continue;
            seen++;
            memset(in, 0, 0x110000);
            while (*p && *p != '\n') {
                lo = hi = strtoul(p + 1, &p, 16);
                if (*p == '-')
                    hi = strtoul(p + 1, &p, 16);
                memset(in + lo, 1, hi - lo + 1);
            }
            for (c = 0; c <= 0x10ffff; c = next) {
                bits = pf_class_run(c, &next);
                assert_true(next > c && next <= 0x110000);
                for (; c < next; c++)
                    if (((bits & sets[i].mask) == sets[i].value) != in[c])
                        fail_msg("U+%04X and %s", (unsigned)c, sets[i].name);
            }
        }
    }
    assert_int_equal(seen, sizeof sets / sizeof *sets);
    for (c = 0; c <= 0x10ffff; c++)
        assert_int_equal(!!(pf_class_run(c, &next) & PF_CLASS_NEWLINE),
            c == '\n' || c == '\r');
    fclose(f);
    free(line);
    free(in);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_short_texts),
        cmocka_unit_test(test_random_texts),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_beginnings),
        cmocka_unit_test(test_every_character),
        cmocka_unit_test(test_long_runs),
        cmocka_unit_test(test_classes),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
