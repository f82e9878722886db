/*
 * With z the logits, log p(id) = z[id] - m - log(sum of exp(z[i] - m)), m their
 * maximum, so that no exponential overflows.  Float32 logits are exact in
 * double, and so are most of the differences; what is left is rounding of 1e-16
 * a term.
 *
 * A text may come in many records.  All that one leaves for the next is its
 * last row of logits, since only the next id says which of them is asked for.
 */
#include <pipeformer/score.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/json.h>
#include <pipeformer/seqmap.h>

/* --- One row --- */

enum { LANES = 16 };

/* The maximum, and whether there is NaN or +inf: sixteen at a time. */
static float
row_max(const float *z, size_t V, bool *bad)
{
    float max[LANES], all = -INFINITY;
    unsigned wrong[LANES] = { 0 }, any = 0;
    size_t i = 0;

    for (size_t l = 0; l < LANES; l++)
        max[l] = -INFINITY;
    for (; i + LANES <= V; i += LANES) {
        for (size_t l = 0; l < LANES; l++) {
            max[l] = z[i + l] > max[l] ? z[i + l] : max[l];
            wrong[l] |= !(z[i + l] <= FLT_MAX);
        }
    }
    for (; i < V; i++) {
        max[0] = z[i] > max[0] ? z[i] : max[0];
        wrong[0] |= !(z[i] <= FLT_MAX);
    }
    for (size_t l = 0; l < LANES; l++) {
        all = max[l] > all ? max[l] : all;
        any |= wrong[l];
    }
    *bad = any;
    return all;
}

static enum pf_status
bad_row(const float *z, size_t V, struct pf_err *err)
{
    for (size_t i = 0; i < V; i++)
        if (!(z[i] <= FLT_MAX))
            return pf_fail(err, PF_ERANGE, "logits: %s at id %zu",
                isnan(z[i]) ? "NaN" : "+infinity", i);
    return pf_fail(err, PF_ERANGE, V ? "logits: all of them are -infinity"
        : "logits: there are none");
}

enum pf_status
pf_score_row(const float *z, size_t V, uint32_t id, double *logprob,
    size_t *rank, struct pf_err *err)
{
    bool bad;
    float max = row_max(z, V, &bad);
    double sum = 0;
    size_t before = 0;

    if (bad || max == -INFINITY)
        return bad_row(z, V, err);
    if (id >= V)
        return pf_fail(err, PF_ERANGE, "ids: %lu, but logits has %zu columns",
            (unsigned long)id, V);
    for (size_t i = 0; i < V; i++)
        sum += exp((double)z[i] - (double)max);
    for (size_t i = 0; i < V; i++)
        before += z[i] > z[id];
    for (size_t i = 0; i < id; i++)
        before += z[i] == z[id];
    *logprob = (double)z[id] - (double)max - log(sum);
    *rank = before;
    return PF_OK;
}

/* --- Sums --- */

enum pf_status
pf_score_set_sum(struct pf_record *rec, const struct pf_score_sum *sum,
    struct pf_err *err)
{
    double n = (double)sum->n, bits = sum->nll / log(2);
    enum pf_status st = pf_record_set_i64(rec, "n", (int64_t)sum->n, err);

    if (!st)
        st = pf_record_set_f64(rec, "nll", sum->nll, err);
    if (!st)
        st = pf_record_set_f64(rec, "perplexity", exp(sum->nll / n), err);
    if (!st)
        st = pf_record_set_f64(rec, "bits", bits, err);
    return st ? st : pf_record_set_f64(rec, "bits_per_token", bits / n, err);
}

/* --- Sequences --- */

/* What is known of one; its rows are of V logits. */
struct follow {
    struct follow *older, *newer; /* by last use */
    size_t from, to; /* the last record was of positions from .. to - 1 */
    size_t V;
    float *before, *last; /* the rows of positions from - 1, to - 1, or NULL */
    size_t key_len;
    char key[];
};

struct pf_scorer {
    struct pf_seqmap map;
    struct follow *oldest, *newest;
    size_t mem, used;
    struct pf_buf key, logprobs, ranks;
};

enum pf_status
pf_scorer_new(struct pf_scorer **s, size_t mem, struct pf_err *err)
{
    *s = calloc(1, sizeof **s);
    if (!*s)
        return pf_fail_mem(err);
    (*s)->mem = mem;
    return PF_OK;
}

static size_t
bytes_of(const struct follow *f)
{
    return sizeof *f + f->key_len
        + f->V * sizeof(float) * ((size_t)!!f->before + !!f->last);
}

static void
unlink_it(struct pf_scorer *s, struct follow *f)
{
    *(f->older ? &f->older->newer : &s->oldest) = f->newer;
    *(f->newer ? &f->newer->older : &s->newest) = f->older;
}

static void
link_newest(struct pf_scorer *s, struct follow *f)
{
    f->older = s->newest;
    f->newer = NULL;
    *(f->older ? &f->older->newer : &s->oldest) = f;
    s->newest = f;
}

