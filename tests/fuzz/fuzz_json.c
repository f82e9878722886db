/*
 * Any bytes as JSON: what is accepted as a number prints and reads back as
 * itself, what is accepted as a string is valid UTF-8 and survives writing.
 */
#include <stdlib.h>
#include <string.h>

#include <pipeformer/json.h>
#include <pipeformer/utf8.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(bool ok)
{
    if (!ok)
        abort();
}

static void
number(const char *text, size_t len)
{
    struct pf_json j = pf_json_at(text, len), k;
    char s[PF_F32_MAX];
    float f, g;

    if (pf_json_f32(&j, &f, NULL))
        return;
    k = pf_json_at(s, pf_f32_print(s, f));
    check(pf_json_f32(&k, &g, NULL) == PF_OK && k.p == k.end);
    check(memcmp(&f, &g, sizeof f) == 0 || (f != f && g != g));
}

static void
string(const char *text, size_t len)
{
    struct pf_buf once = PF_BUF_INIT, again = PF_BUF_INIT, out = PF_BUF_INIT;
    struct pf_json j = pf_json_at(text, len);

    if (pf_json_string(&j, &once, NULL) == PF_OK) {
        check(pf_utf8_span(once.data, once.len) == once.len);
        pf_json_add_string(&out, once.data, once.len);
        check(pf_json_text_string(out.data, out.len, &again, NULL) == PF_OK);
        check(once.len == again.len && (once.len == 0
            || memcmp(once.data, again.data, once.len) == 0));
    }
    pf_buf_fini(&once);
    pf_buf_fini(&again);
    pf_buf_fini(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *raw, *raw2;
    struct pf_json j = pf_json_at(text, size), k;
    struct pf_err err;
    size_t len, len2;
    int64_t i;

    number(text, size);
    string(text, size);
    pf_json_text_i64(text, size, &i, &err);
    if (pf_json_value(&j, &raw, &len, &err) == PF_OK) {
        k = pf_json_at(raw, len);
        check(pf_json_value(&k, &raw2, &len2, &err) == PF_OK);
        check(raw2 == raw && len2 == len && k.p == k.end);
    }
    return 0;
}
