/*
 * The record loop: gathers what complete records wait on input into a batch,
 * works on it, and writes out what it has before it would wait for more.
 */
#include "cli.h"

#include <stdlib.h>

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

/* Writes an error record in its place; returns whether to go on. */
static bool
write_error(struct loop *l, struct pf_record *rec)
{
    if (cli.keep_going && l->f->hold && l->f->hold(l->f->ctx, rec))
        return cli_fail_quietly();
    return cli_pass_error(rec);
}

/* As cli_failed. */
static bool
failed(struct loop *l, const char *file, uint64_t number,
    const struct pf_record *rec, const char *msg)
{
    struct pf_record e = PF_RECORD_INIT;
    bool go_on;

    cli_complain(&e, file, number, rec, msg);
    go_on = write_error(l, &e);
    pf_record_fini(&e);
    return go_on;
}

/* Writes items[from .. to). */
static void
write_items(struct loop *l, size_t from, size_t to)
{
    struct pf_err err;

    for (size_t i = from; i < to; i++)
        if (!l->items[i].skip && !l->f->text
            && cli_emit(&l->items[i].rec, &err)) {
            if (err.status == PF_EWRITE)
                cli_die_writing(&err);
            l->stop |= !failed(l, l->items[i].file, l->items[i].number,
                &l->items[i].rec, err.msg);
            if (l->stop)
                return;
        }
}

/* The filter's `one` for each of a batch. */
static enum pf_status
each(const struct cli_filter *f, struct cli_item **items, size_t n,
    size_t *at, struct pf_err *err)
{
    enum pf_status st = PF_OK;

    for (size_t i = 0; i < n && !st; i++) {
        *at = i;
        if (!items[i]->skip)
            st = f->one(f->ctx, items[i], err);
    }
    return st;
}

/* Works on the batch and writes it, in order. */
static void
work(struct loop *l)
{
    struct cli_item *batch[BATCH], **next = batch;
    size_t n = 0, written = 0, some, at, i;
    enum pf_status st;
    struct pf_err err;

    for (i = 0; i < l->n; i++)
        if (!(l->f->pass_marks && pf_record_is_mark(&l->items[i].rec)))
            batch[n++] = &l->items[i];
    cli_stats.batches += n > 0;
    while (n && !l->stop) {
        at = 0;
        some = l->f->together ? l->f->together(l->f->ctx, n) : n;
        st = l->f->step ? l->f->step(l->f->ctx, next, some, &at, &err)
            : each(l->f, next, some, &at, &err);
        if (!st && some == n)
            break;
        if (!st) {
            next += some;
            n -= some;
            i = (size_t)(*next - l->items);
            write_items(l, written, i);
            written = i;
            cli_flush();
            continue;
        }
        if (st == PF_EWRITE)
            cli_die_writing(&err);
        i = (size_t)(next[at] - l->items);
        write_items(l, written, i);
        written = i + 1;
        if (!l->stop)
            l->stop = !failed(l, l->items[i].file, l->items[i].number,
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
    if (st == PF_AGAIN)
        st = pf_fail(&err, PF_ESTATE, "nothing to wait for");
    if (st) {
        struct cli_item moved = *item;

        *item = (struct cli_item){ .rec = PF_RECORD_INIT };
        work(l);
        if (!l->stop)
            l->stop = !failed(l, moved.file, moved.number, &moved.rec,
                err.msg) || st == PF_ENOMEM;
        pf_record_fini(&moved.rec);
        return;
    }
    l->n++;
    l->bytes += item->bytes;
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
pass_error(struct loop *l, struct pf_record *rec)
{
    enum pf_status st = l->f->error ? l->f->error(l->f->ctx, rec) : PF_OK;

    l->stop = !(st == PF_AGAIN ? cli_fail_quietly() : write_error(l, rec));
    l->stop |= st == PF_END;
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
    const char *line;
    size_t len;
    bool lost;

    if (cli_is_fifo(file)) {
        work(l);
        cli_flush();
    }
    if (pf_in_open(&in, file, &err)) {
        work(l);
        l->stop |= !failed(l, file, 0, NULL, err.msg);
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
        if (l->f->line && l->n == 0 && pf_reader_line(&r, &line, &len)
            && l->f->line(l->f->ctx, line, len)) {
            pf_reader_take(&r);
            number++;
            cli_stats.records++;
            continue;
        }
        item = &l->items[l->n];
        item->skip = false;
        item->bytes = 0;
        item->file = file;
        item->number = ++number;
        st = pf_reader_next(&r, &item->rec, &lost, &err);
        if (st == PF_END)
            break;
        if (!st && !l->f->all_tensors) {
            st = pf_record_check(&item->rec, &err);
            lost = false;
        }
        if (st) {
            struct pf_record bad = item->rec;

            item->rec = (struct pf_record)PF_RECORD_INIT;
            work(l);
            if (!l->stop)
                l->stop = !failed(l, file, number, &bad, err.msg);
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
                pass_error(l, &bad);
            pf_record_fini(&bad);
            continue;
        }
        admit(l, item);
    }
    cli_count_input(&in);
    pf_reader_fini(&r);
    pf_in_fini(&in);
}

int
cli_run(const struct cli_filter *filter)
{
    struct loop l = { .f = filter };
    struct pf_err err;

    cli_begin(filter->format, filter->text);
    pf_widen_pipe(0);
    pf_widen_pipe(1);
    l.items = calloc(BATCH, sizeof *l.items);
    if (!l.items)
        cli_die("out of memory");
    for (size_t i = 0; i < cli.n_files && !l.stop; i++)
        run_file(&l, cli.files[i]);
    work(&l);
    if (filter->end && filter->end(filter->ctx, &err)) {
        if (err.status == PF_EWRITE)
            cli_die_writing(&err);
        cli_die("%s", err.msg);
    }
    for (size_t i = 0; i < BATCH; i++)
        pf_record_fini(&l.items[i].rec);
    free(l.items);
    free(cli.keep);
    return cli_finish();
}
