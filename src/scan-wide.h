/*
 * The patterns, 64 bytes at a time, for a file that defines `vec`, 64 bytes:
 * load(p, n) of n bytes with zeros behind them, and within(x, lo, hi),
 * equal(x, c), has(x, bits), each a bit for every byte.
 *
 * A window begins where a piece does.  Its characters become sets of bits, one
 * for each class; where a class begins, what joins what, and so the beginnings
 * of all pieces in the window are a few operations on those sets, without a
 * branch for each piece.  A bit is a character, not a byte: the bits of what
 * is not the first byte of one are squeezed out, and put in again at the end.
 *
 * What a beginning depends on is near it (NEAR), so all but those at the end
 * of the window are certain, and the last of them begins the next one.  What
 * is not so simple (`stop`) ends a window before it: newlines where they are
 * more than white space, marks without a letter, and caseless letters beside
 * others in o200k.  scan.c has all that.
 */
#include <immintrin.h>

#include "scan-private.h"

enum { NEAR = 3 };

struct window {
    uint64_t letter, number, space, newline, upper, lower, blank, quote, end;
    uint64_t inner; /* bytes that begin no character; other bits are of these */
    uint64_t stop;
    size_t n;  /* bytes */
    bool last; /* and then nothing */
};

/* The lowest n bits. */
#define ONES(n) ((n) < 64 ? ((uint64_t)1 << (n)) - 1 : ~(uint64_t)0)
#define INLINE static inline __attribute__((always_inline))

INLINE void
ascii_classes(enum pf_scan kind, struct window *w, vec x, int delimiter)
{
    uint64_t capital = within(x, 'A', 'Z'), small = within(x, 'a', 'z');

    w->letter = capital | small;
    w->number = within(x, '0', '9');
    w->blank = equal(x, ' ');
    w->quote = equal(x, '\'');
    w->space = within(x, '\t', '\r') | w->blank;
    w->end = delimiter < 0 ? 0 : equal(x, delimiter) & ONES(w->n);
    w->newline = w->upper = w->lower = w->stop = w->inner = 0;
    if (kind != PF_SCAN_GPT2)
        w->newline = equal(x, '\n') | equal(x, '\r');
    if (kind == PF_SCAN_O200K) {
        w->upper = capital;
        w->lower = small;
    }
}

/* Characters of more than one byte, the first of each being `first`. */
static void
wide_classes(enum pf_scan kind, struct window *w, const unsigned char *p,
    uint64_t first, const struct scan_classes *classes)
{
    unsigned char class[WINDOW] = { 0 };
    size_t i, len;
    unsigned c;
    vec x;

    for (first &= ONES(w->n); first; first &= first - 1) {
        i = _tzcnt_u64(first);
        c = class_of_wide(classes, p + i, &len);
        if (i + len > w->n) { /* not all of it is in the window */
            w->n = i;
            w->last = false;
            break;
        }
        class[i] = (unsigned char)c;
        if (p[i] == 0xc5 && p[i + 1] == 0xbf) /* it may be an s */
            w->stop |= (uint64_t)1 << i;
    }
    x = load(class, WINDOW);
    w->letter |= has(x, PF_CLASS_LETTER);
    w->number |= has(x, PF_CLASS_NUMBER);
    w->space |= has(x, PF_CLASS_SPACE);
    if (kind == PF_SCAN_O200K) {
        w->upper |= has(x, PF_CLASS_UPPER);
        w->lower |= has(x, PF_CLASS_LOWER);
    }
}

/* From bits that are bytes to bits that are characters. */
INLINE void
squeeze(enum pf_scan kind, struct window *w)
{
    uint64_t first = ~w->inner & ONES(w->n);

    w->letter = _pext_u64(w->letter, first);
    w->number = _pext_u64(w->number, first);
    w->space = _pext_u64(w->space, first);
    w->blank = _pext_u64(w->blank, first);
    w->quote = _pext_u64(w->quote, first);
    w->end = _pext_u64(w->end, first);
    w->stop = _pext_u64(w->stop, first);
    if (kind != PF_SCAN_GPT2)
        w->newline = _pext_u64(w->newline, first);
    if (kind == PF_SCAN_O200K) {
        w->upper = _pext_u64(w->upper, first);
        w->lower = _pext_u64(w->lower, first);
    }
}

/*
 * In o200k a mark that follows a letter is as one without a case; and a word
 * of those alone has no border in it, nor has one of cased letters but before
 * a capital behind a small one.
 */
INLINE uint64_t
case_borders(struct window *w)
{
    uint64_t mark = (w->upper | w->lower) & ~w->letter;
    uint64_t caseless = w->upper & w->lower;
    uint64_t cased = w->upper ^ w->lower;

    w->letter |= mark;
    w->stop |= mark & ~(w->letter << 1);
    w->stop |= caseless & (cased << 1 | cased >> 1);
    return w->upper & ~w->lower & (w->lower << 1);
}

/* Each third of a run of digits begins a piece, or each. */
INLINE uint64_t
number_borders(enum pf_scan kind, uint64_t number)
{
    uint64_t at = number & ~(number << 1), more = at, third;

    if (kind == PF_SCAN_QWEN2)
        return number;
    if (kind == PF_SCAN_GPT2)
        return at;
    third = number & number << 1 & number << 2 & number << 3;
    while (third && (more = more << 3 & third))
        at |= more;
    return at;
}

/*
 * 's, 've, ...: pieces in gpt2 and cl100k where they begin one; in o200k what
 * ends a word, but for one that has such an end already.  n is the number of
 * characters.
 */
