/*
 * attn-view -o svg --lines: queries on the left, keys on the right, and a line
 * from each query to each key, as strong as the weight (as in BertViz, Vig
 * 2019).
 */
#include "attn-view-svg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ACROSS = 240, NAMES_MAX = 4096, LINES_MAX = 1 << 18, GAP = 8 };

static double
pitch(const struct view *v)
{
    size_t n = v->T > v->S ? v->T : v->S;

    return n <= 40 ? 24 : n <= 80 ? 18 : 14;
}

static void
put_names(struct pf_buf *b, const struct view *v, double left, double y)
{
    double step = pitch(v);

    for (int axis = 0; axis < 2; axis++) {
        const struct view_axis *a = axis ? &v->key : &v->query;
        struct svg_text at = { axis ? left + ACROSS + GAP : left - GAP, y - 20,
            SVG_FONT, 0, axis ? "start" : "end", SVG_GREY, false };

        svg_text(b, &at, a->title, strlen(a->title));
        at.color = 0;
        for (size_t i = 0; i < a->n; i++) {
            at.y = y + (double)i * step + SVG_FONT * 0.35;
            svg_label(b, &at, a, i);
        }
    }
}

/* Lines that are at least `min`; how many. */
static size_t
put_lines(struct pf_buf *b, const struct view *v, double min, double left,
    double y)
{
    double step = pitch(v), x;
    size_t lines = 0;

    pf_buf_adds(b, "<g stroke=\"#1f5fa8\" stroke-width=\"2\" "
        "stroke-linecap=\"round\">\n");
    for (size_t t = 0; t < v->T; t++)
        for (size_t s = 0; s < v->S; s++) {
            float w = v->map[0][t * v->S + s];

            x = view_scale(v, w);
            if ((double)w < min || x <= 0)
                continue;
            if (lines++ < LINES_MAX)
                pf_buf_printf(b, "<line x1=\"%.5g\" y1=\"%.5g\" x2=\"%.5g\" "
                    "y2=\"%.5g\" stroke-opacity=\"%.3f\"/>\n", left,
                    y + (double)t * step, left + ACROSS, y + (double)s * step,
                    x);
        }
    pf_buf_adds(b, "</g>\n");
    return lines;
}

enum pf_status
view_svg_lines(const struct view *v, double min, struct pf_out *out,
    struct pf_err *err)
{
    size_t n = v->T > v->S ? v->T : v->S, lines;
    double left = SVG_MARGIN + svg_letters(view_label_width(&v->query,
        SVG_LABEL), SVG_FONT), y = SVG_HEADER + 40, width;
    struct pf_buf b = PF_BUF_INIT;
    char more[80];
    enum pf_status st;

    if (v->L * v->H != 1)
        return pf_fail(err, PF_ESHAPE, "%.100s: --lines is for one map, and "
            "these are %zu; choose one with -l and --heads", v->field,
            v->L * v->H);
    if (n > NAMES_MAX)
        return pf_fail(err, PF_ESHAPE, "%.100s: %zu x %zu are too much for "
            "lines (%d at most)", v->field, v->T, v->S, NAMES_MAX);
    if (left < SVG_MARGIN + 50)
        left = SVG_MARGIN + 50;
    left += GAP;
    width = left + ACROSS + GAP + SVG_MARGIN + 30
        + svg_letters(view_label_width(&v->key, SVG_LABEL), SVG_FONT);
    snprintf(more, sizeof more, "lines from %.3g, full at %.3g",
        min > v->lo ? min : v->lo, v->hi);
    svg_begin(&b, v, fmax(width, svg_header_width(v, more)),
        y + (double)n * pitch(v) + SVG_MARGIN);
    svg_put_header(&b, v, more);
    lines = put_lines(&b, v, min, left, y);
    put_names(&b, v, left, y);
    svg_end(&b);
    st = lines > LINES_MAX ? pf_fail(err, PF_ESHAPE, "%.100s: %zu lines are "
        "too many, %d at most; give a larger --min", v->field, lines,
        LINES_MAX) : pf_buf_check(&b, err);
    if (!st)
        st = pf_out_write(out, b.data, b.len, err);
    pf_buf_fini(&b);
    return st;
}
