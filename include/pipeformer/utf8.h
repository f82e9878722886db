#ifndef PIPEFORMER_UTF8_H
#define PIPEFORMER_UTF8_H

#include <stddef.h>
#include <stdint.h>

/*
 * UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, at most
 * U+10FFFF.
 */

/* Bytes of the character at p (1 to 4), 0 where none is whole and valid. */
size_t pf_utf8_char(const char *p, size_t n);

/*
 * Bytes of the maximal subpart at p, where no character is (Unicode 16, 3.9,
 * U+FFFD substitution): 1 to 3, what one U+FFFD stands for.
 */
size_t pf_utf8_subpart(const char *p, size_t n);

/* The longest prefix that is valid: how many bytes. */
size_t pf_utf8_span(const char *p, size_t n);

/*
 * Bytes at the end of p that begin a character and would need more to be
 * whole: 0 to 3.  A stream holds these back until the next bytes come.
 */
size_t pf_utf8_pending(const char *p, size_t n);

/* Code point of the valid character at p, and its length in *len. */
uint32_t pf_utf8_decode(const char *p, size_t *len);

/* The valid character of a text that ends before p, or 0. */
uint32_t pf_utf8_before(const char *text, const char *p);

/* Writes c (not a surrogate, at most U+10FFFF) to s; returns 1 to 4. */
size_t pf_utf8_encode(char s[4], uint32_t c);

#endif
