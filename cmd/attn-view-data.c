/* attn-view: what it keeps of the records of a sequence. */
#include "attn-view-data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/json.h>
#include <pipeformer/model.h>
#include <pipeformer/tokens.h>

#include "cli.h"

void
names_fini(struct names *n)
{
    pf_buf_fini(&n->text);
    pf_buf_fini(&n->ends);
}

void
names_add(struct names *n, const char *s, size_t len)
{
    pf_buf_add(&n->text, s, len);
    pf_buf_add(&n->ends, &n->text.len, sizeof n->text.len);
    n->n++;
}

const char *
names_get(const struct names *n, size_t i, size_t *len)
{
    size_t range[2] = { 0, 0 };

    memcpy(&range[1], n->ends.data + i * sizeof *range, sizeof *range);
    if (i)
        memcpy(range, n->ends.data + (i - 1) * sizeof *range, sizeof *range);
    *len = range[1] - range[0];
    return n->text.data ? n->text.data + range[0] : "";
}

static enum pf_status
names_check(const struct names *n, struct pf_err *err)
{
    enum pf_status st = pf_buf_check(&n->text, err);

    return st ? st : pf_buf_check(&n->ends, err);
}

/* A list of strings; there must be `want` of them. */
static enum pf_status
names_read(struct names *n, const struct pf_record *rec, const char *field,
    size_t want, const char *what, struct pf_err *err)
{
    const struct pf_field *f = pf_record_field(rec, field);
    struct pf_json j = pf_json_at(f->text, f->len);
    struct pf_buf s = PF_BUF_INIT;
    size_t had = n->n;
    bool first = true;
    enum pf_status st = pf_json_open(&j, '[', NULL);

    while (!st && !(st = pf_json_next(&j, ']', &first, NULL))) {
        pf_buf_clear(&s);
        st = pf_json_string(&j, &s, NULL);
        names_add(n, s.data, s.len);
    }
    pf_buf_fini(&s);
    if (st != PF_END)
        return pf_fail(err, PF_EFORMAT, "%s: is no list of strings", field);
    if (n->n - had != want)
        return pf_fail(err, PF_ESHAPE, "%s: %zu of them for the %zu %s",
            field, n->n - had, want, what);
    return names_check(n, err);
}

enum field_kind
field_kind(const char *name)
{
    static const char *const units[] = { "hidden", "logits", "q", "k", "v",
        "context", "memory", "embedding" };
    const char *dot = strrchr(name, '.');

    if (strcmp(name, "attn") == 0 || strcmp(name, "rollout") == 0)
        return FIELD_WEIGHTS;
    if (strcmp(name, "attn_scores") == 0 || strcmp(name, "mask") == 0)
        return FIELD_KEYS;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(name, units[i]) == 0)
            return FIELD_UNITS;
    if (!pf_activation_name(name))
        return FIELD_OTHER;
    return !dot ? FIELD_UNITS : strcmp(dot, ".pattern") == 0 ? FIELD_WEIGHTS
        : strcmp(dot, ".attn_scores") == 0 ? FIELD_KEYS : FIELD_UNITS;
}

void
view_data_free(void *data)
{
    struct view_data *d = data;
    struct view_part *next;

    if (!d)
        return;
    for (struct view_part *p = d->first; p; p = next) {
        next = p->next;
        free(p->v);
        free(p);
    }
    names_fini(&d->rows);
    names_fini(&d->keys);
    pf_buf_fini(&d->segments);
    pf_buf_fini(&d->text);
    pf_buf_fini(&d->seq);
    free(d);
}

enum pf_status
view_data_begin(struct gathered *g, const struct pf_record *rec,
    const struct maps *m, struct pf_err *err)
{
    const struct pf_field *seq = pf_record_field(rec, "seq");
    const struct pf_field *text = pf_record_field(rec, "text");
    struct view_data *d = calloc(1, sizeof *d);

    g->data = d;
    if (!d)
        return pf_fail_mem(err);
    d->vector = m->tensor->ndim == 1;
    if (seq)
        pf_buf_add(&d->seq, seq->text, seq->len);
    if (text && text->len && text->text[0] == '"')
        return pf_record_string(rec, "text", &d->text, err);
    return pf_buf_check(&d->seq, err);
}

/* --- Tokens --- */

void
view_tokens_fini(struct view_tokens *t)
{
    pf_tokenizer_free(t->tok);
    pf_model_free(t->model);
}

/*
 * The tokenizer that was asked for; else that of the model that the record
 * says it comes from, if that is the one at hand.
 */
static struct pf_tokenizer *
tokenizer_for(struct view_tokens *t, const struct pf_record *rec)
{
    struct pf_buf dir;

    if (t->sure)
        return t->tok;
    if (!pf_record_has(rec, "model"))
        return NULL;
    if (!t->looked) {
        t->looked = true;
        if (!cli_open_model(&t->model, NULL)) {
            dir = cli_model_dir();
            if (pf_tokenizer_open(&t->tok, dir.data, NULL))
                t->tok = NULL;
            pf_buf_fini(&dir);
        }
    }
    return t->tok && !cli_check_model(rec, t->model, NULL) ? t->tok : NULL;
}

static enum pf_status
add_ids(struct names *names, const uint32_t *ids, size_t n,
    const struct pf_tokenizer *tok, struct pf_err *err)
{
    struct pf_buf s = PF_BUF_INIT;
    const char *text;
    size_t len;

    for (size_t i = 0; i < n; i++) {
        pf_buf_clear(&s);
        text = tok ? pf_tokenizer_token(tok, ids[i], &len) : NULL;
        if (text)
            pf_token_text(&s, text, len);
        else
            pf_buf_printf(&s, "%lu", (unsigned long)ids[i]);
        names_add(names, s.data, s.len);
    }
    pf_buf_fini(&s);
    return names_check(names, err);
}

