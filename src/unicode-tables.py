#!/usr/bin/env python3
"""Writes src/unicode-tables.h to standard output.

    python3 src/unicode-tables.py >src/unicode-tables.h

Needs a Python whose unicodedata has Unicode 14 (3.11).  What HuggingFace
tokenizers 0.22.2 knows comes from three places, of three ages; each was
measured on it for every code point and is given here as Unicode 14 with the
differences:

- its normalization crate is of Unicode 9: decompositions, compositions,
  combining classes, and the marks that StripAccents drops;
- its categories crate is of about Unicode 8: BertNormalizer's and
  BertPreTokenizer's classes;
- Rust's own tables are of Unicode 17: lower case and White_Space.
"""
import sys
import unicodedata as ucd

assert ucd.unidata_version == "14.0.0", ucd.unidata_version


def parse(text):
    """The set of code points that "0041-005A 0061" names."""
    codes = set()
    for item in text.split():
        first, _, last = item.partition("-")
        codes.update(range(int(first, 16), int(last or first, 16) + 1))
    return codes


# Marks that Unicode 9 does not have: of no class, and not dropped.
MARKS_AFTER_9 = parse("""
07FD 0898-089F 08CA-08D3 09FE 0AFA-0AFF 0B55 0C04 0C3C 0D00 0D3B-0D3C 0D81
0EBA 1715 180F 1ABF-1ACE 1CF7 1DF6-1DFA A82C A8FF 10D24-10D27 10EAB-10EAC
10F46-10F50 10F82-10F85 11070 11073-11074 110C2 11145-11146 111C9 111CE-111CF
1133B 1145E 1182C-1183A 11930-11935 11937-11938 1193B-1193E 11940 11942-11943
119D1-119D7 119DA-119E0 119E4 11A01-11A0A 11A33-11A39 11A3B-11A3E 11A47
11A51-11A5B 11A8A-11A99 11D31-11D36 11D3A 11D3C-11D3D 11D3F-11D45 11D47
11D8A-11D8E 11D90-11D91 11D93-11D97 11EF3-11EF6 16F4F 16F7F-16F87 16FE4
16FF0-16FF1 1CF00-1CF2D 1CF30-1CF46 1E130-1E136 1E2AE 1E2EC-1E2EF""")
# Marks then, letters now.
MARKS_OF_9 = parse("1CF2-1CF3")

# What BERT does not take for a nonspacing mark, or for punctuation, yet.
NONSPACING_AFTER_8 = parse("""
07FD 0898-089F 08CA-08E1 09FE 0AFA-0AFF 0B55 0C04 0C3C 0D00 0D3B-0D3C 0D81
0EBA 180F 1885-1886 1ABF-1ACE 1DF6-1DFB A82C A8C5 A8FF A9BD 10D24-10D27
10EAB-10EAC 10F46-10F50 10F82-10F85 11070 11073-11074 110C2 111C9 111CF 1123E
1133B 11438-1143F 11442-11444 11446 1145E 1182F-11837 11839-1183A 1193B-1193C
1193E 11943 119D4-119D7 119DA-119DB 119E0 11A01-11A0A 11A33-11A38 11A3B-11A3E
11A47 11A51-11A56 11A59-11A5B 11A8A-11A96 11A98-11A99 11C30-11C36 11C38-11C3D
11C3F 11C92-11CA7 11CAA-11CB0 11CB2-11CB3 11CB5-11CB6 11D31-11D36 11D3A
11D3C-11D3D 11D3F-11D45 11D47 11D90-11D91 11D95 11D97 11EF3-11EF4 16F4F 16FE4
1CF00-1CF2D 1CF30-1CF46 1E000-1E006 1E008-1E018 1E01B-1E021 1E023-1E024
1E026-1E02A 1E130-1E136 1E2AE 1E2EC-1E2EF 1E944-1E94A""")
PUNCT_AFTER_8 = parse("""
061D 09FD 0A76 0C77 0C84 1B7D-1B7E 2E43-2E4F 2E52-2E5D 10EAD 10F55-10F59
10F86-10F89 1144B-1144F 1145A-1145B 1145D 11660-1166C 116B9 1183B 11944-11946
119E2 11A3F-11A46 11A9A-11A9C 11A9E-11AA2 11C41-11C45 11C70-11C71 11EF7-11EF8
11FFF 12FF1-12FF2 16E97-16E9A 16FE2 1E95E-1E95F""")
# And what it still does.
NONSPACING_OF_8 = parse("1734")
PUNCT_OF_8 = parse("166D 111C9")

