/*
 * What a tokenizer is once it is open, and which loader opens what.
 */
#include "tokenizer-private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <pipeformer/io.h>

#include "config.h"
#include "pattern.h"
#include "tables.h"

struct pf_tokenizer *
pf_tokenizer_new(void)
{
    struct pf_tokenizer *tok = calloc(1, sizeof *tok);

    if (tok) {
        tok->mem = (struct pf_arena)PF_ARENA_INIT;
        tok->unk = PF_BPE_NONE;
    }
    return tok;
}

void
pf_tokenizer_free(struct pf_tokenizer *tok)
{
    if (tok) {
        for (size_t i = 0; i < tok->n_cuts; i++)
            pf_pretok_free(tok->cuts[i].pretok);
        pf_wordpiece_free(tok->wordpiece);
        pf_vocab_free(tok->vocab);
        pf_bpe_free(tok->bpe);
        pf_mapping_free(tok->mapping);
        pf_arena_fini(&tok->mem);
        free(tok);
    }
}

struct pf_span
pf_tokenizer_keep(struct pf_tokenizer *tok, const char *bytes, size_t len)
{
    return (struct pf_span){ pf_arena_copy(&tok->mem, bytes, len), len };
}

enum pf_status
pf_tokenizer_add(struct pf_tokenizer *tok, const struct pf_added *added,
    struct pf_err *err)
{
    size_t cap = tok->added_cap ? 2 * tok->added_cap : 16;
    struct pf_added *a;

    if (tok->n_added == tok->added_cap) {
        a = pf_arena_alloc(&tok->mem, cap * sizeof *a);
        if (!a)
            return pf_fail_mem(err);
        if (tok->n_added)
            memcpy(a, tok->added, tok->n_added * sizeof *a);
        tok->added = a;
        tok->added_cap = cap;
    }
    a = &tok->added[tok->n_added];
    *a = *added;
    a->text = pf_tokenizer_keep(tok, added->text.data, added->text.len);
    if (!a->text.data)
        return pf_fail_mem(err);
    tok->n_added++;
    return PF_OK;
}

enum pf_status
pf_tokenizer_set_pattern(struct pf_tokenizer *tok, const char *pattern,
    unsigned flags, struct pf_err *err)
{
    tok->cuts = pf_arena_alloc(&tok->mem, sizeof *tok->cuts);
    if (!tok->cuts)
        return pf_fail_mem(err);
    tok->cuts[0] = (struct pf_cut){ .kind = PF_CUT_PATTERN };
    tok->n_cuts = 1;
    return pf_pretok_new(&tok->cuts[0].pretok, pattern, flags, err);
}

static int
by_id(const void *a, const void *b)
{
    const struct pf_added *x = a, *y = b;
    size_t n = x->text.len < y->text.len ? x->text.len : y->text.len;
    int c;

    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    c = memcmp(x->text.data, y->text.data, n);
    return c ? c : (x->text.len > y->text.len) - (x->text.len < y->text.len);
}

static void
join_flags(struct pf_added *a, const struct pf_added *b)
{
    a->special |= b->special;
    a->lstrip |= b->lstrip;
    a->rstrip |= b->rstrip;
    a->single_word |= b->single_word;
    a->normalized |= b->normalized;
}

/* In order, each once; special if anything calls it so. */
static void
sort_added(struct pf_tokenizer *tok)
{
    size_t n = 0;

    if (tok->n_added)
        qsort(tok->added, tok->n_added, sizeof *tok->added, by_id);
    for (size_t i = 0; i < tok->n_added; i++) {
        if (n && by_id(&tok->added[n - 1], &tok->added[i]) == 0)
            join_flags(&tok->added[n - 1], &tok->added[i]);
        else
            tok->added[n++] = tok->added[i];
    }
    tok->n_added = n;
}

