"""Where a training step's time goes: how long Python takes to issue each phase, and every kernel's share of the GPU.

For each case of a list the step is run as run_single.py runs it, then once under PyTorch's profiler; `--tiny` runs the
same jobs with one sequence of 16 tokens, where the GPU always waits, so that the step is the host's time alone.
"""
import argparse
import collections
import copy
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

import torch
from torch.profiler import ProfilerActivity, profile

import host_probe
from environment import environment
from jobs import load_cases
from models import build_model, make_batch
from phases import clean, warm_libraries
from run_single import SingleTrainer

STEPS, WARM_UP = 12, 3


def _step(trainer, batch, accumulation, marks=None):
    torch.cuda.synchronize()
    start = time.perf_counter()
    spent = collections.Counter()
    for micro in range(accumulation):
        at = time.perf_counter()
        loss = trainer.forward(batch, micro == accumulation - 1)
        between = time.perf_counter()
        trainer.backward(loss, micro == accumulation - 1)
        end = time.perf_counter()
        spent["forward"] += between - at
        spent["backward"] += end - between
    at = time.perf_counter()
    trainer.step()
    trainer.zero_grad()
    spent["step"] = time.perf_counter() - at
    torch.cuda.synchronize()
    spent["all"] = time.perf_counter() - start
    if marks is not None:
        marks.append(spent)


def _kernels(run):
    with profile(activities=[ProfilerActivity.CUDA]) as recorded:
        run()
    totals = collections.defaultdict(lambda: [0, 0.0])
    for event in recorded.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            entry = totals[event.name[:160]]
            entry[0] += 1
            entry[1] += event.device_time * 1e-6
    rows = [{"name": name, "count": count, "seconds": seconds} for name, (count, seconds) in totals.items()]
    return sorted(rows, key=lambda row: -row["seconds"])


def _notable(kernels):
    """Those with half a per cent of the GPU's time or more."""
    all_seconds = sum(row["seconds"] for row in kernels)
    return [{**row, "name": row["name"][:100]} for row in kernels if row["seconds"] >= 0.005 * all_seconds]


def _measure(case, device, tiny):
    job = copy.deepcopy(case["job"])
    if tiny:
        job["workload"].update(micro_batch=1, sequence_length=16)
    config, model = build_model(job, device)
    trainer = SingleTrainer(job, model)
    batch = make_batch(job, config, device)
    accumulation = job["workload"]["gradient_accumulation"]
    marks = []
    for _ in range(STEPS):
        _step(trainer, batch, accumulation, marks)
    steady = marks[WARM_UP:]
    phases = ("forward", "backward", "step", "all")
    middle = {key: sorted(m[key] for m in steady)[len(steady) // 2] for key in phases}
    least = {key: min(m[key] for m in steady) for key in phases}
    kernels = _kernels(lambda: _step(trainer, batch, accumulation))
    return {"name": case["name"] + ("-tiny" if tiny else ""), "job": job, "step_seconds": middle.pop("all"),
            "host_seconds": middle, "least_host_seconds": least, "gpu_seconds": sum(row["seconds"] for row in kernels),
            "gpu_kernels": sum(row["count"] for row in kernels), "kernels": _notable(kernels)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="+")
    parser.add_argument("--output", required=True)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--only", default="", help="comma-separated parts of case names")
    parser.add_argument("--seconds", type=float, default=1e9, help="start no case after this many seconds")
    options = parser.parse_args()
    deadline = time.time() + options.seconds
    wanted = [part for part in options.only.split(",") if part]
    cuda = torch.device("cuda:0")
    warm_libraries(cuda)
    steps = []
    for case in (case for path in options.cases for case in load_cases(path)):
        if wanted and not any(part in case["name"] for part in wanted):
            continue
        if time.time() > deadline:
            break
        try:
            row = _measure(case, cuda, options.tiny)
        except (RuntimeError, ValueError) as error:
            print(case["name"], repr(error)[:300], flush=True)
            continue
        finally:
            clean()
        steps.append(row)
        print(row["name"], f"{row['step_seconds']:.4f}", {k: round(v, 4) for k, v in row["host_seconds"].items()},
              f"gpu {row['gpu_seconds']:.4f}", flush=True)
        with open(options.output + ".part", "w", encoding="utf-8") as file:
            about = {**environment(), "machine": host_probe.machine()}
            json.dump({"schema": "shardplan.step_times/1", "environment": about, "steps": steps}, file)
    os.replace(options.output + ".part", options.output)
