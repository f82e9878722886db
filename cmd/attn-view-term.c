/*
 * attn-view -o term: heat maps in the cells of a terminal.
 *
 * A number is two columns of a line, and rows have their labels on the left.
 * Where that is too wide it is one column; with colours, and many rows, half a
 * line too (U+2580, the upper half in one colour on a ground of another).
 * What is still too wide is made smaller: a cell is then the greatest of
 * several numbers.  Without colours, ten letters go from light to dark.
 */
#include "attn-view-term.h"

#include <string.h>

#include <pipeformer/width.h>

enum { BAR = 20 }; /* columns of the bar of colours */

/* The greatest of the numbers of a cell. */
static double
value(const struct term *t, size_t map, size_t row, size_t col)
{
    const struct view *v = t->v;
    size_t t_end = (row + 1) * t->ky, s_end = (col + 1) * t->kx;
    float x = v->map[map][row * t->ky * v->S + col * t->kx];

    t_end = t_end < v->T ? t_end : v->T;
    s_end = s_end < v->S ? s_end : v->S;
    for (size_t i = row * t->ky; i < t_end; i++)
        for (size_t k = col * t->kx; k < s_end; k++)
            if (v->map[map][i * v->S + k] > x)
                x = v->map[map][i * v->S + k];
    return view_scale(v, x);
}

/* --- Lines --- */

/* The names of maps from .. to, each over its own. */
static void
put_names(struct term *t, size_t from, size_t to)
{
    const struct view *v = t->v;
    struct pf_buf name = PF_BUF_INIT;
    size_t wide = t->cols * t->cell, n;
    size_t room = t->per > 1 ? wide : t->width - t->label - 1;

    term_spaces(t, t->label + 1);
    for (size_t m = from; m < to; m++) {
        pf_buf_clear(&name);
        view_name(&name, v, m / v->H, m % v->H);
        if (name.len > room && v->layers && v->heads) {
            pf_buf_clear(&name);
            pf_buf_printf(&name, "%zu.%zu", v->layers[m / v->H],
                v->heads[m % v->H]);
        }
        n = name.len < room ? name.len : room;
        pf_buf_add(&t->line, name.data, n);
        if (m + 1 < to)
            term_spaces(t, wide + TERM_GAP - n);
    }
    pf_buf_fini(&name);
}

/* Line `i` of `lines` over the cells of a map: letters, or digits. */
static void
put_head(struct term *t, struct pf_buf *label, size_t i, size_t lines)
{
    const struct view_axis *a = &t->v->key;
    size_t d = term_digits(a->n - 1), at, len, k;
    unsigned w;

    for (size_t c = 0; c < t->cols; c++) {
        pf_buf_clear(label);
        if (!t->upright) {
            pf_buf_printf(label, "%*zu", (int)d, c);
            pf_buf_addc(&t->line, label->len ? label->data[i] : ' ');
            term_spaces(t, t->cell - 1);
            continue;
        }
        /* They stand on the cells. */
        view_label(label, a, c, TERM_HEAD_MAX);
        k = 0;
        for (at = 0; at < label->len; at += len, k++)
            len = pf_width_next(label->data + at, label->len - at, &w);
        if (i < lines - k) {
            term_spaces(t, t->cell);
            continue;
        }
        at = 0;
        for (k = i - (lines - k); k > 0; k--)
            at += pf_width_next(label->data + at, label->len - at, &w);
        len = pf_width_next(label->data + at, label->len - at, &w);
        pf_buf_add(&t->line, label->data + at, len);
        term_spaces(t, t->cell - w);
    }
}

/* The lines over the maps of a band. */
static enum pf_status
put_heads(struct term *t, size_t maps, struct pf_out *out, struct pf_err *err)
{
    struct pf_buf label = PF_BUF_INIT;
    size_t lines = term_digits(t->v->key.n - 1), n, len;
    enum pf_status st = PF_OK;
    unsigned w;

    if (t->kx > 1)
        return PF_OK;
    if (t->upright)
        lines = 0;
    for (size_t c = 0; t->upright && c < t->cols; c++) {
        pf_buf_clear(&label);
        view_label(&label, &t->v->key, c, TERM_HEAD_MAX);
        n = 0;
        for (size_t at = 0; at < label.len; at += len, n++)
            len = pf_width_next(label.data + at, label.len - at, &w);
        lines = n > lines ? n : lines;
    }
    for (size_t i = 0; i < lines && !st; i++) {
        term_spaces(t, t->label + 1);
        for (size_t m = 0; m < maps; m++) {
            put_head(t, &label, i, lines);
            if (m + 1 < maps)
                term_spaces(t, TERM_GAP);
        }
        st = term_end_line(t, out, err);
    }
    pf_buf_fini(&label);
    return st;
}

