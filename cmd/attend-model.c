/* Records go through the model, those that wait together. */
#include "attend-model.h"

#include <stdlib.h>
#include <string.h>

#include <pipeformer/forward.h>
#include <pipeformer/maps.h>
#include <pipeformer/model.h>
#include <pipeformer/probe.h>

struct attend_job {
    size_t T, pos, from; /* from: index of the first layer to run */
    float *hidden;       /* in the record's memory: changed in place */
    struct pf_kv *kv;
    struct pf_hooked hooked;
};

/* --- A record --- */

/* Where a record that has passed `layer` blocks goes on. */
static enum pf_status
first_layer(const struct attend_model *m, const struct pf_record *rec,
    size_t *from, struct pf_err *err)
{
    size_t layers = m->model->config.layers;
    int64_t layer;
    enum pf_status st = pf_record_i64(rec, "layer", 0, &layer, err);

    *from = 0;
    if (st || m->layers_list)
        return st;
    if (layer < 0 || layer > (int64_t)layers)
        return pf_fail(err, PF_ERANGE, "layer: %lld, but the model has %zu "
            "blocks", (long long)layer, layers);
    if (layer == (int64_t)layers)
        return pf_fail(err, PF_ESTATE, "hidden has passed all %zu blocks "
            "already (-l names blocks to run again)", layers);
    *from = (size_t)layer;
    return PF_OK;
}

/* An encoder's rows attend both ways: they come in one record. */
static enum pf_status
whole(const struct pf_record *rec, size_t pos, struct pf_err *err)
{
    bool more;
    enum pf_status st = pf_record_bool(rec, "more", &more, err);

    if (!st && pos)
        st = pf_fail(err, PF_ESTATE, "pos: %zu, but an encoder takes a text "
            "whole, from position 0", pos);
    if (!st && (more || pf_record_has(rec, "fork")))
        st = pf_fail(err, PF_ESTATE, "%s: an encoder takes a text whole, in "
            "one record", more ? "more" : "fork");
    return st;
}

/* Makes the sequence ready for the job's rows. */
static enum pf_status
begin(struct attend_model *m, const struct pf_record *rec,
    struct attend_job *j, struct pf_err *err)
{
    const struct pf_field *seq = pf_record_field(rec, "seq");
    bool fork = pf_record_has(rec, "fork");
    enum pf_status st;
    struct pf_err why;

    if (m->model->config.encoder)
        return whole(rec, j->pos, err);
    if (!m->cache)
        return PF_OK;
    st = pf_kv_begin(m->cache, &j->kv, m->key.data ? m->key.data : "",
        m->key.len, fork ? m->fork.data : NULL, m->fork.len, j->pos, j->T,
        j->from, &why);
    if (!st || st == PF_AGAIN)
        return st;
    return seq ? pf_fail(err, st, "seq %.*s: %.300s",
        (int)(seq->len < 60 ? seq->len : 60), seq->text, why.msg)
        : pf_fail(err, st, "%s", why.msg);
}

enum pf_status
attend_model_check(struct attend_model *m, struct cli_item *item,
    struct pf_err *err)
{
    struct pf_record *rec = &item->rec;
    struct attend_job j = { 0 };
    const float *hidden;
    enum pf_status st;

    pf_buf_clear(&m->key);
    pf_buf_clear(&m->fork);
    if ((st = cli_check_model(rec, m->model, err))
        || (st = cli_hidden(rec, m->model->config.width, &hidden, &j.T, err))
        || (st = pf_record_pos(rec, &j.pos, err))
        || (st = pf_record_seq(rec, "seq", &m->key, err))
        || (st = pf_record_seq(rec, "fork", &m->fork, err))
        || (st = first_layer(m, rec, &j.from, err))
        || (m->attn && (st = pf_maps_check(rec, m->heads, m->n_heads, j.T,
            j.pos + j.T, err)))
        || (m->attn && (st = pf_hooks_check_heads(rec, m->heads, m->n_heads,
            err)))
        || (st = pf_hooks_check(m->hooks, rec, j.T, j.pos, j.from, &j.hooked,
            &item->bytes, err)))
        return st;
    j.hidden = (float *)hidden;
    if (!pf_grow(&m->jobs, &m->cap_jobs, m->n_jobs + 1, sizeof *m->jobs))
        return pf_fail_mem(err);
    st = begin(m, rec, &j, err);
    if (m->attn)
        item->bytes += sizeof(float) * m->n_layers * m->n_heads * j.T
            * (j.pos + j.T);
    if (!st)
        m->jobs[m->n_jobs++] = j;
    return st;
}

