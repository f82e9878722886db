/* Attention maps that come in parts, put together by sequence. */
#include "gather.h"

#include <stdlib.h>
#include <string.h>

/* What is kept of sequences that may go on; about. */
#define GATHER_MEM ((size_t)256 << 20)

static void
forget(struct gather *a, struct gathered *g)
{
    pf_seqmap_take(&a->map, g->key, g->key_len);
    *(g->prev ? &g->prev->next : &a->first) = g->next;
    *(g->next ? &g->next->prev : &a->last) = g->prev;
    a->used -= g->bytes;
    a->free(g->data);
    free(g->layers.number);
    free(g->heads.number);
    free(g);
}

static enum pf_status
report(struct gather *a, struct gathered *g, struct pf_err *err)
{
    enum pf_status st = a->report(a->ctx, g, err);

    forget(a, g);
    return st;
}

static struct axis
subset(const struct axis *all, const size_t *index, size_t n, bool named)
{
    struct axis a = { calloc(n + 1, sizeof *a.number), named ? n : 0 };

    for (size_t i = 0; a.number && i < n; i++)
        a.number[i] = all->number[index[i]];
    return a;
}

static bool
same_axis(const struct axis *a, const struct axis *all, const size_t *index,
    size_t n)
{
    if (a->n && a->n != n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (a->number[i] != all->number[index[i]])
            return false;
    return true;
}

static enum pf_status
begin(struct gather *a, const struct pf_record *rec, const struct maps *m,
    struct gathered **out, struct pf_err *err)
{
    struct gathered *g = calloc(1, sizeof *g + a->key.len + 1);
    enum pf_status st = PF_OK;

    if (!g)
        return pf_fail_mem(err);
    g->key_len = a->key.len;
    if (g->key_len)
        memcpy(g->key, a->key.data, g->key_len);
    st = pf_seqmap_put(&a->map, g->key, g->key_len, g, err);
    if (st) {
        free(g);
        return st;
    }
    g->prev = a->last;
    *(g->prev ? &g->prev->next : &a->first) = g;
    a->last = g;
    g->layers = subset(&m->layers, m->l, m->n_l, m->has_layers);
    g->heads = subset(&m->heads, m->h, m->n_h, m->has_heads);
    g->n_maps = m->n_l * m->n_h;
    st = g->layers.number && g->heads.number
        ? a->begin(a->ctx, g, rec, m, err) : pf_fail_mem(err);
    *out = g;
    if (st)
        forget(a, g);
    return st;
}

/* The sequence that the record begins or goes on with. */
static enum pf_status
find(struct gather *a, const struct pf_record *rec, const struct maps *m,
    struct gathered **g, struct pf_err *err)
{
    const struct pf_field *seq = pf_record_field(rec, "seq");
    size_t pos, n;
    enum pf_status st = pf_record_pos(rec, &pos, err);

    if (st)
        return st;
    *g = pf_seqmap_get(&a->map, a->key.data, a->key.len);
    if (pos == 0) {
        if (*g && (st = report(a, *g, err)))
            return st;
        return begin(a, rec, m, g, err);
    }
    n = *g ? (*g)->rows : 0;
    if (n != pos)
        return pf_fail(err, PF_ESTATE, "seq %.*s: maps of %zu positions are "
            "there, record starts at %zu", seq ? (int)(seq->len < 60 ? seq->len
            : 60) : 4, seq ? seq->text : "none", n, pos);
    if (!same_axis(&(*g)->layers, &m->layers, m->l, m->n_l)
        || !same_axis(&(*g)->heads, &m->heads, m->h, m->n_h)
        || (*g)->n_maps != m->n_l * m->n_h)
        return pf_fail(err, PF_ESHAPE, "%s: is of other layers or heads "
            "than before in the sequence", a->field ? a->field : "attn");
    return PF_OK;
}

/* Memory is bounded: what came first is reported, but for the one at hand. */
static enum pf_status
bound(struct gather *a, const struct gathered *now, struct pf_err *err)
{
    enum pf_status st = PF_OK;

    while (!st && a->used > GATHER_MEM && a->first != a->last)
        st = report(a, a->first == now ? a->first->next : a->first, err);
    return st;
}

static enum pf_status
take(struct gather *a, struct cli_item *item, struct pf_err *err)
{
    struct pf_record *rec = &item->rec;
    struct maps m = { 0 };
    struct gathered *g = NULL;
    enum pf_status st = a->field
        ? maps_read_field(&m, rec, a->field, &a->layers, &a->heads, err)
        : maps_read(&m, rec, &a->layers, &a->heads, err);

    if (!st)
        st = find(a, rec, &m, &g, err);
    if (!st) {
        g->file = item->file;
        g->number = item->number;
        a->used -= g->bytes;
        st = a->add(a->ctx, g, rec, &m, err);
        g->rows += m.T;
        g->bytes += sizeof *g + g->key_len;
        a->used += g->bytes;
        if (st)
            forget(a, g);
        else if (pf_record_is_done(rec))
            st = report(a, g, err);
        else
            st = bound(a, g, err);
    }
    maps_fini(&m);
    return st;
}

void
gather_choose(struct gather *a, const char *layers, const char *heads)
{
    if (layers)
        a->layers.number = cli_list("-l", layers, NUMBER_MAX, &a->layers.n);
    if (heads)
        a->heads.number = cli_list("--heads", heads, NUMBER_MAX, &a->heads.n);
}

enum pf_status
gather_record(struct gather *a, struct cli_item *item, struct pf_err *err)
{
    struct pf_record *rec = &item->rec;
    struct gathered *g;
    enum pf_status st;

    pf_buf_clear(&a->key);
    st = pf_record_seq(rec, "seq", &a->key, err);
    if (st || !pf_record_is_mark(rec))
        return st ? st : take(a, item, err);
    g = pf_seqmap_get(&a->map, a->key.data, a->key.len);
    return g && a->key.len ? report(a, g, err) : PF_OK;
}

enum pf_status
gather_end(struct gather *a, struct pf_err *err)
{
    enum pf_status st = PF_OK;

    while (a->first && !st && (!cli_status() || cli.keep_going)) {
        st = a->report(a->ctx, a->first, err);
        if (st && st != PF_EWRITE && st != PF_ENOMEM) {
            cli_failed(a->first->file, a->first->number, NULL, err->msg);
            st = PF_OK;
        }
        forget(a, a->first);
    }
    while (a->first)
        forget(a, a->first);
    return st;
}

void
gather_fini(struct gather *a)
{
    while (a->first)
        forget(a, a->first);
    pf_seqmap_fini(&a->map, NULL);
    pf_buf_fini(&a->key);
    free(a->layers.number);
    free(a->heads.number);
}
