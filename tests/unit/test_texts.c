#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pipeformer/texts.h>

/* Texts that go into a pipe, "|" after each; what has come out so far. */
struct run {
    struct pf_texts *texts;
    struct pf_out out;
    int fd[2];
    char got[70000];
    size_t n;
};

static void
start(struct run *r)
{
    r->out = (struct pf_out)PF_OUT_INIT;
    assert_int_equal(pipe(r->fd), 0);
    r->out.fd = r->fd[1];
    r->n = 0;
    assert_int_equal(pf_texts_new(&r->texts, &r->out, "|", 1, NULL), PF_OK);
}

static void
check(struct run *r, const char *want)
{
    assert_int_equal(pf_out_flush(&r->out, NULL), PF_OK);
    assert_int_equal(write(r->fd[1], "#", 1), 1); /* so that read returns */
    r->n += (size_t)read(r->fd[0], r->got + r->n, sizeof r->got - r->n - 1);
    r->got[--r->n] = '\0';
    assert_string_equal(r->got, want);
}

static void
stop(struct run *r, const char *want)
{
    assert_int_equal(pf_texts_end(r->texts, NULL), PF_OK);
    check(r, want);
    pf_texts_free(r->texts);
    pf_out_fini(&r->out);
    close(r->fd[0]);
    close(r->fd[1]);
}

enum { MORE = 1, DONE = 2, CUT = 4 };

static void
piece(struct run *r, const char *key, size_t pos, int flags, const char *s)
{
    struct pf_piece p = { .key = key, .key_len = strlen(key), .pos = pos,
        .more = flags & MORE, .done = flags & DONE, .bytes = s,
        .n = strlen(s) };

    assert_int_equal(pf_texts_add(r->texts, &p, NULL), PF_OK);
}

static void
test_one_after_another(void **ctx)
{
    static struct run r;

    (void)ctx;
    start(&r);
    stop(&r, "");
    start(&r); /* whole texts, as tok-encode makes them: they may go on */
    piece(&r, "0", 0, 0, "one");
    check(&r, "one");
    piece(&r, "1", 0, 0, "two");
    piece(&r, "2", 0, 0, "");
    piece(&r, "3", 0, 0, "four");
    check(&r, "one");
    piece(&r, "0", 3, 0, "!");
    check(&r, "one!");
    piece(&r, "2", 1, 0, "?");
    stop(&r, "one!|two|?|four|");
    start(&r); /* with done */
    piece(&r, "0", 0, DONE, "one");
    check(&r, "one|");
    piece(&r, "1", 0, DONE, "two");
    stop(&r, "one|two|");
    start(&r); /* no seq: each from 0 is another text */
    piece(&r, "", 0, 0, "one");
    piece(&r, "", 0, 0, "two");
    check(&r, "one|two");
    piece(&r, "", 3, 0, "!");
    check(&r, "one|two!");
    piece(&r, "", 0, 0, "three");
    stop(&r, "one|two!|three|");
}

/* The first is live, the others are held; then the next is live. */
static void
test_interleaved(void **ctx)
{
    static struct run r;

    (void)ctx;
    start(&r);
    piece(&r, "a", 0, MORE, "a1 ");
    piece(&r, "b", 0, MORE, "b1 ");
    piece(&r, "c", 0, MORE, "c1 ");
    check(&r, "a1 ");
    piece(&r, "b", 2, 0, "b2 ");
    piece(&r, "a", 2, 0, "a2 ");
    check(&r, "a1 a2 ");
    piece(&r, "c", 2, DONE, "c2"); /* done, but not its turn */
    check(&r, "a1 a2 ");
    piece(&r, "a", 4, DONE, "a3");
    check(&r, "a1 a2 a3|c1 c2|b1 b2 ");
    piece(&r, "b", 4, 0, "b3");
    check(&r, "a1 a2 a3|c1 c2|b1 b2 b3");
    piece(&r, "b", 6, DONE, "");
    stop(&r, "a1 a2 a3|c1 c2|b1 b2 b3|");
}

/* Generated tokens come with positions past 0: none ends the other's. */
static void
test_tokens(void **ctx)
{
    static struct run r;

    (void)ctx;
    start(&r);
    for (size_t pos = 5; pos < 9; pos++) {
        piece(&r, "x", pos, 0, "x");
        piece(&r, "y", pos, 0, "y");
        piece(&r, "z", pos, 0, "z");
    }
    check(&r, "xxxx");
    piece(&r, "x", 9, DONE, "");
    check(&r, "xxxx|yyyy");
    piece(&r, "z", 9, DONE, "!");
    check(&r, "xxxx|yyyy");
    stop(&r, "xxxx|yyyy|zzzz!|");
}

