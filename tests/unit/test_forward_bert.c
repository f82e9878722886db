/*
 * Small BERTs and DistilBERTs with pseudo-random weights against a plain
 * forward pass in double (below: Devlin et al. 2018, as HuggingFace's
 * modeling_bert.py and modeling_distilbert.py have it): embeddings with
 * segments, blocks, maps, the head for masked words, the pooler; by all
 * kernels, on one thread or more, alone or in a batch.  And what their files
 * may be called, or lack.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pipeformer/kernel.h>

#include "small-model.h"

/* --- The plain forward pass --- */

static double *
doubles(size_t n)
{
    double *v = calloc(n + 1, sizeof *v);

    assert_non_null(v);
    return v;
}

/* A name of BERT's, or what DistilBERT calls it; `rest` behind it. */
static const float *
weight(const struct small_model *w, size_t layer, const char *bert,
    const char *distil, const char *rest)
{
    bool is_bert = strcmp(w->s.type, "bert") == 0;
    char name[96];

    if (layer == SIZE_MAX)
        snprintf(name, sizeof name, "%s%s", is_bert ? bert : distil, rest);
    else
        snprintf(name, sizeof name, "%s.%zu.%s%s", is_bert ? "encoder.layer"
            : "transformer.layer", layer, is_bert ? bert : distil, rest);
    return small_weight(w, name);
}

static void
plain_norm(const struct small_model *w, size_t layer, const char *bert,
    const char *distil, double *x, size_t T)
{
    double eps = strcmp(w->s.type, "bert") == 0 ? (double)0.001f : 1e-12;
    const float *gain = weight(w, layer, bert, distil, ".weight");
    const float *bias = weight(w, layer, bert, distil, ".bias");
    size_t C = w->s.C;

    for (size_t t = 0; t < T; t++, x += C) {
        double mean = 0, var = 0;

        for (size_t i = 0; i < C; i++)
            mean += x[i] / (double)C;
        for (size_t i = 0; i < C; i++)
            var += (x[i] - mean) * (x[i] - mean) / (double)C;
        for (size_t i = 0; i < C; i++)
            x[i] = (x[i] - mean) / sqrt(var + eps) * (double)gain[i]
                + (double)bias[i];
    }
}

/* y = W x + b of T rows; the caller frees y. */
static double *
plain_linear(const struct small_model *w, size_t layer, const char *bert,
    const char *distil, const double *x, size_t T, size_t in, size_t out)
{
    const float *m = weight(w, layer, bert, distil, ".weight");
    const float *b = weight(w, layer, bert, distil, ".bias");
    double *y = doubles(T * out);

    for (size_t t = 0; t < T; t++)
        for (size_t o = 0; o < out; o++) {
            y[t * out + o] = (double)b[o];
            for (size_t i = 0; i < in; i++)
                y[t * out + o] += x[t * in + i] * (double)m[o * in + i];
        }
    return y;
}

static void
plain_act(const struct small_model *w, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = strcmp(w->s.act, "relu") == 0 ? x[i] > 0 ? x[i] : 0
            : 0.5 * x[i] * (1 + erf(x[i] / sqrt(2)));
}

static double *
plain_embed(const struct small_model *w, const uint32_t *ids,
    const uint32_t *segments, size_t T, bool positions)
{
    size_t C = w->s.C;
    double *x = doubles(T * C);

    for (size_t i = 0; i < T * C; i++) {
        x[i] = (double)small_weight(w, "embeddings.word_embeddings.weight")
            [ids[i / C] * C + i % C];
        if (positions)
            x[i] += (double)small_weight(w,
                "embeddings.position_embeddings.weight")[i];
        if (strcmp(w->s.type, "bert") == 0)
            x[i] += (double)small_weight(w,
                "embeddings.token_type_embeddings.weight")
                [(segments ? segments[i / C] : 0) * C + i % C];
    }
    plain_norm(w, SIZE_MAX, "embeddings.LayerNorm", "embeddings.LayerNorm",
        x, T);
    return x;
}

