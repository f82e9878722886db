/* Diagnostics, output, and the end of a command. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST_OUT = 1 << 20 }; /* bytes that wait: as many as a pipe holds */

struct cli cli = { .failed = 1 };
struct cli_stats cli_stats;
struct pf_out cli_out = PF_OUT_INIT;

static struct {
    enum pf_format format;
    bool text;
    int status;
    struct timespec start;
} run;

/*
 * A standard descriptor that is closed would be that of the next file that is
 * opened, which would be read for input or written over: reading or writing
 * what stands there now fails as if it were closed.
 */
static void
hold_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", fd ? O_RDONLY : O_WRONLY);
}

void
cli_start(const struct cli_command *cmd)
{
    hold_descriptors();
    clock_gettime(CLOCK_MONOTONIC, &run.start);
    cli.cmd = cmd;
    run.text = cmd->text;
}

/* --- Diagnostics --- */

__attribute__((format(printf, 1, 0))) static void
message(const char *fmt, va_list ap)
{
    if (cli.quiet)
        return;
    fprintf(stderr, "%s: ", cli.cmd->name);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
}

void
cli_warn(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    message(fmt, ap);
    va_end(ap);
}

void
cli_note(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    if (cli.verbose)
        message(fmt, ap);
    va_end(ap);
}

const char *
cli_file_name(const char *file)
{
    return strcmp(file, "-") == 0 ? "<stdin>" : file;
}

/* {"seq":...,"error":"..."} with the sequence of `rec` (may be NULL). */
static void
make_error(struct pf_record *e, const struct pf_record *rec, const char *msg)
{
    struct pf_buf key = PF_BUF_INIT;

    if (rec && pf_record_seq(rec, "seq", &key, NULL) == PF_OK)
        pf_record_copy_field(e, rec, "seq", NULL);
    pf_buf_fini(&key);
    pf_record_set_string(e, "error", msg, strlen(msg), NULL);
}

static void
error_record(const char *msg)
{
    struct pf_record e = PF_RECORD_INIT;

    make_error(&e, NULL, msg);
    if (!run.text)
        pf_record_write(&cli_out, &e, run.format, NULL);
    pf_record_fini(&e);
}

void
cli_die(const char *fmt, ...)
{
    char msg[600];
    int n = snprintf(msg, sizeof msg, "%s: ", cli.cmd->name);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(msg + n, sizeof msg - (size_t)n, fmt, ap);
    va_end(ap);
    if (!cli.quiet)
        fprintf(stderr, "%s\n", msg);
    error_record(msg);
    pf_out_flush(&cli_out, NULL);
    exit(cli.failed);
}

/*
 * A mistake of the one who typed; a program further down a pipe must learn of
 * it all the same.
 */
void
cli_usage(const char *fmt, ...)
{
    char msg[600];
    int n = snprintf(msg, sizeof msg, "%s: ", cli.cmd->name);
    struct stat s;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(msg + n, sizeof msg - (size_t)n, fmt, ap);
    va_end(ap);
    fprintf(stderr, "%s\nusage: %s %s\n'%s --help' says more.\n", msg,
        cli.cmd->name, cli.cmd->synopsis, cli.cmd->name);
    if (fstat(1, &s) == 0 && S_ISFIFO(s.st_mode)) {
        error_record(msg);
        pf_out_flush(&cli_out, NULL);
    }
    exit(2);
}

/* --- Output --- */

void
cli_begin(enum pf_format format, bool text)
{
    run.format = cli.json ? PF_NDJSON : format;
    run.text = text;
    if (text || run.format != PF_BINARY)
        return;
    cli_no_terminal();
    /* So that the records of a batch come to the next filter together. */
    cli_out.most = MOST_OUT;
}

void
cli_no_terminal(void)
{
    run.text = run.text || isatty(1);
    if (isatty(1))
        cli_usage("binary output is not written to a terminal; NDJSON is, "
            "with -j or tensor's -o json");
}

enum pf_status
cli_emit(const struct pf_record *rec, struct pf_err *err)
{
    return pf_record_write(&cli_out, rec, run.format, err);
}

bool
cli_keeps(const char *name)
{
    for (size_t i = 0; i < cli.n_keep; i++)
        if (strcmp(cli.keep[i], name) == 0)
            return true;
    return false;
}

void
cli_drop(struct pf_record *rec, const char *name)
{
    if (!cli_keeps(name))
        pf_record_drop(rec, name);
}

void
cli_die_writing(const struct pf_err *err)
{
    if (errno == EPIPE) {
        signal(SIGPIPE, SIG_DFL);
        raise(SIGPIPE);
    }
    cli_warn("<stdout>: %s", err->msg);
    exit(cli.failed);
}

bool
cli_is_fifo(const char *file)
{
    struct stat s;

    return stat(file, &s) == 0 && S_ISFIFO(s.st_mode);
}

int
cli_status(void)
{
    return run.status;
}

void
cli_flush(void)
{
    struct pf_err err;

    if (pf_out_flush(&cli_out, &err))
        cli_die_writing(&err);
}

bool
cli_complain(struct pf_record *e, const char *file, uint64_t number,
    const struct pf_record *rec, const char *msg)
{
    char all[900], place[24] = "";

    if (number)
        snprintf(place, sizeof place, ":%llu", (unsigned long long)number);
    snprintf(all, sizeof all, "%s: %.300s%s: %s", cli.cmd->name,
        cli_file_name(file), place, msg);
    if (!cli.quiet)
        fprintf(stderr, "%s\n", all);
    make_error(e, rec, all);
    return cli_fail_quietly();
}

bool
cli_failed(const char *file, uint64_t number, const struct pf_record *rec,
    const char *msg)
{
    struct pf_record e = PF_RECORD_INIT;
    bool go_on;

    cli_complain(&e, file, number, rec, msg);
    go_on = cli_pass_error(&e);
    pf_record_fini(&e);
    return go_on;
}

bool
cli_pass_error(const struct pf_record *rec)
{
    struct pf_err err;

    if (!run.text && cli_emit(rec, &err))
        cli_die_writing(&err);
    return cli_fail_quietly();
}

bool
cli_fail_quietly(void)
{
    run.status = cli.failed;
    return cli.keep_going;
}

void
cli_count_input(const struct pf_in *in)
{
    cli_stats.bytes_in += in->used;
    cli_stats.waited += in->waited;
}

int
cli_finish(void)
{
    struct timespec now;
    struct pf_err err;

    cli_flush();
    if (close(1) && errno != EBADF) {
        pf_fail(&err, PF_EWRITE, "cannot write: %s", strerror(errno));
        cli_die_writing(&err);
    }
    if (cli.stats) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        fprintf(stderr, "%s: %llu records, %llu tokens, %llu bytes in, %llu "
            "out, %llu batches, %.3f s; read %.3f s, wrote %.3f s\n",
            cli.cmd->name,
            (unsigned long long)cli_stats.records,
            (unsigned long long)cli_stats.tokens,
            (unsigned long long)cli_stats.bytes_in,
            (unsigned long long)cli_out.bytes,
            (unsigned long long)cli_stats.batches,
            (double)(now.tv_sec - run.start.tv_sec)
                + 1e-9 * (double)(now.tv_nsec - run.start.tv_nsec),
            1e-9 * (double)cli_stats.waited, 1e-9 * (double)cli_out.waited);
    }
    return run.status;
}
