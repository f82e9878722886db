#include <pipeformer/maps.h>

#include <string.h>

#include <pipeformer/json.h>

/* How many numbers a field lists; whether they are `want`, unless NULL. */
static enum pf_status
check_list(const struct pf_record *rec, const char *name, const size_t *want,
    size_t n, struct pf_err *err)
{
    const struct pf_field *f = pf_record_field(rec, name);
    struct pf_json j = pf_json_at(f ? f->text : "", f ? f->len : 0);
    enum pf_status st = pf_json_open(&j, '[', NULL);
    bool first = true, same = true;
    size_t k = 0;
    int64_t v;

    while (!st && !(st = pf_json_next(&j, ']', &first, NULL))) {
        st = pf_json_i64(&j, &v, NULL);
        same = same && k < n && (!want || v == (int64_t)want[k]);
        k++;
    }
    if (st != PF_END || k != n || !same)
        return pf_fail(err, PF_EFORMAT, want ? "%s: attn holds other ones "
            "than are wanted now" : "%s: does not say which ones attn holds",
            name);
    return PF_OK;
}

enum pf_status
pf_maps_check(struct pf_record *rec, const size_t *heads, size_t n_heads,
    size_t T, size_t S, struct pf_err *err)
{
    const size_t shape[3] = { n_heads, T, S };
    const struct pf_tensor *old;
    const float *v;
    enum pf_status st = pf_record_f32(rec, "attn", &old, &v, err);
    char was[128];

    if (st)
        return st;
    if (!old) {
        pf_record_drop(rec, "layers");
        return PF_OK;
    }
    if (old->ndim != 4
        || memcmp(old->shape + 1, shape, sizeof shape) != 0)
        return pf_fail(err, PF_ESHAPE, "attn: has the shape %s; to add to it, "
            "it must be [L, %zu, %zu, %zu]",
            pf_shape_format(was, sizeof was, old->shape, old->ndim), n_heads,
            T, S);
    st = check_list(rec, "layers", NULL, old->shape[0], err);
    return st ? st : check_list(rec, "heads", heads, n_heads, err);
}

/* "[0,1,2]" of n numbers; `before`, if not empty, is a list without its end. */
static enum pf_status
set_list(struct pf_record *rec, const char *name, const char *before,
    size_t before_len, const size_t *list, size_t n, struct pf_err *err)
{
    struct pf_buf b = PF_BUF_INIT;
    enum pf_status st;

    while (before_len && strchr(" \t", before[before_len - 1]))
        before_len--;
    pf_buf_add(&b, before, before_len);
    for (size_t i = 0; i < n; i++) {
        if (!b.len)
            pf_buf_addc(&b, '[');
        else if (b.data[b.len - 1] != '[')
            pf_buf_addc(&b, ',');
        pf_json_add_i64(&b, (int64_t)list[i]);
    }
    pf_buf_addc(&b, ']');
    st = pf_buf_check(&b, err);
    if (!st)
        st = pf_record_set(rec, name, b.data, b.len, err);
    pf_buf_fini(&b);
    return st;
}

enum pf_status
pf_maps_add(struct pf_record *rec, const size_t *layers, size_t n_layers,
    const size_t *heads, size_t n_heads, size_t T, size_t S, float **maps,
    struct pf_err *err)
{
    const struct pf_field *had = pf_record_field(rec, "layers");
    const struct pf_tensor *old;
    size_t shape[4] = { n_layers, n_heads, T, S }, old_n = 0;
    struct pf_tensor *t;
    const float *v;
    enum pf_status st = pf_record_f32(rec, "attn", &old, &v, err);

    if (st)
        return st;
    if (old) {
        old_n = pf_tensor_count(old);
        shape[0] += old->shape[0];
    }
    t = pf_record_put(rec, "attn", PF_F32, 4, shape, NULL);
    if (!t)
        return pf_fail_mem(err);
    if (old_n)
        memcpy((float *)t->data, v, old_n * sizeof *v);
    *maps = (float *)t->data + old_n;
    st = set_list(rec, "layers", had ? had->text : "", had ? had->len - 1 : 0,
        layers, n_layers, err);
    return st ? st : set_list(rec, "heads", "", 0, heads, n_heads, err);
}
