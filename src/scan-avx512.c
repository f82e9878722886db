/* scan-wide.h with one vector of 64 bytes. */
#include "scan-private.h"

#if defined(__AVX512BW__) && defined(__BMI2__)
#include <immintrin.h>

typedef __m512i vec;

static inline vec
load(const unsigned char *p, size_t n)
{
    return n < WINDOW
        ? _mm512_maskz_loadu_epi8(((uint64_t)1 << n) - 1, p)
        : _mm512_loadu_si512(p);
}

static inline uint64_t
equal(vec x, int c)
{
    return _mm512_cmpeq_epi8_mask(x, _mm512_set1_epi8((char)c));
}

static inline uint64_t
within(vec x, int lo, int hi)
{
    x = _mm512_sub_epi8(x, _mm512_set1_epi8((char)lo));
    return _mm512_cmple_epu8_mask(x, _mm512_set1_epi8((char)(hi - lo)));
}

static inline uint64_t
has(vec x, int bit)
{
    return _mm512_test_epi8_mask(x, _mm512_set1_epi8((char)bit));
}

#include "scan-wide.h"

scan_wide *const pf_scan_avx512 = wide;

#else

scan_wide *const pf_scan_avx512 = NULL;

#endif
