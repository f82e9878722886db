#ifndef SAMPLING_H
#define SAMPLING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pipeformer/sample.h>

/* The options of `sample`, which `generate` takes too and hands on. */

#define SAMPLING_OPTIONS \
    { "temp", 't', "X", "divide logits by X; 0 is greedy" }, \
    { "top-k", 'k', "N", "keep the N best; 0 keeps all" }, \
    { "top-p", 'p', "X", "keep the best that make up X of the mass" }, \
    { "greedy", 'g', NULL, "take the best (the default without a step)" }, \
    { "seed", 's', "N", "of the random numbers; drawn if not given" }, \
    { "max-tokens", 'n', "N", "end a sequence after N tokens" }, \
    { "eos", SAMPLING_EOS, "ID,...", "ids that end a sequence (default: the " \
        "model's)" }, \
    { "top", SAMPLING_TOP, "N", "add the N best candidates, field top" }, \
    { "draw", SAMPLING_DRAW, "U", "use this number in [0,1) for every " \
        "draw" }

enum { SAMPLING_EOS = 512, SAMPLING_TOP, SAMPLING_DRAW };

struct sampling {
    struct pf_step *chain; /* in the order written */
    size_t n_chain;
    bool greedy, seeded;
    uint64_t seed;
    size_t max_tokens; /* 0: no limit */
    uint32_t *eos;
    size_t n_eos;
    bool eos_given;
    size_t top;
    double draw; /* < 0: from the generator */
};

#define SAMPLING_INIT { .draw = -1 }

/* Takes an option; false if it is none of these. */
bool sampling_option(struct sampling *s, int key, const char *arg);

/* Does the chain leave anything to chance? */
bool sampling_random(const struct sampling *s);

void sampling_fini(struct sampling *s);

#endif
