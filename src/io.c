#define _GNU_SOURCE /* F_SETPIPE_SZ */

#include <pipeformer/io.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
    READ_MIN = 64 * 1024,   /* room that a read finds at least */
    WRITE_MAX = 64 * 1024,  /* bytes that are written out unasked */
    SHRINK = 4 * 1024 * 1024,
    EXPECT_MAX = 1 << 28,   /* bytes that are reserved before they come */
    TAKE_MIN = 32 * 1024,   /* bytes that are worth not copying */
    PARTS = 16,             /* to one writev */
    PIPE_SIZE = 1 << 20,    /* what Linux gives to anybody at most */
};

static uint64_t
now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void
pf_widen_pipe(int fd)
{
#ifdef F_SETPIPE_SZ
    int size = fcntl(fd, F_GETPIPE_SZ);

    if (size > 0 && size < PIPE_SIZE)
        (void)fcntl(fd, F_SETPIPE_SZ, PIPE_SIZE);
#else
    (void)fd;
#endif
}

/* --- Reading --- */

static enum pf_status
open_in(struct pf_in *in, const char *path, int flags, struct pf_err *err)
{
    *in = (struct pf_in)PF_IN_INIT;
    in->keep = strcmp(path, "-") == 0;
    in->fd = in->keep ? 0 : open(path, O_RDONLY | O_CLOEXEC | flags);
    if (in->fd < 0)
        return pf_fail(err, PF_EIO, "cannot open: %s", strerror(errno));
    return PF_OK;
}

enum pf_status
pf_in_open(struct pf_in *in, const char *path, struct pf_err *err)
{
    return open_in(in, path, 0, err);
}

enum pf_status
pf_in_open_nowait(struct pf_in *in, const char *path, struct pf_err *err)
{
    return open_in(in, path, O_NONBLOCK, err);
}

void
pf_in_fini(struct pf_in *in)
{
    if (!in->keep && in->fd >= 0)
        close(in->fd);
    free(in->data);
    *in = (struct pf_in)PF_IN_INIT;
}

/* Moves what is there to new memory. */
static bool
move(struct pf_in *in, size_t cap)
{
    size_t have = in->end - in->start;
    char *data = pf_memory_new(cap);

    if (!data)
        return false;
    if (have)
        memcpy(data, in->data + in->start, have);
    free(in->data);
    in->data = data;
    in->cap = cap;
    in->start = 0;
    in->end = have;
    return true;
}

void
pf_in_expect(struct pf_in *in, size_t n)
{
    /* It may be a lie; what is not touched costs nothing, up to a bound. */
    if (n <= EXPECT_MAX && in->cap < n + READ_MIN)
        move(in, n + READ_MIN);
}

/* Room behind `end`: by moving what is there, else by doubling. */
static bool
make_room(struct pf_in *in)
{
    size_t have = in->end - in->start;

    if (in->cap - in->end >= READ_MIN)
        return true;
    if (in->start >= have && in->cap - have >= READ_MIN) {
        if (have)
            memcpy(in->data, in->data + in->start, have);
        in->start = 0;
        in->end = have;
        return true;
    }
    if (in->cap > SIZE_MAX / 2 - READ_MIN)
        return false;
    return move(in, 2 * have + 2 * READ_MIN);
}

enum pf_status
pf_in_fill(struct pf_in *in, struct pf_err *err)
{
    struct pollfd p = { .fd = in->fd, .events = POLLIN };
    uint64_t start;
    ssize_t n;

    if (in->eof)
        return PF_END;
    if (!make_room(in))
        return pf_fail_mem(err);
    start = now();
    for (;;) {
        n = read(in->fd, in->data + in->end, in->cap - in->end);
        if (n >= 0)
            break;
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            poll(&p, 1, -1); /* somebody made it non-blocking: wait */
        else if (errno != EINTR)
            return pf_fail(err, PF_EIO, "cannot read: %s", strerror(errno));
    }
    in->waited += now() - start;
    in->end += (size_t)n;
    in->eof = n == 0;
    return n ? PF_OK : PF_END;
}

bool
pf_in_ready(const struct pf_in *in)
{
    struct pollfd p = { .fd = in->fd, .events = POLLIN };

    return in->eof || poll(&p, 1, 0) > 0;
}

void
pf_in_skip(struct pf_in *in, size_t n)
{
    in->start += n;
    in->used += n;
    if (in->start == in->end) {
        in->start = in->end = 0;
        if (in->cap > SHRINK) {
            free(in->data);
            in->data = NULL;
            in->cap = 0;
        }
    }
}

