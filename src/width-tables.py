#!/usr/bin/env python3
"""Writes src/width-tables.h to standard output.

    python3 src/width-tables.py >src/width-tables.h

Needs a Python whose unicodedata has Unicode 14 (3.11).  Zero columns: the
categories Mn, Me and Cf but the soft hyphen, and the vowels and finals of
conjoining Hangul, which join the consonant before.  Two: East Asian Width W
and F, and what is not assigned yet among ideographs and among emoji.
"""
import unicodedata as ucd

assert ucd.unidata_version == "14.0.0", ucd.unidata_version


def zero(c):
    return (ucd.category(chr(c)) in ("Mn", "Me", "Cf") and c != 0xad
            or 0x1160 <= c <= 0x11ff or 0xd7b0 <= c <= 0xd7ff)


def wide(c):
    if ucd.category(chr(c)) == "Cn":
        return (0x3400 <= c <= 0x4dbf or 0x4e00 <= c <= 0x9fff
                or 0xf900 <= c <= 0xfaff or 0x1fa70 <= c <= 0x1faff
                or 0x20000 <= c <= 0x2fffd or 0x30000 <= c <= 0x3fffd)
    return ucd.east_asian_width(chr(c)) in "WF" and not zero(c)


def write(name, holds):
    ranges = []
    for c in range(0x110000):
        if 0xd800 <= c < 0xe000 or not holds(c):
            continue
        if ranges and ranges[-1][1] == c - 1:
            ranges[-1][1] = c
        else:
            ranges.append([c, c])
    print(f"\nstatic const uint32_t {name}[][2] = {{")
    line = ""
    for item in ("{0x%x,0x%x}," % tuple(r) for r in ranges):
        if len(line) + len(item) > 78:
            print(line)
            line = ""
        line += item
    print(line + "\n};")


print("/* Made by width-tables.py: first and last code points. */")
write("zero", zero)
write("wide", wide)
