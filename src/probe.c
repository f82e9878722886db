/*
 * Looking into a run of blocks.  Every activation that the model has is a
 * site, a small number; what is to be done there is looked up in tables by
 * that number, so that a pass with a few taps in a large model costs no more
 * than those.  Names are matched once, when the hooks are made.
 *
 * Where several things are to be done at one site, patches come first, then
 * zeros, and a tap sees what the pass goes on with.
 */
#include "probe-private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/json.h>

/* --- Setting up --- */

static size_t
site_of(size_t layer, enum pf_point point)
{
    return layer * PF_N_POINTS + point;
}

enum pf_status
pf_hooks_new(struct pf_hooks **hooks, const struct pf_config *config,
    const size_t *layers, size_t n_layers, const size_t *heads,
    size_t n_heads, unsigned parts, struct pf_err *err)
{
    struct pf_hooks *h = calloc(1, sizeof *h);
    size_t n;

    *hooks = NULL;
    if (!h || !pf_mul(config->layers, PF_N_POINTS, &h->n_sites)
        || !pf_mul(h->n_sites, config->heads, &n)) {
        free(h);
        return pf_fail_mem(err);
    }
    h->config = config;
    h->layers = layers;
    h->n_layers = n_layers;
    h->heads = heads;
    h->n_heads = n_heads;
    h->runs = calloc(h->n_sites, sizeof *h->runs);
    h->wanted = calloc(h->n_sites, sizeof *h->wanted);
    h->off = calloc(n, sizeof *h->off);
    h->tap_of = calloc(h->n_sites, sizeof *h->tap_of);
    h->taps = calloc(h->n_sites, sizeof *h->taps);
    if (!h->runs || !h->wanted || !h->off || !h->tap_of || !h->taps) {
        pf_hooks_free(h);
        return pf_fail_mem(err);
    }
    for (size_t i = 0; i < n_layers; i++)
        for (size_t p = 0; p < PF_N_POINTS; p++)
            h->runs[site_of(layers[i], (enum pf_point)p)]
                = pf_point_runs((enum pf_point)p, parts);
    *hooks = h;
    return PF_OK;
}

void
pf_hooks_free(struct pf_hooks *h)
{
    if (!h)
        return;
    pf_patches_free(h);
    pf_buf_fini(&h->key);
    free(h->runs);
    free(h->wanted);
    free(h->off);
    free(h->tap_of);
    free(h->taps);
    free(h);
}

/* The layers that run, "0 to 5" or "0, 2, 5", as far as there is room. */
static void
print_layers(const struct pf_hooks *h, char *s, size_t size)
{
    size_t n = 0, i = 1;

    while (i < h->n_layers && h->layers[i] == h->layers[0] + i)
        i++;
    if (i > 2 && i == h->n_layers) {
        snprintf(s, size, "%zu to %zu", h->layers[0], h->layers[i - 1]);
        return;
    }
    for (i = 0; i < h->n_layers; i++) {
        if (size - n < 32) {
            snprintf(s + n, size - n, ", ...");
            return;
        }
        n += (size_t)snprintf(s + n, size - n, "%s%zu", i ? ", " : "",
            h->layers[i]);
    }
}

/* Is that item what a block calls the point, or the last part of it? */
static bool
is_short_for(const char *item, size_t len, enum pf_point point)
{
    const char *name = pf_point_text(point), *dot = strchr(name, '.');

    return (strlen(name) == len && memcmp(name, item, len) == 0)
        || (dot && strlen(dot + 1) == len && memcmp(dot + 1, item, len) == 0);
}

static enum pf_status
unknown(const struct pf_hooks *h, const char *item, size_t len,
    struct pf_err *err)
{
    char layers[64], list[256];
    size_t n = 0;

    for (size_t p = 0; p < PF_N_POINTS; p++)
        if (h->runs[site_of(h->layers[0], (enum pf_point)p)]
            && is_short_for(item, len, (enum pf_point)p))
            return pf_fail(err, PF_ERANGE, "nothing is called '%.*s'; each "
                "block has one: blocks.%zu.%s, or blocks.*.%s for all",
                (int)len, item, h->layers[0], pf_point_text((enum pf_point)p),
                pf_point_text((enum pf_point)p));
    print_layers(h, layers, sizeof layers);
    for (size_t p = 0; p < PF_N_POINTS; p++)
        if (h->runs[site_of(h->layers[0], (enum pf_point)p)])
            n += (size_t)snprintf(list + n, sizeof list - n, "%s%s",
                n ? ", " : "", pf_point_text((enum pf_point)p));
    return pf_fail(err, PF_ERANGE, "nothing is called '%.*s'; blocks.N, for "
        "N = %s, has %s", (int)(len < 60 ? len : 60), item, layers,
        list);
}

