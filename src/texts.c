#include <pipeformer/texts.h>

#include <stdlib.h>
#include <string.h>

#include <pipeformer/seqmap.h>
#include <pipeformer/utf8.h>

#include "texts-private.h"

/* Texts in order. */
struct list {
    struct pf_text *first, *last;
};

struct pf_texts {
    struct pf_out *out;
    const char *after;
    size_t after_len;
    /* Those in `open`, then those of the run, in the order in which they
     * began: the first of all is live. */
    struct list open;
    struct pf_run run;
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
free_text(struct pf_text *t)
{
    pf_buf_fini(&t->held);
    pf_buf_fini(&t->hidden);
    pf_buf_fini(&t->key);
    free(t);
}

static void
append(struct list *l, struct pf_text *t)
{
    t->prev = l->last;
    t->next = NULL;
    *(l->last ? &l->last->next : &l->first) = t;
    l->last = t;
}

static void
take(struct list *l, struct pf_text *t)
{
    *(t->prev ? &t->prev->next : &l->first) = t->next;
    *(t->next ? &t->next->prev : &l->last) = t->prev;
}

static void
free_list(struct list *l)
{
    while (l->first) {
        struct pf_text *t = l->first;

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
    pf_buf_fini(&texts->run.bytes);
    pf_seqmap_fini(&texts->map, NULL);
    free(texts);
}

/* A text that is in no list is over; small ones are kept for the next. */
static void
drop(struct pf_texts *texts, struct pf_text *t)
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
static struct pf_text *
new_text(struct pf_texts *texts, const char *key, size_t len,
    struct pf_err *err)
{
    struct pf_text *t = texts->spare.last;

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
close_text(struct pf_texts *texts, struct pf_text *t)
{
    take(&texts->open, t);
    texts->n--;
    pf_seqmap_take(&texts->map, t->key.data, t->key.len);
}

/* Writes what is whole of a text's bytes, or all of them. */
static enum pf_status
write_held(struct pf_texts *texts, struct pf_text *t, bool all,
    struct pf_err *err)
{
    size_t n = pf_text_ready(t, all);
    enum pf_status st = n ? pf_out_write(texts->out, t->held.data, n, err)
        : PF_OK;

    pf_text_take(t, 0, n);
    return st;
}

/* Writes the rest of a text that is in no list any more. */
static enum pf_status
end_text(struct pf_texts *texts, struct pf_text *t, struct pf_err *err)
{
    enum pf_status st = write_held(texts, t, true, err);

    if (!st && texts->after_len)
        st = pf_out_write(texts->out, texts->after, texts->after_len, err);
    drop(texts, t);
    return st;
}

/* The first text is live now: what is whole of it goes out. */
static enum pf_status
begin_live(struct pf_texts *texts, struct pf_err *err)
{
    if (texts->open.first)
        return write_held(texts, texts->open.first, false, err);
    return texts->run.n ? pf_run_write(&texts->run, texts->out, false,
        texts->after_len, err) : PF_OK;
}

/*
 * The live text has ended: after it, those that are done go out, and then the
 * first of the others is live.
 */
static enum pf_status
end_live(struct pf_texts *texts, struct pf_err *err)
{
    struct pf_text *t = texts->open.first;
    enum pf_status st;

    if (!t)
        return pf_run_write(&texts->run, texts->out, true, texts->after_len,
            err);
    close_text(texts, t);
    st = end_text(texts, t, err);
    while (!st && (t = texts->done.first)) {
        take(&texts->done, t);
        st = end_text(texts, t, err);
    }
    return st ? st : begin_live(texts, err);
}

/* Text t is done: it ends now if it is live, else when it is its turn. */
static enum pf_status
finish(struct pf_texts *texts, struct pf_text *t, struct pf_err *err)
{
    if (t == texts->open.first)
        return end_live(texts, err);
    close_text(texts, t);
    append(&texts->done, t);
    return PF_OK;
}

/* Too many wait behind a text that may be whole: it is. */
static enum pf_status
end_waiting(struct pf_texts *texts, struct pf_err *err)
{
    enum pf_status st = PF_OK;

    while (!st && texts->n + texts->run.n > PF_TEXTS_WAIT
        && (!texts->open.first || texts->open.first->single))
        st = end_live(texts, err);
    return st;
}

/* The texts of the run become such as any piece may belong to. */
static enum pf_status
end_run(struct pf_texts *texts, struct pf_err *err)
{
    char key[PF_RUN_KEY];
    struct pf_text *t;
    const char *bytes;
    size_t n;

    while (texts->run.n) {
        n = pf_run_shift(&texts->run, texts->after_len, &bytes, key);
        t = new_text(texts, key, strlen(key), err);
        if (!t)
            return PF_ENOMEM;
        t->single = true;
        pf_buf_add(&t->held, bytes, n);
        if (t->held.failed)
            return pf_fail_mem(err);
    }
    return PF_OK;
}

enum pf_status
pf_texts_add(struct pf_texts *texts, const struct pf_piece *p,
    struct pf_err *err)
{
    enum pf_status st;
    uint64_t number;
    struct pf_text *t;

    if (pf_run_takes(&texts->run, p, &number) && (texts->n == 0
            || !pf_seqmap_get(&texts->map, p->key, p->key_len))) {
        st = pf_run_add(&texts->run, p, number, texts->after,
            texts->after_len, err);
        if (!st && texts->n == 0 && texts->run.n == 1)
            st = begin_live(texts, err);
        return st ? st : end_waiting(texts, err);
    }
    st = end_run(texts, err);
    if (st)
        return st;
    t = pf_seqmap_get(&texts->map, p->key, p->key_len);
    if (t && p->pos == 0) { /* begun anew: the old one is over */
        st = finish(texts, t, err);
        t = NULL;
    }
    if (!st && !t && !(t = new_text(texts, p->key, p->key_len, err)))
        st = PF_ENOMEM;
    if (st)
        return st;
    t->single = p->pos == 0 && !p->more;
    st = pf_text_add(t, p, err);
    if (!st && p->done)
        st = finish(texts, t, err);
    else if (!st && t == texts->open.first)
        st = write_held(texts, t, false, err);
    return st ? st : end_waiting(texts, err);
}

enum pf_status
pf_texts_end(struct pf_texts *texts, struct pf_err *err)
{
    enum pf_status st = PF_OK;

    while (!st && (texts->open.first || texts->run.n))
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
    struct pf_text *t = pf_seqmap_get(&texts->map, p->key, p->key_len);
    size_t n;
    enum pf_status st;

    if (!t && !(t = new_text(texts, p->key, p->key_len, err)))
        return PF_ENOMEM;
    if (p->pos == 0)
        pf_text_take(t, 0, t->held.len);
    st = pf_text_add(t, p, err);
    if (st)
        return st;
    n = pf_text_ready(t, p->done);
    add_valid(out, t->held.data, n);
    pf_text_take(t, 0, n);
    if (t->held.len == 0) {
        close_text(texts, t);
        drop(texts, t);
    }
    return pf_buf_check(out, err);
}
