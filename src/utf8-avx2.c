/*
 * UTF-8 told 32 bytes at a time (Keiser and Lemire 2021, "Validating UTF-8 in
 * less than one instruction per byte").  What two bytes in a row can be wrong
 * in is a set of faults, looked up by three half bytes: both of the first and
 * the upper one of the second; a fault in all three sets is one.  Two
 * continuations in a row are a fault unless a third or fourth byte is due.
 */
#include "utf8-private.h"

#if defined(__AVX2__)
#include <immintrin.h>

enum {
    SHORT = 1 << 0,      /* a first byte, and no continuation */
    LONG = 1 << 1,       /* ASCII, and a continuation */
    OVERLONG_3 = 1 << 2, /* U+0000 to U+07FF in three bytes */
    LARGE = 1 << 3,      /* U+110000 and more */
    SURROGATE = 1 << 4,
    OVERLONG_2 = 1 << 5, /* ASCII in two bytes */
    OVERLONG_4 = 1 << 6, /* U+0000 to U+FFFF in four bytes; U+140000 too */
    TWO = 1 << 7,        /* continuations: all tables have it in this bit */
    ANY = SHORT | LONG | TWO,
    STEP = 32,
};

static inline __m256i
by_half(__m256i half, const uint8_t table[16])
{
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(
        _mm_loadu_si128((const void *)table)), half);
}

static inline __m256i
upper(__m256i x)
{
    return _mm256_and_si256(_mm256_srli_epi16(x, 4), _mm256_set1_epi8(15));
}

/* No fault in the pairs that end in the bytes x; x1 begins a byte before. */
static inline bool
valid(__m256i x, __m256i x1, __m256i x2, __m256i x3)
{
    static const uint8_t first_upper[16] = { LONG, LONG, LONG, LONG, LONG,
        LONG, LONG, LONG, TWO, TWO, TWO, TWO, SHORT | OVERLONG_2, SHORT,
        SHORT | OVERLONG_3 | SURROGATE, SHORT | LARGE | OVERLONG_4 };
    static const uint8_t first_lower[16] = {
        ANY | OVERLONG_3 | OVERLONG_2 | OVERLONG_4, ANY | OVERLONG_2, ANY,
        ANY, ANY | LARGE, ANY | LARGE | OVERLONG_4, ANY | LARGE | OVERLONG_4,
        ANY | LARGE | OVERLONG_4, ANY | LARGE | OVERLONG_4,
        ANY | LARGE | OVERLONG_4, ANY | LARGE | OVERLONG_4,
        ANY | LARGE | OVERLONG_4, ANY | LARGE | OVERLONG_4,
        ANY | LARGE | OVERLONG_4 | SURROGATE, ANY | LARGE | OVERLONG_4,
        ANY | LARGE | OVERLONG_4 };
    static const uint8_t second_upper[16] = { SHORT, SHORT, SHORT, SHORT,
        SHORT, SHORT, SHORT, SHORT,
        LONG | OVERLONG_2 | TWO | OVERLONG_3 | OVERLONG_4,
        LONG | OVERLONG_2 | TWO | OVERLONG_3 | LARGE,
        LONG | OVERLONG_2 | TWO | SURROGATE | LARGE,
        LONG | OVERLONG_2 | TWO | SURROGATE | LARGE,
        SHORT, SHORT, SHORT, SHORT };
    __m256i low = _mm256_and_si256(x1, _mm256_set1_epi8(15)), fault, due;

    fault = _mm256_and_si256(_mm256_and_si256(
        by_half(upper(x1), first_upper), by_half(low, first_lower)),
        by_half(upper(x), second_upper));
    /* Of bytes from E0 on two before, F0 on three before, the top bit. */
    due = _mm256_or_si256(
        _mm256_subs_epu8(x2, _mm256_set1_epi8(0xe0 - 0x80)),
        _mm256_subs_epu8(x3, _mm256_set1_epi8((char)(0xf0 - 0x80))));
    due = _mm256_and_si256(due, _mm256_set1_epi8((char)0x80));
    fault = _mm256_xor_si256(fault, due);
    return _mm256_testz_si256(fault, fault);
}

/* A character's first byte at or before p[i], which it may reach. */
static size_t
back(const unsigned char *p, size_t i)
{
    for (size_t k = 1; k <= 3 && k <= i; k++)
        if (p[i - k] >= 0xc0)
            return i - k;
    return i;
}

static size_t
span(const char *text, size_t i, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t from = i;
    __m256i x, x3;

    for (; n - i >= STEP; i += STEP) {
        x = _mm256_loadu_si256((const void *)(p + i));
        x3 = _mm256_loadu_si256((const void *)(p + i - 3));
        if (!_mm256_movemask_epi8(_mm256_or_si256(x, x3)))
            continue;
        if (!valid(x, _mm256_loadu_si256((const void *)(p + i - 1)),
                _mm256_loadu_si256((const void *)(p + i - 2)), x3))
            break;
    }
    i = back(p, i);
    return i > from ? i : from;
}

size_t (*const pf_utf8_span_avx2)(const char *, size_t, size_t) = span;

#else

size_t (*const pf_utf8_span_avx2)(const char *, size_t, size_t) = NULL;

#endif
