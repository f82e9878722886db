/*
 * attn-view -o svg: heat maps.
 *
 * The cells of one colour are one path, in units of cells: rows of equal cells
 * are one rectangle of it, and those of the lowest colour, most of a causal
 * map, are the ground they lie on.  So a map of many keys stays small.
 */
#include "attn-view-svg.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/colormap.h>
#include <pipeformer/tensor.h>

enum {
    COLORS = 256,
    BAR = 14,         /* width of the bar of colours */
    BAR_MIN = 120,    /* and its height */
    BAR_MAX = 300,
    BAR_ROOM = 90,    /* with its gap and its numbers */
    SMALL = 120,      /* a map of a grid, about */
    GRID_GAP = 10,
    ANNOTATED = 34,   /* a cell with a number in it */
};

#define CELLS_MAX ((size_t)1 << 22)    /* in a picture */
#define NUMBERS_MAX ((size_t)1 << 14)  /* written into cells */

static unsigned
level(const struct view *v, float x)
{
    return (unsigned)(view_scale(v, x) * (COLORS - 1) + 0.5);
}

/* A cell, and where the first one of a map is. */
struct place {
    double x, y, w, h;
};

/* The cells of a map. */
static enum pf_status
put_map(struct pf_buf *b, const struct view *v, const float *map,
    const struct place *at, struct pf_err *err)
{
    struct pf_buf *path = calloc(COLORS, sizeof *path);
    unsigned color;
    size_t n;

    if (!path)
        return pf_fail_mem(err);
    pf_buf_printf(b, "<g transform=\"translate(%.5g %.5g) scale(%.4g %.4g)\" "
        "shape-rendering=\"crispEdges\">\n<rect width=\"%zu\" height=\"%zu\" "
        "fill=\"#%06x\"/>\n", at->x, at->y, at->w, at->h, v->S, v->T,
        (unsigned)pf_viridis(0));
    for (size_t t = 0; t < v->T; t++)
        for (size_t s = 0; s < v->S; s += n) {
            color = level(v, map[t * v->S + s]);
            for (n = 1; s + n < v->S
                && level(v, map[t * v->S + s + n]) == color; n++)
                ;
            if (color)
                pf_buf_printf(&path[color], "M%zu %zuh%zuv1h-%zuz", s, t, n,
                    n);
        }
    for (unsigned c = 0; c < COLORS; c++) {
        if (path[c].len) {
            pf_buf_printf(b, "<path fill=\"#%06x\" d=\"",
                (unsigned)pf_viridis(c / (COLORS - 1.0)));
            pf_buf_add(b, path[c].data, path[c].len);
            pf_buf_adds(b, "\"/>\n");
        }
        b->failed |= path[c].failed;
        pf_buf_fini(&path[c]);
    }
    free(path);
    pf_buf_adds(b, "</g>\n");
    return PF_OK;
}

/* Numbers in cells, dark on light and light on dark. */
static void
put_numbers(struct pf_buf *b, const struct view *v, const float *map,
    const struct place *p)
{
    char text[32];

    for (size_t t = 0; t < v->T; t++)
        for (size_t s = 0; s < v->S; s++) {
            float w = map[t * v->S + s];
            uint32_t ground = pf_viridis(level(v, w) / (COLORS - 1.0));
            struct svg_text at = { p->x + ((double)s + 0.5) * p->w,
                p->y + ((double)t + 0.5) * p->h + 4, 11, 0, "middle",
                pf_luminance(ground) > 0.179 ? 0 : 0xffffff, false };
            int n = snprintf(text, sizeof text, v->weights ? "%.2f" : "%.2g",
                (double)w);

            svg_text(b, &at, text, (size_t)n);
        }
}

/* The colours and the numbers that they stand for. */
static void
put_bar(struct pf_buf *b, const struct view *v, double x, double y,
    double height)
{
    char text[32];

    pf_buf_adds(b, "<defs><linearGradient id=\"viridis\" x1=\"0\" y1=\"1\" "
        "x2=\"0\" y2=\"0\">\n");
    for (int i = 0; i <= 16; i++)
        pf_buf_printf(b, "<stop offset=\"%.4g\" stop-color=\"#%06x\"/>\n",
            i / 16.0, (unsigned)pf_viridis(i / 16.0));
    pf_buf_printf(b, "</linearGradient></defs>\n<rect x=\"%.5g\" y=\"%.5g\" "
        "width=\"%d\" height=\"%.5g\" fill=\"url(#viridis)\"/>\n", x, y, BAR,
        height);
    for (int i = 0; i <= 2; i++) {
        double at = y + height * (2 - i) / 2.0;
        int n = snprintf(text, sizeof text, "%.3g",
            v->lo + (v->hi - v->lo) * i / 2.0);

        svg_text(b, &(struct svg_text){ x + BAR + 6, at + (i == 2 ? 10 : i
            ? 4 : 0), 11, 0, "start", 0, false }, text, (size_t)n);
    }
}

