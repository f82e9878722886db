/* model-info: what a model is, and whether its files are sound. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/forward.h>
#include <pipeformer/json.h>
#include <pipeformer/model.h>
#include <pipeformer/tokenizer.h>

struct model_info {
    bool tensors, check;
};

enum { TENSORS = CLI_LONG, CHECK };

static const struct cli_option options[] = {
    { "tensors", TENSORS, NULL, "list the tensors too" },
    { "check", CHECK, NULL, "check the files: 0 sound, 1 not, 2 trouble" },
    { NULL, 0, NULL, NULL },
};

static void
option(void *ctx, int key, const char *arg)
{
    struct model_info *i = ctx;

    (void)arg;
    if (key == TENSORS)
        i->tensors = true;
    else if (key == CHECK)
        i->check = true;
}

static const struct cli_command command = {
    .name = "model-info",
    .synopsis = "[-j] [-m MODEL] [--tensors] [--check]",
    .summary = "Prints a model's configuration, and where it was found.",
    .options = options,
    .option = option,
    .model = true,
    .text = true,
};

/* A row of the table, or a member of the object. */
static void
row(struct pf_buf *b, const char *name, const char *text, bool string)
{
    if (!cli.json) {
        pf_buf_printf(b, "%-20s %s\n", name, text);
        return;
    }
    pf_buf_addc(b, b->len ? ',' : '{');
    pf_json_add_string(b, name, strlen(name));
    pf_buf_addc(b, ':');
    if (string)
        pf_json_add_string(b, text, strlen(text));
    else
        pf_buf_adds(b, text);
}

static void
number(struct pf_buf *b, const char *name, uint64_t v)
{
    char s[24];

    s[pf_i64_print(s, (int64_t)v)] = '\0';
    row(b, name, s, false);
}

/* A directory with a tokenizer and no model. */
static void
vocabulary(struct pf_buf *b, const char *dir, bool check)
{
    struct pf_tokenizer *tok;
    struct pf_err err;

    if (pf_tokenizer_open(&tok, dir, &err))
        cli_die("%s has no config.json, and as a vocabulary: %s", dir,
            err.msg);
    if (!check) {
        row(b, "path", dir, true);
        row(b, "model_type", cli.json ? "null" : "none, a vocabulary", false);
        number(b, "vocab_size", pf_tokenizer_size(tok));
    } else if (!cli.quiet) {
        pf_buf_printf(b, "%s: sound\n", dir);
    }
    pf_tokenizer_free(tok);
}

static bool
ends(const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);

    return n >= k && strcmp(name + n - k, end) == 0;
}

/*
 * Is this a weight that counts?  Some files hold masks and position numbers as
 * well, or a tied head once more.
 */
static bool
counts(const struct pf_model *m, const struct pf_tensor *t)
{
    static const char *const heads[] = { "lm_head.weight",
        "cls.predictions.decoder.weight", "vocab_projector.weight" };
    bool integer = t->dtype == PF_BOOL || t->dtype == PF_U8
        || t->dtype == PF_I8 || t->dtype == PF_I16 || t->dtype == PF_U16
        || t->dtype == PF_I32 || t->dtype == PF_U32 || t->dtype == PF_I64
        || t->dtype == PF_U64;

    if (integer || ends(t->name, ".attn.masked_bias")
        || (ends(t->name, ".attn.bias") && t->ndim == 4)
        || (strcmp(t->name, "cls.predictions.decoder.bias") == 0
            && pf_weights_find(m->weights, "cls.predictions.bias")))
        return false;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (m->config.tied && strcmp(t->name, heads[i]) == 0)
            return false;
    return true;
}

