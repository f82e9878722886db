/*
 * Texts repeat their words, so most pieces are answered from a cache: a table
 * indexed by a hash of the bytes, whose entries hold the whole key and the
 * ids.  There are two tables, since most pieces are short and have few ids:
 * entries of half a cache line, two of one hash side by side, and of a whole
 * line for longer pieces.  Ids that an entry has no room for lie in an array;
 * when that is full, everything is forgotten and learnt again.
 *
 * What is in no cache is looked up in the vocabulary, where that gives what
 * merging would (`whole`), and is merged else.
 */
#include "pieces.h"

#include <stdlib.h>
#include <string.h>

#include <pipeformer/utf8.h>

enum {
    SHORT_BITS = 15,
    SHORT_KEY = 16, /* bytes; the last one is the length */
    SHORT_IDS = 3,
    LONG_BITS = 15,
    LONG_KEY = 32,
    LONG_IDS = 7,
    MORE = 1 << 20, /* ids that no entry has room for */
    MANY_NEW = 1000,     /* new pieces that make a text a large one */
    MANY_TOKENS = 50000,
    BATCH = 64,
};

struct pf_short_entry {
    uint64_t a, b; /* the key */
    uint32_t ids[SHORT_IDS]; /* if n is more, the first is where they lie */
    uint32_t n;
};

/* Entries of one hash, half a cache line each, the newest first. */
struct pf_short_set {
    struct pf_short_entry way[2];
};

struct pf_long_entry {
    uint64_t key[LONG_KEY / 8];
    uint32_t ids[LONG_IDS];
    uint32_t n;
};

_Static_assert(sizeof(struct pf_short_set) == 64, "a cache line");
_Static_assert(sizeof(struct pf_long_entry) == 64, "a cache line");

void
pf_pieces_fini(struct pf_pieces *p)
{
    free(p->ids);
    free(p->spans);
    free(p->lens);
    free(p->unknown);
    free(p->memory[0]);
    free(p->memory[1]);
    free(p->more);
    pf_bpe_work_fini(&p->work);
    pf_wordpiece_work_fini(&p->words);
}

/* Memory that is zero, from the next multiple of 64 on. */
static void *
zeroed(void **memory, size_t n)
{
    *memory = calloc(n + 64, 1);
    return *memory ? (char *)*memory + (64 - (uintptr_t)*memory % 64) % 64
        : NULL;
}

