/*
 * The words and pieces of BERT: by hand; by a search without the table of
 * lengths; and, through the whole chain, against the ids of HuggingFace
 * tokenizers 0.22.2 (golden/tokenizer/wordpiece*.ndjson; "ids" is its answer
 * where others differ).  bert-base-cased does not ship: its cases need the
 * vocabulary in $PIPEFORMER_SHARED.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <pipeformer/io.h>
#include <pipeformer/json.h>
#include <pipeformer/utf8.h>

#include "../../src/normalize.h"
#include "../../src/wordpiece.h"

enum { UNK = 100, CLS = 101, SEP = 102 };

/* One that tokenizes; vocab NULL where there is none. */
struct bert {
    struct pf_vocab *vocab;
    struct pf_wordpiece *wp;
    struct pf_wordpiece_work work;
    struct pf_norm_step step;
    struct pf_ntext text;
    struct pf_buf ids; /* of uint32_t */
};

static struct bert uncased, cased;

static struct pf_vocab *
vocab_of(const char *const *tokens, size_t n)
{
    struct pf_vocab *v;

    assert_int_equal(pf_vocab_new(&v, n, NULL), PF_OK);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(pf_vocab_add(v, (uint32_t)i, tokens[i],
            strlen(tokens[i]), NULL), PF_OK);
    return v;
}

static int
open_bert(struct bert *b, const char *path, bool lower)
{
    char *data, *end;
    uint32_t id = 0;
    size_t len;

    *b = (struct bert){ .text = PF_NTEXT_INIT,
        .work = PF_WORDPIECE_WORK_INIT, .ids = PF_BUF_INIT };
    b->step = (struct pf_norm_step){ .kind = PF_NORM_BERT, .clean = true,
        .cjk = true, .accents = lower, .lower = lower };
    if (access(path, F_OK) != 0) {
        print_message("%s is not there\n", path);
        return 0;
    }
    if (pf_read_file(path, 1 << 20, &data, &len, NULL)
        || pf_vocab_new(&b->vocab, 31000, NULL))
        return -1;
    for (char *p = data; p < data + len; p = end + 1) {
        end = memchr(p, '\n', (size_t)(data + len - p));
        if (!end || pf_vocab_add(b->vocab, id++, p, (size_t)(end - p), NULL))
            return -1;
    }
    free(data);
    return pf_wordpiece_new(&b->wp, b->vocab, "##", 2, UNK, 100, NULL);
}

static void
close_bert(struct bert *b)
{
    pf_wordpiece_free(b->wp);
    pf_vocab_free(b->vocab);
    pf_wordpiece_work_fini(&b->work);
    pf_ntext_fini(&b->text);
    pf_buf_fini(&b->ids);
}

static int
setup(void **state)
{
    const char *root = getenv("PIPEFORMER_SHARED");
    char path[1000];

    (void)state;
    snprintf(path, sizeof path, "%s/vocab/test/bert-base-cased/vocab.txt",
        root && *root ? root : PF_TEST_VOCAB "/../../shared");
    return open_bert(&uncased, PF_TEST_VOCAB "/bert-base-uncased/vocab.txt",
        true) || open_bert(&cased, path, false);
}

static int
teardown(void **state)
{
    (void)state;
    close_bert(&uncased);
    close_bert(&cased);
    return 0;
}

/* --- Words. */

static void
expect_words(const char *text, size_t len, const char *const *want)
{
    char *copy = malloc(len ? len : 1);
    struct pf_bert_words w;
    const char *word;
    size_t n;

    assert_non_null(copy);
    memcpy(copy, text, len);
    pf_bert_words_begin(&w, copy, len);
    for (; *want; want++) {
        assert_true(pf_bert_words_next(&w, &word, &n));
        if (n != strlen(*want) || memcmp(word, *want, n) != 0)
            fail_msg("word \"%.*s\" of \"%s\" should be \"%s\"", (int)n,
                word, text, *want);
    }
    assert_false(pf_bert_words_next(&w, &word, &n));
    assert_false(pf_bert_words_next(&w, &word, &n));
    free(copy);
}

