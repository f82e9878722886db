/*
 * A .tiktoken file and a text: encoding gives what tiktoken's rule does, said
 * plainly, and the ids' bytes are the text.
 *
 * The input's first byte says how the rest is read: even, as a file up to the
 * first NUL and a text behind it; odd, as the tokens of a small vocabulary of
 * few letters, of which a file is made, and a text of those letters.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/buf.h>
#include <pipeformer/utf8.h>

#include "../../src/tokenizer-private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 400, LETTERS = 5 };

static const char letter[LETTERS + 1] = "abc \n";

static void
add_line(struct pf_buf *b, const unsigned char *s, size_t n, unsigned rank)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnop"
        "qrstuvwxyz0123456789+/";

    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)s[i] << 16
            | (i + 1 < n ? (uint32_t)s[i + 1] << 8 : 0)
            | (i + 2 < n ? s[i + 2] : 0);

        pf_buf_addc(b, digits[v >> 18]);
        pf_buf_addc(b, digits[v >> 12 & 63]);
        pf_buf_addc(b, i + 1 < n ? digits[v >> 6 & 63] : '=');
        pf_buf_addc(b, i + 2 < n ? digits[v & 63] : '=');
    }
    pf_buf_printf(b, " %u\n", rank);
}

/*
 * Tokens from bytes: how many, then each a rank and letters.  The letters
 * themselves are tokens too, of the ranks behind or in front.
 */
static void
make(struct pf_buf *file, struct pf_buf *text, const uint8_t *p, size_t n)
{
    bool taken[256] = { false };
    size_t count, len, i = 1;
    unsigned char s[8];
    unsigned base, rank;

    if (n == 0)
        return;
    count = p[0] % 24;
    base = p[0] & 128 ? 0 : 300;
    for (unsigned k = 0; k < LETTERS; k++)
        add_line(file, (const unsigned char *)&letter[k], 1, base + k);
    for (size_t t = 0; t < count && i + 1 < n; t++) {
        rank = p[i++];
        len = 2 + p[i++] % 5;
        if (len > n - i)
            break;
        for (size_t k = 0; k < len; k++)
            s[k] = (unsigned char)letter[p[i + k] % LETTERS];
        i += len;
        if (!taken[rank])
            add_line(file, s, len, rank + 10);
        taken[rank] = true;
    }
    for (; i < n && text->len < TEXT_MAX; i++)
        pf_buf_addc(text, letter[p[i] % LETTERS]);
}

/* tiktoken's rule for a piece; false where a part is no token. */
static bool
naive(const struct pf_vocab *v, const char *s, size_t len, uint32_t *ids,
    size_t *count)
{
    size_t ends[TEXT_MAX + 1], n = len, at = 0, from;
    uint32_t least, rank;

    if (pf_vocab_find(v, s, len, &ids[*count])) {
        (*count)++;
        return true;
    }
    ends[0] = 0;
    for (size_t i = 0; i < n; i++) {
        if (!pf_vocab_find(v, s + i, 1, &rank))
            return false;
        ends[i + 1] = i + 1;
    }
    for (;;) {
        least = UINT32_MAX;
        for (size_t i = 0; i + 2 <= n; i++) {
            from = ends[i];
            if (pf_vocab_find(v, s + from, ends[i + 2] - from, &rank)
                && rank < least) {
                least = rank;
                at = i + 1;
            }
        }
        if (least == UINT32_MAX)
            break;
        memmove(ends + at, ends + at + 1, (n - at) * sizeof *ends);
        n--;
    }
    for (size_t i = 0; i < n; i++)
        if (!pf_vocab_find(v, s + ends[i], ends[i + 1] - ends[i],
                &ids[(*count)++]))
            return false;
    return true;
}

/* The text as the rule has it, where it is UTF-8; else count is 0. */
static bool
expected(const struct pf_tokenizer *tok, const char *text, size_t len,
    uint32_t *ids, size_t *count)
{
    static struct pf_pretok *pre;
    struct pf_splitter *s;
    size_t end, n, from = 0;
    bool known = true;

    *count = 0;
    if ((!pre && pf_pretok_new(&pre, pf_pretok_named("gpt2"), PF_PRETOK_PCRE2,
            NULL)) || pf_splitter_new(&s, pre, NULL))
        abort();
    pf_splitter_begin(s, text, len, true);
    while (known) {
        if (pf_splitter_cut(s, &end, 1, &n, NULL))
            abort();
        if (!n)
            break;
        known = naive(tok->vocab, text + from, end - from, ids, count);
        from = end;
    }
    pf_splitter_free(s);
    return known;
}

static void
check(const struct pf_tokenizer *tok, const char *text, size_t len)
{
    uint32_t want[TEXT_MAX];
    struct pf_encoder *enc;
    const uint32_t *ids;
    size_t n, n_want, at = 0, k;
    bool utf8 = pf_utf8_span(text, len) == len, known;
    const char *bytes;

    known = utf8 && expected(tok, text, len, want, &n_want);
    if (pf_encoder_new(&enc, tok, NULL))
        abort();
    for (int round = 0; round < 2; round++) {
        if (pf_encode(enc, text, len, &ids, &n, NULL)) {
            if (known)
                abort();
            continue;
        }
        if (utf8 && (!known || n != n_want
                || (n && memcmp(ids, want, n * sizeof *ids) != 0)))
            abort();
        at = 0;
        for (size_t i = 0; i < n; i++, at += k) {
            bytes = pf_tokenizer_token(tok, ids[i], &k);
            if (!bytes || k > len - at || memcmp(bytes, text + at, k) != 0)
                abort();
        }
        if (at != len)
            abort();
    }
    pf_encoder_free(enc);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pf_buf file = PF_BUF_INIT, text = PF_BUF_INIT;
    struct pf_tokenizer *tok;
    const uint8_t *nul;
    size_t len;

    if (size == 0)
        return 0;
    if (data[0] & 1) {
        make(&file, &text, data + 1, size - 1);
    } else {
        nul = memchr(data + 1, 0, size - 1);
        len = nul ? (size_t)(nul - data) - 1 : size - 1;
        pf_buf_add(&file, (const char *)data + 1, len);
        len = nul ? size - len - 2 : 0;
        if (nul)
            pf_buf_add(&text, (const char *)nul + 1,
                len < TEXT_MAX ? len : TEXT_MAX);
    }
    if (file.failed || text.failed)
        abort();
    if (!pf_tokenizer_ranks(&tok, file.len ? file.data : "", file.len,
            pf_pretok_named("gpt2"), PF_PRETOK_TIKTOKEN, NULL)) {
        if (pf_tokenizer_finish(tok, NULL))
            abort();
        check(tok, text.len ? text.data : "", text.len);
        pf_tokenizer_free(tok);
    }
    pf_buf_fini(&file);
    pf_buf_fini(&text);
    return 0;
}
