#include <pipeformer/texts.h>

#include <stdlib.h>
#include <string.h>

#include <pipeformer/seqmap.h>
#include <pipeformer/utf8.h>

/* A text in the making. */
struct text {
    struct pf_buf held; /* bytes not written; of the live one, those of a
                           character that is not whole */
    char *key;
    size_t key_len;
    bool single; /* so far one piece from position 0: it may be whole */
    bool done;
    struct text *next;
};

struct pf_texts {
    struct pf_out *out;
    const char *after;
    size_t after_len;
    struct text *first, **last; /* in the order in which they began */
    size_t n;
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
    t->last = &t->first;
    return PF_OK;
}

static void
free_text(struct text *t)
{
    pf_buf_fini(&t->held);
    free(t->key);
    free(t);
}

void
pf_texts_free(struct pf_texts *texts)
{
    if (!texts)
        return;
    while (texts->first) {
        struct text *t = texts->first;

        texts->first = t->next;
        free_text(t);
    }
    pf_seqmap_fini(&texts->map, NULL);
    free(texts);
}

/* A new last text of that key. */
static struct text *
new_text(struct pf_texts *texts, const char *key, size_t len,
    struct pf_err *err)
{
    struct text *t = calloc(1, sizeof *t);

    if (t)
        t->key = malloc(len + 1);
    if (!t || !t->key || pf_seqmap_put(&texts->map, key, len, t, err)) {
        if (t)
            free_text(t);
        pf_fail_mem(err);
        return NULL;
    }
    if (len)
        memcpy(t->key, key, len);
    t->key_len = len;
    *texts->last = t;
    texts->last = &t->next;
    texts->n++;
    return t;
}

/* Takes a text off the list and forgets it. */
static void
drop(struct pf_texts *texts, struct text **at)
{
    struct text *t = *at;

    texts->n--;
    *at = t->next;
    if (texts->last == &t->next)
        texts->last = at;
    if (pf_seqmap_get(&texts->map, t->key, t->key_len) == t)
        pf_seqmap_take(&texts->map, t->key, t->key_len);
    free_text(t);
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

static enum pf_status
end_text(struct pf_texts *texts, struct text **at, struct pf_err *err)
{
    enum pf_status st = write_held(texts, *at, true, err);

    if (!st && texts->after_len)
        st = pf_out_write(texts->out, texts->after, texts->after_len, err);
    drop(texts, at);
    return st;
}

/*
 * Where none is live: those that are done go out, and the first of the others
 * is live.
 */
static enum pf_status
next_live(struct pf_texts *texts, struct pf_err *err)
{
    struct text **at = &texts->first;
    enum pf_status st = PF_OK;

    while (*at && !st) {
        if ((*at)->done)
            st = end_text(texts, at, err);
        else
            at = &(*at)->next;
    }
    if (st || !texts->first)
        return st;
    return write_held(texts, texts->first, false, err);
}

enum pf_status
pf_texts_add(struct pf_texts *texts, const char *key, size_t key_len,
    size_t pos, bool more, bool done, const char *bytes, size_t n,
    struct pf_err *err)
{
    struct text *t = pf_seqmap_get(&texts->map, key, key_len);
    enum pf_status st = PF_OK;

    if (t && pos == 0) { /* begun anew: the old one is over */
        t->done = true;
        pf_seqmap_take(&texts->map, key, key_len);
        t = NULL;
    }
    if (!t && !(t = new_text(texts, key, key_len, err)))
        return PF_ENOMEM;
    t->single = pos == 0 && !more;
    t->done = done;
    pf_buf_add(&t->held, bytes, n);
    st = pf_buf_check(&t->held, err);
    if (!st && texts->first->done)
        st = next_live(texts, err);
    else if (!st && t == texts->first)
        st = write_held(texts, t, false, err);
    while (!st && texts->n > PF_TEXTS_WAIT && texts->first->single) {
        st = end_text(texts, &texts->first, err);
        if (!st)
            st = next_live(texts, err);
    }
    return st;
}

enum pf_status
pf_texts_end(struct pf_texts *texts, struct pf_err *err)
{
    for (struct text *t = texts->first; t; t = t->next)
        t->done = true;
    return next_live(texts, err);
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
    struct text *t = pf_seqmap_get(&texts->map, key, key_len), **at;
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
        for (at = &texts->first; *at != t; at = &(*at)->next)
            ;
        drop(texts, at);
    }
    return pf_buf_check(out, err);
}
