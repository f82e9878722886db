/*
 * NumPy's array file (NEP 1, numpy.lib.format): \x93NUMPY, two bytes of
 * version, the length of a header (2 bytes in version 1, 4 later), and the
 * header, a Python dictionary literal:
 *   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
 * One array a record; column-major ones are turned.
 */
#include <stdlib.h>
#include <string.h>

#include <pipeformer/json.h>
#include <pipeformer/record.h>

#include "record-private.h"

enum { HEADER_MAX = 1 << 20 };

static const struct {
    const char *descr;
    enum pf_dtype type;
} descrs[] = {
    { "|b1", PF_BOOL }, { "|u1", PF_U8 }, { "|i1", PF_I8 }, { "<i2", PF_I16 },
    { "<u2", PF_U16 }, { "<f2", PF_F16 }, { "<i4", PF_I32 }, { "<u4", PF_U32 },
    { "<f4", PF_F32 }, { "<f8", PF_F64 }, { "<i8", PF_I64 }, { "<u8", PF_U64 },
};

struct header {
    size_t start, data; /* of the dictionary and of what follows it */
    enum pf_dtype type;
    bool fortran;
    size_t shape[PF_MAX_DIMS];
    unsigned ndim;
};

/* Cursor over a Python literal. */
struct py {
    const char *p, *end;
};

static bool
py_take(struct py *s, char c)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\n'))
        s->p++;
    if (s->p == s->end || *s->p != c)
        return false;
    s->p++;
    return true;
}

static bool
py_string(struct py *s, const char **text, size_t *len)
{
    char quote = py_take(s, '\'') ? '\'' : py_take(s, '"') ? '"' : '\0';
    const char *end = quote
        ? memchr(s->p, quote, (size_t)(s->end - s->p)) : NULL;

    if (!end)
        return false;
    *text = s->p;
    *len = (size_t)(end - s->p);
    s->p = end + 1;
    return true;
}

static bool
py_word(struct py *s, const char *w)
{
    size_t len = strlen(w);

    if (!py_take(s, w[0]) || (size_t)(s->end - s->p) < len - 1
        || memcmp(s->p, w + 1, len - 1) != 0)
        return false;
    s->p += len - 1;
    return true;
}

static bool
py_size(struct py *s, size_t *n)
{
    const char *from;

    py_take(s, ' ');
    from = s->p;
    *n = 0;
    for (; s->p < s->end && *s->p >= '0' && *s->p <= '9'; s->p++)
        if (!pf_mul(*n, 10, n) || *n > SIZE_MAX / 2)
            return false;
        else
            *n += (size_t)(*s->p - '0');
    return s->p > from;
}

static enum pf_status
dictionary(struct header *h, const char *text, size_t len, struct pf_err *err)
{
    struct py s = { text, text + len };
    const char *key, *v;
    size_t n, v_len;
    unsigned seen = 0, bit;
    bool more = true;

    if (!py_take(&s, '{'))
        return pf_fail(err, PF_EFORMAT, ".npy: the header is no dictionary");
    while (!py_take(&s, '}')) {
        if (!more || !py_string(&s, &key, &n) || !py_take(&s, ':'))
            return pf_fail(err, PF_EFORMAT, ".npy: malformed header");
        if (n == 5 && memcmp(key, "descr", 5) == 0) {
            bool known = false;

            if (!py_string(&s, &v, &v_len))
                return pf_fail(err, PF_EFORMAT, ".npy: structured types are "
                    "not supported");
            for (size_t i = 0; i < sizeof descrs / sizeof *descrs; i++)
                if (v_len == 3 && memcmp(v, descrs[i].descr, 3) == 0) {
                    h->type = descrs[i].type;
                    known = true;
                }
            if (!known)
                return pf_fail(err, PF_EFORMAT, ".npy: type '%.*s' is not "
                    "supported (little-endian numbers and booleans are)",
                    (int)(v_len < 20 ? v_len : 20), v);
            bit = 1;
        } else if (n == 13 && memcmp(key, "fortran_order", 13) == 0) {
            h->fortran = py_word(&s, "True");
            if (!h->fortran && !py_word(&s, "False"))
                return pf_fail(err, PF_EFORMAT, ".npy: fortran_order is "
                    "neither True nor False");
            bit = 2;
        } else if (n == 5 && memcmp(key, "shape", 5) == 0) {
            if (!py_take(&s, '('))
                return pf_fail(err, PF_EFORMAT, ".npy: the shape is no tuple");
            h->ndim = 0;
            for (more = true; !py_take(&s, ')'); more = py_take(&s, ',')) {
                if (!more)
                    return pf_fail(err, PF_EFORMAT, ".npy: malformed shape");
                if (h->ndim == PF_MAX_DIMS)
                    return pf_fail(err, PF_ESHAPE, ".npy: more than %d "
                        "dimensions", PF_MAX_DIMS);
                if (!py_size(&s, &h->shape[h->ndim++]))
                    return pf_fail(err, PF_EFORMAT, ".npy: malformed shape");
            }
            bit = 4;
        } else {
            return pf_fail(err, PF_EFORMAT, ".npy: unknown header key");
        }
        if (seen & bit)
            return pf_fail(err, PF_EFORMAT, ".npy: a header key stands twice");
        seen |= bit;
        more = py_take(&s, ',');
    }
    py_take(&s, '\n'); /* and the spaces before it */
    if (s.p < s.end)
        return pf_fail(err, PF_EFORMAT, ".npy: malformed header");
    return seen == 7 ? PF_OK : pf_fail(err, PF_EFORMAT, ".npy: the header "
        "lacks descr, fortran_order or shape");
}

