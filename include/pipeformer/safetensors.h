#ifndef PIPEFORMER_SAFETENSORS_H
#define PIPEFORMER_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include <pipeformer/buf.h>
#include <pipeformer/err.h>
#include <pipeformer/tensor.h>

/*
 * The safetensors layout (https://github.com/huggingface/safetensors): eight
 * bytes, little-endian, the length of a header; the header, a JSON object of
 * "name": {"dtype", "shape", "data_offsets": [begin, end]} and optionally
 * "__metadata__", an object of strings; then the data.
 *
 * Read strictly: a header of at most 100 MB, names that differ, offsets that
 * follow each other without gap or overlap from 0, and a length that is the
 * product of shape and element size.
 */
enum { PF_SAFETENSORS_HEADER_MAX = 100000000 };

struct pf_safetensors {
    struct pf_tensor *tensors; /* in the order of the header; data NULL */
    size_t *offsets;           /* where each one's data begins */
    size_t n;
    size_t data_len; /* the largest end offset */
    /* __metadata__: keys and values, decoded, with a NUL behind each. */
    struct pf_safetensors_meta {
        const char *key, *value;
        size_t key_len, value_len;
    } *meta;
    size_t n_meta;
};

/* Length of the header from its eight bytes; PF_EFORMAT if too long. */
enum pf_status pf_safetensors_len(const char first[8], size_t *len,
    struct pf_err *err);

/*
 * Parses a header of `len` bytes.  All memory is the arena's; the caller sets
 * the tensors' `data`.
 */
enum pf_status pf_safetensors_parse(struct pf_safetensors *st,
    struct pf_arena *mem, const char *header, size_t len, struct pf_err *err);

/*
 * Appends the eight bytes and the header of `n` tensors, and says in order[]
 * (n places) in which order their data must follow: wider types first, so
 * that each lies aligned.  `meta`, JSON text, becomes __metadata__'s entry
 * "pipeformer"; nothing if meta_len is 0.  Padded with spaces to 8 bytes.
 */
enum pf_status pf_safetensors_header(struct pf_buf *out,
    const struct pf_tensor *tensors, size_t n, const char *meta,
    size_t meta_len, size_t *order, struct pf_err *err);

#endif
