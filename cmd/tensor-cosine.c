#include "tensor-cosine.h"

#include <stdlib.h>
#include <string.h>

#include <pipeformer/tensor.h>

/* Rows against rows of one matrix. */
static enum pf_status
compare_rows(struct cosines *c, struct pf_record *rec, const float *v,
    const size_t *shape, struct pf_err *err)
{
    struct pf_tensor *out = pf_record_put(rec, "cosine", PF_F32, 2,
        (size_t[]){ shape[0], shape[0] }, NULL);
    enum pf_status st = out ? PF_OK : pf_fail_mem(err);

    pf_rows_clear(&c->rows);
    for (size_t i = 0; i < shape[0] && !st; i++)
        st = pf_rows_add(&c->rows, v + i * shape[1], shape[1], err);
    for (size_t i = 0; i < shape[0] && !st; i++)
        pf_rows_cosines(&c->rows, i, (float *)out->data + i * shape[0]);
    return st;
}

/* Keeps a record until the end, when all vectors are known. */
static bool
keep(struct cosines *c, struct pf_record *rec)
{
    if (!pf_grow(&c->held, &c->cap_held, c->n_held + 1, sizeof *c->held))
        return false;
    c->held[c->n_held++] = *rec;
    *rec = (struct pf_record)PF_RECORD_INIT;
    return true;
}

static enum pf_status
hold(struct cosines *c, struct cli_item *item, struct pf_err *err)
{
    item->skip = true;
    return keep(c, &item->rec) ? PF_OK : pf_fail_mem(err);
}

bool
cosines_hold(struct cosines *c, struct pf_record *rec)
{
    return c->n_held && keep(c, rec);
}

enum pf_status
cosines_add(struct cosines *c, struct cli_item *item, struct pf_err *err)
{
    struct pf_record *rec = &item->rec;
    const struct pf_tensor *x = pf_record_tensor(rec, c->name);
    char shape[128];
    size_t n, dims[PF_MAX_DIMS];
    enum pf_status st;
    struct pf_err why;
    bool matrix;
    float *v;

    if (pf_record_is_mark(rec))
        return c->n_held ? hold(c, item, err) : PF_OK;
    if (!x)
        return pf_fail(err, PF_ESHAPE, "%s: the record has no such tensor",
            c->name);
    if (x->ndim != 1 && x->ndim != 2)
        return pf_fail(err, PF_ESHAPE, "%s: has the shape %s, not [C] or "
            "[T, C]; -s takes a part of it", c->name,
            pf_shape_format(shape, sizeof shape, x->shape, x->ndim));
    matrix = x->ndim == 2 || x->shape[0] == 0; /* [] has lost its C */
    if (c->begun && c->matrices != matrix)
        return pf_fail(err, PF_ESHAPE, "%s: has the shape %s, those before "
            "were %s", c->name, pf_shape_format(shape, sizeof shape,
            x->shape, x->ndim), c->matrices ? "matrices" : "vectors");
    c->begun = true;
    c->matrices = matrix;
    n = pf_tensor_count(x);
    v = n > SIZE_MAX / 8 ? NULL : pf_arena_alloc(&rec->mem, n * sizeof *v);
    if (!v)
        return pf_fail_mem(err);
    if (!pf_to_f32(v, x->data, x->dtype, n))
        return pf_fail(err, PF_EFORMAT, "%s: no arithmetic on type %s",
            c->name, pf_dtype_name(x->dtype));
    memcpy(dims, x->shape, sizeof dims);
    cli_drop(rec, c->name);
    if (c->matrices)
        return compare_rows(c, rec, v, dims, err);
    st = pf_rows_add(&c->rows, v, n, &why);
    return st ? pf_fail(err, st, "%s: %.300s", c->name, why.msg)
        : hold(c, item, err);
}

enum pf_status
cosines_end(struct cosines *c, struct pf_err *err)
{
    bool whole = !cli_status() || cli.keep_going;
    enum pf_status st = PF_OK;
    struct pf_tensor *out;
    size_t row = 0;

    for (size_t i = 0; i < c->n_held; i++) {
        struct pf_record *rec = &c->held[i];

        if (!st && whole && !pf_record_is_mark(rec)
            && !pf_record_is_error(rec)) {
            out = pf_record_put(rec, "cosine", PF_F32, 1, &c->rows.n, NULL);
            if (out)
                pf_rows_cosines(&c->rows, row++, (float *)out->data);
            else
                st = pf_fail_mem(err);
        }
        if (!st && whole)
            st = cli_emit(rec, err);
        pf_record_fini(rec);
    }
    return st;
}

void
cosines_fini(struct cosines *c)
{
    pf_rows_fini(&c->rows);
    free(c->held);
}
