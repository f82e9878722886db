/*
 * The tokens of a tokenizer.json and how pieces become these: added_tokens and
 * the model.
 *
 * A token has its bytes from the text of a member, but in two places it may
 * have an id: an added token is mostly in the vocabulary too.  HuggingFace
 * takes the id of the vocabulary where they differ; that is refused here.
 */
#include "tokenizer-json.h"

/* Whether a text in the printable alphabet would be other bytes. */
static enum pf_status
is_coded(struct pf_load *l, struct pf_span text, bool *coded)
{
    size_t n;
    char *room;

    pf_buf_clear(&l->bytes);
    room = pf_buf_room(&l->bytes, text.len);
    if (!room)
        return pf_fail_mem(l->err);
    n = pf_alphabet_decode(room, text.data, text.len);
    *coded = n != SIZE_MAX && n != text.len;
    return PF_OK;
}

static enum pf_status
add_added(struct pf_load *l, struct pf_span object)
{
    struct pf_member m[] = { { .name = "id" }, { .name = "content" },
        { .name = "special" }, { .name = "normalized" },
        { .name = "lstrip" }, { .name = "rstrip" },
        { .name = "single_word" } };
    struct pf_tokenizer *tok = l->tok;
    struct pf_added a;
    enum pf_status st = pf_load_members(l, object, m, 7);
    uint32_t index;
    int64_t id;
    bool coded = false;

    if (st || (st = pf_load_number(l, &m[0], PF_VOCAB_MAX - 1, &id))
        || (st = pf_load_string(l, &m[1], &l->text[0], &a.text))
        || (st = pf_load_bool(l, &m[2], false, &a.special))
        || (st = pf_load_bool(l, &m[3], !a.special, &a.normalized))
        || (st = pf_load_bool(l, &m[4], false, &a.lstrip))
        || (st = pf_load_bool(l, &m[5], false, &a.rstrip))
        || (st = pf_load_bool(l, &m[6], false, &a.single_word)))
        return st;
    if (a.text.len == 0)
        return pf_fail(l->err, PF_EFORMAT, "a token is empty");
    if (pf_vocab_find(l->names, a.text.data, a.text.len, &index))
        return pf_fail(l->err, PF_EFORMAT, "token %s stands twice",
            pf_show(a.text.data, a.text.len).s);
    if (l->metaspace && a.normalized && (a.lstrip || a.rstrip))
        return pf_fail(l->err, PF_EMODEL, "token %s: normalized with lstrip "
            "or rstrip beside Metaspace is not supported",
            pf_show(a.text.data, a.text.len).s);
    a.id = (uint32_t)id;
    if ((st = is_coded(l, a.text, &coded))
        || (st = pf_vocab_add(l->names, (uint32_t)tok->n_added, a.text.data,
            a.text.len, l->err))
        || (st = pf_tokenizer_add(tok, &a, l->err)))
        return st;
    l->coded |= coded;
    return PF_OK;
}

enum pf_status
pf_load_added(struct pf_load *l, struct pf_span section)
{
    enum pf_status st = pf_vocab_new(&l->names, 64, l->err);
    bool first = true;
    struct pf_span object;
    struct pf_json j;

    if (st || is_none(section))
        return st;
    j = at(section);
    st = pf_json_open(&j, '[', l->err);
    while (!st && !(st = pf_json_next(&j, ']', &first, l->err))) {
        st = pf_json_value(&j, &object.data, &object.len, l->err);
        if (!st)
            st = add_added(l, object);
    }
    return st == PF_END ? PF_OK : st;
}

/*
 * The bytes of a token: in a byte-level vocabulary its characters stand for
 * them, but an added token, or what has a character outside the alphabet,
 * stands as it is.
 */
static enum pf_status
bytes_of(struct pf_load *l, struct pf_span text, bool literal,
    struct pf_buf *buf, struct pf_span *bytes)
{
    size_t n;
    char *room;

    *bytes = text;
    if (!l->byte_level || literal)
        return PF_OK;
    pf_buf_clear(buf);
    room = pf_buf_room(buf, text.len);
    if (!room)
        return pf_fail_mem(l->err);
    n = pf_alphabet_decode(room, text.data, text.len);
    if (n != SIZE_MAX)
        *bytes = (struct pf_span){ room, n };
    return PF_OK;
}

