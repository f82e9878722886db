"""The forward pass beside the machine's limits and PyTorch.

    PATH=build/release/bin:$PATH python3 tests/bench/forward.py [PART ...]

Parts are memory, gpt2, fairy, minilm, attention, start; without one, all.  GPT-2's is
a model of the shapes of GPT-2 with 124 M parameters whose weights are random;
it is made in $TMPDIR once for each type of weights.  What is measured are
whole pipes, embed | attend | unembed as they run, and `generate`; a pipe has
started, and has seen one record, before its clock starts.  Each figure is the
best of some runs, for GPT-2 of one sequence the median one, that take turns
with the limits: plain reading of memory with eight streams a thread for one
sequence, OpenBLAS's sgemm for many positions, both from bench_limit; and
PyTorch where a Python with torch is found.  OpenBLAS has, in PyTorch too, the
fastest of the kernels that it chooses itself and those of CORES, since it may
not know what a processor newer than itself can do.
"""
import functools
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SHARED = os.environ.get("PIPEFORMER_SHARED",
                        os.path.join(HERE, "../../../shared"))
LAYERS, WIDTH, VOCAB, WINDOW = 12, 768, 50257, 1024
PARAMETERS = LAYERS * 12 * WIDTH * WIDTH + VOCAB * WIDTH  # read for a token
THREADS = (1, 2)
CORES = ("SkylakeX", "Haswell", "Zen")


