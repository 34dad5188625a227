"""Device memory that NCCL takes for each communicator, operation after operation.

Every plan is a fresh communicator and an order of operations; a row says how much memory the device has lost since the
plan began, beside what PyTorch's allocator holds. Start it with torchrun; `--groups 2` splits the world into pairs.
"""
import argparse
import gc
import json
import os
import sys

import torch
import torch.distributed as dist

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401
from environment import environment  # noqa: E402
from ranks import bind_device  # noqa: E402

LARGE = 64 * 2**20  # bytes
SMALL = 16
PLANS = [
    ["all_reduce_small", "all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "send_next"],
    ["all_gather", "reduce_scatter", "all_reduce", "all_reduce_small"],
    ["reduce_scatter", "all_gather"],
    ["all_reduce", "all_reduce_small"],
    ["all_gather_small", "all_gather"],
    ["broadcast", "all_gather"],
    ["send_next", "send_previous", "all_to_all"],
    ["all_to_all", "all_reduce_small"],
    ["barrier", "all_gather"],
]


class Operations:
    def __init__(self, group, device):
        self.group, self.device = group, device
        self.ranks = dist.get_process_group_ranks(group)
        self.own = self.ranks.index(dist.get_rank())
        count = len(self.ranks)
        self.whole = torch.zeros(LARGE // 2 // count * count, dtype=torch.bfloat16, device=device)
        self.part = torch.zeros(self.whole.numel() // count, dtype=torch.bfloat16, device=device)
        self.little = torch.zeros(SMALL * count, dtype=torch.bfloat16, device=device)

    def neighbour(self, step):
        return self.ranks[(self.own + step) % len(self.ranks)]

    def send(self, step):
        """A pipeline's exchange: to one neighbour, from the other."""
        got = torch.empty_like(self.part)
        pair = [dist.P2POp(dist.isend, self.part, self.neighbour(step), self.group),
                dist.P2POp(dist.irecv, got, self.neighbour(-step), self.group)]
        for request in dist.batch_isend_irecv(pair):
            request.wait()

    def run(self, name):
        group = self.group
        if name == "all_reduce":
            dist.all_reduce(self.whole, group=group)
        elif name == "all_reduce_small":
            dist.all_reduce(self.little[:1], group=group)
        elif name == "all_gather":
            dist.all_gather_into_tensor(self.whole, self.part, group=group)
        elif name == "all_gather_small":
            dist.all_gather_into_tensor(self.little, self.little[:SMALL].clone(), group=group)
        elif name == "reduce_scatter":
            dist.reduce_scatter_tensor(self.part, self.whole, group=group)
        elif name == "broadcast":
            dist.broadcast(self.part, self.ranks[0], group=group)
        elif name == "all_to_all":
            dist.all_to_all_single(torch.empty_like(self.whole), self.whole, group=group)
        elif name == "barrier":
            dist.barrier(group=group)
        else:
            self.send(1 if name == "send_next" else -1)
        torch.cuda.synchronize()


def outside(device):
    """Bytes the device has in use beside PyTorch's allocator."""
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info(device)
    return total - free - torch.cuda.memory_reserved(device)


def own_group(size):
    mine = None
    for first in range(0, dist.get_world_size(), size):
        ranks = list(range(first, first + size))
        group = dist.new_group(ranks)
        if dist.get_rank() in ranks:
            mine = group
    return mine


def measure_plan(plan, size, device, order):
    group = own_group(size)
    operations = Operations(group, device)
    start = outside(device)
    rows = []
    for name in plan:
        if size == 1 and name.startswith("send"):
            continue
        operations.run(name)
        taken = torch.tensor(outside(device) - start, device=device)
        dist.all_reduce(taken, dist.ReduceOp.MAX)
        rows.append({"plan": order, "operation": name, "ranks": size, "bytes": int(taken)})
    del operations
    gc.collect()
    torch.cuda.empty_cache()
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", required=True)
    parser.add_argument("--sizes", type=int, nargs="+", required=True, help="ranks of the communicators")
    options = parser.parse_args()
    rank, world, device = bind_device()
    dist.init_process_group("nccl")
    torch.zeros(1, device=device)
    before = outside(device)
    world_rows = []
    for name in ("all_reduce_small", "all_gather", "reduce_scatter", "all_reduce"):
        Operations(dist.group.WORLD, device).run(name)
        torch.cuda.empty_cache()
        world_rows.append({"plan": "world", "operation": name, "ranks": world, "bytes": outside(device) - before})
    rows = world_rows + [row for size in options.sizes for order, plan in enumerate(PLANS)
                         for row in measure_plan(plan, size, device, order)]
    if rank == 0:
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump({"schema": "shardplan.communicators/1", "environment": environment(), "world": world,
                       "context_bytes": before, "rows": rows}, file, indent=1)
        for row in rows:
            print(row["plan"], row["ranks"], row["operation"], round(row["bytes"] / 2**20), flush=True)
    dist.destroy_process_group()