static enum pf_status
add_token(struct pf_load *l, struct pf_span text, struct pf_json *j)
{
    struct pf_span bytes;
    enum pf_status st;
    uint32_t index;
    int64_t id;
    bool added;

    if (pf_json_i64(j, &id, NULL) || id < 0 || id >= PF_VOCAB_MAX)
        return pf_fail(l->err, PF_ERANGE, "the id of token %s is no whole "
            "number in 0 to %d", pf_show(text.data, text.len).s,
            PF_VOCAB_MAX - 1);
    added = pf_vocab_find(l->names, text.data, text.len, &index);
    if (added && l->tok->added[index].id != id)
        return pf_fail(l->err, PF_EFORMAT, "token %s has id %lld, in "
            "added_tokens it has %lu", pf_show(text.data, text.len).s,
            (long long)id, (unsigned long)l->tok->added[index].id);
    st = bytes_of(l, text, added, &l->text[1], &bytes);
    return st ? st : pf_vocab_add(l->tok->vocab, (uint32_t)id, bytes.data,
        bytes.len, l->err);
}

/*
 * An added token that is not in the vocabulary comes into it.  Where its id is
 * taken, it must be by another added token; where its bytes are, which in a
 * byte-level vocabulary can come from other characters, it is in `added` only.
 */
static enum pf_status
join_added(struct pf_load *l, const struct pf_added *a)
{
    struct pf_vocab *v = l->tok->vocab;
    const char *bytes;
    uint32_t id;
    size_t len;
    bool found = pf_vocab_find(v, a->text.data, a->text.len, &id);

    if (found && id == a->id)
        return PF_OK;
    bytes = pf_vocab_bytes(v, a->id, &len);
    if (bytes && (!pf_vocab_find(l->names, bytes, len, &id)
            || l->tok->added[id].id != a->id))
        return pf_fail(l->err, PF_EFORMAT, "token %s has id %lu, which is the "
            "id of %s", pf_show(a->text.data, a->text.len).s,
            (unsigned long)a->id, pf_show(bytes, len).s);
    if (found || bytes)
        return PF_OK;
    return pf_vocab_add(v, a->id, a->text.data, a->text.len, l->err);
}

static enum pf_status
read_vocab(struct pf_load *l, struct pf_json *j)
{
    bool first = true;
    struct pf_span text;
    enum pf_status st;

    /* An entry is seldom shorter, so that the table seldom grows. */
    st = pf_vocab_new(&l->tok->vocab, (size_t)(j->end - j->p) / 40, l->err);
    if (!st)
        st = pf_json_open(j, '{', l->err);
    while (!st && !(st = pf_json_next(j, '}', &first, l->err))) {
        st = pf_load_name(l, j, &l->text[0], &text);
        if (!st)
            st = add_token(l, text, j);
    }
    if (st != PF_END)
        return st;
    for (size_t i = 0; i < l->tok->n_added; i++)
        if ((st = join_added(l, &l->tok->added[i])) != PF_OK)
            return st;
    return PF_OK;
}

/* The two symbols of a merge: "a b", or ["a", "b"]. */
static enum pf_status
take_merge(struct pf_load *l, struct pf_json *j, struct pf_span part[2])
{
    enum pf_status st;
    const char *space;
    struct pf_span s;

    if (pf_json_take(j, '[')) {
        st = pf_load_text(l, j, &l->text[0], &part[0]);
        if (!st && !pf_json_take(j, ','))
            st = pf_fail(l->err, PF_EFORMAT, "is not two symbols");
        if (!st)
            st = pf_load_text(l, j, &l->text[1], &part[1]);
        if (!st && !pf_json_take(j, ']'))
            st = pf_fail(l->err, PF_EFORMAT, "is not two symbols");
        return st;
    }
    st = pf_load_text(l, j, &l->text[0], &s);
    if (st)
        return st;
    space = memchr(s.data, ' ', s.len);
    if (!space)
        return pf_fail(l->err, PF_EFORMAT, "is not two symbols: %s",
            pf_show(s.data, s.len).s);
    part[0] = (struct pf_span){ s.data, (size_t)(space - s.data) };
    part[1] = (struct pf_span){ space + 1, s.len - part[0].len - 1 };
    if (memchr(part[1].data, ' ', part[1].len))
        return pf_fail(l->err, PF_EFORMAT, "is not two symbols: %s",
            pf_show(s.data, s.len).s);
    return PF_OK;
}

/* What a merge makes, which is mostly what the one before made, or the next. */
static bool
find_result(const struct pf_vocab *v, const char *bytes, size_t len,
    uint32_t *id)
{
    const char *t;
    size_t n;

    for (uint32_t i = 0; i < 2; i++) {
        t = pf_vocab_bytes(v, *id + i, &n);
        if (t && n == len && memcmp(t, bytes, len) == 0) {
            *id += i;
            return true;
        }
    }
    return pf_vocab_find(v, bytes, len, id);
}

