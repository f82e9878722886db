#include <pipeformer/kv.h>

#include <stdlib.h>
#include <string.h>

#include <pipeformer/buf.h>
#include <pipeformer/seqmap.h>
#include <pipeformer/tensor.h>

/* In front of a page's numbers, in 64 bytes of their own. */
struct page {
    size_t refs;
    struct page *next; /* among the free ones */
};

enum { HEAD = 64 };

struct pf_kv_cache {
    size_t layers, width;
    enum pf_dtype type;
    size_t page_bytes; /* HEAD included */
    size_t limit_bytes, limit; /* pages at most */
    size_t pages;      /* pages in use */
    struct page *spare;
    size_t n_spare;
    struct pf_seqmap map;
    struct pf_kv *oldest, *newest;
    struct pf_kv **busy;
    size_t n_busy, cap_busy;
    uint64_t dropped; /* sequences that had to go */
};

enum pf_status
pf_kv_cache_new(struct pf_kv_cache **out, size_t layers, size_t width,
    size_t limit, struct pf_err *err)
{
    struct pf_kv_cache *c = calloc(1, sizeof *c);
    size_t bytes;

    *out = NULL;
    if (!c || !pf_mul(layers, width, &bytes)
        || !pf_mul(bytes, 2 * PF_KV_GROUP * sizeof(float), &bytes)
        || bytes > SIZE_MAX / 4) {
        free(c);
        return pf_fail_mem(err);
    }
    c->layers = layers;
    c->width = width;
    c->limit_bytes = limit;
    pf_kv_cache_f16(c, false);
    *out = c;
    return PF_OK;
}

void
pf_kv_cache_f16(struct pf_kv_cache *c, bool f16)
{
    size_t bytes;

    c->type = f16 ? PF_F16 : PF_F32;
    bytes = c->layers * c->width * 2 * PF_KV_GROUP * pf_dtype_size(c->type);
    c->page_bytes = HEAD + (bytes + 63) / 64 * 64;
    c->limit = c->limit_bytes / c->page_bytes;
}

static struct page *
page_of(void *data)
{
    return (struct page *)(void *)((char *)data - HEAD);
}

static void
release(struct pf_kv_cache *c, void *data)
{
    struct page *p = page_of(data);

    if (--p->refs)
        return;
    c->pages--;
    if (c->n_spare >= 64) {
        free(p);
        return;
    }
    p->next = c->spare;
    c->spare = p;
    c->n_spare++;
}

/* Keeps the first n pages. */
static void
truncate_pages(struct pf_kv_cache *c, struct pf_kv *kv, size_t n)
{
    while (kv->n_pages > n)
        release(c, kv->pages[--kv->n_pages]);
}

static void
unlink_kv(struct pf_kv_cache *c, struct pf_kv *kv)
{
    *(kv->older ? &kv->older->newer : &c->oldest) = kv->newer;
    *(kv->newer ? &kv->newer->older : &c->newest) = kv->older;
}

static void
link_newest(struct pf_kv_cache *c, struct pf_kv *kv)
{
    kv->older = c->newest;
    kv->newer = NULL;
    *(c->newest ? &c->newest->newer : &c->oldest) = kv;
    c->newest = kv;
}

/* It is the one used last. */
static void
touch(struct pf_kv_cache *c, struct pf_kv *kv)
{
    unlink_kv(c, kv);
    link_newest(c, kv);
}

static void
free_kv(struct pf_kv_cache *c, struct pf_kv *kv)
{
    pf_seqmap_take(&c->map, kv->key, kv->key_len);
    unlink_kv(c, kv);
    truncate_pages(c, kv, 0);
    free(kv->pages);
    free(kv->key);
    free(kv);
}

void
pf_kv_cache_free(struct pf_kv_cache *c)
{
    if (!c)
        return;
    while (c->oldest)
        free_kv(c, c->oldest);
    while (c->spare) {
        struct page *p = c->spare;

        c->spare = p->next;
        free(p);
    }
    pf_seqmap_fini(&c->map, NULL);
    free(c->busy);
    free(c);
}

size_t
pf_kv_bytes(const struct pf_kv_cache *c)
{
    return c->pages * c->page_bytes;
}

