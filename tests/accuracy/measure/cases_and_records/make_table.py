"""Prints the training records of split.json as Markdown tables, one per framework, MiB: docs/evidence/records.md."""
import glob
import json
import os

HERE = os.path.dirname(os.path.abspath(__file__))
MEASUREMENTS = os.path.join(HERE, *[".."] * 4, "data", "measurements")
PHASES = ("model", "forward_peak", "forward_end", "backward_peak", "backward_end", "step_peak", "step_end")
HEADER = ("record", "model", "fwd peak", "fwd end", "bwd peak", "bwd end", "step peak", "step end", "reserved",
          "device", "step s")


def _row(record):
    measured = record["measured"]
    sizes = [measured["phases"][phase] for phase in PHASES] + [measured["reserved"], measured["device"]]
    prefix = f"h200-{record['job']['cluster'].split('x')[0]}x-{record['job']['framework']['name']}-"
    name = record["name"].removeprefix(prefix)
    if record["job"]["framework"]["name"] == "deepspeed":
        name = record["job"]["cluster"].split("x")[0] + "x " + name
    cells = [name] + [f"{size / 2**20:.0f}" for size in sizes] + [f"{measured['step_seconds']:.3f}"]
    return "| " + " | ".join(cells) + " |"


def main():
    groups = {}
    with open(os.path.join(MEASUREMENTS, "split.json"), encoding="utf-8") as file:
        split = json.load(file)
    for name in sorted(split["fit"] + split["held_out"], key=lambda name: name + ".json"):
        found = glob.glob(os.path.join(MEASUREMENTS, "training", "*", name + ".json"))
        if not found:
            continue
        with open(found[0], encoding="utf-8") as file:
            record = json.load(file)
        groups.setdefault(record["job"]["framework"]["name"], []).append(record)
    for framework in ("single", "ddp", "fsdp2", "deepspeed"):
        print(f"\n### {framework}: {len(groups[framework])} records\n")
        print("| " + " | ".join(HEADER) + " |")
        print("|" + " --- |" * len(HEADER))
        for record in groups[framework]:
            print(_row(record))


if __name__ == "__main__":
    main()
