/* tensor --diff: the tensors of two records, compared. */
#include "tensor-diff.h"

#include <stdio.h>

#include <pipeformer/compare.h>

void
differences_add(struct differences *d, struct pf_buf *b,
    const struct cli_item *item, const char *name, const char *what)
{
    d->any = true;
    pf_buf_printf(b, "%s:%llu: %s: %s\n", cli_file_name(item->file),
        (unsigned long long)item->number, name, what);
}

static enum pf_status
compare(struct differences *all, struct pf_buf *b, const struct cli_item *item,
    const struct pf_tensor *x, const struct pf_tensor *y, struct pf_err *err)
{
    struct pf_difference d;
    struct pf_err why;
    char what[200];
    enum pf_status st = pf_compare(x, y, all->atol, all->rtol, &d, &why);

    if (st == PF_ESHAPE) {
        differences_add(all, b, item, x->name, why.msg);
        return PF_OK;
    }
    if (st)
        return pf_fail(err, st, "%s", why.msg);
    if (d.n) {
        snprintf(what, sizeof what, "%zu of %zu elements differ, most at "
            "element %zu: %.9g, there %.9g", d.n, pf_tensor_count(x), d.at,
            d.x, d.y);
        differences_add(all, b, item, x->name, what);
    }
    return PF_OK;
}

enum pf_status
differences_find(struct differences *all, struct pf_buf *b,
    const struct cli_item *item, const struct pf_record *other,
    struct pf_err *err)
{
    const struct pf_record *rec = &item->rec;
    enum pf_status st = PF_OK;

    if (rec->n_tensors == 1 && other->n_tensors == 1)
        return compare(all, b, item, rec->tensors, other->tensors, err);
    for (size_t i = 0; i < rec->n_tensors && !st; i++) {
        const struct pf_tensor *x = &rec->tensors[i];
        const struct pf_tensor *y = pf_record_tensor(other, x->name);

        if (y)
            st = compare(all, b, item, x, y, err);
        else
            differences_add(all, b, item, x->name,
                "there is none in the other file");
    }
    for (size_t i = 0; i < other->n_tensors && !st; i++)
        if (!pf_record_tensor(rec, other->tensors[i].name))
            differences_add(all, b, item, other->tensors[i].name,
                "there is none here");
    return st;
}
