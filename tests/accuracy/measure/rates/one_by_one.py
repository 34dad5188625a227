"""What a kernel takes that is started by itself, beside the same kernel in a CUDA graph: the GPU's own time between
one launch and the next. The host is ahead: a kernel that waits runs first, and all launches are queued behind it.

    python one_by_one.py --output h100-one-by-one.json

Single operations, and passes of two Llama blocks forward and backward, eager, in bf16 and under autocast, with tied
shapes as steps have them. Of each: kernels of one call (by the profiler), microseconds of the GPU's one by one, from a
graph, and the sum of the kernels' own as the profiler has them.
"""
import argparse
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

import torch
from torch.profiler import ProfilerActivity, profile

from environment import environment

QUEUE = 900  # launches that the driver takes before the host has to wait: 1,024
AHEAD = 60e-3  # seconds that the waiting kernel takes


def _cycles_per_second():
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda._sleep(1000000)
    start.record()
    torch.cuda._sleep(20000000)
    end.record()
    torch.cuda.synchronize()
    return 20000000 / (start.elapsed_time(end) / 1e3)


def _kernels(work):
    """(how many, their seconds), copies and fills too."""
    work()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        work()
        torch.cuda.synchronize()
    events = [e for e in profiler.profiler.kineto_results.events()
              if e.device_type() == torch.autograd.DeviceType.CUDA and not e.is_user_annotation()]
    return len(events), sum(e.duration_ns() for e in events) / 1e9


def _median(values):
    return sorted(values)[len(values) // 2]


def _behind(run, times, cycles):
    """Seconds of one of `times` calls, all of which are queued before the first starts; None where they were not."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    samples = []
    for _ in range(7):
        torch.cuda.synchronize()
        torch.cuda._sleep(cycles)
        start.record()
        for _ in range(times):
            run()
        end.record()
        if start.query():
            return None
        torch.cuda.synchronize()
        samples.append(start.elapsed_time(end) / 1e3 / times)
    return _median(samples)


def _graphed(run, times):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(times):
            run()
    graph.replay()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    samples = []
    for _ in range(7):
        torch.cuda.synchronize()
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        samples.append(start.elapsed_time(end) / 1e3 / times)
    return _median(samples)


def _row(name, work, cycles):
    for _ in range(3):
        work()
    count, seconds = _kernels(work)
    times = max(1, min(200, QUEUE // count))
    row = {"what": name, "kernels": count, "kernel_seconds": seconds, "times": times}
    try:
        row["behind"] = _behind(work, times, cycles)
        row["graphed"] = _graphed(work, times)
    except RuntimeError as error:
        row["error"] = str(error)[:200]
        torch.cuda.synchronize()
    if row.get("behind") and row.get("graphed"):
        each = (row["behind"] - row["graphed"]) / count
        print(f"{name:44s} {count:4d} kernels  one by one {row['behind'] * 1e6:9.2f}  graph {row['graphed'] * 1e6:9.2f}  "
              f"profiled {seconds * 1e6:9.2f} us  more a kernel {each * 1e6:6.3f}  over profiled "
              f"{(row['behind'] - seconds) / count * 1e6:6.3f}", flush=True)
    else:
        print(name, row, flush=True)
    return row


def _operations():
    half = {"device": "cuda", "dtype": torch.bfloat16}
    for size in (2**10, 2**20, 2**24):
        x, y = torch.randn(size, **half), torch.randn(size, **half)
        out = torch.empty_like(x)
        yield f"add {size} bf16", lambda x=x, y=y, out=out: torch.add(x, y, out=out)
        single = torch.empty(size, device="cuda")
        yield f"cast {size} bf16 to fp32", lambda x=x, s=single: s.copy_(x)
    for rows, width in ((512, 768), (4096, 2048), (4096, 4096)):
        x = torch.randn(rows, width, **half)
        yield f"mean {rows}x{width}", lambda x=x: x.mean(-1)
        yield f"layer_norm {rows}x{width}", lambda x=x, w=width: torch.nn.functional.layer_norm(x, (w,))
        yield f"softmax {rows}x{width}", lambda x=x: torch.softmax(x, -1)
        yield f"turned copy {rows}x{width}", lambda x=x: x.t().contiguous()
    for m, n, k in ((512, 768, 768), (2048, 2048, 2048), (4096, 8192, 2048), (4096, 2048, 8192)):
        a, b, c = torch.randn(m, k, **half), torch.randn(k, n, **half), torch.empty(m, n, **half)
        yield f"product {m}x{n}x{k}", lambda a=a, b=b, c=c: torch.mm(a, b, out=c)
    q = torch.randn(4, 32, 1024, 64, **half)
    yield "attention", lambda q=q: torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
    tensors = [torch.randn(2048, 2048, **half) for _ in range(64)]
    yield "foreach mul, 64 of 4M", lambda t=tensors: torch._foreach_mul_(t, 1.0)


def _blocks(autocast, hidden, tokens):
    """Two blocks forward and backward; gradients are let go, so that autograd hands each over as it is."""
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding

    config = LlamaConfig(hidden_size=hidden, intermediate_size=4 * hidden, num_attention_heads=hidden // 64,
                         num_key_value_heads=max(1, hidden // 256), vocab_size=1024, attn_implementation="sdpa")
    dtype = torch.float32 if autocast else torch.bfloat16
    layers = [LlamaDecoderLayer(config, i).to("cuda", dtype).train() for i in range(2)]
    rotary = LlamaRotaryEmbedding(config).to("cuda")
    x = torch.randn(2, tokens, hidden, device="cuda", dtype=torch.bfloat16 if not autocast else torch.float32,
                    requires_grad=True)
    positions = torch.arange(tokens, device="cuda")[None]
    embeddings = rotary(x, positions)
    parameters = [p for layer in layers for p in layer.parameters()]

    def work():
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=autocast, cache_enabled=False):
            y = x
            for layer in layers:
                y = layer(y, position_embeddings=embeddings)
                y = y[0] if isinstance(y, tuple) else y
        y.sum().backward()
        for p in parameters:
            p.grad = None
        x.grad = None

    return f"blocks {'autocast' if autocast else 'bf16'} {hidden} wide, 2x{tokens}", work


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    torch.manual_seed(0)
    cycles = int(_cycles_per_second() * AHEAD)
    rows = [_row(name, work, cycles) for name, work in _operations()]
    for autocast in (False, True):
        for hidden, tokens in ((1024, 512), (2048, 1024), (2048, 2048)):
            rows.append(_row(*_blocks(autocast, hidden, tokens), cycles))
    record = {"schema": "shardplan.one_by_one/1", "producer": {"program": "tests/accuracy/measure/rates/one_by_one.py"},
              "environment": environment(), "rows": rows}
    with open(options.output, "w", encoding="utf-8") as file:
        json.dump(record, file, indent=1)
