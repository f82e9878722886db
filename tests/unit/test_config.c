#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"

static enum pf_status
parse(struct pf_config *c, const char *text, struct pf_err *err)
{
    cJSON *doc;
    enum pf_status st = pf_config_text(&doc, text, strlen(text), err);

    if (!st)
        st = pf_config_parse(c, doc, err);
    cJSON_Delete(doc);
    return st;
}

static void
test_text(void **ctx)
{
    static const char *const bad[] = { "", " ", "[]", "1", "null", "\"x\"",
        "{", "{}x", "{} {}", "{\"a\":1,}", "{\"a\":1,\"a\":2}", "{'a':1}",
        "{\"a\":\"\\u0000\"}", "{\"a\" 1}", "// x\n{}" };
    static const char good[] = " {\"a\":1,\"A\":2,\"b\":{\"a\":3}}\n";
    struct pf_err err;
    cJSON *doc;

    (void)ctx;
    assert_int_equal(pf_config_text(&doc, good, sizeof good - 1, NULL),
        PF_OK);
    assert_true(cJSON_GetObjectItemCaseSensitive(doc, "A")->valueint == 2);
    cJSON_Delete(doc);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err.msg[0] = '\0';
        if (pf_config_text(&doc, bad[i], strlen(bad[i]), &err) != PF_EMODEL)
            fail_msg("%s", bad[i]);
        assert_null(doc);
        assert_true(err.msg[0]);
    }
    assert_int_equal(pf_config_text(&doc, "{}\0", 3, &err), PF_EMODEL);
    assert_int_equal(pf_config_text(&doc, "{\"a\":\"\0\"}", 9, &err),
        PF_EMODEL);
}

static void
test_read(void **ctx)
{
    char path[] = "/tmp/pf-config-XXXXXX";
    int fd = mkstemp(path);
    struct pf_err err;
    cJSON *doc;

    (void)ctx;
    assert_int_equal(write(fd, "{\"a\":1", 6), 6);
    assert_int_equal(pf_config_read(&doc, path, &err), PF_EMODEL);
    assert_non_null(strstr(err.msg, path));
    assert_int_equal(write(fd, "}", 1), 1);
    assert_int_equal(pf_config_read(&doc, path, &err), PF_OK);
    assert_int_equal(cJSON_GetArraySize(doc), 1);
    cJSON_Delete(doc);
    close(fd);
    unlink(path);
    assert_int_equal(pf_config_read(&doc, path, &err), PF_EIO);
    assert_non_null(strstr(err.msg, path));
}

static void
test_looks(void **ctx)
{
    static const char text[] = "{\"n\":7,\"x\":1.5,\"m\":-1,\"z\":null,"
        "\"t\":true,\"f\":false,\"s\":\"7\",\"zero\":0,\"big\":1e300,"
        "\"huge\":9007199254740993,\"l\":[1]}";
    static const char *const no_size[] = { "x", "m", "t", "s", "zero", "big",
        "huge", "l" };
    struct pf_err err;
    cJSON *doc;
    double d;
    size_t v;
    bool b;

    (void)ctx;
    assert_int_equal(pf_config_text(&doc, text, sizeof text - 1, NULL),
        PF_OK);
    assert_int_equal(pf_config_size(doc, "n", 1, 7, &v, NULL), PF_OK);
    assert_int_equal(v, 7);
    assert_int_equal(pf_config_size(doc, "n", 1, 6, &v, &err), PF_EMODEL);
    assert_int_equal(strncmp(err.msg, "n ", 2), 0);
    assert_int_equal(pf_config_size(doc, "none", 3, 6, &v, NULL), PF_OK);
    assert_int_equal(v, 3);
    assert_int_equal(pf_config_size(doc, "z", 3, 6, &v, NULL), PF_OK);
    assert_int_equal(v, 3);
    assert_int_equal(pf_config_size(doc, "N", 3, 6, &v, NULL), PF_OK);
    assert_int_equal(v, 3);
    for (size_t i = 0; i < sizeof no_size / sizeof *no_size; i++) {
        assert_int_equal(pf_config_size(doc, no_size[i], 3, 1 << 24, &v,
            &err), PF_EMODEL);
        assert_non_null(strstr(err.msg, no_size[i]));
    }
    assert_int_equal(pf_config_num(doc, "x", 0, &d, NULL), PF_OK);
    assert_true(d == 1.5);
    assert_int_equal(pf_config_num(doc, "z", 2.5, &d, NULL), PF_OK);
    assert_true(d == 2.5);
    assert_int_equal(pf_config_num(doc, "s", 0, &d, &err), PF_EMODEL);
    assert_int_equal(pf_config_num(doc, "t", 0, &d, &err), PF_EMODEL);
    assert_int_equal(pf_config_bool(doc, "t", false, &b, NULL), PF_OK);
    assert_true(b);
    assert_int_equal(pf_config_bool(doc, "f", true, &b, NULL), PF_OK);
    assert_false(b);
    assert_int_equal(pf_config_bool(doc, "z", true, &b, NULL), PF_OK);
    assert_true(b);
    assert_int_equal(pf_config_bool(doc, "n", true, &b, &err), PF_EMODEL);
    assert_int_equal(pf_config_bool(doc, "s", true, &b, &err), PF_EMODEL);
    cJSON_Delete(doc);
}

