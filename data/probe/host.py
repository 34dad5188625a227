"""What this machine's host takes for what training asks of it, as one JSON object (shardplan.machine/1).

`shardplan probe` runs it with the Python that trains; the measuring programs under tests/accuracy take the same figures
beside their records. The standard library alone takes about three seconds; where PyTorch and a GPU are, a block of a
small network is timed too, which says more of eager steps and takes some ten seconds.

    python3 host.py [--calls | --no-block]      --calls: the Python calls alone, under a second
"""
import ctypes
import json
import os
import platform
import statistics
import sys
import threading
import time

MODULES = 600  # with their dictionaries more than a core's first cache, as a network's modules are
CALL_SECONDS = 0.6
COPY_BYTES = 64 << 20
COPY_ROUNDS = 5
MOST_THREADS = 16
LAUNCHES = 200  # fewer than a stream's queue takes, so that none waits for the GPU
LAUNCH_ROUNDS = 50
PCIE_BYTES = 256 << 20
BLOCKS, WIDTH, TOKENS = 6, 16, 4
BLOCK_SECONDS = 4  # hosts change between two paces within seconds


class Module:
    """Called as torch.nn.Module is: a dictionary of parameters behind __getattr__, tests for hooks, arguments passed on."""

    def __init__(self, number):
        self.__dict__["_parameters"] = {"weight": (number, number + 1), "bias": None}
        self.__dict__["_hooks"] = {}
        self.__dict__["_before"] = {}

    def __getattr__(self, name):
        parameters = self.__dict__["_parameters"]
        if name in parameters:
            return parameters[name]
        raise AttributeError(name)

    def __call__(self, *given, **named):
        if self._hooks or self._before:
            return None
        return self.forward(*given, **named)

    def forward(self, value, scale=1):
        rows, columns = self.weight
        shape = {"rows": rows, "columns": columns, "bias": self.bias}
        return value + scale if isinstance(shape, dict) and len(shape) == 3 else value


def python_call():
    """(median, least) seconds of a module's call."""
    modules = [Module(number) for number in range(MODULES)]
    rounds, end = [], time.perf_counter() + CALL_SECONDS
    while time.perf_counter() < end:
        start, value = time.perf_counter(), 0
        for module in modules:
            value = module(value, scale=1)
        rounds.append((time.perf_counter() - start) / MODULES)
    return statistics.median(rounds), min(rounds)


def memory_rate(threads):
    """bytes/s, read and written, of copies by so many threads; ctypes lets them run beside each other."""
    pairs = [(ctypes.create_string_buffer(COPY_BYTES), ctypes.create_string_buffer(COPY_BYTES)) for _ in range(threads)]

    def copy(pair, times):
        for _ in range(times):
            ctypes.memmove(*pair, COPY_BYTES)

    def all_copy(times):
        running = [threading.Thread(target=copy, args=(pair, times)) for pair in pairs]
        start = time.perf_counter()
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        return time.perf_counter() - start

    all_copy(1)  # every page is there
    return 2 * threads * COPY_BYTES * COPY_ROUNDS / all_copy(COPY_ROUNDS)


class Driver:
    """CUDA's driver and one GPU's primary context."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        self.do("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.do("cuDeviceGet", ctypes.byref(device), 0)
        name = ctypes.create_string_buffer(100)
        self.do("cuDeviceGetName", name, 100, device)
        self.name = name.value.decode()
        self.do("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.do("cuCtxSetCurrent", context)
        self.on_gpu, self.pinned = ctypes.c_uint64(), ctypes.c_void_p()
        self.do("cuMemAlloc_v2", ctypes.byref(self.on_gpu), ctypes.c_size_t(PCIE_BYTES))
        self.do("cuMemAllocHost_v2", ctypes.byref(self.pinned), ctypes.c_size_t(PCIE_BYTES))

    def do(self, name, *given):
        error = getattr(self.library, name)(*given)
        if error:
            raise OSError(f"{name}: error {error}")

    def launch(self):
        """Seconds the host takes to start a kernel (a fill of four bytes), without ctypes' own."""
        start_one, other = self.library.cuMemsetD32Async, self.library.cuDriverGetVersion
        version, none, one, size = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint(0), ctypes.c_size_t(1)
        rounds = []
        for _ in range(LAUNCH_ROUNDS):
            start = time.perf_counter()
            for _ in range(LAUNCHES):
                start_one(self.on_gpu, one, size, none)
            issued = time.perf_counter()
            for _ in range(LAUNCHES):
                other(ctypes.byref(version))
            rounds.append((2 * issued - start - time.perf_counter()) / LAUNCHES)
            self.do("cuCtxSynchronize")
        return statistics.median(rounds)

    def pcie(self, name, *given):
        """bytes/s of a copy of pinned memory: the best of three."""
        seconds = []
        for _ in range(3):
            start = time.perf_counter()
            self.do(name, *given, ctypes.c_size_t(PCIE_BYTES), ctypes.c_void_p())
            self.do("cuCtxSynchronize")
            seconds.append(time.perf_counter() - start)
        return PCIE_BYTES / min(seconds)


