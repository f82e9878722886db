#ifndef PIPEFORMER_KV_RECORD_H
#define PIPEFORMER_KV_RECORD_H

#include <pipeformer/err.h>
#include <pipeformer/kv.h>
#include <pipeformer/record.h>

/*
 * A sequence's keys and values as a record: for each layer N the tensors
 * blocks.N.attn.k and blocks.N.attn.v, [T, H, D], with `seq` and `pos`.
 */

/* What the slots of a cache are for: slot i is of layer layers[i]. */
struct pf_kv_plan {
    const size_t *layers;
    size_t n_layers, heads;
};

/*
 * Fills an empty record with what a sequence holds, in the cache's own type;
 * `model`, unless it is NULL, becomes that field.  A sequence that was begun
 * at a later layer (its tag: the first slot) has no tensors of those before.
 */
enum pf_status pf_kv_to_record(struct pf_record *rec,
    const struct pf_kv_cache *cache, const struct pf_kv *kv,
    const struct pf_kv_plan *plan, const char *model, struct pf_err *err);

/*
 * And back: the sequence that the record names gets its T positions from `pos`
 * on, after those of `fork` or its own.  F32, F16 and BF16 are taken.  All
 * layers of the plan must be there, but for the first few, and then the tag is
 * how many those are; other tensors do not matter.
 *
 * PF_EFORMAT, PF_ESHAPE or PF_ERANGE (infinities and NaN) name the tensor;
 * otherwise as pf_kv_begin, and no other sequence may be busy.
 */
enum pf_status pf_kv_from_record(struct pf_kv_cache *cache,
    const struct pf_record *rec, const struct pf_kv_plan *plan,
    struct pf_err *err);

#endif
