/*
 * The vectors are golden/sampling.ndjson, mirostat.ndjson and dry.ndjson, made
 * with numpy in float64 and compared with HuggingFace's and llama.cpp's
 * samplers.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include <pipeformer/io.h>
#include <pipeformer/sample.h>

static const cJSON *
get(const cJSON *c, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(c, name);
}

static double
number(const cJSON *c, const char *name, double absent)
{
    const cJSON *v = get(c, name);

    return v ? v->valuedouble : absent;
}

static bool
close_to(double a, double b, double tolerance)
{
    return fabs(a - b) <= tolerance + tolerance * fabs(b);
}

/* Numbers, null being NaN; false if something else is among them. */
static bool
logits_of(const cJSON *list, float **logits, size_t *V)
{
    *V = 0;
    *logits = malloc(((size_t)cJSON_GetArraySize(list) + 1) * sizeof(float));
    assert_non_null(*logits);
    for (const cJSON *v = list->child; v; v = v->next) {
        if (!cJSON_IsNumber(v) && !cJSON_IsNull(v))
            return false;
        (*logits)[(*V)++] = cJSON_IsNull(v) ? NAN : (float)v->valuedouble;
    }
    return true;
}

/* A list of ids, with room for more; false if one is none. */
static bool
ids_of(const cJSON *list, uint32_t **ids, size_t *n)
{
    *n = 0;
    *ids = malloc(((size_t)cJSON_GetArraySize(list) + 100) * sizeof **ids);
    assert_non_null(*ids);
    for (const cJSON *v = list ? list->child : NULL; v; v = v->next) {
        if (v->valuedouble < 0)
            return false;
        (*ids)[(*n)++] = (uint32_t)v->valueint;
    }
    return true;
}

/* Calls fn for each line of a golden file; how many there are. */
static size_t
each_case(const char *name, void (*fn)(struct pf_sampler *, const cJSON *))
{
    struct pf_sampler *s; /* reused from case to case */
    char path[400], *text, *line, *next;
    size_t len, n = 0;

    snprintf(path, sizeof path, "%s/%s", PF_TEST_GOLDEN, name);
    assert_int_equal(pf_sampler_new(&s, NULL), PF_OK);
    assert_int_equal(pf_read_file(path, 1 << 24, &text, &len, NULL), PF_OK);
    for (line = text; *line; line = next) {
        cJSON *c;

        next = strchr(line, '\n');
        assert_non_null(next);
        *next++ = '\0';
        c = cJSON_Parse(line);
        assert_non_null(c);
        fn(s, c);
        cJSON_Delete(c);
        n++;
    }
    free(text);
    pf_sampler_free(s);
    return n;
}

static void
check_draws(struct pf_sampler *s, const cJSON *c)
{
    for (const cJSON *v = get(c, "draws")->child; v; v = v->next)
        assert_int_equal(pf_sampler_draw(s, get(v, "u")->valuedouble),
            get(v, "id")->valueint);
}

static void
check_ranks(struct pf_sampler *s, const cJSON *c)
{
    size_t n = pf_sampler_count(s), i = 0;
    uint32_t *ids = malloc((n + 1) * sizeof *ids);
    const cJSON *v = get(c, "ids")->child, *p = get(c, "probs")->child;

    assert_non_null(ids);
    assert_int_equal(pf_sampler_ranks(s, n, ids, NULL), PF_OK);
    for (; v; v = v->next, p = p->next, i++) {
        assert_true(i < n);
        assert_int_equal(ids[i], v->valueint);
        assert_true(close_to(pf_sampler_prob(s, ids[i]), p->valuedouble,
            1e-5));
    }
    assert_null(p);
    assert_int_equal(i, n);
    free(ids);
}

static struct pf_surroundings
surroundings(const cJSON *c, const uint32_t *prev, size_t n)
{
    size_t window = (size_t)number(c, "last_n", (double)n);

    if (window > n)
        window = n;
    return (struct pf_surroundings){ .prev = prev + n - window,
        .n_prev = window, .min_keep = (size_t)number(c, "min_keep", 0),
        .u_xtc = number(c, "xtc_u", 0) };
}

