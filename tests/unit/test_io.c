#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <pipeformer/io.h>

static void
make_pipe(int fd[2])
{
    assert_int_equal(pipe(fd), 0);
}

static void
send(int fd, const char *s)
{
    assert_int_equal(write(fd, s, strlen(s)), strlen(s));
}

/* --- Input --- */

static void
test_in_pipe(void **ctx)
{
    struct pf_in in = PF_IN_INIT;
    int fd[2];

    (void)ctx;
    make_pipe(fd);
    in.fd = fd[0];
    assert_false(pf_in_ready(&in));
    send(fd[1], "abc");
    assert_true(pf_in_ready(&in));
    assert_int_equal(pf_in_fill(&in, NULL), PF_OK);
    assert_int_equal(in.end - in.start, 3);
    assert_memory_equal(in.data + in.start, "abc", 3);
    assert_false(pf_in_ready(&in));
    pf_in_skip(&in, 1);
    assert_int_equal(in.used, 1);
    send(fd[1], "de");
    assert_int_equal(pf_in_fill(&in, NULL), PF_OK);
    assert_int_equal(in.end - in.start, 4);
    assert_memory_equal(in.data + in.start, "bcde", 4);
    close(fd[1]);
    assert_true(pf_in_ready(&in));
    assert_int_equal(pf_in_fill(&in, NULL), PF_END);
    assert_true(in.eof);
    assert_true(pf_in_ready(&in));
    assert_int_equal(pf_in_fill(&in, NULL), PF_END);
    assert_memory_equal(in.data + in.start, "bcde", 4);
    pf_in_skip(&in, 4);
    assert_int_equal(in.used, 5);
    pf_in_fini(&in);
    assert_int_equal(in.fd, -1);
    assert_int_equal(close(fd[0]), -1); /* it was closed */
}

/* A descriptor that somebody made non-blocking is waited for. */
static void *
send_later(void *arg)
{
    const struct timespec t = { 0, 30000000 };

    nanosleep(&t, NULL);
    send(*(int *)arg, "late");
    return NULL;
}

static void
test_in_nonblocking(void **ctx)
{
    struct pf_in in = PF_IN_INIT;
    pthread_t th;
    int fd[2];

    (void)ctx;
    make_pipe(fd);
    assert_int_equal(fcntl(fd[0], F_SETFL, O_NONBLOCK), 0);
    in.fd = fd[0];
    assert_int_equal(pthread_create(&th, NULL, send_later, &fd[1]), 0);
    assert_int_equal(pf_in_fill(&in, NULL), PF_OK);
    assert_memory_equal(in.data + in.start, "late", 4);
    pthread_join(th, NULL);
    close(fd[1]);
    pf_in_fini(&in);
}

/* Bytes kept and used up in every proportion while the buffer moves. */
static void
test_in_file(void **ctx)
{
    enum { SIZE = 3000000 };
    char path[] = "/tmp/pf-io-XXXXXX", *all = malloc(SIZE);
    static const size_t keep[] = { 0, 1, 1000, 65536, 200000, 5000000 };
    int fd = mkstemp(path);
    size_t len;
    char *back;

    (void)ctx;
    assert_true(fd >= 0);
    assert_non_null(all);
    for (size_t i = 0; i < SIZE; i++)
        all[i] = (char)(i * 7 + i / 251 + i / 65536);
    assert_int_equal(pf_write_all(fd, all, SIZE, NULL), PF_OK);
    close(fd);
    for (size_t k = 0; k < sizeof keep / sizeof *keep; k++) {
        struct pf_in in;
        enum pf_status st;

        assert_int_equal(pf_in_open(&in, path, NULL), PF_OK);
        while ((st = pf_in_fill(&in, NULL)) == PF_OK) {
            size_t have = in.end - in.start;

            assert_memory_equal(in.data + in.start, all + in.used, have);
            if (have > keep[k])
                pf_in_skip(&in, have - keep[k]);
        }
        assert_int_equal(st, PF_END);
        assert_int_equal(in.used + (in.end - in.start), SIZE);
        pf_in_skip(&in, in.end - in.start);
        assert_int_equal(in.used, SIZE);
        pf_in_fini(&in);
    }
    assert_int_equal(pf_read_file(path, SIZE, &back, &len, NULL), PF_OK);
    assert_int_equal(len, SIZE);
    assert_memory_equal(back, all, SIZE);
    assert_int_equal(back[len], 0);
    free(back);
    assert_int_equal(pf_read_file(path, SIZE - 1, &back, &len, NULL),
        PF_ERANGE);
    unlink(path);
    free(all);
}

