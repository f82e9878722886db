#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include <pipeformer/utf8.h>
#include <pipeformer/width.h>

static void
test_char(void **state)
{
    static const struct {
        uint32_t c;
        unsigned width;
    } cases[] = {
        { 'a', 1 }, { 0xe9, 1 }, { 0x2ff, 1 },
        { 0x300, 0 },   /* combining grave */
        { 0x36f, 0 }, { 0x370, 1 }, { 0x200d, 0 }, { 0xfe0f, 0 },
        { 0x10ff, 1 }, { 0x1100, 2 }, { 0x115f, 2 }, /* Hangul */
        { 0x1160, 0 }, { 0x11ff, 0 }, { 0x1200, 1 },
        { 0x3000, 2 }, { 0x303f, 1 }, { 0x3041, 2 }, { 0x4e00, 2 },
        { 0xac00, 2 }, { 0xd7a3, 2 }, { 0xff21, 2 }, { 0xff71, 1 },
        { 0x1f34f, 2 }, /* green apple */
        { 0x20000, 2 }, { 0x2fffd, 2 }, { 0x3fffd, 2 }, { 0xe0100, 0 },
        { 0x10ffff, 1 }, { 0x378, 1 }, { 0x1fae8, 2 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(pf_char_width(cases[i].c), cases[i].width);
}

static void
test_text(void **state)
{
    /* a, e with acute, a wide one, b: 1 + 1 + 2 + 1 */
    const char *s = "ae\u0301\u6f22b";
    unsigned columns;

    (void)state;
    assert_int_equal(pf_width(s, strlen(s)), 5);
    assert_int_equal(pf_width("", 0), 0);
    assert_int_equal(pf_width_cut(s, strlen(s), 0), 0);
    assert_int_equal(pf_width_cut(s, strlen(s), 1), 1);
    assert_int_equal(pf_width_cut(s, strlen(s), 2), 4);
    assert_int_equal(pf_width_cut(s, strlen(s), 3), 4);
    assert_int_equal(pf_width_cut(s, strlen(s), 4), 7);
    assert_int_equal(pf_width_cut(s, strlen(s), 9), 8);
    assert_int_equal(pf_width_next(s + 1, 7, &columns), 3);
    assert_int_equal(columns, 1);
    assert_int_equal(pf_width_next(s + 4, 4, &columns), 3);
    assert_int_equal(columns, 2);
    assert_int_equal(pf_width_next(s, 0, &columns), 0);
    assert_int_equal(columns, 0);
}

static void
shows(const char *s, size_t len, const char *want)
{
    struct pf_buf b = PF_BUF_INIT;

    pf_readable(&b, s, len);
    pf_buf_addc(&b, '\0');
    assert_string_equal(b.data, want);
    pf_buf_fini(&b);
}

static void
test_readable(void **state)
{
    (void)state;
    shows(" the", 4, " the");
    shows("a\n\r\tb\0c", 7, "a\\n\\r\\tb<U+0000>c");
    shows("\x1b[31m\x7f", 6, "<U+001B>[31m<U+007F>");
    shows("\xf0\x9f", 2, "<0xF0><0x9F>");
    shows("\xff", 1, "<0xFF>");
    shows("\u202eabc\ufeff", 9, "<U+202E>abc<U+FEFF>");
    shows("\u0301x", 3, "\u25cc\u0301x");
    shows("e\u0301", 3, "e\u0301");
    shows("\uffff\ufffd", 6, "<U+FFFF>\ufffd");
    shows("\xc2\x85", 2, "<U+0085>");
    shows("\u00a0", 2, "<U+00A0>");
    shows("\u3000a\u3000b\u3000", 11, "<U+3000>a\u3000b<U+3000>");
    shows("</script>&\"'", 12, "</script>&\"'");
}

/* Whatever it is, the result is UTF-8 that XML 1.0 allows. */
static void
test_readable_is_xml(void **state)
{
    struct pf_buf b = PF_BUF_INIT;
    char s[4];
    size_t n, len;
    uint32_t c;

    (void)state;
    for (uint32_t code = 0; code < 0x110000; code++) {
        if (code >= 0xd800 && code < 0xe000)
            continue;
        pf_buf_clear(&b);
        pf_readable(&b, s, pf_utf8_encode(s, code));
        assert_int_equal(pf_utf8_span(b.data, b.len), b.len);
        for (size_t i = 0; i < b.len; i += n) {
            c = pf_utf8_decode(b.data + i, &n);
            assert_true(c >= 0x20 && c != 0xfffe && c != 0xffff);
        }
    }
    for (int a = 0; a < 256; a++) {
        s[0] = (char)a;
        s[1] = (char)(255 - a);
        pf_buf_clear(&b);
        pf_readable(&b, s, 2);
        len = pf_utf8_span(b.data, b.len);
        assert_int_equal(len, b.len);
    }
    pf_buf_fini(&b);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_char),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_readable),
        cmocka_unit_test(test_readable_is_xml),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