/* Whole texts that are held follow when it is their turn. */
static void
test_held_whole(void **ctx)
{
    static struct run r;

    (void)ctx;
    start(&r);
    piece(&r, "a", 0, MORE, "a");
    piece(&r, "b", 0, 0, "b");
    piece(&r, "c", 0, 0, "c");
    check(&r, "a");
    piece(&r, "a", 1, DONE, "a");
    check(&r, "aa|b");
    piece(&r, "c", 1, 0, "c");
    piece(&r, "d", 0, 0, "d");
    piece(&r, "c", 2, DONE, "c");
    check(&r, "aa|b");
    piece(&r, "b", 1, DONE, "b");
    check(&r, "aa|bb|ccc|d");
    stop(&r, "aa|bb|ccc|d|");
}

/* How long a text that may be whole waits to be told: for so many others. */
static void
test_wait(void **ctx)
{
    static struct run r;
    char key[16];

    (void)ctx;
    for (int more = 0; more < 2; more++) {
        start(&r);
        piece(&r, "a", 0, more, "a");
        for (int i = 1; i < PF_TEXTS_WAIT; i++) {
            sprintf(key, "%d", i);
            piece(&r, key, 0, 0, i < 4 ? key : "");
        }
        check(&r, "a");
        piece(&r, "b", 0, 0, "");
        check(&r, more ? "a" : "a|1"); /* one that goes on waits for ever */
        piece(&r, "c", 0, 0, "");
        piece(&r, "d", 0, 0, "");
        check(&r, more ? "a" : "a|1|2|3");
        piece(&r, "a", 1, DONE, "!"); /* late: a text of its own */
        assert_int_equal(pf_texts_end(r.texts, NULL), PF_OK);
        assert_int_equal(pf_out_flush(&r.out, NULL), PF_OK);
        r.n += (size_t)read(r.fd[0], r.got + r.n, sizeof r.got - r.n);
        assert_memory_equal(r.got, more ? "a!|1|2|3||" : "a|1|2|3|!|", 9);
        /* Five letters, and the end of each text. */
        assert_int_equal(r.n, 5 + PF_TEXTS_WAIT + 3 + !more);
        pf_texts_free(r.texts);
        pf_out_fini(&r.out);
        close(r.fd[0]);
        close(r.fd[1]);
    }
}

static void
test_restart(void **ctx)
{
    static struct run r;

    (void)ctx;
    start(&r);
    piece(&r, "a", 0, MORE, "a1");
    piece(&r, "b", 0, MORE, "b1");
    piece(&r, "b", 0, MORE, "B1"); /* a held one anew: two texts */
    piece(&r, "a", 0, MORE, "A1"); /* the live one anew */
    check(&r, "a1|b1|B1");
    piece(&r, "b", 2, 0, "B2");
    check(&r, "a1|b1|B1B2");
    piece(&r, "b", 4, DONE, "");
    check(&r, "a1|b1|B1B2|A1");
    piece(&r, "a", 2, DONE, "A2");
    stop(&r, "a1|b1|B1B2|A1A2|");
}

/* A live text is written as it comes, but never a part of a character. */
static void
test_utf8(void **ctx)
{
    static const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z";
    static struct run r;
    char s[2] = "", want[32];
    size_t n = sizeof text - 1;

    (void)ctx;
    start(&r);
    for (size_t i = 0; i < n; i++) {
        /* Whole characters of the bytes that came. */
        static const size_t whole[] = { 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11 };

        s[0] = text[i];
        piece(&r, "a", i, 0, s);
        memcpy(want, text, whole[i]);
        want[whole[i]] = '\0';
        check(&r, want);
    }
    stop(&r, "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z|");
    /* What can be no character goes out at once, as it is; a beginning of
     * one when the text ends. */
    start(&r);
    piece(&r, "a", 0, MORE, "\xff\xc3");
    check(&r, "\xff");
    piece(&r, "a", 2, 0, "(\x80\xe2\x82");
    check(&r, "\xff\xc3(\x80");
    piece(&r, "a", 6, DONE, "");
    check(&r, "\xff\xc3(\x80\xe2\x82|");
    piece(&r, "b", 0, MORE, "\xf0\x9f");
    check(&r, "\xff\xc3(\x80\xe2\x82|");
    stop(&r, "\xff\xc3(\x80\xe2\x82|\xf0\x9f|");
    /* Held ones too, when they become live. */
    start(&r);
    piece(&r, "a", 1, 0, "a");
    piece(&r, "b", 1, 0, "b\xc3");
    piece(&r, "a", 2, DONE, "");
    check(&r, "a|b");
    piece(&r, "b", 2, 0, "\xa9");
    stop(&r, "a|b\xc3\xa9|");
}

