/*
 * Records in memory and on the wire.  Streams go through a pipe in two parts,
 * cut at every byte: what comes out is the same, and pf_reader_ready tells
 * whether the next record is whole.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pipeformer/json.h>
#include <pipeformer/record.h>

/* --- Helpers --- */

static enum pf_status
parse_as(struct pf_record *rec, const char *line, bool all,
    struct pf_err *err)
{
    struct pf_reader r = PF_READER_INIT;
    enum pf_status st;

    r.all_tensors = all;
    pf_record_clear(rec);
    st = pf_record_parse(&r, rec, line, strlen(line), err);
    pf_reader_fini(&r);
    return st;
}

static void
parse(struct pf_record *rec, const char *line)
{
    struct pf_err err = { PF_OK, "" };

    if (parse_as(rec, line, false, &err))
        fail_msg("%s: %s", line, err.msg);
}

static void
check_field(const struct pf_record *rec, const char *name, const char *text)
{
    const struct pf_field *f = pf_record_field(rec, name);

    assert_non_null(f);
    assert_int_equal(f->len, strlen(text));
    assert_memory_equal(f->text, text, f->len);
}

static const struct pf_tensor *
check_tensor(const struct pf_record *rec, const char *name,
    enum pf_dtype type, unsigned ndim, size_t a, size_t b)
{
    const struct pf_tensor *t = pf_record_tensor(rec, name);

    assert_non_null(t);
    assert_string_equal(t->name, name);
    assert_int_equal(t->dtype, type);
    assert_int_equal(t->ndim, ndim);
    if (ndim > 0)
        assert_int_equal(t->shape[0], a);
    if (ndim > 1)
        assert_int_equal(t->shape[1], b);
    return t;
}

static void
check_printed(const struct pf_record *rec, const char *line)
{
    struct pf_buf b = PF_BUF_INIT;

    assert_int_equal(pf_record_print(&b, rec, NULL), PF_OK);
    pf_buf_addc(&b, '\0');
    assert_string_equal(b.data, line);
    pf_buf_fini(&b);
}

/* --- NDJSON --- */

static void
test_fields(void **ctx)
{
    static const char line[] = "{\"seq\":7,\"x\":1.50,\"n\":"
        "123456789012345678901234567890,\"o\":{\"a\": [1, 2] },\"l\":[1,\"b\"],"
        "\"e\":[],\"\\u006bey\":\"\\u0041\",\"t\":true,\"z\":null,"
        "\"half\":\"\\ud800\",\"\":0}";
    struct pf_record rec = PF_RECORD_INIT;
    struct pf_buf b = PF_BUF_INIT;

    (void)ctx;
    parse(&rec, line);
    assert_int_equal(rec.n_fields, 11);
    assert_int_equal(rec.n_tensors, 0);
    check_field(&rec, "x", "1.50");
    check_field(&rec, "n", "123456789012345678901234567890");
    check_field(&rec, "o", "{\"a\": [1, 2] }");
    check_field(&rec, "e", "[]");
    check_field(&rec, "key", "\"\\u0041\"");
    check_field(&rec, "", "0");
    assert_null(pf_record_field(&rec, "KEY"));
    assert_true(pf_record_has(&rec, "t"));
    assert_false(pf_record_has(&rec, "u"));
    /* Space between the members goes, the rest is kept as it came. */
    assert_int_equal(pf_record_print(&b, &rec, NULL), PF_OK);
    pf_buf_addc(&b, '\0');
    assert_int_equal(strncmp(b.data, line, strlen(line)), 0);
    assert_string_equal(b.data + strlen(line), "\n");
    pf_buf_fini(&b);
    parse(&rec, " { \"a\" : 1 , \"b\" : [ 1 ] } \r");
    check_printed(&rec, "{\"a\":1,\"b\":[ 1 ]}\n");
    parse(&rec, "{}");
    check_printed(&rec, "{}\n");
    pf_record_fini(&rec);
}

static void
test_tensors(void **ctx)
{
    struct pf_record rec = PF_RECORD_INIT;
    const struct pf_tensor *t;
    const float *f;
    float v[6];

    (void)ctx;
    parse(&rec, "{\"ids\":[1,2,-3],\"segments\":[0],\"offsets\":[[0,5],"
        "[5,9000000000]],\"hidden\":[[1,2.5,-0],[null,1e999,-1e999]],"
        "\"memory\":[[1e39]],\"logits\":[1.797e308],\"attn\":[[[[1]]]],"
        "\"q\":[[1]],\"k\":[[2]],\"v\":[[3]],\"context\":[[4]],"
        "\"mask\":[[true,false]],\"embedding\":[0.1]}");
    assert_int_equal(rec.n_fields, 0);
    assert_int_equal(rec.n_tensors, 13);
    t = check_tensor(&rec, "ids", PF_I32, 1, 3, 0);
    assert_memory_equal(t->data, ((int32_t[]){ 1, 2, -3 }), 12);
    check_tensor(&rec, "segments", PF_I32, 1, 1, 0);
    t = check_tensor(&rec, "offsets", PF_I64, 2, 2, 2);
    assert_memory_equal(t->data,
        ((int64_t[]){ 0, 5, 5, INT64_C(9000000000) }), 32);
    t = check_tensor(&rec, "hidden", PF_F32, 2, 2, 3);
    memcpy(v, t->data, sizeof v);
    assert_true(v[0] == 1 && v[1] == 2.5f && v[2] == 0 && signbit(v[2]));
    assert_true(isnan(v[3]) && v[4] == INFINITY && v[5] == -INFINITY);
    f = check_tensor(&rec, "memory", PF_F32, 2, 1, 1)->data;
    assert_true(*f == INFINITY);
    f = check_tensor(&rec, "logits", PF_F32, 1, 1, 0)->data;
    assert_true(*f == INFINITY);
    check_tensor(&rec, "attn", PF_F32, 4, 1, 1);
    t = check_tensor(&rec, "mask", PF_BOOL, 2, 1, 2);
    assert_memory_equal(t->data, "\1\0", 2);
    f = check_tensor(&rec, "embedding", PF_F32, 1, 1, 0)->data;
    assert_true(*f == 0.1f);
    for (size_t i = 0; i < rec.n_tensors; i++)
        assert_int_equal((uintptr_t)rec.tensors[i].data % 8, 0);

    parse(&rec, "{\"mask\":[0,-1e999],\"ids\":[],\"hidden\":[[],[]],"
        "\"logits\":[[[]]],\"attn\":[[[[[[[[1,2]]]]]]]]}");
    check_tensor(&rec, "mask", PF_F32, 1, 2, 0);
    check_tensor(&rec, "ids", PF_I32, 1, 0, 0);
    check_tensor(&rec, "hidden", PF_F32, 2, 2, 0);
    t = check_tensor(&rec, "logits", PF_F32, 3, 1, 1);
    assert_int_equal(t->shape[2], 0);
    t = check_tensor(&rec, "attn", PF_F32, 8, 1, 1);
    assert_int_equal(t->shape[7], 2);
    check_printed(&rec, "{\"mask\":[0,-1e999],\"ids\":[],\"hidden\":[[],[]],"
        "\"logits\":[[[]]],\"attn\":[[[[[[[[1,2]]]]]]]]}\n");
    /* A number is an array without axes. */
    parse(&rec, "{\"hidden\":0.5,\"ids\":7,\"mask\":true,\"q\":null}");
    check_tensor(&rec, "hidden", PF_F32, 0, 0, 0);
    check_tensor(&rec, "ids", PF_I32, 0, 0, 0);
    check_tensor(&rec, "mask", PF_BOOL, 0, 0, 0);
    check_printed(&rec, "{\"hidden\":0.5,\"ids\":7,\"mask\":true,"
        "\"q\":null}\n");
    pf_record_fini(&rec);
}

