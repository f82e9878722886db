/*
 * The vectors are golden/sampling.ndjson, made with numpy in float64 and
 * compared with HuggingFace's and llama.cpp's samplers: those whose chain has
 * only the steps that are there.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
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

/* "top-p:0.9"; false for a step of another kind. */
static bool
parse_step(const char *s, struct pf_step *step)
{
    static const struct {
        const char *name;
        enum pf_step_kind kind;
    } kinds[] = { { "temp:", PF_STEP_TEMP }, { "top-k:", PF_STEP_TOP_K },
        { "top-p:", PF_STEP_TOP_P } };

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t n = strlen(kinds[i].name);

        if (strncmp(s, kinds[i].name, n) == 0) {
            step->kind = kinds[i].kind;
            step->x = atof(s + n);
            return true;
        }
    }
    return false;
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

/* Whether the chain has only steps that are known. */
static bool
known(const cJSON *c)
{
    struct pf_step step;

    for (const cJSON *s = get(c, "chain")->child; s; s = s->next)
        if (!parse_step(s->valuestring, &step))
            return false;
    return !get(c, "prev") && !get(c, "min_keep") && !get(c, "xtc_u");
}

static void
check_case(struct pf_sampler *s, const cJSON *c)
{
    const cJSON *count = get(c, "counts")->child, *v, *p;
    struct pf_step step;
    float *logits;
    size_t V, i;

    assert_true(logits_of(get(c, "logits"), &logits, &V));
    assert_int_equal(pf_sampler_start(s, logits, V, NULL), PF_OK);
    for (v = get(c, "chain")->child; v; v = v->next, count = count->next) {
        parse_step(v->valuestring, &step);
        pf_sampler_step(s, &step);
        assert_int_equal(s->n, count->valueint);
    }
    assert_null(count);
    /* The draws first: they ask for few ranks, the list for all. */
    for (v = get(c, "draws")->child; v; v = v->next)
        assert_int_equal(pf_sampler_draw(s, get(v, "u")->valuedouble),
            get(v, "id")->valueint);
    assert_int_equal(pf_sampler_rank(s, 0)->id, get(c, "greedy")->valueint);
    v = get(c, "ids")->child;
    p = get(c, "probs")->child;
    for (i = 0; v; v = v->next, p = p->next, i++) {
        assert_true(i < s->n);
        assert_int_equal(pf_sampler_rank(s, i)->id, v->valueint);
        assert_true(fabs(pf_sampler_prob(s, i) - p->valuedouble)
            <= 1e-5 + 1e-5 * p->valuedouble);
    }
    assert_null(p);
    assert_int_equal(i, s->n);
    for (v = get(c, "draws")->child; v; v = v->next)
        assert_int_equal(pf_sampler_draw(s, get(v, "u")->valuedouble),
            get(v, "id")->valueint);
    free(logits);
}

/* Calls fn for each line of a golden file; how many it took. */
static size_t
each_case(const char *path, bool (*fn)(struct pf_sampler *, const cJSON *))
{
    struct pf_sampler s = PF_SAMPLER_INIT; /* reused from case to case */
    char *text, *line, *next;
    size_t len, n = 0;

    assert_int_equal(pf_read_file(path, 1 << 24, &text, &len, NULL), PF_OK);
    for (line = text; *line; line = next) {
        cJSON *c;

        next = strchr(line, '\n');
        assert_non_null(next);
        *next++ = '\0';
        c = cJSON_Parse(line);
        assert_non_null(c);
        n += fn(&s, c);
        cJSON_Delete(c);
    }
    free(text);
    pf_sampler_fini(&s);
    return n;
}

static bool
golden_case(struct pf_sampler *s, const cJSON *c)
{
    if (!known(c))
        return false;
    check_case(s, c);
    return true;
}

static void
test_golden(void **ctx)
{
    (void)ctx;
    assert_int_equal(each_case(PF_TEST_GOLDEN "/sampling.ndjson",
        golden_case), 61);
}

