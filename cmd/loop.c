/*
 * One thread that polls three places: the prompts, the pipe's input, the
 * pipe's output.  What is to go into the pipe waits in memory, so the pipe can
 * always get rid of its output and nothing can get stuck; how much waits is
 * bounded by the number of sequences that are let in.
 */
#include "loop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pipeformer/seqmap.h>

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
    pid_t child;
    int to; /* the pipe's input */
    struct pf_buf queue; /* bytes that wait to go in */
    size_t sent;
    struct pf_in in; /* the pipe's output */
    struct pf_reader reader;
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

/* --- The pipe of filters --- */

/* Commands of the same build come first. */
static void
prepend_path(void)
{
    char here[4096], *path;
    ssize_t n = readlink("/proc/self/exe", here, sizeof here - 1);
    const char *old = getenv("PATH");
    size_t len;

    if (n <= 0)
        return;
    here[n] = '\0';
    *strrchr(here, '/') = '\0';
    len = strlen(here) + (old ? strlen(old) : 0) + 2;
    path = malloc(len);
    if (!path)
        return;
    snprintf(path, len, "%s%s%s", here, old ? ":" : "", old ? old : "");
    setenv("PATH", path, 1);
    free(path);
}

/*
 * Is it one pipeline, as far as can be seen?  No list, no group, no comment;
 * what is quoted does not count, nor does the & of a redirection.
 */
static bool
is_pipeline(const char *p)
{
    char quote = '\0', before = '\0';

    for (; *p; before = *p++) {
        if (*p == '\\' && quote != '\'' && p[1])
            p++;
        else if (quote)
            quote = *p == quote ? '\0' : quote;
        else if (*p == '\'' || *p == '"')
            quote = *p;
        else if (strchr(";#(){}\n", *p) || (*p == '|' && before == '|')
            || (*p == '&' && before != '>' && before != '<'))
            return false;
    }
    return true;
}

/*
 * The shell must not hold the ends of the pipe that the filters have: then the
 * death of a filter would not show.  So the filters run in the background,
 * their input comes from descriptor 4, and the shell closes its own.  (More
 * than a plain pipeline runs in a shell of its own, which holds them again.)
 */
static char *
script(const struct loop_options *o)
{
    struct pf_buf b = PF_BUF_INIT;
    bool plain = !o->own || is_pipeline(o->pipe);

    pf_buf_adds(&b, o->own ? "cat <&4 | " : "");
    pf_buf_printf(&b, plain ? "%s" : "{ %s\n}", o->pipe);
    pf_buf_adds(&b, " & exec </dev/null >/dev/null 4<&-; wait $!");
    pf_buf_addc(&b, '\0');
    if (b.failed)
        cli_die("out of memory");
    return b.data;
}

static void
start(struct loop *l)
{
    char *command = script(l->opt);
    int to[2], from[2];

    if (pipe(to) || pipe(from))
        cli_die("cannot make a pipe: %s", strerror(errno));
    for (int i = 0; i < 2; i++) {
        fcntl(to[i], F_SETFD, FD_CLOEXEC);
        fcntl(from[i], F_SETFD, FD_CLOEXEC);
    }
    prepend_path();
    l->child = fork();
    if (l->child < 0)
        cli_die("cannot start a process: %s", strerror(errno));
    if (l->child == 0) {
        int in = dup(to[0]), out = dup(from[1]); /* not 1 or 4 themselves */

        dup2(in, 4);
        dup2(out, 1);
        for (int fd = 5; fd <= (in > out ? in : out); fd++)
            close(fd);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    free(command);
    signal(SIGPIPE, SIG_IGN); /* EPIPE tells the same, with a place */
    close(to[0]);
    close(from[1]);
    l->to = to[1];
    fcntl(l->to, F_SETFL, O_NONBLOCK);
    l->in = (struct pf_in)PF_IN_INIT;
    l->in.fd = from[0];
    l->reader = (struct pf_reader)PF_READER_INIT;
    l->reader.in = &l->in;
    l->reader.main_name = "ids";
}

static void
close_input(struct loop *l)
{
    if (l->to >= 0)
        close(l->to);
    l->to = -1;
}

/* Puts a record into the queue for the pipe's input. */
static void
feed(struct loop *l, const struct pf_record *rec)
{
    struct pf_err err;

    if (pf_record_print(&l->queue, rec, &err))
        cli_die("%s", err.msg);
}

/* Writes what the pipe takes now. */
static void
send_queue(struct loop *l)
{
    ssize_t n;

    if (l->to < 0 || l->sent == l->queue.len)
        return;
    n = write(l->to, l->queue.data + l->sent, l->queue.len - l->sent);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        close_input(l); /* it has ended: its output tells why */
        n = (ssize_t)(l->queue.len - l->sent);
    }
    if (n > 0)
        l->sent += (size_t)n;
    if (l->sent > l->queue.len / 2) {
        l->queue.len -= l->sent;
        memmove(l->queue.data, l->queue.data + l->sent, l->queue.len);
        l->sent = 0;
    }
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
            feed(l, rec);
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
    return l->file < cli.n_files && !l->stop
        && l->live.n < l->opt->parallel
        && (!l->opt->whole || l->next_index - l->next_out < l->size
            || l->part.n) /* the one waited for may be one of these */
        && l->queue.len - l->sent < 1 << 20;
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
    l->stop |= !cli_complain(&e, file, number, rec, msg);
    emit(l, &e, s ? s->index : new_index(l));
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
        l->stop |= !cli_fail_quietly();
        emit(l, rec, new_index(l));
        return;
    }
    if (pf_record_is_mark(rec))
        return; /* the end of the input tells as much */
    cli_stats.records++;
    if (add_prompt(l, rec, &err))
        refuse(l, rec, file, l->number, err.msg);
}

