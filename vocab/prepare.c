/*
 * Makes the tables of the vocabularies, DIR/NAME.tables: run once when the
 * project is built, so that a start maps them (src/tables.h).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <pipeformer/buf.h>

#include "../src/encodings.h"
#include "../src/tables.h"

static enum pf_status
prepare(const char *dir, const char *name, struct pf_err *err)
{
    struct pf_buf path = PF_BUF_INIT, new = PF_BUF_INIT;
    uint32_t byte[256];
    struct pf_mapping *m;
    struct pf_vocab *v;
    struct pf_bpe *b;
    enum pf_status st;
    uint64_t source;

    st = pf_ranks_open(name, false, &m, &v, &b, &source, err);
    if (!st) {
        pf_bpe_bytes_of(v, byte);
        st = pf_bpe_set_bytes(b, byte, err);
    }
    pf_buf_printf(&path, "%s/%s.tables", dir, name);
    pf_buf_addc(&path, '\0');
    pf_buf_printf(&new, "%s/%s.new", dir, name);
    pf_buf_addc(&new, '\0');
    if (!st)
        st = path.failed || new.failed ? pf_fail_mem(err) : PF_OK;
    if (!st)
        st = pf_tables_write(new.data, source, v, b, err);
    /* Somebody may have the old one mapped. */
    if (!st && rename(new.data, path.data) != 0)
        st = pf_fail(err, PF_EIO, "%s: %s", path.data, strerror(errno));
    pf_buf_fini(&path);
    pf_buf_fini(&new);
    pf_vocab_free(v);
    pf_bpe_free(b);
    pf_mapping_free(m);
    return st;
}

int
main(int argc, char **argv)
{
    const char *name;
    struct pf_err err;

    if (argc != 2) {
        fputs("usage: prepare DIR\n", stderr);
        return 2;
    }
    for (size_t i = 0; (name = pf_ranks_name(i)); i++) {
        if (prepare(argv[1], name, &err)) {
            fprintf(stderr, "prepare: %s: %s\n", name, err.msg);
            return 1;
        }
    }
    return 0;
}
