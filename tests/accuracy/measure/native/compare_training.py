"""Trains the same weights on the same text with PyTorch and with shardplan-validate, and keeps both series of losses.

PyTorch's series is taken twice, the second time with its other attention (eager, not sdpa): how far the order of sums
alone moves a loss is the yardstick for how far the engine may be. Linears in fp8 are torchao's (float8.py)."""
import argparse
import copy
import json
import os
import subprocess
import sys
import tempfile

import peft
import torch
import transformers
from safetensors.torch import save_file

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

from environment import environment
from float8 import convert
from jobs import parameter_dtype
from models import make_config

OPTIMIZER = {"name": "adamw", "lr": 3e-4, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1}


def cluster():
    """One GPU of the kind that runs; without a GPU a name that a job needs."""
    name = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
    return "1xH100" if "H100" in name else "1xH200"


def job_of(case):
    job = {
        "schema": "shardplan.job/1",
        "model": case["model"],
        "cluster": cluster(),
        "framework": {"name": "native", "zero_stage": 0},
        "workload": {"kind": "train", "method": "full", "micro_batch": case["micro_batch"],
                     "sequence_length": case["sequence_length"], "gradient_accumulation": 1},
        "precision": case["precision"],
        "optimizer": OPTIMIZER,
        "attention": "sdpa",
        "checkpointing": "none",
        "gradient_clipping": 1.0,
        "run": {"steps": case["steps"]},
    }
    if "lora" in case:
        job["workload"] |= {"method": "lora", "lora": case["lora"]}
        job["run"]["lora_alpha"] = case["lora_alpha"]
    return job


def first_weights(job, deviation, seed):
    """The fp32 model that all three runs start from. `deviation`: of its random matrices, if not the class's own."""
    torch.manual_seed(seed)
    config = make_config(job)
    if deviation is not None:
        config.initializer_range = deviation
    return transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").float()


def with_adapters(model, job):
    """peft's wrapper, with the same first adapters at each call; of a job without LoRA the model itself."""
    lora = job["workload"].get("lora")
    if lora is None:
        return model
    torch.manual_seed(1)
    return peft.get_peft_model(model, peft.LoraConfig(r=lora["rank"], lora_alpha=job["run"]["lora_alpha"],
                                                      target_modules=lora["targets"], lora_dropout=0.0))


def save_weights(model, job, path):
    tied = "lm_head.weight" if model.config.tie_word_embeddings else None
    weights = {name: tensor.contiguous() for name, tensor in model.state_dict().items() if name != tied}
    if "lora" in job["workload"]:
        weights |= peft.get_peft_model_state_dict(with_adapters(copy.deepcopy(model), job))
    save_file(weights, path)


def windows(text, job, step):
    """Sample s is the s-th window of the text, starting over at its end (validator/data/batches.cpp)."""
    length, batch = job["workload"]["sequence_length"], job["workload"]["micro_batch"]
    count = (len(text) - 1) // length
    starts = [(step * batch + b) % count * length for b in range(batch)]
    return (torch.stack([text[s:s + length] for s in starts]), torch.stack([text[s + 1:s + length + 1] for s in starts]))


def pytorch_losses(job, model, text, attention, device):
    """fp32: AdamW on the parameters. bf16-master: AdamW on fp32 masters, gradients and compute in bf16, and products of
    the blocks in fp8 where the job wants them."""
    weights = model.state_dict()
    model = transformers.AutoModelForCausalLM.from_config(model.config, attn_implementation=attention).float()
    model.load_state_dict(weights)
    model = with_adapters(model, job).to(device).train()
    trained = [p for p in model.parameters() if p.requires_grad]
    masters = None
    if parameter_dtype(job) == "bfloat16":
        masters = [p.detach().clone() for p in trained]
        model = convert(model.to(torch.bfloat16), job)
        trained = [p for p in model.parameters() if p.requires_grad]
    updated = masters if masters is not None else trained
    options = {k: v for k, v in OPTIMIZER.items() if k != "name"}
    optimizer = torch.optim.AdamW(updated, foreach=True, **options)
    losses = []
    for step in range(job["run"]["steps"]):
        tokens, targets = windows(text, job, step)
        result = model(input_ids=tokens.to(device), use_cache=False)
        loss = torch.nn.functional.cross_entropy(result.logits.float().flatten(0, 1), targets.to(device).flatten())
        if getattr(result, "aux_loss", None) is not None:  # as the class adds it where it is given labels
            loss = loss + model.router_aux_loss_coef * result.aux_loss
        loss.backward()
        if masters is not None:
            for master, parameter in zip(masters, trained):
                master.grad = parameter.grad.float()
                parameter.grad = None
        torch.nn.utils.clip_grad_norm_(updated, job["gradient_clipping"])
        optimizer.step()
        optimizer.zero_grad()
        if masters is not None:
            with torch.no_grad():
                for master, parameter in zip(masters, trained):
                    parameter.copy_(master)
        losses.append(loss.item())
    return losses


def native_losses(program, job, weights, device):
    job = json.loads(json.dumps(job))
    job["run"]["weights"] = os.path.abspath(weights)
    with open("job.json", "w", encoding="utf-8") as file:
        json.dump(job, file)
    done = subprocess.run([program, "job.json", "--device", device, "--record", "record.json", "--quiet"],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{program}: exit {done.returncode}\n{done.stderr[-2000:]}")
    with open("record.json", encoding="utf-8") as file:
        record = json.load(file)
    return [step["loss"] for step in record["steps"]], record["environment"]


def largest_difference(a, b):
    return max(abs(x - y) / abs(y) for x, y in zip(a, b))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("program", help="shardplan-validate")
    parser.add_argument("cases", help="case list")
    parser.add_argument("--text", required=True, help="the text both train on, a byte a token: data/text/genesis.txt")
    parser.add_argument("--output", required=True, help="folder for one record a case")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    options = parser.parse_args()
    options.program, options.output = os.path.abspath(options.program), os.path.abspath(options.output)
    os.makedirs(options.output, exist_ok=True)
    with open(options.text, "rb") as file:
        text = torch.tensor(list(file.read()))
    with open(options.cases, encoding="utf-8") as file:
        cases = json.load(file)
    os.chdir(tempfile.mkdtemp())
    for case in cases:
        job = job_of(case)
        model = first_weights(job, case.get("initializer_range"), case.get("seed", 0))
        weights = os.path.join(options.output, case["name"] + ".safetensors") if case.get("keep_weights") else "w.safetensors"
        save_weights(model, job, weights)
        pytorch = pytorch_losses(job, model, text, "sdpa", options.device)
        reordered = pytorch_losses(job, model, text, "eager", options.device)
        native, machine = native_losses(options.program, job, weights, "host" if options.device == "cpu" else "cuda")
        record = {"schema": "shardplan.training/1", "name": case["name"], "job": job,
                  "environment": {"native": machine, "pytorch": environment()},
                  "losses": {"native": native, "pytorch": pytorch, "pytorch_eager_attention": reordered},
                  "largest_relative_difference": {"native": largest_difference(native, pytorch),
                                                  "pytorch_eager_attention": largest_difference(reordered, pytorch)}}
        with open(os.path.join(options.output, case["name"] + ".json"), "w", encoding="utf-8") as file:
            json.dump(record, file, indent=1)
            file.write("\n")
        print(f"{case['name']:32} first {native[0]:.4f} last: native {native[-1]:.4f} pytorch {pytorch[-1]:.4f}; largest "
              f"difference {record['largest_relative_difference']['native']:.2e}, of PyTorch from itself "
              f"{record['largest_relative_difference']['pytorch_eager_attention']:.2e}", flush=True)
