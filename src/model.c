/*
 * GPT-2 (Radford et al. 2019), BERT (Devlin et al. 2018) and DistilBERT (Sanh
 * et al. 2019) from HuggingFace's files.  Every part of a model stands once in
 * its architecture's table: where it goes, what it is called, its shape.
 */
#include <pipeformer/model.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/seqmap.h>

/* What is being opened. */
struct loader {
    struct pf_model *m;
    const char *dir;
    const char *prefix; /* of the names, "" or the architecture's */
    struct pf_err *err;
};

/*
 * What a part is in the file: NAME.weight, and NAME.bias except for tables.
 * A matrix is [out, in] (torch's Linear, embeddings) or [in, out] (Conv1D).
 */
enum part { NORM, LINEAR, CONV1D, TABLE };

/* Widths by letter; of a norm only `in`. */
struct entry {
    size_t offset; /* in struct pf_block or struct pf_model */
    const char *name;
    enum part part;
    char in, out;
};

#define IN_BLOCK(field) offsetof(struct pf_block, field)
#define IN_MODEL(field) offsetof(struct pf_model, field)
#define END { 0, NULL, NORM, 0, 0 }

/* '3' is 3C. */
static const struct entry gpt2_model[] = {
    { IN_MODEL(wte), "wte", TABLE, 'C', 'V' },
    { IN_MODEL(wpe), "wpe", TABLE, 'C', 'P' },
    { IN_MODEL(ln_f), "ln_f", NORM, 'C', 0 },
    END
}, gpt2_block[] = {
    { IN_BLOCK(ln1), "ln_1", NORM, 'C', 0 },
    { IN_BLOCK(qkv[0]), "attn.c_attn", CONV1D, 'C', '3' },
    { IN_BLOCK(proj), "attn.c_proj", CONV1D, 'C', 'C' },
    { IN_BLOCK(ln2), "ln_2", NORM, 'C', 0 },
    { IN_BLOCK(fc), "mlp.c_fc", CONV1D, 'C', 'F' },
    { IN_BLOCK(fc_proj), "mlp.c_proj", CONV1D, 'F', 'C' },
    END
};

static const struct entry bert_model[] = {
    { IN_MODEL(wte), "embeddings.word_embeddings", TABLE, 'C', 'V' },
    { IN_MODEL(wpe), "embeddings.position_embeddings", TABLE, 'C', 'P' },
    { IN_MODEL(wtt), "embeddings.token_type_embeddings", TABLE, 'C', 'S' },
    { IN_MODEL(ln_emb), "embeddings.LayerNorm", NORM, 'C', 0 },
    END
}, bert_block[] = {
    { IN_BLOCK(qkv[0]), "attention.self.query", LINEAR, 'C', 'C' },
    { IN_BLOCK(qkv[1]), "attention.self.key", LINEAR, 'C', 'C' },
    { IN_BLOCK(qkv[2]), "attention.self.value", LINEAR, 'C', 'C' },
    { IN_BLOCK(proj), "attention.output.dense", LINEAR, 'C', 'C' },
    { IN_BLOCK(ln1), "attention.output.LayerNorm", NORM, 'C', 0 },
    { IN_BLOCK(fc), "intermediate.dense", LINEAR, 'C', 'F' },
    { IN_BLOCK(fc_proj), "output.dense", LINEAR, 'F', 'C' },
    { IN_BLOCK(ln2), "output.LayerNorm", NORM, 'C', 0 },
    END
}, bert_head[] = {
    { IN_MODEL(transform), "cls.predictions.transform.dense", LINEAR, 'C',
        'C' },
    { IN_MODEL(ln_f), "cls.predictions.transform.LayerNorm", NORM, 'C', 0 },
    END
}, bert_pooler[] = {
    { IN_MODEL(pooler), "pooler.dense", LINEAR, 'C', 'C' },
    END
};

