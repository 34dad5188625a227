"""Products of fp32 tensors on tensor cores (TF32), as HF Trainer's compiled steps make them: linear layers, and attention
computed as products. Writes one `shardplan.rates/1` record, whose dtype is "tf32"."""
import argparse
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

import torch

from environment import environment
from timing import gpu_seconds

# (input width, output width): encoders, their heads, small and middle decoders.
WIDTHS = [(768, 768), (768, 2304), (768, 3072), (3072, 768), (768, 30522), (768, 50265), (1024, 4096), (4096, 1024),
          (2048, 2048), (2048, 8192), (4096, 4096)]
TOKENS = [1024, 4096, 6144, 9216]
LARGEST = 2e12  # FLOP: larger ones run at the rate of the largest
# (samples, heads, tokens, width of a head)
ATTENTION = [(b, h, s, w) for b, s in ((4, 512), (12, 384), (16, 384), (24, 384), (6, 512), (12, 512)) for h, w in ((12, 64), (16, 64))]
ATTENTION += [(2, 16, 1024, 128), (8, 12, 512, 32)]


def _linears(tokens, inputs, outputs):
    x = torch.randn(tokens, inputs, device="cuda")
    w = torch.randn(outputs, inputs, device="cuda") * inputs**-0.5
    g = torch.randn(tokens, outputs, device="cuda")
    yield "forward", (tokens, outputs, inputs), lambda: torch.mm(x, w.t())
    yield "input_gradient", (tokens, inputs, outputs), lambda: torch.mm(g, w)
    yield "weight_gradient", (outputs, inputs, tokens), lambda: torch.mm(g.t(), x)


def _heads(batch, tokens, width):
    narrow, other = (torch.randn(batch, tokens, width, device="cuda") for _ in range(2))
    scores = torch.randn(batch, tokens, tokens, device="cuda")
    yield "scores", (tokens, tokens, width), lambda: torch.bmm(narrow, other.transpose(1, 2))
    yield "values", (tokens, width, tokens), lambda: torch.bmm(scores, other)
    yield "value_gradient", (tokens, width, tokens), lambda: torch.bmm(scores.transpose(1, 2), other)


def _row(form, batch, sizes, work):
    m, n, k = sizes
    return {"kind": "product", "form": form, "dtype": "tf32", "m": m, "n": n, "k": k, "batch": batch, "seconds": gpu_seconds(work)}


def measure():
    for inputs, outputs in WIDTHS:
        for tokens in TOKENS:
            if 2.0 * tokens * inputs * outputs <= LARGEST:
                for form, sizes, work in _linears(tokens, inputs, outputs):
                    yield _row(form, 1, sizes, work)
    for samples, heads, tokens, width in ATTENTION:
        for form, sizes, work in _heads(samples * heads, tokens, width):
            yield _row(form, samples * heads, sizes, work)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    record = {"schema": "shardplan.rates/1", "producer": {"program": "tests/accuracy/measure/rates/tf32.py"},
              "environment": environment(), "rates": list(measure())}
    with open(options.output, "w", encoding="utf-8") as file:
        json.dump(record, file)
    print(len(record["rates"]), "rates")
