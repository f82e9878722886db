#ifndef PF_PRETOK_H
#define PF_PRETOK_H

#include <stdbool.h>
#include <stddef.h>

#include <pipeformer/err.h>

#include "scan.h"

/*
 * Cuts a text into the pieces that BPE works on: the matches of a pattern,
 * left to right, and what lies between them.  The pieces joined are the text.
 */

/* A pattern made ready: read-only, so threads may share it. */
struct pf_pretok;

enum {
    PF_PRETOK_LAX = 1,      /* what PCRE2 alone understands is let through */
    PF_PRETOK_TIKTOKEN = 2, /* a spelling with the same ids will do for a
                             * scanner (`exact` of pf_pattern_known) */
    PF_PRETOK_PCRE2 = 4,    /* no scanner: the oracle of tests */
    PF_PRETOK_NO_JIT = 8,   /* no machine code either */
};

/*
 * The pattern is one that pf_pattern_translate takes (pattern.h); PF_PRETOK_
 * flags are ored.  If it is a known one nothing is compiled, and a scanner
 * cuts (scan.h).  A pattern that can match no character is refused unless lax;
 * then such matches do not count.
 */
enum pf_status pf_pretok_new(struct pf_pretok **pre, const char *pattern,
    unsigned flags, struct pf_err *err);
void pf_pretok_free(struct pf_pretok *pre);

/* The pattern of this name (gpt2, cl100k, qwen2, o200k), or NULL. */
const char *pf_pretok_named(const char *name);

/* The scanner in use, PF_SCAN_NONE if it is PCRE2. */
enum pf_scan pf_pretok_scan(const struct pf_pretok *pre);

/* Whether pieces depend on nothing before them, so that cutting may begin
 * anew where one ends. */
bool pf_pretok_is_local(const struct pf_pretok *pre);

/* One who cuts: what a match writes.  Borrows `pre` for its life. */
struct pf_splitter;
enum pf_status pf_splitter_new(struct pf_splitter **s,
    const struct pf_pretok *pre, struct pf_err *err);
void pf_splitter_free(struct pf_splitter *s);

/*
 * From now on this text: valid UTF-8, borrowed until the last piece.
 *
 * With `last` false it is the beginning of a longer one, and only pieces that
 * are certain whatever follows come out; then begin again where they end, with
 * more text (twice as much if none came out, so that a long piece costs no
 * more than it must), if pf_pretok_is_local.  A pattern that looks behind sees
 * nothing before `text`.
 */
void pf_splitter_begin(struct pf_splitter *s, const char *text, size_t len,
    bool last);

/*
 * The next pieces, `max` at most and *n in number: ends[i] is where piece i
 * ends, an offset into the text; the first begins where the last call ended.
 * No piece is empty.  *n is 0 when there is no more, or no more for certain.
 */
enum pf_status pf_splitter_cut(struct pf_splitter *s, size_t *ends, size_t max,
    size_t *n, struct pf_err *err);

/* The next piece alone; PF_END where pf_splitter_cut has none. */
enum pf_status pf_splitter_next(struct pf_splitter *s, const char **piece,
    size_t *len, struct pf_err *err);

#endif
