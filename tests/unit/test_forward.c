/*
 * The forward pass of small GPT-2s with pseudo-random weights, written as
 * safetensors to a temporary directory, against a plain one in double (below:
 * Radford et al. 2019, as HuggingFace's modeling_gpt2.py has it), and against
 * itself: rows cut and batched in any way, on any number of threads, by any
 * kernels, have the same bits.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pipeformer/forward.h>
#include <pipeformer/kernel.h>
#include <pipeformer/record.h>

/* --- A model on disk --- */

struct shape {
    size_t V, P, C, L, H, F;
    const char *act, *more; /* further members of config.json */
    enum pf_dtype type;     /* of the matrices */
    bool untied, bias;      /* a head of its own; with a bias */
};

/* Its weights as float32, by name. */
struct weights {
    struct pf_record rec;
};

static uint64_t seed;

static uint32_t
next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 32);
}

/* A multiple of 1/128 of seven bits: exact in each type, times 2^-scale. */
static float
small(int scale)
{
    return ldexpf((float)((int)(next_random() % 127) - 63), -6 - scale);
}

static uint16_t
narrow(float v, enum pf_dtype type)
{
    uint32_t u;

    memcpy(&u, &v, sizeof u);
    if (type == PF_BF16)
        return (uint16_t)(u >> 16);
    if (v == 0)
        return 0;
    return (uint16_t)((u >> 16 & 0x8000) | ((u >> 23 & 0xff) - 112) << 10
        | (u >> 13 & 0x3ff));
}

/* One tensor in both records: as float32, and as the file has it. */
static void
add(struct weights *w, struct pf_record *file, const char *name,
    enum pf_dtype type, unsigned ndim, size_t a, size_t b, float offset,
    int scale)
{
    const size_t shape[2] = { a, b };
    struct pf_tensor *t = pf_record_put(&w->rec, name, PF_F32, ndim, shape,
        NULL);
    float *v = (float *)t->data;
    size_t n = pf_tensor_count(t);

    for (size_t i = 0; i < n; i++)
        v[i] = offset + small(scale);
    if (type == PF_F32) {
        pf_record_put(file, name, PF_F32, ndim, shape, v);
    } else {
        struct pf_tensor *f = pf_record_put(file, name, type, ndim, shape,
            NULL);

        for (size_t i = 0; i < n; i++)
            ((uint16_t *)f->data)[i] = narrow(v[i], type);
    }
}

static struct pf_model *
make_model(const struct shape *s, struct weights *w)
{
    static const struct {
        const char *name;
        char rows, columns;
    } parts[] = {
        { "ln_1.weight", 'C', 0 }, { "ln_1.bias", 'C', 0 },
        { "attn.c_attn.weight", 'C', '3' }, { "attn.c_attn.bias", '3', 0 },
        { "attn.c_proj.weight", 'C', 'C' }, { "attn.c_proj.bias", 'C', 0 },
        { "ln_2.weight", 'C', 0 }, { "ln_2.bias", 'C', 0 },
        { "mlp.c_fc.weight", 'C', 'F' }, { "mlp.c_fc.bias", 'F', 0 },
        { "mlp.c_proj.weight", 'F', 'C' }, { "mlp.c_proj.bias", 'C', 0 },
    };
    struct pf_record file = PF_RECORD_INIT;
    struct pf_out out = PF_OUT_INIT;
    char dir[] = "/tmp/pf-forward-XXXXXX", path[64], name[64];
    struct pf_err err = { PF_OK, "" };
    struct pf_model *m;
    FILE *f;

    *w = (struct weights){ PF_RECORD_INIT };
    seed = 12345 + s->C;
    add(w, &file, "wte.weight", s->type, 2, s->V, s->C, 0, 0);
    add(w, &file, "wpe.weight", s->type, 2, s->P, s->C, 0, 1);
    for (size_t l = 0; l < s->L; l++)
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            size_t rows = parts[i].rows == 'C' ? s->C
                : parts[i].rows == 'F' ? s->F : 3 * s->C;
            size_t columns = parts[i].columns == 'C' ? s->C
                : parts[i].columns == 'F' ? s->F : 3 * s->C;
            bool gain = strstr(parts[i].name, "ln_")
                && strstr(parts[i].name, "weight");

            sprintf(name, "h.%zu.%s", l, parts[i].name);
            add(w, &file, name, parts[i].columns ? s->type : PF_F32,
                parts[i].columns ? 2 : 1, rows, columns, gain, 2);
        }
    add(w, &file, "ln_f.weight", PF_F32, 1, s->C, 0, 1, 2);
    add(w, &file, "ln_f.bias", PF_F32, 1, s->C, 0, 0, 2);
    if (s->untied)
        add(w, &file, "lm_head.weight", s->type, 2, s->V, s->C, 0, 1);
    if (s->bias)
        add(w, &file, "lm_head.bias", PF_F32, 1, s->V, 0, 0, 0);

    assert_non_null(mkdtemp(dir));
    sprintf(path, "%s/config.json", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "{\"model_type\":\"gpt2\",\"vocab_size\":%zu,\"n_positions\":"
        "%zu,\"n_embd\":%zu,\"n_layer\":%zu,\"n_head\":%zu,\"n_inner\":%zu,"
        "\"activation_function\":\"%s\",\"layer_norm_epsilon\":0.001,"
        "\"tie_word_embeddings\":%s%s}", s->V, s->P, s->C, s->L, s->H, s->F,
        s->act, s->untied ? "false" : "true", s->more ? s->more : "");
    assert_int_equal(fclose(f), 0);
    sprintf(path, "%s/model.safetensors", dir);
    f = fopen(path, "wb");
    assert_non_null(f);
    out.fd = fileno(f);
    assert_int_equal(pf_record_write(&out, &file, PF_BINARY, NULL), PF_OK);
    assert_int_equal(pf_out_flush(&out, NULL), PF_OK);
    fclose(f);
    pf_out_fini(&out);
    pf_record_fini(&file);
    if (pf_model_open(&m, dir, &err))
        fail_msg("%s", err.msg);
    unlink(path); /* it stays mapped */
    sprintf(path, "%s/config.json", dir);
    unlink(path);
    rmdir(dir);
    return m;
}