/* Of the error cases, those that the logits alone decide. */
static bool
error_case(struct pf_sampler *s, const cJSON *c)
{
    struct pf_err err = { PF_OK, "" };
    const char *step = get(c, "chain")->child->valuestring;
    float *logits;
    size_t V;

    if (strcmp(step, "temp:1") != 0 || !logits_of(get(c, "logits"), &logits,
            &V)) {
        if (strcmp(step, "temp:1") == 0)
            free(logits);
        return false;
    }
    assert_int_equal(pf_sampler_start(s, logits, V, &err), PF_ERANGE);
    assert_int_equal(err.status, PF_ERANGE);
    assert_true(err.msg[0]);
    free(logits);
    return true;
}

static void
test_golden_errors(void **ctx)
{
    (void)ctx;
    assert_int_equal(each_case(PF_TEST_GOLDEN "/sampling_errors.ndjson",
        error_case), 4);
}

static void
test_errors(void **ctx)
{
    struct pf_sampler s = PF_SAMPLER_INIT;
    struct pf_err err;

    (void)ctx;
    assert_int_equal(pf_sampler_start(&s, (float[]){ 1, 2, NAN }, 3, &err),
        PF_ERANGE);
    assert_non_null(strstr(err.msg, "NaN"));
    assert_non_null(strstr(err.msg, "2"));
    assert_int_equal(pf_sampler_start(&s, (float[]){ 1, INFINITY }, 2, &err),
        PF_ERANGE);
    assert_non_null(strstr(err.msg, "1"));
    assert_int_equal(pf_sampler_start(&s, (float[]){ -INFINITY, -NAN }, 2,
        &err), PF_ERANGE);
    assert_int_equal(pf_sampler_start(&s, NULL, 0, &err), PF_ERANGE);
    assert_int_equal(pf_sampler_start(&s, (float[]){ -INFINITY, 0 }, 2, NULL),
        PF_OK);
    assert_int_equal(s.n, 1);
    assert_int_equal(pf_sampler_draw(&s, 0.999), 1);
    pf_sampler_fini(&s);
}

static uint64_t
next_random(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    return *s ^= *s << 17;
}

static int
by_rank(const void *a, const void *b)
{
    const struct pf_candidate *x = a, *y = b;

    return x->z != y->z ? (x->z > y->z ? -1 : 1)
        : (x->id > y->id) - (x->id < y->id);
}

/* Random chains against sorting everything at each step. */
static void
test_against_sorting(void **ctx)
{
    enum { MOST = 300 };
    struct pf_sampler s = PF_SAMPLER_INIT;
    struct pf_candidate c[MOST];
    float logits[MOST];
    uint64_t r = 7;

    (void)ctx;
    for (int round = 0; round < 3000; round++) {
        size_t V = 1 + (next_random(&r) >> 32) % MOST, n = 0;
        double u = (double)(next_random(&r) >> 11) * 0x1p-53, sum = 0;
        double total = 0;
        uint32_t want = 0;

        for (size_t i = 0; i < V; i++) {
            uint32_t k = (uint32_t)(next_random(&r) >> 32);

            logits[i] = k % 11 == 0 && i ? -INFINITY
                : round % 2 ? (float)(k % 1000) / 100 : (float)(k % 5);
            if (logits[i] != -INFINITY)
                c[n++] = (struct pf_candidate){ (double)logits[i],
                    (uint32_t)i };
        }
        qsort(c, n, sizeof *c, by_rank);
        assert_int_equal(pf_sampler_start(&s, logits, V, NULL), PF_OK);
        assert_int_equal(s.n, n);
        for (int steps = (int)((next_random(&r) >> 32) % 4); steps > 0;
            steps--) {
            struct pf_step step = { (enum pf_step_kind)
                ((next_random(&r) >> 32) % 3), 0 };
            uint32_t k = (uint32_t)(next_random(&r) >> 32);
            double above = 0;
            size_t i;

            switch (step.kind) {
            case PF_STEP_TEMP:
                step.x = 0.25 * (1 + k % 8);
                for (i = 0; i < n; i++)
                    c[i].z /= step.x;
                break;
            case PF_STEP_TOP_K:
                step.x = k % 60;
                n = step.x && step.x < (double)n ? (size_t)step.x : n;
                break;
            case PF_STEP_TOP_P: /* odd numbers: no tie with a sum */
                step.x = 0.0137 + (double)(k % 97) / 98.7;
                for (total = 0, i = 0; i < n; i++)
                    total += exp(c[i].z - c[0].z);
                for (i = 0; i < n && above < step.x * total; i++)
                    above += exp(c[i].z - c[0].z);
                n = i;
            }
            pf_sampler_step(&s, &step);
            assert_int_equal(s.n, n);
            if (k % 3 == 0) /* looks between the steps change nothing */
                pf_sampler_rank(&s, k % n);
        }
        for (size_t i = total = 0; i < n; i++)
            total += exp(c[i].z - c[0].z);
        for (size_t i = 0; i < n; i++) {
            sum += exp(c[i].z - c[0].z);
            want = c[i].id;
            if (sum > u * total)
                break;
        }
        if (fabs(sum - u * total) > 1e-9)
            assert_int_equal(pf_sampler_draw(&s, u), want);
        for (size_t i = n; i-- > 0;) {
            assert_int_equal(pf_sampler_rank(&s, i)->id, c[i].id);
            assert_true(fabs(pf_sampler_prob(&s, i)
                - exp(c[i].z - c[0].z) / total) < 1e-12);
        }
    }
    pf_sampler_fini(&s);
}

