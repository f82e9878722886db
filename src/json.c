/*
 * A cursor that validates as it goes.  Only strings and numbers have inner
 * structure; nesting is a bit a level, so a hostile document costs neither
 * stack nor memory.
 *
 * Numbers are read exactly: up to 19 digits and a power of ten within 22 make
 * a double with one rounding (Clinger 1990), and rounding that double to float
 * is right unless it lies just between two floats; the rest goes to strtod and
 * strtof, which the C library rounds correctly.  They follow the locale, so a
 * program that calls setlocale must leave LC_NUMERIC alone.
 */
#include <pipeformer/json.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/utf8.h>

#include "pow10.h"

static void
space(struct pf_json *j)
{
    while (j->p < j->end && (*j->p == ' ' || *j->p == '\t' || *j->p == '\n'
            || *j->p == '\r'))
        j->p++;
}

struct pf_json
pf_json_at(const char *text, size_t len)
{
    struct pf_json j = { text, text + len };

    space(&j);
    return j;
}

char
pf_json_peek(const struct pf_json *j)
{
    return j->p < j->end ? *j->p : '\0';
}

bool
pf_json_take(struct pf_json *j, char c)
{
    if (j->p == j->end || *j->p != c)
        return false;
    j->p++;
    space(j);
    return true;
}

/* Says what stands where something else was expected. */
static enum pf_status
unexpected(const struct pf_json *j, const char *want, struct pf_err *err)
{
    unsigned char c;

    if (j->p == j->end)
        return pf_fail(err, PF_EFORMAT, "JSON ends where %s should be", want);
    c = (unsigned char)*j->p;
    if (c > ' ' && c < 0x7f)
        return pf_fail(err, PF_EFORMAT, "JSON has '%c' where %s should be", c,
            want);
    return pf_fail(err, PF_EFORMAT, "JSON has byte 0x%02x where %s should be",
        c, want);
}

enum pf_status
pf_json_end(const struct pf_json *j, struct pf_err *err)
{
    return j->p == j->end ? PF_OK : unexpected(j, "the end", err);
}

enum pf_status
pf_json_open(struct pf_json *j, char c, struct pf_err *err)
{
    if (pf_json_take(j, c))
        return PF_OK;
    return unexpected(j, c == '{' ? "an object" : "an array", err);
}

enum pf_status
pf_json_next(struct pf_json *j, char close, bool *first, struct pf_err *err)
{
    if (pf_json_take(j, close))
        return PF_END;
    if (!*first && !pf_json_take(j, ','))
        return unexpected(j, close == '}' ? "',' or '}'" : "',' or ']'", err);
    if (!*first && pf_json_peek(j) == close)
        return unexpected(j, "a value", err);
    *first = false;
    return PF_OK;
}

static int
hex4(const char *p, const char *end)
{
    int v = 0;

    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = p[i];

        v <<= 4;
        if (c >= '0' && c <= '9')
            v |= c - '0';
        else if ((c | 32) >= 'a' && (c | 32) <= 'f')
            v |= (c | 32) - 'a' + 10;
        else
            return -1;
    }
    return v;
}

/* The escape behind a backslash at j->p; decodes into out unless NULL. */
static enum pf_status
escape(struct pf_json *j, struct pf_buf *out, struct pf_err *err)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *at;
    char utf8[4];
    int c, low;

    if (j->p == j->end || !*j->p)
        return pf_fail(err, PF_EFORMAT, "JSON string ends in an escape");
    at = strchr(from, *j->p);
    if (at) {
        j->p++;
        if (out)
            pf_buf_addc(out, to[at - from]);
        return PF_OK;
    }
    c = *j->p == 'u' ? hex4(j->p + 1, j->end) : -1;
    if (c < 0)
        return pf_fail(err, PF_EFORMAT, "JSON string has a bad escape");
    j->p += 5;
    if (!out)
        return PF_OK;
    if (c >= 0xd800 && c < 0xe000) {
        low = j->end - j->p >= 6 && j->p[0] == '\\' && j->p[1] == 'u'
            ? hex4(j->p + 2, j->end) : -1;
        if (c >= 0xdc00 || low < 0xdc00 || low > 0xdfff)
            return pf_fail(err, PF_EFORMAT, "JSON string has half a "
                "surrogate pair, \\u%04x", (unsigned)c);
        j->p += 6;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    pf_buf_add(out, utf8, pf_utf8_encode(utf8, (uint32_t)c));
    return PF_OK;
}

