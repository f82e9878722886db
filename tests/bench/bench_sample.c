#include <pipeformer/sample.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * Microseconds to choose a token from V logits, by each sampler: start, log-
 * probability of the raw logits, the step, the draw.  Two kinds of logits:
 * "text", as a language model gives them (a normal distribution, and a few
 * hundred ids that stand out), and "flat" (a normal distribution alone, of
 * which top-p 0.95 keeps nearly all).  Last, beside them, top-p by sorting all
 * candidates.  The figure is the median of many runs.
 *
 *   bench_sample [runs]
 */

enum { ROWS = 4, WINDOW = 1000 };

static struct pf_sampler *sampler;
static uint32_t prev[WINDOW];

static double
now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + 1e-3 * (double)t.tv_nsec;
}

static double
uniform(void)
{
    static uint64_t s = 88172645463325252;

    s ^= s << 13;
    s ^= s >> 7;
    s ^= s << 17;
    return (double)(s >> 11) * 0x1p-53;
}

static void
fill(float *z, size_t V, int flat)
{
    for (size_t i = 0; i < V; i++) {
        double u = uniform(), v = uniform();

        z[i] = (float)(2 * sqrt(-2 * log(u + 1e-300)) * cos(6.2831853 * v));
    }
    for (size_t i = 0; !flat && i < 300; i++)
        z[(size_t)(uniform() * (double)V)] = (float)(8 + 12 * uniform());
}

static void
die(const struct pf_err *err)
{
    fprintf(stderr, "bench_sample: %s\n", err->msg);
    exit(1);
}

static uint32_t
choose(const float *z, size_t V, const char *text)
{
    struct pf_surroundings around = { prev, WINDOW, 0, 0.1, 10, NULL };
    struct pf_step step;
    struct pf_err err;
    double raw;

    if (pf_sampler_start(sampler, z, V, &err))
        die(&err);
    raw = pf_sampler_logsum(sampler);
    if (!text)
        return pf_sampler_best(sampler) + (raw > 1e30);
    if (pf_step_parse(&step, text, &err)
        || pf_sampler_step(sampler, &step, &around, &err))
        die(&err);
    return pf_sampler_draw(sampler, uniform()) + (raw > 1e30);
}

struct candidate {
    float z;
    uint32_t id;
};

static int
by_logit(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    return (x->z < y->z) - (x->z > y->z);
}

static uint32_t
naive_top_p(const float *z, size_t V, double p)
{
    static struct candidate *c;
    double total = 0, sum = 0, u;
    size_t n = 0;

    c = realloc(c, V * sizeof *c);
    if (!c)
        abort();
    for (size_t i = 0; i < V; i++)
        c[i] = (struct candidate){ z[i], (uint32_t)i };
    qsort(c, V, sizeof *c, by_logit);
    for (size_t i = 0; i < V; i++)
        total += exp((double)(c[i].z - c[0].z));
    while (n < V && sum < p * total)
        sum += exp((double)(c[n++].z - c[0].z));
    u = uniform() * sum;
    sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += exp((double)(c[i].z - c[0].z));
        if (sum > u)
            return c[i].id;
    }
    return c[n - 1].id;
}

static int
by_time(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static double
median(float *const rows[ROWS], size_t V, const char *text, int naive,
    size_t runs)
{
    double *t = calloc(runs, sizeof *t), m;
    static volatile uint32_t sink;

    if (!t)
        abort();
    for (size_t i = 0; i < runs; i++) {
        double start = now();

        sink += naive ? naive_top_p(rows[i % ROWS], V, 0.95)
            : choose(rows[i % ROWS], V, text);
        t[i] = now() - start;
    }
    qsort(t, runs, sizeof *t, by_time);
    m = t[runs / 2];
    free(t);
    return m;
}

int
main(int argc, char **argv)
{
    static const char *const chains[] = { NULL, "temp:0.8", "dynatemp:0.5:1.5",
        "top-k:40", "top-p:0.95", "min-p:0.05", "typical:0.95",
        "top-n-sigma:1", "epsilon:0.0003", "eta:0.0003", "xtc:0.5:0.1",
        "repeat-penalty:1.1", "frequency-penalty:0.5", "presence-penalty:0.5",
        "logit-bias:5:1", "dry:0.8", "mirostat:1", "mirostat:2" };
    static const size_t sizes[] = { 4096, 50257, 200000 };
    enum { CHAINS = sizeof chains / sizeof *chains };
    size_t runs = argc > 1 ? (size_t)atoi(argv[1]) : 101;
    float *rows[6][ROWS];
    struct pf_err err;

    if (pf_sampler_new(&sampler, &err))
        die(&err);
    for (size_t i = 0; i < WINDOW; i++)
        prev[i] = (uint32_t)(uniform() * 500);
    printf("%-24s", "microseconds a token");
    for (size_t k = 0; k < 6; k++) {
        printf(" %6zu %s", sizes[k / 2], k % 2 ? "flat" : "text");
        for (size_t r = 0; r < ROWS; r++) {
            rows[k][r] = calloc(sizes[k / 2], sizeof(float));
            if (!rows[k][r])
                abort();
            fill(rows[k][r], sizes[k / 2], k % 2);
        }
    }
    for (size_t i = 0; i <= CHAINS; i++) {
        printf("\n%-24s", i == CHAINS ? "sorting, top-p:0.95"
            : chains[i] ? chains[i] : "greedy");
        for (size_t k = 0; k < 6; k++) {
            printf(" %11.1f", median(rows[k], sizes[k / 2],
                i < CHAINS ? chains[i] : NULL, i == CHAINS,
                i == CHAINS ? runs / 10 + 1 : runs));
            fflush(stdout);
        }
    }
    printf("\n");
    for (size_t k = 0; k < 6; k++)
        for (size_t r = 0; r < ROWS; r++)
            free(rows[k][r]);
    pf_sampler_free(sampler);
    return 0;
}
