/*
 * The kernels once for every vector width: included by a file that defines
 * vec, its VW elements, a few operations on it and tile sizes (kernel-avx2.c,
 * kernel-avx512.c).
 *
 * Each output keeps the chain of operations that kernel.h gives it; all that
 * is chosen here is which chains run side by side.  A tile is a set of outputs
 * whose accumulators stay in registers (Goto and van de Geijn 2008): its body
 * is inlined once for each of its sizes, edge tiles included, and a vector
 * that stands over an edge is loaded and stored in part.  Products with w of
 * [K, N] are in kernel-nn.h, attention in kernel-attn.h.
 *
 * What is fastest differs between families of processors, and is the choice of
 * a table (struct tuning).  Intel's (measured: Emerald Rapids) read fastest in
 * long runs, fetch best into all caches, and like panels of long chains, that
 * come from the second level cache, unless rows of x are so few that reading w
 * in long runs is worth more.  AMD's (measured: an EPYC
 * with AVX-512) look ahead farthest with nothing to do but what w brings, so
 * that the chains of a single row of x, NN_ONE vectors at a time, wait nowhere;
 * and what is fetched ahead is best kept out of the second level cache, through
 * which it would only pass: two threads read up to a quarter faster for that,
 * where Intel's would read at half their speed.
 *
 * Products with w of [N, K] read w where it lies.  For few rows of x, a tile's
 * columns are as many streams far apart: a processor fetches those ahead better
 * than neighbours, but the arithmetic between two loads keeps it from looking
 * far enough, so each tile fetches some KiB ahead of where it reads, less than
 * what the first level cache holds.  More rows take w in blocks that fit the
 * second level cache, and fetch the next block meanwhile, evenly; where many of
 * them would each widen the block, it is widened once.
 */

enum {
    LV = PF_LANES / VW, /* vectors to a set of lanes */
    NT_BLOCK = 48,      /* [N, K]: rows of w to a block */
    NT_NEAR = 512,      /* elements of F32 fetched ahead of a stream */
    NT_FAR = 1536,      /* and of F16, for few rows of x */
    NT_WIDEN = 5,       /* so many tiles of rows of x are worth a widened w */
    NT_ROOM = NT_BLOCK * 1024, /* elements of that: 192 KiB of stack */
};

/*
 * What suits one family of processors better than another; the numbers are
 * the same.
 */
