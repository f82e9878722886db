/*
 * attend without a model: which arrays of a record are used, and what becomes
 * of it.  The mathematics is in attention.h and multihead.h.
 */
#include "attend-bare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/multihead.h>

struct attend_bare_state {
    struct pf_pool *pool; /* with the first record */
    enum pf_causal causal;
    struct pf_record weights; /* of -w */
    struct pf_multihead heads;
};

/* --- Options --- */

static void
check_options(const struct attend_bare *b)
{
    if (b->causal && b->no_causal)
        cli_usage("only one of --causal, --no-causal");
    if (b->n_head && !b->weights)
        cli_usage("--n-head says how many heads the matrices of -w have; give "
            "-w too");
    if (b->uniform && (b->weights || b->causal || b->no_causal || b->scores
            || !isnan(b->scale)))
        cli_usage("--uniform has fixed weights: there is nothing for -w, "
            "--causal, --no-causal, --scale or --tap attn_scores");
}

void
attend_bare_start(struct attend_bare *b)
{
    struct attend_bare_state *s;
    struct pf_err err;

    check_options(b);
    cli_check_kernels();
    s = b->state = calloc(1, sizeof *s);
    if (!s)
        cli_die("out of memory");
    if (b->causal)
        s->causal = strcmp(b->causal, "lower-right") == 0
            ? PF_CAUSAL_LOWER_RIGHT : PF_CAUSAL_UPPER_LEFT;
    if (!b->weights)
        return;
    if (pf_record_read_file(&s->weights, b->weights, "data", &err))
        cli_die("%s", err.msg);
    if (pf_multihead_init(&s->heads, &s->weights, b->n_head ? b->n_head : 1,
            &err))
        cli_die("%s: %s", b->weights, err.msg);
}

void
attend_bare_free(struct attend_bare *b)
{
    if (!b->state)
        return;
    pf_pool_free(b->state->pool);
    pf_record_fini(&b->state->weights);
    free(b->state);
    b->state = NULL;
}

bool
attend_bare_takes(const struct attend_bare *b, const struct pf_record *rec)
{
    return b->weights || b->uniform || pf_record_has(rec, "q")
        || pf_record_has(rec, "k") || pf_record_has(rec, "v");
}

/* --- What a record brings --- */

/* What one record is to become; arrays are the record's. */
struct job {
    enum { ARRAYS, ROWS, MEAN } what;
    struct pf_tensor in[4];   /* q, k, v, mask; hidden, memory, -, mask; x */
    bool mask, memory;
    struct pf_attention a;    /* ARRAYS */
    size_t shape[4];          /* of the result */
    size_t map[4];            /* of weights and scores */
    unsigned ndim, map_ndim;
    const char *out;          /* its name */
};

/* An array of floats; copied, since records move their tensors about. */
static enum pf_status
floats(struct pf_record *rec, const char *name, struct pf_tensor *t,
    bool *there, struct pf_err *err)
{
    const struct pf_tensor *found;
    const float *v;
    enum pf_status st = pf_record_f32(rec, name, &found, &v, err);

    *there = found != NULL;
    if (!st && found)
        *t = *found;
    return st;
}

static enum pf_status
mask(struct pf_record *rec, struct job *j, struct pf_err *err)
{
    const struct pf_tensor *t = pf_record_tensor(rec, "mask");

    if (!t || t->dtype != PF_BOOL)
        return floats(rec, "mask", &j->in[3], &j->mask, err);
    j->in[3] = *t;
    j->mask = true;
    return PF_OK;
}

static enum pf_status
look_at_arrays(const struct attend_bare *b, struct pf_record *rec,
    struct job *j, struct pf_err *err)
{
    static const char *const names[] = { "q", "k", "v" };
    enum pf_status st;
    bool there;

