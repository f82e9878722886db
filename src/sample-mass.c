/* What is made of the logits that are left: order, probabilities, a draw. */
#include "sample-private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 8 };

void
pf_sampler_order(struct pf_sampler *s)
{
    if (s->ordered)
        return;
    if (!s->blocked)
        pf_order_set(&s->order, s->z, NULL, s->n);
    s->best = pf_order_walk(&s->order, NULL, 1, false);
    s->zmax = s->z[s->best];
    s->ordered = true;
}

double
pf_sampler_sum(const float *v, size_t n)
{
    double lane[LANES] = { 0 }, sum = 0;
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++)
            lane[l] += (double)v[i + l];
    for (; i < n; i++)
        lane[i % LANES] += (double)v[i];
    for (size_t l = 0; l < LANES; l++)
        sum += lane[l];
    return sum;
}

void
pf_sampler_mass(struct pf_sampler *s)
{
    float c = (float)(s->scale * 1.4426950408889634); /* log2(e) */

    pf_sampler_order(s);
    if (s->massed)
        return;
    s->total = s->kern->masses(s->mass, s->z, s->n, s->zmax, c);
    s->massed = true;
}

double
pf_sampler_moment(struct pf_sampler *s)
{
    double lane[LANES] = { 0 }, sum = 0, zmax;
    size_t i = 0;

    pf_sampler_mass(s);
    zmax = (double)s->zmax;
    for (; i + LANES <= s->n; i += LANES)
        for (size_t l = 0; l < LANES; l++)
            lane[l] += (double)s->mass[i + l] * ((double)s->z[i + l] - zmax);
    for (; i < s->n; i++)
        lane[i % LANES] += (double)s->mass[i] * ((double)s->z[i] - zmax);
    for (size_t l = 0; l < LANES; l++)
        sum += lane[l];
    return sum;
}

double
pf_sampler_entropy(struct pf_sampler *s)
{
    double moment = pf_sampler_moment(s);
    double h = log(s->total) - s->scale * moment / s->total;

    return h > 0 ? h : 0;
}

double
pf_sampler_prob(struct pf_sampler *s, uint32_t id)
{
    size_t at = pf_sampler_place(s, id);

    if (at == s->n)
        return 0;
    pf_sampler_mass(s);
    return (double)s->mass[at] / s->total;
}

double
pf_sampler_logsum(struct pf_sampler *s)
{
    pf_sampler_mass(s);
    return (double)s->zmax * s->scale + log(s->total);
}

uint32_t
pf_sampler_best(struct pf_sampler *s)
{
    pf_sampler_order(s);
    return pf_sampler_id(s, s->best);
}

/* Keys of rank that ascend: z the other way round, then the id. */
static uint64_t
rank_key(float z, uint32_t id)
{
    uint32_t bits;

    memcpy(&bits, &z, sizeof bits);
    bits = bits >> 31 ? bits : ~bits & 0x7fffffff;
    return (uint64_t)bits << 32 | id;
}

static int
by_key(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

enum pf_status
pf_sampler_ranks(struct pf_sampler *s, size_t n, uint32_t *ids,
    struct pf_err *err)
{
    uint64_t *keys;
    size_t at;

    if (n == 0)
        return PF_OK;
    keys = malloc(n * sizeof *keys);
    if (!keys)
        return pf_fail_mem(err);
    pf_sampler_order(s);
    at = pf_order_walk(&s->order, NULL, (double)n, false);
    pf_order_upto(&s->order, at);
    for (size_t i = 0; i < n; i++) {
        at = s->order.list[i];
        keys[i] = rank_key(s->z[at], pf_sampler_id(s, at));
    }
    qsort(keys, n, sizeof *keys, by_key);
    for (size_t i = 0; i < n; i++)
        ids[i] = (uint32_t)keys[i];
    free(keys);
    return PF_OK;
}

uint32_t
pf_sampler_draw(struct pf_sampler *s, double u)
{
    pf_sampler_mass(s);
    return pf_sampler_id(s, pf_order_walk(&s->order, s->mass, u * s->total,
        true));
}
