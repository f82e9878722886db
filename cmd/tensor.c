/* tensor: a look at records, and other forms of them. */
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/compare.h>
#include <pipeformer/json.h>
#include <pipeformer/slice.h>

#include "tensor-cosine.h"
#include "tensor-diff.h"

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
    struct differences diff;
    struct cosines cosines;
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
        t->cosines.name = arg;
        break;
    case ATOL: t->diff.atol = cli_num("--atol", arg, 0, INFINITY); break;
    case RTOL: t->diff.rtol = cli_num("--rtol", arg, 0, INFINITY); break;
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
        differences_add(&t->diff, b, item, "record",
            "there is none in the other file");
        return PF_OK;
    }
    /* Where there is one tensor here and there, its name does not count. */
    one = !st && rec->n_tensors == 1 && other->n_tensors == 1;
    if (!st && !(one && !pf_record_tensor(other, rec->tensors->name)))
        st = select_tensors(t, &t->other_rec, &why);
    if (st)
        return pf_fail(err, st, "%s: %.300s", t->other_name, why.msg);
    return differences_find(&t->diff, b, item, other, err);
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
        return cosines_add(&t->cosines, item, err);
    }
    if (!st)
        st = pf_buf_check(b, err);
    if (!st && !(t->action == DIFF && cli.quiet))
        st = pf_out_write(&cli_out, b->data, b->len, err);
    return st;
}

/* Error records have their place among vectors that wait. */
static bool
hold(void *ctx, struct pf_record *rec)
{
    struct tensor *t = ctx;

    return t->action == COSINE && cosines_hold(&t->cosines, rec);
}

/* Records of the other file that have no partner; vectors that wait. */
static enum pf_status
end(void *ctx, struct pf_err *err)
{
    struct tensor *t = ctx;
    enum pf_status st;

    if (t->action == COSINE)
        return cosines_end(&t->cosines, err);
    if (t->action != DIFF || cli_status())
        return PF_OK;
    st = pf_reader_next(&t->other_reader, &t->other_rec, NULL, err);
    if (st == PF_END)
        return PF_OK;
    t->diff.any = true;
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
        .hold = hold,
        .end = end,
    };
    struct pf_err err;
    int status;

    cli_options(argc, argv, &command, &t);
    if (t.action != DIFF && (t.diff.atol > 0 || t.diff.rtol > 0))
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
    cosines_fini(&t.cosines);
    pf_buf_fini(&t.lines);
    free(t.select);
    free(t.drop);
    return status == 0 && t.diff.any ? 1 : status;
}
