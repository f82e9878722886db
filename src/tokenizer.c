/*
 * Opening a tokenizer: what the four files of a directory in GPT-2's form say,
 * put into the tables that encoding works with (encoder.c).
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

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pipeformer/buf.h>
#include <pipeformer/io.h>
#include <pipeformer/utf8.h>

#include "config.h"

#define FILE_MAX ((size_t)64 << 20)

static const char vocab_name[] = "vocab.json", merges_name[] = "merges.txt",
    config_name[] = "tokenizer_config.json",
    special_name[] = "special_tokens_map.json";

enum { NO_ID = -1 };

/* A token that the configuration names. */
struct named {
    struct pf_span text;
    int64_t id; /* or NO_ID */
    bool special;
};

/* What is known on the way; the texts are in the two trees. */
struct setup {
    struct pf_tokenizer *tok;
    const struct pf_tokenizer_files *files;
    cJSON *config, *special;
    struct named *named;
    size_t n_named, named_cap, added_cap;
    struct pf_err *err;
};

/* The sentence in err gets the file's name in front. */
static enum pf_status
in_file(const struct setup *s, const char *name, enum pf_status st)
{
    struct pf_err inner;

    if (!st || !s->err || st == PF_ENOMEM)
        return st;
    inner = *s->err;
    return pf_fail(s->err, st, "%s%s: %s", s->files->where, name, inner.msg);
}

