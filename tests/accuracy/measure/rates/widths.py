"""Products whose widths tensor cores like and do not like: heads of attention as Megatron-LM lays them out (tokens
first, query, key and value of a head side by side), and linear layers around multiples of 64. Writes one
`shardplan.rates/1` record."""
import argparse
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

import torch

from environment import environment
from timing import gpu_seconds

HEAD_WIDTHS = [56, 64, 72, 80, 96, 100, 104, 106, 107, 108, 112, 116, 120, 124, 126, 127, 128, 136, 144, 192, 208, 216]
LINEAR_WIDTHS = [1728, 1736, 1740, 1742, 1743, 1792, 1800, 1808, 1824, 1856, 1920]
HEADS, TOKENS, HIDDEN = 32, 2048, 14336


def _heads(width, dtype):
    mixed = torch.randn(TOKENS, HEADS, 3 * width, device="cuda", dtype=dtype)
    query, key, value = (mixed[..., i * width:(i + 1) * width].transpose(0, 1) for i in range(3))
    scores = torch.randn(HEADS, TOKENS, TOKENS, device="cuda", dtype=dtype)
    yield "scores", (TOKENS, TOKENS, width), lambda: torch.bmm(query, key.transpose(1, 2))
    yield "values", (TOKENS, width, TOKENS), lambda: torch.bmm(scores, value)
    yield "value_gradient", (TOKENS, width, TOKENS), lambda: torch.bmm(scores.transpose(1, 2), value)


def _linears(width, dtype):
    x = torch.randn(2 * TOKENS, HIDDEN, device="cuda", dtype=dtype)
    narrow = torch.randn(2 * TOKENS, width, device="cuda", dtype=dtype)
    w = torch.randn(width, HIDDEN, device="cuda", dtype=dtype)
    yield "column", (2 * TOKENS, width, HIDDEN), lambda: torch.mm(x, w.t())
    yield "row", (2 * TOKENS, HIDDEN, width), lambda: torch.mm(narrow, w)
    yield "weight_gradient", (width, HIDDEN, 2 * TOKENS), lambda: torch.mm(narrow.t(), x)


def measure():
    for dtype in (torch.bfloat16, torch.float16):
        for forms, widths, batch in ((_heads, HEAD_WIDTHS, HEADS), (_linears, LINEAR_WIDTHS, 1)):
            for width in widths:
                for form, (m, n, k), work in forms(width, dtype):
                    yield {"kind": "product", "form": form, "dtype": str(dtype).split(".")[1], "m": m, "n": n, "k": k,
                           "batch": batch, "seconds": gpu_seconds(work)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    torch.manual_seed(0)
    record = {"schema": "shardplan.rates/1", "producer": {"program": "tests/accuracy/measure/rates/widths.py"},
              "environment": environment(), "rates": list(measure())}
    with open(options.output, "w", encoding="utf-8") as file:
        json.dump(record, file)
    print(len(record["rates"]), "rates")
