#ifndef PF_WORDPIECE_H
#define PF_WORDPIECE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pipeformer/buf.h>

#include "vocab.h"

/*
 * WordPiece (Wu et al. 2016, in BERT's greedy form), as HuggingFace tokenizers
 * 0.22.2 does it: a text is split into words, each word into the longest
 * tokens that fit, from the left.
 */

/*
 * BertPreTokenizer: words are what white space parts, and each punctuation
 * character is a word of its own.  The text is borrowed; bytes that are no
 * UTF-8 are characters like any other.
 */
struct pf_bert_words {
    const char *p, *end;
};

void pf_bert_words_begin(struct pf_bert_words *w, const char *text,
    size_t len);

/* The next word, never empty; false when the text is used up. */
bool pf_bert_words_next(struct pf_bert_words *w, const char **word,
    size_t *len);

/* A vocabulary made ready: read-only, so threads may share it. */
struct pf_wordpiece;

/* What is written while a word is looked at; one for each thread. */
struct pf_wordpiece_work {
    struct pf_buf word;
};

#define PF_WORDPIECE_WORK_INIT { PF_BUF_INIT }

/*
 * Borrows `v`, to which nothing is added from now on, for its life.  `prefix`
 * ("##", copied) marks a token that goes on with a word; a word of more than
 * `max_chars` characters (100), or one that has no tokens, is `unk`.
 */
enum pf_status pf_wordpiece_new(struct pf_wordpiece **wp,
    const struct pf_vocab *v, const char *prefix, size_t prefix_len,
    uint32_t unk, size_t max_chars, struct pf_err *err);
void pf_wordpiece_free(struct pf_wordpiece *wp);
void pf_wordpiece_work_fini(struct pf_wordpiece_work *work);

/*
 * The *n tokens of one word, which is not empty: at least one.  `ids`, and
 * `ends` unless that is NULL, have room for as many as the word has bytes.
 * Token i is made of the word's bytes from ends[i - 1], or 0, to ends[i] - 1.
 */
enum pf_status pf_wordpiece_split(const struct pf_wordpiece *wp,
    struct pf_wordpiece_work *work, const char *word, size_t len,
    uint32_t *ids, size_t *ends, size_t *n, struct pf_err *err);

/*
 * The WordPiece decoder: appends one token to the text.  A token that begins
 * with `prefix` is glued on without it, another gets a space before; `first`
 * is added as it is.  With `clean_up`, what this wrote loses the spaces that
 * do not belong before punctuation and English contractions.
 */
void pf_wordpiece_decode(struct pf_buf *text, const char *token, size_t len,
    bool first, const char *prefix, size_t prefix_len, bool clean_up);

#endif
