/*
 * Byte pair encoding (Gage 1994; Sennrich et al. 2016), applied.  The pairs
 * that may be joined stand in an array with their rank and result, in the order
 * they came; a hash table of 4 bytes a slot has their places.  Most pairs that
 * are looked up are none, and 8 bits of the hash in the slot tell that without
 * a look at the array.
 *
 * Two ways to the same result.  A short piece, which is nearly every one,
 * keeps the rank of each adjacent pair in an array: look for the least, join,
 * look up the two new pairs, close the gap.  That is quadratic, and fastest
 * where everything fits a few cache lines.  A long piece has its symbols in a
 * doubly linked list and its pairs in a heap of (rank, position), so that n
 * symbols cost O(n log n) whatever they are.  Entries are not taken out of the
 * heap when one of their symbols is joined to another: an entry holds if the
 * pair that now stands at its position has its rank, and is dropped else.
 *
 * Ranks need not grow with what they are made of: a pair that a merge brings
 * about may come before those that wait.
 */
#include "bpe.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/buf.h>

enum {
    SHORT = 48, /* symbols; about where the heap overtakes */
    ARITY = 4,
    INDEX = (1 << 24) - 1, /* the bits of a slot that are the index */
    RANK_MAX = (1 << 24) - 1,
};

struct merge {
    uint32_t left, right, rank, id;
};

struct pf_bpe {
    struct merge *merges;
    size_t count, cap;
    uint32_t *slots; /* 8 bits of the hash; index plus 1, or 0 in a free one */
    size_t mask;
};

/* The slot of a pair, or the free one where it belongs, and its tag. */
static uint32_t *
probe(const struct pf_bpe *b, uint32_t left, uint32_t right, uint32_t *tag)
{
    uint64_t h = ((uint64_t)left << 32 | right) * 0x9e3779b97f4a7c15;
    const struct merge *m;
    uint32_t slot;

    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93;
    *tag = (uint32_t)h & ~(uint32_t)INDEX;
    for (size_t i = (h >> 32) & b->mask;; i = (i + 1) & b->mask) {
        slot = b->slots[i];
        if (!slot)
            return &b->slots[i];
        if ((slot & ~(uint32_t)INDEX) != *tag)
            continue;
        m = &b->merges[(slot & INDEX) - 1];
        if (m->left == left && m->right == right)
            return &b->slots[i];
    }
}

static bool
rehash(struct pf_bpe *b, size_t n)
{
    uint32_t *slots = calloc(n, sizeof *slots), *slot, tag;

    if (!slots)
        return false;
    free(b->slots);
    b->slots = slots;
    b->mask = n - 1;
    for (size_t i = 0; i < b->count; i++) {
        slot = probe(b, b->merges[i].left, b->merges[i].right, &tag);
        *slot = tag | (uint32_t)(i + 1);
    }
    return true;
}

enum pf_status
pf_bpe_new(struct pf_bpe **out, size_t expect, struct pf_err *err)
{
    struct pf_bpe *b = calloc(1, sizeof *b);
    size_t n = 64;

    *out = NULL;
    if (!b)
        return pf_fail_mem(err);
    while (n / 2 < expect && n < 2 * (size_t)RANK_MAX)
        n *= 2;
    if (!rehash(b, n)) {
        pf_bpe_free(b);
        return pf_fail_mem(err);
    }
    *out = b;
    return PF_OK;
}

void
pf_bpe_free(struct pf_bpe *b)
{
    if (b) {
        free(b->merges);
        free(b->slots);
        free(b);
    }
}

enum pf_status
pf_bpe_add(struct pf_bpe *b, uint32_t left, uint32_t right, uint32_t rank,
    uint32_t id, struct pf_err *err)
{
    struct merge m = { left, right, rank, id };
    uint32_t *slot, tag;

    if (rank > RANK_MAX || b->count == INDEX)
        return pf_fail(err, PF_ERANGE, "more than %d merges", INDEX);
    if ((b->count + 1) * 2 > b->mask + 1 && !rehash(b, (b->mask + 1) * 2))
        return pf_fail_mem(err);
    slot = probe(b, left, right, &tag);
    if (*slot) {
        b->merges[(*slot & INDEX) - 1] = m;
        return PF_OK;
    }
    if (!pf_grow(&b->merges, &b->cap, b->count + 1, sizeof m))
        return pf_fail_mem(err);
    b->merges[b->count++] = m;
    *slot = tag | (uint32_t)b->count;
    return PF_OK;
}

