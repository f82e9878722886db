/* tok-encode: text to token ids. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#include <pipeformer/json.h>
#include <pipeformer/tokenizer.h>
#include <pipeformer/tokens.h>

struct tok_encode {
    struct pf_tokenizer *tok;
    struct pf_encoder *enc;
    bool slurp, nul, records, count, total, tokens, offsets, end, no_add;
    size_t max;   /* SIZE_MAX: no limit */
    size_t raw;   /* bytes of an id, 0: no raw output */
    bool eot;
    uint32_t eot_id;
    const char *special;
    uint64_t texts, sum;
    struct pf_buf ids; /* of the text at hand: uint32_t each */
    struct pf_record rec;
};

#define END_OF_TEXT "<|endoftext|>"

enum { TOTAL = CLI_LONG, MAX, RAW, EOT, SPECIAL, NO_ADD, END };

static const struct cli_option options[] = {
    { "slurp", 's', NULL, "a file is one text, not a line" },
    { "null", '0', NULL, "texts end with a NUL" },
    { "records", 'r', NULL, "texts are the field text of NDJSON records" },
    { "count", 'c', NULL, "print how many ids a text has" },
    { "total", TOTAL, NULL, "with -c: one number for all texts" },
    { "tokens", 't', NULL, "add tokens, the text of each id" },
    { "offsets", 'o', NULL, "add offsets, the bytes of each id in the text" },
    { "max", 'n', "N", "keep the first N ids; cut says how many went" },
    { "raw", RAW, "u16|u32", "write ids as flat little-endian integers" },
    { "eot", EOT, NULL, "with --raw: an end-of-text id after each text" },
    { "special", SPECIAL, "all|none|NAME,...", "recognise special tokens in "
        "texts (none)" },
    { "no-add-special", NO_ADD, NULL, "do not add what the model wants around "
        "a text" },
    { "end", END, NULL, "close with {\"done\":\"input\"}" },
    { NULL, 0, NULL, NULL },
};

static void
option(void *ctx, int key, const char *arg)
{
    struct tok_encode *e = ctx;

    switch (key) {
    case 's': e->slurp = true; break;
    case '0': e->nul = true; break;
    case 'r': e->records = true; break;
    case 'c':
        e->count = true;
        cli_begin(PF_NDJSON, true);
        break;
    case TOTAL: e->total = true; break;
    case 't': e->tokens = true; break;
    case 'o': e->offsets = true; break;
    case 'n': e->max = (size_t)cli_int("--max", arg, 0, INT32_MAX); break;
    case RAW:
        if (strcmp(arg, "u16") != 0 && strcmp(arg, "u32") != 0)
            cli_usage("--raw: '%s' is neither u16 nor u32", arg);
        e->raw = arg[1] == '1' ? 2 : 4;
        cli_begin(PF_NDJSON, true);
        break;
    case EOT: e->eot = true; break;
    case SPECIAL: e->special = arg; break;
    case NO_ADD: e->no_add = true; break;
    case END: e->end = true; break;
    }
}

static const struct cli_command command = {
    .name = "tok-encode",
    .synopsis = "[-m MODEL] [-s | -0 | -r] [-c | --raw u16|u32] [-to] "
        "[-n N]\n       [--special LIST] [--end] [file ...]",
    .summary = "Tokenizes text, a line a text: text -> ids.",
    .options = options,
    .option = option,
    .model = true,
};

/* --- One text --- */

static enum pf_status
write_raw(const struct tok_encode *e, const uint32_t *ids, size_t n,
    struct pf_err *err)
{
    enum pf_status st = PF_OK;
    unsigned char b[4];

    for (size_t i = 0; i < n && !st; i++) {
        if (e->raw == 2 && ids[i] > 0xffff)
            return pf_fail(err, PF_ERANGE, "id %u does not fit u16", ids[i]);
        for (size_t k = 0; k < e->raw; k++)
            b[k] = (unsigned char)(ids[i] >> 8 * k);
        st = pf_out_write(&cli_out, b, e->raw, err);
    }
    return st;
}

static enum pf_status
write_count(uint64_t n, struct pf_err *err)
{
    char line[24];
    size_t len = pf_i64_print(line, (int64_t)n);

    line[len++] = '\n';
    return pf_out_write(&cli_out, line, len, err);
}

/* Encodes a text and writes what was asked for; `rec` gets the fields. */
static enum pf_status
encode(struct tok_encode *e, struct pf_record *rec, const char *text,
    size_t len, struct pf_err *err)
{
    const uint32_t *prefix, *ids, *body;
    size_t n_prefix = 0, n, cut = 0;
    enum pf_status st;
    uint64_t number = e->texts++;
    struct pf_tensor *t;

    st = pf_encode(e->enc, text, len, &body, &n, err);
    if (st)
        return st;
    if (!e->no_add)
        n_prefix = pf_tokenizer_prefix(e->tok, &prefix);
    pf_buf_clear(&e->ids);
    if (n_prefix)
        pf_buf_add(&e->ids, prefix, n_prefix * sizeof *prefix);
    pf_buf_add(&e->ids, body, n * sizeof *body);
    st = pf_buf_check(&e->ids, err);
    if (st)
        return st;
    n += n_prefix;
    ids = (const uint32_t *)(const void *)e->ids.data;
    if (n > e->max) {
        cut = n - e->max;
        n = e->max;
    }
    cli_stats.tokens += n;
    e->sum += n;
    if (e->raw) {
        st = write_raw(e, ids, n, err);
        if (!st && e->eot)
            st = write_raw(e, &e->eot_id, 1, err);
        return st;
    }
    if (e->count)
        return e->total ? PF_OK : write_count(n, err);
    if (!pf_record_field(rec, "seq"))
        st = pf_record_set_i64(rec, "seq", (int64_t)number, err);
    t = pf_record_put(rec, "ids", PF_I32, 1, &n, NULL);
    if (!t)
        return pf_fail_mem(err);
    if (n)
        memcpy((void *)t->data, ids, n * sizeof *ids);
    if (!st && e->max != SIZE_MAX)
        st = pf_record_set_i64(rec, "cut", (int64_t)cut, err);
    if (!st && e->tokens)
        st = pf_set_tokens(rec, e->tok, ids, n, err);
    if (!st && e->offsets)
        st = pf_set_offsets(rec, e->tok, ids, n, n_prefix, text, len, err);
    return st;
}

