#ifndef PROMPTS_H
#define PROMPTS_H

#include <pipeformer/seqmap.h>

#include "child.h"
#include "cli.h"
#include "loop.h"

/* What the two halves of the loop share: prompts in, tokens out. */

/* A sequence that was let in, or whose prompt is not whole yet. */
struct sequence {
    size_t index; /* of its prompt */
    uint32_t *ids;
    size_t n, cap, prompt; /* ids so far, of them the prompt's */
    char *seq;             /* JSON, of one that is not whole yet; or NULL */
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
    size_t next_index, next_out;
    /* With --whole: what finished[i % size] holds is the record of sequence i,
     * as it is to be written. */
    struct pf_buf *finished;
    size_t size;
    bool stop;
    bool last;           /* a prompt was no good: no more are read */
    struct pf_buf error; /* what is written of that when all is done */
    struct pf_buf key;
};

/* loop.c: */
void loop_free_sequence(void *sequence);
bool loop_add_ids(struct sequence *s, const uint32_t *ids, size_t n);

/* The place of the next prompt in the order of output. */
size_t loop_index(struct loop *l);

/* Writes a record, now or when it is its turn. */
void loop_emit(struct loop *l, const struct pf_record *rec, size_t index);

/* prompts.c: */

/* Is there room for another sequence, and may there be one? */
bool prompts_room(const struct loop *l);

/* Reads prompts while there is room and they are there. */
void prompts_read(struct loop *l, struct pf_record *rec);

/* Were those all prompts?  Waits for the next one or the end of the input. */
bool prompts_ended(struct loop *l, struct pf_record *rec);

#endif
