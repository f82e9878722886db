"""Streams of pipeformer, read and written by the rules of pipeformer(5) alone.

Standard library only, and nothing of the C library: what the tests hold the
filters against.  As a module:

    read(file)               records: (fields, tensors), tensors a dict of
                             name -> Tensor(dtype, shape, data bytes)
    document(tensors, meta)  the bytes of a safetensors document
    npy(path)                a Tensor
    floats(tensor)           its elements

As a program:

    stream.py rows NAME [SEQ]   the bytes of tensor NAME, record after record
                                (of sequence SEQ, as JSON)
    stream.py drip N            copies, at most N bytes a write
    stream.py cut N             copies all but the last N bytes
    stream.py rss FILE CMD ...  runs CMD; its peak memory in KiB into FILE
"""
import json
import os
import signal
import struct
import subprocess
import sys
from collections import namedtuple

Tensor = namedtuple("Tensor", "dtype shape data")
SIZE = {"BOOL": 1, "U8": 1, "I8": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2,
        "I32": 4, "U32": 4, "F32": 4, "F64": 8, "I64": 8, "U64": 8}
CODE = {"BOOL": "?", "U8": "B", "I8": "b", "I16": "h", "U16": "H", "F16": "e",
        "I32": "i", "U32": "I", "F32": "f", "F64": "d", "I64": "q", "U64": "Q"}
NPY = {"<f4": "F32", "<f8": "F64", "<f2": "F16", "<i4": "I32", "<i8": "I64",
       "|b1": "BOOL", "|u1": "U8", "|i1": "I8", "<i2": "I16", "<u2": "U16",
       "<u4": "U32", "<u8": "U64"}


def count(shape):
    n = 1
    for s in shape:
        n *= s
    return n


def floats(t):
    if t.dtype == "BF16":
        n = len(t.data) // 2
        halves = struct.unpack("<%dH" % n, t.data)
        return struct.unpack("<%df" % n, struct.pack(
            "<%dI" % n, *(h << 16 for h in halves)))
    return struct.unpack("<%d%s" % (count(t.shape), CODE[t.dtype]), t.data)


def no_twice(pairs):
    d = {}
    for k, v in pairs:
        assert k not in d, "key %r stands twice" % k
        d[k] = v
    return d


def parse_header(text):
    return json.loads(text, object_pairs_hook=no_twice)


def read_document(f, first):
    """One safetensors document, strictly; `first` are bytes already read."""
    head = first + f.read(8 - len(first))
    assert len(head) == 8, "cut inside the length"
    n, = struct.unpack("<Q", head)
    assert n <= 100_000_000, "header of %d bytes" % n
    assert n % 8 == 0, "the writer pads to 8, this is %d" % n
    text = f.read(n)
    assert len(text) == n, "cut inside the header"
    assert text[:1] == b"{", "the header begins with {"
    header = parse_header(text.decode("utf-8"))
    meta = header.pop("__metadata__", {})
    assert all(isinstance(v, str) for v in meta.values())
    fields = parse_header(meta["pipeformer"]) if "pipeformer" in meta else {}
    places = sorted((e["data_offsets"], name) for name, e in header.items())
    at = 0
    for (begin, end), name in places:
        e = header[name]
        assert set(e) == {"dtype", "shape", "data_offsets"}
        assert begin == at, "%s begins at %d, not %d" % (name, begin, at)
        assert end - begin == count(e["shape"]) * SIZE[e["dtype"]], name
        assert begin % SIZE[e["dtype"]] == 0, "%s lies askew" % name
        at = end
    data = f.read(at)
    assert len(data) == at, "cut inside the data"
    tensors = {}
    for name, e in header.items():
        begin, end = e["data_offsets"]
        tensors[name] = Tensor(e["dtype"], e["shape"], data[begin:end])
    return fields, tensors


def shape_of(v):
    shape = []
    while isinstance(v, list):
        shape.append(len(v))
        v = v[0] if v else None
    return shape


