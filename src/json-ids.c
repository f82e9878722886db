/*
 * Lists of ids, which are most of what goes through a pipe: many digits at
 * once, where no JSON has to be looked for.
 */
#include <pipeformer/json.h>

#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#define PF_JSON_SSE2 1
#else
#define PF_JSON_SSE2 0
#endif

/*
 * What eight digits make, each less '0', the first in the lowest byte: four of
 * two, two of four, one of eight, by multiplications.
 */
static inline uint32_t
value8(uint64_t x)
{
    x = x * 10 + (x >> 8);
    x = (((x & 0x000000ff000000ff) * 0x000f424000000064)
        + ((x >> 16 & 0x000000ff000000ff) * 0x0000271000000001)) >> 32;
    return (uint32_t)x;
}

/*
 * The number of digits, at most 8, that the bytes at p begin with, and what
 * they make; 8 bytes may be read.
 */
static inline unsigned
digits8(const char *p, uint32_t *value)
{
    uint64_t x, other;
    unsigned n;

    memcpy(&x, p, 8);
    x ^= 0x3030303030303030;
    /* A byte is a digit if it is less than 10: no high bit, before or after
     * 0x76 is added. */
    other = ((x & 0x7f7f7f7f7f7f7f7f) + 0x7676767676767676) | x;
    other &= 0x8080808080808080;
    n = other ? (unsigned)__builtin_ctzll(other) / 8 : 8;
    if (n == 0)
        return 0;
    *value = value8(x << (64 - 8 * n));
    return n;
}

size_t
pf_json_take_ids(struct pf_json *j, struct pf_buf *out)
{
    enum { ROOM = 64 };
    const char *p = j->p;
    size_t n = 0, room = 0, digits = 0;
    uint32_t v = 0;
    int64_t id;
    char *to = NULL;

    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
        return 0;
    while (j->end - p >= 9) {
        digits = digits8(p, &v);
        if (digits == 0 || digits == 8 || p[digits] != ','
            || (p[0] == '0' && digits > 1) || p[digits + 1] < '0'
            || p[digits + 1] > '9')
            break;
        if (room == 0) {
            to = pf_buf_room(out, ROOM * sizeof id);
            if (!to)
                break;
            room = ROOM;
        }
        id = v;
        memcpy(to, &id, sizeof id);
        to += sizeof id;
        out->len += sizeof id;
        room--;
        p += digits + 1;
        n++;
    }
    j->p = p;
    return n;
}

/* The list at j->p number by number, to `to`. */
static bool
take_each(struct pf_json *j, struct pf_buf *out, char *to)
{
    const char *p = j->p;
    uint32_t v = 0;
    unsigned digits;

    for (;; p++) {
        if (j->end - p >= 8) {
            digits = digits8(p, &v);
        } else {
            for (v = digits = 0; p + digits < j->end && p[digits] >= '0'
                && p[digits] <= '9'; digits++)
                v = v * 10 + (uint32_t)(p[digits] - '0');
        }
        if (digits == 0 || digits == 8 || (digits > 1 && *p == '0'))
            return false;
        p += digits;
        memcpy(to, &v, sizeof v);
        to += sizeof v;
        out->len += sizeof v;
        if (p == j->end || (*p != ',' && *p != ']'))
            return false;
        if (*p == ']') {
            j->p = p + 1;
            return true;
        }
    }
}

#if PF_JSON_SSE2

/* A bit for each of the n bytes at p, 1 to 64, that is a digit, or a comma.
 * The 16 bytes before p + n may be read. */
static inline uint64_t
marks(const char *p, size_t n, uint64_t *commas)
{
    uint64_t digits = 0;
    size_t at, shift;
    __m128i x, d;

    *commas = 0;
    for (size_t i = 0; i < n; i += 16) {
        at = n - i < 16 ? n - 16 : i; /* it may be before p */
        shift = i - at;
        x = _mm_loadu_si128((const void *)(p + (ptrdiff_t)at));
        d = _mm_add_epi8(x, _mm_set1_epi8((char)(0x80 - '0')));
        d = _mm_cmplt_epi8(d, _mm_set1_epi8((char)(0x80 + 10)));
        digits |= (uint64_t)((unsigned)_mm_movemask_epi8(d) >> shift) << i;
        d = _mm_cmpeq_epi8(x, _mm_set1_epi8(','));
        *commas |= (uint64_t)((unsigned)_mm_movemask_epi8(d) >> shift) << i;
    }
    return digits;
}

