"""What autograd keeps of a forward pass on the CPU, and the golden files that say so: for saved_tensors.py and
saved_tensors_sparse.py."""
import argparse
import itertools
import json
import pathlib
import weakref

import torch
import transformers

GOLDEN = pathlib.Path(__file__).resolve().parents[3] / "golden"


def arguments(about: str, file: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--out", default=GOLDEN / file, type=pathlib.Path)
    parser.add_argument("--only", help="a case to print instead of writing the file")
    return parser.parse_args()


class Saved:
    """What a node of the graph has saved, for as long as the node lives."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor.detach()  # or node and result would hold each other


def saved_storages(model: torch.nn.Module, inputs: dict, alive: bool = False) -> dict:
    """Every storage that autograd keeps and that is no parameter, buffer or input: bytes, tensors, and
    [count, bytes, dtype, shape of the first tensor] of those that are alike. `alive`: without those of nodes that
    nothing needs any more when the forward pass ends."""
    given = [value for value in inputs.values() if isinstance(value, torch.Tensor)]
    known = [*model.parameters(), *model.buffers(), *given]
    outside = {t.untyped_storage().data_ptr() for t in known}
    kept: dict[int, torch.Tensor] = {}
    holders: list[weakref.ref] = []

    def keep(tensor: torch.Tensor) -> None:
        pointer = tensor.untyped_storage().data_ptr()
        if pointer not in outside:
            kept.setdefault(pointer, tensor.detach())

    def pack(tensor: torch.Tensor):
        if not alive:
            keep(tensor)
            return tensor
        holder = Saved(tensor)
        holders.append(weakref.ref(holder))
        return holder

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda held: getattr(held, "tensor", held)):
        output = model(**inputs)
    assert output.loss.requires_grad
    for holder in holders:
        if holder() is not None:
            keep(holder().tensor)
    storages = sorted(
        (t.untyped_storage().nbytes(), str(t.dtype).removeprefix("torch."), list(t.shape))
        for t in kept.values()
    )
    groups = [[len(list(group)), *key] for key, group in itertools.groupby(storages)]
    return {"bytes": sum(size for size, _, _ in storages), "tensors": len(storages), "storages": groups}


def print_cases(cases: list[dict]) -> None:
    for case in cases:
        print(case["attention"], case["batch"], case["dtype"], case["bytes"], case["tensors"])
        for storage in case["storages"]:
            print("  ", *storage)


def write_golden(out: pathlib.Path, program: str, cases: list[dict], orders: dict) -> None:
    """`orders`: the parameters of each configuration, in the order of the model."""
    about = {
        "about": "bytes of the storages that autograd keeps after a forward pass in train mode",
        "made_by": f"tests/accuracy/measure/kept_tensors/{program}",
        "transformers": transformers.__version__,
        "torch": torch.__version__.split("+")[0],
    }
    lines = ",\n".join("    " + json.dumps(case) for case in cases)
    head = json.dumps(about, indent=2).rstrip("}").rstrip()
    names = ",\n".join(f"    {json.dumps(k)}: {json.dumps(v)}" for k, v in orders.items())
    out.write_text(
        f'{head},\n  "parameter_order": {{\n{names}\n  }},\n  "cases": [\n{lines}\n  ]\n}}\n'
    )
    print(f"{len(cases)} cases")
