/*
 * Several continuations of one prompt: all ids of the prompt but the last go
 * in once, under the prompt's own name, with `more`; each continuation is a
 * fork of that sequence and begins with the last id.  The prompt's sequence is
 * not drawn from, so it stays as it is until all have begun, however few may
 * be in the pipe at a time; then a mark frees it.  Here it is kept until they
 * are done, so that nobody takes its name.
 */
#include <stdlib.h>
#include <string.h>

#include <pipeformer/json.h>

#include "prompts.h"

/* The name of continuation k of the prompt of that name; its key too. */
static enum pf_status
set_name(struct loop *l, struct pf_record *rec, const struct pf_field *seq,
    size_t k, struct pf_err *err)
{
    enum pf_status st = PF_OK;

    pf_buf_clear(&l->name);
    if (seq->text[0] == '"')
        st = pf_json_text_string(seq->text, seq->len, &l->name, err);
    else
        pf_buf_add(&l->name, seq->text, seq->len);
    pf_buf_printf(&l->name, ".%zu", k);
    if (st || (st = pf_buf_check(&l->name, err)))
        return st;
    st = pf_record_set_string(rec, "seq", l->name.data, l->name.len, err);
    pf_buf_clear(&l->key);
    return st ? st : pf_record_seq(rec, "seq", &l->key, err);
}

enum pf_status
samples_check(struct loop *l, const struct pf_record *rec, struct pf_err *err)
{
    const struct pf_field *seq = pf_record_field(rec, "seq");
    struct pf_record r = PF_RECORD_INIT;
    enum pf_status st = PF_OK;

    for (size_t k = 0; k < l->opt->samples && !st; k++) {
        pf_record_clear(&r);
        st = set_name(l, &r, seq, k, err);
        if (!st && pf_seqmap_get(&l->live, l->key.data, l->key.len))
            st = pf_fail(err, PF_ESTATE, "seq \"%.*s\" is still being "
                "generated; give every prompt a seq of its own",
                (int)l->name.len, l->name.data);
    }
    pf_record_fini(&r);
    pf_buf_clear(&l->key);
    return st ? st : pf_record_seq(rec, "seq", &l->key, err);
}

/* What the prompt has besides its ids, under the name of continuation k. */
static enum pf_status
copy_prompt(struct loop *l, struct pf_record *rec,
    const struct pf_record *from, size_t k, struct pf_err *err)
{
    enum pf_status st = PF_OK;

    for (size_t i = 0; i < from->n_fields && !st; i++)
        if (!pf_per_position(from->fields[i].name, false))
            st = pf_record_copy_field(rec, from, from->fields[i].name, err);
    for (size_t i = 0; i < from->n_tensors && !st; i++) {
        const struct pf_tensor *t = &from->tensors[i];

        if (!pf_per_position(t->name, true) && !pf_record_put(rec, t->name,
                t->dtype, t->ndim, t->shape, t->data))
            st = pf_fail_mem(err);
    }
    return st ? st : set_name(l, rec, pf_record_field(from, "seq"), k, err);
}

/* The prompt's sequence, in the pipe, has been there long enough. */
static enum pf_status
release(struct loop *l, const struct sequence *parent, struct pf_err *err)
{
    struct pf_record mark = PF_RECORD_INIT;
    enum pf_status st = PF_OK;

    if (parent->n > 1 && !(st = pf_record_copy_field(&mark, &parent->last,
            "seq", err))
        && !(st = pf_record_set_i64(&mark, "pos", (int64_t)parent->n - 1,
            err))
        && !(st = pf_record_set_string(&mark, "done", "input", 5, err)))
        child_feed(&l->child, &mark);
    pf_record_fini(&mark);
    return st;
}

enum pf_status
samples_admit(struct loop *l, struct pf_record *rec, struct sequence *s,
    struct pf_err *err)
{
    enum pf_status st = prompts_send(l, rec, s, s->n - 1, false, err);

