/* The steps that look at nothing but the candidates. */
#include "sample-private.h"

#include <float.h>
#include <math.h>

/* As hot, or as cold, as masses can tell apart. */
static const double scale_min = 1e-30, scale_max = 1e30;

static void
temperature(struct pf_sampler *s, double t)
{
    double scale = s->scale / t;

    if (t == 1)
        return;
    if (!(scale <= scale_max)) { /* t = 0, or next to it */
        pf_sampler_keep_ranks(s, 1);
        return;
    }
    s->scale = scale < scale_min ? scale_min : scale;
    s->massed = false;
}

static void
dynamic_temperature(struct pf_sampler *s, const struct pf_step *step)
{
    double lo = step->x[0], hi = step->x[1];

    if (s->n > 1)
        temperature(s, lo + (hi - lo)
            * pow(pf_sampler_entropy(s) / log((double)s->n), step->x[2]));
}

/* Keeps the n first ranks, which are listed, and at least `least`. */
static void
keep_listed(struct pf_sampler *s, size_t n, size_t least)
{
    if (n < least)
        pf_sampler_keep_ranks(s, least);
    else
        pf_sampler_keep(s, s->order.list, n);
}

void
pf_sampler_keep_above(struct pf_sampler *s, double x, size_t least)
{
    pf_sampler_order(s);
    keep_listed(s, pf_order_above(&s->order, (double)s->zmax + x / s->scale),
        least);
}

/* p >= t, likewise. */
static void
keep_prob(struct pf_sampler *s, double t, size_t least)
{
    pf_sampler_mass(s);
    pf_sampler_keep_above(s, log(t * s->total), least);
}

static void
top_p(struct pf_sampler *s, double p, size_t least)
{
    size_t last;

    pf_sampler_mass(s);
    last = pf_order_walk(&s->order, s->mass, p * s->total, false);
    keep_listed(s, pf_order_upto(&s->order, last), least);
}

/* -ln p - H is (mean of z - z) times the scale, which orders nothing anew. */
static void
typical(struct pf_sampler *s, double m, size_t least)
{
    double mean = pf_sampler_moment(s) / s->total + (double)s->zmax;
    size_t last, n;

    for (size_t i = 0; i < s->n; i++) {
        double d = fabs((double)s->z[i] - mean);

        s->key[i] = -(float)(d < (double)FLT_MAX ? d : (double)FLT_MAX);
    }
    s->blocked = s->ordered = false; /* there is one set of lists */
    pf_order_set(&s->order, s->key, s->z, s->n);
    last = pf_order_walk(&s->order, s->mass, m * s->total, false);
    n = pf_order_upto(&s->order, last);
    if (n < least) {
        last = pf_order_walk(&s->order, NULL, (double)(least < s->n ? least
            : s->n), false);
        n = pf_order_upto(&s->order, last);
    }
    pf_sampler_keep(s, s->order.list, n);
}

static void
top_n_sigma(struct pf_sampler *s, double times, size_t least)
{
    double lane[8] = { 0 }, squares = 0, d;
    double mean = pf_sampler_sum(s->z, s->n) / (double)s->n;
    size_t i = 0;

    for (; i + 8 <= s->n; i += 8)
        for (size_t l = 0; l < 8; l++) {
            d = (double)s->z[i + l] - mean;
            lane[l] += d * d;
        }
    for (; i < s->n; i++) {
        d = (double)s->z[i] - mean;
        lane[i % 8] += d * d;
    }
    for (int l = 0; l < 8; l++)
        squares += lane[l];
    pf_sampler_keep_above(s, -times * sqrt(squares / (double)s->n) * s->scale,
        least);
}

/* Excludes top choices (Weidmann 2024): but for the last of those above. */
static void
xtc(struct pf_sampler *s, const struct pf_step *step, double u,
    size_t min_keep)
{
    double x;
    size_t above, last = 0, k = 0, n = 0;
    uint32_t *list = s->order.list;

    if (step->x[0] <= 0 || step->x[1] > 0.5 || s->n < 2 || u > step->x[0])
        return;
    pf_sampler_mass(s);
    x = log(step->x[1] * s->total);
    above = pf_order_above(&s->order, (double)s->zmax + x / s->scale);
    if (above < 2 || s->n - above + 1 < min_keep)
        return;
    for (size_t i = 0; i < above; i++) /* of the lowest z, the highest id */
        if (i == 0 || s->z[list[i]] <= s->z[last])
            last = list[i];
    for (size_t i = 0; i < above; i++)
        s->order.sub[i] = list[i];
    for (size_t i = 0; i < s->n; i++) {
        bool drop = k < above && s->order.sub[k] == i;

        k += drop;
        if (!drop || i == last)
            list[n++] = (uint32_t)i;
    }
    pf_sampler_keep(s, list, n);
}

/* Epsilon and eta sampling. */
static void
cut_off(struct pf_sampler *s, double e, bool entropy, size_t least)
{
    double t = e;

    if (e <= 0)
        return;
    if (entropy)
        t = fmin(e, sqrt(e) * exp(-pf_sampler_entropy(s)));
    keep_prob(s, t, least);
}

enum pf_status
pf_sampler_step(struct pf_sampler *s, const struct pf_step *step,
    const struct pf_surroundings *around, struct pf_err *err)
{
    size_t least = around->min_keep > 1 ? around->min_keep : 1;
    double x = step->x[0];

    switch (step->kind) {
    case PF_STEP_TEMP: temperature(s, x); break;
    case PF_STEP_DYNATEMP: dynamic_temperature(s, step); break;
    case PF_STEP_TOP_K:
        if (x > 0 && x < (double)s->n)
            pf_sampler_keep_ranks(s, (size_t)fmax(x, (double)least));
        break;
    case PF_STEP_TOP_P:
        if (x < 1)
            top_p(s, x, least);
        break;
    case PF_STEP_MIN_P:
        if (x > 0)
            pf_sampler_keep_above(s, log(x), least);
        break;
    case PF_STEP_TYPICAL:
        if (x < 1)
            typical(s, x, least);
        break;
    case PF_STEP_TOP_N_SIGMA:
        if (x > 0)
            top_n_sigma(s, x, least);
        break;
    case PF_STEP_EPSILON:
    case PF_STEP_ETA:
        cut_off(s, x, step->kind == PF_STEP_ETA, least);
        break;
    case PF_STEP_XTC: xtc(s, step, around->u_xtc, around->min_keep); break;
    case PF_STEP_REPEAT:
    case PF_STEP_FREQUENCY:
    case PF_STEP_PRESENCE:
    case PF_STEP_LOGIT_BIAS: return pf_step_penalty(s, step, around, err);
    case PF_STEP_DRY: return pf_step_dry(s, step, around, err);
    case PF_STEP_MIROSTAT: return pf_step_mirostat(s, step, around, err);
    }
    return PF_OK;
}
