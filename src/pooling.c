#include <pipeformer/pooling.h>

#include <math.h>
#include <stdlib.h>

/*
 * Sums are kept in double, row after row: what is lost to rounding there does
 * not show in a float, and where the rows were cut makes no difference.
 */

void
pf_pooling_fini(struct pf_pooling *p)
{
    free(p->v);
    p->v = NULL;
    p->width = p->rows = 0;
}

enum pf_status
pf_pooling_add(struct pf_pooling *p, const float *x, size_t n, size_t C,
    struct pf_err *err)
{
    if (n == 0)
        return PF_OK;
    if (!p->v) {
        p->v = calloc(C ? C : 1, sizeof *p->v);
        if (!p->v)
            return pf_fail_mem(err);
        p->width = C;
    }
    if (C != p->width)
        return pf_fail(err, PF_ESHAPE, "hidden: has rows of %zu numbers; "
            "those before had %zu", C, p->width);
    for (size_t t = 0; t < n; t++, x += C, p->rows++) {
        switch (p->how) {
        case PF_POOL_MEAN:
            for (size_t i = 0; i < C; i++)
                p->v[i] += (double)x[i];
            break;
        case PF_POOL_MAX:
            for (size_t i = 0; i < C; i++)
                if (!p->rows || (double)x[i] > p->v[i])
                    p->v[i] = (double)x[i];
            break;
        case PF_POOL_FIRST:
            for (size_t i = 0; !p->rows && i < C; i++)
                p->v[i] = (double)x[i];
            break;
        case PF_POOL_LAST:
            for (size_t i = 0; t + 1 == n && i < C; i++)
                p->v[i] = (double)x[i];
        }
    }
    return PF_OK;
}

void
pf_pooling_get(const struct pf_pooling *p, float *out)
{
    double n = p->how == PF_POOL_MEAN ? (double)p->rows : 1;

    for (size_t i = 0; i < p->width; i++)
        out[i] = (float)(p->v[i] / n);
}

void
pf_normalize_length(float *x, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    for (size_t i = 0; sum > 0 && i < n; i++)
        x[i] = (float)((double)x[i] / sqrt(sum));
}
