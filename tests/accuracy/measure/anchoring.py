"""What one measured step says about the others: a study over the records.

    python anchoring.py PROGRAM RECORD...      PROGRAM: shardplan; RECORD: files of shardplan.record/1

For every two records a and b of a group: the error of b's predicted step as it is; when it is multiplied by a's
measured over predicted (ratio); and when a's error is spread over host, links, PCIe, the CPU's optimizer and the
GPU by how much each of them changes a's step, with priors for how far they may be off, and b's step is
corrected by what that gives (parts). Groups: the same framework, GPU kind, trainer and cluster; the same and the
same network. Prints the means in percent.
"""

import collections
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

FACTOR = 1.1
NOISE = 0.1
# How far a part may be off from one machine to another, as the standard deviation of a logarithm.
PRIORS = {"host": 0.1, "links": 0.1, "pcie": 0.1, "adam": 0.3, "gpu": 0.03}


def slower(calibration: dict, part: str) -> dict:
    """The calibration with one part FACTOR times as slow; as it is for "none"."""
    time = dict(calibration["time"])
    for name in time:
        if part == "adam" and "adam" in name:  # elements per second
            time[name] /= FACTOR
        elif part == "host" and name.startswith("host.") and name.endswith(("seconds", "launch_wait")):
            time[name] *= 1 if "per_second" in name else FACTOR
    if part == "links":
        time["links.node"] /= FACTOR
        time["links.seconds"] *= FACTOR
    if part == "pcie":
        time["links.host"] /= FACTOR
    return {**calibration, "time": time}


def step_seconds(program: str, job: dict, calibration: str) -> float:
    """0 for a job that cannot be estimated."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(job, file)
        file.flush()
        command = [program, "estimate", file.name, "--calibration", calibration, "--any-gpu", "--format", "json"]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    return json.loads(run.stdout)["time"]["step_seconds"] if run.returncode in (0, 4) else 0.0


def read(program: str, path: str, calibrations: dict[str, str]) -> dict | None:
    with open(path, encoding="utf-8") as file:
        record = json.load(file)
    seconds = record.get("measured", {}).get("step_seconds")
    if not seconds or record["job"]["workload"].get("kind", "train") != "train":
        return None
    steps = {part: step_seconds(program, record["job"], file) for part, file in calibrations.items()}
    if min(steps.values()) <= 0:
        return None
    shares = {part: math.log(steps[part] / steps["none"]) / math.log(FACTOR) for part in PRIORS if part != "gpu"}
    job, shares["gpu"] = record["job"], max(0.0, 1 - sum(shares.values()))
    where = (job["framework"].get("name") if isinstance(job["framework"], dict) else job["framework"],
             record["environment"].get("gpu"), job.get("trainer"), str(job["cluster"]))
    return {"error": math.log(seconds / steps["none"]), "shares": shares, "machine": where,
            "network": (*where, json.dumps(job["model"], sort_keys=True))}


def by_parts(a: dict, b: dict) -> float:
    """The logarithm by which b's step is corrected: the mean of its parts after a was seen."""
    spread = sum((a["shares"][p] * PRIORS[p]) ** 2 for p in PRIORS) + NOISE**2
    return sum(b["shares"][p] * PRIORS[p] ** 2 * a["shares"][p] for p in PRIORS) / spread * a["error"]


def main() -> None:
    program, paths = sys.argv[1], sys.argv[2:]
    source = os.path.join(os.path.dirname(__file__), "../../../data/calibration/h200-pytorch-2.11.json")
    with open(source, encoding="utf-8") as file:
        built_in = json.load(file)
    with tempfile.TemporaryDirectory() as folder:
        calibrations = {}
        for part in ("none", *(p for p in PRIORS if p != "gpu")):
            calibrations[part] = os.path.join(folder, part + ".json")
            with open(calibrations[part], "w", encoding="utf-8") as file:
                json.dump(slower(built_in, part), file)
        runs = [r for path in paths if (r := read(program, path, calibrations))]
    for group in ("machine", "network"):
        groups = collections.defaultdict(list)
        for run in runs:
            groups[run[group]].append(run)
        pairs = [(a, b) for g in groups.values() for a in g for b in g if a is not b]
        corrections = {"as it is": lambda a, b: 0.0, "ratio": lambda a, b: a["error"], "parts": by_parts}
        means = {name: 100 * statistics.mean(abs(math.exp(by(a, b) - b["error"]) - 1) for a, b in pairs)
                 for name, by in corrections.items()}
        print(f"same {group}: {len(pairs)} pairs,", ", ".join(f"{name} {mean:.1f} %" for name, mean in means.items()))


if __name__ == "__main__":
    main()