static void
test_many(void **ctx)
{
    enum { MANY = 600 };
    static struct run r;
    static char want[16 * MANY];
    size_t n;
    char key[16], s[16];

    (void)ctx;
    start(&r);
    for (size_t round = 0; round < 3; round++)
        for (int i = 0; i < MANY; i++) {
            sprintf(key, "s%d", i);
            sprintf(s, "%d.", i);
            piece(&r, key, 7 + round, 0, s);
        }
    check(&r, "0.0.0.");
    for (int i = MANY; i-- > 1;) { /* the last is done first */
        sprintf(key, "s%d", i);
        piece(&r, key, 10, DONE, "");
    }
    check(&r, "0.0.0.");
    piece(&r, "s0", 10, DONE, "");
    n = (size_t)sprintf(want, "0.0.0.|");
    for (int i = MANY; i-- > 1;) /* held: in the order in which they ended */
        n += (size_t)sprintf(want + n, "%d.%d.%d.|", i, i, i);
    stop(&r, want);
}

static void
test_errors(void **ctx)
{
    struct pf_out out = PF_OUT_INIT;
    struct pf_texts *t;
    FILE *full = fopen("/dev/full", "w");
    char *large = malloc(100000);

    (void)ctx;
    assert_true(full && large);
    out.fd = fileno(full);
    assert_int_equal(pf_texts_new(&t, &out, NULL, 0, NULL), PF_OK);
    memset(large, 'x', 100000);
    assert_int_equal(pf_texts_add(t, &(struct pf_piece){ .key = "a",
        .key_len = 1, .more = true, .bytes = large, .n = 100000 }, NULL),
        PF_EWRITE);
    free(large);
    pf_texts_free(t);
    pf_texts_free(NULL);
    fclose(full);
    pf_out_fini(&out);
}

/* --- Pieces as valid text --- */

static void
check_piece(struct pf_texts *t, const char *key, size_t pos, bool whole,
    const char *s, const char *want)
{
    struct pf_buf b = PF_BUF_INIT;
    struct pf_piece p = { .key = key, .key_len = strlen(key), .pos = pos,
        .done = whole, .bytes = s, .n = strlen(s) };

    assert_int_equal(pf_texts_piece(t, &p, &b, NULL), PF_OK);
    pf_buf_addc(&b, '\0');
    assert_string_equal(b.data, want);
    pf_buf_fini(&b);
}

#define U "\xef\xbf\xbd"

static void
test_pieces(void **ctx)
{
    struct pf_texts *t;

    (void)ctx;
    assert_int_equal(pf_texts_new(&t, NULL, NULL, 0, NULL), PF_OK);
    check_piece(t, "a", 0, false, "abc", "abc");
    check_piece(t, "a", 3, false, "d\xe2", "d");
    check_piece(t, "b", 0, false, "x\xc3", "x"); /* each has its own */
    check_piece(t, "a", 4, false, "\x82", "");
    check_piece(t, "a", 5, false, "\xac.", "\xe2\x82\xac.");
    check_piece(t, "b", 1, false, "\xa9\xf0\x9f", "\xc3\xa9");
    check_piece(t, "b", 2, true, "", U); /* one for a subpart */
    check_piece(t, "b", 3, true, "", "");
    check_piece(t, "a", 6, false, "\xff\xfe" "a\xc0\x80", U U "a" U U);
    check_piece(t, "a", 7, false, "\xe2\x82(\xed\xa0\x80", U "(" U U U);
    check_piece(t, "a", 8, true, "z\xf0\x9f\x98", "z" U);
    /* Position 0 forgets what was held back. */
    check_piece(t, "a", 9, false, "\xf0\x9f", "");
    check_piece(t, "a", 0, false, "\x98y", U "y");
    check_piece(t, "", 0, false, "", "");
    check_piece(t, "c", 0, false, "\xc3", ""); /* held at the end: freed */
    check_piece(t, "d", 0, false, "\xc3", "");
    pf_texts_free(t);
}

