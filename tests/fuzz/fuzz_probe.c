/*
 * The names that a run taps and sets to zero, and the records that patch it.
 * The first line is a list of names; what follows is a stream of records.
 * Then rows go past every point: nothing is touched but those rows and what
 * was tapped, which has a name that leads back to it.
 */
#include <stdlib.h>
#include <string.h>

#include <pipeformer/probe.h>

enum { L = 2, H = 2, D = 2, C = H * D, F = 3, T = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(bool ok)
{
    if (!ok)
        abort();
}

/* Reads records from `data` as if they had come through a file. */
static void
patch(struct pf_hooks *h, const uint8_t *data, size_t size)
{
    struct pf_in in = PF_IN_INIT;
    struct pf_reader r = PF_READER_INIT;
    struct pf_record rec = PF_RECORD_INIT;

    in.data = malloc(size + 1);
    check(in.data != NULL);
    memcpy(in.data, data, size);
    in.end = size;
    in.cap = size + 1;
    in.eof = true;
    in.keep = true;
    r.in = &in;
    while (!pf_reader_next(&r, &rec, NULL, NULL)
        && !pf_hooks_patch(h, &rec, NULL))
        ;
    pf_hooks_patch_end(h, NULL);
    pf_record_fini(&rec);
    pf_reader_fini(&r);
    pf_in_fini(&in);
}

static void
run(struct pf_hooks *h, size_t pos)
{
    struct pf_record rec = PF_RECORD_INIT;
    const struct pf_probe *probe;
    struct pf_hooked hooked;
    size_t bytes;

    check(!pf_record_set_string(&rec, "seq", "a", 1, NULL));
    if (pf_hooks_check(h, &rec, T, pos, 0, &hooked, &bytes, NULL)
        || !(probe = pf_hooks_probe(h, &hooked))) {
        pf_record_fini(&rec);
        return;
    }
    check(!pf_hooks_begin(h, &rec, 0, &hooked, NULL));
    for (size_t i = 0; i < rec.n_tensors; i++) {
        enum pf_point point;
        size_t layer;

        check(pf_point_find(rec.tensors[i].name, &layer, &point));
        check(probe->wants(probe->ctx, layer, point));
    }
    for (size_t i = 0; i < L * PF_N_POINTS; i++) {
        enum pf_point p = (enum pf_point)(i % PF_N_POINTS);
        size_t width = p == PF_SCORES || p == PF_PATTERN ? pos + T
            : p == PF_MLP_PRE || p == PF_MLP_POST ? F
            : p == PF_RESULT ? H * C : C;
        float *x = malloc(T * width * sizeof *x);

        check(x != NULL);
        for (size_t k = 0; k < T * width; k++)
            x[k] = 1;
        for (size_t head = 0; head < H; head++)
            if (probe->wants(probe->ctx, i / PF_N_POINTS, p)
                && (head == 0 || p == PF_SCORES || p == PF_PATTERN))
                probe->at(probe->ctx, 0, i / PF_N_POINTS, p, head, 0, T, x,
                    width, width);
        free(x);
    }
    pf_record_fini(&rec);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct pf_config config = { .layers = L, .heads = H,
        .head_dim = D, .width = C, .inner = F };
    static const size_t layers[L] = { 1, 0 }, heads[1] = { 1 };
    const uint8_t *nl = size ? memchr(data, '\n', size) : NULL;
    size_t len = nl ? (size_t)(nl - data) : size;
    char *list = malloc(len + 1);
    struct pf_config c = config;
    struct pf_hooks *h;

    check(list != NULL);
    memcpy(list, data, len);
    list[len] = '\0';
    c.encoder = len > 0 && list[0] == '*';
    check(!pf_hooks_new(&h, &c, layers, L, heads, 1, PF_PART_BOTH, NULL));
    pf_hooks_tap(h, list, NULL);
    pf_hooks_zero(h, list, NULL);
    if (nl)
        patch(h, nl + 1, size - len - 1);
    run(h, 0);
    if (!c.encoder)
        run(h, 2);
    pf_hooks_free(h);
    free(list);
    return 0;
}
