/*
 * Chains against the plain definition: after each step all candidates are
 * sorted, everything is in double.  Where a decision is too close for numbers
 * of another precision, the chain ends there.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/rng.h>
#include <pipeformer/sample.h>

enum { MOST = 700 };

static uint64_t state = 88172645463325252;

static uint32_t
below(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 32) % n);
}

static double
unit(void)
{
    return (double)below(1u << 31) / (double)(1u << 31);
}

/* --- The definition --- */

struct candidate {
    double z, p, order;
    uint32_t id;
};

static struct candidate c[MOST];
static size_t n;
static bool close_call;

static int
by_rank(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    return x->z != y->z ? (x->z > y->z ? -1 : 1)
        : (x->id > y->id) - (x->id < y->id);
}

/* By `order`; what is as good as equal, by rank. */
static int
by_order(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    return x->order != y->order ? (x->order < y->order ? -1 : 1)
        : by_rank(a, b);
}

static void
rank(void)
{
    double total = 0;

    qsort(c, n, sizeof *c, by_rank);
    for (size_t i = 0; i < n; i++)
        total += exp(c[i].z - c[0].z);
    for (size_t i = 0; i < n; i++)
        c[i].p = exp(c[i].z - c[0].z) / total;
}

static bool
at_least(double a, double b)
{
    close_call |= a != b && fabs(a - b) < 1e-5 * (1 + fabs(b));
    return a >= b;
}

static double
entropy(void)
{
    double h = 0;

    for (size_t i = 0; i < n; i++)
        h -= c[i].p > 0 ? c[i].p * log(c[i].p) : 0;
    return h;
}

static void
keep(size_t k, size_t min_keep)
{
    k = k > min_keep ? k : min_keep;
    k = k > 1 ? k : 1;
    n = k < n ? k : n;
}

/* How many of the first have so much mass together. */
static size_t
prefix(double mass)
{
    double sum = 0;
    size_t k = 0;

    while (k < n) {
        sum += c[k++].p;
        if (at_least(sum, mass))
            break;
    }
    return k;
}

static size_t
probable(double p)
{
    size_t k = 0;

    while (k < n && at_least(c[k].p, p))
        k++;
    return k;
}

static void
typical(double m, size_t min_keep)
{
    double h = entropy();

    for (size_t i = 0; i < n; i++)
        c[i].order = fabs(-log(c[i].p) - h);
    qsort(c, n, sizeof *c, by_order);
    for (size_t i = 1; i < n; i++)
        close_call |= c[i].z != c[i - 1].z
            && fabs(c[i].order - c[i - 1].order) < 1e-5;
    keep(prefix(m), min_keep);
}

static void
xtc(double prob, double threshold, double u, size_t min_keep)
{
    size_t above;

    if (prob <= 0 || threshold > 0.5 || n < 2 || u > prob)
        return;
    above = probable(threshold);
    if (above < 2 || n - above + 1 < min_keep)
        return;
    memmove(c, c + above - 1, (n - above + 1) * sizeof *c);
    n -= above - 1;
}

static double
deviation(void)
{
    double mean = 0, squares = 0;

    for (size_t i = 0; i < n; i++)
        mean += c[i].z / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (c[i].z - mean) * (c[i].z - mean) / (double)n;
    return sqrt(squares);
}

static size_t
above(double z)
{
    size_t k = 0;

    while (k < n && at_least(c[k].z, z))
        k++;
    return k;
}

static void
penalty(const struct pf_step *step, const struct pf_surroundings *around)
{
    double x = step->x[0];

    for (size_t i = 0; i < n; i++) {
        size_t count = 0;

        for (size_t k = 0; k < around->n_prev; k++)
            count += around->prev[k] == c[i].id;
        if (step->kind == PF_STEP_LOGIT_BIAS && c[i].id == (uint32_t)x)
            c[i].z += step->x[1];
        else if (count && step->kind == PF_STEP_REPEAT)
            c[i].z = c[i].z > 0 ? c[i].z / x : c[i].z * x;
        else if (count && step->kind == PF_STEP_PRESENCE)
            c[i].z -= x;
        else if (step->kind == PF_STEP_FREQUENCY)
            c[i].z -= x * (double)count;
    }
}

