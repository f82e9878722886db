/* attn-view: attention, and other matrices, as pictures. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#include <pipeformer/utf8.h>

#include "attn-view-data.h"

enum output { OUT_TERM, OUT_SVG, OUT_HTML, OUT_LINKS };

struct attn_view {
    enum output output;
    const char *output_name;
    enum term_color color;
    const char *color_arg, *layers_arg, *heads_arg, *seq;
    bool width_given, annotate, lines, has_min, has_top;
    size_t width, top;
    double min;
    struct view_choice choice;
    struct view_tokens tokens;
    struct gather gather;
    size_t seen;        /* sequences */
    bool held;          /* one that waits for the end: */
    struct sheet sheet;
    const char *file;   /* and where its last record was */
    uint64_t number;
};

enum { HEADS = CLI_LONG, FIELD, SEQ, WORDS, TITLE, RANGE, COLOR, WIDTH,
    ANNOTATE, LINES, MIN, TOP };

static const struct cli_option options[] = {
    { "output", 'o', "FORM", "term (default), svg, html, links" },
    { "layers", 'l', "LIST", "of these layers only, 0-5,8 (0-based)" },
    { "heads", HEADS, "LIST", "of these heads only" },
    { "field", FIELD, "NAME", "draw this matrix, not attn" },
    { "seq", SEQ, "NAME", "of this sequence only" },
    { "words", WORDS, NULL, "merge sub-tokens to words" },
    { "range", RANGE, "LO:HI", "the numbers that colours go from and to" },
    { "title", TITLE, "TEXT", "over the picture" },
    { "color", COLOR, "WHEN", "term: auto, always, never, truecolor, 256" },
    { "width", WIDTH, "N", "term: columns" },
    { "annotate", ANNOTATE, NULL, "svg: write numbers into the cells" },
    { "lines", LINES, NULL, "svg: lines from queries to keys" },
    { "min", MIN, "W", "links, lines: weights of at least W" },
    { "top", TOP, "N", "links: the N greatest of each query" },
    ENCODING_OPTIONS,
    { NULL, 0, NULL, NULL },
};

static void
set_output(struct attn_view *a, const char *arg)
{
    static const char *const names[] = { "term", "svg", "html", "links" };

    for (int i = 0; i < 4; i++) {
        if (strcmp(arg, names[i]) != 0)
            continue;
        a->output = (enum output)i;
        a->output_name = names[i];
        cli_begin(PF_NDJSON, i != OUT_LINKS);
        return;
    }
    cli_usage("-o: '%s' is none of term, svg, html and links", arg);
}

static void
set_range(struct view_choice *c, const char *arg)
{
    const char *colon = strchr(arg, ':');
    char lo[64];

    if (!colon || (size_t)(colon - arg) >= sizeof lo)
        cli_usage("--range: '%s' is not LO:HI", arg);
    memcpy(lo, arg, (size_t)(colon - arg));
    lo[colon - arg] = '\0';
    c->lo = cli_num("--range", lo, -1e300, 1e300);
    c->hi = cli_num("--range", colon + 1, -1e300, 1e300);
    if (!(c->lo < c->hi))
        cli_usage("--range: %s: the first must be less than the second", arg);
    c->has_range = true;
}

static void
option(void *ctx, int key, const char *arg)
{
    struct attn_view *a = ctx;

    if (encoding_option(&a->tokens.encoding, key, arg))
        return;
    switch (key) {
    case 'o': set_output(a, arg); break;
    case 'l': a->layers_arg = arg; break;
    case HEADS: a->heads_arg = arg; break;
    case FIELD: a->choice.field = arg; break;
    case SEQ: a->seq = arg; break;
    case WORDS: a->choice.words = true; break;
    case RANGE: set_range(&a->choice, arg); break;
    case TITLE: a->choice.title = arg; break;
    case COLOR: a->color_arg = arg; break;
    case WIDTH:
        a->width = (size_t)cli_int("--width", arg, TERM_WIDTH_MIN,
            TERM_WIDTH_MAX);
        a->width_given = true;
        break;
    case ANNOTATE: a->annotate = true; break;
    case LINES: a->lines = true; break;
    case MIN:
        a->min = cli_num("--min", arg, -1e300, 1e300);
        a->has_min = true;
        break;
    case TOP:
        a->top = (size_t)cli_int("--top", arg, 1, 1 << 30);
        a->has_top = true;
        break;
    }
}

static const struct cli_command command = {
    .name = "attn-view",
    .synopsis = "[-o term|svg|html|links] [-l LIST] [--heads LIST] "
        "[--field NAME]\n       [--seq NAME] [--words] [--range LO:HI] "
        "[--title TEXT]\n       [-e NAME|FILE | -m MODEL] [file ...]",
    .summary = "Pictures of attention maps and other matrices.",
    .options = options,
    .option = option,
    .model = true,
    .text = true,
};

/* --- Drawing --- */

static enum pf_status
draw(const struct attn_view *a, const struct sheet *s, struct pf_err *err)
{
    const struct view *v = &s->v;

    switch (a->output) {
    case OUT_TERM:
        return view_term(v, a->color, a->width, &cli_out, err);
    case OUT_SVG:
        return a->lines ? view_svg_lines(v, a->has_min ? a->min : 0.01,
            &cli_out, err) : view_svg(v, a->annotate, &cli_out, err);
    case OUT_HTML:
        return view_html(v, &cli_out, err);
    case OUT_LINKS:
        return view_links(v, a->has_min ? a->min : -1e308,
            a->has_top ? a->top : a->has_min ? 0 : 3, &cli_out, err);
    }
    return PF_OK;
}

