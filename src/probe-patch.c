/*
 * Patches: records that are kept, and for each sequence an index of their rows
 * by position, so that a token looks up what is for it and no more.  Which
 * activations a record has is a short table by site.
 */
#include "probe-private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/json.h>

/* One activation of a record. */
struct piece {
    size_t site;
    const float *v;
    size_t S; /* of a map: columns */
};

struct patch {
    struct pf_record rec;
    struct piece *pieces; /* by site */
    size_t n_pieces, cap_pieces;
    size_t rows;
    size_t pos, *positions; /* of the rows; NULL: pos, pos + 1, ... */
    size_t *heads, n_heads; /* NULL: all */
    size_t S;               /* of its maps; 0: it has none */
    struct pf_buf key;      /* of its sequence */
    bool used;              /* something of it has been put in place */
};

/* Rows by position, then in the order they came. */
struct pf_patches {
    struct entry {
        size_t pos, patch, row;
    } *e;
    size_t n, cap;
};

static void
patch_free(struct patch *p)
{
    pf_record_fini(&p->rec);
    pf_buf_fini(&p->key);
    free(p->pieces);
    free(p);
}

static void
index_free(void *p)
{
    struct pf_patches *x = p;

    if (x)
        free(x->e);
    free(x);
}

void
pf_patches_free(struct pf_hooks *h)
{
    for (size_t i = 0; i < h->n_patches; i++)
        patch_free(h->patches[i]);
    free(h->patches);
    index_free(h->all);
    pf_seqmap_fini(&h->by_seq, index_free);
}

const struct pf_patches *
pf_patches_of(const struct pf_hooks *h, const char *key, size_t len)
{
    return pf_seqmap_get(&h->by_seq, key, len);
}

/* --- Reading a record --- */

/* Integers of a field, a JSON list, appended as int64_t. */
static enum pf_status
listed(const struct pf_field *f, struct pf_buf *out)
{
    struct pf_json j = pf_json_at(f->text, f->len);
    enum pf_status st = pf_json_open(&j, '[', NULL);
    bool first = true;
    int64_t v;

    while (!st && !(st = pf_json_next(&j, ']', &first, NULL))) {
        st = pf_json_i64(&j, &v, NULL);
        pf_buf_add(out, &v, sizeof v);
    }
    return st == PF_END ? PF_OK : PF_EFORMAT;
}

/* The same of a tensor; one that was made of JSON may be of floats. */
static enum pf_status
held(const struct pf_tensor *t, struct pf_buf *out)
{
    size_t size = pf_dtype_size(t->dtype);

    if (t->ndim != 1)
        return PF_EFORMAT;
    for (size_t i = 0; i < t->shape[0]; i++) {
        const char *from = (const char *)t->data + i * size;
        int64_t v;
        double d;

        if (!pf_to_i64(&v, from, t->dtype, 1)) {
            if (!pf_to_f64(&d, from, t->dtype, 1) || !(fabs(d) < 1e15)
                || d != floor(d))
                return PF_EFORMAT;
            v = (int64_t)d;
        }
        pf_buf_add(out, &v, sizeof v);
    }
    return PF_OK;
}

/*
 * The numbers that a field or a tensor lists, none above `limit`, in memory of
 * the record; *n 0 and *v NULL where there is none of that name.
 */
static enum pf_status
numbers(struct pf_record *rec, const char *name, size_t limit, size_t **v,
    size_t *n, struct pf_err *err)
{
    const struct pf_field *f = pf_record_field(rec, name);
    const struct pf_tensor *t = pf_record_tensor(rec, name);
    struct pf_buf b = PF_BUF_INIT;
    enum pf_status st = f ? listed(f, &b) : t ? held(t, &b) : PF_END;
    int64_t x;

    *v = NULL;
    *n = 0;
    if (st == PF_END)
        return PF_OK;
    if (st)
        pf_fail(err, st, "%s: is no list of integers", name);
    else if (!(st = pf_buf_check(&b, err))) {
        *n = b.len / sizeof x;
        *v = pf_arena_alloc(&rec->mem, *n * sizeof **v);
        if (!*v)
            st = pf_fail_mem(err);
    }
    for (size_t i = 0; !st && i < *n; i++) {
        memcpy(&x, b.data + i * sizeof x, sizeof x);
        if (x < 0 || (uint64_t)x > limit)
            st = pf_fail(err, PF_ERANGE, "%s: %lld is not within 0 and %zu",
                name, (long long)x, limit);
        else
            (*v)[i] = (size_t)x;
    }
    pf_buf_fini(&b);
    return st;
}

