/*
 * The tokenizer of a directory in GPT-2's form, of four files.
 *
 * The configuration comes first, since it has the texts of the added tokens:
 * a token of vocab.json that is one of these stands there as it is, any other
 * is in the printable alphabet.  Such a text may have an id in three ways: in
 * added_tokens_decoder, in vocab.json, or both, and then they must agree.
 *
 * Old vocabularies come with no configuration at all, and <|endoftext|> is one
 * token of vocab.json among others.  What is written so and comes out of no
 * merges can only have been meant as a special token.
 */
#include "tokenizer-private.h"

#include <stdlib.h>
#include <string.h>

#include <pipeformer/utf8.h>

#include "config.h"

static const char vocab_name[] = "vocab.json", merges_name[] = "merges.txt",
    config_name[] = "tokenizer_config.json",
    special_name[] = "special_tokens_map.json";

enum { NO_ID = -1 };

/* A token that the configuration names. */
struct named {
    struct pf_added token;
    int64_t id; /* or NO_ID */
};

/* What is known on the way; the texts are in the two trees. */
struct setup {
    struct pf_tokenizer *tok;
    const struct pf_tokenizer_files *files;
    cJSON *config, *special;
    struct named *named;
    size_t n_named, named_cap;
    bool add_bos, add_space;
    struct pf_err *err;
};

/* The sentence in err gets the file's name in front. */
static enum pf_status
in_file(const struct setup *s, const char *name, enum pf_status st)
{
    return pf_in_file(s->files->where, name, st, s->err);
}

/* A token as a string, or as an object with its "content" and flags. */
static enum pf_status
name_token(struct setup *s, const cJSON *v, int64_t id, bool special)
{
    struct named t = { .token.special = special, .id = id };
    const struct {
        const char *name;
        bool *value;
    } flags[] = {
        { "lstrip", &t.token.lstrip },
        { "rstrip", &t.token.rstrip },
        { "single_word", &t.token.single_word },
    };
    const cJSON *text = v;
    enum pf_status st;
    size_t len;

    if (cJSON_IsObject(v))
        text = cJSON_GetObjectItemCaseSensitive(v, "content");
    if (!cJSON_IsString(text))
        return pf_fail(s->err, PF_EFORMAT, "a token is neither a string nor "
            "an object with its content");
    len = strlen(text->valuestring);
    t.token.text = (struct pf_span){ text->valuestring, len };
    if (len == 0 && id == NO_ID)
        return PF_OK;
    if (len == 0 || pf_utf8_span(text->valuestring, len) != len)
        return pf_fail(s->err, PF_EFORMAT, "a token is %s",
            len ? "not UTF-8" : "empty");
    for (size_t i = 0; v != text && i < 3; i++) {
        st = pf_config_bool(v, flags[i].name, false, flags[i].value, s->err);
        if (st)
            return st;
    }
    if (!pf_grow(&s->named, &s->named_cap, s->n_named + 1, sizeof *s->named))
        return pf_fail_mem(s->err);
    s->named[s->n_named++] = t;
    return PF_OK;
}

/* bos_token and the like, and lists of more. */
static enum pf_status
name_roles(struct setup *s, const cJSON *object)
{
    static const char suffix[] = "_token", more[] = "additional_special_tokens";
    const size_t n = sizeof suffix - 1;
    enum pf_status st = PF_OK;
    const cJSON *v, *item;
    size_t len;

    cJSON_ArrayForEach(v, object) {
        len = strlen(v->string);
        if (len > n && strcmp(v->string + len - n, suffix) == 0
            && (cJSON_IsString(v) || cJSON_IsObject(v)))
            st = name_token(s, v, NO_ID, true);
        else if (strcmp(v->string, more) == 0 && cJSON_IsArray(v))
            cJSON_ArrayForEach(item, v)
                if (!st)
                    st = name_token(s, item, NO_ID, true);
        if (st)
            return st;
    }
    return PF_OK;
}

static enum pf_status
name_added(struct setup *s, const cJSON *object)
{
    enum pf_status st;
    const cJSON *v;
    bool special;
    int64_t id;

    if (object && !cJSON_IsObject(object) && !cJSON_IsNull(object))
        return pf_fail(s->err, PF_EFORMAT, "added_tokens_decoder is not an "
            "object");
    cJSON_ArrayForEach(v, object) {
        id = 0;
        for (const char *p = v->string; *p && id < PF_VOCAB_MAX; p++)
            id = *p >= '0' && *p <= '9' ? id * 10 + *p - '0' : PF_VOCAB_MAX;
        if (!*v->string || id >= PF_VOCAB_MAX)
            return pf_fail(s->err, PF_EFORMAT, "added_tokens_decoder has %s, "
                "which is no id", pf_show(v->string, strlen(v->string)).s);
        st = pf_config_bool(v, "special", false, &special, s->err);
        if (!st)
            st = name_token(s, v, id, special);
        if (st)
            return st;
    }
    return PF_OK;
}

