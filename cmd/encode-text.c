/* Texts become ids, with what stands around them, and are cut to size. */
#include "encode-private.h"

#include <string.h>

/* Ids that may be cut away from the longer of two, then from both. */
static void
shorten(size_t *a, size_t *b, size_t room)
{
    size_t *less = *a <= *b ? a : b, *more = *a <= *b ? b : a;

    if (*a + *b <= room)
        return;
    *more = *less > room || room - *less < *less ? *less : room - *less;
    if (*less + *more > room) {
        *less = room / 2;
        *more = room - room / 2;
    }
}

void
encode_add_span(struct encode_worker *w, size_t from, size_t to)
{
    pf_buf_add(&w->spans, &from, sizeof from);
    pf_buf_add(&w->spans, &to, sizeof to);
}

enum pf_status
encode_frame(struct encode_worker *w, const struct pf_slot *slots, size_t n,
    const struct encode_body *a, const struct encode_body *b, struct encoded *t,
    struct pf_err *err)
{
    const struct encode_body *body;

    pf_buf_clear(&w->ids);
    pf_buf_clear(&w->segments);
    pf_buf_clear(&w->spans);
    t->n = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t *ids = &slots[i].id;
        size_t count = 1;

        body = slots[i].id == PF_SLOT_TEXT ? a
            : slots[i].id == PF_SLOT_PAIR ? b : NULL;
        if (body) {
            ids = body->ids;
            count = body->n;
        }
        if (count)
            pf_buf_add(&w->ids, ids, count * sizeof *ids);
        for (size_t k = 0; k < count; k++)
            pf_buf_add(&w->segments, &slots[i].segment, sizeof(int32_t));
        if (w->e->offsets && body && count)
            pf_buf_add(&w->spans, body->spans, 2 * count * sizeof(size_t));
        else if (w->e->offsets && !body)
            encode_add_span(w, 0, 0);
        t->n += count;
    }
    if (w->ids.failed || w->segments.failed || w->spans.failed)
        return pf_fail_mem(err);
    t->ids = (const uint32_t *)(const void *)w->ids.data;
    t->segments = b ? (const int32_t *)(const void *)w->segments.data : NULL;
    t->spans = (const size_t *)(const void *)w->spans.data;
    return PF_OK;
}

/* The slots that a text of this kind gets, and how many of them are ids. */
size_t
encode_slots(const struct encode *e, bool pair, const struct pf_slot **slots,
    size_t *ids)
{
    static const struct pf_slot bare[] = { { PF_SLOT_TEXT, 0 },
        { PF_SLOT_PAIR, 1 } };
    size_t n = 1 + (size_t)pair;

    *slots = bare;
    if (!e->bare)
        n = pf_tokenizer_frame(e->tok, pair, slots);
    *ids = n - 1 - (size_t)pair;
    return n;
}

/* A text whose ids are known becomes output. */
enum pf_status
encode_finish(struct encode_worker *w, const struct encode_job *job,
    struct encode_body *a, struct encode_body *b, struct pf_err *err)
{
    const struct encode *e = w->e;
    struct pf_record *rec = job->rec;
    const struct pf_slot *slots;
    struct encoded t = { 0 };
    size_t n_frame, n_slots = encode_slots(e, b != NULL, &slots, &n_frame), all;
    enum pf_status st = PF_OK;

    all = a->n + (b ? b->n : 0) + n_frame;
    w->misfit |= all > e->max;
    if (all > e->max && e->output != ENCODE_FITS) {
        size_t none = 0, *other = b ? &b->n : &none;
        size_t room = e->max > n_frame ? e->max - n_frame : 0;

        if (b)
            shorten(&a->n, other, room);
        else
            a->n = room;
        t.cut = all - n_frame - a->n - *other;
    }
    if (e->output == ENCODE_RECORDS && !rec && (e->tokens || e->offsets
            || e->chunk)) {
        rec = &w->rec;
        pf_record_clear(rec);
    }
    if (rec && !pf_record_field(rec, "seq"))
        st = pf_record_set_i64(rec, "seq", (int64_t)job->number, err);
    if (st)
        return st;
    if (e->chunk)
        return encode_chunks(w, rec, a, err);
    if (n_slots == 1) {
        t.ids = a->ids;
        t.spans = a->spans;
        t.n = a->n;
    } else {
        st = encode_frame(w, slots, n_slots, a, b, &t, err);
        if (st)
            return st;
    }
    if (t.n > e->max) {
        t.cut += t.n - e->max; /* not even what is around has room */
        t.n = e->max;
    }
    return encode_add_output(w, rec, job->number, &t, err);
}

enum pf_status
encode_one(struct encode_worker *w, const struct encode_job *job,
    struct pf_err *err)
{
    struct encode_body a = { 0 }, b = { 0 };
    struct pf_buf first = PF_BUF_INIT, spans = PF_BUF_INIT;
    const struct pf_slot *slots;
    enum pf_status st;

    if (!job->text)
        return job->rec ? pf_record_print(&w->out, job->rec, err) : PF_OK;
    if (!job->pair) {
        st = pf_encode(w->enc, job->text, job->len, &a.ids, &a.n, err);
        a.spans = pf_encoder_spans(w->enc);
        return st ? st : encode_finish(w, job, &a, NULL, err);
    }
    if (w->e->chunk || pf_tokenizer_frame(w->e->tok, true, &slots) == 0)
        return pf_fail(err, PF_EFORMAT, "text_pair: %s single texts",
            w->e->chunk ? "--chunk cuts" : "this tokenizer encodes");
    st = pf_encode(w->enc, job->text, job->len, &a.ids, &a.n, err);
    if (!st) {
        pf_buf_add(&first, a.ids, a.n * sizeof *a.ids);
        if (w->e->offsets)
            pf_buf_add(&spans, pf_encoder_spans(w->enc),
                2 * a.n * sizeof *a.spans);
        st = first.failed || spans.failed ? pf_fail_mem(err) : PF_OK;
        a.ids = (const uint32_t *)(const void *)first.data;
        a.spans = (const size_t *)(const void *)spans.data;
    }
    if (!st)
        st = pf_encode(w->enc, job->pair, job->pair_len, &b.ids, &b.n, err);
    b.spans = pf_encoder_spans(w->enc);
    if (!st)
        st = encode_finish(w, job, &a, &b, err);
    pf_buf_fini(&first);
    pf_buf_fini(&spans);
    return st;
}

enum pf_status
encode_together(struct encode_worker *w, struct pf_err *err)
{
    struct encode_job job = { .number = w->number + w->done };
    struct encode_body a;
    const uint32_t *ids;
    const char *end;
    size_t used, n, from = 0, i = 0, done = w->done;
    uint32_t mark = 0;
    enum pf_status st;

    if (w->e->offsets)
        return PF_OK;
    st = pf_encode_texts(w->enc, w->block, (size_t)(w->end - w->block),
        (char)w->delimiter, &used, &ids, &n, &mark, err);
    for (; !st && used && i <= n; i++) {
        if (i < n ? ids[i] != mark : w->block[used - 1] == (char)w->delimiter)
            continue;
        a = (struct encode_body){ .ids = ids + from, .n = i - from };
        st = encode_finish(w, &job, &a, NULL, err);
        if (st)
            break;
        w->done++;
        job.number++;
        from = i + 1;
    }
    if (!st)
        w->block += used;
    else /* goes on behind the text that failed */
        for (done = w->done - done + 1; done && w->block < w->end; done--) {
            end = memchr(w->block, w->delimiter, (size_t)(w->end - w->block));
            w->block = end ? end + 1 : w->end;
        }
    return st;
}
