/*
 * One thread that polls three places: the prompts, the pipe's input, the
 * pipe's output.  What is to go into the pipe waits in memory, so the pipe can
 * always get rid of its output and nothing can get stuck; how much waits is
 * bounded by the number of sequences that are let in.
 */
#include "loop.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "interrupt.h"
#include "prompts.h"

enum { BACKLOG = 64 }; /* finished sequences that wait for an earlier one */

void
loop_free_sequence(void *p)
{
    struct sequence *s = p;

    if (!s)
        return;
    free(s->ids);
    free(s->seq);
    pf_record_fini(&s->last);
    free(s);
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

struct sequence *
loop_find(struct loop *l, const struct pf_record *rec)
{
    pf_buf_clear(&l->key);
    if (pf_record_seq(rec, "seq", &l->key, NULL))
        return NULL;
    return pf_seqmap_get(&l->live, l->key.data, l->key.len);
}

void
loop_keep(struct loop *l, struct sequence *s, struct pf_record *rec)
{
    struct pf_record before = s->last;

    if (!l->opt->whole)
        return;
    s->last = *rec;
    *rec = before;
}

void
loop_forget(struct loop *l, struct sequence *s)
{
    struct sequence *parent = s->parent;

    pf_seqmap_take(&l->live, l->key.data, l->key.len);
    l->stepping -= s->stepping;
    loop_free_sequence(s);
    l->running--;
    l->done++;
    if (!parent || --parent->left)
        return;
    loop_find(l, &parent->last);
    pf_seqmap_take(&l->live, l->key.data, l->key.len);
    loop_free_sequence(parent);
}

/* A sequence has ended with this record: its last, or an error. */
static void
finish(struct loop *l, struct sequence *s, struct pf_record *rec)
{
    if (l->opt->whole && !pf_record_is_error(rec))
        loop_make_whole(l, s, rec);
    loop_emit(l, rec, s->index);
    loop_forget(l, s);
}

/* Some filter failed: at this sequence, or at it cannot be told which. */
static void
take_error(struct loop *l, struct sequence *s, struct pf_record *rec)
{
    l->stop |= !cli_fail_quietly();
    if (s && s->left && !l->stop)
        samples_fail(l, s, rec);
    else if (s && !s->left)
        finish(l, s, rec);
    else if (s || !pf_record_field(rec, "seq")) {
        l->stop = true;
        loop_emit(l, rec, 0);
    } /* else another piece of a prompt that has failed already */
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
        take_error(l, s, rec);
        return PF_OK;
    }
    if (!s || s->left)
        return pf_fail(err, PF_ESTATE, s ? "the pipe answers a record that has "
            "more, which is not drawn from" : "the pipe gives a record of a "
            "sequence that it was not given");
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
    if (pf_record_is_done(rec)) {
        finish(l, s, rec);
        return PF_OK;
    }
    l->stepping += !s->stepping;
    s->stepping = true;
    l->step++;
    if (!l->opt->whole)
        loop_emit(l, rec, s->index);
    else
        loop_keep(l, s, rec);
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
        if (st && interrupt_signal()) /* it got the signal too */
            break;
        if (st) {
            progress_erase(&l->progress);
            cli_die("from the pipe: %s", err.msg);
        }
    }
}

static void
wait_for_something(struct loop *l)
{
    struct pollfd p[4];
    nfds_t n = 0;

    p[n++] = (struct pollfd){ .fd = l->child.in.fd, .events = POLLIN };
    p[n++] = (struct pollfd){ .fd = interrupt_fd(), .events = POLLIN };
    if (l->child.to >= 0 && l->sending)
        p[n++] = (struct pollfd){ .fd = l->child.to, .events = POLLOUT };
    if (prompts_room(l))
        p[n++] = (struct pollfd){ .fd = l->prompts.fd, .events = POLLIN };
    cli_flush();
    progress_draw(&l->progress, l->done, l->running, cli_stats.tokens);
    poll(p, n, progress_wait(&l->progress));
}

