#ifndef ENCODE_PRIVATE_H
#define ENCODE_PRIVATE_H

#include <stdatomic.h>

#include "encode.h"

/* An encoder, which knows the pieces that it has seen; one works with it. */
struct encode_coder {
    struct pf_encoder *enc;
    atomic_flag busy;
};

/* A share of the texts, and what comes of it.  There are more of them than
 * threads, so that all are at work until the last is done. */
struct encode_worker {
    struct pf_encoder *enc; /* that it works with */
    struct pf_buf out, ids, segments, spans;
    struct pf_record rec;
    uint64_t sum;
    bool misfit;

    /* Its share, jobs or a block of texts, and where it failed. */
    struct encode_job *jobs;
    size_t n, done;
    const char *block, *end;
    int delimiter;
    uint64_t number;
    size_t first; /* of the whole batch */
    struct pf_memory memory; /* of the block, if it was read for this worker */
    bool made; /* what comes of the block is there, not written yet */
    struct encode_worker *next; /* with the share behind it, or idle too */
    const struct encode *e;
    const char *text; /* or a part of a long one */
    size_t len, base;
    enum pf_status st;
    struct pf_err err;
};

/* Ids of a text, and where they lie in it. */
struct encode_body {
    const uint32_t *ids;
    const size_t *spans; /* with --offsets */
    size_t n;
};

/* Encodes one text, or two, and adds the output to w->out. */
enum pf_status encode_one(struct encode_worker *w,
    const struct encode_job *job, struct pf_err *err);

/*
 * Encodes those of the texts of w->block that can be together, if any, and
 * adds the output; then the block begins behind them, and they are done.
 */
enum pf_status encode_together(struct encode_worker *w, struct pf_err *err);

/* The output of a text whose ids are known. */
enum pf_status encode_finish(struct encode_worker *w,
    const struct encode_job *job, struct encode_body *a,
    struct encode_body *b, struct pf_err *err);

/* The slots that a text, or two, get, and how many of them are ids. */
size_t encode_slots(const struct encode *e, bool pair,
    const struct pf_slot **slots, size_t *ids);

/* What a text has become, and where its ids lie in it. */
struct encoded {
    const uint32_t *ids;
    const int32_t *segments; /* NULL: all 0 */
    const size_t *spans;     /* with --offsets */
    size_t n, cut;
};

/* What stands around a text, or two (b may be NULL), and they, in t. */
enum pf_status encode_frame(struct encode_worker *w,
    const struct pf_slot *slots, size_t n, const struct encode_body *a,
    const struct encode_body *b, struct encoded *t, struct pf_err *err);

/* Adds the output of a text to w->out: `rec`, or what else was asked for. */
enum pf_status encode_add_output(struct encode_worker *w,
    struct pf_record *rec, uint64_t number, const struct encoded *t,
    struct pf_err *err);

/* The fields of a text, and the record as a line. */
enum pf_status encode_add_record(struct encode_worker *w, struct pf_record *rec,
    const struct encoded *t, struct pf_err *err);

/*
 * The pieces of a text, each a record with a seq of its own; a piece begins
 * `overlap` ids or a few more before the end of the last one.
 */
enum pf_status encode_chunks(struct encode_worker *w, struct pf_record *rec,
    const struct encode_body *text, struct pf_err *err);

enum {
    ENCODE_SHARE = 1 << 14, /* bytes below which no other worker is woken */
    ENCODE_LONG = 1 << 17,  /* of one text, from which on it is shared */
};

/* pf_pool_run; a short input needs no threads, so they are started here. */
void encode_run(struct encode *e, void (*task)(void *ctx, size_t i),
    void *ctx, size_t n);

/* A coder that no one works with: there is one for each thread. */
struct encode_coder *encode_take_coder(struct encode *e);

/* Makes the share of a worker: until all is done or a text fails, which is not
 * counted. */
void encode_make(struct encode_worker *w, struct pf_encoder *enc);

/* Adds a worker's sums to those of all, and writes what it has made. */
enum pf_status encode_collect(struct encode *e, struct encode_worker *w,
    struct pf_err *err);

/* Who is told of failures, and whether to go on. */
struct encode_told {
    cli_failure *failed;
    void *where;
    bool stop;
};

/* A worker's share, from the text `first` on, is written, and what it left
 * after a failure is made. */
enum pf_status encode_write_share(struct encode *e, struct encode_worker *w,
    size_t first, struct encode_told *told, struct pf_err *err);

/* The ids of one long text, by all workers; its spans, with --offsets. */
enum pf_status encode_long(struct encode *e, const char *text, size_t len,
    struct pf_buf *ids, struct pf_buf *spans, struct pf_err *err);

/* Little-endian ids. */
void encode_add_raw(struct pf_buf *out, const struct encode *e,
    const uint32_t *ids, size_t n);

/* The place of an id in its text. */
void encode_add_span(struct encode_worker *w, size_t from, size_t to);

#endif
