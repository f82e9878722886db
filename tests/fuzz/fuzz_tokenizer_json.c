/*
 * Any bytes as a tokenizer.json (or a vocab.txt): if they are one, some texts
 * are encoded and decoded with it.  Nothing may break; each id is a token, and
 * ranges of ids lie within the text.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/buf.h>

#include "../../src/tokenizer-private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
try_text(const struct pf_tokenizer *tok, struct pf_encoder *enc,
    const char *text, size_t len, bool track)
{
    struct pf_buf out = PF_BUF_INIT;
    const size_t *spans;
    const uint32_t *ids;
    bool begun = false;
    size_t n, known;

    if (pf_encode(enc, text, len, &ids, &n, NULL))
        return;
    spans = pf_encoder_spans(enc);
    for (size_t i = 0; i < n; i++) {
        if (!pf_tokenizer_token(tok, ids[i], &known)
            || pf_tokenizer_decode(tok, ids + i, 1, false, &begun, &out, NULL)
            || (track && (spans[2 * i] > spans[2 * i + 1]
                || spans[2 * i + 1] > len)))
            abort();
    }
    pf_buf_fini(&out);
}

static void
try_tokenizer(const struct pf_tokenizer *tok, const char *data, size_t size)
{
    static const char *const texts[] = { "", " ", "Hello, world! 123",
        "  caf\xc3\xa9\n\n\tit's \xe2\x96\x81 <s>x</s> [MASK] <|x|>  ",
        "\xff\xc3 a\xcc\x81 \xf0\x9f\xa6\x99 \xe6\x97\xa5\xe6\x9c\xac" };
    struct pf_encoder *enc;

    for (int round = 0; round < 4; round++) {
        bool special = round & 1, track = round & 2;

        if (pf_encoder_new(&enc, tok, NULL))
            abort();
        if (special)
            pf_encoder_special_all(enc);
        if (track)
            pf_encoder_track(enc);
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
            try_text(tok, enc, texts[i], strlen(texts[i]), track);
        try_text(tok, enc, data, size < 2000 ? size : 2000, track);
        pf_encoder_free(enc);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct pf_tokenizer *tok;

    if (pf_tokenizer_json(&tok, text, size, NULL) == PF_OK) {
        try_tokenizer(tok, text, size);
        pf_tokenizer_free(tok);
    }
    if (pf_tokenizer_bert(&tok, text, size, size % 2, NULL) == PF_OK) {
        try_tokenizer(tok, text, size);
        pf_tokenizer_free(tok);
    }
    return 0;
}