uint32_t
pf_bpe_find(const struct pf_bpe *b, uint32_t left, uint32_t right,
    uint32_t *id)
{
    uint32_t tag, slot = *probe(b, left, right, &tag);
    const struct merge *m;

    if (!slot)
        return PF_BPE_NONE;
    m = &b->merges[(slot & INDEX) - 1];
    *id = m->id;
    return m->rank;
}

/* A line of merges.txt without its end; `tmp` has room for its bytes. */
static enum pf_status
add_line(struct pf_bpe *b, const char *line, size_t len, size_t number,
    uint32_t rank, uint32_t *guess, char *tmp, const struct pf_vocab *v,
    struct pf_err *err)
{
    const char *space = memchr(line, ' ', len), *bytes;
    struct pf_span part[2], text = { tmp, 0 };
    uint32_t id[2], result;
    size_t n;

    if (space)
        part[1] = (struct pf_span){ space + 1,
            len - (size_t)(space + 1 - line) };
    if (!space || space == line || part[1].len == 0
        || memchr(part[1].data, ' ', part[1].len))
        return pf_fail(err, PF_EFORMAT, "line %zu is not two symbols with a "
            "space between: %s", number, pf_show(line, len).s);
    part[0] = (struct pf_span){ line, (size_t)(space - line) };
    for (int i = 0; i < 2; i++) {
        n = pf_alphabet_decode(tmp + text.len, part[i].data, part[i].len);
        if (n == SIZE_MAX)
            return pf_fail(err, PF_EFORMAT, "line %zu has a character that "
                "stands for no byte: %s", number, pf_show(line, len).s);
        if (!pf_vocab_find(v, tmp + text.len, n, &id[i]))
            return pf_fail(err, PF_EFORMAT, "line %zu merges %s, which is not "
                "in the vocabulary", number,
                pf_show(part[i].data, part[i].len).s);
        text.len += n;
    }
    /* Ids mostly follow the merges, so try the one behind the last first. */
    bytes = pf_vocab_bytes(v, *guess, &n);
    if (bytes && n == text.len && memcmp(bytes, tmp, n) == 0)
        result = *guess;
    else if (!pf_vocab_find(v, tmp, text.len, &result))
        return pf_fail(err, PF_EFORMAT, "line %zu makes a token that is not "
            "in the vocabulary: %s", number, pf_show(line, len).s);
    *guess = result + 1;
    return pf_bpe_add(b, id[0], id[1], rank, result, err);
}

enum pf_status
pf_bpe_read_merges(struct pf_bpe *b, const char *text, size_t len,
    const struct pf_vocab *v, struct pf_err *err)
{
    const char *p = text, *end = text + len, *next;
    char *tmp = NULL;
    size_t number = 0, cap = 0, n;
    uint32_t rank = 0, guess = 0;
    enum pf_status st = PF_OK;

    while (len && (end[-1] == '\n' || end[-1] == '\r')) {
        end--;
        len--;
    }
    for (; !st && p < end; p = next) {
        next = memchr(p, '\n', (size_t)(end - p));
        n = (size_t)((next ? next : end) - p);
        next = next ? next + 1 : end;
        number++;
        if (n && p[n - 1] == '\r')
            n--;
        if (number == 1 && n >= 8 && memcmp(p, "#version", 8) == 0)
            continue;
        if (!pf_grow(&tmp, &cap, n + 1, 1))
            st = pf_fail_mem(err);
        else
            st = add_line(b, p, n, number, rank++, &guess, tmp, v, err);
    }
    free(tmp);
    return st;
}

void
pf_bpe_work_fini(struct pf_bpe_work *w)
{
    free(w->links);
    free(w->heap);
    *w = (struct pf_bpe_work)PF_BPE_WORK_INIT;
}

/* rank[i] and to[i] are of the pair that begins at i. */
static size_t
merge_short(const struct pf_bpe *b, uint32_t *ids, size_t n)
{
    uint32_t rank[SHORT], to[SHORT] = { 0 };
    size_t at, rest;

    for (size_t i = 0; i + 1 < n; i++)
        rank[i] = pf_bpe_find(b, ids[i], ids[i + 1], &to[i]);
    while (n > 1) {
        at = 0;
        for (size_t i = 1; i + 1 < n; i++)
            if (rank[i] < rank[at])
                at = i;
        if (rank[at] == PF_BPE_NONE)
            break;
        ids[at] = to[at];
        n--;
        rest = n - at - 1; /* symbols behind the new one */
        memmove(ids + at + 1, ids + at + 2, rest * sizeof *ids);
        if (rest) {
            memmove(rank + at + 1, rank + at + 2, (rest - 1) * sizeof *rank);
            memmove(to + at + 1, to + at + 2, (rest - 1) * sizeof *to);
            rank[at] = pf_bpe_find(b, ids[at], ids[at + 1], &to[at]);
        }
        if (at)
            rank[at - 1] = pf_bpe_find(b, ids[at - 1], ids[at], &to[at - 1]);
    }
    return n;
}

