"""What shardplan predicts for the jobs of a case list, as a file to commit before they are measured.

    python cases_and_records/predict.py PROGRAM cases/fsdp1.json > predictions/fsdp1.json

With `--machine probe.json` (`shardplan probe -o probe.json`) for the machine that will run them, just before.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

from jobs import load_cases


def predict(program, job, machine=None):
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(job, file)
        file.flush()
        beside = ["--machine", machine] if machine else []
        answer = subprocess.run([program, "estimate", file.name, "--format", "json", *beside], capture_output=True, check=False)
    if not answer.stdout:
        return {"refused": answer.stderr.decode().split(": ", 2)[-1].strip()}
    estimate = json.loads(answer.stdout)
    peak, host = estimate["gpu"]["peak"], estimate["host"]
    on_host = {"host": {"pinned": host["pinned_bytes_per_node"],
                        "pageable": host["bytes_per_node"] - host["pinned_bytes_per_node"]}}
    if estimate["nvme"]["bytes_per_node"] > 0:
        on_host["host"]["nvme"] = estimate["nvme"]["bytes_per_node"]
    served = {"serving": estimate["serving"]} if "serving" in estimate else {}
    return {**served,
            "phases": estimate["gpu"]["phases"],
            "allocated_peak": peak["allocated"]["point"],
            "reserved": peak["reserved"]["point"],
            "reserved_upper": peak["reserved"]["upper"],
            "device": peak["device"]["point"],
            "step_seconds": estimate["time"]["step_seconds"],
            **(on_host if host["bytes_per_node"] > 0 else {})}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("cases", help="a case list")
    parser.add_argument("--machine", help="what `shardplan probe` found there")
    options = parser.parse_args()
    print(json.dumps({case["name"]: predict(options.program, case["job"], options.machine) for case in load_cases(options.cases)}, indent=1))
