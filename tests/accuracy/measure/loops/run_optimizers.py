"""Optimizers beside what shardplan predicts of them, on one GPU, each case a process of its own.

    python loops/run_optimizers.py --output optimizers

Needs PyTorch, transformers and bitsandbytes. Cases: cases/optimizers_1gpu.json; predictions, made before any was
run: cases/optimizers_1gpu.predicted.json (`python loops/run_optimizers.py --predict SHARDPLAN` writes it again). A case
that fails is a line of the table and no more.
"""
import argparse
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CASES = os.path.join(HERE, "cases", "optimizers_1gpu.json")
PREDICTED = os.path.join(HERE, "cases", "optimizers_1gpu.predicted.json")
MIB = 2.0**20


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def predict(shardplan):
    """Bytes that stay between steps and at the peak, of every case."""
    predicted = {}
    for case in load(CASES):
        job = dict(case["job"], model=os.path.join(HERE, "cases", case["job"]["model"]))
        run = subprocess.run([shardplan, "estimate", "/dev/stdin", "--format", "json"], input=json.dumps(job),
                             capture_output=True, text=True)
        if run.returncode not in (0, 4):
            raise SystemExit(f"{case['name']}: {run.stderr}")
        answer = json.loads(run.stdout)
        states = next(c for c in answer["gpu"]["breakdown"] if c["category"] == "optimizer_states")
        predicted[case["name"]] = {
            "states": states["resident_bytes"],
            "source": states["source"],
            "phases": answer["gpu"]["phases"],
            "allocated_peak": answer["gpu"]["peak"]["allocated"]["point"],
            "step_seconds": answer["time"]["step_seconds"],
        }
    with open(PREDICTED, "w", encoding="utf-8") as file:
        json.dump(predicted, file, indent=1)
        file.write("\n")


def measure(folder, seconds):
    """One process a case, so that none finds what another left behind."""
    records = os.path.join(folder, "optimizers.jsonl")
    deadline = time.time() + seconds
    for case in load(CASES):
        if time.time() > deadline:
            break
        log = os.path.join(folder, case["name"] + ".log")
        with open(log, "w", encoding="utf-8") as file:
            subprocess.run([sys.executable, os.path.join(HERE, "loops", "run_single.py"), CASES, "--output", records, "--most", "1"],
                           stdout=file, stderr=subprocess.STDOUT, timeout=max(30, deadline - time.time()), check=False)
    if not os.path.exists(records):
        return {}
    with open(records, encoding="utf-8") as file:
        return {r["name"]: r for r in map(json.loads, file)}


def table(records, predicted):
    """States: what the last step leaves beyond the built model."""
    print(f"{'case':58} {'states MiB':>19} {'peak MiB':>19} {'step ms':>15}   predicted, measured")
    for name, p in predicted.items():
        r = records.get(name)
        if r is None:
            print(f"{name.removeprefix('h100-1x-single-'):58} not measured: see its log")
            continue
        m = r["measured"]
        states = m["phases"]["step_end"] - m["phases"]["model"]
        cells = [f"{p['states'] / MIB:9.1f} {states / MIB:9.1f}",
                 f"{p['allocated_peak'] / MIB:9.1f} {m['allocated_peak'] / MIB:9.1f}",
                 f"{1e3 * p['step_seconds']:7.1f} {1e3 * m['step_seconds']:7.1f}"]
        print(f"{name.removeprefix('h100-1x-single-'):58} " + " ".join(cells))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", help="folder for records and logs")
    parser.add_argument("--seconds", type=float, default=270, help="start no case after this many")
    parser.add_argument("--predict", metavar="SHARDPLAN", help="write the predictions with this program, and end")
    options = parser.parse_args()
    if options.predict:
        predict(options.predict)
        return
    os.makedirs(options.output, exist_ok=True)
    table(measure(options.output, options.seconds), load(PREDICTED))


if __name__ == "__main__":
    main()
