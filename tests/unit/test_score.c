#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/score.h>

#define NEAR(a, b) assert_true(fabs((a) - (b)) <= 1e-12)

static void
test_row(void **ctx)
{
    const float z[] = { 1, 3, 2, 3, -INFINITY };
    double sum = exp(1 - 3) + 1 + exp(2 - 3) + 1, p;
    size_t rank;

    (void)ctx;
    assert_int_equal(pf_score_row(z, 5, 1, &p, &rank, NULL), PF_OK);
    NEAR(p, -log(sum));
    assert_int_equal(rank, 0);
    assert_int_equal(pf_score_row(z, 5, 3, &p, &rank, NULL), PF_OK);
    NEAR(p, -log(sum));
    assert_int_equal(rank, 1); /* of equal ones the lower id is first */
    assert_int_equal(pf_score_row(z, 5, 0, &p, &rank, NULL), PF_OK);
    NEAR(p, -2 - log(sum));
    assert_int_equal(rank, 3);
    assert_int_equal(pf_score_row(z, 5, 4, &p, &rank, NULL), PF_OK);
    assert_true(p == -INFINITY);
    assert_int_equal(rank, 4);
    assert_int_equal(pf_score_row(z, 1, 0, &p, &rank, NULL), PF_OK);
    assert_true(p == 0 && rank == 0);
}

/* All lengths across the sixteens, a maximum or a fault in every place. */
static void
test_lengths(void **ctx)
{
    float z[70];
    double p;
    size_t rank;
    struct pf_err err;
    char place[20];

    (void)ctx;
    for (size_t V = 1; V <= 70; V++) {
        for (size_t i = 0; i < V; i++)
            z[i] = -2;
        for (size_t i = 0; i < V; i++) {
            z[i] = 300;
            assert_int_equal(pf_score_row(z, V, (uint32_t)i, &p, &rank, NULL),
                PF_OK);
            NEAR(p, 0);
            assert_int_equal(rank, 0);
            z[i] = i % 2 ? NAN : INFINITY;
            assert_int_equal(pf_score_row(z, V, 0, &p, &rank, &err),
                PF_ERANGE);
            sprintf(place, "at id %zu", i);
            assert_non_null(strstr(err.msg, place));
            assert_non_null(strstr(err.msg, i % 2 ? "NaN" : "+inf"));
            z[i] = -2;
        }
    }
}

static void
test_bad_rows(void **ctx)
{
    const float none[] = { -INFINITY, -INFINITY };
    double p;
    size_t rank;

    (void)ctx;
    assert_int_equal(pf_score_row(none, 2, 0, &p, &rank, NULL), PF_ERANGE);
    assert_int_equal(pf_score_row(none, 0, 0, &p, &rank, NULL), PF_ERANGE);
    assert_int_equal(pf_score_row((float[]){ 1, 2 }, 2, 2, &p, &rank, NULL),
        PF_ERANGE);
    /* Huge, and far apart. */
    assert_int_equal(pf_score_row((float[]){ 3e38f, -3e38f }, 2, 1, &p, &rank,
        NULL), PF_OK);
    assert_true(p < -5e38 && isfinite(p));
}

/* A scorer and what it says to lines of NDJSON. */
struct bench {
    struct pf_scorer *s;
    struct pf_record rec;
    struct pf_reader reader;
    struct pf_score_sum sum;
    struct pf_err err;
};

static void
start(struct bench *b, size_t mem)
{
    *b = (struct bench){ .rec = PF_RECORD_INIT, .reader = PF_READER_INIT };
    assert_int_equal(pf_scorer_new(&b->s, mem, NULL), PF_OK);
}

static void
stop(struct bench *b)
{
    pf_scorer_free(b->s);
    pf_record_fini(&b->rec);
    pf_reader_fini(&b->reader);
}

static enum pf_status
take(struct bench *b, const char *line)
{
    pf_record_clear(&b->rec);
    assert_int_equal(pf_record_parse(&b->reader, &b->rec, line, strlen(line),
        &b->err), PF_OK);
    if (pf_record_is_mark(&b->rec))
        return pf_scorer_end(b->s, &b->rec, &b->err);
    return pf_scorer_score(b->s, &b->rec, &b->sum, &b->err);
}

/* It is scored, and these are the ranks. */
static void
ranks(struct bench *b, const char *line, const char *want)
{
    const struct pf_field *f;

    assert_int_equal(take(b, line), PF_OK);
    f = pf_record_field(&b->rec, "ranks");
    assert_non_null(f);
    assert_int_equal(f->len, strlen(want));
    assert_memory_equal(f->text, want, f->len);
}

