"""A torch with one GPU, for tests where there is none: what shardplan asks of torch, and no more."""

from __future__ import annotations

import types


def fake_torch(allocated: list[int], reserved: list[int], gpus: int = 1) -> types.ModuleType:
    """The peaks are those of the steps in their order; they count from the last reset on."""
    torch = types.ModuleType("torch")
    steps = {"begun": 0}

    def begin() -> None:
        steps["begun"] += 1

    torch.cuda = types.SimpleNamespace(
        is_available=lambda: True,
        device_count=lambda: gpus,
        get_device_name=lambda: "NVIDIA A100-SXM4-40GB",
        reset_peak_memory_stats=begin,
        max_memory_allocated=lambda: allocated[steps["begun"] - 1],
        max_memory_reserved=lambda: reserved[steps["begun"] - 1],
    )
    torch.distributed = types.SimpleNamespace(is_available=lambda: False)
    return torch
