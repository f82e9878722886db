#ifndef SMALL_MODEL_H
#define SMALL_MODEL_H

/*
 * Small models with pseudo-random weights, written to a directory and opened:
 * GPT-2, BERT, DistilBERT, in the names that their files have.  Numbers are
 * few bits wide, so that each type of weight holds them exactly.  Included by
 * the tests of the forward pass; cmocka and the C headers come before.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pipeformer/forward.h>
#include <pipeformer/record.h>

struct small_shape {
    const char *type;
    size_t V, P, C, L, H, F;
    const char *act;
    enum pf_dtype weights; /* type of the matrices: F32 or BF16 */
    bool prefix;           /* names are those within a larger model */
    bool legacy;           /* norms have gamma and beta */
    bool head, untied;     /* BERT: a head for masked words */
    bool pooler;
};

/* The weights as float32, by name without prefix. */
struct small_model {
    struct small_shape s;
    struct pf_model *m;
    struct pf_record all, file;
    char dir[40];
};

static uint64_t small_seed = 88172645463325252u;

static uint32_t
small_random(void)
{
    small_seed ^= small_seed << 13;
    small_seed ^= small_seed >> 7;
    small_seed ^= small_seed << 17;
    return (uint32_t)(small_seed >> 32);
}

static size_t
small_letter(const struct small_shape *s, char l)
{
    return l == 'C' ? s->C : l == '3' ? 3 * s->C : l == 'F' ? s->F
        : l == 'V' ? s->V : l == 'P' ? s->P : l == 'S' ? 2 : 0;
}

/* One tensor, [rows, columns] by letter; `bare`: it never has a prefix. */
static void
small_add(struct small_model *w, const char *name, char rows, char columns,
    bool bare)
{
    const struct small_shape *s = &w->s;
    const size_t shape[2] = { small_letter(s, rows),
        small_letter(s, columns) };
    unsigned ndim = columns ? 2 : 1;
    bool norm = strstr(name, "LayerNorm") || strstr(name, "layer_norm")
        || strstr(name, "ln_");
    bool gain = norm && strstr(name, ".weight");
    struct pf_tensor *t = pf_record_put(&w->all, name, PF_F32, ndim, shape,
        NULL), *f;
    float *v = (float *)t->data;
    size_t n = pf_tensor_count(t);
    char full[128];

    /* Seven bits and a sign: exact in BF16. */
    for (size_t i = 0; i < n; i++)
        v[i] = (gain ? 1 : 0) + ldexpf((float)((int)(small_random() % 127)
            - 63), gain ? -7 : columns ? -8 : -7);
    snprintf(full, sizeof full, "%s%s", bare || !s->prefix ? ""
        : strcmp(s->type, "gpt2") == 0 ? "transformer."
        : strcmp(s->type, "bert") == 0 ? "bert." : "distilbert.", name);
    if (s->legacy && strstr(name, "LayerNorm"))
        strcpy(strrchr(full, '.'), gain ? ".gamma" : ".beta");
    if (!columns || s->weights == PF_F32) {
        pf_record_put(&w->file, full, PF_F32, ndim, shape, v);
        return;
    }
    f = pf_record_put(&w->file, full, PF_BF16, ndim, shape, NULL);
    for (size_t i = 0; i < n; i++) {
        uint32_t u;

        memcpy(&u, &v[i], sizeof u);
        ((uint16_t *)f->data)[i] = (uint16_t)(u >> 16);
    }
}

struct small_part {
    const char *name;
    char rows, columns;
};

/* NAME.weight and, where it is a layer, NAME.bias of as many as `bias`. */
static void
small_parts(struct small_model *w, const char *before,
    const struct small_part *p, bool table, bool bare)
{
    char name[96];

    for (; p->name; p++) {
        bool conv = strcmp(w->s.type, "gpt2") == 0;

        snprintf(name, sizeof name, "%s%s.weight", before, p->name);
        small_add(w, name, p->rows, p->columns, bare);
        snprintf(name, sizeof name, "%s%s.bias", before, p->name);
        if (!table)
            small_add(w, name, conv && p->columns ? p->columns : p->rows, 0,
                bare);
    }
}

