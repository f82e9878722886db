#include "naive.h"

#include <math.h>
#include <string.h>

/*
 * What bench_kernel measures against: the loops as one writes them down,
 * left to the compiler (-O3 -march=native).
 */

static float
f16(uint16_t h)
{
#ifdef __FLT16_MANT_DIG__
    _Float16 f;

    memcpy(&f, &h, sizeof f);
    return (float)f;
#else
    uint32_t bits = (uint32_t)(h & 0x8000) << 16 | (uint32_t)(h & 0x7fff) << 13;
    float f;

    memcpy(&f, &bits, sizeof f);
    return f * 0x1p112f;
#endif
}

void
naive_nn_f32(float *restrict y, const float *restrict x,
    const float *restrict w, size_t M, size_t K, size_t N)
{
    for (size_t m = 0; m < M; m++) {
        for (size_t n = 0; n < N; n++)
            y[m * N + n] = 0;
        for (size_t k = 0; k < K; k++)
            for (size_t n = 0; n < N; n++)
                y[m * N + n] += x[m * K + k] * w[k * N + n];
    }
}

void
naive_nt_f32(float *restrict y, const float *restrict x,
    const float *restrict w, size_t M, size_t K, size_t N)
{
    for (size_t m = 0; m < M; m++) {
        for (size_t n = 0; n < N; n++) {
            float sum = 0;

            for (size_t k = 0; k < K; k++)
                sum += x[m * K + k] * w[n * K + k];
            y[m * N + n] = sum;
        }
    }
}

void
naive_nt_f16(float *restrict y, const float *restrict x,
    const uint16_t *restrict w, size_t M, size_t K, size_t N)
{
    for (size_t m = 0; m < M; m++) {
        for (size_t n = 0; n < N; n++) {
            float sum = 0;

            for (size_t k = 0; k < K; k++)
                sum += x[m * K + k] * f16(w[n * K + k]);
            y[m * N + n] = sum;
        }
    }
}

void
naive_attn(float *restrict out, const float *restrict q,
    const float *restrict k, const float *restrict v, size_t T, size_t S,
    size_t D, float scale, float *restrict s)
{
    for (size_t t = 0; t < T; t++) {
        size_t seen = S - T + t + 1;
        float max = -INFINITY, sum = 0;

        for (size_t j = 0; j < seen; j++) {
            float dot = 0;

            for (size_t d = 0; d < D; d++)
                dot += q[t * D + d] * k[j * D + d];
            s[j] = dot * scale;
            max = s[j] > max ? s[j] : max;
        }
        for (size_t j = 0; j < seen; j++) {
            s[j] = expf(s[j] - max);
            sum += s[j];
        }
        for (size_t d = 0; d < D; d++)
            out[t * D + d] = 0;
        for (size_t j = 0; j < seen; j++)
            for (size_t d = 0; d < D; d++)
                out[t * D + d] += s[j] / sum * v[j * D + d];
    }
}
