/* The attention maps that a record holds, and what they are called. */
#include "attn-stat-maps.h"

#include <stdlib.h>

#include <pipeformer/json.h>

enum { MAPS_MAX = 1 << 20 };

void
maps_fini(struct maps *m)
{
    free(m->layers.number);
    free(m->heads.number);
    free(m->l);
    free(m->h);
    free(m->map);
}

/* The numbers of an axis of `n`: a field lists them, else 0, 1, ... */
static enum pf_status
read_axis(const struct pf_record *rec, const char *name, size_t n,
    struct axis *a, struct pf_err *err)
{
    const struct pf_field *f = pf_record_field(rec, name);
    struct pf_json j = pf_json_at(f ? f->text : "[]", f ? f->len : 2);
    enum pf_status st = pf_json_open(&j, '[', err);
    bool first = true;
    int64_t v;

    a->number = calloc(n + 1, sizeof *a->number);
    if (!a->number)
        return pf_fail_mem(err);
    for (; a->n < n && !f; a->n++)
        a->number[a->n] = a->n;
    while (f && !st && !(st = pf_json_next(&j, ']', &first, err))) {
        st = pf_json_i64(&j, &v, err);
        if (st || a->n == n || v < 0 || v >= NUMBER_MAX)
            break;
        a->number[a->n++] = (size_t)v;
    }
    if (f && (st != PF_END || a->n != n))
        return pf_fail(err, PF_EFORMAT, "%s: does not say which %zu ones attn "
            "holds", name, n);
    return PF_OK;
}

/* Where the wanted ones are among those of the record. */
static enum pf_status
choose(const struct axis *has, const struct axis *wanted, const char *what,
    size_t **index, size_t *n, struct pf_err *err)
{
    size_t k;

    *n = wanted->n ? wanted->n : has->n;
    *index = calloc(*n + 1, sizeof **index);
    if (!*index)
        return pf_fail_mem(err);
    for (size_t i = 0; i < *n; i++) {
        for (k = wanted->n ? 0 : i;
            k < has->n && wanted->n && has->number[k] != wanted->number[i];
            k++)
            ;
        if (k == has->n)
            return pf_fail(err, PF_ESHAPE, "attn: holds no %s %zu", what,
                wanted->number[i]);
        (*index)[i] = k;
    }
    return PF_OK;
}

enum pf_status
maps_read(struct maps *m, struct pf_record *rec, const struct axis *layers,
    const struct axis *heads, struct pf_err *err)
{
    const struct pf_tensor *t;
    const float *v;
    enum pf_status st = pf_record_f32(rec, "attn", &t, &v, err);
    size_t n_ids;
    char shape[128];

    if (!st)
        st = pf_record_ids(rec, "ids", &m->ids, &n_ids, err);
    if (st)
        return st;
    if (!t)
        return pf_fail(err, PF_ESHAPE, "the record has no attn (attend -a "
            "gives it)");
    if (t->ndim < 2 || t->ndim > 4
        || (t->ndim < 4 && pf_record_has(rec, "layers")))
        return pf_fail(err, PF_ESHAPE, "attn: has the shape %s, not %s",
            pf_shape_format(shape, sizeof shape, t->shape, t->ndim),
            pf_record_has(rec, "layers") ? "[L, H, T, S]" : "[..., T, S]");
    m->attn = t;
    m->L = t->ndim == 4 ? t->shape[0] : 1;
    m->H = t->ndim >= 3 ? t->shape[t->ndim - 3] : 1;
    m->T = t->shape[t->ndim - 2];
    m->S = t->shape[t->ndim - 1];
    if (m->ids && n_ids != m->T)
        return pf_fail(err, PF_ESHAPE, "ids: %zu of them for the %zu rows of "
            "attn", n_ids, m->T);
    if ((st = read_axis(rec, "layers", m->L, &m->layers, err))
        || (st = read_axis(rec, "heads", m->H, &m->heads, err))
        || (st = choose(&m->layers, layers, "layer", &m->l, &m->n_l, err))
        || (st = choose(&m->heads, heads, "head", &m->h, &m->n_h, err)))
        return st;
    if (m->n_l * m->n_h > MAPS_MAX)
        return pf_fail(err, PF_ESHAPE, "attn: holds %zu maps, at most %d are "
            "taken", m->n_l * m->n_h, MAPS_MAX);
    m->map = calloc(m->n_l * m->n_h + 1, sizeof *m->map);
    if (!m->map)
        return pf_fail_mem(err);
    for (size_t l = 0; l < m->n_l; l++)
        for (size_t h = 0; h < m->n_h; h++)
            m->map[l * m->n_h + h] = v
                + (m->l[l] * m->H + m->h[h]) * m->T * m->S;
    return PF_OK;
}