static void
golden_case(struct pf_sampler *s, const cJSON *c)
{
    const cJSON *count = get(c, "counts")->child, *v;
    struct pf_surroundings around;
    struct pf_step step;
    uint32_t *prev;
    float *logits;
    size_t V, n;

    assert_true(logits_of(get(c, "logits"), &logits, &V));
    assert_true(ids_of(get(c, "prev"), &prev, &n));
    around = surroundings(c, prev, n);
    assert_int_equal(pf_sampler_start(s, logits, V, NULL), PF_OK);
    for (v = get(c, "chain")->child; v; v = v->next, count = count->next) {
        assert_int_equal(pf_step_parse(&step, v->valuestring, NULL), PF_OK);
        assert_int_equal(pf_sampler_step(s, &step, &around, NULL), PF_OK);
        if (pf_sampler_count(s) != (size_t)count->valueint)
            print_error("%s: %s leaves %zu, not %d\n",
                get(c, "name")->valuestring, v->valuestring,
                pf_sampler_count(s), count->valueint);
        assert_int_equal(pf_sampler_count(s), count->valueint);
    }
    assert_null(count);
    check_draws(s, c);
    assert_int_equal(pf_sampler_best(s), get(c, "greedy")->valueint);
    check_ranks(s, c);
    check_draws(s, c);
    free(logits);
    free(prev);
}

static void
test_golden(void **ctx)
{
    (void)ctx;
    assert_int_equal(each_case("sampling.ndjson", golden_case), 142);
}

/* Something of it must be refused. */
static void
error_case(struct pf_sampler *s, const cJSON *c)
{
    struct pf_err err = { PF_OK, "" };
    struct pf_surroundings around;
    struct pf_step step;
    uint32_t *prev = NULL;
    float *logits = NULL;
    size_t V, n = 0;
    bool bad = !logits_of(get(c, "logits"), &logits, &V)
        || !ids_of(get(c, "prev"), &prev, &n);

    around = surroundings(c, prev, n);
    if (!bad) {
        bad = pf_sampler_start(s, logits, V, &err);
        for (const cJSON *v = get(c, "chain")->child; !bad && v; v = v->next)
            bad = pf_step_parse(&step, v->valuestring, &err)
                || pf_sampler_step(s, &step, &around, &err);
        if (!bad)
            print_error("%s: %s\n", get(c, "name")->valuestring,
                get(c, "why")->valuestring);
        assert_true(bad);
        assert_int_equal(err.status, PF_ERANGE);
        assert_true(err.msg[0]);
    }
    free(logits);
    free(prev);
}

static void
test_golden_errors(void **ctx)
{
    (void)ctx;
    assert_int_equal(each_case("sampling_errors.ndjson", error_case), 26);
}

static void
mirostat_case(struct pf_sampler *s, const cJSON *c)
{
    struct pf_step step = { PF_STEP_MIROSTAT, { number(c, "version", 0),
        number(c, "tau", 0), number(c, "eta", 0) } };
    struct pf_surroundings around = { .mu = number(c, "mu0", 0) };

    for (const cJSON *v = get(c, "steps")->child; v; v = v->next) {
        float *logits;
        uint32_t id;
        double p;
        size_t V;

        assert_true(logits_of(get(v, "logits"), &logits, &V));
        assert_int_equal(V, number(c, "n_vocab", 0));
        assert_int_equal(pf_sampler_start(s, logits, V, NULL), PF_OK);
        assert_int_equal(pf_sampler_step(s, &step, &around, NULL), PF_OK);
        assert_int_equal(pf_sampler_count(s), number(v, "kept", -1));
        id = pf_sampler_draw(s, number(v, "u", -1));
        assert_int_equal(id, number(v, "id", -1));
        p = pf_sampler_prob(s, id);
        assert_true(close_to(-log2(p), number(v, "surprise", -1), 1e-4));
        around.mu = pf_mirostat_mu(&step, around.mu, p);
        assert_true(close_to(around.mu, number(v, "mu", -1), 1e-4));
        free(logits);
    }
}

static void
test_mirostat(void **ctx)
{
    (void)ctx;
    assert_int_equal(each_case("mirostat.ndjson", mirostat_case), 10);
}

