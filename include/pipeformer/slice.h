#ifndef PIPEFORMER_SLICE_H
#define PIPEFORMER_SLICE_H

#include <stddef.h>

#include <pipeformer/err.h>
#include <pipeformer/record.h>

/*
 * numpy's basic slices, "-1,0:5,::2": an index takes its axis away, a range
 * start:stop:step keeps it; negative numbers count from the end, ranges are
 * clipped, an index out of range is PF_ERANGE.  Axes that are not named stay
 * whole.
 */

/*
 * Replaces a tensor of the record by its part; the data are copied into the
 * record's memory.
 */
enum pf_status pf_slice(struct pf_record *rec, struct pf_tensor *t,
    const char *slice, struct pf_err *err);

/*
 * Leaves of the record's tensors only those that `what` names, each NAME or
 * NAME:SLICE, in that order.  One that is not there, or is named twice, is an
 * error.
 */
enum pf_status pf_select(struct pf_record *rec, const char *const *what,
    size_t n, struct pf_err *err);

#endif
