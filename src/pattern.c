/*
 * Two syntaxes that agree on most of what split patterns use, and a third that
 * has to match the same.  Where classes are sets of the nine that the table
 * of scan.h tells apart, a set is nine bits: the sets named in a pair of
 * brackets are joined, or negated, as such, and written as ranges once, at the
 * end of the brackets.  All else is text that is copied.
 *
 * What is refused when strict, because the libraries differ (Oniguruma 6.9,
 * syntax Ruby; regex 1.10 and fancy-regex; PCRE2 10.42): ^ and $, which in
 * Ruby are those of a line; {1,3}+, there a repetition of a repetition; \w \d
 * \b, \p{..} of other names and ignored case beyond ASCII, where Unicode's
 * version counts; brackets in brackets, && -- ~~; options, names, verbs.
 */
#include "pattern.h"

#include <ctype.h>
#include <string.h>

#include <pipeformer/utf8.h>

enum {
    PATTERN_MAX = 1 << 15,    /* bytes, of those that are in use 300 */
    TRANSLATED_MAX = 1 << 19, /* PCRE2's limit is far below it */
    DEPTH_MAX = 250,          /* of parentheses, as PCRE2 has it */
    SET_NAME_MAX = 20,        /* of a set */
    LAST = 0x10ffff,
};

/* Sets of the nine, a bit each. */
enum {
    OTHER = 1,
    LU = 2,
    LT = 4,
    LL = 8,
    LM = 16,
    LO = 32,
    MARK = 64,
    NUMBER = 128,
    SPACE = 256,
    LETTER = LU | LT | LL | LM | LO,
    ALL = 511,
};

struct work {
    struct pf_buf *out;
    const char *begin, *p;
    bool strict;
    bool fold[DEPTH_MAX + 1]; /* case is ignored at this depth */
    size_t depth;
    struct pf_err *err;
};

/* What the bits of pf_class_run stand for. */
static unsigned
set_of(unsigned bits)
{
    bool special = bits & PF_CLASS_SPECIAL;

    if (bits & PF_CLASS_SPACE)
        return SPACE;
    if (bits & PF_CLASS_NUMBER)
        return NUMBER;
    if (!(bits & (PF_CLASS_UPPER | PF_CLASS_LOWER)))
        return OTHER;
    if (!(bits & PF_CLASS_LETTER))
        return MARK;
    if (!(bits & PF_CLASS_LOWER))
        return special ? LT : LU;
    if (!(bits & PF_CLASS_UPPER))
        return LL;
    return special ? LM : LO;
}

/* In brackets, where some of ASCII means something. */
static void
put_char(struct pf_buf *out, uint32_t c)
{
    char s[4];

    if (c < 0x80)
        pf_buf_printf(out, "\\x{%X}", (unsigned)c);
    else
        pf_buf_add(out, s, pf_utf8_encode(s, c));
}

static void
put_range(struct pf_buf *out, uint32_t from, uint32_t to)
{
    put_char(out, from);
    if (to > from) {
        pf_buf_addc(out, '-');
        put_char(out, to);
    }
}

/* The code points of a set, as ranges.  Surrogates are in no text: they
 * neither end a range nor begin one. */
static void
put_set(struct pf_buf *out, unsigned set)
{
    uint32_t from = 0, to = 0, next;
    bool open = false, in;

    for (uint32_t c = 0; c <= LAST; c = next) {
        in = set_of(pf_class_run(c, &next)) & set;
        if (c >= 0xd800 && c < 0xe000)
            continue;
        if (in && !open)
            from = c;
        else if (!in && open)
            put_range(out, from, to);
        if (in)
            to = next - 1;
        open = in;
    }
    if (open)
        put_range(out, from, to);
}

static enum pf_status
refuse(struct work *w, size_t len)
{
    size_t left = strlen(w->p);

    return pf_fail(w->err, PF_EMODEL, "the pattern of the pieces has \"%.*s\" "
        "at byte %zu, which libraries of regular expressions do not agree on",
        (int)(len < left ? len : left), w->p, (size_t)(w->p - w->begin));
}

static void
copy(struct work *w, size_t n)
{
    pf_buf_add(w->out, w->p, n);
    w->p += n;
}

