"""Every case of FSDP1 in processes of its own, one record a file, and a table of predicted and measured bytes last.

    python loops/run_fsdp1_apart.py --output FOLDER [--cases cases/fsdp1.json] [--predictions predictions/fsdp1.json]

A case that is done (its file is there) is left out, so that the same command goes on where it was stopped.
"""
import argparse
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

from jobs import load_cases, world_of

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FIGURES = ("forward_peak", "forward_end", "backward_peak", "backward_end", "step_peak", "step_end")


def _arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", required=True, help="folder of the records")
    parser.add_argument("--cases", default=os.path.join(HERE, "cases/fsdp1.json"))
    parser.add_argument("--predictions", default=os.path.join(HERE, "predictions/fsdp1.json"))
    parser.add_argument("--seconds", type=float, default=450, help="start no case after this many seconds")
    parser.add_argument("--case-seconds", type=float, default=120, help="end a case that takes longer")
    return parser.parse_args()


def _run(case, folder, limit):
    """Its record, or None: what went wrong is in NAME.log."""
    name = case["name"]
    record = os.path.join(folder, name + ".json")
    if os.path.exists(record):
        return
    alone, lines = os.path.join(folder, name + ".case"), os.path.join(folder, name + ".jsonl")
    with open(alone, "w", encoding="utf-8") as file:
        json.dump([case], file)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
               str(world_of(case["job"])), os.path.join(HERE, "loops", "run_fsdp1.py"), alone, "--output", lines]
    with open(os.path.join(folder, name + ".log"), "w", encoding="utf-8") as log:
        try:
            subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, timeout=limit, cwd=HERE, check=False)
        except subprocess.TimeoutExpired:
            log.write(f"ended after {limit} s\n")
    if os.path.exists(lines):
        with open(lines, encoding="utf-8") as file:
            content = json.loads(file.readlines()[-1])
        if "error" not in content:
            with open(record, "w", encoding="utf-8") as file:
                json.dump(content, file, indent=1)
    for left in (alone, lines, lines + ".progress"):
        if os.path.exists(left):
            os.remove(left)


def _mib(value):
    return f"{value / 2**20:9.1f}"


def _show(case, folder, predictions):
    path = os.path.join(folder, case["name"] + ".json")
    if not os.path.exists(path):
        print(f"{case['name']}: no record; see its .log")
        return
    with open(path, encoding="utf-8") as file:
        measured = json.load(file)["measured"]
    predicted = predictions[case["name"]]
    print(case["name"])
    for figure in FIGURES:
        ours, theirs = predicted["phases"][figure], measured["phases"][figure]
        print(f"  {figure:14} predicted {_mib(ours)} measured {_mib(theirs)} MiB {100 * (ours - theirs) / theirs:+7.2f} %")
    for figure in ("allocated_peak", "reserved"):
        ours, theirs = predicted[figure], measured[figure]
        print(f"  {figure:14} predicted {_mib(ours)} measured {_mib(theirs)} MiB {100 * (ours - theirs) / theirs:+7.2f} %")
    print(f"  step           predicted {predicted['step_seconds']:9.4f} measured {measured['step_seconds']:9.4f} s")


def main():
    options = _arguments()
    os.makedirs(options.output, exist_ok=True)
    cases = load_cases(options.cases)
    with open(options.predictions, encoding="utf-8") as file:
        predictions = json.load(file)
    begin = time.time()
    for case in cases:
        if time.time() - begin > options.seconds:
            break
        _run(case, options.output, options.case_seconds)
        print(f"{time.time() - begin:6.0f} s {case['name']}", flush=True)
    for case in cases:
        _show(case, options.output, predictions)


if __name__ == "__main__":
    main()
