"""What peft's LoRA trains of each family, on the meta device: writes tests/golden/adapter_counts.json.

Each configuration of tests/golden/family_configs.json that ends in a language model's head is built by transformers
and wrapped by peft: with peft's own default of `target_modules`, with `all-linear`, and with the last name of each
linear layer alone. Written is the number of parameters that train, or null where peft refuses.

    python3 tests/accuracy/measure/counts/adapter_counts.py
"""
import copy
import json
import pathlib
import sys

import peft
import torch
import transformers

from compare_counts import class_of

GOLDEN = pathlib.Path(__file__).parents[3] / "golden"
RANK = 8
HEADS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")


def build(content):
    options = {key: value for key, value in content.items() if key != "model_type"}
    config = transformers.AutoConfig.for_model(content["model_type"], **options)
    with torch.device("meta"):
        for auto in (transformers.AutoModelForImageTextToText, transformers.AutoModelForSeq2SeqLM):
            if type(config) in auto._model_mapping and "architectures" not in content:
                return auto.from_config(config)
        return class_of(content, config)(config)


def trained(model, targets):
    """Of a copy: peft changes what it wraps."""
    try:
        with torch.device("meta"):
            model = peft.get_peft_model(copy.deepcopy(model), peft.LoraConfig(r=RANK, target_modules=targets))
    except ValueError:
        return None
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def names_of(model):
    """Last names of linear layers; a name that is a number is a place in a list, which nobody gives as a target."""
    kinds = (torch.nn.Linear, transformers.pytorch_utils.Conv1D)
    names = {name.rsplit(".", 1)[-1] for name, module in model.named_modules() if isinstance(module, kinds)}
    return sorted(name for name in names if not name.isdigit())


def generates(content):
    return any(name.endswith(HEADS) for name in content.get("architectures") or ["ForCausalLM"])


def counts_of(model):
    return {"default": trained(model, None), "all-linear": trained(model, "all-linear"),
            **{target: trained(model, [target]) for target in names_of(model)}}


def main():
    configs = json.loads((GOLDEN / "family_configs.json").read_text())
    only = sys.argv[1:]
    counts = {}
    for name, content in configs.items():
        if not generates(content) or name.endswith("_default") or only and content["model_type"] not in only:
            continue
        try:
            counts[name] = counts_of(build(content))
        except ImportError as problem:  # towers of timm
            counts.pop(name, None)
            print(f"{name}: transformers does not build it: {problem}", flush=True)
    if only:
        return
    text = json.dumps({"made_by": "tests/accuracy/measure/counts/adapter_counts.py", "peft": peft.__version__,
                       "transformers": transformers.__version__, "rank": RANK, "counts": counts}, indent=1)
    (GOLDEN / "adapter_counts.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