char *
pf_in_take(struct pf_in *in, size_t n, struct pf_memory *b)
{
    size_t rest = in->end - in->start - n;
    struct pf_memory had = *b;
    char *p = in->data + in->start;

    if (n < TAKE_MIN || rest > n)
        return NULL;
    if (had.cap < rest + READ_MIN) {
        had.cap = rest + 2 * READ_MIN;
        had.data = pf_memory_new(had.cap);
        if (!had.data)
            return NULL;
        pf_memory_fini(b);
    }
    if (rest)
        memcpy(had.data, p + n, rest);
    *b = (struct pf_memory){ in->data, in->cap };
    in->data = had.data;
    in->cap = had.cap;
    in->start = 0;
    in->end = rest;
    in->used += n;
    return p;
}

/* --- Writing --- */

void
pf_out_fini(struct pf_out *out)
{
    pf_buf_fini(&out->buf);
}

/* Of the parts, n of them, those bytes are gone; returns how many are left. */
static size_t
shift(struct iovec *v, size_t n, size_t gone)
{
    size_t i = 0;

    while (i < n && gone >= v[i].iov_len)
        gone -= v[i++].iov_len;
    if (i < n) {
        v[i].iov_base = (char *)v[i].iov_base + gone;
        v[i].iov_len -= gone;
    }
    memmove(v, v + i, (n - i) * sizeof *v);
    return n - i;
}

static enum pf_status
write_all(int fd, struct iovec *v, size_t n, struct pf_err *err)
{
    struct pollfd wait = { .fd = fd, .events = POLLOUT };
    ssize_t k;

    n = shift(v, n, 0);
    while (n) {
        k = writev(fd, v, (int)n);
        if (k >= 0)
            n = shift(v, n, (size_t)k);
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            poll(&wait, 1, -1);
        else if (errno != EINTR)
            return pf_fail(err, PF_EWRITE, "cannot write: %s",
                strerror(errno));
    }
    return PF_OK;
}

enum pf_status
pf_write_all(int fd, const void *p, size_t n, struct pf_err *err)
{
    struct iovec v = { (void *)(uintptr_t)p, n };

    return write_all(fd, &v, 1, err);
}

enum pf_status
pf_out_write_parts(struct pf_out *out, const struct pf_part *parts,
    size_t n, struct pf_err *err)
{
    struct iovec v[PARTS];
    size_t most = out->most ? out->most : WRITE_MAX, bytes = 0, used = 0;
    enum pf_status st = PF_OK;
    uint64_t start;

    for (size_t i = 0; i < n; i++)
        bytes += parts[i].n;
    out->bytes += bytes;
    if (bytes < WRITE_MAX && out->buf.len + bytes < most) {
        for (size_t i = 0; i < n; i++)
            if (parts[i].n)
                pf_buf_add(&out->buf, parts[i].p, parts[i].n);
        return pf_buf_check(&out->buf, err);
    }
    start = now();
    v[used++] = (struct iovec){ out->buf.data, out->buf.len };
    for (size_t i = 0; !st && i < n; i++) {
        v[used++] = (struct iovec){ (void *)(uintptr_t)parts[i].p,
            parts[i].n };
        if (used == PARTS || i + 1 == n) {
            st = write_all(out->fd, v, used, err);
            used = 0;
        }
    }
    pf_buf_clear(&out->buf);
    out->waited += now() - start;
    return st;
}

enum pf_status
pf_out_write(struct pf_out *out, const void *p, size_t n, struct pf_err *err)
{
    return pf_out_write_parts(out, &(struct pf_part){ p, n }, 1, err);
}

enum pf_status
pf_out_flush(struct pf_out *out, struct pf_err *err)
{
    uint64_t start;
    enum pf_status st;

    if (out->buf.len == 0)
        return PF_OK;
    start = now();
    st = pf_write_all(out->fd, out->buf.data, out->buf.len, err);
    pf_buf_clear(&out->buf);
    out->waited += now() - start;
    return st;
}

enum pf_status
pf_read_file(const char *path, size_t max, char **data, size_t *len,
    struct pf_err *err)
{
    struct pf_buf b = PF_BUF_INIT;
    enum pf_status st = PF_OK;
    struct stat s;
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return pf_fail(err, PF_EIO, "cannot open %s: %s", path,
            strerror(errno));
    if (fstat(fd, &s) == 0 && s.st_size > 0 && (size_t)s.st_size < max)
        pf_buf_room(&b, (size_t)s.st_size + 2);
    do {
        char *room = pf_buf_room(&b, b.cap - b.len > 1 ? 2 : READ_MIN);

        if (!room) {
            st = pf_fail_mem(err);
            break;
        }
        n = read(fd, room, b.cap - b.len - 1);
        if (n < 0 && errno != EINTR)
            st = pf_fail(err, PF_EIO, "cannot read %s: %s", path,
                strerror(errno));
        if (n > 0)
            b.len += (size_t)n;
        if (b.len > max)
            st = pf_fail(err, PF_ERANGE, "%s is larger than %zu bytes", path,
                max);
    } while (n && !st);
    close(fd);
    if (st) {
        pf_buf_fini(&b);
        return st;
    }
    b.data[b.len] = '\0';
    *data = b.data;
    *len = b.len;
    return PF_OK;
}
