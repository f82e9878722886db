/*
 * A tokenizer.json is a description of a pipeline: each section is an object
 * with a type, or a Sequence of these.  Here a section is a table of the types
 * that are known, each with a function that knows its members; what is in no
 * table, and what a type has beside the members that are known, is refused by
 * its name, since it would change the ids in a way that is not done here.
 *
 * The vocabulary and the merges are nearly all of the file and are read in
 * passing, as they stand in it: no tree is made.  The rest is small, so an
 * object is looked through once for its type and once for its members, whose
 * text is then read as what it has to be.
 *
 * The order of the work follows from what needs what.  A ByteLevel among the
 * pre-tokenizers means that the vocabulary is in GPT-2's printable alphabet;
 * added tokens stand there as they are; merges need the vocabulary, templates
 * all ids.  Where a file has the model before these (HuggingFace never writes
 * it so), the model is read again in the end.
 */
#include "tokenizer-json.h"

#include <pipeformer/utf8.h>

enum pf_status
pf_load_within(struct pf_load *l, const char *place, enum pf_status st)
{
    struct pf_err inner;

    if (!st || st == PF_ENOMEM)
        return st;
    inner = *l->err;
    return pf_fail(l->err, st, "%s: %.360s", place, inner.msg);
}

/* The length of a character of UTF-8, as pf_utf8_char has it. */
static inline size_t
char_length(const char *p, size_t n)
{
    const unsigned char *u = (const unsigned char *)p;

    if (n >= 2 && u[0] >= 0xc2 && u[0] < 0xe0 && u[1] >> 6 == 2)
        return 2;
    return pf_utf8_char(p, n);
}

enum pf_status
pf_load_text(struct pf_load *l, struct pf_json *j, struct pf_buf *buf,
    struct pf_span *s)
{
    enum pf_status st;
    const char *p;
    size_t n = 1;

    if (pf_json_peek(j) == '"') {
        p = j->p + 1;
        while (p < j->end && (unsigned char)*p >= ' ' && *p != '"'
            && *p != '\\' && n) {
            n = (unsigned char)*p < 0x80 ? 1
                : char_length(p, (size_t)(j->end - p));
            p += n;
        }
        if (p < j->end && *p == '"') {
            *s = (struct pf_span){ j->p + 1, (size_t)(p - j->p - 1) };
            *j = pf_json_at(p + 1, (size_t)(j->end - p - 1));
            return PF_OK;
        }
    }
    pf_buf_clear(buf);
    st = pf_json_string(j, buf, l->err);
    *s = (struct pf_span){ buf->len ? buf->data : "", buf->len };
    return st;
}

enum pf_status
pf_load_name(struct pf_load *l, struct pf_json *j, struct pf_buf *buf,
    struct pf_span *s)
{
    enum pf_status st = pf_load_text(l, j, buf, s);

    if (!st && !pf_json_take(j, ':'))
        st = pf_fail(l->err, PF_EFORMAT, "a name without a value: %s",
            pf_show(s->data, s->len).s);
    return st;
}

enum pf_status
pf_load_known(struct pf_load *l, struct pf_json *j,
    const struct pf_member *m, size_t n, size_t *which)
{
    struct pf_span name;
    enum pf_status st = pf_load_name(l, j, &l->text[0], &name);

    if (st)
        return st;
    for (*which = 0; *which < n && !is(name, m[*which].name); ++*which)
        ;
    if (*which == n)
        return pf_fail(l->err, PF_EMODEL, "member %s is not supported",
            pf_show(name.data, name.len).s);
    if (m[*which].raw.data)
        return pf_fail(l->err, PF_EFORMAT, "%s stands twice",
            m[*which].name);
    return PF_OK;
}

enum pf_status
pf_load_members(struct pf_load *l, struct pf_span object,
    struct pf_member *m, size_t n)
{
    struct pf_json j = at(object);
    enum pf_status st = pf_json_open(&j, '{', l->err);
    bool first = true;
    size_t i;

    while (!st && !(st = pf_json_next(&j, '}', &first, l->err))) {
        st = pf_load_known(l, &j, m, n, &i);
        if (!st)
            st = pf_json_value(&j, &m[i].raw.data, &m[i].raw.len, l->err);
    }
    return st == PF_END ? PF_OK : st;
}

