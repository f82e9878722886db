"""Runs a pipeline as the foreground of a terminal of its own.

terminal.py [-k FILE] [-n TIMES] SHELL-COMMAND

The command's standard input, output and error are a terminal of 24 rows and
80 columns; what it shows there is written to standard output, as it came.
With -k, Ctrl-C is typed as soon as FILE is not empty (-n: so often, 1.2
seconds apart).  The exit status is the command's, 128 and the number of the
signal if it died of one.  Lastly on standard error: how many processes of the
terminal's session there are left.
"""
import argparse
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from fcntl import ioctl

LIMIT = 120  # seconds


def left(session):
    """The processes of that session that have not ended."""
    n = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as f:
                stat = f.read().rpartition(")")[2].split()
        except OSError:
            continue
        n += int(stat[3]) == session and stat[0] != "Z"
    return n


def main():
    args = argparse.ArgumentParser()
    args.add_argument("-k", metavar="FILE")
    args.add_argument("-n", type=int, default=1)
    args.add_argument("command")
    args = args.parse_args()
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        ioctl(0, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
        os.execlp("sh", "sh", "-c", args.command)
    end = time.time() + LIMIT
    keys, wait = args.n if args.k else 0, 0
    while time.time() < end:
        if select.select([fd], [], [], 0.05)[0]:
            try:
                got = os.read(fd, 65536)
            except OSError:  # all have closed it
                break
            sys.stdout.buffer.write(got)
            sys.stdout.flush()
        if keys and time.time() > wait and os.path.exists(args.k) \
                and os.path.getsize(args.k):
            os.write(fd, b"\x03")
            keys, wait = keys - 1, time.time() + 1.2
    else:
        os.killpg(pid, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print("left:", left(pid), file=sys.stderr)
    sys.exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    main()
