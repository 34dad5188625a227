"""Training steps of DeepSpeed's engine: phases around engine(...), engine.backward and engine.step.

The model is built whole on each rank's GPU in its dtype and then given to deepspeed.initialize; with gradient
accumulation the phases are those of the micro-batch at the boundary.
"""
import deepspeed
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

from deepspeed_categories import categories, watch_buckets
from deepspeed_config import ds_config
from host_memory import host_delta, host_now, trim
from models import build_model, make_batch, parameter_counts
from optimizers import make_optimizer
from phases import clean
from ranks import bind_device, line_up
from runner import run_cases
from steps import run_steps

PLAIN_LINEAR = torch.nn.functional.linear


class DeepSpeedTrainer:
    def __init__(self, engine):
        self.engine = engine

    def forward(self, batch, last):
        return self.engine(**batch).loss

    def backward(self, loss, last):
        self.engine.backward(loss)
        if not last:
            self.engine.step()  # no more than a count before the boundary

    def step(self):
        self.engine.step()

    def zero_grad(self):
        """engine.step has done it."""


def _initialize(job, model):
    config = ds_config(job)
    trainable = [p for p in model.parameters() if p.requires_grad]
    client = None if "optimizer" in config else make_optimizer(job, trainable)
    # Expert parallelism replaces the experts' parameters: the engine asks the model for the new ones.
    parameters = None if "expert_parallel" in config else trainable
    engine, *_ = deepspeed.initialize(model=model, model_parameters=parameters, optimizer=client, config=config)
    return engine


def measure(case, device, with_account):
    job = case["job"]
    # ZeRO-3 replaces this function for the whole process and leaves it so; each case starts from PyTorch's own.
    torch.nn.functional.linear = PLAIN_LINEAR
    if job["framework"]["version"] != deepspeed.__version__:
        raise ValueError(f"the job is for DeepSpeed {job['framework']['version']}, this is {deepspeed.__version__}")
    trim()
    host_start = host_now()
    config, model = build_model(job, device)
    counts = parameter_counts(model)
    clean()
    built = torch.cuda.memory_allocated()
    engine = _initialize(job, model)
    initialize = {"built": built, "peak": torch.cuda.max_memory_allocated(), "end": torch.cuda.memory_allocated()}
    host_ready = host_now()
    buckets = []
    watch_buckets(engine.optimizer, buckets)
    batch = make_batch(job, config, device)
    clean()
    rank, timing = run_steps(DeepSpeedTrainer(engine), batch, job, line_up, with_account)
    rank["initialize"] = initialize
    rank["classes"] = {"optimizer": type(engine.optimizer).__name__,
                       "basic_optimizer": type(getattr(engine.optimizer, "optimizer", engine.optimizer)).__name__}
    rank["skipped_steps"] = engine.skipped_steps
    rank["categories"] = categories(engine)
    rank["lazy_bucket_bytes"] = max(buckets, default=0)
    rank["host"] = {"after_initialize": host_delta(host_start, host_ready),
                    "after_steps": host_delta(host_start, host_now())}
    engine.destroy()
    return counts, rank, timing


if __name__ == "__main__":
    this_rank, world_size, this_device = bind_device()
    deepspeed.init_distributed("nccl")
    run_cases("run_deepspeed.py", measure, this_device, this_rank, world_size,
              deepspeed=deepspeed.__version__)
