/*
 * The encodings that are known by name: their sizes and special tokens, as
 * tiktoken's openai_public.py and BERT's vocab.txt have them; and the same ids
 * whether the tables were prepared or are made from the files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pipeformer/io.h>

#include "../../src/encodings.h"
#include "../../src/tables.h"
#include "../../src/tokenizer-private.h"

struct special {
    const char *text;
    uint32_t id;
};

#define EOT "<|endoftext|>"

static const struct known {
    const char *name, *ranks, *pattern;
    size_t size;
    struct special special[12];
    uint32_t hole; /* an id that is no token */
} known[] = {
    { "gpt2", "gpt2", "gpt2", 50257, { { EOT, 50256 } }, 50257 },
    { "r50k_base", "gpt2", "gpt2", 50257, { { EOT, 50256 } }, 50257 },
    { "p50k_base", "p50k_base", "gpt2", 50281, { { EOT, 50256 } }, 50281 },
    { "p50k_edit", "p50k_base", "gpt2", 50284, { { EOT, 50256 },
        { "<|fim_prefix|>", 50281 }, { "<|fim_middle|>", 50282 },
        { "<|fim_suffix|>", 50283 } }, 50284 },
    { "cl100k_base", "cl100k_base", "cl100k", 100277, { { EOT, 100257 },
        { "<|fim_prefix|>", 100258 }, { "<|fim_middle|>", 100259 },
        { "<|fim_suffix|>", 100260 }, { "<|endofprompt|>", 100276 } },
        100256 },
    { "o200k_base", "o200k_base", "o200k", 200019, { { EOT, 199999 },
        { "<|endofprompt|>", 200018 } }, 199998 },
    { "o200k_harmony", "o200k_base", "o200k", 201088, {
        { "<|startoftext|>", 199998 }, { EOT, 199999 },
        { "<|return|>", 200002 }, { "<|constrain|>", 200003 },
        { "<|channel|>", 200005 }, { "<|start|>", 200006 },
        { "<|end|>", 200007 }, { "<|message|>", 200008 },
        { "<|call|>", 200012 }, { "<|endofprompt|>", 200018 } }, 201088 },
    { "bert-base-uncased", NULL, NULL, 30522, { { "[PAD]", 0 },
        { "[UNK]", 100 }, { "[CLS]", 101 }, { "[SEP]", 102 },
        { "[MASK]", 103 } }, 30522 },
};

enum { N_KNOWN = sizeof known / sizeof *known };

static struct pf_tokenizer *
open_named(const char *name)
{
    struct pf_tokenizer *tok;
    struct pf_err err;

    if (pf_tokenizer_named(&tok, name, &err))
        fail_msg("%s", err.msg);
    return tok;
}

static void
test_list(void **state)
{
    struct pf_tokenizer *tok;
    struct pf_err err;

    (void)state;
    for (size_t i = 0; i < N_KNOWN; i++) {
        const struct pf_encoding *e = pf_encoding_at(i);
        const struct special *s = known[i].special;
        char names[400] = "";

        assert_non_null(e);
        assert_string_equal(e->name, known[i].name);
        assert_int_equal(e->size, known[i].size);
        for (; s->text; s++) {
            strcat(names, names[0] ? " " : "");
            strcat(names, s->text);
        }
        if (strcmp(e->name, "o200k_harmony") == 0)
            strcat(names, " <|reserved_200000|> ... <|reserved_201087|>");
        assert_string_equal(e->special, names);
    }
    assert_null(pf_encoding_at(N_KNOWN));
    assert_null(pf_encoding_at(SIZE_MAX));
    assert_int_equal(pf_tokenizer_named(&tok, "gpt3", &err), PF_EMODEL);
    assert_null(tok);
    assert_non_null(strstr(err.msg, "gpt3"));
    assert_int_equal(pf_tokenizer_named(&tok, "", &err), PF_EMODEL);
    assert_int_equal(pf_tokenizer_named(&tok, "../gpt2", &err), PF_EMODEL);
}

static void
expect_token(const struct pf_tokenizer *tok, uint32_t id, const char *text)
{
    const char *bytes;
    uint32_t found;
    size_t len;

    bytes = pf_tokenizer_token(tok, id, &len);
    assert_non_null(bytes);
    assert_int_equal(len, strlen(text));
    assert_memory_equal(bytes, text, len);
    assert_true(pf_tokenizer_is_special(tok, id));
    assert_true(pf_tokenizer_find_special(tok, text, len, &found));
    assert_int_equal(found, id);
}

static void
test_special(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_KNOWN; i++) {
        struct pf_tokenizer *tok = open_named(known[i].name);
        const struct special *s = known[i].special;
        bool harmony = strcmp(known[i].name, "o200k_harmony") == 0;
        uint32_t id, count = 0;
        size_t len, n = 0;

        assert_int_equal(pf_tokenizer_size(tok), known[i].size);
        for (; s->text; s++, n++)
            expect_token(tok, s->id, s->text);
        for (id = 200000; harmony && id < 201088; id++) {
            char name[32];

            snprintf(name, sizeof name, "<|reserved_%lu|>", (unsigned long)id);
            for (s = known[i].special; s->text && s->id != id; s++)
                ;
            if (!s->text) {
                expect_token(tok, id, name);
                n++;
            } else {
                assert_int_equal(pf_tokenizer_find_special(tok, name,
                    strlen(name), &id), s->id == 200018);
                id = s->id;
            }
        }
        while (pf_tokenizer_special(tok, count, &id))
            count++;
        assert_int_equal(count, n);
        assert_null(pf_tokenizer_token(tok, known[i].hole, &len));
        assert_false(pf_tokenizer_is_special(tok, known[i].hole));
        assert_null(pf_tokenizer_token(tok, UINT32_MAX, &len));
        /* Every other id has a token that is found by its bytes. */
        for (count = 0, id = 0; id < known[i].size; id++)
            count += pf_tokenizer_token(tok, id, &len) != NULL;
        assert_int_equal(count, strncmp(known[i].name, "cl100k", 6) == 0
            ? 100256 + 5 : strcmp(known[i].name, "o200k_base") == 0
            ? 199998 + 2 : known[i].size);
        pf_tokenizer_free(tok);
    }
}

