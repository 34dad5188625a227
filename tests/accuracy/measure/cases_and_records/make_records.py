"""Turns the runs' JSON lines into one record file each, and writes the split into fit and held-out records.

The side a record falls on depends on the case lists alone: within a framework (and DeepSpeed version) the names are
sorted, and every second one is held out, whatever was measured. A record file that exists is left as it is.
"""
import argparse
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

from jobs import load_cases

HERE = os.path.dirname(os.path.abspath(__file__))
MEASUREMENTS = os.path.join(HERE, *[".."] * 4, "data", "measurements")
RULE = ("within one framework (and DeepSpeed version), names in alphabetical order: first to fit, second held out, "
        "third to fit, and so on; decided from the case lists before anything was measured")

# The lists of the first measurements, over which the rule was applied. No constant of PyTorch's process is fitted to a
# later one; a list that is added here would move names from one side to the other.
SPLIT_LISTS = ("ddp", "deepspeed_1gpu", "deepspeed_2gpu", "deepspeed_2gpu_newer", "fsdp2", "inference", "preference",
               "single")

# What records call a GPU, and the catalogue's name that case lists use.
GPUS = {"H100": "H100-SXM5-80GB", "H200": "H200-SXM-141GB"}

# The folder of each kind of work; a framework has one in it.
FOLDERS = {"train": "training", "inference": "inference", "rlhf": "rlhf"}


def _group(job):
    framework = job["framework"]
    return " ".join((framework["name"], framework.get("version", ""), job["workload"]["kind"]))


def _path(record):
    job = record["job"]
    return os.path.join(MEASUREMENTS, FOLDERS[job["workload"]["kind"]], job["framework"]["name"],
                        record["name"] + ".json")


def split():
    groups = {}
    for name in SPLIT_LISTS:
        for case in load_cases(os.path.join(HERE, "..", "cases", name + ".json")):
            groups.setdefault(_group(case["job"]), []).append(case)
    ordered = [sorted(cases, key=lambda case: case["name"]) for cases in groups.values()]
    return {"schema": "shardplan.split/1", "rule": RULE,
            "fit": _measured(case for cases in ordered for case in cases[0::2]),
            "held_out": _measured(case for cases in ordered for case in cases[1::2])}


def _measured(cases):
    """Cases marked `later` ran when the fits stood: they are on neither side."""
    return sorted(case["name"] for case in cases if not case.get("later") and os.path.exists(_path(case)))


def write_split():
    with open(os.path.join(MEASUREMENTS, "split.json"), "w", encoding="utf-8") as file:
        json.dump(split(), file, indent=1)
        file.write("\n")


def with_gpus_that_ran(record):
    """Whoever lends machines may give other GPUs than a case asks for: a record's job names those that ran, its name
    those that were asked for."""
    ran = [name for name in GPUS if name in record["environment"]["gpu"]]
    asked = json.dumps(record["job"]["cluster"])
    if not ran or ran[0] in asked:
        return record
    for name in GPUS:
        asked = asked.replace(GPUS[name], GPUS[ran[0]])
    return {**record, "job": {**record["job"], "cluster": json.loads(asked)}}


def with_idle_experts(record):
    """Of experts without a capacity the run alone knows how many had no rows; its record's job says so."""
    idle = record["measured"].get("idle_experts", 0)
    if idle == 0:
        return record
    job = record["job"]
    return {**record, "job": {**job, "framework": {**job["framework"], "idle_experts": idle}}}


def write_records(lines_path):
    """Failed runs are reported, not written."""
    with open(lines_path, encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    for record in records:
        if "error" in record:
            print(f"failed: {record['name']}: {record['error']}")
            continue
        record = with_idle_experts(with_gpus_that_ran(record))
        path = _path(record)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.exists(path):
            print(f"kept as it is: {record['name']}")
            continue
        with open(path, "w", encoding="utf-8") as file:
            json.dump(record, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("lines", nargs="*", help="JSON-lines files the measuring programs wrote")
    options = parser.parse_args()
    os.makedirs(MEASUREMENTS, exist_ok=True)
    for name in options.lines:
        write_records(name)
    write_split()
