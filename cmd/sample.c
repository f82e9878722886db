/* sample: scores to one id a record. */
#define _DEFAULT_SOURCE /* getentropy */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pipeformer/json.h>
#include <pipeformer/model.h>

#include "sample-choose.h"
#include "sample-live.h"

struct sample {
    struct chooser chooser;
    bool rows;
    struct pf_model *model; /* to check records against, if it has weights */
    bool asked;             /* for it */
    struct lives live;
    struct pf_seqmap errors; /* that were passed on, see pass_error */
    bool input_done; /* the mark {"done":"input"} has come */
    bool waiting;    /* records before this one are still to be drawn from */
    struct pf_record out; /* of --rows */
};

enum { PROBS = CLI_LONG, ROWS };

static const struct cli_option options[] = {
    SAMPLING_OPTIONS,
    { "probs", PROBS, NULL, "draw nothing, print all p: [[id,p],...]" },
    { "rows", ROWS, NULL, "a record for each row of logits" },
    { NULL, 0, NULL, NULL },
};

static void
option(void *ctx, int key, const char *arg)
{
    struct sample *s = ctx;

    if (sampling_option(&s->chooser.opt, key, arg))
        return;
    s->chooser.probs |= key == PROBS;
    s->rows |= key == ROWS;
}

static const struct cli_command command = {
    .name = "sample",
    .synopsis = "[-g] [steps] [-s SEED] [-n N] [options] [-m MODEL] "
        "[file ...]",
    .summary = "Chooses one token from each record's scores: logits -> ids.\n"
        "Steps (--temp to --preset) apply in the order written.",
    .options = options,
    .option = option,
    .model = true,
};

/* A mark: its sequence is over, or without a name and by "input", all input. */
static enum pf_status
take_mark(struct sample *s, const struct pf_record *rec, struct pf_err *err)
{
    enum pf_status st;

    pf_buf_clear(&s->live.key);
    st = pf_record_seq(rec, "seq", &s->live.key, err);
    if (st)
        return st;
    if (!pf_record_field(rec, "seq") && pf_record_done_by(rec, "input"))
        s->input_done = true;
    else
        lives_drop(&s->live);
    return s->input_done && s->live.map.n == 0 ? PF_END : PF_OK;
}

/* `logits` as [R, V]; of one row unless --rows. */
static enum pf_status
get_logits(const struct sample *s, struct pf_record *rec,
    const float **logits, size_t *R, size_t *V, struct pf_err *err)
{
    const struct pf_tensor *t;
    enum pf_status st = pf_record_f32(rec, "logits", &t, logits, err);
    char shape[128];

    if (st)
        return st;
    if (!t)
        return pf_fail(err, PF_ESHAPE, "the record has no logits (unembed "
            "gives them)");
    *R = t->ndim == 2 ? t->shape[0] : 1;
    if (s->rows && t->ndim <= 2 && pf_tensor_count(t) == 0)
        *R = 0; /* [] has none */
    if (t->ndim == 2 && *R > 1 && !s->rows)
        return pf_fail(err, PF_ESHAPE, "logits: has %zu rows; a token is "
            "drawn from one (unembed without -A; --rows for a record each)",
            *R);
    if (t->ndim < 1 || t->ndim > 2 || (*R == 0 && !s->rows))
        return pf_fail(err, PF_ESHAPE, "logits: has the shape %s, not [1, V]",
            pf_shape_format(shape, sizeof shape, t->shape, t->ndim));
    *V = t->shape[t->ndim - 1];
    return PF_OK;
}

/* A new record begins: tensors, and what was about the old one, go. */
static bool
drops(const char *name, bool tensor)
{
    static const char *const gone[] = { "layer", "fork", "more", "done",
        "logprob", "seed", "held", "top", "trail", "probs" };

    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
        if (strcmp(name, gone[i]) == 0)
            return true;
    return (tensor || pf_per_position(name, tensor)) && !cli_keeps(name);
}

/*
 * Does the record come from the model whose end id and window hold for it?  It
 * is opened for the first record that says where it comes from.
 */
static enum pf_status
check_model(struct sample *s, const struct pf_record *rec, size_t V,
    struct pf_err *err)
{
    struct pf_err why;

    if (!chooser_knows(&s->chooser, V) || !pf_record_has(rec, "model"))
        return PF_OK;
    if (!s->asked && cli_open_model(&s->model, &why))
        cli_note("whether records come from %s is not known: %s", cli.model,
            why.msg);
    s->asked = true;
    return s->model ? cli_check_model(rec, s->model, err) : PF_OK;
}

/* A record for each of R rows; row->pos is the last one's. */
static enum pf_status
each_row(struct sample *s, const struct pf_record *rec, struct row *row,
    size_t R, struct pf_err *err)
{
    size_t past = row->n_prev, end = row->pos;
    enum pf_status st = PF_OK;

    row->live = NULL;
    for (size_t r = 0; !st && r < R; r++, row->logits += row->V) {
        pf_record_clear(&s->out);
        row->pos = end - R + r + 1;
        row->n_prev = past < row->pos ? past : row->pos;
        for (size_t i = 0; !st && i < rec->n_fields; i++)
            st = pf_record_copy_field(&s->out, rec, rec->fields[i].name, err);
        pf_record_drop_if(&s->out, drops);
        if (!st)
            st = pf_record_set_i64(&s->out, "pos", (int64_t)row->pos, err);
        if (!st)
            st = choose(&s->chooser, &s->out, row, err);
        if (!st)
            st = cli_emit(&s->out, err);
    }
    return st;
}

