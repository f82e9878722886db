/*
 * A record in memory: two small arrays, fields and tensors, searched in order,
 * and an arena that all their bytes lie in.
 */
#include <pipeformer/record.h>

#include <stdlib.h>
#include <string.h>

#include <pipeformer/json.h>

#include "record-private.h"

/* Of more bytes than this, a record's large memory goes back to the system. */
#define LARGE_KEEP ((size_t)1 << 20)

/* The table of pipeformer(5): names, their type in NDJSON. */
static const struct {
    const char *name;
    enum pf_dtype type;
} tensor_names[] = {
    { "ids", PF_I32 },
    { "segments", PF_I32 },
    { "offsets", PF_I64 },
    { "hidden", PF_F32 },
    { "memory", PF_F32 },
    { "logits", PF_F32 },
    { "attn", PF_F32 },
    { "q", PF_F32 },
    { "k", PF_F32 },
    { "v", PF_F32 },
    { "context", PF_F32 },
    { "mask", PF_F32 }, /* BOOL where it is of booleans */
    { "embedding", PF_F32 },
};

bool
pf_tensor_name(const char *name, enum pf_dtype *type)
{
    for (size_t i = 0; i < sizeof tensor_names / sizeof *tensor_names; i++) {
        if (pf_same_name(tensor_names[i].name, name)) {
            *type = tensor_names[i].type;
            return true;
        }
    }
    return false;
}

