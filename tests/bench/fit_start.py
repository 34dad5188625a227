"""How long `shardplan fit llama-2-7b 4xA100-40GB` takes as a process, in milliseconds.

    python tests/bench/fit_start.py [PROGRAM] [RUNS]     default: the release build's, 20

Prints the fastest run, the median, and the mean of the processor time: on a machine with other work the
last is what the program itself took, on all of its threads together.
"""

import os
import statistics
import subprocess
import sys
import time

QUESTION = ("fit", "llama-2-7b", "4xA100-40GB")


def once(program: str) -> tuple[float, float]:
    """Wall seconds and processor seconds of one run. Raises CalledProcessError when it gives no answer."""
    before, start = os.times(), time.perf_counter()
    run = subprocess.run([program, *QUESTION], stdout=subprocess.DEVNULL, check=False)
    wall, after = time.perf_counter() - start, os.times()
    if run.returncode not in (0, 4):  # 4: it does not fit
        raise subprocess.CalledProcessError(run.returncode, QUESTION)
    return wall, sum(after[2:4]) - sum(before[2:4])


def main() -> None:
    program = sys.argv[1] if len(sys.argv) > 1 else "build/release/planner/shardplan"
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    walls, processors = zip(*(once(program) for _ in range(runs)))
    print(
        f"fastest {min(walls) * 1e3:.1f} ms, median {statistics.median(walls) * 1e3:.1f} ms, "
        f"processor {statistics.mean(processors) * 1e3:.1f} ms in the mean, {runs} runs"
    )


if __name__ == "__main__":
    main()