/* --- Texts from NDJSON --- */

static enum pf_status
encode_record(void *ctx, struct cli_item *item, struct pf_err *err)
{
    struct tok_encode *e = ctx;
    struct pf_record *rec = &item->rec;
    struct pf_buf text = PF_BUF_INIT;
    enum pf_status st;

    if (pf_record_is_mark(rec)) {
        /* --end puts the mark of the input at the end of all. */
        item->skip = e->end && !pf_record_field(rec, "seq");
        return PF_OK;
    }
    if (pf_record_has(rec, "text_pair"))
        return pf_fail(err, PF_EFORMAT, "text_pair: this tokenizer encodes "
            "single texts");
    st = pf_record_string(rec, "text", &text, err);
    if (st == PF_END)
        st = pf_fail(err, PF_EFORMAT, "the record has no text");
    if (!st) {
        cli_drop(rec, "text");
        item->skip = e->count || e->raw;
        st = encode(e, rec, text.data, text.len, err);
    }
    pf_buf_fini(&text);
    return st;
}

/* --- Texts from bytes --- */

/* Encodes a text and writes what comes of it, if that is not written yet. */
static enum pf_status
encode_text(void *ctx, const char *text, size_t len, struct pf_err *err)
{
    struct tok_encode *e = ctx;
    enum pf_status st;

    pf_record_clear(&e->rec);
    st = encode(e, &e->rec, text, len, err);
    return st || e->count || e->raw ? st : cli_emit(&e->rec, err);
}

/* The last things, when all texts are through. */
static enum pf_status
finish(void *ctx, struct pf_err *err)
{
    struct tok_encode *e = ctx;
    struct pf_record rec = PF_RECORD_INIT;
    enum pf_status st = PF_OK;

    if (cli_status() && !cli.keep_going)
        return PF_OK;
    if (e->total)
        st = write_count(e->sum, err);
    if (!st && e->end) {
        st = pf_record_set_string(&rec, "done", "input", 5, err);
        if (!st)
            st = cli_emit(&rec, err);
    }
    pf_record_fini(&rec);
    return st;
}

/* --special all|none|NAME,... */
static void
set_special(struct tok_encode *e)
{
    const char *p = e->special, *comma;
    struct pf_err err;
    uint32_t id;
    size_t len;

    if (!p || strcmp(p, "none") == 0)
        return;
    if (strcmp(p, "all") == 0) {
        pf_encoder_special_all(e->enc);
        return;
    }
    for (;; p = comma + 1) {
        comma = strchr(p, ',');
        len = comma ? (size_t)(comma - p) : strlen(p);
        if (!pf_tokenizer_find_special(e->tok, p, len, &id))
            cli_usage("--special: the model has no special token %.*s",
                (int)len, p);
        if (pf_encoder_special_add(e->enc, id, &err))
            cli_die("%s", err.msg);
        if (!comma)
            return;
    }
}

int
main(int argc, char **argv)
{
    struct tok_encode e = { .max = SIZE_MAX };
    struct cli_filter filter = {
        .ctx = &e,
        .main_input = "text",
        .format = PF_NDJSON,
        .one = encode_record,
        .end = finish,
    };
    struct pf_err err;
    struct pf_buf dir;
    int status;

    cli_options(argc, argv, &command, &e);
    if (e.slurp + e.nul + e.records > 1)
        cli_usage("only one of -s, -0, -r");
    if (e.total && !e.count)
        cli_usage("--total adds up what -c counts; give -c too");
    if (e.eot && !e.raw)
        cli_usage("--eot goes with --raw");
    if (e.raw)
        cli_no_terminal();
    if (e.count + (e.raw > 0) + (e.tokens || e.offsets || e.end) > 1)
        cli_usage("only one of -c, --raw, and records (-t, -o, --end)");
    dir = cli_model_dir();
    if (pf_tokenizer_open(&e.tok, dir.data, &err)
        || pf_encoder_new(&e.enc, e.tok, &err))
        cli_die("%s", err.msg);
    pf_buf_fini(&dir);
    set_special(&e);
    if (e.raw == 2 && pf_tokenizer_size(e.tok) > 0x10000)
        cli_usage("--raw u16: the vocabulary has %zu ids; use u32",
            pf_tokenizer_size(e.tok));
    if (e.eot && !pf_tokenizer_find_special(e.tok, END_OF_TEXT,
            strlen(END_OF_TEXT), &e.eot_id))
        cli_usage("--eot: the model has no token " END_OF_TEXT);
    filter.text = e.count || e.raw;
    status = e.records ? cli_run(&filter)
        : cli_run_texts(&filter, e.slurp ? -1 : e.nul ? '\0' : '\n',
            encode_text);
    pf_encoder_free(e.enc);
    pf_tokenizer_free(e.tok);
    pf_buf_fini(&e.ids);
    pf_record_fini(&e.rec);
    return status;
}
