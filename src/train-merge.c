/*
 * Learning the merges.  Done naively, each one takes a walk over all words to
 * count pairs and another to join one; here a merge costs what it changes.
 *
 * The letters of all words stand in one array of cells, a separator between
 * words.  A symbol takes as many cells as it has letters; its first and its
 * last cell hold its id, so what stands to the left of a cell, and to the
 * right of a symbol, is read off in one step, and joining two symbols writes
 * three cells.  A pair of ids has a count and the places where it was seen,
 * in ascending order.  A place is never taken off the list when something
 * else uses up one of its symbols: when the pair's turn comes, a place counts
 * only if its two ids still stand there.  For that a cell inside a symbol must
 * not hold the id of a symbol that once began there.
 *
 * When pairs (l, r) become x, only pairs with x are new, and only pairs with a
 * neighbour of one of these, (p, l) and (r, n), are lost: changes are added up
 * by neighbour in an array, and the table of pairs is asked once a neighbour.
 * So all places of all pairs together are at most three times the letters.
 *
 * The next pair comes from a heap, which is never told of a count that falls:
 * a pair that comes up with an old count goes in again with the new one.  (The
 * count of a pair cannot rise: both of its symbols are older than the merge at
 * hand.)  HuggingFace's trainer works likewise, by words instead of places.
 *
 * Words are in descending order of count, so words of one count are a range of
 * cells, and the count of a place is found by going through the few ranges
 * along with the places.
 */
#include "train-private.h"

#include <stdlib.h>
#include <string.h>

#include <pipeformer/buf.h>

enum {
    OWN = 1024,          /* places from which on a list has its own memory */
    BLOCK = 256 * 1024,  /* places in a block of shorter ones */
    NOTICE = 64,         /* merges between two calls of progress */
};

#define NONE UINT32_MAX         /* a separator; no pair */
#define INSIDE (UINT32_MAX - 1) /* a cell within a symbol */

/* Two neighbours. */
struct pair {
    uint32_t left, right;
    int64_t count;
    union {
        uint32_t one;
        uint32_t *many;
    } places;
    uint32_t n; /* of places; with one it is in the pair itself */
};

struct entry {
    int64_t count;
    uint64_t key; /* left << 32 | right */
};

/* Cells up to `end` belong to words of that count. */
struct range {
    size_t end;
    int64_t count;
};

/* What a merge changes on one side of it, by the id of the neighbour. */
struct change {
    int64_t count;
    uint32_t n;    /* places */
    uint32_t pair; /* the new one */
};

struct side {
    struct change *changes; /* all 0 between merges */
    size_t n_changes;
    uint32_t *touched;
    size_t n_touched, touched_cap;
    struct seen {
        uint32_t neighbour, place;
    } *log;
    size_t n_log, log_cap;
};

struct block {
    struct block *next;
    uint32_t places[BLOCK];
};

struct learner {
    uint32_t *cells;
    size_t n_cells;
    struct range *ranges;
    size_t n_ranges, ranges_cap;
    uint32_t *lens; /* letters of an id */
    size_t lens_cap;

    struct pair *pairs;
    size_t n_pairs, pairs_cap;
    uint32_t *slots; /* a hash table: number of a pair + 1, or 0 */
    size_t mask;
    struct block *blocks;
    size_t left; /* free places at the end of the first block */

    struct entry *heap;
    size_t n_heap, heap_cap;
    struct side before, behind;
};

/* --- The table of pairs --- */

static uint64_t
key_of(uint32_t left, uint32_t right)
{
    return (uint64_t)left << 32 | right;
}

static size_t
slot_of(const struct learner *w, uint32_t left, uint32_t right)
{
    uint64_t h = key_of(left, right) * 0x9e3779b97f4a7c15;

    h = (h ^ h >> 32) * 0xd6e8feb86659fd93;
    return (size_t)(h >> 32) & w->mask;
}

/* The number of a pair, NONE if it was never there. */
static uint32_t
find(const struct learner *w, uint32_t left, uint32_t right)
{
    size_t i = slot_of(w, left, right);
    const struct pair *p;

    for (; w->slots[i]; i = (i + 1) & w->mask) {
        p = &w->pairs[w->slots[i] - 1];
        if (p->left == left && p->right == right)
            return w->slots[i] - 1;
    }
    return NONE;
}

