/*
 * An open-addressing hash table.  A slot has the hash beside the number of the
 * word, so that a probe hardly ever looks at a word that is another one; the
 * bytes lie in blocks that never move, and can therefore go over to another
 * table with their block when two tables are joined.
 */
#include "train-words.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/buf.h>

enum { BLOCK = 256 * 1024 };

struct pf_words_slot {
    uint32_t hash, number; /* counts from 1; 0: free */
};

struct pf_words_block {
    struct pf_words_block *next;
    size_t size;
    char data[];
};

void
pf_words_fini(struct pf_words *w)
{
    struct pf_words_block *b, *next;

    for (b = w->blocks; b; b = next) {
        next = b->next;
        free(b);
    }
    free(w->items);
    free(w->slots);
    *w = (struct pf_words)PF_WORDS_INIT;
}

static uint64_t
load(const char *p, size_t n)
{
    uint64_t v = 0;
    uint32_t low, high;

    if (n >= 8) {
        memcpy(&v, p, 8);
    } else if (n >= 4) {
        memcpy(&low, p, 4);
        memcpy(&high, p + n - 4, 4);
        v = (uint64_t)high << 32 | low;
    } else if (n) {
        v = (uint64_t)(unsigned char)p[0] << 16
            | (uint64_t)(unsigned char)p[n / 2] << 8
            | (unsigned char)p[n - 1];
    }
    return v;
}

static uint32_t
hash_of(const char *p, size_t n)
{
    const uint64_t k = 0xd6e8feb86659fd93;
    uint64_t h = n * 0x9e3779b97f4a7c15;

    for (; n > 8; p += 8, n -= 8) {
        h = (h ^ load(p, 8)) * k;
        h ^= h >> 32;
    }
    h = (h ^ load(p, n)) * k;
    h = (h ^ h >> 32) * k;
    return (uint32_t)(h >> 32);
}

/* The slot of these bytes, or the free one where they belong. */
static struct pf_words_slot *
probe(const struct pf_words *w, const char *bytes, size_t len, uint32_t hash)
{
    struct pf_words_slot *s;
    const struct pf_word *word;

    for (size_t i = hash & w->mask;; i = (i + 1) & w->mask) {
        s = &w->slots[i];
        if (!s->number)
            return s;
        if (s->hash != hash)
            continue;
        word = &w->items[s->number - 1];
        if (word->len == len && memcmp(word->bytes, bytes, len) == 0)
            return s;
    }
}

/* Twice as many slots as before, none of them shared. */
static bool
rehash(struct pf_words *w)
{
    size_t n = w->slots ? 2 * (w->mask + 1) : 1024, i;
    struct pf_words_slot *slots = calloc(n, sizeof *slots);

    if (!slots)
        return false;
    for (size_t k = 0; k < w->n; k++) {
        i = w->items[k].hash & (n - 1);
        while (slots[i].number)
            i = (i + 1) & (n - 1);
        slots[i].hash = w->items[k].hash;
        slots[i].number = (uint32_t)k + 1;
    }
    free(w->slots);
    w->slots = slots;
    w->mask = n - 1;
    return true;
}

/* Room for one word more, in the table and the list. */
static bool
room(struct pf_words *w)
{
    if ((!w->slots || 2 * (w->n + 1) > w->mask + 1) && !rehash(w))
        return false;
    return pf_grow(&w->items, &w->cap, w->n + 1, sizeof *w->items);
}

static const char *
keep(struct pf_words *w, const char *bytes, size_t len)
{
    struct pf_words_block *b = w->blocks;
    size_t size = len > BLOCK / 4 ? len : BLOCK;
    char *p;

    if (len > w->left) {
        b = malloc(sizeof *b + size);
        if (!b)
            return NULL;
        b->size = size;
        /* One that is filled by a single word leaves the first one first. */
        if (size == len && w->blocks) {
            b->next = w->blocks->next;
            w->blocks->next = b;
            memcpy(b->data, bytes, len);
            return b->data;
        }
        b->next = w->blocks;
        w->blocks = b;
        w->left = size;
    }
    p = b->data + b->size - w->left;
    w->left -= len;
    memcpy(p, bytes, len);
    return p;
}

static enum pf_status
add_count(struct pf_word *word, uint64_t count, struct pf_err *err)
{
    if (count > INT64_MAX - word->count)
        return pf_fail(err, PF_ERANGE, "counts add up to more than 2^63");
    word->count += count;
    return PF_OK;
}

enum pf_status
pf_words_add(struct pf_words *w, const char *bytes, size_t len,
    uint64_t count, struct pf_err *err)
{
    struct pf_words_slot *s;
    const char *copy;
    uint32_t hash;

    if (count == 0 || len == 0)
        return PF_OK;
    if (len >= UINT32_MAX || count > INT64_MAX || w->n >= UINT32_MAX / 2)
        return pf_fail(err, PF_ERANGE, "a piece of %zu bytes, %llu times, "
            "after %zu others, is beyond what can be counted", len,
            (unsigned long long)count, w->n);
    hash = hash_of(bytes, len);
    if (w->slots) {
        s = probe(w, bytes, len, hash);
        if (s->number)
            return add_count(&w->items[s->number - 1], count, err);
    }
    if (!room(w))
        return pf_fail_mem(err);
    copy = keep(w, bytes, len);
    if (!copy)
        return pf_fail_mem(err);
    s = probe(w, bytes, len, hash);
    w->items[w->n++] = (struct pf_word){ copy, count, (uint32_t)len, hash };
    s->hash = hash;
    s->number = (uint32_t)w->n;
    return PF_OK;
}

/* The blocks go behind those that are there. */
static void
take_blocks(struct pf_words *w, struct pf_words *from)
{
    struct pf_words_block **end = &w->blocks;

    while (*end)
        end = &(*end)->next;
    *end = from->blocks;
    if (end == &w->blocks)
        w->left = from->left;
    from->blocks = NULL;
}

enum pf_status
pf_words_join(struct pf_words *w, struct pf_words *from, struct pf_err *err)
{
    enum pf_status st = PF_OK;
    struct pf_words_slot *s;
    const struct pf_word *word;

    for (size_t i = 0; i < from->n && !st; i++) {
        word = &from->items[i];
        if (w->n >= UINT32_MAX / 2 || !room(w))
            return pf_fail_mem(err);
        s = probe(w, word->bytes, word->len, word->hash);
        if (s->number) {
            st = add_count(&w->items[s->number - 1], word->count, err);
            continue;
        }
        w->items[w->n++] = *word;
        s->hash = word->hash;
        s->number = (uint32_t)w->n;
    }
    take_blocks(w, from);
    pf_words_fini(from);
    return st;
}
