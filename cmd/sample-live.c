#include "sample-live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
live_free(void *p)
{
    struct live *l = p;

    if (!l)
        return;
    free(l->ids);
    pf_buf_fini(&l->tail);
    free(l);
}

void
lives_drop(struct lives *l)
{
    live_free(pf_seqmap_take(&l->map, l->key.data, l->key.len));
}

void
lives_fini(struct lives *l)
{
    pf_seqmap_fini(&l->map, live_free);
    pf_buf_fini(&l->key);
    pf_buf_fini(&l->fork);
}

/* The sequence of l->key, made if it is not there. */
static enum pf_status
find(struct lives *l, struct live **out, struct pf_err *err)
{
    enum pf_status st;

    *out = pf_seqmap_get(&l->map, l->key.data, l->key.len);
    if (*out)
        return PF_OK;
    *out = calloc(1, sizeof **out);
    if (!*out)
        return pf_fail_mem(err);
    st = pf_seqmap_put(&l->map, l->key.data, l->key.len, *out, err);
    if (st)
        live_free(*out);
    return st;
}

static void
begin(struct live *s)
{
    s->drawn = s->n = 0;
    s->begun = false;
    pf_buf_clear(&s->tail);
}

/* "seq 7", or nothing for the anonymous one; at most so long. */
static const char *
name_of(const struct pf_record *rec, char name[80])
{
    const struct pf_field *seq = pf_record_field(rec, "seq");

    name[0] = '\0';
    if (seq)
        snprintf(name, 80, "seq %.*s: ", (int)(seq->len < 60 ? seq->len : 60),
            seq->text);
    return name;
}

/* The ids of the record stand behind the first `pos` of s. */
static enum pf_status
add_ids(struct live *s, struct pf_record *rec, size_t pos, struct pf_err *err)
{
    const uint32_t *ids;
    size_t n;
    char name[80];
    enum pf_status st = pf_record_ids(rec, "ids", &ids, &n, err);

    if (st)
        return st;
    if (!pf_record_tensor(rec, "ids"))
        return pf_fail(err, PF_ESTATE, "the record has no ids, which "
            "penalties look at");
    if (s->n < pos)
        return pf_fail(err, PF_ESTATE, "%s%zu ids have come, record starts at "
            "%zu; penalties look at all of them", name_of(rec, name), s->n,
            pos);
    if (!pf_grow(&s->ids, &s->cap, pos + n, sizeof *s->ids))
        return pf_fail_mem(err);
    if (n)
        memcpy(s->ids + pos, ids, n * sizeof *ids);
    s->n = pos + n;
    return PF_OK;
}

/* It starts with the first `pos` ids of the sequence of l->fork. */
static enum pf_status
take_fork(struct lives *l, struct live *s, const struct pf_record *rec,
    size_t pos, struct pf_err *err)
{
    const struct live *from = pf_seqmap_get(&l->map, l->fork.data,
        l->fork.len);
    const struct pf_field *fork = pf_record_field(rec, "fork");
    size_t known = from ? from->n : 0;

    begin(s); /* which may be `from` itself */
    if (!l->history)
        return PF_OK;
    if (known < pos)
        return pf_fail(err, PF_ESTATE, "fork %.*s: %zu ids of it have come, "
            "record starts at %zu; penalties look at all of them",
            (int)(fork->len < 60 ? fork->len : 60), fork->text,
            known, pos);
    if (!pf_grow(&s->ids, &s->cap, pos, sizeof *s->ids))
        return pf_fail_mem(err);
    if (pos)
        memmove(s->ids, from->ids, pos * sizeof *s->ids);
    s->n = pos;
    return PF_OK;
}

enum pf_status
lives_find(struct lives *l, struct pf_record *rec, size_t pos,
    struct live **out, struct pf_err *err)
{
    enum pf_status st;

    pf_buf_clear(&l->key);
    pf_buf_clear(&l->fork);
    if ((st = pf_record_seq(rec, "seq", &l->key, err))
        || (st = pf_record_seq(rec, "fork", &l->fork, err))
        || (st = find(l, out, err)))
        return st;
    if (pf_record_has(rec, "fork"))
        st = take_fork(l, *out, rec, pos, err);
    else if (pos == 0)
        begin(*out);
    return !st && l->history ? add_ids(*out, rec, pos, err) : st;
}
