#ifndef PF_NORMALIZE_H
#define PF_NORMALIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pipeformer/buf.h>

/*
 * The normalizers of tokenizer.json, as HuggingFace tokenizers 0.22.2 has
 * them: steps that turn one text into another, one after the other.
 *
 * A text may be any bytes.  Those that are no UTF-8 are nothing to a step and
 * stay as they are, each a border to what stands around it; but where
 * BertNormalizer cleans it takes each for a U+FFFD, which it drops.  A text of
 * valid UTF-8 stays valid.
 */
enum pf_norm_kind {
    PF_NORM_NFC,
    PF_NORM_NFD,
    PF_NORM_LOWERCASE,     /* each character by itself: no final sigma */
    PF_NORM_STRIP_ACCENTS, /* drops marks, the spacing ones too */
    PF_NORM_STRIP,         /* white space off the ends, by `left`, `right` */
    PF_NORM_PREPEND,       /* puts `a` before a text that is not empty */
    PF_NORM_REPLACE,       /* `b` for each `a` (not empty), left to right */
    PF_NORM_BERT,          /* by the flags below, in that order */
};

struct pf_norm_step {
    enum pf_norm_kind kind;
    char *a, *b; /* UTF-8; the step's owner frees them */
    size_t a_len, b_len;
    bool left, right;
    bool clean;   /* clean_text */
    bool cjk;     /* handle_chinese_chars */
    bool accents; /* strip_accents; where that is null, `lower` */
    bool lower;   /* lowercase */
};

/*
 * A text while it is normalized, and where its bytes came from.  With `track`,
 * set by the caller, byte i of `bytes` stands for the source's bytes from[i]
 * to to[i] - 1: all of the character, or characters, that its own character
 * was made of.  Neither ever decreases, so marks that were put in another
 * order keep the places of the old one.  Bytes that came from nowhere have
 * from[i] = to[i], the place where they stand.  Reused from text to text.
 */
struct pf_ntext {
    struct pf_buf bytes;
    size_t *from, *to;
    size_t cap; /* of `from` and `to` */
    bool track;

    struct pf_ntext_last { /* what the step before wrote */
        struct pf_buf bytes;
        size_t *from, *to;
        size_t cap;
    } last;
    struct pf_ntext_run { /* characters that are put in order or together */
        uint32_t *chars, *sorted;
        size_t *from, *to;
        size_t n, cap;
    } run;
    size_t *border; /* of the string that is replaced */
    size_t border_cap;
};

#define PF_NTEXT_INIT { .bytes = PF_BUF_INIT }

void pf_ntext_fini(struct pf_ntext *t);

/* The text through all n steps, into t->bytes.  PF_EFORMAT if a string of a
 * step is no UTF-8; else all that can fail is memory. */
enum pf_status pf_normalize(const struct pf_norm_step *steps, size_t n,
    struct pf_ntext *t, const char *text, size_t len, struct pf_err *err);

#endif
