#!/usr/bin/env python3
"""tok-encode and tok-decode against the ids of other engines, as TAP.

Run by tests/pipe/vectors.t, in a directory of its own.  The cases are those of
golden/tokenizer (made with tiktoken and HuggingFace tokenizers 0.22.2;
where engines disagree, "ids" is the authority's answer), and those that lie
under $SHARED/vectors/tokenizer/other-engines.
"""
import base64
import hashlib
import itertools
import json
import os
import random
import select
import struct
import subprocess
import sys
import time

GOLDEN = os.environ['PF_SOURCE'] + '/tests/golden/tokenizer'
SHARED = os.environ['SHARED']
OTHER = SHARED + '/vectors/tokenizer/other-engines'
TEST = SHARED + '/vocab/test'
SLOW = any(s in os.environ['PF_BUILD'] for s in ('asan', 'fuzz', 'ubsan'))
BPE = ('gpt2', 'r50k_base', 'p50k_base', 'p50k_edit', 'cl100k_base',
       'o200k_base', 'o200k_harmony')

count = failed = 0


def report(name, why=None):
    global count, failed
    count += 1
    if why is None:
        print(f'ok {count} - {name}')
    else:
        failed += 1
        print(f'not ok {count} - {name}')
        for line in str(why).split('\n')[:20]:
            print('# ' + line[:400])
    sys.stdout.flush()


def skip(name, why):
    global count
    count += 1
    print(f'ok {count} - {name} # SKIP {why}')


def run(command, data):
    """Standard output; AssertionError on failure or a message."""
    p = subprocess.run(command, input=data, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE)
    assert p.returncode == 0 and not p.stderr, \
        f'{" ".join(command)}: status {p.returncode}: {p.stderr[:300]!r}'
    return p.stdout


def attempt(name, function, *arguments):
    """A test: function says what is wrong, or nothing."""
    try:
        report(name, function(*arguments) or None)
    except AssertionError as e:
        report(name, e)


def golden(name):
    with open(f'{GOLDEN}/{name}.ndjson', encoding='utf-8',
              newline='\n') as f:
        return [json.loads(line) for line in f]


def lines(texts):
    """Records, with and without escapes for what is not ASCII."""
    return ''.join(json.dumps(t, ensure_ascii=i % 2 == 0) + '\n'
                   for i, t in enumerate(texts)).encode(
                       'utf-8', 'surrogatepass')


def records(data):
    return [json.loads(line) for line in data.decode().split('\n')[:-1]]


def compare(cases, got, keys):
    """Fields of records against fields of cases."""
    if len(got) != len(cases):
        return f'{len(got)} records of {len(cases)}'
    for case, rec in zip(cases, got):
        for ours, theirs in keys:
            if theirs in case and rec.get(ours) != case[theirs]:
                return (f'{case.get("id")} {case["text"]!r}\n'
                        f'{ours}: {rec.get(ours)}\nwant: {case[theirs]}')
    return None


# --- Encoding


def encode(tokenizer, options, cases, keys):
    """As records, as texts with NUL, as a file each, by two threads."""
    command = ['tok-encode', *tokenizer, *options]
    texts = [{'text': c['text'], **({'text_pair': c['pair']} if 'pair' in c
                                    else {})} for c in cases]
    for threads in '1', '2':
        wrong = compare(cases, records(run(
            command + ['-r', '-t', '--threads', threads], lines(texts))), keys)
        if wrong:
            return wrong
    if any('pair' in c for c in cases):
        return None
    plain = [c for c in cases if '\0' not in c['text']]
    data = ''.join(c['text'] + '\0' for c in plain).encode()
    wrong = compare(plain, records(run(command + ['-0'], data)),
                    [('ids', 'ids')])
    if wrong:
        return '-0: ' + wrong
    counts = run(command + ['-0', '-c'], data).decode().split()
    if counts != [str(len(c['ids'])) for c in plain]:
        return '-c: other counts'
    raw = run(command + ['-0', '--raw', 'u32'], data)
    if raw != b''.join(struct.pack(f'<{len(c["ids"])}I', *c['ids'])
                       for c in plain):
        return '--raw: other ids'
    return None


def special(case):
    return case.get('special', 'all')


