#ifndef ATTEND_KV_H
#define ATTEND_KV_H

#include <stdbool.h>

#include <pipeformer/kv-record.h>

#include "cli.h"

/*
 * The keys and values of attend's sequences as files: read before the first
 * record, and written as sequences end and at the end of input.
 */
struct attend_kv {
    const char *by;       /* such an option, as it was written; or NULL */
    bool f16;             /* --kv-type f16 */
    const char *save;     /* --kv-save; NULL: none */
    const char **loads;   /* --kv-load: files */
    size_t n_loads;

    /* Once it is open. */
    struct pf_kv_cache *cache; /* borrowed */
    struct pf_kv_plan plan;
    const char *model;    /* its fingerprint */
    char *part;           /* what is written to; NULL: nothing (any more) */
    struct pf_out out;
    uint64_t loaded, saved;
    bool lost; /* a batch failed: what is held may not be so */
};

/* --kv-load FILE, once more. */
void attend_kv_add(struct attend_kv *kv, const char *file);

struct pf_model;

/*
 * With an empty cache of that model: its type, what --kv-load brings, and the
 * file that --kv-save writes.  Ends the command where that fails.
 */
void attend_kv_open(struct attend_kv *kv, struct pf_kv_cache *cache,
    const struct pf_kv_plan *plan, const struct pf_model *model);

/* A sequence is about to be freed: saves it if it is there. */
enum pf_status attend_kv_ends(struct attend_kv *kv, const char *key,
    size_t len, struct pf_err *err);

/* After the last record: saves those that live, and the part is whole. */
enum pf_status attend_kv_close(struct attend_kv *kv, struct pf_err *err);

/* When all output is written: the part becomes the file.  false: cannot. */
bool attend_kv_commit(struct attend_kv *kv);

void attend_kv_free(struct attend_kv *kv);

#endif
