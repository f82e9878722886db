/* tok-decode: token ids to text. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#include <pipeformer/json.h>
#include <pipeformer/seqmap.h>
#include <pipeformer/tokenizer.h>
#include <pipeformer/utf8.h>

/*
 * A text in the making.  The first of the list is live: its bytes go out as
 * they come.  The others are held, and written whole when they are done.
 */
struct text {
    struct pf_buf held; /* bytes not written; of the live one, those of a
                           character that is not whole */
    char *key;
    size_t key_len;
    bool single; /* one record from position 0: whole as it is, but for what
                    may follow at once */
    bool started, done;
    struct text *next;
};

struct tok_decode {
    struct pf_tokenizer *tok;
    bool slurp, nul, records, list, skip_special;
    size_t raw;
    struct text *first, **last;
    struct pf_seqmap map;
    struct pf_buf key, bytes;
};

enum { SKIP = CLI_LONG, RAW };

static const struct cli_option options[] = {
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

    switch (key) {
    case 's': d->slurp = true; break;
    case '0': d->nul = true; break;
    case 'r': d->records = true; break;
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
    .synopsis = "[-m MODEL] [-s | -0 | -r | -t] [--skip-special] "
        "[--raw u16|u32]\n       [file ...]",
    .summary = "Turns token ids back into text: ids -> text.",
    .options = options,
    .option = option,
    .model = true,
    .text = true,
};

static enum pf_status
put(const void *p, size_t n, struct pf_err *err)
{
    return pf_out_write(&cli_out, p, n, err);
}

/* Appends the bytes of ids to b. */
static enum pf_status
decode(const struct tok_decode *d, struct pf_buf *b, const uint32_t *ids,
    size_t n, struct pf_err *err)
{
    size_t len;

    for (size_t i = 0; i < n; i++) {
        const char *token = pf_tokenizer_token(d->tok, ids[i], &len);

        if (!token)
            return pf_fail(err, PF_ERANGE, "ids: no token has the id %u",
                ids[i]);
        if (!d->skip_special || !pf_tokenizer_is_special(d->tok, ids[i]))
            pf_buf_add(b, token, len);
    }
    return pf_buf_check(b, err);
}

/* --- Texts --- */

/* Writes what is whole of a text's bytes; all of them at its end. */
static enum pf_status
write_held(struct text *t, bool all, struct pf_err *err)
{
    size_t n = t->held.len;
    enum pf_status st;

    if (!all)
        n -= pf_utf8_pending(t->held.data, n);
    st = n ? put(t->held.data, n, err) : PF_OK;
    t->held.len -= n;
    if (t->held.len)
        memmove(t->held.data, t->held.data + n, t->held.len);
    return st;
}

static void
free_text(struct text *t)
{
    pf_buf_fini(&t->held);
    free(t->key);
    free(t);
}

/* Writes the rest of a text and what goes after it, and forgets it. */
static enum pf_status
end_text(struct tok_decode *d, struct text **at, struct pf_err *err)
{
    struct text *t = *at;
    enum pf_status st = write_held(t, true, err);

    if (!st && !d->slurp)
        st = put(d->nul ? "" : "\n", 1, err);
    *at = t->next;
    if (d->last == &t->next)
        d->last = at;
    if (pf_seqmap_get(&d->map, t->key, t->key_len) == t)
        pf_seqmap_take(&d->map, t->key, t->key_len);
    free_text(t);
    return st;
}

/*
 * The live text has ended or there was none: those that are done go out, and
 * the first of the others is live.
 */
static enum pf_status
next_live(struct tok_decode *d, struct pf_err *err)
{
    struct text **at = &d->first;
    enum pf_status st = PF_OK;

    while (*at && !st) {
        if ((*at)->done)
            st = end_text(d, at, err);
        else
            at = &(*at)->next;
    }
    return st || !d->first ? st : write_held(d->first, false, err);
}

static struct text *
new_text(struct tok_decode *d, struct pf_err *err)
{
    struct text *t = calloc(1, sizeof *t);

    if (t)
        t->key = malloc(d->key.len + 1);
    if (!t || !t->key
        || pf_seqmap_put(&d->map, d->key.data, d->key.len, t, err)) {
        if (t)
            free(t->key);
        free(t);
        pf_fail_mem(err);
        return NULL;
    }
    if (d->key.len)
        memcpy(t->key, d->key.data, d->key.len);
    t->key_len = d->key.len;
    *d->last = t;
    d->last = &t->next;
    return t;
}

/* The bytes of a record of the sequence d->key, from position pos on. */
static enum pf_status
add_text(struct tok_decode *d, size_t pos, bool more, bool done,
    struct pf_err *err)
{
    struct text *t = pf_seqmap_get(&d->map, d->key.data, d->key.len);
    enum pf_status st = PF_OK;

    if (t && pos == 0 && t->started) { /* begun anew: the old one is over */
        t->done = true;
        pf_seqmap_take(&d->map, t->key, t->key_len);
        t = NULL;
    }
    /* A text that came whole ends when another one comes. */
    if (d->first && d->first != t && (d->first->single || d->first->done)) {
        st = end_text(d, &d->first, err);
        if (!st)
            st = next_live(d, err);
    }
    if (!st && !t && !(t = new_text(d, err)))
        st = PF_ENOMEM;
    if (st)
        return st;
    t->single = pos == 0 && !more;
    t->started = true;
    t->done = done;
    pf_buf_add(&t->held, d->bytes.data, d->bytes.len);
    st = pf_buf_check(&t->held, err);
    if (st || t != d->first)
        return st;
    return done ? next_live(d, err) : write_held(t, false, err);
}

/* --- Other forms of output --- */

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
            st = pf_fail(err, PF_ERANGE, "ids: no token has the id %u",
                ids[i]);
            break;
        }
        if (d->skip_special && pf_tokenizer_is_special(d->tok, ids[i]))
            continue;
        pf_buf_clear(&line);
        pf_buf_clear(&text);
        pf_buf_printf(&line, "%u\t", ids[i]);
        cli_token_text(&text, token, len);
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
            st = put(line.data, line.len, err);
    }
    pf_buf_fini(&line);
    pf_buf_fini(&text);
    return st;
}

