/*
 * Everything is a sum over rows, so a map is read once and need not be kept:
 * a sequence that grows token by token costs a few numbers a head.
 *
 * The rollout is a product over layers, R[l] = B[l] R[l-1], where row t of
 * B[l] is (A[t] + e[t]) / 2, normalised, A the mean over heads.  Row t of R[l]
 * takes rows of R[l-1] that row t attends to.  In a causal model these are
 * there when row t comes, so of each layer the rows so far are kept, and a new
 * row is one product of a row and a matrix a layer.
 */
#include <pipeformer/attn-stat.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/buf.h>
#include <pipeformer/kernel.h>
#include <pipeformer/tensor.h>

/* Of one head; `mass` is that of all weights. */
struct sums {
    double mass, entropy, first, self, previous, duplicate, induction;
    size_t rows; /* that have mass */
};

struct pf_attn_stat {
    size_t L, H;
    struct sums *heads; /* [L][H] */
    size_t n;           /* rows so far */
    bool placed;        /* columns are positions */
    bool tokens;        /* the ids of all rows are known */
    uint32_t *ids;
    size_t cap_ids;
    size_t *equal; /* earlier positions of the same token, of one row */
    size_t cap_equal, repeats;
    bool rollout;
    float **r;    /* L matrices [stride, stride], the first n rows and columns
                     in use, 0 elsewhere */
    size_t stride;
    float *block; /* rows of B */
    size_t cap_block;
};

enum pf_status
pf_attn_stat_new(struct pf_attn_stat **out, size_t L, size_t H, bool rollout,
    struct pf_err *err)
{
    struct pf_attn_stat *a = calloc(1, sizeof *a);
    size_t n;

    *out = NULL;
    if (a && pf_mul(L, H, &n)) {
        a->heads = calloc(n + 1, sizeof *a->heads);
        a->r = calloc(L + 1, sizeof *a->r);
    }
    if (!a || !a->heads || !a->r) {
        pf_attn_stat_free(a);
        return pf_fail_mem(err);
    }
    a->L = L;
    a->H = H;
    a->rollout = rollout;
    a->placed = a->tokens = true;
    *out = a;
    return PF_OK;
}

void
pf_attn_stat_free(struct pf_attn_stat *a)
{
    if (!a)
        return;
    for (size_t l = 0; a->r && l < a->L; l++)
        free(a->r[l]);
    free(a->r);
    free(a->heads);
    free(a->ids);
    free(a->equal);
    free(a->block);
    free(a);
}

/* The earlier positions whose token is that of position p. */
static size_t
find_equal(struct pf_attn_stat *a, size_t p)
{
    size_t n = 0;

    for (size_t j = 0; j < p; j++)
        if (a->ids[j] == a->ids[p])
            a->equal[n++] = j;
    return n;
}

/* One row of one head: of position p, S columns. */
static bool
add_row(const struct pf_attn_stat *a, struct sums *s, const float *row,
    size_t S, size_t p, size_t n_equal)
{
    double mass = 0, logs = 0;

    for (size_t j = 0; j < S; j++) {
        double x = (double)row[j];

        if (!(x >= 0 && x <= FLT_MAX))
            return false;
        if (x == 0)
            continue;
        mass += x;
        logs += x * log(x);
    }
    if (mass == 0)
        return true;
    s->rows++;
    s->mass += mass;
    s->entropy += log(mass) - logs / mass;
    s->first += (double)row[0];
    if (!a->placed)
        return true;
    s->self += (double)row[p];
    if (p)
        s->previous += (double)row[p - 1];
    for (size_t i = 0; i < n_equal; i++) {
        s->duplicate += (double)row[a->equal[i]];
        s->induction += (double)row[a->equal[i] + 1];
    }
    return true;
}

static enum pf_status
bad_weight(const float *row, size_t S, size_t map, size_t t,
    struct pf_err *err)
{
    size_t j = 0;

    while (j + 1 < S && row[j] >= 0 && row[j] <= FLT_MAX)
        j++;
    return pf_fail(err, PF_ERANGE, "attn: %g is no weight, in map %zu, row "
        "%zu, column %zu", (double)row[j], map, t, j);
}

/* Room for S rows and columns in each matrix of the rollout. */
static enum pf_status
grow_rollout(struct pf_attn_stat *a, size_t S, struct pf_err *err)
{
    size_t wide = a->stride ? S + S / 2 : S, bytes;
    float *big;

    if (S <= a->stride)
        return PF_OK;
    if (!pf_mul(wide, wide, &bytes)
        || !pf_mul(bytes, sizeof(float), &bytes))
        return pf_fail_mem(err);
    for (size_t l = 0; l < a->L; l++) {
        big = calloc(1, bytes);
        if (!big)
            return pf_fail_mem(err);
        for (size_t t = 0; t < a->n; t++)
            memcpy(big + t * wide, a->r[l] + t * a->stride,
                a->n * sizeof *big);
        free(a->r[l]);
        a->r[l] = big;
    }
    a->stride = wide;
    return PF_OK;
}

