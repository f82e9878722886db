#ifndef PIPEFORMER_TOKENS_H
#define PIPEFORMER_TOKENS_H

#include <stddef.h>
#include <stdint.h>

#include <pipeformer/record.h>
#include <pipeformer/tokenizer.h>

/* What token ids stand for, as fields of a record. */

/* Appends bytes as text: UTF-8 as it is, any other byte as <0xF0>. */
void pf_token_text(struct pf_buf *b, const char *bytes, size_t len);

/*
 * Sets `tokens`, the text of each id as a list of strings.  The ids exist
 * (they come from pf_encode).
 */
enum pf_status pf_set_tokens(struct pf_record *rec,
    const struct pf_tokenizer *tok, const uint32_t *ids, size_t n,
    struct pf_err *err);

/*
 * Sets `offsets`, I64 [n, 2]: from where to where each id's bytes lie in the
 * text that was encoded, as pf_encoder_spans has it.
 */
enum pf_status pf_set_offsets(struct pf_record *rec, const size_t *spans,
    size_t n, struct pf_err *err);

#endif