static enum pf_status
read_config(struct setup *s)
{
    const cJSON *class;
    enum pf_status st;

    if (!s->files->config.data)
        return PF_OK;
    st = pf_config_text(&s->config, s->files->config.data,
        s->files->config.len, s->err);
    if (st)
        return st;
    class = cJSON_GetObjectItemCaseSensitive(s->config, "tokenizer_class");
    if (class && !cJSON_IsNull(class) && !(cJSON_IsString(class)
            && (strcmp(class->valuestring, "GPT2Tokenizer") == 0
                || strcmp(class->valuestring, "GPT2TokenizerFast") == 0)))
        return pf_fail(s->err, PF_EMODEL, "tokenizer_class %s is not "
            "supported, only GPT2Tokenizer is", cJSON_IsString(class)
            ? pf_show(class->valuestring, strlen(class->valuestring)).s
            : "that is no string");
    st = pf_config_bool(s->config, "add_bos_token", false, &s->add_bos,
        s->err);
    if (!st)
        st = pf_config_bool(s->config, "add_prefix_space", false,
            &s->add_space, s->err);
    if (!st)
        st = name_added(s, cJSON_GetObjectItemCaseSensitive(s->config,
            "added_tokens_decoder"));
    return st ? st : name_roles(s, s->config);
}

static enum pf_status
read_special(struct setup *s)
{
    enum pf_status st;

    if (!s->files->special.data)
        return PF_OK;
    st = pf_config_text(&s->special, s->files->special.data,
        s->files->special.len, s->err);
    return st ? st : name_roles(s, s->special);
}

static bool
is_ascii(const struct pf_span *t)
{
    for (size_t i = 0; i < t->len; i++)
        if ((unsigned char)t->data[i] >= 0x80)
            return false;
    return true;
}

static enum pf_status
read_vocab(struct setup *s)
{
    const struct pf_span *file = &s->files->vocab;
    struct pf_span *literal;
    enum pf_status st;
    size_t n = 0;

    if (!file->data)
        return pf_fail(s->err, PF_EMODEL, "not there");
    /* 20 bytes an entry is usual, and as a bound it is generous. */
    st = pf_vocab_new(&s->tok->vocab, file->len / 20, s->err);
    if (st)
        return st;
    literal = calloc(s->n_named + 1, sizeof *literal);
    if (!literal)
        return pf_fail_mem(s->err);
    for (size_t i = 0; i < s->n_named; i++)
        if (!is_ascii(&s->named[i].token.text))
            literal[n++] = s->named[i].token.text;
    st = pf_vocab_read_json(s->tok->vocab, file->data, file->len, literal, n,
        s->err);
    free(literal);
    if (!st && pf_vocab_size(s->tok->vocab) == 0)
        st = pf_fail(s->err, PF_EFORMAT, "no tokens");
    return st;
}

static enum pf_status
read_merges(struct setup *s)
{
    const struct pf_span *file = &s->files->merges;
    enum pf_status st;

    if (!file->data)
        return pf_fail(s->err, PF_EMODEL, "not there");
    st = pf_bpe_new(&s->tok->bpe, file->len / 8, s->err);
    if (!st)
        st = pf_bpe_read_merges(s->tok->bpe, file->data, file->len,
            s->tok->vocab, s->err);
    return st;
}

/* The tokens that were named, now that the vocabulary is known. */
static enum pf_status
add_named(struct setup *s)
{
    enum pf_status st = PF_OK;
    struct pf_span text;
    struct named *t;
    uint32_t id;

    for (size_t i = 0; !st && i < s->n_named; i++) {
        t = &s->named[i];
        text = t->token.text;
        if (pf_vocab_find(s->tok->vocab, text.data, text.len, &id)) {
            if (t->id != NO_ID && t->id != id)
                return pf_fail(s->err, PF_EFORMAT, "token %s has id %ld, in "
                    "%s it has %ld", pf_show(text.data, text.len).s,
                    (long)t->id, vocab_name, (long)id);
        } else if (t->id != NO_ID) {
            id = (uint32_t)t->id;
            st = pf_vocab_add(s->tok->vocab, id, text.data, text.len, s->err);
        } else {
            continue;
        }
        t->token.id = id;
        if (!st)
            st = pf_tokenizer_add(s->tok, &t->token, s->err);
    }
    return st;
}

