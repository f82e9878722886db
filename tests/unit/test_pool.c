#define _GNU_SOURCE /* sched_getaffinity */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include <pipeformer/pool.h>

enum { MOST = 1000 };

/* Written by tasks without atomics: a task run twice at once is a race. */
struct counts {
    unsigned times[MOST];
    size_t spent;
};

static void
count(void *ctx, size_t i)
{
    struct counts *c = ctx;

    c->times[i]++;
    for (volatile size_t j = 0; j < c->spent * (i % 7);)
        j = j + 1;
}

static void
check_run(struct pf_pool *pool, struct counts *c, size_t n, size_t spent)
{
    memset(c, 0, sizeof *c);
    c->spent = spent;
    pf_pool_run(pool, count, c, n);
    for (size_t i = 0; i < MOST; i++)
        assert_int_equal(c->times[i], i < n);
}

static void
test_once_each(void **ctx)
{
    static struct counts c;

    (void)ctx;
    for (size_t threads = 1; threads <= 4; threads++) {
        struct pf_pool *pool;

        assert_int_equal(pf_pool_new(&pool, threads, NULL), PF_OK);
        assert_int_equal(pf_pool_threads(pool), threads);
        for (size_t n = 0; n < 20; n++)
            check_run(pool, &c, n, 1000);
        check_run(pool, &c, MOST, 0);
        check_run(pool, &c, MOST, 500);
        for (size_t i = 0; i < 300; i++)
            check_run(pool, &c, i % 9, i % 2);
        pf_pool_free(pool);
    }
}

/* Each run sees what the run before it wrote. */
static void
prefix(void *ctx, size_t i)
{
    uint64_t (*rows)[8] = ctx;
    uint64_t sum = 0;

    for (size_t j = 0; j < 8; j++)
        sum = sum * 31 + rows[0][j];
    rows[1][i] = sum + i;
}

static void
test_in_order(void **ctx)
{
    static uint64_t one[2001][8], many[2001][8];
    struct pf_pool *pool;

    (void)ctx;
    assert_int_equal(pf_pool_new(&pool, 3, NULL), PF_OK);
    for (size_t i = 0; i < 2000; i++) {
        for (size_t j = 0; j < 8; j++)
            prefix(&one[i], j);
        pf_pool_run(pool, prefix, &many[i], 8);
    }
    pf_pool_free(pool);
    assert_memory_equal(one, many, sizeof one);
}

static void
test_start_and_stop(void **ctx)
{
    struct pf_pool *pool;

    (void)ctx;
    for (size_t i = 0; i < 50; i++) {
        assert_int_equal(pf_pool_new(&pool, 1 + i % 4, NULL), PF_OK);
        pf_pool_free(pool);
    }
    pf_pool_free(NULL);
}

static void
test_sleeps(void **ctx)
{
    const struct timespec tick = { 0, 1000000 };
    static struct counts c;
    struct pf_pool *pool;
    int i;

    (void)ctx;
    assert_int_equal(pf_pool_new(&pool, 1, NULL), PF_OK);
    assert_false(pf_pool_sleeps(pool));
    pf_pool_free(pool);
    assert_int_equal(pf_pool_new(&pool, 2, NULL), PF_OK);
    for (int round = 0; round < 3; round++) {
        for (i = 0; i < 10000 && !pf_pool_sleeps(pool); i++)
            nanosleep(&tick, NULL);
        assert_true(i < 10000);
        check_run(pool, &c, 5, 10);
    }
    pf_pool_free(pool);
}

#ifdef __linux__
/* Tasks that wait for each other, so that each thread has one. */
struct masks {
    pthread_barrier_t all_came;
    cpu_set_t seen[3];
};

static void
look(void *ctx, size_t i)
{
    struct masks *m = ctx;

    pthread_barrier_wait(&m->all_came);
    sched_getaffinity(0, sizeof m->seen[i], &m->seen[i]);
}

static void
check_masks(const cpu_set_t *want)
{
    struct masks m;
    struct pf_pool *pool;

    pthread_barrier_init(&m.all_came, NULL, 3);
    assert_int_equal(pf_pool_new(&pool, 3, NULL), PF_OK);
    pf_pool_run(pool, look, &m, 3);
    pf_pool_free(pool);
    pthread_barrier_destroy(&m.all_came);
    for (size_t i = 0; i < 3; i++)
        assert_true(CPU_EQUAL(&m.seen[i], want));
}

/* Wherever they begin, threads may go where the program may. */
static void
test_allowed_cpus(void **ctx)
{
    cpu_set_t all, one;
    int cpu = sched_getcpu();

    (void)ctx;
    assert_true(cpu >= 0);
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    check_masks(&all);
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    check_masks(&one);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}
#endif

static void
test_cpus(void **ctx)
{
    (void)ctx;
    assert_true(pf_cpus() >= 1);
    assert_int_equal(pf_cpus(), pf_cpus());
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_once_each),
        cmocka_unit_test(test_in_order),
        cmocka_unit_test(test_start_and_stop),
        cmocka_unit_test(test_sleeps),
        cmocka_unit_test(test_cpus),
#ifdef __linux__
        cmocka_unit_test(test_allowed_cpus),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
