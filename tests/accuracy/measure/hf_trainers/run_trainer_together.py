"""Cases of HF Trainer on one GPU that compile side by side and are timed one by one.

    python hf_trainers/run_trainer_together.py cases/drawn_left_1gpu.json --output left.jsonl --seconds 285 --only NAME NAME

Compiling takes minutes of one core, and on a machine with two GPUs two of these programs may run (CUDA_VISIBLE_DEVICES).
What Inductor times beside others, such as products with longer rows, may come out otherwise than alone. As many cases
as the GPU has memory for, by their predictions, go through their warm-up at once and then wait; each has its timed
steps alone and ends. What it held on the device is what the driver says is used with it, less what is used without it.
Cases for which there was no memory follow, again as many as have it.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

import gate
import run_trainer
from jobs import load_cases
from records import append_line

GIB = 2**30


def _arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", help="a case list, whose predictions there are")
    parser.add_argument("--output", required=True, help="JSON-lines file to append records to")
    parser.add_argument("--seconds", type=float, default=1e9, help="end after this many seconds")
    parser.add_argument("--compile-seconds", type=float, default=200, help="whoever compiles longer is given up")
    parser.add_argument("--memory-gib", type=float, default=74, help="what cases may hold at once")
    parser.add_argument("--only", nargs="+", required=True, help="these cases, in this order")
    return parser.parse_args()


def _used():
    free, total = torch.cuda.mem_get_info()
    return total - free


def _used_by_nobody():
    """What is used when nobody runs: a process that was ended before still has its memory for a moment."""
    used = _used_now()
    for _ in range(20):
        time.sleep(1)
        before, used = used, _used_now()
        if used == before:
            break
    return used


def _used_now():
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    asked = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", first]
    return int(subprocess.run(asked, capture_output=True, text=True, check=True).stdout) * 2**20


class Case:
    """One case's process: imports, then (open) its model and warm-up, then (turn) its timed steps."""

    def __init__(self, path, case, folder):
        self.name, self.folder = case["name"], folder
        self.turn = os.path.join(folder, self.name)
        self.record = self.turn + ".jsonl"
        environment = {**os.environ, **case.get("env", {}), gate.TURN: self.turn, "TORCHINDUCTOR_COMPILE_THREADS": "2"}
        self.started = gate.Gated(run_trainer._command(case, path, self.record, run_trainer.__file__), run_trainer.HERE,
                                  environment)

    def is_waiting(self):
        return os.path.exists(self.turn + ".waiting")

    def has_ended(self):
        return self.started.process.poll() is not None

    def give_up(self, why, output):
        self.started.end()
        lines = run_trainer._last_lines(self.started.words())
        print(f"{self.name}: {why}", *lines, sep="\n  ", flush=True)
        append_line(output, {"name": self.name, "error": " | ".join([why, *lines[-3:]])[-600:]})

    def measure(self, output, base, seconds):
        with open(self.turn, "w", encoding="utf-8"):
            pass
        try:
            self.started.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return self.give_up(f"timed steps took more than {seconds:.0f} s", output)
        if not os.path.exists(self.record):
            return self.give_up("left no record", output)
        time.sleep(1)
        after = _used()
        with open(self.record, encoding="utf-8") as file:
            record = json.loads(file.read())
        for figures in (record["measured"], *record["ranks"]):
            figures["device"] += base - after
        append_line(output, record)


def _waves(cases, needs, memory):
    """Cases that have the memory together, each in the first wave with room for it."""
    waves = []
    for case in cases:
        found = next((wave for wave in waves if sum(needs[one.name] for one in wave) + needs[case.name] <= memory), None)
        if found is None:
            waves.append([case])
        else:
            found.append(case)
    return waves


def main():
    options = _arguments()
    begin = time.time()
    base = _used_by_nobody()
    torch.cuda.mem_get_info()
    found = {case["name"]: case for case in load_cases(options.cases)}
    with open(os.path.join(run_trainer.HERE, "predictions", os.path.basename(options.cases)), encoding="utf-8") as file:
        predicted = json.load(file)
    folder = tempfile.mkdtemp()
    path = os.path.abspath(options.cases)
    cases = [Case(path, found[name], folder) for name in options.only]
    left = lambda: options.seconds - (time.time() - begin)
    needs = {case.name: predicted[case.name]["device"] / GIB + 1 for case in cases}
    for wave in _waves(cases, needs, options.memory_gib):
        if left() < 20:
            break
        for case in wave:
            case.started.open()
        until = min(options.compile_seconds, left() - 10)
        end = time.time() + until
        while time.time() < end and not all(case.is_waiting() or case.has_ended() for case in wave):
            time.sleep(0.2)
        print(f"{time.time() - begin:5.0f} s {sum(case.is_waiting() for case in wave)} of {len(wave)} wait", flush=True)
        for case in [case for case in wave if not case.is_waiting()]:
            case.give_up("failed" if case.has_ended() else f"compiled for {until:.0f} s", options.output)
        for case in [case for case in wave if case.is_waiting()]:
            case.measure(options.output, base, max(left(), 5))
            print(f"{time.time() - begin:5.0f} s {case.name}", flush=True)
    records = run_trainer._records(options.output)
    for case in cases:
        case.started.end()
        case.started.close()
        run_trainer._show(found[case.name], records.get(case.name), predicted.get(case.name))


if __name__ == "__main__":
    main()
