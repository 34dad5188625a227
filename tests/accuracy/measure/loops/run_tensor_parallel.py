"""Training steps of transformers' tensor parallelism (tp_plan) and expert parallelism, without data parallelism.

`parallel.tensor` ranks work on the same samples; with `parallel.expert` equal to it the model's expert-parallel plan is
used instead, which divides the experts and replicates everything else.
"""
import os
import sys

import torch
import torch.distributed as dist
import transformers
from torch.distributed.tensor import DTensor
from transformers.distributed import DistributedConfig

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

from jobs import autocast_dtype, parameter_dtype
from models import make_batch, make_config, parameter_counts
from optimizers import make_optimizer
from phases import clean
from ranks import bind_device, line_up
from runner import run_cases
from steps import run_steps


def build_sharded_model(job, tensor):
    """Random weights through from_pretrained, as a checkpoint would be loaded: every rank makes its own parts."""
    torch.manual_seed(0)
    config = make_config(job)
    cls = transformers.MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    expert = job["parallel"].get("expert", 1)
    if expert not in (1, tensor):
        raise ValueError(f"experts are divided over all {tensor} ranks or none, the job says {expert}")
    plan = DistributedConfig(tp_plan="auto", tp_size=tensor, enable_expert_parallel=expert > 1)
    model = cls.from_pretrained(None, config=config, state_dict={}, distributed_config=plan,
                                dtype=getattr(torch, parameter_dtype(job)), attn_implementation=job["attention"])
    model.train()
    if job["checkpointing"] == "full":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return config, model


def by_kind(parameters):
    """DTensors and plain tensors apart: PyTorch's operations over lists take no mixture."""
    kinds = [[p for p in parameters if isinstance(p, DTensor)], [p for p in parameters if not isinstance(p, DTensor)]]
    return [kind for kind in kinds if kind]


class TensorParallelTrainer:
    def __init__(self, job, model):
        self.job = job
        self.model = model
        self.accumulation = job["workload"]["gradient_accumulation"]
        self.groups = by_kind([p for p in model.parameters() if p.requires_grad])
        self.optimizer = make_optimizer(job, [{"params": group} for group in self.groups])
        self.autocast = autocast_dtype(job)

    def forward(self, batch, last):
        dtype = getattr(torch, self.autocast or "bfloat16")
        with torch.autocast("cuda", dtype=dtype, enabled=self.autocast is not None):
            return self.model(**batch).loss

    def backward(self, loss, last):
        (loss / self.accumulation if self.accumulation > 1 else loss).backward()

    def step(self):
        if self.job["gradient_clipping"]:
            for group in self.groups:
                torch.nn.utils.clip_grad_norm_(group, self.job["gradient_clipping"])
        self.optimizer.step()

    def zero_grad(self):
        self.optimizer.zero_grad(set_to_none=True)


def parameter_layout(model):
    """How many tensors, and elements of this rank, are divided and whole."""
    layout = {"divided": [0, 0], "whole": [0, 0]}
    for parameter in model.parameters():
        divided = isinstance(parameter, DTensor)
        entry = layout["divided" if divided else "whole"]
        entry[0] += 1
        entry[1] += (parameter.to_local() if divided else parameter).numel()
    return {kind: {"tensors": entry[0], "elements": entry[1]} for kind, entry in layout.items()}


def measure(case, device, with_account):
    job = case["job"]
    config, model = build_sharded_model(job, job["parallel"]["tensor"])
    batch = make_batch(job, config, device)
    for tensor in batch.values():
        dist.broadcast(tensor, 0)
    trainer = TensorParallelTrainer(job, model)
    clean()
    rank, timing = run_steps(trainer, batch, job, line_up, with_account)
    rank["layout"] = parameter_layout(model)
    return parameter_counts(model), rank, timing


if __name__ == "__main__":
    this_rank, world_size, this_device = bind_device()
    dist.init_process_group("nccl", device_id=this_device)
    run_cases("run_tensor_parallel.py", measure, this_device, this_rank, world_size)