/* It is refused, and this is in the message. */
static void
refused(struct bench *b, const char *line, enum pf_status st,
    const char *words)
{
    assert_int_equal(take(b, line), st);
    if (!strstr(b->err.msg, words))
        fail_msg("%s: lacks '%s'", b->err.msg, words);
    assert_null(pf_record_field(&b->rec, "ranks"));
}

/* Rows whose best ids are 0, 1, 2. */
#define R0 "[2,1,0]"
#define R1 "[0,2,1]"
#define R2 "[1,0,2]"

static void
test_record(void **ctx)
{
    struct bench b;
    const struct pf_field *f;
    double sum = 1 + exp(-1) + exp(-2);

    (void)ctx;
    start(&b, 1 << 20);
    ranks(&b, "{\"x\":7,\"logits\":[" R0 "," R1 "," R2 "],\"ids\":[0,0,2]}",
        "[0,1]");
    assert_int_equal(b.sum.n, 2);
    NEAR(b.sum.nll, 1 + 2 * log(sum));
    f = pf_record_field(&b.rec, "n");
    assert_true(f && f->len == 1 && f->text[0] == '2');
    f = pf_record_field(&b.rec, "bits");
    assert_non_null(f);
    NEAR(strtod(f->text, NULL), (1 + 2 * log(sum)) / log(2));
    f = pf_record_field(&b.rec, "bits_per_token");
    NEAR(strtod(f->text, NULL), (1 + 2 * log(sum)) / log(4));
    f = pf_record_field(&b.rec, "perplexity");
    NEAR(strtod(f->text, NULL), exp(.5 + log(sum)));
    /* Nothing to score. */
    ranks(&b, "{\"logits\":[" R0 "],\"ids\":[1]}", "[]");
    f = pf_record_field(&b.rec, "perplexity");
    assert_true(f->len == 4 && memcmp(f->text, "null", 4) == 0);
    ranks(&b, "{\"logits\":" R0 ",\"ids\":[1]}", "[]"); /* [V] is [1, V] */
    ranks(&b, "{\"logits\":[],\"ids\":[]}", "[]");
    /* Only rows that are used must be numbers. */
    ranks(&b, "{\"logits\":[" R1 ",[null,1e999,0]],\"ids\":[0,1]}", "[0]");
    stop(&b);
}

static void
test_shapes(void **ctx)
{
    struct bench b;

    (void)ctx;
    start(&b, 1 << 20);
    refused(&b, "{\"ids\":[1]}", PF_ESHAPE, "no logits");
    refused(&b, "{\"logits\":[" R0 "]}", PF_ESHAPE, "no ids");
    refused(&b, "{\"logits\":[" R0 "],\"ids\":[1,2]}", PF_ESHAPE,
        "1 row for 2 ids; unembed -A");
    refused(&b, "{\"logits\":[" R0 "," R0 "],\"ids\":[1]}", PF_ESHAPE,
        "2 rows for 1 id;");
    refused(&b, "{\"logits\":[[" R0 "]],\"ids\":[1]}", PF_ESHAPE, "[1, 1, 3]");
    refused(&b, "{\"logits\":[" R0 "],\"ids\":[3]}", PF_ERANGE, "3 at 0");
    refused(&b, "{\"logits\":[[null,1,2]," R0 "],\"ids\":[0,1]}", PF_ERANGE,
        "NaN at id 0, in row 0");
    refused(&b, "{\"overlap\":-1,\"logits\":[" R0 "],\"ids\":[1]}", PF_ERANGE,
        "overlap");
    refused(&b, "{\"overlap\":\"x\",\"logits\":[" R0 "],\"ids\":[1]}",
        PF_EFORMAT, "overlap");
    stop(&b);
}

