/*
 * What a probe sees of a block, and what becomes of what it changes.  A probe
 * here records all activations, after changing some rows of one point or none;
 * each activation must be what the formulas of the block make of the recorded
 * ones before it.  Looking alone changes no bit, nor does it matter how rows
 * are cut and batched.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "small-model.h"

enum { SEQS = 6, T_MAX = 70, L_MAX = 2 };

/* More rows than go through a layer at a time (256). */
static const size_t lengths[SEQS] = { T_MAX, 1, 53, 70, 64, 49 };
static const size_t layers[L_MAX] = { 0, 1 };
static const size_t heads[] = { 2, 0 };

/* --- A probe that records --- */

struct recorder {
    const struct small_shape *s;
    size_t pos[SEQS]; /* position of each sequence's first row */
    unsigned want;
    bool says_changed;       /* what `at` returns where nothing was edited */
    enum pf_point edits;     /* PF_N_POINTS: none */
    bool (*edit)(const struct small_shape *s, enum pf_point point,
        size_t layer, size_t head, size_t row, float *v, size_t width);
    /* Rows are positions; of scores and patterns [H, T_MAX, T_MAX]. */
    float *v[SEQS][L_MAX][PF_N_POINTS];
};

static size_t
width_of(const struct small_shape *s, enum pf_point p)
{
    switch (p) {
    case PF_SCORES: case PF_PATTERN: return T_MAX;
    case PF_RESULT: return s->H * s->C;
    case PF_MLP_PRE: case PF_MLP_POST: return s->F;
    default: return s->C;
    }
}

static bool
by_head(enum pf_point p)
{
    return p == PF_SCORES || p == PF_PATTERN;
}

static bool
wants(void *ctx, size_t layer, enum pf_point point)
{
    const struct recorder *r = ctx;

    assert_true(layer < L_MAX);
    return r->want >> point & 1;
}

static bool
at(void *ctx, size_t sequence, size_t layer, enum pf_point point, size_t head,
    size_t first, size_t n, float *data, size_t width, size_t stride)
{
    struct recorder *r = ctx;
    size_t full = width_of(r->s, point);
    bool changed = false;

    assert_true(r->want >> point & 1);
    assert_true(sequence < SEQS && layer < L_MAX && n > 0 && stride >= width);
    assert_true(by_head(point) ? head < r->s->H && width <= full
        : head == 0 && width == full);
    for (size_t i = 0; i < n; i++) {
        size_t row = r->pos[sequence] + first + i;

        assert_true(row < T_MAX);
        if (point == r->edits)
            changed |= r->edit(r->s, point, layer, head, row,
                data + i * stride, width);
        memcpy(r->v[sequence][layer][point] + (head * T_MAX + row) * full,
            data + i * stride, width * sizeof *data);
    }
    return changed || r->says_changed;
}

static void
start(struct recorder *r, const struct small_shape *s)
{
    *r = (struct recorder){ .s = s, .want = (1u << PF_N_POINTS) - 1,
        .edits = PF_N_POINTS };
    for (size_t i = 0; i < SEQS; i++)
        for (size_t l = 0; l < L_MAX; l++)
            for (int p = 0; p < PF_N_POINTS; p++) {
                size_t n = (by_head(p) ? s->H : 1) * T_MAX * width_of(s, p);

                r->v[i][l][p] = small_floats(n);
                for (size_t k = 0; p == PF_SCORES && k < n; k++)
                    r->v[i][l][p][k] = -INFINITY;
            }
}

static void
stop(struct recorder *r)
{
    for (size_t i = 0; i < SEQS; i++)
        for (size_t l = 0; l < L_MAX; l++)
            for (int p = 0; p < PF_N_POINTS; p++)
                free(r->v[i][l][p]);
}

static void
check_same(const struct recorder *a, const struct recorder *b)
{
    for (size_t i = 0; i < SEQS; i++)
        for (size_t l = 0; l < L_MAX; l++)
            for (int p = 0; p < PF_N_POINTS; p++)
                if (memcmp(a->v[i][l][p], b->v[i][l][p], (by_head(p)
                        ? a->s->H : 1) * T_MAX * width_of(a->s, p)
                        * sizeof(float)) != 0)
                    fail_msg("sequence %zu, layer %zu, point %d", i, l, p);
}

/* --- Running --- */

