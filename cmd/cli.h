#ifndef CLI_H
#define CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pipeformer/record.h>

/*
 * What all commands share: options, diagnostics, and the record loop.  A
 * command says what it is (struct cli_command), takes its own options, and
 * hands a filter to cli_run.
 */

/* --- Options --- */

/* `key` is the short letter, or CLI_LONG + something where there is none. */
struct cli_option {
    const char *name;
    int key;
    const char *arg; /* what --help calls the argument; NULL: none; "[=X]":
                        it may be left out */
    const char *help; /* NULL: --help only names it, beside others */
};

enum { CLI_LONG = 256 };

struct cli_command {
    const char *name;
    const char *synopsis; /* behind the name: "[-m MODEL] [file ...]" */
    const char *summary;  /* a line or two */
    const struct cli_option *options; /* ends with a NULL name */
    void (*option)(void *ctx, int key, const char *arg);
    bool model; /* takes -m */
    bool text;  /* the output is no records, and errors leave none */
};

/* The options that mean the same everywhere, and the operands. */
struct cli {
    const struct cli_command *cmd;
    const char *model;
    bool model_given; /* by -m */
    bool json, keep_going, quiet, verbose, stats;
    size_t threads;
    int failed; /* the exit status of failures: 1, unless a command says */
    const char **keep;
    size_t n_keep;
    char **files; /* at least one; "-" is standard input */
    size_t n_files;
};

extern struct cli cli;

/* Before anything else of the below; cli_options does it. */
void cli_start(const struct cli_command *cmd);

/* Parses everything; does not return on --help, --version or a mistake. */
void cli_options(int argc, char **argv, const struct cli_command *cmd,
    void *ctx);

/* What was asked for is on standard output, or is not: exits. */
_Noreturn void cli_printed(void);

/* Numbers of an option, strictly; out of range is a mistake. */
long long cli_int(const char *name, const char *arg, long long lo,
    long long hi);
double cli_num(const char *name, const char *arg, double lo, double hi);

/* 512, 64K, 2M, 1G: bytes. */
size_t cli_size(const char *name, const char *arg);

/*
 * "0-5,8" as a list of numbers below `limit`, in the order written, each
 * once; the caller frees it.
 */
size_t *cli_list(const char *name, const char *arg, size_t limit, size_t *n);

/* A mistake on the command line: says so and exits with 2. */
_Noreturn void cli_usage(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));

/* --- Diagnostics --- */

/* "name: ..." on standard error, unless -q. */
void cli_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The same with -v only. */
void cli_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * The command cannot go on: a message, an error record if the output is one
 * of records, and exit with 1.
 */
_Noreturn void cli_die(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));

/* --- The record loop --- */

/* Records of a token each that a model computes as fast, each, as more. */
enum { CLI_GROUP = 16 };

/* A record and where it came from. */
struct cli_item {
    struct pf_record rec;
    const char *file;
    uint64_t number; /* from 1, in its file */
    bool skip;       /* set by a step: nothing is written for it */
    size_t bytes;    /* set by `check`: about how many the step will add */
};

struct cli_filter {
    void *ctx;
    const char *main_input;  /* what an array from .npy is called */
    enum pf_format format;   /* of the output, unless -j */
    bool text;               /* the output is no records: none for errors */
    bool all_tensors;        /* see struct pf_reader */
    bool pass_marks;         /* marks go through; else `check` sees them too */

    /*
     * Looks at one record, in order, before it joins a batch: whether it is
     * well-formed and follows from those before.  PF_AGAIN: finish the batch,
     * then ask again; PF_END: read no more (the record is dropped).  May be
     * NULL.
     */
    enum pf_status (*check)(void *ctx, struct cli_item *item,
        struct pf_err *err);

    /* Frees what is known of the sequence of a mark that goes through.  May
     * be NULL; may return PF_AGAIN. */
    enum pf_status (*mark)(void *ctx, const struct pf_record *rec,
        struct pf_err *err);

    /*
     * Works on a batch of records that `check` let in, all of them that wait
     * on input; changes them in place.  *at is the one that a failure is
     * about; those before it are finished.
     */
    enum pf_status (*step)(void *ctx, struct cli_item **items, size_t n,
        size_t *at, struct pf_err *err);

    /*
     * How many of n records of a batch, 1 to n, the next step takes; it is
     * written before the others are worked on.  May be NULL: all.
     */
    size_t (*together)(void *ctx, size_t n);

    /*
     * Looks at an error record before it is passed on.  PF_AGAIN: it is not;
     * PF_END: it is, and no more are read.  May be NULL.
     */
    enum pf_status (*error)(void *ctx, struct pf_record *rec);

    /*
     * Takes an error record that is to be written, of the input or the loop's
     * own, to write it in `end`, since records before it wait there; false: it
     * does not.  With --keep-going only.  May be NULL.
     */
    bool (*hold)(void *ctx, struct pf_record *rec);

    /* Instead of `step`: works on one record. */
    enum pf_status (*one)(void *ctx, struct cli_item *item,
        struct pf_err *err);

    /*
     * Takes a record as the line that it is, where that is simple and the
     * filter writes no records; false: it must be looked at as a record.  May
     * be NULL.
     */
    bool (*line)(void *ctx, const char *line, size_t len);

    /* After the last record.  May be NULL. */
    enum pf_status (*end)(void *ctx, struct pf_err *err);
};

/*
 * Runs the filter over all operands; returns the exit status, when all output
 * is written and closed with success.
 */
int cli_run(const struct cli_filter *filter);

