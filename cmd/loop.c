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

#include <pipeformer/seqmap.h>

#include "child.h"
#include "cli.h"

enum {
    CHUNK = 256,  /* a longer prompt goes in as several records */
    BACKLOG = 64, /* finished sequences that wait for an earlier one */
};

/* A sequence that was let in, or whose prompt is not whole yet. */
struct sequence {
    size_t index; /* of its prompt */
    uint32_t *ids;
    size_t n, cap, prompt; /* ids so far, of them the prompt's */
    char *seq;             /* JSON, of one that is not whole yet; or NULL */
};

struct loop {
    const struct loop_options *opt;
    struct child child;
    bool child_ended;

    struct pf_in prompts; /* the file at hand */
    struct pf_reader prompt_reader;
    size_t file; /* its index; n_files: no more prompts */
    bool file_open;
    uint64_t number; /* of the record in that file */

    struct pf_seqmap live, part; /* in the pipe; not whole yet */
    size_t next_index, next_out;
    /* With --whole: what finished[i % size] holds is the record of sequence i,
     * as it is to be written. */
    struct pf_buf *finished;
    size_t size;
    bool stop;
    bool last;           /* a prompt was no good: no more are read */
    struct pf_buf error; /* what is written of that when all is done */
    struct pf_buf key;
};

static void
free_sequence(void *p)
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

/* The place of the next prompt in the order of output. */
static size_t
new_index(struct loop *l)
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

/* Writes a record, now or when it is its turn. */
static void
emit(struct loop *l, const struct pf_record *rec, size_t index)
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

/* --- Prompts --- */

static bool
add_ids(struct sequence *s, const uint32_t *ids, size_t n)
{
    if (!pf_grow(&s->ids, &s->cap, s->n + n, sizeof *s->ids))
        return false;
    if (n)
        memcpy(s->ids + s->n, ids, n * sizeof *ids);
    s->n += n;
    return true;
}

/* Sends a prompt, in pieces where it is long. */
static enum pf_status
send_prompt(struct loop *l, struct pf_record *rec, const struct sequence *s,
    struct pf_err *err)
{
    enum pf_status st = PF_OK;
    size_t k;

    for (size_t i = 0; i < s->n && !st; i += k) {
        k = s->n - i < CHUNK ? s->n - i : CHUNK;
        pf_record_drop(rec, "more");
        if (i)
            st = pf_record_set_i64(rec, "pos", (int64_t)i, err);
        if (!st && i + k < s->n)
            st = pf_record_set(rec, "more", "true", 4, err);
        if (!st && !pf_record_put(rec, "ids", PF_I32, 1, (size_t[]){ k },
                s->ids + i))
            st = pf_fail_mem(err);
        if (!st)
            child_feed(&l->child, rec);
    }
    return st;
}

/* A prompt is whole: lets it in. */
static enum pf_status
admit(struct loop *l, struct pf_record *rec, struct sequence *s,
    struct pf_err *err)
{
    enum pf_status st = pf_seqmap_put(&l->live, l->key.data, l->key.len, s,
        err);

    if (st) {
        free_sequence(s);
        return st;
    }
    s->prompt = s->n;
    pf_record_drop(rec, "pos");
    if (l->opt->echo && !l->opt->whole) {
        st = pf_record_set(rec, "more", "true", 4, err);
        if (!st && !pf_record_put(rec, "ids", PF_I32, 1, &s->n, s->ids))
            st = pf_fail_mem(err);
        if (!st)
            emit(l, rec, s->index);
    }
    return st ? st : send_prompt(l, rec, s, err);
}

