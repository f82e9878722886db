#include "kernel-def.h"

#include <stdlib.h>
#include <string.h>

#include "cpu.h"

enum { MAX_TABLES = 5 };

/* The tables that this processor can run, fastest first. */
static size_t
supported(const struct pf_kernels *tables[MAX_TABLES])
{
    size_t n = 0;

#ifdef __x86_64__
    bool zen = pf_cpu_amd();

    if (pf_cpu() >= PF_CPU_AVX512) {
        tables[n++] = zen ? &pf_kernels_avx512_zen : &pf_kernels_avx512;
        tables[n++] = zen ? &pf_kernels_avx512 : &pf_kernels_avx512_zen;
    }
    if (pf_cpu() >= PF_CPU_AVX2) {
        tables[n++] = zen ? &pf_kernels_avx2_zen : &pf_kernels_avx2;
        tables[n++] = zen ? &pf_kernels_avx2 : &pf_kernels_avx2_zen;
    }
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