struct run {
    float *x[SEQS];    /* [T, C] */
    float *maps[SEQS]; /* [L, 2, T, T] */
};

static void
start_run(struct run *r, const struct small_shape *s)
{
    for (size_t i = 0; i < SEQS; i++) {
        r->x[i] = small_floats(lengths[i] * s->C);
        r->maps[i] = small_floats(L_MAX * 2 * lengths[i] * lengths[i]);
    }
}

static void
stop_run(struct run *r)
{
    for (size_t i = 0; i < SEQS; i++) {
        free(r->x[i]);
        free(r->maps[i]);
    }
}

static void
check_same_run(const struct run *a, const struct run *b, size_t C)
{
    for (size_t i = 0; i < SEQS; i++) {
        assert_memory_equal(a->x[i], b->x[i],
            lengths[i] * C * sizeof(float));
        assert_memory_equal(a->maps[i], b->maps[i],
            L_MAX * 2 * lengths[i] * lengths[i] * sizeof(float));
    }
}

/* All sequences as one batch, `piece` rows at a time (0: at once). */
static void
run(const struct pf_model *m, struct run *out, struct recorder *rec,
    size_t piece, size_t threads)
{
    const struct pf_probe probe = { rec, wants, at };
    const struct pf_config *c = &m->config;
    struct pf_kv_cache *cache;
    struct pf_runner *r;

    assert_int_equal(pf_runner_new(&r, m, threads, NULL), PF_OK);
    assert_int_equal(pf_kv_cache_new(&cache, L_MAX, c->width, 1 << 26, NULL),
        PF_OK);
    small_seed = 7;
    for (size_t i = 0; i < SEQS; i++) {
        uint32_t ids[T_MAX];

        for (size_t t = 0; t < lengths[i]; t++)
            ids[t] = small_random() % (uint32_t)c->vocab;
        assert_int_equal(pf_embed(m, out->x[i], ids, NULL, lengths[i], 0,
            true, NULL), PF_OK);
    }
    for (size_t from = 0; from < T_MAX; from += piece ? piece : T_MAX) {
        struct pf_rows rows[SEQS];

        for (size_t i = 0; i < SEQS; i++) {
            size_t T = from < lengths[i] ? lengths[i] - from : 0;
            char key = (char)('a' + i);

            if (piece && T > piece)
                T = piece;
            rows[i] = (struct pf_rows){ .x = out->x[i] + from * c->width,
                .T = T, .pos = T ? from : 0,
                .attn = piece ? NULL : out->maps[i] };
            if (rec)
                rec->pos[i] = from;
            if (!c->encoder && T)
                assert_int_equal(pf_kv_begin(cache, &rows[i].kv, &key, 1,
                    NULL, 0, from, T, 0, NULL), PF_OK);
        }
        assert_int_equal(pf_blocks(r, cache, rows, SEQS, layers, L_MAX, heads,
            2, PF_PART_BOTH, rec ? &probe : NULL, NULL), PF_OK);
        pf_kv_idle(cache);
    }
    pf_kv_cache_free(cache);
    pf_runner_free(r);
}

/* --- The formulas --- */

static bool
is_gpt2(const struct small_shape *s)
{
    return strcmp(s->type, "gpt2") == 0;
}

enum layer_part { LN1, QKV, PROJ, LN2, FC, FC_PROJ };

static const float *
weight(const struct small_model *w, size_t layer, enum layer_part part,
    size_t third, const char *rest)
{
    static const char *const gpt2[] = { "ln_1", "attn.c_attn", "attn.c_proj",
        "ln_2", "mlp.c_fc", "mlp.c_proj" };
    static const char *const bert[] = { "attention.output.LayerNorm",
        "attention.self.query", "attention.output.dense", "output.LayerNorm",
        "intermediate.dense", "output.dense" };
    char name[96];

    snprintf(name, sizeof name, is_gpt2(&w->s) ? "h.%zu.%s.%s"
        : "encoder.layer.%zu.%s.%s", layer, is_gpt2(&w->s) ? gpt2[part]
        : part == QKV && third ? third == 1 ? "attention.self.key"
        : "attention.self.value" : bert[part], rest);
    return small_weight(w, name);
}

static void
close_to(float got, double want, const char *what, size_t i)
{
    if (!((double)got == want
            || fabs((double)got - want) <= 3e-5 + 3e-5 * fabs(want)))
        fail_msg("%s %zu: %.9g, not %.9g", what, i, (double)got, want);
}

