/*
 * attn-view -o html: one page with all in it.
 *
 * The page is a template (attn-view.html, .css, -*.js) with two holes: the
 * title, and the data.  The data are a JSON object, in which no character has
 * a meaning to HTML, and a block a layer of the numbers in base64, which the
 * page decodes when it first shows the layer.  Nothing of a record comes into
 * the page in another way.
 *
 * A weight is a uint16 in units of 1/10000: the four digits that the page
 * shows are then those of the number itself, rounded once.  Other matrices
 * are float32.  Where no query looks at a later key, the zeros are left out.
 */
#include "attn-view.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <pipeformer/buf.h>
#include <pipeformer/colormap.h>
#include <pipeformer/json.h>
#include <pipeformer/tensor.h>

#include "attn-view-page.h"

/* Numbers in a page, at most: what browsers open without pause. */
#define PAGE_MAX ((size_t)1 << 24)

/* --- The numbers --- */

/* Bytes on their way into base64 (RFC 4648, section 4). */
struct base64 {
    struct pf_out *out;
    size_t n;
    unsigned char in[3 * 1024];
};

static enum pf_status
base64_flush(struct base64 *b, struct pf_err *err)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        "abcdefghijklmnopqrstuvwxyz0123456789+/";
    char text[4 * 1024], *p = text;
    size_t over = b->n % 3;

    for (size_t i = b->n; i % 3; i++)
        b->in[i] = 0;
    for (size_t i = 0; i < b->n; i += 3) {
        uint32_t bits = (uint32_t)b->in[i] << 16
            | (uint32_t)b->in[i + 1] << 8 | b->in[i + 2];

        for (int shift = 18; shift >= 0; shift -= 6)
            *p++ = digit[bits >> shift & 63];
    }
    if (over)
        memset(p - (3 - over), '=', 3 - over);
    b->n = 0;
    return pf_out_write(b->out, text, (size_t)(p - text), err);
}

/* The low `n` bytes (2 or 4), little-endian. */
static enum pf_status
base64_put(struct base64 *b, uint32_t bits, size_t n, struct pf_err *err)
{
    for (size_t i = 0; i < n; i++, bits >>= 8) {
        b->in[b->n++] = (unsigned char)bits;
        if (b->n == sizeof b->in) {
            enum pf_status st = base64_flush(b, err);

            if (st)
                return st;
        }
    }
    return PF_OK;
}

/* How many keys of row t are in the page. */
static size_t
row_length(const struct view *v, bool causal, size_t t)
{
    return causal ? v->S - v->T + t + 1 : v->S;
}

/* Whether no query looks at a key after it. */
static bool
is_causal(const struct view *v)
{
    if (v->T > v->S)
        return false;
    for (size_t m = 0; m < v->L * v->H; m++)
        for (size_t t = 0; t < v->T; t++)
            for (size_t s = row_length(v, true, t); s < v->S; s++)
                if (v->map[m][t * v->S + s] != 0)
                    return false;
    return true;
}

static enum pf_status
put_row(struct base64 *b, const struct view *v, const float *row, size_t n,
    struct pf_err *err)
{
    enum pf_status st = PF_OK;

    for (size_t s = 0; s < n && !st; s++) {
        uint32_t bits;

        if (v->weights) {
            double w = row[s] > 0 ? row[s] < 1 ? row[s] : 1 : 0;

            st = base64_put(b, (uint32_t)lrint(w * 1e4), 2, err);
        } else {
            memcpy(&bits, &row[s], sizeof bits);
            st = base64_put(b, bits, 4, err);
        }
    }
    return st;
}

static enum pf_status
puts_page(struct pf_out *out, const char *s, struct pf_err *err)
{
    return pf_out_write(out, s, strlen(s), err);
}

static enum pf_status
put_layer(const struct view *v, size_t l, bool causal, struct pf_out *out,
    struct pf_err *err)
{
    struct base64 b = { .out = out };
    enum pf_status st = puts_page(out,
        "\n<script type=\"text/plain\" class=\"layer\">", err);

    for (size_t h = 0; h < v->H && !st; h++)
        for (size_t t = 0; t < v->T && !st; t++)
            st = put_row(&b, v, v->map[l * v->H + h] + t * v->S,
                row_length(v, causal, t), err);
    if (!st)
        st = base64_flush(&b, err);
    return st ? st : puts_page(out, "</script>", err);
}

/* --- What is said of them --- */

static void
add_numbers(struct pf_buf *b, const char *name, const size_t *number,
    size_t n)
{
    pf_buf_printf(b, "\"%s\":", name);
    for (size_t i = 0; number && i < n; i++)
        pf_buf_printf(b, "%c%zu", i ? ',' : '[', number[i]);
    pf_buf_adds(b, number && n ? "]," : "null,");
}

