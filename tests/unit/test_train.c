/*
 * The trainer against the plain form of the rule (count all pairs, take the
 * best, join it everywhere, begin again), on random words of few letters, which
 * have runs and ties; against merges that HuggingFace's own trainer learnt
 * (golden/tokenizer/train.ndjson, tokenizers 0.22.2); and against itself with
 * other numbers of threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cjson/cJSON.h>
#include <pipeformer/io.h>
#include <pipeformer/pool.h>

#include "../../src/train-private.h"

static uint64_t seed = 1;

static uint32_t
draw(uint32_t n)
{
    seed = seed * 6364136223846793005 + 1442695040888963407;
    return (uint32_t)(seed >> 33) % n;
}

static struct pf_pool *
threads(size_t n)
{
    struct pf_pool *pool;

    assert_int_equal(pf_pool_new(&pool, n, NULL), PF_OK);
    return pool;
}

static struct pf_trainer *
trainer(const char *pattern, struct pf_pool *pool)
{
    struct pf_trainer *t;

    assert_int_equal(pf_trainer_new(&t, pattern, pool, NULL), PF_OK);
    return t;
}

/* A file with a NUL behind it; the caller frees it. */
static struct pf_buf
file_of(const struct pf_trainer *t, enum pf_train_file file)
{
    struct pf_buf b = PF_BUF_INIT;

    assert_int_equal(pf_trainer_file(t, file, &b, NULL), PF_OK);
    pf_buf_addc(&b, '\0');
    assert_false(b.failed);
    return b;
}

/* Trains on a text with all letters seen, and returns a file. */
static struct pf_buf
train_text(const char *pattern, size_t n_threads, const char *text, size_t len,
    const struct pf_train *train, enum pf_train_file file)
{
    struct pf_pool *pool = threads(n_threads);
    struct pf_trainer *t = trainer(pattern, pool);
    struct pf_buf b;

    assert_int_equal(pf_trainer_lines(t, text, len, NULL), PF_OK);
    assert_int_equal(pf_trainer_learn(t, train, NULL), PF_OK);
    b = file_of(t, file);
    pf_trainer_free(t);
    pf_pool_free(pool);
    return b;
}

static const struct pf_train all_seen = { .size = 30000, .seen_only = true };

static void
is_text(struct pf_buf b, const char *want)
{
    assert_string_equal(b.data, want);
    pf_buf_fini(&b);
}

static void
test_golden(void **state)
{
    char *data, *line, *next, *end;
    const cJSON *merges, *m;
    size_t len, n, cases = 0;
    struct pf_buf b;

    (void)state;
    assert_int_equal(pf_read_file(PF_TEST_GOLDEN "/tokenizer/train.ndjson",
        1 << 20, &data, &len, NULL), PF_OK);
    for (line = data; *line; line = next) {
        cJSON *doc;
        const char *text;

        next = strchr(line, '\n');
        *next++ = '\0';
        doc = cJSON_Parse(line);
        assert_non_null(doc);
        text = cJSON_GetObjectItem(doc, "text")->valuestring;
        b = train_text(cJSON_GetObjectItem(doc, "pattern")->valuestring, 2,
            text, strlen(text), &all_seen, PF_TRAIN_MERGES);
        merges = cJSON_GetObjectItem(doc, "merges");
        line = strchr(b.data, '\n') + 1;
        n = 0;
        cJSON_ArrayForEach(m, merges) {
            end = strchr(line, '\n');
            *end = '\0';
            assert_string_equal(line, m->valuestring);
            line = end + 1;
            n++;
        }
        for (; *line; line = strchr(line, '\n') + 1)
            n++;
        assert_int_equal(n, cJSON_GetObjectItem(doc, "merges_total")
            ->valueint);
        pf_buf_fini(&b);
        cJSON_Delete(doc);
        cases++;
    }
    assert_true(cases >= 10);
    free(data);
}

/* --- The plain form --- */

enum { WORDS = 40, LEN = 24, MERGES = 200 };

struct plain {
    uint32_t words[WORDS][LEN];
    size_t lens[WORDS], n;
    uint64_t counts[WORDS];
    struct pf_train_pair merges[MERGES];
    size_t n_merges;
};

