#ifndef ATTEND_BARE_H
#define ATTEND_BARE_H

#include <stdbool.h>

#include "cli.h"

/*
 * attend without a model: records that bring q, k and v, and with -w records
 * whose hidden is projected by bare matrices first.
 */
struct attend_bare {
    const char *weights;  /* -w FILE */
    size_t n_head;        /* --n-head N */
    const char *causal;   /* NULL; "upper-left", "lower-right" */
    bool no_causal, uniform, attn, scores; /* --no-causal, --uniform, -a,
                                              --tap attn_scores */
    double scale;         /* --scale; NaN: 1/sqrt(D) */
    struct attend_bare_state *state;
};

/* After the options; ends the command where they do not go together. */
void attend_bare_start(struct attend_bare *b);
void attend_bare_free(struct attend_bare *b);

/* Whether this record is one for bare attention. */
bool attend_bare_takes(const struct attend_bare *b,
    const struct pf_record *rec);

/* Looks at it before it joins a batch (see struct cli_filter). */
enum pf_status attend_bare_check(struct attend_bare *b, struct cli_item *item,
    struct pf_err *err);

/* Computes one record, on the threads of `cli.threads`. */
enum pf_status attend_bare_one(struct attend_bare *b, struct cli_item *item,
    struct pf_err *err);

#endif
