#ifndef ATTN_VIEW_TERM_H
#define ATTN_VIEW_TERM_H

#include "attn-view.h"

/* A heat map in the cells of a terminal: what goes where, and colours. */

enum {
    TERM_GAP = 2,          /* columns between maps */
    TERM_LABEL_MAX = 20,   /* columns of a row's label */
    TERM_HEAD_MAX = 12,    /* lines of a column's label */
};

struct term {
    const struct view *v;
    enum term_color color;
    size_t width;
    struct pf_buf line;
    size_t label;     /* columns of the rows' labels */
    size_t digits;    /* and, of these, of the numbers before them */
    size_t cell;      /* columns of a cell */
    bool half;        /* a line is two rows */
    size_t kx, ky;    /* numbers that a cell stands for */
    size_t cols, rows; /* cells */
    size_t per;       /* maps side by side */
    bool upright;     /* columns have their labels, letter under letter */
    long fg, bg;      /* in force on the line; -1: the terminal's own */
};

size_t term_digits(size_t n);

/* Fills in all of t from `label` to `upright`, for the view and the width. */
void term_lay_out(struct term *t);

/* The colour of a number, 0 to 1, as the terminal calls it. */
long term_color_of(const struct term *t, double x);

/* Makes fg and bg (of term_color_of; -1: the terminal's own) those in force. */
void term_set_color(struct term *t, long fg, long bg);

/* The first `columns` of a cell of that value, 0 to 1. */
void term_cell(struct term *t, double x, size_t columns);

void term_spaces(struct term *t, size_t n);

/* Ends the line, without spaces at its end. */
enum pf_status term_end_line(struct term *t, struct pf_out *out,
    struct pf_err *err);

#endif
