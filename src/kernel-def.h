#ifndef PF_KERNEL_DEF_H
#define PF_KERNEL_DEF_H

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

/* Where the running maximum of a row of attention starts. */
#define PF_ATTN_MAX (-3e38f)

#ifdef __x86_64__
extern const struct pf_kernels pf_kernels_avx2, pf_kernels_avx512;
#endif

#endif
