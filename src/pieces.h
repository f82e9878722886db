#ifndef PF_PIECES_H
#define PF_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokenizer-private.h"

/*
 * Pieces become ids: what an encoder writes that does not depend on where its
 * pieces came from.  With `track` each id has a range of the text at hand,
 * from spans[2 * i] to spans[2 * i + 1], in bytes from the piece's `at`.
 */
struct pf_pieces {
    const struct pf_tokenizer *tok;
    uint32_t *ids;
    size_t n, cap;
    bool track;
    size_t *spans, spans_cap;

    struct pf_bpe_work work;
    struct pf_wordpiece_work words;
    size_t *lens, lens_cap; /* of WordPiece's pieces */
    struct unknown *unknown; /* of the piece at hand */
    size_t n_unknown, unknown_cap;
    struct pf_short_set *shorts; /* the caches; NULL until the first piece */
    struct pf_long_entry *longs;
    unsigned bits;   /* of a hash, by which both are indexed */
    size_t n_learnt; /* pieces that were new */
    uint32_t *more;
    size_t n_more;

    /* The new pieces of a batch: their ids, one piece's after the other's. */
    struct pf_bpe_piece *fresh;
    size_t n_fresh, fresh_cap;
    uint32_t *fresh_ids;
    size_t fresh_ids_cap;
};

/* Zeroed, with `tok` set, is a good beginning. */
void pf_pieces_fini(struct pf_pieces *p);

/* Room for n more ids. */
enum pf_status pf_pieces_room(struct pf_pieces *p, size_t n,
    struct pf_err *err);

/* An id that is no piece's. */
enum pf_status pf_pieces_add(struct pf_pieces *p, uint32_t id, size_t from,
    size_t to, struct pf_err *err);

/*
 * The pieces of a text, ends[i - 1] to ends[i], at which the text begins at
 * `at`.  There is room for as many ids as it has bytes.
 */
enum pf_status pf_pieces_encode(struct pf_pieces *p, const char *text,
    size_t len, size_t begin, const size_t *ends, size_t n, size_t at,
    struct pf_err *err);

#endif