/* The names of n rows (or, of a vector, columns) more. */
static enum pf_status
add_rows(struct view_data *d, size_t before, size_t n, struct pf_record *rec,
    const struct maps *m, struct view_tokens *tokens, struct pf_err *err)
{
    bool strict = strcmp(m->tensor->name, "attn") == 0;
    const struct pf_field *f = pf_record_field(rec, "tokens");
    struct names got = { 0 };
    const char *s;
    size_t len;
    enum pf_status st = PF_OK;

    if (d->rows.n != before) /* those before had none */
        return PF_OK;
    if (f) {
        st = names_read(&got, rec, "tokens", n, "rows", err);
        if (st == PF_ESHAPE && !strict)
            st = PF_OK;
        else if (!st)
            for (size_t i = 0; i < n; i++) {
                s = names_get(&got, i, &len);
                names_add(&d->rows, s, len);
            }
        names_fini(&got);
    } else if (m->ids && m->n_ids == n) {
        st = add_ids(&d->rows, m->ids, n, tokenizer_for(tokens, rec), err);
    }
    return st ? st : names_check(&d->rows, err);
}

static enum pf_status
add_segments(struct view_data *d, size_t n, struct pf_record *rec,
    struct pf_err *err)
{
    const uint32_t *v;
    size_t count;
    int part;
    enum pf_status st = pf_record_ids(rec, "segments", &v, &count, err);

    if (!st && v && count != n)
        st = pf_fail(err, PF_ESHAPE, "segments: %zu of them for the %zu rows",
            count, n);
    for (size_t i = 0; i < n && !st; i++) {
        part = v && v[i];
        d->pair |= part;
        pf_buf_add(&d->segments, &part, sizeof part);
    }
    return st ? st : pf_buf_check(&d->segments, err);
}

/* --- Numbers --- */

static enum pf_status
not_a_number(const struct gathered *g, const struct maps *m, size_t map,
    size_t t, size_t s, struct pf_err *err)
{
    char which[80] = "";

    if (g->layers.n)
        snprintf(which, sizeof which, "layer %zu, ",
            g->layers.number[map / m->n_h]);
    if (g->heads.n)
        snprintf(which + strlen(which), sizeof which - strlen(which),
            "head %zu, ", g->heads.number[map % m->n_h]);
    return pf_fail(err, PF_ERANGE, "%.100s: is NaN at %srow %zu, column %zu",
        m->tensor->name, which, g->rows + t, s);
}

static enum pf_status
add_part(struct gathered *g, const struct maps *m, struct pf_err *err)
{
    struct view_data *d = g->data;
    struct view_part *p = calloc(1, sizeof *p);
    size_t n = m->n_l * m->n_h, bytes;
    enum pf_status st = p ? pf_shape_size((size_t[]){ n, m->T, m->S }, 3,
        PF_F32, NULL, &bytes, err) : pf_fail_mem(err);
    float *out;

    if (!st && !(p->v = malloc(bytes + 1)))
        st = pf_fail_mem(err);
    if (st) {
        free(p);
        return st;
    }
    p->T = m->T;
    p->S = m->S;
    *(d->last ? &d->last->next : &d->first) = p;
    d->last = p;
    d->bytes += bytes + sizeof *p;
    out = p->v;
    for (size_t k = 0; k < n; k++) {
        for (size_t t = 0; t < m->T; t++, out += m->S) {
            const float *row = m->map[k] + t * m->stride;

            for (size_t s = 0; s < m->S; s++) {
                if (row[s] != row[s])
                    return not_a_number(g, m, k, t, s, err);
                out[s] = row[s];
            }
        }
    }
    return PF_OK;
}

enum pf_status
view_data_add(struct gathered *g, struct pf_record *rec, const struct maps *m,
    struct view_tokens *tokens, struct pf_err *err)
{
    struct view_data *d = g->data;
    enum field_kind kind = field_kind(m->tensor->name);
    size_t rows = d->vector ? m->S : m->T;
    size_t before = d->vector ? 0 : g->rows;
    enum pf_status st;

    /* Keys grow with the queries, or are always the same. */
    if (g->rows && m->S != d->S && (kind == FIELD_UNITS || d->elsewhere
            || d->S != g->rows || m->S != g->rows + m->T))
        return pf_fail(err, PF_ESHAPE, "%.100s: has %zu columns, and %zu "
            "before in the sequence", m->tensor->name, m->S, d->S);
    d->S = m->S;
    d->elsewhere |= pf_record_has(rec, "memory");
    if (pf_record_field(rec, "key_tokens") && kind != FIELD_UNITS) {
        names_fini(&d->keys);
        d->keys = (struct names){ 0 };
        d->elsewhere = true;
        st = names_read(&d->keys, rec, "key_tokens", m->S, "columns", err);
        if (st)
            return st;
    }
    if ((st = add_rows(d, before, rows, rec, m, tokens, err))
        || (d->rows.n == before + rows
            && (st = add_segments(d, rows, rec, err)))
        || (st = add_part(g, m, err)))
        return st;
    g->bytes = d->bytes + d->rows.text.cap + d->rows.ends.cap
        + d->keys.text.cap + d->keys.ends.cap + d->segments.cap + sizeof *d
        + d->text.cap;
    return PF_OK;
}
