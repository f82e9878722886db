#include "texts-private.h"

#include <string.h>

#include <pipeformer/utf8.h>

/* Takes n bytes away from place `at` on. */
static void
shift(struct pf_buf *b, size_t at, size_t n)
{
    b->len -= n;
    if (b->len > at)
        memmove(b->data + at, b->data + at + n, b->len - at);
}

void
pf_text_take(struct pf_text *t, size_t at, size_t n)
{
    shift(&t->held, at, n);
    if (t->hidden.len)
        shift(&t->hidden, at, n);
}

enum pf_status
pf_text_add(struct pf_text *t, const struct pf_piece *p, struct pf_err *err)
{
    size_t before = t->held.len;
    char *flags;

    pf_buf_add(&t->held, p->bytes, p->n);
    if (p->hidden || t->hidden.len) {
        before -= t->hidden.len;
        flags = pf_buf_room(&t->hidden, before + p->n);
        if (!flags)
            return pf_fail_mem(err);
        memset(flags, 0, before + p->n);
        if (p->hidden && p->n)
            memcpy(flags + before, p->hidden, p->n);
        t->hidden.len += before + p->n;
    }
    t->back = p->done && !p->cut ? 0 : p->held;
    if (t->back > t->held.len)
        t->back = t->held.len;
    if (p->done) {
        pf_text_take(t, t->held.len - t->back, t->back);
        t->back = 0;
    }
    return pf_buf_check(&t->held, err);
}

size_t
pf_text_ready(struct pf_text *t, bool all)
{
    size_t n = t->held.len - (all ? 0 : t->back), from, to;

    for (to = t->hidden.len ? n : 0; to; to = from) {
        for (from = to; from && t->hidden.data[from - 1]; from--)
            ;
        pf_text_take(t, from, to - from);
        n -= to - from;
        while (from && !t->hidden.data[from - 1])
            from--;
    }
    return all ? n : n - pf_utf8_pending(t->held.data, n);
}
