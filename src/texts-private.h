#ifndef PF_TEXTS_PRIVATE_H
#define PF_TEXTS_PRIVATE_H

#include <stdint.h>

#include <pipeformer/texts.h>

/* A text in the making. */
struct pf_text {
    struct pf_buf held; /* bytes not written; of the live one, those of a
                           character that is not whole, or `back` */
    struct pf_buf hidden; /* a flag for each of them, or empty: none is */
    size_t back;          /* so many of the last ones are not to be written */
    struct pf_buf key;
    bool single; /* so far one piece from position 0: it may be whole */
    struct pf_text *prev, *next;
};

/* Adds a piece's bytes to those of a text. */
enum pf_status pf_text_add(struct pf_text *t, const struct pf_piece *p,
    struct pf_err *err);

/*
 * How many of a text's bytes may be shown now, the hidden ones among them
 * taken out: those that are whole, or all.
 */
size_t pf_text_ready(struct pf_text *t, bool all);

/* Takes n bytes away from place `at` on, and their flags. */
void pf_text_take(struct pf_text *t, size_t at, size_t n);

/*
 * Texts that came whole, one after the other, with keys that count up: "i7",
 * "i8", ...  Most streams are of nothing else, and of such texts bytes and
 * lengths in a queue are enough, without a key and a map.
 */
enum { PF_RUN_RING = 2 * PF_TEXTS_WAIT };

struct pf_run {
    uint64_t number; /* of the first */
    size_t n, first; /* how many, and where in `len` they begin */
    struct pf_buf bytes; /* of each, what stands after it included */
    size_t head; /* those before are done with */
    size_t rest; /* of the first, behind `head` */
    size_t len[PF_RUN_RING];
};

/* Whether the piece is such a text, and which number comes with it. */
bool pf_run_takes(const struct pf_run *r, const struct pf_piece *p,
    uint64_t *number);

/* Adds it. */
enum pf_status pf_run_add(struct pf_run *r, const struct pf_piece *p,
    uint64_t number, const char *after, size_t after_len, struct pf_err *err);

/*
 * The first is live: writes what is whole of it.  With `next` first ends what
 * has been live, and the one behind it is.
 */
enum pf_status pf_run_write(struct pf_run *r, struct pf_out *out, bool next,
    size_t after_len, struct pf_err *err);

/* Takes the first away, what is not written of it without what stands after
 * it; `key` has room for it. */
enum { PF_RUN_KEY = 24 };
size_t pf_run_shift(struct pf_run *r, size_t after_len, const char **bytes,
    char key[PF_RUN_KEY]);

#endif
