/*
 * Where a name leads.  The commands of a build tree use the source's vocab/,
 * installed ones the vocab/ beside them, wherever the tree was moved to.
 */
#include <pipeformer/model.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool
is_dir(const char *path)
{
    struct stat s;

    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* Sets `dir` to a formatted path; true if a directory is there. */
#define TRY(...) \
    (pf_buf_clear(dir), pf_buf_printf(dir, __VA_ARGS__), \
        pf_buf_addc(dir, '\0'), !dir->failed && is_dir(dir->data))

/* The folder that this program lies in, "" if that cannot be told. */
static void
program_folder(char *s, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", s, size - 1);
    char *slash;

    s[n > 0 ? n : 0] = '\0';
    slash = strrchr(s, '/');
    if (slash)
        *slash = '\0';
}

static bool
in_vocab(struct pf_buf *dir, const char *name)
{
    static const char build[] = PF_BUILD_DIR;
    char here[4096];

    program_folder(here, sizeof here);
    if (TRY("%s/../share/pipeformer/vocab/%s", here, name))
        return true;
    if (strncmp(here, build, strlen(build)) == 0 && here[strlen(build)] == '/')
        return TRY("%s/%s", PF_VOCAB_SOURCE, name);
    return TRY("%s/%s", PF_VOCAB_INSTALLED, name);
}

/* The hub cache: models--org--name/snapshots/COMMIT, refs/main names COMMIT. */
static bool
in_hub(struct pf_buf *dir, const char *name)
{
    const char *cache = getenv("HF_HUB_CACHE"), *home = getenv("HF_HOME");
    const char *slash = strchr(name, '/');
    char base[2048], commit[128] = "";
    FILE *ref;

    if (!slash || slash == name || strchr(slash + 1, '/') || !slash[1]
        || name[0] == '.' || strstr(name, ".."))
        return false;
    if (cache && *cache)
        snprintf(base, sizeof base, "%s", cache);
    else if (home && *home)
        snprintf(base, sizeof base, "%s/hub", home);
    else if ((home = getenv("HOME")))
        snprintf(base, sizeof base, "%s/.cache/huggingface/hub", home);
    else
        return false;
    if (!TRY("%s/models--%.*s--%s", base, (int)(slash - name), name,
            slash + 1))
        return false;
    dir->len--; /* the NUL */
    pf_buf_adds(dir, "/refs/main");
    pf_buf_addc(dir, '\0');
    ref = dir->failed ? NULL : fopen(dir->data, "re");
    if (ref) {
        if (fscanf(ref, "%127[0-9a-zA-Z]", commit) != 1)
            commit[0] = '\0';
        fclose(ref);
    }
    return commit[0] && TRY("%s/models--%.*s--%s/snapshots/%s", base,
        (int)(slash - name), name, slash + 1, commit);
}

enum pf_status
pf_model_find(struct pf_buf *dir, const char *name, struct pf_err *err)
{
    size_t len = strlen(name);

    if (len == 0)
        return pf_fail(err, PF_EMODEL, "the model has an empty name");
    if (TRY("%s", name))
        return PF_OK;
    if (len > 5 && strcmp(name + len - 5, ".gguf") == 0)
        return pf_fail(err, PF_EMODEL, "%s: GGUF files are not supported by "
            "this version", name);
    if ((!strchr(name, '/') && name[0] != '.' && in_vocab(dir, name))
        || in_hub(dir, name))
        return PF_OK;
    pf_buf_clear(dir);
    return pf_fail(err, PF_EMODEL, "model %s: no such directory, no such name "
        "under vocab/, not in the local HuggingFace cache", name);
}