static void
test_in_errors(void **ctx)
{
    struct pf_in in;
    struct pf_err err;

    (void)ctx;
    assert_int_equal(pf_in_open(&in, "/no/such/file", &err), PF_EIO);
    assert_non_null(strstr(err.msg, "No such file"));
    pf_in_fini(&in);
    assert_int_equal(pf_in_open(&in, "/tmp", &err), PF_OK);
    assert_int_equal(pf_in_fill(&in, &err), PF_EIO);
    assert_non_null(strstr(err.msg, "directory"));
    pf_in_fini(&in);
    assert_int_equal(pf_in_open(&in, "-", NULL), PF_OK);
    assert_int_equal(in.fd, 0);
    pf_in_fini(&in);
    assert_true(fcntl(0, F_GETFD) >= 0); /* standard input stays open */
}

/* Bytes that change hands, and those behind them. */
static void
test_in_take(void **ctx)
{
    enum { FIRST = 100000, SECOND = 40000, THIRD = 55000 };
    enum { SIZE = FIRST + SECOND + THIRD };
    char path[] = "/tmp/test_io.XXXXXX", *all = malloc(SIZE), *p;
    struct pf_memory m = PF_MEMORY_INIT;
    struct pf_in in;
    int fd = mkstemp(path);

    (void)ctx;
    assert_true(all && fd >= 0);
    for (size_t i = 0; i < SIZE; i++)
        all[i] = (char)(i * 37 + i / 65521);
    assert_int_equal(pf_write_all(fd, all, SIZE, NULL), PF_OK);
    close(fd);
    assert_int_equal(pf_in_open(&in, path, NULL), PF_OK);
    pf_in_expect(&in, FIRST + SECOND);
    while (in.end < FIRST + SECOND)
        assert_int_equal(pf_in_fill(&in, NULL), PF_OK);
    assert_null(pf_in_take(&in, 100, &m)); /* not worth it */
    assert_int_equal(in.start, 0);

    p = pf_in_take(&in, FIRST, &m);
    assert_non_null(p);
    assert_ptr_equal(p, m.data);
    assert_memory_equal(p, all, FIRST);
    assert_int_equal(in.used, FIRST);
    assert_memory_equal(in.data + in.start, all + FIRST, in.end - in.start);

    /* The second time, the input gets the first memory back. */
    while (pf_in_fill(&in, NULL) == PF_OK)
        ;
    assert_int_equal(in.end - in.start, SECOND + THIRD);
    assert_memory_equal(in.data + in.start, all + FIRST, SECOND + THIRD);
    assert_null(pf_in_take(&in, SECOND, &m)); /* more would be copied */
    pf_in_skip(&in, SECOND);
    p = pf_in_take(&in, THIRD, &m);
    assert_non_null(p);
    assert_memory_equal(p, all + FIRST + SECOND, THIRD);
    assert_int_equal(in.end, in.start);
    assert_int_equal(in.used, SIZE);
    assert_int_equal(pf_in_fill(&in, NULL), PF_END);
    pf_in_fini(&in);
    assert_memory_equal(p, all + FIRST + SECOND, THIRD); /* it is ours */
    pf_memory_fini(&m);
    unlink(path);
    free(all);
}

static void
test_read_file(void **ctx)
{
    char path[] = "/tmp/pf-io-XXXXXX", *data;
    struct pf_err err;
    size_t len;
    int fd = mkstemp(path);

    (void)ctx;
    assert_int_equal(pf_read_file(path, 0, &data, &len, NULL), PF_OK);
    assert_int_equal(len, 0);
    assert_string_equal(data, "");
    free(data);
    send(fd, "12345");
    close(fd);
    assert_int_equal(pf_read_file(path, 5, &data, &len, NULL), PF_OK);
    assert_string_equal(data, "12345");
    free(data);
    assert_int_equal(pf_read_file(path, 4, &data, &len, &err), PF_ERANGE);
    assert_non_null(strstr(err.msg, path));
    unlink(path);
    assert_int_equal(pf_read_file(path, 5, &data, &len, &err), PF_EIO);
    assert_non_null(strstr(err.msg, path));
    assert_int_equal(pf_read_file("/tmp", 5, &data, &len, &err), PF_EIO);
    assert_int_equal(pf_read_file("/dev/zero", 100000, &data, &len, &err),
        PF_ERANGE);
}

