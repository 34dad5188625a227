"""Steps of DeepSpeed and of FSDP2 on more ranks than there are GPUs: the first rank's memory, in a fake world.

The programs are those that run on real ranks (run_deepspeed.py, run_fsdp2.py); see fake_world.py for what is fake.
Every case has a process of its own.
"""
import argparse
import os
import subprocess
import sys

import torch

from environment import environment
from fake_world import join_fake_world
from jobs import load_cases, world_of
from phases import clean, warm_libraries
from records import append_line, make_record

TIMES = ("step_seconds", "tokens_per_second", "device")


def measure(case):
    job, world = case["job"], world_of(case["job"])
    join_fake_world(0, world)
    device = torch.device("cuda:0")
    warm_libraries(device)
    version = None
    if job["framework"]["name"] == "deepspeed":
        import deepspeed
        import run_deepspeed as program

        deepspeed.init_distributed("nccl")
        version = deepspeed.__version__
    else:
        import run_fsdp2 as program
    clean()
    counts, rank, timing = program.measure(case, device, True)
    record = make_record(case, os.path.basename(program.__file__), environment(version), counts,
                         [{"rank": 0, **rank}], timing)
    for name in TIMES:  # nothing was sent, and there are no communicators
        record["measured"].pop(name)
    del record["ranks"][0]["device"]
    return {**record, "fake_world": True, "steps": [], "losses": []}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cases")
    parser.add_argument("--output", required=True)
    parser.add_argument("--case", help="measure this one alone, here")
    options = parser.parse_args()
    cases = load_cases(options.cases)
    if options.case is None:
        for case in cases:
            subprocess.run([sys.executable, os.path.abspath(__file__), options.cases, "--output", options.output,
                            "--case", case["name"]], check=False)
        return
    [chosen] = [case for case in cases if case["name"] == options.case]
    record = measure(chosen)
    append_line(options.output, record)
    m = record["measured"]
    shown = " ".join(f"{name}={value / 2**20:.1f}" for name, value in m["phases"].items())
    print(f"{chosen['name']} {shown} reserved={m['reserved'] / 2**20:.0f}", flush=True)
    os._exit(0)  # nothing waits for a fake world


if __name__ == "__main__":
    main()
