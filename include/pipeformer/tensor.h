#ifndef PIPEFORMER_TENSOR_H
#define PIPEFORMER_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pipeformer/err.h>

/*
 * Element types, named as safetensors names them, and n-dimensional arrays of
 * them.  This is the one place where sizes are multiplied, overflow checked.
 */

enum pf_dtype {
    PF_BOOL, PF_U8, PF_I8, PF_F8_E5M2, PF_F8_E4M3, PF_I16, PF_U16, PF_F16,
    PF_BF16, PF_I32, PF_U32, PF_F32, PF_F64, PF_I64, PF_U64,
    PF_N_DTYPES,
};

enum { PF_MAX_DIMS = 8 };

/*
 * A named row-major array.  Nothing is owned: name, data and the time they
 * live are the holder's (a record's arena, a mapped file).  `data` may lie at
 * any address; little-endian.
 */
struct pf_tensor {
    const char *name;
    enum pf_dtype dtype;
    unsigned ndim; /* 0: one number, no axes */
    size_t shape[PF_MAX_DIMS];
    const void *data;
};

size_t pf_dtype_size(enum pf_dtype t);
const char *pf_dtype_name(enum pf_dtype t);

/* The type of that name ("F32"); false if there is none. */
bool pf_dtype_find(const char *name, size_t len, enum pf_dtype *t);

/* *product = a * b; false on overflow. */
bool pf_mul(size_t a, size_t b, size_t *product);

/*
 * Number of elements and of bytes of a shape; either pointer may be NULL.
 * PF_ESHAPE if the bytes do not fit half of a size_t, or if an array without
 * elements has other axes whose product is beyond 2^24.
 */
enum pf_status pf_shape_size(const size_t *shape, unsigned ndim,
    enum pf_dtype t, size_t *count, size_t *bytes, struct pf_err *err);

/* Of a tensor that was checked when it was made. */
size_t pf_tensor_count(const struct pf_tensor *t);
size_t pf_tensor_bytes(const struct pf_tensor *t);

/* "[3, 160]" into `s` of `size` bytes; returns `s`. */
char *pf_shape_format(char *s, size_t size, const size_t *shape,
    unsigned ndim);

/*
 * `n` elements of any type, at any address, as float32 (exact from F8, F16,
 * BF16, F32; rounded to nearest from wider types).  false for a type that has
 * no such reading; for now, all have.
 */
bool pf_to_f32(float *dst, const void *src, enum pf_dtype t, size_t n);

/* The same as double and, for the integer types and BOOL, as int64. */
bool pf_to_f64(double *dst, const void *src, enum pf_dtype t, size_t n);
bool pf_to_i64(int64_t *dst, const void *src, enum pf_dtype t, size_t n);

/* One number of IEEE 754 binary16 or of bfloat16, as its bits. */
float pf_f16_to_f32(uint16_t bits);
float pf_bf16_to_f32(uint16_t bits);

/*
 * One of 8 bits (OCP 8-bit Floating Point Specification, 1.0): E5M2 is like
 * binary16, E4M3 has no infinities and NaN only where all bits but the sign
 * are set (PyTorch's float8_e4m3fn).
 */
float pf_f8_e5m2_to_f32(uint8_t bits);
float pf_f8_e4m3_to_f32(uint8_t bits);

#endif
