/*
 * All tokens' bytes lie in one pool, in the order they came; a table by id has
 * where, and an open-addressing hash table by bytes has the id.  A slot is 4
 * bytes: the id and 11 bits of the hash, so that a probe seldom has to look at
 * the bytes of another token.
 *
 * The table by id is grown by calloc and copy, not realloc: the memory of the
 * ids that a file with holes skips is then never touched.
 */
#include "vocab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/buf.h>
#include <pipeformer/json.h>
#include <pipeformer/utf8.h>

enum {
    TAG_SHIFT = 21,
    ID = (1 << TAG_SHIFT) - 1, /* the bits of a slot that are the id */
};

struct pf_vocab {
    struct pf_buf pool;
    struct pf_vocab_token *tokens;
    size_t size, cap;
    uint32_t *slots; /* 11 bits of the hash; id plus 1, or 0 in a free one */
    size_t mask, count, longest;
    bool borrowed; /* the tables are someone else's */
};

static uint64_t
load64(const char *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof v);
    return v;
}

static uint32_t
load32(const char *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof v);
    return v;
}

static uint64_t
hash(const char *p, size_t n)
{
    const uint64_t k = 0x9e3779b97f4a7c15;
    uint64_t h = n * k, tail = 0;

    for (; n > 8; p += 8, n -= 8) {
        h = (h ^ load64(p)) * k;
        h ^= h >> 32;
    }
    if (n >= 4)
        tail = (uint64_t)load32(p) << 32 | load32(p + n - 4);
    else if (n)
        tail = (uint64_t)(unsigned char)p[0] << 16
            | (uint64_t)(unsigned char)p[n / 2] << 8
            | (unsigned char)p[n - 1];
    h = (h ^ tail) * k;
    return h ^ h >> 32;
}

static uint32_t
tag_of(uint64_t h)
{
    return (uint32_t)(h >> 53) << TAG_SHIFT;
}

/* The slot of these bytes, or the free one where they belong. */
static uint32_t *
probe(const struct pf_vocab *v, const char *bytes, size_t len, uint64_t h)
{
    uint32_t slot, tag = tag_of(h);
    const struct pf_vocab_token *t;

    for (size_t i = h & v->mask;; i = (i + 1) & v->mask) {
        slot = v->slots[i];
        if (!slot)
            return &v->slots[i];
        if ((slot ^ tag) > ID)
            continue;
        t = &v->tokens[(slot & ID) - 1];
        if (t->len == len && (len == 0
                || memcmp(v->pool.data + t->end - 1 - len, bytes, len) == 0))
            return &v->slots[i];
    }
}

static bool
rehash(struct pf_vocab *v, size_t n)
{
    uint32_t *slots = calloc(n, sizeof *slots);
    const struct pf_vocab_token *t;
    const char *bytes;
    uint64_t h;

    if (!slots)
        return false;
    free(v->slots);
    v->slots = slots;
    v->mask = n - 1;
    for (size_t id = 0; v->count && id < v->size; id++) {
        t = &v->tokens[id];
        if (!t->end)
            continue;
        bytes = v->pool.data + t->end - 1 - t->len;
        h = hash(bytes, t->len);
        *probe(v, bytes, t->len, h) = tag_of(h) | (uint32_t)(id + 1);
    }
    return true;
}

/* Room for that id. */
static bool
reach(struct pf_vocab *v, uint32_t id)
{
    struct pf_vocab_token *t;
    size_t cap = v->cap;

    if (id < cap)
        return true;
    while (cap <= id)
        cap = cap ? cap * 2 : 256;
    t = calloc(cap, sizeof *t);
    if (!t)
        return false;
    if (v->size)
        memcpy(t, v->tokens, v->size * sizeof *t);
    free(v->tokens);
    v->tokens = t;
    v->cap = cap;
    return true;
}

enum pf_status
pf_vocab_new(struct pf_vocab **out, size_t expect, struct pf_err *err)
{
    struct pf_vocab *v = calloc(1, sizeof *v);
    size_t n = 64;

    *out = NULL;
    if (!v)
        return pf_fail_mem(err);
    while (n / 2 < expect && n < 2 * (size_t)PF_VOCAB_MAX)
        n *= 2;
    if (!rehash(v, n) || !reach(v, (uint32_t)(n / 2 - 1))) {
        pf_vocab_free(v);
        return pf_fail_mem(err);
    }
    *out = v;
    return PF_OK;
}