static void
forget(struct pf_scorer *s, struct follow *f)
{
    if (!f)
        return;
    pf_seqmap_take(&s->map, f->key, f->key_len);
    s->used -= bytes_of(f);
    unlink_it(s, f);
    free(f->before);
    free(f->last);
    free(f);
}

void
pf_scorer_free(struct pf_scorer *s)
{
    if (!s)
        return;
    while (s->oldest)
        forget(s, s->oldest);
    pf_seqmap_fini(&s->map, NULL);
    pf_buf_fini(&s->key);
    pf_buf_fini(&s->logprobs);
    pf_buf_fini(&s->ranks);
    free(s);
}

/* The sequence that a field names, and s->key; NULL if it is not known. */
static enum pf_status
find(struct pf_scorer *s, const struct pf_record *rec, const char *name,
    struct follow **f, struct pf_err *err)
{
    enum pf_status st;

    pf_buf_clear(&s->key);
    st = pf_record_seq(rec, name, &s->key, err);
    *f = st ? NULL : pf_seqmap_get(&s->map, s->key.data, s->key.len);
    return st;
}

enum pf_status
pf_scorer_end(struct pf_scorer *s, const struct pf_record *mark,
    struct pf_err *err)
{
    struct follow *f;
    enum pf_status st = find(s, mark, "seq", &f, err);

    if (!st && pf_record_field(mark, "seq"))
        forget(s, f);
    return st;
}

static struct follow *
begin(struct pf_scorer *s, size_t V, struct pf_err *err)
{
    struct follow *f = calloc(1, sizeof *f + s->key.len + 1);

    if (!f || pf_seqmap_put(&s->map, s->key.data ? s->key.data : "",
            s->key.len, f, NULL)) {
        free(f);
        pf_fail_mem(err);
        return NULL;
    }
    f->V = V;
    f->key_len = s->key.len;
    if (f->key_len)
        memcpy(f->key, s->key.data, f->key_len);
    link_newest(s, f);
    s->used += bytes_of(f);
    return f;
}

static enum pf_status
copy_row(float **to, const float *row, size_t V, struct pf_err *err)
{
    if (!*to)
        *to = malloc(V * sizeof **to);
    if (!*to)
        return pf_fail_mem(err);
    memcpy(*to, row, V * sizeof **to);
    return PF_OK;
}

/* What a record is about; pointers into it. */
struct job {
    const float *logits;
    const uint32_t *ids;
    size_t T, V, pos, overlap;
    const float *before; /* the row that scores ids[0], or NULL */
};

static enum pf_status
shapes(struct pf_record *rec, struct job *j, struct pf_err *err)
{
    const struct pf_tensor *t;
    enum pf_status st = pf_record_f32(rec, "logits", &t, &j->logits, err);
    char shape[128];
    size_t rows;

    if (!st)
        st = pf_record_ids(rec, "ids", &j->ids, &j->T, err);
    if (st)
        return st;
    if (!t)
        return pf_fail(err, PF_ESHAPE, "the record has no logits (unembed -A "
            "gives them)");
    if (!j->ids)
        return pf_fail(err, PF_ESHAPE, "the record has no ids, the tokens to "
            "score");
    if (t->ndim < 1 || t->ndim > 2)
        return pf_fail(err, PF_ESHAPE, "logits: has the shape %s, not [T, V]",
            pf_shape_format(shape, sizeof shape, t->shape, t->ndim));
    j->V = t->shape[t->ndim - 1];
    rows = t->ndim == 2 ? t->shape[0] : j->V > 0;
    if (rows != j->T)
        return pf_fail(err, PF_ESHAPE, "logits: %zu row%s for %zu id%s; "
            "unembed -A gives one for each", rows, rows == 1 ? "" : "s", j->T,
            j->T == 1 ? "" : "s");
    for (size_t i = 0; i < j->T; i++)
        if (j->ids[i] >= j->V)
            return pf_fail(err, PF_ERANGE, "ids: %lu at %zu, but logits has "
                "%zu columns", (unsigned long)j->ids[i], i, j->V);
    return PF_OK;
}

/* The row before position `pos` of a sequence. */
static enum pf_status
row_before(const struct follow *f, struct job *j, struct pf_err *err)
{
    if (f && f->V != j->V)
        return pf_fail(err, PF_ESHAPE, "logits: has %zu columns; those before "
            "in the sequence had %zu", j->V, f->V);
    j->before = !f ? NULL : j->pos == f->to ? f->last
        : j->pos == f->from ? f->before : NULL;
    if (j->before)
        return PF_OK;
    if (!f)
        return pf_fail(err, PF_ESTATE, "record starts at %zu and nothing "
            "is known of what comes before; its first id cannot be scored",
            j->pos);
    return pf_fail(err, PF_ESTATE, "record starts at %zu, the last one was of "
        "%zu to %zu; the row before is not held", j->pos, f->from, f->to);
}

