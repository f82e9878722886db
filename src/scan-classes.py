#!/usr/bin/env python3
"""Makes scan-classes.h, the classes of characters as a table.

    python3 scan-classes.py unicode_ranges.txt >scan-classes.h

The file holds, a line each, a name, a tab and ranges of code points in hex;
lines of other names are passed over.
"""
import sys

# The bits are those of enum pf_class in scan.h.
LETTER, NUMBER, SPACE, UPPER, LOWER, SPECIAL, NEWLINE = (
    1 << i for i in range(7))
BITS = {
    "Lu": LETTER | UPPER,
    "Lt": LETTER | UPPER | SPECIAL,
    "Ll": LETTER | LOWER,
    "Lo": LETTER | UPPER | LOWER,
    "Lm": LETTER | UPPER | LOWER | SPECIAL,
    "M": UPPER | LOWER,
    "N": NUMBER,
    "S": SPACE,
}
BLOCK = 64


def ranges(line):
    for r in line.split():
        lo, _, hi = r.partition("-")
        yield from range(int(lo, 16), int(hi or lo, 16) + 1)


def rows(cells):
    """Cells with a comma behind each, in lines of at most 80 columns."""
    line = "   "
    for cell in cells:
        if len(line) + len(cell) + 2 > 80:
            print(line)
            line = "   "
        line += " " + cell + ","
    print(line)


def main():
    classes = bytearray(0x110000)
    letters = 0
    with open(sys.argv[1], encoding="utf-8") as f:
        for line in f:
            name, _, rest = line.rstrip("\n").partition("\t")
            if name == "L":
                letters = set(ranges(rest))
            for c in ranges(rest) if name in BITS else ():
                assert classes[c] == 0, f"U+{c:04X} is of two classes"
                classes[c] = BITS[name]
    assert letters == {c for c, b in enumerate(classes) if b & LETTER}
    classes[0x0A] |= NEWLINE
    classes[0x0D] |= NEWLINE

    # Block 0 is the one of all zeros, 1 and 2 are ASCII.
    numbers = {bytes(BLOCK): 0}
    index = []
    for at in range(0, len(classes), BLOCK):
        block = bytes(classes[at:at + BLOCK])
        index.append(numbers.setdefault(block, len(numbers)))
    assert index[:2] == [1, 2]

    print("""\
/*
 * The classes of the code points of Unicode 16 (scan.h), made by
 * scan-classes.py from ranges measured on the reference tokenizers.
 */
/* By code point / 64, the block that its class is in. */
static const uint16_t class_index[0x110000 / CLASS_BLOCK] = {""")
    cells = []
    for i, number in enumerate(index):
        if number:
            at = f"[{i}] = " if i and not index[i - 1] else ""
            cells.append(f"{at}{number}")
    rows(cells)
    print("};\n\nstatic const uint8_t "
          f"class_blocks[{len(numbers)} * CLASS_BLOCK] = {{")
    rows(str(b) for block in numbers for b in block)
    print("};")


main()
