#define _GNU_SOURCE /* sched_getaffinity, pthread_attr_setaffinity_np */

#include <pipeformer/pool.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Tasks are handed out by an atomic counter.  A thread takes part in a run only
 * if it comes while the run is open; the caller closes it when no task is left
 * and waits for those that came, not for those that still sleep: a run of few
 * small tasks costs no more than the caller's own loop.
 *
 * Runs follow each other closely (one a matrix product), so both sides look
 * for each other a few microseconds before they sleep, and the lock is for
 * sleeping only.  No longer: the processor may be another filter's, and while
 * one spins there it is not working (six filters share two cores).
 *
 * A new thread begins on another processor than its maker's: the system often
 * puts it on the same one, and lets it wait there for milliseconds while the
 * other idles.  From then on it goes where the system wants it.
 *
 * Who changes one of two variables looks at the other one afterwards: `inside`
 * and `run`, `sleepers` and `run`, `inside` and `waiting`.  In one order of all
 * of that, which C11's atomics have by default, at least one of two threads
 * sees what the other has done.
 */

enum {
    SPINS = 1000,
    STACK = 1 << 20, /* kernels keep tens of KiB on it; musl gives 128 */
};

struct pf_pool {
    size_t n_threads, n_started;
    pthread_t *threads;
#ifdef __GLIBC__
    cpu_set_t cpus; /* the program's; empty if threads begin anywhere */
#endif

    atomic_uint run;      /* counts openings and closings: odd while open */
    atomic_size_t inside; /* threads that may look at what follows */
    void (*task)(void *, size_t);
    void *ctx;
    size_t n;
    atomic_size_t next;

    pthread_mutex_t lock;
    pthread_cond_t opened, left;
    atomic_size_t sleepers; /* until `opened` */
    atomic_bool waiting;    /* the caller, until `left` */
    bool quit;
};

static void
relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static void
work(struct pf_pool *p)
{
    size_t i;

    while ((i = atomic_fetch_add(&p->next, 1)) < p->n)
        p->task(p->ctx, i);
}

/* Whether a run is open that is not the one that was seen. */
static bool
is_open(struct pf_pool *p, unsigned seen)
{
    unsigned run = atomic_load(&p->run);

    return run % 2 && run != seen;
}

/* Until a run is open that is not `seen`; false if the pool is done with. */
static bool
sleep_until_opened(struct pf_pool *p, unsigned seen)
{
    bool quit;

    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->sleepers, 1);
    while (!p->quit && !is_open(p, seen))
        pthread_cond_wait(&p->opened, &p->lock);
    atomic_fetch_sub(&p->sleepers, 1);
    quit = p->quit;
    pthread_mutex_unlock(&p->lock);
    return !quit;
}

static void *
thread_main(void *arg)
{
    struct pf_pool *p = arg;
    unsigned seen = 0, run;

#ifdef __GLIBC__
    if (CPU_COUNT(&p->cpus) > 0)
        sched_setaffinity(0, sizeof p->cpus, &p->cpus);
#endif
    for (;;) {
        for (int i = 0; i < SPINS && !is_open(p, seen); i++)
            relax();
        if (!is_open(p, seen) && !sleep_until_opened(p, seen))
            return NULL;
        atomic_fetch_add(&p->inside, 1);
        run = atomic_load(&p->run); /* it may be closed by now */
        if (run % 2 && run != seen) {
            seen = run;
            work(p);
        }
        if (atomic_fetch_sub(&p->inside, 1) == 1 && atomic_load(&p->waiting)) {
            pthread_mutex_lock(&p->lock);
            pthread_cond_signal(&p->left);
            pthread_mutex_unlock(&p->lock);
        }
    }
}

