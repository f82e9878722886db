#ifndef PIPEFORMER_CANDIDATES_H
#define PIPEFORMER_CANDIDATES_H

#include <stddef.h>

#include <pipeformer/record.h>
#include <pipeformer/sample.h>
#include <pipeformer/tokenizer.h>

/* What a sampler sees, as fields of a record. */

/* Sets `probs`: [[id, p], ...] of all candidates in the order of rank. */
enum pf_status pf_set_probs(struct pf_record *rec, struct pf_sampler *s,
    struct pf_err *err);

/*
 * Sets `top`: of the n best of the V logits as they came, id, text (with a
 * tokenizer, which may be NULL), log-probability, and p, what the chain of
 * `after` has made of it (0: dropped).
 */
enum pf_status pf_set_top(struct pf_record *rec, const float *logits,
    size_t V, size_t n, struct pf_sampler *after,
    const struct pf_tokenizer *tok, struct pf_err *err);

#endif
