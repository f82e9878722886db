/* Any text as a slice of a small array: what comes out lies inside it. */
#include <stdlib.h>
#include <string.h>

#include <pipeformer/slice.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t shape[3] = { 3, 4, 5 };
    struct pf_record rec = PF_RECORD_INIT;
    char *text = malloc(size + 1);
    struct pf_tensor *t;
    struct pf_err err;
    uint8_t *v;

    if (!text)
        abort();
    memcpy(text, data, size);
    text[size] = '\0';
    t = pf_record_put(&rec, "x", PF_U8, 3, shape, NULL);
    if (!t)
        abort();
    v = (uint8_t *)t->data;
    for (int i = 0; i < 60; i++)
        v[i] = (uint8_t)i;
    if (pf_slice(&rec, t, text, &err) == PF_OK) {
        if (pf_tensor_count(t) > 60)
            abort();
        for (size_t i = 0; i < pf_tensor_count(t); i++)
            if (((const uint8_t *)t->data)[i] >= 60)
                abort();
    }
    free(text);
    pf_record_fini(&rec);
    return 0;
}
