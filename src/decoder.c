/*
 * Decoding is a function of one id and of whether it is the first, so a text
 * can be written as its ids come.  HuggingFace's decoders make strings of the
 * tokens and put U+FFFD for bytes that are no UTF-8; here a text is bytes, and
 * whoever shows it decides about those.
 */
#include "tokenizer-private.h"

#include <string.h>

static int
hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if ((c | 32) >= 'a' && (c | 32) <= 'f')
        return (c | 32) - 'a' + 10;
    return -1;
}

/* The byte that <0x0A> stands for; -1 for any other token. */
static int
byte_of(const char *token, size_t len)
{
    int high, low;

    if (len != 6 || memcmp(token, "<0x", 3) != 0 || token[5] != '>')
        return -1;
    high = hex(token[3]);
    low = hex(token[4]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

/* Appends a token with a space for each U+2581, or nothing. */
static void
add_spaced(struct pf_buf *out, const char *token, size_t len, bool space)
{
    size_t from = 0;

    for (size_t i = 0; i + 2 < len;) {
        if (memcmp(token + i, "\xe2\x96\x81", 3) != 0) {
            i++;
            continue;
        }
        pf_buf_add(out, token + from, i - from);
        if (space)
            pf_buf_addc(out, ' ');
        i += 3;
        from = i;
    }
    pf_buf_add(out, token + from, len - from);
}

static void
decode_metaspace(const struct pf_tokenizer *tok, const char *token, size_t len,
    bool *begun, struct pf_buf *out)
{
    size_t before = out->len;
    int byte = byte_of(token, len);

    if (byte >= 0)
        pf_buf_addc(out, (char)byte);
    else
        add_spaced(out, token, len, *begun || !tok->strip_token);
    if (!*begun && tok->strip_first && out->len > before
        && out->data[before] == ' ') {
        out->len--;
        memmove(out->data + before, out->data + before + 1,
            out->len - before);
    }
}

static enum pf_status
decode(const struct pf_tokenizer *tok, uint32_t id, bool *begun,
    struct pf_buf *out, struct pf_err *err)
{
    size_t len = 0;
    const char *token = pf_tokenizer_token(tok, id, &len);

    if (!token)
        return pf_fail(err, PF_ERANGE, "no token has the id %lu",
            (unsigned long)id);
    switch (tok->decode) {
    case PF_DECODE_BYTES:
        pf_buf_add(out, token, len);
        break;
    case PF_DECODE_METASPACE:
        decode_metaspace(tok, token, len, begun, out);
        break;
    case PF_DECODE_WORDS:
        pf_wordpiece_decode(out, token, len, !*begun, tok->prefix.data,
            tok->prefix.len, tok->clean_up);
        break;
    }
    /* An empty token is no beginning, but a word of its own. */
    *begun |= len > 0 || tok->decode == PF_DECODE_WORDS;
    return PF_OK;
}

enum pf_status
pf_tokenizer_decode(const struct pf_tokenizer *tok, const uint32_t *ids,
    size_t n, bool skip_special, bool *begun, struct pf_buf *out,
    struct pf_err *err)
{
    enum pf_status st = PF_OK;
    size_t i = 0;

    while (i < n && !st) {
        if (tok->decode == PF_DECODE_BYTES && !skip_special)
            i += pf_vocab_decode(tok->vocab, ids + i, n - i, out);
        if (i < n && !(skip_special && pf_tokenizer_is_special(tok, ids[i])))
            st = decode(tok, ids[i], begun, out, err);
        i++;
    }
    return st ? st : pf_buf_check(out, err);
}
