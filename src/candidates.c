#include <pipeformer/candidates.h>

#include <stdlib.h>
#include <string.h>

#include <pipeformer/json.h>
#include <pipeformer/tokens.h>

/* Sets a field to what was printed, and is done with the buffer. */
static enum pf_status
set_printed(struct pf_record *rec, const char *name, struct pf_buf *b,
    struct pf_err *err)
{
    enum pf_status st = pf_buf_check(b, err);

    if (!st)
        st = pf_record_set(rec, name, b->data, b->len, err);
    pf_buf_fini(b);
    return st;
}

enum pf_status
pf_set_probs(struct pf_record *rec, struct pf_sampler *s, struct pf_err *err)
{
    struct pf_buf b = PF_BUF_INIT;
    size_t n = pf_sampler_count(s);
    uint32_t *ids = malloc((n + 1) * sizeof *ids);
    enum pf_status st = ids ? pf_sampler_ranks(s, n, ids, err)
        : pf_fail_mem(err);

    pf_buf_addc(&b, '[');
    for (size_t i = 0; !st && i < n; i++) {
        pf_buf_adds(&b, i ? ",[" : "[");
        pf_json_add_i64(&b, ids[i]);
        pf_buf_addc(&b, ',');
        pf_json_add_f32(&b, (float)pf_sampler_prob(s, ids[i]));
        pf_buf_addc(&b, ']');
    }
    pf_buf_addc(&b, ']');
    free(ids);
    if (!st)
        return set_printed(rec, "probs", &b, err);
    pf_buf_fini(&b);
    return st;
}

void
pf_watch_fini(struct pf_watch *w)
{
    free(w->w);
    *w = (struct pf_watch)PF_WATCH_INIT;
}

enum pf_status
pf_watch_start(struct pf_watch *w, struct pf_sampler *s, const float *logits,
    double logsum, size_t n, struct pf_err *err)
{
    size_t count = pf_sampler_count(s);
    uint32_t *ids;
    enum pf_status st;

    w->n = n < count ? n : count;
    ids = malloc((w->n + 1) * sizeof *ids);
    if (!ids || !pf_grow(&w->w, &w->cap, w->n, sizeof *w->w))
        st = pf_fail_mem(err);
    else
        st = pf_sampler_ranks(s, w->n, ids, err);
    for (size_t i = 0; !st && i < w->n; i++)
        w->w[i] = (struct pf_watched){ ids[i],
            (float)((double)logits[ids[i]] - logsum), NULL };
    free(ids);
    return st;
}

void
pf_watch_step(struct pf_watch *w, const struct pf_sampler *s,
    const char *name)
{
    for (size_t i = 0; i < w->n; i++)
        if (!w->w[i].dropped && !pf_sampler_has(s, w->w[i].id))
            w->w[i].dropped = name;
}

/* The text of an id as a JSON string. */
static void
add_text(struct pf_buf *b, const struct pf_tokenizer *tok, uint32_t id)
{
    struct pf_buf text = PF_BUF_INIT;
    size_t len;
    const char *token = pf_tokenizer_token(tok, id, &len);

    if (token)
        pf_token_text(&text, token, len);
    pf_json_add_string(b, text.data, text.len);
    b->failed |= text.failed;
    pf_buf_fini(&text);
}

enum pf_status
pf_set_top(struct pf_record *rec, const struct pf_watch *w,
    struct pf_sampler *after, const struct pf_tokenizer *tok,
    struct pf_err *err)
{
    struct pf_buf b = PF_BUF_INIT;

    pf_buf_addc(&b, '[');
    for (size_t i = 0; i < w->n; i++) {
        pf_buf_printf(&b, "%s{\"id\":%u", i ? "," : "", w->w[i].id);
        if (tok) {
            pf_buf_adds(&b, ",\"text\":");
            add_text(&b, tok, w->w[i].id);
        }
        pf_buf_adds(&b, ",\"logprob\":");
        pf_json_add_f32(&b, w->w[i].logprob);
        pf_buf_adds(&b, ",\"p\":");
        pf_json_add_f32(&b, (float)pf_sampler_prob(after, w->w[i].id));
        pf_buf_addc(&b, '}');
    }
    pf_buf_addc(&b, ']');
    return set_printed(rec, "top", &b, err);
}

enum pf_status
pf_set_trail(struct pf_record *rec, const struct pf_watch *w,
    struct pf_err *err)
{
    struct pf_buf b = PF_BUF_INIT;
    bool first = true;

    pf_buf_addc(&b, '[');
    for (size_t i = 0; i < w->n; i++) {
        const char *step = w->w[i].dropped;

        if (!step)
            continue;
        pf_buf_printf(&b, "%s[%u,", first ? "" : ",", w->w[i].id);
        pf_json_add_string(&b, step, strlen(step));
        pf_buf_addc(&b, ']');
        first = false;
    }
    pf_buf_addc(&b, ']');
    return set_printed(rec, "trail", &b, err);
}