static const float *
weight(const struct weights *w, const char *fmt, size_t layer)
{
    char name[64];
    const struct pf_tensor *t;

    if (layer == SIZE_MAX)
        sprintf(name, "%s", fmt);
    else
        sprintf(name, "h.%zu.%s", layer, fmt);
    t = pf_record_tensor(&w->rec, name);
    assert_non_null(t);
    return t->data;
}

/* --- The plain forward pass --- */

static void
plain_norm(double *y, const double *x, size_t C, const float *gain,
    const float *bias)
{
    double mean = 0, var = 0;

    for (size_t i = 0; i < C; i++)
        mean += x[i] / (double)C;
    for (size_t i = 0; i < C; i++)
        var += (x[i] - mean) * (x[i] - mean) / (double)C;
    for (size_t i = 0; i < C; i++)
        y[i] = (x[i] - mean) / sqrt(var + (double)0.001f) * (double)gain[i]
            + (double)bias[i];
}

/* y = x W + b, W [in, out]. */
static void
plain_linear(double *y, const double *x, const float *w, const float *b,
    size_t in, size_t out)
{
    for (size_t o = 0; o < out; o++)
        y[o] = (double)b[o];
    for (size_t i = 0; i < in; i++)
        for (size_t o = 0; o < out; o++)
            y[o] += x[i] * (double)w[i * out + o];
}

static double
plain_act(const char *name, double x)
{
    if (strcmp(name, "gelu") == 0)
        return 0.5 * x * (1 + erf(x / sqrt(2)));
    if (strcmp(name, "relu") == 0)
        return x > 0 ? x : 0;
    if (strcmp(name, "silu") == 0)
        return x / (1 + exp(-x));
    if (strcmp(name, "quick_gelu") == 0)
        return x / (1 + exp(-1.702 * x));
    return 0.5 * x * (1 + tanh(0.7978845608028654
        * (x + 0.044715 * x * x * x)));
}

static double *
doubles(size_t n)
{
    double *v = calloc(n + 1, sizeof *v);

    assert_non_null(v);
    return v;
}

