#ifndef PIPEFORMER_IO_H
#define PIPEFORMER_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pipeformer/buf.h>
#include <pipeformer/err.h>

/*
 * Reading and writing file descriptors without ever waiting for more than is
 * needed: an input tells whether it would block, so that a filter can write
 * out what it has before it does.
 */

/* Bytes start .. end of data have been read and not been used up. */
struct pf_in {
    int fd;
    char *data;
    size_t start, end, cap;
    uint64_t used; /* bytes used up so far */
    bool eof;
    bool keep; /* fd stays open, it is not ours */
    uint64_t waited; /* nanoseconds spent in reading and waiting for it */
};

#define PF_IN_INIT { -1, NULL, 0, 0, 0, 0, false, false, 0 }

/* "-" is standard input. */
enum pf_status pf_in_open(struct pf_in *in, const char *path,
    struct pf_err *err);

/*
 * The same without waiting for the writer of a FIFO: pf_in_ready must be true
 * before pf_in_fill, which would take "no writer yet" for the end.
 */
enum pf_status pf_in_open_nowait(struct pf_in *in, const char *path,
    struct pf_err *err);

/* Closes the descriptor (not standard input) and frees the memory. */
void pf_in_fini(struct pf_in *in);

/*
 * Waits for more bytes and takes what is there.  PF_OK: at least one byte
 * more; PF_END: the input has ended.
 */
enum pf_status pf_in_fill(struct pf_in *in, struct pf_err *err);

/*
 * So many bytes are expected, those that are there included: room for them at
 * once is cheaper than what grows.  No more than a hint.
 */
void pf_in_expect(struct pf_in *in, size_t n);

/* Would pf_in_fill return at once? */
bool pf_in_ready(const struct pf_in *in);

/* Uses up n of the bytes that are there. */
void pf_in_skip(struct pf_in *in, size_t n);

/*
 * The same without a copy: the memory in which the n bytes lie becomes `b`,
 * and what b was is the input's, unless it is too small and freed.  Returns
 * where they begin, or NULL (nothing has changed then) where copying them is
 * cheaper or there is no memory.
 */
char *pf_in_take(struct pf_in *in, size_t n, struct pf_memory *b);

/*
 * What is written waits in `buf` until it would be more than `most`, or until
 * it is flushed; what is 64 KiB or more by itself is written at once, without
 * a copy.  Nothing is lost silently: a status must be looked at.
 */
struct pf_out {
    int fd;
    size_t most; /* bytes; 0: 64 KiB */
    struct pf_buf buf;
    uint64_t bytes;  /* written so far, waiting ones included */
    uint64_t waited; /* nanoseconds spent in writing */
};

#define PF_OUT_INIT { 1, 0, PF_BUF_INIT, 0, 0 }

void pf_out_fini(struct pf_out *out);
enum pf_status pf_out_write(struct pf_out *out, const void *p, size_t n,
    struct pf_err *err);

/* Parts that belong together, in one call to the system where that is much. */
struct pf_part {
    const void *p;
    size_t n;
};
enum pf_status pf_out_write_parts(struct pf_out *out,
    const struct pf_part *parts, size_t n, struct pf_err *err);
enum pf_status pf_out_flush(struct pf_out *out, struct pf_err *err);

/*
 * A pipe holds 64 KiB unless asked for more: makes it large, so that a record
 * of logits goes through without a change of processes every 64 KiB.  No more
 * than a hint.
 */
void pf_widen_pipe(int fd);

/* Writes all n bytes to a descriptor, however many calls that takes. */
enum pf_status pf_write_all(int fd, const void *p, size_t n,
    struct pf_err *err);

/*
 * A whole file in memory, with a NUL behind it; *data is the caller's to free.
 * PF_EIO when it cannot be read, PF_ERANGE when it is larger than `max`.
 */
enum pf_status pf_read_file(const char *path, size_t max, char **data,
    size_t *len, struct pf_err *err);

#endif
