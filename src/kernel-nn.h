/*
 * y = x w, w of [K, N], for every vector width: a part of kernel-simd.h.
 *
 * Many rows of x: panels of a tile's width and so many rows of w are widened
 * into memory of their own (192 KiB of stack), and all rows of x pass over
 * them; the chains wait in y between panels.  Where they are not made before,
 * the first tile of rows makes each, and the tiles fetch the rows of w that the
 * next ones are to be made of: those of panels side by side in long runs.
 *
 * Few rows would not pay for that copy: they take K_PASS rows of w a pass, each
 * w read once and in order, and the chains wait in memory that is compact,
 * whatever the stride of y (up to 24 KiB of stack).  Where there are registers
 * for it, a number of x meets NN_WIDE vectors of w.  A single row may take
 * columns instead (struct tuning), whose chains wait nowhere.
 */

enum {
    NN_PANEL = NN_V * VW, /* columns of a panel */
    NN_ROOM = 1024,     /* rows of the panels side by side, added up */
    NN_AHEAD = 8,       /* rows fetched ahead while packing them, */
    NN_BEFORE = 16,     /* and while the first tile does */
    K_STEP = 16,        /* rows of a panel between fetches for the next ones */
    NN_SUMS = 6144,     /* outputs of few rows at a time */
    K_PASS = 8,         /* rows of w a pass for them */
    NN_NEAR = 256,      /* elements fetched ahead in them, of F32; */
    NN_CLOSE = 256,     /* and of other types, in the rows at hand */
    NN_STREAM = 1 << 14, /* bytes of a stream fetched ahead of them */
    NN_ROWS = 4,        /* rows of F32, of F16 twice as many, for one of x */
    K_RUN = 64,         /* elements of x side by side */
};

/*
 * What is to be fetched into the second level cache: n lines, from `column` of
 * `row` on, of rows of `across` lines that stand `stride` bytes apart; a_step
 * of them in each K_STEP rows of a tile, when `wait` tiles are done.
 */
struct ahead {
    const char *row;
    size_t stride, across, column, n, a_step, wait;
};

/* So as to end with the last of so many tiles, of K rows each. */
INLINE void
ahead_plan(struct ahead *a, size_t tiles, size_t K)
{
    size_t steps = K / K_STEP, a_tile;

    if (steps == 0 || a->n == 0)
        return;
    a->a_step = (a->n + tiles * steps - 1) / (tiles * steps);
    a_tile = a->a_step * steps;
    a->wait = tiles - (a->n + a_tile - 1) / a_tile;
}

INLINE void
ahead_fetch(struct ahead *a)
{
    for (size_t i = 0; i < a->a_step; i++) {
        __builtin_prefetch(a->row + 64 * a->column, 0, 2);
        if (++a->column == a->across) {
            a->column = 0;
            a->row += a->stride;
        }
    }
}

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
 * w is a panel of nv vectors a row.  With `first`, the tile makes the panel of
 * rows of w of that type, N apart.  Meanwhile comes what is ahead, a little at
 * a time, so that the panel's own way is free.
 */
