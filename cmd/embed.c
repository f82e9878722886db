/* embed: token ids to rows of the residual stream, or of any table. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#include <pipeformer/forward.h>
#include <pipeformer/model.h>

#include "embed-table.h"

struct embed {
    struct pf_model *model; /* NULL: there is a table */
    struct embed_table table;
    bool no_pos;
    struct pf_buf key; /* of the sequence, which is only checked here */
};

enum { NO_POS = CLI_LONG, TENSOR };

static const struct cli_option options[] = {
    { "no-pos", NO_POS, NULL, "leave out the position embeddings" },
    { "weights", 'w', "FILE", "look up the rows of this table, with no "
        "model" },
    { "tensor", TENSOR, "NAME", "with -w: which tensor of FILE is the table" },
    { NULL, 0, NULL, NULL },
};

static void
option(void *ctx, int key, const char *arg)
{
    struct embed *e = ctx;

    switch (key) {
    case NO_POS: e->no_pos = true; break;
    case 'w': e->table.file = arg; break;
    case TENSOR: e->table.name = arg; break;
    }
}

static const struct cli_command command = {
    .name = "embed",
    .synopsis = "[-j] [-m MODEL | -w FILE [--tensor NAME]] [--no-pos] "
        "[file ...]",
    .summary = "Looks token ids up in the model's embedding table and adds "
        "positions:\nids -> hidden, the residual stream before the first "
        "block.  With -w it is any table,\nwithout positions.",
    .options = options,
    .option = option,
    .model = true,
};

/* What has an entry a position goes, except the ids themselves. */
static bool
drops(const char *name, bool tensor)
{
    return pf_per_position(name, tensor) && strcmp(name, "ids") != 0
        && strcmp(name, "segments") != 0 && !cli_keeps(name);
}

static enum pf_status
embed(void *ctx, struct cli_item *item, struct pf_err *err)
{
    struct embed *e = ctx;
    struct pf_record *rec = &item->rec;
    size_t pos, T;
    const uint32_t *ids, *segments = NULL;
    size_t n = 0;
    struct pf_tensor *hidden;
    enum pf_status st = pf_record_ids(rec, "ids", &ids, &T, err);

    if (!st && !ids)
        st = pf_fail(err, PF_ESHAPE, "the record has no ids (tok-encode gives "
            "them)");
    if (!st && e->model && e->model->config.segments)
        st = pf_record_ids(rec, "segments", &segments, &n, err);
    if (!st && segments && n != T)
        st = pf_fail(err, PF_ESHAPE, "segments: %zu of them, but %zu ids", n,
            T);
    pf_buf_clear(&e->key);
    if (!st)
        st = pf_record_pos(rec, &pos, err);
    if (!st)
        st = pf_record_seq(rec, "seq", &e->key, err);
    if (st)
        return st;
    pf_record_drop_if(rec, drops);
    pf_record_drop(rec, "layer");
    if (!e->model)
        return embed_table_rows(&e->table, rec, ids, T, err);
    hidden = pf_record_put(rec, "hidden", PF_F32, 2,
        (size_t[]){ T, e->model->config.width }, NULL);
    if (!hidden)
        return pf_fail_mem(err);
    st = pf_embed(e->model, (float *)hidden->data, ids, segments, T,
        pos, !e->no_pos, err);
    if (!st)
        st = pf_record_set_string(rec, "model", e->model->fingerprint,
            strlen(e->model->fingerprint), err);
    return st;
}

int
main(int argc, char **argv)
{
    struct embed e = { 0 };
    struct cli_filter filter = {
        .ctx = &e,
        .main_input = "ids",
        .format = PF_BINARY,
        .pass_marks = true,
        .one = embed,
    };
    int status;

    cli_options(argc, argv, &command, &e);
    if (e.table.name && !e.table.file)
        cli_usage("--tensor names a tensor of -w's file; give -w too");
    if (e.table.file && (cli.model_given || e.no_pos))
        cli_usage("-w takes the place of a model and has no positions: "
            "neither -m nor --no-pos goes with it");
    if (e.table.file)
        embed_table_open(&e.table);
    else
        e.model = cli_model();
    status = cli_run(&filter);
    pf_model_free(e.model);
    pf_record_fini(&e.table.rec);
    pf_buf_fini(&e.key);
    return status;
}