static void
enter(struct learner *w, uint32_t number)
{
    size_t i = slot_of(w, w->pairs[number].left, w->pairs[number].right);

    while (w->slots[i])
        i = (i + 1) & w->mask;
    w->slots[i] = number + 1;
}

static bool
rehash(struct learner *w)
{
    size_t n = w->slots ? 2 * (w->mask + 1) : 1 << 12;
    uint32_t *slots = calloc(n, sizeof *slots);

    if (!slots)
        return false;
    free(w->slots);
    w->slots = slots;
    w->mask = n - 1;
    for (size_t i = 0; i < w->n_pairs; i++)
        enter(w, (uint32_t)i);
    return true;
}

static uint32_t *
places_of(struct pair *p)
{
    return p->n == 1 ? &p->places.one : p->places.many;
}

static void
forget(struct pair *p)
{
    if (p->n >= OWN)
        free(p->places.many);
    p->n = 0;
    p->count = 0;
}

/* Room for the pair's n places. */
static bool
make_places(struct learner *w, struct pair *p)
{
    struct block *b = w->blocks;

    if (p->n == 1)
        return true;
    if (p->n >= OWN) {
        p->places.many = malloc(p->n * sizeof *p->places.many);
        if (!p->places.many)
            p->n = 0;
        return p->n;
    }
    if (p->n > w->left) {
        b = malloc(sizeof *b);
        if (!b)
            return false;
        b->next = w->blocks;
        w->blocks = b;
        w->left = BLOCK;
    }
    p->places.many = b->places + (BLOCK - w->left);
    w->left -= p->n;
    return true;
}

/* A pair that is not there yet, with room for n places; NONE: no memory. */
static uint32_t
add_pair(struct learner *w, uint32_t left, uint32_t right, int64_t count,
    uint32_t n)
{
    struct pair *p;

    if (w->n_pairs >= INSIDE
        || !pf_grow(&w->pairs, &w->pairs_cap, w->n_pairs + 1, sizeof *p)
        || ((!w->slots || 3 * w->n_pairs >= 2 * w->mask) && !rehash(w)))
        return NONE;
    p = &w->pairs[w->n_pairs];
    *p = (struct pair){ left, right, count, { 0 }, n };
    if (!make_places(w, p))
        return NONE;
    enter(w, (uint32_t)w->n_pairs);
    return (uint32_t)w->n_pairs++;
}

/* --- The heap: the pair that is next comes first --- */

static bool
is_before(const struct entry *a, const struct entry *b)
{
    return a->count > b->count || (a->count == b->count && a->key < b->key);
}

/* Puts e in at i or below, where what is above is before it. */
static void
sift_down(struct learner *w, size_t i, struct entry e)
{
    size_t child, best;

    for (;; i = best) {
        child = 4 * i + 1;
        if (child >= w->n_heap)
            break;
        best = child;
        for (size_t k = child + 1; k < child + 4 && k < w->n_heap; k++)
            if (is_before(&w->heap[k], &w->heap[best]))
                best = k;
        if (!is_before(&w->heap[best], &e))
            break;
        w->heap[i] = w->heap[best];
    }
    w->heap[i] = e;
}

static bool
push(struct learner *w, const struct pair *p)
{
    struct entry e = { p->count, key_of(p->left, p->right) };
    size_t i = w->n_heap, up;

    if (!pf_grow(&w->heap, &w->heap_cap, i + 1, sizeof e))
        return false;
    for (w->n_heap++; i; i = up) {
        up = (i - 1) / 4;
        if (!is_before(&e, &w->heap[up]))
            break;
        w->heap[i] = w->heap[up];
    }
    w->heap[i] = e;
    return true;
}

/* The pair that is next is taken out; NULL when none is left. */
static struct pair *
pop(struct learner *w)
{
    struct entry top;
    struct pair *p;

    while (w->n_heap) {
        top = w->heap[0];
        p = &w->pairs[find(w, (uint32_t)(top.key >> 32), (uint32_t)top.key)];
        if (p->count > 0 && p->count != top.count) {
            top.count = p->count;
            sift_down(w, 0, top);
            continue;
        }
        if (--w->n_heap)
            sift_down(w, 0, w->heap[w->n_heap]);
        if (p->count > 0)
            return p;
    }
    return NULL;
}

