"""All-reduces as vLLM makes them among the GPUs of a node, in CUDA graphs: its own kernel, and the library's.

    torchrun --nproc-per-node 4 vllm_exchanges.py --output h100-vllm-exchanges.json

Of each group size (all ranks, and pairs side by side) and message: seconds of one of 32 that follow each other in a
graph, the median of 15 replays on the slowest rank. NVLink multicast is not used.
"""
import argparse
import json
import os

import torch
import torch.distributed as dist

CALLS, REPLAYS = 32, 15
SIZES = [1 << shift for shift in range(12, 27)]


def timed(run, x, capturing):
    """Seconds of one call of `run`, which returns its result, of which the next is called."""
    for _ in range(2):
        run(x)
    torch.cuda.synchronize()
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.stream(stream), capturing():
        with torch.cuda.graph(graph, stream=stream):
            y = x
            for _ in range(CALLS):
                y = run(y)
    seconds = []
    for i in range(REPLAYS + 3):
        dist.barrier()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        if i >= 3:
            seconds.append(begin.elapsed_time(end) / 1e3 / CALLS)
    return sorted(seconds)[REPLAYS // 2]


def of_group(ranks, rows):
    from contextlib import nullcontext

    from vllm.distributed.device_communicators.custom_all_reduce import CustomAllreduce
    from vllm.distributed.device_communicators.pynccl import PyNcclCommunicator

    rank = dist.get_rank()
    own = next(group for group in ranks if rank in group)
    groups = [dist.new_group(group, backend="gloo") for group in ranks]
    group = groups[ranks.index(own)]
    device = torch.device("cuda", rank)
    kinds = {"library": PyNcclCommunicator(group=group, device=device),
             "own": CustomAllreduce(group=group, device=device)}
    for name, communicator in kinds.items():
        if communicator.disabled:
            rows.append({"ranks": len(own), "kind": name, "disabled": True})
            continue
        for size in SIZES:
            given = torch.zeros(size // 2, dtype=torch.bfloat16, device=device)
            if name == "own" and not communicator.should_custom_ar(given):
                continue
            if name == "own":
                seconds = timed(communicator.custom_all_reduce, given, communicator.capture)
            else:
                seconds = timed(lambda x, c=communicator: c.all_reduce(x, stream=torch.cuda.current_stream()), given,
                                nullcontext)
            seconds = torch.tensor(seconds)
            dist.all_reduce(seconds, op=dist.ReduceOp.MAX)
            rows.append({"ranks": len(own), "kind": name, "bytes": size, "seconds": seconds.item()})
    dist.barrier()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", required=True)
    output = parser.parse_args().output
    os.environ["VLLM_ALLREDUCE_USE_SYMM_MEM"] = "0"
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("gloo")
    world = dist.get_world_size()
    rows = []
    for size in sorted({2, world}, reverse=True):
        of_group([list(range(at, at + size)) for at in range(0, world, size)], rows)
        if dist.get_rank() == 0:
            with open(output, "w", encoding="utf-8") as file:
                json.dump({"gpu": torch.cuda.get_device_name(), "torch": torch.__version__,
                           "nccl": ".".join(map(str, torch.cuda.nccl.version())), "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
