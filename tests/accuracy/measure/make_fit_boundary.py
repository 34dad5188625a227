"""Asks shardplan for the largest micro-batch of each job, before anything runs: cases for run_fit_boundary.py."""
import argparse
import json
import os
import subprocess
import tempfile

# Name, GPU whose memory is left free, model, precision, checkpointing, sequence length.
JOBS = [
    ("gpt2-8gb", "8GB", "gpt2", "bf16-master", "none", 1024),
    ("gpt2-medium-16gb-fp16", "V100-SXM2-16GB", "gpt2-medium", "fp16-master", "none", 1024),
    ("gpt2-xl-40gb", "A100-SXM4-40GB", "gpt2-xl", "bf16-master", "none", 1024),
    ("qwen3-0.6b-24gb-selective", "RTX4090-24GB", "qwen3-0.6b", "bf16-master", "selective", 2048),
    ("llama-3.2-1b-24gb", "RTX4090-24GB", "llama-3.2-1b", "bf16-master", "none", 1024),
    ("llama-3.2-1b-16gb-pure-full", "V100-SXM2-16GB", "llama-3.2-1b", "bf16-pure", "full", 4096),
    ("llama-3.2-3b-40gb-pure", "A100-SXM4-40GB", "llama-3.2-3b", "bf16-pure", "none", 2048),
    ("llama-2-7b-80gb-pure", "H100-80GB", "llama-2-7b", "bf16-pure", "none", 2048),
    ("llama-2-7b-80gb-pure-full", "A100-SXM4-80GB", "llama-2-7b", "bf16-pure", "full", 4096),
    ("tinyllama-1.1b-32gb-fp32", "V100-SXM2-32GB", "tinyllama-1.1b", "fp32", "none", 512),
]


def job_of(gpu, model, precision, checkpointing, sequence):
    return {
        "schema": "shardplan.job/1", "model": model, "cluster": "1x" + gpu,
        "framework": {"name": "native", "zero_stage": 0},
        "workload": {"kind": "train", "method": "full", "micro_batch": 1, "sequence_length": sequence,
                     "gradient_accumulation": 1},
        "precision": precision, "optimizer": {"name": "adamw", "lr": 1e-5}, "attention": "sdpa",
        "checkpointing": checkpointing, "gradient_clipping": 1.0,
    }


def ask(program, *arguments):
    done = subprocess.run([program, *arguments, "--format", "json"], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 4):
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("program", help="shardplan")
    options = parser.parse_args()
    cases = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "job.json")
        for name, *parts in JOBS:
            job = job_of(*parts)
            with open(path, "w", encoding="utf-8") as file:
                json.dump(job, file)
            largest = ask(options.program, "max", path, "--of", "micro_batch")["value"]
            estimate = ask(options.program, "estimate", path, "--micro-batch", str(max(largest, 1)))
            after = ask(options.program, "estimate", path, "--micro-batch", str(largest + 1))
            cases.append({"name": name, "job": job, "largest_micro_batch": largest,
                          "usable_bytes": estimate["gpu"]["usable_bytes"],
                          "predicted_device_bytes": [estimate["gpu"]["peak"]["device"], after["gpu"]["peak"]["device"]]})
    print(json.dumps(cases, indent=1))
