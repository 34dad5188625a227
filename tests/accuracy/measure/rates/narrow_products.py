"""Products in fp8 as torchao's eager float8 linear calls them, and the kernels that cast, turn and scale their operands,
over the linear layers of Llama models. Writes one `shardplan.rates/1` record; takes about a minute.

    python narrow_products.py --output h100-narrow.json
"""
import argparse
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

import torch

from environment import environment
from timing import gpu_seconds

# (input width, output width): Llama 3.2 1B, 3B, 3.1 8B, TinyLlama and Mistral 7B, keys and values included.
WIDTHS = [(2048, 512), (2048, 2048), (2048, 5632), (2048, 8192), (8192, 2048), (3072, 1024), (3072, 8192), (8192, 3072),
          (4096, 1024), (4096, 4096), (4096, 14336), (14336, 4096)]
TOKENS = [2048, 4096, 8192, 16384]
# Rows and columns of what is cast: inputs, gradients and weights.
CASTS = [(2048, 2048), (4096, 4096), (8192, 2048), (8192, 8192), (14336, 4096), (16384, 4096), (16384, 14336)]
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2


def _random(rows, columns, dtype):
    return torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16).to(dtype)


def _scaled(a, b, by_rows, fast):
    """`b` row by row in memory stands for the matrix that it is the transpose of, as cuBLAS wants it."""
    rows, columns = (a.shape[0], 1), (1, b.shape[0])
    one = [torch.ones(shape if by_rows else (), device="cuda") for shape in (rows, columns)]
    return lambda: torch._scaled_mm(a, b.t(), scale_a=one[0], scale_b=one[1], out_dtype=torch.bfloat16,
                                    use_fast_accum=fast)


def _products():
    for inputs, outputs in WIDTHS:
        for tokens in TOKENS:
            sizes = {"forward": (tokens, outputs, inputs), "input_gradient": (tokens, inputs, outputs),
                     "weight_gradient": (outputs, inputs, tokens)}
            for form, (m, n, k) in sizes.items():
                first = E4M3 if form == "forward" else E5M2
                yield form, "", (m, n, k), _scaled(_random(m, k, first), _random(n, k, E4M3), False, form == "forward")
            m, n, k = sizes["forward"]
            yield "forward", "_rowwise", (m, n, k), _scaled(_random(m, k, E4M3), _random(n, k, E4M3), True, True)


def _cast_kernels(rows, columns):
    """What one cast starts, kernel by kernel: bytes read and written for an element, and the call."""
    x = _random(rows, columns, torch.bfloat16)
    wide, scale = x.float(), torch.ones((), device="cuda")
    by_row = torch.ones(rows, 1, device="cuda")
    eight = x.to(E4M3)
    magnitude = x.abs()
    yield "magnitude", 4, lambda: torch.abs(x)
    yield "largest", 2, lambda: torch.max(magnitude)
    yield "largest_of_rows", 2, lambda: torch.amax(magnitude, dim=-1, keepdim=True)
    yield "largest_of_columns", 2, lambda: torch.amax(magnitude, dim=0, keepdim=True)
    yield "widen", 6, lambda: x.to(torch.float32)
    yield "scale", 8, lambda: wide * scale
    yield "scale_rows", 8, lambda: wide * by_row
    yield "clamp", 8, lambda: wide.clamp(min=-448.0, max=448.0)
    yield "narrow_e4m3", 5, lambda: wide.to(E4M3)
    yield "narrow_e5m2", 5, lambda: wide.to(E5M2)
    yield "turn", 2, lambda: eight.t().contiguous()
    yield "outer_scale", 4, lambda: by_row * by_row.t()[:, :1].expand(1, columns)
    yield "scale_result", 8, lambda: x.mul_(wide)


def measure():
    for form, kind, (m, n, k), work in _products():
        yield {"kind": "product", "form": form + kind, "dtype": "float8", "m": m, "n": n, "k": k, "batch": 1,
               "seconds": gpu_seconds(work)}
    for rows, columns in CASTS:
        for form, each, work in _cast_kernels(rows, columns):
            yield {"kind": "cast", "form": form, "rows": rows, "columns": columns, "bytes": each * rows * columns,
                   "seconds": gpu_seconds(work)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    torch.manual_seed(0)
    record = {"schema": "shardplan.rates/1", "producer": {"program": "tests/accuracy/measure/rates/narrow_products.py"},
              "environment": environment(), "rates": list(measure())}
    with open(options.output, "w", encoding="utf-8") as file:
        json.dump(record, file)
    print(len(record["rates"]), "rates")
