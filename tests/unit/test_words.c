#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include <pipeformer/words.h>

/* Tokens with | between, and the word of each as a digit. */
static void
check(const char *tokens, const char *want)
{
    struct pf_word_token token[16];
    size_t word[16], n = 0, words;
    const char *end;

    for (const char *p = tokens;; p = end + 1) {
        end = p + strcspn(p, "|");
        token[n++] = (struct pf_word_token){ p, (size_t)(end - p) };
        if (!*end)
            break;
    }
    words = pf_words(token, n, word);
    assert_int_equal(n, strlen(want));
    for (size_t i = 0; i < n; i++)
        assert_int_equal(word[i], want[i] - '0');
    assert_int_equal(words, want[n - 1] - '0' + 1);
}

static void
test_words(void **state)
{
    (void)state;
    check("[CLS]|two|hip|##pop|##ota|##mi|!|[SEP]", "01222234");
    check("Two| Hipp|opot|ami|!", "01111");
    check("Two| H|\n|\n|The| end", "012345");
    check("\u2581Two\u2581|\u2581Hi|p", "011");
    check("<s>|a| b|c|</s>", "01223");
    check("a| b|<0x0A>|c", "0111");
    check("<|", "01");
    check("a|b|[x]", "012");
    check(" a|b|[MASK]|c", "0012");
    check("##x|##y|z", "001");
    check("[CLS]|##x", "01");
    check(" a||b", "000");
    check("", "0");
    assert_int_equal(pf_words(NULL, 0, NULL), 0);
}

static void
test_merge(void **state)
{
    /* Words {0}, {1, 2}: columns add, rows average. */
    const float map[9] = { 1, 0, 0, 0.5f, 0.5f, 0, 0.25f, 0.25f, 0.5f };
    const size_t word[3] = { 0, 1, 1 };
    float out[4], wide[6];

    (void)state;
    assert_true(pf_words_merge(out, map, 3, 3, word, 2, word, 2));
    assert_float_equal(out[0], 1, 0);
    assert_float_equal(out[1], 0, 0);
    assert_float_equal(out[2], 0.375, 0);
    assert_float_equal(out[3], 0.625, 0);
    assert_true(pf_words_merge(wide, map, 3, 3, word, 2, NULL, 3));
    assert_float_equal(wide[3], 0.375, 0);
    assert_float_equal(wide[4], 0.375, 0);
    assert_float_equal(wide[5], 0.25, 0);
    assert_true(pf_words_merge(wide, map, 3, 3, NULL, 3, word, 2));
    assert_float_equal(wide[5], 0.75, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_merge),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