/* Item i of a batch failed; returns whether to go on. */
typedef bool cli_failure(void *where, size_t i, const struct pf_err *err);

/* What a batch of texts is given. */
struct cli_block {
    const char *p; /* texts, each with its delimiter, but for a last one */
    size_t len;
    cli_failure *failed;

    /*
     * The texts behind the block, and behind those that this gave, whole ones
     * and not very many: if they are there, for it waits for nothing.  They
     * lie in `memory`, which is the caller's; NULL: it is done for now.  May be
     * NULL.
     */
    const char *(*more)(void *where, struct pf_memory *memory, size_t *len);
    void *where;
};

/*
 * A filter whose input is text.  Texts end with the byte `delimiter`, or with
 * their file if it is -1.
 */
struct cli_texts {
    void *ctx;
    enum pf_format format; /* of the output */
    bool text;             /* the output is no records */
    int delimiter;

    /*
     * Works on the texts that are there, all that wait on input.  *n is how
     * many they are.  Of one that fails it tells `failed`, when those before it
     * are written; false from that: no more.  PF_OK, or why nothing can be
     * done any more.
     */
    enum pf_status (*batch)(void *ctx, const struct cli_block *block,
        size_t *n, struct pf_err *err);

    /*
     * Works on the beginning of a long text, or of its rest, and says in
     * *used how much of it is done with (0: more must come first); with `last`
     * it is all there is.  May be NULL.
     */
    enum pf_status (*part)(void *ctx, const char *text, size_t len, bool last,
        size_t *used, struct pf_err *err);

    /* The text of which parts have come cannot be read on.  With `part`. */
    void (*drop)(void *ctx);

    /* Whether to stop reading, asked after each batch.  May be NULL. */
    bool (*enough)(void *ctx);

    /* After the last text.  May be NULL. */
    enum pf_status (*end)(void *ctx, struct pf_err *err);
};

/* Runs it over all operands; returns the exit status. */
int cli_run_texts(const struct cli_texts *texts);

/* Standard output; a step that writes something else than records uses it. */
extern struct pf_out cli_out;

/* Does --keep name this field? */
bool cli_keeps(const char *name);

/* Drops a field that was consumed, unless --keep names it. */
void cli_drop(struct pf_record *rec, const char *name);

/* Writes a record in the output's encoding. */
enum pf_status cli_emit(const struct pf_record *rec, struct pf_err *err);

/* What attend keeps keys and values within, unless --kv-mem says. */
#define KV_MEM_DEFAULT ((size_t)1 << 30)

/* The model that -m names, or the end of the command. */
struct pf_model;
struct pf_model *cli_model(void);

/* The same for a command that can go on without. */
enum pf_status cli_open_model(struct pf_model **model, struct pf_err *err);

/* A mistake where PIPEFORMER_KERNEL names none that this processor has. */
void cli_check_kernels(void);

/* What runs it: kernels, threads; or the end of the command. */
struct pf_runner;
struct pf_runner *cli_runner(const struct pf_model *model);

bool cli_has_file(const char *dir, const char *name);

/* A directory with neither config.json nor weights: a tokenizer at most. */
bool cli_is_vocabulary(const char *dir);

/* Its directory, with a NUL; the caller frees it with pf_buf_fini. */
struct pf_buf cli_model_dir(void);

/*
 * PF_EMODEL if the record says that it comes from another model than the one
 * of that fingerprint.
 */
enum pf_status cli_check_model(const struct pf_record *rec,
    const struct pf_model *model, struct pf_err *err);

/*
 * `hidden` of a record as [T, C] for a model of width C, all of it finite;
 * PF_ESHAPE where it is missing or of another shape.
 */
enum pf_status cli_hidden(struct pf_record *rec, size_t C, const float **v,
    size_t *T, struct pf_err *err);

/* --- For commands with a loop of their own --- */

/* Says what the output is, for error records. */
void cli_begin(enum pf_format format, bool text);

/*
 * A record failed (number 0: a whole file): a message and, in its place, an
 * error record with the sequence of `rec` (may be NULL).  Returns whether to
 * go on.
 */
bool cli_failed(const char *file, uint64_t number, const struct pf_record *rec,
    const char *msg);

/* The same, but the record goes to `e` instead of out. */
bool cli_complain(struct pf_record *e, const char *file, uint64_t number,
    const struct pf_record *rec, const char *msg);

/* A write failed: ends the command, as SIGPIPE does where the reader went. */
struct pf_err;
_Noreturn void cli_die_writing(const struct pf_err *err);

/* Passes an error record on; returns whether to go on. */
bool cli_pass_error(const struct pf_record *rec);

/* The status will be 1, of an error that was told already; whether to go on. */
bool cli_fail_quietly(void);

/* The output is binary: a mistake where it is a terminal. */
void cli_no_terminal(void);

/* The exit status so far. */
int cli_status(void);

/* Will opening this file wait for a writer? */
bool cli_is_fifo(const char *file);

/* Writes out what waits; ends the command where that fails. */
void cli_flush(void);

/*
 * Flushes and closes the output, which ends the command where that fails;
 * prints --stats, and returns the exit status.
 */
int cli_finish(void);

/* What --stats counts. */
extern struct cli_stats {
    uint64_t records, tokens, bytes_in, batches;
    uint64_t waited; /* nanoseconds spent in reading */
} cli_stats;

/* Adds what was read of an input that is done with. */
void cli_count_input(const struct pf_in *in);

/* "-" as it is called in messages. */
const char *cli_file_name(const char *file);

#endif
