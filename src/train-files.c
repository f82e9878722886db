/*
 * What was learnt, in the form of HuggingFace's files.
 *
 * Tokens are written in GPT-2's printable alphabet, special tokens as they
 * are.  Merges stand as "left right", which every version of the library
 * reads: a token in that alphabet holds no space.
 */
#include "train-private.h"

#include <string.h>

#include <pipeformer/json.h>
#include <pipeformer/utf8.h>

#define END_OF_TEXT "<|endoftext|>"

uint32_t
pf_alphabet_letter(unsigned char b)
{
    if (b <= ' ')
        return 0x100u + b;
    if (b >= 0x7f && b <= 0xa0)
        return 0x121u + b - 0x7f;
    return b == 0xad ? 0x143 : b;
}

int
pf_alphabet_rank(unsigned char b)
{
    uint32_t c = pf_alphabet_letter(b);

    if (c >= 0x100)
        return 188 + (int)(c - 0x100);
    return (int)c - (c > 0xad) - (c > 0xa0 ? 0x22 : 0) - 0x21;
}

/* A token as the files spell it, appended. */
static void
spell(const struct pf_trainer *t, struct pf_buf *b, uint32_t id)
{
    size_t len, n;
    const char *s = pf_vocab_bytes(t->vocab, id, &len);
    char c[4];

    if (id < t->n_special) {
        pf_buf_add(b, s, len);
        return;
    }
    for (size_t i = 0; i < len; i++) {
        n = pf_utf8_encode(c, pf_alphabet_letter((unsigned char)s[i]));
        pf_buf_add(b, c, n);
    }
}

static void
add_string(struct pf_buf *b, const char *s)
{
    pf_json_add_string(b, s, strlen(s));
}

/* --- vocab.json, merges.txt --- */

static void
vocab(const struct pf_trainer *t, struct pf_buf *b)
{
    struct pf_buf token = PF_BUF_INIT;
    size_t size = pf_vocab_size(t->vocab);

    pf_buf_addc(b, '{');
    for (uint32_t id = 0; id < size; id++) {
        pf_buf_clear(&token);
        spell(t, &token, id);
        b->failed |= token.failed;
        if (id)
            pf_buf_addc(b, ',');
        pf_json_add_string(b, token.data, token.len);
        pf_buf_addc(b, ':');
        pf_json_add_i64(b, id);
    }
    pf_buf_addc(b, '}');
    pf_buf_fini(&token);
}

static void
merge(const struct pf_trainer *t, struct pf_buf *b, size_t i)
{
    spell(t, b, t->merges.items[i].left);
    pf_buf_addc(b, ' ');
    spell(t, b, t->merges.items[i].right);
}

static void
merges(const struct pf_trainer *t, struct pf_buf *b)
{
    pf_buf_adds(b, "#version: 0.2\n");
    for (size_t i = 0; i < t->merges.n; i++) {
        merge(t, b, i);
        pf_buf_addc(b, '\n');
    }
}

/* --- tokenizer.json --- */

static void
byte_level(struct pf_buf *b, bool add_space, bool regex)
{
    pf_buf_printf(b, "{\"type\":\"ByteLevel\",\"add_prefix_space\":%s,"
        "\"trim_offsets\":true,\"use_regex\":%s}", add_space ? "true" :
        "false", regex ? "true" : "false");
}

/* GPT-2's pattern is the one that ByteLevel has by itself. */
static bool
is_gpt2(const struct pf_trainer *t)
{
    return strcmp(t->name, "gpt2") == 0;
}

static void
pre_tokenizer(const struct pf_trainer *t, struct pf_buf *b)
{
    if (is_gpt2(t)) {
        byte_level(b, false, true);
        return;
    }
    pf_buf_adds(b, "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":"
        "\"Split\",\"pattern\":{\"Regex\":");
    add_string(b, t->pattern);
    pf_buf_adds(b, "},\"behavior\":\"Isolated\",\"invert\":false},");
    byte_level(b, false, false);
    pf_buf_adds(b, "]}");
}

static void
special_token(const struct pf_trainer *t, struct pf_buf *b, uint32_t id)
{
    size_t len;
    const char *s = pf_vocab_bytes(t->vocab, id, &len);

    pf_buf_adds(b, "\"content\":");
    pf_json_add_string(b, s, len);
    pf_buf_adds(b, ",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
        "\"normalized\":false,\"special\":true}");
}

