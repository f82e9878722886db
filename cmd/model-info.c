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

static void
config(struct pf_buf *b, const struct pf_model *m, const char *dir)
{
    const struct pf_config *c = &m->config;
    uint64_t params = 0, by_type[PF_N_DTYPES] = { 0 };
    struct pf_buf eos = PF_BUF_INIT;
    const struct pf_tensor *t;
    char eps[PF_F32_MAX + 1], name[32];

    for (size_t i = 0; (t = pf_weights_at(m->weights, i)); i++) {
        params += pf_tensor_count(t);
        by_type[t->dtype] += pf_tensor_bytes(t);
    }
    for (size_t i = 0; i < c->n_eos; i++)
        pf_buf_printf(&eos, i ? ",%u" : cli.json ? "[%u" : "%u", c->eos[i]);
    if (cli.json)
        pf_buf_adds(&eos, c->n_eos ? "]" : "[]");
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
    row(b, "activation", c->act_name, true);
    row(b, "layer_norm_epsilon", eps, false);
    row(b, "tied_head", c->tied ? "true" : "false", false);
    row(b, "eos", eos.failed ? "" : eos.data, false);
    number(b, "parameters", params);
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

    if (cli.json)
        pf_buf_adds(b, ",\"tensors\":[");
    for (size_t i = 0; (t = pf_weights_at(m->weights, i)); i++) {
        pf_shape_format(shape, sizeof shape, t->shape, t->ndim);
        if (!cli.json) {
            pf_buf_printf(b, "%-40s %-5s %s\n", t->name,
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

/* Is this a tensor of a block that config.json does not have? */
static bool
beyond(const struct pf_model *m, const char *name)
{
    unsigned long layer;

    if (strncmp(name, "transformer.", 12) == 0)
        name += 12;
    if (strncmp(name, "h.", 2) != 0 || name[2] < '0' || name[2] > '9')
        return false;
    layer = strtoul(name + 2, NULL, 10);
    return layer >= m->config.layers;
}

/*
 * Weights that are no numbers, or of blocks too many; the rest was checked
 * when it was opened.
 */
static bool
sound(const struct pf_model *m)
{
    const struct pf_tensor *t;
    float some[1024];
    bool all = true;

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
            cli_warn("%s: tensor %s is not finite at element %zu", cli.model,
                t->name, from + at);
            all = false;
            break;
        }
    }
    return all;
}

/* Its tokenizer, if the files of one are there. */
static bool
sound_tokenizer(const char *dir)
{
    struct pf_tokenizer *tok;
    struct pf_err err;

    if (!cli_has_file(dir, "vocab.json"))
        return true;
    if (pf_tokenizer_open(&tok, dir, &err)) {
        cli_warn("%s: no tokenizer: %s", cli.model, err.msg);
        return !cli_has_file(dir, "merges.txt");
    }
    pf_tokenizer_free(tok);
    return true;
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
        status = sound(m) + sound_tokenizer(dir.data) < 2;
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
