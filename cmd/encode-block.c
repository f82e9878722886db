/*
 * Many texts in blocks of bytes, shared among threads without a pause: each
 * takes the next share, encodes it into memory of its own, and then whoever
 * finds the first share of all made writes it and those behind it.  A share is
 * small, so that what a thread works with stays in its cache, and a thread
 * keeps its encoder, whose cache of pieces it has.  There are more workers than
 * threads: when the system lets one thread wait for a processor in the middle
 * of a share, the others go on with those behind it.
 */
#include "encode-private.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>


enum { SHARE = 1 << 15 }; /* bytes of texts */

struct run {
    struct encode *e;
    const struct cli_block *block;
    int delimiter;
    uint64_t number; /* of the first text */

    pthread_mutex_t lock; /* of what follows, and of reading */
    pthread_cond_t written;
    const char *p, *end; /* the texts at hand that are in no share yet */
    size_t share;        /* bytes */
    size_t n;            /* texts in shares */
    bool over;           /* no more shares are taken */
    bool writing;        /* someone is */
    struct encode_worker *first, *last; /* those with shares, in order */
    struct encode_worker *idle; /* the others; the last one that had a share is
                                   the next to have one: its memory is there */
    struct encode_told told;
    enum pf_status st; /* of writing */
    struct pf_err err;
    int error; /* errno then */
};

/* In rounds in which no byte of the sums overflows: a loop for vectors. */
static size_t
count_bytes(const char *p, size_t n, char c)
{
    enum { LANES = 64, ROUND = 255 };
    unsigned char sums[LANES];
    size_t count = 0;

    while (n >= LANES) {
        memset(sums, 0, sizeof sums);
        for (size_t k = 0; k < ROUND && n >= LANES; k++) {
            for (size_t i = 0; i < LANES; i++)
                sums[i] += p[i] == c;
            p += LANES;
            n -= LANES;
        }
        for (size_t i = 0; i < LANES; i++)
            count += sums[i];
    }
    for (size_t i = 0; i < n; i++)
        count += p[i] == c;
    return count;
}

/*
 * The next share, for a worker that is idle: of the block, or what has come
 * behind it, which is read into the worker's memory and is one share.  NULL if
 * there is nothing.
 */
static struct encode_worker *
take(struct run *r)
{
    struct encode_worker *w = r->idle;
    const struct cli_block *b = r->block;
    const char *to = NULL;
    size_t len = (size_t)(r->end - r->p);

    if (len > r->share)
        to = memchr(r->p + r->share, r->delimiter, len - r->share);
    if (len == 0) {
        r->p = b->more ? b->more(b->where, &w->memory, &len) : NULL;
        if (!r->p)
            return NULL;
        r->end = r->p + len;
    }
    r->idle = w->next;
    w->next = NULL;
    *(r->first ? &r->last->next : &r->first) = w;
    r->last = w;
    w->block = r->p;
    w->end = to ? to + 1 : r->end;
    w->made = false;
    w->delimiter = r->delimiter;
    w->number = r->number + r->n;
    w->first = r->n;
    r->n += count_bytes(w->block, (size_t)(w->end - w->block),
        (char)r->delimiter);
    r->n += w->end[-1] != (char)r->delimiter;
    r->p = w->end;
    return w;
}

/* Who holds the lock while it reads a share is done before one who sleeps
 * would be awake. */
static void
lock(struct run *r)
{
    enum { TRIES = 10000 };

    for (int i = 0; i < TRIES; i++)
        if (pthread_mutex_trylock(&r->lock) == 0)
            return;
    pthread_mutex_lock(&r->lock);
}

/* All that is made and has nothing before it.  Locked, but while it writes. */
static void
write_made(struct run *r, struct pf_encoder *enc)
{
    struct encode_worker *w;
    enum pf_status st;
    int error;

    while (!r->writing && !r->st && !r->told.stop && (w = r->first) != NULL
        && w->made) {
        r->writing = true;
        pthread_mutex_unlock(&r->lock);
        w->enc = enc;
        st = encode_write_share(r->e, w, w->first, &r->told, &r->err);
        error = errno;
        lock(r);
        r->writing = false;
        r->first = w->next;
        w->next = r->idle;
        r->idle = w;
        r->st = st;
        r->error = error;
        r->over |= st || r->told.stop;
        pthread_cond_broadcast(&r->written);
    }
}

/* What each thread does. */
static void
work(void *ctx, size_t thread)
{
    struct run *r = ctx;
    struct pf_encoder *enc = r->e->coders[thread].enc;
    struct encode_worker *w;

    lock(r);
    for (;;) {
        while (!r->over && !r->idle)
            pthread_cond_wait(&r->written, &r->lock);
        w = r->over ? NULL : take(r);
        if (!w)
            break;
        pthread_mutex_unlock(&r->lock);
        /* About what ids take: what grows is moved, and that costs. */
        pf_buf_room(&w->out, 2 * (size_t)(w->end - w->block));
        encode_make(w, enc);
        lock(r);
        w->made = true;
        write_made(r, enc);
    }
    r->over = true;
    pthread_cond_broadcast(&r->written);
    pthread_mutex_unlock(&r->lock);
}

/* Texts that are not long, or more than one. */
static enum pf_status
texts(struct encode *e, const struct cli_block *block, int delimiter,
    uint64_t number, size_t *n, struct pf_err *err)
{
    size_t threads = e->n_coders, share = block->len / threads;
    struct run r = { .e = e, .block = block, .delimiter = delimiter,
        .number = number, .p = block->p, .end = block->p + block->len,
        .told = { block->failed, block->where, false } };

    r.share = block->more || share > SHARE ? SHARE
        : share > ENCODE_SHARE ? share : ENCODE_SHARE;
    for (size_t i = e->n_workers; i-- > 0; r.idle = &e->workers[i])
        e->workers[i].next = r.idle;
    pthread_mutex_init(&r.lock, NULL);
    pthread_cond_init(&r.written, NULL);
    encode_run(e, work, &r, block->len > ENCODE_SHARE ? threads : 1);
    pthread_cond_destroy(&r.written);
    pthread_mutex_destroy(&r.lock);
    *n = r.n;
    if (r.st) {
        *err = r.err;
        errno = r.error;
    }
    return r.st;
}

enum pf_status
encode_block(struct encode *e, const struct cli_block *block, int delimiter,
    uint64_t number, size_t *n, struct pf_err *err)
{
    struct encode_job job = { .text = block->p, .len = block->len,
        .number = number };
    const char *end = delimiter < 0 ? NULL
        : memchr(block->p, delimiter, block->len);

    if (end)
        job.len = (size_t)(end - block->p);
    if (end && (job.len + 1 < block->len
            || (block->more && block->len < ENCODE_LONG)))
        return texts(e, block, delimiter, number, n, err);
    *n = 1;
    return encode_jobs(e, &job, 1, block->failed, block->where, err);
}
