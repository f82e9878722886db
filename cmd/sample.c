/* sample: scores to one id a record. */
#define _DEFAULT_SOURCE /* getentropy */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pipeformer/candidates.h>
#include <pipeformer/json.h>
#include <pipeformer/model.h>
#include <pipeformer/rng.h>
#include <pipeformer/seqmap.h>
#include <pipeformer/tokenizer.h>

#include "sampling.h"

/* What is known of a sequence that has not come back done. */
struct live {
    size_t drawn;
};

struct sample {
    struct sampling opt;
    bool probs;
    struct pf_config config; /* of the model, if `has_model` */
    bool has_model;
    struct pf_tokenizer *tok; /* for the text of --top */
    struct pf_sampler sampler;
    struct pf_seqmap live;
    struct pf_seqmap errors; /* that were passed on, see pass_error */
    bool input_done; /* the mark {"done":"input"} has come */
    bool waiting;    /* records before this one are still to be drawn from */
    struct pf_buf key;
};

enum { PROBS = CLI_LONG };

static const struct cli_option options[] = {
    SAMPLING_OPTIONS,
    { "probs", PROBS, NULL, "print the distribution, [[id,p],...], draw "
        "nothing" },
    { NULL, 0, NULL, NULL },
};

static void
option(void *ctx, int key, const char *arg)
{
    struct sample *s = ctx;

    if (!sampling_option(&s->opt, key, arg) && key == PROBS)
        s->probs = true;
}

static const struct cli_command command = {
    .name = "sample",
    .synopsis = "[-g] [-t X] [-k N] [-p X] [-s SEED] [-n N] [-m MODEL] "
        "[file ...]",
    .summary = "Chooses one token from each record's scores: logits -> ids.\n"
        "Steps (-t, -k, -p) apply in the order written.",
    .options = options,
    .option = option,
    .model = true,
};

/* A mark: its sequence is over. */
static enum pf_status
take_mark(struct sample *s, const struct pf_record *rec, struct pf_err *err)
{
    enum pf_status st;

    pf_buf_clear(&s->key);
    st = pf_record_seq(rec, "seq", &s->key, err);
    if (st)
        return st;
    if (!pf_record_field(rec, "seq"))
        s->input_done = true;
    else
        free(pf_seqmap_take(&s->live, s->key.data, s->key.len));
    return s->input_done && s->live.n == 0 ? PF_END : PF_OK;
}

/* The sequence of a record, as it is known here. */
static enum pf_status
find_live(struct sample *s, const struct pf_record *rec, size_t pos,
    struct live **out, struct pf_err *err)
{
    enum pf_status st;
    struct live *l;

    pf_buf_clear(&s->key);
    st = pf_record_seq(rec, "seq", &s->key, err);
    if (st)
        return st;
    l = pf_seqmap_get(&s->live, s->key.data, s->key.len);
    if (!l) {
        l = calloc(1, sizeof *l);
        if (!l)
            return pf_fail_mem(err);
        st = pf_seqmap_put(&s->live, s->key.data, s->key.len, l, err);
        if (st) {
            free(l);
            return st;
        }
    }
    if (pos == 0)
        l->drawn = 0;
    *out = l;
    return PF_OK;
}

/* The one row of `logits`. */
static enum pf_status
one_row(struct pf_record *rec, const float **logits, size_t *V,
    struct pf_err *err)
{
    const struct pf_tensor *t;
    enum pf_status st = pf_record_f32(rec, "logits", &t, logits, err);
    char shape[128];

    if (st)
        return st;
    if (!t)
        return pf_fail(err, PF_ESHAPE, "the record has no logits (unembed "
            "gives them)");
    if (t->ndim == 2 && t->shape[0] > 1)
        return pf_fail(err, PF_ESHAPE, "logits: has %zu rows; a token is "
            "drawn from one (unembed without -A)", t->shape[0]);
    if (t->ndim < 1 || t->ndim > 2 || (t->ndim == 2 && t->shape[0] != 1)
        || pf_tensor_count(t) > INT32_MAX)
        return pf_fail(err, PF_ESHAPE, "logits: has the shape %s, not [1, V]",
            pf_shape_format(shape, sizeof shape, t->shape, t->ndim));
    *V = t->shape[t->ndim - 1];
    return PF_OK;
}

