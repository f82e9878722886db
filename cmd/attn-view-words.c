/* attn-view --words: maps of words instead of tokens. */
#include <stdlib.h>
#include <string.h>

#include <pipeformer/tensor.h>
#include <pipeformer/words.h>

#include "attn-view-data.h"

/* The word of each token, in *word (the caller's), and their texts: without
 * the spaces before them and the ## within. */
static enum pf_status
find_words(const struct names *names, size_t **word, struct names *words,
    struct pf_err *err)
{
    struct pf_word_token *t = calloc(names->n + 1, sizeof *t);
    struct pf_buf s = PF_BUF_INIT;
    size_t k;

    *word = calloc(names->n + 1, sizeof **word);
    if (!t || !*word) {
        free(t);
        return pf_fail_mem(err);
    }
    for (size_t i = 0; i < names->n; i++)
        t[i].text = names_get(names, i, &t[i].len);
    pf_words(t, names->n, *word);
    for (size_t i = 0; i < names->n; i++) {
        const char *p = t[i].text;
        size_t len = t[i].len;

        if (len > 2 && memcmp(p, "##", 2) == 0)
            k = i && (*word)[i] == (*word)[i - 1] ? 2 : 0;
        else
            k = len > 1 && p[0] == ' ' ? 1
                : len > 3 && memcmp(p, "\u2581", 3) == 0 ? 3 : 0;
        pf_buf_add(&s, p + k, len - k);
        if (i + 1 == names->n || (*word)[i + 1] != (*word)[i]) {
            names_add(words, s.data, s.len);
            pf_buf_clear(&s);
        }
    }
    free(t);
    pf_buf_fini(&s);
    return pf_buf_check(&words->text, err);
}

/* Each word is of the sentence that its first token is of. */
static void
merge_parts(int *part, const size_t *word, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (i == 0 || word[i] != word[i - 1])
            part[word[i]] = part[i];
}

enum pf_status
sheet_words(struct sheet *s, const struct names *const names[2],
    struct names words[2], struct pf_err *err)
{
    size_t *word[2] = { NULL, NULL }, n[2] = { s->v.T, s->v.S }, bytes;
    size_t maps = s->v.L * s->v.H;
    enum pf_status st = PF_OK;
    float *out;

    for (int i = 0; i < 2 && !st; i++) {
        if (!names[i])
            continue;
        st = find_words(names[i], &word[i], &words[i], err);
        if (!st && s->part[i])
            merge_parts(s->part[i], word[i], n[i]);
        n[i] = words[i].n;
    }
    if (!st)
        st = pf_shape_size((size_t[]){ maps, n[0], n[1] }, 3, PF_F32, NULL,
            &bytes, err);
    if (!st) {
        out = malloc(bytes + 1);
        for (size_t k = 0; out && k < maps; k++)
            if (!pf_words_merge(out + k * n[0] * n[1], s->v.map[k], s->v.T,
                    s->v.S, word[0], n[0], word[1], n[1])) {
                free(out);
                out = NULL;
            }
        if (out) {
            free(s->numbers);
            s->numbers = out;
            s->v.T = n[0];
            s->v.S = n[1];
        } else {
            st = pf_fail_mem(err);
        }
    }
    free(word[0]);
    free(word[1]);
    return st;
}
