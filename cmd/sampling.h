#ifndef SAMPLING_H
#define SAMPLING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pipeformer/sample.h>

/*
 * The options of `sample`, which `generate` takes too and hands on.  Steps
 * stand first, in the order in which they are explained; those without a
 * letter have the key of their kind.
 */

#define SAMPLING_OPTIONS \
    { "temp", 't', "X", "divide logits by X; 0 is greedy" }, \
    { "top-k", 'k', "N", "keep the N best; 0 keeps all" }, \
    { "top-p", 'p', "X", "keep the best that make up X of the mass" }, \
    { "min-p", SAMPLING_STEP + PF_STEP_MIN_P, "X", \
        "keep p of at least X times the best; also as steps:" }, \
    { "dynatemp", SAMPLING_STEP + PF_STEP_DYNATEMP, "LO:HI[:EXP]", NULL }, \
    { "typical", SAMPLING_STEP + PF_STEP_TYPICAL, "X", NULL }, \
    { "top-n-sigma", SAMPLING_STEP + PF_STEP_TOP_N_SIGMA, "X", NULL }, \
    { "epsilon", SAMPLING_STEP + PF_STEP_EPSILON, "X", NULL }, \
    { "eta", SAMPLING_STEP + PF_STEP_ETA, "X", NULL }, \
    { "xtc", SAMPLING_STEP + PF_STEP_XTC, "P:T", NULL }, \
    { "repeat-penalty", SAMPLING_STEP + PF_STEP_REPEAT, "X", NULL }, \
    { "frequency-penalty", SAMPLING_STEP + PF_STEP_FREQUENCY, "X", NULL }, \
    { "presence-penalty", SAMPLING_STEP + PF_STEP_PRESENCE, "X", NULL }, \
    { "logit-bias", SAMPLING_STEP + PF_STEP_LOGIT_BIAS, "ID:X", NULL }, \
    { "dry", SAMPLING_STEP + PF_STEP_DRY, "M[:BASE[:LEN]]", NULL }, \
    { "mirostat", SAMPLING_STEP + PF_STEP_MIROSTAT, "V[:TAU[:ETA]]", \
        NULL }, \
    { "preset", SAMPLING_PRESET, "NAME", "the steps of hf or llama.cpp" }, \
    { "dry-breaker", SAMPLING_BREAKER, "TEXT", "where --dry stops" }, \
    { "repeat-last-n", SAMPLING_LAST_N, "N", \
        "how far penalties look back (-1: all)" }, \
    { "min-keep", SAMPLING_MIN_KEEP, "N", "what each step leaves at least" }, \
    { "greedy", 'g', NULL, "take the best (the default without a step)" }, \
    { "seed", 's', "N", "of the random numbers; drawn if not given" }, \
    { "max-tokens", 'n', "N", "end a sequence after N tokens" }, \
    { "stop", SAMPLING_STOP, "TEXT", "end it where this text was drawn" }, \
    { "eos", SAMPLING_EOS, "ID,...", "ids that end it (default: the " \
        "model's)" }, \
    { "top", SAMPLING_TOP, "N", "add the N best candidates, field top" }, \
    { "trail", SAMPLING_TRAIL, NULL, "and what dropped them, field trail" }, \
    { "draw", SAMPLING_DRAW, "U[,XTC_U]", "use these numbers in [0,1)" }

enum {
    SAMPLING_STEP = 512, /* + enum pf_step_kind */
    SAMPLING_PRESET = 600,
    SAMPLING_BREAKER,
    SAMPLING_LAST_N,
    SAMPLING_MIN_KEEP,
    SAMPLING_STOP,
    SAMPLING_EOS,
    SAMPLING_TOP,
    SAMPLING_TRAIL,
    SAMPLING_DRAW,
};

struct sampling_step {
    struct pf_step step;
    char *text; /* as it was written: "top-k 40" */
};

struct sampling {
    struct sampling_step *chain; /* in the order written */
    size_t n_chain;
    long long last_n; /* -1: all */
    size_t min_keep;
    const char **breakers; /* as they were written */
    size_t n_breakers;
    struct pf_stops *stops; /* or NULL */
    bool greedy, seeded, trail;
    uint64_t seed;
    size_t max_tokens; /* 0: no limit */
    uint32_t *eos;
    size_t n_eos;
    bool eos_given;
    size_t top;
    double draw, draw_xtc; /* < 0: from the generator */
};

#define SAMPLING_INIT { .draw = -1, .draw_xtc = -1, .last_n = -1 }

/* Takes an option; false if it is none of these. */
bool sampling_option(struct sampling *s, int key, const char *arg);

/* Does the chain leave anything to chance? */
bool sampling_random(const struct sampling *s);

bool sampling_has(const struct sampling *s, enum pf_step_kind kind);

/* Does any step look at the ids before? */
bool sampling_looks_back(const struct sampling *s);

/* The last step if it is mirostat, else NULL. */
const struct pf_step *sampling_mirostat(const struct sampling *s);

/* "12,34" as ids; false if it is no such list.  The caller frees them. */
bool sampling_ids(const char *arg, uint32_t **ids, size_t *n);

void sampling_fini(struct sampling *s);

#endif
