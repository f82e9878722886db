/*
 * Widths are ranges of code points, searched by halves.  The C library's
 * wcwidth knows them too, but only in a locale of UTF-8.
 */
#include <pipeformer/width.h>

#include <stdbool.h>

#include <pipeformer/utf8.h>

#include "width-tables.h"

static bool
within(const uint32_t (*range)[2], size_t n, uint32_t c)
{
    size_t lo = 0, mid;

    while (n) {
        mid = lo + n / 2;
        if (c > range[mid][1]) {
            lo = mid + 1;
            n -= n / 2 + 1;
        } else if (c < range[mid][0]) {
            n /= 2;
        } else {
            return true;
        }
    }
    return false;
}

unsigned
pf_char_width(uint32_t c)
{
    if (c < 0x300)
        return 1;
    if (within(zero, sizeof zero / sizeof *zero, c))
        return 0;
    return within(wide, sizeof wide / sizeof *wide, c) ? 2 : 1;
}

size_t
pf_width(const char *s, size_t len)
{
    size_t columns = 0, n;

    for (; len; s += n, len -= n)
        columns += pf_char_width(pf_utf8_decode(s, &n));
    return columns;
}

size_t
pf_width_cut(const char *s, size_t len, size_t columns)
{
    size_t i = 0, n;
    unsigned w;

    for (; i < len; i += n) {
        w = pf_char_width(pf_utf8_decode(s + i, &n));
        if (w > columns)
            break;
        columns -= w;
    }
    return i;
}

size_t
pf_width_next(const char *s, size_t len, unsigned *columns)
{
    size_t i = 0, n;

    *columns = 0;
    if (len)
        *columns = pf_char_width(pf_utf8_decode(s, &i));
    while (i < len && pf_char_width(pf_utf8_decode(s + i, &n)) == 0)
        i += n;
    return i;
}

/* Controls, what turns or breaks lines, and what is no character at all; the
 * joiners U+200C and U+200D stay, words and emoji are made with them. */
static bool
hidden(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c
        || c == 0x200b || c == 0x200e || c == 0x200f
        || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f)
        || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb)
        || (c >= 0xfdd0 && c <= 0xfdef) || (c & 0xfffe) == 0xfffe
        || (c >= 0xe0000 && c <= 0xe001f);
}

/* Spaces but the usual one, and letters that look like one. */
static bool
blank(uint32_t c)
{
    return c == 0xa0 || c == 0x115f || c == 0x1160 || c == 0x1680
        || c == 0x180e || (c >= 0x2000 && c <= 0x200a) || c == 0x202f
        || c == 0x205f || c == 0x2800 || c == 0x3000 || c == 0x3164
        || c == 0xffa0;
}

void
pf_readable(struct pf_buf *b, const char *s, size_t len)
{
    bool first = true;
    uint32_t c;
    size_t n;

    for (; len; s += n, len -= n, first = false) {
        n = pf_utf8_char(s, len);
        if (!n) {
            pf_buf_printf(b, "<0x%02X>", (unsigned char)*s);
            n = 1;
            continue;
        }
        c = pf_utf8_decode(s, &n);
        if (c == '\n' || c == '\r' || c == '\t') {
            pf_buf_adds(b, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
        } else if (hidden(c) || (blank(c) && (first || n == len))) {
            pf_buf_printf(b, "<U+%04X>", (unsigned)c);
        } else {
            if (first && pf_char_width(c) == 0)
                pf_buf_adds(b, "\u25cc");
            pf_buf_add(b, s, n);
        }
    }
}
