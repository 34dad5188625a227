"""Measures the steps of a run on its GPU: PyTorch's peaks, and the time."""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, Optional


class Meter:
    """Call `begin` and `end` around each step. Peaks are of steps alone, not of what is between.

    A step's time is from its end to the next one's end, loading of samples included: nothing waits
    for the GPU that did not before.
    """

    def __init__(self) -> None:
        self._cuda = _cuda()
        self._ends: list[float] = []
        self._allocated = 0
        self._reserved = 0

    def begin(self) -> None:
        """A step begins: its first micro-batch."""
        if self._cuda is not None:
            self._cuda.reset_peak_memory_stats()

    def end(self) -> None:
        """The optimizer's part is over."""
        if self._cuda is not None:
            self._allocated = max(self._allocated, self._cuda.max_memory_allocated())
            self._reserved = max(self._reserved, self._cuda.max_memory_reserved())
        self._ends.append(time.perf_counter())

    def measured(self) -> dict[str, Optional[float]]:
        """Bytes of the rank that has the most, seconds of this one; None: not measured."""
        seconds = [end - before for before, end in zip(self._ends, self._ends[1:])]
        return {
            "allocated_bytes": _most(self._allocated) if self._cuda is not None else None,
            "reserved_bytes": _most(self._reserved) if self._cuda is not None else None,
            "step_seconds": median(seconds) if seconds and self._cuda is not None else None,
        }


def _cuda() -> Any:
    """torch.cuda where it has a GPU, else None."""
    try:
        import torch
    except ImportError:
        return None
    return torch.cuda if torch.cuda.is_available() else None


def _most(count: int) -> int:
    """Over all ranks; every one has to call this."""
    import torch

    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_initialized()):
        return count
    largest = torch.tensor([count], dtype=torch.int64, device="cuda")
    distributed.all_reduce(largest, op=distributed.ReduceOp.MAX)
    return int(largest.item())
