"""How much longer kernels that move bytes take in a step than repeated, from steps under the profiler.

    python in_step.py shardplan ../../../../data/measurements/rates/h200-steps.json

Of each step that the GPU decides: the GPU's seconds, and for each kernel what the profiler does not count between it
and the next, less what shardplan has for products, attention, losses and lists of tensors; over what it has for all other
kernels as they are repeated. The median is `memory.in_step` of the calibration.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

CALIBRATION = os.path.join(os.path.dirname(os.path.abspath(__file__)), *[".."] * 4, "data", "calibration",
                           "h200-pytorch-2.11.json")
OTHERS = ("product", "attention", "attention_backward", "log_softmax_backward", "multi_tensor")
UNSEEN = 1.3e-6  # one_by_one.py: seconds a kernel over the profiler's, the median of its blocks
GPU_DECIDES = 0.6  # kernels' share of the step


def _predicted(program, job):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "job.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(job, file)
        answer = subprocess.run([program, "simulate", path, "--format", "json"], capture_output=True, text=True, check=True)
    return json.loads(answer.stdout)["ranks"][0]["work"]


def _factor(step, work, rates):
    others = sum(row["seconds"] for row in work if row["what"] in OTHERS)
    moving = [row for row in work if row["what"] not in OTHERS]
    gaps = rates["kernels.gap"] * sum(row["count"] for row in moving)
    repeated = (sum(row["seconds"] for row in moving) - gaps) / rates["memory.in_step"]
    return (step["gpu_seconds"] + UNSEEN * step["gpu_kernels"] - others - gaps) / repeated


if __name__ == "__main__":
    with open(CALIBRATION, encoding="utf-8") as file:
        rates = json.load(file)["time"]
    with open(sys.argv[2], encoding="utf-8") as file:
        steps = [step for step in json.load(file)["steps"] if step["gpu_seconds"] > GPU_DECIDES * step["step_seconds"]]
    factors = []
    for step in steps:
        factors.append(_factor(step, _predicted(sys.argv[1], step["job"]), rates))
        print(f"{step['name']:60s} {factors[-1]:.2f}")
    print(f"median of {len(factors)}: {statistics.median(factors):.3f}")