static void
config(struct pf_buf *b, const struct pf_model *m, const char *dir)
{
    const struct pf_config *c = &m->config;
    uint64_t params = 0, bytes = 0, by_type[PF_N_DTYPES] = { 0 };
    struct pf_buf eos = PF_BUF_INIT;
    const struct pf_tensor *t;
    char eps[PF_F32_MAX + 1], name[32];

    for (size_t i = 0; (t = pf_weights_at(m->weights, i)); i++) {
        params += counts(m, t) ? pf_tensor_count(t) : 0;
        bytes += pf_tensor_bytes(t);
        by_type[t->dtype] += pf_tensor_bytes(t);
    }
    for (size_t i = 0; i < c->n_eos; i++)
        pf_buf_printf(&eos, i ? ",%u" : cli.json ? "[%u" : "%u", c->eos[i]);
    if (cli.json)
        pf_buf_adds(&eos, c->n_eos ? "]" : "[]");
    else if (!c->n_eos)
        pf_buf_adds(&eos, "none");
    pf_buf_addc(&eos, '\0');
    eps[pf_f32_print(eps, c->eps)] = '\0';
    row(b, "path", dir, true);
    row(b, "model", m->fingerprint, true);
    row(b, "model_type", c->type, true);
    number(b, "hidden_size", c->width);
    number(b, "layers", c->layers);
    number(b, "heads", c->heads);
    number(b, "head_size", c->head_dim);
    number(b, "intermediate_size", c->inner);
    number(b, "positions", c->positions);
    number(b, "vocab_size", c->vocab);
    if (c->segments)
        number(b, "segments", c->segments);
    row(b, "attention", c->encoder ? "both ways" : "causal", true);
    row(b, "activation", c->act_name, true);
    row(b, "layer_norm_epsilon", eps, false);
    row(b, "tied_head", !m->head.w ? cli.json ? "null" : "no head" : c->tied
        ? "true" : "false", false);
    if (c->encoder)
        row(b, "pooler", m->pooler.w ? "true" : "false", false);
    row(b, "eos", eos.failed ? "" : eos.data, false);
    number(b, "parameters", params);
    number(b, "bytes", bytes);
    for (int i = 0; i < PF_N_DTYPES; i++) {
        if (!by_type[i])
            continue;
        snprintf(name, sizeof name, "bytes_%s", pf_dtype_name(i));
        number(b, name, by_type[i]);
    }
    pf_buf_fini(&eos);
}

static void
tensors(struct pf_buf *b, const struct pf_model *m)
{
    const struct pf_tensor *t;
    char shape[128];
    size_t width = 40;

    if (cli.json)
        pf_buf_adds(b, ",\"tensors\":[");
    for (size_t i = 0; (t = pf_weights_at(m->weights, i)); i++)
        if (strlen(t->name) > width && strlen(t->name) < 100)
            width = strlen(t->name);
    for (size_t i = 0; (t = pf_weights_at(m->weights, i)); i++) {
        pf_shape_format(shape, sizeof shape, t->shape, t->ndim);
        if (!cli.json) {
            pf_buf_printf(b, "%-*s %-5s %s\n", (int)width, t->name,
                pf_dtype_name(t->dtype), shape);
            continue;
        }
        pf_buf_adds(b, i ? ",{\"name\":" : "{\"name\":");
        pf_json_add_string(b, t->name, strlen(t->name));
        pf_buf_printf(b, ",\"dtype\":\"%s\",\"shape\":%s}",
            pf_dtype_name(t->dtype), shape);
    }
    if (cli.json)
        pf_buf_addc(b, ']');
}

/*
 * Is this a tensor of a block that config.json does not have?  Blocks are
 * numbered behind "h." or "layer.", at the beginning or behind a dot.
 */
static bool
beyond(const struct pf_model *m, const char *name)
{
    const char *p;

    for (p = name; p; p = (p = strchr(p, '.')) ? p + 1 : NULL) {
        size_t skip = strncmp(p, "h.", 2) == 0 ? 2
            : strncmp(p, "layer.", 6) == 0 ? 6 : 0;

        if (skip && p[skip] >= '0' && p[skip] <= '9')
            return strtoul(p + skip, NULL, 10) >= m->config.layers;
    }
    return false;
}

