/*
 * Attention for every vector width: a part of kernel-simd.h.
 *
 * Up to AT_ROWS query rows go through a block of 64 keys before the next
 * block (Dao et al. 2022), AT_M rows at a time; the sums of weighted
 * values wait in the output.  Sixteen keys lie side by side, so that a vector
 * of scores is a chain like that of any matmul.  Keys and values of F16 are
 * widened as they are loaded, once for the rows of a tile.  A single row waits
 * for memory more than it computes: while it makes the scores of a block, it
 * fetches the values, and over these the next block's keys.
 */

enum {
    AT_M = 6,           /* query rows to a tile */
    AT_ROWS = 8 * AT_M,
    AT_D = 128,         /* dimensions of q scaled beforehand */
    AT_BIAS = AT_M * PF_KV_BLOCK,
};

/* Up to AT_M query rows and what they carry from block to block. */
struct tile {
    size_t rows;
    size_t seen[AT_M]; /* by each row */
    float m[PF_LANES], r[PF_LANES];
    vec l[AT_M][LV];
};

static void
tile_start(struct tile *t, size_t rows, size_t seen, size_t step)
{
    t->rows = rows;
    for (size_t i = 0; i < PF_LANES; i++)
        t->m[i] = PF_ATTN_MAX;
    for (size_t i = 0; i < rows; i++) {
        t->seen[i] = seen + i * step;
        for (size_t h = 0; h < LV; h++)
            t->l[i][h] = vset(0);
    }
}

/* qs: [D][rows] */
static void
scale_queries(float *qs, const float *q, size_t ldq, size_t rows, size_t D,
    float c)
{
    for (size_t d = 0; d < D; d++)
        for (size_t i = 0; i < rows; i++)
            qs[d * rows + i] = q[i * ldq + d] * c;
}

/* D further dimensions of the scores of groups g .. g + ng - 1. */
INLINE void
scores(const size_t mt, const size_t ng, enum pf_dtype type,
    float *restrict s, const float *restrict qs, const struct pf_kv_head *kv,
    size_t g, size_t d0, size_t D, bool start)
{
    const void *k[AT_G], *v[AT_G];
    vec acc[AT_M][AT_G * LV];

    UNROLL for (size_t i = 0; i < ng; i++)
        v[i] = element(kv->v[g + i], type, kv->v_off + d0 * PF_KV_GROUP);
    UNROLL for (size_t i = 0; i < ng; i++)
        k[i] = element(kv->k[g + i], type, kv->k_off + d0 * PF_KV_GROUP);
    UNROLL for (size_t m = 0; m < mt; m++)
        UNROLL for (size_t i = 0; i < ng * LV; i++)
            acc[m][i] = start ? vset(0) : vload(s + m * PF_KV_BLOCK + i * VW);
    for (size_t d = 0; d < D; d++) {
        vec b[AT_G * LV];

        if (mt == 1) {
            UNROLL for (size_t i = 0; i < ng; i++)
                prefetch(v[i], type, d * PF_KV_GROUP);
        }
        UNROLL for (size_t i = 0; i < ng * LV; i++)
            b[i] = vload_w(k[i / LV], type,
                d * PF_KV_GROUP + i % LV * VW, VW);
        UNROLL for (size_t m = 0; m < mt; m++) {
            vec a = vset(qs[d * mt + m]);

            UNROLL for (size_t i = 0; i < ng * LV; i++)
                acc[m][i] = vfma(a, b[i], acc[m][i]);
        }
    }
    UNROLL for (size_t m = 0; m < mt; m++)
        UNROLL for (size_t i = 0; i < ng * LV; i++)
            vstore(s + m * PF_KV_BLOCK + i * VW, acc[m][i]);
}

INLINE void
scores_of(enum pf_dtype type, size_t mt, float *s, const float *qs,
    const struct pf_kv_head *kv, size_t g, size_t ng, size_t d0, size_t D)
{
    size_t i = 0;

#define SCORES_OF(m, n) \
    scores(m, n, type, s + i * PF_KV_GROUP, qs, kv, g + i, d0, D, d0 == 0)
#define SCORES(m) \
    for (; i + AT_G <= ng; i += AT_G) \
        SCORES_OF(m, AT_G); \
    for (; AT_G > 1 && i < ng; i++) \
        SCORES_OF(m, 1)
    ONE_TO_6(mt, SCORES)
}

