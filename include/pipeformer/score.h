#ifndef PIPEFORMER_SCORE_H
#define PIPEFORMER_SCORE_H

#include <stddef.h>
#include <stdint.h>

#include <pipeformer/err.h>
#include <pipeformer/record.h>

/*
 * How likely a model holds the tokens of a text.  The logits of a position are
 * about the next one: row t scores the id at t + 1.  Logarithms are natural,
 * and in double.
 */

/*
 * One token: the logarithm of the softmax of V logits at `id`, and how many
 * ids rank before it (by logit descending, then by id).  PF_ERANGE for NaN,
 * +inf, none that is finite, or an id beyond V.
 */
enum pf_status pf_score_row(const float *logits, size_t V, uint32_t id,
    double *logprob, size_t *rank, struct pf_err *err);

/* What n tokens sum up to; nll is minus the sum of their logprobs. */
struct pf_score_sum {
    size_t n;
    double nll;
};

/*
 * Sets the fields n, nll, perplexity = exp(nll / n), bits = nll / ln 2 and
 * bits_per_token; what is divided by no tokens is NaN.
 */
enum pf_status pf_score_set_sum(struct pf_record *rec,
    const struct pf_score_sum *sum, struct pf_err *err);

/*
 * Follows sequences: of each it keeps the row that will score the first id of
 * its next record, and the one that scored that of the last record, so that a
 * record may take the place of the last one.  When all these rows are more
 * than `mem` bytes, the sequence that was used least recently is forgotten.
 */
struct pf_scorer;

enum pf_status pf_scorer_new(struct pf_scorer **s, size_t mem,
    struct pf_err *err);
void pf_scorer_free(struct pf_scorer *s);

/*
 * Scores the ids of a record with `ids` [T] and `logits` [T, V] and sets the
 * fields logprobs, ranks (of the last n ids) and those of the sum.  No row
 * scores the first id of a sequence, and ids before position `overlap` were
 * scored in the piece before.  With `done` the sequence is forgotten.
 *
 * PF_ESHAPE, PF_ERANGE for what does not fit; PF_ESTATE if the record goes on
 * where the row before is not known.  Nothing is changed then.
 */
enum pf_status pf_scorer_score(struct pf_scorer *s, struct pf_record *rec,
    struct pf_score_sum *sum, struct pf_err *err);

/* Forgets the sequence of a mark. */
enum pf_status pf_scorer_end(struct pf_scorer *s, const struct pf_record *mark,
    struct pf_err *err);

#endif
