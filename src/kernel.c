#include "kernel-def.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/*
 * Which tables this processor can run, fastest first.
 *
 * Compiled without flags of any instruction set, so that asking is always
 * safe.  GCC's and clang's __builtin_cpu_supports ask the processor and the
 * operating system (which must save the wide registers) once; of F16C, which
 * older clangs do not know by name, cpuid tells.
 */

enum { MAX_TABLES = 3 };

#ifdef __x86_64__
/* In a virtual machine cpuid takes microseconds: once is enough. */
static bool
has_f16c(void)
{
    static atomic_int known; /* 1: no, 2: yes */
    unsigned a, b, c, d;

    if (!atomic_load_explicit(&known, memory_order_relaxed))
        atomic_store_explicit(&known, __get_cpuid(1, &a, &b, &c, &d)
            && c & bit_F16C ? 2 : 1, memory_order_relaxed);
    return atomic_load_explicit(&known, memory_order_relaxed) == 2;
}
#endif

static size_t
supported(const struct pf_kernels *tables[MAX_TABLES])
{
    size_t n = 0;

#ifdef __x86_64__
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
        && has_f16c();

    if (avx2 && __builtin_cpu_supports("avx512f")
        && __builtin_cpu_supports("avx512bw")
        && __builtin_cpu_supports("avx512vl")
        && __builtin_cpu_supports("avx512dq"))
        tables[n++] = &pf_kernels_avx512;
    if (avx2)
        tables[n++] = &pf_kernels_avx2;
#endif
    tables[n++] = &pf_kernels_portable;
    return n;
}

const struct pf_kernels *
pf_kernels_list(size_t i)
{
    const struct pf_kernels *tables[MAX_TABLES];

    return i < supported(tables) ? tables[i] : NULL;
}

const struct pf_kernels *
pf_kernels_best(void)
{
    const struct pf_kernels *tables[MAX_TABLES];
    size_t n = supported(tables);
    const char *name = getenv("PIPEFORMER_KERNEL");

    for (size_t i = 0; name && i < n; i++)
        if (strcmp(tables[i]->name, name) == 0)
            return tables[i];
    return tables[0];
}
