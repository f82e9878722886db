/*
 * The cache of keys and values: what was stored under a sequence and position
 * is what a kernel finds there, whoever shares the page.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/kv.h>

enum { LAYERS = 2, H = 2, D = 3, C = H * D };

static bool f16; /* of what the caches are */

/* A number that no two places of no two writers share; hardly any, where it
 * has to be one of F16. */
static float
number(int writer, size_t slot, size_t pos, size_t i, bool value)
{
    size_t n = ((((size_t)writer * LAYERS + slot) * 256 + pos) * C + i) * 2
        + value;

    return (float)(f16 ? (uint32_t)n * 2654435761u >> 21 : n);
}

static float
element(const void *p, size_t i)
{
    return f16 ? pf_f16_to_f32(((const uint16_t *)p)[i])
        : ((const float *)p)[i];
}

static void
store(struct pf_kv_cache *c, const struct pf_kv *kv, int writer, size_t from,
    size_t to)
{
    float k[C], v[C];

    for (size_t slot = 0; slot < LAYERS; slot++)
        for (size_t pos = from; pos < to; pos++) {
            for (size_t i = 0; i < C; i++) {
                k[i] = number(writer, slot, pos, i, false);
                v[i] = number(writer, slot, pos, i, true);
            }
            pf_kv_store(c, kv, slot, pos, H, k, v);
        }
}

static void
check(struct pf_kv_cache *c, const struct pf_kv *kv, int writer, size_t from,
    size_t to)
{
    float k[C], v[C]; /* or half as many bytes */

    assert_true(kv->len >= to);
    assert_int_equal(pf_kv_type(c), f16 ? PF_F16 : PF_F32);
    for (size_t slot = 0; slot < LAYERS; slot++)
        for (size_t pos = from; pos < to; pos++) {
            pf_kv_fetch(c, kv, slot, pos, H, k, v);
            for (size_t i = 0; i < C; i++) {
                assert_true(element(k, i) == number(writer, slot, pos, i,
                    false));
                assert_true(element(v, i) == number(writer, slot, pos, i,
                    true));
            }
        }
    for (size_t slot = 0; slot < LAYERS; slot++)
        for (size_t head = 0; head < H; head++) {
            struct pf_kv_head h = pf_kv_head(c, kv, slot, head, D);

            for (size_t pos = from; pos < to; pos++) {
                const void *kg = h.k[pos / PF_KV_GROUP];
                const void *vg = h.v[pos / PF_KV_GROUP];
                size_t lane = pos % PF_KV_GROUP;

                for (size_t d = 0; d < D; d++) {
                    assert_true(element(kg, h.k_off + d * PF_KV_GROUP + lane)
                        == number(writer, slot, pos, head * D + d, false));
                    assert_true(element(vg, h.v_off + lane * D + d)
                        == number(writer, slot, pos, head * D + d, true));
                }
            }
        }
}

static enum pf_status
begin(struct pf_kv_cache *c, struct pf_kv **kv, const char *key,
    const char *fork, size_t pos, size_t T, struct pf_err *err)
{
    return pf_kv_begin(c, kv, key, strlen(key), fork, fork ? strlen(fork) : 0,
        pos, T, 0, err);
}

/* Begins, stores T positions as that writer, and lets go. */
static struct pf_kv *
add(struct pf_kv_cache *c, const char *key, const char *fork, size_t pos,
    size_t T, int writer)
{
    struct pf_err err = { PF_OK, "" };
    struct pf_kv *kv;

    if (begin(c, &kv, key, fork, pos, T, &err))
        fail_msg("%s at %zu: %s", key, pos, err.msg);
    assert_int_equal(kv->len, pos + T);
    store(c, kv, writer, pos, pos + T);
    pf_kv_idle(c);
    return kv;
}

