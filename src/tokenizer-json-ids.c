/*
 * What is done with ids: the decoder and the post-processor of a
 * tokenizer.json, which puts ids around a text.
 *
 * Of decoders, only whole sequences that real models have are known: steps
 * would work on one string, and here a text is written id by id.
 */
#include "tokenizer-json.h"

enum { MAX_PLACES = 64 }; /* of a template, before it has ids */

static enum pf_status
add_decoder(struct pf_load *l, char letter)
{
    if (l->n_decoders == sizeof l->decoders - 1)
        return pf_fail(l->err, PF_EMODEL, "more than %zu steps",
            l->n_decoders);
    l->decoders[l->n_decoders++] = letter;
    return PF_OK;
}

/* Its members are of the encoder. */
static enum pf_status
decode_byte_level(struct pf_load *l, struct pf_span object)
{
    struct pf_member m[] = { { .name = "type" }, { .name = "add_prefix_space" },
        { .name = "trim_offsets" }, { .name = "use_regex" } };
    enum pf_status st = pf_load_members(l, object, m, 4);

    return st ? st : add_decoder(l, 'L');
}

static enum pf_status
decode_words(struct pf_load *l, struct pf_span object)
{
    struct pf_member m[] = { { .name = "type" }, { .name = "prefix" },
        { .name = "cleanup" } };
    struct pf_tokenizer *tok = l->tok;
    enum pf_status st = pf_load_members(l, object, m, 3);
    struct pf_span prefix;

    if (st || (st = pf_load_string(l, &m[1], &l->text[0], &prefix))
        || (st = pf_load_bool(l, &m[2], true, &tok->clean_up)))
        return st;
    if (prefix.len != tok->prefix.len || (prefix.len
            && memcmp(prefix.data, tok->prefix.data, prefix.len) != 0))
        return pf_fail(l->err, PF_EMODEL, "prefix %s, which is not the "
            "model's, is not supported", pf_show(prefix.data, prefix.len).s);
    return add_decoder(l, 'W');
}

static enum pf_status
decode_replace(struct pf_load *l, struct pf_span object)
{
    struct pf_member m[] = { { .name = "type" }, { .name = "pattern" },
        { .name = "content" } };
    enum pf_status st = pf_load_members(l, object, m, 3);
    struct pf_span a, b;
    bool regex;

    if (st || (st = pf_load_pattern(l, &m[1], &l->text[0], &a, &regex))
        || (st = pf_load_string(l, &m[2], &l->text[1], &b)))
        return st;
    if (regex || !is(a, PF_METASPACE) || !is(b, " "))
        return pf_fail(l->err, PF_EMODEL, "other than U+2581 by a space is "
            "not supported");
    return add_decoder(l, 'R');
}

static enum pf_status
decode_byte_fallback(struct pf_load *l, struct pf_span object)
{
    enum pf_status st = pf_load_bare(l, object);

    return st ? st : add_decoder(l, 'B');
}

static enum pf_status
decode_fuse(struct pf_load *l, struct pf_span object)
{
    enum pf_status st = pf_load_bare(l, object);

    return st ? st : add_decoder(l, 'F');
}

static enum pf_status
decode_strip(struct pf_load *l, struct pf_span object)
{
    struct pf_member m[] = { { .name = "type" }, { .name = "content" },
        { .name = "start" }, { .name = "stop" } };
    enum pf_status st = pf_load_members(l, object, m, 4);
    struct pf_span content;
    int64_t start, stop;

    if (st || (st = pf_load_string(l, &m[1], &l->text[0], &content))
        || (st = pf_load_number(l, &m[2], INT32_MAX, &start))
        || (st = pf_load_number(l, &m[3], INT32_MAX, &stop)))
        return st;
    if (!is(content, " ") || start != 1 || stop != 0)
        return pf_fail(l->err, PF_EMODEL, "other than of one space in front "
            "is not supported");
    return add_decoder(l, 'S');
}

static enum pf_status
decode_metaspace(struct pf_load *l, struct pf_span object)
{
    struct pf_cut cut;
    enum pf_status st = pf_load_metaspace(l, object, &cut);

    return st ? st : add_decoder(l, cut.add_space ? 'M' : 'm');
}

