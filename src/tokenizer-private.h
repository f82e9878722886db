#ifndef PF_TOKENIZER_PRIVATE_H
#define PF_TOKENIZER_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pipeformer/tokenizer.h>

#include "bpe.h"
#include "pretok.h"
#include "vocab.h"

/*
 * A token that is cut out of the text before anything else is done to it: a
 * special one if the run asks for it, another always.
 */
struct pf_added {
    uint32_t id;
    bool special;
};

struct pf_tokenizer {
    struct pf_vocab *vocab;
    struct pf_bpe *bpe;
    struct pf_pretok *pretok;
    uint32_t byte[256]; /* the symbol of a byte, or PF_BPE_NONE */
    struct pf_added *added; /* in order of id */
    size_t n_added;
    uint32_t bos;
    bool add_bos, add_space;
};

/* The index of an added token. */
bool pf_added_find(const struct pf_tokenizer *tok, uint32_t id, size_t *i);

/*
 * The files of a tokenizer, in memory; data NULL for one that is not there.
 * `where` is what stands before their names in a message ("models/x/").
 */
struct pf_tokenizer_files {
    const char *where;
    struct pf_span vocab, merges, config, special;
};

/* pf_tokenizer_open, apart from the reading. */
enum pf_status pf_tokenizer_parse(struct pf_tokenizer **tok,
    const struct pf_tokenizer_files *files, struct pf_err *err);

#endif
