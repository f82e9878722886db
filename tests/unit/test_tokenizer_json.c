#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tokenizer-private.h"

/* The sections of a file as JSON; NULL: the small one that follows. */
struct file {
    const char *added, *normalizer, *pre, *post, *decoder, *model;
};

#define BPE(members) "{\"type\":\"BPE\"," members "}"
#define AB "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]"
#define BYTE_LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false," \
    "\"trim_offsets\":true,\"use_regex\":true}"
#define REPLACE "{\"type\":\"Replace\",\"pattern\":{\"String\":\"\u2581\"}," \
    "\"content\":\" \"}"
#define FALLBACK "{\"type\":\"ByteFallback\"}"
#define FUSE "{\"type\":\"Fuse\"}"
#define STRIP "{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}"
#define SEQUENCE(list, items) "{\"type\":\"Sequence\",\"" list "\":[" items \
    "]}"
#define LLAMA_DECODER SEQUENCE("decoders", REPLACE "," FALLBACK "," FUSE "," \
    STRIP)

static const char *
or(const char *s, const char *other)
{
    return s ? s : other;
}

static void
write_file(struct pf_buf *b, const struct file *f)
{
    pf_buf_clear(b);
    pf_buf_printf(b, "{\"version\":\"1.0\",\"truncation\":null,"
        "\"padding\":{\"strategy\":\"BatchLongest\"},\n \"added_tokens\":%s,"
        "\"normalizer\":%s,\"pre_tokenizer\":%s,", or(f->added, "[]"),
        or(f->normalizer, "null"), or(f->pre, BYTE_LEVEL));
    pf_buf_printf(b, "\"post_processor\":%s,\"decoder\":%s,\"model\":%s}\n",
        or(f->post, "null"), or(f->decoder, BYTE_LEVEL),
        or(f->model, BPE(AB)));
    assert_int_equal(pf_buf_check(b, NULL), PF_OK);
}

/* A copy without anything behind it, so that a sanitizer sees a step over. */
static enum pf_status
load(struct pf_tokenizer **tok, const char *json, size_t len,
    struct pf_err *err)
{
    char *copy = malloc(len ? len : 1);
    enum pf_status st;

    assert_non_null(copy);
    memcpy(copy, json, len);
    st = pf_tokenizer_json(tok, copy, len, err);
    free(copy);
    return st;
}

static struct pf_tokenizer *
load_text(const char *json)
{
    struct pf_tokenizer *tok;
    struct pf_err err;

    if (load(&tok, json, strlen(json), &err))
        fail_msg("%s", err.msg);
    return tok;
}

static struct pf_tokenizer *
load_file(const struct file *f)
{
    struct pf_buf b = PF_BUF_INIT;
    struct pf_tokenizer *tok;
    struct pf_err err;

    write_file(&b, f);
    if (load(&tok, b.data, b.len, &err))
        fail_msg("%s", err.msg);
    pf_buf_fini(&b);
    return tok;
}

static void
expect_fail(const char *json, size_t len, const char *says)
{
    struct pf_err err = { PF_OK, "" };
    struct pf_tokenizer *tok;
    enum pf_status st = load(&tok, json, len, &err);

    assert_null(tok);
    if (!st)
        fail_msg("no failure, expected \"%s\"", says);
    assert_int_equal(st, err.status);
    if (!strstr(err.msg, says))
        fail_msg("\"%s\" is not in \"%s\"", says, err.msg);
    assert_int_equal(load(&tok, json, len, NULL), st);
}

static void
expect_refused(const struct file *f, const char *says)
{
    struct pf_buf b = PF_BUF_INIT;

    write_file(&b, f);
    expect_fail(b.data, b.len, says);
    pf_buf_fini(&b);
}

/* The ids of a text, all special tokens looked for, as "1 2 3". */
static void
expect_ids(const struct pf_tokenizer *tok, const char *text, const char *want)
{
    struct pf_buf got = PF_BUF_INIT;
    struct pf_encoder *enc;
    struct pf_err err;
    const uint32_t *ids;
    size_t n;

    assert_int_equal(pf_encoder_new(&enc, tok, NULL), PF_OK);
    pf_encoder_special_all(enc);
    if (pf_encode(enc, text, strlen(text), &ids, &n, &err))
        fail_msg("%s", err.msg);
    for (size_t i = 0; i < n; i++)
        pf_buf_printf(&got, "%s%lu", i ? " " : "", (unsigned long)ids[i]);
    pf_buf_addc(&got, '\0');
    assert_string_equal(got.data, want);
    pf_buf_fini(&got);
    pf_encoder_free(enc);
}

static void
expect_frame(const struct pf_tokenizer *tok, bool pair, const char *want)
{
    struct pf_buf got = PF_BUF_INIT;
    const struct pf_slot *s;
    size_t n = pf_tokenizer_frame(tok, pair, &s);

    for (size_t i = 0; i < n; i++) {
        if (s[i].id == PF_SLOT_TEXT || s[i].id == PF_SLOT_PAIR)
            pf_buf_printf(&got, "%s%c:%d", i ? " " : "",
                s[i].id == PF_SLOT_TEXT ? 'A' : 'B', (int)s[i].segment);
        else
            pf_buf_printf(&got, "%s%lu:%d", i ? " " : "",
                (unsigned long)s[i].id, (int)s[i].segment);
    }
    pf_buf_addc(&got, '\0');
    assert_string_equal(got.data, want);
    pf_buf_fini(&got);
}

