/* tok-encode: text to token ids. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#include <pipeformer/record.h>
#include <pipeformer/tokenizer.h>

#include "encode.h"
#include "encoding.h"

struct tok_encode {
    struct encode e;
    struct encoding encoding;
    bool slurp, nul, records, count, total, color, fits, end;
    uint64_t number;

    /* Of the batch of records at hand. */
    struct encode_job *jobs;
    struct pf_buf *texts; /* two a job: text, text_pair */
    size_t jobs_cap, texts_cap;
};

#define END_OF_TEXT "<|endoftext|>"

enum { TOTAL = CLI_LONG, MAX, CHUNK, FITS, COLOR, RAW, EOT, SPECIAL, NO_ADD,
    END };

static const struct cli_option options[] = {
    ENCODING_OPTIONS,
    { "slurp", 's', NULL, "a file is one text, not a line" },
    { "null", '0', NULL, "texts end with a NUL" },
    { "records", 'r', NULL, "texts are text and text_pair of NDJSON records" },
    { "count", 'c', NULL, "print how many ids a text has" },
    { "total", TOTAL, NULL, "with -c: one number for all texts" },
    { "tokens", 't', NULL, "add tokens, the text of each id" },
    { "offsets", 'o', NULL, "add offsets, the bytes of each id in the text" },
    { "max", 'n', "N", "keep the first N ids; cut says how many went" },
    { "fits", FITS, NULL, "with -n: only ask whether all texts fit" },
    { "chunk", CHUNK, "N[:OVERLAP]", "cut texts into pieces of N ids" },
    { "color", COLOR, NULL, "show the text, its tokens shaded" },
    { "raw", RAW, "u16|u32", "write ids as flat little-endian integers" },
    { "eot", EOT, NULL, "with --raw: an end-of-text id after each text" },
    { "special", SPECIAL, "all|none|NAME,...", "special tokens to see in texts "
        "(none)" },
    { "no-add-special", NO_ADD, NULL, "nothing is added around a text" },
    { "end", END, NULL, "close with {\"done\":\"input\"}" },
    { NULL, 0, NULL, NULL },
};

static void
set_chunk(struct encode *e, const char *arg)
{
    char *n = strdup(arg), *colon = n ? strchr(n, ':') : NULL;

    if (!n)
        cli_die("out of memory");
    if (colon)
        *colon = '\0';
    e->chunk = (size_t)cli_int("--chunk", n, 1, INT32_MAX);
    if (colon)
        e->overlap = (size_t)cli_int("--chunk", colon + 1, 0, INT32_MAX);
    free(n);
}

static void
option(void *ctx, int key, const char *arg)
{
    struct tok_encode *t = ctx;

    if (encoding_option(&t->encoding, key, arg))
        return;
    switch (key) {
    case 's': t->slurp = true; break;
    case '0': t->nul = true; break;
    case 'r': t->records = true; break;
    case 'c':
        t->count = true;
        cli_begin(PF_NDJSON, true);
        break;
    case TOTAL: t->total = true; break;
    case 't': t->e.tokens = true; break;
    case 'o': t->e.offsets = true; break;
    case 'n': t->e.max = (size_t)cli_int("--max", arg, 0, INT32_MAX); break;
    case CHUNK: set_chunk(&t->e, arg); break;
    case FITS:
        t->fits = true;
        cli.failed = 2;
        cli_begin(PF_NDJSON, true);
        break;
    case COLOR:
        t->color = true;
        cli_begin(PF_NDJSON, true);
        break;
    case RAW:
        if (strcmp(arg, "u16") != 0 && strcmp(arg, "u32") != 0)
            cli_usage("--raw: '%s' is neither u16 nor u32", arg);
        t->e.raw = arg[1] == '1' ? 2 : 4;
        cli_begin(PF_NDJSON, true);
        break;
    case EOT: t->e.eot = true; break;
    case SPECIAL: t->e.special = arg; break;
    case NO_ADD: t->e.bare = true; break;
    case END: t->end = true; break;
    }
}

