#ifndef PIPEFORMER_SAMPLE_H
#define PIPEFORMER_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pipeformer/err.h>

/*
 * From logits to one id.  A chain of steps goes over the candidates in the
 * order in which it was written; each sees only those the ones before left.
 * Rank is by logit descending, then id ascending, of the logits as they are at
 * that point.  Sums that decide a cut are in double.
 */
enum pf_step_kind {
    PF_STEP_TEMP,  /* z / x; x = 0 keeps the first rank only */
    PF_STEP_TOP_K, /* the first x ranks; 0: all */
    PF_STEP_TOP_P, /* those with less than x of the mass ranked above them
                      (Holtzman et al. 2020); 1: all */
};

struct pf_step {
    enum pf_step_kind kind;
    double x;
};

/* The candidates of one row of logits; reused from row to row. */
struct pf_sampler {
    struct pf_candidate {
        double z;
        uint32_t id;
    } *c;
    size_t n; /* candidates left */
    struct pf_candidate best; /* the first rank */
    bool heap;     /* whether c is in the order of a heap (sample.c) */
    size_t ranked; /* how many of them are known by rank */
    size_t cap;
    double total; /* of exp(z - zmax) over the candidates; < 0: not known */
    double zmax;
};

#define PF_SAMPLER_INIT { NULL, 0, { 0, 0 }, false, 0, 0, -1, 0 }

void pf_sampler_fini(struct pf_sampler *s);

/*
 * Starts with all V logits that are not -inf.  PF_ERANGE for NaN, +inf, or
 * none that is finite.
 */
enum pf_status pf_sampler_start(struct pf_sampler *s, const float *logits,
    size_t V, struct pf_err *err);

/* Applies one step. */
void pf_sampler_step(struct pf_sampler *s, const struct pf_step *step);

/* The i-th by rank, i < n. */
const struct pf_candidate *pf_sampler_rank(struct pf_sampler *s, size_t i);

/* Its probability among the candidates. */
double pf_sampler_prob(struct pf_sampler *s, size_t i);

/*
 * The id that u in [0, 1) draws: the first in rank order where the running sum
 * is above u times the total; never one of probability 0.
 */
uint32_t pf_sampler_draw(struct pf_sampler *s, double u);

/* log of the softmax of V logits at `id`. */
double pf_logprob(const float *logits, size_t V, uint32_t id);

#endif
