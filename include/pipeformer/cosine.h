#ifndef PIPEFORMER_COSINE_H
#define PIPEFORMER_COSINE_H

#include <stddef.h>

#include <pipeformer/err.h>

/*
 * Rows of C numbers each, to be compared by the cosine of the angle between
 * them.  Start from PF_ROWS_INIT.
 */
struct pf_rows {
    float *v; /* [n, C] */
    double *length;
    size_t n, C, cap, cap_length;
};

#define PF_ROWS_INIT { NULL, NULL, 0, 0, 0, 0 }

void pf_rows_fini(struct pf_rows *r);

/* None again. */
void pf_rows_clear(struct pf_rows *r);

/* Copies a row; PF_ESHAPE if it is of another length than those before. */
enum pf_status pf_rows_add(struct pf_rows *r, const float *row, size_t C,
    struct pf_err *err);

/*
 * out[j] = row i . row j / (|row i| |row j|), for all n rows; NaN where a
 * length is zero or not finite.  The sums are in double, in one order: that
 * of i and j is that of j and i.
 */
void pf_rows_cosines(const struct pf_rows *r, size_t i, float *out);

#endif