static void
test_words(void **state)
{
    static const struct {
        const char *text, *words[10];
    } cases[] = {
        { "", { NULL } },
        { " \t\u3000\n", { NULL } },
        { "a", { "a" } },
        { "one two", { "one", "two" } },
        { " don't\u2028stop... ", { "don", "'", "t", "stop", ".", ".",
            "." } },
        { "\u00a1hola!", { "\u00a1", "hola", "!" } },
        { "$1^2\u20ac", { "$", "1", "^", "2\u20ac" } },
        { "a\u00a0b\xc2\x85" "c\vd\x1c" "e", { "a", "b", "c", "d\x1c" "e" } },
        { "a\x80\xe2\x80,b", { "a\x80\xe2\x80", ",", "b" } },
        { "\u2019\u3002x", { "\u2019", "\u3002", "x" } },
        { "word\xe3\x80", { "word\xe3\x80" } },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_words(cases[i].text, strlen(cases[i].text), cases[i].words);
}

/* --- Pieces. */

static void
expect_pieces(const struct pf_wordpiece *wp, const char *word,
    const uint32_t *want, const size_t *want_ends, size_t n_want)
{
    struct pf_wordpiece_work work = PF_WORDPIECE_WORK_INIT;
    size_t len = strlen(word), ends[300], n;
    uint32_t ids[300];

    assert_true(len <= 300);
    assert_int_equal(pf_wordpiece_split(wp, &work, word, len, ids, ends, &n,
        NULL), PF_OK);
    if (n != n_want || memcmp(ids, want, n * sizeof *ids) != 0)
        fail_msg("wrong pieces for \"%s\"", word);
    assert_memory_equal(ends, want_ends, n * sizeof *ends);
    assert_int_equal(pf_wordpiece_split(wp, &work, word, len, ids, NULL, &n,
        NULL), PF_OK);
    assert_int_equal(n, n_want);
    assert_memory_equal(ids, want, n * sizeof *ids);
    pf_wordpiece_work_fini(&work);
}

#define IDS(...) (const uint32_t[]){ __VA_ARGS__ }
#define EIGHT "\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9"
#define ENDS(...) (const size_t[]){ __VA_ARGS__ }

static void
test_pieces(void **state)
{
    static const char *const tokens[] = { "[UNK]", "un", "##aff", "##able",
        "unaff", "##abl", "a", "##a", "\u00e9", "##\u00e9", "#", "##", "##b",
        "able", "##\xc3", "\xc3", "##\xa8" };
    struct pf_vocab *v = vocab_of(tokens, sizeof tokens / sizeof *tokens);
    struct pf_wordpiece *wp, *bare;

    (void)state;
    assert_int_equal(pf_wordpiece_new(&wp, v, "##", 2, 0, 8, NULL), PF_OK);
    expect_pieces(wp, "unaffable", IDS(0), ENDS(9), 1); /* nine characters */
    expect_pieces(wp, "unaffabl", IDS(4, 5), ENDS(5, 8), 2);
    expect_pieces(wp, "able", IDS(13), ENDS(4), 1);
    expect_pieces(wp, "aable", IDS(6, 3), ENDS(1, 5), 2);
    expect_pieces(wp, "unx", IDS(0), ENDS(3), 1);
    expect_pieces(wp, "xun", IDS(0), ENDS(3), 1);
    expect_pieces(wp, "aa\u00e9", IDS(6, 7, 9), ENDS(1, 2, 4), 3);
    expect_pieces(wp, "\u00e9\u00e9", IDS(8, 9), ENDS(2, 4), 2);
    /* half a character is no piece, though the vocabulary has it */
    expect_pieces(wp, "a\u00e8", IDS(0), ENDS(3), 1);
    expect_pieces(wp, "\u00e8", IDS(0), ENDS(2), 1);
    expect_pieces(wp, "#", IDS(10), ENDS(1), 1);
    expect_pieces(wp, "##", IDS(11), ENDS(2), 1);
    expect_pieces(wp, "##b", IDS(12), ENDS(3), 1); /* as HuggingFace has it */
    expect_pieces(wp, "###", IDS(0), ENDS(3), 1);
    /* eight characters of two bytes, and nine */
    expect_pieces(wp, EIGHT, IDS(8, 9, 9, 9, 9, 9, 9, 9),
        ENDS(2, 4, 6, 8, 10, 12, 14, 16), 8);
    expect_pieces(wp, EIGHT "a", IDS(0), ENDS(17), 1);
    pf_wordpiece_free(wp);

    assert_int_equal(pf_wordpiece_new(&bare, v, "", 0, 0, 100, NULL), PF_OK);
    expect_pieces(bare, "unable", IDS(1, 13), ENDS(2, 6), 2);
    expect_pieces(bare, "##aff##b", IDS(2, 12), ENDS(5, 8), 2);
    pf_wordpiece_free(bare);
    pf_vocab_free(v);
}

/* The words of a vocabulary cut and joined, against a search of every length
 * in characters. */
static void
test_random(void **state)
{
    struct pf_wordpiece_work work = PF_WORDPIECE_WORK_INIT;
    uint32_t ids[400], want[400], r = 1, id;
    size_t ends[400], want_ends[400], n, n_want, len, k, at, end;
    char word[400], key[402];
    const char *p;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        len = 0;
        for (int part = 0; part < 1 + i % 4; part++) {
            r = r * 1664525 + 1013904223;
            p = pf_vocab_bytes(uncased.vocab, (r >> 8) % 30522, &k);
            assert_true(k < 90);
            at = (r >> 4) % 3 == 0 && k > 3 ? 2 : 0;
            while (at < k && ((unsigned char)p[at] & 0xc0) == 0x80)
                at++;
            memcpy(word + len, p + at, k - at);
            len += k - at;
        }
        n_want = 0;
        for (at = 0; at < len; at = end) {
            for (end = len; end > at; end--) {
                if (end < len && ((unsigned char)word[end] & 0xc0) == 0x80)
                    continue;
                memcpy(key, "##", 2);
                memcpy(key + 2, word + at, end - at);
                if (pf_vocab_find(uncased.vocab, at ? key : key + 2,
                        end - at + (at ? 2 : 0), &id))
                    break;
            }
            if (end == at)
                break;
            want[n_want] = id;
            want_ends[n_want++] = end;
        }
        if (at < len) {
            want[0] = UNK;
            want_ends[0] = len;
            n_want = 1;
        }
        if (len == 0)
            continue;
        assert_int_equal(pf_wordpiece_split(uncased.wp, &work, word, len,
            ids, ends, &n, NULL), PF_OK);
        assert_int_equal(n, n_want);
        assert_memory_equal(ids, want, n * sizeof *ids);
        assert_memory_equal(ends, want_ends, n * sizeof *ends);
    }
    pf_wordpiece_work_fini(&work);
}

