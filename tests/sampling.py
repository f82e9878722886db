#!/usr/bin/env python3
"""golden/sampling, mirostat, dry and sampling_errors through `sample`, as TAP.

Run by tests/pipe/sampling.t.  A case is a record with `ids` (what came before)
and `logits`; the chain becomes options, a uniform number --draw.
"""
import json
import os
import subprocess
import sys

GOLDEN = os.environ['PF_SOURCE'] + '/tests/golden/'


def cases(name):
    with open(GOLDEN + name + '.ndjson', encoding='utf-8') as f:
        return [json.loads(line) for line in f]


def close(a, b, tolerance):
    return abs(a - b) <= tolerance + tolerance * abs(b)


def options(steps):
    """"top-k:40" as --top-k=40."""
    return ['--%s=%s' % tuple((s + ':').split(':', 1)) for s in steps]


def chain_of(case):
    # The colon that options() adds is dropped again.
    o = [x.rstrip(':') for x in options(case['chain'])]
    if 'last_n' in case:
        o.append('--repeat-last-n=%d' % case['last_n'])
    if 'min_keep' in case:
        o.append('--min-keep=%d' % case['min_keep'])
    return o


def number(x):
    return {float('inf'): '1e999', float('-inf'): '-1e999'}.get(
        x, json.dumps(x))


def record(case, logits, **more):
    fields = ['"logits":[%s]' % ','.join(number(x) for x in logits)]
    if 'prev' in case:
        fields.append('"ids":' + json.dumps(case['prev']))
    fields += ['"%s":%s' % (k, repr(v)) for k, v in more.items()]
    return '{%s}\n' % ','.join(fields)


def sample(o, text):
    p = subprocess.run(['sample'] + o, input=text.encode(),
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert p.returncode == 0 and not p.stderr, (o, p.stderr)
    return json.loads(p.stdout)


def check_sampling(case):
    o, text = chain_of(case), record(case, case['logits'])
    u = ',%r' % case['xtc_u'] if 'xtc_u' in case else ''
    draw = ['--draw=0' + u]
    for k, count in enumerate(case['counts']):
        part = dict(case, chain=case['chain'][:k + 1])
        got = sample(chain_of(part) + draw + ['--probs'], text)['probs']
        assert len(got) == count, (case['chain'][k], len(got), count)
    got = sample(o + draw + ['--probs'], text)['probs']
    assert [i for i, _ in got] == case['ids'], 'ids'
    assert all(close(g[1], p, 1e-5) for g, p in zip(got, case['probs'])), \
        'probs'
    assert sample(o + draw + ['-g'], text)['ids'] == [case['greedy']]
    for d in case['draws']:
        got = sample(o + ['--draw=%r' % d['u'] + u], text)['ids']
        assert got == [d['id']], (d, got)


def check_mirostat(case):
    # mu goes from record to record.
    o = ['--mirostat=%d:%r:%r' % (case['version'], case['tau'], case['eta'])]
    mu = {} if case['mu0'] == 2 * case['tau'] else {'mu': case['mu0']}
    for s in case['steps']:
        text = record(case, s['logits'], **mu)
        got = sample(o + ['--probs'], text)['probs']
        assert len(got) == s['kept'], 'kept'
        got = sample(o + ['--draw=%r' % s['u']], text)
        assert got['ids'] == [s['id']], 'id'
        assert close(got['mu'], s['mu'], 1e-4), 'mu'
        mu = {'mu': got['mu']}


def check_dry(case):
    o = ['--dry=%r:%r:%d' % (case['multiplier'], case['base'],
                             case['allowed_length']),
         '--repeat-last-n=%d' % case['last_n']]
    o += ['--dry-breaker=ids:' + ','.join(map(str, b))
          for b in case['breakers'] or [[]]]
    case = dict(case)
    for s in case['steps']:
        text = record(case, s['logits'])
        assert sample(o + ['-g'], text)['ids'] == [s['greedy']], 'greedy'
        got = sample(o + ['--draw=%r' % s['u']], text)['ids']
        assert got == [s['id']], 'id'
        p = dict(sample(o + ['--probs'], text)['probs'])[s['id']]
        assert close(p, s['p'], 1e-5), 'p'
        case['prev'] = case['prev'] + [s['id']]


def check_error(case):
    o = chain_of(case)
    text = ('{"logits":%s,"ids":%s}\n' % (
        '[%s]' % ','.join(json.dumps(x) if isinstance(x, list) else
                          number(x) for x in case['logits']),
        json.dumps(case.get('prev', []))))
    p = subprocess.run(['sample'] + o, input=text.encode(),
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    message = p.stderr.decode()
    assert p.returncode in (1, 2), p.returncode
    # The record, or the option, is named.
    name = '<stdin>:1: ' if p.returncode == 1 else o[0].split('=')[0]
    assert message.startswith('sample: ') and name in message, message


def main():
    n = failed = 0
    for name, check in (('sampling', check_sampling),
                        ('mirostat', check_mirostat), ('dry', check_dry),
                        ('sampling_errors', check_error)):
        for case in cases(name):
            n += 1
            try:
                check(case)
                print('ok %d - %s: %s' % (n, name, case['name']))
            except AssertionError as e:
                failed += 1
                print('not ok %d - %s: %s' % (n, name, case['name']))
                print('# %s' % (str(e)[:300].replace('\n', ' '),))
            sys.stdout.flush()
    print('1..%d' % n)
    return failed != 0


if __name__ == '__main__':
    sys.exit(main())
