/*
 * Encoding: a text is parted at the added tokens that are looked for, each
 * part is normalized, parted again at those that are looked for in normalized
 * text, and cut into pieces (pieces.h).
 *
 * The places of ids are followed through all that: a piece lies in a `view`,
 * which says where its bytes came from.
 */
#include "encoder-private.h"

#include <stdlib.h>
#include <string.h>

#include <pipeformer/utf8.h>

enum {
    BATCH = 256,
    SCANNED = 1024, /* pieces that a scanner makes at a time */
    TOGETHER = 1 << 16, /* bytes of texts that are encoded together */
};

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
        pf_finder_fini(&enc->raw);
        pf_finder_fini(&enc->normal);
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

/* Where a byte of the view came from: its beginning, or its end. */
static size_t
source(const struct pf_view *v, size_t i, bool end)
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
locate(struct pf_encoder *enc, size_t first, const struct pf_view *v)
{
    size_t *s = enc->pieces.spans;

    for (size_t i = first; enc->pieces.track && i < enc->pieces.n; i++) {
        s[2 * i] = source(v, s[2 * i], false);
        s[2 * i + 1] = source(v, s[2 * i + 1], true);
    }
}

static enum pf_status
pieces(struct pf_encoder *enc, const struct pf_view *v, size_t len,
    size_t begin, const size_t *ends, size_t n, struct pf_err *err)
{
    size_t first = enc->pieces.n;
    enum pf_status st = pf_pieces_encode(&enc->pieces, v->bytes, len, begin,
        ends, n, 0, err);

    if (!st)
        locate(enc, first, v);
    return st;
}

static enum pf_status cut(struct pf_encoder *enc, size_t level,
    struct pf_view v, size_t len, bool first, struct pf_err *err);

/* Pieces of this level, cut on by the next one or encoded. */
static enum pf_status
next_level(struct pf_encoder *enc, size_t level, const struct pf_view *v,
    size_t len, size_t begin, const size_t *ends, size_t n, bool first,
    struct pf_err *err)
{
    enum pf_status st = PF_OK;
    struct pf_view part;
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
by_pattern(struct pf_encoder *enc, size_t level, const struct pf_view *v,
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
by_bert(struct pf_encoder *enc, size_t level, const struct pf_view *v,
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
by_metaspace(struct pf_encoder *enc, size_t level, const struct pf_view *v,
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
put_in_front(struct pf_encoder *enc, size_t level, struct pf_view *v,
    size_t *len, const char *lead, struct pf_err *err)
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
cut(struct pf_encoder *enc, size_t level, struct pf_view v, size_t len,
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

enum pf_status
pf_encode_plain(struct pf_encoder *enc, struct pf_view v, size_t len,
    bool first, struct pf_err *err)
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
    struct pf_view v = { .bytes = text, .base = base };
    const struct pf_added *a = NULL;
    struct pf_place at = { 0 };
    enum pf_status st = PF_OK;
    bool first = base == 0;
    struct pf_view rest;
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
        a = tok->n_steps ? pf_finder_next(&enc->normal, v.bytes, len, &at)
            : NULL;
        to = a ? at.from : len;
        rest = v;
        rest.bytes += at.taken;
        rest.skip += at.taken;
        st = pf_encode_plain(enc, rest, to - at.taken,
            first && at.taken == 0, err);
        if (a && !st)
            st = pf_pieces_add(&enc->pieces, a->id,
                source(&v, at.from, false), source(&v, at.to, true), err);
        at.taken = at.to;
    } while (a && !st);
    return st;
}

enum pf_status
pf_encoder_ready(struct pf_encoder *enc, struct pf_err *err)
{
    const struct pf_tokenizer *tok = enc->tok;
    enum pf_status st;

    if (enc->ready)
        return PF_OK;
    st = pf_finder_make(&enc->raw, tok, enc->active, false, err);
    if (!st)
        st = pf_finder_make(&enc->normal, tok, enc->active, true, err);
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
    enum pf_status st = enc->ready ? PF_OK : pf_encoder_ready(enc, err);
    struct pf_place at = { 0 };
    bool plainly = enc->scan && !st && pf_utf8_span(text, len) == len;

    *ids = NULL;
    *n = 0;
    enc->pieces.n = 0;
    if (plainly)
        st = scan(enc, text, len, err);
    while (!plainly && !st) {
        a = pf_finder_next(&enc->raw, text, len, &at);
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
    enum pf_status st = enc->ready ? PF_OK : pf_encoder_ready(enc, err);
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

const size_t *
pf_encoder_spans(const struct pf_encoder *enc)
{
    return enc->pieces.spans;
}
