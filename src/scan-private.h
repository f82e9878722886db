#ifndef PF_SCAN_PRIVATE_H
#define PF_SCAN_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scan.h"

/* Shared by what goes from character to character (scan.c) and what takes 64
 * bytes at once (scan-wide.h). */

enum { CLASS_BLOCK = 64, WINDOW = 64 };

/* The tables of scan-classes.h. */
struct scan_classes {
    const uint16_t *index;
    const uint8_t *blocks;
};

/* The class of the character of two to four bytes at p, and its length. */
static inline unsigned
class_of_wide(const struct scan_classes *t, const unsigned char *p,
    size_t *len)
{
    unsigned block, last;

    if (p[0] < 0xe0) {
        *len = 2;
        block = p[0] & 0x1f;
        last = p[1];
    } else if (p[0] < 0xf0) {
        *len = 3;
        block = (p[0] & 0xfu) << 6 | (p[1] & 0x3f);
        last = p[2];
    } else {
        *len = 4;
        block = (p[0] & 7u) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3f);
        last = p[3];
    }
    return t->blocks[t->index[block] * CLASS_BLOCK + (last & 0x3f)];
}

/* Bytes of s, t, m, d, ll, ve, re at p, or 0; the case may count or not. */
static inline size_t
contraction(const unsigned char *p, const unsigned char *end, bool fold)
{
    unsigned other = fold ? 0x20 : 0, a, b;

    if (p == end)
        return 0;
    a = p[0] | other;
    if (a == 's' || a == 't' || a == 'm' || a == 'd')
        return 1;
    if (p + 1 == end)
        return 0;
    b = p[1] | other;
    if ((a == 'l' && b == 'l') || (a == 'v' && b == 'e')
        || (a == 'r' && b == 'e'))
        return 2;
    /* U+017F is a small s. */
    return fold && p[0] == 0xc5 && p[1] == 0xbf ? 2 : 0;
}

/* A block of texts, each with a delimiter behind it; or without (-1), one. */
struct scan_block {
    const unsigned char *text;
    size_t len;
    int delimiter;
    bool last; /* nothing follows */
};

/*
 * Pieces from text[from] on, which begins one, while there is room for WINDOW
 * of them; returns how many.  With *stop less than the length, what is at or
 * before that must be cut by other means.
 */
typedef size_t scan_wide(enum pf_scan kind, const struct scan_block *b,
    size_t from, const struct scan_classes *classes, size_t *ends, size_t max,
    size_t *stop);

/* scan-wide.h with AVX2 and BMI2, with AVX-512; NULL without. */
extern scan_wide *const pf_scan_avx2, *const pf_scan_avx512;

#endif