    for (int i = 0; i < 3; i++) {
        st = floats(rec, names[i], &j->in[i], &there, err);
        if (st)
            return st;
        if (!there)
            return pf_fail(err, PF_ESHAPE, "the record has no %s (q, k and v "
                "make bare attention)", names[i]);
    }
    if ((st = mask(rec, j, err))
        || (st = pf_attention_plan(&j->a, &j->in[0], &j->in[1], &j->in[2],
            j->mask ? &j->in[3] : NULL, b->state->causal, b->scale, err)))
        return st;
    j->what = ARRAYS;
    j->out = "context";
    j->ndim = pf_attention_shape(&j->a, j->a.Dv, j->shape);
    j->map_ndim = pf_attention_shape(&j->a, j->a.S, j->map);
    return PF_OK;
}

/* Rows [T, C] for the matrix `by`; [] are none. */
static enum pf_status
rows(struct pf_record *rec, const char *name, struct pf_tensor *t,
    bool *there, size_t C, const char *by, struct pf_err *err)
{
    enum pf_status st = floats(rec, name, t, there, err);
    char shape[128];

    if (st || !*there)
        return st;
    if (t->ndim == 1 && t->shape[0] == 0) {
        t->ndim = 2;
        t->shape[1] = C;
    }
    if (t->ndim != 2 || t->shape[1] != C)
        return pf_fail(err, PF_ESHAPE, "%s: has the shape %s; %s of -w makes "
            "it [%c, %zu]", name,
            pf_shape_format(shape, sizeof shape, t->shape, t->ndim), by,
            name[0] == 'm' ? 'S' : 'T', C);
    return PF_OK;
}

static enum pf_status
look_at_rows(const struct attend_bare *b, struct pf_record *rec,
    struct job *j, struct pf_err *err)
{
    const struct pf_multihead *m = &b->state->heads;
    enum pf_status st;
    bool there;

    if ((st = rows(rec, "hidden", &j->in[0], &there, m->q.in, "wq", err)))
        return st;
    if (!there)
        return pf_fail(err, PF_ESHAPE, "the record has no hidden, which -w "
            "projects");
    if ((st = rows(rec, "memory", &j->in[1], &j->memory, m->k.in, "wk", err))
        || (st = mask(rec, j, err)))
        return st;
    if (!j->memory)
        j->in[1] = j->in[0];
    if (!j->memory && m->k.in != m->q.in)
        return pf_fail(err, PF_ESHAPE, "wq takes rows of %zu, wk of %zu, and "
            "the record has no memory", m->q.in, m->k.in);
    if (j->in[0].shape[0] && j->in[1].shape[0] == 0)
        return pf_fail(err, PF_ESHAPE, "memory: has no rows");
    j->what = ROWS;
    j->out = m->o.w ? "hidden" : "context";
    j->ndim = 2;
    j->shape[0] = j->in[0].shape[0];
    j->shape[1] = m->out;
    j->map_ndim = 3;
    j->map[0] = m->heads;
    j->map[1] = j->in[0].shape[0];
    j->map[2] = j->in[1].shape[0];
    return PF_OK;
}

static enum pf_status
look_at_mean(struct pf_record *rec, struct job *j, struct pf_err *err)
{
    const char *name = pf_record_has(rec, "v") ? "v" : "hidden";
    struct pf_tensor *x = &j->in[0];
    enum pf_status st;
    bool there;
    char shape[128];

    st = floats(rec, name, x, &there, err);
    if (st)
        return st;
    if (!there)
        return pf_fail(err, PF_ESHAPE, "the record has no v and no hidden, "
            "whose rows --uniform averages");
    if (x->ndim == 1 && x->shape[0] == 0) {
        x->ndim = 2;
        x->shape[1] = 0;
    }
    if (x->ndim < 2 || x->ndim > 4)
        return pf_fail(err, PF_ESHAPE, "%s: has the shape %s, not [..., T, D] "
            "with 2 to 4 dimensions", name,
            pf_shape_format(shape, sizeof shape, x->shape, x->ndim));
    j->what = MEAN;
    j->out = name[0] == 'v' ? "context" : "hidden";
    j->ndim = j->map_ndim = x->ndim;
    memcpy(j->shape, x->shape, x->ndim * sizeof *x->shape);
    memcpy(j->map, x->shape, x->ndim * sizeof *x->shape);
    j->map[x->ndim - 1] = x->shape[x->ndim - 2];
    return PF_OK;
}