/*
 * The field text: what is whole of the sequence's bytes so far.  JSON holds
 * UTF-8 only, so each stretch of bytes that is none becomes U+FFFD.
 */
static enum pf_status
set_text(struct tok_decode *d, struct pf_record *rec, size_t pos, bool done,
    struct pf_err *err)
{
    struct text *t = pf_seqmap_get(&d->map, d->key.data, d->key.len);
    struct pf_buf out = PF_BUF_INIT;
    size_t n, len;
    const char *p;
    enum pf_status st;

    if (!t && !(t = new_text(d, err)))
        return PF_ENOMEM;
    if (pos == 0)
        pf_buf_clear(&t->held);
    pf_buf_add(&t->held, d->bytes.data, d->bytes.len);
    p = t->held.data;
    n = t->held.len;
    if (!done && (pos || pf_record_field(rec, "more")))
        n -= pf_utf8_pending(p, n);
    for (size_t i = 0; i < n; i += len) {
        len = pf_utf8_span(p + i, n - i);
        if (len) {
            pf_buf_add(&out, p + i, len);
            continue;
        }
        len = pf_utf8_subpart(p + i, n - i);
        pf_buf_adds(&out, "\xef\xbf\xbd");
    }
    t->held.len -= n;
    if (t->held.len)
        memmove(t->held.data, t->held.data + n, t->held.len);
    st = pf_buf_check(&out, err);
    if (!st)
        st = pf_record_set_string(rec, "text", out.data ? out.data : "",
            out.len, err);
    pf_buf_fini(&out);
    if (t->held.len == 0 || done) {
        struct text **at = &d->first;

        while (*at != t)
            at = &(*at)->next;
        *at = t->next;
        if (d->last == &t->next)
            d->last = at;
        pf_seqmap_take(&d->map, t->key, t->key_len);
        free_text(t);
    }
    return st;
}

