#ifndef TENSOR_DIFF_H
#define TENSOR_DIFF_H

#include "cli.h"

struct differences {
    double atol, rtol; /* what is allowed: atol + rtol * |there| */
    bool any;
};

/* A line about one, of a record's tensor or of the record. */
void differences_add(struct differences *d, struct pf_buf *b,
    const struct cli_item *item, const char *name, const char *what);

/* The lines about a record's tensors and those of another: by name, or where
 * there is one here and there, whatever their names. */
enum pf_status differences_find(struct differences *d, struct pf_buf *b,
    const struct cli_item *item, const struct pf_record *other,
    struct pf_err *err);

#endif
