"""scaled_dot_product_attention forward and backward, causal and with a mask, as Hugging Face models call it."""
import torch
import torch.nn.functional as F

from timing import gpu_seconds

# (batch, sequence, query heads, key heads, head width)
SHAPES = [(8, 512, 12, 12, 64), (8, 1024, 12, 12, 64), (4, 1024, 16, 16, 64), (4, 2048, 16, 16, 64), (2, 4096, 16, 16, 64),
          (1, 8192, 16, 16, 64), (1, 1024, 12, 12, 64), (4, 1024, 32, 8, 64), (4, 2048, 32, 8, 64), (1, 4096, 32, 8, 64),
          (4, 1024, 20, 20, 64), (4, 1024, 16, 8, 128), (2, 2048, 16, 8, 128), (4, 2048, 32, 8, 128), (1, 4096, 32, 32, 128),
          (2, 2048, 32, 32, 128), (1, 8192, 32, 8, 128), (4, 512, 32, 32, 128), (1, 512, 16, 8, 128), (2, 2048, 12, 2, 128),
          (2, 1024, 32, 32, 80), (2, 1024, 32, 32, 96), (2, 2048, 32, 32, 96), (2, 1024, 8, 4, 256), (1, 2048, 8, 4, 256),
          (2, 1024, 16, 16, 256), (4, 1024, 14, 2, 64)]


def _case(shape, dtype, causal, masked):
    batch, sequence, heads, key_heads, width = shape
    def tensor(count):
        return torch.randn(batch, count, sequence, width, device="cuda", dtype=dtype, requires_grad=True)
    # A mask makes Hugging Face repeat the keys and values before the call.
    q, k, v = tensor(heads), tensor(heads if masked else key_heads), tensor(heads if masked else key_heads)
    mask = None
    if masked:
        mask = torch.ones(sequence, sequence, device="cuda", dtype=torch.bool).tril()[None, None].expand(batch, 1, -1, -1)
    def forward():
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, enable_gqa=not masked and key_heads < heads)
    out = forward()
    grad = torch.randn_like(out)
    def backward():
        torch.autograd.grad(out, (q, k, v), grad, retain_graph=True)
    about = {"kind": "attention", "dtype": str(dtype).split(".")[1], "causal": causal, "masked": masked, "batch": batch,
             "sequence": sequence, "heads": heads, "key_heads": key_heads, "head_width": width}
    yield {**about, "form": "forward", "seconds": gpu_seconds(forward)}
    yield {**about, "form": "backward", "seconds": gpu_seconds(backward, graphed=False)}


def measure():
    for shape in SHAPES:
        yield from _case(shape, torch.bfloat16, True, False)
    for shape in SHAPES[1:24:3]:
        yield from _case(shape, torch.bfloat16, False, False)
        yield from _case(shape, torch.bfloat16, False, True)
    for shape in ((4, 1024, 12, 12, 64), (2, 1024, 16, 16, 64), (2, 1024, 16, 16, 128)):
        yield from _case(shape, torch.float32, True, False)
