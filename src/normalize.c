/*
 * Each step reads what the one before it wrote and writes a text of its own;
 * the first reads the source.
 *
 * NFD, Lowercase, StripAccents and BertNormalizer all take one character after
 * the other, so they are one loop over a set of things to do with each.  What
 * BertNormalizer does in passes over the whole text can be done to a character
 * at once: it drops marks after NFD has put them in order, but sorting what is
 * left gives the same, if a mark that has no order parts those around it
 * before it goes.  ASCII goes through 8 bytes at a time.
 *
 * NFC copies all that is normalized already, and composes only the stretches
 * that may not be: a character that can change or join what stands before it,
 * and everything from the last one that can not.  Text below U+0300 needs no
 * more than a look at each byte.
 *
 * Marks between two base characters may be as many as the text has bytes.
 * They are put in order by insertion when they are few, and by counting when
 * they are many; either is stable.  (Unicode 16, 3.11: canonical ordering and
 * composition.)
 */
#include "normalize.h"

#include <stdlib.h>
#include <string.h>

#include <pipeformer/utf8.h>

#include "unicode.h"

enum {
    BLOCK = 8, /* bytes of ASCII at once */
    ROOM = 64, /* what one character, and spaces around it, may become */
    FEW = 24,  /* marks */

    /* A character of a run is its code point and, above, its order. */
    ORDER = 24,
    CODE = (1 << ORDER) - 1,
};

/* The text that a step reads; no `from`, `to` for the source itself. */
struct text {
    const char *p;
    size_t len;
    const size_t *from, *to;
};

/* What is done to each character. */
struct mapping {
    bool clean, cjk, decompose, lower;
    unsigned drop;  /* characters with one of these flags */
    unsigned touch; /* other characters stay, if no order is asked for */
};

void
pf_ntext_fini(struct pf_ntext *t)
{
    pf_buf_fini(&t->bytes);
    free(t->from);
    free(t->to);
    pf_buf_fini(&t->last.bytes);
    free(t->last.from);
    free(t->last.to);
    free(t->run.chars);
    free(t->run.sorted);
    free(t->run.from);
    free(t->run.to);
    free(t->border);
    *t = (struct pf_ntext)PF_NTEXT_INIT;
}

static bool
grow_pair(size_t **a, size_t **b, size_t *cap, size_t need)
{
    size_t a_cap = *cap, b_cap = *cap;

    if (!pf_grow(a, &a_cap, need, sizeof **a)
        || !pf_grow(b, &b_cap, need, sizeof **b))
        return false;
    *cap = b_cap;
    return true;
}

/* Room for n more bytes of the text, with their places. */
static inline bool
reserve(struct pf_ntext *t, size_t n)
{
    if (t->bytes.cap - t->bytes.len >= n
        && (!t->track || t->cap >= t->bytes.cap))
        return true;
    return pf_buf_room(&t->bytes, n) && (!t->track
        || grow_pair(&t->from, &t->to, &t->cap, t->bytes.cap));
}

/* n bytes that were made of the bytes from `from` to `to`; there is room. */
static inline void
put(struct pf_ntext *t, const char *p, size_t n, size_t from, size_t to)
{
    size_t at = t->bytes.len;

    for (size_t k = 0; k < n; k++)
        t->bytes.data[at + k] = p[k];
    for (size_t k = 0; t->track && k < n; k++) {
        t->from[at + k] = from;
        t->to[at + k] = to;
    }
    t->bytes.len += n;
}

static void
put_char(struct pf_ntext *t, uint32_t c, size_t from, size_t to)
{
    char s[4];

    put(t, s, pf_utf8_encode(s, c), from, to);
}

/* Where the text's bytes i to j - 1 came from. */
static inline size_t
from_of(const struct text *in, size_t i)
{
    return in->from ? in->from[i] : i;
}

static inline size_t
to_of(const struct text *in, size_t j)
{
    return in->to ? in->to[j - 1] : j;
}

/* Length of the character at i and its code point; 0 for a byte that is none.
 */