/* What a tensor's name promises and its value does not keep, with a word of
 * what is said. */
static void
test_bad_tensors(void **ctx)
{
    static const struct {
        const char *line, *word;
        enum pf_status st;
    } bad[] = {
        { "{\"hidden\":[[1,2],[3]]}", "hidden: rows of 2 and of 1", PF_ESHAPE },
        { "{\"hidden\":[[1],[2,3]]}", "hidden: rows of 1 and of 2", PF_ESHAPE },
        { "{\"hidden\":[[],[1]]}", "hidden: rows", PF_ESHAPE },
        { "{\"hidden\":[[1],[]]}", "hidden: rows", PF_ESHAPE },
        { "{\"hidden\":[[[1]],[[1],[2]]]}", "hidden: rows", PF_ESHAPE },
        { "{\"hidden\":[[[1]],[]]}", "hidden", PF_ESHAPE },
        { "{\"hidden\":[[],[[]]]}", "hidden", PF_ESHAPE },
        { "{\"hidden\":[[[]],[]]}", "hidden", PF_ESHAPE },
        { "{\"hidden\":[1,[2]]}", "hidden: an array among", PF_ESHAPE },
        { "{\"hidden\":[[1],2]}", "hidden: a number among", PF_ESHAPE },
        { "{\"hidden\":[[[1]],[2]]}", "hidden: a number among", PF_ESHAPE },
        { "{\"hidden\":[[[[[[[[[1]]]]]]]]]}", "hidden: more than 8",
            PF_ESHAPE },
        { "{\"ids\":1.5}", "ids: 1.5", PF_EFORMAT },
        { "{\"hidden\":nil}", "hidden", PF_EFORMAT },
        { "{\"hidden\":\"x\"}", "hidden", PF_EFORMAT },
        { "{\"hidden\":{}}", "hidden", PF_EFORMAT },
        { "{\"hidden\":[\"1\"]}", "hidden", PF_EFORMAT },
        { "{\"hidden\":[1,true]}", "hidden: a boolean among", PF_EFORMAT },
        { "{\"hidden\":[[1],[true]]}", "hidden: a boolean among",
            PF_EFORMAT },
        { "{\"mask\":[true,1]}", "mask: a number among", PF_EFORMAT },
        { "{\"mask\":[true,null]}", "mask", PF_EFORMAT },
        { "{\"ids\":[1.0]}", "ids: 1.0", PF_EFORMAT },
        { "{\"ids\":[1e2]}", "ids: 1e2", PF_EFORMAT },
        { "{\"ids\":[null]}", "ids", PF_EFORMAT },
        { "{\"ids\":[true]}", "ids: a boolean", PF_EFORMAT },
        { "{\"ids\":[2147483648]}", "ids: 2147483648", PF_ERANGE },
        { "{\"ids\":[-2147483649]}", "ids: -2147483649", PF_ERANGE },
        { "{\"offsets\":[9223372036854775808]}", "offsets: 922", PF_ERANGE },
        { "{\"hidden\":[1,]}", "hidden", PF_EFORMAT },
        { "{\"hidden\":[1 2]}", "hidden", PF_EFORMAT },
        { "{\"hidden\":[01]}", "hidden", PF_EFORMAT },
        /* names twice, however they are spelt */
        { "{\"a\":1,\"a\":1}", "\"a\" stands twice", PF_EFORMAT },
        { "{\"a\":1,\"\\u0061\":1}", "\"a\" stands twice", PF_EFORMAT },
        { "{\"a\":1,\"b\":2,\"a\":3}", "\"a\" stands twice",
            PF_EFORMAT },
        { "{\"ids\":[1],\"b\":2,\"ids\":[1]}", "\"ids\" stands twice",
            PF_EFORMAT },
        { "{\"x.y\":1,\"x.y\":[1]}", "\"x.y\" stands twice", PF_EFORMAT },
        { "{\"a\\u0000\":1}", "U+0000", PF_EFORMAT },
        /* no record */
        { "[]", "JSON object", PF_EFORMAT },
        { "1", "JSON object", PF_EFORMAT },
        { "hello", "JSON object", PF_EFORMAT },
        { "\"{}\"", "JSON object", PF_EFORMAT },
        { "{} {}", "", PF_EFORMAT }, { "{\"a\":1,}", "", PF_EFORMAT },
        { "{\"a\" 1}", "':' behind \"a\"", PF_EFORMAT }, { "{a:1}", "", PF_EFORMAT },
        { "{\"a\":tru}", "", PF_EFORMAT }, { "{\"a\":\"\xff\"}", "UTF-8",
            PF_EFORMAT },
        { "{\"a\":1", "ends inside", PF_EFORMAT },
        { "{", "ends inside", PF_EFORMAT },
        { "{\"a\":[1,", "ends inside", PF_EFORMAT },
        { "", "", PF_EFORMAT }, { " ", "", PF_EFORMAT },
    };
    struct pf_record rec = PF_RECORD_INIT;
    struct pf_err err;

    (void)ctx;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err.msg[0] = '\0';
        if (parse_as(&rec, bad[i].line, false, &err) != bad[i].st)
            fail_msg("%s", bad[i].line);
        assert_int_equal(err.status, bad[i].st);
        if (!strstr(err.msg, bad[i].word) || strchr(err.msg, '\n'))
            fail_msg("%s: %s", bad[i].line, err.msg);
    }
    pf_record_fini(&rec);
}

/* Dotted names are tensors where they can be. */
static void
test_dotted(void **ctx)
{
    struct pf_record rec = PF_RECORD_INIT;

    (void)ctx;
    parse(&rec, "{\"blocks.0.q\":[[1,16777216]],\"blocks.n\":[16777217],\"blocks.b\":[1,\"x\"],"
        "\"blocks.d\":[[1],[2,3]],\"blocks.f\":\"s\",\"blocks.h\":[true],\"blocks.j\":[],"
        "\"blocks.l\":[1,true],\"list\":[1,2],\"n.big\":[16777217, 1.0]}");
    check_tensor(&rec, "blocks.0.q", PF_F32, 2, 1, 2);
    check_tensor(&rec, "blocks.n", PF_I64, 1, 1, 0); /* what float32 would lose */
    check_field(&rec, "blocks.b", "[1,\"x\"]");
    check_field(&rec, "blocks.d", "[[1],[2,3]]");
    check_field(&rec, "blocks.f", "\"s\"");
    check_tensor(&rec, "blocks.h", PF_BOOL, 1, 1, 0);
    check_tensor(&rec, "blocks.j", PF_F32, 1, 0, 0);
    check_field(&rec, "blocks.l", "[1,true]");
    check_field(&rec, "list", "[1,2]");
    check_field(&rec, "n.big", "[16777217, 1.0]"); /* no activation */
    assert_int_equal(rec.n_fields + rec.n_tensors, 10);
    /* One that is no JSON is an error all the same. */
    assert_int_equal(parse_as(&rec, "{\"blocks.b\":[1,}", false, NULL),
        PF_EFORMAT);
    pf_record_fini(&rec);
}

