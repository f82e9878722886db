#include "sample-choose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

#include <pipeformer/json.h>
#include <pipeformer/rng.h>

bool
chooser_knows(const struct chooser *c, size_t V)
{
    return c->has_model && c->config.vocab == V;
}

/* --- The chain --- */

/* Mirostat's state: what the record says, or where it starts. */
static enum pf_status
get_mu(const struct pf_record *from, const struct pf_step *mirostat,
    double *mu, struct pf_err *err)
{
    const struct pf_field *f = pf_record_field(from, "mu");
    struct pf_json j;

    *mu = 2 * mirostat->x[1];
    if (!f)
        return pf_record_has(from, "mu") ? pf_fail(err, PF_EFORMAT,
            "mu: is a tensor, not a number") : PF_OK;
    j = pf_json_at(f->text, f->len);
    if (pf_json_f64(&j, mu, NULL) || !isfinite(*mu))
        return pf_fail(err, PF_EFORMAT, "mu: %.*s is no finite number",
            (int)(f->len < 40 ? f->len : 40), f->text);
    return PF_OK;
}

/* `allow`, a list of ids: only these are candidates. */
static enum pf_status
take_allow(struct chooser *c, const struct pf_record *from, struct pf_err *err)
{
    const struct pf_field *f = pf_record_field(from, "allow");
    struct pf_json j;
    struct pf_buf ids = PF_BUF_INIT;
    enum pf_status st = PF_OK;
    bool first = true;
    int64_t v;

    if (!f)
        return pf_record_has(from, "allow") ? pf_fail(err, PF_EFORMAT,
            "allow: is a tensor, not a list of ids") : PF_OK;
    j = pf_json_at(f->text, f->len);
    if (pf_json_open(&j, '[', NULL))
        return pf_fail(err, PF_EFORMAT, "allow: is no list of ids");
    while (!st && (st = pf_json_next(&j, ']', &first, err)) == PF_OK) {
        uint32_t id;

        if (pf_json_i64(&j, &v, NULL) || v < 0 || v > INT32_MAX) {
            st = pf_fail(err, PF_EFORMAT, "allow: an entry is no id");
            break;
        }
        id = (uint32_t)v;
        pf_buf_add(&ids, &id, sizeof id);
    }
    if (st == PF_END)
        st = pf_buf_check(&ids, err);
    if (!st)
        st = pf_sampler_allow(c->sampler, (const uint32_t *)(void *)ids.data,
            ids.len / sizeof(uint32_t), err);
    pf_buf_fini(&ids);
    if (!st)
        pf_watch_step(&c->watch, c->sampler, "allow");
    return st;
}

static enum pf_status
run_chain(struct chooser *c, const struct row *row, double mu,
    struct pf_err *err)
{
    const struct sampling *o = &c->opt;
    size_t n = row->n_prev;
    struct pf_surroundings around = { .min_keep = o->min_keep, .mu = mu,
        .u_xtc = o->draw_xtc, .breakers = c->breakers };
    enum pf_status st;

    if (o->last_n >= 0 && (size_t)o->last_n < n)
        n = (size_t)o->last_n;
    around.prev = n ? row->prev + row->n_prev - n : NULL;
    around.n_prev = n;
    if (around.u_xtc < 0)
        around.u_xtc = pf_uniform(o->seed, row->seq, row->pos, 1);
    st = take_allow(c, row->from, err);
    for (size_t i = 0; !st && i < o->n_chain; i++) {
        st = pf_sampler_step(c->sampler, &o->chain[i].step, &around, err);
        pf_watch_step(&c->watch, c->sampler, o->chain[i].text);
    }
    return st;
}

/* --- What comes of it --- */

/* Why the sequence ends with this id, or NULL; `held` for who shows it. */
static enum pf_status
reason(struct chooser *c, const struct row *row, uint32_t id,
    const char **why, size_t *held, struct pf_err *err)
{
    bool ours = chooser_knows(c, row->V), stopped = false;
    const uint32_t *eos = c->opt.eos_given ? c->opt.eos : c->config.eos;
    size_t n = c->opt.eos_given ? c->opt.n_eos : ours ? c->config.n_eos : 0;
    enum pf_status st = PF_OK;

    *why = NULL;
    for (size_t i = 0; i < n && !*why; i++)
        if (eos[i] == id)
            *why = "eos";
    if (*why)
        return PF_OK;
    if (c->opt.stops) {
        pf_buf_clear(&c->text);
        if (row->V < pf_tokenizer_size(c->tok))
            return pf_fail(err, PF_ESHAPE, "logits: %zu of them, but --stop "
                "goes by the %zu tokens of %s", row->V,
                pf_tokenizer_size(c->tok), cli.model);
        st = pf_tokenizer_decode(c->tok, &id, 1, false, &row->live->begun,
            &c->text, NULL);
        if (st == PF_ERANGE) /* an id without a token adds nothing */
            st = PF_OK;
        if (!st)
            st = pf_stops_take(c->opt.stops, &row->live->tail, c->text.data,
                c->text.len, &stopped, held, err);
        else
            st = pf_fail_mem(err);
    }
    if (stopped)
        *why = "stop";
    else if (c->opt.max_tokens && row->live->drawn >= c->opt.max_tokens)
        *why = "length";
    else if (ours && row->pos >= c->config.positions)
        *why = "length";
    return st;
}