static const struct entry distilbert_model[] = {
    { IN_MODEL(wte), "embeddings.word_embeddings", TABLE, 'C', 'V' },
    { IN_MODEL(wpe), "embeddings.position_embeddings", TABLE, 'C', 'P' },
    { IN_MODEL(ln_emb), "embeddings.LayerNorm", NORM, 'C', 0 },
    END
}, distilbert_block[] = {
    { IN_BLOCK(qkv[0]), "attention.q_lin", LINEAR, 'C', 'C' },
    { IN_BLOCK(qkv[1]), "attention.k_lin", LINEAR, 'C', 'C' },
    { IN_BLOCK(qkv[2]), "attention.v_lin", LINEAR, 'C', 'C' },
    { IN_BLOCK(proj), "attention.out_lin", LINEAR, 'C', 'C' },
    { IN_BLOCK(ln1), "sa_layer_norm", NORM, 'C', 0 },
    { IN_BLOCK(fc), "ffn.lin1", LINEAR, 'C', 'F' },
    { IN_BLOCK(fc_proj), "ffn.lin2", LINEAR, 'F', 'C' },
    { IN_BLOCK(ln2), "output_layer_norm", NORM, 'C', 0 },
    END
}, distilbert_head[] = {
    { IN_MODEL(transform), "vocab_transform", LINEAR, 'C', 'C' },
    { IN_MODEL(ln_f), "vocab_layer_norm", NORM, 'C', 0 },
    END
};

/*
 * The names of `model`, `pooler` and, behind `layer` and its number, `block`
 * may all have the prefix; those of the head have none.  A head or a pooler
 * is there if its first tensor is; GPT-2's head always is.
 */
static const struct architecture {
    const char *type, *prefix, *layer;
    const struct entry *model, *block, *head, *pooler;
    const char *output;    /* the head's matrix, where it is no table again */
    const char *biases[2]; /* its bias, by either name */
} architectures[] = {
    { "gpt2", "transformer.", "h", gpt2_model, gpt2_block, NULL, NULL,
        "lm_head.weight", { "lm_head.bias", NULL } },
    { "bert", "bert.", "encoder.layer", bert_model, bert_block, bert_head,
        bert_pooler, "cls.predictions.decoder.weight",
        { "cls.predictions.bias", "cls.predictions.decoder.bias" } },
    { "distilbert", "distilbert.", "transformer.layer", distilbert_model,
        distilbert_block, distilbert_head, NULL, "vocab_projector.weight",
        { "vocab_projector.bias", NULL } },
};

static size_t
letter(const struct pf_config *c, char l)
{
    switch (l) {
    case 'C': return c->width;
    case '3': return 3 * c->width;
    case 'F': return c->inner;
    case 'V': return c->vocab;
    case 'P': return c->positions;
    case 'S': return c->segments;
    default: return 0;
    }
}

/*
 * The tensor of that name.  BERT's first files, converted from TensorFlow,
 * call the gain of a LayerNorm gamma and its bias beta.
 */
static const struct pf_tensor *
look_up(const struct loader *l, const char *full)
{
    const struct pf_tensor *t = pf_weights_find(l->m->weights, full);
    const char *norm = strstr(full, "LayerNorm.");
    char legacy[160];

    if (t || !norm)
        return t;
    norm += strlen("LayerNorm.");
    snprintf(legacy, sizeof legacy, "%.*s%s", (int)(norm - full), full,
        strcmp(norm, "weight") == 0 ? "gamma" : "beta");
    return pf_weights_find(l->m->weights, legacy);
}

