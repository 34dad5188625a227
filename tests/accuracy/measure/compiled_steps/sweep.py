"""Small compiled steps that nobody chose, drawn by a seed: what Inductor allocates beside what is predicted. No GPU.

    python compiled_steps/sweep.py PROGRAM FOLDER --seed 5 --cases 40 [--first 0] [--large]

Models of data/models with a few layers, every setting drawn on its own; with --large up to 65,536 tokens and more layers. FOLDER gets `cases.json`, a list for
saved_by_compile.py, which runs each case in a process of its own, and `rows.jsonl`: what both say. A case that has a
row is compared again, not run again.
"""
import argparse
import json
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

from draw_cases import COMPILED, ENCODERS, NOT_FUSED, case_words, catalogue_by_name, draw_lora, longest_of, one_of
from predict import predict

HERE = os.path.dirname(os.path.abspath(__file__))
LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
CHECKPOINTING = [("none", 3), ("full", 3), ("every", 3), ("count", 1)]
ALIGNED = 64  # words: whether Inductor lengthens rows is timed on a GPU
PHASES = ("forward_end", "backward_peak")


def with_layers(config, count):
    """The model with so many layers; what is said layer by layer is cut as well."""
    key = next((key for key in LAYERS if key in config), "n_layer" if config["model_type"] == "gpt2" else LAYERS[0])
    was = config.get(key)
    made = {name: value[:count] if isinstance(value, list) and len(value) == was else value for name, value in config.items()}
    if config["model_type"] == "gpt_neo":
        count += count % 2
        made["attention_types"] = [[["global", "local"], count // 2]]
    words = made.get("vocab_size", 50257)
    return {**made, key: count, "vocab_size": -(-words // ALIGNED) * ALIGNED}


# Choices of a draw: tokens and samples at most, layers without and with a number of checkpointed blocks.
USUAL = {"tokens": 12288, "samples": [1, 2, 3, 4, 6, 8, 12, 16], "longest": 2048, "layers": ([2, 3], [4, 5, 6, 7])}
LARGE = {"tokens": 65536, "samples": [1, 2, 3, 4, 6, 8, 12, 16, 24], "longest": 8192, "layers": ([2, 3, 4, 8], [4, 6, 9, 12])}
LENGTHS = (384, 512, 1000, 1024, 1536, 2048, 3072, 4096, 8192)


def draw(rng, catalogue, sizes=USUAL):
    model = rng.choice(COMPILED)
    word = one_of(rng, CHECKPOINTING)
    layers = rng.choice(sizes["layers"][word in ("every", "count")])
    config = with_layers(catalogue[model], layers)
    policy = {"every": {"policy": "blocks", "every": rng.choice([2, 3])},
              "count": {"policy": "blocks", "count": rng.randint(1, layers - 1)}}.get(word, word)
    preset = one_of(rng, [("bf16-pure", 4), ("bf16-autocast", 4), ("fp32", 2)])
    longest = min(sizes["longest"], longest_of(config))
    length = rng.choice([512, 384] if model in ENCODERS else [one for one in LENGTHS if one <= longest])
    batch = rng.choice(sizes["samples"])
    while batch * length > sizes["tokens"]:
        batch //= 2
    method = one_of(rng, [("full", 6), ("lora", 3)])
    work = {"kind": "train", "method": method, "micro_batch": batch, "sequence_length": length,
            "gradient_accumulation": rng.choice([1, 1, 2])}
    if method == "lora":
        work["lora"] = {**draw_lora(rng, method, config), "quantization": "none"}
    return model, {"schema": "shardplan.job/1", "model": config, "cluster": "1xH100-SXM5-80GB", "framework": {"name": "single"},
                   "trainer": "hf_trainer", "compile": True, "workload": work, "precision": preset, "optimizer": {"name": "adamw"},
                   "attention": "eager" if config["model_type"] in NOT_FUSED else "sdpa", "checkpointing": policy}


def case_of(name, model, job):
    """For saved_by_compile.py."""
    work, config, preset = job["workload"], job["model"], job["precision"]
    case = {"name": name, "config": config, "batch": work["micro_batch"], "length": work["sequence_length"],
            "dtype": "bfloat16" if preset == "bf16-pure" else "float32", "checkpointing": job["checkpointing"],
            "accumulation": work["gradient_accumulation"], "trainer": preset != "fp32", "amp": preset != "fp32",
            "pads": True}
    if model in ENCODERS:
        case["head"] = "mlm"
    if "lora" in work:
        case["lora"] = work["lora"]
    return case


def replay(case, folder):
    path, out = os.path.join(folder, "case.json"), os.path.join(folder, "out.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump([case], file)
    if os.path.exists(out):
        os.remove(out)
    try:
        ran = subprocess.run([sys.executable, os.path.join(HERE, "saved_by_compile.py"), path, out], capture_output=True,
                             text=True, timeout=240, check=False)
    except subprocess.TimeoutExpired:
        return {"error": "too long"}
    if ran.returncode:
        return {"error": ran.stderr.strip().splitlines()[-1][:200]}
    with open(out, encoding="utf-8") as file:
        return {key: value for key, value in json.load(file)[0].items() if key != "case"}


def compare(program, job, row):
    """Shares of the whole, states as well: what a GPU's allocator would say."""
    said = predict(program, job)
    if "refused" in said:
        return said
    states = said["phases"]["step_end"]
    return {key: said["phases"][key] / (row[key] + states) - 1 for key in PHASES}


def words_of(model, job):
    """For the name: the model, its layers, and what is set."""
    layers = next(job["model"][key] for key in LAYERS if key in job["model"])
    return case_words(f"{model}-{layers}-layers", job)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--large", action="store_true")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    rng, catalogue = random.Random(options.seed), catalogue_by_name()
    rows_path = os.path.join(options.folder, "rows.jsonl")
    known = {}
    if os.path.exists(rows_path):
        with open(rows_path, encoding="utf-8") as file:
            known = {row["name"]: row for row in map(json.loads, file)}
    for number in range(options.cases):
        model, job = draw(rng, catalogue, LARGE if options.large else USUAL)
        name = f"{number}-{words_of(model, job)}"
        if number < options.first:
            continue
        row = known.get(name) or {"name": name, "case": case_of(name, model, job), **replay(case_of(name, model, job), options.folder)}
        if name not in known:
            with open(rows_path, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        if "error" in row:
            print(name, row["error"], flush=True)
            continue
        errors = compare(options.program, job, row)
        print(name, errors.get("refused") or " ".join(f"{100 * errors[key]:+.2f}" for key in PHASES), flush=True)


if __name__ == "__main__":
    main()
