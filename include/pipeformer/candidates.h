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
 * The first ranks as they were before any step, and what became of them;
 * reused from row to row.
 */
struct pf_watch {
    struct pf_watched {
        uint32_t id;
        float logprob;
        const char *dropped; /* the name of the step, borrowed; or NULL */
    } *w;
    size_t n, cap;
};

#define PF_WATCH_INIT { NULL, 0, 0 }

void pf_watch_fini(struct pf_watch *w);

/*
 * Notes the first n ranks, or as many as there are, of a sampler that has just
 * begun with these logits; `logsum` is its pf_sampler_logsum.
 */
enum pf_status pf_watch_start(struct pf_watch *w, struct pf_sampler *s,
    const float *logits, double logsum, size_t n, struct pf_err *err);

/* A step of that name has been applied. */
void pf_watch_step(struct pf_watch *w, const struct pf_sampler *s,
    const char *name);

/*
 * Sets `top`: of each that is watched id, text (with a tokenizer, which may be
 * NULL), logprob, and p, what the chain of `after` has made of it (0:
 * dropped).
 */
enum pf_status pf_set_top(struct pf_record *rec, const struct pf_watch *w,
    struct pf_sampler *after, const struct pf_tokenizer *tok,
    struct pf_err *err);

/* Sets `trail`: [[id, "step"], ...] of those that were dropped. */
enum pf_status pf_set_trail(struct pf_record *rec, const struct pf_watch *w,
    struct pf_err *err);

#endif
