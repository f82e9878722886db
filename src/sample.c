/*
 * Candidates lie in the order of their ids, first all of them and then, cut by
 * cut, fewer; nothing is ever sorted but what somebody wants to see in order.
 * Temperatures only change a factor.  Whatever is made of z is made when it is
 * asked for and kept as long as it holds: the order (sample-order.c), and the
 * masses exp(z - zmax) with their sum.
 */
#include "sample-private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum pf_status
pf_sampler_new(struct pf_sampler **s, struct pf_err *err)
{
    *s = calloc(1, sizeof **s);
    if (!*s)
        return pf_fail_mem(err);
    (*s)->kern = pf_kernels_best();
    return PF_OK;
}

static void
free_rows(struct pf_sampler *s)
{
    free(s->z);
    free(s->id);
    free(s->mass);
    free(s->key);
    free(s->count);
    free(s->seen);
    free(s->order.most);
    free(s->order.list);
    free(s->order.sub);
    s->cap = 0;
}

void
pf_sampler_free(struct pf_sampler *s)
{
    if (!s)
        return;
    free_rows(s);
    free(s->suffix);
    free(s);
}

/* Room for V of everything, so that no step can run out of it. */
static bool
make_room(struct pf_sampler *s, size_t V)
{
    if (V <= s->cap)
        return true;
    free_rows(s);
    s->z = calloc(V, sizeof *s->z);
    s->id = calloc(V, sizeof *s->id);
    s->mass = calloc(V, sizeof *s->mass);
    s->key = calloc(V, sizeof *s->key);
    s->count = calloc(V, sizeof *s->count);
    s->seen = calloc(V, sizeof *s->seen);
    s->order.most = calloc(V, sizeof *s->order.most);
    s->order.list = calloc(V, sizeof *s->order.list);
    s->order.sub = calloc(V, sizeof *s->order.sub);
    s->cap = V;
    if (s->z && s->id && s->mass && s->key && s->count && s->seen
        && s->order.most && s->order.list && s->order.sub)
        return true;
    free_rows(s);
    s->z = s->mass = s->key = s->order.most = NULL;
    s->id = s->count = s->seen = s->order.list = s->order.sub = NULL;
    return false;
}

/* What z has become is not known yet. */
static void
forget(struct pf_sampler *s)
{
    s->blocked = s->ordered = s->massed = false;
}

/* Names the first that no logit may be. */
static enum pf_status
not_a_logit(const float *logits, struct pf_err *err)
{
    size_t i = 0;

    while (logits[i] < INFINITY)
        i++;
    return pf_fail(err, PF_ERANGE, "logits: %s at id %zu",
        isnan(logits[i]) ? "NaN" : "+infinity", i);
}

enum pf_status
pf_sampler_start(struct pf_sampler *s, const float *logits, size_t V,
    struct pf_err *err)
{
    unsigned bad = 0;
    bool finite;

    if (V > INT32_MAX)
        return pf_fail(err, PF_ERANGE, "logits: %zu of them", V);
    if (V == 0)
        return pf_fail(err, PF_ERANGE, "logits: there are none");
    if (!make_room(s, V))
        return pf_fail_mem(err);
    finite = s->kern->largest(s->z, s->order.most, logits, V);
    for (size_t i = 0; !finite && i < V; i++)
        bad |= !(logits[i] < INFINITY);
    if (bad)
        return not_a_logit(logits, err);
    s->V = s->n = s->order.n = V;
    s->order.key = s->z;
    s->order.key2 = NULL;
    s->dense = true;
    s->scale = 1;
    forget(s);
    s->blocked = true;
    if (!finite && pf_sampler_changed(s, NULL))
        return pf_fail(err, PF_ERANGE, "logits: all of them are -infinity");
    return PF_OK;
}

enum pf_status
pf_sampler_changed(struct pf_sampler *s, struct pf_err *err)
{
    unsigned gone = 0;
    size_t n = 0;

    forget(s);
    for (size_t i = 0; i < s->n; i++)
        gone |= !(s->z[i] > -INFINITY);
    if (!gone)
        return PF_OK;
    for (size_t i = 0; i < s->n; i++) {
        s->order.list[n] = (uint32_t)i;
        n += s->z[i] > -INFINITY;
    }
    if (n == 0)
        return pf_fail(err, PF_ERANGE, "no candidate is left");
    pf_sampler_keep(s, s->order.list, n);
    return PF_OK;
}

uint32_t
pf_sampler_id(const struct pf_sampler *s, size_t place)
{
    return s->dense ? (uint32_t)place : s->id[place];
}

size_t
pf_sampler_place(const struct pf_sampler *s, uint32_t id)
{
    size_t lo = 0, hi = s->n;

    if (s->dense)
        return id < s->n ? id : s->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (s->id[mid] < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < s->n && s->id[lo] == id ? lo : s->n;
}

void
pf_sampler_keep(struct pf_sampler *s, const uint32_t *list, size_t n)
{
    bool best = false;

    if (n == s->n)
        return;
    for (size_t i = 0; i < n; i++) {
        size_t at = list[i];

        best |= at == s->best;
        s->z[i] = s->z[at];
        s->id[i] = s->dense ? (uint32_t)at : s->id[at];
        s->mass[i] = s->mass[at];
    }
    s->n = n;
    s->dense = false;
    s->blocked = s->ordered = false;
    /* The masses still hold if they are relative to the same zmax. */
    s->massed = s->massed && best;
    if (s->massed)
        s->total = pf_sampler_sum(s->mass, n);
}

void
pf_sampler_keep_ranks(struct pf_sampler *s, size_t k)
{
    size_t last;

    if (k >= s->n)
        return;
    pf_sampler_order(s);
    last = k == 1 ? s->best : pf_order_walk(&s->order, NULL, (double)k, false);
    pf_sampler_keep(s, s->order.list, pf_order_upto(&s->order, last));
}

static int
by_number(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

enum pf_status
pf_sampler_allow(struct pf_sampler *s, const uint32_t *ids, size_t n,
    struct pf_err *err)
{
    uint32_t *list = s->order.list;
    uint32_t *sorted = malloc((n + 1) * sizeof *sorted);
    size_t kept = 0;
    enum pf_status st = PF_OK;

    if (!sorted)
        return pf_fail_mem(err);
    if (n)
        memcpy(sorted, ids, n * sizeof *ids);
    qsort(sorted, n, sizeof *sorted, by_number);
    if (n && sorted[n - 1] >= s->V)
        st = pf_fail(err, PF_ERANGE, "allow: id %u, but there are %zu logits",
            sorted[n - 1], s->V);
    for (size_t i = 0; !st && i < n; i++) {
        size_t at = pf_sampler_place(s, sorted[i]);

        if (at < s->n && (kept == 0 || list[kept - 1] != at))
            list[kept++] = (uint32_t)at;
    }
    free(sorted);
    if (!st && kept == 0)
        st = pf_fail(err, PF_ERANGE, n ? "allow: all of them have a logit of "
            "-infinity" : "allow: there are none");
    if (st)
        return st;
    s->best = s->n; /* whether it is kept does not matter */
    pf_sampler_keep(s, list, kept);
    return PF_OK;
}

size_t
pf_sampler_count(const struct pf_sampler *s)
{
    return s->n;
}

bool
pf_sampler_has(const struct pf_sampler *s, uint32_t id)
{
    return pf_sampler_place(s, id) < s->n;
}