/* `*result` is that of the merge before. */
static enum pf_status
add_merge(struct pf_load *l, struct pf_json *j, uint32_t rank, uint32_t *result)
{
    struct pf_buf *both = &l->bytes;
    struct pf_span part[2], bytes;
    enum pf_status st = take_merge(l, j, part);
    uint32_t id[2], index;
    bool literal;

    pf_buf_clear(both);
    for (int i = 0; i < 2 && !st; i++) {
        literal = l->coded
            && pf_vocab_find(l->names, part[i].data, part[i].len, &index);
        st = bytes_of(l, part[i], literal, &l->text[2], &bytes);
        if (st)
            return st;
        if (!pf_vocab_find(l->tok->vocab, bytes.data, bytes.len, &id[i]))
            return pf_fail(l->err, PF_EFORMAT, "%s is not in the vocabulary",
                pf_show(part[i].data, part[i].len).s);
        pf_buf_add(both, bytes.data, bytes.len);
    }
    if (!st)
        st = pf_buf_check(both, l->err);
    if (st)
        return st;
    if (!find_result(l->tok->vocab, both->len ? both->data : "", both->len,
            result))
        return pf_fail(l->err, PF_EFORMAT, "%s and %s make a token that is "
            "not in the vocabulary", pf_show(part[0].data, part[0].len).s,
            pf_show(part[1].data, part[1].len).s);
    return pf_bpe_add(l->tok->bpe, id[0], id[1], rank, *result, l->err);
}

static enum pf_status
read_merges(struct pf_load *l, struct pf_json *j)
{
    bool first = true;
    uint32_t rank = 0, result = 0;
    enum pf_status st;
    struct pf_err why;

    st = pf_bpe_new(&l->tok->bpe, (size_t)(j->end - j->p) / 24, l->err);
    if (!st)
        st = pf_json_open(j, '[', l->err);
    for (; !st && !(st = pf_json_next(j, ']', &first, l->err)); rank++) {
        st = add_merge(l, j, rank, &result);
        if (st && st != PF_ENOMEM) {
            why = *l->err;
            pf_fail(l->err, st, "number %lu: %.300s", (unsigned long)rank,
                why.msg);
        }
    }
    return st == PF_END ? PF_OK : st;
}

/* unk_token, if there is one and it is in the vocabulary. */
static enum pf_status
find_unknown(struct pf_load *l, const struct pf_member *m)
{
    struct pf_span s;
    enum pf_status st;

    l->tok->unk = PF_BPE_NONE;
    if (is_none(m->raw))
        return PF_OK;
    st = pf_load_string(l, m, &l->text[0], &s);
    if (!st && !pf_vocab_find(l->tok->vocab, s.data, s.len, &l->tok->unk)) {
        l->tok->unk = PF_BPE_NONE;
        /* Bytes are never unknown where all of them are tokens. */
        if (!l->byte_level)
            st = pf_fail(l->err, PF_EFORMAT, "unk_token %s is not in the "
                "vocabulary", pf_show(s.data, s.len).s);
    }
    return st;
}

/* Must be absent, null or "". */
static enum pf_status
want_empty(struct pf_load *l, const struct pf_member *m)
{
    return is_none(m->raw) || is(m->raw, "\"\"") ? PF_OK : pf_load_refuse(l, m);
}

/* The members of the models that are known. */
enum { TYPE, VOCAB, UNKNOWN, PREFIX, MAX_CHARS, MERGES, DROPOUT, SUFFIX, FUSE,
    FALLBACK, WHOLE, N_MODEL };

static enum pf_status
finish_bpe(struct pf_load *l, const struct pf_member *m)
{
    struct pf_tokenizer *tok = l->tok;
    struct pf_json j = at(m[DROPOUT].raw);
    enum pf_status st;
    double dropout = 0;

    if (!is_none(m[DROPOUT].raw) && (pf_json_f64(&j, &dropout, NULL)
            || dropout != 0))
        return pf_load_refuse(l, &m[DROPOUT]);
    if ((st = want_empty(l, &m[PREFIX])) || (st = want_empty(l, &m[SUFFIX]))
        || (st = pf_load_bool(l, &m[FUSE], false, &tok->fuse_unk))
        || (st = pf_load_bool(l, &m[FALLBACK], false, &tok->byte_fallback))
        || (st = pf_load_bool(l, &m[WHOLE], false, &tok->whole)))
        return st;
    if (!tok->bpe)
        return pf_fail(l->err, PF_EFORMAT, "no %s", m[MERGES].name);
    if (tok->byte_fallback && l->byte_level)
        return pf_fail(l->err, PF_EMODEL, "byte_fallback beside ByteLevel is "
            "not supported");
    tok->model = l->byte_level ? PF_MODEL_BYTES : PF_MODEL_CHARS;
    return find_unknown(l, &m[UNKNOWN]);
}

