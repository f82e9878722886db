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
 * [H][16][D], as struct pf_kv_head wants them: F32, or F16 in half the memory.
 */

/* One sequence.  Positions 0 .. len-1 are held. */
struct pf_kv {
    void **pages;
    size_t n_pages, cap_pages;
    size_t len;
    char *key;
    size_t key_len, tag; /* as pf_kv_begin got them */
    bool busy;
    bool forked; /* the cache's own, as `older` */
    struct pf_kv *older;
    struct pf_kv *newer; /* the one used next after it, or NULL: to be read */
};

struct pf_kv_cache;

/*
 * `layers` slots of width C = heads * D, of F32; pages together keep within
 * `limit` bytes.
 */
enum pf_status pf_kv_cache_new(struct pf_kv_cache **cache, size_t layers,
    size_t width, size_t limit, struct pf_err *err);
void pf_kv_cache_free(struct pf_kv_cache *cache);

/* Of F16 from now on (or F32 again).  Nothing may be held yet. */
void pf_kv_cache_f16(struct pf_kv_cache *cache, bool f16);

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

/* The type of what is held, and C. */
enum pf_dtype pf_kv_type(const struct pf_kv_cache *cache);
size_t pf_kv_width(const struct pf_kv_cache *cache);

/* How many sequences were dropped so far to keep within the limit. */
uint64_t pf_kv_dropped(const struct pf_kv_cache *cache);

/* The sequence of that key, or NULL; the one that was not used for the
 * longest time, or NULL (kv->newer is the next). */
const struct pf_kv *pf_kv_find(const struct pf_kv_cache *cache,
    const char *key, size_t len);
const struct pf_kv *pf_kv_oldest(const struct pf_kv_cache *cache);

/*
 * Stores the key and value rows (C floats each) of position `pos` of layer
 * slot `slot`; `heads` * D = C.  F16 holds the nearest number that it has,
 * the even one of two, and at most 65504 in magnitude.
 */
void pf_kv_store(const struct pf_kv_cache *cache, const struct pf_kv *kv,
    size_t slot, size_t pos, size_t heads, const float *key,
    const float *value);

/* The same of one head: its D floats of key and value. */
void pf_kv_store_head(const struct pf_kv_cache *cache, const struct pf_kv *kv,
    size_t slot, size_t pos, size_t head, size_t D, const float *key,
    const float *value);

/* The same rows as they are held: C elements each of the cache's type. */
void pf_kv_fetch(const struct pf_kv_cache *cache, const struct pf_kv *kv,
    size_t slot, size_t pos, size_t heads, void *key, void *value);

/* Where head `head` of a layer slot lies, for the kernels. */
struct pf_kv_head pf_kv_head(const struct pf_kv_cache *cache,
    const struct pf_kv *kv, size_t slot, size_t head, size_t D);

#endif