/* Strict, and in parentheses that ignore case. */
static bool
folded(const struct work *w)
{
    return w->strict && w->fold[w->depth];
}

/* The set of \s, \S, \p{..} or \P{..} at p, and the length of that; 0 if it
 * is none that is known. */
static unsigned
named_set(const char *p, size_t *len)
{
    static const struct {
        const char *name, *longer;
        unsigned set;
    } names[] = {
        { "L", "Letter", LETTER },
        { "Lu", "Uppercase_Letter", LU },
        { "Ll", "Lowercase_Letter", LL },
        { "Lt", "Titlecase_Letter", LT },
        { "Lm", "Modifier_Letter", LM },
        { "Lo", "Other_Letter", LO },
        { "M", "Mark", MARK },
        { "N", "Number", NUMBER },
    };
    size_t n;
    bool not;

    if (p[0] != '\\')
        return 0;
    *len = 2;
    if (p[1] == 's' || p[1] == 'S')
        return p[1] == 's' ? SPACE : ALL & ~SPACE;
    if ((p[1] != 'p' && p[1] != 'P') || p[2] != '{')
        return 0;
    not = (p[1] == 'P') != (p[3] == '^');
    p += 3 + (p[3] == '^');
    for (n = 0; n < SET_NAME_MAX && p[n] && p[n] != '}';)
        n++;
    if (p[n] != '}')
        return 0;
    *len = 4 + n + (p[-1] == '^');
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((strlen(names[i].name) == n && !memcmp(p, names[i].name, n))
            || (strlen(names[i].longer) == n
                && !memcmp(p, names[i].longer, n)))
            return not ? ALL & ~names[i].set : names[i].set;
    return 0;
}

/* Hex digits at p, at most `max`. */
static size_t
hex(const char *p, size_t max, uint32_t *value)
{
    static const char digits[] = "0123456789abcdef";
    size_t n = 0;

    for (*value = 0; n < max && isxdigit((unsigned char)p[n]); n++)
        *value = *value << 4 | (uint32_t)(strchr(digits,
            tolower((unsigned char)p[n])) - digits);
    return n;
}

/* A character by its number: \xHH, \x{..}, \uHHHH, \u{..}. */
static enum pf_status
number_escape(struct work *w)
{
    bool braces = w->p[2] == '{';
    const char *digits = w->p + 2 + braces;
    uint32_t value;
    size_t n = hex(digits, braces ? 6 : w->p[1] == 'u' ? 4 : 2, &value);
    size_t len = (size_t)(digits - w->p) + n + braces;

    if (braces ? n == 0 || digits[n] != '}' : n < (w->p[1] == 'u' ? 4 : 2)) {
        if (w->strict)
            return refuse(w, len);
        copy(w, 2);
        return PF_OK;
    }
    /* Without braces Oniguruma has bytes of a character. */
    if ((w->strict && w->p[1] == 'x' && !braces && value >= 0x80)
        || (folded(w) && value >= 0x80))
        return refuse(w, len);
    pf_buf_printf(w->out, "\\x{%lX}", (unsigned long)value);
    w->p += len;
    return PF_OK;
}

/* A backslash and what it makes of what is behind it, but for sets. */
static enum pf_status
escape(struct work *w, bool brackets)
{
    unsigned char c = (unsigned char)w->p[1];
    const char *quoted;
    size_t n;

    if (c == 'x' || c == 'u')
        return number_escape(w);
    if (w->strict) {
        if (c == 'v') { /* elsewhere a class */
            pf_buf_adds(w->out, "\\x{B}");
            w->p += 2;
            return PF_OK;
        }
        if (c == '\0' || c >= 0x80
            || (isalnum(c) && !strchr("nrtfae", c) && (c != 'z' || brackets))
            || c == '<' || c == '>') {
            n = c == 'p' || c == 'P' ? strcspn(w->p, "}") + 1 : 2;
            return refuse(w, n < 40 ? n : 40);
        }
    } else if (c == 'Q') {
        quoted = strstr(w->p, "\\E");
        copy(w, quoted ? (size_t)(quoted - w->p) : strlen(w->p));
        return PF_OK;
    }
    copy(w, c ? 2 : 1);
    return PF_OK;
}

