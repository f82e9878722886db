/*
 * Keys and values as records and back: what is held, under the names and
 * shapes of the taps, and what does not fit is refused by name.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <pipeformer/kv-record.h>

enum { LAYERS = 3, H = 2, D = 3, C = H * D, T = 19 };

static const size_t layers[LAYERS] = { 4, 0, 2 };
static const struct pf_kv_plan plan = { layers, LAYERS, H };

/* All small whole numbers, so that every type has them. */
static float
number(size_t slot, size_t pos, size_t i, bool value)
{
    return (float)((slot * 29 + pos * 7 + i * 2 + value) % 128) - 64;
}

static struct pf_kv_cache *
new_cache(bool f16)
{
    struct pf_kv_cache *c;

    assert_int_equal(pf_kv_cache_new(&c, LAYERS, C, 1 << 20, NULL), PF_OK);
    pf_kv_cache_f16(c, f16);
    return c;
}

/* A sequence of T positions, begun at slot `tag`. */
static const struct pf_kv *
add(struct pf_kv_cache *c, const char *key, size_t tag)
{
    struct pf_kv *kv;
    float k[C], v[C];

    assert_int_equal(pf_kv_begin(c, &kv, key, strlen(key), NULL, 0, 0, T, tag,
        NULL), PF_OK);
    for (size_t slot = tag; slot < LAYERS; slot++)
        for (size_t pos = 0; pos < T; pos++) {
            for (size_t i = 0; i < C; i++) {
                k[i] = number(slot, pos, i, false);
                v[i] = number(slot, pos, i, true);
            }
            pf_kv_store(c, kv, slot, pos, H, k, v);
        }
    pf_kv_idle(c);
    return kv;
}

static void
make(struct pf_record *rec, struct pf_kv_cache *c, const struct pf_kv *kv)
{
    pf_record_clear(rec);
    assert_int_equal(pf_kv_to_record(rec, c, kv, &plan, "abc", NULL), PF_OK);
}

static void
check_tensor(const struct pf_record *rec, size_t slot, bool value,
    enum pf_dtype type)
{
    const struct pf_tensor *t;
    char name[40];
    float x[T * C];

    snprintf(name, sizeof name, "blocks.%zu.attn.%c", layers[slot],
        value ? 'v' : 'k');
    t = pf_record_tensor(rec, name);
    assert_non_null(t);
    assert_int_equal(t->dtype, type);
    assert_int_equal(t->ndim, 3);
    assert_int_equal(t->shape[0], T);
    assert_int_equal(t->shape[1], H);
    assert_int_equal(t->shape[2], D);
    assert_true(pf_to_f32(x, t->data, type, T * C));
    for (size_t i = 0; i < T * C; i++)
        assert_true(x[i] == number(slot, i / C, i % C, value));
}

/* To a record, and from that into a cache of either type. */
static void
test_there_and_back(void **ctx)
{
    (void)ctx;
    for (int from = 0; from < 2; from++)
        for (int to = 0; to < 2; to++)
            for (size_t tag = 0; tag < LAYERS; tag++) {
                struct pf_kv_cache *a = new_cache(from), *b = new_cache(to);
                struct pf_record rec = PF_RECORD_INIT;
                const struct pf_kv *kv = add(a, "i-7", tag);

                make(&rec, a, kv);
                assert_int_equal(rec.n_tensors, 2 * (LAYERS - tag));
                assert_string_equal(pf_record_field(&rec, "seq")->text, "-7");
                assert_string_equal(pf_record_field(&rec, "model")->text,
                    "\"abc\"");
                assert_string_equal(pf_record_field(&rec, "pos")->text, "0");
                for (size_t slot = tag; slot < LAYERS; slot++) {
                    check_tensor(&rec, slot, false, from ? PF_F16 : PF_F32);
                    check_tensor(&rec, slot, true, from ? PF_F16 : PF_F32);
                }
                assert_int_equal(pf_kv_from_record(b, &rec, &plan, NULL),
                    PF_OK);
                kv = pf_kv_find(b, "i-7", 3);
                assert_non_null(kv);
                assert_int_equal(kv->len, T);
                assert_int_equal(kv->tag, tag);
                assert_false(kv->busy);
                make(&rec, b, kv);
                for (size_t slot = tag; slot < LAYERS; slot++) {
                    check_tensor(&rec, slot, false, to ? PF_F16 : PF_F32);
                    check_tensor(&rec, slot, true, to ? PF_F16 : PF_F32);
                }
                pf_record_fini(&rec);
                pf_kv_cache_free(a);
                pf_kv_cache_free(b);
            }
}

/* Names of any kind come back as what they were. */
static void
test_names(void **ctx)
{
    static const char *const keys[] = { "", "i0", "i12", "s", "s12",
        "sa \"b\"\n\\", "s\xc3\xa9" };
    struct pf_record rec = PF_RECORD_INIT;

    (void)ctx;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct pf_kv_cache *a = new_cache(false), *b = new_cache(false);

        make(&rec, a, add(a, keys[i], 0));
        assert_int_equal(pf_record_has(&rec, "seq"), keys[i][0] != 0);
        assert_int_equal(pf_kv_from_record(b, &rec, &plan, NULL), PF_OK);
        assert_non_null(pf_kv_find(b, keys[i], strlen(keys[i])));
        pf_kv_cache_free(a);
        pf_kv_cache_free(b);
    }
    pf_record_fini(&rec);
}