def make_gpt2(path, dtype):
    """Writes config.json and model.safetensors, weights of N(0, 0.02)."""
    import numpy as np
    if os.path.exists(path + "/model.safetensors"):
        return
    os.makedirs(path, exist_ok=True)
    rng = np.random.default_rng(1)
    C = WIDTH
    shapes = {"wte.weight": [VOCAB, C], "wpe.weight": [WINDOW, C],
              "ln_f.weight": [C], "ln_f.bias": [C]}
    for i in range(LAYERS):
        for name, shape in (("ln_1", [C]), ("ln_2", [C]),
                            ("attn.c_attn", [C, 3 * C]),
                            ("attn.c_proj", [C, C]), ("mlp.c_fc", [C, 4 * C]),
                            ("mlp.c_proj", [4 * C, C])):
            shapes[f"h.{i}.{name}.weight"] = shape
            shapes[f"h.{i}.{name}.bias"] = shape[-1:]
    size = 4 if dtype == "F32" else 2
    header, at = {}, 0
    for name, shape in shapes.items():
        n = int(np.prod(shape)) * size
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [at, at + n]}
        at += n
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 64 + 56)  # data at a multiple of 64
    with open(path + "/part", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for name, shape in shapes.items():
            x = rng.standard_normal(shape, "f4") * np.float32(0.02)
            if "ln_" in name and name.endswith("weight"):
                x += np.float32(1)
            if dtype == "F16":
                x = x.astype("f2")
            elif dtype == "BF16":
                x = (x.view("u4") >> 16).astype("u2")
            f.write(x.tobytes())
    os.rename(path + "/part", path + "/model.safetensors")
    with open(path + "/config.json", "w") as f:
        json.dump({"model_type": "gpt2", "n_layer": LAYERS, "n_head": 12,
                   "n_embd": C, "n_positions": WINDOW, "n_ctx": WINDOW,
                   "vocab_size": VOCAB, "layer_norm_epsilon": 1e-5,
                   "activation_function": "gelu_new",
                   "eos_token_id": VOCAB - 1}, f)


def read_record(f):
    """Skips one safetensors record."""
    n, = struct.unpack("<Q", f.read(8))
    header = json.loads(f.read(n))
    end = max(e["data_offsets"][1] for k, e in header.items()
              if k != "__metadata__")
    return f.read(end)


class Pipe:
    """A pipe of filters that stays open: ids in, one record out."""

    def __init__(self, model, threads, filters):
        self.p = []
        stdin = subprocess.PIPE
        for name in filters.split(" | "):
            words = name.split()
            p = subprocess.Popen(
                words + ["-m", model] + (["--threads", str(threads)]
                                         if words[0] != "embed" else []),
                stdin=stdin, stdout=subprocess.PIPE)
            stdin = p.stdout
            self.p.append(p)

    def seconds(self, ids):
        line = json.dumps({"ids": ids}).encode() + b"\n"
        start = time.perf_counter()
        self.p[0].stdin.write(line)
        self.p[0].stdin.flush()
        read_record(self.p[-1].stdout)
        return time.perf_counter() - start

    def close(self):
        self.p[0].stdin.close()
        for p in self.p:
            p.wait()


def tokens(n, vocab=VOCAB):
    return [(i * 7919 + 13) % (vocab - 1) for i in range(n)]


def prefill(model, threads, T, runs, vocab=VOCAB,
            filters="embed | attend | unembed"):
    """Tokens a second; the clock starts with a pipe that is warm."""
    pipe = Pipe(model, threads, filters)
    pipe.seconds(tokens(T, vocab))
    best = min(pipe.seconds(tokens(T, vocab)) for _ in range(runs))
    pipe.close()
    return T / best


def generate(model, threads, sequences, n, prompt=8, vocab=VOCAB, runs=3):
    """Tokens a second: the time of 2n tokens without that of n, the best of
    each: the best difference would be one of a slow run and a fast one."""
    lines = "".join(json.dumps({"seq": i, "ids": tokens(prompt + i, vocab)
                                [i:]}) + "\n" for i in range(sequences))

    def seconds(count):
        start = time.perf_counter()
        subprocess.run(["generate", "-m", model, "--threads", str(threads),
                        "-n", str(count), "--whole", "--eos", str(vocab + 9),
                        "--parallel", str(sequences)], input=lines.encode(),
                       stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - start
    more, less = zip(*((seconds(2 * n), seconds(n)) for _ in range(runs)))
    return sequences * n / (min(more) - min(less))


def generate_one(model, threads, bytes_read):
    """Tokens a second of one sequence, and the limit: of five runs, each with
    the limit before and after it, the one with the median share.  What other
    machines leave of the memory changes from one second to the next."""
    bounds, rounds = [limit("read", threads)], []
    for _ in range(5):
        rate = generate(model, threads, 1, 64, runs=1)
        bounds.append(limit("read", threads))
        rounds.append((rate, 1e9 * max(bounds[-2:]) / bytes_read))
    return sorted(rounds, key=lambda r: r[0] / r[1])[2]


def outside(model, threads, n, vocab=VOCAB):
    """Of the time of a token, one sequence: the share in which no filter
    computes, and that in which neither attend nor unembed does (the rest is
    embedding and sampling), by what --stats tells of 2n tokens and of n.  The
    median of five: a difference of two runs may be less than nothing."""
    def times(count):
        m = f"-m {model} --threads {threads} --stats"
        pipe = (f"embed {m} | attend {m} | unembed {m} | "
                f"sample {m} -n {count} --eos {vocab + 9}")
        r = subprocess.run(
            ["generate", "--whole", "--", pipe], check=True, text=True,
            input=json.dumps({"ids": tokens(8, vocab)}) + "\n",
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        whole = every = layers = 0
        for line in r.stderr.splitlines():
            t = [float(x) for x in re.findall(r"([0-9.]+) s\b", line)]
            whole = max(whole, t[0])
            every += t[0] - t[1] - t[2]
            if line.startswith(("attend", "unembed")):
                layers += t[0] - t[1] - t[2]
        return whole, every, layers
    rounds = []
    for _ in range(5):
        less, more = times(n), times(2 * n)
        whole, every, layers = (b - a for a, b in zip(less, more))
        rounds.append((1 - every / whole, 1 - layers / whole))
    return sorted(rounds)[2]


def openblas(core):
    """An environment in which it has these kernels, or its own choice."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith("OPENBLAS_")}
    return {**env, "OPENBLAS_CORETYPE": core} if core else env


@functools.cache
def openblas_best():
    """An environment in which OpenBLAS is fastest."""
    return max((openblas(core) for core in ("",) + CORES),
               key=lambda env: limit("sgemm", 1, 512, WIDTH, 4 * WIDTH,
                                     env=env))


def limit(*words, env=None):
    env = env or openblas_best()
    r = subprocess.run(["bench_limit"] + [str(w) for w in words], env=env,
                       capture_output=True, text=True, check=False)
    return float(r.stdout) if r.returncode == 0 else 0.0


def torch_python():
    for python in (os.environ.get("PYTHON"), sys.executable,
                   "/usr/bin/python3"):
        if python and subprocess.run([python, "-c", "import torch"],
                                     capture_output=True,
                                     check=False).returncode == 0:
            return python
    return None


def torch_rates(python, threads, model, dtype, T):
    """Prefill and generation in PyTorch, tokens a second."""
    env = {**openblas_best(), "OMP_NUM_THREADS": str(threads)}
    r = subprocess.run([python, HERE + "/forward_torch.py", model, dtype]
                       + [str(t) for t in T], env=env, capture_output=True,
                       text=True, check=False)
    if r.returncode:
        return {}
    return {k: float(v) for k, v in
            (line.split() for line in r.stdout.splitlines())}


def sgemm_limit(threads, T):
    """Tokens a second, if products and attention went at sgemm's peak."""
    rate = limit("sgemm", threads, T, WIDTH, 4 * WIDTH)
    flops = LAYERS * (24 * WIDTH * WIDTH + 2 * WIDTH * T)
    return 1e9 * rate / flops


def share(x, whole):
    return f"{100 * x / whole:4.0f}%" if whole else "   -"


def row(what, ours, bound, other):
    times = f"{ours / other:5.1f}x" if other else "     -"
    print(f"{what:42} {ours:9.1f} {bound:9.1f} {share(ours, bound)} "
          f"{other:9.1f} {times}", flush=True)


def row_outside(what, shares):
    print(f"{what:42} {100 * shares[0]:8.1f}%  ({100 * shares[1]:.1f}% neither "
          "in attend nor in unembed)", flush=True)


def bench_gpt2(python, tmp):
    print(f"\n{'GPT-2 124 M, tokens/s':42} {'pipe':>9} {'limit':>9} {'':5}"
          f" {'PyTorch':>9}")
    for dtype in os.environ.get("TYPES", "F32 F16 BF16").split():
        model = f"{tmp}/pipeformer-gpt2-{dtype}"
        make_gpt2(model, dtype)
        size = 4 if dtype == "F32" else 2
        for threads in THREADS:
            name = f"{dtype}, {threads} thread{'s' * (threads > 1)}"
            theirs = torch_rates(python, threads, model, dtype,
                                 (32, 512, 1024)) if python else {}
            for T in (32, 512, 1024):
                ours = prefill(model, threads, T, 5)
                row(f"{name}: prefill of {T}", ours, sgemm_limit(threads, T),
                    theirs.get(str(T), 0))
            row(f"{name}: generate, 1 sequence",
                *generate_one(model, threads, size * PARAMETERS),
                theirs.get("generate", 0))
            for n in (4, 32):
                row(f"{name}: generate, {n} sequences",
                    generate(model, threads, n, 24), 0, 0)
            row_outside(f"{name}: not computing, 1 sequence",
                        outside(model, threads, 64))


def bench_fairy(python, tmp):
    print(f"\n{'fairy, 2.5 M, tokens/s':42} {'pipe':>9}")
    for threads in THREADS:
        for T in (32, 256):
            print(f"{threads} threads: prefill of {T:<21}  {'':3}"
                  f"{prefill('fairy', threads, T, 20, 4096):9.1f}")
        for n in (1, 4, 32):
            print(f"{threads} threads: generate, {n:2} sequences      {'':8}"
                  f"{generate('fairy', threads, n, 100, 8, 4096):9.1f}",
                  flush=True)
        row_outside(f"{threads} threads: not computing, 1 sequence",
                    outside('fairy', threads, 100, 4096))


def bench_minilm(python, tmp):
    model = SHARED + "/models/all-MiniLM-L6-v2"
    if not os.path.isdir(model):
        print(f"\nMiniLM: {model} is not there")
        return
    print(f"\n{'MiniLM, 22 M, tokens/s':42} {'pipe':>9}")
    for threads in THREADS:
        for T in (32, 512):
            print(f"{threads} threads: text of {T:<28} "
                  f"{prefill(model, threads, T, 10, 30522, 'embed | attend | pool'):9.1f}",
                  flush=True)


def bench_start(python, tmp):
    print(f"\n{'start, ms':42}")
    gpt2 = f"{tmp}/pipeformer-gpt2-F32"
    make_gpt2(gpt2, "F32")
    for words, text in ((["/bin/true"], b""), (["embed", "-m", gpt2], b""),
                        (["attend", "-m", gpt2], b""),
                        (["unembed", "-m", gpt2], b""),
                        (["sample", "-m", gpt2], b"")):
        best = 1e9
        for _ in range(20):
            start = time.perf_counter()
            subprocess.run(words, input=text, stdout=subprocess.DEVNULL,
                           check=True)
            best = min(best, time.perf_counter() - start)
        print(f"{' '.join(words[:1]):42} {1e3 * best:9.1f}")


def bench_memory(python, tmp):
    """Of each filter, when it has computed 512 positions."""
    gpt2 = f"{tmp}/pipeformer-gpt2-F32"
    make_gpt2(gpt2, "F32")
    pipe = Pipe(gpt2, 2, "embed | attend | unembed | sample")
    pipe.p[0].stdin.write(json.dumps({"ids": tokens(512)}).encode() + b"\n")
    pipe.p[0].stdin.flush()
    pipe.p[-1].stdout.readline()
    print(f"\n{'memory of a pipe, MB':24} {'mapped file':>12} {'its own':>12}")
    for p in pipe.p:
        kib = {}
        for line in open(f"/proc/{p.pid}/smaps_rollup"):
            words = line.split()
            if words[-1] == "kB":
                kib[words[0]] = int(words[1])
        print(f"{p.args[0]:24} {(kib['Rss:'] - kib['Anonymous:']) / 1e3:12.1f}"
              f" {kib['Anonymous:'] / 1e3:12.1f}")
    print(f"{'model.safetensors':24} "
          f"{os.path.getsize(gpt2 + '/model.safetensors') / 1e6:12.1f}")
    pipe.close()


def bench_attention(python, tmp):
    print("\nattention alone: tests/bench/attention.sh", flush=True)
    for threads in THREADS:
        subprocess.run(["sh", HERE + "/attention.sh", str(threads)],
                       check=False)


def main():
    parts = {"memory": bench_memory, "gpt2": bench_gpt2, "fairy": bench_fairy, "minilm": bench_minilm,
             "attention": bench_attention, "start": bench_start}
    if not shutil.which("attend") or not shutil.which("bench_limit"):
        sys.exit("the commands are not in PATH (bench_limit: ninja bench)")
    python = torch_python()
    tmp = tempfile.gettempdir()
    for name in sys.argv[1:] or parts:
        parts[name](python, tmp)


if __name__ == "__main__":
    main()
