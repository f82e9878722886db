#include <pipeformer/kernel.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "naive.h"

/*
 * GFLOP/s, and GB/s of weights read, of every kernel table this processor can
 * run, beside the plain loops of naive.c.  One thread.  The figure is the
 * best of a few runs in turn; each table takes its turn before the next run,
 * so that a neighbour on the machine disturbs all alike.  The portable table,
 * some hundred times slower, runs once and not at all on the largest shapes.
 *
 *   bench_kernel [milliseconds per figure]
 */

enum { MAX_TABLES = 8 };

static const struct pf_kernels *tables[MAX_TABLES];
static size_t n_tables;
static double budget = 0.1;

static double
now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *
room(size_t n, size_t size)
{
    size_t bytes = (n * size + 63) / 64 * 64 + 64;
    void *p = aligned_alloc(64, bytes);

    if (!p) {
        fprintf(stderr, "bench_kernel: out of memory\n");
        exit(1);
    }
    memset(p, 0, bytes);
    return p;
}

static float *
numbers(size_t n)
{
    static uint32_t state = 1;
    float *p = room(n, sizeof *p);

    for (size_t i = 0; i < n; i++) {
        state = state * 1664525 + 1013904223;
        p[i] = (float)(int32_t)state * 0x1p-31f;
    }
    return p;
}

struct matmul {
    bool nt;
    enum pf_dtype type;
    size_t M, K, N;
    float *x, *y;
    void *w; /* copies many enough not to stay in a cache between runs */
    size_t copies, turn;
};

struct attention {
    size_t T, S, D;
    float *q, *k, *v, *out, *s;
    struct pf_kv_head kv;
};

static void
matmul_run(void *ctx, const struct pf_kernels *t)
{
    struct matmul *c = ctx;
    size_t size = c->type == PF_F32 ? 4 : 2;
    const void *w = (char *)c->w + c->turn++ % c->copies * c->K * c->N * size;

    if (t && c->nt)
        t->matmul_nt(c->y, c->N, c->x, c->K, w, c->type, NULL, c->M, c->K,
            c->N, 0, c->N);
    else if (t)
        t->matmul_nn(c->y, c->N, c->x, c->K, w, c->type, NULL, c->M, c->K,
            c->N, 0, c->N);
    else if (c->nt && c->type == PF_F16)
        naive_nt_f16(c->y, c->x, w, c->M, c->K, c->N);
    else if (c->nt)
        naive_nt_f32(c->y, c->x, w, c->M, c->K, c->N);
    else
        naive_nn_f32(c->y, c->x, w, c->M, c->K, c->N);
}

static void
attention_run(void *ctx, const struct pf_kernels *t)
{
    struct attention *c = ctx;
    float scale = (float)(1 / sqrt((double)c->D));

    if (t)
        t->attn(c->out, c->D, c->q, c->D, &c->kv, c->T, c->D, c->D,
            c->S - c->T + 1, 1, scale);
    else
        naive_attn(c->out, c->q, c->k, c->v, c->T, c->S, c->D, scale, c->s);
}

/* Seconds of each table and, last, of the plain loops; 0 if left out. */
static void
measure(void (*run)(void *, const struct pf_kernels *), void *ctx,
    double flops, double best[MAX_TABLES + 1])
{
    double spent[MAX_TABLES + 1] = { 0 };
    bool again = true;

    for (size_t i = 0; i <= n_tables; i++)
        best[i] = 0;
    while (again) {
        again = false;
        for (size_t i = 0; i <= n_tables; i++) {
            const struct pf_kernels *t = i < n_tables ? tables[i] : NULL;
            bool slow = t == &pf_kernels_portable;
            double start, took;

            if (spent[i] >= budget || (slow && (flops > 1e8 || best[i] > 0)))
                continue;
            start = now();
            run(ctx, t);
            took = now() - start;
            spent[i] += took;
            if (best[i] == 0 || took < best[i])
                best[i] = took;
            again |= spent[i] < budget;
        }
    }
}

static void
print_head(const char *title)
{
    printf("\n%-28s", title);
    for (size_t i = 0; i < n_tables; i++)
        printf(" %15s", tables[i]->name);
    printf(" %15s %8s\n", "plain C", "best/C");
}

static void
print_row(const char *what, double flops, double bytes, const double *best)
{
    printf("%-28s", what);
    for (size_t i = 0; i <= n_tables; i++) {
        if (best[i] > 0)
            printf(" %8.1f %6.1f", 1e-9 * flops / best[i],
                1e-9 * bytes / best[i]);
        else
            printf(" %8s %6s", "-", "-");
    }
    printf(" %8.2f\n", best[n_tables] / best[0]);
    fflush(stdout);
}