/* Puts the name of the sequence before what is wrong. */
static enum pf_status
of_seq(const struct pf_record *rec, enum pf_status st,
    const struct pf_err *why, struct pf_err *err)
{
    const struct pf_field *seq = pf_record_field(rec, "seq");

    return seq ? pf_fail(err, st, "seq %.*s: %.300s",
        (int)(seq->len < 60 ? seq->len : 60), seq->text, why->msg)
        : pf_fail(err, st, "%s", why->msg);
}

/* Appends the scores; those of a record are few beside its logits. */
static enum pf_status
score(struct pf_scorer *s, const struct job *j, struct pf_score_sum *sum,
    struct pf_err *err)
{
    *sum = (struct pf_score_sum){ 0, 0 };
    pf_buf_clear(&s->logprobs);
    pf_buf_clear(&s->ranks);
    for (size_t t = 0; t < j->T; t++) {
        const float *row = t ? j->logits + (t - 1) * j->V : j->before;
        double logprob;
        size_t rank;
        struct pf_err why;

        if (!row || j->pos + t < j->overlap)
            continue;
        if (pf_score_row(row, j->V, j->ids[t], &logprob, &rank, &why))
            return t ? pf_fail(err, why.status, "%s, in row %zu", why.msg,
                t - 1) : pf_fail(err, why.status, "%s, in the row before this "
                "record", why.msg);
        pf_buf_addc(&s->logprobs, sum->n ? ',' : '[');
        pf_buf_addc(&s->ranks, sum->n ? ',' : '[');
        pf_json_add_f32(&s->logprobs, (float)logprob);
        pf_json_add_i64(&s->ranks, (int64_t)rank);
        sum->nll -= logprob;
        sum->n++;
    }
    pf_buf_adds(&s->logprobs, sum->n ? "]" : "[]");
    pf_buf_adds(&s->ranks, sum->n ? "]" : "[]");
    return s->logprobs.failed || s->ranks.failed ? pf_fail_mem(err) : PF_OK;
}

/*
 * Remembers the record's last row (it has one), and the one before it.  `f` is
 * what was known of its sequence, or NULL.
 */
static enum pf_status
remember(struct pf_scorer *s, struct follow *f, const struct job *j,
    struct pf_err *err)
{
    enum pf_status st = PF_OK;
    float *swap;

    if (f && f->V != j->V) { /* begun anew with another model */
        forget(s, f);
        f = NULL;
    }
    if (!f && !(f = begin(s, j->V, err)))
        return PF_ENOMEM;
    unlink_it(s, f);
    link_newest(s, f);
    s->used -= bytes_of(f);
    if (j->before == f->last) {
        swap = f->before;
        f->before = f->last;
        f->last = swap;
    } else if (j->before && j->before != f->before) {
        st = copy_row(&f->before, j->before, j->V, err); /* of a fork */
    }
    if (!st)
        st = copy_row(&f->last, j->logits + (j->T - 1) * j->V, j->V, err);
    f->from = j->pos;
    f->to = j->pos + j->T;
    s->used += bytes_of(f);
    if (st)
        forget(s, f);
    while (s->used > s->mem && s->oldest != s->newest)
        forget(s, s->oldest);
    return st;
}

enum pf_status
pf_scorer_score(struct pf_scorer *s, struct pf_record *rec,
    struct pf_score_sum *sum, struct pf_err *err)
{
    struct follow *f = NULL, *parent;
    struct job j = { 0 };
    int64_t overlap;
    enum pf_status st;
    struct pf_err why;

    if ((st = shapes(rec, &j, err)) || (st = pf_record_pos(rec, &j.pos, err))
        || (st = pf_record_i64(rec, "overlap", 0, &overlap, err)))
        return st;
    if (overlap < 0)
        return pf_fail(err, PF_ERANGE, "overlap: %lld is no number of ids",
            (long long)overlap);
    j.overlap = (size_t)overlap;
    if (j.pos && j.T && pf_record_has(rec, "fork")) {
        if (!(st = find(s, rec, "fork", &parent, err))
            && (st = row_before(parent, &j, &why)))
            st = pf_fail(err, st, "fork: %.300s", why.msg);
    }
    if (!st)
        st = find(s, rec, "seq", &f, err);
    if (!st && j.pos && j.T && !j.before && (st = row_before(f, &j, &why)))
        st = of_seq(rec, st, &why, err);
    if (!st)
        st = score(s, &j, sum, err);
    if (!st && (pf_record_is_done(rec) || (!j.T && !j.pos)))
        forget(s, f);
    else if (!st && j.T)
        st = remember(s, f, &j, err);
    if (!st)
        st = pf_record_set(rec, "logprobs", s->logprobs.data, s->logprobs.len,
            err);
    if (!st)
        st = pf_record_set(rec, "ranks", s->ranks.data, s->ranks.len, err);
    return st ? st : pf_score_set_sum(rec, sum, err);
}