static const struct pf_form decoders[] = {
    { "ByteLevel", decode_byte_level },
    { "WordPiece", decode_words },
    { "Replace", decode_replace },
    { "ByteFallback", decode_byte_fallback },
    { "Fuse", decode_fuse },
    { "Strip", decode_strip },
    { "Metaspace", decode_metaspace },
    { NULL, NULL },
};

/* What is known as a whole, each for its kind of model. */
static const struct {
    const char *letters;
    enum pf_model_kind model;
    enum pf_decode_kind kind;
    bool strip_first, strip_token;
} decoding[] = {
    { "L", PF_MODEL_BYTES, PF_DECODE_BYTES, false, false },
    { "W", PF_MODEL_WORDS, PF_DECODE_WORDS, false, false },
    { "RBFS", PF_MODEL_CHARS, PF_DECODE_METASPACE, true, false },
    { "RBF", PF_MODEL_CHARS, PF_DECODE_METASPACE, false, false },
    { "M", PF_MODEL_CHARS, PF_DECODE_METASPACE, false, true },
    { "m", PF_MODEL_CHARS, PF_DECODE_METASPACE, false, false },
};

enum pf_status
pf_load_decoder(struct pf_load *l, struct pf_span section)
{
    enum pf_status st = pf_load_section(l, section, "decoders", decoders);

    if (st)
        return st;
    for (size_t i = 0; i < sizeof decoding / sizeof *decoding; i++) {
        if (strcmp(decoding[i].letters, l->decoders) != 0
            || decoding[i].model != l->tok->model)
            continue;
        l->tok->decode = decoding[i].kind;
        l->tok->strip_first = decoding[i].strip_first;
        l->tok->strip_token = decoding[i].strip_token;
        return PF_OK;
    }
    return pf_fail(l->err, PF_EMODEL, l->n_decoders
        ? "this sequence is not supported with this model"
        : "none is not supported");
}

static enum pf_status
add_slot(struct pf_load *l, uint32_t id, int32_t segment)
{
    const struct pf_tokenizer *tok = l->tok;
    size_t i = 0, len;

    if (l->n_slots == PF_LOAD_SLOTS)
        return pf_fail(l->err, PF_EMODEL, "more than %d ids in a template",
            PF_LOAD_SLOTS);
    if (id != PF_SLOT_TEXT && id != PF_SLOT_PAIR
        && !pf_vocab_bytes(tok->vocab, id, &len)) {
        while (i < tok->n_added && tok->added[i].id != id)
            i++;
        if (i == tok->n_added)
            return pf_fail(l->err, PF_EFORMAT, "id %lu is no token",
                (unsigned long)id);
    }
    l->slots[l->n_slots++] = (struct pf_slot){ id, segment };
    return PF_OK;
}

/* What was added becomes a template, unless there is one. */
static enum pf_status
end_template(struct pf_load *l, struct pf_slot **slots, size_t *n)
{
    size_t size = l->n_slots * sizeof **slots;

    if (*slots)
        return pf_fail(l->err, PF_EMODEL, "a second template is not "
            "supported");
    *slots = pf_arena_alloc(&l->tok->mem, size);
    if (!*slots)
        return pf_fail_mem(l->err);
    memcpy(*slots, l->slots, size);
    *n = l->n_slots;
    l->n_slots = 0;
    return PF_OK;
}

