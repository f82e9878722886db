#include "sampling.h"

#include <stdlib.h>

#include "cli.h"

/* Seeds stay exact in JSON readers that know doubles only. */
#define SEED_MAX ((long long)1 << 53)

static void
add_step(struct sampling *s, enum pf_step_kind kind, double x)
{
    s->chain = realloc(s->chain, (s->n_chain + 1) * sizeof *s->chain);
    if (!s->chain)
        cli_die("out of memory");
    s->chain[s->n_chain++] = (struct pf_step){ kind, x };
}

static void
add_eos(struct sampling *s, const char *arg)
{
    const char *p = arg;
    char *end;

    s->eos_given = true;
    do {
        unsigned long id = strtoul(p, &end, 10);

        if (*p < '0' || *p > '9' || (*end && *end != ',') || id > INT32_MAX)
            cli_usage("--eos: '%s' is not a list of ids such as 0,50256", arg);
        s->eos = realloc(s->eos, (s->n_eos + 1) * sizeof *s->eos);
        if (!s->eos)
            cli_die("out of memory");
        s->eos[s->n_eos++] = (uint32_t)id;
        p = end + 1;
    } while (*end);
}

bool
sampling_option(struct sampling *s, int key, const char *arg)
{
    double x;

    switch (key) {
    case 't':
        x = cli_num("--temp", arg, 0, 1e9);
        if (x > 0 && x < 1e-9)
            cli_usage("--temp: %s is not 0 and below 1e-9", arg);
        add_step(s, PF_STEP_TEMP, x);
        return true;
    case 'k':
        add_step(s, PF_STEP_TOP_K, (double)cli_int("--top-k", arg, 0,
            INT32_MAX));
        return true;
    case 'p':
        add_step(s, PF_STEP_TOP_P, cli_num("--top-p", arg, 0, 1));
        return true;
    case 'g':
        s->greedy = true;
        return true;
    case 's':
        s->seed = (uint64_t)cli_int("--seed", arg, 0, SEED_MAX);
        s->seeded = true;
        return true;
    case 'n':
        s->max_tokens = (size_t)cli_int("--max-tokens", arg, 1, INT32_MAX);
        return true;
    case SAMPLING_EOS:
        add_eos(s, arg);
        return true;
    case SAMPLING_TOP:
        s->top = (size_t)cli_int("--top", arg, 1, INT32_MAX);
        return true;
    case SAMPLING_DRAW:
        s->draw = cli_num("--draw", arg, 0, 1);
        if (s->draw == 1)
            cli_usage("--draw: 1 is not below 1");
        return true;
    default:
        return false;
    }
}

bool
sampling_random(const struct sampling *s)
{
    return (s->n_chain > 0 || s->draw >= 0) && !s->greedy;
}

void
sampling_fini(struct sampling *s)
{
    free(s->chain);
    free(s->eos);
}
