#ifndef GATHER_H
#define GATHER_H

#include <stddef.h>

#include <pipeformer/buf.h>
#include <pipeformer/record.h>
#include <pipeformer/seqmap.h>

#include "cli.h"
#include "maps.h"

/*
 * Maps of sequences, each in one record or in several that follow each other
 * by `seq` and `pos`, until the sequence is done, begins anew, or the input
 * ends.
 */

/* A sequence under way; first come, first in the list. */
struct gathered {
    struct gathered *prev, *next;
    struct axis layers, heads; /* n 0: an axis that is not there */
    size_t n_maps;
    size_t rows;  /* so far */
    void *data;   /* the command's */
    size_t bytes; /* of data, about; `add` sets it */
    const char *file; /* where its last record was */
    uint64_t number;
    size_t key_len;
    char key[];
};

struct gather {
    void *ctx;
    const char *field;         /* NULL: attn */
    struct axis layers, heads; /* wanted; n 0: all */

    /* A sequence begins with this record: makes g->data. */
    enum pf_status (*begin)(void *ctx, struct gathered *g,
        const struct pf_record *rec, const struct maps *m,
        struct pf_err *err);

    /* More rows of it; g->rows are there.  After a failure it is forgotten. */
    enum pf_status (*add)(void *ctx, struct gathered *g,
        struct pf_record *rec, const struct maps *m, struct pf_err *err);

    /* It is complete; it is freed behind that. */
    enum pf_status (*report)(void *ctx, struct gathered *g,
        struct pf_err *err);

    void (*free)(void *data); /* NULL too */

    struct pf_seqmap map;
    struct gathered *first, *last;
    size_t used;
    struct pf_buf key;
};

/* Only these layers and heads, lists as cli_list has them (NULL: all). */
void gather_choose(struct gather *g, const char *layers, const char *heads);

/* Takes a record, a mark too. */
enum pf_status gather_record(struct gather *g, struct cli_item *item,
    struct pf_err *err);

/* Reports what has not come done: it is over now.  What fails is told with the
 * place of its last record; only what ends it all is returned. */
enum pf_status gather_end(struct gather *g, struct pf_err *err);

void gather_fini(struct gather *g);

#endif