/* y is the norm of x. */
static void
check_norm(const struct small_model *w, size_t layer, enum layer_part part,
    const float *y, const float *x, size_t T)
{
    const float *gain = weight(w, layer, part, 0, "weight");
    const float *bias = weight(w, layer, part, 0, "bias");
    size_t C = w->s.C;

    for (size_t t = 0; t < T; t++) {
        double mean = 0, var = 0;

        for (size_t i = 0; i < C; i++)
            mean += (double)x[t * C + i] / (double)C;
        for (size_t i = 0; i < C; i++)
            var += pow((double)x[t * C + i] - mean, 2) / (double)C;
        for (size_t i = 0; i < C; i++)
            close_to(y[t * C + i], ((double)x[t * C + i] - mean)
                / sqrt(var + (double)0.001f) * (double)gain[i]
                + (double)bias[i], "norm", t * C + i);
    }
}

/* Input columns from .. to - 1 of a matrix, times x, to its column o. */
static double
times(const struct small_model *w, size_t layer, enum layer_part part,
    size_t third, const float *x, size_t from, size_t to, size_t in,
    size_t out, size_t o)
{
    const float *m = weight(w, layer, part, third, "weight");
    size_t columns = part == QKV ? 3 * out : out;
    double sum = 0;

    for (size_t i = from; i < to; i++)
        sum += (double)x[i] * (double)(is_gpt2(&w->s)
            ? m[i * columns + third * out + o] : m[o * in + i]);
    return sum;
}

static void
check_linear(const struct small_model *w, size_t layer, enum layer_part part,
    size_t third, const float *y, const float *x, size_t T, size_t in,
    size_t out)
{
    const float *bias = weight(w, layer, part, third, "bias")
        + (is_gpt2(&w->s) ? third * out : 0);

    for (size_t t = 0; t < T; t++)
        for (size_t o = 0; o < out; o++)
            close_to(y[t * out + o], (double)bias[o] + times(w, layer, part,
                third, x + t * in, 0, in, in, out, o), "linear", part);
}

static void
check_sum(const float *y, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_true(y[i] == a[i] + b[i]);
}

static void
check_attention(const struct small_model *w, float *const *v, size_t T,
    enum pf_point but)
{
    size_t C = w->s.C, H = w->s.H, D = C / H;

    for (size_t i = 0; i < H * T; i++) {
        size_t h = i / T, t = i % T, base = (h * T_MAX + t) * T_MAX;
        const float *s = v[PF_SCORES] + base, *p = v[PF_PATTERN] + base;
        double max = -INFINITY, sum = 0;

        for (size_t j = 0; j < T; j++) {
            double want = 0;

            for (size_t d = h * D; d < (h + 1) * D; d++)
                want += (double)v[PF_Q][t * C + d]
                    * (double)v[PF_K][j * C + d] / sqrt((double)D);
            if (is_gpt2(&w->s) && j > t)
                want = -INFINITY;
            if (but != PF_SCORES)
                close_to(s[j], want, "score", j);
            max = (double)s[j] > max ? (double)s[j] : max;
        }
        for (size_t j = 0; j < T; j++)
            sum += max > -INFINITY ? exp((double)s[j] - max) : 1;
        for (size_t j = 0; but != PF_PATTERN && j < T; j++)
            close_to(p[j], max > -INFINITY ? exp((double)s[j] - max) / sum
                : 0, "pattern", j);
        for (size_t d = h * D; but != PF_Z && d < (h + 1) * D; d++) {
            double want = 0;

            for (size_t j = 0; j < T; j++)
                want += (double)p[j] * (double)v[PF_V][j * C + d];
            close_to(v[PF_Z][t * C + d], want, "z", t * C + d);
        }
    }
}

/* Layer `l` of a sequence; `but` may be anything. */
static void
check_layer(const struct small_model *w, float *const *v, size_t l, size_t T,
    enum pf_point but)
{
    const struct small_shape *s = &w->s;
    size_t C = s->C, H = s->H, D = C / H, F = s->F;
    bool gpt2 = is_gpt2(s);
    const float *in = gpt2 ? v[PF_LN1] : v[PF_RESID_PRE], *mlp_in, *mid;
    const float *bias = weight(w, l, PROJ, 0, "bias");

