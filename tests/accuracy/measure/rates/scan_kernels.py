"""transformers' scan of Mamba 2 in PyTorch's own operations, forward and backward: its kernels in their order, by the
profiler. What they read lies as behind the convolution: a column's tokens together.

    python rates/scan_kernels.py OUTPUT
"""
import json
import sys

import torch
from torch.profiler import ProfilerActivity, profile
from transformers.models.granitemoehybrid.modeling_granitemoehybrid import mamba2_chunk_scan

SHAPES = ((1, 2048, 48, 64, 128, 256), (2, 512, 48, 64, 128, 256), (1, 1024, 48, 64, 128, 256), (1, 2048, 24, 64, 256, 256),
          (1, 1000, 48, 64, 128, 256), (1, 2048, 24, 128, 64, 256), (1, 1024, 64, 64, 128, 128))
LEAST_SECONDS = 2e-4


def scan(b, s, h, p, n, chunk):
    """One pass each way over batch, tokens, heads, a head's columns, the state."""
    mixed = torch.randn(b, h * p + 2 * n, s, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    step = torch.randn(b, s, h, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    decay, skip, bias = (torch.rand(h, device="cuda", requires_grad=True) for _ in range(3))

    def run():
        x, keys, queries = torch.split(mixed.transpose(1, 2), [h * p, n, n], dim=-1)
        y = mamba2_chunk_scan(x.reshape(b, s, h, p), step, -decay, keys.reshape(b, s, 1, n), queries.reshape(b, s, 1, n),
                              chunk_size=chunk, D=skip, dt_bias=bias, dt_softplus=True)
        y.float().mean().backward()

    return run


def kernels(run):
    run()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        run()
        torch.cuda.synchronize()
    events = [e for e in profiler.profiler.kineto_results.events()
              if e.device_type() == torch.autograd.DeviceType.CUDA and not e.is_user_annotation()]
    return [[e.name()[:60], e.duration_ns() / 1e9] for e in sorted(events, key=lambda e: e.start_ns())]


if __name__ == "__main__":
    scans = []
    for shape in SHAPES:
        taken = kernels(scan(*shape))
        scans.append({**dict(zip(("b", "s", "h", "p", "n", "chunk"), shape)), "total": sum(t for _, t in taken),
                      "kernels": [one for one in taken if one[1] > LEAST_SECONDS]})
        torch.cuda.empty_cache()
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump({"scans": scans}, file, indent=1)
