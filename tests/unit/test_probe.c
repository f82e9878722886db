/*
 * Taps, patches and zeros: by hand, on a made-up pass over a small shape whose
 * numbers tell where they come from, and on the bundled model, where putting a
 * run's own activations back must change no bit.
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

#include <pipeformer/forward.h>
#include <pipeformer/kv.h>
#include <pipeformer/probe.h>

/* --- Names --- */

static void
test_names(void **ctx)
{
    static const struct {
        const char *name;
        enum pf_point point;
    } names[] = {
        { "resid_pre", PF_RESID_PRE }, { "ln1.normalized", PF_LN1 },
        { "attn.q", PF_Q }, { "attn.k", PF_K }, { "attn.v", PF_V },
        { "attn.attn_scores", PF_SCORES }, { "attn.pattern", PF_PATTERN },
        { "attn.z", PF_Z }, { "attn.result", PF_RESULT },
        { "attn_out", PF_ATTN_OUT }, { "resid_mid", PF_RESID_MID },
        { "ln2.normalized", PF_LN2 }, { "mlp.pre", PF_MLP_PRE },
        { "mlp.post", PF_MLP_POST }, { "mlp_out", PF_MLP_OUT },
        { "resid_post", PF_RESID_POST },
    };
    static const char *const bad[] = { "", "blocks", "blocks.", "blocks..q",
        "blocks.0", "blocks.0.", "blocks.0.attn", "blocks.0.attn.", "attn.q",
        "blocks.0.attn.qq", "blocks.0.attn.Q", "blocks.x.attn.q",
        "blocks.-1.attn.q", "blocks.00.attn.q", "blocks.01.attn.q",
        "blocks. 1.attn.q", "blocks.1 .attn.q", "blocks.0.hook_q",
        "blocks.99999999999999999999.attn.q", "block.0.attn.q", "Blocks.0.z" };
    char s[48], want[48];
    enum pf_point point;
    size_t layer;

    (void)ctx;
    assert_int_equal(sizeof names / sizeof *names, PF_N_POINTS);
    for (size_t i = 0; i < PF_N_POINTS; i++)
        for (size_t l = 0; l < 1000; l = l * 3 + 1) {
            sprintf(want, "blocks.%zu.%s", l, names[i].name);
            assert_string_equal(pf_point_name(s, sizeof s, l,
                names[i].point), want);
            assert_true(pf_point_find(want, &layer, &point));
            assert_int_equal(layer, l);
            assert_int_equal(point, names[i].point);
        }
    assert_true(strlen(pf_point_name(s, sizeof s, SIZE_MAX, PF_SCORES)) < 47);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(pf_point_find(bad[i], &layer, &point));
}