/* A character that stands for itself, the first of it being at p. */
static enum pf_status
literal(struct work *w)
{
    static const char *const pairs[] = { "ss", "st", "ff", "fi", "fl" };
    size_t n = pf_utf8_char(w->p, 4);
    char two[2];

    if (folded(w)) {
        if (n > 1)
            return refuse(w, n);
        /* These two are one character to Oniguruma, too. */
        two[0] = (char)(w->p > w->begin ? w->p[-1] | 0x20 : 0);
        two[1] = (char)(w->p[0] | 0x20);
        for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
            if (memcmp(two, pairs[i], 2) == 0) {
                w->p--;
                return refuse(w, 2);
            }
    }
    copy(w, n);
    return PF_OK;
}

/* From [ to ]. */
static enum pf_status
brackets(struct work *w)
{
    enum pf_status st = PF_OK;
    unsigned set = 0, one;
    bool after_set = false;
    const char *end;
    size_t len;

    copy(w, w->p[1] == '^' ? 2 : 1);
    if (*w->p == ']') {
        if (w->strict)
            return refuse(w, 1);
        copy(w, 1);
    }
    while (*w->p && *w->p != ']' && !st) {
        if ((one = named_set(w->p, &len))) {
            if (folded(w))
                return refuse(w, len);
            set |= one;
            w->p += len;
            after_set = true;
            continue;
        }
        if (*w->p == '\\') {
            st = escape(w, true);
        } else if (*w->p == '[') {
            if (w->strict)
                return refuse(w, 1);
            end = w->p[1] && strchr(":.=", w->p[1]) ? strchr(w->p, ']') : NULL;
            copy(w, end && end[-1] == w->p[1] && end > w->p + 2
                ? (size_t)(end + 1 - w->p) : 1);
        } else if (strchr("&-~", *w->p) && w->p[1] == *w->p && w->strict) {
            return refuse(w, 2);
        } else if (*w->p == '-' && (after_set || named_set(w->p + 1, &len))) {
            pf_buf_adds(w->out, "\\-"); /* no range: stands for itself */
            w->p++;
        } else if (folded(w)) {
            st = (unsigned char)*w->p < 0x80 ? PF_OK : refuse(w, 4);
            copy(w, 1);
        } else {
            copy(w, 1);
        }
        after_set = false;
    }
    if (set)
        put_set(w->out, set);
    if (*w->p && !st)
        copy(w, 1);
    return st;
}

/* An opening parenthesis and what tells its kind. */
static enum pf_status
group(struct work *w)
{
    static const char *const kinds[] = { "(?:", "(?=", "(?!", "(?>", "(?<=",
        "(?<!", "(?i:", "(?-i:" };
    size_t n = 0;
    const char *end;

    if (!w->strict) {
        end = strncmp(w->p, "(?#", 3) == 0 ? strchr(w->p, ')') : NULL;
        copy(w, end ? (size_t)(end - w->p) : 1);
        return PF_OK;
    }
    if (w->depth == DEPTH_MAX)
        return pf_fail(w->err, PF_EMODEL, "the pattern of the pieces has more "
            "than %d parentheses in each other", DEPTH_MAX);
    w->fold[w->depth + 1] = w->fold[w->depth];
    if (w->p[1] == '?' || w->p[1] == '*') {
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !n; i++)
            if (strncmp(w->p, kinds[i], strlen(kinds[i])) == 0)
                n = strlen(kinds[i]);
        if (n == 0)
            return refuse(w, 4);
        if (w->p[n - 2] == 'i')
            w->fold[w->depth + 1] = w->p[2] == 'i';
    } else {
        n = 1;
    }
    w->depth++;
    copy(w, n);
    return PF_OK;
}

/* {n}, {n,}, {n,m} or {n,m}?, strict. */
static enum pf_status
interval(struct work *w)
{
    static const char digits[] = "0123456789";
    size_t n = 1 + strspn(w->p + 1, digits);
    bool comma = w->p[n] == ',';

    if (n == 1)
        return refuse(w, 2);
    if (comma)
        n += 1 + strspn(w->p + n + 1, digits);
    if (w->p[n] != '}')
        return refuse(w, n + 1);
    n++;
    if (w->p[n] == '+' || (w->p[n] == '?' && !comma))
        return refuse(w, n + 1);
    copy(w, n);
    return PF_OK;
}