static enum pf_status
finish_words(struct pf_load *l, const struct pf_member *m)
{
    struct pf_tokenizer *tok = l->tok;
    enum pf_status st;
    int64_t max;

    for (size_t i = MERGES; i < N_MODEL; i++)
        if (m[i].raw.data)
            return pf_fail(l->err, PF_EMODEL, "member %s is not supported",
                m[i].name);
    if (l->byte_level)
        return pf_fail(l->err, PF_EMODEL, "ByteLevel beside it is not "
            "supported");
    if ((st = pf_load_string(l, &m[PREFIX], &l->text[0], &tok->prefix))
        || (st = pf_load_keep(l, &tok->prefix))
        || (st = pf_load_number(l, &m[MAX_CHARS], INT32_MAX, &max))
        || (st = find_unknown(l, &m[UNKNOWN])))
        return st;
    if (tok->unk == PF_BPE_NONE)
        return pf_fail(l->err, PF_EFORMAT, "no %s", m[UNKNOWN].name);
    tok->model = PF_MODEL_WORDS;
    return pf_wordpiece_new(&tok->wordpiece, tok->vocab, tok->prefix.data,
        tok->prefix.len, tok->unk, (size_t)max, l->err);
}

/* Old files have no type: it is the model that has such a member. */
static enum pf_status
finish_model(struct pf_load *l, const struct pf_member *m)
{
    struct pf_span type = { NULL, 0 };
    bool bpe = m[MERGES].raw.data, words = m[MAX_CHARS].raw.data;
    enum pf_status st;

    if (m[TYPE].raw.data) {
        st = pf_load_string(l, &m[TYPE], &l->text[0], &type);
        if (st)
            return st;
        bpe = is(type, "BPE");
        words = is(type, "WordPiece");
    }
    if (!l->tok->vocab)
        return pf_fail(l->err, PF_EFORMAT, "no %s", m[VOCAB].name);
    if (words && !bpe)
        return pf_load_within(l, "WordPiece", finish_words(l, m));
    if (!bpe)
        return pf_fail(l->err, PF_EFORMAT, "no type");
    if (m[MAX_CHARS].raw.data)
        return pf_fail(l->err, PF_EMODEL, "BPE: member %s is not supported",
            m[MAX_CHARS].name);
    return pf_load_within(l, "BPE", finish_bpe(l, m));
}

/* At once: the vocabulary of another type looks another way. */
static enum pf_status
check_type(struct pf_load *l, const struct pf_member *m)
{
    struct pf_span type;
    enum pf_status st = pf_load_string(l, m, &l->text[0], &type);

    if (st || is(type, "BPE") || is(type, "WordPiece"))
        return st;
    return pf_fail(l->err, PF_EMODEL, "type %s is not supported",
        pf_show(type.data, type.len).s);
}

/*
 * The vocabulary and the merges are read where they stand, unless merges come
 * before the vocabulary.
 */
enum pf_status
pf_load_model(struct pf_load *l, struct pf_json *j)
{
    struct pf_member m[N_MODEL] = {
        [TYPE] = { .name = "type" },
        [VOCAB] = { .name = "vocab" },
        [UNKNOWN] = { .name = "unk_token" },
        [PREFIX] = { .name = "continuing_subword_prefix" },
        [MAX_CHARS] = { .name = "max_input_chars_per_word" },
        [MERGES] = { .name = "merges" },
        [DROPOUT] = { .name = "dropout" },
        [SUFFIX] = { .name = "end_of_word_suffix" },
        [FUSE] = { .name = "fuse_unk" },
        [FALLBACK] = { .name = "byte_fallback" },
        [WHOLE] = { .name = "ignore_merges" },
    };
    enum pf_status st = pf_json_open(j, '{', l->err);
    struct pf_tokenizer *tok = l->tok;
    struct pf_json later;
    bool first = true;
    size_t i;

    while (!st && !(st = pf_json_next(j, '}', &first, l->err))) {
        st = pf_load_known(l, j, m, N_MODEL, &i);
        if (st)
            break;
        m[i].raw.data = j->p;
        if (i == VOCAB)
            st = pf_load_within(l, m[i].name, read_vocab(l, j));
        else if (i == MERGES && tok->vocab)
            st = pf_load_within(l, m[i].name, read_merges(l, j));
        else
            st = pf_json_value(j, &m[i].raw.data, &m[i].raw.len, l->err);
        if (!st && i == TYPE)
            st = check_type(l, &m[i]);
    }
    if (st != PF_END)
        return st;
    if (m[MERGES].raw.data && tok->vocab && !tok->bpe) {
        later = at(m[MERGES].raw);
        st = pf_load_within(l, m[MERGES].name, read_merges(l, &later));
        if (st)
            return st;
    }
    return finish_model(l, m);
}
