/*
 * Any text, cut by each scanner, is cut as PCRE2 cuts it by the pattern; and
 * so it is when it comes in parts.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/utf8.h>

#include "../../src/pretok.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { N_KINDS = 4, BATCH = 130 };

/* Bytes that are no UTF-8 become characters of all classes. */
static size_t
valid(char *to, const char *data, size_t size)
{
    static const char *const some[] = { "\xc5\xbf", "\xc2\xa0", "\xcc\x81",
        "\xe4\xb8\xad", "\xc3\x89", "\xc3\xa9", "\xc7\x85", "\xca\xb0",
        "\xd9\xa3", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf0\x9d\x90\x80",
        "'", "\r\n", "/", "ll" };
    size_t len = 0, n;
    const char *c;

    for (size_t i = 0; i < size; i += n) {
        n = pf_utf8_char(data + i, size - i);
        c = data + i;
        if (!n) {
            c = some[*c & 15];
            memcpy(to + len, c, strlen(c));
            len += strlen(c);
            n = 1;
            continue;
        }
        memcpy(to + len, c, n);
        len += n;
    }
    return len;
}

/* All ends, `more` bytes at a time; returns how many. */
static size_t
cut(struct pf_splitter *s, const char *text, size_t len, size_t more,
    size_t *ends)
{
    size_t from = 0, seen = 0, n, all = 0, done = 0;
    char *part;

    do {
        seen = more < len - seen ? seen + more : len;
        seen = from + pf_utf8_span(text + from, seen - from);
        part = malloc(seen - from + 1); /* so that an overrun is seen */
        if (!part)
            abort();
        memcpy(part, text + from, seen - from);
        done = from;
        pf_splitter_begin(s, part, seen - from, seen == len);
        do {
            if (pf_splitter_cut(s, ends + all, BATCH, &n, NULL))
                abort();
            for (size_t i = 0; i < n; i++, all++) {
                ends[all] += from;
                if (ends[all] <= done || ends[all] > seen)
                    abort();
                done = ends[all];
            }
        } while (n);
        free(part);
        from = done;
        if (seen < len && seen + more > len)
            more = len - seen;
    } while (from < len);
    return all;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[N_KINDS] = { "gpt2", "cl100k", "qwen2",
        "o200k" };
    static struct pf_splitter *split[N_KINDS][2];
    struct pf_pretok *pre;
    size_t len, n, m, more, *ends, *want;
    char *text;

    if (!split[0][0])
        for (int k = 0; k < N_KINDS; k++)
            for (int i = 0; i < 2; i++)
                if (pf_pretok_new(&pre, pf_pretok_named(names[k]),
                        i ? PF_PRETOK_PCRE2 : 0, NULL)
                    || pf_splitter_new(&split[k][i], pre, NULL))
                    abort();
    if (size == 0)
        return 0;
    more = 4 + (size_t)data[0] % 61; /* a character at least */
    text = malloc(4 * size);
    ends = malloc((4 * size + BATCH) * sizeof *ends);
    want = malloc((4 * size + BATCH) * sizeof *want);
    if (!text || !ends || !want)
        abort();
    len = valid(text, (const char *)data + 1, size - 1);
    for (int k = 0; k < N_KINDS && len; k++) {
        m = cut(split[k][1], text, len, len, want);
        for (int i = 0; i < 3; i++) {
            n = cut(split[k][i == 2], text, len, i ? more : len, ends);
            if (n != m || memcmp(ends, want, n * sizeof *ends) != 0)
                abort();
        }
    }
    free(text);
    free(ends);
    free(want);
    return 0;
}
