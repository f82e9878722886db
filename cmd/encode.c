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

enum {
    SHARE = 1 << 14, /* bytes of text below which no other worker is woken */
    LONG = 1 << 17,  /* of one text, from which on it is shared */
    TURN = 1 << 15,  /* of texts that a worker is given at once */
    SHARES = 8,      /* for each thread, if there are several */
};

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

void
encode_start(struct encode *e, const char *special)
{
    struct pf_err err;

    if (pf_pool_new(&e->pool, cli.threads, &err))
        cli_die("%s", err.msg);
    e->n_coders = pf_pool_threads(e->pool);
    e->n_workers = e->n_coders == 1 ? 1 : e->n_coders * SHARES;
    e->coders = calloc(e->n_coders, sizeof *e->coders);
    e->workers = calloc(e->n_workers, sizeof *e->workers);
    if (!e->coders || !e->workers)
        cli_die("out of memory");
    for (size_t i = 0; i < e->n_coders; i++) {
        if (pf_encoder_new(&e->coders[i].enc, e->tok, &err))
            cli_die("%s", err.msg);
        if (e->offsets)
            pf_encoder_track(e->coders[i].enc);
        set_special(e->coders[i].enc, special);
        atomic_flag_clear(&e->coders[i].busy);
    }
    for (size_t i = 0; i < e->n_workers; i++) {
        e->workers[i].rec = (struct pf_record)PF_RECORD_INIT;
        e->workers[i].e = e;
    }
}

void
encode_fini(struct encode *e)
{
    for (size_t i = 0; i < e->n_coders; i++)
        pf_encoder_free(e->coders[i].enc);
    for (size_t i = 0; i < e->n_workers; i++) {
        pf_buf_fini(&e->workers[i].out);
        pf_buf_fini(&e->workers[i].ids);
        pf_buf_fini(&e->workers[i].segments);
        pf_buf_fini(&e->workers[i].spans);
        pf_record_fini(&e->workers[i].rec);
    }
    free(e->coders);
    free(e->workers);
    pf_pool_free(e->pool);
}

/* A coder that no one works with: there is one for each thread. */
static struct encode_coder *
take_coder(struct encode *e)
{
    for (size_t i = 0;; i = (i + 1) % e->n_coders)
        if (!atomic_flag_test_and_set(&e->coders[i].busy))
            return &e->coders[i];
}

/* --- Many texts --- */

/* Until all is done or one fails, which is not counted. */
static void
work_with(struct encode_worker *w)
{
    struct encode_job job = { 0 };
    const char *end;

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
    struct encode_coder *coder = take_coder(e);

    e->workers[i].enc = coder->enc;
    work_with(&e->workers[i]);
    atomic_flag_clear(&coder->busy);
}

/* Takes what a worker has made. */
enum pf_status
encode_collect(struct encode *e, struct encode_worker *w, struct pf_err *err)
{
    enum pf_status st = PF_OK;

    if (w->out.len)
        st = pf_out_write(&cli_out, w->out.data, w->out.len, err);
    pf_buf_clear(&w->out);
    e->sum += w->sum;
    cli_stats.tokens += w->sum;
    e->misfit |= w->misfit;
    w->sum = 0;
    w->misfit = false;
    return st;
}

/* Who is told of failures, and whether to go on. */
struct told {
    cli_failure *failed;
    void *where;
    bool stop;
};

/* A worker's share is written, and what it left after a failure is made. */
static enum pf_status
write_share(struct encode *e, struct encode_worker *w, size_t first,
    struct told *told, struct pf_err *err)
{
    enum pf_status st;

    for (;;) {
        st = encode_collect(e, w, err);
        first += w->done;
        if (st || !w->st)
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
        work(e, (size_t)(w - e->workers));
    }
}

/* Jobs that are not long, shared by their bytes. */
static enum pf_status
share(struct encode *e, struct encode_job *jobs, size_t n, size_t first,
    struct told *told, struct pf_err *err)
{
    size_t bytes = 0, sum = 0, target, workers;
    enum pf_status st = PF_OK;
    struct encode_worker *w;

    for (size_t i = 0; i < n; i++)
        bytes += jobs[i].len + jobs[i].pair_len + 1;
    workers = bytes / SHARE + 1 < e->n_workers ? bytes / SHARE + 1
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
    pf_pool_run(e->pool, work, e, workers);
    for (size_t k = 0; k < workers && !st && !told->stop; k++) {
        w = &e->workers[k];
        st = write_share(e, w, first + (size_t)(w->jobs - jobs), told, err);
    }
    return st;
}

static void
work_part_with(struct encode_worker *w, struct pf_encoder *enc)
{
    const uint32_t *ids;
    size_t n;

    pf_buf_clear(&w->ids);
    pf_buf_clear(&w->spans);
    w->st = pf_encode(enc, w->text, w->len, &ids, &n, &w->err);
    if (w->st)
        return;
    pf_buf_add(&w->ids, ids, n * sizeof *ids);
    if (w->e->offsets) {
        const size_t *spans = pf_encoder_spans(enc);

        for (size_t k = 0; k < n; k++)
            encode_add_span(w, spans[2 * k] + w->base,
                spans[2 * k + 1] + w->base);
    }
    w->st = w->ids.failed || w->spans.failed ? pf_fail_mem(&w->err) : PF_OK;
}

