#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cjson/cJSON.h>

#include <pipeformer/io.h>

#include "tokenizer-private.h"

#define SECTIONS(pre, decoder) "{\"added_tokens\":[{\"id\":1,\"content\":" \
    "\"<s>\",\"special\":true},{\"id\":2,\"content\":\"\u00e9\"},{\"id\":3," \
    "\"content\":\"\u2581x\"},{\"id\":12,\"content\":\"a b\"}]," \
    "\"normalizer\":null,\"pre_tokenizer\":" pre ",\"decoder\":" decoder \
    ",\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{\"\u2581\":0," \
    "\"<s>\":1,\"\u00e9\":2,\"\u2581a\u2581\":4,\"b\":5,\"<0xE2>\":6," \
    "\"<0x20>\":7,\"\u2581\u2581\":8,\"<0x2>\":9,\"\":10,\"a\u0120b\":11}}}"
#define BYTE_LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"
#define REPLACE "{\"type\":\"Replace\",\"pattern\":{\"String\":\"\u2581\"}," \
    "\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}"
#define STRIP "{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}"
#define SEQUENCE(items) "{\"type\":\"Sequence\",\"decoders\":[" items "]}"
#define METASPACE(more) "{\"type\":\"Metaspace\",\"replacement\":\"\u2581\"" \
    more "}"

static struct pf_tokenizer *
load(const char *json)
{
    struct pf_tokenizer *tok;
    struct pf_err err;

    if (pf_tokenizer_json(&tok, json, strlen(json), &err))
        fail_msg("%s", err.msg);
    return tok;
}

enum { END = 0x7fffffff };

/* What the ids make, behind a text that is there already. */
static void
expect_text(const struct pf_tokenizer *tok, const uint32_t *ids,
    const char *want, size_t len)
{
    struct pf_buf out = PF_BUF_INIT;
    bool begun = false;

    pf_buf_addc(&out, ' ');
    for (; *ids != END; ids++)
        assert_int_equal(pf_tokenizer_decode(tok, ids, 1, false, &begun, &out, NULL),
            PF_OK);
    assert_int_equal(out.len, len + 1);
    assert_int_equal(out.data[0], ' ');
    assert_memory_equal(out.data + 1, want, len);
    pf_buf_fini(&out);
}

struct example {
    uint32_t ids[8];
    const char *text;
};

static void
expect_texts(const struct pf_tokenizer *tok, const struct example *e, size_t n)
{
    for (size_t i = 0; i < n; i++)
        expect_text(tok, e[i].ids, e[i].text, strlen(e[i].text));
}

static void
test_bytes(void **state)
{
    static const struct example cases[] = {
        { { END }, "" },
        { { 11, END }, "a b" },
        { { 12, 5, END }, "a bb" },      /* in added_tokens only */
        { { 1, 2, END }, "<s>\xc3\xa9" }, /* literal */
        { { 0, 3, END }, "\u2581\u2581x" },
        { { 6, 10, 7, END }, "<0xE2><0x20>" },
    };
    struct pf_tokenizer *tok = load(SECTIONS(BYTE_LEVEL, BYTE_LEVEL));
    struct pf_buf out = PF_BUF_INIT;
    struct pf_err err;
    bool begun = false;

    (void)state;
    expect_texts(tok, cases, sizeof cases / sizeof *cases);
    assert_int_equal(pf_tokenizer_decode(tok, &(uint32_t){ 13 }, 1, false, &begun, &out, &err),
        PF_ERANGE);
    assert_string_equal(err.msg, "no token has the id 13");
    assert_int_equal(pf_tokenizer_decode(tok, &(uint32_t){ UINT32_MAX }, 1, false, &begun, &out, &err),
        PF_ERANGE);
    assert_false(begun);
    assert_int_equal(out.len, 0);
    pf_buf_fini(&out);
    pf_tokenizer_free(tok);
}

