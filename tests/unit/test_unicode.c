/*
 * The tables against what HuggingFace tokenizers 0.22.2 did with every code
 * point.  unicode_ranges.txt (golden/tokenizer) has BERT's classes; the rest
 * is held as checksums of a listing of its answers.
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

#include <pipeformer/io.h>

#include "../../src/unicode.h"

enum { CODES = 0x110000 };

static bool
is_code(uint32_t c)
{
    return c < 0xd800 || c >= 0xe000;
}

/* The flag of each code point is set if `name` has it in a range. */
static void
check_ranges(const char *file, const char *name, unsigned flag, bool whole)
{
    unsigned char *in = calloc(CODES, 1);
    char key[40], *end;
    const char *p;

    assert_non_null(in);
    snprintf(key, sizeof key, "\n%s\t", name);
    p = strstr(file, key);
    assert_non_null(p);
    p += strlen(key);
    while (*p != '\n' && *p) {
        uint32_t first = (uint32_t)strtoul(p, &end, 16), last = first;

        if (*end == '-')
            last = (uint32_t)strtoul(end + 1, &end, 16);
        assert_true(end > p && first <= last && last < CODES);
        memset(in + first, 1, last - first + 1);
        p = *end == ' ' ? end + 1 : end;
    }
    for (uint32_t c = 0; c < CODES; c++)
        if (is_code(c) && (whole
                || !(pf_uc_of(c)->flags & PF_UC_DECOMPOSES))
            && in[c] != !!(pf_uc_of(c)->flags & flag))
            fail_msg("U+%04X is %s%s", (unsigned)c, in[c] ? "" : "not ",
                name);
    free(in);
}

static void
test_bert(void **state)
{
    struct pf_err err;
    char *data, *file;
    size_t len;

    (void)state;
    if (pf_read_file(PF_TEST_GOLDEN "/tokenizer/unicode_ranges.txt", 1 << 20,
            &data, &len, &err))
        fail_msg("%s", err.msg);
    file = malloc(len + 1);
    assert_non_null(file);
    memcpy(file, data, len);
    file[len] = '\0';
    check_ranges(file, "S", PF_UC_SPACE, true);
    check_ranges(file, "bert_removed", PF_UC_BERT_REMOVED, true);
    check_ranges(file, "bert_to_space", PF_UC_BERT_SPACE, true);
    check_ranges(file, "bert_cjk", PF_UC_BERT_CJK, true);
    check_ranges(file, "bert_punct", PF_UC_BERT_PUNCT, true);
    check_ranges(file, "bert_mn", PF_UC_BERT_ACCENT, false);
    free(file);
    free(data);
}

/* FNV-1a (Fowler, Noll and Vo) of a listing, line by line. */
static uint64_t
sum(uint64_t h, const char *s)
{
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001b3;
    return h;
}

#define SUM_INIT 0xcbf29ce484222325

/* "1E0A: 44 307" and the like, for each code point that becomes another. */
static uint64_t
sum_mapping(uint64_t h, uint32_t c, const uint32_t *out, size_t n)
{
    char s[80];
    int at = snprintf(s, sizeof s, "%X:", (unsigned)c);

    for (size_t i = 0; i < n; i++)
        at += snprintf(s + at, sizeof s - (size_t)at, " %X",
            (unsigned)out[i]);
    snprintf(s + at, sizeof s - (size_t)at, "\n");
    return sum(h, s);
}

static void
test_mappings(void **state)
{
    uint64_t parts = SUM_INIT, lower = SUM_INIT, order = SUM_INIT;
    uint64_t mark = SUM_INIT;
    unsigned n_parts = 0, n_lower = 0, n_order = 0, n_mark = 0;
    uint32_t out[PF_UC_DECOMPOSED_MAX];
    const struct pf_uc *u;
    char s[40];
    size_t n;

    (void)state;
    for (uint32_t c = 0; c < CODES; c++) {
        if (!is_code(c))
            continue;
        u = pf_uc_of(c);
        n = pf_uc_decompose(c, out);
        assert_true(n >= 1 && n <= PF_UC_DECOMPOSED_MAX);
        assert_int_equal(n > 1 || out[0] != c,
            !!(u->flags & PF_UC_DECOMPOSES));
        if (u->flags & PF_UC_DECOMPOSES) {
            parts = sum_mapping(parts, c, out, n);
            n_parts++;
        }
        n = pf_uc_lower(c, out);
        assert_true(n >= 1 && n <= PF_UC_LOWERED_MAX);
        assert_int_equal(n > 1 || out[0] != c, !!(u->flags & PF_UC_LOWERS));
        if (u->flags & PF_UC_LOWERS) {
            lower = sum_mapping(lower, c, out, n);
            n_lower++;
        }
        if (u->order) {
            snprintf(s, sizeof s, "%X: %u\n", (unsigned)c, u->order);
            order = sum(order, s);
            n_order++;
        }
        if (u->flags & PF_UC_MARK) {
            snprintf(s, sizeof s, "%X\n", (unsigned)c);
            mark = sum(mark, s);
            n_mark++;
        }
    }
    assert_int_equal(n_parts, 13232);
    assert_int_equal(n_lower, 1488);
    assert_int_equal(n_order, 814);
    assert_int_equal(n_mark, 2097);
    assert_int_equal(parts, 0xf1cb77b032635224);
    assert_int_equal(lower, 0xaee753e4d0f21895);
    assert_int_equal(order, 0x37f995465ffa4891);
    assert_int_equal(mark, 0x485968d4f329b748);
}

