/*
 * A text that is not at hand as a whole: where it can be cut so that its parts
 * have the ids of the whole, and what is certain of one that goes on.
 */
#include "encoder-private.h"

#include <string.h>

#include <pipeformer/utf8.h>

#include "unicode.h"

enum { BATCH = 256 }; /* pieces at a time */

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
            || pf_uc_of(pf_utf8_before(text, text + i))->flags & flags)
            return i;
    return 0;
}

size_t
pf_encoder_border(struct pf_encoder *enc, const char *text, size_t len)
{
    const struct pf_cut *c = enc->tok->cuts;

    if (pf_encoder_ready(enc, NULL) || !is_local(enc))
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
    struct pf_place p = { 0 };

    while (pf_finder_next(&enc->raw, text, len, &p) && len - p.from >= longest)
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
    enum pf_status st = pf_encoder_ready(enc, err);
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
    st = pf_encode_plain(enc, (struct pf_view){ .bytes = text }, at, true, err);
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
