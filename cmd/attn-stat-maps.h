#ifndef ATTN_STAT_MAPS_H
#define ATTN_STAT_MAPS_H

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
    const struct pf_tensor *attn;
    size_t L, H, T, S;
    struct axis layers, heads; /* their numbers */
    size_t *l, *h;             /* the wanted ones, as indices */
    size_t n_l, n_h;
    const float **map; /* [n_l][n_h] */
    const uint32_t *ids;
};

/*
 * Of `attn` [L,H,T,S], or bare [...,T,S]: the maps of these layers and heads
 * (n 0: of all), which the record must have.  m is zeroed, and to be freed
 * after a failure, too.
 */
enum pf_status maps_read(struct maps *m, struct pf_record *rec,
    const struct axis *layers, const struct axis *heads, struct pf_err *err);
void maps_fini(struct maps *m);

#endif
