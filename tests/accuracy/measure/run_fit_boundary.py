"""Do the largest micro-batches that surely and that probably fit run, and does the next one die? One run after the other,
each in processes of its own, on GPUs of which another process holds so much that only the case's memory is free.

    python run_fit_boundary.py predictions/boundary_1gpu.json --output boundary.json [--engine shardplan-validate]

Cases come from make_fit_boundary.py. Those of our own engine need --engine.
"""
import argparse
import copy
import json
import os
import subprocess
import sys
import tempfile
import time

from jobs import world_of

HERE = os.path.dirname(os.path.abspath(__file__))
HOLDER = """
import json, sys, torch
free = int(sys.argv[1])
devices = [torch.device("cuda", i) for i in range(int(sys.argv[2]))]
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
RUNNERS = {"single": "run_single.py", "ddp": "run_ddp.py", "fsdp1": "run_fsdp1.py", "fsdp2": "run_fsdp2.py",
           "deepspeed": "run_deepspeed.py"}


def with_micro_batch(job, micro_batch):
    job = copy.deepcopy(job)
    job["workload"]["micro_batch"] = micro_batch
    return job


def command_of(job, path, output, engine):
    framework = job["framework"]["name"]
    if framework == "native":
        return [engine, path, "--steps", "3", "--quiet"]
    program = RUNNERS[framework] if job.get("trainer", "loop") == "loop" else "run_trainer.py"
    world = world_of(job)
    launcher = [] if world == 1 else ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(world)]
    case = ["--case", "boundary"] if program == "run_trainer.py" else []
    return [sys.executable, *launcher, os.path.join(HERE, program), path, "--output", output, *case]


def run(job, engine, seconds):
    """"ran", "out of memory", or how it ended otherwise."""
    with tempfile.TemporaryDirectory() as folder:
        path, output = os.path.join(folder, "case.json"), os.path.join(folder, "record.jsonl")
        native = job["framework"]["name"] == "native"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(job if native else [{"name": "boundary", "job": job, "steps": 5}], file)
        try:
            done = subprocess.run(command_of(job, path, output, engine), capture_output=True, text=True, check=False,
                                  timeout=seconds, cwd=HERE)
        except subprocess.TimeoutExpired:
            return {"outcome": f"ended after {seconds:.0f} s"}
        words = done.stdout + done.stderr
        if native and done.returncode == 0:
            return {"outcome": "ran"}
        if os.path.exists(output):
            with open(output, encoding="utf-8") as file:
                record = json.loads(file.readlines()[-1])
            if "measured" in record:
                measured = {key: record["measured"][key] for key in ("allocated_peak", "reserved", "device")}
                return {"outcome": "ran", **measured}
            words += record.get("error", "")
        if any(sign in words for sign in OUT_OF_MEMORY):
            return {"outcome": "out of memory"}
        return {"outcome": "failed", "message": words[-1500:]}


def outcomes_of(case, options):
    outcomes = []
    for n in [predicted["micro_batch"] for predicted in case["predicted"]]:
        outcomes.append({"micro_batch": n, **run(with_micro_batch(case["job"], n), options.engine, options.case_seconds)})
    return outcomes


def is_right(case, outcomes):
    return all(o["outcome"] == ("ran" if o["micro_batch"] <= case["probably"] else "out of memory") for o in outcomes)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", help="list that make_fit_boundary.py made")
    parser.add_argument("--output", required=True)
    parser.add_argument("--engine", help="shardplan-validate")
    parser.add_argument("--seconds", type=float, default=1e9, help="start no case after this many seconds")
    parser.add_argument("--case-seconds", type=float, default=90, help="end a run that takes longer")
    options = parser.parse_args()
    with open(options.cases, encoding="utf-8") as file:
        cases = json.load(file)
    begin, results = time.time(), []
    for case in cases:
        if time.time() - begin > options.seconds:
            print(case["name"], "not started", flush=True)
            continue
        with subprocess.Popen([sys.executable, "-c", HOLDER, str(case["usable_bytes"]), str(world_of(case["job"]))],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
            free = json.loads(holder.stdout.readline())
            outcomes = outcomes_of(case, options)
            holder.stdin.close()
        right = is_right(case, outcomes)
        results.append({**case, "free_bytes": free, "outcomes": outcomes, "right": right})
        said = ", ".join(f"{o['micro_batch']} {o['outcome']}" for o in outcomes)
        print(f"{time.time() - begin:5.0f} s {case['name']:44} free {free[0] / 2**30:6.2f} GiB, surely {case['surely']}, probably "
              f"{case['probably']}: {said}{'' if right else '  WRONG'}", flush=True)
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
