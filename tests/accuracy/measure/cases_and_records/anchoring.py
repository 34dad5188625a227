"""What one measured step says about the others: fits part_spread() of planner/questions/anchor.cpp.

    SHARDPLAN_ANCHOR_ROWS=rows.json build/dev/tests/accuracy/accuracy_test --gtest_filter='Anchoring.*'
    python cases_and_records/anchoring.py rows.json
    python cases_and_records/anchoring.py rows.json --draw    # halves our own groups anew: anchor_fit.json

rows.json has groups of runs by kind of job, machine and sitting. Those of anchor_fit.json are fitted to, the others
judge: our own by a checksum of their names, published ones every second by name as they were. The
logarithm of measured over predicted time of run r in group g is taken as

    sum over parts p of share(r, p) * (machine(g, p) + job(r, p)) + rest(r)

with machine, job and rest normally distributed around 0. Their standard deviations are those that make the pairs of
a group likeliest (a t distribution of 4 degrees: some runs are far off), each group with the same weight. Kernels and
the host differ otherwise on GPUs that the calibration was not fitted on, so they have deviations of their own there.

Prints the deviations, and the mean errors of pairs before and after these corrections: the anchor's ratio; the ratio
on the part that weighs most; the seconds that are missing, added to the host's; and by parts, as the program does.
"""

import collections
import json
import math
import pathlib
import statistics
import sys
import zlib

PARTS = ["kernels", "host", "links", "copies", "host_optimizer", "drives"]
NAMES = PARTS + ["kernels elsewhere", "host elsewhere"]
START = ([0.05, 0.2, 0.1, 0.1, 0.3, 0.3, 0.2, 0.2], [0.05, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.05], 0.03)
HALVES = pathlib.Path(__file__).parent / "anchor_fit.json"
FAR_OFF = 0.8  # a logarithm: runs beyond count as much
LEAST, MOST = 0.02, 1.0
MOST_DEVIATIONS = 3  # beyond them a run says no more of its machine
MOST_RUNS = 30  # of a group, for the fit


def places(run):
    """Of the parts of a run in the list of deviations."""
    return [0, 1, 2, 3, 4, 5] if run["fitted"] else [6, 7, 2, 3, 4, 5]


def apart(deviations):
    """Those between machines, those between jobs, and the rest."""
    return deviations[:len(NAMES)], deviations[len(NAMES):-1], deviations[-1]


def moments(a, b, machine, job, rest):
    """Variances of a and b, and their covariance."""
    at = places(a)
    own = [sum(s[p] ** 2 * (machine[i] ** 2 + job[i] ** 2) for p, i in enumerate(at)) + rest**2
           for s in (a["shares"], b["shares"])]
    return own[0], own[1], sum(a["shares"][p] * b["shares"][p] * machine[i] ** 2 for p, i in enumerate(at))


def likelihood(groups, deviations):
    machine, job, rest = apart(deviations)
    total = 0.0
    for runs in groups:
        pairs = [(a, b) for i, a in enumerate(runs[:MOST_RUNS]) for b in runs[:i]]
        for a, b in pairs:
            va, vb, both = moments(a, b, machine, job, rest)
            ea, eb = (max(-FAR_OFF, min(FAR_OFF, r["error"])) for r in (a, b))
            determinant = va * vb - both**2
            distance = (ea * ea * vb - 2 * ea * eb * both + eb * eb * va) / determinant
            total += (-0.5 * math.log(determinant) - 3 * math.log(1 + distance / 4)) / len(pairs)
    return total


def fit(groups):
    deviations = [*START[0], *START[1], START[2]]
    best, step = likelihood(groups, deviations), 1.6
    while step > 1.05:
        better = False
        for i in range(len(deviations)):
            for factor in (step, 1 / step):
                other = list(deviations)
                other[i] = min(MOST, max(LEAST, other[i] * factor))
                value = likelihood(groups, other)
                if value > best + 1e-6:
                    best, deviations, better = value, other, True
        if not better:
            step = math.sqrt(step)
    return [round(d, 2) for d in deviations]


def by_parts(deviations):
    def correction(a, b):
        va, _, both = moments(a, b, *apart(deviations))
        most = MOST_DEVIATIONS * math.sqrt(va)
        return both / va * max(-most, min(most, a["error"]))
    return correction


def by_largest_part(a, b):
    p = max(range(len(PARTS)), key=lambda part: a["shares"][part])
    return b["shares"][p] / max(0.2, a["shares"][p]) * a["error"]


def by_seconds(a, b):
    return math.log(max(0.2, 1 + (a["measured"] - a["predicted"]) / b["predicted"]))


def mean_errors(groups, correction):
    """Of all groups, of those that are predicted badly (beyond 15 %), and of the others: before, after."""
    rows = []
    for runs in groups:
        pairs = [(a, b) for a in runs for b in runs if a is not b]
        rows.append([statistics.mean(abs(math.exp(by(a, b) - b["error"]) - 1) for a, b in pairs)
                     for by in (lambda a, b: 0.0, correction)])
    kinds = [rows, [r for r in rows if r[0] > 0.15], [r for r in rows if r[0] <= 0.15]]
    return "  ".join(f"{100 * statistics.mean(r[0] for r in k):5.1f} -> {100 * statistics.mean(r[1] for r in k):5.1f}"
                     for k in kinds)


def draw(groups):
    """A rule that sees no error: half of the checksums, so that groups of later records fall to either half."""
    halves = json.loads(HALVES.read_text(encoding="utf-8"))
    halves["groups"] = sorted([g for g in halves["groups"] if g.startswith("published")] + [
        g for g in groups if not g.startswith("published") and zlib.crc32(g.encode()) % 2 == 0])
    HALVES.write_text(json.dumps(halves, indent=1) + "\n", encoding="utf-8")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        runs = json.load(file)["runs"]
    if "--draw" in sys.argv[2:]:
        draw({run["group"] for run in runs})
        return
    fitted_to = json.loads(HALVES.read_text(encoding="utf-8"))["groups"]
    halves = {False: collections.defaultdict(list), True: collections.defaultdict(list)}
    for run in runs:
        run["error"] = math.log(run["measured"] / run["predicted"])
        halves[run["group"] not in fitted_to][run["group"]].append(run)
    fitted, judging = (list(halves[judges].values()) for judges in (False, True))
    deviations = fit(fitted)
    for name, machine, job in zip(NAMES, *apart(deviations)[:2]):
        print(f"{name:18} between machines {machine:.2f}, between jobs {job:.2f}")
    print(f"{'rest':18} {deviations[-1]:.2f}")
    print("mean errors in % of all groups, of those beyond 15 %, of the others")
    for half, groups in (("fitted to", fitted), ("judging", judging)):
        for name, correction in {"ratio": lambda a, b: a["error"], "largest part": by_largest_part,
                                 "seconds": by_seconds, "parts": by_parts(deviations)}.items():
            print(f"{half:10} {len(groups):2} groups  {name:12} {mean_errors(groups, correction)}")


if __name__ == "__main__":
    main()
