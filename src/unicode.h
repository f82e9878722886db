#ifndef PF_UNICODE_H
#define PF_UNICODE_H

#include <stddef.h>
#include <stdint.h>

/*
 * What the normalizers of HuggingFace tokenizers 0.22.2 know of a code point.
 * Its parts follow different versions of Unicode, and so do these tables:
 * unicode-tables.py says which, and makes them.
 */
enum {
    /* Has a canonical decomposition. */
    PF_UC_DECOMPOSES = 1 << 0,
    /* Not a boundary of NFC: may change, or join what stands before it. */
    PF_UC_JOINS = 1 << 1,
    /* Has a lower-case form other than itself. */
    PF_UC_LOWERS = 1 << 2,
    PF_UC_SPACE = 1 << 3, /* White_Space */
    PF_UC_MARK = 1 << 4,  /* general category M: what StripAccents drops */

    /* BertNormalizer: what it drops, turns into a space, puts spaces around,
     * and drops as an accent; and what BertPreTokenizer makes a word. */
    PF_UC_BERT_REMOVED = 1 << 5,
    PF_UC_BERT_SPACE = 1 << 6,
    PF_UC_BERT_CJK = 1 << 7,
    PF_UC_BERT_ACCENT = 1 << 8,
    PF_UC_BERT_PUNCT = 1 << 9,

    /* Second of a pair that pf_uc_compose knows. */
    PF_UC_SECOND = 1 << 10,
};

struct pf_uc {
    uint16_t flags;
    uint8_t order; /* canonical combining class */
};

enum { PF_UC_DECOMPOSED_MAX = 4, PF_UC_LOWERED_MAX = 2 };

/* Of a code point up to U+10FFFF. */
static inline const struct pf_uc *pf_uc_of(uint32_t c);

/*
 * The canonical decomposition, all the way down: 1 to PF_UC_DECOMPOSED_MAX
 * code points, 1 and c itself where there is none.
 */
size_t pf_uc_decompose(uint32_t c, uint32_t out[PF_UC_DECOMPOSED_MAX]);

/* The character that a and b behind it are in NFC, 0 for none. */
uint32_t pf_uc_compose(uint32_t a, uint32_t b);

/*
 * The lower-case form, whatever stands around it: 1 or 2 code points (2 for
 * U+0130 alone).
 */
size_t pf_uc_lower(uint32_t c, uint32_t out[PF_UC_LOWERED_MAX]);

/* Blocks of 128 code points, of which many are alike. */
extern const uint8_t pf_uc_block[], pf_uc_low[];
extern const struct pf_uc pf_uc_class[];

static inline const struct pf_uc *
pf_uc_of(uint32_t c)
{
    return &pf_uc_class[pf_uc_low[pf_uc_block[c >> 7] * 128u + (c & 127)]];
}

#endif
