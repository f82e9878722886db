#ifndef PF_RECORD_PRIVATE_H
#define PF_RECORD_PRIVATE_H

#include <string.h>

#include <pipeformer/record.h>

/* A new last field or tensor to fill in; NULL when there is no memory. */
struct pf_field *pf_record_new_field(struct pf_record *rec);
struct pf_tensor *pf_record_new_tensor(struct pf_record *rec);

/*
 * One array from a .npy file of `len` bytes (npy.c): how long it is, as far as
 * the bytes that are there tell: PF_OK and *need, the bytes that must be there
 * to know more or, when *need <= len, the length of the whole.
 */
enum pf_status pf_npy_len(const char *p, size_t len, size_t *need,
    struct pf_err *err);
enum pf_status pf_npy_read(struct pf_record *rec, const char *name,
    const char *p, size_t len, struct pf_err *err);

/* Fields of a JSON object, all of them metadata (record-read.c). */
enum pf_status pf_record_parse_object(struct pf_reader *r,
    struct pf_record *rec, const char *text, size_t len, bool tensors,
    struct pf_err *err);

/* No name stands twice (record-read.c). */
enum pf_status pf_record_check_names(const struct pf_record *rec,
    struct pf_err *err);

/* Names differ in their first byte, mostly. */
static inline bool
pf_same_name(const char *a, const char *b)
{
    return a[0] == b[0] && strcmp(a, b) == 0;
}

#endif