/* The label of a row of cells, to the right of its column. */
static void
put_label(struct term *t, size_t row)
{
    const struct view_axis *a = &t->v->query;
    struct pf_buf b = PF_BUF_INIT;
    size_t w, room = t->label - t->digits;

    if (t->digits)
        pf_buf_printf(&t->line, "%*zu ", (int)t->digits - 1, row * t->ky);
    view_label(&b, a, row * t->ky, room);
    w = pf_width(b.data ? b.data : "", b.len);
    term_spaces(t, w < room ? room - w : 0);
    pf_buf_add(&t->line, b.data, b.len);
    pf_buf_fini(&b);
    term_spaces(t, 1);
}

/* A line of one map: a row of cells, or two. */
static void
put_row(struct term *t, size_t map, size_t row)
{
    for (size_t c = 0; c < t->cols; c++) {
        double x = value(t, map, row, c);

        if (!t->half) {
            term_cell(t, x, t->cell);
            continue;
        }
        term_set_color(t, term_color_of(t, x), row + 1 < t->rows
            ? term_color_of(t, value(t, map, row + 1, c)) : -1);
        pf_buf_adds(&t->line, "\u2580");
    }
}

/* Maps from .. to, side by side. */
static enum pf_status
put_band(struct term *t, size_t from, size_t to, struct pf_out *out,
    struct pf_err *err)
{
    enum pf_status st = PF_OK;

    if (t->v->layers || t->v->heads) {
        put_names(t, from, to);
        st = term_end_line(t, out, err);
    }
    if (!st)
        st = put_heads(t, to - from, out, err);
    for (size_t r = 0; r < t->rows && !st; r += 1 + t->half) {
        put_label(t, r);
        for (size_t m = from; m < to; m++) {
            put_row(t, m, r);
            if (m + 1 < to)
                term_spaces(t, TERM_GAP);
        }
        st = term_end_line(t, out, err);
    }
    return st ? st : term_end_line(t, out, err);
}

/* The numbers over columns, and what they stand for. */
static enum pf_status
put_legend(struct term *t, struct pf_out *out, struct pf_err *err)
{
    const struct view_axis *a = &t->v->key;
    struct pf_buf b = PF_BUF_INIT;
    size_t column = 0, w;
    enum pf_status st = PF_OK;

    if (!a->label || t->upright || t->digits || t->kx > 1)
        return PF_OK;
    for (size_t i = 0; i < a->n && !st; i++) {
        pf_buf_clear(&b);
        pf_buf_printf(&b, "%zu ", i);
        view_label(&b, a, i, TERM_LABEL_MAX);
        w = pf_width(b.data ? b.data : "", b.len);
        if (column && column + 2 + w > t->width) {
            st = term_end_line(t, out, err);
            column = 0;
        } else if (column) {
            term_spaces(t, 2);
            column += 2;
        }
        pf_buf_add(&t->line, b.data, b.len);
        column += w;
    }
    pf_buf_fini(&b);
    return st ? st : term_end_line(t, out, err);
}

/* What the colours mean. */
static enum pf_status
put_bar(struct term *t, struct pf_out *out, struct pf_err *err)
{
    pf_buf_printf(&t->line, "%.3g ", t->v->lo);
    for (size_t i = 0; i < BAR; i++)
        term_cell(t, (double)i / (BAR - 1), 1);
    term_set_color(t, -1, -1);
    pf_buf_printf(&t->line, " %.3g", t->v->hi);
    if (t->kx > 1) {
        enum pf_status st = term_end_line(t, out, err);

        if (st)
            return st;
        pf_buf_printf(&t->line, "a cell is the greatest of %zu x %zu", t->ky,
            t->kx);
    }
    return term_end_line(t, out, err);
}

enum pf_status
view_term(const struct view *v, enum term_color color, size_t width,
    struct pf_out *out, struct pf_err *err)
{
    struct term t = { .v = v, .color = color, .width = width, .fg = -1,
        .bg = -1 };
    size_t len = strlen(v->title), n, next;
    enum pf_status st;

    pf_buf_add(&t.line, v->title, pf_width_cut(v->title, len, width));
    st = term_end_line(&t, out, err);
    n = v->T && v->S ? v->L * v->H : 0;
    if (!st && !n) {
        pf_readable(&t.line, v->field, strlen(v->field));
        pf_buf_adds(&t.line, ": no numbers");
        st = term_end_line(&t, out, err);
    }
    if (n) {
        term_lay_out(&t);
        if (!st)
            st = put_legend(&t, out, err);
    }
    for (size_t m = 0; m < n && !st; m = next) {
        next = m + t.per < n ? m + t.per : n;
        if (v->H > 1 && next / v->H != m / v->H)
            next = (m / v->H + 1) * v->H;
        st = put_band(&t, m, next, out, err);
    }
    if (!st && n)
        st = put_bar(&t, out, err);
    if (!st)
        st = term_end_line(&t, out, err);
    pf_buf_fini(&t.line);
    return st;
}
