/*
 * The KV cache as records and back.  Positions go through one row at a time:
 * the pages know where a row lies, and a tensor is its rows one after another.
 */
#include <pipeformer/kv-record.h>

#include <stdlib.h>
#include <string.h>

#include <pipeformer/forward.h>
#include <pipeformer/probe.h>

enum { NAME = 48 };

/* --- To a record --- */

/* `seq` as the key has it: nothing, i and digits, s and a string. */
static enum pf_status
set_seq(struct pf_record *rec, const char *key, size_t len,
    struct pf_err *err)
{
    if (len == 0)
        return PF_OK;
    return key[0] == 's'
        ? pf_record_set_string(rec, "seq", key + 1, len - 1, err)
        : pf_record_set(rec, "seq", key + 1, len - 1, err);
}

static char *
new_tensor(struct pf_record *rec, const struct pf_kv_cache *cache,
    size_t layer, enum pf_point point, const size_t shape[3])
{
    char name[NAME];
    struct pf_tensor *t = pf_record_put(rec, pf_point_name(name, sizeof name,
        layer, point), pf_kv_type(cache), 3, shape, NULL);

    return t ? (char *)t->data : NULL;
}

enum pf_status
pf_kv_to_record(struct pf_record *rec, const struct pf_kv_cache *cache,
    const struct pf_kv *kv, const struct pf_kv_plan *plan, const char *model,
    struct pf_err *err)
{
    size_t width = pf_kv_width(cache), heads = plan->heads;
    size_t row = width * pf_dtype_size(pf_kv_type(cache));
    const size_t shape[3] = { kv->len, heads, width / heads };
    enum pf_status st;

    if ((st = set_seq(rec, kv->key, kv->key_len, err))
        || (st = pf_record_set_i64(rec, "pos", 0, err))
        || (model && (st = pf_record_set_string(rec, "model", model,
            strlen(model), err))))
        return st;
    for (size_t i = kv->tag; i < plan->n_layers; i++) {
        char *k = new_tensor(rec, cache, plan->layers[i], PF_K, shape);
        char *v = new_tensor(rec, cache, plan->layers[i], PF_V, shape);

        if (!k || !v)
            return pf_fail_mem(err);
        for (size_t t = 0; t < kv->len; t++)
            pf_kv_fetch(cache, kv, i, t, heads, k + t * row, v + t * row);
    }
    return PF_OK;
}

/* --- From a record --- */

static const struct pf_tensor *
find(const struct pf_record *rec, size_t layer, enum pf_point point)
{
    char name[NAME];

    return pf_record_tensor(rec, pf_point_name(name, sizeof name, layer,
        point));
}

/* How many of the first layers are not there. */
static size_t
missing_layers(const struct pf_record *rec, const struct pf_kv_plan *plan)
{
    size_t n = 0;

    while (n < plan->n_layers && !find(rec, plan->layers[n], PF_K)
        && !find(rec, plan->layers[n], PF_V))
        n++;
    return n;
}

/* One tensor, of which T is *rows, once that is known. */
static enum pf_status
check(const struct pf_record *rec, size_t layer, enum pf_point point,
    size_t heads, size_t D, size_t *rows, struct pf_err *err)
{
    const struct pf_tensor *t = find(rec, layer, point);
    char name[NAME], shape[128];

    pf_point_name(name, sizeof name, layer, point);
    if (!t)
        return pf_fail(err, PF_ESHAPE, "the record has no %s", name);
    if (t->dtype != PF_F32 && t->dtype != PF_F16 && t->dtype != PF_BF16)
        return pf_fail(err, PF_EFORMAT, "%s: is of type %s, not F32, F16 or "
            "BF16", name, pf_dtype_name(t->dtype));
    pf_shape_format(shape, sizeof shape, t->shape, t->ndim);
    if (t->ndim != 3 || t->shape[1] != heads || t->shape[2] != D)
        return pf_fail(err, PF_ESHAPE, "%s: has the shape %s; the model's "
            "keys and values make it [T, %zu, %zu]", name, shape, heads, D);
    if (*rows == SIZE_MAX)
        *rows = t->shape[0];
    if (t->shape[0] != *rows)
        return pf_fail(err, PF_ESHAPE, "%s: has the shape %s, but the "
            "tensors before it have %zu positions", name, shape, *rows);
    return PF_OK;
}