static enum pf_status
set_bytes(struct pf_tokenizer *tok, struct pf_err *err)
{
    char name[8];

    if (tok->model == PF_MODEL_BYTES)
        pf_bpe_bytes_of(tok->vocab, tok->byte);
    for (int i = 0; i < 256 && tok->model == PF_MODEL_CHARS; i++) {
        snprintf(name, sizeof name, "<0x%02X>", i);
        if (!tok->byte_fallback
            || !pf_vocab_find(tok->vocab, name, 6, &tok->byte[i]))
            tok->byte[i] = PF_BPE_NONE;
    }
    tok->all_bytes = true;
    for (int i = 0; i < 256; i++)
        tok->all_bytes = tok->all_bytes && tok->byte[i] != PF_BPE_NONE;
    return tok->model == PF_MODEL_BYTES && !tok->mapping
        ? pf_bpe_set_bytes(tok->bpe, tok->byte, err) : PF_OK;
}

/* A merge that swallows the unknown would hide how much text that was. */
static enum pf_status
check_unknown(const struct pf_tokenizer *tok, struct pf_err *err)
{
    if (tok->model == PF_MODEL_CHARS && tok->unk != PF_BPE_NONE
        && pf_bpe_merges_of(tok->bpe, tok->unk))
        return pf_fail(err, PF_EMODEL, "a merge joins the token for the "
            "unknown, which is not supported");
    return PF_OK;
}

enum pf_status
pf_tokenizer_finish(struct pf_tokenizer *tok, struct pf_err *err)
{

    sort_added(tok);
    if (tok->n_single == 0) {
        tok->single = pf_arena_alloc(&tok->mem, sizeof *tok->single);
        if (!tok->single)
            return pf_fail_mem(err);
        tok->single[0] = (struct pf_slot){ PF_SLOT_TEXT, 0 };
        tok->n_single = 1;
    }
    if (tok->model == PF_MODEL_WORDS)
        return PF_OK;
    return check_unknown(tok, err) ? PF_EMODEL : set_bytes(tok, err);
}

size_t
pf_tokenizer_frame(const struct pf_tokenizer *tok, bool pair,
    const struct pf_slot **slots)
{
    *slots = pair ? tok->pair : tok->single;
    return pair ? tok->n_pair : tok->n_single;
}

/* --- Tokens --- */