static void
add_axis(struct pf_buf *b, const char *name, const struct view_axis *a)
{
    pf_buf_printf(b, "\"%s\":{\"title\":", name);
    pf_json_add_string(b, a->title, strlen(a->title));
    pf_buf_adds(b, ",\"parts\":");
    for (size_t i = 0; a->part && i < a->n; i++)
        pf_buf_printf(b, "%c%d", i ? ',' : '[', a->part[i]);
    pf_buf_adds(b, a->part && a->n ? "],\"labels\":" : "null,\"labels\":");
    for (size_t i = 0; a->label && i < a->n; i++) {
        pf_buf_addc(b, i ? ',' : '[');
        pf_json_add_string(b, a->label[i].text, a->label[i].len);
    }
    pf_buf_adds(b, a->label && a->n ? "]}," : "null},");
}

static void
add_number(struct pf_buf *b, const char *name, double v)
{
    pf_buf_printf(b, "\"%s\":", name);
    pf_json_add_f64(b, v);
}

/* The colours, from the lowest number to the highest: RRGGBB each. */
static void
add_palette(struct pf_buf *b)
{
    pf_buf_adds(b, "\"palette\":\"");
    for (int i = 0; i < 256; i++)
        pf_buf_printf(b, "%06x", (unsigned)pf_viridis(i / 255.0));
    pf_buf_adds(b, "\",");
}

static void
add_data(struct pf_buf *b, const struct view *v, bool causal)
{
    pf_buf_adds(b, "{\"title\":");
    pf_json_add_string(b, v->title, strlen(v->title));
    pf_buf_adds(b, ",\"field\":");
    pf_json_add_string(b, v->field, strlen(v->field));
    pf_buf_printf(b, ",\"H\":%zu,\"T\":%zu,\"S\":%zu,", v->H, v->T, v->S);
    add_numbers(b, "layers", v->layers, v->L);
    add_numbers(b, "heads", v->heads, v->H);
    add_axis(b, "query", &v->query);
    add_axis(b, "key", &v->key);
    add_palette(b);
    add_number(b, "lo", v->lo);
    pf_buf_addc(b, ',');
    add_number(b, "hi", v->hi);
    pf_buf_printf(b, ",\"weights\":%s,\"same\":%s,\"causal\":%s}",
        v->weights ? "true" : "false", v->same ? "true" : "false",
        causal ? "true" : "false");
}

/* JSON within HTML: of what could end the element, nothing is left. */
static enum pf_status
put_json(struct pf_out *out, const struct pf_buf *json, struct pf_err *err)
{
    enum pf_status st = PF_OK;
    size_t from = 0;

    for (size_t i = 0; i < json->len && !st; i++) {
        char c = json->data[i], escape[8];

        if (c != '<' && c != '>' && c != '&')
            continue;
        memcpy(escape, "\\u0000", 7);
        escape[4] = "23"[c != '&'];
        escape[5] = c == '&' ? '6' : c == '<' ? 'c' : 'e';
        st = pf_out_write(out, json->data + from, i - from, err);
        if (!st)
            st = puts_page(out, escape, err);
        from = i + 1;
    }
    if (!st)
        st = pf_out_write(out, json->data + from, json->len - from, err);
    return st ? st : puts_page(out, "</script>", err);
}

/* Text within HTML; `title` is UTF-8 already. */
static enum pf_status
put_text(struct pf_out *out, const char *s, struct pf_err *err)
{
    enum pf_status st = PF_OK;

    for (; *s && !st; s++) {
        const char *as = *s == '<' ? "&lt;" : *s == '>' ? "&gt;"
            : *s == '&' ? "&amp;" : NULL;

        st = as ? puts_page(out, as, err) : pf_out_write(out, s, 1, err);
    }
    return st;
}

/* --- The page --- */

static enum pf_status
check_size(const struct view *v, struct pf_err *err)
{
    size_t maps, cells, all;

    if (!pf_mul(v->L, v->H, &maps) || !pf_mul(v->T, v->S, &cells)
        || !pf_mul(maps, cells, &all) || all > PAGE_MAX)
        return pf_fail(err, PF_ERANGE, "%.100s: %zu x %zu maps of %zu x %zu "
            "are more than the %zu numbers of a page; take some with -l and "
            "--heads, or a part with tensor -s", v->field, v->L, v->H, v->T,
            v->S, PAGE_MAX);
    return PF_OK;
}

enum pf_status
view_html(const struct view *v, struct pf_out *out, struct pf_err *err)
{
    struct pf_buf json = PF_BUF_INIT;
    enum pf_status st = check_size(v, err);
    bool causal = !st && is_causal(v);

    if (st)
        return st;
    add_data(&json, v, causal);
    if (!(st = pf_buf_check(&json, err))
        && !(st = pf_out_write(out, page_head, sizeof page_head, err))
        && !(st = put_text(out, v->title, err))
        && !(st = pf_out_write(out, page_body, sizeof page_body, err)))
        st = put_json(out, &json, err);
    for (size_t l = 0; l < v->L && !st; l++)
        st = put_layer(v, l, causal, out, err);
    pf_buf_fini(&json);
    return st ? st : pf_out_write(out, page_rest, sizeof page_rest, err);
}