static void
test_glob(void **ctx)
{
    static const struct {
        const char *pattern, *name;
        bool matches;
    } t[] = {
        { "", "", true }, { "", "a", false }, { "a", "", false },
        { "a", "a", true }, { "a", "b", false }, { "ab", "a", false },
        { "a", "ab", false }, { "*", "", true }, { "*", "abc", true },
        { "**", "", true }, { "?", "a", true }, { "?", "", false },
        { "?", "ab", false }, { "a*", "a", true }, { "a*", "abc", true },
        { "*c", "abc", true }, { "*b", "abc", false }, { "a*c", "abc", true },
        { "a*c", "ac", true }, { "a*c", "abd", false },
        { "*b*", "abc", true }, { "*a*b*c*", "xaybzc", true },
        { "*a*b*c*", "xaycb", false }, { "a**?", "ab", true },
        { "a*?*?", "ab", false }, { "*ab", "aab", true },
        { "*aab", "aaab", true }, { "a?c", "abc", true },
        { "[a]", "a", false }, { "[a]", "[a]", true },
        { "blocks.*.attn.?", "blocks.12.attn.q", true },
        { "blocks.?.attn.?", "blocks.12.attn.q", false },
        { "blocks.*.resid_*", "blocks.0.resid_mid", true },
        { "*a*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false },
    };

    (void)ctx;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        if (pf_glob(t[i].pattern, strlen(t[i].pattern), t[i].name)
            != t[i].matches)
            fail_msg("'%s' on '%s'", t[i].pattern, t[i].name);
    assert_true(pf_glob("abc", 2, "ab"));
    assert_true(pf_glob("a*x", 2, "abc"));
}

/* --- A made-up pass --- */

enum { L = 3, H = 2, D = 3, C = H * D, F = 5 };

static const struct pf_config small = { .layers = L, .heads = H,
    .head_dim = D, .width = C, .inner = F };
static const size_t all_layers[] = { 0, 1, 2 }, all_heads[] = { 0, 1 };

static struct pf_hooks *
make(const struct pf_config *c, const size_t *layers, size_t n_layers,
    const size_t *heads, size_t n_heads, unsigned parts)
{
    struct pf_hooks *h;

    assert_int_equal(pf_hooks_new(&h, c, layers, n_layers, heads, n_heads,
        parts, NULL), PF_OK);
    return h;
}

static struct pf_hooks *
make_all(void)
{
    return make(&small, all_layers, L, all_heads, H, PF_PART_BOTH);
}

/* An element of a point: of head (or 0), position, column. */
static float
value(size_t layer, enum pf_point p, size_t head, size_t pos, size_t i)
{
    return (float)(1 + layer + 3 * (p + 16 * (head + 2 * (pos + 16 * i))));
}

static size_t
width_of(enum pf_point p, size_t S)
{
    switch (p) {
    case PF_SCORES:
    case PF_PATTERN:
        return S;
    case PF_MLP_PRE:
    case PF_MLP_POST:
        return F;
    case PF_RESULT:
        return H * C;
    default:
        return C;
    }
}

static bool
is_map(enum pf_point p)
{
    return p == PF_SCORES || p == PF_PATTERN;
}

/*
 * Takes the probe past one point, in two calls of rows with a gap behind each
 * row for q, k, v and z, as the forward pass does.  What it leaves is in `out`,
 * for maps [H, T, S], else [T, width]; returns whether it said "changed".
 */
static bool
pass(const struct pf_probe *probe, size_t sequence, size_t layer,
    enum pf_point p, size_t T, size_t pos, bool causal, float *out)
{
    size_t S = pos + T, width = width_of(p, S), heads = is_map(p) ? H : 1;
    size_t gap = p == PF_Q || p == PF_K || p == PF_V || p == PF_Z ? 7 : 0;
    size_t stride = width + gap;
    float *data = malloc((T * stride + 1) * sizeof *data);
    bool changed = false;

    assert_non_null(data);
    if (!probe->wants(probe->ctx, layer, p)) {
        free(data);
        return false;
    }
    for (size_t h = 0; h < heads; h++) {
        size_t cut = T / 2;

        for (size_t t = 0; t < T; t++)
            for (size_t i = 0; i < stride; i++)
                data[t * stride + i] = i >= width ? NAN
                    : is_map(p) && causal && i > pos + t
                    ? p == PF_SCORES ? -INFINITY : 0
                    : value(layer, p, h, pos + t, i);
        /* Only q, k, v and z have a stride of their own (forward.h). */
        if (cut)
            changed |= probe->at(probe->ctx, sequence, layer, p, h, 0, cut,
                data, width, gap ? stride : 999);
        if (T > cut)
            changed |= probe->at(probe->ctx, sequence, layer, p, h, cut,
                T - cut, data + cut * stride, width, gap ? stride : 999);
        for (size_t t = 0; t < T; t++) {
            memcpy(out + (h * T + t) * width, data + t * stride,
                width * sizeof *out);
            for (size_t i = width; i < stride; i++)
                assert_true(isnan(data[t * stride + i]));
        }
    }
    free(data);
    return changed;
}

/* One record of T rows from pos; `json` is the record. */
static void
parse(struct pf_record *rec, const char *json)
{
    struct pf_reader r = PF_READER_INIT;
    struct pf_err err;

    *rec = (struct pf_record)PF_RECORD_INIT;
    if (pf_record_parse(&r, rec, json, strlen(json), &err))
        fail_msg("%s: %s", json, err.msg);
    pf_reader_fini(&r);
}

static void
begin(struct pf_hooks *h, struct pf_record *rec, size_t T, size_t pos,
    struct pf_hooked *hooked)
{
    struct pf_err err;
    size_t bytes;

    if (pf_hooks_check(h, rec, T, pos, 0, hooked, &bytes, &err)
        || pf_hooks_begin(h, rec, 0, hooked, &err))
        fail_msg("%s", err.msg);
}

static void
test_tap(void **ctx)
{
    static const size_t heads[] = { 1 };
    struct pf_hooks *h = make(&small, all_layers, L, heads, 1, PF_PART_BOTH);
    struct pf_record rec;
    struct pf_hooked hooked;
    const struct pf_probe *probe;
    float out[1000];
    char name[48];
    enum { T = 3, POS = 2, S = POS + T };

    (void)ctx;
    parse(&rec, "{}");
    assert_null(pf_hooks_probe(h, &hooked));
    assert_int_equal(pf_hooks_tap(h, "blocks.2.*,blocks.?.attn.z,"
        "blocks.0.mlp.pre,blocks.2.attn.z", NULL), PF_OK);
    begin(h, &rec, T, POS, &hooked);
    probe = pf_hooks_probe(h, &hooked);
    assert_non_null(probe);
    assert_int_equal(rec.n_tensors, PF_N_POINTS + 3);
    assert_string_equal(rec.tensors[0].name, "blocks.0.attn.z");
    assert_string_equal(rec.tensors[1].name, "blocks.0.mlp.pre");
    assert_string_equal(rec.tensors[3].name, "blocks.2.resid_pre");
    assert_string_equal(pf_record_field(&rec, "heads")->text, "[1]");
    for (size_t l = 0; l < L; l++)
        for (size_t k = 0; k < PF_N_POINTS; k++) {
            enum pf_point p = (enum pf_point)k;
            const struct pf_tensor *t;
            const float *v;
            size_t width = width_of(p, S), unit = width / H;

            assert_false(pass(probe, 0, l, p, T, POS, true, out));
            t = pf_record_tensor(&rec, pf_point_name(name, sizeof name, l,
                p));
            assert_int_equal(t != NULL, l == 2 || p == PF_Z
                || (l == 0 && p == PF_MLP_PRE));
            if (!t)
                continue;
            v = t->data;
            if (is_map(p)) {
                assert_int_equal(t->ndim, 3);
                assert_int_equal(t->shape[0], 1);
                assert_int_equal(t->shape[1], T);
                assert_int_equal(t->shape[2], S);
                assert_memory_equal(v, out + T * S, T * S * sizeof *v);
            } else if (pf_point_by_head(p)) {
                assert_int_equal(t->ndim, 3);
                assert_int_equal(t->shape[0], T);
                assert_int_equal(t->shape[1], 1);
                assert_int_equal(t->shape[2], unit);
                for (size_t i = 0; i < T; i++)
                    assert_memory_equal(v + i * unit, out + i * width + unit,
                        unit * sizeof *v);
            } else {
                assert_int_equal(t->ndim, 2);
                assert_int_equal(t->shape[0], T);
                assert_int_equal(t->shape[1], width);
                assert_memory_equal(v, out, T * width * sizeof *v);
            }
        }
    pf_record_fini(&rec);
    pf_hooks_free(h);
}

/* A record that has passed two layers has taps of the third alone. */
static void
test_from(void **ctx)
{
    struct pf_hooks *h = make_all();
    struct pf_record rec;
    struct pf_hooked hooked;
    float out[100];
    size_t bytes;

    (void)ctx;
    assert_int_equal(pf_hooks_tap(h, "blocks.*.resid_pre", NULL), PF_OK);
    parse(&rec, "{\"layer\":2}");
    assert_int_equal(pf_hooks_check(h, &rec, 4, 0, 2, &hooked, &bytes, NULL),
        PF_OK);
    assert_int_equal(bytes, 4 * C * sizeof(float));
    assert_int_equal(pf_hooks_begin(h, &rec, 2, &hooked, NULL), PF_OK);
    assert_int_equal(rec.n_tensors, 1);
    assert_string_equal(rec.tensors[0].name, "blocks.2.resid_pre");
    assert_null(pf_record_field(&rec, "heads"));
    pass(pf_hooks_probe(h, &hooked), 0, 2, PF_RESID_PRE, 4, 0, true, out);
    assert_memory_equal(rec.tensors[0].data, out, bytes);
    pf_record_fini(&rec);
    pf_hooks_free(h);
}

/* No rows: tensors of none. */
static void
test_empty(void **ctx)
{
    struct pf_hooks *h = make_all();
    struct pf_record rec;
    struct pf_hooked hooked;

    (void)ctx;
    assert_int_equal(pf_hooks_tap(h, "blocks.1.*", NULL), PF_OK);
    parse(&rec, "{}");
    begin(h, &rec, 0, 0, &hooked);
    assert_int_equal(rec.n_tensors, PF_N_POINTS);
    for (size_t i = 0; i < rec.n_tensors; i++)
        assert_int_equal(pf_tensor_count(&rec.tensors[i]), 0);
    pf_record_fini(&rec);
    pf_hooks_free(h);
}

static void
test_list_errors(void **ctx)
{
    static const size_t layers[] = { 0, 2 };
    static const struct {
        bool zero;
        unsigned parts;
        const char *list, *said; /* a part of the message; NULL: none */
    } t[] = {
        { false, 3, "blocks.0.attn.q", NULL },
        { false, 3, "*", NULL },
        { false, 3, "", "nothing is called ''" },
        { false, 3, "blocks.0.attn.q,", "nothing is called ''" },
        { false, 3, ",blocks.0.attn.q", "nothing is called ''" },
        { false, 3, "blocks.0.attn.w", "resid_pre, ln1.normalized, attn.q" },
        { false, 3, "blocks.0.attn.w", "N = 0, 2, has" },
        { false, 3, "blocks.0.attn.w", "mlp_out, resid_post" },
        { false, 3, "blocks.1.attn.q", "'blocks.1.attn.q'" },
        { false, 3, "resid_post", "'resid_post'" },
        { false, 3, "blocks.0.attn.q:1", "'blocks.0.attn.q:1'" },
        { false, 1, "blocks.0.mlp.pre", "attn_out, resid_mid" },
        { false, 1, "blocks.0.resid_mid", NULL },
        { false, 1, "blocks.0.resid_pre", NULL },
        { false, 1, "blocks.0.resid_post", "nothing" },
        { false, 2, "blocks.0.attn.q", "has resid_pre, ln2.normalized" },
        { false, 2, "blocks.0.resid_pre,blocks.0.resid_post", NULL },
        { true, 3, "blocks.0.attn.z:1,blocks.2.mlp_out", NULL },
        { true, 3, "blocks.*.attn.z:0", NULL },
        { true, 3, "blocks.0.*:0", NULL },
        { true, 3, "blocks.0.attn.z:2", "heads are 0 to 1" },
        { true, 3, "blocks.0.attn.z:99999999999999999999999", "no number" },
        { true, 3, "blocks.0.attn.z:", "no number" },
        { true, 3, "blocks.0.attn.z:x", "no number" },
        { true, 3, "blocks.0.attn.z:-1", "no number" },
        { true, 3, "blocks.0.attn.z:1:1", "no number" },
        { true, 3, "blocks.0.mlp_out:1", "has no heads" },
        { true, 3, "blocks.1.attn.z:1", "nothing is called 'blocks.1.attn.z'" },
    };

    (void)ctx;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct pf_hooks *h = make(&small, layers, 2, all_heads, H, t[i].parts);
        struct pf_err err = { PF_OK, "" };
        enum pf_status st = (t[i].zero ? pf_hooks_zero : pf_hooks_tap)(h,
            t[i].list, &err);

        if (st != (t[i].said ? PF_ERANGE : PF_OK)
            || (t[i].said && !strstr(err.msg, t[i].said)))
            fail_msg("'%s': %d, %s", t[i].list, st, err.msg);
        pf_hooks_free(h);
    }
}

