/*
 * Encoding: a text is parted at the added tokens that are looked for, each
 * part is normalized, parted again at those that are looked for in normalized
 * text, and cut into pieces (pieces.h).
 *
 * The places of ids are followed through all that: a piece lies in a `view`,
 * which says where its bytes came from.
 */
#include "pieces.h"

#include <stdlib.h>
#include <string.h>

#include <pipeformer/utf8.h>

#include "unicode.h"

enum {
    BATCH = 256,
    SCANNED = 1024, /* pieces that a scanner makes at a time */
    TOGETHER = 1 << 16, /* bytes of texts that are encoded together */
};

/*
 * Bytes that stand for a part of the text: `lead` bytes that were put in
 * front, then those of the normalized part `n` from `skip` on, which came from
 * the text's at `base`; or without n, the text's own.
 */
struct view {
    const char *bytes;
    size_t lead, skip, base;
    const struct pf_ntext *n;
};

/* Added tokens that are looked for, by their first byte and length. */
struct found {
    struct pf_span text; /* normalized, where that is what is looked through */
    const struct pf_added *token;
};

struct finder {
    struct found *tokens; /* sorted by text */
    size_t n;
    struct pf_arena mem; /* of normalized texts */
    bool first[256];
    size_t *lens, n_lens; /* each once, longest first */
};

struct pf_encoder {
    const struct pf_tokenizer *tok;
    struct pf_pieces pieces;
    struct pf_splitter **splitters; /* one for each cut by a pattern */
    struct pf_ntext norm;
    struct pf_buf *spaced; /* of each cut: a part with a space in front */
    bool *active;
    bool ready; /* the finders are made for what is active */
    struct finder raw, normal;
    enum pf_scan scan; /* if that is all there is to do (scan, below) */
};

static void
finder_fini(struct finder *f)
{
    free(f->tokens);
    free(f->lens);
    pf_arena_fini(&f->mem);
    *f = (struct finder){ 0 };
}

enum pf_status
pf_encoder_new(struct pf_encoder **out, const struct pf_tokenizer *tok,
    struct pf_err *err)
{
    struct pf_encoder *enc = calloc(1, sizeof *enc);
    enum pf_status st = PF_OK;

    *out = NULL;
    if (!enc)
        return pf_fail_mem(err);
    enc->tok = enc->pieces.tok = tok;
    enc->active = calloc(tok->n_added + 1, sizeof *enc->active);
    enc->splitters = calloc(tok->n_cuts + 1, sizeof *enc->splitters);
    enc->spaced = calloc(tok->n_cuts + 1, sizeof *enc->spaced);
    if (!enc->active || !enc->splitters || !enc->spaced)
        st = pf_fail_mem(err);
    for (size_t i = 0; i < tok->n_cuts && !st; i++)
        if (tok->cuts[i].pretok)
            st = pf_splitter_new(&enc->splitters[i], tok->cuts[i].pretok, err);
    for (size_t i = 0; i < tok->n_added && !st; i++)
        enc->active[i] = !tok->added[i].special;
    if (st)
        pf_encoder_free(enc);
    else
        *out = enc;
    return st;
}

void
pf_encoder_free(struct pf_encoder *enc)
{
    if (enc) {
        for (size_t i = 0; enc->splitters && i < enc->tok->n_cuts; i++)
            pf_splitter_free(enc->splitters[i]);
        for (size_t i = 0; enc->spaced && i < enc->tok->n_cuts; i++)
            pf_buf_fini(&enc->spaced[i]);
        free(enc->splitters);
        free(enc->active);
        finder_fini(&enc->raw);
        finder_fini(&enc->normal);
        pf_ntext_fini(&enc->norm);
        free(enc->spaced);
        pf_pieces_fini(&enc->pieces);
        free(enc);
    }
}

void
pf_encoder_special_all(struct pf_encoder *enc)
{
    for (size_t i = 0; i < enc->tok->n_added; i++)
        enc->active[i] = true;
    enc->ready = false;
}

enum pf_status
pf_encoder_special_add(struct pf_encoder *enc, const char *text, size_t len,
    struct pf_err *err)
{
    const struct pf_added *a;

