#ifndef SAMPLE_CHOOSE_H
#define SAMPLE_CHOOSE_H

#include <pipeformer/candidates.h>
#include <pipeformer/model.h>

#include "sample-live.h"
#include "sampling.h"

/* From one row of logits to the fields of a record. */
struct chooser {
    struct sampling opt;
    bool probs;
    struct pf_sampler *sampler;
    struct pf_watch watch;
    struct pf_breakers *breakers; /* with --dry */
    struct pf_config config;      /* of the model, if `has_model` */
    bool has_model;
    struct pf_tokenizer *tok; /* where texts are needed */
    struct pf_buf text;
};

/* Opens what of the model the options ask for; ends the command on failure. */
void chooser_open(struct chooser *c);
void chooser_fini(struct chooser *c);

struct row {
    const float *logits;
    size_t V;
    const struct pf_record *from; /* `allow` and `mu` are looked for there */
    uint64_t seq;         /* its hash */
    size_t pos;           /* of the token to come */
    const uint32_t *prev; /* all ids before, if the chain looks back */
    size_t n_prev;
    struct live *live; /* NULL: nothing is fed back, see --rows */
};

/*
 * Draws, or with `probs` does not, and sets what there is to say of it in a
 * record that holds nothing of the row any more.
 */
enum pf_status choose(struct chooser *c, struct pf_record *rec,
    const struct row *row, struct pf_err *err);

/* Is V the vocabulary of the model? */
bool chooser_knows(const struct chooser *c, size_t V);

#endif