static inline size_t
char_at(const struct text *in, size_t i, uint32_t *c)
{
    const unsigned char *p = (const unsigned char *)in->p + i;
    size_t n = in->len - i;

    if (p[0] < 0x80) {
        *c = p[0];
        return 1;
    }
    if (p[0] >= 0xc2 && p[0] < 0xe0 && n >= 2 && (p[1] & 0xc0) == 0x80) {
        *c = (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
        return 2;
    }
    if (p[0] > 0xe0 && p[0] < 0xed && n >= 3 && (p[1] & 0xc0) == 0x80
        && (p[2] & 0xc0) == 0x80) {
        *c = (p[0] & 0xfu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
        return 3;
    }
    n = pf_utf8_char(in->p + i, n);
    *c = n ? pf_utf8_decode(in->p + i, &n) : 0;
    return n;
}

/* Bytes i to j - 1 as they are. */
static bool
copy(struct pf_ntext *t, const struct text *in, size_t i, size_t j)
{
    size_t n = j - i, at = t->bytes.len, len;
    uint32_t c;

    if (!reserve(t, n))
        return false;
    if (n)
        memcpy(t->bytes.data + at, in->p + i, n);
    t->bytes.len += n;
    if (!t->track || n == 0)
        return true;
    if (in->from) {
        memcpy(t->from + at, in->from + i, n * sizeof *t->from);
        memcpy(t->to + at, in->to + i, n * sizeof *t->to);
        return true;
    }
    for (; i < j; i += len, at += len) {
        len = char_at(in, i, &c);
        len = len ? len : 1;
        for (size_t k = 0; k < len; k++) {
            t->from[at + k] = i;
            t->to[at + k] = i + len;
        }
    }
    return true;
}

static bool
run_add(struct pf_ntext *t, uint32_t c, unsigned order, size_t from,
    size_t to)
{
    struct pf_ntext_run *r = &t->run;
    size_t chars = r->cap, sorted = r->cap, places = r->cap;

    if (r->n == r->cap) {
        if (!pf_grow(&r->chars, &chars, r->n + 1, sizeof *r->chars)
            || !pf_grow(&r->sorted, &sorted, r->n + 1, sizeof *r->sorted)
            || !grow_pair(&r->from, &r->to, &places, r->n + 1))
            return false;
        r->cap = places;
    }
    r->chars[r->n] = (uint32_t)order << ORDER | c;
    r->from[r->n] = from;
    r->to[r->n++] = to;
    return true;
}

/* Puts characters i to j - 1 of the run in order: any number of them. */
static void
count_marks(struct pf_ntext_run *r, size_t i, size_t j)
{
    size_t next[256] = { 0 }, sum = 0, n;

    for (size_t k = i; k < j; k++)
        next[r->chars[k] >> ORDER]++;
    for (size_t order = 0; order < 256; order++) {
        n = next[order];
        next[order] = sum;
        sum += n;
    }
    for (size_t k = i; k < j; k++)
        r->sorted[next[r->chars[k] >> ORDER]++] = r->chars[k];
    memcpy(r->chars + i, r->sorted, (j - i) * sizeof *r->chars);
}

static void
sort_marks(struct pf_ntext_run *r, size_t i, size_t j)
{
    uint32_t c, *p = r->chars;
    size_t m;

    if (j - i > FEW) {
        count_marks(r, i, j);
        return;
    }
    for (size_t k = i + 1; k < j; k++) {
        c = p[k];
        for (m = k; m > i && p[m - 1] >> ORDER > c >> ORDER; m--)
            p[m] = p[m - 1];
        p[m] = c;
    }
}

static bool
put_run(struct pf_ntext *t)
{
    struct pf_ntext_run *r = &t->run;

    if (r->n > SIZE_MAX / 8 || !reserve(t, 4 * r->n))
        return false;
    for (size_t i = 0; i < r->n; i++)
        put_char(t, r->chars[i] & CODE, r->from[i], r->to[i]);
    r->n = 0;
    return true;
}

/* The marks that were gathered, before something else is written. */
static inline bool
put_marks(struct pf_ntext *t)
{
    if (t->run.n == 0)
        return true;
    sort_marks(&t->run, 0, t->run.n);
    return put_run(t);
}

/* --- One character after the other. */

/* Control characters of ASCII that cleaning drops; it makes spaces of the
 * others. */
static inline unsigned
is_dropped(unsigned char c)
{
    return ((c < 0x20) & (c != '\t') & (c != '\n') & (c != '\r'))
        | (c == 0x7f);
}

static inline unsigned char
map_byte(unsigned char c, bool clean, bool lower)
{
    unsigned upper = (unsigned char)(c - 'A') < 26;

    c = (unsigned char)(c + ((upper & lower) << 5));
    return (clean & (c < 0x20)) ? ' ' : c;
}

/*
 * BLOCK bytes of s to d, all at once, or false: one is not ASCII or, if this
 * cleans, is a control character.  A byte with its high bit free is at least x
 * if adding 0x80 - x sets that bit.
 */
static inline bool
map_block(char *restrict d, const char *restrict s, bool clean, bool lower)
{
    const uint64_t ones = 0x0101010101010101, high = 0x80 * ones;
    uint64_t v, upper;

    memcpy(&v, s, BLOCK);
    if ((v | (clean ? ~(v + 0x60 * ones) | (v + ones) : 0)) & high)
        return false;
    upper = (v + (0x80 - 'A') * ones) & ~(v + (0x80 - 'Z' - 1) * ones) & high;
    v += lower ? upper >> 2 : 0;
    memcpy(d, &v, BLOCK);
    return true;
}

/* The ASCII from i on: where it ends.  There is room. */
static size_t
map_ascii(struct pf_ntext *t, const struct text *in, size_t i, bool clean,
    bool lower)
{
    char *d = t->bytes.data + t->bytes.len;
    size_t stop;
    unsigned char c;

    while (i < in->len) {
        stop = in->len;
        if (!t->track && in->len - i >= BLOCK) {
            if (map_block(d, in->p + i, clean, lower)) {
                i += BLOCK;
                d += BLOCK;
                continue;
            }
            stop = i + BLOCK;
        }
        for (; i < stop; i++) {
            c = (unsigned char)in->p[i];
            if (c >= 0x80) {
                t->bytes.len = (size_t)(d - t->bytes.data);
                return i;
            }
            *d = (char)map_byte(c, clean, lower);
            if (t->track) {
                t->from[d - t->bytes.data] = from_of(in, i);
                t->to[d - t->bytes.data] = to_of(in, i + 1);
            }
            d += !(clean & is_dropped(c));
        }
    }
    t->bytes.len = (size_t)(d - t->bytes.data);
    return i;
}

/* The last thing that is done to a character.  There is room. */
static bool
map_case(struct pf_ntext *t, const struct mapping *m, uint32_t c, size_t from,
    size_t to)
{
    const struct pf_uc *u = pf_uc_of(c);
    uint32_t lower[PF_UC_LOWERED_MAX];
    size_t n;

    if (u->flags & m->drop)
        return u->order || put_marks(t);
    if (m->decompose && u->order)
        return run_add(t, c, u->order, from, to);
    if (!put_marks(t) || !reserve(t, ROOM))
        return false;
    if (!m->lower || !(u->flags & PF_UC_LOWERS)) {
        put_char(t, c, from, to);
        return true;
    }
    n = pf_uc_lower(c, lower);
    for (size_t k = 0; k < n; k++)
        put_char(t, lower[k], from, to);
    return true;
}

/* The character c, bytes i to j - 1, that may not stay as it is. */
static bool
map_char(struct pf_ntext *t, const struct text *in, const struct mapping *m,
    uint32_t c, size_t i, size_t j)
{
    unsigned flags = pf_uc_of(c)->flags;
    size_t from = from_of(in, i), to = to_of(in, j), n;
    uint32_t parts[PF_UC_DECOMPOSED_MAX];
    bool cjk = m->cjk && (flags & PF_UC_BERT_CJK);

    if (m->clean && (flags & PF_UC_BERT_REMOVED))
        return true;
    if (m->clean && (flags & PF_UC_BERT_SPACE))
        c = ' ';
    if (cjk) {
        if (!put_marks(t) || !reserve(t, ROOM))
            return false;
        put(t, " ", 1, from, from);
    }
    if (m->decompose && (flags & PF_UC_DECOMPOSES)) {
        n = pf_uc_decompose(c, parts);
        for (size_t k = 0; k < n; k++)
            if (!map_case(t, m, parts[k], from, to))
                return false;
    } else if (!map_case(t, m, c, from, to)) {
        return false;
    }
    if (cjk)
        put(t, " ", 1, to, to);
    return true;
}

static enum pf_status
map(struct pf_ntext *t, const struct text *in, struct mapping m,
    struct pf_err *err)
{
    const struct pf_uc *u;
    size_t i = 0, n;
    bool ok = true;
    uint32_t c;

    t->run.n = 0;
    while (ok && i < in->len) {
        if ((unsigned char)in->p[i] < 0x80) {
            ok = put_marks(t) && reserve(t, in->len - i + ROOM);
            if (ok)
                i = map_ascii(t, in, i, m.clean, m.lower);
            continue;
        }
        n = char_at(in, i, &c);
        if (!n) {
            n = 1;
            if (!m.clean) {
                ok = put_marks(t) && reserve(t, ROOM);
                if (ok)
                    put(t, in->p + i, 1, from_of(in, i), to_of(in, i + 1));
            }
        } else {
            u = pf_uc_of(c);
            if ((u->flags & m.touch) || (m.decompose && u->order)) {
                ok = map_char(t, in, &m, c, i, i + n);
            } else {
                ok = put_marks(t) && reserve(t, ROOM);
                if (ok)
                    put(t, in->p + i, n, from_of(in, i), to_of(in, i + n));
            }
        }
        i += n;
    }
    return ok && put_marks(t) ? PF_OK : pf_fail_mem(err);
}

static struct mapping
mapping_of(const struct pf_norm_step *s)
{
    struct mapping m = { 0 };

    if (s->kind == PF_NORM_BERT) {
        m.clean = s->clean;
        m.cjk = s->cjk;
        m.decompose = s->accents;
        m.drop = s->accents ? PF_UC_BERT_ACCENT : 0;
        m.lower = s->lower;
    }
    m.decompose |= s->kind == PF_NORM_NFD;
    m.lower |= s->kind == PF_NORM_LOWERCASE;
    m.drop |= s->kind == PF_NORM_STRIP_ACCENTS ? PF_UC_MARK : 0;
    m.touch = m.drop
        | (m.clean ? PF_UC_BERT_REMOVED | PF_UC_BERT_SPACE : 0)
        | (m.cjk ? PF_UC_BERT_CJK : 0)
        | (m.decompose ? PF_UC_DECOMPOSES : 0)
        | (m.lower ? PF_UC_LOWERS : 0);
    return m;
}

/* --- NFC. */

/* The first byte from i on that may be of a character from U+0300 on. */
static size_t
skip_low(const struct text *in, size_t i)
{
    const uint64_t low = 0x7f7f7f7f7f7f7f7f, add = 0x3434343434343434;
    uint64_t v;

    for (; in->len - i >= 8; i += 8) {
        memcpy(&v, in->p + i, 8);
        if ((((v & low) + add) & v) & ~low)
            break;
    }
    while (i < in->len && (unsigned char)in->p[i] < 0xcc)
        i++;
    return i;
}

/* Where the character that ends before byte i begins; i if there is none. */
static size_t
char_before(const struct text *in, size_t i)
{
    for (size_t n = 1; n <= 4 && n <= i; n++)
        if (((unsigned char)in->p[i - n] & 0xc0) != 0x80)
            return pf_utf8_char(in->p + i - n, n) == n ? i - n : i;
    return i;
}

/* Bytes i to j - 1, a stretch that begins and ends at a border of NFC. */
static bool
gather(struct pf_ntext *t, const struct text *in, size_t i, size_t j)
{
    uint32_t parts[PF_UC_DECOMPOSED_MAX], c;
    size_t n, n_parts;

    t->run.n = 0;
    for (; i < j; i += n) {
        n = char_at(in, i, &c);
        n_parts = pf_uc_decompose(c, parts);
        for (size_t k = 0; k < n_parts; k++)
            if (!run_add(t, parts[k], pf_uc_of(parts[k])->order,
                    from_of(in, i), to_of(in, i + n)))
                return false;
    }
    for (i = 0; i < t->run.n; i = j + 1) {
        for (j = i; j < t->run.n && t->run.chars[j] >> ORDER; j++)
            continue;
        sort_marks(&t->run, i, j);
    }
    return true;
}

/*
 * A character joins the last base before it if nothing that stays between the
 * two has its order or a higher one, or none.
 */
static void
compose(struct pf_ntext_run *r)
{
    size_t base = SIZE_MAX, kept = 0;
    uint32_t c, order, last = 0;

    for (size_t i = 0; i < r->n; i++) {
        order = r->chars[i] >> ORDER;
        if (base != SIZE_MAX && (kept == base + 1 || last < order)) {
            c = pf_uc_compose(r->chars[base], r->chars[i] & CODE);
            if (c) {
                r->chars[base] = c;
                r->to[base] = r->to[i];
                continue;
            }
        }
        if (order == 0)
            base = kept;
        last = order;
        r->chars[kept] = r->chars[i];
        r->from[kept] = r->from[i];
        r->to[kept++] = r->to[i];
    }
    r->n = kept;
    for (size_t i = 1; i < kept; i++)
        if (r->to[i] < r->to[i - 1])
            r->to[i] = r->to[i - 1];
}

static enum pf_status
nfc(struct pf_ntext *t, const struct text *in, struct pf_err *err)
{
    size_t done = 0, i = 0, n, from;
    uint32_t c;

    while ((i = skip_low(in, i)) < in->len) {
        n = char_at(in, i, &c);
        if (!n || !(pf_uc_of(c)->flags & PF_UC_JOINS)) {
            i += n ? n : 1;
            continue;
        }
        from = char_before(in, i);
        do {
            i += n;
            n = i < in->len ? char_at(in, i, &c) : 0;
        } while (n && (pf_uc_of(c)->flags & PF_UC_JOINS));
        if (!copy(t, in, done, from) || !gather(t, in, from, i))
            return pf_fail_mem(err);
        compose(&t->run);
        if (!put_run(t))
            return pf_fail_mem(err);
        done = i;
    }
    return copy(t, in, done, in->len) ? PF_OK : pf_fail_mem(err);
}

/* --- Strings. */

static bool
is_space_at(const struct text *in, size_t i, size_t *n)
{
    uint32_t c = 0;

    *n = char_at(in, i, &c);
    return *n && (pf_uc_of(c)->flags & PF_UC_SPACE);
}

static enum pf_status
strip(struct pf_ntext *t, const struct text *in, bool left, bool right,
    struct pf_err *err)
{
    size_t i = 0, j = in->len, at, n;

    while (left && i < j && is_space_at(in, i, &n))
        i += n;
    while (right && j > i && (at = char_before(in, j)) < j
        && is_space_at(in, at, &n))
        j = at;
    return copy(t, in, i, j) ? PF_OK : pf_fail_mem(err);
}

static enum pf_status
prepend(struct pf_ntext *t, const struct text *in,
    const struct pf_norm_step *s, struct pf_err *err)
{
    if (in->len) {
        if (!reserve(t, s->a_len))
            return pf_fail_mem(err);
        put(t, s->a, s->a_len, from_of(in, 0), from_of(in, 0));
    }
    return copy(t, in, 0, in->len) ? PF_OK : pf_fail_mem(err);
}

/*
 * border[k] is the length of the longest string, shorter than k + 1, that the
 * first k + 1 bytes both begin and end with (Knuth, Morris and Pratt 1977).
 */
static bool
make_border(struct pf_ntext *t, const char *a, size_t n)
{
    size_t k = 0;

    if (!pf_grow(&t->border, &t->border_cap, n, sizeof *t->border))
        return false;
    t->border[0] = 0;
    for (size_t i = 1; i < n; i++) {
        while (k && a[i] != a[k])
            k = t->border[k - 1];
        k += a[i] == a[k];
        t->border[i] = k;
    }
    return true;
}

/* Where the string is from i on; in->len if it is not. */
static size_t
find(const struct pf_ntext *t, const struct text *in, size_t i, const char *a,
    size_t n)
{
    const char *p;
    size_t k = 0;

    for (; i < in->len; i++) {
        if (k == 0) {
            p = memchr(in->p + i, a[0], in->len - i);
            if (!p)
                break;
            i = (size_t)(p - in->p);
        }
        while (k && in->p[i] != a[k])
            k = t->border[k - 1];
        k += in->p[i] == a[k];
        if (k == n)
            return i + 1 - n;
    }
    return in->len;
}

static enum pf_status
replace(struct pf_ntext *t, const struct text *in,
    const struct pf_norm_step *s, struct pf_err *err)
{
    size_t i = 0, at;

    if (s->a_len == 0)
        return copy(t, in, 0, in->len) ? PF_OK : pf_fail_mem(err);
    if (!make_border(t, s->a, s->a_len))
        return pf_fail_mem(err);
    while ((at = find(t, in, i, s->a, s->a_len)) < in->len) {
        if (!copy(t, in, i, at) || !reserve(t, s->b_len))
            return pf_fail_mem(err);
        i = at + s->a_len;
        put(t, s->b, s->b_len, from_of(in, at), to_of(in, i));
    }
    return copy(t, in, i, in->len) ? PF_OK : pf_fail_mem(err);
}

/* Then what it is put in, or taken out of, is whole characters. */
static enum pf_status
check_strings(const struct pf_norm_step *s, struct pf_err *err)
{
    if (pf_utf8_span(s->a, s->a_len) != s->a_len
        || pf_utf8_span(s->b, s->b_len) != s->b_len)
        return pf_fail(err, PF_EFORMAT,
            "a string of the normalizer is not UTF-8");
    return PF_OK;
}

static enum pf_status
run_step(const struct pf_norm_step *s, struct pf_ntext *t,
    const struct text *in, struct pf_err *err)
{
    switch (s->kind) {
    case PF_NORM_NFC:
        return nfc(t, in, err);
    case PF_NORM_STRIP:
        return strip(t, in, s->left, s->right, err);
    case PF_NORM_PREPEND:
        return check_strings(s, err) ? PF_EFORMAT : prepend(t, in, s, err);
    case PF_NORM_REPLACE:
        return check_strings(s, err) ? PF_EFORMAT : replace(t, in, s, err);
    case PF_NORM_NFD:
    case PF_NORM_LOWERCASE:
    case PF_NORM_STRIP_ACCENTS:
    case PF_NORM_BERT:
        break;
    }
    return map(t, in, mapping_of(s), err);
}

enum pf_status
pf_normalize(const struct pf_norm_step *steps, size_t n, struct pf_ntext *t,
    const char *text, size_t len, struct pf_err *err)
{
    struct text in = { len ? text : "", len, NULL, NULL };
    struct pf_ntext_last now;
    enum pf_status st = PF_OK;

    pf_buf_clear(&t->bytes);
    if (n == 0 && !copy(t, &in, 0, len))
        return pf_fail_mem(err);
    for (size_t i = 0; i < n && !st; i++) {
        if (i) {
            now = (struct pf_ntext_last){ t->bytes, t->from, t->to, t->cap };
            t->bytes = t->last.bytes;
            t->from = t->last.from;
            t->to = t->last.to;
            t->cap = t->last.cap;
            t->last = now;
            in = (struct text){ now.bytes.data, now.bytes.len,
                t->track ? now.from : NULL, t->track ? now.to : NULL };
            pf_buf_clear(&t->bytes);
        }
        st = run_step(&steps[i], t, &in, err);
    }
    return st;
}
