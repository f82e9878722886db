#include <pipeformer/texts.h>

#include <stdlib.h>
#include <string.h>

#include <pipeformer/seqmap.h>
#include <pipeformer/utf8.h>

/* A text in the making. */
struct text {
    struct pf_buf held; /* bytes not written; of the live one, those of a
                           character that is not whole, or `back` */
    struct pf_buf hidden; /* a flag for each of them, or empty: none is */
    size_t back;          /* so many of the last ones are not to be written */
    struct pf_buf key;
    bool single; /* so far one piece from position 0: it may be whole */
    struct text *prev, *next;
};

/* Texts in order. */
struct list {
    struct text *first, *last;
};

struct pf_texts {
    struct pf_out *out;
    const char *after;
    size_t after_len;
    struct list open; /* in the order in which they began; the first is live */
    struct list done; /* held, in the order in which they ended */
    struct list spare; /* of no text now, to be used again */
    size_t n, n_spare; /* of the open ones, the spare ones */
    struct pf_seqmap map;
};

enum pf_status
pf_texts_new(struct pf_texts **out, struct pf_out *to, const char *after,
    size_t after_len, struct pf_err *err)
{
    struct pf_texts *t = calloc(1, sizeof *t);

    *out = t;
    if (!t)
        return pf_fail_mem(err);
    t->out = to;
    t->after = after;
    t->after_len = after_len;
    return PF_OK;
}

enum { SPARE_BYTES = 4096, SPARE_MAX = 2 * PF_TEXTS_WAIT };

static void
free_text(struct text *t)
{
    pf_buf_fini(&t->held);
    pf_buf_fini(&t->hidden);
    pf_buf_fini(&t->key);
    free(t);
}

static void
append(struct list *l, struct text *t)
{
    t->prev = l->last;
    t->next = NULL;
    *(l->last ? &l->last->next : &l->first) = t;
    l->last = t;
}

static void
take(struct list *l, struct text *t)
{
    *(t->prev ? &t->prev->next : &l->first) = t->next;
    *(t->next ? &t->next->prev : &l->last) = t->prev;
}

static void
free_list(struct list *l)
{
    while (l->first) {
        struct text *t = l->first;

        take(l, t);
        free_text(t);
    }
}

void
pf_texts_free(struct pf_texts *texts)
{
    if (!texts)
        return;
    free_list(&texts->open);
    free_list(&texts->done);
    free_list(&texts->spare);
    pf_seqmap_fini(&texts->map, NULL);
    free(texts);
}

/* A text that is in no list is over; small ones are kept for the next. */
static void
drop(struct pf_texts *texts, struct text *t)
{
    if (t->held.cap > SPARE_BYTES || t->key.cap > SPARE_BYTES
        || texts->n_spare == SPARE_MAX) {
        free_text(t);
        return;
    }
    pf_buf_fini(&t->hidden);
    pf_buf_clear(&t->held);
    pf_buf_clear(&t->key);
    t->back = 0;
    append(&texts->spare, t);
    texts->n_spare++;
}

/* A new last text of that key. */
static struct text *
new_text(struct pf_texts *texts, const char *key, size_t len,
    struct pf_err *err)
{
    struct text *t = texts->spare.last;

    if (t) {
        take(&texts->spare, t);
        texts->n_spare--;
    } else {
        t = calloc(1, sizeof *t);
    }
    if (t)
        pf_buf_add(&t->key, key, len);
    if (!t || t->key.failed || pf_seqmap_put(&texts->map, key, len, t, err)) {
        if (t)
            free_text(t);
        pf_fail_mem(err);
        return NULL;
    }
    append(&texts->open, t);
    texts->n++;
    return t;
}

/* Nothing more comes for this text: its key is free for another one. */
static void
close_text(struct pf_texts *texts, struct text *t)
{
    take(&texts->open, t);
    texts->n--;
    pf_seqmap_take(&texts->map, t->key.data, t->key.len);
}

/* Takes n bytes away from place `at` on. */
static void
shift(struct pf_buf *b, size_t at, size_t n)
{
    b->len -= n;
    if (b->len > at)
        memmove(b->data + at, b->data + at + n, b->len - at);
}

/* The same of a text's bytes and their flags. */
static void
take_bytes(struct text *t, size_t at, size_t n)
{
    shift(&t->held, at, n);
    if (t->hidden.len)
        shift(&t->hidden, at, n);
}

/* Adds a piece's bytes to those of a text. */
static enum pf_status
add_bytes(struct text *t, const struct pf_piece *p, struct pf_err *err)
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
        take_bytes(t, t->held.len - t->back, t->back);
        t->back = 0;
    }
    return pf_buf_check(&t->held, err);
}

