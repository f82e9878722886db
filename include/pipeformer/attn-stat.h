#ifndef PIPEFORMER_ATTN_STAT_H
#define PIPEFORMER_ATTN_STAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pipeformer/err.h>

/*
 * What the heads of a model look at: numbers about the attention maps of one
 * sequence, which may come a block of rows at a time; and their rollout
 * (Abnar and Zuidema 2020).  Letters: L layers, H heads, T rows, S columns; a
 * row is a query, a column a key.
 */
struct pf_attn_stat;

/* For L x H maps. */
enum pf_status pf_attn_stat_new(struct pf_attn_stat **a, size_t L, size_t H,
    bool rollout, struct pf_err *err);
void pf_attn_stat_free(struct pf_attn_stat *a);

/*
 * Adds T rows of each map: maps[l * H + h] is [T, S], row-major, of finite
 * weights that are not negative.  Columns are positions: S is the number of
 * rows so far, these included.  Of a first block S may be another (keys from
 * elsewhere): then nothing can be said of positions, and no more may come.
 *
 * ids, T of them, are the tokens of the rows, or NULL.  PF_ESHAPE, PF_ERANGE;
 * after a failure the sums are of no use.
 */
enum pf_status pf_attn_stat_add(struct pf_attn_stat *a,
    const float *const *maps, size_t T, size_t S, const uint32_t *ids,
    struct pf_err *err);

/*
 * Of one head.  With A its map, all but the entropy are the sum of A over some
 * elements, divided by the sum of all A (TransformerLens's head detector).
 * NaN: not known (no ids, no positions), or no row with any mass.
 */
struct pf_head_stat {
    double entropy;   /* of a row, in nats, mean over rows that have mass */
    double first;     /* on the first key */
    double self;      /* on the query's own position */
    double previous;  /* on the one before */
    double duplicate; /* on earlier positions of the same token */
    double induction; /* on the positions behind those */
};

void pf_attn_stat_head(const struct pf_attn_stat *a, size_t l, size_t h,
    struct pf_head_stat *s);

/* Rows so far, and how many of them have an earlier equal token. */
size_t pf_attn_stat_rows(const struct pf_attn_stat *a);
size_t pf_attn_stat_repeats(const struct pf_attn_stat *a);

/* The tokens of all rows; NULL if they are not all known. */
const uint32_t *pf_attn_stat_ids(const struct pf_attn_stat *a);

/*
 * Row t of the rollout: how much of each input position, S of them, is in
 * position t after the last layer, if each layer passes on half of what comes
 * from attention, mean over heads, and half of what was there.
 */
const float *pf_attn_stat_rollout(const struct pf_attn_stat *a, size_t t);

/* Memory it takes, about. */
size_t pf_attn_stat_bytes(const struct pf_attn_stat *a);

#endif
