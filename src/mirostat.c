/* Mirostat: a cut that is led by how surprising the draws before were. */
#include "sample-private.h"

#include <math.h>
#include <stdlib.h>

enum { M = 100 };

/* Zipf's exponent: a fit of ln p over ln rank, by differences (eq. 8). */
static double
exponent(const struct pf_sampler *s, const uint32_t *ids, size_t n)
{
    double tb = 0, tt = 0;

    for (size_t i = 0; i + 1 < n; i++) {
        double t = log((double)(i + 2) / (double)(i + 1));
        double a = (double)s->z[pf_sampler_place(s, ids[i])];
        double b = (double)s->z[pf_sampler_place(s, ids[i + 1])];

        tb += t * (a - b) * s->scale;
        tt += t * t;
    }
    return tb / tt;
}

/* Version 1: how many ranks have, by that law, a surprise of about mu. */
static enum pf_status
keep_number(struct pf_sampler *s, double mu, size_t least, struct pf_err *err)
{
    size_t m = s->n < M ? s->n : M;
    uint32_t ids[M];
    double zipf, e, spread, k;
    enum pf_status st = pf_sampler_ranks(s, m, ids, err);

    if (st || m < 2)
        return st;
    zipf = exponent(s, ids, m);
    e = zipf - 1;
    spread = fabs(e) < 1e-9 ? 1 / log((double)s->V) /* the limit */
        : e / (1 - pow((double)s->V, -e));
    k = zipf > 0 ? pow(spread * pow(2, mu), 1 / zipf)
        : spread * pow(2, mu) >= 1 ? (double)s->n : 1; /* all are equal */
    if (!(k >= (double)least))
        k = (double)least;
    if (k < (double)s->n)
        pf_sampler_keep_ranks(s, (size_t)k);
    return PF_OK;
}

enum pf_status
pf_step_mirostat(struct pf_sampler *s, const struct pf_step *step,
    const struct pf_surroundings *around, struct pf_err *err)
{
    size_t least = around->min_keep > 1 ? around->min_keep : 1;

    if (step->x[0] == 1)
        return keep_number(s, around->mu, least, err);
    pf_sampler_mass(s);
    pf_sampler_keep_above(s, log(s->total) - around->mu * log(2), least);
    return PF_OK;
}

double
pf_mirostat_mu(const struct pf_step *step, double mu, double p)
{
    return mu - step->x[2] * (-log2(p) - step->x[1]);
}
