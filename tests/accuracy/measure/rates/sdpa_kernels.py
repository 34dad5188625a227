"""PyTorch's own FlashAttention-2 beside cuDNN's kernel, forward and backward: a JSON object a line.

    python3 sdpa_kernels.py > rows.jsonl
"""
import json
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

SHAPES = [(2, 32, 8192, 128, True), (4, 32, 2048, 128, True), (8, 16, 1024, 64, True), (2, 32, 4096, 128, True),
          (1, 32, 16384, 128, True), (8, 16, 2048, 64, True), (4, 32, 4096, 64, True), (2, 16, 8192, 64, True),
          (16, 12, 512, 64, False), (4, 32, 2048, 128, False), (16, 16, 1024, 128, True), (8, 32, 1024, 128, True),
          (4, 20, 2048, 80, True), (4, 32, 2048, 96, True), (2, 8, 4096, 256, True), (1, 64, 4096, 128, False)]


def timed(call, count=12):
    for _ in range(4):
        call()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(count):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / count / 1e3


for batch, heads, length, width, causal in SHAPES:
    q = torch.randn(batch, heads, length, width, device="cuda", dtype=torch.bfloat16)
    q, k, v = (torch.randn_like(q).requires_grad_() for _ in range(3))
    go = torch.randn_like(q)
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
        with sdpa_kernel(backend):
            call = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal)
            out = call()
            row = {"batch": batch, "heads": heads, "length": length, "width": width, "causal": causal,
                   "backend": backend.name, "forward": timed(call),
                   "backward": timed(lambda: torch.autograd.grad(out, (q, k, v), go, retain_graph=True))}
        print(json.dumps(row), flush=True)
