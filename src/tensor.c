#include <pipeformer/tensor.h>

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
} dtypes[PF_N_DTYPES] = {
    [PF_BOOL] = { "BOOL", 1 },
    [PF_U8] = { "U8", 1 },
    [PF_I8] = { "I8", 1 },
    [PF_F8_E5M2] = { "F8_E5M2", 1 },
    [PF_F8_E4M3] = { "F8_E4M3", 1 },
    [PF_I16] = { "I16", 2 },
    [PF_U16] = { "U16", 2 },
    [PF_F16] = { "F16", 2 },
    [PF_BF16] = { "BF16", 2 },
    [PF_I32] = { "I32", 4 },
    [PF_U32] = { "U32", 4 },
    [PF_F32] = { "F32", 4 },
    [PF_F64] = { "F64", 8 },
    [PF_I64] = { "I64", 8 },
    [PF_U64] = { "U64", 8 },
};

enum { MAX_EMPTY = 1 << 24 };

size_t
pf_dtype_size(enum pf_dtype t)
{
    return dtypes[t].size;
}

const char *
pf_dtype_name(enum pf_dtype t)
{
    return dtypes[t].name;
}

bool
pf_dtype_find(const char *name, size_t len, enum pf_dtype *t)
{
    for (int i = 0; i < PF_N_DTYPES; i++) {
        if (strlen(dtypes[i].name) == len
            && memcmp(dtypes[i].name, name, len) == 0) {
            *t = (enum pf_dtype)i;
            return true;
        }
    }
    return false;
}

bool
pf_mul(size_t a, size_t b, size_t *product)
{
    if (a && b > SIZE_MAX / a)
        return false;
    *product = a * b;
    return true;
}

enum pf_status
pf_shape_size(const size_t *shape, unsigned ndim, enum pf_dtype t,
    size_t *count, size_t *bytes, struct pf_err *err)
{
    size_t n = 1, size;
    bool empty = false;

    for (unsigned i = 0; i < ndim; i++) {
        empty |= shape[i] == 0;
        if (shape[i] && !pf_mul(n, shape[i], &n))
            n = SIZE_MAX;
    }
    /* An empty array claims what it likes for its other axes: bounded too,
     * since some go through them row by row. */
    if (empty && n > MAX_EMPTY)
        return pf_fail(err, PF_ESHAPE, "an empty array with axes of %zu", n);
    if (!pf_mul(n, pf_dtype_size(t), &size) || size > SIZE_MAX / 2)
        return pf_fail(err, PF_ESHAPE, "a shape of more bytes than memory "
            "has addresses");
    if (empty)
        n = 0;
    if (count)
        *count = n;
    if (bytes)
        *bytes = n * pf_dtype_size(t);
    return PF_OK;
}

size_t
pf_tensor_count(const struct pf_tensor *t)
{
    size_t n = 1;

    for (unsigned i = 0; i < t->ndim; i++)
        n *= t->shape[i];
    return n;
}

size_t
pf_tensor_bytes(const struct pf_tensor *t)
{
    return pf_tensor_count(t) * pf_dtype_size(t->dtype);
}

char *
pf_shape_format(char *s, size_t size, const size_t *shape, unsigned ndim)
{
    size_t len = (size_t)snprintf(s, size, "[");

    for (unsigned i = 0; i < ndim && len < size; i++)
        len += (size_t)snprintf(s + len, size - len, "%s%zu",
            i ? ", " : "", shape[i]);
    if (len < size)
        snprintf(s + len, size - len, "]");
    return s;
}

float
pf_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, bits;
    uint32_t exp = (h >> 10) & 0x1f, man = h & 0x3ff;
    float f;

    if (exp == 0) { /* zero and subnormal: man * 2^-24, exact */
        f = (float)man * 0x1p-24f;
        return sign ? -f : f;
    }
    if (exp == 31)
        bits = sign | 0x7f800000 | man << 13;
    else
        bits = sign | (exp + 112) << 23 | man << 13;
    memcpy(&f, &bits, sizeof f);
    return f;
}

float
pf_bf16_to_f32(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float f;

    memcpy(&f, &bits, sizeof f);
    return f;
}