static void
small_write(struct small_model *w)
{
    const struct small_shape *s = &w->s;
    struct pf_out out = PF_OUT_INIT;
    char path[80];
    FILE *f;

    strcpy(w->dir, "/tmp/pf-small-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    snprintf(path, sizeof path, "%s/config.json", w->dir);
    f = fopen(path, "w");
    assert_non_null(f);
    if (strcmp(s->type, "gpt2") == 0)
        fprintf(f, "{\"model_type\":\"gpt2\",\"vocab_size\":%zu,"
            "\"n_positions\":%zu,\"n_embd\":%zu,\"n_layer\":%zu,"
            "\"n_head\":%zu,\"n_inner\":%zu,\"activation_function\":\"%s\","
            "\"layer_norm_epsilon\":0.001}", s->V, s->P, s->C, s->L, s->H,
            s->F, s->act);
    else if (strcmp(s->type, "bert") == 0)
        fprintf(f, "{\"model_type\":\"bert\",\"vocab_size\":%zu,"
            "\"max_position_embeddings\":%zu,\"hidden_size\":%zu,"
            "\"num_hidden_layers\":%zu,\"num_attention_heads\":%zu,"
            "\"intermediate_size\":%zu,\"hidden_act\":\"%s\","
            "\"layer_norm_eps\":0.001,\"tie_word_embeddings\":%s}", s->V,
            s->P, s->C, s->L, s->H, s->F, s->act,
            s->untied ? "false" : "true");
    else
        fprintf(f, "{\"model_type\":\"distilbert\",\"vocab_size\":%zu,"
            "\"max_position_embeddings\":%zu,\"dim\":%zu,\"n_layers\":%zu,"
            "\"n_heads\":%zu,\"hidden_dim\":%zu,\"activation\":\"%s\","
            "\"tie_word_embeddings\":%s}", s->V, s->P, s->C, s->L, s->H,
            s->F, s->act, s->untied ? "false" : "true");
    assert_int_equal(fclose(f), 0);
    snprintf(path, sizeof path, "%s/model.safetensors", w->dir);
    f = fopen(path, "wb");
    assert_non_null(f);
    out.fd = fileno(f);
    assert_int_equal(pf_record_write(&out, &w->file, PF_BINARY, NULL), PF_OK);
    assert_int_equal(pf_out_flush(&out, NULL), PF_OK);
    fclose(f);
    pf_out_fini(&out);
}

static void
small_unlink(struct small_model *w)
{
    char path[80];

    snprintf(path, sizeof path, "%s/config.json", w->dir);
    unlink(path);
    snprintf(path, sizeof path, "%s/model.safetensors", w->dir);
    unlink(path);
    rmdir(w->dir);
}

/* The tensors, not yet written. */
static void
small_fill(struct small_model *w, const struct small_shape *s)
{
    static const struct small_part gpt2_tables[] = { { "wte", 'V', 'C' },
        { "wpe", 'P', 'C' }, { NULL, 0, 0 } };
    static const struct small_part gpt2_block[] = { { "ln_1", 'C', 0 },
        { "attn.c_attn", 'C', '3' }, { "attn.c_proj", 'C', 'C' },
        { "ln_2", 'C', 0 }, { "mlp.c_fc", 'C', 'F' },
        { "mlp.c_proj", 'F', 'C' }, { NULL, 0, 0 } };
    static const struct small_part gpt2_last[] = { { "ln_f", 'C', 0 },
        { NULL, 0, 0 } };
    static const struct small_part bert_tables[] = {
        { "embeddings.word_embeddings", 'V', 'C' },
        { "embeddings.position_embeddings", 'P', 'C' },
        { "embeddings.token_type_embeddings", 'S', 'C' }, { NULL, 0, 0 } };
    static const struct small_part distil_tables[] = {
        { "embeddings.word_embeddings", 'V', 'C' },
        { "embeddings.position_embeddings", 'P', 'C' }, { NULL, 0, 0 } };
    static const struct small_part bert_norm[] = {
        { "embeddings.LayerNorm", 'C', 0 }, { NULL, 0, 0 } };
    static const struct small_part bert_block[] = {
        { "attention.self.query", 'C', 'C' },
        { "attention.self.key", 'C', 'C' },
        { "attention.self.value", 'C', 'C' },
        { "attention.output.dense", 'C', 'C' },
        { "attention.output.LayerNorm", 'C', 0 },
        { "intermediate.dense", 'F', 'C' }, { "output.dense", 'C', 'F' },
        { "output.LayerNorm", 'C', 0 }, { NULL, 0, 0 } };
    static const struct small_part distil_block[] = {
        { "attention.q_lin", 'C', 'C' }, { "attention.k_lin", 'C', 'C' },
        { "attention.v_lin", 'C', 'C' }, { "attention.out_lin", 'C', 'C' },
        { "sa_layer_norm", 'C', 0 }, { "ffn.lin1", 'F', 'C' },
        { "ffn.lin2", 'C', 'F' }, { "output_layer_norm", 'C', 0 },
        { NULL, 0, 0 } };
    static const struct small_part bert_head[] = {
        { "cls.predictions.transform.dense", 'C', 'C' },
        { "cls.predictions.transform.LayerNorm", 'C', 0 }, { NULL, 0, 0 } };
    static const struct small_part distil_head[] = {
        { "vocab_transform", 'C', 'C' }, { "vocab_layer_norm", 'C', 0 },
        { NULL, 0, 0 } };
    static const struct small_part pooler[] = { { "pooler.dense", 'C', 'C' },
        { NULL, 0, 0 } };
    bool gpt2 = strcmp(s->type, "gpt2") == 0;
    bool bert = strcmp(s->type, "bert") == 0;
    char before[48];

    memset(w, 0, sizeof *w);
    w->s = *s;
    small_parts(w, "", gpt2 ? gpt2_tables : bert ? bert_tables
        : distil_tables, true, false);
    small_parts(w, "", gpt2 ? gpt2_last : bert_norm, false, false);
    for (size_t l = 0; l < s->L; l++) {
        snprintf(before, sizeof before, "%s.%zu.", gpt2 ? "h"
            : bert ? "encoder.layer" : "transformer.layer", l);
        small_parts(w, before, gpt2 ? gpt2_block : bert ? bert_block
            : distil_block, false, false);
    }
    if (s->pooler)
        small_parts(w, "", pooler, false, false);
    if (s->head) {
        small_parts(w, "", bert ? bert_head : distil_head, false, true);
        small_add(w, bert ? "cls.predictions.bias" : "vocab_projector.bias",
            'V', 0, true);
    }
    if (s->untied)
        small_add(w, bert ? "cls.predictions.decoder.weight"
            : "vocab_projector.weight", 'V', 'C', true);
}

static struct pf_model *
small_open(struct small_model *w, const struct small_shape *s)
{
    struct pf_err err = { PF_OK, "" };

    small_fill(w, s);
    small_write(w);
    if (pf_model_open(&w->m, w->dir, &err))
        fail_msg("%s", err.msg);
    small_unlink(w); /* it stays mapped */
    return w->m;
}

static void
small_free(struct small_model *w)
{
    pf_model_free(w->m);
    pf_record_fini(&w->all);
    pf_record_fini(&w->file);
}

/* The numbers of a tensor; `name` may take a layer. */
static const float *
small_weight(const struct small_model *w, const char *name)
{
    const struct pf_tensor *t = pf_record_tensor(&w->all, name);

    if (!t)
        fail_msg("%s", name);
    return t->data;
}

static float *
small_floats(size_t n)
{
    float *v = calloc(n + 1, sizeof *v);

    assert_non_null(v);
    return v;
}

#endif
