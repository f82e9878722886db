/*
 * `generate | tok-decode` has text and progress on one terminal.  So the line
 * is drawn behind the cursor, which is then put back to where it was: text
 * that comes meanwhile goes on there, and to erase the line is to erase the
 * rest of the row.  Where tokens stream, it comes only when they are late.
 */
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

enum { INTERVAL = 200, LATE = 1000 }; /* ms */

static int64_t
now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void
progress_start(struct progress *p, bool tokens)
{
    const char *term = getenv("TERM");
    struct stat s;

    *p = (struct progress){ .on = !cli.quiet && isatty(2) && !isatty(1)
        && term && *term && strcmp(term, "dumb") != 0 };
    if (!p->on)
        return;
    p->shares = fstat(1, &s) == 0 && !S_ISREG(s.st_mode)
        && !S_ISCHR(s.st_mode);
    p->patience = !p->shares ? 0 : tokens ? LATE : INTERVAL;
    p->start = now();
    p->drawn = p->start - INTERVAL;
    p->written = p->start - LATE;
}

int
progress_wait(const struct progress *p)
{
    return p->on ? INTERVAL : -1;
}

void
progress_draw(struct progress *p, size_t done, size_t live, uint64_t tokens)
{
    int64_t t;
    double seconds;

    if (!p->on || done + live == 0)
        return;
    t = now();
    if (t - p->drawn < INTERVAL || t - p->written < p->patience)
        return;
    seconds = 1e-3 * (double)(t - p->start);
    /* Save the cursor, no wrapping; the line; wrapping, the cursor again. */
    fprintf(stderr, "\0337\033[?7l%s: %zu done, %zu live, %llu tokens, "
        "%.1f tokens/s\033[K\033[?7h\0338", cli.cmd->name, done, live,
        (unsigned long long)tokens,
        seconds > 0 ? (double)tokens / seconds : 0);
    p->drawn = t;
    p->shown = true;
}

void
progress_erase(struct progress *p)
{
    if (p->shown)
        fputs("\033[K", stderr);
    p->shown = false;
}

void
progress_output(struct progress *p)
{
    if (!p->on || !p->shares)
        return;
    progress_erase(p);
    p->written = now();
}
