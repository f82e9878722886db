#ifndef PIPEFORMER_SEQMAP_H
#define PIPEFORMER_SEQMAP_H

#include <stddef.h>
#include <stdint.h>

#include <pipeformer/err.h>

/*
 * What a filter knows of each live sequence, found by the bytes of its key
 * (pf_record_seq).  Values are the caller's.
 */
struct pf_seqmap {
    struct pf_seqmap_slot *slots; /* open addressing, linear probing */
    size_t n, cap;
};

#define PF_SEQMAP_INIT { NULL, 0, 0 }

/* Frees the map, and with `free_value` (may be NULL) each value. */
void pf_seqmap_fini(struct pf_seqmap *m, void (*free_value)(void *));

/* The value of that key, or NULL. */
void *pf_seqmap_get(const struct pf_seqmap *m, const char *key, size_t len);

/* Adds or replaces; `value` is not NULL.  The key is copied. */
enum pf_status pf_seqmap_put(struct pf_seqmap *m, const char *key, size_t len,
    void *value, struct pf_err *err);

/* Removes the key and returns its value, NULL if it was not there. */
void *pf_seqmap_take(struct pf_seqmap *m, const char *key, size_t len);

/* Values one by one, in no order: start with *i = 0, NULL at the end. */
void *pf_seqmap_each(const struct pf_seqmap *m, size_t *i);

/* FNV-1a (Fowler, Noll, Vo), 64 bits; start with PF_HASH_INIT. */
#define PF_HASH_INIT UINT64_C(0xcbf29ce484222325)
uint64_t pf_hash(uint64_t h, const void *p, size_t n);

#endif
