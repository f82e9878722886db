/*
 * Selection without sorting.  A walk over ranks ends, nearly always, among the
 * few first: so the largest key of each block of 64 is noted, the k-th largest
 * of those bounds the k-th largest of all from below, and only blocks that
 * reach it are looked into.  If the walk does not end there, all places go
 * into equal intervals of the key; only the one in which it ends is looked
 * into, in the same way again, and the last few are sorted.
 */
#include "sample-private.h"

#include <math.h>
#include <string.h>

enum { BLOCK = PF_ORDER_BLOCK, BUCKETS = 1024, FEW = 24, CHUNK = 256 };

/* Of a whole block, in a shape that compilers make vectors of. */
static float
largest_of_block(const float *v)
{
    float m[BLOCK / 2];

    for (int i = 0; i < BLOCK / 2; i++)
        m[i] = v[i] > v[i + BLOCK / 2] ? v[i] : v[i + BLOCK / 2];
    for (int i = 0; i < 16; i++)
        m[i] = m[i] > m[i + 16] ? m[i] : m[i + 16];
    for (int i = 0; i < 8; i++)
        m[i] = m[i] > m[i + 8] ? m[i] : m[i + 8];
    for (int i = 0; i < 4; i++)
        m[i] = m[i] > m[i + 4] ? m[i] : m[i + 4];
    m[0] = m[0] > m[1] ? m[0] : m[1];
    m[2] = m[2] > m[3] ? m[2] : m[3];
    return m[0] > m[2] ? m[0] : m[2];
}

float
pf_largest(const float *v, size_t n)
{
    float m = v[0], b;

    for (; n >= BLOCK; n -= BLOCK, v += BLOCK) {
        b = largest_of_block(v);
        m = b > m ? b : m;
    }
    for (size_t i = 0; i < n; i++)
        m = v[i] > m ? v[i] : m;
    return m;
}

static float
smallest(const float *v, size_t n)
{
    float lane[16], m = v[0];
    size_t i = 0;

    for (int l = 0; l < 16; l++)
        lane[l] = m;
    for (; i + 16 <= n; i += 16)
        for (int l = 0; l < 16; l++)
            lane[l] = v[i + (size_t)l] < lane[l] ? v[i + (size_t)l] : lane[l];
    for (; i < n; i++)
        m = v[i] < m ? v[i] : m;
    for (int l = 0; l < 16; l++)
        m = lane[l] < m ? lane[l] : m;
    return m;
}

void
pf_order_set(struct pf_order *o, const float *key, const float *key2,
    size_t n)
{
    o->key = key;
    o->key2 = key2;
    o->n = n;
    for (size_t i = 0; i < n; i += BLOCK)
        o->most[i / BLOCK] = pf_largest(key + i, n - i < BLOCK ? n - i
            : BLOCK);
}

/* Does place a come before b? */
static bool
before(const struct pf_order *o, size_t a, size_t b)
{
    if (o->key[a] != o->key[b])
        return o->key[a] > o->key[b];
    if (o->key2 && o->key2[a] != o->key2[b])
        return o->key2[a] > o->key2[b];
    return a < b;
}

size_t
pf_order_above(struct pf_order *o, double t)
{
    size_t n = 0;

    for (size_t b = 0; b * BLOCK < o->n; b++) {
        size_t i = b * BLOCK, end = o->n - i < BLOCK ? o->n : i + BLOCK;

        if ((double)o->most[b] < t)
            continue;
        for (; i < end; i++) {
            o->list[n] = (uint32_t)i;
            n += (double)o->key[i] >= t;
        }
    }
    return n;
}

size_t
pf_order_upto(struct pf_order *o, size_t last)
{
    size_t n = pf_order_above(o, (double)o->key[last]), kept = 0;

    for (size_t i = 0; i < n; i++) {
        size_t at = o->list[i];

        o->list[kept] = (uint32_t)at;
        kept += at == last || before(o, at, last);
    }
    return kept;
}

/* A walk under way, among the places of a list that ascends. */
struct walk {
    const struct pf_order *o;
    const float *weight;
    double sum, limit; /* sum: of those before the list */
    bool beyond;
    bool all; /* the list would be 0 .. n-1, and is not written yet */
    uint32_t *list;
    size_t n;
};

static double
weight_of(const struct walk *w, size_t place)
{
    return w->weight ? (double)w->weight[place] : 1;
}

static bool
over(const struct walk *w, double sum)
{
    return w->beyond ? sum > w->limit : sum >= w->limit;
}

/* No sum was enough, by a rounding: the last that has any weight. */
static size_t
last_place(const struct walk *w)
{
    size_t last = w->list[0];
    bool any = false;

    for (size_t i = 0; i < w->n; i++) {
        size_t at = w->list[i];

        if (weight_of(w, at) > 0 && (!any || before(w->o, last, at))) {
            last = at;
            any = true;
        }
    }
    return last;
}

