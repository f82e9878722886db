/* Steps as text: one table says what each takes. */
#include <pipeformer/sample.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct number {
    const char *name;
    double lo, hi;
    bool whole;    /* no fraction */
    bool optional; /* then: */
    double absent;
};

static const struct kind {
    const char *name;
    struct number x[3];
} kinds[] = {
    [PF_STEP_TEMP] = { "temp", { { "X", 0, 1e9, 0, 0, 0 } } },
    [PF_STEP_DYNATEMP] = { "dynatemp", { { "LO", 0, 1e9, 0, 0, 0 },
        { "HI", 0, 1e9, 0, 0, 0 }, { "EXP", 0, 1000, 0, 1, 1 } } },
    [PF_STEP_TOP_K] = { "top-k", { { "N", 0, INT32_MAX, 1, 0, 0 } } },
    [PF_STEP_TOP_P] = { "top-p", { { "X", 0, 1, 0, 0, 0 } } },
    [PF_STEP_MIN_P] = { "min-p", { { "X", 0, 1, 0, 0, 0 } } },
    [PF_STEP_TYPICAL] = { "typical", { { "X", 0, 1, 0, 0, 0 } } },
    [PF_STEP_TOP_N_SIGMA] = { "top-n-sigma", { { "X", 0, 1e9, 0, 0, 0 } } },
    [PF_STEP_EPSILON] = { "epsilon", { { "X", 0, 1, 0, 0, 0 } } },
    [PF_STEP_ETA] = { "eta", { { "X", 0, 1, 0, 0, 0 } } },
    [PF_STEP_XTC] = { "xtc", { { "P", 0, 1, 0, 0, 0 },
        { "T", 0, 1, 0, 0, 0 } } },
    [PF_STEP_REPEAT] = { "repeat-penalty", { { "X", 1e-9, 1e9, 0, 0, 0 } } },
    [PF_STEP_FREQUENCY] = { "frequency-penalty",
        { { "X", -1e9, 1e9, 0, 0, 0 } } },
    [PF_STEP_PRESENCE] = { "presence-penalty",
        { { "X", -1e9, 1e9, 0, 0, 0 } } },
    [PF_STEP_LOGIT_BIAS] = { "logit-bias", { { "ID", 0, INT32_MAX, 1, 0, 0 },
        { "X", -HUGE_VAL, 1e30, 0, 0, 0 } } },
    [PF_STEP_DRY] = { "dry", { { "MULT", 0, 1e9, 0, 0, 0 },
        { "BASE", 1, 1e9, 0, 1, 1.75 },
        { "ALLOWED", 1, INT32_MAX, 1, 1, 2 } } },
    [PF_STEP_MIROSTAT] = { "mirostat", { { "VERSION", 1, 2, 1, 0, 0 },
        { "TAU", 0, 1e9, 0, 1, 5 }, { "ETA", 0, 1e9, 0, 1, 0.1 } } },
};

enum { N_KINDS = sizeof kinds / sizeof *kinds };

const char *
pf_step_name(enum pf_step_kind kind)
{
    return kinds[kind].name;
}

bool
pf_step_looks_back(const struct pf_step *step)
{
    switch (step->kind) {
    case PF_STEP_REPEAT: return step->x[0] != 1;
    case PF_STEP_FREQUENCY:
    case PF_STEP_PRESENCE:
    case PF_STEP_DRY: return step->x[0] != 0;
    default: return false;
    }
}

/* One number of `len` bytes, strictly. */
static enum pf_status
parse_number(const struct number *n, const char *text, size_t len, double *x,
    struct pf_err *err)
{
    char copy[64], *end;

    if (len == 0 || len >= sizeof copy)
        return pf_fail(err, PF_ERANGE, "%s is no number: '%.*s'", n->name,
            (int)(len < 40 ? len : 40), text);
    memcpy(copy, text, len);
    copy[len] = '\0';
    *x = strtod(copy, &end);
    if (end == copy || *end || isnan(*x) || strpbrk(copy, " \t\n\r\v\f+xX"))
        return pf_fail(err, PF_ERANGE, "%s is no number: '%.40s'", n->name,
            copy);
    if (*x < n->lo || *x > n->hi)
        return pf_fail(err, PF_ERANGE, "%s: %.40s is not within %g and %g",
            n->name, copy, n->lo, n->hi);
    if (n->whole && *x != floor(*x))
        return pf_fail(err, PF_ERANGE, "%s: %.40s is not a whole number",
            n->name, copy);
    return PF_OK;
}

/* What a range of each number by itself cannot say. */
static enum pf_status
check_step(const struct pf_step *step, struct pf_err *err)
{
    const double *x = step->x;

    switch (step->kind) {
    case PF_STEP_TEMP:
        if (x[0] > 0 && x[0] < 1e-9)
            return pf_fail(err, PF_ERANGE, "X: %g is neither 0 nor at least 1e-9",
                x[0]);
        break;
    case PF_STEP_DYNATEMP:
        if (x[0] > x[1])
            return pf_fail(err, PF_ERANGE, "LO: %g is above HI, %g", x[0],
                x[1]);
        break;
    case PF_STEP_EPSILON:
    case PF_STEP_ETA:
        if (x[0] >= 1)
            return pf_fail(err, PF_ERANGE, "X: %g is not below 1", x[0]);
        break;
    default: break;
    }
    return PF_OK;
}

enum pf_status
pf_step_parse(struct pf_step *step, const char *text, struct pf_err *err)
{
    size_t len = strcspn(text, ":"), k = 0;
    enum pf_status st;

    while (k < N_KINDS && (strlen(kinds[k].name) != len
            || strncmp(kinds[k].name, text, len) != 0))
        k++;
    if (k == N_KINDS)
        return pf_fail(err, PF_ERANGE, "'%.*s' is no step",
            (int)(len < 40 ? len : 40), text);
    *step = (struct pf_step){ (enum pf_step_kind)k, { 0 } };
    text += len;
    for (size_t i = 0; i < 3 && kinds[k].x[i].name; i++) {
        const struct number *n = &kinds[k].x[i];

        if (*text == '\0' && n->optional) {
            step->x[i] = n->absent;
            continue;
        }
        if (*text == '\0')
            return pf_fail(err, PF_ERANGE, "%s is missing", n->name);
        len = strcspn(++text, ":");
        st = parse_number(n, text, len, &step->x[i], err);
        if (st)
            return st;
        text += len;
    }
    if (*text)
        return pf_fail(err, PF_ERANGE, "too many numbers: '%.40s'", text);
    return check_step(step, err);
}

const char *
pf_preset_step(const char *name, size_t i)
{
    static const struct {
        const char *name, *steps[6];
    } presets[] = {
        { "hf", { "temp:1", "top-k:50", "top-p:1" } },
        { "llama.cpp", { "top-k:40", "top-p:0.95", "min-p:0.05",
            "temp:0.8" } },
    };

    for (size_t k = 0; k < sizeof presets / sizeof *presets; k++)
        if (strcmp(presets[k].name, name) == 0)
            return i < 6 ? presets[k].steps[i] : NULL;
    return NULL;
}
