/*
 * A word is looked up whole, then shorter and shorter, until a token is found;
 * what it leaves is the next word to look up, with the prefix put before it
 * where the bytes that are done stand.  Most words are tokens, and the others
 * are at most 100 characters, so nothing quicker in the worst case (Song et
 * al. 2021) is worth its tables.  One table is: which lengths tokens have that
 * begin with the same bytes, by a hash of them.  It spares most look-ups that
 * would fail.
 */
#include "wordpiece.h"

#include <stdlib.h>
#include <string.h>

#include <pipeformer/utf8.h>

#include "unicode.h"

enum {
    HEAD = 3, /* bytes by which lengths are known */
    HEAD_BITS = 12,
    HEADS = 1 << HEAD_BITS,
    LENGTHS = 64, /* all from the last on are one */
};

struct pf_wordpiece {
    const struct pf_vocab *vocab;
    char *prefix;
    size_t prefix_len, max_chars, longest[2]; /* without the prefix */
    uint32_t unk;
    uint64_t lengths[2][HEADS]; /* at the beginning of a word, within it */
};

/* --- Words. */

/* Bytes that are a space, punctuation, and not ASCII. */
enum { SPACE = 1, PUNCT, MORE };

#define S SPACE
#define P PUNCT
#define M MORE
#define M16 M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M
static const unsigned char kinds[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, S, S, S, S, S, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    S, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, P, P, P, P, P, P,
    P, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, P, P, P, P, P,
    P, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, P, P, P, P, 0,
    M16, M16, M16, M16, M16, M16, M16, M16,
};
#undef S
#undef P
#undef M
#undef M16

void
pf_bert_words_begin(struct pf_bert_words *w, const char *text, size_t len)
{
    w->p = len ? text : "";
    w->end = w->p + len;
}

/* The kind and the length of the character at p; 0 and 1 for a byte that is
 * none. */
static inline unsigned
kind_at(const char *p, const char *end, size_t *len)
{
    unsigned kind = kinds[(unsigned char)*p], flags;

    *len = 1;
    if (kind != MORE)
        return kind;
    *len = pf_utf8_char(p, (size_t)(end - p));
    if (*len == 0) {
        *len = 1;
        return 0;
    }
    flags = pf_uc_of(pf_utf8_decode(p, len))->flags;
    return flags & PF_UC_SPACE ? SPACE : flags & PF_UC_BERT_PUNCT ? PUNCT : 0;
}

bool
pf_bert_words_next(struct pf_bert_words *w, const char **word, size_t *len)
{
    const char *p = w->p, *end = w->end;
    unsigned kind = SPACE;
    size_t n = 0;

    for (; p < end; p += n)
        if ((kind = kind_at(p, end, &n)) != SPACE)
            break;
    *word = p;
    if (p == end) {
        w->p = end;
        return false;
    }
    p += n;
    if (kind == 0)
        for (; p < end; p += n) {
            while (p < end && kinds[(unsigned char)*p] == 0)
                p++;
            if (p == end || kind_at(p, end, &n) != 0)
                break;
        }
    *len = (size_t)(p - *word);
    w->p = p;
    return true;
}

/* --- The tokens of a word. */

static size_t
head_of(const char *p)
{
    uint32_t v = (uint32_t)(unsigned char)p[0] << 16
        | (uint32_t)(unsigned char)p[1] << 8 | (unsigned char)p[2];

    return v * 0x9e3779b1u >> (32 - HEAD_BITS);
}

static uint64_t
length_bit(size_t len)
{
    return (uint64_t)1 << (len < LENGTHS ? len : LENGTHS - 1);
}

/* These bytes are a token at the beginning of a word, or within one. */
static void
note(struct pf_wordpiece *wp, int within, const char *p, size_t len)
{
    if (len > wp->longest[within])
        wp->longest[within] = len;
    if (len >= HEAD)
        wp->lengths[within][head_of(p)] |= length_bit(len);
}

enum pf_status
pf_wordpiece_new(struct pf_wordpiece **out, const struct pf_vocab *v,
    const char *prefix, size_t prefix_len, uint32_t unk, size_t max_chars,
    struct pf_err *err)
{
    struct pf_wordpiece *wp = calloc(1, sizeof *wp);
    const char *p;
    size_t len, n = prefix_len;

    *out = NULL;
    if (!wp || !(wp->prefix = malloc(n ? n : 1))) {
        free(wp);
        return pf_fail_mem(err);
    }
    if (n)
        memcpy(wp->prefix, prefix, n);
    wp->prefix_len = n;
    wp->vocab = v;
    wp->unk = unk;
    wp->max_chars = max_chars;
    for (size_t id = 0; id < pf_vocab_size(v); id++) {
        p = pf_vocab_bytes(v, (uint32_t)id, &len);
        if (!p)
            continue;
        note(wp, 0, p, len);
        if (len >= n && (n == 0 || memcmp(p, wp->prefix, n) == 0))
            note(wp, 1, p + n, len - n);
    }
    *out = wp;
    return PF_OK;
}

