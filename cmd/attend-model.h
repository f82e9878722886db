#ifndef ATTEND_MODEL_H
#define ATTEND_MODEL_H

#include <stdbool.h>

#include "attend-kv.h"
#include "cli.h"

/*
 * attend's usual work: hidden through the blocks of a model, with what is
 * tapped, patched and set to zero on the way.
 */
struct attend_model {
    /* Options. */
    const char *layers_list, *heads_list; /* -l, --heads; NULL: all */
    bool attn;                            /* -a */
    size_t kv_mem;
    struct attend_kv kv;                  /* --kv-type, -save, -load */
    unsigned parts;             /* --part: PF_PART_... */
    struct pf_buf taps, zeros;  /* --tap, --zero: names, commas between */
    const char **patches;       /* --patch: files */
    size_t n_patches;

    /* Once it is open. */
    struct pf_model *model;
    struct pf_runner *runner;
    struct pf_kv_cache *cache; /* NULL for an encoder, and without attention */
    struct pf_hooks *hooks;
    size_t *layers, n_layers;
    size_t *heads, n_heads;
    /* What `check` found out about the records of the batch, in order, from
     * `next` on. */
    struct attend_job *jobs;
    size_t n_jobs, cap_jobs, next;
    struct pf_buf key, fork;
};

/*
 * Opens the model if it is not open.  A mistake in the options ends the
 * command.
 */
enum pf_status attend_model_open(struct attend_model *m, struct pf_err *err);
/* After the last record: writes what --kv-save wants. */
enum pf_status attend_model_close(struct attend_model *m, struct pf_err *err);

/*
 * When all output is written: --kv-save's file is put in place, and patches
 * that did nothing are told of.  Takes the exit status so far, returns it.
 */
int attend_model_end(struct attend_model *m, int status);

void attend_model_free(struct attend_model *m);

/*
 * Hands each record of a file to `take`, which may change it.  What does not
 * fit ends the command, with a message that begins with the option.
 */
struct pf_model;
typedef enum pf_status attend_take(void *ctx, struct pf_record *rec,
    struct pf_err *err);
void attend_read_all(const char *option, const char *file,
    const struct pf_model *model, attend_take *take, void *ctx);

/* As in struct cli_filter; with the model open. */
enum pf_status attend_model_check(struct attend_model *m,
    struct cli_item *item, struct pf_err *err);
enum pf_status attend_model_mark(struct attend_model *m,
    const struct pf_record *rec, struct pf_err *err);
enum pf_status attend_model_step(struct attend_model *m,
    struct cli_item **items, size_t n, size_t *at, struct pf_err *err);

#endif
