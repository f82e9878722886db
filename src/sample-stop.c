/* Texts that end a sequence, wherever tokens part them. */
#include <pipeformer/sample.h>

#include <stdlib.h>
#include <string.h>

struct pf_stops {
    struct text {
        char *data;
        size_t len;
    } *texts;
    size_t n, cap;
};

enum pf_status
pf_stops_new(struct pf_stops **s, struct pf_err *err)
{
    *s = calloc(1, sizeof **s);
    return *s ? PF_OK : pf_fail_mem(err);
}

void
pf_stops_free(struct pf_stops *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++)
        free(s->texts[i].data);
    free(s->texts);
    free(s);
}

enum pf_status
pf_stops_add(struct pf_stops *s, const char *text, size_t len,
    struct pf_err *err)
{
    if (len == 0 || len > PF_STOP_MAX)
        return pf_fail(err, PF_ERANGE, "a text of %zu bytes is not within 1 "
            "and %d", len, PF_STOP_MAX);
    if (!pf_grow(&s->texts, &s->cap, s->n + 1, sizeof *s->texts))
        return pf_fail_mem(err);
    s->texts[s->n].data = malloc(len);
    if (!s->texts[s->n].data)
        return pf_fail_mem(err);
    memcpy(s->texts[s->n].data, text, len);
    s->texts[s->n++].len = len;
    return PF_OK;
}

/* Does one begin here?  *part: one may, if the text goes on. */
static bool
begins(const struct pf_stops *s, const char *p, size_t len, bool *part)
{
    *part = false;
    for (size_t i = 0; i < s->n; i++) {
        const struct text *t = &s->texts[i];

        if (memcmp(p, t->data, t->len < len ? t->len : len) != 0)
            continue;
        if (t->len <= len)
            return true;
        *part = true;
    }
    return false;
}

enum pf_status
pf_stops_take(const struct pf_stops *s, struct pf_buf *tail, const char *bytes,
    size_t n, bool *stopped, size_t *held, struct pf_err *err)
{
    size_t first = 0, i;
    bool any = false, part;

    pf_buf_add(tail, bytes, n);
    if (pf_buf_check(tail, err))
        return PF_ENOMEM;
    *stopped = false;
    for (i = 0; i < tail->len; i++) {
        *stopped = begins(s, tail->data + i, tail->len - i, &part);
        if (*stopped)
            break;
        if (part && !any) {
            any = true;
            first = i;
        }
    }
    *held = *stopped ? tail->len - i : any ? tail->len - first : 0;
    if (*held && !*stopped)
        memmove(tail->data, tail->data + tail->len - *held, *held);
    tail->len = *stopped ? 0 : *held;
    return PF_OK;
}
