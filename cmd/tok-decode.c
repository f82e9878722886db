/* tok-decode: token ids to text. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <pipeformer/json.h>

#include "interrupt.h"
#include "tok-decode.h"

enum { SKIP = CLI_LONG, RAW };

static const struct cli_option options[] = {
    ENCODING_OPTIONS,
    { "slurp", 's', NULL, "write nothing after a text" },
    { "null", '0', NULL, "write a NUL after a text, not a newline" },
    { "records", 'r', NULL, "write records with text" },
    { "tokens", 't', NULL, "write a token a line: id, TAB, text" },
    { "skip-special", SKIP, NULL, "leave special tokens out" },
    { "raw", RAW, "u16|u32", "read flat little-endian ids" },
    { NULL, 0, NULL, NULL },
};

static void
option(void *ctx, int key, const char *arg)
{
    struct tok_decode *d = ctx;

    if (encoding_option(&d->encoding, key, arg))
        return;
    switch (key) {
    case 's': d->slurp = true; break;
    case '0': d->nul = true; break;
    case 'r': cli_begin(PF_NDJSON, false); d->records = true; break;
    case 't': d->list = true; break;
    case SKIP: d->skip_special = true; break;
    case RAW:
        if (strcmp(arg, "u16") != 0 && strcmp(arg, "u32") != 0)
            cli_usage("--raw: '%s' is neither u16 nor u32", arg);
        d->raw = arg[1] == '1' ? 2 : 4;
        break;
    }
}

static const struct cli_command command = {
    .name = "tok-decode",
    .synopsis = "[-e NAME|FILE | -m MODEL] [-s | -0 | -r | -t]\n"
        "       [--skip-special] [--raw u16|u32] [file ...]",
    .summary = "Turns token ids back into text: ids -> text.",
    .options = options,
    .option = option,
    .model = true,
    .text = true,
};

/* The field text: what is whole of the sequence's bytes so far. */
static enum pf_status
set_text(struct tok_decode *d, struct pf_record *rec,
    const struct pf_piece *piece, struct pf_err *err)
{
    struct pf_buf text = PF_BUF_INIT;
    enum pf_status st = pf_texts_piece(d->texts, piece, &text, err);

    if (!st)
        st = pf_record_set_string(rec, "text", text.data ? text.data : "",
            text.len, err);
    pf_buf_fini(&text);
    return st;
}

/* --- Records --- */

/* What the fields of a record say of its text. */
static enum pf_status
look(struct tok_decode *d, const struct pf_record *rec,
    struct pf_piece *piece, struct pf_err *err)
{
    enum pf_status st;
    int64_t held;

    pf_buf_clear(&d->key);
    if ((st = pf_record_pos(rec, &piece->pos, err))
        || (st = pf_record_bool(rec, "more", &piece->more, err))
        || (st = pf_record_i64(rec, "held", 0, &held, err))
        || (st = pf_record_seq(rec, "seq", &d->key, err)))
        return st;
    if (held < 0)
        return pf_fail(err, PF_ERANGE, "held: %lld bytes cannot wait",
            (long long)held);
    piece->held = (size_t)held;
    piece->done = pf_record_is_done(rec);
    piece->cut = pf_record_done_by(rec, "stop");
    piece->key = d->key.data ? d->key.data : "";
    piece->key_len = d->key.len;
    return PF_OK;
}

/*
 * Bytes that wait are counted with those of special tokens: these come too,
 * as hidden ones.
 */
static enum pf_status
decode_hidden(struct tok_decode *d, const uint32_t *ids, size_t n,
    bool *begun, struct pf_err *err)
{
    enum pf_status st = PF_OK;

    pf_buf_clear(&d->hidden);
    for (size_t i = 0; i < n && !st; i++) {
        st = pf_tokenizer_decode(d->tok, ids + i, 1, false, begun, &d->bytes,
            err);
        while (d->hidden.len < d->bytes.len && !d->hidden.failed)
            pf_buf_addc(&d->hidden, pf_tokenizer_is_special(d->tok, ids[i]));
    }
    return st ? st : pf_buf_check(&d->hidden, err);
}

/* The bytes of a record's ids. */
static enum pf_status
decode(struct tok_decode *d, const uint32_t *ids, size_t n,
    struct pf_piece *piece, struct pf_err *err)
{
    bool begun = piece->pos > 0, hide = d->skip_special && piece->held;
    enum pf_status st;
    struct pf_err why;

    pf_buf_clear(&d->bytes);
    st = hide ? decode_hidden(d, ids, n, &begun, &why)
        : pf_tokenizer_decode(d->tok, ids, n, d->skip_special, &begun,
            &d->bytes, &why);
    if (st)
        return pf_fail(err, st, "%s%s", why.msg, st == PF_ERANGE
            ? " (are -e and -m those of the ids?)" : "");
    piece->bytes = d->bytes.data;
    piece->n = d->bytes.len;
    piece->hidden = hide ? d->hidden.data : NULL;
    return PF_OK;
}