/* --- One map --- */

/* Labels of an axis: their size, and of how many one is written. */
struct labels {
    double font, room, turn;
    size_t every;
};

struct layout {
    struct place map;
    struct labels rows, columns;
};

static double
cell_size(size_t n)
{
    return n <= 12 ? 40 : n <= 20 ? 30 : n <= 40 ? 20 : n <= 64 ? 15
        : n <= 160 ? 11 : n <= 400 ? 5 : n <= 1000 ? 2 : 1;
}

static struct labels
lay_out_labels(const struct view_axis *a, double cell, double turn)
{
    struct labels l = { .font = cell >= 14 ? SVG_FONT : 9, .turn = turn,
        .every = 1 };

    if (cell < 9)
        l.every = (size_t)ceil(10 / cell);
    l.room = svg_letters(view_label_width(a, SVG_LABEL), l.font);
    if (turn < 0 && turn > -90)
        l.room = (l.room + l.font) * 0.7072;
    return l;
}

static struct layout
lay_out(const struct view *v, bool annotate)
{
    double w = cell_size(v->S), h = cell_size(v->T);
    double least = annotate ? ANNOTATED : 1;
    struct layout l;

    /* Cells are square, unless there are many more of one than the other. */
    l.map.w = fmax(fmin(w, fmax(h, 16)), least);
    l.map.h = fmax(fmin(h, fmax(w, 16)), least);
    l.rows = lay_out_labels(&v->query, l.map.h, 0);
    l.columns = lay_out_labels(&v->key, l.map.w, l.map.w >= 18 ? -45 : -90);
    l.map.x = SVG_MARGIN + (v->query.title[0] ? 22 : 0) + l.rows.room + 8;
    l.map.y = SVG_HEADER + (v->key.title[0] ? 20 : 0) + l.columns.room + 8;
    return l;
}

static void
put_labels(struct pf_buf *b, const struct view *v, const struct layout *l)
{
    const struct place *m = &l->map;
    double w = m->w * (double)v->S, h = m->h * (double)v->T, at;

    if (v->key.title[0])
        svg_text(b, &(struct svg_text){ m->x + w / 2, SVG_HEADER + 12,
            SVG_FONT, 0, "middle", SVG_GREY, false }, v->key.title,
            strlen(v->key.title));
    if (v->query.title[0])
        svg_text(b, &(struct svg_text){ SVG_MARGIN + 10, m->y + h / 2,
            SVG_FONT, -90, "middle", SVG_GREY, false }, v->query.title,
            strlen(v->query.title));
    for (size_t t = 0; t < v->T; t += l->rows.every)
        svg_label(b, &(struct svg_text){ m->x - 7, m->y + ((double)t + 0.5)
            * m->h + l->rows.font * 0.35, l->rows.font, 0, "end", 0, false },
            &v->query, t);
    for (size_t s = 0; s < v->S; s += l->columns.every) {
        at = m->x + ((double)s + 0.5) * m->w
            + (l->columns.turn < -45 ? l->columns.font * 0.35 : 2);
        svg_label(b, &(struct svg_text){ at, m->y - 6, l->columns.font,
            l->columns.turn, "start", 0, false }, &v->key, s);
    }
}

static enum pf_status
put_one(struct pf_buf *b, const struct view *v, bool annotate,
    struct pf_err *err)
{
    struct layout l = lay_out(v, annotate);
    double right = l.map.x + l.map.w * (double)v->S;
    double h = l.map.h * (double)v->T;
    double bar = h < BAR_MIN ? BAR_MIN : h < BAR_MAX ? h : BAR_MAX;
    double over = l.columns.turn < -45 ? 0 : l.columns.room - l.map.w / 2;
    enum pf_status st;

    svg_begin(b, v, fmax(right + fmax(over, BAR_ROOM) + SVG_MARGIN,
        svg_header_width(v, "")), l.map.y + fmax(h, bar) + SVG_MARGIN);
    svg_put_header(b, v, "");
    put_labels(b, v, &l);
    st = put_map(b, v, v->map[0], &l.map, err);
    if (annotate)
        put_numbers(b, v, v->map[0], &l.map);
    put_bar(b, v, right + 24, l.map.y, bar);
    return st;
}