/* Joins the best pair; false where none is there `least` times. */
static bool
plain_merge(struct plain *p, uint32_t id, uint64_t least)
{
    struct pf_train_pair best = { 0, 0 };
    uint64_t most = 0, count;

    for (size_t w = 0; w < p->n; w++) {
        for (size_t i = 1; i < p->lens[w]; i++) {
            uint32_t l = p->words[w][i - 1], r = p->words[w][i];

            count = 0;
            for (size_t v = 0; v < p->n; v++)
                for (size_t k = 1; k < p->lens[v]; k++)
                    if (p->words[v][k - 1] == l && p->words[v][k] == r)
                        count += p->counts[v];
            if (count > most || (count == most && (l < best.left
                    || (l == best.left && r < best.right)))) {
                most = count;
                best = (struct pf_train_pair){ l, r };
            }
        }
    }
    if (most == 0 || most < least)
        return false;
    for (size_t w = 0; w < p->n; w++) {
        size_t n = 0;

        for (size_t i = 0; i < p->lens[w]; i++) {
            if (i + 1 < p->lens[w] && p->words[w][i] == best.left
                && p->words[w][i + 1] == best.right) {
                p->words[w][n++] = id;
                i++;
            } else {
                p->words[w][n++] = p->words[w][i];
            }
        }
        p->lens[w] = n;
    }
    p->merges[p->n_merges++] = best;
    return true;
}

static void
against_plain(uint32_t letters)
{
    struct plain p = { .n = 1 + draw(WORDS) };
    struct pf_pool *pool = threads(1);
    struct pf_trainer *t = trainer("gpt2", pool);
    uint32_t merges = 1 + draw(MERGES), left, right, n_seen = 0, kind;
    struct pf_train train = { .seen_only = true, .min_count = draw(4) };
    uint32_t id_of[4] = { 0 };
    char word[LEN];

    for (size_t w = 0; w < p.n; w++) {
        p.lens[w] = 1 + draw(LEN);
        p.counts[w] = 1 + draw(5) * draw(20);
        kind = draw(3);
        for (size_t i = 0; i < p.lens[w]; i++) {
            p.words[w][i] = kind || i == 0 ? draw(letters)
                : p.words[w][i - 1];
            word[i] = (char)('a' + p.words[w][i]);
            id_of[p.words[w][i]] = 1;
        }
        assert_int_equal(pf_trainer_piece(t, word, p.lens[w], p.counts[w],
            NULL), PF_OK);
    }
    for (uint32_t i = 0; i < 4; i++)
        n_seen += id_of[i] ? (id_of[i] = n_seen, 1) : 0;
    for (size_t w = 0; w < p.n; w++)
        for (size_t i = 0; i < p.lens[w]; i++)
            p.words[w][i] = id_of[p.words[w][i]];
    train.size = n_seen + merges;
    while (p.n_merges < merges && plain_merge(&p,
            n_seen + (uint32_t)p.n_merges, train.min_count))
        ;
    assert_int_equal(pf_trainer_learn(t, &train, NULL), PF_OK);
    assert_int_equal(pf_trainer_merges(t), p.n_merges);
    assert_int_equal(pf_trainer_size(t), n_seen + p.n_merges);
    for (size_t i = 0; i < p.n_merges; i++) {
        pf_trainer_merge(t, i, &left, &right);
        assert_int_equal(left, p.merges[i].left);
        assert_int_equal(right, p.merges[i].right);
    }
    pf_trainer_free(t);
    pf_pool_free(pool);
}

static void
test_random(void **state)
{
    (void)state;
    for (int i = 0; i < 300; i++)
        against_plain(1 + draw(4));
}

/* --- The rule by hand --- */

