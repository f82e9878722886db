/* attn-view -o svg: text, and what is around a picture. */
#include "attn-view-svg.h"

#include <math.h>
#include <string.h>

#include <pipeformer/width.h>

enum { TITLE_FONT = 15 };

double
svg_letters(size_t columns, double size)
{
    return (double)columns * size * 0.602; /* DejaVu Sans Mono */
}

void
svg_escape(struct pf_buf *b, const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        switch (s[i]) {
        case '&': pf_buf_adds(b, "&amp;"); break;
        case '<': pf_buf_adds(b, "&lt;"); break;
        case '>': pf_buf_adds(b, "&gt;"); break;
        case '"': pf_buf_adds(b, "&quot;"); break;
        default: pf_buf_addc(b, s[i]);
        }
}

void
svg_begin(struct pf_buf *b, const struct view *v, double width, double height)
{
    pf_buf_printf(b, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" "
        "height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\"\n font-family=\"DejaVu "
        "Sans Mono, Menlo, Consolas, monospace\" font-size=\"%d\">\n<title>",
        ceil(width), ceil(height), ceil(width), ceil(height), SVG_FONT);
    svg_escape(b, v->title, strlen(v->title));
    pf_buf_adds(b, "</title>\n<rect width=\"100%\" height=\"100%\" "
        "fill=\"#ffffff\"/>\n");
}

void
svg_end(struct pf_buf *b)
{
    pf_buf_adds(b, "</svg>\n");
}

void
svg_text(struct pf_buf *b, const struct svg_text *at, const char *s,
    size_t len)
{
    pf_buf_printf(b, "<text x=\"%.5g\" y=\"%.5g\"", at->x, at->y);
    if (at->size != SVG_FONT)
        pf_buf_printf(b, " font-size=\"%.3g\"", at->size);
    if (at->anchor[0] != 's')
        pf_buf_printf(b, " text-anchor=\"%s\"", at->anchor);
    if (at->turn != 0)
        pf_buf_printf(b, " transform=\"rotate(%.3g %.5g %.5g)\"", at->turn,
            at->x, at->y);
    if (at->color)
        pf_buf_printf(b, " fill=\"#%06x\"", at->color);
    pf_buf_adds(b, at->bold ? " font-weight=\"bold\">" : ">");
    svg_escape(b, s, len);
    pf_buf_adds(b, "</text>\n");
}

void
svg_label(struct pf_buf *b, const struct svg_text *at,
    const struct view_axis *a, size_t i)
{
    struct pf_buf s = PF_BUF_INIT;

    view_label(&s, a, i, SVG_LABEL);
    svg_text(b, at, s.data ? s.data : "", s.len);
    b->failed |= s.failed;
    pf_buf_fini(&s);
}

/* The line under the title. */
static void
put_subtitle(struct pf_buf *b, const struct view *v, const char *more)
{
    if (strcmp(v->field, v->title) != 0)
        pf_readable(b, v->field, strlen(v->field));
    if (v->L * v->H == 1 && (v->layers || v->heads)) {
        if (b->len)
            pf_buf_adds(b, ", ");
        view_name(b, v, 0, 0);
    }
    if (*more)
        pf_buf_printf(b, "%s%s", b->len ? "; " : "", more);
}

double
svg_header_width(const struct view *v, const char *more)
{
    struct pf_buf s = PF_BUF_INIT;
    double title = svg_letters(pf_width(v->title, strlen(v->title)),
        TITLE_FONT) * 1.05; /* bold */
    double subtitle;

    put_subtitle(&s, v, more);
    subtitle = svg_letters(pf_width(s.data, s.len), SVG_FONT);
    pf_buf_fini(&s);
    return fmax(title, subtitle) + 2 * SVG_MARGIN;
}

void
svg_put_header(struct pf_buf *b, const struct view *v, const char *more)
{
    struct pf_buf s = PF_BUF_INIT;

    svg_text(b, &(struct svg_text){ SVG_MARGIN, SVG_MARGIN + 12, TITLE_FONT, 0,
        "start", 0, true }, v->title, strlen(v->title));
    put_subtitle(&s, v, more);
    if (s.len)
        svg_text(b, &(struct svg_text){ SVG_MARGIN, SVG_MARGIN + 32, SVG_FONT,
            0, "start", SVG_GREY, false }, s.data, s.len);
    b->failed |= s.failed;
    pf_buf_fini(&s);
}
