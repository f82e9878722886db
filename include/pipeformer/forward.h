#ifndef PIPEFORMER_FORWARD_H
#define PIPEFORMER_FORWARD_H

#include <stdbool.h>
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
 * first term alone.  BERT adds wtt[segments[t]] (NULL: all 0) and normalizes
 * the sum; models without token types look at no segments.  PF_ERANGE for an
 * id or a segment that the model does not have, or a position beyond its
 * window, which are named.
 */
enum pf_status pf_embed(const struct pf_model *m, float *out,
    const uint32_t *ids, const uint32_t *segments, size_t T, size_t pos,
    bool positions, struct pf_err *err);

/*
 * T rows of one sequence at positions pos .. pos + T - 1.  kv, ready for them
 * (pf_kv_begin), has a layer slot for each layer that may run; an encoder has
 * none (NULL), pos is 0, and all T rows attend to each other.  Without
 * PF_PART_ATTN neither kv nor attn is touched.
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
 * Places in a block where activations can be seen and changed, by the names
 * that TransformerLens gives them (without "hook_").  A row is a position.
 * For BERT's blocks, which normalize after adding, PF_LN1 and PF_LN2 are what
 * comes out of the two norms, and PF_RESID_MID, PF_RESID_POST the sums before
 * them.  Where one half of a block runs alone, PF_RESID_PRE comes before it,
 * PF_LN1 to PF_RESID_MID belong to attention, the others to the MLP.
 */
enum pf_point {
    PF_RESID_PRE,  /* resid_pre [T,C]: what comes in */
    PF_LN1,        /* ln1.normalized [T,C] */
    PF_Q,          /* attn.q [T,H,D] */
    PF_K,          /* attn.k [T,H,D]: of these rows alone */
    PF_V,          /* attn.v [T,H,D] */
    PF_SCORES,     /* attn.attn_scores [H,T,S]: scaled, masked with -inf */
    PF_PATTERN,    /* attn.pattern [H,T,S]: softmax of the scores */
    PF_Z,          /* attn.z [T,H,D]: pattern times values */
    PF_RESULT,     /* attn.result [T,H,C]: what each head adds, without bias */
    PF_ATTN_OUT,   /* attn_out [T,C] */
    PF_RESID_MID,  /* resid_mid [T,C] */
    PF_LN2,        /* ln2.normalized [T,C] */
    PF_MLP_PRE,    /* mlp.pre [T,F] */
    PF_MLP_POST,   /* mlp.post [T,F]: after the activation */
    PF_MLP_OUT,    /* mlp_out [T,C] */
    PF_RESID_POST, /* resid_post [T,C] */
    PF_N_POINTS
};

/*
 * Who looks.  Both are called from one thread, in the order of the forward
 * pass.  What `at` changes is what the pass goes on with; where nothing is
 * changed, no bit of the result is other than without a probe.
 */
struct pf_probe {
    void *ctx;

    /* Whether `at` is to be called at this point of that layer. */
    bool (*wants)(void *ctx, size_t layer, enum pf_point point);

    /*
     * Rows first .. first + n - 1 (counted within it) of rows[sequence], at
     * `data`: for PF_SCORES and PF_PATTERN of one head, [n, S]; for PF_Q, PF_K,
     * PF_V, PF_Z [n, H, D], rows `stride` floats apart; for PF_RESULT
     * [n, H, C]; else [n, width].  `width` is always the floats of a row.
     * (Rows come in one call or several.)  Returns whether it changed
     * anything.
     */
    bool (*at)(void *ctx, size_t sequence, size_t layer, enum pf_point point,
        size_t head, size_t first, size_t n, float *data, size_t width,
        size_t stride);
};

/* Which halves of a block run. */
enum { PF_PART_ATTN = 1, PF_PART_MLP = 2, PF_PART_BOTH = 3 };

/*
 * Takes `n` sequences' rows through the blocks layers[0..n_layers): for each,
 * x += attention(ln1(x)), x += mlp(ln2(x)), or for BERT x = ln1(x +
 * attention(x)), x = ln2(x + mlp(x)).  heads[0..n_heads) are those whose
 * weights `attn` gets.  `parts` of PF_PART_BOTH; `probe` may be NULL.
 */
enum pf_status pf_blocks(struct pf_runner *r, struct pf_kv_cache *cache,
    struct pf_rows *rows, size_t n, const size_t *layers, size_t n_layers,
    const size_t *heads, size_t n_heads, unsigned parts,
    const struct pf_probe *probe, struct pf_err *err);

/*
 * logits[m] (V floats) of M rows x[m] (C floats each, anywhere): final norm,
 * unless `norm` is false, and head; BERT's head has a layer and its activation
 * in front of the norm.  logits is [M, V].  PF_EMODEL without a head.
 */
enum pf_status pf_unembed(struct pf_runner *r, float *logits,
    const float *const *x, size_t M, bool norm, struct pf_err *err);

/*
 * BERT's pooler of the first row of a sequence: out = tanh(x W + b), C floats.
 * PF_EMODEL where the model has none.
 */
enum pf_status pf_pooler(struct pf_runner *r, float *out, const float *x,
    struct pf_err *err);

/* The first of n floats that is infinite or NaN; n if there is none. */
size_t pf_first_nonfinite(const float *x, size_t n);

#endif