enum pf_status
pf_pattern_translate(struct pf_buf *out, const char *pattern, bool strict,
    struct pf_err *err)
{
    struct work w = { .out = out, .begin = pattern, .p = pattern,
        .strict = strict, .err = err };
    size_t len = strlen(pattern);
    enum pf_status st = PF_OK;
    unsigned set;

    if (pf_utf8_span(pattern, len) != len)
        return pf_fail(err, PF_EFORMAT, "the pattern of the pieces is no "
            "UTF-8");
    if (len > PATTERN_MAX)
        return pf_fail(err, PF_EMODEL, "the pattern of the pieces is longer "
            "than %d bytes", PATTERN_MAX);
    pf_buf_clear(out);
    while (*w.p && !st) {
        if (out->len > TRANSLATED_MAX)
            return pf_fail(err, PF_EMODEL, "the pattern of the pieces is too "
                "large");
        if ((set = named_set(w.p, &len))) {
            if (folded(&w))
                return refuse(&w, len);
            pf_buf_addc(out, '[');
            put_set(out, set);
            pf_buf_addc(out, ']');
            w.p += len;
        } else if (*w.p == '\\') {
            st = escape(&w, false);
        } else if (*w.p == '[') {
            st = brackets(&w);
        } else if (*w.p == '(') {
            st = group(&w);
        } else if (*w.p == ')') {
            w.depth -= w.depth > 0;
            copy(&w, 1);
        } else if (*w.p == '{' && strict) {
            st = interval(&w);
        } else if ((*w.p == '^' || *w.p == '$') && strict) {
            st = refuse(&w, 1);
        } else {
            st = literal(&w);
        }
    }
    pf_buf_addc(out, '\0');
    return st ? st : pf_buf_check(out, err);
}

#define GPT2_END \
    "| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d" GPT2_END
#define FOLDED "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define CL100K_END \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define CL100K \
    FOLDED "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}" CL100K_END
#define QWEN2 FOLDED "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}" CL100K_END
#define U "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define W "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define O200K \
    "[^\\r\\n\\p{L}\\p{N}]?" U "*" W "+" FOLDED "?" \
    "|[^\\r\\n\\p{L}\\p{N}]?" U "+" W "*" FOLDED "?" \
    "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+" \
    "|\\s+(?!\\S)|\\s+"

/* The first of a kind is the original. */
static const struct known {
    enum pf_scan scan;
    bool exact;
    const char *pattern;
} known[] = {
    { PF_SCAN_GPT2, true, GPT2 },
    { PF_SCAN_GPT2, true, "'(?:[sdmt]|ll|ve|re)" GPT2_END },
    { PF_SCAN_GPT2, true, "'(?:[sdmt]|ll|ve|re)| ?\\p{L}++| ?\\p{N}++"
        "| ?[^\\s\\p{L}\\p{N}]++|\\s++$|\\s+(?!\\S)|\\s" },
    { PF_SCAN_CL100K, true, CL100K },
    { PF_SCAN_CL100K, false, "'(?i:[sdmt]|ll|ve|re)"
        "|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+"
        "| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)"
        "|\\s" },
    { PF_SCAN_QWEN2, true, QWEN2 },
    { PF_SCAN_O200K, true, O200K },
};

enum pf_scan
pf_pattern_known(const char *pattern, bool *exact)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(pattern, known[i].pattern) == 0) {
            *exact = known[i].exact;
            return known[i].scan;
        }
    *exact = false;
    return PF_SCAN_NONE;
}

bool
pf_pattern_is_word(const char *pattern)
{
    size_t n = strspn(pattern, "abcdefghijklmnopqrstuvwxyz"
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

    return n > 1 && !pattern[n];
}

const char *
pf_pattern_named(const char *name)
{
    static const struct {
        const char *name, *pattern;
    } names[] = { { "gpt2", GPT2 }, { "cl100k", CL100K }, { "qwen2", QWEN2 },
        { "o200k", O200K } };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i].name) == 0)
            return names[i].pattern;
    return NULL;
}