/* x [T, C] through one block; maps [H, T, T] unless NULL. */
static void
plain_block(const struct shape *s, const struct weights *w, size_t layer,
    double scale, double *x, size_t T, double *maps)
{
    size_t C = s->C, H = s->H, D = C / H, F = s->F;
    double *qkv = doubles(T * 3 * C), *h = doubles(C > F ? C : F);
    double *ctx = doubles(T * C), *p = doubles(T), *f = doubles(F);

    for (size_t t = 0; t < T; t++) {
        plain_norm(h, x + t * C, C, weight(w, "ln_1.weight", layer),
            weight(w, "ln_1.bias", layer));
        plain_linear(qkv + t * 3 * C, h, weight(w, "attn.c_attn.weight",
            layer), weight(w, "attn.c_attn.bias", layer), C, 3 * C);
    }
    for (size_t head = 0; head < H; head++)
        for (size_t t = 0; t < T; t++) {
            const double *q = qkv + t * 3 * C + head * D;
            double max = -INFINITY, sum = 0;

            for (size_t j = 0; j <= t; j++) {
                p[j] = 0;
                for (size_t d = 0; d < D; d++)
                    p[j] += q[d] * qkv[j * 3 * C + C + head * D + d] * scale;
                max = p[j] > max ? p[j] : max;
            }
            for (size_t j = 0; j <= t; j++)
                sum += p[j] = exp(p[j] - max);
            for (size_t j = 0; j <= t; j++) {
                p[j] /= sum;
                if (maps)
                    maps[(head * T + t) * T + j] = p[j];
                for (size_t d = 0; d < D; d++)
                    ctx[t * C + head * D + d] += p[j]
                        * qkv[j * 3 * C + 2 * C + head * D + d];
            }
        }
    for (size_t t = 0; t < T; t++) {
        plain_linear(h, ctx + t * C, weight(w, "attn.c_proj.weight", layer),
            weight(w, "attn.c_proj.bias", layer), C, C);
        for (size_t i = 0; i < C; i++)
            x[t * C + i] += h[i];
        plain_norm(h, x + t * C, C, weight(w, "ln_2.weight", layer),
            weight(w, "ln_2.bias", layer));
        plain_linear(f, h, weight(w, "mlp.c_fc.weight", layer),
            weight(w, "mlp.c_fc.bias", layer), C, F);
        for (size_t i = 0; i < F; i++)
            f[i] = plain_act(s->act, f[i]);
        plain_linear(h, f, weight(w, "mlp.c_proj.weight", layer),
            weight(w, "mlp.c_proj.bias", layer), F, C);
        for (size_t i = 0; i < C; i++)
            x[t * C + i] += h[i];
    }
    free(qkv);
    free(h);
    free(ctx);
    free(p);
    free(f);
}

