"""Steps of HF Trainer that nobody chose and nothing compiles, drawn by a seed: what PyTorch allocates beside what is
predicted, phase by phase. No GPU.

    python kept_tensors/sweep_steps.py PROGRAM FOLDER --seed 5 --cases 100 [--kinds eager fused quantized] [--least 0.5]

The kinds of draw_cases.py; models of data/models with a few layers, all else as it is. FOLDER gets `cases.json` and
`rows.jsonl`, which step_without_gpu.py writes: a case that has a row is compared again, not run again. Listed are cases
that differ by `--least` % of their peak, or would with all of the model's layers if what differs were in the layers."""
import argparse
import json
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

from draw_cases import KINDS, _belongs, _draw, case_words, catalogue_by_name
from predict import predict
from sweep import LAYERS, with_layers

HERE = os.path.dirname(os.path.abspath(__file__))
CLUSTER = "1xH200"
MOST_BYTES = 120 * 2**30
# Workspaces come after the model.
PHASES = ("forward_peak", "forward_end", "backward_peak", "backward_end", "step_peak", "step_end")


def layers_of(config):
    return next((config[key] for key in LAYERS if key in config), 12)


def few_layers(rng, policy):
    if "count" in policy:
        return policy["count"] + rng.randint(0, 2)
    return rng.choice([4, 5, 6, 7] if policy.get("policy") == "blocks" else [3, 4])


def with_few_layers(rng, job):
    """A third micro-batch is like the second."""
    count = few_layers(rng, job["checkpointing"] if isinstance(job["checkpointing"], dict) else {})
    work = {**job["workload"], "gradient_accumulation": min(job["workload"]["gradient_accumulation"], 2)}
    words = {key: job["model"][key] for key in ("vocab_size",) if key in job["model"]}
    return {**job, "workload": work, "model": {**with_layers(job["model"], min(count, layers_of(job["model"]))), **words}}


def draw(options):
    """[(name, the job, the model with all of its layers)]"""
    rng, catalogue, cases = random.Random(options.seed), catalogue_by_name(), []
    while len(cases) < options.cases:
        kind = rng.choice(options.kinds)
        model, whole = _draw(rng, kind, catalogue, CLUSTER)
        if not _belongs(kind, model, whole):
            continue
        job = with_few_layers(rng, whole)
        said = predict(options.program, job)
        if "refused" in said or said["device"] > MOST_BYTES:
            continue
        words = case_words(f"{model}-{layers_of(job['model'])}-layers", job)
        cases.append({"name": f"{len(cases)}-{words}", "job": job, "model": whole["model"]})
    return cases


def run(cases, folder):
    """Rows by name."""
    path, rows = os.path.join(folder, "cases.json"), os.path.join(folder, "rows.jsonl")

    def known():
        if not os.path.exists(rows):
            return {}
        with open(rows, encoding="utf-8") as file:
            return {row["name"]: row for row in map(json.loads, file)}

    left = [case for case in cases if case["name"] not in known()]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(left, file)
    if left:
        with open(os.path.join(folder, "log.txt"), "a", encoding="utf-8") as log:
            subprocess.run([sys.executable, os.path.join(HERE, "step_without_gpu.py"), path, rows], stdout=log, stderr=log,
                           check=False)
    return known()


def compare(program, case, row):
    """(the largest share of the peak, the same with all layers, MiB by phase)"""
    said = predict(program, case["job"])["phases"]
    off = {phase: said[phase] - row["phases"][phase] for phase in PHASES}
    most = max(off.values(), key=abs)
    whole = predict(program, {**case["job"], "model": case["model"]})["phases"]
    layers = layers_of(case["model"]) / layers_of(case["job"]["model"])
    in_mib = {phase: round(size / 2**20, 1) for phase, size in off.items()}
    return most / max(row["phases"].values()), most * layers / max(whole.values()), in_mib


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--kinds", nargs="+", default=["eager", "fused", "quantized"], choices=KINDS)
    parser.add_argument("--least", type=float, default=0.5, help="per cent")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    cases = draw(options)
    rows = run(cases, options.folder)
    counts = {"not run": 0, "near": 0, "off": 0}
    for case in cases:
        row = rows.get(case["name"], {"error": "left no row"})
        if "error" in row:
            counts["not run"] += 1
            print(case["name"], row["error"])
            continue
        share, with_all, off = compare(options.program, case, row)
        far = 100 * max(abs(share), abs(with_all)) >= options.least
        counts["off" if far else "near"] += 1
        if far:
            phases = (f"{phase} {off[phase]:+}" for phase in PHASES)
            print(f"{case['name']} {100 * share:+.2f} % ({100 * with_all:+.2f} %)", *phases, flush=True)
    print(counts)


if __name__ == "__main__":
    main()
