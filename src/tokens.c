#include <pipeformer/tokens.h>

#include <pipeformer/json.h>
#include <pipeformer/utf8.h>

void
pf_token_text(struct pf_buf *b, const char *bytes, size_t len)
{
    size_t n;

    for (; len; bytes += n, len -= n) {
        n = pf_utf8_span(bytes, len);
        if (n) {
            pf_buf_add(b, bytes, n);
            continue;
        }
        pf_buf_printf(b, "<0x%02X>", (unsigned char)*bytes);
        n = 1;
    }
}

enum pf_status
pf_set_tokens(struct pf_record *rec, const struct pf_tokenizer *tok,
    const uint32_t *ids, size_t n, struct pf_err *err)
{
    struct pf_buf list = PF_BUF_INIT, text = PF_BUF_INIT;
    enum pf_status st;
    size_t len;

    pf_buf_addc(&list, '[');
    for (size_t i = 0; i < n; i++) {
        const char *token = pf_tokenizer_token(tok, ids[i], &len);

        pf_buf_clear(&text);
        pf_token_text(&text, token, len);
        if (i)
            pf_buf_addc(&list, ',');
        pf_json_add_string(&list, text.data, text.len);
    }
    pf_buf_addc(&list, ']');
    st = pf_buf_check(&list, err);
    if (!st)
        st = pf_record_set(rec, "tokens", list.data, list.len, err);
    pf_buf_fini(&list);
    pf_buf_fini(&text);
    return st;
}

enum pf_status
pf_set_offsets(struct pf_record *rec, const size_t *spans, size_t n,
    struct pf_err *err)
{
    struct pf_tensor *t = pf_record_put(rec, "offsets", PF_I64, 2,
        (size_t[]){ n, 2 }, NULL);
    int64_t *range = t ? (int64_t *)t->data : NULL;

    if (!t)
        return pf_fail_mem(err);
    for (size_t i = 0; i < 2 * n; i++)
        range[i] = (int64_t)spans[i];
    return PF_OK;
}