    for (size_t i = 0; i < enc->tok->n_added; i++) {
        a = &enc->tok->added[i];
        if (a->special && a->text.len == len
            && memcmp(a->text.data, text, len) == 0) {
            enc->active[i] = true;
            enc->ready = false;
            return PF_OK;
        }
    }
    return pf_fail(err, PF_ERANGE, "there is no special token '%s'",
        pf_show(text, len).s);
}

void
pf_encoder_track(struct pf_encoder *enc)
{
    enc->pieces.track = enc->norm.track = true;
}

/* --- Added tokens --- */

static int
compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int c = memcmp(a, b, a_len < b_len ? a_len : b_len);

    return c ? c : (a_len > b_len) - (a_len < b_len);
}

static int
by_text(const void *a, const void *b)
{
    const struct found *x = a, *y = b;

    return compare(x->text.data, x->text.len, y->text.data, y->text.len);
}

static int
longest_first(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;

    return (x < y) - (x > y);
}

/* The text of a token as it stands in normalized text. */
static enum pf_status
normalized(struct pf_encoder *enc, struct finder *f, struct pf_span *text,
    struct pf_err *err)
{
    const struct pf_tokenizer *tok = enc->tok;
    enum pf_status st = pf_normalize(tok->steps, tok->n_steps, &enc->norm,
        text->data, text->len, err);

    if (st)
        return st;
    text->len = enc->norm.bytes.len;
    text->data = pf_arena_copy(&f->mem, text->len ? enc->norm.bytes.data : "",
        text->len);
    return text->data ? PF_OK : pf_fail_mem(err);
}

static enum pf_status
finder_make(struct finder *f, struct pf_encoder *enc, bool normal,
    struct pf_err *err)
{
    const struct pf_tokenizer *tok = enc->tok;
    const struct pf_added *a;
    enum pf_status st = PF_OK;
    struct pf_span text;
    size_t n = 0;

    finder_fini(f);
    f->tokens = calloc(tok->n_added + 1, sizeof *f->tokens);
    f->lens = calloc(tok->n_added + 1, sizeof *f->lens);
    if (!f->tokens || !f->lens)
        return pf_fail_mem(err);
    for (size_t i = 0; i < tok->n_added && !st; i++) {
        a = &tok->added[i];
        text = a->text;
        if (!enc->active[i] || (a->normalized && tok->n_steps) != normal)
            continue;
        if (normal)
            st = normalized(enc, f, &text, err);
        if (text.len == 0)
            continue;
        f->first[(unsigned char)text.data[0]] = true;
        f->lens[f->n] = text.len;
        f->tokens[f->n++] = (struct found){ text, a };
    }
    qsort(f->tokens, f->n, sizeof *f->tokens, by_text);
    qsort(f->lens, f->n, sizeof *f->lens, longest_first);
    for (size_t i = 0; i < f->n; i++)
        if (n == 0 || f->lens[n - 1] != f->lens[i])
            f->lens[n++] = f->lens[i];
    f->n_lens = n;
    return st;
}

