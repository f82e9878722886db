/*
 * BERT's vocabulary: a line is a token, its number from 0 the id.  The rest is
 * not in the file and is as in HuggingFace's BertTokenizerFast.
 *
 * As in its reader, white space at the end of a line is no part of the token
 * (so the line may end in CR LF), and of two equal lines the later one counts:
 * the lines are taken from the last to the first, and one that is there
 * already is passed over.  An empty line takes its number and is no token.
 */
#include "tokenizer-private.h"

#include <string.h>

#include <pipeformer/utf8.h>

#include "unicode.h"

enum { MAX_CHARS = 100 }; /* of a word */

static const char cls_text[] = "[CLS]", sep_text[] = "[SEP]",
    unk_text[] = "[UNK]";
static const char *const specials[] = { "[PAD]", unk_text, cls_text, sep_text,
    "[MASK]" };

/* The length of a line, valid UTF-8, without the white space at its end. */
static size_t
trim(const char *line, size_t len)
{
    size_t start, n;

    while (len) {
        for (start = len - 1; start && (line[start] & 0xc0) == 0x80; start--)
            ;
        if (!(pf_uc_of(pf_utf8_decode(line + start, &n))->flags
                & PF_UC_SPACE))
            break;
        len = start;
    }
    return len;
}

static size_t
count_lines(const char *text, size_t len)
{
    const char *end = text + len, *p = text;
    size_t n = 0;

    while (p < end && (p = memchr(p, '\n', (size_t)(end - p)))) {
        p++;
        n++;
    }
    return n + (len && text[len - 1] != '\n');
}

static enum pf_status
read_lines(struct pf_tokenizer *tok, const char *text, size_t len,
    struct pf_err *err)
{
    size_t id = count_lines(text, len), start, end, n;
    enum pf_status st = pf_vocab_new(&tok->vocab, id, err);
    uint32_t later;

    if (!st && id > PF_VOCAB_MAX)
        return pf_fail(err, PF_ERANGE, "%zu lines are more tokens than %d",
            id, PF_VOCAB_MAX);
    end = len && text[len - 1] == '\n' ? len - 1 : len;
    for (; !st && id; end = start - 1) {
        id--;
        for (start = end; start && text[start - 1] != '\n'; start--)
            ;
        n = end - start;
        if (pf_utf8_span(text + start, n) != n)
            return pf_fail(err, PF_EFORMAT, "line %zu is not UTF-8: %s",
                id + 1, pf_show(text + start, n).s);
        n = trim(text + start, n);
        if (n && !pf_vocab_find(tok->vocab, text + start, n, &later))
            st = pf_vocab_add(tok->vocab, (uint32_t)id, text + start, n, err);
    }
    return st;
}

static enum pf_status
add_specials(struct pf_tokenizer *tok, struct pf_err *err)
{
    struct pf_added a = { .special = true };
    enum pf_status st = PF_OK;

    for (size_t i = 0; i < sizeof specials / sizeof *specials && !st; i++) {
        a.text = (struct pf_span){ specials[i], strlen(specials[i]) };
        if (pf_vocab_find(tok->vocab, a.text.data, a.text.len, &a.id))
            st = pf_tokenizer_add(tok, &a, err);
    }
    return st;
}

/* [CLS] A [SEP] and [CLS] A [SEP] B [SEP], where there are such tokens. */
static enum pf_status
add_templates(struct pf_tokenizer *tok, struct pf_err *err)
{
    uint32_t cls, sep;

    if (!pf_vocab_find(tok->vocab, cls_text, strlen(cls_text), &cls)
        || !pf_vocab_find(tok->vocab, sep_text, strlen(sep_text), &sep))
        return PF_OK;
    tok->single = pf_arena_alloc(&tok->mem, 3 * sizeof *tok->single);
    tok->pair = pf_arena_alloc(&tok->mem, 5 * sizeof *tok->pair);
    if (!tok->single || !tok->pair)
        return pf_fail_mem(err);
    tok->pair[0] = tok->single[0] = (struct pf_slot){ cls, 0 };
    tok->pair[1] = tok->single[1] = (struct pf_slot){ PF_SLOT_TEXT, 0 };
    tok->pair[2] = tok->single[2] = (struct pf_slot){ sep, 0 };
    tok->pair[3] = (struct pf_slot){ PF_SLOT_PAIR, 1 };
    tok->pair[4] = (struct pf_slot){ sep, 1 };
    tok->n_single = 3;
    tok->n_pair = 5;
    return PF_OK;
}

static enum pf_status
set_up(struct pf_tokenizer *tok, bool lower, struct pf_err *err)
{
    enum pf_status st;

    if (!pf_vocab_find(tok->vocab, unk_text, strlen(unk_text), &tok->unk))
        return pf_fail(err, PF_EFORMAT, "no token %s", unk_text);
    tok->steps = pf_arena_alloc(&tok->mem, sizeof *tok->steps);
    tok->cuts = pf_arena_alloc(&tok->mem, sizeof *tok->cuts);
    if (!tok->steps || !tok->cuts)
        return pf_fail_mem(err);
    tok->steps[tok->n_steps++] = (struct pf_norm_step){
        .kind = PF_NORM_BERT, .clean = true, .cjk = true, .accents = lower,
        .lower = lower };
    tok->cuts[tok->n_cuts++] = (struct pf_cut){ .kind = PF_CUT_BERT };
    tok->model = PF_MODEL_WORDS;
    tok->prefix = (struct pf_span){ "##", 2 };
    tok->decode = PF_DECODE_WORDS;
    tok->clean_up = true;
    st = pf_wordpiece_new(&tok->wordpiece, tok->vocab, tok->prefix.data,
        tok->prefix.len, tok->unk, MAX_CHARS, err);
    if (!st)
        st = add_specials(tok, err);
    if (!st)
        st = add_templates(tok, err);
    return st ? st : pf_tokenizer_finish(tok, err);
}

enum pf_status
pf_tokenizer_bert(struct pf_tokenizer **out, const char *text, size_t len,
    bool lower, struct pf_err *err)
{
    struct pf_tokenizer *tok = pf_tokenizer_new();
    enum pf_status st;

    *out = NULL;
    if (!tok)
        return pf_fail_mem(err);
    st = read_lines(tok, text, len, err);
    if (!st)
        st = set_up(tok, lower, err);
    if (st)
        pf_tokenizer_free(tok);
    else
        *out = tok;
    return st;
}
