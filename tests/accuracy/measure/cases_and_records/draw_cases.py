"""A list of runs of HF Trainer that nobody chose, drawn from what its users set, by a seed.

    python cases_and_records/draw_cases.py PROGRAM --seed 17 --output cases/drawn_1gpu.json

Every case belongs to a kind, and each kind has its number of cases: compiled, fused kernels, quantized, fp8, eager.
Within a kind every setting is drawn on its own, so that settings meet that were only measured apart. A draw is left out
where a record or a case list has it already, where PROGRAM refuses it, or where it would take more than 68 GiB, less than
3 GiB or longer than 1.2 s a step: what is predicted decides nothing else. Model configurations are those of data/models.
"""
import argparse
import glob
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

from jobs import load_cases
from predict import predict

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, *[".."] * 4, "data", "models")
MOST_BYTES, LEAST_BYTES, MOST_SECONDS = 68 * 2**30, 3 * 2**30, 1.2

ENCODERS = ["bert-base-uncased", "roberta-base", "distilroberta-base", "xlm-roberta-base", "electra-small-discriminator", "distilbert-base-uncased",
            "modernbert-base", "deberta-v3-small"]
SMALL = ["smollm2-135m", "gemma-3-270m", "pythia-160m", "opt-125m", "opt-350m", "gpt2", "gpt2-medium", "smollm2-360m", "qwen2.5-0.5b",
         "qwen3-0.6b", "ernie-4.5-0.3b", "lfm2-350m", "bloom-560m", "gpt-neo-125m", "qwen3.5-0.8b"]
MIDDLE = ["llama-3.2-1b", "tinyllama-1.1b", "pythia-1b", "olmo-2-0425-1b", "gemma-3-1b-pt", "qwen2.5-1.5b", "phi-1_5",
          "smollm2-1.7b", "stablelm-2-1_6b", "opt-1.3b", "qwen3-1.7b", "lfm2-1.2b", "falcon-rw-1b", "gpt-neo-1.3b"]
LARGE = ["gemma-2-2b", "granite-3.1-2b", "llama-3.2-3b", "qwen2.5-3b", "starcoder2-3b", "phi-4-mini-instruct", "qwen3-4b",
         "phi-3-mini-4k-instruct", "smollm3-3b", "phi-2", "gemma-2b", "stablelm-3b-4e1t"]
LARGEST = ["mistral-7b-v0.3", "llama-3.1-8b", "qwen2.5-7b", "qwen3-8b", "olmo-2-1124-7b"]
# What Liger 0.8.5 patches, and what a compiler ends with in a minute.
PATCHED = ["llama-3.2-1b", "tinyllama-1.1b", "qwen2.5-0.5b", "qwen2.5-1.5b", "qwen3-0.6b", "qwen3-1.7b", "smollm2-360m",
           "smollm2-1.7b", "olmo-2-0425-1b", "gemma-2-2b", "gemma-3-270m", "llama-3.2-3b", "qwen2.5-3b", "qwen3-4b",
           "phi-4-mini-instruct", "granite-3.1-2b", "mistral-7b-v0.3", "llama-3.1-8b", "smollm3-3b", "gemma-2b", "gemma-3-1b-pt",
           "phi-3-mini-4k-instruct"]
COMPILED = ["smollm2-135m", "gemma-3-270m", "pythia-160m", "pythia-1b", "opt-125m", "opt-350m", "gpt2", "bert-base-uncased",
            "roberta-base", "qwen2.5-0.5b", "llama-3.2-1b", "tinyllama-1.1b", "olmo-2-0425-1b", "stablelm-2-1_6b", "phi-1_5",
            "smollm2-1.7b", "ernie-4.5-0.3b", "distilbert-base-uncased", "electra-small-discriminator", "modernbert-base", "gpt-neo-125m",
            "bloom-560m", "falcon-rw-1b", "qwen2.5-1.5b", "qwen3-0.6b", "smollm2-360m", "gpt2-medium", "opt-1.3b", "gpt-neo-1.3b",
            "xlm-roberta-base", "distilroberta-base"]