static const struct pf_added *
finder_has(const struct finder *f, const char *text, size_t len)
{
    size_t lo = 0, hi = f->n, mid;
    int c;

    while (lo < hi) {
        mid = lo + (hi - lo) / 2;
        c = compare(f->tokens[mid].text.data, f->tokens[mid].text.len, text,
            len);
        if (c == 0)
            return f->tokens[mid].token;
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

static bool
is_word(uint32_t c)
{
    uint32_t next;

    return c == '_' || (pf_class_run(c, &next)
        & (PF_CLASS_LETTER | PF_CLASS_NUMBER)) || pf_uc_of(c)->flags
        & PF_UC_MARK;
}

/* The character that ends before p, or begins at p; 0 where there is none. */
static uint32_t
char_before(const char *text, const char *p)
{
    size_t len;

    for (size_t n = 1; n <= 4 && n <= (size_t)(p - text); n++)
        if (pf_utf8_char(p - n, n) == n)
            return pf_utf8_decode(p - n, &len);
    return 0;
}

static uint32_t
char_at(const char *p, const char *end)
{
    size_t len;

    return pf_utf8_char(p, (size_t)(end - p)) ? pf_utf8_decode(p, &len) : 0;
}

/* How many bytes of white space end before p, or begin at p. */
static size_t
space_before(const char *text, const char *p)
{
    for (size_t n = 1; n <= 4 && n <= (size_t)(p - text); n++)
        if (pf_utf8_char(p - n, n) == n)
            return pf_uc_of(char_before(text, p))->flags & PF_UC_SPACE ? n : 0;
    return 0;
}

static size_t
space_at(const char *p, const char *end)
{
    return pf_uc_of(char_at(p, end))->flags & PF_UC_SPACE
        ? pf_utf8_char(p, (size_t)(end - p)) : 0;
}

/* Where in a text one is with it: what has been taken, and looked through. */
struct place {
    size_t taken, seen;
    size_t from, to; /* of the token that was found */
};

/*
 * The next token that is looked for, the longest of its place; it takes
 * text[from] to text[to - 1], white space that goes with it included.  Another
 * one may stand in that white space, and then takes nothing.
 */
static const struct pf_added *
find(const struct finder *f, const char *text, size_t len, struct place *at)
{
    const struct pf_added *a;
    size_t n;

    for (size_t i = at->seen; f->n && i < len; i++) {
        if (!f->first[(unsigned char)text[i]])
            continue;
        for (size_t k = 0; k < f->n_lens; k++) {
            n = f->lens[k];
            a = n <= len - i ? finder_has(f, text + i, n) : NULL;
            if (!a || (a->single_word
                    && (is_word(char_before(text, text + i))
                        || is_word(char_at(text + i + n, text + len)))))
                continue;
            at->from = i;
            at->seen = at->to = i + n;
            if (at->to < at->taken) /* up to there it is white space */
                at->to = at->taken;
            while (a->lstrip && at->from > at->taken
                && (n = space_before(text, text + at->from)))
                at->from -= n;
            while (a->rstrip && at->to < len
                && (n = space_at(text + at->to, text + len)))
                at->to += n;
            if (at->from < at->taken)
                at->from = at->taken;
            return a;
        }
    }
    return NULL;
}

/* --- Pieces --- */

/* Where a byte of the view came from: its beginning, or its end. */
static size_t
source(const struct view *v, size_t i, bool end)
{
    if (i < v->lead || (end && i == v->lead)) {
        i = v->skip;
        end = false;
    } else {
        i += v->skip - v->lead;
    }
    if (!v->n)
        return v->base + i;
    if (!v->n->track)
        return 0;
    if (end)
        return v->base + v->n->to[i - 1];
    return v->base + (i < v->n->bytes.len ? v->n->from[i]
        : i ? v->n->to[i - 1] : 0);
}

/* The ranges of the ids from `first` on, from the view's to the text's. */
static void
locate(struct pf_encoder *enc, size_t first, const struct view *v)
{
    size_t *s = enc->pieces.spans;

    for (size_t i = first; enc->pieces.track && i < enc->pieces.n; i++) {
        s[2 * i] = source(v, s[2 * i], false);
        s[2 * i + 1] = source(v, s[2 * i + 1], true);
    }
}

static enum pf_status
pieces(struct pf_encoder *enc, const struct view *v, size_t len, size_t begin,
    const size_t *ends, size_t n, struct pf_err *err)
{
    size_t first = enc->pieces.n;
    enum pf_status st = pf_pieces_encode(&enc->pieces, v->bytes, len, begin,
        ends, n, 0, err);

    if (!st)
        locate(enc, first, v);
    return st;
}

static enum pf_status cut(struct pf_encoder *enc, size_t level, struct view v,
    size_t len, bool first, struct pf_err *err);

/* Pieces of this level, cut on by the next one or encoded. */
static enum pf_status
next_level(struct pf_encoder *enc, size_t level, const struct view *v,
    size_t len, size_t begin, const size_t *ends, size_t n, bool first,
    struct pf_err *err)
{
    enum pf_status st = PF_OK;
    struct view part;
    size_t from = begin;

    if (level + 1 == enc->tok->n_cuts)
        return pieces(enc, v, len, begin, ends, n, err);
    for (size_t i = 0; i < n && !st; from = ends[i++]) {
        part = *v;
        part.bytes += from;
        part.skip += from > v->lead ? from - v->lead : 0;
        part.lead -= from < v->lead ? from : v->lead;
        st = cut(enc, level + 1, part, ends[i] - from, first && from == 0,
            err);
    }
    return st;
}

/* Valid UTF-8, cut by a pattern. */
static enum pf_status
by_pattern(struct pf_encoder *enc, size_t level, const struct view *v,
    size_t len, bool first, struct pf_err *err)
{
    struct pf_splitter *s = enc->splitters[level];
    size_t ends[BATCH], n, from = 0;
    enum pf_status st;

    pf_splitter_begin(s, v->bytes, len, true);
    while (!(st = pf_splitter_cut(s, ends, BATCH, &n, err)) && n) {
        st = next_level(enc, level, v, len, from, ends, n, first, err);
        if (st)
            break;
        from = ends[n - 1];
    }
    return st;
}

static enum pf_status
by_bert(struct pf_encoder *enc, size_t level, const struct view *v,
    size_t len, bool first, struct pf_err *err)
{
    struct pf_bert_words w;
    size_t n, end, word_len;
    enum pf_status st = PF_OK;
    const char *word;

    pf_bert_words_begin(&w, v->bytes, len);
    while (!st && pf_bert_words_next(&w, &word, &word_len)) {
        n = (size_t)(word - v->bytes);
        end = n + word_len;
        st = next_level(enc, level, v, len, n, &end, 1, first && n == 0, err);
    }
    return st;
}

/* A new piece at each U+2581. */
static enum pf_status
by_metaspace(struct pf_encoder *enc, size_t level, const struct view *v,
    size_t len, bool first, struct pf_err *err)
{
    enum pf_status st = PF_OK;
    size_t from = 0, end;

    for (size_t i = 1; i <= len && !st; i++) {
        if (i < len && !(enc->tok->cuts[level].split && len - i >= 3
                && memcmp(v->bytes + i, "\xe2\x96\x81", 3) == 0))
            continue;
        end = i;
        st = next_level(enc, level, v, len, from, &end, 1, first, err);
        from = i;
    }
    return st;
}

/* The view with `lead` in front, in memory of this level of cuts. */
static enum pf_status
put_in_front(struct pf_encoder *enc, size_t level, struct view *v, size_t *len,
    const char *lead, struct pf_err *err)
{
    struct pf_buf *b = &enc->spaced[level];
    size_t n = strlen(lead);

    pf_buf_clear(b);
    pf_buf_add(b, lead, n);
    pf_buf_add(b, v->bytes, *len);
    if (pf_buf_check(b, err))
        return PF_ENOMEM;
    v->bytes = b->data;
    v->lead += n;
    *len += n;
    return pf_pieces_room(&enc->pieces, *len, err);
}

/* Recursion goes as deep as a tokenizer has cuts. */
static enum pf_status
cut(struct pf_encoder *enc, size_t level, struct view v, size_t len,
    bool first, struct pf_err *err)
{
    const struct pf_cut *c = &enc->tok->cuts[level];
    bool meta = c->kind == PF_CUT_METASPACE;
    const char *lead = meta ? "\xe2\x96\x81" : " ";
    size_t n = strlen(lead);
    enum pf_status st;

    if (c->add_space && (first || !c->first_only)
        && (len < n || memcmp(v.bytes, lead, n) != 0)) {
        st = put_in_front(enc, level, &v, &len, lead, err);
        if (st)
            return st;
    }
    switch (c->kind) {
    case PF_CUT_PATTERN: return by_pattern(enc, level, &v, len, first, err);
    case PF_CUT_BERT: return by_bert(enc, level, &v, len, first, err);
    default: return by_metaspace(enc, level, &v, len, first, err);
    }
}

/*
 * A part without added tokens.  Where a pattern cuts, runs of bytes that are
 * no UTF-8 are pieces, and part the text.
 */
static enum pf_status
plain(struct pf_encoder *enc, struct view v, size_t len, bool first,
    struct pf_err *err)
{
    enum pf_status st = pf_pieces_room(&enc->pieces, len, err);
    bool parts = false;
    size_t n, end;

    for (size_t i = 0; i < enc->tok->n_cuts; i++)
        parts |= enc->tok->cuts[i].kind == PF_CUT_PATTERN;
    while (len && !st) {
        n = parts ? pf_utf8_span(v.bytes, len) : len;
        if (n && enc->tok->n_cuts) {
            st = cut(enc, 0, v, n, first, err);
        } else {
            while (n < len && !pf_utf8_char(v.bytes + n, len - n))
                n++;
            end = n;
            st = pieces(enc, &v, n, 0, &end, 1, err);
        }
        v.bytes += n;
        v.skip += n;
        len -= n;
        first = false;
    }
    return st;
}

/* A part of the text: normalized, then parted at tokens of that text. */
static enum pf_status
part(struct pf_encoder *enc, const char *text, size_t len, size_t base,
    struct pf_err *err)
{
    const struct pf_tokenizer *tok = enc->tok;
    struct view v = { .bytes = text, .base = base };
    const struct pf_added *a = NULL;
    struct place at = { 0 };
    enum pf_status st = PF_OK;
    bool first = base == 0;
    struct view rest;
    size_t to;

    if (tok->n_steps && len) {
        st = pf_normalize(tok->steps, tok->n_steps, &enc->norm, text, len,
            err);
        if (st)
            return st;
        v.bytes = enc->norm.bytes.data;
        len = enc->norm.bytes.len;
        v.n = &enc->norm;
    }
    do {
        a = tok->n_steps ? find(&enc->normal, v.bytes, len, &at) : NULL;
        to = a ? at.from : len;
        rest = v;
        rest.bytes += at.taken;
        rest.skip += at.taken;
        st = plain(enc, rest, to - at.taken, first && at.taken == 0, err);
        if (a && !st)
            st = pf_pieces_add(&enc->pieces, a->id,
                source(&v, at.from, false), source(&v, at.to, true), err);
        at.taken = at.to;
    } while (a && !st);
    return st;
}

/* Made anew after a change of what is active. */
static enum pf_status
make_ready(struct pf_encoder *enc, struct pf_err *err)
{
    const struct pf_tokenizer *tok = enc->tok;
    enum pf_status st;

    if (enc->ready)
        return PF_OK;
    st = finder_make(&enc->raw, enc, false, err);
    if (!st)
        st = finder_make(&enc->normal, enc, true, err);
    enc->ready = !st;
    enc->scan = PF_SCAN_NONE;
    if (tok->model == PF_MODEL_BYTES && tok->n_cuts == 1 && !tok->n_steps
        && !tok->cuts[0].add_space && tok->cuts[0].pretok && !enc->raw.n)
        enc->scan = pf_pretok_scan(tok->cuts[0].pretok);
    return st;
}

/*
 * The short way of the common case: valid UTF-8 that a scanner cuts, byte for
 * byte as it stands.
 */
static enum pf_status
scan(struct pf_encoder *enc, const char *text, size_t len, struct pf_err *err)
{
    enum pf_status st = pf_pieces_room(&enc->pieces, len, err);
    size_t ends[SCANNED], from = 0, n;

    while (from < len && !st) {
        n = pf_scan(enc->scan, text + from, len - from, true, ends, SCANNED);
        st = pf_pieces_encode(&enc->pieces, text + from, len - from, 0, ends,
            n, from, err);
        from += ends[n - 1];
    }
    return st;
}

enum pf_status
pf_encode(struct pf_encoder *enc, const char *text, size_t len,
    const uint32_t **ids, size_t *n, struct pf_err *err)
{
    const struct pf_added *a = NULL;
    enum pf_status st = enc->ready ? PF_OK : make_ready(enc, err);
    struct place at = { 0 };
    bool plainly = enc->scan && !st && pf_utf8_span(text, len) == len;

    *ids = NULL;
    *n = 0;
    enc->pieces.n = 0;
    if (plainly)
        st = scan(enc, text, len, err);
    while (!plainly && !st) {
        a = find(&enc->raw, text, len, &at);
        st = part(enc, text + at.taken, (a ? at.from : len) - at.taken,
            at.taken, err);
        if (st || !a)
            break;
        st = pf_pieces_add(&enc->pieces, a->id, at.from, at.to, err);
        at.taken = at.to;
    }
    *ids = enc->pieces.ids;
    *n = st ? 0 : enc->pieces.n;
    return st;
}

/* How much of a block of texts is whole ones of valid UTF-8, not too much. */
static size_t
valid_texts(const char *block, size_t len, char delimiter)
{
    size_t n = pf_utf8_span(block, len < TOGETHER ? len : TOGETHER);

    while (n < len && n && block[n - 1] != delimiter)
        n--;
    return n;
}

/*
 * The short way again.  A delimiter is a piece by itself and in no other, so
 * the token that is its byte is no other piece's: it can stand for it.
 */
enum pf_status
pf_encode_texts(struct pf_encoder *enc, const char *block, size_t len,
    char delimiter, size_t *used, const uint32_t **ids, size_t *n,
    uint32_t *mark, struct pf_err *err)
{
    enum pf_status st = enc->ready ? PF_OK : make_ready(enc, err);
    size_t ends[SCANNED], from = 0, k;

    *ids = NULL;
    *n = *used = 0;
    if (st || !enc->scan || !enc->tok->all_bytes || enc->pieces.track
        || (unsigned char)delimiter >= ' ')
        return st;
    *mark = enc->tok->byte[(unsigned char)delimiter];
    len = valid_texts(block, len, delimiter);
    st = pf_pieces_room(&enc->pieces, len, err);
    for (enc->pieces.n = 0; from < len && !st; from += ends[k - 1]) {
        k = pf_scan_texts(enc->scan, block + from, len - from, delimiter,
            ends, SCANNED);
        st = pf_pieces_encode(&enc->pieces, block + from, len - from, 0, ends,
            k, from, err);
    }
    *used = st ? 0 : len;
    *ids = enc->pieces.ids;
    *n = st ? 0 : enc->pieces.n;
    return st;
}

/* Whether added tokens are looked for that reach across white space. */
static bool
is_plain(const struct pf_encoder *enc)
{
    const struct pf_added *a;

    for (size_t i = 0; i < enc->tok->n_added; i++) {
        a = &enc->tok->added[i];
        if (!enc->active[i])
            continue;
        if (a->lstrip || a->rstrip || a->single_word)
            return false;
        for (size_t k = 0; k < a->text.len; k++)
            if (strchr(" \t\r\n", a->text.data[k]))
                return false;
    }
    return true;
}

/* Whether what becomes of a place in a text depends only on what is near. */
static bool
is_local(const struct pf_encoder *enc)
{
    const struct pf_tokenizer *tok = enc->tok;

    for (size_t i = 0; i < tok->n_steps; i++) {
        switch (tok->steps[i].kind) {
        case PF_NORM_NFC:
        case PF_NORM_NFD:
        case PF_NORM_LOWERCASE:
        case PF_NORM_STRIP_ACCENTS:
        case PF_NORM_BERT:
            break;
        default:
            return false;
        }
    }
    return tok->n_cuts == 1 && !tok->cuts[0].add_space && is_plain(enc);
}

static bool
is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
        || (c >= '0' && c <= '9');
}

/* Before a space behind a letter or digit, the known patterns cut. */
static size_t
pattern_border(const char *text, size_t len)
{
    for (size_t i = len; i-- > 1;)
        if (text[i] == ' ' && is_alnum(text[i - 1]))
            return i;
    return 0;
}

/* Behind white space, and if no token is looked for, behind what is a word of
 * its own. */
static size_t
word_border(const struct pf_encoder *enc, const char *text, size_t len)
{
    unsigned flags = enc->raw.n + enc->normal.n ? 0
        : PF_UC_BERT_PUNCT | PF_UC_BERT_CJK;

    for (size_t i = 0; i < enc->tok->n_steps; i++)
        if (enc->tok->steps[i].kind == PF_NORM_NFC)
            flags = 0; /* it joins a mark to what stands before it */
    for (size_t i = len; i-- > 1;)
        if (strchr(" \t\r\n", text[i - 1] ? text[i - 1] : 'x')
            || pf_uc_of(char_before(text, text + i))->flags & flags)
            return i;
    return 0;
}

size_t
pf_encoder_border(struct pf_encoder *enc, const char *text, size_t len)
{
    const struct pf_cut *c = enc->tok->cuts;

    if (make_ready(enc, NULL) || !is_local(enc))
        return 0;
    if (c->kind == PF_CUT_BERT)
        return word_border(enc, text, len);
    return c->kind == PF_CUT_PATTERN
        && pf_pretok_scan(c->pretok) != PF_SCAN_NONE
        ? pattern_border(text, len) : 0;
}

/*
 * Behind the last token that is looked for and is certain to be there; or
 * where, if there is none, one that more text may complete can begin.
 */
static bool
last_added(const struct pf_encoder *enc, const char *text, size_t len,
    size_t *at)
{
    size_t longest = enc->raw.n ? enc->raw.lens[0] : 1, end = 0;
    struct place p = { 0 };

    while (find(&enc->raw, text, len, &p) && len - p.from >= longest)
        end = p.to;
    *at = end ? end : len >= longest ? len - (longest - 1) : 0;
    return end != 0;
}

/*
 * Where the last run of a text begins, of valid UTF-8 or of other bytes; where
 * one ends and another begins it is parted in any case.  A character that is
 * not whole belongs to the run before it.
 */
static size_t
last_run(const char *text, size_t len, bool *valid)
{
    size_t at = 0, n;

    for (;;) {
        n = pf_utf8_span(text + at, len - at);
        *valid = true;
        if (at + n + pf_utf8_pending(text + at + n, len - at - n) == len)
            return at;
        at += n;
        for (n = at; n < len && !pf_utf8_char(text + n, len - n); n++)
            ;
        *valid = false;
        if (n + 3 >= len) /* the last bytes may be a character's beginning */
            return at;
        at = n;
    }
}

enum pf_status
pf_encode_some(struct pf_encoder *enc, const char *text, size_t len,
    size_t *used, const uint32_t **ids, size_t *n, struct pf_err *err)
{
    const struct pf_tokenizer *tok = enc->tok;
    enum pf_status st = make_ready(enc, err);
    size_t ends[BATCH], at, from = 0, k;
    bool valid;

    *ids = NULL;
    *n = *used = 0;
    if (st || tok->model != PF_MODEL_BYTES || tok->n_cuts != 1 || tok->n_steps
        || tok->cuts[0].add_space || enc->pieces.track || !is_plain(enc)
        || !tok->cuts[0].pretok || !pf_pretok_is_local(tok->cuts[0].pretok))
        return st;
    if (last_added(enc, text, len, &at)) {
        *used = at;
        return pf_encode(enc, text, at, ids, n, err);
    }
    len = at;
    enc->pieces.n = 0;
    at = last_run(text, len, &valid);
    st = plain(enc, (struct view){ .bytes = text }, at, true, err);
    len = valid && !st ? pf_utf8_span(text + at, len - at) : 0;
    if (!st)
        st = pf_pieces_room(&enc->pieces, len, err);
    if (!st)
        pf_splitter_begin(enc->splitters[0], text + at, len, false);
    while (!st && !(st = pf_splitter_cut(enc->splitters[0], ends, BATCH, &k,
            err)) && k) {
        st = pf_pieces_encode(&enc->pieces, text + at, len, from, ends, k, 0,
            err);
        from = ends[k - 1];
    }
    *used = at + from;
    *ids = enc->pieces.ids;
    *n = st ? 0 : enc->pieces.n;
    return st;
}

const size_t *
pf_encoder_spans(const struct pf_encoder *enc)
{
    return enc->pieces.spans;
}
