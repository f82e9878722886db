/*
 * Compiled without flags of any instruction set, so that asking is always
 * safe.  The C library has asked the processor when the program started; what
 * the compiler has for it asks again, and in a virtual machine, where cpuid is
 * a trap, takes a twentieth of a millisecond for that.
 */
#include "cpu.h"

#ifdef __x86_64__

#if __has_include(<sys/platform/x86.h>)
#include <sys/platform/x86.h>

/* As CPU_FEATURE_ACTIVE, which shifts a 1 into the sign. */
static bool
has(unsigned i)
{
    const struct cpuid_feature *leaf = __x86_get_cpuid_feature_leaf(i / 128);

    return leaf->active_array[i % 128 / 32] >> i % 32 & 1;
}

enum pf_cpu
pf_cpu(void)
{
    if (!has(x86_cpu_AVX2) || !has(x86_cpu_BMI2) || !has(x86_cpu_FMA)
        || !has(x86_cpu_F16C))
        return PF_CPU_PLAIN;
    return has(x86_cpu_AVX512F) && has(x86_cpu_AVX512BW)
        && has(x86_cpu_AVX512DQ) && has(x86_cpu_AVX512VL)
        ? PF_CPU_AVX512 : PF_CPU_AVX2;
}

/* What the processor says, whether or not the system lets programs use it. */
bool
pf_cpu_amd(void)
{
    const unsigned i = x86_cpu_SSE4A;

    return __x86_get_cpuid_feature_leaf(i / 128)->cpuid_array[i % 128 / 32]
        >> i % 32 & 1;
}

#else
#include <cpuid.h>
#include <stdatomic.h>

/* Not all compilers know F16C by name. */
static enum pf_cpu
ask(void)
{
    unsigned a, b, c, d;

    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi2")
        || !__builtin_cpu_supports("fma") || !__get_cpuid(1, &a, &b, &c, &d)
        || !(c & bit_F16C))
        return PF_CPU_PLAIN;
    return __builtin_cpu_supports("avx512f")
        && __builtin_cpu_supports("avx512bw")
        && __builtin_cpu_supports("avx512dq")
        && __builtin_cpu_supports("avx512vl") ? PF_CPU_AVX512 : PF_CPU_AVX2;
}

enum pf_cpu
pf_cpu(void)
{
    static atomic_int known; /* plus 1 */
    int cpu = atomic_load_explicit(&known, memory_order_relaxed);

    if (!cpu) {
        cpu = (int)ask() + 1;
        atomic_store_explicit(&known, cpu, memory_order_relaxed);
    }
    return (enum pf_cpu)(cpu - 1);
}

bool
pf_cpu_amd(void)
{
    return __builtin_cpu_supports("sse4a");
}

#endif

#else

enum pf_cpu
pf_cpu(void)
{
    return PF_CPU_PLAIN;
}

bool
pf_cpu_amd(void)
{
    return false;
}

#endif
