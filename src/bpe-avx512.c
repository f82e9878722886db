/*
 * Sixteen pieces merged side by side, one in each lane of the vectors: a row
 * has the symbols at one place of all of them, or the ranks of the pairs that
 * begin there.  A step joins the next pair of every piece at once: two pairs
 * of each are looked up, then one walk through the rows closes the gaps and
 * finds the least ranks anew.  No branch depends on what a piece is, and the
 * memory that sixteen look-ups wait for comes at the same time; the loop of
 * bpe-merge.h, which does the same to one piece, waits for each.
 */
#include "bpe-private.h"

#if defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#include <immintrin.h>

/* Rows up to the longest piece, and what the walk sees behind it. */
struct rows {
    _Alignas(64) int32_t rank[SIDE_MAX + 2][SIDE_BY_SIDE];
    _Alignas(64) uint32_t symbol[SIDE_MAX + 2][SIDE_BY_SIDE];
};

/* Pairs that are looked up, four times eight, and their ranks. */
enum { PAIRS = 2 * SIDE_BY_SIDE };

struct lookup {
    _Alignas(64) uint64_t pair[PAIRS];
    _Alignas(64) uint64_t slot[PAIRS]; /* where its search begins */
    _Alignas(64) int32_t rank[PAIRS];
};

/* Prepares eight; those of `want` that pass the filter. */
static inline __mmask8
filter_eight(const struct pf_bpe *b, struct lookup *l, size_t at,
    __m256i left, __m256i right, __mmask8 want)
{
    __m512i pair = _mm512_or_si512(
        _mm512_slli_epi64(_mm512_cvtepu32_epi64(left), SYMBOL_BITS),
        _mm512_cvtepu32_epi64(right));
    __m512i i, h, word;

    h = _mm512_mullo_epi64(pair, _mm512_set1_epi64((int64_t)HASH_A));
    h = _mm512_xor_si512(h, _mm512_srli_epi64(h, 32));
    h = _mm512_mullo_epi64(h, _mm512_set1_epi64((int64_t)HASH_B));
    i = _mm512_srli_epi64(h, b->shift - FILTER_BITS);
    word = _mm512_mask_i64gather_epi64(i, want, _mm512_srli_epi64(i, 6),
        b->filter, 8);
    word = _mm512_srlv_epi64(word, _mm512_and_si512(i,
        _mm512_set1_epi64(63)));
    _mm512_store_si512(l->pair + at, pair);
    _mm512_store_si512(l->slot + at, _mm512_srli_epi64(i, FILTER_BITS));
    return _mm512_mask_test_epi64_mask(want, word, _mm512_set1_epi64(1));
}

static inline uint32_t
filter(const struct pf_bpe *b, struct lookup *l, size_t at, __m512i left,
    __m512i right, __mmask16 want)
{
    uint32_t low = filter_eight(b, l, at, _mm512_castsi512_si256(left),
        _mm512_castsi512_si256(right), (__mmask8)want);
    uint32_t high = filter_eight(b, l, at + 8,
        _mm512_extracti64x4_epi64(left, 1),
        _mm512_extracti64x4_epi64(right, 1), (__mmask8)(want >> 8));

    return (low | high << 8) << at;
}

/* The rank of a pair that has passed: eight slots, a cache line, at a time. */
static inline int32_t
find_rank(const struct pf_bpe *b, uint64_t pair, size_t i)
{
    __m512i want = _mm512_set1_epi64((int64_t)pair), slots;
    unsigned from = 0xff & ~0u << i % 8, end, hit;

    for (i -= i % 8;; i = (i + 8) & (b->n_slots - 1), from = 0xff) {
        slots = _mm512_loadu_si512(b->slots + i);
        end = _mm512_testn_epi64_mask(slots, slots) & from;
        hit = _mm512_cmpeq_epi64_mask(_mm512_srli_epi64(slots, RANK_BITS),
            want) & from & ~end;
        if (hit)
            return (int32_t)(b->slots[i + (unsigned)__builtin_ctz(hit)]
                & ((1 << RANK_BITS) - 1)) - 1;
        if (end)
            return RANK_NONE;
    }
}

/* The least of each lane so far, and the row where it is first. */
struct least {
    __m512i rank, row;
};

static inline void
see(struct least *l, __m512i rank, __m512i row)
{
    __mmask16 less = _mm512_cmplt_epi32_mask(rank, l->rank);

    l->rank = _mm512_mask_mov_epi32(l->rank, less, rank);
    l->row = _mm512_mask_mov_epi32(l->row, less, row);
}

/* Bytes become rows; returns the least ranks. */
static struct least
fill(const struct pf_bpe *b, struct rows *r, struct pf_bpe_piece *const *p,
    size_t n, size_t rows)
{
    __m512i none = _mm512_set1_epi32(RANK_NONE);
    struct least l = { none, none };

    for (size_t i = 0; i <= rows; i++)
        _mm512_store_si512(r->rank[i], none);
    for (size_t k = 0; k < n; k++) {
        const unsigned char *s = (const unsigned char *)p[k]->bytes;
        size_t len = p[k]->len;

        for (size_t i = 0; i < len; i++)
            r->symbol[i][k] = b->byte[s[i]];
        for (size_t i = 0; i + 1 < len; i++)
            r->rank[i][k] = (int32_t)b->pairs[s[i] << 8 | s[i + 1]];
    }
    for (size_t i = 0; i < rows; i++)
        see(&l, _mm512_load_si512(r->rank[i]), _mm512_set1_epi32((int)i));
    return l;
}

