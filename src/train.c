/*
 * Counting pieces, and what comes before the first merge.
 *
 * A block of text is parted at ends of lines into parts of some size; each
 * thread takes the next part that is free, and counts into a table of its own.
 * Before learning starts the tables are joined, two by two.
 */
#include "train-private.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/pool.h>
#include <pipeformer/utf8.h>

#include "pattern.h"
#include "pretok.h"

enum {
    PART = 256 * 1024, /* bytes of text that a thread takes at a time */
    ENDS = 64,
};

struct pf_train_lane {
    struct pf_words words;
    struct pf_splitter *splitter;
    uint64_t texts, pieces;
    enum pf_status st;
    struct pf_err err;
};

enum pf_status
pf_trainer_new(struct pf_trainer **out, const char *pattern,
    struct pf_pool *pool, struct pf_err *err)
{
    struct pf_trainer *t = calloc(1, sizeof *t);
    size_t len = strlen(pattern);
    enum pf_status st;

    *out = NULL;
    if (!t)
        return pf_fail_mem(err);
    t->pool = pool;
    t->n_lanes = pf_pool_threads(pool);
    t->lanes = calloc(t->n_lanes, sizeof *t->lanes);
    t->name = malloc(len + 1);
    if (!t->lanes || !t->name) {
        st = pf_fail_mem(err);
        goto fail;
    }
    memcpy(t->name, pattern, len + 1);
    t->pattern = pf_pretok_named(t->name);
    if (!t->pattern)
        t->pattern = t->name;
    st = t->pattern == t->name && pf_pattern_is_word(t->name)
        ? pf_fail(err, PF_EMODEL, "no pattern is called %s; gpt2, cl100k, "
            "qwen2 and o200k are known", t->name)
        : pf_pretok_new(&t->pretok, t->pattern, 0, err);
    for (size_t i = 0; i < t->n_lanes && !st; i++)
        st = pf_splitter_new(&t->lanes[i].splitter, t->pretok, err);
    if (st)
        goto fail;
    *out = t;
    return PF_OK;
fail:
    pf_trainer_free(t);
    return st;
}

void
pf_trainer_free(struct pf_trainer *t)
{
    if (!t)
        return;
    for (size_t i = 0; t->lanes && i < t->n_lanes; i++) {
        pf_words_fini(&t->lanes[i].words);
        pf_splitter_free(t->lanes[i].splitter);
    }
    free(t->lanes);
    free(t->name);
    pf_pretok_free(t->pretok);
    pf_vocab_free(t->vocab);
    free(t->merges.items);
    free(t);
}

/* --- Counting --- */

static enum pf_status
count_valid(struct pf_train_lane *lane, const char *text, size_t len)
{
    size_t ends[ENDS], n, from = 0;
    enum pf_status st;

    pf_splitter_begin(lane->splitter, text, len, true);
    do {
        st = pf_splitter_cut(lane->splitter, ends, ENDS, &n, &lane->err);
        for (size_t i = 0; i < n && !st; i++) {
            st = pf_words_add(&lane->words, text + from, ends[i] - from, 1,
                &lane->err);
            from = ends[i];
        }
        lane->pieces += n;
    } while (n && !st);
    return st;
}

static enum pf_status
count_text(struct pf_train_lane *lane, const char *text, size_t len)
{
    enum pf_status st = PF_OK;
    size_t n;

    lane->texts++;
    while (len && !st) {
        n = pf_utf8_span(text, len);
        if (n) {
            st = count_valid(lane, text, n);
        } else {
            while (n < len && !pf_utf8_char(text + n, len - n))
                n++;
            st = pf_words_add(&lane->words, text, n, 1, &lane->err);
            lane->pieces++;
        }
        text += n;
        len -= n;
    }
    return st;
}

struct parts {
    struct pf_trainer *t;
    const char *text;
    size_t *ends, n, cap;
    atomic_size_t next;
};

