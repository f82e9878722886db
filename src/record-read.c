/*
 * From bytes to records.  A frame is found first (a line, a safetensors
 * document, a .npy file), by looking at what is there and asking for more
 * until it is whole; then it is taken apart.  So a record may be cut into any
 * reads, and a lying length costs only the bytes that really come.
 *
 * Numbers of tensors go from text to float32 without a tree between.
 */
#include <stdlib.h>
#include <string.h>

#include <pipeformer/json.h>
#include <pipeformer/record.h>
#include <pipeformer/safetensors.h>

#include "record-private.h"

void
pf_reader_fini(struct pf_reader *r)
{
    pf_buf_fini(&r->scratch);
    pf_buf_fini(&r->numbers);
    pf_arena_fini(&r->mem);
}

/* --- NDJSON --- */

/* An array on its way: its shape shows while its numbers are read. */
struct array {
    struct pf_buf *numbers;
    size_t shape[PF_MAX_DIMS];
    unsigned ndim;
    bool known[PF_MAX_DIMS]; /* the length of that axis has been seen */
    enum { FLOATS, INTEGERS, BOOLEANS } kind;
};

static enum pf_status
array_number(struct pf_json *j, struct array *a, bool first,
    struct pf_err *err)
{
    enum pf_status st;
    char c = pf_json_peek(j);
    const char *raw;
    size_t len;
    int64_t i;
    float f;

    if (c == 't' || c == 'f') {
        if (first && a->kind == FLOATS)
            a->kind = BOOLEANS;
        if (a->kind != BOOLEANS)
            return pf_fail(err, PF_EFORMAT, "a boolean among numbers");
        st = pf_json_value(j, &raw, &len, err);
        if (!st)
            pf_buf_addc(a->numbers, c == 't');
        return st;
    }
    if (a->kind == BOOLEANS)
        return pf_fail(err, PF_EFORMAT, "a number among booleans");
    if (a->kind == INTEGERS) {
        st = pf_json_i64(j, &i, err);
        if (!st)
            pf_buf_add(a->numbers, &i, sizeof i);
    } else {
        st = pf_json_f32(j, &f, err);
        if (!st)
            pf_buf_add(a->numbers, &f, sizeof f);
    }
    return st;
}

/* One axis, `level` levels in; recursion ends at PF_MAX_DIMS. */
static enum pf_status
array_axis(struct pf_json *j, struct array *a, unsigned level,
    struct pf_err *err)
{
    enum pf_status st = pf_json_open(j, '[', err);
    bool first = true, start;
    size_t n = 0;

    if (st)
        return st;
    if (level == PF_MAX_DIMS)
        return pf_fail(err, PF_ESHAPE, "more than %d dimensions",
            PF_MAX_DIMS);
    if (level >= a->ndim && a->known[level])
        return pf_fail(err, PF_ESHAPE, "rows of different depth");
    start = a->numbers->len == 0;
    while (!(st = pf_json_next(j, ']', &first, err))) {
        if (pf_json_peek(j) == '[') {
            if (level + 1 == a->ndim && a->ndim)
                return pf_fail(err, PF_ESHAPE, "an array among numbers");
            st = array_axis(j, a, level + 1, err);
        } else {
            if (!a->ndim)
                a->ndim = level + 1;
            if (level + 1 != a->ndim)
                return pf_fail(err, PF_ESHAPE, "a number among arrays");
            if (a->kind == INTEGERS)
                n += pf_json_take_ids(j, a->numbers);
            st = array_number(j, a, start && n == 0, err);
        }
        if (st)
            return st;
        n++;
    }
    if (st != PF_END)
        return st;
    if (n == 0 && !a->ndim)
        a->ndim = level + 1; /* an empty innermost row */
    if (a->known[level] && a->shape[level] != n)
        return pf_fail(err, PF_ESHAPE, "rows of %zu and of %zu entries",
            a->shape[level], n);
    a->known[level] = true;
    a->shape[level] = n;
    return PF_OK;
}

/* The numbers as a new tensor; one that stands twice shows at the end. */
static enum pf_status
array_store(struct pf_record *rec, const char *name, const struct array *a,
    enum pf_dtype type, struct pf_err *err)
{
    const char *src = a->numbers->data;
    struct pf_tensor *t;
    size_t bytes, n;
    enum pf_status st;
    char *data;
    int64_t v, lost = 0;
    int32_t narrow;