/* --- Cells, and the pairs of letters --- */

static int
by_count(const void *a, const void *b)
{
    uint64_t x = ((const struct pf_word *)a)->count;
    uint64_t y = ((const struct pf_word *)b)->count;

    return (x < y) - (x > y);
}

/* Fills cells and ranges, and counts pairs of bytes. */
static enum pf_status
fill_cells(struct learner *w, struct pf_words *words,
    const uint32_t letter[256], int64_t *counts, uint32_t *n,
    struct pf_err *err)
{
    const struct pf_word *word;
    size_t cells = 1, at = 1, pair;
    uint64_t total = 0;

    for (size_t i = 0; i < words->n; i++) {
        word = &words->items[i];
        cells += word->len > 1 ? (size_t)word->len + 1 : 0;
        if (word->count > (INT64_MAX - total) / word->len)
            return pf_fail(err, PF_ERANGE, "pieces have more than 2^63 bytes "
                "in all");
        total += word->count * word->len;
    }
    if (cells >= INSIDE)
        return pf_fail(err, PF_ERANGE, "different pieces have %zu bytes in "
            "all, more than 2^32", cells);
    if (words->n)
        qsort(words->items, words->n, sizeof *words->items, by_count);
    w->cells = malloc(cells * sizeof *w->cells);
    if (!w->cells)
        return pf_fail_mem(err);
    w->n_cells = cells;
    w->cells[0] = NONE;
    for (size_t i = 0; i < words->n; i++) {
        const unsigned char *s;

        word = &words->items[i];
        s = (const unsigned char *)word->bytes;
        if (word->len < 2)
            continue;
        for (size_t k = 0; k < word->len; k++) {
            w->cells[at++] = letter[s[k]];
            if (k == 0)
                continue;
            pair = (size_t)s[k - 1] << 8 | s[k];
            counts[pair] += (int64_t)word->count;
            n[pair]++;
        }
        w->cells[at++] = NONE;
        if (w->n_ranges
            && w->ranges[w->n_ranges - 1].count == (int64_t)word->count) {
            w->ranges[w->n_ranges - 1].end = at;
            continue;
        }
        if (!pf_grow(&w->ranges, &w->ranges_cap, w->n_ranges + 1,
                sizeof *w->ranges))
            return pf_fail_mem(err);
        w->ranges[w->n_ranges++] = (struct range){ at, (int64_t)word->count };
    }
    return PF_OK;
}

/* The first pairs, and where they are. */
static enum pf_status
first_pairs(struct learner *w, const struct pf_words *words,
    const uint32_t letter[256], const int64_t *counts, uint32_t *n,
    struct pf_err *err)
{
    uint32_t *number = malloc(65536 * sizeof *number);
    size_t at = 1;

    if (!number)
        return pf_fail_mem(err);
    for (size_t i = 0; i < 65536; i++) {
        if (!n[i])
            continue;
        number[i] = add_pair(w, letter[i >> 8], letter[i & 255], counts[i],
            n[i]);
        if (number[i] == NONE || !push(w, &w->pairs[number[i]])) {
            free(number);
            return pf_fail_mem(err);
        }
        n[i] = 0;
    }
    for (size_t i = 0; i < words->n; i++) {
        const struct pf_word *word = &words->items[i];
        const unsigned char *s = (const unsigned char *)word->bytes;

        if (word->len < 2)
            continue;
        for (size_t k = 1; k < word->len; k++, at++) {
            size_t pair = (size_t)s[k - 1] << 8 | s[k];

            places_of(&w->pairs[number[pair]])[n[pair]++] = (uint32_t)at;
        }
        at += 2;
    }
    free(number);
    return PF_OK;
}

/* Takes the words, whose memory is given back before any merge. */
static enum pf_status
begin(struct learner *w, struct pf_words *words, const uint32_t letter[256],
    struct pf_err *err)
{
    int64_t *counts = calloc(65536, sizeof *counts);
    uint32_t *n = calloc(65536, sizeof *n);
    enum pf_status st;

    if (!counts || !n)
        st = pf_fail_mem(err);
    else
        st = fill_cells(w, words, letter, counts, n, err);
    if (!st)
        st = first_pairs(w, words, letter, counts, n, err);
    free(counts);
    free(n);
    pf_words_fini(words);
    return st;
}

