"""What Liger's functions take of the host beside what they replace, without a GPU: Triton's launcher runs as it does before
a kernel, and the kernel is not started.

    python host_costs/time_liger.py        microseconds and Python calls (data/probe/host.py), forward and backward

docs/explanation/time.md has what this printed.
"""
import os
import statistics
import sys
import time

import torch
import triton
from triton.backends.compiler import GPUTarget

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

import host_probe

ROUNDS, CALLS, PROBES = 25, 40, 15
HALF = torch.bfloat16


class _Utils:
    """What Triton asks of an H100, and a module that was not loaded."""

    @staticmethod
    def get_device_properties(device):
        return {"max_shared_mem": 232448, "multiprocessor_count": 132, "warpSize": 32, "max_num_regs": 65536}

    @staticmethod
    def load_binary(name, kernel, shared, device):
        return 1, 2, 32, 0, 1024


class _Launcher:
    def __init__(self, source, metadata):
        self.launch_cooperative_grid = False

    def __call__(self, *given):
        pass


class _NoGpu:
    utils, launcher_cls = _Utils(), _Launcher

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0

    def get_active_torch_device(self):
        return torch.device("cpu")


def _made(*shape):
    return torch.randn(*shape, dtype=HALF, requires_grad=True) * 1


def _functions():
    """name: (what one call takes, the call)."""
    from liger_kernel.ops.swiglu import LigerSiLUMulFunction
    from liger_kernel.transformers.rms_norm import LigerRMSNorm
    from liger_kernel.transformers.rope import liger_rotary_pos_emb
    from transformers.models.llama.modeling_llama import LlamaRMSNorm, apply_rotary_pos_emb

    tables = torch.randn(1, 8, 16, dtype=HALF), torch.randn(1, 8, 16, dtype=HALF)
    silu, linear = torch.nn.SiLU(), torch.nn.Linear(64, 64, bias=False, dtype=HALF)
    hidden, heads, gates = (lambda: (_made(1, 8, 64),)), (lambda: (_made(1, 4, 8, 16), _made(1, 2, 8, 16))), \
        (lambda: (_made(8, 128), _made(8, 128)))
    return {
        "Liger's norm": (hidden, LigerRMSNorm(64).to(HALF)),
        "a norm": (hidden, LlamaRMSNorm(64).to(HALF)),
        "Liger's positions": (heads, lambda q, k: liger_rotary_pos_emb(q, k, *tables)),
        "positions": (heads, lambda q, k: apply_rotary_pos_emb(q, k, *tables)),
        "Liger's gate": (gates, LigerSiLUMulFunction.apply),
        "a gate": (gates, lambda a, b: silu(a) * b),
        "a linear": (hidden, linear),
        "an addition": (hidden, lambda x: x + x),
    }


def _round(made, call):
    """Seconds of a call, forward and backward."""
    given = [made() for _ in range(CALLS)]
    begin = time.perf_counter()
    results = [call(*one) for one in given]
    between = time.perf_counter()
    results = [one if isinstance(one, tuple) else (one,) for one in results]
    gradients = [[torch.ones_like(tensor) for tensor in one] for one in results]
    start = time.perf_counter()
    for one, gradient in zip(results, gradients):
        torch.autograd.backward(one, gradient)
    return (between - begin) / CALLS, (time.perf_counter() - start) / CALLS


def main():
    triton.runtime.driver.set_active(_NoGpu())
    torch.set_num_threads(1)
    functions = _functions()
    rounds = {name: [] for name in functions}
    for _ in range(ROUNDS):
        for name, (made, call) in functions.items():
            rounds[name].append(_round(made, call))
    python_call = min(host_probe.calls()["python_call_seconds"] for _ in range(PROBES))
    for name, seconds in rounds.items():
        forward, backward = (statistics.median(column[3:]) for column in zip(*seconds))
        print(f"{name}: forward {forward * 1e6:.0f} us = {forward / python_call:.0f} calls, backward {backward * 1e6:.0f} us = "
              f"{backward / python_call:.0f} calls")


if __name__ == "__main__":
    main()