    st = pf_shape_size(a->shape, a->ndim, type, NULL, &bytes, err);
    if (st)
        return st;
    data = pf_arena_alloc(&rec->mem, bytes);
    t = data ? pf_record_new_tensor(rec) : NULL;
    if (!t)
        return pf_fail_mem(err);
    *t = (struct pf_tensor){ .name = name, .dtype = type, .ndim = a->ndim,
        .data = data };
    memcpy(t->shape, a->shape, a->ndim * sizeof *a->shape);
    if (a->kind != INTEGERS || type == PF_I64) {
        if (bytes)
            memcpy(data, src, bytes);
        return PF_OK;
    }
    n = bytes / sizeof narrow;
    for (size_t i = 0; i < n; i++) {
        memcpy(&v, src + i * sizeof v, sizeof v);
        narrow = (int32_t)v;
        lost |= v ^ narrow;
        memcpy(data + i * sizeof narrow, &narrow, sizeof narrow);
    }
    for (size_t i = 0; lost && i < n; i++) {
        memcpy(&v, src + i * sizeof v, sizeof v);
        if (v < INT32_MIN || v > INT32_MAX)
            return pf_fail(err, PF_ERANGE, "%lld does not fit 32 bits",
                (long long)v);
    }
    return PF_OK;
}

/* Reads the numbers of an array into r->numbers. */
static enum pf_status
array_read(struct pf_reader *r, struct array *a, struct pf_json *j,
    enum pf_dtype type, struct pf_err *err)
{
    enum pf_status st;

    pf_buf_clear(&r->numbers);
    *a = (struct array){ .numbers = &r->numbers,
        .kind = type == PF_F32 ? FLOATS : INTEGERS };
    if (pf_json_peek(j) == '[')
        st = array_axis(j, a, 0, err);
    else
        st = array_number(j, a, true, err); /* no axes, one number */
    return st ? st : pf_buf_check(&r->numbers, err);
}

static enum pf_status
array(struct pf_reader *r, struct pf_record *rec, const char *name,
    struct pf_json *j, enum pf_dtype type, struct pf_err *err)
{
    struct array a;
    enum pf_status st = array_read(r, &a, j, type, err);

    if (st)
        return st;
    return array_store(rec, name, &a, a.kind == BOOLEANS ? PF_BOOL : type,
        err);
}

/* Would float32 round one of these integers? */
static bool
beyond_float(const struct pf_buf *numbers)
{
    int64_t v;
    float f;

    for (size_t i = 0; i < numbers->len; i += sizeof v) {
        memcpy(&v, numbers->data + i, sizeof v);
        f = (float)v;
        if (f >= 0x1p63f || (int64_t)f != v)
            return true;
    }
    return false;
}

/*
 * Tries a field that need not be a tensor; *done false, and the cursor where
 * it was, if it is none.  Numbers of unknown names are float32 unless they are
 * integers that would not survive that.
 */
static enum pf_status
maybe_array(struct pf_reader *r, struct pf_record *rec, const char *name,
    struct pf_json *j, bool *done, struct pf_err *err)
{
    struct pf_json at = *j;
    struct array a;
    enum pf_status st;

    *done = true;
    if (!array_read(r, &a, j, PF_I64, NULL) && beyond_float(a.numbers))
        return array_store(rec, name, &a, PF_I64, err);
    *j = at;
    st = array_read(r, &a, j, PF_F32, err);
    if (!st)
        return array_store(rec, name, &a,
            a.kind == BOOLEANS ? PF_BOOL : PF_F32, err);
    *j = at;
    *done = false;
    return st == PF_ENOMEM ? st : PF_OK;
}