static void
test_rule(void **state)
{
    (void)state;
    /* Equal counts: the smaller left id, then the smaller right id. */
    is_text(train_text("gpt2", 1, "cd\nab\nac\n", 9, &all_seen,
        PF_TRAIN_MERGES), "#version: 0.2\na b\na c\nc d\n");
    /* A run counts each neighbouring pair, and is joined from the left. */
    is_text(train_text("gpt2", 1, "aaaaa", 5, &all_seen, PF_TRAIN_MERGES),
        "#version: 0.2\na a\naa a\naa aaa\n");
    /* A space comes after all letters, as U+0120 does. */
    is_text(train_text("gpt2", 1, "x y", 3, &all_seen, PF_TRAIN_VOCAB),
        "{\"x\":0,\"y\":1,\"\xc4\xa0\":2,\"\xc4\xa0y\":3}\n");
    /* Pieces end with their line: no "\n\n", which gpt2 has otherwise. */
    is_text(train_text("gpt2", 1, "\n\n\n", 3, &all_seen, PF_TRAIN_MERGES),
        "#version: 0.2\n");
    is_text(train_text("cl100k", 1, "!\n\n!\n", 5, &all_seen,
        PF_TRAIN_MERGES), "#version: 0.2\n! \xc4\x8a\n");
    /* Bytes that are not UTF-8 are a piece, which parts the text. */
    is_text(train_text("gpt2", 1, "a\xff\xfe\x62", 4, &all_seen,
        PF_TRAIN_MERGES), "#version: 0.2\n\xc3\xbf \xc3\xbe\n");
    /* Between the matches of a pattern there are pieces too. */
    is_text(train_text("b+", 1, "abba", 4, &all_seen, PF_TRAIN_MERGES),
        "#version: 0.2\nb b\n");
    is_text(train_text("gpt2", 3, "", 0, &all_seen, PF_TRAIN_VOCAB), "{}\n");
}

static void
test_limits(void **state)
{
    struct pf_train train = { .size = 3, .seen_only = true };

    (void)state;
    is_text(train_text("gpt2", 1, "abab", 4, &train, PF_TRAIN_MERGES),
        "#version: 0.2\na b\n");
    train.size = 2;
    is_text(train_text("gpt2", 1, "abab", 4, &train, PF_TRAIN_MERGES),
        "#version: 0.2\n");
    train.size = 100;
    train.min_count = 2;
    is_text(train_text("gpt2", 1, "abab", 4, &train, PF_TRAIN_MERGES),
        "#version: 0.2\na b\n");
    train.min_count = 3;
    is_text(train_text("gpt2", 1, "abab", 4, &train, PF_TRAIN_MERGES),
        "#version: 0.2\n");
    train = (struct pf_train){ .size = 256 };
    is_text(train_text("gpt2", 1, "abab", 4, &train, PF_TRAIN_MERGES),
        "#version: 0.2\n");
}

static enum pf_status
learn(const char *text, const struct pf_train *train, struct pf_err *err)
{
    struct pf_pool *pool = threads(1);
    struct pf_trainer *t = trainer("gpt2", pool);
    enum pf_status st = pf_trainer_lines(t, text, strlen(text), err);

    if (!st)
        st = pf_trainer_learn(t, train, err);
    pf_trainer_free(t);
    pf_pool_free(pool);
    return st;
}

static void
test_special(void **state)
{
    const char *names[] = { "<s>", "ab", "<s>", "\xe2\x82\xac" };
    struct pf_train train = { .size = 260, .special = names, .n_special = 4,
        .seen_only = true };
    struct pf_err err;
    const char *bad[] = { "", "\xff", "\xc3\xa9", "\n", "b c" };

    (void)state;
    /* The first ids, each once; a token that is spelled so has the same id. */
    is_text(train_text("gpt2", 1, "abab", 4, &train, PF_TRAIN_VOCAB),
        "{\"<s>\":0,\"ab\":1,\"\xe2\x82\xac\":2,\"a\":3,\"b\":4,"
        "\"abab\":5}\n");
    is_text(train_text("gpt2", 1, "abab", 4, &train, PF_TRAIN_MERGES),
        "#version: 0.2\na b\nab ab\n");
    names[0] = "a"; /* a letter */
    is_text(train_text("gpt2", 1, "bab", 3, &train, PF_TRAIN_VOCAB),
        "{\"a\":0,\"ab\":1,\"<s>\":2,\"\xe2\x82\xac\":3,\"b\":4,"
        "\"bab\":5}\n");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        names[0] = bad[i];
        assert_int_equal(learn(i < 3 ? "x" : "b c\n b c\n", &train, &err),
            i == 4 ? PF_OK : PF_EFORMAT);
    }
    /* A pattern under which a merge gives a special token with a space. */
    {
        struct pf_pool *pool = threads(1);
        struct pf_trainer *t = trainer(".+", pool);

        assert_int_equal(pf_trainer_lines(t, "b c", 3, NULL), PF_OK);
        assert_int_equal(pf_trainer_learn(t, &train, &err), PF_EFORMAT);
        assert_non_null(strstr(err.msg, "b c"));
        pf_trainer_free(t);
        pf_pool_free(pool);
    }
    train = (struct pf_train){ .size = 257, .special = names,
        .n_special = 2 };
    names[0] = "<s>";
    names[1] = "<t>";
    assert_int_equal(learn("x", &train, &err), PF_ERANGE);
    train.size = 258;
    assert_int_equal(learn("x", &train, &err), PF_OK);
    train.size = (size_t)PF_VOCAB_MAX + 1;
    assert_int_equal(learn("x", &train, &err), PF_ERANGE);
}

