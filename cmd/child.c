/*
 * A shell command whose input and output are ours.  What is to go in waits in
 * memory until the command takes it, so that its output can always be read.
 */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

/* Commands of the same build come first. */
static void
prepend_path(void)
{
    char here[4096], *path;
    ssize_t n = readlink("/proc/self/exe", here, sizeof here - 1);
    const char *old = getenv("PATH");
    size_t len;

    if (n <= 0)
        return;
    here[n] = '\0';
    *strrchr(here, '/') = '\0';
    len = strlen(here) + (old ? strlen(old) : 0) + 2;
    path = malloc(len);
    if (!path)
        return;
    snprintf(path, len, "%s%s%s", here, old ? ":" : "", old ? old : "");
    setenv("PATH", path, 1);
    free(path);
}

/*
 * Is it one pipeline of commands, as far as can be seen?  No list, no group, no
 * comment, no word that stands before a pipeline; what is quoted does not
 * count, nor does the & of a redirection.
 */
static bool
is_pipeline(const char *p)
{
    char quote = '\0', before = '\0';
    size_t word;

    p += strspn(p, " \t");
    word = strcspn(p, " \t");
    if (word == 0 || strncmp(p, "!", word) == 0
        || (word == 4 && strncmp(p, "time", word) == 0))
        return false;
    for (; *p; before = *p++) {
        if (*p == '\\' && quote != '\'' && p[1])
            p++;
        else if (quote)
            quote = *p == quote ? '\0' : quote;
        else if (*p == '\'' || *p == '"')
            quote = *p;
        else if (strchr(";#(){}\n", *p) || (*p == '|' && before == '|')
            || (*p == '&' && before != '>' && before != '<'))
            return false;
    }
    return true;
}

/*
 * The shell must not hold the ends of the pipe that the filters have: then the
 * death of a filter would not show.  So the filters run in the background,
 * their input comes from descriptor 4, and the shell closes its own.  (More
 * than a plain pipeline runs in a shell of its own, which holds them again.)
 */
static char *
script(const char *pipe)
{
    struct pf_buf b = PF_BUF_INIT;

    pf_buf_printf(&b, is_pipeline(pipe) ? "<&4 %s" : "{ %s\n} <&4", pipe);
    pf_buf_adds(&b, " & exec </dev/null >/dev/null 4<&-; wait $!");
    pf_buf_addc(&b, '\0');
    if (b.failed)
        cli_die("out of memory");
    return b.data;
}

void
child_start(struct child *c, const char *pipe_line)
{
    char *command = script(pipe_line);
    int to[2], from[2];

    if (pipe(to) || pipe(from))
        cli_die("cannot make a pipe: %s", strerror(errno));
    for (int i = 0; i < 2; i++) {
        fcntl(to[i], F_SETFD, FD_CLOEXEC);
        fcntl(from[i], F_SETFD, FD_CLOEXEC);
    }
    prepend_path();
    c->pid = fork();
    if (c->pid < 0)
        cli_die("cannot start a process: %s", strerror(errno));
    if (c->pid == 0) {
        int in = dup(to[0]), out = dup(from[1]); /* not 1 or 4 themselves */

        dup2(in, 4);
        dup2(out, 1);
        for (int fd = 5; fd <= (in > out ? in : out); fd++)
            close(fd);
        signal(SIGINT, SIG_IGN); /* it learns by the end of its input */
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    free(command);
    signal(SIGPIPE, SIG_IGN); /* EPIPE tells the same, with a place */
    close(to[0]);
    close(from[1]);
    c->to = to[1];
    fcntl(c->to, F_SETFL, O_NONBLOCK);
    c->in = (struct pf_in)PF_IN_INIT;
    c->in.fd = from[0];
    c->reader = (struct pf_reader)PF_READER_INIT;
    c->reader.in = &c->in;
    c->reader.main_name = "ids";
}

void
child_end(struct child *c)
{
    struct pollfd p = { .fd = c->to, .events = POLLOUT };
    const char *line, *end;

    close(c->in.fd);
    c->in.fd = -1;
    /* A record that was begun is finished, so that none complains. */
    if (c->to >= 0 && c->cut && c->sent < c->queue.len) {
        line = c->queue.data + c->sent;
        end = memchr(line, '\n', c->queue.len - c->sent);
        c->queue.len = (size_t)(end + 1 - c->queue.data);
        while (c->to >= 0 && c->sent < c->queue.len) {
            poll(&p, 1, -1);
            child_send(c);
        }
    }
    child_close(c);
}

void
child_close(struct child *c)
{
    if (c->to >= 0)
        close(c->to);
    c->to = -1;
}

void
child_feed(struct child *c, const struct pf_record *rec)
{
    struct pf_err err;

    if (pf_record_print(&c->queue, rec, &err))
        cli_die("%s", err.msg);
}

void
child_send(struct child *c)
{
    ssize_t n;

    if (c->to < 0 || c->sent == c->queue.len)
        return;
    n = write(c->to, c->queue.data + c->sent, c->queue.len - c->sent);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        child_close(c); /* it has ended: its output tells why */
        n = (ssize_t)(c->queue.len - c->sent);
    }
    if (n > 0) {
        c->sent += (size_t)n;
        c->cut = c->queue.data[c->sent - 1] != '\n';
    }
    if (c->sent > c->queue.len / 2) {
        c->queue.len -= c->sent;
        memmove(c->queue.data, c->queue.data + c->sent, c->queue.len);
        c->sent = 0;
    }
}