void
pf_pool_run(struct pf_pool *p, void (*task)(void *ctx, size_t i), void *ctx,
    size_t n)
{
    if (p->n_threads == 1 || n <= 1) {
        for (size_t i = 0; i < n; i++)
            task(ctx, i);
        return;
    }
    p->task = task;
    p->ctx = ctx;
    p->n = n;
    atomic_store(&p->next, 0);
    atomic_fetch_add(&p->run, 1);
    if (atomic_load(&p->sleepers)) {
        pthread_mutex_lock(&p->lock);
        pthread_cond_broadcast(&p->opened);
        pthread_mutex_unlock(&p->lock);
    }
    work(p);

    atomic_fetch_add(&p->run, 1);
    for (int i = 0; i < SPINS && atomic_load(&p->inside) > 0; i++)
        relax();
    if (atomic_load(&p->inside) == 0)
        return;
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->waiting, true);
    while (atomic_load(&p->inside) > 0)
        pthread_cond_wait(&p->left, &p->lock);
    atomic_store(&p->waiting, false);
    pthread_mutex_unlock(&p->lock);
}

/* The other processors, if there are others, are where threads begin. */
static void
place(struct pf_pool *p, pthread_attr_t *attr)
{
#ifdef __GLIBC__
    int here = sched_getcpu();
    cpu_set_t others;

    CPU_ZERO(&p->cpus);
    if (here < 0 || sched_getaffinity(0, sizeof others, &others))
        return;
    p->cpus = others;
    CPU_CLR(here, &others);
    if (CPU_COUNT(&others) == 0
        || pthread_attr_setaffinity_np(attr, sizeof others, &others))
        CPU_ZERO(&p->cpus);
#else
    (void)p;
    (void)attr;
#endif
}

static int
start(struct pf_pool *p, bool placed)
{
    pthread_attr_t attr;
    int e;

    e = pthread_attr_init(&attr);
    if (e)
        return e;
    pthread_attr_setstacksize(&attr, STACK);
    if (placed)
        place(p, &attr);
    while (!e && p->n_started + 1 < p->n_threads) {
        e = pthread_create(&p->threads[p->n_started], &attr, thread_main, p);
        if (!e)
            p->n_started++;
    }
    pthread_attr_destroy(&attr);
    return e;
}

/* The program's signals are for its own threads.  Where the system forbids to
 * choose a processor, threads begin anywhere. */
static int
start_all(struct pf_pool *p)
{
    sigset_t all, old;
    int e;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    e = start(p, true);
    if (e)
        e = start(p, false);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return e;
}

enum pf_status
pf_pool_new(struct pf_pool **pool, size_t threads, struct pf_err *err)
{
    struct pf_pool *p = calloc(1, sizeof *p);
    int e;

    *pool = NULL;
    if (!p)
        return pf_fail_mem(err);
    p->n_threads = threads > 0 ? threads : 1;
    p->threads = calloc(p->n_threads, sizeof *p->threads);
    if (!p->threads) {
        free(p);
        return pf_fail_mem(err);
    }
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->opened, NULL);
    pthread_cond_init(&p->left, NULL);
    atomic_init(&p->run, 0);
    atomic_init(&p->inside, 0);
    atomic_init(&p->next, 0);
    atomic_init(&p->sleepers, 0);
    atomic_init(&p->waiting, false);
    e = p->n_threads > 1 ? start_all(p) : 0;
    if (e) {
        pf_fail(err, PF_EIO, "cannot start %zu threads: %s", threads,
            strerror(e));
        pf_pool_free(p);
        return PF_EIO;
    }
    *pool = p;
    return PF_OK;
}

void
pf_pool_free(struct pf_pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->quit = true;
    pthread_cond_broadcast(&p->opened);
    pthread_mutex_unlock(&p->lock);
    for (size_t i = 0; i < p->n_started; i++)
        pthread_join(p->threads[i], NULL);
    pthread_cond_destroy(&p->left);
    pthread_cond_destroy(&p->opened);
    pthread_mutex_destroy(&p->lock);
    free(p->threads);
    free(p);
}

size_t
pf_pool_threads(const struct pf_pool *p)
{
    return p->n_threads;
}

bool
pf_pool_sleeps(const struct pf_pool *p)
{
    return atomic_load(&p->sleepers) > 0;
}

size_t
pf_cpus(void)
{
    long n;
#ifdef __linux__
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return (size_t)CPU_COUNT(&set);
#endif
    n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (size_t)n : 1;
}
