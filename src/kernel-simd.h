/*
 * The kernels once for every vector width: included by a file that defines
 * vec, its VW elements, a few operations on it and tile sizes (kernel-avx2.c,
 * kernel-avx512.c).
 *
 * Each output keeps the chain of operations that kernel.h gives it; all that
 * is chosen here is which chains run side by side.  A tile is a set of outputs
 * whose accumulators stay in registers (Goto and van de Geijn 2008): its body
 * is inlined once for each of its sizes, edge tiles included, and a vector
 * that stands over an edge is loaded and stored in part.
 *
 * Products with w of [K, N].  Many rows of x: panels of a tile's width and so
 * many rows of w are widened into memory of their own (192 KiB of stack), and
 * all rows of x pass over them; the chains wait in y between panels.  Where
 * panels come one by one, the first tile of rows makes its own, and the last
 * ones fetch for the next.  Few rows
 * would not pay for that copy: they take K_PASS rows of w a pass, each w read
 * once and in order, and the chains wait in memory that is compact, whatever
 * the stride of y (up to 48 KiB of stack).  Where there are registers for it, a
 * number of x meets NN_WIDE vectors of w.
 *
 * What is fastest beyond that differs between families of processors, and is
 * the choice of a table (struct tuning).  Intel's (measured: Emerald Rapids)
 * read fastest in long runs, fetch best into all caches, and like panels of
 * long chains, that come from the second level cache.  AMD's (measured: an EPYC
 * with AVX-512) look ahead farthest with nothing to do but what w brings, so
 * that the chains of a single row of x, NN_ONE vectors at a time, wait nowhere;
 * and what is fetched ahead is best kept out of the second level cache, through
 * which it would only pass: two threads read up to a quarter faster for that,
 * where Intel's would read at half their speed.
 *
 * Products with w of [N, K] read w where it lies, a tile's columns being as
 * many streams far apart: a processor fetches those ahead better than
 * neighbours.  Many rows of x take it in blocks that fit the second level
 * cache.  The arithmetic between two loads keeps the processor from looking far
 * enough ahead by itself: the first rows fetch some KiB ahead of where they
 * read, less than what the first level cache holds (of F16 and many rows, where
 * a block is short, the last rows fetch the next block).
 *
 * Attention takes up to AT_ROWS query rows through a block of 64 keys before
 * the next block (Dao et al. 2022), AT_M rows at a time; the sums of weighted
 * values wait in the output.  Sixteen keys lie side by side, so that a vector
 * of scores is a chain like that of any matmul.  Keys and values of F16 are
 * widened as they are loaded, once for the rows of a tile.  A single row waits
 * for memory more than it computes: while it makes the scores of a block, it
 * fetches the values, and over these the next block's keys.
 */

enum {
    LV = PF_LANES / VW, /* vectors to a set of lanes */
    NN_PANEL = NN_V * VW, /* [K, N]: columns of a panel */
    NN_ROOM = 1024,     /* rows of the panels side by side, added up */
    NN_AHEAD = 8,       /* rows fetched ahead while packing them, */
    NN_BEFORE = 16,     /* and while the first tile does */
    NN_SUMS = 8192,     /* outputs of theirs at a time */
    K_STEP = 16,        /* rows of a panel between fetches for the next one */
    K_PASS = 8,         /* rows of w a pass */
    NN_NEAR = 256,      /* elements fetched ahead in them, of F32; */
    NN_STREAM = 1 << 14, /* bytes of a stream fetched ahead of them */
    NN_ROWS = 4,        /* rows of F32, of F16 twice as many, for one of x */
    K_RUN = 64,         /* elements of x side by side */
    NT_BLOCK = 48,      /* [N, K]: rows of w to a block */
    NT_NEAR = 512,      /* elements of F32 fetched ahead of a stream */
    NT_FAR = 1536,      /* and of F16, for few rows of x */
    NT_COLD = 1 << 18,  /* elements that no cache is trusted to hold */
    AT_M = 6,           /* query rows to a tile */
    AT_ROWS = 8 * AT_M,
    AT_D = 128,         /* dimensions of q scaled beforehand */
    AT_BIAS = AT_M * PF_KV_BLOCK,
};

/*
 * What suits one family of processors better than another; the numbers are
 * the same.
 */
struct tuning {
    bool past;    /* what is read once is fetched past the second level cache */
    bool columns; /* [K, N]: a single row of x takes columns, not rows, of w */
    size_t few;   /* up to so many rows of x are few */
    size_t panels, panel_rows; /* side by side, at most NN_ROOM rows of them */
};

/* Loops that have to vanish, or the accumulators are no registers. */
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

#define ONE_TO_6(i, f) \
    switch (i) { \
    case 1: f(1); break; \
    case 2: f(2); break; \
    case 3: f(3); break; \
    case 4: f(4); break; \
    case 5: f(5); break; \
    case 6: f(6); break; \
    }

#define ONE_TO_8(i, f) \
    switch (i) { \
    case 7: f(7); break; \
    case 8: f(8); break; \
    default: ONE_TO_6(i, f) \
    }

INLINE size_t
at_most(size_t n, size_t max)
{
    return n < max ? n : max;
}

/* The first of the parts of n, none over max, that differ by at most one. */
INLINE size_t
part(size_t n, size_t max)
{
    size_t parts = (n + max - 1) / max;

    return (n + parts - 1) / parts;
}

INLINE vec
vload_w(const void *w, enum pf_dtype type, size_t i, size_t n)
{
    switch (type) {
    case PF_F16: return vload_f16((const uint16_t *)w + i, n);
    case PF_BF16: return vload_bf16((const uint16_t *)w + i, n);
    default:
        return n < VW ? vload_n((const float *)w + i, n)
                      : vload((const float *)w + i);
    }
}