/* A string at j->p; decodes into out unless NULL. */
static enum pf_status
string(struct pf_json *j, struct pf_buf *out, struct pf_err *err)
{
    const char *from;
    enum pf_status st;
    size_t len;

    if (pf_json_peek(j) != '"')
        return unexpected(j, "a string", err);
    j->p++;
    for (;;) {
        from = j->p;
        while (j->p < j->end && (unsigned char)*j->p >= ' ' && *j->p != '"'
            && *j->p != '\\' && (unsigned char)*j->p < 0x80)
            j->p++;
        if (out)
            pf_buf_add(out, from, (size_t)(j->p - from));
        if (j->p == j->end)
            return pf_fail(err, PF_EFORMAT, "JSON string without its end");
        if (*j->p == '"') {
            j->p++;
            space(j);
            return out ? pf_buf_check(out, err) : PF_OK;
        }
        if (*j->p == '\\') {
            j->p++;
            st = escape(j, out, err);
            if (st)
                return st;
            continue;
        }
        len = pf_utf8_char(j->p, (size_t)(j->end - j->p));
        if ((unsigned char)*j->p < ' ')
            return pf_fail(err, PF_EFORMAT, "JSON string has a bare control "
                "character 0x%02x", (unsigned char)*j->p);
        if (!len)
            return pf_fail(err, PF_EFORMAT, "JSON string is not UTF-8 at byte "
                "0x%02x", (unsigned char)*j->p);
        if (out)
            pf_buf_add(out, j->p, len);
        j->p += len;
    }
}

enum pf_status
pf_json_string(struct pf_json *j, struct pf_buf *out, struct pf_err *err)
{
    return string(j, out, err);
}

enum pf_status
pf_json_key(struct pf_json *j, struct pf_buf *out, struct pf_err *err)
{
    enum pf_status st = string(j, out, err);

    if (!st && !pf_json_take(j, ':'))
        st = unexpected(j, "':'", err);
    return st;
}

static bool
digit(const struct pf_json *j)
{
    return j->p < j->end && *j->p >= '0' && *j->p <= '9';
}

/* The parts of a number: sign, the first 19 digits, how many more. */
struct number {
    bool negative, integer;
    uint64_t man;
    int64_t exp10;
    const char *text;
    size_t len;
};

static void
add_digit(struct number *n, char c, bool fraction)
{
    if (n->man < 1000000000000000000u) {
        n->man = n->man * 10 + (uint64_t)(c - '0');
        n->exp10 -= fraction;
    } else {
        n->exp10 += !fraction; /* man is far beyond what is exact anyway */
    }
}

static enum pf_status
number(struct pf_json *j, struct number *n, struct pf_err *err)
{
    bool minus;
    int64_t exp = 0;

    *n = (struct number){ .integer = true, .text = j->p };
    n->negative = pf_json_peek(j) == '-';
    j->p += n->negative;
    if (!digit(j))
        return unexpected(j, "a number", err);
    if (*j->p == '0')
        j->p++;
    else
        for (; digit(j); j->p++)
            add_digit(n, *j->p, false);
    if (pf_json_peek(j) == '.') {
        n->integer = false;
        j->p++;
        if (!digit(j))
            return unexpected(j, "a digit", err);
        for (; digit(j); j->p++)
            add_digit(n, *j->p, true);
    }
    if (pf_json_peek(j) == 'e' || pf_json_peek(j) == 'E') {
        n->integer = false;
        j->p++;
        minus = pf_json_peek(j) == '-';
        if (minus || pf_json_peek(j) == '+')
            j->p++;
        if (!digit(j))
            return unexpected(j, "a digit", err);
        for (; digit(j); j->p++)
            if (exp < (int64_t)1 << 50)
                exp = exp * 10 + (*j->p - '0');
        n->exp10 += minus ? -exp : exp;
    }
    n->len = (size_t)(j->p - n->text);
    space(j);
    return PF_OK;
}

static const double pow10_exact[] = {
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13,
    1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
};

