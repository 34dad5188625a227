"""What autograd keeps under Liger-Kernel, family by family: writes tests/golden/saved_tensors_liger.json.

Liger's own functions run on the CPU with their kernels left out: what they allocate, save and write over is real, the
numbers are not. Models are patched as transformers' Trainer patches them (integrations/liger.py).

    python3 tests/accuracy/measure/kept_tensors/saved_tensors_liger.py
"""
import contextlib
import importlib

import torch

from autograd_storages import arguments, print_cases, saved_storages, write_golden
from saved_tensors import LLAMA_LIKE, build

RUNS = [(2, 32, torch.float32), (2, 32, torch.bfloat16), (1, 48, torch.bfloat16)]

CASES = {
    "llama": {"model_type": "llama", **LLAMA_LIKE},
    "llama-tied": {"model_type": "llama", **LLAMA_LIKE, "tie_word_embeddings": True},
    "mistral": {"model_type": "mistral", **LLAMA_LIKE},
    "qwen2": {"model_type": "qwen2", **LLAMA_LIKE},
    "qwen3": {"model_type": "qwen3", **LLAMA_LIKE, "head_dim": 48},
    "gemma": {"model_type": "gemma", **LLAMA_LIKE, "head_dim": 48},
    "gemma2": {"model_type": "gemma2", **LLAMA_LIKE, "head_dim": 48},
    "gemma3": {"model_type": "gemma3_text", **LLAMA_LIKE, "head_dim": 48},
    "phi3": {"model_type": "phi3", **LLAMA_LIKE, "pad_token_id": 0},
    "olmo2": {"model_type": "olmo2", **LLAMA_LIKE},
    "glm4": {"model_type": "glm4", **LLAMA_LIKE, "head_dim": 32, "pad_token_id": 0},
    "smollm3": {"model_type": "smollm3", **LLAMA_LIKE, "no_rope_layer_interval": 2, "pad_token_id": 0},
    "olmo3": {"model_type": "olmo3", **LLAMA_LIKE},
    "exaone4": {"model_type": "exaone4", **LLAMA_LIKE},
    "hunyuan_v1_dense": {"model_type": "hunyuan_v1_dense", **LLAMA_LIKE, "head_dim": 32},
    "granite": {"model_type": "granite", **LLAMA_LIKE, "residual_multiplier": 0.22, "logits_scaling": 8.0,
                "embedding_multiplier": 12.0},
    "ministral": {"model_type": "ministral", **LLAMA_LIKE, "head_dim": 32},
}
# Lists of kernels: all that Liger's function for the type has and that are not named are off.
LISTS = {"liger": None, "cross_entropy": ["cross_entropy"], "rms_norm": ["rms_norm"]}
NAMES = ("rms_norm", "layer_norm", "rope", "swiglu", "geglu", "cross_entropy", "fused_linear_cross_entropy")


class NoKernel:
    """A Triton kernel that is called and does nothing."""

    def __getitem__(self, grid):
        return lambda *given, **named: None


def leave_out_kernels():
    for name in ("rms_norm", "layer_norm", "rope", "swiglu", "geglu", "cross_entropy", "fused_linear_cross_entropy"):
        module = importlib.import_module(f"liger_kernel.ops.{name}")
        for attribute, value in list(vars(module).items()):
            if type(value).__name__ in ("JITFunction", "Autotuner", "Heuristics"):
                setattr(module, attribute, NoKernel())
    from liger_kernel.ops import LigerRopeFunction
    from liger_kernel.transformers import rope

    rope.dispatch = lambda op, *given, **named: LigerRopeFunction.apply(*given, **named)


def patched(config, dtype, kernels):
    from liger_kernel.transformers import _apply_liger_kernel_to_instance

    model = build(config, "sdpa", dtype)
    chosen = {} if kernels is None else {name: name in kernels for name in NAMES}
    _apply_liger_kernel_to_instance(model=model, **chosen)
    return model


@contextlib.contextmanager
def restored(model_type):
    """Liger replaces names of modules too; afterwards they are what they were."""
    family = model_type.removesuffix("_text")
    modeling = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    before, loss = dict(vars(modeling)), torch.nn.functional.cross_entropy
    yield
    vars(modeling).update(before)
    torch.nn.functional.cross_entropy = loss


def measure(name, config, run, list_name):
    batch, sequence, dtype = run
    with restored(config["model_type"]):
        model = patched(config, dtype, LISTS[list_name])
        ids = torch.randint(0, model.config.vocab_size, (batch, sequence))
        saved = saved_storages(model, {"input_ids": ids, "labels": ids})
    return {"case": name, "config": config, "kernels": LISTS[list_name] or list_name, "attention": "sdpa",
            "dtype": str(dtype).removeprefix("torch."), "batch": batch, "sequence": sequence, **saved}


def main():
    args = arguments(__doc__, "saved_tensors_liger.json")
    torch.set_num_threads(1)
    leave_out_kernels()
    cases = []
    for name, config in CASES.items():
        if args.only and name != args.only:
            continue
        for list_name in LISTS if name in ("llama", "qwen3") else ("liger",):
            cases += [measure(name, config, run, list_name) for run in RUNS]
    if args.only:
        print_cases(cases)
    else:
        write_golden(args.out, "saved_tensors_liger.py", cases, {})


if __name__ == "__main__":
    main()
