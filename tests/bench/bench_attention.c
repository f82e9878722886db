#include <pipeformer/attention.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/*
 * Bare attention as a function, 12 heads of 64, everything in memory:
 *
 *   bench_attention T THREADS RUNS [causal]
 *
 * prints the least of the runs in milliseconds.
 */

enum { HEADS = 12, D = 64 };

static double
now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static struct pf_tensor
numbers(const char *name, size_t T)
{
    static uint32_t state = 1;
    float *p = malloc(HEADS * T * D * sizeof *p);

    if (!p)
        exit(1);
    for (size_t i = 0; i < HEADS * T * D; i++) {
        state = state * 1664525 + 1013904223;
        p[i] = (float)(int32_t)state * 0x1p-31f;
    }
    return (struct pf_tensor){ .name = name, .dtype = PF_F32, .ndim = 3,
        .shape = { HEADS, T, D }, .data = (const char *)p };
}

int
main(int argc, char **argv)
{
    size_t T = argc > 3 ? strtoul(argv[1], NULL, 10) : 0;
    size_t threads = argc > 3 ? strtoul(argv[2], NULL, 10) : 0;
    struct pf_tensor q, k, v;
    struct pf_attention a;
    struct pf_pool *pool;
    float *out;
    double best = 0, start, took;

    if (!T || !threads)
        return 2;
    q = numbers("q", T);
    k = numbers("k", T);
    v = numbers("v", T);
    out = malloc(HEADS * T * D * sizeof *out);
    if (!out || pf_pool_new(&pool, threads, NULL)
        || pf_attention_plan(&a, &q, &k, &v, NULL, argc > 4
            ? PF_CAUSAL_UPPER_LEFT : PF_CAUSAL_NONE, 0.125, NULL))
        return 1;
    for (int i = 0; i < atoi(argv[3]); i++) {
        start = now();
        if (pf_attention_run(&a, pool, out, NULL, NULL, NULL))
            return 1;
        took = now() - start;
        best = i == 0 || took < best ? took : best;
    }
    printf("%.2f\n", best);
    return 0;
}