static enum pf_status
member(struct pf_reader *r, struct pf_record *rec, struct pf_json *j,
    bool tensors, struct pf_err *err)
{
    const char *key = j->p, *raw, *name;
    enum pf_dtype type;
    struct pf_field *f;
    enum pf_status st;
    struct pf_err why;
    size_t key_len, len;
    bool done = false;

    pf_buf_clear(&r->scratch);
    st = pf_json_string(j, &r->scratch, err);
    if (st)
        return st;
    for (key_len = (size_t)(j->p - key); key[key_len - 1] != '"'; key_len--)
        ;
    if (!pf_json_take(j, ':'))
        return pf_fail(err, PF_EFORMAT, "JSON lacks ':' behind %.*s",
            (int)(key_len < 60 ? key_len : 60), key);
    if (r->scratch.len && memchr(r->scratch.data, 0, r->scratch.len))
        return pf_fail(err, PF_EFORMAT, "a field's name holds U+0000");
    name = pf_arena_copy(&rec->mem, r->scratch.data, r->scratch.len);
    if (!name)
        return pf_fail_mem(err);
    if (tensors && pf_tensor_name(name, &type)) {
        st = array(r, rec, name, j, type, &why);
        return st ? pf_fail(err, st, "%s: %.300s", name, why.msg) : PF_OK;
    }
    if (tensors && pf_json_peek(j) == '['
        && (r->all_tensors ? !pf_metadata_name(name)
            : pf_activation_name(name))) {
        st = maybe_array(r, rec, name, j, &done, err);
        if (st || done)
            return st;
    }
    st = pf_json_value(j, &raw, &len, err);
    if (st)
        return st;
    f = pf_record_new_field(rec);
    if (!f)
        return pf_fail_mem(err);
    f->name = name;
    f->key = pf_arena_copy(&rec->mem, key, key_len);
    f->key_len = key_len;
    f->text = pf_arena_copy(&rec->mem, raw, len);
    f->len = len;
    return f->key && f->text ? PF_OK : pf_fail_mem(err);
}

