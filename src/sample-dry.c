/*
 * DRY.  How far the window's end also stands before each of its places is the
 * Z function of the window read backwards (Gusfield 1997, 1.4), which takes
 * one pass whatever the text repeats.
 */
#include "sample-private.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct pf_breakers {
    bool *one; /* by id: a breaker by itself */
    size_t n_one;
    struct sequence {
        uint32_t *ids;
        size_t n;
    } *more; /* of two ids and more */
    size_t n_more, cap_more;
};

enum pf_status
pf_breakers_new(struct pf_breakers **b, struct pf_err *err)
{
    *b = calloc(1, sizeof **b);
    return *b ? PF_OK : pf_fail_mem(err);
}

void
pf_breakers_free(struct pf_breakers *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < b->n_more; i++)
        free(b->more[i].ids);
    free(b->more);
    free(b->one);
    free(b);
}

enum pf_status
pf_breakers_add(struct pf_breakers *b, const uint32_t *ids, size_t n,
    struct pf_err *err)
{
    struct sequence *s;

    if (n == 1) {
        size_t cap = b->n_one;

        if (!pf_grow(&b->one, &cap, (size_t)ids[0] + 1, sizeof *b->one))
            return pf_fail_mem(err);
        memset(b->one + b->n_one, 0, cap - b->n_one);
        b->n_one = cap;
        b->one[ids[0]] = true;
        return PF_OK;
    }
    if (n == 0)
        return PF_OK;
    if (!pf_grow(&b->more, &b->cap_more, b->n_more + 1, sizeof *b->more))
        return pf_fail_mem(err);
    s = &b->more[b->n_more];
    s->n = n;
    s->ids = calloc(n, sizeof *ids);
    if (!s->ids)
        return pf_fail_mem(err);
    memcpy(s->ids, ids, n * sizeof *ids);
    b->n_more++;
    return PF_OK;
}

static bool
is_one(const struct pf_breakers *b, uint32_t id)
{
    return b && id < b->n_one && b->one[id];
}

/* How many ids stand behind the last breaker. */
static size_t
since_breaker(const struct pf_breakers *b, const uint32_t *ids, size_t n)
{
    for (size_t end = n; b && end; end--) {
        if (is_one(b, ids[end - 1]))
            return n - end;
        for (size_t i = 0; i < b->n_more; i++) {
            size_t len = b->more[i].n;

            if (len <= end && memcmp(ids + end - len, b->more[i].ids,
                    len * sizeof *ids) == 0)
                return n - end;
        }
    }
    return n;
}

/*
 * z[k], 0 < k < n: how long ids[n-1-k], ids[n-2-k], ... go on like ids[n-1],
 * ids[n-2], ..., but no longer than `most`.
 */
static void
suffixes(size_t *z, const uint32_t *ids, size_t n, size_t most)
{
    size_t left = 0, right = 0; /* the match that reaches furthest */

    for (size_t k = 1; k < n; k++) {
        size_t len = 0;

        if (k < right)
            len = z[k - left] < right - k ? z[k - left] : right - k;
        while (len < most && k + len < n
            && ids[n - 1 - len] == ids[n - 1 - k - len])
            len++;
        z[k] = len;
        if (k + len > right) {
            left = k;
            right = k + len;
        }
    }
}

enum pf_status
pf_step_dry(struct pf_sampler *s, const struct pf_step *step,
    const struct pf_surroundings *around, struct pf_err *err)
{
    double base = step->x[1], allowed = step->x[2];
    double most = base > 1 ? floor(log((double)FLT_MAX) / log(base)) : INFINITY;
    const uint32_t *ids = around->prev;
    size_t n = around->n_prev;
    enum pf_status st;

    if (step->x[0] == 0 || (double)n <= allowed)
        return PF_OK;
    if (!pf_grow(&s->suffix, &s->cap_suffix, n, sizeof *s->suffix))
        return pf_fail_mem(err);
    st = pf_sampler_count_prev(s, around, err); /* checks them, too */
    if (st)
        return st;
    for (size_t i = 0; i < s->n_seen; i++)
        s->count[s->seen[i]] = 0;
    suffixes(s->suffix, ids, n, since_breaker(around->breakers, ids, n));
    for (size_t k = 1; k < n; k++) { /* n <= 2^32 - 1, as there are pos */
        uint32_t *len = &s->count[ids[n - k]];

        if (s->suffix[k] > *len)
            *len = (uint32_t)s->suffix[k];
    }
    for (size_t i = 0; i < s->n_seen; i++) {
        uint32_t id = s->seen[i];
        double len = s->count[id];

        if (len >= allowed && !is_one(around->breakers, id))
            pf_sampler_add(s, id,
                -step->x[0] * pow(base, fmin(len - allowed, most)));
    }
    pf_sampler_uncount(s);
    return pf_sampler_changed(s, err);
}