/* What to do with one site that an item of a list names. */
typedef void on_site(struct pf_hooks *h, size_t site, enum pf_point point,
    size_t head);

static void
tap_site(struct pf_hooks *h, size_t site, enum pf_point point, size_t head)
{
    (void)head;
    if (h->tap_of[site])
        return;
    h->taps[h->n_taps++] = site;
    h->tap_of[site] = h->n_taps;
    h->heads_tapped |= pf_point_by_head(point);
    h->wanted[site] = h->any = true;
}

static void
zero_site(struct pf_hooks *h, size_t site, enum pf_point point, size_t head)
{
    size_t H = h->config->heads;

    (void)point;
    if (head == SIZE_MAX)
        memset(h->off + site * H, 1, H);
    else
        h->off[site * H + head] = 1;
    h->wanted[site] = h->any = true;
}

/* "NAME" or, where `heads` may be given, "NAME:HEAD". */
static enum pf_status
take_item(struct pf_hooks *h, const char *item, size_t len, bool heads,
    on_site *act, struct pf_err *err)
{
    const char *colon = heads ? memchr(item, ':', len) : NULL;
    size_t name_len = colon ? (size_t)(colon - item) : len;
    size_t head = SIZE_MAX;
    bool matched = false, taken = false;
    char name[48];

    if (colon) {
        const char *p = colon + 1, *end = item + len;

        head = 0;
        for (; p < end && *p >= '0' && *p <= '9' && head < 100000; p++)
            head = head * 10 + (size_t)(*p - '0');
        if (p != end || p == colon + 1)
            return pf_fail(err, PF_ERANGE, "'%.*s': what follows the colon is "
                "no number of a head; several are written NAME:0,NAME:1",
                (int)(len < 80 ? len : 80), item);
        if (head >= h->config->heads)
            return pf_fail(err, PF_ERANGE, "'%.*s': the model's heads are 0 "
                "to %zu", (int)(len < 80 ? len : 80), item,
                h->config->heads - 1);
    }
    for (size_t i = 0; i < h->n_layers; i++)
        for (size_t k = 0; k < PF_N_POINTS; k++) {
            enum pf_point p = (enum pf_point)k;
            size_t site = site_of(h->layers[i], p);

            if (!h->runs[site] || !pf_glob(item, name_len,
                    pf_point_name(name, sizeof name, h->layers[i], p)))
                continue;
            matched = true;
            if (head != SIZE_MAX && !pf_point_by_head(p))
                continue;
            taken = true;
            act(h, site, p, head);
        }
    if (!matched && heads && len && strspn(item, "0123456789") >= len)
        return pf_fail(err, PF_ERANGE, "'%.*s': is no name; several heads are "
            "written NAME:0,NAME:1", (int)(len < 80 ? len : 80), item);
    if (!matched)
        return unknown(h, item, name_len, err);
    if (!taken)
        return pf_fail(err, PF_ERANGE, "'%.*s': that has no heads; attn.q, "
            "attn.k, attn.v, attn.attn_scores, attn.pattern, attn.z and "
            "attn.result have", (int)(len < 80 ? len : 80), item);
    return PF_OK;
}

static enum pf_status
take_list(struct pf_hooks *h, const char *list, bool heads, on_site *act,
    struct pf_err *err)
{
    for (;;) {
        size_t len = strcspn(list, ",");
        enum pf_status st = take_item(h, list, len, heads, act, err);

        if (st || !list[len])
            return st;
        list += len + 1;
    }
}

static int
by_run(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;

    return (x > y) - (x < y);
}

enum pf_status
pf_hooks_tap(struct pf_hooks *h, const char *list, struct pf_err *err)
{
    enum pf_status st = take_list(h, list, false, tap_site, err);

    /* However they were named, a record has them in one order. */
    qsort(h->taps, h->n_taps, sizeof *h->taps, by_run);
    for (size_t i = 0; i < h->n_taps; i++)
        h->tap_of[h->taps[i]] = i + 1;
    return st;
}

bool
pf_hooks_tap_heads(const struct pf_hooks *h)
{
    return h->heads_tapped;
}

