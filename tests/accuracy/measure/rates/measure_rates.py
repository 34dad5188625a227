"""Rates of one GPU under PyTorch: matrix products, attention, operations that move bytes. Writes one
`shardplan.rates/1` record: what was run and how long the GPU took for one call."""
import argparse
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

import torch

import attention
import memory_bound
import products
from environment import environment

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    torch.manual_seed(0)
    rows = []
    for measure in (products.measure, attention.measure, memory_bound.measure):
        for row in measure():
            rows.append(row)
            torch.cuda.empty_cache()
    record = {"schema": "shardplan.rates/1", "producer": {"program": "tests/accuracy/measure/rates/measure_rates.py"},
              "environment": environment(), "rates": rows}
    temporary = options.output + ".part"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(record, file)
    os.replace(temporary, options.output)
    print(len(rows), "rates")