/* Takes a prompt, or a part of one. */
static enum pf_status
add_prompt(struct loop *l, struct pf_record *rec, struct pf_err *err)
{
    const struct pf_field *seq = pf_record_field(rec, "seq");
    const uint32_t *ids;
    struct sequence *s;
    size_t pos, n;
    enum pf_status st;
    bool more;

    pf_buf_clear(&l->key);
    if ((st = pf_record_seq(rec, "seq", &l->key, err))
        || (st = pf_record_pos(rec, &pos, err))
        || (st = pf_record_bool(rec, "more", &more, err))
        || (st = pf_record_ids(rec, "ids", &ids, &n, err)))
        return st;
    s = pf_seqmap_get(&l->part, l->key.data, l->key.len);
    if (n == 0 && !s)
        return pf_fail(err, PF_ESHAPE, "the prompt has no ids: there is "
            "nothing to go on from");
    if (pf_seqmap_get(&l->live, l->key.data, l->key.len))
        return pf_fail(err, PF_ESTATE, "seq %.*s is still being generated; "
            "give every prompt a seq of its own", seq ? (int)seq->len : 4,
            seq ? seq->text : "none");
    if (pos != (s ? s->n : 0))
        return pf_fail(err, PF_ESTATE, "the prompt starts at position %zu, "
            "not at %zu", pos, s ? s->n : 0);
    if (!s) {
        s = calloc(1, sizeof *s);
        if (s && seq)
            s->seq = strdup(seq->text);
        if (!s || (seq && !s->seq)) {
            free(s);
            return pf_fail_mem(err);
        }
        st = pf_seqmap_put(&l->part, l->key.data, l->key.len, s, err);
        if (st) {
            free_sequence(s);
            return st;
        }
        s->index = new_index(l);
    }
    if (!add_ids(s, ids, n))
        return pf_fail_mem(err);
    if (l->opt->window && s->n > l->opt->window)
        return pf_fail(err, PF_ERANGE, "the prompt has %zu ids, the model's "
            "window is %zu (tok-encode --max cuts it)", s->n, l->opt->window);
    if (more)
        return PF_OK;
    pf_seqmap_take(&l->part, l->key.data, l->key.len);
    return admit(l, rec, s, err);
}

static void
next_file(struct loop *l)
{
    if (l->file_open) {
        cli_stats.bytes_in += l->prompts.used;
        pf_in_fini(&l->prompts);
    }
    l->file_open = false;
    l->file++;
    l->number = 0;
}

/* Is there room for another sequence? */
static bool
room(const struct loop *l)
{
    return l->file < cli.n_files && !l->stop && !l->last
        && l->live.n < l->opt->parallel
        && (!l->opt->whole || l->next_index - l->next_out < l->size
            || l->part.n) /* the one waited for may be one of these */
        && l->child.queue.len - l->child.sent < 1 << 20;
}

/*
 * Writes an error record about a prompt.  If it is the last thing that is
 * looked at, what is in the pipe is finished first.
 */
static void
emit_error(struct loop *l, const struct pf_record *e, size_t index)
{
    struct pf_err err;

    if (!l->last || l->opt->whole)
        emit(l, e, index);
    else if (pf_record_print(&l->error, e, &err))
        cli_die("%s", err.msg);
}

/* In the place of a prompt that is no good, and of its parts so far. */
static void
refuse(struct loop *l, const struct pf_record *rec, const char *file,
    uint64_t number, const char *msg)
{
    struct pf_record e = PF_RECORD_INIT;
    struct sequence *s = NULL;

    pf_buf_clear(&l->key);
    if (rec && pf_record_seq(rec, "seq", &l->key, NULL) == PF_OK)
        s = pf_seqmap_take(&l->part, l->key.data, l->key.len);
    l->last |= !cli_complain(&e, file, number, rec, msg);
    emit_error(l, &e, s ? s->index : new_index(l));
    if (s)
        free_sequence(s);
    pf_record_fini(&e);
}

/* A prompt that promised more of itself, where the prompts have ended. */
static void
refuse_part(struct loop *l)
{
    struct pf_record rec = PF_RECORD_INIT;
    size_t i = 0;
    struct sequence *s = pf_seqmap_each(&l->part, &i);

    if (s->seq)
        pf_record_set(&rec, "seq", s->seq, strlen(s->seq), NULL);
    refuse(l, &rec, cli.files[cli.n_files - 1], 0,
        "the prompts end where a part of one promised more of it");
    pf_record_fini(&rec);
}

