#include <pipeformer/weights.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include <pipeformer/buf.h>
#include <pipeformer/safetensors.h>

#include "config.h"

struct file {
    char *path;
    char *map;
    size_t bytes;
};

struct pf_weights {
    struct pf_arena mem; /* names */
    struct file *files;
    size_t n_files, cap_files;
    struct pf_tensor *tensors; /* by name */
    size_t n, cap;
};

/* There are `len` bytes of data, which is not what the header says. */
static enum pf_status
wrong_length(const struct pf_safetensors *doc, size_t len, struct pf_err *err)
{
    const char *name = NULL;
    size_t begin = 0, end;

    for (size_t i = 0; i < doc->n; i++) {
        end = doc->offsets[i] + pf_tensor_bytes(&doc->tensors[i]);
        if (end > len && (!name || doc->offsets[i] < begin)) {
            name = doc->tensors[i].name;
            begin = doc->offsets[i];
        }
    }
    if (name)
        return pf_fail(err, PF_EFORMAT, "%zu bytes of data where the header "
            "says %zu: they end before the end of tensor %.100s", len,
            doc->data_len, name);
    return pf_fail(err, PF_EFORMAT, "%zu bytes of data where the header "
        "says %zu: the rest is of no tensor", len, doc->data_len);
}

/* Maps one file and adds its tensors. */
static enum pf_status
add_file(struct pf_weights *w, const char *dir, const char *name,
    struct pf_err *err)
{
    struct pf_safetensors doc;
    struct stat s;
    struct file *f;
    struct pf_err why;
    enum pf_status st;
    size_t len = strlen(dir) + strlen(name) + 2, header;
    int fd, saved;