/* A piece with bytes that wait; hidden ones are those of capitals. */
static void
held_piece(struct run *r, const char *key, size_t pos, int flags,
    const char *s, size_t held)
{
    char hidden[32];
    bool any = false;
    struct pf_piece p = { .key = key, .key_len = strlen(key), .pos = pos,
        .more = flags & MORE, .done = flags & DONE, .bytes = s,
        .n = strlen(s), .held = held, .cut = flags & CUT };

    for (size_t i = 0; i < p.n; i++)
        any |= hidden[i] = s[i] >= 'A' && s[i] <= 'Z';
    p.hidden = any ? hidden : NULL;
    assert_int_equal(pf_texts_add(r->texts, &p, NULL), PF_OK);
}

/* What may become a stop text waits; if it does, it is no part of the text. */
static void
test_held_back(void **ctx)
{
    static struct run r;

    (void)ctx;
    start(&r);
    held_piece(&r, "a", 0, MORE, "one t", 1);
    check(&r, "one ");
    held_piece(&r, "a", 1, 0, "w", 2);
    check(&r, "one ");
    held_piece(&r, "a", 2, 0, "ist t", 1); /* it was none */
    check(&r, "one twist ");
    held_piece(&r, "a", 3, DONE | CUT, "wo", 3);
    check(&r, "one twist |");
    held_piece(&r, "b", 7, DONE | CUT, "all of it", 99); /* no more than all */
    check(&r, "one twist ||");
    held_piece(&r, "c", 7, 0, "tw", 2);
    held_piece(&r, "c", 8, DONE, "", 2); /* ended otherwise: shown */
    check(&r, "one twist ||tw|");
    held_piece(&r, "d", 7, 0, "tw", 2);
    check(&r, "one twist ||tw|");
    stop(&r, "one twist ||tw|tw|"); /* so at the end of the input */
}

/* The same of texts that are not live, and where the live one ends. */
static void
test_held_back_others(void **ctx)
{
    static struct run r;

    (void)ctx;
    start(&r);
    held_piece(&r, "a", 5, 0, "a", 0);
    held_piece(&r, "b", 5, 0, "b t", 1);
    held_piece(&r, "c", 5, 0, "c t", 1);
    held_piece(&r, "c", 6, DONE | CUT, "wo", 3);
    held_piece(&r, "a", 6, DONE | CUT, "!", 0);
    check(&r, "a!|c |b ");
    held_piece(&r, "b", 6, 0, "w", 2);
    check(&r, "a!|c |b ");
    stop(&r, "a!|c |b tw|");
}

/* Half a character before what waits waits too. */
static void
test_held_utf8(void **ctx)
{
    static struct run r;

    (void)ctx;
    start(&r);
    held_piece(&r, "a", 5, 0, "x\xc3\xa9", 1);
    check(&r, "x");
    held_piece(&r, "a", 6, 0, "\xe2", 2); /* the character is cut by `held` */
    check(&r, "x");
    held_piece(&r, "a", 7, 0, "\x82", 1);
    check(&r, "x\xc3\xa9");
    held_piece(&r, "a", 8, 0, "\xac", 0);
    check(&r, "x\xc3\xa9\xe2\x82\xac");
    stop(&r, "x\xc3\xa9\xe2\x82\xac|");
}

/* Hidden bytes count among those that wait, and are never written. */
static void
test_hidden(void **ctx)
{
    static struct run r;

    (void)ctx;
    start(&r);
    held_piece(&r, "a", 5, 0, "one.END", 3);
    check(&r, "one.");
    held_piece(&r, "a", 6, 0, " two", 0); /* no stop */
    check(&r, "one. two");
    held_piece(&r, "a", 7, 0, "END", 3);
    held_piece(&r, "a", 8, DONE | CUT, "\n", 4);
    check(&r, "one. two|");
    held_piece(&r, "a", 5, 0, "Ab", 1); /* held ones among shown ones */
    held_piece(&r, "a", 6, 0, "CdEf", 5);
    check(&r, "one. two|");
    held_piece(&r, "a", 7, 0, "Gh", 3);
    check(&r, "one. two|bd");
    held_piece(&r, "a", 8, DONE, "I", 4);
    check(&r, "one. two|bdfh|");
    held_piece(&r, "a", 5, 0, "x\xc3", 0); /* a character around one */
    held_piece(&r, "a", 6, 0, "END", 3);
    held_piece(&r, "a", 7, 0, "\xa9y", 0);
    check(&r, "one. two|bdfh|x\xc3\xa9y");
    stop(&r, "one. two|bdfh|x\xc3\xa9y|");
}

/* However it is cut, and with what waits growing and shrinking at random, the
 * text is that of its bytes. */