/* How many positions a sequence holds: the message says it. */
static size_t
held(struct pf_kv_cache *c, const char *key)
{
    struct pf_err err = { PF_OK, "" };
    struct pf_kv *kv;
    const char *n;

    assert_int_equal(begin(c, &kv, key, NULL, 1000000, 1, &err), PF_ESTATE);
    n = strstr(err.msg, "holds ");
    assert_non_null(n);
    assert_non_null(strstr(err.msg, "1000000"));
    return (size_t)atoi(n + 6);
}

static struct pf_kv_cache *
new_cache(size_t pages)
{
    static size_t pages_of[2];
    size_t page = pages_of[f16];
    struct pf_kv_cache *c;

    if (!page) {
        assert_int_equal(pf_kv_cache_new(&c, LAYERS, C, 1 << 24, NULL),
            PF_OK);
        pf_kv_cache_f16(c, f16);
        assert_int_equal(pf_kv_bytes(c), 0);
        add(c, "x", NULL, 0, 1, 1);
        page = pages_of[f16] = pf_kv_bytes(c);
        assert_in_range(page, LAYERS * 2 * C * PF_KV_GROUP * (f16 ? 2 : 4),
            LAYERS * 2 * C * PF_KV_GROUP * (f16 ? 2 : 4) + 128);
        pf_kv_cache_free(c);
    }
    assert_int_equal(pf_kv_cache_new(&c, LAYERS, C, pages * page + page / 2,
        NULL), PF_OK);
    pf_kv_cache_f16(c, f16);
    return c;
}

static size_t
pages(const struct pf_kv_cache *c)
{
    struct pf_kv_cache *one = new_cache(1);
    size_t n;

    add(one, "x", NULL, 0, 1, 1);
    n = pf_kv_bytes(c) / pf_kv_bytes(one);
    pf_kv_cache_free(one);
    return n;
}

/* Grown by any steps, rewound, begun anew. */
static void
test_one(void **ctx)
{
    (void)ctx;
    for (size_t step = 1; step < 40; step++) {
        struct pf_kv_cache *c = new_cache(100);
        struct pf_kv *kv = NULL;
        size_t pos = 0;

        for (; pos < 80; pos += step) {
            kv = add(c, "a", NULL, pos, step, 1);
            check(c, kv, 1, 0, pos + step);
            assert_int_equal(pages(c), (pos + step + 15) / 16);
        }
        assert_int_equal(held(c, "a"), pos);
        /* Back to every position in the middle. */
        kv = add(c, "a", NULL, step, 2, 2);
        check(c, kv, 1, 0, step);
        check(c, kv, 2, step, step + 2);
        assert_int_equal(held(c, "a"), step + 2);
        assert_int_equal(pages(c), (step + 2 + 15) / 16);
        kv = add(c, "a", NULL, 0, 5, 3);
        check(c, kv, 3, 0, 5);
        assert_int_equal(held(c, "a"), 5);
        assert_int_equal(pages(c), 1);
        assert_int_equal(pf_kv_end(c, "a", 1, NULL), PF_OK);
        assert_int_equal(pf_kv_end(c, "a", 1, NULL), PF_OK);
        assert_int_equal(held(c, "a"), 0);
        assert_int_equal(pf_kv_bytes(c), 0);
        pf_kv_cache_free(c);
    }
}

/* Keys are bytes, the empty one (no `seq`) among them. */
static void
test_keys(void **ctx)
{
    struct pf_kv_cache *c = new_cache(100);
    struct pf_kv *a, *b, *e;

    (void)ctx;
    assert_int_equal(pf_kv_begin(c, &e, NULL, 0, NULL, 0, 0, 3, 0, NULL),
        PF_OK);
    assert_int_equal(pf_kv_begin(c, &a, "s\0a", 3, NULL, 0, 0, 3, 0, NULL),
        PF_OK);
    assert_int_equal(pf_kv_begin(c, &b, "s\0b", 3, NULL, 0, 0, 3, 0, NULL),
        PF_OK);
    store(c, a, 1, 0, 3);
    store(c, b, 2, 0, 3);
    store(c, e, 3, 0, 3);
    check(c, a, 1, 0, 3);
    check(c, b, 2, 0, 3);
    check(c, e, 3, 0, 3);
    pf_kv_idle(c);
    assert_int_equal(pf_kv_end(c, NULL, 0, NULL), PF_OK);
    assert_int_equal(pages(c), 2);
    pf_kv_cache_free(c);
}

