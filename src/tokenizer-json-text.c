/*
 * What is done to a text before it is tokens: the normalizer and the
 * pre-tokenizer of a tokenizer.json.
 */
#include "tokenizer-json.h"

static enum pf_status
add_step(struct pf_load *l, struct pf_norm_step step)
{
    struct pf_tokenizer *tok = l->tok;

    if (tok->n_steps == PF_LOAD_STEPS)
        return pf_fail(l->err, PF_EMODEL, "more than %d steps", PF_LOAD_STEPS);
    tok->steps[tok->n_steps++] = step;
    return PF_OK;
}

static enum pf_status
add_bare_step(struct pf_load *l, struct pf_span object, enum pf_norm_kind kind)
{
    enum pf_status st = pf_load_bare(l, object);

    return st ? st : add_step(l, (struct pf_norm_step){ .kind = kind });
}

static enum pf_status
norm_nfc(struct pf_load *l, struct pf_span object)
{
    return add_bare_step(l, object, PF_NORM_NFC);
}

static enum pf_status
norm_nfd(struct pf_load *l, struct pf_span object)
{
    return add_bare_step(l, object, PF_NORM_NFD);
}

static enum pf_status
norm_lowercase(struct pf_load *l, struct pf_span object)
{
    return add_bare_step(l, object, PF_NORM_LOWERCASE);
}

static enum pf_status
norm_strip_accents(struct pf_load *l, struct pf_span object)
{
    return add_bare_step(l, object, PF_NORM_STRIP_ACCENTS);
}

static enum pf_status
norm_strip(struct pf_load *l, struct pf_span object)
{
    struct pf_member m[] = { { .name = "type" }, { .name = "strip_left" },
        { .name = "strip_right" } };
    struct pf_norm_step step = { .kind = PF_NORM_STRIP };
    enum pf_status st = pf_load_members(l, object, m, 3);

    if (st || (st = pf_load_bool(l, &m[1], true, &step.left))
        || (st = pf_load_bool(l, &m[2], true, &step.right)))
        return st;
    return add_step(l, step);
}

static enum pf_status
norm_prepend(struct pf_load *l, struct pf_span object)
{
    struct pf_member m[] = { { .name = "type" }, { .name = "prepend" } };
    enum pf_status st = pf_load_members(l, object, m, 2);
    struct pf_span a;

    if (st || (st = pf_load_string(l, &m[1], &l->text[0], &a))
        || (st = pf_load_keep(l, &a)))
        return st;
    return add_step(l, (struct pf_norm_step){ .kind = PF_NORM_PREPEND,
        .a = (char *)a.data, .a_len = a.len });
}

static enum pf_status
norm_replace(struct pf_load *l, struct pf_span object)
{
    struct pf_member m[] = { { .name = "type" }, { .name = "pattern" },
        { .name = "content" } };
    enum pf_status st = pf_load_members(l, object, m, 3);
    struct pf_span a, b;
    bool regex;

    if (st || (st = pf_load_pattern(l, &m[1], &l->text[0], &a, &regex)))
        return st;
    if (regex)
        return pf_fail(l->err, PF_EMODEL, "a Regex (%s) is not supported",
            pf_show(a.data, a.len).s);
    if ((st = pf_load_keep(l, &a))
        || (st = pf_load_string(l, &m[2], &l->text[0], &b))
        || (st = pf_load_keep(l, &b)))
        return st;
    return add_step(l, (struct pf_norm_step){ .kind = PF_NORM_REPLACE,
        .a = (char *)a.data, .a_len = a.len, .b = (char *)b.data,
        .b_len = b.len });
}

static enum pf_status
norm_bert(struct pf_load *l, struct pf_span object)
{
    struct pf_member m[] = { { .name = "type" }, { .name = "clean_text" },
        { .name = "handle_chinese_chars" }, { .name = "strip_accents" },
        { .name = "lowercase" } };
    struct pf_norm_step step = { .kind = PF_NORM_BERT };
    enum pf_status st = pf_load_members(l, object, m, 5);

    if (!st && is_none(m[3].raw))
        m[3].raw.data = NULL;
    if (st || (st = pf_load_bool(l, &m[1], true, &step.clean))
        || (st = pf_load_bool(l, &m[2], true, &step.cjk))
        || (st = pf_load_bool(l, &m[4], true, &step.lower))
        || (st = pf_load_bool(l, &m[3], step.lower, &step.accents)))
        return st;
    return add_step(l, step);
}

