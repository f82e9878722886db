#ifndef PF_PATTERN_H
#define PF_PATTERN_H

#include <stdbool.h>

#include <pipeformer/buf.h>
#include <pipeformer/err.h>

#include "scan.h"

/*
 * Split patterns as tokenizer.json and tiktoken write them, in the syntax of
 * Oniguruma and of Rust's regex, and what PCRE2 makes of them.
 */

/*
 * Writes to `out` the pattern (UTF-8) in PCRE2's syntax, NUL behind it: each
 * of \p{L} \p{Lu} \p{Ll} \p{Lt} \p{Lm} \p{Lo} \p{M} \p{N} \s and, negated,
 * \P{..} \p{^..} \S becomes ranges of Unicode 16, in brackets or not, and
 * \uXXXX becomes \x{XXXX}.
 *
 * `strict` lets through only what means the same to Oniguruma, Rust and
 * PCRE2, whatever Unicode they know: anything else is PF_EMODEL with its name.
 * Otherwise the rest is left to PCRE2.
 */
enum pf_status pf_pattern_translate(struct pf_buf *out, const char *pattern,
    bool strict, struct pf_err *err);

/*
 * Which scanner gives the pieces of this pattern, or PF_SCAN_NONE: known are
 * the spellings that tokenizer.json and tiktoken have had.  *exact is false
 * where the pieces differ in white space at the end of a text (one piece there
 * in tiktoken's newest cl100k); the ids of cl100k_base are the same.
 */
enum pf_scan pf_pattern_known(const char *pattern, bool *exact);

/* Whether it looks like a name, of two letters or digits or more. */
bool pf_pattern_is_word(const char *pattern);

/* The original pattern of gpt2, cl100k, qwen2 or o200k, or NULL. */
const char *pf_pattern_named(const char *name);

#endif