static void
bench_matmul(bool nt, enum pf_dtype type, size_t K, size_t N)
{
    static const size_t rows[] = { 1, 4, 8, 16, 32, 128, 512 };
    size_t size = type == PF_F32 ? 4 : 2, bytes = K * N * size;
    struct matmul c = { .nt = nt, .type = type, .K = K, .N = N };
    char what[64];

    c.copies = bytes < 32 << 20 ? (64 << 20) / bytes + 1 : 1;
    if (K * N < 200 * 1000)
        c.copies = 1; /* the small models do stay in the cache */
    c.x = numbers(512 * K);
    c.y = room(512 * N, sizeof *c.y);
    c.w = room(c.copies * K * N, size);
    if (type == PF_F32) {
        float *w = numbers(K * N);

        for (size_t i = 0; i < c.copies; i++)
            memcpy((char *)c.w + i * bytes, w, bytes);
        free(w);
    } else {
        for (size_t i = 0; i < c.copies * K * N; i++)
            ((uint16_t *)c.w)[i] = (uint16_t)(0x3000 + i * 37 % 0x800);
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double best[MAX_TABLES + 1], flops;

        c.M = rows[i];
        flops = 2.0 * (double)c.M * (double)K * (double)N;
        snprintf(what, sizeof what, "%s %s %zux%zu M=%zu",
            nt ? "nt" : "nn", pf_dtype_name(type), K, N, c.M);
        measure(matmul_run, &c, flops, best);
        print_row(what, flops, (double)bytes, best);
    }
    free(c.x);
    free(c.y);
    free(c.w);
}

static void
bench_attention(enum pf_dtype type, size_t T, size_t S, size_t D)
{
    struct attention c = { .T = T, .S = S, .D = D };
    size_t groups = (S + PF_KV_GROUP - 1) / PF_KV_GROUP;
    size_t n = groups * PF_KV_GROUP * D, size = type == PF_F32 ? 4 : 2;
    float *kg = room(n, sizeof *kg), *vg = room(n, sizeof *vg);
    const void **k = room(groups, sizeof *k), **v = room(groups, sizeof *v);
    double best[MAX_TABLES + 1], flops;
    char what[64];

    c.q = numbers(T * D);
    c.k = numbers(S * D);
    c.v = numbers(S * D);
    c.out = room(T * D, sizeof *c.out);
    c.s = room(S, sizeof *c.s);
    memcpy(vg, c.v, S * D * sizeof *vg);
    for (size_t j = 0; j < S; j++)
        for (size_t d = 0; d < D; d++)
            kg[(j / PF_KV_GROUP * D + d) * PF_KV_GROUP + j % PF_KV_GROUP]
                = c.k[j * D + d];
    if (type == PF_F16) {
        for (size_t i = 0; i < n; i++) {
            ((uint16_t *)kg)[i] = (uint16_t)(0x3000 + i * 37 % 0x800);
            ((uint16_t *)vg)[i] = (uint16_t)(0x3000 + i * 41 % 0x800);
        }
    }
    for (size_t g = 0; g < groups; g++) {
        k[g] = (char *)kg + g * PF_KV_GROUP * D * size;
        v[g] = (char *)vg + g * PF_KV_GROUP * D * size;
    }
    c.kv = (struct pf_kv_head){ k, v, 0, 0, type };
    flops = 4.0 * (double)D * (double)T
        * ((double)(S - T) + 0.5 * (double)(T + 1));
    snprintf(what, sizeof what, "attn %s D=%zu T=%zu S=%zu",
        pf_dtype_name(type), D, T, S);
    measure(attention_run, &c, flops, best);
    print_row(what, flops, (double)(2 * size * S * D), best);
    free(kg);
    free(vg);
    free(k);
    free(v);
    free(c.q);
    free(c.k);
    free(c.v);
    free(c.out);
    free(c.s);
}

int
main(int argc, char **argv)
{
    static const size_t widths[] = { 40, 64, 128 };

    if (argc > 1)
        budget = 1e-3 * atof(argv[1]);
    for (; n_tables < MAX_TABLES && pf_kernels_list(n_tables); n_tables++)
        tables[n_tables] = pf_kernels_list(n_tables);

    print_head("GFLOP/s, GB/s of weights");
    bench_matmul(false, PF_F32, 160, 480);
    bench_matmul(false, PF_F32, 640, 160);
    bench_matmul(false, PF_F32, 768, 2304);
    bench_matmul(false, PF_F32, 768, 3072);
    bench_matmul(true, PF_F32, 160, 480);
    bench_matmul(true, PF_F32, 640, 160);
    bench_matmul(true, PF_F32, 768, 2304);
    bench_matmul(true, PF_F32, 768, 3072);
    bench_matmul(true, PF_F32, 768, 50257);
    bench_matmul(true, PF_F16, 768, 50257);

    print_head("GFLOP/s, GB/s of keys, values");
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        for (int h = 0; h < 2; h++) {
            enum pf_dtype type = h ? PF_F16 : PF_F32;

            bench_attention(type, 512, 512, widths[i]);
            bench_attention(type, 2048, 2048, widths[i]);
            bench_attention(type, 6, 2048, widths[i]);
            bench_attention(type, 1, 128, widths[i]);
            bench_attention(type, 1, 2048, widths[i]);
            bench_attention(type, 1, 65536, widths[i]);
        }
    }
    return 0;
}
