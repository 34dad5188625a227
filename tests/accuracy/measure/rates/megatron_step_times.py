"""Where a Megatron Core step's time goes: its seconds, and every kernel's share of each stream, of rank 0.

`--tiny` runs the same layouts over 64 tokens a rank, where the GPU waits for the host. Start it with torchrun, and with
`--case` once a layout, because what Megatron Core keeps of it stays. Adds rows to `shardplan.step_times/1`.
"""
import argparse
import collections
import copy
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401
from environment import environment  # noqa: E402
from jobs import load_cases  # noqa: E402
from megatron_step import make_step, prepare_libraries  # noqa: E402
from phases import clean, warm_libraries  # noqa: E402
from ranks import bind_device, line_up  # noqa: E402

STEPS, WARM_UP, TOKENS = 12, 3, 64


def _kernels(step):
    line_up()
    with profile(activities=[ProfilerActivity.CUDA]) as recorded:
        step()
        torch.cuda.synchronize()
    totals = collections.defaultdict(lambda: [0, 0.0])
    spans = []
    for event in recorded.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            entry = totals[event.name[:160]]
            entry[0] += 1
            entry[1] += event.device_time * 1e-6
            spans.append((event.time_range.start, event.time_range.end, "nccl" in event.name))
    rows = [{"name": name[:100], "count": count, "seconds": s} for name, (count, s) in totals.items()]
    return sorted(rows, key=lambda row: -row["seconds"]), spans


def _covered(spans):
    """Seconds in which at least one of them runs."""
    covered, until = 0.0, float("-inf")
    for start, end, *_ in sorted(spans):
        covered += max(0.0, end - max(start, until))
        until = max(until, end)
    return covered * 1e-6


def measure(job, tiny):
    job = copy.deepcopy(job)
    if tiny:
        parallel = job.get("parallel", {})
        job["workload"].update(
            micro_batch=1, sequence_length=TOKENS * parallel.get("tensor", 1) * parallel.get("context", 1))
    step, _ = make_step(job)
    seconds = []
    for _ in range(STEPS):
        line_up()
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    steady = sorted(seconds[WARM_UP:])
    kernels, spans = _kernels(step)
    compute = [span for span in spans if not span[2]]
    exchanges = [span for span in spans if span[2]]
    return {"job": job, "step_seconds": steady[len(steady) // 2], "least_step_seconds": steady[0],
            "compute_seconds": _covered(compute), "exchange_seconds": _covered(exchanges),
            "busy_seconds": _covered(spans), "gpu_kernels": len(spans), "kernels": kernels[:40]}


def forget():
    """The layout, and what the case left on the GPU."""
    from megatron.core import parallel_state

    parallel_state.destroy_model_parallel()
    clean()


def add_row(path, about, row):
    record = {"schema": "shardplan.step_times/1", "environment": about, "steps": []}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            record = json.load(file)
    record["steps"].append(row)
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(record, file)
    os.replace(path + ".part", path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("cases")
    parser.add_argument("--case", type=int, nargs="+", required=True, help="places in the list, of one layout")
    parser.add_argument("--output", required=True)
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    rank, world_size, this_device = bind_device()
    cases = load_cases(options.cases)
    dist.init_process_group("nccl")
    libraries = prepare_libraries()
    warm_libraries(this_device)
    for place in options.case:
        row = {"name": cases[place]["name"] + ("-tiny" if options.tiny else ""),
               **measure(cases[place]["job"], options.tiny)}
        forget()
        if rank == 0:
            add_row(options.output, environment(**libraries), row)
            print(row["name"], *(f"{key} {row[key]:.4f}" for key in row if key.endswith("_seconds")), flush=True)
    dist.destroy_process_group()
