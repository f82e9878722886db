/* The attention maps that a record holds, and what they are called. */
#include "maps.h"

#include <stdlib.h>
#include <string.h>

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
choose(const struct axis *has, const struct axis *wanted, const char *name,
    const char *what, size_t **index, size_t *n, struct pf_err *err)
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
            return pf_fail(err, PF_ESHAPE, "%.100s: holds no %s %zu", name,
                what, wanted->number[i]);
        (*index)[i] = k;
    }
    return PF_OK;
}

/* The wanted ones of the maps at v; `inner` where rows are outside of heads. */
static enum pf_status
pick(struct maps *m, const float *v, bool inner, const struct axis *layers,
    const struct axis *heads, struct pf_err *err)
{
    size_t map = inner ? m->S : m->T * m->S;
    const char *name = m->tensor->name;
    enum pf_status st;

    m->stride = inner ? m->H * m->S : m->S;
    if ((st = choose(&m->layers, layers, name, "layer", &m->l, &m->n_l, err))
        || (st = choose(&m->heads, heads, name, "head", &m->h, &m->n_h, err)))
        return st;
    if (m->n_l && m->n_h > MAPS_MAX / m->n_l)
        return pf_fail(err, PF_ESHAPE, "%s: holds %zu times %zu maps, at most "
            "%d are taken", name, m->n_l, m->n_h, MAPS_MAX);
    m->map = calloc(m->n_l * m->n_h + 1, sizeof *m->map);
    if (!m->map)
        return pf_fail_mem(err);
    for (size_t l = 0; l < m->n_l; l++)
        for (size_t h = 0; h < m->n_h; h++)
            m->map[l * m->n_h + h] = v + m->l[l] * m->H * m->T * m->S
                + m->h[h] * map;
    return PF_OK;
}

enum pf_status
maps_read(struct maps *m, struct pf_record *rec, const struct axis *layers,
    const struct axis *heads, struct pf_err *err)
{
    const struct pf_tensor *t;
    const float *v;
    enum pf_status st = pf_record_f32(rec, "attn", &t, &v, err);
    char shape[128];

    if (!st)
        st = pf_record_ids(rec, "ids", &m->ids, &m->n_ids, err);
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
    m->tensor = t;
    m->has_layers = t->ndim == 4;
    m->has_heads = t->ndim >= 3;
    m->L = t->ndim == 4 ? t->shape[0] : 1;
    m->H = t->ndim >= 3 ? t->shape[t->ndim - 3] : 1;
    m->T = t->shape[t->ndim - 2];
    m->S = t->shape[t->ndim - 1];
    if (m->ids && m->n_ids != m->T)
        return pf_fail(err, PF_ESHAPE, "ids: %zu of them for the %zu rows of "
            "attn", m->n_ids, m->T);
    if ((st = read_axis(rec, "layers", m->L, &m->layers, err))
        || (st = read_axis(rec, "heads", m->H, &m->heads, err)))
        return st;
    return pick(m, v, false, layers, heads, err);
}

/* The numbers of any tensor, as float32. */
static enum pf_status
read_numbers(struct pf_record *rec, const char *name,
    const struct pf_tensor **t, const float **v, struct pf_err *err)
{
    struct pf_tensor *x = pf_record_tensor(rec, name);
    size_t n = x ? pf_tensor_count(x) : 0;
    float *copy;

    if (!x && !pf_record_field(rec, name))
        return pf_fail(err, PF_ESHAPE, "the record has no %.100s", name);
    if (!x || x->dtype == PF_F32)
        return pf_record_f32(rec, name, t, v, err);
    copy = n > SIZE_MAX / 8 ? NULL
        : pf_arena_alloc(&rec->mem, n * sizeof *copy);
    if (!copy)
        return pf_fail_mem(err);
    if (!pf_to_f32(copy, x->data, x->dtype, n))
        return pf_fail(err, PF_EFORMAT, "%.100s: is of type %s, which has no "
            "reading here", name, pf_dtype_name(x->dtype));
    *t = x;
    *v = copy;
    return PF_OK;
}

/* Activations of [T,H,D], not [H,T,S]. */
static bool
heads_inside(const char *name)
{
    static const char *const kinds[] = { ".q", ".k", ".v", ".z", ".result" };
    const char *dot = pf_activation_name(name) ? strrchr(name, '.') : NULL;

    for (size_t i = 0; dot && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(dot, kinds[i]) == 0)
            return true;
    return false;
}

/* Layers and heads of a field: as many numbers as the lists have, else from 0;
 * the one layer of an activation is in its name. */
static enum pf_status
field_axes(struct maps *m, const struct pf_record *rec, struct pf_err *err)
{
    const char *name = m->tensor->name;
    const struct pf_record none = PF_RECORD_INIT;
    const struct pf_record *from = strcmp(name, "attn") == 0
        || pf_activation_name(name) ? rec : &none;
    unsigned long block = 0;
    enum pf_status st = read_axis(m->has_layers ? from : &none, "layers",
        m->L, &m->layers, err);

    if (!st)
        st = read_axis(m->has_heads ? from : &none, "heads", m->H, &m->heads,
            err);
    if (st || m->has_layers || strncmp(name, "blocks.", 7) != 0)
        return st;
    for (const char *p = name + 7; *p >= '0' && *p <= '9' && block < NUMBER_MAX;
        p++)
        block = 10 * block + (unsigned long)(*p - '0');
    m->has_layers = block < NUMBER_MAX;
    m->layers.number[0] = m->has_layers ? block : 0;
    return PF_OK;
}

enum pf_status
maps_read_field(struct maps *m, struct pf_record *rec, const char *name,
    const struct axis *layers, const struct axis *heads, struct pf_err *err)
{
    const struct pf_tensor *t;
    const float *v;
    enum pf_status st = read_numbers(rec, name, &t, &v, err);
    char shape[128];
    bool inner;

    if (!st)
        st = pf_record_ids(rec, "ids", &m->ids, &m->n_ids, err);
    if (st)
        return st;
    if (t->ndim < 1 || t->ndim > 4)
        return pf_fail(err, PF_ESHAPE, "%.100s: has the shape %s, and there "
            "are pictures of one to four axes", name,
            pf_shape_format(shape, sizeof shape, t->shape, t->ndim));
    inner = t->ndim == 3 && heads_inside(name);
    m->tensor = t;
    m->has_layers = t->ndim == 4;
    m->has_heads = t->ndim >= 3;
    m->L = t->ndim == 4 ? t->shape[0] : 1;
    m->H = t->ndim >= 3 ? t->shape[inner ? 1 : t->ndim - 3] : 1;
    m->T = t->ndim == 1 ? 1 : t->shape[inner ? 0 : t->ndim - 2];
    m->S = t->shape[t->ndim - 1];
    st = field_axes(m, rec, err);
    return st ? st : pick(m, v, inner, layers, heads, err);
}
