/*
 * A class table in two levels says at once of most characters that there is
 * nothing to do.  The rest is looked up by halving: decompositions, one step
 * of them at a time, as they are in Unicode's own table; the same entries in
 * the order of their parts, for composition; and runs of capitals.  Hangul
 * syllables are arithmetic (Unicode 16, 3.12).
 */
#include "unicode.h"

#include "unicode-tables.h"

#define COUNT(a) (sizeof (a) / sizeof *(a))

enum {
    HANGUL = 0xac00,
    LEAD = 0x1100,
    VOWEL = 0x1161,
    TRAIL = 0x11a7, /* one before the first: none */
    LEADS = 19,
    VOWELS = 21,
    TRAILS = 28,
    SYLLABLES = LEADS * VOWELS * TRAILS,
};

/* The entry of a code point that has one. */
static const uint32_t *
parts_of(uint32_t c)
{
    size_t at = 0, half;

    for (size_t n = COUNT(parts); n > 1; n -= half) {
        half = n / 2;
        at += parts[at + half][0] <= c ? half : 0;
    }
    return parts[at];
}

size_t
pf_uc_decompose(uint32_t c, uint32_t out[PF_UC_DECOMPOSED_MAX])
{
    uint32_t back[PF_UC_DECOMPOSED_MAX - 1], s = c - HANGUL;
    const uint32_t *p;
    size_t n = 0, len = 0;

    if (s < SYLLABLES) {
        out[0] = LEAD + s / (VOWELS * TRAILS);
        out[1] = VOWEL + s / TRAILS % VOWELS;
        out[2] = TRAIL + s % TRAILS;
        return out[2] == TRAIL ? 2 : 3;
    }
    /* Only the first part of two may itself have parts. */
    while (pf_uc_of(c)->flags & PF_UC_DECOMPOSES) {
        p = parts_of(c);
        c = p[1];
        if (p[2])
            back[n++] = p[2];
    }
    out[len++] = c;
    while (n)
        out[len++] = back[--n];
    return len;
}

uint32_t
pf_uc_compose(uint32_t a, uint32_t b)
{
    uint64_t want = (uint64_t)a << 32 | b, have;
    size_t lo = 0, hi = COUNT(composed), mid;
    const uint32_t *p;

    if (!(pf_uc_of(b)->flags & PF_UC_SECOND))
        return 0;
    if (a - LEAD < LEADS && b - VOWEL < VOWELS)
        return HANGUL + ((a - LEAD) * VOWELS + (b - VOWEL)) * TRAILS;
    if (a - HANGUL < SYLLABLES && (a - HANGUL) % TRAILS == 0
        && b - TRAIL < TRAILS)
        return a + (b - TRAIL);
    while (lo < hi) {
        mid = lo + (hi - lo) / 2;
        p = parts[composed[mid]];
        have = (uint64_t)p[1] << 32 | p[2];
        if (have == want)
            return p[0];
        if (have < want)
            lo = mid + 1;
        else
            hi = mid;
    }
    return 0;
}

size_t
pf_uc_lower(uint32_t c, uint32_t out[PF_UC_LOWERED_MAX])
{
    size_t at = 0, half;
    const int32_t *r;

    out[0] = c;
    if (c == 0x130) {
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    for (size_t n = COUNT(lower); n > 1; n -= half) {
        half = n / 2;
        at += (uint32_t)lower[at + half][0] <= c ? half : 0;
    }
    r = lower[at];
    if (c >= (uint32_t)r[0] && c <= (uint32_t)r[1]
        && (c - (uint32_t)r[0]) % (uint32_t)r[2] == 0)
        out[0] = c + (uint32_t)r[3];
    return 1;
}
