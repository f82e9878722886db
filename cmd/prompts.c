/*
 * Prompts on their way into the pipe: gathered where they come in parts, sent
 * in pieces where they are long, refused where they are no good.
 */
#include "prompts.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 256 }; /* ids; a longer prompt goes in as several records */

enum pf_status
prompts_send(struct loop *l, struct pf_record *rec, const struct sequence *s,
    size_t n, bool whole, struct pf_err *err)
{
    enum pf_status st = PF_OK;
    size_t k;

    for (size_t i = 0; i < n && !st; i += k) {
        k = n - i < CHUNK ? n - i : CHUNK;
        pf_record_drop(rec, "more");
        if (i)
            st = pf_record_set_i64(rec, "pos", (int64_t)i, err);
        if (!st && (i + k < n || !whole))
            st = pf_record_set(rec, "more", "true", 4, err);
        if (!st && !pf_record_put(rec, "ids", PF_I32, 1, (size_t[]){ k },
                s->ids + i))
            st = pf_fail_mem(err);
        if (!st)
            child_feed(&l->child, rec);
    }
    return st;
}

enum pf_status
prompts_echo(struct loop *l, struct pf_record *rec, const struct sequence *s,
    struct pf_err *err)
{
    enum pf_status st;

    if (!l->opt->echo || l->opt->whole)
        return PF_OK;
    st = pf_record_set(rec, "more", "true", 4, err);
    if (!st && !pf_record_put(rec, "ids", PF_I32, 1, &s->n, s->ids))
        st = pf_fail_mem(err);
    if (!st)
        loop_emit(l, rec, s->index);
    return st;
}

/* Of an earlier run, or of the record and not of the prompt. */
static bool
gone(const char *name, bool tensor)
{
    static const char *const names[] = { "pos", "more", "fork", "done",
        "held" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    (void)tensor;
    return false;
}

/* A prompt is whole: lets it in. */
static enum pf_status
admit(struct loop *l, struct pf_record *rec, struct sequence *s,
    struct pf_err *err)
{
    enum pf_status st = pf_seqmap_put(&l->live, l->key.data, l->key.len, s,
        err);

    if (st) {
        loop_free_sequence(s);
        return st;
    }
    s->prompt = s->n;
    pf_record_drop_if(rec, gone);
    if (l->opt->samples)
        return samples_admit(l, rec, s, err);
    l->running++;
    if (!(st = prompts_echo(l, rec, s, err))
        && !(st = prompts_send(l, rec, s, s->n, true, err)))
        loop_keep(l, s, rec);
    return st;
}

/* The beginning of a prompt. */
static enum pf_status
new_part(struct loop *l, const struct pf_field *seq, struct sequence **out,
    struct pf_err *err)
{
    struct sequence *s = calloc(1, sizeof *s);
    enum pf_status st;

    if (s && seq)
        s->seq = strdup(seq->text);
    if (!s || (seq && !s->seq)) {
        free(s);
        return pf_fail_mem(err);
    }
    st = pf_seqmap_put(&l->part, l->key.data, l->key.len, s, err);
    if (st) {
        loop_free_sequence(s);
        return st;
    }
    s->index = loop_index(l, l->opt->samples ? l->opt->samples : 1);
    *out = s;
    return PF_OK;
}

/* Takes a prompt, or a part of one. */
static enum pf_status
add_prompt(struct loop *l, struct pf_record *rec, struct pf_err *err)
{
    const struct pf_field *seq;
    const uint32_t *ids;
    struct sequence *s;
    size_t pos, n;
    enum pf_status st = PF_OK;
    bool more;

    /* Continuations have names made of the prompt's: it needs one. */
    if (l->opt->samples && !pf_record_field(rec, "seq"))
        st = pf_record_set(rec, "seq", "0", 1, err);
    pf_buf_clear(&l->key);
    if (st || (st = pf_record_seq(rec, "seq", &l->key, err))
        || (st = pf_record_pos(rec, &pos, err))
        || (st = pf_record_bool(rec, "more", &more, err))
        || (st = pf_record_ids(rec, "ids", &ids, &n, err)))
        return st;
    seq = pf_record_field(rec, "seq");
    s = pf_seqmap_get(&l->part, l->key.data, l->key.len);
    if (n == 0 && !s)
        return pf_fail(err, PF_ESHAPE, "the prompt has no ids: there is "
            "nothing to go on from");
    if (pf_seqmap_get(&l->live, l->key.data, l->key.len))
        return pf_fail(err, PF_ESTATE, "seq %.*s is still being generated; "
            "give every prompt a seq of its own", seq ? (int)seq->len : 4,
            seq ? seq->text : "none");
    for (size_t i = 0; l->opt->vocab && i < n; i++)
        if (ids[i] >= l->opt->vocab)
            return pf_fail(err, PF_ERANGE, "ids: %u at %zu, but the model's "
                "vocabulary is %zu", ids[i], i, l->opt->vocab);
    if (pos != (s ? s->n : 0))
        return pf_fail(err, PF_ESTATE, "the prompt starts at position %zu, "
            "not at %zu", pos, s ? s->n : 0);
    if (!s && (st = new_part(l, seq, &s, err)))
        return st;
    if (!loop_add_ids(s, ids, n))
        return pf_fail_mem(err);
    if (l->opt->window && s->n > l->opt->window)
        return pf_fail(err, PF_ERANGE, "the prompt has %zu ids, the model's "
            "window is %zu (tok-encode --max cuts it)", s->n, l->opt->window);
    if (more)
        return PF_OK;
    if (l->opt->samples && (st = samples_check(l, rec, err)))
        return st;
    pf_seqmap_take(&l->part, l->key.data, l->key.len);
    return admit(l, rec, s, err);
}

static void
next_file(struct loop *l)
{
    if (l->file_open) {
        cli_count_input(&l->prompts);
        pf_in_fini(&l->prompts);
    }
    l->file_open = false;
    l->file++;
    l->number = 0;
}

bool
prompts_room(const struct loop *l)
{
    return l->file < cli.n_files && !l->stop && !l->last && !l->waiting
        && l->running < l->opt->parallel
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
        loop_emit(l, e, index);
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
    progress_erase(&l->progress);
    l->last |= !cli_complain(&e, file, number, rec, msg);
    if (s)
        for (size_t i = 1; i < l->opt->samples; i++)
            loop_skip(l, s->index + i);
    emit_error(l, &e, s ? s->index : loop_index(l, 1));
    if (s)
        loop_free_sequence(s);
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
        emit_error(l, rec, loop_index(l, 1));
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

void
prompts_read(struct loop *l, struct pf_record *rec)
{
    const char *file;
    enum pf_status st;
    struct pf_err err;
    bool lost = false;

    while (prompts_room(l) && open_prompts(l)) {
        file = cli.files[l->file];
        if (!pf_reader_ready(&l->prompt_reader))
            return;
        st = pf_reader_next(&l->prompt_reader, rec, &lost, &err);
        if (st == PF_END) {
            next_file(l);
            continue;
        }
        l->number++;
        if (!st && (st = pf_record_check(rec, &err)))
            lost = false;
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

bool
prompts_ended(struct loop *l, struct pf_record *rec)
{
    while (open_prompts(l)) {
        if (pf_reader_next(&l->prompt_reader, rec, NULL, NULL) != PF_END)
            return false;
        next_file(l);
    }
    return true;
}
