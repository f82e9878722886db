/*
 * Tables of a vocabulary in a file: what is mapped finds what was written, and
 * a file that is cut, changed, of another version or source, or forged is none
 * (PF_END), whatever its numbers say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <pipeformer/buf.h>
#include <pipeformer/io.h>

#include "../../src/tables.h"
#include "../../src/tokenizer-private.h"

/* The head of a file, as src/tables.c has it. */
enum { VERSION_AT = 8, ORDER_AT = 12, SOURCE_AT = 16, SUM_AT = 24,
    SIZE_AT = 32, PARTS_AT = 40, N_PARTS = 7, HEAD = PARTS_AT + 16 * N_PARTS };
enum part { POOL, TOKENS, NAMES, PAIRS, RESULTS, BYTES, FILTER };

enum { SOURCE = 0x1234567 };

static char path[] = "test_tables.XXXXXX";
static struct pf_vocab *vocab;
static struct pf_bpe *bpe;
static char *image; /* the file as it was written, aligned as a mapping is */
static size_t size;
static size_t summed; /* where the bytes begin that the sum is of */

static uint64_t seed = 1;

static uint32_t
draw(uint32_t n)
{
    seed = seed * 6364136223846793005 + 1442695040888963407;
    return (uint32_t)(seed >> 33) % n;
}

/* 255 bytes (there is none for 0x7f), and tokens of two and more; id 300 is
 * left out. */
static struct pf_buf
ranks(void)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnop"
        "qrstuvwxyz0123456789+/";
    static const char *const tokens[] = { "ab", "abc", " a", "aa", "aaaa",
        " ab", "  ", "    ", "\n\n", "the", "th", " the", "\303\251", "01",
        "abcab", " aa", "ccc", "cc", "zz" };
    struct pf_buf b = PF_BUF_INIT;
    unsigned char s[9];
    size_t n;

    for (unsigned i = 0; i < 256 + sizeof tokens / sizeof *tokens; i++) {
        if (i == 0x7f)
            continue;
        memset(s, 0, sizeof s);
        s[0] = (unsigned char)i;
        n = 1;
        if (i >= 256) {
            n = strlen(tokens[i - 256]);
            memcpy(s, tokens[i - 256], n);
        }
        for (size_t k = 0; k < n; k += 3) {
            uint32_t v = (uint32_t)s[k] << 16 | (uint32_t)s[k + 1] << 8
                | s[k + 2];

            pf_buf_addc(&b, letters[v >> 18]);
            pf_buf_addc(&b, letters[v >> 12 & 63]);
            pf_buf_addc(&b, k + 1 < n ? letters[v >> 6 & 63] : '=');
            pf_buf_addc(&b, k + 2 < n ? letters[v & 63] : '=');
        }
        pf_buf_printf(&b, " %u\n", i < 270 ? i : i + 40);
    }
    assert_int_equal(pf_buf_check(&b, NULL), PF_OK);
    return b;
}

static void
symbols(const struct pf_vocab *v, uint32_t byte[256])
{
    char c;

    for (int i = 0; i < 256; i++) {
        c = (char)i;
        if (!pf_vocab_find(v, &c, 1, &byte[i]))
            byte[i] = PF_BPE_NONE;
    }
}