/* What the step has taken from each id, against the list of a case. */
static void
check_penalties(struct pf_sampler *s, const cJSON *list, const float *logits,
    size_t V)
{
    double after = pf_sampler_logsum(s);
    const cJSON *v = list->child;

    for (uint32_t id = 0; id < V; id++) {
        double z = log(pf_sampler_prob(s, id)) + after, penalty = 0;

        if (v && v->child->valueint == (int)id) {
            penalty = v->child->next->next->valuedouble;
            v = v->next;
        }
        if (pf_sampler_prob(s, id) > 0)
            assert_true(close_to((double)logits[id] - z, penalty, 1e-4));
        else
            assert_true(penalty > 60);
    }
    assert_null(v);
}

static void
dry_case(struct pf_sampler *s, const cJSON *c)
{
    struct pf_step step = { PF_STEP_DRY, { number(c, "multiplier", 0),
        number(c, "base", 0), number(c, "allowed_length", 0) } };
    struct pf_breakers *b;
    uint32_t *prev, *ids;
    size_t n, k;

    assert_int_equal(pf_breakers_new(&b, NULL), PF_OK);
    for (const cJSON *v = get(c, "breakers")->child; v; v = v->next) {
        assert_true(ids_of(v, &ids, &k));
        assert_int_equal(pf_breakers_add(b, ids, k, NULL), PF_OK);
        free(ids);
    }
    assert_true(ids_of(get(c, "prev"), &prev, &n));
    for (const cJSON *v = get(c, "steps")->child; v; v = v->next) {
        size_t window = number(c, "last_n", 0) < 0 ? n
            : (size_t)number(c, "last_n", 0), V;
        struct pf_surroundings around = { .breakers = b };
        float *logits;
        uint32_t id;

        window = window < n ? window : n;
        around.prev = prev + n - window;
        around.n_prev = window;
        assert_true(logits_of(get(v, "logits"), &logits, &V));
        assert_int_equal(pf_sampler_start(s, logits, V, NULL), PF_OK);
        assert_int_equal(pf_sampler_step(s, &step, &around, NULL), PF_OK);
        check_penalties(s, get(v, "penalties"), logits, V);
        assert_int_equal(pf_sampler_best(s), number(v, "greedy", -1));
        id = pf_sampler_draw(s, number(v, "u", -1));
        assert_int_equal(id, number(v, "id", -1));
        assert_true(close_to(pf_sampler_prob(s, id), number(v, "p", -1),
            1e-5));
        prev[n++] = id;
        free(logits);
    }
    free(prev);
    pf_breakers_free(b);
}

static void
test_dry(void **ctx)
{
    (void)ctx;
    assert_int_equal(each_case("dry.ndjson", dry_case), 15);
}

static void
test_errors(void **ctx)
{
    struct pf_sampler *s;
    struct pf_err err;

    (void)ctx;
    assert_int_equal(pf_sampler_new(&s, NULL), PF_OK);
    assert_int_equal(pf_sampler_start(s, (float[]){ 1, 2, NAN }, 3, &err),
        PF_ERANGE);
    assert_string_equal(err.msg, "logits: NaN at id 2");
    assert_int_equal(pf_sampler_start(s, (float[]){ 1, INFINITY }, 2, &err),
        PF_ERANGE);
    assert_string_equal(err.msg, "logits: +infinity at id 1");
    assert_int_equal(pf_sampler_start(s, (float[]){ -INFINITY, -NAN }, 2,
        &err), PF_ERANGE);
    assert_int_equal(pf_sampler_start(s, (float[]){ -INFINITY }, 1, &err),
        PF_ERANGE);
    assert_int_equal(pf_sampler_start(s, NULL, 0, &err), PF_ERANGE);
    assert_int_equal(pf_sampler_start(s, (float[]){ -INFINITY, 0 }, 2, NULL),
        PF_OK);
    assert_int_equal(pf_sampler_count(s), 1);
    assert_int_equal(pf_sampler_draw(s, 0.999), 1);
    assert_false(pf_sampler_has(s, 0));
    assert_false(pf_sampler_has(s, 2));
    assert_true(pf_sampler_prob(s, 7) == 0);
    pf_sampler_free(s);
    pf_sampler_free(NULL);
}

