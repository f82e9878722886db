#ifndef ATTN_VIEW_SVG_H
#define ATTN_VIEW_SVG_H

#include "attn-view.h"

/* What the SVG pictures share.  Lengths are in pixels. */

enum {
    SVG_MARGIN = 20,
    SVG_FONT = 12,   /* size of labels */
    SVG_LABEL = 24,  /* columns of a label at most */
    SVG_GREY = 0x555555,
    SVG_HEADER = SVG_MARGIN + 44, /* height of svg_put_header's lines */
};

/* Width of so many columns of letters of that size, all of one width. */
double svg_letters(size_t columns, double size);

/* Appends text escaped: it stays text. */
void svg_escape(struct pf_buf *b, const char *s, size_t len);

/* <svg ...> with a title and a white ground; </svg>. */
void svg_begin(struct pf_buf *b, const struct view *v, double width,
    double height);
void svg_end(struct pf_buf *b);

/* Where text is put, of which end, how it is turned (degrees). */
struct svg_text {
    double x, y, size, turn;
    const char *anchor; /* start, middle, end */
    unsigned color;
    bool bold;
};

void svg_text(struct pf_buf *b, const struct svg_text *at, const char *s,
    size_t len);

/* The label of a row or column, or its number. */
void svg_label(struct pf_buf *b, const struct svg_text *at,
    const struct view_axis *a, size_t i);

/* The picture's title, and under it the field, the map's name if there is one
 * only, and `more`; and how wide a page must be for them. */
double svg_header_width(const struct view *v, const char *more);
void svg_put_header(struct pf_buf *b, const struct view *v, const char *more);

#endif
