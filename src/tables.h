#ifndef PF_TABLES_H
#define PF_TABLES_H

#include <stddef.h>
#include <stdint.h>

#include <pipeformer/err.h>

#include "bpe.h"
#include "vocab.h"

/*
 * The tables of a vocabulary in a file that is mapped and used as it is, so
 * that opening a large one takes no longer than looking through it.  Such a
 * file is made when the project is built (vocab/prepare.c); it depends on the
 * processor's byte order and is checked before it is used.
 */
struct pf_mapping;

/* Maps any file, read-only; an empty one has no bytes. */
enum pf_status pf_mapping_open(struct pf_mapping **m, const char *path,
    struct pf_err *err);
struct pf_span pf_mapping_bytes(const struct pf_mapping *m);
void pf_mapping_free(struct pf_mapping *m);

/* A number for some bytes, to tell whether they are still the same. */
uint64_t pf_tables_hash(const void *bytes, size_t n, uint64_t seed);

/* `source` is the hash of what the tables were made from. */
enum pf_status pf_tables_write(const char *path, uint64_t source,
    const struct pf_vocab *v, const struct pf_bpe *b, struct pf_err *err);

/*
 * Maps a file of tables.  PF_END: there is none at that path, or it is of
 * another version or source, or damaged; then the tables must be made.  The
 * mapping must be freed after v and b.
 */
enum pf_status pf_tables_map(struct pf_mapping **m, const char *path,
    uint64_t source, struct pf_vocab **v, struct pf_bpe **b);

#endif
