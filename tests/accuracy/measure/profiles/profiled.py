"""Where a step's time goes: one more step under PyTorch's profiler, summed up.

Host times under it are too long, as it looks at every call; the GPU's own times are not.
"""
import torch
from torch.profiler import ProfilerActivity, profile

import issued_rows

WAITS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize")


def start():
    seen = [ProfilerActivity.CUDA] if issued_rows.folder() else [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    profiler = profile(activities=seen)
    profiler.start()
    return profiler


def _union(spans):
    """Seconds in which one of the spans runs."""
    total, end = 0, 0
    for begin, until in sorted(spans):
        total += max(0, until - max(begin, end))
        end = max(end, until)
    return total / 1e9


def _sums(events, most):
    sums = {}
    for name, seconds in events:
        count, total = sums.get(name, (0, 0.0))
        sums[name] = count + 1, total + seconds
    return {name: [count, round(total, 6)] for name, (count, total) in
            sorted(sums.items(), key=lambda one: -one[1][1])[:most]}


def stop(profiler):
    """Seconds: the GPU busy, of it exchanges alone; the kernels and calls that take the most, with their counts."""
    torch.cuda.synchronize()
    profiler.stop()
    on_gpu, on_host = [], []
    events = profiler.profiler.kineto_results.events()
    rows = {"rows": issued_rows.write(events)} if issued_rows.folder() else {}
    for event in events:
        if event.is_user_annotation():  # a span of others, which FSDP1 and optimizers name
            continue
        place = on_gpu if event.device_type() == torch.autograd.DeviceType.CUDA else on_host
        place.append((event.name(), event.start_ns(), event.start_ns() + event.duration_ns()))
    exchanged = [(begin, end) for name, begin, end in on_gpu if name.startswith("nccl")]
    computed = [(begin, end) for name, begin, end in on_gpu if not name.startswith("nccl")]
    return {**rows, "gpu_busy": _union(exchanged + computed), "computed": _union(computed), "exchanged": _union(exchanged),
            "kernels": len(on_gpu),
            "waits": _sums([(name, (end - begin) / 1e9) for name, begin, end in on_host if name in WAITS], 9),
            "operations": sum(name.startswith("aten::") for name, _, _ in on_host),
            "on_gpu": _sums([(name[:90], (end - begin) / 1e9) for name, begin, end in on_gpu], 40),
            "on_host": _sums([(name[:90], (end - begin) / 1e9) for name, begin, end in on_host], 60)}