def of_gpu():
    """What only a machine with a GPU says; elsewhere why it is unknown."""
    try:
        driver = Driver()
        return {"gpu": driver.name,
                "kernel_launch_seconds": driver.launch(),
                "to_gpu_bytes_per_second": driver.pcie("cuMemcpyHtoDAsync_v2", driver.on_gpu, driver.pinned),
                "from_gpu_bytes_per_second": driver.pcie("cuMemcpyDtoHAsync_v2", driver.pinned, driver.on_gpu)}
    except (OSError, AttributeError) as error:
        return {"gpu": None, "gpu_unknown": str(error)}


def small_blocks(torch, device):
    """What a Llama's block calls, but for positions and attention; its kernels take no time."""
    def weight(make, *shape):
        return torch.nn.Parameter(make(*shape, device=device, dtype=torch.bfloat16))

    class Linear(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = weight(torch.zeros, WIDTH, WIDTH)

        def forward(self, x):
            return torch._C._nn.linear(x, self.weight)  # ZeRO-3 puts another in the place of torch.nn.functional's

    class Norm(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = weight(torch.ones, WIDTH)

        def forward(self, x):
            wide = x.float()
            return self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).bfloat16()

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.between = Norm(), Norm()
            self.q, self.k, self.v, self.o = (Linear() for _ in range(4))
            self.gate, self.up, self.down = (Linear() for _ in range(3))
            self.act = torch.nn.SiLU()

        def forward(self, x):
            h = self.before(x)
            q, k, v = (m(h).view(1, TOKENS, 1, WIDTH).transpose(1, 2) for m in (self.q, self.k, self.v))
            x = x + self.o((q * k + v).transpose(1, 2).reshape(1, TOKENS, WIDTH))
            h = self.between(x)
            return x + self.down(self.act(self.gate(h)) * self.up(h))

    return [Block() for _ in range(BLOCKS)]


def block_passes(torch, device):
    """Seconds a block, forward and backward; of the second of two passes, the first loads what the first call needs."""
    with torch.enable_grad(), torch.autocast("cuda", enabled=False):
        blocks = small_blocks(torch, device)
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


def of_pytorch():
    """Seconds of a block, forward and backward, in the mean; without PyTorch or a GPU nothing."""
    try:
        import torch

        device = torch.device("cuda", 0)
        block_passes(torch, device)
    except Exception:  # whatever an installation of PyTorch that cannot use a GPU raises
        return {}
    taken, end = [], time.perf_counter() + BLOCK_SECONDS
    while time.perf_counter() < end:
        taken.append(sum(block_passes(torch, device)))
    return {"block_seconds": statistics.mean(taken)}


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or None


def usable_cpus():
    """Those that this process may run on, or as many as its control group is given the time of."""
    count = len(os.sched_getaffinity(0))
    try:
        with open("/sys/fs/cgroup/cpu.max", encoding="utf-8") as file:
            quota, period = file.read().split()
        return count if quota == "max" else max(1, min(count, round(int(quota) / int(period))))
    except (OSError, ValueError):
        return count


def calls():
    median, least = python_call()
    return {"python": platform.python_version(), "python_call_seconds": median, "python_call_seconds_least": least}


def probe(with_block=True):
    cpus = usable_cpus()
    return {"schema": "shardplan.machine/1",
            "cpu": processor(),
            "cpus": cpus,
            **calls(),
            "memory_bytes_per_second": memory_rate(min(cpus, MOST_THREADS)),
            **of_gpu(),
            **(of_pytorch() if with_block else {})}


if __name__ == "__main__":
    json.dump(calls() if "--calls" in sys.argv[1:] else probe("--no-block" not in sys.argv[1:]), sys.stdout, indent=1)
    print()
