/*
 * Pre-tokenization: the scanners where they know the pattern, PCRE2 else.
 *
 * PCRE2 gets the pattern with its classes written out as ranges (pattern.h),
 * since \p{L} means what the Unicode tables of the library at hand mean: 10.42
 * lacks 9272 letters that the reference tokenizers know.  Compiling that takes
 * a millisecond.  The machine code runs on the C stack until a match needs
 * more than the 32 kB PCRE2 allows there; then a stack of its own is made, and
 * if even that is too small the match is interpreted, on the heap.
 *
 * A pattern may be a stranger's.  One that tries too many ways to match ends
 * in PCRE2's match limit: a constant, and some more for every byte of the
 * text, so that a run of any length can be gone through a few times.
 *
 * A text that goes on is matched with PCRE2_PARTIAL_HARD: a match that needs
 * to know what is behind the text is none.  What lies between matches is
 * certain once the match behind it is.
 */
#include "pretok.h"

#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "pattern.h"

enum {
    JIT_STACK_MIN = 64 << 10,
    JIT_STACK_MAX = 64 << 20,
    HEAP_MAX_KIB = 256 << 10,
    MATCH_LIMIT = 10 * 1000 * 1000,
    MATCH_LIMIT_PER_BYTE = 8,
};

struct pf_pretok {
    enum pf_scan scan;
    pcre2_code *code; /* if scan is PF_SCAN_NONE */
    bool jit, local;
};

struct pf_splitter {
    const struct pf_pretok *pre;
    pcre2_match_data *match;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
    const char *text;
    size_t len, pos;
    size_t to; /* > pos: the end of a match that begins at pos */
    bool last;
};

const char *
pf_pretok_named(const char *name)
{
    return pf_pattern_named(name);
}

enum pf_scan
pf_pretok_scan(const struct pf_pretok *pre)
{
    return pre->scan;
}

bool
pf_pretok_is_local(const struct pf_pretok *pre)
{
    return pre->scan != PF_SCAN_NONE || pre->local;
}

static enum pf_status
compile(struct pf_pretok *pre, const char *pattern, unsigned flags,
    struct pf_err *err)
{
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    PCRE2_UCHAR msg[128];
    PCRE2_SIZE at;
    uint32_t options = PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C
        | PCRE2_DOLLAR_ENDONLY;
    uint32_t empty, behind;
    int code;

    if (flags & PF_PRETOK_LAX)
        options |= PCRE2_UCP;
    if (!context)
        return pf_fail_mem(err);
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pre->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
        options, &code, &at, context);
    pcre2_compile_context_free(context);
    if (!pre->code) {
        if (code == PCRE2_ERROR_HEAP_FAILED)
            return pf_fail_mem(err);
        pcre2_get_error_message(code, msg, sizeof msg);
        return pf_fail(err, PF_EFORMAT, "the pattern of the pieces does not "
            "compile: %s", (char *)msg);
    }
    if (!(flags & PF_PRETOK_LAX)
        && pcre2_pattern_info(pre->code, PCRE2_INFO_MATCHEMPTY, &empty) == 0
        && empty)
        return pf_fail(err, PF_EMODEL, "the pattern of the pieces can match "
            "no character at all");
    pre->local = pcre2_pattern_info(pre->code, PCRE2_INFO_MAXLOOKBEHIND,
        &behind) == 0 && behind == 0;
    pre->jit = !(flags & PF_PRETOK_NO_JIT) && pcre2_jit_compile(pre->code,
        PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD) == 0;
    return PF_OK;
}

enum pf_status
pf_pretok_new(struct pf_pretok **out, const char *pattern, unsigned flags,
    struct pf_err *err)
{
    struct pf_pretok *pre = calloc(1, sizeof *pre);
    struct pf_buf translated = PF_BUF_INIT;
    enum pf_status st = PF_OK;
    bool exact;