static void
test_all_tensors(void **ctx)
{
    struct pf_record rec = PF_RECORD_INIT;
    const struct pf_tensor *t;

    (void)ctx;
    assert_int_equal(parse_as(&rec, "{\"a\":[1,2],\"b\":[[true],[false]],"
        "\"c\":[16777216,-16777216],\"d\":[1,16777217],"
        "\"e\":[-9223372036854775808],\"f\":[1.5,16777217],"
        "\"g\":[9223372036854775808],\"h\":[1,\"x\"],\"i\":[[1],[2,3]],"
        "\"j\":[],\"kk\":3,\"l\":[{}],\"m\":[null],\"ids\":[5],\"n\":[[[]]],"
        "\"o\":[-16777217],\"layers\":[0,1],\"heads\":[0]}", true, NULL), PF_OK);
    check_tensor(&rec, "a", PF_F32, 1, 2, 0);
    t = check_tensor(&rec, "b", PF_BOOL, 2, 2, 1);
    assert_memory_equal(t->data, "\1\0", 2);
    check_tensor(&rec, "c", PF_F32, 1, 2, 0);
    t = check_tensor(&rec, "d", PF_I64, 1, 2, 0);
    assert_memory_equal(t->data, ((int64_t[]){ 1, 16777217 }), 16);
    t = check_tensor(&rec, "e", PF_F32, 1, 1, 0); /* -2^63 is exact */
    assert_true(*(const float *)t->data == -0x1p63f);
    check_tensor(&rec, "f", PF_F32, 1, 2, 0);
    t = check_tensor(&rec, "g", PF_F32, 1, 1, 0);
    assert_true(*(const float *)t->data == 0x1p63f);
    check_field(&rec, "h", "[1,\"x\"]");
    check_field(&rec, "i", "[[1],[2,3]]");
    check_tensor(&rec, "j", PF_F32, 1, 0, 0);
    check_field(&rec, "kk", "3");
    check_field(&rec, "l", "[{}]");
    t = check_tensor(&rec, "m", PF_F32, 1, 1, 0);
    assert_true(isnan(*(const float *)t->data));
    check_tensor(&rec, "ids", PF_I32, 1, 1, 0);
    check_tensor(&rec, "n", PF_F32, 3, 1, 1);
    check_tensor(&rec, "o", PF_I64, 1, 1, 0);
    check_field(&rec, "layers", "[0,1]"); /* known to be metadata */
    check_field(&rec, "heads", "[0]");
    pf_record_fini(&rec);
}

/* --- Looks --- */

static void
check_seq(const char *line, const char *want, size_t len)
{
    struct pf_record rec = PF_RECORD_INIT;
    struct pf_buf key = PF_BUF_INIT;

    parse(&rec, line);
    assert_int_equal(pf_record_seq(&rec, "seq", &key, NULL), PF_OK);
    assert_int_equal(key.len, len);
    if (len)
        assert_memory_equal(key.data, want, len);
    pf_buf_fini(&key);
    pf_record_fini(&rec);
}

static void
test_seq(void **ctx)
{
    static const char *const bad[] = { "{\"seq\":null}", "{\"seq\":true}",
        "{\"seq\":1.0}", "{\"seq\":1e3}", "{\"seq\":[1]}", "{\"seq\":{}}",
        "{\"seq\":\"\\udc00\"}" };
    struct pf_record rec = PF_RECORD_INIT;
    struct pf_buf key = PF_BUF_INIT;
    struct pf_err err;

    (void)ctx;
    check_seq("{}", "", 0);
    check_seq("{\"seq\":1}", "i1", 2);
    check_seq("{\"seq\":\"1\"}", "s1", 2);
    check_seq("{\"seq\":-12}", "i-12", 4);
    check_seq("{\"seq\":0}", "i0", 2);
    check_seq("{\"seq\":-0}", "i0", 2);
    check_seq("{\"seq\":\"a\"}", "sa", 2);
    check_seq("{\"seq\":\"\\u0061\"}", "sa", 2);
    check_seq("{\"seq\":\"\"}", "s", 1);
    check_seq("{\"seq\":\"a\\u0000b\"}", "sa\0b", 4);
    check_seq("{\"seq\":\"\\u00e9\"}", "s\xc3\xa9", 3);
    check_seq("{\"seq\":12345678901234567890123}", "i12345678901234567890123",
        24);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        parse(&rec, bad[i]);
        assert_int_equal(pf_record_seq(&rec, "seq", &key, &err), PF_EFORMAT);
        assert_int_equal(strncmp(err.msg, "seq", 3), 0);
    }
    parse(&rec, "{\"fork\":\"x\"}");
    pf_buf_clear(&key);
    assert_int_equal(pf_record_seq(&rec, "fork", &key, NULL), PF_OK);
    assert_int_equal(key.len, 2);
    parse(&rec, "{}");
    pf_record_put(&rec, "seq", PF_I32, 1, (size_t[]){ 1 }, NULL);
    assert_int_equal(pf_record_seq(&rec, "seq", &key, &err), PF_EFORMAT);
    pf_buf_fini(&key);
    pf_record_fini(&rec);
}

static void
test_looks(void **ctx)
{
    struct pf_record rec = PF_RECORD_INIT;
    struct pf_buf b = PF_BUF_INIT;
    struct pf_err err;
    int64_t v;
    size_t pos;
    bool t;

    (void)ctx;
    parse(&rec, "{\"n\":5,\"x\":1.5,\"s\":\"a\\u0041\",\"pos\":2147483647,"
        "\"yes\":true,\"no\":false,\"z\":null,\"big\":9223372036854775808,"
        "\"trues\":[true]}");
    assert_int_equal(pf_record_i64(&rec, "n", 1, &v, NULL), PF_OK);
    assert_int_equal(v, 5);
    assert_int_equal(pf_record_i64(&rec, "none", -3, &v, NULL), PF_OK);
    assert_int_equal(v, -3);
    assert_int_equal(pf_record_i64(&rec, "x", 0, &v, &err), PF_EFORMAT);
    assert_non_null(strstr(err.msg, "x: 1.5"));
    assert_int_equal(pf_record_i64(&rec, "s", 0, &v, &err), PF_EFORMAT);
    assert_int_equal(pf_record_i64(&rec, "z", 0, &v, &err), PF_EFORMAT);
    assert_int_equal(pf_record_i64(&rec, "big", 0, &v, &err), PF_ERANGE);
    assert_int_equal(pf_record_pos(&rec, &pos, NULL), PF_OK);
    assert_int_equal(pos, 2147483647);
    assert_int_equal(pf_record_string(&rec, "s", &b, NULL), PF_OK);
    assert_int_equal(b.len, 2);
    assert_memory_equal(b.data, "aA", 2);
    assert_int_equal(pf_record_string(&rec, "none", &b, NULL), PF_END);
    assert_int_equal(pf_record_string(&rec, "n", &b, &err), PF_EFORMAT);
    assert_int_equal(strncmp(err.msg, "n: ", 3), 0);
    assert_int_equal(pf_record_bool(&rec, "yes", &t, NULL), PF_OK);
    assert_true(t);
    assert_int_equal(pf_record_bool(&rec, "no", &t, NULL), PF_OK);
    assert_false(t);
    assert_int_equal(pf_record_bool(&rec, "none", &t, NULL), PF_OK);
    assert_false(t);
    assert_int_equal(pf_record_bool(&rec, "n", &t, &err), PF_EFORMAT);
    assert_int_equal(pf_record_bool(&rec, "z", &t, &err), PF_OK); /* null */
    assert_false(t);
    assert_int_equal(pf_record_bool(&rec, "trues", &t, &err), PF_EFORMAT);
    parse(&rec, "{\"pos\":-1}");
    assert_int_equal(pf_record_pos(&rec, &pos, &err), PF_ERANGE);
    parse(&rec, "{\"pos\":2147483648}");
    assert_int_equal(pf_record_pos(&rec, &pos, &err), PF_ERANGE);
    parse(&rec, "{\"pos\":\"1\"}");
    assert_int_equal(pf_record_pos(&rec, &pos, &err), PF_EFORMAT);
    parse(&rec, "{}");
    assert_int_equal(pf_record_pos(&rec, &pos, &err), PF_OK);
    assert_int_equal(pos, 0);
    /* Tensors under the names of fields. */
    pf_record_put(&rec, "n", PF_I32, 1, (size_t[]){ 1 }, NULL);
    assert_int_equal(pf_record_i64(&rec, "n", 1, &v, &err), PF_EFORMAT);
    assert_int_equal(pf_record_string(&rec, "n", &b, &err), PF_EFORMAT);
    assert_int_equal(pf_record_bool(&rec, "n", &t, &err), PF_EFORMAT);
    pf_buf_fini(&b);
    pf_record_fini(&rec);
}

