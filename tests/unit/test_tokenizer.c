/*
 * The tokenizer against the reference's ids.  tests/golden/tokenizer has them,
 * of which the cases of gpt2 and r50k_base (the same ranks) are looked at here
 * and all in pipe/vectors.t; made with tiktoken and HuggingFace tokenizers; where engines disagree, "ids" is the authority's
 * answer.  fairy_prompts has the prompts of the model in vocab/fairy.  Ids in
 * the code were worked out by hand.
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
#include <pipeformer/json.h>
#include <pipeformer/tokenizer.h>

#include "../../src/tokenizer-private.h"

static struct pf_tokenizer *gpt2;

static struct pf_tokenizer *
open_tokenizer(const char *dir)
{
    struct pf_tokenizer *tok;
    struct pf_err err;

    if (pf_tokenizer_open(&tok, dir, &err))
        fail_msg("%s", err.msg);
    return tok;
}

static struct pf_encoder *
new_encoder(const struct pf_tokenizer *tok, bool special)
{
    struct pf_encoder *enc;

    assert_int_equal(pf_encoder_new(&enc, tok, NULL), PF_OK);
    if (special)
        pf_encoder_special_all(enc);
    return enc;
}

static int
setup(void **state)
{
    (void)state;
    gpt2 = open_tokenizer(PF_TEST_VOCAB "/gpt2");
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    pf_tokenizer_free(gpt2);
    return 0;
}

/* A line of a golden file. */
struct vector {
    struct pf_buf text, hex, sha, unit, special, encoding;
    uint32_t *ids;
    size_t n, cap;
    int64_t count, n_ids;
};

static void
vector_fini(struct vector *v)
{
    pf_buf_fini(&v->text);
    pf_buf_fini(&v->hex);
    pf_buf_fini(&v->sha);
    pf_buf_fini(&v->unit);
    pf_buf_fini(&v->special);
    pf_buf_fini(&v->encoding);
    free(v->ids);
}

static bool
is(const struct pf_buf *b, const char *s)
{
    return b->len == strlen(s) && (!b->len || !memcmp(b->data, s, b->len));
}

static void
parse_ids(struct pf_json *j, struct vector *v)
{
    bool first = true;
    int64_t id;

    v->n = 0;
    assert_int_equal(pf_json_open(j, '[', NULL), PF_OK);
    while (!pf_json_next(j, ']', &first, NULL)) {
        assert_int_equal(pf_json_i64(j, &id, NULL), PF_OK);
        assert_true(pf_grow(&v->ids, &v->cap, v->n + 1, sizeof *v->ids));
        v->ids[v->n++] = (uint32_t)id;
    }
}

static void
parse_vector(const char *line, size_t len, struct vector *v)
{
    struct pf_json j = pf_json_at(line, len);
    struct pf_buf key = PF_BUF_INIT;
    const char *raw;
    bool first = true;
    size_t n;
    enum pf_status st;

    pf_buf_clear(&v->text);
    pf_buf_clear(&v->hex);
    pf_buf_clear(&v->sha);
    pf_buf_clear(&v->unit);
    pf_buf_clear(&v->special);
    pf_buf_clear(&v->encoding);
    assert_int_equal(pf_json_open(&j, '{', NULL), PF_OK);
    while (!(st = pf_json_next(&j, '}', &first, NULL))) {
        pf_buf_clear(&key);
        assert_int_equal(pf_json_key(&j, &key, NULL), PF_OK);
        if (is(&key, "text"))
            st = pf_json_string(&j, &v->text, NULL);
        else if (is(&key, "bytes_hex"))
            st = pf_json_string(&j, &v->hex, NULL);
        else if (is(&key, "ids_sha256"))
            st = pf_json_string(&j, &v->sha, NULL);
        else if (is(&key, "unit"))
            st = pf_json_string(&j, &v->unit, NULL);
        else if (is(&key, "special"))
            st = pf_json_string(&j, &v->special, NULL);
        else if (is(&key, "encoding"))
            st = pf_json_string(&j, &v->encoding, NULL);
        else if (is(&key, "count"))
            st = pf_json_i64(&j, &v->count, NULL);
        else if (is(&key, "n_ids"))
            st = pf_json_i64(&j, &v->n_ids, NULL);
        else if (is(&key, "ids"))
            parse_ids(&j, v);
        else
            st = pf_json_value(&j, &raw, &n, NULL);
        assert_int_equal(st, PF_OK);
    }
    assert_int_equal(st, PF_END);
    pf_buf_fini(&key);
}

