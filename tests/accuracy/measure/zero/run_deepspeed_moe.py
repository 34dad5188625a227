"""Training steps of DeepSpeed's engine over DeepSpeed's own mixture-of-experts layers (deepspeed.moe.layer.MoE).

The job's model is a Mixtral; its sparse blocks are replaced by layers of as many experts of the same size, routed as
`framework.moe` says and divided over `parallel.expert` ranks.
"""
import deepspeed
import os
import sys

import torch
from deepspeed.moe.layer import MoE
from deepspeed.moe.utils import split_params_into_different_moe_groups_for_optimizer

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

from deepspeed_categories import categories
from deepspeed_config import ds_config
from jobs import parameter_dtype
from models import build_model, make_batch, parameter_counts
from phases import clean
from ranks import bind_device, line_up
from run_deepspeed import DeepSpeedTrainer
from runner import run_cases
from steps import run_steps


class GatedExpert(torch.nn.Module):
    def __init__(self, hidden, inner):
        super().__init__()
        self.gate_proj = torch.nn.Linear(hidden, inner, bias=False)
        self.up_proj = torch.nn.Linear(hidden, inner, bias=False)
        self.down_proj = torch.nn.Linear(inner, hidden, bias=False)

    def forward(self, x):
        return self.down_proj(torch.nn.functional.silu(self.gate_proj(x)) * self.up_proj(x))


class SparseBlock(torch.nn.Module):
    """The layer's output alone: the balancing loss and the counts are dropped."""

    def __init__(self, config, routing, expert_parallel):
        super().__init__()
        expert = GatedExpert(config.hidden_size, config.intermediate_size)
        self.moe = MoE(config.hidden_size, expert, num_experts=config.num_local_experts, ep_size=expert_parallel,
                       k=config.num_experts_per_tok, capacity_factor=routing["capacity_factor"],
                       min_capacity=routing.get("min_capacity", 4), drop_tokens=routing.get("drop_tokens", True))

    def forward(self, hidden_states):
        return self.moe(hidden_states)[0]


def replace_sparse_blocks(job, config, model, device):
    dtype = getattr(torch, parameter_dtype(job))
    for layer in model.model.layers:
        with torch.device(device):
            layer.mlp = SparseBlock(config, job["framework"]["moe"], job["parallel"]["expert"]).to(dtype)


def measure(case, device, with_account):
    job = case["job"]
    if job["framework"]["version"] != deepspeed.__version__:
        raise ValueError(f"the job is for DeepSpeed {job['framework']['version']}, this is {deepspeed.__version__}")
    config, model = build_model(job, device)
    replace_sparse_blocks(job, config, model, device)
    counts = parameter_counts(model)
    clean()
    groups = split_params_into_different_moe_groups_for_optimizer(
        {"params": list(model.parameters()), "name": "parameters"})
    engine, *_ = deepspeed.initialize(model=model, model_parameters=groups, config=ds_config(job))
    batch = make_batch(job, config, device)
    clean()
    rank, timing = run_steps(DeepSpeedTrainer(engine), batch, job, line_up, with_account)
    rank["classes"] = {"optimizer": type(engine.optimizer).__name__}
    rank["skipped_steps"] = engine.skipped_steps
    rank["categories"] = categories(engine)
    engine.destroy()
    return counts, rank, timing


if __name__ == "__main__":
    this_rank, world_size, this_device = bind_device()
    deepspeed.init_distributed("nccl")
    run_cases("run_deepspeed_moe.py", measure, this_device, this_rank, world_size,
              deepspeed=deepspeed.__version__)
