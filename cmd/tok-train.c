/* tok-train: text to a vocabulary, byte-level BPE. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <pipeformer/pool.h>
#include <pipeformer/train.h>

struct tok_train {
    struct pf_train train;
    const char **special;
    size_t special_cap;
    struct pf_arena names; /* what they are made of */
    const char *pattern, *dir;
    bool counts;
    struct pf_trainer *t;
    bool shown, terminal; /* is progress told, and to a person? */
    struct timespec told; /* last */
};

#define BLOCK ((size_t)16 << 20) /* bytes that are counted at a time */
#define IDS_MAX (1 << 20) /* what the library can hold */

enum { PATTERN = CLI_LONG, SPECIAL, COUNTS, MIN, ALPHABET };

static const struct cli_option options[] = {
    { "vocab-size", 'n', "N", "how many tokens in all (30000)" },
    { "output", 'o', "DIR", "write HuggingFace's files into this directory;\n"
        "without it the merges go to standard output" },
    { "pattern", PATTERN, "NAME|REGEX", "what cuts texts into pieces: gpt2,\n"
        "cl100k, qwen2, o200k, or an expression (gpt2)" },
    { "special", SPECIAL, "NAME,...", "special tokens; they get the first "
        "ids" },
    { "counts", COUNTS, NULL, "lines are COUNT<TAB>PIECE, as of uniq -c" },
    { "min-frequency", MIN, "N", "join no pair that is there less often (1)" },
    { "alphabet", ALPHABET, "all|seen", "bytes that become tokens (all)" },
    { NULL, 0, NULL, NULL },
};

/* NAME,... */
static void
add_special(struct tok_train *c, const char *arg)
{
    const char *comma, *p = arg;
    size_t len;
    char *name;

    for (;; p = comma + 1) {
        comma = strchr(p, ',');
        len = comma ? (size_t)(comma - p) : strlen(p);
        if (!len)
            cli_usage("--special: '%s' has an empty name", arg);
        name = pf_arena_copy(&c->names, p, len);
        if (!name || !pf_grow(&c->special, &c->special_cap,
                c->train.n_special + 1, sizeof *c->special))
            cli_die("out of memory");
        c->special[c->train.n_special++] = name;
        if (!comma)
            return;
    }
}

static void
option(void *ctx, int key, const char *arg)
{
    struct tok_train *c = ctx;

    switch (key) {
    case 'n':
        c->train.size = (size_t)cli_int("--vocab-size", arg, 1, IDS_MAX);
        break;
    case 'o':
        if (!*arg)
            cli_usage("-o: no directory");
        c->dir = arg;
        break;
    case PATTERN:
        if (!*arg)
            cli_usage("--pattern: no pattern");
        c->pattern = arg;
        break;
    case SPECIAL: add_special(c, arg); break;
    case COUNTS: c->counts = true; break;
    case MIN:
        c->train.min_count = (uint64_t)cli_int("--min-frequency", arg, 0,
            INT64_MAX);
        break;
    case ALPHABET:
        if (strcmp(arg, "all") != 0 && strcmp(arg, "seen") != 0)
            cli_usage("--alphabet: '%s' is neither all nor seen", arg);
        c->train.seen_only = strcmp(arg, "seen") == 0;
        break;
    }
}

static const struct cli_command command = {
    .name = "tok-train",
    .synopsis = "[-n N] [-o DIR] [--pattern NAME|REGEX] [--special NAME,...]\n"
        "       [--counts] [--min-frequency N] [--alphabet all|seen] "
        "[file ...]",
    .summary = "Learns a byte-level BPE: text, a line a text -> vocabulary.",
    .options = options,
    .option = option,
    .text = true,
};

/* --- Progress --- */