enum pf_status
attend_model_mark(struct attend_model *m, const struct pf_record *rec,
    struct pf_err *err)
{
    enum pf_status st;

    if (!m->cache || !pf_record_field(rec, "seq"))
        return PF_OK;
    pf_buf_clear(&m->key);
    if ((st = pf_record_seq(rec, "seq", &m->key, err))
        || (st = attend_kv_ends(&m->kv, m->key.data, m->key.len, err)))
        return st;
    return pf_kv_end(m->cache, m->key.data, m->key.len, err);
}

/* --- A batch --- */

/* What the record will hold: maps, taps, how far it has come. */
static enum pf_status
prepare(struct attend_model *m, struct pf_record *rec, struct attend_job *j,
    struct pf_rows *row, struct pf_err *err)
{
    const size_t *layers = m->layers + j->from;
    size_t n_layers = m->n_layers - j->from;
    /* A block whose MLP is yet to come has not been passed. */
    size_t passed = layers[n_layers - 1] + (m->parts & PF_PART_MLP ? 1 : 0);
    enum pf_status st = PF_OK;

    *row = (struct pf_rows){ j->hidden, j->T, j->pos, j->kv, j->from, NULL };
    if (m->attn)
        st = pf_maps_add(rec, layers, n_layers, m->heads, m->n_heads, j->T,
            j->pos + j->T, &row->attn, err);
    if (!st)
        st = pf_hooks_begin(m->hooks, rec, j->from, &j->hooked, err);
    return st ? st : pf_record_set_i64(rec, "layer", (int64_t)passed, err);
}

static enum pf_status
run(struct attend_model *m, struct cli_item **items, struct attend_job *jobs,
    struct pf_rows *rows, struct pf_hooked *hooked, size_t n, size_t *at,
    struct pf_err *err)
{
    enum pf_status st = PF_OK;
    size_t from = 0, to;

    for (size_t i = 0; i < n; i++) {
        *at = i;
        st = prepare(m, &items[i]->rec, &jobs[i], &rows[i], err);
        if (st)
            return st;
        hooked[i] = jobs[i].hooked;
    }
    /* Records that start at the same layer go together. */
    for (; !st && from < n; from = to) {
        size_t first = jobs[from].from;

        for (to = from + 1; to < n && jobs[to].from == first; to++)
            ;
        *at = from;
        st = pf_blocks(m->runner, m->cache, rows + from, to - from,
            m->layers + first, m->n_layers - first, m->heads, m->n_heads,
            m->parts, pf_hooks_probe(m->hooks, hooked + from), err);
    }
    return st;
}

enum pf_status
attend_model_step(struct attend_model *m, struct cli_item **items, size_t n,
    size_t *at, struct pf_err *err)
{
    struct pf_rows *rows = calloc(n, sizeof *rows);
    struct pf_hooked *hooked = calloc(n, sizeof *hooked);
    enum pf_status st = rows && hooked ? run(m, items, m->jobs + m->next,
        rows, hooked, n, at, err) : pf_fail_mem(err);

    free(rows);
    free(hooked);
    m->next += st ? *at + 1 : n;
    if (m->next == m->n_jobs)
        m->next = m->n_jobs = 0;
    if (m->cache)
        pf_kv_idle(m->cache);
    m->kv.lost |= st != PF_OK;
    return st;
}