IN_FP8 = ["llama-3.2-1b", "tinyllama-1.1b", "qwen2.5-1.5b", "smollm2-1.7b", "olmo-2-0425-1b", "qwen3-1.7b", "llama-3.2-3b",
          "qwen2.5-3b", "granite-3.1-2b", "smollm3-3b", "gemma-2b", "stablelm-2-1_6b"]
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
EVERY = [*ATTENTION, "gate_proj", "up_proj", "down_proj"]
SEVEN = {"llama", "qwen2", "qwen3", "mistral", "gemma2", "gemma3_text", "olmo2", "granite", "stablelm"}
NOT_FUSED = {"bloom", "deberta-v2", "gpt_neo"}  # transformers 5.17 refuses "sdpa" for these
LENGTHS = [384, 512, 1000, 1024, 1536, 2048, 3072, 4096, 8192]
KERNELS = [["rms_norm"], ["rope"], ["swiglu"], ["fused_linear_cross_entropy"], ["cross_entropy", "rms_norm"],
           ["rms_norm", "swiglu", "fused_linear_cross_entropy"], ["rope", "cross_entropy"]]

# Of each kind: how many cases, the models, and each setting's choices with their weights.
KINDS = {
    "eager": dict(cases=6, models=[*ENCODERS, *SMALL, *MIDDLE, *LARGE], precision=[("bf16-pure", 4), ("bf16-autocast", 5), ("fp32", 1), ("fp16-autocast", 1)],
                  checkpointing=[("none", 4), ("full", 3), ("every", 2), ("count", 1), ("selective_op", 2), ("offload", 1)],
                  optimizer=[("adamw", 3), ("foreach", 2), ("adafactor", 2), ("sgd", 1), ("adagrad", 1), ("lion", 1)],
                  method=[("full", 6), ("lora", 2), ("dora", 2)]),
    "fused": dict(cases=8, models=PATCHED, kernels=[("liger", 6), ("some", 4)], precision=[("bf16-pure", 5), ("bf16-autocast", 4)],
                  checkpointing=[("none", 5), ("full", 4), ("every", 2), ("offload", 1)],
                  optimizer=[("adamw", 3), ("foreach", 1), ("adafactor", 2), ("adamw_8bit", 2), ("paged_adamw", 1), ("sgd", 1)],
                  method=[("full", 6), ("lora", 2), ("qlora", 1), ("dora", 1)]),
    "quantized": dict(cases=9, models=[*MIDDLE, *LARGE, "mistral-7b-v0.3", "qwen2.5-7b"], kernels=[("torch", 3), ("liger", 1)],
                      precision=[("bf16-pure", 5), ("bf16-autocast", 1)], checkpointing=[("none", 3), ("full", 5), ("every", 2)],
                      optimizer=[("adamw", 2), ("adamw_8bit", 3), ("paged_adamw_8bit", 3), ("paged_adamw", 1), ("adafactor", 1)],
                      method=[("qlora", 6), ("full", 4)]),
    "fp8": dict(cases=6, models=IN_FP8, linear=[("fp8-tensorwise", 1), ("fp8-rowwise", 1)], kernels=[("torch", 3), ("liger", 1)],
                precision=[("bf16-pure", 1), ("bf16-autocast", 1)], checkpointing=[("none", 2), ("full", 2)], compile=[(False, 2), (True, 1)],
                optimizer=[("adamw", 2), ("adafactor", 1), ("adamw_8bit", 2)], method=[("full", 1)]),
    "compiled": dict(cases=12, models=COMPILED, compile=[(True, 9), ("reduce-overhead", 1)], kernels=[("torch", 8), ("some", 1)],
                     precision=[("bf16-pure", 4), ("bf16-autocast", 4), ("fp32", 1)], checkpointing=[("none", 6), ("full", 3), ("every", 1)],
                     optimizer=[("adamw", 4), ("foreach", 2), ("adafactor", 2), ("adamw_8bit", 2), ("paged_adamw_8bit", 1), ("sgd", 1)],
                     method=[("full", 7), ("lora", 2), ("qlora", 1), ("dora", 1)]),
    "deepspeed": dict(cases=6, models=[*SMALL, *MIDDLE, "llama-3.2-3b", "qwen2.5-3b", "gemma-2b"], stages=[(1, 1), (2, 3), (3, 3)],
                      offload=[(False, 4), (True, 1)], kernels=[("torch", 4), ("liger", 1)], precision=[("bf16-master", 1)],
                      checkpointing=[("none", 3), ("full", 3)], optimizer=[("adamw", 1), ("deepspeed", 1)], method=[("full", 1)]),
    "divided": dict(cases=0, models=[*SMALL, *MIDDLE, *LARGE], frameworks=[("ddp", 2), ("fsdp2", 3)], compile=[(False, 3), (True, 1)],
                    kernels=[("torch", 3), ("liger", 1)], precision=[("bf16-pure", 1), ("bf16-autocast", 2)],
                    checkpointing=[("none", 3), ("full", 3), ("every", 1)], optimizer=[("adamw", 3), ("foreach", 1), ("adafactor", 1), ("sgd", 1)],
                    method=[("full", 4), ("lora", 1)]),  # of a cluster of several GPUs
}