/* The tensor of that name, of that shape and of a type to compute on. */
static enum pf_status
find(struct loader *l, const char *name, char rows, char columns,
    const struct pf_tensor **t)
{
    const struct pf_config *c = &l->m->config;
    size_t shape[2] = { letter(c, rows), letter(c, columns) };
    unsigned ndim = columns ? 2 : 1;
    char full[160], is[128], want[128];

    snprintf(full, sizeof full, "%s%s", l->prefix, name);
    *t = look_up(l, full);
    if (!*t)
        return pf_fail(l->err, PF_EMODEL, "%s: tensor %s is missing", l->dir,
            full);
    if ((*t)->ndim != ndim
        || memcmp((*t)->shape, shape, ndim * sizeof *shape) != 0)
        return pf_fail(l->err, PF_EMODEL, "%s: tensor %s has the shape %s; "
            "config.json makes it %s", l->dir, full,
            pf_shape_format(is, sizeof is, (*t)->shape, (*t)->ndim),
            pf_shape_format(want, sizeof want, shape, ndim));
    if ((*t)->dtype != PF_F32 && (*t)->dtype != PF_F16
        && (*t)->dtype != PF_BF16)
        return pf_fail(l->err, PF_EMODEL, "%s: tensor %s is of type %s; F32, "
            "F16 and BF16 are supported", l->dir, full,
            pf_dtype_name((*t)->dtype));
    return PF_OK;
}

/* A vector as float32 of our own. */
static enum pf_status
vector(struct loader *l, const char *name, char n, const float **v)
{
    const struct pf_tensor *t;
    enum pf_status st = find(l, name, n, 0, &t);
    float *copy;

    if (st)
        return st;
    copy = pf_arena_alloc(&l->m->mem, t->shape[0] * sizeof *copy);
    if (!copy)
        return pf_fail_mem(l->err);
    pf_to_f32(copy, t->data, t->dtype, t->shape[0]);
    *v = copy;
    return PF_OK;
}

/* A matrix as it lies, or a copy if it lies askew. */
static enum pf_status
matrix(struct loader *l, const char *name, char rows, char columns,
    const void **w, enum pf_dtype *type)
{
    const struct pf_tensor *t;
    enum pf_status st = find(l, name, rows, columns, &t);
    void *copy;

    if (st)
        return st;
    *w = t->data;
    *type = t->dtype;
    if ((uintptr_t)t->data % pf_dtype_size(t->dtype)) {
        copy = pf_arena_alloc(&l->m->mem, pf_tensor_bytes(t));
        if (!copy)
            return pf_fail_mem(l->err);
        *w = memcpy(copy, t->data, pf_tensor_bytes(t));
    }
    return PF_OK;
}

/* One part, into the field of `at` that it belongs to. */
static enum pf_status
part(struct loader *l, const struct entry *e, const char *before, void *at)
{
    const struct pf_config *c = &l->m->config;
    struct pf_linear *lin = (void *)((char *)at + e->offset);
    struct pf_norm *norm = (void *)((char *)at + e->offset);
    char name[128], bias[128];
    enum pf_status st;

    snprintf(name, sizeof name, "%s%s.weight", before, e->name);
    snprintf(bias, sizeof bias, "%s%s.bias", before, e->name);
    if (e->part == NORM) {
        st = vector(l, name, e->in, &norm->gain);
        return st ? st : vector(l, bias, e->in, &norm->bias);
    }
    lin->in = letter(c, e->in);
    lin->out = letter(c, e->out);
    lin->out_in = e->part != CONV1D;
    st = lin->out_in ? matrix(l, name, e->out, e->in, &lin->w, &lin->type)
        : matrix(l, name, e->in, e->out, &lin->w, &lin->type);
    return st || e->part == TABLE ? st : vector(l, bias, e->out, &lin->bias);
}

static enum pf_status
parts(struct loader *l, const struct entry *e, const char *before, void *at)
{
    enum pf_status st = PF_OK;

    for (; !st && e->name; e++)
        st = part(l, e, before, at);
    return st;
}

/* Is the first part of a table there?  A table that is NULL is not. */
static bool
is_there(const struct loader *l, const struct entry *e)
{
    char name[160];

    if (!e)
        return false;
    snprintf(name, sizeof name, "%s%s.weight", l->prefix, e->name);
    return look_up(l, name);
}

