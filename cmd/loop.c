/*
 * One thread that polls three places: the prompts, the pipe's input, the
 * pipe's output.  What is to go into the pipe waits in memory, so the pipe can
 * always get rid of its output and nothing can get stuck; how much waits is
 * bounded by the number of sequences that are let in.
 */
#include "loop.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "prompts.h"

enum { BACKLOG = 64 }; /* finished sequences that wait for an earlier one */

void
loop_free_sequence(void *p)
{
    struct sequence *s = p;

    free(s->ids);
    free(s->seq);
    free(s);
}

/* --- Output --- */

/* Writes the whole records whose turn it is. */
static void
write_finished(struct loop *l)
{
    struct pf_buf *b;
    struct pf_err err;

    while ((b = &l->finished[l->next_out % l->size])->len) {
        if (pf_out_write(&cli_out, b->data, b->len, &err))
            cli_die_writing(&err);
        pf_buf_fini(b);
        l->next_out++;
    }
}

size_t
loop_index(struct loop *l)
{
    struct pf_buf *more;

    if (l->next_index - l->next_out == l->size) {
        more = calloc(2 * l->size, sizeof *more);
        if (!more)
            cli_die("out of memory");
        for (size_t i = l->next_out; i < l->next_index; i++)
            more[i % (2 * l->size)] = l->finished[i % l->size];
        free(l->finished);
        l->finished = more;
        l->size *= 2;
    }
    return l->next_index++;
}

void
loop_emit(struct loop *l, const struct pf_record *rec, size_t index)
{
    struct pf_buf *b;
    struct pf_err err;

    if (!l->opt->whole || l->stop) {
        if (cli_emit(rec, &err))
            cli_die_writing(&err);
        return;
    }
    b = &l->finished[index % l->size];
    if (pf_record_print(b, rec, &err))
        cli_die("%s", err.msg);
    write_finished(l);
}

bool
loop_add_ids(struct sequence *s, const uint32_t *ids, size_t n)
{
    if (!pf_grow(&s->ids, &s->cap, s->n + n, sizeof *s->ids))
        return false;
    if (n)
        memcpy(s->ids + s->n, ids, n * sizeof *ids);
    s->n += n;
    return true;
}

/* --- Tokens --- */

/* A sequence has ended with this record: its last, or an error. */
static void
finish(struct loop *l, struct sequence *s, struct pf_record *rec)
{
    size_t skip = l->opt->echo ? 0 : s->prompt;
    struct pf_err err;

    if (l->opt->whole && !pf_record_is_error(rec)) {
        pf_record_drop(rec, "logprob");
        pf_record_drop(rec, "top");
        pf_record_drop(rec, "pos");
        if ((skip && pf_record_set_i64(rec, "pos", (int64_t)skip, &err))
            || !pf_record_put(rec, "ids", PF_I32, 1,
                (size_t[]){ s->n - skip }, s->ids + skip))
            cli_die("out of memory");
    }
    loop_emit(l, rec, s->index);
    pf_seqmap_take(&l->live, l->key.data, l->key.len);
    loop_free_sequence(s);
}

static enum pf_status
take_token(struct loop *l, struct pf_record *rec, struct pf_err *err)
{
    const uint32_t *ids;
    struct sequence *s;
    enum pf_status st;
    size_t n, pos;

    pf_buf_clear(&l->key);
    st = pf_record_seq(rec, "seq", &l->key, err);
    if (st)
        return st;
    s = pf_seqmap_get(&l->live, l->key.data, l->key.len);
    if (pf_record_is_error(rec)) {
        l->stop |= !cli_fail_quietly();
        if (s)
            finish(l, s, rec);
        else if (!pf_record_field(rec, "seq")) {
            l->stop = true; /* whose it is cannot be told */
            loop_emit(l, rec, 0);
        } /* else another piece of a prompt that has failed already */
        return PF_OK;
    }
    if (!s)
        return pf_fail(err, PF_ESTATE, "the pipe gives a record of a sequence "
            "that it was not given");
    st = pf_record_ids(rec, "ids", &ids, &n, err);
    if (!st && n == 0)
        st = pf_fail(err, PF_ESHAPE, "the pipe gives a record without ids");
    if (!st)
        st = pf_record_pos(rec, &pos, err);
    if (!st && pos != s->n)
        st = pf_fail(err, PF_ESTATE, "the pipe gives a record of position "
            "%zu where the sequence has %zu (does it end with sample?)", pos,
            s->n);
    if (st)
        return st;
    if (!loop_add_ids(s, ids, n))
        return pf_fail_mem(err);
    cli_stats.tokens += n;
    child_feed(&l->child, rec); /* the next step; with `done`, the mark */
    if (pf_record_is_done(rec))
        finish(l, s, rec);
    else if (!l->opt->whole)
        loop_emit(l, rec, s->index);
    return PF_OK;
}