def encode_all():
    ids = [('ids', 'ids'), ('tokens', 'tokens'), ('segments', 'type_ids')]
    total = {}
    for name, by in (('bpe', 'encoding'), ('bpe_disagreements', 'encoding'),
                     ('wordpiece', 'model'),
                     ('wordpiece_disagreements', 'model'),
                     ('wordpiece_pairs', 'model')):
        cases = golden(name)
        total[name] = len(cases)
        groups = {}
        for c in cases:
            groups.setdefault((c[by], special(c)), []).append(c)
        for (encoding, how), group in groups.items():
            title = f'{name}: {encoding}, special {how}: {len(group)} cases'
            tokenizer = ['-e', encoding]
            if encoding == 'bert-base-cased':
                tokenizer = ['-e', f'{TEST}/{encoding}']
                if not os.path.exists(tokenizer[1]):
                    skip(title, f'no {tokenizer[1]}')
                    continue
            attempt(title, encode, tokenizer, ['--special', how], group, ids)
    report('no case is missing', None if total == {
        'bpe': 1840, 'bpe_disagreements': 63, 'wordpiece': 437,
        'wordpiece_disagreements': 47, 'wordpiece_pairs': 6} else total)


def stress(case):
    text = (case['unit'] * case['count']).encode()
    data = run(['tok-encode', '-s', '-e', case['encoding']], text)
    ids = records(data)[0]['ids']
    sha = hashlib.sha256(','.join(map(str, ids)).encode()).hexdigest()
    if sha != case['ids_sha256']:
        return f'{len(ids)} ids of {case["n_ids"]}: {ids[:5]} {ids[-5:]}'
    raw = run(['tok-encode', '-s', '-e', case['encoding'], '--raw', 'u32'],
              text)
    if raw != struct.pack(f'<{len(ids)}I', *ids):
        return '--raw: other ids'
    return None


# --- Decoding


def decode(case):
    rec = json.dumps({'ids': case['ids']}).encode()
    got = run(['tok-decode', '-s', '-e', case['encoding']], rec)
    if got.hex() != case['bytes_hex']:
        return f'{case["id"]}: {got.hex()}\nwant: {case["bytes_hex"]}'
    rec = records(run(['tok-decode', '-r', '-e', case['encoding']], rec))[0]
    if rec['text'] != case['text']:
        return f'{case["id"]}: {rec["text"]!r}, want {case["text"]!r}'
    return None


def one_by_one(case):
    """The ids as records of a sequence: more follow but the last."""
    n = len(case['ids'])
    for i, token in enumerate(case['ids']):
        rec = {'seq': case['id'], 'pos': i, 'ids': [token]}
        rec.update({'more': True} if i + 1 < n else {'done': 'length'})
        yield rec


def streams(cases):
    """-r: what is whole after each id, and the rest at the end."""
    for encoding in sorted({c['encoding'] for c in cases}):
        group = [c for c in cases if c['encoding'] == encoding]
        # Sequence by sequence, and then all at once.
        for records_ in (
                [r for c in group for r in one_by_one(c)],
                [r for rs in itertools.zip_longest(*map(one_by_one, group))
                 for r in rs if r]):
            texts = {}
            for r in records(run(['tok-decode', '-r', '-e', encoding],
                                 lines(records_))):
                texts.setdefault(r['seq'], []).append(r['text'])
            for c in group:
                want = list(c['stream'])
                if want:
                    want[-1] += c['stream_end']
                if texts.get(c['id'], []) != want:
                    return f'{c["id"]}: {texts.get(c["id"])}\nwant: {want}'
    return None


