#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <pipeformer/buf.h>
#include <pipeformer/utf8.h>

#include "../../src/pretok.h"

/*
 * MB/s of splitting alone, in CPU time of one thread: for each pattern that
 * has a scanner, the scanner and PCRE2, each file as one text and, the
 * scanner, as lines.  The best of some runs.
 *
 *   bench_scan FILE...
 */

enum { BATCH = 1024 };

static double
now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void
die(const char *what)
{
    fprintf(stderr, "bench_scan: %s\n", what);
    exit(1);
}

static size_t
pieces(struct pf_splitter *s, const char *text, size_t len)
{
    size_t ends[BATCH], n, all = 0;

    pf_splitter_begin(s, text, len, true);
    do {
        if (pf_splitter_cut(s, ends, BATCH, &n, NULL))
            die("cannot be cut");
        all += n;
    } while (n);
    return all;
}

static size_t
lines(struct pf_splitter *s, const char *text, size_t len)
{
    const char *end = text + len, *nl;
    size_t all = 0;

    for (; text < end; text = nl) {
        nl = memchr(text, '\n', (size_t)(end - text));
        nl = nl ? nl + 1 : end;
        all += pieces(s, text, (size_t)(nl - text));
    }
    return all;
}

static void
measure(struct pf_splitter *s,
    size_t (*run)(struct pf_splitter *, const char *, size_t),
    const char *text, size_t len)
{
    double best = 1e9, spent = 0, start, took;
    size_t n = 0;

    while (spent < 0.5) {
        start = now();
        n = run(s, text, len);
        took = now() - start;
        spent += took;
        if (took < best)
            best = took;
    }
    printf(" %7.0f (%4.1f ns)", 1e-6 * (double)len / best,
        1e9 * best / (double)n);
    fflush(stdout);
}

static void
bench(const char *name, const char *path, const char *text, size_t len)
{
    struct pf_pretok *pre[2];
    struct pf_splitter *s[2];

    for (int i = 0; i < 2; i++)
        if (pf_pretok_new(&pre[i], pf_pretok_named(name),
                i ? PF_PRETOK_PCRE2 : 0, NULL)
            || pf_splitter_new(&s[i], pre[i], NULL))
            die("no memory");
    printf("%-8s", name);
    measure(s[0], pieces, text, len);
    measure(s[0], lines, text, len);
    measure(s[1], pieces, text, len);
    printf("  %s\n", path);
    for (int i = 0; i < 2; i++) {
        pf_splitter_free(s[i]);
        pf_pretok_free(pre[i]);
    }
}

int
main(int argc, char **argv)
{
    static const char *const names[] = { "gpt2", "cl100k", "qwen2", "o200k" };
    struct pf_buf text = PF_BUF_INIT;
    char part[1 << 16];
    size_t n;
    FILE *f;

    printf("%-8s %-17s %-17s %-17s (a piece)\n", "MB/s", "   text", "   lines",
        "   PCRE2");
    for (int i = 1; i < argc; i++) {
        if (!(f = fopen(argv[i], "rb")))
            die(argv[i]);
        pf_buf_clear(&text);
        while ((n = fread(part, 1, sizeof part, f)))
            pf_buf_add(&text, part, n);
        fclose(f);
        if (pf_buf_check(&text, NULL) || text.len == 0)
            die("nothing to read");
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            bench(names[k], argv[i], text.data,
                pf_utf8_span(text.data, text.len));
    }
    pf_buf_fini(&text);
    return 0;
}
