#ifndef SAMPLE_LIVE_H
#define SAMPLE_LIVE_H

#include <pipeformer/buf.h>
#include <pipeformer/record.h>
#include <pipeformer/seqmap.h>

/* What sample knows of the sequences that have not come back done. */

struct live {
    size_t drawn;      /* tokens, since its record with pos 0 */
    uint32_t *ids;     /* by position, if the chain looks back */
    size_t n, cap;
    struct pf_buf tail; /* what may become a stop text */
    bool begun;         /* it has a text, see pf_tokenizer_decode */
};

struct lives {
    struct pf_seqmap map;
    bool history; /* keep ids */
    struct pf_buf key, fork;
};

/* The key of the record's sequence is in l->key then. */
enum pf_status lives_find(struct lives *l, struct pf_record *rec, size_t pos,
    struct live **out, struct pf_err *err);

/* The sequence of l->key is over. */
void lives_drop(struct lives *l);

void lives_fini(struct lives *l);

#endif
