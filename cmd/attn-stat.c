/* attn-stat: what the heads of a model look at, in numbers. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#include <pipeformer/attn-stat.h>
#include <pipeformer/json.h>

#include "gather.h"

/* What is kept of a sequence whose maps are being gathered. */
struct sums {
    struct pf_attn_stat *stat;
    struct pf_record rec; /* what goes into each line */
};

struct attn_stat {
    bool rollout;
    const char *layers_arg, *heads_arg;
    struct gather gather;
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
    return pf_record_set_f32(rec, name, (float)v, err);
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
    struct sums *sums = g->data;
    const struct pf_attn_stat *a = sums->stat;
    struct pf_record *rec = &sums->rec;
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
        && !(st = set_num(rec, "induction", s.induction, err)))
        st = pf_attn_stat_ids(a) ? pf_record_set_i64(rec, "repeats",
            (int64_t)pf_attn_stat_repeats(a), err)
            : pf_record_set(rec, "repeats", "null", 4, err);
    return st ? st : cli_emit(rec, err);
}

static enum pf_status
report_rollout(struct gathered *g, struct pf_err *err)
{
    struct sums *s = g->data;
    const struct pf_attn_stat *a = s->stat;
    size_t n = pf_attn_stat_rows(a), T = n;
    const uint32_t *ids = pf_attn_stat_ids(a);
    struct pf_tensor *t;
    enum pf_status st = PF_OK;

    if (g->layers.n)
        st = set_list(&s->rec, "layers", &g->layers, err);
    if (!st && g->heads.n)
        st = set_list(&s->rec, "heads", &g->heads, err);
    if (st)
        return st;
    if (ids && !pf_record_put(&s->rec, "ids", PF_I32, 1, &n, ids))
        return pf_fail_mem(err);
    t = pf_record_put(&s->rec, "rollout", PF_F32, 2, (size_t[]){ n, n }, NULL);
    if (!t)
        return pf_fail_mem(err);
    while (T-- > 0)
        memcpy((float *)t->data + T * n, pf_attn_stat_rollout(a, T),
            n * sizeof(float));
    return cli_emit(&s->rec, err);
}

/* A sequence is complete: its lines. */
static enum pf_status
report(void *ctx, struct gathered *g, struct pf_err *err)
{
    const struct attn_stat *a = ctx;
    size_t L = g->layers.n ? g->layers.n : 1, H = g->heads.n ? g->heads.n : 1;
    enum pf_status st = PF_OK;

    if (a->rollout)
        st = report_rollout(g, err);
    for (size_t l = 0; l < L && !a->rollout && !st; l++)
        for (size_t h = 0; h < H && !st; h++)
            st = report_head(g, l, h, err);
    return st;
}

/* --- Gathering --- */

/* What is about the sequence goes into its lines; the rest is about rows. */
static bool
rides_along(const char *name)
{
    static const char *const own[] = { "layer", "pos", "more", "done", "fork",
        "layers", "heads", "key_tokens" };

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(own[i], name) == 0)
            return false;
    return !pf_per_position(name, false);
}

static enum pf_status
begin(void *ctx, struct gathered *g, const struct pf_record *rec,
    const struct maps *m, struct pf_err *err)
{
    const struct attn_stat *a = ctx;
    struct sums *s = calloc(1, sizeof *s);
    enum pf_status st;

    g->data = s;
    if (!s)
        return pf_fail_mem(err);
    if (a->rollout && !g->n_maps)
        return pf_fail(err, PF_ESHAPE, "attn: holds no maps, and there is no "
            "rollout of none");
    st = pf_attn_stat_new(&s->stat, m->n_l, m->n_h, a->rollout, err);
    for (size_t i = 0; i < rec->n_fields && !st; i++)
        if (rides_along(rec->fields[i].name))
            st = pf_record_copy_field(&s->rec, rec, rec->fields[i].name, err);
    return st;
}

static enum pf_status
add(void *ctx, struct gathered *g, struct pf_record *rec,
    const struct maps *m, struct pf_err *err)
{
    struct sums *s = g->data;
    enum pf_status st = pf_attn_stat_add(s->stat, m->map, m->T, m->S, m->ids,
        err);

    (void)ctx;
    (void)rec;
    g->bytes = pf_attn_stat_bytes(s->stat) + sizeof *s + s->rec.mem.total;
    return st;
}

static void
free_sums(void *data)
{
    struct sums *s = data;

    if (!s)
        return;
    pf_attn_stat_free(s->stat);
    pf_record_fini(&s->rec);
    free(s);
}

static enum pf_status
one(void *ctx, struct cli_item *item, struct pf_err *err)
{
    struct attn_stat *a = ctx;

    item->skip = true;
    return gather_record(&a->gather, item, err);
}

static enum pf_status
end(void *ctx, struct pf_err *err)
{
    struct attn_stat *a = ctx;

    return gather_end(&a->gather, err);
}

int
main(int argc, char **argv)
{
    struct attn_stat a = {
        .gather = { .ctx = &a, .begin = begin, .add = add, .report = report,
            .free = free_sums },
    };
    struct cli_filter filter = {
        .ctx = &a,
        .main_input = "attn",
        .format = PF_NDJSON,
        .one = one,
        .end = end,
    };
    int status;

    cli_options(argc, argv, &command, &a);
    gather_choose(&a.gather, a.layers_arg, a.heads_arg);
    status = cli_run(&filter);
    gather_fini(&a.gather);
    return status;
}