/* Logits whose spread is beyond exp(): a probability of 0 is never drawn. */
static void
test_extremes(void **ctx)
{
    struct pf_sampler s = PF_SAMPLER_INIT;
    const float logits[] = { -3e38f, 3e38f, -INFINITY, 3e38f, 0 };
    const double almost = 1 - 0x1p-53;
    uint64_t r = 3;

    (void)ctx;
    assert_int_equal(pf_sampler_start(&s, logits, 5, NULL), PF_OK);
    assert_int_equal(s.n, 4);
    assert_int_equal(pf_sampler_draw(&s, 0), 1);
    assert_int_equal(pf_sampler_draw(&s, 0.49), 1);
    assert_int_equal(pf_sampler_draw(&s, 0.5), 3);
    assert_int_equal(pf_sampler_draw(&s, almost), 3);
    assert_true(pf_sampler_prob(&s, 2) == 0);
    pf_sampler_step(&s, &(struct pf_step){ PF_STEP_TOP_P, 1 });
    assert_int_equal(s.n, 4);
    /* Nor where rounding leaves the sum of all below u times their total. */
    for (int round = 0; round < 300; round++) {
        float z[300];

        for (int i = 0; i < 300; i++)
            z[i] = i % 2 ? -1e30f : (float)(next_random(&r) >> 44) / 1e6f;
        assert_int_equal(pf_sampler_start(&s, z, 300, NULL), PF_OK);
        assert_int_equal(pf_sampler_draw(&s, almost) % 2, 0);
    }
    /* Near 0, a temperature is greedy; it does not overflow into NaN. */
    assert_int_equal(pf_sampler_start(&s, (float[]){ 1, 3, 2, -3 }, 4, NULL),
        PF_OK);
    pf_sampler_step(&s, &(struct pf_step){ PF_STEP_TEMP, 1e-310 });
    assert_int_equal(pf_sampler_draw(&s, 0), 1);
    assert_int_equal(pf_sampler_draw(&s, almost), 1);
    assert_true(pf_sampler_prob(&s, 0) == 1);
    pf_sampler_fini(&s);
}

static void
test_logprob(void **ctx)
{
    const float logits[] = { 0, 0, 0, 0 }, some[] = { 1, -INFINITY, 2 };
    const float large[] = { 1000, 1000, -1000 };

    (void)ctx;
    for (uint32_t i = 0; i < 4; i++)
        assert_true(fabs(pf_logprob(logits, 4, i) + log(4)) < 1e-12);
    assert_true(fabs(pf_logprob(some, 3, 0) + log1p(exp(1))) < 1e-12);
    assert_true(fabs(pf_logprob(some, 3, 2) + log1p(exp(-1))) < 1e-12);
    assert_true(pf_logprob(some, 3, 1) == -INFINITY);
    assert_true(fabs(pf_logprob(large, 3, 0) + log(2)) < 1e-12);
    assert_true(fabs(pf_logprob(large, 3, 2) + 2000 + log(2)) < 1e-9);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_golden_errors),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_against_sorting),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_logprob),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