static void
test_zero(void **ctx)
{
    struct pf_hooks *h = make_all();
    struct pf_hooked hooked;
    struct pf_record rec;
    const struct pf_probe *probe;
    float out[1000];
    enum { T = 3, S = 3 };

    (void)ctx;
    assert_int_equal(pf_hooks_zero(h, "blocks.0.attn.z:1,blocks.1.mlp_out,"
        "blocks.2.attn.pattern:0,blocks.2.attn.attn_scores,"
        "blocks.1.attn.result:0", NULL), PF_OK);
    assert_int_equal(pf_hooks_tap(h, "blocks.1.mlp_out", NULL), PF_OK);
    parse(&rec, "{}");
    begin(h, &rec, T, 0, &hooked);
    probe = pf_hooks_probe(h, &hooked);
    assert_true(pass(probe, 0, 0, PF_Z, T, 0, true, out));
    for (size_t t = 0; t < T; t++)
        for (size_t i = 0; i < C; i++)
            assert_true(out[t * C + i]
                == (i < D ? value(0, PF_Z, 0, t, i) : 0));
    assert_true(pass(probe, 0, 1, PF_MLP_OUT, T, 0, true, out));
    for (size_t i = 0; i < T * C; i++) {
        assert_true(out[i] == 0 && !signbit(out[i]));
        assert_true(((const float *)rec.tensors[0].data)[i] == 0);
    }
    assert_true(pass(probe, 0, 2, PF_PATTERN, T, 0, true, out));
    for (size_t i = 0; i < T * S; i++) {
        assert_true(out[i] == 0);
        assert_true(out[T * S + i] == (i % S > i / S ? 0
            : value(2, PF_PATTERN, 1, i / S, i % S)));
    }
    assert_true(pass(probe, 0, 2, PF_SCORES, T, 0, true, out));
    for (size_t i = 0; i < H * T * S; i++)
        assert_true(out[i] == (i % S > i / S % T ? -INFINITY : 0));
    assert_true(pass(probe, 0, 1, PF_RESULT, T, 0, true, out));
    for (size_t t = 0; t < T; t++)
        for (size_t i = 0; i < H * C; i++)
            assert_true(out[t * H * C + i]
                == (i < C ? 0 : value(1, PF_RESULT, 0, t, i)));
    assert_false(probe->wants(probe->ctx, 0, PF_MLP_OUT));
    assert_false(probe->wants(probe->ctx, 1, PF_Z));
    pf_record_fini(&rec);
    pf_hooks_free(h);
}

