#ifndef PIPEFORMER_COMPARE_H
#define PIPEFORMER_COMPARE_H

#include <stddef.h>

#include <pipeformer/err.h>
#include <pipeformer/tensor.h>

/* Numbers about tensors, in double; PF_EFORMAT for types without arithmetic. */

/* Of the elements that are no NaN; NaN where there is none. */
struct pf_summary {
    double min, max, mean;
    double std;  /* the population's */
    double norm; /* Euclidean */
    size_t nan;  /* elements that are NaN */
};

enum pf_status pf_summarise(const struct pf_tensor *t, struct pf_summary *s,
    struct pf_err *err);

/*
 * Elements x, y of two tensors of one shape that differ: not equal, not both
 * NaN, and not |x - y| <= atol + rtol |y|.
 */
struct pf_difference {
    size_t n;    /* how many */
    size_t at;   /* where they are furthest apart (or one is NaN) */
    double x, y; /* what stands there */
};

/* PF_ESHAPE if the shapes are not the same. */
enum pf_status pf_compare(const struct pf_tensor *a,
    const struct pf_tensor *b, double atol, double rtol,
    struct pf_difference *d, struct pf_err *err);

#endif
