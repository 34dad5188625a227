"""Rates of collectives among GPUs by size, alone and with a matrix product beside them. Start it with torchrun.

    torchrun --nproc-per-node 2 rates/measure_links.py --output h100-links.json

Writes `shardplan.rates/1` from rank 0. A row: `bytes` of the whole tensor (all_gather, reduce_scatter, all_reduce,
all_to_all: of each rank's own tensor; send_recv: of what goes each way), `seconds` of the collective alone, the median
of rounds; `seconds_beside` where a product of 8192 x 8192 x 8192 in bf16 runs all the time on another stream.
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

KIB = 2**10
ROUNDS = 3


def collectives(world, rank, size):
    """(name, call) of every form for a tensor of `size` bytes. The calls wait on their stream alone."""
    whole = torch.zeros(size // 2, device="cuda", dtype=torch.bfloat16)
    other = torch.zeros_like(whole)
    part = whole[: whole.numel() // world].clone()
    yield "all_gather", lambda: dist.all_gather_into_tensor(whole, part)
    yield "reduce_scatter", lambda: dist.reduce_scatter_tensor(part, whole)
    yield "all_reduce", lambda: dist.all_reduce(whole)
    yield "all_to_all", lambda: dist.all_to_all_single(other, whole)
    ahead, behind = (rank + 1) % world, (rank - 1) % world

    def around():
        calls = [dist.P2POp(dist.isend, whole, ahead), dist.P2POp(dist.irecv, other, behind)]
        for pending in dist.batch_isend_irecv(calls):
            pending.wait()

    yield "send_recv", around


def seconds_of(call, count, beside):
    """Of one call, `count` in a row, with the calls of `beside` queued first on a stream of their own."""
    line_up()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(int(2e6 + 1e5 * count))
    begin.record()
    if beside:
        stream = torch.cuda.Stream()
        stream.wait_event(begin)
        with torch.cuda.stream(stream):
            for _ in range(beside[1]):
                beside[0]()
    for _ in range(count):
        call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1e3 / count


def agreed(value):
    """Rank 0's number, for all."""
    box = torch.tensor([value], device="cuda", dtype=torch.float64)
    dist.broadcast(box, 0)
    return box.item()


def median(call, count, beside=None):
    return sorted(seconds_of(call, count, beside) for _ in range(ROUNDS))[ROUNDS // 2]


def measure(world, rank, sizes, target):
    n = 8192
    a, b = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    product = lambda: torch.mm(a, b)
    product()
    product_seconds = agreed(median(product, 4))
    rows = []
    for size in sizes:
        for form, call in collectives(world, rank, size):
            call()
            once = agreed(seconds_of(call, 3, None))
            count = max(2, min(50, int(target / once)))
            alone = agreed(median(call, count))
            products = 2 + int(3 * alone * count / product_seconds)
            beside = agreed(median(call, count, (product, products)))
            rows.append({"kind": "collective", "form": form, "ranks": world, "bytes": size, "seconds": alone,
                         "seconds_beside": beside})
            if rank == 0:
                print(f"{form:16} {size / KIB:10.0f} KiB {size / alone / 1e9:8.2f} GB/s, beside a product "
                      f"{size / beside / 1e9:8.2f}", flush=True)
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", required=True)
    parser.add_argument("--largest", type=int, default=1 << 30, help="bytes; 64 KiB, then four times as many, up to this")
    parser.add_argument("--seconds", type=float, default=0.02, help="about how long a round takes")
    parser.add_argument("--over", default="NVLink", help="what joins the GPUs, for the record")
    options = parser.parse_args()
    own_rank, world_size, this_device = bind_device()
    dist.init_process_group("nccl", device_id=this_device)
    wanted = [size for size in (64 * KIB << (2 * i) for i in range(12)) if size <= options.largest]
    found = measure(world_size, own_rank, wanted, options.seconds)
    if own_rank == 0:
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump({"schema": "shardplan.rates/1", "name": os.path.basename(options.output).removesuffix(".json"),
                       "producer": {"program": "rates/measure_links.py"},
                       "environment": {**environment(), "links": options.over}, "rates": found}, file)
            file.write("\n")
    dist.destroy_process_group()