/* As GPT-2's file of 2020: no type, prefixes that are empty strings. */
static void
test_byte_level(void **state)
{
    static const char model[] = "{\"dropout\":null,\"unk_token\":\"<none>\","
        "\"continuing_subword_prefix\":\"\",\"end_of_word_suffix\":\"\","
        "\"fuse_unk\":false,\"vocab\":{\"a\":0,\"b\":1,\"\u0120\":2,"
        "\"ab\":3,\"\u0120ab\":4,\"\u00e9\":5,\"<\u00e9>\":6,\"p q\":7,"
        "\"\\u010A\":8,\"\\\"\":9,\"<|e|>\":10},"
        "\"merges\":[\"a b\",\"\u0120 ab\"]}";
    static const char added[] = "[{\"id\":10,\"content\":\"<|e|>\","
        "\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
        "\"normalized\":true,\"special\":true},"
        "{\"id\":6,\"content\":\"<\u00e9>\",\"special\":false},"
        "{\"id\":12,\"content\":\"<new>\",\"special\":true}]";
    struct file f = { .added = added, .model = model };
    struct pf_tokenizer *tok;
    const char *bytes;
    size_t len;

    (void)state;
    tok = load_file(&f);
    assert_int_equal(tok->model, PF_MODEL_BYTES);
    assert_int_equal(tok->unk, PF_BPE_NONE);
    assert_false(tok->whole);
    assert_int_equal(pf_tokenizer_size(tok), 13);
    bytes = pf_tokenizer_token(tok, 4, &len);
    assert_int_equal(len, 3);
    assert_memory_equal(bytes, " ab", 3);
    /* An added token stands as it is, and so does what is no alphabet. */
    bytes = pf_tokenizer_token(tok, 5, &len);
    assert_int_equal(len, 1);
    assert_memory_equal(bytes, "\xe9", 1);
    bytes = pf_tokenizer_token(tok, 6, &len);
    assert_int_equal(len, 4);
    assert_memory_equal(bytes, "<\xc3\xa9>", 4);
    bytes = pf_tokenizer_token(tok, 7, &len);
    assert_int_equal(len, 3);
    assert_memory_equal(bytes, "p q", 3);
    assert_null(pf_tokenizer_token(tok, 11, &len));
    assert_true(pf_tokenizer_is_special(tok, 10));
    assert_false(pf_tokenizer_is_special(tok, 6));
    assert_true(pf_tokenizer_is_special(tok, 12));
    expect_ids(tok, "ab ab\n\"b<new>a<\xc3\xa9>", "3 4 8 9 1 12 0 6");
    expect_frame(tok, false, "A:0");
    expect_frame(tok, true, "");
    pf_tokenizer_free(tok);
}

/* Merges as arrays, with escapes, and of two of one pair the later. */
static void
test_merges(void **state)
{
    struct file f = { .model = BPE("\"vocab\":{\"a\":0,\"b\":1,\"c\":2,"
        "\"ab\":3,\"bc\":4,\"abc\":5},\"merges\":[[\"a\",\"b\"],"
        "[ \"\\u0062\" , \"c\" ],[\"a\",\"bc\"],[\"a\",\"b\"]]") };
    struct pf_tokenizer *tok = load_file(&f);
    uint32_t id;

    (void)state;
    expect_ids(tok, "abc", "5");
    assert_int_equal(pf_bpe_find(tok->bpe, 0, 1, &id), 3);
    pf_tokenizer_free(tok);
    f.model = BPE("\"ignore_merges\":true,\"dropout\":0.0,\"fuse_unk\":true,"
        "\"merges\":[\"a b\"],\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"ba\":3}");
    tok = load_file(&f);
    assert_true(tok->whole);
    assert_true(tok->fuse_unk);
    expect_ids(tok, "ba", "3");
    pf_tokenizer_free(tok);
    f.model = BPE("\"vocab\":{},\"merges\":[]");
    pf_tokenizer_free(load_file(&f));
}

/* The order in which HuggingFace writes the sections does not matter. */
static void
test_order(void **state)
{
    struct pf_tokenizer *tok = load_text("{\"model\":{\"merges\":[\"a "
        "\\u0120\"],\"vocab\":{\"a\":0,\"\\u0120\":1,\"a\\u0120\":2},"
        "\"type\":\"BPE\"},\"decoder\":" BYTE_LEVEL ",\"pre_tokenizer\":"
        BYTE_LEVEL ",\"added_tokens\":[{\"id\":3,\"content\":\"x\"}]}");
    const char *bytes;
    size_t len;

    (void)state;
    bytes = pf_tokenizer_token(tok, 2, &len);
    assert_int_equal(len, 2);
    assert_memory_equal(bytes, "a ", 2);
    expect_ids(tok, "axa", "0 3 0");
    pf_tokenizer_free(tok);
}

static void
test_added(void **state)
{
    struct file f = {
        .added = "[{\"id\":4,\"content\":\"<m>\",\"lstrip\":true,"
            "\"special\":true},{\"id\":4,\"content\":\"<n>\",\"rstrip\":true,"
            "\"single_word\":true,\"normalized\":false},"
            "{\"id\":9,\"content\":\"  \"},{\"id\":5,"
            "\"content\":\"\u00e9\",\"special\":true}]",
        .model = BPE("\"vocab\":{\"a\":0,\"\u0120\":1,\"\u0120\u0120\":2,"
            "\"\u00e9\":5},\"merges\":[\"\u0120 \u0120\"]"),
    };
    struct pf_tokenizer *tok = load_file(&f);
    const char *bytes;
    size_t len;

    (void)state;
    assert_int_equal(tok->n_added, 4);
    assert_int_equal(pf_tokenizer_size(tok), 10);
    assert_int_equal(tok->added[0].id, 4);
    assert_memory_equal(tok->added[0].text.data, "<m>", 3);
    assert_true(tok->added[0].lstrip && tok->added[0].special);
    assert_false(tok->added[0].rstrip || tok->added[0].normalized);
    assert_memory_equal(tok->added[1].text.data, "<n>", 3);
    assert_true(tok->added[1].rstrip && tok->added[1].single_word);
    assert_false(tok->added[1].lstrip || tok->added[1].normalized
        || tok->added[1].special);
    assert_true(tok->added[3].normalized);
    /* The same bytes, once as characters that stand for them. */
    bytes = pf_tokenizer_token(tok, 2, &len);
    assert_int_equal(len, 2);
    assert_memory_equal(bytes, "  ", 2);
    bytes = pf_tokenizer_token(tok, 9, &len);
    assert_int_equal(len, 2);
    assert_memory_equal(bytes, "  ", 2);
    /* It is in the alphabet, but as an added token it is itself. */
    bytes = pf_tokenizer_token(tok, 5, &len);
    assert_int_equal(len, 2);
    assert_memory_equal(bytes, "\xc3\xa9", 2);
    expect_ids(tok, "a  a\xc3\xa9", "0 9 0 5");
    pf_tokenizer_free(tok);
}