INLINE float
fold1(const vec *s)
{
    return _mm_cvtss_f32(fold4(s, s, s, s));
}

INLINE const void *
element(const void *w, enum pf_dtype type, size_t i)
{
    return (const char *)w + i * (type == PF_F32 ? 4 : 2);
}

INLINE void
prefetch(const void *w, enum pf_dtype type, size_t i)
{
    __builtin_prefetch(element(w, type, i));
}

/* Of what is read once: with `past`, past the second level cache. */
INLINE void
prefetch_once(const bool past, const void *w, enum pf_dtype type, size_t i)
{
    if (past)
        __builtin_prefetch(element(w, type, i), 0, 0);
    else
        prefetch(w, type, i);
}

/* Vectors of w that share a cache line. */
INLINE size_t
vectors_a_line(enum pf_dtype type)
{
    return 64 / VW / (type == PF_F32 ? 4 : 2);
}

/* --- y = x w, w of [K, N]. */

/* Rows of w to be fetched, `bytes` of each: n in all, or of them so many in
 * each K_STEP rows of a tile. */
struct rows {
    const char *at;
    size_t bytes, stride, n, a_step;
};

/* K rows of a panel, or with `first` of w and into the panel, for a tile. */
INLINE void
nn_run(const size_t mt, const size_t nv, size_t last, vec (*acc)[NN_V],
    const float *restrict x, size_t ldx, float *restrict panel, size_t K,
    const bool first, enum pf_dtype type, const void *w, size_t N)
{
    for (size_t k = 0; k < K; k++, panel += NN_PANEL) {
        vec wk[NN_V];

        UNROLL for (size_t v = 0; v < nv; v++) {
            if (first) {
                prefetch(w, type, (k + NN_BEFORE) * N + v * VW);
                vstore(panel + v * VW, vload_w(w, type, k * N + v * VW,
                    v + 1 < nv ? (size_t)VW : last));
            }
            wk[v] = vload(panel + v * VW);
        }
        UNROLL for (size_t m = 0; m < mt; m++) {
            vec a = vset(x[m * ldx + k]);

            UNROLL for (size_t v = 0; v < nv; v++)
                acc[m][v] = vfma(a, wk[v], acc[m][v]);
        }
    }
}

/*
 * An nn_tile is mt rows by nv vectors, the last of them of `last` columns;
 * w is a panel of nv vectors a row.  Meanwhile the rows `next` come into the
 * second level cache, a few at a time, so that the panel's own way is free.
 * With `first`, the tile makes the panel of rows of w of that type, N apart.
 */
INLINE void
nn_tile(const size_t mt, const size_t nv, size_t last, float *restrict y,
    size_t ldy, const float *restrict x, size_t ldx, float *restrict panel,
    size_t K, bool start, const float *bias, const struct rows *next,
    const bool first, enum pf_dtype type, const void *w, size_t N)
{
    const char *fetch = next->at;
    size_t k = 0;
    vec acc[NN_M][NN_V], b;

    UNROLL for (size_t m = 0; m < mt; m++) {
        UNROLL for (size_t v = 0; v < nv; v++) {
            acc[m][v] = vset(0);
            if (!start)
                acc[m][v] = vload_n(y + m * ldy + v * VW,
                    v + 1 < nv ? (size_t)VW : last);
        }
    }
    for (; next->a_step && k + K_STEP < K; k += K_STEP) {
        for (size_t r = 0; r < next->a_step; r++, fetch += next->stride)
            for (size_t i = 0; i < next->bytes; i += 64)
                __builtin_prefetch(fetch + i, 0, 2);
        nn_run(mt, nv, last, acc, x + k, ldx, panel + k * NN_PANEL, K_STEP,
            false, PF_F32, NULL, 0);
    }
    nn_run(mt, nv, last, acc, x + k, ldx, panel + k * NN_PANEL, K - k, first,
        type, w, N);
    UNROLL for (size_t v = 0; v < nv; v++) {
        size_t n = v + 1 < nv ? (size_t)VW : last;

        if (bias)
            b = vload_n(bias + v * VW, n);
        UNROLL for (size_t m = 0; m < mt; m++) {
            if (bias)
                acc[m][v] = vadd(acc[m][v], b);
            vstore_n(y + m * ldy + v * VW, acc[m][v], n);
        }
    }
}

