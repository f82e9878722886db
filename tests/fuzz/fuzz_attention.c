/*
 * Small shapes, masks and options from bytes, right or wrong: what is taken
 * is computed without a read or write out of place, and each row of weights
 * sums to 1, or to 0 where the context is 0, too.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/attention.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { AXIS = 40, LEADING = 4, NUMBERS = 1 << 16 };

struct bytes {
    const uint8_t *p, *end;
};

static unsigned
byte(struct bytes *b)
{
    return b->p < b->end ? *b->p++ : 0;
}

/* A tensor in memory of exactly its size; NULL where it would be large. */
static struct pf_tensor *
tensor(struct bytes *b, struct pf_tensor *t, enum pf_dtype type, bool numbers)
{
    size_t n = 1;
    uint8_t *v;

    *t = (struct pf_tensor){ .name = "x", .dtype = type,
        .ndim = byte(b) % 6 };
    for (unsigned i = 0; i < t->ndim; i++) {
        t->shape[i] = byte(b) % (i + 2 < t->ndim ? LEADING : AXIS);
        n *= t->shape[i];
    }
    v = n > NUMBERS ? NULL : malloc(n * pf_dtype_size(type) + (n == 0));
    if (!v)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        unsigned c = numbers ? byte(b) : 0;
        float f = (float)(int8_t)c / 8;

        if (c == 0x80)
            f = -INFINITY;
        if (type == PF_F32)
            memcpy(v + i * sizeof f, &f, sizeof f);
        else
            v[i] = (uint8_t)(c % 2);
    }
    t->data = v;
    return t;
}

static void
check_rows(const struct pf_attention *a, const float *context,
    const float *weights, size_t rows)
{
    for (size_t r = 0; r < rows; r++) {
        double sum = 0;

        for (size_t j = 0; j < a->S; j++) {
            if (!(weights[r * a->S + j] >= 0))
                abort();
            sum += (double)weights[r * a->S + j];
        }
        if (sum != 0 && !(fabs(sum - 1) < 1e-4))
            abort();
        for (size_t d = 0; d < a->Dv; d++)
            if (!isfinite(context[r * a->Dv + d])
                || (sum == 0 && context[r * a->Dv + d] != 0))
                abort();
    }
}

static void
run(const struct pf_attention *a, struct pf_pool *pool)
{
    size_t shape[4], rows = a->batch * a->heads * a->T;
    float *context, *weights, *scores;

    if (pf_attention_shape(a, a->S, shape) != a->ndim
        || rows * (a->S + a->Dv) > NUMBERS)
        return;
    context = malloc(rows * a->Dv * sizeof *context + 1);
    weights = malloc(rows * a->S * sizeof *weights + 1);
    scores = malloc(rows * a->S * sizeof *scores + 1);
    if (!context || !weights || !scores)
        abort();
    if (!pf_attention_run(a, pool, context, weights, scores, NULL))
        check_rows(a, context, weights, rows);
    free(context);
    free(weights);
    free(scores);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes b = { data, data + size };
    unsigned how = byte(&b);
    struct pf_tensor q, k, v, mask;
    struct pf_attention a;
    struct pf_pool *pool;
    bool numbers = how & 1, masked = how & 2;
    bool made = tensor(&b, &q, PF_F32, numbers);

    made = tensor(&b, &k, PF_F32, numbers) && made;
    made = tensor(&b, &v, PF_F32, numbers) && made;
    made = tensor(&b, &mask, how & 4 ? PF_BOOL : PF_F32, true) && made;
    if (pf_pool_new(&pool, 1 + (how >> 6), NULL))
        abort();
    if (made && !pf_attention_plan(&a, &q, &k, &v, masked ? &mask : NULL,
            (enum pf_causal)((how >> 4) % 3), how & 8 ? 0.5 : (double)NAN,
            NULL))
        run(&a, pool);
    pf_pool_free(pool);
    free((void *)q.data);
    free((void *)k.data);
    free((void *)v.data);
    free((void *)mask.data);
    return 0;
}
