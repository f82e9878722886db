/*
 * Opening model directories: what they must hold, where names lead, what the
 * fingerprint tells apart.  Directories are written by the test.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <pipeformer/model.h>

enum { V = 5, P = 4, C = 6, H = 2, F = 8, L = 2, MOST = 64 };

static char dir[] = "/tmp/pf-model-XXXXXX";

/* The tensors of a model to be written, in order. */
static struct entry {
    char name[64];
    const char *dtype;
    unsigned ndim;
    size_t shape[3];
} entries[MOST];
static size_t n_entries;

static void
add(const char *name, size_t rows, size_t columns)
{
    struct entry *e = &entries[n_entries++];

    snprintf(e->name, sizeof e->name, "%s", name);
    e->dtype = "F32";
    e->ndim = columns ? 2 : 1;
    e->shape[0] = rows;
    e->shape[1] = columns;
}

/* All that GPT-2 has, under a prefix. */
static void
complete(const char *prefix)
{
    static const struct {
        const char *name;
        size_t rows, columns;
    } parts[] = {
        { "ln_1.weight", C, 0 }, { "ln_1.bias", C, 0 },
        { "attn.c_attn.weight", C, 3 * C }, { "attn.c_attn.bias", 3 * C, 0 },
        { "attn.c_proj.weight", C, C }, { "attn.c_proj.bias", C, 0 },
        { "ln_2.weight", C, 0 }, { "ln_2.bias", C, 0 },
        { "mlp.c_fc.weight", C, F }, { "mlp.c_fc.bias", F, 0 },
        { "mlp.c_proj.weight", F, C }, { "mlp.c_proj.bias", C, 0 },
    };
    char name[64];

    n_entries = 0;
    sprintf(name, "%swte.weight", prefix);
    add(name, V, C);
    sprintf(name, "%swpe.weight", prefix);
    add(name, P, C);
    for (int l = 0; l < L; l++)
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            sprintf(name, "%sh.%d.%s", prefix, l, parts[i].name);
            add(name, parts[i].rows, parts[i].columns);
        }
    sprintf(name, "%sln_f.weight", prefix);
    add(name, C, 0);
    sprintf(name, "%sln_f.bias", prefix);
    add(name, C, 0);
}

static struct entry *
entry(const char *name)
{
    for (size_t i = 0; i < n_entries; i++)
        if (strcmp(entries[i].name, name) == 0)
            return &entries[i];
    fail_msg("%s", name);
    return NULL;
}

static size_t
count(const struct entry *e)
{
    size_t n = 1;

    for (unsigned i = 0; i < e->ndim; i++)
        n *= e->shape[i];
    return n;
}

/* Element k of the i-th tensor. */
static float
number(size_t i, size_t k)
{
    return (float)i + (float)k / 128;
}