/* --- Prepared or made: the same ids --- */

static uint64_t seed = 7;

static uint32_t
draw(uint32_t n)
{
    seed = seed * 6364136223846793005 + 1442695040888963407;
    return (uint32_t)(seed >> 33) % n;
}

/* Words, signs, digits, spaces, letters of other scripts, stray bytes. */
static size_t
random_text(char *s, size_t room)
{
    static const char *const parts[] = { " the", " of", "ing", "Hello",
        " don't", "I'LL", "  ", "\n", "\n\n", "\r\n", "\t", " ", "1", "2024",
        "...", " (", "==", "/*", "\303\251", "\344\270\255\346\226\207",
        "\320\237\321\200\320\270", "\330\247\331\204", "\340\244\225\341",
        "\360\237\246\212", "\302\240", "\377", "\342\200", "e\314\201",
        "<|endoftext|>", "_", "    ", "aaaaaaaa", "ZZ", "\0" };
    size_t n = 0, len;

    while (draw(60) && n + 20 < room) {
        const char *p = parts[draw(sizeof parts / sizeof *parts)];

        len = strlen(p) + !*p;
        memcpy(s + n, p, len);
        n += len;
    }
    return n;
}

static void
test_prepared(void **state)
{
    int prepared = 0;

    (void)state;
    for (size_t i = 0; i < N_KNOWN; i++) {
        struct pf_tokenizer *named, *made;
        struct pf_encoder *e, *f;
        const uint32_t *a, *b;
        struct pf_err err;
        char text[2000];
        uint64_t source;
        size_t n, k, len;

        if (!known[i].ranks)
            continue;
        named = open_named(known[i].name);
        prepared += named->mapping != NULL;
        made = pf_tokenizer_new();
        assert_non_null(made);
        made->whole = true;
        if (pf_ranks_open(known[i].ranks, false, &made->mapping, &made->vocab,
                &made->bpe, &source, &err))
            fail_msg("%s", err.msg);
        assert_null(made->mapping);
        assert_int_equal(pf_tokenizer_set_pattern(made,
            pf_pretok_named(known[i].pattern), 0, NULL), PF_OK);
        assert_int_equal(pf_tokenizer_finish(made, NULL), PF_OK);
        assert_int_equal(pf_encoder_new(&e, named, NULL), PF_OK);
        assert_int_equal(pf_encoder_new(&f, made, NULL), PF_OK);
        for (int t = 0; t < 3000; t++) {
            len = random_text(text, sizeof text);
            assert_int_equal(pf_encode(e, text, len, &a, &n, NULL), PF_OK);
            assert_int_equal(pf_encode(f, text, len, &b, &k, NULL), PF_OK);
            if (n != k || (n && memcmp(a, b, n * sizeof *a) != 0))
                fail_msg("%s: other ids for \"%.*s\"", known[i].name,
                    (int)len, text);
        }
        /* All tokens, as texts of their own. */
        for (uint32_t id = 0; id < pf_vocab_size(made->vocab); id++) {
            const char *bytes = pf_vocab_bytes(made->vocab, id, &len);
            const char *other = pf_tokenizer_token(named, id, &k);

            if (!bytes)
                continue;
            assert_int_equal(len, k);
            assert_memory_equal(bytes, other, len);
            assert_int_equal(pf_encode(e, bytes, len, &a, &n, NULL), PF_OK);
            assert_int_equal(pf_encode(f, bytes, len, &b, &k, NULL), PF_OK);
            assert_int_equal(n, k);
            assert_memory_equal(a, b, n * sizeof *a);
        }
        pf_encoder_free(e);
        pf_encoder_free(f);
        pf_tokenizer_free(named);
        pf_tokenizer_free(made);
    }
    if (prepared != N_KNOWN - 1)
        print_message("%d of %d encodings had prepared tables\n", prepared,
            N_KNOWN - 1);
}

static void
test_ranks(void **state)
{
    struct pf_mapping *m;
    struct pf_vocab *v;
    struct pf_bpe *b;
    struct pf_err err;
    uint64_t source;
    size_t n = 0;

    (void)state;
    while (pf_ranks_name(n)) {
        bool used = false;

        for (size_t i = 0; i < N_KNOWN; i++)
            used |= known[i].ranks
                && strcmp(known[i].ranks, pf_ranks_name(n)) == 0;
        assert_true(used);
        n++;
    }
    assert_int_equal(n, 4);
    assert_int_equal(pf_ranks_open("nothing", true, &m, &v, &b, &source,
        &err), PF_EMODEL);
    assert_null(m);
    assert_null(v);
    assert_null(b);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_special),
        cmocka_unit_test(test_prepared),
        cmocka_unit_test(test_ranks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