struct tuning {
    bool past;    /* what is read once is fetched past the second level cache */
    bool columns; /* [K, N]: a single row of x takes columns, not rows, of w */
    bool pack;    /* all panels side by side at once, NN_ROOM rows at most */
    size_t few_f32, few; /* up to so many rows of x are few; of F16 and BF16 */
    size_t many_from;    /* how many are many, for which panels differ: */
    struct panels {
        size_t across, rows; /* so many side by side, of so many rows of w */
    } some, many;
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

INLINE void
widen_of(float *y, const void *x, enum pf_dtype type, size_t n)
{
    size_t i = 0;

    for (; i + VW <= n; i += VW)
        vstore(y + i, vload_w(x, type, i, VW));
    if (i < n)
        vstore_n(y + i, vload_w(x, type, i, n - i), n - i);
}

#include "kernel-nn.h"

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
 * `ahead` is fetched, unless that is 0; and from `next` on so many lines each
 * PF_LANES elements, into the second level cache.
 */
INLINE void
nt_tile(const size_t mt, const size_t nt, bool past, enum pf_dtype type,
    float *y, size_t ldy, size_t dy, const float *restrict x, size_t ldx,
    const void *restrict w, size_t dw, const float *bias, size_t K,
    size_t ahead, const char *next, size_t lines)
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
        for (size_t i = 0; i < lines; i++, next += 64)
            __builtin_prefetch(next, 0, 2);
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

/* What is to be fetched: so many lines at each step of a tile. */
struct lines {
    const char *at;
    size_t n, a_step;
};

/*
 * `count` tiles, each of NT_N columns (NT_ONE of one row) that stand dy apart,
 * or of a `single` column.
 */
INLINE void
nt_run(size_t mt, bool past, enum pf_dtype type, bool single, float *y,
    size_t ldy, size_t dy, const float *x, size_t ldx, const void *w,
    const float *bias, size_t K, size_t count, size_t ahead, struct lines next)
{
#define NT_TILES(m, n) \
    for (size_t i = 0; i < count; i++) { \
        size_t j = dy > 1 ? i : i * (n); \
        \
        nt_tile(m, n, past, type, y + j, ldy, dy, x, ldx, \
            element(w, type, j * K), dy * K, bias ? bias + j : NULL, K, \
            ahead, next.at, next.a_step); \
        next.at += K / PF_LANES * next.a_step * 64; \
    }
#define NT_RUN(m) \
    if (m > NT_M) \
        break; \
    if (single) \
        NT_TILES(m, 1) \
    else \
        NT_TILES(m, m == 1 ? NT_ONE : NT_N)
    ONE_TO_6(mt, NT_RUN)
}

#define NT_TYPE(name, type) \
    static void \
    name(size_t mt, bool past, bool single, float *y, size_t ldy, size_t dy, \
        const float *x, size_t ldx, const void *w, const float *bias, \
        size_t K, size_t count, size_t ahead, struct lines next) \
    { \
        nt_run(mt, past, type, single, y, ldy, dy, x, ldx, w, bias, K, \
            count, ahead, next); \
    }

NT_TYPE(nt_f32, PF_F32)
NT_TYPE(nt_f16, PF_F16)
NT_TYPE(nt_bf16, PF_BF16)

/* nn rows of w for all rows of x. */
static void
nt_block(const struct tuning *t, float *y, size_t ldy, const float *x,
    size_t ldx, const void *w, enum pf_dtype type, const float *bias,
    size_t M, size_t K, size_t nn, struct lines next)
{
    void (*run)(size_t, bool, bool, float *, size_t, size_t, const float *,
        size_t, const void *, const float *, size_t, size_t, size_t,
        struct lines)
        = type == PF_F16 ? nt_f16 : type == PF_BF16 ? nt_bf16 : nt_f32;
    size_t columns = M == 1 ? NT_ONE : NT_N, count = nn / columns, dy = 1;
    size_t done = count * columns, ahead = 0;
    size_t steps = count * (K / PF_LANES), tiles = (M + NT_M - 1) / NT_M;

    if (M <= NT_M) {
        dy = count;
        ahead = type == PF_F32 ? NT_NEAR : NT_FAR;
    }
    for (size_t m = 0, mt; m < M; m += mt, y += mt * ldy, x += mt * ldx) {
        size_t lines;

        mt = part(M - m, NT_M);
        if (steps > 0)
            next.a_step = (next.n + tiles * steps - 1) / (tiles * steps);
        run(mt, t->past, false, y, ldy, dy, x, ldx, w, bias, K, count, ahead,
            next);
        run(mt, t->past, true, y + done, ldy, 1, x, ldx,
            element(w, type, done * K), bias ? bias + done : NULL, K,
            nn - done, 0, (struct lines){ 0 });
        lines = at_most(next.n, steps * next.a_step);
        next.at += lines * 64;
        next.n -= lines;
        tiles--;
    }
}

/* Few rows of x take all of w at once, more take it block by block. */
static void
nt(const struct tuning *t, float *y, size_t ldy, const float *x, size_t ldx,
    const void *w, enum pf_dtype type, const float *bias, size_t M, size_t K,
    size_t N, size_t n0, size_t n1)
{
    _Alignas(64) float widened[NT_ROOM];
    size_t size = type == PF_F32 ? 4 : 2;
    bool widen = size < 4 && M >= NT_WIDEN * NT_M && K > 0
        && K <= NT_ROOM / NT_N;
    size_t most = M <= NT_M ? n1 - n0 : NT_BLOCK;

    (void)N;
    if (widen)
        most = at_most(most, NT_ROOM / K);
    for (size_t n = n0, nn; n < n1; n += nn) {
        const void *block = element(w, type, n * K);
        struct lines next = { 0 };

        nn = at_most(n1 - n, most);
        next.at = element(w, type, (n + nn) * K);
        next.n = at_most(n1 - n - nn, most) * K * size / 64;
        if (widen)
            widen_of(widened, block, type, nn * K);
        nt_block(t, y + n, ldy, x, ldx, widen ? widened : block,
            widen ? PF_F32 : type, bias ? bias + n : NULL, M, K, nn, next);
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

#include "kernel-attn.h"

/* --- The tables of the set. */

/* AMD's processors from Zen on, which kernel.c knows by pf_cpu_amd(). */
static const struct tuning zen = {
    .past = true, .columns = true, .pack = true, .few_f32 = NN_FEW,
    .few = NN_FEW, .many = { 4, 128 },
};

static const struct tuning others = {
    .few_f32 = NN_FEW * 3 / 8, .few = NN_FEW / 2, .many_from = 160,
    .some = { 16, 96 }, .many = { 1, 1024 },
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