enum pf_status
pf_hooks_zero(struct pf_hooks *h, const char *list, struct pf_err *err)
{
    return take_list(h, list, true, zero_site, err);
}

/* --- Before a run --- */

/* A record's taps begin behind those of the layers that it has passed. */
static size_t
first_tap(const struct pf_hooks *h, size_t from)
{
    size_t i = 0;

    for (; i < h->n_taps; i++) {
        size_t layer = h->taps[i] / PF_N_POINTS, k = from;

        while (k < h->n_layers && h->layers[k] != layer)
            k++;
        if (k < h->n_layers)
            break;
    }
    return i;
}

enum pf_status
pf_hooks_check_heads(const struct pf_record *rec, const size_t *heads,
    size_t n_heads, struct pf_err *err)
{
    const struct pf_field *f = pf_record_field(rec, "heads");
    const struct pf_tensor *holder = pf_record_tensor(rec, "attn");
    struct pf_json j = pf_json_at(f ? f->text : "", f ? f->len : 0);
    enum pf_status st = pf_json_open(&j, '[', NULL);
    bool first = true, same = true;
    enum pf_point point;
    size_t layer, n = 0;
    int64_t v;

    for (size_t i = 0; i < rec->n_tensors && !holder; i++)
        if (pf_point_find(rec->tensors[i].name, &layer, &point)
            && pf_point_by_head(point))
            holder = &rec->tensors[i];
    if (!holder)
        return PF_OK;
    while (!st && !(st = pf_json_next(&j, ']', &first, NULL))) {
        st = pf_json_i64(&j, &v, NULL);
        same = same && n < n_heads && v == (int64_t)heads[n];
        n++;
    }
    if (st == PF_END && n == n_heads && same)
        return PF_OK;
    return pf_fail(err, PF_EFORMAT, "heads: %.60s is of other heads than are "
        "wanted now", holder->name);
}

enum pf_status
pf_hooks_check(struct pf_hooks *h, struct pf_record *rec, size_t T,
    size_t pos, size_t from, struct pf_hooked *hooked, size_t *bytes,
    struct pf_err *err)
{
    enum pf_status st = PF_OK;

    *hooked = (struct pf_hooked){ .T = T, .pos = pos };
    *bytes = 0;
    if (h->n_patches) {
        pf_buf_clear(&h->key);
        st = pf_record_seq(rec, "seq", &h->key, err);
        if (st)
            return st;
        hooked->all = h->all;
        if (h->key.len)
            hooked->own = pf_patches_of(h, h->key.data, h->key.len);
    }
    if (h->config->encoder && hooked->all)
        st = pf_patches_check(h, hooked->all, T, err);
    if (!st && h->config->encoder && hooked->own)
        st = pf_patches_check(h, hooked->own, T, err);
    if (!st && h->heads_tapped)
        st = pf_hooks_check_heads(rec, h->heads, h->n_heads, err);
    if (st)
        return st;
    for (size_t i = first_tap(h, from); i < h->n_taps; i++) {
        size_t shape[3], n;
        unsigned ndim = pf_point_axes(h->config,
            (enum pf_point)(h->taps[i] % PF_N_POINTS), T, pos + T, h->n_heads,
            shape);

        if (pf_shape_size(shape, ndim, PF_F32, NULL, &n, err))
            return PF_ESHAPE;
        *bytes = n < SIZE_MAX - *bytes ? *bytes + n : SIZE_MAX;
    }
    return PF_OK;
}

static enum pf_status
set_heads(const struct pf_hooks *h, struct pf_record *rec, struct pf_err *err)
{
    struct pf_buf b = PF_BUF_INIT;
    enum pf_status st;

    for (size_t i = 0; i < h->n_heads; i++) {
        pf_buf_addc(&b, i ? ',' : '[');
        pf_json_add_i64(&b, (int64_t)h->heads[i]);
    }
    pf_buf_addc(&b, ']');
    st = pf_buf_check(&b, err);
    if (!st)
        st = pf_record_set(rec, "heads", b.data, b.len, err);
    pf_buf_fini(&b);
    return st;
}

enum pf_status
pf_hooks_begin(struct pf_hooks *h, struct pf_record *rec, size_t from,
    struct pf_hooked *hooked, struct pf_err *err)
{
    bool heads = false;
    char name[48];