static void
count_parts(void *ctx, size_t i)
{
    struct parts *p = ctx;
    struct pf_train_lane *lane = &p->t->lanes[i];
    const char *s, *end, *lf;
    size_t k;

    while ((k = atomic_fetch_add(&p->next, 1)) < p->n && !lane->st) {
        s = p->text + (k ? p->ends[k - 1] : 0);
        end = p->text + p->ends[k];
        for (; s < end && !lane->st; s = lf) {
            lf = memchr(s, '\n', (size_t)(end - s));
            lf = lf ? lf + 1 : end;
            lane->st = count_text(lane, s, (size_t)(lf - s));
        }
    }
}

static enum pf_status
failure(const struct pf_trainer *t, struct pf_err *err)
{
    for (size_t i = 0; i < t->n_lanes; i++)
        if (t->lanes[i].st)
            return pf_fail(err, t->lanes[i].st, "%s", t->lanes[i].err.msg);
    return PF_OK;
}

enum pf_status
pf_trainer_lines(struct pf_trainer *t, const char *text, size_t len,
    struct pf_err *err)
{
    struct parts p = { .t = t, .text = text };
    size_t end = 0, tasks;
    const char *lf;

    while (end < len) {
        end = len - end > PART ? end + PART : len;
        lf = memchr(text + end - 1, '\n', len - (end - 1));
        end = lf ? (size_t)(lf - text) + 1 : len;
        if (!pf_grow(&p.ends, &p.cap, p.n + 1, sizeof *p.ends)) {
            free(p.ends);
            return pf_fail_mem(err);
        }
        p.ends[p.n++] = end;
    }
    tasks = t->n_lanes < p.n ? t->n_lanes : p.n;
    pf_pool_run(t->pool, count_parts, &p, tasks);
    free(p.ends);
    return failure(t, err);
}

enum pf_status
pf_trainer_piece(struct pf_trainer *t, const char *piece, size_t len,
    uint64_t count, struct pf_err *err)
{
    struct pf_train_lane *lane = &t->lanes[0];

    lane->texts++;
    lane->pieces += count;
    return pf_words_add(&lane->words, piece, len, count, err);
}

enum pf_status
pf_trainer_count_line(struct pf_trainer *t, const char *line, size_t len,
    struct pf_err *err)
{
    uint64_t count = 0;
    size_t i = 0, digits;

    while (i < len && (line[i] == ' ' || line[i] == '\t'))
        i++;
    for (digits = i; i < len && line[i] >= '0' && line[i] <= '9'; i++) {
        if (count > (INT64_MAX - 9) / 10)
            return pf_fail(err, PF_ERANGE, "the count is too large");
        count = count * 10 + (uint64_t)(line[i] - '0');
    }
    if (i == digits)
        return pf_fail(err, PF_EFORMAT, "%s: does not begin with a count",
            pf_show(line, len).s);
    if (i == len || (line[i] != '\t' && line[i] != ' '))
        return pf_fail(err, PF_EFORMAT, "%s: no tab or space behind the "
            "count", pf_show(line, len).s);
    return pf_trainer_piece(t, line + i + 1, len - i - 1, count, err);
}

struct pf_train_counts
pf_trainer_counts(const struct pf_trainer *t)
{
    struct pf_train_counts c = { 0, 0, 0 };

    for (size_t i = 0; i < t->n_lanes; i++) {
        c.texts += t->lanes[i].texts;
        c.pieces += t->lanes[i].pieces;
        c.different += t->lanes[i].words.n;
    }
    return c;
}

/* --- Joining the tables --- */

struct join {
    struct pf_trainer *t;
    size_t step;
};

static void
join_two(void *ctx, size_t i)
{
    const struct join *j = ctx;
    struct pf_train_lane *to = &j->t->lanes[2 * i * j->step];

    to->st = pf_words_join(&to->words, &to[j->step].words, &to->err);
}

static enum pf_status
join_all(struct pf_trainer *t, struct pf_err *err)
{
    struct join j = { t, 1 };
    enum pf_status st = PF_OK;

    for (; j.step < t->n_lanes && !st; j.step *= 2) {
        pf_pool_run(t->pool, join_two, &j,
            (t->n_lanes - j.step + 2 * j.step - 1) / (2 * j.step));
        st = failure(t, err);
    }
    return st;
}

/* --- The vocabulary before any merge --- */