static void
put(const char *name, const char *bytes, size_t n)
{
    char path[128];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* `askew`: a byte lies in front, so that every float is unaligned. */
static void
write_model(const char *members, bool askew)
{
    struct pf_buf b = PF_BUF_INIT;
    size_t at = 0, header;
    char config[512];

    pf_buf_add(&b, "\0\0\0\0\0\0\0\0{", 9);
    if (askew)
        pf_buf_printf(&b, "\"pad\":{\"dtype\":\"U8\",\"shape\":[1],"
            "\"data_offsets\":[0,%zu]},", ++at);
    for (size_t i = 0; i < n_entries; i++) {
        const struct entry *e = &entries[i];
        size_t size = strcmp(e->dtype, "F32") == 0 ? 4
            : strcmp(e->dtype, "F64") == 0 ? 8
            : strcmp(e->dtype, "I8") == 0 ? 1 : 2;

        pf_buf_printf(&b, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[",
            i ? "," : "", e->name, e->dtype);
        for (unsigned k = 0; k < e->ndim; k++)
            pf_buf_printf(&b, k ? ",%zu" : "%zu", e->shape[k]);
        pf_buf_printf(&b, "],\"data_offsets\":[%zu,%zu]}", at,
            at + size * count(e));
        at += size * count(e);
    }
    pf_buf_addc(&b, '}');
    while (b.len % 8)
        pf_buf_addc(&b, ' ');
    header = b.len - 8;
    b.data[0] = (char)(header & 0xff);
    b.data[1] = (char)(header >> 8);
    if (askew)
        pf_buf_addc(&b, 'x');
    for (size_t i = 0; i < n_entries; i++)
        for (size_t k = 0; k < count(&entries[i]); k++) {
            float v = number(i, k);
            uint32_t u;

            memcpy(&u, &v, sizeof u);
            if (strcmp(entries[i].dtype, "BF16") == 0)
                pf_buf_add(&b, (char *)&u + 2, 2);
            else if (strcmp(entries[i].dtype, "F64") == 0)
                pf_buf_add(&b, &(double){ (double)v }, 8);
            else
                pf_buf_add(&b, &v, strcmp(entries[i].dtype, "F32") == 0 ? 4
                    : strcmp(entries[i].dtype, "I8") == 0 ? 1 : 2);
        }
    put("model.safetensors", b.data, b.len);
    pf_buf_fini(&b);
    snprintf(config, sizeof config, "{\"model_type\":\"gpt2\","
        "\"vocab_size\":%d,\"n_positions\":%d,\"n_embd\":%d,\"n_layer\":%d,"
        "\"n_inner\":%d%s%s}", V, P, C, L, F,
        strstr(members, "n_head") ? "" : ",\"n_head\":2", members);
    put("config.json", config, strlen(config));
}

static int
make_dir(void **ctx)
{
    (void)ctx;
    strcpy(dir + sizeof dir - 7, "XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int
remove_dir(void **ctx)
{
    static const char *const files[] = { "model.safetensors", "config.json",
        "model.safetensors.index.json" };
    char path[128];

    (void)ctx;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        unlink(path);
    }
    return rmdir(dir);
}

/* Opens it; its fingerprint into `print` unless NULL. */
static struct pf_model *
open_model(char print[17])
{
    struct pf_model *m;
    struct pf_err err = { PF_OK, "" };

    if (pf_model_open(&m, dir, &err))
        fail_msg("%s", err.msg);
    if (print)
        memcpy(print, m->fingerprint, 17);
    return m;
}

static void
check_fails(const char *a, const char *b)
{
    struct pf_model *m = (void *)dir;
    struct pf_err err = { PF_OK, "" };

    assert_int_equal(pf_model_open(&m, dir, &err), PF_EMODEL);
    assert_null(m);
    assert_int_equal(err.status, PF_EMODEL);
    if (!strstr(err.msg, a) || !strstr(err.msg, b))
        fail_msg("%s", err.msg);
}

/* That an address holds the tensor of that name. */
static void
check_floats(const float *v, const char *name)
{
    const struct entry *e = entry(name);

    assert_int_equal((uintptr_t)v % sizeof *v, 0);
    for (size_t k = 0; k < count(e); k++)
        assert_true(v[k] == number((size_t)(e - entries), k));
}

static void
check_linear(const struct pf_linear *l, const char *name, size_t in,
    size_t out)
{
    char full[128];

    assert_true(l->in == in && l->out == out && !l->out_in);
    assert_int_equal(l->type, PF_F32);
    sprintf(full, "%s.weight", name);
    check_floats(l->w, full);
    sprintf(full, "%s.bias", name);
    check_floats(l->bias, full);
}

static void
check_model(const struct pf_model *m, const char *prefix)
{
    char name[64];

    sprintf(name, "%swte.weight", prefix);
    check_floats(m->wte.w, name);
    sprintf(name, "%swpe.weight", prefix);
    check_floats(m->wpe.w, name);
#define NAME(part) (sprintf(name, "%sh.%d." part, prefix, l), name)
    for (int l = 0; l < L; l++) {
        const struct pf_block *b = &m->blocks[l];

        check_floats(b->ln1.gain, NAME("ln_1.weight"));
        check_floats(b->ln1.bias, NAME("ln_1.bias"));
        check_floats(b->ln2.gain, NAME("ln_2.weight"));
        check_floats(b->ln2.bias, NAME("ln_2.bias"));
        check_linear(&b->qkv[0], NAME("attn.c_attn"), C, 3 * C);
        check_linear(&b->proj, NAME("attn.c_proj"), C, C);
        check_linear(&b->fc, NAME("mlp.c_fc"), C, F);
        check_linear(&b->fc_proj, NAME("mlp.c_proj"), F, C);
    }
    sprintf(name, "%sln_f.weight", prefix);
    check_floats(m->ln_f.gain, name);
    sprintf(name, "%sln_f.bias", prefix);
    check_floats(m->ln_f.bias, name);
    assert_true(m->head.out_in && m->head.in == C && m->head.out == V);
}

static void
test_open(void **ctx)
{
    struct pf_model *m;

    (void)ctx;
    for (int askew = 0; askew < 2; askew++) {
        complete("");
        add("h.0.attn.bias", 1, 1); /* others are passed over */
        write_model("", askew);
        m = open_model(NULL);
        check_model(m, "");
        assert_ptr_equal(m->head.w, m->wte.w);
        assert_null(m->head.bias);
        pf_model_free(m);
        complete("transformer.");
        write_model(",\"tie_word_embeddings\":true", askew);
        m = open_model(NULL);
        check_model(m, "transformer.");
        assert_ptr_equal(m->head.w, m->wte.w);
        pf_model_free(m);
    }
    pf_model_free(NULL);
}

static void
test_head(void **ctx)
{
    struct pf_model *m;

    (void)ctx;
    for (int prefix = 0; prefix < 2; prefix++) {
        complete(prefix ? "transformer." : "");
        write_model(",\"tie_word_embeddings\":false", false);
        check_fails("lm_head.weight", "missing");
        add("lm_head.weight", V, C);
        write_model(",\"tie_word_embeddings\":false", false);
        m = open_model(NULL);
        check_model(m, prefix ? "transformer." : "");
        check_floats(m->head.w, "lm_head.weight");
        assert_null(m->head.bias);
        pf_model_free(m);
        add("lm_head.bias", V, 0);
        write_model(",\"tie_word_embeddings\":false", true);
        m = open_model(NULL);
        check_floats(m->head.w, "lm_head.weight");
        check_floats(m->head.bias, "lm_head.bias");
        pf_model_free(m);
        /* Tied, it is not looked at. */
        write_model("", false);
        m = open_model(NULL);
        assert_ptr_equal(m->head.w, m->wte.w);
        pf_model_free(m);
    }
}

/* Each tensor in turn missing, of another shape, of another type. */
static void
test_each_tensor(void **ctx)
{
    struct entry last;
    size_t n;

    (void)ctx;
    complete("");
    n = n_entries;
    for (size_t i = 0; i < n; i++) {
        char name[64];

        complete("");
        strcpy(name, entries[i].name);
        last = entries[--n_entries];
        if (i < n_entries)
            entries[i] = last;
        write_model("", false);
        check_fails(name, "missing");

        complete("");
        entry(name)->shape[0]++;
        write_model("", false);
        check_fails(name, "shape");

        complete("");
        entry(name)->ndim++;
        entry(name)->shape[entry(name)->ndim - 1] = 1;
        write_model("", false);
        check_fails(name, "shape");

        complete("");
        if (entry(name)->ndim == 2 && entry(name)->shape[0]
            != entry(name)->shape[1]) { /* turned */
            size_t rows = entry(name)->shape[0];

            entry(name)->shape[0] = entry(name)->shape[1];
            entry(name)->shape[1] = rows;
            write_model("", false);
            check_fails(name, "shape");
        }

        complete("");
        entry(name)->dtype = "F64";
        write_model("", false);
        check_fails(name, "F64");
        entry(name)->dtype = "I8";
        write_model("", false);
        check_fails(name, "I8");
    }
}

/* Vectors are widened, matrices stay as they lie. */
static void
test_types(void **ctx)
{
    struct pf_model *m;
    uint16_t bits;

    (void)ctx;
    complete("");
    for (size_t i = 0; i < n_entries; i++)
        entries[i].dtype = "BF16";
    for (int askew = 0; askew < 2; askew++) {
        write_model("", askew);
        m = open_model(NULL);
        assert_int_equal(m->wte.type, PF_BF16);
        assert_int_equal(m->wpe.type, PF_BF16);
        assert_int_equal(m->blocks[1].fc.type, PF_BF16);
        assert_int_equal((uintptr_t)m->blocks[1].fc.w % 2, 0);
        memcpy(&bits, m->wpe.w, sizeof bits);
        assert_int_equal(bits, 0x3f80); /* tensor 1, element 0 */
        assert_true(m->blocks[0].ln1.gain[0] == 2);
        assert_true(m->blocks[0].ln1.bias[0] == 3);
        assert_true(m->blocks[0].qkv[0].bias[0] == 5);
        pf_model_free(m);
    }
}

static void
test_fingerprint(void **ctx)
{
    static const char *const members[] = { "", ",\"n_head\":3",
        ",\"layer_norm_epsilon\":0.01", ",\"activation_function\":\"relu\"",
        ",\"scale_attn_weights\":false",
        ",\"scale_attn_by_inverse_layer_idx\":true" };
    enum { N = sizeof members / sizeof *members + 3 };
    char print[N][17], again[17];
    size_t n = 0;

    (void)ctx;
    complete("");
    for (; n < sizeof members / sizeof *members; n++) {
        write_model(members[n], false);
        pf_model_free(open_model(print[n]));
        pf_model_free(open_model(again));
        assert_string_equal(print[n], again);
        assert_int_equal(strlen(again), 16);
        assert_int_equal(strspn(again, "0123456789abcdef"), 16);
    }
    entry("h.1.ln_2.bias")->dtype = "BF16";
    write_model("", false);
    pf_model_free(open_model(print[n++]));
    complete(""); /* two vectors change their places, and so their numbers */
    strcpy(entry("h.0.ln_1.bias")->name, "x");
    strcpy(entry("h.1.ln_1.bias")->name, "h.0.ln_1.bias");
    strcpy(entry("x")->name, "h.1.ln_1.bias");
    write_model("", false);
    pf_model_free(open_model(print[n++]));
    complete("transformer.");
    write_model("", false);
    pf_model_free(open_model(print[n++]));
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(print[i], print[k]) == 0)
                fail_msg("%zu and %zu have one fingerprint", i, k);
}

static void
test_bad(void **ctx)
{
    char path[128];

    (void)ctx;
    complete("");
    write_model(",\"n_embd\":7", false);
    check_fails("config.json", "n_embd");
    write_model(",\"add_cross_attention\":true", false);
    check_fails("config.json", "cross");
    write_model("", false);
    put("model.safetensors", "x", 1);
    check_fails("model.safetensors", "");
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    unlink(path);
    check_fails("model.safetensors", "");
    put("config.json", "{\"model_type\":\"llama\"}", 22);
    check_fails("config.json", "llama");
}

/* The bundled model. */
static void
test_fairy(void **ctx)
{
    struct pf_model *m;
    struct pf_err err;

    (void)ctx;
    if (pf_model_open(&m, PF_TEST_VOCAB "/fairy", &err))
        fail_msg("%s", err.msg);
    assert_int_equal(m->head.out, 4096);
    assert_int_equal(m->head.in, 160);
    assert_int_equal(m->blocks[5].qkv[0].out, 480);
    assert_ptr_equal(m->head.w, m->wte.w);
    pf_model_free(m);
}

/* --- Where names lead --- */

static void
check_found(const char *name, const char *want)
{
    struct pf_buf b = PF_BUF_INIT;
    struct pf_err err = { PF_OK, "" };

    if (pf_model_find(&b, name, &err))
        fail_msg("%s: %s", name, err.msg);
    assert_string_equal(b.data, want);
    pf_buf_fini(&b);
}

static void
check_lost(const char *name)
{
    struct pf_buf b = PF_BUF_INIT;
    struct pf_err err = { PF_OK, "" };

    assert_int_equal(pf_model_find(&b, name, &err), PF_EMODEL);
    assert_true(err.msg[0] && !strchr(err.msg, '\n'));
    pf_buf_fini(&b);
}

static void
test_find(void **ctx)
{
    static const char *const folders[] = { "hub", "hub/models--org--name",
        "hub/models--org--name/refs", "hub/models--org--name/snapshots",
        "hub/models--org--name/snapshots/abc123" };
    char path[256], want[256];
    struct pf_buf b = PF_BUF_INIT;

    (void)ctx;
    check_found(dir, dir);
    check_found("/tmp", "/tmp");
    check_found(".", ".");
    assert_int_equal(pf_model_find(&b, "fairy", NULL), PF_OK);
    assert_non_null(strstr(b.data, "vocab/fairy"));
    pf_buf_fini(&b);
    check_lost("");
    check_lost("no-such-model");
    check_lost("../fairy");
    check_lost("org/name/more");
    check_lost("/no/such");
    check_lost("model.gguf");
    /* The hub's cache, by each variable that may name it. */
    snprintf(path, sizeof path, "%s/hub", dir);
    setenv("HF_HUB_CACHE", path, 1);
    check_lost("org/name");
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, folders[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    check_lost("org/name"); /* no refs/main */
    put("hub/models--org--name/refs/main", "zzz", 3);
    check_lost("org/name"); /* names no snapshot */
    put("hub/models--org--name/refs/main", "abc123\n", 7);
    snprintf(want, sizeof want, "%s/hub/models--org--name/snapshots/abc123",
        dir);
    check_found("org/name", want);
    check_lost("org/other");
    check_lost("name");
    unsetenv("HF_HUB_CACHE");
    setenv("HF_HOME", dir, 1);
    check_found("org/name", want);
    unsetenv("HF_HOME");
    setenv("HOME", dir, 1);
    check_lost("org/name");
    snprintf(path, sizeof path, "%s/hub/models--org--name/refs/main", dir);
    unlink(path);
    for (size_t i = sizeof folders / sizeof *folders; i-- > 0;) {
        snprintf(path, sizeof path, "%s/%s", dir, folders[i]);
        rmdir(path);
    }
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_dir, remove_dir)
    const struct CMUnitTest tests[] = {
        TEST(test_open),
        TEST(test_head),
        TEST(test_each_tensor),
        TEST(test_types),
        TEST(test_fingerprint),
        TEST(test_bad),
        cmocka_unit_test(test_fairy),
        TEST(test_find),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