/* A record of the prompts. */
static void
take_prompt(struct loop *l, struct pf_record *rec, const char *file)
{
    struct pf_err err;

    if (pf_record_is_error(rec)) {
        l->last |= !cli_fail_quietly();
        emit_error(l, rec, new_index(l));
        return;
    }
    if (pf_record_is_mark(rec))
        return; /* the end of the input tells as much */
    cli_stats.records++;
    if (add_prompt(l, rec, &err))
        refuse(l, rec, file, l->number, err.msg);
}

/* Opens the next file of prompts; false where there is none. */
static bool
open_prompts(struct loop *l)
{
    struct pf_err err;

    while (!l->file_open && l->file < cli.n_files && !l->last) {
        if (pf_in_open_nowait(&l->prompts, cli.files[l->file], &err)) {
            refuse(l, NULL, cli.files[l->file], 0, err.msg);
            next_file(l);
            continue;
        }
        l->file_open = true;
        l->prompt_reader.in = &l->prompts;
    }
    return l->file_open;
}

/* Reads prompts while there is room and they are there. */
static void
read_prompts(struct loop *l, struct pf_record *rec)
{
    const char *file;
    enum pf_status st;
    struct pf_err err;
    bool lost = false;

    while (room(l) && open_prompts(l)) {
        file = cli.files[l->file];
        if (!pf_reader_ready(&l->prompt_reader))
            return;
        st = pf_reader_next(&l->prompt_reader, rec, &lost, &err);
        if (st == PF_END) {
            next_file(l);
            continue;
        }
        l->number++;
        if (st)
            refuse(l, rec, file, l->number, err.msg);
        else
            take_prompt(l, rec, file);
        if (st && lost)
            next_file(l);
    }
    while (l->file == cli.n_files && l->part.n && !l->last)
        refuse_part(l);
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
    emit(l, rec, s->index);
    pf_seqmap_take(&l->live, l->key.data, l->key.len);
    free_sequence(s);
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
            emit(l, rec, 0);
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
    if (!add_ids(s, ids, n))
        return pf_fail_mem(err);
    cli_stats.tokens += n;
    child_feed(&l->child, rec); /* the next step; with `done`, the mark */
    if (pf_record_is_done(rec))
        finish(l, s, rec);
    else if (!l->opt->whole)
        emit(l, rec, s->index);
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
    if (room(l))
        p[n++] = (struct pollfd){ .fd = l->prompts.fd, .events = POLLIN };
    cli_flush();
    poll(p, n, -1);
}

/* Were those all prompts?  Waits for the next one or the end of the input. */
static bool
prompts_ended(struct loop *l, struct pf_record *rec)
{
    while (open_prompts(l)) {
        if (pf_reader_next(&l->prompt_reader, rec, NULL, NULL) != PF_END)
            return false;
        next_file(l);
    }
    return true;
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
        read_prompts(&l, &rec);
        child_send(&l.child);
        if (l.stop)
            break;
        if (l.live.n == 0 && (l.last || l.file == cli.n_files) && l.child.sent == l.child.queue.len)
            child_close(&l.child);
        wait_for_something(&l);
    }
    child_close(&l.child);
    close(l.child.in.fd);
    if (waitpid(l.child.pid, &status, 0) == l.child.pid && status && !cli_status())
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
    pf_seqmap_fini(&l.live, free_sequence);
    pf_seqmap_fini(&l.part, free_sequence);
    for (size_t i = 0; i < l.size; i++)
        pf_buf_fini(&l.finished[i]);
    free(l.finished);
    pf_buf_fini(&l.child.queue);
    pf_buf_fini(&l.key);
    pf_record_fini(&rec);
    return cli_finish();
}