/* A list in its order. */
static size_t
walk_sorted(const struct walk *w)
{
    double sum = w->sum;

    for (size_t i = 0; i < w->n; i++) {
        sum += weight_of(w, w->list[i]);
        if (over(w, sum))
            return w->list[i];
    }
    return last_place(w);
}

static void
sort_few(const struct walk *w)
{
    for (size_t i = 1; i < w->n; i++) {
        uint32_t x = w->list[i];
        size_t k = i;

        for (; k && before(w->o, x, w->list[k - 1]); k--)
            w->list[k] = w->list[k - 1];
        w->list[k] = x;
    }
}

/* Between which keys the list lies. */
static void
range_of(const struct walk *w, const float *key, float *lo, float *hi)
{
    if (w->all) {
        *lo = smallest(key, w->n);
        *hi = pf_largest(key, w->n);
        return;
    }
    *lo = *hi = key[w->list[0]];
    for (size_t i = 1; i < w->n; i++) {
        float k = key[w->list[i]];

        *lo = k < *lo ? k : *lo;
        *hi = k > *hi ? k : *hi;
    }
}

/* In which interval, c of them to 1, counted from hi down, keys lie. */
static void
intervals(const struct walk *w, const float *key, double hi, double c,
    size_t from, size_t n, int *out)
{
    if (w->all)
        for (size_t i = 0; i < n; i++)
            out[i] = (int)((hi - (double)key[from + i]) * c);
    else
        for (size_t i = 0; i < n; i++)
            out[i] = (int)((hi - (double)key[w->list[from + i]]) * c);
}

/* Narrows the list to the interval of keys in which the walk ends. */
static bool
narrow(struct walk *w, const float *key, double lo, double hi)
{
    double sums[BUCKETS] = { 0 }, c = (BUCKETS - 1) / (hi - lo);
    int in[CHUNK], b;
    size_t kept = 0, n;

    for (size_t i = 0; i < w->n; i += n) {
        n = w->n - i < CHUNK ? w->n - i : CHUNK;
        intervals(w, key, hi, c, i, n, in);
        for (size_t k = 0; k < n; k++)
            sums[in[k]] += weight_of(w, w->all ? i + k : w->list[i + k]);
    }
    for (b = 0; b < BUCKETS && !over(w, w->sum + sums[b]); b++)
        w->sum += sums[b];
    if (b == BUCKETS)
        return false;
    for (size_t i = 0; i < w->n; i += n) {
        n = w->n - i < CHUNK ? w->n - i : CHUNK;
        intervals(w, key, hi, c, i, n, in);
        for (size_t k = 0; k < n; k++) {
            w->list[kept] = w->all ? (uint32_t)(i + k) : w->list[i + k];
            kept += in[k] == b;
        }
    }
    w->all = false;
    w->n = kept;
    return true;
}

static void
write_list(struct walk *w)
{
    for (size_t i = 0; w->all && i < w->n; i++)
        w->list[i] = (uint32_t)i;
    w->all = false;
}

static size_t
walk_list(struct walk *w)
{
    const float *key = w->o->key;
    float lo, hi;

    while (w->n > FEW) {
        range_of(w, key, &lo, &hi);
        if (lo == hi) {
            write_list(w);
            if (key == w->o->key2 || !w->o->key2)
                return walk_sorted(w); /* equal: in the order of places */
            key = w->o->key2;
        } else if (!narrow(w, key, (double)lo, (double)hi)) {
            write_list(w);
            return last_place(w);
        }
    }
    write_list(w);
    sort_few(w);
    return walk_sorted(w);
}

/* Lists all places that may be among the first k; false: that is all. */
static bool
shortlist(struct pf_order *o, size_t k, size_t *n)
{
    struct pf_order blocks = { .key = o->most };
    struct walk w = { .o = &blocks, .limit = (double)k, .all = true,
        .list = o->sub, .n = (o->n + BLOCK - 1) / BLOCK };

    if (k >= w.n)
        return false;
    *n = pf_order_above(o, (double)o->most[walk_list(&w)]);
    return true;
}

size_t
pf_order_walk(struct pf_order *o, const float *weight, double limit,
    bool beyond)
{
    struct walk w = { o, weight, 0, limit, beyond, false, o->list, o->n };
    size_t k = !weight ? (size_t)limit : 64;
    double sum;

    for (; k && shortlist(o, k, &w.n); k *= 16) {
        sum = 0;
        for (size_t i = 0; i < w.n; i++)
            sum += weight_of(&w, w.list[i]);
        /* Well beyond it, so that no rounding matters. */
        if (!weight || sum * (1 - 1e-9) > limit)
            return walk_list(&w);
    }
    w.all = true;
    w.n = o->n;
    return walk_list(&w);
}