static void
test_marks(void **ctx)
{
    static const struct {
        const char *line;
        bool mark, error;
    } t[] = {
        { "{}", false, false }, { "{\"done\":\"input\"}", true, false },
        { "{\"done\":\"eos\",\"seq\":1}", false, false },
        { "{\"done\":\"eos\",\"seq\":1,\"pos\":0}", false, false },
        { "{\"done\":\"eos\",\"seq\":1,\"pos\":1}", true, false },
        { "{\"done\":\"eos\",\"pos\":0}", true, false },
        { "{\"done\":\"eos\",\"pos\":3}", true, false },
        { "{\"seq\":1,\"pos\":3}", false, false },
        { "{\"done\":\"eos\",\"seq\":1,\"pos\":\"x\"}", false, false },
        { "{\"done\":\"eos\",\"seq\":1,\"pos\":-1}", false, false },
        { "{\"error\":\"x\"}", false, true },
    };
    struct pf_record rec = PF_RECORD_INIT;

    (void)ctx;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        parse(&rec, t[i].line);
        assert_int_equal(pf_record_is_mark(&rec), t[i].mark);
        assert_int_equal(pf_record_is_error(&rec), t[i].error);
    }
    parse(&rec, "{\"done\":\"stop\"}");
    assert_true(pf_record_done_by(&rec, "stop"));
    assert_false(pf_record_done_by(&rec, "sto"));
    assert_false(pf_record_done_by(&rec, "stop2"));
    parse(&rec, "{\"done\":123456}"); /* six bytes, as "stop" */
    assert_false(pf_record_done_by(&rec, "stop"));
    parse(&rec, "{}");
    assert_false(pf_record_done_by(&rec, "stop"));
    pf_record_fini(&rec);
}

static void
test_float_looks(void **ctx)
{
    struct pf_record rec = PF_RECORD_INIT;
    const struct pf_tensor *t;
    struct pf_err err;
    const uint32_t *ids;
    const float *f;
    char askew[64];
    size_t n;

    (void)ctx;
    parse(&rec, "{\"hidden\":[[1,2]],\"text\":\"x\"}");
    assert_int_equal(pf_record_f32(&rec, "hidden", &t, &f, NULL), PF_OK);
    assert_ptr_equal(t->data, f);
    assert_int_equal(pf_record_f32(&rec, "none", &t, &f, NULL), PF_OK);
    assert_true(!t && !f);
    assert_int_equal(pf_record_f32(&rec, "text", &t, &f, &err), PF_EFORMAT);
    memcpy(askew + 1, (float[]){ 1.5f, -2 }, 8);
    pf_record_put(&rec, "a", PF_F32, 1, (size_t[]){ 2 }, askew + 1);
    assert_int_equal(pf_record_f32(&rec, "a", &t, &f, NULL), PF_OK);
    assert_true((uintptr_t)f % sizeof *f == 0 && f[0] == 1.5f && f[1] == -2);
    memcpy(askew + 1, (uint16_t[]){ 0x3c00, 0xc000 }, 4);
    pf_record_put(&rec, "a", PF_F16, 1, (size_t[]){ 2 }, askew + 1);
    assert_int_equal(pf_record_f32(&rec, "a", &t, &f, NULL), PF_OK);
    assert_true(t->dtype == PF_F32 && f[0] == 1 && f[1] == -2);
    memcpy(askew + 1, (uint16_t[]){ 0x3f80, 0xc000 }, 4);
    pf_record_put(&rec, "a", PF_BF16, 1, (size_t[]){ 2 }, askew + 1);
    assert_int_equal(pf_record_f32(&rec, "a", &t, &f, NULL), PF_OK);
    assert_true(f[0] == 1 && f[1] == -2);
    memcpy(askew + 1, (double[]){ 0.1, 1e300 }, 16);
    pf_record_put(&rec, "a", PF_F64, 1, (size_t[]){ 2 }, askew + 1);
    assert_int_equal(pf_record_f32(&rec, "a", &t, &f, NULL), PF_OK);
    assert_true(f[0] == 0.1f && f[1] == INFINITY);
    pf_record_put(&rec, "a", PF_I32, 1, (size_t[]){ 2 }, askew + 1);
    assert_int_equal(pf_record_f32(&rec, "a", &t, &f, &err), PF_EFORMAT);
    assert_non_null(strstr(err.msg, "I32"));

    memcpy(askew + 1, (int64_t[]){ 0, INT32_MAX }, 16);
    pf_record_put(&rec, "ids", PF_I64, 1, (size_t[]){ 2 }, askew + 1);
    assert_int_equal(pf_record_ids(&rec, "ids", &ids, &n, NULL), PF_OK);
    assert_true(n == 2 && ids[0] == 0 && ids[1] == INT32_MAX);
    memcpy(askew + 1, (uint16_t[]){ 7, 65535 }, 4);
    pf_record_put(&rec, "ids", PF_U16, 1, (size_t[]){ 2 }, askew + 1);
    assert_int_equal(pf_record_ids(&rec, "ids", &ids, &n, NULL), PF_OK);
    assert_true(n == 2 && ids[0] == 7 && ids[1] == 65535);
    memcpy(askew + 1, (int32_t[]){ 3, -1 }, 8);
    pf_record_put(&rec, "ids", PF_I32, 1, (size_t[]){ 2 }, askew + 1);
    assert_int_equal(pf_record_ids(&rec, "ids", &ids, &n, &err), PF_ERANGE);
    assert_non_null(strstr(err.msg, "-1 at 1"));
    pf_record_put(&rec, "ids", PF_U32, 1, (size_t[]){ 2 }, askew + 1);
    assert_int_equal(pf_record_ids(&rec, "ids", &ids, &n, &err), PF_ERANGE);
    pf_record_put(&rec, "ids", PF_F32, 1, (size_t[]){ 2 }, askew + 1);
    assert_int_equal(pf_record_ids(&rec, "ids", &ids, &n, &err), PF_EFORMAT);
    pf_record_put(&rec, "ids", PF_I32, 2, (size_t[]){ 1, 1 }, askew + 1);
    assert_int_equal(pf_record_ids(&rec, "ids", &ids, &n, &err), PF_ESHAPE);
    assert_non_null(strstr(err.msg, "[1, 1]"));
    assert_int_equal(pf_record_ids(&rec, "none", &ids, &n, NULL), PF_OK);
    assert_true(!ids && n == 0);
    assert_int_equal(pf_record_ids(&rec, "text", &ids, &n, &err), PF_EFORMAT);
    parse(&rec, "{\"ids\":[]}");
    assert_int_equal(pf_record_ids(&rec, "ids", &ids, &n, NULL), PF_OK);
    assert_true(ids && n == 0);
    pf_record_fini(&rec);
}

static void
test_names(void **ctx)
{
    enum pf_dtype t;

    (void)ctx;
    assert_true(pf_tensor_name("ids", &t) && t == PF_I32);
    assert_true(pf_tensor_name("offsets", &t) && t == PF_I64);
    assert_true(pf_tensor_name("hidden", &t) && t == PF_F32);
    assert_false(pf_tensor_name("tokens", &t));
    assert_false(pf_tensor_name("blocks.0", &t));
    for (int tensor = 0; tensor < 2; tensor++) {
        assert_true(pf_per_position("ids", tensor));
        assert_true(pf_per_position("tokens", tensor));
        assert_true(pf_per_position("hidden", tensor));
        assert_false(pf_per_position("embedding", tensor));
        assert_false(pf_per_position("memory", tensor));
        assert_false(pf_per_position("seq", tensor));
        assert_false(pf_per_position("text", tensor));
        assert_int_equal(pf_per_position("blocks.0.attn.q", tensor), tensor);
    }
}

