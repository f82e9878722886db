/* score: how likely the tokens of a text are. */
#include "cli.h"

#include <pipeformer/score.h>

/* Rows of logits kept of the sequences that may go on; about. */
#define ROWS_MEM ((size_t)256 << 20)

struct score {
    struct pf_scorer *scorer;
    bool ppl;
    struct pf_score_sum all;
};

enum { PPL = CLI_LONG };

static const struct cli_option options[] = {
    { "ppl", PPL, NULL, "one record, of the whole stream" },
    { NULL, 0, NULL, NULL },
};

static void
option(void *ctx, int key, const char *arg)
{
    struct score *s = ctx;

    (void)arg;
    if (key == PPL)
        s->ppl = true;
}

static const struct cli_command command = {
    .name = "score",
    .synopsis = "[--ppl] [--keep NAME] [file ...]",
    .summary = "Log-probability and rank of each token, perplexity of a text: "
        "logits and ids.",
    .options = options,
    .option = option,
};

static enum pf_status
score(void *ctx, struct cli_item *item, struct pf_err *err)
{
    struct score *s = ctx;
    struct pf_score_sum sum;
    enum pf_status st;

    item->skip = s->ppl;
    if (pf_record_is_mark(&item->rec))
        return pf_scorer_end(s->scorer, &item->rec, err);
    st = pf_scorer_score(s->scorer, &item->rec, &sum, err);
    if (st)
        return st;
    s->all.n += sum.n;
    s->all.nll += sum.nll;
    cli_drop(&item->rec, "logits");
    return PF_OK;
}

/* Half a sum would be worse than none. */
static enum pf_status
end(void *ctx, struct pf_err *err)
{
    const struct score *s = ctx;
    struct pf_record rec = PF_RECORD_INIT;
    enum pf_status st;

    if (!s->ppl || (cli_status() && !cli.keep_going))
        return PF_OK;
    st = pf_score_set_sum(&rec, &s->all, err);
    if (!st)
        st = cli_emit(&rec, err);
    pf_record_fini(&rec);
    return st;
}

int
main(int argc, char **argv)
{
    struct score s = { 0 };
    struct cli_filter filter = {
        .ctx = &s,
        .main_input = "logits",
        .format = PF_NDJSON,
        .one = score,
        .end = end,
    };
    struct pf_err err;
    int status;

    cli_options(argc, argv, &command, &s);
    if (s.ppl && cli.n_keep)
        cli_usage("--keep: --ppl writes no record of the input that could "
            "keep it");
    if (pf_scorer_new(&s.scorer, ROWS_MEM, &err))
        cli_die("%s", err.msg);
    status = cli_run(&filter);
    pf_scorer_free(s.scorer);
    return status;
}
