#include <pipeformer/compare.h>

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* All elements as double, on the heap. */
static enum pf_status
values(const struct pf_tensor *t, double **v, size_t *n, struct pf_err *err)
{
    *n = pf_tensor_count(t);
    *v = *n > SIZE_MAX / 16 ? NULL : malloc((*n + 1) * sizeof **v);
    if (!*v)
        return pf_fail_mem(err);
    if (pf_to_f64(*v, t->data, t->dtype, *n))
        return PF_OK;
    free(*v);
    *v = NULL;
    return pf_fail(err, PF_EFORMAT, "%s: no arithmetic on type %s", t->name,
        pf_dtype_name(t->dtype));
}

enum pf_status
pf_summarise(const struct pf_tensor *t, struct pf_summary *s,
    struct pf_err *err)
{
    double *v, sum = 0, squares = 0, deviation = 0;
    size_t n, real;
    enum pf_status st = values(t, &v, &n, err);

    if (st)
        return st;
    *s = (struct pf_summary){ .min = INFINITY, .max = -INFINITY };
    for (size_t i = 0; i < n; i++) {
        if (isnan(v[i])) {
            s->nan++;
            continue;
        }
        s->min = v[i] < s->min ? v[i] : s->min;
        s->max = v[i] > s->max ? v[i] : s->max;
        sum += v[i];
        squares += v[i] * v[i];
    }
    real = n - s->nan;
    s->mean = sum / (double)real; /* NaN for none */
    for (size_t i = 0; i < n; i++)
        if (!isnan(v[i]))
            deviation += (v[i] - s->mean) * (v[i] - s->mean);
    s->std = sqrt(deviation / (double)real);
    s->norm = sqrt(squares);
    if (!real)
        s->min = s->max = NAN;
    free(v);
    return PF_OK;
}

enum pf_status
pf_compare(const struct pf_tensor *a, const struct pf_tensor *b, double atol,
    double rtol, struct pf_difference *d, struct pf_err *err)
{
    char sa[128], sb[128];
    double *x, *y = NULL, apart, worst = 0;
    size_t n;
    enum pf_status st;

    *d = (struct pf_difference){ 0 };
    if (a->ndim != b->ndim
        || memcmp(a->shape, b->shape, a->ndim * sizeof *a->shape) != 0)
        return pf_fail(err, PF_ESHAPE, "shape %s, there %s",
            pf_shape_format(sa, sizeof sa, a->shape, a->ndim),
            pf_shape_format(sb, sizeof sb, b->shape, b->ndim));
    st = values(a, &x, &n, err);
    if (!st)
        st = values(b, &y, &n, err);
    for (size_t i = 0; !st && i < n; i++) {
        apart = fabs(x[i] - y[i]);
        if (x[i] == y[i] || (isnan(x[i]) && isnan(y[i]))
            || (isfinite(x[i]) && isfinite(y[i])
                && apart <= atol + rtol * fabs(y[i])))
            continue;
        if (d->n++ == 0 || apart > worst || (isnan(apart) && !isnan(worst))) {
            worst = apart;
            d->at = i;
            d->x = x[i];
            d->y = y[i];
        }
    }
    free(x);
    free(y);
    return st;
}
