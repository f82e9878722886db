/* What sample needs of a model, before the first record. */
#include "sample-choose.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* Tokens in which a text stands part the text too. */
static enum pf_status
add_tokens(struct chooser *c, const char *text, struct pf_err *err)
{
    size_t n = strlen(text), len;
    enum pf_status st = PF_OK;

    for (uint32_t id = 0; !st && id < pf_tokenizer_size(c->tok); id++) {
        const char *token = pf_tokenizer_token(c->tok, id, &len);
        bool in = false;

        for (size_t i = 0; token && !in && i + n <= len; i++)
            in = memcmp(token + i, text, n) == 0;
        if (in)
            st = pf_breakers_add(c->breakers, &id, 1, err);
    }
    return st;
}

static enum pf_status
add_breaker(struct chooser *c, struct pf_encoder *enc, const char *text,
    struct pf_err *err)
{
    const uint32_t *ids;
    uint32_t *list;
    size_t n;
    enum pf_status st;

    if (strncmp(text, "ids:", 4) == 0) {
        if (!sampling_ids(text + 4, &list, &n))
            return PF_OK; /* "ids:", none */
        st = pf_breakers_add(c->breakers, list, n, err);
        free(list);
        return st;
    }
    st = pf_encode(enc, text, strlen(text), &ids, &n, err);
    if (!st)
        st = pf_breakers_add(c->breakers, ids, n, err);
    return st ? st : add_tokens(c, text, err);
}

static void
open_breakers(struct chooser *c)
{
    static const char *const usual[] = { "\n", ":", "\"", "*" };
    const char *const *list = c->opt.n_breakers ? c->opt.breakers : usual;
    size_t n = c->opt.n_breakers ? c->opt.n_breakers : 4;
    struct pf_encoder *enc = NULL;
    struct pf_err err;
    enum pf_status st = pf_breakers_new(&c->breakers, &err);

    if (!st && c->tok)
        st = pf_encoder_new(&enc, c->tok, &err);
    for (size_t i = 0; !st && i < n; i++)
        if (c->tok || strncmp(list[i], "ids:", 4) == 0)
            st = add_breaker(c, enc, list[i], &err);
    pf_encoder_free(enc);
    if (st)
        cli_die("--dry-breaker: %s", err.msg);
}

/* The texts: without them some options cannot be, others say less. */
static void
open_texts(struct chooser *c, const char *dir)
{
    bool must = c->opt.stops, dry = sampling_has(&c->opt, PF_STEP_DRY);
    struct pf_err err;

    for (size_t i = 0; dry && i < c->opt.n_breakers; i++)
        must |= strncmp(c->opt.breakers[i], "ids:", 4) != 0;
    if (!must && !c->opt.top && !(dry && !c->opt.n_breakers))
        return;
    if (!pf_tokenizer_open(&c->tok, dir, &err))
        return;
    if (must)
        cli_die("%s: %s", c->opt.stops ? "--stop needs the texts of tokens"
            : "--dry-breaker needs the ids of a text", err.msg);
    cli_note("no texts in top, no breakers of --dry: %s", err.msg);
}

void
chooser_open(struct chooser *c)
{
    struct pf_buf dir = cli_model_dir();
    struct pf_err err;

    c->has_model = !cli_is_vocabulary(dir.data);
    if (!c->has_model)
        cli_note("%s is a vocabulary only: no end id and no window", cli.model);
    else if (pf_config_open(&c->config, dir.data, &err))
        cli_die("%s", err.msg);
    open_texts(c, dir.data);
    pf_buf_fini(&dir);
    if (sampling_has(&c->opt, PF_STEP_DRY))
        open_breakers(c);
    if (pf_sampler_new(&c->sampler, &err))
        cli_die("%s", err.msg);
}

void
chooser_fini(struct chooser *c)
{
    pf_sampler_free(c->sampler);
    pf_watch_fini(&c->watch);
    pf_breakers_free(c->breakers);
    pf_tokenizer_free(c->tok);
    pf_buf_fini(&c->text);
    sampling_fini(&c->opt);
}
