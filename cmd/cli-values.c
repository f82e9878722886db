/* The values of options: read whole and within bounds, or refused. */
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

long long
cli_int(const char *name, const char *arg, long long lo, long long hi)
{
    char *end;
    long long v;

    errno = 0;
    v = strtoll(arg, &end, 10);
    if (end == arg || *end || strchr(" \t\n+", arg[0]))
        cli_usage("%s: '%s' is not a whole number", name, arg);
    if (errno || v < lo || v > hi)
        cli_usage("%s: %s is not within %lld and %lld", name, arg, lo, hi);
    return v;
}

double
cli_num(const char *name, const char *arg, double lo, double hi)
{
    char *end;
    double v;

    errno = 0;
    v = strtod(arg, &end);
    if (end == arg || *end || isnan(v) || strpbrk(arg, " \t\n+xXnN"))
        cli_usage("%s: '%s' is not a number", name, arg);
    if (v < lo || v > hi)
        cli_usage("%s: %s is not within %g and %g", name, arg, lo, hi);
    return v;
}

size_t
cli_size(const char *name, const char *arg)
{
    static const char units[] = "KMGT";
    unsigned long long v;
    const char *unit;
    char *end;

    errno = 0;
    v = strtoull(arg, &end, 10);
    if (end == arg || arg[0] < '0' || arg[0] > '9')
        cli_usage("%s: '%s' is not a size", name, arg);
    unit = *end ? strchr(units, *end) : NULL;
    if (errno || (*end && (!unit || end[1])))
        cli_usage("%s: '%s' is not a size (512, 64K, 2M, 1G)", name, arg);
    for (; unit && unit >= units; unit--) {
        if (v > SIZE_MAX / 1024)
            cli_usage("%s: %s is too large", name, arg);
        v *= 1024;
    }
    return (size_t)v;
}

size_t *
cli_list(const char *name, const char *arg, size_t limit, size_t *n)
{
    size_t *list = malloc(limit * sizeof *list);
    const char *p = arg;

    if (!list)
        cli_die("out of memory");
    *n = 0;
    for (;;) {
        unsigned long from, to;
        char *end;

        if (*p < '0' || *p > '9')
            cli_usage("%s: '%s' is not a list such as 0-5,8", name, arg);
        errno = 0;
        from = to = strtoul(p, &end, 10);
        if (*end == '-') {
            p = end + 1;
            if (*p < '0' || *p > '9')
                cli_usage("%s: '%s' is not a list such as 0-5,8", name, arg);
            to = strtoul(p, &end, 10);
        }
        if (errno || to < from || (*end && *end != ','))
            cli_usage("%s: '%s' is not a list such as 0-5,8", name, arg);
        if (to >= limit)
            cli_usage("%s: %lu, but the model's last is %zu", name, to,
                limit - 1);
        for (; from <= to; from++) {
            for (size_t i = 0; i < *n; i++)
                if (list[i] == from)
                    cli_usage("%s: %lu stands twice", name, from);
            list[(*n)++] = from;
        }
        if (!*end)
            return list;
        p = end + 1;
    }
}
