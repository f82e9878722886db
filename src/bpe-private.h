#ifndef PF_BPE_PRIVATE_H
#define PF_BPE_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

#include "bpe.h"

/*
 * A slot has a pair and its rank plus 1, or is 0: 20 bits left, 20 bits right,
 * 24 bits rank.  A pair's place begins with the top bits of its hash; three
 * bits more of the hash find it in the filter, where one bit says whether any
 * pair with those is there: most pairs that are looked up are none, and the
 * filter is small enough to stay in the cache.
 */
enum { RANK_BITS = 24, SYMBOL_BITS = 20, RANK_NONE = INT32_MAX,
    FILTER_BITS = 3 };

struct pf_bpe {
    uint64_t *slots, *filter;
    uint32_t *results; /* by rank: what a pair becomes */
    bool even;         /* and that is the rank plus results[0], for all */
    uint32_t *pairs;   /* by two bytes: the rank, or RANK_NONE; may be NULL */
    unsigned shift;    /* 64 - the bits of a slot's number */
    size_t n_slots, n_results, count, cap;
    uint32_t byte[256];
    bool borrowed; /* the tables are someone else's */
    size_t (*merge)(const struct pf_bpe *b, struct pf_bpe_work *w,
        uint32_t *ids, size_t n);
    /* SIDE_BY_SIDE pieces, or fewer, of 1 to SIDE_MAX bytes; or NULL. */
    void (*side)(const struct pf_bpe *b, struct pf_bpe_piece **p, size_t n);
};

enum { SIDE_BY_SIDE = 16, SIDE_MAX = 128 };

#define HASH_A 0x9e3779b97f4a7c15
#define HASH_B 0xd6e8feb86659fd93

static inline uint64_t
pair_hash(uint64_t pair)
{
    uint64_t h = pair * HASH_A;

    h ^= h >> 32;
    return h * HASH_B;
}

/* The rank of a pair, or RANK_NONE. */
static inline int32_t
pair_rank(const struct pf_bpe *b, uint32_t left, uint32_t right)
{
    uint64_t pair = (uint64_t)left << SYMBOL_BITS | right, slot;
    uint64_t h = pair_hash(pair);
    size_t i = h >> (b->shift - FILTER_BITS);

    if (!(b->filter[i / 64] >> i % 64 & 1))
        return RANK_NONE;
    for (i >>= FILTER_BITS;; i = (i + 1) & (b->n_slots - 1)) {
        slot = b->slots[i];
        if (slot >> RANK_BITS == pair && slot)
            return (int32_t)(slot & ((1 << RANK_BITS) - 1)) - 1;
        if (!slot)
            return RANK_NONE;
    }
}

/* What the pair of that rank becomes. */
static inline uint32_t
pair_result(const struct pf_bpe *b, int32_t rank)
{
    return b->even ? (uint32_t)rank + b->results[0] : b->results[rank];
}

/* Up to so many symbols are merged without a tree; a place takes 7 bits. */
enum { FLAT = 128, FLAT_BITS = 7 };

/*
 * The memory of a merge: ranks in levels of a tree, each node the least of its
 * 16 children, then the neighbours on both sides.
 */
enum { FAN = 16, DEPTH_MAX = 8 };

struct merge_tree {
    int32_t *level[DEPTH_MAX]; /* level[0]: the rank of the pair at i */
    size_t len[DEPTH_MAX];     /* a multiple of FAN; no ranks at the end */
    int depth;
    uint32_t *next, *prev;
};

/* Where everything lies in memory that has room for n symbols. */
static inline void
merge_tree(struct merge_tree *t, const struct pf_bpe_work *w, size_t n)
{
    int32_t *p = w->memory;
    size_t len = n;

    t->depth = 0;
    do {
        len = (len + FAN - 1) / FAN * FAN;
        t->level[t->depth] = p;
        t->len[t->depth++] = len;
        p += len;
        len /= FAN;
    } while (len > 1);
    t->next = (uint32_t *)p;
    t->prev = t->next + n;
}

/* bpe-merge.h, compiled for a processor with AVX2; NULL without. */
extern size_t (*const pf_bpe_merge_avx2)(const struct pf_bpe *b,
    struct pf_bpe_work *w, uint32_t *ids, size_t n);

/* bpe-avx512.c: side by side. */
extern void (*const pf_bpe_merge_avx512)(const struct pf_bpe *b,
    struct pf_bpe_piece **p, size_t n);

#endif
