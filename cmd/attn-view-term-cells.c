/* attn-view -o term: where things go, and in which colours. */
#include "attn-view-term.h"

#include <stdint.h>

#include <pipeformer/colormap.h>
#include <pipeformer/width.h>

enum {
    FEW = 30,  /* rows that get a line each even if cells are narrow */
    MANY = 60, /* rows that are made fewer together with columns */
};

static size_t
ceil_div(size_t a, size_t b)
{
    return a / b + (a % b > 0);
}

size_t
term_digits(size_t n)
{
    size_t d = 1;

    for (; n > 9; n /= 10)
        d++;
    return d;
}

/* --- Colours --- */

long
term_color_of(const struct term *t, double x)
{
    uint32_t rgb = pf_viridis(x);

    return (long)(t->color == TERM_TRUE ? rgb : pf_color_256(rgb));
}

void
term_set_color(struct term *t, long fg, long bg)
{
    long now[2] = { fg, bg }, was[2] = { t->fg, t->bg };

    if ((fg < 0 && t->fg >= 0) || (bg < 0 && t->bg >= 0)) {
        pf_buf_adds(&t->line, "\33[0m");
        was[0] = was[1] = -1;
    }
    for (int i = 0; i < 2; i++) {
        if (now[i] == was[i])
            continue;
        if (t->color == TERM_TRUE)
            pf_buf_printf(&t->line, "\33[%d;2;%ld;%ld;%ldm", i ? 48 : 38,
                now[i] >> 16, now[i] >> 8 & 255, now[i] & 255);
        else
            pf_buf_printf(&t->line, "\33[%d;5;%ldm", i ? 48 : 38, now[i]);
    }
    t->fg = fg;
    t->bg = bg;
}

void
term_cell(struct term *t, double x, size_t columns)
{
    static const char shade[] = " .:-=+*#%@";
    char c = ' ';

    if (t->color == TERM_PLAIN)
        c = shade[(int)(x * 9 + 0.5)];
    else
        term_set_color(t, -1, term_color_of(t, x));
    while (columns-- > 0)
        pf_buf_addc(&t->line, c);
}

void
term_spaces(struct term *t, size_t n)
{
    term_set_color(t, -1, -1);
    while (n-- > 0)
        pf_buf_addc(&t->line, ' ');
}

enum pf_status
term_end_line(struct term *t, struct pf_out *out, struct pf_err *err)
{
    enum pf_status st;

    term_set_color(t, -1, -1);
    while (t->line.len && t->line.data[t->line.len - 1] == ' ')
        t->line.len--;
    pf_buf_addc(&t->line, '\n');
    st = pf_buf_check(&t->line, err);
    if (!st)
        st = pf_out_write(out, t->line.data, t->line.len, err);
    pf_buf_clear(&t->line);
    return st;
}

/* --- What goes where --- */

/* Do labels fit over cells, letter under letter? */
static bool
can_stand(const struct view_axis *a, size_t cell)
{
    size_t len;
    unsigned w;

    for (size_t i = 0; a->label && i < a->n; i++) {
        const struct view_label *l = &a->label[i];

        for (size_t k = 0; k < l->len; k += len) {
            len = pf_width_next(l->text + k, l->len - k, &w);
            if (w > cell)
                return false;
        }
    }
    return a->label && view_label_width(a, TERM_HEAD_MAX + 1) <= TERM_HEAD_MAX;
}

/* Columns of `n` maps side by side with their labels. */
static size_t
width_of(const struct term *t, size_t n)
{
    return t->label + n * (t->cols * t->cell + TERM_GAP) - TERM_GAP + 1;
}

/* Room for the rows' labels; with numbers where columns have no others. */
static void
lay_out_labels(struct term *t)
{
    const struct view *v = t->v;
    size_t most = t->width / 3 < TERM_LABEL_MAX ? t->width / 3 : TERM_LABEL_MAX;

    t->digits = v->query.label && !t->upright && (v->same || t->kx > 1)
        ? term_digits(v->T - 1) + 1 : 0;
    t->label = view_label_width(&v->query, most) + t->digits;
}

void
term_lay_out(struct term *t)
{
    const struct view *v = t->v;
    size_t n = v->L * v->H;

    t->kx = t->ky = 1;
    t->cols = v->S;
    t->cell = 2;
    t->half = false;
    t->upright = can_stand(&v->key, 2);
    lay_out_labels(t);
    if (width_of(t, n < 2 ? n : 2) > t->width) {
        t->cell = 1;
        t->half = t->color != TERM_PLAIN && v->T > FEW;
        t->upright = can_stand(&v->key, 1);
        lay_out_labels(t);
        if (width_of(t, 1) > t->width) {
            t->kx = 2;
            t->upright = false;
            lay_out_labels(t);
            t->kx = ceil_div(v->S, t->width - t->label - 1);
            if (v->T > MANY)
                t->ky = t->kx;
            t->half = t->half && t->ky > 1;
        }
    }
    t->cols = ceil_div(v->S, t->kx);
    t->rows = ceil_div(v->T, t->ky);
    for (t->per = 1; t->per < n && width_of(t, t->per + 1) <= t->width;
        t->per++)
        ;
    if (v->H > 1 && t->per > v->H)
        t->per = v->H;
}
