/*
 * A .tiktoken file: a token and its rank on each line.  tiktoken joins any
 * two neighbours whose joined bytes are a token, the one of lowest rank first;
 * and a piece that is a token is that token at once.
 *
 * For a vocabulary that was made by merging, one pair for each token is
 * enough: the two parts that are left when the token's bytes have been merged
 * by all lower ranks.  Within a longer piece, as long as nothing has been
 * joined across the token's borders, the same merges happen in the same order,
 * so that no other two parts of the token ever stand side by side.  If any
 * token is not two parts then, it has no such history, and every way to part
 * every token in two becomes a merge.
 */
#include "tokenizer-private.h"

#include <stdlib.h>
#include <string.h>

#include <pipeformer/json.h>

#include "config.h"

enum { TOKEN_MAX = 1024 }; /* bytes; 128 is the most that is known */

static int
base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* At most n bytes, to dst; SIZE_MAX if this is not base64 (RFC 4648). */
static size_t
base64_decode(char *dst, const char *src, size_t n)
{
    size_t out = 0, pad = 0;
    uint32_t bits = 0;
    int v;

    if (n % 4)
        return SIZE_MAX;
    while (pad < 2 && pad < n && src[n - 1 - pad] == '=')
        pad++;
    for (size_t i = 0; i < n - pad; i++) {
        v = base64_value(src[i]);
        if (v < 0)
            return SIZE_MAX;
        bits = bits << 6 | (uint32_t)v;
        if (i % 4)
            dst[out++] = (char)(bits >> (6 - 2 * (i % 4)) % 8);
    }
    return out;
}

/* One line without its end. */
static enum pf_status
add_line(struct pf_vocab *v, const char *line, size_t len, size_t number,
    char *tmp, struct pf_err *err)
{
    const char *space = memchr(line, ' ', len);
    struct pf_err why;
    enum pf_status st;
    int64_t rank;
    size_t n;

    n = space ? base64_decode(tmp, line, (size_t)(space - line)) : SIZE_MAX;
    if (n == SIZE_MAX || n == 0)
        return pf_fail(err, PF_EFORMAT, "line %zu is not a token in base64, a "
            "space and a rank: %s", number, pf_show(line, len).s);
    if (n > TOKEN_MAX)
        return pf_fail(err, PF_ERANGE, "line %zu has a token of %zu bytes; %d "
            "are supported", number, n, TOKEN_MAX);
    st = pf_json_text_i64(space + 1, len - (size_t)(space + 1 - line), &rank,
        &why);
    if (st || rank < 0 || rank >= PF_VOCAB_MAX)
        return pf_fail(err, PF_EFORMAT, "line %zu has no rank from 0 to %d: "
            "%s", number, PF_VOCAB_MAX - 1, pf_show(line, len).s);
    st = pf_vocab_add(v, (uint32_t)rank, tmp, n, &why);
    return st ? pf_fail(err, st, "line %zu: %.300s", number, why.msg) : PF_OK;
}

static enum pf_status
read_lines(struct pf_vocab *v, const char *text, size_t len,
    struct pf_err *err)
{
    const char *p = text, *end = text + len, *next;
    enum pf_status st = PF_OK;
    char *tmp = NULL;
    size_t number = 0, cap = 0, n;

    for (; !st && p < end; p = next) {
        next = memchr(p, '\n', (size_t)(end - p));
        n = (size_t)((next ? next : end) - p);
        next = next ? next + 1 : end;
        number++;
        if (n && p[n - 1] == '\r')
            n--;
        if (n == 0)
            continue;
        if (!pf_grow(&tmp, &cap, n, 1))
            st = pf_fail_mem(err);
        else
            st = add_line(v, p, n, number, tmp, err);
    }
    free(tmp);
    if (!st && pf_vocab_size(v) == 0)
        st = pf_fail(err, PF_EFORMAT, "no tokens");
    return st;
}

/*
 * The merge that makes a token, if the merges before it leave two parts;
 * *two: whether they do.  `ids` has room for the token's bytes.
 */
static enum pf_status
add_history(struct pf_bpe *b, const struct pf_vocab *v, uint32_t id,
    struct pf_bpe_work *work, uint32_t *ids, bool *two, struct pf_err *err)
{
    enum pf_status st;
    const char *bytes;
    size_t n;

    *two = true;
    bytes = pf_vocab_bytes(v, id, &n);
    if (!bytes || n < 2)
        return PF_OK;
    *two = false;
    for (size_t i = 0; i < n; i++)
        if (!pf_vocab_find(v, bytes + i, 1, &ids[i]))
            return PF_OK;
    st = pf_bpe_merge(b, work, ids, &n, err);
    *two = !st && n == 2;
    return st || n != 2 ? st : pf_bpe_add(b, ids[0], ids[1], id, id, err);
}

/* Every pair that joined is the token. */
static enum pf_status
add_splits(struct pf_bpe *b, const struct pf_vocab *v, uint32_t id,
    struct pf_err *err)
{
    enum pf_status st = PF_OK;
    uint32_t left, right;
    const char *bytes;
    size_t n;

