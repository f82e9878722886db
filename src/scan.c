/*
 * Each pattern is an ordered choice, so its first character and the next one
 * decide most of it; what follows is a run of a class.  What backtracking
 * would find is found directly:
 *
 *   \s+(?!\S)     the white space before something else, but for its last
 *                 character; at the end of the text, all of it
 *   \s*[\r\n]+    white space up to its last newline
 *   U*W+          (o200k; U and W share the caseless letters and the marks)
 *                 if a W follows the run of U, the run of W from there on;
 *                 else up to the last W in the run of U, if any
 *
 * A class is a look-up in two steps, by the code point without its last six
 * bits, which in UTF-8 are the last byte, and by those.  Runs of ASCII letters
 * and white space go 16 bytes at a time where the processor has SSE2.
 *
 * All that is piece by piece.  Where the processor has AVX2, most of a text is
 * cut by scan-wide.h, many pieces at once, and here only what that leaves.
 */
#include "scan-private.h"
#include "cpu.h"

#include <string.h>

#if defined __SSE2__ && !defined PF_SCAN_PLAIN
#include <emmintrin.h>
#define PF_SCAN_SSE2 1
#else
#define PF_SCAN_SSE2 0
#endif

#include "scan-classes.h"

#define INLINE static inline __attribute__((always_inline))

enum {
    L = PF_CLASS_LETTER,
    N = PF_CLASS_NUMBER,
    S = PF_CLASS_SPACE,
    U = PF_CLASS_UPPER,
    W = PF_CLASS_LOWER,
    NEWLINE = PF_CLASS_NEWLINE,
    END = 128, /* of the text: a class of its own */
    AHEAD = 8, /* bytes behind a run that may decide where a piece ends */
    STEP = 16,
};

typedef const unsigned char *bytes;

struct text {
    bytes begin, end;
};

/* The class of a byte that is a character; the table's first block is of
 * zeros, ASCII is behind it. */
INLINE unsigned
ascii(unsigned c)
{
    return class_blocks[CLASS_BLOCK + c];
}

static const struct scan_classes classes = { class_index, class_blocks };

INLINE unsigned
classify_wide(bytes p, size_t *len)
{
    return class_of_wide(&classes, p, len);
}

/* The class of the character at p and its length; END at the end. */
INLINE unsigned
classify(const struct text *t, bytes p, size_t *len)
{
    *len = 0;
    if (p == t->end)
        return END;
    if (*p >= 0x80)
        return classify_wide(p, len);
    *len = 1;
    return ascii(*p);
}

/* The end of the run at p of characters that have a bit of `of`. */
INLINE bytes
run(const struct text *t, bytes p, unsigned of)
{
    size_t n;

    while (classify(t, p, &n) & of)
        p += n;
    return p;
}

#if PF_SCAN_SSE2

/*
 * The 16 bytes at p, in `shift` bytes of what is loaded: fewer than 16 are
 * loaded together with those before them.  False if the text is too short.
 */
INLINE bool
load(const struct text *t, bytes p, __m128i *x, unsigned *shift)
{
    size_t left = (size_t)(t->end - p);

    *shift = 0;
    if (left < STEP) {
        if (t->end - t->begin < STEP)
            return false;
        *shift = STEP - (unsigned)left;
    }
    *x = _mm_loadu_si128((const void *)(p - *shift));
    return true;
}

/* A bit for each byte from lo to hi. */
INLINE unsigned
between(__m128i x, unsigned lo, unsigned hi)
{
    /* The byte less lo, moved to where a signed comparison works. */
    x = _mm_add_epi8(x, _mm_set1_epi8((char)(0x80 - lo)));
    return (unsigned)_mm_movemask_epi8(_mm_cmplt_epi8(x,
        _mm_set1_epi8((char)(0x80 + hi - lo + 1))));
}

#endif

