/*
 * What the loop writes: tokens as they come, or a record a sequence, which
 * waits until those of all prompts before it are written.
 */
#include <stdlib.h>
#include <string.h>

#include "prompts.h"

/* Writes the whole records whose turn it is; `all`, whatever is missing. */
static void
write_finished(struct loop *l, bool all)
{
    struct finished *f;
    struct pf_err err;

    for (; l->next_out < l->next_index; l->next_out++) {
        f = &l->finished[l->next_out % l->size];
        if (!f->set && !all)
            break;
        if (f->text.len && pf_out_write(&cli_out, f->text.data, f->text.len,
                &err))
            cli_die_writing(&err);
        pf_buf_fini(&f->text);
        f->set = false;
    }
}

size_t
loop_index(struct loop *l, size_t n)
{
    size_t size = l->size, first = l->next_index;
    struct finished *more;

    while (first - l->next_out + n > size)
        size *= 2;
    if (size > l->size) {
        more = calloc(size, sizeof *more);
        if (!more)
            cli_die("out of memory");
        for (size_t i = l->next_out; i < first; i++)
            more[i % size] = l->finished[i % l->size];
        free(l->finished);
        l->finished = more;
        l->size = size;
    }
    l->next_index += n;
    return first;
}

void
loop_skip(struct loop *l, size_t index)
{
    l->finished[index % l->size].set = true;
}

void
loop_emit(struct loop *l, const struct pf_record *rec, size_t index)
{
    struct finished *f = &l->finished[index % l->size];
    struct pf_err err;

    progress_output(&l->progress);
    if (!l->opt->whole || l->stop) {
        if (cli_emit(rec, &err))
            cli_die_writing(&err);
        return;
    }
    if (pf_record_print(&f->text, rec, &err))
        cli_die("%s", err.msg);
    f->set = true;
    write_finished(l, false);
}

/* What is of one token only. */
static bool
passing(const char *name, bool tensor)
{
    static const char *const names[] = { "pos", "logprob", "top", "trail" };

    (void)tensor;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Makes the last record of a sequence the one of all its ids. */
void
loop_make_whole(const struct loop *l, const struct sequence *s,
    struct pf_record *rec)
{
    size_t skip = l->opt->echo ? 0 : s->prompt;
    struct pf_err err;

    pf_record_drop_if(rec, passing);
    if ((skip && pf_record_set_i64(rec, "pos", (int64_t)skip, &err))
        || !pf_record_put(rec, "ids", PF_I32, 1, (size_t[]){ s->n - skip },
            s->ids + skip))
        cli_die("out of memory");
}

/* Writes what there is of sequences that are not done. */
void
loop_write_unfinished(struct loop *l)
{
    struct sequence *s;
    struct pf_err err;
    size_t i = 0;

    while (l->opt->whole && (s = pf_seqmap_each(&l->live, &i))) {
        if (s->left)
            continue;
        pf_record_drop(&s->last, "held"); /* no more comes: it is shown */
        pf_record_drop(&s->last, "more");
        loop_make_whole(l, s, &s->last);
        if (pf_record_print(&l->finished[s->index % l->size].text, &s->last,
                &err))
            cli_die("%s", err.msg);
    }
    write_finished(l, true);
}
