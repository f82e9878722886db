/* tok-decode: token ids to text. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#include <pipeformer/json.h>
#include <pipeformer/texts.h>
#include <pipeformer/tokenizer.h>
#include <pipeformer/tokens.h>

#include "encoding.h"

struct tok_decode {
    struct pf_tokenizer *tok;
    struct encoding encoding;
    bool slurp, nul, records, list, skip_special;
    size_t raw;
    struct pf_texts *texts;
    struct pf_buf key, bytes, ids; /* of the record at hand */
};

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

static enum pf_status
write_list(const struct tok_decode *d, const uint32_t *ids, size_t n,
    struct pf_err *err)
{
    struct pf_buf line = PF_BUF_INIT, text = PF_BUF_INIT;
    enum pf_status st = PF_OK;
    size_t len;

    for (size_t i = 0; i < n && !st; i++) {
        const char *token = pf_tokenizer_token(d->tok, ids[i], &len);

        if (!token) {
            st = pf_fail(err, PF_ERANGE, "no token has the id %u",
                ids[i]);
            break;
        }
        if (d->skip_special && pf_tokenizer_is_special(d->tok, ids[i]))
            continue;
        pf_buf_clear(&line);
        pf_buf_clear(&text);
        pf_buf_printf(&line, "%u\t", ids[i]);
        pf_token_text(&text, token, len);
        for (size_t k = 0; k < text.len; k++) {
            static const char from[] = "\\\t\n\r", to[] = "\\tnr";
            const char *at = text.data[k] ? strchr(from, text.data[k]) : NULL;

            if (at)
                pf_buf_addc(&line, '\\');
            pf_buf_addc(&line, at ? to[at - from] : text.data[k]);
        }
        pf_buf_addc(&line, '\n');
        st = pf_buf_check(&line, err);
        if (!st)
            st = pf_out_write(&cli_out, line.data, line.len, err);
    }
    pf_buf_fini(&line);
    pf_buf_fini(&text);
    return st;
}

/* The field text: what is whole of the sequence's bytes so far. */
static enum pf_status
set_text(struct tok_decode *d, struct pf_record *rec, size_t pos, bool whole,
    struct pf_err *err)
{
    struct pf_buf text = PF_BUF_INIT;
    enum pf_status st = pf_texts_piece(d->texts, d->key.data, d->key.len, pos,
        whole, d->bytes.data, d->bytes.len, &text, err);

    if (!st)
        st = pf_record_set_string(rec, "text", text.data ? text.data : "",
            text.len, err);
    pf_buf_fini(&text);
    return st;
}

/* --- Records --- */

static enum pf_status
decode_record(void *ctx, struct cli_item *item, struct pf_err *err)
{
    struct tok_decode *d = ctx;
    struct pf_record *rec = &item->rec;
    const struct pf_field *f = pf_record_is_done(rec)
        ? pf_record_field(rec, "done") : NULL;
    const uint32_t *ids;
    size_t n, pos, shown;
    enum pf_status st;
    struct pf_err why;
    bool more, begun;

    item->skip = !d->records;
    pf_buf_clear(&d->key);
    pf_buf_clear(&d->bytes);
    if ((st = pf_record_ids(rec, "ids", &ids, &n, err))
        || (st = pf_record_pos(rec, &pos, err))
        || (st = pf_record_bool(rec, "more", &more, err))
        || (st = pf_record_seq(rec, "seq", &d->key, err)))
        return st;
    if (!ids) {
        item->skip = true;
        return f ? PF_OK : pf_fail(err, PF_ESHAPE, "the record has no ids");
    }
    /* The id that ended the sequence is no part of its text. */
    shown = n - (n && f && f->len == 5 && memcmp(f->text, "\"eos\"", 5) == 0);
    if (d->list)
        return write_list(d, ids, shown, err);
    begun = pos > 0;
    st = pf_tokenizer_decode(d->tok, ids, shown, d->skip_special, &begun,
        &d->bytes, &why);
    if (st)
        return pf_fail(err, st, "%s%s", why.msg, st == PF_ERANGE
            ? " (are -e and -m those of the ids?)" : "");
    if (!d->records)
        return pf_texts_add(d->texts, d->key.data, d->key.len, pos, more,
            f != NULL, d->bytes.data, d->bytes.len, err);
    st = set_text(d, rec, pos, f || (pos == 0 && !more), err);
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
    pf_buf_clear(&d->key);
    pf_buf_addc(&d->key, 'i');
    pf_buf_add(&d->key, digits, n);
    pf_buf_clear(&d->bytes);
    pf_buf_clear(&d->ids);
    j.p += sizeof ids - 1;
    if (!pf_json_take_list(&j, &d->ids) || end - j.p != 1 || *j.p != '}'
        || pf_buf_check(&d->key, NULL)
        || pf_tokenizer_decode(d->tok, (const uint32_t *)(void *)d->ids.data,
            d->ids.len / sizeof(uint32_t), d->skip_special, &begun, &d->bytes,
            NULL))
        return false;
    cli_stats.tokens += d->ids.len / sizeof(uint32_t);
    if (pf_texts_add(d->texts, d->key.data, d->key.len, 0, false, false,
            d->bytes.data, d->bytes.len, &err)) {
        if (err.status == PF_EWRITE)
            cli_die_writing(&err);
        cli_die("%s", err.msg);
    }
    return true;
}

