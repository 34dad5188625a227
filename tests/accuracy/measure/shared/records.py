"""Measurement records (shardplan.record/1): one JSON object a run, appended to a JSON-lines file as runs finish."""
import json
import os

from jobs import data_ranks

# 1: run_deepspeed.py looked at memory in every gradient's hook (stages 1 and 2). 2: without `host_samples`. 3: with one
# before the first step too, which had autograd's thread multiply before Trainer's first backward pass.
PROGRAM_VERSION = "4"


def make_record(case, program, environment, counts, ranks, timing):
    """`ranks`: every rank's phases and peaks; `measured` repeats the rank with the largest peak."""
    job = case["job"]
    worst = max(ranks, key=lambda rank: rank["allocated_peak"])
    return {
        "schema": "shardplan.record/1",
        "name": case["name"],
        "job": job,
        "producer": {
            "program": f"tests/accuracy/measure/{program}",
            "version": PROGRAM_VERSION,
            "commit": os.environ.get("SHARDPLAN_COMMIT"),
        },
        "environment": environment,
        "measured": {
            **counts,
            "rank": worst["rank"],
            "phases": worst["phases"],
            "allocated_peak": worst["allocated_peak"],
            "reserved": worst["reserved"],
            "device": worst["device"],
            **_speed(job["workload"], timing, data_ranks(job, len(ranks))),
        },
        "ranks": ranks,
        **{name: timing[name] for name in ("steps", "host_steps", "losses", "answers", "reserved_after") if name in timing},
    }


def _speed(work, timing, world):
    """Seconds of a training step and its tokens, or of the phases of inference."""
    if work["kind"] == "inference":
        return timing
    speed = {"step_seconds": timing["step_seconds"]}
    if work["kind"] == "train":
        tokens = work["micro_batch"] * work["sequence_length"] * work["gradient_accumulation"] * world
        speed["tokens_per_second"] = tokens / timing["step_seconds"]
    return speed


def append_line(path, value):
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(value) + "\n")
        file.flush()
        os.fsync(file.fileno())