static void
test_pattern(void **state)
{
    struct pf_pool *pool = threads(2);
    struct pf_trainer *t;
    struct pf_err err;

    (void)state;
    assert_int_equal(pf_trainer_new(&t, "(", pool, &err), PF_EFORMAT);
    assert_null(t);
    pf_trainer_free(NULL);
    pf_pool_free(pool);
}

/* --- Threads --- */

/* Lines of words, some long, some not UTF-8, many parts long. */
static struct pf_buf
make_text(size_t len)
{
    static const char *const ends[] = { "\n", "\n\n", " ", ". ", "\r\n", "\t",
        "\xff", "'s ", "\xc3", "\xe6\x97\xa5" };
    struct pf_buf b = PF_BUF_INIT;

    while (b.len < len) {
        for (uint32_t n = 1 + draw(7); n; n--)
            pf_buf_addc(&b, (char)('a' + draw(3) * draw(5)));
        pf_buf_adds(&b, ends[draw(10)]);
        for (uint32_t n = draw(10000) ? 0 : 300000; n; n--)
            pf_buf_addc(&b, (char)('a' + draw(26)));
    }
    assert_false(b.failed);
    return b;
}

static void
test_threads(void **state)
{
    static const size_t numbers[] = { 2, 3, 5, 8 };
    struct pf_train train = { .size = 2000 };
    struct pf_buf text = make_text(3000000), one, many;

    (void)state;
    for (int cl100k = 0; cl100k < 2; cl100k++) {
        const char *pattern = cl100k ? "cl100k" : "gpt2";

        one = train_text(pattern, 1, text.data, text.len, &train,
            PF_TRAIN_TOKENIZER);
        for (size_t i = 0; i < 4; i++) {
            many = train_text(pattern, numbers[i], text.data, text.len,
                &train, PF_TRAIN_TOKENIZER);
            assert_string_equal(one.data, many.data);
            pf_buf_fini(&many);
        }
        pf_buf_fini(&one);
    }
    pf_buf_fini(&text);
}

/* Whole lines, fed in any number of blocks, and in any order. */
static void
test_blocks(void **state)
{
    struct pf_train train = { .size = 800 };
    struct pf_buf text = make_text(100000), want, got;
    struct pf_pool *pool = threads(2);
    struct pf_trainer *t = trainer("gpt2", pool);
    size_t from = text.len, to;

    (void)state;
    want = train_text("gpt2", 1, text.data, text.len, &train,
        PF_TRAIN_MERGES);
    for (to = text.len; to; to = from) {
        from = to - 1 - draw(to < 5000 ? (uint32_t)to : 5000);
        while (from && text.data[from - 1] != '\n')
            from--;
        assert_int_equal(pf_trainer_lines(t, text.data + from, to - from,
            NULL), PF_OK);
    }
    assert_int_equal(pf_trainer_learn(t, &train, NULL), PF_OK);
    got = file_of(t, PF_TRAIN_MERGES);
    assert_string_equal(got.data, want.data);
    pf_trainer_free(t);
    pf_pool_free(pool);
    pf_buf_fini(&got);
    pf_buf_fini(&want);
    pf_buf_fini(&text);
}