def catalogue_by_name():
    found = {}
    for path in sorted(glob.glob(os.path.join(MODELS, "*.json"))):
        with open(path, encoding="utf-8") as file:
            found.update({one["name"]: one["config"] for one in json.load(file).get("models", []) if "config" in one})
    for name in ENCODERS:  # measured with the head that predicts words, whatever class a checkpoint is of (models.py)
        found[name] = {key: value for key, value in found[name].items() if key != "architectures"}
    return found


def longest_of(config):
    """GPT-2's and GPT-Neo's configurations say nothing where they have their class's positions."""
    own = {"gpt2": 1024, "gpt_neo": 2048}.get(config["model_type"], 8192)
    return config.get("max_position_embeddings", config.get("n_positions", own))


def one_of(rng, weighted):
    values, weights = zip(*weighted)
    return rng.choices(values, weights)[0]


def _checkpointing(rng, word):
    return {"every": {"policy": "blocks", "every": rng.choice([2, 3])}, "count": {"policy": "blocks", "count": rng.randint(3, 8)},
            "selective_op": {"policy": "selective_op", "every": 2}, "offload": {"policy": "full", "offload": True}}.get(word, word)


def draw_lora(rng, method, config):
    targets = [["all-linear"]] if config["model_type"] not in SEVEN else [ATTENTION, EVERY, ["all-linear"]]
    lora = {"rank": rng.choice([8, 16, 32, 64, 128]), "targets": rng.choice(targets)}
    if method == "qlora":
        lora["quantization"] = one_of(rng, [("nf4_double", 3), ("nf4", 2), ("fp4", 1)])
    if method == "dora" or method == "qlora" and rng.random() < 0.15:
        lora["dora"] = True
    return lora


def _deepspeed(rng, said, optimizer):
    """HF Trainer's ds_config as transformers' documentation writes it; an optimizer on the host is DeepSpeed's own."""
    offload = one_of(rng, said["offload"])
    zero = {"stage": one_of(rng, said["stages"]), "overlap_comm": True, "contiguous_gradients": True,
            **({"offload_optimizer": {"device": "cpu", "pin_memory": True}} if offload else {})}
    own = {"optimizer": {"type": "AdamW", "params": {key: "auto" for key in ("lr", "betas", "eps", "weight_decay")}}}
    config = {"bf16": {"enabled": "auto"}, "zero_optimization": zero, **(own if offload or optimizer == "deepspeed" else {}),
              **{key: "auto" for key in ("gradient_accumulation_steps", "gradient_clipping", "train_batch_size", "train_micro_batch_size_per_gpu")}}
    return {"name": "deepspeed", "ds_config": config}


def _kernels(rng, word):
    return rng.choice(KERNELS) if word == "some" else word


