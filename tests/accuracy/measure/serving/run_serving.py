"""Passes of a serving engine, timed: a decoder as engines run it, in PyTorch's own kernels.

    python serving/run_serving.py cases/serving.json --output serving.jsonl

Packed q, k, v and gate, up; norms, rotation and gates fused by Inductor; keys and values in tensors that are there
from the start; one CUDA graph for a pass, so that no Python runs between its kernels. A case is a job (shardplan.job/1) of kind inference with an engine: `batch` sequences that have prompt_length + new_tokens / 2
tokens decode one token each, and one prompt of prompt_length tokens is taken in. One JSON line per case: seconds of both
passes, medians of 20.
"""

import argparse
import json
import pathlib

import torch
import torch.nn.functional as F

HERE = pathlib.Path(__file__).parent


class Weights:
    """Random ones in bf16; [out, in] as torch.nn.Linear has them."""

    def __init__(self, c):
        h, layers = c["hidden_size"], c["num_hidden_layers"]
        self.heads = c["num_attention_heads"]
        self.kv = c.get("num_key_value_heads", self.heads)
        self.width = c.get("head_dim") or h // self.heads
        make = lambda *shape: torch.randn(*shape, device="cuda", dtype=torch.bfloat16) * 0.02
        q, kv = self.heads * self.width, self.kv * self.width
        self.embed, self.head = make(c["vocab_size"], h), make(c["vocab_size"], h)
        self.layers = [
            dict(qkv=make(q + 2 * kv, h), out=make(h, q), up=make(2 * c["intermediate_size"], h),
                 down=make(h, c["intermediate_size"]), norm1=make(h), norm2=make(h))
            for _ in range(layers)
        ]
        self.norm = make(h)


@torch.compile
def normed(x, weight):
    return F.rms_norm(x, x.shape[-1:], weight)


@torch.compile
def added_and_normed(x, more, weight):
    x = x + more
    return x, F.rms_norm(x, x.shape[-1:], weight)


@torch.compile
def gated(both):
    gate, up = both.chunk(2, dim=-1)
    return F.silu(gate) * up


@torch.compile
def split_and_turned(qkv, cos, sin, heads, kv, width):
    """[batch, tokens, (heads + 2 kv) width] to q, k, v of [batch, heads, tokens, width]."""
    batch, tokens, _ = qkv.shape
    q, k, v = qkv.split([heads * width, kv * width, kv * width], dim=-1)

    def laid(t, n):
        return t.view(batch, tokens, n, width).transpose(1, 2)

    def turned(x):
        a, b = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-b, a), dim=-1) * sin

    return turned(laid(q, heads)), turned(laid(k, kv)), laid(v, kv)


@torch.compile
def chosen(logits):
    return logits.float().argmax(-1)


def network(w, ids, cos, sin, attend):
    """ids: [batch, tokens]. The next token of each sequence: [batch]."""
    batch, tokens = ids.shape
    x = F.embedding(ids, w.embed)
    n = normed(x, w.layers[0]["norm1"])
    for i, layer in enumerate(w.layers):
        q, k, v = split_and_turned(F.linear(n, layer["qkv"]), cos, sin, w.heads, w.kv, w.width)
        a = attend(i, q, k, v).transpose(1, 2).reshape(batch, tokens, -1)
        x, n = added_and_normed(x, F.linear(a, layer["out"]), layer["norm2"])
        following = w.layers[i + 1]["norm1"] if i + 1 < len(w.layers) else w.norm
        x, n = added_and_normed(x, F.linear(gated(F.linear(n, layer["up"])), layer["down"]), following)
    return chosen(F.linear(n[:, -1], w.head))


def captured(run):
    """The kernels of `run` as one CUDA graph, which keeps the tensors that it reads."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()

    kept = graph, run
    return lambda: kept[0].replay()


def decode_pass(w, batch, context):
    shape = (batch, w.kv, context, w.width)
    caches = [(torch.randn(shape, device="cuda", dtype=torch.bfloat16),
               torch.randn(shape, device="cuda", dtype=torch.bfloat16)) for _ in w.layers]
    cos, sin = (torch.randn(1, w.width, device="cuda", dtype=torch.bfloat16) for _ in range(2))

    def attend(i, q, k, v):
        keys, values = caches[i]
        keys[:, :, -1:] = k
        values[:, :, -1:] = v
        # Heads that share keys are rows of one query: the kernel reads keys and values once.
        q = q.reshape(batch, w.kv, w.heads // w.kv, w.width)
        return F.scaled_dot_product_attention(q, keys, values).reshape(batch, w.heads, 1, w.width)

    ids = torch.randint(0, w.embed.shape[0], (batch, 1), device="cuda")
    return captured(lambda: network(w, ids, cos, sin, attend))


def prompt_pass(w, tokens):
    cos, sin = (torch.randn(tokens, w.width, device="cuda", dtype=torch.bfloat16) for _ in range(2))

    def attend(i, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=w.heads != w.kv)

    ids = torch.randint(0, w.embed.shape[0], (1, tokens), device="cuda")
    return captured(lambda: network(w, ids, cos, sin, attend))


@torch.no_grad()
def median_seconds(run, warm=5, times=20):
    for _ in range(warm):
        run()
    seconds = []
    for _ in range(times):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        end.synchronize()
        seconds.append(begin.elapsed_time(end) / 1e3)
    return sorted(seconds)[times // 2]


@torch.no_grad()
def measured(case, configs):
    w = case["job"]["workload"]
    weights = Weights(json.loads((configs / case["job"]["model"]).read_text()))
    context = w["prompt_length"] + w["new_tokens"] // 2
    out = {"decode_seconds": median_seconds(decode_pass(weights, w["batch"], context))}
    torch.cuda.empty_cache()
    out["prompt_seconds"] = median_seconds(prompt_pass(weights, w["prompt_length"]))
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--only")
    a = parser.parse_args()
    for case in json.loads(a.cases.read_text()):
        if a.only and case["name"] != a.only:
            continue
        line = {"name": case["name"], "gpu": torch.cuda.get_device_name(),
                "torch": torch.__version__, "job": case["job"]}
        try:
            line["measured"] = measured(case, a.cases.parent)
        except torch.OutOfMemoryError as error:
            line["error"] = str(error).split("\n")[0]
        with a.output.open("a") as out:
            out.write(json.dumps(line) + "\n")
        print(line["name"], line.get("measured") or line["error"], flush=True)
        torch._dynamo.reset()
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