/* The end of the letters at p. */
INLINE bytes
letters(const struct text *t, bytes p)
{
    size_t n;

    for (;;) {
#if PF_SCAN_SSE2
        unsigned shift;
        __m128i x;

        if (load(t, p, &x, &shift)) {
            x = _mm_or_si128(x, _mm_set1_epi8(0x20));
            n = (size_t)__builtin_ctz(~(between(x, 'a', 'z') >> shift));
            p += n;
            if (n == STEP)
                continue;
        }
#endif
        while (p < t->end && *p < 0x80 && ascii(*p) & L)
            p++;
        if (p == t->end || *p < 0x80)
            return p;
        do {
            if (!(classify_wide(p, &n) & L))
                return p;
            p += n;
        } while (p < t->end && *p >= 0x80);
        if (p == t->end || !(ascii(*p) & L))
            return p;
    }
}

/*
 * U*W+ at p: its end, or p if there is none.  *upper is the end of the U+
 * there, and no byte behind the farther of the two has been of use but for
 * its class.
 */
INLINE bytes
word(const struct text *t, bytes p, bytes *upper)
{
    bytes q = p, last = p;
    unsigned c;
    size_t n;

#if PF_SCAN_SSE2
    unsigned shift, lower;
    __m128i x;

    if (load(t, p, &x, &shift)) {
        n = (size_t)__builtin_ctz(~(between(x, 'A', 'Z') >> shift));
        lower = between(x, 'a', 'z') >> shift >> n;
        q = p + n;
        n = (size_t)__builtin_ctz(~lower);
        if (q + n == t->end || (q + n < p + STEP && q[n] < 0x80)) {
            *upper = q;
            return n ? q + n : p;
        }
    }
#endif
    for (; (c = classify(t, q, &n)) & U; q += n)
        if (c & W)
            last = q + n;
    *upper = q;
    return c & W ? run(t, q, W) : last;
}

/* The end of the number characters at p, of at most `max` of them. */
INLINE bytes
numbers(const struct text *t, bytes p, size_t max)
{
    size_t n;

    for (; max && classify(t, p, &n) & N; max--)
        p += n;
    return p;
}

/* The end of what is at p of [^\s\p{L}\p{N}]*[\r\n]*; `slash`: [\r\n/]*; and
 * without `lines` no [\r\n]*. */
INLINE bytes
others(const struct text *t, bytes p, bool lines, bool slash)
{
    size_t n;

    while (!(classify(t, p, &n) & (L | N | S | END)))
        p += n;
    if (lines)
        while (p < t->end && (*p == '\n' || *p == '\r'
                || (slash && *p == '/')))
            p++;
    return p;
}

/* White space at p: up to its last newline if that counts and there is one;
 * else all but its last character, or all.  *reach is the end of all. */
INLINE bytes
spaces(const struct text *t, bytes p, bool lines, bytes *reach)
{
    bytes q = p, last = p, line = p;
    unsigned c;
    size_t n;

#if PF_SCAN_SSE2
    unsigned shift, mask;
    __m128i x;

    while (load(t, q, &x, &shift)) {
        mask = between(x, '\t', '\r') | between(x, ' ', ' ');
        n = (size_t)__builtin_ctz(~(mask >> shift));
        mask = (between(x, '\n', '\n') | between(x, '\r', '\r')) >> shift;
        mask &= (1u << n) - 1;
        if (mask)
            line = q + 32 - __builtin_clz(mask);
        q += n;
        if (n)
            last = q - 1;
        if (n < STEP)
            break;
    }
#endif
    while ((c = classify(t, q, &n)) & S) {
        last = q;
        q += n;
        if (c & NEWLINE)
            line = q;
    }
    *reach = q;
    if (lines && line > p)
        return line;
    return c == END || last == p ? q : last;
}

/*
 * 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 */
