#ifndef PF_TRAIN_PRIVATE_H
#define PF_TRAIN_PRIVATE_H

#include <pipeformer/train.h>

#include "train-words.h"
#include "vocab.h"

struct pf_train_pair {
    uint32_t left, right;
};

/* A row of merges, in the order learnt. */
struct pf_train_merges {
    struct pf_train_pair *items;
    size_t n, cap;
};

struct pf_trainer {
    char *name; /* the pattern as it was given */
    const char *pattern;
    struct pf_pool *pool;
    struct pf_pretok *pretok;
    struct pf_train_lane *lanes; /* one a thread */
    size_t n_lanes;
    struct pf_vocab *vocab;
    size_t n_special; /* their ids are the first */
    struct pf_train_merges merges;
};

/*
 * A byte as GPT-2 prints it (see vocab.h): its code point, and its place in
 * order of code points, 0 to 255.
 */
uint32_t pf_alphabet_letter(unsigned char byte);
int pf_alphabet_rank(unsigned char byte);

/*
 * Joins pairs of the words' letters until the vocabulary has `size` ids, or no
 * pair is there `min_count` times.  letter[b] is the id of byte b, which the
 * vocabulary has.  The words are used up.
 */
enum pf_status pf_train_merge(struct pf_words *words,
    const uint32_t letter[256], const struct pf_train *train,
    struct pf_vocab *vocab, size_t n_special, struct pf_train_merges *merges,
    struct pf_err *err);

#endif