/* --- Patches --- */

static enum pf_status
patch(struct pf_hooks *h, const char *json, struct pf_err *err)
{
    struct pf_record rec;
    enum pf_status st;

    parse(&rec, json);
    st = pf_hooks_patch(h, &rec, err);
    assert_null(rec.tensors);
    return st;
}

/* What becomes of a point of C columns: "pos" of rows with value x + pos. */
static void
run_rows(struct pf_hooks *h, const char *json, size_t T, size_t pos,
    enum pf_point p, float *out, bool *changed)
{
    struct pf_hooked hooked;
    struct pf_record rec;

    parse(&rec, json);
    begin(h, &rec, T, pos, &hooked);
    *changed = pass(pf_hooks_probe(h, &hooked), 0, 0, p, T, pos, true, out);
    pf_record_fini(&rec);
}

/* For each sequence its own, and what has no `seq` for all. */
static void
test_patch_seq(void **ctx)
{
    struct pf_hooks *h = make_all();
    float out[100];
    bool changed;

    (void)ctx;
    assert_int_equal(patch(h, "{\"pos\":1,\"blocks.0.resid_pre\":"
        "[[1,1,1,1,1,1],[2,2,2,2,2,2]]}", NULL), PF_OK);
    assert_int_equal(patch(h, "{\"seq\":\"a\",\"pos\":2,"
        "\"blocks.0.resid_pre\":[[3,3,3,3,3,3]]}", NULL), PF_OK);
    assert_int_equal(patch(h, "{\"seq\":1,\"blocks.0.resid_pre\":"
        "[[4,4,4,4,4,4]],\"hidden\":[[1]],\"x\":1}", NULL), PF_OK);
    assert_int_equal(patch(h, "{\"seq\":1}", NULL), PF_OK);
    assert_int_equal(pf_hooks_patch_end(h, NULL), PF_OK);

    run_rows(h, "{}", 4, 0, PF_RESID_PRE, out, &changed);
    assert_true(changed && out[0] == value(0, PF_RESID_PRE, 0, 0, 0));
    assert_true(out[C] == 1 && out[2 * C] == 2);
    assert_true(out[3 * C] == value(0, PF_RESID_PRE, 0, 3, 0));
    run_rows(h, "{\"seq\":\"a\"}", 4, 0, PF_RESID_PRE, out, &changed);
    assert_true(changed && out[C] == 1 && out[2 * C] == 3);
    assert_true(out[3 * C] == value(0, PF_RESID_PRE, 0, 3, 0));
    run_rows(h, "{\"seq\":1}", 1, 0, PF_RESID_PRE, out, &changed);
    assert_true(changed && out[0] == 4);
    run_rows(h, "{\"seq\":\"1\"}", 1, 0, PF_RESID_PRE, out, &changed);
    assert_false(changed);
    run_rows(h, "{\"seq\":\"a\"}", 2, 2, PF_RESID_PRE, out, &changed);
    assert_true(changed && out[0] == 3
        && out[C] == value(0, PF_RESID_PRE, 0, 3, 0));
    run_rows(h, "{\"seq\":\"a\"}", 2, 3, PF_RESID_PRE, out, &changed);
    assert_false(changed);
    pf_hooks_free(h);

    /* A record alone in its file is for all, whatever its seq. */
    h = make_all();
    assert_int_equal(patch(h, "{\"seq\":\"a\",\"blocks.0.resid_pre\":"
        "[[5,5,5,5,5,5]]}", NULL), PF_OK);
    assert_int_equal(pf_hooks_patch_end(h, NULL), PF_OK);
    run_rows(h, "{\"seq\":\"b\"}", 2, 0, PF_RESID_PRE, out, &changed);
    assert_true(changed && out[0] == 5
        && out[C] == value(0, PF_RESID_PRE, 0, 1, 0));
    run_rows(h, "{}", 2, 0, PF_RESID_PRE, out, &changed);
    assert_true(changed && out[0] == 5);
    pf_hooks_free(h);
}

/* Positions and heads that are listed, in any order. */
static void
test_patch_parts(void **ctx)
{
    struct pf_hooks *h = make_all();
    float out[100];
    bool changed;

    (void)ctx;
    assert_int_equal(patch(h, "{\"positions\":[3,1],\"heads\":[1],"
        "\"blocks.0.attn.z\":[[[1,2,3]],[[4,5,6]]],"
        "\"blocks.0.attn.pattern\":[[[9,8,7,6,99],[5,4,99,99,99]]],"
        "\"blocks.0.mlp.pre\":[[1,1,1,1,1],[2,2,2,2,2]]}", NULL), PF_OK);
    assert_int_equal(pf_hooks_patch_end(h, NULL), PF_OK);
    run_rows(h, "{}", 4, 0, PF_Z, out, &changed);
    assert_true(changed);
    for (size_t t = 0; t < 4; t++)
        for (size_t i = 0; i < C; i++)
            assert_true(out[t * C + i] == (t % 2 == 0 || i < D
                ? value(0, PF_Z, 0, t, i)
                : (t == 3 ? 1 : 4) + (float)(i - D)));
    run_rows(h, "{}", 4, 0, PF_PATTERN, out, &changed);
    assert_true(changed);
    for (size_t i = 0; i < 16; i++)
        assert_true(out[i] == (i % 4 > i / 4 ? 0
            : value(0, PF_PATTERN, 0, i / 4, i % 4)));
    assert_true(out[16] == value(0, PF_PATTERN, 1, 0, 0));
    assert_true(out[20] == 5 && out[21] == 4 && out[22] == 0 && out[23] == 0);
    assert_true(out[28] == 9 && out[29] == 8 && out[30] == 7 && out[31] == 6);
    run_rows(h, "{}", 2, 2, PF_MLP_PRE, out, &changed);
    assert_true(changed && out[0] == value(0, PF_MLP_PRE, 0, 2, 0));
    assert_true(out[F] == 1 && out[2 * F - 1] == 1);
    run_rows(h, "{}", 1, 2, PF_MLP_PRE, out, &changed);
    assert_false(changed);
    pf_hooks_free(h);
}

