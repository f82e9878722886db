/*
 * Byte pair encoding (Gage 1994; Sennrich et al. 2016), applied.  The pairs
 * that may be joined are in an open-addressing hash table, with a filter in
 * front of it (bpe-private.h); joining them is in bpe-merge.h, for every
 * length of piece the same, and costs O(n log n) whatever the piece is.
 *
 * Ranks need not grow with what they are made of: a pair that a merge brings
 * about may come before those that wait.
 */
#include "bpe-private.h"
#include "cpu.h"

#include <stdlib.h>
#include <string.h>

#include <pipeformer/buf.h>

static inline int32_t
least(const int32_t *p, size_t n)
{
    int32_t v = p[0];

    for (size_t i = 1; i < n; i++)
        v = p[i] < v ? p[i] : v;
    return v;
}

static inline size_t
first(const int32_t *p)
{
    size_t at = 0;

    for (size_t i = 1; i < FAN; i++)
        at = p[i] < p[at] ? i : at;
    return at;
}

#include "bpe-merge.h"

void
pf_bpe_use_vectors(struct pf_bpe *b, bool use)
{
    b->merge = merge;
    b->side = NULL;
#if defined(__x86_64__)
    if (use && pf_bpe_merge_avx2 && pf_cpu() >= PF_CPU_AVX2)
        b->merge = pf_bpe_merge_avx2;
    if (use && pf_bpe_merge_avx512 && pf_cpu() >= PF_CPU_AVX512)
        b->side = pf_bpe_merge_avx512;
#else
    (void)use;
#endif
}

/* Puts a pair where it belongs; the old rank plus 1, or 0 if it is new. */
static uint32_t
put(struct pf_bpe *b, uint64_t pair, uint32_t rank)
{
    uint64_t h = pair_hash(pair), *slot;
    size_t i = h >> (b->shift - FILTER_BITS);
    uint32_t old;

    b->filter[i / 64] |= (uint64_t)1 << i % 64;
    for (i >>= FILTER_BITS;; i = (i + 1) & (b->n_slots - 1)) {
        slot = &b->slots[i];
        if (*slot && *slot >> RANK_BITS != pair)
            continue;
        old = *slot & ((1 << RANK_BITS) - 1);
        *slot = pair << RANK_BITS | (rank + 1);
        return old;
    }
}

static bool
rehash(struct pf_bpe *b, size_t n)
{
    struct pf_bpe to = *b;

    to.n_slots = n;
    to.shift = 64;
    for (size_t i = n; i > 1; i /= 2)
        to.shift--;
    to.slots = calloc(n, sizeof *to.slots);
    to.filter = calloc((n << FILTER_BITS) / 64, sizeof *to.filter);
    if (!to.slots || !to.filter) {
        free(to.slots);
        free(to.filter);
        return false;
    }
    for (size_t i = 0; i < b->n_slots; i++)
        if (b->slots[i])
            put(&to, b->slots[i] >> RANK_BITS,
                (uint32_t)(b->slots[i] & ((1 << RANK_BITS) - 1)) - 1);
    free(b->slots);
    free(b->filter);
    *b = to;
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
    while (n - n / 5 < expect && n < 2 * (size_t)PF_BPE_RANK_MAX)
        n *= 2;
    pf_bpe_use_vectors(b, true);
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
    if (b && !b->borrowed) {
        free(b->slots);
        free(b->filter);
        free(b->results);
        free(b->pairs);
    }
    free(b);
}

enum pf_status
pf_bpe_add(struct pf_bpe *b, uint32_t left, uint32_t right, uint32_t rank,
    uint32_t id, struct pf_err *err)
{
    size_t cap = b->cap;

    if (rank > PF_BPE_RANK_MAX)
        return pf_fail(err, PF_ERANGE, "more than %d merges",
            PF_BPE_RANK_MAX);
    if (b->count + 1 > b->n_slots - b->n_slots / 5
        && !rehash(b, b->n_slots * 2))
        return pf_fail_mem(err);
    if (!pf_grow(&b->results, &b->cap, rank + (size_t)1, sizeof *b->results))
        return pf_fail_mem(err);
    /* Ranks that no merge has lead nowhere: nothing leads to them. */
    for (; cap < b->cap; cap++)
        b->results[cap] = id - rank + (uint32_t)cap;
    b->results[rank] = id;
    if (rank >= b->n_results)
        b->n_results = rank + (size_t)1;
    b->count += !put(b, (uint64_t)left << SYMBOL_BITS | right, rank);
    return PF_OK;
}

