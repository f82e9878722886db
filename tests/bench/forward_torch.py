"""Helper of forward.py: GPT-2 in PyTorch.

    forward_torch.py MODEL TYPE T ...

Prints for each T the tokens a second of a prefill (logits of the last
position), and for generation one by one with a cache of keys and values.
OMP_NUM_THREADS says on how many threads.
"""
import json
import math
import struct
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F


def load(path, dtype):
    data = np.memmap(path + "/model.safetensors", "u1", "r")
    n, = struct.unpack("<Q", data[:8].tobytes())
    header = json.loads(data[8:8 + n].tobytes())
    kind = {"F32": torch.float32, "F16": torch.float16,
            "BF16": torch.bfloat16}[dtype]
    w = {}
    for name, e in header.items():
        part = bytearray(data[8 + n:][slice(*e["data_offsets"])].tobytes())
        w[name] = torch.frombuffer(part, dtype=kind).reshape(e["shape"])
    return w


class Model:
    def __init__(self, path, dtype):
        self.w = load(path, dtype)
        config = json.load(open(path + "/config.json"))
        self.layers, self.heads = config["n_layer"], config["n_head"]

    def run(self, ids, cache):
        """Logits of the last position; cache is [(k, v)] a layer, or []."""
        w = self.w
        pos = cache[0][0].shape[1] if cache else 0
        x = w["wte.weight"][ids] + w["wpe.weight"][pos:pos + len(ids)]
        C = x.shape[1]
        for i in range(self.layers):
            def p(name):
                return w[f"h.{i}.{name}.weight"], w[f"h.{i}.{name}.bias"]

            h = F.layer_norm(x, (C,), *p("ln_1"))
            g, b = p("attn.c_attn")
            q, k, v = (t.view(len(ids), self.heads, -1).transpose(0, 1)
                       for t in torch.addmm(b, h, g).split(C, 1))
            if pos:
                k = torch.cat((cache[i][0], k), 1)
                v = torch.cat((cache[i][1], v), 1)
            if len(cache) > i:
                cache[i] = (k, v)
            else:
                cache.append((k, v))
            s = q @ k.transpose(1, 2) / math.sqrt(q.shape[2])
            if len(ids) > 1:
                s = s + torch.full(s.shape[1:], -math.inf,
                                   dtype=s.dtype).triu(1)
            z = (s.softmax(-1) @ v).transpose(0, 1).reshape(len(ids), C)
            g, b = p("attn.c_proj")
            x = x + torch.addmm(b, z, g)
            h = F.layer_norm(x, (C,), *p("ln_2"))
            g, b = p("mlp.c_fc")
            h = torch.addmm(b, h, g)
            h = 0.5 * h * (1 + torch.tanh(0.7978845608 * (h + 0.044715
                                                          * h * h * h)))
            g, b = p("mlp.c_proj")
            x = x + torch.addmm(b, h, g)
        x = F.layer_norm(x[-1:], (C,), w["ln_f.weight"], w["ln_f.bias"])
        return x @ w["wte.weight"].t()


def main():
    model = Model(sys.argv[1], sys.argv[2])
    with torch.no_grad():
        for T in map(int, sys.argv[3:]):
            ids = torch.arange(T) * 7919 % 50000
            best = math.inf
            for _ in range(4):
                start = time.perf_counter()
                model.run(ids, [])
                best = min(best, time.perf_counter() - start)
            print(T, T / best)
        best = math.inf
        for _ in range(3):
            cache = []
            model.run(torch.arange(8), cache)
            start = time.perf_counter()
            for i in range(16):
                model.run(torch.tensor([i + 100]), cache)
            best = min(best, time.perf_counter() - start)
        print("generate", 16 / best)


main()