/* Calls `check` for each line that is not of another encoding; at least
 * `least` there must be. */
static void
each_vector(const char *name, size_t least,
    void (*check)(const struct vector *, void *), void *ctx)
{
    struct vector v = { 0 };
    char path[1000], *data, *p, *end, *next;
    size_t len, n = 0;
    struct pf_err err;

    snprintf(path, sizeof path, "%s/tokenizer/%s", PF_TEST_GOLDEN, name);
    if (pf_read_file(path, 1 << 24, &data, &len, &err))
        fail_msg("%s", err.msg);
    for (p = data, end = data + len; p < end; p = next) {
        next = memchr(p, '\n', (size_t)(end - p));
        next = next ? next + 1 : end;
        parse_vector(p, (size_t)(next - p), &v);
        if (v.encoding.len && !is(&v.encoding, "gpt2")
            && !is(&v.encoding, "r50k_base"))
            continue;
        check(&v, ctx);
        n++;
    }
    assert_true(n >= least);
    free(data);
    vector_fini(&v);
}

static void
expect_ids(struct pf_encoder *enc, const char *text, size_t len,
    const uint32_t *want, size_t n_want)
{
    struct pf_err err;
    const uint32_t *ids;
    size_t n;

    if (pf_encode(enc, text, len, &ids, &n, &err))
        fail_msg("%s", err.msg);
    if (n != n_want || (n && memcmp(ids, want, n * sizeof *ids) != 0))
        fail_msg("wrong ids for \"%.*s\"", (int)len, text);
}

static void
expect_bytes(const struct pf_tokenizer *tok, const uint32_t *ids, size_t n,
    const char *want, size_t len)
{
    const char *bytes;
    size_t at = 0, k;

    for (size_t i = 0; i < n; i++, at += k) {
        bytes = pf_tokenizer_token(tok, ids[i], &k);
        assert_non_null(bytes);
        assert_true(k <= len - at);
        assert_memory_equal(bytes, want + at, k);
    }
    assert_int_equal(at, len);
}

static void
check_text(const struct vector *v, void *ctx)
{
    struct pf_encoder **enc = ctx; /* none, all */
    const char *text = v->text.len ? v->text.data : "";

    assert_true(is(&v->special, "none") || is(&v->special, "all"));
    expect_ids(enc[is(&v->special, "all")], text, v->text.len, v->ids, v->n);
    expect_bytes(gpt2, v->ids, v->n, text, v->text.len);
}

/* Twice, so that the second time the cache answers. */
static void
test_golden(void **state)
{
    struct pf_encoder *enc[2] = { new_encoder(gpt2, false),
        new_encoder(gpt2, true) };

    (void)state;
    for (int i = 0; i < 2; i++) {
        each_vector("bpe.ndjson", 613, check_text, enc);
        each_vector("bpe_disagreements.ndjson", 16, check_text, enc);
    }
    pf_encoder_free(enc[0]);
    pf_encoder_free(enc[1]);
}

static void
check_decode(const struct vector *v, void *ctx)
{
    char *bytes = malloc(v->hex.len / 2 + 1);
    unsigned b;

    (void)ctx;
    assert_non_null(bytes);
    for (size_t i = 0; i < v->hex.len / 2; i++) {
        assert_int_equal(sscanf(v->hex.data + 2 * i, "%2x", &b), 1);
        bytes[i] = (char)b;
    }
    expect_bytes(gpt2, v->ids, v->n, bytes, v->hex.len / 2);
    free(bytes);
}

static void
test_decode(void **state)
{
    (void)state;
    each_vector("decode.ndjson", 42, check_decode, NULL);
}

/* SHA-256 (FIPS 180-4) of a whole text; its constants are computed. */
static uint32_t
root_bits(unsigned p, bool cube)
{
    unsigned __int128 n = (unsigned __int128)p << (cube ? 96 : 64), x = 0, y;

    for (int bit = 40; bit >= 0; bit--) {
        y = x | (unsigned __int128)1 << bit;
        if ((cube ? y * y * y : y * y) <= n)
            x = y;
    }
    return (uint32_t)x;
}

