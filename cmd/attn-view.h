#ifndef ATTN_VIEW_H
#define ATTN_VIEW_H

#include <stdbool.h>
#include <stddef.h>

#include <pipeformer/buf.h>
#include <pipeformer/err.h>
#include <pipeformer/io.h>

/*
 * What attn-view draws: L x H matrices of T rows (queries) and S columns
 * (keys), each row and each column with a label.  cmd/attn-view.c makes it of
 * records, the other cmd/attn-view-*.c draw it.
 */

/* The names of rows or of columns. */
struct view_axis {
    const char *title; /* "query", "key", "" */
    struct view_label {
        const char *text; /* readable: UTF-8 without controls, a space as it
                             is, what is no UTF-8 as <0xF0>; markup is not
                             escaped */
        size_t len;
        const char *raw; /* as the record has it, any UTF-8 */
        size_t raw_len;
    } *label;         /* `n` of them, or NULL: numbers stand for them */
    size_t n;
    const int *part;  /* of each: 0 first sentence, 1 second; or NULL */
};

struct view {
    const char *title;      /* of the picture; UTF-8 */
    const char *field;      /* what is drawn: "attn", or --field's name */
    size_t L, H, T, S;
    const size_t *layers;   /* L numbers as people call them, or NULL */
    const size_t *heads;    /* H numbers, or NULL */
    const float *const *map; /* [L][H] -> [T][S]; weights may be anything but
                                NaN, infinities are drawn as the ends */
    struct view_axis query, key;
    bool weights; /* numbers are from 0 to 1, rows sum to at most 1 */
    double lo, hi; /* the range of colours */
    bool same;    /* both axes are the same tokens */
    const char *seq; /* JSON, or NULL */
    size_t seq_len;
};

/* Appends a label's text, or its number, with the spaces at its ends as
 * middle dots, cut to so many columns (at least 1) with an ellipsis. */
void view_label(struct pf_buf *b, const struct view_axis *a, size_t i,
    size_t columns);

/* The widest of the labels in columns, `most` at most. */
size_t view_label_width(const struct view_axis *a, size_t most);

/* "layer 0, head 3" of map [l][h]; as much of it as has numbers. */
void view_name(struct pf_buf *b, const struct view *v, size_t l, size_t h);

/* Where a number lies in the range of colours, 0 to 1. */
double view_scale(const struct view *v, float x);

/* --- The ways to draw it --- */

enum term_color { TERM_PLAIN, TERM_256, TERM_TRUE };

enum { TERM_WIDTH_MIN = 40, TERM_WIDTH_MAX = 10000 }; /* columns */

/* What --color means (NULL: was not given) for the terminal that there is. */
enum term_color term_color(const char *when);

/* Columns of the terminal, else of $COLUMNS, else 80. */
size_t term_width(void);

enum pf_status view_term(const struct view *v, enum term_color color,
    size_t width, struct pf_out *out, struct pf_err *err);

/* A heat map of one head, or small ones of all. */
enum pf_status view_svg(const struct view *v, bool annotate,
    struct pf_out *out, struct pf_err *err);

/* Lines between queries and keys, of one head; those of at least `min`. */
enum pf_status view_svg_lines(const struct view *v, double min,
    struct pf_out *out, struct pf_err *err);

/* A line of JSON a link: of each query, `top` (0: all) of at least `min`. */
enum pf_status view_links(const struct view *v, double min, size_t top,
    struct pf_out *out, struct pf_err *err);

/* One file, readable from file:// with no network. */
enum pf_status view_html(const struct view *v, struct pf_out *out,
    struct pf_err *err);

#endif