static void
plain_logits(const struct shape *s, const struct weights *w, double *logits,
    const double *x, bool norm)
{
    const float *head = weight(w, s->untied ? "lm_head.weight" : "wte.weight",
        SIZE_MAX);
    double *h = doubles(s->C);

    memcpy(h, x, s->C * sizeof *h);
    if (norm)
        plain_norm(h, x, s->C, weight(w, "ln_f.weight", SIZE_MAX),
            weight(w, "ln_f.bias", SIZE_MAX));
    for (size_t v = 0; v < s->V; v++) {
        logits[v] = s->bias ? (double)weight(w, "lm_head.bias", SIZE_MAX)[v]
            : 0;
        for (size_t i = 0; i < s->C; i++)
            logits[v] += h[i] * (double)head[v * s->C + i];
    }
    free(h);
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

static float *
floats(size_t n)
{
    float *v = malloc((n + 1) * sizeof *v);

    assert_non_null(v);
    for (size_t i = 0; i <= n; i++)
        v[i] = NAN; /* what is not written shows */
    return v;
}

static void
random_ids(uint32_t *ids, size_t T, size_t V, uint64_t start)
{
    seed = start;
    for (size_t t = 0; t < T; t++)
        ids[t] = next_random() % (uint32_t)V;
}

/* All layers, head and maps against the plain pass. */
static void
check_model(const struct shape *s, size_t T)
{
    struct weights w;
    struct pf_model *m = make_model(s, &w);
    size_t C = s->C, layers[16], heads[64];
    uint32_t *ids = malloc(T * sizeof *ids);
    double *x = doubles(T * C), *logits = doubles(s->V);
    double *maps = doubles(s->L * s->H * T * T);
    float *rows = floats(T * C), *scores = floats(T * s->V);
    float *attn = floats(s->L * s->H * T * T);
    const float **at = malloc(T * sizeof *at);
    struct pf_kv_cache *cache;
    struct pf_runner *r;
    struct pf_rows run = { .x = rows, .T = T, .attn = attn };
    const float *wte = weight(&w, "wte.weight", SIZE_MAX);
    const float *wpe = weight(&w, "wpe.weight", SIZE_MAX);

    assert_true(ids && at);
    for (size_t i = 0; i < s->L; i++)
        layers[i] = i;
    for (size_t i = 0; i < s->H; i++)
        heads[i] = i;
    random_ids(ids, T, s->V, 99);
    /* The embedding is one addition: exact. */
    assert_int_equal(pf_embed(m, rows, ids, NULL, T, 0, true, NULL), PF_OK);
    for (size_t t = 0; t < T; t++)
        for (size_t i = 0; i < C; i++) {
            x[t * C + i] = (double)wte[ids[t] * C + i]
                + (double)wpe[t * C + i];
            assert_true(rows[t * C + i] == (float)x[t * C + i]);
        }
    assert_int_equal(pf_runner_new(&r, m, 1, NULL), PF_OK);
    assert_int_equal(pf_kv_cache_new(&cache, s->L, C, 1 << 26, NULL), PF_OK);
    assert_int_equal(pf_kv_begin(cache, &run.kv, "", 0, NULL, 0, 0, T, 0,
        NULL), PF_OK);
    assert_int_equal(pf_blocks(r, cache, &run, 1, layers, s->L, heads, s->H,
        PF_PART_BOTH, NULL, NULL), PF_OK);
    for (size_t l = 0; l < s->L; l++) {
        double scale = m->config.scale_attn ? 1 / sqrt((double)C
            / (double)s->H) : 1;

        if (m->config.scale_by_layer)
            scale /= (double)(l + 1);
        plain_block(s, &w, l, scale, x, T, maps + l * s->H * T * T);
    }
    check_close(rows, x, T * C, "hidden");
    check_close(attn, maps, s->L * s->H * T * T, "attn");
    for (size_t row = 0; row < s->L * s->H * T; row++) {
        double sum = 0;

        for (size_t j = 0; j < T; j++) {
            sum += (double)attn[row * T + j];
            if (j > row % T) /* later keys: +0 */
                assert_true(attn[row * T + j] == 0
                    && !signbit(attn[row * T + j]));
        }
        assert_true(fabs(sum - 1) < 1e-6);
    }
    for (int norm = 0; norm < 2; norm++) {
        for (size_t t = 0; t < T; t++)
            at[t] = rows + (T - 1 - t) * C; /* rows from anywhere */
        assert_int_equal(pf_unembed(r, scores, at, T, norm, NULL), PF_OK);
        for (size_t t = 0; t < T; t++) {
            plain_logits(s, &w, logits, x + (T - 1 - t) * C, norm);
            check_close(scores + t * s->V, logits, s->V, "logits");
        }
    }
    pf_kv_cache_free(cache);
    pf_runner_free(r);
    pf_model_free(m);
    pf_record_fini(&w.rec);
    free(ids);
    free(x);
    free(logits);
    free(maps);
    free(rows);
    free(scores);
    free(attn);
    free(at);
}

static void
test_activations(void **ctx)
{
    static const char *const acts[] = { "gelu_new", "gelu", "relu", "silu",
        "quick_gelu" };

    (void)ctx;
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
        check_model(&(struct shape){ 19, 40, 24, 2, 3, 96, acts[i], NULL,
            PF_F32, false, false }, 21);
}

static void
test_shapes(void **ctx)
{
    (void)ctx;
    /* Widths across the vector's tail, an inner width of its own. */
    check_model(&(struct shape){ 7, 20, 12, 1, 3, 29, "gelu_new", NULL,
        PF_F32, false, false }, 5);
    check_model(&(struct shape){ 33, 20, 20, 2, 1, 17, "gelu_new", NULL,
        PF_F32, false, false }, 17);
    check_model(&(struct shape){ 50, 80, 34, 3, 2, 16, "gelu_new", NULL,
        PF_F32, false, false }, 70);
    check_model(&(struct shape){ 65, 20, 64, 1, 64, 100, "gelu_new", NULL,
        PF_F32, false, false }, 3);
    check_model(&(struct shape){ 1, 1, 1, 1, 1, 1, "gelu_new", NULL,
        PF_F32, false, false }, 1);
    /* Wider than what the embedding takes at once. */
    check_model(&(struct shape){ 9, 9, 300, 1, 3, 8, "gelu_new", NULL,
        PF_BF16, false, false }, 4);
}

static void
test_options(void **ctx)
{
    static const enum pf_dtype types[] = { PF_F32, PF_F16, PF_BF16 };

    (void)ctx;
    for (size_t i = 0; i < 3; i++) {
        check_model(&(struct shape){ 35, 60, 36, 3, 3, 50, "gelu_new", NULL,
            types[i], false, false }, 52);
        check_model(&(struct shape){ 35, 20, 36, 2, 3, 50, "gelu_new", NULL,
            types[i], true, false }, 12);
    }
    check_model(&(struct shape){ 35, 20, 36, 2, 3, 50, "relu", NULL, PF_F32,
        true, true }, 12);
    check_model(&(struct shape){ 35, 20, 36, 4, 3, 50, "gelu_new",
        ",\"scale_attn_by_inverse_layer_idx\":true", PF_F32, false, false },
        18);
    check_model(&(struct shape){ 35, 20, 36, 2, 3, 50, "gelu_new",
        ",\"scale_attn_weights\":false", PF_F32, false, false }, 18);
    check_model(&(struct shape){ 35, 20, 36, 3, 3, 50, "gelu_new",
        ",\"scale_attn_weights\":false,"
        "\"scale_attn_by_inverse_layer_idx\":true", PF_F32, false, false },
        18);
}

/* --- The same bits --- */

enum { SEQS = 3, MOST = 200 };

/* One sequence on its way: its rows, done up to `at`. */
struct seq {
    size_t T, at;
    float *want, *got; /* [T, C] after the blocks */
    float *maps;       /* [L, heads, T, T] of the run in one */
    char key[2];
};

/* Takes `n` rows of each sequence that has some left, as one batch. */
static void
advance(struct pf_runner *r, struct pf_kv_cache *cache, const float *x0[],
    struct seq *seqs, const size_t *n, const struct pf_config *c, bool maps)
{
    static const size_t heads[] = { 2, 0 };
    struct pf_rows rows[SEQS];
    size_t layers[8], k = 0, which[SEQS];

    for (size_t l = 0; l < c->layers; l++)
        layers[l] = l;
    for (size_t i = 0; i < SEQS; i++) {
        struct seq *s = &seqs[i];
        size_t T = n[i] < s->T - s->at ? n[i] : s->T - s->at;

        if (!T)
            continue;
        which[k] = i;
        rows[k] = (struct pf_rows){ .x = s->got + s->at * c->width, .T = T,
            .pos = s->at, .attn = maps ? floats(c->layers * 2 * T
                * (s->at + T)) : NULL };
        memcpy(rows[k].x, x0[i] + s->at * c->width,
            T * c->width * sizeof(float));
        assert_int_equal(pf_kv_begin(cache, &rows[k].kv, s->key, 1, NULL, 0,
            s->at, T, 0, NULL), PF_OK);
        k++;
    }
    assert_int_equal(pf_blocks(r, cache, rows, k, layers, c->layers, heads, 2,
        PF_PART_BOTH, NULL, NULL), PF_OK);
    pf_kv_idle(cache);
    for (size_t i = 0; i < k; i++) {
        struct seq *s = &seqs[which[i]];
        size_t S = rows[i].pos + rows[i].T;

        for (size_t m = 0; maps && m < c->layers * 2; m++)
            for (size_t t = 0; t < rows[i].T; t++)
                assert_memory_equal(rows[i].attn + (m * rows[i].T + t) * S,
                    s->maps + (m * s->T + rows[i].pos + t) * s->T,
                    S * sizeof(float));
        free(rows[i].attn);
        s->at += rows[i].T;
    }
}

static void
test_same_bits(void **ctx)
{
    static const size_t lengths[SEQS] = { 200, 1, 117 };
    static const struct shape shapes[] = {
        { 50, MOST, 48, 3, 3, 200, "gelu_new", NULL, PF_F16, false, false },
        { 50, MOST, 51, 2, 3, 70, "gelu", NULL, PF_F32, true, false },
        { 50, MOST, 128, 2, 4, 512, "silu", NULL, PF_BF16, true, true },
        /* Two single rows are worth threads, and each gets heads. */
        { 50, MOST, 192, 2, 6, 256, "gelu", NULL, PF_F16, false, false },
    };

    size_t kernels = 0;

    (void)ctx;
    while (pf_kernels_list(kernels))
        kernels++;
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        const struct shape *sh = &shapes[k];
        struct weights w;
        struct pf_model *m = make_model(sh, &w);
        const struct pf_config *c = &m->config;
        size_t C = c->width, L = c->layers;
        struct seq seqs[SEQS];
        const float *x0[SEQS], *at[SEQS * MOST];
        float *logits, *again;
        size_t n_rows = 0;

        for (size_t i = 0; i < SEQS; i++) {
            struct seq *s = &seqs[i];
            uint32_t ids[MOST];
            float *x;

            *s = (struct seq){ lengths[i], 0, floats(lengths[i] * C),
                floats(lengths[i] * C), floats(L * 2 * lengths[i]
                    * lengths[i]), { (char)('a' + i), 0 } };
            random_ids(ids, s->T, c->vocab, 7 + i);
            x = floats(s->T * C);
            assert_int_equal(pf_embed(m, x, ids, NULL, s->T, 0, true, NULL),
                PF_OK);
            x0[i] = x;
            for (size_t t = 0; t < s->T; t++)
                at[n_rows++] = s->want + t * C;
        }
        logits = floats(n_rows * c->vocab);
        again = floats(n_rows * c->vocab);
        /* Eight with a cache of F32, eight with one of F16. */
        for (size_t all = 0; all < 16; all++) {
            size_t run = all % 8;
            const struct pf_kernels *kern = pf_kernels_list(run % kernels);
            size_t threads = run % 3 + 1;
            struct pf_kv_cache *cache;
            struct pf_runner *r;

            setenv("PIPEFORMER_KERNEL", kern->name, 1);
            assert_int_equal(pf_runner_new(&r, m, threads, NULL), PF_OK);
            assert_string_equal(pf_runner_kernels(r), kern->name);
            assert_int_equal(pf_kv_cache_new(&cache, L, C, 1 << 26, NULL),
                PF_OK);
            pf_kv_cache_f16(cache, all >= 8);
            for (size_t i = 0; i < SEQS; i++)
                seqs[i].at = 0;
            if (run == 0) { /* each alone, in one, on one thread */
                for (size_t i = 0; i < SEQS; i++) {
                    static const size_t heads[] = { 2, 0 };
                    size_t layers[] = { 0, 1, 2 };
                    struct pf_rows rows = { .x = seqs[i].want,
                        .T = seqs[i].T, .attn = seqs[i].maps };

                    memcpy(rows.x, x0[i], rows.T * C * sizeof(float));
                    assert_int_equal(pf_kv_begin(cache, &rows.kv,
                        seqs[i].key, 1, NULL, 0, 0, rows.T, 0, NULL), PF_OK);
                    assert_int_equal(pf_blocks(r, cache, &rows, 1, layers, L,
                        heads, 2, PF_PART_BOTH, NULL, NULL), PF_OK);
                    pf_kv_idle(cache);
                    assert_int_equal(pf_first_nonfinite(seqs[i].want,
                        seqs[i].T * C), seqs[i].T * C);
                }
                assert_int_equal(pf_unembed(r, logits, at, n_rows, true,
                    NULL), PF_OK);
            }
            seed = run + 1;
            for (;;) {
                size_t n[SEQS], left = 0;

                for (size_t i = 0; i < SEQS; i++) {
                    n[i] = run == 1 ? MOST : run == 2 ? 1
                        : run == 3 ? 16 + i : next_random() % 90;
                    left += seqs[i].T - seqs[i].at;
                }
                if (!left)
                    break;
                advance(r, cache, x0, seqs, n, c, run != 2 || k % 2);
            }
            for (size_t i = 0; i < SEQS; i++)
                if (memcmp(seqs[i].got, seqs[i].want,
                        seqs[i].T * C * sizeof(float)) != 0)
                    fail_msg("model %zu, run %zu, sequence %zu", k, all, i);
            /* The head: rows in any company. */
            for (size_t i = 0, step = 1 + run * 40; i < n_rows; i += step) {
                size_t M = step < n_rows - i ? step : n_rows - i;

                assert_int_equal(pf_unembed(r, again + i * c->vocab, at + i,
                    M, true, NULL), PF_OK);
            }
            assert_memory_equal(again, logits,
                n_rows * c->vocab * sizeof(float));
            pf_kv_cache_free(cache);
            pf_runner_free(r);
        }
        for (size_t i = 0; i < SEQS; i++) {
            free(seqs[i].want);
            free(seqs[i].got);
            free(seqs[i].maps);
            free((float *)x0[i]);
        }
        free(logits);
        free(again);
        pf_model_free(m);
        pf_record_fini(&w.rec);
    }
    unsetenv("PIPEFORMER_KERNEL");
}

