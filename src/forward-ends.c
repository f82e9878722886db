/*
 * What stands before and behind the blocks: embeddings, the output head,
 * BERT's pooler.
 */
#include "forward-private.h"

#include <math.h>
#include <string.h>

/* out = row `i` of a table or, with `add`, out plus that. */
static void
take_row(const struct pf_kernels *kern, float *out,
    const struct pf_linear *table, size_t i, bool add)
{
    size_t C = table->in, size = pf_dtype_size(table->type);
    const char *row = (const char *)table->w + i * C * size;
    float part[256];

    if (!add) {
        kern->widen(out, row, table->type, C);
        return;
    }
    for (size_t k = 0; k < C; k += 256) {
        size_t n = pf_least(256, C - k);

        kern->widen(part, row + k * size, table->type, n);
        kern->add(out + k, part, n);
    }
}

enum pf_status
pf_embed(const struct pf_model *m, float *out, const uint32_t *ids,
    const uint32_t *segments, size_t T, size_t pos, bool positions,
    struct pf_err *err)
{
    const struct pf_config *c = &m->config;
    const struct pf_kernels *kern = pf_kernels_best();

    if (positions && T && (pos > c->positions || T > c->positions - pos))
        return pf_fail(err, PF_ERANGE, "position %zu is beyond the model's "
            "window of %zu (tok-encode --max or --chunk cuts texts)",
            pos + T - 1, c->positions);
    for (size_t t = 0; t < T; t++, out += c->width) {
        uint32_t segment = segments ? segments[t] : 0;

        if (ids[t] >= c->vocab)
            return pf_fail(err, PF_ERANGE, "ids: %u at %zu, but the model's "
                "vocabulary is %zu", ids[t], t, c->vocab);
        if (m->wtt.w && segment >= c->segments)
            return pf_fail(err, PF_ERANGE, "segments: %u at %zu, but the "
                "model has %zu", segment, t, c->segments);
        take_row(kern, out, &m->wte, ids[t], false);
        if (positions)
            take_row(kern, out, &m->wpe, pos + t, true);
        if (m->wtt.w)
            take_row(kern, out, &m->wtt, segment, true);
        if (m->ln_emb.gain)
            kern->layernorm(out, out, m->ln_emb.gain, m->ln_emb.bias,
                c->width, c->eps);
    }
    return PF_OK;
}

enum pf_status
pf_unembed(struct pf_runner *r, float *logits, const float *const *x,
    size_t M, bool norm, struct pf_err *err)
{
    const struct pf_model *m = r->m;
    size_t C = m->config.width;
    enum pf_status st = pf_run_scratch(r, M, 2 * C, err);
    float *in = r->scratch, *h;

    if (!m->head.w)
        return pf_fail(err, PF_EMODEL, "the model has no output head");
    if (st)
        return st;
    for (size_t i = 0; i < M; i++)
        memcpy(in + i * C, x[i], C * sizeof *in);
    h = in;
    if (m->transform.w) {
        h = in + M * C;
        pf_run_linear(r, &m->transform, h, C, in, M, true);
    }
    if (norm)
        pf_run_norm(r, h, h, M, &m->ln_f);
    pf_run_linear(r, &m->head, logits, m->config.vocab, h, M, false);
    return PF_OK;
}

enum pf_status
pf_pooler(struct pf_runner *r, float *out, const float *x,
    struct pf_err *err)
{
    const struct pf_linear *p = &r->m->pooler;

    if (!p->w)
        return pf_fail(err, PF_EMODEL, "the model has no pooler");
    pf_run_linear(r, p, out, p->out, x, 1, false);
    for (size_t i = 0; i < p->out; i++)
        out[i] = tanhf(out[i]);
    return PF_OK;
}

size_t
pf_first_nonfinite(const float *x, size_t n)
{
    size_t i = 0;

    for (; i < n; i++)
        if (!isfinite(x[i]))
            break;
    return i;
}
