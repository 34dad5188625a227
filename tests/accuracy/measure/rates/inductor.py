"""Kernels that Inductor writes for the layers of models, forward and backward, each timed by the GPU alone. Writes one
`shardplan.rates/1` record; takes about two minutes, most of it compiling.

    python inductor.py --output h100-inductor.json

A row's bytes are those of the tensors that its kernel reads and writes, each once: what the time model counts.
"""
import argparse
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

import torch
import torch.nn.functional as F

from environment import environment
from timing import gpu_seconds

# (rows, width) of hidden states, of inner states, and of logits.
HIDDEN = [(1024, 768), (4096, 1024), (8192, 2048), (16384, 4096)]
INNER = [(1024, 3072), (8192, 8192), (8192, 14336)]
LOGITS = [(2048, 50257), (4096, 32000), (4096, 128256)]
BF16, F32 = torch.bfloat16, torch.float32


def _swiglu(a, b):
    return F.silu(a) * b


def _swiglu_backward(g, a, b):
    s = torch.sigmoid(a.float())
    return (g * b * (s * (1 + a.float() * (1 - s))).to(g.dtype)), g * F.silu(a)


def _gelu(a):
    return F.gelu(a, approximate="tanh")


def _gelu_backward(g, a):
    return torch.ops.aten.gelu_backward(g, a, approximate="tanh")


def _add(a, b):
    return a + b


def _narrow(a):
    return a.to(BF16)


def _widen(a):
    return a.to(F32)


def _rotate(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin


def _rms_norm(x, w):
    wide = x.float()
    return w * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


def _add_rms_norm(x, r, w):
    h = x + r
    return h, _rms_norm(h, w)


def _rms_norm_backward(g, x, w, r):
    wide, scaled = x.float(), (g * w).float()
    inverse = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
    return (scaled * inverse - wide * inverse.pow(3) * (scaled * wide).mean(-1, keepdim=True)).to(g.dtype) + r


def _layer_norm(x, w, b):
    return F.layer_norm(x, (x.shape[-1],), w, b)


def _softmax(x):
    return torch.softmax(x, -1)


def _log_sum(x):
    return torch.logsumexp(x.float(), -1)


def _loss_backward(x, log_sum, labels):
    p = torch.exp(x.float() - log_sum[:, None])
    return torch.where(torch.arange(x.shape[-1], device=x.device) == labels[:, None], p - 1, p).to(x.dtype)


def _column_sum(x):
    return x.float().sum(0)


def _moved(tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


def _row(form, work, tensors):
    compiled = torch.compile(work, dynamic=False)
    made = compiled(*tensors)
    made = made if isinstance(made, tuple) else (made,)
    seconds = gpu_seconds(lambda: compiled(*tensors))
    span = max(t.numel() for t in (*tensors, *made))
    return {"kind": "memory", "form": form, "call": work.__name__[1:], "dtype": str(tensors[0].dtype).split(".")[1],
            "elements": span, "bytes": _moved(tensors) + _moved(made), "kernels": 1, "seconds": seconds}


def _pointwise(dtype):
    def new(*shape):
        return torch.randn(*shape, device="cuda", dtype=dtype)

    for shape in INNER:
        yield _row("triton_pointwise", _swiglu, (new(*shape), new(*shape)))
        yield _row("triton_pointwise", _swiglu_backward, (new(*shape), new(*shape), new(*shape)))
        yield _row("triton_pointwise", _gelu, (new(*shape),))
        yield _row("triton_pointwise", _gelu_backward, (new(*shape), new(*shape)))
        yield _row("triton_pointwise", _narrow if dtype == F32 else _widen, (new(*shape),))
    for rows, width in HIDDEN:
        yield _row("triton_pointwise", _add, (new(rows, width), new(rows, width)))
        heads = new(1, rows, width // 64, 64).transpose(1, 2)
        yield _row("triton_pointwise", _rotate, (heads, new(1, 1, rows, 64), new(1, 1, rows, 64)))


def _reductions(dtype):
    def new(*shape):
        return torch.randn(*shape, device="cuda", dtype=dtype)

    for rows, width in HIDDEN:
        x, y, z, w = new(rows, width), new(rows, width), new(rows, width), new(width)
        yield _row("triton_reduction", _rms_norm, (x, w))
        yield _row("triton_reduction", _add_rms_norm, (x, y, w))
        yield _row("triton_reduction", _rms_norm_backward, (x, y, w, z))
        yield _row("triton_reduction", _layer_norm, (x, w, w))
        yield _row("triton_reduction", _softmax, (x,))
        yield _row("triton_reduction", _column_sum, (x,))
    for tokens, vocabulary in LOGITS:
        x = new(tokens, vocabulary)
        labels = torch.randint(0, vocabulary, (tokens,), device="cuda")
        yield _row("triton_reduction", _log_sum, (x,))
        yield _row("triton_pointwise", _loss_backward, (x, torch.logsumexp(x.float(), -1), labels))


def measure():
    for dtype in (BF16, F32):
        for rows in (_pointwise, _reductions):
            for row in rows(dtype):
                yield row
                torch.compiler.reset()
                torch.cuda.empty_cache()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    torch.manual_seed(0)
    record = {"schema": "shardplan.rates/1", "producer": {"program": "tests/accuracy/measure/rates/inductor.py"},
              "environment": environment(), "rates": list(measure())}
    with open(options.output, "w", encoding="utf-8") as file:
        json.dump(record, file)
    for row in record["rates"]:
        print(f"{row['form']} {row['call']} {row['dtype']} {row['elements']} "
              f"{row['bytes'] / row['seconds'] / 1e9:.0f} GB/s {row['seconds'] * 1e6:.1f} us")