/* Layers one by one, into slots of one cache or of one each, are the layers
 * at once; and any of them may run alone. */
static void
test_layers(void **ctx)
{
    static const struct shape s = { 50, 40, 24, 4, 2, 40, "gelu_new",
        ",\"scale_attn_by_inverse_layer_idx\":true", PF_F32, false, false };
    enum { T = 30, C = 24 };
    static const size_t layers[] = { 0, 1, 2, 3 };
    struct weights w;
    struct pf_model *m = make_model(&s, &w);
    struct pf_kv_cache *cache, *one;
    struct pf_runner *r;
    struct pf_rows rows = { .T = T }, all = { .T = T };
    uint32_t ids[T];
    float *a = floats(T * C), *b = floats(T * C);
    double *x = doubles(T * C);

    (void)ctx;
    random_ids(ids, T, 50, 5);
    assert_int_equal(pf_runner_new(&r, m, 2, NULL), PF_OK);
    assert_non_null(pf_runner_kernels(r));
    assert_int_equal(pf_kv_cache_new(&cache, 4, C, 1 << 26, NULL), PF_OK);
    assert_int_equal(pf_kv_cache_new(&one, 1, C, 1 << 26, NULL), PF_OK);
    pf_embed(m, a, ids, NULL, T, 0, true, NULL);
    memcpy(b, a, T * C * sizeof *a);
    all.x = a;
    assert_int_equal(pf_kv_begin(cache, &all.kv, "a", 1, NULL, 0, 0, T, 0,
        NULL), PF_OK);
    assert_int_equal(pf_blocks(r, cache, &all, 1, layers, 4, NULL, 0,
        PF_PART_BOTH, NULL, NULL), PF_OK);
    rows.x = b;
    for (size_t l = 0; l < 4; l++) {
        bool own = l % 2; /* this layer's in a cache of its own */

        assert_int_equal(pf_kv_begin(own ? one : cache, &rows.kv, "b", 1,
            NULL, 0, 0, T, 0, NULL), PF_OK);
        rows.first_slot = own ? 0 : l;
        assert_int_equal(pf_blocks(r, own ? one : cache, &rows, 1, layers + l,
            1, NULL, 0, PF_PART_BOTH, NULL, NULL), PF_OK);
        pf_kv_idle(cache);
        pf_kv_idle(one);
    }
    assert_memory_equal(a, b, T * C * sizeof *a);
    /* The third layer, then the first. */
    pf_embed(m, a, ids, NULL, T, 0, false, NULL);
    for (size_t i = 0; i < T * C; i++)
        x[i] = (double)a[i];
    assert_int_equal(pf_kv_begin(cache, &all.kv, "a", 1, NULL, 0, 0, T, 0,
        NULL), PF_OK);
    assert_int_equal(pf_blocks(r, cache, &all, 1, (size_t[]){ 2, 0 }, 2, NULL,
        0, PF_PART_BOTH, NULL, NULL), PF_OK);
    plain_block(&s, &w, 2, 1 / sqrt(12) / 3, x, T, NULL);
    plain_block(&s, &w, 0, 1 / sqrt(12), x, T, NULL);
    check_close(a, x, T * C, "hidden");
    /* No layer, and no rows, are nothing to do. */
    memcpy(b, a, T * C * sizeof *a);
    assert_int_equal(pf_blocks(r, cache, &all, 1, layers, 0, NULL, 0,
        PF_PART_BOTH, NULL, NULL), PF_OK);
    assert_int_equal(pf_blocks(r, cache, NULL, 0, layers, 4, NULL, 0,
        PF_PART_BOTH, NULL, NULL), PF_OK);
    assert_memory_equal(a, b, T * C * sizeof *a);
    pf_kv_cache_free(cache);
    pf_kv_cache_free(one);
    pf_runner_free(r);
    pf_runner_free(NULL);
    pf_model_free(m);
    pf_record_fini(&w.rec);
    free(a);
    free(b);
    free(x);
}