uint32_t
pf_bpe_find(const struct pf_bpe *b, uint32_t left, uint32_t right,
    uint32_t *id)
{
    int32_t rank = pair_rank(b, left, right);

    if (rank == RANK_NONE)
        return PF_BPE_NONE;
    *id = b->results[rank];
    return (uint32_t)rank;
}

void
pf_bpe_bytes_of(const struct pf_vocab *v, uint32_t byte[256])
{
    char c;

    for (int i = 0; i < 256; i++) {
        c = (char)i;
        if (!pf_vocab_find(v, &c, 1, &byte[i]))
            byte[i] = PF_BPE_NONE;
    }
}

bool
pf_bpe_merges_of(const struct pf_bpe *b, uint32_t symbol)
{
    const uint64_t mask = ((uint64_t)1 << SYMBOL_BITS) - 1;
    uint64_t pair;

    for (size_t i = 0; i < b->n_slots; i++) {
        pair = b->slots[i] >> RANK_BITS;
        if (b->slots[i] && (pair >> SYMBOL_BITS == symbol
                || (pair & mask) == symbol))
            return true;
    }
    return false;
}

static bool
is_even(const struct pf_bpe *b)
{
    uint32_t odd = 0;

    for (size_t i = 0; i < b->n_results; i++)
        odd |= b->results[i] ^ (b->results[0] + (uint32_t)i);
    return odd == 0;
}

enum pf_status
pf_bpe_set_bytes(struct pf_bpe *b, const uint32_t byte[256],
    struct pf_err *err)
{
    int32_t rank;

    memcpy(b->byte, byte, sizeof b->byte);
    b->even = b->n_results && is_even(b);
    b->pairs = malloc(65536 * sizeof *b->pairs);
    if (!b->pairs)
        return pf_fail_mem(err);
    for (uint32_t i = 0; i < 256; i++) {
        for (uint32_t k = 0; k < 256; k++) {
            rank = byte[i] == PF_BPE_NONE || byte[k] == PF_BPE_NONE
                ? RANK_NONE : pair_rank(b, byte[i], byte[k]);
            b->pairs[i << 8 | k] = (uint32_t)rank;
        }
    }
    return PF_OK;
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
    free(w->memory);
    *w = (struct pf_bpe_work)PF_BPE_WORK_INIT;
}

/* The levels of the tree: at most n + n/16 + ... and FAN a level. */
static bool
make_room(struct pf_bpe_work *w, size_t n)
{
    return n < UINT32_MAX && pf_grow(&w->memory, &w->cap,
        3 * n + n / (FAN - 1) + DEPTH_MAX * FAN, sizeof(uint32_t));
}

/* The ranks behind the last pair of n symbols. */
static void
pad(int32_t *rank, size_t n)
{
    for (size_t i = n - 1; i < n || i % FAN; i++)
        rank[i] = RANK_NONE;
}

enum pf_status
pf_bpe_merge(const struct pf_bpe *b, struct pf_bpe_work *w, uint32_t *ids,
    size_t *n, struct pf_err *err)
{
    int32_t *rank;

    if (*n < 2)
        return PF_OK;
    if (!make_room(w, *n))
        return pf_fail_mem(err);
    rank = w->memory;
    for (size_t i = 0; i + 1 < *n; i++)
        rank[i] = pair_rank(b, ids[i], ids[i + 1]);
    pad(rank, *n);
    *n = b->merge(b, w, ids, *n);
    return PF_OK;
}

enum pf_status
pf_bpe_merge_bytes(const struct pf_bpe *b, struct pf_bpe_work *w,
    const char *bytes, uint32_t *ids, size_t *n, struct pf_err *err)
{
    const unsigned char *p = (const unsigned char *)bytes;
    int32_t *rank;
    size_t i;

    if (!make_room(w, *n))
        return pf_fail_mem(err);
    rank = w->memory;
    for (i = 0; i + 1 < *n; i++) {
        ids[i] = b->byte[p[i]];
        rank[i] = (int32_t)b->pairs[p[i] << 8 | p[i + 1]];
    }
    if (*n)
        ids[i] = b->byte[p[i]];
    if (*n < 2)
        return PF_OK;
    pad(rank, *n);
    *n = b->merge(b, w, ids, *n);
    return PF_OK;
}

static enum pf_status
merge_alone(const struct pf_bpe *b, struct pf_bpe_work *w,
    struct pf_bpe_piece *p, struct pf_err *err)
{
    p->n = p->len;
    return pf_bpe_merge_bytes(b, w, p->bytes, p->ids, &p->n, err);
}