void
pf_vocab_free(struct pf_vocab *v)
{
    if (v && !v->borrowed) {
        pf_buf_fini(&v->pool);
        free(v->tokens);
        free(v->slots);
    }
    free(v);
}

size_t
pf_vocab_size(const struct pf_vocab *v)
{
    return v->size;
}

size_t
pf_vocab_count(const struct pf_vocab *v)
{
    return v->count;
}

const char *
pf_vocab_bytes(const struct pf_vocab *v, uint32_t id, size_t *len)
{
    const struct pf_vocab_token *t;

    if (id >= v->size || !v->tokens[id].end)
        return NULL;
    t = &v->tokens[id];
    *len = t->len;
    return v->pool.data + t->end - 1 - t->len;
}

size_t
pf_vocab_decode(const struct pf_vocab *v, const uint32_t *ids, size_t n,
    struct pf_buf *out)
{
    enum { STEP = 32 };
    const struct pf_vocab_token *tokens = v->tokens, *t;
    const char *pool = v->pool.data;
    size_t size = v->size, safe = v->pool.len < STEP ? 0
        : v->pool.len - STEP + 1; /* from before here on a step is in it */
    size_t known, at, len, left = 0; /* room for so many short tokens */
    char *to = NULL;

    for (known = 0; known < n && ids[known] < size; known++) {
        t = &tokens[ids[known]];
        len = t->len;
        at = t->end - len - 1;
        if (!t->end)
            break;
        if (left == 0 || len > STEP) {
            if (to)
                out->len = (size_t)(to - out->data);
            left = n - known;
            to = left < (SIZE_MAX / 2 - len) / STEP
                ? pf_buf_room(out, len + left * STEP) : NULL;
            if (!to) {
                out->failed = true;
                return known;
            }
        }
        /* Most tokens are short: copy more than there is, in one step. */
        if (len <= STEP && at < safe)
            memcpy(to, pool + at, STEP);
        else
            memcpy(to, pool + at, len);
        to += len;
        left--;
    }
    if (to)
        out->len = (size_t)(to - out->data);
    return known;
}

bool
pf_vocab_find(const struct pf_vocab *v, const char *bytes, size_t len,
    uint32_t *id)
{
    uint32_t slot = *probe(v, bytes, len, hash(bytes, len));

    *id = (slot & ID) - 1;
    return slot != 0;
}

/* The slot, what it leads to, the bytes that have that id: each is fetched for
 * all before it is read for the first. */
void
pf_vocab_find_many(const struct pf_vocab *v, const struct pf_span *spans,
    size_t n, uint32_t *ids)
{
    uint64_t hashes[PF_VOCAB_MANY];
    uint32_t slot;

    for (size_t i = 0; i < n; i++) {
        hashes[i] = hash(spans[i].data, spans[i].len);
        __builtin_prefetch(&v->slots[hashes[i] & v->mask]);
    }
    for (size_t i = 0; i < n; i++) {
        slot = v->slots[hashes[i] & v->mask];
        ids[i] = (slot ^ tag_of(hashes[i])) > ID || !slot ? PF_VOCAB_NONE
            : (slot & ID) - 1;
        if (ids[i] != PF_VOCAB_NONE)
            __builtin_prefetch(&v->tokens[ids[i]]);
    }
    for (size_t i = 0; i < n; i++)
        if (ids[i] != PF_VOCAB_NONE)
            __builtin_prefetch(v->pool.data + v->tokens[ids[i]].end - 1
                - v->tokens[ids[i]].len);
    for (size_t i = 0; i < n; i++) {
        slot = *probe(v, spans[i].data, spans[i].len, hashes[i]);
        ids[i] = slot ? (slot & ID) - 1 : PF_VOCAB_NONE;
    }
}

