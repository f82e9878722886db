#define _DEFAULT_SOURCE /* madvise */

#include <pipeformer/buf.h>

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void
pf_buf_fini(struct pf_buf *b)
{
    free(b->data);
    *b = (struct pf_buf)PF_BUF_INIT;
}

void
pf_buf_clear(struct pf_buf *b)
{
    b->len = 0;
    b->failed = false;
}

char *
pf_buf_room(struct pf_buf *b, size_t extra)
{
    size_t cap;
    char *data;

    if (b->cap - b->len >= extra && b->data)
        return b->data + b->len;
    if (extra > SIZE_MAX / 2 - b->len) {
        b->failed = true;
        return NULL;
    }
    cap = b->cap + b->cap / 2;
    if (cap < b->len + extra)
        cap = b->len + extra;
    if (cap < 64)
        cap = 64;
    data = realloc(b->data, cap);
    if (!data) {
        b->failed = true;
        return NULL;
    }
    b->data = data;
    b->cap = cap;
    return data + b->len;
}

void
pf_buf_add(struct pf_buf *b, const void *p, size_t n)
{
    char *room;

    if (n == 0)
        return;
    room = pf_buf_room(b, n);
    if (room) {
        memcpy(room, p, n);
        b->len += n;
    }
}

void
pf_buf_adds(struct pf_buf *b, const char *s)
{
    pf_buf_add(b, s, strlen(s));
}

void
pf_buf_addc(struct pf_buf *b, char c)
{
    pf_buf_add(b, &c, 1);
}

void
pf_buf_printf(struct pf_buf *b, const char *fmt, ...)
{
    va_list ap;
    char *room;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0) {
        b->failed = true;
        return;
    }
    room = pf_buf_room(b, (size_t)n + 1);
    if (!room)
        return;
    va_start(ap, fmt);
    vsnprintf(room, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->len += (size_t)n;
}

enum pf_status
pf_buf_check(const struct pf_buf *b, struct pf_err *err)
{
    return b->failed ? pf_fail_mem(err) : PF_OK;
}

struct pf_arena_block {
    struct pf_arena_block *next;
    size_t size;
    _Alignas(64) unsigned char data[];
};

enum {
    ALIGN = 64,
    BLOCK_MIN = 16 * 1024,
    HUGE_PAGE = 2 << 20,
    HUGE_MIN = 1 << 20,
};

/* More than this is given back to the system between two records. */
#define KEEP_MAX ((size_t)1 << 20)

void *
pf_memory_new(size_t n)
{
    void *p;

    if (n > SIZE_MAX / 2)
        return NULL;
#ifdef MADV_HUGEPAGE
    if (n >= HUGE_MIN) {
        n = (n + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
        p = aligned_alloc(HUGE_PAGE, n);
        if (p)
            (void)madvise(p, n, MADV_HUGEPAGE);
        return p;
    }
#endif
    n = (n + ALIGN - 1) / ALIGN * ALIGN;
    p = aligned_alloc(ALIGN, n ? n : ALIGN);
    return p;
}

void *
pf_map_file(int fd, size_t n)
{
    void *p = mmap(NULL, n, PROT_READ, MAP_SHARED, fd, 0);

    if (p == MAP_FAILED)
        return NULL;
#ifdef MADV_HUGEPAGE
    if (n >= HUGE_PAGE)
        (void)madvise(p, n, MADV_HUGEPAGE);
#endif
    return p;
}

void
pf_memory_fini(struct pf_memory *m)
{
    free(m->data);
    *m = (struct pf_memory)PF_MEMORY_INIT;
}

static void
free_blocks(struct pf_arena_block *b)
{
    while (b) {
        struct pf_arena_block *next = b->next;

        free(b);
        b = next;
    }
}

void
pf_arena_fini(struct pf_arena *a)
{
    free_blocks(a->head);
    *a = (struct pf_arena)PF_ARENA_INIT;
}

/* The newest block is the largest: keep that one, drop the others. */
void
pf_arena_reset(struct pf_arena *a)
{
    if (!a->head)
        return;
    free_blocks(a->head->next);
    a->head->next = NULL;
    a->used = 0;
    a->total = a->head->size;
    if (a->total > KEEP_MAX)
        pf_arena_fini(a);
}

void *
pf_arena_alloc(struct pf_arena *a, size_t n)
{
    struct pf_arena_block *b = a->head;
    size_t size;
    void *p;

    if (n > SIZE_MAX / 4)
        return NULL;
    n = (n + ALIGN - 1) / ALIGN * ALIGN;
    if (!b || b->size - a->used < n) {
        size = a->total > n ? a->total : n;
        if (size < BLOCK_MIN)
            size = BLOCK_MIN;
        b = pf_memory_new(sizeof *b + size);
        if (!b)
            return NULL;
        b->next = a->head;
        b->size = size;
        a->head = b;
        a->used = 0;
        a->total += size;
    }
    p = b->data + a->used;
    a->used += n;
    return p;
}

char *
pf_arena_copy(struct pf_arena *a, const void *p, size_t n)
{
    char *copy = pf_arena_alloc(a, n + 1);

    if (copy) {
        if (n)
            memcpy(copy, p, n);
        copy[n] = '\0';
    }
    return copy;
}

bool
pf_grow(void *items, size_t *cap, size_t need, size_t size)
{
    size_t n = *cap;
    void *old, *p;

    if (need <= n)
        return true;
    n = n + n / 2 < need ? need : n + n / 2;
    if (n < 8)
        n = 8;
    if (size && n > SIZE_MAX / 2 / size)
        return false;
    memcpy(&old, items, sizeof old);
    p = realloc(old, n * size);
    if (!p)
        return false;
    memcpy(items, &p, sizeof p);
    *cap = n;
    return true;
}
