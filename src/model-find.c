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

/*
 * Looks for vocab/NAME with `end` behind it; a directory if `dirs`.  What was
 * made while building lies in the build tree as it will when it is installed.
 */
static bool
in_vocab(struct pf_buf *dir, const char *name, const char *end, bool dirs)
{
    static const char build[] = PF_BUILD_DIR;
    const char *where[] = { NULL, PF_VOCAB_INSTALLED };
    char here[4096], beside[sizeof here + 32];

    program_folder(here, sizeof here);
    snprintf(beside, sizeof beside, "%s/../share/pipeformer/vocab", here);
    where[0] = beside;
    if (strncmp(here, build, strlen(build)) == 0 && here[strlen(build)] == '/')
        where[1] = PF_VOCAB_SOURCE;
    for (int i = 0; i < 2; i++) {
        pf_buf_clear(dir);
        pf_buf_printf(dir, "%s/%s%s", where[i], name, end);
        pf_buf_addc(dir, '\0');
        if (!dir->failed && (dirs ? is_dir(dir->data)
                : access(dir->data, R_OK) == 0))
            return true;
    }
    return false;
}

enum pf_status
pf_vocab_file(struct pf_buf *path, const char *name, const char *end,
    struct pf_err *err)
{
    if (in_vocab(path, name, end, false))
        return PF_OK;
    return pf_fail(err, PF_EMODEL, "%s%s is not under vocab/", name, end);
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
    if ((!strchr(name, '/') && name[0] != '.' && in_vocab(dir, name, "", true))
        || in_hub(dir, name))
        return PF_OK;
    pf_buf_clear(dir);
    if (access(name, F_OK) == 0)
        return pf_fail(err, PF_EMODEL, "model %s: is no directory (a file of a "
            "tokenizer goes with -e)", name);
    return pf_fail(err, PF_EMODEL, "model %s: no such directory, no such name "
        "under vocab/, not in the local HuggingFace cache", name);
}