/* A fork at every position shares the pages, and neither hears of what the
 * other writes. */
static void
test_fork(void **ctx)
{
    (void)ctx;
    for (size_t pos = 0; pos <= 50; pos++) {
        struct pf_kv_cache *c = new_cache(100);
        struct pf_kv *a = add(c, "a", NULL, 0, 50, 1), *b, *d;

        assert_int_equal(pages(c), 4);
        b = add(c, "b", "a", pos, 7, 2);
        /* Whole pages are shared, the one that is written to is not. */
        assert_int_equal(pages(c), 4 + (pos + 7 + 15) / 16 - pos / 16);
        check(c, a, 1, 0, 50);
        check(c, b, 1, 0, pos);
        check(c, b, 2, pos, pos + 7);
        d = add(c, "d", "b", pos + 7, 1, 3); /* of a fork */
        check(c, d, 1, 0, pos);
        check(c, d, 2, pos, pos + 7);
        check(c, d, 3, pos + 7, pos + 8);
        /* The first one goes back and writes again. */
        a = add(c, "a", NULL, pos, 20, 4);
        check(c, a, 1, 0, pos);
        check(c, a, 4, pos, pos + 20);
        check(c, b, 1, 0, pos);
        check(c, b, 2, pos, pos + 7);
        check(c, d, 2, pos, pos + 7);
        assert_int_equal(pf_kv_end(c, "a", 1, NULL), PF_OK);
        check(c, b, 1, 0, pos);
        check(c, d, 1, 0, pos);
        assert_int_equal(pf_kv_end(c, "b", 1, NULL), PF_OK);
        check(c, d, 1, 0, pos);
        check(c, d, 2, pos, pos + 7);
        assert_int_equal(pages(c), (pos + 8 + 15) / 16);
        assert_int_equal(pf_kv_end(c, "d", 1, NULL), PF_OK);
        assert_int_equal(pf_kv_bytes(c), 0);
        pf_kv_cache_free(c);
    }
}

/* Over a sequence that is there, and of itself. */
static void
test_fork_over(void **ctx)
{
    struct pf_kv_cache *c = new_cache(100);
    struct pf_kv *a, *b;

    (void)ctx;
    add(c, "a", NULL, 0, 40, 1);
    add(c, "b", NULL, 0, 60, 2);
    b = add(c, "b", "a", 20, 2, 3);
    check(c, b, 1, 0, 20);
    check(c, b, 3, 20, 22);
    a = add(c, "a", "a", 30, 5, 4);
    check(c, a, 1, 0, 30);
    check(c, a, 4, 30, 35);
    assert_int_equal(held(c, "a"), 35);
    assert_int_equal(pages(c), 3 + 1);
    /* With nothing to add it is a second name for the same. */
    b = add(c, "b", "a", 35, 0, 5);
    check(c, b, 1, 0, 30);
    check(c, b, 4, 30, 35);
    assert_in_range(pages(c), 3, 4);
    /* And when both go on, each has its own. */
    b = add(c, "b", NULL, 35, 2, 6);
    a = add(c, "a", NULL, 35, 2, 7);
    check(c, b, 6, 35, 37);
    check(c, a, 7, 35, 37);
    check(c, a, 4, 30, 35);
    check(c, b, 4, 30, 35);
    pf_kv_cache_free(c);
}