static void
block_scores(size_t mt, float *s, const float *qs,
    const struct pf_kv_head *kv, size_t g, size_t ng, size_t d0, size_t D)
{
    if (kv->type == PF_F16)
        scores_of(PF_F16, mt, s, qs, kv, g, ng, d0, D);
    else
        scores_of(PF_F32, mt, s, qs, kv, g, ng, d0, D);
}

/* How many of the n keys at j0 a row sees. */
INLINE size_t
seen_of(size_t seen, size_t j0, size_t n)
{
    return seen < j0 ? 0 : at_most(seen - j0, n);
}

/* Entries j0 .. j0 + n - 1 of the mask's row t; whether any is not -inf. */
static bool
mask_row(float *b, const struct pf_attn_mask *mask, size_t t, size_t j0,
    size_t n)
{
    size_t at = t * mask->row + j0 * mask->column;
    unsigned any = 0;

    if (mask->type == PF_BOOL) {
        const unsigned char *p = (const unsigned char *)mask->data + at;

        if (mask->column == 0)
            any = p[0];
        for (size_t j = 0; mask->column && j < n; j++)
            any |= p[j];
        for (size_t j = 0; j < n; j++)
            b[j] = p[j * mask->column] ? 0 : -__builtin_inff();
    } else {
        const float *p = (const float *)mask->data + at;

        for (size_t j = 0; j < n; j++) {
            b[j] = pf_mask_bias(p[j * mask->column]);
            any |= b[j] != -__builtin_inff();
        }
    }
    return any != 0;
}

/*
 * The mask of a tile, its rows from t on, in the block at j0, of n keys;
 * false if none of the rows may attend to any of them.
 */
static bool
tile_mask(const struct tile *tile, float *b, const struct pf_attn_mask *mask,
    size_t t, size_t j0, size_t n)
{
    bool any = false;

    for (size_t i = 0; i < tile->rows; i++)
        any |= mask_row(b + i * PF_KV_BLOCK, mask, t + i, j0, n);
    return any;
}

static void
add_mask(const struct tile *tile, float *s, const float *b, size_t n)
{
    for (size_t i = 0; i < tile->rows; i++)
        add(s + i * PF_KV_BLOCK, b + i * PF_KV_BLOCK, n);
}

/* Scores become weights, in place; unseen keys get a weight of +0. */
static void
block_weights(struct tile *t, float *s, size_t j0, size_t n)
{
    vec m = vload(t->m), mn, r;

    for (size_t i = 0; i < t->rows; i++) {
        size_t some = seen_of(t->seen[i], j0, n);
        float *si = s + i * PF_KV_BLOCK, mb;
        vec max = vset(PF_ATTN_MAX);

        for (size_t j = 0; j < n; j += VW) {
            vec a = vload(si + j);

            if (some < j + VW) {
                a = vblend_n(a, vset(-__builtin_inff()),
                    some < j ? 0 : some - j);
                vstore(si + j, a);
            }
            max = vmax(a, max);
        }
        mb = vmax_all(max);
        t->m[i] = mb > t->m[i] ? mb : t->m[i];
    }
    mn = vload(t->m);
    r = vexp2(vsub(m, mn));
    vstore(t->r, r);
    for (size_t i = 0; i < t->rows; i++) {
        float *si = s + i * PF_KV_BLOCK;
        vec max = vset(t->m[i]), shrink = vset(t->r[i]);

        UNROLL for (size_t h = 0; h < LV; h++) {
            vec l = vmul(t->l[i][h], shrink);

            for (size_t j = h * VW; j < n; j += PF_LANES) {
                vec p = vexp2(vsub(vload(si + j), max));

                vstore(si + j, p);
                l = vadd(l, p);
            }
            t->l[i][h] = l;
        }
    }
}

