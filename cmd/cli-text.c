/* Texts from bytes: by lines, by NULs, or a file each. */
#include "cli.h"

#include <string.h>

struct texts {
    const struct cli_filter *f;
    int delimiter;
    enum pf_status (*text)(void *ctx, const char *text, size_t len,
        struct pf_err *err);
    const char *file;
    uint64_t number;
};

/* Hands on one text; false if no more is to be read. */
static bool
one(struct texts *t, const char *p, size_t len)
{
    struct pf_err err;

    t->number++;
    cli_stats.records++;
    switch (t->text(t->f->ctx, p, len, &err)) {
    case PF_OK: return true;
    case PF_EWRITE: cli_die_writing(&err);
    default: return cli_failed(t->file, t->number, NULL, err.msg);
    }
}

/* All texts of an open file; false if no more is to be read. */
static bool
each(struct texts *t, struct pf_in *in)
{
    size_t scanned = 0, have;
    enum pf_status st;
    struct pf_err err;
    const char *p, *end;

    for (;;) {
        have = in->end - in->start;
        p = have ? in->data + in->start : NULL;
        end = t->delimiter < 0 || have == scanned ? NULL
            : memchr(p + scanned, t->delimiter, have - scanned);
        if (end) {
            if (!one(t, p, (size_t)(end - p)))
                return false;
            pf_in_skip(in, (size_t)(end - p) + 1);
            scanned = 0;
            continue;
        }
        scanned = have;
        if (!pf_in_ready(in))
            cli_flush();
        st = pf_in_fill(in, &err);
        if (st == PF_END)
            break;
        if (st)
            return cli_failed(t->file, t->number + 1, NULL, err.msg);
    }
    /* A last line without its end; or a whole file, be it empty (but nothing
     * on standard input is nothing). */
    if ((have || (t->delimiter < 0 && !in->keep)) && !one(t, p ? p : "", have))
        return false;
    pf_in_skip(in, have);
    return true;
}

int
cli_run_texts(const struct cli_filter *filter, int delimiter,
    enum pf_status (*text)(void *ctx, const char *text, size_t len,
        struct pf_err *err))
{
    struct texts t = { filter, delimiter, text, NULL, 0 };
    struct pf_in in;
    struct pf_err err;
    bool go_on = true;

    cli_begin(filter->format, filter->text);
    for (size_t i = 0; i < cli.n_files && go_on; i++) {
        t.file = cli.files[i];
        t.number = 0;
        if (cli_is_fifo(t.file))
            cli_flush();
        if (pf_in_open(&in, t.file, &err)) {
            go_on = cli_failed(t.file, 0, NULL, err.msg);
            continue;
        }
        go_on = each(&t, &in);
        cli_stats.bytes_in += in.used;
        pf_in_fini(&in);
    }
    if (go_on && filter->end && filter->end(filter->ctx, &err))
        cli_die_writing(&err);
    return cli_finish();
}
