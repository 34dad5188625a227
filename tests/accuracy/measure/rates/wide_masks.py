"""Attention with a mask over heads wider than 128, for which the memory-efficient kernel has another backward pass
(aten/src/ATen/native/transformers/cuda/mem_eff_attention/kernels: kMaxK of 65536). Writes a `shardplan.rates/1` record.

    python rates/wide_masks.py --output h100-wide-masks.json
"""
import argparse
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

import torch

from attention import _case
from environment import environment

# (batch, sequence, query heads, key heads, head width); the first two are within 128.
SHAPES = [(2, 1024, 16, 4, 64), (2, 2048, 16, 4, 128), (4, 2048, 4, 1, 256), (2, 1024, 8, 4, 256), (4, 2048, 8, 4, 256),
          (1, 4096, 4, 1, 256), (2, 4096, 8, 4, 256), (4, 384, 4, 1, 256), (2, 2048, 8, 8, 160), (2, 2048, 8, 8, 192)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    torch.manual_seed(0)
    rows = []
    for shape in SHAPES:
        rows += _case(shape, torch.bfloat16, False, True)
        torch.cuda.empty_cache()
    record = {"schema": "shardplan.rates/1", "producer": {"program": "tests/accuracy/measure/rates/wide_masks.py"},
              "environment": environment(), "rates": rows}
    with open(options.output, "w", encoding="utf-8") as file:
        json.dump(record, file)
    for row in rows:
        whole = row["batch"] * row["heads"] * row["sequence"] ** 2 * row["head_width"] * (4 if row["form"] == "forward" else 10)
        print(row["batch"], row["sequence"], row["heads"], row["head_width"], row["form"],
              f"{row['seconds'] * 1e3:.3f} ms, {whole / row['seconds'] / 1e12:.0f} TFLOP/s", flush=True)


if __name__ == "__main__":
    main()