static void
expect_parts(uint32_t c, size_t n, const uint32_t *want)
{
    uint32_t out[PF_UC_DECOMPOSED_MAX];

    assert_int_equal(pf_uc_decompose(c, out), n);
    assert_memory_equal(out, want, n * sizeof *want);
}

static void
test_by_hand(void **state)
{
    uint32_t out[PF_UC_LOWERED_MAX];

    (void)state;
    expect_parts('a', 1, (uint32_t[]){ 'a' });
    expect_parts(0xe9, 2, (uint32_t[]){ 'e', 0x301 });
    expect_parts(0x1ec7, 3, (uint32_t[]){ 'e', 0x323, 0x302 });
    expect_parts(0x1f04, 3, (uint32_t[]){ 0x3b1, 0x313, 0x301 });
    expect_parts(0x1f82, 4, (uint32_t[]){ 0x3b1, 0x313, 0x300, 0x345 });
    expect_parts(0x212b, 2, (uint32_t[]){ 'A', 0x30a });
    expect_parts(0xac00, 2, (uint32_t[]){ 0x1100, 0x1161 });
    expect_parts(0xd7a3, 3, (uint32_t[]){ 0x1112, 0x1175, 0x11c2 });
    expect_parts(0xd7a4, 1, (uint32_t[]){ 0xd7a4 });
    expect_parts(0x11938, 1, (uint32_t[]){ 0x11938 });
    expect_parts(0x2fa1d, 1, (uint32_t[]){ 0x2a600 });
    assert_int_equal(pf_uc_compose('e', 0x301), 0xe9);
    assert_int_equal(pf_uc_compose('e', 'e'), 0);
    assert_int_equal(pf_uc_compose(0x1112, 0x1175), 0xd788);
    assert_int_equal(pf_uc_compose(0xd788, 0x11c2), 0xd7a3);
    assert_int_equal(pf_uc_compose(0xd788, 0x11a7), 0);
    assert_int_equal(pf_uc_compose(0xd789, 0x11c2), 0);
    assert_int_equal(pf_uc_compose(0x308, 0x301), 0); /* excluded */
    assert_int_equal(pf_uc_compose(0x11935, 0x11930), 0);
    assert_int_equal(pf_uc_lower(0x130, out), 2);
    assert_int_equal(out[0], 'i');
    assert_int_equal(out[1], 0x307);
    assert_int_equal(pf_uc_lower(0x3a3, out), 1);
    assert_int_equal(out[0], 0x3c3);
    assert_int_equal(pf_uc_lower(0x1c4, out), 1);
    assert_int_equal(out[0], 0x1c6);
    assert_int_equal(pf_uc_lower(0x1c5, out), 1);
    assert_int_equal(out[0], 0x1c6);
    assert_int_equal(pf_uc_lower(0x10ffff, out), 1);
    assert_int_equal(out[0], 0x10ffff);
}

/*
 * Parts put together again give what they came from, and no others have a
 * composition: as many pairs as Unicode has, and Hangul's.
 */
static void
test_compose(void **state)
{
    enum { BELOW = 0x12000 };
    uint32_t out[PF_UC_DECOMPOSED_MAX], c;
    unsigned pairs = 0;
    size_t n;

    (void)state;
    for (uint32_t b = 0; b < BELOW; b++) {
        if (!(pf_uc_of(b)->flags & PF_UC_SECOND)) {
            assert_int_equal(pf_uc_compose('e', b), 0);
            assert_int_equal(pf_uc_compose(0xac00, b), 0);
            continue;
        }
        assert_true(pf_uc_of(b)->flags & PF_UC_JOINS);
        for (uint32_t a = 0; a < BELOW; a++) {
            if (!(c = pf_uc_compose(a, b)))
                continue;
            pairs++;
            n = pf_uc_decompose(c, out);
            assert_int_equal(out[n - 1], b);
            assert_true(pf_uc_of(c)->flags & PF_UC_DECOMPOSES);
            assert_false(pf_uc_of(c)->flags & PF_UC_JOINS);
        }
    }
    assert_int_equal(pairs, 940 + 11172);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bert),
        cmocka_unit_test(test_mappings),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_compose),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
