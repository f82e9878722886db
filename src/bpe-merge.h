/*
 * The loop of byte pair encoding, for a file that defines least(p, n), the
 * least of n numbers, a multiple of 16, and first(p), the index of the first
 * of the least of 16.  The ranks of the n - 1 pairs are in level 0.  Symbols
 * that a merge has swallowed have no rank, and are skipped by the links.
 *
 * Few symbols: the rank and the place of each pair are one number, and the
 * least of all those is the next merge.  It is sought among those that a merge
 * does not change while the others are looked up.
 */
static inline int32_t
packed(int32_t rank, size_t at)
{
    return rank == RANK_NONE ? RANK_NONE : rank << FLAT_BITS | (int32_t)at;
}

static size_t
merge_flat(const struct pf_bpe *b, struct pf_bpe_work *w, uint32_t *ids,
    size_t n)
{
    uint8_t next[FLAT + 1], prev[FLAT + 1];
    size_t i, right, after, before, out = 0, len = (n + FAN - 1) / FAN * FAN;
    int32_t *key = w->memory, now, v;

    for (i = 0; i < n; i++) {
        key[i] = packed(key[i], i);
        next[i] = (uint8_t)(i + 1);
        prev[i] = (uint8_t)(i - 1);
    }
    for (now = least(key, len); now != RANK_NONE;) {
        i = now & (FLAT - 1);
        right = next[i];
        after = next[right];
        before = i ? prev[i] : i;
        ids[i] = pair_result(b, now >> FLAT_BITS);
        next[i] = (uint8_t)after;
        prev[after] = (uint8_t)i;
        key[i] = key[right] = key[before] = RANK_NONE;
        now = least(key, len);
        if (after < n) {
            v = packed(pair_rank(b, ids[i], ids[after]), i);
            key[i] = v;
            now = v < now ? v : now;
        }
        if (before < i) {
            v = packed(pair_rank(b, ids[before], ids[i]), before);
            key[before] = v;
            now = v < now ? v : now;
        }
    }
    for (i = 0; i < n; i = next[i])
        ids[out++] = ids[i];
    return out;
}

/*
 * Many symbols: the pairs' ranks are the leaves of a tree whose nodes have 16
 * children, kept in arrays level by level, so that finding the least rank,
 * leftmost first, and changing one take log16 n steps of a few instructions
 * each.
 */
static void
settle(const struct merge_tree *t, size_t i)
{
    int32_t v;

    for (int l = 0; l + 1 < t->depth; l++) {
        i /= FAN;
        v = least(t->level[l] + i * FAN, FAN);
        if (t->level[l + 1][i] == v)
            return;
        t->level[l + 1][i] = v;
    }
}

static size_t
merge(const struct pf_bpe *b, struct pf_bpe_work *w, uint32_t *ids, size_t n)
{
    struct merge_tree t;
    size_t i, right, after, before, out = 0;
    int32_t *rank;

    if (n <= FLAT)
        return merge_flat(b, w, ids, n);
    merge_tree(&t, w, n);
    rank = t.level[0];
    for (i = 0; i < n; i++) {
        t.next[i] = (uint32_t)i + 1;
        t.prev[i] = (uint32_t)i - 1; /* wraps at 0, where it is not used */
    }
    for (int l = 0; l + 1 < t.depth; l++)
        for (i = 0; i < t.len[l + 1]; i++)
            t.level[l + 1][i] = i * FAN < t.len[l]
                ? least(t.level[l] + i * FAN, FAN) : RANK_NONE;
    for (;;) {
        i = 0;
        for (int l = t.depth; l-- > 0;)
            i = i * FAN + first(t.level[l] + i * FAN);
        if (rank[i] == RANK_NONE)
            break;
        right = t.next[i];
        after = t.next[right];
        before = t.prev[i];
        ids[i] = pair_result(b, rank[i]);
        t.next[i] = (uint32_t)after;
        rank[right] = RANK_NONE;
        rank[i] = RANK_NONE;
        if (after < n) {
            t.prev[after] = (uint32_t)i;
            rank[i] = pair_rank(b, ids[i], ids[after]);
        }
        if (i) {
            rank[before] = pair_rank(b, ids[before], ids[i]);
            if (before / FAN != i / FAN)
                settle(&t, before);
        }
        settle(&t, i);
        if (right / FAN != i / FAN)
            settle(&t, right);
    }
    for (i = 0; i < n; i = t.next[i])
        ids[out++] = ids[i];
    return out;
}