enum pf_status
pf_pieces_room(struct pf_pieces *p, size_t n, struct pf_err *err)
{
    /* A cached piece is copied with all the ids its entry has room for. */
    if (n > SIZE_MAX / 32 - p->n
        || !pf_grow(&p->ids, &p->cap, p->n + n + LONG_IDS, sizeof *p->ids)
        || (p->track && !pf_grow(&p->spans, &p->spans_cap,
                2 * (p->n + n + LONG_IDS), sizeof *p->spans)))
        return pf_fail_mem(err);
    if (!p->shorts)
        p->shorts = zeroed(&p->memory[0], sizeof *p->shorts << SHORT_BITS);
    if (!p->longs)
        p->longs = zeroed(&p->memory[1], sizeof *p->longs << LONG_BITS);
    if (!p->more)
        p->more = malloc(MORE * sizeof *p->more);
    return p->shorts && p->longs && p->more ? PF_OK : pf_fail_mem(err);
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

/* --- The three models --- */

static enum pf_status
by_bytes(struct pf_pieces *p, const char *s, size_t len, struct pf_err *err)
{
    const struct pf_tokenizer *tok = p->tok;
    enum pf_status st;

    for (size_t i = 0; !tok->all_bytes && i < len; i++)
        if (tok->byte[(unsigned char)s[i]] == PF_BPE_NONE)
            return pf_fail(err, PF_EMODEL, "the vocabulary has no token for "
                "byte 0x%02x (%s)", (unsigned char)s[i], pf_show(s + i, 1).s);
    st = pf_bpe_merge_bytes(tok->bpe, &p->work, s, p->ids + p->n, &len, err);
    if (!st)
        p->n += len;
    return st;
}

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

static enum pf_status
by_model(struct pf_pieces *p, const char *s, size_t len, struct pf_err *err)
{
    p->n_unknown = 0;
    if (p->tok->whole
        && pf_vocab_find(p->tok->vocab, s, len, &p->ids[p->n])) {
        p->n++;
        return PF_OK;
    }
    switch (p->tok->model) {
    case PF_MODEL_BYTES: return by_bytes(p, s, len, err);
    case PF_MODEL_CHARS: return by_chars(p, s, len, err);
    default: return by_words(p, s, len, err);
    }
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

/* --- The caches --- */

/* Both halves of a product of 128 bits. */
static inline uint64_t
hash2(uint64_t a, uint64_t b)
{
    unsigned __int128 h = (unsigned __int128)(a ^ 0x9e3779b97f4a7c15)
        * (b ^ 0xd6e8feb86659fd93);

    return (uint64_t)h ^ (uint64_t)(h >> 64);
}

static inline uint64_t
load64(const char *s)
{
    uint64_t v;

    memcpy(&v, s, sizeof v);
    return v;
}

/* The first n of 8 bytes, 0 to 8. */
static inline uint64_t
first_bytes(uint64_t v, size_t n)
{
    static const uint64_t ones[9] = { 0, 0xff, 0xffff, 0xffffff, 0xffffffff,
        0xffffffffff, 0xffffffffffff, 0xffffffffffffff, 0xffffffffffffffff };

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return v & ones[n];
#else
    return v & ~ones[8 - n];
#endif
}

/* The last byte of the last word of a key. */
static inline uint64_t
length_byte(size_t len)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return (uint64_t)len << 56;
#else
    return len;
#endif
}

/* Of less than SHORT_KEY bytes at s, of `there` that may be read. */
static inline void
short_key(uint64_t *a, uint64_t *b, const char *s, size_t len, size_t there)
{
    char copy[SHORT_KEY];

    if (there < SHORT_KEY) {
        memset(copy, 0, sizeof copy);
        memcpy(copy, s, len);
        s = copy;
    }
    *a = first_bytes(load64(s), len < 8 ? len : 8);
    *b = first_bytes(load64(s + 8), len < 8 ? 0 : len - 8) | length_byte(len);
}

/* Of less than LONG_KEY bytes; a and b are of its first SHORT_KEY - 1. */
static inline void
long_key(uint64_t key[LONG_KEY / 8], const char *s, size_t len)
{
    memset(key, 0, LONG_KEY);
    memcpy(key, s, len);
    key[LONG_KEY / 8 - 1] |= length_byte(len);
}

static inline struct pf_long_entry *
long_entry(const struct pf_pieces *p, const uint64_t key[LONG_KEY / 8])
{
    return &p->longs[hash2(hash2(key[0], key[1]), hash2(key[2], key[3]))
        >> (64 - LONG_BITS)];
}

static inline struct pf_short_set *
short_set(const struct pf_pieces *p, uint64_t a, uint64_t b)
{
    return &p->shorts[hash2(a, b) >> (64 - SHORT_BITS)];
}

/* A new entry of a set takes the place of the elder one. */
static struct pf_short_entry *
new_entry(struct pf_short_set *set, uint64_t a, uint64_t b)
{
    set->way[1] = set->way[0];
    set->way[0].a = a;
    set->way[0].b = b;
    return &set->way[0];
}

/*
 * A text that has many words will have most of those that are tokens: learns
 * these at once, the frequent ones, which have the low ids, last.
 */
static void
learn_tokens(struct pf_pieces *p)
{
    size_t size = pf_vocab_size(p->tok->vocab), len;
    struct pf_short_entry *e;
    const char *bytes;
    uint64_t a, b;

    for (size_t id = size < MANY_TOKENS ? size : MANY_TOKENS; id-- > 0;) {
        bytes = pf_vocab_bytes(p->tok->vocab, (uint32_t)id, &len);
        if (!bytes || len == 0 || len >= SHORT_KEY)
            continue;
        short_key(&a, &b, bytes, len, len);
        e = new_entry(short_set(p, a, b), a, b);
        e->ids[0] = (uint32_t)id;
        e->n = 1;
    }
}

/* Puts the last n ids into an entry that has room for `room` of them. */
static void
keep_ids(struct pf_pieces *p, uint32_t *ids, size_t room, uint32_t *count,
    size_t n)
{
    uint32_t *to = ids;

    if (n > room) {
        to = p->more + p->n_more;
        ids[0] = (uint32_t)p->n_more;
        p->n_more += n;
    }
    memcpy(to, p->ids + p->n - n, n * sizeof *to);
    *count = (uint32_t)n;
}

/* A piece that is in no cache, and then is. */
static enum pf_status
encode_new(struct pf_pieces *p, const char *s, size_t len,
    struct pf_short_set *set, uint64_t a, uint64_t b, struct pf_err *err)
{
    struct pf_short_entry *e;
    struct pf_long_entry *l;
    size_t before = p->n, n;
    enum pf_status st = by_model(p, s, len, err);

    n = p->n - before;
    if (st || n == 0 || len >= LONG_KEY)
        return st;
    if (n > MORE - p->n_more) {
        memset(p->shorts, 0, sizeof *p->shorts << SHORT_BITS);
        memset(p->longs, 0, sizeof *p->longs << LONG_BITS);
        p->n_more = 0;
    }
    if (++p->n_new == MANY_NEW && p->tok->whole)
        learn_tokens(p);
    if (len < SHORT_KEY) {
        e = new_entry(set, a, b);
        keep_ids(p, e->ids, SHORT_IDS, &e->n, n);
    } else {
        uint64_t key[LONG_KEY / 8];

        long_key(key, s, len);
        l = long_entry(p, key);
        memcpy(l->key, key, sizeof key);
        keep_ids(p, l->ids, LONG_IDS, &l->n, n);
    }
    return PF_OK;
}

/* A piece of SHORT_KEY bytes or more, if it is known. */
static bool
find_long(struct pf_pieces *p, const char *s, size_t len)
{
    uint64_t key[LONG_KEY / 8];
    const struct pf_long_entry *l;

    if (len >= LONG_KEY)
        return false;
    long_key(key, s, len);
    l = long_entry(p, key);
    if (((l->key[0] ^ key[0]) | (l->key[1] ^ key[1]) | (l->key[2] ^ key[2])
            | (l->key[3] ^ key[3])) != 0)
        return false;
    if (l->n <= LONG_IDS)
        memcpy(p->ids + p->n, l->ids, sizeof l->ids);
    else
        memcpy(p->ids + p->n, p->more + l->ids[0], l->n * sizeof *l->ids);
    p->n += l->n;
    return true;
}

/* A batch of pieces: first where they would be, so that the memory can come. */
static enum pf_status
encode_batch(struct pf_pieces *p, const char *text, size_t len, size_t begin,
    const size_t *ends, size_t n, struct pf_err *err)
{
    struct {
        uint64_t a, b;
        struct pf_short_set *set;
    } look[BATCH];
    uint64_t key[LONG_KEY / 8];
    const struct pf_short_entry *e;
    size_t from = begin, size, count = p->n;
    enum pf_status st;

    for (size_t i = 0; i < n; from = ends[i++]) {
        size = ends[i] - from;
        if (size < SHORT_KEY) {
            short_key(&look[i].a, &look[i].b, text + from, size, len - from);
            look[i].set = short_set(p, look[i].a, look[i].b);
            __builtin_prefetch(look[i].set);
        } else {
            /* A key that no entry has. */
            look[i].a = look[i].b = 0;
            look[i].set = p->shorts;
            if (size < LONG_KEY) {
                long_key(key, text + from, size);
                __builtin_prefetch(long_entry(p, key));
            }
        }
    }
    from = begin;
    for (size_t i = 0; i < n; from = ends[i++]) {
        e = look[i].set->way;
        e += ((e->a ^ look[i].a) | (e->b ^ look[i].b)) != 0;
        if (e->a == look[i].a && e->b == look[i].b && e->n) {
            if (e->n <= SHORT_IDS)
                memcpy(p->ids + count, e->ids, sizeof e->ids);
            else
                memcpy(p->ids + count, p->more + e->ids[0],
                    e->n * sizeof *e->ids);
            count += e->n;
            continue;
        }
        size = ends[i] - from;
        p->n = count;
        if (size < SHORT_KEY || !find_long(p, text + from, size)) {
            st = encode_new(p, text + from, size, look[i].set, look[i].a,
                look[i].b, err);
            if (st)
                return st;
        }
        count = p->n;
    }
    p->n = count;
    return PF_OK;
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
            k = n - i < BATCH ? n - i : BATCH;
            st = encode_batch(p, text, len, from, ends + i, k, err);
            from = ends[i + k - 1];
        }
        if (p->track && !st)
            track(p, before, at + begin, from - begin);
        return st;
    }
    for (size_t i = 0; i < n && !st; from = ends[i++]) {
        before = p->n;
        st = by_model(p, text + from, ends[i] - from, err);
        if (p->track && !st)
            track(p, before, at + from, ends[i] - from);
    }
    return st;
}