/* --- Changing --- */

static void
test_changes(void **ctx)
{
    struct pf_record rec = PF_RECORD_INIT, from = PF_RECORD_INIT;
    const float one[] = { 1 };
    const char *data;
    struct pf_tensor *t;

    (void)ctx;
    parse(&rec, "{\"a\":1,\"b\":2,\"c\":3,\"hidden\":[1,2],\"logits\":[3]}");
    assert_int_equal(pf_record_set(&rec, "b", "[7]", 3, NULL), PF_OK);
    assert_int_equal(pf_record_set_i64(&rec, "d", INT64_MIN, NULL), PF_OK);
    assert_int_equal(pf_record_set_string(&rec, "q\"\n", "x\"\0", 3, NULL),
        PF_OK);
    check_printed(&rec, "{\"a\":1,\"b\":[7],\"c\":3,"
        "\"d\":-9223372036854775808,\"q\\\"\\n\":\"x\\\"\\u0000\","
        "\"hidden\":[1,2],\"logits\":[3]}\n");
    pf_record_drop(&rec, "a");
    pf_record_drop(&rec, "hidden");
    pf_record_drop(&rec, "none");
    pf_record_drop(&rec, "q\"\n");
    check_printed(&rec, "{\"b\":[7],\"c\":3,\"d\":-9223372036854775808,"
        "\"logits\":[3]}\n");
    assert_int_equal(pf_record_set_f32(&rec, "f", -0.1f, NULL), PF_OK);
    assert_int_equal(pf_record_set_f64(&rec, "d", 0.1 + 0.2, NULL), PF_OK);
    check_printed(&rec, "{\"b\":[7],\"c\":3,\"d\":0.30000000000000004,"
        "\"f\":-0.1,\"logits\":[3]}\n");
    pf_record_drop(&rec, "f");
    /* The last of all can go. */
    pf_record_drop(&rec, "logits");
    pf_record_drop(&rec, "d");
    assert_int_equal(rec.n_tensors, 0);
    t = pf_record_put(&rec, "x", PF_F32, 1, (size_t[]){ 1 }, one);
    assert_ptr_equal(t->data, one);
    t = pf_record_put(&rec, "y", PF_U8, 2, (size_t[]){ 3, 100 }, NULL);
    assert_non_null(t->data);
    memset((char *)t->data, 1, 300);
    data = t->data;
    assert_ptr_equal(pf_record_tensor(&rec, "y")->data, data);
    t = pf_record_put(&rec, "x", PF_F32, 0, (size_t[]){ 0 }, one);
    assert_int_equal(rec.n_tensors, 2);
    assert_int_equal(t->ndim, 0);
    assert_null(pf_record_put(&rec, "z", PF_F32, 1, (size_t[]){ SIZE_MAX },
        NULL));
    pf_record_drop(&rec, "y");
    check_printed(&rec, "{\"b\":[7],\"c\":3,\"x\":1}\n");
    /* Many fields and tensors, and one of the first again. */
    for (int i = 0; i < 100; i++) {
        char name[16];

        sprintf(name, "f%d", i);
        assert_int_equal(pf_record_set_i64(&rec, name, i, NULL), PF_OK);
        sprintf(name, "t%d", i);
        assert_non_null(pf_record_put(&rec, name, PF_F32, 1,
            (size_t[]){ 1 }, one));
    }
    check_field(&rec, "f3", "3");
    check_tensor(&rec, "t99", PF_F32, 1, 1, 0);
    /* A copy outlives what it came from; the key too is as it came. */
    parse(&from, "{\"\\u0061\":\"\\u0041\"}");
    pf_record_clear(&rec);
    assert_int_equal(pf_record_copy_field(&rec, &from, "a", NULL), PF_OK);
    assert_int_equal(pf_record_copy_field(&rec, &from, "none", NULL), PF_OK);
    pf_record_fini(&from);
    check_printed(&rec, "{\"\\u0061\":\"\\u0041\"}\n");
    pf_record_fini(&rec);
}

/* --- Writing --- */

static void
test_print_types(void **ctx)
{
    static const struct {
        enum pf_dtype type;
        const char *bytes, *want;
        size_t n;
    } t[] = {
        { PF_BOOL, "\0\1\2", "[false,true,true]", 3 },
        { PF_U8, "\0\xff", "[0,255]", 2 }, { PF_I8, "\x80\x7f", "[-128,127]",
            2 },
        { PF_F8_E4M3, "\x38\x40\xb8\x7f", "[1,2,-1,null]", 4 },
        { PF_F8_E5M2, "\x3d\x7c\xfc\xff\x80", "[1.25,1e999,-1e999,null,-0]",
            5 },
        { PF_I16, "\0\x80", "[-32768]", 1 },
        { PF_U16, "\0\x80", "[32768]", 1 },
        { PF_F16, "\0\x3c\0\x7c\0\x7e", "[1,1e999,null]", 3 },
        { PF_BF16, "\x80\x3f\xcd\x3d", "[1,0.100097656]", 2 },
        { PF_I32, "\xff\xff\xff\xff", "[-1]", 1 },
        { PF_U32, "\xff\xff\xff\xff", "[4294967295]", 1 },
        { PF_F32, "\0\0\0\x80\xcd\xcc\xcc\x3d", "[-0,0.1]", 2 },
        { PF_F64, "\x9a\x99\x99\x99\x99\x99\xb9\x3f", "[0.1]", 1 },
        { PF_I64, "\0\0\0\0\0\0\0\x80", "[-9223372036854775808]", 1 },
        { PF_U64, "\xff\xff\xff\xff\xff\xff\xff\xff",
            "[18446744073709551615]", 1 },
        { PF_F32, "", "[]", 0 },
    };
    struct pf_buf b = PF_BUF_INIT;

    (void)ctx;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct pf_tensor x = { "x", t[i].type, 1, { t[i].n }, t[i].bytes };

        pf_buf_clear(&b);
        pf_tensor_print(&b, &x);
        pf_buf_addc(&b, '\0');
        assert_string_equal(b.data, t[i].want);
    }
    pf_buf_fini(&b);
}

/* Bytes that a writer makes, by way of a pipe. */
static void
written(struct pf_buf *b, const struct pf_record *rec, enum pf_format format)
{
    struct pf_out out = PF_OUT_INIT;
    char path[] = "/tmp/pf-record-XXXXXX", *data;
    size_t len;

    out.fd = mkstemp(path);
    assert_true(out.fd >= 0);
    assert_int_equal(pf_record_write(&out, rec, format, NULL), PF_OK);
    assert_int_equal(pf_out_flush(&out, NULL), PF_OK);
    close(out.fd);
    assert_int_equal(pf_read_file(path, 1 << 28, &data, &len, NULL), PF_OK);
    assert_int_equal(out.bytes, len);
    pf_buf_add(b, data, len);
    free(data);
    unlink(path);
    pf_out_fini(&out);
}