static void
write_file(const char *data, size_t n)
{
    FILE *f = fopen(path, "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static int
setup(void **state)
{
    struct pf_buf text = ranks();
    uint32_t byte[256];
    struct pf_err err;
    uint64_t sum;
    char *data;
    int fd = mkstemp(path);

    (void)state;
    if (fd < 0 || close(fd))
        return -1;
    if (pf_ranks_read(text.data, text.len, &vocab, &bpe, &err))
        fail_msg("%s", err.msg);
    pf_buf_fini(&text);
    symbols(vocab, byte);
    assert_int_equal(pf_bpe_set_bytes(bpe, byte, NULL), PF_OK);
    if (pf_tables_write(path, SOURCE, vocab, bpe, &err))
        fail_msg("%s", err.msg);
    if (pf_read_file(path, 1 << 24, &data, &size, &err))
        fail_msg("%s", err.msg);
    image = aligned_alloc(64, (size + 63) / 64 * 64);
    assert_non_null(image);
    memcpy(image, data, size);
    free(data);
    memcpy(&sum, image + SUM_AT, sizeof sum);
    for (summed = SIZE_AT; summed < HEAD; summed += 8)
        if (pf_tables_hash(image + summed, size - summed, 0) == sum)
            break;
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    pf_vocab_free(vocab);
    pf_bpe_free(bpe);
    free(image);
    return unlink(path);
}

/* --- Whole files --- */

static void
expect_ids(struct pf_encoder *enc, const char *text, size_t len,
    const uint32_t *want, size_t n_want)
{
    const uint32_t *ids;
    size_t n;

    assert_int_equal(pf_encode(enc, text, len, &ids, &n, NULL), PF_OK);
    assert_int_equal(n, n_want);
    if (n)
        assert_memory_equal(ids, want, n * sizeof *ids);
}

/* A tokenizer of tables; takes them. */
static struct pf_tokenizer *
tokenizer(struct pf_vocab *v, struct pf_bpe *b, struct pf_mapping *m)
{
    struct pf_tokenizer *tok = pf_tokenizer_new();

    assert_non_null(tok);
    tok->whole = true;
    tok->vocab = v;
    tok->bpe = b;
    tok->mapping = m;
    assert_int_equal(pf_tokenizer_set_pattern(tok, pf_pretok_named("gpt2"), 0,
        NULL), PF_OK);
    assert_int_equal(pf_tokenizer_finish(tok, NULL), PF_OK);
    return tok;
}

static void
test_same(void **state)
{
    struct pf_mapping *m;
    struct pf_vocab *v;
    struct pf_bpe *b;
    const char *a, *c;
    uint32_t id, to, want;
    size_t n, k;

    (void)state;
    write_file(image, size);
    assert_int_equal(pf_tables_map(&m, path, SOURCE, &v, &b), PF_OK);
    assert_int_equal(pf_vocab_size(v), pf_vocab_size(vocab));
    assert_true(pf_vocab_longest(v) >= pf_vocab_longest(vocab));
    for (uint32_t i = 0; i < pf_vocab_size(vocab) + 2; i++) {
        a = pf_vocab_bytes(vocab, i, &n);
        c = pf_vocab_bytes(v, i, &k);
        assert_int_equal(!a, !c);
        if (!a)
            continue;
        assert_int_equal(n, k);
        assert_memory_equal(a, c, n);
        assert_true(pf_vocab_find(v, a, n, &id));
        assert_int_equal(id, i);
        assert_false(pf_vocab_find(v, "qqqqq", 5, &id));
    }
    for (uint32_t i = 0; i < 320; i++) {
        for (uint32_t j = 0; j < 320; j++) {
            want = pf_bpe_find(bpe, i, j, &id);
            assert_int_equal(pf_bpe_find(b, i, j, &to), want);
            if (want != PF_BPE_NONE)
                assert_int_equal(id, to);
        }
    }
    pf_bpe_free(b);
    pf_vocab_free(v);
    pf_mapping_free(m);
}

/* Texts become the same ids. */
static void
test_encode(void **state)
{
    static const char letters[] = "aaabbcc the \n01z\303\251\377";
    struct pf_buf text = ranks();
    struct pf_tokenizer *made, *mapped;
    struct pf_encoder *e, *f;
    struct pf_mapping *m;
    struct pf_vocab *v;
    struct pf_bpe *b;
    const uint32_t *ids;
    char bytes[600];
    size_t n, len;

    (void)state;
    write_file(image, size);
    assert_int_equal(pf_ranks_read(text.data, text.len, &v, &b, NULL), PF_OK);
    made = tokenizer(v, b, NULL);
    assert_int_equal(pf_tables_map(&m, path, SOURCE, &v, &b), PF_OK);
    mapped = tokenizer(v, b, m);
    assert_int_equal(pf_encoder_new(&e, made, NULL), PF_OK);
    assert_int_equal(pf_encoder_new(&f, mapped, NULL), PF_OK);
    for (int t = 0; t < 3000; t++) {
        len = draw(t % 10 ? 40 : sizeof bytes);
        for (size_t i = 0; i < len; i++)
            bytes[i] = letters[draw(sizeof letters - 1)];
        assert_int_equal(pf_encode(e, bytes, len, &ids, &n, NULL), PF_OK);
        expect_ids(f, bytes, len, ids, n);
    }
    pf_encoder_free(e);
    pf_encoder_free(f);
    pf_tokenizer_free(made);
    pf_tokenizer_free(mapped);
    pf_buf_fini(&text);
}

/* --- What is no file of tables --- */

static void
expect_none(uint64_t source, const char *what)
{
    struct pf_mapping *m = NULL;
    struct pf_vocab *v = NULL;
    struct pf_bpe *b = NULL;
    enum pf_status st = pf_tables_map(&m, path, source, &v, &b);

    if (st != PF_END)
        fail_msg("%s: status %d", what, st);
    assert_null(m);
    assert_null(v);
    assert_null(b);
}

/* Puts n bytes at a place of the file that is there. */
static void
patch(FILE *f, size_t at, const void *bytes, size_t n)
{
    assert_int_equal(fseek(f, (long)at, SEEK_SET), 0);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fflush(f), 0);
}

static void
test_cut(void **state)
{
    char what[40];

    (void)state;
    write_file(image, size);
    for (size_t n = size - 1;; n = n > HEAD + 97 ? n - 97 : n - 1) {
        assert_int_equal(truncate(path, (off_t)n), 0);
        snprintf(what, sizeof what, "the first %zu bytes", n);
        expect_none(SOURCE, what);
        if (n == 0)
            break;
    }
    write_file(image, size);
    assert_int_equal(truncate(path, (off_t)size + 1), 0);
    expect_none(SOURCE, "a byte too many");
    assert_int_equal(unlink(path), 0);
    expect_none(SOURCE, "no file");
}

static void
test_flipped(void **state)
{
    size_t at, bits = HEAD * 8;
    char what[40];
    FILE *f;
    char c;

    (void)state;
    write_file(image, size);
    f = fopen(path, "r+b");
    assert_non_null(f);
    for (size_t i = 0; i < bits + 3000; i++) {
        at = i < bits ? i : HEAD * 8 + draw((uint32_t)(size - HEAD) * 8);
        c = (char)(image[at / 8] ^ 1 << at % 8);
        patch(f, at / 8, &c, 1);
        snprintf(what, sizeof what, "bit %zu of byte %zu", at % 8, at / 8);
        expect_none(SOURCE, what);
        patch(f, at / 8, &image[at / 8], 1);
    }
    fclose(f);
}

static void
test_others(void **state)
{
    struct pf_mapping *m;
    struct pf_vocab *v;
    struct pf_bpe *b;
    char order[4];
    uint32_t version;
    FILE *f;

    (void)state;
    write_file(image, size);
    expect_none(SOURCE + 1, "another source");
    f = fopen(path, "r+b");
    assert_non_null(f);
    memcpy(&version, image + VERSION_AT, sizeof version);
    for (int i = -2; i <= 2; i += i == -1 ? 2 : 1) {
        uint32_t other = version + (uint32_t)i;

        patch(f, VERSION_AT, &other, sizeof other);
        expect_none(SOURCE, "another version");
    }
    patch(f, VERSION_AT, &version, sizeof version);
    for (int i = 0; i < 4; i++)
        order[i] = image[ORDER_AT + 3 - i];
    patch(f, ORDER_AT, order, sizeof order);
    expect_none(SOURCE, "another byte order");
    patch(f, ORDER_AT, image + ORDER_AT, sizeof order);
    assert_int_equal(pf_tables_map(&m, path, SOURCE, &v, &b), PF_OK);
    pf_bpe_free(b);
    pf_vocab_free(v);
    pf_mapping_free(m);
    fclose(f);
}

/* --- Forged: the sum is right, the numbers are not --- */

static char *forged;

static uint64_t *
field(enum part p, bool len)
{
    return (uint64_t *)(void *)(forged + PARTS_AT + 16 * p + 8 * len);
}

static void *
table(enum part p)
{
    return forged + *field(p, false);
}

/* Copies the file, to be changed by the caller. */
static void
begin(void)
{
    memcpy(forged, image, size);
}

/* Sums up and writes what was changed. */
static void
seal(void)
{
    uint64_t sum = pf_tables_hash(forged + summed, size - summed, 0);

    memcpy(forged + SUM_AT, &sum, sizeof sum);
    write_file(forged, size);
}

static void
no(const char *what)
{
    seal();
    expect_none(SOURCE, what);
    begin();
}

static void
test_forged(void **state)
{
    size_t n, i;
    uint32_t *t, *slots, *r;
    uint64_t *pairs;

    (void)state;
    forged = aligned_alloc(64, (size + 63) / 64 * 64);
    assert_non_null(forged);
    begin();
    seal();
    test_same(state); /* the sum is made rightly here */

    /* Parts that lie outside, crooked, or of sizes that cannot be. */
    for (int p = 0; p < N_PARTS; p++) {
        static const uint64_t places[] = { 1, 63, 1 << 30, UINT64_MAX,
            UINT64_MAX - 63, (uint64_t)1 << 63 };

        for (i = 0; i < sizeof places / sizeof *places; i++) {
            *field(p, false) = places[i];
            no("a part that begins elsewhere");
            *field(p, true) = places[i];
            no("a part of another length");
        }
        *field(p, false) = size / 64 * 64 + 64;
        no("a part behind the end");
        *field(p, true) = size - *field(p, false) + 1;
        no("a part that reaches beyond the end");
        if (p == PAIRS || p == BYTES || p == FILTER) {
            *field(p, true) /= 2;
            no("half of a table");
        }
        if (p != POOL && p != TOKENS && p != RESULTS) {
            *field(p, true) = 0;
            no("no table");
        }
    }
    n = *field(NAMES, true) / 4;
    assert_true(n >= 64 && (n & (n - 1)) == 0);

    /* Tokens: {end, len} each. */
    t = table(TOKENS);
    n = *field(TOKENS, true) / 8;
    for (i = 0; i < n; i += 7) {
        t[2 * i] = (uint32_t)*field(POOL, true) + 2;
        no("a token that ends behind the pool");
        t[2 * i] = UINT32_MAX;
        no("a token that ends far behind the pool");
        t[2 * i + 1] = t[2 * i] ? t[2 * i] : 1;
        no("a token that begins before the pool");
        t[2 * i + 1] = UINT32_MAX;
        no("a token of any length");
    }
    /* The hash table of tokens: id plus 1 in the low 21 bits. */
    slots = table(NAMES);
    n = *field(NAMES, true) / 4;
    for (i = 0; i < n; i += 5) {
        slots[i] = (slots[i] & ~0x1fffffu) | (uint32_t)(pf_vocab_size(vocab)
            + 1);
        no("the slot of an id that is too large");
        slots[i] |= 0x1fffff;
        no("the slot of the largest id");
        slots[i] = 0x80000000;
        no("a slot without an id");
    }
    for (i = 0; i < n; i++)
        slots[i] = slots[i] ? slots[i] : 1;
    no("no slot is free");

    /* Merges: the rank plus 1 in the low 24 bits of a slot. */
    pairs = table(PAIRS);
    n = *field(PAIRS, true) / 8;
    for (i = 0; i < n; i += 3) {
        pairs[i] |= 0xffffff;
        no("a pair of a rank that is too large");
        pairs[i] = (pairs[i] & ~(uint64_t)0xffffff)
            | (*field(RESULTS, true) / 4 + 1);
        no("a pair of a rank one too large");
        pairs[i] = (uint64_t)1 << 40;
        no("a pair without a rank");
    }
    for (i = 0; i < n; i++)
        pairs[i] = pairs[i] ? pairs[i] : 1;
    no("no slot of a pair is free");
    r = table(RESULTS);
    n = *field(RESULTS, true) / 4;
    for (i = 0; i < n; i += 3) {
        r[i] = (uint32_t)pf_vocab_size(vocab);
        no("a merge that makes an id one too large");
        r[i] = UINT32_MAX;
        no("a merge that makes no id");
    }
    r = table(BYTES);
    for (i = 0; i < 65536; i += 977) {
        r[i] = (uint32_t)(*field(RESULTS, true) / 4);
        no("a pair of bytes of a rank one too large");
        r[i] = UINT32_MAX;
        no("a pair of bytes of no rank");
        r[i] = 0x80000000;
        no("a pair of bytes of a negative rank");
    }
    free(forged);
}

/* A merge that a text may come to makes an id between the tokens' that none
 * has. */
static void
test_no_token(void **state)
{
    uint32_t *r, *pairs, byte[256];

    (void)state;
    forged = aligned_alloc(64, (size + 63) / 64 * 64);
    assert_non_null(forged);
    begin();
    symbols(vocab, byte);
    assert_null(pf_vocab_bytes(vocab, 300, &(size_t){ 0 }));
    r = table(RESULTS);
    pairs = table(BYTES);
    assert_in_range(pairs['a' << 8 | 'b'], 0, *field(RESULTS, true) / 4 - 1);
    r[pairs['a' << 8 | 'b']] = 300;
    no("a merge that makes what is no token");
    free(forged);
}

/* Every number of the body, one after the other, with the sum set right: it
 * is none, or it can be worked with. */
static void
test_random(void **state)
{
    struct pf_tokenizer *tok;
    struct pf_mapping *m;
    struct pf_encoder *enc;
    struct pf_vocab *v;
    struct pf_bpe *b;
    const uint32_t *ids;
    char text[64];
    size_t n, at, len, part_size, accepted = 0;
    uint32_t value;

    (void)state;
    forged = aligned_alloc(64, (size + 63) / 64 * 64);
    assert_non_null(forged);
    for (int t = 0; t < 1500; t++) {
        begin();
        for (uint32_t k = 0; k <= (uint32_t)t % 4; k++) {
            enum part p = (enum part)draw(N_PARTS);

            part_size = *field(p, true);
            at = *field(p, false) + draw((uint32_t)part_size / 4) * 4;
            memcpy(&value, forged + at, sizeof value);
            value = draw(4) ? draw(2) ? draw(400) : value ^ 1u << draw(32)
                : draw(2) ? UINT32_MAX : 0;
            memcpy(forged + at, &value, sizeof value);
        }
        seal();
        if (pf_tables_map(&m, path, SOURCE, &v, &b))
            continue;
        accepted++;
        tok = tokenizer(v, b, m);
        assert_int_equal(pf_encoder_new(&enc, tok, NULL), PF_OK);
        pf_encoder_track(enc);
        for (int i = 0; i < 20; i++) {
            len = draw(sizeof text);
            for (size_t k = 0; k < len; k++)
                text[k] = "aabbccthe \n"[draw(11)];
            if (pf_encode(enc, text, len, &ids, &n, NULL))
                continue;
            for (size_t k = 0; k < n; k++)
                if (!pf_tokenizer_token(tok, ids[k], &at))
                    fail_msg("id %u is no token", (unsigned)ids[k]);
        }
        pf_encoder_free(enc);
        pf_tokenizer_free(tok);
    }
    assert_true(accepted > 100);
    free(forged);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_encode),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_flipped),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_forged),
        cmocka_unit_test(test_no_token),
        cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
