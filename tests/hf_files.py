#!/usr/bin/env python3
"""Makes tokenizer.json files as HuggingFace has them, for tests.

    hf_files.py SHARED OUTDIR

reads the vocabularies under SHARED/vocab/test and writes OUTDIR/llama2,
OUTDIR/llama3 and OUTDIR/qwen3, each with a tokenizer.json.  Where the
vocabulary comes without merges they are derived from it, by the rules of
HuggingFace's converters (transformers, convert_slow_tokenizer.py).
"""
import base64
import json
import os
import struct
import sys

CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
          r"\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def alphabet():
    """GPT-2's printable character for each byte."""
    plain = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    table = {b: chr(b) for b in plain}
    for b in range(256):
        if b not in table:
            table[b] = chr(0x100 + len(table) - len(plain))
    return table


def read_ranks(path):
    ranks = {}
    with open(path, 'rb') as f:
        for line in f:
            token, rank = line.split()
            ranks[b'' if token == b'=' else base64.b64decode(token)] = \
                int(rank)
    return ranks


def all_splits(ranks):
    """Every way to make a token of two, in order of the token's rank."""
    merges = []
    for token, _ in sorted(ranks.items(), key=lambda item: item[1]):
        pairs = [(token[:i], token[i:]) for i in range(1, len(token))]
        pairs = [p for p in pairs if p[0] in ranks and p[1] in ranks]
        merges += sorted(pairs, key=lambda p: (ranks[p[0]], ranks[p[1]]))
    return merges


def last_pair(token, ranks):
    """The pair that merging by lower ranks leaves of a token."""
    parts = [token[i:i + 1] for i in range(len(token))]
    while len(parts) > 2:
        best, at = min((ranks.get(a + b, 1 << 30), i) for i, (a, b)
                       in enumerate(zip(parts, parts[1:])))
        assert best < ranks[token], token
        parts[at:at + 2] = [parts[at] + parts[at + 1]]
    return tuple(parts)


def one_split(ranks):
    return [last_pair(token, ranks) for token, _
            in sorted(ranks.items(), key=lambda item: item[1])
            if len(token) > 1]


def varint(data, i):
    value = shift = 0
    while True:
        value |= (data[i] & 0x7f) << shift
        shift += 7
        i += 1
        if data[i - 1] < 0x80:
            return value, i


def fields(data):
    """(number, value) of each field of a protobuf message."""
    i = 0
    while i < len(data):
        key, i = varint(data, i)
        if key & 7 == 0:
            value, i = varint(data, i)
        elif key & 7 == 2:
            n, i = varint(data, i)
            value, i = data[i:i + n], i + n
        elif key & 7 == 5:
            value, i = struct.unpack_from('<f', data, i)[0], i + 4
        else:
            raise ValueError(f'wire type {key & 7}')
        yield key >> 3, value


def read_pieces(path):
    """(text, score) of each piece of a SentencePiece model."""
    with open(path, 'rb') as f:
        data = f.read()
    pieces = []
    for number, value in fields(data):
        if number == 1:
            piece = dict(fields(value))
            pieces.append((piece[1].decode(), piece.get(2, 0.0)))
    return pieces


def piece_merges(pieces):
    """All splits of all pieces; the best score first, then the longest."""
    ids = {text: i for i, (text, _) in enumerate(pieces)}
    merges = []
    for text, score in pieces:
        pairs = [(text[:i], text[i:]) for i in range(1, len(text))]
        pairs = [p for p in pairs if p[0] in ids and p[1] in ids]
        pairs.sort(key=lambda p: (ids[p[0]], ids[p[1]]))
        merges += [(score, a, b) for a, b in pairs]
    merges.sort(key=lambda m: (m[0], len(m[1]), len(m[2])), reverse=True)
    return [(a, b) for _, a, b in merges]


def added(text, number, special=True):
    return {'id': number, 'content': text, 'single_word': False,
            'lstrip': False, 'rstrip': False, 'normalized': False,
            'special': special}


def byte_level(use_regex):
    return {'type': 'ByteLevel', 'add_prefix_space': False,
            'trim_offsets': True, 'use_regex': use_regex}


