#ifndef PF_PROBE_PRIVATE_H
#define PF_PROBE_PRIVATE_H

#include <pipeformer/probe.h>
#include <pipeformer/seqmap.h>

/* What the rows of a point are. */
enum kind { ROW, INNER, BY_HEAD, RESULT, MAP };

/* An activation of the model is a site: layer * PF_N_POINTS + point. */
struct pf_hooks {
    const struct pf_config *config;
    const size_t *layers, *heads;
    size_t n_layers, n_heads;
    size_t n_sites;
    bool *runs;         /* [n_sites] the run comes through it */
    bool *wanted;       /* [n_sites] something is to be done there */
    unsigned char *off; /* [n_sites, H] heads that are zero */
    size_t *tap_of;     /* [n_sites] 1 + its index among the taps; 0: none */
    size_t *taps;       /* the sites, in the order in which they run */
    size_t n_taps;
    bool heads_tapped;  /* one of them has values a head */
    bool any;

    /* Patches: the records, and where their rows go. */
    struct patch **patches;
    size_t n_patches, cap_patches, first_of_file;
    struct pf_patches *all;
    struct pf_seqmap by_seq; /* of struct pf_patches */

    struct pf_probe probe;
    const struct pf_hooked *run; /* what goes on now */
    struct pf_buf key;
};

enum kind pf_point_kind(enum pf_point p);

/* Its name behind "blocks.3.". */
const char *pf_point_text(enum pf_point p);

/* Its shape for T rows that see S keys; returns the number of axes. */
unsigned pf_point_axes(const struct pf_config *c, enum pf_point p, size_t T,
    size_t S, size_t n_heads, size_t shape[3]);

/* The same in words, "[T, 160]". */
void pf_point_shape(char *s, size_t size, const struct pf_config *c,
    enum pf_point p, size_t n_heads);

void pf_patches_free(struct pf_hooks *h);

/* The patches of a sequence (by key), or NULL. */
const struct pf_patches *pf_patches_of(const struct pf_hooks *h,
    const char *key, size_t len);

/* Whether they fit a run of an encoder over T rows: maps are whole. */
enum pf_status pf_patches_check(const struct pf_hooks *h,
    const struct pf_patches *p, size_t T, struct pf_err *err);

/* As pf_probe's `at`, for rows of positions pos .. pos + n - 1, `stride`
 * floats apart. */
bool pf_patches_apply(const struct pf_hooks *h, const struct pf_patches *p,
    size_t layer, enum pf_point point, size_t head, size_t pos, size_t n,
    float *data, size_t width, size_t stride);

#endif
