#ifndef PF_FORWARD_PRIVATE_H
#define PF_FORWARD_PRIVATE_H

#include <pipeformer/buf.h>
#include <pipeformer/forward.h>
#include <pipeformer/kernel.h>
#include <pipeformer/pool.h>

/*
 * What the files of the forward pass share: tasks for the threads, the layers
 * that work row by row, and attention with all that can be seen of it.
 */
struct pf_runner {
    const struct pf_model *m;
    const struct pf_kernels *kern;
    struct pf_pool *pool;
    float *scratch;
    size_t cap; /* floats */
    /* An encoder's keys and values, of the sequence and layer at hand. */
    struct pf_kv_cache *own;
};

enum {
    PF_ROW_TASK = 16, /* rows of one task */
    PF_ROWS = 512,    /* rows of a layer's inner width held at a time */
};

static inline size_t
pf_blocks_of(size_t n, size_t size)
{
    return (n + size - 1) / size;
}

static inline size_t
pf_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Scratch for `rows` rows of `width` floats; what it held is lost. */
enum pf_status pf_run_scratch(struct pf_runner *r, size_t rows, size_t width,
    struct pf_err *err);

/* Whether `work` multiplications are worth more threads than one. */
bool pf_run_shared(const struct pf_runner *r, size_t work);

/* Runs n tasks, on the threads if `work` multiplications are worth it. */
void pf_run_tasks(struct pf_runner *r, void (*task)(void *, size_t),
    void *ctx, size_t n, size_t work);

/*
 * y = x W + b, x [M, in], rows of y `ldy` floats apart; with `act`, what the
 * model's activation makes of that.
 */
void pf_run_linear(struct pf_runner *r, const struct pf_linear *lin, float *y,
    size_t ldy, const float *x, size_t M, bool act);

/* Columns n0 .. n1 - 1 of that, within a task. */
void pf_run_columns(const struct pf_runner *r, const struct pf_linear *lin,
    float *y, size_t ldy, const float *x, size_t M, size_t n0, size_t n1);

/* Heads to a task, if it also takes their columns of M rows of q, k and v. */
size_t pf_run_heads(const struct pf_runner *r, const struct pf_linear *qkv,
    size_t M);

/* y and x [M, C], which may be the same. */
void pf_run_norm(struct pf_runner *r, float *y, const float *x, size_t M,
    const struct pf_norm *norm);

/* The model's activation of x [M, width], in place. */
void pf_run_act(struct pf_runner *r, float *x, size_t M, size_t width);

/* --- A probe, and what it wants to see of one layer --- */

struct pf_sight {
    const struct pf_probe *probe; /* NULL: nothing is wanted */
    const struct pf_rows *rows;   /* all sequences */
    size_t n, layer;
    unsigned want; /* 1 << point */
};

static inline bool
pf_sight_wants(const struct pf_sight *s, enum pf_point point)
{
    return s->want >> point & 1;
}

/*
 * Shows rows m .. m + k - 1, counted over all sequences, of which data has
 * `width` floats each, `stride` apart, if the probe wants them.
 */
void pf_sight_show(const struct pf_sight *s, enum pf_point point, size_t m,
    size_t k, float *data, size_t width, size_t stride);

/* --- Attention --- */

/* One layer's attention of one sequence. */
struct pf_layer_attention {
    struct pf_runner *r;
    const struct pf_kv_cache *cache;
    const struct pf_kv *kv;
    size_t slot, pos, T, S;
    const float *qkv; /* [T, 3C] */
    float *out;       /* [T, C] */
    float scale;
    float *maps; /* [n_heads, T, S] or NULL */
    const size_t *heads;
    size_t n_heads;
    const struct pf_sight *sight;
    size_t sequence; /* for the probe */
    size_t first_store, first_task; /* set by pf_run_attention */
};

/*
 * Of n sequences of the same layer: stores the keys and values of qkv, then
 * fills `out` and `maps`.
 */
enum pf_status pf_run_attention(struct pf_layer_attention *a, size_t n,
    struct pf_err *err);

/*
 * The same from x, [n, in], on, where pf_can_step allows it: by tasks that take
 * a head's query, key and value from the product on to attention; y, [n, 3C],
 * is what `a` has as its qkv.
 */
void pf_run_step(struct pf_layer_attention *a, size_t n,
    const struct pf_linear *qkv, float *y, const float *x);

/*
 * Whether n sequences of M rows have one row each, and work for more threads
 * than one, as much for each.
 */
bool pf_can_step(const struct pf_runner *r, size_t n, size_t M,
    const struct pf_linear *qkv);

/*
 * What each head adds to rows m .. m + k - 1, counted over all sequences: z,
 * [k, C], through its part of `proj`.  Where the probe changes that, `out`
 * [k, C] becomes the sum over heads, and the bias.
 */
enum pf_status pf_sight_result(struct pf_runner *r, const struct pf_sight *s,
    const struct pf_linear *proj, size_t m, size_t k, const float *z,
    float *out, struct pf_err *err);

#endif