static enum pf_status
look(const struct attend_bare *b, struct pf_record *rec, struct job *j,
    struct pf_err *err)
{
    *j = (struct job){ 0 };
    return b->uniform ? look_at_mean(rec, j, err)
        : b->weights ? look_at_rows(b, rec, j, err)
        : look_at_arrays(b, rec, j, err);
}

enum pf_status
attend_bare_check(struct attend_bare *b, struct cli_item *item,
    struct pf_err *err)
{
    struct job j;
    enum pf_status st = look(b, &item->rec, &j, err);
    size_t out, map = 0;

    if (!st)
        st = pf_shape_size(j.shape, j.ndim, PF_F32, NULL, &out, err);
    if (!st && (b->attn || b->scores))
        st = pf_shape_size(j.map, j.map_ndim, PF_F32, NULL, &map, err);
    if (!st)
        item->bytes = out + map;
    return st;
}

/* --- Computing it --- */

/* A new tensor of that name, which takes the place of one that is there. */
static float *
put(struct pf_record *rec, const char *name, unsigned ndim,
    const size_t *shape)
{
    struct pf_tensor *t;

    pf_record_drop(rec, name);
    t = pf_record_put(rec, name, PF_F32, ndim, shape, NULL);
    return t ? (float *)t->data : NULL;
}

static void
mean(const struct job *j, float *out, float *weights)
{
    const struct pf_tensor *x = &j->in[0];
    size_t T = x->shape[x->ndim - 2], C = x->shape[x->ndim - 1], n = 1;

    for (unsigned i = 0; i + 2 < x->ndim; i++)
        n *= x->shape[i];
    pf_running_mean(out, x->data, n, T, C);
    if (weights)
        pf_running_mean_weights(weights, n, T);
}

static enum pf_status
compute(struct attend_bare *b, const struct job *j, float *out,
    float *weights, float *scores, struct pf_err *err)
{
    struct attend_bare_state *s = b->state;

    switch (j->what) {
    case ARRAYS:
        return pf_attention_run(&j->a, s->pool, out, weights, scores, err);
    case ROWS:
        return j->shape[0] == 0 ? PF_OK : pf_multihead_run(&s->heads, s->pool,
            out, j->in[0].data, j->in[0].shape[0], j->in[1].data,
            j->in[1].shape[0], j->mask ? &j->in[3] : NULL, s->causal,
            b->scale, weights, scores, err);
    case MEAN:
        mean(j, out, weights);
    }
    return PF_OK;
}

/* What was used up goes, unless --keep names it; memory serves many. */
static void
drop_used(struct pf_record *rec, const struct job *j)
{
    switch (j->what) {
    case ARRAYS:
        cli_drop(rec, "q");
        cli_drop(rec, "k");
        cli_drop(rec, "v");
        cli_drop(rec, "mask");
        break;
    case ROWS:
        cli_drop(rec, "hidden");
        cli_drop(rec, "mask");
        break;
    case MEAN:
        cli_drop(rec, j->out[0] == 'c' ? "v" : "hidden");
    }
}

enum pf_status
attend_bare_one(struct attend_bare *b, struct cli_item *item,
    struct pf_err *err)
{
    struct pf_record *rec = &item->rec;
    float *out, *weights = NULL, *scores = NULL;
    struct job j;
    enum pf_status st = look(b, rec, &j, err);

    if (!st && !b->state->pool)
        st = pf_pool_new(&b->state->pool, cli.threads, err);
    if (st)
        return st;
    drop_used(rec, &j);
    out = put(rec, j.out, j.ndim, j.shape);
    if (out && b->attn) {
        weights = put(rec, "attn", j.map_ndim, j.map);
        pf_record_drop(rec, "layers"); /* of a model's attn */
        pf_record_drop(rec, "heads");
    }
    if (out && b->scores)
        scores = put(rec, "attn_scores", j.map_ndim, j.map);
    if (!out || (b->attn && !weights) || (b->scores && !scores))
        return pf_fail_mem(err);
    return compute(b, &j, out, weights, scores, err);
}