static void
test_write_binary(void **ctx)
{
    struct pf_record rec = PF_RECORD_INIT;
    struct pf_buf b = PF_BUF_INIT;
    static const char head[] = "{\"__metadata__\":{\"pipeformer\":\"{"
        "\\\"seq\\\":\\\"a\\\\u0041\\\"}\"},\"offsets\":{\"dtype\":\"I64\","
        "\"shape\":[1,2],\"data_offsets\":[0,16]},\"ids\":{\"dtype\":\"I32\","
        "\"shape\":[1],\"data_offsets\":[16,20]},\"mask\":{\"dtype\":\"BOOL\","
        "\"shape\":[3],\"data_offsets\":[20,23]}}";
    size_t n = (sizeof head - 1 + 7) / 8 * 8;

    (void)ctx;
    parse(&rec, "{\"mask\":[true,false,true],\"seq\":\"a\\u0041\","
        "\"ids\":[258],\"offsets\":[[3,4]]}");
    written(&b, &rec, PF_BINARY);
    assert_int_equal(b.len, 8 + n + 23);
    assert_int_equal((unsigned char)b.data[0], n & 0xff);
    assert_int_equal((unsigned char)b.data[1], n >> 8);
    assert_memory_equal(b.data + 2, "\0\0\0\0\0\0", 6);
    assert_memory_equal(b.data + 8, head, sizeof head - 1);
    for (size_t i = sizeof head - 1; i < n; i++)
        assert_int_equal(b.data[8 + i], ' ');
    assert_memory_equal(b.data + 8 + n, "\3\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0"
        "\2\1\0\0\1\0\1", 23);
    /* Nothing at all is a record too. */
    pf_buf_clear(&b);
    pf_record_clear(&rec);
    written(&b, &rec, PF_BINARY);
    assert_int_equal(b.len, 16);
    assert_memory_equal(b.data, "\10\0\0\0\0\0\0\0{}      ", 16);
    pf_buf_clear(&b);
    written(&b, &rec, PF_NDJSON);
    assert_memory_equal(b.data, "{}\n", 3);
    /* A full disk is never a success, large or small. */
    for (size_t rows = 1; rows < 200000; rows *= 50) {
        for (int format = 0; format < 2; format++) {
            struct pf_out out = PF_OUT_INIT;
            enum pf_status st;

            out.fd = open("/dev/full", O_WRONLY);
            memset((char *)pf_record_put(&rec, "hidden", PF_F32, 1, &rows,
                NULL)->data, 0, rows * 4);
            st = pf_record_write(&out, &rec, (enum pf_format)format, NULL);
            if (!st)
                st = pf_out_flush(&out, NULL);
            assert_int_equal(st, PF_EWRITE);
            close(out.fd);
            pf_out_fini(&out);
        }
    }
    pf_buf_fini(&b);
    pf_record_fini(&rec);
}

/* --- Reading streams --- */

/* Ends of the records in a stream, and all of them as NDJSON. */
struct stream {
    struct pf_buf bytes;
    size_t ends[32], n;
    struct pf_buf lines; /* of all of them */
    size_t line_ends[32];
};

#define STREAM_INIT { .bytes = PF_BUF_INIT, .lines = PF_BUF_INIT }

static void
stream_add(struct stream *s, const char *bytes, size_t len, const char *line)
{
    pf_buf_add(&s->bytes, bytes, len);
    pf_buf_adds(&s->lines, line);
    s->ends[s->n] = s->bytes.len;
    s->line_ends[s->n++] = s->lines.len;
}

static void
stream_fini(struct stream *s)
{
    pf_buf_fini(&s->bytes);
    pf_buf_fini(&s->lines);
}

/* Takes the next record, which must be the k-th. */
static void
take(struct pf_reader *r, struct pf_record *rec, const struct stream *s,
    size_t k, size_t cut)
{
    struct pf_buf b = PF_BUF_INIT;
    struct pf_err err = { PF_OK, "" };
    size_t from = k ? s->line_ends[k - 1] : 0;
    bool lost = true;

    if (pf_reader_next(r, rec, &lost, &err))
        fail_msg("record %zu, cut at %zu: %s", k, cut, err.msg);
    assert_false(lost);
    assert_int_equal(pf_record_print(&b, rec, NULL), PF_OK);
    assert_int_equal(b.len, s->line_ends[k] - from);
    assert_memory_equal(b.data, s->lines.data + from, b.len);
    pf_buf_fini(&b);
}

/* The stream, which is small, in two parts. */
static void
check_cut(const struct stream *s, size_t cut)
{
    struct pf_in in = PF_IN_INIT;
    struct pf_reader r = PF_READER_INIT;
    struct pf_record rec = PF_RECORD_INIT;
    int fd[2];
    size_t k = 0;

    assert_int_equal(pipe(fd), 0);
    in.fd = fd[0];
    r.in = &in;
    r.main_name = "hidden";
    assert_int_equal(write(fd[1], s->bytes.data, cut), cut);
    for (; k < s->n && s->ends[k] <= cut; k++) {
        if (!pf_reader_ready(&r))
            fail_msg("cut at %zu: record %zu is there, but not ready", cut,
                k);
        take(&r, &rec, s, k, cut);
    }
    if (pf_reader_ready(&r))
        fail_msg("cut at %zu: record %zu is ready, but not there", cut, k);
    assert_int_equal(write(fd[1], s->bytes.data + cut, s->bytes.len - cut),
        s->bytes.len - cut);
    for (; k < s->n; k++) {
        assert_true(pf_reader_ready(&r));
        take(&r, &rec, s, k, cut);
    }
    close(fd[1]);
    assert_true(pf_reader_ready(&r));
    assert_int_equal(pf_reader_next(&r, &rec, NULL, NULL), PF_END);
    assert_int_equal(pf_reader_next(&r, &rec, NULL, NULL), PF_END);
    pf_reader_fini(&r);
    pf_record_fini(&rec);
    pf_in_fini(&in);
}

/* A document whose header is padded with spaces to `len` bytes. */
static void
add_document(struct stream *s, size_t len)
{
    struct pf_buf b = PF_BUF_INIT;

    for (int i = 0; i < 8; i++)
        pf_buf_addc(&b, (char)((uint64_t)len >> 8 * i & 0xff));
    pf_buf_adds(&b, "{}");
    while (b.len < 8 + len)
        pf_buf_addc(&b, ' ');
    stream_add(s, b.data, b.len, "{}\n");
    pf_buf_fini(&b);
}

static const char npy[] = "\x93NUMPY\1\0\x38\0{'descr': '<f4', "
    "'fortran_order': False, 'shape': (2,)}\n\0\0\x80\x3f\0\0\0\x40";

static void
test_cuts(void **ctx)
{
    struct stream s = STREAM_INIT;
    struct pf_record rec = PF_RECORD_INIT;
    struct pf_buf b = PF_BUF_INIT;
    static const char line[] = "{\"seq\":1,\"ids\":[1,2]}\n";

    (void)ctx;
    stream_add(&s, line, sizeof line - 1, line);
    stream_add(&s, "{ }\n", 4, "{}\n"); /* no shorter: four bytes decide */
    parse(&rec, line);
    written(&b, &rec, PF_BINARY);
    stream_add(&s, b.data, b.len, line);
    stream_add(&s, b.data, b.len, line);
    stream_add(&s, npy, sizeof npy - 1, "{\"hidden\":[1,2]}\n");
    stream_add(&s, npy, sizeof npy - 1, "{\"hidden\":[1,2]}\n");
    stream_add(&s, "{ \"a\" : 1 } \r\n", 14, "{\"a\":1}\n");
    stream_add(&s, "\n\r\n{\"b\":2}\n", 11, "{\"b\":2}\n");
    pf_record_clear(&rec);
    pf_buf_clear(&b);
    written(&b, &rec, PF_BINARY);
    stream_add(&s, b.data, b.len, "{}\n");
    stream_add(&s, "{\"z\":\"\xc3\xa9\"}\n", 11, "{\"z\":\"\xc3\xa9\"}\n");
    stream_add(&s, npy, sizeof npy - 1, "{\"hidden\":[1,2]}\n");
    stream_add(&s, b.data, b.len, "{}\n");
    for (size_t cut = 0; cut <= s.bytes.len; cut++)
        check_cut(&s, cut);
    pf_buf_fini(&b);
    pf_record_fini(&rec);
    stream_fini(&s);
}