/* Llama 2 and Mistral, in the form of the normalizer and of Metaspace. */
static void
test_metaspace(void **state)
{
#define PIECES "\"unk_token\":\"<unk>\",\"fuse_unk\":true," \
    "\"vocab\":{\"<unk>\":0,\"<s>\":1,\"\u2581\":2,\"a\":3,\"b\":4," \
    "\"\u2581a\":5,\"\u2581\u2581\":6,\"<0x0A>\":7,\"<0xC3>\":8," \
    "\"<0xA9>\":9},\"merges\":[\"\u2581 a\",\"\u2581 \u2581\"]"
    struct file f = {
        .added = "[{\"id\":1,\"content\":\"<s>\",\"special\":true}]",
        .normalizer = SEQUENCE("normalizers",
            "{\"type\":\"Prepend\",\"prepend\":\"\u2581\"},{\"type\":"
            "\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":"
            "\"\u2581\"}"),
        .pre = "null",
        .decoder = LLAMA_DECODER,
        .model = BPE("\"byte_fallback\":true," PIECES),
    };
    static const struct {
        const char *pre, *ids;
    } cases[] = { /* " a a<s>a" and "xya" */
        { "\"prepend_scheme\":\"first\",\"split\":false", "5 5 1 3" },
        { "\"prepend_scheme\":\"always\",\"split\":true", "5 5 1 5" },
        { "\"prepend_scheme\":\"never\",\"split\":false", "5 5 1 3" },
        { "\"add_prefix_space\":true", "5 5 1 5" },
        { "\"add_prefix_space\":false,\"str_rep\":\"\u2581\"", "5 5 1 3" },
    };
    struct pf_tokenizer *tok;
    char pre[200];

    (void)state;
    tok = load_file(&f);
    assert_int_equal(tok->model, PF_MODEL_CHARS);
    assert_int_equal(tok->decode, PF_DECODE_METASPACE);
    assert_true(tok->strip_first);
    expect_ids(tok, "a  a<s>b\n\xc3\xa9", "5 2 5 1 2 4 7 8 9");
    expect_ids(tok, " a", "2 5");
    /* Not all of its bytes are tokens. */
    expect_ids(tok, "\xc3\xbf", "2 0");
    pf_tokenizer_free(tok);

    f.normalizer = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(pre, sizeof pre, "{\"type\":\"Metaspace\",\"replacement\":"
            "\"\u2581\",%s}", cases[i].pre);
        f.pre = pre;
        tok = load_file(&f);
        expect_ids(tok, " a a<s>a", cases[i].ids);
        pf_tokenizer_free(tok);
    }
    /* Without byte fallback all of that is unknown, once for a run. */
    f.pre = "null";
    f.model = BPE(PIECES);
    f.decoder = "{\"type\":\"Metaspace\",\"replacement\":\"\u2581\"}";
    tok = load_file(&f);
    assert_true(tok->strip_token);
    assert_int_equal(tok->unk, 0);
    expect_ids(tok, "axy\nb", "3 0 4");
    pf_tokenizer_free(tok);
    /* Gemma: what is split at has been replaced before. */
    f.normalizer = "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},"
        "\"content\":\"\u2581\"}";
    f.pre = "{\"type\":\"Split\",\"pattern\":{\"String\":\" \"},"
        "\"behavior\":\"MergedWithPrevious\",\"invert\":false}";
    f.decoder = SEQUENCE("decoders", REPLACE "," FALLBACK "," FUSE);
    tok = load_file(&f);
    assert_int_equal(tok->n_cuts, 0);
    assert_false(tok->strip_first);
    expect_ids(tok, "a a", "3 5");
    pf_tokenizer_free(tok);
#undef PIECES
}

#define CL100K "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?" \
    "\\\\p{L}+|\\\\p{N}{1,3}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|" \
    "\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define SPLIT(regex, behavior, invert) "{\"type\":\"Split\",\"pattern\":" \
    "{\"Regex\":\"" regex "\"},\"behavior\":\"" behavior "\",\"invert\":" \
    invert "}"
#define MAPPED "{\"type\":\"ByteLevel\",\"add_prefix_space\":false," \
    "\"trim_offsets\":true,\"use_regex\":false}"

static void
test_patterns(void **state)
{
    static const struct {
        const char *pre;
        size_t n;
        const char *ids; /* of "11a 11" */
    } cases[] = {
        { SEQUENCE("pretokenizers", SPLIT(CL100K, "Isolated", "false") ","
            MAPPED), 1, "2 1 3 2" },
        { SEQUENCE("pretokenizers", SPLIT(CL100K, "Removed", "true") ","
            MAPPED), 1, "2 1 3 2" },
        { SEQUENCE("pretokenizers", SPLIT("1", "Isolated", "true") "," MAPPED),
            1, "0 0 1 3 0 0" },
        { SEQUENCE("pretokenizers", "{\"type\":\"Digits\","
            "\"individual_digits\":true}," BYTE_LEVEL), 2, "0 0 1 3 0 0" },
        { SEQUENCE("pretokenizers", "{\"type\":\"Digits\","
            "\"individual_digits\":false}," BYTE_LEVEL), 2, "2 1 3 2" },
        { SEQUENCE("pretokenizers", MAPPED), 0, "2 1 4 0" },
        { "{\"type\":\"ByteLevel\",\"add_prefix_space\":true}", 1,
            "4 0 1 4 0" },
    };
    struct file f = { .model = BPE("\"vocab\":{\"1\":0,\"a\":1,\"11\":2,"
        "\"\u0120\":3,\"\u01201\":4},\"merges\":[\"\u0120 1\",\"1 1\"]") };
    struct pf_tokenizer *tok;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        f.pre = cases[i].pre;
        tok = load_file(&f);
        assert_int_equal(tok->n_cuts, cases[i].n);
        if (i == 0 || i == 1) {
            /* cl100k keeps " " from digits: "11", "a", " ", "11". */
            assert_int_equal(pf_pretok_scan(tok->cuts[0].pretok),
                PF_SCAN_CL100K);
        }
        expect_ids(tok, "11a 11", cases[i].ids);
        pf_tokenizer_free(tok);
    }
}

