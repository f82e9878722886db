/*
 * A file of tables: a head, and the tables one after the other, each at a
 * multiple of 64 bytes, in the byte order of the machine.  The head has the
 * sum of all that follows that, so that a damaged file is none; but the numbers
 * in the tables are looked through all the same (pf_vocab_view, pf_bpe_view),
 * since a sum can be made to fit.
 */
#include "tables.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <pipeformer/buf.h>
#include <pipeformer/io.h>

enum { VERSION = 4, ORDER = 0x01020304, ALIGN = 64, N_PARTS = 7 };

static const char magic[8] = "pftables";

struct head {
    char magic[8];
    uint32_t version, order;
    uint64_t source, sum, size;
    struct {
        uint64_t at, len;
    } part[N_PARTS];
};

struct pf_mapping {
    void *data;
    size_t size;
};

/* Lanes enough that a processor need not wait for their products. */
uint64_t
pf_tables_hash(const void *bytes, size_t n, uint64_t seed)
{
    enum { LANES = 8 };
    const uint64_t k = 0x9e3779b97f4a7c15;
    const unsigned char *p = bytes;
    uint64_t h[LANES], v;
    size_t left = n;

    for (int i = 0; i < LANES; i++)
        h[i] = (seed ^ n) + (uint64_t)i * k;
    for (; left >= sizeof h; p += sizeof h, left -= sizeof h) {
        for (int i = 0; i < LANES; i++) {
            memcpy(&v, p + 8 * i, 8);
            h[i] = (h[i] ^ v) * k;
            h[i] ^= h[i] >> 31;
        }
    }
    for (int i = 0; left; i++) {
        v = 0;
        memcpy(&v, p, left < 8 ? left : 8);
        p += left < 8 ? left : 8;
        left -= left < 8 ? left : 8;
        h[i] = (h[i] ^ v) * k;
        h[i] ^= h[i] >> 31;
    }
    v = h[0];
    for (int i = 1; i < LANES; i++) {
        v = (v ^ h[i]) * k;
        v ^= v >> 29;
    }
    return v;
}

/* Of all that follows the sum in the head. */
static uint64_t
sum_of(const void *data, size_t size)
{
    const size_t from = offsetof(struct head, size);

    return pf_tables_hash((const char *)data + from, size - from, 0);
}

static void
part(struct pf_buf *b, uint64_t *at, uint64_t *len, const void *data, size_t n)
{
    while (b->len % ALIGN && !b->failed)
        pf_buf_addc(b, '\0');
    *at = b->len;
    *len = n;
    if (n)
        pf_buf_add(b, data, n);
}

enum pf_status
pf_tables_write(const char *path, uint64_t source, const struct pf_vocab *v,
    const struct pf_bpe *b, struct pf_err *err)
{
    struct pf_vocab_data vd = pf_vocab_data(v);
    struct pf_bpe_data bd = pf_bpe_data(b);
    const struct {
        const void *data;
        size_t n;
    } parts[N_PARTS] = {
        { vd.pool, vd.n_pool },
        { vd.tokens, vd.n_tokens * sizeof *vd.tokens },
        { vd.slots, vd.n_slots * sizeof *vd.slots },
        { bd.slots, bd.n_slots * sizeof *bd.slots },
        { bd.results, bd.n_results * sizeof *bd.results },
        { bd.pairs, 65536 * sizeof *bd.pairs },
        { bd.filter, bd.n_filter * sizeof *bd.filter },
    };
    struct head head = { .version = VERSION, .order = ORDER,
        .source = source };
    struct pf_buf out = PF_BUF_INIT;
    enum pf_status st;
    int fd;

    memcpy(head.magic, magic, sizeof magic);
    pf_buf_add(&out, &head, sizeof head);
    for (int i = 0; i < N_PARTS; i++)
        part(&out, &head.part[i].at, &head.part[i].len, parts[i].data,
            parts[i].n);
    st = pf_buf_check(&out, err);
    if (st)
        goto done;
    head.size = out.len;
    memcpy(out.data, &head, sizeof head);
    head.sum = sum_of(out.data, out.len);
    memcpy(out.data, &head, sizeof head);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        st = pf_fail(err, PF_EIO, "%s: %s", path, strerror(errno));
        goto done;
    }
    st = pf_write_all(fd, out.data, out.len, err);
    if (close(fd) && !st)
        st = pf_fail(err, PF_EWRITE, "%s: %s", path, strerror(errno));
