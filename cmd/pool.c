/* pool: the rows of a sequence to one vector. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/forward.h>
#include <pipeformer/model.h>
#include <pipeformer/pooling.h>
#include <pipeformer/seqmap.h>

struct pool {
    int how; /* the option, 0 for none */
    bool normalize;
    struct pf_model *model; /* NULL: none was named */
    struct pf_runner *runner;
    struct pf_seqmap parts; /* sequences that go on in another record */
    uint64_t n_parts;       /* records with `more` so far */
    struct pf_buf key;
};

/* Rows of a sequence, and the record that the last of them came in. */
struct part {
    struct pf_pooling rows;
    const char *file;
    uint64_t number, order;
    struct pf_record name; /* has its seq */
};

enum { MEAN = CLI_LONG, CLS, LAST, MAX, POOLER, NORMALIZE };

static const struct cli_option options[] = {
    { "mean", MEAN, NULL, "the mean of all rows (default)" },
    { "cls", CLS, NULL, "the first row" },
    { "last", LAST, NULL, "the last row" },
    { "max", MAX, NULL, "the greatest number of each column" },
    { "pooler", POOLER, NULL, "the first row through the model's pooler" },
    { "normalize", NORMALIZE, NULL, "scale the vector to length 1" },
    { NULL, 0, NULL, NULL },
};

static void
option(void *ctx, int key, const char *arg)
{
    struct pool *p = ctx;

    (void)arg;
    if (key == NORMALIZE)
        p->normalize = true;
    else if (p->how && p->how != key)
        cli_usage("--mean, --cls, --last, --max and --pooler exclude each "
            "other");
    else
        p->how = key;
}

static const struct cli_command command = {
    .name = "pool",
    .synopsis = "[-j] [--mean | --cls | --last | --max | --pooler] "
        "[--normalize]\n       [-m MODEL] [file ...]",
    .summary = "Makes one vector of the rows of a sequence: hidden -> "
        "embedding.",
    .options = options,
    .option = option,
    .model = true,
};

/* `hidden` as [T, C], C whatever it is where no model was named. */
static enum pf_status
hidden(const struct pool *p, struct pf_record *rec, const float **v,
    size_t *T, size_t *C, struct pf_err *err)
{
    const struct pf_tensor *t = pf_record_tensor(rec, "hidden");
    enum pf_status st = PF_OK;
    char shape[128];

    if (p->model)
        st = cli_check_model(rec, p->model, err);
    else if (t && t->ndim != 2 && !(t->ndim == 1 && t->shape[0] == 0))
        st = pf_fail(err, PF_ESHAPE, "hidden: has the shape %s; rows make it "
            "[T, C]", pf_shape_format(shape, sizeof shape, t->shape,
            t->ndim));
    *C = p->model ? p->model->config.width
        : t && t->ndim == 2 ? t->shape[1] : 0;
    return st ? st : cli_hidden(rec, *C, v, T, err);
}

static void
free_part(void *p)
{
    struct part *part = p;

    pf_pooling_fini(&part->rows);
    pf_record_fini(&part->name);
    free(part);
}

/* The part of the sequence that is there, or an empty one. */
static enum pf_status
part(struct pool *p, size_t pos, struct part **out, struct pf_err *err)
{
    struct part *part = pf_seqmap_take(&p->parts, p->key.data, p->key.len);
    size_t rows = part ? part->rows.rows : 0;

    *out = NULL;
    if (pos == 0 || pos != rows) { /* anew, or not at all */
        if (part)
            free_part(part);
        part = NULL;
    }
    if (pos != 0 && pos != rows)
        return pf_fail(err, PF_ESTATE, "the record starts at position %zu, "
            "but of its sequence %zu rows are held; records whose rows are "
            "pooled together have `more`, all but the last", pos, rows);
    if (!part) {
        part = calloc(1, sizeof *part);
        if (!part)
            return pf_fail_mem(err);
        part->name = (struct pf_record)PF_RECORD_INIT;
    }
    part->rows.how = p->how == MAX ? PF_POOL_MAX : p->how == LAST ? PF_POOL_LAST
        : p->how == CLS || p->how == POOLER ? PF_POOL_FIRST : PF_POOL_MEAN;
    *out = part;
    return PF_OK;
}

/* More rows of it are to come: held until then. */
static enum pf_status
hold(struct pool *p, struct cli_item *item, struct part *part,
    struct pf_err *err)
{
    enum pf_status st = PF_OK;

    part->file = item->file;
    part->number = item->number;
    part->order = p->n_parts++;
    if (pf_record_field(&item->rec, "seq")
        && !pf_record_field(&part->name, "seq"))
        st = pf_record_copy_field(&part->name, &item->rec, "seq", err);
    item->skip = true;
    return st ? st : pf_seqmap_put(&p->parts, p->key.data, p->key.len, part,
        err);
}

