"""Turns the runs' JSON lines into one record file each, and writes the split into fit and held-out records.

The side a record falls on depends on the case lists alone: within a framework (and DeepSpeed version) the names are
sorted, and every second one is held out, whatever was measured. A record file that exists is left as it is.
"""
import argparse
import glob
import json
import os

from jobs import load_cases, world_of

HERE = os.path.dirname(os.path.abspath(__file__))
MEASUREMENTS = os.path.join(HERE, "..", "..", "..", "data", "measurements")
RULE = ("within one framework (and DeepSpeed version), data-parallel jobs and others apart, names in alphabetical order: first to fit, second held out, "
        "third to fit, and so on; decided from the case lists before anything was measured")


# What no constant is fitted to: a framework, a case list.
FIXED = {"megatron", "fake_world.json", "deepspeed_sharding_4gpu.json", "fsdp2_hybrid_4gpu.json",
         "deepspeed_parallel_4gpu.json", "tensor_parallel_4gpu.json", "native_4gpu.json"}

# Kinds of work whose records lie in folders of their own.
FOLDERS = {"train": "", "inference": "inference", "rlhf": "preference"}


def _group(job):
    framework = job["framework"]
    divided = "divided" if "parallel" in job else ""
    return " ".join((framework["name"], framework.get("version", ""), job["workload"]["kind"], divided))


def _folder(record):
    """Records of jobs that divide the model lie in a folder of their own, like those of other kinds of work, those of
    ranks in a fake world, those of four GPUs, which were all predicted before they ran, and those of Megatron, of which
    some were."""
    job = record["job"]
    kind = job["workload"]["kind"]
    if world_of(job) == 4 and not record.get("fake_world") and "held_out" not in record:
        return "four_gpus"
    if job["framework"]["name"] == "megatron":
        return "megatron/held_out" if record.get("held_out") else "megatron"
    if record.get("fake_world"):
        return "many_ranks"
    if "parallel" in job:
        return "inference_divided" if kind == "inference" else "parallel"
    return FOLDERS[kind]


def _path(record):
    return os.path.join(MEASUREMENTS, _folder(record), record["name"] + ".json")


def split():
    groups = {}
    for path in sorted(glob.glob(os.path.join(HERE, "cases", "*.json"))):
        for case in load_cases(path):
            if FIXED.isdisjoint({case["job"]["framework"]["name"], os.path.basename(path)}):
                groups.setdefault(_group(case["job"]), []).append(case)
    ordered = [sorted(cases, key=lambda case: case["name"]) for cases in groups.values()]
    return {"schema": "shardplan.split/1", "rule": RULE,
            "fit": _measured(case for cases in ordered for case in cases[0::2]),
            "held_out": _measured(case for cases in ordered for case in cases[1::2])}


def _measured(cases):
    return sorted(case["name"] for case in cases if os.path.exists(_path(case)))


def write_split():
    with open(os.path.join(MEASUREMENTS, "split.json"), "w", encoding="utf-8") as file:
        json.dump(split(), file, indent=1)
        file.write("\n")


def write_records(lines_path):
    """Failed runs are reported, not written."""
    with open(lines_path, encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    for record in records:
        if "error" in record:
            print(f"failed: {record['name']}: {record['error']}")
            continue
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
    os.makedirs(MEASUREMENTS, exist_ok=True)
    for name in parser.parse_args().lines:
        write_records(name)
    write_split()