static const struct cli_command command = {
    .name = "tok-encode",
    .synopsis = "[-e NAME|FILE | -m MODEL] [-s | -0 | -r]\n"
        "       [-c | --raw u16|u32 | --color | --fits] [-to] "
        "[-n N | --chunk N[:M]]\n       [file ...]",
    .summary = "Tokenizes text, a line a text: text -> ids.",
    .options = options,
    .option = option,
    .model = true,
};

/* --- Texts --- */

static enum pf_status
encode_texts(void *ctx, const struct cli_block *block, size_t *n,
    struct pf_err *err)
{
    struct tok_encode *t = ctx;
    enum pf_status st = encode_block(&t->e, block, t->slurp ? -1
        : t->nul ? '\0' : '\n', t->number, n, err);

    t->number += *n;
    return st;
}

static enum pf_status
encode_part_of(void *ctx, const char *text, size_t len, bool last,
    size_t *used, struct pf_err *err)
{
    struct tok_encode *t = ctx;

    return encode_part(&t->e, text, len, last, used, err);
}

static void
drop(void *ctx)
{
    struct tok_encode *t = ctx;

    encode_drop(&t->e);
}

/* One that does not fit is the answer. */
static bool
enough(void *ctx)
{
    struct tok_encode *t = ctx;

    return t->fits && t->e.misfit;
}

/* The text of a field; data NULL if the record has none. */
static enum pf_status
take(struct pf_record *rec, const char *name, struct pf_buf *text,
    const char **data, size_t *len, struct pf_err *err)
{
    enum pf_status st;

    pf_buf_clear(text);
    st = pf_record_string(rec, name, text, err);
    *data = st ? NULL : text->data ? text->data : "";
    *len = text->len;
    if (!st)
        cli_drop(rec, name);
    return st == PF_END ? PF_OK : st;
}

/* What tells of former ids: it does not outlive them. */
static bool
drops(const char *name, bool tensor)
{
    static const char *const gone[] = { "layer", "cut", "overlap" };
    bool drop = pf_per_position(name, tensor);

    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
        drop |= strcmp(name, gone[i]) == 0;
    return drop && !cli_keeps(name);
}

/* A record of the batch failed. */
static bool
failed(void *where, size_t i, const struct pf_err *err)
{
    struct cli_item *item = ((struct cli_item **)where)[i];

    return cli_failed(item->file, item->number, &item->rec, err->msg);
}

static enum pf_status
encode_records(void *ctx, struct cli_item **items, size_t n, size_t *at,
    struct pf_err *err)
{
    struct tok_encode *t = ctx;
    enum pf_status st = PF_OK, bad = PF_OK;
    size_t cap = t->texts_cap, count;
    struct pf_err why;

    *at = 0;
    if (!pf_grow(&t->jobs, &t->jobs_cap, n, sizeof *t->jobs)
        || !pf_grow(&t->texts, &t->texts_cap, 2 * n, sizeof *t->texts))
        return pf_fail_mem(err);
    memset(t->texts + cap, 0, (t->texts_cap - cap) * sizeof *t->texts);
    for (count = 0; count < n && !bad; count += !bad) {
        struct encode_job *job = &t->jobs[count];
        struct pf_record *rec = &items[count]->rec;
        struct pf_buf *text = &t->texts[2 * count];

        items[count]->skip = true;
        *job = (struct encode_job){ .rec = rec };
        if (pf_record_is_mark(rec)) {
            /* That of --end comes at the end of all. */
            if (t->e.output != ENCODE_RECORDS
                || (t->end && !pf_record_field(rec, "seq")))
                job->rec = NULL;
            continue;
        }
        job->number = t->number++;
        bad = pf_record_seq(rec, "seq", &text[0], &why);
        if (!bad)
            bad = take(rec, "text", &text[0], &job->text, &job->len, &why);
        if (!bad && !job->text)
            bad = pf_fail(&why, PF_EFORMAT, "the record has no text");
        if (!bad)
            bad = take(rec, "text_pair", &text[1], &job->pair, &job->pair_len,
                &why);
        if (t->e.output == ENCODE_RECORDS)
            pf_record_drop_if(rec, drops);
        else
            job->rec = NULL;
    }
    st = encode_jobs(&t->e, t->jobs, count, failed, items, err);
    if (st || !bad)
        return st;
    *at = count;
    *err = why;
    return bad;
}

