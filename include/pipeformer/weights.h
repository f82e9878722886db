#ifndef PIPEFORMER_WEIGHTS_H
#define PIPEFORMER_WEIGHTS_H

#include <stddef.h>

#include <pipeformer/err.h>
#include <pipeformer/tensor.h>

/*
 * The tensors of a model's files, mapped read-only: the processes of a pipe
 * share one copy in the page cache, and nothing is read before it is used.
 */
struct pf_weights;

/*
 * Opens model.safetensors of a directory or, if there is none, the files that
 * its model.safetensors.index.json names.  Files are checked as safetensors.h
 * says, and that data ends where the file does.
 */
enum pf_status pf_weights_open(struct pf_weights **w, const char *dir,
    struct pf_err *err);
void pf_weights_free(struct pf_weights *w);

/*
 * Whether an index, if they came by one, says of each tensor which file it is
 * in; PF_EMODEL, and the first tensor of which it does not.
 */
enum pf_status pf_weights_check(const struct pf_weights *w, const char *dir,
    struct pf_err *err);

/* The tensor of that name, or NULL; it lives as long as w. */
const struct pf_tensor *pf_weights_find(const struct pf_weights *w,
    const char *name);

/* The i-th tensor, in order of name; NULL past the last. */
const struct pf_tensor *pf_weights_at(const struct pf_weights *w, size_t i);

/* The i-th file's path and size; NULL past the last. */
const char *pf_weights_file(const struct pf_weights *w, size_t i,
    size_t *bytes);

#endif
