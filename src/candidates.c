#include <pipeformer/candidates.h>

#include <math.h>
#include <stdlib.h>

#include <pipeformer/json.h>
#include <pipeformer/tokens.h>

enum pf_status
pf_set_probs(struct pf_record *rec, struct pf_sampler *s, struct pf_err *err)
{
    struct pf_buf b = PF_BUF_INIT;
    enum pf_status st;

    for (size_t i = 0; i < s->n; i++) {
        pf_buf_printf(&b, "%s[%u,", i ? "," : "[", pf_sampler_rank(s, i)->id);
        pf_json_add_f64(&b, pf_sampler_prob(s, i));
        pf_buf_addc(&b, ']');
    }
    pf_buf_addc(&b, ']');
    st = pf_buf_check(&b, err);
    if (!st)
        st = pf_record_set(rec, "probs", b.data, b.len, err);
    pf_buf_fini(&b);
    return st;
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
    pf_buf_fini(&text);
}

enum pf_status
pf_set_top(struct pf_record *rec, const float *logits, size_t V, size_t n,
    struct pf_sampler *after, const struct pf_tokenizer *tok,
    struct pf_err *err)
{
    struct pf_sampler raw = PF_SAMPLER_INIT;
    struct pf_buf b = PF_BUF_INIT;
    double *p = calloc(V, sizeof *p); /* by id, what the chain has made */
    enum pf_status st = p ? pf_sampler_start(&raw, logits, V, err)
        : pf_fail_mem(err);

    for (size_t i = 0; !st && i < after->n; i++)
        p[pf_sampler_rank(after, i)->id] = pf_sampler_prob(after, i);
    pf_buf_addc(&b, '[');
    for (size_t i = 0; !st && i < n && i < raw.n; i++) {
        uint32_t id = pf_sampler_rank(&raw, i)->id;

        pf_buf_printf(&b, "%s{\"id\":%u", i ? "," : "", id);
        if (tok) {
            pf_buf_adds(&b, ",\"text\":");
            add_text(&b, tok, id);
        }
        pf_buf_adds(&b, ",\"logprob\":");
        pf_json_add_f32(&b, (float)log(pf_sampler_prob(&raw, i)));
        pf_buf_adds(&b, ",\"p\":");
        pf_json_add_f32(&b, (float)p[id]);
        pf_buf_addc(&b, '}');
    }
    pf_buf_addc(&b, ']');
    if (!st)
        st = pf_buf_check(&b, err);
    if (!st)
        st = pf_record_set(rec, "top", b.data, b.len, err);
    pf_buf_fini(&b);
    pf_sampler_fini(&raw);
    free(p);
    return st;
}
