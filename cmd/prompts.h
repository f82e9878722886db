#ifndef PROMPTS_H
#define PROMPTS_H

#include <pipeformer/seqmap.h>

#include "child.h"
#include "cli.h"
#include "loop.h"
#include "progress.h"

/* What the two halves of the loop share: prompts in, tokens out. */

/*
 * A sequence that was let in, or whose prompt is not whole yet; or a prompt of
 * several continuations, see samples.c.
 */
struct sequence {
    size_t index; /* of its prompt */
    uint32_t *ids;
    size_t n, cap, prompt; /* ids so far, of them the prompt's */
    bool stepping;         /* a token was drawn, and another will be */
    char *seq;             /* JSON, of one that is not whole yet; or NULL */
    /* With --whole, its last record, which stands for it when all is
     * interrupted; of a prompt of several, the prompt. */
    struct pf_record last;

    struct sequence *parent; /* the prompt that it continues with others */
    size_t begun, left;      /* of those: that were let in, that are not done */
};

/* What is to be written of a sequence, and whether it is complete. */
struct finished {
    struct pf_buf text;
    bool set;
};

struct loop {
    const struct loop_options *opt;
    struct child child;
    bool child_ended;

    struct pf_in prompts; /* the file at hand */
    struct pf_reader prompt_reader;
    size_t file; /* its index; n_files: no more prompts */
    bool file_open;
    uint64_t number; /* of the record in that file */

    struct pf_seqmap live, part; /* in the pipe; not whole yet */
    size_t running, done;        /* of those in the pipe: that are drawn from;
                                    that were */
    size_t stepping, step;       /* of those: that are past their prompt;
                                    tokens of theirs that wait to go in */
    bool sending;                /* what waits goes in */
    struct sequence *waiting;    /* a prompt of several, not all let in yet */
    size_t next_index, next_out;
    /* With --whole: finished[i % size] is of sequence i. */
    struct finished *finished;
    size_t size;
    struct progress progress;
    bool stop;
    bool last;           /* a prompt was no good: no more are read */
    struct pf_buf error; /* what is written of that when all is done */
    struct pf_buf key, name;
};

/* loop.c: */
void loop_free_sequence(void *sequence);
bool loop_add_ids(struct sequence *s, const uint32_t *ids, size_t n);

/* The key of that sequence, in l->key; and the record is now its last. */
struct sequence *loop_find(struct loop *l, const struct pf_record *rec);
void loop_keep(struct loop *l, struct sequence *s, struct pf_record *rec);

/* The sequence whose key is in l->key is not in the pipe any more. */
void loop_forget(struct loop *l, struct sequence *s);

/* loop-output.c: */

/* The place of the next prompt in the order of output, and the next n - 1. */
size_t loop_index(struct loop *l, size_t n);

/* Nothing is written in this place. */
void loop_skip(struct loop *l, size_t index);

/* Writes a record, now or when it is its turn. */
void loop_emit(struct loop *l, const struct pf_record *rec, size_t index);

/* Makes the last record of a sequence the one of all its ids. */
void loop_make_whole(const struct loop *l, const struct sequence *s,
    struct pf_record *rec);

/* Writes what there is of sequences that are not done. */
void loop_write_unfinished(struct loop *l);

/* samples.c: several continuations of one prompt. */

/* Is one of that prompt's names taken?  Its key is in l->key afterwards. */
enum pf_status samples_check(struct loop *l, const struct pf_record *rec,
    struct pf_err *err);

/* A prompt is whole, its key in l->key: computes it once, but for its last
 * id. */
enum pf_status samples_admit(struct loop *l, struct pf_record *rec,
    struct sequence *s, struct pf_err *err);

/* Lets continuations of the prompt that waits in while there is room. */
void samples_begin(struct loop *l);

/* The prompt has failed, and so have they all. */
void samples_fail(struct loop *l, struct sequence *parent,
    const struct pf_record *error);

/* prompts.c: */

/* Sends ids s->ids[0 .. n), in pieces where they are many; all of them are
 * the prompt if `whole`, else more follow. */
enum pf_status prompts_send(struct loop *l, struct pf_record *rec,
    const struct sequence *s, size_t n, bool whole, struct pf_err *err);

/* Writes the prompt of a sequence that was let in, with --echo. */
enum pf_status prompts_echo(struct loop *l, struct pf_record *rec,
    const struct sequence *s, struct pf_err *err);

/* Is there room for another sequence, and may there be one? */
bool prompts_room(const struct loop *l);

/* Reads prompts while there is room and they are there. */
void prompts_read(struct loop *l, struct pf_record *rec);

/* Were those all prompts?  Waits for the next one or the end of the input. */
bool prompts_ended(struct loop *l, struct pf_record *rec);

#endif
