#ifndef PIPEFORMER_SAMPLE_H
#define PIPEFORMER_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pipeformer/buf.h>
#include <pipeformer/err.h>

/*
 * From logits to one id.  A chain of steps goes over the candidates in the
 * order in which it was written; each sees only those the ones before left.
 * Rank is by logit descending, then id ascending, of the logits as they are at
 * that point; p is the softmax over the candidates left.  Masses exp(z - zmax)
 * are float32 of the kernels' exp2, the same on every machine; sums that
 * decide a cut are in double, in one fixed order.
 */
enum pf_step_kind {
    PF_STEP_TEMP,
    PF_STEP_DYNATEMP,
    PF_STEP_TOP_K,
    PF_STEP_TOP_P,
    PF_STEP_MIN_P,
    PF_STEP_TYPICAL,
    PF_STEP_TOP_N_SIGMA,
    PF_STEP_EPSILON,
    PF_STEP_ETA,
    PF_STEP_XTC,
    PF_STEP_REPEAT,
    PF_STEP_FREQUENCY,
    PF_STEP_PRESENCE,
    PF_STEP_LOGIT_BIAS,
    PF_STEP_DRY,
    PF_STEP_MIROSTAT,
};

/*
 * One step and its numbers, in the order of its text: "name:x[0]:x[1]:x[2]".
 *
 *   temp:T            z / T; T = 0 keeps the first rank only
 *   dynatemp:LO:HI[:EXP]  T = LO + (HI - LO) (H / ln n)^EXP, H the entropy of
 *                     the n candidates; EXP is 1 unless given
 *   top-k:K           the first K ranks; 0: all (Fan et al. 2018)
 *   top-p:P           those with less than P of the mass ranked above them
 *                     (Holtzman et al. 2020); 1: all
 *   min-p:P           z >= zmax + ln P (Nguyen et al. 2024); 0: all
 *   typical:M         the shortest prefix of mass M in the order of |-ln p -
 *                     H|, ties by rank (Meister et al. 2023); 1: all
 *   top-n-sigma:N     z >= zmax - N sd (Tang et al. 2024); 0: all
 *   epsilon:E         p >= E (Hewitt et al. 2022); 0: all
 *   eta:E             p >= min(E, sqrt(E) exp(-H)) (the same); 0: all
 *   xtc:P:T           if the number for it is at most P, drops all with p >=
 *                     T but the last of them; off where P = 0, T > 0.5, there
 *                     is one candidate, or fewer than min_keep would stay
 *   repeat-penalty:R  of the ids before, each once: z > 0 ? z / R : z * R
 *                     (Keskar et al. 2019)
 *   frequency-penalty:F, presence-penalty:F  z -= F for each time it is among
 *                     the ids before; once
 *   logit-bias:ID:B   z += B; -inf bans
 *   dry:M[:BASE[:ALLOWED]]  see pf_breakers; BASE is 1.75, ALLOWED 2
 *   mirostat:VERSION[:TAU[:ETA]]  see pf_mirostat_mu; TAU is 5, ETA 0.1
 *
 * A truncating step keeps at least max(1, min_keep) by rank, typical by its
 * own order.
 */
struct pf_step {
    enum pf_step_kind kind;
    double x[3];
};

/*
 * A step from its text.  PF_ERANGE for an unknown name, numbers that are
 * missing, too many, no numbers or out of range; the message leaves the name
 * to the caller, who knows what it was written as.
 */
enum pf_status pf_step_parse(struct pf_step *step, const char *text,
    struct pf_err *err);

/* The name of a kind: "top-k". */
const char *pf_step_name(enum pf_step_kind kind);

/* Does the step look at the ids before? */
bool pf_step_looks_back(const struct pf_step *step);

/*
 * The i-th step, as text, of the chain that another program has by default
 * ("hf", "llama.cpp"); NULL past the last, or where no program has that name.
 */
const char *pf_preset_step(const char *name, size_t i);

/*
 * Where DRY's matches end ("don't repeat yourself", Weidmann 2024): sequences
 * of ids that part the text.  The step finds, for each id x of the window, the
 * longest suffix of the window that also stands right before an earlier x and
 * does not reach past the end of the last breaker; from length ALLOWED on, z
 * -= M BASE^(length - ALLOWED).  A breaker of one id is never penalised.
 */
