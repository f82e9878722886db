#ifndef PF_SCAN_H
#define PF_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The patterns of known encodings, matched by hand: what PCRE2 makes of the
 * pattern (pretok.h) is the definition, and these give the same pieces, many
 * times faster.  \p{..} and \s are those of Unicode 16.
 */
enum pf_scan {
    PF_SCAN_NONE,
    PF_SCAN_GPT2,   /* gpt2, r50k_base, p50k_base, p50k_edit */
    PF_SCAN_CL100K, /* cl100k_base, llama3 */
    PF_SCAN_QWEN2,  /* as cl100k_base, each number character a piece */
    PF_SCAN_O200K,  /* o200k_base, o200k_harmony */
};

/*
 * Cuts text, valid UTF-8, into pieces from its beginning: ends[i] is where
 * piece i ends, an offset into text; no piece is empty and they leave no gap.
 * Stops after `max` pieces, or up to 63 before; returns how many there are, 0
 * only if there is no more.  Reads no byte outside of the text.
 *
 * With `last` false more text may follow, and only the pieces that are the
 * same whatever follows are given.  Mostly 8 bytes behind a piece tell; white
 * space must be seen to its end (a newline there counts), and so must a run of
 * capitals in o200k (a small letter there does).
 */
size_t pf_scan(enum pf_scan kind, const char *text, size_t len, bool last,
    size_t *ends, size_t max);

/*
 * The same for a block of texts with a delimiter, a byte below ' ', behind
 * each but perhaps the last: every text is cut as if it were alone, and every
 * delimiter is a piece.
 */
size_t pf_scan_texts(enum pf_scan kind, const char *block, size_t len,
    char delimiter, size_t *ends, size_t max);

/*
 * The classes of a character as these patterns see it.  \p{Lu} is LETTER and
 * UPPER, Lt the same and SPECIAL, Ll LETTER and LOWER, Lo all three, Lm all
 * four, M UPPER and LOWER.
 */
enum pf_class {
    PF_CLASS_LETTER = 1,   /* \p{L} */
    PF_CLASS_NUMBER = 2,   /* \p{N} */
    PF_CLASS_SPACE = 4,    /* \s */
    PF_CLASS_UPPER = 8,    /* [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] */
    PF_CLASS_LOWER = 16,   /* [\p{Ll}\p{Lm}\p{Lo}\p{M}] */
    PF_CLASS_SPECIAL = 32, /* [\p{Lt}\p{Lm}] */
    PF_CLASS_NEWLINE = 64, /* [\r\n] */
};

/*
 * The classes of c, at most U+10FFFF; *next is the first code point behind c
 * that may be of others, 0x110000 at last.
 */
unsigned pf_class_run(uint32_t c, uint32_t *next);

#endif
