#include "kernel-def.h"

/*
 * The kernels on vectors of 16 (AVX-512 F, BW, VL, DQ): 32 registers, masked
 * loads and stores, broadcasts as operands.  The body is kernel-simd.h.
 */

#ifdef __x86_64__

#include <immintrin.h>
#include <string.h>

#define TABLE pf_kernels_avx512
#define TABLE_ZEN pf_kernels_avx512_zen
#define NAME "avx512"

#define NN_ONE 24 /* and accumulators of a single row: of 32 registers */

enum {
    VW = 16,
    NT_M = 6, NT_N = 4, NT_ONE = 4, /* accumulators: 24 of 32 registers */
    NN_M = 8, NN_V = 3, NN_FEW = 64, NN_WIDE = 2,
    AT_G = 4, AT_V = 4,
};

typedef __m512 vec;

#define INLINE static inline __attribute__((always_inline))

INLINE __mmask16
first(size_t n)
{
    return (__mmask16)(n < VW ? (1u << n) - 1 : 0xffff);
}

INLINE vec
vset(float a)
{
    return _mm512_set1_ps(a);
}

INLINE vec
vload(const float *p)
{
    return _mm512_loadu_ps(p);
}

INLINE vec
vload_n(const float *p, size_t n)
{
    return _mm512_maskz_loadu_ps(first(n), p);
}

INLINE __m256i
load_half(const uint16_t *p, size_t n)
{
    return n < VW ? _mm256_maskz_loadu_epi16(first(n), p)
                  : _mm256_loadu_si256((const __m256i *)p);
}

INLINE vec
vload_f16(const uint16_t *p, size_t n)
{
    return _mm512_cvtph_ps(load_half(p, n));
}

INLINE vec
vload_bf16(const uint16_t *p, size_t n)
{
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(load_half(p, n)), 16));
}

/* Of two vectors' elements those of even and of odd number. */
INLINE void
vload_bf16_apart(const uint16_t *p, vec *even, vec *odd)
{
    __m512i a = _mm512_loadu_si512(p);

    *even = _mm512_castsi512_ps(_mm512_slli_epi32(a, 16));
    *odd = _mm512_castsi512_ps(_mm512_and_si512(a,
        _mm512_set1_epi32((int)0xffff0000)));
}

/* Such two vectors in the order of their elements. */
INLINE void
vzip(vec *even, vec *odd)
{
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19,
        4, 20, 5, 21, 6, 22, 7, 23);
    vec a = *even, b = *odd;

    *even = _mm512_permutex2var_ps(a, low, b);
    *odd = _mm512_permutex2var_ps(a,
        _mm512_add_epi32(low, _mm512_set1_epi32(8)), b);
}

INLINE void
vstore(float *p, vec a)
{
    _mm512_storeu_ps(p, a);
}

INLINE void
vstore_n(float *p, vec a, size_t n)
{
    _mm512_mask_storeu_ps(p, first(n), a);
}

/* The first n elements of a, b's for the rest. */
INLINE vec
vblend_n(vec a, vec b, size_t n)
{
    return _mm512_mask_blend_ps(first(n), b, a);
}

INLINE vec
vadd(vec a, vec b)
{
    return _mm512_add_ps(a, b);
}

INLINE vec
vsub(vec a, vec b)
{
    return _mm512_sub_ps(a, b);
}

INLINE vec
vmul(vec a, vec b)
{
    return _mm512_mul_ps(a, b);
}

INLINE vec
vdiv(vec a, vec b)
{
    return _mm512_div_ps(a, b);
}

INLINE vec
vfma(vec a, vec b, vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}

INLINE vec
vmax(vec a, vec b)
{
    return _mm512_max_ps(a, b);
}

INLINE float
vmax_all(vec a)
{
    return _mm512_reduce_max_ps(a);
}

INLINE vec
vround(vec a)
{
    return _mm512_roundscale_ps(a,
        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* p * 2^i, but 0 where x < -100 and +inf where x >= 128. */
INLINE vec
vscale2(vec p, vec i, vec x)
{
    __mmask16 some = _mm512_cmp_ps_mask(x, vset(-100), _CMP_NLT_UQ);
    __mmask16 huge = _mm512_cmp_ps_mask(x, vset(128), _CMP_GE_OQ);

    p = _mm512_maskz_scalef_ps(some, p, i);
    return _mm512_mask_blend_ps(huge, p, vset(__builtin_inff()));
}

/* Eight sums of doubles, of the elements i % 8 each. */
typedef __m512d wide;

INLINE wide
wide_zero(void)
{
    return _mm512_setzero_pd();
}

INLINE wide
wide_add(wide s, vec a)
{
    s = _mm512_add_pd(s, _mm512_cvtps_pd(_mm512_castps512_ps256(a)));
    return _mm512_add_pd(s, _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1)));
}

INLINE void
wide_store(double *p, wide s)
{
    _mm512_storeu_pd(p, s);
}

/* Four folds of 16 at once. */
INLINE __m128
fold4(const vec *a, const vec *b, const vec *c, const vec *d)
{
    const __m512i every4th = _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0);
    vec ab, cd, s;

    ab = vadd(_mm512_shuffle_f32x4(*a, *b, 0x44),
        _mm512_shuffle_f32x4(*a, *b, 0xee));
    cd = vadd(_mm512_shuffle_f32x4(*c, *d, 0x44),
        _mm512_shuffle_f32x4(*c, *d, 0xee));
    s = vadd(_mm512_shuffle_f32x4(ab, cd, 0x88),
        _mm512_shuffle_f32x4(ab, cd, 0xdd));
    s = vadd(s, _mm512_permute_ps(s, 0xee));
    s = vadd(s, _mm512_permute_ps(s, 0x55));
    return _mm512_castps512_ps128(_mm512_permutexvar_ps(every4th, s));
}

#include "kernel-simd.h"

#else
typedef int pf_no_avx512;
#endif
