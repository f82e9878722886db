#ifndef PF_BPE_H
#define PF_BPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pipeformer/err.h>

#include "vocab.h"

/*
 * A table of merges, and the joining of symbols by it.  Symbols are ids of a
 * vocabulary; the rank of a merge is its own number, apart from any id.
 */
struct pf_bpe;

enum {
    PF_BPE_NONE = 0xffffffff,         /* no symbol, no rank */
    PF_BPE_RANK_MAX = (1 << 24) - 2, /* the largest rank there may be */
};

/* `expect` merges are expected; any number may come. */
enum pf_status pf_bpe_new(struct pf_bpe **b, size_t expect,
    struct pf_err *err);
void pf_bpe_free(struct pf_bpe *b);

/*
 * left, right -> id at this rank (at most PF_BPE_RANK_MAX); of two merges of
 * one pair the later holds, of two of one rank the later result.
 */
enum pf_status pf_bpe_add(struct pf_bpe *b, uint32_t left, uint32_t right,
    uint32_t rank, uint32_t id, struct pf_err *err);

/*
 * Adds the merges of a merges.txt of GPT-2's form: a line has two symbols in
 * the printable alphabet with a space between, its number is the rank; a first
 * line that begins with #version is passed over.
 */
enum pf_status pf_bpe_read_merges(struct pf_bpe *b, const char *text,
    size_t len, const struct pf_vocab *v, struct pf_err *err);

/* The symbol of each byte in a vocabulary of bytes, or PF_BPE_NONE. */
void pf_bpe_bytes_of(const struct pf_vocab *v, uint32_t byte[256]);

/*
 * Where symbols are bytes: byte[c] is the symbol of c, or PF_BPE_NONE.  Makes
 * the ranks of all pairs of bytes a table; no more merges come.
 */
enum pf_status pf_bpe_set_bytes(struct pf_bpe *b, const uint32_t byte[256],
    struct pf_err *err);

/* Rank of a pair and what it becomes; PF_BPE_NONE, *id as it was, if none. */
uint32_t pf_bpe_find(const struct pf_bpe *b, uint32_t left, uint32_t right,
    uint32_t *id);

/* Whether a merge joins this symbol with another. */
bool pf_bpe_merges_of(const struct pf_bpe *b, uint32_t symbol);

/* What merging writes; reused from piece to piece. */
struct pf_bpe_work {
    void *memory;
    size_t cap;
};

#define PF_BPE_WORK_INIT { NULL, 0 }
void pf_bpe_work_fini(struct pf_bpe_work *w);

/*
 * Joins the adjacent pair of lowest rank, the leftmost of equals, until no
 * pair has a rank: *n symbols become fewer, in place.
 */
enum pf_status pf_bpe_merge(const struct pf_bpe *b, struct pf_bpe_work *w,
    uint32_t *ids, size_t *n, struct pf_err *err);

/*
 * The same from bytes that all have symbols, after pf_bpe_set_bytes: `ids` has
 * room for *n symbols, and *n is how many there are in the end.
 */
enum pf_status pf_bpe_merge_bytes(const struct pf_bpe *b,
    struct pf_bpe_work *w, const char *bytes, uint32_t *ids, size_t *n,
    struct pf_err *err);

/*
 * The same for many pieces, in any order and some side by side: `len` bytes
 * become n symbols at `ids`, which has room for len.  Those whose n is not 0
 * are left as they are.
 */
struct pf_bpe_piece {
    const char *bytes;
    size_t len, n;
    uint32_t *ids;
    struct pf_bpe_piece *next; /* scratch */
};

enum pf_status pf_bpe_merge_pieces(const struct pf_bpe *b,
    struct pf_bpe_work *w, struct pf_bpe_piece *pieces, size_t n,
    struct pf_err *err);

/* For tests: with vector instructions, if the processor has them, or without;
 * the result is the same. */
void pf_bpe_use_vectors(struct pf_bpe *b, bool use);

/*
 * The tables as they are, for a file of them (tables.h).  `slots` is a power
 * of two of them, `filter` has 8 bits a slot, `pairs` 65536 ranks.
 */
struct pf_bpe_data {
    const uint64_t *slots;
    const uint32_t *results, *pairs;
    const uint64_t *filter;
    size_t n_slots, n_results, n_filter;
};

struct pf_bpe_data pf_bpe_data(const struct pf_bpe *b);

/*
 * One that works on tables it does not own.  PF_EFORMAT if they have numbers
 * that lead out of them, or to an id that is no token of v.
 */
enum pf_status pf_bpe_view(struct pf_bpe **b, const struct pf_bpe_data *data,
    const uint32_t byte[256], const struct pf_vocab *v, struct pf_err *err);

#endif