/* The type of an object, which it need not have; data NULL then. */
static enum pf_status
find_type(struct pf_load *l, struct pf_span object, struct pf_span *type)
{
    struct pf_json j = at(object);
    enum pf_status st = pf_json_open(&j, '{', l->err);
    struct pf_span name, raw;
    bool first = true;

    *type = (struct pf_span){ NULL, 0 };
    while (!st && !(st = pf_json_next(&j, '}', &first, l->err))) {
        st = pf_load_name(l, &j, &l->text[0], &name);
        if (!st && is(name, "type"))
            return pf_load_text(l, &j, &l->text[0], type);
        if (!st)
            st = pf_json_value(&j, &raw.data, &raw.len, l->err);
    }
    return st == PF_END ? PF_OK : st;
}

enum pf_status
pf_load_bool(struct pf_load *l, const struct pf_member *m, bool absent, bool *v)
{
    *v = m->raw.data ? is(m->raw, "true") : absent;
    if (!m->raw.data || *v || is(m->raw, "false"))
        return PF_OK;
    return pf_fail(l->err, PF_EFORMAT, "%s is neither true nor false",
        m->name);
}

enum pf_status
pf_load_string(struct pf_load *l, const struct pf_member *m, struct pf_buf *buf,
    struct pf_span *s)
{
    struct pf_json j = at(m->raw);

    if (!m->raw.data)
        return pf_fail(l->err, PF_EFORMAT, "no %s", m->name);
    if (pf_json_peek(&j) != '"')
        return pf_fail(l->err, PF_EFORMAT, "%s is no string", m->name);
    return pf_load_text(l, &j, buf, s);
}

enum pf_status
pf_load_number(struct pf_load *l, const struct pf_member *m, int64_t max,
    int64_t *v)
{
    if (!m->raw.data)
        return pf_fail(l->err, PF_EFORMAT, "no %s", m->name);
    if (pf_json_text_i64(m->raw.data, m->raw.len, v, NULL)
        || *v < 0 || *v > max)
        return pf_fail(l->err, PF_ERANGE, "%s %s is no whole number in 0 to "
            "%lld", m->name, pf_show(m->raw.data, m->raw.len).s,
            (long long)max);
    return PF_OK;
}

enum pf_status
pf_load_keep(struct pf_load *l, struct pf_span *s)
{
    *s = pf_tokenizer_keep(l->tok, s->data, s->len);
    return s->data ? PF_OK : pf_fail_mem(l->err);
}

enum pf_status
pf_load_refuse(struct pf_load *l, const struct pf_member *m)
{
    return pf_fail(l->err, PF_EMODEL, "%s %s is not supported", m->name,
        pf_show(m->raw.data, m->raw.len).s);
}

/* An object of one of these types; the list ends with a type of NULL. */
static enum pf_status
take_form(struct pf_load *l, struct pf_span object, const struct pf_form *forms)
{
    struct pf_span type;
    enum pf_status st = find_type(l, object, &type);

    if (st)
        return st;
    if (!type.data)
        return pf_fail(l->err, PF_EMODEL, "no type");
    for (; forms->type; forms++)
        if (is(type, forms->type))
            return pf_load_within(l, forms->type, forms->take(l, object));
    return pf_fail(l->err, PF_EMODEL, "type %s is not supported",
        pf_show(type.data, type.len).s);
}

enum pf_status
pf_load_section(struct pf_load *l, struct pf_span section, const char *list,
    const struct pf_form *forms)
{
    struct pf_member m[] = { { .name = "type" }, { .name = list } };
    struct pf_span type, item;
    enum pf_status st;
    struct pf_json j;
    bool first = true;

    if (is_none(section))
        return PF_OK;
    st = find_type(l, section, &type);
    if (st)
        return st;
    if (!type.data || !is(type, "Sequence"))
        return take_form(l, section, forms);
    st = pf_load_members(l, section, m, 2);
    if (st)
        return st;
    if (!m[1].raw.data)
        return pf_fail(l->err, PF_EFORMAT, "no %s", list);
    j = at(m[1].raw);
    st = pf_json_open(&j, '[', l->err);
    while (!st && !(st = pf_json_next(&j, ']', &first, l->err))) {
        st = pf_json_value(&j, &item.data, &item.len, l->err);
        if (!st)
            st = take_form(l, item, forms);
    }
    return st == PF_END ? PF_OK : st;
}

enum pf_status
pf_load_bare(struct pf_load *l, struct pf_span object)
{
    struct pf_member m[] = { { .name = "type" } };

    return pf_load_members(l, object, m, 1);
}

enum pf_status
pf_load_pattern(struct pf_load *l, const struct pf_member *m,
    struct pf_buf *buf, struct pf_span *s, bool *regex)
{
    struct pf_member p[] = { { .name = "String" }, { .name = "Regex" } };
    enum pf_status st;

