"""Training steps of PyTorch's fully_shard (FSDP2): every block and the root are units."""
import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

from compilation import blocks_of, compile_blocks
from float8 import convert, find_scales
from models import build_model, make_batch, parameter_counts
from optimizers import make_optimizer
from phases import clean
from ranks import bind_device, line_up
from runner import run_cases
from steps import PlainUpdate, run_steps

def _materialize(model, place, device):
    """The shards of a meta model, with values that keep the loss finite."""
    model.to_empty(device=place)
    with torch.no_grad():
        for parameter in model.parameters():
            local = parameter.to_local()
            local.fill_(1.0) if parameter.ndim == 1 else local.normal_(0, 0.02)
        for module in model.modules():
            for name, buffer in module.named_buffers(recurse=False):
                if buffer.is_floating_point():
                    buffer.fill_(0.01)
                setattr(module, name, buffer.to(device))


def shard(job, model, device):
    framework = job["framework"]
    offload = framework.get("cpu_offload", False)
    reduce_dtype = torch.float32 if framework.get("reduce_dtype", "fp32") == "fp32" else torch.bfloat16
    options = {"mp_policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=reduce_dtype),
               "reshard_after_forward": framework["reshard_after_forward"]}
    size = framework.get("hybrid_shard_size")
    if size:
        options["mesh"] = init_device_mesh("cuda", (dist.get_world_size() // size, size),
                                           mesh_dim_names=("replicate", "shard"))
    if offload:
        options["offload_policy"] = CPUOffloadPolicy(pin_memory=True)
    if job.get("compile"):  # before they are sharded
        compile_blocks(model)
    for block in blocks_of(model):
        fully_shard(block, **options)
    fully_shard(model, **options)
    _materialize(model, "cpu" if offload else device, device)


class Fsdp2Trainer(PlainUpdate):
    def __init__(self, job, model):
        self.job = job
        self.model = model
        self.parameters = list(model.parameters())
        self.optimizer = make_optimizer(job, self.parameters)

    def forward(self, batch, last):
        return self.model(**batch).loss

    def backward(self, loss, last):
        loss.backward()

    def step(self):
        super().step()
        find_scales(self.model, self.job)


def measure(case, device, with_account):
    job = case["job"]
    if job["workload"]["gradient_accumulation"] != 1:
        raise ValueError("run_fsdp2.py has no gradient accumulation")
    config, model = build_model(job, "meta")
    convert(model, job)
    counts = parameter_counts(model)
    shard(job, model, device)
    trainer = Fsdp2Trainer(job, model)
    batch = make_batch(job, config, device)
    clean()
    rank, timing = run_steps(trainer, batch, job, line_up, with_account)
    return counts, rank, timing


if __name__ == "__main__":
    this_rank, world_size, this_device = bind_device()
    dist.init_process_group("nccl", device_id=this_device)
    run_cases("run_fsdp2.py", measure, this_device, this_rank, world_size)
