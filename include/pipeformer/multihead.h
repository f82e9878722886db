#ifndef PIPEFORMER_MULTIHEAD_H
#define PIPEFORMER_MULTIHEAD_H

#include <pipeformer/attention.h>
#include <pipeformer/record.h>

/*
 * Attention over rows by bare matrices (Vaswani et al. 2017, 3.2.2): rows are
 * projected to queries, rows of the same or of another sequence to keys and
 * values, and what the heads give is joined, and projected once more where
 * there is a matrix for that.
 *
 *   wq [C, Hq*D]   wk [Cm, Hkv*D]   wv [Cm, Hkv*Dv]   wo [Hq*Dv, Co]
 *   bq [Hq*D]      bk [Hkv*D]       bv [Hkv*Dv]       bo [Co]
 *
 * A row is multiplied from the left, x wq + bq.  Hq is a multiple of Hkv.
 */

/* A matrix [in, out] and its bias, float32; bias NULL: none. */
struct pf_matrix {
    const float *w, *bias;
    size_t in, out;
};

struct pf_multihead {
    struct pf_matrix q, k, v, o; /* o.w NULL: none */
    size_t heads, kv_heads, D, Dv;
    size_t out; /* the width of what comes out: Co, or Hq*Dv */
};

/*
 * Finds them in a record by these names, wo and the biases only if they are
 * there; `heads` is Hq.  They stay the record's.
 */
enum pf_status pf_multihead_init(struct pf_multihead *m,
    struct pf_record *rec, size_t heads, struct pf_err *err);

/*
 * out [T, m->out] of the rows x [T, C] and memory [S, Cm], which may be x;
 * mask, causal and scale are those of attention.h, for q [Hq, T, D].  weights
 * and scores, [Hq, T, S], may be NULL.
 */
enum pf_status pf_multihead_run(const struct pf_multihead *m,
    struct pf_pool *pool, float *out, const float *x, size_t T,
    const float *memory, size_t S, const struct pf_tensor *mask,
    enum pf_causal causal, double scale, float *weights, float *scores,
    struct pf_err *err);

#endif