#define BERT "{\"type\":\"BertNormalizer\",\"clean_text\":true," \
    "\"handle_chinese_chars\":true,\"strip_accents\":null," \
    "\"lowercase\":true}"
#define WORDS "\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\"," \
    "\"max_input_chars_per_word\":4,\"vocab\":{\"[UNK]\":0,\"[CLS]\":1," \
    "\"[SEP]\":2,\"ab\":3,\"##c\":4,\"!\":5,\"e\":6}"

static void
test_words(void **state)
{
    struct file f = {
        .added = "[{\"id\":1,\"content\":\"[CLS]\",\"special\":true}]",
        .normalizer = BERT,
        .pre = "{\"type\":\"BertPreTokenizer\"}",
        .decoder = "{\"type\":\"WordPiece\",\"prefix\":\"##\","
            "\"cleanup\":false}",
        .model = "{\"type\":\"WordPiece\"," WORDS "}",
    };
    struct pf_tokenizer *tok = load_file(&f);

    (void)state;
    assert_int_equal(tok->model, PF_MODEL_WORDS);
    assert_int_equal(tok->decode, PF_DECODE_WORDS);
    assert_false(tok->clean_up);
    assert_true(tok->steps[0].accents && tok->steps[0].lower
        && tok->steps[0].clean && tok->steps[0].cjk);
    expect_ids(tok, "ABC! \xc3\x89 abcc[CLS]abccc ax",
        "3 4 5 6 3 4 4 1 0 0");
    pf_tokenizer_free(tok);
    f.model = "{" WORDS "}"; /* as in files of 2020 */
    f.normalizer = SEQUENCE("normalizers", "{\"type\":\"NFD\"},{\"type\":"
        "\"Lowercase\"},{\"type\":\"StripAccents\"},{\"type\":\"Strip\","
        "\"strip_left\":true,\"strip_right\":false},{\"type\":\"NFC\"}");
    tok = load_file(&f);
    assert_int_equal(tok->n_steps, 5);
    assert_true(tok->steps[3].left && !tok->steps[3].right);
    expect_ids(tok, " AB \xc3\x89", "3 6");
    pf_tokenizer_free(tok);
}

#define SPECIALS "\"special_tokens\":{\"x\":{\"id\":\"x\",\"ids\":[7]," \
    "\"tokens\":[\"x\"]},\"[CLS]\":{\"id\":\"[CLS]\",\"ids\":[0,1]," \
    "\"tokens\":[\"a\",\"b\"]}}"
#define PLACE(kind, id, segment) "{\"" kind "\":{\"id\":\"" id \
    "\",\"type_id\":" segment "}}"
#define CLS(segment) PLACE("SpecialToken", "[CLS]", segment)
#define TEXT(id, segment) PLACE("Sequence", id, segment)
#define TEMPLATE(single, pair) "{\"type\":\"TemplateProcessing\"," \
    "\"single\":[" single "],\"pair\":[" pair "]," SPECIALS "}"
#define GOOD_PAIR TEXT("A", "0") "," TEXT("B", "1")

static void
test_templates(void **state)
{
    static const struct {
        const char *post, *single, *pair;
    } cases[] = {
        { BYTE_LEVEL, "A:0", "" },
        { TEMPLATE(CLS("0") "," TEXT("A", "3"), TEXT("B", "1") "," CLS("1")
            "," TEXT("A", "0")), "0:0 1:0 A:3", "B:1 0:1 1:1 A:0" },
        { SEQUENCE("processors", BYTE_LEVEL "," TEMPLATE(TEXT("A", "0"),
            GOOD_PAIR)), "A:0", "A:0 B:1" },
        { "{\"type\":\"BertProcessing\",\"sep\":[\"b\",1],\"cls\":[\"a\",0]}",
            "0:0 A:0 1:0", "0:0 A:0 1:0 B:1 1:1" },
        { "{\"type\":\"RobertaProcessing\",\"sep\":[\"b\",1],\"cls\":[\"a\","
            "0],\"trim_offsets\":true,\"add_prefix_space\":false}",
            "0:0 A:0 1:0", "0:0 A:0 1:0 1:0 B:0 1:0" },
    };
    struct pf_tokenizer *tok;
    struct file f = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        f.post = cases[i].post;
        tok = load_file(&f);
        expect_frame(tok, false, cases[i].single);
        expect_frame(tok, true, cases[i].pair);
        pf_tokenizer_free(tok);
    }
}

