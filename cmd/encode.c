/*
 * Texts become ids, and ids become what was asked for: by workers, each of
 * which takes a share of the texts and writes to memory of its own, so that
 * the output has its order whatever their number is.
 */
#include "encode-private.h"

#include <stdlib.h>
#include <string.h>

#include <pipeformer/json.h>
#include <pipeformer/pool.h>

enum { SHARES = 8 }; /* for each thread, if there are several */

static void
set_special(struct pf_encoder *enc, const char *special)
{
    const char *p = special, *comma;
    struct pf_err err;
    size_t len;

    if (!p || strcmp(p, "none") == 0)
        return;
    if (strcmp(p, "all") == 0) {
        pf_encoder_special_all(enc);
        return;
    }
    for (;; p = comma + 1) {
        comma = strchr(p, ',');
        len = comma ? (size_t)(comma - p) : strlen(p);
        if (pf_encoder_special_add(enc, p, len, &err))
            cli_usage("--special: %s", err.msg);
        if (!comma)
            return;
    }
}

static void
new_encoder(struct encode *e, struct encode_coder *c)
{
    struct pf_err err;

    if (pf_encoder_new(&c->enc, e->tok, &err))
        cli_die("%s", err.msg);
    if (e->offsets)
        pf_encoder_track(c->enc);
    set_special(c->enc, e->special);
}

void
encode_start(struct encode *e)
{
    e->n_coders = cli.threads;
    e->n_workers = e->n_coders == 1 ? 1 : e->n_coders * SHARES;
    e->coders = calloc(e->n_coders, sizeof *e->coders);
    e->workers = calloc(e->n_workers, sizeof *e->workers);
    if (!e->coders || !e->workers)
        cli_die("out of memory");
    new_encoder(e, &e->coders[0]);
    for (size_t i = 0; i < e->n_coders; i++)
        atomic_flag_clear(&e->coders[i].busy);
    for (size_t i = 0; i < e->n_workers; i++) {
        e->workers[i].rec = (struct pf_record)PF_RECORD_INIT;
        e->workers[i].e = e;
    }
}

void
encode_run(struct encode *e, void (*task)(void *ctx, size_t i), void *ctx,
    size_t n)
{
    struct pf_err err;

    if (n > 1 && !e->pool) {
        for (size_t i = 1; i < e->n_coders; i++)
            new_encoder(e, &e->coders[i]);
        if (pf_pool_new(&e->pool, e->n_coders, &err))
            cli_die("%s", err.msg);
    }
    if (n > 1)
        pf_pool_run(e->pool, task, ctx, n);
    else if (n)
        task(ctx, 0);
}

struct encode_coder *
encode_take_coder(struct encode *e)
{
    for (size_t i = 0;; i = (i + 1) % e->n_coders)
        if (!atomic_flag_test_and_set(&e->coders[i].busy))
            return &e->coders[i];
}

/* --- Many texts --- */

void
encode_make(struct encode_worker *w, struct pf_encoder *enc)
{
    struct encode_job job = { 0 };
    const char *end;

    w->enc = enc;
    w->st = PF_OK;
    for (w->done = 0; !w->block && w->done < w->n; w->done++) {
        w->st = encode_one(w, &w->jobs[w->done], &w->err);
        if (w->st)
            return;
    }
    for (; w->block && w->block < w->end; w->done++) {
        w->st = encode_together(w, &w->err);
        if (w->st)
            return;
        if (w->block == w->end)
            break;
        end = memchr(w->block, w->delimiter, (size_t)(w->end - w->block));
        job.text = w->block;
        job.len = (size_t)((end ? end : w->end) - w->block);
        job.number = w->number + w->done;
        w->block += job.len + 1;
        w->st = encode_one(w, &job, &w->err);
        if (w->st)
            return;
    }
}

static void
work(void *ctx, size_t i)
{
    struct encode *e = ctx;
    struct encode_coder *coder = encode_take_coder(e);

    encode_make(&e->workers[i], coder->enc);
    atomic_flag_clear(&coder->busy);
}

static void
add_up(struct encode *e, struct encode_worker *w)
{
    e->sum += w->sum;
    cli_stats.tokens += w->sum;
    e->misfit |= w->misfit;
    w->sum = 0;
    w->misfit = false;
}