INLINE bytes
piece_gpt2(const struct text *t, bytes p, bytes *reach)
{
    unsigned c, next;
    size_t n, m;
    bytes end;

    c = classify(t, p, &n);
    if (*p == ' ') {
        next = classify(t, p + 1, &m);
        if (!(next & (S | END))) {
            c = next;
            p++;
        }
    } else if (*p == '\'' && (n = contraction(p + 1, t->end, false))) {
        return *reach = p + 1 + n;
    }
    if (c & S)
        return spaces(t, p, false, reach);
    if (c & L)
        end = letters(t, p);
    else if (c & N)
        end = numbers(t, p, SIZE_MAX);
    else
        end = others(t, p, false, false);
    return *reach = end;
}

/*
 * (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}
 * | ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
 */
INLINE bytes
piece_cl100k(const struct text *t, bytes p, size_t digits, bytes *reach)
{
    unsigned c, next;
    size_t n, m;

    c = classify(t, p, &n);
    if (c & L)
        return *reach = letters(t, p);
    if (c & N)
        return *reach = numbers(t, p, digits);
    if (c & NEWLINE)
        return spaces(t, p, true, reach);
    if (*p == '\'' && (m = contraction(p + 1, t->end, true)))
        return *reach = p + 1 + m;
    next = classify(t, p + n, &m);
    if (next & L)
        return *reach = letters(t, p + n);
    if (!(c & S) || (*p == ' ' && !(next & (N | S | END))))
        return *reach = others(t, p + n, true, false);
    return spaces(t, p, true, reach);
}

/* (?i:'s|'t|'re|'ve|'m|'ll|'d)? */
INLINE bytes
suffix(const struct text *t, bytes p)
{
    size_t n;

    if (p < t->end && *p == '\'' && (n = contraction(p + 1, t->end, true)))
        p += 1 + n;
    return p;
}

/*
 * [^\r\n\p{L}\p{N}]?U*W+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
 * |[^\r\n\p{L}\p{N}]?U+W*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}
 * | ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
 *
 * where U is [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], W [\p{Ll}\p{Lm}\p{Lo}\p{M}].  A
 * mark may be the character in front or the first of the word.  Where W* has
 * anything to match, the first alternative has matched.
 */
INLINE bytes
piece_o200k(const struct text *t, bytes p, bytes *reach)
{
    bytes end, upper, w = p;
    unsigned c, next = 0;
    size_t n, m;

    c = classify(t, p, &n);
    if (c & N)
        return *reach = numbers(t, p, 3);
    if (c & NEWLINE)
        return spaces(t, p, true, reach);
    if (!(c & L)) {
        w = p + n;
        next = classify(t, w, &m);
    }
    if ((c & L) || next & (U | W)) {
        end = word(t, w, &upper);
        *reach = upper;
        if (end == w)
            end = c & U && !(c & L) ? word(t, p, &upper) : upper;
        end = suffix(t, end);
        if (end > *reach)
            *reach = end;
        return end;
    }
    if (c & U) /* a mark alone */
        return *reach = suffix(t, w);
    if (!(c & S) || (*p == ' ' && !(next & (N | S | END))))
        return *reach = others(t, w, true, true);
    return spaces(t, p, true, reach);
}

INLINE bytes
piece(enum pf_scan kind, const struct text *t, bytes p, bytes *reach)
{
    switch (kind) {
    case PF_SCAN_GPT2:
        return piece_gpt2(t, p, reach);
    case PF_SCAN_CL100K:
        return piece_cl100k(t, p, 3, reach);
    case PF_SCAN_QWEN2:
        return piece_cl100k(t, p, 1, reach);
    case PF_SCAN_O200K:
        return piece_o200k(t, p, reach);
    case PF_SCAN_NONE:
        break;
    }
    return *reach = t->end;
}

/* The end of the text of a block in which p is. */
static bytes
text_end(const struct scan_block *b, bytes p)
{
    size_t left = b->len - (size_t)(p - b->text);
    bytes end = b->delimiter < 0 ? NULL : memchr(p, b->delimiter, left);

    return end ? end : p + left;
}