static const struct pf_form normalizers[] = {
    { "NFC", norm_nfc },
    { "NFD", norm_nfd },
    { "Lowercase", norm_lowercase },
    { "StripAccents", norm_strip_accents },
    { "Strip", norm_strip },
    { "Prepend", norm_prepend },
    { "Replace", norm_replace },
    { "BertNormalizer", norm_bert },
    { NULL, NULL },
};

enum pf_status
pf_load_normalizer(struct pf_load *l, struct pf_span section)
{
    return pf_load_section(l, section, "normalizers", normalizers);
}

static enum pf_status
add_cut(struct pf_load *l, struct pf_cut cut)
{
    struct pf_tokenizer *tok = l->tok;

    if (l->byte_level || tok->n_cuts == PF_LOAD_STEPS) {
        pf_pretok_free(cut.pretok);
        return pf_fail(l->err, PF_EMODEL, l->byte_level
            ? "nothing is supported behind ByteLevel" : "more than %d steps",
            PF_LOAD_STEPS);
    }
    tok->cuts[tok->n_cuts++] = cut;
    return PF_OK;
}

static enum pf_status
add_pattern(struct pf_load *l, const char *pattern, bool add_space)
{
    struct pf_cut cut = { .kind = PF_CUT_PATTERN, .add_space = add_space };
    enum pf_status st = pf_pretok_new(&cut.pretok, pattern, 0, l->err);

    return st ? st : add_cut(l, cut);
}

static enum pf_status
cut_byte_level(struct pf_load *l, struct pf_span object)
{
    struct pf_member m[] = { { .name = "type" }, { .name = "add_prefix_space" },
        { .name = "trim_offsets" }, { .name = "use_regex" } };
    enum pf_status st = pf_load_members(l, object, m, 4);
    bool space, trim, regex;

    if (st || (st = pf_load_bool(l, &m[1], true, &space))
        || (st = pf_load_bool(l, &m[2], true, &trim))
        || (st = pf_load_bool(l, &m[3], true, &regex)))
        return st;
    if (space && !regex)
        return pf_fail(l->err, PF_EMODEL, "add_prefix_space without "
            "use_regex is not supported");
    if (regex)
        st = add_pattern(l, pf_pretok_named("gpt2"), space);
    else if (l->byte_level)
        st = pf_fail(l->err, PF_EMODEL, "stands twice");
    l->byte_level = true;
    return st;
}

static enum pf_status
cut_bert(struct pf_load *l, struct pf_span object)
{
    enum pf_status st = pf_load_bare(l, object);

    return st ? st : add_cut(l, (struct pf_cut){ .kind = PF_CUT_BERT });
}

/* char::is_numeric of Rust is category N. */
static enum pf_status
cut_digits(struct pf_load *l, struct pf_span object)
{
    struct pf_member m[] = { { .name = "type" },
        { .name = "individual_digits" } };
    enum pf_status st = pf_load_members(l, object, m, 2);
    bool each;

    if (st || (st = pf_load_bool(l, &m[1], false, &each)))
        return st;
    return add_pattern(l, each ? "\\p{N}" : "\\p{N}+", false);
}

/* Whether no normalized text has this: the last step replaces it. */
static bool
never_there(const struct pf_load *l, struct pf_span s)
{
    const struct pf_norm_step *last;

    if (l->tok->n_steps == 0)
        return false;
    last = &l->tok->steps[l->tok->n_steps - 1];
    return last->kind == PF_NORM_REPLACE && s.len == 1 && last->a_len == 1
        && *last->a == *s.data && !memchr(last->b, *s.data, last->b_len);
}

