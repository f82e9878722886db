#ifndef PIPEFORMER_TEXTS_H
#define PIPEFORMER_TEXTS_H

#include <stdbool.h>
#include <stddef.h>

#include <pipeformer/buf.h>
#include <pipeformer/err.h>
#include <pipeformer/io.h>

/*
 * Texts of several sequences that come in pieces, interleaved, written one
 * after the other: the first is live, its bytes go out as they come, never a
 * part of a UTF-8 character; the others are held and written whole when they
 * are done, in the order in which they ended.
 */
struct pf_texts;

/*
 * A text that came in one piece from position 0, not done, may be whole or go
 * on: it waits for so many others to begin after it.
 */
enum { PF_TEXTS_WAIT = 1024 };

/* `after` (borrowed) is written after each text. */
enum pf_status pf_texts_new(struct pf_texts **texts, struct pf_out *out,
    const char *after, size_t after_len, struct pf_err *err);
void pf_texts_free(struct pf_texts *texts);

/* A piece of a sequence's text, all borrowed for the call. */
struct pf_piece {
    const char *key; /* of the sequence */
    size_t key_len;
    size_t pos; /* 0 begins its text anew */
    bool more;  /* promises that it goes on */
    bool done;  /* ends it */

    const char *bytes;
    size_t n;
    const char *hidden; /* n flags: not 0 where a byte is not to be shown; or
                           NULL: all are */

    /*
     * So many bytes at the end of the text so far, hidden ones counted, wait
     * for what comes next.  With `done` they are shown, unless `cut` says that
     * they are no part of the text.
     */
    size_t held;
    bool cut;
};

enum pf_status pf_texts_add(struct pf_texts *texts, const struct pf_piece *p,
    struct pf_err *err);

/* No more pieces: all that is held is written. */
enum pf_status pf_texts_end(struct pf_texts *texts, struct pf_err *err);

/*
 * Another use, instead of the above: appends to `out` what is whole of the
 * sequence's bytes, those that waited and these; all of them if the piece is
 * `done`.  Bytes that are no UTF-8 become U+FFFD, one for each maximal
 * subpart.
 */
enum pf_status pf_texts_piece(struct pf_texts *texts,
    const struct pf_piece *p, struct pf_buf *out, struct pf_err *err);

#endif