/*
 * Tokens come out of the pipe one by one, but the model computes a group as
 * fast as a few: they go in when all sequences that are past their prompts
 * have one, or a group and half of them, so that one half is in the blocks
 * while the other is scored and drawn.  What else there is goes in at once.
 */
static void
send(struct loop *l, bool at_once)
{
    size_t half = l->stepping / 2;

    if (at_once || l->step == l->stepping
        || (l->step >= CLI_GROUP && l->step >= half))
        l->sending = true;
    if (!l->sending)
        return;
    child_send(&l->child);
    if (l->child.sent == l->child.queue.len) {
        l->sending = false;
        l->step = 0;
    }
}

/* --- The loop --- */

/* Feeds and is fed, until all is done, or the pipe ends, or somebody wants. */
static void
run(struct loop *l, struct pf_record *rec)
{
    size_t waits;

    for (;;) {
        read_tokens(l, rec);
        if (l->stop || l->child_ended || interrupt_signal())
            return;
        waits = l->child.queue.len;
        samples_begin(l);
        prompts_read(l, rec);
        send(l, l->child.queue.len > waits);
        if (l->stop)
            return;
        if (l->live.n == 0 && (l->last || l->file == cli.n_files)
            && l->child.sent == l->child.queue.len)
            child_close(&l->child);
        wait_for_something(l);
    }
}

/* Waits for the pipe to end; how it went. */
static void
wait_for_child(struct loop *l, struct pf_record *rec)
{
    int status = 0;

    child_end(&l->child);
    if (waitpid(l->child.pid, &status, 0) == l->child.pid && status
        && !cli_status())
        cli_die("the pipe ended with status %d", WIFEXITED(status)
            ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    if (!l->stop && (l->live.n || (!l->last && !prompts_ended(l, rec))))
        cli_die("the pipe ended before all sequences were done");
}

static void
free_loop(struct loop *l)
{
    pf_buf_fini(&l->error);
    pf_in_fini(&l->child.in);
    pf_reader_fini(&l->child.reader);
    pf_reader_fini(&l->prompt_reader);
    if (l->file_open)
        pf_in_fini(&l->prompts);
    pf_seqmap_fini(&l->live, loop_free_sequence);
    pf_seqmap_fini(&l->part, loop_free_sequence);
    for (size_t i = 0; i < l->size; i++)
        pf_buf_fini(&l->finished[i].text);
    free(l->finished);
    pf_buf_fini(&l->child.queue);
    pf_buf_fini(&l->key);
    pf_buf_fini(&l->name);
}

int
loop_run(const struct loop_options *options)
{
    struct loop l = { .opt = options, .child = CHILD_INIT,
        .prompt_reader = PF_READER_INIT };
    struct pf_record rec = PF_RECORD_INIT;
    struct pf_err err;
    int status, sig;

    l.prompt_reader.main_name = "ids";
    l.size = options->parallel + BACKLOG;
    l.finished = calloc(l.size, sizeof *l.finished);
    if (!l.finished)
        cli_die("out of memory");
    cli_begin(PF_NDJSON, false);
    interrupt_catch(SIGINT);
    interrupt_catch(SIGTERM);
    child_start(&l.child, options->pipe);
    progress_start(&l.progress, !options->whole);
    run(&l, &rec);
    progress_erase(&l.progress);
    sig = l.stop ? 0 : interrupt_signal();
    if (sig)
        loop_write_unfinished(&l);
    else
        wait_for_child(&l, &rec);
    if (l.error.len && pf_out_write(&cli_out, l.error.data, l.error.len, &err))
        cli_die_writing(&err);
    status = cli_finish();
    if (sig) { /* what has been made is out before the pipe is waited for */
        child_end(&l.child);
        waitpid(l.child.pid, NULL, 0);
        status = 128 + sig;
    }
    free_loop(&l);
    pf_record_fini(&rec);
    return status;
}
