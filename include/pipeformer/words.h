#ifndef PIPEFORMER_WORDS_H
#define PIPEFORMER_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* Tokens put together to words, and their attention maps to maps of words. */

struct pf_word_token {
    const char *text;
    size_t len;
};

/*
 * The word that each of n tokens belongs to, from 0 up, in word[n]; returns
 * how many there are.  Where any token begins with a space or a newline (or
 * the U+2581 of SentencePiece), those begin a word, and so does what stands
 * behind a token that ends with one; else every token begins a word but for
 * those that begin with ##, as WordPiece has them.  Special tokens, by their
 * looks: <s>, <|end|>, [CLS], are words of their own.
 */
size_t pf_words(const struct pf_word_token *token, size_t n, size_t *word);

/*
 * Merges a map (T, S) into out (n_rows, n_columns), of words: what keys of a
 * word get is added up, the rows of a word are averaged (Clark et al. 2019,
 * section 4.1), in double.  row[T] and column[S] rise from 0, each number
 * there; NULL: every one by itself.
 */
bool pf_words_merge(float *out, const float *map, size_t T, size_t S,
    const size_t *row, size_t n_rows, const size_t *column, size_t n_columns);

#endif