static enum pf_status
add_special(struct pf_trainer *t, const char *text, struct pf_err *err)
{
    size_t len = strlen(text), letters;
    char *bytes = malloc(len + 1);
    uint32_t id;

    if (!bytes)
        return pf_fail_mem(err);
    letters = pf_alphabet_decode(bytes, text, len);
    free(bytes);
    if (len == 0 || pf_utf8_span(text, len) != len)
        return pf_fail(err, PF_EFORMAT, "a special token is %s",
            len ? "not UTF-8" : "empty");
    if (letters != SIZE_MAX && letters != len)
        return pf_fail(err, PF_EFORMAT, "the special token %s is spelled as "
            "other bytes are in the files", pf_show(text, len).s);
    if (pf_vocab_find(t->vocab, text, len, &id))
        return PF_OK;
    return pf_vocab_add(t->vocab, (uint32_t)t->n_special++, text, len, err);
}

/* Letters get ids in order of their code points; letter[b] is that of b. */
static enum pf_status
add_letters(struct pf_trainer *t, const struct pf_train *train,
    uint32_t letter[256], struct pf_err *err)
{
    const struct pf_words *words = &t->lanes[0].words;
    bool seen[256] = { false };
    unsigned char of_rank[256];
    enum pf_status st = PF_OK;

    for (int b = 0; b < 256; b++)
        of_rank[pf_alphabet_rank((unsigned char)b)] = (unsigned char)b;
    for (size_t i = 0; i < words->n; i++)
        for (size_t k = 0; k < words->items[i].len; k++)
            seen[(unsigned char)words->items[i].bytes[k]] = true;
    for (int rank = 0; rank < 256 && !st; rank++) {
        unsigned char b = of_rank[rank];
        char c = (char)b;

        if (train->seen_only && !seen[b])
            continue;
        if (!pf_vocab_find(t->vocab, &c, 1, &letter[b])) {
            letter[b] = (uint32_t)pf_vocab_size(t->vocab);
            st = pf_vocab_add(t->vocab, letter[b], &c, 1, err);
        } else if (c <= ' ' || c == 0x7f) {
            return pf_fail(err, PF_EFORMAT, "the special token %s is a byte "
                "of the text too", pf_show(&c, 1).s);
        }
    }
    return st;
}

enum pf_status
pf_trainer_learn(struct pf_trainer *t, const struct pf_train *train,
    struct pf_err *err)
{
    uint32_t letter[256] = { 0 };
    size_t expect = train->size < 65536 ? train->size : 65536;
    enum pf_status st = join_all(t, err);

    if (!st && train->size > PF_VOCAB_MAX)
        st = pf_fail(err, PF_ERANGE, "a vocabulary of %zu tokens is beyond "
            "%d", train->size, PF_VOCAB_MAX);
    if (!st)
        st = pf_vocab_new(&t->vocab, expect, err);
    for (size_t i = 0; i < train->n_special && !st; i++)
        st = add_special(t, train->special[i], err);
    if (!st)
        st = add_letters(t, train, letter, err);
    if (!st && pf_vocab_size(t->vocab) > train->size)
        st = pf_fail(err, PF_ERANGE, "a vocabulary of %zu tokens has no room "
            "for %zu special tokens and %zu letters", train->size,
            t->n_special, pf_vocab_size(t->vocab) - t->n_special);
    return st ? st : pf_train_merge(&t->lanes[0].words, letter, train,
        t->vocab, t->n_special, &t->merges, err);
}

size_t
pf_trainer_size(const struct pf_trainer *t)
{
    return t->vocab ? pf_vocab_size(t->vocab) : 0;
}

size_t
pf_trainer_merges(const struct pf_trainer *t)
{
    return t->merges.n;
}

const char *
pf_trainer_token(const struct pf_trainer *t, uint32_t id, size_t *len)
{
    return pf_vocab_bytes(t->vocab, id, len);
}

void
pf_trainer_merge(const struct pf_trainer *t, size_t i, uint32_t *left,
    uint32_t *right)
{
    *left = t->merges.items[i].left;
    *right = t->merges.items[i].right;
}
