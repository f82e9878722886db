/* Texts from bytes: by lines, by NULs, or a file each. */
#include "cli.h"

#include <string.h>

enum {
    LONG = 1 << 20,    /* from here on a text is worked on in parts */
    BATCH = 1 << 20,   /* bytes that several threads are given at once */
    MUCH = 1 << 16,    /* where so many are, more may come */
};

struct reader {
    const struct cli_texts *t;
    const char *file;
    struct pf_in in;
    struct pf_memory block; /* of the texts that are worked on, if `away` */
    bool away;
    size_t ahead; /* bytes of `in` that have come meanwhile, at its end */
    uint64_t number; /* of the texts that are done with, in this file */
    bool parts; /* the text at hand has begun to be worked on */
    bool bad;   /* and failed: the rest of it is passed over */
    bool stop;
};

static bool
failed(void *where, size_t i, const struct pf_err *err)
{
    struct reader *r = where;

    r->stop = !cli_failed(r->file, r->number + i + 1, NULL, err->msg);
    return !r->stop;
}

/* A text failed, or writing did. */
static bool
broken(struct reader *r, const struct pf_err *err)
{
    if (err->status == PF_EWRITE)
        cli_die_writing(err);
    return failed(r, 0, err);
}

/* What was put off is written. */
static void
settle(const struct cli_texts *t)
{
    struct pf_err err;

    if (t->settle(t->ctx, &err))
        cli_die_writing(&err);
}

/* Takes what is there, up to a batch; a failure comes again. */
static void
take_more(struct pf_in *in)
{
    struct pf_err later;

    do
        if (in->end - in->start >= MUCH)
            pf_in_expect(in, BATCH);
    while (in->end - in->start < BATCH && pf_in_ready(in)
        && !pf_in_fill(in, &later));
}

/* As cli_block's `meanwhile`. */
static void
read_ahead(void *where)
{
    struct reader *r = where;
    size_t have = r->in.end - r->in.start;

    if (r->away && !r->in.eof && pf_in_ready(&r->in))
        take_more(&r->in);
    r->ahead += r->in.end - r->in.start - have;
}

/* The bytes of the input, but for those that are known only from now on. */
static const char *
known(const struct reader *r, size_t *n)
{
    *n = r->in.end - r->in.start - r->ahead;
    return r->in.data ? r->in.data + r->in.start : "";
}

/* Hands on whole texts; false if no more are to be read. */
static bool
batch(struct reader *r, const char *block, size_t len)
{
    struct cli_block b = { block, len, failed, read_ahead, r };
    const char *p = cli.threads > 1 ? pf_in_take(&r->in, len, &r->block)
        : NULL;
    struct pf_err err;
    size_t n = 0;

    r->away = p != NULL;
    if (r->away)
        b.p = p;
    if (r->t->batch(r->t->ctx, &b, &n, &err)) {
        broken(r, &err);
        return false;
    }
    if (!r->away)
        pf_in_skip(&r->in, len);
    r->number += n;
    cli_stats.records += n;
    return !r->stop && !(r->t->enough && r->t->enough(r->t->ctx));
}

/* A part of a long text; false if no more is to be read. */
static bool
part(struct reader *r, const char *p, size_t len, bool last)
{
    size_t used = len;
    struct pf_err err;

    if (!r->bad && r->t->part(r->t->ctx, p, len, last, &used, &err)) {
        if (!broken(r, &err))
            return false;
        used = len;
        r->bad = true;
    }
    pf_in_skip(&r->in, last ? len : used);
    r->parts = !last;
    if (last) {
        r->bad = false;
        r->number++;
        cli_stats.records++;
    }
    return !(r->t->enough && r->t->enough(r->t->ctx));
}

/* Waits for more, and takes what is there: for several threads, much of it. */
static enum pf_status
fill(struct reader *r, struct pf_err *err)
{
    enum pf_status st = PF_OK;

    if (!r->ahead) {
        if (!pf_in_ready(&r->in)) {
            settle(r->t);
            cli_flush();
        }
        st = pf_in_fill(&r->in, err);
    }
    if (!st && cli.threads > 1 && pf_in_ready(&r->in))
        take_more(&r->in);
    r->ahead = 0;
    return st;
}

/* How much of n bytes is whole texts, of which the first `seen` have none. */
static size_t
whole(const struct reader *r, const char *p, size_t n, size_t seen)
{
    const char *end;

    if (r->t->delimiter < 0)
        return 0;
    if (r->parts) {
        end = n > seen ? memchr(p + seen, r->t->delimiter, n - seen) : NULL;
        return end ? (size_t)(end - p) + 1 : 0;
    }
    while (n > seen && p[n - 1] != (char)r->t->delimiter)
        n--;
    return n > seen ? n : 0;
}

/* All texts of an open file; false if no more is to be read. */
static bool
each(struct reader *r)
{
    size_t seen = 0, tried = 0, have = 0, n;
    enum pf_status st;
    struct pf_err err;
    const char *p = "";

    for (;;) {
        while ((n = whole(r, p, have, seen))) {
            if (r->parts) {
                if (!part(r, p, n - 1, true))
                    return false;
                pf_in_skip(&r->in, 1);
            } else if (!batch(r, p, n)) {
                return false;
            }
            p = known(r, &have);
            seen = tried = 0;
        }
        seen = have;
        /* A part that could not begin is tried again when it has doubled. */
        if (r->t->part && have >= LONG && have >= 2 * tried) {
            tried = have;
            if (!part(r, p, have, false))
                return false;
            known(r, &seen);
            if (seen < have)
                tried = 0;
        }
        st = fill(r, &err);
        p = known(r, &have);
        if (st == PF_END)
            break;
        if (st) {
            if (r->parts)
                r->t->drop(r->t->ctx);
            settle(r->t);
            return cli_failed(r->file, r->number + 1, NULL, err.msg);
        }
    }
    if (r->parts)
        return part(r, p, have, true);
    /* A last line without its end; or a whole file, be it empty (but nothing
     * on standard input is nothing). */
    return !(have || (r->t->delimiter < 0 && !r->in.keep))
        || batch(r, p, have);
}

int
cli_run_texts(const struct cli_texts *texts)
{
    struct reader r = { .t = texts };
    struct pf_err err;
    bool go_on = true;

    cli_begin(texts->format, texts->text);
    for (size_t i = 0; i < cli.n_files && go_on; i++) {
        r.file = cli.files[i];
        r.number = 0;
        r.parts = r.bad = false;
        r.ahead = 0;
        if (cli_is_fifo(r.file))
            cli_flush();
        if (pf_in_open(&r.in, r.file, &err)) {
            go_on = cli_failed(r.file, 0, NULL, err.msg);
            continue;
        }
        go_on = each(&r);
        settle(texts);
        cli_count_input(&r.in);
        pf_in_fini(&r.in);
    }
    pf_memory_fini(&r.block);
    if ((go_on || (texts->enough && texts->enough(texts->ctx))) && texts->end
        && texts->end(texts->ctx, &err))
        cli_die_writing(&err);
    return cli_finish();
}
