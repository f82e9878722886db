#ifndef PIPEFORMER_TOKENIZER_H
#define PIPEFORMER_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pipeformer/err.h>

/*
 * Text to token ids and back: byte-level BPE (Radford et al. 2019; Sennrich
 * et al. 2016).  A text is cut into pieces by a pattern (pretok), each piece
 * starts as single bytes, and the adjacent pair of lowest merge rank is joined
 * until none is left (bpe); a vocabulary names the results (vocab).
 *
 * A tokenizer is read-only once it is open, so threads may share it; what a
 * run needs to write is in its own pf_encoder.
 */
struct pf_tokenizer;

/*
 * Opens the tokenizer of a model directory: vocab.json and merges.txt, with
 * tokenizer_config.json and special_tokens_map.json where they are there.
 * What is missing, malformed or not supported is named.
 */
enum pf_status pf_tokenizer_open(struct pf_tokenizer **tok, const char *dir,
    struct pf_err *err);
void pf_tokenizer_free(struct pf_tokenizer *tok);

/* Largest id + 1. */
size_t pf_tokenizer_size(const struct pf_tokenizer *tok);

/* The bytes of an id (borrowed from tok); NULL where no token has that id. */
const char *pf_tokenizer_token(const struct pf_tokenizer *tok, uint32_t id,
    size_t *len);

/* Whether the id is a special token (<|endoftext|>, ...). */
bool pf_tokenizer_is_special(const struct pf_tokenizer *tok, uint32_t id);

/* The i-th special token in order of id; false past the last. */
bool pf_tokenizer_special(const struct pf_tokenizer *tok, size_t i,
    uint32_t *id);

/* The special token of that text; false if there is none. */
bool pf_tokenizer_find_special(const struct pf_tokenizer *tok,
    const char *text, size_t len, uint32_t *id);

/* Ids the model wants before a text (BOS); how many, borrowed. */
size_t pf_tokenizer_prefix(const struct pf_tokenizer *tok,
    const uint32_t **ids);

/* What a run of encoding writes: scratch, reused from text to text. */
struct pf_encoder;
enum pf_status pf_encoder_new(struct pf_encoder **enc,
    const struct pf_tokenizer *tok, struct pf_err *err);
void pf_encoder_free(struct pf_encoder *enc);

/*
 * Special tokens are recognised in texts from now on: by default none is.
 * (Added tokens that the configuration does not call special always are.)
 */
void pf_encoder_special_all(struct pf_encoder *enc);

/* This one too; id is a special token's. */
enum pf_status pf_encoder_special_add(struct pf_encoder *enc, uint32_t id,
    struct pf_err *err);

/*
 * Encodes any bytes; *ids (*n of them) is borrowed until the next call.  The
 * prefix is not added.  A maximal run of bytes that are no UTF-8 is a piece of
 * its own, and parts the text as a special token does; decoding gives the
 * same bytes back (with a space before each part where the configuration has
 * add_prefix_space).  Fails where the vocabulary lacks a byte that the text
 * has, naming it.
 */
enum pf_status pf_encode(struct pf_encoder *enc, const char *text, size_t len,
    const uint32_t **ids, size_t *n, struct pf_err *err);

#endif
