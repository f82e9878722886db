/* attn-view: a sequence that is complete, as what is drawn. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/tensor.h>
#include <pipeformer/width.h>

#include "attn-view-data.h"

enum { TITLE_MAX = 72 }; /* columns */

void
sheet_fini(struct sheet *s)
{
    free(s->numbers);
    free(s->map);
    free(s->layers);
    free(s->heads);
    for (int i = 0; i < 2; i++) {
        free(s->part[i]);
        free(s->label[i]);
        pf_buf_fini(&s->text[i]);
    }
    pf_buf_fini(&s->title);
    pf_buf_fini(&s->seq);
}

static bool
ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);

    return n >= k && strcmp(s + n - k, end) == 0;
}

/* --- Numbers --- */

/* All parts as one: what a row cannot see yet is no weight. */
static enum pf_status
join_parts(struct sheet *s, struct view_data *d, size_t n, const char *field,
    struct pf_err *err)
{
    float absent = ends_with(field, "attn_scores") ? -INFINITY : 0;
    size_t T = s->v.T, S = s->v.S, at = 0, bytes;
    enum pf_status st = pf_shape_size((size_t[]){ n, T, S }, 3, PF_F32, NULL,
        &bytes, err);

    if (st)
        return st;
    if (d->first && !d->first->next) {
        s->numbers = d->first->v;
        d->first->v = NULL;
        return PF_OK;
    }
    s->numbers = malloc(bytes + 1);
    if (!s->numbers)
        return pf_fail_mem(err);
    for (const struct view_part *p = d->first; p; at += p->T, p = p->next)
        for (size_t k = 0; k < n; k++)
            for (size_t t = 0; t < p->T; t++) {
                float *row = s->numbers + (k * T + at + t) * S;

                memcpy(row, p->v + (k * p->T + t) * p->S,
                    p->S * sizeof *row);
                for (size_t i = p->S; i < S; i++)
                    row[i] = absent;
            }
    return PF_OK;
}

static enum pf_status
point_maps(struct sheet *s, struct pf_err *err)
{
    size_t n = s->v.L * s->v.H;

    free(s->map);
    s->map = calloc(n + 1, sizeof *s->map);
    if (!s->map)
        return pf_fail_mem(err);
    for (size_t k = 0; k < n; k++)
        s->map[k] = s->numbers + k * s->v.T * s->v.S;
    s->v.map = s->map;
    return PF_OK;
}

/* Are they weights: from 0 to 1, rows of a sum of at most 1? */
static bool
all_weights(const struct view *v)
{
    for (size_t r = 0; r < v->L * v->H * v->T; r++) {
        const float *row = v->map[0] + r * v->S;
        double sum = 0;

        for (size_t i = 0; i < v->S; i++) {
            if (!(row[i] >= 0 && row[i] <= 1))
                return false;
            sum += (double)row[i];
        }
        if (sum > 1.001)
            return false;
    }
    return true;
}

/* Colours go from the least number to the greatest, those of weights from 0. */
static void
set_range(struct view *v)
{
    size_t n = v->L * v->H * v->T * v->S;
    const float *x = n ? v->map[0] : NULL;
    double lo = INFINITY, hi = -INFINITY;

    for (size_t i = 0; i < n; i++)
        if (isfinite(x[i])) {
            lo = (double)x[i] < lo ? (double)x[i] : lo;
            hi = (double)x[i] > hi ? (double)x[i] : hi;
        }
    if (lo > hi)
        lo = hi = 0;
    v->lo = v->weights ? 0 : lo;
    v->hi = v->weights && hi <= 0 ? 1 : hi;
}

/* --- Labels --- */

static enum pf_status
set_labels(struct sheet *s, int axis, const struct names *names,
    struct pf_err *err)
{
    struct view_axis *a = axis ? &s->v.key : &s->v.query;
    struct view_label *l = calloc(names->n + 1, sizeof *l);
    struct pf_buf *b = &s->text[axis];
    const char *name, *p;
    enum pf_status st;
    size_t len;

    s->label[axis] = a->label = l;
    if (!l)
        return pf_fail_mem(err);
    for (size_t i = 0; i < names->n; i++) {
        name = names_get(names, i, &len);
        l[i].len = b->len;
        pf_readable(b, name, len);
        if (!len)
            pf_buf_adds(b, "\u2205");
        l[i].len = b->len - l[i].len;
        l[i].raw_len = len;
        pf_buf_add(b, name, len);
    }
    st = pf_buf_check(b, err);
    p = b->data;
    for (size_t i = 0; i < names->n && !st; i++) {
        l[i].text = p ? p : "";
        l[i].raw = l[i].text + l[i].len;
        p = p ? l[i].raw + l[i].raw_len : p;
    }
    return st;
}

/* The sentence that each row is of, where there are two. */
static enum pf_status
set_parts(struct sheet *s, const struct view_data *d, struct pf_err *err)
{
    size_t n = d->segments.len / sizeof(int);

    for (int axis = 0; axis < 2 && d->pair; axis++) {
        struct view_axis *a = axis ? &s->v.key : &s->v.query;

        if ((axis && !s->v.same) || a->n != n)
            continue;
        a->part = s->part[axis] = malloc(d->segments.len + 1);
        if (!a->part)
            return pf_fail_mem(err);
        memcpy(s->part[axis], d->segments.data, d->segments.len);
    }
    return PF_OK;
}

