#ifndef PF_PRETOK_H
#define PF_PRETOK_H

#include <stdbool.h>
#include <stddef.h>

#include <pipeformer/err.h>

/*
 * Cuts a text into the pieces that BPE works on: the matches of a pattern,
 * left to right, and what lies between them.  The pieces joined are the text.
 */

/* A compiled pattern: read-only, so threads may share it. */
struct pf_pretok;

/*
 * The pattern is PCRE2's, in UTF mode; with `jit` it becomes machine code
 * where the system allows that, and else is interpreted.
 */
enum pf_status pf_pretok_new(struct pf_pretok **pre, const char *pattern,
    bool jit, struct pf_err *err);
void pf_pretok_free(struct pf_pretok *pre);

/* The pattern of GPT-2, in terms of Unicode 16 alone. */
const char *pf_pretok_gpt2(void);

/* One who cuts: what a match writes.  Borrows `pre` for its life. */
struct pf_splitter;
enum pf_status pf_splitter_new(struct pf_splitter **s,
    const struct pf_pretok *pre, struct pf_err *err);
void pf_splitter_free(struct pf_splitter *s);

/* From now on this text: valid UTF-8, borrowed until the last piece. */
void pf_splitter_begin(struct pf_splitter *s, const char *text, size_t len);

/* The next piece, never empty; PF_END when the text is used up. */
enum pf_status pf_splitter_next(struct pf_splitter *s, const char **piece,
    size_t *len, struct pf_err *err);

#endif