static void
sift_down(uint64_t *h, size_t n, size_t i)
{
    uint64_t v = h[i];
    size_t least, child, last;

    while ((child = i * ARITY + 1) < n) {
        least = child;
        last = child + ARITY < n ? child + ARITY : n;
        while (++child < last)
            if (h[child] < h[least])
                least = child;
        if (v <= h[least])
            break;
        h[i] = h[least];
        i = least;
    }
    h[i] = v;
}

static void
sift_up(uint64_t *h, size_t i)
{
    uint64_t v = h[i];

    for (; i && v < h[(i - 1) / ARITY]; i = (i - 1) / ARITY)
        h[i] = h[(i - 1) / ARITY];
    h[i] = v;
}

/* A pair as an entry of the heap, behind the others; false: no memory. */
static bool
push(const struct pf_bpe *b, struct pf_bpe_work *w, const uint32_t *ids,
    uint32_t at, uint32_t next, bool order)
{
    uint32_t to, rank = pf_bpe_find(b, ids[at], ids[next], &to);

    if (rank == PF_BPE_NONE)
        return true;
    if (!pf_grow(&w->heap, &w->heap_cap, w->heap_len + 1, sizeof *w->heap))
        return false;
    w->heap[w->heap_len] = (uint64_t)rank << 32 | at;
    if (order)
        sift_up(w->heap, w->heap_len);
    w->heap_len++;
    return true;
}

static uint64_t
pop(struct pf_bpe_work *w)
{
    uint64_t least = w->heap[0];

    w->heap[0] = w->heap[--w->heap_len];
    if (w->heap_len)
        sift_down(w->heap, w->heap_len, 0);
    return least;
}

/* A symbol that was joined to the one before it is marked PF_BPE_NONE. */
static bool
merge_long(const struct pf_bpe *b, struct pf_bpe_work *w, uint32_t *ids,
    size_t *count)
{
    uint32_t n = (uint32_t)*count, *next, *prev, at, right, to = 0;
    uint64_t entry;
    size_t out = 0;

    if (!pf_grow(&w->links, &w->links_cap, 2 * *count, sizeof *next))
        return false;
    next = w->links;
    prev = next + n;
    w->heap_len = 0;
    for (uint32_t i = 0; i < n; i++) {
        next[i] = i + 1;
        prev[i] = i - 1; /* wraps at 0, which is not used */
        if (i + 1 < n && !push(b, w, ids, i, i + 1, false))
            return false;
    }
    for (size_t i = w->heap_len / ARITY + 1; i-- > 0;)
        if (i < w->heap_len)
            sift_down(w->heap, w->heap_len, i);
    while (w->heap_len) {
        entry = pop(w);
        at = (uint32_t)entry;
        right = next[at];
        if (ids[at] == PF_BPE_NONE || right == n
            || pf_bpe_find(b, ids[at], ids[right], &to) != entry >> 32)
            continue;
        ids[at] = to;
        ids[right] = PF_BPE_NONE;
        next[at] = next[right];
        if (next[at] < n) {
            prev[next[at]] = at;
            if (!push(b, w, ids, at, next[at], true))
                return false;
        }
        if (at && !push(b, w, ids, prev[at], at, true))
            return false;
    }
    for (uint32_t i = 0; i < n; i = next[i])
        ids[out++] = ids[i];
    *count = out;
    return true;
}

enum pf_status
pf_bpe_merge(const struct pf_bpe *b, struct pf_bpe_work *w, uint32_t *ids,
    size_t *n, struct pf_err *err)
{
    if (*n <= SHORT) {
        *n = merge_short(b, ids, *n);
        return PF_OK;
    }
    if (*n >= PF_BPE_NONE)
        return pf_fail(err, PF_ERANGE, "a piece of %zu symbols is too long",
            *n);
    return merge_long(b, w, ids, n) ? PF_OK : pf_fail_mem(err);
}
