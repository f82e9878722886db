/*
 * Any bytes as the files of a tokenizer, parted at zero bytes: vocab.json,
 * merges.txt, tokenizer_config.json, special_tokens_map.json, and a text.
 * What opens must encode the text to tokens that give its bytes back, or say
 * that a byte has no token.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/tokenizer-private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
encode(const struct pf_tokenizer *tok, const char *text, size_t size)
{
    struct pf_encoder *enc;
    const uint32_t *ids;
    const char *bytes;
    size_t n, at = 0, len;
    bool exact = !tok->cuts[0].add_space;
    enum pf_status st;

    if (pf_encoder_new(&enc, tok, NULL))
        abort();
    pf_encoder_special_all(enc);
    for (size_t i = 0; i < tok->n_added; i++)
        exact &= !tok->added[i].lstrip && !tok->added[i].rstrip;
    st = pf_encode(enc, text, size, &ids, &n, NULL);
    if (st && st != PF_EMODEL)
        abort();
    for (size_t i = 0; i < n; i++, at += len) {
        bytes = pf_tokenizer_token(tok, ids[i], &len);
        if (!bytes)
            abort();
        if (!exact)
            continue;
        if (len > size - at || memcmp(bytes, text + at, len) != 0)
            abort();
    }
    if (!st && exact && at != size)
        abort();
    pf_encoder_free(enc);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pf_tokenizer_files files = { .where = "" };
    struct pf_span text = { NULL, 0 };
    struct pf_span *const spans[] = { &files.vocab, &files.merges,
        &files.config, &files.special, &text };
    struct pf_tokenizer *tok;
    struct pf_err err;
    uint32_t id;

    for (size_t i = 0; i < 5 && size; i++) {
        const uint8_t *end = i < 4 ? memchr(data, 0, size) : NULL;
        size_t len = end ? (size_t)(end - data) : size;

        if (len)
            *spans[i] = (struct pf_span){ (const char *)data, len };
        data += len + (end != NULL);
        size -= len + (end != NULL);
    }
    if (pf_tokenizer_gpt2(&tok, &files, &err)) {
        if (tok || err.status == PF_OK || !memchr(err.msg, 0, sizeof err.msg))
            abort();
        return 0;
    }
    for (size_t i = 0; pf_tokenizer_special(tok, i, &id); i++)
        if (!pf_tokenizer_is_special(tok, id))
            abort();
    encode(tok, text.data ? text.data : "", text.len);
    pf_tokenizer_free(tok);
    return 0;
}
