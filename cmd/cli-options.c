/*
 * Options come from one table a command, which getopt_long and --help both
 * read, so that they cannot differ.
 */
#include "cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/pool.h>

enum {
    KEEP = CLI_LONG + 1000,
    KEEP_GOING,
    THREADS,
    STATS,
};

static const struct cli_option model_option[] = {
    { "model", 'm', "MODEL",
        "a directory, a name under vocab/, or org/name\n"
        "in the hub cache ($PIPEFORMER_MODEL, else fairy)" },
    { NULL, 0, NULL, NULL },
};

/* Described in pipeformer(7), so --help only names them. */
static const struct cli_option common[] = {
    { "json", 'j', NULL, NULL },
    { "keep", KEEP, "NAME", NULL },
    { "keep-going", KEEP_GOING, NULL, NULL },
    { "threads", THREADS, "N", NULL },
    { "stats", STATS, NULL, NULL },
    { "quiet", 'q', NULL, NULL },
    { "verbose", 'v', NULL, NULL },
    { "help", 'h', NULL, NULL },
    { "version", 'V', NULL, NULL },
    { NULL, 0, NULL, NULL },
};

/* An option as it is written: "-m, --model MODEL". */
static size_t
spell(char *s, size_t size, const struct cli_option *o)
{
    int n = o->key < CLI_LONG
        ? snprintf(s, size, "-%c, --%s", o->key, o->name)
        : snprintf(s, size, "    --%s", o->name);

    if (o->arg)
        n += snprintf(s + n, size - (size_t)n, "%s%s",
            o->arg[0] == '[' ? "" : " ", o->arg);
    return (size_t)n;
}

/* Options without a text of their own, side by side; returns the next one. */
static const struct cli_option *
help_names(const struct cli_option *o)
{
    char word[64];
    const char *p;
    size_t column = 0;

    for (; o->name && !o->help; o++) {
        spell(word, sizeof word, o);
        p = word + strspn(word, " ");
        if (column && column + strlen(p) > 74) {
            printf(";\n");
            column = 0;
        }
        printf("%s%s", column ? "; " : "  ", p);
        column += strlen(p) + 2;
    }
    putchar('\n');
    return o;
}

static void
help_options(const struct cli_option *o)
{
    while (o->name) {
        char left[64];
        const char *p = o->help, *nl;

        if (!o->help) {
            o = help_names(o);
            continue;
        }
        spell(left, sizeof left, o++);
        if (strlen(left) > 24)
            printf("  %s\n  %-24s  ", left, "");
        else
            printf("  %-24s  ", left);
        for (; (nl = strchr(p, '\n')); p = nl + 1)
            printf("%.*s\n  %-24s  ", (int)(nl - p), p, "");
        puts(p);
    }
}

static void
help_common(void)
{
    printf("and, as in every command, see pipeformer(7):\n");
    help_names(common);
}

_Noreturn void
cli_printed(void)
{
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "%s: <stdout>: cannot write: %s\n", cli.cmd->name,
            strerror(errno));
        exit(1);
    }
    exit(0);
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
    help_common();
    cli_printed();
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
            !o->arg ? no_argument : o->arg[0] == '[' ? optional_argument
            : required_argument, NULL, o->key };
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
    case 'm':
        cli.model = arg;
        cli.model_given = true;
        break;
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
        cli_printed();
    }
}

void
cli_options(int argc, char **argv, const struct cli_command *cmd, void *ctx)
{
    static char dash[] = "-", *standard_input[] = { dash, NULL };
    static struct option *longs; /* static: --help and mistakes end here */
    static char *shorts;
    size_t n = count(cmd->options) + count(model_option) + count(common);
    size_t n_longs = 0, n_shorts = 0;
    const char *env;
    int key;

    cli_start(cmd);
    longs = calloc(n + 1, sizeof *longs);
    shorts = calloc(2 * n + 2, 1);
    if (!longs || !shorts)
        cli_die("out of memory");
    shorts[n_shorts++] = ':';
    add_options(cmd->options, longs, &n_longs, shorts, &n_shorts);
    if (cmd->model)
        add_options(model_option, longs, &n_longs, shorts, &n_shorts);
    add_options(common, longs, &n_longs, shorts, &n_shorts);
    env = getenv("PIPEFORMER_MODEL");
    cli.model = env && *env ? env : "fairy";
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
    env = getenv("PIPEFORMER_THREADS");
    if (!cli.threads)
        cli.threads = env && *env
            ? (size_t)cli_int("PIPEFORMER_THREADS", env, 1, 1024) : pf_cpus();
    free(longs);
    free(shorts);
    cli.files = argv + optind;
    cli.n_files = (size_t)(argc - optind);
    if (cli.n_files == 0) {
        cli.files = standard_input;
        cli.n_files = 1;
    }
}