/* Lengths of a header whose bytes look like line ends, braces, .npy. */
static void
test_header_bytes(void **ctx)
{
    static const size_t lengths[] = { 10, 13, 0x10a, 0x10d, 0x120, 0x17b,
        0x193, 0x0a09, 0x0a0a, 0x0d0a, 0x0a0d, 0x0a20, 0x0a48, 0x0d48,
        0x0a7b, 0x2020, 0x4e93 };

    (void)ctx;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct stream s = STREAM_INIT;
        size_t from;

        stream_add(&s, "{\"a\":1}\n", 8, "{\"a\":1}\n");
        from = s.bytes.len;
        add_document(&s, lengths[i]);
        stream_add(&s, "{\"b\":1}\n", 8, "{\"b\":1}\n");
        for (size_t cut = from; cut < from + 14; cut++)
            check_cut(&s, cut);
        stream_fini(&s);
        add_document(&s, lengths[i]); /* first of all, too */
        for (size_t cut = 0; cut < 14; cut++) {
            struct stream first = STREAM_INIT;

            add_document(&first, lengths[i]);
            check_cut(&first, cut);
            stream_fini(&first);
        }
        stream_fini(&s);
    }
}

/* Records larger than any read, byte by byte the same. */
static void
test_large(void **ctx)
{
    struct stream s = STREAM_INIT;
    struct pf_record rec = PF_RECORD_INIT, back = PF_RECORD_INIT;
    char path[] = "/tmp/pf-record-XXXXXX";
    struct pf_reader r = PF_READER_INIT;
    struct pf_buf text = PF_BUF_INIT;
    struct pf_in in;
    float *v;
    int fd;

    (void)ctx;
    parse(&rec, "{\"seq\":\"x\"}");
    v = (float *)pf_record_put(&rec, "hidden", PF_F32, 2,
        (size_t[]){ 500, 301 }, NULL)->data;
    for (uint32_t i = 0, bits = 1; i < 500 * 301; i++) {
        bits = bits * 1664525 + 1013904223;
        memcpy(&v[i], &(uint32_t){ bits & 0xbfffffff }, 4);
    }
    assert_int_equal(pf_record_print(&text, &rec, NULL), PF_OK);
    pf_buf_addc(&text, '\0');
    for (int i = 0; i < 6; i++) {
        struct pf_buf b = PF_BUF_INIT;

        written(&b, &rec, i % 2 ? PF_NDJSON : PF_BINARY);
        stream_add(&s, b.data, b.len, text.data);
        pf_buf_fini(&b);
        stream_add(&s, "{}\n", 3, "{}\n");
    }
    fd = mkstemp(path);
    assert_int_equal(pf_write_all(fd, s.bytes.data, s.bytes.len, NULL),
        PF_OK);
    close(fd);
    assert_int_equal(pf_in_open(&in, path, NULL), PF_OK);
    unlink(path);
    r.in = &in;
    for (size_t k = 0; k < s.n; k++) {
        assert_true(pf_reader_ready(&r));
        take(&r, &back, &s, k, 0);
        if (k % 2 == 0)
            assert_memory_equal(pf_record_tensor(&back, "hidden")->data, v,
                500 * 301 * 4);
    }
    assert_int_equal(pf_reader_next(&r, &back, NULL, NULL), PF_END);
    pf_in_fini(&in);
    pf_reader_fini(&r);
    pf_record_fini(&rec);
    pf_record_fini(&back);
    pf_buf_fini(&text);
    stream_fini(&s);
}

/* Reads all of some bytes: the last status, and how many were read. */
static enum pf_status
read_all(const char *bytes, size_t len, struct pf_record *rec, size_t *n,
    bool *lost, struct pf_err *err)
{
    struct pf_in in = PF_IN_INIT;
    struct pf_reader r = PF_READER_INIT;
    enum pf_status st;
    int fd[2];

    assert_int_equal(pipe(fd), 0);
    in.fd = fd[0];
    r.in = &in;
    assert_int_equal(write(fd[1], bytes, len), len);
    close(fd[1]);
    for (*n = 0; !(st = pf_reader_next(&r, rec, lost, err)); ++*n)
        ;
    pf_in_fini(&in);
    pf_reader_fini(&r);
    return st;
}

/* Cut short anywhere, a stream is an error, unless a record ends there. */
static void
test_cut_short(void **ctx)
{
    struct pf_record rec = PF_RECORD_INIT;
    struct pf_buf b = PF_BUF_INIT;
    struct pf_err err;
    size_t n, ends[3], k;
    bool lost;

    (void)ctx;
    parse(&rec, "{\"seq\":1,\"ids\":[1,2]}");
    written(&b, &rec, PF_BINARY);
    ends[0] = b.len;
    pf_buf_add(&b, npy, sizeof npy - 1);
    ends[1] = b.len;
    pf_buf_adds(&b, "{\"a\":[1,{\"b\":2}]}");
    ends[2] = b.len; /* a last newline may be missing */
    pf_buf_addc(&b, '\n');
    for (size_t cut = 0; cut <= b.len; cut++) {
        enum pf_status st = read_all(b.data, cut, &rec, &n, &lost, &err);
        bool whole = cut == 0 || cut + 1 >= b.len;

        for (k = 0; k < 3 && ends[k] <= cut; k++)
            whole |= cut == ends[k];
        assert_int_equal(n, k);
        assert_int_equal(st, whole ? PF_END : PF_EFORMAT);
        if (!whole)
            assert_true(err.msg[0] && !strchr(err.msg, '\n'));
    }
    pf_buf_fini(&b);
    pf_record_fini(&rec);
}

/* After a bad line or document the next record is found; after a header that
 * makes no sense it is not. */
static void
test_lost(void **ctx)
{
    static const struct {
        const char *bytes;
        size_t len;
        bool lost;
    } t[] = {
        { "{\"a\":}\n{\"b\":1}\n", 15, false },
        { "hello\n{\"b\":1}\n", 14, false },
        { "\x93NUMP\n{\"b\":1}\n", 14, false },
        { "\x26\0\0\0\0\0\0\0{\"__metadata__\":{\"pipeformer\":\"[]\"}  }"
            "{\"b\":1}\n", 8 + 38 + 8, false },
        { "\2\0\0\0\0\0\0\0[]{\"b\":1}\n", 18, true },
        { "\xff\xff\xff\x08\0\0\0\0{}", 10, true },
        { "\0\0\0\0\0\0\0\0", 8, true },
        { "\x93NUMPY\7\0\0\0\0\0", 12, true },
    };
    struct pf_record rec = PF_RECORD_INIT;

    (void)ctx;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct pf_in in = PF_IN_INIT;
        struct pf_reader r = PF_READER_INIT;
        struct pf_err err = { PF_OK, "" };
        bool lost = !t[i].lost;
        int fd[2];

        assert_int_equal(pipe(fd), 0);
        in.fd = fd[0];
        r.in = &in;
        assert_int_equal(write(fd[1], t[i].bytes, t[i].len), t[i].len);
        close(fd[1]);
        assert_true(pf_reader_ready(&r));
        assert_int_equal(pf_reader_next(&r, &rec, &lost, &err), PF_EFORMAT);
        assert_true(err.msg[0]);
        if (lost != t[i].lost)
            fail_msg("case %zu: %s", i, err.msg);
        if (!lost) {
            assert_int_equal(pf_reader_next(&r, &rec, &lost, &err), PF_OK);
            check_field(&rec, "b", "1");
            assert_int_equal(pf_reader_next(&r, &rec, &lost, &err), PF_END);
        }
        pf_reader_fini(&r);
        pf_in_fini(&in);
    }
    pf_record_fini(&rec);
}

/* One document with this header (and 64 bytes of data) as a record. */
static enum pf_status
read_document(struct pf_record *rec, const char *header, size_t data,
    struct pf_err *err)
{
    struct pf_buf b = PF_BUF_INIT;
    struct pf_in in = PF_IN_INIT;
    struct pf_reader r = PF_READER_INIT;
    enum pf_status st;
    int fd[2];

