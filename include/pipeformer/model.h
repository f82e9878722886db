#ifndef PIPEFORMER_MODEL_H
#define PIPEFORMER_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pipeformer/buf.h>
#include <pipeformer/err.h>
#include <pipeformer/tensor.h>
#include <pipeformer/weights.h>

/*
 * A model: what its config.json says, and its weights, found by name and
 * checked against that.  Shape letters: C width, H heads, D head width, L
 * layers, V vocabulary, F width of the MLP.
 */

enum pf_act { PF_GELU, PF_GELU_TANH, PF_RELU, PF_SILU, PF_QUICK_GELU };

/* config.json; sizes are positive. */
struct pf_config {
    const char *type; /* "gpt2", "bert", "distilbert" */
    bool encoder;     /* BERT's blocks: each row attends to all others, and
                         norms come after adding */
    size_t vocab;     /* V */
    size_t positions; /* the window: n_positions */
    size_t segments;  /* BERT's token types; 0: none */
    size_t width;     /* C */
    size_t layers;    /* L */
    size_t heads;     /* H */
    size_t head_dim;  /* D = C / H */
    size_t inner;     /* F */
    float eps;        /* layer_norm_epsilon */
    enum pf_act act;
    const char *act_name; /* as config.json has it */
    bool tied;            /* the head is the token embedding */
    bool scale_attn;      /* scores are divided by sqrt(D) */
    bool scale_by_layer;  /* and by layer + 1 */
    uint32_t eos[8];      /* ids that end a text */
    size_t n_eos;
};

/* A weight matrix as it lies in its file, and its bias as float32 or NULL. */
struct pf_linear {
    const void *w; /* F32, F16 or BF16, aligned to its size */
    enum pf_dtype type;
    bool out_in; /* [out, in], torch's Linear; else [in, out], Conv1D */
    size_t in, out;
    const float *bias;
};

struct pf_norm {
    const float *gain, *bias;
};

/*
 * One block.  GPT-2: x += attn(ln1(x)); x += mlp(ln2(x)).  BERT: x = ln1(x +
 * attn(x)); x = ln2(x + mlp(x)).
 */
struct pf_block {
    struct pf_norm ln1;
    /* Query, key and value stand side by side in a row: what one matrix gives
     * (C -> 3C) or what three give.  A part with w NULL is none. */
    struct pf_linear qkv[3];
    struct pf_linear proj; /* C -> C */
    struct pf_norm ln2;
    struct pf_linear fc;      /* C -> F */
    struct pf_linear fc_proj; /* F -> C */
};

struct pf_model {
    struct pf_config config;
    struct pf_weights *weights;
    /* Embeddings, one row each of C: of tokens, positions and, with w NULL
     * where there are none, token types; then a norm (BERT), or gain NULL. */
    struct pf_linear wte, wpe, wtt;
    struct pf_norm ln_emb;
    struct pf_block *blocks; /* L of them */
    /* The head: ln_f, then `head`, C -> V.  BERT's, for masked words, has
     * `transform`, C -> C, and the activation in front.  head.w is NULL where
     * the files hold none. */
    struct pf_linear transform;
    struct pf_norm ln_f;
    struct pf_linear head;
    struct pf_linear pooler; /* BERT's, C -> C; w NULL: none */
    char fingerprint[17];    /* the field `model` */
    struct pf_arena mem;
};

/*
 * Where a model is: the directory that `name` stands for, appended to `dir`
 * with a NUL.  In this order: a directory; a name under the vocab/ that
 * belongs to this build; org/name in the local HuggingFace hub cache.
 */
enum pf_status pf_model_find(struct pf_buf *dir, const char *name,
    struct pf_err *err);

/*
 * A file of the vocab/ that belongs to this build: the path of `name` with
 * `end` behind it, with a NUL.  PF_EMODEL if it is not there.
 */
enum pf_status pf_vocab_file(struct pf_buf *path, const char *name,
    const char *end, struct pf_err *err);

/* Only config.json of a model directory. */
enum pf_status pf_config_open(struct pf_config *config, const char *dir,
    struct pf_err *err);

/*
 * Opens a model directory.  An architecture that is not supported, a tensor
 * that is missing or of another shape is named.  Matrices stay in the mapped
 * files; vectors are widened to float32.
 */
enum pf_status pf_model_open(struct pf_model **model, const char *dir,
    struct pf_err *err);
void pf_model_free(struct pf_model *model);

#endif