def _draw(rng, kind, catalogue, cluster):
    """(words for the name, the job)"""
    said = KINDS[kind]
    model = rng.choice(said["models"])
    config = catalogue[model]
    length = rng.choice([512, 384] if model in ENCODERS else [one for one in LENGTHS if one <= longest_of(config)])
    method = one_of(rng, said["method"])
    optimizer = one_of(rng, said["optimizer"])
    checkpointing = _checkpointing(rng, one_of(rng, said["checkpointing"]))
    kernels = _kernels(rng, one_of(rng, said.get("kernels", [("torch", 1)])))
    compiled = one_of(rng, said.get("compile", [(False, 1)]))
    linear = one_of(rng, said.get("linear", [(None, 1)]))
    preset = one_of(rng, said["precision"])
    accumulation = one_of(rng, [(1, 6), (2, 2), (3, 1), (4, 1)])
    work = {"kind": "train", "method": "full" if method == "full" else "lora", "micro_batch": rng.choice([1, 2, 3, 4, 6, 8, 12, 16, 24]),
            "sequence_length": length, "gradient_accumulation": accumulation}
    if method != "full":
        work["lora"] = draw_lora(rng, method, config)
    job = {"schema": "shardplan.job/1", "model": config, "cluster": cluster, "framework": {"name": "single"}, "trainer": "hf_trainer",
           **({"compile": compiled if compiled is True else {"mode": compiled}} if compiled else {}),
           **({"kernels": kernels} if kernels != "torch" else {}), "workload": work,
           "precision": {"preset": preset, "linear": linear} if linear else preset,
           "optimizer": {"name": "adamw", "implementation": "foreach"} if optimizer == "foreach" else {"name": optimizer},
           "attention": "eager" if config["model_type"] in NOT_FUSED else "sdpa", "checkpointing": checkpointing, "gradient_clipping": 1.0}
    if "stages" in said:
        job["framework"] = _deepspeed(rng, said, optimizer)
        own = "optimizer" in job["framework"]["ds_config"]
        job["optimizer"] = {"name": "adamw"} if own else {"name": "adamw", "implementation": "fused"}
    if "frameworks" in said:
        job["framework"] = {"name": one_of(rng, said["frameworks"])}
    return model, job


def _belongs(kind, model, job):
    """Few bits somewhere in what is called quantized, and no compiler that takes minutes."""
    few = "quantization" in job["workload"].get("lora", {}) or job["optimizer"]["name"].endswith("8bit")
    return (kind != "quantized" or few) and (not job.get("compile") or model in COMPILED)


def case_words(model, job):
    work, lora = job["workload"], job["workload"].get("lora")
    how = job["checkpointing"] if isinstance(job["checkpointing"], dict) else {"policy": job["checkpointing"]}
    checkpointing = {"none": []}.get(how["policy"], ["ckpt" if how["policy"] in ("full", "blocks") else how["policy"].replace("_", "-"),
                                                      *(f"{key}{how[key]}" for key in ("every", "count") if key in how),
                                                      *(["offload"] if how.get("offload") else [])])
    compiled, kernels, precision = job.get("compile"), job.get("kernels"), job["precision"]
    preset = precision["preset"] if isinstance(precision, dict) else precision
    optimizer = job["optimizer"].get("implementation", job["optimizer"]["name"])
    zero = job["framework"].get("ds_config", {}).get("zero_optimization")
    framework = job["framework"]["name"]
    divided = [f"z{zero['stage']}", *(["offload"] if "offload_optimizer" in zero else [])] if zero else [framework] if framework != "single" else []
    words = [*divided, model, *(["compile"] if compiled else []), *([compiled["mode"]] if isinstance(compiled, dict) else []),
             *([kernels] if kernels == "liger" else [word.replace("_", "-") for word in kernels or []]),
             *([precision["linear"]] if isinstance(precision, dict) else []), preset.removeprefix("bf16-"),
             *(["dora" if lora.get("dora") else "lora", str(lora["rank"]), {4: "attention", 7: "every"}.get(len(lora["targets"]), "all-linear")] if lora else []),
             *([lora["quantization"].replace("_", "-")] if lora and "quantization" in lora else []), *checkpointing,
             *([optimizer.replace("_", "-")] if optimizer not in ("adamw", "fused") else []),
             *(["ds-adamw"] if "optimizer" in job["framework"].get("ds_config", {}) else []), f"b{work['micro_batch']}", f"s{work['sequence_length']}",
             *([f"accum{work['gradient_accumulation']}"] if work["gradient_accumulation"] > 1 else [])]
    return "-".join(words)