/* --title, else the beginning of the text, else the tokens in a row. */
static enum pf_status
set_title(struct sheet *s, const struct view_data *d, const char *title,
    struct pf_err *err)
{
    struct pf_buf b = PF_BUF_INIT;
    bool spaced = false, skip;
    const char *name;
    size_t len, n;

    for (size_t i = 0; i < d->rows.n && !spaced; i++) {
        name = names_get(&d->rows, i, &len);
        spaced = len && name[0] == ' ';
    }
    if (title)
        pf_buf_adds(&b, title);
    else if (d->text.len)
        pf_buf_add(&b, d->text.data, d->text.len);
    for (size_t i = 0; !title && !d->text.len && i < d->rows.n
        && b.len < 4 * TITLE_MAX; i++) {
        name = names_get(&d->rows, i, &len);
        if (len >= 2 && memcmp(name, "##", 2) == 0) {
            name += 2;
            len -= 2;
        } else if (i && !spaced) {
            pf_buf_addc(&b, ' ');
        }
        pf_buf_add(&b, name, len);
    }
    if (!b.len)
        pf_buf_adds(&b, s->v.field);
    skip = !title && b.len > 1 && b.data[0] == ' ';
    if (!b.failed)
        pf_readable(&s->title, b.data + skip, b.len - skip);
    pf_buf_fini(&b);
    if (!title && pf_width(s->title.data, s->title.len) > TITLE_MAX) {
        n = pf_width_cut(s->title.data, s->title.len, TITLE_MAX - 1);
        s->title.len = n;
        pf_buf_adds(&s->title, "\u2026");
    }
    pf_buf_addc(&s->title, '\0');
    s->v.title = s->title.data;
    return pf_buf_check(&s->title, err);
}

/* --- All of it --- */

static enum pf_status
copy_numbers(size_t **to, const struct axis *a, struct pf_err *err)
{
    if (!a->n)
        return PF_OK;
    *to = malloc(a->n * sizeof **to);
    if (!*to)
        return pf_fail_mem(err);
    memcpy(*to, a->number, a->n * sizeof **to);
    return PF_OK;
}

/* Which names the axes have, and what the axes are called. */
static void
name_axes(struct view *v, const struct view_data *d,
    const struct names *names[2])
{
    enum field_kind kind = field_kind(v->field);
    bool keys = kind == FIELD_WEIGHTS || kind == FIELD_KEYS;

    v->same = !d->vector && kind != FIELD_UNITS && !d->elsewhere
        && v->S == v->T;
    if (d->rows.n && d->rows.n == (d->vector ? v->S : v->T))
        names[d->vector] = &d->rows;
    if (v->same)
        names[1] = names[0];
    else if (d->keys.n)
        names[1] = &d->keys;
    v->query.title = keys ? "query" : kind == FIELD_UNITS ? "position" : "";
    v->key.title = keys ? "key" : kind == FIELD_UNITS ? "component" : "";
}

static enum pf_status
set_axes(struct sheet *s, const struct view_data *d,
    const struct names *names[2], bool words, struct pf_err *err)
{
    struct names word[2] = { { .n = 0 }, { .n = 0 } };
    enum pf_status st;

    s->v.query.n = s->v.T;
    s->v.key.n = s->v.S;
    st = set_parts(s, d, err);
    if (!st && words) {
        st = sheet_words(s, names, word, err);
        for (int i = 0; i < 2; i++)
            names[i] = names[i] ? &word[i] : NULL;
    }
    s->v.query.n = s->v.T;
    s->v.key.n = s->v.S;
    for (int i = 0; i < 2 && !st; i++)
        if (names[i])
            st = set_labels(s, i, names[i], err);
    names_fini(&word[0]);
    names_fini(&word[1]);
    return st;
}

enum pf_status
sheet_make(struct sheet *s, struct gathered *g,
    const struct view_choice *choice, struct pf_err *err)
{
    const struct names *names[2] = { NULL, NULL };
    struct view_data *d = g->data;
    struct view *v = &s->v;
    enum pf_status st;

    v->field = choice->field ? choice->field : "attn";
    v->L = g->layers.n ? g->layers.n : 1;
    v->H = g->heads.n ? g->heads.n : g->n_maps / v->L;
    if (v->L * v->H != g->n_maps)
        v->L = v->H = 0;
    v->T = g->rows;
    v->S = d->S;
    if ((st = copy_numbers(&s->layers, &g->layers, err))
        || (st = copy_numbers(&s->heads, &g->heads, err))
        || (st = join_parts(s, d, g->n_maps, v->field, err))
        || (st = point_maps(s, err)))
        return st;
    v->layers = s->layers;
    v->heads = s->heads;
    v->weights = field_kind(v->field) == FIELD_WEIGHTS && all_weights(v);
    if (choice->words && !v->weights)
        return pf_fail(err, PF_ERANGE, "%.100s: --words is for attention "
            "weights, and these are none", v->field);
    name_axes(v, d, names);
    if ((st = set_axes(s, d, names, choice->words, err))
        || (st = point_maps(s, err))
        || (st = set_title(s, d, choice->title, err)))
        return st;
    set_range(v);
    if (choice->has_range) {
        v->lo = choice->lo;
        v->hi = choice->hi;
    }
    pf_buf_add(&s->seq, d->seq.data, d->seq.len);
    v->seq = s->seq.data;
    v->seq_len = s->seq.len;
    return pf_buf_check(&s->seq, err);
}
