#ifndef ENCODING_H
#define ENCODING_H

#include <stdbool.h>

/*
 * Which tokenizer tok-encode and tok-decode use: the model's, or with -e an
 * encoding by its name, or the one of a file.
 */
struct encoding {
    const char *name, *pattern, *special;
};

enum { ENCODING_PATTERN = 900, ENCODING_SPECIAL };

#define ENCODING_OPTIONS \
    { "encoding", 'e', "NAME|FILE", "an encoding by name, or a tokenizer\n" \
        "file (list: the names)" }, \
    { "pattern", ENCODING_PATTERN, "P", "what cuts text for a .tiktoken " \
        "file: gpt2, cl100k,\nqwen2, o200k or a regular expression" }, \
    { "special-tokens", ENCODING_SPECIAL, "FILE", "its special tokens, JSON " \
        "from token to id" }

/* Takes an option of those; false if it is none. */
bool encoding_option(struct encoding *e, int key, const char *arg);

/*
 * Opens it, or ends the command; `-e list` prints the list and ends it.  To
 * encode, a .tiktoken file needs its pattern.
 */
struct pf_tokenizer;
struct pf_tokenizer *encoding_open(const struct encoding *e, bool encodes);

#endif
