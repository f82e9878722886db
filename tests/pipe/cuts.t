# tok-encode gives the same bytes however its input comes: in pieces of any
# size, with pauses, from a file or a pipe, to any number of threads.
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

cat >cuts.py <<'END'
import glob
import itertools
import os
import random
import subprocess
import sys
import time

slow = sys.argv[1] == '1'
root = os.environ['PF_SOURCE']
r = random.Random(6)
size = 60000 if slow else 400000
long_size = 100000 if slow else 1200000
encodings = ('gpt2', 'cl100k_base', 'o200k_base', 'bert-base-uncased')
tests = failed = 0


def report(name, why):
    global tests, failed
    tests += 1
    failed += bool(why)
    print('%sok %d - %s' % ('not ' if why else '', tests, name))
    for line in why:
        print('# ' + line[:400])
    sys.stdout.flush()


# --- Texts

prose = b''.join(open(p, 'rb').read() for p in sorted(
    glob.glob(root + '/man/*.[157]')))
words = prose.split()
han = [chr(c) for c in range(0x4e00, 0x4e00 + 3000)]
signs = [c.encode() for c in (
    '\U0001f98a', '\U0001f468\u200d\U0001f469\u200d\U0001f467', '\u00e9',
    'e\u0301', '\u3000', '\u00a0', '\u2028', '\u0e33', '\u05d0\u05b0',
    "don't", "I'LL", '\r', '\t', '  ', '\r\n', '12345', '<|endoftext|>',
    '[MASK]', '...', '\ufffd', '\x00', '_', '\u0130', '\u1e9e')] + [
    b'\xff', b'\xe4\xb8', b'\xf0\x9f\xa6', b'\xed\xa0\x80', b'\xc0\x80']


def of_words(n, between):
    out = b''
    while len(out) < n:
        out += between.join(r.choices(words, k=2000)) + between
    return out[:n]


def of_han(n):
    return ''.join(r.choices(han, k=n // 3)).encode()


def mixed(n):
    out = b''
    while len(out) < n:
        out += b''.join(
            r.choice((b'', b' ', b' ', b'\n', b'\n\n', b'\0')) + r.choice(
                (r.choice(words), r.choice(words), r.choice(signs),
                 of_han(30), r.randbytes(5))) for _ in range(500))
    return out


# Short texts, long ones that are shared by threads, one that is worked on in
# parts, and some behind it.
whole = (mixed(size // 3) + b'\n' + prose[:size // 4] + b'\n'
         + of_words(200000, b' ') + b'\n\0' + of_words(size, b' ')
         + of_han(size) + mixed(9000).replace(b'\n', b' ').replace(b'\0', b'')
         + b'\n\0a\n' + mixed(20000))
if slow:
    whole = whole[:200000] + b'\n' + whole[-9000:]

# --- Runs


def sizes(kind):
    """Lengths of the writes, without end."""
    while True:
        if kind == 'small':
            yield r.choice((1, 2, 3, 5, 7, 64))
        elif kind == 'odd':
            yield r.choice((1, 999, 4097, 65537, 100003))
        else:
            yield r.choice((1 << 16, (1 << 20) - 1, 3))


def run(command, data, kind=None):
    """Output; written by pieces of that kind, or from a file."""
    if kind is None:
        with open('input', 'wb') as f:
            f.write(data)
        with open('input', 'rb') as f:
            p = subprocess.run(command, stdin=f, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
        return p.returncode, p.stdout
    with open('output', 'wb') as f:
        p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=f,
                             stderr=subprocess.STDOUT)
    at, fd = 0, p.stdin.fileno()
    for i, n in enumerate(sizes(kind)):
        if at >= len(data):
            break
        if i == 400: # that was enough of them
            n = len(data)
        piece = data[at:at + n]
        while piece:
            piece = piece[os.write(fd, piece):]
        at += n
        if i % 8 == 0:
            time.sleep(0.0005)
    p.stdin.close()
    p.wait()
    with open('output', 'rb') as f:
        return p.returncode, f.read()


def differ(name, a, b):
    if a == b:
        return []
    at = next((i for i, (x, y) in enumerate(zip(a[1], b[1])) if x != y),
              min(len(a[1]), len(b[1])))
    return ['%s: status %d, %d bytes, other from %d on: %r' % (
        name, b[0], len(b[1]), at, b[1][at:at + 60]),
        'want: status %d, %d bytes: %r' % (a[0], len(a[1]),
                                           a[1][at:at + 60])]


def compare(name, command, data, variants):
    want = run(command + ['--threads', '1'], data)
    why = []
    if want[0] or not want[1]:
        why = ['status %d, %d bytes' % (want[0], len(want[1]))]
    for threads, kind in variants:
        why += differ('--threads %s, %s' % (threads, kind or 'a file'), want,
                      run(command + ['--threads', threads], data, kind))
    report(name, why)


# Those in which a long text is worked on in parts, and others, each with two
# of the encodings.
parts = (['-c'], ['--raw', 'u32'], ['-s', '-c'], ['-s', '--raw', 'u32'],
         ['-s', '--special', 'all', '--raw', 'u32'])
others = ([], ['-o'], ['-0'], ['-0', '-c', '--total'], ['-n', '7', '-t'],
          ['--chunk', '50:10'], ['--special', 'all', '-c'],
          ['-n', '300', '--raw', 'u32'])
plans = itertools.cycle(((('1', 'odd'), ('5', None)),
                         (('2', 'big'), ('5', 'small')),
                         (('5', 'odd'), ('2', None)),
                         (('1', 'small'), ('2', 'odd')),
                         (('1', 'big'), ('5', 'odd'))))
for i, encoding in enumerate(encodings):
    for mode in [*parts, *others[i % 2::2]]:
        compare(encoding + ': ' + (' '.join(mode) or 'records'),
                ['tok-encode', '-e', encoding] + mode, whole, next(plans))

texts = {
    'prose': of_words(long_size // 2, b' ') + b'\n' + of_words(
        long_size // 2, b'\n'),
    'prose without a newline': of_words(long_size, b' '),
    'words without a space': of_words(long_size, b'-'),
    'Chinese': of_han(long_size),
    'random bytes': r.randbytes(long_size),
    'all of these': mixed(long_size // 2) + of_words(long_size // 2, b' '),
}
for i, encoding in enumerate(encodings):
    for k, (name, data) in enumerate(texts.items()):
        mode = ['-o'] if (i + k) % 2 else ['--raw', 'u32']
        compare('%s: a long text, %s, %s' % (encoding, name, mode[0]),
                ['tok-encode', '-e', encoding, '-s'] + mode, data,
                (('2', 'odd'), ('5', None)))
print('1..%d' % tests)
sys.exit(failed > 0)
END
timeout "$LIMIT" python3 cuts.py $slow
