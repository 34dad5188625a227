"""Matrix products as a linear layer's forward and backward call them, over the widths of real models."""
import torch

from timing import gpu_seconds

# (input width, output width) of linear layers of gpt2 to 13B models, heads included.
WIDTHS = [(768, 768), (768, 2304), (768, 3072), (3072, 768), (768, 50257), (896, 4864), (896, 151936), (1024, 1024),
          (1024, 4096), (4096, 1024), (1024, 50304), (1280, 5120), (1536, 8960), (2048, 512), (2048, 2048), (2048, 5632),
          (2048, 8192), (8192, 2048), (2048, 128256), (3072, 8192), (4096, 4096), (4096, 11008), (11008, 4096),
          (4096, 14336), (4096, 32000), (5120, 13824)]
TOKENS = [128, 512, 1024, 2048, 4096, 8192, 16384]
LARGEST = 6e12  # FLOP: larger ones run at the rate of the largest
FEW_WIDTHS = [(768, 3072), (1024, 1024), (2048, 8192), (4096, 4096), (4096, 14336)]
# Attention computed as products: (batch of heads, rows, columns, inner).
BATCHED = [(b * h, s, c, k) for b, h in ((4, 12), (2, 16), (1, 32)) for s in (512, 1024, 2048) for c, k in ((s, 64), (64, s))]


def _forms(tokens, inputs, outputs, dtype):
    x = torch.randn(tokens, inputs, device="cuda", dtype=dtype)
    w = torch.randn(outputs, inputs, device="cuda", dtype=dtype) * inputs**-0.5
    g = torch.randn(tokens, outputs, device="cuda", dtype=dtype)
    yield "forward", (tokens, outputs, inputs), lambda: torch.mm(x, w.t())
    yield "input_gradient", (tokens, inputs, outputs), lambda: torch.mm(g, w)
    yield "weight_gradient", (outputs, inputs, tokens), lambda: torch.mm(g.t(), x)


def measure():
    for dtype, widths, tokens_list in ((torch.bfloat16, WIDTHS, TOKENS), (torch.float16, FEW_WIDTHS, (1024, 4096)),
                                       (torch.float32, FEW_WIDTHS, (1024, 4096))):
        for inputs, outputs in widths:
            for tokens in tokens_list:
                if 2.0 * tokens * inputs * outputs > (LARGEST if dtype != torch.float32 else LARGEST / 10):
                    continue
                for form, (m, n, k), work in _forms(tokens, inputs, outputs, dtype):
                    yield {"kind": "product", "form": form, "dtype": str(dtype).split(".")[1], "m": m, "n": n, "k": k,
                           "batch": 1, "seconds": gpu_seconds(work)}
    for batch, m, n, k in BATCHED:
        a = torch.randn(batch, m, k, device="cuda", dtype=torch.bfloat16)
        b = torch.randn(batch, k, n, device="cuda", dtype=torch.bfloat16)
        yield {"kind": "product", "form": "batched", "dtype": "bfloat16", "m": m, "n": n, "k": k, "batch": batch,
               "seconds": gpu_seconds(lambda: torch.bmm(a, b))}