/* The lists as tensors, as other programs may write them. */
static void
test_patch_tensors(void **ctx)
{
    const struct {
        enum pf_dtype type;
        const void *data;
        bool fits;
    } t[] = {
        { PF_I64, (const int64_t[]){ 2 }, true },
        { PF_U8, (const uint8_t[]){ 2 }, true },
        { PF_F32, (const float[]){ 2 }, true },
        { PF_F64, (const double[]){ 2 }, true },
        { PF_F64, (const double[]){ 2.5 }, false },
        { PF_F64, (const double[]){ 1e300 }, false },
        { PF_F64, (const double[]){ NAN }, false },
        { PF_I64, (const int64_t[]){ -1 }, false },
        { PF_F8_E4M3, (const uint8_t[]){ 0x40 }, true },
        { PF_F8_E4M3, (const uint8_t[]){ 0x42 }, false },
    };
    static const size_t one[] = { 1 };
    float out[100];
    bool changed;

    (void)ctx;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct pf_hooks *h = make_all();
        struct pf_record rec;
        enum pf_status st;

        parse(&rec, "{\"blocks.0.mlp.pre\":[[1,2,3,4,5]]}");
        assert_non_null(pf_record_put(&rec, "positions", t[i].type, 1, one,
            t[i].data));
        st = pf_hooks_patch(h, &rec, NULL);
        assert_int_equal(st == PF_OK, t[i].fits);
        if (t[i].fits) {
            assert_int_equal(pf_hooks_patch_end(h, NULL), PF_OK);
            run_rows(h, "{}", 4, 0, PF_MLP_PRE, out, &changed);
            assert_true(changed && out[2 * F] == 1);
            assert_true(out[F] == value(0, PF_MLP_PRE, 0, 1, 0));
        }
        pf_hooks_free(h);
    }
}

/* What is equal already does not count as changed; the later record wins. */
static void
test_patch_same(void **ctx)
{
    struct pf_hooks *h = make_all();
    char json[400];
    float out[100];
    bool changed;

    (void)ctx;
    sprintf(json, "{\"blocks.0.mlp.post\":[[%.0f,%.0f,%.0f,%.0f,%.0f]]}",
        value(0, PF_MLP_POST, 0, 0, 0), value(0, PF_MLP_POST, 0, 0, 1),
        value(0, PF_MLP_POST, 0, 0, 2), value(0, PF_MLP_POST, 0, 0, 3),
        value(0, PF_MLP_POST, 0, 0, 4));
    assert_int_equal(patch(h, json, NULL), PF_OK);
    assert_int_equal(pf_hooks_patch_end(h, NULL), PF_OK);
    run_rows(h, "{}", 2, 0, PF_MLP_POST, out, &changed);
    assert_false(changed);
    assert_int_equal(patch(h, "{\"blocks.0.mlp.post\":[[1,1,1,1,1]]}", NULL),
        PF_OK);
    assert_int_equal(patch(h, "{\"blocks.0.mlp.post\":[[2,2,2,2,2]]}", NULL),
        PF_OK);
    assert_int_equal(pf_hooks_patch_end(h, NULL), PF_OK);
    run_rows(h, "{}", 2, 0, PF_MLP_POST, out, &changed);
    assert_true(changed && out[0] == 2);
    assert_int_equal(patch(h, "{\"blocks.0.mlp.post\":[[3,3,3,3,3],"
        "[4,4,4,4,4]]}", NULL), PF_OK);
    assert_int_equal(patch(h, "{\"pos\":1,\"blocks.0.mlp.post\":"
        "[[5,5,5,5,5]]}", NULL), PF_OK);
    assert_int_equal(patch(h, "{\"pos\":1,\"blocks.0.mlp.pre\":"
        "[[6,6,6,6,6]]}", NULL), PF_OK);
    for (int i = 0; i < 3; i++) /* without seq: for all */
        assert_int_equal(pf_hooks_patch_end(h, NULL), i ? PF_EFORMAT : PF_OK);
    run_rows(h, "{}", 2, 0, PF_MLP_POST, out, &changed);
    assert_true(changed && out[0] == 3 && out[F] == 5);
    pf_hooks_free(h);
}

/* A file without activations is a mistake; a block that does not run is not. */
static void
test_patch_end(void **ctx)
{
    static const size_t layers[] = { 1 };
    struct pf_hooks *h = make(&small, layers, 1, all_heads, H, PF_PART_BOTH);
    struct pf_hooked hooked;
    struct pf_err err;

    (void)ctx;
    assert_int_equal(pf_hooks_patch_end(h, &err), PF_EFORMAT);
    assert_int_equal(patch(h, "{\"hidden\":[[1]]}", &err), PF_OK);
    assert_int_equal(pf_hooks_patch_end(h, &err), PF_EFORMAT);
    assert_non_null(strstr(err.msg, "no record has activations"));
    assert_int_equal(patch(h, "{\"blocks.0.mlp.post\":[[1,1,1,1,1]]}", &err),
        PF_OK);
    assert_int_equal(pf_hooks_patch_end(h, &err), PF_OK);
    assert_null(pf_hooks_probe(h, &hooked));
    pf_hooks_free(h);
}

