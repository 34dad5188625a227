"""Runs shardplan-validate over a list of cases, one process a case, and keeps its records."""
import argparse
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

import host_probe
from jobs import load_cases

def storage_rates(program, folder, known={}):
    """What the folder's disk reads and writes with the requests of a run, as a cluster says it; once a folder."""
    if folder not in known:
        done = subprocess.run([program, "storage", folder, "--chunk", "1048576", "--depth", "32", "--seconds", "1",
                               "--format", "cluster"], capture_output=True, text=True, check=True)
        known[folder] = json.loads(done.stdout)["nvme"]
    return known[folder]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("program", help="shardplan-validate")
    parser.add_argument("cases", help="case list")
    parser.add_argument("--output", required=True, help="one file of all records, a line each")
    parser.add_argument("--seconds", type=float, default=1e9, help="start no case after this many seconds")
    parser.add_argument("--case-seconds", type=float, default=150, help="end a case that takes longer")
    parser.add_argument("--two-nodes", action="store_true", help="ranks in two network namespaces (two_nodes.py)")
    options = parser.parse_args()
    two_nodes = os.path.join(os.path.dirname(os.path.abspath(__file__)), "two_nodes.py")
    deadline = time.time() + options.seconds
    for case in load_cases(options.cases):
        if time.time() > deadline:
            break
        for path in ("job.json", "record.json"):
            if os.path.exists(path):
                os.remove(path)
        with open("job.json", "w", encoding="utf-8") as file:
            json.dump(case["job"], file)
        launcher = []
        if options.two_nodes:
            cluster = case["job"]["cluster"]
            launcher = [sys.executable, two_nodes, "--gpus", str(cluster["nodes"] * cluster["gpus_per_node"]), "--"]
        folder = case["job"].get("run", {}).get("nvme", {}).get("path")
        nvme = storage_rates(options.program, folder) if folder else None
        started = time.time()
        try:
            done = subprocess.run([*launcher, options.program, "job.json", "--record", "record.json", "--name", case["name"],
                                   "--quiet", *(["--time-nvme"] if folder else [])],
                                  capture_output=True, text=True, check=False, timeout=options.case_seconds)
        except subprocess.TimeoutExpired:
            print(case["name"], f"took more than {options.case_seconds:.0f} s", flush=True)
            continue
        if done.returncode != 0 or not os.path.exists("record.json"):
            print(case["name"], "exit", done.returncode, done.stderr[-400:], flush=True)
            continue
        with open("record.json", encoding="utf-8") as file:
            record = json.load(file)
        record["environment"]["machine"] = host_probe.machine()
        if nvme:
            record["environment"]["nvme"] = nvme
            print("of the disk's own rate:", record["measured"]["host"]["nvme"]["of_own_rate"], flush=True)
        with open(options.output, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        times = record["measured"].get("on_a_shared_gpu", record["measured"])
        print(case["name"], f"step {times['step_seconds']:.4f}", f"tokens/s {times['tokens_per_second']:.0f}",
              f"({time.time() - started:.1f} s)", flush=True)
