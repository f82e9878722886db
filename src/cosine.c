#include <pipeformer/cosine.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/buf.h>
#include <pipeformer/tensor.h>

enum { LANES = 8 };

void
pf_rows_fini(struct pf_rows *r)
{
    free(r->v);
    free(r->length);
    *r = (struct pf_rows)PF_ROWS_INIT;
}

void
pf_rows_clear(struct pf_rows *r)
{
    r->n = 0;
}

/* Eight sums beside each other, so that they can be vectors. */
static double
dot(const float *a, const float *b, size_t n)
{
    double s[LANES] = { 0 };
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++)
            s[l] += (double)a[i + l] * (double)b[i + l];
    for (size_t l = 0; i < n; i++, l++)
        s[l] += (double)a[i] * (double)b[i];
    for (size_t half = LANES / 2; half; half /= 2)
        for (size_t l = 0; l < half; l++)
            s[l] += s[l + half];
    return s[0];
}

enum pf_status
pf_rows_add(struct pf_rows *r, const float *row, size_t C, struct pf_err *err)
{
    size_t need;

    if (r->n && C != r->C)
        return pf_fail(err, PF_ESHAPE, "%zu numbers, those before have %zu",
            C, r->C);
    if (!pf_mul(r->n + 1, C, &need)
        || !pf_grow(&r->v, &r->cap, need, sizeof *r->v)
        || !pf_grow(&r->length, &r->cap_length, r->n + 1, sizeof *r->length))
        return pf_fail_mem(err);
    r->C = C;
    if (C)
        memcpy(r->v + r->n * C, row, C * sizeof *row);
    r->length[r->n++] = sqrt(dot(row, row, C));
    return PF_OK;
}

/* Rows of no numbers lie nowhere. */
static const float *
row_at(const struct pf_rows *r, size_t i)
{
    return r->C ? r->v + i * r->C : r->v;
}

void
pf_rows_cosines(const struct pf_rows *r, size_t i, float *out)
{
    const float *row = row_at(r, i);

    for (size_t j = 0; j < r->n; j++)
        out[j] = (float)(dot(row, row_at(r, j), r->C)
            / (r->length[i] * r->length[j]));
}