BERT_REMOVED = parse("""
0000-0008 000B-000C 000E-001F 007F-009F 00AD 0600-0605 061C 06DD 070F 180E
200B-200F 202A-202E 2060-2064 2066-206F E000-F8FF FEFF FFF9-FFFB FFFD 110BD
1BCA0-1BCA3 1D173-1D17A E0001 E0020-E007F F0000-FFFFD 100000-10FFFD""")
BERT_SPACE = parse(
    "0009-000A 000D 0020 00A0 1680 2000-200A 2028-2029 202F 205F 3000")
BERT_CJK = parse(
    "3400-4DBF 4E00-9FFF F900-FAFF 20000-2A6DF 2A700-2B81F 2B920-2CEAF "
    "2F800-2FA1F")
ASCII_PUNCT = parse("0021-002F 003A-0040 005B-0060 007B-007E")

WHITE_SPACE = parse(
    "0009-000D 0020 0085 00A0 1680 2000-200A 2028-2029 202F 205F 3000")

# The pairs of Unicode 15 to 17: code points, and what is added to each.
LOWER_AFTER_14 = [
    ("1C89", 1), ("A7CB", 0x264 - 0xa7cb), ("A7CC", 1), ("A7CE", 1),
    ("A7D2", 1), ("A7D4", 1), ("A7DA", 1), ("A7DC", 0x19b - 0xa7dc),
    ("10D50-10D65", 0x20), ("16EA0-16EB8", 0x1b)]

CODES = [c for c in range(0x110000) if not 0xd800 <= c < 0xe000]
HANGUL = range(0xac00, 0xac00 + 11172)
VOWELS, TRAILS = range(0x1161, 0x1176), range(0x11a8, 0x11c3)

# The flags of unicode.h, in its order.
(DECOMPOSES, JOINS, LOWERS, SPACE, MARK, REMOVED, BERT_SP, CJK, ACCENT,
    PUNCT, SECOND) = [1 << i for i in range(11)]

BLOCK = 128  # code points


def decomposition(c):
    """One step of the canonical decomposition: (), (a,) or (a, b)."""
    parts = ucd.decomposition(chr(c)).split()
    if not parts or parts[0].startswith("<") or c in MARKS_AFTER_9:
        return ()
    return tuple(int(part, 16) for part in parts)


def depth(parts, c):
    """How many code points c is in the end."""
    p = parts.get(c, (c,))
    return len(p) - 1 + (depth(parts, p[0]) if p[0] != c else 1)


def lower_case():
    table = {c: chr(c).lower() for c in CODES}
    table = {c: [ord(x) for x in s] for c, s in table.items() if s != chr(c)}
    for codes, delta in LOWER_AFTER_14:
        table.update((c, [c + delta]) for c in parse(codes))
    assert table.pop(0x130) == [0x69, 0x307]
    assert all(len(s) == 1 for s in table.values())
    return {c: s[0] for c, s in table.items()}


