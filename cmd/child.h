#ifndef CHILD_H
#define CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <pipeformer/record.h>

/* A pipe of filters that runs as a shell command: records in, records out. */
struct child {
    pid_t pid;
    int to;              /* its input; -1: closed */
    struct pf_buf queue; /* bytes for it, of which `sent` are written */
    size_t sent;
    bool cut;        /* the last byte written is not the end of a record */
    struct pf_in in; /* its output */
    struct pf_reader reader;
};

#define CHILD_INIT \
    { 0, -1, PF_BUF_INIT, 0, false, PF_IN_INIT, PF_READER_INIT }

/* Starts it.  The commands beside this one are found first. */
void child_start(struct child *c, const char *pipe);

/* Puts a record, as NDJSON, into the queue for its input. */
void child_feed(struct child *c, const struct pf_record *rec);

/* Writes of the queue what it takes now. */
void child_send(struct child *c);

/* Ends its input. */
void child_close(struct child *c);

/*
 * Ends it: what it still writes is not wanted, and what waits for it is not
 * sent but for the rest of a record.
 */
void child_end(struct child *c);

#endif
