"""Training steps of Megatron Core among real ranks: memory with that of communicators, and time.

Start it once a case (`--most 1`): what Megatron Core keeps of a layout stays in the process.
"""
import os
import sys

import torch
import torch.distributed as dist

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

from account import record_account
from megatron_step import make_step, prepare_libraries
from phases import memory_now
from ranks import bind_device, line_up
from runner import run_cases
from steps import time_steps, timing_of


def from_last_stage(losses, device):
    """The last rank is on the last stage of the pipeline, which alone has losses."""
    values = torch.tensor(losses, device=device)
    dist.broadcast(values, dist.get_world_size() - 1)
    return values.tolist()


def measure(case, device, with_account):
    step, built = make_step(case["job"])
    seconds, losses = time_steps(step, line_up)
    losses = from_last_stage(losses, device)
    phases = {"model": built, **step.recorder.values}
    rank = {"phases": phases, "allocated_peak": step.recorder.whole_peak, **memory_now()}
    if with_account:
        rank["account"] = record_account(step, step.recorder)
    return {}, {"parameters": step.parameters(), **rank}, timing_of(seconds, losses)


if __name__ == "__main__":
    this_rank, world_size, this_device = bind_device()
    dist.init_process_group("nccl")  # communicators are made when first used, as in Megatron-LM
    run_cases("run_megatron_ranks.py", measure, this_device, this_rank, world_size, **prepare_libraries())
