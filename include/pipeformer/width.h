#ifndef PIPEFORMER_WIDTH_H
#define PIPEFORMER_WIDTH_H

#include <stddef.h>
#include <stdint.h>

#include <pipeformer/buf.h>

/*
 * How text looks in the columns of a terminal, in any locale.  Texts are valid
 * UTF-8 unless said otherwise.
 */

/* Columns of a character: 0 for marks that combine and for what is not seen,
 * 2 for what East Asian Width calls wide, else 1 (Unicode 14). */
unsigned pf_char_width(uint32_t c);

/* Columns of a text. */
size_t pf_width(const char *s, size_t len);

/* The longest beginning that takes at most `columns`: its bytes. */
size_t pf_width_cut(const char *s, size_t len, size_t columns);

/* The first character with the marks behind it: its bytes, and its columns. */
size_t pf_width_next(const char *s, size_t len, unsigned *columns);

/*
 * Appends any bytes as text to be looked at.  A character is as it is; but a
 * newline, carriage return and tab are \n, \r and \t, what would not be seen
 * or would move other text is <U+202E>, and so is, at the ends, a space that
 * is not U+0020; a byte that is no UTF-8 is <0xF0>, and a mark at the
 * beginning gets a circle to stand on.  The result is valid in XML, but for &
 * and <.
 */
void pf_readable(struct pf_buf *b, const char *s, size_t len);

#endif
