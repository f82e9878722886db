/* attn-stat: what the heads of a model look at, in numbers. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#include <pipeformer/attn-stat.h>
#include <pipeformer/json.h>
#include <pipeformer/seqmap.h>

#include "attn-stat-maps.h"

/* What is kept of sequences that may go on; about. */
#define GATHER_MEM ((size_t)256 << 20)

/* A sequence whose maps are being gathered; first come, first in the list. */
struct gathered {
    struct gathered *prev, *next;
    struct pf_attn_stat *stat;
    struct axis layers, heads;
    struct pf_record rec; /* what goes into each line */
    size_t bytes, key_len;
    char key[];
};

struct attn_stat {
    bool rollout;
    const char *layers_arg, *heads_arg;
    struct axis layers, heads; /* wanted; n 0: all */
    struct pf_seqmap map;
    struct gathered *first, *last;
    size_t used;
    struct pf_buf key;
};

enum { HEADS = CLI_LONG, ROLLOUT };

static const struct cli_option options[] = {
    { "layers", 'l', "LIST", "of these layers only, 0-5,8 (0-based)" },
    { "heads", HEADS, "LIST", "of these heads only" },
    { "rollout", ROLLOUT, NULL, "the maps of all layers as one: rollout "
        "[T,T]" },
    { NULL, 0, NULL, NULL },
};

static void
option(void *ctx, int key, const char *arg)
{
    struct attn_stat *a = ctx;

    switch (key) {
    case 'l': a->layers_arg = arg; break;
    case HEADS: a->heads_arg = arg; break;
    case ROLLOUT: a->rollout = true; break;
    }
}

static const struct cli_command command = {
    .name = "attn-stat",
    .synopsis = "[--rollout] [-l LIST] [--heads LIST] [file ...]",
    .summary = "Numbers about attention maps, a line a head: attn and ids.",
    .options = options,
    .option = option,
};

/* --- Reporting --- */

static enum pf_status
set_num(struct pf_record *rec, const char *name, double v, struct pf_err *err)
{
    struct pf_buf b = PF_BUF_INIT;
    enum pf_status st;

    pf_json_add_f32(&b, (float)v);
    st = pf_buf_check(&b, err);
    if (!st)
        st = pf_record_set(rec, name, b.data, b.len, err);
    pf_buf_fini(&b);
    return st;
}

/* A number, or null where the axis has none. */
static enum pf_status
set_index(struct pf_record *rec, const char *name, const struct axis *a,
    size_t i, struct pf_err *err)
{
    return a->n ? pf_record_set_i64(rec, name, (int64_t)a->number[i], err)
        : pf_record_set(rec, name, "null", 4, err);
}

static enum pf_status
set_list(struct pf_record *rec, const char *name, const struct axis *a,
    struct pf_err *err)
{
    struct pf_buf b = PF_BUF_INIT;
    enum pf_status st;

    for (size_t i = 0; i < a->n; i++) {
        pf_buf_addc(&b, i ? ',' : '[');
        pf_json_add_i64(&b, (int64_t)a->number[i]);
    }
    pf_buf_addc(&b, ']');
    st = pf_buf_check(&b, err);
    if (!st)
        st = pf_record_set(rec, name, b.data, b.len, err);
    pf_buf_fini(&b);
    return st;
}

static enum pf_status
report_head(struct gathered *g, size_t l, size_t h, struct pf_err *err)
{
    const struct pf_attn_stat *a = g->stat;
    struct pf_record *rec = &g->rec;
    struct pf_head_stat s;
    enum pf_status st;

    pf_attn_stat_head(a, l, h, &s);
    if (!(st = set_index(rec, "layer", &g->layers, l, err))
        && !(st = set_index(rec, "head", &g->heads, h, err))
        && !(st = pf_record_set_i64(rec, "T",
            (int64_t)pf_attn_stat_rows(a), err))
        && !(st = set_num(rec, "entropy", s.entropy, err))
        && !(st = set_num(rec, "first", s.first, err))
        && !(st = set_num(rec, "self", s.self, err))
        && !(st = set_num(rec, "previous", s.previous, err))
        && !(st = set_num(rec, "duplicate", s.duplicate, err))
        && !(st = set_num(rec, "induction", s.induction, err))
        && pf_attn_stat_ids(a))
        st = pf_record_set_i64(rec, "repeats",
            (int64_t)pf_attn_stat_repeats(a), err);
    return st ? st : cli_emit(rec, err);
}

static enum pf_status
report_rollout(struct gathered *g, struct pf_err *err)
{
    const struct pf_attn_stat *a = g->stat;
    size_t n = pf_attn_stat_rows(a), T = n;
    const uint32_t *ids = pf_attn_stat_ids(a);
    struct pf_tensor *t;
    enum pf_status st = PF_OK;

    if (g->layers.n)
        st = set_list(&g->rec, "layers", &g->layers, err);
    if (!st && g->heads.n)
        st = set_list(&g->rec, "heads", &g->heads, err);
    if (st)
        return st;
    if (ids && !pf_record_put(&g->rec, "ids", PF_I32, 1, &n, ids))
        return pf_fail_mem(err);
    t = pf_record_put(&g->rec, "rollout", PF_F32, 2, (size_t[]){ n, n }, NULL);
    if (!t)
        return pf_fail_mem(err);
    while (T-- > 0)
        memcpy((float *)t->data + T * n, pf_attn_stat_rollout(a, T),
            n * sizeof(float));
    return cli_emit(&g->rec, err);
}