static void
test_follows(void **ctx)
{
    struct bench b;

    (void)ctx;
    start(&b, 1 << 20);
    ranks(&b, "{\"seq\":1,\"logits\":[" R0 "," R2 "],\"ids\":[0,0]}", "[0]");
    ranks(&b, "{\"seq\":\"1\",\"logits\":[" R1 "],\"ids\":[0]}", "[]");
    /* The last row, R2, scores 2; then R0 scores 1. */
    ranks(&b, "{\"seq\":1,\"pos\":2,\"logits\":[" R0 "],\"ids\":[2]}", "[0]");
    ranks(&b, "{\"seq\":\"1\",\"pos\":1,\"logits\":[" R1 "],\"ids\":[0]}",
        "[2]");
    ranks(&b, "{\"seq\":1,\"pos\":3,\"logits\":[" R1 "],\"ids\":[1]}", "[1]");
    /* In the place of the last record, twice; and on from there. */
    ranks(&b, "{\"seq\":1,\"pos\":3,\"logits\":[" R1 "],\"ids\":[2]}", "[2]");
    ranks(&b, "{\"seq\":1,\"pos\":3,\"logits\":[" R1 "," R2 "],"
        "\"ids\":[0,2]}", "[0,1]");
    ranks(&b, "{\"seq\":1,\"pos\":5,\"logits\":[" R0 "],\"ids\":[0]}", "[1]");
    /* Neither the end nor the beginning of the last record. */
    refused(&b, "{\"seq\":1,\"pos\":4,\"logits\":[" R0 "],\"ids\":[0]}",
        PF_ESTATE, "seq 1: record starts at 4, the last one was of 5 to 6");
    refused(&b, "{\"seq\":1,\"pos\":7,\"logits\":[" R0 "],\"ids\":[0]}",
        PF_ESTATE, "starts at 7");
    refused(&b, "{\"seq\":2,\"pos\":7,\"logits\":[" R0 "],\"ids\":[0]}",
        PF_ESTATE, "nothing is known");
    refused(&b, "{\"seq\":1,\"pos\":6,\"logits\":[[1,2]],\"ids\":[0]}",
        PF_ESHAPE, "2 columns");
    /* Refused ones change nothing; a record without rows neither. */
    ranks(&b, "{\"seq\":1,\"pos\":6,\"logits\":[],\"ids\":[]}", "[]");
    stop(&b);
}

static void
test_empty_goes_on(void **ctx)
{
    struct bench b;

    (void)ctx;
    start(&b, 1 << 20);
    ranks(&b, "{\"logits\":[" R0 "," R1 "],\"ids\":[0,0]}", "[0]");
    ranks(&b, "{\"pos\":2,\"logits\":[],\"ids\":[]}", "[]"); /* V is lost */
    pf_record_clear(&b.rec);
    assert_non_null(pf_record_put(&b.rec, "logits", PF_F32, 2,
        (size_t[]){ 0, 3 }, NULL));
    assert_non_null(pf_record_put(&b.rec, "ids", PF_I32, 1,
        (size_t[]){ 0 }, NULL));
    pf_record_set_i64(&b.rec, "pos", 2, NULL);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pf_scorer_score(b.s, &b.rec, &b.sum, &b.err), PF_OK);
    ranks(&b, "{\"pos\":2,\"logits\":[" R2 "],\"ids\":[2]}", "[1]");
    ranks(&b, "{\"pos\":2,\"logits\":[" R2 "],\"ids\":[0]}", "[2]");
    ranks(&b, "{\"pos\":3,\"logits\":[" R2 "],\"ids\":[2]}", "[0]");
    /* Begun anew without a row: there is none before position 4. */
    ranks(&b, "{\"logits\":[],\"ids\":[]}", "[]");
    refused(&b, "{\"pos\":4,\"logits\":[" R2 "],\"ids\":[2]}", PF_ESTATE,
        "starts at 4");
    ranks(&b, "{\"logits\":[" R0 "],\"ids\":[0]}", "[]");
    /* And with another V. */
    ranks(&b, "{\"logits\":[[1,2],[2,1]],\"ids\":[0,0]}", "[1]");
    ranks(&b, "{\"pos\":2,\"logits\":[[1,2]],\"ids\":[0]}", "[0]");
    stop(&b);
}

static void
test_forks(void **ctx)
{
    struct bench b;

    (void)ctx;
    start(&b, 1 << 20);
    ranks(&b, "{\"seq\":\"a\",\"logits\":[" R0 "," R1 "],\"ids\":[0,0]}",
        "[0]");
    ranks(&b, "{\"seq\":\"b\",\"fork\":\"a\",\"pos\":2,\"logits\":[" R2
        "],\"ids\":[0]}", "[2]");
    ranks(&b, "{\"seq\":\"c\",\"fork\":\"a\",\"pos\":2,\"logits\":[" R2
        "],\"ids\":[1]}", "[0]");
    ranks(&b, "{\"seq\":\"b\",\"pos\":3,\"logits\":[" R2 "],\"ids\":[2]}",
        "[0]");
    ranks(&b, "{\"seq\":\"c\",\"pos\":2,\"logits\":[" R2 "],\"ids\":[2]}",
        "[1]");
    ranks(&b, "{\"seq\":\"a\",\"pos\":2,\"logits\":[" R2 "],\"ids\":[1]}",
        "[0]");
    ranks(&b, "{\"seq\":\"d\",\"fork\":\"a\",\"pos\":2,\"logits\":[" R2
        "],\"ids\":[1]}", "[0]"); /* the place of a's last record */
    refused(&b, "{\"seq\":\"e\",\"fork\":\"a\",\"pos\":1,\"logits\":[" R2
        "],\"ids\":[1]}", PF_ESTATE, "fork: record starts at 1");
    refused(&b, "{\"seq\":\"e\",\"fork\":\"z\",\"pos\":1,\"logits\":[" R2
        "],\"ids\":[1]}", PF_ESTATE, "fork: record starts at 1");
    stop(&b);
}