    bytes = pf_vocab_bytes(v, id, &n);
    for (size_t i = 1; bytes && i < n && !st; i++)
        if (pf_vocab_find(v, bytes, i, &left)
            && pf_vocab_find(v, bytes + i, n - i, &right))
            st = pf_bpe_add(b, left, right, id, id, err);
    return st;
}

enum pf_status
pf_ranks_read(const char *text, size_t len, struct pf_vocab **v,
    struct pf_bpe **b, struct pf_err *err)
{
    struct pf_bpe_work work = PF_BPE_WORK_INIT;
    uint32_t *ids = NULL;
    enum pf_status st;
    bool two = true;
    size_t size;

    *b = NULL;
    st = pf_vocab_new(v, len / 16, err);
    if (!st)
        st = read_lines(*v, text, len, err);
    if (!st)
        st = pf_bpe_new(b, pf_vocab_size(*v), err);
    if (!st) {
        ids = malloc(pf_vocab_longest(*v) * sizeof *ids);
        st = ids ? PF_OK : pf_fail_mem(err);
    }
    size = st ? 0 : pf_vocab_size(*v);
    for (uint32_t id = 0; id < size && !st && two; id++)
        st = add_history(*b, *v, id, &work, ids, &two, err);
    for (uint32_t id = 0; id < size && !st && !two; id++)
        st = add_splits(*b, *v, id, err);
    pf_bpe_work_fini(&work);
    free(ids);
    if (st) {
        pf_vocab_free(*v);
        pf_bpe_free(*b);
        *v = NULL;
        *b = NULL;
    }
    return st;
}

enum pf_status
pf_tokenizer_ranks(struct pf_tokenizer **out, const char *text, size_t len,
    const char *pattern, unsigned flags, struct pf_err *err)
{
    struct pf_tokenizer *tok = pf_tokenizer_new();
    enum pf_status st;

    *out = NULL;
    if (!tok)
        return pf_fail_mem(err);
    tok->whole = true;
    st = pf_ranks_read(text, len, &tok->vocab, &tok->bpe, err);
    if (!st)
        st = pf_tokenizer_set_pattern(tok, pattern, flags, err);
    if (st)
        pf_tokenizer_free(tok);
    else
        *out = tok;
    return st;
}

static int
by_text(const void *a, const void *b)
{
    const struct pf_span *x = &(*(const struct pf_added *const *)a)->text;
    const struct pf_span *y = &(*(const struct pf_added *const *)b)->text;
    int c = memcmp(x->data, y->data, x->len < y->len ? x->len : y->len);

    return c ? c : (x->len > y->len) - (x->len < y->len);
}

/* Whether each text has one id. */
static enum pf_status
check_once(const struct pf_tokenizer *tok, struct pf_err *err)
{
    const struct pf_added **a = calloc(tok->n_added + 1, sizeof *a);
    enum pf_status st = PF_OK;

    if (!a)
        return pf_fail_mem(err);
    for (size_t i = 0; i < tok->n_added; i++)
        a[i] = &tok->added[i];
    qsort(a, tok->n_added, sizeof *a, by_text);
    for (size_t i = 1; i < tok->n_added && !st; i++)
        if (by_text(&a[i - 1], &a[i]) == 0 && a[i - 1]->id != a[i]->id)
            st = pf_fail(err, PF_EFORMAT, "special token %s has two ids, %lu "
                "and %lu", pf_show(a[i]->text.data, a[i]->text.len).s,
                (unsigned long)a[i - 1]->id, (unsigned long)a[i]->id);
    free(a);
    return st;
}

enum pf_status
pf_tokenizer_add_special(struct pf_tokenizer *tok, const char *json,
    size_t len, struct pf_err *err)
{
    struct pf_json j = pf_json_at(json, len);
    struct pf_added a = { .special = true };
    struct pf_buf key = PF_BUF_INIT;
    enum pf_status st;
    const char *bytes;
    bool first = true;
    int64_t id;
    size_t n;

    st = pf_json_open(&j, '{', err);
    while (!st && !(st = pf_json_next(&j, '}', &first, err))) {
        pf_buf_clear(&key);
        st = pf_json_key(&j, &key, err);
        if (!st)
            st = pf_json_i64(&j, &id, err);
        if (st)
            break;
        if (key.len == 0 || id < 0 || id >= PF_VOCAB_MAX) {
            st = pf_fail(err, PF_ERANGE, "special token \"%s\": no text, or "
                "an id that is not from 0 to %d",
                pf_show(key.len ? key.data : "", key.len).s,
                PF_VOCAB_MAX - 1);
            break;
        }
        a.text = (struct pf_span){ key.data, key.len };
        a.id = (uint32_t)id;
        bytes = pf_vocab_bytes(tok->vocab, a.id, &n);
        if (bytes && (n != key.len || memcmp(bytes, key.data, n) != 0)) {
            st = pf_fail(err, PF_EFORMAT, "special token %s has the id %lu of "
                "the token %s", pf_show(key.data, key.len).s,
                (unsigned long)a.id, pf_show(bytes, n).s);
            break;
        }
        st = pf_tokenizer_add(tok, &a, err);
    }
    pf_buf_fini(&key);
    if (st == PF_END)
        st = pf_json_end(&j, err);
    return st ? st : check_once(tok, err);
}