/*
 * nv vectors (the last of `last` columns) of the sums of weighted values, over
 * keys `from` .. n - 1 of the block at group g.  There are `groups` in all.
 */
INLINE void
values(const size_t mt, const size_t nv, enum pf_dtype type, size_t last,
    float *restrict out, size_t ldo, const float *restrict p, const float *r,
    const struct pf_kv_head *kv, size_t g, size_t from, size_t n, size_t off,
    size_t Dv, size_t groups)
{
    vec acc[AT_M][AT_V];

    UNROLL for (size_t m = 0; m < mt; m++)
        UNROLL for (size_t i = 0; i < nv; i++)
            acc[m][i] = vmul(vset(r[m]), vload_n(out + m * ldo + i * VW,
                i + 1 < nv ? (size_t)VW : last));
    while (from < n) {
        const void *v = kv->v[g + from / PF_KV_GROUP];
        size_t at = kv->v_off + off + from % PF_KV_GROUP * Dv;
        size_t to = at_most(n, (from / PF_KV_GROUP + 1) * PF_KV_GROUP);
        size_t next = g + from / PF_KV_GROUP + PF_KV_BLOCK / PF_KV_GROUP;
        /* Behind the last block, the first one of the head behind this. */
        const void *k = kv->k[next < groups ? next : from / PF_KV_GROUP];
        size_t ahead = kv->k_off - kv->v_off
            + (next < groups ? 0 : Dv * PF_KV_GROUP);

        for (; from < to; from++, at += Dv) {
            vec b[AT_V];

            if (mt == 1) {
                UNROLL for (size_t i = 0; i < nv; i++)
                    prefetch(k, type, at + ahead + i * VW);
            }

            UNROLL for (size_t i = 0; i < nv; i++)
                b[i] = vload_w(v, type, at + i * VW,
                    i + 1 < nv ? (size_t)VW : last);
            UNROLL for (size_t m = 0; m < mt; m++) {
                vec a = vset(p[m * PF_KV_BLOCK + from]);

                UNROLL for (size_t i = 0; i < nv; i++)
                    acc[m][i] = vfma(a, b[i], acc[m][i]);
            }
        }
    }
    UNROLL for (size_t m = 0; m < mt; m++)
        UNROLL for (size_t i = 0; i < nv; i++)
            vstore_n(out + m * ldo + i * VW, acc[m][i],
                i + 1 < nv ? (size_t)VW : last);
}

#define VALUES(m, nv) \
    if (nv <= AT_V) \
        values(m, nv, type, last, out, ldo, p, r, kv, g, from, n, off, Dv, \
            groups)
#define VALUES_1(m) VALUES(m, 1)
#define VALUES_2(m) VALUES(m, 2)
#define VALUES_3(m) VALUES(m, 3)
#define VALUES_4(m) VALUES(m, 4)

INLINE void
values_of(enum pf_dtype type, size_t mt, float *out, size_t ldo,
    const float *p, const float *r, const struct pf_kv_head *kv, size_t g,
    size_t from, size_t n, size_t Dv, size_t groups)
{
    for (size_t off = 0; off < Dv; off += AT_V * VW, out += AT_V * VW) {
        size_t columns = at_most(Dv - off, AT_V * VW);
        size_t nv = (columns + VW - 1) / VW;
        size_t last = columns - (nv - 1) * VW;

        switch (nv) {
        case 1: ONE_TO_6(mt, VALUES_1) break;
        case 2: ONE_TO_6(mt, VALUES_2) break;
        case 3: ONE_TO_6(mt, VALUES_3) break;
        case 4: ONE_TO_6(mt, VALUES_4) break;
        }
    }
}

static void
block_values(size_t mt, float *out, size_t ldo, const float *p,
    const float *r, const struct pf_kv_head *kv, size_t g, size_t from,
    size_t n, size_t Dv, size_t groups)
{
    if (kv->type == PF_F16)
        values_of(PF_F16, mt, out, ldo, p, r, kv, g, from, n, Dv, groups);
    else
        values_of(PF_F32, mt, out, ldo, p, r, kv, g, from, n, Dv, groups);
}

