#ifndef PIPEFORMER_KV_H
#define PIPEFORMER_KV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pipeformer/err.h>
#include <pipeformer/kernel.h>

/*
 * Keys and values of many sequences, in pages of 16 positions (Kwon et al.
 * 2023 call that paged attention): a sequence grows without moving, and two
 * that begin alike share pages until one of them writes.
 *
 * A page holds, for each layer slot, the keys [H][D][16] and then the values
 * [H][16][D], as struct pf_kv_head wants them.
 */

/* One sequence.  Positions 0 .. len-1 are held. */
struct pf_kv {
    float **pages;
    size_t n_pages, cap_pages;
    size_t len;
    /* The cache's own: */
    size_t tag;
    bool busy, forked;
    char *key;
    size_t key_len;
    struct pf_kv *older, *newer; /* by last use */
};

struct pf_kv_cache;

/*
 * `layers` slots of width C = heads * D; pages together keep within `limit`
 * bytes.
 */
enum pf_status pf_kv_cache_new(struct pf_kv_cache **cache, size_t layers,
    size_t width, size_t limit, struct pf_err *err);
void pf_kv_cache_free(struct pf_kv_cache *cache);

/*
 * Makes the sequence of that key ready to take T positions from `pos` on, and
 * busy until pf_kv_idle: pos 0 begins it anew, pos n continues it after its
 * first n positions (what it holds beyond is dropped).  With `fork` not NULL,
 * the sequence starts with the first pos positions of that one.  `tag` is
 * kept with a sequence and must be the same when it continues.
 *
 * With pos and T 0 there is nothing to hold: the sequence is forgotten, and
 * *kv is NULL.
 *
 * Where memory is short, sequences that are not busy are dropped, the least
 * recently used first.
 *
 * PF_AGAIN: it is busy, or busy ones hold the memory.  PF_ESTATE: it (or
 * `fork`) holds fewer than pos positions, or has another tag.  PF_ERANGE: it
 * alone would not fit.
 */
enum pf_status pf_kv_begin(struct pf_kv_cache *cache, struct pf_kv **kv,
    const char *key, size_t len, const char *fork, size_t fork_len,
    size_t pos, size_t T, size_t tag, struct pf_err *err);

/* No sequence is busy any more; each holds what it was made ready for. */
void pf_kv_idle(struct pf_kv_cache *cache);

/* Frees a sequence if it is there; PF_AGAIN if it is busy. */
enum pf_status pf_kv_end(struct pf_kv_cache *cache, const char *key,
    size_t len, struct pf_err *err);

/* Bytes of pages in use. */
size_t pf_kv_bytes(const struct pf_kv_cache *cache);

/*
 * Stores the key and value rows (C floats each) of position `pos` of layer
 * slot `slot`; `heads` * D = C.
 */
void pf_kv_store(const struct pf_kv_cache *cache, const struct pf_kv *kv,
    size_t slot, size_t pos, size_t heads, const float *key,
    const float *value);

/* Where head `head` of a layer slot lies, for the kernels. */
struct pf_kv_head pf_kv_head(const struct pf_kv_cache *cache,
    const struct pf_kv *kv, size_t slot, size_t head, size_t D);

#endif
