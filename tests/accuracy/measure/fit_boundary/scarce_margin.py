"""How much more memory runs needed than the least with which the simulated allocator gets by, where it must give cached
segments back: the `scarce` margins of a calibration.

    python fit_boundary/scarce_margin.py PROGRAM ../../../data/measurements/fit_boundary/h100-trainer.json ...

A run that died needed more than there was, one that ended did not: `most` is the largest ratio of a run that died, `least`
the smallest of one that ran. Runs with room for all that the allocator would cache say nothing, and are left out.
"""
import argparse
import json

from make_fit_boundary import ask, with_usable

PLENTY = 139 << 30
STEP = 16 << 20


def peak(program, case, micro_batch, usable):
    return ask(program, "estimate", with_usable(case["job"], usable), "--micro-batch", str(micro_batch))["gpu"]["peak"]


def least_usable(program, case, micro_batch, low, high):
    """By bisection: the least usable memory that the estimate keeps within."""
    while high - low > STEP:
        middle = (low + high) // 2
        if peak(program, case, micro_batch, middle)["device"]["point"] <= middle:
            high = middle
        else:
            low = middle
    return high


def ratio(program, case, outcome):
    """The memory that there was over the least that is predicted to do; None where nothing was scarce."""
    plenty = peak(program, case, outcome["micro_batch"], PLENTY)
    process = plenty["device"]["point"] - plenty["reserved"]["point"]
    if case["usable_bytes"] >= plenty["device"]["point"]:
        return None
    least = least_usable(program, case, outcome["micro_batch"], plenty["allocated"]["point"] + process,
                         plenty["device"]["point"])
    return (case["usable_bytes"] - process) / (least - process)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", help="shardplan")
    parser.add_argument("records", nargs="+", help="files of data/measurements/fit_boundary")
    options = parser.parse_args()
    ran, died = [], []
    for path in options.records:
        with open(path, encoding="utf-8") as file:
            cases = json.load(file)["cases"]
        for case in cases:
            for outcome in case["outcomes"]:
                if outcome["outcome"] not in ("ran", "out of memory"):
                    continue
                found = ratio(options.program, case, outcome)
                if found is None:
                    continue
                (ran if outcome["outcome"] == "ran" else died).append(found)
                print(f"{case['name']:46} {outcome['micro_batch']:4} {outcome['outcome']:14} {found:.3f}")
    print(f"{len(ran) + len(died)} runs: least {min(ran):.3f}, most {max(died):.3f}")


if __name__ == "__main__":
    main()