enum pf_status
pf_record_parse_object(struct pf_reader *r, struct pf_record *rec,
    const char *text, size_t len, bool tensors, struct pf_err *err)
{
    struct pf_json j = pf_json_at(text, len);
    enum pf_status st;
    bool first = true;

    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        return pf_fail(err, PF_EFORMAT, "a byte order mark stands before the "
            "record; take it away");
    if (pf_json_peek(&j) != '{')
        return pf_fail(err, PF_EFORMAT, "a record is a JSON object on one "
            "line, or safetensors; this is neither");
    st = pf_json_open(&j, '{', err);
    while (!st && !(st = pf_json_next(&j, '}', &first, err)))
        st = member(r, rec, &j, tensors, err);
    if (st != PF_END) {
        if (tensors && j.p == j.end && st == PF_EFORMAT)
            return pf_fail(err, st, "the line ends inside a record (one "
                "record a line; jq writes that with -c)");
        return st;
    }
    return pf_json_end(&j, err);
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

enum pf_status
pf_record_check_names(const struct pf_record *rec, struct pf_err *err)
{
    const char *few[32], **names = few;
    size_t n = rec->n_fields + rec->n_tensors, k = 0;
    enum pf_status st = PF_OK;
    uint64_t first = 0, bit; /* of the names' first letters, mod 64 */
    bool twice = false;

    if (n > sizeof few / sizeof *few && !(names = malloc(n * sizeof *names)))
        return pf_fail_mem(err);
    for (size_t i = 0; i < rec->n_fields; i++)
        names[k++] = rec->fields[i].name;
    for (size_t i = 0; i < rec->n_tensors; i++)
        names[k++] = rec->tensors[i].name;
    for (size_t i = 0; i < n; i++) {
        bit = (uint64_t)1 << (names[i][0] & 63);
        twice |= (first & bit) != 0;
        first |= bit;
    }
    /* Where no two begin alike nothing need be sorted. */
    if (twice)
        qsort(names, n, sizeof *names, by_name);
    for (size_t i = 1; twice && !st && i < n; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            st = pf_fail(err, PF_EFORMAT, "\"%.100s\" stands twice in a "
                "record", names[i]);
    if (names != few)
        free(names);
    return st;
}

enum pf_status
pf_record_parse(struct pf_reader *r, struct pf_record *rec, const char *line,
    size_t len, struct pf_err *err)
{
    enum pf_status st = pf_record_parse_object(r, rec, line, len, true, err);

    return st ? st : pf_record_check_names(rec, err);
}

/* --- Binary --- */

/*
 * The data of a whole document of `len` bytes, used up, as the record's: where
 * they lie if they are many and lie well, else copied.
 */
static char *
document_data(struct pf_in *in, struct pf_record *rec, size_t len, size_t n)
{
    const char *p = in->data + in->start + len - n;
    char *data;

    if ((uintptr_t)p % 8 == 0 && (data = pf_in_take(in, len, &rec->large)))
        return data + len - n;
    data = pf_arena_alloc(&rec->mem, n);
    if (data && n)
        memcpy(data, p, n);
    pf_in_skip(in, len);
    return data;
}

/* A whole document of `len` bytes, whose header has been parsed. */
static enum pf_status
document(struct pf_reader *r, struct pf_record *rec, size_t len,
    struct pf_err *err)
{
    const struct pf_safetensors *doc = &r->doc;
    char *data = document_data(r->in, rec, len, doc->data_len);
    enum pf_status st;
    int ours = 0;

    if (!data)
        return pf_fail_mem(err);
    for (size_t i = 0; i < doc->n; i++) {
        const char *name = doc->tensors[i].name;
        struct pf_tensor *t;

        name = pf_arena_copy(&rec->mem, name, strlen(name));
        t = name ? pf_record_new_tensor(rec) : NULL;
        if (!t)
            return pf_fail_mem(err);
        *t = doc->tensors[i];
        t->name = name;
        t->data = data + doc->offsets[i];
    }
    for (size_t i = 0; i < doc->n_meta; i++) {
        const struct pf_safetensors_meta *m = &doc->meta[i];

        if (strcmp(m->key, "pipeformer") == 0 && ours++)
            st = pf_fail(err, PF_EFORMAT, "safetensors: __metadata__ has "
                "\"pipeformer\" twice");
        else if (strcmp(m->key, "pipeformer") == 0)
            st = pf_record_parse_object(r, rec, m->value, m->value_len, false,
                err);
        else if (memchr(m->key, 0, m->key_len))
            st = pf_fail(err, PF_EFORMAT, "a field's name holds U+0000");
        else if (pf_record_field(rec, m->key))
            st = pf_fail(err, PF_EFORMAT, "\"%.100s\" stands twice in a "
                "record", m->key);
        else
            st = pf_record_set_string(rec, m->key, m->value, m->value_len,
                err);
        if (st)
            return st;
    }
    return pf_record_check_names(rec, err);
}

/* --- Frames --- */

enum kind { LINE, DOCUMENT, NPY, UNKNOWN };

/*
 * Four bytes decide: one below 0x09 among them makes a document.  Where they
 * could also be the end of a line, or "{}" with its end, and the header of the
 * document behind it, nine do: a header's length has no more than four bytes,
 * and then comes its brace.  Six make a .npy file.  At the end of the input,
 * what is there decides.
 */
static enum kind
kind_of(const char *p, size_t n, bool eof)
{
    bool low = false;

    for (size_t i = 0; i < n && i < 4; i++)
        low |= (unsigned char)p[i] < 0x09;
    if (p[0] == '\x93' && n >= 6 && memcmp(p, "\x93NUMPY", 6) == 0)
        return NPY;
    if (low && p[0] != '\n' && p[0] != '\r' && p[0] != '{')
        return DOCUMENT;
    if (n < (low ? 9 : p[0] == '\x93' ? 6 : 4) && !eof)
        return UNKNOWN;
    return low && n >= 9 && memcmp(p + 4, "\0\0\0\0{", 5) == 0 ? DOCUMENT
        : LINE;
}

/* Files that are taken for documents but tell by their first bytes. */
static const char *
foreign(const char *p)
{
    if (memcmp(p, "PK\3\4", 4) == 0)
        return "a zip archive (of .npy files, if it is an .npz)";
    if (memcmp(p, "\x1f\x8b", 2) == 0)
        return "compressed with gzip: pass it through zcat";
    return NULL;
}

static bool
is_space(char c)
{
    return c == '\n' || c == '\r' || c == ' ' || c == '\t';
}

/* Where a whole frame stands, once it is there. */
struct frame {
    enum kind kind;
    size_t len;  /* bytes of it */
    size_t skip; /* and of its line end */
};

/*
 * Looks for a frame in the bytes that are there: PF_OK with f->kind UNKNOWN
 * while it is not whole.  PF_END at the end of input.
 */
static enum pf_status
look(struct pf_reader *r, struct frame *f, struct pf_err *err)
{
    struct pf_in *in = r->in;
    enum pf_status st;
    const char *p, *nl;
    size_t n, need, header;
    enum kind kind;

    f->kind = UNKNOWN;
    for (;;) {
        n = in->end - in->start;
        if (n == 0)
            return in->eof ? PF_END : PF_OK;
        p = in->data + in->start;
        if (r->scanned && r->scanned < n && p[r->scanned] == '\n') {
            *f = (struct frame){ LINE, r->scanned, 1 }; /* looked at before */
            return PF_OK;
        }
        kind = kind_of(p, n, in->eof);
        if (kind == UNKNOWN)
            return PF_OK;
        if (kind != LINE || r->scanned || !is_space(*p))
            break;
        pf_in_skip(in, 1); /* space before a record, or a line of it */
    }
    if (kind == LINE) {
        nl = memchr(p + r->scanned, '\n', n - r->scanned);
        r->scanned = nl ? (size_t)(nl - p) : n;
        if (nl || in->eof)
            *f = (struct frame){ LINE, r->scanned, nl != NULL };
        return PF_OK;
    }
    if (kind == NPY) {
        st = pf_npy_len(p, n, &need, err);
        if (st)
            return st;
    } else if (n < 9 && !in->eof) {
        need = 9;
    } else if (n >= 9 && p[8] != '{' && foreign(p)) {
        return pf_fail(err, PF_EFORMAT, "this is %s", foreign(p));
    } else if (n < 8) {
        need = 8;
    } else {
        st = pf_safetensors_len(p, &header, err);
        if (st)
            return st;
        need = 8 + header;
        if (n >= need && r->need == 0) {
            pf_arena_reset(&r->mem);
            st = pf_safetensors_parse(&r->doc, &r->mem, p + 8, header, err);
            if (st)
                return st;
            if (r->doc.data_len > SIZE_MAX / 2)
                return pf_fail(err, PF_ERANGE, "a record of %zu bytes",
                    r->doc.data_len);
            r->need = need + r->doc.data_len;
        }
        if (r->need)
            need = r->need;
        if (need > n)
            pf_in_expect(in, need);
    }
    if (need <= n)
        *f = (struct frame){ kind, need, 0 };
    else if (in->eof)
        return pf_fail(err, PF_EFORMAT, "the input ends inside a record: %zu "
            "bytes are there, %zu or more belong to it", n, need);
    return PF_OK;
}

enum pf_status
pf_reader_next(struct pf_reader *r, struct pf_record *rec, bool *lost,
    struct pf_err *err)
{
    struct frame f = { UNKNOWN, 0, 0 };
    enum pf_status st;
    const char *p;

    pf_record_clear(rec);
    if (lost)
        *lost = true;
    for (;;) {
        st = look(r, &f, err);
        if (st)
            return st;
        if (f.kind != UNKNOWN)
            break;
        st = pf_in_fill(r->in, err);
        if (st && st != PF_END)
            return st;
    }
    p = r->in->data + r->in->start;
    if (f.kind == LINE)
        st = pf_record_parse(r, rec, p, f.len, err);
    else if (f.kind == NPY)
        st = pf_npy_read(rec, r->main_name, p, f.len, err);
    else
        st = document(r, rec, f.len, err);
    if (lost)
        *lost = false;
    r->scanned = r->need = 0;
    if (f.kind != DOCUMENT)
        pf_in_skip(r->in, f.len + f.skip);
    return st;
}

bool
pf_reader_ready(struct pf_reader *r)
{
    struct frame f;

    for (;;) {
        if (look(r, &f, NULL) || f.kind != UNKNOWN)
            return true;
        if (!pf_in_ready(r->in))
            return false;
        if (pf_in_fill(r->in, NULL) > PF_END)
            return true;
    }
}

bool
pf_reader_line(struct pf_reader *r, const char **line, size_t *len)
{
    struct frame f;

    if (look(r, &f, NULL) || f.kind != LINE || !f.skip)
        return false;
    *line = r->in->data + r->in->start;
    *len = f.len;
    return true;
}

void
pf_reader_take(struct pf_reader *r)
{
    pf_in_skip(r->in, r->scanned + 1);
    r->scanned = r->need = 0;
}