/* Where the dictionary and the data lie, from the first 12 bytes. */
static void
layout(struct header *h, const char *s)
{
    const unsigned char *p = (const unsigned char *)s;

    h->start = p[6] == 1 ? 10 : 12;
    h->data = h->start + (p[8] | (size_t)p[9] << 8);
    if (p[6] > 1)
        h->data += (size_t)p[10] << 16 | (size_t)p[11] << 24;
}

enum pf_status
pf_npy_len(const char *s, size_t len, size_t *need, struct pf_err *err)
{
    struct header h = { 0 };
    enum pf_status st;
    size_t bytes;

    *need = 12;
    if (len < 12)
        return PF_OK;
    if (s[6] < 1 || s[6] > 3)
        return pf_fail(err, PF_EFORMAT, ".npy: version %d is not supported",
            (unsigned char)s[6]);
    layout(&h, s);
    if (h.data > HEADER_MAX)
        return pf_fail(err, PF_EFORMAT, ".npy: a header of %zu bytes", h.data);
    *need = h.data;
    if (len < h.data)
        return PF_OK;
    st = dictionary(&h, s + h.start, h.data - h.start, err);
    if (!st)
        st = pf_shape_size(h.shape, h.ndim, h.type, NULL, &bytes, err);
    if (!st)
        *need = h.data + bytes;
    return st;
}

/* Column-major to row-major, one element of `size` bytes at a time. */
static void
turn(char *dst, const char *src, const struct header *h, size_t size)
{
    size_t index[PF_MAX_DIMS] = { 0 }, n = 1, from, stride;

    for (unsigned i = 0; i < h->ndim; i++)
        n *= h->shape[i];
    for (size_t k = 0; k < n; k++) {
        from = 0;
        stride = 1;
        for (unsigned i = 0; i < h->ndim; i++) {
            from += index[i] * stride;
            stride *= h->shape[i];
        }
        memcpy(dst + k * size, src + from * size, size);
        for (unsigned i = h->ndim; i-- > 0;) {
            if (++index[i] < h->shape[i])
                break;
            index[i] = 0;
        }
    }
}

enum pf_status
pf_npy_read(struct pf_record *rec, const char *name, const char *s, size_t len,
    struct pf_err *err)
{
    struct header h = { 0 };
    struct pf_tensor *t;
    enum pf_status st;

    layout(&h, s);
    st = dictionary(&h, s + h.start, h.data - h.start, err);
    if (st)
        return st;
    t = pf_record_put(rec, name, h.type, h.ndim, h.shape, NULL);
    if (!t)
        return pf_fail_mem(err);
    if (h.fortran && h.ndim > 1)
        turn((char *)t->data, s + h.data, &h, pf_dtype_size(h.type));
    else if (len > h.data)
        memcpy((char *)t->data, s + h.data, len - h.data);
    return PF_OK;
}

enum pf_status
pf_npy_write(struct pf_out *out, const struct pf_tensor *t,
    struct pf_err *err)
{
    struct pf_buf b = PF_BUF_INIT;
    const char *descr = NULL;
    enum pf_status st;
    size_t pad;

    for (size_t i = 0; i < sizeof descrs / sizeof *descrs; i++)
        if (descrs[i].type == t->dtype)
            descr = descrs[i].descr;
    if (!descr)
        return pf_fail(err, PF_EFORMAT, "%s: numpy has no type %s", t->name,
            pf_dtype_name(t->dtype));
    pf_buf_printf(&b, "{'descr': '%s', 'fortran_order': False, 'shape': (",
        descr);
    for (unsigned i = 0; i < t->ndim; i++)
        pf_buf_printf(&b, i ? " %zu," : "%zu,", t->shape[i]);
    if (t->ndim > 1) /* (3, 4), but (3,) */
        b.len--;
    pf_buf_adds(&b, "), }");
    /* The data begin at a multiple of 64. */
    pad = (64 - (10 + b.len + 1) % 64) % 64;
    while (pad-- && !b.failed)
        pf_buf_addc(&b, ' ');
    pf_buf_addc(&b, '\n');
    st = pf_buf_check(&b, err);
    if (!st) {
        char head[10] = "\x93NUMPY\1\0";

        head[8] = (char)(b.len & 0xff);
        head[9] = (char)(b.len >> 8 & 0xff);
        st = pf_out_write(out, head, sizeof head, err);
    }
    if (!st)
        st = pf_out_write(out, b.data, b.len, err);
    if (!st)
        st = pf_out_write(out, t->data, pf_tensor_bytes(t), err);
    pf_buf_fini(&b);
    return st;
}