static void
tokenizer(const struct pf_trainer *t, struct pf_buf *b)
{
    struct pf_buf text = PF_BUF_INIT;

    pf_buf_adds(b, "{\"version\":\"1.0\",\n\"truncation\":null,\n"
        "\"padding\":null,\n\"added_tokens\":[");
    for (uint32_t id = 0; id < t->n_special; id++) {
        pf_buf_printf(b, "%s\n{\"id\":%lu,", id ? "," : "",
            (unsigned long)id);
        special_token(t, b, id);
    }
    pf_buf_adds(b, "],\n\"normalizer\":null,\n\"pre_tokenizer\":");
    pre_tokenizer(t, b);
    pf_buf_adds(b, ",\n\"post_processor\":null,\n\"decoder\":");
    byte_level(b, true, true);
    pf_buf_adds(b, ",\n\"model\":{\"type\":\"BPE\",\"dropout\":null,"
        "\"unk_token\":null,\"continuing_subword_prefix\":null,"
        "\"end_of_word_suffix\":null,\"fuse_unk\":false,"
        "\"byte_fallback\":false,\"ignore_merges\":false,\n\"vocab\":");
    vocab(t, b);
    pf_buf_adds(b, ",\n\"merges\":[");
    for (size_t i = 0; i < t->merges.n; i++) {
        pf_buf_clear(&text);
        merge(t, &text, i);
        b->failed |= text.failed;
        if (i)
            pf_buf_addc(b, ',');
        pf_json_add_string(b, text.data, text.len);
    }
    pf_buf_adds(b, "]}}\n");
    pf_buf_fini(&text);
}

/* --- tokenizer_config.json --- */

/*
 * The class of GPT-2 has <|endoftext|> for three parts unless told otherwise,
 * and its own pattern, so others get the class that asks tokenizer.json.
 */
static void
config(const struct pf_trainer *t, struct pf_buf *b)
{
    static const char *const roles[] = { "bos_token", "eos_token",
        "unk_token" };
    uint32_t end;
    bool has_end = pf_vocab_find(t->vocab, END_OF_TEXT, strlen(END_OF_TEXT),
        &end) && end < t->n_special;

    pf_buf_adds(b, "{\"add_bos_token\":false,\n\"add_prefix_space\":false,\n"
        "\"added_tokens_decoder\":{");
    for (uint32_t id = 0; id < t->n_special; id++) {
        pf_buf_printf(b, "%s\n\"%lu\":{", id ? "," : "", (unsigned long)id);
        special_token(t, b, id);
    }
    pf_buf_adds(b, "},\n\"clean_up_tokenization_spaces\":false,\n");
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (has_end || is_gpt2(t))
            pf_buf_printf(b, "\"%s\":%s,\n", roles[i],
                has_end ? "\"" END_OF_TEXT "\"" : "null");
    pf_buf_printf(b, "\"tokenizer_class\":\"%s\"}\n",
        is_gpt2(t) ? "GPT2Tokenizer" : "PreTrainedTokenizerFast");
}

const char *
pf_train_file_name(enum pf_train_file file)
{
    static const char *const names[PF_TRAIN_FILES] = {
        [PF_TRAIN_VOCAB] = "vocab.json",
        [PF_TRAIN_MERGES] = "merges.txt",
        [PF_TRAIN_TOKENIZER] = "tokenizer.json",
        [PF_TRAIN_CONFIG] = "tokenizer_config.json",
    };

    return names[file];
}

enum pf_status
pf_trainer_file(const struct pf_trainer *t, enum pf_train_file file,
    struct pf_buf *b, struct pf_err *err)
{
    switch (file) {
    case PF_TRAIN_VOCAB:
        vocab(t, b);
        pf_buf_addc(b, '\n');
        break;
    case PF_TRAIN_MERGES: merges(t, b); break;
    case PF_TRAIN_TOKENIZER: tokenizer(t, b); break;
    case PF_TRAIN_CONFIG: config(t, b); break;
    default: return pf_fail(err, PF_ERANGE, "no such file");
    }
    return pf_buf_check(b, err);
}
