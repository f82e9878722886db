#ifndef PF_KERNEL_DEF_H
#define PF_KERNEL_DEF_H

#include <float.h>

#include <pipeformer/kernel.h>

/*
 * The numbers that are part of the definition of kernel.h, so that no two
 * tables can differ in them.
 */

/*
 * 2^f on [-0.5, 0.5]: the polynomial of degree 5 through (0, 1) of least
 * relative error (Remez: 9.1e-8), its coefficients then moved by single units
 * in the last place to where Horner's scheme in float32 has an error of 1.6e-7.
 */
#define PF_EXP2_C1 0x1.62e428p-1f
#define PF_EXP2_C2 0x1.ebf9bep-3f
#define PF_EXP2_C3 0x1.c6b7b8p-5f
#define PF_EXP2_C4 0x1.3cea84p-7f
#define PF_EXP2_C5 0x1.5bba1ap-10f

#define PF_LOG2E 1.4426950408889634

#define PF_GELU_CUBE 0.044715f
#define PF_GELU_EXP2 ((float)(-2 * 0.7978845608028654 * PF_LOG2E))

/*
 * exp(a^2 / 2) times the upper tail of the normal distribution, for a from 0
 * to 11.8 (beyond, the exponential is 0): a polynomial in t = (a - PF_TAIL_AT)
 * / (a + PF_TAIL_AT) that is right at the Chebyshev points of that interval;
 * relative error 5e-8.
 */
#define PF_TAIL_AT 4.375f
#define PF_TAIL_EXP2 ((float)(-0.5 * PF_LOG2E))
#define PF_TAIL_EXP2_LOW ((float)(-0.5 * PF_LOG2E - (double)PF_TAIL_EXP2))
#define PF_TAIL_MAX 14.0f /* from here on the exponential is 0 */
#define PF_LN2 0.6931471805599453f
#define PF_TAIL_C0 0x1.647338p-4f
#define PF_TAIL_C1 -0x1.465e52p-3f
#define PF_TAIL_C2 0x1.f2d50ap-4f
#define PF_TAIL_C3 -0x1.397d28p-4f
#define PF_TAIL_C4 0x1.39d388p-5f
#define PF_TAIL_C5 -0x1.d2c53ep-7f
#define PF_TAIL_C6 0x1.a17a68p-9f
#define PF_TAIL_C7 0x1.fdb862p-14f
#define PF_TAIL_C8 -0x1.50e21cp-12f

/* Where the running maximum of a row of attention starts. */
#define PF_ATTN_MAX (-FLT_MAX)

/* What a number of a mask adds to a score, which is one of base 2. */
static inline float
pf_mask_bias(float a)
{
    float b = a * (float)PF_LOG2E;

    return b < -FLT_MAX && a >= -FLT_MAX ? -FLT_MAX : b;
}

#ifdef __x86_64__
extern const struct pf_kernels pf_kernels_avx2, pf_kernels_avx2_zen,
    pf_kernels_avx512, pf_kernels_avx512_zen;
#endif

#endif
