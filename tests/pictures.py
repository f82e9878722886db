"""Looks at what attn-view draws, without its code.

screen() obeys the escape sequences of a terminal and counts columns with
Python's table; png() reads what rsvg-convert makes of an SVG; viridis() is a
polynomial of sixth degree (fitted by M. Zucker), within 4 of 255 of the table.
"""
import re
import unicodedata as ucd
import zlib

FIT = [(0.2777273, 0.0054073, 0.3340998), (0.1050930, 1.4046135, 1.3845902),
       (-0.3308618, 0.2148476, 0.0950952), (-4.6342305, -5.7991010,
       -19.3324410), (6.2282699, 14.1799334, 56.6905526), (4.7763850,
       -13.7451454, -65.3530326), (-5.4354559, 4.6458526, 26.3124352)]


def viridis(x):
    return tuple(round(255 * sum(p[k] * x ** i for i, p in enumerate(FIT)))
                 for k in range(3))


def near(a, b, far=6):
    return all(abs(x - y) <= far for x, y in zip(a, b))


def xterm(i):
    """A colour of a terminal that has 256."""
    if i >= 232:
        return (8 + 10 * (i - 232),) * 3
    return tuple(55 + 40 * v if v else 0
                 for v in ((i - 16) // 36, (i - 16) // 6 % 6, (i - 16) % 6))


def width(c):
    return 0 if ucd.category(c) in ("Mn", "Me", "Cf") else \
        2 if ucd.east_asian_width(c) in ("W", "F") else 1


def screen(text):
    """Lines of (character, foreground, background), one a column."""
    lines = []
    for line in text.split("\n"):
        row, fg, bg = [], None, None
        for m in re.finditer("\x1b\\[([0-9;]*)m|(.)", line):
            if m.group(2):
                row += [(m.group(2) if k == 0 else "", fg, bg)
                        for k in range(width(m.group(2)))]
                continue
            n = [int(v or 0) for v in m.group(1).split(";")]
            if n == [0]:
                fg = bg = None
                continue
            assert n[0] in (38, 48), m.group(0)
            c = tuple(n[2:]) if n[1] == 2 else xterm(n[2])
            fg, bg = (c, bg) if n[0] == 38 else (fg, c)
        assert fg is None and bg is None, "colours are left on"
        lines.append(row)
    return lines


def png(path):
    """Width, height, and rows of (r, g, b); of 8 bits, RGB or RGBA."""
    data = open(path, "rb").read()
    i, idat = 8, b""
    while i < len(data):
        n, kind = int.from_bytes(data[i:i + 4], "big"), data[i + 4:i + 8]
        body = data[i + 8:i + 8 + n]
        i += 12 + n
        if kind == b"IHDR":
            w, h = (int.from_bytes(body[k:k + 4], "big") for k in (0, 4))
            assert body[8] == 8 and body[9] in (2, 6) and body[12] == 0
            size = 3 if body[9] == 2 else 4
        elif kind == b"IDAT":
            idat += body
    raw, rows, up = zlib.decompress(idat), [], bytes(w * size)
    for y in range(h):
        kind = raw[y * (w * size + 1)]
        row = bytearray(raw[y * (w * size + 1) + 1:(y + 1) * (w * size + 1)])
        for k in range(len(row)):
            a = row[k - size] if k >= size else 0
            b, c = up[k], up[k - size] if k >= size else 0
            if kind == 4:
                pa, pb, pc = abs(b - c), abs(a - c), abs(a + b - 2 * c)
                add = a if pa <= pb and pa <= pc else b if pb <= pc else c
            else:
                add = (0, a, b, (a + b) // 2)[kind]
            row[k] = (row[k] + add) & 255
        rows.append([tuple(row[x * size:x * size + 3]) for x in range(w)])
        up = bytes(row)
    return w, h, rows