static enum pf_status
set_end(struct chooser *c, struct pf_record *rec, const struct row *row,
    uint32_t id, struct pf_err *err)
{
    const char *why;
    size_t held = 0;
    enum pf_status st;

    row->live->drawn++;
    st = reason(c, row, id, &why, &held, err);
    if (!st && held)
        st = pf_record_set_i64(rec, "held", (int64_t)held, err);
    if (!st && why)
        st = pf_record_set_string(rec, "done", why, strlen(why), err);
    return st;
}

/* Did a number come from the generator? */
static bool
used_seed(const struct chooser *c)
{
    const struct sampling *o = &c->opt;

    return (!c->probs && sampling_random(o) && o->draw < 0)
        || (o->draw_xtc < 0 && sampling_has(o, PF_STEP_XTC));
}

static enum pf_status
draw(struct chooser *c, struct pf_record *rec, const struct row *row,
    double logsum, double mu, struct pf_err *err)
{
    const struct sampling *o = &c->opt;
    const struct pf_step *mirostat = sampling_mirostat(o);
    bool random = sampling_random(o);
    double u = o->draw;
    struct pf_tensor *ids;
    uint32_t id;
    enum pf_status st;

    if (random && u < 0)
        u = pf_uniform(o->seed, row->seq, row->pos, 0);
    id = random ? pf_sampler_draw(c->sampler, u) : pf_sampler_best(c->sampler);
    st = pf_record_set_f32(rec, "logprob",
        (float)((double)row->logits[id] - logsum), err);
    if (!st && used_seed(c))
        st = pf_record_set_i64(rec, "seed", (int64_t)o->seed, err);
    if (!st && mirostat)
        st = pf_record_set_f64(rec, "mu", pf_mirostat_mu(mirostat, mu,
            pf_sampler_prob(c->sampler, id)), err);
    if (!st && row->live)
        st = set_end(c, rec, row, id, err);
    if (st)
        return st;
    ids = pf_record_put(rec, "ids", PF_I32, 1, (size_t[]){ 1 }, NULL);
    if (!ids)
        return pf_fail_mem(err);
    memcpy((void *)ids->data, &id, sizeof id);
    return PF_OK;
}

enum pf_status
choose(struct chooser *c, struct pf_record *rec, const struct row *row,
    struct pf_err *err)
{
    const struct pf_step *mirostat = sampling_mirostat(&c->opt);
    size_t watched = c->opt.top ? c->opt.top : c->opt.trail ? row->V : 0;
    bool texts = c->tok && (c->has_model ? chooser_knows(c, row->V)
        : row->V >= pf_tokenizer_size(c->tok));
    double logsum = 0, mu = 0;
    enum pf_status st = pf_sampler_start(c->sampler, row->logits, row->V, err);

    if (!st)
        logsum = pf_sampler_logsum(c->sampler);
    if (!st)
        st = pf_watch_start(&c->watch, c->sampler, row->logits, logsum,
            watched, err);
    if (!st && mirostat)
        st = get_mu(row->from, mirostat, &mu, err);
    if (!st)
        st = run_chain(c, row, mu, err);
    cli_drop(rec, "allow");
    if (!st && c->probs && used_seed(c))
        st = pf_record_set_i64(rec, "seed", (int64_t)c->opt.seed, err);
    if (!st)
        st = c->probs ? pf_set_probs(rec, c->sampler, err)
            : draw(c, rec, row, logsum, mu, err);
    if (!st && c->opt.top)
        st = pf_set_top(rec, &c->watch, c->sampler, texts ? c->tok : NULL,
            err);
    if (!st && c->opt.trail)
        st = pf_set_trail(rec, &c->watch, err);
    return st;
}