/* Why the sequence ends with this id at `pos`, or NULL. */
static const char *
reason(const struct sample *s, const struct live *l, size_t V, uint32_t id,
    size_t pos)
{
    bool ours = s->has_model && s->config.vocab == V;
    const uint32_t *eos = s->opt.eos_given ? s->opt.eos : s->config.eos;
    size_t n = s->opt.eos_given ? s->opt.n_eos : ours ? s->config.n_eos : 0;

    for (size_t i = 0; i < n; i++)
        if (eos[i] == id)
            return "eos";
    if (s->opt.max_tokens && l->drawn >= s->opt.max_tokens)
        return "length";
    if (ours && pos >= s->config.positions)
        return "length";
    return NULL;
}

/* A new record begins: tensors, and what was about the old one, go. */
static bool
drops(const char *name, bool tensor)
{
    static const char *const gone[] = { "layer", "fork", "more", "done",
        "logprob", "seed", "top", "trail", "probs" };

    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
        if (strcmp(name, gone[i]) == 0)
            return true;
    return (tensor || pf_per_position(name, tensor)) && !cli_keeps(name);
}

/* Makes the record the one that follows it. */
static enum pf_status
advance(struct pf_record *rec, size_t pos, struct pf_err *err)
{
    pf_record_drop_if(rec, drops);
    return pf_record_set_i64(rec, "pos", (int64_t)pos, err);
}

static enum pf_status
draw(struct sample *s, struct pf_record *rec, struct live *l, size_t pos,
    const float *logits, size_t V, struct pf_err *err)
{
    uint64_t seq = pf_hash(PF_HASH_INIT, s->key.data, s->key.len);
    uint32_t id;
    enum pf_status st;
    const char *why;
    struct pf_tensor *ids;
    double u = s->opt.draw;
    char logprob[PF_F32_MAX];

    if (sampling_random(&s->opt)) {
        if (u < 0)
            u = pf_uniform(s->opt.seed, seq, pos, 0);
        id = pf_sampler_draw(&s->sampler, u);
    } else {
        id = pf_sampler_rank(&s->sampler, 0)->id;
    }
    l->drawn++;
    st = pf_record_set(rec, "logprob", logprob, pf_f32_print(logprob,
        (float)pf_logprob(logits, V, id)), err);
    if (!st && sampling_random(&s->opt) && s->opt.draw < 0)
        st = pf_record_set_i64(rec, "seed", (int64_t)s->opt.seed, err);
    why = reason(s, l, V, id, pos);
    if (!st && why)
        st = pf_record_set_string(rec, "done", why, strlen(why), err);
    if (st)
        return st;
    ids = pf_record_put(rec, "ids", PF_I32, 1, (size_t[]){ 1 }, NULL);
    if (!ids)
        return pf_fail_mem(err);
    memcpy((void *)ids->data, &id, sizeof id);
    return PF_OK;
}