static void
test_patch_errors(void **ctx)
{
    static const struct {
        const char *json, *said;
    } t[] = {
        { "{\"blocks.0.resid_pre\":[]}", NULL },
        { "{\"blocks.0.resid_pre\":[[1,2,3,4,5]]}",
            "blocks.0.resid_pre: has the shape [1, 5]; the model makes it "
            "[T, 6]" },
        { "{\"blocks.0.resid_pre\":[1,2,3,4,5,6]}", "[6]; the model makes" },
        { "{\"blocks.0.mlp.pre\":[[1,2,3,4,5,6]]}", "[T, 5]" },
        { "{\"blocks.0.attn.q\":[[1,2,3,4,5,6]]}", "[T, 2, 3]" },
        { "{\"blocks.0.attn.q\":[[[1,2,3]]]}", "[1, 1, 3]; the model makes it "
            "[T, 2, 3]" },
        { "{\"heads\":[0],\"blocks.0.attn.q\":[[[1,2,3]]]}", NULL },
        { "{\"heads\":[0],\"blocks.0.attn.q\":[[[1,2,3],[1,2,3]]]}",
            "[T, 1, 3] with the heads listed" },
        { "{\"blocks.0.attn.result\":[[[1,2,3],[1,2,3]]]}", "[T, 2, 6]" },
        { "{\"blocks.0.attn.pattern\":[[[1]]]}", "[2, T, S]" },
        { "{\"blocks.0.attn.pattern\":[[[1]],[[1]]]}", NULL },
        { "{\"blocks.0.attn.pattern\":[[[1],[1]],[[1],[1]]]}",
            "maps of 1 columns have a row of position 1, which sees 2" },
        { "{\"pos\":3,\"blocks.0.attn.pattern\":[[[1]],[[1]]]}",
            "position 3, which sees 4" },
        { "{\"blocks.0.attn.pattern\":[[[1]],[[1]]],"
            "\"blocks.1.attn.pattern\":[[[1,0]],[[1,0]]]}", "have 1 columns" },
        { "{\"blocks.0.resid_pre\":[[1,2,3,4,5,6]],"
            "\"blocks.0.mlp.pre\":[[1,2,3,4,5],[1,2,3,4,5]]}",
            "blocks.0.mlp.pre: has the shape [2, 5], with rows of 2" },
        { "{\"positions\":[0,1],\"blocks.0.mlp.pre\":[[1,2,3,4,5]]}",
            "positions: lists 2, but the tensors have 1 rows" },
        { "{\"positions\":[-1],\"blocks.0.mlp.pre\":[[1,2,3,4,5]]}",
            "positions: -1 is not within 0" },
        { "{\"positions\":[1.5],\"blocks.0.mlp.pre\":[[1,2,3,4,5]]}",
            "positions: is no list of integers" },
        { "{\"positions\":1,\"blocks.0.mlp.pre\":[[1,2,3,4,5]]}",
            "positions: is no list of integers" },
        { "{\"positions\":[9999999999],\"blocks.0.mlp.pre\":[[1,2,3,4,5]]}",
            "positions: 9999999999 is not within" },
        { "{\"heads\":[2],\"blocks.0.attn.q\":[[[1,2,3]]]}",
            "heads: 2 is not within 0 and 1" },
        { "{\"heads\":\"x\",\"blocks.0.attn.q\":[[[1,2,3]]]}", "heads: is no" },
        { "{\"pos\":-1,\"blocks.0.mlp.pre\":[[1,2,3,4,5]]}", "pos: -1" },
        { "{\"seq\":[],\"blocks.0.mlp.pre\":[[1,2,3,4,5]]}", "seq: " },
        { "{\"blocks.3.mlp.pre\":[[1,2,3,4,5]]}",
            "blocks.3.mlp.pre: the model's blocks are 0 to 2" },
        { "{\"blocks.0.mlp\":[[1,2,3,4,5]]}", "is no activation" },
        { "{\"blocks.0.mlp.pre\":[[1,2,null,4,5]]}", "NaN at element 2" },
        { "{\"blocks.0.mlp.pre\":[[1,2,3,4,1e999]]}", "infinity at element 4" },
        { "{\"blocks.0.attn.pattern\":[[[-1e999]],[[1]]]}", "infinity" },
        { "{\"blocks.0.attn.attn_scores\":[[[-1e999]],[[1]]]}", NULL },
        { "{\"blocks.0.attn.attn_scores\":[[[1e999]],[[1]]]}", "infinity" },
        { "{\"error\":\"x\",\"blocks.0.mlp.pre\":[[1,2,3,4,5]]}",
            "an error record" },
    };

    (void)ctx;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct pf_hooks *h = make_all();
        struct pf_err err = { PF_OK, "" };
        enum pf_status st = patch(h, t[i].json, &err);

        if ((st != PF_OK) != (t[i].said != NULL)
            || (t[i].said && !strstr(err.msg, t[i].said)))
            fail_msg("%s: %d, %s", t[i].json, st, err.msg);
        pf_hooks_free(h);
    }
}

/* An encoder's rows see all columns, so its maps are whole. */
static void
test_encoder(void **ctx)
{
    struct pf_config c = small;
    struct pf_hooks *h;
    struct pf_hooked hooked;
    struct pf_record rec;
    struct pf_err err;
    float out[100];
    size_t bytes;

    (void)ctx;
    c.encoder = true;
    h = make(&c, all_layers, L, all_heads, H, PF_PART_BOTH);
    assert_int_equal(patch(h, "{\"positions\":[0],\"blocks.0.attn.pattern\":"
        "[[[1,2,3]],[[4,5,6]]]}", NULL), PF_OK);
    assert_int_equal(pf_hooks_patch_end(h, NULL), PF_OK);
    parse(&rec, "{}");
    begin(h, &rec, 3, 0, &hooked);
    assert_true(pass(pf_hooks_probe(h, &hooked), 0, 0, PF_PATTERN, 3, 0,
        false, out));
    assert_true(out[0] == 1 && out[1] == 2 && out[2] == 3);
    assert_true(out[3] == value(0, PF_PATTERN, 0, 1, 0));
    assert_true(out[9] == 4 && out[10] == 5 && out[11] == 6);
    assert_int_equal(pf_hooks_check(h, &rec, 4, 0, 0, &hooked, &bytes, &err),
        PF_ESHAPE);
    assert_non_null(strstr(err.msg, "[H, 1, 3]"));
    assert_non_null(strstr(err.msg, "[H, 4, 4]"));
    pf_record_fini(&rec);
    pf_hooks_free(h);
}

