#ifndef PF_PIECES_PRIVATE_H
#define PF_PIECES_PRIVATE_H

#include "pieces.h"

enum {
    PF_PIECES_BATCH = 1024, /* pieces that are looked up together */
    PF_PIECES_STEP = 8,     /* ids that are copied at once */
};

/* The caches, made when the first piece comes. */
enum pf_status pf_pieces_cache(struct pf_pieces *p, struct pf_err *err);

/* Up to PF_PIECES_BATCH pieces of bytes or of words, with the caches. */
enum pf_status pf_pieces_batch(struct pf_pieces *p, const char *text,
    size_t len, size_t begin, const size_t *ends, size_t n,
    struct pf_err *err);

/* A piece of characters or of words. */
enum pf_status pf_pieces_model(struct pf_pieces *p, const char *s, size_t len,
    struct pf_err *err);

#endif
