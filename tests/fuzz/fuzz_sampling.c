/*
 * A chain, a line a step, a zero byte, then logits as they lie in memory, of
 * which the first bytes also serve as ids before.  Whatever is not refused
 * leaves candidates whose probabilities sum to 1, and draws one of them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/sample.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 1000 };

static void
check(struct pf_sampler *s, size_t V)
{
    static const double us[] = { 0, 0.25, 0.5, 1 - 0x1p-53 };
    static uint32_t ids[MOST];
    size_t n = pf_sampler_count(s);
    double sum = 0;

    if (n == 0 || n > V || !isfinite(pf_sampler_logsum(s)))
        abort();
    for (uint32_t id = 0; id < V; id++)
        sum += pf_sampler_prob(s, id);
    if (!(fabs(sum - 1) < 1e-6))
        abort();
    for (size_t i = 0; i < sizeof us / sizeof *us; i++)
        if (!(pf_sampler_prob(s, pf_sampler_draw(s, us[i])) > 0))
            abort();
    if (pf_sampler_ranks(s, n, ids, NULL))
        abort();
    if (ids[0] != pf_sampler_best(s) || ids[0] != pf_sampler_draw(s, 0))
        abort();
    for (size_t i = 1; i < n; i++)
        if (pf_sampler_prob(s, ids[i])
            > pf_sampler_prob(s, ids[i - 1]) * 1.0001)
            abort();
}

static void
run(struct pf_sampler *s, char *chain, const float *logits, size_t V,
    struct pf_surroundings *around)
{
    char *line, *rest = chain;
    struct pf_step step;
    struct pf_err err;

    if (pf_sampler_start(s, logits, V, &err))
        return;
    check(s, V);
    while ((line = rest) && *line) {
        rest = strchr(line, '\n');
        if (rest)
            *rest++ = '\0';
        if (pf_step_parse(&step, line, &err))
            continue;
        if (pf_sampler_step(s, &step, around, &err))
            return;
        check(s, V);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    size_t len = zero ? (size_t)(zero - data) : size;
    size_t V = zero ? (size - len - 1) / sizeof(float) : 0;
    struct pf_surroundings around = { .min_keep = size % 3, .u_xtc = 0.25,
        .mu = (double)size / 100 };
    struct pf_breakers *b;
    struct pf_sampler *s;
    float logits[MOST];
    uint32_t prev[64];
    char *chain = malloc(len + 1);

    V = V < MOST ? V : MOST;
    if (!chain || pf_sampler_new(&s, NULL) || pf_breakers_new(&b, NULL))
        abort();
    memcpy(chain, data, len);
    chain[len] = '\0';
    if (V)
        memcpy(logits, zero + 1, V * sizeof *logits);
    for (; around.n_prev < 64 && around.n_prev < V; around.n_prev++)
        prev[around.n_prev] = zero[1 + around.n_prev] % (V + (size % 50 == 0));
    around.prev = prev;
    if (around.n_prev > 2 && (pf_breakers_add(b, prev, 1, NULL)
            || pf_breakers_add(b, prev + 1, 2, NULL)))
        abort();
    around.breakers = size % 2 ? b : NULL;
    run(s, chain, logits, V, &around);
    pf_breakers_free(b);
    pf_sampler_free(s);
    free(chain);
    return 0;
}
