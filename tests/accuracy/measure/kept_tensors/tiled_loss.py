"""What ALST's tiled loss has alive on the CPU in both passes, and the golden file that says so:

    python kept_tensors/tiled_loss.py --deepspeed DeepSpeed/deepspeed/runtime/sequence_parallel/ulysses_sp.py

DeepSpeed's TiledFusedLogitsLoss is taken out of its file and runs a head and transformers' loss, as ArcticTraining
calls them. Bytes of all storages that operations make, in whole allocation units of the GPU's allocator."""
import argparse
import ast
import json
import pathlib

import torch
import transformers
from tiled_mlp import Live, UNIT
from transformers.loss.loss_utils import ForCausalLMLoss

GOLDEN = pathlib.Path(__file__).resolve().parents[3] / "golden" / "tiled_loss.json"
CASES = [
    # parameters, autocast, batch, sequence, parts, trained head
    ("bfloat16", False, 1, 1024, 4, True),
    ("bfloat16", False, 2, 768, 3, True),
    ("bfloat16", False, 1, 1024, 1, True),
    ("bfloat16", False, 1, 1024, 4, False),
    ("float32", False, 1, 1024, 4, True),
    ("float32", True, 1, 1024, 4, True),
]


def function_of(path: pathlib.Path) -> type:
    tree = ast.parse(path.read_text())
    tree.body = [n for n in tree.body if getattr(n, "name", None) == "TiledFusedLogitsLoss"]
    space = {"torch": torch}
    exec(compile(tree, str(path), "exec"), space)
    return space["TiledFusedLogitsLoss"]


def measure(function: type, case: tuple) -> dict:
    params, autocast, batch, sequence, parts, trains = case
    hidden, words = 256, 4096
    head = torch.nn.Linear(hidden, words, bias=False, dtype=getattr(torch, params)).requires_grad_(trains)

    def loss(module, rows, labels):
        logits = module(rows)
        return ForCausalLMLoss(logits=logits, labels=None, vocab_size=words, shift_labels=labels) * labels.numel()

    x = torch.randn(batch, sequence, hidden, dtype=getattr(torch, params), requires_grad=True)
    labels = torch.randint(words, (batch, sequence))
    live = Live([x, labels, *head.parameters()])
    with live:
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            y = function.apply(loss, head, x, labels, None, parts, list(head.parameters()), "sum")
        row = {"forward_peak": live.peak, "forward_left": live.now}
        live.peak = live.now
        y.backward()
        row |= {"backward_peak": live.peak}
    return {"params": params, "autocast": autocast, "batch": batch, "sequence": sequence, "parts": parts,
            "trains": trains, "hidden": hidden, "vocabulary": words} | row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--deepspeed", type=pathlib.Path, required=True)
    parser.add_argument("--out", default=GOLDEN, type=pathlib.Path)
    given = parser.parse_args()
    function = function_of(given.deepspeed)
    versions = {"torch": torch.__version__, "transformers": transformers.__version__, "deepspeed": "0.19.6"}
    rows = [measure(function, case) for case in CASES]
    given.out.write_text(json.dumps({"versions": versions, "unit": UNIT, "cases": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