/* Not too often, unless it is the last of its kind. */
__attribute__((format(printf, 3, 4))) static void
tell(struct tok_train *c, bool last, const char *fmt, ...)
{
    struct timespec now;
    double seconds;
    va_list ap;

    if (!c->shown)
        return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    seconds = (double)(now.tv_sec - c->told.tv_sec)
        + 1e-9 * (double)(now.tv_nsec - c->told.tv_nsec);
    if (!last && seconds < (c->terminal ? 0.2 : 2))
        return;
    c->told = now;
    fprintf(stderr, "%s%s: ", c->terminal ? "\r" : "", command.name);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    if (last || !c->terminal)
        fputc('\n', stderr);
}

static void
tell_read(struct tok_train *c, uint64_t bytes, bool last)
{
    struct pf_train_counts n = pf_trainer_counts(c->t);

    tell(c, last, "%.1f MB, %llu pieces", 1e-6 * (double)bytes,
        (unsigned long long)n.pieces);
}

static void
tell_learnt(void *ctx, size_t ids)
{
    struct tok_train *c = ctx;

    tell(c, false, "%zu of %zu tokens", ids, c->train.size);
}

/* --- Reading --- */

/* Whole lines, or the end of a file; false if no more is to be read. */
static bool
count(struct tok_train *c, const char *file, uint64_t *line, const char *p,
    size_t n)
{
    struct pf_err err;
    const char *end = p + n, *lf;
    bool go_on = true;

    if (!c->counts && pf_trainer_lines(c->t, p, n, &err))
        cli_die("%s: %s", cli_file_name(file), err.msg);
    for (; c->counts && p < end && go_on; p = lf + 1) {
        lf = memchr(p, '\n', (size_t)(end - p));
        if (!lf)
            lf = end;
        ++*line;
        if (pf_trainer_count_line(c->t, p, (size_t)(lf - p), &err))
            go_on = cli_failed(file, *line, NULL, err.msg);
    }
    return go_on;
}

static bool
read_file(struct tok_train *c, const char *file, struct pf_in *in)
{
    size_t want = BLOCK, have, n;
    uint64_t line = 0;
    enum pf_status st;
    struct pf_err err;

    do {
        st = pf_in_fill(in, &err);
        if (st && st != PF_END)
            return cli_failed(file, 0, NULL, err.msg);
        n = have = in->end - in->start;
        if (!have || (have < want && !st))
            continue;
        while (!st && n && in->data[in->start + n - 1] != '\n')
            n--;
        want = n ? BLOCK : 2 * have;
        if (n && !count(c, file, &line, in->data + in->start, n))
            return false;
        pf_in_skip(in, n);
        tell_read(c, cli_stats.bytes_in + in->used, false);
    } while (!st);
    return true;
}

static void
read_all(struct tok_train *c)
{
    struct pf_in in;
    struct pf_err err;
    bool go_on = true;

    for (size_t i = 0; i < cli.n_files && go_on; i++) {
        if (pf_in_open(&in, cli.files[i], &err)) {
            go_on = cli_failed(cli.files[i], 0, NULL, err.msg);
            continue;
        }
        go_on = read_file(c, cli.files[i], &in);
        cli_count_input(&in);
        pf_in_fini(&in);
    }
    cli_stats.records = pf_trainer_counts(c->t).texts;
    cli_stats.tokens = pf_trainer_counts(c->t).pieces;
}

/* --- Writing --- */

/* Before the work: could the directory be made and written into? */
static void
probe(const char *dir)
{
    struct stat s;

    if (mkdir(dir, 0777) == 0)
        rmdir(dir);
    else if (errno != EEXIST)
        cli_die("%s: cannot make the directory: %s", dir, strerror(errno));
    else if (stat(dir, &s) == 0 && !S_ISDIR(s.st_mode))
        cli_die("%s: is not a directory", dir);
    else if (access(dir, W_OK | X_OK) != 0)
        cli_die("%s: cannot write: %s", dir, strerror(errno));
}

/* What a file is called until all are written; the caller's to free. */
static char *
path_of(const char *dir, const char *name, bool temporary)
{
    struct pf_buf b = PF_BUF_INIT;

    pf_buf_printf(&b, "%s/%s", dir, name);
    if (temporary)
        pf_buf_printf(&b, ".%ld.tmp", (long)getpid());
    pf_buf_addc(&b, '\0');
    if (b.failed)
        cli_die("out of memory");
    return b.data;
}