/* Takes the records that the pipe has given. */
static void
read_tokens(struct loop *l, struct pf_record *rec)
{
    enum pf_status st;
    struct pf_err err;

    while (!l->stop && !l->child_ended && pf_reader_ready(&l->child.reader)) {
        st = pf_reader_next(&l->child.reader, rec, NULL, &err);
        if (st == PF_END) {
            l->child_ended = true;
            break;
        }
        if (!st)
            st = take_token(l, rec, &err);
        if (st == PF_EWRITE)
            cli_die_writing(&err);
        if (st)
            cli_die("from the pipe: %s", err.msg);
    }
}

static void
wait_for_something(struct loop *l)
{
    struct pollfd p[3];
    nfds_t n = 0;

    p[n++] = (struct pollfd){ .fd = l->child.in.fd, .events = POLLIN };
    if (l->child.to >= 0 && l->child.queue.len > l->child.sent)
        p[n++] = (struct pollfd){ .fd = l->child.to, .events = POLLOUT };
    if (prompts_room(l))
        p[n++] = (struct pollfd){ .fd = l->prompts.fd, .events = POLLIN };
    cli_flush();
    poll(p, n, -1);
}

int
loop_run(const struct loop_options *options)
{
    struct loop l = { .opt = options, .child = CHILD_INIT,
        .prompt_reader = PF_READER_INIT };
    struct pf_record rec = PF_RECORD_INIT;
    struct pf_err err;
    int status = 0;

    l.prompt_reader.main_name = "ids";
    l.size = options->parallel + BACKLOG;
    l.finished = calloc(l.size, sizeof *l.finished);
    if (!l.finished)
        cli_die("out of memory");
    cli_begin(PF_NDJSON, false);
    child_start(&l.child, options->pipe, options->own);
    for (;;) {
        read_tokens(&l, &rec);
        if (l.stop || l.child_ended)
            break;
        prompts_read(&l, &rec);
        child_send(&l.child);
        if (l.stop)
            break;
        if (l.live.n == 0 && (l.last || l.file == cli.n_files)
            && l.child.sent == l.child.queue.len)
            child_close(&l.child);
        wait_for_something(&l);
    }
    child_close(&l.child);
    close(l.child.in.fd);
    if (waitpid(l.child.pid, &status, 0) == l.child.pid && status
        && !cli_status())
        cli_die("the pipe ended with status %d", WIFEXITED(status)
            ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    if (!l.stop && (l.live.n || (!l.last && !prompts_ended(&l, &rec))))
        cli_die("the pipe ended before all sequences were done");
    if (l.error.len && pf_out_write(&cli_out, l.error.data, l.error.len, &err))
        cli_die_writing(&err);
    pf_buf_fini(&l.error);
    l.child.in.fd = -1;
    pf_in_fini(&l.child.in);
    pf_reader_fini(&l.child.reader);
    pf_reader_fini(&l.prompt_reader);
    if (l.file_open)
        pf_in_fini(&l.prompts);
    pf_seqmap_fini(&l.live, loop_free_sequence);
    pf_seqmap_fini(&l.part, loop_free_sequence);
    for (size_t i = 0; i < l.size; i++)
        pf_buf_fini(&l.finished[i]);
    free(l.finished);
    pf_buf_fini(&l.child.queue);
    pf_buf_fini(&l.key);
    pf_record_fini(&rec);
    return cli_finish();
}