/* `heads` is one list for all that a record holds. */
static void
test_heads(void **ctx)
{
    static const size_t one[] = { 1 };
    static const struct {
        const char *json;
        bool fits;
    } t[] = {
        { "{}", true },
        { "{\"heads\":[0]}", true }, /* it is of nothing */
        { "{\"heads\":[1],\"attn\":[[[[1]]]]}", true },
        { "{\"heads\":[0],\"attn\":[[[[1]]]]}", false },
        { "{\"heads\":[0,1],\"blocks.0.attn.q\":[[[1,1,1],[1,1,1]]]}", false },
        { "{\"blocks.0.attn.q\":[[[1,1,1]]]}", false },
        { "{\"heads\":[1],\"blocks.0.attn.q\":[[[1,1,1]]]}", true },
        { "{\"heads\":[1,1],\"blocks.0.attn.q\":[[[1,1,1]]]}", false },
        { "{\"heads\":1,\"blocks.0.attn.q\":[[[1,1,1]]]}", false },
        { "{\"heads\":[0],\"blocks.0.resid_pre\":[[1]]}", true },
    };

    (void)ctx;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct pf_hooks *h = make(&small, all_layers, L, one, 1,
            PF_PART_BOTH);
        struct pf_hooked hooked;
        struct pf_record rec;
        struct pf_err err = { PF_OK, "" };
        size_t bytes;

        assert_int_equal(pf_hooks_tap(h, "blocks.2.attn.q", NULL), PF_OK);
        assert_true(pf_hooks_tap_heads(h));
        parse(&rec, t[i].json);
        if (pf_hooks_check(h, &rec, 1, 0, 0, &hooked, &bytes, &err)
            != (t[i].fits ? PF_OK : PF_EFORMAT))
            fail_msg("%s: %s", t[i].json, err.msg);
        pf_record_fini(&rec);
        pf_hooks_free(h);
    }
}

/* --- The bundled model --- */

enum { IDS = 9, CUTS = 4 };

static const uint32_t ids[IDS] = { 2412, 643, 258, 529, 11, 307, 275, 437,
    11 };
/* The rows of each record: at once, token by token, and in two pieces. */
static const size_t cuts[CUTS][IDS + 1] = { { IDS, 0 },
    { 1, 1, 1, 1, 1, 1, 1, 1, 1, 0 }, { 4, 5, 0 }, { 5, 1, 3, 0 } };

static struct pf_model *model;
static size_t *layers, *heads;

static int
open_model(void **ctx)
{
    struct pf_err err;

    (void)ctx;
    if (pf_model_open(&model, PF_TEST_VOCAB "/fairy", &err))
        fail_msg("%s", err.msg);
    layers = calloc(model->config.layers, sizeof *layers);
    heads = calloc(model->config.heads, sizeof *heads);
    for (size_t i = 0; i < model->config.layers; i++)
        layers[i] = i;
    for (size_t i = 0; i < model->config.heads; i++)
        heads[i] = i;
    return 0;
}

static int
close_model(void **ctx)
{
    (void)ctx;
    pf_model_free(model);
    free(layers);
    free(heads);
    return 0;
}

/*
 * Runs the ids in those pieces; each leaves a record in recs, and the rows
 * that come out lie in x.
 */
static void
run_model(struct pf_hooks *h, const size_t *cut, struct pf_record *recs,
    float *x, float *maps)
{
    const struct pf_config *c = &model->config;
    struct pf_kv_cache *cache;
    struct pf_runner *r;
    struct pf_err err;
    size_t pos = 0;

    assert_int_equal(pf_runner_new(&r, model, 2, NULL), PF_OK);
    assert_int_equal(pf_kv_cache_new(&cache, c->layers, c->width, 1 << 26,
        NULL), PF_OK);
    assert_int_equal(pf_embed(model, x, ids, NULL, IDS, 0, true, &err), PF_OK);
    for (size_t i = 0; cut[i]; pos += cut[i++]) {
        struct pf_hooked hooked;
        struct pf_rows rows = { x + pos * c->width, cut[i], pos, NULL, 0,
            maps };

        recs[i] = (struct pf_record)PF_RECORD_INIT;
        assert_int_equal(pf_record_set_i64(&recs[i], "pos", (int64_t)pos,
            NULL), PF_OK);
        assert_int_equal(pf_record_set_string(&recs[i], "seq", "a", 1, NULL),
            PF_OK);
        begin(h, &recs[i], cut[i], pos, &hooked);
        assert_int_equal(pf_kv_begin(cache, &rows.kv, "a", 1, NULL, 0, pos,
            cut[i], 0, &err), PF_OK);
        if (pf_blocks(r, cache, &rows, 1, layers, c->layers, heads, c->heads,
                PF_PART_BOTH, pf_hooks_probe(h, &hooked), &err))
            fail_msg("%s", err.msg);
        pf_kv_idle(cache);
        if (maps)
            maps += c->layers * c->heads * cut[i] * (pos + cut[i]);
    }
    pf_kv_cache_free(cache);
    pf_runner_free(r);
}

static struct pf_hooks *
model_hooks(const char *taps)
{
    const struct pf_config *c = &model->config;
    struct pf_hooks *h = make(c, layers, c->layers, heads, c->heads,
        PF_PART_BOTH);
    struct pf_err err;

    if (taps && pf_hooks_tap(h, taps, &err))
        fail_msg("%s", err.msg);
    return h;
}

static size_t
count(const size_t *cut)
{
    size_t n = 0;

    while (cut[n])
        n++;
    return n;
}

/* Row by row, whatever the cut: of a map the columns up to its position. */
static void
same_taps(const struct pf_record *one, const struct pf_record *recs,
    const size_t *cut)
{
    for (size_t k = 0; k < one->n_tensors; k++) {
        const struct pf_tensor *a = &one->tensors[k];
        size_t pos = 0, layer, width, S = IDS;
        enum pf_point p;

        assert_true(pf_point_find(a->name, &layer, &p));
        width = pf_tensor_count(a) / IDS;
        for (size_t i = 0; cut[i]; pos += cut[i++]) {
            const struct pf_tensor *b = pf_record_tensor(&recs[i], a->name);
            const float *u = a->data, *v;

            assert_non_null(b);
            v = b->data;
            if (!is_map(p)) {
                assert_memory_equal(u + pos * width, v,
                    cut[i] * width * sizeof *v);
                continue;
            }
            assert_int_equal(b->shape[1], cut[i]);
            assert_int_equal(b->shape[2], pos + cut[i]);
            for (size_t h = 0; h < b->shape[0]; h++)
                for (size_t t = 0; t < cut[i]; t++)
                    assert_memory_equal(u + (h * IDS + pos + t) * S,
                        v + (h * cut[i] + t) * b->shape[2],
                        (pos + t + 1) * sizeof *v);
        }
    }
}

