#ifndef PF_TOKENIZER_JSON_H
#define PF_TOKENIZER_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <pipeformer/json.h>

#include "tokenizer-private.h"

/*
 * What the readers of a tokenizer.json's sections share (tokenizer-json.c has
 * the file as a whole, -text.c what is done to a text, -model.c tokens and
 * merges, -ids.c what is done with ids).
 */

enum {
    PF_LOAD_STEPS = 32,  /* of a Sequence */
    PF_LOAD_SLOTS = 256, /* of a template */
};

#define PF_METASPACE "\xe2\x96\x81" /* U+2581 */

struct pf_load {
    struct pf_tokenizer *tok;
    struct pf_vocab *names; /* texts of added tokens; "id": index in added */
    bool coded;             /* one of them would be other bytes if decoded */
    bool byte_level, metaspace;   /* what there is before the model */
    char decoders[8];             /* a letter for each */
    size_t n_decoders;
    struct pf_buf text[3], bytes; /* of what is being read */
    struct pf_slot slots[PF_LOAD_SLOTS];
    size_t n_slots;
    struct pf_err *err;
};

/* A member of an object: its text as it stands; data NULL if it is absent. */
struct pf_member {
    const char *name;
    struct pf_span raw;
};

/* The type that an object of a section may have. */
struct pf_form {
    const char *type;
    enum pf_status (*take)(struct pf_load *l, struct pf_span object);
};

static inline bool
is(struct pf_span s, const char *text)
{
    return s.len == strlen(text) && memcmp(s.data, text, s.len) == 0;
}

/* Absent, or null. */
static inline bool
is_none(struct pf_span raw)
{
    return !raw.data || is(raw, "null");
}

static inline struct pf_json
at(struct pf_span raw)
{
    return pf_json_at(raw.data ? raw.data : "", raw.len);
}

/* What was said gets its place in front. */
enum pf_status pf_load_within(struct pf_load *l, const char *place,
    enum pf_status st);

/*
 * The string at the cursor: as it lies there if it has no escapes, else
 * decoded into `buf`, where it stays until the next.  A name has its colon
 * behind it.
 */
enum pf_status pf_load_text(struct pf_load *l, struct pf_json *j,
    struct pf_buf *buf, struct pf_span *s);
enum pf_status pf_load_name(struct pf_load *l, struct pf_json *j,
    struct pf_buf *buf, struct pf_span *s);

/* The name at the cursor is one of n, and for the first time. */
enum pf_status pf_load_known(struct pf_load *l, struct pf_json *j,
    const struct pf_member *m, size_t n, size_t *which);

/* All n members of an object; another one is refused. */
enum pf_status pf_load_members(struct pf_load *l, struct pf_span object,
    struct pf_member *m, size_t n);

/* An object that has nothing but its type. */
enum pf_status pf_load_bare(struct pf_load *l, struct pf_span object);

/*
 * Looks at a member as what it has to be.  An absent one is refused by those
 * that have no default.  A number is in 0 to max; a pattern is a String or a
 * Regex.
 */
enum pf_status pf_load_bool(struct pf_load *l, const struct pf_member *m,
    bool absent, bool *v);
enum pf_status pf_load_string(struct pf_load *l, const struct pf_member *m,
    struct pf_buf *buf, struct pf_span *s);
enum pf_status pf_load_number(struct pf_load *l, const struct pf_member *m,
    int64_t max, int64_t *v);
enum pf_status pf_load_pattern(struct pf_load *l, const struct pf_member *m,
    struct pf_buf *buf, struct pf_span *s, bool *regex);

/* "NAME VALUE is not supported". */
enum pf_status pf_load_refuse(struct pf_load *l, const struct pf_member *m);

/* A copy that lasts as long as the tokenizer takes its place. */
enum pf_status pf_load_keep(struct pf_load *l, struct pf_span *s);

/*
 * A section: nothing, one object, or a Sequence with a list of some.  The
 * forms end with a type of NULL.
 */
enum pf_status pf_load_section(struct pf_load *l, struct pf_span section,
    const char *list, const struct pf_form *forms);

/* The sections, in the order in which they must be read. */
enum pf_status pf_load_normalizer(struct pf_load *l, struct pf_span section);
enum pf_status pf_load_cuts(struct pf_load *l, struct pf_span section);
enum pf_status pf_load_added(struct pf_load *l, struct pf_span section);
enum pf_status pf_load_model(struct pf_load *l, struct pf_json *j);
enum pf_status pf_load_decoder(struct pf_load *l, struct pf_span section);
enum pf_status pf_load_frame(struct pf_load *l, struct pf_span section);

/*
 * Metaspace, of the pre-tokenizer or of the decoder.  Old files have
 * add_prefix_space in place of prepend_scheme.
 */
enum pf_status pf_load_metaspace(struct pf_load *l, struct pf_span object,
    struct pf_cut *cut);

#endif
