"""Compares the counts of configuration files with transformers' own, on the meta device.

    python3 tests/accuracy/measure/compare_counts.py PROGRAM FILE_OR_FOLDER...

PROGRAM is shardplan. A line for each config.json: what both say, or why one of them refuses. Exit code 1 where a
count differs: a file that is refused is no error, one that is counted wrongly is.
"""
import collections
import json
import pathlib
import subprocess
import sys

import torch
import transformers

# Classes by what `architectures` may name; the base class where a file names none that transformers has.
MAPPINGS = (
    transformers.MODEL_FOR_CAUSAL_LM_MAPPING,
    transformers.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
    transformers.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING,
    transformers.MODEL_FOR_MASKED_LM_MAPPING,
    transformers.MODEL_MAPPING,
)


def class_of(content: dict, config: transformers.PreTrainedConfig) -> type:
    for name in content.get("architectures") or []:
        if hasattr(transformers, name):
            return getattr(transformers, name)
    for mapping in MAPPINGS:
        if type(config) in mapping:
            found = mapping[type(config)]
            return found[0] if isinstance(found, tuple) else found
    raise ValueError("no class of transformers")


def counted_by_transformers(path: pathlib.Path) -> int:
    content = json.loads(path.read_text())
    content.pop("quantization_config", None)
    options = {key: value for key, value in content.items() if key != "model_type"}
    config = transformers.AutoConfig.for_model(content["model_type"], **options)
    with torch.device("meta"):
        model = class_of(content, config)(config)
    return sum(parameter.numel() for parameter in model.parameters())


def counted_by_program(program: str, path: pathlib.Path) -> int:
    done = subprocess.run([program, "model", str(path), "--format", "json"], capture_output=True, text=True)
    if done.returncode != 0:
        raise ValueError(done.stderr.strip().splitlines()[0])
    return json.loads(done.stdout)["parameters"]


def files_of(arguments: list[str]) -> list[pathlib.Path]:
    files = []
    for argument in map(pathlib.Path, arguments):
        files += sorted(argument.rglob("*.json")) if argument.is_dir() else [argument]
    return files


def said_of(count) -> str:
    try:
        return str(count())
    except Exception as problem:  # whatever a file makes transformers raise is its answer
        return f"refused: {str(problem).splitlines()[0][:100] if str(problem) else type(problem).__name__}"


def main() -> int:
    program, results = sys.argv[1], collections.Counter()
    for path in files_of(sys.argv[2:]):
        ours = said_of(lambda: counted_by_program(program, path))
        theirs = said_of(lambda: counted_by_transformers(path))
        counted = ours.isdigit(), theirs.isdigit()
        result = {(True, True): "equal" if ours == theirs else "DIFFERENT", (True, False): "only here",
                  (False, True): "only transformers", (False, False): "neither"}[counted]
        results[result] += 1
        print(f"{result:18} {path}  {ours}  {theirs}")
    print(dict(results))
    return 1 if results["DIFFERENT"] else 0


if __name__ == "__main__":
    sys.exit(main())
