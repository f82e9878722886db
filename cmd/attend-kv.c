#include "attend-kv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <pipeformer/model.h>

#include "attend-model.h"

void
attend_kv_add(struct attend_kv *kv, const char *file)
{
    kv->loads = realloc(kv->loads, (kv->n_loads + 1) * sizeof *kv->loads);
    if (!kv->loads)
        cli_die("out of memory");
    kv->loads[kv->n_loads++] = file;
}

/* --- Loading --- */

static enum pf_status
load(void *ctx, struct pf_record *rec, struct pf_err *err)
{
    struct attend_kv *kv = ctx;
    uint64_t dropped = pf_kv_dropped(kv->cache);
    enum pf_status st;

    if (pf_record_is_error(rec))
        return pf_fail(err, PF_EFORMAT, "an error record: a filter failed "
            "where this was made");
    if (pf_record_is_mark(rec))
        return PF_OK;
    st = pf_kv_from_record(kv->cache, rec, &kv->plan, err);
    if (!st && pf_kv_dropped(kv->cache) != dropped)
        st = pf_fail(err, PF_ERANGE, "with this sequence the cache is over its "
            "limit; raise --kv-mem");
    kv->loaded += !st;
    return st;
}

/* --- Saving --- */

/* Closes and removes what was written so far. */
static void
give_up(struct attend_kv *kv)
{
    if (kv->out.fd >= 0)
        close(kv->out.fd);
    unlink(kv->part);
    free(kv->part);
    kv->part = NULL;
}

static void
not_written(struct attend_kv *kv)
{
    cli_warn("--kv-save: %s was not written, since this run failed", kv->save);
    give_up(kv);
}

/* The one whose part is there, for ends of the command in whatever place. */
static struct attend_kv *opened;

static void
at_exit(void)
{
    if (opened && opened->part)
        not_written(opened);
}

/* The old file stays as it is until the new one is whole. */
static void
open_part(struct attend_kv *kv)
{
    size_t len = strlen(kv->save);
    struct stat s;

    if (lstat(kv->save, &s) == 0 && !S_ISREG(s.st_mode))
        cli_die("--kv-save: %s: is there and no ordinary file", kv->save);
    kv->part = malloc(len + sizeof ".part");
    if (!kv->part)
        cli_die("out of memory");
    memcpy(kv->part, kv->save, len);
    memcpy(kv->part + len, ".part", sizeof ".part");
    kv->out = (struct pf_out)PF_OUT_INIT;
    kv->out.fd = open(kv->part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
        0666);
    if (kv->out.fd < 0)
        cli_die("--kv-save: %s: cannot open: %s", kv->part, strerror(errno));
    opened = kv;
    atexit(at_exit);
}

/* The same, and says that this is no output of records that failed. */
static enum pf_status
failed(struct attend_kv *kv, const char *msg, struct pf_err *err)
{
    enum pf_status st = pf_fail(err, PF_EIO, "--kv-save: %.150s: %.200s",
        kv->part, msg);

    give_up(kv);
    return st;
}

static enum pf_status
save(struct attend_kv *kv, const struct pf_kv *seq, struct pf_err *err)
{
    struct pf_record rec = PF_RECORD_INIT;
    struct pf_err why;
    enum pf_status st;

    if (seq->len == 0)
        return PF_OK;
    st = pf_kv_to_record(&rec, kv->cache, seq, &kv->plan, kv->model, &why);
    if (!st)
        st = pf_record_write(&kv->out, &rec, PF_BINARY, &why);
    pf_record_fini(&rec);
    kv->saved += !st;
    return st ? failed(kv, why.msg, err) : PF_OK;
}

/* --- All of it --- */

void
attend_kv_open(struct attend_kv *kv, struct pf_kv_cache *cache,
    const struct pf_kv_plan *plan, const struct pf_model *model)
{
    kv->cache = cache;
    kv->plan = *plan;
    kv->model = model->fingerprint;
    pf_kv_cache_f16(cache, kv->f16);
    for (size_t i = 0; i < kv->n_loads; i++)
        attend_read_all("--kv-load", kv->loads[i], model, load, kv);
    if (kv->n_loads)
        cli_note("--kv-load: %llu records, %zu bytes of keys and values",
            (unsigned long long)kv->loaded, pf_kv_bytes(cache));
    if (kv->save)
        open_part(kv);
}

enum pf_status
attend_kv_ends(struct attend_kv *kv, const char *key, size_t len,
    struct pf_err *err)
{
    const struct pf_kv *seq;

    if (!kv->part || kv->lost)
        return PF_OK;
    seq = pf_kv_find(kv->cache, key, len);
    if (seq && seq->busy)
        return PF_AGAIN;
    return seq ? save(kv, seq, err) : PF_OK;
}

enum pf_status
attend_kv_close(struct attend_kv *kv, struct pf_err *err)
{
    const struct pf_kv *seq;
    enum pf_status st = PF_OK;
    struct pf_err why;

    if (!kv->part)
        return PF_OK;
    if (kv->lost || (cli_status() && !cli.keep_going)) {
        not_written(kv);
        return PF_OK;
    }
    for (seq = pf_kv_oldest(kv->cache); seq && !st; seq = seq->newer)
        st = save(kv, seq, err);
    if (st)
        return st;
    if (pf_out_flush(&kv->out, &why))
        return failed(kv, why.msg, err);
    st = close(kv->out.fd) ? PF_EIO : PF_OK;
    kv->out.fd = -1;
    return st ? failed(kv, strerror(errno), err) : PF_OK;
}

bool
attend_kv_commit(struct attend_kv *kv)
{
    uint64_t dropped;

    if (!kv->part)
        return true;
    if (rename(kv->part, kv->save)) {
        cli_warn("--kv-save: %s: %s", kv->save, strerror(errno));
        give_up(kv);
        return false;
    }
    free(kv->part);
    kv->part = NULL;
    cli_note("--kv-save: %llu sequences, %llu bytes",
        (unsigned long long)kv->saved, (unsigned long long)kv->out.bytes);
    dropped = pf_kv_dropped(kv->cache);
    if (dropped)
        cli_warn("--kv-save: %llu sequence%s had been dropped to keep within "
            "--kv-mem; the file does not have %s", (unsigned long long)dropped,
            dropped == 1 ? "" : "s", dropped == 1 ? "it" : "them");
    return true;
}

void
attend_kv_free(struct attend_kv *kv)
{
    if (kv->part)
        give_up(kv);
    opened = NULL;
    pf_out_fini(&kv->out);
    free(kv->loads);
}