/* Strip takes one space of the text, whatever it came from. */
static void
test_metaspace(void **state)
{
    static const struct example strip[] = {
        { { END }, "" },
        { { 0, END }, "" },
        { { 0, 0, END }, " " },
        { { 8, 5, END }, " b" },
        { { 4, 4, END }, "a  a " },
        { { 10, 0, 5, END }, "b" },
        { { 7, 7, END }, " " },
        { { 1, 0, END }, "<s> " },
        { { 5, 0, END }, "b " },
        { { 9, 3, 2, END }, "<0x2> x\xc3\xa9" },
        { { 11, END }, "a\u0120b" },
        { { 3, END }, "x" },
    };
    static const struct example keep[] = {
        { { 0, 5, END }, " b" },
        { { 4, END }, " a " },
    };
    /* The decoder Metaspace: all of the first token. */
    static const struct example token[] = {
        { { 4, 4, END }, "a a " },
        { { 8, 5, END }, "b" },
        { { 1, 0, END }, "<s> " },
        { { 7, END }, " " },
    };
    struct pf_tokenizer *tok = load(SECTIONS("null", SEQUENCE(REPLACE ","
        STRIP)));
    static const uint32_t raw[] = { 6, 5, 6, END };

    (void)state;
    expect_texts(tok, strip, sizeof strip / sizeof *strip);
    expect_text(tok, raw, "\xe2" "b\xe2", 3);
    pf_tokenizer_free(tok);
    tok = load(SECTIONS("null", SEQUENCE(REPLACE)));
    expect_texts(tok, keep, sizeof keep / sizeof *keep);
    pf_tokenizer_free(tok);
    tok = load(SECTIONS("null", METASPACE(",\"prepend_scheme\":\"never\"")));
    expect_texts(tok, keep, sizeof keep / sizeof *keep);
    pf_tokenizer_free(tok);
    tok = load(SECTIONS("null", METASPACE("")));
    expect_texts(tok, token, sizeof token / sizeof *token);
    pf_tokenizer_free(tok);
}

static void
test_words(void **state)
{
    static const char vocab[] = "[UNK]\n[CLS]\nhello\n##s\n,\nworld\n!\n'\nt\n";
    static const struct example cases[] = {
        { { 2, 4, 5, 6, END }, "hello, world!" },
        { { 3, 2, 3, END }, "##s hellos" },
        { { 1, 2, END }, "[CLS] hello" },
    };
    struct pf_tokenizer *tok;

    (void)state;
    assert_int_equal(pf_tokenizer_bert(&tok, vocab, sizeof vocab - 1, true,
        NULL), PF_OK);
    expect_texts(tok, cases, sizeof cases / sizeof *cases);
    pf_tokenizer_free(tok);
}

static size_t
from_hex(const char *hex, char *out)
{
    size_t n = strlen(hex) / 2;
    unsigned byte;

    for (size_t i = 0; i < n; i++) {
        assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
        out[i] = (char)byte;
    }
    return n;
}

/* The golden cases, of the encodings whose data ships. */
static void
test_golden(void **state)
{
    static const char *const names[] = { "gpt2", "p50k_base", "cl100k_base",
        "o200k_base" };
    struct pf_tokenizer *toks[4] = { NULL };
    char *text, *line, *end, bytes[4000];
    size_t len, n, k, cases = 0;
    uint32_t ids[1000];
    const char *name;
    struct pf_err err;
    cJSON *doc, *id;

    (void)state;
    if (pf_read_file(PF_TEST_GOLDEN "/tokenizer/decode.ndjson", 1 << 24,
            &text, &len, &err))
        fail_msg("%s", err.msg);
    for (line = text; line < text + len; line = end + 1) {
        end = memchr(line, '\n', (size_t)(text + len - line));
        assert_non_null(end);
        doc = cJSON_ParseWithLength(line, (size_t)(end - line));
        assert_non_null(doc);
        name = cJSON_GetObjectItem(doc, "encoding")->valuestring;
        for (k = 0; k < 4 && strcmp(name, names[k]) != 0; k++)
            ;
        assert_true(k < 4);
        if (!toks[k] && pf_tokenizer_named(&toks[k], name, &err))
            fail_msg("%s", err.msg);
        n = 0;
        cJSON_ArrayForEach(id, cJSON_GetObjectItem(doc, "ids")) {
            assert_true(n + 1 < sizeof ids / sizeof *ids);
            ids[n++] = (uint32_t)id->valuedouble;
            assert_int_not_equal(ids[n - 1], END);
        }
        ids[n] = END;
        name = cJSON_GetObjectItem(doc, "bytes_hex")->valuestring;
        assert_true(strlen(name) / 2 <= sizeof bytes);
        expect_text(toks[k], ids, bytes, from_hex(name, bytes));
        cJSON_Delete(doc);
        cases++;
    }
    assert_true(cases > 40);
    for (k = 0; k < 4; k++)
        pf_tokenizer_free(toks[k]);
    free(text);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_metaspace),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_golden),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
