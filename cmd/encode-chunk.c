/*
 * --chunk: a text as pieces that overlap.  A piece ends where a character
 * does, if one ends near enough, so that each can be read by itself.
 */
#include "encode-private.h"

#include <pipeformer/json.h>

/* The last place at or before `at`, after `limit`, that is not within a
 * character; `at` if there is none. */
static size_t
border(const struct encode *e, const uint32_t *ids, size_t at, size_t limit)
{
    for (size_t i = at; i > limit; i--)
        if (!pf_tokenizer_continues(e->tok, ids[i]))
            return i;
    return at;
}

/* The first such place from `at` on, before `end`; else that. */
static size_t
next_border(const struct encode *e, const uint32_t *ids, size_t at,
    size_t end)
{
    while (at < end && pf_tokenizer_continues(e->tok, ids[at]))
        at++;
    return at;
}

/* Where a piece that begins at `from` ends: at a border behind `end`, if any
 * is near enough. */
static size_t
last_border(const struct encode *e, const struct encode_body *text, size_t from,
    size_t room, size_t end)
{
    return text->n - from > room ? border(e, text->ids, from + room,
        end > from ? end : from) : text->n;
}

/* What stands for the text in the seq of its pieces. */
static enum pf_status
name_of(const struct pf_record *rec, struct pf_buf *name, struct pf_err *err)
{
    const struct pf_field *f = pf_record_field(rec, "seq");

    if (f->text[0] == '"')
        return pf_json_text_string(f->text, f->len, name, err);
    pf_buf_add(name, f->text, f->len);
    return pf_buf_check(name, err);
}

enum pf_status
encode_chunks(struct encode_worker *w, struct pf_record *rec,
    const struct encode_body *text, struct pf_err *err)
{
    const struct encode *e = w->e;
    const struct pf_slot *slots;
    struct pf_buf name = PF_BUF_INIT;
    size_t n_frame, n_slots = encode_slots(e, false, &slots, &n_frame);
    size_t room = e->chunk - n_frame, from = 0, to = 0, end = 0, base;
    struct encoded t = { .cut = 0 };
    struct encode_body piece;
    enum pf_status st = name_of(rec, &name, err);

    base = name.len;
    for (size_t i = 0; !st; i++) {
        to = last_border(e, text, from, room, end);
        /* Where what overlaps leaves no room for a character, less does. */
        while (from < end && to < text->n
            && pf_tokenizer_continues(e->tok, text->ids[to])) {
            from = next_border(e, text->ids, from + 1, end);
            to = last_border(e, text, from, room, end);
        }
        piece = (struct encode_body){ text->ids + from, e->offsets
            ? text->spans + 2 * from : NULL, to - from };
        name.len = base;
        pf_buf_printf(&name, ".%zu", i);
        if ((st = pf_buf_check(&name, err))
            || (st = pf_record_set_string(rec, "seq", name.data, name.len,
                    err))
            || (st = pf_record_set_i64(rec, "overlap", (int64_t)(end - from),
                    err))
            || (st = encode_frame(w, slots, n_slots, &piece, NULL, &t, err))
            || (st = encode_add_record(w, rec, &t, err)))
            break;
        w->sum += t.n;
        end = to;
        if (end == text->n)
            break;
        from = border(e, text->ids, end - (e->overlap < end ? e->overlap
            : end), end > room ? end - room : 0);
        from = next_border(e, text->ids, from, end);
    }
    pf_buf_fini(&name);
    return st;
}