/* The first added token of that id, or NULL. */
static const struct pf_added *
added_of(const struct pf_tokenizer *tok, uint32_t id)
{
    size_t lo = 0, hi = tok->n_added, mid;

    while (lo < hi) {
        mid = lo + (hi - lo) / 2;
        if (tok->added[mid].id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < tok->n_added && tok->added[lo].id == id ? &tok->added[lo]
        : NULL;
}

size_t
pf_tokenizer_size(const struct pf_tokenizer *tok)
{
    size_t n = pf_vocab_size(tok->vocab), id;

    id = tok->n_added ? tok->added[tok->n_added - 1].id + (size_t)1 : 0;
    return id > n ? id : n;
}

const char *
pf_tokenizer_token(const struct pf_tokenizer *tok, uint32_t id, size_t *len)
{
    const char *bytes = pf_vocab_bytes(tok->vocab, id, len);
    const struct pf_added *a = bytes ? NULL : added_of(tok, id);

    if (!a)
        return bytes;
    *len = a->text.len;
    return a->text.data;
}

bool
pf_tokenizer_is_special(const struct pf_tokenizer *tok, uint32_t id)
{
    const struct pf_added *a = added_of(tok, id);

    return a && a->special;
}

bool
pf_tokenizer_special(const struct pf_tokenizer *tok, size_t i, uint32_t *id)
{
    for (size_t k = 0; k < tok->n_added; k++) {
        if (tok->added[k].special && (k == 0
                || tok->added[k - 1].id != tok->added[k].id) && i-- == 0) {
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
    const struct pf_added *a;

    for (size_t i = 0; i < tok->n_added; i++) {
        a = &tok->added[i];
        if (a->special && a->text.len == len
            && memcmp(a->text.data, text, len) == 0) {
            *id = a->id;
            return true;
        }
    }
    return false;
}

bool
pf_tokenizer_complete(const struct pf_tokenizer *tok)
{
    return tok->model == PF_MODEL_WORDS || tok->all_bytes
        || (tok->model == PF_MODEL_CHARS && tok->unk != PF_BPE_NONE);
}

bool
pf_tokenizer_continues(const struct pf_tokenizer *tok, uint32_t id)
{
    const char *bytes;
    size_t len;

    switch (tok->model) {
    case PF_MODEL_BYTES:
        bytes = pf_vocab_bytes(tok->vocab, id, &len);
        return bytes && len && (bytes[0] & 0xc0) == 0x80;
    case PF_MODEL_CHARS:
        for (int c = 0x80; c < 0xc0; c++)
            if (tok->byte[c] == id)
                return true;
        return false;
    default:
        return false;
    }
}

/* --- Files --- */

/* One that is not there is no failure here: data stays NULL. */
static enum pf_status
read_file(const char *where, const char *name, char **data,
    struct pf_span *span, struct pf_err *err)
{
    struct pf_buf path = PF_BUF_INIT;
    enum pf_status st;

    pf_buf_printf(&path, "%s%s", where, name);
    pf_buf_addc(&path, '\0');
    st = pf_buf_check(&path, err);
    if (!st && (access(path.data, F_OK) == 0 || errno != ENOENT))
        st = pf_read_file(path.data, PF_TOKENIZER_FILE_MAX, data, &span->len,
            err);
    span->data = *data;
    pf_buf_fini(&path);
    return st;
}

enum pf_status
pf_in_file(const char *where, const char *name, enum pf_status st,
    struct pf_err *err)
{
    struct pf_err inner;

    if (!st || !err || st == PF_ENOMEM)
        return st;
    inner = *err;
    return pf_fail(err, st, "%s%s: %s", where, name, inner.msg);
}

/*
 * Whether a vocab.txt is of lower case: as tokenizer_config.json says, and
 * without a word of it, whether no token has a capital but those in brackets,
 * since lower-cased text would never meet such a token.
 */
static enum pf_status
is_lower(const struct pf_span *vocab, const struct pf_span *config,
    bool *lower, struct pf_err *err)
{
    const char *p = vocab->data, *end = p + vocab->len;
    enum pf_status st;
    cJSON *doc;

    for (*lower = true; p < end && *lower; p++) {
        if (*p == '[' && (p == vocab->data || p[-1] == '\n'))
            while (p + 1 < end && p[1] != '\n')
                p++;
        *lower = *p < 'A' || *p > 'Z';
    }
    if (!config->data)
        return PF_OK;
    st = pf_config_text(&doc, config->data, config->len, err);
    if (!st)
        st = pf_config_bool(doc, "do_lower_case", *lower, lower, err);
    cJSON_Delete(doc);
    return st;
}

/* The files of a directory, which ends in '/'. */
enum { JSON, VOCAB, MERGES, TXT, CONFIG, SPECIAL, N_FILES };

static enum pf_status
open_files(struct pf_tokenizer **tok, const char *where,
    const struct pf_span file[N_FILES], const char *const names[N_FILES],
    struct pf_err *err)
{
    struct pf_tokenizer_files files = { where, file[VOCAB], file[MERGES],
        file[CONFIG], file[SPECIAL] };
    enum pf_status st;
    bool lower;

    if (file[JSON].data)
        return pf_in_file(where, names[JSON], pf_tokenizer_json(tok,
            file[JSON].data, file[JSON].len, err), err);
    if (file[VOCAB].data)
        return pf_tokenizer_gpt2(tok, &files, err);
    if (!file[TXT].data)
        return pf_fail(err, PF_EMODEL, "there is no %s%s, no %s and no %s",
            where, names[JSON], names[VOCAB], names[TXT]);
    st = pf_in_file(where, names[CONFIG], is_lower(&file[TXT], &file[CONFIG],
        &lower, err), err);
    return st ? st : pf_in_file(where, names[TXT], pf_tokenizer_bert(tok,
        file[TXT].data, file[TXT].len, lower, err), err);
}

static bool
ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);

    return n >= k && strcmp(s + n - k, end) == 0;
}

enum pf_status
pf_tokenizer_open(struct pf_tokenizer **tok, const char *path,
    struct pf_err *err)
{
    const char *names[N_FILES] = { "tokenizer.json", "vocab.json",
        "merges.txt", "vocab.txt", "tokenizer_config.json",
        "special_tokens_map.json" };
    struct pf_buf where = PF_BUF_INIT;
    struct pf_span file[N_FILES] = { 0 };
    char *data[N_FILES] = { NULL };
    enum pf_status st;
    const char *slash;
    struct stat s;
    bool wanted[N_FILES] = { true, true, true, true, true, true };

    *tok = NULL;
    if (stat(path, &s) == 0 && !S_ISDIR(s.st_mode)) {
        slash = strrchr(path, '/');
        for (int i = VOCAB; i < N_FILES; i++)
            if (i != TXT && ends_with(path, names[i]))
                return pf_fail(err, PF_EMODEL, "%s: is one of a tokenizer's "
                    "files; give their directory", path);
        if (ends_with(path, ".gguf") || ends_with(path, ".model"))
            return pf_fail(err, PF_EMODEL, "%s: tokenizers in %s files are not "
                "supported; the same model's tokenizer.json is", path,
                ends_with(path, ".gguf") ? "GGUF" : "SentencePiece");
        if (!ends_with(path, ".json") && !ends_with(path, ".txt"))
            return pf_fail(err, PF_EMODEL, "%s: neither a tokenizer.json nor a "
                "vocab.txt by its name", path);
        for (int i = 0; i < N_FILES; i++)
            wanted[i] = i == CONFIG;
        wanted[ends_with(path, ".txt") ? TXT : JSON] = true;
        names[ends_with(path, ".txt") ? TXT : JSON] = slash ? slash + 1 : path;
        pf_buf_add(&where, path, slash ? (size_t)(slash + 1 - path) : 0);
    } else {
        pf_buf_printf(&where, "%s%s", path, ends_with(path, "/") ? "" : "/");
    }
    pf_buf_addc(&where, '\0');
    st = pf_buf_check(&where, err);
    for (int i = 0; i < N_FILES && !st; i++) {
        /* A tokenizer.json says it all. */
        if (wanted[i] && !file[JSON].data)
            st = read_file(where.data, names[i], &data[i], &file[i], err);
    }
    if (!st)
        st = open_files(tok, where.data, file, names, err);
    for (int i = 0; i < N_FILES; i++)
        free(data[i]);
    pf_buf_fini(&where);
    return st;
}

/* The pattern of that name, or the expression itself, and how it is read. */
static enum pf_status
find_pattern(const char **pattern, unsigned *flags, struct pf_err *err)
{
    const char *named = pf_pretok_named(*pattern);

    *flags = PF_PRETOK_TIKTOKEN | (named ? 0 : PF_PRETOK_LAX);
    if (!named && pf_pattern_is_word(*pattern))
        return pf_fail(err, PF_EMODEL, "no pattern is called %s; gpt2, cl100k, "
            "qwen2 and o200k are known", *pattern);
    if (named)
        *pattern = named;
    return PF_OK;
}

enum pf_status
pf_tokenizer_check_pattern(const char *pattern, struct pf_err *err)
{
    struct pf_pretok *pre = NULL;
    unsigned flags;
    enum pf_status st = find_pattern(&pattern, &flags, err);

    if (!st)
        st = pf_pretok_new(&pre, pattern, flags | PF_PRETOK_NO_JIT, err);
    pf_pretok_free(pre);
    return st;
}

enum pf_status
pf_tokenizer_open_ranks(struct pf_tokenizer **tok, const char *path,
    const char *pattern, const char *special, struct pf_err *err)
{
    char *text = NULL, *json = NULL;
    size_t len, json_len;
    unsigned flags;
    enum pf_status st;

    *tok = NULL;
    st = find_pattern(&pattern, &flags, err);
    if (st)
        return st;
    st = pf_read_file(path, PF_TOKENIZER_FILE_MAX, &text, &len, err);
    if (!st && special)
        st = pf_read_file(special, PF_TOKENIZER_FILE_MAX, &json, &json_len,
            err);
    if (!st)
        st = pf_in_file(path, "", pf_tokenizer_ranks(tok, text, len, pattern,
            flags, err), err);
    if (!st && special)
        st = pf_in_file(special, "", pf_tokenizer_add_special(*tok, json,
            json_len, err), err);
    if (!st)
        st = pf_tokenizer_finish(*tok, err);
    if (st) {
        pf_tokenizer_free(*tok);
        *tok = NULL;
    }
    free(text);
    free(json);
    return st;
}