/* The symbols of a row of its own for each lane. */
static inline __m512i
symbols_at(const struct rows *r, __m512i row, __mmask16 want)
{
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6,
        5, 4, 3, 2, 1, 0);

    return _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), want,
        _mm512_or_si512(_mm512_slli_epi32(row, 4), lane), r->symbol, 4);
}

/* Joins the pair that is the least of each lane. */
static inline struct least
step(const struct pf_bpe *b, struct rows *r, struct least at, __m512i len,
    size_t rows)
{
    const __m512i one = _mm512_set1_epi32(1);
    __m512i none = _mm512_set1_epi32(RANK_NONE), symbol, left, before, after;
    __m512i rank, next_rank, s, next_symbol, row;
    __mmask16 live = _mm512_cmplt_epi32_mask(at.rank, none), more, behind, here;
    struct least l = { none, none };
    struct lookup look;
    uint32_t found;

    symbol = b->even
        ? _mm512_add_epi32(at.rank, _mm512_set1_epi32((int)b->results[0]))
        : _mm512_mask_i32gather_epi32(one, live, at.rank, b->results, 4);
    left = _mm512_sub_epi32(at.row, one);
    after = _mm512_add_epi32(at.row, _mm512_set1_epi32(2));
    more = _mm512_mask_cmpgt_epi32_mask(live, at.row, _mm512_setzero_si512());
    found = filter(b, &look, 0, symbols_at(r, left, more), symbol, more);
    more = _mm512_mask_cmplt_epi32_mask(live, after, len);
    found |= filter(b, &look, SIDE_BY_SIDE, symbol, symbols_at(r, after, more),
        more);
    _mm512_store_si512(look.rank, none);
    _mm512_store_si512(look.rank + SIDE_BY_SIDE, none);
    for (size_t k; found; found &= found - 1) {
        k = (size_t)__builtin_ctz(found);
        look.rank[k] = find_rank(b, look.pair[k], look.slot[k]);
    }
    before = _mm512_load_si512(look.rank);
    after = _mm512_load_si512(look.rank + SIDE_BY_SIDE);
    next_rank = _mm512_load_si512(r->rank[0]);
    next_symbol = _mm512_load_si512(r->symbol[0]);
    row = _mm512_setzero_si512();
    for (size_t i = 0; i < rows; i++) {
        rank = next_rank;
        s = next_symbol;
        next_rank = _mm512_load_si512(r->rank[i + 1]);
        next_symbol = _mm512_load_si512(r->symbol[i + 1]);
        behind = _mm512_cmplt_epi32_mask(at.row, row);
        here = _mm512_cmpeq_epi32_mask(at.row, row);
        rank = _mm512_mask_mov_epi32(rank, behind, next_rank);
        s = _mm512_mask_mov_epi32(s, behind, next_symbol);
        rank = _mm512_mask_mov_epi32(rank, here, after);
        s = _mm512_mask_mov_epi32(s, here, symbol);
        rank = _mm512_mask_mov_epi32(rank,
            _mm512_cmpeq_epi32_mask(left, row), before);
        _mm512_store_si512(r->rank[i], rank);
        _mm512_store_si512(r->symbol[i], s);
        see(&l, rank, row);
        row = _mm512_add_epi32(row, one);
    }
    return l;
}

/* `at` of a lane without a pair is in no row, nor is it beside one. */
static void
merge_side(const struct pf_bpe *b, struct pf_bpe_piece **p, size_t n)
{
    _Alignas(64) int32_t lens[SIDE_BY_SIDE] = { 0 };
    __m512i none = _mm512_set1_epi32(RANK_NONE), len;
    size_t rows = 0;
    struct rows r;
    struct least at;
    __mmask16 live;

    for (size_t k = 0; k < n; k++) {
        lens[k] = (int32_t)p[k]->len;
        rows = p[k]->len > rows ? p[k]->len : rows;
    }
    at = fill(b, &r, p, n, rows);
    len = _mm512_load_si512(lens);
    while ((live = _mm512_cmplt_epi32_mask(at.rank, none))) {
        at = step(b, &r, at, len, rows);
        len = _mm512_mask_sub_epi32(len, live, len, _mm512_set1_epi32(1));
        rows = (size_t)_mm512_reduce_max_epi32(len);
    }
    _mm512_store_si512(lens, len);
    for (size_t k = 0; k < n; k++) {
        p[k]->n = (size_t)lens[k];
        for (size_t i = 0; i < p[k]->n; i++)
            p[k]->ids[i] = r.symbol[i][k];
    }
}

void (*const pf_bpe_merge_avx512)(const struct pf_bpe *,
    struct pf_bpe_piece **, size_t) = merge_side;

#else

void (*const pf_bpe_merge_avx512)(const struct pf_bpe *,
    struct pf_bpe_piece **, size_t) = NULL;

#endif