/* The ids that a template calls by a name. */
static enum pf_status
add_named(struct pf_load *l, struct pf_span specials, struct pf_span name,
    int32_t segment)
{
    struct pf_member m[] = { { .name = "id" }, { .name = "ids" },
        { .name = "tokens" } };
    struct pf_member number = { .name = "an id" };
    struct pf_json j = at(specials);
    struct pf_span key, raw;
    enum pf_status st = pf_json_open(&j, '{', l->err);
    bool first = true, here = false;
    int64_t id;

    while (!st && !here && !(st = pf_json_next(&j, '}', &first, l->err))) {
        st = pf_load_name(l, &j, &l->text[0], &key);
        if (st)
            break;
        here = key.len == name.len
            && memcmp(key.data, name.data, key.len) == 0;
        st = pf_json_value(&j, &raw.data, &raw.len, l->err);
    }
    if (st == PF_END)
        return pf_fail(l->err, PF_EFORMAT, "%s is not in special_tokens",
            pf_show(name.data, name.len).s);
    if (st || (st = pf_load_members(l, raw, m, 3)))
        return st;
    if (!m[1].raw.data)
        return pf_fail(l->err, PF_EFORMAT, "no ids");
    j = at(m[1].raw);
    first = true;
    st = pf_json_open(&j, '[', l->err);
    while (!st && !(st = pf_json_next(&j, ']', &first, l->err))) {
        st = pf_json_value(&j, &number.raw.data, &number.raw.len, l->err);
        if (!st)
            st = pf_load_number(l, &number, PF_VOCAB_MAX - 1, &id);
        if (!st)
            st = add_slot(l, (uint32_t)id, segment);
    }
    return st == PF_END ? PF_OK : st;
}

/* {"SpecialToken": {"id", "type_id"}} or {"Sequence": likewise}. */
static enum pf_status
add_place(struct pf_load *l, struct pf_span object, struct pf_span specials)
{
    struct pf_member kind[] = { { .name = "SpecialToken" },
        { .name = "Sequence" } };
    struct pf_member m[] = { { .name = "id" }, { .name = "type_id" } };
    enum pf_status st = pf_load_members(l, object, kind, 2);
    struct pf_span name;
    int64_t segment;

    if (st)
        return st;
    if (!kind[0].raw.data == !kind[1].raw.data)
        return pf_fail(l->err, PF_EFORMAT, "a place is neither SpecialToken "
            "nor Sequence");
    if ((st = pf_load_members(l, kind[kind[1].raw.data != NULL].raw, m, 2))
        || (st = pf_load_string(l, &m[0], &l->text[1], &name))
        || (st = pf_load_number(l, &m[1], INT32_MAX, &segment)))
        return st;
    if (kind[0].raw.data)
        return add_named(l, specials, name, (int32_t)segment);
    if (!is(name, "A") && !is(name, "B"))
        return pf_fail(l->err, PF_EFORMAT, "Sequence %s is neither A nor B",
            pf_show(name.data, name.len).s);
    return add_slot(l, is(name, "A") ? PF_SLOT_TEXT : PF_SLOT_PAIR,
        (int32_t)segment);
}

/* A list of places; each text is to stand in it once. */
static enum pf_status
take_template(struct pf_load *l, const struct pf_member *m,
    struct pf_span specials, size_t texts, struct pf_slot **slots, size_t *n)
{
    struct pf_json j = at(m->raw);
    struct pf_span object;
    enum pf_status st;
    bool first = true;
    size_t a = 0, b = 0, places = 0;

    if (!m->raw.data)
        return pf_fail(l->err, PF_EFORMAT, "no %s", m->name);
    l->n_slots = 0;
    st = pf_json_open(&j, '[', l->err);
    while (!st && !(st = pf_json_next(&j, ']', &first, l->err))) {
        st = pf_json_value(&j, &object.data, &object.len, l->err);
        if (!st && ++places > MAX_PLACES)
            st = pf_fail(l->err, PF_EMODEL, "more than %d places",
                MAX_PLACES);
        if (!st)
            st = add_place(l, object, specials);
    }
    if (st != PF_END)
        return st;
    for (size_t i = 0; i < l->n_slots; i++) {
        a += l->slots[i].id == PF_SLOT_TEXT;
        b += l->slots[i].id == PF_SLOT_PAIR;
    }
    if (a != 1 || b != texts - 1)
        return pf_fail(l->err, PF_EMODEL, texts == 1
            ? "A does not stand once and alone"
            : "A and B do not stand once each");
    return end_template(l, slots, n);
}

