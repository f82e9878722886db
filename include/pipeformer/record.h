#ifndef PIPEFORMER_RECORD_H
#define PIPEFORMER_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pipeformer/buf.h>
#include <pipeformer/err.h>
#include <pipeformer/io.h>
#include <pipeformer/safetensors.h>
#include <pipeformer/tensor.h>

/*
 * A record: metadata (JSON values, kept as the text they came as) and tensors.
 * On the wire it is a line of NDJSON or one safetensors document; see
 * pipeformer(5).  This module is the only code that knows either.
 */

struct pf_field {
    const char *name; /* decoded */
    const char *text; /* the value, JSON, checked */
    size_t len;
    const char *key; /* the name as it came, with its quotes */
    size_t key_len;
};

/*
 * All that a record points to is in `mem` or in `large` (the tensors of a large
 * document, as they were read), or lives as long as it is used.
 */
struct pf_record {
    struct pf_field *fields;
    struct pf_tensor *tensors;
    size_t n_fields, cap_fields, n_tensors, cap_tensors;
    struct pf_arena mem;
    struct pf_memory large;
};

#define PF_RECORD_INIT { NULL, NULL, 0, 0, 0, 0, PF_ARENA_INIT, PF_MEMORY_INIT }

void pf_record_fini(struct pf_record *rec);

/* Empty again, for the next one. */
void pf_record_clear(struct pf_record *rec);

/* A field or tensor of that name, or NULL. */
struct pf_field *pf_record_field(const struct pf_record *rec,
    const char *name);
struct pf_tensor *pf_record_tensor(const struct pf_record *rec,
    const char *name);
bool pf_record_has(const struct pf_record *rec, const char *name);

/* Removes the field or tensor of that name if there is one. */
void pf_record_drop(struct pf_record *rec, const char *name);

/* Removes every field and tensor that `drop` says true of. */
void pf_record_drop_if(struct pf_record *rec,
    bool (*drop)(const char *name, bool tensor));

/*
 * Sets a field to a JSON text, which is copied; a field of that name keeps
 * its place, a new one goes last.
 */
enum pf_status pf_record_set(struct pf_record *rec, const char *name,
    const char *json, size_t len, struct pf_err *err);
enum pf_status pf_record_set_i64(struct pf_record *rec, const char *name,
    int64_t v, struct pf_err *err);
enum pf_status pf_record_set_f32(struct pf_record *rec, const char *name,
    float v, struct pf_err *err);
enum pf_status pf_record_set_f64(struct pf_record *rec, const char *name,
    double v, struct pf_err *err);
enum pf_status pf_record_set_string(struct pf_record *rec, const char *name,
    const char *s, size_t len, struct pf_err *err);

/* Copies a field of `from`, key and text, if it has one of that name. */
enum pf_status pf_record_copy_field(struct pf_record *rec,
    const struct pf_record *from, const char *name, struct pf_err *err);

/*
 * Sets a tensor of at most PF_MAX_DIMS axes.
 * `data` is borrowed until the record is written; with NULL,
 * memory of the record's own is taken, to be filled in through the result's
 * `data`.  NULL when there is no memory.
 */
struct pf_tensor *pf_record_put(struct pf_record *rec, const char *name,
    enum pf_dtype type, unsigned ndim, const size_t *shape, const void *data);

/*
 * Typed looks.  An absent field gives `absent`; one of another kind is
 * PF_EFORMAT and named.
 */
enum pf_status pf_record_i64(const struct pf_record *rec, const char *name,
    int64_t absent, int64_t *v, struct pf_err *err);

/* A position: as above, absent 0, and not negative. */
enum pf_status pf_record_pos(const struct pf_record *rec, size_t *pos,
    struct pf_err *err);

/* A string, appended to out; PF_END if absent. */
enum pf_status pf_record_string(const struct pf_record *rec, const char *name,
    struct pf_buf *out, struct pf_err *err);

/* Whether the field is there and true; null is absent, any other value than a
 * boolean is PF_EFORMAT. */
enum pf_status pf_record_bool(const struct pf_record *rec, const char *name,
    bool *v, struct pf_err *err);

/*
 * Which sequence: bytes that are equal exactly for the same `seq` or, with
 * name "fork", the same fork.  Absent: none.  "i1" for 1, "s1" for "1".
 */
enum pf_status pf_record_seq(const struct pf_record *rec, const char *name,
    struct pf_buf *key, struct pf_err *err);

/*
 * A float tensor as aligned float32, converted into the record's memory where
 * it is of another float type or lies askew; *v NULL when it is absent.
 */
