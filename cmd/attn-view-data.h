#ifndef ATTN_VIEW_DATA_H
#define ATTN_VIEW_DATA_H

#include <stdbool.h>
#include <stddef.h>

#include <pipeformer/buf.h>
#include <pipeformer/tokenizer.h>

#include "attn-view.h"
#include "encoding.h"
#include "gather.h"

/* From records to what is drawn. */

/* Strings, one behind the other. */
struct names {
    struct pf_buf text, ends; /* ends: a size_t each */
    size_t n;
};

void names_fini(struct names *n);
void names_add(struct names *n, const char *s, size_t len);
const char *names_get(const struct names *n, size_t i, size_t *len);

/* What kind of matrix a field is. */
enum field_kind {
    FIELD_WEIGHTS, /* of queries, on keys */
    FIELD_KEYS,    /* something else between queries and keys */
    FIELD_UNITS,   /* of positions and components */
    FIELD_OTHER,
};

enum field_kind field_kind(const char *name);

/* What is kept of a sequence. */
struct view_data {
    struct view_part *first, *last; /* its maps, a part a record */
    size_t S, bytes;
    bool vector;      /* of one axis, its columns are what has names */
    bool elsewhere;   /* keys are not the queries' tokens */
    struct names rows, keys; /* rows: all or none */
    struct pf_buf segments;  /* int each */
    bool pair;
    struct pf_buf text, seq; /* seq: JSON */
};

/* Where the texts of ids come from. */
struct view_tokens {
    struct encoding encoding;   /* asked for */
    struct pf_tokenizer *tok;
    bool sure, looked; /* tok was asked for; the model was looked for */
    struct pf_model *model;
};

void view_tokens_fini(struct view_tokens *t);

enum pf_status view_data_begin(struct gathered *g,
    const struct pf_record *rec, const struct maps *m, struct pf_err *err);
enum pf_status view_data_add(struct gathered *g, struct pf_record *rec,
    const struct maps *m, struct view_tokens *tokens, struct pf_err *err);
void view_data_free(void *data);

/* How it is to be drawn. */
struct view_choice {
    const char *field, *title; /* title NULL: the text's beginning */
    bool words, has_range;
    double lo, hi;
};

/* A view, and what it points to; [0] is of rows, [1] of columns. */
struct sheet {
    struct view v;
    float *numbers;
    const float **map;
    size_t *layers, *heads;
    int *part[2];
    struct view_label *label[2];
    struct pf_buf text[2], title, seq;
};

/* s is zeroed, and to be freed after a failure, too. */
enum pf_status sheet_make(struct sheet *s, struct gathered *g,
    const struct view_choice *choice, struct pf_err *err);
void sheet_fini(struct sheet *s);

/*
 * Merges sub-tokens to words.  names[axis] (NULL: that axis has none and stays
 * as it is) are tokens; words[axis] become the words, and s->part[axis], if
 * there is one, what their first tokens have.
 */
enum pf_status sheet_words(struct sheet *s, const struct names *const names[2],
    struct names words[2], struct pf_err *err);

/* Of a record: [n_maps][T][S]. */
struct view_part {
    struct view_part *next;
    size_t T, S;
    float *v;
};

#endif
