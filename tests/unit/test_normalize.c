/*
 * Each step by hand; against HuggingFace tokenizers 0.22.2 on the texts of
 * golden/tokenizer/normalize.ndjson, which it normalized; and against a plain
 * reading of the definitions on random texts, most of them marks.
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
#include <pipeformer/json.h>
#include <pipeformer/utf8.h>

#include "../../src/normalize.h"
#include "../../src/unicode.h"

/* Kinds without strings, under the names that the golden file has. */
static const struct {
    const char *name;
    struct pf_norm_step step;
} named[] = {
    { "nfc", { .kind = PF_NORM_NFC } },
    { "nfd", { .kind = PF_NORM_NFD } },
    { "lowercase", { .kind = PF_NORM_LOWERCASE } },
    { "strip_accents", { .kind = PF_NORM_STRIP_ACCENTS } },
    { "strip", { .kind = PF_NORM_STRIP, .left = true, .right = true } },
    { "bert_uncased", { .kind = PF_NORM_BERT, .clean = true, .cjk = true,
        .accents = true, .lower = true } },
    { "bert_cased", { .kind = PF_NORM_BERT, .clean = true, .cjk = true } },
    { "bert_bare", { .kind = PF_NORM_BERT, .accents = true } },
};

enum { NAMED = sizeof named / sizeof *named };

static const struct pf_norm_step *
step_named(const char *name)
{
    for (size_t i = 0; i < NAMED; i++)
        if (strcmp(named[i].name, name) == 0)
            return &named[i].step;
    fail_msg("no step %s", name);
    return NULL;
}

static struct pf_norm_step
with_strings(enum pf_norm_kind kind, const char *a, const char *b)
{
    static char pool[400];
    static size_t used;
    struct pf_norm_step s = { .kind = kind, .a_len = strlen(a),
        .b_len = strlen(b) };

    assert_true(s.a_len + s.b_len <= sizeof pool - used);
    s.a = memcpy(pool + used, a, s.a_len);
    s.b = memcpy(pool + used + s.a_len, b, s.b_len);
    used += s.a_len + s.b_len;
    return s;
}

/* Normalizes, tracked and not, which must give the same; keeps `t`. */
static void
normalize(struct pf_ntext *t, const struct pf_norm_step *steps, size_t n,
    const char *text, size_t len)
{
    struct pf_ntext plain = PF_NTEXT_INIT;
    char *copy = malloc(len ? len : 1);

    assert_non_null(copy);
    if (len)
        memcpy(copy, text, len);
    t->track = true;
    assert_int_equal(pf_normalize(steps, n, t, copy, len, NULL), PF_OK);
    assert_int_equal(pf_normalize(steps, n, &plain, copy, len, NULL), PF_OK);
    assert_int_equal(t->bytes.len, plain.bytes.len);
    if (plain.bytes.len)
        assert_memory_equal(t->bytes.data, plain.bytes.data,
            plain.bytes.len);
    for (size_t i = 0; i < t->bytes.len; i++) {
        assert_true(t->from[i] <= t->to[i]);
        assert_true(t->to[i] <= len);
        assert_true(i == 0 || t->from[i] >= t->from[i - 1]);
        assert_true(i == 0 || t->to[i] >= t->to[i - 1]);
    }
    pf_ntext_fini(&plain);
    free(copy);
}

static void
expect_bytes(const struct pf_ntext *t, const char *text, const char *want,
    size_t len)
{
    if (t->bytes.len != len
        || (len && memcmp(t->bytes.data, want, len) != 0))
        fail_msg("\"%s\" became \"%.*s\", not \"%.*s\"", text,
            (int)t->bytes.len, t->bytes.len ? t->bytes.data : "", (int)len,
            want);
}

static void
expect(const struct pf_norm_step *step, const char *text, const char *want)
{
    struct pf_ntext t = PF_NTEXT_INIT;

    normalize(&t, step, 1, text, strlen(text));
    expect_bytes(&t, text, want, strlen(want));
    pf_ntext_fini(&t);
}

