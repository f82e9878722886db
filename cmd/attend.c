/*
 * attend: the residual stream through the blocks of a model, or bare
 * attention.
 */
#include "cli.h"

#include <pipeformer/pool.h>

#include "attend-options.h"

static bool
is_bare(const struct attend *a, const struct pf_record *rec)
{
    return a->bare_by
        || (!a->model_by && attend_bare_takes(&a->bare, rec));
}

static enum pf_status
check(void *ctx, struct cli_item *item, struct pf_err *err)
{
    struct attend *a = ctx;
    enum pf_status st;

    if (is_bare(a, &item->rec))
        return attend_bare_check(&a->bare, item, err);
    st = attend_model_open(&a->model, err);
    if (!st && !pf_record_has(&item->rec, "hidden"))
        st = pf_fail(err, PF_ESHAPE, "the record has no hidden (embed gives "
            "it), nor q, k and v (bare attention)");
    return st ? st : attend_model_check(&a->model, item, err);
}

static enum pf_status
mark(void *ctx, const struct pf_record *rec, struct pf_err *err)
{
    struct attend *a = ctx;

    return attend_model_mark(&a->model, rec, err);
}

static enum pf_status
end(void *ctx, struct pf_err *err)
{
    struct attend *a = ctx;

    return attend_model_close(&a->model, err);
}

static enum pf_status
step(void *ctx, struct cli_item **items, size_t n, size_t *at,
    struct pf_err *err)
{
    struct attend *a = ctx;
    enum pf_status st = PF_OK;
    size_t k, done;

    for (size_t i = 0; i < n && !st; i = k) {
        *at = i;
        k = i + 1;
        if (is_bare(a, &items[i]->rec)) {
            st = attend_bare_one(&a->bare, items[i], err);
            continue;
        }
        while (k < n && !is_bare(a, &items[k]->rec))
            k++;
        done = 0;
        st = attend_model_step(&a->model, items + i, k - i, &done, err);
        *at = i + done;
    }
    return st;
}

/*
 * With processors to spare, many go in halves: what comes behind works on the
 * first one meanwhile, and if they come back, as in generate's loop, they come
 * back in two groups.
 */
static size_t
together(void *ctx, size_t n)
{
    (void)ctx;
    return cli.threads < pf_cpus() && n >= 2 * CLI_GROUP ? n / 2 : n;
}

int
main(int argc, char **argv)
{
    struct attend a;
    struct cli_filter filter = {
        .ctx = &a,
        .main_input = "hidden",
        .format = PF_BINARY,
        .pass_marks = true,
        .check = check,
        .mark = mark,
        .step = step,
        .together = together,
        .end = end,
    };
    struct pf_err err;
    int status;

    attend_options(&a, argc, argv);
    if (!a.model_by)
        attend_bare_start(&a.bare);
    else if (attend_model_open(&a.model, &err))
        cli_die("%s", err.msg);
    status = cli_run(&filter);
    status = attend_model_end(&a.model, status);
    attend_model_free(&a.model);
    attend_bare_free(&a.bare);
    return status;
}