/* A tensor of the shape that rows of that point have; how many rows. */
static enum pf_status
rows_of(const struct pf_hooks *h, const struct patch *p,
    const struct pf_tensor *t, enum pf_point point, size_t *rows,
    struct pf_err *err)
{
    const struct pf_config *c = h->config;
    enum kind kind = pf_point_kind(point);
    size_t heads = p->heads ? p->n_heads : c->heads;
    char is[128], want[64];
    bool fits = false;

    *rows = 0;
    if (pf_tensor_count(t) == 0)
        return PF_OK; /* in NDJSON, no rows have no width */
    switch (kind) {
    case ROW:
    case INNER:
        fits = t->ndim == 2
            && t->shape[1] == (kind == ROW ? c->width : c->inner);
        break;
    case BY_HEAD:
    case RESULT:
        fits = t->ndim == 3 && t->shape[1] == heads
            && t->shape[2] == (kind == RESULT ? c->width : c->head_dim);
        break;
    case MAP:
        fits = t->ndim == 3 && t->shape[0] == heads;
    }
    if (!fits) {
        pf_point_shape(want, sizeof want, c, point, heads);
        return pf_fail(err, PF_ESHAPE, "%s: has the shape %s; the model makes "
            "it %s%s", t->name, pf_shape_format(is, sizeof is, t->shape,
            t->ndim), want, p->heads && pf_point_by_head(point)
            ? " with the heads listed" : "");
    }
    *rows = t->shape[kind == MAP];
    return PF_OK;
}

/* NaN and infinities would go through everything; a score may be -inf. */
static enum pf_status
check_finite(const struct pf_tensor *t, enum pf_point point,
    struct pf_err *err)
{
    size_t n = pf_tensor_count(t), i = 0;
    const float *v = t->data;

    for (;;) {
        i += pf_first_nonfinite(v + i, n - i);
        if (i == n)
            return PF_OK;
        if (point != PF_SCORES || v[i] != -INFINITY)
            return pf_fail(err, PF_ERANGE, "%s: %s at element %zu", t->name,
                v[i] != v[i] ? "NaN" : "an infinity", i);
        i++;
    }
}

/* Adds one tensor of the record to its table. */
static enum pf_status
add_piece(const struct pf_hooks *h, struct patch *p, const char *name,
    size_t layer, enum pf_point point, struct pf_err *err)
{
    const struct pf_tensor *t;
    const float *v;
    enum pf_status st;
    size_t rows, S;
    char is[128];

    if (layer >= h->config->layers)
        return pf_fail(err, PF_ERANGE, "%s: the model's blocks are 0 to %zu",
            name, h->config->layers - 1);
    if ((st = pf_record_f32(&p->rec, name, &t, &v, err))
        || (st = rows_of(h, p, t, point, &rows, err))
        || (st = check_finite(t, point, err)))
        return st;
    pf_shape_format(is, sizeof is, t->shape, t->ndim);
    if (p->n_pieces && rows != p->rows)
        return pf_fail(err, PF_ESHAPE, "%s: has the shape %s, with rows of "
            "%zu positions; the tensors before it have %zu", name, is, rows,
            p->rows);
    p->rows = rows;
    S = rows && pf_point_kind(point) == MAP ? t->shape[2] : 0;
    if (S && p->S && S != p->S)
        return pf_fail(err, PF_ESHAPE, "%s: has the shape %s, but the maps "
            "before it have %zu columns", name, is, p->S);
    p->S = S ? S : p->S;
    if (!pf_grow(&p->pieces, &p->cap_pieces, p->n_pieces + 1,
            sizeof *p->pieces))
        return pf_fail_mem(err);
    p->pieces[p->n_pieces++] = (struct piece){ layer * PF_N_POINTS + point, v,
        S };
    return PF_OK;
}

