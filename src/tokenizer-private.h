#ifndef PF_TOKENIZER_PRIVATE_H
#define PF_TOKENIZER_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pipeformer/buf.h>
#include <pipeformer/tokenizer.h>

#include "bpe.h"
#include "normalize.h"
#include "pretok.h"
#include "vocab.h"
#include "wordpiece.h"

/*
 * What a tokenizer is made of, in the order in which a text passes through
 * it.  A loader fills this in (tokenizer-gpt2.c, tokenizer-json.c,
 * tokenizer-rank.c, tokenizer-bert.c), encoder.c and decoder.c work by it.
 * All memory that is not in an object of its own is in `mem`.
 */

/*
 * A token that is cut out of the text before anything else is done to it: a
 * special one if the run asks for it, another always.  `normalized` ones are
 * looked for in the normalized text.  Around a token with lstrip, rstrip the
 * white space goes with it; one with single_word stands only between what are
 * no word characters.
 */
struct pf_added {
    struct pf_span text;
    uint32_t id;
    bool special, normalized, lstrip, rstrip, single_word;
};

/* How a normalized part becomes pieces: one cut after the other. */
enum pf_cut_kind {
    PF_CUT_PATTERN,    /* matches, and what is between them */
    PF_CUT_BERT,       /* words; white space goes, punctuation is a word */
    PF_CUT_METASPACE,  /* ' ' becomes U+2581, and one comes in front; with
                          `split`, each begins a piece */
};

struct pf_cut {
    enum pf_cut_kind kind;
    struct pf_pretok *pretok; /* of a pattern */
    bool split;               /* of metaspace */
    bool add_space;           /* a space, U+2581, in front of a part without */
    bool first_only;          /* only in front of the first part of a text */
};

/* How pieces become ids. */
enum pf_model_kind {
    PF_MODEL_BYTES, /* BPE, symbols are bytes (Radford et al. 2019) */
    PF_MODEL_CHARS, /* BPE, symbols are characters, or else the <0x0A> of
                       their bytes where those are tokens, or else unknown */
    PF_MODEL_WORDS, /* WordPiece (Schuster and Nakajima 2012) */
};

/* How ids become text. */
enum pf_decode_kind {
    PF_DECODE_BYTES,     /* tokens are bytes */
    PF_DECODE_METASPACE, /* U+2581 is a space, <0x0A> a byte; the first space
                            of a text goes */
    PF_DECODE_WORDS,     /* a space between words, none before ## */
};

struct pf_tokenizer {
    struct pf_arena mem;
    struct pf_vocab *vocab;

    struct pf_added *added; /* in order of id, then of text */
    size_t n_added, added_cap;
    struct pf_norm_step *steps;
    size_t n_steps;
    struct pf_cut *cuts;
    size_t n_cuts;

    enum pf_model_kind model;
    struct pf_bpe *bpe;   /* of a BPE */
    uint32_t byte[256];   /* the symbol of a byte, or PF_BPE_NONE */
    bool all_bytes;       /* every byte has one */
    uint32_t unk;         /* what stands for the unknown, or PF_BPE_NONE */
    bool fuse_unk;        /* one for a run of them */
    bool byte_fallback;   /* of characters: their bytes may be tokens */
    bool whole;           /* a piece that is a token is that token, before or
                             instead of any merge */
    struct pf_wordpiece *wordpiece;
    struct pf_span prefix; /* of WordPiece: what tokens within a word have */

    /* What goes around a text, and around two: ids, or one of the texts. */
    struct pf_slot *single, *pair;
    size_t n_single, n_pair;

    enum pf_decode_kind decode;
    bool clean_up;        /* of words: no space before punctuation */
    bool strip_first;     /* of metaspace: the first space goes */
    bool strip_token;     /* of metaspace: all U+2581 of the first token go */

    struct pf_mapping *mapping; /* of prepared tables, or NULL */
};

#define PF_TOKENIZER_FILE_MAX ((size_t)256 << 20)

/* An empty one, for a loader; NULL: no memory. */
struct pf_tokenizer *pf_tokenizer_new(void);

/* A copy in `mem`; data NULL: no memory. */
struct pf_span pf_tokenizer_keep(struct pf_tokenizer *tok, const char *bytes,
    size_t len);

/* st, and where it is a failure, the file's name in front of the message. */
enum pf_status pf_in_file(const char *where, const char *name,
    enum pf_status st, struct pf_err *err);

/* Adds a token, with a copy of its text in `mem`. */
enum pf_status pf_tokenizer_add(struct pf_tokenizer *tok,
    const struct pf_added *added, struct pf_err *err);

/* One cut, by that pattern with those flags (see pf_pretok_new). */
enum pf_status pf_tokenizer_set_pattern(struct pf_tokenizer *tok,
    const char *pattern, unsigned flags, struct pf_err *err);

/*
 * The loader is through: sorts the added tokens, gives bytes their symbols,
 * finishes the tables of the merges.  Where no template was made, a text
 * stands by itself.
 */
enum pf_status pf_tokenizer_finish(struct pf_tokenizer *tok,
    struct pf_err *err);

/*
 * The files of a tokenizer, in memory; data NULL for one that is not there.
 * `where` is what stands before their names in a message ("models/x/").
 */
struct pf_tokenizer_files {
    const char *where;
    struct pf_span vocab, merges, config, special;
};

/* vocab.json and merges.txt, with tokenizer_config.json if it is there. */
enum pf_status pf_tokenizer_gpt2(struct pf_tokenizer **tok,
    const struct pf_tokenizer_files *files, struct pf_err *err);

/*
 * A .tiktoken file, in memory: lines of a token in base64 and its rank, which
 * is its id; to be finished when special tokens have been added.
 */
enum pf_status pf_tokenizer_ranks(struct pf_tokenizer **tok, const char *text,
    size_t len, const char *pattern, unsigned flags, struct pf_err *err);

/* Adds special tokens from a JSON object from token to id. */
enum pf_status pf_tokenizer_add_special(struct pf_tokenizer *tok,
    const char *json, size_t len, struct pf_err *err);

/* The vocabulary and the merges of a .tiktoken file. */
enum pf_status pf_ranks_read(const char *text, size_t len,
    struct pf_vocab **v, struct pf_bpe **b, struct pf_err *err);

/*
 * A tokenizer.json of HuggingFace tokenizers (0.22), in memory: BPE of bytes
 * (ByteLevel) or of characters, or WordPiece.  What it asks for and is not
 * done here is refused with its name, PF_EMODEL; what is broken is PF_EFORMAT
 * or PF_ERANGE.  Its truncation and padding are passed over: they belong to a
 * run (tok-encode --max), not to what a token is.
 */
enum pf_status pf_tokenizer_json(struct pf_tokenizer **tok, const char *json,
    size_t len, struct pf_err *err);

/* A vocab.txt: WordPiece as BERT has it, with lower case or not. */
enum pf_status pf_tokenizer_bert(struct pf_tokenizer **tok, const char *text,
    size_t len, bool lower, struct pf_err *err);

#endif