/* DRY without cleverness: each earlier place, as far as it goes back. */
static void
dry(const struct pf_step *step, const struct pf_surroundings *around)
{
    const uint32_t *w = around->prev;
    size_t N = around->n_prev;

    for (size_t k = 0; k < n && (double)N > step->x[2]; k++) {
        size_t best = 0;

        for (size_t at = 1; at < N; at++) {
            size_t len = 0;

            while (w[at] == c[k].id && len < at
                && w[at - 1 - len] == w[N - 1 - len])
                len++;
            best = len > best ? len : best;
        }
        if ((double)best >= step->x[2])
            c[k].z -= step->x[0] * pow(step->x[1], (double)best - step->x[2]);
    }
}

static void
temperature(double t)
{
    if (t == 0)
        n = 1;
    for (size_t i = 0; t > 0 && i < n; i++)
        c[i].z /= t;
}

static void
apply(const struct pf_step *step, const struct pf_surroundings *around)
{
    const double *x = step->x;
    size_t least = around->min_keep;

    switch (step->kind) {
    case PF_STEP_TEMP: temperature(x[0]); break;
    case PF_STEP_DYNATEMP:
        if (n > 1)
            temperature(x[0] + (x[1] - x[0]) * pow(entropy() / log((double)n),
                x[2]));
        break;
    case PF_STEP_TOP_K:
        if (x[0] > 0)
            keep((size_t)x[0], least);
        break;
    case PF_STEP_TOP_P:
        if (x[0] < 1)
            keep(prefix(x[0]), least);
        break;
    case PF_STEP_MIN_P:
        if (x[0] > 0)
            keep(above(c[0].z + log(x[0])), least);
        break;
    case PF_STEP_TYPICAL:
        if (x[0] < 1)
            typical(x[0], least);
        break;
    case PF_STEP_TOP_N_SIGMA:
        if (x[0] > 0)
            keep(above(c[0].z - x[0] * deviation()), least);
        break;
    case PF_STEP_EPSILON:
        if (x[0] > 0)
            keep(probable(x[0]), least);
        break;
    case PF_STEP_ETA:
        if (x[0] > 0)
            keep(probable(fmin(x[0], sqrt(x[0]) * exp(-entropy()))), least);
        break;
    case PF_STEP_XTC: xtc(x[0], x[1], around->u_xtc, least); break;
    case PF_STEP_DRY: dry(step, around); break;
    case PF_STEP_MIROSTAT: /* version 2 */
        keep(probable(exp2(-around->mu)), least);
        break;
    default: penalty(step, around);
    }
    rank();
}

static uint32_t
draw(double u)
{
    double sum = 0;
    size_t last = 0;

    for (size_t i = 0; i < n && c[i].p > 0; i++) {
        last = i;
        sum += c[i].p;
        close_call |= fabs(sum - u) < 1e-5;
        if (sum > u)
            break;
    }
    return c[last].id;
}

/* --- The test --- */

/*
 * Logits of one of several kinds.  All are multiples of 1/64, so that what
 * penalties and temperatures of powers of 2 make of them is exact, and ties
 * are ties; some with a wide spread, many equal, -inf among them.
 */
static size_t
make_logits(float *logits)
{
    size_t V = below(4) ? 1 + below(90) : 1 + below(MOST);
    uint32_t kind = below(6);

    for (size_t i = 0; i < V; i++) {
        double z = kind == 0 ? below(5) : kind == 1 ? 0
            : kind == 2 ? below(100000) : kind == 3 ? below(640) - 320.0
            : below(1280);

        logits[i] = (float)(z / 64 - (kind == 4 ? 100 : 0));
        if (kind == 4 && below(20) == 0)
            logits[i] += 8;
        if (kind == 5 && i && below(3) == 0)
            logits[i] = -INFINITY;
    }
    return V;
}

