"""The host's speed beside the steps that are timed: in the process that trains, between two steps, a few milliseconds.

What a host takes changes within a minute, so a probe before the run says little of a step. A sample never sees the
step: it calls modules of its own and the driver. Records keep all of a run's (`host_samples`), one before each step.

python_call_seconds    a call of a module without tensors (data/probe/host.py)
kernel_launch_seconds  the driver's start of a fill of four bytes
chain_seconds          SHA-256 of 64 KiB: one chain of instructions, which follows the clock more than a neighbour
forward_seconds        a block of a small network, whose kernels take no time: what Python and PyTorch take to start them
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
BLOCKS, WIDTH, TOKENS = 6, 16, 4


class _Linear(torch.nn.Module):
    """PyTorch's own product: ZeRO-3 puts another function in the place of torch.nn.functional's."""

    def __init__(self, device):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(WIDTH, WIDTH, device=device, dtype=torch.bfloat16))

    def forward(self, x):
        return torch._C._nn.linear(x, self.weight)


class _Norm(torch.nn.Module):
    def __init__(self, device):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(WIDTH, device=device, dtype=torch.bfloat16))

    def forward(self, x):
        wide = x.float()
        return self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).bfloat16()


class _Block(torch.nn.Module):
    """What a Llama's block calls, but for positions and attention."""

    def __init__(self, device):
        super().__init__()
        self.before, self.between = _Norm(device), _Norm(device)
        self.q, self.k, self.v, self.o = (_Linear(device) for _ in range(4))
        self.gate, self.up, self.down = (_Linear(device) for _ in range(3))
        self.act = torch.nn.SiLU()

    def forward(self, x):
        h = self.before(x)
        q, k, v = (m(h).view(1, TOKENS, 1, WIDTH).transpose(1, 2) for m in (self.q, self.k, self.v))
        x = x + self.o((q * k + v).transpose(1, 2).reshape(1, TOKENS, WIDTH))
        h = self.between(x)
        return x + self.down(self.act(self.gate(h)) * self.up(h))


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


def _eager(device):
    """Seconds a block, forward and backward; of the second of two passes, the first loads what the first call needs."""
    with torch.enable_grad(), torch.autocast("cuda", enabled=False):
        blocks = [_Block(device) for _ in range(BLOCKS)]
        given = torch.zeros(1, TOKENS, WIDTH, device=device, dtype=torch.bfloat16, requires_grad=True)
        for _ in range(2):
            torch.cuda.synchronize(device)
            start, x = time.perf_counter(), given
            for block in blocks:
                x = block(x)
            between = time.perf_counter()
            x.backward(x.detach())
            end = time.perf_counter()
    torch.cuda.synchronize(device)
    return (between - start) / BLOCKS, (end - between) / BLOCKS


class HostSamples:
    def __init__(self, device):
        self.device, self.program, self.taken = device, host_probe.program(), []

    def take(self):
        """With nothing queued on the GPU; what it allocates is gone when it returns."""
        forward, backward = _eager(self.device)
        self.taken.append({"python_call_seconds": _python_call(self.program),
                           "kernel_launch_seconds": _kernel_launch(self.device), "chain_seconds": _chain(),
                           "forward_seconds": forward, "backward_seconds": backward})