    if (gpt2 && but != PF_LN1)
        check_norm(w, l, LN1, v[PF_LN1], v[PF_RESID_PRE], T);
    for (size_t i = 0; i < 3; i++)
        if (but != PF_Q + i)
            check_linear(w, l, QKV, i, v[PF_Q + i], in, T, C, C);
    check_attention(w, v, T, but);
    for (size_t i = 0; i < T * C; i++) {
        const float *r = v[PF_RESULT] + i / C * H * C + i % C;
        double sum = (double)bias[i % C];

        for (size_t h = 0; h < H; h++) {
            sum += (double)r[h * C];
            if (but != PF_RESULT)
                close_to(r[h * C], times(w, l, PROJ, 0, v[PF_Z] + i / C * C,
                    h * D, (h + 1) * D, C, C, i % C), "result", i);
        }
        if (but != PF_ATTN_OUT)
            close_to(v[PF_ATTN_OUT][i], sum, "attn_out", i);
    }
    if (but != PF_RESID_MID)
        check_sum(v[PF_RESID_MID], v[PF_RESID_PRE], v[PF_ATTN_OUT], T * C);
    mid = v[gpt2 ? PF_RESID_MID : PF_LN1];
    mlp_in = v[gpt2 ? PF_LN2 : PF_LN1];
    if (!gpt2 && but != PF_LN1)
        check_norm(w, l, LN1, v[PF_LN1], v[PF_RESID_MID], T);
    if (gpt2 && but != PF_LN2)
        check_norm(w, l, LN2, v[PF_LN2], v[PF_RESID_MID], T);
    if (but != PF_MLP_PRE)
        check_linear(w, l, FC, 0, v[PF_MLP_PRE], mlp_in, T, C, F);
    for (size_t i = 0; but != PF_MLP_POST && i < T * F; i++) {
        double x = (double)v[PF_MLP_PRE][i];

        close_to(v[PF_MLP_POST][i], 0.5 * x * (1 + erf(x / sqrt(2))), "act",
            i);
    }
    if (but != PF_MLP_OUT)
        check_linear(w, l, FC_PROJ, 0, v[PF_MLP_OUT], v[PF_MLP_POST], T, F,
            C);
    if (but != PF_RESID_POST)
        check_sum(v[PF_RESID_POST], mid, v[PF_MLP_OUT], T * C);
    if (!gpt2 && but != PF_LN2)
        check_norm(w, l, LN2, v[PF_LN2], v[PF_RESID_POST], T);
}

static void
check_formulas(const struct small_model *w, const struct recorder *r,
    const struct run *out)
{
    enum pf_point last = is_gpt2(&w->s) ? PF_RESID_POST : PF_LN2;

    for (size_t i = 0; i < SEQS; i++) {
        size_t T = lengths[i], rows = T * w->s.C * sizeof(float);

        for (size_t l = 0; l < L_MAX; l++) {
            check_layer(w, r->v[i][l], l, T, r->edits);
            if (l && r->edits != PF_RESID_PRE)
                assert_memory_equal(r->v[i][l][PF_RESID_PRE],
                    r->v[i][l - 1][last], rows);
            /* Maps are the pattern in force. */
            for (size_t k = 0; k < 2 * T; k++)
                assert_memory_equal(out->maps[i] + (l * 2 * T + k) * T,
                    r->v[i][l][PF_PATTERN] + (heads[k / T] * T_MAX + k % T)
                    * T_MAX, T * sizeof(float));
        }
        assert_memory_equal(out->x[i], r->v[i][L_MAX - 1][last], rows);
    }
}

/* --- Tests --- */

static const struct small_shape shapes[] = {
    { "gpt2", 40, T_MAX, 24, L_MAX, 3, 40, "gelu", PF_F32, false, false,
        false, false, false },
    { "gpt2", 40, T_MAX, 63, L_MAX, 3, 90, "gelu", PF_BF16, false, false,
        false, false, false },
    { "bert", 40, T_MAX, 24, L_MAX, 3, 40, "gelu", PF_BF16, false, false,
        false, false, false },
    { "bert", 40, T_MAX, 96, L_MAX, 6, 70, "gelu", PF_F32, false, false,
        false, false, false },
};

enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static void
test_looking(void **ctx)
{
    (void)ctx;
    for (size_t k = 0; k < N_SHAPES; k++) {
        const struct small_shape *s = &shapes[k];
        struct small_model w;
        struct pf_model *m = small_open(&w, s);
        struct recorder all, other;
        struct run plain, seen;

        start_run(&plain, s);
        start_run(&seen, s);
        start(&all, s);
        start(&other, s);
        run(m, &plain, NULL, 0, 2);
        run(m, &seen, &all, 0, 2);
        check_same_run(&seen, &plain, s->C);
        check_formulas(&w, &all, &seen);
        other.says_changed = true; /* though it changes nothing */
        run(m, &seen, &other, 0, 1);
        check_same_run(&seen, &plain, s->C);
        check_same(&all, &other);
        for (size_t piece = 1; !m->config.encoder && piece < 60;
            piece += 12) {
            stop(&other);
            start(&other, s);
            run(m, &seen, &other, piece, 2);
            for (size_t i = 0; i < SEQS; i++)
                assert_memory_equal(seen.x[i], plain.x[i],
                    lengths[i] * s->C * sizeof(float));
            check_same(&all, &other);
        }
        stop(&all);
        stop(&other);
        stop_run(&plain);
        stop_run(&seen);
        small_free(&w);
    }
}

/* Some rows in the first layer, of one head where it has some. */
static bool
halve(const struct small_shape *s, enum pf_point point, size_t layer,
    size_t head, size_t row, float *v, size_t width)
{
    (void)s;
    if (layer != 0 || (row != 2 && row != 50)
        || (by_head(point) && head != 2))
        return false;
    if (point == PF_SCORES)
        v[1] += 2;
    else if (point == PF_PATTERN)
        v[0] = 0.25f;
    else
        for (size_t i = 0; i < width; i++)
            v[i] *= 0.5f;
    return true;
}

static void
test_changing(void **ctx)
{
    (void)ctx;
    for (size_t k = 0; k < N_SHAPES; k++) {
        const struct small_shape *s = &shapes[k];
        struct small_model w;
        struct pf_model *m = small_open(&w, s);
        struct run plain, all, one;

        start_run(&plain, s);
        start_run(&all, s);
        start_run(&one, s);
        run(m, &plain, NULL, 0, 2);
        for (int p = 0; p < PF_N_POINTS; p++) {
            struct recorder r, alone;

            start(&r, s);
            start(&alone, s);
            r.edits = alone.edits = (enum pf_point)p;
            r.edit = alone.edit = halve;
            run(m, &all, &r, 0, 2);
            check_formulas(&w, &r, &all);
            if (memcmp(all.x[0], plain.x[0], lengths[0] * s->C
                    * sizeof(float)) == 0)
                fail_msg("point %d: nothing changed", p);
            assert_memory_equal(all.x[1], plain.x[1], s->C * sizeof(float));
            /* Whether others are looked at makes no difference, nor how rows
             * come. */
            alone.want = 1u << p;
            run(m, &one, &alone, 0, 1);
            check_same_run(&one, &all, s->C);
            for (size_t piece = 1; !m->config.encoder && piece < 60;
                piece += 12) {
                run(m, &one, &alone, piece, 1);
                for (size_t i = 0; i < SEQS; i++)
                    assert_memory_equal(one.x[i], all.x[i],
                        lengths[i] * s->C * sizeof(float));
            }
            stop(&r);
            stop(&alone);
        }
        stop_run(&plain);
        stop_run(&all);
        stop_run(&one);
        small_free(&w);
    }
}

/* Head 1 of the second layer gives nothing. */
static bool
ablate(const struct small_shape *s, enum pf_point point, size_t layer,
    size_t head, size_t row, float *v, size_t width)
{
    size_t D = s->C / s->H;

    (void)row;
    if (layer != 1 || (by_head(point) && head != 1))
        return false;
    if (point == PF_Z)
        memset(v + D, 0, D * sizeof *v);
    else if (point == PF_RESULT)
        memset(v + s->C, 0, s->C * sizeof *v);
    else
        for (size_t i = 0; i < width; i++)
            v[i] = point == PF_SCORES ? -INFINITY : 0;
    return true;
}

