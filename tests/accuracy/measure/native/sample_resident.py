"""Runs shardplan-validate over a list of cases and samples what of its resident memory is what: file by file, and
anonymous mappings. Reading them takes the program's time, so that a record's times are kept apart.

    python native/sample_resident.py shardplan-validate cases/native_resident.json --output resident.jsonl --samples samples.jsonl
"""
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

TIMES = ("step_seconds", "tokens_per_second")


def mappings(pid):
    """(name, size, resident) of each, in KiB."""
    name, size, resident = None, 0, 0
    with open(f"/proc/{pid}/smaps", encoding="utf-8", errors="replace") as file:
        for line in file:
            first = line.split(None, 1)[0]
            if first == "Size:":
                size = int(line.split()[1])
            elif first == "Rss:":
                resident = int(line.split()[1])
            elif not first.endswith(":"):
                if name is not None:
                    yield name, size, resident
                parts = line.split(None, 5)
                name = parts[5].strip() if len(parts) > 5 else ""
    if name is not None:
        yield name, size, resident


def sample(pid):
    files, anonymous = {}, []
    for name, size, resident in mappings(pid):
        if resident == 0:
            continue
        if name.startswith("/") and not name.startswith("/dev/zero"):
            key = os.path.basename(name)
            files[key] = files.get(key, 0) + resident
        else:
            anonymous.append((name, size, resident))
    return {"files": files, "anonymous": sorted(anonymous, key=lambda m: -m[2])[:30],
            "anonymous_resident": sum(m[2] for m in anonymous)}


def run(program, name):
    command = [program, "job.json", "--record", "record.json", "--name", name, "--quiet"]
    samples, began = [], time.time()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            try:
                samples.append({"at": time.time() - began, **sample(process.pid)})
            except OSError:
                break
            time.sleep(0.1)
    return samples


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("program", help="shardplan-validate")
    parser.add_argument("cases", help="case list")
    parser.add_argument("--output", required=True, help="one file of all records, a line each")
    parser.add_argument("--samples", required=True, help="one of all samples, a line a run")
    options = parser.parse_args()
    for case in load_cases(options.cases):
        with open("job.json", "w", encoding="utf-8") as job:
            json.dump(case["job"], job)
        if os.path.exists("record.json"):
            os.remove("record.json")
        taken = run(options.program, case["name"])
        if not os.path.exists("record.json"):
            print(case["name"], "left no record", flush=True)
            continue
        with open("record.json", encoding="utf-8") as file:
            record = json.load(file)
        record["environment"]["machine"] = host_probe.machine()
        times = record["measured"].get("on_a_shared_gpu", record["measured"])
        record["measured"]["beside_a_sampler"] = {key: times.pop(key) for key in TIMES}
        with open(options.output, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        with open(options.samples, "a", encoding="utf-8") as file:
            file.write(json.dumps({"name": case["name"], "samples": taken}) + "\n")
        print(case["name"], record["measured"]["host"]["resident_growth"], flush=True)