    *out = NULL;
    if (!pre)
        return pf_fail_mem(err);
    if (!(flags & (PF_PRETOK_PCRE2 | PF_PRETOK_NO_JIT))) {
        pre->scan = pf_pattern_known(pattern, &exact);
        if (!exact && !(flags & PF_PRETOK_TIKTOKEN))
            pre->scan = PF_SCAN_NONE;
    }
    if (pre->scan == PF_SCAN_NONE) {
        st = pf_pattern_translate(&translated, pattern,
            !(flags & PF_PRETOK_LAX), err);
        if (!st)
            st = compile(pre, translated.data, flags, err);
        /* What is lax may ask where the text begins. */
        pf_buf_clear(&translated);
        if (!st && (flags & PF_PRETOK_LAX)
            && pf_pattern_translate(&translated, pattern, true, NULL))
            pre->local = false;
        pf_buf_fini(&translated);
    }
    if (st)
        pf_pretok_free(pre);
    else
        *out = pre;
    return st;
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
    if (pre->code) {
        s->match = pcre2_match_data_create(1, NULL);
        s->context = pcre2_match_context_create(NULL);
        if (!s->match || !s->context) {
            pf_splitter_free(s);
            return pf_fail_mem(err);
        }
        pcre2_set_heap_limit(s->context, HEAP_MAX_KIB);
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
pf_splitter_begin(struct pf_splitter *s, const char *text, size_t len,
    bool last)
{
    s->text = text;
    s->len = len;
    s->pos = s->to = 0;
    s->last = last;
    if (s->context)
        pcre2_set_match_limit(s->context,
            len < (UINT32_MAX - MATCH_LIMIT) / MATCH_LIMIT_PER_BYTE
                ? (uint32_t)(MATCH_LIMIT + len * MATCH_LIMIT_PER_BYTE)
                : UINT32_MAX);
}

static int
match(struct pf_splitter *s)
{
    PCRE2_SPTR text = (PCRE2_SPTR)s->text;
    uint32_t options = PCRE2_NOTEMPTY | (s->last ? 0 : PCRE2_PARTIAL_HARD);
    int rc;

    if (s->pre->jit) {
        rc = pcre2_jit_match(s->pre->code, text, s->len, s->pos, options,
            s->match, s->context);
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
        options | PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, s->match, s->context);
}

/* One piece, *end where it ends: pos if there is none. */
static enum pf_status
cut_one(struct pf_splitter *s, size_t *end, struct pf_err *err)
{
    PCRE2_UCHAR msg[128];
    const PCRE2_SIZE *at;
    int rc;

    *end = s->pos < s->to ? s->to : s->pos;
    if (s->pos < s->to || s->pos == s->len)
        return PF_OK;
    rc = match(s);
    if (rc == PCRE2_ERROR_NOMATCH || rc == PCRE2_ERROR_PARTIAL) {
        if (s->last)
            *end = s->len;
        return PF_OK;
    }
    if (rc == PCRE2_ERROR_NOMEMORY)
        return pf_fail_mem(err);
    if (rc < 0) {
        pcre2_get_error_message(rc, msg, sizeof msg);
        return pf_fail(err, PF_ERANGE, "the text cannot be cut into pieces: "
            "%s", (char *)msg);
    }
    at = pcre2_get_ovector_pointer(s->match);
    if (at[0] < s->pos || at[1] <= at[0])
        return pf_fail(err, PF_ERANGE, "the text cannot be cut into pieces: "
            "a match begins behind its end or before the last one");
    s->to = at[1];
    *end = at[0] > s->pos ? at[0] : at[1];
    return PF_OK;
}

enum pf_status
pf_splitter_cut(struct pf_splitter *s, size_t *ends, size_t max, size_t *n,
    struct pf_err *err)
{
    enum pf_status st;
    size_t end;

    *n = 0;
    if (s->pre->scan) {
        *n = pf_scan(s->pre->scan, s->text + s->pos, s->len - s->pos, s->last,
            ends, max);
        for (size_t i = 0; i < *n; i++)
            ends[i] += s->pos;
        if (*n)
            s->pos = ends[*n - 1];
        return PF_OK;
    }
    while (*n < max) {
        if ((st = cut_one(s, &end, err)))
            return st;
        if (end == s->pos)
            break;
        ends[(*n)++] = s->pos = end;
    }
    return PF_OK;
}

enum pf_status
pf_splitter_next(struct pf_splitter *s, const char **piece, size_t *len,
    struct pf_err *err)
{
    size_t from = s->pos, end, n;
    enum pf_status st = pf_splitter_cut(s, &end, 1, &n, err);

    if (st)
        return st;
    if (n == 0)
        return PF_END;
    *piece = s->text + from;
    *len = end - from;
    return PF_OK;
}