static enum pf_status
decode_record(void *ctx, struct cli_item *item, struct pf_err *err)
{
    struct tok_decode *d = ctx;
    struct pf_record *rec = &item->rec;
    struct pf_piece piece = { 0 };
    const uint32_t *ids;
    size_t n;
    enum pf_status st;

    item->skip = !d->records;
    if ((st = pf_record_ids(rec, "ids", &ids, &n, err))
        || (st = look(d, rec, &piece, err)))
        return st;
    if (!ids) {
        item->skip = true;
        return piece.done ? PF_OK
            : pf_fail(err, PF_ESHAPE, "the record has no ids");
    }
    if (d->list)
        return tok_decode_list(d, ids, n, err);
    /* The id that ended the sequence is no part of its text. */
    n -= n && pf_record_done_by(rec, "eos");
    st = decode(d, ids, n, &piece, err);
    if (st)
        return st;
    if (!d->records)
        return pf_texts_add(d->texts, &piece, err);
    piece.done |= piece.pos == 0 && !piece.more;
    st = set_text(d, rec, &piece, err);
    cli_drop(rec, "held");
    cli_drop(rec, "ids");
    return st;
}

/*
 * The line that tok-encode writes, {"seq":7,"ids":[1,2]}: most lines are, and
 * need not become records.
 */
static bool
decode_line(void *ctx, const char *line, size_t len)
{
    static const char seq[] = "{\"seq\":", ids[] = ",\"ids\":[";
    struct tok_decode *d = ctx;
    struct pf_json j = pf_json_at(line, len);
    const char *digits = line + sizeof seq - 1, *end = line + len;
    char key[20];
    bool begun = false;
    struct pf_err err;
    size_t n;

    if (len < sizeof seq || memcmp(line, seq, sizeof seq - 1) != 0)
        return false;
    for (j.p = digits; j.p < end && *j.p >= '0' && *j.p <= '9'; j.p++)
        ;
    n = (size_t)(j.p - digits);
    if (n == 0 || n > 18 || (n > 1 && *digits == '0')
        || end - j.p < (ptrdiff_t)sizeof ids
        || memcmp(j.p, ids, sizeof ids - 1) != 0)
        return false;
    key[0] = 'i';
    memcpy(key + 1, digits, len - sizeof seq < 18 ? n : 18);
    pf_buf_clear(&d->bytes);
    pf_buf_clear(&d->ids);
    j.p += sizeof ids - 1;
    if (!pf_json_take_list(&j, &d->ids) || end - j.p != 1 || *j.p != '}'
        || pf_tokenizer_decode(d->tok, (const uint32_t *)(void *)d->ids.data,
            d->ids.len / sizeof(uint32_t), d->skip_special, &begun, &d->bytes,
            NULL))
        return false;
    cli_stats.tokens += d->ids.len / sizeof(uint32_t);
    if (pf_texts_add(d->texts, &(struct pf_piece){ .key = key,
            .key_len = n + 1, .bytes = d->bytes.data,
            .n = d->bytes.len }, &err)) {
        if (err.status == PF_EWRITE)
            cli_die_writing(&err);
        cli_die("%s", err.msg);
    }
    return true;
}

/*
 * The input has ended, and so has every text.  Records have said what they had
 * to say.
 */
static enum pf_status
end(void *ctx, struct pf_err *err)
{
    struct tok_decode *d = ctx;

    return d->records ? PF_OK : pf_texts_end(d->texts, err);
}

/*
 * Ctrl-C in a terminal goes to the whole pipe.  A command before this one may
 * still have something to say then, as generate has; so what comes through a
 * pipe is read to its end, unless the signal comes again.
 */
static void
read_to_the_end(void)
{
    struct stat s;

    for (size_t i = 0; i < cli.n_files; i++)
        if (strcmp(cli.files[i], "-") == 0 && fstat(0, &s) == 0
            && S_ISFIFO(s.st_mode))
            interrupt_catch(SIGINT);
}

int
main(int argc, char **argv)
{
    struct tok_decode d = { 0 };
    struct cli_filter filter = {
        .ctx = &d,
        .main_input = "ids",
        .format = PF_NDJSON,
        .one = decode_record,
        .end = end,
    };
    struct pf_err err;
    int status;

    cli_options(argc, argv, &command, &d);
    d.records |= cli.json;
    if (d.slurp + d.nul + d.records + d.list > 1)
        cli_usage("only one of -s, -0, -r, -t");
    if (d.raw && d.records)
        cli_usage("--raw gives no records");
    d.tok = encoding_open(&d.encoding, false);
    if (pf_texts_new(&d.texts, &cli_out, d.nul ? "" : "\n", !d.slurp, &err))
        cli_die("%s", err.msg);
    read_to_the_end();
    filter.text = !d.records;
    if (!d.records && !d.list)
        filter.line = decode_line;
    if (d.raw) {
        cli_begin(PF_NDJSON, true);
        for (size_t i = 0; i < cli.n_files; i++)
            if (!tok_decode_raw(&d, cli.files[i]))
                break;
        status = cli_finish();
    } else {
        status = cli_run(&filter);
    }
    pf_texts_free(d.texts);
    pf_tokenizer_free(d.tok);
    pf_buf_fini(&d.key);
    pf_buf_fini(&d.bytes);
    pf_buf_fini(&d.hidden);
    pf_buf_fini(&d.ids);
    if (interrupt_signal()) {
        signal(interrupt_signal(), SIG_DFL);
        raise(interrupt_signal());
    }
    return status;
}
