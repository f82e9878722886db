#ifndef PIPEFORMER_POOLING_H
#define PIPEFORMER_POOLING_H

#include <stddef.h>

#include <pipeformer/err.h>

/*
 * One vector of the rows of a sequence.  Rows may come in parts: the result
 * has the same bits however they are cut.
 */
enum pf_pool_how {
    PF_POOL_MEAN,
    PF_POOL_FIRST, /* BERT's [CLS] */
    PF_POOL_LAST,
    PF_POOL_MAX, /* of each column */
};

struct pf_pooling {
    enum pf_pool_how how;
    size_t width, rows; /* rows so far */
    double *v;          /* their sum, maximum, or the one row */
};

void pf_pooling_fini(struct pf_pooling *p);

/*
 * Takes n rows of C more.  PF_ESHAPE if earlier ones were of another width.
 */
enum pf_status pf_pooling_add(struct pf_pooling *p, const float *x, size_t n,
    size_t C, struct pf_err *err);

/* The vector, `width` floats.  There is a row. */
void pf_pooling_get(const struct pf_pooling *p, float *out);

/* x / |x|; zeros stay. */
void pf_normalize_length(float *x, size_t n);

#endif