static enum pf_status
sample_record(void *ctx, struct cli_item *item, struct pf_err *err)
{
    struct sample *s = ctx;
    struct pf_record *rec = &item->rec;
    const struct pf_tensor *ids = pf_record_tensor(rec, "ids");
    const float *logits;
    size_t pos, V = 0;
    enum pf_status st;
    struct live *l = NULL;
    bool more;

    s->waiting = false;
    if ((st = pf_record_pos(rec, &pos, err))
        || (st = find_live(s, rec, pos, &l, err))
        || (st = pf_record_bool(rec, "more", &more, err)))
        return st;
    item->skip = more; /* nothing is drawn yet */
    if (more)
        return PF_OK;
    if ((st = one_row(rec, &logits, &V, err))
        || (st = pf_sampler_start(&s->sampler, logits, V, err)))
        return st;
    for (size_t i = 0; i < s->opt.n_chain; i++)
        pf_sampler_step(&s->sampler, &s->opt.chain[i]);
    pos += ids && ids->ndim ? ids->shape[0] : 1;
    st = advance(rec, pos, err);
    if (!st)
        st = s->probs ? pf_set_probs(rec, &s->sampler, err)
            : draw(s, rec, l, pos, logits, V, err);
    if (!st && s->opt.top)
        st = pf_set_top(rec, logits, V, s->opt.top, &s->sampler,
            s->has_model && V == s->config.vocab ? s->tok : NULL, err);
    return st;
}

static enum pf_status
check(void *ctx, struct cli_item *item, struct pf_err *err)
{
    struct sample *s = ctx;

    if (!pf_record_is_mark(&item->rec)) {
        s->waiting = true;
        return PF_OK;
    }
    if (s->waiting)
        return PF_AGAIN;
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
    static char told;

    if (!cli.keep_going)
        return PF_OK; /* this is the end anyway */
    pf_buf_clear(&s->key);
    pf_record_seq(rec, "seq", &s->key, NULL);
    free(pf_seqmap_take(&s->live, s->key.data, s->key.len));
    pf_buf_add(&s->key, error->text, error->len);
    if (pf_seqmap_take(&s->errors, s->key.data, s->key.len))
        return PF_AGAIN;
    pf_seqmap_put(&s->errors, s->key.data, s->key.len, &told, NULL);
    return s->input_done && s->live.n == 0 ? PF_END : PF_OK;
}

/* The model is only asked for its end id and window; none is no harm. */
static void
open_model(struct sample *s)
{
    struct pf_buf dir = cli_model_dir();
    struct pf_err err;

    s->has_model = !cli_is_vocabulary(dir.data);
    if (!s->has_model)
        cli_note("%s is a vocabulary only: no end id and no window", cli.model);
    else if (pf_config_open(&s->config, dir.data, &err))
        cli_die("%s", err.msg);
    if (s->opt.top && pf_tokenizer_open(&s->tok, dir.data, &err))
        cli_note("no text in top: %s", err.msg);
    pf_buf_fini(&dir);
}

static void
print_chain(const struct sample *s)
{
    static const char *const names[] = { [PF_STEP_TEMP] = "temp",
        [PF_STEP_TOP_K] = "top-k", [PF_STEP_TOP_P] = "top-p" };
    struct pf_buf b = PF_BUF_INIT;

    for (size_t i = 0; i < s->opt.n_chain; i++)
        pf_buf_printf(&b, "%s %g, ", names[s->opt.chain[i].kind],
            s->opt.chain[i].x);
    pf_buf_adds(&b, sampling_random(&s->opt) ? "draw" : "greedy");
    pf_buf_addc(&b, '\0');
    if (!b.failed)
        cli_note("chain: %s", b.data);
    pf_buf_fini(&b);
}

int
main(int argc, char **argv)
{
    struct sample s = { .opt = SAMPLING_INIT, .sampler = PF_SAMPLER_INIT };
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
    open_model(&s);
    if (!s.opt.seeded && sampling_random(&s.opt)) {
        if (getentropy(&s.opt.seed, sizeof s.opt.seed))
            cli_die("no random numbers from the system; give --seed");
        s.opt.seed >>= 11; /* 53 bits: exact in any reader of JSON */
    }
    print_chain(&s);
    status = cli_run(&filter);
    pf_sampler_fini(&s.sampler);
    pf_seqmap_fini(&s.live, free);
    pf_seqmap_fini(&s.errors, NULL);
    pf_tokenizer_free(s.tok);
    pf_buf_fini(&s.key);
    sampling_fini(&s.opt);
    return status;
}
