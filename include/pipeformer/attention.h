#ifndef PIPEFORMER_ATTENTION_H
#define PIPEFORMER_ATTENTION_H

#include <stdbool.h>
#include <stddef.h>

#include <pipeformer/err.h>
#include <pipeformer/pool.h>
#include <pipeformer/tensor.h>

/*
 * Scaled dot-product attention on arrays, without a model (Vaswani et al.
 * 2017, eq. 1), by the rules of PyTorch's scaled_dot_product_attention:
 *
 *   weights = softmax(scores), context = weights v
 *   scores  = q k' * scale + mask
 *
 *   q [..., T, D]   k [..., S, D]   v [..., S, Dv]    2 to 4 dimensions, F32
 *   mask, broadcastable to [..., T, S]: BOOL, true where a query may attend
 *   to a key; F32, added
 *   context [..., T, Dv]   weights, scores [..., T, S]
 *
 * Leading axes broadcast: 1, or an axis that is not there, goes with any
 * size.  Of the last of them, the heads, q may have a multiple of k's and v's
 * (grouped-query attention, Ainslie et al. 2023): query head h uses key head
 * h / (Hq / Hkv).  A row that may attend to nothing is zero in context and in
 * weights.
 */

/* Which keys a query sees, besides the mask. */
enum pf_causal {
    PF_CAUSAL_NONE,        /* all */
    PF_CAUSAL_UPPER_LEFT,  /* query t: keys 0 .. t */
    PF_CAUSAL_LOWER_RIGHT, /* query t: keys 0 .. t + S - T */
};

/* An attention that was checked: shapes that fit, and where the data lie. */
struct pf_attention {
    unsigned ndim;       /* of the results */
    size_t batch, heads; /* their leading axes; 1 where they have none */
    size_t T, S, D, Dv;
    enum pf_causal causal;
    float scale;
    const struct pf_tensor *q, *k, *v, *mask; /* borrowed; mask may be NULL */
};

/*
 * Looks at the shapes and types; `mask` may be NULL, a scale of NaN is
 * 1/sqrt(D).  PF_ESHAPE names the shapes that clash; a mask together with a
 * causal one is an error, too.
 */
enum pf_status pf_attention_plan(struct pf_attention *a,
    const struct pf_tensor *q, const struct pf_tensor *k,
    const struct pf_tensor *v, const struct pf_tensor *mask,
    enum pf_causal causal, double scale, struct pf_err *err);

/* The shape of the results, with a last axis of `last`; returns ndim. */
unsigned pf_attention_shape(const struct pf_attention *a, size_t last,
    size_t shape[4]);

/*
 * Computes it.  `weights` and `scores` may be NULL; only with them memory
 * grows with T times S.  The same bits for any number of threads, and with
 * each of the kernels.  PF_ERANGE where q, k or v holds an infinity or NaN, or
 * the mask NaN or +infinity.
 */
enum pf_status pf_attention_run(const struct pf_attention *a,
    struct pf_pool *pool, float *context, float *weights, float *scores,
    struct pf_err *err);

/*
 * Averaging with fixed weights: x and out are n arrays [T, C], row t of out is
 * the mean of the rows 0 .. t of x (sums in double precision).  out may be x.
 */
void pf_running_mean(float *out, const float *x, size_t n, size_t T,
    size_t C);

/* Its weights, n arrays [T, T]: 1/(t+1) up to the diagonal, then 0. */
void pf_running_mean_weights(float *w, size_t n, size_t T);

#endif
