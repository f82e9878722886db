/* tensor: a look at records, and other forms of them. */
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/compare.h>
#include <pipeformer/cosine.h>
#include <pipeformer/json.h>
#include <pipeformer/slice.h>

struct tensor {
    enum { LIST, RECORDS, NPY, SUMMARY, DIFF, COSINE } action;
    enum pf_format format;
    const char **select, **drop; /* NAME[:SLICE]; NAME */
    size_t n_select, n_drop;
    /* --diff: */
    const char *other_name;
    struct pf_in other;
    struct pf_reader other_reader;
    struct pf_record other_rec;
    double atol, rtol;
    bool different;
    /* --cosine: */
    const char *cosine;
    struct pf_rows rows;
    bool begun, matrices;   /* the records have matrices, not vectors */
    struct pf_record *held; /* those with vectors, until the end */
    size_t n_held, cap_held;
    struct pf_buf lines; /* about the record at hand */
};

enum { SUM = CLI_LONG, DIFF_FILE, ATOL, RTOL, DROP, COS };

static const struct cli_option options[] = {
    { "output", 'o', "json|safetensors|npy", "write records in that form" },
    { "select", 's', "NAME[:SLICE]", "only this tensor, or a part of it "
        "(hidden:-1,0:5)" },
    { "drop", DROP, "NAME", "leave out a tensor or field" },
    { "summary", SUM, NULL, "min, max, mean, std, norm, NaN count of each" },
    { "diff", DIFF_FILE, "FILE", "compare with the records of FILE" },
    { "cosine", COS, "NAME", "cosines of its rows; of vectors, with those of "
        "all records" },
    { "atol", ATOL, "X", "with --diff: absolute difference allowed (0)" },
    { "rtol", RTOL, "X", "with --diff: relative difference allowed (0)" },
    { NULL, 0, NULL, NULL },
};

static void
add(const char ***list, size_t *n, const char *arg)
{
    *list = realloc(*list, (*n + 1) * sizeof **list);
    if (!*list)
        cli_die("out of memory");
    (*list)[(*n)++] = arg;
}

static void
action(struct tensor *t, int what)
{
    if (t->action != LIST)
        cli_usage("only one of -o, --summary, --diff, --cosine");
    t->action = what;
}

static void
option(void *ctx, int key, const char *arg)
{
    struct tensor *t = ctx;

    switch (key) {
    case 'o':
        action(t, strcmp(arg, "npy") == 0 ? NPY : RECORDS);
        t->format = strcmp(arg, "safetensors") == 0 ? PF_BINARY : PF_NDJSON;
        if (t->action == RECORDS && t->format == PF_NDJSON
            && strcmp(arg, "json") != 0)
            cli_usage("-o: '%s' is none of json, safetensors, npy", arg);
        break;
    case 's': add(&t->select, &t->n_select, arg); break;
    case DROP: add(&t->drop, &t->n_drop, arg); break;
    case SUM: action(t, SUMMARY); break;
    case DIFF_FILE:
        action(t, DIFF);
        t->other_name = arg;
        cli.failed = 2;
        break;
    case COS:
        action(t, COSINE);
        t->cosine = arg;
        break;
    case ATOL: t->atol = cli_num("--atol", arg, 0, INFINITY); break;
    case RTOL: t->rtol = cli_num("--rtol", arg, 0, INFINITY); break;
    }
}

static const struct cli_command command = {
    .name = "tensor",
    .synopsis = "[-j] [-o json|safetensors|npy | --summary | --diff FILE | "
        "--cosine NAME]\n       [-s NAME[:SLICE]] [--drop NAME] [file ...]",
    .summary = "Lists, converts, selects, summarises and compares the tensors "
        "of records.",
    .options = options,
    .option = option,
    .text = true,
};

/* --- Selecting --- */

static enum pf_status
select_tensors(const struct tensor *t, struct pf_record *rec,
    struct pf_err *err)
{
    for (size_t i = 0; i < t->n_drop; i++)
        pf_record_drop(rec, t->drop[i]);
    return t->n_select ? pf_select(rec, t->select, t->n_select, err) : PF_OK;
}

/* --- Listing --- */

static void
add_shape(struct pf_buf *b, const struct pf_tensor *x)
{
    pf_buf_addc(b, '[');
    for (unsigned i = 0; i < x->ndim; i++)
        pf_buf_printf(b, i ? ",%zu" : "%zu", x->shape[i]);
    pf_buf_addc(b, ']');
}

