#include <pipeformer/safetensors.h>

#include <stdlib.h>
#include <string.h>

#include <pipeformer/json.h>

static uint64_t
le64(const unsigned char *p)
{
    uint64_t v = 0;

    for (int i = 7; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

enum pf_status
pf_safetensors_len(const char first[8], size_t *len, struct pf_err *err)
{
    uint64_t v = le64((const unsigned char *)first);

    if (v > PF_SAFETENSORS_HEADER_MAX)
        return pf_fail(err, PF_EFORMAT, "safetensors header of %llu bytes: "
            "at most %d are allowed", (unsigned long long)v,
            PF_SAFETENSORS_HEADER_MAX);
    if (v < 2)
        return pf_fail(err, PF_EFORMAT, "safetensors header of %llu bytes is "
            "no JSON object", (unsigned long long)v);
    *len = (size_t)v;
    return PF_OK;
}

/* What is being built; the arrays grow on the heap and move to the arena. */
struct parser {
    struct pf_json j;
    struct pf_arena *mem;
    struct pf_buf name;
    struct pf_tensor *tensors;
    size_t *ends; /* pairs begin, end */
    size_t n, cap, ends_cap;
    struct pf_safetensors_meta *meta;
    size_t n_meta, meta_cap;
    struct pf_err *err;
};

static enum pf_status
size_list(struct parser *p, size_t *list, unsigned max, unsigned *n,
    const char *what)
{
    enum pf_status st = pf_json_open(&p->j, '[', p->err);
    bool first = true;
    int64_t v;

    *n = 0;
    while (!st && !(st = pf_json_next(&p->j, ']', &first, p->err))) {
        st = pf_json_i64(&p->j, &v, p->err);
        if (st)
            return st;
        if (v < 0 || (uint64_t)v > SIZE_MAX)
            return pf_fail(p->err, PF_EFORMAT, "safetensors: negative number "
                "in %s", what);
        if (*n == max)
            return pf_fail(p->err, PF_EFORMAT, "safetensors: more than %u "
                "numbers in %s", max, what);
        list[(*n)++] = (size_t)v;
    }
    return st == PF_END ? PF_OK : st;
}

/* {"dtype":"F32","shape":[..],"data_offsets":[..]} of tensor `t`. */
static enum pf_status
entry(struct parser *p, struct pf_tensor *t, size_t range[2])
{
    enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4 };
    struct pf_buf *b = &p->name;
    enum pf_status st = pf_json_open(&p->j, '{', p->err);
    unsigned seen = 0, bit, n;
    bool first = true;
    size_t bytes;

    while (!st && !(st = pf_json_next(&p->j, '}', &first, p->err))) {
        pf_buf_clear(b);
        st = pf_json_key(&p->j, b, p->err);
        if (st)
            return st;
        if (b->len == 5 && memcmp(b->data, "dtype", 5) == 0) {
            bit = DTYPE;
            pf_buf_clear(b);
            st = pf_json_string(&p->j, b, p->err);
            if (!st && !pf_dtype_find(b->data, b->len, &t->dtype))
                st = pf_fail(p->err, PF_EFORMAT, "safetensors: \"%s\" has the "
                    "unknown dtype \"%.*s\"", t->name,
                    (int)(b->len < 40 ? b->len : 40), b->data);
        } else if (b->len == 5 && memcmp(b->data, "shape", 5) == 0) {
            bit = SHAPE;
            st = size_list(p, t->shape, PF_MAX_DIMS, &t->ndim, "shape");
        } else if (b->len == 12 && memcmp(b->data, "data_offsets", 12) == 0) {
            bit = OFFSETS;
            st = size_list(p, range, 2, &n, "data_offsets");
            if (!st && n != 2)
                st = pf_fail(p->err, PF_EFORMAT, "safetensors: \"%s\" has %u "
                    "data_offsets, not two", t->name, n);
        } else {
            return pf_fail(p->err, PF_EFORMAT, "safetensors: \"%s\" has the "
                "unknown key \"%.*s\"", t->name,
                (int)(b->len < 40 ? b->len : 40), b->data);
        }
        if (!st && seen & bit)
            st = pf_fail(p->err, PF_EFORMAT, "safetensors: \"%s\" has a key "
                "twice", t->name);
        seen |= bit;
    }
    if (st != PF_END)
        return st;
    if (seen != (DTYPE | SHAPE | OFFSETS))
        return pf_fail(p->err, PF_EFORMAT, "safetensors: \"%s\" lacks dtype, "
            "shape or data_offsets", t->name);
    st = pf_shape_size(t->shape, t->ndim, t->dtype, NULL, &bytes, p->err);
    if (st)
        return st;
    if (range[1] < range[0] || range[1] - range[0] != bytes) {
        char shape[128];

        pf_shape_format(shape, sizeof shape, t->shape, t->ndim);
        return pf_fail(p->err, PF_EFORMAT, "safetensors: \"%s\" is %s %s, %zu "
            "bytes, and its data_offsets are %zu to %zu", t->name,
            pf_dtype_name(t->dtype), shape, bytes, range[0], range[1]);
    }
    return PF_OK;
}

static enum pf_status
metadata(struct parser *p)
{
    enum pf_status st = pf_json_open(&p->j, '{', p->err);
    struct pf_safetensors_meta *m;
    bool first = true;

    while (!st && !(st = pf_json_next(&p->j, '}', &first, p->err))) {
        if (!pf_grow(&p->meta, &p->meta_cap, p->n_meta + 1, sizeof *p->meta))
            return pf_fail_mem(p->err);
        m = &p->meta[p->n_meta];
        pf_buf_clear(&p->name);
        st = pf_json_key(&p->j, &p->name, p->err);
        if (st)
            return st;
        m->key = pf_arena_copy(p->mem, p->name.data, p->name.len);
        m->key_len = p->name.len;
        pf_buf_clear(&p->name);
        st = pf_json_string(&p->j, &p->name, p->err);
        if (st)
            return st;
        m->value = pf_arena_copy(p->mem, p->name.data, p->name.len);
        m->value_len = p->name.len;
        if (!m->key || !m->value)
            return pf_fail_mem(p->err);
        p->n_meta++;
    }
    return st == PF_END ? PF_OK : st;
}

static enum pf_status
parse(struct parser *p)
{
    enum pf_status st = pf_json_open(&p->j, '{', p->err);
    bool first = true, meta = false;
    struct pf_tensor *t;

    while (!st && !(st = pf_json_next(&p->j, '}', &first, p->err))) {
        pf_buf_clear(&p->name);
        st = pf_json_key(&p->j, &p->name, p->err);
        if (st)
            return st;
        if (p->name.len == 12
            && memcmp(p->name.data, "__metadata__", 12) == 0) {
            if (meta)
                return pf_fail(p->err, PF_EFORMAT, "safetensors: __metadata__ "
                    "stands twice");
            meta = true;
            st = metadata(p);
            continue;
        }
        if (p->name.len && memchr(p->name.data, 0, p->name.len))
            return pf_fail(p->err, PF_EFORMAT, "safetensors: a name holds "
                "U+0000");
        if (!pf_grow(&p->tensors, &p->cap, p->n + 1, sizeof *p->tensors)
            || !pf_grow(&p->ends, &p->ends_cap, 2 * p->n + 2,
                sizeof *p->ends))
            return pf_fail_mem(p->err);
        t = &p->tensors[p->n];
        memset(t, 0, sizeof *t);
        t->name = pf_arena_copy(p->mem, p->name.data, p->name.len);
        if (!t->name)
            return pf_fail_mem(p->err);
        st = entry(p, t, p->ends + 2 * p->n);
        p->n++;
    }
    return st == PF_END ? pf_json_end(&p->j, p->err) : st;
}

/* A tensor in its place among the data, for sorting. */
struct place {
    size_t begin, end;
    const char *name;
};

static int
by_begin(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(((const struct place *)a)->name,
        ((const struct place *)b)->name);
}

/* Names differ; ranges follow each other from 0. */
static enum pf_status
check_places(struct parser *p, size_t *data_len)
{
    struct place *places = malloc(p->n * sizeof *places);
    enum pf_status st = PF_OK;
    size_t at = 0;

    if (!places)
        return pf_fail_mem(p->err);
    for (size_t i = 0; i < p->n; i++)
        places[i] = (struct place){ p->ends[2 * i], p->ends[2 * i + 1],
            p->tensors[i].name };
    qsort(places, p->n, sizeof *places, by_name);
    for (size_t i = 1; !st && i < p->n; i++)
        if (strcmp(places[i - 1].name, places[i].name) == 0)
            st = pf_fail(p->err, PF_EFORMAT, "safetensors: the name \"%s\" "
                "stands twice", places[i].name);
    qsort(places, p->n, sizeof *places, by_begin);
    for (size_t i = 0; !st && i < p->n; i++) {
        if (places[i].begin != at)
            st = pf_fail(p->err, PF_EFORMAT, "safetensors: \"%s\" begins at "
                "%zu where %zu is next", places[i].name, places[i].begin, at);
        at = places[i].end;
    }
    free(places);
    *data_len = at;
    return st;
}

enum pf_status
pf_safetensors_parse(struct pf_safetensors *out, struct pf_arena *mem,
    const char *header, size_t len, struct pf_err *err)
{
    struct pf_err why;
    struct parser p = { .j = pf_json_at(header, len), .mem = mem,
        .err = &why };
    enum pf_status st = parse(&p);

    if (st == PF_ENOMEM)
        pf_fail_mem(err);
    else if (st)
        pf_fail(err, st, "%.300s (byte %zu of the header)", why.msg,
            (size_t)(p.j.p - header));
    p.err = err;
    *out = (struct pf_safetensors){ .n = p.n, .n_meta = p.n_meta };
    if (!st && p.n)
        st = check_places(&p, &out->data_len);
    if (!st) {
        out->tensors = pf_arena_alloc(mem, p.n * sizeof *p.tensors);
        out->offsets = pf_arena_alloc(mem, p.n * sizeof *out->offsets);
        out->meta = pf_arena_alloc(mem, p.n_meta * sizeof *p.meta);
        if (!out->tensors || !out->offsets || !out->meta)
            st = pf_fail_mem(err);
    }
    if (!st) {
        if (p.n)
            memcpy(out->tensors, p.tensors, p.n * sizeof *p.tensors);
        if (p.n_meta)
            memcpy(out->meta, p.meta, p.n_meta * sizeof *p.meta);
        for (size_t i = 0; i < p.n; i++)
            out->offsets[i] = p.ends[2 * i];
    }
    pf_buf_fini(&p.name);
    free(p.tensors);
    free(p.ends);
    free(p.meta);
    return st;
}

enum pf_status
pf_safetensors_header(struct pf_buf *out, const struct pf_tensor *tensors,
    size_t n, const char *meta, size_t meta_len, size_t *order,
    struct pf_err *err)
{
    size_t from = out->len, k = 0, at = 0;
    uint64_t len;

    for (size_t size = 8; size; size /= 2)
        for (size_t i = 0; i < n; i++)
            if (pf_dtype_size(tensors[i].dtype) == size)
                order[k++] = i;
    pf_buf_add(out, "\0\0\0\0\0\0\0\0{", 9);
    if (meta_len) {
        pf_buf_adds(out, "\"__metadata__\":{\"pipeformer\":");
        pf_json_add_string(out, meta, meta_len);
        pf_buf_adds(out, n ? "}," : "}");
    }
    for (k = 0; k < n; k++) {
        const struct pf_tensor *t = &tensors[order[k]];
        size_t bytes = pf_tensor_bytes(t);

        pf_json_add_string(out, t->name, strlen(t->name));
        pf_buf_adds(out, ":{\"dtype\":\"");
        pf_buf_adds(out, pf_dtype_name(t->dtype));
        pf_buf_adds(out, "\",\"shape\":[");
        for (unsigned i = 0; i < t->ndim; i++) {
            if (i)
                pf_buf_addc(out, ',');
            pf_json_add_i64(out, (int64_t)t->shape[i]);
        }
        pf_buf_adds(out, "],\"data_offsets\":[");
        pf_json_add_i64(out, (int64_t)at);
        at += bytes;
        pf_buf_addc(out, ',');
        pf_json_add_i64(out, (int64_t)at);
        pf_buf_adds(out, k + 1 < n ? "]}," : "]}");
    }
    pf_buf_addc(out, '}');
    while ((out->len - from) % 8 && !out->failed)
        pf_buf_addc(out, ' ');
    if (out->failed)
        return pf_fail_mem(err);
    len = out->len - from - 8;
    if (len > PF_SAFETENSORS_HEADER_MAX)
        return pf_fail(err, PF_ERANGE, "the metadata of a record would take "
            "more than %d bytes", PF_SAFETENSORS_HEADER_MAX);
    for (int i = 0; i < 8; i++)
        out->data[from + (size_t)i] = (char)(len >> 8 * i & 0xff);
    return PF_OK;
}
