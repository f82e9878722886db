#include <pipeformer/utf8.h>

#include <string.h>

#include "cpu.h"
#include "utf8-private.h"

/*
 * Length that a lead byte promises, and the range of the byte behind it: the
 * ranges alone exclude overlong forms, surrogates and what is past U+10FFFF
 * (Unicode 16, table 3-7).
 */
static size_t
lead(unsigned char c, unsigned char *lo, unsigned char *hi)
{
    *lo = 0x80;
    *hi = 0xbf;
    if (c < 0x80)
        return 1;
    if (c < 0xc2)
        return 0;
    if (c < 0xe0)
        return 2;
    if (c < 0xf0) {
        if (c == 0xe0)
            *lo = 0xa0;
        if (c == 0xed)
            *hi = 0x9f;
        return 3;
    }
    if (c < 0xf5) {
        if (c == 0xf0)
            *lo = 0x90;
        if (c == 0xf4)
            *hi = 0x8f;
        return 4;
    }
    return 0;
}

/* How many of the first n bytes fit one character; its length in *want. */
static size_t
match(const char *s, size_t n, size_t *want)
{
    const unsigned char *p = (const unsigned char *)s;
    unsigned char lo, hi;
    size_t i;

    *want = n ? lead(p[0], &lo, &hi) : 0;
    if (*want == 0)
        return 0;
    for (i = 1; i < *want && i < n; i++) {
        if (p[i] < lo || p[i] > hi)
            break;
        lo = 0x80;
        hi = 0xbf;
    }
    return i;
}

size_t
pf_utf8_char(const char *p, size_t n)
{
    size_t want, got = match(p, n, &want);

    return got && got == want ? want : 0;
}

size_t
pf_utf8_subpart(const char *p, size_t n)
{
    size_t want, got = match(p, n, &want);

    return got ? got : 1;
}

/* The first bytes of a long text that are told many at a time. */
static size_t
span_wide(const char *p, size_t n)
{
    size_t i = 0, len;

    while (i < 3 && (len = pf_utf8_char(p + i, n - i)))
        i += len;
#if defined(__x86_64__)
    if (i >= 3 && pf_utf8_span_avx2 && pf_cpu() >= PF_CPU_AVX2)
        i = pf_utf8_span_avx2(p, i, n);
#endif
    return i;
}

size_t
pf_utf8_span(const char *p, size_t n)
{
    enum { WIDE = 64 };
    size_t i = n < WIDE ? 0 : span_wide(p, n), len;
    uint64_t eight;

    while (i < n) {
        if (n - i >= 8) {
            memcpy(&eight, p + i, 8);
            if ((eight & 0x8080808080808080u) == 0) {
                i += 8;
                continue;
            }
        }
        len = pf_utf8_char(p + i, n - i);
        if (!len)
            break;
        i += len;
    }
    return i;
}

size_t
pf_utf8_pending(const char *p, size_t n)
{
    size_t want, got;

    for (size_t back = 1; back <= 3 && back <= n; back++) {
        got = match(p + n - back, back, &want);
        if (got == back && got < want)
            return back;
    }
    return 0;
}

uint32_t
pf_utf8_decode(const char *s, size_t *len)
{
    const unsigned char *p = (const unsigned char *)s;

    if (p[0] < 0x80) {
        *len = 1;
        return p[0];
    }
    if (p[0] < 0xe0) {
        *len = 2;
        return (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
    }
    if (p[0] < 0xf0) {
        *len = 3;
        return (p[0] & 0xfu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
    }
    *len = 4;
    return (p[0] & 0x7u) << 18 | (p[1] & 0x3fu) << 12 | (p[2] & 0x3fu) << 6
        | (p[3] & 0x3fu);
}

size_t
pf_utf8_encode(char s[4], uint32_t c)
{
    if (c < 0x80) {
        s[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        s[0] = (char)(0xc0 | c >> 6);
        s[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        s[0] = (char)(0xe0 | c >> 12);
        s[1] = (char)(0x80 | (c >> 6 & 0x3f));
        s[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    s[0] = (char)(0xf0 | c >> 18);
    s[1] = (char)(0x80 | (c >> 12 & 0x3f));
    s[2] = (char)(0x80 | (c >> 6 & 0x3f));
    s[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

uint32_t
pf_utf8_before(const char *text, const char *p)
{
    size_t len;

    for (size_t n = 1; n <= 4 && n <= (size_t)(p - text); n++)
        if (pf_utf8_char(p - n, n) == n)
            return pf_utf8_decode(p - n, &len);
    return 0;
}