def _asked(job):
    """What a job asks, however its configuration and its optimizer are written."""
    said = job.get("optimizer", "adamw")
    optimizer = {"name": said} if isinstance(said, str) else said
    sizes = [job["model"].get(key) for key in ("model_type", "hidden_size", "n_embd", "num_hidden_layers", "n_layer")]
    rest = {key: value for key, value in job.items() if key not in ("model", "optimizer", "cluster")}
    return json.dumps([sizes, {"implementation": "fused", **optimizer}, rest], sort_keys=True)


def _environment(job):
    """Heads that are not aligned are timed by Inductor while it compiles, which its cache would spare a second run. Models
    that FSDP2 divides are built on the host, as from_pretrained builds them."""
    aligned = job["model"].get("vocab_size", 50257) % 8 == 0
    dtype = {"model_dtype": "float32"} if "ds_config" in job["framework"] else {}
    dtype |= {"built_on": "cpu"} if job["framework"]["name"] == "fsdp2" else {}
    return dtype if aligned or not job.get("compile") else {"env": {"TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}}


def _cost(job, said):
    """Seconds that a case may take, roughly: the cheap ones come first, should there be no time for all."""
    quantized = "quantization" in job["workload"].get("lora", {})
    return 6 * said["step_seconds"] + (8 if job.get("compile") else 0) + (said["phases"]["model"] / 2**30 * 4 if quantized else 0)


def _known(output):
    """What the other lists ask."""
    lists = [path for path in glob.glob(os.path.join(HERE, "..", "cases", "*.json"))
             if "predicted" not in path and os.path.abspath(path) != os.path.abspath(output)]
    return {_asked(case["job"]) for path in lists for case in load_cases(path) if isinstance(case.get("job", {}).get("model"), dict)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--output", required=True, help="the list")
    parser.add_argument("--cluster", default="1xH100-SXM5-80GB")
    parser.add_argument("--names", default="h100-1x-hf")
    parser.add_argument("--cases", nargs="*", default=[], help="KIND=NUMBER in place of a kind's own")
    options = parser.parse_args()
    several = not options.cluster.startswith("1x")  # where what runs on one GPU is refused
    own = {kind: 0 if several and not {"stages", "frameworks"} & said.keys() else said["cases"] for kind, said in KINDS.items()}
    wanted = {**own, **{kind: int(number) for kind, number in (one.split("=") for one in options.cases)}}
    catalogue, known, rng, cases = catalogue_by_name(), _known(options.output), random.Random(options.seed), []
    for kind, number in wanted.items():
        left = number
        while left:
            model, job = _draw(rng, kind, catalogue, options.cluster)
            if not _belongs(kind, model, job) or _asked(job) in known:
                continue
            said = predict(options.program, job)
            name = f"{options.names}-{case_words(model, job)}"
            if "refused" in said:
                print(f"refused: {name}: {said['refused'].splitlines()[0][:200]}", file=sys.stderr)
                continue
            if not LEAST_BYTES <= said["device"] <= MOST_BYTES or said["step_seconds"] > MOST_SECONDS:
                continue
            known.add(_asked(job))
            cases.append({"name": name, "job": job, **_environment(job)})
            left -= 1
    cases.sort(key=lambda case: _cost(case["job"], predict(options.program, case["job"])))
    with open(options.output, "w", encoding="utf-8") as file:
        file.write("[\n " + ",\n ".join(json.dumps(case) for case in cases) + "\n]\n")


if __name__ == "__main__":
    main()
