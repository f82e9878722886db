#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <pipeformer/sample.h>

static struct pf_stops *
stops(const char *a, const char *b)
{
    struct pf_stops *s;

    assert_int_equal(pf_stops_new(&s, NULL), PF_OK);
    assert_int_equal(pf_stops_add(s, a, strlen(a), NULL), PF_OK);
    if (b)
        assert_int_equal(pf_stops_add(s, b, strlen(b), NULL), PF_OK);
    return s;
}

/* After each piece: how much is held; at the first with '!': stopped. */
static void
check(const char *a, const char *b, const char *const *pieces,
    const char *want)
{
    struct pf_stops *s = stops(a, b);
    struct pf_buf tail = PF_BUF_INIT;
    bool stopped = false;
    size_t held;

    for (; *pieces; pieces++) {
        assert_false(stopped);
        assert_int_equal(pf_stops_take(s, &tail, *pieces, strlen(*pieces),
            &stopped, &held, NULL), PF_OK);
        if (*want == '!') {
            assert_true(stopped);
            want++;
        } else {
            assert_false(stopped);
            assert_int_equal(held, tail.len);
        }
        assert_int_equal(held, *want++ - '0');
    }
    assert_int_equal(*want, '\0');
    pf_buf_fini(&tail);
    pf_stops_free(s);
}

#define CHECK(a, b, want, ...) \
    check(a, b, (const char *const[]){ __VA_ARGS__, NULL }, want)

static void
test_borders(void **ctx)
{
    (void)ctx;
    CHECK("END", NULL, "0!3", "x", "END");
    CHECK("END", NULL, "12!3", "xE", "N", "D");
    CHECK("END", NULL, "121!5", "E", "N", "E", "NDxy");
    CHECK("END", NULL, "20", "EN", "d");
    CHECK("END", NULL, "000", "", "x", "");
    /* An end that begins anew within what looked like a beginning. */
    CHECK("aab", NULL, "122!3", "a", "a", "a", "b");
    CHECK("abab", NULL, "3!4", "xaba", "b");
    CHECK("abac", NULL, "33!4", "aba", "ba", "c");
    CHECK("\n\n", NULL, "1!2", ".\n", "\n");
}

static void
test_several(void **ctx)
{
    (void)ctx;
    /* The earliest, though another was whole before; then the longest. */
    CHECK("bc", "abcd", "!2", "abc");
    CHECK("bc", "abcd", "1!4", "a", "bcd");
    CHECK("bcd", "abc", "1!4", "a", "bcd");
    CHECK("ab", "abc", "!3", "abc");
    CHECK("xy", "b", "1!2", "x", "bz");
    CHECK("stop", "s", "!1", "s");
}

static void
test_refused(void **ctx)
{
    static char text[PF_STOP_MAX + 1];
    struct pf_stops *s;
    struct pf_err err;

    (void)ctx;
    assert_int_equal(pf_stops_new(&s, NULL), PF_OK);
    assert_int_equal(pf_stops_add(s, "", 0, &err), PF_ERANGE);
    assert_int_equal(pf_stops_add(s, text, PF_STOP_MAX + 1, &err), PF_ERANGE);
    assert_non_null(strstr(err.msg, "4097"));
    assert_int_equal(pf_stops_add(s, text, PF_STOP_MAX, &err), PF_OK);
    pf_stops_free(s);
    pf_stops_free(NULL);
}

/* Bytes, with zeros too. */
static void
test_bytes(void **ctx)
{
    struct pf_stops *s;
    struct pf_buf tail = PF_BUF_INIT;
    bool stopped;
    size_t held;

    (void)ctx;
    assert_int_equal(pf_stops_new(&s, NULL), PF_OK);
    assert_int_equal(pf_stops_add(s, "\0\xff\0", 3, NULL), PF_OK);
    assert_int_equal(pf_stops_take(s, &tail, "\0\xff", 2, &stopped, &held,
        NULL), PF_OK);
    assert_false(stopped);
    assert_int_equal(held, 2);
    assert_int_equal(pf_stops_take(s, &tail, "\0", 1, &stopped, &held, NULL),
        PF_OK);
    assert_true(stopped);
    assert_int_equal(held, 3);
    pf_buf_fini(&tail);
    pf_stops_free(s);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_borders),
        cmocka_unit_test(test_several),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