/* One piece of 2^20 letters: each merge halves it, which takes no time. */
static void
test_long_piece(void **state)
{
    enum { N = 1 << 20 };
    char *text = malloc(N);
    struct pf_buf b;
    size_t lines = 0;

    (void)state;
    assert_non_null(text);
    memset(text, 'a', N);
    b = train_text("gpt2", 2, text, N, &all_seen, PF_TRAIN_MERGES);
    for (const char *p = b.data; (p = strchr(p, '\n')); p++)
        lines++;
    assert_int_equal(lines, 21);
    pf_buf_fini(&b);
    for (size_t i = 0; i < N; i++)
        text[i] = (char)('a' + draw(3));
    b = train_text("gpt2", 2, text, N, &all_seen, PF_TRAIN_MERGES);
    pf_buf_fini(&b);
    free(text);
}

/* --- Counted pieces --- */

static void
test_count_lines(void **state)
{
    static const struct {
        const char *line;
        enum pf_status st;
    } lines[] = {
        { "5\tlow", PF_OK }, { "      2 lower", PF_OK },
        { " \t 6\tnewest", PF_OK }, { "3 widest", PF_OK },
        { "0\tzzz", PF_OK }, { "7\t", PF_OK }, { "12\t x\ty", PF_OK },
        { "", PF_EFORMAT }, { "low", PF_EFORMAT }, { "5", PF_EFORMAT },
        { "5low", PF_EFORMAT }, { "-5\tlow", PF_EFORMAT },
        { "5.0\tlow", PF_EFORMAT }, { " ", PF_EFORMAT },
        { "99999999999999999999\tlow", PF_ERANGE },
    };
    struct pf_pool *pool = threads(2);
    struct pf_trainer *t = trainer("gpt2", pool);
    struct pf_err err;
    struct pf_train train = { .size = 17, .seen_only = true };

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_int_equal(pf_trainer_count_line(t, lines[i].line,
            strlen(lines[i].line), &err), lines[i].st);
    assert_int_equal(pf_trainer_counts(t).pieces, 5 + 2 + 6 + 3 + 7 + 12);
    assert_int_equal(pf_trainer_learn(t, &train, NULL), PF_OK);
    /* x, y, space and tab among the letters; " x\ty" is there 12 times. */
    is_text(file_of(t, PF_TRAIN_MERGES), "#version: 0.2\n"
        "x \xc4\x89\n\xc4\xa0 x\xc4\x89\n\xc4\xa0x\xc4\x89 y\n");
    pf_trainer_free(t);
    pf_pool_free(pool);
}

/* The example of Sennrich et al. 2016, with words counted beforehand. */
static void
test_paper(void **state)
{
    struct pf_pool *pool = threads(1);
    struct pf_trainer *t = trainer("gpt2", pool);
    struct pf_train train = { .size = 14, .seen_only = true };

    (void)state;
    pf_trainer_piece(t, "low", 3, 5, NULL);
    pf_trainer_piece(t, "lower", 5, 2, NULL);
    pf_trainer_piece(t, "newest", 6, 6, NULL);
    pf_trainer_piece(t, "widest", 6, 3, NULL);
    assert_int_equal(pf_trainer_learn(t, &train, NULL), PF_OK);
    is_text(file_of(t, PF_TRAIN_MERGES),
        "#version: 0.2\ne s\nes t\nl o\nlo w\n");
    pf_trainer_free(t);
    pf_pool_free(pool);
}

static void
test_large_counts(void **state)
{
    struct pf_pool *pool = threads(1);
    struct pf_trainer *t = trainer("gpt2", pool);
    struct pf_err err;

    (void)state;
    assert_int_equal(pf_trainer_piece(t, "ab", 2, INT64_MAX / 2, NULL),
        PF_OK);
    assert_int_equal(pf_trainer_learn(t, &all_seen, NULL), PF_OK);
    assert_int_equal(pf_trainer_merges(t), 1);
    pf_trainer_free(t);
    t = trainer("gpt2", pool);
    assert_int_equal(pf_trainer_piece(t, "ab", 2, INT64_MAX, NULL), PF_OK);
    assert_int_equal(pf_trainer_piece(t, "ab", 2, 1, &err), PF_ERANGE);
    assert_int_equal(pf_trainer_piece(t, "a", 1, UINT64_MAX, &err),
        PF_ERANGE);
    assert_int_equal(pf_trainer_learn(t, &all_seen, &err), PF_ERANGE);
    pf_trainer_free(t);
    pf_pool_free(pool);
}

