/*
 * Texts that do not end, or not soon: what is certain of one becomes ids and
 * is written, and the rest waits for more.
 */
#include "encode-private.h"

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