static void
work_part(void *ctx, size_t i)
{
    struct encode *e = ctx;
    struct encode_coder *coder = take_coder(e);

    work_part_with(&e->workers[i], coder->enc);
    atomic_flag_clear(&coder->busy);
}

/* The ids of one long text, by all workers. */
enum pf_status
encode_long(struct encode *e, const char *text, size_t len,
    struct pf_buf *ids, struct pf_buf *spans, struct pf_err *err)
{
    size_t from = 0, to, n = 0;
    struct encode_worker *w;

    for (size_t i = 0; i < e->n_workers && from < len; i++) {
        to = from + (len - from) / (e->n_workers - i);
        to = i + 1 == e->n_workers ? len
            : from + pf_encoder_border(e->coders[0].enc, text + from,
                to - from);
        if (to == from)
            to = len;
        w = &e->workers[n++];
        w->text = text + from;
        w->len = to - from;
        w->base = from;
        from = to;
    }
    pf_pool_run(e->pool, work_part, e, n);
    for (size_t i = 0; i < n; i++) {
        w = &e->workers[i];
        if (w->st) {
            *err = w->err;
            return w->st;
        }
        if (w->ids.len)
            pf_buf_add(ids, w->ids.data, w->ids.len);
        if (w->spans.len)
            pf_buf_add(spans, w->spans.data, w->spans.len);
    }
    return ids->failed || spans->failed ? pf_fail_mem(err) : PF_OK;
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
    struct told told = { failed, where, false };
    enum pf_status st = PF_OK;
    size_t from = 0;
    bool is_long;

    for (size_t i = 0; i <= n && !st && !told.stop; i++) {
        is_long = i < n && jobs[i].len >= LONG && !jobs[i].pair
            && e->n_workers > 1;
        if (i < n && !is_long)
            continue;
        if (i > from)
            st = share(e, jobs + from, i - from, from, &told, err);
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

static size_t
count_bytes(const char *p, size_t n, char c)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += p[i] == c;
    return count;
}

static void
count_texts(void *ctx, size_t i)
{
    struct encode_worker *w = &((struct encode *)ctx)->workers[i];

    w->n = count_bytes(w->block, (size_t)(w->end - w->block),
        (char)w->delimiter);
}

/* Texts that are worked on together, `first` of the batch. */
static enum pf_status
some_texts(struct encode *e, const char *block, size_t len, int delimiter,
    uint64_t number, size_t first, size_t *n, struct told *told,
    struct pf_err *err)
{
    const char *end = block + len, *to;
    size_t workers = len / SHARE + 1 < e->n_workers ? len / SHARE + 1
        : e->n_workers;
    enum pf_status st = PF_OK;
    struct encode_worker *w;

    *n = 0;
    for (size_t k = 0; k < workers; k++) {
        w = &e->workers[k];
        to = block + (size_t)(end - block) / (workers - k);
        to = k + 1 < workers ? memchr(to, delimiter, (size_t)(end - to))
            : NULL;
        w->block = block;
        w->end = to ? to + 1 : end;
        w->delimiter = delimiter;
        block = w->end;
    }
    pf_pool_run(e->pool, count_texts, e, workers);
    for (size_t k = 0; k < workers; k++) {
        w = &e->workers[k];
        w->number = number + *n;
        w->first = first + *n;
        *n += w->n;
    }
    *n += end[-1] != (char)delimiter;
    pf_pool_run(e->pool, work, e, workers);
    for (size_t k = 0; k < workers && !st && !told->stop; k++)
        st = write_share(e, &e->workers[k], e->workers[k].first, told, err);
    return st;
}

enum pf_status
encode_block(struct encode *e, const char *block, size_t len, int delimiter,
    uint64_t number, cli_failure *failed, void *where, size_t *n,
    struct pf_err *err)
{
    const char *end = block + len, *to;
    struct told told = { failed, where, false };
    struct encode_job job = { .text = block, .number = number };
    enum pf_status st = PF_OK;
    size_t text = len, turn, count;

    if (delimiter >= 0 && (to = memchr(block, delimiter, len)))
        text = (size_t)(to - block);
    if (text + 1 >= len) { /* one text */
        *n = 1;
        job.len = text;
        return encode_jobs(e, &job, 1, failed, where, err);
    }
    /* Not too much at a time, so that a worker's output stays in its cache. */
    turn = e->n_workers * TURN;
    for (*n = 0; block < end && !st && !told.stop; block = to) {
        to = (size_t)(end - block) > turn ? memchr(block + turn, delimiter,
            (size_t)(end - block) - turn) : NULL;
        to = to ? to + 1 : end;
        st = some_texts(e, block, (size_t)(to - block), delimiter,
            number + *n, *n, &count, &told, err);
        *n += count;
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
