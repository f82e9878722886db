/*
 * Activations by name: one table says what each is called, what its rows are,
 * and in which half of a block it comes up.
 */
#include "probe-private.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    enum kind kind;
    unsigned parts;
} points[PF_N_POINTS] = {
    [PF_RESID_PRE] = { "resid_pre", ROW, PF_PART_BOTH },
    [PF_LN1] = { "ln1.normalized", ROW, PF_PART_ATTN },
    [PF_Q] = { "attn.q", BY_HEAD, PF_PART_ATTN },
    [PF_K] = { "attn.k", BY_HEAD, PF_PART_ATTN },
    [PF_V] = { "attn.v", BY_HEAD, PF_PART_ATTN },
    [PF_SCORES] = { "attn.attn_scores", MAP, PF_PART_ATTN },
    [PF_PATTERN] = { "attn.pattern", MAP, PF_PART_ATTN },
    [PF_Z] = { "attn.z", BY_HEAD, PF_PART_ATTN },
    [PF_RESULT] = { "attn.result", RESULT, PF_PART_ATTN },
    [PF_ATTN_OUT] = { "attn_out", ROW, PF_PART_ATTN },
    [PF_RESID_MID] = { "resid_mid", ROW, PF_PART_ATTN },
    [PF_LN2] = { "ln2.normalized", ROW, PF_PART_MLP },
    [PF_MLP_PRE] = { "mlp.pre", INNER, PF_PART_MLP },
    [PF_MLP_POST] = { "mlp.post", INNER, PF_PART_MLP },
    [PF_MLP_OUT] = { "mlp_out", ROW, PF_PART_MLP },
    [PF_RESID_POST] = { "resid_post", ROW, PF_PART_MLP },
};

char *
pf_point_name(char *s, size_t size, size_t layer, enum pf_point point)
{
    snprintf(s, size, "blocks.%zu.%s", layer, points[point].name);
    return s;
}

bool
pf_point_find(const char *name, size_t *layer, enum pf_point *point)
{
    const char *p;
    size_t l = 0;

    if (strncmp(name, "blocks.", 7) != 0)
        return false;
    p = name + 7;
    if (*p < '0' || *p > '9' || (*p == '0' && p[1] != '.'))
        return false;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (l > INT32_MAX / 10 - 1)
            return false;
        l = l * 10 + (size_t)(*p - '0');
    }
    if (*p++ != '.')
        return false;
    for (size_t i = 0; i < PF_N_POINTS; i++)
        if (strcmp(points[i].name, p) == 0) {
            *layer = l;
            *point = (enum pf_point)i;
            return true;
        }
    return false;
}

bool
pf_point_runs(enum pf_point point, unsigned parts)
{
    return points[point].parts & parts;
}

const char *
pf_point_text(enum pf_point p)
{
    return points[p].name;
}

enum kind
pf_point_kind(enum pf_point p)
{
    return points[p].kind;
}

bool
pf_point_by_head(enum pf_point point)
{
    return points[point].kind >= BY_HEAD;
}

bool
pf_glob(const char *pattern, size_t len, const char *name)
{
    const char *p = pattern, *end = pattern + len;
    const char *star = NULL, *from = NULL; /* the last *, and what it leaves */

    while (*name) {
        if (p < end && *p == '*') {
            star = ++p;
            from = name;
        } else if (p < end && (*p == '?' || *p == *name)) {
            p++;
            name++;
        } else if (star) {
            p = star;
            name = ++from;
        } else {
            return false;
        }
    }
    while (p < end && *p == '*')
        p++;
    return p == end;
}

unsigned
pf_point_axes(const struct pf_config *c, enum pf_point p, size_t T, size_t S,
    size_t n_heads, size_t shape[3])
{
    shape[0] = T;
    switch (points[p].kind) {
    case ROW:
    case INNER:
        shape[1] = points[p].kind == ROW ? c->width : c->inner;
        return 2;
    case BY_HEAD:
    case RESULT:
        shape[1] = n_heads;
        shape[2] = points[p].kind == BY_HEAD ? c->head_dim : c->width;
        return 3;
    case MAP:
        shape[0] = n_heads;
        shape[1] = T;
        shape[2] = S;
    }
    return 3;
}

void
pf_point_shape(char *s, size_t size, const struct pf_config *c,
    enum pf_point p, size_t n_heads)
{
    size_t shape[3];

    pf_point_axes(c, p, 0, 0, n_heads, shape);
    switch (points[p].kind) {
    case ROW:
    case INNER:
        snprintf(s, size, "[T, %zu]", shape[1]);
        break;
    case BY_HEAD:
    case RESULT:
        snprintf(s, size, "[T, %zu, %zu]", shape[1], shape[2]);
        break;
    case MAP:
        snprintf(s, size, "[%zu, T, S]", shape[0]);
    }
}