/* Reads prompts while there is room and they are there. */
static void
read_prompts(struct loop *l, struct pf_record *rec)
{
    const char *file;
    enum pf_status st;
    struct pf_err err;
    bool lost = false;

    while (room(l)) {
        file = cli.files[l->file];
        if (!l->file_open) {
            if (pf_in_open_nowait(&l->prompts, file, &err)) {
                refuse(l, NULL, file, 0, err.msg);
                next_file(l);
                continue;
            }
            l->file_open = true;
            l->prompt_reader.in = &l->prompts;
        }
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
    while (l->file == cli.n_files && l->part.n && !l->stop)
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
    feed(l, rec); /* the next step; with `done`, the mark */
    if (pf_record_field(rec, "done"))
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

    while (!l->stop && !l->child_ended && pf_reader_ready(&l->reader)) {
        st = pf_reader_next(&l->reader, rec, NULL, &err);
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

    p[n++] = (struct pollfd){ .fd = l->in.fd, .events = POLLIN };
    if (l->to >= 0 && l->queue.len > l->sent)
        p[n++] = (struct pollfd){ .fd = l->to, .events = POLLOUT };
    if (room(l))
        p[n++] = (struct pollfd){ .fd = l->prompts.fd, .events = POLLIN };
    cli_flush();
    poll(p, n, -1);
}

/* Were those all prompts?  Waits for the next one or the end of the input. */
static bool
prompts_ended(struct loop *l, struct pf_record *rec)
{
    while (l->file < cli.n_files) {
        if (!l->file_open)
            return false;
        if (pf_reader_next(&l->prompt_reader, rec, NULL, NULL) != PF_END)
            return false;
        next_file(l);
    }
    return true;
}

int
loop_run(const struct loop_options *options)
{
    struct loop l = { .opt = options, .to = -1,
        .prompt_reader = PF_READER_INIT };
    struct pf_record rec = PF_RECORD_INIT;
    int status = 0;

    l.prompt_reader.main_name = "ids";
    l.size = options->parallel + BACKLOG;
    l.finished = calloc(l.size, sizeof *l.finished);
    if (!l.finished)
        cli_die("out of memory");
    cli_begin(PF_NDJSON, false);
    start(&l);
    for (;;) {
        read_tokens(&l, &rec);
        if (l.stop || l.child_ended)
            break;
        read_prompts(&l, &rec);
        send_queue(&l);
        if (l.stop)
            break;
        if (l.live.n == 0 && l.file == cli.n_files && l.sent == l.queue.len)
            close_input(&l);
        wait_for_something(&l);
    }
    close_input(&l);
    close(l.in.fd);
    if (waitpid(l.child, &status, 0) == l.child && status && !cli_status())
        cli_die("the pipe ended with status %d", WIFEXITED(status)
            ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    if (!l.stop && (l.live.n || !prompts_ended(&l, &rec)))
        cli_die("the pipe ended before all sequences were done");
    l.in.fd = -1;
    pf_in_fini(&l.in);
    pf_reader_fini(&l.reader);
    pf_reader_fini(&l.prompt_reader);
    if (l.file_open)
        pf_in_fini(&l.prompts);
    pf_seqmap_fini(&l.live, free_sequence);
    pf_seqmap_fini(&l.part, free_sequence);
    for (size_t i = 0; i < l.size; i++)
        pf_buf_fini(&l.finished[i]);
    free(l.finished);
    pf_buf_fini(&l.queue);
    pf_buf_fini(&l.key);
    pf_record_fini(&rec);
    return cli_finish();
}