/* The correctly rounded double, where it can be had with one rounding. */
static bool
fast_f64(const struct number *n, double *v)
{
    if (n->man > (uint64_t)1 << 53 || n->exp10 < -22
        || n->exp10 > 22)
        return false;
    *v = n->exp10 < 0 ? (double)n->man / pow10_exact[-n->exp10]
        : (double)n->man * pow10_exact[n->exp10];
    if (n->negative)
        *v = -*v;
    return true;
}

/* strtod or strtof of the number's text, which has no NUL behind it. */
static enum pf_status
slow(const struct number *n, double *d, float *f, struct pf_err *err)
{
    char local[128], *s = local;

    if (n->len >= sizeof local && !(s = malloc(n->len + 1)))
        return pf_fail_mem(err);
    memcpy(s, n->text, n->len);
    s[n->len] = '\0';
    if (d)
        *d = strtod(s, NULL);
    else
        *f = strtof(s, NULL);
    if (s != local)
        free(s);
    return PF_OK;
}

static bool
take_null(struct pf_json *j)
{
    if (j->end - j->p < 4 || memcmp(j->p, "null", 4) != 0)
        return false;
    j->p += 4;
    space(j);
    return true;
}

enum pf_status
pf_json_f64(struct pf_json *j, double *v, struct pf_err *err)
{
    struct number n;
    enum pf_status st;

    if (take_null(j)) {
        *v = NAN;
        return PF_OK;
    }
    st = number(j, &n, err);
    if (st || fast_f64(&n, v))
        return st;
    return slow(&n, v, NULL, err);
}

enum pf_status
pf_json_f32(struct pf_json *j, float *v, struct pf_err *err)
{
    struct number n;
    enum pf_status st;
    uint64_t bits;
    double d;

    if (take_null(j)) {
        *v = NAN;
        return PF_OK;
    }
    st = number(j, &n, err);
    if (st)
        return st;
    if (fast_f64(&n, &d)) {
        memcpy(&bits, &d, sizeof bits);
        /* Rounded twice is wrong only if d is a midpoint of two floats.  (d is
         * 0 or at least 1e-22, never a subnormal float.) */
        if ((bits & 0x1fffffff) != 0x10000000) {
            *v = (float)d;
            return PF_OK;
        }
    }
    return slow(&n, NULL, v, err);
}

enum pf_status
pf_json_i64(struct pf_json *j, int64_t *v, struct pf_err *err)
{
    struct number n;
    enum pf_status st = number(j, &n, err);
    uint64_t limit;

    if (st)
        return st;
    if (!n.integer)
        return pf_fail(err, PF_EFORMAT, "%.*s is not an integer",
            (int)(n.len < 40 ? n.len : 40), n.text);
    limit = n.negative ? (uint64_t)1 << 63 : ((uint64_t)1 << 63) - 1;
    if (n.exp10 > 0 || n.man > limit)
        return pf_fail(err, PF_ERANGE, "%.*s is beyond 64 bits",
            (int)(n.len < 40 ? n.len : 40), n.text);
    *v = n.negative ? (int64_t)(0 - n.man) : (int64_t)n.man;
    return PF_OK;
}

static enum pf_status
word(struct pf_json *j, const char *w, struct pf_err *err)
{
    size_t len = strlen(w);

    if ((size_t)(j->end - j->p) < len || memcmp(j->p, w, len) != 0)
        return unexpected(j, "a value", err);
    j->p += len;
    space(j);
    return PF_OK;
}

/* A string, number or word. */
static enum pf_status
scalar(struct pf_json *j, struct pf_err *err)
{
    struct number n;

    switch (pf_json_peek(j)) {
    case '"': return string(j, NULL, err);
    case 't': return word(j, "true", err);
    case 'f': return word(j, "false", err);
    case 'n': return word(j, "null", err);
    case '-': case '0': case '1': case '2': case '3': case '4': case '5':
    case '6': case '7': case '8': case '9': return number(j, &n, err);
    default: return unexpected(j, "a value", err);
    }
}

enum pf_status
pf_json_value(struct pf_json *j, const char **raw, size_t *len,
    struct pf_err *err)
{
    unsigned char object[PF_JSON_DEPTH / 8] = { 0 }; /* a bit a level */
    const char *from = j->p, *last;
    enum pf_status st = PF_OK;
    size_t depth = 0;
    bool is_object;
    char c;

