#include <pipeformer/seqmap.h>

#include <stdlib.h>
#include <string.h>

struct pf_seqmap_slot {
    char *key; /* NULL: free */
    size_t len;
    uint64_t hash;
    void *value;
};

uint64_t
pf_hash(uint64_t h, const void *p, size_t n)
{
    const unsigned char *s = p;

    for (size_t i = 0; i < n; i++)
        h = (h ^ s[i]) * UINT64_C(0x100000001b3);
    return h;
}

void
pf_seqmap_fini(struct pf_seqmap *m, void (*free_value)(void *))
{
    for (size_t i = 0; i < m->cap; i++) {
        if (m->slots[i].key && free_value)
            free_value(m->slots[i].value);
        free(m->slots[i].key);
    }
    free(m->slots);
    *m = (struct pf_seqmap)PF_SEQMAP_INIT;
}

/* The slot of that key, or the free one where it belongs. */
static size_t
find(const struct pf_seqmap *m, const char *key, size_t len, uint64_t hash)
{
    size_t i = hash & (m->cap - 1);

    for (; m->slots[i].key; i = (i + 1) & (m->cap - 1))
        if (m->slots[i].hash == hash && m->slots[i].len == len
            && (len == 0 || memcmp(m->slots[i].key, key, len) == 0))
            break;
    return i;
}

void *
pf_seqmap_get(const struct pf_seqmap *m, const char *key, size_t len)
{
    size_t i;

    if (!m->n)
        return NULL;
    i = find(m, key, len, pf_hash(PF_HASH_INIT, key, len));
    return m->slots[i].key ? m->slots[i].value : NULL;
}

static enum pf_status
grow(struct pf_seqmap *m, struct pf_err *err)
{
    struct pf_seqmap big = { NULL, m->n, m->cap ? 2 * m->cap : 16 };

    big.slots = calloc(big.cap, sizeof *big.slots);
    if (!big.slots)
        return pf_fail_mem(err);
    for (size_t i = 0; i < m->cap; i++) {
        struct pf_seqmap_slot *s = &m->slots[i];

        if (s->key)
            big.slots[find(&big, s->key, s->len, s->hash)] = *s;
    }
    free(m->slots);
    *m = big;
    return PF_OK;
}

enum pf_status
pf_seqmap_put(struct pf_seqmap *m, const char *key, size_t len, void *value,
    struct pf_err *err)
{
    uint64_t hash = pf_hash(PF_HASH_INIT, key, len);
    struct pf_seqmap_slot *s;
    enum pf_status st;

    if (2 * (m->n + 1) > m->cap && (st = grow(m, err)))
        return st;
    s = &m->slots[find(m, key, len, hash)];
    if (!s->key) {
        s->key = malloc(len + 1);
        if (!s->key)
            return pf_fail_mem(err);
        if (len)
            memcpy(s->key, key, len);
        s->key[len] = '\0';
        s->len = len;
        s->hash = hash;
        m->n++;
    }
    s->value = value;
    return PF_OK;
}

void *
pf_seqmap_take(struct pf_seqmap *m, const char *key, size_t len)
{
    size_t mask = m->cap - 1, i, j, home;
    void *value;

    if (!m->n)
        return NULL;
    i = find(m, key, len, pf_hash(PF_HASH_INIT, key, len));
    if (!m->slots[i].key)
        return NULL;
    value = m->slots[i].value;
    free(m->slots[i].key);
    m->n--;
    /* Move back what was pushed on by the one that goes (Knuth 6.4 R). */
    for (j = (i + 1) & mask; m->slots[j].key; j = (j + 1) & mask) {
        home = m->slots[j].hash & mask;
        if (((j - home) & mask) >= ((j - i) & mask)) {
            m->slots[i] = m->slots[j];
            i = j;
        }
    }
    m->slots[i].key = NULL;
    return value;
}

void *
pf_seqmap_each(const struct pf_seqmap *m, size_t *i)
{
    while (*i < m->cap) {
        struct pf_seqmap_slot *s = &m->slots[(*i)++];

        if (s->key)
            return s->value;
    }
    return NULL;
}
