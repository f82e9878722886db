#ifndef PIPEFORMER_TOKENIZER_H
#define PIPEFORMER_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pipeformer/buf.h>
#include <pipeformer/err.h>

/*
 * Text to token ids and back.  A text is cut at its added tokens, normalized,
 * cut into pieces by a pattern (pretok), and each piece becomes tokens: by
 * byte pair encoding (Sennrich et al. 2016), which starts from single bytes or
 * characters and joins the adjacent pair of lowest rank until none is left, or
 * by WordPiece, the longest tokens from the left.
 *
 * A tokenizer is read-only once it is open, so threads may share it; what a
 * run needs to write is in its own pf_encoder.
 */
struct pf_tokenizer;

/*
 * Opens the tokenizer of a model: a directory with a tokenizer.json, or with
 * vocab.json and merges.txt, or with a vocab.txt (and tokenizer_config.json,
 * special_tokens_map.json where they are there); or one such file, a
 * tokenizer.json or vocab.txt.  What is missing, malformed or not supported is
 * named.
 */
enum pf_status pf_tokenizer_open(struct pf_tokenizer **tok, const char *path,
    struct pf_err *err);

/*
 * Opens a .tiktoken file: lines of a token in base64 and its rank.  `pattern`
 * is gpt2, cl100k, qwen2 or o200k, or a regular expression; `special` (NULL:
 * none) is a file with a JSON object from special token to id.
 */
enum pf_status pf_tokenizer_open_ranks(struct pf_tokenizer **tok,
    const char *path, const char *pattern, const char *special,
    struct pf_err *err);

/* Whether that function takes the pattern; if not, `err` says why. */
enum pf_status pf_tokenizer_check_pattern(const char *pattern,
    struct pf_err *err);

/* An encoding that is known by its name. */
struct pf_encoding {
    const char *name;
    size_t size;         /* largest id + 1 */
    const char *special; /* its special tokens, a space between */
};

/* The i-th of them; NULL past the last. */
const struct pf_encoding *pf_encoding_at(size_t i);

/* Opens the encoding of that name; its data is in vocab/. */
enum pf_status pf_tokenizer_named(struct pf_tokenizer **tok, const char *name,
    struct pf_err *err);
void pf_tokenizer_free(struct pf_tokenizer *tok);

/* Largest id + 1. */
size_t pf_tokenizer_size(const struct pf_tokenizer *tok);

/*
 * What the vocabulary calls an id (borrowed from tok), "##ing" or "\u2581the"
 * included; its bytes where tokens are bytes.  NULL where no token has that
 * id.
 */
const char *pf_tokenizer_token(const struct pf_tokenizer *tok, uint32_t id,
    size_t *len);

/* Whether any text can be encoded; else some lack tokens. */
bool pf_tokenizer_complete(const struct pf_tokenizer *tok);

/* Whether the token begins within a character of UTF-8. */
bool pf_tokenizer_continues(const struct pf_tokenizer *tok, uint32_t id);

/* Whether the id is a special token (<|endoftext|>, ...). */
bool pf_tokenizer_is_special(const struct pf_tokenizer *tok, uint32_t id);

/* The i-th special token in order of id; false past the last. */
bool pf_tokenizer_special(const struct pf_tokenizer *tok, size_t i,
    uint32_t *id);

/* The special token of that text; false if there is none. */
bool pf_tokenizer_find_special(const struct pf_tokenizer *tok,
    const char *text, size_t len, uint32_t *id);

/*
 * What the model has around a text, and around two: a list of ids and of the
 * places of the texts, with BERT's segments.  How many, borrowed; 0 where no
 * pairs are known.
 */
enum { PF_SLOT_TEXT = 0xfffffffe, PF_SLOT_PAIR = 0xfffffffd };

struct pf_slot {
    uint32_t id; /* or PF_SLOT_TEXT, PF_SLOT_PAIR */
    int32_t segment;
};

size_t pf_tokenizer_frame(const struct pf_tokenizer *tok, bool pair,
    const struct pf_slot **slots);

/*
 * Appends what ids add to a text, without the special ones if so told.
 * *begun says whether the text has begun: false before its first id; the call
 * sets it.  The bytes of a text that was encoded come back exactly where
 * tokens are bytes or have them as <0x0A>, but for what normalizing changed;
 * WordPiece loses the white space.  PF_ERANGE for an id that is no token.
 */
enum pf_status pf_tokenizer_decode(const struct pf_tokenizer *tok,
    const uint32_t *ids, size_t n, bool skip_special, bool *begun,
    struct pf_buf *out, struct pf_err *err);

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

/* The special token of that text too; PF_ERANGE if there is none. */
enum pf_status pf_encoder_special_add(struct pf_encoder *enc,
    const char *text, size_t len, struct pf_err *err);

/* From now on pf_encode keeps where each id's bytes lie in the text. */
void pf_encoder_track(struct pf_encoder *enc);

/*
 * Encodes any bytes; *ids (*n of them) is borrowed until the next call.  What
 * the model has around a text is not added.  For a BPE of bytes, a maximal run
 * of bytes that are no UTF-8 is a piece of its own, and parts the text as an
 * added token does; decoding gives the same bytes back (with a space before
 * each part where the configuration has add_prefix_space).  Fails where the
 * vocabulary lacks what the text has, naming it.
 */
enum pf_status pf_encode(struct pf_encoder *enc, const char *text, size_t len,
    const uint32_t **ids, size_t *n, struct pf_err *err);

/*
 * Encodes together as many texts of a block as can be, which is faster where
 * they are short: texts that each have the byte `delimiter`, below ' ', behind
 * them, but maybe the last.  *used is how many bytes of the block those are, 0
 * if the first text must be encoded by itself, as all must after
 * pf_encoder_track; their ids come one after the other, *mark for each
 * delimiter: no other id of theirs is that.
 */
enum pf_status pf_encode_texts(struct pf_encoder *enc, const char *block,
    size_t len, char delimiter, size_t *used, const uint32_t **ids, size_t *n,
    uint32_t *mark, struct pf_err *err);

/*
 * The last place in a text where it may be parted and the parts encoded by
 * themselves, 0 if none is known: before a space behind a letter or digit, for
 * the known patterns; behind white space, for WordPiece.
 */
size_t pf_encoder_border(struct pf_encoder *enc, const char *text,
    size_t len);

/*
 * Encodes what is certain of a text that goes on: *used bytes of it, 0 if
 * more must be known (twice as much, to be fast).  The rest, with what
 * follows, is a text to go on with.
 */
enum pf_status pf_encode_some(struct pf_encoder *enc, const char *text,
    size_t len, size_t *used, const uint32_t **ids, size_t *n,
    struct pf_err *err);

/*
 * With pf_encoder_track: the ids of the last pf_encode lie from [2 * i] to
 * [2 * i + 1] in the text, in bytes.  Where tokens are bytes of normalized
 * text, a range has all of each character that they came from.
 */
const size_t *pf_encoder_spans(const struct pf_encoder *enc);

#endif