/*
 * The list at j->p, of at least 16 bytes, 64 bytes at a time: where numbers
 * end is known before they are read, so none waits for the one before it.
 */
static bool
take_wide(struct pf_json *j, struct pf_buf *out, char *to)
{
    const char *from = j->p, *p, *at;
    uint64_t ends, other, x;
    size_t n, digits;
    uint32_t v;

    for (p = from; p < j->end; p += n) {
        n = (size_t)(j->end - p) < 64 ? (size_t)(j->end - p) : 64;
        other = marks(p, n, &ends);
        other = ~(other | ends) & (UINT64_MAX >> (64 - n));
        if (other)
            ends = (ends & ((other & -other) - 1)) | (other & -other);
        for (; ends; ends &= ends - 1) {
            at = p + __builtin_ctzll(ends);
            digits = (size_t)(at - from);
            if (digits - 1 > 6 || (digits > 1 && *from == '0'))
                return false;
            /* Its digits become the last of eight bytes: those from the first
             * on, or at the end of the text, those up to the last. */
            memcpy(&x, j->end - from >= 8 ? from : at - 8, 8);
            x ^= 0x3030303030303030;
            x = j->end - from >= 8 ? x << (64 - 8 * digits)
                : x & UINT64_MAX << (64 - 8 * digits);
            v = value8(x);
            memcpy(to, &v, sizeof v);
            to += sizeof v;
            out->len += sizeof v;
            from = at + 1;
        }
        if (other) {
            j->p = from;
            return from[-1] == ']';
        }
    }
    return false;
}

#endif

bool
pf_json_take_list(struct pf_json *j, struct pf_buf *out)
{
    size_t n = (size_t)(j->end - j->p);
    char *to;

    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ || n == 0)
        return false;
    if (*j->p == ']') {
        j->p++;
        return true;
    }
    to = pf_buf_room(out, (n / 2 + 1) * sizeof(uint32_t));
    if (!to)
        return false;
#if PF_JSON_SSE2
    if (n >= 16)
        return take_wide(j, out, to);
#endif
    return take_each(j, out, to);
}

/* 000 to 999. */
#define TEN(x) x "0" x "1" x "2" x "3" x "4" x "5" x "6" x "7" x "8" x "9"
#define HUNDRED(x) TEN(x "0") TEN(x "1") TEN(x "2") TEN(x "3") TEN(x "4") \
    TEN(x "5") TEN(x "6") TEN(x "7") TEN(x "8") TEN(x "9")

static const char thousand[] = HUNDRED("0") HUNDRED("1") HUNDRED("2")
    HUNDRED("3") HUNDRED("4") HUNDRED("5") HUNDRED("6") HUNDRED("7")
    HUNDRED("8") HUNDRED("9");

/*
 * Up to six digits: two of three from a table, the first digit in the lowest
 * byte, so that leading zeros are the low bytes that are '0'.
 */
static inline char *
print_id(char *s, uint32_t v)
{
    uint32_t high, low;
    uint64_t x;
    unsigned zeros;

    if (v >= 1000000 || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
        return s + pf_i64_print(s, v);
    memcpy(&high, thousand + 3 * (v / 1000), 4);
    memcpy(&low, thousand + 3 * (v % 1000), 4);
    x = (high & 0xffffff) | (uint64_t)low << 24;
    zeros = (unsigned)__builtin_ctzll((x ^ 0x303030303030)
        | (uint64_t)1 << 40) / 8;
    x >>= 8 * zeros;
    memcpy(s, &x, 8);
    return s + 6 - zeros;
}

char *
pf_ids_print(char *s, const uint32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        s = print_id(s, ids[i]);
        *s++ = ',';
    }
    return n ? s - 1 : s;
}

void
pf_json_add_ids(struct pf_buf *b, const uint32_t *ids, size_t n)
{
    char *s = n < SIZE_MAX / 16 ? pf_buf_room(b, PF_ID_MAX * n + 8) : NULL;

    if (s)
        b->len += (size_t)(pf_ids_print(s, ids, n) - s);
    else
        b->failed = true;
}
