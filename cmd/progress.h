#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * How far it has come: a line on standard error, where that is a terminal and
 * standard output is not.
 */
struct progress {
    bool on, shown;
    bool shares;       /* what is written may go to the same terminal */
    int64_t patience;  /* then: only when nothing was for so many ms */
    int64_t start, drawn, written;
};

/* Looks whether there is to be one; `tokens`: they are written as they come. */
void progress_start(struct progress *p, bool tokens);

/* How long poll may wait: milliseconds, -1 for ever. */
int progress_wait(const struct progress *p);

/* Draws it, if it is time. */
void progress_draw(struct progress *p, size_t done, size_t live,
    uint64_t tokens);

/* Before something is written to standard output. */
void progress_output(struct progress *p);

/* Erases it: a message follows, or the end. */
void progress_erase(struct progress *p);

#endif