static void
test_states(void **ctx)
{
    struct pf_kv_cache *c = new_cache(100);
    struct pf_err err;
    struct pf_kv *kv;

    (void)ctx;
    assert_int_equal(begin(c, &kv, "a", NULL, 1, 1, &err), PF_ESTATE);
    assert_non_null(strstr(err.msg, "holds 0 positions, record starts at 1"));
    assert_null(strstr(err.msg, "dropped"));
    add(c, "a", NULL, 0, 12, 1);
    assert_int_equal(begin(c, &kv, "a", NULL, 14, 1, &err), PF_ESTATE);
    assert_non_null(strstr(err.msg,
        "holds 12 positions, record starts at 14"));
    assert_int_equal(begin(c, &kv, "b", "a", 13, 1, &err), PF_ESTATE);
    assert_non_null(strstr(err.msg, "fork"));
    assert_non_null(strstr(err.msg,
        "holds 12 positions, record starts at 13"));
    assert_int_equal(begin(c, &kv, "b", "none", 1, 1, &err), PF_ESTATE);
    assert_int_equal(held(c, "b"), 0);
    /* What failed changed nothing. */
    kv = add(c, "a", NULL, 12, 1, 1);
    check(c, kv, 1, 0, 13);
    pf_kv_cache_free(c);
}

/* The first 0 positions of a sequence are there, whichever it is. */
static void
test_fork_at_0(void **ctx)
{
    struct pf_kv_cache *c = new_cache(100);
    struct pf_kv *kv;

    (void)ctx;
    assert_int_equal(begin(c, &kv, "b", "none", 0, 4, NULL), PF_OK);
    store(c, kv, 1, 0, 4);
    check(c, kv, 1, 0, 4);
    pf_kv_cache_free(c);
}

static void
test_tags(void **ctx)
{
    struct pf_kv_cache *c = new_cache(100);
    struct pf_err err;
    struct pf_kv *kv;

    (void)ctx;
    assert_int_equal(pf_kv_begin(c, &kv, "a", 1, NULL, 0, 0, 4, 7, NULL),
        PF_OK);
    pf_kv_idle(c);
    assert_int_equal(pf_kv_begin(c, &kv, "a", 1, NULL, 0, 4, 1, 8, &err),
        PF_ESTATE);
    assert_true(err.msg[0]);
    assert_int_equal(pf_kv_begin(c, &kv, "b", 1, "a", 1, 4, 1, 8, &err),
        PF_ESTATE);
    assert_int_equal(pf_kv_begin(c, &kv, "a", 1, NULL, 0, 4, 1, 7, NULL),
        PF_OK);
    pf_kv_idle(c);
    assert_int_equal(pf_kv_begin(c, &kv, "b", 1, "a", 1, 5, 1, 7, NULL),
        PF_OK);
    pf_kv_idle(c);
    assert_int_equal(pf_kv_begin(c, &kv, "a", 1, NULL, 0, 0, 1, 8, NULL),
        PF_OK); /* begun anew */
    pf_kv_idle(c);
    assert_int_equal(pf_kv_begin(c, &kv, "a", 1, NULL, 0, 1, 1, 8, NULL),
        PF_OK);
    pf_kv_cache_free(c);
}

static void
test_busy(void **ctx)
{
    struct pf_kv_cache *c = new_cache(100);
    struct pf_kv *a, *b, *x;

    (void)ctx;
    assert_int_equal(begin(c, &a, "a", NULL, 0, 4, NULL), PF_OK);
    store(c, a, 1, 0, 4);
    assert_int_equal(begin(c, &x, "a", NULL, 4, 1, NULL), PF_AGAIN);
    assert_int_equal(begin(c, &x, "a", NULL, 0, 1, NULL), PF_AGAIN);
    assert_int_equal(begin(c, &x, "b", "a", 2, 1, NULL), PF_AGAIN);
    assert_int_equal(pf_kv_end(c, "a", 1, NULL), PF_AGAIN);
    assert_int_equal(begin(c, &b, "b", NULL, 0, 4, NULL), PF_OK);
    store(c, b, 2, 0, 4);
    check(c, a, 1, 0, 4);
    pf_kv_idle(c);
    a = add(c, "a", NULL, 4, 1, 1);
    check(c, a, 1, 0, 5);
    b = add(c, "b", "a", 2, 1, 2);
    check(c, b, 1, 0, 2);
    assert_int_equal(pf_kv_end(c, "a", 1, NULL), PF_OK);
    assert_int_equal(pf_kv_end(c, "b", 1, NULL), PF_OK);
    assert_int_equal(pf_kv_bytes(c), 0);
    pf_kv_cache_free(c);
}