/*
 * One tile through one block.  Its rows go together over the keys that all of
 * them see and one by one over the few on the diagonal.
 */
static void
tile_values(const struct tile *t, float *out, size_t ldo, const float *p,
    const struct pf_kv_head *kv, size_t j0, size_t n, size_t Dv,
    size_t groups)
{
    const float one = 1;
    size_t g = j0 / PF_KV_GROUP, all = seen_of(t->seen[0], j0, n);

    block_values(t->rows, out, ldo, p, t->r, kv, g, 0, all, Dv, groups);
    for (size_t i = 1; i < t->rows; i++) {
        size_t some = seen_of(t->seen[i], j0, n);

        if (some > all)
            block_values(1, out + i * ldo, ldo, p + i * PF_KV_BLOCK, &one,
                kv, g, all, some, Dv, 0);
    }
}

/*
 * The scores of a tile in the block at j0, of n keys (those any row sees).
 * qs holds the scaled queries if they fit, else is filled piece by piece.
 */
static void
tile_scores(const struct tile *t, float *s, float *qs, const float *q,
    size_t ldq, const struct pf_kv_head *kv, size_t j0, size_t n, size_t D,
    float c)
{
    size_t ng = (n + PF_KV_GROUP - 1) / PF_KV_GROUP;

    for (size_t d = 0; d < D; d += AT_D) {
        size_t dn = at_most(D - d, AT_D);

        if (D > AT_D)
            scale_queries(qs, q + d, ldq, t->rows, dn, c);
        block_scores(t->rows, s, qs, kv, j0 / PF_KV_GROUP, ng, d, dn);
    }
}

INLINE float
tile_sum(const struct tile *t, size_t row)
{
    float sum = fold1(t->l[row]);

    return sum == 0 ? 1 : sum;
}

/* Rows t0 .. t0 + T - 1 of a call; mask may be NULL. */
static void
attn_rows(float *out, size_t ldo, const float *q, size_t ldq,
    const struct pf_kv_head *kv, const struct pf_attn_mask *mask, size_t t0,
    size_t T, size_t D, size_t Dv, size_t seen, size_t step, float c)
{
    struct tile tiles[AT_ROWS / AT_M];
    float qs[AT_ROWS * AT_D], s[AT_M * PF_KV_BLOCK], b[AT_BIAS];
    size_t most = seen + (T - 1) * step;

    for (size_t t = 0, i = 0; t < T; t += tiles[i++].rows) {
        tile_start(&tiles[i], part(T - t, AT_M), seen + t * step, step);
        if (D <= AT_D)
            scale_queries(qs + t * AT_D, q + t * ldq, ldq, tiles[i].rows, D,
                c);
    }
    for (size_t t = 0; t < T; t++)
        memset(out + t * ldo, 0, Dv * sizeof *out);
    for (size_t j0 = 0; j0 < most; j0 += PF_KV_BLOCK) {
        for (size_t t = 0, i = 0; t < T; t += tiles[i++].rows) {
            size_t n = seen_of(tiles[i].seen[tiles[i].rows - 1], j0,
                PF_KV_BLOCK);

            if (n == 0 || (mask
                && !tile_mask(&tiles[i], b, mask, t0 + t, j0, n)))
                continue;
            tile_scores(&tiles[i], s, qs + t * AT_D, q + t * ldq, ldq, kv,
                j0, n, D, c);
            if (mask)
                add_mask(&tiles[i], s, b, n);
            block_weights(&tiles[i], s, j0, n);
            tile_values(&tiles[i], out + t * ldo, ldo, s, kv, j0, n, Dv,
                (most + PF_KV_GROUP - 1) / PF_KV_GROUP);
        }
    }
    for (size_t t = 0, i = 0; t < T; t += tiles[i++].rows) {
        for (size_t row = 0; row < tiles[i].rows; row++) {
            float *o = out + (t + row) * ldo;
            vec sum = vset(tile_sum(&tiles[i], row));

            for (size_t d = 0; d < Dv; d += VW)
                vstore_n(o + d, vdiv(vload_n(o + d, Dv - d), sum), Dv - d);
        }
    }
}