INLINE void
nn_tile(const size_t mt, const size_t nv, size_t last, float *restrict y,
    size_t ldy, const float *restrict x, size_t ldx, float *restrict panel,
    size_t K, bool start, const float *bias, struct ahead *ahead,
    const bool first, enum pf_dtype type, const void *w, size_t N)
{
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
    if (ahead->wait > 0) {
        ahead->wait--;
    } else {
        for (; ahead->a_step && k + K_STEP <= K; k += K_STEP) {
            ahead_fetch(ahead);
            nn_run(mt, nv, last, acc, x + k, ldx, panel + k * NN_PANEL,
                K_STEP, first, type, element(w, type, k * N), N);
        }
    }
    nn_run(mt, nv, last, acc, x + k, ldx, panel + k * NN_PANEL, K - k, first,
        type, element(w, type, k * N), N);
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
        bool start, const float *bias, struct ahead *ahead) \
    { \
        ONE_TO_8(mt, NN_TILE_##nv) \
    }
#define NN_TILE(mt, nv) \
    if (mt <= NN_M) \
        nn_tile(mt, nv, last, y, ldy, x, ldx, panel, K, start, bias, ahead, \
            false, PF_F32, NULL, 0)
#define NN_TILE_1(mt) NN_TILE(mt, 1)
#define NN_TILE_2(mt) NN_TILE(mt, 2)
#define NN_TILE_3(mt) NN_TILE(mt, 3)

NN_TILES(1)
NN_TILES(2)
NN_TILES(3)

static void
nn_panel(float *y, size_t ldy, const float *x, size_t ldx, float *panel,
    size_t M, size_t K, size_t columns, bool start, const float *bias,
    struct ahead *ahead)
{
    size_t nv = (columns + VW - 1) / VW, last = columns - (nv - 1) * VW;

    for (size_t m = 0, mt; m < M; m += mt, y += mt * ldy, x += mt * ldx) {
        mt = part(M - m, NN_M);
        if (nv == 3)
            nn_tile_3(mt, last, y, ldy, x, ldx, panel, K, start, bias, ahead);
        else if (nv == 2)
            nn_tile_2(mt, last, y, ldy, x, ldx, panel, K, start, bias, ahead);
        else
            nn_tile_1(mt, last, y, ldy, x, ldx, panel, K, start, bias, ahead);
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
    bool start, const float *bias, struct ahead *ahead)
{
    size_t nv = (columns + VW - 1) / VW, last = columns - (nv - 1) * VW;

#define NN_FIRST(nv) \
    nn_tile(NN_M, nv, last, y, ldy, x, ldx, panel, K, start, bias, ahead, \
        true, type, w, N)
    if (nv == 3)
        NN_FIRST(3);
    else if (nv == 2)
        NN_FIRST(2);
    else
        NN_FIRST(1);
#undef NN_FIRST
}

/* K rows of `columns` of w, which panels are to be made of. */
INLINE struct ahead
nn_next(enum pf_dtype type, const void *w, size_t K, size_t N, size_t columns)
{
    size_t size = type == PF_F32 ? 4 : 2, lines = (columns * size + 63) / 64;

    return (struct ahead){ .row = w, .stride = N * size, .across = lines,
        .n = K * lines };
}

INLINE void
nn_many(const struct tuning *t, enum pf_dtype type, float *y, size_t ldy,
    const float *x, size_t ldx, const void *w, const float *bias, size_t M,
    size_t K, size_t N, size_t n0, size_t n1)
{
    _Alignas(64) float panels[NN_ROOM * NN_PANEL];
    const struct panels *p = M < t->many_from ? &t->some : &t->many;
    size_t most = p->across * NN_PANEL;

    for (size_t n = n0, columns; n < n1; n += columns) {
        size_t k = 0;

        columns = at_most(n1 - n, most);
        do {
            size_t kn = at_most(K - k, p->rows);
            const float *b = bias && k + kn == K ? bias + n : NULL;
            struct ahead ahead = { 0 };

            if (t->pack) {
                nn_pack(panels, w, type, k * N + n, N, kn, columns);
            } else {
                if (k + kn < K)
                    ahead = nn_next(type, element(w, type, (k + kn) * N + n),
                        at_most(K - k - kn, p->rows), N, columns);
                else if (n + columns < n1)
                    ahead = nn_next(type, element(w, type, n + columns),
                        at_most(K, p->rows), N,
                        at_most(n1 - n - columns, most));
                ahead_plan(&ahead, (columns + NN_PANEL - 1) / NN_PANEL
                    * ((M + NN_M - 1) / NN_M), kn);
            }
            for (size_t j = 0; j < columns; j += NN_PANEL) {
                size_t m = t->pack ? 0 : NN_M;
                float *panel = t->pack ? panels + j * kn : panels;
                size_t width = at_most(columns - j, NN_PANEL);

                if (!t->pack)
                    nn_first(type, y + n + j, ldy, x + k, ldx, panel,
                        element(w, type, k * N + n + j), kn, N, width, k == 0,
                        b ? b + j : NULL, &ahead);
                nn_panel(y + m * ldy + n + j, ldy, x + m * ldx + k, ldx,
                    panel, M - m, kn, width, k == 0, b ? b + j : NULL, &ahead);
            }
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
 * itself.  Less than K_PASS rows leave no time to wait for the second level
 * cache: what they need next is fetched into the first one, from streams too.
 */
INLINE void
nn_pass(const size_t M, const size_t kt, bool past, enum pf_dtype type,
    float *restrict sums, size_t lds, const float *restrict x, size_t ldx,
    const void *restrict w, size_t i, size_t N, size_t columns,
    struct fetch ahead)
{
    bool streams = ahead.apart != N;
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
            else if (M < K_PASS && !streams)
                NN_FETCH(3);
            else
                NN_FETCH(2);
            if (M < K_PASS && streams)
                UNROLL for (size_t k = 0; k < kt; k++)
                    prefetch(w, type, i + n + k * N + NN_CLOSE);
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
        /* One row in a loop of its own, for its addresses stay in registers. */
        for (; M == 1 && k + K_PASS <= K; k += K_PASS)
            nn_pass(1, K_PASS, past, type, sums, lds, x + k, ldx, w,
                k * N + n, N, columns, nn_ahead(k, K, N, row));
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
    if (M <= (type == PF_F32 ? t->few_f32 : t->few))
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