/* --- Output --- */

/* Reads a pipe to its end, slowly, into memory. */
struct drain {
    int fd;
    char *data;
    size_t len;
};

static void *
drain(void *arg)
{
    const struct timespec t = { 0, 100000 };
    struct drain *d = arg;
    ssize_t n;

    while ((n = read(d->fd, d->data + d->len, 30011)) > 0) {
        d->len += (size_t)n;
        nanosleep(&t, NULL);
    }
    return NULL;
}

static void
check_full_pipe(bool nonblocking)
{
    enum { SIZE = 1000000 };
    struct drain d = { .data = malloc(SIZE + 40000) };
    struct pf_out out = PF_OUT_INIT;
    char *all = malloc(SIZE);
    size_t at = 0, n;
    pthread_t th;
    int fd[2];

    assert_true(d.data && all);
    for (size_t i = 0; i < SIZE; i++)
        all[i] = (char)(i * 31 + i / 65521);
    make_pipe(fd);
    if (nonblocking)
        assert_int_equal(fcntl(fd[1], F_SETFL, O_NONBLOCK), 0);
    d.fd = fd[0];
    out.fd = fd[1];
    assert_int_equal(pthread_create(&th, NULL, drain, &d), 0);
    for (size_t i = 0; at < SIZE; i++, at += n) {
        n = i % 17 == 5 ? 150000 : i % 5 == 0 ? 65536 : i * 37;
        n = n < SIZE - at ? n : SIZE - at;
        assert_int_equal(pf_out_write(&out, all + at, n, NULL), PF_OK);
        assert_int_equal(out.bytes, at + n);
    }
    assert_int_equal(pf_out_flush(&out, NULL), PF_OK);
    close(fd[1]);
    pthread_join(th, NULL);
    assert_int_equal(d.len, SIZE);
    assert_memory_equal(d.data, all, SIZE);
    close(fd[0]);
    pf_out_fini(&out);
    free(d.data);
    free(all);
}

static void
test_full_pipe(void **ctx)
{
    (void)ctx;
    check_full_pipe(false);
    check_full_pipe(true);
}

/* Pieces, empty ones and more than one call takes, arrive in order. */
static void
test_pieces(void **ctx)
{
    enum { SIZE = 1000000, MAX = 50 };
    struct drain d = { .data = malloc(SIZE + 40000) };
    struct pf_out out = PF_OUT_INIT;
    char *all = malloc(SIZE);
    size_t at = 0;
    pthread_t th;
    int fd[2];

    (void)ctx;
    assert_true(d.data && all);
    for (size_t i = 0; i < SIZE; i++)
        all[i] = (char)(i * 31 + i / 65521);
    make_pipe(fd);
    assert_int_equal(fcntl(fd[1], F_SETFL, O_NONBLOCK), 0);
    d.fd = fd[0];
    out.fd = fd[1];
    assert_int_equal(pthread_create(&th, NULL, drain, &d), 0);
    for (size_t round = 0; at < SIZE; round++) {
        struct pf_part pieces[MAX];
        size_t n = round * 7 % (MAX + 1);

        for (size_t i = 0; i < n; i++) {
            size_t len = i % 3 == 1 ? 0 : (i * 1009 + round * 313) % 20000;

            len = len < SIZE - at ? len : SIZE - at;
            pieces[i] = (struct pf_part){ len ? all + at : NULL, len };
            at += len;
        }
        assert_int_equal(pf_out_write_parts(&out, pieces, n, NULL), PF_OK);
        assert_int_equal(out.bytes, at);
    }
    assert_int_equal(pf_out_flush(&out, NULL), PF_OK);
    close(fd[1]);
    pthread_join(th, NULL);
    assert_int_equal(d.len, SIZE);
    assert_memory_equal(d.data, all, SIZE);
    close(fd[0]);
    pf_out_fini(&out);
    free(d.data);
    free(all);
}

