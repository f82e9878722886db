/*
 * Any bytes as lines of counted pieces, or as a text to train on: the first
 * byte says which, which bytes become letters, and how many tokens are wanted.  What
 * is learnt must be whole: ids without holes, each merge of ids that were
 * there before it, and files that are JSON.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <pipeformer/json.h>
#include <pipeformer/pool.h>
#include <pipeformer/train.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_json(const struct pf_trainer *t, enum pf_train_file file)
{
    struct pf_buf b = PF_BUF_INIT;
    struct pf_json j;
    const char *raw;
    size_t len;

    if (pf_trainer_file(t, file, &b, NULL))
        abort();
    j = pf_json_at(b.data, b.len);
    if (pf_json_value(&j, &raw, &len, NULL) || pf_json_end(&j, NULL))
        abort();
    pf_buf_fini(&b);
}

static void
check(const struct pf_trainer *t, const struct pf_train *train)
{
    size_t n = pf_trainer_size(t), merges = pf_trainer_merges(t), len;
    uint32_t left, right;

    if (n > train->size)
        abort();
    for (uint32_t id = 0; id < n; id++)
        if (!pf_trainer_token(t, id, &len) || len == 0)
            abort();
    for (size_t i = 0; i < merges; i++) {
        pf_trainer_merge(t, i, &left, &right);
        if (left >= n || right >= n)
            abort();
    }
    check_json(t, PF_TRAIN_VOCAB);
    check_json(t, PF_TRAIN_TOKENIZER);
    check_json(t, PF_TRAIN_CONFIG);
}

static void
train_on(const char *text, size_t len, const struct pf_train *train,
    struct pf_pool *pool, bool counts)
{
    struct pf_trainer *t;
    struct pf_err err;
    const char *lf;
    enum pf_status st;
    size_t n;

    if (pf_trainer_new(&t, counts ? "gpt2" : "cl100k", pool, &err))
        abort();
    for (; counts && len; text += n, len -= n) {
        lf = memchr(text, '\n', len);
        n = lf ? (size_t)(lf - text) : len;
        st = pf_trainer_count_line(t, text, n, &err);
        if (st && st != PF_EFORMAT && st != PF_ERANGE)
            abort();
        n += lf != NULL;
    }
    if (!counts && pf_trainer_lines(t, text, len, &err))
        abort();
    st = pf_trainer_learn(t, train, &err);
    if (!st)
        check(t, train);
    else if (st != PF_ERANGE && st != PF_EFORMAT)
        abort();
    pf_trainer_free(t);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const special[] = { "<s>", "ab" };
    struct pf_train train = { .special = special, .n_special = 2 };
    struct pf_pool *pool;

    if (!size)
        return 0;
    train.seen_only = data[0] & 1;
    train.size = 250 + (size_t)data[0];
    train.min_count = data[0] >> 6;
    if (pf_pool_new(&pool, 1, NULL))
        abort();
    train_on((const char *)data + 1, size - 1, &train, pool, !(data[0] & 2));
    pf_pool_free(pool);
    return 0;
}
