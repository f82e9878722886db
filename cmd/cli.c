/*
 * Options come from one table a command, which getopt_long and --help both
 * read, so that they cannot differ.  The record loop gathers what complete
 * records wait on input into a batch, works on it, and writes out what it has
 * before it would wait for more.
 */
#include "cli.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <pipeformer/pool.h>

struct cli cli = { .failed = 1 };
struct cli_stats cli_stats;
struct pf_out cli_out = PF_OUT_INIT;

static struct {
    enum pf_format format;
    bool text;
    int status;
    struct timespec start;
} run;

enum {
    KEEP = CLI_LONG + 1000,
    KEEP_GOING,
    THREADS,
    STATS,
};

static const struct cli_option model_option[] = {
    { "model", 'm', "MODEL",
        "a directory, a name under vocab/, or org/name in the local\n"
        "hub cache ($PIPEFORMER_MODEL, else fairy)" },
    { NULL, 0, NULL, NULL },
};

static const struct cli_option common[] = {
    { "json", 'j', NULL, "write NDJSON" },
    { "keep", KEEP, "NAME", "keep a field that would be dropped" },
    { "keep-going", KEEP_GOING, NULL, "put an error record in place of a bad "
        "record, go on" },
    { "threads", THREADS, "N", "use at most N threads "
        "($PIPEFORMER_THREADS)" },
    { "stats", STATS, NULL, "records, tokens, bytes, seconds on standard "
        "error" },
    { "quiet", 'q', NULL, "no messages" },
    { "verbose", 'v', NULL, "more messages" },
    { "help", 'h', NULL, "this text" },
    { "version", 'V', NULL, "the version" },
    { NULL, 0, NULL, NULL },
};

/* --- Diagnostics --- */

static void
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
    if (rec)
        pf_record_copy_field(e, rec, "seq", NULL);
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

/* --- Options --- */

static void
help_options(const struct cli_option *o)
{
    for (; o->name; o++) {
        char left[64];
        const char *p = o->help, *nl;
        int n = o->key < CLI_LONG
            ? snprintf(left, sizeof left, "-%c, --%s", o->key, o->name)
            : snprintf(left, sizeof left, "    --%s", o->name);

        if (o->arg)
            snprintf(left + n, sizeof left - (size_t)n, " %s", o->arg);
        if (strlen(left) > 24)
            printf("  %s\n  %-24s  ", left, "");
        else
            printf("  %-24s  ", left);
        for (; (nl = strchr(p, '\n')); p = nl + 1)
            printf("%.*s\n  %-24s  ", (int)(nl - p), p, "");
        puts(p);
    }
}

_Noreturn static void
help(void)
{
    printf("usage: %s %s\n%s\n\n", cli.cmd->name, cli.cmd->synopsis,
        cli.cmd->summary);
    if (cli.cmd->options)
        help_options(cli.cmd->options);
    if (cli.cmd->model)
        help_options(model_option);
    help_options(common);
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "%s: cannot write: %s\n", cli.cmd->name,
            strerror(errno));
        exit(1);
    }
    exit(0);
}

long long
cli_int(const char *name, const char *arg, long long lo, long long hi)
{
    char *end;
    long long v;

    errno = 0;
    v = strtoll(arg, &end, 10);
    if (end == arg || *end || strchr(" \t\n+", arg[0]))
        cli_usage("%s: '%s' is not a whole number", name, arg);
    if (errno || v < lo || v > hi)
        cli_usage("%s: %s is not within %lld and %lld", name, arg, lo, hi);
    return v;
}

double
cli_num(const char *name, const char *arg, double lo, double hi)
{
    char *end;
    double v;

    errno = 0;
    v = strtod(arg, &end);
    if (end == arg || *end || isnan(v) || strpbrk(arg, " \t\n+xXnN"))
        cli_usage("%s: '%s' is not a number", name, arg);
    if (v < lo || v > hi)
        cli_usage("%s: %s is not within %g and %g", name, arg, lo, hi);
    return v;
}

