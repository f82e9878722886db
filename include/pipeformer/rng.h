#ifndef PIPEFORMER_RNG_H
#define PIPEFORMER_RNG_H

#include <stdint.h>

/*
 * Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011): four random words that are
 * a function of a counter and a key alone, so that a draw needs no state and
 * does not depend on the draws before it.
 */
void pf_philox(uint32_t out[4], const uint32_t counter[4],
    const uint32_t key[2]);

/*
 * The uniform number in [0, 1) that draw `i` (0 or 1) of position `pos` of the
 * sequence with that hash takes: words 2i and 2i + 1 of the counter (pos,
 * seq), low words first, under the key `seed`; 53 bits of them.
 */
double pf_uniform(uint64_t seed, uint64_t seq, uint64_t pos, unsigned i);

#endif