    if (!pf_grow(&w->files, &w->cap_files, w->n_files + 1, sizeof *w->files))
        return pf_fail_mem(err);
    f = &w->files[w->n_files];
    *f = (struct file){ .path = malloc(len) };
    if (!f->path)
        return pf_fail_mem(err);
    w->n_files++;
    snprintf(f->path, len, "%s/%s", dir, name);
    fd = open(f->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return pf_fail(err, PF_EMODEL, "cannot open %s: %s", f->path,
            strerror(errno));
    if (fstat(fd, &s) || !S_ISREG(s.st_mode) || s.st_size < 10) {
        close(fd);
        return pf_fail(err, PF_EMODEL, "%s %s", f->path,
            S_ISDIR(s.st_mode) ? "is a directory" : S_ISREG(s.st_mode)
            ? "is too short for a safetensors file" : "is no regular file");
    }
    f->bytes = (size_t)s.st_size;
    f->map = pf_map_file(fd, f->bytes);
    saved = errno;
    close(fd);
    if (!f->map)
        return pf_fail(err, PF_EIO, "cannot map %s: %s", f->path,
            strerror(saved));
    st = pf_safetensors_len(f->map, &header, &why);
    if (!st && header > f->bytes - 8)
        st = pf_fail(&why, PF_EFORMAT, "the file ends inside its header");
    if (!st)
        st = pf_safetensors_parse(&doc, &w->mem, f->map + 8, header, &why);
    if (!st && doc.data_len != f->bytes - 8 - header)
        st = wrong_length(&doc, f->bytes - 8 - header, &why);
    if (st)
        return pf_fail(err, PF_EMODEL, "%s: %.250s", f->path, why.msg);
    if (!pf_grow(&w->tensors, &w->cap, w->n + doc.n, sizeof *w->tensors))
        return pf_fail_mem(err);
    for (size_t i = 0; i < doc.n; i++) {
        w->tensors[w->n] = doc.tensors[i];
        w->tensors[w->n++].data = f->map + 8 + header + doc.offsets[i];
    }
    return PF_OK;
}

static int
by_string(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All files that the values of "weight_map" name, each once. */
static enum pf_status
add_index(struct pf_weights *w, const char *dir, const char *index,
    struct pf_err *err)
{
    cJSON *doc, *map, *item;
    enum pf_status st = pf_config_read(&doc, index, err);
    const char **names = NULL;
    size_t n = 0, cap = 0;

    if (st)
        return st;
    map = cJSON_GetObjectItemCaseSensitive(doc, "weight_map");
    if (!cJSON_IsObject(map))
        st = pf_fail(err, PF_EMODEL, "%s: no weight_map", index);
    for (item = st ? NULL : map->child; item && !st; item = item->next) {
        if (!cJSON_IsString(item) || strchr(item->valuestring, '/'))
            st = pf_fail(err, PF_EMODEL, "%s: \"%.60s\" names no file beside "
                "it", index, item->string);
        else if (!pf_grow(&names, &cap, n + 1, sizeof *names))
            st = pf_fail_mem(err);
        else
            names[n++] = item->valuestring;
    }
    if (n)
        qsort(names, n, sizeof *names, by_string);
    for (size_t i = 0; i < n && !st; i++)
        if (i == 0 || strcmp(names[i], names[i - 1]) != 0)
            st = add_file(w, dir, names[i], err);
    free(names);
    cJSON_Delete(doc);
    return st;
}

/* The file in which a tensor's data lie. */
static const char *
file_of(const struct pf_weights *w, const struct pf_tensor *t)
{
    const char *at = t->data, *slash;
    size_t i = 0;

    while (i + 1 < w->n_files && !(at >= w->files[i].map
            && at <= w->files[i].map + w->files[i].bytes))
        i++;
    slash = strrchr(w->files[i].path, '/');
    return slash ? slash + 1 : w->files[i].path;
}

/* Against the map of an index: names and files, one by one. */
static enum pf_status
check_map(const struct pf_weights *w, const cJSON *map, const char *index,
    struct pf_err *err)
{
    bool *listed = calloc(w->n + 1, sizeof *listed);
    enum pf_status st = listed ? PF_OK : pf_fail_mem(err);
    const struct pf_tensor *t;
    const cJSON *item;

    for (item = map ? map->child : NULL; item && !st; item = item->next) {
        t = pf_weights_find(w, item->string);
        if (!t)
            st = pf_fail(err, PF_EMODEL, "%.200s: tensor %.100s is in no "
                "file", index, item->string);
        else if (listed[t - w->tensors])
            st = pf_fail(err, PF_EMODEL, "%.200s: tensor %.100s stands twice",
                index, t->name);
        else if (!cJSON_IsString(item)
            || strcmp(item->valuestring, file_of(w, t)) != 0)
            st = pf_fail(err, PF_EMODEL, "%.200s: tensor %.100s is in %.60s",
                index, t->name, file_of(w, t));
        else
            listed[t - w->tensors] = true;
    }
    for (size_t i = 0; i < w->n && !st; i++)
        if (!listed[i])
            st = pf_fail(err, PF_EMODEL, "%.200s: tensor %.100s of %.60s is "
                "not listed", index, w->tensors[i].name,
                file_of(w, &w->tensors[i]));
    free(listed);
    return st;
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(((const struct pf_tensor *)a)->name,
        ((const struct pf_tensor *)b)->name);
}

/* As Transformers does, one whole file goes before an index of parts. */
static bool
has_single(const char *dir)
{
    struct pf_buf path = PF_BUF_INIT;
    bool has;

    pf_buf_printf(&path, "%s/model.safetensors", dir);
    pf_buf_addc(&path, '\0');
    has = !path.failed && access(path.data, F_OK) == 0;
    pf_buf_fini(&path);
    return has;
}

enum pf_status
pf_weights_open(struct pf_weights **out, const char *dir, struct pf_err *err)
{
    struct pf_weights *w = calloc(1, sizeof *w);
    struct pf_buf index = PF_BUF_INIT;
    enum pf_status st;

    *out = NULL;
    if (!w)
        return pf_fail_mem(err);
    pf_buf_printf(&index, "%s/model.safetensors.index.json", dir);
    pf_buf_addc(&index, '\0');
    st = pf_buf_check(&index, err);
    if (!st)
        st = !has_single(dir) && access(index.data, F_OK) == 0
            ? add_index(w, dir, index.data, err)
            : add_file(w, dir, "model.safetensors", err);
    pf_buf_fini(&index);
    if (!st && w->n) {
        qsort(w->tensors, w->n, sizeof *w->tensors, by_name);
        for (size_t i = 1; i < w->n && !st; i++)
            if (by_name(&w->tensors[i - 1], &w->tensors[i]) == 0)
                st = pf_fail(err, PF_EMODEL, "%s: tensor %.100s is in two "
                    "files", dir, w->tensors[i].name);
    }
    if (st) {
        pf_weights_free(w);
        return st;
    }
    *out = w;
    return PF_OK;
}

enum pf_status
pf_weights_check(const struct pf_weights *w, const char *dir,
    struct pf_err *err)
{
    struct pf_buf index = PF_BUF_INIT;
    enum pf_status st;
    cJSON *doc = NULL;

    pf_buf_printf(&index, "%s/model.safetensors.index.json", dir);
    pf_buf_addc(&index, '\0');
    st = pf_buf_check(&index, err);
    if (!st && !has_single(dir) && access(index.data, F_OK) == 0) {
        st = pf_config_read(&doc, index.data, err);
        if (!st)
            st = check_map(w, cJSON_GetObjectItemCaseSensitive(doc,
                "weight_map"), index.data, err);
    }
    cJSON_Delete(doc);
    pf_buf_fini(&index);
    return st;
}

void
pf_weights_free(struct pf_weights *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->n_files; i++) {
        if (w->files[i].map)
            munmap(w->files[i].map, w->files[i].bytes);
        free(w->files[i].path);
    }
    free(w->files);
    free(w->tensors);
    pf_arena_fini(&w->mem);
    free(w);
}

const struct pf_tensor *
pf_weights_find(const struct pf_weights *w, const char *name)
{
    struct pf_tensor key = { .name = name };

    if (!w->n)
        return NULL;
    return bsearch(&key, w->tensors, w->n, sizeof *w->tensors, by_name);
}

const struct pf_tensor *
pf_weights_at(const struct pf_weights *w, size_t i)
{
    return i < w->n ? &w->tensors[i] : NULL;
}

const char *
pf_weights_file(const struct pf_weights *w, size_t i, size_t *bytes)
{
    if (i >= w->n_files)
        return NULL;
    *bytes = w->files[i].bytes;
    return w->files[i].path;
}