static enum pf_status
check(void *ctx, struct cli_item *item, struct pf_err *err)
{
    struct tok_encode *t = ctx;

    (void)item;
    (void)err;
    return enough(t) || (cli_status() && !cli.keep_going) ? PF_END : PF_OK;
}

/* The last things, when all texts are through. */
static enum pf_status
finish(void *ctx, struct pf_err *err)
{
    struct tok_encode *t = ctx;
    struct pf_record rec = PF_RECORD_INIT;
    enum pf_status st = PF_OK;

    if (cli_status() && !cli.keep_going)
        return PF_OK;
    if (t->total)
        st = encode_write_count(t->e.sum, err);
    if (!st && t->end) {
        st = pf_record_set_string(&rec, "done", "input", 5, err);
        if (!st)
            st = cli_emit(&rec, err);
    }
    pf_record_fini(&rec);
    return st;
}

/* Which of the outputs, and what does not go together. */
static void
choose(struct tok_encode *t)
{
    struct encode *e = &t->e;
    bool fields = e->tokens || e->offsets || t->end;

    if (t->slurp + t->nul + t->records > 1)
        cli_usage("only one of -s, -0, -r");
    if (t->total && !t->count)
        cli_usage("--total adds up what -c counts; give -c too");
    if (e->eot && !e->raw)
        cli_usage("--eot goes with --raw");
    if (t->fits && e->max == SIZE_MAX)
        cli_usage("--fits goes with -n");
    if (e->chunk && e->max != SIZE_MAX)
        cli_usage("only one of -n and --chunk");
    if (t->count + (e->raw > 0) + t->color + t->fits
            + (fields || e->chunk) > 1)
        cli_usage("only one of -c, --raw, --color, --fits, and records (-t, "
            "-o, --chunk, --end)");
    if (e->raw)
        cli_no_terminal();
    e->output = t->total ? ENCODE_TOTAL : t->count ? ENCODE_COUNTS
        : e->raw ? ENCODE_RAW : t->color ? ENCODE_COLOR
        : t->fits ? ENCODE_FITS : ENCODE_RECORDS;
}

/* What can only be told when the vocabulary is known. */
static void
check_vocabulary(struct tok_encode *t)
{
    struct encode *e = &t->e;
    const struct pf_slot *slots;
    size_t size = pf_tokenizer_size(e->tok), frame;

    frame = e->bare ? 0 : pf_tokenizer_frame(e->tok, false, &slots) - 1;
    if (e->raw == 2 && size > 0x10000)
        cli_usage("--raw u16: the vocabulary has %zu ids; use u32", size);
    if (e->eot && !pf_tokenizer_find_special(e->tok, END_OF_TEXT,
            strlen(END_OF_TEXT), &e->eot_id))
        cli_usage("--eot: the vocabulary has no token " END_OF_TEXT);
    if (e->chunk && e->chunk <= frame)
        cli_usage("--chunk: %zu ids go around each piece, so it must have more "
            "than %zu", frame, e->chunk);
    if (e->chunk && e->overlap >= e->chunk - frame)
        cli_usage("--chunk: a piece has %zu ids of the text, so fewer must "
            "overlap", e->chunk - frame);
}

int
main(int argc, char **argv)
{
    /* Not given back: that takes longer than when the system does it. */
    static struct tok_encode t = { .e.max = SIZE_MAX };
    struct cli_filter filter = {
        .ctx = &t,
        .main_input = "text",
        .check = check,
        .step = encode_records,
        .end = finish,
    };
    struct cli_texts texts = {
        .ctx = &t,
        .batch = encode_texts,
        .drop = drop,
        .enough = enough,
        .end = finish,
    };
    int status;

    cli_options(argc, argv, &command, &t);
    choose(&t);
    t.e.tok = encoding_open(&t.encoding, true);
    check_vocabulary(&t);
    encode_start(&t.e);
    filter.text = texts.text = t.e.output != ENCODE_RECORDS;
    texts.delimiter = t.slurp ? -1 : t.nul ? '\0' : '\n';
    if (encode_parts(&t.e))
        texts.part = encode_part_of;
    status = t.records ? cli_run(&filter) : cli_run_texts(&texts);
    if (t.fits && !status)
        status = t.e.misfit;
    return status;
}
