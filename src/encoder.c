/*
 * Encoding: a text is parted at the added tokens that are looked for, what is
 * between them into valid UTF-8 and runs of other bytes, the valid parts into
 * pieces by the pattern, and each piece is merged from its bytes.
 *
 * Texts repeat their words, so most pieces are answered from a cache: a table
 * of one cache line per entry, which holds the whole key and the ids, indexed
 * by a hash of the key; a new piece takes the place of an old one.  Nothing is
 * ever looked up as a whole in the vocabulary: a token that no merges lead to
 * must not come out of a text, and the cache is as fast.
 */
#include "tokenizer-private.h"

#include <stdlib.h>
#include <string.h>

#include <pipeformer/buf.h>
#include <pipeformer/utf8.h>

enum {
    CACHE_BITS = 14,
    KEY_WORDS = 4,
    KEY_MAX = 8 * KEY_WORDS - 1, /* bytes; the last byte is the length */
    CACHE_IDS = 7,
    LINE = 64,
};

struct entry {
    uint64_t key[KEY_WORDS];
    uint32_t ids[CACHE_IDS];
    uint32_t n; /* 0: free */
};

struct pf_encoder {
    const struct pf_tokenizer *tok;
    struct pf_splitter *splitter;
    struct pf_bpe_work work;
    uint32_t *ids;
    size_t n, cap;
    void *memory; /* of the cache, which begins at the next line */
    struct entry *cache;
    struct pf_buf spaced;   /* a part with a space in front */
    bool *active;           /* by index of the added token */
    size_t *lens, n_lens;   /* their lengths, each once, longest first */
    bool first[256];        /* bytes that one of them begins with */
};

_Static_assert(sizeof(struct entry) == LINE, "an entry is a cache line");

/* Looks for this one from now on; there is room for all lengths. */
static void
activate(struct pf_encoder *enc, size_t i)
{
    const char *bytes;
    size_t len, k = 0;

    if (enc->active[i])
        return;
    bytes = pf_vocab_bytes(enc->tok->vocab, enc->tok->added[i].id, &len);
    enc->active[i] = true;
    enc->first[(unsigned char)bytes[0]] = true;
    while (k < enc->n_lens && enc->lens[k] > len)
        k++;
    if (k < enc->n_lens && enc->lens[k] == len)
        return;
    memmove(enc->lens + k + 1, enc->lens + k,
        (enc->n_lens++ - k) * sizeof *enc->lens);
    enc->lens[k] = len;
}

enum pf_status
pf_encoder_new(struct pf_encoder **out, const struct pf_tokenizer *tok,
    struct pf_err *err)
{
    struct pf_encoder *enc = calloc(1, sizeof *enc);

    *out = NULL;
    if (!enc)
        return pf_fail_mem(err);
    enc->tok = tok;
    enc->memory = calloc(((size_t)1 << CACHE_BITS) + 1, LINE);
    enc->active = calloc(tok->n_added + 1, sizeof *enc->active);
    enc->lens = calloc(tok->n_added + 1, sizeof *enc->lens);
    if (!enc->memory || !enc->active || !enc->lens) {
        pf_encoder_free(enc);
        return pf_fail_mem(err);
    }
    enc->cache = (struct entry *)(((uintptr_t)enc->memory + LINE - 1)
        / LINE * LINE);
    if (pf_splitter_new(&enc->splitter, tok->pretok, err)) {
        pf_encoder_free(enc);
        return PF_ENOMEM;
    }
    for (size_t i = 0; i < tok->n_added; i++)
        if (!tok->added[i].special)
            activate(enc, i);
    *out = enc;
    return PF_OK;
}

void
pf_encoder_free(struct pf_encoder *enc)
{
    if (enc) {
        pf_splitter_free(enc->splitter);
        pf_bpe_work_fini(&enc->work);
        pf_buf_fini(&enc->spaced);
        free(enc->ids);
        free(enc->memory);
        free(enc->active);
        free(enc->lens);
        free(enc);
    }
}

void
pf_encoder_special_all(struct pf_encoder *enc)
{
    for (size_t i = 0; i < enc->tok->n_added; i++)
        activate(enc, i);
}

enum pf_status
pf_encoder_special_add(struct pf_encoder *enc, uint32_t id,
    struct pf_err *err)
{
    size_t i;

    if (!pf_added_find(enc->tok, id, &i) || !enc->tok->added[i].special)
        return pf_fail(err, PF_ERANGE, "id %lu is no special token",
            (unsigned long)id);
    activate(enc, i);
    return PF_OK;
}

/* The bytes of a piece become symbols at the end of the list, merged. */
static enum pf_status
merge_piece(struct pf_encoder *enc, const char *p, size_t len,
    struct pf_err *err)
{
    const uint32_t *byte = enc->tok->byte;
    enum pf_status st;
    uint32_t *ids;

    if (len > SIZE_MAX / 8 - enc->n
        || !pf_grow(&enc->ids, &enc->cap, enc->n + len, sizeof *ids))
        return pf_fail_mem(err);
    ids = enc->ids + enc->n;
    for (size_t i = 0; i < len; i++) {
        ids[i] = byte[(unsigned char)p[i]];
        if (ids[i] == PF_BPE_NONE)
            return pf_fail(err, PF_EMODEL, "the vocabulary has no token for "
                "byte 0x%02x (%s)", (unsigned char)p[i], pf_show(p + i, 1).s);
    }
    st = pf_bpe_merge(enc->tok->bpe, &enc->work, ids, &len, err);
    if (!st)
        enc->n += len;
    return st;
}

