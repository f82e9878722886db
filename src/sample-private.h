#ifndef SAMPLE_PRIVATE_H
#define SAMPLE_PRIVATE_H

#include <pipeformer/kernel.h>
#include <pipeformer/sample.h>

/*
 * Places 0 .. n-1 ordered by a key, the largest first; equal ones by a second
 * key likewise, if there is one, then by place.
 */
struct pf_order {
    const float *key, *key2; /* finite; key2 may be NULL */
    size_t n;
    float *most;    /* the largest key of each block of places */
    uint32_t *list; /* room for n places */
    uint32_t *sub;  /* and again */
};

/* Of v[0 .. n-1], n > 0. */
enum { PF_ORDER_BLOCK = PF_LARGEST_OF };
float pf_largest(const float *v, size_t n);

/* Looks through the keys, which must stay as they are from then on. */
void pf_order_set(struct pf_order *o, const float *key, const float *key2,
    size_t n);

/*
 * Walks the order, adding up weights (NULL: 1 each): the place at which the
 * sum reaches `limit` or, with `beyond`, passes it; if none does, the last of
 * a weight that is not 0.  n > 0.
 */
size_t pf_order_walk(struct pf_order *o, const float *weight, double limit,
    bool beyond);

/* Lists the places up to `last` (it included) in ascending order. */
size_t pf_order_upto(struct pf_order *o, size_t last);

/* Lists the places with a key of at least t, likewise. */
size_t pf_order_above(struct pf_order *o, double t);

/*
 * z[i] * scale is the logit of candidate i, whose id is id[i], or i while the
 * candidates are `dense`; ids ascend, so a place is a tie's rank.
 */
struct pf_sampler {
    const struct pf_kernels *kern;
    size_t V, n, cap;
    bool dense;
    float *z;
    uint32_t *id;
    double scale; /* what temperatures have made of it, 1 at first */

    bool blocked; /* what is set of z is known: order, */
    struct pf_order order;
    bool ordered; /* then these, */
    float zmax;
    size_t best; /* the place of the first rank */

    bool massed; /* and of z and scale */
    float *mass; /* exp((z - zmax) * scale) */
    double total;

    float *key;      /* room for V */
    uint32_t *count; /* V zeros, for who needs a number an id */
    uint32_t *seen;  /* which of them are not 0; room for V */
    size_t n_seen;
    size_t *suffix; /* DRY's, room for cap_suffix */
    size_t cap_suffix;
};

/* Makes known what the fields above say. */
void pf_sampler_order(struct pf_sampler *s);
void pf_sampler_mass(struct pf_sampler *s);

/* The sum of n numbers: those of places i % 8 each, then these in order. */
double pf_sampler_sum(const float *v, size_t n);

/* Sum of mass * (z - zmax), likewise, and from it the entropy in nats. */
double pf_sampler_moment(struct pf_sampler *s);
double pf_sampler_entropy(struct pf_sampler *s);

/* The place of an id, or n. */
size_t pf_sampler_place(const struct pf_sampler *s, uint32_t id);
uint32_t pf_sampler_id(const struct pf_sampler *s, size_t place);

/* Keeps the places listed, n of them in ascending order. */
void pf_sampler_keep(struct pf_sampler *s, const uint32_t *list, size_t n);

/* Keeps the first k ranks. */
void pf_sampler_keep_ranks(struct pf_sampler *s, size_t k);

/* Keeps (z - zmax) * scale >= x, and at least the first `least` ranks. */
void pf_sampler_keep_above(struct pf_sampler *s, double x, size_t least);

/* z was changed: -inf are no candidates any more.  PF_ERANGE if none is. */
enum pf_status pf_sampler_changed(struct pf_sampler *s, struct pf_err *err);

/* Adds to the logit of an id, if it is a candidate; stays finite. */
void pf_sampler_add(struct pf_sampler *s, uint32_t id, double x);

/*
 * Counts the ids of the window in count[], each listed once in seen[]; then
 * pf_sampler_uncount.
 */
enum pf_status pf_sampler_count_prev(struct pf_sampler *s,
    const struct pf_surroundings *around, struct pf_err *err);
void pf_sampler_uncount(struct pf_sampler *s);

/* The steps that have files of their own. */
enum pf_status pf_step_penalty(struct pf_sampler *s,
    const struct pf_step *step, const struct pf_surroundings *around,
    struct pf_err *err);
enum pf_status pf_step_dry(struct pf_sampler *s, const struct pf_step *step,
    const struct pf_surroundings *around, struct pf_err *err);
enum pf_status pf_step_mirostat(struct pf_sampler *s,
    const struct pf_step *step, const struct pf_surroundings *around,
    struct pf_err *err);

#endif
