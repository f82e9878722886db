/* Steps that change the logits of single ids. */
#include "sample-private.h"

#include <float.h>
#include <math.h>

/* A logit that is finite stays so. */
static float
finite(double z)
{
    return (float)fmin(fmax(z, -(double)FLT_MAX), (double)FLT_MAX) + 0.0f;
}

void
pf_sampler_add(struct pf_sampler *s, uint32_t id, double x)
{
    size_t at = pf_sampler_place(s, id);

    if (at == s->n)
        return;
    /* z is kept before temperatures: what comes after them is larger there. */
    if (x == -INFINITY)
        s->z[at] = -INFINITY;
    else
        s->z[at] = finite((double)s->z[at] + x / s->scale);
}

enum pf_status
pf_sampler_count_prev(struct pf_sampler *s,
    const struct pf_surroundings *around, struct pf_err *err)
{
    s->n_seen = 0;
    for (size_t i = 0; i < around->n_prev; i++) {
        uint32_t id = around->prev[i];

        if (id >= s->V) {
            pf_sampler_uncount(s);
            return pf_fail(err, PF_ERANGE, "ids: %u came before, but there "
                "are %zu logits", id, s->V);
        }
        if (s->count[id]++ == 0)
            s->seen[s->n_seen++] = id;
    }
    return PF_OK;
}

void
pf_sampler_uncount(struct pf_sampler *s)
{
    for (size_t i = 0; i < s->n_seen; i++)
        s->count[s->seen[i]] = 0;
    s->n_seen = 0;
}

static void
repeat(struct pf_sampler *s, uint32_t id, double r)
{
    size_t at = pf_sampler_place(s, id);
    double z;

    if (at == s->n)
        return;
    z = (double)s->z[at];
    s->z[at] = finite(z > 0 ? z / r : z * r);
}

enum pf_status
pf_step_penalty(struct pf_sampler *s, const struct pf_step *step,
    const struct pf_surroundings *around, struct pf_err *err)
{
    double x = step->x[0];
    enum pf_status st;

    if (step->kind == PF_STEP_LOGIT_BIAS) {
        if (x >= (double)s->V)
            return pf_fail(err, PF_ERANGE, "logit-bias: id %.0f, but there "
                "are %zu logits", x, s->V);
        pf_sampler_add(s, (uint32_t)x, step->x[1]);
        st = pf_sampler_changed(s, NULL);
        return st ? pf_fail(err, st, "logit-bias: no candidate is left") : st;
    }
    st = pf_sampler_count_prev(s, around, err);
    if (st)
        return st;
    for (size_t i = 0; i < s->n_seen; i++) {
        uint32_t id = s->seen[i];

        switch (step->kind) {
        case PF_STEP_REPEAT: repeat(s, id, x); break;
        case PF_STEP_PRESENCE: pf_sampler_add(s, id, -x); break;
        default: pf_sampler_add(s, id, -x * s->count[id]);
        }
    }
    pf_sampler_uncount(s);
    return pf_sampler_changed(s, err);
}
