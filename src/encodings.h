#ifndef PF_ENCODINGS_H
#define PF_ENCODINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pipeformer/buf.h>
#include <pipeformer/err.h>

struct pf_vocab;
struct pf_bpe;

/*
 * Vocabularies that encodings share: vocab/NAME.tiktoken, or the files of
 * vocab/NAME/.  The i-th name, NULL past the last.
 */
const char *pf_ranks_name(size_t i);

/*
 * Reads one from its files, or with `prepared` maps the tables made of them
 * (vocab/NAME.tables) where those are there; *source is the hash of the
 * files.  *m must be freed after v and b.
 */
struct pf_mapping;
enum pf_status pf_ranks_open(const char *name, bool prepared,
    struct pf_mapping **m, struct pf_vocab **v, struct pf_bpe **b,
    uint64_t *source, struct pf_err *err);

#endif