def classes(parts, composed, lower):
    """(flags, order) of every code point."""
    second = {b for _, b in composed} | set(VOWELS) | set(TRAILS)
    table = [(0, 0)] * 0x110000
    for c in CODES:
        kind = ucd.category(chr(c))
        order = 0 if c in MARKS_AFTER_9 else ucd.combining(chr(c))
        flags = 0
        if c in parts or c in HANGUL:
            flags |= DECOMPOSES
        if order or c in second or (
                c in parts and composed.get(parts[c]) != c):
            flags |= JOINS
        if c in lower or c == 0x130:
            flags |= LOWERS
        if c in WHITE_SPACE:
            flags |= SPACE
        if kind[0] == "M" and c not in MARKS_AFTER_9 or c in MARKS_OF_9:
            flags |= MARK
        if c in BERT_REMOVED:
            flags |= REMOVED
        if c in BERT_SPACE:
            flags |= BERT_SP
        if c in BERT_CJK:
            flags |= CJK
        if (kind == "Mn" and c not in NONSPACING_AFTER_8
                or c in NONSPACING_OF_8):
            flags |= ACCENT
        if (kind[0] == "P" and c not in PUNCT_AFTER_8
                or c in ASCII_PUNCT or c in PUNCT_OF_8):
            flags |= PUNCT
        if c in second:
            flags |= SECOND
        table[c] = (flags, order)
    return table


def ranges(lower):
    """[first, last, step, delta], where a step of 2 leaves out every other."""
    out = []
    for c in sorted(lower):
        delta = lower[c] - c
        r = out[-1] if out else None
        if r and r[3] == delta and (c - r[1] == r[2] or
                r[0] == r[1] and c - r[1] == 2):
            r[1:3] = c, c - r[1]
        else:
            out.append([c, c, 1, delta])
    return out


def by_count(values):
    """Numbers for the distinct values, the most frequent first."""
    counts = {}
    for v in values:
        counts[v] = counts.get(v, 0) + 1
    return {v: i for i, v in enumerate(
        sorted(counts, key=lambda v: (-counts[v], v)))}


def write(declaration, items):
    print(f"\n{declaration} = {{")
    line = ""
    for item in items:
        if len(line) + len(item) > 78:
            print(line)
            line = ""
        line += item + ","
    print(line + "\n};")


def main():
    parts = {c: decomposition(c) for c in CODES if c not in HANGUL}
    parts = {c: p for c, p in parts.items() if p}
    # In two parts only the first is taken apart further: see unicode.c.
    assert all(p[1] not in parts for p in parts.values() if len(p) == 2)
    assert max(depth(parts, c) for c in parts) <= 4
    composed = {p: c for c, p in parts.items()
        if len(p) == 2 and ucd.normalize("NFC", chr(c)) == chr(c)}
    lower = lower_case()
    table = classes(parts, composed, lower)

    number = by_count(table)
    low = [number[v] for v in table]
    blocks = [tuple(low[i:i + BLOCK]) for i in range(0, len(low), BLOCK)]
    block_number = by_count(blocks)
    assert len(number) <= 256 and len(block_number) <= 256

    print("/* Made by unicode-tables.py. */")
    write("const struct pf_uc pf_uc_class[]",
        [f"{{{f},{o}}}" for f, o in number])
    write("const uint8_t pf_uc_block[]",
        [str(block_number[b]) for b in blocks])
    write("const uint8_t pf_uc_low[]",
        [str(v) for b in block_number for v in b])

    keys = sorted(parts)
    print("\n/* A code point and its one or two parts. */")
    write("static const uint32_t parts[][3]",
        ["{%d,%d,%d}" % ((c,) + parts[c] + (0,) * (2 - len(parts[c])))
            for c in keys])
    print("\n/* Indices of those that NFC puts together, by their parts. */")
    write("static const uint16_t composed[]",
        [str(keys.index(composed[p])) for p in sorted(composed)])
    print("\n/* First and last code point, step, what is added. */")
    write("static const int32_t lower[][4]",
        ["{%d,%d,%d,%d}" % tuple(r) for r in ranges(lower)])


if __name__ == "__main__":
    sys.exit(main())
