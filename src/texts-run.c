/*
 * A queue of bytes, and of how many each text has.  The live one is at its
 * front, but for what is written of it already.
 */
#include "texts-private.h"

#include <string.h>

#include <pipeformer/json.h>
#include <pipeformer/utf8.h>

enum {
    DIGITS = 18,
    LONG = 1 << 16, /* bytes of a text that has memory of its own */
    SHIFT = 1 << 16,
};

bool
pf_run_takes(const struct pf_run *r, const struct pf_piece *p,
    uint64_t *number)
{
    const char *key = p->key;
    uint64_t v = 0;

    if (p->pos || p->more || p->done || p->held || p->hidden || p->n > LONG
        || p->key_len < 2 || p->key_len > DIGITS + 1 || key[0] != 'i'
        || (key[1] == '0' && p->key_len > 2))
        return false;
    for (size_t i = 1; i < p->key_len; i++) {
        if (key[i] < '0' || key[i] > '9')
            return false;
        v = v * 10 + (uint64_t)(key[i] - '0');
    }
    *number = v;
    return r->n == 0 || (v == r->number + r->n && r->n < PF_RUN_RING);
}

/* What is done with goes when that is most of the memory. */
static void
make_room(struct pf_run *r)
{
    if (r->head < SHIFT || r->head < r->bytes.len / 2)
        return;
    r->bytes.len -= r->head;
    memmove(r->bytes.data, r->bytes.data + r->head, r->bytes.len);
    r->head = 0;
}

enum pf_status
pf_run_add(struct pf_run *r, const struct pf_piece *p, uint64_t number,
    const char *after, size_t after_len, struct pf_err *err)
{
    char *to;

    make_room(r);
    to = pf_buf_room(&r->bytes, p->n + after_len);
    if (!to)
        return pf_fail_mem(err);
    if (p->n)
        memcpy(to, p->bytes, p->n);
    if (after_len)
        memcpy(to + p->n, after, after_len);
    r->bytes.len += p->n + after_len;
    if (r->n == 0) {
        r->number = number;
        r->rest = p->n + after_len;
    }
    r->len[(r->first + r->n) % PF_RUN_RING] = p->n + after_len;
    r->n++;
    return PF_OK;
}

/* The first is away. */
static void
drop(struct pf_run *r)
{
    r->first = (r->first + 1) % PF_RUN_RING;
    r->number++;
    r->n--;
    r->rest = r->n ? r->len[r->first] : 0;
}

enum pf_status
pf_run_write(struct pf_run *r, struct pf_out *out, bool next,
    size_t after_len, struct pf_err *err)
{
    const char *p = r->bytes.data + r->head;
    size_t n = next ? r->rest : 0, more = 0;

    if (next)
        drop(r);
    if (r->n) {
        more = r->rest - after_len;
        more -= pf_utf8_pending(p + n, more);
        r->rest -= more;
    }
    n += more;
    r->head += n;
    return n ? pf_out_write(out, p, n, err) : PF_OK;
}

size_t
pf_run_shift(struct pf_run *r, size_t after_len, const char **bytes,
    char key[PF_RUN_KEY])
{
    size_t n = r->rest;

    key[0] = 'i';
    key[1 + pf_i64_print(key + 1, (int64_t)r->number)] = '\0';
    *bytes = r->bytes.data + r->head;
    r->head += n;
    drop(r);
    return n - after_len;
}
