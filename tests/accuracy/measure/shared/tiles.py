"""Feed-forwards over parts of the sequence (`mlp_tiles`), as DeepSpeed's TiledMLP runs them without its engine: for
run_single.py."""
import torch


class Tiles(torch.autograd.Function):
    """`run` over `count` parts of `x`; keeps `x` alone, and backward runs each part again."""

    @staticmethod
    def forward(ctx, run, count, x):
        ctx.run, ctx.count = run, count
        ctx.save_for_backward(x)
        with torch.no_grad():
            results = [run(part) for part in x.chunk(count, -2)]
        return torch.cat(results, -2)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        width = x.shape[-1]
        rows, above = x.detach().view(-1, width), gradient.view(-1, width)
        below = torch.zeros_like(rows)
        places = [torch.chunk(tensor, ctx.count) for tensor in (rows, below, above)]
        for part, own, incoming in zip(*places):
            part.requires_grad_(True)
            part.grad = own
            with torch.enable_grad():
                result = ctx.run(part)
            torch.autograd.backward(result, incoming)
        return None, None, below.view(x.shape)


def tile(model, count):
    """The feed-forward of each layer."""
    for name, module in model.named_modules():
        if name.endswith(".mlp"):
            whole = module.forward
            module.forward = lambda x, run=whole: Tiles.apply(run, count, x)