    *regex = false;
    if (!m->raw.data)
        return pf_fail(l->err, PF_EFORMAT, "no %s", m->name);
    st = pf_load_members(l, m->raw, p, 2);
    if (st)
        return pf_load_within(l, m->name, st);
    if (!p[0].raw.data == !p[1].raw.data)
        return pf_fail(l->err, PF_EFORMAT, "%s is neither String nor Regex",
            m->name);
    *regex = p[1].raw.data != NULL;
    st = pf_load_string(l, &p[*regex], buf, s);
    if (!st && s->len == 0)
        st = pf_fail(l->err, PF_EMODEL, "an empty %s is not supported",
            m->name);
    return st;
}

/* The sections of a file. */
enum { VERSION, TRUNCATION, PADDING, ADDED, NORMALIZER, PRE, POST, DECODER,
    MODEL, N_SECTIONS };

/* What must be known before the vocabulary is read, then the model. */
static enum pf_status
take_until_model(struct pf_load *l, const struct pf_member *m,
    struct pf_json *model)
{
    enum pf_status st;

    if ((st = pf_load_within(l, m[NORMALIZER].name,
            pf_load_normalizer(l, m[NORMALIZER].raw)))
        || (st = pf_load_within(l, m[PRE].name,
            pf_load_cuts(l, m[PRE].raw)))
        || (st = pf_load_within(l, m[ADDED].name,
            pf_load_added(l, m[ADDED].raw))))
        return st;
    return pf_load_within(l, m[MODEL].name, pf_load_model(l, model));
}

static enum pf_status
take_file(struct pf_load *l, const char *json, size_t len)
{
    struct pf_member m[N_SECTIONS] = {
        [VERSION] = { .name = "version" },
        [TRUNCATION] = { .name = "truncation" },
        [PADDING] = { .name = "padding" },
        [ADDED] = { .name = "added_tokens" },
        [NORMALIZER] = { .name = "normalizer" },
        [PRE] = { .name = "pre_tokenizer" },
        [POST] = { .name = "post_processor" },
        [DECODER] = { .name = "decoder" },
        [MODEL] = { .name = "model" },
    };
    struct pf_json j = pf_json_at(json, len), model;
    enum pf_status st = pf_json_open(&j, '{', l->err);
    bool first = true, done = false;
    size_t i;

    while (!st && !(st = pf_json_next(&j, '}', &first, l->err))) {
        st = pf_load_known(l, &j, m, N_SECTIONS, &i);
        if (st)
            return st;
        m[i].raw.data = j.p;
        done |= i == MODEL && m[NORMALIZER].raw.data && m[PRE].raw.data
            && m[ADDED].raw.data;
        if (i == MODEL && done)
            st = take_until_model(l, m, &j);
        else
            st = pf_json_value(&j, &m[i].raw.data, &m[i].raw.len, l->err);
    }
    if (st != PF_END || (st = pf_json_end(&j, l->err)))
        return st;
    if (m[VERSION].raw.data && !is(m[VERSION].raw, "\"1.0\""))
        return pf_load_refuse(l, &m[VERSION]);
    if (!m[MODEL].raw.data)
        return pf_fail(l->err, PF_EFORMAT, "no %s", m[MODEL].name);
    model = at(m[MODEL].raw);
    if ((!done && (st = take_until_model(l, m, &model)))
        || (st = pf_load_within(l, m[DECODER].name,
            pf_load_decoder(l, m[DECODER].raw)))
        || (st = pf_load_within(l, m[POST].name,
            pf_load_frame(l, m[POST].raw))))
        return st;
    return pf_tokenizer_finish(l->tok, l->err);
}

enum pf_status
pf_tokenizer_json(struct pf_tokenizer **out, const char *json, size_t len,
    struct pf_err *err)
{
    struct pf_err own;
    struct pf_load l = { .err = err ? err : &own };
    enum pf_status st;

    *out = NULL;
    l.tok = pf_tokenizer_new();
    if (!l.tok)
        return pf_fail_mem(err);
    l.tok->steps = pf_arena_alloc(&l.tok->mem,
        PF_LOAD_STEPS * sizeof *l.tok->steps);
    l.tok->cuts = pf_arena_alloc(&l.tok->mem,
        PF_LOAD_STEPS * sizeof *l.tok->cuts);
    if (l.tok->steps && l.tok->cuts)
        st = take_file(&l, json, len);
    else
        st = pf_fail_mem(err);
    pf_vocab_free(l.names);
    for (size_t i = 0; i < sizeof l.text / sizeof *l.text; i++)
        pf_buf_fini(&l.text[i]);
    pf_buf_fini(&l.bytes);
    if (st)
        pf_tokenizer_free(l.tok);
    else
        *out = l.tok;
    return st;
}
