/*
 * The encodings that need no model: those of OpenAI's tiktoken, and BERT's.
 * Names, ids and patterns are facts of tiktoken's openai_public.py and of
 * BERT's vocabulary.
 */
#include "encodings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/io.h>
#include <pipeformer/model.h>

#include "tables.h"
#include "tokenizer-private.h"

#define FIM(prefix, middle, suffix) \
    { "<|fim_prefix|>", prefix }, { "<|fim_middle|>", middle }, \
    { "<|fim_suffix|>", suffix }

struct special {
    const char *text;
    uint32_t id;
};

static const struct special
    gpt2_special[] = { { "<|endoftext|>", 50256 }, { NULL, 0 } },
    p50k_edit_special[] = { { "<|endoftext|>", 50256 },
        FIM(50281, 50282, 50283), { NULL, 0 } },
    cl100k_special[] = { { "<|endoftext|>", 100257 },
        FIM(100258, 100259, 100260), { "<|endofprompt|>", 100276 },
        { NULL, 0 } },
    o200k_special[] = { { "<|endoftext|>", 199999 },
        { "<|endofprompt|>", 200018 }, { NULL, 0 } },
    harmony_special[] = { { "<|startoftext|>", 199998 },
        { "<|endoftext|>", 199999 }, { "<|return|>", 200002 },
        { "<|constrain|>", 200003 }, { "<|channel|>", 200005 },
        { "<|start|>", 200006 }, { "<|end|>", 200007 },
        { "<|message|>", 200008 }, { "<|call|>", 200012 },
        { "<|endofprompt|>", 200018 }, { NULL, 0 } };

/* In o200k_harmony, ids without another name are <|reserved_ID|>; 200018 has
 * both names. */
enum { RESERVED = 200000, RESERVED_END = 201088, RESERVED_TOO = 200018 };

static const struct encoding {
    struct pf_encoding public;
    const char *ranks, *pattern; /* NULL: WordPiece */
    const struct special *special;
    bool reserved;
} encodings[] = {
    { { "gpt2", 50257, "<|endoftext|>" }, "gpt2", "gpt2", gpt2_special,
        false },
    { { "r50k_base", 50257, "<|endoftext|>" }, "gpt2", "gpt2", gpt2_special,
        false },
    { { "p50k_base", 50281, "<|endoftext|>" }, "p50k_base", "gpt2",
        gpt2_special, false },
    { { "p50k_edit", 50284, "<|endoftext|> <|fim_prefix|> <|fim_middle|> "
        "<|fim_suffix|>" }, "p50k_base", "gpt2", p50k_edit_special, false },
    { { "cl100k_base", 100277, "<|endoftext|> <|fim_prefix|> <|fim_middle|> "
        "<|fim_suffix|> <|endofprompt|>" }, "cl100k_base", "cl100k",
        cl100k_special, false },
    { { "o200k_base", 200019, "<|endoftext|> <|endofprompt|>" }, "o200k_base",
        "o200k", o200k_special, false },
    { { "o200k_harmony", 201088, "<|startoftext|> <|endoftext|> <|return|> "
        "<|constrain|> <|channel|> <|start|> <|end|> <|message|> <|call|> "
        "<|endofprompt|> <|reserved_200000|> ... <|reserved_201087|>" },
        "o200k_base", "o200k", harmony_special, true },
    { { "bert-base-uncased", 30522, "[PAD] [UNK] [CLS] [SEP] [MASK]" },
        NULL, NULL, NULL, false },
};

enum { N_ENCODINGS = sizeof encodings / sizeof *encodings };

const struct pf_encoding *
pf_encoding_at(size_t i)
{
    return i < N_ENCODINGS ? &encodings[i].public : NULL;
}

const char *
pf_ranks_name(size_t i)
{
    static const char *const names[] = { "gpt2", "p50k_base", "cl100k_base",
        "o200k_base" };

    return i < sizeof names / sizeof *names ? names[i] : NULL;
}

/* Maps a file under vocab/. */
static enum pf_status
map(struct pf_mapping **m, struct pf_span *span, const char *name,
    const char *end, struct pf_err *err)
{
    struct pf_buf path = PF_BUF_INIT;
    enum pf_status st;

    *m = NULL;
    st = pf_vocab_file(&path, name, end, err);
    if (!st)
        st = pf_mapping_open(m, path.data, err);
    if (!st)
        *span = pf_mapping_bytes(*m);
    pf_buf_fini(&path);
    return st;
}

