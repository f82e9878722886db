#ifndef PF_TRAIN_WORDS_H
#define PF_TRAIN_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include <pipeformer/err.h>

/* Byte strings, each once, and how often each was added. */
struct pf_word {
    const char *bytes;
    uint64_t count; /* at most INT64_MAX */
    uint32_t len, hash;
};

struct pf_words {
    struct pf_word *items; /* in the order of their first coming */
    size_t n, cap;
    struct pf_words_slot *slots;
    size_t mask;
    struct pf_words_block *blocks; /* what the bytes are in */
    size_t left;                   /* free bytes at the end of the first */
};

#define PF_WORDS_INIT { NULL, 0, 0, NULL, 0, NULL, 0 }

void pf_words_fini(struct pf_words *w);

/* `count` more of these bytes, which are copied. */
enum pf_status pf_words_add(struct pf_words *w, const char *bytes, size_t len,
    uint64_t count, struct pf_err *err);

/* All of `from` is added to `w`; `from` is empty afterwards. */
enum pf_status pf_words_join(struct pf_words *w, struct pf_words *from,
    struct pf_err *err);

#endif
