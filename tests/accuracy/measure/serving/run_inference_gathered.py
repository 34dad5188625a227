"""Prefill and decode under ZeRO-Inference: DeepSpeed's stage 3 without an optimizer gathers the weights in every pass.

    torchrun --standalone --nproc-per-node 1 serving/run_inference_gathered.py cases/inference_gathered.json --output x.jsonl

The model is built whole on the GPU in its dtype and then given to deepspeed.initialize; transformers' forward runs on
the engine's module, one token at a time, as in run_inference.py.
"""
import deepspeed
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

from models import build_model, parameter_counts
from phases import clean
from ranks import bind_device
from run_inference import Generation, run_rounds
from runner import run_cases


def measure(case, device, with_account):
    job = case["job"]
    config, model = build_model(job, device)
    counts = parameter_counts(model)
    model.eval()
    # DeepSpeed asks for a batch of training, which nothing here uses.
    options = {**job["framework"]["ds_config"], "train_micro_batch_size_per_gpu": 1, "steps_per_print": 10**9}
    engine, *_ = deepspeed.initialize(model=model, config=options)
    del model
    clean()
    generation = Generation(job, config, engine.module, device)
    rank = run_rounds(generation, with_account)
    work, seconds = job["workload"], generation.seconds
    timing = {"prefill_seconds": seconds["prefill"], "decode_seconds": seconds["decode"],
              "decode_tokens_per_second": work["batch"] * work["new_tokens"] / seconds["decode"]}
    engine.destroy()
    return counts, rank, timing


if __name__ == "__main__":
    this_rank, world_size, this_device = bind_device()
    deepspeed.init_distributed("nccl")
    run_cases("run_inference_gathered.py", measure, this_device, this_rank, world_size, deepspeed=deepspeed.__version__)