    for (;;) {
        c = pf_json_peek(j);
        if (c == '{' || c == '[') {
            if (depth == PF_JSON_DEPTH)
                return pf_fail(err, PF_EFORMAT, "JSON nests deeper than %d",
                    PF_JSON_DEPTH);
            is_object = c == '{';
            if (is_object)
                object[depth / 8] |= (unsigned char)(1 << depth % 8);
            else
                object[depth / 8] &= (unsigned char)~(1 << depth % 8);
            depth++;
            pf_json_take(j, c);
            if (pf_json_peek(j) != (is_object ? '}' : ']')) {
                if (is_object && (st = pf_json_key(j, NULL, err)))
                    return st;
                continue;
            }
        } else if ((st = scalar(j, err))) {
            return st;
        }
        /* A value is whole: close what ends here, or go to the next one. */
        for (;;) {
            if (depth == 0) {
                last = j->p;
                while (last > from && strchr(" \t\r\n", last[-1]))
                    last--;
                *raw = from;
                *len = (size_t)(last - from);
                return PF_OK;
            }
            is_object = object[(depth - 1) / 8] >> (depth - 1) % 8 & 1;
            if (!pf_json_take(j, is_object ? '}' : ']'))
                break;
            depth--;
        }
        if (!pf_json_take(j, ','))
            return unexpected(j, is_object ? "',' or '}'" : "',' or ']'", err);
        if (is_object && (st = pf_json_key(j, NULL, err)))
            return st;
    }
}

enum pf_status
pf_json_text_i64(const char *text, size_t len, int64_t *v, struct pf_err *err)
{
    struct pf_json j = pf_json_at(text, len);
    enum pf_status st = pf_json_i64(&j, v, err);

    return st ? st : pf_json_end(&j, err);
}

enum pf_status
pf_json_text_string(const char *text, size_t len, struct pf_buf *out,
    struct pf_err *err)
{
    struct pf_json j = pf_json_at(text, len);
    enum pf_status st = string(&j, out, err);

    return st ? st : pf_json_end(&j, err);
}

size_t
pf_i64_print(char *s, int64_t v)
{
    char digits[20];
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    size_t n = 0, len = 0;

    do {
        digits[n++] = (char)('0' + u % 10);
        u /= 10;
    } while (u);
    if (v < 0)
        s[len++] = '-';
    while (n)
        s[len++] = digits[--n];
    return len;
}

/* floor(e * log2(10)) and the like, exact in the range of a float. */
static int
floor_log2_pow10(int e)
{
    return (e * 1741647) >> 19;
}

static uint32_t
round_to_odd(uint64_t g, uint32_t cp)
{
    unsigned __int128 p = (unsigned __int128)g * cp;
    uint32_t hi = (uint32_t)(p >> 64), mid = (uint32_t)((uint64_t)p >> 32);

    return hi | (mid > 1);
}

/*
 * v = digits * 10^exp10 with the fewest digits that round to v, v > 0 finite.
 * Names as in Giulietti's "The Schubfach way to render doubles": the interval
 * of what rounds to c * 2^q, scaled by 10^-k, holds one or two candidates.
 */
static uint32_t
shortest(float v, int *exp10)
{
    uint32_t bits, man, c, cbl, cb, cbr, lower, upper, vb, s, sp, mid;
    int exp, q, k, h;
    bool even, closer, up, wp;
    uint64_t g;

    memcpy(&bits, &v, sizeof bits);
    man = bits & 0x7fffff;
    exp = (int)(bits >> 23 & 0xff);
    c = exp ? man | 0x800000 : man;
    q = exp ? exp - 150 : -149;
    if (exp && q <= 0 && q > -24 && (c & ((1u << -q) - 1)) == 0) {
        *exp10 = 0;
        return c >> -q;
    }
    even = c % 2 == 0;
    closer = man == 0 && exp > 1;
    cbl = 4 * c - 2 + closer;
    cb = 4 * c;
    cbr = 4 * c + 2;
    k = (q * 1262611 - (closer ? 524031 : 0)) >> 22;
    h = q + floor_log2_pow10(-k) + 1;
    g = pow10_upper[-k + 31];
    lower = round_to_odd(g, cbl << h) + !even;
    vb = round_to_odd(g, cb << h);
    upper = round_to_odd(g, cbr << h) - !even;
    s = vb / 4;
    *exp10 = k;
    if (s >= 10) {
        sp = s / 10;
        up = lower <= 40 * sp;
        wp = 40 * sp + 40 <= upper;
        if (up != wp) {
            *exp10 = k + 1;
            return sp + wp;
        }
    }
    up = lower <= 4 * s;
    wp = 4 * s + 4 <= upper;
    if (up != wp)
        return s + wp;
    mid = 4 * s + 2;
    return s + (vb > mid || (vb == mid && s & 1));
}