/* The sequence ends: with all its rows, unless some are held. */
static enum pf_status
mark(struct pool *p, const struct pf_record *rec, struct pf_err *err)
{
    const struct pf_field *seq = pf_record_field(rec, "seq");
    struct part *held = seq
        ? pf_seqmap_take(&p->parts, p->key.data, p->key.len) : NULL;

    if (!held)
        return PF_OK;
    free_part(held);
    return pf_fail(err, PF_ESTATE, "seq %.*s: ends within its parts: the "
        "record before this mark has `more`",
        (int)(seq->len < 60 ? seq->len : 60), seq->text);
}

/* All rows are there: the vector, in place of them. */
static enum pf_status
finish(struct pool *p, struct pf_record *rec, const struct pf_pooling *part,
    struct pf_err *err)
{
    const struct pf_tensor *t;
    enum pf_status st = PF_OK;
    float *v, *row;

    if (!part->rows)
        return pf_fail(err, PF_ESHAPE, "hidden: has no rows, so there is "
            "nothing to pool (the text was empty)");
    t = pf_record_put(rec, "embedding", PF_F32, 1, &part->width, NULL);
    row = p->how == POOLER ? pf_arena_alloc(&rec->mem,
        part->width * sizeof *row) : NULL;
    if (!t || (p->how == POOLER && !row))
        return pf_fail_mem(err);
    v = (float *)t->data;
    pf_pooling_get(part, row ? row : v);
    if (row)
        st = pf_pooler(p->runner, v, row, err);
    if (p->normalize)
        pf_normalize_length(v, part->width);
    cli_drop(rec, "hidden");
    return st;
}

static enum pf_status
pool(void *ctx, struct cli_item *item, struct pf_err *err)
{
    struct pool *p = ctx;
    struct pf_record *rec = &item->rec;
    struct part *held;
    const float *x;
    size_t T, C, pos;
    bool more;
    enum pf_status st;

    pf_buf_clear(&p->key);
    pf_buf_adds(&p->key, ":"); /* no key is empty */
    st = pf_record_seq(rec, "seq", &p->key, err);
    if (!st && pf_record_is_mark(rec))
        return mark(p, rec, err);
    if (st || (st = hidden(p, rec, &x, &T, &C, err))
        || (st = pf_record_pos(rec, &pos, err))
        || (st = pf_record_bool(rec, "more", &more, err))
        || (st = part(p, pos, &held, err)))
        return st;
    st = pf_pooling_add(&held->rows, x, T, C, err);
    if (!st && more && !(st = hold(p, item, held, err)))
        return PF_OK;
    if (!st)
        st = finish(p, rec, &held->rows, err);
    free_part(held);
    return st;
}

static enum pf_status
end(void *ctx, struct pf_err *err)
{
    const struct pool *p = ctx;
    const struct part *part, *first = NULL;
    const struct pf_field *seq;
    size_t n = p->parts.n, i = 0;
    char name[80] = "", msg[300];

    (void)err;
    while ((part = pf_seqmap_each(&p->parts, &i)))
        if (!first || part->order < first->order)
            first = part;
    if (!first || (cli_status() && !cli.keep_going))
        return PF_OK;
    seq = pf_record_field(&first->name, "seq");
    if (seq)
        snprintf(name, sizeof name, "seq %.*s: ", (int)(seq->len < 60
            ? seq->len : 60), seq->text);
    snprintf(msg, sizeof msg, "%sthe input ends within %zu sequence%s: this, "
        "the last record of %s, has `more`", name, n, n == 1 ? "" : "s",
        n == 1 ? "it" : "the first");
    cli_failed(first->file, first->number, &first->name, msg);
    return PF_OK;
}

int
main(int argc, char **argv)
{
    struct pool p = { 0 };
    struct cli_filter filter = {
        .ctx = &p,
        .main_input = "hidden",
        .format = PF_BINARY,
        .one = pool,
        .end = end,
    };
    int status;

    cli_options(argc, argv, &command, &p);
    if (p.how == POOLER || cli.model_given)
        p.model = cli_model();
    if (p.how == POOLER) {
        p.runner = cli_runner(p.model);
        if (!p.model->pooler.w)
            cli_die("%s: the model has no pooler", cli.model);
    }
    status = cli_run(&filter);
    pf_seqmap_fini(&p.parts, free_part);
    pf_runner_free(p.runner);
    pf_model_free(p.model);
    pf_buf_fini(&p.key);
    return status;
}