/* HuggingFace's GPT2Config. */
static void
test_defaults(void **ctx)
{
    struct pf_config c;

    (void)ctx;
    assert_int_equal(parse(&c, "{\"model_type\":\"gpt2\"}", NULL), PF_OK);
    assert_string_equal(c.type, "gpt2");
    assert_int_equal(c.vocab, 50257);
    assert_int_equal(c.positions, 1024);
    assert_int_equal(c.width, 768);
    assert_int_equal(c.layers, 12);
    assert_int_equal(c.heads, 12);
    assert_int_equal(c.head_dim, 64);
    assert_int_equal(c.inner, 3072);
    assert_true(c.eps == 1e-5f);
    assert_int_equal(c.act, PF_GELU_TANH);
    assert_string_equal(c.act_name, "gelu_new");
    assert_true(c.tied && c.scale_attn && !c.scale_by_layer);
}

static void
test_values(void **ctx)
{
    struct pf_config c;

    (void)ctx;
    assert_int_equal(parse(&c, "{\"model_type\":\"gpt2\",\"vocab_size\":11,"
        "\"n_positions\":9,\"n_ctx\":8,\"n_embd\":12,\"n_layer\":2,"
        "\"n_head\":3,\"n_inner\":7,\"layer_norm_epsilon\":0.001,"
        "\"activation_function\":\"relu\",\"tie_word_embeddings\":false,"
        "\"scale_attn_weights\":false,"
        "\"scale_attn_by_inverse_layer_idx\":true,\"eos_token_id\":10,"
        "\"unknown\":{\"n_embd\":5}}", NULL), PF_OK);
    assert_int_equal(c.vocab, 11);
    assert_int_equal(c.positions, 9);
    assert_int_equal(c.width, 12);
    assert_int_equal(c.layers, 2);
    assert_int_equal(c.heads, 3);
    assert_int_equal(c.head_dim, 4);
    assert_int_equal(c.inner, 7);
    assert_true(c.eps == 0.001f);
    assert_int_equal(c.act, PF_RELU);
    assert_true(!c.tied && !c.scale_attn && c.scale_by_layer);
    assert_int_equal(c.n_eos, 1);
    assert_int_equal(c.eos[0], 10);
    assert_int_equal(parse(&c, "{\"model_type\":\"gpt2\",\"n_ctx\":8,"
        "\"n_embd\":24,\"n_inner\":null,\"eos_token_id\":[3,0,5]}", NULL),
        PF_OK);
    assert_int_equal(c.positions, 8);
    assert_int_equal(c.inner, 96);
    assert_int_equal(c.n_eos, 3);
    assert_true(c.eos[0] == 3 && c.eos[1] == 0 && c.eos[2] == 5);
    assert_int_equal(parse(&c, "{\"model_type\":\"gpt2\","
        "\"eos_token_id\":null}", NULL), PF_OK);
    assert_int_equal(c.n_eos, 0);
    assert_int_equal(parse(&c, "{\"model_type\":\"gpt2\","
        "\"eos_token_id\":[]}", NULL), PF_OK);
    assert_int_equal(c.n_eos, 0);
}