static void
test_allow(void **ctx)
{
    const float logits[] = { 1, 2, -INFINITY, 4, 5 };
    struct pf_sampler *s;
    struct pf_err err;

    (void)ctx;
    assert_int_equal(pf_sampler_new(&s, NULL), PF_OK);
    assert_int_equal(pf_sampler_start(s, logits, 5, NULL), PF_OK);
    assert_int_equal(pf_sampler_allow(s, (uint32_t[]){ 3, 0, 3, 2 }, 4, &err),
        PF_OK);
    assert_int_equal(pf_sampler_count(s), 2);
    assert_int_equal(pf_sampler_best(s), 3);
    assert_true(close_to(pf_sampler_prob(s, 0), 1 / (1 + exp(3)), 1e-6));
    assert_int_equal(pf_sampler_allow(s, (uint32_t[]){ 1, 4 }, 2, &err),
        PF_ERANGE);
    assert_int_equal(pf_sampler_allow(s, NULL, 0, &err), PF_ERANGE);
    assert_non_null(strstr(err.msg, "allow"));
    assert_int_equal(pf_sampler_allow(s, (uint32_t[]){ 0, 5 }, 2, &err),
        PF_ERANGE);
    assert_non_null(strstr(err.msg, "id 5"));
    pf_sampler_free(s);
}

static void
step_on(struct pf_sampler *s, const float *logits, size_t V, const char *text)
{
    struct pf_surroundings around = { .prev = (uint32_t[]){ 0, 1, 1 },
        .n_prev = 3 };
    struct pf_step step;

    assert_int_equal(pf_sampler_start(s, logits, V, NULL), PF_OK);
    assert_int_equal(pf_step_parse(&step, text, NULL), PF_OK);
    assert_int_equal(pf_sampler_step(s, &step, &around, NULL), PF_OK);
}

/* Logits whose spread is beyond exp(): a probability of 0 is never drawn. */
static void
test_extremes(void **ctx)
{
    const float wide[] = { -3e38f, 3e38f, -INFINITY, 3e38f, 0 };
    const double almost = 1 - 0x1p-53;
    static const char *const chains[] = { "temp:1", "temp:1e-9", "temp:1e9",
        "top-p:0.9", "typical:0.9", "min-p:0.1", "top-n-sigma:1", "eta:0.1",
        "epsilon:0.1", "dynatemp:0.1:2", "xtc:1:0.1", "repeat-penalty:1e9",
        "repeat-penalty:1e-9", "frequency-penalty:1e9", "dry:1e9:10:1",
        "mirostat:1", "mirostat:2", "logit-bias:1:-1e30" };
    struct pf_sampler *s;

    (void)ctx;
    assert_int_equal(pf_sampler_new(&s, NULL), PF_OK);
    for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
        double sum = 0;

        step_on(s, wide, 5, chains[i]);
        for (uint32_t id = 0; id < 5; id++)
            sum += pf_sampler_prob(s, id);
        assert_true(close_to(sum, 1, 1e-9));
        assert_true(pf_sampler_prob(s, pf_sampler_draw(s, almost)) > 0);
        assert_true(pf_sampler_prob(s, pf_sampler_draw(s, 0)) > 0);
    }
    assert_int_equal(pf_sampler_start(s, wide, 5, NULL), PF_OK);
    assert_int_equal(pf_sampler_count(s), 4);
    assert_int_equal(pf_sampler_draw(s, 0.49), 1);
    assert_int_equal(pf_sampler_draw(s, 0.5), 3);
    assert_int_equal(pf_sampler_draw(s, almost), 3);
    assert_true(pf_sampler_prob(s, 4) == 0);
    /* Nor where rounding leaves the sum of all below u times their total. */
    for (int round = 0; round < 300; round++) {
        float z[300];

        for (int i = 0; i < 300; i++)
            z[i] = i % 2 ? -1e30f : (float)((i * 7919 + round * 31) % 1000)
                / 300;
        assert_int_equal(pf_sampler_start(s, z, 300, NULL), PF_OK);
        assert_int_equal(pf_sampler_draw(s, almost) % 2, 0);
    }
    /* As cold as it gets: greedy, and no NaN. */
    step_on(s, (float[]){ 1, 3, 3, -3 }, 4, "temp:0");
    assert_int_equal(pf_sampler_draw(s, almost), 1);
    assert_true(pf_sampler_prob(s, 1) == 1);
    assert_int_equal(pf_sampler_start(s, (float[]){ 1, 3, 2 }, 3, NULL),
        PF_OK);
    for (int i = 0; i < 40; i++) {
        struct pf_step cold = { PF_STEP_TEMP, { 1e-9, 0, 0 } };
        struct pf_surroundings around = { 0 };

        assert_int_equal(pf_sampler_step(s, &cold, &around, NULL), PF_OK);
        assert_int_equal(pf_sampler_draw(s, almost), 1);
    }
    /* -0 is 0, a tie goes to the lower id. */
    step_on(s, (float[]){ -0.0f, 0, -0.0f }, 3, "top-k:1");
    assert_int_equal(pf_sampler_best(s), 0);
    pf_sampler_free(s);
}

