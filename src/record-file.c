/* A file that is one record: tables and matrices given on a command line. */
#include <pipeformer/record.h>

static enum pf_status
read_only(struct pf_reader *r, struct pf_record *rec, struct pf_err *err)
{
    struct pf_record more = PF_RECORD_INIT;
    enum pf_status st = pf_reader_next(r, rec, NULL, err);

    if (st == PF_END)
        return pf_fail(err, PF_EFORMAT, "the file is empty");
    if (st)
        return st;
    st = pf_reader_next(r, &more, NULL, err);
    pf_record_fini(&more);
    if (st == PF_END)
        return PF_OK;
    return st ? st : pf_fail(err, PF_EFORMAT, "the file holds more than one "
        "record");
}

enum pf_status
pf_record_read_file(struct pf_record *rec, const char *path,
    const char *main_name, struct pf_err *err)
{
    struct pf_reader r = { .main_name = main_name, .all_tensors = true };
    struct pf_in in;
    struct pf_err why;
    enum pf_status st = pf_in_open(&in, path, &why);

    if (!st) {
        r.in = &in;
        st = read_only(&r, rec, &why);
        pf_reader_fini(&r);
        pf_in_fini(&in);
    }
    return st ? pf_fail(err, st, "%.150s: %.240s", path, why.msg) : PF_OK;
}
