/* Texts from bytes: by lines, by NULs, or a file each. */
#include "cli.h"

#include <string.h>

enum {
    LONG = 1 << 20,    /* from here on a text is worked on in parts */
    MUCH = 1 << 16,    /* bytes that come behind a block at once */
    FEW = 1 << 14,     /* for several threads there must be more */
};

struct reader {
    const struct cli_texts *t;
    const char *file;
    struct pf_in in;
    struct pf_memory block; /* of the texts that several threads work on */
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

/* The bytes that are there. */
static const char *
there(const struct reader *r, size_t *n)
{
    *n = r->in.end - r->in.start;
    return r->in.data ? r->in.data + r->in.start : "";
}

/* How much of what is there is whole texts, if the first `seen` bytes have no
 * end of one. */
static size_t
whole(const struct reader *r, size_t seen)
{
    const char *end, *p;
    size_t n;

    p = there(r, &n);
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

/* Takes n bytes away from the input, so that more can be read while they are
 * worked on; NULL if there is no memory. */
static const char *
take(struct pf_in *in, size_t n, struct pf_memory *memory)
{
    const char *p = pf_in_take(in, n, memory);

    if (p)
        return p;
    if (memory->cap < n) {
        pf_memory_fini(memory);
        memory->data = pf_memory_new(n);
        memory->cap = memory->data ? n : 0;
    }
    if (!memory->data)
        return NULL;
    memcpy(memory->data, in->data + in->start, n);
    pf_in_skip(in, n);
    return memory->data;
}

/* As cli_block's.  A failure to read comes again. */
static const char *
more(void *where, struct pf_memory *memory, size_t *len)
{
    struct reader *r = where;
    size_t have = r->in.end - r->in.start, seen = have;
    struct pf_err later;

    for (*len = 0; have < MUCH || (!*len && have < LONG);) {
        if (!pf_in_ready(&r->in) || pf_in_fill(&r->in, &later))
            break;
        *len = whole(r, seen);
        have = r->in.end - r->in.start;
        seen = *len ? 0 : have;
    }
    return *len ? take(&r->in, *len, memory) : NULL;
}

/* Hands on whole texts; false if no more are to be read. */
static bool
batch(struct reader *r, const char *block, size_t len)
{
    struct cli_block b = { block, len, failed, NULL, r };
    const char *taken = cli.threads > 1 && len > FEW
        ? take(&r->in, len, &r->block) : NULL;
    struct pf_err err;
    size_t n = 0;

    if (taken) {
        b.p = taken;
        b.more = more;
    }
    if (r->t->batch(r->t->ctx, &b, &n, &err)) {
        broken(r, &err);
        return false;
    }
    if (!taken)
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

/* All texts of an open file; false if no more is to be read. */
static bool
each(struct reader *r)
{
    size_t seen = 0, tried = 0, have = 0, n;
    enum pf_status st;
    struct pf_err err;
    const char *p = "";

    for (;;) {
        while ((n = whole(r, seen))) {
            if (r->parts) {
                if (!part(r, p, n - 1, true))
                    return false;
                pf_in_skip(&r->in, 1);
            } else if (!batch(r, p, n)) {
                return false;
            }
            p = there(r, &have);
            seen = tried = 0;
        }
        seen = have;
        /* A part that could not begin is tried again when it has doubled. */
        if (r->t->part && have >= LONG && have >= 2 * tried) {
            tried = have;
            if (!part(r, p, have, false))
                return false;
            there(r, &seen);
            if (seen < have)
                tried = 0;
        }
        if (!pf_in_ready(&r->in))
            cli_flush();
        st = pf_in_fill(&r->in, &err);
        p = there(r, &have);
        if (st == PF_END)
            break;
        if (st) {
            if (r->parts)
                r->t->drop(r->t->ctx);
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
        if (cli_is_fifo(r.file))
            cli_flush();
        if (pf_in_open(&r.in, r.file, &err)) {
            go_on = cli_failed(r.file, 0, NULL, err.msg);
            continue;
        }
        go_on = each(&r);
        cli_count_input(&r.in);
        pf_in_fini(&r.in);
    }
    pf_memory_fini(&r.block);
    if ((go_on || (texts->enough && texts->enough(texts->ctx))) && texts->end
        && texts->end(texts->ctx, &err))
        cli_die_writing(&err);
    return cli_finish();
}