static enum pf_status
write_file(const char *path, const struct pf_buf *b, struct pf_err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    enum pf_status st;

    if (fd < 0)
        return pf_fail(err, PF_EWRITE, "cannot write: %s", strerror(errno));
    st = pf_write_all(fd, b->data, b->len, err);
    if (close(fd) && !st)
        st = pf_fail(err, PF_EWRITE, "cannot write: %s", strerror(errno));
    return st;
}

/* All files or none: they get their names when all are on the disk. */
static void
write_files(struct tok_train *c)
{
    struct pf_buf b = PF_BUF_INIT;
    enum pf_status st = PF_OK;
    char *path, *to;
    struct pf_err err;
    int f, done;

    if (mkdir(c->dir, 0777) && errno != EEXIST)
        cli_die("%s: cannot make the directory: %s", c->dir, strerror(errno));
    for (f = 0; f < PF_TRAIN_FILES && !st; f++) {
        path = path_of(c->dir, pf_train_file_name(f), true);
        pf_buf_clear(&b);
        st = pf_trainer_file(c->t, f, &b, &err);
        if (!st)
            st = write_file(path, &b, &err);
        free(path);
    }
    done = f;
    for (f = 0; f < done; f++) {
        path = path_of(c->dir, pf_train_file_name(f), true);
        to = path_of(c->dir, pf_train_file_name(f), false);
        if (!st && rename(path, to))
            st = pf_fail(&err, PF_EWRITE, "cannot rename: %s",
                strerror(errno));
        if (st)
            unlink(path);
        free(path);
        free(to);
    }
    if (st)
        cli_die("%s: %s", c->dir, err.msg);
    pf_buf_fini(&b);
}

static void
write_merges(struct tok_train *c)
{
    struct pf_buf b = PF_BUF_INIT;
    struct pf_err err;

    if (pf_trainer_file(c->t, PF_TRAIN_MERGES, &b, &err))
        cli_die("%s", err.msg);
    if (pf_out_write(&cli_out, b.data, b.len, &err))
        cli_die_writing(&err);
    pf_buf_fini(&b);
}

int
main(int argc, char **argv)
{
    struct tok_train c = { .pattern = "gpt2", .names = PF_ARENA_INIT };
    struct pf_pool *pool;
    struct pf_err err;

    c.train.size = 30000;
    cli_options(argc, argv, &command, &c);
    if (!c.train.seen_only && c.train.size < 256)
        cli_usage("--vocab-size: %zu is less than the 256 bytes (--alphabet "
            "seen)", c.train.size);
    c.terminal = isatty(2) && !cli.quiet;
    c.shown = (c.terminal || cli.verbose) && !cli.quiet;
    c.train.special = c.special;
    c.train.progress = tell_learnt;
    c.train.ctx = &c;
    cli_begin(PF_NDJSON, true);
    if (c.dir)
        probe(c.dir);
    if (pf_pool_new(&pool, cli.threads, &err))
        cli_die("%s", err.msg);
    if (pf_trainer_new(&c.t, c.pattern, pool, &err)) {
        if (err.status == PF_ENOMEM)
            cli_die("%s", err.msg);
        cli_usage("--pattern: %s", err.msg);
    }
    clock_gettime(CLOCK_MONOTONIC, &c.told);
    read_all(&c);
    if (!cli_status() || cli.keep_going) {
        tell_read(&c, cli_stats.bytes_in, true);
        if (pf_trainer_learn(c.t, &c.train, &err))
            cli_die("%s", err.msg);
        tell(&c, true, "%zu of %zu tokens", pf_trainer_size(c.t),
            c.train.size);
        if (c.dir)
            write_files(&c);
        else
            write_merges(&c);
    }
    pf_trainer_free(c.t);
    pf_pool_free(pool);
    pf_arena_fini(&c.names);
    free(c.special);
    return cli_finish();
}