/* Small writes wait until they are flushed. */
static void
test_out_waits(void **ctx)
{
    struct pf_out out = PF_OUT_INIT;
    char s[16];
    int fd[2];

    (void)ctx;
    make_pipe(fd);
    assert_int_equal(fcntl(fd[0], F_SETFL, O_NONBLOCK), 0);
    out.fd = fd[1];
    assert_int_equal(pf_out_write(&out, "ab", 2, NULL), PF_OK);
    assert_int_equal(pf_out_write(&out, NULL, 0, NULL), PF_OK);
    assert_int_equal(pf_out_write(&out, "c", 1, NULL), PF_OK);
    assert_int_equal(out.bytes, 3);
    assert_int_equal(read(fd[0], s, sizeof s), -1);
    assert_int_equal(pf_out_flush(&out, NULL), PF_OK);
    assert_int_equal(read(fd[0], s, sizeof s), 3);
    assert_memory_equal(s, "abc", 3);
    assert_int_equal(pf_out_flush(&out, NULL), PF_OK);
    assert_int_equal(read(fd[0], s, sizeof s), -1);
    close(fd[0]);
    close(fd[1]);
    pf_out_fini(&out);
}

/* How much of small parts waits, and that a large one takes it along. */
static void
test_out_most(void **ctx)
{
    enum { PART = 10000, LARGE = 65536 };
    static const size_t most[] = { 0, 30001, 500000 };
    char path[] = "/tmp/test_io.XXXXXX", *part = calloc(1, LARGE);
    struct pf_out out = PF_OUT_INIT;
    size_t bound;
    off_t at = 0, sent;

    (void)ctx;
    out.fd = mkstemp(path);
    assert_true(part && out.fd >= 0);
    for (size_t i = 0; i < 3; i++) {
        out.most = most[i];
        bound = most[i] ? most[i] : LARGE;
        for (sent = PART; (size_t)sent < bound; sent += PART) {
            assert_int_equal(pf_out_write(&out, part, PART, NULL), PF_OK);
            assert_int_equal(lseek(out.fd, 0, SEEK_CUR), at);
        }
        assert_int_equal(pf_out_write(&out, part, PART, NULL), PF_OK);
        at += sent;
        assert_int_equal(lseek(out.fd, 0, SEEK_CUR), at);
        assert_int_equal(pf_out_write(&out, part, 1, NULL), PF_OK);
        assert_int_equal(pf_out_write(&out, part, LARGE, NULL), PF_OK);
        at += LARGE + 1;
        assert_int_equal(lseek(out.fd, 0, SEEK_CUR), at);
    }
    pf_out_fini(&out);
    close(out.fd);
    unlink(path);
    free(part);
}

static void
test_out_errors(void **ctx)
{
    struct pf_out out = PF_OUT_INIT;
    struct pf_err err = { PF_OK, "" };
    char *large = calloc(1, 100000);
    int fd[2];

    (void)ctx;
    out.fd = open("/dev/full", O_WRONLY);
    assert_true(out.fd >= 0);
    assert_int_equal(pf_out_write(&out, "x", 1, &err), PF_OK);
    assert_int_equal(pf_out_flush(&out, &err), PF_EWRITE);
    assert_non_null(strstr(err.msg, strerror(ENOSPC)));
    err.msg[0] = '\0';
    assert_int_equal(pf_out_write(&out, large, 100000, &err), PF_EWRITE);
    assert_non_null(strstr(err.msg, strerror(ENOSPC)));
    err.msg[0] = '\0';
    assert_int_equal(pf_write_all(out.fd, "x", 1, &err), PF_EWRITE);
    assert_non_null(strstr(err.msg, strerror(ENOSPC)));
    assert_int_equal(pf_write_all(out.fd, "", 0, &err), PF_OK);
    close(out.fd);
    signal(SIGPIPE, SIG_IGN);
    make_pipe(fd);
    close(fd[0]);
    out.fd = fd[1];
    assert_int_equal(pf_out_write(&out, "x", 1, &err), PF_OK);
    assert_int_equal(pf_out_flush(&out, &err), PF_EWRITE);
    assert_non_null(strstr(err.msg, strerror(EPIPE)));
    close(fd[1]);
    assert_int_equal(pf_write_all(fd[1], "x", 1, &err), PF_EWRITE);
    assert_non_null(strstr(err.msg, strerror(EBADF)));
    pf_out_fini(&out);
    free(large);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_pipe),
        cmocka_unit_test(test_in_nonblocking),
        cmocka_unit_test(test_in_file),
        cmocka_unit_test(test_in_errors),
        cmocka_unit_test(test_in_take),
        cmocka_unit_test(test_read_file),
        cmocka_unit_test(test_full_pipe),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_out_waits),
        cmocka_unit_test(test_out_most),
        cmocka_unit_test(test_out_errors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
