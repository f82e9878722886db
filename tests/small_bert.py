#!/usr/bin/env python3
"""Writes a small BERT with made-up weights, for tests.

    small_bert.py DIR [distil] [head] [pooler]

V 20, P 12, C 8, L 2, H 2, F 12; names are those of BertForMaskedLM and
BertModel in HuggingFace's files, or of DistilBERT's.  As a module,
weights(words) gives the tensors by name, as lists of rows.
"""
import json
import os
import sys

from stream import document, f32

V, P, C, L, H, F = 20, 12, 8, 2, 2, 12


def numbers(n, seed):
    """n numbers within 0.5 of zero, always the same."""
    x, out = seed * 7919 + 1, []
    for _ in range(n):
        x = (x * 1103515245 + 12345) % 2 ** 31
        out.append((x >> 16) % 128 / 128 - 0.5)
    return out


def weights(words):
    distil, shapes = "distil" in words, {}
    prefix = "distilbert." if distil else "bert."

    def norm(name):
        shapes[name + ".weight"] = shapes[name + ".bias"] = [C]

    def linear(name, out, into):
        shapes[name + ".weight"], shapes[name + ".bias"] = [out, into], [out]

    e = prefix + "embeddings."
    shapes[e + "word_embeddings.weight"] = [V, C]
    shapes[e + "position_embeddings.weight"] = [P, C]
    if not distil:
        shapes[e + "token_type_embeddings.weight"] = [2, C]
    norm(e + "LayerNorm")
    for i in range(L):
        if distil:
            b = prefix + "transformer.layer.%d." % i
            for part in "q_lin", "k_lin", "v_lin", "out_lin":
                linear(b + "attention." + part, C, C)
            norm(b + "sa_layer_norm")
            linear(b + "ffn.lin1", F, C)
            linear(b + "ffn.lin2", C, F)
            norm(b + "output_layer_norm")
        else:
            b = prefix + "encoder.layer.%d." % i
            for part in "query", "key", "value":
                linear(b + "attention.self." + part, C, C)
            linear(b + "attention.output.dense", C, C)
            norm(b + "attention.output.LayerNorm")
            linear(b + "intermediate.dense", F, C)
            linear(b + "output.dense", C, F)
            norm(b + "output.LayerNorm")
    if "pooler" in words:
        linear(prefix + "pooler.dense", C, C)
    if "head" in words:
        head = "vocab_" if distil else "cls.predictions.transform."
        linear(head + ("transform" if distil else "dense"), C, C)
        norm(head + ("layer_norm" if distil else "LayerNorm"))
        shapes["vocab_projector.bias" if distil
               else "cls.predictions.bias"] = [V]
    tensors = {}
    for i, (name, shape) in enumerate(shapes.items()):
        n = shape[0] * (shape[1] if len(shape) > 1 else 1)
        tensors[name] = (shape, numbers(n, i))
    return tensors


def config(words):
    if "distil" in words:
        return {"model_type": "distilbert", "vocab_size": V,
                "max_position_embeddings": P, "dim": C, "n_layers": L,
                "n_heads": H, "hidden_dim": F, "activation": "gelu"}
    return {"model_type": "bert", "vocab_size": V, "hidden_size": C,
            "max_position_embeddings": P, "num_hidden_layers": L,
            "num_attention_heads": H, "intermediate_size": F,
            "hidden_act": "gelu", "type_vocab_size": 2,
            "position_embedding_type": "absolute"}


def main():
    where, words = sys.argv[1], sys.argv[2:]
    os.makedirs(where)
    with open(where + "/config.json", "w") as f:
        json.dump(config(words), f)
    with open(where + "/model.safetensors", "wb") as f:
        f.write(document({name: f32(*t) for name, t
                          in weights(words).items()}))


if __name__ == "__main__":
    main()
