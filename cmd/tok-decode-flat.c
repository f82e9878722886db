/* What is no text of records: ids one by one, ids as flat numbers. */
#include "tok-decode.h"

#include <string.h>

#include <pipeformer/tokens.h>

enum pf_status
tok_decode_list(const struct tok_decode *d, const uint32_t *ids, size_t n,
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

bool
tok_decode_raw(struct tok_decode *d, const char *file)
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
            st = tok_decode_list(d, ids, n, &err);
            continue;
        }
        pf_buf_clear(&d->bytes);
        st = pf_tokenizer_decode(d->tok, ids, n, d->skip_special, &begun,
            &d->bytes, &err);
        if (!st)
            st = pf_texts_add(d->texts, &(struct pf_piece){ .key = "",
                .pos = pos, .more = true, .bytes = d->bytes.data,
                .n = d->bytes.len }, &err);
        pos += n;
    } while (!st);
    if (st == PF_END)
        st = pf_texts_end(d->texts, &err);
    cli_count_input(&in);
    pf_in_fini(&in);
    if (st == PF_EWRITE)
        cli_die_writing(&err);
    return !st || cli_failed(file, 0, NULL, err.msg);
}
