#ifndef PF_ADDED_H
#define PF_ADDED_H

#include <stdbool.h>
#include <stddef.h>

#include <pipeformer/buf.h>

#include "tokenizer-private.h"

/*
 * Added tokens, looked for in a text: of those that are active, the ones that
 * are looked for in the text as it stands, or the ones looked for in normalized
 * text, in whose form they are then.
 */
struct pf_finder {
    struct pf_finder_token *tokens; /* sorted by text */
    size_t n;
    struct pf_arena mem; /* of normalized texts */
    bool first[256];     /* the bytes that one begins with */
    size_t *lens, n_lens; /* each once, longest first */
};

/* Makes it anew; `active` has an entry for each of the tokenizer's. */
enum pf_status pf_finder_make(struct pf_finder *f,
    const struct pf_tokenizer *tok, const bool *active, bool normal,
    struct pf_err *err);
void pf_finder_fini(struct pf_finder *f);

/* Where in a text one is with it: what has been taken, and looked through. */
struct pf_place {
    size_t taken, seen;
    size_t from, to; /* of the token that was found */
};

/*
 * The next token that is looked for, the longest of its place, or NULL; it
 * takes text[from] to text[to - 1], white space that goes with it included.
 * Another one may stand in that white space, and then takes nothing.
 */
const struct pf_added *pf_finder_next(const struct pf_finder *f,
    const char *text, size_t len, struct pf_place *at);

#endif
