"""What a tiled feed-forward has alive on the CPU in both passes, and the golden file that says so:

    python kept_tensors/tiled_mlp.py --deepspeed DeepSpeed/deepspeed/runtime/sequence_parallel/ulysses_sp.py \\
        --axolotl axolotl/src/axolotl/monkeypatch/tiled_mlp/base.py --verl verl/verl/models/transformers/tiled_mlp.py

Each function is taken out of the file that has it, and runs Llama's feed-forward of transformers. Bytes of all storages
that operations make, in whole allocation units of the GPU's allocator: at most, and what the forward pass leaves."""
import argparse
import ast
import json
import pathlib
import threading
import weakref

import torch
import transformers
from torch.utils._python_dispatch import TorchDispatchMode
from transformers.models.llama.modeling_llama import LlamaMLP

GOLDEN = pathlib.Path(__file__).resolve().parents[3] / "golden" / "tiled_mlp.json"
UNIT = 512
CASES = [
    # function, parameters, autocast, batch, sequence, parts, backward passes, trained weights
    ("autograd", "bfloat16", False, 1, 1024, 4, 1, "all"),
    ("autograd", "bfloat16", False, 2, 1024, 3, 1, "all"),
    ("autograd", "float32", True, 1, 1024, 4, 1, "all"),
    ("autograd", "bfloat16", False, 1, 1024, 8, 1, "none"),
    ("copies", "bfloat16", False, 1, 1024, 4, 1, "all"),
    ("copies", "bfloat16", False, 1, 1024, 4, 2, "all"),
    ("copies", "bfloat16", False, 2, 1024, 3, 1, "all"),
    ("copies", "float32", True, 1, 1024, 4, 1, "all"),
    ("hooks", "bfloat16", False, 1, 1024, 4, 1, "all"),
    ("hooks", "float32", True, 1, 1024, 4, 1, "all"),
]


class Live(TorchDispatchMode):
    """Bytes of storages that operations have made, while they are alive."""

    def __init__(self, known: list[torch.Tensor]) -> None:
        super().__init__()
        self.seen = {t.untyped_storage()._cdata for t in known}
        self.now = self.peak = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(tensor, torch.Tensor):
                self.note(tensor.untyped_storage())
        return result

    def note(self, storage: torch.UntypedStorage) -> None:
        key = storage._cdata
        if key in self.seen:
            return
        size = -(-storage.nbytes() // UNIT) * UNIT
        self.seen.add(key)
        self.now += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self.forget, key, size)

    def forget(self, key: int, size: int) -> None:
        self.seen.discard(key)
        self.now -= size


def function_of(path: pathlib.Path) -> type:
    names = {"TiledMLP", "GradientAccumulator", "_defer_fsdp2_reshard", "_find_fsdp2_module", "_TILED_MLP_ACCUM_FP32"}
    tree = ast.parse(path.read_text())
    tree.body = [n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom)) and "deepspeed" not in ast.dump(n)
                 or getattr(n, "name", None) in names
                 or isinstance(n, ast.Assign) and getattr(n.targets[0], "id", None) in names]
    space = {"torch": torch, "threading": threading}
    exec(compile(tree, str(path), "exec"), space)
    return space["TiledMLP"]


def measure(function: type, case: tuple) -> dict:
    sums, params, autocast, batch, sequence, parts, passes, trained = case
    hidden, ffn = 256, 640
    config = transformers.LlamaConfig(hidden_size=hidden, intermediate_size=ffn)
    mlp = LlamaMLP(config).to(getattr(torch, params)).requires_grad_(trained == "all")

    def forward(module, rows):
        return module.down_proj(module.act_fn(module.gate_proj(rows)) * module.up_proj(rows))

    row = {"sums": sums, "params": params, "autocast": autocast, "batch": batch, "sequence": sequence, "parts": parts,
           "accumulates": passes > 1, "trains": trained == "all", "hidden": hidden, "intermediate": ffn}
    for _ in range(passes):
        x = torch.randn(batch, sequence, hidden, dtype=getattr(torch, params), requires_grad=True)
        before = [p.grad for p in mlp.parameters() if p.grad is not None]
        live = Live([x, *mlp.parameters(), *before])
        del before
        with live:
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                y = function.apply(forward, mlp, x, parts, [p for p in mlp.parameters() if p.requires_grad])
            row |= {"forward_peak": live.peak, "forward_left": live.now}
            live.peak = live.now
            gradient = torch.ones(y.shape, dtype=y.dtype)
            live.seen.add(gradient.untyped_storage()._cdata)
            start = live.now
            given = -(-gradient.untyped_storage().nbytes() // UNIT) * UNIT
            live.peak = start
            torch.autograd.backward(y, gradient)
            row |= {"backward_peak": live.peak - given, "backward_left": live.now - given}
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("deepspeed", "axolotl", "verl"):
        parser.add_argument("--" + name, type=pathlib.Path, required=True)
    parser.add_argument("--out", default=GOLDEN, type=pathlib.Path)
    given = parser.parse_args()
    functions = {"autograd": function_of(given.deepspeed), "copies": function_of(given.axolotl),
                 "hooks": function_of(given.verl)}
    rows = [measure(functions[case[0]], case) for case in CASES]
    versions = {"torch": torch.__version__, "transformers": transformers.__version__, "deepspeed": "0.19.6",
                "axolotl": "067b021c8", "verl": "main of August 2026"}
    given.out.write_text(json.dumps({"versions": versions, "cases": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
