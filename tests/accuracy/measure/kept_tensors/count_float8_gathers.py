"""What FSDP2 gathers of a Llama's block whose linears are torchao's in fp8, in bytes, with and without gathers in 8 bits.

Needs no GPU: torchrun --nproc-per-node 2 count_float8_gathers.py
"""
import torch.distributed as dist
import os
import sys
from torch import bfloat16, float32
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

from float8 import convert, find_scales


def gathered(gather):
    """Bytes that all ranks together give for one block."""
    job = {"precision": {"preset": "bf16-autocast", "linear": "fp8-tensorwise"},
           "framework": {"name": "fsdp2", "float8_all_gather": gather}}
    config = LlamaConfig(hidden_size=512, intermediate_size=1536, num_attention_heads=8, num_key_value_heads=2,
                         num_hidden_layers=1, vocab_size=1024)
    block = convert(_in_a_model(LlamaDecoderLayer(config, 0)), job).get_submodule("layers.0")
    fully_shard(block, mesh=init_device_mesh("cpu", (dist.get_world_size(),)),
                mp_policy=MixedPrecisionPolicy(param_dtype=bfloat16, reduce_dtype=float32))
    find_scales(block, job)
    block.unshard()
    group = block._get_fsdp_state()._fsdp_param_group
    return sum(part.numel() * part.element_size() for p in group.fsdp_params for part in p.all_gather_outputs)


def _in_a_model(block):
    """Under the name by which `convert` knows blocks."""
    from torch.nn import Module, ModuleList

    model = Module()
    model.layers = ModuleList([block])
    return model


if __name__ == "__main__":
    dist.init_process_group("gloo")
    for gather in ("none", "dynamic", "precomputed"):
        count = gathered(gather)
        if dist.get_rank() == 0:
            print(gather, count, flush=True)
    dist.destroy_process_group()
