/*
 * A signal that comes between looking for it and waiting would be missed; so
 * the handler also writes a byte into a pipe that poll looks at.  timeout(1)
 * sends a signal to the command and then to all of its group: two that come
 * together are one.
 */
#include "interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

static volatile sig_atomic_t caught;
static struct timespec first;
static int fds[2] = { -1, -1 };

static void
handle(int sig)
{
    int before = errno;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!caught) {
        first = now;
        caught = sig;
        while (write(fds[1], "", 1) < 0 && errno == EINTR)
            ;
    } else if (now.tv_sec - first.tv_sec > (now.tv_nsec < first.tv_nsec)) {
        signal(sig, SIG_DFL); /* a whole second later: in earnest */
        raise(sig);
    }
    errno = before;
}

void
interrupt_catch(int sig)
{
    struct sigaction act = { .sa_handler = SIG_DFL };

    if (sigaction(sig, NULL, &act) || act.sa_handler == SIG_IGN)
        return;
    if (fds[0] < 0) {
        if (pipe(fds))
            cli_die("cannot make a pipe: %s", strerror(errno));
        for (int i = 0; i < 2; i++) {
            fcntl(fds[i], F_SETFD, FD_CLOEXEC);
            fcntl(fds[i], F_SETFL, O_NONBLOCK);
        }
    }
    act = (struct sigaction){ .sa_handler = handle };
    sigemptyset(&act.sa_mask);
    sigaddset(&act.sa_mask, SIGINT);
    sigaddset(&act.sa_mask, SIGTERM);
    act.sa_flags = SA_RESTART;
    sigaction(sig, &act, NULL);
}

int
interrupt_signal(void)
{
    return caught;
}

int
interrupt_fd(void)
{
    return fds[0];
}