/* Every point, looked at: no bit of the result changes, however it is cut. */
static void
test_looking(void **ctx)
{
    size_t n = IDS * model->config.width;
    float *plain = calloc(n, sizeof *plain), *x = calloc(n, sizeof *x);
    struct pf_record one[1], recs[IDS];

    (void)ctx;
    for (size_t i = 0; i < CUTS; i++) {
        struct pf_hooks *none = model_hooks(NULL);
        struct pf_hooks *h = model_hooks("blocks.*");

        run_model(none, cuts[i], recs, i ? x : plain, NULL);
        assert_memory_equal(i ? x : plain, plain, n * sizeof *x);
        for (size_t k = 0; k < count(cuts[i]); k++)
            pf_record_fini(&recs[k]);
        run_model(h, cuts[i], i ? recs : one, x, NULL);
        assert_memory_equal(x, plain, n * sizeof *x);
        if (i) {
            same_taps(one, recs, cuts[i]);
            for (size_t k = 0; k < count(cuts[i]); k++)
                pf_record_fini(&recs[k]);
        }
        pf_hooks_free(none);
        pf_hooks_free(h);
    }
    pf_record_fini(&one[0]);
    free(plain);
    free(x);
}

/*
 * Each point alone, and all at once, from each cut of a run into each other
 * cut: putting back what was there changes no bit, of rows or of maps.
 */
static void
test_own_patch(void **ctx)
{
    const struct pf_config *c = &model->config;
    size_t n = IDS * c->width, n_maps = c->layers * c->heads * IDS * IDS;
    float *plain = calloc(n, sizeof *plain), *x = calloc(n, sizeof *x);
    float *maps = calloc(n_maps, sizeof *maps);
    float *again = calloc(n_maps, sizeof *again);
    struct pf_record recs[IDS];

    (void)ctx;
    for (size_t p = 0; p <= PF_N_POINTS; p++)
        for (size_t from = 0; from < CUTS; from++)
            for (size_t to = 0; to < CUTS; to++) {
                char taps[48] = "blocks.*", *dot;
                struct pf_hooks *h, *back = model_hooks(NULL);

                if (p < PF_N_POINTS) {
                    pf_point_name(taps, sizeof taps, 0, (enum pf_point)p);
                    dot = strchr(taps, '.');
                    dot[1] = '*';
                }
                h = model_hooks(taps);
                run_model(h, cuts[from], recs, plain, NULL);
                for (size_t i = 0; i < count(cuts[from]); i++)
                    assert_int_equal(pf_hooks_patch(back, &recs[i], NULL),
                        PF_OK);
                assert_int_equal(pf_hooks_patch_end(back, NULL), PF_OK);
                pf_hooks_free(h);

                h = model_hooks(NULL);
                run_model(h, cuts[to], recs, x, maps);
                assert_memory_equal(x, plain, n * sizeof *x);
                for (size_t i = 0; i < count(cuts[to]); i++)
                    pf_record_fini(&recs[i]);
                pf_hooks_free(h);
                run_model(back, cuts[to], recs, x, again);
                if (memcmp(x, plain, n * sizeof *x) != 0)
                    fail_msg("%s, cut %zu into %zu", taps, from, to);
                assert_memory_equal(maps, again, n_maps * sizeof *maps);
                for (size_t i = 0; i < count(cuts[to]); i++)
                    pf_record_fini(&recs[i]);
                pf_hooks_free(back);
            }
    free(plain);
    free(x);
    free(maps);
    free(again);
}

/*
 * Another run's residual stream before block 3, put in at all positions, gives
 * that run's result; at one position, neither.
 */
static void
test_other_patch(void **ctx)
{
    const struct pf_config *c = &model->config;
    size_t n = IDS * c->width;
    float *plain = calloc(n, sizeof *plain), *x = calloc(n, sizeof *x);
    float *other = calloc(n, sizeof *other);
    struct pf_hooks *h = model_hooks(NULL);
    struct pf_record recs[IDS];

    (void)ctx;
    run_model(h, cuts[0], recs, plain, NULL);
    pf_record_fini(&recs[0]);
    pf_hooks_free(h);
    h = model_hooks("blocks.3.resid_pre");
    assert_int_equal(pf_hooks_zero(h, "blocks.1.mlp_out", NULL), PF_OK);
    run_model(h, cuts[0], recs, other, NULL);
    assert_memory_not_equal(plain, other, n * sizeof *x);
    pf_hooks_free(h);

    h = model_hooks(NULL);
    assert_int_equal(pf_hooks_patch(h, &recs[0], NULL), PF_OK);
    assert_int_equal(pf_hooks_patch_end(h, NULL), PF_OK);
    for (size_t i = 0; i < CUTS; i++) {
        run_model(h, cuts[i], recs, x, NULL);
        assert_memory_equal(x, other, n * sizeof *x);
        for (size_t k = 0; k < count(cuts[i]); k++)
            pf_record_fini(&recs[k]);
    }
    pf_hooks_free(h);
    free(plain);
    free(other);
    free(x);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_glob),
        cmocka_unit_test(test_tap),
        cmocka_unit_test(test_from),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_list_errors),
        cmocka_unit_test(test_zero),
        cmocka_unit_test(test_patch_seq),
        cmocka_unit_test(test_patch_parts),
        cmocka_unit_test(test_patch_tensors),
        cmocka_unit_test(test_patch_same),
        cmocka_unit_test(test_patch_end),
        cmocka_unit_test(test_patch_errors),
        cmocka_unit_test(test_encoder),
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_looking),
        cmocka_unit_test(test_own_patch),
        cmocka_unit_test(test_other_patch),
    };

    return cmocka_run_group_tests(tests, open_model, close_model);
}
