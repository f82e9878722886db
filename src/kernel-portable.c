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

/* Element i, widened. */
static float
element(const void *w, enum pf_dtype type, size_t i)
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
                sum = fmaf(x[m * ldx + k], element(w, type, k * N + n), sum);
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
                float b = k < K ? element(w, type, n * K + k) : 0;

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

static double
masses(float *y, const float *x, size_t n, float max, float c)
{
    double lane[8] = { 0 }, sum = 0;

    for (size_t i = 0; i < n; i++) {
        y[i] = exp2_one((x[i] - max) * c);
        lane[i % 8] += (double)y[i];
    }
    for (size_t l = 0; l < 8; l++)
        sum += lane[l];
    return sum;
}

static bool
largest(float *y, float *most, const float *x, size_t n)
{
    bool finite = true;

    for (size_t i = 0; i < n; i++) {
        float *m = &most[i / PF_LARGEST_OF];

        finite = finite && isfinite(x[i]);
        y[i] = x[i] + 0;
        *m = i % PF_LARGEST_OF == 0 || y[i] > *m ? y[i] : *m;
    }
    return finite;
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
gelu(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float a = fabsf(x[i]);
        float t = (a - PF_TAIL_AT) / (a + PF_TAIL_AT), p = PF_TAIL_C8;
        float b = a < PF_TAIL_MAX ? a : PF_TAIL_MAX, s = b * b;
        float q = s * PF_TAIL_EXP2, low = fmaf(s, PF_TAIL_EXP2, -q), e;

        p = fmaf(p, t, PF_TAIL_C7);
        p = fmaf(p, t, PF_TAIL_C6);
        p = fmaf(p, t, PF_TAIL_C5);
        p = fmaf(p, t, PF_TAIL_C4);
        p = fmaf(p, t, PF_TAIL_C3);
        p = fmaf(p, t, PF_TAIL_C2);
        p = fmaf(p, t, PF_TAIL_C1);
        p = fmaf(p, t, PF_TAIL_C0);
        low = fmaf(fmaf(b, b, -s), PF_TAIL_EXP2, low);
        low = fmaf(s, PF_TAIL_EXP2_LOW, low);
        e = exp2_one(q);
        p *= fmaf(e, low * PF_LN2, e);
        x[i] = fmaf(-a, p, x[i] > 0 ? x[i] : 0);
    }
}

static void
add(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}

static void
widen(float *y, const void *x, enum pf_dtype type, size_t n)
{
    pf_to_f32(y, x, type, n);
}

/* What one row of attention carries from block to block. */
struct row {
    float c, m;
    float l[PF_LANES];
    const struct pf_attn_mask *mask; /* NULL: none */
    size_t t; /* its row there */
};

static float
bias(const struct row *row, size_t j)
{
    const struct pf_attn_mask *mask = row->mask;
    size_t i = row->t * mask->row + j * mask->column;

    if (mask->type == PF_BOOL)
        return ((const unsigned char *)mask->data)[i] ? 0 : -INFINITY;
    return pf_mask_bias(((const float *)mask->data)[i]);
}

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
        const void *k = kv->k[(j0 + j) / PF_KV_GROUP];
        size_t at = kv->k_off + j % PF_KV_GROUP;

        s[j] = 0;
        for (size_t d = 0; d < D; d++)
            s[j] = fmaf(q[d] * row->c,
                element(k, kv->type, at + d * PF_KV_GROUP), s[j]);
        if (row->mask)
            s[j] += bias(row, j0 + j);
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
row_start(float scale, const struct pf_attn_mask *mask, size_t t)
{
    return (struct row){
        .c = (float)((double)scale * PF_LOG2E),
        .m = PF_ATTN_MAX,
        .mask = mask,
        .t = t,
    };
}

static float
row_sum(struct row *row)
{
    float sum = fold(row->l);

    return sum == 0 ? 1 : sum;
}

static size_t
at_most(size_t n, size_t max)
{
    return n < max ? n : max;
}

static void
rows(float *out, size_t ldo, const float *q, size_t ldq,
    const struct pf_kv_head *kv, const struct pf_attn_mask *mask, size_t T,
    size_t D, size_t Dv, size_t seen, size_t step, float scale)
{
    for (size_t t = 0; t < T; t++, q += ldq, out += ldo, seen += step) {
        struct row row = row_start(scale, mask, t);
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
                const void *v = kv->v[(j0 + j) / PF_KV_GROUP];
                size_t at = kv->v_off + j % PF_KV_GROUP * Dv;

                for (size_t d = 0; d < Dv; d++)
                    out[d] = fmaf(p[j], element(v, kv->type, at + d),
                        out[d]);
            }
        }
        sum = row_sum(&row);
        for (size_t d = 0; d < Dv; d++)
            out[d] /= sum;
    }
}

static void
attn(float *out, size_t ldo, const float *q, size_t ldq,
    const struct pf_kv_head *kv, size_t T, size_t D, size_t Dv, size_t seen,
    size_t step, float scale)
{
    rows(out, ldo, q, ldq, kv, NULL, T, D, Dv, seen, step, scale);
}

static void
attn_masked(float *out, size_t ldo, const float *q, size_t ldq,
    const struct pf_kv_head *kv, const struct pf_attn_mask *mask, size_t T,
    size_t D, size_t Dv, size_t S, float scale)
{
    rows(out, ldo, q, ldq, kv, mask, T, D, Dv, S, 0, scale);
}

static void
weights_rows(float *w, size_t ldw, const float *q, size_t ldq,
    const struct pf_kv_head *kv, const struct pf_attn_mask *mask, size_t T,
    size_t D, size_t S, size_t seen, size_t step, float scale)
{
    for (size_t t = 0; t < T; t++, q += ldq, w += ldw, seen += step) {
        struct row row = row_start(scale, mask, t);
        float p[PF_KV_BLOCK], r, sum;

        for (size_t j0 = 0; j0 < seen; j0 += PF_KV_BLOCK) {
            size_t n = at_most(seen - j0, PF_KV_BLOCK);

            r = row_scores(&row, p, q, kv, D, j0, n);
            memcpy(w + j0, p, n * sizeof *p);
            row_weights(&row, p, n, r);
        }
        sum = row_sum(&row);
        for (size_t j = 0; j < S; j++)
            w[j] = j < seen ? exp2_one(w[j] - row.m) / sum : 0;
    }
}

static void
attn_weights(float *w, size_t ldw, const float *q, size_t ldq,
    const struct pf_kv_head *kv, size_t T, size_t D, size_t S, size_t seen,
    size_t step, float scale)
{
    weights_rows(w, ldw, q, ldq, kv, NULL, T, D, S, seen, step, scale);
}

static void
attn_masked_weights(float *w, size_t ldw, const float *q, size_t ldq,
    const struct pf_kv_head *kv, const struct pf_attn_mask *mask, size_t T,
    size_t D, size_t S, float scale)
{
    weights_rows(w, ldw, q, ldq, kv, mask, T, D, S, S, 0, scale);
}

const struct pf_kernels pf_kernels_portable = {
    .name = "portable",
    .matmul_nn = matmul_nn,
    .matmul_nt = matmul_nt,
    .layernorm = layernorm,
    .gelu_tanh = gelu_tanh,
    .gelu = gelu,
    .add = add,
    .widen = widen,
    .exp2 = exp2_each,
    .masses = masses,
    .largest = largest,
    .attn = attn,
    .attn_weights = attn_weights,
    .attn_masked = attn_masked,
    .attn_masked_weights = attn_masked_weights,
};
