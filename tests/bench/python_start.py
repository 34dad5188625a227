"""How long a fresh process takes from `import shardplan` to its first answer, in milliseconds.

    python tests/bench/python_start.py [RUNS]

The interpreter's own start is not in it. Prints the fastest run and the median.
"""

import statistics
import subprocess
import sys

CODE = (
    "import time; start = time.perf_counter(); import shardplan;"
    "shardplan.fit('llama-2-7b', '4xA100-40GB'); print(time.perf_counter() - start)"
)


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    seconds = [
        float(subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True).stdout)
        for _ in range(runs)
    ]
    print(f"fastest {min(seconds) * 1e3:.0f} ms, median {statistics.median(seconds) * 1e3:.0f} ms, {runs} runs")


if __name__ == "__main__":
    main()