/* The least recently used goes first, and the message says that some did. */
static void
test_eviction(void **ctx)
{
    struct pf_kv_cache *c = new_cache(4);
    struct pf_err err;
    struct pf_kv *kv;

    (void)ctx;
    add(c, "a", NULL, 0, 16, 1);
    add(c, "b", NULL, 0, 16, 2);
    add(c, "c", NULL, 0, 16, 3);
    add(c, "d", NULL, 0, 16, 4);
    assert_int_equal(pages(c), 4);
    add(c, "a", NULL, 5, 11, 1); /* a is used again: b is the oldest */
    add(c, "e", NULL, 0, 1, 5);
    assert_int_equal(pages(c), 4);
    assert_int_equal(held(c, "b"), 0);
    assert_int_equal(held(c, "a"), 16);
    assert_int_equal(held(c, "c"), 16);
    assert_int_equal(begin(c, &kv, "b", NULL, 16, 1, &err), PF_ESTATE);
    assert_non_null(strstr(err.msg, "holds 0 positions"));
    assert_non_null(strstr(err.msg, "dropped"));
    assert_non_null(strstr(err.msg, "--kv-mem"));
    add(c, "f", NULL, 0, 20, 6); /* two pages: c and d */
    assert_int_equal(held(c, "c"), 0);
    assert_int_equal(held(c, "d"), 0);
    kv = add(c, "a", NULL, 16, 0, 1);
    check(c, kv, 1, 0, 16);
    /* One that grows does not push out itself. */
    kv = add(c, "e", NULL, 1, 63, 5);
    check(c, kv, 5, 0, 64);
    assert_int_equal(held(c, "a"), 0);
    assert_int_equal(held(c, "f"), 0);
    assert_int_equal(pages(c), 4);
    pf_kv_cache_free(c);
}

static void
test_limit(void **ctx)
{
    struct pf_kv_cache *c = new_cache(3);
    struct pf_err err;
    struct pf_kv *kv, *x;

    (void)ctx;
    assert_int_equal(begin(c, &kv, "a", NULL, 0, 49, &err), PF_ERANGE);
    assert_non_null(strstr(err.msg, "--kv-mem"));
    assert_int_equal(pages(c), 0);
    kv = add(c, "a", NULL, 0, 48, 1);
    check(c, kv, 1, 0, 48);
    assert_int_equal(begin(c, &kv, "a", NULL, 48, 1, &err), PF_ERANGE);
    assert_int_equal(held(c, "a"), 48); /* what was held is still there */
    kv = add(c, "a", NULL, 47, 1, 2);
    check(c, kv, 1, 0, 47);
    /* While busy ones hold the memory it is not now. */
    assert_int_equal(begin(c, &kv, "b", NULL, 0, 32, &err), PF_OK);
    store(c, kv, 3, 0, 32);
    assert_int_equal(begin(c, &x, "c", NULL, 0, 32, &err), PF_AGAIN);
    assert_int_equal(begin(c, &x, "c", NULL, 0, 49, &err), PF_ERANGE);
    check(c, kv, 3, 0, 32);
    pf_kv_idle(c);
    assert_int_equal(begin(c, &x, "c", NULL, 0, 32, &err), PF_OK);
    store(c, x, 4, 0, 32);
    check(c, x, 4, 0, 32);
    assert_int_equal(held(c, "b"), 0);
    pf_kv_idle(c);
    pf_kv_cache_free(c);
    /* No page at all fits. */
    c = new_cache(0);
    assert_int_equal(begin(c, &kv, "a", NULL, 0, 1, &err), PF_ERANGE);
    pf_kv_cache_free(c);
}

/* At the limit, a fork drops what it came from rather than fail: its page is
 * then its own, and needs no copy. */
