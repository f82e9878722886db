/*
 * Any bytes through each step of normalization, two of them in a row, and
 * BERT's chain: UTF-8 stays UTF-8, places are in order and within the source,
 * tracking changes nothing, NFC of NFD is NFC, and the pieces of a word are
 * all of it.  The first two bytes say how long the strings of Prepend and
 * Replace are, which follow.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/utf8.h>

#include "../../src/normalize.h"
#include "../../src/wordpiece.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(bool good)
{
    if (!good)
        abort();
}

static void
run(struct pf_ntext *t, const struct pf_norm_step *steps, size_t n,
    const char *text, size_t len, bool valid)
{
    struct pf_ntext plain = PF_NTEXT_INIT;
    const struct pf_buf *b = &t->bytes;

    t->track = true;
    check(!pf_normalize(steps, n, t, text, len, NULL));
    check(!pf_normalize(steps, n, &plain, text, len, NULL));
    check(b->len == plain.bytes.len
        && (!b->len || memcmp(b->data, plain.bytes.data, b->len) == 0));
    check(!valid || pf_utf8_span(b->data, b->len) == b->len);
    for (size_t i = 0; i < b->len; i++) {
        check(t->from[i] <= t->to[i] && t->to[i] <= len);
        check(!i || t->from[i - 1] <= t->from[i]);
        check(!i || t->to[i - 1] <= t->to[i]);
    }
    pf_ntext_fini(&plain);
}

static struct pf_wordpiece *
make(struct pf_vocab **v)
{
    static const char *const tokens[] = { "[UNK]", "a", "##a", "ab", "##abc",
        "the", "##\xc3\xa9", "\xc3\xa9", ".", "##\xa9", "\xff", "##" };
    struct pf_wordpiece *wp;

    check(!pf_vocab_new(v, 16, NULL));
    for (uint32_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
        check(!pf_vocab_add(*v, i, tokens[i], strlen(tokens[i]), NULL));
    check(!pf_wordpiece_new(&wp, *v, "##", 2, 0, 20, NULL));
    return wp;
}

static void
split(const struct pf_wordpiece *wp, const char *text, size_t len)
{
    struct pf_wordpiece_work work = PF_WORDPIECE_WORK_INIT;
    struct pf_buf out = PF_BUF_INIT;
    uint32_t *ids = malloc((len + 1) * sizeof *ids);
    size_t *ends = malloc((len + 1) * sizeof *ends), n, k;
    const char *word, *at = text;
    struct pf_bert_words w;

    check(ids && ends);
    pf_bert_words_begin(&w, text, len);
    while (pf_bert_words_next(&w, &word, &k)) {
        check(k > 0 && word >= at && word + k <= text + len);
        at = word + k;
        check(!pf_wordpiece_split(wp, &work, word, k, ids, ends, &n, NULL));
        check(n > 0 && n <= k && ends[n - 1] == k);
        for (size_t i = 1; i < n; i++)
            check(ends[i - 1] < ends[i]);
        pf_wordpiece_decode(&out, word, k, out.len == 0, "##", 2, true);
    }
    check(!out.failed);
    pf_buf_fini(&out);
    pf_wordpiece_work_fini(&work);
    free(ids);
    free(ends);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pf_norm_step steps[] = {
        { .kind = PF_NORM_NFC },
        { .kind = PF_NORM_NFD },
        { .kind = PF_NORM_LOWERCASE },
        { .kind = PF_NORM_STRIP_ACCENTS },
        { .kind = PF_NORM_STRIP, .left = true, .right = true },
        { .kind = PF_NORM_BERT, .clean = true, .cjk = true, .accents = true,
            .lower = true },
        { .kind = PF_NORM_BERT, .clean = true, .cjk = true },
        { .kind = PF_NORM_BERT, .accents = true },
        { .kind = PF_NORM_PREPEND },
        { .kind = PF_NORM_REPLACE },
    };
    enum { N = sizeof steps / sizeof *steps };
    struct pf_ntext t = PF_NTEXT_INIT, u = PF_NTEXT_INIT;
    static struct pf_wordpiece *wp;
    static struct pf_vocab *vocab;
    char *text, *p;
    size_t a, b;
    bool valid;

    if (!wp)
        wp = make(&vocab);
    if (size < 2)
        return 0;
    text = malloc(size);
    check(text != NULL);
    memcpy(text, data, size);
    p = text + 2;
    a = (unsigned char)text[0] % 8;
    b = (unsigned char)text[1] % 8;
    size -= 2;
    a = a < size ? a : size;
    b = b < size - a ? b : size - a;
    for (int i = N - 2; i < N; i++) {
        steps[i].a = p;
        steps[i].a_len = a;
        steps[i].b = p + a;
        steps[i].b_len = b;
    }
    if (pf_utf8_span(p, a) != a || pf_utf8_span(p + a, b) != b) {
        check(pf_normalize(&steps[N - 1], 1, &t, p, size, NULL));
        steps[N - 2].a_len = steps[N - 2].b_len = 0;
        steps[N - 1].a_len = steps[N - 1].b_len = 0;
    }
    p += a + b;
    size -= a + b;
    valid = pf_utf8_span(p, size) == size;

    run(&t, steps, 0, p, size, valid);
    for (int i = 0; i < N; i++) {
        run(&t, &steps[i], 1, p, size, valid);
        if (i + 1 < N)
            run(&t, &steps[i], 2, p, size, valid);
    }
    run(&t, steps, N, p, size, valid);
    run(&u, &steps[0], 1, p, size, valid);
    run(&t, (const struct pf_norm_step[]){ steps[1], steps[0] }, 2, p, size,
        valid);
    check(t.bytes.len == u.bytes.len && (!t.bytes.len
            || memcmp(t.bytes.data, u.bytes.data, t.bytes.len) == 0));

    split(wp, p, size);
    run(&t, &steps[5], 1, p, size, valid);
    split(wp, t.bytes.data, t.bytes.len);
    pf_ntext_fini(&t);
    pf_ntext_fini(&u);
    free(text);
    return 0;
}