static enum pf_status
cut_split(struct pf_load *l, struct pf_span object)
{
    struct pf_member m[] = { { .name = "type" }, { .name = "pattern" },
        { .name = "behavior" }, { .name = "invert" } };
    enum pf_status st = pf_load_members(l, object, m, 4);
    struct pf_span pattern, behavior;
    bool regex, invert, removed;

    if (st || (st = pf_load_pattern(l, &m[1], &l->text[0], &pattern, &regex))
        || (st = pf_load_string(l, &m[2], &l->text[1], &behavior))
        || (st = pf_load_bool(l, &m[3], false, &invert)))
        return st;
    if (!regex && !invert && never_there(l, pattern))
        return PF_OK;
    removed = is(behavior, "Removed") && invert;
    if (!removed && !is(behavior, "Isolated"))
        return pf_fail(l->err, PF_EMODEL, "behavior %s%s is not supported",
            pf_show(behavior.data, behavior.len).s,
            invert ? " with invert" : "");
    if (!regex)
        return pf_fail(l->err, PF_EMODEL, "a String (%s) is not supported",
            pf_show(pattern.data, pattern.len).s);
    if (memchr(pattern.data, 0, pattern.len))
        return pf_fail(l->err, PF_EMODEL, "U+0000 in a pattern is not "
            "supported");
    pf_buf_clear(&l->bytes);
    pf_buf_add(&l->bytes, pattern.data, pattern.len);
    pf_buf_addc(&l->bytes, '\0');
    st = pf_buf_check(&l->bytes, l->err);
    if (!st)
        st = add_pattern(l, l->bytes.data, false);
    /* What no match covers would go; of the known patterns, nothing. */
    if (!st && removed && pf_pretok_scan(l->tok->cuts[l->tok->n_cuts - 1]
            .pretok) == PF_SCAN_NONE)
        st = pf_fail(l->err, PF_EMODEL, "behavior Removed with invert is not "
            "supported with this pattern");
    return st;
}

enum pf_status
pf_load_metaspace(struct pf_load *l, struct pf_span object, struct pf_cut *cut)
{
    struct pf_member m[] = { { .name = "type" }, { .name = "replacement" },
        { .name = "add_prefix_space" }, { .name = "prepend_scheme" },
        { .name = "split" }, { .name = "str_rep" } };
    enum pf_status st = pf_load_members(l, object, m, 6);
    struct pf_span s;
    bool space;

    *cut = (struct pf_cut){ .kind = PF_CUT_METASPACE };
    if (st || (st = pf_load_string(l, &m[1], &l->text[0], &s)))
        return st;
    if (!is(s, PF_METASPACE))
        return pf_load_refuse(l, &m[1]);
    if (m[5].raw.data) {
        if ((st = pf_load_string(l, &m[5], &l->text[0], &s)))
            return st;
        if (!is(s, PF_METASPACE))
            return pf_load_refuse(l, &m[5]);
    }
    if ((st = pf_load_bool(l, &m[2], true, &space))
        || (st = pf_load_bool(l, &m[4], true, &cut->split)))
        return st;
    cut->add_space = space;
    if (!m[3].raw.data)
        return PF_OK;
    if ((st = pf_load_string(l, &m[3], &l->text[0], &s)))
        return st;
    cut->first_only = is(s, "first");
    cut->add_space = cut->first_only || is(s, "always");
    if (!cut->add_space && !is(s, "never"))
        return pf_load_refuse(l, &m[3]);
    if (cut->add_space && !space)
        return pf_fail(l->err, PF_EFORMAT, "add_prefix_space and "
            "prepend_scheme do not agree");
    return PF_OK;
}

/*
 * That spaces become U+2581 is a last step of normalizing, where nothing
 * stands between.
 */
static enum pf_status
cut_metaspace(struct pf_load *l, struct pf_span object)
{
    static char space[] = " ", meta[] = PF_METASPACE;
    struct pf_cut cut;
    enum pf_status st = pf_load_metaspace(l, object, &cut);

    if (st)
        return st;
    if (l->tok->n_cuts)
        return pf_fail(l->err, PF_EMODEL, "is not supported behind another");
    st = add_step(l, (struct pf_norm_step){ .kind = PF_NORM_REPLACE,
        .a = space, .a_len = 1, .b = meta, .b_len = sizeof meta - 1 });
    l->metaspace = true;
    return st ? st : add_cut(l, cut);
}

static const struct pf_form cuts[] = {
    { "ByteLevel", cut_byte_level },
    { "Split", cut_split },
    { "Metaspace", cut_metaspace },
    { "BertPreTokenizer", cut_bert },
    { "Digits", cut_digits },
    { NULL, NULL },
};

enum pf_status
pf_load_cuts(struct pf_load *l, struct pf_span section)
{
    return pf_load_section(l, section, "pretokenizers", cuts);
}