enum pf_dtype
pf_kv_type(const struct pf_kv_cache *c)
{
    return c->type;
}

size_t
pf_kv_width(const struct pf_kv_cache *c)
{
    return c->width;
}

uint64_t
pf_kv_dropped(const struct pf_kv_cache *c)
{
    return c->dropped;
}

const struct pf_kv *
pf_kv_find(const struct pf_kv_cache *c, const char *key, size_t len)
{
    return pf_seqmap_get(&c->map, key, len);
}

const struct pf_kv *
pf_kv_oldest(const struct pf_kv_cache *c)
{
    return c->oldest;
}

/* A page for writing, or NULL when the limit is reached or memory is out. */
static void *
new_page(struct pf_kv_cache *c)
{
    struct page *p = c->spare;

    if (c->pages >= c->limit)
        return NULL;
    if (p) {
        c->spare = p->next;
        c->n_spare--;
    } else if (!(p = aligned_alloc(64, c->page_bytes))) {
        return NULL;
    }
    p->refs = 1;
    c->pages++;
    return (char *)p + HEAD;
}

/*
 * After new_page failed: drops the least recently used sequence that is
 * neither busy nor `spared`.
 */
static enum pf_status
drop_one(struct pf_kv_cache *c, const struct pf_kv *spared,
    struct pf_err *err)
{
    struct pf_kv *old = c->oldest;

    if (c->pages < c->limit)
        return pf_fail_mem(err);
    while (old && (old->busy || old == spared))
        old = old->newer;
    if (!old)
        return c->n_busy ? PF_AGAIN
            : pf_fail(err, PF_ERANGE, "the sequence needs more than the %zu "
                "pages of %zu bytes that the limit of the KV cache allows; "
                "raise --kv-mem", c->limit, c->page_bytes);
    c->dropped++;
    free_kv(c, old);
    return PF_OK;
}

/* A sequence that is not there yet, empty. */
static struct pf_kv *
new_kv(struct pf_kv_cache *c, const char *key, size_t len, struct pf_err *err)
{
    struct pf_kv *kv = calloc(1, sizeof *kv);

    if (kv)
        kv->key = malloc(len + 1);
    if (!kv || !kv->key) {
        free(kv);
        pf_fail_mem(err);
        return NULL;
    }
    if (len)
        memcpy(kv->key, key, len);
    kv->key_len = len;
    if (pf_seqmap_put(&c->map, key, len, kv, err)) {
        free(kv->key);
        free(kv);
        return NULL;
    }
    link_newest(c, kv);
    return kv;
}

/* `held` positions are there and `pos` are wanted. */
static enum pf_status
too_few(const struct pf_kv_cache *c, const char *what, size_t held,
    size_t pos, struct pf_err *err)
{
    if (c->dropped)
        return pf_fail(err, PF_ESTATE, "%s holds %zu positions, record starts "
            "at %zu (%llu sequences were dropped to keep within the limit; "
            "raise --kv-mem)", what, held, pos,
            (unsigned long long)c->dropped);
    return pf_fail(err, PF_ESTATE, "%s holds %zu positions, record starts at "
        "%zu", what, held, pos);
}

/* Lets `kv` share the first `pos` positions of `from`. */
static enum pf_status
share(struct pf_kv_cache *c, struct pf_kv *kv, const struct pf_kv *from,
    size_t pos, struct pf_err *err)
{
    size_t n = (pos + PF_KV_GROUP - 1) / PF_KV_GROUP;

    if (!pf_grow(&kv->pages, &kv->cap_pages, n, sizeof *kv->pages))
        return pf_fail_mem(err);
    for (size_t i = 0; i < n; i++)
        page_of(from->pages[i])->refs++;
    truncate_pages(c, kv, 0);
    for (size_t i = 0; i < n; i++)
        kv->pages[i] = from->pages[i];
    kv->n_pages = n;
    kv->len = pos;
    return PF_OK;
}

/* Pages for positions pos .. end-1, none of them shared. */
static enum pf_status
extend(struct pf_kv_cache *c, struct pf_kv *kv, size_t pos, size_t end,
    struct pf_err *err)
{
    size_t keep = (pos + PF_KV_GROUP - 1) / PF_KV_GROUP;
    size_t n = (end + PF_KV_GROUP - 1) / PF_KV_GROUP;
    enum pf_status st = PF_OK;
    void *copy;

