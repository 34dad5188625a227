"""Training steps of PyTorch's DistributedDataParallel, with or without its ZeroRedundancyOptimizer."""
from contextlib import nullcontext

import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

from jobs import autocast_dtype
from models import build_model, make_batch, parameter_counts
from optimizers import make_optimizer, optimizer_arguments
from phases import clean
from ranks import bind_device, line_up
from runner import run_cases
from steps import PlainUpdate, run_steps


class DdpTrainer(PlainUpdate):
    def __init__(self, job, model, device):
        framework = job["framework"]
        self.job = job
        self.accumulation = job["workload"]["gradient_accumulation"]
        self.model = DistributedDataParallel(model, device_ids=[device.index],
                                             gradient_as_bucket_view=framework.get("gradient_as_bucket_view", False))
        self.parameters = [p for p in self.model.parameters() if p.requires_grad]
        if framework.get("zero_redundancy_optimizer"):
            cls, arguments = optimizer_arguments(job)
            self.optimizer = ZeroRedundancyOptimizer(self.parameters, cls, **arguments)
        else:
            self.optimizer = make_optimizer(job, self.parameters)
        self.autocast = getattr(torch, autocast_dtype(job) or "bfloat16")

    def _sync(self, last):
        return nullcontext() if last else self.model.no_sync()

    def forward(self, batch, last):
        enabled = autocast_dtype(self.job) is not None
        with self._sync(last), torch.autocast("cuda", dtype=self.autocast, enabled=enabled):
            return self.model(**batch).loss

    def backward(self, loss, last):
        with self._sync(last):
            (loss / self.accumulation if self.accumulation > 1 else loss).backward()


def measure(case, device, with_account):
    job = case["job"]
    config, model = build_model(job, device)
    counts = parameter_counts(model)
    trainer = DdpTrainer(job, model, device)
    batch = make_batch(job, config, device)
    clean()
    rank, timing = run_steps(trainer, batch, job, line_up, with_account)
    return counts, rank, timing


if __name__ == "__main__":
    this_rank, world_size, this_device = bind_device()
    dist.init_process_group("nccl", device_id=this_device)
    run_cases("run_ddp.py", measure, this_device, this_rank, world_size)
