/*
 * A file of prepared tables (src/tables.h), changed: what is taken can be
 * worked with, and every id that comes out is a token.
 *
 * The input is a list of changes to a file that is right, 8 bytes each: which
 * part of it (0 to 6; 7: the head), where in it (3 bytes), and 4 bytes to put
 * there.  Then the sum is made right, or all would end at that.
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pipeformer/buf.h>
#include <pipeformer/io.h>

#include "../../src/tables.h"
#include "../../src/tokenizer-private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SUM_AT = 24, SIZE_AT = 32, PARTS_AT = 40, N_PARTS = 7,
    HEAD = PARTS_AT + 16 * N_PARTS, CHANGES = 16 };

static char path[200];
static char *image;
static size_t image_size, summed;
static int fd = -1;

static void
clean(void)
{
    unlink(path);
}

/* The letters a to d, and what they merge to; ids 100 and up have holes. */
static void
start(void)
{
    static const char ranks[] = "YQ== 0\nYg== 1\nYw== 2\nZA== 3\nIA== 4\n"
        "YWI= 10\nY2Q= 12\nYWJjZA== 13\nIGE= 20\nYWE= 21\nYWFhYQ== 22\n"
        "IGFi 30\n";
    const char *dir = getenv("TMPDIR");
    struct pf_vocab *v;
    struct pf_bpe *b;
    uint32_t byte[256];
    uint64_t sum;
    char c;

    snprintf(path, sizeof path, "%.150s/fuzz_tables.XXXXXX",
        dir ? dir : "/tmp");
    if (pf_ranks_read(ranks, sizeof ranks - 1, &v, &b, NULL))
        abort();
    for (int i = 0; i < 256; i++) {
        c = (char)i;
        if (!pf_vocab_find(v, &c, 1, &byte[i]))
            byte[i] = PF_BPE_NONE;
    }
    fd = mkstemp(path);
    if (fd < 0 || atexit(clean) || pf_bpe_set_bytes(b, byte, NULL)
        || pf_tables_write(path, 0, v, b, NULL)
        || pf_read_file(path, 1 << 24, &image, &image_size, NULL))
        abort();
    memcpy(&sum, image + SUM_AT, sizeof sum);
    for (summed = SIZE_AT; summed < HEAD; summed += 8)
        if (pf_tables_hash(image + summed, image_size - summed, 0) == sum)
            break;
    pf_vocab_free(v);
    pf_bpe_free(b);
}

static void
put(size_t at, const void *bytes, size_t n)
{
    if (pwrite(fd, bytes, n, (off_t)at) != (ssize_t)n)
        abort();
}

static void
use(struct pf_mapping *m, struct pf_vocab *v, struct pf_bpe *b)
{
    static const char *const texts[] = { "abcd", " ab aaaa", "ddccbbaaabcd",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabcdabcdabcd",
        "" };
    struct pf_tokenizer *tok = pf_tokenizer_new();
    struct pf_encoder *enc;
    const uint32_t *ids;
    uint32_t id;
    size_t n, len;

    if (!tok)
        abort();
    tok->whole = true;
    tok->vocab = v;
    tok->bpe = b;
    tok->mapping = m;
    if (pf_tokenizer_set_pattern(tok, pf_pretok_named("gpt2"), 0, NULL)
        || pf_tokenizer_finish(tok, NULL) || pf_encoder_new(&enc, tok, NULL))
        abort();
    pf_encoder_track(enc);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        pf_vocab_find(v, texts[i], strlen(texts[i]), &id);
        if (pf_encode(enc, texts[i], strlen(texts[i]), &ids, &n, NULL))
            continue;
        for (size_t k = 0; k < n; k++)
            if (!pf_tokenizer_token(tok, ids[k], &len))
                abort();
    }
    pf_encoder_free(enc);
    pf_tokenizer_free(tok);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char *copy;
    size_t at[CHANGES], n = size / 8, from, len;
    struct pf_mapping *m;
    struct pf_vocab *v;
    struct pf_bpe *b;
    uint64_t sum, place[2];

    if (!image) {
        start();
        copy = malloc(image_size);
        if (!copy)
            abort();
        memcpy(copy, image, image_size);
    }
    n = n < CHANGES ? n : CHANGES;
    for (size_t i = 0; i < n; i++, data += 8) {
        from = 0;
        len = HEAD;
        if (data[0] % 8 < N_PARTS) {
            memcpy(place, image + PARTS_AT + 16 * (data[0] % 8),
                sizeof place);
            from = (size_t)place[0];
            len = (size_t)place[1];
        }
        at[i] = from + ((size_t)data[1] | (size_t)data[2] << 8
            | (size_t)data[3] << 16) % (len / 4) * 4;
        memcpy(copy + at[i], data + 4, 4);
        put(at[i], data + 4, 4);
    }
    sum = pf_tables_hash(copy + summed, image_size - summed, 0);
    put(SUM_AT, &sum, sizeof sum);
    if (!pf_tables_map(&m, path, 0, &v, &b))
        use(m, v, b);
    for (size_t i = 0; i < n; i++) {
        memcpy(copy + at[i], image + at[i], 4);
        put(at[i], image + at[i], 4);
    }
    return 0;
}
