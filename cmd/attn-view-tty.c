/* attn-view: what the terminal can do. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "attn-view.h"
#include "cli.h"

static bool
has(const char *name, const char *value)
{
    const char *env = getenv(name);

    return env && strstr(env, value);
}

enum term_color
term_color(const char *when)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    bool ask = !when || strcmp(when, "auto") == 0;

    if (ask) {
        if (!isatty(1) || (no && *no) || !term || strcmp(term, "dumb") == 0)
            return TERM_PLAIN;
    } else if (strcmp(when, "never") == 0) {
        return TERM_PLAIN;
    } else if (strcmp(when, "256") == 0) {
        return TERM_256;
    } else if (strcmp(when, "truecolor") == 0) {
        return TERM_TRUE;
    } else if (strcmp(when, "always") != 0) {
        cli_usage("--color: '%s' is none of auto, always, never, truecolor "
            "and 256", when);
    }
    if (has("COLORTERM", "truecolor") || has("COLORTERM", "24bit"))
        return TERM_TRUE;
    return has("TERM", "256color") || !ask ? TERM_256 : TERM_PLAIN;
}

size_t
term_width(void)
{
    const char *env = getenv("COLUMNS");
    struct winsize w;
    char *rest;
    long n;

    if (isatty(1) && ioctl(1, TIOCGWINSZ, &w) == 0 && w.ws_col)
        return w.ws_col > TERM_WIDTH_MIN ? w.ws_col : TERM_WIDTH_MIN;
    n = env ? strtol(env, &rest, 10) : 0;
    return n >= TERM_WIDTH_MIN && n <= TERM_WIDTH_MAX && !*rest ? (size_t)n
        : 80;
}