/* The last `len` bytes of the pool become a token. */
static enum pf_status
add_last(struct pf_vocab *v, uint32_t id, size_t len, struct pf_err *err)
{
    const char *bytes;
    uint32_t *slot;
    uint64_t h;

    if (pf_buf_check(&v->pool, err))
        return PF_ENOMEM;
    bytes = v->pool.data ? v->pool.data + v->pool.len - len : "";
    if (id >= PF_VOCAB_MAX || v->pool.len >= UINT32_MAX)
        return pf_fail(err, PF_ERANGE, "id %lu of token %s is beyond %d",
            (unsigned long)id, pf_show(bytes, len).s, PF_VOCAB_MAX - 1);
    if ((v->count + 1) * 2 > v->mask + 1 && !rehash(v, (v->mask + 1) * 2))
        return pf_fail_mem(err);
    if (!reach(v, id))
        return pf_fail_mem(err);
    if (v->tokens[id].end)
        return pf_fail(err, PF_EFORMAT, "id %lu is given to two tokens, the "
            "second is %s", (unsigned long)id, pf_show(bytes, len).s);
    h = hash(bytes, len);
    slot = probe(v, bytes, len, h);
    if (*slot)
        return pf_fail(err, PF_EFORMAT, "token %s has two ids, %lu and %lu",
            pf_show(bytes, len).s, (unsigned long)(*slot & ID) - 1,
            (unsigned long)id);
    *slot = tag_of(h) | (id + 1);
    v->tokens[id] = (struct pf_vocab_token){ (uint32_t)v->pool.len + 1,
        (uint32_t)len };
    v->count++;
    if (len > v->longest)
        v->longest = len;
    if (id >= v->size)
        v->size = (size_t)id + 1;
    return PF_OK;
}

enum pf_status
pf_vocab_add(struct pf_vocab *v, uint32_t id, const char *bytes, size_t len,
    struct pf_err *err)
{
    enum pf_status st;

    pf_buf_add(&v->pool, bytes, len);
    st = add_last(v, id, len, err);
    if (st && !v->pool.failed)
        v->pool.len -= len;
    return st;
}

size_t
pf_vocab_longest(const struct pf_vocab *v)
{
    return v->longest;
}

struct pf_vocab_data
pf_vocab_data(const struct pf_vocab *v)
{
    return (struct pf_vocab_data){ v->pool.data, v->tokens, v->slots,
        v->pool.len, v->size, v->mask + 1 };
}

enum pf_status
pf_vocab_view(struct pf_vocab **out, const struct pf_vocab_data *d,
    struct pf_err *err)
{
    const struct pf_vocab_token *t;
    uint32_t pool = (uint32_t)d->n_pool, wrong = 0, lost = 0, present = 0;
    uint32_t used = 0, id, any = 0;
    struct pf_vocab *v;
    bool bad, holes;

    *out = NULL;
    if (d->n_slots < 64 || (d->n_slots & (d->n_slots - 1))
        || d->n_slots > UINT32_MAX
        || d->n_tokens > PF_VOCAB_MAX || d->n_pool > INT32_MAX)
        return pf_fail(err, PF_EFORMAT, "the table of tokens has a size that "
            "it cannot have");
    /* Without branches, so that the compiler makes vectors of it: a top bit
     * tells that something was too large, or made less than nothing. */
    for (size_t i = 0; i < d->n_tokens; i++) {
        t = &d->tokens[i];
        wrong |= t->end | t->len | (pool + 1 - t->end)
            | (t->end - (t->end > 0) - t->len);
        present += t->end > 0;
        any |= t->len;
    }
    for (size_t i = 0; i < d->n_slots; i++) {
        id = d->slots[i] & ID;
        used += d->slots[i] > 0;
        wrong |= (uint32_t)d->n_tokens - id;
        lost |= d->slots[i] & (uint32_t)-(int32_t)(id == 0);
    }
    bad = wrong >> 31 || lost;
    holes = present < d->n_tokens;
    for (size_t i = 0; !bad && holes && i < d->n_slots; i++)
        bad |= d->slots[i] && !d->tokens[(d->slots[i] & ID) - 1].end;
    if (bad || used == d->n_slots)
        return pf_fail(err, PF_EFORMAT, "the table of tokens has numbers that "
            "lead out of it");
    v = calloc(1, sizeof *v);
    if (!v)
        return pf_fail_mem(err);
    /* Nothing is written through these: no token is added to a view. */
    v->pool.data = (char *)d->pool;
    v->pool.len = d->n_pool;
    v->tokens = (struct pf_vocab_token *)d->tokens;
    v->slots = (uint32_t *)d->slots;
    v->size = d->n_tokens;
    v->mask = d->n_slots - 1;
    v->count = used;
    v->longest = any; /* at least that of the longest */
    v->borrowed = true;
    *out = v;
    return PF_OK;
}