static void
forget(struct attn_stat *a, struct gathered *g)
{
    pf_seqmap_take(&a->map, g->key, g->key_len);
    *(g->prev ? &g->prev->next : &a->first) = g->next;
    *(g->next ? &g->next->prev : &a->last) = g->prev;
    a->used -= g->bytes;
    pf_attn_stat_free(g->stat);
    pf_record_fini(&g->rec);
    free(g->layers.number);
    free(g->heads.number);
    free(g);
}

/* A sequence is complete: its lines. */
static enum pf_status
report(struct attn_stat *a, struct gathered *g, struct pf_err *err)
{
    size_t L = g->layers.n ? g->layers.n : 1, H = g->heads.n ? g->heads.n : 1;
    enum pf_status st = PF_OK;

    if (a->rollout)
        st = report_rollout(g, err);
    for (size_t l = 0; l < L && !a->rollout && !st; l++)
        for (size_t h = 0; h < H && !st; h++)
            st = report_head(g, l, h, err);
    forget(a, g);
    return st;
}

/* --- Gathering --- */

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

/* What is about the sequence goes into its lines; the rest is about rows. */
static bool
rides_along(const char *name)
{
    static const char *const own[] = { "layer", "pos", "more", "done", "fork",
        "layers", "heads" };

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(own[i], name) == 0)
            return false;
    return !pf_per_position(name, false);
}

static enum pf_status
begin(struct attn_stat *a, const struct pf_record *rec, const struct maps *m,
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
    g->layers = subset(&m->layers, m->l, m->n_l, m->attn->ndim == 4);
    g->heads = subset(&m->heads, m->h, m->n_h, m->attn->ndim >= 3);
    st = g->layers.number && g->heads.number ? pf_attn_stat_new(&g->stat,
        m->n_l, m->n_h, a->rollout, err) : pf_fail_mem(err);
    for (size_t i = 0; i < rec->n_fields && !st; i++)
        if (rides_along(rec->fields[i].name))
            st = pf_record_copy_field(&g->rec, rec, rec->fields[i].name, err);
    *out = g;
    if (st)
        forget(a, g);
    return st;
}

/* The sequence that the record begins or goes on with. */
static enum pf_status
find(struct attn_stat *a, const struct pf_record *rec, const struct maps *m,
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
    n = *g ? pf_attn_stat_rows((*g)->stat) : 0;
    if (n != pos)
        return pf_fail(err, PF_ESTATE, "seq %.*s: maps of %zu positions are "
            "there, record starts at %zu", seq ? (int)(seq->len < 60 ? seq->len
            : 60) : 4, seq ? seq->text : "none", n, pos);
    if (!same_axis(&(*g)->layers, &m->layers, m->l, m->n_l)
        || !same_axis(&(*g)->heads, &m->heads, m->h, m->n_h))
        return pf_fail(err, PF_ESHAPE, "attn: is of other layers or heads "
            "than before in the sequence");
    return PF_OK;
}

/* Memory is bounded: what came first is reported, but for the one at hand. */
static enum pf_status
bound(struct attn_stat *a, const struct gathered *now, struct pf_err *err)
{
    enum pf_status st = PF_OK;

    while (!st && a->used > GATHER_MEM && a->first != a->last)
        st = report(a, a->first == now ? a->first->next : a->first, err);
    return st;
}

static enum pf_status
gather(struct attn_stat *a, struct pf_record *rec, struct pf_err *err)
{
    struct maps m = { 0 };
    struct gathered *g = NULL;
    enum pf_status st = maps_read(&m, rec, &a->layers, &a->heads, err);

    if (!st && a->rollout && (!m.n_l || !m.n_h))
        st = pf_fail(err, PF_ESHAPE, "attn: holds no maps, and there is no "
            "rollout of none");
    if (!st)
        st = find(a, rec, &m, &g, err);
    if (!st) {
        a->used -= g->bytes;
        st = pf_attn_stat_add(g->stat, m.map, m.T, m.S, m.ids, err);
        g->bytes = pf_attn_stat_bytes(g->stat) + sizeof *g + g->key_len
            + g->rec.mem.total;
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

static enum pf_status
one(void *ctx, struct cli_item *item, struct pf_err *err)
{
    struct attn_stat *a = ctx;
    struct gathered *g;
    enum pf_status st;

    item->skip = true;
    pf_buf_clear(&a->key);
    st = pf_record_seq(&item->rec, "seq", &a->key, err);
    if (st || !pf_record_is_mark(&item->rec))
        return st ? st : gather(a, &item->rec, err);
    g = pf_seqmap_get(&a->map, a->key.data, a->key.len);
    return g && a->key.len ? report(a, g, err) : PF_OK;
}

/* What has not come done is over now. */
static enum pf_status
end(void *ctx, struct pf_err *err)
{
    struct attn_stat *a = ctx;
    enum pf_status st = PF_OK;

    while (a->first && !st && (!cli_status() || cli.keep_going))
        st = report(a, a->first, err);
    while (a->first)
        forget(a, a->first);
    return st;
}

int
main(int argc, char **argv)
{
    struct attn_stat a = { 0 };
    struct cli_filter filter = {
        .ctx = &a,
        .main_input = "attn",
        .format = PF_NDJSON,
        .one = one,
        .end = end,
    };
    int status;

    cli_options(argc, argv, &command, &a);
    if (a.layers_arg)
        a.layers.number = cli_list("-l", a.layers_arg, NUMBER_MAX,
            &a.layers.n);
    if (a.heads_arg)
        a.heads.number = cli_list("--heads", a.heads_arg, NUMBER_MAX,
            &a.heads.n);
    status = cli_run(&filter);
    pf_seqmap_fini(&a.map, NULL);
    pf_buf_fini(&a.key);
    free(a.layers.number);
    free(a.heads.number);
    return status;
}
