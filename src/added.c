#include "added.h"

#include <stdlib.h>
#include <string.h>

#include <pipeformer/utf8.h>

#include "normalize.h"
#include "scan.h"
#include "unicode.h"

struct pf_finder_token {
    struct pf_span text; /* normalized, where that is what is looked through */
    const struct pf_added *token;
};

void
pf_finder_fini(struct pf_finder *f)
{
    free(f->tokens);
    free(f->lens);
    pf_arena_fini(&f->mem);
    *f = (struct pf_finder){ 0 };
}

static int
compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int c = memcmp(a, b, a_len < b_len ? a_len : b_len);

    return c ? c : (a_len > b_len) - (a_len < b_len);
}

static int
by_text(const void *a, const void *b)
{
    const struct pf_finder_token *x = a, *y = b;

    return compare(x->text.data, x->text.len, y->text.data, y->text.len);
}

static int
longest_first(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;

    return (x < y) - (x > y);
}

/* The text of a token as it stands in normalized text. */
static enum pf_status
normalized(struct pf_finder *f, const struct pf_tokenizer *tok,
    struct pf_ntext *norm, struct pf_span *text, struct pf_err *err)
{
    enum pf_status st = pf_normalize(tok->steps, tok->n_steps, norm,
        text->data, text->len, err);

    if (st)
        return st;
    text->len = norm->bytes.len;
    text->data = pf_arena_copy(&f->mem, text->len ? norm->bytes.data : "",
        text->len);
    return text->data ? PF_OK : pf_fail_mem(err);
}

enum pf_status
pf_finder_make(struct pf_finder *f, const struct pf_tokenizer *tok,
    const bool *active, bool normal, struct pf_err *err)
{
    struct pf_ntext norm = { 0 };
    const struct pf_added *a;
    enum pf_status st = PF_OK;
    struct pf_span text;
    size_t n = 0;

    pf_finder_fini(f);
    f->tokens = calloc(tok->n_added + 1, sizeof *f->tokens);
    f->lens = calloc(tok->n_added + 1, sizeof *f->lens);
    if (!f->tokens || !f->lens)
        return pf_fail_mem(err);
    for (size_t i = 0; i < tok->n_added && !st; i++) {
        a = &tok->added[i];
        text = a->text;
        if (!active[i] || (a->normalized && tok->n_steps) != normal)
            continue;
        if (normal)
            st = normalized(f, tok, &norm, &text, err);
        if (text.len == 0)
            continue;
        f->first[(unsigned char)text.data[0]] = true;
        f->lens[f->n] = text.len;
        f->tokens[f->n++] = (struct pf_finder_token){ text, a };
    }
    qsort(f->tokens, f->n, sizeof *f->tokens, by_text);
    qsort(f->lens, f->n, sizeof *f->lens, longest_first);
    for (size_t i = 0; i < f->n; i++)
        if (n == 0 || f->lens[n - 1] != f->lens[i])
            f->lens[n++] = f->lens[i];
    f->n_lens = n;
    pf_ntext_fini(&norm);
    return st;
}

static const struct pf_added *
has(const struct pf_finder *f, const char *text, size_t len)
{
    size_t lo = 0, hi = f->n, mid;
    int c;

    while (lo < hi) {
        mid = lo + (hi - lo) / 2;
        c = compare(f->tokens[mid].text.data, f->tokens[mid].text.len, text,
            len);
        if (c == 0)
            return f->tokens[mid].token;
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

static bool
is_word(uint32_t c)
{
    uint32_t next;

    return c == '_' || (pf_class_run(c, &next)
        & (PF_CLASS_LETTER | PF_CLASS_NUMBER)) || pf_uc_of(c)->flags
        & PF_UC_MARK;
}

/* The character that begins at p; 0 where there is none. */
static uint32_t
char_at(const char *p, const char *end)
{
    size_t len;

    return pf_utf8_char(p, (size_t)(end - p)) ? pf_utf8_decode(p, &len) : 0;
}

/* How many bytes of white space end before p, or begin at p. */
static size_t
space_before(const char *text, const char *p)
{
    for (size_t n = 1; n <= 4 && n <= (size_t)(p - text); n++)
        if (pf_utf8_char(p - n, n) == n)
            return pf_uc_of(pf_utf8_before(text, p))->flags & PF_UC_SPACE
                ? n : 0;
    return 0;
}

static size_t
space_at(const char *p, const char *end)
{
    return pf_uc_of(char_at(p, end))->flags & PF_UC_SPACE
        ? pf_utf8_char(p, (size_t)(end - p)) : 0;
}

const struct pf_added *
pf_finder_next(const struct pf_finder *f, const char *text, size_t len,
    struct pf_place *at)
{
    const struct pf_added *a;
    size_t n;

    for (size_t i = at->seen; f->n && i < len; i++) {
        if (!f->first[(unsigned char)text[i]])
            continue;
        for (size_t k = 0; k < f->n_lens; k++) {
            n = f->lens[k];
            a = n <= len - i ? has(f, text + i, n) : NULL;
            if (!a || (a->single_word
                    && (is_word(pf_utf8_before(text, text + i))
                        || is_word(char_at(text + i + n, text + len)))))
                continue;
            at->from = i;
            at->seen = at->to = i + n;
            if (at->to < at->taken) /* up to there it is white space */
                at->to = at->taken;
            while (a->lstrip && at->from > at->taken
                && (n = space_before(text, text + at->from)))
                at->from -= n;
            while (a->rstrip && at->to < len
                && (n = space_at(text + at->to, text + len)))
                at->to += n;
            if (at->from < at->taken)
                at->from = at->taken;
            return a;
        }
    }
    return NULL;
}