static size_t
position(const struct patch *p, size_t row)
{
    return p->positions ? p->positions[row] : p->pos + row;
}

/* Are there positions for all rows, and in maps columns for all of them? */
static enum pf_status
check_positions(const struct pf_hooks *h, const struct patch *p,
    size_t n_positions, struct pf_err *err)
{
    if (p->positions && n_positions != p->rows)
        return pf_fail(err, PF_ESHAPE, "positions: lists %zu, but the tensors "
            "have %zu rows", n_positions, p->rows);
    for (size_t i = 0; i < p->rows && p->S; i++)
        if (h->config->encoder ? position(p, i) >= p->S
            : position(p, i) + 1 > p->S)
            return pf_fail(err, PF_ESHAPE, "maps of %zu columns have a row of "
                "position %zu, which sees %zu", p->S, position(p, i),
                position(p, i) + 1);
    return PF_OK;
}

static int
by_site(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;

    return (x->site > y->site) - (x->site < y->site);
}

static enum pf_status
read_patch(struct pf_hooks *h, struct patch *p, struct pf_err *err)
{
    struct pf_record *rec = &p->rec;
    enum pf_status st;
    size_t n_positions;

    if (pf_record_is_error(rec))
        return pf_fail(err, PF_EFORMAT, "an error record");
    if ((st = pf_record_seq(rec, "seq", &p->key, err))
        || (st = pf_record_pos(rec, &p->pos, err))
        || (st = numbers(rec, "positions", INT32_MAX, &p->positions,
                &n_positions, err))
        || (st = numbers(rec, "heads", h->config->heads - 1,
                &p->heads, &p->n_heads, err)))
        return st;
    for (size_t i = 0; i < rec->n_tensors && !st; i++) {
        const char *name = rec->tensors[i].name;
        enum pf_point point;
        size_t layer;

        if (pf_point_find(name, &layer, &point))
            st = add_piece(h, p, name, layer, point, err);
        else if (strncmp(name, "blocks.", 7) == 0)
            st = pf_fail(err, PF_ERANGE, "%.60s: is no activation that can be "
                "replaced", name);
    }
    if (st)
        return st;
    if (p->n_pieces)
        qsort(p->pieces, p->n_pieces, sizeof *p->pieces, by_site);
    return check_positions(h, p, n_positions, err);
}

enum pf_status
pf_hooks_patch(struct pf_hooks *h, struct pf_record *rec, struct pf_err *err)
{
    struct patch *p = calloc(1, sizeof *p);
    enum pf_status st;

    if (!p)
        return pf_fail_mem(err);
    p->rec = *rec;
    *rec = (struct pf_record)PF_RECORD_INIT;
    st = read_patch(h, p, err);
    if (!st && p->n_pieces && !pf_grow(&h->patches, &h->cap_patches,
            h->n_patches + 1, sizeof *h->patches))
        st = pf_fail_mem(err);
    if (st || !p->n_pieces) {
        patch_free(p);
        return st;
    }
    h->patches[h->n_patches++] = p;
    for (size_t i = 0; i < p->n_pieces; i++)
        if (h->runs[p->pieces[i].site])
            h->wanted[p->pieces[i].site] = h->any = true;
    return PF_OK;
}

/* --- The index --- */

/* The index of a sequence, or of all; made if it is not there. */
static struct pf_patches *
index_of(struct pf_hooks *h, const struct pf_buf *key)
{
    struct pf_patches *x = key->len ? pf_seqmap_get(&h->by_seq, key->data,
        key->len) : h->all;

    if (x)
        return x;
    x = calloc(1, sizeof *x);
    if (x && !key->len) {
        h->all = x;
    } else if (x && pf_seqmap_put(&h->by_seq, key->data, key->len, x, NULL)) {
        free(x);
        return NULL;
    }
    return x;
}

static enum pf_status
add_rows(struct pf_hooks *h, size_t patch, struct pf_err *err)
{
    const struct patch *p = h->patches[patch];
    struct pf_patches *x = index_of(h, &p->key);

    if (!x || !pf_grow(&x->e, &x->cap, x->n + p->rows, sizeof *x->e))
        return pf_fail_mem(err);
    for (size_t i = 0; i < p->rows; i++)
        x->e[x->n++] = (struct entry){ position(p, i), patch, i };
    return PF_OK;
}