    for (size_t i = 0; i < 8; i++)
        pf_buf_addc(&b, (char)(strlen(header) >> 8 * i & 0xff));
    pf_buf_adds(&b, header);
    for (size_t i = 0; i < data; i++)
        pf_buf_addc(&b, (char)i);
    assert_int_equal(pipe(fd), 0);
    assert_int_equal(write(fd[1], b.data, b.len), b.len);
    close(fd[1]);
    in.fd = fd[0];
    r.in = &in;
    st = pf_reader_next(&r, rec, NULL, err);
    if (!st)
        assert_int_equal(pf_reader_next(&r, &(struct pf_record)PF_RECORD_INIT,
            NULL, NULL), PF_END);
    pf_reader_fini(&r);
    pf_in_fini(&in);
    pf_buf_fini(&b);
    return st;
}

static void
test_documents(void **ctx)
{
    static const char *const bad[] = {
        "{\"__metadata__\":{\"pipeformer\":\"[]\"}}",
        "{\"__metadata__\":{\"pipeformer\":\"\"}}",
        "{\"__metadata__\":{\"pipeformer\":\"{\\\"a\\\":1\"}}",
        "{\"__metadata__\":{\"pipeformer\":\"{\\\"a\\\":1,\\\"a\\\":1}\"}}",
        "{\"__metadata__\":{\"pipeformer\":\"{\\\"a\\\":1}\",\"a\":\"2\"}}",
        "{\"__metadata__\":{\"a\":\"2\",\"pipeformer\":\"{\\\"a\\\":1}\"}}",
        "{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}",
        "{\"__metadata__\":{\"pipeformer\":\"{\\\"a\\\":1}\","
            "\"pipeformer\":\"{\\\"b\\\":1}\"}}",
        "{\"__metadata__\":{\"a\\u0000\":\"2\"}}",
        "{\"__metadata__\":{\"pipeformer\":\"{\\\"ids\\\":1}\"},\"ids\":"
            "{\"dtype\":\"I32\",\"shape\":[0],\"data_offsets\":[0,0]}}",
        "{\"__metadata__\":{\"ids\":\"x\"},\"ids\":"
            "{\"dtype\":\"I32\",\"shape\":[0],\"data_offsets\":[0,0]}}",
    };
    struct pf_record rec = PF_RECORD_INIT;
    const struct pf_tensor *t;
    struct pf_err err;
    const float *f;

    (void)ctx;
    /* Metadata under other keys become fields; arrays in ours stay text. */
    assert_int_equal(read_document(&rec, "{\"__metadata__\":{\"format\":\"p"
        "\\\"t\",\"pipeformer\":\"{\\\"seq\\\":1,\\\"hidden\\\":[1,2]}\"}}", 0,
        NULL), PF_OK);
    check_field(&rec, "format", "\"p\\\"t\"");
    check_field(&rec, "seq", "1");
    check_field(&rec, "hidden", "[1,2]");
    assert_int_equal(rec.n_tensors, 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err.msg[0] = '\0';
        if (read_document(&rec, bad[i], 0, &err) != PF_EFORMAT)
            fail_msg("%s", bad[i]);
        assert_true(err.msg[0]);
    }
    /* Data at any address: one byte, then floats. */
    assert_int_equal(read_document(&rec, "{\"a\":{\"dtype\":\"U8\",\"shape\":"
        "[1],\"data_offsets\":[0,1]},\"logits\":{\"dtype\":\"F32\",\"shape\":"
        "[2],\"data_offsets\":[1,9]}}", 9, NULL), PF_OK);
    t = pf_record_tensor(&rec, "logits");
    assert_memory_equal(t->data, "\1\2\3\4\5\6\7\10", 8);
    assert_int_equal(pf_record_f32(&rec, "logits", &t, &f, NULL), PF_OK);
    assert_int_equal((uintptr_t)f % sizeof *f, 0);
    assert_memory_equal(f, "\1\2\3\4\5\6\7\10", 8);
    /* Data that are not there, and a lie of 2^62 bytes: only what comes is
     * paid for. */
    assert_int_equal(read_document(&rec, "{\"a\":{\"dtype\":\"U8\",\"shape\":"
        "[5],\"data_offsets\":[0,5]}}", 4, &err), PF_EFORMAT);
    assert_int_equal(read_document(&rec, "{\"a\":{\"dtype\":\"U8\",\"shape\":"
        "[4611686018427387904],\"data_offsets\":[0,4611686018427387904]}}",
        4, &err), PF_EFORMAT);
    pf_record_fini(&rec);
}

/* What is written is read again, in both encodings. */
static void
test_round_trip(void **ctx)
{
    struct pf_record rec = PF_RECORD_INIT, back = PF_RECORD_INIT;
    struct pf_buf b = PF_BUF_INIT, first = PF_BUF_INIT, again = PF_BUF_INIT;
    char bytes[64];
    size_t n;

    (void)ctx;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 37 + 11);
    parse(&rec, "{\"seq\":\"\\u0061\\n\",\"x\":[1, {\"y\":\"\\ud800\"}],"
        "\"\\u007a\":1e999,\"hidden\":[[0.1,-0],[1e-45,null]]}");
    for (int type = 0; type < PF_N_DTYPES; type++) {
        char name[16];

        sprintf(name, "t\n%d", type);
        assert_non_null(pf_record_put(&rec, name, (enum pf_dtype)type, 2,
            (size_t[]){ type % 3, 2 }, bytes + type));
    }
    assert_int_equal(pf_record_print(&first, &rec, NULL), PF_OK);
    written(&b, &rec, PF_BINARY);
    assert_int_equal(read_all(b.data, b.len, &back, &n, NULL, NULL), PF_END);
    assert_int_equal(n, 1);
    pf_record_clear(&back);
    {
        struct pf_in in = PF_IN_INIT;
        struct pf_reader r = PF_READER_INIT;
        int fd[2];

        assert_int_equal(pipe(fd), 0);
        assert_int_equal(write(fd[1], b.data, b.len), b.len);
        close(fd[1]);
        in.fd = fd[0];
        r.in = &in;
        assert_int_equal(pf_reader_next(&r, &back, NULL, NULL), PF_OK);
        pf_reader_fini(&r);
        pf_in_fini(&in);
    }
    assert_int_equal(back.n_fields, rec.n_fields);
    assert_int_equal(back.n_tensors, rec.n_tensors);
    for (size_t i = 0; i < rec.n_fields; i++) {
        assert_int_equal(back.fields[i].key_len, rec.fields[i].key_len);
        assert_memory_equal(back.fields[i].key, rec.fields[i].key,
            rec.fields[i].key_len);
        check_field(&back, rec.fields[i].name, rec.fields[i].text);
    }
    for (size_t i = 0; i < rec.n_tensors; i++) {
        const struct pf_tensor *t = &rec.tensors[i];
        const struct pf_tensor *u = check_tensor(&back, t->name, t->dtype,
            t->ndim, t->shape[0], t->shape[1]);

        assert_memory_equal(t->data, u->data, pf_tensor_bytes(t));
    }
    pf_buf_clear(&b);
    written(&b, &rec, PF_NDJSON);
    assert_int_equal(b.len, first.len);
    assert_memory_equal(b.data, first.data, b.len);
    pf_buf_fini(&b);
    pf_buf_fini(&first);
    pf_buf_fini(&again);
    pf_record_fini(&rec);
    pf_record_fini(&back);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_bad_tensors),
        cmocka_unit_test(test_dotted),
        cmocka_unit_test(test_all_tensors),
        cmocka_unit_test(test_seq),
        cmocka_unit_test(test_looks),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_float_looks),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_print_types),
        cmocka_unit_test(test_write_binary),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_header_bytes),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_documents),
        cmocka_unit_test(test_round_trip),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
