"""What DeepSpeed's step takes of the host for each element of an optimizer that is offloaded, by threads: gradients scaled
in place, CPUAdam's update, masters cast to 16 bits (stage_1_and_2.py and stage3.py, step). Needs DeepSpeed and a compiler;
no GPU.

    python host_costs/time_host_update.py --threads 1 2 4 8 16 --output update.json
"""
import argparse
import json
import os
import subprocess
import sys
import time

ELEMENTS = 200_000_000
TURNS = 3


def _seconds(work):
    """The median turn."""
    taken = []
    for _ in range(TURNS):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return sorted(taken)[TURNS // 2]


def _measure():
    import torch
    from deepspeed.ops.adam import DeepSpeedCPUAdam

    master = torch.nn.Parameter(torch.zeros(ELEMENTS))
    master.grad = torch.full_like(master, 1e-3)
    narrow = torch.empty(ELEMENTS, dtype=torch.bfloat16)
    optimizer = DeepSpeedCPUAdam([master], lr=1e-5)
    optimizer.step()
    return {"threads": torch.get_num_threads(),
            "scale": _seconds(lambda: master.grad.mul_(1.0)) / ELEMENTS,
            "update": _seconds(optimizer.step) / ELEMENTS,
            "cast": _seconds(lambda: narrow.copy_(master.data)) / ELEMENTS}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", nargs="+", type=int, default=[1])
    parser.add_argument("--output")
    parser.add_argument("--one", action="store_true", help="with the threads that OMP_NUM_THREADS says")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(_measure()))
        return
    rows = []
    for threads in options.threads:  # a process each: OpenMP reads their number once
        told = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        ran = subprocess.run([sys.executable, __file__, "--one"], env=told, capture_output=True, text=True, check=True)
        rows.append(json.loads(ran.stdout.splitlines()[-1]))
        print(rows[-1], flush=True)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump({"seconds_for_each_element": rows}, file, indent=1)


if __name__ == "__main__":
    main()