static bool
is_literal(const char *s, size_t len, const struct pf_span *literal, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (literal[i].len == len && memcmp(literal[i].data, s, len) == 0)
            return true;
    return false;
}

/* One member of the object: `key` has its name, the cursor is on its id. */
static enum pf_status
add_member(struct pf_vocab *v, struct pf_json *j, const struct pf_buf *key,
    const struct pf_span *literal, size_t n_literal, struct pf_err *err)
{
    const char *s = key->len ? key->data : "";
    char c = pf_json_peek(j), *room;
    size_t len = SIZE_MAX;
    enum pf_status st;
    int64_t id;

    if (c != '-' && (c < '0' || c > '9'))
        return pf_fail(err, PF_EFORMAT, "\"%s\" has no id: this is not the "
            "vocabulary of a byte-level BPE, an object from token to id",
            pf_show(s, key->len).s);
    st = pf_json_i64(j, &id, err);
    if (st && st != PF_ERANGE)
        return st;
    if (st || id < 0 || id >= PF_VOCAB_MAX)
        return pf_fail(err, PF_ERANGE, "the id of token %s is not in 0 to %d",
            pf_show(s, key->len).s, PF_VOCAB_MAX - 1);
    room = pf_buf_room(&v->pool, key->len);
    if (!room)
        return pf_fail_mem(err);
    if (!n_literal || !is_literal(s, key->len, literal, n_literal))
        len = pf_alphabet_decode(room, s, key->len);
    if (len == SIZE_MAX) {
        len = key->len;
        memcpy(room, s, len);
    }
    v->pool.len += len;
    st = add_last(v, (uint32_t)id, len, err);
    if (st)
        v->pool.len -= len;
    return st;
}

enum pf_status
pf_vocab_read_json(struct pf_vocab *v, const char *json, size_t len,
    const struct pf_span *literal, size_t n_literal, struct pf_err *err)
{
    struct pf_json j = pf_json_at(json, len);
    struct pf_buf key = PF_BUF_INIT;
    enum pf_status st;
    bool first = true;

    st = pf_json_open(&j, '{', err);
    while (!st && !(st = pf_json_next(&j, '}', &first, err))) {
        pf_buf_clear(&key);
        st = pf_json_key(&j, &key, err);
        if (!st)
            st = add_member(v, &j, &key, literal, n_literal, err);
    }
    pf_buf_fini(&key);
    return st == PF_END ? pf_json_end(&j, err) : st;
}

/*
 * The 68 bytes that are no printable character of Latin-1 are, in order, 00
 * to 20, 7F to A0 and AD: they became U+0100 and so on.
 */
static int
byte_of(uint32_t c)
{
    if (c < 0x100)
        return c <= 0x20 || (c >= 0x7f && c <= 0xa0) || c == 0xad ? -1
            : (int)c;
    if (c <= 0x120)
        return (int)c - 0x100;
    if (c <= 0x142)
        return (int)c - 0x121 + 0x7f;
    return c == 0x143 ? 0xad : -1;
}

size_t
pf_alphabet_decode(char *dst, const char *src, size_t n)
{
    size_t out = 0, len;
    int b;

    for (size_t i = 0; i < n; i += len) {
        if (src[i] > ' ' && src[i] < 0x7f) {
            dst[out++] = src[i];
            len = 1;
            continue;
        }
        len = pf_utf8_char(src + i, n - i);
        if (!len)
            return SIZE_MAX;
        b = byte_of(pf_utf8_decode(src + i, &len));
        if (b < 0)
            return SIZE_MAX;
        dst[out++] = (char)b;
    }
    return out;
}

struct pf_shown
pf_show(const char *bytes, size_t len)
{
    struct pf_shown out;
    size_t n = 0, i, step;

    for (i = 0; i < len && n < sizeof out.s - 8; i += step) {
        step = pf_utf8_char(bytes + i, len - i);
        if (step > 1 || (step == 1 && bytes[i] >= ' ' && bytes[i] != 0x7f)) {
            memcpy(out.s + n, bytes + i, step);
            n += step;
        } else {
            step = 1;
            n += (size_t)snprintf(out.s + n, 5, "\\x%02x",
                (unsigned char)bytes[i]);
        }
    }
    memcpy(out.s + n, i < len ? "..." : "", i < len ? 4 : 1);
    return out;
}