static void
test_logsum(void **ctx)
{
    struct pf_sampler *s;

    (void)ctx;
    assert_int_equal(pf_sampler_new(&s, NULL), PF_OK);
    assert_int_equal(pf_sampler_start(s, (float[]){ 0, 0, 0, 0 }, 4, NULL),
        PF_OK);
    assert_true(close_to(pf_sampler_logsum(s), log(4), 1e-7));
    assert_int_equal(pf_sampler_start(s, (float[]){ 1000, 1000, -1000,
        -INFINITY }, 4, NULL), PF_OK);
    assert_true(close_to(pf_sampler_logsum(s), 1000 + log(2), 1e-9));
    step_on(s, (float[]){ 2, 0 }, 2, "temp:2");
    assert_true(close_to(pf_sampler_logsum(s), log(exp(1) + 1), 1e-7));
    pf_sampler_free(s);
}

static void
test_parse(void **ctx)
{
    static const char *const good[] = { "temp:0", "temp:1e-9", "temp:1e9",
        "dynatemp:0:2", "dynatemp:1:1:0", "top-k:0", "top-k:2147483647",
        "top-p:0", "top-p:1", "min-p:1", "typical:0", "top-n-sigma:0",
        "epsilon:0", "eta:0.999", "xtc:0:0", "xtc:1:1", "repeat-penalty:0.5",
        "frequency-penalty:-2", "presence-penalty:-0.5", "logit-bias:0:-inf",
        "logit-bias:2147483647:-1e30", "dry:0", "dry:1:1:1", "dry:0.8:1.75",
        "mirostat:1", "mirostat:2:0:0" };
    static const char *const bad[] = { "", ":", "temp", "temp:", "temp:-1",
        "temp:nan", "temp:inf", "temp:1e-10", "temp:0x1", "temp:+1",
        "temp: 1", "temp:1 ", "temp:1:2", "Temp:1", "dynatemp:1",
        "dynatemp:2:1", "dynatemp:0:1:-1", "dynatemp:0:1:1:1", "top-k:-1",
        "top-k:1.5", "top-k:2147483648", "top-p:-0.1", "top-p:1.5",
        "min-p:1.1", "typical:2", "top-n-sigma:-1", "epsilon:1", "eta:1",
        "xtc:0.5", "xtc:2:0.1", "xtc:0.5:-1", "repeat-penalty:0",
        "repeat-penalty:-1", "frequency-penalty:inf", "logit-bias:1",
        "logit-bias:1:inf", "logit-bias:1:nan", "logit-bias:-1:1",
        "logit-bias:0.5:1", "dry:-1", "dry:1:0.5", "dry:1:2:0", "dry:1:2:1.5",
        "mirostat:0", "mirostat:3", "mirostat:1.5", "mirostat:2:-1",
        "mirostat:2:1:1:1", "mirostat:2:", "top-q:1",
        "temp:11111111111111111111111111111111111111111111111111111111111111"
        "111111111111" };
    struct pf_step step;
    struct pf_err err;

    (void)ctx;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(pf_step_parse(&step, good[i], &err), PF_OK);
        assert_int_equal(strncmp(good[i], pf_step_name(step.kind),
            strcspn(good[i], ":")), 0);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err.msg[0] = '\0';
        assert_int_equal(pf_step_parse(&step, bad[i], &err), PF_ERANGE);
        assert_true(err.msg[0]);
    }
    assert_int_equal(pf_step_parse(&step, "dry:0.5", &err), PF_OK);
    assert_true(step.x[0] == 0.5 && step.x[1] == 1.75 && step.x[2] == 2);
    assert_true(pf_step_looks_back(&step));
    assert_int_equal(pf_step_parse(&step, "repeat-penalty:1", &err), PF_OK);
    assert_false(pf_step_looks_back(&step));
}

