/*
 * The first rank is always known.  For the others the candidates become a heap
 * by rank, which gives them up one by one as they are asked for, so most of a
 * large vocabulary is never sorted: c[0 .. n - ranked) is the heap, and what
 * was taken from it stands behind, the first rank last.
 */
#include <pipeformer/sample.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/buf.h>

void
pf_sampler_fini(struct pf_sampler *s)
{
    free(s->c);
    *s = (struct pf_sampler)PF_SAMPLER_INIT;
}

static bool
outranks(const struct pf_candidate *a, const struct pf_candidate *b)
{
    return a->z != b->z ? a->z > b->z : a->id < b->id;
}

static void
sift(struct pf_candidate *c, size_t n, size_t i)
{
    struct pf_candidate x = c[i];
    size_t child;

    while ((child = 2 * i + 1) < n) {
        if (child + 1 < n && outranks(&c[child + 1], &c[child]))
            child++;
        if (!outranks(&c[child], &x))
            break;
        c[i] = c[child];
        i = child;
    }
    c[i] = x;
}

static void
heapify(struct pf_sampler *s)
{
    for (size_t i = s->n / 2; i-- > 0;)
        sift(s->c, s->n, i);
    s->ranked = 0;
    s->heap = true;
}

enum pf_status
pf_sampler_start(struct pf_sampler *s, const float *logits, size_t V,
    struct pf_err *err)
{
    if (!pf_grow(&s->c, &s->cap, V, sizeof *s->c))
        return pf_fail_mem(err);
    s->n = 0;
    s->total = -1;
    s->heap = false;
    for (size_t i = 0; i < V; i++) {
        struct pf_candidate c = { (double)logits[i], (uint32_t)i };

        if (isnan(logits[i]) || logits[i] == INFINITY)
            return pf_fail(err, PF_ERANGE, "logits: %s at id %zu",
                isnan(logits[i]) ? "NaN" : "+infinity", i);
        if (logits[i] == -INFINITY)
            continue;
        if (s->n == 0 || c.z > s->best.z)
            s->best = c;
        s->c[s->n++] = c;
    }
    if (s->n == 0)
        return pf_fail(err, PF_ERANGE, V ? "logits: all of them are -infinity"
            : "logits: there are none");
    return PF_OK;
}

const struct pf_candidate *
pf_sampler_rank(struct pf_sampler *s, size_t i)
{
    if (i == 0)
        return &s->best;
    if (!s->heap)
        heapify(s);
    while (s->ranked <= i) {
        size_t last = s->n - s->ranked - 1;
        struct pf_candidate best = s->c[0];

        s->c[0] = s->c[last];
        sift(s->c, last, 0);
        s->c[last] = best;
        s->ranked++;
    }
    return &s->c[s->n - 1 - i];
}

/* Mass of a candidate, the best one having 1. */
static double
mass(const struct pf_sampler *s, const struct pf_candidate *c)
{
    return exp(c->z - s->zmax);
}

static double
total(struct pf_sampler *s)
{
    if (s->total < 0) {
        s->zmax = s->best.z;
        s->total = 0;
        for (size_t i = 0; i < s->n; i++)
            s->total += mass(s, &s->c[i]);
    }
    return s->total;
}

/* Drops all but the first k ranks. */
static void
keep(struct pf_sampler *s, size_t k)
{
    if (k >= s->n)
        return;
    s->total = -1;
    if (k == 1) {
        s->c[0] = s->best;
        s->n = s->ranked = 1;
        s->heap = true;
        return;
    }
    pf_sampler_rank(s, k - 1);
    memmove(s->c, s->c + s->n - k, k * sizeof *s->c);
    s->n = k;
    s->ranked = k;
}

void
pf_sampler_step(struct pf_sampler *s, const struct pf_step *step)
{
    size_t k = 0;
    double above = 0, limit;

    switch (step->kind) {
    case PF_STEP_TEMP:
        if (step->x == 0 || !isfinite(s->best.z / step->x)) {
            keep(s, 1); /* so cold that nothing else has any mass */
            break;
        }
        for (size_t i = 0; i < s->n; i++)
            s->c[i].z /= step->x;
        s->best.z /= step->x;
        s->total = -1;
        break;
    case PF_STEP_TOP_K:
        if (step->x > 0)
            keep(s, step->x < (double)s->n ? (size_t)step->x : s->n);
        break;
    case PF_STEP_TOP_P:
        if (step->x >= 1)
            break;
        limit = step->x * total(s);
        do
            above += mass(s, pf_sampler_rank(s, k++));
        while (k < s->n && above < limit);
        keep(s, k);
    }
}

double
pf_sampler_prob(struct pf_sampler *s, size_t i)
{
    double all = total(s);

    return mass(s, pf_sampler_rank(s, i)) / all;
}

uint32_t
pf_sampler_draw(struct pf_sampler *s, double u)
{
    double limit = u * total(s), sum = 0, m;
    uint32_t id = pf_sampler_rank(s, 0)->id;

    for (size_t i = 0; i < s->n; i++) {
        const struct pf_candidate *c = pf_sampler_rank(s, i);

        m = mass(s, c);
        if (m == 0)
            break;
        id = c->id;
        sum += m;
        if (sum > limit)
            break;
    }
    return id;
}

double
pf_logprob(const float *logits, size_t V, uint32_t id)
{
    double max = -INFINITY, sum = 0;

    for (size_t i = 0; i < V; i++)
        if ((double)logits[i] > max)
            max = (double)logits[i];
    for (size_t i = 0; i < V; i++)
        sum += exp((double)logits[i] - max);
    return (double)logits[id] - max - log(sum);
}