/* --- Records --- */

static enum pf_status
decode_record(struct tok_decode *d, struct cli_item *item, struct pf_err *err)
{
    struct pf_record *rec = &item->rec;
    const struct pf_field *f = pf_record_field(rec, "done");
    const uint32_t *ids;
    size_t n, pos, shown;
    enum pf_status st;
    bool more;

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
    st = decode(d, &d->bytes, ids, shown, err);
    if (st)
        return st;
    if (!d->records)
        return add_text(d, pos, more, f != NULL, err);
    st = set_text(d, rec, pos, f != NULL, err);
    cli_drop(rec, "ids");
    return st;
}

static enum pf_status
step(void *ctx, struct cli_item **items, size_t n, size_t *at,
    struct pf_err *err)
{
    enum pf_status st;

    for (size_t i = 0; i < n; i++) {
        *at = i;
        st = decode_record(ctx, items[i], err);
        if (st)
            return st;
    }
    return PF_OK;
}

/* The input has ended, and so has every text. */
static enum pf_status
end(void *ctx, struct pf_err *err)
{
    struct tok_decode *d = ctx;

    for (struct text *t = d->first; t; t = t->next)
        t->done = true;
    return d->records || d->list ? PF_OK : next_live(d, err);
}

/* --- Flat ids --- */

static bool
decode_raw(struct tok_decode *d, const char *file)
{
    struct text t = { .held = PF_BUF_INIT };
    uint32_t ids[1024];
    struct pf_in in;
    struct pf_err err;
    enum pf_status st = pf_in_open(&in, file, &err);
    const unsigned char *p;
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
        st = d->list ? write_list(d, ids, n, &err)
            : decode(d, &t.held, ids, n, &err);
        if (!st)
            st = write_held(&t, false, &err);
    } while (!st);
    if (st == PF_END && !d->list) {
        st = write_held(&t, true, &err);
        if (!st && !d->slurp)
            st = put(d->nul ? "" : "\n", 1, &err);
    }
    cli_stats.bytes_in += in.used;
    pf_in_fini(&in);
    pf_buf_fini(&t.held);
    if (st == PF_EIO)
        cli_die_writing(&err);
    return !st || st == PF_END || cli_failed(file, 0, NULL, err.msg);
}

int
main(int argc, char **argv)
{
    struct tok_decode d = { .last = &d.first };
    struct cli_filter filter = {
        .ctx = &d,
        .main_input = "ids",
        .format = PF_NDJSON,
        .step = step,
        .end = end,
    };
    struct pf_err err;
    struct pf_buf dir;
    int status;

    cli_options(argc, argv, &command, &d);
    if (d.slurp + d.nul + d.records + d.list > 1)
        cli_usage("only one of -s, -0, -r, -t");
    if (d.raw && d.records)
        cli_usage("--raw gives no records");
    dir = cli_model_dir();
    if (pf_tokenizer_open(&d.tok, dir.data, &err))
        cli_die("%s", err.msg);
    pf_buf_fini(&dir);
    filter.text = !d.records;
    if (d.raw) {
        cli_begin(PF_NDJSON, true);
        for (size_t i = 0; i < cli.n_files; i++)
            if (!decode_raw(&d, cli.files[i]))
                break;
        status = cli_finish();
    } else {
        status = cli_run(&filter);
    }
    while (d.first) {
        struct text *t = d.first;

        d.first = t->next;
        free_text(t);
    }
    pf_seqmap_fini(&d.map, NULL);
    pf_tokenizer_free(d.tok);
    pf_buf_fini(&d.key);
    pf_buf_fini(&d.bytes);
    return status;
}
