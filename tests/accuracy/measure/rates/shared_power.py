"""How a GPU shares its power between products, attention and kernels that move bytes; attention by the kernel that
PyTorch is told to take. Nothing of the GPU is set. Prints a line a pair: `first` and `second` in turn, each timed.

    python rates/shared_power.py > rows.jsonl
"""
import json
import subprocess
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

device = "cuda"
torch.manual_seed(0)
a = torch.randn(16384, 4096, device=device, dtype=torch.bfloat16)
w = torch.randn(4096, 14336, device=device, dtype=torch.bfloat16)
out = torch.empty(16384, 14336, device=device, dtype=torch.bfloat16)
x = torch.randn(256 * 2**20, device=device, dtype=torch.bfloat16)
y = torch.randn_like(x)
z = torch.empty_like(x)
q = torch.randn(2, 32, 8192, 128, device=device, dtype=torch.bfloat16)
k, v = torch.randn_like(q), torch.randn_like(q)


def products(n):
    for _ in range(n):
        torch.mm(a, w, out=out)


def moves(n):
    for _ in range(n):
        torch.add(x, y, out=z)


def attends(n):
    for _ in range(n):
        F.scaled_dot_product_attention(q, k, v, is_causal=True)


def events(n):
    return [torch.cuda.Event(enable_timing=True) for _ in range(n)]


def watch():
    return subprocess.Popen(["nvidia-smi", "-i", "0", "--query-gpu=clocks.sm,power.draw.instant,temperature.gpu",
                             "--format=csv,noheader,nounits", "-lms", "100"], stdout=subprocess.PIPE, text=True)


def readings(process):
    process.terminate()
    rows = [line.split(",") for line in process.communicate()[0].splitlines() if line.count(",") == 2]
    try:
        rows = [[float(cell) for cell in row] for row in rows][-20:]
        return {"clock": sum(r[0] for r in rows) / len(rows), "watts": sum(r[1] for r in rows) / len(rows)}
    except (ValueError, ZeroDivisionError):
        return {}


def run(name, first, second, seconds=4.0):
    """first and second in turn, each timed over the last part."""
    watcher = watch()
    begin, took = time.time(), []
    while time.time() - begin < seconds:
        e = events(3)
        e[0].record()
        first()
        e[1].record()
        second()
        e[2].record()
        if len(took) % 8 == 7:
            e[2].synchronize()
        took.append(e)
    torch.cuda.synchronize()
    tail = took[len(took) // 2:]
    row = {"name": name, "first_ms": sum(e[0].elapsed_time(e[1]) for e in tail) / len(tail),
           "second_ms": sum(e[1].elapsed_time(e[2]) for e in tail) / len(tail), **readings(watcher)}
    print(json.dumps(row), flush=True)


def none():
    pass


run("moves alone", lambda: moves(16), none)
run("products alone", lambda: products(8), none)
run("attention alone", lambda: attends(8), none)
qg, kg, vg = (t.detach().clone().requires_grad_() for t in (q, k, v))
go = torch.randn_like(q)
for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
    for causal in (True, False):
        try:
            with sdpa_kernel(backend):
                result = F.scaled_dot_product_attention(qg, kg, vg, is_causal=causal)
                run(f"{backend.name} causal={causal}", lambda: F.scaled_dot_product_attention(qg, kg, vg, is_causal=causal),
                    lambda: torch.autograd.grad(result, (qg, kg, vg), go, retain_graph=True), 2.5)
        except Exception as e:
            print(json.dumps({"name": backend.name, "error": str(e)[:300]}), flush=True)
for share in (2, 8, 32):
    run(f"8 products, {share} moves", lambda: products(8), lambda: moves(share))
run("8 products, 2 attention", lambda: products(8), lambda: attends(2))