size_t
cli_size(const char *name, const char *arg)
{
    static const char units[] = "KMGT";
    unsigned long long v;
    const char *unit;
    char *end;

    errno = 0;
    v = strtoull(arg, &end, 10);
    if (end == arg || arg[0] < '0' || arg[0] > '9')
        cli_usage("%s: '%s' is not a size", name, arg);
    unit = *end ? strchr(units, *end) : NULL;
    if (errno || (*end && (!unit || end[1])))
        cli_usage("%s: '%s' is not a size (512, 64K, 2M, 1G)", name, arg);
    for (; unit && unit >= units; unit--) {
        if (v > SIZE_MAX / 1024)
            cli_usage("%s: %s is too large", name, arg);
        v *= 1024;
    }
    return (size_t)v;
}

size_t *
cli_list(const char *name, const char *arg, size_t limit, size_t *n)
{
    size_t *list = malloc(limit * sizeof *list);
    const char *p = arg;

    if (!list)
        cli_die("out of memory");
    *n = 0;
    for (;;) {
        unsigned long from, to;
        char *end;

        if (*p < '0' || *p > '9')
            cli_usage("%s: '%s' is not a list such as 0-5,8", name, arg);
        from = to = strtoul(p, &end, 10);
        if (*end == '-') {
            p = end + 1;
            if (*p < '0' || *p > '9')
                cli_usage("%s: '%s' is not a list such as 0-5,8", name, arg);
            to = strtoul(p, &end, 10);
        }
        if (to < from || (*end && *end != ','))
            cli_usage("%s: '%s' is not a list such as 0-5,8", name, arg);
        if (to >= limit)
            cli_die("%s: %lu, but the model's last is %zu", name, to,
                limit - 1);
        for (; from <= to; from++) {
            for (size_t i = 0; i < *n; i++)
                if (list[i] == from)
                    cli_usage("%s: %lu stands twice", name, from);
            list[(*n)++] = from;
        }
        if (!*end)
            return list;
        p = end + 1;
    }
}

static size_t
count(const struct cli_option *o)
{
    size_t n = 0;

    while (o && o[n].name)
        n++;
    return n;
}

/* Appends a table to what getopt_long wants. */
static void
add_options(const struct cli_option *o, struct option *longs, size_t *n,
    char *shorts, size_t *len)
{
    for (; o && o->name; o++) {
        longs[(*n)++] = (struct option){ o->name,
            o->arg ? required_argument : no_argument, NULL, o->key };
        if (o->key < CLI_LONG) {
            shorts[(*len)++] = (char)o->key;
            if (o->arg)
                shorts[(*len)++] = ':';
        }
    }
}

static void
common_option(int key, const char *arg)
{
    switch (key) {
    case 'm': cli.model = arg; break;
    case 'j': cli.json = true; break;
    case 'q': cli.quiet = true; break;
    case 'v': cli.verbose = true; break;
    case KEEP:
        cli.keep = realloc(cli.keep, (cli.n_keep + 1) * sizeof *cli.keep);
        if (!cli.keep)
            cli_die("out of memory");
        cli.keep[cli.n_keep++] = arg;
        break;
    case KEEP_GOING: cli.keep_going = true; break;
    case THREADS:
        cli.threads = (size_t)cli_int("--threads", arg, 1, 1024);
        break;
    case STATS: cli.stats = true; break;
    case 'h': help();
    case 'V':
        printf("%s (pipeformer) %s\n", cli.cmd->name, PF_VERSION);
        exit(fflush(stdout) ? 1 : 0);
    }
}

