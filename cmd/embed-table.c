#include "embed-table.h"

/* The tensor that is named, or the only matrix of the file. */
static const struct pf_tensor *
choose(const struct embed_table *t)
{
    const struct pf_tensor *found = NULL;

    if (t->name) {
        found = pf_record_tensor(&t->rec, t->name);
        if (!found)
            cli_die("%s: no tensor %s", t->file, t->name);
        return found;
    }
    for (size_t i = 0; i < t->rec.n_tensors; i++) {
        if (t->rec.tensors[i].ndim != 2)
            continue;
        if (found)
            cli_die("%s: holds several matrices, %s and %s among them; "
                "--tensor names one", t->file, found->name,
                t->rec.tensors[i].name);
        found = &t->rec.tensors[i];
    }
    if (!found)
        cli_die("%s: holds no matrix [V, C]", t->file);
    return found;
}

void
embed_table_open(struct embed_table *t)
{
    struct pf_err err;
    char shape[128];
    float f;

    if (pf_record_read_file(&t->rec, t->file, "data", &err))
        cli_die("%s", err.msg);
    t->rows = choose(t);
    if (t->rows->ndim != 2 || t->rows->shape[0] == 0
        || t->rows->shape[1] == 0)
        cli_die("%s: %s has the shape %s, not [V, C]", t->file, t->rows->name,
            pf_shape_format(shape, sizeof shape, t->rows->shape,
                t->rows->ndim));
    if (!pf_to_f32(&f, t->rows->data, t->rows->dtype, 1))
        cli_die("%s: %s is of type %s, which has no numbers to compute with",
            t->file, t->rows->name, pf_dtype_name(t->rows->dtype));
    cli_note("%s: table %s, %zu rows of %zu", t->file, t->rows->name,
        t->rows->shape[0], t->rows->shape[1]);
}

enum pf_status
embed_table_rows(const struct embed_table *t, struct pf_record *rec,
    const uint32_t *ids, size_t T, struct pf_err *err)
{
    size_t V = t->rows->shape[0], C = t->rows->shape[1];
    size_t bytes = C * pf_dtype_size(t->rows->dtype);
    struct pf_tensor *hidden;

    hidden = pf_record_put(rec, "hidden", PF_F32, 2, (size_t[]){ T, C }, NULL);
    if (!hidden)
        return pf_fail_mem(err);
    for (size_t i = 0; i < T; i++) {
        if (ids[i] >= V)
            return pf_fail(err, PF_ERANGE, "ids: %u at %zu, but the table has "
                "%zu rows", ids[i], i, V);
        pf_to_f32((float *)hidden->data + i * C,
            (const char *)t->rows->data + ids[i] * bytes, t->rows->dtype, C);
    }
    pf_record_drop(rec, "model");
    return PF_OK;
}