static void
add_to(double *x, double *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] += y[i];
    free(y);
}

/* maps [H, T, T] */
static void
plain_block(const struct small_model *w, size_t layer, double *x, size_t T,
    double *maps)
{
    size_t C = w->s.C, H = w->s.H, D = C / H, F = w->s.F;
    double *q = plain_linear(w, layer, "attention.self.query",
        "attention.q_lin", x, T, C, C);
    double *k = plain_linear(w, layer, "attention.self.key",
        "attention.k_lin", x, T, C, C);
    double *v = plain_linear(w, layer, "attention.self.value",
        "attention.v_lin", x, T, C, C);
    double *z = doubles(T * C), *f;

    for (size_t i = 0; i < H * T; i++) {
        size_t h = i / T, t = i % T;
        double *p = maps + i * T, sum = 0;

        for (size_t j = 0; j < T; j++) {
            p[j] = 0;
            for (size_t d = h * D; d < (h + 1) * D; d++)
                p[j] += q[t * C + d] * k[j * C + d];
            sum += p[j] = exp(p[j] / sqrt((double)D));
        }
        for (size_t j = 0; j < T; j++) {
            p[j] /= sum;
            for (size_t d = h * D; d < (h + 1) * D; d++)
                z[t * C + d] += p[j] * v[j * C + d];
        }
    }
    add_to(x, plain_linear(w, layer, "attention.output.dense",
        "attention.out_lin", z, T, C, C), T * C);
    plain_norm(w, layer, "attention.output.LayerNorm", "sa_layer_norm", x, T);
    f = plain_linear(w, layer, "intermediate.dense", "ffn.lin1", x, T, C, F);
    plain_act(w, f, T * F);
    add_to(x, plain_linear(w, layer, "output.dense", "ffn.lin2", f, T, F, C),
        T * C);
    plain_norm(w, layer, "output.LayerNorm", "output_layer_norm", x, T);
    free(q);
    free(k);
    free(v);
    free(z);
    free(f);
}

/* --- Running ours --- */

static void
check_close(const float *got, const double *want, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - want[i]) <= 2e-5 + 2e-5 * fabs(want[i])))
            fail_msg("%s %zu: %.9g, not %.9g", what, i, (double)got[i],
                want[i]);
}

enum { MOST_T = 90 };

static void
random_ids(uint32_t *ids, size_t T, size_t limit)
{
    for (size_t t = 0; t < T; t++)
        ids[t] = small_random() % (uint32_t)limit;
}

static void
check_head(const struct small_model *w, struct pf_runner *r, const float *x,
    size_t T)
{
    size_t C = w->s.C, V = w->s.V;
    const float *at[MOST_T];
    float *logits = small_floats(T * V);
    const float *table = w->s.untied ? weight(w, SIZE_MAX,
        "cls.predictions.decoder", "vocab_projector", ".weight")
        : small_weight(w, "embeddings.word_embeddings.weight");
    const float *bias = weight(w, SIZE_MAX, "cls.predictions",
        "vocab_projector", ".bias");
    double *in = doubles(T * C), *want = doubles(T * V), *h;

    for (size_t t = 0; t < T; t++)
        at[t] = x + t * C;
    for (size_t i = 0; i < T * C; i++)
        in[i] = (double)x[i];
    for (int norm = 0; norm < 2; norm++) {
        h = plain_linear(w, SIZE_MAX, "cls.predictions.transform.dense",
            "vocab_transform", in, T, C, C);
        plain_act(w, h, T * C);
        if (norm)
            plain_norm(w, SIZE_MAX, "cls.predictions.transform.LayerNorm",
                "vocab_layer_norm", h, T);
        for (size_t i = 0; i < T * V; i++) {
            want[i] = (double)bias[i % V];
            for (size_t k = 0; k < C; k++)
                want[i] += h[i / V * C + k] * (double)table[i % V * C + k];
        }
        assert_int_equal(pf_unembed(r, logits, at, T, norm, NULL), PF_OK);
        check_close(logits, want, T * V, "logits");
        free(h);
    }
    free(logits);
    free(in);
    free(want);
}

