#ifndef PF_CPU_H
#define PF_CPU_H

#include <stdbool.h>

/*
 * The sets of instructions that some files are compiled for, each with all
 * before it: what the processor has and the operating system saves.
 */
enum pf_cpu {
    PF_CPU_PLAIN,  /* what every processor of its kind has */
    PF_CPU_AVX2,   /* x86-64-v3: AVX2, BMI2, FMA and F16C are used */
    PF_CPU_AVX512, /* x86-64-v4: AVX512F, BW, DQ and VL */
};

/* Costs next to nothing. */
enum pf_cpu pf_cpu(void);

/* Whether its maker is AMD (or Hygon, after AMD's design): it has SSE4a. */
bool pf_cpu_amd(void);

#endif