/* The input has ended, and so has every text. */
static enum pf_status
end(void *ctx, struct pf_err *err)
{
    struct tok_decode *d = ctx;

    return pf_texts_end(d->texts, err);
}

/* --- Flat ids --- */

static bool
decode_raw(struct tok_decode *d, const char *file)
{
    uint32_t ids[1024];
    size_t pos = 0;
    struct pf_in in;
    struct pf_err err;
    enum pf_status st = pf_in_open(&in, file, &err);
    const unsigned char *p;
    bool begun = false;
    size_t n;

    if (st)
        return cli_failed(file, 0, NULL, err.msg);
    do {
        if (in.end - in.start < d->raw) {
            if (!pf_in_ready(&in))
                cli_flush();
            st = pf_in_fill(&in, &err);
            if (st == PF_END && in.end > in.start)
                st = pf_fail(&err, PF_EFORMAT, "the file ends inside an id");
            continue;
        }
        p = (const unsigned char *)in.data + in.start;
        n = (in.end - in.start) / d->raw;
        if (n > sizeof ids / sizeof *ids)
            n = sizeof ids / sizeof *ids;
        for (size_t i = 0; i < n; i++, p += d->raw)
            ids[i] = d->raw == 2 ? p[0] | (uint32_t)p[1] << 8
                : p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16
                | (uint32_t)p[3] << 24;
        pf_in_skip(&in, n * d->raw);
        cli_stats.tokens += n;
        if (d->list) {
            st = write_list(d, ids, n, &err);
            continue;
        }
        pf_buf_clear(&d->bytes);
        st = pf_tokenizer_decode(d->tok, ids, n, d->skip_special, &begun,
            &d->bytes, &err);
        if (!st)
            st = pf_texts_add(d->texts, "", 0, pos, true, false,
                d->bytes.data, d->bytes.len, &err);
        pos += n;
    } while (!st);
    if (st == PF_END)
        st = pf_texts_end(d->texts, &err);
    cli_stats.bytes_in += in.used;
    pf_in_fini(&in);
    if (st == PF_EWRITE)
        cli_die_writing(&err);
    return !st || cli_failed(file, 0, NULL, err.msg);
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
    filter.text = !d.records;
    if (!d.records && !d.list)
        filter.line = decode_line;
    if (d.raw) {
        cli_begin(PF_NDJSON, true);
        for (size_t i = 0; i < cli.n_files; i++)
            if (!decode_raw(&d, cli.files[i]))
                break;
        status = cli_finish();
    } else {
        status = cli_run(&filter);
    }
    pf_texts_free(d.texts);
    pf_tokenizer_free(d.tok);
    pf_buf_fini(&d.key);
    pf_buf_fini(&d.bytes);
    pf_buf_fini(&d.ids);
    return status;
}
