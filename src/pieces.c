/*
 * What each of the models makes of a piece; those that are met again and again
 * are answered by pieces-cache.c, which also has the pieces of bytes.
 */
#include "pieces-private.h"

#include <stdlib.h>
#include <string.h>

#include <pipeformer/utf8.h>

void
pf_pieces_fini(struct pf_pieces *p)
{
    free(p->ids);
    free(p->spans);
    free(p->lens);
    free(p->unknown);
    free(p->shorts);
    free(p->longs);
    free(p->more);
    free(p->fresh);
    free(p->fresh_ids);
    pf_bpe_work_fini(&p->work);
    pf_wordpiece_work_fini(&p->words);
}

enum pf_status
pf_pieces_room(struct pf_pieces *p, size_t n, struct pf_err *err)
{
    /* Ids are copied by the step, more than there are. */
    if (n > SIZE_MAX / 32 - p->n
        || !pf_grow(&p->ids, &p->cap, p->n + n + PF_PIECES_STEP, sizeof *p->ids)
        || (p->track && !pf_grow(&p->spans, &p->spans_cap,
                2 * (p->n + n + PF_PIECES_STEP), sizeof *p->spans)))
        return pf_fail_mem(err);
    return pf_pieces_cache(p, err);
}

static void
span(struct pf_pieces *p, size_t i, size_t from, size_t to)
{
    p->spans[2 * i] = from;
    p->spans[2 * i + 1] = to;
}

enum pf_status
pf_pieces_add(struct pf_pieces *p, uint32_t id, size_t from, size_t to,
    struct pf_err *err)
{
    enum pf_status st = pf_pieces_room(p, 1, err);

    if (st)
        return st;
    if (p->track)
        span(p, p->n, from, to);
    p->ids[p->n++] = id;
    return PF_OK;
}

/* --- By characters, by words --- */

/* Where in its piece something unknown stands. */
struct unknown {
    size_t at, len;
};

/*
 * The bytes at s[at] are a character that is no token: its bytes are, or it is
 * unknown; *n symbols so far.
 */
static enum pf_status
fall_back(struct pf_pieces *p, const char *s, size_t at, size_t len,
    uint32_t *ids, size_t *n, struct pf_err *err)
{
    const struct pf_tokenizer *tok = p->tok;
    struct unknown *u = p->n_unknown ? &p->unknown[p->n_unknown - 1] : NULL;
    bool bytes = tok->byte_fallback;

    for (size_t i = 0; i < len; i++)
        bytes = bytes && tok->byte[(unsigned char)s[at + i]] != PF_BPE_NONE;
    if (bytes) {
        for (size_t i = 0; i < len; i++)
            ids[(*n)++] = tok->byte[(unsigned char)s[at + i]];
        return PF_OK;
    }
    if (tok->unk == PF_BPE_NONE)
        return pf_fail(err, PF_EMODEL, "the vocabulary has no token for %s, "
            "and none for the unknown", pf_show(s + at, len).s);
    if (tok->fuse_unk && u && u->at + u->len == at) {
        u->len += len;
        return PF_OK;
    }
    if (!pf_grow(&p->unknown, &p->unknown_cap, p->n_unknown + 1,
            sizeof *p->unknown))
        return pf_fail_mem(err);
    p->unknown[p->n_unknown++] = (struct unknown){ at, len };
    ids[(*n)++] = tok->unk;
    return PF_OK;
}

/* How many bytes the token stands for that begins at s[at] of a piece; *k
 * counts the unknown ones. */
static size_t
length_of(const struct pf_pieces *p, uint32_t id, size_t at, size_t *k)
{
    const struct pf_tokenizer *tok = p->tok;
    size_t len = 0;

    if (*k < p->n_unknown && p->unknown[*k].at == at)
        return p->unknown[(*k)++].len;
    pf_vocab_bytes(tok->vocab, id, &len);
    if (tok->model == PF_MODEL_CHARS && tok->byte_fallback && len == 6)
        for (int i = 0; i < 256; i++)
            if (tok->byte[i] == id)
                return 1;
    return len;
}

static enum pf_status
by_chars(struct pf_pieces *p, const char *s, size_t len, struct pf_err *err)
{
    uint32_t *ids = p->ids + p->n;
    enum pf_status st;
    size_t n = 0, k;

    for (size_t i = 0; i < len; i += k) {
        k = pf_utf8_char(s + i, len - i);
        k += k == 0;
        if (pf_vocab_find(p->tok->vocab, s + i, k, &ids[n])) {
            n++;
            continue;
        }
        st = fall_back(p, s, i, k, ids, &n, err);
        if (st)
            return st;
    }
    st = pf_bpe_merge(p->tok->bpe, &p->work, ids, &n, err);
    if (!st)
        p->n += n;
    return st;
}

static enum pf_status
by_words(struct pf_pieces *p, const char *s, size_t len, struct pf_err *err)
{
    enum pf_status st;
    size_t n;

    if (p->track && !pf_grow(&p->lens, &p->lens_cap, len, sizeof *p->lens))
        return pf_fail_mem(err);
    st = pf_wordpiece_split(p->tok->wordpiece, &p->words, s, len,
        p->ids + p->n, p->track ? p->lens : NULL, &n, err);
    if (!st)
        p->n += n;
    return st;
}

enum pf_status
pf_pieces_model(struct pf_pieces *p, const char *s, size_t len,
    struct pf_err *err)
{
    p->n_unknown = 0;
    if (p->tok->whole
        && pf_vocab_find(p->tok->vocab, s, len, &p->ids[p->n])) {
        p->n++;
        return PF_OK;
    }
    return p->tok->model == PF_MODEL_CHARS ? by_chars(p, s, len, err)
        : by_words(p, s, len, err);
}

/* The ranges of the ids from `first` on, of a piece of `len` bytes at `at`. */
static void
track(struct pf_pieces *p, size_t first, size_t at, size_t len)
{
    size_t k = 0, to = at;

    for (size_t i = first; i < p->n; i++) {
        size_t from = to;

        if (p->tok->model == PF_MODEL_WORDS)
            to = at + p->lens[i - first];
        else
            to = from + length_of(p, p->ids[i], from - at, &k);
        span(p, i, from, to < at + len ? to : at + len);
    }
}

enum pf_status
pf_pieces_encode(struct pf_pieces *p, const char *text, size_t len,
    size_t begin, const size_t *ends, size_t n, size_t at, struct pf_err *err)
{
    enum pf_status st = PF_OK;
    size_t from = begin, before = p->n, k;

    if (p->tok->model == PF_MODEL_BYTES
        || (p->tok->model == PF_MODEL_WORDS && !p->track)) {
        for (size_t i = 0; i < n && !st; i += k) {
            k = n - i < PF_PIECES_BATCH ? n - i : PF_PIECES_BATCH;
            st = pf_pieces_batch(p, text, len, from, ends + i, k, err);
            from = ends[i + k - 1];
        }
        if (p->track && !st)
            track(p, before, at + begin, from - begin);
        return st;
    }
    for (size_t i = 0; i < n && !st; from = ends[i++]) {
        before = p->n;
        st = pf_pieces_model(p, text + from, ends[i] - from, err);
        if (p->track && !st)
            track(p, before, at + from, ends[i] - from);
    }
    return st;
}