/* "record":1,"seq":"a", */
static void
add_place(struct pf_buf *b, const struct cli_item *item)
{
    const struct pf_field *seq = pf_record_field(&item->rec, "seq");

    pf_buf_printf(b, "{\"record\":%llu,", (unsigned long long)item->number);
    if (seq)
        pf_buf_printf(b, "\"seq\":%.*s,", (int)seq->len, seq->text);
}

static void
add_kind(struct pf_buf *b, const struct pf_tensor *x)
{
    pf_buf_adds(b, "\"name\":");
    pf_json_add_string(b, x->name, strlen(x->name));
    pf_buf_printf(b, ",\"dtype\":\"%s\",\"shape\":", pf_dtype_name(x->dtype));
    add_shape(b, x);
}

static void
list(struct pf_buf *b, const struct cli_item *item)
{
    const struct pf_record *rec = &item->rec;

    if (cli.json) {
        add_place(b, item);
        pf_buf_adds(b, "\"tensors\":[");
        for (size_t i = 0; i < rec->n_tensors; i++) {
            pf_buf_adds(b, i ? ",{" : "{");
            add_kind(b, &rec->tensors[i]);
            pf_buf_addc(b, '}');
        }
        pf_buf_adds(b, "]}\n");
        return;
    }
    for (size_t i = 0; i < rec->n_tensors; i++) {
        pf_buf_printf(b, "%s%s %s ", i ? "\t" : "", rec->tensors[i].name,
            pf_dtype_name(rec->tensors[i].dtype));
        add_shape(b, &rec->tensors[i]);
    }
    pf_buf_addc(b, '\n');
}

/* --- Summary --- */

static enum pf_status
summarise(struct pf_buf *b, const struct cli_item *item,
    const struct pf_tensor *x, struct pf_err *err)
{
    struct pf_summary s;
    enum pf_status st = pf_summarise(x, &s, err);

    if (st)
        return st;
    add_place(b, item);
    add_kind(b, x);
    pf_buf_adds(b, ",\"min\":");
    pf_json_add_f64(b, s.min);
    pf_buf_adds(b, ",\"max\":");
    pf_json_add_f64(b, s.max);
    pf_buf_adds(b, ",\"mean\":");
    pf_json_add_f64(b, s.mean);
    pf_buf_adds(b, ",\"std\":");
    pf_json_add_f64(b, s.std);
    pf_buf_adds(b, ",\"norm\":");
    pf_json_add_f64(b, s.norm);
    pf_buf_printf(b, ",\"nan\":%zu}\n", s.nan);
    return PF_OK;
}

/* --- Comparing --- */

/* A line about a difference. */
static void
differ(struct tensor *t, struct pf_buf *b, const struct cli_item *item,
    const char *name, const char *what)
{
    t->different = true;
    pf_buf_printf(b, "%s:%llu: %s: %s\n", cli_file_name(item->file),
        (unsigned long long)item->number, name, what);
}

static enum pf_status
diff_tensor(struct tensor *t, struct pf_buf *b, const struct cli_item *item,
    const struct pf_tensor *x, const struct pf_tensor *y, struct pf_err *err)
{
    struct pf_difference d;
    struct pf_err why;
    char what[200];
    enum pf_status st = pf_compare(x, y, t->atol, t->rtol, &d, &why);

    if (st == PF_ESHAPE) {
        differ(t, b, item, x->name, why.msg);
        return PF_OK;
    }
    if (st)
        return pf_fail(err, st, "%s", why.msg);
    if (d.n) {
        snprintf(what, sizeof what, "%zu of %zu elements differ, most at "
            "element %zu: %.9g, there %.9g", d.n, pf_tensor_count(x), d.at,
            d.x, d.y);
        differ(t, b, item, x->name, what);
    }
    return PF_OK;
}

static enum pf_status
diff(struct tensor *t, struct pf_buf *b, const struct cli_item *item,
    struct pf_err *err)
{
    const struct pf_record *rec = &item->rec, *other = &t->other_rec;
    enum pf_status st;
    struct pf_err why;
    bool one;

