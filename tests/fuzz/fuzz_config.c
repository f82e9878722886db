/* Any bytes as config.json. */
#include <stdlib.h>
#include <string.h>

#include "config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct pf_config c;
    struct pf_err err;
    cJSON *doc;

    if (!text)
        abort();
    memcpy(text, data, size);
    text[size] = '\0';
    if (pf_config_text(&doc, text, size, &err) == PF_OK) {
        if (pf_config_parse(&c, doc, &err) == PF_OK
            && (c.width != c.heads * c.head_dim || !c.layers || !c.vocab))
            abort();
        cJSON_Delete(doc);
    }
    free(text);
    return 0;
}
