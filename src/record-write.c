/*
 * From records to bytes.  NDJSON is put together in memory piece by piece and
 * handed on as it grows; binary is a header and then the data as they lie.
 */
#include <stdlib.h>
#include <string.h>

#include <pipeformer/json.h>
#include <pipeformer/record.h>
#include <pipeformer/safetensors.h>

enum { FEW = 15 }; /* tensors of a record that need no memory of their own */

/* One element at `p`. */
static void
print_number(struct pf_buf *b, enum pf_dtype type, const char *p)
{
    int64_t i;
    uint64_t u;
    double d;
    float f;

    switch (type) {
    case PF_BOOL:
        pf_buf_adds(b, *p ? "true" : "false");
        break;
    case PF_F32:
    case PF_F16:
    case PF_BF16:
    case PF_F8_E4M3:
    case PF_F8_E5M2:
        pf_to_f32(&f, p, type, 1);
        pf_json_add_f32(b, f);
        break;
    case PF_F64:
        memcpy(&d, p, sizeof d);
        pf_json_add_f64(b, d);
        break;
    case PF_U64:
        memcpy(&u, p, sizeof u);
        pf_buf_printf(b, "%llu", (unsigned long long)u);
        break;
    default:
        pf_to_i64(&i, p, type, 1);
        pf_json_add_i64(b, i);
    }
}

/* Axis `level` of an array whose elements from there on begin at p. */
static const char *
print_axis(struct pf_buf *b, const struct pf_tensor *t, unsigned level,
    const char *p)
{
    size_t size = pf_dtype_size(t->dtype);

    if (level == t->ndim) {
        print_number(b, t->dtype, p);
        return p + size;
    }
    pf_buf_addc(b, '[');
    for (size_t i = 0; i < t->shape[level]; i++) {
        if (i)
            pf_buf_addc(b, ',');
        p = print_axis(b, t, level + 1, p);
    }
    pf_buf_addc(b, ']');
    return p;
}

void
pf_tensor_print(struct pf_buf *b, const struct pf_tensor *t)
{
    print_axis(b, t, 0, t->data);
}

/* {"seq":0,...: the fields, without the closing brace. */
static void
print_fields(struct pf_buf *b, const struct pf_record *rec)
{
    for (size_t i = 0; i < rec->n_fields; i++) {
        const struct pf_field *f = &rec->fields[i];

        pf_buf_addc(b, i ? ',' : '{');
        pf_buf_add(b, f->key, f->key_len);
        pf_buf_addc(b, ':');
        pf_buf_add(b, f->text, f->len);
    }
    if (rec->n_fields == 0)
        pf_buf_addc(b, '{');
}

enum pf_status
pf_record_print(struct pf_buf *b, const struct pf_record *rec,
    struct pf_err *err)
{
    size_t from = b->len;

    print_fields(b, rec);
    for (size_t i = 0; i < rec->n_tensors; i++) {
        const struct pf_tensor *t = &rec->tensors[i];

        if (i || rec->n_fields)
            pf_buf_addc(b, ',');
        pf_json_add_string(b, t->name, strlen(t->name));
        pf_buf_addc(b, ':');
        pf_tensor_print(b, t);
    }
    pf_buf_adds(b, "}\n");
    if (b->failed)
        b->len = from;
    return pf_buf_check(b, err);
}

static enum pf_status
write_ndjson(struct pf_out *out, const struct pf_record *rec,
    struct pf_err *err)
{
    size_t from = out->buf.len;
    enum pf_status st = pf_record_print(&out->buf, rec, err);

    if (st)
        return st;
    out->bytes += out->buf.len - from;
    return out->buf.len >= 64 * 1024 ? pf_out_flush(out, err) : PF_OK;
}

/* Header and tensors as they lie, in one go. */
static enum pf_status
write_binary(struct pf_out *out, const struct pf_record *rec,
    struct pf_err *err)
{
    struct pf_buf meta = PF_BUF_INIT, head = PF_BUF_INIT;
    struct pf_part few_parts[FEW + 1], *parts = few_parts;
    size_t few[FEW], *order = few;
    enum pf_status st = PF_OK;

    if (rec->n_fields) {
        print_fields(&meta, rec);
        pf_buf_addc(&meta, '}');
        st = pf_buf_check(&meta, err);
    }
    if (!st && rec->n_tensors > FEW) {
        order = malloc(rec->n_tensors * sizeof *order);
        parts = malloc((rec->n_tensors + 1) * sizeof *parts);
        if (!order || !parts)
            st = pf_fail_mem(err);
    }
    if (!st)
        st = pf_safetensors_header(&head, rec->tensors, rec->n_tensors,
            meta.data, meta.len, order, err);
    if (!st) {
        parts[0] = (struct pf_part){ head.data, head.len };
        for (size_t i = 0; i < rec->n_tensors; i++) {
            const struct pf_tensor *t = &rec->tensors[order[i]];

            parts[i + 1] = (struct pf_part){ t->data, pf_tensor_bytes(t) };
        }
        st = pf_out_write_parts(out, parts, rec->n_tensors + 1, err);
    }
    if (order != few)
        free(order);
    if (parts != few_parts)
        free(parts);
    pf_buf_fini(&meta);
    pf_buf_fini(&head);
    return st;
}

enum pf_status
pf_record_write(struct pf_out *out, const struct pf_record *rec,
    enum pf_format format, struct pf_err *err)
{
    return format == PF_BINARY ? write_binary(out, rec, err)
        : write_ndjson(out, rec, err);
}
