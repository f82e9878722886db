#ifndef PF_ENCODER_PRIVATE_H
#define PF_ENCODER_PRIVATE_H

#include "added.h"
#include "pieces.h"

/*
 * Bytes that stand for a part of the text: `lead` bytes that were put in
 * front, then those of the normalized part `n` from `skip` on, which came from
 * the text's at `base`; or without n, the text's own.
 */
struct pf_view {
    const char *bytes;
    size_t lead, skip, base;
    const struct pf_ntext *n;
};

struct pf_encoder {
    const struct pf_tokenizer *tok;
    struct pf_pieces pieces;
    struct pf_splitter **splitters; /* one for each cut by a pattern */
    struct pf_ntext norm;
    struct pf_buf *spaced; /* of each cut: a part with a space in front */
    bool *active;
    bool ready; /* the finders are made for what is active */
    struct pf_finder raw, normal;
    enum pf_scan scan; /* if that is all there is to do */
};

/* What is made anew after a change of what is active. */
enum pf_status pf_encoder_ready(struct pf_encoder *enc, struct pf_err *err);

/*
 * A part without added tokens, the text's first or not.  Where a pattern cuts,
 * runs of bytes that are no UTF-8 are pieces, and part the text.
 */
enum pf_status pf_encode_plain(struct pf_encoder *enc, struct pf_view v,
    size_t len, bool first, struct pf_err *err);

#endif