    if (n > c->limit)
        return pf_fail(err, PF_ERANGE, "%zu positions take %zu bytes of KV "
            "cache, more than its limit allows; raise --kv-mem", end,
            n * c->page_bytes);
    if (!pf_grow(&kv->pages, &kv->cap_pages, n, sizeof *kv->pages))
        return pf_fail_mem(err);
    if (kv->n_pages > keep)
        truncate_pages(c, kv, keep);
    /* The page that pos lies in is written to: it must be our own.  Dropping
     * others may make it so. */
    while (end > pos && pos % PF_KV_GROUP
        && page_of(kv->pages[keep - 1])->refs > 1) {
        copy = new_page(c);
        if (copy) {
            memcpy(copy, kv->pages[keep - 1], c->page_bytes - HEAD);
            release(c, kv->pages[keep - 1]);
            kv->pages[keep - 1] = copy;
        } else if ((st = drop_one(c, kv, err))) {
            return st;
        }
    }
    while (kv->n_pages < n) {
        copy = new_page(c);
        if (copy)
            kv->pages[kv->n_pages++] = copy;
        else if ((st = drop_one(c, kv, err)))
            return st;
    }
    return PF_OK;
}

enum pf_status
pf_kv_begin(struct pf_kv_cache *c, struct pf_kv **out, const char *key,
    size_t len, const char *fork, size_t fork_len, size_t pos, size_t T,
    size_t tag, struct pf_err *err)
{
    struct pf_kv *kv = pf_seqmap_get(&c->map, key, len), *from;
    enum pf_status st;

    if (kv && kv->busy)
        return PF_AGAIN;
    *out = NULL;
    if (pos + T == 0) { /* nothing to hold */
        if (kv)
            free_kv(c, kv);
        return PF_OK;
    }
    if (!pf_grow(&c->busy, &c->cap_busy, c->n_busy + 1, sizeof *c->busy))
        return pf_fail_mem(err);
    if (fork && !(kv && kv->forked)) {
        from = pf_seqmap_get(&c->map, fork, fork_len);
        if (from && from->busy)
            return PF_AGAIN;
        if ((from ? from->len : 0) < pos)
            return too_few(c, "the sequence it forks", from ? from->len : 0,
                pos, err);
        if (pos && from->tag != tag)
            return pf_fail(err, PF_ESTATE, "the sequence it forks went "
                "through other layers");
        if (!kv && !(kv = new_kv(c, key, len, err)))
            return PF_ENOMEM;
        if (from)
            touch(c, from);
        if (from && kv != from && (st = share(c, kv, from, pos, err)))
            return st;
        kv->tag = tag;
    } else if (pos > (kv ? kv->len : 0)) {
        return too_few(c, "the sequence", kv ? kv->len : 0, pos, err);
    } else if (pos && kv->tag != tag) {
        return pf_fail(err, PF_ESTATE, "the sequence was begun at another "
            "layer");
    } else if (!kv && !(kv = new_kv(c, key, len, err))) {
        return PF_ENOMEM;
    }
    touch(c, kv);
    st = extend(c, kv, pos, pos + T, err);
    if (st) {
        /* What was held is still there, up to pos. */
        kv->len = kv->len < pos ? kv->len : pos;
        /* Asked again, what it took over from `fork` may be all there is. */
        kv->forked = fork && st == PF_AGAIN;
        return st;
    }
    kv->forked = false;
    kv->len = pos + T;
    kv->tag = tag;
    kv->busy = true;
    c->busy[c->n_busy++] = kv;
    *out = kv;
    return PF_OK;
}

void
pf_kv_idle(struct pf_kv_cache *c)
{
    for (size_t i = 0; i < c->n_busy; i++)
        c->busy[i]->busy = false;
    c->n_busy = 0;
}

enum pf_status
pf_kv_end(struct pf_kv_cache *c, const char *key, size_t len,
    struct pf_err *err)
{
    struct pf_kv *kv = pf_seqmap_get(&c->map, key, len);

    (void)err;
    if (kv && kv->busy)
        return PF_AGAIN;
    if (kv)
        free_kv(c, kv);
    return PF_OK;
}
