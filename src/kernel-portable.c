#include "kernel-def.h"

#include <math.h>
#include <string.h>

/*
 * The definition of the kernels, one scalar at a time.
 *
 * The other tables are held against this one bit by bit, so it is written to
 * be read, not to be fast: each sum stands in the order that kernel.h gives,
 * and each fmaf() is the "fma" of that page (in hardware or in software, C
 * gives it one rounding).  The rest relies on -ffp-contract=off.
 *
 * A row of attention needs no memory of its own beyond one block of scores:
 * the sum of weighted values is kept in the output row.
 */

static float
weight(const void *w, enum pf_dtype type, size_t i)
{
    switch (type) {
    case PF_F16: return pf_f16_to_f32(((const uint16_t *)w)[i]);
    case PF_BF16: return pf_bf16_to_f32(((const uint16_t *)w)[i]);
    default: return ((const float *)w)[i];
    }
}

static float
fold(float s[PF_LANES])
{
    for (size_t h = PF_LANES / 2; h; h /= 2)
        for (size_t i = 0; i < h; i++)
            s[i] += s[i + h];
    return s[0];
}

static size_t
round_up(size_t n)
{
    return (n + PF_LANES - 1) / PF_LANES * PF_LANES;
}

static void
matmul_nn(float *y, size_t ldy, const float *x, size_t ldx, const void *w,
    enum pf_dtype type, const float *bias, size_t M, size_t K, size_t N,
    size_t n0, size_t n1)
{
    for (size_t m = 0; m < M; m++) {
        for (size_t n = n0; n < n1; n++) {
            float sum = 0;

            for (size_t k = 0; k < K; k++)
                sum = fmaf(x[m * ldx + k], weight(w, type, k * N + n), sum);
            y[m * ldy + n] = bias ? sum + bias[n] : sum;
        }
    }
}

static void
matmul_nt(float *y, size_t ldy, const float *x, size_t ldx, const void *w,
    enum pf_dtype type, const float *bias, size_t M, size_t K, size_t N,
    size_t n0, size_t n1)
{
    (void)N;
    for (size_t m = 0; m < M; m++) {
        for (size_t n = n0; n < n1; n++) {
            float s[PF_LANES] = { 0 }, sum;

            for (size_t k = 0; k < round_up(K); k++) {
                float a = k < K ? x[m * ldx + k] : 0;
                float b = k < K ? weight(w, type, n * K + k) : 0;

                s[k % PF_LANES] = fmaf(a, b, s[k % PF_LANES]);
            }
            sum = fold(s);
            y[m * ldy + n] = bias ? sum + bias[n] : sum;
        }
    }
}

static void
layernorm(float *y, const float *x, const float *gain, const float *bias,
    size_t n, float eps)
{
    float s[PF_LANES] = { 0 }, mean, r;

    for (size_t i = 0; i < round_up(n); i++)
        s[i % PF_LANES] += i < n ? x[i] : 0;
    mean = fold(s) / (float)n;

    memset(s, 0, sizeof s);
    for (size_t i = 0; i < round_up(n); i++) {
        float d = i < n ? x[i] - mean : 0;

        s[i % PF_LANES] = fmaf(d, d, s[i % PF_LANES]);
    }
    r = 1 / sqrtf(fold(s) / (float)n + eps);

    for (size_t i = 0; i < n; i++)
        y[i] = fmaf((x[i] - mean) * r, gain[i], bias[i]);
}

/* 2^(i - 1) is a normal number for all i that occur; doubling is exact. */
static float
scale2(float p, int i)
{
    uint32_t bits = (uint32_t)(i - 1 + 127) << 23;
    float power;

    memcpy(&power, &bits, sizeof power);
    return p * power * 2;
}

static float
exp2_one(float x)
{
    float i, f, p;

    if (x < -100)
        return 0;
    if (x >= 128)
        return INFINITY;
    if (isnan(x))
        return x;
    i = rintf(x);
    f = x - i;
    p = PF_EXP2_C5;
    p = fmaf(p, f, PF_EXP2_C4);
    p = fmaf(p, f, PF_EXP2_C3);
    p = fmaf(p, f, PF_EXP2_C2);
    p = fmaf(p, f, PF_EXP2_C1);
    p = fmaf(p, f, 1);
    return scale2(p, (int)i);
}

static void
exp2_each(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = exp2_one(x[i]);
}