def live(case):
    """The bytes as they come: nothing before a character is whole."""
    p = subprocess.Popen(['tok-decode', '-s', '-e', case['encoding']],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    out, got = p.stdout.fileno(), b''
    for rec, text in zip(one_by_one(case), case['stream']):
        # What ended the text may end the process: no end is told.
        rec.pop('done', None)
        p.stdin.write(lines([rec]))
        p.stdin.flush()
        want = len(got) + len(text.encode())
        limit = time.time() + (20 if text else 0.02)
        while len(got) < want or not text:
            left = limit - time.time()
            if left <= 0 or not select.select([out], [], [], left)[0]:
                break
            more = os.read(out, 65536)
            got += more
            if not more:
                break
        if len(got) != want:
            p.kill()
            p.wait()
            return f'{case["id"]}: {len(got)} bytes of {want} at {rec}'
    rest, _ = p.communicate()
    if (got + rest).hex() != case['bytes_hex']:
        return f'{case["id"]}: {got + rest!r}'
    return None


def decode_all():
    cases = golden('decode')
    for encoding in sorted({c['encoding'] for c in cases}):
        group = [c for c in cases if c['encoding'] == encoding]
        attempt(f'decode: {encoding}: {len(group)} cases',
                lambda g: next(filter(None, map(decode, g)), None), group)
    report('no case is missing', None if len(cases) == 124 else len(cases))
    attempt('decode: what each id adds', streams, cases)
    if SLOW:
        return
    group = [c for c in cases if not c['stream_end']
             and '\ufffd' not in ''.join(c['stream'])][::12]
    attempt(f'decode: {len(group)} cases, as they come',
            lambda g: next(filter(None, map(live, g)), None), group)


# --- There and back


def random_text(r, n):
    """Characters of all kinds and lengths, with many borders."""
    ranges = ((0x20, 0x7e), (0x20, 0x7e), (0, 0x20), (0xa0, 0x17f),
              (0x300, 0x36f), (0x400, 0x4ff), (0x600, 0x6ff),
              (0x900, 0x97f), (0xe00, 0xe7f), (0x1c4, 0x1cc),
              (0x2000, 0x206f), (0x3040, 0x30ff), (0x4e00, 0x9fff),
              (0xac00, 0xd7a3), (0xfe00, 0xfe0f), (0xff00, 0xffef),
              (0x1f300, 0x1faff), (0x10000, 0x10ffff), (0, 0xd7ff))
    text = ''
    while len(text) < n:
        lo, hi = r.choice(ranges)
        text += ''.join(chr(r.randint(lo, hi))
                        for _ in range(r.choice((1, 1, 2, 5, 30))))
        text += r.choice(('', '', ' ', '\n', "'s", '  ', '12', '<|endoftext|>'))
    return text


def there_and_back(encoding, data):
    for options in ([], ['--special', 'all'], ['--threads', '2']):
        ids = run(['tok-encode', '-s', '-e', encoding, *options], data)
        got = run(['tok-decode', '-s', '-e', encoding], ids)
        if got != data:
            at = next((i for i, (a, b) in enumerate(zip(got, data))
                       if a != b), min(len(got), len(data)))
            return (f'{options}: {len(got)} bytes of {len(data)}, other from '
                    f'{at} on: {data[at:at + 20]!r}')
    raw = run(['tok-encode', '-s', '-e', encoding, '--raw', 'u32'], data)
    if run(['tok-decode', '-s', '-e', encoding, '--raw', 'u32'], raw) != data:
        return '--raw: other bytes'
    return None


def round_trips():
    r = random.Random(4)
    size = 20000 if SLOW else 300000
    half = [bytes([r.choice((0x80, 0xc3, 0xe2, 0xf0, 0x9f, 0x98, 0x41, 0x20,
                             0xed, 0xa0, 0xff))]) for _ in range(size)]
    texts = {
        'random bytes': r.randbytes(size),
        'parts of characters': b''.join(half),
        'random characters': random_text(r, size // 3).encode(),
        'every text of bpe.ndjson': '\n'.join(sorted({c['text'] for c in
                                              golden('bpe')})).encode(),
    }
    for encoding in BPE:
        for name, data in texts.items():
            attempt(f'{encoding}: {name} come back', there_and_back, encoding,
                    data)


# --- No bad case: a mebibyte of each


def bad_cases():
    r = random.Random(5)
    size = 1 << (16 if SLOW else 20)
    limit = 60 if SLOW else 5
    texts = {
        'a letter': b'a' * size,
        'a capital': b'A' * size,
        'spaces': b' ' * size,
        'newlines': b'\n' * size,
        'digits': b'7' * size,
        '^': b'^' * size,
        'one character of Chinese': '\u4e2d'.encode() * (size // 3),
        'Chinese': ''.join(chr(r.randint(0x4e00, 0x9fff))
                           for _ in range(size // 3)).encode(),
        'emoji': '\U0001f98a'.encode() * (size // 4),
        'emoji of several': ('\U0001f468\u200d\U0001f469\u200d\U0001f467'
                             .encode() * (size // 18)),
        'base64': base64.b64encode(r.randbytes(size * 3 // 4)),
        'bytes 80': b'\x80' * size,
        'NUL': b'\0' * size,
        'combining marks': b'a' + '\u0301'.encode() * (size // 2),
        'a b a b': b'ab' * (size // 2),
    }
    for encoding in (*BPE[:1], *BPE[2:3], *BPE[4:6], 'bert-base-uncased'):
        slowest = (0, '')
        wrong = None
        for name, data in texts.items():
            start = time.time()
            try:
                raw = run(['tok-encode', '-s', '--threads', '1', '--raw',
                           'u32', '-e', encoding], data)
            except AssertionError as e:
                wrong = e
                break
            took = time.time() - start
            slowest = max(slowest, (took, name))
            if not encoding.startswith('bert') and run(
                    ['tok-decode', '-s', '-e', encoding, '--raw', 'u32'],
                    raw) != data:
                wrong = f'{name}: other bytes come back'
                break
        if not wrong and slowest[0] > limit:
            wrong = f'{slowest[1]} took {slowest[0]:.1f} s'
        report(f'{encoding}: {size} bytes of one kind, {len(texts)} kinds'
               f' (the slowest: {slowest[1]}, {slowest[0]:.2f} s)', wrong)


# --- Other engines


def engine(tokenizer, texts, ids, options=()):
    cases = [{'text': t, 'ids': i} for t, i in zip(texts, ids)]
    if len(texts) != len(ids):
        return f'{len(texts)} texts, {len(ids)} lists of ids'
    return encode(tokenizer, ['--no-add-special', *options], cases,
                  [('ids', 'ids')])


def llama2():
    """A tokenizer.json, as pipe/hf.t makes it."""
    import hf_files
    os.makedirs('llama2', exist_ok=True)
    with open('llama2/tokenizer.json', 'w', encoding='utf-8') as f:
        json.dump(hf_files.llama2(TEST), f)
    return ['-e', 'llama2']


def engines():
    if not os.path.exists(OTHER):
        skip('other engines', f'no {OTHER} (set PIPEFORMER_SHARED)')
        return
    with open(f'{OTHER}/strings.json', encoding='utf-8') as f:
        strings = json.load(f)
    for name in ('js-tiktoken_gpt2', 'js-tiktoken_p50k_base',
                 'js-tiktoken_cl100k_base', 'js-tiktoken_o200k_base',
                 'lenml_gptoss', 'lenml_minilm'):
        with open(f'{OTHER}/{name}.json', encoding='utf-8') as f:
            ids = json.load(f)
        encoding = name.split('_', 1)[1]
        encoding = {'gptoss': 'o200k_harmony',
                    'minilm': 'bert-base-uncased'}.get(encoding, encoding)
        attempt(f'{name}: {len(ids)} strings', engine, ['-e', encoding],
                strings, ids)
    for name, tokenizer in (
            ('gpt-2', ['-e', 'gpt2']),
            ('bert-bge', ['-e', 'bert-base-uncased']),
            ('llama-bpe', ['-e', f'{TEST}/llama3/llama3.tiktoken',
                           '--pattern', 'cl100k', '--special-tokens',
                           f'{TEST}/llama3/special_tokens.json']),
            ('qwen2', ['-e', f'{TEST}/qwen2/qwen.tiktoken',
                       '--pattern', 'qwen2']),
            ('llama-spm', None)):
        with open(f'{OTHER}/ggml-vocab-{name}.inp', encoding='utf-8',
                  newline='') as f:
            texts = f.read().split('\n__ggml_vocab_test__\n')
        with open(f'{OTHER}/ggml-vocab-{name}.out') as f:
            ids = [list(map(int, line.split())) for line in f]
        if texts[-1] == '' and len(texts) == len(ids) + 1:
            texts.pop()
        attempt(f'ggml-vocab-{name}: {len(ids)} texts', engine,
                tokenizer or llama2(), texts, ids)


def main():
    encode_all()
    for case in golden('stress'):
        attempt(f'stress: {case["encoding"]}, {case["unit"]!r} times '
                f'{case["count"]}', stress, case)
    decode_all()
    round_trips()
    bad_cases()
    engines()
    print(f'1..{count}')
    if failed:
        print(f'# {failed} of {count} failed')
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