/* `len` bytes at p, at most KEY_MAX, of `there` that may be read. */
static void
make_key(uint64_t key[KEY_WORDS], const char *p, size_t len, size_t there)
{
    enum { N = 8 * KEY_WORDS };
    static const unsigned char ones[2 * N] = {
        255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
        255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
        255, 255, 255, 255,
    };
    uint64_t mask[KEY_WORDS];
    unsigned char length = (unsigned char)len;

    if (there >= N) {
        memcpy(key, p, N);
        memcpy(mask, ones + N - len, N);
        for (int i = 0; i < KEY_WORDS; i++)
            key[i] &= mask[i];
    } else {
        memset(key, 0, N);
        memcpy(key, p, len);
    }
    memcpy((char *)key + N - 1, &length, 1);
}

static size_t
slot_of(const uint64_t key[KEY_WORDS])
{
    uint64_t h = key[0] * 0x9e3779b97f4a7c15 ^ key[1] * 0xc2b2ae3d27d4eb4f
        ^ key[2] * 0xd6e8feb86659fd93 ^ key[3] * 0xa0761d6478bd642f;

    h ^= h >> 32;
    return h * 0xe7037ed1a0b428db >> (64 - CACHE_BITS);
}

static enum pf_status
encode_piece(struct pf_encoder *enc, const char *p, size_t len, size_t there,
    struct pf_err *err)
{
    uint64_t key[KEY_WORDS];
    size_t before = enc->n, n;
    enum pf_status st;
    struct entry *e;

    if (len > KEY_MAX)
        return merge_piece(enc, p, len, err);
    make_key(key, p, len, there);
    e = &enc->cache[slot_of(key)];
    if (memcmp(e->key, key, sizeof key) == 0 && e->n) {
        if (!pf_grow(&enc->ids, &enc->cap, enc->n + CACHE_IDS,
                sizeof *enc->ids))
            return pf_fail_mem(err);
        memcpy(enc->ids + enc->n, e->ids, sizeof e->ids);
        enc->n += e->n;
        return PF_OK;
    }
    st = merge_piece(enc, p, len, err);
    n = enc->n - before;
    if (!st && n <= CACHE_IDS) {
        memcpy(e->key, key, sizeof key);
        memcpy(e->ids, enc->ids + before, n * sizeof *e->ids);
        e->n = (uint32_t)n;
    }
    return st;
}

/* A text of its own, valid UTF-8. */
static enum pf_status
encode_valid(struct pf_encoder *enc, const char *text, size_t len,
    struct pf_err *err)
{
    const char *piece, *end;
    enum pf_status st;
    size_t n;

    if (enc->tok->add_space && text[0] != ' ') {
        pf_buf_clear(&enc->spaced);
        pf_buf_addc(&enc->spaced, ' ');
        pf_buf_add(&enc->spaced, text, len);
        if (pf_buf_check(&enc->spaced, err))
            return PF_ENOMEM;
        text = enc->spaced.data;
        len++;
    }
    end = text + len;
    pf_splitter_begin(enc->splitter, text, len);
    while (!(st = pf_splitter_next(enc->splitter, &piece, &n, err)))
        if ((st = encode_piece(enc, piece, n, (size_t)(end - piece), err)))
            break;
    return st == PF_END ? PF_OK : st;
}

/* Bytes that hold none of the tokens that are looked for. */
static enum pf_status
encode_part(struct pf_encoder *enc, const char *text, size_t len,
    struct pf_err *err)
{
    enum pf_status st = PF_OK;
    size_t n;

    while (len && !st) {
        n = pf_utf8_span(text, len);
        if (n) {
            st = encode_valid(enc, text, n, err);
        } else {
            while (n < len && !pf_utf8_char(text + n, len - n))
                n++;
            st = encode_piece(enc, text, n, len, err);
        }
        text += n;
        len -= n;
    }
    return st;
}

/* Where the first token that is looked for is, the longest of that place. */
static bool
find_added(const struct pf_encoder *enc, const char *text, size_t len,
    size_t *at, size_t *n, uint32_t *id)
{
    size_t i, k, index;

    for (i = 0; enc->n_lens && i < len; i++) {
        if (!enc->first[(unsigned char)text[i]])
            continue;
        for (k = 0; k < enc->n_lens; k++) {
            *n = enc->lens[k];
            if (*n <= len - i
                && pf_vocab_find(enc->tok->vocab, text + i, *n, id)
                && pf_added_find(enc->tok, *id, &index)
                && enc->active[index]) {
                *at = i;
                return true;
            }
        }
    }
    return false;
}

enum pf_status
pf_encode(struct pf_encoder *enc, const char *text, size_t len,
    const uint32_t **ids, size_t *n, struct pf_err *err)
{
    enum pf_status st = PF_OK;
    size_t at = 0, size = 0;
    uint32_t id;
    bool found = true;

    enc->n = 0;
    while (found && !st) {
        found = find_added(enc, text, len, &at, &size, &id);
        st = encode_part(enc, text, found ? at : len, err);
        if (found && !st) {
            if (!pf_grow(&enc->ids, &enc->cap, enc->n + 1, sizeof id))
                return pf_fail_mem(err);
            enc->ids[enc->n++] = id;
            text += at + size;
            len -= at + size;
        }
    }
    *ids = enc->ids;
    *n = st ? 0 : enc->n;
    return st;
}
