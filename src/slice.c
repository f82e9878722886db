#include <pipeformer/slice.h>

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Of one axis: n entries from `start`, `step` apart. */
struct range {
    long long start, step;
    size_t n;
    bool index; /* the axis goes */
};

/* Longer axes do not fit memory, so no sum below overflows. */
#define AXIS_MAX ((long long)1 << 60)

/* A number at *p; false, and *p where it was, if there is none. */
static bool
number(const char **p, long long *v)
{
    char *end;
    long long n;

    if (**p != '-' && (**p < '0' || **p > '9'))
        return false;
    errno = 0;
    n = strtoll(*p, &end, 10);
    if (end == *p || errno || n > AXIS_MAX || n < -AXIS_MAX)
        return false;
    *p = end;
    *v = n;
    return true;
}

static long long
clip(long long v, long long lo, long long hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* One entry between commas, of an axis of `size`. */
static enum pf_status
parse(const char **p, long long size, struct range *r, struct pf_err *err)
{
    long long start = 0, stop = 0, step = 1, v;
    bool has_start = number(p, &start), has_stop;

    if (**p != ':') {
        if (!has_start)
            return pf_fail(err, PF_EFORMAT, "a slice is a number or "
                "start:stop:step, not \"%.20s\"", *p);
        v = start < 0 ? start + size : start;
        if (v < 0 || v >= size)
            return pf_fail(err, PF_ERANGE, "index %lld of an axis of %lld",
                start, size);
        *r = (struct range){ v, 1, 1, true };
        return PF_OK;
    }
    ++*p;
    has_stop = number(p, &stop);
    if (**p == ':') {
        ++*p;
        if (number(p, &step) && step == 0)
            return pf_fail(err, PF_EFORMAT, "a slice with step 0");
    }
    if (step > 0) {
        start = has_start ? start : 0;
        stop = has_stop ? stop : size;
        start = clip(start < 0 ? start + size : start, 0, size);
        stop = clip(stop < 0 ? stop + size : stop, 0, size);
        v = stop > start ? (stop - start - 1) / step + 1 : 0;
    } else {
        start = has_start ? start : size - 1;
        start = clip(start < 0 ? start + size : start, -1, size - 1);
        stop = has_stop ? clip(stop < 0 ? stop + size : stop, -1, size - 1)
            : -1;
        v = start > stop ? (start - stop - 1) / -step + 1 : 0;
    }
    *r = (struct range){ start, step, (size_t)v, false };
    return PF_OK;
}

enum pf_status
pf_slice(struct pf_record *rec, struct pf_tensor *t, const char *slice,
    struct pf_err *err)
{
    struct range r[PF_MAX_DIMS];
    size_t stride[PF_MAX_DIMS], index[PF_MAX_DIMS] = { 0 };
    size_t size = pf_dtype_size(t->dtype), n = 1, bytes, s = size;
    size_t shape[PF_MAX_DIMS];
    unsigned ndim = 0, axis = 0;
    enum pf_status st;
    const char *src;
    char *dst;

    while (*slice) {
        if (axis == t->ndim)
            return pf_fail(err, PF_ESHAPE, "%s: more slices than its %u axes",
                t->name, t->ndim);
        st = parse(&slice, (long long)t->shape[axis], &r[axis], err);
        if (st)
            return st;
        axis++;
        if (*slice == ',' && slice[1])
            slice++;
        else if (*slice)
            return pf_fail(err, PF_EFORMAT, "malformed slice at \"%.20s\"",
                slice);
    }
    for (; axis < t->ndim; axis++)
        r[axis] = (struct range){ 0, 1, t->shape[axis], false };
    for (axis = t->ndim; axis-- > 0;) {
        stride[axis] = s;
        s *= t->shape[axis];
        n *= r[axis].n;
    }
    for (axis = 0; axis < t->ndim; axis++)
        if (!r[axis].index)
            shape[ndim++] = r[axis].n;
    st = pf_shape_size(shape, ndim, t->dtype, NULL, &bytes, err);
    if (st)
        return st;
    dst = pf_arena_alloc(&rec->mem, bytes);
    if (!dst)
        return pf_fail_mem(err);
    for (size_t k = 0; k < n; k++) {
        src = t->data;
        for (axis = 0; axis < t->ndim; axis++)
            src += (size_t)(r[axis].start
                + (long long)index[axis] * r[axis].step) * stride[axis];
        memcpy(dst + k * size, src, size);
        for (axis = t->ndim; axis-- > 0;) {
            if (++index[axis] < r[axis].n)
                break;
            index[axis] = 0;
        }
    }
    memcpy(t->shape, shape, ndim * sizeof *shape);
    t->ndim = ndim;
    t->data = dst;
    return PF_OK;
}

/* The tensor that `what` names, cut. */
static enum pf_status
select_one(struct pf_record *rec, const char *what, struct pf_tensor *t,
    struct pf_err *err)
{
    const char *colon = strchr(what, ':');
    size_t len = colon ? (size_t)(colon - what) : strlen(what);
    char *name = pf_arena_copy(&rec->mem, what, len);
    const struct pf_tensor *from;
    enum pf_status st = PF_OK;
    struct pf_err why;

    if (!name)
        return pf_fail_mem(err);
    from = pf_record_tensor(rec, name);
    if (!from)
        return pf_fail(err, PF_ESHAPE, "the record has no tensor %s%s", name,
            strchr(name, '[') ? " (a slice is written NAME:-1,0:5)" : "");
    *t = *from;
    if (colon && colon[1])
        st = pf_slice(rec, t, colon + 1, &why);
    return st ? pf_fail(err, st, "%.80s: %.300s", what, why.msg) : PF_OK;
}

enum pf_status
pf_select(struct pf_record *rec, const char *const *what, size_t n,
    struct pf_err *err)
{
    struct pf_tensor *kept = pf_arena_alloc(&rec->mem, n * sizeof *kept);
    enum pf_status st = kept ? PF_OK : pf_fail_mem(err);

    for (size_t i = 0; i < n && !st; i++)
        st = select_one(rec, what[i], &kept[i], err);
    if (st)
        return st;
    rec->n_tensors = 0;
    for (size_t i = 0; i < n; i++) {
        const struct pf_tensor *t = &kept[i];

        if (pf_record_tensor(rec, t->name))
            return pf_fail(err, PF_EFORMAT, "%s is selected twice", t->name);
        if (!pf_record_put(rec, t->name, t->dtype, t->ndim, t->shape,
                t->data))
            return pf_fail_mem(err);
    }
    return PF_OK;
}
