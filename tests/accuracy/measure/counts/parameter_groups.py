"""Parameter tensors of small networks of every family and head, from transformers on the meta device: reads
tests/golden/family_configs.json and writes tests/golden/parameter_counts_families.json.

    python3 tests/accuracy/measure/counts/parameter_groups.py
"""

import collections
import json
import pathlib
import re

import torch
import transformers

GOLDEN = pathlib.Path(__file__).resolve().parents[3] / "golden"
MAPPINGS = ("MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING", "MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING",
            "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING", "MODEL_FOR_CAUSAL_LM_MAPPING", "MODEL_FOR_MASKED_LM_MAPPING",
            "MODEL_MAPPING")


def class_of(config: dict, parsed: transformers.PretrainedConfig) -> type:
    """The class that the configuration names, or the first that its type has."""
    if config.get("architectures"):
        return getattr(transformers, config["architectures"][0])
    for name in MAPPINGS:
        mapping = getattr(transformers, name)
        if type(parsed) in mapping:
            found = mapping[type(parsed)]
            return found[0] if isinstance(found, (tuple, list)) else found
    raise LookupError(config["model_type"])


def groups_of(model: torch.nn.Module) -> dict:
    """Name with N for indices: [shape, how many]; names of their own where shapes differ."""
    shapes = collections.defaultdict(list)
    for name, parameter in model.named_parameters():
        shapes[re.sub(r"\.\d+(?=\.|$)", ".N", name)].append((name, list(parameter.shape)))
    groups = {}
    for group, members in shapes.items():
        alike = all(shape == members[0][1] for _, shape in members)
        for name, shape in [(group, members[0][1])] if alike else members:
            groups[name] = [shape, len(members) if alike else 1]
    return groups


def measure(config: dict) -> dict:
    parsed = transformers.models.auto.configuration_auto.CONFIG_MAPPING[config["model_type"]].from_dict(dict(config))
    cls = class_of(config, parsed)
    with torch.device("meta"):
        model = cls._from_config(parsed)
    model.tie_weights()
    parameters = list(model.parameters())
    return {"class": cls.__name__, "parameters": sum(p.numel() for p in parameters), "tensors": len(parameters),
            "config": config, "groups": groups_of(model)}


def main() -> None:
    configs = json.loads((GOLDEN / "family_configs.json").read_text())
    models = {name: measure(config) for name, config in configs.items()}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in models.items())
    about = json.dumps("Parameter tensors by group of small networks, from transformers on the meta device")
    (GOLDEN / "parameter_counts_families.json").write_text(
        f'{{"about": {about},\n "transformers": "{transformers.__version__}", "torch": "{torch.__version__}",\n'
        f' "models": {{\n{lines}\n }}}}\n')
    print(len(models), "networks")


if __name__ == "__main__":
    main()