static void
test_refused(void **state)
{
    static const struct {
        struct file f;
        const char *says;
    } cases[] = {
        /* normalizer */
        { { .normalizer = "{\"type\":\"NFKC\"}" },
            "normalizer: type NFKC is not supported" },
        { { .normalizer = "{\"type\":\"Precompiled\",\"x\":\"\"}" },
            "normalizer: type Precompiled is not supported" },
        { { .normalizer = "{}" }, "normalizer: no type" },
        { { .normalizer = "{\"type\":7}" }, "normalizer: JSON has '7'" },
        { { .normalizer = "[]" }, "normalizer: JSON has '['" },
        { { .normalizer = "true" }, "normalizer: JSON has 't'" },
        { { .normalizer = "{\"type\":\"NFC\",\"form\":2}" },
            "normalizer: NFC: member form is not supported" },
        { { .normalizer = "{\"type\":\"NFC\",\"type\":\"NFC\"}" },
            "normalizer: NFC: type stands twice" },
        { { .normalizer = SEQUENCE("normalizers", SEQUENCE("normalizers",
            "")) }, "normalizer: type Sequence is not supported" },
        { { .normalizer = "{\"type\":\"Sequence\"}" },
            "normalizer: no normalizers" },
        { { .normalizer = SEQUENCE("pretokenizers", "") },
            "normalizer: member pretokenizers is not supported" },
        { { .normalizer = "{\"type\":\"Prepend\"}" },
            "normalizer: Prepend: no prepend" },
        { { .normalizer = "{\"type\":\"Prepend\",\"prepend\":null}" },
            "normalizer: Prepend: prepend is no string" },
        { { .normalizer = "{\"type\":\"Replace\",\"pattern\":{\"Regex\":"
            "\"a+\"},\"content\":\"b\"}" },
            "normalizer: Replace: a Regex (a+) is not supported" },
        { { .normalizer = "{\"type\":\"Replace\",\"pattern\":{\"String\":"
            "\"\"},\"content\":\"b\"}" },
            "normalizer: Replace: an empty pattern is not supported" },
        { { .normalizer = "{\"type\":\"Replace\",\"pattern\":\"a\"}" },
            "normalizer: Replace: pattern: JSON has" },
        { { .normalizer = "{\"type\":\"Replace\",\"pattern\":{\"String\":"
            "\"a\",\"Regex\":\"a\"},\"content\":\"b\"}" },
            "normalizer: Replace: pattern is neither String nor Regex" },
        { { .normalizer = "{\"type\":\"Replace\",\"pattern\":{\"String\":"
            "\"a\"}}" }, "normalizer: Replace: no content" },
        { { .normalizer = "{\"type\":\"BertNormalizer\",\"lowercase\":1}" },
            "BertNormalizer: lowercase is neither true nor false" },
        { { .normalizer = "{\"type\":\"Strip\",\"strip_left\":null}" },
            "Strip: strip_left is neither true nor false" },
        /* pre_tokenizer */
        { { .pre = "{\"type\":\"Whitespace\"}" },
            "pre_tokenizer: type Whitespace is not supported" },
        { { .pre = SEQUENCE("pretokenizers", BYTE_LEVEL "," BYTE_LEVEL) },
            "pre_tokenizer: ByteLevel: nothing is supported behind "
            "ByteLevel" },
        { { .pre = SEQUENCE("pretokenizers", MAPPED "," MAPPED) },
            "pre_tokenizer: ByteLevel: stands twice" },
        { { .pre = SEQUENCE("pretokenizers", MAPPED ",{\"type\":\"Digits\"}")
            }, "pre_tokenizer: Digits: nothing is supported behind" },
        { { .pre = "{\"type\":\"ByteLevel\",\"use_regex\":false}" },
            "ByteLevel: add_prefix_space without use_regex is not" },
        { { .pre = "{\"type\":\"Digits\",\"individual_digits\":\"no\"}" },
            "Digits: individual_digits is neither true nor false" },
        { { .pre = SPLIT("a", "MergedWithNext", "false") },
            "Split: behavior MergedWithNext is not supported" },
        { { .pre = SPLIT("a", "Removed", "false") },
            "Split: behavior Removed is not supported" },
        { { .pre = SPLIT("a", "Contiguous", "true") },
            "Split: behavior Contiguous with invert is not supported" },
        { { .pre = SPLIT("a+", "Removed", "true") },
            "Split: behavior Removed with invert is not supported with this "
            "pattern" },
        { { .pre = "{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},"
            "\"behavior\":\"Isolated\",\"invert\":false}" },
            "Split: a String (a) is not supported" },
        { { .pre = SPLIT("a\\u0000b", "Isolated", "false") },
            "Split: U+0000 in a pattern is not supported" },
        { { .pre = SPLIT("(a", "Isolated", "false") }, "Split: " },
        { { .pre = SPLIT("\\\\p{P}", "Isolated", "false") }, "\\p{P}" },
        { { .pre = SPLIT("\\\\w+", "Isolated", "false") }, "\\w" },
        { { .pre = "{\"type\":\"Metaspace\",\"replacement\":\"_\"}" },
            "Metaspace: replacement \"_\" is not supported" },
        { { .pre = "{\"type\":\"Metaspace\",\"replacement\":\"\u2581\","
            "\"str_rep\":\"_\"}" }, "Metaspace: str_rep \"_\" is not" },
        { { .pre = "{\"type\":\"Metaspace\",\"replacement\":\"\u2581\","
            "\"prepend_scheme\":\"last\"}" },
            "Metaspace: prepend_scheme \"last\" is not supported" },
        { { .pre = "{\"type\":\"Metaspace\",\"replacement\":\"\u2581\","
            "\"add_prefix_space\":false,\"prepend_scheme\":\"first\"}" },
            "Metaspace: add_prefix_space and prepend_scheme do not agree" },
        { { .pre = SEQUENCE("pretokenizers", "{\"type\":\"BertPreTokenizer\"},"
            "{\"type\":\"Metaspace\",\"replacement\":\"\u2581\"}") },
            "Metaspace: is not supported behind another" },
        /* added_tokens */
        { { .added = "{}" }, "added_tokens: JSON has '{'" },
        { { .added = "[7]" }, "added_tokens: JSON has '7'" },
        { { .added = "[{\"content\":\"x\"}]" }, "added_tokens: no id" },
        { { .added = "[{\"id\":9}]" }, "added_tokens: no content" },
        { { .added = "[{\"id\":9,\"content\":\"\"}]" },
            "added_tokens: a token is empty" },
        { { .added = "[{\"id\":-1,\"content\":\"x\"}]" },
            "added_tokens: id -1 is no whole number in 0 to 1048575" },
        { { .added = "[{\"id\":1048576,\"content\":\"x\"}]" },
            "added_tokens: id 1048576 is no whole number in" },
        { { .added = "[{\"id\":99999999999999999999999,\"content\":\"x\"}]" },
            "added_tokens: id 99999999999999999999999 is no" },
        { { .added = "[{\"id\":1.5,\"content\":\"x\"}]" },
            "added_tokens: id 1.5 is no" },
        { { .added = "[{\"id\":9,\"content\":\"x\",\"special\":\"yes\"}]" },
            "added_tokens: special is neither true nor false" },
        { { .added = "[{\"id\":9,\"content\":\"x\",\"color\":1}]" },
            "added_tokens: member color is not supported" },
        { { .added = "[{\"id\":9,\"content\":\"x\"},{\"id\":8,\"content\":"
            "\"x\"}]" }, "added_tokens: token x stands twice" },
        { { .added = "[{\"id\":1,\"content\":\"a\"}]" },
            "model: vocab: token a has id 0, in added_tokens it has 1" },
        { { .added = "[{\"id\":1,\"content\":\"x\"}]" },
            "model: vocab: token x has id 1, which is the id of b" },
        { { .added = "[{\"id\":9,\"content\":\"x\",\"normalized\":true,"
            "\"rstrip\":true}]", .pre = "{\"type\":\"Metaspace\","
            "\"replacement\":\"\u2581\"}" }, "added_tokens: token x: "
            "normalized with lstrip or rstrip beside Metaspace" },
        /* model */
        { { .model = "null" }, "model: JSON has 'n'" },
        { { .model = "{}" }, "model: no vocab" },
        { { .model = "{\"vocab\":{}}" }, "model: no type" },
        { { .model = "{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[]}" },
            "model: type Unigram is not supported" },
        { { .model = "{\"type\":\"WordLevel\",\"vocab\":{}}" },
            "model: type WordLevel is not supported" },
        { { .model = BPE("\"merges\":[]") }, "model: no vocab" },
        { { .model = BPE("\"vocab\":{}") }, "model: BPE: no merges" },
        { { .model = BPE(AB ",\"dropout\":0.1") },
            "model: BPE: dropout 0.1 is not supported" },
        { { .model = BPE(AB ",\"dropout\":\"0\"") },
            "model: BPE: dropout \"0\" is not supported" },
        { { .model = BPE(AB ",\"continuing_subword_prefix\":\"@@\"") },
            "BPE: continuing_subword_prefix \"@@\" is not supported" },
        { { .model = BPE(AB ",\"end_of_word_suffix\":\"</w>\"") },
            "BPE: end_of_word_suffix \"</w>\" is not supported" },
        { { .model = BPE(AB ",\"cache_capacity\":3") },
            "model: member cache_capacity is not supported" },
        { { .model = BPE(AB ",\"max_input_chars_per_word\":3") },
            "BPE: member max_input_chars_per_word is not supported" },
        { { .model = BPE(AB ",\"fuse_unk\":0") },
            "BPE: fuse_unk is neither true nor false" },
        { { .model = BPE(AB ",\"byte_fallback\":true") },
            "BPE: byte_fallback beside ByteLevel is not supported" },
        { { .model = BPE(AB ",\"vocab\":{}") }, "model: vocab stands twice" },
        { { .model = BPE("\"vocab\":[],\"merges\":[]") },
            "model: vocab: JSON has '['" },
        { { .model = BPE("\"vocab\":{\"a\":null},\"merges\":[]") },
            "vocab: the id of token a is no whole number in 0 to 1048575" },
        { { .model = BPE("\"vocab\":{\"a\":-1},\"merges\":[]") },
            "vocab: the id of token a is no" },
        { { .model = BPE("\"vocab\":{\"a\":1e3},\"merges\":[]") },
            "vocab: the id of token a is no" },
        { { .model = BPE("\"vocab\":{\"a\":16777216},\"merges\":[]") },
            "vocab: the id of token a is no" },
        { { .model = BPE("\"vocab\":{\"a\":99999999999999999999},"
            "\"merges\":[]") }, "vocab: the id of token a is no" },
        { { .model = BPE("\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]") },
            "vocab: id 0 is given to two tokens, the second is b" },
        { { .model = BPE("\"vocab\":{\"a\":0,\"a\":1},\"merges\":[]") },
            "vocab: token a has two ids, 0 and 1" },
        { { .model = BPE("\"vocab\":{\"a\":0},\"merges\":[\"a b\"]") },
            "merges: number 0: b is not in the vocabulary" },
        { { .model = BPE("\"vocab\":{\"a\":0,\"aa\":1},"
            "\"merges\":[\"a a\",[\"a\",\"aa\"]]") }, "merges: number 1: a "
            "and aa make a token that is not in the vocabulary" },
        { { .model = BPE("\"vocab\":{\"a\":0},\"merges\":[\"aa\"]") },
            "merges: number 0: is not two symbols: aa" },
        { { .model = BPE("\"vocab\":{\"a\":0},\"merges\":[\"a a a\"]") },
            "merges: number 0: is not two symbols: a a a" },
        { { .model = BPE("\"vocab\":{\"a\":0},\"merges\":[\"a \"]") },
            "merges: number 0:  is not in the vocabulary" },
        { { .model = BPE("\"vocab\":{\"a\":0},\"merges\":[[\"a\"]]") },
            "merges: number 0: is not two symbols" },
        { { .model = BPE("\"vocab\":{\"a\":0},\"merges\":[[\"a\",\"a\","
            "\"a\"]]") }, "merges: number 0: is not two symbols" },
        { { .model = BPE("\"vocab\":{\"a\":0},\"merges\":[7]") },
            "merges: number 0: JSON has '7'" },
        { { .model = BPE("\"vocab\":{\"a\":0},\"merges\":{}") },
            "merges: JSON has '{'" },
        { { .model = BPE("\"merges\":[7],\"vocab\":{\"a\":0}") },
            "merges: number 0: JSON has '7'" },
        { { .pre = "null", .decoder = LLAMA_DECODER,
            .model = BPE(AB ",\"unk_token\":\"u\"") },
            "BPE: unk_token u is not in the vocabulary" },
        { { .model = "{\"type\":\"WordPiece\"," WORDS "}" },
            "WordPiece: ByteLevel beside it is not supported" },
        { { .pre = "null", .model = "{\"type\":\"WordPiece\",\"merges\":[],"
            WORDS "}" }, "WordPiece: member merges is not supported" },
        { { .pre = "null", .model = "{\"type\":\"WordPiece\",\"vocab\":{}}" },
            "WordPiece: no continuing_subword_prefix" },
        { { .pre = "null", .model = "{\"type\":\"WordPiece\",\"vocab\":{},"
            "\"continuing_subword_prefix\":\"\"}" },
            "WordPiece: no max_input_chars_per_word" },
        { { .pre = "null", .model = "{\"vocab\":{},"
            "\"continuing_subword_prefix\":\"\","
            "\"max_input_chars_per_word\":-3}" },
            "WordPiece: max_input_chars_per_word -3 is no whole number" },
        { { .pre = "null", .model = "{\"vocab\":{},"
            "\"continuing_subword_prefix\":\"\","
            "\"max_input_chars_per_word\":9}" }, "WordPiece: no unk_token" },
        { { .pre = "null", .model = "{\"vocab\":{},\"unk_token\":\"u\","
            "\"continuing_subword_prefix\":\"\","
            "\"max_input_chars_per_word\":9}" },
            "WordPiece: unk_token u is not in the vocabulary" },
        /* decoder */
        { { .decoder = "null" }, "decoder: none is not supported" },
        { { .decoder = "{\"type\":\"CTC\"}" },
            "decoder: type CTC is not supported" },
        { { .decoder = LLAMA_DECODER },
            "decoder: this sequence is not supported with this model" },
        { { .pre = "null" },
            "decoder: this sequence is not supported with this model" },
        { { .pre = "null", .decoder = SEQUENCE("decoders", FUSE "," REPLACE) },
            "decoder: this sequence is not supported" },
        { { .decoder = SEQUENCE("decoders", FUSE "," FUSE "," FUSE "," FUSE
            "," FUSE "," FUSE "," FUSE "," FUSE) },
            "decoder: Fuse: more than 7 steps" },
        { { .decoder = "{\"type\":\"Replace\",\"pattern\":{\"String\":\"_\"},"
            "\"content\":\" \"}" }, "Replace: other than U+2581 by a space" },
        { { .decoder = "{\"type\":\"Strip\",\"content\":\" \",\"start\":2,"
            "\"stop\":0}" }, "Strip: other than of one space in front" },
        { { .decoder = "{\"type\":\"WordPiece\",\"prefix\":\"##\"}" },
            "WordPiece: prefix ##, which is not the model's" },
        /* post_processor */
        { { .post = "{\"type\":\"Mystery\"}" },
            "post_processor: type Mystery is not supported" },
        { { .post = "{\"type\":\"TemplateProcessing\"}" },
            "post_processor: TemplateProcessing: no special_tokens" },
        { { .post = "{\"type\":\"TemplateProcessing\"," SPECIALS "}" },
            "TemplateProcessing: single: no single" },
        { { .post = TEMPLATE("", GOOD_PAIR) },
            "single: A does not stand once and alone" },
        { { .post = TEMPLATE(GOOD_PAIR, GOOD_PAIR) },
            "single: A does not stand once and alone" },
        { { .post = TEMPLATE(TEXT("A", "0"), TEXT("A", "0")) },
            "pair: A and B do not stand once each" },
        { { .post = TEMPLATE(TEXT("C", "0"), GOOD_PAIR) },
            "single: Sequence C is neither A nor B" },
        { { .post = TEMPLATE("{}", GOOD_PAIR) },
            "single: a place is neither SpecialToken nor Sequence" },
        { { .post = TEMPLATE(PLACE("SpecialToken", "y", "0"), GOOD_PAIR) },
            "single: y is not in special_tokens" },
        { { .post = TEMPLATE(PLACE("SpecialToken", "x", "0"), GOOD_PAIR) },
            "single: id 7 is no token" },
        { { .post = TEMPLATE(TEXT("A", "-1"), GOOD_PAIR) },
            "single: type_id -1 is no whole number" },
        { { .post = SEQUENCE("processors", TEMPLATE(TEXT("A", "0"), GOOD_PAIR)
            "," TEMPLATE(TEXT("A", "0"), GOOD_PAIR)) },
            "single: a second template is not supported" },
        { { .post = "{\"type\":\"BertProcessing\",\"sep\":[\"b\",1]}" },
            "BertProcessing: no cls" },
        { { .post = "{\"type\":\"BertProcessing\",\"sep\":[\"b\"],"
            "\"cls\":[\"a\",0]}" },
            "BertProcessing: sep is no token with its id" },
        { { .post = "{\"type\":\"BertProcessing\",\"sep\":[\"b\",\"c\"],"
            "\"cls\":[\"a\",0]}" }, "sep \"c\" is no whole number" },
        { { .post = "{\"type\":\"BertProcessing\",\"sep\":[\"b\",9],"
            "\"cls\":[\"a\",0]}" }, "BertProcessing: id 9 is no token" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_refused(&cases[i].f, cases[i].says);
}

static void
test_whole(void **state)
{
    static const struct {
        const char *json, *says;
    } cases[] = {
        { "", "JSON ends where an object should be" },
        { "[]", "JSON has '['" },
        { "{}", "no model" },
        { "{\"version\":\"2.0\"}", "version \"2.0\" is not supported" },
        { "{\"version\":\"1.0\",\"extra\":1}",
            "member extra is not supported" },
        { "{\"version\":\"1.0\",\"version\":\"1.0\"}",
            "version stands twice" },
        { "{\"model\":{\"type\":\"BPE\"," AB "}} x", "JSON has 'x'" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"\xff\":0}}}",
            "not UTF-8" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"\\ud800\":0}}}",
            "surrogate" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\nb\":0}}}",
            "control character" },
        { "{\"normalizer\":null,\"pre_tokenizer\":null,\"added_tokens\":[],"
            "\"model\":{\"vocab\":{\"\xc3(\":0}}}", "not UTF-8" },
        { "{\"normalizer\":null,\"pre_tokenizer\":null,\"added_tokens\":[],"
            "\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"a\n\"]}}",
            "control character" },
        { "{\"normalizer\":null,\"pre_tokenizer\":null,\"added_tokens\":[],"
            "\"model\":{\"vocab\":{\"a\" 0}}}", "a name without a value: a" },
    };
    struct pf_buf b = PF_BUF_INIT;
    struct pf_err err;
    struct file f = {
        .added = "[{\"id\":9,\"content\":\"<\\u00e9>\",\"special\":true}]",
        .normalizer = BERT,
        .pre = SEQUENCE("pretokenizers", SPLIT("a+", "Isolated", "false") ","
            BYTE_LEVEL),
        .post = TEMPLATE(CLS("0") "," TEXT("A", "0"), GOOD_PAIR),
    };
    struct pf_tokenizer *tok;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_fail(cases[i].json, strlen(cases[i].json), cases[i].says);
    /* Cut off anywhere, it is an error; so with any byte turned over. */
    write_file(&b, &f);
    pf_tokenizer_free(load_file(&f));
    for (size_t len = 0; len + 1 < b.len; len++) {
        assert_int_not_equal(load(&tok, b.data, len, &err), PF_OK);
        assert_null(tok);
    }
    for (size_t i = 0; i < b.len; i++) {
        for (int bit = 0; bit < 8; bit++) {
            b.data[i] = (char)(b.data[i] ^ 1 << bit);
            if (load(&tok, b.data, b.len, &err) == PF_OK)
                pf_tokenizer_free(tok);
            b.data[i] = (char)(b.data[i] ^ 1 << bit);
        }
    }
    /* Deep nesting costs no stack. */
    pf_buf_clear(&b);
    pf_buf_adds(&b, "{\"padding\":");
    for (int i = 0; i < 100000; i++)
        pf_buf_addc(&b, '[');
    expect_fail(b.data, b.len, "JSON nests deeper than");
    pf_buf_fini(&b);
}

/* Many of everything, in time that grows as the file does. */
static void
test_large(void **state)
{
    enum { N = 60000 };
    struct pf_buf b = PF_BUF_INIT;
    struct pf_tokenizer *tok;
    struct pf_err err;

    (void)state;
    pf_buf_adds(&b, "{\"added_tokens\":[");
    for (int i = 0; i < N; i++)
        pf_buf_printf(&b, "%s{\"id\":%d,\"content\":\"<%d>\"}",
            i ? "," : "", N + i, i);
    pf_buf_adds(&b, "],\"normalizer\":null,\"pre_tokenizer\":" BYTE_LEVEL
        ",\"model\":{\"vocab\":{\"<\":0");
    for (int i = 1; i < N; i++)
        pf_buf_printf(&b, ",\"%d\":%d,\"<%d\":%d", i, i, i, 2 * N + i);
    pf_buf_adds(&b, "},\"merges\":[");
    for (int i = 1; i < N; i++)
        pf_buf_printf(&b, "%s\"< %d\"", i > 1 ? "," : "", i);
    pf_buf_adds(&b, "]},\"decoder\":" BYTE_LEVEL "}");
    assert_int_equal(pf_buf_check(&b, NULL), PF_OK);
    if (load(&tok, b.data, b.len, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(tok->n_added, N);
    assert_int_equal(pf_tokenizer_size(tok), 3 * N);
    pf_tokenizer_free(tok);
    pf_buf_fini(&b);
}

static struct pf_tokenizer *
bert(const char *text, bool lower)
{
    struct pf_tokenizer *tok;
    struct pf_err err;

    if (pf_tokenizer_bert(&tok, text, strlen(text), lower, &err))
        fail_msg("%s", err.msg);
    return tok;
}

static void
test_bert(void **state)
{
    struct pf_tokenizer *tok;
    struct pf_err err;
    size_t len;

    (void)state;
    tok = bert("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\nA\n!", true);
    assert_int_equal(pf_tokenizer_size(tok), 9);
    assert_int_equal(tok->n_added, 5);
    assert_true(pf_tokenizer_is_special(tok, 4));
    expect_ids(tok, "AB a![MASK]\xc3\xa4 x", "5 6 5 8 4 5 1");
    expect_frame(tok, false, "2:0 A:0 3:0");
    expect_frame(tok, true, "2:0 A:0 3:0 B:1 3:1");
    pf_tokenizer_free(tok);
    /* CR LF, an empty line, white space at the end, the later of two. */
    tok = bert("[UNK]\r\na\r\n\r\nb \xe2\x80\x83\t\na\n", false);
    assert_int_equal(pf_tokenizer_size(tok), 5);
    assert_null(pf_tokenizer_token(tok, 1, &len));
    assert_null(pf_tokenizer_token(tok, 2, &len));
    assert_non_null(pf_tokenizer_token(tok, 3, &len));
    assert_int_equal(len, 1);
    expect_ids(tok, "a b A", "4 3 0");
    expect_frame(tok, false, "A:0");
    pf_tokenizer_free(tok);
    assert_int_equal(pf_tokenizer_bert(&tok, "", 0, true, &err), PF_EFORMAT);
    assert_string_equal(err.msg, "no token [UNK]");
    assert_null(tok);
    assert_int_equal(pf_tokenizer_bert(&tok, "[UNK]\nb\xff\n", 9, true, &err),
        PF_EFORMAT);
    assert_string_equal(err.msg, "line 2 is not UTF-8: b\\xff");
    assert_int_equal(pf_tokenizer_bert(&tok, "\n\n[UNK]", 7, true, NULL),
        PF_OK);
    pf_tokenizer_free(tok);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_byte_level),
        cmocka_unit_test(test_merges),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_added),
        cmocka_unit_test(test_metaspace),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_templates),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_bert),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