/* --- Words --- */

/* Word k: its number, and zeros, so that all lengths from 3 to 28 are there. */
static size_t
word_of(char word[32], uint32_t k)
{
    return (size_t)snprintf(word, 32, "%x-%0*u", k, (int)(k % 22) + 1, 0);
}

static void
test_words(void **state)
{
    enum { N = 20000, LONG = 100000 };
    struct pf_words w[2] = { PF_WORDS_INIT, PF_WORDS_INIT };
    uint32_t *counts = calloc(N, sizeof *counts), k, c, n = 0;
    char word[32], *large = malloc(LONG);

    (void)state;
    assert_true(counts && large);
    memset(large, 'x', LONG);
    for (uint32_t i = 0; i < 10 * N; i++) {
        k = draw(N) * draw(2);
        c = draw(3);
        assert_int_equal(pf_words_add(&w[i & 1], word, word_of(word, k), c,
            NULL), PF_OK);
        counts[k] += c;
        if (i % N == 0)
            assert_int_equal(pf_words_add(&w[draw(2)], large, LONG - i / N,
                i / N + 1, NULL), PF_OK);
    }
    assert_int_equal(pf_words_join(&w[0], &w[1], NULL), PF_OK);
    assert_int_equal(w[1].n, 0);
    for (k = 0; k < N; k++)
        n += counts[k] > 0;
    assert_int_equal(w[0].n, n + 10);
    for (size_t i = 0; i < w[0].n; i++) {
        const struct pf_word *v = &w[0].items[i];

        if (v->len > sizeof word) {
            assert_memory_equal(v->bytes, large, v->len);
            assert_int_equal(v->count, LONG - v->len + 1);
            continue;
        }
        memcpy(word, v->bytes, v->len);
        word[v->len] = '\0';
        k = (uint32_t)strtoul(word, NULL, 16);
        assert_int_equal(v->count, counts[k]);
        assert_int_equal(word_of(word, k), v->len);
        assert_memory_equal(v->bytes, word, v->len);
    }
    pf_words_fini(&w[0]);
    pf_words_fini(&w[1]);
    free(counts);
    free(large);
}

/* --- Files --- */

static void
test_alphabet(void **state)
{
    bool used[256] = { false };
    int rank;

    (void)state;
    for (int b = 0; b < 256; b++) {
        rank = pf_alphabet_rank((unsigned char)b);
        assert_in_range(rank, 0, 255);
        assert_false(used[rank]);
        used[rank] = true;
        for (int a = 0; a < b; a++)
            assert_true((pf_alphabet_letter((unsigned char)a)
                    < pf_alphabet_letter((unsigned char)b))
                == (pf_alphabet_rank((unsigned char)a) < rank));
    }
    assert_int_equal(pf_alphabet_letter(' '), 0x120);
    assert_int_equal(pf_alphabet_letter('\n'), 0x10a);
    assert_int_equal(pf_alphabet_letter('~'), '~');
    assert_int_equal(pf_alphabet_letter(0xad), 0x143);
}

static const cJSON *
at(const cJSON *doc, const char *name)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(doc, name);

    assert_non_null(v);
    return v;
}

