#ifndef LOOP_H
#define LOOP_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The loop of `generate`: prompts go into a pipe of filters, every token that
 * comes out is written and fed back, until each sequence is done.
 */
struct loop_options {
    const char *pipe; /* a shell command, ids in, ids out */
    size_t window;    /* ids that a prompt may have; 0: not known */
    size_t vocab;     /* ids are below it; 0: not known */
    size_t parallel;  /* sequences in the pipe at a time at most */
    size_t samples;   /* continuations of each prompt, with names of their
                         own; 0: one, with the prompt's */
    bool whole;       /* a record a sequence, in the order of the prompts */
    bool echo;        /* with the prompt */
};

/*
 * Runs over all operands of the command line; returns the exit status, which
 * after SIGINT or SIGTERM is 128 and its number.
 */
int loop_run(const struct loop_options *options);

#endif
