"""transformers' tensor-parallel plans of the types that shardplan describes: tests/golden/tensor_parallel_plans.json.

    python3 tests/accuracy/measure/counts/tensor_parallel_plans.py
"""
import json
import pathlib

import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

GOLDEN = pathlib.Path(__file__).parents[3] / "golden"


def text_types(content):
    yield content["model_type"]
    for value in content.values():
        if isinstance(value, dict) and "model_type" in value:
            yield value["model_type"]


def main():
    configs = json.loads((GOLDEN / "family_configs.json").read_text())
    types = sorted({name for content in configs.values() for name in text_types(content)})
    plans = {name: getattr(CONFIG_MAPPING[name], "base_model_tp_plan", None) for name in types if name in CONFIG_MAPPING}
    text = json.dumps({"made_by": "tests/accuracy/measure/counts/tensor_parallel_plans.py",
                       "transformers": transformers.__version__, "plans": plans}, indent=1)
    (GOLDEN / "tensor_parallel_plans.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