static enum pf_status
post_template(struct pf_load *l, struct pf_span object)
{
    struct pf_member m[] = { { .name = "type" }, { .name = "single" },
        { .name = "pair" }, { .name = "special_tokens" } };
    struct pf_tokenizer *tok = l->tok;
    enum pf_status st = pf_load_members(l, object, m, 4);

    if (!st && !m[3].raw.data)
        return pf_fail(l->err, PF_EFORMAT, "no %s", m[3].name);
    if (!st)
        st = pf_load_within(l, m[1].name, take_template(l, &m[1], m[3].raw, 1,
            &tok->single, &tok->n_single));
    if (st)
        return st;
    return pf_load_within(l, m[2].name, take_template(l, &m[2], m[3].raw, 2,
        &tok->pair, &tok->n_pair));
}

/* ["[SEP]", 102] */
static enum pf_status
get_end(struct pf_load *l, const struct pf_member *m, uint32_t *id)
{
    struct pf_member number = { .name = m->name };
    struct pf_json j = at(m->raw);
    struct pf_span text;
    enum pf_status st;
    int64_t v;

    if (!m->raw.data)
        return pf_fail(l->err, PF_EFORMAT, "no %s", m->name);
    if (!pf_json_take(&j, '[') || pf_load_text(l, &j, &l->text[0], &text)
        || !pf_json_take(&j, ',')
        || pf_json_value(&j, &number.raw.data, &number.raw.len, NULL)
        || !pf_json_take(&j, ']'))
        return pf_fail(l->err, PF_EFORMAT, "%s is no token with its id",
            m->name);
    st = pf_load_number(l, &number, PF_VOCAB_MAX - 1, &v);
    if (!st)
        *id = (uint32_t)v;
    return st;
}

/* cls A sep; two texts as BERT or as RoBERTa has them. */
static enum pf_status
add_ends(struct pf_load *l, const struct pf_member *sep,
    const struct pf_member *cls, bool roberta)
{
    struct pf_tokenizer *tok = l->tok;
    int32_t second = roberta ? 0 : 1;
    enum pf_status st;
    uint32_t from = 0, to = 0;

    l->n_slots = 0;
    if ((st = get_end(l, cls, &from)) || (st = get_end(l, sep, &to))
        || (st = add_slot(l, from, 0)) || (st = add_slot(l, PF_SLOT_TEXT, 0))
        || (st = add_slot(l, to, 0))
        || (st = end_template(l, &tok->single, &tok->n_single))
        || (st = add_slot(l, from, 0)) || (st = add_slot(l, PF_SLOT_TEXT, 0))
        || (st = add_slot(l, to, 0))
        || (roberta && (st = add_slot(l, to, 0)))
        || (st = add_slot(l, PF_SLOT_PAIR, second))
        || (st = add_slot(l, to, second)))
        return st;
    return end_template(l, &tok->pair, &tok->n_pair);
}

static enum pf_status
post_bert(struct pf_load *l, struct pf_span object)
{
    struct pf_member m[] = { { .name = "type" }, { .name = "sep" },
        { .name = "cls" } };
    enum pf_status st = pf_load_members(l, object, m, 3);

    return st ? st : add_ends(l, &m[1], &m[2], false);
}

/* The other members are about offsets, which are not HuggingFace's here. */
static enum pf_status
post_roberta(struct pf_load *l, struct pf_span object)
{
    struct pf_member m[] = { { .name = "type" }, { .name = "sep" },
        { .name = "cls" }, { .name = "trim_offsets" },
        { .name = "add_prefix_space" } };
    enum pf_status st = pf_load_members(l, object, m, 5);

    return st ? st : add_ends(l, &m[1], &m[2], true);
}

/* About offsets alone. */
static enum pf_status
post_byte_level(struct pf_load *l, struct pf_span object)
{
    struct pf_member m[] = { { .name = "type" }, { .name = "add_prefix_space" },
        { .name = "trim_offsets" }, { .name = "use_regex" } };

    return pf_load_members(l, object, m, 4);
}

static const struct pf_form post_processors[] = {
    { "TemplateProcessing", post_template },
    { "BertProcessing", post_bert },
    { "RobertaProcessing", post_roberta },
    { "ByteLevel", post_byte_level },
    { NULL, NULL },
};

enum pf_status
pf_load_frame(struct pf_load *l, struct pf_span section)
{
    return pf_load_section(l, section, "processors", post_processors);
}