/* A tensor of other numbers takes the place of one. */
static void
put(struct pf_record *rec, const char *name, enum pf_dtype type,
    unsigned ndim, size_t n, size_t heads, size_t width)
{
    size_t shape[4] = { n, heads, width, 1 }, bytes;
    struct pf_tensor *t;

    pf_record_drop(rec, name);
    assert_int_equal(pf_shape_size(shape, ndim, type, NULL, &bytes, NULL),
        PF_OK);
    t = pf_record_put(rec, name, type, ndim, shape, NULL);
    assert_non_null(t);
    memset((void *)t->data, 0, bytes);
}

static void
refused(const struct pf_record *rec, enum pf_status status,
    const char *message)
{
    struct pf_kv_cache *c = new_cache(false);
    struct pf_err err;

    assert_int_equal(pf_kv_from_record(c, rec, &plan, &err), status);
    if (!strstr(err.msg, message))
        fail_msg("'%s' is not in '%s'", message, err.msg);
    pf_kv_cache_free(c);
}

static void
test_refused(void **ctx)
{
    struct pf_kv_cache *c = new_cache(false);
    struct pf_record rec = PF_RECORD_INIT, none = PF_RECORD_INIT;
    const struct pf_kv *kv = add(c, "i1", 0);
    const float bad[] = { INFINITY, -INFINITY, NAN };

    (void)ctx;
    refused(&none, PF_ESHAPE, "no blocks.4.attn.k");
    make(&rec, c, kv);
    pf_record_drop(&rec, "blocks.2.attn.k");
    refused(&rec, PF_ESHAPE, "no blocks.2.attn.k");
    make(&rec, c, kv);
    pf_record_drop(&rec, "blocks.4.attn.k"); /* of the first, its v is there */
    refused(&rec, PF_ESHAPE, "no blocks.4.attn.k");
    make(&rec, c, kv);
    put(&rec, "blocks.2.attn.v", PF_F32, 3, T + 1, H, D);
    refused(&rec, PF_ESHAPE, "blocks.2.attn.v: has the shape [20, 2, 3]");
    put(&rec, "blocks.2.attn.v", PF_F32, 3, T, D, H);
    refused(&rec, PF_ESHAPE, "[T, 2, 3]");
    put(&rec, "blocks.2.attn.v", PF_F32, 2, T, C, 1);
    refused(&rec, PF_ESHAPE, "[T, 2, 3]");
    put(&rec, "blocks.2.attn.v", PF_F64, 3, T, H, D);
    refused(&rec, PF_EFORMAT, "blocks.2.attn.v: is of type F64");
    for (size_t i = 0; i < 3; i++) {
        put(&rec, "blocks.2.attn.v", PF_F32, 3, T, H, D);
        ((float *)pf_record_tensor(&rec, "blocks.2.attn.v")->data)[T * C - 1]
            = bad[i];
        refused(&rec, PF_ERANGE, "blocks.2.attn.v: an infinity or NaN in row "
            "18");
    }
    make(&rec, c, kv);
    assert_int_equal(pf_record_set(&rec, "heads", "[1,0]", 5, NULL), PF_OK);
    refused(&rec, PF_EFORMAT, "heads: ");
    assert_int_equal(pf_record_set(&rec, "heads", "[0,1]", 5, NULL), PF_OK);
    assert_int_equal(pf_record_set_i64(&rec, "pos", 1, NULL), PF_OK);
    refused(&rec, PF_ESTATE, "holds 0 positions");
    assert_int_equal(pf_record_set(&rec, "pos", "0.5", 3, NULL), PF_OK);
    refused(&rec, PF_EFORMAT, "pos");
    pf_record_fini(&rec);
    pf_kv_cache_free(c);
}

/* BF16; a piece behind what is held; a fork; no positions at all. */
static void
test_pieces(void **ctx)
{
    struct pf_kv_cache *a = new_cache(false), *b = new_cache(true);
    struct pf_record rec = PF_RECORD_INIT;
    const struct pf_kv *kv = add(a, "i1", 0);

    (void)ctx;
    make(&rec, a, kv);
    assert_int_equal(pf_kv_from_record(b, &rec, &plan, NULL), PF_OK);
    put(&rec, "blocks.2.attn.v", PF_BF16, 3, T, H, D);
    ((uint16_t *)pf_record_tensor(&rec, "blocks.2.attn.v")->data)[0] = 0x3f80;
    assert_int_equal(pf_record_set_i64(&rec, "pos", 17, NULL), PF_OK);
    assert_int_equal(pf_kv_from_record(b, &rec, &plan, NULL), PF_OK);
    kv = pf_kv_find(b, "i1", 2);
    assert_int_equal(kv->len, 17 + T);
    make(&rec, b, kv);
    assert_true(pf_f16_to_f32(((const uint16_t *)pf_record_tensor(&rec,
        "blocks.2.attn.v")->data)[17 * C]) == 1);
    pf_record_clear(&rec);
    for (size_t i = 0; i < LAYERS; i++)
        for (int value = 0; value < 2; value++) {
            char name[40];

            snprintf(name, sizeof name, "blocks.%zu.attn.%c", layers[i],
                value ? 'v' : 'k');
            put(&rec, name, PF_F32, 3, 0, H, D);
        }
    assert_int_equal(pf_kv_from_record(b, &rec, &plan, NULL), PF_OK);
    assert_null(pf_kv_find(b, "", 0));
    assert_int_equal(pf_record_set(&rec, "fork", "1", 1, NULL), PF_OK);
    assert_int_equal(pf_record_set_i64(&rec, "pos", 18, NULL), PF_OK);
    assert_int_equal(pf_kv_from_record(b, &rec, &plan, NULL), PF_OK);
    assert_int_equal(pf_kv_find(b, "", 0)->len, 18);
    pf_record_fini(&rec);
    pf_kv_cache_free(a);
    pf_kv_cache_free(b);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_pieces),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
