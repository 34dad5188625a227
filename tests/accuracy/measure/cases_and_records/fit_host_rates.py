"""Fits times of the host (host.hook.seconds, ...) to measured steps: the mean square of the logarithms of predicted over
measured is least. All are changed at once, since more of one can stand for less of another.

    python cases_and_records/fit_host_rates.py shardplan RECORD... --rates host.hook.seconds host.sharded.seconds [--judge RECORD...]

Prints the values, and the errors of the records that were fitted and of those that judge.
"""
import argparse
import itertools
import json
import math
import os
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BUILT_IN = os.path.join(HERE, *[".."] * 4, "data", "calibration", "h200-pytorch-2.11.json")
STEPS = (1.5, 1.2, 1.08, 1.03)  # ratios that are tried, up and down


def _load(paths):
    records = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            records.append(json.load(file))
    return records


class Program:
    def __init__(self, path, folder):
        self.path, self.folder = path, folder
        with open(BUILT_IN, encoding="utf-8") as file:
            self.calibration = json.load(file)

    def _write(self, name, value):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(value, file)
        return path

    def errors(self, records, rates):
        """Logarithms of predicted over measured; `rates`: by name, in the place of the built-in ones."""
        calibration = self._write("calibration.json", {**self.calibration, "time": {**self.calibration["time"], **rates}})
        logarithms = []
        for record in records:
            job = self._write("job.json", record["job"])
            asked = [self.path, "estimate", job, "--calibration", calibration, "--any-gpu", "--format", "json"]
            answer = json.loads(subprocess.run(asked, capture_output=True, check=False).stdout)
            logarithms.append(math.log(answer["time"]["step_seconds"] / record["measured"]["step_seconds"]))
        return logarithms


def _mean(logarithms):
    return sum(map(abs, logarithms)) / len(logarithms)


def _square(logarithms):
    return sum(x * x for x in logarithms) / len(logarithms)


def fit(program, records, names):
    rates = {name: program.calibration["time"][name] for name in names}
    best = _square(program.errors(records, rates))
    for ratio in STEPS:
        changed = True
        while changed:
            changed = False
            for powers in itertools.product((-1, 0, 1), repeat=len(names)):
                tried = {name: rates[name] * ratio**power for name, power in zip(names, powers)}
                error = _square(program.errors(records, tried))
                if error < best - 1e-7:
                    best, rates, changed = error, tried, True
    return rates


def _show(title, records, before, after):
    print(f"{title}: {len(records)} runs, mean {100 * _mean(before):.1f} -> {100 * _mean(after):.1f} %")
    for record, old, new in zip(records, before, after):
        print(f"  {record['name']} {100 * math.expm1(old):+.1f} -> {100 * math.expm1(new):+.1f} %")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", help="shardplan")
    parser.add_argument("records", nargs="+", help="measured steps to fit to")
    parser.add_argument("--rates", nargs="+", required=True, help="names as calibrations have them")
    parser.add_argument("--judge", nargs="*", default=[], help="measured steps that the fit does not see")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = Program(options.program, folder)
        records, judges = _load(options.records), _load(options.judge)
        rates = fit(program, records, options.rates)
        print(json.dumps(rates, indent=1))
        for title, those in (("fitted", records), ("judging", judges)):
            if those:
                _show(title, those, program.errors(those, {}), program.errors(those, rates))


if __name__ == "__main__":
    main()