static void
check_pooler(const struct small_model *w, struct pf_runner *r, const float *x)
{
    size_t C = w->s.C;
    double *in = doubles(C), *want;
    float *out = small_floats(C);

    for (size_t i = 0; i < C; i++)
        in[i] = (double)x[i];
    want = plain_linear(w, SIZE_MAX, "pooler.dense", "", in, 1, C, C);
    for (size_t i = 0; i < C; i++)
        want[i] = tanh(want[i]);
    assert_int_equal(pf_pooler(r, out, x, NULL), PF_OK);
    check_close(out, want, C, "pooler");
    free(in);
    free(want);
    free(out);
}

/* Everything, of T ids; hidden states after each layer. */
static void
check_model(const struct small_shape *s, size_t T)
{
    struct small_model w;
    struct pf_model *m = small_open(&w, s);
    size_t C = s->C, H = s->H, all[8], heads[8];
    uint32_t ids[MOST_T], segments[MOST_T];
    float *x = small_floats(T * C), *maps = small_floats(H * T * T);
    double *want, *want_maps = doubles(H * T * T);
    struct pf_runner *r;
    struct pf_err err;
    bool bert = strcmp(s->type, "bert") == 0;

    assert_true(m->config.encoder);
    assert_int_equal(m->config.segments, bert ? 2 : 0);
    assert_true((m->head.w != NULL) == s->head);
    assert_true((m->pooler.w != NULL) == s->pooler);
    for (size_t i = 0; i < 8; i++)
        all[i] = heads[i] = i;
    assert_int_equal(pf_runner_new(&r, m, 2, NULL), PF_OK);
    random_ids(ids, T, s->V);
    random_ids(segments, T, 2);
    for (int run = 0; run < 3; run++) {
        bool positions = run != 2;

        want = plain_embed(&w, ids, run ? segments : NULL, T, positions);
        assert_int_equal(pf_embed(m, x, ids, run ? segments : NULL, T, 0,
            positions, NULL), PF_OK);
        check_close(x, want, T * C, "embedding");
        for (size_t l = 0; l < s->L; l++) {
            struct pf_rows rows = { .x = x, .T = T, .attn = maps };

            assert_int_equal(pf_blocks(r, NULL, &rows, 1, all + l, 1, heads,
                H, PF_PART_BOTH, NULL, NULL), PF_OK);
            plain_block(&w, l, want, T, want_maps);
            check_close(x, want, T * C, "hidden");
            check_close(maps, want_maps, H * T * T, "attn");
        }
        free(want);
    }
    if (s->head)
        check_head(&w, r, x, T);
    else
        assert_int_equal(pf_unembed(r, x, NULL, 0, true, &err), PF_EMODEL);
    if (s->pooler)
        check_pooler(&w, r, x);
    else
        assert_int_equal(pf_pooler(r, x, x, &err), PF_EMODEL);
    pf_runner_free(r);
    small_free(&w);
    free(x);
    free(maps);
    free(want_maps);
}

static void
test_models(void **ctx)
{
    static const struct small_shape shapes[] = {
        { "bert", 31, MOST_T, 24, 3, 3, 40, "gelu", PF_F32, false, false,
            false, false, false },
        { "bert", 31, MOST_T, 36, 2, 3, 50, "gelu", PF_BF16, true, false,
            true, false, true },
        { "bert", 50, MOST_T, 32, 2, 4, 30, "relu", PF_F32, true, true,
            true, true, true },
        { "bert", 50, MOST_T, 300, 1, 2, 30, "gelu", PF_BF16, false, true,
            false, false, true },
        { "distilbert", 31, MOST_T, 24, 2, 3, 40, "gelu", PF_BF16, false,
            false, false, false, false },
        { "distilbert", 40, MOST_T, 20, 3, 5, 33, "gelu", PF_F32, true, false,
            true, false, false },
        { "distilbert", 40, MOST_T, 20, 2, 1, 33, "relu", PF_F32, true, true,
            true, true, false },
    };

    (void)ctx;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t T = 1; T <= MOST_T; T += 44)
            check_model(&shapes[i], T);
}