float
pf_f8_e5m2_to_f32(uint8_t v)
{
    return pf_f16_to_f32((uint16_t)(v << 8)); /* which has more fraction */
}

float
pf_f8_e4m3_to_f32(uint8_t v)
{
    uint32_t sign = (uint32_t)(v & 0x80) << 24, bits;
    uint32_t exp = (v >> 3) & 0xf, man = v & 7;
    float f;

    if (exp == 0) { /* zero and subnormal */
        f = (float)man * 0x1p-9f;
        return sign ? -f : f;
    }
    if (exp == 15 && man == 7)
        bits = sign | 0x7fc00000;
    else
        bits = sign | (exp + 120) << 23 | man << 20;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Reads element i of any address into a variable of its own type. */
#define GET(type, i) \
    type v; \
    memcpy(&v, (const char *)src + (i) * sizeof v, sizeof v)

#define EACH(type, expr) \
    for (size_t i = 0; i < n; i++) { \
        GET(type, i); \
        dst[i] = (expr); \
    } \
    return true

bool
pf_to_f32(float *dst, const void *src, enum pf_dtype t, size_t n)
{
    switch (t) {
    case PF_F32:
        if (n)
            memcpy(dst, src, n * sizeof *dst);
        return true;
    case PF_F16: EACH(uint16_t, pf_f16_to_f32(v));
    case PF_BF16: EACH(uint16_t, pf_bf16_to_f32(v));
    case PF_F8_E5M2: EACH(uint8_t, pf_f8_e5m2_to_f32(v));
    case PF_F8_E4M3: EACH(uint8_t, pf_f8_e4m3_to_f32(v));
    case PF_F64: EACH(double, (float)v);
    case PF_BOOL: EACH(uint8_t, v != 0);
    case PF_U8: EACH(uint8_t, v);
    case PF_I8: EACH(int8_t, v);
    case PF_I16: EACH(int16_t, v);
    case PF_U16: EACH(uint16_t, v);
    case PF_I32: EACH(int32_t, (float)v);
    case PF_U32: EACH(uint32_t, (float)v);
    case PF_I64: EACH(int64_t, (float)v);
    case PF_U64: EACH(uint64_t, (float)v);
    default: return false;
    }
}

bool
pf_to_f64(double *dst, const void *src, enum pf_dtype t, size_t n)
{
    switch (t) {
    case PF_F64:
        if (n)
            memcpy(dst, src, n * sizeof *dst);
        return true;
    case PF_F32: EACH(float, (double)v);
    case PF_F16: EACH(uint16_t, (double)pf_f16_to_f32(v));
    case PF_BF16: EACH(uint16_t, (double)pf_bf16_to_f32(v));
    case PF_F8_E5M2: EACH(uint8_t, (double)pf_f8_e5m2_to_f32(v));
    case PF_F8_E4M3: EACH(uint8_t, (double)pf_f8_e4m3_to_f32(v));
    case PF_BOOL: EACH(uint8_t, v != 0);
    case PF_U8: EACH(uint8_t, v);
    case PF_I8: EACH(int8_t, v);
    case PF_I16: EACH(int16_t, v);
    case PF_U16: EACH(uint16_t, v);
    case PF_I32: EACH(int32_t, v);
    case PF_U32: EACH(uint32_t, v);
    case PF_I64: EACH(int64_t, (double)v);
    case PF_U64: EACH(uint64_t, (double)v);
    default: return false;
    }
}

bool
pf_to_i64(int64_t *dst, const void *src, enum pf_dtype t, size_t n)
{
    switch (t) {
    case PF_BOOL: EACH(uint8_t, v != 0);
    case PF_U8: EACH(uint8_t, v);
    case PF_I8: EACH(int8_t, v);
    case PF_I16: EACH(int16_t, v);
    case PF_U16: EACH(uint16_t, v);
    case PF_I32: EACH(int32_t, v);
    case PF_U32: EACH(uint32_t, v);
    case PF_I64: EACH(int64_t, v);
    case PF_U64: EACH(uint64_t, v > INT64_MAX ? -1 : (int64_t)v);
    default: return false;
    }
}