static void
test_overlap(void **ctx)
{
    struct bench b;

    (void)ctx;
    start(&b, 1 << 20);
    ranks(&b, "{\"seq\":\"0.0\",\"overlap\":0,\"logits\":[" R0 "," R1 "," R2
        "],\"ids\":[0,0,1]}", "[0,0]");
    ranks(&b, "{\"seq\":\"0.1\",\"overlap\":2,\"logits\":[[null,0,0]," R1 "," R2
        "],\"ids\":[0,1,2]}", "[1]");
    assert_int_equal(b.sum.n, 1);
    /* One shared id, as many as there are, and a piece of a piece. */
    ranks(&b, "{\"seq\":\"0.2\",\"overlap\":1,\"logits\":[" R0 "," R1
        "],\"ids\":[2,1]}", "[1]");
    ranks(&b, "{\"seq\":\"0.3\",\"overlap\":2,\"logits\":[" R0 "," R1
        "],\"ids\":[2,1]}", "[]");
    ranks(&b, "{\"seq\":\"0.4\",\"overlap\":3,\"logits\":[" R0 "," R1
        "],\"ids\":[2,1]}", "[]");
    ranks(&b, "{\"seq\":\"0.4\",\"overlap\":3,\"pos\":2,\"logits\":[" R0
        "," R1 "],\"ids\":[2,1]}", "[1]");
    stop(&b);
}

static void
test_ends(void **ctx)
{
    struct bench b;

    (void)ctx;
    start(&b, 1 << 20);
    ranks(&b, "{\"seq\":1,\"logits\":[" R0 "],\"ids\":[0]}", "[]");
    assert_int_equal(take(&b, "{\"seq\":1,\"pos\":1,\"done\":\"eos\"}"),
        PF_OK);
    refused(&b, "{\"seq\":1,\"pos\":1,\"logits\":[" R0 "],\"ids\":[0]}",
        PF_ESTATE, "nothing is known");
    ranks(&b, "{\"seq\":1,\"done\":\"stop\",\"logits\":[" R0 "],\"ids\":[0]}",
        "[]");
    refused(&b, "{\"seq\":1,\"pos\":1,\"logits\":[" R0 "],\"ids\":[0]}",
        PF_ESTATE, "nothing is known");
    ranks(&b, "{\"logits\":[" R0 "],\"ids\":[0]}", "[]");
    assert_int_equal(take(&b, "{\"done\":\"input\"}"), PF_OK);
    ranks(&b, "{\"pos\":1,\"logits\":[" R0 "],\"ids\":[0]}", "[0]");
    stop(&b);
}

/* Room for few: the least recently used goes, the last one never. */
static void
test_memory(void **ctx)
{
    struct bench b;
    char line[100];

    (void)ctx;
    start(&b, 4000);
    for (int i = 0; i < 1000; i++) {
        sprintf(line, "{\"seq\":%d,\"logits\":[" R0 "],\"ids\":[0]}", i);
        ranks(&b, line, "[]");
        if (i == 0)
            continue;
        sprintf(line, "{\"seq\":0,\"pos\":%d,\"logits\":[" R0 "],"
            "\"ids\":[0]}", i);
        ranks(&b, line, "[0]");
    }
    ranks(&b, "{\"seq\":999,\"pos\":1,\"logits\":[" R0 "],\"ids\":[0]}",
        "[0]");
    refused(&b, "{\"seq\":900,\"pos\":1,\"logits\":[" R0 "],\"ids\":[0]}",
        PF_ESTATE, "nothing is known");
    stop(&b);
    start(&b, 0);
    ranks(&b, "{\"seq\":1,\"logits\":[" R0 "],\"ids\":[0]}", "[]");
    ranks(&b, "{\"seq\":1,\"pos\":1,\"logits\":[" R0 "],\"ids\":[1]}", "[1]");
    stop(&b);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_row),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_bad_rows),
        cmocka_unit_test(test_record),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_follows),
        cmocka_unit_test(test_empty_goes_on),
        cmocka_unit_test(test_forks),
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
