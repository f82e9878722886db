#ifndef MAPS_H
#define MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pipeformer/record.h>

enum { NUMBER_MAX = 1 << 16 }; /* of a layer, of a head: less than that */

/* Numbers of layers or of heads, or none where an axis has no numbers. */
struct axis {
    size_t *number, n;
};

/* The maps of a record, those that are wanted. */
struct maps {
    const struct pf_tensor *tensor;
    size_t L, H, T, S;
    size_t stride; /* from row to row of a map: S, or H * S */
    struct axis layers, heads; /* their numbers */
    bool has_layers, has_heads; /* else an axis of one that is not there */
    size_t *l, *h;             /* the wanted ones, as indices */
    size_t n_l, n_h;
    const float **map; /* [n_l][n_h] */
    const uint32_t *ids;
    size_t n_ids;
};

/*
 * Of `attn` [L,H,T,S], or bare [...,T,S]: the maps of these layers and heads
 * (n 0: of all), which the record must have.  m is zeroed, and to be freed
 * after a failure, too.
 */
enum pf_status maps_read(struct maps *m, struct pf_record *rec,
    const struct axis *layers, const struct axis *heads, struct pf_err *err);

/*
 * The same of any tensor of numbers with one to four axes: one is a row, three
 * are [H,T,S], or [T,H,S] in an activation that has its heads inside.
 */
enum pf_status maps_read_field(struct maps *m, struct pf_record *rec,
    const char *name, const struct axis *layers, const struct axis *heads,
    struct pf_err *err);

void maps_fini(struct maps *m);

#endif