static void
test_fork_at_limit(void **ctx)
{
    struct pf_kv_cache *c = new_cache(1);
    struct pf_err err = { PF_OK, "" };
    struct pf_kv *kv;

    (void)ctx;
    add(c, "a", NULL, 0, 8, 1);
    if (begin(c, &kv, "b", "a", 8, 1, &err))
        fail_msg("%s", err.msg);
    store(c, kv, 2, 8, 9);
    check(c, kv, 1, 0, 8);
    check(c, kv, 2, 8, 9);
    assert_int_equal(pages(c), 1);
    pf_kv_cache_free(c);
}

/* Asked again after PF_AGAIN, as it says, a fork still finds its origin. */
static void
test_fork_again(void **ctx)
{
    struct pf_kv_cache *c = new_cache(3);
    struct pf_err err = { PF_OK, "" };
    struct pf_kv *b, *kv;

    (void)ctx;
    add(c, "a", NULL, 0, 16, 1);
    assert_int_equal(begin(c, &b, "b", NULL, 0, 16, NULL), PF_OK);
    assert_int_equal(begin(c, &kv, "c", "a", 16, 32, NULL), PF_AGAIN);
    pf_kv_idle(c);
    if (begin(c, &kv, "c", "a", 16, 32, &err))
        fail_msg("%s", err.msg);
    store(c, kv, 2, 16, 48);
    check(c, kv, 1, 0, 16);
    check(c, kv, 2, 16, 48);
    pf_kv_cache_free(c);
}

/* Random work against a plain copy of every sequence. */
static void
test_against_copies(void **ctx)
{
    enum { SEQS = 6, MOST = 100, LIMIT = 14 };
    struct pf_kv_cache *c = new_cache(LIMIT);
    static int who[SEQS][MOST]; /* who wrote that position */
    size_t len[SEQS] = { 0 };
    uint32_t r = 1;

    (void)ctx;
    for (int step = 1; step < 4000; step++) {
        char key[2] = "a", fork[2] = "a";
        struct pf_err err;
        struct pf_kv *kv;
        size_t s, f, pos, T, from;
        enum pf_status st;
        bool forks;

        r = r * 1664525 + 1013904223;
        s = (r >> 8) % SEQS;
        f = (r >> 12) % SEQS;
        T = (r >> 16) % 24;
        forks = (r >> 24) % 4 == 0;
        key[0] = (char)('a' + s);
        fork[0] = (char)('a' + f);
        if ((r >> 26) % 16 == 0) {
            assert_int_equal(pf_kv_end(c, key, 1, NULL), PF_OK);
            len[s] = 0;
            continue;
        }
        from = forks ? f : s;
        pos = (r >> 28) % 3 ? len[from] : len[from] ? r % len[from] : 0;
        if (forks && !len[f])
            continue;
        if (pos + T > MOST)
            T = MOST - pos;
        st = begin(c, &kv, key, forks ? fork : NULL, pos, T, &err);
        if (st == PF_ESTATE && strstr(err.msg, "dropped")) {
            len[from] = 0; /* it had to go */
            continue;
        }
        assert_int_equal(st, PF_OK);
        if (forks)
            memmove(who[s], who[f], pos * sizeof who[s][0]);
        store(c, kv, step, pos, pos + T);
        for (size_t p = pos; p < pos + T; p++)
            who[s][p] = step;
        len[s] = pos + T;
        for (size_t p = 0; p < len[s]; p++)
            check(c, kv, who[s][p], p, p + 1);
        pf_kv_idle(c);
        assert_true(pages(c) <= LIMIT);
    }
    for (size_t s = 0; s < SEQS; s++)
        pf_kv_end(c, &"abcdef"[s], 1, NULL);
    assert_int_equal(pf_kv_bytes(c), 0);
    pf_kv_cache_free(c);
}

/* What F16 holds of x, by arithmetic on doubles, which is exact here. */
static float
nearest(float x)
{
    int e = x == 0 || ilogbf(x) < -14 ? -24 : ilogbf(x) - 10;
    double y = isinf(x) ? (double)x : ldexp(rint(ldexp((double)x, -e)), e);

    return y > 65504 ? 65504 : y < -65504 ? -65504 : (float)y;
}