struct pf_breakers;
enum pf_status pf_breakers_new(struct pf_breakers **b, struct pf_err *err);
void pf_breakers_free(struct pf_breakers *b);

/* One more; the ids are copied.  None of them (n = 0) is no breaker. */
enum pf_status pf_breakers_add(struct pf_breakers *b, const uint32_t *ids,
    size_t n, struct pf_err *err);

/* What steps need to know besides the logits. */
struct pf_surroundings {
    const uint32_t *prev; /* the window: ids before, the oldest first */
    size_t n_prev;
    size_t min_keep;
    double u_xtc; /* in [0, 1) */
    double mu;    /* mirostat's state */
    const struct pf_breakers *breakers; /* or NULL */
};

/* The candidates of one row of logits; reused from row to row. */
struct pf_sampler;
enum pf_status pf_sampler_new(struct pf_sampler **s, struct pf_err *err);
void pf_sampler_free(struct pf_sampler *s);

/*
 * Starts with all V logits (at most 2^31 - 1) that are not -inf.  PF_ERANGE
 * for NaN, +inf, or none that is finite.
 */
enum pf_status pf_sampler_start(struct pf_sampler *s, const float *logits,
    size_t V, struct pf_err *err);

/* Drops all but these ids; PF_ERANGE where one is no id or none is left. */
enum pf_status pf_sampler_allow(struct pf_sampler *s, const uint32_t *ids,
    size_t n, struct pf_err *err);

/*
 * Applies one step.  PF_ERANGE for an id of the window or the step that is not
 * below V, and where no candidate is left.
 */
enum pf_status pf_sampler_step(struct pf_sampler *s,
    const struct pf_step *step, const struct pf_surroundings *around,
    struct pf_err *err);

/* How many candidates are left, and whether one of them is `id`. */
size_t pf_sampler_count(const struct pf_sampler *s);
bool pf_sampler_has(const struct pf_sampler *s, uint32_t id);

/* The probability of an id; 0 if it is no candidate. */
double pf_sampler_prob(struct pf_sampler *s, uint32_t id);

/* log of the sum over candidates of exp(z). */
double pf_sampler_logsum(struct pf_sampler *s);

/* The first rank. */
uint32_t pf_sampler_best(struct pf_sampler *s);

/*
 * The first n ranks (at most pf_sampler_count) in their order, into `ids`;
 * PF_ENOMEM.
 */
enum pf_status pf_sampler_ranks(struct pf_sampler *s, size_t n, uint32_t *ids,
    struct pf_err *err);

/*
 * The id that u in [0, 1) draws: the first in rank order where the running sum
 * is above u times the total; never one of probability 0.
 */
uint32_t pf_sampler_draw(struct pf_sampler *s, double u);

/*
 * Mirostat (Basu et al. 2021).  The step cuts by `mu` so that the surprise of
 * what is drawn, -log2 p in bits, stays around TAU: version 2 keeps -log2 p <=
 * mu; version 1 estimates Zipf's exponent from the first 100 ranks and keeps a
 * number of them.  Then mu -= ETA (surprise - TAU); it starts at 2 TAU.
 */
double pf_mirostat_mu(const struct pf_step *step, double mu, double p);

/* Texts that end a sequence, compared as bytes. */
enum { PF_STOP_MAX = 4096 };

struct pf_stops;
enum pf_status pf_stops_new(struct pf_stops **s, struct pf_err *err);
void pf_stops_free(struct pf_stops *s);

/* One more, which is copied; PF_ERANGE unless 1 to PF_STOP_MAX bytes. */
enum pf_status pf_stops_add(struct pf_stops *s, const char *text, size_t len,
    struct pf_err *err);

/*
 * Takes more of a text.  `tail` is what is known of it: the longest end of
 * what came so far that a stop text may begin with; empty at first.  *stopped:
 * a stop text is whole; then *held bytes are from where the earliest begins to
 * the end, and `tail` is empty again; else they are those of `tail`.
 */
enum pf_status pf_stops_take(const struct pf_stops *s, struct pf_buf *tail,
    const char *bytes, size_t n, bool *stopped, size_t *held,
    struct pf_err *err);

#endif
