/* scan-wide.h with two vectors of 32 bytes. */
#include "scan-private.h"

#if defined(__AVX2__) && defined(__BMI2__)
#include <immintrin.h>
#include <string.h>

typedef struct {
    __m256i low, high;
} vec;

static inline vec
load(const unsigned char *p, size_t n)
{
    unsigned char copy[WINDOW] = { 0 };

    if (n < WINDOW) {
        memcpy(copy, p, n);
        p = copy;
    }
    return (vec){ _mm256_loadu_si256((const void *)p),
        _mm256_loadu_si256((const void *)(p + 32)) };
}

static inline uint64_t
bits(__m256i low, __m256i high)
{
    return (uint32_t)_mm256_movemask_epi8(low)
        | (uint64_t)(uint32_t)_mm256_movemask_epi8(high) << 32;
}

static inline uint64_t
equal(vec x, int c)
{
    __m256i v = _mm256_set1_epi8((char)c);

    return bits(_mm256_cmpeq_epi8(x.low, v), _mm256_cmpeq_epi8(x.high, v));
}

/* The byte less lo, and whether it is the lesser of that and hi - lo. */
static inline uint64_t
within(vec x, int lo, int hi)
{
    __m256i from = _mm256_set1_epi8((char)lo);
    __m256i most = _mm256_set1_epi8((char)(hi - lo));
    __m256i a = _mm256_sub_epi8(x.low, from), b = _mm256_sub_epi8(x.high, from);

    return bits(_mm256_cmpeq_epi8(_mm256_min_epu8(a, most), a),
        _mm256_cmpeq_epi8(_mm256_min_epu8(b, most), b));
}

static inline uint64_t
has(vec x, int bit)
{
    __m256i v = _mm256_set1_epi8((char)bit);

    return bits(_mm256_cmpeq_epi8(_mm256_and_si256(x.low, v), v),
        _mm256_cmpeq_epi8(_mm256_and_si256(x.high, v), v));
}

#include "scan-wide.h"

scan_wide *const pf_scan_avx2 = wide;

#else

scan_wide *const pf_scan_avx2 = NULL;

#endif
