#include <pipeformer/texts.h>

#include <stdlib.h>
#include <string.h>

#include <pipeformer/seqmap.h>
#include <pipeformer/utf8.h>

/* A text in the making. */
struct text {
    struct pf_buf held; /* bytes not written; of the live one, those of a
                           character that is not whole */
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
    pf_buf_clear(&t->held);
    pf_buf_clear(&t->key);
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

/* Takes the first n held bytes away. */
static void
shift(struct pf_buf *b, size_t n)
{
    b->len -= n;
    if (b->len)
        memmove(b->data, b->data + n, b->len);
}

/* Writes what is whole of a text's bytes, or all of them. */
static enum pf_status
write_held(struct pf_texts *texts, struct text *t, bool all,
    struct pf_err *err)
{
    size_t n = t->held.len;
    enum pf_status st;

    if (!all)
        n -= pf_utf8_pending(t->held.data, n);
    st = n ? pf_out_write(texts->out, t->held.data, n, err) : PF_OK;
    shift(&t->held, n);
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
    if (st || !texts->open.first)
        return st;
    return write_held(texts, texts->open.first, false, err);
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
pf_texts_add(struct pf_texts *texts, const char *key, size_t key_len,
    size_t pos, bool more, bool done, const char *bytes, size_t n,
    struct pf_err *err)
{
    struct text *t = pf_seqmap_get(&texts->map, key, key_len);
    enum pf_status st = PF_OK;

    if (t && pos == 0) { /* begun anew: the old one is over */
        st = finish(texts, t, err);
        t = NULL;
    }
    if (!st && !t && !(t = new_text(texts, key, key_len, err)))
        st = PF_ENOMEM;
    if (st)
        return st;
    t->single = pos == 0 && !more;
    pf_buf_add(&t->held, bytes, n);
    st = pf_buf_check(&t->held, err);
    if (!st && done)
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
pf_texts_piece(struct pf_texts *texts, const char *key, size_t key_len,
    size_t pos, bool whole, const char *bytes, size_t n, struct pf_buf *out,
    struct pf_err *err)
{
    struct text *t = pf_seqmap_get(&texts->map, key, key_len);
    size_t ready;
    enum pf_status st;

    if (!t && !(t = new_text(texts, key, key_len, err)))
        return PF_ENOMEM;
    if (pos == 0)
        pf_buf_clear(&t->held);
    pf_buf_add(&t->held, bytes, n);
    st = pf_buf_check(&t->held, err);
    if (st)
        return st;
    ready = t->held.len;
    if (!whole)
        ready -= pf_utf8_pending(t->held.data, ready);
    add_valid(out, t->held.data, ready);
    shift(&t->held, ready);
    if (t->held.len == 0) {
        close_text(texts, t);
        drop(texts, t);
    }
    return pf_buf_check(out, err);
}
