/*
 * Any bytes as a stream: each record that is read is written in both
 * encodings and read back as the same.
 */
#include <stdlib.h>
#include <string.h>

#include <pipeformer/record.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(bool ok)
{
    if (!ok)
        abort();
}

/* A copy of the bytes as an input that has ended. */
static struct pf_in
input(const void *p, size_t n)
{
    struct pf_in in = PF_IN_INIT;

    in.data = malloc(n + 1);
    if (!in.data)
        abort();
    if (n)
        memcpy(in.data, p, n);
    in.end = in.cap = n;
    in.eof = true;
    return in;
}

static void
same(const struct pf_record *a, const struct pf_record *b, bool types)
{
    check(a->n_fields == b->n_fields && a->n_tensors == b->n_tensors);
    for (size_t i = 0; i < a->n_fields; i++) {
        check(strcmp(a->fields[i].name, b->fields[i].name) == 0);
        check(a->fields[i].len == b->fields[i].len);
        check(memcmp(a->fields[i].text, b->fields[i].text,
            a->fields[i].len) == 0);
    }
    for (size_t i = 0; types && i < a->n_tensors; i++) {
        const struct pf_tensor *t = &a->tensors[i];
        const struct pf_tensor *u = pf_record_tensor(b, t->name);

        check(u && u->dtype == t->dtype && u->ndim == t->ndim);
        check(memcmp(u->shape, t->shape, t->ndim * sizeof *t->shape) == 0);
        check(pf_tensor_bytes(t) == 0
            || memcmp(u->data, t->data, pf_tensor_bytes(t)) == 0);
    }
}

/* Writes and reads back; NDJSON may not tell every type. */
static void
round_trip(const struct pf_record *rec, bool all, enum pf_format format)
{
    struct pf_out out = { .fd = -1, .buf = PF_BUF_INIT };
    struct pf_record back = PF_RECORD_INIT;
    struct pf_reader r = PF_READER_INIT;
    struct pf_in in;
    size_t bytes = 0;

    for (size_t i = 0; i < rec->n_tensors; i++)
        bytes += pf_tensor_bytes(&rec->tensors[i]);
    if (bytes > 2000 || rec->n_fields > 200)
        return; /* all of it stays in the buffer */
    check(pf_record_write(&out, rec, format, NULL) == PF_OK);
    in = input(out.buf.data, out.buf.len);
    r.in = &in;
    r.all_tensors = all;
    check(pf_reader_ready(&r));
    check(pf_reader_next(&r, &back, NULL, NULL) == PF_OK);
    same(rec, &back, format == PF_BINARY);
    check(pf_reader_next(&r, &back, NULL, NULL) == PF_END);
    pf_record_fini(&back);
    pf_reader_fini(&r);
    pf_in_fini(&in);
    pf_out_fini(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pf_in in = input(data, size);
    struct pf_record rec = PF_RECORD_INIT;
    struct pf_reader r = PF_READER_INIT;
    struct pf_buf key = PF_BUF_INIT;
    const struct pf_tensor *t;
    const uint32_t *ids;
    const float *v;
    struct pf_err err;
    enum pf_status st;
    bool lost;
    size_t n;

    r.in = &in;
    r.all_tensors = size % 2;
    for (;;) {
        st = pf_reader_next(&r, &rec, &lost, &err);
        if (st == PF_END || (st && lost))
            break;
        if (st)
            continue;
        /* In NDJSON, a table name must hold what its type says; a binary
         * record may hold anything, and then only binary gives it back. */
        round_trip(&rec, r.all_tensors, PF_BINARY);
        pf_record_seq(&rec, "seq", &key, &err);
        pf_record_pos(&rec, &n, &err);
        pf_record_is_mark(&rec);
        pf_record_ids(&rec, "ids", &ids, &n, &err);
        pf_record_f32(&rec, "hidden", &t, &v, &err);
    }
    pf_buf_fini(&key);
    pf_record_fini(&rec);
    pf_reader_fini(&r);
    pf_in_fini(&in);
    return 0;
}
