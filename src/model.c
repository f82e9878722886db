/*
 * GPT-2 (Radford et al. 2019) from HuggingFace's files.  Every tensor of a
 * block stands once in a table: where it goes, what it is called, its shape.
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
    const char *prefix; /* "" or "transformer." */
    struct pf_err *err;
};

enum part { VECTOR, MATRIX, BIAS };

/* Widths by letter; a matrix is [rows, columns] as the file has it. */
struct entry {
    size_t offset; /* in struct pf_block */
    const char *name;
    enum part part;
    char rows, columns;
};

#define AT(field) offsetof(struct pf_block, field)

/* Conv1D matrices are [in, out].  '3' is 3C. */
static const struct entry block_entries[] = {
    { AT(ln1.gain), "ln_1.weight", VECTOR, 'C', 0 },
    { AT(ln1.bias), "ln_1.bias", VECTOR, 'C', 0 },
    { AT(qkv), "attn.c_attn.weight", MATRIX, 'C', '3' },
    { AT(qkv), "attn.c_attn.bias", BIAS, '3', 0 },
    { AT(proj), "attn.c_proj.weight", MATRIX, 'C', 'C' },
    { AT(proj), "attn.c_proj.bias", BIAS, 'C', 0 },
    { AT(ln2.gain), "ln_2.weight", VECTOR, 'C', 0 },
    { AT(ln2.bias), "ln_2.bias", VECTOR, 'C', 0 },
    { AT(fc), "mlp.c_fc.weight", MATRIX, 'C', 'F' },
    { AT(fc), "mlp.c_fc.bias", BIAS, 'F', 0 },
    { AT(fc_proj), "mlp.c_proj.weight", MATRIX, 'F', 'C' },
    { AT(fc_proj), "mlp.c_proj.bias", BIAS, 'C', 0 },
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
    default: return 0;
    }
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
    *t = pf_weights_find(l->m->weights, full);
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

static enum pf_status
block(struct loader *l, size_t layer)
{
    struct pf_block *b = &l->m->blocks[layer];
    enum pf_status st = PF_OK;
    char name[64];

    for (size_t i = 0; !st
        && i < sizeof block_entries / sizeof *block_entries; i++) {
        const struct entry *e = &block_entries[i];
        void *at = (char *)b + e->offset;
        struct pf_linear *lin = at;

        snprintf(name, sizeof name, "h.%zu.%s", layer, e->name);
        switch (e->part) {
        case VECTOR:
            st = vector(l, name, e->rows, at);
            break;
        case BIAS:
            st = vector(l, name, e->rows, &lin->bias);
            break;
        case MATRIX:
            st = matrix(l, name, e->rows, e->columns, &lin->w, &lin->type);
            lin->in = letter(&l->m->config, e->rows);
            lin->out = letter(&l->m->config, e->columns);
        }
    }
    return st;
}

/* The head: lm_head.weight, which has no prefix, or the embedding again. */
static enum pf_status
head(struct loader *l)
{
    struct pf_model *m = l->m;
    struct pf_linear *h = &m->head;
    enum pf_status st;

    h->out_in = true;
    h->in = m->config.width;
    h->out = m->config.vocab;
    h->w = m->wte;
    h->type = m->wte_type;
    if (m->config.tied)
        return PF_OK;
    l->prefix = "";
    st = matrix(l, "lm_head.weight", 'V', 'C', &h->w, &h->type);
    if (!st && pf_weights_find(m->weights, "lm_head.bias"))
        st = vector(l, "lm_head.bias", 'V', &h->bias);
    return st;
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
    if (!st) {
        if (!pf_weights_find(m->weights, "wte.weight"))
            l.prefix = "transformer.";
        st = matrix(&l, "wte.weight", 'V', 'C', &m->wte, &m->wte_type);
    }
    if (!st)
        st = matrix(&l, "wpe.weight", 'P', 'C', &m->wpe, &m->wpe_type);
    for (size_t i = 0; !st && i < m->config.layers; i++)
        st = block(&l, i);
    if (!st)
        st = vector(&l, "ln_f.weight", 'C', &m->ln_f.gain);
    if (!st)
        st = vector(&l, "ln_f.bias", 'C', &m->ln_f.bias);
    if (!st)
        st = head(&l);
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