size_t
pf_f32_print(char *out, float v)
{
    char digits[20], *s = out;
    int exp10, n, point;

    if (isnan(v)) {
        memcpy(out, "null", 4);
        return 4;
    }
    if (signbit(v)) {
        *s++ = '-';
        v = -v;
    }
    if (v == 0) {
        *s++ = '0';
        return (size_t)(s - out);
    }
    if (isinf(v)) {
        memcpy(s, "1e999", 5);
        return (size_t)(s - out) + 5;
    }
    n = (int)pf_i64_print(digits, shortest(v, &exp10));
    while (n > 1 && digits[n - 1] == '0') {
        n--;
        exp10++;
    }
    point = n + exp10; /* the decimal point stands before digit `point` */
    if (point > 9 || point < -3) {
        *s++ = digits[0];
        if (n > 1) {
            *s++ = '.';
            memcpy(s, digits + 1, (size_t)n - 1);
            s += n - 1;
        }
        *s++ = 'e';
        s += pf_i64_print(s, point - 1);
    } else if (point <= 0) {
        *s++ = '0';
        *s++ = '.';
        for (; point < 0; point++)
            *s++ = '0';
        memcpy(s, digits, (size_t)n);
        s += n;
    } else {
        for (int i = 0; i < n || i < point; i++) {
            if (i == point)
                *s++ = '.';
            *s++ = i < n ? digits[i] : '0';
        }
    }
    return (size_t)(s - out);
}

void
pf_json_add_f32(struct pf_buf *b, float v)
{
    char *s = pf_buf_room(b, PF_F32_MAX);

    if (s)
        b->len += pf_f32_print(s, v);
}

void
pf_json_add_f64(struct pf_buf *b, double v)
{
    char s[32];

    if (isnan(v)) {
        pf_buf_adds(b, "null");
    } else if (isinf(v)) {
        pf_buf_adds(b, v < 0 ? "-1e999" : "1e999");
    } else {
        for (int digits = 15; digits <= 17; digits++) {
            snprintf(s, sizeof s, "%.*g", digits, v);
            if (strtod(s, NULL) == v)
                break;
        }
        pf_buf_adds(b, s);
    }
}

void
pf_json_add_i64(struct pf_buf *b, int64_t v)
{
    char *s = pf_buf_room(b, 20);

    if (s)
        b->len += pf_i64_print(s, v);
}

void
pf_json_add_string(struct pf_buf *b, const char *s, size_t len)
{
    static const char plain[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
    size_t from = 0, n;

    pf_buf_addc(b, '"');
    for (size_t i = 0; i < len; i += n) {
        unsigned char c = (unsigned char)s[i];
        const char *at;

        n = c < 0x80 ? 1 : pf_utf8_char(s + i, len - i);
        if (n && c >= ' ' && c != 0x7f && c != '"' && c != '\\')
            continue;
        at = c && c < 0x80 ? strchr(plain, c) : NULL;
        pf_buf_add(b, s + from, i - from);
        if (at) {
            pf_buf_addc(b, '\\');
            pf_buf_addc(b, letter[at - plain]);
        } else if (n) {
            pf_buf_printf(b, "\\u%04x", c);
        } else {
            pf_buf_adds(b, "\xef\xbf\xbd");
            n = pf_utf8_subpart(s + i, len - i);
        }
        from = i + n;
    }
    if (from < len)
        pf_buf_add(b, s + from, len - from);
    pf_buf_addc(b, '"');
}
