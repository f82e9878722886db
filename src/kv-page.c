/*
 * What a page of the KV cache holds, and where: for each layer slot the keys
 * [H][D][16], dimension by dimension, so that sixteen scores are a vector, and
 * then the values [H][16][D].
 */
#include <pipeformer/kv.h>

#include <string.h>

/*
 * The nearest F16 of each, the even one of two; beyond the largest that
 * largest, and NaN stays NaN.  From 2^-14 on, where numbers of F16 have 10 bits
 * behind the first, what rounding adds to the 13 bits that go carries into
 * those that stay.  Below, they are multiples of 2^-24, and so are the floats
 * from 1/2 to 1: adding 1/2 rounds.  No branches, so that a compiler makes
 * vectors of it.
 */
static void
narrow(uint16_t *to, const float *x, size_t n)
{
    const uint32_t least_normal = 0x38800000, most = 0x477fe000;
    const uint32_t infinity = 0x7f800000, half = 0x3f000000;

    for (size_t i = 0; i < n; i++) {
        uint32_t bits, a, normal, small, h;
        float f;

        memcpy(&bits, x + i, sizeof bits);
        a = bits & 0x7fffffff;
        h = a < most ? a : most;
        memcpy(&f, &h, sizeof f);
        f += 0.5f;
        memcpy(&small, &f, sizeof small);
        small -= half;
        normal = (h - (112u << 23) + 0xfff + (h >> 13 & 1)) >> 13;
        h = a < least_normal ? small : normal;
        h = a > infinity ? 0x7e00 : h;
        to[i] = (uint16_t)(h | (bits >> 16 & 0x8000));
    }
}

/* Elements of one layer slot: keys, then values. */
static size_t
slot_size(const struct pf_kv_cache *c)
{
    return 2 * pf_kv_width(c) * PF_KV_GROUP;
}

/* Where a position's row of a slot begins: of keys in k, of head 0's values
 * in v. */
static void
find_row(const struct pf_kv_cache *c, size_t slot, size_t pos, size_t heads,
    size_t *k, size_t *v)
{
    size_t width = pf_kv_width(c), lane = pos % PF_KV_GROUP;

    *k = slot * slot_size(c) + lane;
    *v = slot * slot_size(c) + width * PF_KV_GROUP + lane * (width / heads);
}

void
pf_kv_store_head(const struct pf_kv_cache *c, const struct pf_kv *kv,
    size_t slot, size_t pos, size_t head, size_t D, const float *key,
    const float *value)
{
    void *page = kv->pages[pos / PF_KV_GROUP];
    size_t at = head * D * PF_KV_GROUP, k, v;

    find_row(c, slot, pos, pf_kv_width(c) / D, &k, &v);
    if (pf_kv_type(c) == PF_F16) {
        uint16_t *to = (uint16_t *)page + at, some[64];

        for (size_t i = 0, n; i < D; i += n) {
            n = D - i < 64 ? D - i : 64;
            narrow(some, key + i, n);
            for (size_t j = 0; j < n; j++)
                to[k + (i + j) * PF_KV_GROUP] = some[j];
        }
        narrow(to + v, value, D);
    } else {
        float *to = (float *)page + at;

        for (size_t i = 0; i < D; i++)
            to[k + i * PF_KV_GROUP] = key[i];
        memcpy(to + v, value, D * sizeof *to);
    }
}

void
pf_kv_store(const struct pf_kv_cache *c, const struct pf_kv *kv, size_t slot,
    size_t pos, size_t heads, const float *key, const float *value)
{
    size_t D = pf_kv_width(c) / heads;

    for (size_t h = 0; h < heads; h++)
        pf_kv_store_head(c, kv, slot, pos, h, D, key + h * D, value + h * D);
}

void
pf_kv_fetch(const struct pf_kv_cache *c, const struct pf_kv *kv, size_t slot,
    size_t pos, size_t heads, void *key, void *value)
{
    const char *page = kv->pages[pos / PF_KV_GROUP];
    size_t width = pf_kv_width(c), D = width / heads, k, v;
    size_t size = pf_dtype_size(pf_kv_type(c));

    find_row(c, slot, pos, heads, &k, &v);
    for (size_t i = 0; i < width; i++)
        memcpy((char *)key + i * size, page + (k + i * PF_KV_GROUP) * size,
            size);
    for (size_t h = 0; h < heads; h++)
        memcpy((char *)value + h * D * size,
            page + (v + h * D * PF_KV_GROUP) * size, D * size);
}

struct pf_kv_head
pf_kv_head(const struct pf_kv_cache *c, const struct pf_kv *kv, size_t slot,
    size_t head, size_t D)
{
    const void *const *pages = (const void *const *)kv->pages;
    size_t k = slot * slot_size(c) + head * D * PF_KV_GROUP;
    size_t v = k + pf_kv_width(c) * PF_KV_GROUP;

    return (struct pf_kv_head){ pages, pages, k, v, pf_kv_type(c) };
}