    if (st)
        return st;
    pf_record_drop(rec, "more");
    pf_record_drop(rec, "pos");
    s->left = l->opt->samples;
    s->last = *rec;
    *rec = (struct pf_record)PF_RECORD_INIT;
    l->waiting = s;
    samples_begin(l);
    return PF_OK;
}

/* Sends the last id of the prompt as what the continuation begins with. */
static enum pf_status
send_fork(struct loop *l, struct pf_record *rec,
    const struct sequence *parent, struct pf_err *err)
{
    const struct pf_field *f = pf_record_field(&parent->last, "seq");
    size_t before = parent->n - 1;
    enum pf_status st;

    if (before && ((st = pf_record_set(rec, "fork", f->text, f->len, err))
            || (st = pf_record_set_i64(rec, "pos", (int64_t)before, err))))
        return st;
    if (!pf_record_put(rec, "ids", PF_I32, 1, (size_t[]){ 1 },
            parent->ids + before))
        return pf_fail_mem(err);
    child_feed(&l->child, rec);
    pf_record_drop(rec, "fork");
    pf_record_drop(rec, "pos");
    return PF_OK;
}

/* Lets the next continuation in. */
static enum pf_status
begin(struct loop *l, struct sequence *parent, struct pf_record *rec,
    struct pf_err *err)
{
    struct sequence *s = calloc(1, sizeof *s);
    enum pf_status st = PF_OK;

    if (!s || !loop_add_ids(s, parent->ids, parent->n))
        st = pf_fail_mem(err);
    if (!st)
        st = copy_prompt(l, rec, &parent->last, parent->begun, err);
    if (!st)
        st = pf_seqmap_put(&l->live, l->key.data, l->key.len, s, err);
    if (st) {
        loop_free_sequence(s);
        return st;
    }
    s->prompt = s->n;
    s->index = parent->index + parent->begun;
    s->parent = parent;
    parent->begun++;
    l->running++;
    st = prompts_echo(l, rec, s, err);
    pf_record_drop(rec, "more");
    if (!st && !(st = send_fork(l, rec, parent, err)))
        loop_keep(l, s, rec);
    return st;
}

void
samples_begin(struct loop *l)
{
    struct pf_record rec = PF_RECORD_INIT;
    struct sequence *parent = l->waiting;
    enum pf_status st = PF_OK;
    struct pf_err err;

    while (!st && l->waiting && l->running < l->opt->parallel) {
        pf_record_clear(&rec);
        st = begin(l, parent, &rec, &err);
        if (!st && parent->begun == l->opt->samples) {
            l->waiting = NULL;
            st = release(l, parent, &err);
        }
    }
    if (st)
        cli_die("%s", err.msg);
    pf_record_fini(&rec);
}

void
samples_fail(struct loop *l, struct sequence *parent,
    const struct pf_record *error)
{
    const struct pf_field *seq = pf_record_field(&parent->last, "seq");
    struct pf_record e = PF_RECORD_INIT;
    enum pf_status st = PF_OK;
    struct sequence *s;
    struct pf_err err;

    if (l->waiting == parent) {
        l->waiting = NULL;
        st = release(l, parent, &err);
    }
    parent->left++; /* it stays to the end of this */
    for (size_t k = 0; k < l->opt->samples && !st; k++) {
        pf_record_clear(&e);
        if ((st = pf_record_copy_field(&e, error, "error", &err))
            || (st = set_name(l, &e, seq, k, &err)))
            break;
        s = k < parent->begun ? loop_find(l, &e) : NULL;
        if (k < parent->begun && !s)
            continue;
        loop_emit(l, &e, parent->index + k);
        if (s)
            loop_forget(l, s);
    }
    if (st)
        cli_die("%s", err.msg);
    pf_buf_clear(&l->key);
    pf_record_seq(&parent->last, "seq", &l->key, NULL);
    pf_seqmap_take(&l->live, l->key.data, l->key.len);
    loop_free_sequence(parent);
    pf_record_fini(&e);
}
