"""The host's speed beside the steps that are timed: in the process that trains, between two steps, a few milliseconds.

What a host takes changes within a minute, so a probe before the run says little of a step. A sample never sees the
step: it calls modules of its own and the driver. Records keep all of a run's (`host_samples`), one before each step; under Trainer, of those after
the warm-up.

python_call_seconds    a call of a module without tensors (data/probe/host.py)
kernel_launch_seconds  the driver's start of a fill of four bytes
chain_seconds          SHA-256 of 64 KiB: one chain of instructions, which follows the clock more than a neighbour
forward_seconds        a block of a small network, whose kernels take no time: what Python and PyTorch take to start them
                       (block_passes in data/probe/host.py)
backward_seconds       the same backward: PyTorch alone
"""
import ctypes
import hashlib
import statistics
import time

import torch

import host_probe

MODULES, CALL_ROUNDS = 600, 5
LAUNCHES, LAUNCH_ROUNDS = 100, 5
CHAINED = bytes(1 << 16)


def _python_call(program):
    modules = [program.Module(number) for number in range(MODULES)]
    rounds = []
    for _ in range(CALL_ROUNDS):
        start, value = time.perf_counter(), 0
        for module in modules:
            value = module(value, scale=1)
        rounds.append((time.perf_counter() - start) / MODULES)
    return statistics.median(rounds)


def _kernel_launch(device):
    library = ctypes.CDLL("libcuda.so.1")
    start_one, other = library.cuMemsetD32Async, library.cuDriverGetVersion
    place, version = torch.empty(1, device=device), ctypes.c_int()
    at, one, size, none = ctypes.c_uint64(place.data_ptr()), ctypes.c_uint(0), ctypes.c_size_t(1), ctypes.c_void_p()
    rounds = []
    for _ in range(LAUNCH_ROUNDS):
        start = time.perf_counter()
        for _ in range(LAUNCHES):
            start_one(at, one, size, none)
        issued = time.perf_counter()
        for _ in range(LAUNCHES):
            other(ctypes.byref(version))
        rounds.append((2 * issued - start - time.perf_counter()) / LAUNCHES)
        torch.cuda.synchronize(device)
    return statistics.median(rounds)


def _chain():
    rounds = []
    for _ in range(CALL_ROUNDS):
        start = time.perf_counter()
        hashlib.sha256(CHAINED).digest()
        rounds.append(time.perf_counter() - start)
    return statistics.median(rounds)


class HostSamples:
    def __init__(self, device):
        self.device, self.program, self.taken = device, host_probe.program(), []

    def take(self):
        """With nothing queued on the GPU; what it allocates is gone when it returns."""
        forward, backward = self.program.block_passes(torch, self.device)
        self.taken.append({"python_call_seconds": _python_call(self.program),
                           "kernel_launch_seconds": _kernel_launch(self.device), "chain_seconds": _chain(),
                           "forward_seconds": forward, "backward_seconds": backward})