/* From vocab.json and merges.txt. */
static enum pf_status
read_merges(struct pf_span vocab, struct pf_span merges, struct pf_vocab **v,
    struct pf_bpe **b, struct pf_err *err)
{
    enum pf_status st = pf_vocab_new(v, vocab.len / 20, err);

    if (!st)
        st = pf_vocab_read_json(*v, vocab.data, vocab.len, NULL, 0, err);
    if (!st)
        st = pf_bpe_new(b, merges.len / 8, err);
    if (!st)
        st = pf_bpe_read_merges(*b, merges.data, merges.len, *v, err);
    return st;
}

enum pf_status
pf_ranks_open(const char *name, bool prepared, struct pf_mapping **m,
    struct pf_vocab **v, struct pf_bpe **b, uint64_t *source,
    struct pf_err *err)
{
    bool pair = strcmp(name, "gpt2") == 0;
    struct pf_mapping *file[2] = { NULL, NULL };
    struct pf_span span[2] = { { NULL, 0 }, { NULL, 0 } };
    struct pf_buf path = PF_BUF_INIT;
    enum pf_status st;

    *m = NULL;
    *v = NULL;
    *b = NULL;
    st = map(&file[0], &span[0], name, pair ? "/vocab.json" : ".tiktoken",
        err);
    if (!st && pair)
        st = map(&file[1], &span[1], name, "/merges.txt", err);
    if (!st) {
        *source = pf_tables_hash(span[0].data, span[0].len, 0);
        *source = pf_tables_hash(span[1].data, span[1].len, *source);
        st = prepared && !pf_vocab_file(&path, name, ".tables", NULL)
            ? pf_tables_map(m, path.data, *source, v, b) : PF_END;
        if (st == PF_END)
            st = pair ? read_merges(span[0], span[1], v, b, err)
                : pf_ranks_read(span[0].data, span[0].len, v, b, err);
    }
    if (st) {
        pf_vocab_free(*v);
        pf_bpe_free(*b);
        *v = NULL;
        *b = NULL;
    }
    pf_mapping_free(file[0]);
    pf_mapping_free(file[1]);
    pf_buf_fini(&path);
    return st;
}

static enum pf_status
add_special(struct pf_tokenizer *tok, const struct encoding *e,
    struct pf_err *err)
{
    const struct special *s = e->special;
    struct pf_added a = { .special = true };
    enum pf_status st = PF_OK;
    char name[32];

    for (; s->text && !st; s++) {
        a.text = (struct pf_span){ s->text, strlen(s->text) };
        a.id = s->id;
        st = pf_tokenizer_add(tok, &a, err);
    }
    for (a.id = RESERVED; e->reserved && a.id < RESERVED_END && !st; a.id++) {
        for (s = e->special; s->text && s->id != a.id; s++)
            ;
        if (s->text && a.id != RESERVED_TOO)
            continue;
        a.text = (struct pf_span){ name, (size_t)snprintf(name, sizeof name,
            "<|reserved_%u|>", a.id) };
        st = pf_tokenizer_add(tok, &a, err);
    }
    return st;
}

static enum pf_status
open_bert(struct pf_tokenizer **tok, const char *name, struct pf_err *err)
{
    struct pf_mapping *m;
    struct pf_span text;
    enum pf_status st = map(&m, &text, name, "/vocab.txt", err);

    if (!st)
        st = pf_tokenizer_bert(tok, text.data, text.len, true, err);
    pf_mapping_free(m);
    return st;
}

enum pf_status
pf_tokenizer_named(struct pf_tokenizer **out, const char *name,
    struct pf_err *err)
{
    const struct encoding *e = encodings;
    struct pf_tokenizer *tok;
    enum pf_status st;
    uint64_t source;

    *out = NULL;
    while (e < encodings + N_ENCODINGS && strcmp(e->public.name, name) != 0)
        e++;
    if (e == encodings + N_ENCODINGS)
        return pf_fail(err, PF_EMODEL, "no encoding is called %s", name);
    if (!e->ranks)
        return open_bert(out, name, err);
    tok = pf_tokenizer_new();
    if (!tok)
        return pf_fail_mem(err);
    /* All tokens of these come out of merges. */
    tok->whole = true;
    st = pf_ranks_open(e->ranks, true, &tok->mapping, &tok->vocab, &tok->bpe,
        &source, err);
    if (!st)
        st = pf_tokenizer_set_pattern(tok, pf_pretok_named(e->pattern), 0,
            err);
    if (!st)
        st = add_special(tok, e, err);
    if (!st)
        st = pf_tokenizer_finish(tok, err);
    if (st)
        pf_tokenizer_free(tok);
    else
        *out = tok;
    return st;
}