    st = pf_reader_next(&t->other_reader, &t->other_rec, NULL, &why);
    if (st == PF_END) {
        differ(t, b, item, "record", "there is none in the other file");
        return PF_OK;
    }
    /* Where there is one tensor here and there, its name does not count. */
    one = !st && rec->n_tensors == 1 && other->n_tensors == 1;
    if (!st && !(one && !pf_record_tensor(other, rec->tensors->name)))
        st = select_tensors(t, &t->other_rec, &why);
    if (st)
        return pf_fail(err, st, "%s: %.300s", t->other_name, why.msg);
    if (rec->n_tensors == 1 && other->n_tensors == 1)
        return diff_tensor(t, b, item, rec->tensors, other->tensors, err);
    for (size_t i = 0; i < rec->n_tensors && !st; i++) {
        const struct pf_tensor *x = &rec->tensors[i];
        const struct pf_tensor *y = pf_record_tensor(other, x->name);

        if (y)
            st = diff_tensor(t, b, item, x, y, err);
        else
            differ(t, b, item, x->name, "there is none in the other file");
    }
    for (size_t i = 0; i < other->n_tensors && !st; i++)
        if (!pf_record_tensor(rec, other->tensors[i].name))
            differ(t, b, item, other->tensors[i].name, "there is none here");
    return st;
}

/* --- Cosines --- */

/* Rows against rows of one matrix. */
static enum pf_status
compare_rows(struct tensor *t, struct pf_record *rec, const float *v,
    const size_t *shape, struct pf_err *err)
{
    struct pf_tensor *out = pf_record_put(rec, "cosine", PF_F32, 2,
        (size_t[]){ shape[0], shape[0] }, NULL);
    enum pf_status st = out ? PF_OK : pf_fail_mem(err);

    pf_rows_clear(&t->rows);
    for (size_t i = 0; i < shape[0] && !st; i++)
        st = pf_rows_add(&t->rows, v + i * shape[1], shape[1], err);
    for (size_t i = 0; i < shape[0] && !st; i++)
        pf_rows_cosines(&t->rows, i, (float *)out->data + i * shape[0]);
    return st;
}

/* Keeps a record until the end, when all vectors are known. */
static bool
keep(struct tensor *t, struct pf_record *rec)
{
    if (!pf_grow(&t->held, &t->cap_held, t->n_held + 1, sizeof *t->held))
        return false;
    t->held[t->n_held++] = *rec;
    *rec = (struct pf_record)PF_RECORD_INIT;
    return true;
}

static enum pf_status
hold(struct tensor *t, struct cli_item *item, struct pf_err *err)
{
    item->skip = true;
    return keep(t, &item->rec) ? PF_OK : pf_fail_mem(err);
}

/* Error records have their place among those that are held. */
static bool
hold_error(void *ctx, struct pf_record *rec)
{
    struct tensor *t = ctx;

    return t->n_held && keep(t, rec);
}

static enum pf_status
cosine(struct tensor *t, struct cli_item *item, struct pf_err *err)
{
    struct pf_record *rec = &item->rec;
    const struct pf_tensor *x = pf_record_tensor(rec, t->cosine);
    char shape[128];
    size_t n, dims[PF_MAX_DIMS];
    enum pf_status st;
    struct pf_err why;
    bool matrix;
    float *v;

    if (pf_record_is_mark(rec))
        return t->n_held ? hold(t, item, err) : PF_OK;
    if (!x)
        return pf_fail(err, PF_ESHAPE, "%s: the record has no such tensor",
            t->cosine);
    if (x->ndim != 1 && x->ndim != 2)
        return pf_fail(err, PF_ESHAPE, "%s: has the shape %s, not [C] or "
            "[T, C]; -s takes a part of it", t->cosine,
            pf_shape_format(shape, sizeof shape, x->shape, x->ndim));
    matrix = x->ndim == 2 || x->shape[0] == 0; /* [] has lost its C */
    if (t->begun && t->matrices != matrix)
        return pf_fail(err, PF_ESHAPE, "%s: has the shape %s, those before "
            "were %s", t->cosine, pf_shape_format(shape, sizeof shape,
            x->shape, x->ndim), t->matrices ? "matrices" : "vectors");
    t->begun = true;
    t->matrices = matrix;
    n = pf_tensor_count(x);
    v = n > SIZE_MAX / 8 ? NULL : pf_arena_alloc(&rec->mem, n * sizeof *v);
    if (!v)
        return pf_fail_mem(err);
    if (!pf_to_f32(v, x->data, x->dtype, n))
        return pf_fail(err, PF_EFORMAT, "%s: no arithmetic on type %s",
            t->cosine, pf_dtype_name(x->dtype));
    memcpy(dims, x->shape, sizeof dims);
    cli_drop(rec, t->cosine);
    if (t->matrices)
        return compare_rows(t, rec, v, dims, err);
    st = pf_rows_add(&t->rows, v, n, &why);
    return st ? pf_fail(err, st, "%s: %.300s", t->cosine, why.msg)
        : hold(t, item, err);
}

