/* What has become of a text is written, as was asked for. */
#include "encode-private.h"

#include <string.h>

#include <pipeformer/json.h>
#include <pipeformer/tokens.h>
#include <pipeformer/utf8.h>

void
encode_add_raw(struct pf_buf *out, const struct encode *e, const uint32_t *ids,
    size_t n)
{
    unsigned char *p = n <= SIZE_MAX / 8
        ? (unsigned char *)pf_buf_room(out, n * e->raw) : NULL;

    if (!p) {
        out->failed = true;
        return;
    }
    /* The compiler makes of each loop what the machine's byte order allows. */
    for (size_t i = 0; e->raw == 2 && i < n; i++) {
        p[2 * i] = (unsigned char)ids[i];
        p[2 * i + 1] = (unsigned char)(ids[i] >> 8);
    }
    for (size_t i = 0; e->raw == 4 && i < n; i++) {
        p[4 * i] = (unsigned char)ids[i];
        p[4 * i + 1] = (unsigned char)(ids[i] >> 8);
        p[4 * i + 2] = (unsigned char)(ids[i] >> 16);
        p[4 * i + 3] = (unsigned char)(ids[i] >> 24);
    }
    out->len += n * e->raw;
}

/* What a terminal would act on, or turn around what follows. */
static bool
is_control(uint32_t c)
{
    return (c < ' ' && c != '\t') || (c >= 0x7f && c < 0xa0) || c == 0x200e
        || c == 0x200f || (c >= 0x202a && c <= 0x202e)
        || (c >= 0x2066 && c <= 0x2069);
}

/* Shades that black letters can be read on, one after the other. */
static void
add_color(struct pf_buf *out, const struct encode *e, const struct encoded *t)
{
    static const unsigned char shades[] = { 153, 223, 157, 219, 230, 189 };
    struct pf_buf text = PF_BUF_INIT;
    const char *token;
    unsigned shade;
    uint32_t c;
    size_t len;

    for (size_t i = 0; i < t->n; i++) {
        shade = shades[i % sizeof shades];
        token = pf_tokenizer_token(e->tok, t->ids[i], &len);
        pf_buf_clear(&text);
        pf_token_text(&text, token, len);
        pf_buf_printf(out, "\033[38;5;16;48;5;%um", shade);
        for (size_t k = 0; k < text.len; k += len) {
            c = pf_utf8_decode(text.data + k, &len);
            if (c == '\n') /* the rest of the line keeps its color */
                pf_buf_printf(out, "\033[0m\n\033[38;5;16;48;5;%um", shade);
            else if (is_control(c))
                pf_buf_printf(out, c < 0x80 ? "<0x%02X>" : "<U+%04X>", c);
            else
                pf_buf_add(out, text.data + k, len);
        }
        pf_buf_adds(out, "\033[0m");
        if (text.failed)
            out->failed = true;
    }
    pf_buf_addc(out, '\n');
    pf_buf_fini(&text);
}

/* A record of nothing but seq, cut and ids. */
static void
add_line(struct pf_buf *out, const struct encode *e, uint64_t number,
    const struct encoded *t)
{
    enum { ROOM = 100 }; /* what is around the ids */
    char *p = t->n < SIZE_MAX / 16
        ? pf_buf_room(out, PF_ID_MAX * t->n + ROOM) : NULL;

    if (!p) {
        out->failed = true;
        return;
    }
    memcpy(p, "{\"seq\":", 7);
    p += 7;
    p += pf_i64_print(p, (int64_t)number);
    if (e->max != SIZE_MAX) {
        memcpy(p, ",\"cut\":", 7);
        p += 7;
        p += pf_i64_print(p, (int64_t)t->cut);
    }
    memcpy(p, ",\"ids\":[", 8);
    p = pf_ids_print(p + 8, t->ids, t->n);
    memcpy(p, "]}\n", 3);
    out->len = (size_t)(p + 3 - out->data);
}

static enum pf_status
set_ids(struct pf_record *rec, const char *name, const void *ids, size_t n,
    struct pf_err *err)
{
    struct pf_tensor *t = pf_record_put(rec, name, PF_I32, 1, &n, NULL);

    if (!t)
        return pf_fail_mem(err);
    if (n)
        memcpy((void *)t->data, ids, n * sizeof(uint32_t));
    return PF_OK;
}

enum pf_status
encode_add_record(struct encode_worker *w, struct pf_record *rec,
    const struct encoded *t, struct pf_err *err)
{
    const struct encode *e = w->e;
    enum pf_status st = set_ids(rec, "ids", t->ids, t->n, err);

    if (!st && t->segments)
        st = set_ids(rec, "segments", t->segments, t->n, err);
    if (!st && e->max != SIZE_MAX)
        st = pf_record_set_i64(rec, "cut", (int64_t)t->cut, err);
    if (!st && e->tokens)
        st = pf_set_tokens(rec, e->tok, t->ids, t->n, err);
    if (!st && e->offsets)
        st = pf_set_offsets(rec, t->spans, t->n, err);
    return st ? st : pf_record_print(&w->out, rec, err);
}

enum pf_status
encode_add_output(struct encode_worker *w, struct pf_record *rec,
    uint64_t number, const struct encoded *t, struct pf_err *err)
{
    const struct encode *e = w->e;
    enum pf_status st = PF_OK;
    char digits[24];

    w->sum += t->n;
    switch (e->output) {
    case ENCODE_FITS:
    case ENCODE_TOTAL:
        break;
    case ENCODE_COUNTS:
        pf_buf_add(&w->out, digits, pf_i64_print(digits, (int64_t)t->n));
        pf_buf_addc(&w->out, '\n');
        break;
    case ENCODE_RAW:
        encode_add_raw(&w->out, e, t->ids, t->n);
        if (e->eot)
            encode_add_raw(&w->out, e, &e->eot_id, 1);
        break;
    case ENCODE_COLOR:
        add_color(&w->out, e, t);
        break;
    case ENCODE_RECORDS:
        if (rec)
            st = encode_add_record(w, rec, t, err);
        else
            add_line(&w->out, e, number, t);
    }
    return st ? st : pf_buf_check(&w->out, err);
}