static void
check_nearest(struct pf_kv_cache *c, const struct pf_kv *kv, float x)
{
    uint16_t k, v;
    float is;

    pf_kv_store(c, kv, 0, 17, 1, &x, &x);
    pf_kv_fetch(c, kv, 0, 17, 1, &k, &v);
    is = pf_f16_to_f32(k);
    if (k != v || (isnan(x) ? !isnan(is) : is != nearest(x)
            || signbit(is) != signbit(x)))
        fail_msg("%a became %a, not %a", (double)x, (double)is,
            (double)nearest(x));
}

/* Every number of F16, those half-way between two, and those beside them. */
static void
test_rounding(void **ctx)
{
    struct pf_kv_cache *c;
    struct pf_kv *kv;

    (void)ctx;
    assert_int_equal(pf_kv_cache_new(&c, 1, 1, 1 << 20, NULL), PF_OK);
    pf_kv_cache_f16(c, true);
    assert_int_equal(begin(c, &kv, "a", NULL, 0, 20, NULL), PF_OK);
    for (uint32_t h = 0; h < 0x7c00; h++) {
        float x = pf_f16_to_f32((uint16_t)h);
        float next = h == 0x7bff ? 65536 : pf_f16_to_f32((uint16_t)(h + 1));
        float mid = (x + next) / 2;
        const float all[] = { x, nextafterf(x, INFINITY),
            nextafterf(mid, 0), mid, nextafterf(mid, INFINITY),
            nextafterf(next, 0) };

        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            check_nearest(c, kv, all[i]);
            check_nearest(c, kv, -all[i]);
        }
    }
    check_nearest(c, kv, 1e-30f);
    check_nearest(c, kv, 1e-42f);
    check_nearest(c, kv, -1e30f);
    check_nearest(c, kv, INFINITY);
    check_nearest(c, kv, -INFINITY);
    check_nearest(c, kv, NAN);
    pf_kv_cache_free(c);
}

/* Who is there, in the order of use, and how many had to go. */
static void
test_walk(void **ctx)
{
    struct pf_kv_cache *c = new_cache(3);
    const struct pf_kv *kv;

    (void)ctx;
    assert_null(pf_kv_oldest(c));
    assert_null(pf_kv_find(c, "a", 1));
    add(c, "a", NULL, 0, 16, 1);
    add(c, "b", NULL, 0, 3, 2);
    add(c, "a", NULL, 16, 0, 1);
    kv = pf_kv_oldest(c);
    assert_ptr_equal(kv, pf_kv_find(c, "b", 1));
    assert_ptr_equal(kv->newer, pf_kv_find(c, "a", 1));
    assert_null(kv->newer->newer);
    assert_int_equal(pf_kv_dropped(c), 0);
    add(c, "c", NULL, 0, 32, 3);
    assert_int_equal(pf_kv_dropped(c), 1);
    assert_null(pf_kv_find(c, "b", 1));
    pf_kv_cache_free(c);
}

static void
test_new(void **ctx)
{
    struct pf_kv_cache *c = NULL;

    (void)ctx;
    assert_int_equal(pf_kv_cache_new(&c, SIZE_MAX / 2, 1000, 1 << 20, NULL),
        PF_ENOMEM);
    assert_null(c);
    pf_kv_cache_free(NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_fork_over),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_fork_at_0),
        cmocka_unit_test(test_tags),
        cmocka_unit_test(test_busy),
        cmocka_unit_test(test_eviction),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_fork_at_limit),
        cmocka_unit_test(test_fork_again),
        cmocka_unit_test(test_against_copies),
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_walk),
        cmocka_unit_test(test_new),
    };
    int failed = cmocka_run_group_tests_name("F32", tests, NULL, NULL);

    f16 = true;
    return failed + cmocka_run_group_tests_name("F16", tests, NULL, NULL);
}
