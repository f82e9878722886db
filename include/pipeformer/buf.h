#ifndef PIPEFORMER_BUF_H
#define PIPEFORMER_BUF_H

#include <stdbool.h>
#include <stddef.h>

#include <pipeformer/err.h>

/*
 * Growable bytes.  An append that finds no memory leaves the buffer as it was
 * and sets `failed`, which stays set until pf_buf_clear; so a writer appends
 * freely and asks once, with pf_buf_check, before the bytes are used.
 */
struct pf_buf {
    char *data;
    size_t len, cap;
    bool failed;
};

#define PF_BUF_INIT { NULL, 0, 0, false }

void pf_buf_fini(struct pf_buf *b);
void pf_buf_clear(struct pf_buf *b);

/* Room for `extra` more bytes: their address, or NULL (and `failed`). */
char *pf_buf_room(struct pf_buf *b, size_t extra);
void pf_buf_add(struct pf_buf *b, const void *p, size_t n);
void pf_buf_adds(struct pf_buf *b, const char *s);
void pf_buf_addc(struct pf_buf *b, char c);
void pf_buf_printf(struct pf_buf *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
enum pf_status pf_buf_check(const struct pf_buf *b, struct pf_err *err);

/*
 * Memory for much: n bytes aligned to 64, for free(), or NULL.  From 1 MiB on
 * it is of pages of 2 MiB where the system has them (madvise(2)): touching a
 * page for the first time is what large memory costs.
 */
void *pf_memory_new(size_t n);

/*
 * The first n bytes of an open file, mapped to be read, for munmap(); or NULL
 * and errno.  Where the file system can (ext4 from Linux 6.16 on, XFS), what is
 * read in for it is kept in pages of 2 MiB, which are mapped as such by whoever
 * maps the file then.
 */
void *pf_map_file(int fd, size_t n);

/* Memory of pf_memory_new that changes hands. */
struct pf_memory {
    char *data;
    size_t cap;
};

#define PF_MEMORY_INIT { NULL, 0 }

void pf_memory_fini(struct pf_memory *m);

/*
 * Memory that is given out piece by piece, never moves, and is taken back all
 * at once: what a record is made of.  After pf_arena_reset the memory is kept
 * for the next record, up to a bound, so that a stream of equal records
 * allocates nothing.
 */
struct pf_arena {
    struct pf_arena_block *head; /* the block in use, newest first */
    size_t used;                 /* bytes given out of `head` */
    size_t total;                /* bytes of all blocks */
};

#define PF_ARENA_INIT { NULL, 0, 0 }

void pf_arena_fini(struct pf_arena *a);
void pf_arena_reset(struct pf_arena *a);

/* `n` bytes aligned to 64, or NULL; n = 0 gives a valid address. */
void *pf_arena_alloc(struct pf_arena *a, size_t n);

/* A copy of `n` bytes with a NUL behind it. */
char *pf_arena_copy(struct pf_arena *a, const void *p, size_t n);

/*
 * An array that grows: `*items` has room for `*cap` elements of `size` bytes
 * and gets room for at least `need`.  false when there is no memory (the old
 * array is kept).
 */
bool pf_grow(void *items, size_t *cap, size_t need, size_t size);

#endif
