#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/io.h>

enum { DOCUMENT_MAX = 64 << 20 };

/*
 * Two members of one name?  cJSON_GetObjectItemCaseSensitive finds the first;
 * the lists are short, but a hostile one is not: its names are sorted.
 */
static int
by_string(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum pf_status
check_names(const cJSON *doc, struct pf_err *err)
{
    size_t n = (size_t)cJSON_GetArraySize(doc), k = 0;
    const char **names = malloc((n + 1) * sizeof *names);
    enum pf_status st = PF_OK;

    if (!names)
        return pf_fail_mem(err);
    for (const cJSON *m = doc->child; m; m = m->next)
        names[k++] = m->string;
    qsort(names, n, sizeof *names, by_string);
    for (size_t i = 1; i < n && !st; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            st = pf_fail(err, PF_EMODEL, "\"%.60s\" stands twice", names[i]);
    free(names);
    return st;
}

/* Is there an escaped U+0000, at which cJSON's strings would end? */
static bool
holds_nul(const char *p, const char *end)
{
    for (; (p = memchr(p, '\\', (size_t)(end - p))); p += 2) {
        if (end - p >= 6 && memcmp(p, "\\u0000", 6) == 0)
            return true;
        if (end - p < 2)
            return false;
    }
    return false;
}

enum pf_status
pf_config_text(cJSON **doc, const char *text, size_t len, struct pf_err *err)
{
    const char *end = NULL;
    enum pf_status st;
    size_t at;

    *doc = NULL;
    if (memchr(text, 0, len) || holds_nul(text, text + len))
        return pf_fail(err, PF_EMODEL, "holds U+0000");
    *doc = cJSON_ParseWithLengthOpts(text, len, &end, 0);
    at = end ? (size_t)(end - text) : 0;
    while (*doc && at < len && strchr(" \t\r\n", text[at]))
        at++;
    if (!*doc || at < len)
        st = pf_fail(err, PF_EMODEL, "is no JSON from byte %zu on", at);
    else if (!cJSON_IsObject(*doc))
        st = pf_fail(err, PF_EMODEL, "is no JSON object");
    else
        st = check_names(*doc, err);
    if (st) {
        cJSON_Delete(*doc);
        *doc = NULL;
    }
    return st;
}

enum pf_status
pf_config_read(cJSON **doc, const char *path, struct pf_err *err)
{
    enum pf_status st;
    struct pf_err why;
    char *text;
    size_t len;

    st = pf_read_file(path, DOCUMENT_MAX, &text, &len, err);
    if (st)
        return st;
    st = pf_config_text(doc, text, len, &why);
    free(text);
    return st ? pf_fail(err, st, "%.280s: %.100s", path, why.msg) : PF_OK;
}

/* The member, or NULL where it is absent or null. */
static const cJSON *
member(const cJSON *doc, const char *name)
{
    const cJSON *m = cJSON_GetObjectItemCaseSensitive(doc, name);

    return cJSON_IsNull(m) ? NULL : m;
}

enum pf_status
pf_config_size(const cJSON *doc, const char *name, size_t absent, size_t max,
    size_t *v, struct pf_err *err)
{
    const cJSON *m = member(doc, name);

    *v = absent;
    if (!m)
        return PF_OK;
    if (!cJSON_IsNumber(m) || m->valuedouble != floor(m->valuedouble)
        || m->valuedouble < 1 || m->valuedouble > (double)max)
        return pf_fail(err, PF_EMODEL, "%s is no whole number "
            "from 1 to %zu", name, max);
    *v = (size_t)m->valuedouble;
    return PF_OK;
}

enum pf_status
pf_config_num(const cJSON *doc, const char *name, double absent, double *v,
    struct pf_err *err)
{
    const cJSON *m = member(doc, name);

    *v = absent;
    if (!m)
        return PF_OK;
    if (!cJSON_IsNumber(m))
        return pf_fail(err, PF_EMODEL, "%s is no number", name);
    *v = m->valuedouble;
    return PF_OK;
}

enum pf_status
pf_config_bool(const cJSON *doc, const char *name, bool absent, bool *v,
    struct pf_err *err)
{
    const cJSON *m = member(doc, name);

    *v = absent;
    if (!m)
        return PF_OK;
    if (!cJSON_IsBool(m))
        return pf_fail(err, PF_EMODEL, "%s is neither true nor "
            "false", name);
    *v = cJSON_IsTrue(m);
    return PF_OK;
}

/* Names of HuggingFace's ACT2FN; the tanh forms differ in spelling only. */
static const struct {
    const char *name;
    enum pf_act act;
} acts[] = {
    { "gelu_new", PF_GELU_TANH },
    { "gelu_pytorch_tanh", PF_GELU_TANH },
    { "gelu_fast", PF_GELU_TANH },
    { "gelu", PF_GELU },
    { "gelu_python", PF_GELU },
    { "relu", PF_RELU },
    { "silu", PF_SILU },
    { "swish", PF_SILU },
    { "quick_gelu", PF_QUICK_GELU },
};

static enum pf_status
activation(struct pf_config *c, const cJSON *doc, const char *key,
    const char *absent, struct pf_err *err)
{
    const cJSON *m = member(doc, key);
    const char *name = absent;

    if (m && !cJSON_IsString(m))
        return pf_fail(err, PF_EMODEL, "%s is no string", key);
    if (m)
        name = m->valuestring;
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
        if (strcmp(acts[i].name, name) == 0) {
            c->act = acts[i].act;
            c->act_name = acts[i].name;
            return PF_OK;
        }
    return pf_fail(err, PF_EMODEL, "%s \"%.60s\" is not supported", key,
        name);
}

/* eos_token_id: an id or a list of them. */
static enum pf_status
end_ids(struct pf_config *c, const cJSON *doc, struct pf_err *err)
{
    const cJSON *m = member(doc, "eos_token_id"), *id;

    /* HuggingFace's default, where the vocabulary has that id; null is none. */
    if (!cJSON_GetObjectItemCaseSensitive(doc, "eos_token_id")
        && c->vocab > 50256)
        c->eos[c->n_eos++] = 50256;
    for (id = cJSON_IsArray(m) ? m->child : m; id;
        id = cJSON_IsArray(m) ? id->next : NULL) {
        if (!cJSON_IsNumber(id) || id->valuedouble < 0
            || id->valuedouble != floor(id->valuedouble)
            || id->valuedouble > INT32_MAX
            || c->n_eos == sizeof c->eos / sizeof *c->eos)
            return pf_fail(err, PF_EMODEL, "eos_token_id is "
                "neither an id nor a short list of ids");
        c->eos[c->n_eos++] = (uint32_t)id->valuedouble;
    }
    return PF_OK;
}

/* The width of a head; the two members are named by their architecture. */
static enum pf_status
head_width(struct pf_config *c, const char *width, const char *heads,
    struct pf_err *err)
{
    if (c->width % c->heads)
        return pf_fail(err, PF_EMODEL, "%s %zu is not a multiple of %s %zu",
            width, c->width, heads, c->heads);
    c->head_dim = c->width / c->heads;
    return PF_OK;
}

static enum pf_status
epsilon(struct pf_config *c, const cJSON *doc, const char *key, double absent,
    struct pf_err *err)
{
    double eps = 0;
    enum pf_status st = pf_config_num(doc, key, absent, &eps, err);

    if (!st && !(eps >= 0 && eps <= 1))
        st = pf_fail(err, PF_EMODEL, "%s is not within 0 and 1", key);
    c->eps = (float)eps;
    return st;
}

/* What would make another model of it, and is false in most. */
static enum pf_status
refuse(const cJSON *doc, const char *key, struct pf_err *err)
{
    bool set = false;
    enum pf_status st = pf_config_bool(doc, key, false, &set, err);

    return st || !set ? st
        : pf_fail(err, PF_EMODEL, "%s is not supported", key);
}

enum { MAX = 1 << 24 };

/* The defaults are those of HuggingFace's GPT2Config. */
static enum pf_status
gpt2(struct pf_config *c, const cJSON *doc, struct pf_err *err)
{
    enum pf_status st;

    if ((st = pf_config_size(doc, "vocab_size", 50257, MAX, &c->vocab, err))
        || (st = pf_config_size(doc, "n_ctx", 1024, MAX, &c->positions, err))
        || (st = pf_config_size(doc, "n_positions", c->positions, MAX,
            &c->positions, err))
        || (st = pf_config_size(doc, "n_embd", 768, MAX, &c->width, err))
        || (st = pf_config_size(doc, "n_layer", 12, 1 << 16, &c->layers, err))
        || (st = pf_config_size(doc, "n_head", 12, MAX, &c->heads, err))
        || (st = pf_config_size(doc, "n_inner", 4 * c->width, 4 * MAX,
            &c->inner, err))
        || (st = epsilon(c, doc, "layer_norm_epsilon", 1e-5, err))
        || (st = pf_config_bool(doc, "tie_word_embeddings", true, &c->tied,
            err))
        || (st = pf_config_bool(doc, "scale_attn_weights", true,
            &c->scale_attn, err))
        || (st = pf_config_bool(doc, "scale_attn_by_inverse_layer_idx", false,
            &c->scale_by_layer, err))
        || (st = refuse(doc, "add_cross_attention", err))
        || (st = activation(c, doc, "activation_function", "gelu_new", err))
        || (st = end_ids(c, doc, err)))
        return st;
    return head_width(c, "n_embd", "n_head", err);
}

/* Positions that are added to the embeddings, the only kind there is here. */
static enum pf_status
absolute_positions(const cJSON *doc, struct pf_err *err)
{
    const cJSON *m = member(doc, "position_embedding_type");

    if (m && !(cJSON_IsString(m) && strcmp(m->valuestring, "absolute") == 0))
        return pf_fail(err, PF_EMODEL, "position_embedding_type is not "
            "\"absolute\", and no other is supported");
    return PF_OK;
}

/* The defaults are those of HuggingFace's BertConfig. */
static enum pf_status
bert(struct pf_config *c, const cJSON *doc, struct pf_err *err)
{
    enum pf_status st;

    if ((st = pf_config_size(doc, "vocab_size", 30522, MAX, &c->vocab, err))
        || (st = pf_config_size(doc, "max_position_embeddings", 512, MAX,
            &c->positions, err))
        || (st = pf_config_size(doc, "type_vocab_size", 2, MAX, &c->segments,
            err))
        || (st = pf_config_size(doc, "hidden_size", 768, MAX, &c->width, err))
        || (st = pf_config_size(doc, "num_hidden_layers", 12, 1 << 16,
            &c->layers, err))
        || (st = pf_config_size(doc, "num_attention_heads", 12, MAX,
            &c->heads, err))
        || (st = pf_config_size(doc, "intermediate_size", 3072, 4 * MAX,
            &c->inner, err))
        || (st = epsilon(c, doc, "layer_norm_eps", 1e-12, err))
        || (st = pf_config_bool(doc, "tie_word_embeddings", true, &c->tied,
            err))
        || (st = absolute_positions(doc, err))
        || (st = refuse(doc, "is_decoder", err))
        || (st = refuse(doc, "add_cross_attention", err))
        || (st = activation(c, doc, "hidden_act", "gelu", err)))
        return st;
    c->scale_attn = true;
    return head_width(c, "hidden_size", "num_attention_heads", err);
}

/*
 * The defaults are those of HuggingFace's DistilBertConfig.  Its norms have
 * an epsilon of 1e-12; sinusoidal positions lie in the file as learned ones.
 */
static enum pf_status
distilbert(struct pf_config *c, const cJSON *doc, struct pf_err *err)
{
    enum pf_status st;

    if ((st = pf_config_size(doc, "vocab_size", 30522, MAX, &c->vocab, err))
        || (st = pf_config_size(doc, "max_position_embeddings", 512, MAX,
            &c->positions, err))
        || (st = pf_config_size(doc, "dim", 768, MAX, &c->width, err))
        || (st = pf_config_size(doc, "n_layers", 6, 1 << 16, &c->layers, err))
        || (st = pf_config_size(doc, "n_heads", 12, MAX, &c->heads, err))
        || (st = pf_config_size(doc, "hidden_dim", 4 * 768, 4 * MAX,
            &c->inner, err))
        || (st = pf_config_bool(doc, "tie_word_embeddings", true, &c->tied,
            err))
        || (st = activation(c, doc, "activation", "gelu", err)))
        return st;
    c->eps = 1e-12f;
    c->scale_attn = true;
    return head_width(c, "dim", "n_heads", err);
}

static const struct {
    const char *type;
    bool encoder;
    enum pf_status (*parse)(struct pf_config *c, const cJSON *doc,
        struct pf_err *err);
} architectures[] = {
    { "gpt2", false, gpt2 },
    { "bert", true, bert },
    { "distilbert", true, distilbert },
};

enum pf_status
pf_config_parse(struct pf_config *c, const cJSON *doc, struct pf_err *err)
{
    const cJSON *type = member(doc, "model_type");

    memset(c, 0, sizeof *c);
    if (!cJSON_IsString(type))
        return pf_fail(err, PF_EMODEL, "no model_type");
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++)
        if (strcmp(type->valuestring, architectures[i].type) == 0) {
            c->type = architectures[i].type;
            c->encoder = architectures[i].encoder;
            return architectures[i].parse(c, doc, err);
        }
    return pf_fail(err, PF_EMODEL, "the architecture \"%.60s\" is not "
        "supported (gpt2, bert and distilbert are)", type->valuestring);
}

enum pf_status
pf_config_open(struct pf_config *c, const char *dir, struct pf_err *err)
{
    struct pf_buf path = PF_BUF_INIT;
    enum pf_status st;
    struct pf_err why;
    cJSON *doc = NULL;

    pf_buf_printf(&path, "%s/config.json", dir);
    pf_buf_addc(&path, '\0');
    st = pf_buf_check(&path, err);
    if (!st)
        st = pf_config_read(&doc, path.data, err);
    if (!st) {
        st = pf_config_parse(c, doc, &why);
        if (st)
            pf_fail(err, st, "%.200s: %.180s", path.data, why.msg);
    }
    cJSON_Delete(doc);
    pf_buf_fini(&path);
    return st;
}