enum pf_status pf_record_f32(struct pf_record *rec, const char *name,
    const struct pf_tensor **t, const float **v, struct pf_err *err);

/* Ids, one dimension, not negative; *n 0 and *v NULL when absent. */
enum pf_status pf_record_ids(struct pf_record *rec, const char *name,
    const uint32_t **v, size_t *n, struct pf_err *err);

/*
 * Whether the fields that every filter goes by are what they should be: `done`
 * and `error` strings, `more` a boolean; null and false stand for absent.
 */
enum pf_status pf_record_check(const struct pf_record *rec,
    struct pf_err *err);

/* `error` is there: some filter before failed. */
bool pf_record_is_error(const struct pf_record *rec);

/* `done` is there: the sequence ends with this record. */
bool pf_record_is_done(const struct pf_record *rec);

/* It does, for this reason ("eos", nothing that JSON escapes). */
bool pf_record_done_by(const struct pf_record *rec, const char *why);

/*
 * A mark: `done` and a position past 0, or `done` and no `seq`.  Nothing is
 * computed for it.  false where `pos` makes no sense.
 */
bool pf_record_is_mark(const struct pf_record *rec);

/*
 * The known names that are tensors (ids, hidden, ...), with their type in
 * NDJSON; false for any other.
 */
bool pf_tensor_name(const char *name, enum pf_dtype *type);

/* The known names that are lists of numbers and yet metadata: layers, ... */
bool pf_metadata_name(const char *name);

/* Names of TransformerLens's activations: blocks.3.attn.q, ln_final.scale. */
bool pf_activation_name(const char *name);

/*
 * Whether a field or a tensor of that name has an entry a position, and so
 * does not go to other positions.
 */
bool pf_per_position(const char *name, bool tensor);

/*
 * Reading.  A reader takes records off an input, whatever encoding each is in
 * and however the reads cut them.
 */
struct pf_reader {
    struct pf_in *in;
    const char *main_name; /* what an array from .npy is called */
    bool all_tensors;      /* NDJSON: every rectangular array is a tensor but
                              those that pf_metadata_name knows */
    size_t scanned;        /* bytes of the line in the making looked through */
    size_t need;           /* bytes of the document in the making, once known */
    struct pf_safetensors doc; /* its header */
    struct pf_arena mem;       /* which lies here */
    struct pf_buf scratch, numbers;
};

#define PF_READER_INIT \
    { .main_name = "data" }

void pf_reader_fini(struct pf_reader *r);

/*
 * The next record into `rec` (cleared first).  PF_END at the end of input;
 * PF_EFORMAT if it ends within a record.  After PF_EFORMAT, `*lost` (may be
 * NULL) tells whether the place where the next record begins is unknown, so
 * that reading cannot go on.
 */
enum pf_status pf_reader_next(struct pf_reader *r, struct pf_record *rec,
    bool *lost, struct pf_err *err);

/* Whether pf_reader_next would return without waiting for input. */
bool pf_reader_ready(struct pf_reader *r);

/*
 * The next record as it stands, if it is a line of NDJSON that is whole among
 * the bytes that are there (borrowed, without its newline).  Who knows what to
 * make of it takes it with pf_reader_take; else pf_reader_next gives it.
 */
bool pf_reader_line(struct pf_reader *r, const char **line, size_t *len);
void pf_reader_take(struct pf_reader *r);

/* One line of NDJSON (no newline) as a record. */
enum pf_status pf_record_parse(struct pf_reader *r, struct pf_record *rec,
    const char *line, size_t len, struct pf_err *err);

/*
 * The only record of a file; every rectangular array of it is a tensor, one
 * from .npy is called `main_name`.  PF_EFORMAT if the file holds none or
 * several; messages name the file.
 */
enum pf_status pf_record_read_file(struct pf_record *rec, const char *path,
    const char *main_name, struct pf_err *err);

/* Writing. */
enum pf_format { PF_NDJSON, PF_BINARY };

enum pf_status pf_record_write(struct pf_out *out,
    const struct pf_record *rec, enum pf_format format, struct pf_err *err);

/* Appends a record as a line of NDJSON, newline and all. */
enum pf_status pf_record_print(struct pf_buf *b, const struct pf_record *rec,
    struct pf_err *err);

/* Appends a tensor's numbers as nested JSON arrays. */
void pf_tensor_print(struct pf_buf *b, const struct pf_tensor *t);

/* Appends a tensor as a .npy file (version 1.0); PF_EFORMAT for BF16, F8. */
enum pf_status pf_npy_write(struct pf_out *out, const struct pf_tensor *t,
    struct pf_err *err);

#endif