/* A token as a string, or as an object with its "content" and flags. */
static enum pf_status
name_token(struct setup *s, const cJSON *v, int64_t id, bool special)
{
    static const char *const flags[] = { "lstrip", "rstrip", "single_word" };
    const cJSON *text = v;
    struct pf_span span;
    bool set;

    if (cJSON_IsObject(v))
        text = cJSON_GetObjectItemCaseSensitive(v, "content");
    if (!cJSON_IsString(text))
        return pf_fail(s->err, PF_EFORMAT, "a token is neither a string nor "
            "an object with its content");
    span = (struct pf_span){ text->valuestring, strlen(text->valuestring) };
    if (span.len == 0 && id == NO_ID)
        return PF_OK;
    if (span.len == 0 || pf_utf8_span(span.data, span.len) != span.len)
        return pf_fail(s->err, PF_EFORMAT, "a token is %s",
            span.len ? "not UTF-8" : "empty");
    for (size_t i = 0; v != text && i < 3; i++) {
        if (pf_config_bool(v, flags[i], false, &set, s->err))
            return PF_EFORMAT;
        if (set)
            return pf_fail(s->err, PF_EMODEL, "token %s has %s, which is not "
                "supported", pf_show(span.data, span.len).s, flags[i]);
    }
    if (!pf_grow(&s->named, &s->named_cap, s->n_named + 1, sizeof *s->named))
        return pf_fail_mem(s->err);
    s->named[s->n_named++] = (struct named){ span, id, special };
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
    st = pf_config_bool(s->config, "add_bos_token", false, &s->tok->add_bos,
        s->err);
    if (!st)
        st = pf_config_bool(s->config, "add_prefix_space", false,
            &s->tok->add_space, s->err);
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
        if (!is_ascii(&s->named[i].text))
            literal[n++] = s->named[i].text;
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

static enum pf_status
add(struct setup *s, uint32_t id, bool special)
{
    struct pf_tokenizer *tok = s->tok;

    if (!pf_grow(&tok->added, &s->added_cap, tok->n_added + 1,
            sizeof *tok->added))
        return pf_fail_mem(s->err);
    tok->added[tok->n_added++] = (struct pf_added){ id, special };
    return PF_OK;
}

/* The tokens that were named, now that the vocabulary is known. */
static enum pf_status
add_named(struct setup *s)
{
    enum pf_status st = PF_OK;
    const struct named *t;
    uint32_t id;

    for (size_t i = 0; !st && i < s->n_named; i++) {
        t = &s->named[i];
        if (pf_vocab_find(s->tok->vocab, t->text.data, t->text.len, &id)) {
            if (t->id != NO_ID && t->id != id)
                return pf_fail(s->err, PF_EFORMAT, "token %s has id %ld, in "
                    "%s it has %ld", pf_show(t->text.data, t->text.len).s,
                    (long)t->id, vocab_name, (long)id);
        } else if (t->id != NO_ID) {
            id = (uint32_t)t->id;
            st = pf_vocab_add(s->tok->vocab, id, t->text.data, t->text.len,
                s->err);
        } else {
            continue;
        }
        if (!st)
            st = add(s, id, t->special);
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
    for (size_t i = 0; i < len; i++) {
        ids[i] = s->tok->byte[(unsigned char)bytes[i]];
        if (ids[i] == PF_BPE_NONE)
            goto done;
    }
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
            st = add(s, id, true);
        if (st)
            return st;
    }
    return PF_OK;
}

static int
by_id(const void *a, const void *b)
{
    uint32_t x = ((const struct pf_added *)a)->id;
    uint32_t y = ((const struct pf_added *)b)->id;

    return (x > y) - (x < y);
}

/* In order of id, each once; special if anything calls it so. */
static void
sort_added(struct pf_tokenizer *tok)
{
    size_t n = 0;

    if (tok->n_added)
        qsort(tok->added, tok->n_added, sizeof *tok->added, by_id);
    for (size_t i = 0; i < tok->n_added; i++) {
        if (n && tok->added[n - 1].id == tok->added[i].id)
            tok->added[n - 1].special |= tok->added[i].special;
        else
            tok->added[n++] = tok->added[i];
    }
    tok->n_added = n;
}

/* The id of bos_token, of whichever file has it. */
static enum pf_status
find_bos(struct setup *s)
{
    const cJSON *v = NULL, *trees[] = { s->config, s->special };

    for (int i = 0; i < 2 && !cJSON_IsString(v); i++) {
        v = cJSON_GetObjectItemCaseSensitive(trees[i], "bos_token");
        if (cJSON_IsObject(v))
            v = cJSON_GetObjectItemCaseSensitive(v, "content");
    }
    if (!cJSON_IsString(v))
        return pf_fail(s->err, PF_EMODEL, "add_bos_token, but there is no "
            "bos_token");
    if (!pf_vocab_find(s->tok->vocab, v->valuestring, strlen(v->valuestring),
            &s->tok->bos))
        return pf_fail(s->err, PF_EMODEL, "bos_token %s is not in the "
            "vocabulary", pf_show(v->valuestring, strlen(v->valuestring)).s);
    return PF_OK;
}

static enum pf_status
parse(struct setup *s)
{
    struct pf_tokenizer *tok = s->tok;
    enum pf_status st;
    char c;

    st = in_file(s, config_name, read_config(s));
    if (!st)
        st = in_file(s, special_name, read_special(s));
    if (!st)
        st = in_file(s, vocab_name, read_vocab(s));
    if (!st)
        st = in_file(s, merges_name, read_merges(s));
    if (!st)
        st = in_file(s, config_name, add_named(s));
    if (st)
        return st;
    for (int i = 0; i < 256; i++) {
        c = (char)i;
        if (!pf_vocab_find(tok->vocab, &c, 1, &tok->byte[i]))
            tok->byte[i] = PF_BPE_NONE;
    }
    st = in_file(s, vocab_name, add_unmade(s));
    if (!st && tok->add_bos)
        st = in_file(s, config_name, find_bos(s));
    if (!st)
        st = pf_pretok_new(&tok->pretok, pf_pretok_gpt2(), true, s->err);
    sort_added(tok);
    return st;
}

enum pf_status
pf_tokenizer_parse(struct pf_tokenizer **out,
    const struct pf_tokenizer_files *files, struct pf_err *err)
{
    struct pf_err own;
    struct setup s = {
        .tok = calloc(1, sizeof *s.tok),
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

static enum pf_status
read_file(struct pf_buf *path, const char *where, const char *name,
    char **data, struct pf_span *span, struct pf_err *err)
{
    enum pf_status st;

    pf_buf_clear(path);
    pf_buf_printf(path, "%s%s", where, name);
    if (pf_buf_check(path, err))
        return PF_ENOMEM;
    if (access(path->data, F_OK) != 0 && errno == ENOENT)
        return PF_OK;
    st = pf_read_file(path->data, FILE_MAX, data, &span->len, err);
    span->data = *data;
    return st;
}

/* Why there is no vocab.json, if a reason can be seen. */
static enum pf_status
no_vocab(struct pf_buf *path, const char *where, struct pf_err *err)
{
    static const char *const others[] = { "tokenizer.json", "vocab.txt" };

    for (size_t i = 0; i < 2; i++) {
        pf_buf_clear(path);
        pf_buf_printf(path, "%s%s", where, others[i]);
        if (pf_buf_check(path, err))
            return PF_ENOMEM;
        if (access(path->data, F_OK) == 0)
            return pf_fail(err, PF_EMODEL, "%s is not supported by this "
                "version, and there is no %s beside it", path->data,
                vocab_name);
    }
    return pf_fail(err, PF_EMODEL, "there is no %s%s", where, vocab_name);
}

enum pf_status
pf_tokenizer_open(struct pf_tokenizer **tok, const char *dir,
    struct pf_err *err)
{
    struct pf_buf path = PF_BUF_INIT, where = PF_BUF_INIT;
    struct pf_tokenizer_files files = { 0 };
    const char *const names[] = { vocab_name, merges_name, config_name,
        special_name };
    struct pf_span *const spans[] = { &files.vocab, &files.merges,
        &files.config, &files.special };
    char *data[4] = { NULL };
    size_t len = strlen(dir);
    enum pf_status st;

    *tok = NULL;
    pf_buf_printf(&where, "%s%s", dir, len && dir[len - 1] == '/' ? "" : "/");
    st = pf_buf_check(&where, err);
    files.where = where.data;
    for (size_t i = 0; i < 4 && !st; i++)
        st = read_file(&path, where.data, names[i], &data[i], spans[i], err);
    if (!st && !files.vocab.data)
        st = no_vocab(&path, where.data, err);
    if (!st)
        st = pf_tokenizer_parse(tok, &files, err);
    for (size_t i = 0; i < 4; i++)
        free(data[i]);
    pf_buf_fini(&where);
    pf_buf_fini(&path);
    return st;
}

void
pf_tokenizer_free(struct pf_tokenizer *tok)
{
    if (tok) {
        pf_vocab_free(tok->vocab);
        pf_bpe_free(tok->bpe);
        pf_pretok_free(tok->pretok);
        free(tok->added);
        free(tok);
    }
}

size_t
pf_tokenizer_size(const struct pf_tokenizer *tok)
{
    return pf_vocab_size(tok->vocab);
}

const char *
pf_tokenizer_token(const struct pf_tokenizer *tok, uint32_t id, size_t *len)
{
    return pf_vocab_bytes(tok->vocab, id, len);
}

bool
pf_added_find(const struct pf_tokenizer *tok, uint32_t id, size_t *at)
{
    struct pf_added key = { id, false };
    const struct pf_added *a = tok->n_added ? bsearch(&key, tok->added,
        tok->n_added, sizeof key, by_id) : NULL;

    if (a)
        *at = (size_t)(a - tok->added);
    return a != NULL;
}

bool
pf_tokenizer_is_special(const struct pf_tokenizer *tok, uint32_t id)
{
    size_t i;

    return pf_added_find(tok, id, &i) && tok->added[i].special;
}

bool
pf_tokenizer_special(const struct pf_tokenizer *tok, size_t i, uint32_t *id)
{
    for (size_t k = 0; k < tok->n_added; k++) {
        if (tok->added[k].special && i-- == 0) {
            *id = tok->added[k].id;
            return true;
        }
    }
    return false;
}

bool
pf_tokenizer_find_special(const struct pf_tokenizer *tok, const char *text,
    size_t len, uint32_t *id)
{
    return pf_vocab_find(tok->vocab, text, len, id)
        && pf_tokenizer_is_special(tok, *id);
}

size_t
pf_tokenizer_prefix(const struct pf_tokenizer *tok, const uint32_t **ids)
{
    *ids = &tok->bos;
    return tok->add_bos;
}