/* Those of like length go together: all lanes are done when the longest is. */
enum pf_status
pf_bpe_merge_pieces(const struct pf_bpe *b, struct pf_bpe_work *w,
    struct pf_bpe_piece *pieces, size_t n, struct pf_err *err)
{
    enum { WORTH = 4 }; /* so many side by side are faster than alone */
    struct pf_bpe_piece *by_len[SIDE_MAX + 1] = { NULL }, *p;
    struct pf_bpe_piece *side[SIDE_BY_SIDE];
    bool few = !b->side || n < WORTH;
    enum pf_status st = PF_OK;
    size_t k = 0;

    for (size_t i = 0; i < n && !st; i++) {
        p = &pieces[i];
        if (p->n)
            continue;
        if (few || p->len > SIDE_MAX || p->len < 2) {
            st = merge_alone(b, w, p, err);
            continue;
        }
        p->next = by_len[p->len];
        by_len[p->len] = p;
    }
    for (size_t len = 2; !few && len <= SIDE_MAX; len++) {
        for (p = by_len[len]; p; p = p->next) {
            side[k++] = p;
            if (k == SIDE_BY_SIDE) {
                b->side(b, side, k);
                k = 0;
            }
        }
    }
    if (k >= WORTH) {
        b->side(b, side, k);
        k = 0;
    }
    while (k-- && !st)
        st = merge_alone(b, w, side[k], err);
    return st;
}

struct pf_bpe_data
pf_bpe_data(const struct pf_bpe *b)
{
    return (struct pf_bpe_data){ b->slots, b->results, b->pairs, b->filter,
        b->n_slots, b->n_results, (b->n_slots << FILTER_BITS) / 64 };
}

enum pf_status
pf_bpe_view(struct pf_bpe **out, const struct pf_bpe_data *d,
    const uint32_t byte[256], const struct pf_vocab *v, struct pf_err *err)
{
    struct pf_bpe *b;
    size_t size = pf_vocab_size(v), rank, len;
    uint32_t slot, low, used = 0, wrong = 0, lost = 0;
    bool holes = pf_vocab_count(v) < size, bad;

    *out = NULL;
    if (d->n_slots < 64 || (d->n_slots & (d->n_slots - 1))
        || d->n_slots > UINT32_MAX
        || d->n_filter != (d->n_slots << FILTER_BITS) / 64
        || d->n_results > PF_BPE_RANK_MAX + 1)
        return pf_fail(err, PF_EFORMAT, "the table of merges has a size that "
            "it cannot have");
    /* Without branches, as in pf_vocab_view, and in 32 bits.  Of a slot that
     * has no rank, any other bit is lost. */
    for (size_t i = 0; i < d->n_slots; i++) {
        slot = (uint32_t)(d->slots[i] | d->slots[i] >> 32);
        low = (uint32_t)d->slots[i] & ((1 << RANK_BITS) - 1);
        used += low > 0;
        wrong |= (uint32_t)d->n_results - low;
        lost |= low ? 0 : slot;
    }
    for (size_t i = 0; i < d->n_results; i++)
        wrong |= d->results[i] | ((uint32_t)size - 1 - d->results[i]);
    for (size_t i = 0; i < 65536; i++)
        wrong |= d->pairs[i] == RANK_NONE ? 0
            : d->pairs[i] | ((uint32_t)d->n_results - 1 - d->pairs[i]);
    bad = wrong >> 31 || lost;
    /* A rank that no pair has may lead to an id that no token has. */
    for (size_t i = 0; holes && !bad && i < d->n_slots + 65536; i++) {
        rank = i < d->n_slots
            ? (d->slots[i] & ((1 << RANK_BITS) - 1)) - (d->slots[i] != 0)
            : d->pairs[i - d->n_slots];
        if (i < d->n_slots ? d->slots[i] != 0 : rank != RANK_NONE)
            bad |= !pf_vocab_bytes(v, d->results[rank], &len);
    }
    if (bad || used == d->n_slots)
        return pf_fail(err, PF_EFORMAT, "the table of merges has numbers that "
            "lead out of it");
    b = calloc(1, sizeof *b);
    if (!b)
        return pf_fail_mem(err);
    /* Nothing is written through these: no merge is added to a view. */
    b->slots = (uint64_t *)d->slots;
    b->filter = (uint64_t *)d->filter;
    b->results = (uint32_t *)d->results;
    b->pairs = (uint32_t *)d->pairs;
    b->n_slots = d->n_slots;
    b->n_results = d->n_results;
    b->count = used;
    b->shift = 64;
    for (size_t i = d->n_slots; i > 1; i /= 2)
        b->shift--;
    memcpy(b->byte, byte, sizeof b->byte);
    b->borrowed = true;
    b->even = b->n_results && is_even(b);
    pf_bpe_use_vectors(b, true);
    *out = b;
    return PF_OK;
}
