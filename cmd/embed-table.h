#ifndef EMBED_TABLE_H
#define EMBED_TABLE_H

#include "cli.h"

/* embed without a model: rows of any table, by their numbers. */
struct embed_table {
    const char *file; /* -w FILE; NULL: there is none */
    const char *name; /* --tensor NAME; NULL: its only matrix */
    struct pf_record rec;
    const struct pf_tensor *rows; /* [V, C] */
};

/* After the options: reads the table, or ends the command. */
void embed_table_open(struct embed_table *t);

/* The rows of T ids become the record's hidden. */
enum pf_status embed_table_rows(const struct embed_table *t,
    struct pf_record *rec, const uint32_t *ids, size_t T, struct pf_err *err);

#endif