def flat(v):
    return [y for x in v for y in flat(x)] if isinstance(v, list) else [v]


NAMES = {"ids": "I32", "segments": "I32", "offsets": "I64", "hidden": "F32",
         "memory": "F32", "logits": "F32", "attn": "F32", "q": "F32",
         "k": "F32", "v": "F32", "context": "F32", "mask": "F32",
         "embedding": "F32"}


def read(f):
    while True:
        first = f.read(1)
        while first in (b"\n", b"\r"):
            first = f.read(1)
        if not first:
            return
        first += f.read(3)
        if any(b < 9 for b in first):
            yield read_document(f, first)
            continue
        line = first if first.endswith(b"\n") else first + f.readline()
        fields, tensors = json.loads(line), {}
        for name in list(fields):
            if name not in NAMES and "." not in name:
                continue
            v, t = fields.pop(name), NAMES.get(name, "F32")
            nums = [float("nan") if x is None else x for x in flat(v)]
            if t == "F32":
                nums = [x if abs(x) < 3.5e38 or x != x
                        else x * float("inf") for x in nums]
            tensors[name] = Tensor(t, shape_of(v), struct.pack(
                "<%d%s" % (len(nums), CODE[t]), *nums))
        yield fields, tensors


def document(tensors, fields=None, pad=8, raw_meta=None):
    header, data = {}, b""
    meta = raw_meta if raw_meta is not None else \
        json.dumps(fields) if fields else None
    if meta is not None:
        header["__metadata__"] = {"pipeformer": meta}
    for name, t in tensors.items():
        header[name] = {"dtype": t.dtype, "shape": list(t.shape),
                        "data_offsets": [len(data), len(data) + len(t.data)]}
        data += t.data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % pad)
    return struct.pack("<Q", len(text)) + text + data


def f32(shape, values):
    return Tensor("F32", shape, struct.pack("<%df" % len(values), *values))


def i32(values):
    return Tensor("I32", [len(values)], struct.pack(
        "<%di" % len(values), *values))


def npy(path):
    b = open(path, "rb").read()
    assert b[:6] == b"\x93NUMPY"
    size = 2 if b[6] == 1 else 4
    n = int.from_bytes(b[8:8 + size], "little")
    assert (8 + size + n) % 16 == 0, "numpy aligns the data"
    h = eval(b[8 + size:8 + size + n].decode(), {"__builtins__": {}},
             {"True": True, "False": False})
    assert not h["fortran_order"]
    t = Tensor(NPY[h["descr"]], list(h["shape"]), b[8 + size + n:])
    assert len(t.data) == count(t.shape) * SIZE[t.dtype]
    return t


def close(a, b, atol, rtol):
    """Where two sequences of numbers differ, or None."""
    if len(a) != len(b):
        return "lengths %d and %d" % (len(a), len(b))
    for i, (x, y) in enumerate(zip(a, b)):
        if not abs(x - y) <= atol + rtol * abs(y):
            return "element %d: %r and %r" % (i, x, y)
    return None


def main(argv):
    out = sys.stdout.buffer
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if argv[0] == "rows":
        for fields, tensors in read(sys.stdin.buffer):
            assert "error" not in fields, fields
            if len(argv) > 2 and fields.get("seq") != json.loads(argv[2]):
                continue
            if argv[1] in tensors:
                out.write(tensors[argv[1]].data)
    elif argv[0] == "drip":
        n = int(argv[1])
        while True:
            b = os.read(0, n)
            if not b:
                break
            os.write(1, b)
    elif argv[0] == "cut":
        b = sys.stdin.buffer.read()
        out.write(b[:len(b) - int(argv[1])])
    elif argv[0] == "rss":
        import resource
        status = subprocess.call(argv[2:])
        with open(argv[1], "w") as f:
            f.write("%d\n" % resource.getrusage(
                resource.RUSAGE_CHILDREN).ru_maxrss)
        return status if status >= 0 else 128 - status
    else:
        sys.exit("stream.py: what is %s?" % argv[0])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