done:
    pf_buf_fini(&out);
    return st;
}

/* The tables that a head tells of; false if they lie outside the file. */
static bool
find_parts(const char *data, size_t size, const struct head *h,
    struct pf_vocab_data *v, struct pf_bpe_data *b)
{
    static const size_t unit[N_PARTS] = { 1, sizeof(struct pf_vocab_token),
        4, 8, 4, 4, 8 };
    const void *p[N_PARTS];
    size_t n[N_PARTS];

    for (int i = 0; i < N_PARTS; i++) {
        if (h->part[i].at % ALIGN || h->part[i].at > size
            || h->part[i].len > size - h->part[i].at
            || h->part[i].len % unit[i])
            return false;
        p[i] = data + h->part[i].at;
        n[i] = h->part[i].len / unit[i];
    }
    *v = (struct pf_vocab_data){ p[0], p[1], p[2], n[0], n[1], n[2] };
    *b = (struct pf_bpe_data){ p[3], p[4], p[5], p[6], n[3], n[4], n[6] };
    return n[5] == 65536;
}

static enum pf_status
use(struct pf_mapping *m, uint64_t source, struct pf_vocab **v,
    struct pf_bpe **b)
{
    const struct head *h = m->data;
    struct pf_vocab_data vd;
    struct pf_bpe_data bd;
    uint32_t byte[256];

    if (memcmp(h->magic, magic, sizeof magic) != 0 || h->version != VERSION
        || h->order != ORDER || h->source != source || h->size != m->size
        || h->sum != sum_of(m->data, m->size)
        || !find_parts(m->data, m->size, h, &vd, &bd)
        || pf_vocab_view(v, &vd, NULL))
        return PF_END;
    pf_bpe_bytes_of(*v, byte);
    if (pf_bpe_view(b, &bd, byte, *v, NULL)) {
        pf_vocab_free(*v);
        return PF_END;
    }
    return PF_OK;
}

enum pf_status
pf_tables_map(struct pf_mapping **out, const char *path, uint64_t source,
    struct pf_vocab **v, struct pf_bpe **b)
{
    enum pf_status st;

    if (pf_mapping_open(out, path, NULL))
        return PF_END;
    st = (*out)->size < sizeof(struct head) ? PF_END
        : use(*out, source, v, b);
    if (st) {
        pf_mapping_free(*out);
        *out = NULL;
        *v = NULL;
        *b = NULL;
    }
    return st;
}

enum pf_status
pf_mapping_open(struct pf_mapping **out, const char *path, struct pf_err *err)
{
    struct pf_mapping *m = calloc(1, sizeof *m);
    int fd = open(path, O_RDONLY | O_CLOEXEC), saved;
    struct stat s;

    *out = NULL;
    if (m && fd >= 0 && fstat(fd, &s) == 0) {
        m->size = (size_t)s.st_size;
        m->data = m->size ? pf_map_file(fd, m->size) : NULL;
        if (m->data || !m->size) {
            close(fd);
            *out = m;
            return PF_OK;
        }
    }
    saved = errno;
    if (fd >= 0)
        close(fd);
    if (!m)
        return pf_fail_mem(err);
    free(m);
    return pf_fail(err, PF_EIO, "%s: %s", path, strerror(saved));
}

struct pf_span
pf_mapping_bytes(const struct pf_mapping *m)
{
    return (struct pf_span){ m->data, m->size };
}

void
pf_mapping_free(struct pf_mapping *m)
{
    if (m && m->size)
        munmap(m->data, m->size);
    free(m);
}
