"""How much longer kernels take beside a collective, and the collective beside them. Start it with torchrun.

A row is one kind of kernel beside one collective: the seconds of each alone, and of each while the other one runs all
the time (the other is queued for half as long again). Writes `shardplan.contention/1` from rank 0.
"""
import argparse
import json
import os
import sys

import torch
import torch.distributed as dist

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401
from environment import environment  # noqa: E402
from ranks import bind_device, line_up  # noqa: E402

TARGET_SECONDS = 0.03
MIB = 2**20


def _kernels():
    """Shapes of a block of 4,096 channels over four ranks, and what only moves bytes."""
    random = lambda *shape: torch.randn(*shape, device="cuda", dtype=torch.bfloat16)
    for m, n, k in ((8192, 3584, 4096), (8192, 4096, 1024), (8192, 8192, 8192)):
        a, b = random(m, k), random(k, n)
        yield f"product {m}x{n}x{k}", lambda a=a, b=b: torch.mm(a, b)
    x, y = random(128 * MIB), random(128 * MIB)
    yield "elementwise 256 MiB", lambda: torch.add(x, y, out=y)
    q = random(2, 8, 4096, 128)
    yield "attention 4096", lambda: torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)


def _collectives(world):
    for mebibytes in (32, 256):
        whole = torch.zeros(mebibytes * MIB // 2, device="cuda", dtype=torch.bfloat16)
        part = torch.zeros(whole.numel() // world, device="cuda", dtype=torch.bfloat16)
        yield "all_gather", mebibytes, lambda w=whole, p=part: dist.all_gather_into_tensor(w, p, async_op=True)
        yield "reduce_scatter", mebibytes, lambda w=whole, p=part: dist.reduce_scatter_tensor(p, w, async_op=True)
        yield "all_reduce", mebibytes, lambda w=whole: dist.all_reduce(w, async_op=True)


def _timed(kernel, kernels, collective, collectives):
    """(seconds of the kernels, seconds of the collectives), which are queued first; the GPU sleeps meanwhile."""
    line_up()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(4)]
    beside = torch.cuda.Stream()
    torch.cuda._sleep(int(2e6 + 3e4 * kernels + 1.5e5 * collectives))
    marks[0].record()
    beside.wait_event(marks[0])
    with torch.cuda.stream(beside):
        marks[2].record()
        for _ in range(collectives):
            pending = collective()
        if collectives:
            pending.wait()
        marks[3].record()
    for _ in range(kernels):
        kernel()
    marks[1].record()
    torch.cuda.synchronize()
    return marks[0].elapsed_time(marks[1]) / 1e3, marks[2].elapsed_time(marks[3]) / 1e3


def _alone(kernel, collective, kernels, collectives):
    runs = [_timed(kernel, kernels, collective, collectives) for _ in range(3)]
    return sorted(seconds if kernels else other for seconds, other in runs)[1]


def _show(row):
    if dist.get_rank() == 0:
        print(f"{row['kernel']:24} {row['collective']:14} {row['mebibytes']:4} MiB"
              f" kernels x{row['kernel_seconds_beside'] / row['kernel_seconds']:.2f}"
              f" collective x{row['collective_seconds_beside'] / row['collective_seconds']:.2f}", flush=True)


def measure(world):
    rows = []
    for kernel_name, kernel in _kernels():
        for name, mebibytes, collective in _collectives(world):
            for _ in range(2):
                kernel()
                collective().wait()
            one = _alone(kernel, collective, 4, 0) / 4, _alone(kernel, collective, 0, 4) / 4
            counts = torch.tensor([max(2, int(TARGET_SECONDS / seconds)) for seconds in one], device="cuda")
            dist.broadcast(counts, 0)
            kernels, collectives = counts.tolist()
            row = {"kernel": kernel_name, "collective": name, "mebibytes": mebibytes,
                   "kernel_seconds": _alone(kernel, collective, kernels, 0) / kernels,
                   "collective_seconds": _alone(kernel, collective, 0, collectives) / collectives}
            both = sorted(_timed(kernel, kernels, collective, collectives * 3)[0] for _ in range(3))[1]
            row["kernel_seconds_beside"] = both / kernels
            both = sorted(_timed(kernel, kernels * 3, collective, collectives)[1] for _ in range(3))[1]
            row["collective_seconds_beside"] = both / collectives
            rows.append(row)
            _show(row)
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    rank, world_size, this_device = bind_device()
    dist.init_process_group("nccl", device_id=this_device)
    found = measure(world_size)
    if rank == 0:
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump({"schema": "shardplan.contention/1", "environment": environment(), "ranks": world_size,
                       "rows": found}, file)
    dist.destroy_process_group()