/* The head's own layer if it has one, then its matrix, or a table again. */
static enum pf_status
head(struct loader *l, const struct architecture *a)
{
    struct pf_model *m = l->m;
    struct pf_linear *h = &m->head;
    enum pf_status st = PF_OK;

    l->prefix = "";
    if (a->head) {
        if (!is_there(l, a->head))
            return PF_OK;
        st = parts(l, a->head, "", m);
    }
    *h = m->wte;
    if (!st && !m->config.tied)
        st = matrix(l, a->output, 'V', 'C', &h->w, &h->type);
    /* GPT-2 has a bias, if at all, beside a matrix of its own. */
    if (st || (m->config.tied && !a->head))
        return st;
    for (size_t i = 0; i < 2 && a->biases[i]; i++)
        if (pf_weights_find(m->weights, a->biases[i]))
            return vector(l, a->biases[i], 'V', &h->bias);
    return a->head ? vector(l, a->biases[0], 'V', &h->bias) : PF_OK;
}

/* All tensors, by the tables of the architecture. */
static enum pf_status
tensors(struct loader *l)
{
    const struct architecture *a = architectures;
    struct pf_model *m = l->m;
    enum pf_status st;
    char before[48];

    while (strcmp(a->type, m->config.type) != 0)
        a++;
    if (!is_there(l, a->model))
        l->prefix = a->prefix;
    st = parts(l, a->model, "", m);
    for (size_t i = 0; !st && i < m->config.layers; i++) {
        snprintf(before, sizeof before, "%s.%zu.", a->layer, i);
        st = parts(l, a->block, before, &m->blocks[i]);
    }
    if (!st && is_there(l, a->pooler))
        st = parts(l, a->pooler, "", m);
    return st ? st : head(l, a);
}

/*
 * What tells this model from others: what the numbers depend on in its
 * configuration, the names, shapes and types of its tensors, and some bytes
 * from the middle of each.  Reading all
 * of a large model would take longer than running it.
 */
static void
fingerprint(struct pf_model *m)
{
    uint64_t h = PF_HASH_INIT;
    const struct pf_tensor *t;
    size_t bytes, some;

    h = pf_hash(h, &m->config.layers, sizeof m->config.layers);
    h = pf_hash(h, &m->config.heads, sizeof m->config.heads);
    h = pf_hash(h, &m->config.eps, sizeof m->config.eps);
    h = pf_hash(h, &m->config.act, sizeof m->config.act);
    h = pf_hash(h, &m->config.scale_attn, sizeof m->config.scale_attn);
    h = pf_hash(h, &m->config.tied, sizeof m->config.tied);
    h = pf_hash(h, &m->config.scale_by_layer, sizeof m->config.scale_by_layer);
    for (size_t i = 0; (t = pf_weights_at(m->weights, i)); i++) {
        bytes = pf_tensor_bytes(t);
        some = bytes < 64 ? bytes : 64;
        h = pf_hash(h, t->name, strlen(t->name) + 1);
        h = pf_hash(h, &t->dtype, sizeof t->dtype);
        h = pf_hash(h, t->shape, t->ndim * sizeof *t->shape);
        h = pf_hash(h, (const char *)t->data + (bytes - some) / 2, some);
    }
    snprintf(m->fingerprint, sizeof m->fingerprint, "%016llx",
        (unsigned long long)h);
}

enum pf_status
pf_model_open(struct pf_model **out, const char *dir, struct pf_err *err)
{
    struct pf_model *m = calloc(1, sizeof *m);
    struct loader l = { .m = m, .dir = dir, .prefix = "", .err = err };
    enum pf_status st;

    *out = NULL;
    if (!m)
        return pf_fail_mem(err);
    st = pf_config_open(&m->config, dir, err);
    if (!st)
        st = pf_weights_open(&m->weights, dir, err);
    if (!st) {
        m->blocks = calloc(m->config.layers, sizeof *m->blocks);
        st = m->blocks ? PF_OK : pf_fail_mem(err);
    }
    if (!st)
        st = tensors(&l);
    if (st) {
        pf_model_free(m);
        return st;
    }
    fingerprint(m);
    *out = m;
    return PF_OK;
}

void
pf_model_free(struct pf_model *m)
{
    if (!m)
        return;
    pf_weights_free(m->weights);
    free(m->blocks);
    pf_arena_fini(&m->mem);
    free(m);
}