/* Rows of B for one layer into a->block: T of them, from position a->n. */
static void
mix_rows(struct pf_attn_stat *a, const float *const *maps, size_t T, size_t S)
{
    for (size_t t = 0; t < T; t++) {
        float *b = a->block + t * S;
        double sum = 0;

        memset(b, 0, S * sizeof *b);
        for (size_t h = 0; h < a->H; h++)
            for (size_t j = 0; j < S; j++)
                b[j] += maps[h][t * S + j];
        for (size_t j = 0; j < S; j++)
            b[j] /= (float)a->H;
        b[a->n + t] += 1;
        for (size_t j = 0; j < S; j++)
            sum += (double)b[j];
        for (size_t j = 0; j < S; j++)
            b[j] /= (float)sum;
    }
}

static enum pf_status
add_rollout(struct pf_attn_stat *a, const float *const *maps, size_t T,
    size_t S, struct pf_err *err)
{
    const struct pf_kernels *kern = pf_kernels_best();
    enum pf_status st = grow_rollout(a, S, err);
    size_t need;

    if (st)
        return st;
    if (!pf_mul(T, S, &need)
        || !pf_grow(&a->block, &a->cap_block, need, sizeof *a->block))
        return pf_fail_mem(err);
    for (size_t l = 0; l < a->L; l++) {
        float *out = a->r[l] + a->n * a->stride;

        mix_rows(a, maps + l * a->H, T, S);
        if (l)
            kern->matmul_nn(out, a->stride, a->block, S, a->r[l - 1], PF_F32,
                NULL, T, S, a->stride, 0, S);
        else
            for (size_t t = 0; t < T; t++)
                memcpy(out + t * a->stride, a->block + t * S, S * sizeof *out);
    }
    return PF_OK;
}

static enum pf_status
add_ids(struct pf_attn_stat *a, size_t T, const uint32_t *ids,
    struct pf_err *err)
{
    a->tokens = a->tokens && ids && a->placed;
    if (!a->tokens)
        return PF_OK;
    if (!pf_grow(&a->ids, &a->cap_ids, a->n + T + 1, sizeof *a->ids)
        || !pf_grow(&a->equal, &a->cap_equal, a->n + T + 1, sizeof *a->equal))
        return pf_fail_mem(err);
    if (T)
        memcpy(a->ids + a->n, ids, T * sizeof *ids);
    return PF_OK;
}

enum pf_status
pf_attn_stat_add(struct pf_attn_stat *a, const float *const *maps, size_t T,
    size_t S, const uint32_t *ids, struct pf_err *err)
{
    size_t n_maps = a->L * a->H;
    enum pf_status st;

    if (S != a->n + T) {
        if (a->n || a->rollout)
            return pf_fail(err, PF_ESHAPE, "attn: has %zu columns; with its "
                "%zu rows the sequence has %zu positions", S, T, a->n + T);
        a->placed = false;
    } else if (!a->placed) {
        return pf_fail(err, PF_ESHAPE, "attn: goes on after a map whose "
            "columns were no positions");
    }
    st = add_ids(a, T, ids, err);
    if (st)
        return st;
    for (size_t t = 0; t < T; t++) {
        size_t n_equal = a->tokens ? find_equal(a, a->n + t) : 0;

        a->repeats += n_equal > 0;
        for (size_t i = 0; i < n_maps && S; i++)
            if (!add_row(a, &a->heads[i], maps[i] + t * S, S, a->n + t,
                    n_equal))
                return bad_weight(maps[i] + t * S, S, i, t, err);
    }
    if (a->rollout && n_maps && T)
        st = add_rollout(a, maps, T, S, err);
    a->n += T;
    return st;
}

void
pf_attn_stat_head(const struct pf_attn_stat *a, size_t l, size_t h,
    struct pf_head_stat *out)
{
    const struct sums *s = &a->heads[l * a->H + h];
    double mass = s->mass > 0 ? s->mass : NAN;

    *out = (struct pf_head_stat){
        .entropy = s->rows ? s->entropy / (double)s->rows : NAN,
        .first = s->first / mass,
        .self = a->placed ? s->self / mass : NAN,
        .previous = a->placed ? s->previous / mass : NAN,
        .duplicate = a->tokens ? s->duplicate / mass : NAN,
        .induction = a->tokens ? s->induction / mass : NAN,
    };
}

size_t
pf_attn_stat_rows(const struct pf_attn_stat *a)
{
    return a->n;
}

size_t
pf_attn_stat_repeats(const struct pf_attn_stat *a)
{
    return a->repeats;
}

const uint32_t *
pf_attn_stat_ids(const struct pf_attn_stat *a)
{
    return a->tokens ? a->ids : NULL;
}

const float *
pf_attn_stat_rollout(const struct pf_attn_stat *a, size_t t)
{
    return a->r[a->L - 1] + t * a->stride;
}

size_t
pf_attn_stat_bytes(const struct pf_attn_stat *a)
{
    return sizeof *a + a->L * a->H * sizeof *a->heads
        + a->cap_ids * sizeof *a->ids + a->cap_equal * sizeof *a->equal
        + (a->L * a->stride * a->stride + a->cap_block) * sizeof(float);
}