static void
check_tokenizer(const char *pattern, bool split)
{
    const char *names[] = { "<|endoftext|>", "a \"quoted\" one" };
    struct pf_train train = { .size = 300, .special = names, .n_special = 2 };
    static const char text[] = "low low\nlower newest\nwidest \"\\\" \t\n";
    struct pf_buf b = train_text(pattern, 2, text, sizeof text - 1, &train,
        PF_TRAIN_TOKENIZER);
    cJSON *doc = cJSON_Parse(b.data);
    const cJSON *pre, *v;
    int n = 0;

    assert_non_null(doc);
    v = cJSON_GetArrayItem(at(doc, "added_tokens"), 1);
    assert_int_equal(at(v, "id")->valueint, 1);
    assert_string_equal(at(v, "content")->valuestring, names[1]);
    assert_true(cJSON_IsTrue(at(v, "special")));
    pre = at(doc, "pre_tokenizer");
    if (split) {
        assert_string_equal(at(pre, "type")->valuestring, "Sequence");
        pre = at(pre, "pretokenizers");
        v = cJSON_GetArrayItem(pre, 0);
        assert_string_equal(at(v, "type")->valuestring, "Split");
        assert_string_equal(at(v, "behavior")->valuestring, "Isolated");
        v = at(at(v, "pattern"), "Regex");
        if (strcmp(pattern, "cl100k") != 0)
            assert_string_equal(v->valuestring, pattern);
        else
            assert_non_null(strstr(v->valuestring, "\\p{N}{1,3}"));
        pre = cJSON_GetArrayItem(pre, 1);
    }
    assert_string_equal(at(pre, "type")->valuestring, "ByteLevel");
    assert_true(cJSON_IsBool(at(pre, "use_regex")));
    assert_true(cJSON_IsTrue(at(pre, "use_regex")) == !split);
    assert_true(cJSON_IsFalse(at(pre, "add_prefix_space")));
    assert_string_equal(at(at(doc, "decoder"), "type")->valuestring,
        "ByteLevel");
    cJSON_ArrayForEach(v, at(at(doc, "model"), "vocab"))
        assert_int_equal(v->valueint, n++);
    assert_int_equal(n, 258 + cJSON_GetArraySize(at(at(doc, "model"),
        "merges")));
    cJSON_Delete(doc);
    pf_buf_fini(&b);
    b = train_text(pattern, 1, text, sizeof text - 1, &train,
        PF_TRAIN_CONFIG);
    doc = cJSON_Parse(b.data);
    assert_non_null(doc);
    assert_string_equal(at(doc, "tokenizer_class")->valuestring,
        split ? "PreTrainedTokenizerFast" : "GPT2Tokenizer");
    assert_string_equal(at(doc, "eos_token")->valuestring, names[0]);
    v = at(at(doc, "added_tokens_decoder"), "1");
    assert_string_equal(at(v, "content")->valuestring, names[1]);
    cJSON_Delete(doc);
    pf_buf_fini(&b);
}

static void
test_files(void **state)
{
    static const char *const names[] = { "vocab.json", "merges.txt",
        "tokenizer.json", "tokenizer_config.json" };

    (void)state;
    for (int i = 0; i < PF_TRAIN_FILES; i++)
        assert_string_equal(pf_train_file_name(i), names[i]);
    check_tokenizer("gpt2", false);
    check_tokenizer("cl100k", true);
    check_tokenizer("[a-z\"]+|\\s", true);
    is_text(train_text("gpt2", 1, "x", 1, &all_seen, PF_TRAIN_CONFIG),
        "{\"add_bos_token\":false,\n\"add_prefix_space\":false,\n"
        "\"added_tokens_decoder\":{},\n"
        "\"clean_up_tokenization_spaces\":false,\n"
        "\"bos_token\":null,\n\"eos_token\":null,\n\"unk_token\":null,\n"
        "\"tokenizer_class\":\"GPT2Tokenizer\"}\n");
}

static void
count_calls(void *ctx, size_t ids)
{
    size_t *last = ctx;

    assert_true(ids > *last);
    *last = ids;
}

static void
test_progress(void **state)
{
    size_t last = 0;
    struct pf_train train = { .size = 600, .progress = count_calls,
        .ctx = &last };
    struct pf_buf text = make_text(20000), b;

    (void)state;
    b = train_text("gpt2", 1, text.data, text.len, &train, PF_TRAIN_VOCAB);
    assert_in_range(last, 300, 600);
    pf_buf_fini(&b);
    pf_buf_fini(&text);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alphabet),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_rule),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_special),
        cmocka_unit_test(test_pattern),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_long_piece),
        cmocka_unit_test(test_count_lines),
        cmocka_unit_test(test_paper),
        cmocka_unit_test(test_large_counts),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_progress),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