bool
pf_metadata_name(const char *name)
{
    static const char *const names[] = { "layers", "heads", "positions",
        "allow", "probs" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (pf_same_name(names[i], name))
            return true;
    return false;
}

bool
pf_activation_name(const char *name)
{
    return strncmp(name, "blocks.", 7) == 0
        || strncmp(name, "ln_final.", 9) == 0;
}

bool
pf_per_position(const char *name, bool tensor)
{
    static const char *const names[] = { "ids", "tokens", "offsets",
        "segments", "hidden", "logits", "attn", "layers", "heads" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (pf_same_name(names[i], name))
            return true;
    return tensor && pf_activation_name(name);
}

void
pf_record_fini(struct pf_record *rec)
{
    free(rec->fields);
    free(rec->tensors);
    pf_arena_fini(&rec->mem);
    pf_memory_fini(&rec->large);
    *rec = (struct pf_record)PF_RECORD_INIT;
}

void
pf_record_clear(struct pf_record *rec)
{
    rec->n_fields = rec->n_tensors = 0;
    pf_arena_reset(&rec->mem);
    if (rec->large.cap > LARGE_KEEP)
        pf_memory_fini(&rec->large);
}

struct pf_field *
pf_record_field(const struct pf_record *rec, const char *name)
{
    for (size_t i = 0; i < rec->n_fields; i++)
        if (pf_same_name(rec->fields[i].name, name))
            return &rec->fields[i];
    return NULL;
}

struct pf_tensor *
pf_record_tensor(const struct pf_record *rec, const char *name)
{
    for (size_t i = 0; i < rec->n_tensors; i++)
        if (pf_same_name(rec->tensors[i].name, name))
            return &rec->tensors[i];
    return NULL;
}

bool
pf_record_has(const struct pf_record *rec, const char *name)
{
    return pf_record_field(rec, name) || pf_record_tensor(rec, name);
}

void
pf_record_drop(struct pf_record *rec, const char *name)
{
    struct pf_field *f = pf_record_field(rec, name);
    struct pf_tensor *t = pf_record_tensor(rec, name);

    if (f) {
        rec->n_fields--;
        memmove(f, f + 1,
            (size_t)(rec->fields + rec->n_fields - f) * sizeof *f);
    }
    if (t) {
        rec->n_tensors--;
        memmove(t, t + 1,
            (size_t)(rec->tensors + rec->n_tensors - t) * sizeof *t);
    }
}

void
pf_record_drop_if(struct pf_record *rec,
    bool (*drop)(const char *name, bool tensor))
{
    size_t k = 0;

    for (size_t i = 0; i < rec->n_fields; i++)
        if (!drop(rec->fields[i].name, false))
            rec->fields[k++] = rec->fields[i];
    rec->n_fields = k;
    k = 0;
    for (size_t i = 0; i < rec->n_tensors; i++)
        if (!drop(rec->tensors[i].name, true))
            rec->tensors[k++] = rec->tensors[i];
    rec->n_tensors = k;
}

/* A new last field; its name, key and text are the caller's to set. */
struct pf_field *
pf_record_new_field(struct pf_record *rec)
{
    if (!pf_grow(&rec->fields, &rec->cap_fields, rec->n_fields + 1,
            sizeof *rec->fields))
        return NULL;
    return &rec->fields[rec->n_fields++];
}

struct pf_tensor *
pf_record_new_tensor(struct pf_record *rec)
{
    if (!pf_grow(&rec->tensors, &rec->cap_tensors, rec->n_tensors + 1,
            sizeof *rec->tensors))
        return NULL;
    return memset(&rec->tensors[rec->n_tensors++], 0, sizeof *rec->tensors);
}

enum pf_status
pf_record_set(struct pf_record *rec, const char *name, const char *json,
    size_t len, struct pf_err *err)
{
    struct pf_field *f = pf_record_field(rec, name);
    struct pf_buf key = PF_BUF_INIT;
    char *text = pf_arena_copy(&rec->mem, json, len);

    if (!text)
        return pf_fail_mem(err);
    if (!f) {
        pf_json_add_string(&key, name, strlen(name));
        f = key.failed ? NULL : pf_record_new_field(rec);
        if (f) {
            f->name = pf_arena_copy(&rec->mem, name, strlen(name));
            f->key = pf_arena_copy(&rec->mem, key.data, key.len);
            f->key_len = key.len;
        }
        pf_buf_fini(&key);
        if (!f || !f->name || !f->key) {
            rec->n_fields -= f != NULL;
            return pf_fail_mem(err);
        }
    }
    f->text = text;
    f->len = len;
    return PF_OK;
}

enum pf_status
pf_record_set_i64(struct pf_record *rec, const char *name, int64_t v,
    struct pf_err *err)
{
    char s[20];

    return pf_record_set(rec, name, s, pf_i64_print(s, v), err);
}

enum pf_status
pf_record_set_f32(struct pf_record *rec, const char *name, float v,
    struct pf_err *err)
{
    char s[PF_F32_MAX];

    return pf_record_set(rec, name, s, pf_f32_print(s, v), err);
}

enum pf_status
pf_record_set_f64(struct pf_record *rec, const char *name, double v,
    struct pf_err *err)
{
    struct pf_buf b = PF_BUF_INIT;
    enum pf_status st;

    pf_json_add_f64(&b, v);
    st = pf_buf_check(&b, err);
    if (!st)
        st = pf_record_set(rec, name, b.data, b.len, err);
    pf_buf_fini(&b);
    return st;
}

enum pf_status
pf_record_set_string(struct pf_record *rec, const char *name, const char *s,
    size_t len, struct pf_err *err)
{
    struct pf_buf b = PF_BUF_INIT;
    enum pf_status st;

    pf_json_add_string(&b, s, len);
    st = pf_buf_check(&b, err);
    if (!st)
        st = pf_record_set(rec, name, b.data, b.len, err);
    pf_buf_fini(&b);
    return st;
}

enum pf_status
pf_record_copy_field(struct pf_record *rec, const struct pf_record *from,
    const char *name, struct pf_err *err)
{
    const struct pf_field *f = pf_record_field(from, name);
    enum pf_status st;
    char *key;

    if (!f)
        return PF_OK;
    key = pf_arena_copy(&rec->mem, f->key, f->key_len);
    if (!key)
        return pf_fail_mem(err);
    st = pf_record_set(rec, name, f->text, f->len, err);
    if (!st) {
        pf_record_field(rec, name)->key = key;
        pf_record_field(rec, name)->key_len = f->key_len;
    }
    return st;
}

struct pf_tensor *
pf_record_put(struct pf_record *rec, const char *name, enum pf_dtype type,
    unsigned ndim, const size_t *shape, const void *data)
{
    struct pf_tensor *t;
    size_t bytes;

    if (pf_shape_size(shape, ndim, type, NULL, &bytes, NULL))
        return NULL;
    if (!data)
        data = pf_arena_alloc(&rec->mem, bytes);
    name = pf_arena_copy(&rec->mem, name, strlen(name));
    if (!data || !name)
        return NULL;
    t = pf_record_tensor(rec, name);
    if (!t)
        t = pf_record_new_tensor(rec);
    if (!t)
        return NULL;
    t->name = name;
    t->dtype = type;
    t->ndim = ndim;
    if (ndim)
        memcpy(t->shape, shape, ndim * sizeof *shape);
    t->data = data;
    return t;
}

/* "pos" and what is wrong with it, in one sentence. */
static enum pf_status
named(const char *name, enum pf_status st, const struct pf_err *why,
    struct pf_err *err)
{
    return pf_fail(err, st, "%s: %.300s", name, why->msg);
}

enum pf_status
pf_record_i64(const struct pf_record *rec, const char *name, int64_t absent,
    int64_t *v, struct pf_err *err)
{
    const struct pf_field *f = pf_record_field(rec, name);
    struct pf_err why;
    enum pf_status st;

    *v = absent;
    if (pf_record_tensor(rec, name))
        return pf_fail(err, PF_EFORMAT, "%s: is a tensor, not an integer",
            name);
    if (!f)
        return PF_OK;
    st = pf_json_text_i64(f->text, f->len, v, &why);
    return st ? named(name, st, &why, err) : PF_OK;
}

enum pf_status
pf_record_pos(const struct pf_record *rec, size_t *pos, struct pf_err *err)
{
    int64_t v;
    enum pf_status st = pf_record_i64(rec, "pos", 0, &v, err);

    if (st)
        return st;
    if (v < 0 || v > INT32_MAX)
        return pf_fail(err, PF_ERANGE, "pos: %lld is no position",
            (long long)v);
    *pos = (size_t)v;
    return PF_OK;
}

enum pf_status
pf_record_string(const struct pf_record *rec, const char *name,
    struct pf_buf *out, struct pf_err *err)
{
    const struct pf_field *f = pf_record_field(rec, name);
    struct pf_err why;
    enum pf_status st;

    if (!f && pf_record_tensor(rec, name))
        return pf_fail(err, PF_EFORMAT, "%s: is a tensor, not a string", name);
    if (!f)
        return PF_END;
    st = pf_json_text_string(f->text, f->len, out, &why);
    return st ? named(name, st, &why, err) : PF_OK;
}

enum pf_status
pf_record_bool(const struct pf_record *rec, const char *name, bool *v,
    struct pf_err *err)
{
    const struct pf_field *f = pf_record_field(rec, name);

    *v = f && f->len == 4 && memcmp(f->text, "true", 4) == 0;
    if (!f && pf_record_tensor(rec, name))
        return pf_fail(err, PF_EFORMAT, "%s: is a tensor, neither true nor "
            "false", name);
    if (!f || *v || (f->len == 5 && memcmp(f->text, "false", 5) == 0)
        || (f->len == 4 && memcmp(f->text, "null", 4) == 0))
        return PF_OK;
    return pf_fail(err, PF_EFORMAT, "%s: is neither true nor false", name);
}

enum pf_status
pf_record_seq(const struct pf_record *rec, const char *name,
    struct pf_buf *key, struct pf_err *err)
{
    const struct pf_field *f = pf_record_field(rec, name);
    struct pf_err why;
    enum pf_status st;
    size_t digits;

    if (!f && pf_record_tensor(rec, name))
        return pf_fail(err, PF_EFORMAT, "%s: is a tensor; it names a sequence "
            "and must be a string or an integer", name);
    if (!f)
        return PF_OK;
    if (f->text[0] == '"') {
        pf_buf_addc(key, 's');
        st = pf_json_text_string(f->text, f->len, key, &why);
        return st ? named(name, st, &why, err) : pf_buf_check(key, err);
    }
    digits = f->text[0] == '-';
    while (digits < f->len && f->text[digits] >= '0' && f->text[digits] <= '9')
        digits++;
    if (digits != f->len)
        return pf_fail(err, PF_EFORMAT, "%s: %.*s is neither a string nor an "
            "integer", name, (int)(f->len < 40 ? f->len : 40), f->text);
    pf_buf_addc(key, 'i');
    if (f->len == 2 && memcmp(f->text, "-0", 2) == 0)
        pf_buf_addc(key, '0');
    else
        pf_buf_add(key, f->text, f->len);
    return pf_buf_check(key, err);
}

enum pf_status
pf_record_f32(struct pf_record *rec, const char *name,
    const struct pf_tensor **t, const float **v, struct pf_err *err)
{
    struct pf_tensor *x = pf_record_tensor(rec, name);
    size_t n;
    float *copy;

    *t = x;
    *v = NULL;
    if (!x && pf_record_field(rec, name))
        return pf_fail(err, PF_EFORMAT, "%s: is no array of numbers", name);
    if (!x)
        return PF_OK;
    if (x->dtype != PF_F32 || (uintptr_t)x->data % sizeof(float)) {
        if (x->dtype != PF_F32 && x->dtype != PF_F16 && x->dtype != PF_BF16
            && x->dtype != PF_F64)
            return pf_fail(err, PF_EFORMAT, "%s: is of type %s, not of floats",
                name, pf_dtype_name(x->dtype));
        n = pf_tensor_count(x);
        copy = n > SIZE_MAX / 8 ? NULL
            : pf_arena_alloc(&rec->mem, n * sizeof *copy);
        if (!copy)
            return pf_fail_mem(err);
        pf_to_f32(copy, x->data, x->dtype, n);
        x->data = copy;
        x->dtype = PF_F32;
    }
    *v = x->data;
    return PF_OK;
}

enum pf_status
pf_record_ids(struct pf_record *rec, const char *name, const uint32_t **v,
    size_t *n, struct pf_err *err)
{
    struct pf_tensor *t = pf_record_tensor(rec, name);
    uint32_t *ids;
    int64_t id;

    *v = NULL;
    *n = 0;
    if (!t && pf_record_field(rec, name))
        return pf_fail(err, PF_EFORMAT, "%s: is no array of integers", name);
    if (!t)
        return PF_OK;
    if (t->ndim != 1) {
        char shape[128];

        return pf_fail(err, PF_ESHAPE, "%s: has the shape %s, not one "
            "dimension", name,
            pf_shape_format(shape, sizeof shape, t->shape, t->ndim));
    }
    if (t->dtype != PF_I32 && t->dtype != PF_I64 && t->dtype != PF_U32
        && t->dtype != PF_U16)
        return pf_fail(err, PF_EFORMAT, "%s: is of type %s, not of integers",
            name, pf_dtype_name(t->dtype));
    *n = t->shape[0];
    if (t->dtype == PF_I32 && (uintptr_t)t->data % sizeof *ids == 0) {
        const int32_t *i32 = t->data;
        int32_t any = 0;

        for (size_t i = 0; i < *n; i++)
            any |= i32[i];
        *v = t->data;
        if (any >= 0)
            return PF_OK;
    }
    ids = *n > SIZE_MAX / 8 ? NULL
        : pf_arena_alloc(&rec->mem, *n * sizeof *ids);
    if (!ids)
        return pf_fail_mem(err);
    for (size_t i = 0; i < *n; i++) {
        pf_to_i64(&id, (const char *)t->data + i * pf_dtype_size(t->dtype),
            t->dtype, 1);
        if (id < 0 || id > INT32_MAX)
            return pf_fail(err, PF_ERANGE, "%s: %lld at %zu is no token id",
                name, (long long)id, i);
        ids[i] = (uint32_t)id;
    }
    *v = ids;
    return PF_OK;
}

/* The field is there and a string; null and false stand for absent. */
static bool
is_string(const struct pf_record *rec, const char *name)
{
    const struct pf_field *f = pf_record_field(rec, name);

    return f && f->text[0] == '"';
}

bool
pf_record_is_error(const struct pf_record *rec)
{
    return is_string(rec, "error");
}

bool
pf_record_is_done(const struct pf_record *rec)
{
    return is_string(rec, "done");
}

bool
pf_record_done_by(const struct pf_record *rec, const char *why)
{
    const struct pf_field *f = pf_record_field(rec, "done");
    size_t n = strlen(why);

    return f && f->len == n + 2 && f->text[0] == '"'
        && memcmp(f->text + 1, why, n) == 0;
}

enum pf_status
pf_record_check(const struct pf_record *rec, struct pf_err *err)
{
    static const char *const strings[] = { "done", "error" };
    bool more;

    for (size_t i = 0; i < 2; i++) {
        const struct pf_field *f = pf_record_field(rec, strings[i]);

        if (pf_record_tensor(rec, strings[i])
            || (f && !strchr("\"nf", f->text[0])))
            return pf_fail(err, PF_EFORMAT, "%s: is no string", strings[i]);
    }
    return pf_record_bool(rec, "more", &more, err);
}

bool
pf_record_is_mark(const struct pf_record *rec)
{
    size_t pos = 0;

    if (!pf_record_is_done(rec))
        return false;
    if (!pf_record_field(rec, "seq"))
        return true;
    return pf_record_pos(rec, &pos, NULL) == PF_OK && pos > 0;
}