static enum pf_status
sample_record(void *ctx, struct cli_item *item, struct pf_err *err)
{
    struct sample *s = ctx;
    struct pf_record *rec = &item->rec;
    const struct pf_tensor *ids = pf_record_tensor(rec, "ids");
    struct row row = { .from = rec };
    size_t pos, T, R = 1;
    enum pf_status st;
    struct live *l;
    bool more;

    s->waiting = false;
    if ((st = pf_record_pos(rec, &pos, err))
        || (st = lives_find(&s->live, rec, pos, &l, err))
        || (st = pf_record_bool(rec, "more", &more, err)))
        return st;
    item->skip = s->rows || more; /* nothing is drawn yet */
    if (more && !(s->rows && pf_record_has(rec, "logits")))
        return PF_OK;
    if ((st = get_logits(s, rec, &row.logits, &R, &row.V, err))
        || (st = check_model(s, rec, row.V, err)))
        return st;
    row.seq = pf_hash(PF_HASH_INIT, s->live.key.data, s->live.key.len);
    row.prev = l->ids;
    row.n_prev = l->n;
    row.live = l;
    T = ids && ids->ndim ? ids->shape[0] : R;
    if (s->rows && R > T)
        return pf_fail(err, PF_ESHAPE, "logits: has %zu rows, but there are "
            "%zu ids", R, T);
    row.pos = pos + T;
    if (s->rows)
        return each_row(s, rec, &row, R, err);
    pf_record_drop_if(rec, drops);
    st = pf_record_set_i64(rec, "pos", (int64_t)row.pos, err);
    return st ? st : choose(&s->chooser, rec, &row, err);
}

static enum pf_status
check(void *ctx, struct cli_item *item, struct pf_err *err)
{
    struct sample *s = ctx;
    bool mark = pf_record_is_mark(&item->rec);

    /* Rows are written as they are worked on: a batch of one. */
    if (s->waiting && (mark || s->rows))
        return PF_AGAIN;
    if (!mark) {
        s->waiting = true;
        return PF_OK;
    }
    item->skip = true;
    return take_mark(s, &item->rec, err);
}

/*
 * With --keep-going, and output that is fed back, an error record would go
 * round for ever: it is remembered, and swallowed when it has come round.  Its
 * sequence is over.
 */
static enum pf_status
pass_error(void *ctx, struct pf_record *rec)
{
    struct sample *s = ctx;
    const struct pf_field *error = pf_record_field(rec, "error");
    struct pf_buf *key = &s->live.key;
    static char told;

    if (!cli.keep_going)
        return PF_OK; /* this is the end anyway */
    pf_buf_clear(key);
    pf_record_seq(rec, "seq", key, NULL);
    lives_drop(&s->live);
    pf_buf_add(key, error->text, error->len);
    if (pf_seqmap_take(&s->errors, key->data, key->len))
        return PF_AGAIN;
    pf_seqmap_put(&s->errors, key->data, key->len, &told, NULL);
    return s->input_done && s->live.map.n == 0 ? PF_END : PF_OK;
}

static void
print_chain(const struct sampling *o)
{
    struct pf_buf b = PF_BUF_INIT;

    for (size_t i = 0; i < o->n_chain; i++)
        pf_buf_printf(&b, "%s, ", o->chain[i].text);
    pf_buf_adds(&b, sampling_random(o) ? "draw" : "greedy");
    pf_buf_addc(&b, '\0');
    if (!b.failed)
        cli_note("chain: %s", b.data);
    pf_buf_fini(&b);
}

int
main(int argc, char **argv)
{
    struct sample s = { .chooser.opt = SAMPLING_INIT, .out = PF_RECORD_INIT };
    struct sampling *o = &s.chooser.opt;
    struct cli_filter filter = {
        .ctx = &s,
        .main_input = "logits",
        .format = PF_NDJSON,
        .check = check,
        .error = pass_error,
        .one = sample_record,
    };
    int status;

    cli_options(argc, argv, &command, &s);
    chooser_open(&s.chooser);
    s.live.history = sampling_looks_back(o);
    if (!o->seeded && o->n_chain) {
        if (getentropy(&o->seed, sizeof o->seed))
            cli_die("no random numbers from the system; give --seed");
        o->seed >>= 11; /* 53 bits: exact in any reader of JSON */
    }
    print_chain(o);
    status = cli_run(&filter);
    chooser_fini(&s.chooser);
    lives_fini(&s.live);
    pf_seqmap_fini(&s.errors, NULL);
    pf_record_fini(&s.out);
    pf_model_free(s.model);
    return status;
}
