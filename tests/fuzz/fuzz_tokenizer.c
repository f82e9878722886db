/*
 * Any bytes, encoded with a small vocabulary and decoded, must be the same
 * bytes; without special tokens, with all, and again from the cache.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/buf.h>

#include "../../src/tokenizer-private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The merges may come in any order of rank; ids follow them. */
static const char merges[] =
    "\304\240 t\nh e\na a\naa aa\n\304\240t he\ni n\n\304\240 \304\240\n"
    "\304\212 \304\212\n\303\203 \302\251\n\303\277 \303\277\ni ng\nn g\n"
    "a aaaa\n1 1\n11 1\n";

static struct pf_tokenizer *
make(void)
{
    static const char *const names[] = { "\304\240t", "he", "aa", "aaaa",
        "\304\240the", "in", "\304\240\304\240", "\304\212\304\212",
        "\303\203\302\251", "\303\277\303\277", "ing", "ng", "aaaaa", "11",
        "111", "<|x|>", "<|x|>y" };
    struct pf_buf vocab = PF_BUF_INIT;
    struct pf_tokenizer_files files = { .where = "" };
    struct pf_tokenizer *tok = NULL;
    unsigned next = 0x100;

    for (unsigned b = 0; b < 256; b++)
        pf_buf_printf(&vocab, "%s\"\\u%04x\":%u", b ? "," : "{",
            (b > 0x20 && b < 0x7f) || (b > 0xa0 && b != 0xad) ? b : next++,
            b);
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        pf_buf_printf(&vocab, ",\"%s\":%u", names[i], 300 + i);
    pf_buf_addc(&vocab, '}');
    if (pf_buf_check(&vocab, NULL))
        abort();
    files.vocab = (struct pf_span){ vocab.data, vocab.len };
    files.merges = (struct pf_span){ merges, sizeof merges - 1 };
    if (pf_tokenizer_gpt2(&tok, &files, NULL))
        abort();
    pf_buf_fini(&vocab);
    return tok;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct pf_tokenizer *tok;
    struct pf_encoder *enc;
    const uint32_t *ids;
    const char *bytes;
    size_t n, at, len;

    if (!tok)
        tok = make();
    if (pf_encoder_new(&enc, tok, NULL))
        abort();
    for (int round = 0; round < 3; round++) {
        if (round == 2)
            pf_encoder_special_all(enc);
        if (pf_encode(enc, (const char *)data, size, &ids, &n, NULL))
            abort();
        at = 0;
        for (size_t i = 0; i < n; i++, at += len) {
            bytes = pf_tokenizer_token(tok, ids[i], &len);
            if (!bytes || len > size - at
                || memcmp(bytes, data + at, len) != 0)
                abort();
        }
        if (at != size)
            abort();
    }
    pf_encoder_free(enc);
    return 0;
}
