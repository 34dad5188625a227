"""Operations that move bytes: one kernel each unless said, over sizes from a few KiB to GiB."""
import torch
import torch.nn.functional as F

from timing import gpu_seconds

ROWS_WIDTHS = [(128, 768), (1024, 768), (4096, 1024), (8192, 768), (8192, 2048), (4096, 4096), (16384, 4096), (8192, 14336)]
LOGITS = [(1024, 50257), (4096, 32000), (4096, 50304), (2048, 151936), (4096, 128256)]


def _row(name, dtype, elements, bytes_moved, seconds, kernels=1):
    return {"kind": "memory", "form": name, "dtype": str(dtype).split(".")[1], "elements": elements, "bytes": bytes_moved,
            "kernels": kernels, "seconds": seconds}


def _elementwise(rows, width, dtype):
    n, size = rows * width, torch.finfo(dtype).bits // 8
    x, y = torch.randn(rows, width, device="cuda", dtype=dtype), torch.randn(rows, width, device="cuda", dtype=dtype)
    w = torch.randn(width, device="cuda", dtype=dtype)
    other = torch.float32 if dtype == torch.bfloat16 else torch.bfloat16
    osize = torch.finfo(other).bits // 8
    heads = x.view(1, rows, width // 64, 64).transpose(1, 2)
    for name, moved, work in (
            ("add", 3 * n * size, lambda: x + y), ("mul", 3 * n * size, lambda: x * y),
            ("scale", 2 * n * size, lambda: x * 0.5), ("mul_row", 2 * n * size, lambda: x * w),
            ("silu", 2 * n * size, lambda: F.silu(x)), ("gelu", 2 * n * size, lambda: F.gelu(x)),
            ("gelu_tanh", 2 * n * size, lambda: F.gelu(x, approximate="tanh")), ("tanh", 2 * n * size, lambda: torch.tanh(x)),
            ("power", 2 * n * size, lambda: x.pow(3.0)), ("square", 2 * n * size, lambda: x.pow(2)),
            ("cast", n * (size + osize), lambda: x.to(other)), ("copy", 2 * n * size, lambda: x.clone()),
            ("transpose_copy", 2 * n * size, lambda: heads.contiguous()),
            ("cat_halves", 2 * n * size, lambda: torch.cat((heads[..., 32:], heads[..., :32]), -1)),
            ("mean_row", n * size, lambda: x.mean(-1, keepdim=True)), ("sum_rows", n * size, lambda: x.sum(0)),
            ("dropout", 2 * n * size + n, lambda: F.dropout(x, 0.1)),
            ("silu_backward", 3 * n * size, lambda: torch.ops.aten.silu_backward(x, y)),
            ("gelu_backward", 3 * n * size, lambda: torch.ops.aten.gelu_backward(x, y)),
            ("zero", n * size, lambda: x.zero_())):
        yield _row(name, dtype, n, moved, gpu_seconds(work))


def _norms(rows, width, dtype):
    n, size = rows * width, torch.finfo(dtype).bits // 8
    x = torch.randn(rows, width, device="cuda", dtype=dtype)
    w, b, g = torch.ones(width, device="cuda", dtype=dtype), torch.zeros(width, device="cuda", dtype=dtype), torch.randn_like(x)
    yield _row("layer_norm", dtype, n, 2 * n * size, gpu_seconds(lambda: F.layer_norm(x, (width,), w, b)))
    _, mean, rstd = torch.ops.aten.native_layer_norm(x, (width,), w, b, 1e-5)
    yield _row("layer_norm_backward", dtype, n, 5 * n * size,  # two kernels read x and g, one writes dx
               gpu_seconds(lambda: torch.ops.aten.native_layer_norm_backward(g, x, (width,), mean, rstd, w, b, [True] * 3)), 2)
    yield _row("softmax", dtype, n, 2 * n * size, gpu_seconds(lambda: torch.softmax(x, -1)))
    y = torch.softmax(x, -1)
    yield _row("softmax_backward", dtype, n, 3 * n * size,
               gpu_seconds(lambda: torch.ops.aten._softmax_backward_data(g, y, -1, dtype)))


def _logits(tokens, vocabulary):
    n = tokens * vocabulary
    x = torch.randn(tokens, vocabulary, device="cuda")
    labels = torch.randint(0, vocabulary, (tokens,), device="cuda")
    yield _row("log_softmax", x.dtype, n, 8 * n, gpu_seconds(lambda: torch.log_softmax(x, -1)))
    y = torch.log_softmax(x, -1)
    g = torch.randn_like(x)
    yield _row("log_softmax_backward", x.dtype, n, 12 * n,
               gpu_seconds(lambda: torch.ops.aten._log_softmax_backward_data(g, y, -1, torch.float32)))
    yield _row("nll_loss_backward", x.dtype, n, 4 * n, gpu_seconds(lambda: torch.ops.aten.nll_loss_backward(
        torch.ones((), device="cuda"), y, labels, None, 1, -100, torch.tensor(float(tokens), device="cuda")), graphed=False))


def _embedding(tokens, vocabulary, width, dtype):
    n, size = tokens * width, torch.finfo(dtype).bits // 8
    table = torch.randn(vocabulary, width, device="cuda", dtype=dtype)
    ids = torch.randint(0, vocabulary, (1, tokens), device="cuda")
    g = torch.randn(1, tokens, width, device="cuda", dtype=dtype)
    yield _row("embedding", dtype, n, 2 * n * size, gpu_seconds(lambda: F.embedding(ids, table)))
    yield _row("embedding_backward", dtype, n, vocabulary * width * size + 3 * n * size,
               gpu_seconds(lambda: torch.ops.aten.embedding_dense_backward(g, ids, vocabulary, -1, False), graphed=False))


def _optimizer(count, each, dtype, implementation):
    n, size = count * each, torch.finfo(dtype).bits // 8
    params = [torch.randn(each, device="cuda", dtype=dtype, requires_grad=True) for _ in range(count)]
    for p in params:
        p.grad = torch.randn_like(p)
    optimizer = torch.optim.AdamW(params, lr=1e-5, **{implementation: True})
    yield _row(f"adamw_{implementation}", dtype, n, 7 * n * size, gpu_seconds(optimizer.step, graphed=False), count)
    yield _row("clip", dtype, n, 3 * n * size,
               gpu_seconds(lambda: torch.nn.utils.clip_grad_norm_(params, 1.0), graphed=False), count)


def measure():
    for dtype in (torch.bfloat16, torch.float32):
        for rows, width in ROWS_WIDTHS:
            yield from _elementwise(rows, width, dtype)
            yield from _norms(rows, width, dtype)
        for count, each in ((64, 1 << 20), (200, 4 << 20), (300, 1 << 22)):
            for implementation in ("fused", "foreach"):
                yield from _optimizer(count, each, dtype, implementation)
        for vocabulary, width in ((50257, 768), (128256, 2048)):
            yield from _embedding(8192, vocabulary, width, dtype)
    for tokens, vocabulary in LOGITS:
        yield from _logits(tokens, vocabulary)
