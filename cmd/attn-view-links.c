/* attn-view -o links: the greatest weights, one a line. */
#include "attn-view.h"

#include <stdlib.h>

#include <pipeformer/json.h>

struct link {
    float weight;
    size_t key;
};

static int
by_weight(const void *a, const void *b)
{
    const struct link *x = a, *y = b;

    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return x->key < y->key ? -1 : x->key > y->key;
}

static void
add_token(struct pf_buf *b, const char *name, const struct view_axis *a,
    size_t i)
{
    if (!a->label)
        return;
    pf_buf_printf(b, ",\"%s\":", name);
    pf_json_add_string(b, a->label[i].raw, a->label[i].raw_len);
}

static void
add_link(struct pf_buf *b, const struct view *v, size_t l, size_t h, size_t t,
    const struct link *link)
{
    const char *comma = "";

    pf_buf_addc(b, '{');
    if (v->seq_len) {
        pf_buf_adds(b, "\"seq\":");
        pf_buf_add(b, v->seq, v->seq_len);
        comma = ",";
    }
    if (v->layers) {
        pf_buf_printf(b, "%s\"layer\":%zu", comma, v->layers[l]);
        comma = ",";
    }
    if (v->heads) {
        pf_buf_printf(b, "%s\"head\":%zu", comma, v->heads[h]);
        comma = ",";
    }
    pf_buf_printf(b, "%s\"query\":%zu,\"key\":%zu,\"weight\":", comma, t,
        link->key);
    pf_json_add_f32(b, link->weight);
    add_token(b, "query_token", &v->query, t);
    add_token(b, "key_token", &v->key, link->key);
    pf_buf_adds(b, "}\n");
}

static enum pf_status
row(const struct view *v, size_t l, size_t h, size_t t, struct link *links,
    double min, size_t top, struct pf_out *out, struct pf_err *err)
{
    const float *x = v->map[l * v->H + h] + t * v->S;
    struct pf_buf b = PF_BUF_INIT;
    enum pf_status st = PF_OK;
    size_t n = 0;

    for (size_t s = 0; s < v->S; s++)
        if ((double)x[s] >= min && !(v->weights && x[s] == 0))
            links[n++] = (struct link){ x[s], s };
    qsort(links, n, sizeof *links, by_weight);
    if (top && n > top)
        n = top;
    for (size_t i = 0; i < n && !st; i++) {
        pf_buf_clear(&b);
        add_link(&b, v, l, h, t, &links[i]);
        st = pf_buf_check(&b, err);
        if (!st)
            st = pf_out_write(out, b.data, b.len, err);
    }
    pf_buf_fini(&b);
    return st;
}

enum pf_status
view_links(const struct view *v, double min, size_t top, struct pf_out *out,
    struct pf_err *err)
{
    struct link *links = malloc((v->S + 1) * sizeof *links);
    enum pf_status st = links ? PF_OK : pf_fail_mem(err);

    for (size_t l = 0; l < v->L; l++)
        for (size_t h = 0; h < v->H; h++)
            for (size_t t = 0; t < v->T && !st; t++)
                st = row(v, l, h, t, links, min, top, out, err);
    free(links);
    return st;
}