void
cli_options(int argc, char **argv, const struct cli_command *cmd, void *ctx)
{
    static char dash[] = "-", *standard_input[] = { dash, NULL };
    size_t n = count(cmd->options) + count(model_option) + count(common);
    size_t n_longs = 0, n_shorts = 0;
    struct option *longs = calloc(n + 1, sizeof *longs);
    char *shorts = calloc(2 * n + 2, 1);
    const char *env;
    int key;

    clock_gettime(CLOCK_MONOTONIC, &run.start);
    cli.cmd = cmd;
    run.text = cmd->text;
    if (!longs || !shorts)
        cli_die("out of memory");
    shorts[n_shorts++] = ':';
    add_options(cmd->options, longs, &n_longs, shorts, &n_shorts);
    if (cmd->model)
        add_options(model_option, longs, &n_longs, shorts, &n_shorts);
    add_options(common, longs, &n_longs, shorts, &n_shorts);
    env = getenv("PIPEFORMER_MODEL");
    cli.model = env && *env ? env : "fairy";
    env = getenv("PIPEFORMER_THREADS");
    cli.threads = env && *env
        ? (size_t)cli_int("PIPEFORMER_THREADS", env, 1, 1024) : pf_cpus();
    opterr = 0;
    while ((key = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        if (key == ':')
            cli_usage("option %s needs an argument", argv[optind - 1]);
        if (key == '?' && optopt > 0 && optopt < CLI_LONG)
            cli_usage("unknown option -%c", optopt);
        if (key == '?')
            cli_usage("unknown option %s", argv[optind - 1]);
        for (size_t i = 0; i < n_longs; i++) {
            if (longs[i].val != key)
                continue;
            if (i < count(cmd->options))
                cmd->option(ctx, key, optarg);
            else
                common_option(key, optarg);
            break;
        }
    }
    free(longs);
    free(shorts);
    cli.files = argv + optind;
    cli.n_files = (size_t)(argc - optind);
    if (cli.n_files == 0) {
        cli.files = standard_input;
        cli.n_files = 1;
    }
}

/* --- Output --- */

void
cli_begin(enum pf_format format, bool text)
{
    run.format = cli.json ? PF_NDJSON : format;
    run.text = text;
    if (!text && run.format == PF_BINARY && isatty(1)) {
        run.text = true;
        cli_usage("binary records are not written to a terminal; -j writes "
            "NDJSON");
    }
}

enum pf_status
cli_emit(const struct pf_record *rec, struct pf_err *err)
{
    return pf_record_write(&cli_out, rec, run.format, err);
}

void
cli_drop(struct pf_record *rec, const char *name)
{
    for (size_t i = 0; i < cli.n_keep; i++)
        if (strcmp(cli.keep[i], name) == 0)
            return;
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
    bool go_on = cli_complain(&e, file, number, rec, msg);
    struct pf_err err;

    if (!run.text && cli_emit(&e, &err))
        cli_die_writing(&err);
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

int
cli_finish(void)
{
    struct timespec now;

    cli_flush();
    if (close(1) && errno != EBADF) {
        cli_warn("<stdout>: cannot write: %s", strerror(errno));
        run.status = cli.failed;
    }
    if (cli.stats) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        fprintf(stderr, "%s: %llu records, %llu tokens, %llu bytes in, %llu "
            "out, %.3f s\n", cli.cmd->name,
            (unsigned long long)cli_stats.records,
            (unsigned long long)cli_stats.tokens,
            (unsigned long long)cli_stats.bytes_in,
            (unsigned long long)cli_out.bytes,
            (double)(now.tv_sec - run.start.tv_sec)
                + 1e-9 * (double)(now.tv_nsec - run.start.tv_nsec));
    }
    return run.status;
}

/* --- The record loop --- */

enum {
    BATCH = 128,                  /* records worked on together at most */
    BATCH_BYTES = 8 * 1024 * 1024 /* and bytes of their tensors, about */
};

struct loop {
    const struct cli_filter *f;
    struct cli_item *items; /* BATCH of them */
    size_t n, bytes;
    bool stop;
};

/* Writes items[from .. to). */
static void
write_items(struct loop *l, size_t from, size_t to)
{
    struct pf_err err;

    for (size_t i = from; i < to; i++)
        if (!l->items[i].skip && !l->f->text
            && cli_emit(&l->items[i].rec, &err)) {
            if (err.status == PF_EIO)
                cli_die_writing(&err);
            l->stop |= !cli_failed(l->items[i].file, l->items[i].number,
                &l->items[i].rec, err.msg);
            if (l->stop)
                return;
        }
}

/* Works on the batch and writes it, in order. */
static void
work(struct loop *l)
{
    struct cli_item *todo[BATCH], **next = todo;
    size_t n = 0, written = 0, at, i;
    enum pf_status st;
    struct pf_err err;

    for (i = 0; i < l->n; i++)
        if (!(l->f->pass_marks && pf_record_is_mark(&l->items[i].rec)))
            todo[n++] = &l->items[i];
    while (n && !l->stop) {
        at = 0;
        st = l->f->step(l->f->ctx, next, n, &at, &err);
        if (!st)
            break;
        if (st == PF_EIO && l->f->text)
            cli_die_writing(&err);
        i = (size_t)(next[at] - l->items);
        write_items(l, written, i);
        written = i + 1;
        if (!l->stop)
            l->stop = !cli_failed(l->items[i].file, l->items[i].number,
                &l->items[i].rec, err.msg) || st == PF_ENOMEM;
        next += at + 1;
        n -= at + 1;
    }
    if (!l->stop)
        write_items(l, written, l->n);
    l->n = l->bytes = 0;
}

/* Lets a record into the batch, or says why not. */
static void
admit(struct loop *l, struct cli_item *item)
{
    const struct cli_filter *f = l->f;
    bool mark = f->pass_marks && pf_record_is_mark(&item->rec);
    enum pf_status st;
    struct pf_err err;

    for (;;) {
        if (mark)
            st = f->mark ? f->mark(f->ctx, &item->rec, &err) : PF_OK;
        else
            st = f->check ? f->check(f->ctx, item, &err) : PF_OK;
        if (st != PF_AGAIN || l->n == 0)
            break;
        /* The item lies behind the batch: finish that, then move it up. */
        struct cli_item moved = *item;

        work(l);
        *item = l->items[0];
        l->items[0] = moved;
        item = &l->items[0];
        if (l->stop)
            return;
    }
    if (st == PF_END) {
        work(l);
        l->stop = true;
        return;
    }
    if (st) {
        struct cli_item moved = *item;

        *item = (struct cli_item){ .rec = PF_RECORD_INIT };
        work(l);
        if (!l->stop)
            l->stop = !cli_failed(moved.file, moved.number, &moved.rec,
                err.msg) || st == PF_ENOMEM;
        pf_record_fini(&moved.rec);
        return;
    }
    l->n++;
    for (size_t i = 0; i < item->rec.n_tensors; i++)
        l->bytes += pf_tensor_bytes(&item->rec.tensors[i]);
}

static void
count_record(const struct pf_record *rec)
{
    const struct pf_tensor *t = pf_record_tensor(rec, "ids");

    if (!t)
        t = pf_record_tensor(rec, "hidden");
    cli_stats.records++;
    if (t && t->ndim)
        cli_stats.tokens += t->shape[0];
}

static void
run_file(struct loop *l, const char *file)
{
    struct pf_in in;
    struct pf_reader r = PF_READER_INIT;
    struct cli_item *item;
    enum pf_status st;
    struct pf_err err;
    uint64_t number = 0;
    bool lost;

    if (pf_in_open(&in, file, &err)) {
        work(l);
        l->stop |= !cli_failed(file, 0, NULL, err.msg);
        return;
    }
    r.in = &in;
    r.main_name = l->f->main_input;
    r.all_tensors = l->f->all_tensors;
    while (!l->stop) {
        if (l->n == BATCH || l->bytes >= BATCH_BYTES)
            work(l);
        if (!pf_reader_ready(&r)) {
            work(l);
            cli_flush();
        }
        if (l->stop)
            break;
        item = &l->items[l->n];
        item->skip = false;
        item->file = file;
        item->number = ++number;
        st = pf_reader_next(&r, &item->rec, &lost, &err);
        if (st == PF_END)
            break;
        if (st) {
            struct pf_record bad = item->rec;

            item->rec = (struct pf_record)PF_RECORD_INIT;
            work(l);
            if (!l->stop)
                l->stop = !cli_failed(file, number, &bad, err.msg);
            pf_record_fini(&bad);
            if (lost)
                break;
            continue;
        }
        count_record(&item->rec);
        if (pf_record_is_error(&item->rec)) {
            struct pf_record bad = item->rec;

            item->rec = (struct pf_record)PF_RECORD_INIT;
            work(l);
            if (!l->stop)
                l->stop = !cli_pass_error(&bad);
            pf_record_fini(&bad);
            continue;
        }
        admit(l, item);
    }
    cli_stats.bytes_in += in.used;
    pf_reader_fini(&r);
    pf_in_fini(&in);
}

int
cli_run(const struct cli_filter *filter)
{
    struct loop l = { .f = filter };
    struct pf_err err;

    cli_begin(filter->format, filter->text);
    l.items = calloc(BATCH, sizeof *l.items);
    if (!l.items)
        cli_die("out of memory");
    for (size_t i = 0; i < cli.n_files && !l.stop; i++)
        run_file(&l, cli.files[i]);
    work(&l);
    if (filter->end && filter->end(filter->ctx, &err)) {
        if (err.status == PF_EIO)
            cli_die_writing(&err);
        cli_die("%s", err.msg);
    }
    for (size_t i = 0; i < BATCH; i++)
        pf_record_fini(&l.items[i].rec);
    free(l.items);
    free(cli.keep);
    return cli_finish();
}
