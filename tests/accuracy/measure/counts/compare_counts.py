"""Compares the counts of configuration files with transformers' own, on the meta device.

    python3 tests/accuracy/measure/counts/compare_counts.py PROGRAM FILE_OR_FOLDER... [--record RECORD.tsv]

PROGRAM is shardplan. A line for each config.json: what both say, or why one of them refuses. Exit code 1 where a
count differs: a file that is refused is no error, one that is counted wrongly is.

With --record the lines go to a file too: path below the folder, sha256, model_type, class, the count of transformers
and that of shardplan, `-` where one refuses, and its reason. The folder then has each repository's files as
OWNER/NAME/PATH. What transformers counted of the same bytes is taken from the record where it has them.
"""
import argparse
import collections
import hashlib
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
        raise ValueError(done.stderr.strip().splitlines()[0].removeprefix(f"shardplan: {path}: "))
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


RESULTS = {(True, True): "equal", (True, False): "only here", (False, True): "only transformers",
           (False, False): "neither"}
COLUMNS = ("source", "sha256", "model_type", "class", "transformers", "shardplan", "why not")


def known_counts(record: pathlib.Path | None) -> dict[str, str]:
    """What transformers counted, by sha256."""
    if record is None or not record.exists():
        return {}
    head, *lines = (line.split("\t") for line in record.read_text().splitlines() if not line.startswith("#"))
    rows = [dict(zip(head, line)) for line in lines]
    return {row["sha256"]: row["transformers"] for row in rows if row["transformers"] != "-"}


def record_line(path: pathlib.Path, folder: pathlib.Path, ours: str, theirs: str) -> str:
    content = json.loads(path.read_text())
    counts = [said if said.isdigit() else "-" for said in (theirs, ours)]
    why = next((said for said in (ours, theirs) if not said.isdigit()), "")
    cells = [str(path.relative_to(folder)), hashlib.sha256(path.read_bytes()).hexdigest(), content["model_type"],
             (content.get("architectures") or ["-"])[0], *counts, why.replace(str(path), path.name)]
    return "\t".join(cell.replace("\t", " ") for cell in cells)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--record", type=pathlib.Path)
    args = parser.parse_args()
    known, results, lines = known_counts(args.record), collections.Counter(), []
    for path in files_of(args.files):
        ours = said_of(lambda: counted_by_program(args.program, path))
        before = known.get(hashlib.sha256(path.read_bytes()).hexdigest())
        theirs = before or said_of(lambda: counted_by_transformers(path))
        result = RESULTS[ours.isdigit(), theirs.isdigit()]
        if result == "equal" and ours != theirs:
            result = "DIFFERENT"
        results[result] += 1
        print(f"{result:18} {path}  {ours}  {theirs}", flush=True)
        lines.append(record_line(path, pathlib.Path(args.files[0]), ours, theirs))
    if args.record:
        about = f"# made by compare_counts.py with transformers {transformers.__version__}"
        args.record.write_text("\n".join([about, "\t".join(COLUMNS), *lines]) + "\n")
    print(dict(results))
    return 1 if results["DIFFERENT"] else 0


if __name__ == "__main__":
    sys.exit(main())
