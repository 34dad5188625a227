"""Count what PyTorch's context-parallel attention allocates, without a GPU.

The ring of torch.distributed.tensor.experimental runs on fake CUDA tensors and a fake process
group, as the last of the ranks, which merges most. Printed are bytes beside the inputs and the
result: the most that the forward pass has at once, and the same of the backward pass beside its
own inputs.

    python kept_tensors/count_key_blocks.py --ranks 4 --tokens 1024 --heads 16 --key-heads 4 --head-dim 64
"""

import argparse
import json
import weakref

import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.tensor.experimental._context_parallel import _attention as ring
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

UNIT = 512  # of the caching allocator


class Live(TorchDispatchMode):
    """Bytes of storages that exist, and the most at once."""

    def __init__(self):
        super().__init__()
        self.bytes = self.peak = 0
        self.known = set()

    def watch(self, tensor):
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self.known:
            return
        size = -(-storage.nbytes() // UNIT) * UNIT
        self.known.add(key)
        self.bytes += size
        self.peak = max(self.peak, self.bytes)
        weakref.finalize(storage, self.forget, key, size)

    def forget(self, key, size):
        self.known.discard(key)
        self.bytes -= size

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(out):
            if isinstance(leaf, torch.Tensor):
                self.watch(leaf)
        return out


def heads_first(batch, heads, tokens, dim):
    """As transformers hands it to attention: a view of [batch, tokens, heads, dim]."""
    return torch.empty(batch, tokens, heads, dim, dtype=torch.bfloat16, device="cuda").transpose(1, 2)


def count(options):
    """Bytes at once of both passes."""
    # A fake wait makes a copy; the real one hands on what has arrived.
    ring.ft_c.wait_tensor = lambda tensor: tensor
    ring._cp_options.rotate_method = getattr(ring._RotateMethod, options.rotate.upper())
    group = dist.group.WORLD
    tokens = options.tokens // options.ranks
    q = heads_first(options.batch, options.heads, tokens, options.head_dim)
    k = heads_first(options.batch, options.key_heads, tokens, options.head_dim)
    v = heads_first(options.batch, options.key_heads, tokens, options.head_dim)
    with Live() as live:
        out, lse, *rest = ring._templated_ring_attention(
            group, 2, torch.ops.aten._scaled_dot_product_flash_attention, q, k, v, is_causal=True)
        forward = live.peak
    cum_q, cum_k, max_q, max_k, seed, offset, _ = rest
    grad = torch.empty_like(out)
    with Live() as live:
        result = ring._templated_ring_attention_backward(
            group, 2, torch.ops.aten._scaled_dot_product_flash_attention_backward.default,
            grad_out=grad, grad_out_name="grad_out", query=q, key=k, value=v, out=out,
            logsumexp=lse, is_causal=True, cum_seq_q=cum_q, cum_seq_k=cum_k, max_q=max_q,
            max_k=max_k, dropout_p=0.0, philox_seed=seed, philox_offset=offset)
        backward = live.peak
    assert result[0].shape == q.shape
    rows = options.batch * tokens * options.head_dim * 2
    return {"queries": rows * options.heads, "keys_and_values": 2 * rows * options.key_heads,
            "forward": forward, "backward": backward}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=4096, help="of the whole sequence")
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--key-heads", type=int, default=16)
    parser.add_argument("--head-dim", type=int, default=64)
    parser.add_argument("--rotate", choices=["all_gather", "all_to_all"], default="all_gather")
    options = parser.parse_args()
    dist.init_process_group("fake", rank=options.ranks - 1, world_size=options.ranks,
                            store=FakeStore())
    with FakeTensorMode():
        print(json.dumps(vars(options) | count(options)))


if __name__ == "__main__":
    main()
