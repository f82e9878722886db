/* attn-view: what its ways to draw share. */
#include <pipeformer/colormap.h>
#include <pipeformer/width.h>

#include "attn-view.h"

void
view_label(struct pf_buf *b, const struct view_axis *a, size_t i,
    size_t columns)
{
    static const char dot[] = "\u00b7";
    const struct view_label *l = a->label ? &a->label[i] : NULL;
    size_t lead = 0, trail, n;

    if (!l) {
        pf_buf_printf(b, "%zu", i);
        return;
    }
    n = l->len;
    if (pf_width(l->text, n) > columns)
        n = pf_width_cut(l->text, n, columns - 1);
    while (lead < n && l->text[lead] == ' ')
        lead++;
    for (trail = n; trail > lead && l->text[trail - 1] == ' '; trail--)
        ;
    for (size_t k = 0; k < lead; k++)
        pf_buf_adds(b, dot);
    pf_buf_add(b, l->text + lead, trail - lead);
    for (size_t k = trail; k < n; k++)
        pf_buf_adds(b, dot);
    if (n < l->len)
        pf_buf_adds(b, "\u2026");
}

size_t
view_label_width(const struct view_axis *a, size_t most)
{
    size_t widest = 0, w, digits = 1;

    if (!a->label) {
        for (size_t n = a->n; n > 10; n = (n + 9) / 10)
            digits++;
        return digits;
    }
    for (size_t i = 0; i < a->n; i++) {
        w = pf_width(a->label[i].text, a->label[i].len);
        widest = w > widest ? w : widest;
    }
    return widest < most ? widest : most;
}

void
view_name(struct pf_buf *b, const struct view *v, size_t l, size_t h)
{
    if (v->layers)
        pf_buf_printf(b, "layer %zu", v->layers[l]);
    if (v->layers && v->heads)
        pf_buf_adds(b, ", ");
    if (v->heads)
        pf_buf_printf(b, "head %zu", v->heads[h]);
}

double
view_scale(const struct view *v, float x)
{
    return pf_scale((double)x, v->lo, v->hi);
}