INLINE void
attn_all(float *out, size_t ldo, const float *q, size_t ldq,
    const struct pf_kv_head *kv, const struct pf_attn_mask *mask, size_t T,
    size_t D, size_t Dv, size_t seen, size_t step, float scale)
{
    float c = (float)((double)scale * PF_LOG2E);

    for (size_t t = 0, rows; t < T; t += rows) {
        rows = at_most(T - t, AT_ROWS);
        attn_rows(out + t * ldo, ldo, q + t * ldq, ldq, kv, mask, t, rows, D,
            Dv, seen + t * step, step, c);
    }
}

static void
attn(float *out, size_t ldo, const float *q, size_t ldq,
    const struct pf_kv_head *kv, size_t T, size_t D, size_t Dv, size_t seen,
    size_t step, float scale)
{
    attn_all(out, ldo, q, ldq, kv, NULL, T, D, Dv, seen, step, scale);
}

static void
attn_masked(float *out, size_t ldo, const float *q, size_t ldq,
    const struct pf_kv_head *kv, const struct pf_attn_mask *mask, size_t T,
    size_t D, size_t Dv, size_t S, float scale)
{
    attn_all(out, ldo, q, ldq, kv, mask, T, D, Dv, S, 0, scale);
}

static void
weights_rows(float *w, size_t ldw, const float *q, size_t ldq,
    const struct pf_kv_head *kv, const struct pf_attn_mask *mask, size_t t0,
    size_t rows, size_t D, size_t S, size_t seen, size_t step, float c)
{
    struct tile t;
    float qs[AT_M * AT_D], s[AT_M * PF_KV_BLOCK], b[AT_BIAS];
    size_t most = seen + (rows - 1) * step;

    tile_start(&t, rows, seen, step);
    if (D <= AT_D)
        scale_queries(qs, q, ldq, rows, D, c);
    for (size_t j0 = 0; j0 < most; j0 += PF_KV_BLOCK) {
        size_t n = at_most(most - j0, PF_KV_BLOCK);

        tile_scores(&t, s, qs, q, ldq, kv, j0, n, D, c);
        if (mask) {
            tile_mask(&t, b, mask, t0, j0, n);
            add_mask(&t, s, b, n);
        }
        for (size_t i = 0; i < rows; i++)
            memcpy(w + i * ldw + j0, s + i * PF_KV_BLOCK,
                seen_of(t.seen[i], j0, n) * sizeof *s);
        block_weights(&t, s, j0, n);
    }
    for (size_t i = 0; i < rows; i++, w += ldw) {
        vec m = vset(t.m[i]), sum = vset(tile_sum(&t, i));
        size_t n = t.seen[i];

        for (size_t j = 0; j < n; j += VW)
            vstore_n(w + j, vdiv(vexp2(vsub(vload_n(w + j, n - j), m)), sum),
                n - j);
        memset(w + n, 0, (S - n) * sizeof *w);
    }
}

INLINE void
weights_all(float *w, size_t ldw, const float *q, size_t ldq,
    const struct pf_kv_head *kv, const struct pf_attn_mask *mask, size_t T,
    size_t D, size_t S, size_t seen, size_t step, float scale)
{
    float c = (float)((double)scale * PF_LOG2E);

    for (size_t t = 0, rows; t < T; t += rows) {
        rows = part(T - t, AT_M);
        weights_rows(w + t * ldw, ldw, q + t * ldq, ldq, kv, mask, t, rows, D,
            S, seen + t * step, step, c);
    }
}

static void
attn_weights(float *w, size_t ldw, const float *q, size_t ldq,
    const struct pf_kv_head *kv, size_t T, size_t D, size_t S, size_t seen,
    size_t step, float scale)
{
    weights_all(w, ldw, q, ldq, kv, NULL, T, D, S, seen, step, scale);
}

static void
attn_masked_weights(float *w, size_t ldw, const float *q, size_t ldq,
    const struct pf_kv_head *kv, const struct pf_attn_mask *mask, size_t T,
    size_t D, size_t S, float scale)
{
    weights_all(w, ldw, q, ldq, kv, mask, T, D, S, S, 0, scale);
}
