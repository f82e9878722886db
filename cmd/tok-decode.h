#ifndef TOK_DECODE_H
#define TOK_DECODE_H

#include <pipeformer/texts.h>
#include <pipeformer/tokenizer.h>

#include "cli.h"
#include "encoding.h"

struct tok_decode {
    struct pf_tokenizer *tok;
    struct encoding encoding;
    bool slurp, nul, records, list, skip_special;
    size_t raw;
    struct pf_texts *texts;
    struct pf_buf key, bytes, hidden, ids; /* of the record at hand */
};

/* Writes a line an id. */
enum pf_status tok_decode_list(const struct tok_decode *d,
    const uint32_t *ids, size_t n, struct pf_err *err);

/* Decodes a file of flat ids; returns whether to go on. */
bool tok_decode_raw(struct tok_decode *d, const char *file);

#endif
