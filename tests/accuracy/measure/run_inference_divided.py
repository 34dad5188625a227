"""Prefill and decode with a KV cache under transformers' tensor-parallel plans: the first rank's memory, alone on a GPU
in a fake world (fake_world.py). Every case has a process of its own, all run beside each other."""
import argparse
import json
import os
import subprocess
import sys

import torch

from account import record_account
from environment import environment
from fake_world import join_fake_world
from jobs import load_cases, world_of
from models import parameter_counts
from phases import clean
from records import append_line, make_record
from run_inference import ROUNDS, Generation


def measure(case, with_account):
    from run_tensor_parallel import build_sharded_model

    job = case["job"]
    join_fake_world(0, world_of(job))
    device = torch.device("cuda:0")
    config, model = build_sharded_model(job, job["parallel"]["tensor"])
    model.eval()
    generation = Generation(job, config, model, device)
    clean()
    model_bytes = torch.cuda.memory_allocated()
    for _ in range(ROUNDS):
        generation.run()
    phases = {"model": model_bytes, **generation.recorder.values}
    rank = {"rank": 0, "phases": phases, "allocated_peak": max(phases["prefill_peak"], phases["decode_peak"]),
            "reserved": torch.cuda.memory_reserved(), "device": 0}
    if with_account:
        rank["account"] = record_account(generation.run, generation.recorder)
    record = make_record(case, "run_inference_divided.py", environment(), parameter_counts(model), [rank], {})
    del record["measured"]["device"], rank["device"]  # no communicators: the device holds less than a real rank's
    return record


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cases")
    parser.add_argument("--output", required=True)
    parser.add_argument("--account", action="store_true", help="also record what is alive at each phase's peak")
    parser.add_argument("--case", help="measure this one alone, here")
    options = parser.parse_args()
    cases = load_cases(options.cases)
    if options.case is None:
        command = [sys.executable, os.path.abspath(__file__), options.cases, "--output", options.output]
        command += ["--account"] * options.account
        running = [subprocess.Popen([*command, "--case", case["name"]]) for case in cases]
        for process in running:
            process.wait()
        return
    [chosen] = [case for case in cases if case["name"] == options.case]
    record = measure(chosen, options.account)
    append_line(options.output, record)
    shown = " ".join(f"{name}={value / 2**20:.1f}" for name, value in record["measured"]["phases"].items())
    print(f"{chosen['name']} {shown} reserved={record['measured']['reserved'] / 2**20:.0f}", flush=True)
    os._exit(0)  # nothing waits for a fake world


if __name__ == "__main__":
    main()