void
pf_wordpiece_free(struct pf_wordpiece *wp)
{
    if (wp) {
        free(wp->prefix);
        free(wp);
    }
}

void
pf_wordpiece_work_fini(struct pf_wordpiece_work *work)
{
    pf_buf_fini(&work->word);
}

/*
 * The longest token at p, at most `len` bytes, or 0.  What stands behind it is
 * not in the middle of a character: a vocabulary may have tokens that are no
 * UTF-8.  Within a word the prefix stands before p.
 */
static size_t
longest(const struct pf_wordpiece *wp, int within, const char *p, size_t len,
    uint32_t *id)
{
    size_t skip = within ? wp->prefix_len : 0, n = len;
    uint64_t lengths = ~(uint64_t)0;

    if (n > wp->longest[within])
        n = wp->longest[within];
    if (n >= HEAD)
        lengths = wp->lengths[within][head_of(p)] | ((1u << HEAD) - 1);
    for (; n; n--)
        if ((lengths & length_bit(n))
            && (n == len || ((unsigned char)p[n] & 0xc0) != 0x80)
            && pf_vocab_find(wp->vocab, p - skip, n + skip, id))
            break;
    return n;
}

static bool
is_too_long(const struct pf_wordpiece *wp, const char *word, size_t len)
{
    size_t chars = 0, n;

    if (len <= wp->max_chars)
        return false;
    for (size_t i = 0; i < len && chars <= wp->max_chars; i += n) {
        n = pf_utf8_char(word + i, len - i);
        n = n ? n : 1;
        chars++;
    }
    return chars > wp->max_chars;
}

/* All tokens of the word at p; false if there are none for some place. */
static bool
split(const struct pf_wordpiece *wp, char *p, size_t len, uint32_t *ids,
    size_t *ends, size_t *n)
{
    size_t at = 0, got;

    for (*n = 0; at < len; at += got) {
        if (at && wp->prefix_len)
            memcpy(p + at - wp->prefix_len, wp->prefix, wp->prefix_len);
        got = longest(wp, at != 0, p + at, len - at, &ids[*n]);
        if (!got)
            return false;
        if (ends)
            ends[*n] = at + got;
        ++*n;
    }
    return true;
}

enum pf_status
pf_wordpiece_split(const struct pf_wordpiece *wp,
    struct pf_wordpiece_work *work, const char *word, size_t len,
    uint32_t *ids, size_t *ends, size_t *n, struct pf_err *err)
{
    bool found = false;
    char *room;

    if (!is_too_long(wp, word, len)) {
        found = len <= wp->longest[0]
            && pf_vocab_find(wp->vocab, word, len, ids);
        if (found) {
            if (ends)
                ends[0] = len;
            *n = 1;
            return PF_OK;
        }
        pf_buf_clear(&work->word);
        room = len > SIZE_MAX / 2 ? NULL
            : pf_buf_room(&work->word, wp->prefix_len + len);
        if (!room)
            return pf_fail_mem(err);
        memcpy(room + wp->prefix_len, word, len);
        found = split(wp, room + wp->prefix_len, len, ids, ends, n);
    }
    if (!found) {
        ids[0] = wp->unk;
        if (ends)
            ends[0] = len;
        *n = 1;
    }
    return PF_OK;
}

/* --- Back to text. */

/* Each a in the n bytes at s becomes b, which is not longer: the new n. */
static size_t
replace(char *s, size_t n, const char *a, const char *b)
{
    size_t a_len = strlen(a), b_len = strlen(b), out = 0, i = 0;

    while (i < n) {
        if (n - i >= a_len && memcmp(s + i, a, a_len) == 0) {
            memcpy(s + out, b, b_len);
            out += b_len;
            i += a_len;
        } else {
            s[out++] = s[i++];
        }
    }
    return out;
}

void
pf_wordpiece_decode(struct pf_buf *text, const char *token, size_t len,
    bool first, const char *prefix, size_t prefix_len, bool clean_up)
{
    static const char *const changes[][2] = {
        { " .", "." }, { " ?", "?" }, { " !", "!" }, { " ,", "," },
        { " ' ", "'" }, { " n't", "n't" }, { " 'm", "'m" },
        { " do not", " don't" }, { " 's", "'s" }, { " 've", "'ve" },
        { " 're", "'re" },
    };
    size_t from = text->len, n;
    char *s;

    if (!first) {
        if (len >= prefix_len
            && (prefix_len == 0 || memcmp(token, prefix, prefix_len) == 0)) {
            token += prefix_len;
            len -= prefix_len;
        } else {
            pf_buf_addc(text, ' ');
        }
    }
    pf_buf_add(text, token, len);
    if (!clean_up || text->failed || text->len == from)
        return;
    s = text->data + from;
    n = text->len - from;
    for (size_t k = 0; k < sizeof changes / sizeof *changes; k++)
        n = replace(s, n, changes[k][0], changes[k][1]);
    text->len = from + n;
}
