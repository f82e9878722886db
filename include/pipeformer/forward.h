#ifndef PIPEFORMER_FORWARD_H
#define PIPEFORMER_FORWARD_H

#include <stddef.h>
#include <stdint.h>

#include <pipeformer/err.h>
#include <pipeformer/kv.h>
#include <pipeformer/model.h>

/*
 * The forward pass of a model, in the three parts that the filters are:
 * embedding, blocks, head.  Rows are F32 [T, C].  What a row becomes has the
 * same bits whatever rows are computed with it and by however many threads
 * (kernel.h).
 */

/* A model with what running it needs: kernels, threads, scratch. */
struct pf_runner;

enum pf_status pf_runner_new(struct pf_runner **r,
    const struct pf_model *model, size_t threads, struct pf_err *err);
void pf_runner_free(struct pf_runner *r);
const char *pf_runner_kernels(const struct pf_runner *r);

/*
 * out[t] = wte[ids[t]] + wpe[pos + t], T rows of C; without `positions`, the
 * first term alone.  PF_ERANGE for an id beyond the vocabulary or a position
 * beyond the window, which are named.
 */
enum pf_status pf_embed(const struct pf_model *m, float *out,
    const uint32_t *ids, size_t T, size_t pos, bool positions,
    struct pf_err *err);

/*
 * T rows of one sequence at positions pos .. pos + T - 1.  kv, ready for them
 * (pf_kv_begin), has a layer slot for each layer that may run.
 */
struct pf_rows {
    float *x; /* [T, C], in and out */
    size_t T, pos;
    struct pf_kv *kv;
    size_t first_slot; /* of the first layer */
    /* Attention weights wanted: [n_layers, n_heads, T, S], S = pos + T; NULL:
     * none. */
    float *attn;
};

/*
 * Takes `n` sequences' rows through the blocks layers[0..n_layers): for each,
 * x += attention(ln1(x)), x += mlp(ln2(x)).  heads[0..n_heads) are those whose
 * weights `attn` gets.
 */
enum pf_status pf_blocks(struct pf_runner *r, struct pf_kv_cache *cache,
    struct pf_rows *rows, size_t n, const size_t *layers, size_t n_layers,
    const size_t *heads, size_t n_heads, struct pf_err *err);

/*
 * logits[m] (V floats) of M rows x[m] (C floats each, anywhere): final norm,
 * unless `norm` is false, and head.  logits is [M, V].
 */
enum pf_status pf_unembed(struct pf_runner *r, float *logits,
    const float *const *x, size_t M, bool norm, struct pf_err *err);

/* The first of n floats that is infinite or NaN; n if there is none. */
size_t pf_first_nonfinite(const float *x, size_t n);

#endif
