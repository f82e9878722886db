/*
 * Texts repeat their words, so most pieces are answered from a cache: a table
 * indexed by a hash of the bytes, whose entries hold the whole key and the
 * ids.  There are two tables, since most pieces are short and have few ids:
 * entries of half a cache line, two of one hash side by side, and of a whole
 * line for longer pieces.  Ids that an entry has no room for lie in an array;
 * when that is full, everything is forgotten and learnt again.  The tables are
 * small at first: a short text is done before large ones would be cleared.
 *
 * What is in no cache is looked up in the vocabulary, where that gives what
 * merging would (`whole`), and is merged else.  Both wait for memory more than
 * they compute, so the new pieces of a batch are put off until there are many
 * of them, and leave holes in the row of ids that are filled at the end.
 */
#include "pieces-private.h"

#include <stdlib.h>
#include <string.h>

enum {
    SMALL_BITS = 7, /* entries of both tables at first */
    FULL_BITS = 15, /* and from MANY new pieces on */
    MANY = 256,
    SHORT_KEY = 16, /* bytes; the last one is the length */
    SHORT_IDS = 3,
    LONG_KEY = 32,
    LONG_IDS = 7,
    MORE = 1 << 20, /* ids that no entry has room for */
    NEW = 0xffff, /* an entry's n: ids[0] is the number of a new piece */
    AHEAD = 64,  /* pieces that are looked up while memory comes */
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

/* Zero because it is written: where pages are only read at first, as calloc's
 * would be, each is replaced when it is written, and stops all threads. */
static void *
zeroed(size_t n)
{
    void *p = pf_memory_new(n);

    if (p)
        memset(p, 0, n);
    return p;
}

/* Empty tables; false without memory, and nothing is changed. */
static bool
make_tables(struct pf_pieces *p, unsigned bits)
{
    struct pf_short_set *shorts = zeroed(sizeof *shorts << bits);
    struct pf_long_entry *longs = zeroed(sizeof *longs << bits);

    if (!shorts || !longs) {
        free(shorts);
        free(longs);
        return false;
    }
    free(p->shorts);
    free(p->longs);
    p->shorts = shorts;
    p->longs = longs;
    p->bits = bits;
    p->n_more = 0;
    return true;
}

enum pf_status
pf_pieces_cache(struct pf_pieces *p, struct pf_err *err)
{
    if (!p->more)
        p->more = malloc((MORE + PF_PIECES_STEP) * sizeof *p->more);
    return p->more && (p->shorts || make_tables(p, SMALL_BITS)) ? PF_OK
        : pf_fail_mem(err);
}

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
long_entry(const struct pf_pieces *p, unsigned bits,
    const uint64_t key[LONG_KEY / 8])
{
    return &p->longs[hash2(hash2(key[0], key[1]), hash2(key[2], key[3]))
        >> (64 - bits)];
}

static inline struct pf_short_set *
short_set(const struct pf_pieces *p, unsigned bits, uint64_t a, uint64_t b)
{
    return &p->shorts[hash2(a, b) >> (64 - bits)];
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

/* Everything is forgotten. */
static void
forget(struct pf_pieces *p)
{
    memset(p->shorts, 0, sizeof *p->shorts << p->bits);
    memset(p->longs, 0, sizeof *p->longs << p->bits);
    p->n_more = 0;
}

/* Puts n ids into an entry that has room for `room` of them. */
static void
keep_ids(struct pf_pieces *p, uint32_t *to, size_t room, uint32_t *count,
    const uint32_t *ids, size_t n)
{
    if (n > room) {
        to[0] = (uint32_t)p->n_more;
        to = p->more + p->n_more;
        p->n_more += n;
    }
    memcpy(to, ids, n * sizeof *to);
    *count = (uint32_t)n;
}

/* --- New pieces --- */

/* A piece whose ids are made later, and its number. */
static enum pf_status
put_off(struct pf_pieces *p, const char *s, size_t len, uint32_t *number,
    struct pf_err *err)
{
    if (!pf_grow(&p->fresh, &p->fresh_cap, p->n_fresh + 1, sizeof *p->fresh))
        return pf_fail_mem(err);
    *number = (uint32_t)p->n_fresh;
    p->fresh[p->n_fresh++] = (struct pf_bpe_piece){ .bytes = s, .len = len };
    return PF_OK;
}

/* Room for the ids of all new pieces. */
static enum pf_status
room_for_fresh(struct pf_pieces *p, struct pf_err *err)
{
    size_t n = 0;

    for (size_t i = 0; i < p->n_fresh; i++)
        n += p->fresh[i].len;
    if (!pf_grow(&p->fresh_ids, &p->fresh_ids_cap, n, sizeof *p->fresh_ids))
        return pf_fail_mem(err);
    n = 0;
    for (size_t i = 0; i < p->n_fresh; i++) {
        p->fresh[i].ids = p->fresh_ids + n;
        n += p->fresh[i].len;
    }
    return PF_OK;
}

/* Those that are tokens. */
static void
find_tokens(struct pf_pieces *p)
{
    struct pf_span spans[PF_VOCAB_MANY];
    struct pf_bpe_piece *f;
    uint32_t ids[PF_VOCAB_MANY];
    size_t n;

    for (size_t i = 0; i < p->n_fresh; i += n) {
        f = p->fresh + i;
        n = p->n_fresh - i < PF_VOCAB_MANY ? p->n_fresh - i : PF_VOCAB_MANY;
        for (size_t k = 0; k < n; k++)
            spans[k] = (struct pf_span){ f[k].bytes, f[k].len };
        pf_vocab_find_many(p->tok->vocab, spans, n, ids);
        for (size_t k = 0; k < n; k++) {
            f[k].n = ids[k] != PF_VOCAB_NONE;
            f[k].ids[0] = ids[k];
        }
    }
}

static enum pf_status
make_words(struct pf_pieces *p, struct pf_err *err)
{
    size_t before = p->n;
    enum pf_status st = PF_OK;

    for (size_t i = 0; i < p->n_fresh && !st; i++) {
        st = pf_pieces_model(p, p->fresh[i].bytes, p->fresh[i].len, err);
        p->fresh[i].n = st ? 0 : p->n - before;
        memcpy(p->fresh[i].ids, p->ids + before, p->fresh[i].n
            * sizeof *p->ids);
        p->n = before;
    }
    return st;
}

/* That all bytes have tokens. */
static enum pf_status
check_bytes(const struct pf_pieces *p, const char *s, size_t len,
    struct pf_err *err)
{
    for (size_t i = 0; i < len; i++)
        if (p->tok->byte[(unsigned char)s[i]] == PF_BPE_NONE)
            return pf_fail(err, PF_EMODEL, "the vocabulary has no token for "
                "byte 0x%02x (%s)", (unsigned char)s[i], pf_show(s + i, 1).s);
    return PF_OK;
}

static enum pf_status
make_fresh(struct pf_pieces *p, struct pf_err *err)
{
    enum pf_status st = room_for_fresh(p, err);

    if (st)
        return st;
    if (p->tok->model == PF_MODEL_WORDS)
        return make_words(p, err);
    if (p->tok->whole)
        find_tokens(p);
    for (size_t i = 0; !p->tok->all_bytes && i < p->n_fresh && !st; i++)
        if (!p->fresh[i].n)
            st = check_bytes(p, p->fresh[i].bytes, p->fresh[i].len, err);
    return st ? st : pf_bpe_merge_pieces(p->tok->bpe, &p->work, p->fresh,
        p->n_fresh, err);
}

/* The new pieces go where entries wait for them, if these are still there. */
static void
keep_fresh(struct pf_pieces *p)
{
    const struct pf_bpe_piece *f;
    struct pf_short_entry *e;
    struct pf_long_entry *l;
    uint64_t key[LONG_KEY / 8];

    for (size_t i = 0; i < p->n_fresh; i++) {
        f = &p->fresh[i];
        if (f->len >= LONG_KEY)
            continue;
        if (f->n > MORE - p->n_more) {
            forget(p);
            return;
        }
        if (f->len < SHORT_KEY) {
            short_key(&key[0], &key[1], f->bytes, f->len, f->len);
            e = short_set(p, p->bits, key[0], key[1])->way;
            e += e->a != key[0] || e->b != key[1];
            if (e->a == key[0] && e->b == key[1] && e->n == NEW)
                keep_ids(p, e->ids, SHORT_IDS, &e->n, f->ids, f->n);
            continue;
        }
        long_key(key, f->bytes, f->len);
        l = long_entry(p, p->bits, key);
        if (memcmp(l->key, key, sizeof key) == 0 && l->n == NEW)
            keep_ids(p, l->ids, LONG_IDS, &l->n, f->ids, f->n);
    }
}

/* --- A batch --- */

/* Where the ids of a new piece are missing. */
struct hole {
    size_t at;
    uint32_t number;
};

static void
fill_holes(struct pf_pieces *p, const struct hole *holes, size_t n)
{
    const struct pf_bpe_piece *f;
    size_t from = p->n, to = p->n, len;

    for (size_t i = 0; i < n; i++)
        to += p->fresh[holes[i].number].n;
    p->n = to;
    while (n--) {
        f = &p->fresh[holes[n].number];
        len = from - holes[n].at;
        from = holes[n].at;
        to -= len;
        memmove(p->ids + to, p->ids + from, len * sizeof *p->ids);
        to -= f->n;
        memcpy(p->ids + to, f->ids, f->n * sizeof *p->ids);
    }
}

/* Appends the n ids of an entry, eight or a whole entry's at a time. */
static inline size_t
take(const struct pf_pieces *p, uint32_t *to, const uint32_t *ids, size_t n,
    size_t room)
{
    if (n <= room)
        memcpy(to, ids, room * sizeof *ids);
    else
        for (size_t i = 0; i < n; i += PF_PIECES_STEP)
            memcpy(to + i, p->more + ids[0] + i, PF_PIECES_STEP * sizeof *ids);
    return n;
}

/* A piece that is not among the short ones: it is a long one, or new; false if
 * its ids are not there yet. */
static enum pf_status
other_piece(struct pf_pieces *p, const char *s, size_t len,
    struct pf_short_set *set, uint64_t a, uint64_t b, bool *there,
    uint32_t *number, struct pf_err *err)
{
    uint64_t key[LONG_KEY / 8];
    struct pf_short_entry *e;
    struct pf_long_entry *l;
    enum pf_status st;

    *there = false;
    if (len < SHORT_KEY) {
        e = new_entry(set, a, b);
        e->n = NEW;
        st = put_off(p, s, len, number, err);
        e->ids[0] = *number;
        return st;
    }
    if (len >= LONG_KEY)
        return put_off(p, s, len, number, err);
    long_key(key, s, len);
    l = long_entry(p, p->bits, key);
    if (((l->key[0] ^ key[0]) | (l->key[1] ^ key[1]) | (l->key[2] ^ key[2])
            | (l->key[3] ^ key[3])) == 0 && l->n) {
        *number = l->ids[0];
        *there = l->n != NEW;
        if (*there)
            p->n += take(p, p->ids + p->n, l->ids, l->n, LONG_IDS);
        return PF_OK;
    }
    memcpy(l->key, key, sizeof key);
    l->n = NEW;
    st = put_off(p, s, len, number, err);
    l->ids[0] = *number;
    return st;
}

/* What a piece is looked up by. */
struct look {
    uint64_t a, b;
    struct pf_short_set *set;
};

/* Where pieces would be, so that the memory can come. */
static inline __attribute__((always_inline)) void
look_ahead_by(const struct pf_pieces *p, unsigned bits, struct look *look,
    const char *text, size_t len, size_t from, const size_t *ends, size_t n)
{
    uint64_t key[LONG_KEY / 8];
    size_t size;

    for (size_t i = 0; i < n; from = ends[i++]) {
        size = ends[i] - from;
        if (size < SHORT_KEY) {
            short_key(&look[i].a, &look[i].b, text + from, size, len - from);
            look[i].set = short_set(p, bits, look[i].a, look[i].b);
            __builtin_prefetch(look[i].set);
            continue;
        }
        /* A key that no entry has. */
        look[i].a = look[i].b = 0;
        look[i].set = p->shorts;
        if (size < LONG_KEY) {
            long_key(key, text + from, size);
            __builtin_prefetch(long_entry(p, bits, key));
        }
    }
}

/* A shift by a constant is faster, where there are many pieces. */
static void
look_ahead(const struct pf_pieces *p, struct look *look, const char *text,
    size_t len, size_t from, const size_t *ends, size_t n)
{
    if (p->bits == FULL_BITS)
        look_ahead_by(p, FULL_BITS, look, text, len, from, ends, n);
    else
        look_ahead_by(p, p->bits, look, text, len, from, ends, n);
}

enum pf_status
pf_pieces_batch(struct pf_pieces *p, const char *text, size_t len, size_t begin,
    const size_t *ends, size_t n, struct pf_err *err)
{
    struct look look[AHEAD], *at;
    struct hole holes[PF_PIECES_BATCH];
    const struct pf_short_entry *e;
    size_t from = begin, n_holes = 0, count = p->n;
    enum pf_status st = PF_OK;
    uint32_t number = 0;
    bool there;

    /* Without memory, small ones have to do for now. */
    if (p->n_learnt > MANY && p->bits < FULL_BITS
        && !make_tables(p, FULL_BITS))
        p->n_learnt = 0;
    p->n_fresh = 0;
    for (size_t i = 0; i < n && !st; from = ends[i++]) {
        if (i % AHEAD == 0)
            look_ahead(p, look, text, len, from, ends + i,
                n - i < AHEAD ? n - i : AHEAD);
        at = &look[i % AHEAD];
        e = at->set->way;
        e += ((e->a ^ at->a) | (e->b ^ at->b)) != 0;
        there = e->a == at->a && e->b == at->b && e->n;
        if (there && e->n != NEW) {
            count += take(p, p->ids + count, e->ids, e->n, SHORT_IDS);
            continue;
        }
        number = e->ids[0];
        if (!there) {
            p->n = count;
            st = other_piece(p, text + from, ends[i] - from, at->set, at->a,
                at->b, &there, &number, err);
            count = p->n;
            if (there)
                continue;
        }
        holes[n_holes++] = (struct hole){ count, number };
    }
    p->n = count;
    if (n_holes && !st)
        st = make_fresh(p, err);
    if (st) {
        forget(p); /* what waits for its ids */
        return st;
    }
    fill_holes(p, holes, n_holes);
    keep_fresh(p);
    p->n_learnt += p->n_fresh;
    return PF_OK;
}