static void
test_by_hand(void **state)
{
    static const char *const cases[][3] = {
        { "nfc", "", "" },
        { "nfc", "plain", "plain" },
        { "nfc", "e\u0301", "\u00e9" },
        { "nfc", "\u0301", "\u0301" },
        { "nfc", "a\u0301\u0301e\u0301", "\u00e1\u0301\u00e9" },
        /* dot below has the lower class, whatever the order */
        { "nfc", "q\u0307\u0323", "q\u0323\u0307" },
        { "nfc", "d\u0307\u0323", "\u1e0d\u0307" },
        /* \u00e9 and a cedilla: the cedilla joins the base first */
        { "nfc", "\u00e9\u0327", "\u0229\u0301" },
        /* a character of the same class is in between */
        { "nfc", "a\u0315\u0300\u05aeb", "\u00e0\u05ae\u0315b" },
        { "nfc", "\u1112\u1161\u11ab", "\ud55c" },
        { "nfc", "\ud558\u11ab\u11ab", "\ud55c\u11ab" },
        { "nfc", "\u212b\u2126\u0344", "\u00c5\u03a9\u0308\u0301" },
        { "nfc", "\u0958", "\u0915\u093c" },
        { "nfc", "\u09c7\u09be", "\u09cb" },
        { "nfd", "\u00e9\ud55c\u1ec7",
            "e\u0301\u1112\u1161\u11abe\u0323\u0302" },
        { "nfd", "\u1ec7\u0327", "e\u0327\u0323\u0302" },
        { "nfd", "\U00011938", "\U00011938" },
        { "lowercase", "ABC \u00c9\u0130\u03a3",
            "abc \u00e9i\u0307\u03c3" },
        { "strip_accents", "e\u0301\u00e9\u0903", "e\u00e9" },
        { "strip", " \u3000a b\n\xc2\x85", "a b" },
        { "strip", " \t\n", "" },
        { "bert_uncased", "H\u00e9llo\tW\u00d6RLD\r\n", "hello world  " },
        { "bert_uncased", "a\vb\u00adc\ufffd\u200d", "abc" },
        { "bert_uncased", "\u4e2d\u56fd", " \u4e2d  \u56fd " },
        { "bert_uncased", "\u0130\u03a3\uac00", "i\u03c3\u1100\u1161" },
        { "bert_uncased", "\uf900", " \u8c48 " },
        { "bert_cased", "H\u00e9llo\t\u4e2d", "H\u00e9llo  \u4e2d " },
        { "bert_bare", "H\u00e9\t\v\u4e2d", "He\t\v\u4e2d" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect(step_named(cases[i][0]), cases[i][1], cases[i][2]);
}

static void
test_strings(void **state)
{
    struct pf_norm_step prepend = with_strings(PF_NORM_PREPEND, "\u2581", "");
    struct pf_norm_step space = with_strings(PF_NORM_REPLACE, " ", "\u2581");
    struct pf_norm_step quote = with_strings(PF_NORM_REPLACE, "``", "\"");
    struct pf_norm_step abab = with_strings(PF_NORM_REPLACE, "ababc", "");
    struct pf_norm_step none = with_strings(PF_NORM_REPLACE, "", "x");
    struct pf_norm_step half = with_strings(PF_NORM_REPLACE, "\xa9", "");
    struct pf_norm_step left = { .kind = PF_NORM_STRIP, .left = true };
    struct pf_norm_step right = { .kind = PF_NORM_STRIP, .right = true };
    struct pf_ntext t = PF_NTEXT_INIT;

    (void)state;
    expect(&prepend, "", "");
    expect(&prepend, " a", "\u2581 a");
    expect(&space, "", "");
    expect(&space, " a  b ", "\u2581a\u2581\u2581b\u2581");
    expect(&quote, "`a``b```", "`a\"b\"`");
    expect(&abab, "abababcab ababababcc", "abab ababc");
    expect(&none, "ab", "ab");
    expect(&left, " \u00a0a ", "a ");
    expect(&right, " a \u2003", " a");
    expect(&right, "\u2003", "");
    assert_int_equal(pf_normalize(&half, 1, &t, "\u00e9", 2, NULL),
        PF_EFORMAT);
    pf_ntext_fini(&t);
}

static void
expect_places(const struct pf_norm_step *steps, size_t n, const char *text,
    const char *want, const size_t (*places)[2])
{
    struct pf_ntext t = PF_NTEXT_INIT;

    normalize(&t, steps, n, text, strlen(text));
    expect_bytes(&t, text, want, strlen(want));
    for (size_t i = 0; i < t.bytes.len; i++)
        if (t.from[i] != places[i][0] || t.to[i] != places[i][1])
            fail_msg("byte %zu of \"%s\" is from %zu to %zu", i, want,
                t.from[i], t.to[i]);
    pf_ntext_fini(&t);
}

static void
test_places(void **state)
{
    struct pf_norm_step llama[] = {
        with_strings(PF_NORM_PREPEND, "\u2581", ""),
        with_strings(PF_NORM_REPLACE, " ", "\u2581"),
    };
    struct pf_norm_step none = { .kind = PF_NORM_NFC };

    (void)state;
    expect_places(&none, 0, "a\u00e9\xff", "a\u00e9\xff",
        (const size_t[][2]){ { 0, 1 }, { 1, 3 }, { 1, 3 }, { 3, 4 } });
    expect_places(step_named("nfc"), 1, "xe\u0323\u0302y", "x\u1ec7y",
        (const size_t[][2]){ { 0, 1 }, { 1, 6 }, { 1, 6 }, { 1, 6 },
            { 6, 7 } });
    expect_places(step_named("nfd"), 1, "\u00e9y", "e\u0301y",
        (const size_t[][2]){ { 0, 2 }, { 0, 2 }, { 0, 2 }, { 2, 3 } });
    /* marks that change places keep the order of the old ones */
    expect_places(step_named("nfd"), 1, "q\u0307\u0323", "q\u0323\u0307",
        (const size_t[][2]){ { 0, 1 }, { 1, 3 }, { 1, 3 }, { 3, 5 },
            { 3, 5 } });
    expect_places(step_named("bert_uncased"), 1, "\v\u00c9\u4e2d",
        "e \u4e2d ", (const size_t[][2]){ { 1, 3 }, { 3, 3 }, { 3, 6 },
            { 3, 6 }, { 3, 6 }, { 6, 6 } });
    expect_places(step_named("strip"), 1, " ab ", "ab",
        (const size_t[][2]){ { 1, 2 }, { 2, 3 } });
    expect_places(llama, 2, "a b", "\u2581a\u2581b",
        (const size_t[][2]){ { 0, 0 }, { 0, 0 }, { 0, 0 }, { 0, 1 },
            { 1, 2 }, { 1, 2 }, { 1, 2 }, { 2, 3 } });
}

/* What is no UTF-8 stays, and parts what is around it. */
static void
test_bytes(void **state)
{
    static const char *const cases[][3] = {
        { "nfc", "e\xff\u0301", "e\xff\u0301" },
        { "nfc", "\xcc", "\xcc" },
        { "nfc", "\xc3\u0301e\u0301", "\xc3\u0301\u00e9" },
        { "nfc", "a\x80\u0301", "a\x80\u0301" },
        { "nfd", "\xe9\u0307\x80\u0323", "\xe9\u0307\x80\u0323" },
        { "nfd", "\xed\xa0\x80\u00e9", "\xed\xa0\x80" "e\u0301" },
        { "lowercase", "A\xc3" "B\xf5", "a\xc3" "b\xf5" },
        { "strip", " \xc2 a \x80 ", "\xc2 a \x80" },
        { "bert_uncased", "A\xff\u0301\xe2\x80z", "az" },
        { "bert_uncased", "a\xed\xa0\x80\xe0\x81\x81z", "az" },
        { "bert_bare", "\u00e9\xff", "e\xff" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect(step_named(cases[i][0]), cases[i][1], cases[i][2]);
}

/* --- What the reference made of texts. */

static void
check_line(const char *line, size_t len)
{
    struct pf_buf key = PF_BUF_INIT, text = PF_BUF_INIT, want = PF_BUF_INIT;
    struct pf_json j = pf_json_at(line, len);
    struct pf_ntext t = PF_NTEXT_INIT;
    bool first = true;
    int seen = 0;

    assert_int_equal(pf_json_open(&j, '{', NULL), PF_OK);
    while (!pf_json_next(&j, '}', &first, NULL)) {
        pf_buf_clear(&key);
        pf_buf_clear(&want);
        assert_int_equal(pf_json_key(&j, &key, NULL), PF_OK);
        pf_buf_addc(&key, '\0');
        if (seen++ == 0) {
            assert_string_equal(key.data, "text");
            assert_int_equal(pf_json_string(&j, &text, NULL), PF_OK);
            continue;
        }
        assert_int_equal(pf_json_string(&j, &want, NULL), PF_OK);
        normalize(&t, step_named(key.data), 1, text.data, text.len);
        expect_bytes(&t, key.data, want.data ? want.data : "", want.len);
    }
    assert_int_equal(seen, NAMED + 1);
    pf_ntext_fini(&t);
    pf_buf_fini(&key);
    pf_buf_fini(&text);
    pf_buf_fini(&want);
}

static void
test_golden(void **state)
{
    struct pf_err err;
    char *data, *end;
    size_t len, lines = 0;

    (void)state;
    if (pf_read_file(PF_TEST_GOLDEN "/tokenizer/normalize.ndjson", 1 << 20,
            &data, &len, &err))
        fail_msg("%s", err.msg);
    for (char *p = data; p < data + len; p = end + 1, lines++) {
        end = memchr(p, '\n', (size_t)(data + len - p));
        assert_non_null(end);
        check_line(p, (size_t)(end - p));
    }
    assert_int_equal(lines, 117);
    free(data);
}

/* --- The definitions, read plainly. */

enum { MAX = 400 }; /* characters */

struct chars {
    uint32_t c[MAX];
    size_t n;
};

static void
plain_nfd(struct chars *s)
{
    struct chars d = { .n = 0 };
    bool again = true;

    for (size_t i = 0; i < s->n; i++)
        d.n += pf_uc_decompose(s->c[i], d.c + d.n);
    while (again) {
        again = false;
        for (size_t i = 1; i < d.n; i++) {
            unsigned a = pf_uc_of(d.c[i - 1])->order;
            unsigned b = pf_uc_of(d.c[i])->order;

            if (b && a > b) {
                uint32_t c = d.c[i];

                d.c[i] = d.c[i - 1];
                d.c[i - 1] = c;
                again = true;
            }
        }
    }
    *s = d;
}

/* D117: each character, in turn, with the last starter that is not blocked
 * from it. */
static void
plain_nfc(struct chars *s)
{
    plain_nfd(s);
    for (size_t i = 1; i < s->n; i++) {
        unsigned order = pf_uc_of(s->c[i])->order;
        size_t base = i;
        bool blocked = false;
        uint32_t c;

        while (base-- > 0 && pf_uc_of(s->c[base])->order)
            if (pf_uc_of(s->c[base])->order >= order)
                blocked = true;
        if (base == SIZE_MAX || blocked)
            continue;
        c = pf_uc_compose(s->c[base], s->c[i]);
        if (!c)
            continue;
        s->c[base] = c;
        memmove(s->c + i, s->c + i + 1, (--s->n - i) * sizeof *s->c);
        i--;
    }
}

static void
drop(struct chars *s, unsigned flag)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++)
        if (!(pf_uc_of(s->c[i])->flags & flag))
            s->c[n++] = s->c[i];
    s->n = n;
}

static void
plain_lower(struct chars *s)
{
    struct chars d = { .n = 0 };

    for (size_t i = 0; i < s->n; i++)
        d.n += pf_uc_lower(s->c[i], d.c + d.n);
    *s = d;
}

static void
plain_bert(struct chars *s, const struct pf_norm_step *step)
{
    struct chars d = { .n = 0 };

    if (step->clean)
        drop(s, PF_UC_BERT_REMOVED);
    for (size_t i = 0; i < s->n; i++) {
        unsigned flags = pf_uc_of(s->c[i])->flags;
        bool cjk = step->cjk && (flags & PF_UC_BERT_CJK);

        if (cjk)
            d.c[d.n++] = ' ';
        d.c[d.n++] = step->clean && (flags & PF_UC_BERT_SPACE) ? ' '
            : s->c[i];
        if (cjk)
            d.c[d.n++] = ' ';
    }
    *s = d;
    if (step->accents) {
        plain_nfd(s);
        drop(s, PF_UC_BERT_ACCENT);
    }
    if (step->lower)
        plain_lower(s);
}

static void
plain_step(struct chars *s, const struct pf_norm_step *step)
{
    size_t i = 0;

    switch (step->kind) {
    case PF_NORM_NFC:
        plain_nfc(s);
        break;
    case PF_NORM_NFD:
        plain_nfd(s);
        break;
    case PF_NORM_LOWERCASE:
        plain_lower(s);
        break;
    case PF_NORM_STRIP_ACCENTS:
        drop(s, PF_UC_MARK);
        break;
    case PF_NORM_STRIP:
        while (s->n && (pf_uc_of(s->c[s->n - 1])->flags & PF_UC_SPACE))
            s->n--;
        while (i < s->n && (pf_uc_of(s->c[i])->flags & PF_UC_SPACE))
            i++;
        memmove(s->c, s->c + i, (s->n - i) * sizeof *s->c);
        s->n -= i;
        break;
    case PF_NORM_BERT:
        plain_bert(s, step);
        break;
    default:
        fail();
    }
}

static uint64_t random_state = 1;

static uint32_t
below(uint32_t n)
{
    random_state = random_state * 6364136223846793005 + 1442695040888963407;
    return (uint32_t)((random_state >> 33) * n >> 31);
}

static uint32_t
random_char(void)
{
    uint32_t c;

    switch (below(8)) {
    case 0:
        return 'a' + below(6);
    case 1:
        return below(0x80);
    case 2:
        return 0x1100 + below(0x100);
    case 3:
        return 0xac00 + below(11172);
    case 4: /* any that does something */
        do {
            c = below(4) ? below(0x3400) : 0xf900 + below(0x20000);
        } while (!pf_uc_of(c)->flags);
        return c;
    case 5:
        c = below(0x110000);
        return c >= 0xd800 && c < 0xe000 ? ' ' : c;
    default: /* any that has an order */
        do {
            c = below(8) ? below(0x1000) : below(0x1f000);
        } while (!pf_uc_of(c)->order);
        return c;
    }
}

static size_t
encode(char *out, const struct chars *s)
{
    size_t len = 0;

    for (size_t i = 0; i < s->n; i++)
        len += pf_utf8_encode(out + len, s->c[i]);
    return len;
}

static void
test_random(void **state)
{
    struct pf_ntext t = PF_NTEXT_INIT;
    char text[4 * MAX], want[4 * MAX];
    struct chars s, plain;
    size_t len;

    (void)state;
    for (int i = 0; i < 6000; i++) {
        s.n = below(i % 20 ? 12 : MAX / 4 - 1);
        for (size_t k = 0; k < s.n; k++)
            s.c[k] = random_char();
        len = encode(text, &s);
        for (size_t k = 0; k < NAMED; k++) {
            plain = s;
            plain_step(&plain, &named[k].step);
            normalize(&t, &named[k].step, 1, text, len);
            expect_bytes(&t, named[k].name, want, encode(want, &plain));
        }
    }
    pf_ntext_fini(&t);
}

/* What is put between two letters of a text, and what becomes of it. */
static const struct {
    const char *text, *bert, *lower;
} strangers[] = {
    { "Z", "z", "z" }, { "[", "[", "[" }, { "@", "@", "@" },
    { "\n", " ", "\n" }, { "\x1f", "", "\x1f" }, { "\x7f", "", "\x7f" },
    { "\u00c9", "e", "\u00e9" }, { "\xff", "", "\xff" },
    { "\u0301", "", "\u0301" }, { "\u4e00", " \u4e00 ", "\u4e00" },
    { "", "", "" },
};

/* The step of eight bytes, with a stranger at each place. */
static void
test_ascii(void **state)
{
    static const char upper[] = "THE QUICK BROWN FOX; JUMPS OVER [A] DOG";
    static const char lower[] = "the quick brown fox; jumps over [a] dog";
    char text[80], want[80];

    (void)state;
    for (int len = 0; len < (int)sizeof upper; len++)
        for (int i = 0; i <= len; i++)
            for (size_t k = 0; k < sizeof strangers / sizeof *strangers;
                k++) {
                snprintf(text, sizeof text, "%.*s%s%.*s", i, upper,
                    strangers[k].text, len - i, upper + i);
                snprintf(want, sizeof want, "%.*s%s%.*s", i, lower,
                    strangers[k].bert, len - i, lower + i);
                expect(step_named("bert_uncased"), text, want);
                snprintf(want, sizeof want, "%.*s%s%.*s", i, lower,
                    strangers[k].lower, len - i, lower + i);
                expect(step_named("lowercase"), text, want);
            }
}

/* Megabytes between two base characters: hours, if it were quadratic. */
static void
test_long_runs(void **state)
{
    enum { N = 1 << 20 };
    static const char *const units[][2] = {
        { "\u0307\u0323", "\u0323" }, /* classes 230 and 220 */
        { "\u0345\u0334", "\u0334" }, /* 240 and 1 */
        { "\u11ab\u1161", "\u11ab" }, /* Hangul that joins nothing */
    };
    struct pf_norm_step replace = { .kind = PF_NORM_REPLACE };
    struct pf_ntext t = PF_NTEXT_INIT;
    size_t unit, len;
    char *text = malloc(8 * N);

    (void)state;
    assert_non_null(text);
    for (size_t k = 0; k < 3; k++) {
        unit = strlen(units[k][0]);
        text[0] = 'q';
        for (len = 1; len + unit <= 4 * N; len += unit)
            memcpy(text + len, units[k][0], unit);
        for (size_t i = 0; i < NAMED; i++)
            normalize(&t, &named[i].step, 1, text, len);
        normalize(&t, step_named("nfd"), 1, text, len);
        assert_int_equal(t.bytes.len, len);
        assert_memory_equal(t.bytes.data + 1, units[k][1],
            strlen(units[k][1]));
    }
    /* A long string that nearly fits at each place. */
    memset(text, 'a', 2 * N);
    replace.a = text;
    replace.a_len = N / 2;
    text[2 * N] = 'b';
    normalize(&t, &replace, 1, text + 1, 2 * N);
    assert_int_equal(t.bytes.len, N / 2);
    memset(text + N, 'a', N);
    text[N / 2] = 'b';
    replace.a = text + 1;
    normalize(&t, &replace, 1, text + N, N);
    assert_int_equal(t.bytes.len, N);
    pf_ntext_fini(&t);
    free(text);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_ascii),
        cmocka_unit_test(test_long_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