/* --- The whole chain. */

static void
encode_part(struct bert *b, const char *text, size_t len)
{
    struct pf_bert_words words;
    const char *word;
    uint32_t *ids;
    size_t n;

    assert_int_equal(pf_normalize(&b->step, 1, &b->text, text, len, NULL),
        PF_OK);
    pf_bert_words_begin(&words, b->text.bytes.data, b->text.bytes.len);
    while (pf_bert_words_next(&words, &word, &len)) {
        ids = malloc(len * sizeof *ids);
        assert_non_null(ids);
        assert_int_equal(pf_wordpiece_split(b->wp, &b->work, word, len, ids,
            NULL, &n, NULL), PF_OK);
        pf_buf_add(&b->ids, ids, n * sizeof *ids);
        free(ids);
    }
}

static void
add_id(struct bert *b, uint32_t id)
{
    pf_buf_add(&b->ids, &id, sizeof id);
}

/* A text and its end; with `special`, what those five names leave of it. */
static void
encode(struct bert *b, const struct pf_buf *text, bool special)
{
    static const struct {
        const char *name;
        uint32_t id;
    } names[] = { { "[PAD]", 0 }, { "[UNK]", UNK }, { "[CLS]", CLS },
        { "[SEP]", SEP }, { "[MASK]", 103 } };
    const char *p = text->len ? text->data : "";
    size_t from = 0, n;

    for (size_t i = 0; special && i < text->len; i++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            n = strlen(names[k].name);
            if (text->len - i < n || memcmp(p + i, names[k].name, n) != 0)
                continue;
            encode_part(b, p + from, i - from);
            add_id(b, names[k].id);
            from = i + n;
            i = from - 1;
            break;
        }
    encode_part(b, p + from, text->len - from);
    add_id(b, SEP);
}

/* A line of a golden file. */
struct line {
    struct pf_buf model, text, pair, special;
    uint32_t ids[2000];
    size_t n;
    bool has_pair;
};

static bool
is(const struct pf_buf *b, const char *s)
{
    return b->len == strlen(s) && (!b->len || !memcmp(b->data, s, b->len));
}

static void
parse_ids(struct pf_json *j, struct line *l)
{
    bool first = true;
    int64_t id;

    l->n = 0;
    assert_int_equal(pf_json_open(j, '[', NULL), PF_OK);
    while (!pf_json_next(j, ']', &first, NULL)) {
        assert_int_equal(pf_json_i64(j, &id, NULL), PF_OK);
        assert_true(l->n < 2000);
        l->ids[l->n++] = (uint32_t)id;
    }
}

