#ifndef PF_CONFIG_H
#define PF_CONFIG_H

#include <cjson/cJSON.h>

#include <pipeformer/model.h>

/*
 * A small JSON document (config.json and the like) through cJSON; the caller
 * deletes *doc.  Strict where cJSON is not: nothing may follow the value, no
 * U+0000 in strings, no name twice in the outermost object.
 */
enum pf_status pf_config_read(cJSON **doc, const char *path,
    struct pf_err *err);

/* The same of a text in memory. */
enum pf_status pf_config_text(cJSON **doc, const char *text, size_t len,
    struct pf_err *err);

/* What config.json says, checked. */
enum pf_status pf_config_parse(struct pf_config *config, const cJSON *doc,
    struct pf_err *err);

/*
 * Typed looks at a member of an object; absent and null give the default.
 * A value of another kind, or out of range, is PF_EMODEL and named.
 */
enum pf_status pf_config_size(const cJSON *doc, const char *name,
    size_t absent, size_t max, size_t *v, struct pf_err *err);
enum pf_status pf_config_num(const cJSON *doc, const char *name,
    double absent, double *v, struct pf_err *err);
enum pf_status pf_config_bool(const cJSON *doc, const char *name,
    bool absent, bool *v, struct pf_err *err);

#endif
