#ifndef INTERRUPT_H
#define INTERRUPT_H

/*
 * SIGINT and SIGTERM, for a command that finishes what it has begun: the first
 * is taken note of, one a second later or more ends the command as ever.
 */

/* Catches this signal, unless the command was started with it ignored. */
void interrupt_catch(int signal);

/* The signal that has come; 0: none. */
int interrupt_signal(void);

/* For poll: readable when one has come.  -1 before interrupt_catch. */
int interrupt_fd(void);

#endif
