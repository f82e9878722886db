#ifndef PIPEFORMER_KERNEL_H
#define PIPEFORMER_KERNEL_H

#include <stdbool.h>
#include <stddef.h>

#include <pipeformer/tensor.h>

/*
 * The inner loops of the forward pass, one table an instruction set (two, if
 * families of processors that have it differ in what is fast).
 *
 * Every function has an exact definition (below, and in kernel-portable.c,
 * which is that definition in scalar code), down to the order of each sum, so
 * that
 *  - an output element has the same bits whatever stands beside it: one row
 *    or many, any range of columns, any thread, any cut of a sequence;
 *  - all tables give the same bits, on every machine with IEEE arithmetic.
 * "fma" is a fused multiply-add with one rounding; all else rounds each step.
 *
 * Float arrays are row-major, with a stride in elements where one is given,
 * aligned as floats are.  Weights may be F32, F16 or BF16 (widened, which is
 * exact), aligned to their own size.  Work space is the stack, up to 256 KiB.
 */

/*
 * A fold of 16 partial sums s[0..15] is always in halves:
 *   for (h = 8; h; h /= 2) for (i < h) s[i] += s[i + h];   result s[0]
 * and lane i of a sum over elements 0..n-1 takes elements i, i+16, i+32, ...
 * in ascending order, from +0.  Where n is no multiple of 16, the missing
 * elements of the last sixteen are +0 (and take part in the arithmetic).
 */
enum { PF_LANES = 16 };

/* The elements of which `largest` finds the largest. */
enum { PF_LARGEST_OF = 64 };

/* Keys and values are kept in groups of 16 positions, see `attn`. */
enum { PF_KV_GROUP = 16, PF_KV_BLOCK = 64 };

/*
 * One head's keys and values, by groups of 16 positions: F32, or F16, which is
 * widened.
 */
struct pf_kv_head {
    const void *const *k; /* k[g]: [D][16], dimension by dimension */
    const void *const *v; /* v[g]: [16][Dv] */
    size_t k_off, v_off;  /* elements before the head in each k[g], v[g] */
    enum pf_dtype type;   /* PF_F32 or PF_F16 */
};

/*
 * Which keys a query may attend to, or what is added to its scores: entry
 * (t, j) lies t * row + j * column elements behind `data`.  PF_BOOL: a byte,
 * not 0 where it may; PF_F32: added, -inf where it may not.
 */
struct pf_attn_mask {
    const void *data;
    enum pf_dtype type;
    size_t row, column; /* column is 0 or 1 */
};

struct pf_kernels {
    const char *name;

    /*
     * y[m, n] = sum over k of x[m, k] * w[k, n], plus bias[n], for n0 <= n <
     * n1, all m < M.  w is [K, N], GPT-2's Conv1D layout.  Each output is one
     * fma chain, k ascending, from +0; then bias is added (bias may be NULL:
     * nothing is added).  y must not overlap x.
     */
    void (*matmul_nn)(float *y, size_t ldy, const float *x, size_t ldx,
        const void *w, enum pf_dtype type, const float *bias,
        size_t M, size_t K, size_t N, size_t n0, size_t n1);

    /*
     * y[m, n] = sum over k of x[m, k] * w[n, k], plus bias[n], for n0 <= n <
     * n1.  w is [N, K], the layout of torch's Linear and of an embedding table
     * used as head.  Each output is 16 fma chains over k (lanes, above), then
     * the fold; then bias as above.
     */
    void (*matmul_nt)(float *y, size_t ldy, const float *x, size_t ldx,
        const void *w, enum pf_dtype type, const float *bias,
        size_t M, size_t K, size_t N, size_t n0, size_t n1);

    /*
     * Layer normalisation of one row (Ba et al. 2016): y = (x - mean) /
     * sqrt(var + eps) * gain + bias.  mean = fold(lanes of x added up) / n;
     * d = x - mean; var = fold(lanes of fma(d, d, sum)) / n (missing elements
     * of the last sixteen have d = +0); r = 1 / sqrtf(var + eps); y = fma(d *
     * r, gain, bias).  y may be x.  gain and bias are not NULL.
     */
    void (*layernorm)(float *y, const float *x, const float *gain,
        const float *bias, size_t n, float eps);

    /*
     * GELU's tanh form (Hendrycks and Gimpel 2016), in place:
     *   u = 0.7978845608028654 * (x + 0.044715 x^3), x / (1 + exp(-2 u)).
     * As float: x2 = x * x; t = fma(x2 * x, 0.044715f, x); e = exp2(t * c)
     * with c = (float)(-2 * 0.7978845608028654 * log2(e)); x / (1 + e).
     * x = -inf would be NaN: inputs are finite.
     */
    void (*gelu_tanh)(float *x, size_t n);

    /*
     * GELU, x times the normal distribution function, in place, by the upper
     * tail Q of that: max(x, 0) - |x| Q(|x|), Q(a) = exp(-a^2 / 2) R(a) with
     * R(a) a polynomial in (a - 4.375) / (a + 4.375).  As float: a = |x|; t =
     * (a - 4.375f) / (a + 4.375f); p(t) of degree 8 by fma in Horner's scheme;
     * b = min(a, 14), s = b * b, q = s * c with c = (float)(-log2(e) / 2), and
     * what that leaves out, low = fma(s, c, -q), fma(fma(b, b, -s), c, low),
     * fma(s, (float)(-log2(e) / 2 - c), low) in turn; e = exp2(q); p * fma(e,
     * low * (float)ln 2, e) is Q; fma(-a, Q, x > 0 ? x : 0).  Inputs are
     * finite.  The relative error is below 4.5e-7 for x >= -3, and below
     * 0.35e-7 x^2 down to -11.
     */
    void (*gelu)(float *x, size_t n);

