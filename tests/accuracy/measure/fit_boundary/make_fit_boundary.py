"""Asks shardplan for the largest micro-batches of each job that surely and that probably fit, before anything runs.

    python fit_boundary/make_fit_boundary.py PROGRAM cases/boundary_1gpu.json > predictions/boundary_1gpu.json

A case is {"name", "usable_bytes", "job"}: so much of each GPU is left free. What comes out is the list that
run_fit_boundary.py runs: with `surely` and `probably`, and what was predicted of the first and of the next that does not
fit. Between these the verdict is "tight", which no run can prove wrong.
"""
import argparse
import copy
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

from jobs import load_cases


def ask(program, command, job, *more):
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(job, file)
        file.flush()
        done = subprocess.run([program, command, file.name, *more, "--format", "json"], capture_output=True, text=True,
                              check=False)
    if done.returncode not in (0, 4):
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def with_usable(job, usable):
    """The job on GPUs of the same kind, of which only so much is free."""
    count, name = job["cluster"].split("x", 1)
    job = copy.deepcopy(job)
    job["cluster"] = {"gpu": {"name": name, "memory_bytes": usable, "usable_bytes": usable, "arch": "Hopper",
                              "compute_capability": "9.0"},
                      "gpus_per_node": int(count), "nodes": 1}
    return job


def predicted(program, job, micro_batch):
    estimate = ask(program, "estimate", job, "--micro-batch", str(micro_batch))
    peak = estimate["gpu"]["peak"]
    return {"micro_batch": micro_batch, "verdict": estimate["verdict"]["gpu"]["verdict"], "allocated": peak["allocated"]["point"], "device": peak["device"]["point"],
            "device_upper": peak["device"]["upper"]}


def boundary(program, case):
    job = with_usable(case["job"], case["usable_bytes"])
    largest = ask(program, "max", job, "--of", "micro_batch")
    surely, probably = (largest[key] or 0 for key in ("surely", "probably"))
    tried = [predicted(program, job, surely)] if surely else []
    beyond = predicted(program, job, probably + 1)
    while beyond["verdict"] != "does_not_fit":
        beyond = predicted(program, job, beyond["micro_batch"] + 1)
    return {**case, "surely": surely, "probably": probably, "predicted": [*tried, beyond]}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("program", help="shardplan")
    parser.add_argument("cases", help="list of {name, usable_bytes, job}")
    options = parser.parse_args()
    print(json.dumps([boundary(options.program, case) for case in load_cases(options.cases)], indent=1))
