#ifndef PF_NAIVE_H
#define PF_NAIVE_H

#include <stddef.h>
#include <stdint.h>

void naive_nn_f32(float *y, const float *x, const float *w, size_t M,
    size_t K, size_t N);
void naive_nt_f32(float *y, const float *x, const float *w, size_t M,
    size_t K, size_t N);
void naive_nt_f16(float *y, const float *x, const uint16_t *w, size_t M,
    size_t K, size_t N);

/* Causal: query t of T sees keys 0 .. S-T+t.  k [S][D], v [S][D]; s: S. */
void naive_attn(float *out, const float *q, const float *k, const float *v,
    size_t T, size_t S, size_t D, float scale, float *s);

#endif