/* HuggingFace's BertConfig and DistilBertConfig. */
static void
test_encoders(void **ctx)
{
    struct pf_config c;

    (void)ctx;
    assert_int_equal(parse(&c, "{\"model_type\":\"bert\"}", NULL), PF_OK);
    assert_string_equal(c.type, "bert");
    assert_int_equal(c.vocab, 30522);
    assert_int_equal(c.positions, 512);
    assert_int_equal(c.segments, 2);
    assert_int_equal(c.width, 768);
    assert_int_equal(c.layers, 12);
    assert_int_equal(c.heads, 12);
    assert_int_equal(c.head_dim, 64);
    assert_int_equal(c.inner, 3072);
    assert_true(c.eps == 1e-12f && c.act == PF_GELU && c.n_eos == 0);
    assert_true(c.encoder && c.tied && c.scale_attn && !c.scale_by_layer);
    assert_int_equal(parse(&c, "{\"model_type\":\"bert\",\"vocab_size\":11,"
        "\"max_position_embeddings\":9,\"type_vocab_size\":3,"
        "\"hidden_size\":12,\"num_hidden_layers\":2,"
        "\"num_attention_heads\":3,\"intermediate_size\":7,"
        "\"layer_norm_eps\":0.001,\"hidden_act\":\"gelu_new\","
        "\"tie_word_embeddings\":false,\"is_decoder\":false,"
        "\"position_embedding_type\":\"absolute\"}", NULL), PF_OK);
    assert_true(c.vocab == 11 && c.positions == 9 && c.segments == 3);
    assert_true(c.width == 12 && c.layers == 2 && c.heads == 3);
    assert_true(c.head_dim == 4 && c.inner == 7 && c.eps == 0.001f);
    assert_true(c.act == PF_GELU_TANH && !c.tied);

    assert_int_equal(parse(&c, "{\"model_type\":\"distilbert\"}", NULL),
        PF_OK);
    assert_string_equal(c.type, "distilbert");
    assert_true(c.vocab == 30522 && c.positions == 512 && c.segments == 0);
    assert_true(c.width == 768 && c.layers == 6 && c.heads == 12);
    assert_true(c.inner == 3072 && c.eps == 1e-12f && c.act == PF_GELU);
    assert_true(c.encoder && c.tied && c.scale_attn);
    assert_int_equal(parse(&c, "{\"model_type\":\"distilbert\",\"dim\":12,"
        "\"n_layers\":2,\"n_heads\":4,\"hidden_dim\":5,"
        "\"activation\":\"relu\",\"sinusoidal_pos_embds\":true}", NULL),
        PF_OK);
    assert_true(c.width == 12 && c.layers == 2 && c.heads == 4);
    assert_true(c.inner == 5 && c.act == PF_RELU);
}

static void
test_bad_encoders(void **ctx)
{
    static const struct {
        const char *type, *member, *word;
    } bad[] = {
        { "bert", "\"hidden_size\":0", "hidden_size" },
        { "bert", "\"hidden_size\":100", "multiple of num_attention_heads" },
        { "bert", "\"type_vocab_size\":0", "type_vocab_size" },
        { "bert", "\"layer_norm_eps\":-1", "layer_norm_eps" },
        { "bert", "\"hidden_act\":\"x\"", "hidden_act \"x\"" },
        { "bert", "\"hidden_act\":7", "hidden_act" },
        { "bert", "\"is_decoder\":true", "is_decoder" },
        { "bert", "\"add_cross_attention\":true", "add_cross_attention" },
        { "bert", "\"position_embedding_type\":\"relative_key\"",
            "position_embedding_type" },
        { "bert", "\"position_embedding_type\":1",
            "position_embedding_type" },
        { "distilbert", "\"dim\":100", "dim 100 is not a multiple" },
        { "distilbert", "\"activation\":\"x\"", "activation \"x\"" },
        { "distilbert", "\"n_layers\":1e9", "n_layers" },
    };
    struct pf_config c;
    struct pf_err err;
    char text[200];

    (void)ctx;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sprintf(text, "{\"model_type\":\"%s\",%s}", bad[i].type,
            bad[i].member);
        err.msg[0] = '\0';
        if (parse(&c, text, &err) != PF_EMODEL
            || !strstr(err.msg, bad[i].word))
            fail_msg("%s: %s", bad[i].member, err.msg);
    }
}