static void
gelu_tanh(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float x2 = x[i] * x[i];
        float t = fmaf(x2 * x[i], PF_GELU_CUBE, x[i]);

        x[i] = x[i] / (1 + exp2_one(t * PF_GELU_EXP2));
    }
}

static void
add(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}

/* What one row of attention carries from block to block. */
struct row {
    float c, m;
    float l[PF_LANES];
};

/*
 * The scores of the n <= 64 keys at position j0 and on into `s`.  Returns by
 * how much all sums so far shrink.
 */
static float
row_scores(struct row *row, float *s, const float *q,
    const struct pf_kv_head *kv, size_t D, size_t j0, size_t n)
{
    float mb = -INFINITY, m = row->m;

    for (size_t j = 0; j < n; j++) {
        const float *k = kv->k[(j0 + j) / PF_KV_GROUP] + kv->k_off;

        s[j] = 0;
        for (size_t d = 0; d < D; d++)
            s[j] = fmaf(q[d] * row->c,
                k[d * PF_KV_GROUP + j % PF_KV_GROUP], s[j]);
        mb = s[j] > mb ? s[j] : mb;
    }
    row->m = mb > m ? mb : m;
    return exp2_one(m - row->m);
}

/* The scores become weights (over the denominator), which are added to l. */
static void
row_weights(struct row *row, float *s, size_t n, float r)
{
    for (size_t i = 0; i < PF_LANES; i++)
        row->l[i] *= r;
    for (size_t j = 0; j < n; j++) {
        s[j] = exp2_one(s[j] - row->m);
        row->l[j % PF_LANES] += s[j];
    }
}

static struct row
row_start(float scale)
{
    return (struct row){
        .c = (float)((double)scale * PF_LOG2E),
        .m = PF_ATTN_MAX,
    };
}

static size_t
at_most(size_t n, size_t max)
{
    return n < max ? n : max;
}

static void
attn(float *out, size_t ldo, const float *q, size_t ldq,
    const struct pf_kv_head *kv, size_t T, size_t D, size_t Dv, size_t seen,
    size_t step, float scale)
{
    for (; T > 0; T--, q += ldq, out += ldo, seen += step) {
        struct row row = row_start(scale);
        float p[PF_KV_BLOCK], r, sum;

        for (size_t d = 0; d < Dv; d++)
            out[d] = 0;
        for (size_t j0 = 0; j0 < seen; j0 += PF_KV_BLOCK) {
            size_t n = at_most(seen - j0, PF_KV_BLOCK);

            r = row_scores(&row, p, q, kv, D, j0, n);
            row_weights(&row, p, n, r);
            for (size_t d = 0; d < Dv; d++)
                out[d] *= r;
            for (size_t j = 0; j < n; j++) {
                const float *v = kv->v[(j0 + j) / PF_KV_GROUP] + kv->v_off
                    + j % PF_KV_GROUP * Dv;

                for (size_t d = 0; d < Dv; d++)
                    out[d] = fmaf(p[j], v[d], out[d]);
            }
        }
        sum = fold(row.l);
        for (size_t d = 0; d < Dv; d++)
            out[d] /= sum;
    }
}

static void
attn_weights(float *w, size_t ldw, const float *q, size_t ldq,
    const struct pf_kv_head *kv, size_t T, size_t D, size_t S, size_t seen,
    size_t step, float scale)
{
    for (; T > 0; T--, q += ldq, w += ldw, seen += step) {
        struct row row = row_start(scale);
        float p[PF_KV_BLOCK], r, sum;

        for (size_t j0 = 0; j0 < seen; j0 += PF_KV_BLOCK) {
            size_t n = at_most(seen - j0, PF_KV_BLOCK);

            r = row_scores(&row, p, q, kv, D, j0, n);
            memcpy(w + j0, p, n * sizeof *p);
            row_weights(&row, p, n, r);
        }
        sum = fold(row.l);
        for (size_t j = 0; j < S; j++)
            w[j] = j < seen ? exp2_one(w[j] - row.m) / sum : 0;
    }
}

const struct pf_kernels pf_kernels_portable = {
    .name = "portable",
    .matmul_nn = matmul_nn,
    .matmul_nt = matmul_nt,
    .layernorm = layernorm,
    .gelu_tanh = gelu_tanh,
    .add = add,
    .exp2 = exp2_each,
    .attn = attn,
    .attn_weights = attn_weights,
};
