"""Does the largest micro-batch that surely fits run, and does the next that does not fit die? One run after the other, each in processes of its own, on GPUs of which another process holds so much that only the case's memory is free.

    python fit_boundary/run_fit_boundary.py predictions/boundary_1gpu.json --output boundary.json [--gpus 2]

Cases come from make_fit_boundary.py. Those of our own engine need --engine.
"""
import argparse
import concurrent.futures
import copy
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

from gate import Gated, wait_for_empty_gpus
from jobs import world_of

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HOLDER = """
import json, sys, torch
free = int(sys.argv[1])
devices = [torch.device("cuda", i) for i in range(torch.cuda.device_count())]
contexts = [torch.zeros(1, device=device) for device in devices]
blocks = []
for device in devices:
    surplus = torch.cuda.mem_get_info(device)[0] - free
    while surplus >= 1 << 21:
        size = min(surplus, 1 << 30) >> 21 << 21
        blocks.append(torch.empty(size, dtype=torch.uint8, device=device))
        surplus = torch.cuda.mem_get_info(device)[0] - free
print(json.dumps([torch.cuda.mem_get_info(device)[0] for device in devices]), flush=True)
sys.stdin.read()
"""
OUT_OF_MEMORY = ("out of memory", "OutOfMemoryError", "NCCL error", "cudaErrorMemoryAllocation", "CUBLAS_STATUS_ALLOC_FAILED")
RUNNERS = {"single": "loops/run_single.py", "ddp": "loops/run_ddp.py", "fsdp1": "loops/run_fsdp1.py", "fsdp2": "loops/run_fsdp2.py",
           "deepspeed": "zero/run_deepspeed.py"}


def with_micro_batch(job, micro_batch):
    job = copy.deepcopy(job)
    job["workload"]["micro_batch"] = micro_batch
    return job


def command_of(job, path, output, engine):
    framework = job["framework"]["name"]
    if framework == "native":
        return [engine, path, "--steps", "3", "--quiet"]
    program = RUNNERS[framework] if job.get("trainer", "loop") == "loop" else "hf_trainers/run_trainer.py"
    world = world_of(job)
    launcher = [] if world == 1 else ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(world)]
    case = ["--case", "boundary"] if program == "hf_trainers/run_trainer.py" else []
    return [sys.executable, *launcher, os.path.join(HERE, program), path, "--output", output, *case]


class Run:
    """One micro-batch of a case, started on the GPUs with these numbers: it waits until `end` lets it go on."""

    def __init__(self, job, gpus, engine):
        self.native = job["framework"]["name"] == "native"
        self.folder = tempfile.TemporaryDirectory()
        path, self.output = (os.path.join(self.folder.name, name) for name in ("case.json", "record.jsonl"))
        with open(path, "w", encoding="utf-8") as file:
            json.dump(job if self.native else [{"name": "boundary", "job": job, "steps": 5}], file)
        self.waits = job.get("trainer", "loop") != "loop"  # the other programs know no gate
        self.begin = lambda: Gated(command_of(job, path, self.output, engine), HERE, seeing(gpus))
        self.started = self.begin() if self.waits else None

    def end(self, seconds):
        """"ran", "out of memory", or how it ended otherwise."""
        started = self.started or self.begin()
        started.open()
        try:
            started.process.wait(seconds)
        except subprocess.TimeoutExpired:
            started.end()
            return {"outcome": f"ended after {seconds:.0f} s"}
        words = started.words()
        started.close()
        if self.native and started.process.returncode == 0:
            return {"outcome": "ran"}
        if os.path.exists(self.output):
            with open(self.output, encoding="utf-8") as file:
                record = json.loads(file.readlines()[-1])
            if "measured" in record:
                measured = {key: record["measured"][key] for key in ("allocated_peak", "reserved", "device")}
                return {"outcome": "ran", **measured}
            words += record.get("error", "")
        if any(sign in words for sign in OUT_OF_MEMORY):
            return {"outcome": "out of memory", "message": last_words(words)}
        return {"outcome": "failed", "message": last_words(words)}


def last_words(words):
    """The first error that a process named, or the last line of all; no tracebacks, which name folders."""
    lines = words.strip().splitlines()
    named = [line for line in lines if "Error: " in line or line.endswith("Error")]
    return re.sub(r"^\[rank\d+\]: ", "", (named or lines[-1:] or [""])[0])[:400]


def seeing(gpus):
    return {**os.environ, "CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus))}


def is_right(case, outcomes):
    return all(o["outcome"] == ("ran" if o["micro_batch"] <= case["surely"] else "out of memory") for o in outcomes)


def try_case(case, gpus, options):
    tried = [predicted["micro_batch"] for predicted in case["predicted"]]
    runs = [(n, Run(with_micro_batch(case["job"], n), gpus, options.engine)) for n in tried]
    wait_for_empty_gpus(seeing(gpus))
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(case["usable_bytes"])], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True, env=seeing(gpus)) as holder:
        free = json.loads(holder.stdout.readline())
        outcomes = [{"micro_batch": n, **run.end(options.case_seconds)} for n, run in runs]
        holder.stdin.close()
    return {**case, "free_bytes": free, "outcomes": outcomes, "right": is_right(case, outcomes)}


def said_of(result):
    outcomes = ", ".join(f"{o['micro_batch']} {o['outcome']}" for o in result["outcomes"])
    return (f"{result['name']:44} free {result['free_bytes'][0] / 2**30:6.2f} GiB, surely {result['surely']}, probably "
            f"{result['probably']}: {outcomes}{'' if result['right'] else '  WRONG'}")


class Results:
    """Written anew after each case, so that nothing is lost where a run is cut off."""

    def __init__(self, options):
        self.options, self.begin, self.lock, self.all = options, time.time(), threading.Lock(), []

    def add(self, case, gpus):
        seconds = time.time() - self.begin
        if seconds > self.options.seconds:
            print(case["name"], "not started", flush=True)
            return
        result = try_case(case, gpus, self.options)
        with self.lock:
            self.all.append(result)
            print(f"{time.time() - self.begin:5.0f} s {said_of(result)}", flush=True)
            with open(self.options.output, "w", encoding="utf-8") as file:
                json.dump(self.all, file, indent=1)
                file.write("\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="+", help="lists that make_fit_boundary.py made")
    parser.add_argument("--output", required=True)
    parser.add_argument("--only", nargs="+", help="these cases alone")
    parser.add_argument("--engine", help="shardplan-validate")
    parser.add_argument("--gpus", type=int, default=1, help="run cases of one GPU side by side on so many")
    parser.add_argument("--seconds", type=float, default=1e9, help="start no case after this many seconds")
    parser.add_argument("--case-seconds", type=float, default=90, help="end a run that takes longer")
    options = parser.parse_args()
    cases = []
    for path in options.cases:
        with open(path, encoding="utf-8") as file:
            cases += [case for case in json.load(file) if not options.only or case["name"] in options.only]
    results = Results(options)
    free = queue.SimpleQueue()
    for gpu in range(options.gpus):
        free.put(gpu)

    def alone(case):
        gpu = free.get()
        try:
            results.add(case, [gpu])
        finally:
            free.put(gpu)

    with concurrent.futures.ThreadPoolExecutor(options.gpus) as pool:
        list(pool.map(alone, [case for case in cases if world_of(case["job"]) == 1]))
    for case in cases:
        if world_of(case["job"]) > 1:
            results.add(case, list(range(world_of(case["job"]))))


if __name__ == "__main__":
    main()