static void
test_activations(void **ctx)
{
    static const struct {
        const char *name;
        enum pf_act act;
    } acts[] = { { "gelu_new", PF_GELU_TANH },
        { "gelu_pytorch_tanh", PF_GELU_TANH }, { "gelu_fast", PF_GELU_TANH },
        { "gelu", PF_GELU }, { "relu", PF_RELU }, { "silu", PF_SILU },
        { "swish", PF_SILU }, { "quick_gelu", PF_QUICK_GELU } };
    struct pf_config c;
    char text[128];

    (void)ctx;
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
        sprintf(text, "{\"model_type\":\"gpt2\",\"activation_function\":"
            "\"%s\"}", acts[i].name);
        assert_int_equal(parse(&c, text, NULL), PF_OK);
        assert_int_equal(c.act, acts[i].act);
        assert_string_equal(c.act_name, acts[i].name);
    }
}

static void
test_bad(void **ctx)
{
    /* Behind "model_type": "gpt2"; a word of what is said. */
    static const struct {
        const char *member, *word;
    } bad[] = {
        { "\"vocab_size\":0", "vocab_size" },
        { "\"vocab_size\":1.5", "vocab_size" },
        { "\"vocab_size\":\"5\"", "vocab_size" },
        { "\"n_positions\":-1", "n_positions" },
        { "\"n_ctx\":0", "n_ctx" }, { "\"n_embd\":0", "n_embd" },
        { "\"n_embd\":1e999", "n_embd" }, { "\"n_layer\":0", "n_layer" },
        { "\"n_layer\":1000000", "n_layer" }, { "\"n_head\":0", "n_head" },
        { "\"n_inner\":0", "n_inner" },
        { "\"n_embd\":10,\"n_head\":3", "multiple of n_head 3" },
        { "\"n_embd\":2,\"n_head\":4", "multiple" },
        { "\"layer_norm_epsilon\":-1", "layer_norm_epsilon" },
        { "\"layer_norm_epsilon\":2", "layer_norm_epsilon" },
        { "\"layer_norm_epsilon\":\"x\"", "layer_norm_epsilon" },
        { "\"activation_function\":\"tanhh\"", "tanhh" },
        { "\"activation_function\":\"GELU\"", "GELU" },
        { "\"activation_function\":1", "activation_function" },
        { "\"tie_word_embeddings\":1", "tie_word_embeddings" },
        { "\"scale_attn_weights\":\"true\"", "scale_attn_weights" },
        { "\"add_cross_attention\":true", "add_cross_attention" },
        { "\"eos_token_id\":-1", "eos_token_id" },
        { "\"eos_token_id\":1.5", "eos_token_id" },
        { "\"eos_token_id\":\"1\"", "eos_token_id" },
        { "\"eos_token_id\":[1,null]", "eos_token_id" },
        { "\"eos_token_id\":1e10", "eos_token_id" },
        { "\"eos_token_id\":[1,2,3,4,5,6,7,8,9]", "eos_token_id" },
    };
    struct pf_config c;
    struct pf_err err;
    char text[200];

    (void)ctx;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sprintf(text, "{\"model_type\":\"gpt2\",%s}", bad[i].member);
        err.msg[0] = '\0';
        if (parse(&c, text, &err) != PF_EMODEL
            || !strstr(err.msg, bad[i].word))
            fail_msg("%s: %s", bad[i].member, err.msg);
    }
    assert_int_equal(parse(&c, "{}", &err), PF_EMODEL);
    assert_non_null(strstr(err.msg, "model_type"));
    assert_int_equal(parse(&c, "{\"model_type\":2}", &err), PF_EMODEL);
    assert_int_equal(parse(&c, "{\"model_type\":\"llama\"}", &err),
        PF_EMODEL);
    assert_non_null(strstr(err.msg, "llama"));
    assert_int_equal(parse(&c, "{\"Model_Type\":\"gpt2\"}", &err), PF_EMODEL);
}

static void
test_open(void **ctx)
{
    struct pf_config c;
    struct pf_err err;

    (void)ctx;
    assert_int_equal(pf_config_open(&c, PF_TEST_VOCAB "/fairy", &err), PF_OK);
    assert_int_equal(c.vocab, 4096);
    assert_int_equal(c.positions, 256);
    assert_int_equal(c.layers, 6);
    assert_int_equal(c.head_dim, 40);
    assert_int_equal(c.inner, 640);
    assert_true(c.n_eos == 1 && c.eos[0] == 4095);
    assert_int_not_equal(pf_config_open(&c, "/no/such", &err), PF_OK);
    assert_non_null(strstr(err.msg, "/no/such/config.json"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_looks),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_encoders),
        cmocka_unit_test(test_bad_encoders),
        cmocka_unit_test(test_activations),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_open),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
