/*
 * A long text is shared among threads at places where it may be cut.  Of one
 * that does not end, or not soon, what is certain becomes ids and is written,
 * and the rest waits for more.
 */
#include "encode-private.h"

#include <string.h>


static void
work_part_with(struct encode_worker *w, struct pf_encoder *enc)
{
    const uint32_t *ids;
    size_t n;

    pf_buf_clear(&w->ids);
    pf_buf_clear(&w->spans);
    w->st = pf_encode(enc, w->text, w->len, &ids, &n, &w->err);
    if (w->st)
        return;
    pf_buf_add(&w->ids, ids, n * sizeof *ids);
    if (w->e->offsets) {
        const size_t *spans = pf_encoder_spans(enc);

        for (size_t k = 0; k < n; k++)
            encode_add_span(w, spans[2 * k] + w->base,
                spans[2 * k + 1] + w->base);
    }
    w->st = w->ids.failed || w->spans.failed ? pf_fail_mem(&w->err) : PF_OK;
}

static void
work_part(void *ctx, size_t i)
{
    struct encode *e = ctx;
    struct encode_coder *coder = encode_take_coder(e);

    work_part_with(&e->workers[i], coder->enc);
    atomic_flag_clear(&coder->busy);
}

enum pf_status
encode_long(struct encode *e, const char *text, size_t len,
    struct pf_buf *ids, struct pf_buf *spans, struct pf_err *err)
{
    size_t from = 0, to, n = 0;
    struct encode_worker *w;

    for (size_t i = 0; i < e->n_workers && from < len; i++) {
        to = from + (len - from) / (e->n_workers - i);
        to = i + 1 == e->n_workers ? len
            : from + pf_encoder_border(e->coders[0].enc, text + from,
                to - from);
        if (to == from)
            to = len;
        w = &e->workers[n++];
        w->text = text + from;
        w->len = to - from;
        w->base = from;
        from = to;
    }
    encode_run(e, work_part, e, n);
    for (size_t i = 0; i < n; i++) {
        w = &e->workers[i];
        if (w->st) {
            *err = w->err;
            return w->st;
        }
        if (w->ids.len)
            pf_buf_add(ids, w->ids.data, w->ids.len);
        if (w->spans.len)
            pf_buf_add(spans, w->spans.data, w->spans.len);
    }
    return ids->failed || spans->failed ? pf_fail_mem(err) : PF_OK;
}

/* Ids of the text at hand, as far as it may have them. */
static void
add_part(struct encode *e, struct encode_worker *w, const uint32_t *ids,
    size_t n, size_t room)
{
    w->misfit |= n > room;
    n = n < room ? n : room;
    if (e->output == ENCODE_RAW)
        encode_add_raw(&w->out, e, ids, n);
    e->part += n;
    w->sum += n;
}

void
encode_drop(struct encode *e)
{
    e->part = 0;
    e->begun = false;
}

enum pf_status
encode_part(void *ctx, const char *text, size_t len, bool last, size_t *used,
    struct pf_err *err)
{
    struct encode *e = ctx;
    struct encode_worker *w = &e->workers[0];
    struct pf_encoder *enc = e->coders[0].enc;
    struct pf_buf ids = PF_BUF_INIT, spans = PF_BUF_INIT;
    const struct pf_slot *slots;
    const uint32_t *some = NULL;
    enum pf_status st;
    size_t n = 0, n_frame, n_slots, i;

    n_slots = encode_slots(e, false, &slots, &n_frame);
    *used = last ? len : pf_encoder_border(enc, text, len);
    if (*used || last) {
        st = encode_long(e, text, *used, &ids, &spans, err);
        some = (const uint32_t *)(const void *)ids.data;
        n = ids.len / sizeof *some;
    } else {
        st = pf_encode_some(enc, text, len, used, &some, &n, err);
    }
    if (st)
        goto done;
    for (i = 0; slots[i].id != PF_SLOT_TEXT; i++)
        if (!e->begun)
            add_part(e, w, &slots[i].id, 1, SIZE_MAX);
    e->begun = true;
    add_part(e, w, some, n, e->max == SIZE_MAX ? SIZE_MAX
        : e->max - (n_frame - i) - e->part);
    if (last) {
        while (++i < n_slots)
            add_part(e, w, &slots[i].id, 1, SIZE_MAX);
        if (e->eot)
            encode_add_raw(&w->out, e, &e->eot_id, 1);
        if (e->output == ENCODE_COUNTS)
            pf_buf_printf(&w->out, "%zu\n", e->part);
        encode_drop(e);
    }
    st = pf_buf_check(&w->out, err);
    if (!st)
        st = encode_collect(e, w, err);
done:
    if (st)
        encode_drop(e);
    pf_buf_fini(&ids);
    pf_buf_fini(&spans);
    return st;
}

bool
encode_parts(const struct encode *e)
{
    const struct pf_slot *slots;
    size_t n_frame;

    encode_slots(e, false, &slots, &n_frame);
    /* What was written of a text cannot be taken back, so none may fail. */
    return e->output != ENCODE_RECORDS && e->output != ENCODE_COLOR
        && e->max >= n_frame && pf_tokenizer_complete(e->tok);
}
