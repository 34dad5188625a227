"""What torchao's functions around a cast to fp8 take of the host beside the operations that they start, without a GPU.

    python host_costs/time_casts.py        microseconds and Python calls (data/probe/host.py), by scaling

docs/explanation/time.md has what this printed.
"""
import os
import statistics
import sys
import time

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torchao.float8.config import ScalingGranularity
from torchao.float8.float8_scaling_utils import hp_tensor_to_float8_dynamic
from torchao.float8.float8_training_tensor import LinearMMConfig

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

import host_probe

ROUNDS, CALLS, PROBES = 25, 40, 15
SCALINGS = {"tensorwise": dict(scaling_granularity=ScalingGranularity.TENSORWISE),
            "rowwise": dict(scaling_granularity=ScalingGranularity.AXISWISE, axiswise_dim=-1, round_scales_to_power_of_2=True)}


class Recorded(TorchDispatchMode):
    """The operations of a call, with what they were given."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, function, types, given=(), named=None):
        self.calls.append((function, given, named or {}))
        return function(*given, **(named or {}))


def _seconds(call):
    rounds = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for _ in range(CALLS):
            call()
        rounds.append((time.perf_counter() - begin) / CALLS)
    return statistics.median(rounds)


def main():
    torch.set_num_threads(1)
    tensor = torch.randn(16, 64, dtype=torch.bfloat16)
    probe = statistics.median(host_probe.calls()["python_call_seconds"] for _ in range(PROBES))
    for name, named in SCALINGS.items():
        cast = lambda: hp_tensor_to_float8_dynamic(tensor, torch.float8_e4m3fn, LinearMMConfig(), **named)
        with torch.no_grad():
            with Recorded() as recorded:
                cast()
            alone = lambda: [function(*given, **rest) for function, given, rest in recorded.calls]
            whole, operations = _seconds(cast), _seconds(alone)
        beside = whole - operations
        print(f"{name}: {len(recorded.calls)} operations, {whole * 1e6:.0f} us, of them {beside * 1e6:.0f} us beside these: "
              f"{beside / probe:.0f} Python calls of {probe * 1e6:.2f} us")


if __name__ == "__main__":
    main()