static void
test_random(void **ctx)
{
    static const char text[] = "aA\xc3\xa9" "Bb\xe2\x82\xac" "CDc";
    static const char shown[] = "a\xc3\xa9" "b\xe2\x82\xac" "c";
    static struct run r;
    char want[64];

    (void)ctx;
    srand(4);
    for (int i = 0; i < 3000; i++) {
        size_t n, pos = 1, cut = (size_t)rand() % sizeof shown;
        size_t at = 0, held = 0, last = 0;

        start(&r);
        for (at = 0; at < sizeof text - 1; at += n, pos++) {
            char part[32];

            n = 1 + (size_t)rand() % (sizeof text - 1 - at);
            memcpy(part, text + at, n);
            part[n] = '\0';
            held = (size_t)rand() % (held + n + 1);
            held_piece(&r, "a", pos, 0, part, held);
        }
        /* No more can be cut than has waited. */
        last = held < cut ? held : cut;
        held_piece(&r, "a", pos, DONE | CUT, "", last);
        for (at = sizeof text - 1, cut = sizeof shown - 1; last--;)
            if (!(text[--at] >= 'A' && text[at] <= 'Z'))
                cut--;
        sprintf(want, "%.*s|", (int)cut, shown);
        stop(&r, want);
    }
}

/*
 * Keys that count up have a way of their own ("i7"); what comes out, and when,
 * is what comes of the same pieces under other names.
 */
static void
test_run(void **ctx)
{
    enum { STEPS = 6000 };
    static const char *const words[] = { "", "a", "bcd", "\xe2\x82", "x\xc3",
        "\xac", "\xa9 and more than sixteen bytes", "\n" };
    static char got[2][1 << 18];
    static const char flags[64] = { [3] = 1, [9] = 1, [10] = 1, [31] = 1 };
    const char *names[2] = { "i", "s" };
    struct pf_out out[2];
    struct pf_texts *texts[2];
    FILE *file[2];
    char key[32];

    (void)ctx;
    for (unsigned seed = 0; seed < 12; seed++) {
        unsigned next = seed % 2 ? 8 : 0, odd = seed < 4 ? 0
            : seed < 8 ? 1000 : 5;

        srand(seed);
        for (int k = 0; k < 2; k++) {
            file[k] = tmpfile();
            assert_non_null(file[k]);
            out[k] = (struct pf_out)PF_OUT_INIT;
            out[k].fd = fileno(file[k]);
            assert_int_equal(pf_texts_new(&texts[k], &out[k], "|",
                seed % 3 > 0, NULL), PF_OK);
        }
        for (int i = 0; i < STEPS; i++) {
            struct pf_piece p = { .key = key };
            unsigned number = next;

            if (odd && (unsigned)rand() % odd == 0) {
                number = (unsigned)rand() % 3 ? next - 1
                    : next - (unsigned)rand() % 1100;
                p.pos = (size_t)rand() % 2;
                p.more = rand() % 4 == 0;
                p.done = rand() % 4 == 0;
                p.held = (size_t)(rand() % 4 == 0);
            } else {
                next++;
            }
            if (odd && (unsigned)rand() % (20 * odd) == 0)
                next += 2;
            p.bytes = words[rand() % 8];
            p.n = strlen(p.bytes);
            if (odd && rand() % 50 == 0)
                p.hidden = flags + rand() % 32;
            if (odd && rand() % 50 == 0)
                p.held = 1;
            for (int k = 0; k < 2; k++) {
                p.key_len = (size_t)sprintf(key, "%s%d", names[k],
                    (int)number);
                assert_int_equal(pf_texts_add(texts[k], &p, NULL), PF_OK);
            }
            assert_int_equal(out[0].bytes, out[1].bytes);
        }
        for (int k = 0; k < 2; k++) {
            assert_int_equal(pf_texts_end(texts[k], NULL), PF_OK);
            assert_int_equal(pf_out_flush(&out[k], NULL), PF_OK);
            assert_true(out[k].bytes < sizeof got[k]);
            rewind(file[k]);
            assert_int_equal(fread(got[k], 1, sizeof got[k], file[k]),
                out[k].bytes);
            fclose(file[k]);
            pf_texts_free(texts[k]);
            pf_out_fini(&out[k]);
        }
        assert_int_equal(out[0].bytes, out[1].bytes);
        assert_memory_equal(got[0], got[1], out[0].bytes);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_after_another),
        cmocka_unit_test(test_interleaved),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_held_whole),
        cmocka_unit_test(test_wait),
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_held_back),
        cmocka_unit_test(test_held_back_others),
        cmocka_unit_test(test_held_utf8),
        cmocka_unit_test(test_hidden),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
