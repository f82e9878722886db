/* Model directories, written to a temporary one by the test. */
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

#include <pipeformer/weights.h>

static char dir[] = "/tmp/pf-weights-XXXXXX";

static const char *const files[] = { "model.safetensors",
    "model.safetensors.index.json", "a.safetensors", "b.safetensors",
    "c.safetensors" };

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
    char path[128];

    (void)ctx;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        if (unlink(path))
            rmdir(path);
    }
    return rmdir(dir);
}

static void
put_bytes(const char *name, const char *bytes, size_t n)
{
    char path[128];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* A safetensors file of this header, with bytes 0, 1, 2, ... behind it. */
static void
put(const char *name, const char *header, size_t data)
{
    char bytes[2048] = { 0 };
    size_t n = strlen(header);

    bytes[0] = (char)(n & 0xff);
    bytes[1] = (char)(n >> 8);
    memcpy(bytes + 8, header, n);
    for (size_t i = 0; i < data; i++)
        bytes[8 + n + i] = (char)i;
    put_bytes(name, bytes, 8 + n + data);
}

#define ONE(name) "{\"" name "\":{\"dtype\":\"U8\",\"shape\":[2]," \
    "\"data_offsets\":[0,2]}}"

static void
check_fails(enum pf_status want, const char *word)
{
    struct pf_weights *w = (void *)dir;
    struct pf_err err = { PF_OK, "" };
    enum pf_status st = pf_weights_open(&w, dir, &err);

    if (st != want || !strstr(err.msg, word))
        fail_msg("status %d, %s", st, err.msg);
    assert_null(w);
}

static void
test_one_file(void **ctx)
{
    struct pf_weights *w;
    const struct pf_tensor *t;
    size_t bytes;

    (void)ctx;
    put("model.safetensors", "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"z\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
        "\"a.b\":{\"dtype\":\"F16\",\"shape\":[1,2],\"data_offsets\":[3,7]},"
        "\"m\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[7,7]}}", 7);
    assert_int_equal(pf_weights_open(&w, dir, NULL), PF_OK);
    t = pf_weights_find(w, "a.b");
    assert_non_null(t);
    assert_string_equal(t->name, "a.b");
    assert_int_equal(t->dtype, PF_F16);
    assert_true(t->ndim == 2 && t->shape[0] == 1 && t->shape[1] == 2);
    assert_memory_equal(t->data, "\3\4\5\6", 4);
    t = pf_weights_find(w, "z");
    assert_memory_equal(t->data, "\0\1\2", 3);
    assert_null(pf_weights_find(w, "a"));
    assert_null(pf_weights_find(w, ""));
    assert_null(pf_weights_find(w, "__metadata__"));
    /* In order of name. */
    assert_string_equal(pf_weights_at(w, 0)->name, "a.b");
    assert_string_equal(pf_weights_at(w, 1)->name, "m");
    assert_string_equal(pf_weights_at(w, 2)->name, "z");
    assert_null(pf_weights_at(w, 3));
    assert_non_null(strstr(pf_weights_file(w, 0, &bytes),
        "/model.safetensors"));
    assert_int_equal(bytes, 8 + 194 + 7);
    assert_null(pf_weights_file(w, 1, &bytes));
    pf_weights_free(w);
    pf_weights_free(NULL);
    put("model.safetensors", "{}      ", 0);
    assert_int_equal(pf_weights_open(&w, dir, NULL), PF_OK);
    assert_null(pf_weights_find(w, "x"));
    assert_null(pf_weights_at(w, 0));
    pf_weights_free(w);
}

static void
test_bad_files(void **ctx)
{
    char path[128];

    (void)ctx;
    check_fails(PF_EMODEL, "model.safetensors");
    put_bytes("model.safetensors", "", 0);
    check_fails(PF_EMODEL, "model.safetensors");
    put_bytes("model.safetensors", "\2\0\0\0\0\0\0\0{", 9);
    check_fails(PF_EMODEL, "model.safetensors");
    put_bytes("model.safetensors", "\3\0\0\0\0\0\0\0{}", 10);
    check_fails(PF_EMODEL, "header");
    put_bytes("model.safetensors", "\2\0\0\0\0\0\0\1{}", 10);
    check_fails(PF_EMODEL, "header");
    put_bytes("model.safetensors", "not safetensors at all", 22);
    check_fails(PF_EMODEL, "model.safetensors");
    put("model.safetensors", "{\"a\":1}", 0);
    check_fails(PF_EMODEL, "model.safetensors");
    put("model.safetensors", ONE("a"), 1); /* short, and long */
    check_fails(PF_EMODEL, "1 bytes of data");
    check_fails(PF_EMODEL, "before the end of tensor a");
    put("model.safetensors", "{\"p\":{\"dtype\":\"U8\",\"shape\":[2],"
        "\"data_offsets\":[2,4]},\"q\":{\"dtype\":\"U8\",\"shape\":[2],"
        "\"data_offsets\":[0,2]},\"r\":{\"dtype\":\"U8\",\"shape\":[2],"
        "\"data_offsets\":[4,6]}}", 3);
    check_fails(PF_EMODEL, "before the end of tensor p");
    put("model.safetensors", ONE("a"), 3);
    check_fails(PF_EMODEL, "3 bytes of data");
    check_fails(PF_EMODEL, "of no tensor");
    put("model.safetensors", "{\"a\":x}", 0);
    check_fails(PF_EMODEL, "(byte 5 of the header)");
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    check_fails(PF_EMODEL, "model.safetensors");
}

static void
put_index(const char *text)
{
    put_bytes("model.safetensors.index.json", text, strlen(text));
}

/* `one` in a, `two` and `three` in b. */
static void
put_shards(void)
{
    put("a.safetensors", ONE("one"), 2);
    put("b.safetensors", "{\"two\":{\"dtype\":\"I8\",\"shape\":[1],"
        "\"data_offsets\":[0,1]},\"three\":{\"dtype\":\"I8\",\"shape\":[2],"
        "\"data_offsets\":[1,3]}}", 3);
}

static void
test_shards(void **ctx)
{
    struct pf_weights *w;
    size_t bytes, n = 0;

    (void)ctx;
    put_shards();
    put_index("{\"metadata\":{\"total_size\":5},\"weight_map\":{"
        "\"one\":\"a.safetensors\",\"two\":\"b.safetensors\","
        "\"three\":\"b.safetensors\"}}");
    assert_int_equal(pf_weights_open(&w, dir, NULL), PF_OK);
    assert_memory_equal(pf_weights_find(w, "one")->data, "\0\1", 2);
    assert_memory_equal(pf_weights_find(w, "two")->data, "\0", 1);
    assert_memory_equal(pf_weights_find(w, "three")->data, "\1\2", 2);
    assert_string_equal(pf_weights_at(w, 0)->name, "one");
    assert_string_equal(pf_weights_at(w, 1)->name, "three");
    while (pf_weights_file(w, n, &bytes))
        n++;
    assert_int_equal(n, 2);
    assert_int_equal(pf_weights_check(w, dir, NULL), PF_OK);
    pf_weights_free(w);
}

/* An index that opens, but is wrong about a tensor. */
static void
test_check(void **ctx)
{
    static const struct {
        const char *map, *word;
    } bad[] = {
        { "\"one\":\"a.safetensors\",\"two\":\"b.safetensors\"",
            "tensor three of b.safetensors is not listed" },
        { "\"one\":\"b.safetensors\",\"two\":\"a.safetensors\","
            "\"three\":\"b.safetensors\"",
            "tensor one is in a.safetensors" },
        { "\"one\":\"a.safetensors\",\"two\":\"b.safetensors\","
            "\"three\":\"b.safetensors\",\"four\":\"b.safetensors\"",
            "tensor four is in no file" },
        { "\"one\":\"a.safetensors\",\"two\":\"b.safetensors\","
            "\"two\":\"b.safetensors\"", "tensor two stands twice" },
    };
    struct pf_weights *w;
    struct pf_err err;
    char text[400];

    (void)ctx;
    put_shards();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(text, sizeof text, "{\"weight_map\":{%s}}", bad[i].map);
        put_index(text);
        assert_int_equal(pf_weights_open(&w, dir, &err), PF_OK);
        assert_int_equal(pf_weights_check(w, dir, &err), PF_EMODEL);
        if (!strstr(err.msg, bad[i].word))
            fail_msg("%s", err.msg);
        pf_weights_free(w);
    }
    put("model.safetensors", ONE("one"), 2); /* goes before an index */
    assert_int_equal(pf_weights_open(&w, dir, &err), PF_OK);
    assert_int_equal(pf_weights_check(w, dir, &err), PF_OK);
    pf_weights_free(w);
}