/* The same bits by any kernels, on any number of threads, in any company. */
static void
test_same_bits(void **ctx)
{
    static const struct small_shape s = { "bert", 31, 300, 64, 2, 4, 200,
        "gelu", PF_BF16, false, false, true, false, false };
    static const size_t lengths[] = { 300, 1, 0, 65, 16 }, layers[] = { 0, 1 };
    enum { N = 5, SUM = 382 };
    struct small_model w;
    struct pf_model *m = small_open(&w, &s);
    struct pf_rows rows[N], one;
    uint32_t ids[SUM];
    float *x0 = small_floats(SUM * s.C), *want = small_floats(SUM * s.C);
    float *x = small_floats(SUM * s.C);
    const struct pf_kernels *kern;

    (void)ctx;
    random_ids(ids, SUM, s.V);
    for (size_t i = 0, at = 0; i < N; at += lengths[i++])
        pf_embed(m, x0 + at * s.C, ids + at, NULL, lengths[i], 0, true, NULL);
    for (size_t k = 0; (kern = pf_kernels_list(k)); k++) {
        for (size_t threads = 1; threads < 4; threads++) {
            struct pf_runner *r;

            setenv("PIPEFORMER_KERNEL", kern->name, 1);
            assert_int_equal(pf_runner_new(&r, m, threads, NULL), PF_OK);
            memcpy(x, x0, SUM * s.C * sizeof *x);
            for (size_t i = 0, at = 0; i < N; at += lengths[i++])
                rows[i] = (struct pf_rows){ .x = x + at * s.C,
                    .T = lengths[i] };
            if (k == 0 && threads == 1) { /* each alone */
                for (size_t i = 0; i < N; i++)
                    assert_int_equal(pf_blocks(r, NULL, &rows[i], 1, layers,
                        2, NULL, 0, PF_PART_BOTH, NULL, NULL), PF_OK);
                memcpy(want, x, SUM * s.C * sizeof *x);
                memcpy(x, x0, SUM * s.C * sizeof *x);
            }
            assert_int_equal(pf_blocks(r, NULL, rows, N, layers, 2, NULL, 0,
                PF_PART_BOTH, NULL, NULL), PF_OK);
            assert_memory_equal(x, want, SUM * s.C * sizeof *x);
            /* It continues nothing. */
            one = (struct pf_rows){ .x = x, .T = 1, .pos = 1 };
            assert_int_equal(pf_blocks(r, NULL, &one, 1, layers, 2, NULL, 0,
                PF_PART_BOTH, NULL, NULL), PF_ESTATE);
            pf_runner_free(r);
        }
    }
    unsetenv("PIPEFORMER_KERNEL");
    small_free(&w);
    free(x0);
    free(x);
    free(want);
}

