"""The seven phases of a training step, read from torch.cuda's memory statistics.

model: after the model is built; forward_peak, forward_end, backward_peak, backward_end, step_peak (clipping and the
optimizer), step_end (gradients set to None). With gradient accumulation those of the last micro-batch.
"""
import gc
import time

import torch


def clean():
    """Between cases: drop what nothing refers to and give cached blocks back."""
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


def warm_libraries(device):
    """Creates the cuBLAS handles and workspaces of the main and the autograd thread, as any run has after a step."""
    for dtype in (torch.float32, torch.bfloat16):
        weight = torch.randn(256, 256, device=device, dtype=dtype, requires_grad=True)
        (weight @ weight).sum().backward()
    del weight
    clean()


def allocator_now():
    """(peak, bytes, reserved peak) of the allocator since the last reset, asked for once: each of torch.cuda's functions
    makes a flat dictionary of everything first, which takes the host a good part of a millisecond."""
    stats = torch.cuda.memory_stats_as_nested_dict()
    allocated = stats["allocated_bytes"]["all"]
    return allocated["peak"], allocated["current"], stats["reserved_bytes"]["all"]["peak"]


class PhaseRecorder:
    """Peaks and ends of consecutive spans; `whole_peak` is the largest over all spans since `begin`, `host` what the host
    took for each."""

    def __init__(self):
        self.values = {}
        self.marks = []
        self.whole_peak = 0
        self.host = {}

    def begin(self):
        self.values, self.marks, self.whole_peak, self.host = {}, [], 0, {}
        torch.cuda.reset_peak_memory_stats()
        self.last = time.perf_counter()

    def end(self, phase):
        self.host[phase] = self.host.get(phase, 0) + time.perf_counter() - self.last
        peak, self.values[phase + "_end"], _ = allocator_now()
        self.values[phase + "_peak"] = peak
        self.marks.append((phase, time.time_ns() // 1000))
        self.whole_peak = max(self.whole_peak, peak)
        torch.cuda.reset_peak_memory_stats()
        self.last = time.perf_counter()


def memory_now():
    """What the allocator holds and what the driver says the device holds."""
    free, total = torch.cuda.mem_get_info()
    return {"reserved": torch.cuda.memory_reserved(), "device": total - free}
