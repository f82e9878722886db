/* What the commands that run a model share. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pipeformer/forward.h>
#include <pipeformer/kernel.h>
#include <pipeformer/model.h>

struct pf_buf
cli_model_dir(void)
{
    struct pf_buf dir = PF_BUF_INIT;
    struct pf_err err;

    if (pf_model_find(&dir, cli.model, &err))
        cli_die("%s", err.msg);
    cli_note("model %s: %s", cli.model, dir.data);
    return dir;
}

bool
cli_has_file(const char *dir, const char *name)
{
    struct pf_buf path = PF_BUF_INIT;
    bool has;

    pf_buf_printf(&path, "%s/%s", dir, name);
    pf_buf_addc(&path, '\0');
    has = !path.failed && access(path.data, F_OK) == 0;
    pf_buf_fini(&path);
    return has;
}

bool
cli_is_vocabulary(const char *dir)
{
    return !cli_has_file(dir, "config.json")
        && !cli_has_file(dir, "model.safetensors")
        && !cli_has_file(dir, "model.safetensors.index.json");
}

enum pf_status
cli_open_model(struct pf_model **model, struct pf_err *err)
{
    struct pf_buf dir = PF_BUF_INIT;
    enum pf_status st = pf_model_find(&dir, cli.model, err);

    if (!st && cli_is_vocabulary(dir.data)) {
        st = pf_fail(err, PF_EMODEL, "%s is a vocabulary only: there is "
            "neither a config.json nor a model.safetensors in %.300s",
            cli.model, dir.data);
    } else if (!st) {
        cli_note("model %s: %s", cli.model, dir.data);
        st = pf_model_open(model, dir.data, err);
    }
    pf_buf_fini(&dir);
    return st;
}

struct pf_model *
cli_model(void)
{
    struct pf_model *model;
    struct pf_err err;

    if (cli_open_model(&model, &err))
        cli_die("%s", err.msg);
    return model;
}

void
cli_check_kernels(void)
{
    const char *name = getenv("PIPEFORMER_KERNEL");

    if (name && *name && strcmp(name, pf_kernels_best()->name) != 0)
        cli_usage("PIPEFORMER_KERNEL: this processor has no kernels '%s'",
            name);
}

struct pf_runner *
cli_runner(const struct pf_model *model)
{
    struct pf_runner *r;
    struct pf_err err;

    cli_check_kernels();
    if (pf_runner_new(&r, model, cli.threads, &err))
        cli_die("%s", err.msg);
    return r;
}

enum pf_status
cli_check_model(const struct pf_record *rec, const struct pf_model *model,
    struct pf_err *err)
{
    struct pf_buf name = PF_BUF_INIT;
    enum pf_status st = pf_record_string(rec, "model", &name, err);

    if (!st && (name.len != strlen(model->fingerprint)
            || memcmp(name.data, model->fingerprint, name.len) != 0))
        st = pf_fail(err, PF_EMODEL, "the record comes from model %.*s, this "
            "is %s (%s); give both filters the same -m",
            (int)(name.len < 40 ? name.len : 40), name.data,
            model->fingerprint, cli.model);
    pf_buf_fini(&name);
    return st == PF_END ? PF_OK : st;
}

enum pf_status
cli_hidden(struct pf_record *rec, size_t C, const float **v, size_t *T,
    struct pf_err *err)
{
    const struct pf_tensor *t;
    enum pf_status st = pf_record_f32(rec, "hidden", &t, v, err);
    char shape[128];
    size_t n, at;

    if (st)
        return st;
    if (!t)
        return pf_fail(err, PF_ESHAPE, "the record has no hidden (embed gives "
            "it)");
    n = pf_tensor_count(t);
    *T = t->ndim ? t->shape[0] : 1;
    if (!(t->ndim == 2 && t->shape[1] == C) && !(t->ndim == 1 && n == 0))
        return pf_fail(err, PF_ESHAPE, "hidden: has the shape %s; the model's "
            "rows make it [T, %zu]",
            pf_shape_format(shape, sizeof shape, t->shape, t->ndim), C);
    at = pf_first_nonfinite(*v, n);
    if (at < n)
        return pf_fail(err, PF_ERANGE, "hidden: %s in row %zu, column %zu",
            (*v)[at] != (*v)[at] ? "NaN" : "an infinity", at / C, at % C);
    return PF_OK;
}