def ranks_file(ranks, merges, specials, digits, whole, normalizer):
    letters = alphabet()

    def text(token):
        return ''.join(letters[b] for b in token)

    split = {'type': 'Split', 'pattern': {'Regex': CL100K % digits},
             'behavior': 'Isolated', 'invert': False}
    return {
        'version': '1.0', 'truncation': None, 'padding': None,
        'added_tokens': specials, 'normalizer': normalizer,
        'pre_tokenizer': {'type': 'Sequence', 'pretokenizers':
                          [split, byte_level(False)]},
        'post_processor': byte_level(False),
        'decoder': byte_level(True),
        'model': {'type': 'BPE', 'dropout': None, 'unk_token': None,
                  'continuing_subword_prefix': None,
                  'end_of_word_suffix': None, 'fuse_unk': False,
                  'byte_fallback': False, 'ignore_merges': whole,
                  'vocab': {text(t): r for t, r in ranks.items()},
                  'merges': [text(a) + ' ' + text(b) for a, b in merges]},
    }


def llama3(test):
    ranks = read_ranks(f'{test}/llama3/llama3.tiktoken')
    with open(f'{test}/llama3/special_tokens.json') as f:
        specials = [added(text, i) for text, i in json.load(f).items()]
    return ranks_file(ranks, all_splits(ranks), specials, '{1,3}', True, None)


def qwen3(test):
    ranks = read_ranks(f'{test}/qwen2/qwen.tiktoken')
    with open(f'{test}/qwen2/special_tokens.qwen3.json') as f:
        specials = [added(text, i, i < 151657)
                    for text, i in json.load(f).items()]
    return ranks_file(ranks, one_split(ranks), specials, '', False,
                      {'type': 'NFC'})


def llama2(test):
    pieces = read_pieces(f'{test}/llama2/tokenizer.model')
    merges = piece_merges(pieces)
    assert len(merges) == 61249, len(merges)
    space = '\u2581'
    bos = {'SpecialToken': {'id': '<s>', 'type_id': 0}}
    bos_b = {'SpecialToken': {'id': '<s>', 'type_id': 1}}
    a, b = ({'Sequence': {'id': t, 'type_id': i}} for i, t in enumerate('AB'))
    return {
        'version': '1.0', 'truncation': None, 'padding': None,
        'added_tokens': [added(pieces[i][0], i) for i in range(3)],
        'normalizer': {'type': 'Sequence', 'normalizers': [
            {'type': 'Prepend', 'prepend': space},
            {'type': 'Replace', 'pattern': {'String': ' '},
             'content': space}]},
        'pre_tokenizer': None,
        'post_processor': {
            'type': 'TemplateProcessing', 'single': [bos, a],
            'pair': [bos, a, bos_b, b], 'special_tokens': {
                '<s>': {'id': '<s>', 'ids': [1], 'tokens': ['<s>']}}},
        'decoder': {'type': 'Sequence', 'decoders': [
            {'type': 'Replace', 'pattern': {'String': space}, 'content': ' '},
            {'type': 'ByteFallback'}, {'type': 'Fuse'},
            {'type': 'Strip', 'content': ' ', 'start': 1, 'stop': 0}]},
        'model': {'type': 'BPE', 'dropout': None, 'unk_token': '<unk>',
                  'continuing_subword_prefix': None,
                  'end_of_word_suffix': None, 'fuse_unk': True,
                  'byte_fallback': True, 'ignore_merges': False,
                  'vocab': {text: i for i, (text, _) in enumerate(pieces)},
                  'merges': [f'{a} {b}' for a, b in merges]},
    }


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    shared, out = sys.argv[1:]
    for make in (llama2, llama3, qwen3):
        directory = os.path.join(out, make.__name__)
        os.makedirs(directory, exist_ok=True)
        with open(os.path.join(directory, 'tokenizer.json'), 'w',
                  encoding='utf-8') as f:
            json.dump(make(os.path.join(shared, 'vocab/test')), f,
                      ensure_ascii=False)


if __name__ == '__main__':
    main()