static void
test_ranges(void **ctx)
{
    static const struct small_shape s = { "bert", 31, 8, 24, 1, 3, 40, "gelu",
        PF_F32, false, false, false, false, false };
    struct small_shape d = s;
    const uint32_t ids[] = { 1, 2, 30, 31 }, segments[] = { 0, 1, 2, 0 };
    struct small_model w;
    struct pf_model *m = small_open(&w, &s);
    float x[9 * 24];
    struct pf_err err;

    (void)ctx;
    assert_int_equal(pf_embed(m, x, ids, segments, 2, 6, true, &err), PF_OK);
    assert_int_equal(pf_embed(m, x, ids, segments, 3, 0, true, &err),
        PF_ERANGE);
    assert_non_null(strstr(err.msg, "segments: 2 at 2"));
    assert_int_equal(pf_embed(m, x, ids, NULL, 4, 0, true, &err), PF_ERANGE);
    assert_non_null(strstr(err.msg, "31 at 3"));
    assert_int_equal(pf_embed(m, x, ids, NULL, 2, 7, true, &err), PF_ERANGE);
    small_free(&w);
    d.type = "distilbert"; /* which has no segments */
    m = small_open(&w, &d);
    assert_int_equal(pf_embed(m, x, ids, segments, 3, 0, true, &err), PF_OK);
    small_free(&w);
}

/* Each tensor in turn is missing; then the last is of another shape. */
static void
test_missing(void **ctx)
{
    static const struct small_shape shapes[] = {
        { "bert", 11, 8, 12, 2, 3, 20, "gelu", PF_F32, true, false, true,
            true, true },
        { "bert", 11, 8, 12, 2, 3, 20, "gelu", PF_F32, false, true, true,
            false, true },
        { "distilbert", 11, 8, 12, 2, 3, 20, "gelu", PF_BF16, true, false,
            true, true, false },
    };

    (void)ctx;
    for (size_t k = 0; k < 3; k++) {
        struct small_model w;
        size_t n;

        small_fill(&w, &shapes[k]);
        n = w.file.n_tensors;
        pf_record_fini(&w.file);
        pf_record_fini(&w.all);
        for (size_t i = 0; i < n; i++) {
            struct pf_err err = { PF_OK, "" };
            struct pf_model *m;
            enum pf_status st;
            char name[96];
            bool may;

            small_seed = 1;
            small_fill(&w, &shapes[k]);
            assert_int_equal(w.file.n_tensors, n);
            snprintf(name, sizeof name, "%s", w.file.tensors[i].name);
            pf_record_drop(&w.file, name);
            small_write(&w);
            st = pf_model_open(&m, w.dir, &err);
            /* Without the first part of it, there is no head, no pooler. */
            may = strstr(name, "pooler.dense.weight")
                || strstr(name, "transform.dense.weight")
                || strstr(name, "vocab_transform.weight");
            if (may) {
                assert_int_equal(st, PF_OK);
                assert_true(!m->head.w || !m->pooler.w);
            } else {
                char *end = strrchr(name, '.');

                assert_int_equal(st, PF_EMODEL);
                assert_null(m);
                if (strcmp(end, ".gamma") == 0)
                    strcpy(end, ".weight");
                else if (strcmp(end, ".beta") == 0)
                    strcpy(end, ".bias");
                if (!strstr(err.msg, "missing")
                    || !(strstr(err.msg, name)
                        /* which name is the prefix's, is not known then */
                        || strstr(name, "word_embeddings")))
                    fail_msg("%s: %s", name, err.msg);
            }
            pf_model_free(m);
            small_unlink(&w);
            pf_record_fini(&w.file);
            pf_record_fini(&w.all);
        }
    }
}

/* Newer files call the head's bias otherwise. */
static void
test_bias_name(void **ctx)
{
    static const struct small_shape s = { "bert", 11, 8, 12, 1, 3, 20, "gelu",
        PF_F32, true, false, true, false, false };
    struct small_model w;
    struct pf_tensor *t;

    (void)ctx;
    small_fill(&w, &s);
    t = pf_record_tensor(&w.file, "cls.predictions.bias");
    assert_non_null(t);
    t->name = "cls.predictions.decoder.bias";
    small_write(&w);
    assert_int_equal(pf_model_open(&w.m, w.dir, NULL), PF_OK);
    assert_memory_equal(w.m->head.bias, small_weight(&w,
        "cls.predictions.bias"), 11 * sizeof(float));
    small_unlink(&w);
    small_free(&w);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_bias_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
