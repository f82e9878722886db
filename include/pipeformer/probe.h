#ifndef PIPEFORMER_PROBE_H
#define PIPEFORMER_PROBE_H

#include <stdbool.h>
#include <stddef.h>

#include <pipeformer/err.h>
#include <pipeformer/forward.h>
#include <pipeformer/model.h>
#include <pipeformer/record.h>

/*
 * Looking into a run of blocks and reaching into it: activations are tapped
 * into the record, replaced by those of other records, or set to zero, by the
 * names that TransformerLens gives them.
 */

/* "blocks.3.attn.q" into `s` of `size` bytes (48 always do); returns `s`. */
char *pf_point_name(char *s, size_t size, size_t layer, enum pf_point point);

/* And back; false where that is no activation of a block. */
bool pf_point_find(const char *name, size_t *layer, enum pf_point *point);

/* Whether those halves of a block (PF_PART_...) come through that point. */
bool pf_point_runs(enum pf_point point, unsigned parts);

/* Whether the point has a value a head; those have `heads` beside them. */
bool pf_point_by_head(enum pf_point point);

/* * matches any characters, ? one, all else itself. */
bool pf_glob(const char *pattern, size_t len, const char *name);

/* What is to be done in a run of certain layers. */
struct pf_hooks;

/*
 * For runs of layers[0..n_layers) of such a model, `parts` of each; values a
 * head are tapped of heads[0..n_heads).  Both lists and the configuration are
 * borrowed as long as the hooks live.
 */
enum pf_status pf_hooks_new(struct pf_hooks **hooks,
    const struct pf_config *config, const size_t *layers, size_t n_layers,
    const size_t *heads, size_t n_heads, unsigned parts, struct pf_err *err);
void pf_hooks_free(struct pf_hooks *h);

/*
 * Taps what the list names, "blocks.0.attn.q,blocks.*.resid_post".  PF_ERANGE
 * for an entry that matches nothing; what there is is listed.
 */
enum pf_status pf_hooks_tap(struct pf_hooks *h, const char *list,
    struct pf_err *err);

/* Whether a tap has values a head. */
bool pf_hooks_tap_heads(const struct pf_hooks *h);

/*
 * Sets to zero what the list names; "blocks.0.attn.z:2" means head 2 alone.
 * Scores that are -inf stay so.  Errors as above.
 */
enum pf_status pf_hooks_zero(struct pf_hooks *h, const char *list,
    struct pf_err *err);

/*
 * Takes (empties) a record whose activations replace those of a run.  Its rows
 * are those of the positions `positions`, a list, or else of `pos`, pos + 1,
 * ...; its heads are those that the list `heads` names, or else all.  So what
 * was tapped is put back where it came from, and a part of it is a patch, too.
 * In a map, the columns up to a row's own position count.
 *
 * It is for the sequence that its `seq` names; without `seq`, or alone in its
 * file, for all.  Where records overlap, the later one wins.  PF_ESHAPE where
 * it does not fit the model.
 */
enum pf_status pf_hooks_patch(struct pf_hooks *h, struct pf_record *rec,
    struct pf_err *err);

/* After the last one of a file; PF_EFORMAT if it held no activations. */
enum pf_status pf_hooks_patch_end(struct pf_hooks *h, struct pf_err *err);

/* How many patches have met no row so far: another sequence, or position. */
size_t pf_hooks_unused(const struct pf_hooks *h);

/* One record's part in a run. */
struct pf_hooked {
    size_t T, pos;
    const struct pf_patches *all, *own; /* NULL: none */
    float **taps;
};

/*
 * Before a record joins a run: T rows from position `pos` go through
 * layers[from..n_layers).  Finds its patches; PF_EFORMAT or PF_ESHAPE where
 * what the record has does not go with what is tapped or patched.  *bytes is
 * about how many bytes pf_hooks_begin takes.
 */
enum pf_status pf_hooks_check(struct pf_hooks *h, struct pf_record *rec,
    size_t T, size_t pos, size_t from, struct pf_hooked *hooked, size_t *bytes,
    struct pf_err *err);

/*
 * Whether tensors that have values a head, if there are any, are of those
 * heads: the record's one list `heads` is for all of them.
 */
enum pf_status pf_hooks_check_heads(const struct pf_record *rec,
    const size_t *heads, size_t n_heads, struct pf_err *err);

/* Makes room in the record for what will be tapped. */
enum pf_status pf_hooks_begin(struct pf_hooks *h, struct pf_record *rec,
    size_t from, struct pf_hooked *hooked, struct pf_err *err);

/*
 * For pf_blocks on rows[i], which are hooked[i]; NULL if there is nothing to
 * do.  Good until the next call.
 */
const struct pf_probe *pf_hooks_probe(struct pf_hooks *h,
    const struct pf_hooked *hooked);

#endif
