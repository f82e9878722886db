/* Words out of tokens, by what the tokens look like. */
#include <pipeformer/words.h>

#include <stdlib.h>
#include <string.h>

static bool
is_space(const char *s, size_t len)
{
    return len && strchr(" \n\r\t", s[0]) && s[0];
}

static bool
begins_spaced(const struct pf_word_token *t)
{
    return is_space(t->text, t->len)
        || (t->len >= 3 && memcmp(t->text, "\u2581", 3) == 0);
}

static bool
ends_spaced(const struct pf_word_token *t)
{
    return t->len && is_space(t->text + t->len - 1, 1);
}

/* <...> without spaces but <0x0A>, which is a byte; [...] in capitals. */
static bool
looks_special(const struct pf_word_token *t)
{
    const char *s = t->text;

    if (t->len < 3)
        return false;
    if (s[0] == '<' && s[t->len - 1] == '>')
        return !memchr(s, ' ', t->len)
            && !(t->len == 6 && memcmp(s, "<0x", 3) == 0);
    if (s[0] != '[' || s[t->len - 1] != ']')
        return false;
    for (size_t i = 1; i + 1 < t->len; i++)
        if (!((s[i] >= 'A' && s[i] <= 'Z') || (s[i] >= '0' && s[i] <= '9')
                || s[i] == '_'))
            return false;
    return true;
}

size_t
pf_words(const struct pf_word_token *token, size_t n, size_t *word)
{
    bool spaced = false, alone, before = true;
    size_t words = 0;

    for (size_t i = 0; i < n; i++)
        spaced |= begins_spaced(&token[i]);
    for (size_t i = 0; i < n; i++) {
        const struct pf_word_token *t = &token[i];

        alone = looks_special(t);
        if (before || alone || (spaced ? begins_spaced(t)
                || ends_spaced(&token[i - 1])
                : t->len < 2 || memcmp(t->text, "##", 2) != 0))
            words++;
        word[i] = words - 1;
        before = alone;
    }
    return words;
}

bool
pf_words_merge(float *out, const float *map, size_t T, size_t S,
    const size_t *row, size_t n_rows, const size_t *column, size_t n_columns)
{
    double *sum = malloc((n_columns + 1) * sizeof *sum);
    size_t t = 0;

    for (size_t r = 0; sum && r < n_rows; r++) {
        size_t first = t;

        for (size_t c = 0; c < n_columns; c++)
            sum[c] = 0;
        do {
            for (size_t s = 0; s < S; s++)
                sum[column ? column[s] : s] += (double)map[t * S + s];
            t++;
        } while (t < T && row && row[t] == r);
        for (size_t c = 0; c < n_columns; c++)
            out[r * n_columns + c] = (float)(sum[c] / (double)(t - first));
    }
    free(sum);
    return sum != NULL;
}
