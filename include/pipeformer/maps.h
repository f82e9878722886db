#ifndef PIPEFORMER_MAPS_H
#define PIPEFORMER_MAPS_H

#include <stddef.h>

#include <pipeformer/record.h>

/*
 * Attention maps in a record: `attn`, F32 [L, H, T, S], and the lists `layers`
 * and `heads` that say what its first two axes are.  A part of a model adds
 * the maps of its layers behind those that an earlier part left.
 */

/*
 * Whether maps of those heads and of that T and S may be added: there are none
 * yet (then a stray `layers` is dropped), or they are of the same heads, T and
 * S and their `layers` fit.
 */
enum pf_status pf_maps_check(struct pf_record *rec, const size_t *heads,
    size_t n_heads, size_t T, size_t S, struct pf_err *err);

/*
 * Makes room for the maps of n_layers more layers, [n_layers, n_heads, T, S]
 * at *maps, and adds to the lists.  After pf_maps_check.
 */
enum pf_status pf_maps_add(struct pf_record *rec, const size_t *layers,
    size_t n_layers, const size_t *heads, size_t n_heads, size_t T, size_t S,
    float **maps, struct pf_err *err);

#endif
