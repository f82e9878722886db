#ifndef PF_VOCAB_H
#define PF_VOCAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pipeformer/buf.h>
#include <pipeformer/err.h>

/* Bytes that someone else holds. */
struct pf_span {
    const char *data;
    size_t len;
};

/*
 * A vocabulary: ids and the bytes they stand for, both ways.  Ids may have
 * holes; no two ids have the same bytes.
 */
struct pf_vocab;

/* One past the largest id there may be: an id fits 20 bits. */
enum { PF_VOCAB_MAX = 1 << 20 };

/* `expect` tokens are expected; any number may come. */
enum pf_status pf_vocab_new(struct pf_vocab **v, size_t expect,
    struct pf_err *err);
void pf_vocab_free(struct pf_vocab *v);

/* A copy of the bytes gets this id; PF_EFORMAT if either is taken. */
enum pf_status pf_vocab_add(struct pf_vocab *v, uint32_t id,
    const char *bytes, size_t len, struct pf_err *err);

/* Largest id + 1. */
size_t pf_vocab_size(const struct pf_vocab *v);

/* How many ids there are. */
size_t pf_vocab_count(const struct pf_vocab *v);

/* The bytes of an id, NULL where there are none; until the next add. */
const char *pf_vocab_bytes(const struct pf_vocab *v, uint32_t id,
    size_t *len);

/* Appends the bytes of ids, up to the first that has none; how many had. */
size_t pf_vocab_decode(const struct pf_vocab *v, const uint32_t *ids,
    size_t n, struct pf_buf *out);

/* The id of these bytes. */
bool pf_vocab_find(const struct pf_vocab *v, const char *bytes, size_t len,
    uint32_t *id);

/*
 * The ids of up to PF_VOCAB_MANY spans of bytes, PF_VOCAB_NONE where they are
 * no token's: the same, but the memory that one needs comes while the others
 * are looked at.
 */
enum { PF_VOCAB_MANY = 64 };
#define PF_VOCAB_NONE UINT32_MAX
void pf_vocab_find_many(const struct pf_vocab *v, const struct pf_span *spans,
    size_t n, uint32_t *ids);

/*
 * The tables as they are, for a file of them (tables.h).  A token's bytes end
 * before pool[end - 1] and are `len`; end is 0 where there is no token.
 */
struct pf_vocab_token {
    uint32_t end, len;
};

struct pf_vocab_data {
    const char *pool;
    const struct pf_vocab_token *tokens;
    const uint32_t *slots;
    size_t n_pool, n_tokens, n_slots;
};

struct pf_vocab_data pf_vocab_data(const struct pf_vocab *v);

/*
 * One that works on tables it does not own, to which nothing is added.
 * PF_EFORMAT if they have numbers that lead out of them.
 */
enum pf_status pf_vocab_view(struct pf_vocab **v,
    const struct pf_vocab_data *data, struct pf_err *err);

/* The length of the longest token, or more. */
size_t pf_vocab_longest(const struct pf_vocab *v);

/*
 * Adds what a vocab.json of GPT-2's form has: an object from token to id, the
 * tokens in the printable alphabet below.  Taken as they stand are tokens with
 * a character outside it, and those listed in `literal`.
 */
enum pf_status pf_vocab_read_json(struct pf_vocab *v, const char *json,
    size_t len, const struct pf_span *literal, size_t n_literal,
    struct pf_err *err);

/*
 * GPT-2 writes each byte as one printable character: itself if it is one in
 * Latin-1, else one of U+0100 to U+0143 (a space is U+0120).  Turns n bytes of
 * such text back into at most n bytes at dst and says how many; SIZE_MAX if a
 * character is none of these, or not UTF-8.  No overlap.
 */
size_t pf_alphabet_decode(char *dst, const char *src, size_t n);

/* Bytes made fit for a message, cut off if they are long. */
struct pf_shown {
    char s[80];
};
struct pf_shown pf_show(const char *bytes, size_t len);

#endif