/* Pieces from text[from] on, one by one, until one ends behind text[to]. */
INLINE size_t
narrow(enum pf_scan kind, const struct scan_block *b, struct text *t,
    size_t from, size_t to, bytes limit, size_t *ends, size_t max)
{
    bytes p = b->text + from, reach;
    size_t n = 0;

    while (n < max && from <= to && from < b->len) {
        if (!t->end || p > t->end)
            t->end = text_end(b, p);
        if (p == t->end) /* a delimiter */
            reach = ++p;
        else
            p = piece(kind, t, p, &reach);
        if (reach > limit)
            break;
        ends[n++] = from = (size_t)(p - b->text);
    }
    return n;
}

/* What takes many bytes at once, if the processor can. */
static scan_wide *
best(void)
{
#if PF_SCAN_SSE2
    if (pf_scan_avx512 && pf_cpu() >= PF_CPU_AVX512)
        return pf_scan_avx512;
    if (pf_scan_avx2 && pf_cpu() >= PF_CPU_AVX2)
        return pf_scan_avx2;
#endif
    return NULL;
}

INLINE size_t
scan(enum pf_scan kind, const struct scan_block *b, scan_wide *wide,
    size_t *ends, size_t max)
{
    struct text t = { b->text, b->delimiter < 0 ? b->text + b->len : NULL };
    struct scan_block certain = *b;
    size_t n = 0, at = 0, stop = b->len, more;

    if (!b->last) {
        if (b->len < AHEAD)
            return 0;
        certain.len -= AHEAD;
    }
    for (;;) {
        if (wide && at < certain.len) {
            n += wide(kind, &certain, at, &classes, ends + n, max - n, &stop);
            at = n ? ends[n - 1] : 0;
            if (n && max - n < WINDOW)
                return n;
        }
        more = narrow(kind, b, &t, at, stop, b->text + certain.len, ends + n,
            max - n);
        n += more;
        if (!more || n == max || stop >= certain.len)
            return n;
        at = ends[n - 1];
    }
}

static size_t
cut(enum pf_scan kind, const struct scan_block *b, scan_wide *wide,
    size_t *ends, size_t max)
{
    switch (kind) {
    case PF_SCAN_GPT2:
        return scan(PF_SCAN_GPT2, b, wide, ends, max);
    case PF_SCAN_CL100K:
        return scan(PF_SCAN_CL100K, b, wide, ends, max);
    case PF_SCAN_QWEN2:
        return scan(PF_SCAN_QWEN2, b, wide, ends, max);
    case PF_SCAN_O200K:
        return scan(PF_SCAN_O200K, b, wide, ends, max);
    case PF_SCAN_NONE:
        break;
    }
    return scan(PF_SCAN_NONE, b, NULL, ends, max);
}

size_t
pf_scan(enum pf_scan kind, const char *text, size_t len, bool last,
    size_t *ends, size_t max)
{
    struct scan_block b = { (bytes)text, len, -1, last };

    return cut(kind, &b, best(), ends, max);
}

size_t
pf_scan_texts(enum pf_scan kind, const char *block, size_t len, char delimiter,
    size_t *ends, size_t max)
{
    struct scan_block b = { (bytes)block, len, (unsigned char)delimiter, true };

    return cut(kind, &b, best(), ends, max);
}

unsigned
pf_class_run(uint32_t c, uint32_t *next)
{
    unsigned block = class_index[c / CLASS_BLOCK];
    unsigned bits = class_blocks[block * CLASS_BLOCK + c % CLASS_BLOCK];

    do
        c++;
    while (c % CLASS_BLOCK
        && class_blocks[block * CLASS_BLOCK + c % CLASS_BLOCK] == bits);
    while (c <= 0x10ffff && class_index[c / CLASS_BLOCK] == 0 && bits == 0)
        c += CLASS_BLOCK;
    *next = c;
    return bits;
}