/* A sequence is complete: it is drawn, or waits until it is the only one. */
static enum pf_status
report(void *ctx, struct gathered *g, struct pf_err *err)
{
    struct attn_view *a = ctx;
    enum pf_status st = sheet_make(&a->sheet, g, &a->choice, err);

    if (a->output == OUT_SVG || a->output == OUT_HTML) {
        if (!st && (!a->sheet.v.L || !a->sheet.v.H || !a->sheet.v.T
                || !a->sheet.v.S))
            st = pf_fail(err, PF_ESHAPE, "%.100s: has no numbers to draw",
                a->sheet.v.field);
        a->held = !st;
        a->file = g->file;
        a->number = g->number;
        return st;
    }
    if (!st)
        st = draw(a, &a->sheet, err);
    sheet_fini(&a->sheet);
    a->sheet = (struct sheet){ .numbers = NULL };
    return st;
}

static enum pf_status
begin(void *ctx, struct gathered *g, const struct pf_record *rec,
    const struct maps *m, struct pf_err *err)
{
    struct attn_view *a = ctx;

    g->data = NULL;
    if (a->seen++ && (a->output == OUT_SVG || a->output == OUT_HTML))
        return pf_fail(err, PF_ESTATE, "a second sequence begins, and -o %s "
            "draws one; choose it with --seq NAME", a->output_name);
    return view_data_begin(g, rec, m, err);
}

static enum pf_status
add(void *ctx, struct gathered *g, struct pf_record *rec,
    const struct maps *m, struct pf_err *err)
{
    struct attn_view *a = ctx;

    return view_data_add(g, rec, m, &a->tokens, err);
}

/* Is the record of the sequence that --seq names, as a number or a string?  In
 * quotes, a string. */
static bool
is_wanted(const struct attn_view *a, const struct pf_record *rec)
{
    const struct pf_field *seq = pf_record_field(rec, "seq");
    struct pf_buf key = PF_BUF_INIT;
    bool is = !pf_record_seq(rec, "seq", &key, NULL) && key.len
        && key.len - 1 == strlen(a->seq)
        && memcmp(key.data + 1, a->seq, key.len - 1) == 0;

    is |= a->seq[0] == '"' && seq && seq->len == strlen(a->seq)
        && memcmp(seq->text, a->seq, seq->len) == 0;
    pf_buf_fini(&key);
    return is;
}

static enum pf_status
one(void *ctx, struct cli_item *item, struct pf_err *err)
{
    struct attn_view *a = ctx;
    enum pf_status st = pf_record_check(&item->rec, err);

    item->skip = true;
    if (st || (a->seq && !is_wanted(a, &item->rec)))
        return st;
    return gather_record(&a->gather, item, err);
}

static enum pf_status
end(void *ctx, struct pf_err *err)
{
    struct attn_view *a = ctx;
    enum pf_status st = gather_end(&a->gather, err);

    if (!st && a->held && (!cli_status() || cli.keep_going)) {
        st = draw(a, &a->sheet, err);
        if (st && st != PF_EWRITE && st != PF_ENOMEM) {
            cli_failed(a->file, a->number, NULL, err->msg);
            st = PF_OK;
        }
    }
    if (!st && a->seq && !a->seen && !cli_status())
        st = pf_fail(err, PF_ESTATE, "no record is of the sequence %.100s",
            a->seq);
    return st;
}

/* --- Options --- */

static void
check_options(struct attn_view *a)
{
    bool term = a->output == OUT_TERM, svg = a->output == OUT_SVG;
    bool links = a->output == OUT_LINKS;
    const char *title = a->choice.title;

    if ((a->width_given || a->color_arg) && !term)
        cli_usage("--width and --color go with -o term");
    if ((a->annotate || a->lines) && !svg)
        cli_usage("--annotate and --lines go with -o svg");
    if (a->annotate && a->lines)
        cli_usage("only one of --annotate and --lines");
    if (a->has_top && !links)
        cli_usage("--top goes with -o links");
    if (a->has_min && !links && !a->lines)
        cli_usage("--min goes with -o links and with --lines");
    if (title && pf_utf8_span(title, strlen(title)) != strlen(title))
        cli_usage("--title: is no UTF-8");
    a->color = term_color(a->color_arg);
    if (!a->width_given)
        a->width = term_width();
    gather_choose(&a->gather, a->layers_arg, a->heads_arg);
    a->gather.field = a->choice.field;
    if (a->tokens.encoding.name || cli.model_given
        || a->tokens.encoding.pattern || a->tokens.encoding.special) {
        a->tokens.tok = encoding_open(&a->tokens.encoding, false);
        a->tokens.sure = true;
    }
}

int
main(int argc, char **argv)
{
    struct attn_view a = {
        .gather = { .ctx = &a, .begin = begin, .add = add, .report = report,
            .free = view_data_free },
    };
    struct cli_filter filter = {
        .ctx = &a,
        .main_input = "attn",
        .format = PF_NDJSON,
        .one = one,
        .end = end,
    };
    int status;

    cli_options(argc, argv, &command, &a);
    check_options(&a);
    filter.text = a.output != OUT_LINKS;
    if (a.choice.field) {
        filter.all_tensors = true;
        filter.main_input = a.choice.field;
    }
    status = cli_run(&filter);
    sheet_fini(&a.sheet);
    gather_fini(&a.gather);
    view_tokens_fini(&a.tokens);
    return status;
}