static struct pf_step
make_step(size_t V)
{
    static const double powers[] = { 0.5, 1, 2, 4 };
    double x = 0.0137 + unit() * 0.97;
    struct pf_step s = { (enum pf_step_kind)below(PF_STEP_MIROSTAT),
        { x, x, x } };

    switch (s.kind) {
    case PF_STEP_TEMP:
        s.x[0] = below(20) ? powers[below(4)] : 0;
        break;
    case PF_STEP_DYNATEMP:
        s.x[0] = unit();
        s.x[1] = s.x[0] + unit();
        break;
    case PF_STEP_TOP_K: s.x[0] = below(3) ? below(20) : below(400); break;
    case PF_STEP_TOP_N_SIGMA: s.x[0] *= 3; break;
    case PF_STEP_EPSILON: case PF_STEP_ETA: s.x[0] = x * x / 10; break;
    case PF_STEP_XTC: s.x[1] /= 5; break;
    case PF_STEP_REPEAT: s.x[0] = powers[below(4)]; break;
    case PF_STEP_FREQUENCY: case PF_STEP_PRESENCE:
        s.x[0] = powers[below(4)] - 1;
        break;
    case PF_STEP_LOGIT_BIAS:
        s.x[0] = below((uint32_t)V);
        s.x[1] = below(256) / 64.0 - 2;
        break;
    case PF_STEP_DRY:
        s.x[0] = powers[below(4)];
        s.x[1] = 2;
        s.x[2] = 1 + below(4);
        break;
    default: break;
    }
    return s;
}

static void
start(const float *logits, size_t V)
{
    n = 0;
    close_call = false;
    for (size_t i = 0; i < V; i++)
        if (logits[i] > -INFINITY)
            c[n++] = (struct candidate){ .z = (double)logits[i],
                .id = (uint32_t)i };
    rank();
}

static void
same(struct pf_sampler *s)
{
    static uint32_t ids[MOST];
    double u = unit(), want[MOST];
    uint32_t id = draw(u);

    if (!close_call)
        assert_int_equal(pf_sampler_draw(s, u), id);
    assert_int_equal(pf_sampler_best(s), c[0].id);
    assert_int_equal(pf_sampler_ranks(s, n, ids, NULL), PF_OK);
    for (size_t i = 0; i < n; i++) {
        want[i] = c[i].p;
        assert_int_equal(ids[i], c[i].id);
        assert_true(pf_sampler_has(s, ids[i]));
        assert_true(fabs(pf_sampler_prob(s, ids[i]) - want[i])
            <= 1e-6 + 1e-5 * want[i]);
    }
}

static void
test_chains(void **ctx)
{
    static float logits[MOST];
    static uint32_t prev[40];
    struct pf_sampler *s;
    size_t whole = 0, kinds[PF_STEP_MIROSTAT + 1] = { 0 };

    (void)ctx;
    assert_int_equal(pf_sampler_new(&s, NULL), PF_OK);
    for (int round = 0; round < 20000; round++) {
        size_t V = make_logits(logits);
        struct pf_surroundings around = { .prev = prev,
            .n_prev = below(40), .min_keep = below(3) ? 0 : below(12),
            .u_xtc = unit(), .mu = unit() * 12 };
        bool exact = true;
        size_t steps = below(5);

        for (size_t i = 0; i < 40; i++)
            prev[i] = below(V < 6 ? (uint32_t)V : 6);
        start(logits, V);
        assert_int_equal(pf_sampler_start(s, logits, V, NULL), PF_OK);
        for (size_t i = 0; i < steps && !close_call; i++) {
            struct pf_step step = make_step(V);

            if (i + 1 == steps && below(8) == 0)
                step = (struct pf_step){ PF_STEP_MIROSTAT, { 2, 5, 0.1 } };
            /* Behind a temperature that is no power of 2, no sum is exact. */
            if (!exact && (pf_step_looks_back(&step)
                    || step.kind == PF_STEP_LOGIT_BIAS))
                continue;
            exact &= step.kind != PF_STEP_DYNATEMP;
            apply(&step, &around);
            assert_int_equal(pf_sampler_step(s, &step, &around, NULL), PF_OK);
            if (close_call)
                break;
            kinds[step.kind]++;
            assert_int_equal(pf_sampler_count(s), n);
            if (below(3) == 0)
                same(s); /* looking changes nothing */
        }
        if (close_call)
            continue;
        whole++;
        same(s);
    }
    assert_true(whole > 15000);
    for (size_t k = 0; k <= PF_STEP_MIROSTAT; k++)
        assert_true(kinds[k] > 500);
    pf_sampler_free(s);
}

