#ifndef PIPEFORMER_TRAIN_H
#define PIPEFORMER_TRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pipeformer/buf.h>
#include <pipeformer/err.h>

/*
 * Learning a byte-level BPE from text (Sennrich et al. 2016), by the rule of
 * HuggingFace's BpeTrainer, whose merges these are.  Texts are cut into pieces
 * by a pattern, and equal pieces are counted; a piece is a row of letters, a
 * byte each.  Then, again and again, the pair of neighbours that is there most
 * often becomes a token (of equals the one of the smaller left id, then of the
 * smaller right id), and a run of one letter is joined from the left.
 *
 *     pf_trainer_new(&t, "gpt2", pool, &err);
 *     pf_trainer_lines(t, text, len, &err);             any number of times
 *     pf_trainer_learn(t, &(struct pf_train){ .size = 32000 }, &err);   once
 *     pf_trainer_file(t, PF_TRAIN_TOKENIZER, &buf, &err);
 *
 * The result depends neither on the number of threads nor on the order of the
 * texts.  After a failure a trainer is good for nothing but to be freed.
 */
struct pf_trainer;
struct pf_pool;

/*
 * A trainer that counts on the threads of `pool`, which is borrowed for its
 * life.  `pattern` is "gpt2", "cl100k", "qwen2", "o200k", or a regular
 * expression in the syntax of tokenizer.json: its matches are the pieces, and
 * so is what lies between two of them.  PF_EFORMAT where it does not compile.
 */
enum pf_status pf_trainer_new(struct pf_trainer **t, const char *pattern,
    struct pf_pool *pool, struct pf_err *err);
void pf_trainer_free(struct pf_trainer *t);

/*
 * Counts the pieces of lines.  Each line, with the newline that ends it, is a
 * text of its own, so no piece goes on in the next line; what comes behind the
 * last newline is a text too.  A maximal run of bytes that are not UTF-8 is a
 * piece.
 */
enum pf_status pf_trainer_lines(struct pf_trainer *t, const char *text,
    size_t len, struct pf_err *err);

/* Counts these bytes as a piece, `count` times; the pattern is not asked. */
enum pf_status pf_trainer_piece(struct pf_trainer *t, const char *piece,
    size_t len, uint64_t count, struct pf_err *err);

/*
 * The same from one line without its newline, as uniq -c writes it: blanks, a
 * decimal count, one tab or space, the piece.  PF_EFORMAT where it is not so.
 */
enum pf_status pf_trainer_count_line(struct pf_trainer *t, const char *line,
    size_t len, struct pf_err *err);

/* Texts and pieces so far: all, and the different ones (each thread's). */
struct pf_train_counts {
    uint64_t texts, pieces, different;
};
struct pf_train_counts pf_trainer_counts(const struct pf_trainer *t);

/* What is to be learnt. */
struct pf_train {
    /* Ids in all: special tokens, then letters, then merges. */
    size_t size;

    /* Pairs that are there less often are not joined; 0 is 1. */
    uint64_t min_count;

    /*
     * Only bytes that were seen become letters.  Otherwise all 256 do, and
     * every text can be encoded.
     */
    bool seen_only;

    /* Get the first ids, in this order.  UTF-8. */
    const char *const *special;
    size_t n_special;

    /* Called now and then with the number of ids there are.  May be NULL. */
    void (*progress)(void *ctx, size_t ids);
    void *ctx;
};

/*
 * Learns from what was counted, and forgets the counts.  There are fewer than
 * `size` ids in the end where no pair is left.  PF_ERANGE where special tokens
 * and letters alone are more than `size`, or the counts are too large to add;
 * PF_EFORMAT for a special token that cannot be one.
 */
enum pf_status pf_trainer_learn(struct pf_trainer *t,
    const struct pf_train *train, struct pf_err *err);

/* How many ids, and how many merges, were learnt. */
size_t pf_trainer_size(const struct pf_trainer *t);
size_t pf_trainer_merges(const struct pf_trainer *t);

/* The bytes of an id, borrowed; of a special token, its text. */
const char *pf_trainer_token(const struct pf_trainer *t, uint32_t id,
    size_t *len);

/* The two ids that merge i joins, in the order learnt. */
void pf_trainer_merge(const struct pf_trainer *t, size_t i, uint32_t *left,
    uint32_t *right);

/* The files that HuggingFace's libraries, and tok-encode, read. */
enum pf_train_file {
    PF_TRAIN_VOCAB,     /* vocab.json: {"token":id,...}, in order of id */
    PF_TRAIN_MERGES,    /* merges.txt: "left right" a line, in order */
    PF_TRAIN_TOKENIZER, /* tokenizer.json: both and the pattern */
    PF_TRAIN_CONFIG,    /* tokenizer_config.json: the special tokens */
    PF_TRAIN_FILES,
};

const char *pf_train_file_name(enum pf_train_file file);

/* Appends the text of that file. */
enum pf_status pf_trainer_file(const struct pf_trainer *t,
    enum pf_train_file file, struct pf_buf *b, struct pf_err *err);

#endif