INLINE uint64_t
contractions(enum pf_scan kind, struct window *w, const unsigned char *p,
    uint64_t at, size_t n)
{
    uint64_t quote = w->quote & at, mark;
    size_t i, byte, len, taken = 0;
    uint64_t first = ~w->inner;

    if (kind == PF_SCAN_O200K)
        quote &= w->letter << 1;
    for (; quote; quote &= quote - 1) {
        i = _tzcnt_u64(quote);
        if (kind == PF_SCAN_O200K && i == taken)
            continue;
        byte = w->inner ? _tzcnt_u64(_pdep_u64((uint64_t)1 << i, first)) : i;
        len = contraction(p + byte + 1, p + w->n, kind != PF_SCAN_GPT2);
        if (!len)
            continue;
        taken = i + 1 + len;
        at &= ~(ONES(len) << (i + 1));
        if (kind == PF_SCAN_O200K) {
            at &= ~((uint64_t)1 << i);
            mark = w->letter & w->upper & w->lower;
            if (taken < n && mark >> taken & 1)
                w->stop |= (uint64_t)1 << taken;
        }
        if (taken < 64)
            at |= (uint64_t)1 << taken;
    }
    return at;
}

/* The beginnings of pieces, and behind the last the end if it is `last`;
 * only those that are certain. */
INLINE uint64_t
borders(enum pf_scan kind, struct window *w, const unsigned char *p)
{
    size_t n = w->inner ? (size_t)__builtin_popcountll(~w->inner & ONES(w->n))
        : w->n;
    uint64_t all = ONES(n), cases = 0, gone = w->last ? ONES(n + 1) & ~all : 0;
    uint64_t other, word, sign, at, front, stop;

    w->letter &= all;
    w->number &= all;
    w->space &= all & ~w->end;
    w->newline &= ~w->end;
    if (kind == PF_SCAN_O200K)
        cases = case_borders(w);
    gone |= w->end;
    other = all & ~(w->letter | w->number | w->space | w->end);
    word = w->letter & ~(w->letter << 1);
    sign = other & ~(other << 1) & ~(w->blank << 1);
    at = number_borders(kind, w->number);
    if (kind == PF_SCAN_GPT2) {
        word &= ~(w->blank << 1);
        at &= ~(w->blank << 1);
    } else { /* one character in front of a word belongs to it */
        front = w->space | sign;
        word &= ~(front << 1);
        w->stop |= w->newline & all;
    }
    /* White space, and the last of it if something follows. */
    at |= w->space & ~(w->space << 1);
    at |= w->space & ~(w->space >> 1) & ~(gone >> 1);
    at |= word | sign | cases | gone | w->end << 1;
    if (w->quote)
        at = contractions(kind, w, p, at, n);
    stop = w->stop & all;
    if (stop) {
        n = _tzcnt_u64(stop);
        w->last = false;
    }
    return at & (w->last ? ONES(n + 1) : n > NEAR ? ONES(n - NEAR) : 0)
        & ~(uint64_t)1;
}

INLINE size_t
window(enum pf_scan kind, const struct scan_block *b, size_t from,
    const struct scan_classes *classes, size_t *ends, size_t *stop)
{
    const unsigned char *p = b->text + from;
    size_t left = b->len - from, n;
    struct window w = { .n = left < WINDOW ? left : WINDOW,
        .last = b->last && left < WINDOW };
    vec x = load(p, w.n);
    uint64_t high = within(x, 0x80, 0xff), first, at;

    ascii_classes(kind, &w, x, b->delimiter);
    if (high) {
        first = within(x, 0xc0, 0xff);
        wide_classes(kind, &w, p, first, classes);
        w.inner = high & ~first & ONES(w.n);
        squeeze(kind, &w);
    }
    at = borders(kind, &w, p);
    if (w.inner) {
        at = _pdep_u64(at, ~w.inner);
        w.stop = _pdep_u64(w.stop, ~w.inner);
    }
    n = (size_t)__builtin_popcountll(at);
    if (!n)
        *stop = from + (w.stop ? _tzcnt_u64(w.stop) : 0);
    /* In fours: what is written behind the last is not counted. */
    for (size_t i = 0; i < n; i += 4)
        for (size_t k = 0; k < 4; k++) {
            ends[i + k] = from + _tzcnt_u64(at);
            at &= at - 1;
        }
    return n;
}

INLINE size_t
windows(enum pf_scan kind, const struct scan_block *b, size_t from,
    const struct scan_classes *classes, size_t *ends, size_t max, size_t *stop)
{
    size_t n = 0, more;

    *stop = b->len;
    while (from < b->len && max - n >= WINDOW) {
        more = window(kind, b, from, classes, ends + n, stop);
        if (!more)
            break;
        n += more;
        from = ends[n - 1];
    }
    return n;
}

static size_t
wide(enum pf_scan kind, const struct scan_block *b, size_t from,
    const struct scan_classes *classes, size_t *ends, size_t max, size_t *stop)
{
    switch (kind) {
    case PF_SCAN_GPT2:
        return windows(PF_SCAN_GPT2, b, from, classes, ends, max, stop);
    case PF_SCAN_CL100K:
        return windows(PF_SCAN_CL100K, b, from, classes, ends, max, stop);
    case PF_SCAN_QWEN2:
        return windows(PF_SCAN_QWEN2, b, from, classes, ends, max, stop);
    case PF_SCAN_O200K:
        return windows(PF_SCAN_O200K, b, from, classes, ends, max, stop);
    case PF_SCAN_NONE:
        break;
    }
    *stop = b->len;
    return 0;
}