/* The records that were held, each with the cosines of its vector. */
static enum pf_status
release(struct tensor *t, struct pf_err *err)
{
    bool whole = !cli_status() || cli.keep_going;
    enum pf_status st = PF_OK;
    struct pf_tensor *out;
    size_t row = 0;

    for (size_t i = 0; i < t->n_held; i++) {
        struct pf_record *rec = &t->held[i];

        if (!st && whole && !pf_record_is_mark(rec)
            && !pf_record_is_error(rec)) {
            out = pf_record_put(rec, "cosine", PF_F32, 1, &t->rows.n, NULL);
            if (out)
                pf_rows_cosines(&t->rows, row++, (float *)out->data);
            else
                st = pf_fail_mem(err);
        }
        if (!st && whole)
            st = cli_emit(rec, err);
        pf_record_fini(rec);
    }
    return st;
}

/* --- The filter --- */

static enum pf_status
one(void *ctx, struct cli_item *item, struct pf_err *err)
{
    struct tensor *t = ctx;
    struct pf_record *rec = &item->rec;
    struct pf_buf *b = &t->lines;
    enum pf_status st = select_tensors(t, rec, err);

    pf_buf_clear(b);
    if (st)
        return st;
    switch (t->action) {
    case LIST:
        list(b, item);
        break;
    case RECORDS:
        return PF_OK;
    case NPY:
        if (rec->n_tensors != 1)
            return pf_fail(err, PF_ESHAPE, "the record has %zu tensors, a "
                ".npy file holds one; select it with -s", rec->n_tensors);
        return pf_npy_write(&cli_out, rec->tensors, err);
    case SUMMARY:
        for (size_t i = 0; i < rec->n_tensors && !st; i++)
            st = summarise(b, item, &rec->tensors[i], err);
        break;
    case DIFF:
        st = diff(t, b, item, err);
        break;
    case COSINE:
        return cosine(t, item, err);
    }
    if (!st)
        st = pf_buf_check(b, err);
    if (!st && !(t->action == DIFF && cli.quiet))
        st = pf_out_write(&cli_out, b->data, b->len, err);
    return st;
}

/* Records of the other file that have no partner; records that were held. */
static enum pf_status
end(void *ctx, struct pf_err *err)
{
    struct tensor *t = ctx;
    enum pf_status st;

    if (t->action == COSINE)
        return release(t, err);
    if (t->action != DIFF || cli_status())
        return PF_OK;
    st = pf_reader_next(&t->other_reader, &t->other_rec, NULL, err);
    if (st == PF_END)
        return PF_OK;
    t->different = true;
    if (st || cli.quiet)
        return st;
    pf_buf_clear(&t->lines);
    pf_buf_printf(&t->lines, "%s: has more records\n", t->other_name);
    return pf_out_write(&cli_out, t->lines.data, t->lines.len, err);
}

int
main(int argc, char **argv)
{
    struct tensor t = { .other = PF_IN_INIT, .other_reader = PF_READER_INIT,
        .other_rec = PF_RECORD_INIT };
    struct cli_filter filter = {
        .ctx = &t,
        .main_input = "data",
        .all_tensors = true,
        .one = one,
        .hold = hold_error,
        .end = end,
    };
    struct pf_err err;
    int status;

    cli_options(argc, argv, &command, &t);
    if (t.action != DIFF && (t.atol > 0 || t.rtol > 0))
        cli_usage("--atol and --rtol go with --diff");
    if (cli.json && (t.action == NPY
            || (t.action == RECORDS && t.format == PF_BINARY)))
        cli_usage("-j is NDJSON, -o asks for something else");
    if (t.action == NPY)
        cli_no_terminal();
    if (t.action == DIFF && pf_in_open(&t.other, t.other_name, &err))
        cli_die("%s: %s", t.other_name, err.msg);
    t.other_reader.in = &t.other;
    t.other_reader.all_tensors = true;
    filter.format = t.format;
    filter.text = t.action != RECORDS && t.action != COSINE;
    status = cli_run(&filter);
    pf_in_fini(&t.other);
    pf_reader_fini(&t.other_reader);
    pf_record_fini(&t.other_rec);
    pf_rows_fini(&t.rows);
    free(t.held);
    pf_buf_fini(&t.lines);
    free(t.select);
    free(t.drop);
    return status == 0 && t.different ? 1 : status;
}