/* Large vocabularies, where selection goes by blocks and intervals. */
static void
test_large(void **ctx)
{
    enum { V = 50000 };
    static float logits[V];
    static uint32_t ids[V];
    struct pf_sampler *s;
    struct pf_surroundings around = { 0 };

    (void)ctx;
    assert_int_equal(pf_sampler_new(&s, NULL), PF_OK);
    for (int kind = 0; kind < 6; kind++) {
        for (size_t i = 0; i < V; i++)
            logits[i] = kind == 0 ? 1 : kind == 1 ? (float)below(3)
                : kind == 2 ? (float)(8 * unit()) /* many intervals deep: */
                : kind == 3 ? -(float)pow(2, 120 * unit())
                : kind == 4 ? (float)i * 1e-6f : (float)(V - i) * 1e-3f;
        for (size_t k = 1; k <= V; k = k * 3 + 1) {
            struct pf_step step = { PF_STEP_TOP_K, { (double)k, 0, 0 } };

            assert_int_equal(pf_sampler_start(s, logits, V, NULL), PF_OK);
            assert_int_equal(pf_sampler_step(s, &step, &around, NULL), PF_OK);
            assert_int_equal(pf_sampler_count(s), k < V ? k : V);
            assert_int_equal(pf_sampler_ranks(s, k, ids, NULL), PF_OK);
            for (size_t i = 1; i < k; i++)
                assert_true(logits[ids[i]] < logits[ids[i - 1]]
                    || (logits[ids[i]] == logits[ids[i - 1]]
                        && ids[i] > ids[i - 1]));
            /* None that was left out outranks the last. */
            for (size_t i = 0; k < V && i < V; i++)
                if (!pf_sampler_has(s, (uint32_t)i))
                    assert_true(logits[i] < logits[ids[k - 1]]
                        || (logits[i] == logits[ids[k - 1]]
                            && i > ids[k - 1]));
        }
        assert_int_equal(pf_sampler_start(s, logits, V, NULL), PF_OK);
        assert_int_equal(pf_sampler_ranks(s, V, ids, NULL), PF_OK);
        for (int i = 0; i < 200; i++) {
            double u = i ? unit() : 1 - 0x1p-53, sum = 0;
            uint32_t id = pf_sampler_draw(s, u);
            size_t k = 0;

            while (k < V && ids[k] != id)
                sum += pf_sampler_prob(s, ids[k++]);
            assert_true(pf_sampler_prob(s, id) > 0);
            assert_true(sum < u + 1e-9);
            assert_true(sum + pf_sampler_prob(s, id) > u - 1e-9);
        }
    }
    pf_sampler_free(s);
}

/* As often as the final probabilities say. */
static void
test_distribution(void **ctx)
{
    enum { DRAWS = 100000, V = 40 };
    static const char *const chain[] = { "temp:1.3", "top-p:0.97",
        "min-p:0.01" };
    struct pf_surroundings around = { 0 };
    struct pf_sampler *s;
    float logits[V];
    size_t count[V] = { 0 }, left;
    double chi = 0, p;

    (void)ctx;
    for (size_t i = 0; i < V; i++)
        logits[i] = (float)(i * 7 % V) / 8;
    assert_int_equal(pf_sampler_new(&s, NULL), PF_OK);
    assert_int_equal(pf_sampler_start(s, logits, V, NULL), PF_OK);
    for (size_t i = 0; i < 3; i++) {
        struct pf_step step;

        assert_int_equal(pf_step_parse(&step, chain[i], NULL), PF_OK);
        assert_int_equal(pf_sampler_step(s, &step, &around, NULL), PF_OK);
    }
    for (uint64_t pos = 0; pos < DRAWS; pos++)
        count[pf_sampler_draw(s, pf_uniform(2024, 3, pos, 0))]++;
    left = pf_sampler_count(s);
    assert_true(left > 25 && left < V);
    for (uint32_t i = 0; i < V; i++) {
        p = pf_sampler_prob(s, i);
        if (p == 0)
            assert_int_equal(count[i], 0);
        else
            chi += pow((double)count[i] - DRAWS * p, 2) / (DRAWS * p);
    }
    /* Wilson and Hilferty: above that once in a thousand seeds. */
    p = (double)(left - 1);
    assert_true(chi < p * pow(1 - 2 / (9 * p) + 3.09 * sqrt(2 / (9 * p)), 3));
    assert_true(chi > p * pow(1 - 2 / (9 * p) - 3.09 * sqrt(2 / (9 * p)), 3));
    pf_sampler_free(s);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chains),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_distribution),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