    /* y[i] += x[i]. */
    void (*add)(float *y, const float *x, size_t n);

    /* y[i] = x[i], of F32, F16 or BF16; a NaN stays some NaN. */
    void (*widen)(float *y, const void *x, enum pf_dtype type, size_t n);

    /*
     * y[i] = exp2(x[i]), the exponential of attention and of GELU's tanh form
     * (other activations take libm's): 0 for x <
     * -100 (denormals would be slow), +inf for x >= 128, else i =
     * nearest-even(x), f = x - i, a polynomial p(f) of degree 5 evaluated by
     * fma in Horner's scheme with p(0) exactly 1, times 2^i.  Relative error
     * below 2.5e-7.  NaN gives NaN.  y may be x.
     */
    void (*exp2)(float *y, const float *x, size_t n);

    /*
     * Softmax's numerators, y[i] = exp2((x[i] - max) * c), and their sum: of
     * those of i % 8 each, i ascending, then of these eight in order, all as
     * double.  y may be x.
     */
    double (*masses)(float *y, const float *x, size_t n, float max, float c);

    /*
     * y[i] = x[i] + 0, and the largest of each PF_LARGEST_OF of them, the last
     * of fewer, in most[].  Whether all are finite; most is not set else.
     */
    bool (*largest)(float *y, float *most, const float *x, size_t n);

    /*
     * Scaled dot-product attention of one head with online softmax (Vaswani
     * et al. 2017; Milakov and Gimelshein 2018; Dao et al. 2022), row by row:
     * query row t (of T, stride ldq, D floats) sees keys 0 .. seen + t * step
     * - 1 (step is 0 or 1; seen >= 1) and writes Dv floats to out + t * ldo.
     *
     *   c = (float)((double)scale * log2(e));  qs[d] = q[d] * c
     *   m = -FLT_MAX, l[16] = +0, acc[Dv] = +0
     *   for each block of 64 keys at positions 0, 64, ...:
     *     s[j] = fma chain over d ascending of qs[d] * k[j][d], from +0
     *     mb = maximum of the s[j] of keys that are seen;
     *     mn = mb > m ? mb : m;  r = exp2(m - mn);  m = mn
     *     acc[d] *= r, l[i] *= r
     *     for the seen j ascending: p = exp2(s[j] - m);
     *       l[j % 16] += p;  acc[d] = fma(p, v[j][d], acc[d])
     *   out[d] = acc[d] / (fold(l), or 1 where that is 0)
     *
     * Keys and values that are not seen take part in no arithmetic (their
     * memory may hold anything).  Nothing depends on T or on how rows are cut
     * into calls.  D, Dv >= 1, any size.
     */
    void (*attn)(float *out, size_t ldo, const float *q, size_t ldq,
        const struct pf_kv_head *kv, size_t T, size_t D, size_t Dv,
        size_t seen, size_t step, float scale);

    /*
     * The attention weights of the same rows: w + t * ldw gets S floats, for
     * a seen key exp2(s[j] - m) / fold(l) with s, the final m and l of above
     * (again 1 for a sum of 0), for the others +0.  S >= seen + (T - 1) *
     * step.
     */
    void (*attn_weights)(float *w, size_t ldw, const float *q, size_t ldq,
        const struct pf_kv_head *kv, size_t T, size_t D, size_t S,
        size_t seen, size_t step, float scale);

    /*
     * Both with a mask: all rows see S keys, and to s[j], once it is whole, is
     * added for entry (t, j) of the mask
     *   PF_BOOL: +0 if it is not 0, else -inf
     *   PF_F32, a: a * (float)log2(e), but -FLT_MAX where that leaves the
     *     range and a does not
     * so that a row which may attend to nothing gives zeros.  A key of -inf
     * has the weight 0, and may be left out: values must be finite.
     */
    void (*attn_masked)(float *out, size_t ldo, const float *q, size_t ldq,
        const struct pf_kv_head *kv, const struct pf_attn_mask *mask,
        size_t T, size_t D, size_t Dv, size_t S, float scale);
    void (*attn_masked_weights)(float *w, size_t ldw, const float *q,
        size_t ldq, const struct pf_kv_head *kv,
        const struct pf_attn_mask *mask, size_t T, size_t D, size_t S,
        float scale);
};

extern const struct pf_kernels pf_kernels_portable;

/*
 * The fastest table that this processor can run: avx512, avx2 (with FMA and
 * F16C), portable; on AMD's processors, for the first two, avx512-zen and
 * avx2-zen, which differ in how weights are read.  The environment variable
 * PIPEFORMER_KERNEL names one instead (for tests and for measuring); an unknown
 * or unsupported name is ignored.
 */
const struct pf_kernels *pf_kernels_best(void);

/* The i-th table that this processor can run, NULL past the last. */
const struct pf_kernels *pf_kernels_list(size_t i);

#endif
