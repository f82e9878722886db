/*
 * Pre-tokenization with PCRE2.  The pattern is that of GPT-2's encoder.py,
 *
 *     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+
 *     |\s+(?!\S)|\s+
 *
 * with the classes written out as ranges (pretok-ranges.h), since \p{L} means
 * what the Unicode tables of the library at hand mean: PCRE2 10.42 lacks 9272
 * letters that the reference tokenizers know.  Where a quantifier can not give
 * anything back it is possessive, which changes no match and saves the
 * bookkeeping of backtracking.
 *
 * Compiling takes about 0.2 ms and making machine code 0.3 ms.  That code runs
 * on the C stack until a match needs more than the 32 kB PCRE2 allows there;
 * then a stack of its own is made, and if even that is too small the match is
 * interpreted, on the heap.  GPT-2's pattern never needs either.
 */
#include "pretok.h"

#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "pretok-ranges.h"

#define L PF_RANGES_LETTER
#define N PF_RANGES_NUMBER
#define S PF_RANGES_SPACE

enum { JIT_STACK_MIN = 64 << 10, JIT_STACK_MAX = 64 << 20 };

struct pf_pretok {
    pcre2_code *code;
    bool jit;
};

struct pf_splitter {
    const struct pf_pretok *pre;
    pcre2_match_data *match;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
    const char *text;
    size_t len, pos;
    size_t from, to; /* a match that was found beyond a gap, from < to */
};

const char *
pf_pretok_gpt2(void)
{
    return "'(?:[stmd]|re|ve|ll)"
        "| ?[" L "]++"
        "| ?[" N "]++"
        "| ?[^" S L N "]++"
        "|[" S "]+(?![^" S "])"
        "|[" S "]++";
}

enum pf_status
pf_pretok_new(struct pf_pretok **out, const char *pattern, bool jit,
    struct pf_err *err)
{
    struct pf_pretok *pre = calloc(1, sizeof *pre);
    PCRE2_UCHAR msg[128];
    PCRE2_SIZE at;
    int code;

    *out = NULL;
    if (!pre)
        return pf_fail_mem(err);
    pre->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
        PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &code, &at, NULL);
    if (!pre->code) {
        pf_pretok_free(pre);
        if (code == PCRE2_ERROR_HEAP_FAILED)
            return pf_fail_mem(err);
        pcre2_get_error_message(code, msg, sizeof msg);
        return pf_fail(err, PF_EFORMAT, "the pattern of the pieces does not "
            "compile: %s at byte %zu", (char *)msg, (size_t)at);
    }
    pre->jit = jit && pcre2_jit_compile(pre->code, PCRE2_JIT_COMPLETE) == 0;
    *out = pre;
    return PF_OK;
}

void
pf_pretok_free(struct pf_pretok *pre)
{
    if (pre) {
        pcre2_code_free(pre->code);
        free(pre);
    }
}

enum pf_status
pf_splitter_new(struct pf_splitter **out, const struct pf_pretok *pre,
    struct pf_err *err)
{
    struct pf_splitter *s = calloc(1, sizeof *s);

    *out = NULL;
    if (!s)
        return pf_fail_mem(err);
    s->pre = pre;
    s->match = pcre2_match_data_create(1, NULL);
    s->context = pcre2_match_context_create(NULL);
    if (!s->match || !s->context) {
        pf_splitter_free(s);
        return pf_fail_mem(err);
    }
    *out = s;
    return PF_OK;
}

void
pf_splitter_free(struct pf_splitter *s)
{
    if (s) {
        pcre2_match_data_free(s->match);
        pcre2_match_context_free(s->context);
        pcre2_jit_stack_free(s->stack);
        free(s);
    }
}

void
pf_splitter_begin(struct pf_splitter *s, const char *text, size_t len)
{
    s->text = text;
    s->len = len;
    s->pos = s->from = s->to = 0;
}

/* The text is known to be UTF-8 and a piece is never empty. */
#define MATCH_OPTIONS (PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY)

static int
match(struct pf_splitter *s)
{
    PCRE2_SPTR text = (PCRE2_SPTR)s->text;
    int rc;

    if (s->pre->jit) {
        rc = pcre2_jit_match(s->pre->code, text, s->len, s->pos,
            PCRE2_NOTEMPTY, s->match, s->context);
        if (rc != PCRE2_ERROR_JIT_STACKLIMIT)
            return rc;
        if (!s->stack) {
            s->stack = pcre2_jit_stack_create(JIT_STACK_MIN, JIT_STACK_MAX,
                NULL);
            pcre2_jit_stack_assign(s->context, NULL, s->stack);
            if (s->stack)
                return match(s);
        }
    }
    return pcre2_match(s->pre->code, text, s->len, s->pos,
        MATCH_OPTIONS | PCRE2_NO_JIT, s->match, s->context);
}

enum pf_status
pf_splitter_next(struct pf_splitter *s, const char **piece, size_t *len,
    struct pf_err *err)
{
    PCRE2_UCHAR msg[128];
    const PCRE2_SIZE *at;
    size_t end;
    int rc;

    if (s->pos == s->len)
        return PF_END;
    if (s->from < s->to) {
        end = s->to;
        s->from = s->to;
    } else {
        rc = match(s);
        if (rc < 0 && rc != PCRE2_ERROR_NOMATCH) {
            if (rc == PCRE2_ERROR_NOMEMORY)
                return pf_fail_mem(err);
            pcre2_get_error_message(rc, msg, sizeof msg);
            return pf_fail(err, PF_ERANGE, "the text cannot be cut into "
                "pieces: %s", (char *)msg);
        }
        at = pcre2_get_ovector_pointer(s->match);
        if (rc == PCRE2_ERROR_NOMATCH) {
            end = s->len;
        } else if (at[0] > s->pos) {
            end = s->from = at[0];
            s->to = at[1];
        } else {
            end = at[1];
        }
    }
    *piece = s->text + s->pos;
    *len = end - s->pos;
    s->pos = end;
    return PF_OK;
}