static int
by_position(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->pos != y->pos)
        return x->pos < y->pos ? -1 : 1;
    if (x->patch != y->patch)
        return x->patch < y->patch ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

enum pf_status
pf_hooks_patch_end(struct pf_hooks *h, struct pf_err *err)
{
    size_t first = h->first_of_file, i = 0;
    struct pf_patches *x;
    enum pf_status st;

    if (first == h->n_patches)
        return pf_fail(err, PF_EFORMAT, "no record has activations, such as "
            "blocks.0.resid_pre (attend --tap gives them)");
    if (h->n_patches - first == 1)
        pf_buf_clear(&h->patches[first]->key);
    for (size_t k = first; k < h->n_patches; k++)
        if ((st = add_rows(h, k, err)))
            return st;
    h->first_of_file = h->n_patches;
    if (h->all && h->all->n)
        qsort(h->all->e, h->all->n, sizeof *h->all->e, by_position);
    while ((x = pf_seqmap_each(&h->by_seq, &i)))
        if (x->n)
            qsort(x->e, x->n, sizeof *x->e, by_position);
    return PF_OK;
}

/* The first entry of that position or a later one. */
static size_t
find(const struct pf_patches *x, size_t pos)
{
    size_t lo = 0, hi = x->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (x->e[mid].pos < pos)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* --- In a run --- */

enum pf_status
pf_patches_check(const struct pf_hooks *h, const struct pf_patches *x,
    size_t T, struct pf_err *err)
{
    for (size_t i = 0; i < x->n && x->e[i].pos < T; i++) {
        const struct patch *p = h->patches[x->e[i].patch];

        if (p->S && p->S != T)
            return pf_fail(err, PF_ESHAPE, "the patch has maps of the shape "
                "[H, %zu, %zu]; these rows make them [H, %zu, %zu]", p->rows,
                p->S, T, T);
    }
    return PF_OK;
}

static bool
replace(float *to, const float *from, size_t n)
{
    if (memcmp(to, from, n * sizeof *to) == 0)
        return false;
    memcpy(to, from, n * sizeof *to);
    return true;
}

/* One row; of a map, that of one head. */
static bool
replace_row(const struct pf_hooks *h, const struct patch *p,
    const struct piece *piece, enum kind kind, size_t row, size_t head,
    size_t pos, float *to, size_t width)
{
    size_t H = h->config->heads, n = p->heads ? p->n_heads : H;
    size_t unit = width / H;
    bool changed = false;

    if (kind == ROW || kind == INNER)
        return replace(to, piece->v + row * width, width);
    for (size_t i = 0; i < n; i++) {
        size_t which = p->heads ? p->heads[i] : i;

        if (kind != MAP)
            changed |= replace(to + which * unit,
                piece->v + (row * n + i) * unit, unit);
        else if (which == head)
            changed |= replace(to, piece->v + (i * p->rows + row) * piece->S,
                h->config->encoder ? width : pos + 1);
    }
    return changed;
}

bool
pf_patches_apply(const struct pf_hooks *h, const struct pf_patches *x,
    size_t layer, enum pf_point point, size_t head, size_t pos, size_t n,
    float *data, size_t width, size_t stride)
{
    const struct piece key = { .site = layer * PF_N_POINTS + point };
    bool changed = false;

    for (size_t i = find(x, pos); i < x->n && x->e[i].pos - pos < n; i++) {
        const struct entry *e = &x->e[i];
        struct patch *p = h->patches[e->patch];
        const struct piece *piece = bsearch(&key, p->pieces, p->n_pieces,
            sizeof key, by_site);

        if (!piece)
            continue;
        p->used = true;
        changed |= replace_row(h, p, piece, pf_point_kind(point), e->row,
            head, e->pos, data + (e->pos - pos) * stride, width);
    }
    return changed;
}

size_t
pf_hooks_unused(const struct pf_hooks *h)
{
    size_t n = 0;

    for (size_t i = 0; i < h->n_patches; i++)
        n += !h->patches[i]->used;
    return n;
}