static void
test_bad_shards(void **ctx)
{
    (void)ctx;
    put("a.safetensors", ONE("one"), 2);
    put("b.safetensors", ONE("one"), 2);
    put_index("{");
    check_fails(PF_EMODEL, "index.json");
    put_index("[]");
    check_fails(PF_EMODEL, "index.json");
    put_index("{}");
    check_fails(PF_EMODEL, "weight_map");
    put_index("{\"weight_map\":[]}");
    check_fails(PF_EMODEL, "weight_map");
    put_index("{\"weight_map\":{\"one\":1}}");
    check_fails(PF_EMODEL, "one");
    put_index("{\"weight_map\":{\"one\":\"../a.safetensors\"}}");
    check_fails(PF_EMODEL, "one");
    put_index("{\"weight_map\":{\"one\":\"/etc/passwd\"}}");
    check_fails(PF_EMODEL, "one");
    put_index("{\"weight_map\":{\"one\":\"c.safetensors\"}}");
    check_fails(PF_EMODEL, "c.safetensors");
    put_index("{\"weight_map\":{\"one\":\"..\"}}");
    check_fails(PF_EMODEL, "..");
    put_index("{\"weight_map\":{\"one\":\"a.safetensors\","
        "\"two\":\"b.safetensors\"}}");
    check_fails(PF_EMODEL, "one");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_file, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_bad_files, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_shards, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_check, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_bad_shards, make_dir,
            remove_dir),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
