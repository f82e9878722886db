#include "sampling.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* Seeds stay exact in JSON readers that know doubles only. */
#define SEED_MAX ((long long)1 << 53)

static void *
grown(void *list, size_t n, size_t size)
{
    list = realloc(list, n * size);
    if (!list)
        cli_die("out of memory");
    return list;
}

/* Adds a step of that text, "top-k:40"; `option` is what it was asked by. */
static void
add_step(struct sampling *s, const char *option, const char *text)
{
    struct sampling_step new;
    struct pf_err err;

    if (pf_step_parse(&new.step, text, &err))
        cli_usage("--%s: %s", option, err.msg);
    if (sampling_mirostat(s))
        cli_usage("--%s: no step can follow --mirostat, which ends the chain",
            option);
    new.text = grown(NULL, strlen(text) + 1, 1);
    memcpy(new.text, text, strlen(text) + 1);
    new.text[strcspn(text, ":")] = ' ';
    s->chain = grown(s->chain, s->n_chain + 1, sizeof *s->chain);
    s->chain[s->n_chain++] = new;
}

static void
take_step(struct sampling *s, enum pf_step_kind kind, const char *arg)
{
    const char *name = pf_step_name(kind);
    size_t len = strlen(name) + strlen(arg) + 2;
    char *text = grown(NULL, len, 1);

    snprintf(text, len, "%s:%s", name, arg);
    add_step(s, name, text);
    free(text);
}

static void
take_preset(struct sampling *s, const char *name)
{
    const char *text;

    if (!pf_preset_step(name, 0))
        cli_usage("--preset: '%s' is neither hf nor llama.cpp", name);
    for (size_t i = 0; (text = pf_preset_step(name, i)); i++)
        add_step(s, "preset", text);
}

bool
sampling_ids(const char *arg, uint32_t **ids, size_t *n)
{
    const char *p = arg;
    char *end;

    *ids = NULL;
    *n = 0;
    do {
        unsigned long id = strtoul(p, &end, 10);

        if (*p < '0' || *p > '9' || (*end && *end != ',') || id > INT32_MAX) {
            free(*ids);
            return false;
        }
        *ids = grown(*ids, *n + 1, sizeof **ids);
        (*ids)[(*n)++] = (uint32_t)id;
        p = end + 1;
    } while (*end);
    return true;
}

static void
take_eos(struct sampling *s, const char *arg)
{
    uint32_t *ids;
    size_t n;

    if (!sampling_ids(arg, &ids, &n))
        cli_usage("--eos: '%s' is not a list of ids such as 0,50256", arg);
    s->eos_given = true;
    s->eos = grown(s->eos, s->n_eos + n, sizeof *s->eos);
    memcpy(s->eos + s->n_eos, ids, n * sizeof *ids);
    s->n_eos += n;
    free(ids);
}

static void
take_stop(struct sampling *s, const char *text)
{
    struct pf_err err;

    if (!s->stops && pf_stops_new(&s->stops, &err))
        cli_die("%s", err.msg);
    if (pf_stops_add(s->stops, text, strlen(text), &err))
        cli_usage("--stop: %s", err.msg);
}

static void
take_breaker(struct sampling *s, const char *text)
{
    uint32_t *ids;
    size_t n;

    if (!*text)
        cli_usage("--dry-breaker: the text is empty");
    if (strncmp(text, "ids:", 4) == 0 && text[4]) { /* "ids:": none */
        if (!sampling_ids(text + 4, &ids, &n))
            cli_usage("--dry-breaker: '%s' is not a list of ids such as "
                "ids:11,198", text);
        free(ids);
    }
    s->breakers = grown(s->breakers, s->n_breakers + 1, sizeof *s->breakers);
    s->breakers[s->n_breakers++] = text;
}

/* A number in [0, 1). */
static double
unit(const char *arg)
{
    double u = cli_num("--draw", arg, 0, 1);

    if (u == 1)
        cli_usage("--draw: 1 is not below 1");
    return u;
}

/* U[,XTC_U] */
static void
take_draw(struct sampling *s, const char *arg)
{
    size_t len = strcspn(arg, ",");
    char *first = grown(NULL, len + 1, 1);

    memcpy(first, arg, len);
    first[len] = '\0';
    s->draw = unit(first);
    if (arg[len])
        s->draw_xtc = unit(arg + len + 1);
    free(first);
}

bool
sampling_option(struct sampling *s, int key, const char *arg)
{
    switch (key) {
    case 't': take_step(s, PF_STEP_TEMP, arg); return true;
    case 'k': take_step(s, PF_STEP_TOP_K, arg); return true;
    case 'p': take_step(s, PF_STEP_TOP_P, arg); return true;
    case 'g': s->greedy = true; return true;
    case 's':
        s->seed = (uint64_t)cli_int("--seed", arg, 0, SEED_MAX);
        s->seeded = true;
        return true;
    case 'n':
        s->max_tokens = (size_t)cli_int("--max-tokens", arg, 1, INT32_MAX);
        return true;
    case SAMPLING_PRESET: take_preset(s, arg); return true;
    case SAMPLING_BREAKER: take_breaker(s, arg); return true;
    case SAMPLING_LAST_N:
        s->last_n = cli_int("--repeat-last-n", arg, -1, INT32_MAX);
        return true;
    case SAMPLING_MIN_KEEP:
        s->min_keep = (size_t)cli_int("--min-keep", arg, 0, INT32_MAX);
        return true;
    case SAMPLING_STOP: take_stop(s, arg); return true;
    case SAMPLING_EOS: take_eos(s, arg); return true;
    case SAMPLING_TOP:
        s->top = (size_t)cli_int("--top", arg, 1, INT32_MAX);
        return true;
    case SAMPLING_TRAIL: s->trail = true; return true;
    case SAMPLING_DRAW: take_draw(s, arg); return true;
    }
    if (key < SAMPLING_STEP || key > SAMPLING_STEP + PF_STEP_MIROSTAT)
        return false;
    take_step(s, (enum pf_step_kind)(key - SAMPLING_STEP), arg);
    return true;
}

bool
sampling_random(const struct sampling *s)
{
    return (s->n_chain > 0 || s->draw >= 0) && !s->greedy;
}

bool
sampling_has(const struct sampling *s, enum pf_step_kind kind)
{
    for (size_t i = 0; i < s->n_chain; i++)
        if (s->chain[i].step.kind == kind)
            return true;
    return false;
}

bool
sampling_looks_back(const struct sampling *s)
{
    for (size_t i = 0; i < s->n_chain; i++)
        if (s->last_n != 0 && pf_step_looks_back(&s->chain[i].step))
            return true;
    return false;
}

const struct pf_step *
sampling_mirostat(const struct sampling *s)
{
    const struct pf_step *last = s->n_chain ? &s->chain[s->n_chain - 1].step
        : NULL;

    return last && last->kind == PF_STEP_MIROSTAT ? last : NULL;
}

void
sampling_fini(struct sampling *s)
{
    for (size_t i = 0; i < s->n_chain; i++)
        free(s->chain[i].text);
    free(s->chain);
    free(s->breakers);
    free(s->eos);
    pf_stops_free(s->stops);
}
