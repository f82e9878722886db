/* The loop of bpe-merge.h with 16 ranks in two vectors. */
#include "bpe-private.h"

#if defined(__AVX2__)
#include <immintrin.h>

static inline __m256i
load8(const int32_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

/* The least of eight, in all places. */
static inline __m256i
least8(__m256i v)
{
    v = _mm256_min_epi32(v, _mm256_permute2x128_si256(v, v, 1));
    v = _mm256_min_epi32(v, _mm256_shuffle_epi32(v, 0x4e));
    return _mm256_min_epi32(v, _mm256_shuffle_epi32(v, 0xb1));
}

static inline int32_t
least(const int32_t *p, size_t n)
{
    __m256i a = load8(p), b = load8(p + 8);

    for (size_t i = FAN; i < n; i += FAN) {
        a = _mm256_min_epi32(a, load8(p + i));
        b = _mm256_min_epi32(b, load8(p + i + 8));
    }
    return _mm256_cvtsi256_si32(least8(_mm256_min_epi32(a, b)));
}

static inline size_t
first(const int32_t *p)
{
    __m256i a = load8(p), b = load8(p + 8);
    __m256i v = least8(_mm256_min_epi32(a, b));
    unsigned low = (unsigned)_mm256_movemask_ps(
        _mm256_castsi256_ps(_mm256_cmpeq_epi32(a, v)));
    unsigned high = (unsigned)_mm256_movemask_ps(
        _mm256_castsi256_ps(_mm256_cmpeq_epi32(b, v)));

    return (size_t)__builtin_ctz(low | high << 8);
}

#include "bpe-merge.h"

size_t (*const pf_bpe_merge_avx2)(const struct pf_bpe *, struct pf_bpe_work *,
    uint32_t *, size_t) = merge;

#else

size_t (*const pf_bpe_merge_avx2)(const struct pf_bpe *, struct pf_bpe_work *,
    uint32_t *, size_t) = NULL;

#endif