static void
test_presets(void **ctx)
{
    static const char *const names[] = { "hf", "llama.cpp" };
    struct pf_step step;

    (void)ctx;
    for (size_t k = 0; k < 2; k++) {
        assert_non_null(pf_preset_step(names[k], 0));
        for (size_t i = 0; pf_preset_step(names[k], i); i++)
            assert_int_equal(pf_step_parse(&step, pf_preset_step(names[k], i),
                NULL), PF_OK);
    }
    assert_null(pf_preset_step("x", 0));
    assert_null(pf_preset_step("", 0));
    assert_null(pf_preset_step("hf", 1000));
}

/* A logit that a penalty takes out of range stays finite; one banned goes. */
static void
test_penalties(void **ctx)
{
    const float z[] = { 3e38f, -3e38f, 1 };
    struct pf_surroundings around = { .prev = (uint32_t[]){ 0, 9 },
        .n_prev = 2 };
    struct pf_step step;
    struct pf_sampler *s;
    struct pf_err err;

    (void)ctx;
    assert_int_equal(pf_sampler_new(&s, NULL), PF_OK);
    step_on(s, z, 3, "repeat-penalty:1e-9");
    assert_int_equal(pf_sampler_count(s), 3);
    step_on(s, z, 3, "repeat-penalty:1e9");
    assert_int_equal(pf_sampler_count(s), 3);
    step_on(s, z, 3, "logit-bias:0:-inf");
    assert_int_equal(pf_sampler_count(s), 2);
    assert_int_equal(pf_sampler_best(s), 2);
    assert_int_equal(pf_step_parse(&step, "presence-penalty:1", NULL), PF_OK);
    for (int i = 0; i < 2; i++) { /* and again: nothing is left behind */
        assert_int_equal(pf_sampler_start(s, z, 3, NULL), PF_OK);
        assert_int_equal(pf_sampler_step(s, &step, &around, &err), PF_ERANGE);
        assert_string_equal(err.msg, "ids: 9 came before, but there are 3 "
            "logits");
    }
    assert_int_equal(pf_step_parse(&step, "frequency-penalty:1", NULL),
        PF_OK);
    around.prev = (uint32_t[]){ 2, 2 };
    assert_int_equal(pf_sampler_start(s, (float[]){ 0, 0, 2 }, 3, NULL),
        PF_OK);
    assert_int_equal(pf_sampler_step(s, &step, &around, &err), PF_OK);
    assert_true(close_to(pf_sampler_prob(s, 2), 1 / 3.0, 1e-6));
    pf_sampler_free(s);
}

/* Breakers of several ids, and the end of the last one. */
static void
test_breakers(void **ctx)
{
    static const uint32_t prev[] = { 1, 2, 3, 4, 9, 8, 3, 4 };
    struct pf_surroundings around = { .prev = prev, .n_prev = 8 };
    const float z[10] = { 0 };
    struct pf_breakers *b;
    struct pf_step step;
    struct pf_sampler *s;

    (void)ctx;
    assert_int_equal(pf_sampler_new(&s, NULL), PF_OK);
    assert_int_equal(pf_step_parse(&step, "dry:1:2:1", NULL), PF_OK);
    for (int with = 0; with < 3; with++) {
        assert_int_equal(pf_breakers_new(&b, NULL), PF_OK);
        around.breakers = b;
        if (with == 1)
            pf_breakers_add(b, (uint32_t[]){ 8, 3 }, 2, NULL);
        if (with == 2)
            pf_breakers_add(b, (uint32_t[]){ 9 }, 1, NULL);
        assert_int_equal(pf_sampler_start(s, z, 10, NULL), PF_OK);
        assert_int_equal(pf_sampler_step(s, &step, &around, NULL), PF_OK);
        /* "3 4" stood before 9: a match of 2, or of 1 behind the breaker. */
        assert_true(close_to(log(pf_sampler_prob(s, 0)
            / pf_sampler_prob(s, 9)), with == 0 ? 2 : with == 1 ? 1 : 0,
            1e-5));
        pf_breakers_free(b);
    }
    pf_sampler_free(s);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_golden_errors),
        cmocka_unit_test(test_mirostat),
        cmocka_unit_test(test_dry),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_allow),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_logsum),
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_presets),
        cmocka_unit_test(test_penalties),
        cmocka_unit_test(test_breakers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