/*
 * Weights that are no numbers, or of blocks too many; the rest was checked
 * when it was opened.
 */
static bool
sound(const struct pf_model *m, const char *dir)
{
    const struct pf_tensor *t;
    float some[1024];
    bool all = true;
    struct pf_err err;

    if (pf_weights_check(m->weights, dir, &err)) {
        cli_warn("%s", err.msg);
        all = false;
    }
    for (size_t i = 0; (t = pf_weights_at(m->weights, i)); i++) {
        if (beyond(m, t->name)) {
            cli_warn("%s: tensor %s is of a block that config.json does not "
                "have", cli.model, t->name);
            all = false;
        }
    }
    for (size_t i = 0; (t = pf_weights_at(m->weights, i)); i++) {
        size_t n = pf_tensor_count(t), size = pf_dtype_size(t->dtype), at, k;

        for (size_t from = 0; from < n; from += k) {
            k = n - from < 1024 ? n - from : 1024;
            if (!pf_to_f32(some, (const char *)t->data + from * size,
                    t->dtype, k))
                break;
            at = pf_first_nonfinite(some, k);
            if (at == k)
                continue;
            cli_warn("%s: tensor %s is not finite at element %zu, %g",
                cli.model, t->name, from + at, (double)some[at]);
            all = false;
            break;
        }
    }
    return all;
}

/* Its tokenizer, if the files of one are there. */
static bool
sound_tokenizer(const char *dir, const struct pf_model *m)
{
    struct pf_tokenizer *tok;
    struct pf_err err;
    bool fits;

    if (!cli_has_file(dir, "vocab.json") && !cli_has_file(dir, "vocab.txt")
        && !cli_has_file(dir, "tokenizer.json"))
        return true;
    if (pf_tokenizer_open(&tok, dir, &err)) {
        cli_warn("%s: no tokenizer: %s", cli.model, err.msg);
        return !cli_has_file(dir, "merges.txt")
            && !cli_has_file(dir, "tokenizer.json");
    }
    fits = pf_tokenizer_size(tok) <= m->config.vocab;
    if (!fits)
        cli_warn("%s: the tokenizer has %zu ids, the model knows %zu",
            cli.model, (size_t)pf_tokenizer_size(tok), m->config.vocab);
    pf_tokenizer_free(tok);
    return fits;
}

int
main(int argc, char **argv)
{
    struct model_info info = { 0 };
    struct pf_buf b = PF_BUF_INIT, dir;
    struct pf_model *m = NULL;
    struct pf_err err;
    int status = 0;

    cli_options(argc, argv, &command, &info);
    if (cli.n_files != 1 || strcmp(cli.files[0], "-") != 0)
        cli_usage("no operands; -m names the model");
    if (info.check)
        cli.failed = 2;
    dir = cli_model_dir();
    cli.failed = 1; /* what is wrong from here on is wrong with the model */
    cli_begin(PF_NDJSON, true);
    if (cli_is_vocabulary(dir.data))
        vocabulary(&b, dir.data, info.check);
    else if (pf_model_open(&m, dir.data, &err))
        cli_die("%s", err.msg);
    else if (info.check)
        status = sound(m, dir.data) + sound_tokenizer(dir.data, m) < 2;
    else
        config(&b, m, dir.data);
    if (m && info.check && !status && !cli.quiet)
        pf_buf_printf(&b, "%s: sound\n", dir.data);
    if (m && info.tensors && !info.check)
        tensors(&b, m);
    if (cli.json && !info.check)
        pf_buf_adds(&b, "}\n");
    if (pf_buf_check(&b, &err))
        cli_die("%s", err.msg);
    if (pf_out_write(&cli_out, b.data, b.len, &err))
        cli_die_writing(&err);
    pf_buf_fini(&b);
    pf_buf_fini(&dir);
    pf_model_free(m);
    return cli_finish() ? 1 : status;
}
