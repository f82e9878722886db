"""Helper of attention.sh: records of q, k, v, and PyTorch's attention.

    attention.py make T HEADS D FILE   random q, k, v [HEADS, T, D]
    attention.py torch FILE N          least time of N runs, in ms, on the
                                       number of threads that OMP_NUM_THREADS
                                       says; the largest difference from
                                       `context` of standard input
"""
import json
import math
import struct
import sys
import time


def make(t, heads, d, path):
    import numpy as np
    rng = np.random.default_rng(1)
    n = heads * t * d * 4
    header = json.dumps({name: {
        "dtype": "F32", "shape": [heads, t, d],
        "data_offsets": [i * n, i * n + n]} for i, name in enumerate("qkv")})
    header += " " * (-len(header) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header.encode())
        for _ in range(3):
            f.write(rng.standard_normal((heads, t, d), "f4").tobytes())


def read(f):
    import numpy as np
    n, = struct.unpack("<Q", f.read(8))
    header = json.loads(f.read(n))
    data = f.read()
    return {name: np.frombuffer(data[slice(*e["data_offsets"])], "f4")
            .reshape(e["shape"]).copy()
            for name, e in header.items() if name != "__metadata__"}


def run_torch(path, times):
    import numpy as np
    import torch
    q, k, v = (torch.from_numpy(x)[None]
               for x in read(open(path, "rb")).values())

    def attention():
        f = getattr(torch.nn.functional, "scaled_dot_product_attention", None)
        if f:
            return f(q, k, v)
        # The same, where it has no public name yet (before 2.0).
        f = getattr(torch.nn.functional, "_scaled_dot_product_attention", None)
        if f:
            return f(q, k, v)[0]
        w = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(-1)
        return w @ v

    best = math.inf
    with torch.no_grad():
        for _ in range(times):
            start = time.perf_counter()
            out = attention()
            best = min(best, time.perf_counter() - start)
    context = read(sys.stdin.buffer)["context"]
    print("%.1f %.1e" % (best * 1e3, np.abs(out[0].numpy() - context).max()))


if sys.argv[1] == "make":
    make(*map(int, sys.argv[2:5]), sys.argv[5])
else:
    run_torch(sys.argv[2], int(sys.argv[3]))
