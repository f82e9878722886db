#ifndef PIPEFORMER_POOL_H
#define PIPEFORMER_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include <pipeformer/err.h>

/*
 * Threads that work through numbered tasks.  Which thread takes which task is
 * left to chance, so a task must write what no other task of the run touches;
 * then the result does not depend on the number of threads.
 */
struct pf_pool;

/*
 * A pool of `threads` >= 1, the caller's thread being one of them: with 1, no
 * thread is started and pf_pool_run is a loop.
 */
enum pf_status pf_pool_new(struct pf_pool **pool, size_t threads,
    struct pf_err *err);
void pf_pool_free(struct pf_pool *pool);
size_t pf_pool_threads(const struct pf_pool *pool);

/*
 * Calls task(ctx, i) once for every i < n and returns when all are done.
 * Not to be called from two threads or from a task.
 */
void pf_pool_run(struct pf_pool *pool, void (*task)(void *ctx, size_t i),
    void *ctx, size_t n);

/*
 * Whether threads sleep, having found nothing to do for a while: what is run
 * next they join some 50 microseconds late.
 */
bool pf_pool_sleeps(const struct pf_pool *pool);

/* The processors this process may run on, at least 1. */
size_t pf_cpus(void);

#endif
