#ifndef TENSOR_COSINE_H
#define TENSOR_COSINE_H

#include <pipeformer/cosine.h>

#include "cli.h"

/*
 * tensor --cosine: the rows of a matrix against each other, in its record; or,
 * where records have vectors, each against those of all records, which wait
 * for the last of them.
 */
struct cosines {
    const char *name; /* of the tensor */
    struct pf_rows rows;
    bool begun, matrices;   /* the records have matrices, not vectors */
    struct pf_record *held; /* those with vectors, and what stands between */
    size_t n_held, cap_held;
};

/* A record, or a mark. */
enum pf_status cosines_add(struct cosines *c, struct cli_item *item,
    struct pf_err *err);

/* Takes an error record, if records wait that stand before it. */
bool cosines_hold(struct cosines *c, struct pf_record *rec);

/* Writes the records that wait, each with the cosines of its vector. */
enum pf_status cosines_end(struct cosines *c, struct pf_err *err);

void cosines_fini(struct cosines *c);

#endif