/*
 * How many of a text's bytes may be shown now, the hidden ones among them
 * taken out: those that are whole, or all.
 */
static size_t
ready(struct text *t, bool all)
{
    size_t n = t->held.len - (all ? 0 : t->back), from, to;

    for (to = t->hidden.len ? n : 0; to; to = from) {
        for (from = to; from && t->hidden.data[from - 1]; from--)
            ;
        take_bytes(t, from, to - from);
        n -= to - from;
        while (from && !t->hidden.data[from - 1])
            from--;
    }
    return all ? n : n - pf_utf8_pending(t->held.data, n);
}

/* Writes what is whole of a text's bytes, or all of them. */
static enum pf_status
write_held(struct pf_texts *texts, struct text *t, bool all,
    struct pf_err *err)
{
    size_t n = ready(t, all);
    enum pf_status st = n ? pf_out_write(texts->out, t->held.data, n, err)
        : PF_OK;

    take_bytes(t, 0, n);
    return st;
}

/* Writes the rest of a text that is in no list any more. */
static enum pf_status
end_text(struct pf_texts *texts, struct text *t, struct pf_err *err)
{
    enum pf_status st = write_held(texts, t, true, err);

    if (!st && texts->after_len)
        st = pf_out_write(texts->out, texts->after, texts->after_len, err);
    drop(texts, t);
    return st;
}

/*
 * The live text has ended: after it, those that are done go out, and then the
 * first of the others is live.
 */
static enum pf_status
end_live(struct pf_texts *texts, struct pf_err *err)
{
    struct text *t = texts->open.first;
    enum pf_status st;

    close_text(texts, t);
    st = end_text(texts, t, err);
    while (!st && (t = texts->done.first)) {
        take(&texts->done, t);
        st = end_text(texts, t, err);
    }
    return st || !texts->open.first ? st
        : write_held(texts, texts->open.first, false, err);
}

/* Text t is done: it ends now if it is live, else when it is its turn. */
static enum pf_status
finish(struct pf_texts *texts, struct text *t, struct pf_err *err)
{
    if (t == texts->open.first)
        return end_live(texts, err);
    close_text(texts, t);
    append(&texts->done, t);
    return PF_OK;
}

enum pf_status
pf_texts_add(struct pf_texts *texts, const struct pf_piece *p,
    struct pf_err *err)
{
    struct text *t = pf_seqmap_get(&texts->map, p->key, p->key_len);
    enum pf_status st = PF_OK;

    if (t && p->pos == 0) { /* begun anew: the old one is over */
        st = finish(texts, t, err);
        t = NULL;
    }
    if (!st && !t && !(t = new_text(texts, p->key, p->key_len, err)))
        st = PF_ENOMEM;
    if (st)
        return st;
    t->single = p->pos == 0 && !p->more;
    st = add_bytes(t, p, err);
    if (!st && p->done)
        st = finish(texts, t, err);
    else if (!st && t == texts->open.first)
        st = write_held(texts, t, false, err);
    while (!st && texts->n > PF_TEXTS_WAIT && texts->open.first->single)
        st = end_live(texts, err);
    return st;
}

enum pf_status
pf_texts_end(struct pf_texts *texts, struct pf_err *err)
{
    enum pf_status st = PF_OK;

    while (!st && texts->open.first)
        st = end_live(texts, err);
    return st;
}

/* Appends bytes as valid UTF-8. */
static void
add_valid(struct pf_buf *out, const char *p, size_t n)
{
    size_t len;

    for (; n; p += len, n -= len) {
        len = pf_utf8_span(p, n);
        if (len) {
            pf_buf_add(out, p, len);
            continue;
        }
        pf_buf_adds(out, "\xef\xbf\xbd");
        len = pf_utf8_subpart(p, n);
    }
}

enum pf_status
pf_texts_piece(struct pf_texts *texts, const struct pf_piece *p,
    struct pf_buf *out, struct pf_err *err)
{
    struct text *t = pf_seqmap_get(&texts->map, p->key, p->key_len);
    size_t n;
    enum pf_status st;

    if (!t && !(t = new_text(texts, p->key, p->key_len, err)))
        return PF_ENOMEM;
    if (p->pos == 0)
        take_bytes(t, 0, t->held.len);
    if ((st = add_bytes(t, p, err)))
        return st;
    n = ready(t, p->done);
    add_valid(out, t->held.data, n);
    take_bytes(t, 0, n);
    if (t->held.len == 0) {
        close_text(texts, t);
        drop(texts, t);
    }
    return pf_buf_check(out, err);
}
