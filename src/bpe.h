#ifndef PF_BPE_H
#define PF_BPE_H

#include <stddef.h>
#include <stdint.h>

#include <pipeformer/err.h>

#include "vocab.h"

/*
 * A table of merges, and the joining of symbols by it.  Symbols are ids of a
 * vocabulary; the rank of a merge is its own number, apart from any id.
 */
struct pf_bpe;

enum { PF_BPE_NONE = 0xffffffff };

/* `expect` merges are expected; any number may come. */
enum pf_status pf_bpe_new(struct pf_bpe **b, size_t expect,
    struct pf_err *err);
void pf_bpe_free(struct pf_bpe *b);

/*
 * left, right -> id at this rank (below 2^24); of two merges of one pair the
 * later holds.
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

/* Rank of a pair and what it becomes; PF_BPE_NONE, *id as it was, if none. */
uint32_t pf_bpe_find(const struct pf_bpe *b, uint32_t left, uint32_t right,
    uint32_t *id);

/* What the merging of long pieces writes; reused from piece to piece. */
struct pf_bpe_work {
    uint32_t *links;
    uint64_t *heap;
    size_t links_cap, heap_cap, heap_len;
};

#define PF_BPE_WORK_INIT { NULL, NULL, 0, 0, 0 }
void pf_bpe_work_fini(struct pf_bpe_work *w);

/*
 * Joins the adjacent pair of lowest rank, the leftmost of equals, until no
 * pair has a rank: *n symbols become fewer, in place.
 */
enum pf_status pf_bpe_merge(const struct pf_bpe *b, struct pf_bpe_work *w,
    uint32_t *ids, size_t *n, struct pf_err *err);

#endif
