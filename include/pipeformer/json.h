#ifndef PIPEFORMER_JSON_H
#define PIPEFORMER_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pipeformer/buf.h>
#include <pipeformer/err.h>

/*
 * JSON (RFC 8259) where text must stay as it came and numbers are many: a
 * cursor over bytes that builds no tree.  Small documents that are looked up
 * by key (a model's configuration) go through cJSON instead, see pf_config_.
 *
 * Strict: no trailing commas, no comments, strings in valid UTF-8, at most
 * PF_JSON_DEPTH levels; nothing recurses.  A cursor stands on the next byte
 * that is not white space after each call that succeeds.
 */
enum { PF_JSON_DEPTH = 512 };

struct pf_json {
    const char *p, *end;
};

/* A cursor on the first value of the text. */
struct pf_json pf_json_at(const char *text, size_t len);

/* Takes the one character c (and white space) if it is next. */
bool pf_json_take(struct pf_json *j, char c);

/* The next byte without taking it; 0 at the end. */
char pf_json_peek(const struct pf_json *j);

/* PF_EFORMAT unless the text is at its end. */
enum pf_status pf_json_end(const struct pf_json *j, struct pf_err *err);

/* Checks and passes over one value; its text, without space, in raw, len. */
enum pf_status pf_json_value(struct pf_json *j, const char **raw, size_t *len,
    struct pf_err *err);

/*
 * Walks an object or an array:
 *     pf_json_open(&j, '{', err);
 *     while ((st = pf_json_next(&j, '}', &first, err)) == PF_OK) ...a member
 * `first` starts true; PF_END when the closing character was taken.
 */
enum pf_status pf_json_open(struct pf_json *j, char c, struct pf_err *err);
enum pf_status pf_json_next(struct pf_json *j, char close, bool *first,
    struct pf_err *err);

/*
 * A string, decoded, appended to `out`.  A lone surrogate escape has no UTF-8
 * form: PF_EFORMAT.
 */
enum pf_status pf_json_string(struct pf_json *j, struct pf_buf *out,
    struct pf_err *err);

/* A member's name and the colon behind it; decoded, appended to `out` unless
 * that is NULL. */
enum pf_status pf_json_key(struct pf_json *j, struct pf_buf *out,
    struct pf_err *err);

/*
 * A number as float32, rounded to nearest-even once (what is beyond float32
 * is an infinity); `null` is NaN.  PF_EFORMAT for anything else.
 */
enum pf_status pf_json_f32(struct pf_json *j, float *v, struct pf_err *err);

/* A number as double, likewise. */
enum pf_status pf_json_f64(struct pf_json *j, double *v, struct pf_err *err);

/*
 * An integer without fraction or exponent: PF_EFORMAT if it is anything else,
 * PF_ERANGE if it does not fit.
 */
enum pf_status pf_json_i64(struct pf_json *j, int64_t *v, struct pf_err *err);

/*
 * Within an array, before one of its values: takes as many plain integers as
 * stand there, each with the comma and the digit behind it, that a fast way
 * can (up to 7 digits, no spaces), and appends them as int64_t.  How many; it
 * may be none.
 */
size_t pf_json_take_ids(struct pf_json *j, struct pf_buf *out);

/*
 * Behind the '[' of a list: takes all of it and its ']', if it is plain
 * integers of up to 7 digits without spaces, and appends them as uint32_t;
 * else false, and the cursor is anywhere.
 */
bool pf_json_take_list(struct pf_json *j, struct pf_buf *out);

/*
 * A whole text that must be one JSON value of the kind: for metadata, whose
 * text a record keeps.
 */
enum pf_status pf_json_text_i64(const char *text, size_t len, int64_t *v,
    struct pf_err *err);
enum pf_status pf_json_text_string(const char *text, size_t len,
    struct pf_buf *out, struct pf_err *err);

/*
 * A float32 as the shortest decimal that reads back as the same float32
 * (Schubfach: Giulietti 2020); NaN as null, infinities as 1e999, -1e999.
 * Writes at most PF_F32_MAX bytes to s, no NUL, and returns how many.
 */
enum { PF_F32_MAX = 16 };
size_t pf_f32_print(char *s, float v);

/* An integer in decimal; at most 20 bytes, no NUL. */
size_t pf_i64_print(char *s, int64_t v);

/* The same, appended. */
void pf_json_add_f32(struct pf_buf *b, float v);
void pf_json_add_f64(struct pf_buf *b, double v);
void pf_json_add_i64(struct pf_buf *b, int64_t v);

/*
 * Ids in decimal, a comma between: where they end, with room at s for
 * PF_ID_MAX bytes each and 8 more.
 */
enum { PF_ID_MAX = 11 };
char *pf_ids_print(char *s, const uint32_t *ids, size_t n);

/* The same, appended. */
void pf_json_add_ids(struct pf_buf *b, const uint32_t *ids, size_t n);

/*
 * "..." with what must be escaped escaped.  What is no UTF-8 in s becomes
 * U+FFFD, one for each maximal subpart.
 */
void pf_json_add_string(struct pf_buf *b, const char *s, size_t len);

#endif