/* --- All maps --- */

static void
put_number(struct pf_buf *b, const struct svg_text *at, const char *what,
    const size_t *numbers, size_t i)
{
    char text[48];

    if (numbers)
        svg_text(b, at, text, (size_t)snprintf(text, sizeof text, "%s %zu",
            what, numbers[i]));
}

/* The names of columns and rows of a grid. */
static void
put_names(struct pf_buf *b, const struct view *v, const struct place *first,
    double w, double h)
{
    for (size_t i = 0; i < v->H; i++)
        put_number(b, &(struct svg_text){ first->x + (double)i * (w + GRID_GAP)
            + w / 2, first->y - 8, SVG_FONT, 0, "middle", 0, false }, "head",
            v->heads, i);
    for (size_t l = 0; l < v->L; l++)
        put_number(b, &(struct svg_text){ first->x - 10, first->y
            + (double)l * (h + GRID_GAP) + h / 2 + 4, SVG_FONT, 0, "end", 0,
            false }, "layer", v->layers, l);
}

static enum pf_status
put_grid(struct pf_buf *b, const struct view *v, struct pf_err *err)
{
    double cw = fmax(floor(SMALL / (double)v->S), 1);
    double ch = fmax(floor(SMALL / (double)v->T), 1);
    struct place at = { SVG_MARGIN + (v->layers ? 76 : 0), SVG_HEADER
        + (v->heads ? 24 : 4), fmin(cw, fmax(ch, 8)), fmin(ch, fmax(cw, 8)) };
    double w = at.w * (double)v->S, h = at.h * (double)v->T, x0 = at.x;
    double y0 = at.y, right = x0 + (double)v->H * (w + GRID_GAP);
    double tall = (double)v->L * (h + GRID_GAP) - GRID_GAP;
    double bar = tall < BAR_MIN ? BAR_MIN : tall < BAR_MAX ? tall : BAR_MAX;
    const char *more = v->query.title[0] == 'q'
        ? "a row is a query, a column a key" : "";
    struct pf_buf name = PF_BUF_INIT;
    enum pf_status st = PF_OK;

    svg_begin(b, v, fmax(right + BAR_ROOM, svg_header_width(v, more)),
        y0 + fmax(tall, bar) + SVG_MARGIN);
    svg_put_header(b, v, more);
    put_names(b, v, &at, w, h);
    for (size_t m = 0; m < v->L * v->H && !st; m++) {
        at.x = x0 + (double)(m % v->H) * (w + GRID_GAP);
        at.y = y0 + (double)(m / v->H) * (h + GRID_GAP);
        pf_buf_clear(&name);
        view_name(&name, v, m / v->H, m % v->H);
        pf_buf_adds(b, "<g><title>");
        svg_escape(b, name.data ? name.data : "", name.len);
        pf_buf_adds(b, "</title>\n");
        st = put_map(b, v, v->map[m], &at, err);
        pf_buf_adds(b, "</g>\n");
    }
    pf_buf_fini(&name);
    put_bar(b, v, right + 14, y0, bar);
    return st;
}

enum pf_status
view_svg(const struct view *v, bool annotate, struct pf_out *out,
    struct pf_err *err)
{
    size_t maps = v->L * v->H, cells;
    struct pf_buf b = PF_BUF_INIT;
    enum pf_status st;

    if (!pf_mul(v->T, v->S, &cells) || !pf_mul(cells, maps, &cells)
        || cells > CELLS_MAX)
        return pf_fail(err, PF_ESHAPE, "%.100s: %zu x %zu x %zu cells are too "
            "many for a picture, %zu at most; take fewer maps with -l and "
            "--heads, or slice them with tensor -s", v->field, maps, v->T,
            v->S, CELLS_MAX);
    if (annotate && maps > 1)
        return pf_fail(err, PF_ESHAPE, "%.100s: --annotate is for one map, "
            "and these are %zu; choose one with -l and --heads", v->field,
            maps);
    if (annotate && cells > NUMBERS_MAX)
        return pf_fail(err, PF_ESHAPE, "%.100s: %zu numbers are too many for "
            "--annotate, it writes at most %zu", v->field, cells, NUMBERS_MAX);
    st = maps == 1 ? put_one(&b, v, annotate, err) : put_grid(&b, v, err);
    svg_end(&b);
    if (!st)
        st = pf_buf_check(&b, err);
    if (!st)
        st = pf_out_write(out, b.data, b.len, err);
    pf_buf_fini(&b);
    return st;
}