static void
parse_line(const char *data, size_t len, struct line *l)
{
    struct pf_json j = pf_json_at(data, len);
    struct pf_buf key = PF_BUF_INIT;
    enum pf_status st = PF_OK;
    bool first = true;
    const char *raw;
    size_t n;

    pf_buf_clear(&l->model);
    pf_buf_clear(&l->text);
    pf_buf_clear(&l->pair);
    pf_buf_clear(&l->special);
    l->has_pair = false;
    assert_int_equal(pf_json_open(&j, '{', NULL), PF_OK);
    while (!pf_json_next(&j, '}', &first, NULL)) {
        pf_buf_clear(&key);
        assert_int_equal(pf_json_key(&j, &key, NULL), PF_OK);
        if (is(&key, "model"))
            st = pf_json_string(&j, &l->model, NULL);
        else if (is(&key, "text"))
            st = pf_json_string(&j, &l->text, NULL);
        else if (is(&key, "pair"))
            st = pf_json_string(&j, &l->pair, NULL);
        else if (is(&key, "special"))
            st = pf_json_string(&j, &l->special, NULL);
        else if (is(&key, "ids"))
            parse_ids(&j, l);
        else
            st = pf_json_value(&j, &raw, &n, NULL);
        l->has_pair |= is(&key, "pair");
        assert_int_equal(st, PF_OK);
    }
    pf_buf_fini(&key);
}

static void
check_line(const struct line *l)
{
    struct bert *b = is(&l->model, "bert-base-cased") ? &cased : &uncased;
    bool special = !is(&l->special, "none");

    assert_true(b == &cased || is(&l->model, "bert-base-uncased"));
    if (!b->vocab)
        return;
    pf_buf_clear(&b->ids);
    add_id(b, CLS);
    encode(b, &l->text, special);
    if (l->has_pair)
        encode(b, &l->pair, special);
    if (b->ids.len != l->n * sizeof *l->ids
        || memcmp(b->ids.data, l->ids, b->ids.len) != 0)
        fail_msg("wrong ids for \"%.*s\"", (int)l->text.len,
            l->text.len ? l->text.data : "");
}

static void
each_line(const char *name, size_t count, void (*fn)(const char *, size_t))
{
    char path[500], *data, *end;
    size_t len, n = 0;
    struct pf_err err;

    snprintf(path, sizeof path, PF_TEST_GOLDEN "/tokenizer/%s", name);
    if (pf_read_file(path, 1 << 24, &data, &len, &err))
        fail_msg("%s", err.msg);
    for (char *p = data; p < data + len; p = end + 1, n++) {
        end = memchr(p, '\n', (size_t)(data + len - p));
        assert_non_null(end);
        fn(p, (size_t)(end - p));
    }
    assert_int_equal(n, count);
    free(data);
}

static void
golden_line(const char *data, size_t len)
{
    static struct line l;

    parse_line(data, len, &l);
    check_line(&l);
    pf_buf_fini(&l.model);
    pf_buf_fini(&l.text);
    pf_buf_fini(&l.pair);
    pf_buf_fini(&l.special);
}

static void
test_golden(void **state)
{
    (void)state;
    each_line("wordpiece.ndjson", 437, golden_line);
    each_line("wordpiece_disagreements.ndjson", 47, golden_line);
    each_line("wordpiece_pairs.ndjson", 6, golden_line);
}

/* --- Back to text. */

static void
decode_line(const char *data, size_t len)
{
    struct pf_json j = pf_json_at(data, len);
    struct pf_buf key = PF_BUF_INIT, token = PF_BUF_INIT, want = PF_BUF_INIT;
    struct pf_buf out[2] = { PF_BUF_INIT, PF_BUF_INIT };
    bool first = true, first_token = true;
    int clean;

    assert_int_equal(pf_json_open(&j, '{', NULL), PF_OK);
    while (!pf_json_next(&j, '}', &first, NULL)) {
        pf_buf_clear(&key);
        assert_int_equal(pf_json_key(&j, &key, NULL), PF_OK);
        if (is(&key, "tokens")) {
            bool start = true;

            assert_int_equal(pf_json_open(&j, '[', NULL), PF_OK);
            while (!pf_json_next(&j, ']', &first_token, NULL)) {
                pf_buf_clear(&token);
                assert_int_equal(pf_json_string(&j, &token, NULL), PF_OK);
                for (clean = 0; clean < 2; clean++)
                    pf_wordpiece_decode(&out[clean], token.data, token.len,
                        start, "##", 2, clean);
                start = false;
            }
            continue;
        }
        clean = is(&key, "clean");
        pf_buf_clear(&want);
        assert_int_equal(pf_json_string(&j, &want, NULL), PF_OK);
        pf_buf_addc(&want, '\0');
        pf_buf_addc(&out[clean], '\0');
        assert_string_equal(out[clean].data, want.data);
    }
    pf_buf_fini(&key);
    pf_buf_fini(&token);
    pf_buf_fini(&want);
    pf_buf_fini(&out[0]);
    pf_buf_fini(&out[1]);
}

/* Tokens of the pieces that the clean-up looks for, as HuggingFace's decoder
 * joins them, without it ("text") and with it ("clean"). */
static void
test_decode(void **state)
{
    (void)state;
    each_line("wordpiece_decode.ndjson", 60, decode_line);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_decode),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
