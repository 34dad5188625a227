"""Attention, losses over a vocabulary and norms, forward and backward as eager PyTorch runs them: what the GPU takes for
each kernel, read by the profiler.

    python rates/cold_kernels.py --output h200-cold-kernels.json

Before each call a write leaves nothing of its operands in the cache, and a kernel that spins holds the GPU until the host
has started all of the call, so that nothing of the host is in a time. Shapes are in three parts, a process each: cuDNN makes a
plan for every shape of attention, which takes the host a quarter of a second, so parts make theirs side by side and then
measure in turn (--part, --parts; a lock beside the output).
"""
import argparse
import fcntl
import json
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

import torch
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile

from environment import environment

TURNS, TOGETHER = 5, 8
SPIN_CYCLES = 2_000_000  # about a millisecond: longer than a host takes to start a backward pass
COLD_BYTES = 192 << 20
WIDTHS = {64: ((12, 12), (32, 8), (14, 2)), 80: ((32, 32),), 96: ((32, 32),), 128: ((16, 16), (32, 8), (16, 8)),
          256: ((8, 4), (4, 1), (16, 16))}
ROWS = (512, 2048, 1024, 8192, 128, 4096, 256)
VOCABULARIES = (32000, 50257, 50304, 128256, 151936, 262144)
LOSS_ROWS = (512, 1024, 2048, 4096, 8192, 16384)
NORM_ROWS, NORM_WIDTHS = (1024, 4096, 16384), (768, 2048, 4096)


def _tensor(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device="cuda", dtype=dtype)


def _both(about, call, operands, grad):
    """A forward call and the backward pass of what it makes."""
    made = call()
    yield {**about, "form": "forward"}, call
    yield {**about, "form": "backward"}, lambda: torch.autograd.grad(made, operands, grad, retain_graph=True)


def _attention(batch, rows, heads, key_heads, width, dtype=torch.bfloat16, causal=True, masked=False):
    """Operands lie as linears make them: all heads of a token side by side."""
    def operand(count):
        return _tensor(batch, rows, count, width, dtype=dtype).transpose(1, 2).requires_grad_()
    # A mask makes Hugging Face repeat keys and values before the call.
    q, k, v = operand(heads), *(operand(heads if masked else key_heads) for _ in range(2))
    mask = None
    if masked:
        mask = torch.ones(rows, rows, device="cuda", dtype=torch.bool).tril()[None, None].expand(batch, 1, -1, -1)
    about = {"kind": "attention", "dtype": str(dtype).split(".")[1], "causal": causal, "masked": masked, "batch": batch,
             "sequence": rows, "heads": heads, "key_heads": k.shape[1], "head_width": width}
    grad = _tensor(batch, rows, heads, width, dtype=dtype).transpose(1, 2)
    yield from _both(about, lambda: F.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, is_causal=causal and not masked, enable_gqa=k.shape[1] < heads), (q, k, v), grad)


def _loss(rows, vocabulary, widened=True):
    """transformers' loss widens what the head makes; some models' own losses do not."""
    x = _tensor(rows, vocabulary).requires_grad_()
    labels = torch.randint(0, vocabulary, (rows,), device="cuda")
    about = {"kind": "loss", "rows": rows, "vocabulary": vocabulary, "widened": widened}
    yield from _both(about, lambda: F.cross_entropy(x.float() if widened else x, labels), (x,), None)


def _layer_norm(rows, width, dtype):
    x, w, b = (_tensor(*shape, dtype=dtype).requires_grad_() for shape in ((rows, width), (width,), (width,)))
    about = {"kind": "layer_norm", "dtype": str(dtype).split(".")[1], "rows": rows, "width": width}
    yield from _both(about, lambda: F.layer_norm(x, (width,), w, b), (x, w, b), _tensor(rows, width, dtype=dtype))


def _rms_norm(rows, width):
    """transformers' own (LlamaRMSNorm), operation by operation."""
    x, w = _tensor(rows, width).requires_grad_(), _tensor(width).requires_grad_()
    def call():
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return w * wide.to(torch.bfloat16)
    yield from _both({"kind": "rms_norm", "dtype": "bfloat16", "rows": rows, "width": width}, call, (x, w), _tensor(rows, width))


def attention_shapes():
    """(batch, rows, heads, heads of keys, width, ...) of 8,192 tokens and 2,048; what needs no plan first, then so that
    every width comes early."""
    for width, heads in ((64, 16), (128, 16), (256, 8)):
        for rows in (256, 1024, 4096):
            yield 4096 // rows, rows, heads, heads, width, torch.bfloat16, True, True
    for width, heads in ((64, 12), (128, 16)):
        for rows in (512, 2048):
            yield 4096 // rows, rows, heads, heads, width, torch.float32
            yield 8192 // rows, rows, heads, heads, width, torch.bfloat16, False
    for rows in ROWS:
        for width, counts in WIDTHS.items():
            for heads, key_heads in counts:
                for tokens in (tokens for tokens in (8192, 2048) if rows <= tokens):
                    yield tokens // rows, rows, heads, key_heads, width


