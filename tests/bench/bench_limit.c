#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * What this machine can do at most, to compare the forward pass with:
 *
 *   bench_limit read THREADS       GB/s of plain reading from memory, each
 *                                  thread eight streams far apart
 *   bench_limit sgemm THREADS M K N   GFLOP/s of OpenBLAS's product of [M, K]
 *                                  and [N, K] transposed; fails where there is
 *                                  no libopenblas
 *
 * The best of some runs.
 */

enum { STREAMS = 8, AHEAD = 16, MAX_THREADS = 64, MIB = 512 };

static double
now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *
room(size_t bytes)
{
    void *p = aligned_alloc(64, bytes);

    if (!p) {
        fprintf(stderr, "bench_limit: out of memory\n");
        exit(1);
    }
    memset(p, 1, bytes);
    return p;
}

typedef uint64_t vec __attribute__((vector_size(64)));

struct part {
    const vec *p;
    size_t n;
    uint64_t sum;
};

static void *
read_part(void *arg)
{
    struct part *part = arg;
    size_t each = part->n / STREAMS;
    const vec *p = part->p;
    vec sum[STREAMS] = { { 0 } };

    for (size_t i = 0; i < each; i++)
        for (size_t s = 0; s < STREAMS; s++) {
            __builtin_prefetch(p + s * each + i + AHEAD);
            sum[s] += p[s * each + i];
        }
    for (size_t s = 0; s < STREAMS; s++)
        for (size_t k = 0; k < 8; k++)
            part->sum += sum[s][k];
    return NULL;
}

static double
read_rate(size_t threads)
{
    size_t bytes = (size_t)MIB << 20, n = bytes / sizeof(vec) / threads;
    vec *data = room(bytes + AHEAD * sizeof(vec));
    uint64_t sum = 0;
    double best = 0;

    for (int run = 0; run < 8; run++) {
        struct part part[MAX_THREADS];
        pthread_t thread[MAX_THREADS];
        double start = now(), rate;

        for (size_t i = 0; i < threads; i++) {
            part[i] = (struct part){ data + i * n, n, 0 };
            if (i && pthread_create(&thread[i], NULL, read_part, &part[i]))
                exit(1);
        }
        read_part(&part[0]);
        for (size_t i = 1; i < threads; i++)
            pthread_join(thread[i], NULL);
        rate = 1e-9 * (double)(n * threads * sizeof(vec)) / (now() - start);
        best = rate > best ? rate : best;
        for (size_t i = 0; i < threads; i++)
            sum += part[i].sum;
    }
    free(data);
    return sum ? best : 0;
}

typedef void sgemm_function(int order, int ta, int tb, int m, int n, int k,
    float alpha, const float *a, int lda, const float *b, int ldb, float beta,
    float *c, int ldc);

static double
sgemm_rate(int threads, int M, int K, int N)
{
    void *lib = dlopen("libopenblas.so.0", RTLD_NOW);
    sgemm_function *sgemm;
    void (*set_threads)(int);
    double best = 0, flops = 2.0 * M * K * N, until;
    float *a, *b, *c;

    if (!lib || !(*(void **)&sgemm = dlsym(lib, "cblas_sgemm"))
        || !(*(void **)&set_threads = dlsym(lib, "openblas_set_num_threads")))
        return -1;
    set_threads(threads);
    a = room((size_t)M * (size_t)K * 4 + 64);
    b = room((size_t)N * (size_t)K * 4 + 64);
    c = room((size_t)M * (size_t)N * 4 + 64);
    for (size_t i = 0; i < (size_t)M * (size_t)K; i++)
        a[i] = (float)(i % 251) * 0.01f;
    for (size_t i = 0; i < (size_t)N * (size_t)K; i++)
        b[i] = (float)(i % 241) * 0.01f;
    until = now() + 1.5;
    do {
        double start = now(), rate;

        sgemm(101, 111, 112, M, N, K, 1, a, K, b, K, 0, c, N);
        rate = 1e-9 * flops / (now() - start);
        best = rate > best ? rate : best;
    } while (now() < until);
    return best;
}

int
main(int argc, char **argv)
{
    size_t threads = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    double rate = -1;

    if (threads < 1 || threads > MAX_THREADS)
        return 2;
    if (argc == 3 && strcmp(argv[1], "read") == 0)
        rate = read_rate(threads);
    else if (argc == 6 && strcmp(argv[1], "sgemm") == 0)
        rate = sgemm_rate((int)threads, atoi(argv[3]), atoi(argv[4]),
            atoi(argv[5]));
    else
        return 2;
    if (rate < 0)
        return 1;
    printf("%.2f\n", rate);
    return 0;
}