#define NN_TILES(nv) \
    static void \
    nn_tile_##nv(size_t mt, size_t last, float *y, size_t ldy, \
        const float *x, size_t ldx, float *panel, size_t K, \
        bool start, const float *bias, const struct rows *next) \
    { \
        ONE_TO_8(mt, NN_TILE_##nv) \
    }
#define NN_TILE(mt, nv) \
    if (mt <= NN_M) \
        nn_tile(mt, nv, last, y, ldy, x, ldx, panel, K, start, bias, next, \
            false, PF_F32, NULL, 0)
#define NN_TILE_1(mt) NN_TILE(mt, 1)
#define NN_TILE_2(mt) NN_TILE(mt, 2)
#define NN_TILE_3(mt) NN_TILE(mt, 3)

NN_TILES(1)
NN_TILES(2)
NN_TILES(3)

/* The last tiles, as many as it takes, fetch the rows `next`. */
static void
nn_panel(float *y, size_t ldy, const float *x, size_t ldx, float *panel,
    size_t M, size_t K, size_t columns, bool start, const float *bias,
    struct rows next)
{
    size_t nv = (columns + VW - 1) / VW, last = columns - (nv - 1) * VW;
    size_t steps = K > 0 ? (K - 1) / K_STEP : 0;
    size_t tiles = (M + NN_M - 1) / NN_M, all = steps * tiles;
    size_t a_step = all > 0 ? (next.n + all - 1) / all : 0;
    size_t a_tile = steps * a_step;

    for (size_t m = 0, mt; m < M; m += mt, y += mt * ldy, x += mt * ldx) {
        mt = part(M - m, NN_M);
        if (next.a_step)
            next.at += a_tile * next.stride;
        else if (tiles * a_tile < next.n + a_tile)
            next.a_step = a_step;
        tiles--;
        if (nv == 3)
            nn_tile_3(mt, last, y, ldy, x, ldx, panel, K, start, bias,
                &next);
        else if (nv == 2)
            nn_tile_2(mt, last, y, ldy, x, ldx, panel, K, start, bias,
                &next);
        else
            nn_tile_1(mt, last, y, ldy, x, ldx, panel, K, start, bias,
                &next);
    }
}

/* kn rows of `columns` of w, in panels of NN_PANEL. */
INLINE void
nn_pack(float *panels, const void *w, enum pf_dtype type, size_t i, size_t N,
    size_t kn, size_t columns)
{
    for (size_t k = 0; k < kn; k++, i += N) {
        size_t ahead = k + NN_AHEAD < kn ? NN_AHEAD * N : 0;

        for (size_t n = 0, v = 0; n < columns; n += VW, v++) {
            float *to = panels + (v / NN_V * kn + k) * NN_PANEL
                + v % NN_V * VW;
            prefetch(w, type, i + n + ahead);
            vstore(to, vload_w(w, type, i + n, at_most(columns - n, VW)));
        }
    }
}

/* The first NN_M rows of x, which make the panel. */
INLINE void
nn_first(enum pf_dtype type, float *y, size_t ldy, const float *x, size_t ldx,
    float *panel, const void *w, size_t K, size_t N, size_t columns,
    bool start, const float *bias)
{
    const struct rows none = { 0 };
    size_t nv = (columns + VW - 1) / VW, last = columns - (nv - 1) * VW;

#define NN_FIRST(nv) \
    nn_tile(NN_M, nv, last, y, ldy, x, ldx, panel, K, start, bias, &none, \
        true, type, w, N)
    if (nv == 3)
        NN_FIRST(3);
    else if (nv == 2)
        NN_FIRST(2);
    else
        NN_FIRST(1);
#undef NN_FIRST
}

/* What follows the panel that ends at row k and has `columns` from n on. */
INLINE struct rows
nn_after(const struct tuning *t, enum pf_dtype type, const void *w, size_t k,
    size_t K, size_t n, size_t columns, size_t N, size_t n1)
{
    size_t size = type == PF_F32 ? 4 : 2;

    if (k == K) {
        k = 0;
        n += columns;
    }
    if (t->panels > 1 || n >= n1)
        return (struct rows){ 0 };
    columns = at_most(n1 - n, NN_PANEL);
    return (struct rows){ element(w, type, k * N + n), columns * size,
        N * size, at_most(K - k, t->panel_rows), 0 };
}

INLINE void
nn_many(const struct tuning *t, enum pf_dtype type, float *y, size_t ldy,
    const float *x, size_t ldx, const void *w, const float *bias, size_t M,
    size_t K, size_t N, size_t n0, size_t n1)
{
    _Alignas(64) float panels[NN_ROOM * NN_PANEL];

    for (size_t n = n0, columns; n < n1; n += columns) {
        size_t k = 0;

        columns = at_most(n1 - n, t->panels * NN_PANEL);
        do {
            size_t kn = at_most(K - k, t->panel_rows), m = 0;
            const float *b = bias && k + kn == K ? bias + n : NULL;

            if (t->panels == 1) {
                m = NN_M;
                nn_first(type, y + n, ldy, x + k, ldx, panels,
                    element(w, type, k * N + n), kn, N, columns, k == 0, b);
            } else {
                nn_pack(panels, w, type, k * N + n, N, kn, columns);
            }
            for (size_t j = 0; j < columns; j += NN_PANEL)
                nn_panel(y + m * ldy + n + j, ldy, x + m * ldx + k, ldx,
                    panels + j * kn, M - m, kn,
                    at_most(columns - j, NN_PANEL), k == 0, b ? b + j : NULL,
                    nn_after(t, type, w, k + kn, K, n, columns, N, n1));
            k += kn;
        } while (k < K);
    }
}

/* kt rows of w, nv vectors of columns (n real ones of the last), in M rows of
 * sums. */
INLINE void
nn_step(size_t M, const size_t kt, const size_t nv, enum pf_dtype type,
    size_t n, float *restrict sums, size_t lds, const float *restrict x,
    size_t ldx, const void *restrict w, size_t i, size_t N)
{
    vec wk[K_PASS][NN_WIDE];

    UNROLL for (size_t k = 0; k < kt; k++)
        UNROLL for (size_t v = 0; v < nv; v++)
            wk[k][v] = vload_w(w, type, i + k * N + v * VW,
                v + 1 < nv ? (size_t)VW : n);
    for (size_t m = 0; m < M; m++, x += ldx, sums += lds) {
        vec acc[NN_WIDE];

        UNROLL for (size_t v = 0; v < nv; v++)
            acc[v] = vload(sums + v * VW);
        UNROLL for (size_t k = 0; k < kt; k++) {
            vec a = vset(x[k]);

            UNROLL for (size_t v = 0; v < nv; v++)
                acc[v] = vfma(a, wk[k][v], acc[v]);
        }
        UNROLL for (size_t v = 0; v < nv; v++)
            vstore(sums + v * VW, acc[v]);
    }
}

/* What a pass fetches, in elements from its first row on: rows `apart`. */
struct fetch {
    size_t at, apart;
};

/*
 * In the pass at row k: the next K_PASS rows, if there are so many; or, with
 * `row` bytes a row and all of it read, K_PASS rows of those after next, so far
 * apart that each goes on for NN_STREAM bytes from one pass to the next.  The
 * processor looks ahead in each of so many streams by itself, too; in short
 * rows side by side it does not see them.  What lies behind the last row, most
 * often the weights to be read next, is fetched as well.
 */
INLINE struct fetch
nn_ahead(size_t k, size_t K, size_t N, size_t row)
{
    size_t pass = k / K_PASS, run;

    if (row == 0)
        return (struct fetch){ k + 2 * K_PASS <= K ? K_PASS * N : 0, N };
    run = 1 + NN_STREAM / row;
    return (struct fetch){ ((pass / run + 1) * run * K_PASS + pass % run - k)
        * N, run * N };
}

/*
 * kt rows of w.  What is fetched ahead of F32 lies a little ahead in these
 * rows, near their end in the next ones; of types whose rows are short, always
 * where `ahead` says.  For one row of x and F32 the processor does better by
 * itself.
 */
INLINE void
nn_pass(size_t M, const size_t kt, bool past, enum pf_dtype type,
    float *restrict sums, size_t lds, const float *restrict x, size_t ldx,
    const void *restrict w, size_t i, size_t N, size_t columns,
    struct fetch ahead)
{
    size_t n;

#define NN_FETCH(hint) \
    UNROLL for (size_t k = 0; k < kt; k++) \
        for (size_t v = 0; v < NN_WIDE; v += vectors_a_line(type)) \
            __builtin_prefetch(element(w, type, \
                i + n + v * VW + k * ahead.apart + next), 0, hint)
#define NN_STEP(nv, last) \
    nn_step(M, kt, nv, type, last, sums + n, lds, x, ldx, w, i + n, N)
    for (n = 0; n + NN_WIDE * VW <= columns; n += NN_WIDE * VW) {
        size_t next = ahead.at;

        if (type == PF_F32)
            next = n + NN_NEAR < columns ? NN_NEAR
                : ahead.at + NN_NEAR - columns;
        if (M > 1 || type != PF_F32) {
            if (past)
                NN_FETCH(0);
            else if (ahead.apart == N)
                NN_FETCH(3);
            else
                NN_FETCH(2);
        }
        NN_STEP(NN_WIDE, VW);
    }
    for (; n + VW <= columns; n += VW)
        NN_STEP(1, VW);
    if (n < columns)
        NN_STEP(1, columns - n);
#undef NN_STEP
#undef NN_FETCH
}

static void
nn_store(float *y, size_t ldy, const float *sums, size_t lds,
    const float *bias, size_t M, size_t columns)
{
    for (size_t m = 0; m < M; m++, y += ldy, sums += lds) {
        for (size_t n = 0; n < columns; n += VW) {
            vec a = vload(sums + n);

            if (bias)
                a = vadd(a, vload_n(bias + n, columns - n));
            vstore_n(y + n, a, columns - n);
        }
    }
}

/*
 * K_RUN elements of M rows of x, row by row.  Many rows that stand some
 * multiple of 2 KiB apart would drive each other out of the first level cache.
 */
INLINE void
nn_gather(float *run, const float *x, size_t ldx, size_t M)
{
    for (size_t m = 0; m < M; m++)
        for (size_t k = 0; k < K_RUN; k += VW)
            vstore(run + m * K_RUN + k, vload(x + m * ldx + k));
}

INLINE void
nn_few(bool past, enum pf_dtype type, float *y, size_t ldy, const float *x,
    size_t ldx, const void *w, const float *bias, size_t M, size_t K,
    size_t N, size_t n0, size_t n1)
{
    _Alignas(64) float sums[NN_SUMS], run[NN_FEW * K_RUN];

    for (size_t n = n0, columns; n < n1; n += columns) {
        size_t lds, row = 0, k = 0;

        columns = at_most(n1 - n, NN_SUMS / M / VW * VW);
        if (!past && type != PF_F32 && columns == N)
            row = 2 * N;
        lds = (columns + VW - 1) / VW * VW;
        memset(sums, 0, M * lds * sizeof *sums);
        for (; M > K_PASS && ldx % 512 == 0 && k + K_RUN <= K; k += K_RUN) {
            nn_gather(run, x + k, ldx, M);
            for (size_t i = 0; i < K_RUN; i += K_PASS)
                nn_pass(M, K_PASS, past, type, sums, lds, run + i, K_RUN, w,
                    (k + i) * N + n, N, columns,
                    nn_ahead(k + i, K, N, row));
        }
        for (; k + K_PASS <= K; k += K_PASS)
            nn_pass(M, K_PASS, past, type, sums, lds, x + k, ldx, w,
                k * N + n, N, columns, nn_ahead(k, K, N, row));
        for (; k < K; k++)
            nn_pass(M, 1, past, type, sums, lds, x + k, ldx, w, k * N + n,
                N, columns, (struct fetch){ 0, N });
        nn_store(y + n, ldy, sums, lds, bias ? bias + n : NULL, M, columns);
    }
}

#if NN_ONE
/*
 * How many of nv vectors of columns, `last` columns in the last one, come in
 * pairs: two vectors of BF16 are widened by half as many operations if one has
 * the columns of even number and the other the odd ones.
 */
INLINE size_t
nn_paired(const size_t nv, size_t last, enum pf_dtype type)
{
    return type == PF_BF16 ? (last < VW ? nv - 1 : nv) / 2 * 2 : 0;
}

/*
 * One row of x and nv vectors of columns, `last` columns of the last one, over
 * K rows of `row` bytes; with `fetch`, K rows from `next` on are fetched.
 */
INLINE void
nn_one_rows(const size_t nv, size_t last, enum pf_dtype type, vec *acc,
    const float *restrict x, const char *restrict w, size_t K, size_t row,
    bool fetch, const char *next)
{
    bool across = (uintptr_t)w % 64 != 0; /* rows begin and end within lines */

    for (size_t k = 0; k < K; k++, w += row, next += row) {
        vec a = vset(x[k]);

        /* One register for what is fetched: of an address each there would be
         * too many, and a load of one from the stack waits behind w. */
        __asm__("" : "+r"(next));
        UNROLL for (size_t v = 0; v < nv; v++) {
            if (fetch && v % vectors_a_line(type) == 0)
                prefetch_once(true, next, type, v * VW);
            if (v >= nn_paired(nv, last, type)) {
                acc[v] = vfma(a, vload_w(w, type, v * VW,
                    v + 1 < nv ? (size_t)VW : last), acc[v]);
            } else if (v % 2 == 0) {
                vec even, odd;

                vload_bf16_apart(element(w, type, v * VW), &even, &odd);
                acc[v] = vfma(a, even, acc[v]);
                acc[v + 1] = vfma(a, odd, acc[v + 1]);
            }
        }
        if (fetch && across)
            prefetch_once(true, next, type, nv * VW - 1);
    }
}

/* The last rows of a panel fetch the first ones of the panel beside it. */
INLINE void
nn_one_panel(const size_t nv, size_t last, enum pf_dtype type,
    float *restrict y, const float *restrict x, const char *restrict w,
    const float *bias, size_t K, size_t N, bool beside)
{
    const size_t rows = type == PF_F32 ? NN_ROWS : 2 * NN_ROWS;
    size_t row = N * (type == PF_F32 ? 4 : 2), k = K > rows ? K - rows : 0;
    vec acc[NN_ONE];

    UNROLL for (size_t v = 0; v < nv; v++)
        acc[v] = vset(0);
    nn_one_rows(nv, last, type, acc, x, w, k, row, true, w + rows * row);
    nn_one_rows(nv, last, type, acc, x + k, w + k * row, K - k, row,
        k > 0 && beside, element(w, type, nv * VW));
    UNROLL for (size_t v = 0; v < nn_paired(nv, last, type); v += 2)
        vzip(&acc[v], &acc[v + 1]);
    UNROLL for (size_t v = 0; v < nv; v++) {
        size_t n = v + 1 < nv ? (size_t)VW : last;

        if (bias)
            acc[v] = vadd(acc[v], vload_n(bias + v * VW, n));
        vstore_n(y + v * VW, acc[v], n);
    }
}

/* Not inlined: the loops would have to share their registers with others. */
#define NN_ONE_TYPE(name, type) \
    static __attribute__((noinline)) void \
    name(float *y, const float *x, const void *w, const float *bias, \
        size_t K, size_t N, size_t n0, size_t n1) \
    { \
        for (size_t n = n0, nv; n < n1; n += nv * VW) { \
            nv = at_most((n1 - n) / VW, NN_ONE); \
            nv -= nv > 4 ? nv % 4 : 0; \
            switch (nv) { \
            case 24: NN_ONE_PANEL(24, VW, type); break; \
            case 20: NN_ONE_PANEL(20, VW, type); break; \
            case 16: NN_ONE_PANEL(16, VW, type); break; \
            case 12: NN_ONE_PANEL(12, VW, type); break; \
            case 8: NN_ONE_PANEL(8, VW, type); break; \
            case 4: NN_ONE_PANEL(4, VW, type); break; \
            case 3: NN_ONE_PANEL(3, VW, type); break; \
            case 2: NN_ONE_PANEL(2, VW, type); break; \
            case 1: NN_ONE_PANEL(1, VW, type); break; \
            default: NN_ONE_PANEL(1, n1 - n, type); return; \
            } \
        } \
    }
#define NN_ONE_PANEL(nv, last, type) \
    nn_one_panel(nv, last, type, y + n, x, element(w, type, n), \
        bias ? bias + n : NULL, K, N, n + nv * VW < n1)

NN_ONE_TYPE(nn_one_f32, PF_F32)
NN_ONE_TYPE(nn_one_f16, PF_F16)
NN_ONE_TYPE(nn_one_bf16, PF_BF16)

INLINE void
nn_one(enum pf_dtype type, float *y, const float *x, const void *w,
    const float *bias, size_t K, size_t N, size_t n0, size_t n1)
{
    switch (type) {
    case PF_F16: nn_one_f16(y, x, w, bias, K, N, n0, n1); break;
    case PF_BF16: nn_one_bf16(y, x, w, bias, K, N, n0, n1); break;
    default: nn_one_f32(y, x, w, bias, K, N, n0, n1);
    }
}
#endif

INLINE void
nn_rows(const struct tuning *t, enum pf_dtype type, float *y, size_t ldy,
    const float *x, size_t ldx, const void *w, const float *bias, size_t M,
    size_t K, size_t N, size_t n0, size_t n1)
{
#if NN_ONE
    if (M == 1 && t->columns) {
        nn_one(type, y, x, w, bias, K, N, n0, n1);
        return;
    }
#endif
    if (M <= t->few)
        nn_few(t->past, type, y, ldy, x, ldx, w, bias, M, K, N, n0, n1);
    else
        nn_many(t, type, y, ldy, x, ldx, w, bias, M, K, N, n0, n1);
}

#define NN_TYPE(name, type) \
    static void \
    name(const struct tuning *t, float *y, size_t ldy, const float *x, \
        size_t ldx, const void *w, const float *bias, size_t M, size_t K, \
        size_t N, size_t n0, size_t n1) \
    { \
        nn_rows(t, type, y, ldy, x, ldx, w, bias, M, K, N, n0, n1); \
    }

NN_TYPE(nn_f32, PF_F32)
NN_TYPE(nn_f16, PF_F16)
NN_TYPE(nn_bf16, PF_BF16)

static void
nn(const struct tuning *t, float *y, size_t ldy, const float *x, size_t ldx,
    const void *w, enum pf_dtype type, const float *bias, size_t M, size_t K,
    size_t N, size_t n0, size_t n1)
{
    switch (type) {
    case PF_F16:
        nn_f16(t, y, ldy, x, ldx, w, bias, M, K, N, n0, n1);
        break;
    case PF_BF16:
        nn_bf16(t, y, ldy, x, ldx, w, bias, M, K, N, n0, n1);
        break;
    default:
        nn_f32(t, y, ldy, x, ldx, w, bias, M, K, N, n0, n1);
    }
}

/* --- y = x w', w of [N, K]. */

/* Sixteen elements of k, the first n of them real, further in all lanes. */
INLINE void
nt_step(const size_t mt, const size_t nt, vec (*acc)[NT_ONE][LV],
    enum pf_dtype type, const float *x, size_t ldx, const void *w, size_t ldw,
    size_t k, size_t n)
{
    UNROLL for (size_t h = 0; h < LV; h++) {
        size_t from = k + h * VW, some = n < h * VW ? 0 : n - h * VW;
        vec b[NT_ONE];

        UNROLL for (size_t j = 0; j < nt; j++)
            b[j] = vload_w(w, type, j * ldw + from, some);
        UNROLL for (size_t m = 0; m < mt; m++) {
            const float *xm = x + m * ldx + from;
            vec a = some < VW ? vload_n(xm, some) : vload(xm);

            UNROLL for (size_t j = 0; j < nt; j++)
                acc[m][j][h] = vfma(a, b[j], acc[m][j][h]);
        }
    }
}

/*
 * One row of x, as far as K fills lines: each of nt streams in turn takes a
 * line, and fetches the one that lies `ahead`.  Returns where they stopped.
 */
INLINE size_t
nt_lines(const size_t nt, const bool past, vec (*acc)[LV], enum pf_dtype type,
    const float *restrict x, const void *restrict w, size_t dw, size_t K,
    size_t ahead)
{
    const size_t line = VW * vectors_a_line(type);
    size_t k = 0;

    for (; k + line <= K; k += line) {
        UNROLL for (size_t j = 0; j < nt; j++) {
            prefetch_once(past, w, type, j * dw + k + ahead);
            UNROLL for (size_t i = 0; i < line; i += VW)
                acc[j][i / VW % LV] = vfma(vload(x + k + i),
                    vload_w(w, type, j * dw + k + i, VW), acc[j][i / VW % LV]);
        }
    }
    return k;
}

/*
 * An nt_tile is mt rows by nt columns that stand dy apart, dw in w.  What lies
 * `ahead` is fetched, unless that is 0.
 */
INLINE void
nt_tile(const size_t mt, const size_t nt, bool past, enum pf_dtype type,
    float *y, size_t ldy, size_t dy, const float *restrict x, size_t ldx,
    const void *restrict w, size_t dw, const float *bias, size_t K,
    size_t ahead)
{
    vec acc[NT_M][NT_ONE][LV];
    size_t k = 0;

    UNROLL for (size_t m = 0; m < mt; m++)
        UNROLL for (size_t j = 0; j < nt; j++)
            UNROLL for (size_t h = 0; h < LV; h++)
                acc[m][j][h] = vset(0);
    if (mt == 1 && nt > 1 && past)
        k = nt_lines(nt, true, acc[0], type, x, w, dw, K, ahead);
    else if (mt == 1 && nt > 1)
        k = nt_lines(nt, false, acc[0], type, x, w, dw, K, ahead);
    for (; k + PF_LANES <= K; k += PF_LANES) {
        if (ahead) {
            UNROLL for (size_t j = 0; j < nt; j++)
                prefetch(w, type, j * dw + k + ahead);
        }
        nt_step(mt, nt, acc, type, x, ldx, w, dw, k, PF_LANES);
    }
    if (k < K)
        nt_step(mt, nt, acc, type, x, ldx, w, dw, k, K - k);
    UNROLL for (size_t m = 0; m < mt; m++) {
        UNROLL for (size_t j = 0; j < nt; j += 4) {
            float sum[4];

            _mm_storeu_ps(sum, fold4(acc[m][j],
                acc[m][j + 1 < nt ? j + 1 : j],
                acc[m][j + 2 < nt ? j + 2 : j],
                acc[m][j + 3 < nt ? j + 3 : j]));
            for (size_t i = 0; i < 4 && j + i < nt; i++)
                y[m * ldy + (j + i) * dy] = bias
                    ? sum[i] + bias[(j + i) * dy] : sum[i];
        }
    }
}

/*
 * `count` tiles side by side, each of NT_N columns (NT_ONE of one row) that
 * stand dy apart, or of a `single` column.
 */
INLINE void
nt_run(size_t mt, bool past, enum pf_dtype type, bool single, float *y,
    size_t ldy, size_t dy, const float *x, size_t ldx, const void *w,
    const float *bias, size_t K, size_t count, size_t ahead)
{
#define NT_TILES(m, n) \
    for (size_t i = 0; i < count; i++) \
        nt_tile(m, n, past, type, y + i, ldy, dy, x, ldx, \
            element(w, type, i * K), dy * K, bias ? bias + i : NULL, K, ahead)
#define NT_RUN(m) \
    if (m > NT_M) \
        break; \
    if (single) \
        NT_TILES(m, 1); \
    else \
        NT_TILES(m, m == 1 ? NT_ONE : NT_N)
    ONE_TO_6(mt, NT_RUN)
}

#define NT_TYPE(name, type) \
    static void \
    name(size_t mt, bool past, bool single, float *y, size_t ldy, size_t dy, \
        const float *x, size_t ldx, const void *w, const float *bias, \
        size_t K, size_t count, size_t ahead) \
    { \
        nt_run(mt, past, type, single, y, ldy, dy, x, ldx, w, bias, K, \
            count, ahead); \
    }

NT_TYPE(nt_f32, PF_F32)
NT_TYPE(nt_f16, PF_F16)
NT_TYPE(nt_bf16, PF_BF16)

static void
nt(const struct tuning *t, float *y, size_t ldy, const float *x, size_t ldx,
    const void *w, enum pf_dtype type, const float *bias, size_t M, size_t K,
    size_t N, size_t n0, size_t n1)
{
    void (*run)(size_t, bool, bool, float *, size_t, size_t, const float *,
        size_t, const void *, const float *, size_t, size_t, size_t)
        = type == PF_F16 ? nt_f16 : type == PF_BF16 ? nt_bf16 : nt_f32;
    size_t columns = M == 1 ? NT_ONE : NT_N;
    bool few = M <= NT_M, cold = (n1 - n0) * K > NT_COLD;

    (void)N;
    for (size_t n = n0, nn; n < n1; n += nn) {
        const void *wn = element(w, type, n * K);
        size_t dy;

        nn = few ? n1 - n : at_most(n1 - n, NT_BLOCK);
        dy = nn / columns;
        for (size_t m = 0, mt; m < M; m += mt) {
            float *ym = y + m * ldy + n;
            const float *xm = x + m * ldx;
            size_t ahead = 0, done = dy * columns;

            mt = part(M - m, NT_M);
            if (type == PF_F32)
                ahead = m == 0 ? NT_NEAR : 0;
            else if (few)
                ahead = NT_FAR;
            else if (cold && m + mt == M)
                ahead = nn * K;
            run(mt, t->past, false, ym, ldy, dy, xm, ldx, wn,
                bias ? bias + n : NULL, K, dy, ahead);
            run(mt, t->past, true, ym + done, ldy, 1, xm, ldx,
                element(wn, type, done * K), bias ? bias + n + done : NULL,
                K, nn - done, 0);
        }
    }
}

/* --- One row or vector. */

INLINE vec
vexp2(vec x)
{
    vec i = vround(x), f = vsub(x, i), p = vset(PF_EXP2_C5);

    p = vfma(p, f, vset(PF_EXP2_C4));
    p = vfma(p, f, vset(PF_EXP2_C3));
    p = vfma(p, f, vset(PF_EXP2_C2));
    p = vfma(p, f, vset(PF_EXP2_C1));
    p = vfma(p, f, vset(1));
    return vscale2(p, i, x);
}

static void
exp2_each(float *y, const float *x, size_t n)
{
    size_t i = 0;

    for (; i + VW <= n; i += VW)
        vstore(y + i, vexp2(vload(x + i)));
    if (i < n)
        vstore_n(y + i, vexp2(vload_n(x + i, n - i)), n - i);
}

static double
masses(float *y, const float *x, size_t n, float max, float c)
{
    double lane[8], sum = 0;
    wide sums = wide_zero();
    size_t i = 0;
    vec e;

    for (; i + VW <= n; i += VW) {
        e = vexp2(vmul(vsub(vload(x + i), vset(max)), vset(c)));
        vstore(y + i, e);
        sums = wide_add(sums, e);
    }
    if (i < n) {
        e = vexp2(vmul(vsub(vload_n(x + i, n - i), vset(max)), vset(c)));
        vstore_n(y + i, e, n - i);
        sums = wide_add(sums, vblend_n(e, vset(0), n - i));
    }
    wide_store(lane, sums);
    for (size_t l = 0; l < 8; l++)
        sum += lane[l];
    return sum;
}

/* What is not finite makes of zeros, added up, something that is no number. */
static bool
largest(float *y, float *most, const float *x, size_t n)
{
    vec zero = vset(0), none[PF_LARGEST_OF / VW], m[PF_LARGEST_OF / VW];
    float lost[VW];
    bool finite = true;

    UNROLL for (size_t v = 0; v < PF_LARGEST_OF / VW; v++)
        none[v] = zero;
    for (; n >= PF_LARGEST_OF; n -= PF_LARGEST_OF) {
        UNROLL for (size_t v = 0; v < PF_LARGEST_OF / VW; v++) {
            m[v] = vadd(vload(x + v * VW), zero);
            vstore(y + v * VW, m[v]);
            none[v] = vfma(m[v], zero, none[v]);
        }
        for (size_t h = PF_LARGEST_OF / VW / 2; h; h /= 2)
            UNROLL for (size_t v = 0; v < h; v++)
                m[v] = vmax(m[v], m[v + h]);
        *most++ = vmax_all(m[0]);
        x += PF_LARGEST_OF;
        y += PF_LARGEST_OF;
    }
    UNROLL for (size_t v = 1; v < PF_LARGEST_OF / VW; v++)
        none[0] = vadd(none[0], none[v]);
    vstore(lost, none[0]);
    for (size_t i = 0; i < VW; i++)
        finite = finite && lost[i] == 0;
    for (size_t i = 0; i < n; i++) {
        y[i] = x[i] + 0;
        finite = finite && y[i] - y[i] == 0;
        *most = i == 0 || y[i] > *most ? y[i] : *most;
    }
    return finite;
}

INLINE vec
vgelu_tanh(vec x)
{
    vec x2 = vmul(x, x);
    vec t = vfma(vmul(x2, x), vset(PF_GELU_CUBE), x);

    return vdiv(x, vadd(vset(1), vexp2(vmul(t, vset(PF_GELU_EXP2)))));
}

static void
gelu_tanh(float *x, size_t n)
{
    size_t i = 0;

    for (; i + VW <= n; i += VW)
        vstore(x + i, vgelu_tanh(vload(x + i)));
    if (i < n)
        vstore_n(x + i, vgelu_tanh(vload_n(x + i, n - i)), n - i);
}

INLINE vec
vgelu(vec x)
{
    vec minus = vsub(vset(0), x), a = vmax(x, minus), at = vset(PF_TAIL_AT);
    vec t = vdiv(vsub(a, at), vadd(a, at)), p = vset(PF_TAIL_C8);
    vec c = vset(PF_TAIL_EXP2), zero = vset(0);
    vec b = vmax(vsub(zero, a), vset(-PF_TAIL_MAX)), s = vmul(b, b);
    vec q = vmul(s, c), low = vfma(s, c, vsub(zero, q)), e = vexp2(q);

    p = vfma(p, t, vset(PF_TAIL_C7));
    p = vfma(p, t, vset(PF_TAIL_C6));
    p = vfma(p, t, vset(PF_TAIL_C5));
    p = vfma(p, t, vset(PF_TAIL_C4));
    p = vfma(p, t, vset(PF_TAIL_C3));
    p = vfma(p, t, vset(PF_TAIL_C2));
    p = vfma(p, t, vset(PF_TAIL_C1));
    p = vfma(p, t, vset(PF_TAIL_C0));
    low = vfma(vfma(b, b, vsub(zero, s)), c, low);
    low = vfma(s, vset(PF_TAIL_EXP2_LOW), low);
    p = vmul(p, vfma(e, vmul(low, vset(PF_LN2)), e));
    return vfma(vsub(zero, a), p, vmax(x, zero));
}

static void
gelu(float *x, size_t n)
{
    size_t i = 0;

    for (; i + VW <= n; i += VW)
        vstore(x + i, vgelu(vload(x + i)));
    if (i < n)
        vstore_n(x + i, vgelu(vload_n(x + i, n - i)), n - i);
}

static void
add(float *y, const float *x, size_t n)
{
    size_t i = 0;

    for (; i + VW <= n; i += VW)
        vstore(y + i, vadd(vload(y + i), vload(x + i)));
    if (i < n)
        vstore_n(y + i, vadd(vload_n(y + i, n - i), vload_n(x + i, n - i)),
            n - i);
}

INLINE void
widen_of(float *y, const void *x, enum pf_dtype type, size_t n)
{
    size_t i = 0;

    for (; i + VW <= n; i += VW)
        vstore(y + i, vload_w(x, type, i, VW));
    if (i < n)
        vstore_n(y + i, vload_w(x, type, i, n - i), n - i);
}

static void
widen(float *y, const void *x, enum pf_dtype type, size_t n)
{
    switch (type) {
    case PF_F16: widen_of(y, x, PF_F16, n); break;
    case PF_BF16: widen_of(y, x, PF_BF16, n); break;
    default: widen_of(y, x, PF_F32, n);
    }
}

static void
layernorm(float *y, const float *x, const float *gain, const float *bias,
    size_t n, float eps)
{
    vec s[LV], mean, r;

    UNROLL for (size_t h = 0; h < LV; h++)
        s[h] = vset(0);
    for (size_t i = 0; i < n; i += PF_LANES)
        UNROLL for (size_t h = 0; h < LV; h++)
            s[h] = vadd(s[h], vload_n(x + i + h * VW,
                n - i < h * VW ? 0 : n - i - h * VW));
    mean = vset(fold1(s) / (float)n);

    UNROLL for (size_t h = 0; h < LV; h++)
        s[h] = vset(0);
    for (size_t i = 0; i < n; i += PF_LANES) {
        UNROLL for (size_t h = 0; h < LV; h++) {
            size_t some = n - i < h * VW ? 0 : n - i - h * VW;
            vec d = vsub(vload_n(x + i + h * VW, some), mean);

            d = vblend_n(d, vset(0), some);
            s[h] = vfma(d, d, s[h]);
        }
    }
    r = vset(1 / _mm_cvtss_f32(_mm_sqrt_ss(
        _mm_set_ss(fold1(s) / (float)n + eps))));

    for (size_t i = 0; i < n; i += VW) {
        vec d = vsub(vload_n(x + i, n - i), mean);

        vstore_n(y + i, vfma(vmul(d, r), vload_n(gain + i, n - i),
            vload_n(bias + i, n - i)), n - i);
    }
}

/* --- Attention. */

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

/* --- The tables of the set. */

/* AMD's processors from Zen on, which kernel.c knows by pf_cpu_amd(). */
static const struct tuning zen = {
    .past = true, .columns = true, .few = NN_FEW, .panels = 4,
    .panel_rows = 128,
};

static const struct tuning others = {
    .few = NN_FEW * 3 / 4, .panels = 1, .panel_rows = 1024,
};

#define PRODUCT(name, product, tuning) \
    static void \
    name(float *y, size_t ldy, const float *x, size_t ldx, const void *w, \
        enum pf_dtype type, const float *bias, size_t M, size_t K, size_t N, \
        size_t n0, size_t n1) \
    { \
        product(&tuning, y, ldy, x, ldx, w, type, bias, M, K, N, n0, n1); \
    }

PRODUCT(matmul_nn, nn, others)
PRODUCT(matmul_nt, nt, others)
PRODUCT(matmul_nn_zen, nn, zen)
PRODUCT(matmul_nt_zen, nt, zen)

#define KERNELS(name_, nn_, nt_) { \
    .name = name_, \
    .matmul_nn = nn_, \
    .matmul_nt = nt_, \
    .layernorm = layernorm, \
    .gelu_tanh = gelu_tanh, \
    .gelu = gelu, \
    .add = add, \
    .widen = widen, \
    .exp2 = exp2_each, \
    .masses = masses, \
    .largest = largest, \
    .attn = attn, \
    .attn_weights = attn_weights, \
    .attn_masked = attn_masked, \
    .attn_masked_weights = attn_masked_weights, \
}

const struct pf_kernels TABLE = KERNELS(NAME, matmul_nn, matmul_nt);
const struct pf_kernels TABLE_ZEN =
    KERNELS(NAME "-zen", matmul_nn_zen, matmul_nt_zen);
