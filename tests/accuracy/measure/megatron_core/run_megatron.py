"""Memory of training steps of Megatron Core, one rank of any layout on one GPU.

The world is a fake one (fake_world.py): the memory is that of the real step, without that of communicators. Every case
and rank has a process of its own.
"""
import argparse
import json
import os
import subprocess
import sys
import traceback

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

from account import record_account
from environment import environment
from fake_world import join_fake_world
from jobs import load_cases, world_of
from megatron_step import make_step, prepare_libraries
from records import append_line

STEPS = 3


def measure(case, rank, with_account):
    job = case["job"]
    join_fake_world(rank, world_of(job))
    libraries = prepare_libraries()
    step, built = make_step(job)
    for _ in range(STEPS):
        step()
    torch.cuda.synchronize()
    phases = {"model": built, **step.recorder.values}
    result = {"rank": rank, "phases": phases, "allocated_peak": step.recorder.whole_peak,
              "reserved": torch.cuda.memory_reserved(), "parameters": step.parameters()}
    if with_account:
        result["account"] = record_account(step, step.recorder)
    return {"environment": environment(**libraries), "result": result}


def make_record(case, answers):
    ranks = [answer["result"] for answer in answers]
    worst = max(ranks, key=lambda rank: rank["allocated_peak"])
    for rank in ranks:
        if rank is not worst:
            rank.pop("account", None)
    return {"schema": "shardplan.record/1", "name": case["name"], "job": case["job"],
            "producer": {"program": "tests/accuracy/measure/run_megatron.py", "version": "1",
                         "commit": os.environ.get("SHARDPLAN_COMMIT")},
            "environment": answers[0]["environment"], "held_out": case.get("held_out", False),
            "measured": {name: worst[name] for name in ("rank", "phases", "allocated_peak", "reserved")},
            "ranks": ranks}


def start(path, name, rank, account):
    command = [sys.executable, os.path.abspath(__file__), path, "--case", name, "--rank", str(rank)]
    return subprocess.Popen(command + ["--account"] * account, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process):
    """(the child's answer or None, its last words)"""
    out, err = process.communicate()
    lines = [line for line in out.splitlines() if line.startswith("{")]
    return (json.loads(lines[-1]) if process.returncode == 0 and lines else None), err[-1500:]


def run_all(options):
    for path in options.cases:
        cases = load_cases(path)
        for first in range(0, len(cases), options.at_once):
            group = cases[first:first + options.at_once]
            running = [(case, [start(path, case["name"], rank, options.account) for rank in case["ranks"]])
                       for case in group]
            for case, processes in running:
                answers = [finish(process) for process in processes]
                if any(answer is None for answer, _ in answers):
                    words = next(err for answer, err in answers if answer is None)
                    print(case["name"], "failed:", words, flush=True)
                    append_line(options.output, {"name": case["name"], "error": words[-600:]})
                    continue
                record = make_record(case, [answer for answer, _ in answers])
                append_line(options.output, record)
                m = record["measured"]
                shown = " ".join(f"{name}={value / 2**20:.1f}" for name, value in m["phases"].items())
                print(f"{case['name']} rank {m['rank']} {shown} peak={m['allocated_peak'] / 2**20:.1f} "
                      f"reserved={m['reserved'] / 2**20:.0f}", flush=True)


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="+", help="case lists; a case also names the ranks to measure, and says "
                        "whether it was predicted before it ran")
    parser.add_argument("--output", help="JSON-lines file to append records to")
    parser.add_argument("--account", action="store_true", help="also record what is alive at each phase's peak")
    parser.add_argument("--at-once", type=int, default=1, help="cases that run beside each other")
    parser.add_argument("--case", help="measure this one alone, here")
    parser.add_argument("--rank", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    options = arguments()
    if options.case is None:
        run_all(options)
    else:
        [chosen] = [case for case in load_cases(options.cases[0]) if case["name"] == options.case]
        try:
            print(json.dumps(measure(chosen, options.rank, options.account)), flush=True)
        except Exception:
            traceback.print_exc(limit=8)
            sys.exit(1)
        os._exit(0)  # nothing waits for a fake world