/* Only what differs counts: row 3 of head 2 attends to its first key. */
static bool
first_key(const struct small_shape *s, enum pf_point point, size_t layer,
    size_t head, size_t row, float *v, size_t width)
{
    (void)s;
    (void)point;
    if (layer == 0 && head == 2 && row == 3) {
        memset(v, 0, width * sizeof *v);
        v[0] = 1;
    }
    return true;
}

static void
test_heads(void **ctx)
{
    (void)ctx;
    for (size_t k = 0; k < N_SHAPES; k++) {
        const struct small_shape *s = &shapes[k];
        size_t C = s->C, D = C / s->H;
        struct small_model w;
        struct pf_model *m = small_open(&w, s);
        static const enum pf_point points[] = { PF_Z, PF_PATTERN, PF_SCORES,
            PF_RESULT };
        struct run runs[4];
        struct recorder r, plain;

        for (size_t i = 0; i < 4; i++) {
            start_run(&runs[i], s);
            start(&r, s);
            r.edits = points[i];
            r.edit = ablate;
            run(m, &runs[i], &r, 0, 2);
            stop(&r);
        }
        for (size_t i = 0; i < SEQS; i++) {
            /* In three ways, to the bit; in the fourth, nearly so. */
            assert_memory_equal(runs[1].x[i], runs[0].x[i],
                lengths[i] * C * sizeof(float));
            assert_memory_equal(runs[2].x[i], runs[0].x[i],
                lengths[i] * C * sizeof(float));
            for (size_t n = 0; n < lengths[i] * C; n++)
                close_to(runs[3].x[i][n], (double)runs[0].x[i][n], "x", n);
        }
        start(&r, s);
        start(&plain, s);
        run(m, &runs[0], &plain, 0, 2);
        r.edits = PF_PATTERN;
        r.edit = first_key;
        run(m, &runs[1], &r, 0, 2);
        for (size_t i = 0; i < lengths[0] * C; i++) {
            float z = r.v[0][0][PF_Z][i];

            if (i / C == 3 && i % C / D == 2)
                assert_true(z == r.v[0][0][PF_V][i % C]);
            else
                assert_true(z == plain.v[0][0][PF_Z][i]);
        }
        stop(&r);
        stop(&plain);
        for (size_t i = 0; i < 4; i++)
            stop_run(&runs[i]);
        small_free(&w);
    }
}

/* One half of each block after the other is both; alone it is not. */
static void
test_parts(void **ctx)
{
    enum { T = 20 };

    (void)ctx;
    for (size_t k = 0; k < N_SHAPES; k++) {
        const struct small_shape *s = &shapes[k];
        struct small_model w;
        struct pf_model *m = small_open(&w, s);
        struct pf_kv_cache *cache;
        struct pf_runner *r;
        uint32_t ids[T] = { 3, 1, 4, 1, 5, 9, 2, 6 };
        float *a = small_floats(T * s->C), *b = small_floats(T * s->C);
        struct pf_rows rows = { .x = a, .T = T };
        const unsigned parts[] = { PF_PART_ATTN, PF_PART_MLP };

        assert_int_equal(pf_runner_new(&r, m, 1, NULL), PF_OK);
        assert_int_equal(pf_kv_cache_new(&cache, 2, s->C, 1 << 26, NULL),
            PF_OK);
        assert_int_equal(pf_embed(m, a, ids, NULL, T, 0, true, NULL), PF_OK);
        memcpy(b, a, T * s->C * sizeof *a);
        if (!m->config.encoder)
            assert_int_equal(pf_kv_begin(cache, &rows.kv, "", 0, NULL, 0, 0,
                T, 0, NULL), PF_OK);
        assert_int_equal(pf_blocks(r, cache, &rows, 1, layers, 2, NULL, 0,
            PF_PART_BOTH, NULL, NULL), PF_OK);
        rows.x = b;
        for (size_t i = 0; i < 4; i++) {
            rows.first_slot = i / 2;
            assert_memory_not_equal(a, b, T * s->C * sizeof *a);
            assert_int_equal(pf_blocks(r, i % 2 ? NULL : cache, &rows, 1,
                layers + i / 2, 1, NULL, 0, parts[i % 2], NULL, NULL), PF_OK);
        }
        assert_memory_equal(a, b, T * s->C * sizeof *a);
        pf_kv_cache_free(cache);
        pf_runner_free(r);
        small_free(&w);
        free(a);
        free(b);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_looking),
        cmocka_unit_test(test_changing),
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_parts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