    hooked->taps = NULL;
    if (!h->n_taps)
        return PF_OK;
    hooked->taps = pf_arena_alloc(&rec->mem,
        h->n_taps * sizeof *hooked->taps);
    if (!hooked->taps)
        return pf_fail_mem(err);
    for (size_t i = 0, k = first_tap(h, from); i < h->n_taps; i++) {
        enum pf_point p = (enum pf_point)(h->taps[i] % PF_N_POINTS);
        const struct pf_tensor *t;
        size_t shape[3];
        unsigned ndim;

        hooked->taps[i] = NULL;
        if (i < k)
            continue;
        ndim = pf_point_axes(h->config, p, hooked->T, hooked->pos + hooked->T,
            h->n_heads, shape);
        t = pf_record_put(rec, pf_point_name(name, sizeof name,
            h->taps[i] / PF_N_POINTS, p), PF_F32, ndim, shape, NULL);
        if (!t)
            return pf_fail_mem(err);
        hooked->taps[i] = (float *)t->data;
        heads |= pf_point_by_head(p);
    }
    return heads ? set_heads(h, rec, err) : PF_OK;
}

/* --- In a run --- */

static bool
wants(void *ctx, size_t layer, enum pf_point point)
{
    const struct pf_hooks *h = ctx;

    return h->wanted[site_of(layer, point)];
}

/* n floats to zero, but for -inf; whether a bit changed. */
static bool
erase(float *x, size_t n)
{
    bool changed = false;
    uint32_t bits;

    for (size_t i = 0; i < n; i++) {
        memcpy(&bits, &x[i], sizeof bits);
        if (bits == 0 || bits == 0xff800000)
            continue;
        x[i] = 0;
        changed = true;
    }
    return changed;
}

static bool
ablate(const struct pf_hooks *h, size_t site, size_t head, size_t n,
    float *data, size_t width, size_t stride)
{
    const unsigned char *off = h->off + site * h->config->heads;
    enum kind kind = pf_point_kind(
        (enum pf_point)(site % PF_N_POINTS));
    size_t H = kind == BY_HEAD || kind == RESULT ? h->config->heads : 1;
    size_t unit = width / H;
    bool changed = false;

    for (size_t i = 0; i < H; i++)
        if (off[kind == MAP ? head : i])
            for (size_t t = 0; t < n; t++)
                changed |= erase(data + t * stride + i * unit, unit);
    return changed;
}

static void
tap(const struct pf_hooks *h, float *to, size_t T, enum kind kind,
    size_t head, size_t first, size_t n, const float *data, size_t width,
    size_t stride)
{
    size_t unit;

    switch (kind) {
    case ROW:
    case INNER:
        memcpy(to + first * width, data, n * width * sizeof *to);
        break;
    case BY_HEAD:
    case RESULT:
        unit = width / h->config->heads;
        to += first * h->n_heads * unit;
        for (size_t t = 0; t < n; t++)
            for (size_t i = 0; i < h->n_heads; i++, to += unit)
                memcpy(to, data + t * stride + h->heads[i] * unit,
                    unit * sizeof *to);
        break;
    case MAP:
        for (size_t i = 0; i < h->n_heads; i++)
            if (h->heads[i] == head)
                memcpy(to + (i * T + first) * width, data,
                    n * width * sizeof *to);
    }
}

static bool
at(void *ctx, size_t sequence, size_t layer, enum pf_point point,
    size_t head, size_t first, size_t n, float *data, size_t width,
    size_t stride)
{
    const struct pf_hooks *h = ctx;
    const struct pf_hooked *r = &h->run[sequence];
    size_t site = site_of(layer, point), pos = r->pos + first;
    bool changed = false;

    if (pf_point_kind(point) != BY_HEAD)
        stride = width;
    if (r->all)
        changed |= pf_patches_apply(h, r->all, layer, point, head, pos, n,
            data, width, stride);
    if (r->own)
        changed |= pf_patches_apply(h, r->own, layer, point, head, pos, n,
            data, width, stride);
    changed |= ablate(h, site, head, n, data, width, stride);
    if (h->tap_of[site] && r->taps && r->taps[h->tap_of[site] - 1])
        tap(h, r->taps[h->tap_of[site] - 1], r->T, pf_point_kind(point), head,
            first, n, data, width, stride);
    return changed;
}

const struct pf_probe *
pf_hooks_probe(struct pf_hooks *h, const struct pf_hooked *hooked)
{
    if (!h->any)
        return NULL;
    h->run = hooked;
    h->probe = (struct pf_probe){ h, wants, at };
    return &h->probe;
}