/* Whether merging the token's bytes gives the token. */
static enum pf_status
is_made(struct setup *s, const char *bytes, size_t len, uint32_t id,
    bool *made)
{
    struct pf_bpe_work work = PF_BPE_WORK_INIT;
    uint32_t *ids = malloc(len * sizeof *ids);
    enum pf_status st = PF_OK;

    *made = false;
    if (!ids)
        return pf_fail_mem(s->err);
    for (size_t i = 0; i < len; i++)
        if (!pf_vocab_find(s->tok->vocab, bytes + i, 1, &ids[i]))
            goto done;
    st = pf_bpe_merge(s->tok->bpe, &work, ids, &len, s->err);
    *made = !st && len == 1 && ids[0] == id;
done:
    pf_bpe_work_fini(&work);
    free(ids);
    return st;
}

/* <|endoftext|> and its like, where no file says that it is special. */
static enum pf_status
add_unmade(struct setup *s)
{
    size_t size = pf_vocab_size(s->tok->vocab), len;
    const char *bytes;
    enum pf_status st;
    bool made;

    for (uint32_t id = 0; id < size; id++) {
        bytes = pf_vocab_bytes(s->tok->vocab, id, &len);
        if (!bytes || len < 5 || memcmp(bytes, "<|", 2) != 0
            || memcmp(bytes + len - 2, "|>", 2) != 0)
            continue;
        st = is_made(s, bytes, len, id, &made);
        if (!st && !made)
            st = pf_tokenizer_add(s->tok, &(struct pf_added){
                .text = { bytes, len }, .id = id, .special = true }, s->err);
        if (st)
            return st;
    }
    return PF_OK;
}

/* The frame of a text that begins with bos_token, of whichever file has it. */
static enum pf_status
add_bos(struct setup *s)
{
    const cJSON *v = NULL, *trees[] = { s->config, s->special };
    struct pf_tokenizer *tok = s->tok;
    struct pf_slot *slots;
    uint32_t bos;

    for (int i = 0; i < 2 && !cJSON_IsString(v); i++) {
        v = cJSON_GetObjectItemCaseSensitive(trees[i], "bos_token");
        if (cJSON_IsObject(v))
            v = cJSON_GetObjectItemCaseSensitive(v, "content");
    }
    if (!cJSON_IsString(v))
        return pf_fail(s->err, PF_EMODEL, "add_bos_token, but there is no "
            "bos_token");
    if (!pf_vocab_find(tok->vocab, v->valuestring, strlen(v->valuestring),
            &bos))
        return pf_fail(s->err, PF_EMODEL, "bos_token %s is not in the "
            "vocabulary", pf_show(v->valuestring, strlen(v->valuestring)).s);
    slots = pf_arena_alloc(&tok->mem, 4 * sizeof *slots);
    if (!slots)
        return pf_fail_mem(s->err);
    slots[0] = (struct pf_slot){ bos, 0 };
    slots[1] = (struct pf_slot){ PF_SLOT_TEXT, 0 };
    slots[2] = (struct pf_slot){ bos, 1 };
    slots[3] = (struct pf_slot){ PF_SLOT_PAIR, 1 };
    tok->single = tok->pair = slots;
    tok->n_single = 2;
    tok->n_pair = 4;
    return PF_OK;
}

static enum pf_status
parse(struct setup *s)
{
    struct pf_tokenizer *tok = s->tok;
    enum pf_status st;

    st = in_file(s, config_name, read_config(s));
    if (!st)
        st = in_file(s, special_name, read_special(s));
    if (!st)
        st = in_file(s, vocab_name, read_vocab(s));
    if (!st)
        st = in_file(s, merges_name, read_merges(s));
    if (!st)
        st = in_file(s, config_name, add_named(s));
    if (!st)
        st = in_file(s, vocab_name, add_unmade(s));
    if (!st && s->add_bos)
        st = in_file(s, config_name, add_bos(s));
    if (!st)
        st = pf_tokenizer_set_pattern(tok, pf_pretok_named("gpt2"), 0,
            s->err);
    if (st)
        return st;
    tok->cuts[0].add_space = s->add_space;
    return pf_tokenizer_finish(tok, s->err);
}

enum pf_status
pf_tokenizer_gpt2(struct pf_tokenizer **out,
    const struct pf_tokenizer_files *files, struct pf_err *err)
{
    struct pf_err own;
    struct setup s = {
        .tok = pf_tokenizer_new(),
        .files = files,
        .err = err ? err : &own,
    };
    enum pf_status st;

    *out = NULL;
    if (!s.tok)
        return pf_fail_mem(err);
    st = parse(&s);
    free(s.named);
    cJSON_Delete(s.config);
    cJSON_Delete(s.special);
    if (st)
        pf_tokenizer_free(s.tok);
    else
        *out = s.tok;
    return st;
}
