#include "kernel-def.h"

/*
 * The kernels on vectors of 8 (AVX2, FMA, F16C), two of them to a set of 16
 * lanes; 16 registers.  The body is kernel-simd.h.
 */

#ifdef __x86_64__

#include <immintrin.h>
#include <string.h>

#define TABLE pf_kernels_avx2
#define TABLE_ZEN pf_kernels_avx2_zen
#define NAME "avx2"

#define NN_ONE 0 /* too few registers */

enum {
    VW = 8,
    NT_M = 3, NT_N = 2, NT_ONE = 4, /* accumulators: 12 of 16 registers */
    NN_M = 4, NN_V = 3, NN_FEW = 32, NN_WIDE = 1,
    AT_G = 1, AT_V = 2,
};

typedef __m256 vec;

#define INLINE static inline __attribute__((always_inline))

/* All ones in the first n elements. */
INLINE __m256i
first(size_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(n < VW ? n : VW)),
        _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

INLINE vec
vset(float a)
{
    return _mm256_set1_ps(a);
}

INLINE vec
vload(const float *p)
{
    return _mm256_loadu_ps(p);
}

INLINE vec
vload_n(const float *p, size_t n)
{
    return _mm256_maskload_ps(p, first(n));
}

/* There is no masked load of 16-bit elements. */
INLINE __m128i
load_half(const uint16_t *p, size_t n)
{
    uint16_t some[VW] = { 0 };

    if (n >= VW)
        return _mm_loadu_si128((const __m128i *)p);
    for (size_t i = 0; i < n; i++)
        some[i] = p[i];
    return _mm_loadu_si128((const __m128i *)some);
}

INLINE vec
vload_f16(const uint16_t *p, size_t n)
{
    return _mm256_cvtph_ps(load_half(p, n));
}

INLINE vec
vload_bf16(const uint16_t *p, size_t n)
{
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(load_half(p, n)), 16));
}

INLINE void
vstore(float *p, vec a)
{
    _mm256_storeu_ps(p, a);
}

INLINE void
vstore_n(float *p, vec a, size_t n)
{
    _mm256_maskstore_ps(p, first(n), a);
}

/* The first n elements of a, b's for the rest. */
INLINE vec
vblend_n(vec a, vec b, size_t n)
{
    return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(first(n)));
}

INLINE vec
vadd(vec a, vec b)
{
    return _mm256_add_ps(a, b);
}

INLINE vec
vsub(vec a, vec b)
{
    return _mm256_sub_ps(a, b);
}

INLINE vec
vmul(vec a, vec b)
{
    return _mm256_mul_ps(a, b);
}

INLINE vec
vdiv(vec a, vec b)
{
    return _mm256_div_ps(a, b);
}

INLINE vec
vfma(vec a, vec b, vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}

INLINE vec
vmax(vec a, vec b)
{
    return _mm256_max_ps(a, b);
}

INLINE float
vmax_all(vec a)
{
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(a),
        _mm256_extractf128_ps(a, 1));

    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

INLINE vec
vround(vec a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* p * 2^i, but 0 where x < -100 and +inf where x >= 128. */
INLINE vec
vscale2(vec p, vec i, vec x)
{
    __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(i),
        _mm256_set1_epi32(126));
    vec half = _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23));

    p = vmul(vmul(p, half), vset(2));
    p = _mm256_andnot_ps(_mm256_cmp_ps(x, vset(-100), _CMP_LT_OQ), p);
    return _mm256_blendv_ps(p, vset(__builtin_inff()),
        _mm256_cmp_ps(x, vset(128), _CMP_GE_OQ));
}

/* Eight sums of doubles, of the elements i % 8 each. */
typedef struct {
    __m256d low, high;
} wide;

INLINE wide
wide_zero(void)
{
    return (wide){ _mm256_setzero_pd(), _mm256_setzero_pd() };
}

INLINE wide
wide_add(wide s, vec a)
{
    s.low = _mm256_add_pd(s.low, _mm256_cvtps_pd(_mm256_castps256_ps128(a)));
    s.high = _mm256_add_pd(s.high,
        _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1)));
    return s;
}

INLINE void
wide_store(double *p, wide s)
{
    _mm256_storeu_pd(p, s.low);
    _mm256_storeu_pd(p + 4, s.high);
}

/* Four folds of 16 at once. */
INLINE __m128
fold4(const vec *a, const vec *b, const vec *c, const vec *d)
{
    vec a8 = vadd(a[0], a[1]), b8 = vadd(b[0], b[1]);
    vec c8 = vadd(c[0], c[1]), d8 = vadd(d[0], d[1]);
    vec ac, bd, s;

    ac = vadd(_mm256_permute2f128_ps(a8, c8, 0x20),
        _mm256_permute2f128_ps(a8, c8, 0x31));
    bd = vadd(_mm256_permute2f128_ps(b8, d8, 0x20),
        _mm256_permute2f128_ps(b8, d8, 0x31));
    s = vadd(_mm256_shuffle_ps(ac, bd, 0x44), _mm256_shuffle_ps(ac, bd, 0xee));
    s = vadd(s, _mm256_movehdup_ps(s)); /* a - b - c - d - */
    return _mm_shuffle_ps(_mm256_castps256_ps128(s),
        _mm256_extractf128_ps(s, 1), 0x88);
}

#include "kernel-simd.h"

#else
typedef int pf_no_avx2;
#endif