/* A fork goes on as the sequence that it came from would have. */
static void
test_fork(void **ctx)
{
    static const struct shape s = { 50, 60, 24, 2, 2, 40, "gelu_new", NULL,
        PF_F32, false, false };
    enum { T = 50, C = 24 };
    static const size_t layers[] = { 0, 1 };
    struct weights w;
    struct pf_model *m = make_model(&s, &w);
    struct pf_kv_cache *cache;
    struct pf_runner *r;
    struct pf_rows rows = { .T = T };
    uint32_t ids[T];
    float *a = floats(T * C), *b = floats(T * C);

    (void)ctx;
    random_ids(ids, T, 50, 5);
    assert_int_equal(pf_runner_new(&r, m, 1, NULL), PF_OK);
    assert_int_equal(pf_kv_cache_new(&cache, 2, C, 1 << 26, NULL), PF_OK);
    pf_embed(m, a, ids, NULL, T, 0, true, NULL);
    rows.x = a;
    assert_int_equal(pf_kv_begin(cache, &rows.kv, "a", 1, NULL, 0, 0, T, 0,
        NULL), PF_OK);
    assert_int_equal(pf_blocks(r, cache, &rows, 1, layers, 2, NULL, 0,
        PF_PART_BOTH, NULL, NULL), PF_OK);
    pf_kv_idle(cache);
    for (size_t pos = 1; pos < T; pos += 7) {
        rows = (struct pf_rows){ .x = b, .T = T - pos, .pos = pos };
        pf_embed(m, b, ids + pos, NULL, T - pos, pos, true, NULL);
        assert_int_equal(pf_kv_begin(cache, &rows.kv, "b", 1, "a", 1, pos,
            T - pos, 0, NULL), PF_OK);
        assert_int_equal(pf_blocks(r, cache, &rows, 1, layers, 2, NULL, 0,
            PF_PART_BOTH, NULL, NULL), PF_OK);
        pf_kv_idle(cache);
        assert_memory_equal(b, a + pos * C, (T - pos) * C * sizeof *a);
    }
    pf_kv_cache_free(cache);
    pf_runner_free(r);
    pf_model_free(m);
    pf_record_fini(&w.rec);
    free(a);
    free(b);
}

