"""Training steps of PyTorch's FullyShardedDataParallel (FSDP1): every block and the root are flat parameters."""
import contextlib
import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import BackwardPrefetch, CPUOffload, FullyShardedDataParallel, MixedPrecision, ShardingStrategy
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

from jobs import autocast_dtype
from models import build_model, make_batch, parameter_counts
from optimizers import make_optimizer
from phases import clean
from ranks import bind_device, line_up
from run_fsdp2 import blocks_of
from runner import run_cases
from steps import run_steps

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
PREFETCH = {"pre": BackwardPrefetch.BACKWARD_PRE, "post": BackwardPrefetch.BACKWARD_POST, "none": None}


def _mixed_precision(job):
    compute = autocast_dtype(job)
    framework = job["framework"]
    if compute is None:
        return None
    compute = getattr(torch, compute)
    reduce_dtype = framework.get("reduce_dtype")
    return MixedPrecision(param_dtype=compute, reduce_dtype=DTYPES[reduce_dtype] if reduce_dtype else compute,
                          keep_low_precision_grads=framework.get("keep_low_precision_grads", False))


def wrap(job, model, device):
    framework = job["framework"]
    strategy = ShardingStrategy[framework.get("sharding_strategy", "full_shard").upper()]
    options = {}
    if strategy == ShardingStrategy.HYBRID_SHARD:
        size = framework["hybrid_shard_size"]
        options["device_mesh"] = init_device_mesh("cuda", (dist.get_world_size() // size, size),
                                                  mesh_dim_names=("replicate", "shard"))
    return FullyShardedDataParallel(
        model,
        sharding_strategy=strategy,
        cpu_offload=CPUOffload(offload_params=framework.get("cpu_offload", False)),
        auto_wrap_policy=ModuleWrapPolicy({type(blocks_of(model)[0])}),
        backward_prefetch=PREFETCH[framework.get("backward_prefetch", "pre")],
        mixed_precision=_mixed_precision(job),
        device_id=device,
        forward_prefetch=framework.get("forward_prefetch", False),
        limit_all_gathers=framework.get("limit_all_gathers", True),
        use_orig_params=framework.get("use_orig_params", False),
        **options)


class Fsdp1Trainer:
    def __init__(self, job, model):
        self.job = job
        self.model = model
        self.optimizer = make_optimizer(job, list(model.parameters()))
        self.syncs = contextlib.ExitStack()

    def forward(self, batch, last):
        if not last and not self.job["framework"].get("sync_each_batch", True):
            self.syncs.enter_context(self.model.no_sync())
        return self.model(**batch).loss

    def backward(self, loss, last):
        loss.backward()
        self.syncs.close()

    def step(self):
        if self.job["gradient_clipping"]:
            self.model.clip_grad_norm_(self.job["gradient_clipping"])
        self.optimizer.step()

    def zero_grad(self):
        self.optimizer.zero_grad(set_to_none=True)


def measure(case, device, with_account):
    job = case["job"]
    config, model = build_model(job, device)
    counts = parameter_counts(model)
    model = wrap(job, model, device)
    trainer = Fsdp1Trainer(job, model)
    batch = make_batch(job, config, device)
    clean()
    rank, timing = run_steps(trainer, batch, job, line_up, with_account)
    return counts, rank, timing


if __name__ == "__main__":
    this_rank, world_size, this_device = bind_device()
    dist.init_process_group("nccl", device_id=this_device)
    run_cases("run_fsdp1.py", measure, this_device, this_rank, world_size)
