#ifndef ENCODE_H
#define ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pipeformer/buf.h>
#include <pipeformer/record.h>
#include <pipeformer/tokenizer.h>

#include "cli.h"

/* What tok-encode makes of texts, many at once. */

enum encode_output {
    ENCODE_RECORDS,
    ENCODE_COUNTS,
    ENCODE_TOTAL, /* counts, added up */
    ENCODE_RAW,
    ENCODE_COLOR,
    ENCODE_FITS, /* nothing: whether all texts have at most `max` ids */
};

struct encode {
    const struct pf_tokenizer *tok;
    enum encode_output output;
    bool tokens, offsets, eot, bare; /* bare: nothing is added to a text */
    size_t max;            /* SIZE_MAX: no limit */
    size_t chunk, overlap; /* 0: texts stay whole */
    size_t raw;            /* bytes of an id */
    uint32_t eot_id;

    uint64_t sum;
    bool misfit;
    size_t part; /* ids of the parts so far, of the text at hand */
    bool begun;

    const char *special; /* of texts, a comma between; "all"; NULL: none */

    struct pf_pool *pool; /* NULL until there is work for more than one */
    struct encode_coder *coders; /* one for each thread */
    size_t n_coders;
    struct encode_worker *workers; /* several for each thread */
    size_t n_workers;
};

/*
 * A text, alone or with a pair.  `rec`, if there is one, gets the fields; or
 * without a text it is written as it is.
 */
struct encode_job {
    const char *text, *pair;
    size_t len, pair_len;
    uint64_t number; /* of the text */
    struct pf_record *rec;
};

/* Below `special`, what is made, and is there until the program ends. */
void encode_start(struct encode *e);

/*
 * Encodes texts and writes what comes of them, in order.  `failed` is told of
 * one that fails, when those before it are written; false from that: no more.
 */
enum pf_status encode_jobs(struct encode *e, struct encode_job *jobs,
    size_t n, cli_failure *failed, void *where, struct pf_err *err);

/*
 * The same for texts in a block of bytes, each with the byte `delimiter`
 * behind it but maybe the last; -1: it is one text.  They are numbered from
 * `number`; *n is how many there are, those included that come behind the block
 * (struct cli_block).
 */
enum pf_status encode_block(struct encode *e, const struct cli_block *block,
    int delimiter, uint64_t number, size_t *n, struct pf_err *err);

/* Whether a long text may be worked on in parts: no record is made of it. */
bool encode_parts(const struct encode *e);

/* The text whose parts have come does not go on. */
void encode_drop(struct encode *e);

/* Such a part (see struct cli_texts). */
enum pf_status encode_part(void *e, const char *text, size_t len, bool last,
    size_t *used, struct pf_err *err);

/* A number on a line. */
enum pf_status encode_write_count(uint64_t n, struct pf_err *err);

#endif
