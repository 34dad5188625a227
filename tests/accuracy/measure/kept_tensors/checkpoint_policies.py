"""What policies of activation checkpointing keep, as PyTorch does it: writes tests/golden/checkpoint_policies.json.

Every case builds a small model with transformers on the CPU, checkpoints its blocks by a policy, and watches which
storages are alive at the end of the forward pass that neither the model nor its inputs hold.
tests/core/lowering/checkpoint_policies_test.cpp compares them with the step program.

    python3 tests/accuracy/measure/kept_tensors/checkpoint_policies.py
"""

import functools
import json
import pathlib
import weakref

import torch
import transformers
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

GOLDEN = pathlib.Path(__file__).resolve().parents[3] / "golden" / "checkpoint_policies.json"
UNIT = 512  # bytes: PyTorch's allocator rounds to it on a GPU

SIZES = {"hidden_size": 128, "intermediate_size": 224, "num_hidden_layers": 5, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": 500, "max_position_embeddings": 64}
MODELS = {
    "llama": {"model_type": "llama", **SIZES},
    "qwen2": {"model_type": "qwen2", **SIZES},  # queries, keys and values with biases
    "gpt2": {"model_type": "gpt2", "n_embd": 128, "n_layer": 5, "n_head": 4, "vocab_size": 500,
             "n_positions": 64, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0},
}
POLICIES = ["none", "full", "selective", {"policy": "selective_op", "every": 2}, {"policy": "selective_op", "every": 3},
            {"policy": "blocks", "every": 2}, {"policy": "blocks", "count": 3}]

PRECISIONS = {"bf16-pure": torch.bfloat16, "bf16-autocast": torch.float32}  # of a job; of its parameters

LEFT_OUT = {("gpt2", "bf16-autocast")}  # the CPU's autocast leaves layer_norm in bf16, the GPU's does not

aten = torch.ops.aten
# torchtitan/distributed/activation_checkpoint.py, _get_default_save_ops, and the CPU's attention.
SAVED = {aten.mm.default, aten.addmm.default, aten.bmm.default, aten._scaled_dot_product_flash_attention.default,
         aten._scaled_dot_product_efficient_attention.default, aten._scaled_dot_product_cudnn_attention.default,
         aten._scaled_dot_product_flash_attention_for_cpu.default}


class Live(TorchDispatchMode):
    """Bytes of the storages that operations have made and that something holds."""

    def __init__(self, outside: list[torch.Tensor]) -> None:
        super().__init__()
        self.known = {t.untyped_storage()._cdata: None for t in outside}
        self.outside = outside
        self.now = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self.add(tensor.untyped_storage())
        return result

    def add(self, storage: torch.UntypedStorage) -> None:
        key, size = storage._cdata, -(-storage.nbytes() // UNIT) * UNIT
        if key in self.known:
            return

        def gone(_) -> None:
            del self.known[key]
            self.now -= size

        self.known[key] = weakref.ref(storage, gone)
        self.now += size


def contexts(every: int | None):
    """`every`: of the products without a bias each n-th is computed again."""
    counts = {True: 0, False: 0}

    def policy(context, op, *args, **kwargs):
        saved = op in SAVED
        if every and op == aten.mm.default:
            counts[context.is_recompute] += 1
            saved = counts[context.is_recompute] % every != 0
        return CheckpointPolicy.MUST_SAVE if saved else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


def apply(policy: str | dict, blocks: torch.nn.ModuleList) -> None:
    said = {"policy": policy} if isinstance(policy, str) else policy
    options = {"use_reentrant": False}
    if said["policy"].startswith("selective"):
        options["context_fn"] = functools.partial(contexts, said.get("every"))
    for place, block in enumerate(blocks):
        taken = said["policy"] != "none"
        if said["policy"] == "blocks":
            taken = (place + 1) % said["every"] == 0 if "every" in said else place < said["count"]
        if taken:
            forward = block.forward
            block.forward = lambda *args, _forward=forward, **kwargs: checkpoint(_forward, *args, **options, **kwargs)


def measure(name: str, policy: str | dict, precision: str) -> dict:
    options = {k: v for k, v in MODELS[name].items() if k != "model_type"}
    config = transformers.AutoConfig.for_model(MODELS[name]["model_type"], **options, use_cache=False)
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa",
                                                              dtype=PRECISIONS[precision]).train()
    batch, sequence = 2, 64
    inputs = {"input_ids": torch.randint(0, config.vocab_size, (batch, sequence)),
              "position_ids": torch.arange(sequence).unsqueeze(0)}
    apply(policy, model.transformer.h if name == "gpt2" else model.model.layers)
    live = Live([*model.parameters(), *model.buffers(), *inputs.values()])
    with live:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16-autocast"):
            loss = model(**inputs, labels=inputs["input_ids"]).loss
        kept = live.now
    assert loss.requires_grad
    return {"case": name, "config": MODELS[name], "checkpointing": policy, "precision": precision,
            "batch": batch, "sequence": sequence, "forward_end": kept}


def main() -> None:
    torch.set_num_threads(1)
    cases = [measure(name, policy, precision) for name in MODELS for policy in POLICIES
             for precision in PRECISIONS if (name, precision) not in LEFT_OUT]
    about = {"about": "bytes alive at the end of a forward pass beside the model and its inputs, each storage "
                      "rounded to 512 bytes",
             "made_by": "tests/accuracy/measure/kept_tensors/checkpoint_policies.py", "transformers": transformers.__version__,
             "torch": torch.__version__.split("+")[0]}
    head = json.dumps(about, indent=1).rstrip("}").rstrip()
    rows = ",\n".join("  " + json.dumps(case) for case in cases)
    GOLDEN.write_text(f'{head},\n "cases": [\n{rows}\n ]\n}}\n')
    print(f"{len(cases)} cases")


if __name__ == "__main__":
    main()