static void
test_embed(void **ctx)
{
    static const struct shape s = { 11, 8, 6, 1, 2, 5, "relu", NULL, PF_F16,
        false, false };
    struct weights w;
    struct pf_model *m = make_model(&s, &w);
    const float *wte = weight(&w, "wte.weight", SIZE_MAX);
    const float *wpe = weight(&w, "wpe.weight", SIZE_MAX);
    const uint32_t ids[] = { 10, 0, 3, 11, UINT32_MAX };
    struct pf_err err;
    float out[9 * 6];

    (void)ctx;
    assert_int_equal(pf_embed(m, out, ids, NULL, 3, 5, true, NULL), PF_OK);
    for (size_t i = 0; i < 18; i++)
        assert_true(out[i] == wte[ids[i / 6] * 6 + i % 6] + wpe[30 + i]);
    assert_int_equal(pf_embed(m, out, ids, NULL, 3, 1000, false, NULL), PF_OK);
    for (size_t i = 0; i < 18; i++)
        assert_true(out[i] == wte[ids[i / 6] * 6 + i % 6]);
    assert_int_equal(pf_embed(m, out, ids, NULL, 0, 0, true, NULL), PF_OK);
    assert_int_equal(pf_embed(m, out, ids, NULL, 3, 6, true, &err), PF_ERANGE);
    assert_non_null(strstr(err.msg, "8"));
    assert_int_equal(pf_embed(m, out, ids, NULL, 1, 8, true, &err), PF_ERANGE);
    assert_int_equal(pf_embed(m, out, ids, NULL, 1, SIZE_MAX, true, &err),
        PF_ERANGE);
    assert_int_equal(pf_embed(m, out, ids, NULL, 4, 0, true, &err), PF_ERANGE);
    assert_non_null(strstr(err.msg, "11"));
    assert_non_null(strstr(err.msg, "3"));
    assert_int_equal(pf_embed(m, out, ids + 4, NULL, 1, 0, false, &err),
        PF_ERANGE);
    pf_model_free(m);
    pf_record_fini(&w.rec);
}

static void
test_nonfinite(void **ctx)
{
    float x[40];

    (void)ctx;
    assert_int_equal(pf_first_nonfinite(NULL, 0), 0);
    for (size_t n = 0; n <= 40; n++)
        for (size_t bad = 0; bad < n; bad++)
            for (int kind = 0; kind < 3; kind++) {
                for (size_t i = 0; i < n; i++)
                    x[i] = i % 2 ? 3.4028235e38f : -1e-45f;
                assert_int_equal(pf_first_nonfinite(x, n), n);
                x[bad] = kind == 0 ? NAN : kind == 1 ? INFINITY : -INFINITY;
                assert_int_equal(pf_first_nonfinite(x, n), bad);
            }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_activations),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_embed),
        cmocka_unit_test(test_nonfinite),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