enum pf_status
encode_collect(struct encode *e, struct encode_worker *w, struct pf_err *err)
{
    enum pf_status st = PF_OK;

    add_up(e, w);
    if (w->out.len)
        st = pf_out_write(&cli_out, w->out.data, w->out.len, err);
    pf_buf_clear(&w->out);
    return st;
}

/* One that does not fit is the answer, whatever comes behind it. */
static bool
answered(const struct encode *e)
{
    return e->output == ENCODE_FITS && e->misfit;
}

enum pf_status
encode_write_share(struct encode *e, struct encode_worker *w, size_t first,
    struct encode_told *told, struct pf_err *err)
{
    enum pf_status st;

    for (;;) {
        st = encode_collect(e, w, err);
        first += w->done;
        told->stop = answered(e);
        if (st || !w->st || told->stop)
            return st;
        if (!told->failed(told->where, first, &w->err)) {
            told->stop = true;
            return PF_OK;
        }
        first++;
        if (w->block) {
            w->number += w->done + 1;
        } else {
            w->jobs += w->done + 1;
            w->n -= w->done + 1;
        }
        encode_make(w, w->enc);
    }
}

/* Jobs that are not long, shared by their bytes. */
static enum pf_status
share(struct encode *e, struct encode_job *jobs, size_t n, size_t first,
    struct encode_told *told, struct pf_err *err)
{
    size_t bytes = 0, sum = 0, target, workers;
    enum pf_status st = PF_OK;
    struct encode_worker *w;

    for (size_t i = 0; i < n; i++)
        bytes += jobs[i].len + jobs[i].pair_len + 1;
    workers = bytes / ENCODE_SHARE + 1 < e->n_workers ? bytes / ENCODE_SHARE + 1
        : e->n_workers;
    for (size_t k = 0, i = 0; k < workers; k++) {
        w = &e->workers[k];
        target = bytes / workers * (k + 1);
        w->block = NULL;
        w->jobs = jobs + i;
        for (w->n = 0; i < n && (k + 1 == workers || sum < target); w->n++) {
            sum += jobs[i].len + jobs[i].pair_len + 1;
            i++;
        }
    }
    encode_run(e, work, e, workers);
    for (size_t k = 0; k < workers && !st && !told->stop; k++) {
        w = &e->workers[k];
        st = encode_write_share(e, w, first + (size_t)(w->jobs - jobs), told,
            err);
    }
    return st;
}

static enum pf_status
one_long(struct encode *e, const struct encode_job *job, struct pf_err *err)
{
    struct pf_buf ids = PF_BUF_INIT, spans = PF_BUF_INIT;
    struct encode_body a = { 0 };
    enum pf_status st = encode_long(e, job->text, job->len, &ids, &spans, err);

    if (!st) {
        a.ids = (const uint32_t *)(const void *)ids.data;
        a.spans = (const size_t *)(const void *)spans.data;
        a.n = ids.len / sizeof *a.ids;
        st = encode_finish(&e->workers[0], job, &a, NULL, err);
    }
    if (!st)
        st = encode_collect(e, &e->workers[0], err);
    pf_buf_clear(&e->workers[0].out);
    pf_buf_fini(&ids);
    pf_buf_fini(&spans);
    return st;
}

enum pf_status
encode_jobs(struct encode *e, struct encode_job *jobs, size_t n,
    cli_failure *failed, void *where, struct pf_err *err)
{
    struct encode_told told = { failed, where, false };
    enum pf_status st = PF_OK;
    size_t from = 0;
    bool is_long;

    for (size_t i = 0; i <= n && !st && !told.stop; i++) {
        is_long = i < n && jobs[i].len >= ENCODE_LONG && !jobs[i].pair
            && e->n_workers > 1;
        if (i < n && !is_long)
            continue;
        if (i > from)
            st = share(e, jobs + from, i - from, from, &told, err);
        told.stop |= answered(e);
        if (is_long && !st && !told.stop) {
            st = one_long(e, &jobs[i], err);
            if (st && st != PF_EWRITE) {
                told.stop = !failed(where, i, err);
                st = PF_OK;
            }
        }
        from = i + 1;
    }
    return st;
}

enum pf_status
encode_write_count(uint64_t n, struct pf_err *err)
{
    char line[24];
    size_t len = pf_i64_print(line, (int64_t)n);

    line[len++] = '\n';
    return pf_out_write(&cli_out, line, len, err);
}
