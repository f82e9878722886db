/*
 * Any bytes as a pattern, up to the first NUL, and the rest as a text: if the
 * pattern is taken, the pieces joined are the text, whole or begun.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/utf8.h>

#include "../../src/pattern.h"
#include "../../src/pretok.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 300, BATCH = 5 };

static size_t
cut(const struct pf_pretok *pre, const char *text, size_t len, bool last,
    size_t *ends)
{
    struct pf_splitter *s;
    struct pf_err err = { 0 };
    size_t n, all = 0, done = 0;

    if (pf_splitter_new(&s, pre, NULL))
        abort();
    pf_splitter_begin(s, text, len, last);
    do {
        if (pf_splitter_cut(s, ends + all, BATCH, &n, &err)) {
            if (err.status != PF_ERANGE || !err.msg[0])
                abort();
            done = len; /* too much for the limits */
            break;
        }
        for (size_t i = 0; i < n; i++, all++) {
            if (ends[all] <= done || ends[all] > len)
                abort();
            done = ends[all];
        }
    } while (n);
    if (last && done != len)
        abort();
    pf_splitter_free(s);
    return all;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = memchr(data, 0, size);
    size_t ends[TEXT_MAX + BATCH], len;
    struct pf_pretok *pre;
    struct pf_err err;
    const char *text;
    bool exact;
    char *copy;

    if (!end)
        return 0;
    text = (const char *)end + 1;
    len = size - (size_t)(end + 1 - data);
    len = pf_utf8_span(text, len < TEXT_MAX ? len : TEXT_MAX);
    copy = malloc(len + 1);
    if (!copy)
        abort();
    memcpy(copy, text, len);
    pf_pattern_known((const char *)data, &exact);
    for (unsigned flags = 0; flags < 16; flags += 3) {
        err = (struct pf_err){ 0 };
        if (pf_pretok_new(&pre, (const char *)data, flags, &err)) {
            if (pre || !err.msg[0])
                abort();
            continue;
        }
        cut(pre, copy, len, true, ends);
        cut(pre, copy, len, false, ends);
        pf_pretok_free(pre);
    }
    free(copy);
    return 0;
}