def cases(part, parts):
    """(what, a generator of its calls); losses and norms belong to the first part."""
    if part == 0:
        for vocabulary in VOCABULARIES:
            for rows in LOSS_ROWS:
                yield _loss, (rows, vocabulary)
        for rows, vocabulary in ((4096, 32128), (4096, 50265)):
            yield _loss, (rows, vocabulary, False)
        for rows in NORM_ROWS:
            for width in NORM_WIDTHS:
                yield _rms_norm, (rows, width)
                for dtype in (torch.bfloat16, torch.float32):
                    yield _layer_norm, (rows, width, dtype)
    for number, shape in enumerate(attention_shapes()):
        if number % parts == part:
            yield _attention, shape


def _turns(recorded):
    """The kernels of each turn: those between two that spin."""
    found = sorted((e.start_ns(), e.duration_ns(), e.name()) for e in recorded.profiler.kineto_results.events()
                   if e.device_type() == torch.autograd.DeviceType.CUDA)
    turns, spins = [], 0
    for start, duration, name in found:
        if "spin_kernel" in name:
            spins += 1
            if spins % 2:
                turns.append([])
        elif spins % 2:
            turns[-1].append((start, duration, name))
    return turns


def _row(about, turns):
    """Medians over the turns."""
    kernels = min(len(turn) for turn in turns)
    seconds = [sum(duration for _, duration, _ in turn) / 1e9 for turn in turns]
    spans = [(turn[-1][0] + turn[-1][1] - turn[0][0]) / 1e9 for turn in turns]
    each = [[turns[0][k][2][:110], statistics.median(turn[k][1] for turn in turns) / 1e9] for k in range(kernels)]
    return {**about, "seconds": statistics.median(seconds), "span_seconds": statistics.median(spans), "kernels": each}


def _run(call, cold, cached):
    for _ in range(TURNS):
        if not cached:
            cold.zero_()
        torch.cuda._sleep(SPIN_CYCLES)
        call()
        torch.cuda._sleep(1)
        torch.cuda.synchronize()


def _measured(shapes, cold):
    """Rows of a few shapes, which one session of the profiler sees."""
    asked = []
    with profile(activities=[ProfilerActivity.CUDA]) as recorded:
        for build, shape in shapes:
            for about, call in build(*shape):
                call()
                for cached in (False, True):
                    _run(call, cold, cached)
                    asked.append({**about, "cached": cached})
            torch.cuda.empty_cache()
    turns = _turns(recorded)
    if len(turns) != TURNS * len(asked):
        raise RuntimeError(f"{len(turns)} turns of {TURNS * len(asked)} were seen")
    return [_row(about, turns[TURNS * k:TURNS * (k + 1)]) for k, about in enumerate(asked)]


def _arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", required=True)
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument("--parts", type=int, default=1)
    parser.add_argument("--plan-seconds", type=float, default=1e9, help="make no more plans after so many seconds")
    parser.add_argument("--seconds", type=float, default=1e9, help="measure nothing after so many seconds")
    return parser.parse_args()


def _planned(options, begin):
    """Shapes whose plans were made in time; each call runs once."""
    made = []
    for build, shape in cases(options.part, options.parts):
        if time.time() - begin > options.plan_seconds:
            break
        if build is _attention:
            for _, call in build(*shape):
                call()
        made.append((build, shape))
        torch.cuda.synchronize()
    torch.cuda.empty_cache()
    return made


def _wait_for_others(options, begin):
    """Until each part has its plans: whoever makes some runs kernels."""
    with open(f"{options.output}.planned.{options.part}", "w", encoding="utf-8"):
        pass
    others = [f"{options.output}.planned.{part}" for part in range(options.parts)]
    while time.time() - begin < options.seconds and not all(map(os.path.exists, others)):
        time.sleep(0.1)


def main():
    options, begin = _arguments(), time.time()
    torch.manual_seed(0)
    made, rows = _planned(options, begin), []
    print(f"part {options.part}: {len(made)} shapes planned after {time.time() - begin:.0f} s", flush=True)
    _wait_for_others(options, begin)
    cold = torch.empty(COLD_BYTES, device="cuda", dtype=torch.uint8)
    with open(options.output + ".turn", "w", encoding="utf-8") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        for first in range(0, len(made), TOGETHER):
            if time.time() - begin > options.seconds:
                break
            rows += _measured(made[first:first + TOGETHER], cold)
    with open(f"{options.output}.{options.part}", "w", encoding="utf-8") as file:
        json.dump({"schema": "shardplan.cold_kernels/1", "producer": {"program": "tests/accuracy/measure/rates/cold_kernels.py"},
                   "environment": environment(), "rows": rows}, file)
    print(f"part {options.part}: {len(rows)} rows after {time.time() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