/* `heads` of a tap must be all, in their order. */
static enum pf_status
check_heads(const struct pf_record *rec, size_t heads, struct pf_err *err)
{
    size_t *all = pf_record_field(rec, "heads")
        ? malloc(heads * sizeof *all) : NULL;
    enum pf_status st = PF_OK;

    if (!pf_record_field(rec, "heads"))
        return PF_OK;
    if (!all)
        return pf_fail_mem(err);
    for (size_t h = 0; h < heads; h++)
        all[h] = h;
    if (pf_hooks_check_heads(rec, all, heads, NULL))
        st = pf_fail(err, PF_EFORMAT, "heads: keys and values must be of all "
            "heads, in their order");
    free(all);
    return st;
}

/* Row t of a tensor, of `width` numbers. */
static enum pf_status
read_row(float *row, const struct pf_tensor *x, size_t t, size_t width,
    struct pf_err *err)
{
    pf_to_f32(row, (const char *)x->data + t * width
        * pf_dtype_size(x->dtype), x->dtype, width);
    if (pf_first_nonfinite(row, width) < width)
        return pf_fail(err, PF_ERANGE, "%s: an infinity or NaN in row %zu",
            x->name, t);
    return PF_OK;
}

/* Rows of all layers into a sequence that is ready for them. */
static enum pf_status
store(struct pf_kv_cache *cache, const struct pf_kv *kv,
    const struct pf_record *rec, const struct pf_kv_plan *plan, size_t first,
    size_t pos, size_t T, struct pf_err *err)
{
    size_t width = pf_kv_width(cache);
    float *row = malloc(2 * width * sizeof *row);
    enum pf_status st = row ? PF_OK : pf_fail_mem(err);

    for (size_t i = first; !st && i < plan->n_layers; i++) {
        const struct pf_tensor *k = find(rec, plan->layers[i], PF_K);
        const struct pf_tensor *v = find(rec, plan->layers[i], PF_V);

        for (size_t t = 0; !st && t < T; t++)
            if (!(st = read_row(row, k, t, width, err))
                && !(st = read_row(row + width, v, t, width, err)))
                pf_kv_store(cache, kv, i, pos + t, plan->heads, row,
                    row + width);
    }
    free(row);
    return st;
}

enum pf_status
pf_kv_from_record(struct pf_kv_cache *cache, const struct pf_record *rec,
    const struct pf_kv_plan *plan, struct pf_err *err)
{
    size_t D = pf_kv_width(cache) / plan->heads, T = SIZE_MAX, pos;
    size_t first = missing_layers(rec, plan);
    struct pf_buf key = PF_BUF_INIT, fork = PF_BUF_INIT;
    bool forks = pf_record_has(rec, "fork");
    struct pf_kv *kv = NULL;
    enum pf_status st = PF_OK;

    if (first == plan->n_layers)
        first = 0; /* the first is the one to name */
    for (size_t i = first; !st && i < plan->n_layers; i++)
        if (!(st = check(rec, plan->layers[i], PF_K, plan->heads, D, &T, err)))
            st = check(rec, plan->layers[i], PF_V, plan->heads, D, &T, err);
    if (!st && !(st = check_heads(rec, plan->heads, err))
        && !(st = pf_record_pos(rec, &pos, err))
        && !(st = pf_record_seq(rec, "seq", &key, err))
        && !(st = pf_record_seq(rec, "fork", &fork, err)))
        st = pf_kv_begin(cache, &kv, key.data ? key.data : "", key.len,
            forks ? fork.data : NULL, fork.len, pos, T, first, err);
    if (!st && kv) {
        st = store(cache, kv, rec, plan, first, pos, T, err);
        pf_kv_idle(cache);
    }
    pf_buf_fini(&key);
    pf_buf_fini(&fork);
    return st;
}