/* --- One merge --- */

/* Room for n changes, by neighbours below `ids`. */
static bool
reserve(struct side *s, size_t ids, size_t n)
{
    size_t cap = s->n_changes;

    if (!pf_grow(&s->changes, &s->n_changes, ids, sizeof *s->changes))
        return false;
    memset(s->changes + cap, 0, (s->n_changes - cap) * sizeof *s->changes);
    s->n_log = s->n_touched = 0;
    return pf_grow(&s->log, &s->log_cap, n, sizeof *s->log)
        && pf_grow(&s->touched, &s->touched_cap, n < ids ? n : ids,
            sizeof *s->touched);
}

static void
note(struct side *s, uint32_t neighbour, size_t place, int64_t count)
{
    struct change *c = &s->changes[neighbour];

    if (c->n++ == 0)
        s->touched[s->n_touched++] = neighbour;
    c->count += count;
    s->log[s->n_log++] = (struct seen){ neighbour, (uint32_t)place };
}

/* The range that a cell is in. */
static size_t
range_of(const struct learner *w, size_t cell)
{
    size_t lo = 0, hi = w->n_ranges - 1, mid;

    while (lo < hi) {
        mid = lo + (hi - lo) / 2;
        if (cell < w->ranges[mid].end)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

/* Joins the pair wherever it is, and notes what that changes. */
static void
join(struct learner *w, struct pair *p, uint32_t id)
{
    const uint32_t *lens = w->lens, *places = places_of(p);
    uint32_t left = p->left, right = p->right, *cells = w->cells;
    size_t len = lens[left], end = len + lens[right], at;
    size_t range = range_of(w, places[0]);
    int64_t count;

    for (size_t i = 0; i < p->n; i++) {
        at = places[i];
        if (cells[at] != left || cells[at + len] != right)
            continue;
        if (at >= w->ranges[range].end)
            range = range_of(w, at);
        count = w->ranges[range].count;
        if (cells[at - 1] != NONE)
            note(&w->before, cells[at - 1], at - lens[cells[at - 1]], count);
        if (cells[at + end] != NONE)
            note(&w->behind, cells[at + end], at, count);
        cells[at + len] = INSIDE;
        cells[at] = cells[at + end - 1] = id;
    }
}

/* The new pairs of one side. */
static bool
add_new(struct learner *w, struct side *s, uint32_t id, bool before)
{
    struct change *c;
    struct pair *p;

    for (size_t i = 0; i < s->n_touched; i++) {
        uint32_t other = s->touched[i];

        c = &s->changes[other];
        c->pair = add_pair(w, before ? other : id, before ? id : other,
            c->count, c->n);
        if (c->pair == NONE)
            return false;
        c->n = 0;
    }
    for (size_t i = 0; i < s->n_log; i++) {
        c = &s->changes[s->log[i].neighbour];
        p = &w->pairs[c->pair];
        places_of(p)[c->n++] = s->log[i].place;
    }
    return true;
}

/* The pairs of one side that are not there any more; `id` took their part. */
static void
take_old(struct learner *w, struct side *s, uint32_t id, bool before)
{
    uint32_t number;
    struct pair *p;

    for (size_t i = 0; i < s->n_touched; i++) {
        uint32_t other = s->touched[i];

        number = before ? find(w, other, id) : find(w, id, other);
        if (number == NONE)
            continue;
        p = &w->pairs[number];
        p->count -= s->changes[other].count;
        if (p->count <= 0)
            forget(p);
    }
}

/* The new pairs that are there go to the heap. */
static bool
push_new(struct learner *w, struct side *s)
{
    bool ok = true;

    for (size_t i = 0; i < s->n_touched; i++) {
        struct change *c = &s->changes[s->touched[i]];

        if (w->pairs[c->pair].count > 0)
            ok = ok && push(w, &w->pairs[c->pair]);
        *c = (struct change){ 0, 0, 0 };
    }
    return ok;
}

/* The pair becomes `id`; there are `ids` of them. */
static bool
merge(struct learner *w, struct pair *p, uint32_t id, size_t ids)
{
    uint32_t left = p->left, right = p->right;

    if (!reserve(&w->before, ids, p->n) || !reserve(&w->behind, ids, p->n)
        || !pf_grow(&w->lens, &w->lens_cap, ids, sizeof *w->lens))
        return false;
    w->lens[id] = w->lens[left] + w->lens[right];
    join(w, p, id);
    forget(p);
    if (!add_new(w, &w->before, id, true)
        || !add_new(w, &w->behind, id, false))
        return false;
    take_old(w, &w->before, left, true);
    take_old(w, &w->behind, right, false);
    return push_new(w, &w->before) && push_new(w, &w->behind);
}

/* --- All merges --- */

/* The token of two: a new id, or that of a special token spelled so. */
static enum pf_status
name(struct pf_vocab *vocab, size_t n_special, const struct pair *p,
    struct pf_buf *bytes, uint32_t *id, struct pf_err *err)
{
    const char *part;
    size_t len;

    pf_buf_clear(bytes);
    part = pf_vocab_bytes(vocab, p->left, &len);
    pf_buf_add(bytes, part, len);
    part = pf_vocab_bytes(vocab, p->right, &len);
    pf_buf_add(bytes, part, len);
    if (pf_buf_check(bytes, err))
        return PF_ENOMEM;
    if (!pf_vocab_find(vocab, bytes->data, bytes->len, id)) {
        *id = (uint32_t)pf_vocab_size(vocab);
        return pf_vocab_add(vocab, *id, bytes->data, bytes->len, err);
    }
    for (size_t i = 0; i < bytes->len; i++)
        if (*id >= n_special || bytes->data[i] <= ' '
            || bytes->data[i] >= 0x7f)
            return pf_fail(err, PF_EFORMAT, "the special token %s comes out "
                "of merges too", pf_show(bytes->data, bytes->len).s);
    return PF_OK;
}

static enum pf_status
learn(struct learner *w, const struct pf_train *train, struct pf_vocab *vocab,
    size_t n_special, struct pf_train_merges *merges, struct pf_err *err)
{
    struct pf_buf bytes = PF_BUF_INIT;
    enum pf_status st = PF_OK;
    struct pair *p;
    uint32_t id;

    while (!st && pf_vocab_size(vocab) < train->size) {
        p = pop(w);
        if (!p || (uint64_t)p->count < train->min_count)
            break;
        st = name(vocab, n_special, p, &bytes, &id, err);
        if (st)
            break;
        if (!pf_grow(&merges->items, &merges->cap, merges->n + 1,
                sizeof *merges->items)) {
            st = pf_fail_mem(err);
            break;
        }
        merges->items[merges->n++] = (struct pf_train_pair){ p->left,
            p->right };
        if (!merge(w, p, id, pf_vocab_size(vocab)))
            st = pf_fail_mem(err);
        if (train->progress && merges->n % NOTICE == 0)
            train->progress(train->ctx, pf_vocab_size(vocab));
    }
    pf_buf_fini(&bytes);
    return st;
}

static void
fini(struct learner *w)
{
    struct block *b, *next;

    for (size_t i = 0; i < w->n_pairs; i++)
        forget(&w->pairs[i]);
    for (b = w->blocks; b; b = next) {
        next = b->next;
        free(b);
    }
    free(w->cells);
    free(w->ranges);
    free(w->lens);
    free(w->pairs);
    free(w->slots);
    free(w->heap);
    for (int i = 0; i < 2; i++) {
        struct side *s = i ? &w->before : &w->behind;

        free(s->changes);
        free(s->touched);
        free(s->log);
    }
}

enum pf_status
pf_train_merge(struct pf_words *words, const uint32_t letter[256],
    const struct pf_train *train, struct pf_vocab *vocab, size_t n_special,
    struct pf_train_merges *merges, struct pf_err *err)
{
    struct learner w = { 0 };
    enum pf_status st;
    size_t size = pf_vocab_size(vocab);

    w.lens = calloc(size + 1, sizeof *w.lens);
    w.lens_cap = size + 1;
    if (!w.lens)
        return pf_fail_mem(err);
    for (int b = 0; b < 256; b++)
        w.lens[letter[b]] = 1;
    st = begin(&w, words, letter, err);
    if (!st)
        st = learn(&w, train, vocab, n_special, merges, err);
    fini(&w);
    return st;
}