static uint32_t
ror(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void
sha256_block(uint32_t h[8], const uint32_t k[64], const unsigned char *p)
{
    uint32_t w[64], s[8], t1, t2;

    for (int i = 0; i < 64; i++)
        w[i] = i < 16 ? (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16
                | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3]
            : w[i - 16] + w[i - 7]
                + (ror(w[i - 15], 7) ^ ror(w[i - 15], 18) ^ w[i - 15] >> 3)
                + (ror(w[i - 2], 17) ^ ror(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(s, h, sizeof s);
    for (int i = 0; i < 64; i++) {
        t1 = s[7] + (ror(s[4], 6) ^ ror(s[4], 11) ^ ror(s[4], 25))
            + ((s[4] & s[5]) ^ (~s[4] & s[6])) + k[i] + w[i];
        t2 = (ror(s[0], 2) ^ ror(s[0], 13) ^ ror(s[0], 22))
            + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += t1;
        s[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        h[i] += s[i];
}

static void
sha256(const char *text, size_t len, char hex[65])
{
    size_t padded = (len + 8) / 64 * 64 + 64;
    unsigned char *p = calloc(1, padded);
    uint32_t k[64], h[8];
    int n = 0;

    assert_non_null(p);
    for (unsigned c = 2; n < 64; c++) {
        unsigned d = 2;

        while (d * d <= c && c % d)
            d++;
        if (d * d <= c)
            continue;
        k[n] = root_bits(c, true);
        if (n < 8)
            h[n] = root_bits(c, false);
        n++;
    }
    memcpy(p, text, len);
    p[len] = 0x80;
    for (int i = 0; i < 8; i++)
        p[padded - 1 - (size_t)i] = (unsigned char)((uint64_t)len * 8
            >> 8 * i);
    for (size_t i = 0; i < padded; i += 64)
        sha256_block(h, k, p + i);
    for (int i = 0; i < 8; i++)
        snprintf(hex + 8 * i, 9, "%08x", (unsigned)h[i]);
    free(p);
}

static void
test_sha256(void **state)
{
    char hex[65];

    (void)state;
    sha256("abc", 3, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223"
        "b00361a396177a9cb410ff61f20015ad");
}

static void
check_stress(const struct vector *v, void *ctx)
{
    struct pf_buf text = PF_BUF_INIT, list = PF_BUF_INIT;
    struct pf_encoder **enc = ctx;
    const uint32_t *ids;
    char hex[65];
    size_t n;

    for (int64_t i = 0; i < v->count; i++)
        pf_buf_add(&text, v->unit.data, v->unit.len);
    assert_int_equal(pf_buf_check(&text, NULL), PF_OK);
    assert_int_equal(pf_encode(*enc, text.data, text.len, &ids, &n, NULL),
        PF_OK);
    assert_int_equal(n, v->n_ids);
    for (size_t i = 0; i < n; i++) {
        if (i)
            pf_buf_addc(&list, ',');
        pf_json_add_i64(&list, ids[i]);
    }
    assert_int_equal(pf_buf_check(&list, NULL), PF_OK);
    sha256(list.data, list.len, hex);
    assert_int_equal(v->sha.len, 64);
    assert_memory_equal(hex, v->sha.data, 64);
    pf_buf_fini(&text);
    pf_buf_fini(&list);
}

static void
test_stress(void **state)
{
    struct pf_encoder *enc = new_encoder(gpt2, false);

    (void)state;
    each_vector("stress.ndjson", 11, check_stress, &enc);
    pf_encoder_free(enc);
}

static void
check_prompt(const struct vector *v, void *ctx)
{
    struct pf_encoder **enc = ctx;

    expect_ids(*enc, v->text.data, v->text.len, v->ids, v->n);
}

static void
test_fairy(void **state)
{
    struct pf_tokenizer *tok = open_tokenizer(PF_TEST_VOCAB "/fairy");
    struct pf_encoder *enc = new_encoder(tok, true);
    const struct pf_slot *slots;
    uint32_t id;

    (void)state;
    assert_int_equal(pf_tokenizer_size(tok), 4096);
    assert_int_equal(pf_tokenizer_frame(tok, false, &slots), 1);
    assert_int_equal(slots[0].id, PF_SLOT_TEXT);
    assert_int_equal(pf_tokenizer_frame(tok, true, &slots), 0);
    assert_true(pf_tokenizer_special(tok, 0, &id));
    assert_int_equal(id, 4095);
    assert_false(pf_tokenizer_special(tok, 1, &id));
    each_vector("fairy_prompts.ndjson", 3, check_prompt, &enc);
    pf_encoder_free(enc);
    pf_tokenizer_free(tok);
}

static void
test_gpt2(void **state)
{
    static const uint32_t eot = 50256;
    struct pf_encoder *enc = new_encoder(gpt2, false);
    struct pf_err err;
    size_t len;
    uint32_t id;

    (void)state;
    assert_int_equal(pf_tokenizer_size(gpt2), 50257);
    assert_true(pf_tokenizer_is_special(gpt2, eot));
    assert_false(pf_tokenizer_is_special(gpt2, 50255));
    assert_false(pf_tokenizer_is_special(gpt2, 70000));
    assert_true(pf_tokenizer_find_special(gpt2, "<|endoftext|>", 13, &id));
    assert_int_equal(id, eot);
    assert_false(pf_tokenizer_find_special(gpt2, "the", 3, &id));
    assert_null(pf_tokenizer_token(gpt2, 50257, &len));
    assert_int_equal(pf_encoder_special_add(enc, "a", 1, &err), PF_ERANGE);
    assert_int_equal(pf_encoder_special_add(enc, "<|endoftext|>", 13, &err), PF_OK);
    expect_ids(enc, "<|endoftext|>", 13, &eot, 1);
    expect_ids(enc, "", 0, NULL, 0);
    pf_encoder_free(enc);
}

/* What is no UTF-8 parts the text: the ids are those of the parts. */
static void
test_invalid(void **state)
{
    static const struct {
        const char *parts[5];
    } cases[] = {
        { { "caf", "\xe9", " au lait" } },
        { { "  ", "\xff", "  x" } },
        { { "\xff\xfe\xfd" } },
        { { "a", "\xe2\x82", "b" } },
        { { "\xed\xa0\x80", "\xe2\x82\xac" } },
        { { "x", "\xc3", "(", "\xf0\x9f\x98", "\n" } },
        { { "\xc3\xa9\xc3\xa9", "\xc3" } },
    };
    struct pf_encoder *enc = new_encoder(gpt2, false);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t want[100];
        const uint32_t *ids;
        char text[100] = "";
        size_t n = 0, k;

        for (size_t p = 0; p < 5 && cases[i].parts[p]; p++) {
            const char *part = cases[i].parts[p];

            assert_int_equal(pf_encode(enc, part, strlen(part), &ids, &k,
                NULL), PF_OK);
            expect_bytes(gpt2, ids, k, part, strlen(part));
            memcpy(want + n, ids, k * sizeof *ids);
            n += k;
            strcat(text, part);
        }
        expect_ids(enc, text, strlen(text), want, n);
    }
    pf_encoder_free(enc);
}

/* Any bytes come back, and a new encoder agrees with a used one. */
static void
test_round_trip(void **state)
{
    static const char *const parts[] = { "a", " ", "  ", "\n", "'ll", "\xff",
        "\xc2\xa0", "\xe7\x9a\x84", "12", "<|endoftext|>", "<|", "!!",
        "\xf0\x9f\x98\x80", "\xe2\x80", "The", " the", "abcdefghijklmnop",
        "================", "\xd0\xbf\xd1\x80\xd0\xb8", "\r\n", "" };
    struct pf_encoder *used = new_encoder(gpt2, true), *enc;
    uint64_t r = 1;

    (void)state;
    for (int i = 0; i < 300; i++) {
        uint32_t *copy;
        const uint32_t *ids;
        char text[1000];
        size_t len = 0, n;

        for (int k = 0; k < 40; k++) {
            const char *p;

            r = r * 6364136223846793005 + 1442695040888963407;
            p = parts[(r >> 33) % (sizeof parts / sizeof *parts)];
            memcpy(text + len, p, strlen(p));
            len += strlen(p);
        }
        assert_int_equal(pf_encode(used, text, len, &ids, &n, NULL), PF_OK);
        expect_bytes(gpt2, ids, n, text, len);
        copy = malloc((n + 1) * sizeof *ids);
        assert_non_null(copy);
        memcpy(copy, ids, n * sizeof *ids);
        enc = new_encoder(gpt2, true);
        expect_ids(enc, text, len, copy, n);
        pf_encoder_free(enc);
        free(copy);
    }
    pf_encoder_free(used);
}

/* Texts of a block, together where they can be, are what each is by itself;
 * `used` is an encoder that has seen others, before and between. */
static void
expect_texts(struct pf_encoder *used, struct pf_encoder *alone,
    const char *block, size_t len, char delimiter, bool valid)
{
    const uint32_t *ids, *want;
    uint32_t mark, *copy;
    size_t used_len, n, n_want, text, k = 0;
    const char *end;

    while (len) {
        assert_int_equal(pf_encode_texts(used, block, len, delimiter,
            &used_len, &ids, &n, &mark, NULL), PF_OK);
        assert_true(used_len <= len);
        assert_true(used_len || !valid);
        copy = malloc((n + 1) * sizeof *copy);
        assert_non_null(copy);
        memcpy(copy, ids, n * sizeof *copy);
        for (k = 0; used_len; used_len -= text) {
            end = memchr(block, delimiter, used_len);
            text = end ? (size_t)(end - block) : used_len;
            assert_int_equal(pf_encode(alone, block, text, &want, &n_want,
                NULL), PF_OK);
            assert_true(n_want <= n - k);
            assert_memory_equal(copy + k, want, n_want * sizeof *want);
            k += n_want;
            if (end) {
                assert_true(k < n);
                assert_int_equal(copy[k++], mark);
                text++;
            }
            block += text;
            len -= text;
        }
        assert_int_equal(k, n);
        free(copy);
        if (!valid && len) { /* the next one by itself */
            end = memchr(block, delimiter, len);
            text = end ? (size_t)(end - block) + 1 : len;
            assert_int_equal(pf_encode(used, block, text, &want, &n_want,
                NULL), PF_OK);
            block += text;
            len -= text;
        }
    }
}

static void
test_texts(void **state)
{
    static const char *const parts[] = { "a", " ", "  ", "\t", "'ll", "12",
        "\xc2\xa0", "\xe7\x9a\x84", "\xf0\x9f\x98\x80", "The", " the",
        "abcdefghijklmnop", "====================================",
        " \xd0\xbf\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82", "\r",
        "<|endoftext|>", "\xff" };
    enum { SIZE = 200000, N_PARTS = sizeof parts / sizeof *parts };
    struct pf_encoder *used = new_encoder(gpt2, false);
    struct pf_encoder *alone = new_encoder(gpt2, false), *special;
    char *block = malloc(SIZE + 100), delimiter;
    uint64_t r = 1;
    uint32_t mark;
    const uint32_t *ids;
    size_t len, n, used_len;

    (void)state;
    assert_non_null(block);
    for (int i = 0; i < 60; i++) {
        bool valid = i % 3 > 0;
        size_t size = i % 10 ? 3000 : SIZE;
        size_t n_parts = N_PARTS - (size_t)valid; /* the last is no UTF-8 */

        delimiter = i % 2 ? '\n' : '\0';
        for (len = 0; len < size;) {
            size_t k;

            r = r * 6364136223846793005 + 1442695040888963407;
            k = (r >> 33) % (n_parts + 8);
            if (k < n_parts) {
                memcpy(block + len, parts[k], strlen(parts[k]));
                len += strlen(parts[k]);
            } else if (k % 3 == 0) {
                block[len++] = delimiter;
            } else { /* a word that is new */
                for (k = 2 + (r >> 50) % 40; k; k--) {
                    r = r * 6364136223846793005 + 1442695040888963407;
                    block[len++] = (char)('a' + (r >> 33) % 26);
                }
            }
        }
        expect_texts(used, alone, block, len, delimiter, valid);
        block[len - 1] = delimiter; /* maybe within a character */
        expect_texts(used, alone, block, len, delimiter, false);
    }
    /* Where it cannot be, nothing is used. */
    special = new_encoder(gpt2, true);
    assert_int_equal(pf_encode_texts(special, "a\nb", 3, '\n', &used_len,
        &ids, &n, &mark, NULL), PF_OK);
    assert_int_equal(used_len, 0);
    pf_encoder_track(used);
    assert_int_equal(pf_encode_texts(used, "a\nb", 3, '\n', &used_len, &ids,
        &n, &mark, NULL), PF_OK);
    assert_int_equal(used_len, 0);
    memset(block, 'a', SIZE); /* too long to be together with others */
    assert_int_equal(pf_encode_texts(alone, block, SIZE, '\n', &used_len,
        &ids, &n, &mark, NULL), PF_OK);
    assert_int_equal(used_len, 0);
    pf_encoder_free(special);
    pf_encoder_free(used);
    pf_encoder_free(alone);
    free(block);
}

/* Files as strings; NULL: not there. */
static enum pf_status
parse(struct pf_tokenizer **tok, const char *vocab, const char *merges,
    const char *config, const char *special, struct pf_err *err)
{
    struct pf_tokenizer_files f = {
        "x/",
        { vocab, vocab ? strlen(vocab) : 0 },
        { merges, merges ? strlen(merges) : 0 },
        { config, config ? strlen(config) : 0 },
        { special, special ? strlen(special) : 0 },
    };

    return pf_tokenizer_gpt2(tok, &f, err);
}

static void
test_refused(void **state)
{
    static const struct {
        const char *vocab, *merges, *config, *special, *says;
    } cases[] = {
        { NULL, "", NULL, NULL, "x/vocab.json: not there" },
        { "{\"a\":0}", NULL, NULL, NULL, "x/merges.txt: not there" },
        { "{}", "", NULL, NULL, "x/vocab.json: no tokens" },
        { "[]", "", NULL, NULL, "x/vocab.json: JSON has '['" },
        { "{\"a\":0", "", NULL, NULL, "x/vocab.json: JSON ends" },
        { "{\"a\":0}]", "", NULL, NULL, "x/vocab.json: JSON has ']'" },
        { "{\"model\":\"char\",\"vocab\":{\"A\":0}}", "", NULL, NULL,
            "\"model\" has no id: this is not the vocabulary of a byte-level "
            "BPE" },
        { "{\"a\":1.5}", "", NULL, NULL, "1.5 is not an integer" },
        { "{\"a\":-1}", "", NULL, NULL, "the id of token a is not in 0 to" },
        { "{\"a\":16777216}", "", NULL, NULL, "the id of token a is not in" },
        { "{\"a\":99999999999999999999}", "", NULL, NULL,
            "the id of token a is not in 0 to" },
        { "{\"a\":0,\"b\":0}", "", NULL, NULL,
            "id 0 is given to two tokens, the second is b" },
        { "{\"a\":0,\"a\":1}", "", NULL, NULL,
            "token a has two ids, 0 and 1" },
        { "{\"a\\n\":0,\"a\\u010a\":1}", "", NULL, NULL,
            "token a\\x0a has two ids, 0 and 1" },
        { "{\"a\":0}", "a b", NULL, NULL,
            "x/merges.txt: line 1 merges b, which is not in the vocabulary" },
        { "{\"a\":0}", "#version: 0.2\r\na a\r\n", NULL, NULL,
            "x/merges.txt: line 2 makes a token that is not in the "
            "vocabulary: a a" },
        { "{\"a\":0,\"aa\":1}", "a a\n\na aa", NULL, NULL,
            "line 2 is not two symbols" },
        { "{\"a\":0,\"aa\":1}", "a  a", NULL, NULL, "line 1 is not two" },
        { "{\"a\":0,\"aa\":1}", "a a a", NULL, NULL, "line 1 is not two" },
        { "{\"a\":0,\"aa\":1}", " a", NULL, NULL, "line 1 is not two" },
        { "{\"a\":0,\"aa\":1}", "a ", NULL, NULL, "line 1 is not two" },
        { "{\"a\":0,\"aa\":1}", "a\ta", NULL, NULL, "line 1 is not two" },
        { "{\"a\":0,\"aa\":1}", "a a\xff", NULL, NULL,
            "line 1 has a character that stands for no byte" },
        { "{\"a\":0}", "", "{\"tokenizer_class\":\"LlamaTokenizer\"}", NULL,
            "x/tokenizer_config.json: tokenizer_class LlamaTokenizer is not "
            "supported" },
        { "{\"a\":0}", "", "{\"tokenizer_class\":3}", NULL,
            "tokenizer_class that is no string" },
        { "{\"a\":0}", "", "{", NULL, "x/tokenizer_config.json: is no JSON" },
        { "{\"a\":0}", "", "{} x", NULL, "is no JSON from byte 3 on" },
        { "{\"a\":0}", "", "", NULL, "is no JSON from byte 0 on" },
        { "{\"a\":0}", "", "[]", NULL, "is no JSON object" },
        { "{\"a\":0}", "", NULL, "3", "x/special_tokens_map.json: is no" },
        { "{\"a\":0}", "", NULL, "{\"bos_token\":{}}", "a token is neither" },
        { "{\"a\":0}", "", NULL,
            "{\"mask_token\":{\"content\":\"<m>\",\"lstrip\":1}}",
            "lstrip is neither true nor false" },
        { "{\"a\":0}", "", "{\"add_bos_token\":1}", NULL,
            "add_bos_token is neither true nor false" },
        { "{\"a\":0}", "", "{\"add_bos_token\":true}", NULL,
            "there is no bos_token" },
        { "{\"a\":0}", "", "{\"add_bos_token\":true,\"bos_token\":\"<s>\"}",
            NULL, "bos_token <s> is not in the vocabulary" },
        { "{\"a\":0}", "",
            "{\"added_tokens_decoder\":{\"x\":{\"content\":\"b\"}}}", NULL,
            "added_tokens_decoder has x, which is no id" },
        { "{\"a\":0}", "",
            "{\"added_tokens_decoder\":{\"1\":{\"content\":\"\"}}}", NULL,
            "a token is empty" },
        { "{\"a\":0}", "",
            "{\"added_tokens_decoder\":{\"1\":{\"content\":\"a\"}}}", NULL,
            "token a has id 1, in vocab.json it has 0" },
        { "{\"a\":0}", "",
            "{\"added_tokens_decoder\":{\"0\":{\"content\":\"b\"}}}", NULL,
            "id 0 is given to two tokens, the second is b" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pf_tokenizer *tok;
        struct pf_err err = { PF_OK, "" };
        enum pf_status st = parse(&tok, cases[i].vocab, cases[i].merges,
            cases[i].config, cases[i].special, &err);

        assert_null(tok);
        assert_int_not_equal(st, PF_OK);
        assert_int_equal(st, err.status);
        if (!strstr(err.msg, cases[i].says))
            fail_msg("\"%s\" is not in \"%s\"", cases[i].says, err.msg);
        assert_int_equal(parse(&tok, cases[i].vocab, cases[i].merges,
            cases[i].config, cases[i].special, NULL), st);
    }
}

/* Holes, CR LF, no end of the last line, tokens taken literally. */
static void
test_forms(void **state)
{
    static const char vocab[] = "{\"a\": 7, \"b\": 2, \"ab\": 4, \"\\u0120\":"
        " 0, \"<p q>\": 9, \"\\u0120ab\": 5, \"\\u00e9\": 11,"
        " \"<\\u00e9>\": 12}";
    static const uint32_t want[] = { 4, 5, 7, 7, 11 };
    struct pf_tokenizer *tok;
    struct pf_encoder *enc;
    struct pf_err err;
    const char *bytes;
    uint32_t id;
    size_t len;

    (void)state;
    if (parse(&tok, vocab, "#version: 0.2\r\na b\r\n\304\240 ab", NULL,
            "{\"pad_token\":\"<\303\251>\",\"eos_token\":\"\"}", &err))
        fail_msg("%s", err.msg);
    assert_int_equal(pf_tokenizer_size(tok), 13);
    assert_null(pf_tokenizer_token(tok, 1, &len));
    bytes = pf_tokenizer_token(tok, 9, &len);
    assert_int_equal(len, 5);
    assert_memory_equal(bytes, "<p q>", 5);
    bytes = pf_tokenizer_token(tok, 11, &len);
    assert_int_equal(len, 1);
    assert_memory_equal(bytes, "\xe9", 1);
    assert_true(pf_tokenizer_find_special(tok, "<\303\251>", 4, &id));
    assert_int_equal(id, 12);
    assert_false(pf_tokenizer_special(tok, 1, &id));
    enc = new_encoder(tok, false);
    expect_ids(enc, "ab abaa\xe9", 8, want, 5);
    pf_encoder_free(enc);
    pf_tokenizer_free(tok);
}

static void
test_special(void **state)
{
    static const char vocab[] = "{\"a\":0,\"<\":1,\"|\":2,\">\":3,\"<|\":4,"
        "\"<|>\":5,\"<|a|>\":6,\"<|a|>a\":7,\"b\":8,\"aa\":9}";
    static const char config[] = "{\"bos_token\":\"<|a|>\",\"added_tokens_"
        "decoder\":{\"7\":{\"content\":\"<|a|>a\",\"special\":true},"
        "\"12\":{\"content\":\"<|x|>\",\"special\":true},"
        "\"9\":{\"content\":\"aa\",\"special\":false}},\"add_bos_token\":true,"
        "\"unk_token\":\"<none>\",\"additional_special_tokens\":[\"b\"]}";
    static const uint32_t none[] = { 1, 2, 0, 2, 3, 9, 8 };
    static const uint32_t one[] = { 6, 9, 8 }, all[] = { 7, 0, 8 };
    static const uint32_t ids[] = { 6, 7, 8, 12 };
    struct pf_tokenizer *tok;
    struct pf_encoder *enc;
    struct pf_err err;
    const struct pf_slot *slots;
    uint32_t id;

    (void)state;
    if (parse(&tok, vocab, "", config, NULL, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(pf_tokenizer_size(tok), 13);
    for (size_t i = 0; i < 4; i++) {
        assert_true(pf_tokenizer_special(tok, i, &id));
        assert_int_equal(id, ids[i]);
    }
    assert_false(pf_tokenizer_special(tok, 4, &id));
    assert_false(pf_tokenizer_is_special(tok, 9));
    assert_int_equal(pf_tokenizer_frame(tok, false, &slots), 2);
    assert_int_equal(slots[0].id, 6);
    assert_int_equal(slots[1].id, PF_SLOT_TEXT);
    assert_int_equal(pf_tokenizer_frame(tok, true, &slots), 4);
    enc = new_encoder(tok, false);
    expect_ids(enc, "<|a|>aab", 8, none, 7);
    assert_int_equal(pf_encoder_special_add(enc, "aa", 2, NULL), PF_ERANGE);
    assert_int_equal(pf_encoder_special_add(enc, "<|a|>", 5, NULL), PF_OK);
    expect_ids(enc, "<|a|>aab", 8, one, 3);
    pf_encoder_special_all(enc);
    expect_ids(enc, "<|a|>aab", 8, all, 3);
    pf_encoder_free(enc);
    pf_tokenizer_free(tok);
}

/* Each segment gets its space, the one behind a special token too. */
static void
test_prefix_space(void **state)
{
    static const char vocab[] = "{\"a\":0,\"\\u0120\":1,\"\\u0120a\":2,"
        "\"<|x|>\":3,\"\\u00ff\":4,\"\\u010a\":5}";
    static const uint32_t want[] = { 2, 2, 3, 2, 3, 2, 1, 2, 4, 2, 4, 1, 5,
        0 };
    static const char text[] = "a a<|x|>a<|x|> a  a\xff" "a\xff\na";
    struct pf_tokenizer *tok;
    struct pf_encoder *enc;
    struct pf_err err;

    (void)state;
    if (parse(&tok, vocab, "\304\240 a", "{\"add_prefix_space\":true}", NULL,
            &err))
        fail_msg("%s", err.msg);
    enc = new_encoder(tok, true);
    expect_ids(enc, text, sizeof text - 1, want, 14);
    pf_encoder_free(enc);
    pf_tokenizer_free(tok);
}

static bool
shared(char path[1000], const char *name)
{
    const char *root = getenv("PIPEFORMER_SHARED");

    snprintf(path, 1000, "%s/models/%s", root && *root ? root
        : PF_TEST_VOCAB "/../../shared", name);
    if (access(path, F_OK) == 0)
        return true;
    print_message("%s is not there\n", path);
    return false;
}

/* 21 tokens, of which merges reach a few only. */
static void
test_tiny(void **state)
{
    static const uint32_t lower[] = { 0, 1, 2, 15, 10, 9, 3, 2, 15 };
    static const uint32_t lowest[] = { 14, 3, 5, 6, 19, 20 };
    struct pf_tokenizer *tok;
    struct pf_encoder *enc;
    struct pf_err err;
    const uint32_t *ids;
    char path[1000];
    size_t n;

    (void)state;
    if (!shared(path, "tiny-gpt2-random"))
        skip();
    tok = open_tokenizer(path);
    enc = new_encoder(tok, true);
    assert_int_equal(pf_tokenizer_size(tok), 21);
    expect_ids(enc, "lower newer", 11, lower, 9);
    expect_ids(enc, " lowest<unk><|endoftext|>", 25, lowest, 6);
    assert_int_equal(pf_encode(enc, "lowz", 4, &ids, &n, &err), PF_EMODEL);
    assert_string_equal(err.msg, "the vocabulary has no token for byte 0x7a "
        "(z)");
    expect_ids(enc, "lower newer", 11, lower, 9);
    pf_encoder_free(enc);
    pf_tokenizer_free(tok);
}

static void
test_others(void **state)
{
    struct pf_tokenizer *tok;
    struct pf_err err;
    char path[1000];

    (void)state;
    assert_int_equal(pf_tokenizer_open(&tok, "/nonexistent", &err), PF_EMODEL);
    assert_string_equal(err.msg, "there is no /nonexistent/tokenizer.json, no "
        "vocab.json and no vocab.txt");
    if (!shared(path, "gpt-nano-sort"))
        skip();
    assert_int_equal(pf_tokenizer_open(&tok, path, &err), PF_EFORMAT);
    assert_non_null(strstr(err.msg, "gpt-nano-sort/vocab.json: \"model\" has "
        "no id"));
    assert_true(shared(path, "stories260K"));
    assert_int_equal(pf_tokenizer_open(&tok, path, &err), PF_OK);
    assert_int_equal(pf_tokenizer_size(tok), 512);
    pf_tokenizer_free(tok);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_sha256),
        cmocka_unit_test(test_stress),
        cmocka_unit_test(test_fairy),
        cmocka_unit_test(test_gpt2),
        cmocka_unit_test(test_invalid),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_special),
        cmocka_unit_test(test_prefix_space),
        cmocka_unit_test(test_tiny),
        cmocka_unit_test(test_others),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
